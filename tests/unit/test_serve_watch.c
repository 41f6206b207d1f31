/*
 * Watches of the served API as their clients read them: line by line, in whatever pieces.
 */
#include "serve/watch.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "unit/allocation.h"
#include "unit/test.h"
#include "unit/watchcache_fixture.h"

/* A stream of the fixture's cache, and what was read of it. */
struct reader {
    struct kinf__selection selection;
    struct kinf__encoder encoder;
    struct kinf__stream *stream;
    struct kinf__buffer text;
    size_t n_read; /* of the text, by expect() */
    unsigned n_wakes;
};

static void count_wake(void *ctx)
{
    struct reader *reader = ctx;

    reader->n_wakes++;
}

static void reader_open(struct watchcache_fixture *f, struct reader *reader, uint64_t version,
                        bool replays, bool bookmarks)
{
    const struct kinf__watch_params params = { .cache = f->cache,
                                               .selection = &reader->selection,
                                               .encoder = &reader->encoder,
                                               .version = version,
                                               .replays = replays,
                                               .bookmarks = bookmarks,
                                               .wake = count_wake,
                                               .ctx = reader };

    if (reader->selection.name_space == NULL)
        reader->selection = (struct kinf__selection){ .name_space = "", .name = "" };
    reader->encoder.type = kinf_informer_type(f->informer);
    reader->encoder.table = kinf__table_for(reader->encoder.type);
    assert_int_equal(kinf__watch_open(&params, &reader->stream), 0);
}

static void reader_close(struct reader *reader)
{
    reader->stream->free(reader->stream);
    kinf__buffer_release(&reader->text);
}

/* Of a stream that does not wait for others. */
static ssize_t read_some(struct kinf__stream *stream, char *piece, size_t size)
{
    ssize_t n;

    while ((n = stream->read(stream, piece, size)) == KINF__STREAM_LATER)
        continue;
    return n;
}

/* Reads until there is nothing more now, in pieces of `step`; returns the last result. */
static ssize_t reader_read(struct reader *reader, size_t step)
{
    char piece[4096];
    ssize_t n;

    while ((n = read_some(reader->stream, piece, step)) > 0)
        assert_int_equal(kinf__buffer_append(&reader->text, piece, (size_t)n), 0);
    assert_non_null(kinf__buffer_cstr(&reader->text));
    return n;
}

/* The next line is an event of this type and object ("BOOKMARK": no name). */
static void expect(struct reader *reader, const char *type, const char *name, const char *version)
{
    char head[128], wanted[128];
    const char *line = reader->text.bytes + reader->n_read, *end = strchr(line, '\n');

    assert_non_null(end);
    snprintf(head, sizeof head, "{\"type\":\"%s\",\"object\":{", type);
    assert_memory_equal(line, head, strlen(head));
    snprintf(wanted, sizeof wanted, "\"resourceVersion\":\"%s\"", version);
    assert_non_null(memmem(line, (size_t)(end - line), wanted, strlen(wanted)));
    if (name != NULL) {
        snprintf(wanted, sizeof wanted, "\"name\":\"%s\"", name);
        assert_non_null(memmem(line, (size_t)(end - line), wanted, strlen(wanted)));
    }
    reader->n_read += (size_t)(end - line) + 1;
}

static void expect_no_more(const struct reader *reader)
{
    assert_int_equal(reader->n_read, reader->text.len);
}

static void a_replay_is_marked_where_it_ends(void **state)
{
    struct watchcache_fixture *f = *state;
    struct reader reader = { .n_wakes = 0 };

    watchcache_replace(f, "10", "b@5", "a@7");
    reader_open(f, &reader, 0, true, true);
    assert_int_equal(reader_read(&reader, 1), 0);
    expect(&reader, "ADDED", "a", "7");
    expect(&reader, "ADDED", "b", "5");
    assert_non_null(strstr(reader.text.bytes + reader.n_read,
                           "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}"));
    expect(&reader, "BOOKMARK", NULL, "10");
    expect_no_more(&reader);
    reader_close(&reader);
}

static void a_sleeping_watch_is_woken_by_what_it_will_tell(void **state)
{
    struct watchcache_fixture *f = *state;
    struct reader reader = { .selection = { .name_space = "d", .name = "a" } };

    watchcache_replace(f, "10", "a@7");
    reader_open(f, &reader, 10, false, false);
    assert_int_equal(reader_read(&reader, 100), 0);
    watchcache_put(f, "b@11");
    assert_int_equal(reader.n_wakes, 0);
    watchcache_put(f, "a@12");
    assert_int_equal(reader.n_wakes, 1);
    watchcache_delete(f, "a@13");
    assert_int_equal(reader_read(&reader, 7), 0);
    expect(&reader, "MODIFIED", "a", "12");
    expect(&reader, "DELETED", "a", "13");
    expect_no_more(&reader);
    reader_close(&reader);
}

/* Whether the object is still selected: an escape is room that there may not be. */
static void what_cannot_be_told_ends_a_watch_and_is_no_deletion(void **state)
{
    struct watchcache_fixture *f = *state;
    struct kinf__fields *fields;
    struct kinf__refusal refusal;
    size_t n_broken = 0;
    ssize_t n = KINF__STREAM_BROKEN;

    assert_int_equal(kinf__fields_parse("spec.nodeName=n1", &fields, &refusal), 0);
    assert_int_equal(kinf__fields_bind(fields, kinf_informer_type(f->informer), NULL, 0, &refusal),
                     0);
    for (size_t i = 1; n == KINF__STREAM_BROKEN; i++) {
        struct reader reader = {
            .selection = { .name_space = "", .name = "", .fields = fields },
        };
        char piece[4096];

        watchcache_replace(f, "10", "a@7:n\\u0031");
        reader_open(f, &reader, 10, false, false);
        watchcache_put(f, "a@11:n\\u0031");
        test_fail_allocation(i);
        n = read_some(reader.stream, piece, sizeof piece);
        if (test_allocation_failed())
            assert_int_equal(n, KINF__STREAM_BROKEN);
        n_broken += n == KINF__STREAM_BROKEN;
        if (n > 0)
            assert_memory_equal(piece, "{\"type\":\"MODIFIED\"", 18);
        reader_close(&reader);
    }
    assert_true(n > 0 && n_broken >= 2);
    kinf__fields_free(fields);
}

static void a_version_that_is_too_old_is_an_event_and_the_end(void **state)
{
    struct watchcache_fixture *f = *state;
    struct reader reader = { .n_wakes = 0 };
    struct kinf__watch_status status;

    watchcache_replace(f, "10", "a@7");
    reader_open(f, &reader, 3, false, true);
    kinf__watch_status(reader.stream, kinf__clock_now_ms(), &status);
    assert_true(status.cursor.has_expired);
    assert_int_equal(status.n_sent, 1);
    assert_int_equal(reader_read(&reader, 100), KINF__STREAM_END);
    assert_string_equal(reader.text.bytes,
                        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\","
                        "\"metadata\":{},\"status\":\"Failure\",\"message\":\"too old resource "
                        "version: 3 (10)\",\"reason\":\"Expired\",\"code\":410}}\n");
    reader_close(&reader);
}

static void a_watch_that_sees_nothing_gives_way_to_others(void **state)
{
    struct watchcache_fixture *f = *state;
    struct reader readers[] = {
        { .selection = { .name_space = "", .name = "" } },
        { .selection = { .name_space = "d", .name = "b" } },
    };
    struct kinf_label_selector *labels;
    char piece[100], text[32];

    assert_int_equal(kinf_label_selector_parse("app=x", &labels, NULL), 0);
    readers[0].selection.labels = labels;
    watchcache_replace(f, "10", "a@7");
    for (size_t i = 0; i < KINF__ARRAY_LEN(readers); i++)
        reader_open(f, &readers[i], 10, false, false);
    for (unsigned version = 11; version < 3000; version++) {
        snprintf(text, sizeof text, "a@%u", version);
        watchcache_put(f, text);
    }
    watchcache_put(f, "b@3000+x");
    for (size_t i = 0; i < KINF__ARRAY_LEN(readers); i++) {
        struct kinf__stream *stream = readers[i].stream;

        assert_int_equal(stream->read(stream, piece, sizeof piece), KINF__STREAM_LATER);
        assert_int_equal(reader_read(&readers[i], 100), 0);
        expect(&readers[i], "ADDED", "b", "3000");
        expect_no_more(&readers[i]);
        reader_close(&readers[i]);
    }
    kinf_label_selector_free(labels);
}

static void a_watch_whose_cache_goes_away_expires(void **state)
{
    struct watchcache_fixture *f = *state;
    struct reader reader = { .n_wakes = 0 };

    watchcache_replace(f, "10", "a@7");
    reader_open(f, &reader, 0, false, false);
    assert_int_equal(reader_read(&reader, 100), 0);
    kinf__watchcache_set_enabled(f->cache, false);
    assert_int_equal(reader.n_wakes, 1);
    assert_int_equal(reader_read(&reader, 100), KINF__STREAM_END);
    assert_non_null(strstr(reader.text.bytes, "\"code\":410"));
    kinf__watchcache_set_enabled(f->cache, true);
    reader_close(&reader);
}

static void a_watch_that_is_ended_says_how_far_it_was(void **state)
{
    struct watchcache_fixture *f = *state;
    struct reader reader = { .n_wakes = 0 };

    watchcache_replace(f, "10", "a@7");
    reader_open(f, &reader, 10, false, true);
    watchcache_put(f, "b@11");
    assert_int_equal(reader_read(&reader, 100), 0);
    expect(&reader, "ADDED", "b", "11");
    watchcache_bookmark(f, "20");
    kinf__watch_end(reader.stream);
    assert_int_equal(reader_read(&reader, 100), KINF__STREAM_END);
    expect(&reader, "BOOKMARK", NULL, "20");
    expect_no_more(&reader);
    reader_close(&reader);
}

/* Where it was is of a state that was undone: who went on from there would be told nothing of that. */
static void a_watch_that_cannot_be_told_all_is_told_so_at_its_end(void **state)
{
    struct watchcache_fixture *f = *state;

    for (int has_bookmarks = 0; has_bookmarks < 2; has_bookmarks++) {
        struct reader reader = { .n_wakes = 0 };

        watchcache_replace(f, "10", "a@7");
        reader_open(f, &reader, 10, false, has_bookmarks);
        watchcache_put(f, "b@20");
        assert_int_equal(reader_read(&reader, 100), 0);
        expect(&reader, "ADDED", "b", "20");
        watchcache_replace(f, "9", "a@7");
        kinf__watch_want_bookmark(reader.stream);
        kinf__watch_end(reader.stream);
        assert_int_equal(reader_read(&reader, 100), KINF__STREAM_END);
        assert_non_null(strstr(reader.text.bytes + reader.n_read, "{\"type\":\"ERROR\""));
        assert_non_null(strstr(reader.text.bytes + reader.n_read, "\"code\":410"));
        reader_close(&reader);
    }
}

/* Once, whatever else was asked of it. */
static void a_watch_whose_bookmark_is_wanted_when_it_has_expired_says_so(void **state)
{
    struct watchcache_fixture *f = *state;
    struct reader reader = { .n_wakes = 0 };
    const char *error;

    watchcache_replace(f, "10", "a@7");
    reader_open(f, &reader, 10, false, true);
    assert_int_equal(reader_read(&reader, 100), 0);
    watchcache_replace(f, "9", "a@7");
    kinf__watch_want_bookmark(reader.stream);
    assert_int_equal(reader_read(&reader, 100), KINF__STREAM_END);
    error = strstr(reader.text.bytes, "{\"type\":\"ERROR\"");
    assert_ptr_equal(error, reader.text.bytes);
    assert_null(strstr(error + 1, "{\"type\""));
    reader_close(&reader);
}

/* At once: a server that stops reads once more. */
static void a_watch_that_is_ended_and_has_nothing_to_say_ends(void **state)
{
    struct watchcache_fixture *f = *state;
    char piece[100];

    watchcache_replace(f, "10", "a@7");
    for (int has_bookmarks = 0; has_bookmarks < 2; has_bookmarks++) {
        struct reader reader = { .n_wakes = 0 };

        reader_open(f, &reader, 10, false, has_bookmarks);
        assert_int_equal(reader_read(&reader, 100), 0);
        kinf__watch_end(reader.stream);
        assert_int_equal(reader.stream->read(reader.stream, piece, sizeof piece), KINF__STREAM_END);
        reader_close(&reader);
    }
}

static void a_bookmark_is_not_told_to_who_did_not_ask(void **state)
{
    struct watchcache_fixture *f = *state;
    struct reader reader = { .n_wakes = 0 };

    watchcache_replace(f, "10", "a@7");
    reader_open(f, &reader, 0, true, false);
    assert_int_equal(reader_read(&reader, 100), 0);
    expect(&reader, "ADDED", "a", "7");
    watchcache_bookmark(f, "20");
    kinf__watch_want_bookmark(reader.stream);
    assert_int_equal(reader_read(&reader, 100), 0);
    kinf__watch_end(reader.stream);
    assert_int_equal(reader_read(&reader, 100), KINF__STREAM_END);
    expect_no_more(&reader);
    reader_close(&reader);
}

static void put_text(struct watchcache_fixture *f, const char *text, size_t len)
{
    const struct kinf_object *object;
    struct kinf_delta delta = { .type = KINF_DELTA_UPDATED };

    assert_int_equal(
        kinf_object_new_from_json(kinf_informer_type(f->informer), text, len, &object, NULL), 0);
    delta.object = object;
    watchcache_delta(f, &delta, 1);
    kinf_object_unref(object);
}

/* The clock that says when an object was made and how old it is may be a simulated one. */
static void ages_are_told_by_the_clock_that_dates_objects(void **state)
{
    struct watchcache_fixture *f = *state;
    struct reader reader = { .encoder = { .form = KINF__FORM_TABLE } };
    time_t now_s = (time_t)(kinf__clock_wall_ms() / 1000);
    char when[32], text[256];
    struct tm utc;
    int len;

    watchcache_replace(f, "10", "a@7");
    gmtime_r(&now_s, &utc);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    len = snprintf(text, sizeof text,
                   "{\"metadata\":{\"name\":\"old\",\"namespace\":\"d\",\"uid\":\"1\","
                   "\"resourceVersion\":\"11\",\"creationTimestamp\":\"%s\"}}",
                   when);
    put_text(f, text, (size_t)len);
    kinf__clock_advance(150 * 60000);
    reader_open(f, &reader, 10, false, false);
    assert_int_equal(reader_read(&reader, 100), 0);
    assert_non_null(strstr(reader.text.bytes, ",\"150m\","));
    reader_close(&reader);
}

static void only_the_first_event_of_a_table_has_columns(void **state)
{
    struct watchcache_fixture *f = *state;
    struct reader reader = { .encoder = { .form = KINF__FORM_TABLE } };
    const char *second;

    watchcache_replace(f, "10", "a@7", "b@8");
    reader_open(f, &reader, 0, true, false);
    assert_int_equal(reader_read(&reader, 100), 0);
    assert_non_null(strstr(reader.text.bytes, "\"columnDefinitions\":[{"));
    second = strchr(reader.text.bytes, '\n') + 1;
    assert_null(strstr(second, "\"columnDefinitions\":[{"));
    assert_non_null(strstr(second, "\"columnDefinitions\":null,\"rows\":[{\"cells\":[\"b\","));
    expect(&reader, "ADDED", "a", "7");
    expect(&reader, "ADDED", "b", "8");
    expect_no_more(&reader);
    reader_close(&reader);
}

/* --- large objects --- */

#define LARGE_BYTES 300000

/* Puts an object of 300 kB with this version. */
static void put_large(struct watchcache_fixture *f, const char *name, unsigned version)
{
    static char text[LARGE_BYTES + 512];
    int len = snprintf(text, sizeof text,
                       "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"d\",\"uid\":\"1\","
                       "\"resourceVersion\":\"%u\"},\"spec\":{\"nodeName\":\"%0*u\"}}",
                       name, version, LARGE_BYTES, version);

    put_text(f, text, (size_t)len);
}

/* In the forms that have the whole object. */
static void large_events_are_the_same_in_pieces_of_any_size(void **state)
{
    static const size_t steps[] = { 4096, 7, 1 };
    struct watchcache_fixture *f = *state;

    watchcache_replace(f, "10", "a@7", "b@8");
    put_large(f, "large", 11);
    for (int is_table = 0; is_table < 2; is_table++) {
        KINF__AUTO_BUFFER first = KINF__BUFFER_INIT;

        for (size_t i = 0; i < KINF__ARRAY_LEN(steps); i++) {
            struct reader reader = { .encoder = { .form = KINF__FORM_TABLE,
                                                  .include = KINF__INCLUDE_OBJECT } };

            if (!is_table)
                reader.encoder.form = KINF__FORM_OBJECT;
            reader_open(f, &reader, 0, true, true);
            assert_int_equal(reader_read(&reader, steps[i]), 0);
            if (i == 0) {
                assert_int_equal(kinf__buffer_append_str(&first, kinf__buffer_str(&reader.text)),
                                 0);
                assert_true(first.len > LARGE_BYTES);
            }
            assert_string_equal(reader.text.bytes, kinf__buffer_cstr(&first));
            expect(&reader, "ADDED", "a", "7");
            expect(&reader, "ADDED", "b", "8");
            expect(&reader, "ADDED", "large", "11");
            expect(&reader, "BOOKMARK", NULL, "11");
            expect_no_more(&reader);
            reader_close(&reader);
        }
    }
}

/* W5: the object is its own until the event is over; nothing after it is. */
static void a_stalled_watch_ends_its_event_and_is_told_410(void **state)
{
    const struct kinf__watchcache_limits limits = { .history_bytes = (size_t)4 * LARGE_BYTES };
    struct watchcache_fixture *f = *state;
    struct reader stalled = { .n_wakes = 0 }, reading = { .n_wakes = 0 };
    char version[16], piece[1000];

    kinf__watchcache_free(f->cache);
    kinf_informer_free(f->informer);
    watchcache_make(f, &limits);
    watchcache_replace(f, "10", "a@7");
    reader_open(f, &stalled, 10, false, false);
    reader_open(f, &reading, 10, false, false);
    for (unsigned i = 11; i < 40; i++) {
        put_large(f, "large", i);
        if (i == 12) {
            assert_int_equal(read_some(stalled.stream, piece, sizeof piece), 1000);
            assert_int_equal(kinf__buffer_append(&stalled.text, piece, sizeof piece), 0);
        }
        assert_int_equal(reader_read(&reading, 4096), 0);
        snprintf(version, sizeof version, "%u", i);
        expect(&reading, i == 11 ? "ADDED" : "MODIFIED", "large", version);
    }
    assert_int_equal(reader_read(&stalled, 4096), KINF__STREAM_END);
    expect(&stalled, "ADDED", "large", "11");
    assert_non_null(strstr(stalled.text.bytes + stalled.n_read, "\"code\":410"));
    reader_close(&stalled);
    reader_close(&reading);
}

/* Otherwise the fixture finds objects that are left. */
static void a_watch_that_is_given_up_half_way_leaves_nothing(void **state)
{
    struct watchcache_fixture *f = *state;
    char piece[1000];

    watchcache_replace(f, "10", "a@7");
    put_large(f, "large", 11);
    for (size_t n_read = 1; n_read < LARGE_BYTES + 2000; n_read += 90000) {
        for (int replays = 0; replays < 2; replays++) {
            struct reader reader = { .n_wakes = 0 };

            reader_open(f, &reader, replays ? 0 : 10, replays, false);
            for (size_t n = 0; n < n_read; n += sizeof piece)
                assert_true(read_some(reader.stream, piece, sizeof piece) >= 0);
            reader_close(&reader);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHCACHE_TEST(a_replay_is_marked_where_it_ends),
        WATCHCACHE_TEST(a_sleeping_watch_is_woken_by_what_it_will_tell),
        WATCHCACHE_TEST(what_cannot_be_told_ends_a_watch_and_is_no_deletion),
        WATCHCACHE_TEST(a_version_that_is_too_old_is_an_event_and_the_end),
        WATCHCACHE_TEST(a_watch_that_sees_nothing_gives_way_to_others),
        WATCHCACHE_TEST(a_watch_whose_cache_goes_away_expires),
        WATCHCACHE_TEST(a_watch_that_is_ended_says_how_far_it_was),
        WATCHCACHE_TEST(a_watch_that_cannot_be_told_all_is_told_so_at_its_end),
        WATCHCACHE_TEST(a_watch_whose_bookmark_is_wanted_when_it_has_expired_says_so),
        WATCHCACHE_TEST(a_watch_that_is_ended_and_has_nothing_to_say_ends),
        WATCHCACHE_TEST(a_bookmark_is_not_told_to_who_did_not_ask),
        WATCHCACHE_TEST(ages_are_told_by_the_clock_that_dates_objects),
        WATCHCACHE_TEST(only_the_first_event_of_a_table_has_columns),
        WATCHCACHE_TEST(large_events_are_the_same_in_pieces_of_any_size),
        WATCHCACHE_TEST(a_stalled_watch_ends_its_event_and_is_told_410),
        WATCHCACHE_TEST(a_watch_that_is_given_up_half_way_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
