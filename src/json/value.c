/*
 * Values in text that was scanned before: walking, members, decoding of strings. Neighbours:
 * cursor.c, which steps over values; path.c and prune.c. Nothing here allocates.
 */
#include "json/scan.h"

#include <string.h>

#include "json/cursor.h"
#include "json/scan_priv.h"

#define CHARACTER_REPLACEMENT 0xfffdU

/* Bytes of one character in UTF-8 at most. */
#define N_UTF8_BYTES 4

static bool is_white(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

/* The bytes between the quotes. */
static struct kinf_str string_inside(struct kinf_str raw)
{
    if (raw.len < 2)
        return (struct kinf_str){ raw.bytes, 0 };
    return (struct kinf_str){ raw.bytes + 1, raw.len - 2 };
}

static unsigned hex_digit(char digit)
{
    return digit <= '9' ? (unsigned)(digit - '0') : (unsigned)((digit | 0x20) - 'a' + 10);
}

/* The code unit of an escape that starts at `at`; 0 if there is none of the form \uXXXX. */
static unsigned code_unit(const char *at, const char *end)
{
    unsigned unit = 0;

    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return 0;
    for (int i = 2; i < 6; i++)
        unit = unit << 4 | hex_digit(at[i]);
    return unit;
}

static size_t encode_utf8(unsigned character, char out[N_UTF8_BYTES])
{
    size_t len = 0;

    if (character < 0x80) {
        out[len++] = (char)character;
        return len;
    }
    if (character < 0x800) {
        out[len++] = (char)(0xc0 | character >> 6);
    } else {
        if (character < 0x10000) {
            out[len++] = (char)(0xe0 | character >> 12);
        } else {
            out[len++] = (char)(0xf0 | character >> 18);
            out[len++] = (char)(0x80 | (character >> 12 & 0x3f));
        }
        out[len++] = (char)(0x80 | (character >> 6 & 0x3f));
    }
    out[len++] = (char)(0x80 | (character & 0x3f));
    return len;
}

/* Decodes the escape of the form \uXXXX, or the pair of them, at *at and moves *at behind it. */
static size_t decode_code_units(const char **at, const char *end, char out[N_UTF8_BYTES])
{
    unsigned unit = code_unit(*at, end), low;

    *at += 6;
    if (unit < 0xd800 || unit > 0xdfff)
        return encode_utf8(unit, out);
    low = code_unit(*at, end);
    if (unit > 0xdbff || low < 0xdc00 || low > 0xdfff)
        return encode_utf8(CHARACTER_REPLACEMENT, out);
    *at += 6;
    return encode_utf8(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00), out);
}

static size_t decode_escape(const char **at, const char *end, char out[N_UTF8_BYTES])
{
    static const char letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";
    const char *letter;
    char byte;

    if (end - *at < 2) {
        *at = end;
        return 0;
    }
    byte = (*at)[1];
    if (byte == 'u' && end - *at >= 6)
        return decode_code_units(at, end, out);
    letter = memchr(letters, byte, sizeof letters - 1);
    out[0] = letter != NULL ? meanings[letter - letters] : byte;
    *at += 2;
    return 1;
}

/* The next run of decoded bytes of a string's inside: a stretch of the text itself, or of `room`.
 * Empty at the end. */
static struct kinf_str next_run(const char **at, const char *end, char room[N_UTF8_BYTES])
{
    struct kinf_str run = { *at, 0 };
    const char *backslash;

    if (*at == end)
        return run;
    if (**at == '\\') {
        run.bytes = room;
        run.len = decode_escape(at, end, room);
        return run;
    }
    backslash = memchr(*at, '\\', (size_t)(end - *at));
    run.len = (size_t)((backslash != NULL ? backslash : end) - *at);
    *at += run.len;
    return run;
}

bool kinf__json_iter_init(struct kinf__json_iter *iter, struct kinf__json_value value)
{
    if ((value.type != KINF__JSON_OBJECT && value.type != KINF__JSON_ARRAY) || value.raw.len < 2)
        return false;
    iter->is_object = value.type == KINF__JSON_OBJECT;
    iter->at = value.raw.bytes + 1;
    iter->end = value.raw.bytes + value.raw.len - 1;
    return true;
}

bool kinf__json_iter_next(struct kinf__json_iter *iter, struct kinf_str *ret_key,
                          struct kinf__json_value *ret_value)
{
    struct kinf_str rest = { iter->at, (size_t)(iter->end - iter->at) }, key = { "", 0 };
    struct kinf__json_cursor cursor;

    kinf__json_cursor_init(&cursor, rest);
    iter->at = iter->end;
    if (!kinf__json_cursor_next(&cursor, iter->is_object ? KINF__JSON_OBJECT : KINF__JSON_ARRAY,
                                &key))
        return false;
    *ret_key = key;
    *ret_value = kinf__json_cursor_take(&cursor);
    iter->at = rest.bytes + cursor.at;
    return true;
}

struct kinf__json_value kinf__json_value_of(struct kinf_str text)
{
    while (text.len > 0 && is_white(text.bytes[0])) {
        text.bytes++;
        text.len--;
    }
    while (text.len > 0 && is_white(text.bytes[text.len - 1]))
        text.len--;
    return (struct kinf__json_value){
        text.len > 0 ? kinf__json_type_at((uint8_t)text.bytes[0]) : KINF__JSON_NULL,
        text,
    };
}

size_t kinf__json_unescape(struct kinf_str raw, char *out, size_t size)
{
    struct kinf_str inside = string_inside(raw), run;
    const char *at = inside.bytes, *end = inside.bytes + inside.len;
    char room[N_UTF8_BYTES];
    size_t len = 0;

    for (run = next_run(&at, end, room); run.len > 0; run = next_run(&at, end, room)) {
        if (run.len <= size && len <= size - run.len)
            memcpy(out + len, run.bytes, run.len);
        len += run.len;
    }
    return len;
}

bool kinf__json_string_equals(struct kinf_str raw, struct kinf_str text)
{
    struct kinf_str inside = string_inside(raw), run;
    const char *at = inside.bytes, *end = inside.bytes + inside.len;
    char room[N_UTF8_BYTES];
    size_t len = 0;

    /* An escape is longer than what it stands for. */
    if (inside.len <= text.len)
        return kinf_str_equal(inside, text) && memchr(inside.bytes, '\\', inside.len) == NULL;
    for (run = next_run(&at, end, room); run.len > 0; run = next_run(&at, end, room)) {
        if (run.len > text.len - len || memcmp(text.bytes + len, run.bytes, run.len) != 0)
            return false;
        len += run.len;
    }
    return len == text.len;
}

bool kinf__json_member(struct kinf__json_value value, struct kinf_str key,
                       struct kinf__json_value *ret_value)
{
    struct kinf__json_cursor cursor;

    kinf__json_cursor_init(&cursor, value.raw);
    if (value.type != KINF__JSON_OBJECT || !kinf__json_cursor_find(&cursor, key))
        return false;
    *ret_value = kinf__json_cursor_take(&cursor);
    return true;
}
