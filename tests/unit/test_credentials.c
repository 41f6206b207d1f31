/*
 * What a client shows to the server, and when that changes. Time is a parameter; plugins are shell
 * scripts in a folder of the test's own.
 */
#include "rest/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kinformer/log.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "unit/allocation.h"
#include "unit/scripted_server.h"
#include "unit/test.h"

#define AN_HOUR     3600
#define PATIENCE_MS 60000
#define NO_STACK    ((size_t)1 << 46) /* more than there are addresses */

static struct kinf__key_pair authority, other_authority, first_client, second_client, old_client;

static int make_identities(void **state)
{
    (void)state;
    authority = test_key_pair("authority", NULL, AN_HOUR, NULL);
    other_authority = test_key_pair("other", NULL, AN_HOUR, NULL);
    first_client = test_key_pair("first", NULL, AN_HOUR, &authority);
    second_client = test_key_pair("second", NULL, AN_HOUR, &authority);
    old_client = test_key_pair("old", NULL, -AN_HOUR, &authority);
    return 0;
}

static int release_identities(void **state)
{
    (void)state;
    kinf__key_pair_release(&authority);
    kinf__key_pair_release(&other_authority);
    kinf__key_pair_release(&first_client);
    kinf__key_pair_release(&second_client);
    kinf__key_pair_release(&old_client);
    return 0;
}

/* --- one test --- */

struct fixture {
    char folder[64];
    char paths[4][128]; /* token, ca, cert, key */
    char plugin[128];
    struct kinf__exec_config exec;
    struct kinf__cluster_config config;
    struct kinf__credentials credentials;
    struct kinf__waker waker;
    struct kinf__credential *credential; /* the last one taken */
    struct kinf_error err;
};

enum { TOKEN, CA, CERT, KEY };

static struct kinf__buffer log_lines;

static void collect(enum kinf_log_level level, const char *module, const char *line, void *ctx)
{
    (void)ctx;
    (void)module;
    (void)!kinf__buffer_printf(&log_lines, "%s %s\n", kinf_log_level_to_string(level), line);
}

static int begin(void **state)
{
    static const char *const names[] = { "token", "ca", "cert", "key" };
    struct fixture *f = calloc(1, sizeof *f);

    strcpy(f->folder, "/tmp/kinformer-test-XXXXXX");
    if (mkdtemp(f->folder) == NULL)
        return -1;
    for (size_t i = 0; i < 4; i++)
        snprintf(f->paths[i], sizeof f->paths[i], "%s/%s", f->folder, names[i]);
    snprintf(f->plugin, sizeof f->plugin, "%s/plugin", f->folder);
    f->exec.command = f->plugin;
    f->config.cluster_source = (char *)"a test";
    *state = f;
    kinf_log_set_callback(collect, NULL);
    if (kinf_log_set_levels("debug", NULL) < 0 || kinf__waker_init(&f->waker, NULL) < 0)
        return -1;
    return setenv("FOLDER", f->folder, 1);
}

/* Whatever a test did: nothing of it may be in the log. */
static void assert_log_tells_no_secret(void)
{
    const char *text = kinf__buffer_cstr(&log_lines);

    assert_null(strstr(text, "s3cret"));
    assert_null(strstr(text, "PRIVATE"));
    assert_null(strstr(text, "BEGIN"));
}

static int end(void **state)
{
    struct fixture *f = *state;
    char command[128];

    assert_log_tells_no_secret();
    kinf_log_set_callback(NULL, NULL);
    assert_int_equal(kinf_log_set_levels("all=info", NULL), 0);
    kinf__buffer_release(&log_lines);
    kinf__credential_unref(f->credential);
    if (f->credentials.config != NULL)
        kinf__credentials_release(&f->credentials);
    kinf__waker_release(&f->waker);
    snprintf(command, sizeof command, "rm -rf '%s'", f->folder);
    free(f);
    return system(command);
}

static void write_text(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
}

static void write_file(struct fixture *f, int which, const char *text)
{
    write_text(f->paths[which], text, 0600);
}

static void start(struct fixture *f)
{
    assert_int_equal(kinf__credentials_init(&f->credentials, &f->config, true, NULL), 0);
}

static struct kinf__moment at(int64_t now_ms)
{
    return (struct kinf__moment){ now_ms, now_ms / 1000 };
}

static int take_within(struct fixture *f, int64_t now_ms, int64_t wait_ms)
{
    struct kinf__credential *fresh = NULL;
    int failed =
        kinf__credentials_take(&f->credentials, at(now_ms), wait_ms, &f->waker, &fresh, &f->err);

    if (failed < 0)
        return failed;
    kinf__credential_unref(f->credential);
    f->credential = fresh;
    return 0;
}

static int take(struct fixture *f, int64_t now_ms)
{
    return take_within(f, now_ms, KINF__NEVER_MS);
}

static void assert_shows(struct fixture *f, int64_t now_ms, const char *authorization)
{
    if (take(f, now_ms) < 0)
        fail_msg("%s", f->err.message);
    if (authorization == NULL)
        assert_null(f->credential->parts.authorization);
    else
        assert_string_equal(f->credential->parts.authorization, authorization);
}

static void refuse(struct fixture *f, int64_t now_ms)
{
    kinf__credentials_refused(&f->credentials, f->credential, at(now_ms));
}

static size_t n_warnings(void)
{
    const char *line = kinf__buffer_cstr(&log_lines);
    size_t n = 0;

    while ((line = strstr(line, "warn credentials")) != NULL) {
        line++;
        n++;
    }
    return n;
}

/* --- tokens --- */

static void a_token_file_is_read_again_after_a_minute(void **state)
{
    struct fixture *f = *state;

    f->config.token_file = f->paths[TOKEN];
    write_file(f, TOKEN, " s3cret1\r\n");
    start(f);
    assert_shows(f, 1000, "Authorization: Bearer s3cret1");
    write_file(f, TOKEN, "s3cret2");
    assert_shows(f, 60999, "Authorization: Bearer s3cret1");
    assert_shows(f, 61000, "Authorization: Bearer s3cret2");
    assert_int_equal(f->credential->tls_number, 0);
}

static void a_token_file_is_read_again_after_a_refusal(void **state)
{
    struct fixture *f = *state;

    f->config.token_file = f->paths[TOKEN];
    write_file(f, TOKEN, "s3cret1");
    start(f);
    assert_shows(f, 0, "Authorization: Bearer s3cret1");
    write_file(f, TOKEN, "s3cret2");
    refuse(f, 1);
    assert_shows(f, 1, "Authorization: Bearer s3cret2");
}

static void a_bad_token_file_keeps_the_last_token_and_says_so_once(void **state)
{
    static const char *const bad[] = { "", " \n", "s3cret\nX: y", "\x01" };
    struct fixture *f = *state;

    f->config.token_file = f->paths[TOKEN];
    write_file(f, TOKEN, "s3cret1");
    start(f);
    assert_shows(f, 0, "Authorization: Bearer s3cret1");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file(f, TOKEN, bad[i]);
        refuse(f, 0);
        assert_shows(f, 0, "Authorization: Bearer s3cret1");
    }
    assert_int_equal(unlink(f->paths[TOKEN]), 0);
    refuse(f, 0);
    assert_shows(f, 0, "Authorization: Bearer s3cret1");
    assert_int_equal(n_warnings(), 1);
    /* A bad one is not believed for a minute. */
    write_file(f, TOKEN, "s3cret2");
    assert_shows(f, 1, "Authorization: Bearer s3cret2");
    write_file(f, TOKEN, "");
    refuse(f, 1);
    assert_shows(f, 1, "Authorization: Bearer s3cret2");
    assert_int_equal(n_warnings(), 2);
}

static void a_token_file_wins_over_the_token_while_it_is_readable(void **state)
{
    struct fixture *f = *state;

    f->config.token = (char *)"s3cret0";
    f->config.token_file = f->paths[TOKEN];
    start(f);
    assert_shows(f, 0, "Authorization: Bearer s3cret0");
    write_file(f, TOKEN, "s3cret1");
    assert_shows(f, 0, "Authorization: Bearer s3cret1");
}

static void without_any_token_the_file_is_blamed(void **state)
{
    struct fixture *f = *state;

    f->config.token_file = f->paths[TOKEN];
    write_file(f, TOKEN, "\n");
    start(f);
    assert_int_equal(take(f, 0), KINF_ERR_CONFIG);
    assert_non_null(strstr(f->err.message, "is empty"));
    write_file(f, TOKEN, "s3\ncret");
    assert_int_equal(take(f, 0), KINF_ERR_CONFIG);
    assert_non_null(strstr(f->err.message, "line break"));
    assert_null(strstr(f->err.message, "cret"));
    write_file(f, TOKEN, "s3cret");
    assert_shows(f, 0, "Authorization: Bearer s3cret");
}

static void a_password_is_encoded(void **state)
{
    struct fixture *f = *state;

    f->config.username = (char *)"me";
    f->config.password = (char *)"p w";
    start(f);
    assert_shows(f, 0, "Authorization: Basic bWU6cCB3");
}

static void over_plain_http_nothing_is_shown_or_run(void **state)
{
    struct kinf__credential_holder holder = { .wake = NULL };
    struct fixture *f = *state;

    f->config.ca_file = f->paths[CA];
    f->config.token = (char *)"s3cret";
    f->config.token_file = f->paths[TOKEN];
    f->config.exec = &f->exec;
    f->config.client_cert_pem = first_client.cert_pem;
    f->config.client_key_pem = first_client.key_pem;
    assert_int_equal(kinf__credentials_init(&f->credentials, &f->config, false, NULL), 0);
    assert_shows(f, 0, NULL);
    assert_null(f->credential->parts.cert_pem);
    assert_null(f->credential->parts.key_pem);
    assert_int_equal(n_warnings(), 0);
    kinf__credentials_hold(&f->credentials, &holder);
    assert_false(kinf__credentials_has_to_look(&f->credentials, &holder));
    kinf__credentials_let_go(&f->credentials, &holder);
}

/* --- certificates --- */

static void begin_with_files(struct fixture *f)
{
    write_file(f, CA, authority.cert_pem);
    write_file(f, CERT, first_client.cert_pem);
    write_file(f, KEY, first_client.key_pem);
    f->config.ca_file = f->paths[CA];
    f->config.ca_pem = authority.cert_pem;
    f->config.client_cert_file = f->paths[CERT];
    f->config.client_cert_pem = first_client.cert_pem;
    f->config.client_key_file = f->paths[KEY];
    f->config.client_key_pem = first_client.key_pem;
    start(f);
    assert_int_equal(take(f, 0), 0);
}

static bool is_outdated(struct fixture *f, int64_t now_ms)
{
    return kinf__credentials_are_outdated(&f->credentials, f->credential, at(now_ms));
}

static void a_new_authority_is_seen_within_ten_seconds(void **state)
{
    struct fixture *f = *state;

    begin_with_files(f);
    write_file(f, CA, other_authority.cert_pem);
    assert_false(is_outdated(f, 9999));
    assert_true(is_outdated(f, 10000));
    assert_string_equal(f->credential->parts.ca_pem, authority.cert_pem);
    assert_int_equal(take(f, 10000), 0);
    assert_string_equal(f->credential->parts.ca_pem, other_authority.cert_pem);
    assert_string_equal(f->credential->parts.cert_pem, first_client.cert_pem);
    assert_false(is_outdated(f, 10000));
}

static void count_wake(void *ctx)
{
    ++*(unsigned *)ctx;
}

/* One look serves all, however many hold a connection. */
static void the_first_holder_looks_and_all_are_woken(void **state)
{
    struct fixture *f = *state;
    unsigned n_wakes[3] = { 0 };
    struct kinf__credential_holder holders[3];

    begin_with_files(f);
    for (size_t i = 0; i < 3; i++) {
        holders[i] = (struct kinf__credential_holder){ count_wake, &n_wakes[i], { NULL, NULL } };
        kinf__credentials_hold(&f->credentials, &holders[i]);
        assert_int_equal(kinf__credentials_has_to_look(&f->credentials, &holders[i]), i == 0);
    }
    assert_false(is_outdated(f, 10000));
    assert_int_equal(n_wakes[0] + n_wakes[1] + n_wakes[2], 0);
    write_file(f, CA, other_authority.cert_pem);
    assert_true(is_outdated(f, 20000));
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(n_wakes[i], 1);
    kinf__credentials_let_go(&f->credentials, &holders[1]);
    assert_true(kinf__credentials_has_to_look(&f->credentials, &holders[0]));
    assert_int_equal(n_wakes[2], 1);
    kinf__credentials_let_go(&f->credentials, &holders[0]);
    assert_true(kinf__credentials_has_to_look(&f->credentials, &holders[2]));
    assert_int_equal(n_wakes[2], 2);
    kinf__credentials_let_go(&f->credentials, &holders[2]);
    assert_int_equal(n_wakes[0] + n_wakes[1], 2);
}

static void a_new_authority_is_seen_at_once_after_a_failed_handshake(void **state)
{
    struct fixture *f = *state;

    begin_with_files(f);
    write_file(f, CA, other_authority.cert_pem);
    kinf__credentials_distrusted(&f->credentials);
    assert_int_equal(take(f, 1), 0);
    assert_string_equal(f->credential->parts.ca_pem, other_authority.cert_pem);
}

static void a_new_client_certificate_is_seen_when_both_files_are_new(void **state)
{
    struct fixture *f = *state;

    begin_with_files(f);
    write_file(f, CERT, second_client.cert_pem);
    assert_false(is_outdated(f, 10000));
    write_file(f, KEY, second_client.key_pem);
    assert_true(is_outdated(f, 20000));
    assert_int_equal(take(f, 20000), 0);
    assert_string_equal(f->credential->parts.cert_pem, second_client.cert_pem);
    assert_string_equal(f->credential->parts.key_pem, second_client.key_pem);
    assert_int_equal(n_warnings(), 1);
}

static void a_new_client_certificate_is_seen_after_a_refusal(void **state)
{
    struct fixture *f = *state;

    begin_with_files(f);
    write_file(f, CERT, second_client.cert_pem);
    write_file(f, KEY, second_client.key_pem);
    refuse(f, 1);
    assert_int_equal(take(f, 1), 0);
    assert_string_equal(f->credential->parts.cert_pem, second_client.cert_pem);
}

/* Each of the files in turn, with what cannot be used; one line for each. */
static void bad_files_keep_the_old_ones_and_say_so_once(void **state)
{
    const char *const bad[] = { "", "s3cret", "-----BEGIN CERTIFICATE-----\n",
                                old_client.cert_pem };
    struct fixture *f = *state;
    int64_t now_ms = 0;

    begin_with_files(f);
    for (int which = CA; which <= KEY; which++) {
        const char *good = which == CA    ? authority.cert_pem
                           : which == KEY ? first_client.key_pem
                                          : first_client.cert_pem;

        for (size_t i = 0; i < sizeof bad / sizeof *bad - (which == CA); i++) {
            write_file(f, which, bad[i]);
            assert_false(is_outdated(f, now_ms += 10000));
        }
        assert_int_equal(unlink(f->paths[which]), 0);
        assert_false(is_outdated(f, now_ms += 10000));
        assert_int_equal(n_warnings(), which);
        write_file(f, which, good);
        assert_false(is_outdated(f, now_ms += 10000));
    }
    assert_int_equal(take(f, now_ms), 0);
    assert_string_equal(f->credential->parts.ca_pem, authority.cert_pem);
    assert_string_equal(f->credential->parts.key_pem, first_client.key_pem);
    assert_int_equal(n_warnings(), KEY);
}

/* --- plugins --- */

#define HEAD "\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\""
/* As many hours as there are runs. */
#define ENDS_IN_HOURS ",\"expirationTimestamp\":\"1970-01-01T0'$((n))':00:00Z\""

/* A plugin that counts its runs, does `first`, which knows the number as $n, and answers with a token
 * of it, and `more`. */
static void write_plugin_that(struct fixture *f, const char *first, const char *more)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    test_skip_in_valgrind("it knows no pidfd_open()");
    f->config.exec = &f->exec;
    assert_int_equal(
        kinf__buffer_printf(&text,
                            "#!/bin/sh\necho >>$FOLDER/runs\nn=$(wc -l <$FOLDER/runs)\n%s\n"
                            "echo '{" HEAD ",\"status\":{\"token\":\"s3cret'$((n))'\"%s}}'\n",
                            first, more),
        0);
    write_text(f->plugin, kinf__buffer_cstr(&text), 0700);
}

static void write_plugin(struct fixture *f, const char *more)
{
    write_plugin_that(f, "", more);
}

/* What a plugin does to wait for open_gate(). */
#define AT_THE_GATE "read line <$FOLDER/gate"

static void make_gate(struct fixture *f)
{
    char path[128];

    snprintf(path, sizeof path, "%s/gate", f->folder);
    assert_int_equal(mkfifo(path, 0600), 0);
}

/* Waits until one run has come there. */
static void open_gate(struct fixture *f)
{
    char path[128];

    snprintf(path, sizeof path, "%s/gate", f->folder);
    write_text(path, "\n", 0600);
}

static void wait_for_run(struct fixture *f)
{
    assert_true(kinf__waker_wait(&f->credentials.run_ended, PATIENCE_MS));
}

static size_t n_runs(struct fixture *f)
{
    char path[128];
    struct stat runs = { .st_size = 0 };

    snprintf(path, sizeof path, "%s/runs", f->folder);
    (void)stat(path, &runs);
    return (size_t)runs.st_size;
}

static void a_plugin_runs_once_when_it_sets_no_end(void **state)
{
    struct fixture *f = *state;

    write_plugin(f, "");
    start(f);
    assert_shows(f, 0, "Authorization: Bearer s3cret1");
    assert_shows(f, INT64_C(1) << 40, "Authorization: Bearer s3cret1");
}

static void a_plugin_runs_again_shortly_before_its_end(void **state)
{
    struct fixture *f = *state;

    write_plugin(f, ENDS_IN_HOURS);
    start(f);
    assert_shows(f, 0, "Authorization: Bearer s3cret1");
    assert_shows(f, 3589000, "Authorization: Bearer s3cret1");
    assert_int_equal(n_runs(f), 1);
    assert_shows(f, 3590000, "Authorization: Bearer s3cret1");
    wait_for_run(f);
    assert_shows(f, 3590000, "Authorization: Bearer s3cret2");
}

static void what_is_still_good_is_shown_while_the_plugin_runs(void **state)
{
    struct fixture *f = *state;

    make_gate(f);
    write_plugin_that(f, "[ $n = 1 ] || " AT_THE_GATE, ENDS_IN_HOURS);
    start(f);
    assert_shows(f, 0, "Authorization: Bearer s3cret1");
    assert_shows(f, 3590000, "Authorization: Bearer s3cret1");
    assert_shows(f, 3599999, "Authorization: Bearer s3cret1");
    assert_int_equal(take_within(f, 3600000, 20), KINF_ERR_TIMEOUT);
    /* Of one that is refused nobody knows whether it is good. */
    refuse(f, 3595000);
    assert_int_equal(take_within(f, 3595000, 20), KINF_ERR_TIMEOUT);
    open_gate(f);
    assert_shows(f, 3600000, "Authorization: Bearer s3cret2");
    assert_int_equal(n_runs(f), 2);
}

static void a_run_that_fails_early_leaves_what_is_good_and_says_so_once(void **state)
{
    struct fixture *f = *state;

    write_plugin(f, ENDS_IN_HOURS);
    start(f);
    assert_shows(f, 0, "Authorization: Bearer s3cret1");
    write_plugin_that(f, "exit 7", "");
    for (int64_t now_ms = 3590000; now_ms < 3600000; now_ms += 1000) {
        assert_shows(f, now_ms, "Authorization: Bearer s3cret1");
        wait_for_run(f);
    }
    /* At the beginning, and more than five seconds behind the end of that. */
    assert_int_equal(n_runs(f), 3);
    assert_int_equal(n_warnings(), 1);
    assert_int_equal(take(f, 3600000), KINF_ERR_UNAUTHORIZED);
    assert_non_null(strstr(f->err.message, "exit code 7"));
    assert_int_equal(n_runs(f), 3);
}

/* What lives for 8 s is used for 6, and what is over on arrival for one. */
static void what_lives_shortly_is_used_nevertheless(void **state)
{
    struct fixture *f = *state;

    write_plugin(f, ",\"expirationTimestamp\":\"1970-01-01T00:00:08Z\"");
    start(f);
    assert_shows(f, 0, "Authorization: Bearer s3cret1");
    assert_shows(f, 5000, "Authorization: Bearer s3cret1");
    assert_shows(f, 9000, "Authorization: Bearer s3cret2");
    assert_shows(f, 9999, "Authorization: Bearer s3cret2");
    assert_shows(f, 20000, "Authorization: Bearer s3cret3");
}

static void a_plugin_runs_again_after_a_refusal(void **state)
{
    struct fixture *f = *state;
    struct kinf__credential *first;

    write_plugin(f, "");
    start(f);
    assert_shows(f, 0, "Authorization: Bearer s3cret1");
    first = f->credential;
    f->credential = NULL;
    kinf__credentials_refused(&f->credentials, first, at(1));
    assert_shows(f, 1, "Authorization: Bearer s3cret2");
    /* Another one that was refused with the first finds that it has changed. */
    kinf__credentials_refused(&f->credentials, first, at(9000));
    kinf__credential_unref(first);
    assert_shows(f, 9000, "Authorization: Bearer s3cret2");
}

/* A server that refuses whatever it gets costs a run in five seconds, not one a request. */
static void refusals_cannot_make_a_plugin_run_all_the_time(void **state)
{
    struct fixture *f = *state;

    write_plugin(f, "");
    start(f);
    assert_shows(f, 0, "Authorization: Bearer s3cret1");
    for (int64_t now_ms = 1; now_ms < 20000; now_ms += 100) {
        char expected[64];

        refuse(f, now_ms);
        snprintf(expected, sizeof expected, "Authorization: Bearer s3cret%d",
                 2 + (int)(now_ms / 5000));
        assert_shows(f, now_ms, expected);
    }
}

static void a_plugin_that_fails_runs_again_after_five_seconds(void **state)
{
    struct fixture *f = *state;

    write_plugin(f, "");
    write_text(f->plugin, "#!/bin/sh\necho >>$FOLDER/runs\nexit 7\n", 0700);
    start(f);
    assert_int_equal(take(f, 0), KINF_ERR_UNAUTHORIZED);
    assert_non_null(strstr(f->err.message, "exit code 7"));
    write_plugin(f, "");
    memset(&f->err, 0, sizeof f->err);
    assert_int_equal(take(f, 4999), KINF_ERR_UNAUTHORIZED);
    assert_non_null(strstr(f->err.message, "exit code 7"));
    /* The pause begins when the run ended. */
    assert_shows(f, 5000 + 600000, "Authorization: Bearer s3cret2");
}

/* Certificates that it gives are for new connections; the token alone is not. */
static void a_plugins_certificate_outdates_connections(void **state)
{
    struct fixture *f = *state;
    struct kinf__credential *before;

    write_plugin(f, ENDS_IN_HOURS);
    start(f);
    assert_int_equal(take(f, 0), 0);
    assert_null(f->credential->parts.cert_pem);
    write_file(f, CERT, first_client.cert_pem);
    write_file(f, KEY, first_client.key_pem);
    write_text(f->plugin,
               "#!/bin/sh\njoin() { sed 's/$/\\\\n/' $FOLDER/$1 | tr -d '\\n'; }\n"
               "printf %s '{" HEAD ",\"status\":{\"clientCertificateData\":\"' \"$(join cert)\""
               " '\",\"clientKeyData\":\"' \"$(join key)\" '\"}}'\n",
               0700);
    assert_false(is_outdated(f, 3600000));
    refuse(f, 3600000);
    before = f->credential;
    f->credential = NULL;
    assert_shows(f, 3600000, NULL);
    assert_true(kinf__credentials_are_outdated(&f->credentials, before, at(3600000)));
    kinf__credential_unref(before);
    assert_string_equal(f->credential->parts.cert_pem, first_client.cert_pem);
    assert_string_equal(f->credential->parts.key_pem, first_client.key_pem);
}

static void a_plugin_is_waited_for_no_longer_than_the_time(void **state)
{
    struct fixture *f = *state;
    int64_t began_ms;

    make_gate(f);
    write_plugin_that(f, AT_THE_GATE, "");
    start(f);
    began_ms = kinf__clock_now_ms();
    assert_int_equal(take_within(f, 0, 50), KINF_ERR_TIMEOUT);
    assert_in_range(kinf__clock_now_ms() - began_ms, 50, 5000);
    assert_non_null(strstr(f->err.message, f->plugin));
}

/* None of them waits long enough, but all for the same run. */
static void a_slow_plugin_ends_in_spite_of_short_times(void **state)
{
    struct fixture *f = *state;

    make_gate(f);
    write_plugin_that(f, AT_THE_GATE, "");
    start(f);
    for (int64_t now_ms = 0; now_ms < 60000; now_ms += 6000)
        assert_int_equal(take_within(f, now_ms, 2), KINF_ERR_TIMEOUT);
    open_gate(f);
    wait_for_run(f);
    assert_int_equal(take_within(f, 60000, 0), 0);
    assert_string_equal(f->credential->parts.authorization, "Authorization: Bearer s3cret1");
    assert_int_equal(n_runs(f), 1);
}

/* Nobody waits, but those who come within five seconds are told. */
static void a_slow_plugin_fails_for_all_who_need_it(void **state)
{
    struct fixture *f = *state;

    make_gate(f);
    write_plugin_that(f, AT_THE_GATE "\nexit 7", "");
    start(f);
    assert_int_equal(take_within(f, 0, 2), KINF_ERR_TIMEOUT);
    open_gate(f);
    wait_for_run(f);
    for (int64_t now_ms = 0; now_ms < 5000; now_ms += 1000) {
        assert_int_equal(take_within(f, now_ms, 0), KINF_ERR_UNAUTHORIZED);
        assert_non_null(strstr(f->err.message, "exit code 7"));
    }
    assert_int_equal(n_runs(f), 1);
    assert_int_equal(n_warnings(), 0);
}

static void release_kills_a_plugin_that_runs(void **state)
{
    struct fixture *f = *state;
    int64_t began_ms;
    FILE *file;
    int pid;

    make_gate(f);
    write_plugin_that(f, "echo $$ >$FOLDER/token\n" AT_THE_GATE, "");
    start(f);
    while (access(f->paths[TOKEN], F_OK) < 0 || n_runs(f) == 0)
        assert_int_equal(take_within(f, 0, 2), KINF_ERR_TIMEOUT);
    do {
        file = fopen(f->paths[TOKEN], "re");
        assert_non_null(file);
    } while (fscanf(file, "%d", &pid) != 1 && fclose(file) == 0);
    fclose(file);
    assert_int_equal(kill(pid, 0), 0);
    began_ms = kinf__clock_now_ms();
    kinf__credentials_release(&f->credentials);
    f->credentials.config = NULL;
    assert_true(kinf__clock_now_ms() - began_ms < test_stop_limit_ms());
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(errno, ESRCH);
}

static void a_run_that_cannot_begin_is_a_failed_one(void **state)
{
    struct fixture *f = *state;

    write_plugin(f, ENDS_IN_HOURS);
    start(f);
    kinf__thread_set_stack(NO_STACK);
    assert_int_equal(take(f, 0), KINF_ERR_SYSTEM);
    kinf__thread_set_stack(0);
    assert_int_equal(take(f, 4999), KINF_ERR_SYSTEM);
    assert_shows(f, 5000, "Authorization: Bearer s3cret1");
    kinf__thread_set_stack(NO_STACK);
    assert_shows(f, 3590000, "Authorization: Bearer s3cret1");
    kinf__thread_set_stack(0);
    assert_int_equal(n_warnings(), 1);
    assert_shows(f, 3595000, "Authorization: Bearer s3cret1");
    wait_for_run(f);
    assert_shows(f, 3595000, "Authorization: Bearer s3cret2");
}

/* --- threads --- */

struct taker {
    struct fixture *f;
    struct kinf__waker waker;
    pthread_t thread;
    int result;
    char shown[64];
};

static void *take_there(void *ctx)
{
    struct taker *taker = ctx;
    struct kinf__credential *credential = NULL;

    taker->result = kinf__credentials_take(&taker->f->credentials, at(0), KINF__NEVER_MS,
                                           &taker->waker, &credential, NULL);
    if (taker->result == 0)
        snprintf(taker->shown, sizeof taker->shown, "%s", credential->parts.authorization);
    kinf__credential_unref(credential);
    return NULL;
}

static void start_taker(struct taker *taker, struct fixture *f)
{
    *taker = (struct taker){ .f = f };
    assert_int_equal(kinf__waker_init(&taker->waker, NULL), 0);
    assert_int_equal(kinf__thread_start(&taker->thread, "taker", take_there, taker, NULL), 0);
}

static void end_taker(struct taker *taker)
{
    pthread_join(taker->thread, NULL);
    kinf__waker_release(&taker->waker);
}

static void share_one_run(struct fixture *f, const char *end, int result, const char *shown)
{
    struct taker takers[8];

    write_plugin_that(f, end, "");
    start(f);
    for (size_t i = 0; i < 8; i++)
        start_taker(&takers[i], f);
    for (size_t i = 0; i < 8; i++) {
        end_taker(&takers[i]);
        assert_int_equal(takers[i].result, result);
        assert_string_equal(takers[i].shown, shown);
    }
    assert_int_equal(n_runs(f), 1);
}

static void many_threads_share_one_run(void **state)
{
    share_one_run(*state, "", 0, "Authorization: Bearer s3cret1");
}

static void many_threads_share_one_run_that_fails(void **state)
{
    share_one_run(*state, "exit 7", KINF_ERR_UNAUTHORIZED, "");
}

static void threads_can_be_stopped_while_the_plugin_runs(void **state)
{
    struct fixture *f = *state;
    struct taker takers[2];

    make_gate(f);
    write_plugin_that(f, AT_THE_GATE, "");
    start(f);
    start_taker(&takers[0], f);
    while (n_runs(f) == 0)
        usleep(1000);
    start_taker(&takers[1], f);
    for (size_t i = 0; i < 2; i++) {
        kinf__waker_set(&takers[i].waker);
        end_taker(&takers[i]);
        assert_int_equal(takers[i].result, KINF_ERR_STOPPED);
    }
    /* The run goes on. */
    open_gate(f);
    assert_shows(f, 0, "Authorization: Bearer s3cret1");
}

static void without_memory_the_old_credential_stays(void **state)
{
    struct fixture *f = *state;
    bool did_fail = true;

    f->config.token_file = f->paths[TOKEN];
    write_file(f, TOKEN, "s3cret1");
    begin_with_files(f);
    write_file(f, TOKEN, "s3cret2");
    write_file(f, CA, other_authority.cert_pem);
    write_file(f, CERT, second_client.cert_pem);
    write_file(f, KEY, second_client.key_pem);
    for (size_t n = 1; did_fail; n++) {
        struct kinf__credential *taken = NULL;

        refuse(f, 0);
        test_fail_allocation(n);
        assert_int_equal(
            kinf__credentials_take(&f->credentials, at(0), KINF__NEVER_MS, &f->waker, &taken, NULL),
            0);
        did_fail = test_allocation_failed();
        kinf__credential_unref(taken);
    }
    assert_shows(f, 0, "Authorization: Bearer s3cret2");
    assert_string_equal(f->credential->parts.ca_pem, other_authority.cert_pem);
    assert_string_equal(f->credential->parts.key_pem, second_client.key_pem);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_token_file_is_read_again_after_a_minute),
        IN_FOLDER(a_token_file_is_read_again_after_a_refusal),
        IN_FOLDER(a_bad_token_file_keeps_the_last_token_and_says_so_once),
        IN_FOLDER(a_token_file_wins_over_the_token_while_it_is_readable),
        IN_FOLDER(without_any_token_the_file_is_blamed),
        IN_FOLDER(a_password_is_encoded),
        IN_FOLDER(over_plain_http_nothing_is_shown_or_run),
        IN_FOLDER(a_new_authority_is_seen_within_ten_seconds),
        IN_FOLDER(the_first_holder_looks_and_all_are_woken),
        IN_FOLDER(a_new_authority_is_seen_at_once_after_a_failed_handshake),
        IN_FOLDER(a_new_client_certificate_is_seen_when_both_files_are_new),
        IN_FOLDER(a_new_client_certificate_is_seen_after_a_refusal),
        IN_FOLDER(bad_files_keep_the_old_ones_and_say_so_once),
        IN_FOLDER(a_plugin_runs_once_when_it_sets_no_end),
        IN_FOLDER(a_plugin_runs_again_shortly_before_its_end),
        IN_FOLDER(what_is_still_good_is_shown_while_the_plugin_runs),
        IN_FOLDER(a_run_that_fails_early_leaves_what_is_good_and_says_so_once),
        IN_FOLDER(what_lives_shortly_is_used_nevertheless),
        IN_FOLDER(a_plugin_runs_again_after_a_refusal),
        IN_FOLDER(refusals_cannot_make_a_plugin_run_all_the_time),
        IN_FOLDER(a_plugin_that_fails_runs_again_after_five_seconds),
        IN_FOLDER(a_plugins_certificate_outdates_connections),
        IN_FOLDER(a_plugin_is_waited_for_no_longer_than_the_time),
        IN_FOLDER(a_slow_plugin_ends_in_spite_of_short_times),
        IN_FOLDER(a_slow_plugin_fails_for_all_who_need_it),
        IN_FOLDER(release_kills_a_plugin_that_runs),
        IN_FOLDER(a_run_that_cannot_begin_is_a_failed_one),
        IN_FOLDER(many_threads_share_one_run),
        IN_FOLDER(many_threads_share_one_run_that_fails),
        IN_FOLDER(threads_can_be_stopped_while_the_plugin_runs),
        IN_FOLDER(without_memory_the_old_credential_stays),
    };

    return cmocka_run_group_tests(tests, make_identities, release_identities);
}
