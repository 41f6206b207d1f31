/*
 * A watch that runs while the client's certificate is renewed, which is in files: it is replaced by
 * one on a connection with the new certificate, but between two events, and not before a stream's
 * initial events are complete. Time is simulated: files are looked at every ten seconds.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/file.h"
#include "unit/reflector_fixture.h"

#define AN_HOUR    3600
#define LOOK_MS    10000
#define NOTHING_MS 100 /* is waited for what must not come */
#define WAIT_MS    60000

static struct kinf__key_pair authority, server_pair, first_pair, second_pair;
static char folder[] = "/tmp/kinformer-test-XXXXXX";
static char ca_file[64], cert_file[64], key_file[64];

static void must(int r)
{
    assert_int_equal(r, 0);
}

static void write_client(const struct kinf__key_pair *pair)
{
    must(kinf__file_replace(cert_file, kinf_str_from(pair->cert_pem), NULL));
    must(kinf__file_replace(key_file, kinf_str_from(pair->key_pem), NULL));
}

static int make_files(void **state)
{
    (void)state;
    authority = test_key_pair("authority", NULL, AN_HOUR, NULL);
    server_pair = test_key_pair("127.0.0.1", "IP:127.0.0.1", AN_HOUR, &authority);
    first_pair = test_key_pair("first", NULL, AN_HOUR, &authority);
    second_pair = test_key_pair("second", NULL, AN_HOUR, &authority);
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(ca_file, sizeof ca_file, "%s/ca", folder);
    snprintf(cert_file, sizeof cert_file, "%s/cert", folder);
    snprintf(key_file, sizeof key_file, "%s/key", folder);
    return kinf__file_replace(ca_file, kinf_str_from(authority.cert_pem), NULL);
}

static int remove_files(void **state)
{
    (void)state;
    unlink(ca_file);
    unlink(cert_file);
    unlink(key_file);
    kinf__key_pair_release(&authority);
    kinf__key_pair_release(&server_pair);
    kinf__key_pair_release(&first_pair);
    kinf__key_pair_release(&second_pair);
    return rmdir(folder);
}

/* Of a server that asks for certificates, in place of the fixture's own. */
static void set_up(struct reflector_fixture *f, const struct test_reply *replies, size_t n_replies)
{
    const struct replay_options options = { .key_pair = &server_pair,
                                            .client_authority = &authority };
    char text[512];

    write_client(&first_pair);
    reflector_set_up(f, NULL, 0);
    replay_stop(f->server);
    kinf_client_free(f->client);
    f->server = test_server_start_with(replies, n_replies, &options);
    snprintf(text, sizeof text,
             "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
             "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:%u', "
             "certificate-authority: %s}}]\n"
             "users: [{name: u, user: {client-certificate: %s, client-key: %s}}]\n",
             replay_port(f->server), ca_file, cert_file, key_file);
    must(test_client_new(text, NULL, &f->client, NULL));
    f->options.client = f->client;
    f->options.watch_timeout_ms = 100000;
    kinf__clock_begin_simulation();
}

static void tear_down(struct reflector_fixture *f)
{
    kinf__clock_end_simulation();
    reflector_tear_down(f);
}

#define HEAD      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
#define RAW(text) .raw = HEAD text, .raw_len = sizeof(HEAD text) - 1, .end = TEST_END_OPEN
#define END_MARK                                                                                   \
    EVENT("BOOKMARK",                                                                              \
          "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"13\","      \
          "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}")

/* The last reply is in two parts, and the certificate is renewed between them. */
struct row {
    enum kinf_initial initial;
    struct test_reply replies[2];
    size_t n_replies;
    const char *first_deltas; /* of what comes before; NULL: nothing is told of it */
    const char *deltas;       /* then */
};

static void assert_goes_on(struct reflector_fixture *f, size_t n_before)
{
    const struct replay_request *before = replay_wait_request(f->server, n_before - 1, 0);
    const struct replay_request *watch = replay_wait_request(f->server, n_before, WAIT_MS);
    char value[16];

    assert_non_null(watch);
    assert_true(replay_request_query(watch, "watch", value, sizeof value));
    assert_true(replay_request_query(watch, "resourceVersion", value, sizeof value));
    assert_string_equal(value, "13");
    assert_string_equal(before->client_name, "first");
    assert_string_equal(watch->client_name, "second");
    assert_true(watch->connection != before->connection);
    assert_int_equal(reflector_counts(f).n_lists, 1);
    assert_int_equal(reflector_counts(f).n_errors, 0);
}

static void run_row(const struct row *row)
{
    struct reflector_fixture f;

    set_up(&f, row->replies, row->n_replies);
    f.options.initial = row->initial;
    reflector_start(&f);
    assert_non_null(replay_wait_request(f.server, row->n_replies - 1, WAIT_MS));
    if (row->first_deltas != NULL)
        reflector_expect_deltas(&f, row->first_deltas);
    write_client(&second_pair);
    kinf__clock_advance(LOOK_MS);
    assert_null(replay_wait_request(f.server, row->n_replies, NOTHING_MS));
    test_server_let_go(f.server);
    reflector_expect_deltas(&f, row->deltas);
    kinf__clock_advance(LOOK_MS);
    assert_goes_on(&f, row->n_replies);
    tear_down(&f);
}

static void a_watch_is_replaced_between_two_events(void **state)
{
    static const struct row row = {
        .initial = KINF_INITIAL_LIST,
        .replies = { { .body = LIST("10", "", POD("a", "4") "," POD("b", "3")) },
                     { RAW(EVENT("ADDED", POD("c", "12")) "{\"type\":\"MODIFIED\",\"obj"),
                       .raw_more = "ect\":" POD("b", "13") "}\n" } },
        .n_replies = 2,
        .first_deltas = "R n/a@4 R n/b@3 A n/c@12 ",
        .deltas = "U n/b@13 ",
    };

    (void)state;
    run_row(&row);
}

static void a_watch_list_is_not_replaced_before_its_bookmark(void **state)
{
    static const struct row row = {
        .initial = KINF_INITIAL_WATCHLIST,
        .replies = { { RAW(EVENT("ADDED", POD("a", "4")) EVENT("ADDED", POD("b", "3"))),
                       .raw_more = END_MARK } },
        .n_replies = 1,
        .deltas = "R n/a@4 R n/b@3 ",
    };

    (void)state;
    run_row(&row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_watch_is_replaced_between_two_events),
        cmocka_unit_test(a_watch_list_is_not_replaced_before_its_bookmark),
    };

    return cmocka_run_group_tests(tests, make_files, remove_files);
}
