/*
 * The reflector against a scripted server: what it asks for, what reaches the queue, and that it
 * stops at once wherever it is.
 */
#include "reflector/reflector.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "unit/allocation.h"
#include "unit/http_server.h"
#include "unit/test.h"

#define WAIT_MS 20000

#define POD(name, rv)                                                                              \
    "{\"metadata\":{\"namespace\":\"n\",\"name\":\"" name "\",\"uid\":\"u-" name                   \
    "\",\"resourceVersion\":\"" rv "\"},\"spec\":{\"nodeName\":\"x\"}}"
#define LIST(rv, more, items)                                                                      \
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" rv          \
    "\"" more "},\"items\":[" items "]}\n"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define BOOKMARK(rv)                                                                               \
    EVENT("BOOKMARK",                                                                              \
          "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" rv        \
          "\"}}")
#define STATUS(code, reason)                                                                       \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"m\","         \
    "\"reason\":\"" reason "\",\"code\":" code "}"
#define WATCH_FROM(rv)                                                                             \
    "/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=" rv "&timeoutSeconds=1\n"

/* A reflector with all it works between. */
struct fixture {
    struct test_server *server;
    char *kubeconfig;
    struct kinf_client *client;
    struct kinf_indexer *indexer;
    struct kinf_deltafifo *fifo;
    struct kinf__prune_plan *plan;
    struct kinf__reflector_options options;
    struct kinf__reflector *reflector;
    struct kinf__buffer popped;
    size_t n_objects_before;

    /* guarded by lock; written by the reflector's callbacks */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct kinf__buffer phases;
    struct kinf__buffer quarantined;
    int64_t wait_ms;
    size_t n_proofs;
};

static void must(int r)
{
    assert_int_equal(r, 0);
}

/* --- what the reflector reports --- */

static void append(struct kinf__buffer *buffer, const char *a, const char *b)
{
    if (kinf__buffer_printf(buffer, "%s%s ", a, b) < 0)
        abort();
}

static void on_phase(enum kinf__reflector_phase phase, const struct kinf_error *err,
                     int64_t wait_ms, void *ctx)
{
    struct fixture *f = ctx;

    pthread_mutex_lock(&f->lock);
    append(&f->phases, kinf__reflector_phase_to_string(phase), "");
    if (phase == KINF__REFLECTOR_WAITING) {
        f->phases.len--;
        append(&f->phases, ":", kinf_errc_to_string(err->code));
        f->wait_ms = wait_ms;
    }
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static void on_proof(void *ctx)
{
    struct fixture *f = ctx;

    pthread_mutex_lock(&f->lock);
    f->n_proofs++;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static void on_quarantine(const char *key, const struct kinf_error *err, void *ctx)
{
    struct fixture *f = ctx;

    pthread_mutex_lock(&f->lock);
    append(&f->quarantined, key, "");
    f->quarantined.len--;
    append(&f->quarantined, ":", kinf_errc_to_string(err->code));
    pthread_mutex_unlock(&f->lock);
}

/* Waits for a change of what callbacks wrote, with the lock held. Returns false when the time is
 * over. */
static bool wait_for_change(struct fixture *f, int64_t begun_ms)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    pthread_cond_timedwait(&f->changed, &f->lock, &until);
    return kinf__clock_now_ms() - begun_ms < WAIT_MS;
}

/* Waits until the phases so far begin with `expected`. */
static void expect_phases(struct fixture *f, const char *expected)
{
    int64_t begun_ms = kinf__clock_now_ms();
    size_t len = strlen(expected);
    char *phases;

    pthread_mutex_lock(&f->lock);
    while (f->phases.len < len && wait_for_change(f, begun_ms))
        continue;
    assert_non_null(kinf__buffer_cstr(&f->phases));
    phases = strndup(f->phases.bytes, f->phases.len < len ? f->phases.len : len);
    pthread_mutex_unlock(&f->lock);
    assert_string_equal(phases, expected);
    free(phases);
}

/* Waits until so many proofs of life came. */
static void expect_proofs(struct fixture *f, size_t n)
{
    int64_t begun_ms = kinf__clock_now_ms();
    bool have_come;

    pthread_mutex_lock(&f->lock);
    while (f->n_proofs < n && wait_for_change(f, begun_ms))
        continue;
    have_come = f->n_proofs >= n;
    pthread_mutex_unlock(&f->lock);
    assert_true(have_come);
}

/* --- the store --- */

static int each_known(kinf_known_object_cb *callback, void *callback_ctx, void *ctx)
{
    struct fixture *f = ctx;
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(f->indexer);
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    int r = 0;

    kinf_cursor_all(&cursor, snapshot);
    while (r == 0 && (object = kinf_cursor_next(&cursor)) != NULL)
        r = callback(object, callback_ctx);
    return r;
}

static bool has_key(const char *key, void *ctx)
{
    struct fixture *f = ctx;
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(f->indexer);

    return kinf_snapshot_get(snapshot, key) != NULL;
}

static int process(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx)
{
    struct fixture *f = ctx;

    (void)in_initial_list;
    for (size_t i = 0; i < deltas->n_items; i++) {
        const struct kinf_delta *delta = &deltas->items[i];

        must(kinf__buffer_printf(&f->popped, "%c%s %s@%s ",
                                 kinf_delta_type_to_string(delta->type)[0],
                                 delta->final_state_unknown ? "!" : "", deltas->key,
                                 kinf_object_resource_version(delta->object)));
        if (delta->type == KINF_DELTA_DELETED)
            must(kinf_indexer_delete(f->indexer, deltas->key, NULL, NULL, NULL));
        else
            must(kinf_indexer_add(f->indexer, delta->object, NULL, NULL));
    }
    return 0;
}

/* Processes what comes until it is `expected`: the first letter of each delta's type ('!': a
 * tombstone) with "ns/name@rv". */
static void expect_deltas(struct fixture *f, const char *expected)
{
    f->popped.len = 0;
    while (f->popped.len < strlen(expected)) {
        int r = kinf_deltafifo_pop(f->fifo, process, f, WAIT_MS);

        assert_non_null(kinf__buffer_cstr(&f->popped));
        if (r < 0)
            fail_msg("after '%s' nothing comes of '%s'", f->popped.bytes, expected);
    }
    assert_non_null(kinf__buffer_cstr(&f->popped));
    assert_string_equal(f->popped.bytes, expected);
}

/* --- life --- */

static void set_up_client(struct fixture *f, int port)
{
    struct kinf_client_options options = KINF_CLIENT_OPTIONS_INIT;
    struct kinf_error err = KINF_ERROR_INIT;

    f->kubeconfig = test_kubeconfig(port);
    options.kubeconfig = f->kubeconfig;
    if (kinf_client_new(&options, &f->client, &err) < 0)
        fail_msg("%s", err.message);
}

static void set_up(struct fixture *f, const struct test_reply *replies, size_t n_replies)
{
    struct kinf_deltafifo_options fifo_options = { .known = { each_known, has_key, f } };
    const struct kinf_type *type;

    *f = (struct fixture){ .n_objects_before = kinf__object_count() };
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    f->server = test_server_start(replies, n_replies);
    set_up_client(f, test_server_port(f->server));
    must(kinf_type_intern("", "v1", "Pod", "pods", true, &type, NULL));
    must(kinf_indexer_new(NULL, 0, &f->indexer, NULL));
    must(kinf_deltafifo_new(&fifo_options, &f->fifo, NULL));
    must(kinf__prune_plan_new(NULL, 0, NULL, 0, &f->plan, NULL));
    f->options = (struct kinf__reflector_options){
        .client = f->client,
        .type = type,
        .plan = f->plan,
        .fifo = f->fifo,
        .known = f->indexer,
        .watch_timeout_ms = 1000,
        .backoff_base_ms = 10,
        .backoff_max_ms = 40,
        .callbacks = { on_phase, on_proof, on_quarantine, f },
    };
}
#define SET_UP(f, replies) set_up((f), (replies), KINF__ARRAY_LEN(replies))

static void start(struct fixture *f)
{
    must(kinf__reflector_new(&f->options, &f->reflector, NULL));
    must(kinf__reflector_start(f->reflector, NULL));
}

static struct kinf__reflector_counts counts_of(struct fixture *f)
{
    struct kinf__reflector_counts counts;

    kinf__reflector_counts(f->reflector, &counts);
    return counts;
}

/* Stops the reflector; returns how long that took. */
static int64_t stop(struct fixture *f)
{
    int64_t begun_ms = kinf__clock_now_ms();

    kinf_deltafifo_close(f->fifo);
    kinf__reflector_free(KINF__TAKE(f->reflector));
    return kinf__clock_now_ms() - begun_ms;
}

/* Stops everything. No object is left. */
static void tear_down(struct fixture *f)
{
    stop(f);
    test_server_stop(f->server);
    kinf_deltafifo_free(f->fifo);
    kinf_indexer_free(f->indexer);
    kinf__prune_plan_free(f->plan);
    kinf_client_free(f->client);
    unlink(f->kubeconfig);
    free(f->kubeconfig);
    kinf__buffer_release(&f->popped);
    kinf__buffer_release(&f->phases);
    kinf__buffer_release(&f->quarantined);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    assert_int_equal(kinf__object_count(), f->n_objects_before);
}

/* What was asked for so far, after the `n`-th request was answered. */
static void expect_targets(struct fixture *f, size_t n, const char *expected)
{
    char *targets;

    test_server_wait(f->server, n);
    targets = test_server_targets(f->server);
    assert_string_equal(targets, expected);
    free(targets);
}

/* --- the usual course --- */

static void it_lists_and_watches_from_the_lists_version(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("b", "4") "," POD("a", "3")) },
        { .body = EVENT("MODIFIED", POD("a", "12")) EVENT("ADDED", POD("c", "13"))
              EVENT("DELETED", POD("c", "14")) BOOKMARK("20"),
          .end = TEST_END_OPEN },
    };
    struct kinf__reflector_counts counts;
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    expect_deltas(&f, "R n/b@4 R n/a@3 U n/a@12 A n/c@13 D n/c@14 ");
    expect_targets(&f, 2, "/api/v1/pods\n" WATCH_FROM("10"));
    expect_phases(&f, "listing watching ");
    expect_proofs(&f, 1 + 1 + 4);
    counts = counts_of(&f);
    assert_int_equal(counts.n_bookmarks, 1);
    assert_int_equal(counts.n_lists, 1);
    assert_int_equal(counts.n_watches, 1);
    assert_int_equal(counts.n_events, 3);
    assert_int_equal(counts.n_errors, 0);
    assert_int_equal(counts.received_bytes, strlen(replies[0].body) + strlen(replies[1].body));
    tear_down(&f);
}

static void selectors_and_the_namespace_are_in_every_request(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", ",\"continue\":\"t/+\"", POD("a", "3")) },
        { .body = LIST("10", "", POD("b", "3")) },
        { .body = "", .end = TEST_END_OPEN },
    };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.name_space = "n";
    f.options.label_selector = "app in (x,y)";
    f.options.field_selector = "spec.nodeName=x";
    f.options.page_size = 1;
    start(&f);
    expect_deltas(&f, "R n/a@3 R n/b@3 ");
    expect_targets(&f, 3,
                   "/api/v1/namespaces/n/pods?labelSelector=app%20in%20%28x%2Cy%29&fieldSelector="
                   "spec.nodeName%3Dx&limit=1\n"
                   "/api/v1/namespaces/n/pods?labelSelector=app%20in%20%28x%2Cy%29&fieldSelector="
                   "spec.nodeName%3Dx&limit=1&continue=t%2F%2B\n"
                   "/api/v1/namespaces/n/pods?labelSelector=app%20in%20%28x%2Cy%29&fieldSelector="
                   "spec.nodeName%3Dx&watch=1&allowWatchBookmarks=true&resourceVersion=10&"
                   "timeoutSeconds=1\n");
    tear_down(&f);
}

static void a_clean_end_watches_on_from_the_last_version(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", "") },
        { .body = EVENT("ADDED", POD("a", "11")) },
        { .body = BOOKMARK("15") },
        { .body = EVENT("ADDED", POD("b", "16")), .end = TEST_END_OPEN },
    };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    expect_deltas(&f, "A n/a@11 A n/b@16 ");
    expect_targets(&f, 4, "/api/v1/pods\n" WATCH_FROM("10") WATCH_FROM("11") WATCH_FROM("15"));
    expect_phases(&f, "listing watching ");
    assert_int_equal(counts_of(&f).n_errors, 0);
    tear_down(&f);
}

static void a_short_watch_with_nothing_new_waits(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", "") },
        { .body = "" },
        { .body = "", .end = TEST_END_OPEN },
    };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    expect_targets(&f, 3, "/api/v1/pods\n" WATCH_FROM("10") WATCH_FROM("10"));
    expect_phases(&f, "listing watching waiting:SERVER watching ");
    tear_down(&f);
}

static void unchanged_objects_keep_their_stored_copy(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3") "," POD("b", "4")) },
        { .body = EVENT("ERROR", STATUS("410", "Expired")), .is_held = true },
        { .body = LIST("20", "", POD("a", "3") "," POD("b", "15")) },
        { .body = "", .end = TEST_END_OPEN },
    };
    const struct kinf_object *a, *again;
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    expect_deltas(&f, "R n/a@3 R n/b@4 ");
    must(kinf_indexer_get_by_key(f.indexer, "n/a", &a));
    test_server_let_go(f.server);
    expect_deltas(&f, "R n/a@3 R n/b@15 ");
    must(kinf_indexer_get_by_key(f.indexer, "n/a", &again));
    assert_ptr_equal(a, again);
    assert_int_equal(counts_of(&f).n_unchanged, 1);
    kinf_object_unref(a);
    kinf_object_unref(again);
    tear_down(&f);
}

/* --- errors --- */

static void an_expired_watch_relists_at_the_last_version(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3") "," POD("b", "4")) },
        { .body = EVENT("ADDED", POD("c", "11")) EVENT("ERROR", STATUS("410", "Expired")) },
        { .body = LIST("20", "", POD("b", "4")), .is_held = true },
        { .body = "", .end = TEST_END_OPEN },
    };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    expect_deltas(&f, "R n/a@3 R n/b@4 A n/c@11 ");
    test_server_let_go(f.server);
    expect_deltas(&f, "R n/b@4 D! n/a@3 D! n/c@11 ");
    expect_targets(
        &f, 4,
        "/api/v1/pods\n" WATCH_FROM("10") "/api/v1/pods?resourceVersion=11\n" WATCH_FROM("20"));
    expect_phases(&f, "listing watching waiting:EXPIRED listing watching ");
    assert_int_equal(counts_of(&f).n_errors, 1);
    tear_down(&f);
}

static void a_version_the_server_has_not_reached_is_left_out_at_once(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", "") },
        { .body = EVENT("ERROR", STATUS("410", "Gone")) },
        { .status = "504 Gateway Timeout",
          .body = "{\"kind\":\"Status\",\"message\":\"Timeout: Too large resource version: 10\","
                  "\"reason\":\"Timeout\",\"details\":{\"causes\":[{\"reason\":"
                  "\"ResourceVersionTooLarge\"}],\"retryAfterSeconds\":1},\"code\":504}" },
        { .body = LIST("8", "", "") },
        { .body = "", .end = TEST_END_OPEN },
    };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    expect_targets(&f, 5,
                   "/api/v1/pods\n" WATCH_FROM(
                       "10") "/api/v1/pods?resourceVersion=10\n/api/v1/pods\n" WATCH_FROM("8"));
    tear_down(&f);
}

static void too_many_requests_waits_as_long_as_the_server_says(void **state)
{
    static const struct test_reply replies[] = {
        { .status = "429 Too Many Requests",
          .headers = "Retry-After: 16\r\n",
          .body = "Too many requests, please try again later.\n" },
    };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    expect_phases(&f, "listing waiting:TOO_MANY_REQUESTS ");
    assert_in_range(f.wait_ms, 15900, 16010);
    tear_down(&f);
}

static void a_refused_watch_is_asked_for_again_without_a_list(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3")) },
        { .status = "503 Service Unavailable", .body = "service unavailable\n" },
        { .status = "403 Forbidden", .body = STATUS("403", "Forbidden") },
        { .status = "404 Not Found", .body = "404 page not found\n" },
        { .status = "401 Unauthorized", .body = STATUS("401", "Unauthorized") },
        { .body = EVENT("ADDED", POD("b", "11")), .end = TEST_END_CUT },
        { .body = EVENT("ADDED", POD("c", "12")), .end = TEST_END_OPEN },
    };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    expect_deltas(&f, "R n/a@3 A n/b@11 A n/c@12 ");
    expect_targets(&f, 7,
                   "/api/v1/pods\n" WATCH_FROM("10") WATCH_FROM("10") WATCH_FROM("10")
                       WATCH_FROM("10") WATCH_FROM("10") WATCH_FROM("11"));
    expect_phases(&f, "listing waiting:SERVER waiting:FORBIDDEN waiting:NOT_FOUND "
                      "waiting:UNAUTHORIZED watching waiting:NETWORK watching ");
    assert_int_equal(counts_of(&f).n_errors, 5);
    tear_down(&f);
}

static void a_list_cut_short_is_asked_for_in_pages(void **state)
{
    static const struct test_reply replies[] = {
        { .body = "{\"kind\":\"PodList\",\"items\":[" POD("a", "3") "," POD("b", "4") ",",
          .end = TEST_END_CUT },
        { .body = LIST("10", ",\"continue\":\"t\"", POD("a", "3")) },
        { .body = LIST("10", "", POD("b", "4")) },
        { .body = "", .end = TEST_END_OPEN },
    };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    expect_deltas(&f, "R n/a@3 R n/b@4 ");
    expect_targets(&f, 4,
                   "/api/v1/pods\n/api/v1/pods?limit=500\n"
                   "/api/v1/pods?limit=500&continue=t\n" WATCH_FROM("10"));
    assert_int_equal(counts_of(&f).n_lists, 2);
    tear_down(&f);
}

static void a_page_that_failed_is_asked_for_again_without_doubles(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", ",\"continue\":\"t\"", POD("a", "3")) },
        { .body = "{\"items\":[" POD("b", "4") ",", .end = TEST_END_CUT },
        { .body = LIST("10", "", POD("b", "4") "," POD("c", "5")) },
        { .body = "", .end = TEST_END_OPEN },
    };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.page_size = 2;
    start(&f);
    expect_deltas(&f, "R n/a@3 R n/b@4 R n/c@5 ");
    expect_targets(&f, 4,
                   "/api/v1/pods?limit=2\n/api/v1/pods?limit=2&continue=t\n"
                   "/api/v1/pods?limit=2&continue=t\n" WATCH_FROM("10"));
    assert_int_equal(counts_of(&f).n_lists, 1);
    tear_down(&f);
}

static void an_expired_page_leads_to_one_whole_list(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", ",\"continue\":\"t\"", POD("a", "3")) },
        { .status = "410 Gone", .body = STATUS("410", "Expired") },
        { .body = LIST("20", "", POD("b", "4")) },
        { .body = "", .end = TEST_END_OPEN },
    };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.page_size = 1;
    start(&f);
    expect_deltas(&f, "R n/b@4 ");
    expect_targets(
        &f, 4,
        "/api/v1/pods?limit=1\n/api/v1/pods?limit=1&continue=t\n/api/v1/pods\n" WATCH_FROM("20"));
    tear_down(&f);
}

static void a_page_that_names_itself_as_the_next_is_an_error(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", ",\"continue\":\"t\"", POD("a", "3")) },
        { .body = LIST("10", ",\"continue\":\"t\"", POD("a", "3")) },
    };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.page_size = 1;
    start(&f);
    expect_phases(&f, "listing waiting:PARSE ");
    tear_down(&f);
}

static void silence_is_answered_by_another_watch(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", "") },
        { .body = EVENT("ADDED", POD("a", "11")), .end = TEST_END_OPEN },
        { .body = EVENT("ADDED", POD("b", "12")), .end = TEST_END_OPEN },
        { .body = "", .end = TEST_END_OPEN },
    };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.silent_after_ms = 80;
    start(&f);
    expect_deltas(&f, "A n/a@11 A n/b@12 ");
    expect_targets(&f, 4, "/api/v1/pods\n" WATCH_FROM("10") WATCH_FROM("11") WATCH_FROM("12"));
    expect_phases(&f, "listing watching ");
    tear_down(&f);
}

static void a_watch_without_an_answer_waits(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", "") },
        { .end = TEST_NO_REPLY },
        { .body = "", .end = TEST_END_OPEN },
    };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.silent_after_ms = 80;
    start(&f);
    expect_phases(&f, "listing waiting:TIMEOUT watching ");
    tear_down(&f);
}

static void a_dead_server_is_tried_again(void **state)
{
    static const struct test_reply replies[] = { { .end = TEST_NO_REPLY } };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    kinf_client_free(f.client);
    unlink(f.kubeconfig);
    free(f.kubeconfig);
    set_up_client(&f, 1);
    f.options.client = f.client;
    start(&f);
    expect_phases(&f, "listing waiting:NETWORK listing waiting:NETWORK listing waiting:NETWORK ");
    assert_true(counts_of(&f).n_errors >= 3);
    tear_down(&f);
}

/* --- what cannot be decoded --- */

#define FILLER                                                                                     \
    "........................................"                                                     \
    "........................................"                                                     \
    "........................................"
#define BAD(name) "{\"metadata\":{\"namespace\":\"n\",\"name\":\"" name "\",\"uid\":7}}"

static void a_bad_item_is_listed_again_and_then_quarantined(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3") "," BAD("b") "," POD("c", "5")) },
        { .body = LIST("11", "", POD("a", "3") "," BAD("b") "," POD("c", "5")) },
        { .body = EVENT("MODIFIED", BAD("b")) EVENT("ADDED", POD("d", "13")),
          .end = TEST_END_OPEN },
    };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    expect_deltas(&f, "R n/a@3 R n/c@5 A n/d@13 ");
    expect_targets(&f, 3, "/api/v1/pods\n/api/v1/pods\n" WATCH_FROM("11"));
    expect_phases(&f, "listing waiting:PARSE listing watching ");
    assert_int_equal(counts_of(&f).n_quarantined, 1);
    stop(&f);
    assert_string_equal(kinf__buffer_cstr(&f.quarantined), "n/b:PARSE ");
    tear_down(&f);
}

static void a_quarantined_object_leaves_the_store_and_comes_back(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3") "," POD("b", "4")) },
        { .body = EVENT("MODIFIED", BAD("b")) EVENT("ADDED", POD("never", "12")), .is_held = true },
        { .body = LIST("20", "", POD("a", "3") "," BAD("b")) },
        { .body = EVENT("MODIFIED", POD("b", "21")), .end = TEST_END_OPEN },
    };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    expect_deltas(&f, "R n/a@3 R n/b@4 ");
    test_server_let_go(f.server);
    expect_deltas(&f, "R n/a@3 D! n/b@4 U n/b@21 ");
    expect_targets(
        &f, 4,
        "/api/v1/pods\n" WATCH_FROM("10") "/api/v1/pods?resourceVersion=10\n" WATCH_FROM("20"));
    expect_proofs(&f, 5);
    assert_int_equal(counts_of(&f).n_quarantined, 0);
    tear_down(&f);
}

static void an_object_that_fails_only_in_watches_asks_for_one_list(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3")) },
        { .body = EVENT("MODIFIED", BAD("a")), .is_held = true },
        { .body = LIST("20", "", POD("a", "3")) },
        { .body = EVENT("MODIFIED", BAD("a")) EVENT("ADDED", POD("b", "22")),
          .end = TEST_END_OPEN },
    };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    expect_deltas(&f, "R n/a@3 ");
    test_server_let_go(f.server);
    expect_deltas(&f, "R n/a@3 A n/b@22 ");
    assert_int_equal(counts_of(&f).n_lists, 2);
    assert_int_equal(counts_of(&f).n_quarantined, 1);
    tear_down(&f);
}

static void an_object_above_the_limit_is_quarantined(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "",
                       "{\"metadata\":{\"namespace\":\"n\",\"name\":\"big\"},\"x\":\"" FILLER
                       "\"}," POD("a", "3")) },
        { .body = LIST("11", "",
                       "{\"metadata\":{\"namespace\":\"n\",\"name\":\"big\"},\"x\":\"" FILLER
                       "\"}," POD("a", "3")) },
        { .body = "", .end = TEST_END_OPEN },
    };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.max_object_bytes = 150;
    start(&f);
    expect_deltas(&f, "R n/a@3 ");
    stop(&f);
    assert_string_equal(kinf__buffer_cstr(&f.quarantined), "n/big:LIMIT ");
    tear_down(&f);
}

/* --- stopping --- */

/* The sanitizers make everything slower, not the promise longer. */
static int64_t stop_limit_ms(void)
{
    const char *mode = getenv("KINF_TEST_MODE");

    return mode != NULL && (strcmp(mode, "asan") == 0 || strcmp(mode, "tsan") == 0) ? 1000 : 200;
}

static void stops_at_once(const struct test_reply *replies, size_t n_replies, size_t n_requests,
                          const char *phases)
{
    struct fixture f;

    set_up(&f, replies, n_replies);
    f.options.backoff_base_ms = 60000;
    f.options.backoff_max_ms = 60000;
    start(&f);
    test_server_wait(f.server, n_requests);
    expect_phases(&f, phases);
    assert_true(stop(&f) < stop_limit_ms());
    tear_down(&f);
}
#define STOPS_AT_ONCE(replies, phases)                                                             \
    stops_at_once((replies), KINF__ARRAY_LEN(replies), KINF__ARRAY_LEN(replies), (phases))

static void it_stops_at_once_without_an_answer(void **state)
{
    static const struct test_reply replies[] = { { .end = TEST_NO_REPLY } };

    (void)state;
    STOPS_AT_ONCE(replies, "listing ");
}

static void it_stops_at_once_in_a_list(void **state)
{
    static const struct test_reply replies[] = {
        { .body = "{\"items\":[" POD("a", "3"), .end = TEST_END_OPEN },
    };

    (void)state;
    STOPS_AT_ONCE(replies, "listing ");
}

static void it_stops_at_once_in_a_watch(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3")) },
        { .body = "{\"type\":\"ADDED\"", .end = TEST_END_OPEN },
    };

    (void)state;
    STOPS_AT_ONCE(replies, "listing watching ");
}

static void it_stops_at_once_in_a_wait(void **state)
{
    static const struct test_reply replies[] = {
        { .status = "500 Internal Server Error", .body = "boom" },
    };

    (void)state;
    STOPS_AT_ONCE(replies, "listing waiting:SERVER ");
}

static void it_stops_at_once_while_the_queue_is_full(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3")) },
        { .body = EVENT("ADDED", POD("b", "11")) EVENT("ADDED", POD("c", "12")),
          .end = TEST_END_OPEN },
    };
    struct kinf_deltafifo_options fifo_options = { .max_bytes = 1 };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    kinf_deltafifo_free(f.fifo);
    must(kinf_deltafifo_new(&fifo_options, &f.fifo, NULL));
    f.options.fifo = f.fifo;
    start(&f);
    test_server_wait(f.server, 2);
    expect_phases(&f, "listing watching ");
    assert_true(stop(&f) < stop_limit_ms());
    assert_int_equal(kinf_deltafifo_len(f.fifo), 1);
    tear_down(&f);
}

/* A listener that accepts nothing and whose backlog is full: a connect to it hangs. */
static void it_stops_at_once_while_it_connects(void **state)
{
    static const struct test_reply replies[] = { { .end = TEST_NO_REPLY } };
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), fillers[4];
    struct fixture f;

    (void)state;
    must(bind(listener, (struct sockaddr *)&address, sizeof address));
    must(listen(listener, 0));
    must(getsockname(listener, (struct sockaddr *)&address, &size));
    for (size_t i = 0; i < KINF__ARRAY_LEN(fillers); i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(fillers[i], (struct sockaddr *)&address, sizeof address);
    }
    SET_UP(&f, replies);
    kinf_client_free(f.client);
    unlink(f.kubeconfig);
    free(f.kubeconfig);
    set_up_client(&f, ntohs(address.sin_port));
    f.options.client = f.client;
    start(&f);
    expect_phases(&f, "listing ");
    assert_true(stop(&f) < stop_limit_ms());
    assert_int_equal(f.phases.len, strlen("listing "));
    tear_down(&f);
    for (size_t i = 0; i < KINF__ARRAY_LEN(fillers); i++)
        close(fillers[i]);
    close(listener);
}

static void an_interrupt_ends_the_thread_without_closing_the_queue(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3")) },
        { .body = "", .end = TEST_END_OPEN },
    };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    expect_deltas(&f, "R n/a@3 ");
    kinf__reflector_interrupt(f.reflector);
    kinf__reflector_free(KINF__TAKE(f.reflector));
    must(kinf_deltafifo_resync(f.fifo, NULL));
    expect_deltas(&f, "S n/a@3 ");
    tear_down(&f);
}

static void one_that_never_started_is_freed(void **state)
{
    static const struct test_reply replies[] = { { .end = TEST_NO_REPLY } };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    must(kinf__reflector_new(&f.options, &f.reflector, NULL));
    tear_down(&f);
    kinf__reflector_free(NULL);
}

static void no_memory_for_a_reflector_is_an_error(void **state)
{
    static const struct test_reply replies[] = { { .end = TEST_NO_REPLY } };
    struct fixture f;

    (void)state;
    SET_UP(&f, replies);
    for (size_t n = 1;; n++) {
        bool has_failed;
        int r;

        test_fail_allocation(n);
        r = kinf__reflector_new(&f.options, &f.reflector, NULL);
        has_failed = test_allocation_failed();
        test_fail_allocation(0);
        assert_int_equal(r, has_failed ? KINF_ERR_NO_MEMORY : 0);
        if (!has_failed)
            break;
    }
    tear_down(&f);
}

static void every_phase_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(kinf__reflector_phase_to_string(KINF__REFLECTOR_WAITING), "waiting");
    assert_string_equal(kinf__reflector_phase_to_string((enum kinf__reflector_phase)99), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_lists_and_watches_from_the_lists_version),
        cmocka_unit_test(selectors_and_the_namespace_are_in_every_request),
        cmocka_unit_test(a_clean_end_watches_on_from_the_last_version),
        cmocka_unit_test(a_short_watch_with_nothing_new_waits),
        cmocka_unit_test(unchanged_objects_keep_their_stored_copy),
        cmocka_unit_test(an_expired_watch_relists_at_the_last_version),
        cmocka_unit_test(a_version_the_server_has_not_reached_is_left_out_at_once),
        cmocka_unit_test(too_many_requests_waits_as_long_as_the_server_says),
        cmocka_unit_test(a_refused_watch_is_asked_for_again_without_a_list),
        cmocka_unit_test(a_list_cut_short_is_asked_for_in_pages),
        cmocka_unit_test(a_page_that_failed_is_asked_for_again_without_doubles),
        cmocka_unit_test(an_expired_page_leads_to_one_whole_list),
        cmocka_unit_test(a_page_that_names_itself_as_the_next_is_an_error),
        cmocka_unit_test(silence_is_answered_by_another_watch),
        cmocka_unit_test(a_watch_without_an_answer_waits),
        cmocka_unit_test(a_dead_server_is_tried_again),
        cmocka_unit_test(a_bad_item_is_listed_again_and_then_quarantined),
        cmocka_unit_test(a_quarantined_object_leaves_the_store_and_comes_back),
        cmocka_unit_test(an_object_that_fails_only_in_watches_asks_for_one_list),
        cmocka_unit_test(an_object_above_the_limit_is_quarantined),
        cmocka_unit_test(it_stops_at_once_without_an_answer),
        cmocka_unit_test(it_stops_at_once_in_a_list),
        cmocka_unit_test(it_stops_at_once_in_a_watch),
        cmocka_unit_test(it_stops_at_once_in_a_wait),
        cmocka_unit_test(it_stops_at_once_while_the_queue_is_full),
        cmocka_unit_test(it_stops_at_once_while_it_connects),
        cmocka_unit_test(an_interrupt_ends_the_thread_without_closing_the_queue),
        cmocka_unit_test(one_that_never_started_is_freed),
        cmocka_unit_test(no_memory_for_a_reflector_is_an_error),
        cmocka_unit_test(every_phase_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
