/*
 * Which events are one series, and when the server is told how many there were.
 */
#include <stdio.h>
#include <string.h>

#include <kinformer/kinformer.h>

#include "base/clock.h"
#include "json/scan.h"
#include "recorder/series.h"
#include "unit/allocation.h"
#include "unit/test.h"

#define WALL_MS 1700000000123

static const struct kinf_object *object_of(const char *name, const char *version)
{
    const struct kinf_type *type;
    const struct kinf_object *object;
    char json[1024];

    assert_int_equal(kinf_type_intern("apps", "v1", "Deployment", "deployments", true, &type, NULL),
                     0);
    snprintf(json, sizeof json,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"u-%s\","
             "\"resourceVersion\":\"%s\"}}",
             name, name, version);
    assert_int_equal(kinf_object_new_from_json(type, json, strlen(json), &object, NULL), 0);
    return object;
}

/* NULL: out of memory. */
static struct kinf__event *event_of(const char *name, const char *version, bool is_warning,
                                    const char *reason, const char *note)
{
    const struct kinf_object *object = object_of(name, version);
    struct kinf__event *event =
        kinf__event_new(object, NULL, is_warning, reason, "Act", strdup(note), WALL_MS);

    kinf_object_unref(object);
    return event;
}

static struct kinf__series *add(struct kinf__series_set *set, const char *name, const char *reason,
                                int64_t now_ms)
{
    return kinf__series_add(set, event_of(name, "1", false, reason, "note"), 7, now_ms);
}

static void events_that_differ_in_note_and_version_alone_are_the_same(void **state)
{
    struct kinf__series_set set;
    struct kinf__series *first;

    (void)state;
    kinf__series_set_init(&set);
    first = kinf__series_add(&set, event_of("a", "1", false, "R", "one"), 1, 0);
    assert_ptr_equal(kinf__series_add(&set, event_of("a", "2", false, "R", "two"), 2, 0), first);
    assert_int_equal(first->seen.count, 2);
    assert_string_equal(first->event->note, "one");
    assert_string_equal(first->name, "a.0000000000000001");
    assert_ptr_not_equal(kinf__series_add(&set, event_of("b", "1", false, "R", "one"), 3, 0),
                         first);
    assert_ptr_not_equal(kinf__series_add(&set, event_of("a", "1", true, "R", "one"), 4, 0), first);
    assert_ptr_not_equal(kinf__series_add(&set, event_of("a", "1", false, "S", "one"), 5, 0),
                         first);
    assert_int_equal(set.map.n_nodes, 4);
    kinf__series_set_release(&set);
}

static void the_first_two_are_told_at_once_and_the_rest_later(void **state)
{
    struct kinf__series_set set;
    struct kinf__series *series;

    (void)state;
    kinf__series_set_init(&set);
    series = add(&set, "a", "R", 0);
    assert_true(kinf__series_is_urgent(series));
    kinf__series_told(series, 0);
    assert_false(kinf__series_is_urgent(series));
    add(&set, "a", "R", 10);
    assert_true(kinf__series_is_urgent(series));
    kinf__series_told(series, 10);
    for (int i = 0; i < 5; i++) {
        add(&set, "a", "R", 20);
        assert_false(kinf__series_is_urgent(series));
    }
    assert_null(kinf__series_due(&set, 20 + KINF__SERIES_FINISH_MS - 1, false));
    assert_ptr_equal(kinf__series_due(&set, 20, true), series);
    assert_ptr_equal(kinf__series_due(&set, 20 + KINF__SERIES_FINISH_MS, false), series);
    kinf__series_told(series, 20 + KINF__SERIES_FINISH_MS);
    /* It is over: another one is a first one. */
    assert_null(kinf__series_due(&set, 20 + KINF__SERIES_FINISH_MS, false));
    assert_int_equal(set.map.n_nodes, 0);
    assert_true(kinf__series_is_urgent(add(&set, "a", "R", 400000)));
    kinf__series_set_release(&set);
}

/* Nobody need have looked for it meanwhile. */
static void what_comes_behind_a_series_that_is_over_begins_anew(void **state)
{
    struct kinf__series_set set;
    struct kinf__series *series;

    (void)state;
    kinf__series_set_init(&set);
    kinf__series_told(add(&set, "a", "R", 0), 0);
    series = add(&set, "a", "R", KINF__SERIES_FINISH_MS);
    assert_int_equal(series->seen.count, 1);
    assert_true(kinf__series_is_urgent(series));
    assert_int_equal(set.map.n_nodes, 1);
    /* Of which the server does not know yet, that is counted on. */
    assert_int_equal(add(&set, "a", "R", 2 * KINF__SERIES_FINISH_MS)->seen.count, 2);
    kinf__series_set_release(&set);
}

static void a_series_that_does_not_end_is_told_now_and_then(void **state)
{
    struct kinf__series_set set;
    struct kinf__series *series;
    int64_t now = 0;

    (void)state;
    kinf__series_set_init(&set);
    series = add(&set, "a", "R", now);
    kinf__series_told(series, now);
    add(&set, "a", "R", now);
    kinf__series_told(series, now);
    for (now = 60000; now < KINF__SERIES_REFRESH_MS; now += 60000) {
        add(&set, "a", "R", now);
        assert_null(kinf__series_due(&set, now, false));
    }
    assert_ptr_equal(kinf__series_due(&set, now, false), series);
    assert_int_equal(series->seen.count, 31);
    kinf__series_set_release(&set);
}

static void of_too_many_the_one_that_was_silent_for_longest_goes(void **state)
{
    struct kinf__series_set set;
    struct kinf__series *kept, *told = NULL;
    char name[32];

    (void)state;
    kinf__series_set_init(&set);
    for (int i = 0; i < KINF__SERIES_MAX; i++) {
        struct kinf__series *series;

        snprintf(name, sizeof name, "n%d", i);
        series = add(&set, name, "R", 0);
        told = i == 2 ? series : told;
    }
    kept = add(&set, "n0", "R", 1);
    /* Of n1 the server was told nothing, of n2 all. */
    add(&set, "another", "R", 2);
    assert_int_equal(set.map.n_nodes, KINF__SERIES_MAX);
    assert_int_equal(set.n_lost, 1);
    assert_ptr_equal(add(&set, "n0", "R", 3), kept);
    kinf__series_told(told, 3);
    assert_int_equal(add(&set, "n1", "R", 4)->seen.count, 1);
    assert_int_equal(set.n_lost, 1);
    kinf__series_set_release(&set);
}

static void what_failed_waits_for_its_next_try_and_is_counted_on(void **state)
{
    struct kinf__series_set set;
    struct kinf__series *series;

    (void)state;
    kinf__series_set_init(&set);
    series = add(&set, "a", "R", 0);
    kinf__series_try_later(&set, series, 1000, false);
    assert_ptr_equal(add(&set, "a", "R", 10), series);
    assert_int_equal(series->seen.count, 2);
    assert_false(kinf__series_is_urgent(series));
    assert_null(kinf__series_retry(&set, 999));
    assert_ptr_equal(kinf__series_retry(&set, 1000), series);
    /* Until then it is not due, for however long the server was not told. */
    kinf__series_try_later(&set, series, 10 * KINF__SERIES_REFRESH_MS, false);
    assert_int_equal(series->n_tries, 2);
    assert_null(kinf__series_due(&set, 2 * KINF__SERIES_REFRESH_MS, false));
    assert_ptr_equal(kinf__series_due(&set, 2000, true), series);
    kinf__series_told(series, 2000);
    assert_int_equal(series->n_tries, 0);
    assert_int_equal(kinf__series_retry_ms(&set), KINF__NEVER_MS);
    assert_null(kinf__series_due(&set, 2000, true));
    kinf__series_set_release(&set);
}

static void next_tries_come_by_their_times(void **state)
{
    static const int64_t times[] = { 30, 10, 20, 10, 40, 5 };
    static const int order[] = { 5, 1, 3, 2, 0, 4 };
    struct kinf__series *series[KINF__ARRAY_LEN(times)];
    struct kinf__series_set set;
    char name[32];

    (void)state;
    kinf__series_set_init(&set);
    assert_int_equal(kinf__series_retry_ms(&set), KINF__NEVER_MS);
    for (size_t i = 0; i < KINF__ARRAY_LEN(times); i++) {
        snprintf(name, sizeof name, "n%zu", i);
        series[i] = add(&set, name, "R", 0);
        kinf__series_try_later(&set, series[i], 1, false);
        kinf__series_try_later(&set, series[i], times[i], false);
    }
    for (size_t i = 0; i < KINF__ARRAY_LEN(times); i++) {
        struct kinf__series *next = series[order[i]];

        assert_int_equal(kinf__series_retry_ms(&set), times[order[i]]);
        assert_ptr_equal(kinf__series_retry(&set, 100), next);
        if (i % 2 == 0)
            kinf__series_told(next, 100);
        else
            kinf__series_drop(&set, next);
    }
    assert_null(kinf__series_retry(&set, 100));
    kinf__series_set_release(&set);
}

static void of_a_namespace_that_hangs_one_is_tried(void **state)
{
    struct kinf__series_set set;
    struct kinf__series *a, *b;

    (void)state;
    kinf__series_set_init(&set);
    a = add(&set, "a", "R", 0);
    b = add(&set, "b", "R", 0);
    kinf__series_try_later(&set, a, 1000, false);
    assert_int_equal(kinf__series_hung_until_ms(&set, b), 0);
    kinf__series_try_later(&set, a, 2000, true);
    assert_int_equal(kinf__series_hung_until_ms(&set, a), 0);
    assert_int_equal(kinf__series_hung_until_ms(&set, b), 2000);
    kinf__series_put_off(&set, b, 2000);
    assert_int_equal(b->n_tries, 0);
    assert_ptr_equal(kinf__series_retry(&set, 2000), a);
    kinf__series_told(a, 2000);
    assert_ptr_equal(kinf__series_retry(&set, 2000), b);
    assert_int_equal(kinf__series_hung_until_ms(&set, b), 0);
    kinf__series_try_later(&set, a, 3000, false);
    assert_int_equal(kinf__series_hung_until_ms(&set, b), 0);
    kinf__series_set_release(&set);
}

/* --- what is written --- */

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("no %s in: %s", part, text);
}

static void an_event_has_all_that_the_server_asks_for(void **state)
{
    const struct kinf__event_source source = { "example.dev/c", "host" };
    struct kinf__event_series series = { 1, WALL_MS };
    struct kinf__event *event = event_of("a", "5", true, "Failed", "it \"failed\"\n");
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER patch = KINF__BUFFER_INIT;

    (void)state;
    assert_int_equal(kinf__event_write(event, "a.1", &source, &series, &out), 0);
    assert_string_equal(
        kinf__buffer_cstr(&out),
        "{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"a.1\","
        "\"namespace\":\"ns\"},\"eventTime\":\"2023-11-14T22:13:20.123000Z\","
        "\"reportingController\":\"example.dev/c\",\"reportingInstance\":\"host\","
        "\"type\":\"Warning\",\"reason\":\"Failed\",\"action\":\"Act\","
        "\"note\":\"it \\\"failed\\\"\\n\",\"regarding\":{\"apiVersion\":\"apps/v1\","
        "\"kind\":\"Deployment\",\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u-a\","
        "\"resourceVersion\":\"5\"}}");
    series.count = 3;
    out.len = 0;
    assert_int_equal(kinf__event_write(event, "a.1", &source, &series, &out), 0);
    assert_has(kinf__buffer_cstr(&out),
               ",\"series\":{\"count\":3,\"lastObservedTime\":\"2023-11-14T22:13:20.123000Z\"}}");
    assert_int_equal(kinf__event_write_series(&series, &patch), 0);
    assert_string_equal(
        kinf__buffer_cstr(&patch),
        "{\"series\":{\"count\":3,\"lastObservedTime\":\"2023-11-14T22:13:20.123000Z\"}}");
    kinf__event_free(event);
}

static void long_notes_are_cut_between_characters(void **state)
{
    char note[2000] = "x";
    struct kinf__event *event;

    (void)state;
    for (size_t i = 1; i + 2 < sizeof note; i += 2)
        memcpy(note + i, "\xc3\xa4", 3);
    event = event_of("a", "1", false, "R", note);
    assert_int_equal(strlen(event->note), KINF__EVENT_NOTE_MAX - 1);
    kinf__event_free(event);
}

/* Of the note as it is written. */
static size_t read_len(const char *note)
{
    const struct kinf__event_source source = { "example.dev/c", "host" };
    const struct kinf__event_series series = { 1, WALL_MS };
    struct kinf__event *event = event_of("a", "1", false, "R", note);
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct kinf__json_value value;
    size_t len;

    assert_int_equal(kinf__event_write(event, "a.1", &source, &series, &out), 0);
    assert_int_equal(kinf__json_scan(kinf__buffer_str(&out), true, &len), 0);
    assert_true(
        kinf__json_member(kinf__json_value_of(kinf__buffer_str(&out)), KINF_STR("note"), &value));
    kinf__event_free(event);
    return kinf__json_unescape(value.raw, NULL, 0);
}

static void notes_that_are_no_utf8_are_as_long_as_the_server_reads_them(void **state)
{
    char note[1101] = "";

    (void)state;
    memset(note, '\xff', sizeof note - 1);
    assert_int_equal(read_len(note), KINF__EVENT_NOTE_MAX / 3 * 3);
    memset(note, '\x80', sizeof note - 1);
    assert_int_equal(read_len(note), KINF__EVENT_NOTE_MAX / 3 * 3);
    memset(note, 'x', sizeof note - 1);
    note[1023] = '\xe4';
    assert_int_equal(read_len(note), 1023);
    note[1024] = '\0';
    assert_int_equal(read_len(note), 1023);
    note[1021] = '\xe4';
    note[1022] = '\0';
    assert_int_equal(read_len(note), KINF__EVENT_NOTE_MAX);
    /* The beginning of a character is as bad where the note ends. */
    memcpy(note + 1020, "\xe2\x82", 3);
    assert_int_equal(read_len(note), 1023);
}

static void names_that_cannot_begin_an_events_name_do_not(void **state)
{
    char long_name[240];
    const char *const bad[] = { "system:node", "A", "a_b", long_name, "a..b", "a-" };
    char name[KINF__EVENT_NAME_SIZE];

    (void)state;
    memset(long_name, 'x', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct kinf__event *event = event_of(bad[i], "1", false, "R", "n");

        kinf__event_name(event, 10, name);
        assert_string_equal(name, "event.000000000000000a");
        kinf__event_free(event);
    }
}

static void without_memory_nothing_is_counted(void **state)
{
    (void)state;
    for (size_t n = 1;; n++) {
        struct kinf__event *event = event_of("a", "1", false, "R", "n");
        struct kinf__series_set set;
        struct kinf__series *series;
        bool has_failed;

        kinf__series_set_init(&set);
        test_fail_allocation(n);
        series = kinf__series_add(&set, event, 1, 0);
        has_failed = test_allocation_failed();
        test_fail_allocation(0);
        assert_int_equal(series == NULL, has_failed);
        assert_int_equal(set.map.n_nodes, !has_failed);
        kinf__series_set_release(&set);
        if (!has_failed)
            return;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_that_differ_in_note_and_version_alone_are_the_same),
        cmocka_unit_test(the_first_two_are_told_at_once_and_the_rest_later),
        cmocka_unit_test(what_comes_behind_a_series_that_is_over_begins_anew),
        cmocka_unit_test(a_series_that_does_not_end_is_told_now_and_then),
        cmocka_unit_test(of_too_many_the_one_that_was_silent_for_longest_goes),
        cmocka_unit_test(what_failed_waits_for_its_next_try_and_is_counted_on),
        cmocka_unit_test(next_tries_come_by_their_times),
        cmocka_unit_test(of_a_namespace_that_hangs_one_is_tried),
        cmocka_unit_test(an_event_has_all_that_the_server_asks_for),
        cmocka_unit_test(long_notes_are_cut_between_characters),
        cmocka_unit_test(notes_that_are_no_utf8_are_as_long_as_the_server_reads_them),
        cmocka_unit_test(names_that_cannot_begin_an_events_name_do_not),
        cmocka_unit_test(without_memory_nothing_is_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
