/*
 * Shard selectors: what is refused, which objects match, and a reflector whose server obeys them or
 * does not.
 */
#include "object/shard.h"

#include <stdio.h>
#include <string.h>

#include <kinformer/informer.h>

#include "base/compiler.h"
#include "informer/shared_options.h"
#include "informer/state.h"
#include "unit/allocation.h"
#include "unit/reflector_fixture.h"
#include "unit/test.h"
#include "unit/transcript.h"

#define LOW  "shardRange(object.metadata.uid,'0x0000000000000000','0x8000000000000000')"
#define HIGH "shardRange(object.metadata.uid,'0x8000000000000000','0x10000000000000000')"
#define ALL  LOW "||" HIGH

/* FNV-1a of "u-a" is 0x4d8488193ed0bbd2, of "u-high" 0xe4dee7c58613fb6b. */
#define LOW_POD(rv)  POD("a", rv)
#define HIGH_POD(rv) POD("high", rv)

static void must(int r)
{
    assert_int_equal(r, 0);
}

static struct kinf__shard_selector *parse(const char *text)
{
    struct kinf__shard_selector *selector = NULL;
    struct kinf_error err = KINF_ERROR_INIT;

    if (kinf__shard_selector_parse(text, &selector, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    return selector;
}

static bool matches(const char *text, const char *name_space, const char *uid)
{
    struct kinf__shard_selector *selector = parse(text);
    const struct kinf_object *object;
    const struct kinf_type *type;
    char json[256];
    bool result;

    must(kinf_type_intern("", "v1", "Pod", "pods", true, &type, NULL));
    snprintf(json, sizeof json,
             "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"x\",\"uid\":\"%s\"}}", name_space,
             uid);
    must(kinf_object_new_from_json(type, json, strlen(json), &object, NULL));
    result = kinf__shard_selector_matches(selector, object);
    kinf_object_unref(object);
    kinf__shard_selector_free(selector);
    return result;
}

/* --- equal parts --- */

static void the_parts_of_any_number_are_all_hashes_once(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= KINF_SHARDS_MAX; n++) {
        uint64_t next = 0, size = UINT64_MAX / n; /* or one more, or less */

        for (unsigned i = 0; i < n; i++) {
            struct kinf__shard_range range = kinf__shard_range_of(n, i);

            assert_true(range.first == next && range.last >= range.first);
            assert_true(range.last - range.first + 1 - size <= 1 || n == 1);
            next = range.last + 1;
        }
        assert_true(next == 0);
    }
}

static void a_selector_of_a_part_has_its_hashes(void **state)
{
    char text[KINF_SHARD_SELECTOR_SIZE];
    unsigned n_matches = 0;

    (void)state;
    must(kinf_shard_selector(KINF_SHARD_BY_UID, 2, 1, text, NULL));
    assert_string_equal(text, "shardRange(object.metadata.uid, '0x8000000000000000', "
                              "'0x10000000000000000')");
    must(kinf_shard_selector(KINF_SHARD_BY_NAMESPACE, 3, 0, text, NULL));
    assert_string_equal(text, "shardRange(object.metadata.namespace, '0x0000000000000000', "
                              "'0x5555555555555555')");
    for (unsigned i = 0; i < 7; i++) {
        must(kinf_shard_selector(KINF_SHARD_BY_UID, 7, i, text, NULL));
        n_matches += matches(text, "ns", "u-a");
    }
    assert_int_equal(n_matches, 1);
}

static void a_shard_that_is_none_is_refused(void **state)
{
    static const unsigned bad[][2] = { { 0, 0 }, { 1, 1 }, { 3, 3 }, { 1001, 0 }, { 3, -1U } };
    char text[KINF_SHARD_SELECTOR_SIZE] = "as it was";

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(bad); i++)
        assert_int_equal(kinf_shard_selector(KINF_SHARD_BY_UID, bad[i][0], bad[i][1], text, NULL),
                         KINF_ERR_INVALID);
    assert_int_equal(kinf_shard_selector((enum kinf_shard_by)2, 2, 1, text, NULL),
                     KINF_ERR_INVALID);
    assert_string_equal(text, "as it was");
}

static void the_text_of_a_range_is_read_as_it_was_written(void **state)
{
    static const char *const bad[] = { "",
                                       ",",
                                       "0x0000000000000000",
                                       "0x0000000000000000,",
                                       "0x8000000000000000,0x8000000000000000",
                                       "0x8000000000000000,0x0000000000000000",
                                       "0x0000000000000000,0x20000000000000000",
                                       "0x000000000000000,0x10000000000000000",
                                       "0x0000000000000000,0x10000000000000000 ",
                                       "0x000000000000000A,0x10000000000000000" };
    struct kinf__shard_range range = { 1, 2 };
    char text[KINF__SHARD_RANGE_SIZE];

    (void)state;
    for (unsigned i = 0; i < 7; i++) {
        struct kinf__shard_range part = kinf__shard_range_of(7, i);

        kinf__shard_range_write(part, text);
        assert_true(kinf__shard_range_read(text, &range));
        assert_true(range.first == part.first && range.last == part.last);
    }
    assert_string_equal(text, "0xdb6db6db6db6db6d,0x10000000000000000");
    for (size_t i = 0; i < KINF__ARRAY_LEN(bad); i++) {
        if (kinf__shard_range_read(bad[i], &range))
            fail_msg("%s is taken", bad[i]);
    }
}

/* --- hashes --- */

static void hashes_are_the_published_ones(void **state)
{
    (void)state;
    assert_true(kinf__shard_hash(KINF_STR("")) == 0xcbf29ce484222325U);
    assert_true(kinf__shard_hash(KINF_STR("a")) == 0xaf63dc4c8601ec8cU);
    assert_true(kinf__shard_hash(KINF_STR("foobar")) == 0x85944171f73967e8U);
}

/* Checks each uid of a recorded answer; returns how many there were. */
static size_t check_recorded(const char *name, const char *selector)
{
    struct test_transcript transcript = test_transcript_read(name);
    const char *at = transcript.body;
    size_t n = 0;

    for (; (at = strstr(at, "\"uid\":\"")) != NULL; n++) {
        char uid[64];

        at += 7;
        snprintf(uid, sizeof uid, "%.*s", (int)strcspn(at, "\""), at);
        assert_true(matches(selector, "t1", uid));
    }
    test_transcript_release(&transcript);
    return n;
}

/* The selectors with which these were recorded; the server evaluated them. */
static void recorded_servers_hash_the_same(void **state)
{
    size_t n_low, n_high;

    (void)state;
    n_low = check_recorded("16-shard-list-low", LOW);
    n_high = check_recorded("16-shard-list-high", HIGH);
    assert_true(n_low > 0 && n_high > 0);
    assert_int_equal(check_recorded("16-shard-list-or", ALL), n_low + n_high);
    assert_true(check_recorded("16-shard-watchlist-low", LOW) > n_low);
    assert_true(check_recorded("16-shard-watchlist-high", HIGH) > n_high);
    assert_true(check_recorded("16-shard-list-cr", LOW) > 0);
}

/* --- matching --- */

static void a_range_has_its_start_and_not_its_end(void **state)
{
    /* "a" is 0xaf63dc4c8601ec8c */
    static const struct {
        const char *start;
        const char *end;
        bool matches;
    } rows[] = {
        { "0xaf63dc4c8601ec8c", "0xaf63dc4c8601ec8d", true },
        { "0x0000000000000000", "0xaf63dc4c8601ec8c", false },
        { "0x0000000000000000", "0xaf63dc4c8601ec8d", true },
        { "0xaf63dc4c8601ec8d", "0x10000000000000000", false },
        { "0xaf63dc4c8601ec8c", "0x10000000000000000", true },
        { "0x0000000000000000", "0x10000000000000000", true },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        char text[128];

        snprintf(text, sizeof text, "shardRange(object.metadata.uid, '%s', '%s')", rows[i].start,
                 rows[i].end);
        assert_int_equal(matches(text, "n", "a"), rows[i].matches);
        snprintf(text, sizeof text, "shardRange(object.metadata.namespace, \"%s\", \"%s\")",
                 rows[i].start, rows[i].end);
        assert_int_equal(matches(text, "a", "x"), rows[i].matches);
    }
}

static void ranges_are_combined(void **state)
{
    static const char two[] =
        "shardRange(object.metadata.uid,'0x0000000000000000','0x0000000000000001') ||\n"
        "shardRange ( object.metadata.uid , '0xaf63dc4c8601ec8c' , '0xaf63dc4c8601ec8d' ) ";

    (void)state;
    assert_true(matches(two, "n", "a"));
    assert_false(matches(two, "n", "b"));
    assert_true(matches(ALL, "n", "a"));
}

static void two_halves_are_disjoint_and_complete(void **state)
{
    char uid[32];

    (void)state;
    for (int i = 0; i < 200; i++) {
        snprintf(uid, sizeof uid, "uid-%d", i);
        assert_true(matches(LOW, "n", uid) != matches(HIGH, "n", uid));
    }
}

static void what_the_server_would_refuse_is_refused(void **state)
{
#define RANGE(field, start, end) "shardRange(" field ",'" start "','" end "')"
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        { "", "column 1: shardRange( expected" },
        { "bogus", "column 1: shardRange( expected" },
        { "shardRange", "shardRange( expected" },
        { RANGE("object.metadata.name", "0x0000000000000000", "0x8000000000000000"), "column 12" },
        { RANGE("object.metadata.uidx", "0x0000000000000000", "0x8000000000000000"), "column 12" },
        { RANGE("object.metadata.uid", "0000000000000000", "0x8000000000000000"), "0x in front" },
        { RANGE("object.metadata.uid", "0x", "0x8000000000000000"), "16 digits" },
        { RANGE("object.metadata.uid", "0x0", "0x8000000000000000"), "16 digits" },
        { RANGE("object.metadata.uid", "0x0000000000000000", "0xff"), "16 digits" },
        { RANGE("object.metadata.uid", "0x0000000000000000", "0x20000000000000000"), "16 digits" },
        { RANGE("object.metadata.uid", "0x000000000000000000", "0x8000000000000000"), "16 digits" },
        { RANGE("object.metadata.uid", "0x000000000000000g", "0x8000000000000000"), "lower-case" },
        { RANGE("object.metadata.uid", "0x000000000000000A", "0x8000000000000000"), "lower-case" },
        { RANGE("object.metadata.uid", "0x8000000000000000", "0x8000000000000000"),
          "starts below" },
        { RANGE("object.metadata.uid", "0xffffffffffffffff", "0x0000000000000000"),
          "starts below" },
        { RANGE("object.metadata.uid", "0x10000000000000000", "0x10000000000000000"),
          "starts below" },
        { "shardRange(object.metadata.uid,'0x0000000000000000','0x8000000000000000'",
          "a ) expected" },
        { "shardRange(object.metadata.uid,'0x0000000000000000')", "a comma expected" },
        { "shardRange(object.metadata.uid,\"0x0000000000000000','0x8000000000000000')",
          "lower-case" },
        { "shardRange(object.metadata.uid,0,8)", "in quotes" },
        { "shardRange(object.metadata.uid", "a comma expected" },
        { LOW " && " HIGH, "|| or the end expected" },
        { LOW " || ", "shardRange( expected" },
        { LOW " || shardRange(object.metadata.namespace,'0x8000000000000000',"
              "'0x10000000000000000')",
          "of one field" },
        { LOW ")", "|| or the end expected" },
        { "object.metadata.uid > '0x0'", "shardRange( expected" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf__shard_selector *selector = NULL;
        struct kinf_error err = KINF_ERROR_INIT;

        assert_int_equal(kinf__shard_selector_parse(rows[i].text, &selector, &err), KINF_ERR_PARSE);
        assert_null(selector);
        if (strstr(err.message, rows[i].message) == NULL)
            fail_msg("%s: '%s' does not say '%s'", rows[i].text, err.message, rows[i].message);
    }
#undef RANGE
}

static void a_selector_cut_anywhere_is_refused(void **state)
{
    char text[sizeof ALL];

    (void)state;
    for (size_t len = 0; len < sizeof ALL - 1; len++) {
        struct kinf__shard_selector *selector;

        snprintf(text, sizeof text, "%.*s", (int)len, ALL);
        if (len == sizeof LOW - 1)
            kinf__shard_selector_free(parse(text));
        else
            assert_int_equal(kinf__shard_selector_parse(text, &selector, NULL), KINF_ERR_PARSE);
    }
}

static void no_memory_for_a_selector_is_an_error(void **state)
{
    (void)state;
    for (size_t n = 1;; n++) {
        struct kinf__shard_selector *selector = NULL;
        bool has_failed;
        int r;

        test_fail_allocation(n);
        r = kinf__shard_selector_parse(ALL, &selector, NULL);
        has_failed = test_allocation_failed();
        test_fail_allocation(0);
        assert_int_equal(r, has_failed ? KINF_ERR_NO_MEMORY : 0);
        kinf__shard_selector_free(selector);
        if (!has_failed)
            break;
    }
}

/* --- a server --- */

struct shard_fixture {
    struct reflector_fixture f;
    struct kinf__shard_selector *selector;
    char said[256]; /* guarded by f.lock */
};

static void on_shard_ignored(const char *key, void *ctx)
{
    struct shard_fixture *s = ctx;
    size_t len;

    pthread_mutex_lock(&s->f.lock);
    len = strlen(s->said);
    snprintf(s->said + len, sizeof s->said - len, "%s ", key != NULL ? key : "obeys");
    pthread_mutex_unlock(&s->f.lock);
}

/* The fixture's callbacks share one context; it is the first member of this one. */
static void shard_set_up(struct shard_fixture *s, enum kinf_initial initial,
                         const struct test_reply *replies, size_t n_replies)
{
    s->said[0] = '\0';
    reflector_set_up(&s->f, replies, n_replies);
    s->selector = parse(LOW);
    s->f.options.shard = s->selector;
    s->f.options.initial = initial;
    s->f.options.callbacks.on_shard_ignored = on_shard_ignored;
    reflector_start(&s->f);
}

static void shard_tear_down(struct shard_fixture *s, const char *said, uint64_t n_outside)
{
    assert_int_equal(reflector_counts(&s->f).n_outside_shard, n_outside);
    reflector_tear_down(&s->f);
    assert_string_equal(s->said, said);
    kinf__shard_selector_free(s->selector);
}

#define SHARD_QUERY                                                                                \
    "shardSelector=shardRange%28object.metadata.uid%2C%270x0000000000000000%27%2C%27"              \
    "0x8000000000000000%27%29"

static void the_selector_goes_with_every_request(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("5", "", LOW_POD("4")) },
        { .body = BOOKMARK("6"), .end = TEST_END_OPEN },
    };
    struct shard_fixture s;

    (void)state;
    shard_set_up(&s, KINF_INITIAL_LIST, replies, KINF__ARRAY_LEN(replies));
    reflector_expect_targets(
        &s.f, 2,
        "/api/v1/pods?" SHARD_QUERY "\n"
        "/api/v1/pods?" SHARD_QUERY
        "&watch=1&allowWatchBookmarks=true&resourceVersion=5&timeoutSeconds=1\n");
    reflector_expect_deltas(&s.f, "R n/a@4 ");
    shard_tear_down(&s, "", 0);
}

static void what_is_outside_is_neither_stored_nor_told(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("5", "", HIGH_POD("3") "," LOW_POD("4")) },
        { .body = EVENT("MODIFIED", HIGH_POD("6")) EVENT("MODIFIED", LOW_POD("7"))
              EVENT("DELETED", HIGH_POD("8")) },
        { .body = BOOKMARK("9"), .end = TEST_END_OPEN },
    };
    struct shard_fixture s;

    (void)state;
    shard_set_up(&s, KINF_INITIAL_LIST, replies, KINF__ARRAY_LEN(replies));
    reflector_expect_deltas(&s.f, "R n/a@4 U n/a@7 ");
    /* What is passed over counts as seen: the next watch starts behind it. */
    reflector_expect_targets(
        &s.f, 3,
        "/api/v1/pods?" SHARD_QUERY "\n"
        "/api/v1/pods?" SHARD_QUERY
        "&watch=1&allowWatchBookmarks=true&resourceVersion=5&timeoutSeconds=1\n"
        "/api/v1/pods?" SHARD_QUERY
        "&watch=1&allowWatchBookmarks=true&resourceVersion=8&timeoutSeconds=1\n");
    shard_tear_down(&s, "n/high ", 3);
}

static void a_watch_list_is_looked_at_too(void **state)
{
    static const struct test_reply replies[] = {
        { .body = EVENT("ADDED", HIGH_POD("3")) EVENT("ADDED", LOW_POD("4"))
              EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"5\",\"annotations\":{"
                                "\"k8s.io/initial-events-end\":\"true\"}}}")
                  EVENT("MODIFIED", HIGH_POD("6")) EVENT("MODIFIED", LOW_POD("7")),
          .end = TEST_END_OPEN },
    };
    struct shard_fixture s;

    (void)state;
    shard_set_up(&s, KINF_INITIAL_WATCHLIST, replies, KINF__ARRAY_LEN(replies));
    reflector_expect_deltas(&s.f, "R n/a@4 U n/a@7 ");
    shard_tear_down(&s, "n/high ", 2);
}

/* An upgraded server: the list after an expired watch has no more than was asked for. */
static void a_server_that_learns_it_is_believed_after_a_whole_list(void **state)
{
    static const struct test_reply replies[] = {
        { .body = LIST("5", "", HIGH_POD("3") "," LOW_POD("4")) },
        { .body = EVENT("ERROR", STATUS("410", "Expired")) },
        { .body = LIST("8", "", LOW_POD("4")) },
        { .body = BOOKMARK("9"), .end = TEST_END_OPEN },
    };
    struct shard_fixture s;

    (void)state;
    shard_set_up(&s, KINF_INITIAL_LIST, replies, KINF__ARRAY_LEN(replies));
    test_server_wait(s.f.server, 4);
    reflector_expect_deltas(&s.f, "R n/a@4 R n/a@4 ");
    shard_tear_down(&s, "n/high obeys ", 1);
}

/* --- the options --- */

static void informers_of_two_shards_are_two(void **state)
{
    const struct kinf_informer_options low = { .size = sizeof low, .shard_selector = LOW };
    const struct kinf_informer_options high = { .size = sizeof high, .shard_selector = HIGH };
    const struct kinf_informer_options all = KINF_INFORMER_OPTIONS_INIT;
    struct kinf__shared_options shared;

    (void)state;
    must(kinf__shared_options_init(&shared, &low, NULL));
    assert_true(kinf__shared_options_selects_same(&shared, &low));
    assert_false(kinf__shared_options_selects_same(&shared, &high));
    assert_false(kinf__shared_options_selects_same(&shared, &all));
    kinf__shared_options_release(&shared);
}

/* --- the state --- */

static void a_server_that_ignores_it_is_a_visible_state(void **unused)
{
    struct kinf_informer_status status = { .n_objects = 0 };
    struct kinf__state_counts counts = { .last_contact_ms = 100 };
    struct kinf__state state;

    (void)unused;
    kinf__state_init(&state, 1000, 50);
    kinf__state_synced(&state, 60);
    kinf__state_phase(&state, KINF__REFLECTOR_WATCHING, NULL, 70);
    kinf__state_shard_ignored(&state, "ns/x", 80);
    kinf__state_derive(&state, &counts, 100, &status);
    assert_int_equal(status.state, KINF_STATE_DEGRADED);
    assert_int_equal(status.state_since_ms, 80);
    assert_non_null(strstr(status.reason, "ignores the shard selector: it sent ns/x"));
    kinf__state_shard_ignored(&state, NULL, 90);
    kinf__state_derive(&state, &counts, 100, &status);
    assert_int_equal(status.state, KINF_STATE_LIVE);
    assert_string_equal(status.reason, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_of_any_number_are_all_hashes_once),
        cmocka_unit_test(a_selector_of_a_part_has_its_hashes),
        cmocka_unit_test(a_shard_that_is_none_is_refused),
        cmocka_unit_test(the_text_of_a_range_is_read_as_it_was_written),
        cmocka_unit_test(hashes_are_the_published_ones),
        cmocka_unit_test(recorded_servers_hash_the_same),
        cmocka_unit_test(a_range_has_its_start_and_not_its_end),
        cmocka_unit_test(ranges_are_combined),
        cmocka_unit_test(two_halves_are_disjoint_and_complete),
        cmocka_unit_test(what_the_server_would_refuse_is_refused),
        cmocka_unit_test(a_selector_cut_anywhere_is_refused),
        cmocka_unit_test(no_memory_for_a_selector_is_an_error),
        cmocka_unit_test(the_selector_goes_with_every_request),
        cmocka_unit_test(what_is_outside_is_neither_stored_nor_told),
        cmocka_unit_test(a_watch_list_is_looked_at_too),
        cmocka_unit_test(a_server_that_learns_it_is_believed_after_a_whole_list),
        cmocka_unit_test(informers_of_two_shards_are_two),
        cmocka_unit_test(a_server_that_ignores_it_is_a_visible_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
