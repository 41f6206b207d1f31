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

#ifdef __cplusplus
}
#endif
#endif
