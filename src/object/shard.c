/*
 * Shard selectors: parser and match. Neighbours: the reflector sends the text and looks at what
 * comes. Invariant: every range holds at least one hash.
 */
#include "object/shard.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/misuse.h"

#define N_DIGITS 16

enum field { FIELD_UID, FIELD_NAMESPACE };

static const struct kinf_str field_names[] = {
    [FIELD_UID] = { "object.metadata.uid", 19 },
    [FIELD_NAMESPACE] = { "object.metadata.namespace", 25 },
};

struct kinf__shard_selector {
    enum field field;
    struct kinf__shard_range *ranges;
    size_t n_ranges;
    char text[];
};

struct parser {
    const char *at;
    struct kinf__shard_selector *selector;
    struct kinf_error *err;
};

/* --- reading --- */

static int fail(const struct parser *parser, const char *reason)
{
    return kinf__error_set(parser->err, KINF_ERR_PARSE, "shard selector column %zu: %s",
                           (size_t)(parser->at - parser->selector->text) + 1, reason);
}

static void skip_white(struct parser *parser)
{
    parser->at += strspn(parser->at, " \t\n\r\f");
}

/* Takes `mark` and the white space around it. */
static bool take(struct parser *parser, const char *mark)
{
    size_t len = strlen(mark);

    skip_white(parser);
    if (strncmp(parser->at, mark, len) != 0)
        return false;
    parser->at += len;
    skip_white(parser);
    return true;
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

/* Names are taken whole: no field is the beginning of another name. */
static int take_field(struct parser *parser, enum field *ret_field)
{
    size_t len = 0;

    while (is_name_byte(parser->at[len]))
        len++;
    for (size_t i = 0; i < KINF__ARRAY_LEN(field_names); i++) {
        if (kinf_str_equal((struct kinf_str){ parser->at, len }, field_names[i])) {
            parser->at += len;
            *ret_field = (enum field)i;
            return 0;
        }
    }
    return fail(parser, "object.metadata.uid or object.metadata.namespace expected");
}

/* '0x' and 16 digits, or one digit more for 2^64, which is not `*ret_is_beyond` otherwise. */
static int take_bound(struct parser *parser, uint64_t *ret_bound, bool *ret_is_beyond)
{
    char quote = parser->at[0];
    const char *digits = parser->at + 3;
    size_t n;

    if ((quote != '\'' && quote != '"') || strncmp(parser->at + 1, "0x", 2) != 0)
        return fail(parser, "a bound in quotes with 0x in front expected");
    n = strspn(digits, "0123456789abcdef");
    if (digits[n] != quote)
        return fail(parser, "a bound has lower-case hexadecimal digits");
    *ret_is_beyond = n == N_DIGITS + 1 && strncmp(digits, "10000000000000000", n) == 0;
    if (n != N_DIGITS && !*ret_is_beyond)
        return fail(parser, "a bound has 16 digits, or is 0x10000000000000000");
    *ret_bound = *ret_is_beyond ? 0 : strtoull(digits, NULL, 16);
    parser->at = digits + n + 1;
    return 0;
}

static int take_bounds(struct parser *parser, struct kinf__shard_range *ret_range)
{
    const char *start_at = parser->at;
    uint64_t start = 0, end = 0;
    bool is_beyond = false, ends_beyond = false;
    int r = take_bound(parser, &start, &is_beyond);

    if (r < 0)
        return r;
    if (!take(parser, ","))
        return fail(parser, "a comma expected");
    r = take_bound(parser, &end, &ends_beyond);
    if (r < 0)
        return r;
    if (is_beyond || (!ends_beyond && start >= end)) {
        parser->at = start_at;
        return fail(parser, "a range starts below its end");
    }
    *ret_range = (struct kinf__shard_range){ start, end - 1 };
    return 0;
}

static int add_range(struct parser *parser, struct kinf__shard_range range)
{
    struct kinf__shard_selector *selector = parser->selector;
    struct kinf__shard_range *ranges =
        reallocarray(selector->ranges, selector->n_ranges + 1, sizeof *selector->ranges);

    if (ranges == NULL)
        return kinf__error_no_memory(parser->err);
    selector->ranges = ranges;
    ranges[selector->n_ranges++] = range;
    return 0;
}

static int take_range(struct parser *parser)
{
    struct kinf__shard_selector *selector = parser->selector;
    const char *field_at;
    struct kinf__shard_range range = { .first = 0 };
    enum field field = FIELD_UID;
    int r;

    if (!take(parser, "shardRange") || !take(parser, "("))
        return fail(parser, "shardRange( expected");
    field_at = parser->at;
    r = take_field(parser, &field);
    if (r < 0)
        return r;
    if (selector->n_ranges != 0 && field != selector->field) {
        parser->at = field_at;
        return fail(parser, "all ranges are of one field");
    }
    selector->field = field;
    if (!take(parser, ","))
        return fail(parser, "a comma expected");
    r = take_bounds(parser, &range);
    if (r < 0)
        return r;
    return take(parser, ")") ? add_range(parser, range) : fail(parser, "a ) expected");
}

static int parse(struct parser *parser)
{
    int r;

    do
        r = take_range(parser);
    while (r == 0 && take(parser, "||"));
    return r == 0 && parser->at[0] != '\0' ? fail(parser, "|| or the end expected") : r;
}

/* --- equal parts --- */

/* Where the part begins, rounded down. Of the last one's end, 2^64, it is 0. */
static uint64_t start_of(unsigned n_shards, unsigned shard)
{
    return (uint64_t)(((unsigned __int128)shard << 64) / n_shards);
}

struct kinf__shard_range kinf__shard_range_of(unsigned n_shards, unsigned shard)
{
    return (struct kinf__shard_range){ start_of(n_shards, shard),
                                       start_of(n_shards, shard + 1) - 1 };
}

bool kinf__shard_ranges_overlap(struct kinf__shard_range a, struct kinf__shard_range b)
{
    return a.first <= b.last && b.first <= a.last;
}

/* "0x" and the digits of `last` + 1. */
static void write_end(uint64_t last, char text[2 + N_DIGITS + 2])
{
    snprintf(text, 2 + N_DIGITS + 2, last == UINT64_MAX ? "0x1%016" PRIx64 : "0x%016" PRIx64,
             last + 1);
}

void kinf__shard_range_write(struct kinf__shard_range range, char text[KINF__SHARD_RANGE_SIZE])
{
    char end[2 + N_DIGITS + 2];

    write_end(range.last, end);
    snprintf(text, KINF__SHARD_RANGE_SIZE, "0x%016" PRIx64 ",%s", range.first, end);
}

bool kinf__shard_range_read(const char *text, struct kinf__shard_range *ret_range)
{
    const char *comma = strchr(text, ',');
    char again[KINF__SHARD_RANGE_SIZE];
    struct kinf__shard_range range;

    if (comma == NULL)
        return false;
    range.first = strtoull(text, NULL, 16);
    range.last = strlen(comma) == 1 + 2 + N_DIGITS ? strtoull(comma + 1, NULL, 16) - 1 : UINT64_MAX;
    kinf__shard_range_write(range, again);
    if (strcmp(text, again) != 0 || range.first > range.last)
        return false;
    *ret_range = range;
    return true;
}

int kinf__shard_check(unsigned n_shards, unsigned shard, struct kinf_error *err)
{
    if (n_shards == 0 || n_shards > KINF_SHARDS_MAX)
        return kinf__error_set(err, KINF_ERR_INVALID, "the number of shards is 1 to %d, not %u",
                               KINF_SHARDS_MAX, n_shards);
    if (shard >= n_shards)
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "of %u shards the last one is %u: there is no shard %u", n_shards,
                               n_shards - 1, shard);
    return 0;
}

int kinf_shard_selector(enum kinf_shard_by by, unsigned n_shards, unsigned shard,
                        char ret_text[KINF_SHARD_SELECTOR_SIZE], struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, ret_text);

    struct kinf__shard_range range;
    char end[2 + N_DIGITS + 2];

    if (kinf__shard_check(n_shards, shard, err) < 0)
        return KINF_ERR_INVALID;
    if (by != KINF_SHARD_BY_UID && by != KINF_SHARD_BY_NAMESPACE)
        return kinf__error_set(err, KINF_ERR_INVALID, "shards are by uid or by namespace");
    range = kinf__shard_range_of(n_shards, shard);
    write_end(range.last, end);
    snprintf(ret_text, KINF_SHARD_SELECTOR_SIZE, "shardRange(%s, '0x%016" PRIx64 "', '%s')",
             field_names[by == KINF_SHARD_BY_UID ? FIELD_UID : FIELD_NAMESPACE].bytes, range.first,
             end);
    return 0;
}

/* --- exported --- */

int kinf__shard_selector_parse(const char *text, struct kinf__shard_selector **ret_selector,
                               struct kinf_error *err)
{
    struct kinf__shard_selector *selector = calloc(1, sizeof *selector + strlen(text) + 1);
    int r;

    if (selector == NULL)
        return kinf__error_no_memory(err);
    memcpy(selector->text, text, strlen(text) + 1);
    r = parse(&(struct parser){ selector->text, selector, err });
    if (r < 0) {
        kinf__shard_selector_free(selector);
        return r;
    }
    *ret_selector = selector;
    return 0;
}

void kinf__shard_selector_free(struct kinf__shard_selector *selector)
{
    if (selector == NULL)
        return;
    free(selector->ranges);
    free(selector);
}

const char *kinf__shard_selector_text(const struct kinf__shard_selector *selector)
{
    return selector->text;
}

bool kinf__shard_selector_matches(const struct kinf__shard_selector *selector,
                                  const struct kinf_object *object)
{
    const char *uid = kinf_object_uid(object);
    uint64_t hash =
        kinf__shard_hash(selector->field == FIELD_UID ? (struct kinf_str){ uid, strlen(uid) }
                                                      : kinf_object_namespace(object));

    for (size_t i = 0; i < selector->n_ranges; i++) {
        if (hash >= selector->ranges[i].first && hash <= selector->ranges[i].last)
            return true;
    }
    return false;
}

uint64_t kinf__shard_hash(struct kinf_str text)
{
    uint64_t hash = 0xcbf29ce484222325U;

    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ (unsigned char)text.bytes[i]) * 0x100000001b3U;
    return hash;
}
