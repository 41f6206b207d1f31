/*
 * Strings of JSON. Neighbours: table/ and serve/ put texts of others into what they say.
 */
#include "json/quote.h"

#include <stdint.h>
#include <string.h>

#define REPLACEMENT_LEN 3 /* of U+FFFD in UTF-8 */

/* The length of the UTF-8 sequence at the beginning of `bytes`; 0 if there is none. */
static size_t sequence_len(const uint8_t *bytes, size_t len)
{
    size_t n = bytes[0] < 0x80   ? 1
               : bytes[0] < 0xc2 ? 0
               : bytes[0] < 0xe0 ? 2
               : bytes[0] < 0xf0 ? 3
                                 : 4;
    uint8_t low = 0x80, high = 0xbf;

    if (n == 0 || bytes[0] > 0xf4 || n > len)
        return 0;
    if (bytes[0] == 0xe0)
        low = 0xa0;
    else if (bytes[0] == 0xf0)
        low = 0x90;
    else if (bytes[0] == 0xed)
        high = 0x9f;
    else if (bytes[0] == 0xf4)
        high = 0x8f;
    for (size_t i = 1; i < n; i++) {
        if (bytes[i] < low || bytes[i] > high)
            return 0;
        low = 0x80;
        high = 0xbf;
    }
    return n;
}

static int append_escape(struct kinf__buffer *out, uint8_t c)
{
    static const char shorts[] = "\"\"\\\\\nn\rr\tt\bb\ff";

    for (const char *pair = shorts; *pair != '\0'; pair += 2) {
        if ((uint8_t)*pair == c)
            return kinf__buffer_printf(out, "\\%c", pair[1]);
    }
    return kinf__buffer_printf(out, "\\u%04x", c);
}

static bool needs_escape(uint8_t c)
{
    return c < 0x20 || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&';
}

int kinf__quote(struct kinf__buffer *out, struct kinf_str text)
{
    const uint8_t *bytes = (const uint8_t *)text.bytes;
    int failed = kinf__buffer_append(out, "\"", 1);

    for (size_t i = 0, n; failed == 0 && i < text.len; i += n) {
        n = sequence_len(bytes + i, text.len - i);
        if (n == 0) {
            failed = kinf__buffer_append_str(out, KINF_STR("\\ufffd"));
            n = 1;
        } else if (needs_escape(bytes[i])) {
            failed = append_escape(out, bytes[i]);
        } else {
            while (i + n < text.len && bytes[i + n] < 0x80 && !needs_escape(bytes[i + n]))
                n++;
            failed = kinf__buffer_append(out, bytes + i, n);
        }
    }
    return failed < 0 ? failed : kinf__buffer_append(out, "\"", 1);
}

size_t kinf__quote_fit(struct kinf_str text, size_t max)
{
    const uint8_t *bytes = (const uint8_t *)text.bytes;
    size_t i = 0;

    while (i < text.len) {
        size_t n = sequence_len(bytes + i, text.len - i);
        size_t read_len = n != 0 ? n : REPLACEMENT_LEN;

        if (read_len > max)
            break;
        max -= read_len;
        i += n != 0 ? n : 1;
    }
    return i;
}

bool kinf__is_utf8(struct kinf_str text)
{
    const uint8_t *bytes = (const uint8_t *)text.bytes;

    for (size_t i = 0, n; i < text.len; i += n) {
        n = sequence_len(bytes + i, text.len - i);
        if (n == 0)
            return false;
    }
    return true;
}
