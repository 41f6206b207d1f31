/*
 * Watch bodies. Neighbours: the reflector feeds what comes from the socket; src/object makes the
 * objects. Invariant: `tail` never holds a newline, and at most one piece more than a line may
 * have.
 */
#include "reflector/watch_stream.h"

#include <string.h>

#include "base/error.h"
#include "json/scan.h"
#include "rest/status.h"

/* What a line may have around its object. */
#define ENVELOPE_MAX 256
/* A larger tail is given back when its line is done. */
#define TAIL_SIZE_KEPT (1 << 20)

enum frame_type { FRAME_ADDED, FRAME_MODIFIED, FRAME_DELETED, FRAME_BOOKMARK, FRAME_ERROR };

/* In the order of enum frame_type; the first three are those of enum kinf__watch_event_type. */
static const struct kinf_str type_names[] = {
    { "ADDED", 5 }, { "MODIFIED", 8 }, { "DELETED", 7 }, { "BOOKMARK", 8 }, { "ERROR", 5 },
};

static bool is_white(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static struct kinf_str skip(struct kinf_str text, size_t len)
{
    return (struct kinf_str){ text.bytes + len, text.len - len };
}

static struct kinf_str skip_white(struct kinf_str text)
{
    while (text.len != 0 && is_white(text.bytes[0]))
        text = skip(text, 1);
    return text;
}

static bool starts_with(struct kinf_str text, struct kinf_str prefix)
{
    return text.len >= prefix.len && memcmp(text.bytes, prefix.bytes, prefix.len) == 0;
}

/* Where the object most likely starts, for a guess at its key. */
static struct kinf_str guess_object(struct kinf_str frame)
{
    const char *key = memmem(frame.bytes, frame.len, "\"object\":", 9);

    return key != NULL ? skip(frame, (size_t)(key - frame.bytes) + 9) : frame;
}

static int reject(const struct kinf__watch_stream *stream, struct kinf_str object,
                  const struct kinf_error *why, struct kinf_error *err)
{
    char key[KINF__KEY_SIZE];

    if (!kinf__object_guess_key(stream->decoder->type, object, key, sizeof key))
        key[0] = '\0';
    return stream->callbacks->on_reject(key, why, stream->callbacks->ctx, err);
}

static int reject_too_large(const struct kinf__watch_stream *stream, struct kinf_str object,
                            struct kinf_error *err)
{
    struct kinf_error why = KINF_ERROR_INIT;

    (void)kinf__error_set(&why, KINF_ERR_LIMIT, "object above %zu bytes", stream->max_object_bytes);
    return reject(stream, object, &why, err);
}

/* --- one event --- */

/* Decodes the object that `text` starts with. Returns 0 with the object in *ret_object, or with
 * NULL when it was left out; *ret_len is the offset behind it, 0 if its end is unknown. */
static int decode(const struct kinf__watch_stream *stream, struct kinf_str text,
                  const struct kinf_object **ret_object, size_t *ret_len, struct kinf_error *err)
{
    struct kinf_error why = KINF_ERROR_INIT;
    const struct kinf_object *object;
    size_t len;
    int r = kinf__object_decode(stream->decoder, text, true, &object, &len, &why);

    *ret_object = NULL;
    *ret_len = len;
    if (r == KINF_ERR_NO_MEMORY)
        return kinf__error_no_memory(err);
    if (r == KINF_ERR_TRUNCATED)
        (void)kinf__error_set(&why, KINF_ERR_PARSE, "the line ends inside the object");
    if (r < 0)
        return reject(stream, text, &why, err);
    if (len > stream->max_object_bytes) {
        kinf_object_unref(object);
        return reject_too_large(stream, text, err);
    }
    *ret_object = object;
    return 0;
}

static int deliver(const struct kinf__watch_stream *stream, enum frame_type type,
                   const struct kinf_object *take_object, struct kinf_error *err)
{
    int r = stream->callbacks->on_event((enum kinf__watch_event_type)type, take_object,
                                        stream->callbacks->ctx, err);

    kinf_object_unref(take_object);
    return r;
}

/* Recognizes `{"type":"ADDED","object":` and its like. Returns the length, 0 if it is not that. */
static size_t usual_head(struct kinf_str frame, enum frame_type *ret_type)
{
    static const struct kinf_str before = { "{\"type\":\"", 9 }, after = { "\",\"object\":", 11 };

    if (!starts_with(frame, before))
        return 0;
    for (enum frame_type type = FRAME_ADDED; type <= FRAME_DELETED; type++) {
        struct kinf_str at = skip(frame, before.len);

        if (starts_with(at, type_names[type]) &&
            starts_with(skip(at, type_names[type].len), after)) {
            *ret_type = type;
            return before.len + type_names[type].len + after.len;
        }
    }
    return 0;
}

/* An event in the usual form, decoded in one pass. *ret_len is its length, or 0 when it has another
 * form and nothing was done. */
static int usual_event(const struct kinf__watch_stream *stream, struct kinf_str frame,
                       size_t *ret_len, struct kinf_error *err)
{
    const struct kinf_object *object;
    enum frame_type type = FRAME_ADDED;
    size_t head = usual_head(frame, &type), len;
    struct kinf_str rest;
    int r;

    *ret_len = 0;
    if (head == 0)
        return 0;
    r = decode(stream, skip(frame, head), &object, &len, err);
    if (r < 0)
        return r;
    if (len == 0) {
        *ret_len = frame.len;
        return 0;
    }
    rest = skip_white(skip(frame, head + len));
    if (rest.len != 0 && rest.bytes[0] == '}') {
        *ret_len = frame.len - rest.len + 1;
        return object != NULL ? deliver(stream, type, object, err) : 0;
    }
    if (object == NULL)
        *ret_len = frame.len;
    kinf_object_unref(object);
    return 0;
}

static int on_bookmark(const struct kinf__watch_stream *stream, struct kinf_str object,
                       struct kinf_error *err)
{
    struct kinf_error why = KINF_ERROR_INIT;
    char rv[KINF__RV_SIZE];
    bool ends;

    if (kinf__object_decode_bookmark(object, rv, sizeof rv, &ends, &why) < 0)
        return reject(stream, object, &why, err);
    return stream->callbacks->on_bookmark(rv, ends, stream->callbacks->ctx, err);
}

static int on_error(const struct kinf__watch_stream *stream, struct kinf_str object,
                    struct kinf_error *err)
{
    struct kinf_error event = KINF_ERROR_INIT;

    (void)!kinf__status_to_error(object, 0, &event);
    return stream->callbacks->on_error(&event, stream->callbacks->ctx, err);
}

static int dispatch(const struct kinf__watch_stream *stream, struct kinf_str type,
                    struct kinf_str object, struct kinf_error *err)
{
    struct kinf_error why = KINF_ERROR_INIT;
    const struct kinf_object *decoded;
    size_t no = 0, len;
    int r;

    while (no < KINF__ARRAY_LEN(type_names) && !kinf__json_string_equals(type, type_names[no]))
        no++;
    switch (no) {
    case FRAME_ADDED:
    case FRAME_MODIFIED:
    case FRAME_DELETED:
        r = decode(stream, object, &decoded, &len, err);
        return r < 0 || decoded == NULL ? r : deliver(stream, (enum frame_type)no, decoded, err);
    case FRAME_BOOKMARK:
        return on_bookmark(stream, object, err);
    case FRAME_ERROR:
        return on_error(stream, object, err);
    default:
        (void)kinf__error_set(&why, KINF_ERR_PARSE, "event of unknown type %.*s",
                              (int)(type.len < 50 ? type.len : 50), type.bytes);
        return reject(stream, object, &why, err);
    }
}

/* An event in any form. *ret_len is its length, or all there is when its end cannot be found. */
static int any_event(const struct kinf__watch_stream *stream, struct kinf_str frame,
                     size_t *ret_len, struct kinf_error *err)
{
    struct kinf_error why = KINF_ERROR_INIT;
    struct kinf__json_value event, type, object;
    size_t len;
    int r = kinf__json_scan(frame, true, &len);

    if (r < 0) {
        *ret_len = frame.len;
        (void)kinf__json_error(&why, KINF_ERR_PARSE, frame, len);
        return reject(stream, guess_object(frame), &why, err);
    }
    *ret_len = len;
    event = kinf__json_value_of((struct kinf_str){ frame.bytes, len });
    if (kinf__json_member(event, KINF_STR("type"), &type) && type.type == KINF__JSON_STRING &&
        kinf__json_member(event, KINF_STR("object"), &object))
        return dispatch(stream, type.raw, object.raw, err);
    (void)kinf__error_set(&why, KINF_ERR_PARSE, "no watch event: %.*s",
                          (int)(len < 100 ? len : 100), frame.bytes);
    return reject(stream, guess_object(frame), &why, err);
}

/* --- lines --- */

static bool is_too_long(const struct kinf__watch_stream *stream, size_t len)
{
    return len > stream->max_object_bytes && len - stream->max_object_bytes > ENVELOPE_MAX;
}

static int on_line(const struct kinf__watch_stream *stream, struct kinf_str line,
                   struct kinf_error *err)
{
    if (is_too_long(stream, line.len))
        return reject_too_large(stream, guess_object(line), err);
    for (line = skip_white(line); line.len != 0; line = skip_white(line)) {
        size_t len;
        int r = usual_event(stream, line, &len, err);

        if (r == 0 && len == 0)
            r = any_event(stream, line, &len, err);
        if (r < 0)
            return r;
        line = skip(line, len);
    }
    return 0;
}

static void drop_tail(struct kinf__watch_stream *stream)
{
    stream->tail.len = 0;
    if (stream->tail.size > TAIL_SIZE_KEPT)
        kinf__buffer_release(&stream->tail);
}

/* The end of a line whose beginning came earlier. */
static int end_line(struct kinf__watch_stream *stream, struct kinf_str piece,
                    struct kinf_error *err)
{
    struct kinf_str line = piece;
    int r;

    if (stream->is_skipping) {
        stream->is_skipping = false;
        return 0;
    }
    if (stream->tail.len != 0) {
        if (kinf__buffer_append_str(&stream->tail, piece) < 0)
            return kinf__error_no_memory(err);
        line = kinf__buffer_str(&stream->tail);
    }
    r = on_line(stream, line, err);
    drop_tail(stream);
    return r;
}

/* A piece of a line that goes on. */
static int keep(struct kinf__watch_stream *stream, struct kinf_str piece, struct kinf_error *err)
{
    if (stream->is_skipping)
        return 0;
    if (kinf__buffer_append_str(&stream->tail, piece) < 0)
        return kinf__error_no_memory(err);
    if (is_too_long(stream, stream->tail.len)) {
        int r = reject_too_large(stream, guess_object(kinf__buffer_str(&stream->tail)), err);

        stream->is_skipping = true;
        drop_tail(stream);
        return r;
    }
    return 0;
}

void kinf__watch_stream_init(struct kinf__watch_stream *stream,
                             struct kinf__object_decoder *decoder, size_t max_object_bytes,
                             const struct kinf__watch_stream_callbacks *callbacks)
{
    *stream = (struct kinf__watch_stream){ .decoder = decoder,
                                           .callbacks = callbacks,
                                           .max_object_bytes = max_object_bytes };
}

void kinf__watch_stream_release(struct kinf__watch_stream *stream)
{
    kinf__buffer_release(&stream->tail);
}

void kinf__watch_stream_reset(struct kinf__watch_stream *stream)
{
    drop_tail(stream);
    stream->is_skipping = false;
}

int kinf__watch_stream_feed(struct kinf__watch_stream *stream, const char *bytes, size_t len,
                            struct kinf_error *err)
{
    struct kinf_str rest = { bytes, len };

    while (rest.len != 0) {
        const char *newline = memchr(rest.bytes, '\n', rest.len);
        size_t line_len;
        int r;

        if (newline == NULL)
            return keep(stream, rest, err);
        line_len = (size_t)(newline - rest.bytes);
        r = end_line(stream, (struct kinf_str){ rest.bytes, line_len }, err);
        if (r < 0)
            return r;
        rest = skip(rest, line_len + 1);
    }
    return 0;
}

int kinf__watch_stream_finish(struct kinf__watch_stream *stream, struct kinf_error *err)
{
    struct kinf_str line = skip_white(kinf__buffer_str(&stream->tail));
    size_t len;
    int r = 0;

    if (line.len != 0 && kinf__json_scan(line, true, &len) == KINF_ERR_TRUNCATED)
        return kinf__error_set(err, KINF_ERR_TRUNCATED, "the watch ends inside an event");
    if (line.len != 0)
        r = on_line(stream, line, err);
    kinf__watch_stream_reset(stream);
    return r;
}
