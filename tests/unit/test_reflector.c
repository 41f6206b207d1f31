/*
 * The reflector against a scripted server: what it asks for, what reaches the queue, and that it
 * stops at once wherever it is.
 */
#include "reflector/reflector_priv.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "unit/allocation.h"
#include "unit/reflector_fixture.h"

static void must(int r)
{
    assert_int_equal(r, 0);
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
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_deltas(&f, "R n/b@4 R n/a@3 U n/a@12 A n/c@13 D n/c@14 ");
    reflector_expect_targets(&f, 2, "/api/v1/pods\n" WATCH_FROM("10"));
    reflector_expect_phases(&f, "listing watching ");
    reflector_expect_contacts(&f, 1 + 4);
    counts = reflector_counts(&f);
    assert_int_equal(counts.n_bookmarks, 1);
    assert_int_equal(counts.n_lists, 1);
    assert_int_equal(counts.n_watches, 1);
    assert_int_equal(counts.n_events, 3);
    assert_int_equal(counts.n_errors, 0);
    assert_int_equal(counts.received_bytes, strlen(replies[0].body) + strlen(replies[1].body));
    reflector_tear_down(&f);
}

/* From "0" on a server would tell what there is, and not what was deleted; from 5 on, what was told. */
static void a_bookmark_that_goes_back_is_not_followed(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3")) },
        { .body = EVENT("MODIFIED", POD("a", "12")) BOOKMARK("0") BOOKMARK("5") BOOKMARK("x") },
        { .body = BOOKMARK("20") },
        { .body = "", .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_targets(&f, 4,
                             "/api/v1/pods\n" WATCH_FROM("10") WATCH_FROM("12") WATCH_FROM("20"));
    reflector_tear_down(&f);
}

static void selectors_and_the_namespace_are_in_every_request(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", ",\"continue\":\"t/+\"", POD("a", "3")) },
        { .body = LIST("10", "", POD("b", "3")) },
        { .body = "", .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.name_space = "n";
    f.options.label_selector = "app in (x,y)";
    f.options.field_selector = "spec.nodeName=x";
    f.options.page_size = 1;
    reflector_start(&f);
    reflector_expect_deltas(&f, "R n/a@3 R n/b@3 ");
    reflector_expect_targets(
        &f, 3,
        "/api/v1/namespaces/n/pods?labelSelector=app%20in%20%28x%2Cy%29&fieldSelector="
        "spec.nodeName%3Dx&limit=1\n"
        "/api/v1/namespaces/n/pods?labelSelector=app%20in%20%28x%2Cy%29&fieldSelector="
        "spec.nodeName%3Dx&limit=1&continue=t%2F%2B\n"
        "/api/v1/namespaces/n/pods?labelSelector=app%20in%20%28x%2Cy%29&fieldSelector="
        "spec.nodeName%3Dx&watch=1&allowWatchBookmarks=true&resourceVersion=10&"
        "timeoutSeconds=1\n");
    reflector_tear_down(&f);
}

static void a_clean_end_watches_on_from_the_last_version(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", "") },
        { .body = EVENT("ADDED", POD("a", "11")) },
        { .body = BOOKMARK("15") },
        { .body = EVENT("ADDED", POD("b", "16")), .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_deltas(&f, "A n/a@11 A n/b@16 ");
    reflector_expect_targets(&f, 4,
                             "/api/v1/pods\n" WATCH_FROM("10") WATCH_FROM("11") WATCH_FROM("15"));
    reflector_expect_phases(&f, "listing watching ");
    assert_int_equal(reflector_counts(&f).n_errors, 0);
    reflector_tear_down(&f);
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
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_deltas(&f, "R n/a@3 R n/b@4 ");
    must(kinf_indexer_get_by_key(f.indexer, "n/a", &a));
    test_server_let_go(f.server);
    reflector_expect_deltas(&f, "R n/a@3 R n/b@15 ");
    must(kinf_indexer_get_by_key(f.indexer, "n/a", &again));
    assert_ptr_equal(a, again);
    kinf_object_unref(a);
    kinf_object_unref(again);
    reflector_tear_down(&f);
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
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_deltas(&f, "R n/a@3 R n/b@4 A n/c@11 ");
    test_server_let_go(f.server);
    reflector_expect_deltas(&f, "R n/b@4 D! n/a@3 D! n/c@11 ");
    reflector_expect_targets(
        &f, 4,
        "/api/v1/pods\n" WATCH_FROM("10") "/api/v1/pods?resourceVersion=11\n" WATCH_FROM("20"));
    reflector_expect_phases(&f, "listing watching waiting:EXPIRED listing watching ");
    assert_int_equal(reflector_counts(&f).n_errors, 1);
    reflector_tear_down(&f);
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
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_targets(
        &f, 5,
        "/api/v1/pods\n" WATCH_FROM(
            "10") "/api/v1/pods?resourceVersion=10\n/api/v1/pods\n" WATCH_FROM("8"));
    reflector_tear_down(&f);
}

static void too_many_requests_waits_as_long_as_the_server_says(void **state)
{
    static const struct test_reply replies[] = {
        { .status = "429 Too Many Requests",
          .headers = "Retry-After: 16\r\n",
          .body = "Too many requests, please try again later.\n" },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_phases(&f, "listing waiting:TOO_MANY_REQUESTS ");
    assert_in_range(f.wait_ms, 15900, 16010);
    reflector_tear_down(&f);
}

static void a_refused_watch_is_asked_for_again_without_a_list(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3")) },
        { .status = "503 Service Unavailable", .body = "service unavailable\n" },
        { .body = LIST("10", "", POD("a", "3")) },
        UNCOUNTED,
        { .status = "403 Forbidden", .body = STATUS("403", "Forbidden") },
        { .status = "404 Not Found", .body = "404 page not found\n" },
        { .status = "401 Unauthorized", .body = STATUS("401", "Unauthorized") },
        { .body = EVENT("ADDED", POD("b", "11")), .end = TEST_END_CUT },
        { .body = LIST("11", "", POD("b", "11")) },
        { .body = LIST("11", "", POD("a", "3")) },
        UNCOUNTED,
        { .body = EVENT("ADDED", POD("c", "12")), .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_deltas(&f, "R n/a@3 A n/b@11 A n/c@12 ");
    reflector_expect_targets(&f, 12,
                             "/api/v1/pods\n" WATCH_FROM("10") VERIFY("a") VERIFY_COUNT("10")
                                 WATCH_FROM("10") WATCH_FROM("10") WATCH_FROM("10") WATCH_FROM("10")
                                     VERIFY("b") VERIFY("a") VERIFY_COUNT("11") WATCH_FROM("11"));
    reflector_expect_phases(&f, "listing waiting:SERVER waiting:FORBIDDEN waiting:NOT_FOUND "
                                "waiting:UNAUTHORIZED watching waiting:NETWORK watching ");
    assert_int_equal(reflector_counts(&f).n_errors, 5);
    reflector_tear_down(&f);
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
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_deltas(&f, "R n/a@3 R n/b@4 ");
    reflector_expect_targets(&f, 4,
                             "/api/v1/pods\n/api/v1/pods?limit=500\n"
                             "/api/v1/pods?limit=500&continue=t\n" WATCH_FROM("10"));
    assert_int_equal(reflector_counts(&f).n_lists, 2);
    reflector_tear_down(&f);
}

static void a_page_that_failed_is_asked_for_again_without_doubles(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", ",\"continue\":\"t\"", POD("a", "3")) },
        { .body = "{\"items\":[" POD("b", "4") ",", .end = TEST_END_CUT },
        { .body = LIST("10", "", POD("b", "4") "," POD("c", "5")) },
        { .body = "", .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.page_size = 2;
    reflector_start(&f);
    reflector_expect_deltas(&f, "R n/a@3 R n/b@4 R n/c@5 ");
    reflector_expect_targets(&f, 4,
                             "/api/v1/pods?limit=2\n/api/v1/pods?limit=2&continue=t\n"
                             "/api/v1/pods?limit=2&continue=t\n" WATCH_FROM("10"));
    assert_int_equal(reflector_counts(&f).n_lists, 1);
    reflector_tear_down(&f);
}

/* --- how far a list is --- */

static void expect_progress(struct reflector_fixture *f, uint64_t n_objects, uint64_t n_expected)
{
    struct kinf__reflector_counts counts = reflector_counts(f);

    while (counts.n_list_objects != n_objects || counts.n_list_expected != n_expected) {
        sched_yield();
        counts = reflector_counts(f);
    }
    assert_in_range(counts.list_bytes, 1, counts.received_bytes);
    assert_true(counts.list_since_ms > 0);
    assert_true(counts.list_since_ms <= kinf__clock_now_ms());
}

static void expect_no_progress(struct reflector_fixture *f)
{
    struct kinf__reflector_counts counts = reflector_counts(f);

    assert_int_equal(counts.list_since_ms, 0);
    assert_int_equal(counts.n_list_objects, 0);
    assert_int_equal(counts.n_list_expected, 0);
    assert_int_equal(counts.list_bytes, 0);
}

static void a_list_in_pages_says_how_far_it_is(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", ",\"continue\":\"t\",\"remainingItemCount\":2", POD("a", "3")) },
        { .body = LIST("10", "", POD("b", "4") "," POD("c", "5")), .is_held = true },
        { .body = "", .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.page_size = 1;
    reflector_start(&f);
    expect_progress(&f, 1, 3);
    test_server_let_go(f.server);
    reflector_expect_phases(&f, "listing watching ");
    expect_no_progress(&f);
    reflector_tear_down(&f);
}

/* As the policy goes from a page to a list in one, or to a watch list. */
static void the_list_behind_a_page_expects_what_that_said(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", ",\"continue\":\"t\",\"remainingItemCount\":2", POD("a", "3")) },
        { .status = "410 Gone", .body = STATUS("410", "Expired") },
        { .body = "{\"items\":[" POD("a", "3") ",", .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.page_size = 1;
    reflector_start(&f);
    reflector_expect_targets(
        &f, 3, "/api/v1/pods?limit=1\n/api/v1/pods?limit=1&continue=t\n/api/v1/pods\n");
    expect_progress(&f, 1, 3);
    reflector_tear_down(&f);
}

static void a_list_in_one_says_what_came_so_far(void **state)
{
    static const struct test_reply replies[] = {
        { .body = "{\"items\":[" POD("a", "3") ",", .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.initial = KINF_INITIAL_LIST;
    reflector_start(&f);
    expect_progress(&f, 1, 0);
    kinf__reflector_stop(f.reflector);
    expect_no_progress(&f);
    reflector_tear_down(&f);
}

static void a_relist_expects_about_what_is_stored(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3") "," POD("b", "4")) },
        { .body = EVENT("ERROR", STATUS("410", "Expired")), .is_held = true },
        { .body = "{\"items\":[" POD("a", "3") ",", .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_deltas(&f, "R n/a@3 R n/b@4 ");
    test_server_let_go(f.server);
    expect_progress(&f, 1, 2);
    reflector_tear_down(&f);
}

static void nothing_is_said_of_a_list_that_waits(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", ",\"continue\":\"t\"", POD("a", "3")) },
        { .status = "429 Too Many Requests", .headers = "Retry-After: 60\r\n" },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.page_size = 1;
    reflector_start(&f);
    reflector_expect_phases(&f, "listing waiting:TOO_MANY_REQUESTS ");
    expect_no_progress(&f);
    reflector_tear_down(&f);
}

static void an_expired_page_leads_to_one_whole_list(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", ",\"continue\":\"t\"", POD("a", "3")) },
        { .status = "410 Gone", .body = STATUS("410", "Expired") },
        { .body = LIST("20", "", POD("b", "4")) },
        { .body = "", .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.page_size = 1;
    reflector_start(&f);
    reflector_expect_deltas(&f, "R n/b@4 ");
    reflector_expect_targets(
        &f, 4,
        "/api/v1/pods?limit=1\n/api/v1/pods?limit=1&continue=t\n/api/v1/pods\n" WATCH_FROM("20"));
    reflector_tear_down(&f);
}

static void a_page_that_names_itself_as_the_next_is_an_error(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", ",\"continue\":\"t\"", POD("a", "3")) },
        { .body = LIST("10", ",\"continue\":\"t\"", POD("a", "3")) },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.page_size = 1;
    reflector_start(&f);
    reflector_expect_phases(&f, "listing waiting:PARSE ");
    reflector_tear_down(&f);
}

static void pages_without_objects_are_no_trouble_until_there_are_many(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", ",\"continue\":\"1\"", "") },
        { .body = LIST("10", ",\"continue\":\"2\"", "") },
        { .body = LIST("10", ",\"continue\":\"3\"", "") },
        { .body = LIST("10", ",\"continue\":\"4\"", "") },
        { .body = LIST("10", ",\"continue\":\"5\"", "") },
    };
    struct reflector_fixture f;

    (void)state;
    assert_int_equal(KINF__ARRAY_LEN(replies), KINF__POLICY_AT_ONCE + 1);
    SET_UP(&f, replies);
    f.options.page_size = 1;
    f.options.backoff_max_ms =
        3600000; /* one more each twenty minutes, however slow the machine is */
    reflector_start(&f);
    reflector_expect_phases(&f, "listing waiting:SERVER ");
    reflector_tear_down(&f);
}

static void silence_is_answered_by_another_watch(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", "") },
        { .body = EVENT("ADDED", POD("a", "11")), .end = TEST_END_OPEN },
        { .body = EVENT("ADDED", POD("b", "12")), .end = TEST_END_OPEN },
        { .body = "", .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.silent_after_ms = 400;
    reflector_start(&f);
    reflector_expect_deltas(&f, "A n/a@11 A n/b@12 ");
    reflector_expect_targets(&f, 4,
                             "/api/v1/pods\n" WATCH_FROM("10") WATCH_FROM("11") WATCH_FROM("12"));
    reflector_expect_phases(&f, "listing watching ");
    reflector_tear_down(&f);
}

/* That something came says that it was not silent. Time is simulated. */
static void a_watch_that_the_server_does_not_end_in_time_is_ended(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", "") },
        { .body = EVENT("ADDED", POD("a", "11")), .end = TEST_END_OPEN },
        { .body = "", .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    kinf__clock_begin_simulation();
    reflector_start(&f);
    reflector_expect_deltas(&f, "A n/a@11 ");
    kinf__clock_advance(3600000);
    reflector_expect_targets(&f, 3, "/api/v1/pods\n" WATCH_FROM("10") WATCH_FROM("11"));
    reflector_expect_phases(&f, "listing watching ");
    assert_int_equal(reflector_counts(&f).n_silent, 0);
    assert_int_equal(reflector_counts(&f).n_errors, 0);
    kinf__clock_end_simulation();
    reflector_tear_down(&f);
}

static void a_watch_without_an_answer_waits(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", "") },       { .end = TEST_NO_REPLY },
        { .body = LIST("10", "", "") },       UNCOUNTED,
        { .body = "", .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.silent_after_ms = 1000;
    reflector_start(&f);
    reflector_expect_phases(&f, "listing waiting:TIMEOUT watching ");
    reflector_tear_down(&f);
}

static void a_dead_server_is_tried_again(void **state)
{
    static const struct test_reply replies[] = { { .end = TEST_NO_REPLY } };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    kinf_client_free(f.client);
    f.options.client = f.client = test_client_of(1, NULL);
    reflector_start(&f);
    reflector_expect_phases(
        &f, "listing waiting:NETWORK listing waiting:NETWORK listing waiting:NETWORK ");
    assert_true(reflector_counts(&f).n_errors >= 3);
    reflector_tear_down(&f);
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
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_deltas(&f, "R n/a@3 R n/c@5 A n/d@13 ");
    reflector_expect_targets(&f, 3, "/api/v1/pods\n/api/v1/pods\n" WATCH_FROM("11"));
    reflector_expect_phases(&f, "listing waiting:PARSE listing watching ");
    assert_int_equal(reflector_counts(&f).n_quarantined, 1);
    reflector_stop(&f);
    assert_string_equal(kinf__buffer_cstr(&f.quarantined), "n/b:PARSE ");
    reflector_tear_down(&f);
}

static void a_quarantined_object_leaves_the_store_and_comes_back(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3") "," POD("b", "4")) },
        { .body = EVENT("MODIFIED", BAD("b")) EVENT("ADDED", POD("never", "12")), .is_held = true },
        { .body = LIST("20", "", POD("a", "3") "," BAD("b")) },
        { .body = EVENT("MODIFIED", POD("b", "21")), .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_deltas(&f, "R n/a@3 R n/b@4 ");
    test_server_let_go(f.server);
    reflector_expect_deltas(&f, "R n/a@3 D! n/b@4 U n/b@21 ");
    reflector_expect_targets(
        &f, 4,
        "/api/v1/pods\n" WATCH_FROM("10") "/api/v1/pods?resourceVersion=10\n" WATCH_FROM("20"));
    reflector_expect_contacts(&f, 2 + 1);
    assert_int_equal(reflector_counts(&f).n_quarantined, 0);
    reflector_tear_down(&f);
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
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_deltas(&f, "R n/a@3 ");
    test_server_let_go(f.server);
    reflector_expect_deltas(&f, "R n/a@3 A n/b@22 ");
    assert_int_equal(reflector_counts(&f).n_lists, 2);
    assert_int_equal(reflector_counts(&f).n_quarantined, 1);
    reflector_tear_down(&f);
}

/* Its deletion is among what cannot be decoded: the store would have it for ever. */
static void an_object_that_a_watch_left_out_is_listed_in_a_while(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3")) },
        { .body = EVENT("MODIFIED", BAD("a")), .is_held = true },
        { .body = LIST("20", "", POD("a", "3")) },
        { .body =
              EVENT("MODIFIED", BAD("a")) EVENT("DELETED", BAD("a")) EVENT("ADDED", POD("b", "22")),
          .end = TEST_END_OPEN },
        { .body = LIST("23", "", POD("b", "22")), .is_held = true },
        { .body = EVENT("MODIFIED", POD("b", "24")) },
        { .body = EVENT("MODIFIED", POD("b", "25")), .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    kinf__clock_begin_simulation();
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_deltas(&f, "R n/a@3 ");
    test_server_let_go(f.server);
    reflector_expect_deltas(&f, "R n/a@3 A n/b@22 ");
    kinf__clock_advance(KINF__QUARANTINE_MEMORY_MS);
    test_server_let_go(f.server);
    reflector_expect_deltas(&f, "R n/b@22 D! n/a@3 U n/b@24 U n/b@25 ");
    reflector_expect_targets(
        &f, 7,
        "/api/v1/pods\n" WATCH_FROM("10") "/api/v1/pods?resourceVersion=10\n" WATCH_FROM(
            "20") "/api/v1/pods?resourceVersion=22\n" WATCH_FROM("23") WATCH_FROM("24"));
    assert_int_equal(reflector_counts(&f).n_quarantined, 0);
    reflector_tear_down(&f);
    kinf__clock_end_simulation();
}

/* What the store has is still not what the server has. */
static void a_list_that_breaks_off_releases_nothing(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3")) },
        { .body = EVENT("MODIFIED", BAD("a")), .is_held = true },
        { .body = LIST("20", "", POD("a", "3")) },
        { .body = EVENT("MODIFIED", BAD("a")) EVENT("ADDED", POD("b", "22"))
              EVENT("ERROR", STATUS("410", "Expired")) },
        { .body = "{\"items\":[" POD("a", "21") "," POD("b", "22") ",", .end = TEST_END_CUT },
        { .body = LIST("23", "", POD("a", "21") "," POD("b", "22")), .is_held = true },
        { .body = "", .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_deltas(&f, "R n/a@3 ");
    test_server_let_go(f.server);
    reflector_expect_deltas(&f, "R n/a@3 A n/b@22 ");
    reflector_expect_phases(&f, "listing watching waiting:PARSE listing watching waiting:EXPIRED "
                                "listing waiting:NETWORK listing ");
    assert_int_equal(reflector_counts(&f).n_quarantined, 1);
    test_server_let_go(f.server);
    reflector_expect_deltas(&f, "R n/a@21 R n/b@22 ");
    reflector_expect_phases(&f, "listing watching waiting:PARSE listing watching waiting:EXPIRED "
                                "listing waiting:NETWORK listing watching ");
    assert_int_equal(reflector_counts(&f).n_quarantined, 0);
    reflector_tear_down(&f);
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
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.max_object_bytes = 150;
    reflector_start(&f);
    reflector_expect_deltas(&f, "R n/a@3 ");
    reflector_stop(&f);
    assert_string_equal(kinf__buffer_cstr(&f.quarantined), "n/big:LIMIT ");
    reflector_tear_down(&f);
}

/* A list of one object whose JSON has so many bytes, nearly all of them an annotation's. The caller
 * frees it. */
static char *list_of_large(size_t object_bytes)
{
    static const char head[] = "{\"metadata\":{\"namespace\":\"n\",\"name\":\"big\","
                               "\"resourceVersion\":\"3\",\"annotations\":{\"large\":\"";
    static const char before[] = "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[";
    char *text = malloc(sizeof before + object_bytes + 3);
    char *at = text;

    assert_non_null(text);
    at = mempcpy(at, before, sizeof before - 1);
    at = mempcpy(at, head, sizeof head - 1);
    memset(at, 'x', object_bytes - (sizeof head - 1) - 4);
    at += object_bytes - (sizeof head - 1) - 4;
    strcpy(at, "\"}}}]}");
    return text;
}

/* The limit of whoever asks for none. */
static void an_object_of_16_mib_passes_and_one_of_a_byte_more_is_named(void **state)
{
    enum { LIMIT = 16 << 20 };

    (void)state;
    for (size_t more = 0; more <= 1; more++) {
        KINF__AUTO_FREE char *list = list_of_large(LIMIT + more);
        const struct test_reply replies[] = {
            { .body = list },
            { .body = more == 0 ? "" : list, .end = more == 0 ? TEST_END_OPEN : TEST_END_CLEAN },
            { .body = "", .end = TEST_END_OPEN },
        };
        struct reflector_fixture f;

        SET_UP(&f, replies);
        reflector_start(&f);
        if (more == 0)
            reflector_expect_deltas(&f, "R n/big@3 ");
        else
            reflector_expect_phases(&f, "listing waiting:LIMIT listing watching ");
        reflector_stop(&f);
        assert_string_equal(kinf__buffer_cstr(&f.quarantined), more == 0 ? "" : "n/big:LIMIT ");
        reflector_tear_down(&f);
    }
}

/* --- stopping --- */

static void it_stops_at_once_without_an_answer(void **state)
{
    static const struct test_reply replies[] = { { .end = TEST_NO_REPLY } };

    (void)state;
    STOPS_AT_ONCE(KINF_INITIAL_LIST, replies, "listing ");
}

static void it_stops_at_once_in_a_list(void **state)
{
    static const struct test_reply replies[] = {
        { .body = "{\"items\":[" POD("a", "3"), .end = TEST_END_OPEN },
    };

    (void)state;
    STOPS_AT_ONCE(KINF_INITIAL_LIST, replies, "listing ");
}

/* G10: a million objects are given up in more time than a stop has. */
static void what_was_collected_is_given_up_after_the_stop(void **state)
{
    static const struct test_reply replies[] = {
        { .body = "{\"items\":[" POD("a", "3"), .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.initial = KINF_INITIAL_LIST;
    reflector_start(&f);
    while (reflector_counts(&f).received_bytes == 0)
        sched_yield();
    kinf__reflector_stop(f.reflector);
    assert_int_equal(f.reflector->listed.n_items, 1);
    assert_null(f.reflector->http);
    reflector_tear_down(&f);
}

static void it_stops_at_once_in_a_watch(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3")) },
        { .body = "{\"type\":\"ADDED\"", .end = TEST_END_OPEN },
    };

    (void)state;
    STOPS_AT_ONCE(KINF_INITIAL_LIST, replies, "listing watching ");
}

static void it_stops_at_once_in_a_wait(void **state)
{
    static const struct test_reply replies[] = {
        { .status = "500 Internal Server Error", .body = "boom" },
    };

    (void)state;
    STOPS_AT_ONCE(KINF_INITIAL_LIST, replies, "listing waiting:SERVER ");
}

static void it_stops_at_once_while_the_queue_is_full(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3")) },
        { .body = EVENT("ADDED", POD("b", "11")) EVENT("ADDED", POD("c", "12")),
          .end = TEST_END_OPEN },
    };
    struct kinf_deltafifo_options fifo_options = { .size = sizeof fifo_options, .max_bytes = 1 };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    kinf_deltafifo_free(f.fifo);
    must(kinf_deltafifo_new(&fifo_options, &f.fifo, NULL));
    f.options.fifo = f.fifo;
    reflector_start(&f);
    test_server_wait(f.server, 2);
    reflector_expect_phases(&f, "listing watching ");
    assert_true(reflector_stop(&f) < test_stop_limit_ms());
    assert_int_equal(kinf_deltafifo_len(f.fifo), 1);
    reflector_tear_down(&f);
}

static void it_stops_at_once_while_it_connects(void **state)
{
    static const struct test_reply replies[] = { { .end = TEST_NO_REPLY } };
    struct test_deaf_port deaf;
    struct reflector_fixture f;

    (void)state;
    test_deaf_port_open(&deaf);
    SET_UP(&f, replies);
    kinf_client_free(f.client);
    f.options.client = f.client = test_client_of(deaf.port, NULL);
    reflector_start(&f);
    reflector_expect_phases(&f, "listing ");
    assert_true(reflector_stop(&f) < test_stop_limit_ms());
    assert_int_equal(f.phases.len, strlen("listing "));
    reflector_tear_down(&f);
    test_deaf_port_close(&deaf);
}

static void an_interrupt_ends_the_thread_without_closing_the_queue(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3")) },
        { .body = "", .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_deltas(&f, "R n/a@3 ");
    kinf__reflector_interrupt(f.reflector);
    kinf__reflector_free(KINF__TAKE(f.reflector));
    must(kinf_deltafifo_resync(f.fifo, NULL));
    reflector_expect_deltas(&f, "S n/a@3 ");
    reflector_tear_down(&f);
}

static void one_that_never_started_is_freed(void **state)
{
    static const struct test_reply replies[] = { { .end = TEST_NO_REPLY } };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    must(kinf__reflector_new(&f.options, &f.reflector, NULL));
    reflector_tear_down(&f);
    kinf__reflector_free(NULL);
}

static void no_memory_for_a_reflector_is_an_error(void **state)
{
    static const struct test_reply replies[] = { { .end = TEST_NO_REPLY } };
    struct reflector_fixture f;

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
    reflector_tear_down(&f);
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
        cmocka_unit_test(a_bookmark_that_goes_back_is_not_followed),
        cmocka_unit_test(selectors_and_the_namespace_are_in_every_request),
        cmocka_unit_test(a_clean_end_watches_on_from_the_last_version),
        cmocka_unit_test(unchanged_objects_keep_their_stored_copy),
        cmocka_unit_test(an_expired_watch_relists_at_the_last_version),
        cmocka_unit_test(a_version_the_server_has_not_reached_is_left_out_at_once),
        cmocka_unit_test(too_many_requests_waits_as_long_as_the_server_says),
        cmocka_unit_test(a_refused_watch_is_asked_for_again_without_a_list),
        cmocka_unit_test(a_list_cut_short_is_asked_for_in_pages),
        cmocka_unit_test(a_page_that_failed_is_asked_for_again_without_doubles),
        cmocka_unit_test(a_list_in_pages_says_how_far_it_is),
        cmocka_unit_test(the_list_behind_a_page_expects_what_that_said),
        cmocka_unit_test(a_list_in_one_says_what_came_so_far),
        cmocka_unit_test(a_relist_expects_about_what_is_stored),
        cmocka_unit_test(nothing_is_said_of_a_list_that_waits),
        cmocka_unit_test(an_expired_page_leads_to_one_whole_list),
        cmocka_unit_test(a_page_that_names_itself_as_the_next_is_an_error),
        cmocka_unit_test(pages_without_objects_are_no_trouble_until_there_are_many),
        cmocka_unit_test(silence_is_answered_by_another_watch),
        cmocka_unit_test(a_watch_that_the_server_does_not_end_in_time_is_ended),
        cmocka_unit_test(a_watch_without_an_answer_waits),
        cmocka_unit_test(a_dead_server_is_tried_again),
        cmocka_unit_test(a_bad_item_is_listed_again_and_then_quarantined),
        cmocka_unit_test(a_quarantined_object_leaves_the_store_and_comes_back),
        cmocka_unit_test(an_object_that_fails_only_in_watches_asks_for_one_list),
        cmocka_unit_test(an_object_that_a_watch_left_out_is_listed_in_a_while),
        cmocka_unit_test(a_list_that_breaks_off_releases_nothing),
        cmocka_unit_test(an_object_above_the_limit_is_quarantined),
        cmocka_unit_test(an_object_of_16_mib_passes_and_one_of_a_byte_more_is_named),
        cmocka_unit_test(it_stops_at_once_without_an_answer),
        cmocka_unit_test(it_stops_at_once_in_a_list),
        cmocka_unit_test(what_was_collected_is_given_up_after_the_stop),
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
