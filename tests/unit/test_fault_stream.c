/*
 * Bodies that do not arrive as they should, in whatever pieces they are made and read.
 */
#include "fault/fault_stream.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "rest/inflate.h"
#include "unit/allocation.h"
#include "unit/test.h"

static const char watch_text[] =
    "{\"type\":\"ADDED\",\"object\":{\"n\":1}}\n"
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"20\",\"annotations\":"
    "{\"k8s.io/initial-events-end\":\"true\"}}}}\n"
    "{\"type\":\"MODIFIED\",\"object\":{\"n\":2}}\n"
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"30\"}}}\n"
    "{\"type\":\"DELETED\",\"object\":{\"n\":3}}\n";

/* A stream of a text, and who reads it through a fault. */
struct fixture {
    struct kinf__stream inner;
    const char *text;
    size_t len;
    size_t n_given;
    size_t step;      /* it gives at once */
    size_t silent_at; /* it has nothing there, once; SIZE_MAX: nowhere */
    bool is_endless;  /* and nothing behind the text */
    bool is_freed;
    int64_t now_ms;
    int64_t wake_ms;
    bool is_over;
    struct kinf__stream *stream;
    char out[64 << 10];
    size_t n_out;
    size_t read_step;
};

static ssize_t give(struct kinf__stream *stream, char *buf, size_t size)
{
    struct fixture *f = KINF__CONTAINER_OF(stream, struct fixture, inner);
    size_t n = f->len - f->n_given;

    if (f->silent_at == f->n_given) {
        f->silent_at = SIZE_MAX;
        return 0;
    }
    n = n < f->step ? n : f->step;
    n = n < size ? n : size;
    if (f->silent_at > f->n_given && n > f->silent_at - f->n_given)
        n = f->silent_at - f->n_given;
    memcpy(buf, f->text + f->n_given, n);
    f->n_given += n;
    if (n != 0)
        return (ssize_t)n;
    return f->is_endless ? 0 : KINF__STREAM_END;
}

static void note_free(struct kinf__stream *stream)
{
    KINF__CONTAINER_OF(stream, struct fixture, inner)->is_freed = true;
}

static int64_t now_ms(void *ctx)
{
    return ((struct fixture *)ctx)->now_ms;
}

static void wake_at(int64_t at_ms, void *ctx)
{
    ((struct fixture *)ctx)->wake_ms = at_ms;
}

static bool is_over(void *ctx)
{
    return ((struct fixture *)ctx)->is_over;
}

static int try_open(struct fixture *f, const char *line, const char *text, size_t step)
{
    struct kinf__fault_spec spec;
    struct kinf__buffer body = KINF__BUFFER_INIT;
    const struct kinf__fault_clock clock = { now_ms, wake_at, is_over, f };

    memset(f, 0, sizeof *f);
    f->inner = (struct kinf__stream){ give, note_free, true };
    f->text = text;
    f->len = strlen(text);
    f->step = f->read_step = step;
    f->silent_at = SIZE_MAX;
    f->now_ms = 1000;
    f->wake_ms = KINF__NEVER_MS;
    assert_int_equal(kinf__fault_spec_parse(line, &spec, NULL), 0);
    return kinf__fault_stream_new(&spec.effect, &clock, &f->inner, &body, &f->stream);
}

static void open_fault(struct fixture *f, const char *line, const char *text, size_t step)
{
    assert_int_equal(try_open(f, line, text, step), 0);
    assert_true(f->stream->is_watch);
}

static void close_fault(struct fixture *f)
{
    f->stream->free(f->stream);
    assert_true(f->is_freed);
}

/* Until there is nothing more, or nothing now; returns which. */
static ssize_t read_all(struct fixture *f)
{
    ssize_t n;

    do {
        size_t room = sizeof f->out - 1 - f->n_out;

        n = f->stream->read(f->stream, f->out + f->n_out,
                            room < f->read_step ? room : f->read_step);
        f->n_out += n > 0 ? (size_t)n : 0;
    } while (n > 0);
    f->out[f->n_out] = '\0';
    return n;
}

/* The whole of it, the same in pieces of 1, 2, 3, 5 and many bytes, and silent anywhere. */
static void expect(const char *line, const char *text, const char *expected, ssize_t end)
{
    static const size_t steps[] = { 1, 2, 3, 5, 64, 4096 };
    struct fixture f;

    for (size_t i = 0; i < KINF__ARRAY_LEN(steps); i++) {
        ssize_t n;

        open_fault(&f, line, text, steps[i]);
        f.silent_at = strlen(text) * i / 6;
        while ((n = read_all(&f)) == 0)
            continue;
        if (n != end || strcmp(f.out, expected) != 0)
            fail_msg("%s, by %zu: ends with %zd after:\n%s", line, steps[i], n, f.out);
        close_fault(&f);
    }
}

/* --- a place --- */

static void a_body_ends_at_any_byte(void **state)
{
    static const struct {
        const char *word;
        ssize_t end;
    } kinds[] = { { "reset", KINF__STREAM_RESET },
                  { "cut", KINF__STREAM_BROKEN },
                  { "close", KINF__STREAM_END },
                  { "truncate", KINF__STREAM_END } };
    static const char text[] = "{\"a\":1}\n{\"b\":2}\n";

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(kinds); i++) {
        for (size_t at = 0; at <= sizeof text; at++) {
            char line[64], expected[sizeof text];

            snprintf(line, sizeof line, "* * %s after=%zu", kinds[i].word, at);
            snprintf(expected, sizeof expected, "%.*s", (int)at, text);
            expect(line, text, expected, at < sizeof text ? kinds[i].end : KINF__STREAM_END);
        }
    }
}

static void a_body_ends_behind_an_event(void **state)
{
    static const char text[] = "1\n22\n333\n4";

    (void)state;
    expect("* * close after=0events", text, "", KINF__STREAM_END);
    expect("* * close after=1event", text, "1\n", KINF__STREAM_END);
    expect("* * cut after=2events", text, "1\n22\n", KINF__STREAM_BROKEN);
    expect("* * reset after=3events", text, "1\n22\n333\n", KINF__STREAM_RESET);
    expect("* * reset after=4events", text, text, KINF__STREAM_END);
}

static void an_error_takes_the_rest_of_a_watch(void **state)
{
    (void)state;
    expect("watch * error after=1event", "1\n22\n333\n",
           "1\n{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\","
           "\"metadata\":{},\"status\":\"Failure\",\"message\":\"too old resource version\","
           "\"reason\":\"Expired\",\"code\":410}}\n",
           KINF__STREAM_END);
    expect("watch * error=500", "1\n22\n333\n",
           "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\","
           "\"metadata\":{},\"status\":\"Failure\",\"message\":\"the watch has failed\","
           "\"reason\":\"InternalError\",\"code\":500}}\n",
           KINF__STREAM_END);
}

static void an_end_in_time_comes_behind_the_event(void **state)
{
    struct fixture f;

    (void)state;
    open_fault(&f, "* * close after=500ms", "1\n22\n333\n", 1);
    assert_int_equal(f.wake_ms, 1500);
    f.silent_at = 3;
    f.is_endless = true;
    assert_int_equal(read_all(&f), 0);
    f.now_ms = 1500;
    assert_int_equal(read_all(&f), KINF__STREAM_END);
    assert_string_equal(f.out, "1\n22\n");
    close_fault(&f);
}

static void a_cut_in_time_comes_anywhere(void **state)
{
    struct fixture f;

    (void)state;
    open_fault(&f, "* * cut after=500ms", "1\n22\n333\n", 1);
    f.silent_at = 3;
    f.is_endless = true;
    f.now_ms = 1499;
    assert_int_equal(read_all(&f), 0);
    f.now_ms = 1500;
    assert_int_equal(read_all(&f), KINF__STREAM_BROKEN);
    assert_string_equal(f.out, "1\n2");
    close_fault(&f);
}

/* --- pauses --- */

static void a_stall_loses_nothing(void **state)
{
    static const char *const places[] = { "0", "1", "4", "1event", "2events", "0events" };
    static const char text[] = "1\n22\n333\n";

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(places); i++) {
        for (size_t step = 1; step < sizeof text; step++) {
            struct fixture f;
            char line[64];
            size_t n_before;

            snprintf(line, sizeof line, "* * stall=2s after=%s", places[i]);
            open_fault(&f, line, text, step);
            assert_int_equal(read_all(&f), 0);
            n_before = f.n_out;
            assert_int_equal(f.wake_ms, 3000);
            assert_true(n_before < sizeof text - 1);
            f.now_ms = 2999;
            assert_int_equal(read_all(&f), 0);
            assert_int_equal(f.n_out, n_before);
            f.now_ms = 3000;
            assert_int_equal(read_all(&f), KINF__STREAM_END);
            assert_string_equal(f.out, text);
            close_fault(&f);
        }
    }
}

static void a_stall_for_ever_ends_with_the_server(void **state)
{
    struct fixture f;

    (void)state;
    open_fault(&f, "* * stall after=3", "12345", 9);
    assert_int_equal(read_all(&f), 0);
    assert_int_equal(f.wake_ms, KINF__NEVER_MS);
    f.now_ms = INT64_MAX - 1;
    assert_int_equal(read_all(&f), 0);
    f.is_over = true;
    assert_int_equal(read_all(&f), KINF__STREAM_BROKEN);
    assert_string_equal(f.out, "123");
    close_fault(&f);
}

static void a_drip_has_its_pace(void **state)
{
    struct fixture f;

    (void)state;
    for (size_t step = 1; step <= 8; step++) {
        open_fault(&f, "* * drip=3/100ms", "12345678", step);
        for (int64_t i = 1; i <= 2; i++) {
            assert_int_equal(read_all(&f), 0);
            assert_int_equal(f.n_out, 3 * i);
            assert_int_equal(f.wake_ms, f.now_ms + 100);
            f.now_ms += 99;
            assert_int_equal(read_all(&f), 0);
            f.now_ms++;
        }
        assert_int_equal(read_all(&f), KINF__STREAM_END);
        assert_string_equal(f.out, "12345678");
        close_fault(&f);
    }
}

/* --- bytes --- */

static void a_byte_is_flipped(void **state)
{
    (void)state;
    expect("* * flip", "12345", "02345", KINF__STREAM_END);
    expect("* * flip at=3", "12345", "12355", KINF__STREAM_END);
    expect("* * flip at=4", "12345", "12344", KINF__STREAM_END);
    expect("* * flip at=5", "12345", "12345", KINF__STREAM_END);
}

static size_t count_members(const char *bytes, size_t len)
{
    static const char magic[] = "\x1f\x8b\x08";
    size_t n = 0;

    for (size_t i = 0; i + 3 <= len; i++)
        n += memcmp(bytes + i, magic, 3) == 0;
    return n;
}

static int append(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    (void)err;
    return kinf__buffer_append(ctx, bytes, len);
}

static void gzip_has_many_members(void **state)
{
    static const size_t steps[] = { 1, 7, 4096 };
    struct fixture f;

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(steps); i++) {
        KINF__AUTO_BUFFER plain = KINF__BUFFER_INIT;
        struct kinf__inflate *inflate;

        open_fault(&f, "* * gzip=50", watch_text, 4096);
        f.read_step = steps[i];
        assert_int_equal(read_all(&f), KINF__STREAM_END);
        assert_int_equal(count_members(f.out, f.n_out), (sizeof watch_text - 1 + 49) / 50);
        assert_int_equal(kinf__inflate_new(&inflate, NULL), 0);
        assert_int_equal(kinf__inflate_feed(inflate, f.out, f.n_out, append, &plain, NULL), 0);
        assert_true(kinf__inflate_is_complete(inflate));
        kinf__inflate_free(inflate);
        assert_string_equal(kinf__buffer_cstr(&plain), watch_text);
        close_fault(&f);
    }
}

/* --- lines --- */

#define ADDED    "{\"type\":\"ADDED\",\"object\":{\"n\":1}}\n"
#define MODIFIED "{\"type\":\"MODIFIED\",\"object\":{\"n\":2}}\n"
#define DELETED  "{\"type\":\"DELETED\",\"object\":{\"n\":3}}\n"
#define MARK                                                                                       \
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"20\","                 \
    "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n"
#define BOOKMARK(v)                                                                                \
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"" #v "\"}}}\n"

static void bookmarks_are_repeated_aged_or_dropped(void **state)
{
    (void)state;
    expect("watch * bookmark=twice", watch_text,
           ADDED MARK MARK MODIFIED BOOKMARK(30) BOOKMARK(30) DELETED, KINF__STREAM_END);
    expect("watch * bookmark=old", watch_text,
           ADDED MARK MODIFIED BOOKMARK(30) BOOKMARK(29) DELETED, KINF__STREAM_END);
    expect("watch * bookmark=none", watch_text, ADDED MODIFIED DELETED, KINF__STREAM_END);
    expect("watch * bookmark=old", BOOKMARK(1) BOOKMARK(x), BOOKMARK(1) BOOKMARK(x),
           KINF__STREAM_END);
}

static void events_come_twice(void **state)
{
    (void)state;
    expect("watch * twice", watch_text,
           ADDED ADDED MARK MODIFIED MODIFIED BOOKMARK(30) DELETED DELETED, KINF__STREAM_END);
}

static void the_state_or_its_end_is_missing(void **state)
{
    (void)state;
    expect("watchlist * refuse=endless", watch_text, ADDED MODIFIED BOOKMARK(30) DELETED,
           KINF__STREAM_END);
    expect("watchlist * refuse=ignored", watch_text, MODIFIED BOOKMARK(30) DELETED,
           KINF__STREAM_END);
}

static void lines_that_are_short_or_torn_stay_as_they_are(void **state)
{
    static const char text[] = "\n1\n{\"type\":\"BOOKMARK\n";

    (void)state;
    expect("watch * bookmark=none", text, text, KINF__STREAM_END);
    expect("watch * twice", "\n1\nend", "\n\n1\n1\nendend", KINF__STREAM_END);
    expect("watch * bookmark=none", "", "", KINF__STREAM_END);
}

/* What is large passes; it is not gathered first. */
static void a_large_event_passes_while_it_is_made(void **state)
{
    static char text[40000];
    struct fixture f;

    (void)state;
    memset(text, 'x', sizeof text - 1);
    open_fault(&f, "watch * bookmark=none", text, 4096);
    f.is_endless = true;
    assert_int_equal(read_all(&f), 0);
    assert_int_equal(f.n_out, sizeof text - 1);
    close_fault(&f);
}

/* --- life --- */

static void a_body_goes_out_instead_of_the_stream(void **state)
{
    struct kinf__fault_effect effect = { .kind = KINF__FAULT_CODE };
    struct kinf__buffer body = KINF__BUFFER_INIT;
    struct kinf__fault_clock clock = { now_ms, wake_at, is_over, NULL };
    struct fixture f = { .inner = { give, note_free, true }, .read_step = 3 };

    (void)state;
    clock.ctx = &f;
    assert_int_equal(kinf__buffer_append(&body, "instead", 7), 0);
    assert_int_equal(kinf__fault_stream_new(&effect, &clock, &f.inner, &body, &f.stream), 0);
    assert_null(body.bytes);
    assert_int_equal(read_all(&f), KINF__STREAM_END);
    assert_string_equal(f.out, "instead");
    assert_false(f.is_freed);
    close_fault(&f);
}

static void without_memory_the_stream_breaks(void **state)
{
    static const char *const lines[] = { "watch * twice", "watch * bookmark=old", "* * gzip",
                                         "watch * error after=1event", "* * stall after=1event" };
    struct fixture f;

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(lines); i++) {
        bool has_failed = true;

        for (size_t n = 1; has_failed; n++) {
            int opened;

            test_fail_allocation(n);
            opened = try_open(&f, lines[i], watch_text, 4096);
            if (opened == 0) {
                ssize_t end = read_all(&f);

                has_failed = test_allocation_failed();
                assert_true(!has_failed || end == KINF__STREAM_BROKEN);
                f.stream->free(f.stream);
            } else {
                assert_int_equal(opened, KINF_ERR_NO_MEMORY);
                assert_true(test_allocation_failed());
                assert_false(f.is_freed);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_ends_at_any_byte),
        cmocka_unit_test(a_body_ends_behind_an_event),
        cmocka_unit_test(an_error_takes_the_rest_of_a_watch),
        cmocka_unit_test(an_end_in_time_comes_behind_the_event),
        cmocka_unit_test(a_cut_in_time_comes_anywhere),
        cmocka_unit_test(a_stall_loses_nothing),
        cmocka_unit_test(a_stall_for_ever_ends_with_the_server),
        cmocka_unit_test(a_drip_has_its_pace),
        cmocka_unit_test(a_byte_is_flipped),
        cmocka_unit_test(gzip_has_many_members),
        cmocka_unit_test(bookmarks_are_repeated_aged_or_dropped),
        cmocka_unit_test(events_come_twice),
        cmocka_unit_test(the_state_or_its_end_is_missing),
        cmocka_unit_test(lines_that_are_short_or_torn_stay_as_they_are),
        cmocka_unit_test(a_large_event_passes_while_it_is_made),
        cmocka_unit_test(a_body_goes_out_instead_of_the_stream),
        cmocka_unit_test(without_memory_the_stream_breaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
