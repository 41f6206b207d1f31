/*
 * Ends of events in streams that come in any pieces.
 */
#include "serve/event_frames.h"

#include <string.h>

#include "base/compiler.h"
#include "unit/test.h"

static const char lines[] = "{\"a\":1}\n{}\n\n{\"b\":\"x\"}\n{\"c";
static const size_t ends_of_lines[] = { 0, 8, 11, 12, 22 };
static const char lengths[] = "\0\0\0\003abc\0\0\0\0\0\0\0\001\n\0\0\0\002x";
static const size_t ends_of_lengths[] = { 0, 7, 11, 16 };

struct stream {
    const char *type, *bytes;
    size_t len;
    const size_t *ends;
    size_t n_ends;
};

static const struct stream streams[] = {
    { "application/json", lines, sizeof lines - 1, ends_of_lines, KINF__ARRAY_LEN(ends_of_lines) },
    { "application/vnd.kubernetes.protobuf;stream=watch", lengths, sizeof lengths - 1,
      ends_of_lengths, KINF__ARRAY_LEN(ends_of_lengths) },
};

/* The last end in (from, to]; 0: none. */
static size_t last_end(const struct stream *stream, size_t from, size_t to)
{
    size_t end = 0;

    for (size_t i = 0; i < stream->n_ends; i++) {
        if (stream->ends[i] > from && stream->ends[i] <= to)
            end = stream->ends[i];
    }
    return end;
}

static void ends_are_found_at_every_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(streams); i++) {
        const struct stream *stream = &streams[i];

        for (size_t first = 0; first <= stream->len; first++) {
            for (size_t second = first; second <= stream->len; second++) {
                struct kinf__event_frames frames;
                size_t end = last_end(stream, first, second);

                kinf__event_frames_init(&frames, stream->type, "");
                assert_true(kinf__event_frames_are_whole(&frames));
                assert_int_equal(kinf__event_frames_take(&frames, stream->bytes, first),
                                 last_end(stream, 0, first));
                assert_int_equal(
                    kinf__event_frames_take(&frames, stream->bytes + first, second - first),
                    end != 0 ? end - first : 0);
                assert_int_equal(kinf__event_frames_are_whole(&frames),
                                 last_end(stream, 0, second) == second);
            }
        }
    }
}

static void what_is_packed_or_of_another_form_is_never_whole(void **state)
{
    struct kinf__event_frames frames;

    (void)state;
    kinf__event_frames_init(&frames, "application/json", "gzip");
    assert_int_equal(kinf__event_frames_take(&frames, "a\n", 2), 0);
    assert_false(kinf__event_frames_are_whole(&frames));
    kinf__event_frames_init(&frames, "text/plain", "");
    assert_int_equal(kinf__event_frames_take(&frames, "a\n", 2), 0);
    assert_false(kinf__event_frames_are_whole(&frames));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_are_found_at_every_cut),
        cmocka_unit_test(what_is_packed_or_of_another_form_is_never_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
