/*
 * Label and field selectors, in kubectl's syntax.
 *
 * Label selector: requirements joined by commas (all must hold): `key=value`, `key==value`,
 * `key!=value`, `key in (a,b)`, `key notin (a,b)`, `key`, `!key`, `key>1`, `key<1`. As upstream,
 * `!=` and `notin` also match objects without the key, a missing value is the empty one (`key=`,
 * `key in ()`), and white space between the parts does not count. The empty selector matches
 * everything.
 *
 * Field selector: `path=value`, `path==value`, `path!=value` joined by commas; `\` escapes `,`, `=`
 * and `\` in values; white space belongs to the value. A string counts decoded, a number, true and
 * false as its text; null and a path that names nothing have the value ""; an array or object
 * equals nothing. Where a path names several values the first counts.
 *
 * Mirrors: labels.Parse, fields.ParseSelector.
 * Shard selector: a part of all objects, by hash; here is the text of one.
 *
 * Threads: any thread; a selector never changes.
 */
#ifndef KINFORMER_SELECTOR_H
#define KINFORMER_SELECTOR_H

#include <stdbool.h>

#include <kinformer/api.h>
#include <kinformer/error.h>
#include <kinformer/object.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kinf_label_selector;
struct kinf_field_selector;

/* The caller frees the result. Errors: KINF_ERR_PARSE (message with the column, from 1; keys and
 * values are checked as the API server does), KINF_ERR_LIMIT (a path of too many steps),
 * KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_label_selector_parse(const char *text,
                                                       struct kinf_label_selector **ret_selector,
                                                       struct kinf_error *err);
KINF_API void kinf_label_selector_free(struct kinf_label_selector *selector);
/* NULL matches everything, as does the empty one; then `object` may be NULL. */
KINF_API bool kinf_label_selector_matches(const struct kinf_label_selector *selector,
                                          const struct kinf_object *object);
/* Whether it matches every object, so that none needs to be looked at. */
KINF_API bool kinf_label_selector_is_empty(const struct kinf_label_selector *selector);

/* The same of field selectors. Errors: as kinf_label_selector_parse(). */
KINF_API KINF_MUST_CHECK int kinf_field_selector_parse(const char *text,
                                                       struct kinf_field_selector **ret_selector,
                                                       struct kinf_error *err);
KINF_API void kinf_field_selector_free(struct kinf_field_selector *selector);
KINF_API bool kinf_field_selector_matches(const struct kinf_field_selector *selector,
                                          const struct kinf_object *object);

/* --- shards --- */

/* By which hash objects belong to shards (KEP-5866).
 *   - uid: for a controller whose objects are found by owner reference or by index. The informers of
 *     what they own are without a selector, since an owned object has another hash than its owner. An
 *     object that is gone has no uid: cleanup without it may be called by each shard.
 *   - namespace: all informers are sharded alike, so an object and what belongs to it in its namespace
 *     is in one shard. A namespace is not shared out; objects without one are all in the same shard. */
enum kinf_shard_by { KINF_SHARD_BY_UID, KINF_SHARD_BY_NAMESPACE };

#define KINF_SHARDS_MAX          1000
#define KINF_SHARD_SELECTOR_SIZE 128

/* Writes the selector (kinf_informer_options.shard_selector) of the shard with the number `shard`,
 * from 0, of `n_shards` equal parts of all hashes. An elector of the same two numbers
 * (kinformer/elector.h) sees to it that nobody else acts on them. Errors: KINF_ERR_INVALID (n_shards
 * is 0 or above KINF_SHARDS_MAX; there is no such shard). */
KINF_API KINF_MUST_CHECK int kinf_shard_selector(enum kinf_shard_by by, unsigned n_shards,
                                                 unsigned shard,
                                                 char ret_text[KINF_SHARD_SELECTOR_SIZE],
                                                 struct kinf_error *err);

#ifdef __cplusplus
}
#endif
#endif
