/*
 * Reading what stands behind the question mark, by the rules of Go's net/url, strconv and time,
 * whose complaints clients of kube-apiserver get to see. Neighbours: request.c.
 */
#include "serve/query.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define NAME_MAX_LEN 64 /* longer than every parameter that anybody asks for */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

size_t kinf__query_unescape(struct kinf_str from, bool plus_is_blank, char *to)
{
    size_t len = 0;

    for (size_t i = 0; i < from.len; i++) {
        char c = from.bytes[i];

        if (c == '%') {
            int high = i + 2 < from.len ? hex_digit(from.bytes[i + 1]) : -1;
            int low = i + 2 < from.len ? hex_digit(from.bytes[i + 2]) : -1;

            if (high < 0 || low < 0)
                return SIZE_MAX;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && plus_is_blank) {
            c = ' ';
        }
        to[len++] = c;
    }
    return len;
}

/* A pair with a semicolon in it counts for nothing, since Go 1.17. */
bool kinf__query_next(struct kinf_str *rest, struct kinf__query_pair *ret_pair)
{
    while (rest->len != 0) {
        const char *end = memchr(rest->bytes, '&', rest->len), *equals;
        struct kinf_str pair = { rest->bytes,
                                 end != NULL ? (size_t)(end - rest->bytes) : rest->len };
        size_t taken = pair.len + (end != NULL ? 1 : 0);

        rest->bytes += taken;
        rest->len -= taken;
        if (pair.len == 0 || memchr(pair.bytes, ';', pair.len) != NULL)
            continue;
        equals = memchr(pair.bytes, '=', pair.len);
        ret_pair->name = pair;
        ret_pair->value = (struct kinf_str){ pair.bytes + pair.len, 0 };
        if (equals != NULL) {
            ret_pair->name.len = (size_t)(equals - pair.bytes);
            ret_pair->value = (struct kinf_str){ equals + 1, pair.len - ret_pair->name.len - 1 };
        }
        return true;
    }
    return false;
}

bool kinf__query_is_named(struct kinf_str escaped, const char *name)
{
    char decoded[3 * NAME_MAX_LEN];
    size_t len;

    if (escaped.len > sizeof decoded)
        return false;
    len = kinf__query_unescape(escaped, true, decoded);
    return len != SIZE_MAX &&
           kinf_str_equal((struct kinf_str){ decoded, len }, kinf_str_from(name));
}

const char *kinf__query_parse_int(const char *text, int64_t *ret_number)
{
    const char *digits = *text == '-' || *text == '+' ? text + 1 : text;
    long long number;

    if (*digits == '\0' || strspn(digits, "0123456789") != strlen(digits))
        return "invalid syntax";
    errno = 0;
    number = strtoll(text, NULL, 10);
    if (errno == ERANGE)
        return "value out of range";
    *ret_number = number;
    return NULL;
}

const char *kinf__query_check_uint(const char *text)
{
    if (*text == '\0' || strspn(text, "0123456789") != strlen(text))
        return "invalid syntax";
    errno = 0;
    (void)strtoull(text, NULL, 10);
    return errno == ERANGE ? "value out of range" : NULL;
}

/* 0: no unit. */
static double ns_of_unit(const char *text, size_t len)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = { { "ns", 1 },   { "us", 1e3 }, { "\xc2\xb5s", 1e3 }, { "\xce\xbcs", 1e3 },
                  { "ms", 1e6 }, { "s", 1e9 },  { "m", 60e9 },        { "h", 3600e9 } };

    for (size_t i = 0; i < KINF__ARRAY_LEN(units); i++) {
        if (strlen(units[i].name) == len && memcmp(units[i].name, text, len) == 0)
            return units[i].ns;
    }
    return 0;
}

static bool fault(char *ret_fault, size_t size, const char *what, const char *text)
{
    char quoted[512];

    snprintf(ret_fault, size, "time: %s duration %s", what,
             kinf__query_quote(text, quoted, sizeof quoted));
    return true;
}

bool kinf__query_duration_fault(const char *text, char *ret_fault, size_t size)
{
    const char *at = *text == '-' || *text == '+' ? text + 1 : text;
    char unknown[64];
    double sum_ns = 0;

    if (strcmp(at, "0") == 0)
        return false;
    if (*at == '\0')
        return fault(ret_fault, size, "invalid", text);
    while (*at != '\0') {
        size_t whole = strspn(at, "0123456789"), part = 0, unit;
        const char *number = at;
        double unit_ns;

        at += whole;
        if (*at == '.') {
            part = strspn(at + 1, "0123456789");
            at += 1 + part;
        }
        if (whole + part == 0)
            return fault(ret_fault, size, "invalid", text);
        unit = strcspn(at, ".0123456789");
        if (unit == 0)
            return fault(ret_fault, size, "missing unit in", text);
        unit_ns = ns_of_unit(at, unit);
        if (unit_ns == 0) {
            snprintf(unknown, sizeof unknown, "unknown unit \"%.*s\" in",
                     (int)(unit < 32 ? unit : 32), at);
            return fault(ret_fault, size, unknown, text);
        }
        sum_ns += strtod(number, NULL) * unit_ns;
        if (sum_ns > (double)INT64_MAX)
            return fault(ret_fault, size, "invalid", text);
        at += unit;
    }
    return false;
}

/* The escape of one character, or the character. */
static size_t quote_one(unsigned char c, char *piece)
{
    static const char names[] = "a\ab\bf\fn\nr\rt\tv\v\"\"\\\\";

    for (size_t i = 1; i < sizeof names; i += 2) {
        if (names[i] == (char)c)
            return (size_t)sprintf(piece, "\\%c", names[i - 1]);
    }
    if (c < ' ' || c == 0x7f)
        return (size_t)sprintf(piece, "\\x%02x", c);
    piece[0] = (char)c;
    return 1;
}

const char *kinf__query_quote(const char *text, char *buf, size_t size)
{
    size_t len = 0;

    buf[len++] = '"';
    for (; *text != '\0' && len + 6 < size; text++)
        len += quote_one((unsigned char)*text, buf + len);
    buf[len++] = '"';
    buf[len] = '\0';
    return buf;
}
