/*
 * Watches of the served API as their clients read them: line by line, in whatever pieces.
 */
#include "serve/watch.h"

#include <stdio.h>
#include <string.h>

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
                                               .wake_ctx = reader };

    if (reader->selection.name_space == NULL)
        reader->selection = (struct kinf__selection){ .name_space = "", .name = "" };
    reader->encoder.type = kinf_informer_type(f->informer);
    reader->encoder.table = kinf__table_for(reader->encoder.type);
    if (reader->encoder.form == KINF__FORM_OBJECT)
        reader->encoder.form = KINF__FORM_METADATA;
    assert_int_equal(kinf__watch_open(&params, &reader->stream), 0);
}

static void reader_close(struct reader *reader)
{
    reader->stream->free(reader->stream);
    kinf__buffer_release(&reader->text);
}

/* Reads until there is nothing more now, in pieces of `step`; returns the last result. */
static ssize_t reader_read(struct reader *reader, size_t step)
{
    char piece[4096];
    ssize_t n;

    while ((n = reader->stream->read(reader->stream, piece, step)) > 0)
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

static void a_version_that_is_too_old_is_an_event_and_the_end(void **state)
{
    struct watchcache_fixture *f = *state;
    struct reader reader = { .n_wakes = 0 };

    watchcache_replace(f, "10", "a@7");
    reader_open(f, &reader, 3, false, true);
    assert_int_equal(reader_read(&reader, 100), KINF__STREAM_END);
    assert_string_equal(reader.text.bytes,
                        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\","
                        "\"metadata\":{},\"status\":\"Failure\",\"message\":\"too old resource "
                        "version: 3 (10)\",\"reason\":\"Expired\",\"code\":410}}\n");
    reader_close(&reader);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHCACHE_TEST(a_replay_is_marked_where_it_ends),
        WATCHCACHE_TEST(a_sleeping_watch_is_woken_by_what_it_will_tell),
        WATCHCACHE_TEST(a_version_that_is_too_old_is_an_event_and_the_end),
        WATCHCACHE_TEST(a_watch_whose_cache_goes_away_expires),
        WATCHCACHE_TEST(a_watch_that_is_ended_says_how_far_it_was),
        WATCHCACHE_TEST(a_bookmark_is_not_told_to_who_did_not_ask),
        WATCHCACHE_TEST(only_the_first_event_of_a_table_has_columns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
