/*
 * Whether what is known is verified after an outage: each answer that a server may give, and what
 * follows; and what is known to be the newest. When it is verified is in test_policy_rows.c.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "reflector/newest.h"
#include "unit/reflector_fixture.h"

/* Two objects; then one changes, the other one goes, and the connection breaks. */
#define BEFORE                                                                                     \
    { .body = LIST("10", "", POD("a", "3") "," POD("b", "4")) },                                   \
    {                                                                                              \
        .body = EVENT("MODIFIED", POD("a", "11")) EVENT("DELETED", POD("b", "12")),                \
        .end = TEST_END_CUT, .is_held = true                                                       \
    }
#define BEFORE_TARGETS "/api/v1/pods\n" WATCH_FROM("10")

#define OTHER_POD(name, rv, uid)                                                                   \
    "{\"metadata\":{\"namespace\":\"n\",\"name\":\"" name "\",\"uid\":\"" uid                      \
    "\",\"resourceVersion\":\"" rv "\"},\"spec\":{\"nodeName\":\"other\"}}"
#define BAD_POD "{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\",\"uid\":7}}"

#define ANSWER(rv, items)                                                                          \
    {                                                                                              \
        .body = LIST(rv, "", items)                                                                \
    }
#define REFUSED(status_)                                                                           \
    {                                                                                              \
        .status = status_, .body = "refused\n"                                                     \
    }
#define AS_KNOWN ANSWER("12", POD("a", "11"))
#define NO_B     ANSWER("12", "")
#define EXPIRED  REFUSED("410 Gone")

#define BOTH   VERIFY("a") VERIFY("b")
#define LOOKED VERIFY("a") VERIFY_AT("a", "12")

struct row {
    const char *situation;
    struct test_reply answers[3];
    const char *asked; /* answers to these */
    bool is_true;
};

static const struct row rows[] = {
    { "all as it was", { AS_KNOWN, NO_B }, BOTH, true },
    { "all as it was, at a later version", { ANSWER("90", POD("a", "11")), NO_B }, BOTH, true },
    { "the server is behind", { ANSWER("11", POD("a", "11")) }, VERIFY("a"), false },
    { "older", { ANSWER("90", POD("a", "3")) }, VERIFY("a"), false },
    { "other versions before the last one", { ANSWER("90", POD("a", "12")) }, VERIFY("a"), false },
    { "the same version of something else",
      { ANSWER("90", OTHER_POD("a", "11", "u-a")) },
      VERIFY("a"),
      false },
    { "newer, and was as it was",
      { ANSWER("90", POD("a", "20")), AS_KNOWN, NO_B },
      LOOKED VERIFY("b"),
      true },
    { "newer, and was something else",
      { ANSWER("90", POD("a", "20")), ANSWER("12", POD("a", "9")) },
      LOOKED,
      false },
    { "newer, and was not there",
      { ANSWER("90", POD("a", "20")), ANSWER("12", "") },
      LOOKED,
      false },
    { "newer, and what was is forgotten",
      { ANSWER("90", POD("a", "20")), EXPIRED, NO_B },
      LOOKED VERIFY("b"),
      true },
    { "newer, and there is no asking for what was",
      { ANSWER("90", POD("a", "20")), REFUSED("400 Bad Request"), NO_B },
      LOOKED VERIFY("b"),
      true },
    { "newer, whatever version is asked for",
      { ANSWER("90", POD("a", "20")), ANSWER("90", POD("a", "20")), NO_B },
      LOOKED VERIFY("b"),
      true },
    { "another one of the same name, later",
      { ANSWER("90", OTHER_POD("a", "20", "other")), AS_KNOWN, NO_B },
      LOOKED VERIFY("b"),
      true },
    { "gone, and was as it was", { ANSWER("90", ""), AS_KNOWN, NO_B }, LOOKED VERIFY("b"), true },
    { "gone, and was not there", { ANSWER("90", ""), ANSWER("12", "") }, LOOKED, false },
    { "gone, and what was is forgotten",
      { ANSWER("90", ""), EXPIRED, NO_B },
      LOOKED VERIFY("b"),
      true },
    { "the deleted one is there again", { AS_KNOWN, ANSWER("90", POD("b", "4")) }, BOTH, false },
    { "another one has the deleted one's name",
      { AS_KNOWN, ANSWER("90", OTHER_POD("b", "20", "x")) },
      BOTH,
      true },
    { "what a selector did not select is selected again",
      { AS_KNOWN, ANSWER("90", POD("b", "20")) },
      BOTH,
      true },
    { "a server that knows no selectors", { ANSWER("90", POD("z", "80")) }, VERIFY("a"), false },
    { "- and no limits", { ANSWER("90", POD("y", "70") "," POD("z", "80")) }, VERIFY("a"), false },
    { "versions without an order", { ANSWER("v1", POD("a", "11")), NO_B }, BOTH, true },
};

static void begin(struct reflector_fixture *f)
{
    reflector_start(f);
    reflector_expect_deltas(f, "R n/a@3 R n/b@4 ");
    test_server_let_go(f->server);
    reflector_expect_deltas(f, "U n/a@11 D n/b@12 ");
}

static size_t n_answers(const struct row *row)
{
    size_t n = 0;

    for (const char *line = row->asked; (line = strchr(line, '\n')) != NULL; line++)
        n++;
    return n;
}

/* True: the watch goes on, without a list. In doubt: one list, of the newest state. */
static void play(const struct row *row)
{
    const struct test_reply open = { .body = "", .end = TEST_END_OPEN };
    const struct test_reply uncounted = UNCOUNTED;
    struct test_reply replies[] = { BEFORE, open, open, open, open, open, open };
    size_t n = 2 + n_answers(row);
    struct reflector_fixture f;
    char targets[1024];

    printf("  %s\n", row->situation);
    memcpy(&replies[2], row->answers, n_answers(row) * sizeof replies[0]);
    replies[n++] = row->is_true ? uncounted : (struct test_reply)ANSWER("9", POD("b", "4"));
    SET_UP(&f, replies);
    begin(&f);
    snprintf(targets, sizeof targets, BEFORE_TARGETS "%s%s", row->asked,
             row->is_true ? VERIFY_COUNT("12") WATCH_FROM("12") : "/api/v1/pods\n" WATCH_FROM("9"));
    reflector_expect_targets(&f, n + 1, targets);
    assert_int_equal(reflector_counts(&f).n_lists, row->is_true ? 1 : 2);
    if (!row->is_true)
        reflector_expect_deltas(&f, "R n/b@4 D! n/a@11 ");
    reflector_tear_down(&f);
}

static void each_answer_leads_where_its_row_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++)
        play(&rows[i]);
}

/* --- when there is no answer --- */

static void what_is_refused_does_not_hold_up_the_watch(void **state)
{
    static const struct test_reply replies[] = {
        BEFORE,
        REFUSED("403 Forbidden"),
        { .body = BOOKMARK("13") },
        ANSWER("13", POD("a", "11")),
        REFUSED("429 Too Many Requests"),
        { .body = BOOKMARK("14") },
        ANSWER("15", POD("a", "11")),
        ANSWER("15", ""),
        UNCOUNTED,
        { .body = "", .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    begin(&f);
    reflector_expect_targets(&f, 11,
                             BEFORE_TARGETS VERIFY("a") WATCH_FROM("12") BOTH WATCH_FROM("13")
                                 BOTH VERIFY_COUNT("14") WATCH_FROM("14"));
    assert_int_equal(reflector_counts(&f).n_lists, 1);
    reflector_tear_down(&f);
}

/* Another answer than that the state is not there any more. */
static void who_fails_to_say_what_was_is_not_believed(void **state)
{
    static const struct test_reply replies[] = {
        BEFORE,
        ANSWER("90", POD("a", "20")),
        REFUSED("500 Internal Server Error"),
        { .body = BOOKMARK("13") },
        ANSWER("90", POD("a", "20")),
        ANSWER("13", ""),
        ANSWER("91", POD("a", "20")),
        { .body = "", .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    begin(&f);
    reflector_expect_targets(&f, 9,
                             BEFORE_TARGETS LOOKED WATCH_FROM("12") VERIFY("a")
                                 VERIFY_AT("a", "13") "/api/v1/pods\n" WATCH_FROM("91"));
    reflector_tear_down(&f);
}

static void an_answer_that_does_not_come_is_not_waited_for(void **state)
{
    static const struct test_reply replies[] = {
        BEFORE,
        { .end = TEST_NO_REPLY },
        { .body = EVENT("ADDED", POD("c", "13")), .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    f.options.silent_after_ms = 5000;
    begin(&f);
    reflector_expect_deltas(&f, "A n/c@13 ");
    reflector_expect_targets(&f, 4, BEFORE_TARGETS VERIFY("a") WATCH_FROM("12"));
    reflector_expect_phases(&f, "listing watching waiting:NETWORK waiting:TIMEOUT watching ");
    reflector_tear_down(&f);
}

static int64_t stop_while_verifying(void)
{
    static const struct test_reply replies[] = { BEFORE, { .end = TEST_NO_REPLY } };
    struct reflector_fixture f;
    int64_t took_ms;

    SET_UP(&f, replies);
    begin(&f);
    test_server_wait(f.server, KINF__ARRAY_LEN(replies));
    took_ms = reflector_stop(&f);
    reflector_tear_down(&f);
    return took_ms;
}

static void it_stops_at_once_while_it_verifies(void **state)
{
    int64_t best_ms = INT64_MAX;

    (void)state;
    for (int i = 0; i < 5 && best_ms >= test_stop_limit_ms(); i++) {
        int64_t took_ms = stop_while_verifying();

        best_ms = took_ms < best_ms ? took_ms : best_ms;
    }
    assert_true(best_ms < test_stop_limit_ms());
}

/* --- what is asked for --- */

static void an_empty_state_is_verified_by_its_version(void **state)
{
    static const struct test_reply replies[] = {
        ANSWER("10", ""),
        { .body = BOOKMARK("11"), .end = TEST_END_CUT },
        ANSWER("11", ""),
        ANSWER("11", ""),
        { .body = BOOKMARK("12"), .end = TEST_END_CUT },
        ANSWER("9", ""),
        ANSWER("9", ""),
        { .body = "", .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_targets(
        &f, 8,
        "/api/v1/pods\n" WATCH_FROM("10") "/api/v1/pods?limit=1\n" VERIFY_COUNT("11")
            WATCH_FROM("11") "/api/v1/pods?limit=1\n/api/v1/pods\n" WATCH_FROM("9"));
    reflector_tear_down(&f);
}

static void what_has_come_is_counted(void **state)
{
    static const struct test_reply replies[] = {
        ANSWER("10", POD("a", "3")),
        { .body = EVENT("ADDED", POD("b", "11")), .end = TEST_END_CUT },
        ANSWER("11", POD("b", "11")),
        ANSWER("11", POD("a", "3")),
        ANSWER("11", POD("a", "3") "," POD("b", "11")),
        { .body = "", .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_targets(&f, 6,
                             "/api/v1/pods\n" WATCH_FROM("10") VERIFY("b") VERIFY("a")
                                 VERIFY_COUNT("11") WATCH_FROM("11"));
    for (size_t i = 3; i < 6; i++)
        assert_int_equal(replay_wait_request(f.server, i, 0)->connection,
                         replay_wait_request(f.server, 2, 0)->connection);
    reflector_tear_down(&f);
}

/* Of two histories, in which the same is known. Each row is the answer at the last version. */
static void what_was_missed_is_counted(void **state)
{
    static const struct {
        struct test_reply answer;
        bool is_true;
    } counts[] = {
        { ANSWER("12", POD("a", "11")), true },
        { ANSWER("12", ""), false },
        { { .body = LIST("12", ",\"continue\":\"t\",\"remainingItemCount\":1", POD("a", "11")) },
          false },
        { { .body = LIST("90", ",\"continue\":\"t\",\"remainingItemCount\":1", POD("a", "11")) },
          true }, /* of another version: it knows no exact ones */
        { { .body = LIST("12", ",\"continue\":\"t\"", POD("a", "11")) }, true }, /* not counted */
        { UNCOUNTED, true },
        { REFUSED("400 Bad Request"), true },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(counts); i++) {
        struct test_reply replies[] = { BEFORE,
                                        AS_KNOWN,
                                        NO_B,
                                        counts[i].answer,
                                        ANSWER("90", POD("a", "11") "," POD("c", "6")),
                                        { .body = "", .end = TEST_END_OPEN } };
        size_t n = KINF__ARRAY_LEN(replies);
        struct reflector_fixture f;

        if (counts[i].is_true) {
            n--;
            replies[n - 1] = replies[n];
        }
        reflector_set_up(&f, replies, n);
        begin(&f);
        reflector_expect_targets(
            &f, n,
            counts[i].is_true
                ? BEFORE_TARGETS BOTH VERIFY_COUNT("12") WATCH_FROM("12")
                : BEFORE_TARGETS BOTH VERIFY_COUNT("12") "/api/v1/pods\n" WATCH_FROM("90"));
        assert_int_equal(reflector_counts(&f).n_errors, counts[i].is_true ? 1 : 2);
        reflector_tear_down(&f);
    }
}

/* What the informer may ask for is what it asks for. */
static void selectors_are_kept_and_names_escaped(void **state)
{
    static const struct test_reply replies[] = {
        ANSWER("10", POD("a,b=c", "3")),
        { .body = BOOKMARK("11"), .end = TEST_END_CUT },
        ANSWER("11", POD("a,b=c", "3")),
        { .body = "", .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;
    char *targets;

    (void)state;
    SET_UP(&f, replies);
    f.options.name_space = "n";
    f.options.label_selector = "app=x";
    f.options.field_selector = "spec.nodeName=x";
    reflector_start(&f);
    test_server_wait(f.server, 4);
    targets = test_server_targets(f.server);
    assert_non_null(strstr(targets,
                           "/api/v1/namespaces/n/pods?labelSelector=app%3Dx&fieldSelector="
                           "spec.nodeName%3Dx%2Cmetadata.name%3Da%5C%2Cb%5C%3Dc&limit=1\n"));
    free(targets);
    assert_int_equal(reflector_counts(&f).n_lists, 1);
    reflector_tear_down(&f);
}

/* What is stored of it is older than the last version, and known to be. */
static void what_failed_to_decode_is_not_asked_for(void **state)
{
    static const struct test_reply replies[] = {
        ANSWER("10", POD("a", "3") "," POD("b", "4")),
        { .body = EVENT("MODIFIED", BAD_POD) },
        ANSWER("20", POD("a", "3") "," POD("b", "4")),
        { .body = EVENT("MODIFIED", BAD_POD) BOOKMARK("22"), .end = TEST_END_CUT },
        ANSWER("22", POD("b", "4")),
        { .body = "", .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    reflector_start(&f);
    reflector_expect_targets(
        &f, 6,
        "/api/v1/pods\n" WATCH_FROM("10") "/api/v1/pods?resourceVersion=10\n" WATCH_FROM("20")
            VERIFY("b") WATCH_FROM("22"));
    assert_int_equal(reflector_counts(&f).n_quarantined, 1);
    reflector_tear_down(&f);
}

/* As an event of it would: the second failure quarantines it, with a list. */
static void what_does_not_decode_any_more_is_listed(void **state)
{
    static const struct test_reply replies[] = {
        BEFORE,
        ANSWER("90", BAD_POD),
        AS_KNOWN,
        NO_B,
        UNCOUNTED,
        ANSWER("90", BAD_POD),
        { .body = "", .end = TEST_END_OPEN },
    };
    struct reflector_fixture f;

    (void)state;
    SET_UP(&f, replies);
    begin(&f);
    reflector_expect_targets(&f, 8,
                             BEFORE_TARGETS LOOKED VERIFY("b") VERIFY_COUNT(
                                 "12") "/api/v1/pods?resourceVersion=12\n" WATCH_FROM("90"));
    reflector_expect_deltas(&f, "D! n/a@11 ");
    assert_int_equal(reflector_counts(&f).n_quarantined, 1);
    reflector_tear_down(&f);
}

/* --- the newest --- */

static const struct kinf_object *object_of(const char *name, const char *rv)
{
    const struct kinf_object *object;
    const struct kinf_type *type;
    char json[256];

    assert_int_equal(kinf_type_intern("", "v1", "Pod", "pods", true, &type, NULL), 0);
    snprintf(json, sizeof json,
             "{\"metadata\":{\"namespace\":\"n\",\"name\":\"%s\",\"resourceVersion\":\"%s\"}}",
             name, rv);
    assert_int_equal(kinf_object_new_from_json(type, json, strlen(json), &object, NULL), 0);
    return object;
}

static void note(struct kinf__newest *newest, const char *name, const char *rv, bool is_deleted)
{
    kinf_auto_object const struct kinf_object *object = object_of(name, rv);

    kinf__newest_note(newest, object, is_deleted);
}

static void expect_newest(const struct kinf__newest *newest, const char *expected)
{
    char text[256] = "";

    for (size_t i = 0; i < newest->n_stored; i++)
        sprintf(text + strlen(text), "%s@%s ", kinf_object_name(newest->stored[i]),
                kinf_object_resource_version(newest->stored[i]));
    if (newest->deleted != NULL) {
        kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
        struct kinf_str body;

        sprintf(text + strlen(text), "-%s", kinf_object_name(newest->deleted));
        assert_int_equal(kinf__object_body(newest->deleted, &scratch, &body), 0);
        assert_true(kinf_str_equal(body, KINF_STR("{}")));
    }
    assert_string_equal(text, expected);
}

static void the_last_that_changed_are_the_newest(void **state)
{
    struct kinf__newest newest = { .n_stored = 0 };

    (void)state;
    note(&newest, "a", "1", false);
    note(&newest, "b", "2", false);
    note(&newest, "a", "3", false);
    expect_newest(&newest, "a@3 b@2 ");
    note(&newest, "c", "4", false);
    note(&newest, "d", "5", false);
    note(&newest, "b", "6", true);
    expect_newest(&newest, "d@5 c@4 a@3 -b");
    note(&newest, "c", "7", true);
    expect_newest(&newest, "d@5 a@3 -c");
    kinf__newest_drop(&newest, "n/d");
    kinf__newest_drop(&newest, "n/z");
    expect_newest(&newest, "a@3 -c");
    kinf__newest_release(&newest);
    expect_newest(&newest, "");
}

static void the_newest_of_a_list_are_those_of_the_highest_versions(void **state)
{
    static const char *const versions[] = { "3", "10", "9", "100", "1", "11" };
    const struct kinf_object *items[KINF__ARRAY_LEN(versions)];
    struct kinf__newest newest = { .n_stored = 0 };
    struct kinf__stop stop = { false };

    (void)state;
    note(&newest, "before", "500", false);
    note(&newest, "before", "501", true);
    for (size_t i = 0; i < KINF__ARRAY_LEN(items); i++)
        items[i] = object_of((char[]){ (char)('a' + i), '\0' }, versions[i]);
    kinf__newest_take_list(&newest, items, 2, NULL);
    expect_newest(&newest, "b@10 a@3 ");
    kinf__newest_take_list(&newest, items, KINF__ARRAY_LEN(items), NULL);
    expect_newest(&newest, "d@100 f@11 b@10 ");
    kinf__newest_take_list(&newest, NULL, 0, NULL);
    expect_newest(&newest, "");
    kinf__stop_set(&stop);
    kinf__newest_take_list(&newest, items, KINF__ARRAY_LEN(items), &stop);
    expect_newest(&newest, "");
    for (size_t i = 0; i < KINF__ARRAY_LEN(items); i++)
        kinf_object_unref(items[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answer_leads_where_its_row_says),
        cmocka_unit_test(what_is_refused_does_not_hold_up_the_watch),
        cmocka_unit_test(who_fails_to_say_what_was_is_not_believed),
        cmocka_unit_test(an_answer_that_does_not_come_is_not_waited_for),
        cmocka_unit_test(it_stops_at_once_while_it_verifies),
        cmocka_unit_test(an_empty_state_is_verified_by_its_version),
        cmocka_unit_test(what_has_come_is_counted),
        cmocka_unit_test(what_was_missed_is_counted),
        cmocka_unit_test(selectors_are_kept_and_names_escaped),
        cmocka_unit_test(what_failed_to_decode_is_not_asked_for),
        cmocka_unit_test(what_does_not_decode_any_more_is_listed),
        cmocka_unit_test(the_last_that_changed_are_the_newest),
        cmocka_unit_test(the_newest_of_a_list_are_those_of_the_highest_versions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
