/*
 * What upstream's tests of the reflector and of the retry watcher promise and no other test of ours
 * does; tests/PARITY.md has the map.
 */
#include "reflector/reflector.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "unit/reflector_fixture.h"

#define EXPIRED_EVENT EVENT("ERROR", STATUS("410", "Expired"))
#define LIST_AT(rv)   "/api/v1/pods?resourceVersion=" rv "\n"
#define TOO_MANY_REQUESTS                                                                          \
    {                                                                                              \
        .status = "429 Too Many Requests", .body = STATUS("429", "TooManyRequests")                \
    }
#define NOTHING_MORE                                                                               \
    {                                                                                              \
        .body = "", .end = TEST_END_OPEN                                                           \
    }

static void must(int r)
{
    assert_int_equal(r, 0);
}

/* What replies lead to. */
struct course {
    const struct test_reply *replies;
    size_t n_replies;
    size_t page_size;
    const char *targets;
    const char *deltas;
};

/* Runs a course: every reply is asked for, in the way that `targets` says. What reaches the queue is
 * taken at its end, by key. */
static void expect_course(const struct course *course)
{
    struct reflector_fixture f;

    reflector_set_up(&f, course->replies, course->n_replies);
    f.options.page_size = course->page_size;
    reflector_start(&f);
    reflector_expect_targets(&f, course->n_replies, course->targets);
    reflector_expect_deltas(&f, course->deltas);
    reflector_tear_down(&f);
}

#define EXPECT_COURSE(replies_, ...)                                                               \
    expect_course(&(struct course){                                                                \
        .replies = (replies_), .n_replies = KINF__ARRAY_LEN(replies_), __VA_ARGS__ })

static void expect_one_list_and_five_watches(const struct test_reply replies[6])
{
    expect_course(&(struct course){
        .replies = replies,
        .n_replies = 6,
        .targets = "/api/v1/pods\n" WATCH_FROM("10") WATCH_FROM("10") WATCH_FROM("10")
            WATCH_FROM("10") WATCH_FROM("10"),
        .deltas = "R n/a@3 U n/a@12 ",
    });
}

/* --- errors in the stream --- */

static void an_error_event_that_is_no_status_leads_to_a_list(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3")) },
        { .body = EVENT("MODIFIED", POD("a", "11")) EVENT("ERROR", "\"boom\""),
          .end = TEST_END_OPEN },
        { .body = LIST("12", "", POD("a", "11")) },
        NOTHING_MORE,
    };

    (void)state;
    EXPECT_COURSE(replies,
                  .targets = "/api/v1/pods\n" WATCH_FROM("10") LIST_AT("11") WATCH_FROM("12"),
                  .deltas = "R n/a@3 U n/a@11 R n/a@11 ");
}

static void an_error_event_429_waits_and_watches_on(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3")) },
        { .body =
              EVENT("MODIFIED", POD("a", "11")) EVENT("ERROR", STATUS("429", "TooManyRequests")) },
        { .body = EVENT("MODIFIED", POD("a", "12")), .end = TEST_END_OPEN },
    };

    (void)state;
    EXPECT_COURSE(replies, .targets = "/api/v1/pods\n" WATCH_FROM("10") WATCH_FROM("11"),
                  .deltas = "R n/a@3 U n/a@11 U n/a@12 ");
}

/* The event of an object that was deleted though the server cannot read it is such an error; the
 * same one comes to each watch from before it. */
static void an_object_the_server_cannot_read_goes_with_a_list(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3") "," POD("b", "4")) },
        { .body = EVENT("ERROR", STATUS("500", "StorageReadError")) },
        { .body = EVENT("ERROR", STATUS("500", "StorageReadError")) },
        { .body = EVENT("ERROR", STATUS("500", "StorageReadError")) },
        { .body = LIST("12", "", POD("a", "3")) },
        NOTHING_MORE,
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_deltas(&f, "R n/a@3 R n/b@4 ");
    reflector_expect_deltas(&f, "R n/a@3 D! n/b@4 ");
    reflector_tear_down(&f);
}

/* --- no list where a watch will do --- */

static void watches_that_are_throttled_lead_to_no_list(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3")) },
        TOO_MANY_REQUESTS,
        TOO_MANY_REQUESTS,
        TOO_MANY_REQUESTS,
        TOO_MANY_REQUESTS,
        { .body = EVENT("MODIFIED", POD("a", "12")), .end = TEST_END_OPEN },
    };

    (void)state;
    expect_one_list_and_five_watches(replies);
}

static void closed_watches_are_survived_without_loss_or_doubles(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("1", "", "") },
        { .body = EVENT("ADDED", POD("a", "5")) },
        { .body = EVENT("ADDED", POD("b", "6")) BOOKMARK("20") },
        { .body = EVENT("ADDED", POD("c", "42")), .end = TEST_END_CUT },
        { .body = LIST("43", "", POD("c", "42")) },
        { .body = LIST("43", "", POD("b", "6")) },
        { .body = LIST("43", "", POD("a", "5")) },
        UNCOUNTED,
        { .body = EVENT("ADDED", POD("d", "43")), .end = TEST_END_OPEN },
    };

    (void)state;
    EXPECT_COURSE(replies,
                  .targets = "/api/v1/pods\n" WATCH_FROM("1") WATCH_FROM("5") WATCH_FROM("20")
                      VERIFY("c") VERIFY("b") VERIFY("a") VERIFY_COUNT("42") WATCH_FROM("42"),
                  .deltas = "A n/a@5 A n/b@6 A n/c@42 A n/d@43 ");
}

static void a_watch_that_is_refused_is_asked_for_again(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3")) },
        { .status = "500 Internal Server Error", .body = STATUS("500", "InternalError") },
        { .status = "500 Internal Server Error", .body = STATUS("500", "InternalError") },
        { .status = "403 Forbidden", .body = STATUS("403", "Forbidden") },
        { .status = "401 Unauthorized", .body = STATUS("401", "Unauthorized") },
        { .body = EVENT("MODIFIED", POD("a", "12")), .end = TEST_END_OPEN },
    };

    (void)state;
    expect_one_list_and_five_watches(replies);
}

/* --- versions and limits of lists --- */

static void a_list_whose_version_expired_asks_for_the_newest(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", "", POD("a", "3")) },
        { .body = EXPIRED_EVENT },
        { .status = "410 Gone", .body = STATUS("410", "Expired") },
        { .body = LIST("20", "", POD("a", "15")) },
        NOTHING_MORE,
    };

    (void)state;
    EXPECT_COURSE(replies,
                  .targets = "/api/v1/pods\n" WATCH_FROM("10")
                      LIST_AT("10") "/api/v1/pods\n" WATCH_FROM("20"),
                  .deltas = "R n/a@3 R n/a@15 ");
}

/* A limit there would mean "exactly this version". */
static void a_list_at_a_version_has_no_limit(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("10", ",\"continue\":\"t\"", POD("a", "3")) },
        { .body = LIST("10", "", POD("b", "4")) },
        { .body = EXPIRED_EVENT },
        { .body = LIST("20", "", POD("a", "3")) },
        NOTHING_MORE,
    };

    (void)state;
    EXPECT_COURSE(replies, .page_size = 1,
                  .targets = "/api/v1/pods?limit=1\n/api/v1/pods?limit=1&continue=t\n" WATCH_FROM(
                      "10") LIST_AT("10") WATCH_FROM("20"),
                  .deltas = "R n/a@3 R n/a@3 R n/b@4 D! n/b@4 ");
}

/* --- starting, waiting, ending --- */

static void one_that_is_interrupted_first_asks_for_nothing(void **state)
{
    static const struct test_reply replies[] = { { .body = LIST("10", "", "") } };
    struct reflector_fixture f;
    char *targets;

    (void)state;
    SET_UP(&f, replies);
    must(kinf__reflector_new(&f.options, &f.reflector, NULL));
    kinf__reflector_interrupt(f.reflector);
    must(kinf__reflector_start(f.reflector, NULL));
    reflector_stop(&f);
    targets = test_server_targets(f.server);
    assert_string_equal(targets, "");
    free(targets);
    reflector_tear_down(&f);
}

static void the_wait_is_that_of_the_options(void **state)
{
    static const struct test_reply replies[] = {
        { .status = "500 Internal Server Error", .body = STATUS("500", "InternalError") },
        { .body = LIST("10", "", "") },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.backoff_base_ms = 3000000;
    f.options.backoff_max_ms = 6000000;
    reflector_start(&f);
    reflector_expect_phases(&f, "listing waiting:SERVER ");
    pthread_mutex_lock(&f.lock);
    assert_in_range(f.wait_ms, 3000000, 6000000);
    pthread_mutex_unlock(&f.lock);
    reflector_tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_event_that_is_no_status_leads_to_a_list),
        cmocka_unit_test(an_error_event_429_waits_and_watches_on),
        cmocka_unit_test(an_object_the_server_cannot_read_goes_with_a_list),
        cmocka_unit_test(watches_that_are_throttled_lead_to_no_list),
        cmocka_unit_test(closed_watches_are_survived_without_loss_or_doubles),
        cmocka_unit_test(a_watch_that_is_refused_is_asked_for_again),
        cmocka_unit_test(a_list_whose_version_expired_asks_for_the_newest),
        cmocka_unit_test(a_list_at_a_version_has_no_limit),
        cmocka_unit_test(one_that_is_interrupted_first_asks_for_nothing),
        cmocka_unit_test(the_wait_is_that_of_the_options),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
