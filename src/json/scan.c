/*
 * The byte scanner, token by token. Neighbours: compact.c, which is asked first; prune.c and tree.c,
 * which start scans of their own through scan_priv.h; block.h finds what ends or interrupts a
 * string. Invariant: nothing is read at or behind the scanner's end, and a failure is TRUNCATED only
 * if some continuation of the text would be accepted.
 */
#include "json/scan.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "json/scan_priv.h"
#include "json/block.h"

/* Bytes of text on each side of the place of an error. */
#define N_EXCERPT_BYTES 20

/* Which of the containers around a place are objects; the innermost one is apart. */
struct nesting {
    unsigned depth;
    unsigned floor; /* depth at which the scan started */
    bool is_object;
    uint64_t outer[(KINF__JSON_MAX_DEPTH + 63) / 64];
};

const uint8_t *kinf__json_scan_fail(struct kinf__json_scanner *scanner, int code, const uint8_t *at)
{
    scanner->code = code;
    scanner->failed_at = at;
    return NULL;
}

static const uint8_t *fail_parse(struct kinf__json_scanner *scanner, const uint8_t *at)
{
    return kinf__json_scan_fail(scanner, KINF_ERR_PARSE, at);
}

static const uint8_t *fail_truncated(struct kinf__json_scanner *scanner)
{
    return kinf__json_scan_fail(scanner, KINF_ERR_TRUNCATED, scanner->end);
}

/* One character outside ASCII: the well-formed sequences of RFC 3629, section 4. */
KINF__ALWAYS_INLINE const uint8_t *scan_utf8(struct kinf__json_scanner *scanner, const uint8_t *at)
{
    uint8_t lead = *at, low = 0x80, high = 0xbf;
    int n_more;

    if (lead < 0xc2 || lead > 0xf4)
        return fail_parse(scanner, at);
    n_more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    if (lead == 0xe0)
        low = 0xa0;
    else if (lead == 0xed)
        high = 0x9f;
    else if (lead == 0xf0)
        low = 0x90;
    else if (lead == 0xf4)
        high = 0x8f;
    for (at++; n_more > 0; n_more--, at++) {
        if (at == scanner->end)
            return fail_truncated(scanner);
        if (*at < low || *at > high)
            return fail_parse(scanner, at);
        low = 0x80;
        high = 0xbf;
    }
    return at;
}

static bool is_hex(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'f');
}

static const uint8_t *scan_escape(struct kinf__json_scanner *scanner, const uint8_t *at)
{
    scanner->has_escapes = true;
    if (++at == scanner->end)
        return fail_truncated(scanner);
    switch (*at) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return at + 1;
    case 'u':
        break;
    default:
        return fail_parse(scanner, at);
    }
    at++;
    for (int n_digits = 0; n_digits < 4; n_digits++, at++) {
        if (at == scanner->end)
            return fail_truncated(scanner);
        if (!is_hex(*at))
            return fail_parse(scanner, at);
    }
    return at;
}

static const uint8_t *scan_special(struct kinf__json_scanner *scanner, const uint8_t *at)
{
    do {
        if (*at == '\\')
            at = scan_escape(scanner, at);
        else if (*at >= 0x80)
            at = scan_utf8(scanner, at);
        else
            return fail_parse(scanner, at);
    } while (at != NULL && at < scanner->end && (*at == '\\' || *at >= 0x80));
    return at;
}

/* The last bytes of the text end in control bytes, at which every search stops. */
static void load_last_block(struct kinf__json_scanner *scanner, const uint8_t *at)
{
    uint8_t block[KINF__JSON_BLOCK] = { 0 };

    memcpy(block, at, (size_t)(scanner->end - at));
    scanner->specials = kinf__json_specials(block);
}

static inline void load_block(struct kinf__json_scanner *scanner)
{
    const uint8_t *at = scanner->start + scanner->n_loaded;

    if (KINF__LIKELY(scanner->end - at >= KINF__JSON_BLOCK))
        scanner->specials = kinf__json_specials(at);
    else
        load_last_block(scanner, at);
    scanner->n_loaded += KINF__JSON_BLOCK;
}

/* The first byte from `at` on that does not go on with a string by itself, or the end of the text.
 *
 * Blocks lie where they lie whatever the text is, so the processor can look at the next one before
 * it knows where this string ends; a search that starts anew at each string takes twice as long. */
static inline const uint8_t *skip_plain(struct kinf__json_scanner *scanner, const uint8_t *at)
{
    size_t offset = (size_t)(at - scanner->start);
    uint64_t specials;

    for (;;) {
        while (offset >= scanner->n_loaded)
            load_block(scanner);
        specials = scanner->specials >> (offset % KINF__JSON_BLOCK);
        if (specials != 0)
            return scanner->start + offset + __builtin_ctzll(specials);
        offset = scanner->n_loaded;
    }
}

/* From behind the opening quote to behind the closing one. */
static inline const uint8_t *scan_string(struct kinf__json_scanner *scanner, const uint8_t *at)
{
    do {
        at = skip_plain(scanner, at);
        if (at == scanner->end)
            return fail_truncated(scanner);
        if (KINF__LIKELY(*at == '"'))
            return at + 1;
        at = scan_special(scanner, at);
    } while (at != NULL);
    return NULL;
}

static inline bool is_digit(uint8_t byte)
{
    return (uint8_t)(byte - '0') <= 9;
}

static const uint8_t *scan_digits(struct kinf__json_scanner *scanner, const uint8_t *at)
{
    if (at == scanner->end)
        return fail_truncated(scanner);
    if (!is_digit(*at))
        return fail_parse(scanner, at);
    while (at < scanner->end && is_digit(*at))
        at++;
    return at;
}

static const uint8_t *scan_exponent(struct kinf__json_scanner *scanner, const uint8_t *at)
{
    at++;
    if (at < scanner->end && (*at == '+' || *at == '-'))
        at++;
    return scan_digits(scanner, at);
}

static const uint8_t *scan_number(struct kinf__json_scanner *scanner, const uint8_t *at)
{
    if (*at == '-')
        at++;
    if (at < scanner->end && *at == '0')
        at++;
    else
        at = scan_digits(scanner, at);
    if (at != NULL && at < scanner->end && *at == '.')
        at = scan_digits(scanner, at + 1);
    if (at != NULL && at < scanner->end && (*at | 0x20) == 'e')
        at = scan_exponent(scanner, at);
    if (at == scanner->end && !scanner->is_final)
        return fail_truncated(scanner);
    return at;
}

static const uint8_t *scan_literal(struct kinf__json_scanner *scanner, const uint8_t *at,
                                   const char *literal)
{
    for (; *literal != '\0'; literal++, at++) {
        if (at == scanner->end)
            return fail_truncated(scanner);
        if (*at != (uint8_t)*literal)
            return fail_parse(scanner, at);
    }
    return at;
}

/* What is neither a string nor a container. */
KINF__ALWAYS_INLINE const uint8_t *scan_plain_value(struct kinf__json_scanner *scanner,
                                                    const uint8_t *at)
{
    switch (*at) {
    case 't':
        return scan_literal(scanner, at, "true");
    case 'f':
        return scan_literal(scanner, at, "false");
    case 'n':
        return scan_literal(scanner, at, "null");
    default:
        if (*at != '-' && !is_digit(*at))
            return fail_parse(scanner, at);
        return scan_number(scanner, at);
    }
}

static inline const uint8_t *scan_key(struct kinf__json_scanner *scanner, const uint8_t *at,
                                      struct kinf_str *ret_key)
{
    const uint8_t *key = kinf__json_skip_white(at, scanner->end), *behind;

    if (key == scanner->end)
        return fail_truncated(scanner);
    if (*key != '"')
        return fail_parse(scanner, key);
    behind = scan_string(scanner, key + 1);
    if (behind == NULL)
        return NULL;
    at = kinf__json_skip_white(behind, scanner->end);
    if (at == scanner->end)
        return fail_truncated(scanner);
    if (*at != ':')
        return fail_parse(scanner, at);
    *ret_key = (struct kinf_str){ (const char *)key, (size_t)(behind - key) };
    return at + 1;
}

static inline void nesting_push(struct nesting *nesting, bool is_object)
{
    uint64_t *word = &nesting->outer[nesting->depth / 64];
    unsigned bit = nesting->depth % 64;

    if (bit == 0)
        *word = 0;
    *word = (*word & ~(UINT64_C(1) << bit)) | (uint64_t)nesting->is_object << bit;
    nesting->depth++;
    nesting->is_object = is_object;
}

static inline void nesting_pop(struct nesting *nesting)
{
    nesting->depth--;
    nesting->is_object = nesting->outer[nesting->depth / 64] >> (nesting->depth % 64) & 1;
}

/* From an opening bracket to where the first value inside is to be scanned; behind an empty
 * container, which leaves `nesting` as it is. */
static inline const uint8_t *scan_opening(struct kinf__json_scanner *scanner, const uint8_t *at,
                                          struct nesting *nesting, bool *ret_is_empty)
{
    const bool is_object = *at == '{';
    const uint8_t closing = *at + 2; /* in ASCII, for both kinds */

    if (nesting->depth >= scanner->max_depth)
        return kinf__json_scan_fail(scanner, KINF_ERR_LIMIT, at);
    at = kinf__json_skip_white(at + 1, scanner->end);
    if (at == scanner->end)
        return fail_truncated(scanner);
    *ret_is_empty = *at == closing;
    if (*ret_is_empty)
        return at + 1;
    nesting_push(nesting, is_object);
    return at;
}

/* From behind a value to where the next one is to be scanned, or to the end of the outermost one.
 */
static inline const uint8_t *scan_behind(struct kinf__json_scanner *scanner, const uint8_t *at,
                                         struct nesting *nesting)
{
    while (nesting->depth > nesting->floor) {
        at = kinf__json_skip_white(at, scanner->end);
        if (at == scanner->end)
            return fail_truncated(scanner);
        if (*at == ',')
            return at + 1;
        if (*at != (nesting->is_object ? '}' : ']'))
            return fail_parse(scanner, at);
        at++;
        nesting_pop(nesting);
    }
    return at;
}

static const uint8_t *scan_tokens(struct kinf__json_scanner *scanner, const uint8_t *at,
                                  unsigned depth)
{
    struct nesting nesting;
    struct kinf_str key;

    nesting.depth = nesting.floor = depth;
    nesting.outer[depth / 64] = 0;
    nesting.is_object = false;
    do {
        if (nesting.is_object && (at = scan_key(scanner, at, &key)) == NULL)
            return NULL;
        at = kinf__json_skip_white(at, scanner->end);
        if (at == scanner->end)
            return fail_truncated(scanner);
        if (*at == '"') {
            at = scan_string(scanner, at + 1);
        } else if (*at == '{' || *at == '[') {
            bool is_empty = false;

            at = scan_opening(scanner, at, &nesting, &is_empty);
            if (!is_empty)
                continue;
        } else {
            at = scan_plain_value(scanner, at);
        }
        if (at != NULL)
            at = scan_behind(scanner, at, &nesting);
    } while (at != NULL && nesting.depth > nesting.floor);
    return at;
}

const uint8_t *kinf__json_scan_value(struct kinf__json_scanner *scanner, const uint8_t *at,
                                     unsigned depth)
{
    const uint8_t *behind;

    if (scanner->end - at < KINF__JSON_BLOCK || (*at | 0x20) != '{' ||
        !kinf__json_scan_compact(scanner, at, depth, &behind))
        return scan_tokens(scanner, at, depth);
    if (behind != NULL)
        kinf__json_scan_go_on(scanner, behind);
    return behind;
}

const uint8_t *kinf__json_scan_special(struct kinf__json_scanner *scanner, const uint8_t *at)
{
    return scan_special(scanner, at);
}

const uint8_t *kinf__json_scan_plain_value(struct kinf__json_scanner *scanner, const uint8_t *at)
{
    return scan_plain_value(scanner, at);
}

const uint8_t *kinf__json_scan_key(struct kinf__json_scanner *scanner, const uint8_t *at,
                                   struct kinf_str *ret_key)
{
    return scan_key(scanner, at, ret_key);
}

void kinf__json_scanner_init(struct kinf__json_scanner *scanner, struct kinf_str text,
                             bool is_final)
{
    *scanner = (struct kinf__json_scanner){
        .start = (const uint8_t *)text.bytes,
        .end = text.len != 0 ? (const uint8_t *)text.bytes + text.len : (const uint8_t *)text.bytes,
        .is_final = is_final,
        .max_depth = KINF__JSON_MAX_DEPTH,
    };
}

int kinf__json_scan_end(const struct kinf__json_scanner *scanner, struct kinf_str text,
                        const uint8_t *behind, size_t *ret_len)
{
    *ret_len =
        (size_t)((behind != NULL ? behind : scanner->failed_at) - (const uint8_t *)text.bytes);
    return behind != NULL ? 0 : scanner->code;
}

int kinf__json_scan(struct kinf_str text, bool is_final, size_t *ret_len)
{
    struct kinf__json_scanner scanner;
    const uint8_t *behind;

    kinf__json_scanner_init(&scanner, text, is_final);
    behind = kinf__json_scan_value(&scanner, (const uint8_t *)text.bytes, 0);
    return kinf__json_scan_end(&scanner, text, behind, ret_len);
}

int kinf__json_scan_all(struct kinf_str text, unsigned max_depth, size_t *ret_len)
{
    struct kinf__json_scanner scanner;
    const uint8_t *behind;

    kinf__json_scanner_init(&scanner, text, true);
    if (max_depth < scanner.max_depth)
        scanner.max_depth = max_depth;
    behind = kinf__json_scan_value(&scanner, (const uint8_t *)text.bytes, 0);
    if (behind != NULL) {
        behind = kinf__json_skip_white(behind, scanner.end);
        if (behind != scanner.end)
            behind = fail_parse(&scanner, behind);
    }
    return kinf__json_scan_end(&scanner, text, behind, ret_len);
}

/* Writes what is around `offset`, with dots for bytes that do not print. `out` is large enough. */
static void write_excerpt(struct kinf_str text, size_t offset, char *out)
{
    size_t from = offset > N_EXCERPT_BYTES ? offset - N_EXCERPT_BYTES : 0;
    size_t to = text.len - offset > N_EXCERPT_BYTES ? offset + N_EXCERPT_BYTES : text.len;

    for (; from < to; from++) {
        uint8_t byte = (uint8_t)text.bytes[from];

        *out++ = byte >= 0x20 && byte < 0x7f ? (char)byte : '.';
    }
    *out = '\0';
}

int kinf__json_error(struct kinf_error *err, int code, struct kinf_str text, size_t offset)
{
    char excerpt[2 * N_EXCERPT_BYTES + 1];

    if (offset > text.len)
        offset = text.len;
    write_excerpt(text, offset, excerpt);
    switch (code) {
    case KINF_ERR_NO_MEMORY:
        return kinf__error_no_memory(err);
    case KINF_ERR_TRUNCATED:
        return kinf__error_set(err, KINF_ERR_TRUNCATED, "JSON ends early, after %zu bytes: %s",
                               text.len, excerpt);
    case KINF_ERR_LIMIT:
        return kinf__error_set(err, KINF_ERR_LIMIT, "JSON is nested too deep at offset %zu: %s",
                               offset, excerpt);
    default:
        return kinf__error_set(err, (enum kinf_errc)code, "not JSON at offset %zu: %s", offset,
                               excerpt);
    }
}
