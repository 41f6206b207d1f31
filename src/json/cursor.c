/*
 * Stepping over values by their quotes and brackets. Neighbours: path.c and value.c walk with
 * cursors; block.h finds bytes. Invariant: blocks are loaded one behind the other and only once, up
 * to that of the place, since what is a string in one depends on those in front.
 */
#include "json/cursor.h"

#include <string.h>

#include "json/block.h"
#include "json/scan_priv.h"

static const struct kinf__json_block_ops base_ops = {
    kinf__json_mark,
    kinf__json_fill,
    kinf__json_count,
};

#if defined(KINF__JSON_AVX2)
static const struct kinf__json_block_ops avx2_ops = {
    kinf__json_mark_avx2,
    kinf__json_fill_avx2,
    kinf__json_count_avx2,
};
#endif

KINF__ALWAYS_INLINE void read_marks(struct kinf__json_cursor *cursor,
                                    const struct kinf__json_marks *marks,
                                    const struct kinf__json_block_ops *ops)
{
    const uint64_t escaped = kinf__json_places_escaped(marks->backslashes, &cursor->escaped);
    uint64_t strings;

    cursor->quotes = marks->quotes & ~escaped;
    strings = ops->fill(cursor->quotes) ^ cursor->in_string;
    cursor->in_string = -(strings >> 63);
    cursor->opens = marks->opens & ~strings;
    cursor->closes = marks->closes & ~strings;
    cursor->n_loaded += KINF__JSON_BLOCK;
}

KINF__ALWAYS_INLINE void load_whole_block(struct kinf__json_cursor *cursor,
                                          const struct kinf__json_block_ops *ops)
{
    struct kinf__json_marks marks = ops->mark(cursor->start + cursor->n_loaded);

    read_marks(cursor, &marks, ops);
}

static void load_last_block(struct kinf__json_cursor *cursor)
{
    uint8_t block[KINF__JSON_BLOCK] = { 0 };
    struct kinf__json_marks marks;

    memcpy(block, cursor->start + cursor->n_loaded, cursor->len - cursor->n_loaded);
    marks = kinf__json_mark(block);
    read_marks(cursor, &marks, &base_ops);
}

/* From the block that was loaded last, which is done with, to the next one in which `n_open`
 * containers may end, or the last whole one; there is one. Returns how many are open in front of
 * it. */
KINF__ALWAYS_INLINE unsigned skim_with(struct kinf__json_cursor *cursor, unsigned n_open,
                                       const struct kinf__json_block_ops *ops)
{
    /* A copy that nothing else can point to stays in registers. */
    struct kinf__json_cursor copy = *cursor; /* untested: run, but not counted where inlined */
    unsigned n_closes;

    for (;;) {
        load_whole_block(&copy, ops);
        n_closes = ops->count(copy.closes);
        if (n_closes >= n_open || copy.len - copy.n_loaded < KINF__JSON_BLOCK)
            break;
        n_open += ops->count(copy.opens) - n_closes;
    }
    *cursor = copy;
    return n_open;
}

#if defined(KINF__JSON_AVX2)

KINF__JSON_TARGET_AVX2 static void load_whole_block_avx2(struct kinf__json_cursor *cursor)
{
    load_whole_block(cursor, &avx2_ops);
}

KINF__JSON_TARGET_AVX2 static unsigned skim_avx2(struct kinf__json_cursor *cursor, unsigned n_open)
{
    return skim_with(cursor, n_open, &avx2_ops);
}

static void load_whole_block_best(struct kinf__json_cursor *cursor)
{
    if (KINF__LIKELY(kinf__json_has_avx2()))
        load_whole_block_avx2(cursor);
    else
        load_whole_block(cursor, &base_ops);
}

static unsigned skim(struct kinf__json_cursor *cursor, unsigned n_open)
{
    return KINF__LIKELY(kinf__json_has_avx2()) ? skim_avx2(cursor, n_open)
                                               : skim_with(cursor, n_open, &base_ops);
}

#else

static void load_whole_block_best(struct kinf__json_cursor *cursor)
{
    load_whole_block(cursor, &base_ops);
}

static unsigned skim(struct kinf__json_cursor *cursor, unsigned n_open)
{
    return skim_with(cursor, n_open, &base_ops);
}

#endif

static inline bool has_whole_block(const struct kinf__json_cursor *cursor)
{
    return cursor->n_loaded < cursor->len && cursor->len - cursor->n_loaded >= KINF__JSON_BLOCK;
}

/* Whether `at` is in the text; its block is loaded then. */
static inline bool reach(struct kinf__json_cursor *cursor, size_t at)
{
    if (at >= cursor->len)
        return false;
    while (at >= cursor->n_loaded) {
        if (has_whole_block(cursor))
            load_whole_block_best(cursor);
        else
            load_last_block(cursor);
    }
    return true;
}

/* From behind an opening quote to behind the closing one. */
static size_t behind_string(struct kinf__json_cursor *cursor, size_t at)
{
    uint64_t quotes;

    while (reach(cursor, at)) {
        quotes = cursor->quotes >> (at % KINF__JSON_BLOCK);
        if (quotes != 0)
            return at + (size_t)__builtin_ctzll(quotes) + 1;
        at = cursor->n_loaded;
    }
    return cursor->len;
}

/* Whether the outermost of `*n_open` containers ends in the loaded block, at a place in `mask`.
 * Writes the place of its bracket, or how many are open behind the block. */
static bool end_in_block(const struct kinf__json_cursor *cursor, uint64_t mask, unsigned *n_open,
                         unsigned *ret_place)
{
    uint64_t opens = cursor->opens & mask, closes = cursor->closes & mask, close;

    for (; closes != 0; closes ^= close) {
        close = closes & -closes;
        *n_open += kinf__json_count(opens & (close - 1)) - 1;
        if (*n_open == 0) {
            *ret_place = (unsigned)__builtin_ctzll(close);
            return true;
        }
        opens &= -close;
    }
    *n_open += kinf__json_count(opens);
    return false;
}

/* Behind the bracket that closes the outermost of `n_open` containers. */
static size_t behind_containers(struct kinf__json_cursor *cursor, size_t at, unsigned n_open)
{
    uint64_t mask = ~UINT64_C(0) << (at % KINF__JSON_BLOCK);
    unsigned place;

    while (reach(cursor, at)) {
        if (end_in_block(cursor, mask, &n_open, &place))
            return cursor->n_loaded - KINF__JSON_BLOCK + place + 1;
        at = cursor->n_loaded;
        mask = ~UINT64_C(0);
        if (has_whole_block(cursor)) {
            n_open = skim(cursor, n_open);
            at = cursor->n_loaded - KINF__JSON_BLOCK;
        }
    }
    return cursor->len;
}

static inline bool ends_plain_value(uint8_t byte)
{
    return byte == ',' || byte <= ' ' || (byte | 0x20) == '}';
}

/* At least one byte, so that every walk ends. */
static size_t behind_plain_value(const struct kinf__json_cursor *cursor, size_t at)
{
    do {
        at++;
    } while (at < cursor->len && !ends_plain_value(cursor->start[at]));
    return at;
}

static inline void skip_white(struct kinf__json_cursor *cursor)
{
    const uint8_t *end = cursor->start + cursor->len;

    cursor->at = (size_t)(kinf__json_skip_white(cursor->start + cursor->at, end) - cursor->start);
}

static inline bool is_at(const struct kinf__json_cursor *cursor, uint8_t byte)
{
    return cursor->at < cursor->len && cursor->start[cursor->at] == byte;
}

void kinf__json_cursor_init(struct kinf__json_cursor *cursor, struct kinf_str text)
{
    *cursor = (struct kinf__json_cursor){ (const uint8_t *)text.bytes, .len = text.len };
    if (text.len != 0)
        skip_white(cursor);
}

enum kinf__json_type kinf__json_cursor_type(const struct kinf__json_cursor *cursor)
{
    return cursor->at < cursor->len ? kinf__json_type_at(cursor->start[cursor->at])
                                    : KINF__JSON_NULL;
}

bool kinf__json_cursor_enter(struct kinf__json_cursor *cursor, enum kinf__json_type container)
{
    if (!is_at(cursor, container == KINF__JSON_OBJECT ? '{' : '['))
        return false;
    cursor->at++;
    cursor->depth++;
    return true;
}

bool kinf__json_cursor_next(struct kinf__json_cursor *cursor, enum kinf__json_type container,
                            struct kinf_str *ret_key)
{
    size_t key;

    skip_white(cursor);
    if (is_at(cursor, ',')) {
        cursor->at++;
        skip_white(cursor);
    }
    if (cursor->at == cursor->len)
        return false;
    if ((cursor->start[cursor->at] | 0x20) == '}') {
        cursor->at++;
        cursor->depth--;
        return false;
    }
    if (container == KINF__JSON_ARRAY)
        return true;
    key = cursor->at;
    cursor->at = behind_string(cursor, key + 1);
    *ret_key = (struct kinf_str){ (const char *)cursor->start + key, cursor->at - key };
    skip_white(cursor);
    cursor->at += is_at(cursor, ':');
    skip_white(cursor);
    return cursor->at < cursor->len;
}

void kinf__json_cursor_skip(struct kinf__json_cursor *cursor)
{
    if (cursor->at == cursor->len)
        return;
    switch (cursor->start[cursor->at]) {
    case '"':
        cursor->at = behind_string(cursor, cursor->at + 1);
        break;
    case '{':
    case '[':
        cursor->at = behind_containers(cursor, cursor->at + 1, 1);
        break;
    default:
        cursor->at = behind_plain_value(cursor, cursor->at);
        break;
    }
}

struct kinf__json_value kinf__json_cursor_take(struct kinf__json_cursor *cursor)
{
    struct kinf__json_value value = { .type = kinf__json_cursor_type(cursor) };
    size_t start = cursor->at;

    kinf__json_cursor_skip(cursor);
    value.raw = (struct kinf_str){ (const char *)cursor->start + start, cursor->at - start };
    return value;
}

void kinf__json_cursor_leave(struct kinf__json_cursor *cursor, unsigned depth)
{
    if (cursor->depth > depth)
        cursor->at = behind_containers(cursor, cursor->at, cursor->depth - depth);
    cursor->depth = depth;
}

bool kinf__json_cursor_find(struct kinf__json_cursor *cursor, struct kinf_str key)
{
    struct kinf_str raw_key;

    if (!kinf__json_cursor_enter(cursor, KINF__JSON_OBJECT))
        return false;
    while (kinf__json_cursor_next(cursor, KINF__JSON_OBJECT, &raw_key)) {
        if (kinf__json_string_equals(raw_key, key))
            return true;
        kinf__json_cursor_skip(cursor);
    }
    return false;
}
