/*
 * LIST bodies. Neighbours: the reflector feeds what comes from the socket; src/object makes the
 * objects. Invariants: `tail` starts at the value, key or mark that the state says is next; nothing
 * is taken from it before it is complete, so every state can be entered again with more bytes.
 */
#include "reflector/list_stream.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "json/scan.h"

/* A larger tail is given back when its value is done. */
#define TAIL_SIZE_KEPT (1 << 20)
/* Items of one list are much alike: one is not looked at before an eighth more is there than the
 * last one had, which saves scanning most of them in vain. Above this only the doubling counts. */
#define HOLD_MAX 65536

/* A place in the bytes at hand. */
struct cursor {
    struct kinf_str text;
    size_t at;
    bool is_final;
};

typedef int state_fn(struct kinf__list_stream *stream, struct cursor *cursor,
                     struct kinf_error *err);

static const struct {
    struct kinf_str key;
    enum kinf__list_member member;
} members[] = {
    { { "kind", 4 }, KINF__LIST_KIND },
    { { "apiVersion", 10 }, KINF__LIST_API_VERSION },
    { { "metadata", 8 }, KINF__LIST_METADATA },
    { { "items", 5 }, KINF__LIST_ITEMS },
};

const char *kinf__list_stream_state_to_string(enum kinf__list_stream_state state)
{
    static const char *const names[] = {
#define X(state_, name) [state_] = name,
        KINF__LIST_STREAM_STATES(X)
#undef X
    };

    return (size_t)state < KINF__ARRAY_LEN(names) ? names[state] : "unknown";
}

/* --- bytes --- */

static struct kinf_str rest_of(const struct cursor *cursor)
{
    return (struct kinf_str){ cursor->text.bytes + cursor->at, cursor->text.len - cursor->at };
}

/* The next byte that is no white space, not taken. Errors: KINF_ERR_TRUNCATED. */
static int peek(struct cursor *cursor, char *ret_byte)
{
    for (; cursor->at < cursor->text.len; cursor->at++) {
        char c = cursor->text.bytes[cursor->at];

        if (c != ' ' && c != '\n' && c != '\r' && c != '\t') {
            *ret_byte = c;
            return 0;
        }
    }
    return KINF_ERR_TRUNCATED;
}

static int fail(const struct kinf__list_stream *stream, const struct cursor *cursor,
                struct kinf_error *err)
{
    int r = kinf__json_error(err, KINF_ERR_PARSE, rest_of(cursor), 0);

    kinf__error_prefix(err, "list: %s expected", kinf__list_stream_state_to_string(stream->state));
    return r;
}

/* Takes one of two marks; each leads to a state. */
static int take_mark(struct kinf__list_stream *stream, struct cursor *cursor, char a,
                     enum kinf__list_stream_state after_a, char b,
                     enum kinf__list_stream_state after_b, struct kinf_error *err)
{
    char c;

    if (peek(cursor, &c) < 0)
        return KINF_ERR_TRUNCATED;
    if (c != a && c != b)
        return fail(stream, cursor, err);
    cursor->at++;
    stream->state = c == a ? after_a : after_b;
    return 0;
}

/* Takes one value that is small enough to be kept. */
static int take_value(struct kinf__list_stream *stream, struct cursor *cursor,
                      struct kinf_str *ret_raw, struct kinf_error *err)
{
    struct kinf_str rest = rest_of(cursor);
    size_t len;
    int r = kinf__json_scan(rest, cursor->is_final, &len);

    if ((r == KINF_ERR_TRUNCATED || r == 0) && len > stream->max_object_bytes)
        return kinf__error_set(err, KINF_ERR_LIMIT, "list: a member is above %zu bytes",
                               stream->max_object_bytes);
    if (r == KINF_ERR_TRUNCATED)
        return r;
    if (r < 0) {
        (void)kinf__json_error(err, r, rest, len);
        kinf__error_prefix(err, "list");
        return r;
    }
    *ret_raw = (struct kinf_str){ rest.bytes, len };
    cursor->at += len;
    return 0;
}

/* --- members --- */

/* A string of the metadata, "" if it is not there or no string. */
static int copy_string(struct kinf__json_value metadata, struct kinf_str key, char *buf,
                       size_t size, struct kinf_error *err)
{
    struct kinf__json_value value;
    int r;

    buf[0] = '\0';
    if (!kinf__json_member(metadata, key, &value) || value.type != KINF__JSON_STRING)
        return 0;
    r = kinf_json_string(value.raw, buf, size);
    if (r < 0)
        return kinf__error_set(err, r == KINF_ERR_LIMIT ? KINF_ERR_LIMIT : KINF_ERR_PARSE,
                               "list: cannot take metadata.%s of %zu bytes", key.bytes,
                               value.raw.len);
    return 0;
}

/* -1 for what is no count, or cannot be meant. */
static int64_t count_of(struct kinf__json_value value)
{
    char digits[13];

    if (value.type != KINF__JSON_NUMBER || value.raw.len >= sizeof digits ||
        value.raw.bytes[0] == '-')
        return -1;
    memcpy(digits, value.raw.bytes, value.raw.len);
    digits[value.raw.len] = '\0';
    return strtoll(digits, NULL, 10);
}

static int note_metadata(struct kinf__list_stream *stream, struct kinf__json_value metadata,
                         struct kinf_error *err)
{
    struct kinf__json_value count;
    int r = copy_string(metadata, KINF_STR("resourceVersion"), stream->rv, sizeof stream->rv, err);

    if (r == 0)
        r = copy_string(metadata, KINF_STR("continue"), stream->continue_token,
                        sizeof stream->continue_token, err);
    if (kinf__json_member(metadata, KINF_STR("remainingItemCount"), &count))
        stream->remaining_item_count = count_of(count);
    return r;
}

/* A list of metadata alone says so; its items, which have no kind in a list of the type itself, do
 * not. */
static int check_kind(const struct kinf__list_stream *stream, struct kinf_str raw,
                      struct kinf_error *err)
{
    const struct kinf__object_decoder *decoder = stream->decoder;
    char wanted[64];

    if (strcmp(decoder->kind, decoder->type->kind) == 0)
        return 0;
    snprintf(wanted, sizeof wanted, "%sList", decoder->kind);
    if (kinf__json_string_equals(raw, (struct kinf_str){ wanted, strlen(wanted) }))
        return 0;
    return kinf__error_set(err, KINF_ERR_UNSUPPORTED, "list: the server sent %.*s, not a %s",
                           (int)(raw.len < 50 ? raw.len : 50), raw.bytes, wanted);
}

static int note_member(struct kinf__list_stream *stream, struct kinf_str raw,
                       struct kinf_error *err)
{
    static const struct kinf_str meta_group = { "\"meta.k8s.io/", 13 };
    struct kinf__json_value value = kinf__json_value_of(raw);

    if (stream->member == KINF__LIST_METADATA)
        return note_metadata(stream, value, err);
    if (stream->member == KINF__LIST_KIND)
        stream->is_table_kind =
            value.type == KINF__JSON_STRING && kinf__json_string_equals(raw, KINF_STR("Table"));
    if (stream->member == KINF__LIST_API_VERSION)
        stream->is_meta_group =
            raw.len > meta_group.len && memcmp(raw.bytes, meta_group.bytes, meta_group.len) == 0;
    if (stream->member == KINF__LIST_KIND && !stream->is_table_kind)
        return check_kind(stream, raw, err);
    if (stream->is_table_kind && stream->is_meta_group)
        return kinf__error_set(err, KINF_ERR_UNSUPPORTED, "list: the server sent a Table");
    return 0;
}

static int take_key(struct kinf__list_stream *stream, struct cursor *cursor, struct kinf_error *err)
{
    struct kinf_str raw;
    char c;
    int r;

    if (peek(cursor, &c) < 0)
        return KINF_ERR_TRUNCATED;
    if (c != '"')
        return fail(stream, cursor, err);
    r = take_value(stream, cursor, &raw, err);
    if (r < 0)
        return r;
    stream->member = KINF__LIST_OTHER;
    for (size_t i = 0; i < KINF__ARRAY_LEN(members); i++) {
        if (kinf__json_string_equals(raw, members[i].key))
            stream->member = members[i].member;
    }
    stream->state = KINF__LIST_COLON;
    return 0;
}

static int take_first_key(struct kinf__list_stream *stream, struct cursor *cursor,
                          struct kinf_error *err)
{
    char c;

    if (peek(cursor, &c) < 0)
        return KINF_ERR_TRUNCATED;
    if (c != '}')
        return take_key(stream, cursor, err);
    cursor->at++;
    stream->state = KINF__LIST_END;
    return 0;
}

static int open_items(struct kinf__list_stream *stream, struct cursor *cursor,
                      struct kinf_error *err)
{
    if (stream->has_items)
        return kinf__error_set(err, KINF_ERR_PARSE, "list: items are there twice");
    stream->has_items = true;
    cursor->at++;
    stream->state = KINF__LIST_FIRST_ITEM;
    return 0;
}

static int take_member(struct kinf__list_stream *stream, struct cursor *cursor,
                       struct kinf_error *err)
{
    struct kinf_str raw;
    char c;
    int r;

    if (peek(cursor, &c) < 0)
        return KINF_ERR_TRUNCATED;
    if (stream->member == KINF__LIST_ITEMS && c == '[')
        return open_items(stream, cursor, err);
    r = take_value(stream, cursor, &raw, err);
    if (r < 0)
        return r;
    if (stream->member == KINF__LIST_ITEMS && !kinf_str_equal(raw, KINF_STR("null")))
        return kinf__error_set(err, KINF_ERR_PARSE, "list: items are no array");
    stream->has_items |= stream->member == KINF__LIST_ITEMS;
    stream->state = KINF__LIST_VALUE_END;
    return note_member(stream, raw, err);
}

/* --- items --- */

static int reject(const struct kinf__list_stream *stream, struct kinf_str item,
                  const struct kinf_error *why, struct kinf_error *err)
{
    char key[KINF__KEY_SIZE];

    if (!kinf__object_guess_key(stream->decoder->type, item, key, sizeof key))
        key[0] = '\0';
    return stream->callbacks->on_reject(key, why, stream->callbacks->ctx, err);
}

static int reject_too_large(const struct kinf__list_stream *stream, struct kinf_str item,
                            struct kinf_error *err)
{
    struct kinf_error why = KINF_ERROR_INIT;

    (void)kinf__error_set(&why, KINF_ERR_LIMIT, "object above %zu bytes", stream->max_object_bytes);
    return reject(stream, item, &why, err);
}

/* Passes over the item that is next by its brackets alone. */
static void start_skipping(struct kinf__list_stream *stream)
{
    stream->state = KINF__LIST_SKIP_ITEM;
    stream->skip_depth = 0;
    stream->skip_in_string = false;
    stream->skip_in_escape = false;
}

/* An item whose end is known. */
static int end_item(struct kinf__list_stream *stream, struct cursor *cursor, size_t len,
                    const struct kinf_object *take_object, struct kinf_error *err)
{
    struct kinf_str item = { cursor->text.bytes + cursor->at, len };
    size_t hold_len = len + len / 8;

    stream->state = KINF__LIST_ITEM_END;
    stream->hold_len = hold_len < HOLD_MAX ? hold_len : HOLD_MAX;
    if (stream->hold_len > stream->max_object_bytes)
        stream->hold_len = stream->max_object_bytes;
    cursor->at += len;
    if (len > stream->max_object_bytes) {
        kinf_object_unref(take_object);
        return reject_too_large(stream, item, err);
    }
    return stream->callbacks->on_object(take_object, stream->callbacks->ctx, err);
}

/* An item that gives no object. `len` is 0 when its end is unknown. */
static int leave_out(struct kinf__list_stream *stream, struct cursor *cursor, size_t len,
                     const struct kinf_error *why, struct kinf_error *err)
{
    struct kinf_str item = rest_of(cursor);

    if (len == 0 && why->code != KINF_ERR_LIMIT) {
        if (err != NULL)
            *err = *why;
        kinf__error_prefix(err, "list: item");
        return why->code;
    }
    if (len == 0) {
        start_skipping(stream);
    } else {
        stream->state = KINF__LIST_ITEM_END;
        item.len = len;
    }
    cursor->at += len;
    return reject(stream, item, why, err);
}

static int take_item(struct kinf__list_stream *stream, struct cursor *cursor,
                     struct kinf_error *err)
{
    struct kinf_error why = KINF_ERROR_INIT;
    const struct kinf_object *object;
    size_t len;
    char c;
    int r;

    if (peek(cursor, &c) < 0 || (rest_of(cursor).len < stream->hold_len && !cursor->is_final))
        return KINF_ERR_TRUNCATED;
    r = kinf__object_decode(stream->decoder, rest_of(cursor), cursor->is_final, &object, &len,
                            &why);
    if (r == 0)
        return end_item(stream, cursor, len, object, err);
    if (r == KINF_ERR_NO_MEMORY)
        return kinf__error_no_memory(err);
    if (r != KINF_ERR_TRUNCATED)
        return leave_out(stream, cursor, len, &why, err);
    if (rest_of(cursor).len <= stream->max_object_bytes)
        return r;
    start_skipping(stream);
    return reject_too_large(stream, rest_of(cursor), err);
}

static int take_first_item(struct kinf__list_stream *stream, struct cursor *cursor,
                           struct kinf_error *err)
{
    char c;

    (void)err;
    if (peek(cursor, &c) < 0)
        return KINF_ERR_TRUNCATED;
    if (c != ']') {
        stream->state = KINF__LIST_ITEM;
        return 0;
    }
    cursor->at++;
    stream->state = KINF__LIST_VALUE_END;
    return 0;
}

/* One byte of an item that is left out. Returns whether it was the last. */
static bool skip_byte(struct kinf__list_stream *stream, char c)
{
    if (stream->skip_in_string) {
        if (stream->skip_in_escape)
            stream->skip_in_escape = false;
        else if (c == '\\')
            stream->skip_in_escape = true;
        else if (c == '"')
            stream->skip_in_string = false;
        return !stream->skip_in_string && stream->skip_depth == 0;
    }
    if (c == '"')
        stream->skip_in_string = true;
    else if (c == '{' || c == '[')
        stream->skip_depth++;
    else if (c == '}' || c == ']')
        return --stream->skip_depth == 0;
    return false;
}

static int skip_item(struct kinf__list_stream *stream, struct cursor *cursor,
                     struct kinf_error *err)
{
    char first;

    if (stream->skip_depth == 0 && !stream->skip_in_string && peek(cursor, &first) == 0 &&
        strchr("{[\"", first) == NULL)
        return fail(stream, cursor, err);
    while (cursor->at < cursor->text.len) {
        if (skip_byte(stream, cursor->text.bytes[cursor->at++])) {
            stream->state = KINF__LIST_ITEM_END;
            return 0;
        }
    }
    return KINF_ERR_TRUNCATED;
}

/* --- the machine --- */

static int start(struct kinf__list_stream *stream, struct cursor *cursor, struct kinf_error *err)
{
    return take_mark(stream, cursor, '{', KINF__LIST_FIRST_KEY, '{', KINF__LIST_FIRST_KEY, err);
}

static int take_colon(struct kinf__list_stream *stream, struct cursor *cursor,
                      struct kinf_error *err)
{
    return take_mark(stream, cursor, ':', KINF__LIST_VALUE, ':', KINF__LIST_VALUE, err);
}

static int end_member(struct kinf__list_stream *stream, struct cursor *cursor,
                      struct kinf_error *err)
{
    return take_mark(stream, cursor, ',', KINF__LIST_KEY, '}', KINF__LIST_END, err);
}

static int after_item(struct kinf__list_stream *stream, struct cursor *cursor,
                      struct kinf_error *err)
{
    return take_mark(stream, cursor, ',', KINF__LIST_ITEM, ']', KINF__LIST_VALUE_END, err);
}

static int end(struct kinf__list_stream *stream, struct cursor *cursor, struct kinf_error *err)
{
    char c;

    return peek(cursor, &c) == 0 ? fail(stream, cursor, err) : KINF_ERR_TRUNCATED;
}

/* Takes what is complete of the bytes at hand; *ret_used is how much that was. */
static int run(struct kinf__list_stream *stream, struct kinf_str text, bool is_final,
               size_t *ret_used, struct kinf_error *err)
{
    static state_fn *const functions[] = {
        [KINF__LIST_START] = start,
        [KINF__LIST_FIRST_KEY] = take_first_key,
        [KINF__LIST_KEY] = take_key,
        [KINF__LIST_COLON] = take_colon,
        [KINF__LIST_VALUE] = take_member,
        [KINF__LIST_VALUE_END] = end_member,
        [KINF__LIST_FIRST_ITEM] = take_first_item,
        [KINF__LIST_ITEM] = take_item,
        [KINF__LIST_SKIP_ITEM] = skip_item,
        [KINF__LIST_ITEM_END] = after_item,
        [KINF__LIST_END] = end,
    };
    struct cursor cursor = { .text = text, .is_final = is_final };
    size_t pending;
    int r;

    do
        r = functions[stream->state](stream, &cursor, err);
    while (r == 0);
    if (r != KINF_ERR_TRUNCATED)
        return r;
    *ret_used = cursor.at;
    pending = text.len - cursor.at;
    stream->retry_len = 2 * pending;
    if (stream->state == KINF__LIST_ITEM && pending < stream->hold_len)
        stream->retry_len = stream->hold_len;
    if (pending <= stream->max_object_bytes && stream->retry_len > stream->max_object_bytes)
        stream->retry_len = stream->max_object_bytes + 1;
    return 0;
}

/* Puts as much behind the tail as the value that is next may need, and takes what is complete.
 * *ret_used is how much of the piece is done with. */
static void drop_tail(struct kinf__list_stream *stream)
{
    stream->tail.len = 0;
    if (stream->tail.size > TAIL_SIZE_KEPT)
        kinf__buffer_release(&stream->tail);
}

static int feed_tail(struct kinf__list_stream *stream, struct kinf_str piece, size_t *ret_used,
                     struct kinf_error *err)
{
    size_t before = stream->tail.len, used;
    size_t more = stream->retry_len > before ? stream->retry_len - before : 1;
    int r;

    if (more > piece.len)
        more = piece.len;
    if (kinf__buffer_append(&stream->tail, piece.bytes, more) < 0)
        return kinf__error_no_memory(err);
    *ret_used = more;
    if (stream->tail.len < stream->retry_len)
        return 0;
    r = run(stream, kinf__buffer_str(&stream->tail), false, &used, err);
    if (r < 0)
        return r;
    if (used < before) {
        kinf__buffer_consume(&stream->tail, used);
        return 0;
    }
    *ret_used = used - before;
    drop_tail(stream);
    return 0;
}

void kinf__list_stream_init(struct kinf__list_stream *stream, struct kinf__object_decoder *decoder,
                            size_t max_object_bytes,
                            const struct kinf__list_stream_callbacks *callbacks)
{
    *stream = (struct kinf__list_stream){ .decoder = decoder,
                                          .callbacks = callbacks,
                                          .max_object_bytes = max_object_bytes };
    kinf__list_stream_reset(stream);
}

void kinf__list_stream_release(struct kinf__list_stream *stream)
{
    kinf__buffer_release(&stream->tail);
}

void kinf__list_stream_reset(struct kinf__list_stream *stream)
{
    stream->state = KINF__LIST_START;
    drop_tail(stream);
    stream->retry_len = 0;
    stream->hold_len = 0;
    stream->has_items = false;
    stream->is_table_kind = false;
    stream->is_meta_group = false;
    stream->rv[0] = '\0';
    stream->continue_token[0] = '\0';
    stream->remaining_item_count = -1;
}

int kinf__list_stream_feed(struct kinf__list_stream *stream, const char *bytes, size_t len,
                           struct kinf_error *err)
{
    struct kinf_str piece = { bytes, len };
    size_t used;
    int r;

    while (stream->tail.len != 0 && piece.len != 0) {
        r = feed_tail(stream, piece, &used, err);
        if (r < 0)
            return r;
        piece = (struct kinf_str){ piece.bytes + used, piece.len - used };
    }
    if (piece.len == 0)
        return 0;
    r = run(stream, piece, false, &used, err);
    if (r == 0 && kinf__buffer_append(&stream->tail, piece.bytes + used, piece.len - used) < 0)
        return kinf__error_no_memory(err);
    return r;
}

int kinf__list_stream_finish(struct kinf__list_stream *stream, struct kinf_error *err)
{
    size_t used;
    int r = run(stream, kinf__buffer_str(&stream->tail), true, &used, err);

    if (r < 0)
        return r;
    drop_tail(stream);
    if (stream->state != KINF__LIST_END)
        return kinf__error_set(err, KINF_ERR_TRUNCATED, "the list ends before its JSON does");
    if (!stream->has_items)
        return kinf__error_set(err, KINF_ERR_PARSE, "list: no items");
    if (stream->rv[0] == '\0')
        return kinf__error_set(err, KINF_ERR_PARSE, "list: no metadata.resourceVersion");
    return 0;
}
