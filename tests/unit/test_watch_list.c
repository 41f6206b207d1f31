/*
 * Watch lists against a scripted server: what reaches the queue and when, the ways back to a list,
 * and recorded streams, whole and cut.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "unit/reflector_fixture.h"
#include "unit/transcript.h"

#define STREAM_AT(rv)                                                                              \
    "/api/v1/pods?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&"                        \
    "resourceVersionMatch=NotOlderThan" rv "&timeoutSeconds=1\n"
#define STREAM         STREAM_AT("")
#define STREAM_FROM(v) STREAM_AT("&resourceVersion=" v)
#define MARK_SAYING(rv, ends)                                                                      \
    EVENT("BOOKMARK", "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":" \
                      "\"" rv "\",\"annotations\":{\"k8s.io/initial-events-end\":\"" ends "\"}}}")
#define MARK(rv)  MARK_SAYING(rv, "true")
#define BAD(name) "{\"metadata\":{\"namespace\":\"n\",\"name\":\"" name "\",\"uid\":7}}"

static void must(int r)
{
    assert_int_equal(r, 0);
}

static void start_with(struct reflector_fixture *f, enum kinf_initial initial)
{
    f->options.initial = initial;
    reflector_start(f);
}

static void start(struct reflector_fixture *f)
{
    start_with(f, KINF_INITIAL_WATCHLIST);
}

/* --- the usual course --- */

static void the_state_and_what_follows_come_in_one_stream(void **state)
{
    static const struct test_reply replies[] = {
        { .body = EVENT("ADDED", POD("a", "4")) EVENT("ADDED", POD("b", "3")) MARK("10")
              EVENT("MODIFIED", POD("a", "12")) EVENT("DELETED", POD("b", "13")) BOOKMARK("20"),
          .end = TEST_END_OPEN },
    };
    struct kinf__reflector_counts counts;
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    reflector_expect_contacts(&f, 1 + 1 + 3);
    reflector_expect_deltas(&f, "R n/a@4 U n/a@12 R n/b@3 D n/b@13 ");
    reflector_expect_targets(&f, 1, STREAM);
    reflector_expect_phases(&f, "listing watching ");
    counts = reflector_counts(&f);
    assert_int_equal(counts.n_lists, 1);
    assert_int_equal(counts.n_watches, 1);
    assert_int_equal(counts.n_events, 2);
    assert_int_equal(counts.n_bookmarks, 2);
    assert_int_equal(counts.n_errors, 0);
    assert_int_equal(counts.list_since_ms, 0);
    reflector_tear_down(&f);
}

static void it_says_how_far_it_is_until_the_bookmark(void **state)
{
    static const struct test_reply replies[] = {
        { .body = EVENT("ADDED", POD("a", "4")) EVENT("ADDED", POD("b", "3")),
          .end = TEST_END_OPEN },
    };
    struct kinf__reflector_counts counts;
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    while ((counts = reflector_counts(&f)).n_list_objects != 2)
        sched_yield();
    assert_int_equal(counts.list_bytes, strlen(replies[0].body));
    assert_true(counts.list_since_ms > 0);
    reflector_tear_down(&f);
}

static void nothing_is_told_before_the_bookmark(void **state)
{
    static const struct test_reply replies[] = {
        { .body = EVENT("ADDED", POD("a", "4")) BOOKMARK("8") MARK_SAYING("9", "false"),
          .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    test_server_wait(f.server, 1);
    while (reflector_counts(&f).n_bookmarks < 2)
        sched_yield();
    assert_int_equal(kinf_deltafifo_len(f.fifo), 0);
    assert_false(kinf_deltafifo_has_synced(f.fifo));
    assert_int_equal(reflector_counts(&f).n_watches, 0);
    reflector_expect_phases(&f, "listing ");
    reflector_stop(&f);
    assert_int_equal(f.n_contacts, 0);
    reflector_tear_down(&f);
}

static void an_empty_state_is_a_state(void **state)
{
    static const struct test_reply replies[] = { { .body = MARK("10"), .end = TEST_END_OPEN } };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    reflector_expect_phases(&f, "listing watching ");
    assert_true(kinf_deltafifo_has_synced(f.fifo));
    reflector_tear_down(&f);
}

static void changes_before_the_bookmark_are_applied(void **state)
{
    static const struct test_reply replies[] = {
        { .body = EVENT("ADDED", POD("a", "1")) EVENT("ADDED", POD("b", "2"))
              EVENT("ADDED", POD("c", "3")) EVENT("MODIFIED", POD("a", "11"))
                  EVENT("DELETED", POD("b", "12")) EVENT("ADDED", POD("aa", "13")) MARK("14"),
          .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    reflector_expect_deltas(&f, "R n/a@11 R n/aa@13 R n/c@3 ");
    reflector_tear_down(&f);
}

static void the_version_comes_from_the_bookmark_alone(void **state)
{
    static const struct test_reply replies[] = {
        { .body = EVENT("ADDED", POD("a", "100")) BOOKMARK("200") },
        { .body = EVENT("ADDED", POD("a", "100")) EVENT("ADDED", POD("b", "50")),
          .end = TEST_END_CUT },
        { .body = EVENT("ADDED", POD("a", "100")) EVENT("ADDED", POD("b", "50")) MARK("60") },
        { .body = EVENT("MODIFIED", POD("b", "61")) },
        { .end = TEST_NO_REPLY },
    };
    struct reflector_fixture f;
    char rv[64];

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    reflector_expect_targets(&f, 5, STREAM STREAM STREAM WATCH_FROM("60") WATCH_FROM("61"));
    reflector_expect_deltas(&f, "R n/a@100 R n/b@50 U n/b@61 ");
    must(kinf_deltafifo_resource_version(f.fifo, rv, sizeof rv));
    assert_string_equal(rv, "61");
    reflector_tear_down(&f);
}

static void another_round_keeps_unchanged_objects_and_tells_what_went(void **state)
{
    static const struct test_reply replies[] = {
        { .body = EVENT("ADDED", POD("a", "3")) EVENT("ADDED", POD("b", "4"))
              EVENT("ADDED", POD("c", "5")) MARK("10") },
        { .body = EVENT("ERROR", STATUS("410", "Expired")), .is_held = true },
        { .body = EVENT("ADDED", POD("a", "3")) EVENT("ADDED", POD("b", "15")) MARK("20"),
          .end = TEST_END_OPEN },
    };
    const struct kinf_object *a, *again;
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    reflector_expect_deltas(&f, "R n/a@3 R n/b@4 R n/c@5 ");
    must(kinf_indexer_get_by_key(f.indexer, "n/a", &a));
    test_server_let_go(f.server);
    reflector_expect_deltas(&f, "R n/a@3 R n/b@15 D! n/c@5 ");
    must(kinf_indexer_get_by_key(f.indexer, "n/a", &again));
    assert_ptr_equal(a, again);
    reflector_expect_targets(&f, 3, STREAM WATCH_FROM("10") STREAM_FROM("10"));
    kinf_object_unref(a);
    kinf_object_unref(again);
    reflector_tear_down(&f);
}

/* --- refusals --- */

static void falls_back_to_a_list(const struct test_reply *refusal, const char *phases)
{
    const struct test_reply replies[] = {
        *refusal,
        { .body = LIST("10", "", POD("a", "3")) },
        { .body = EVENT("ADDED", POD("b", "11")), .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    SET_UP(&f, replies);
    start(&f);
    reflector_expect_targets(&f, 3, STREAM "/api/v1/pods\n" WATCH_FROM("10"));
    reflector_expect_deltas(&f, "R n/a@3 A n/b@11 ");
    reflector_expect_phases(&f, phases);
    assert_int_equal(reflector_counts(&f).n_lists, 2);
    reflector_tear_down(&f);
}

static void each_refusal_leads_to_a_list_at_once(void **state)
{
    static const struct test_reply refusals[] = {
        { .status = "422 Unprocessable Entity", .body = STATUS("422", "Invalid") },
        { .status = "500 Internal Server Error", .body = STATUS("500", "InternalError") },
        { .status = "400 Bad Request", .body = STATUS("400", "BadRequest") },
        { .status = "405 Method Not Allowed", .body = STATUS("405", "MethodNotAllowed") },
        { .body = EVENT("ERROR", STATUS("500", "InternalError")) },
        { .body = EVENT("ADDED", POD("never", "1")) EVENT("ERROR", "7") },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(refusals); i++)
        falls_back_to_a_list(&refusals[i], "listing watching ");
}

static void what_is_not_offered_is_not_asked_for_again_soon(void **state)
{
    static const struct test_reply replies[] = {
        { .status = "422 Unprocessable Entity", .body = STATUS("422", "Invalid") },
        { .body = LIST("10", "", POD("a", "3")) },
        { .body = EVENT("ERROR", STATUS("410", "Expired")) },
        { .body = LIST("20", "", POD("a", "3")) },
        { .end = TEST_NO_REPLY },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    reflector_expect_targets(&f, 5,
                             STREAM "/api/v1/pods\n" WATCH_FROM(
                                 "10") "/api/v1/pods?resourceVersion=10\n" WATCH_FROM("20"));
    reflector_tear_down(&f);
}

static void too_many_requests_waits_and_streams(void **state)
{
    static const struct test_reply replies[] = {
        { .status = "429 Too Many Requests", .body = STATUS("429", "TooManyRequests") },
        { .body = EVENT("ERROR", STATUS("429", "TooManyRequests")) },
        { .body = EVENT("ADDED", POD("a", "3")) MARK("10"), .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    reflector_expect_deltas(&f, "R n/a@3 ");
    reflector_expect_targets(&f, 3, STREAM STREAM STREAM);
    reflector_expect_phases(&f, "listing waiting:TOO_MANY_REQUESTS listing "
                                "waiting:TOO_MANY_REQUESTS listing watching ");
    reflector_tear_down(&f);
}

static void a_stream_that_ends_early_is_asked_for_again(void **state)
{
    static const struct test_reply replies[] = {
        { .body = EVENT("ADDED", POD("gone", "1")) EVENT("ADDED", POD("z", "2")) },
        { .body = EVENT("ADDED", POD("a", "3")) MARK("10") },
        { .end = TEST_NO_REPLY },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    reflector_expect_targets(&f, 3, STREAM STREAM WATCH_FROM("10"));
    reflector_expect_deltas(&f, "R n/a@3 ");
    assert_int_equal(kinf_deltafifo_len(f.fifo), 0);
    reflector_expect_phases(&f, "listing waiting:SERVER listing watching ");
    reflector_tear_down(&f);
}

static void an_expired_watch_streams_again_and_an_expired_stream_the_newest(void **state)
{
    static const struct test_reply replies[] = {
        { .body = EVENT("ADDED", POD("a", "3")) MARK("10") },
        { .body = EVENT("ERROR", STATUS("410", "Gone")) },
        { .body = EVENT("ERROR", "{\"kind\":\"Status\",\"message\":\"Timeout: Too large resource "
                                 "version: 10\",\"reason\":\"Timeout\",\"code\":504}") },
        { .body = EVENT("ADDED", POD("b", "2")) MARK("5") },
        { .end = TEST_NO_REPLY },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    reflector_expect_targets(&f, 5,
                             STREAM WATCH_FROM("10") STREAM_FROM("10") STREAM WATCH_FROM("5"));
    reflector_expect_phases(&f, "listing watching waiting:EXPIRED listing watching ");
    reflector_tear_down(&f);
}

static void bad_initial_events_are_streamed_again_once_and_then_quarantined(void **state)
{
    static const struct test_reply replies[] = {
        { .body = EVENT("ADDED", BAD("a")) EVENT("ADDED", BAD("b")) EVENT("ADDED", POD("c", "5"))
              MARK("10") },
        { .body = EVENT("ADDED", BAD("a")) EVENT("ADDED", BAD("b")) EVENT("ADDED", POD("c", "5"))
              MARK("11") EVENT("MODIFIED", BAD("b")) EVENT("ADDED", POD("d", "13")),
          .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    start(&f);
    reflector_expect_deltas(&f, "R n/c@5 A n/d@13 ");
    reflector_expect_targets(&f, 2, STREAM STREAM);
    reflector_expect_phases(&f, "listing waiting:PARSE listing watching ");
    assert_int_equal(reflector_counts(&f).n_quarantined, 2);
    reflector_stop(&f);
    assert_string_equal(kinf__buffer_cstr(&f.quarantined), "n/a:PARSE n/b:PARSE ");
    reflector_tear_down(&f);
}

/* --- auto --- */

static void a_small_state_is_one_request(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3")) },
        { .end = TEST_NO_REPLY },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    start_with(&f, KINF_INITIAL_AUTO);
    reflector_expect_targets(&f, 2, "/api/v1/pods?limit=100\n" WATCH_FROM("10"));
    reflector_expect_deltas(&f, "R n/a@3 ");
    reflector_tear_down(&f);
}

static void more_than_a_page_is_one_list(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", ",\"continue\":\"t\",\"remainingItemCount\":1000", POD("a", "3")) },
        { .body = LIST("11", "", POD("a", "3") "," POD("b", "4")) },
        { .end = TEST_NO_REPLY },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    start_with(&f, KINF_INITIAL_AUTO);
    reflector_expect_targets(&f, 3, "/api/v1/pods?limit=100\n/api/v1/pods\n" WATCH_FROM("11"));
    reflector_expect_deltas(&f, "R n/a@3 R n/b@4 ");
    reflector_tear_down(&f);
}

static void a_large_state_is_streamed(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", ",\"continue\":\"t\",\"remainingItemCount\":2000000", POD("a", "3")) },
        { .body = EVENT("ADDED", POD("a", "3")) EVENT("ADDED", POD("b", "4")) MARK("11") },
        { .end = TEST_NO_REPLY },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    start_with(&f, KINF_INITIAL_AUTO);
    reflector_expect_targets(&f, 3, "/api/v1/pods?limit=100\n" STREAM WATCH_FROM("11"));
    reflector_expect_deltas(&f, "R n/a@3 R n/b@4 ");
    reflector_tear_down(&f);
}

static void a_selection_is_listed_and_streamed_if_that_was_cut_short(void **state)
{
#define SELECTED "/api/v1/pods?fieldSelector=spec.nodeName%3Dx"
    static const struct test_reply replies[] = {
        { .body = "{\"kind\":\"PodList\",\"items\":[" POD("a", "3") ",", .end = TEST_END_CUT },
        { .body = EVENT("ADDED", POD("a", "3")) MARK("11") },
        { .end = TEST_NO_REPLY },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.field_selector = "spec.nodeName=x";
    start_with(&f, KINF_INITIAL_AUTO);
    reflector_expect_targets(
        &f, 3,
        SELECTED "\n" SELECTED "&watch=1&allowWatchBookmarks=true&sendInitialEvents=true&"
                 "resourceVersionMatch=NotOlderThan&timeoutSeconds=1\n" SELECTED
                 "&watch=1&allowWatchBookmarks=true&resourceVersion=11&timeoutSeconds=1\n");
    reflector_expect_deltas(&f, "R n/a@3 ");
    reflector_tear_down(&f);
}

/* --- recorded streams --- */

/* What a stream adds up to, read naively from its lines: "key@rv " of each object. */
struct twin {
    struct {
        char key[64];
        char rv[24];
    } objects[128];
    size_t n_objects;
};

/* Copies what follows `before` in the line up to the next quote; false if it is not there. */
static bool copy_behind(const char *line, const char *before, char *buf, size_t size)
{
    const char *at = strstr(line, before);

    if (at == NULL)
        return false;
    at += strlen(before);
    snprintf(buf, size, "%.*s", (int)strcspn(at, "\""), at);
    return true;
}

static void twin_apply(struct twin *twin, const char *line, const char *rv)
{
    char name[32], name_space[32], key[65];
    size_t i = 0;

    assert_true(copy_behind(line, "\"name\":\"", name, sizeof name));
    assert_true(copy_behind(line, "\"namespace\":\"", name_space, sizeof name_space));
    snprintf(key, sizeof key, "%s/%s", name_space, name);
    while (i < twin->n_objects && strcmp(twin->objects[i].key, key) != 0)
        i++;
    if (strstr(line, "\"DELETED\"") != NULL) {
        if (i < twin->n_objects)
            twin->objects[i] = twin->objects[--twin->n_objects];
        return;
    }
    assert_true(i < KINF__ARRAY_LEN(twin->objects));
    if (i == twin->n_objects)
        twin->n_objects++;
    snprintf(twin->objects[i].key, sizeof twin->objects[i].key, "%s", key);
    snprintf(twin->objects[i].rv, sizeof twin->objects[i].rv, "%s", rv);
}

/* The state as of `rv`, or as of the end if it is NULL. Writes the last version; "" if the stream
 * has no mark. */
static struct twin twin_of(const char *body, const char *rv, char *ret_rv, size_t size)
{
    struct twin twin = { .n_objects = 0 };
    char *copy = strdup(body), *rest = copy, *line, line_rv[24];
    bool is_marked = false;

    ret_rv[0] = '\0';
    while ((line = strsep(&rest, "\n")) != NULL && (rv == NULL || strcmp(ret_rv, rv) != 0)) {
        if (!copy_behind(line, "\"resourceVersion\":\"", line_rv, sizeof line_rv))
            continue;
        if (strstr(line, "\"BOOKMARK\"") == NULL)
            twin_apply(&twin, line, line_rv);
        is_marked = is_marked || strstr(line, "initial-events-end") != NULL;
        if (is_marked)
            snprintf(ret_rv, size, "%s", line_rv);
    }
    free(copy);
    return twin;
}

static int write_down(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx)
{
    struct reflector_fixture *f = ctx;
    const struct kinf_delta *last = &deltas->items[deltas->n_items - 1];

    (void)in_initial_list;
    if (last->type == KINF_DELTA_DELETED)
        must(kinf_indexer_delete(f->indexer, deltas->key, NULL, NULL, NULL));
    else
        must(kinf_indexer_add(f->indexer, last->object, NULL, NULL));
    return 0;
}

/* Processes all that is queued. */
static void drain(struct reflector_fixture *f)
{
    while (kinf_deltafifo_len(f->fifo) != 0)
        must(kinf_deltafifo_pop(f->fifo, write_down, f, 1000));
}

static void expect_store(struct reflector_fixture *f, const struct twin *twin)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(f->indexer);

    assert_int_equal(kinf_snapshot_count(snapshot), twin->n_objects);
    for (size_t i = 0; i < twin->n_objects; i++) {
        const struct kinf_object *object = kinf_snapshot_get(snapshot, twin->objects[i].key);

        assert_non_null(object);
        assert_string_equal(kinf_object_resource_version(object), twin->objects[i].rv);
    }
}

struct recorded {
    const char *name;
    const char *group, *kind, *resource;
};

/* Plays the first `len` bytes of the response, and refuses to verify it or to stream again. What the
 * reflector then asks for shows how far it came: as far it must have told all, and before the mark nothing. Returns what that was: the
 * version, "" before the mark. */
static void play(const struct recorded *recorded, const char *raw, size_t len, const char *body,
                 char *ret_rv, size_t size)
{
    const struct test_reply replies[] = { { .raw = raw, .raw_len = len, .end = TEST_END_CUT },
                                          { .status = "403 Forbidden" },
                                          { .end = TEST_NO_REPLY } };
    struct reflector_fixture f;
    char *targets, end_rv[24];
    struct twin twin;

    SET_UP(&f, replies);
    must(kinf_type_intern(recorded->group, "v1", recorded->kind, recorded->resource, true,
                          &f.options.type, NULL));
    f.options.backoff_base_ms = 1;
    start(&f);
    test_server_wait(f.server, 3);
    targets = test_server_targets(f.server);
    ret_rv[0] = '\0';
    copy_behind(strchr(strchr(targets, '\n') + 1, '\n'), "&resourceVersion=", ret_rv, size);
    ret_rv[strcspn(ret_rv, "&")] = '\0';
    free(targets);
    twin = twin_of(body, ret_rv, end_rv, sizeof end_rv);
    if (ret_rv[0] == '\0') {
        twin.n_objects = 0;
        assert_int_equal(kinf_deltafifo_len(f.fifo), 0);
        assert_false(kinf_deltafifo_has_synced(f.fifo));
    }
    drain(&f);
    expect_store(&f, &twin);
    reflector_tear_down(&f);
}

static const struct recorded streams[] = {
    { "03-watchlist-identity", "", "ConfigMap", "configmaps" },
    { "03-watchlist-no-accept-encoding", "", "ConfigMap", "configmaps" },
    { "03-watchlist-gzip", "", "ConfigMap", "configmaps" },
    { "03-watchlist-gzip-large", "", "ConfigMap", "configmaps" },
    { "03-watchlist-empty", "", "ConfigMap", "configmaps" },
    { "03-watchlist-empty-gzip", "", "ConfigMap", "configmaps" },
    { "03-watchlist-cr", "example.com", "Widget", "widgets" },
    { "03-watchlist-rv0", "", "ConfigMap", "configmaps" },
    { "03-watchlist-rvN", "", "ConfigMap", "configmaps" },
    { "03-watchlist-label-selector", "", "ConfigMap", "configmaps" },
    { "03-watchlist-field-selector", "", "ConfigMap", "configmaps" },
    { "03-watchlist-pods-nodename", "", "Pod", "pods" },
    { "03-watchlist-events-no-cache", "", "Event", "events" },
    { "04-promotion-rvunset-bookmarks", "", "ConfigMap", "configmaps" },
    { "04-promotion-rv0-bookmarks", "", "ConfigMap", "configmaps" },
    { "04-promotion-rv0-bookmarks-gzip", "", "ConfigMap", "configmaps" },
    { "18-etcd-down-watchlist-rv0", "", "ConfigMap", "configmaps" },
    { "18-etcd-paused-watchlist-rv0", "", "ConfigMap", "configmaps" },
    { "08-watchlist-when-watch-cache-restarts", "", "ConfigMap", "configmaps" },
    /* without the mark */
    { "03-watchlist-no-bookmarks", "", "ConfigMap", "configmaps" },
    { "03-sendinitialevents-false", "", "ConfigMap", "configmaps" },
    { "03-sendinitialevents-false-rv-unset", "", "ConfigMap", "configmaps" },
    { "04-promotion-rvunset", "", "ConfigMap", "configmaps" },
    { "04-promotion-rv0", "", "ConfigMap", "configmaps" },
    { "04-promotion-rv0-gzip", "", "ConfigMap", "configmaps" },
    { "07-gate-off-promotion-rvunset-bookmarks", "", "ConfigMap", "configmaps" },
    { "07-gate-off-promotion-rv0-bookmarks", "", "ConfigMap", "configmaps" },
    { "08-watchlist-cut-before-end-bookmark", "", "ConfigMap", "configmaps" },
};
#define N_MARKED 19

static char *read_raw(const char *name, size_t *ret_len)
{
    char path[128];

    snprintf(path, sizeof path, "transcripts/%s.http", name);
    return test_read_data(path, ret_len);
}

static void recorded_streams_come_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(streams); i++) {
        struct test_transcript transcript = test_transcript_read(streams[i].name);
        char rv[24], end_rv[24];
        size_t len;
        char *raw = read_raw(streams[i].name, &len);

        printf("  %s\n", streams[i].name);
        twin_of(transcript.body, NULL, end_rv, sizeof end_rv);
        assert_int_equal(end_rv[0] != '\0', i < N_MARKED);
        play(&streams[i], raw, len, transcript.body, rv, sizeof rv);
        assert_string_equal(rv, end_rv);
        free(raw);
        test_transcript_release(&transcript);
    }
}

static void recorded_streams_may_be_cut_anywhere(void **state)
{
    struct test_random random = test_random_init(__func__);

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(streams); i++) {
        struct test_transcript transcript = test_transcript_read(streams[i].name);
        size_t len;
        char *raw = read_raw(streams[i].name, &len);

        for (size_t n = 0; n < test_rounds(24); n++) {
            char rv[24];

            play(&streams[i], raw, test_random_below(&random, len), transcript.body, rv, sizeof rv);
        }
        free(raw);
        test_transcript_release(&transcript);
    }
}

static void recorded_refusals_lead_where_they_should(void **state)
{
    static const struct {
        const char *name;
        const char *phases;
        const char *target; /* of the next request; NULL: after a wait */
    } rows[] = {
        { "06-watchlist-too-large", "listing waiting:RV_TOO_LARGE ", NULL },
        { "06-watchlist-too-large-gzip", "listing waiting:RV_TOO_LARGE ", NULL },
        { "06-watchlist-events-too-large", "listing waiting:RV_TOO_LARGE ", NULL },
        { "07-watchlist-gate-off", "listing ", "/api/v1/pods\n" },
        { "07-watchlist-gate-off-protobuf-accept", "listing ", "/api/v1/pods\n" },
        { "07-match-without-sendinitialevents", "listing ", "/api/v1/pods\n" },
        { "07-bad-rv-watchlist", "listing ", "/api/v1/pods\n" },
        { "08-429-apf-reject-watchlist", "listing waiting:TOO_MANY_REQUESTS ", NULL },
        { "08-429-apf-watchlist-queue-timeout", "listing waiting:TOO_MANY_REQUESTS ", NULL },
        { "08-429-initializing-watchlist", "listing waiting:TOO_MANY_REQUESTS ", NULL },
        { "18-etcd-down-watchlist", "listing ", "/api/v1/pods\n" },
        { "18-etcd-paused-watchlist", "listing ", "/api/v1/pods\n" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        size_t len;
        char *raw = read_raw(rows[i].name, &len);
        const struct test_reply replies[] = { { .raw = raw, .raw_len = len },
                                              { .end = TEST_NO_REPLY } };
        struct reflector_fixture f;

        printf("  %s\n", rows[i].name);
        SET_UP(&f, replies);
        start(&f);
        reflector_expect_phases(&f, rows[i].phases);
        if (rows[i].target != NULL) {
            char expected[512];

            snprintf(expected, sizeof expected, "%s%s", STREAM, rows[i].target);
            reflector_expect_targets(&f, 2, expected);
        }
        reflector_tear_down(&f);
        free(raw);
    }
}

/* --- stopping --- */

static void it_stops_at_once_without_an_answer(void **state)
{
    static const struct test_reply replies[] = { { .end = TEST_NO_REPLY } };

    (void)state;
    STOPS_AT_ONCE(KINF_INITIAL_WATCHLIST, replies, "listing ");
}

static void it_stops_at_once_among_the_initial_events(void **state)
{
    static const struct test_reply replies[] = {
        { .body = EVENT("ADDED", POD("a", "3")) "{\"type\":\"ADDED\"", .end = TEST_END_OPEN },
    };

    (void)state;
    STOPS_AT_ONCE(KINF_INITIAL_WATCHLIST, replies, "listing ");
}

static void it_stops_at_once_behind_the_bookmark(void **state)
{
    static const struct test_reply replies[] = {
        { .body = EVENT("ADDED", POD("a", "3")) MARK("10"), .end = TEST_END_OPEN },
    };

    (void)state;
    STOPS_AT_ONCE(KINF_INITIAL_WATCHLIST, replies, "listing watching ");
}

/* G10 */
static void a_stop_at_the_bookmark_sorts_and_queues_nothing(void **state)
{
    static const struct test_reply replies[] = {
        { .body = EVENT("ADDED", POD("b", "3")) EVENT("ADDED", POD("a", "4")) MARK("10"),
          .end = TEST_END_OPEN },
    };
    struct kinf__stop stop = { false };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    kinf__stop_set(&stop);
    f.options.stop = &stop;
    start(&f);
    while (reflector_counts(&f).received_bytes < strlen(replies[0].body))
        sched_yield();
    reflector_stop(&f);
    assert_int_equal(kinf_deltafifo_len(f.fifo), 0);
    assert_int_equal(f.n_contacts, 0);
    reflector_tear_down(&f);
}

static void it_stops_at_once_in_a_wait(void **state)
{
    static const struct test_reply replies[] = {
        { .status = "429 Too Many Requests", .body = STATUS("429", "TooManyRequests") },
    };

    (void)state;
    STOPS_AT_ONCE(KINF_INITIAL_WATCHLIST, replies, "listing waiting:TOO_MANY_REQUESTS ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_state_and_what_follows_come_in_one_stream),
        cmocka_unit_test(it_says_how_far_it_is_until_the_bookmark),
        cmocka_unit_test(nothing_is_told_before_the_bookmark),
        cmocka_unit_test(an_empty_state_is_a_state),
        cmocka_unit_test(changes_before_the_bookmark_are_applied),
        cmocka_unit_test(the_version_comes_from_the_bookmark_alone),
        cmocka_unit_test(another_round_keeps_unchanged_objects_and_tells_what_went),
        cmocka_unit_test(each_refusal_leads_to_a_list_at_once),
        cmocka_unit_test(what_is_not_offered_is_not_asked_for_again_soon),
        cmocka_unit_test(too_many_requests_waits_and_streams),
        cmocka_unit_test(a_stream_that_ends_early_is_asked_for_again),
        cmocka_unit_test(an_expired_watch_streams_again_and_an_expired_stream_the_newest),
        cmocka_unit_test(bad_initial_events_are_streamed_again_once_and_then_quarantined),
        cmocka_unit_test(a_small_state_is_one_request),
        cmocka_unit_test(more_than_a_page_is_one_list),
        cmocka_unit_test(a_large_state_is_streamed),
        cmocka_unit_test(a_selection_is_listed_and_streamed_if_that_was_cut_short),
        cmocka_unit_test(recorded_streams_come_whole),
        cmocka_unit_test(recorded_streams_may_be_cut_anywhere),
        cmocka_unit_test(recorded_refusals_lead_where_they_should),
        cmocka_unit_test(it_stops_at_once_without_an_answer),
        cmocka_unit_test(it_stops_at_once_among_the_initial_events),
        cmocka_unit_test(it_stops_at_once_behind_the_bookmark),
        cmocka_unit_test(a_stop_at_the_bookmark_sorts_and_queues_nothing),
        cmocka_unit_test(it_stops_at_once_in_a_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
