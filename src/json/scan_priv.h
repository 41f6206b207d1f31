/*
 * The insides of the scanner that the pruner builds on: scanning from the middle of a text, at a
 * given depth. Functions take the place to start at and return the place behind what they scanned,
 * or NULL after kinf__json_scan_fail().
 *
 * Threads: one thread per object.
 */
#ifndef KINF_JSON_SCAN_PRIV_H
#define KINF_JSON_SCAN_PRIV_H

#include <stdint.h>

#include "base/compiler.h"
#include "json/block.h"
#include "json/scan.h"

struct kinf__json_scanner {
    const uint8_t *start;
    const uint8_t *end;
    bool is_final;
    unsigned max_depth;       /* at most KINF__JSON_MAX_DEPTH */
    uint64_t specials;        /* of the block that was loaded last */
    size_t n_loaded;          /* bytes from `start` to the end of that block */
    bool has_escapes;         /* whether a key has a backslash, if cleared in front of it */
    int code;                 /* after a failure */
    const uint8_t *failed_at; /* after a failure */
};

void kinf__json_scanner_init(struct kinf__json_scanner *scanner, struct kinf_str text,
                             bool is_final);

/* Notes the failure; returns NULL. */
const uint8_t *kinf__json_scan_fail(struct kinf__json_scanner *scanner, int code,
                                    const uint8_t *at);

/* What kinf__json_scan() returns and writes after a scan that ended at `behind`, which may be NULL.
 */
int kinf__json_scan_end(const struct kinf__json_scanner *scanner, struct kinf_str text,
                        const uint8_t *behind, size_t *ret_len);

/* What lies in front of `at` was looked at in another way: its blocks are not loaded any more. */
static inline void kinf__json_scan_go_on(struct kinf__json_scanner *scanner, const uint8_t *at)
{
    size_t offset = (size_t)(at - scanner->start);

    if (offset > scanner->n_loaded)
        scanner->n_loaded = offset - offset % KINF__JSON_BLOCK;
}

/* One value, white space in front allowed, inside `depth` containers. */
const uint8_t *kinf__json_scan_value(struct kinf__json_scanner *scanner, const uint8_t *at,
                                     unsigned depth);

/* The same for a container, which starts at `at`. *ret_behind gets what kinf__json_scan_value() would
 * return. Returns false if there is white space inside, something wrong, anything else that it does
 * not understand, or no AVX2: then the scanner is to look at it token by token. */
bool kinf__json_scan_compact(struct kinf__json_scanner *scanner, const uint8_t *at, unsigned depth,
                             const uint8_t **ret_behind);

/* The bytes of a string that are not plain, and not its closing quote, as many as there are in a
 * row. */
const uint8_t *kinf__json_scan_special(struct kinf__json_scanner *scanner, const uint8_t *at);

/* What is neither a string nor a container. */
const uint8_t *kinf__json_scan_plain_value(struct kinf__json_scanner *scanner, const uint8_t *at);

/* A key and its colon, white space in front of both allowed. *ret_key gets the key with its quotes.
 */
const uint8_t *kinf__json_scan_key(struct kinf__json_scanner *scanner, const uint8_t *at,
                                   struct kinf_str *ret_key);

static inline const uint8_t *kinf__json_skip_white(const uint8_t *at, const uint8_t *end)
{
    while (at < end && *at <= ' ' && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

static inline enum kinf__json_type kinf__json_type_at(uint8_t first)
{
    switch (first) {
    case '{':
        return KINF__JSON_OBJECT;
    case '[':
        return KINF__JSON_ARRAY;
    case '"':
        return KINF__JSON_STRING;
    case 't':
    case 'f':
        return KINF__JSON_BOOL;
    case 'n':
        return KINF__JSON_NULL;
    default:
        return KINF__JSON_NUMBER;
    }
}

#endif
