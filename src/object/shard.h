/*
 * Shard selectors (KEP-5866): which part of a resource's objects one of several informers has.
 *
 *     shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')
 *
 * selects the objects for which FNV-1a (64 bit) of the uid's text, or of the namespace's, lies in
 * [start, end). `||` combines ranges of one field. Bounds are 0x and 16 lower-case hexadecimal
 * digits; the end may be 0x10000000000000000. The server reads this as CEL; of CEL, white space and
 * the two kinds of plain quotes are understood here, which gives each range one spelling.
 *
 * Mirrors: apiserver's sharding.Parse, sharding.Selector.
 * Threads: any thread; a selector never changes.
 */
#ifndef KINF_OBJECT_SHARD_H
#define KINF_OBJECT_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/error.h>
#include <kinformer/object.h>
#include <kinformer/selector.h>
#include <kinformer/str.h>

struct kinf__shard_selector;

/* `last` is included, so that the end of all hashes needs no 65th bit. */
struct kinf__shard_range {
    uint64_t first;
    uint64_t last;
};

/* Errors: KINF_ERR_PARSE (with the column), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__shard_selector_parse(const char *text,
                                               struct kinf__shard_selector **ret_selector,
                                               struct kinf_error *err);
void kinf__shard_selector_free(struct kinf__shard_selector *selector); /* NULL is allowed */

/* The text as it was given, valid as long as the selector. */
const char *kinf__shard_selector_text(const struct kinf__shard_selector *selector);

bool kinf__shard_selector_matches(const struct kinf__shard_selector *selector,
                                  const struct kinf_object *object);

/* FNV-1a with 64 bits. */
uint64_t kinf__shard_hash(struct kinf_str text);

/* Of `n_shards` parts of all hashes the one with this number, from 0: those of one n_shards have no
 * gap and do not overlap, and differ by one hash at most in size. */
struct kinf__shard_range kinf__shard_range_of(unsigned n_shards, unsigned shard);
bool kinf__shard_ranges_overlap(struct kinf__shard_range a, struct kinf__shard_range b);

/* As a selector has its bounds, "0x0000000000000000,0x8000000000000000": [start, end). */
#define KINF__SHARD_RANGE_SIZE 48
void kinf__shard_range_write(struct kinf__shard_range range, char text[KINF__SHARD_RANGE_SIZE]);
/* Returns false for what was not written so. */
bool kinf__shard_range_read(const char *text, struct kinf__shard_range *ret_range);

/* 0 if there is such a shard. Errors: KINF_ERR_INVALID. */
KINF_MUST_CHECK int kinf__shard_check(unsigned n_shards, unsigned shard, struct kinf_error *err);

#endif
