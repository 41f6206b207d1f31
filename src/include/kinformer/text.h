/*
 * JSON to send, from a form and values: nothing that a value holds can become structure.
 *
 * Mirrors: nothing.
 * Threads: any thread; a scratch belongs to one.
 */
#ifndef KINFORMER_TEXT_H
#define KINFORMER_TEXT_H

#include <kinformer/api.h>
#include <kinformer/error.h>
#include <kinformer/object.h>
#include <kinformer/str.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * `form` is JSON in which keys may stand without quotes (letters, digits and _ $ . / -), and these
 * stand for the arguments, one after another, wherever a value or a key may:
 *
 *     ?s  a text (const char *), quoted and escaped; NULL is null
 *     ?v  the same of a struct kinf_str; bytes NULL is null
 *     ?i  an int64_t
 *     ?j  a struct kinf_str with one JSON value, as it is; bytes NULL is null
 *
 *     kinf_json_format(&room, &json, &err, "{metadata:{name:?s},spec:{replicas:?i}}", name,
 *                      (int64_t)3)
 *
 * Bytes of a text that are no UTF-8 become U+FFFD. *ret_json is valid until the scratch is used
 * again or released; no argument may lie in the scratch. Errors: KINF_ERR_INVALID (the form, or a ?j,
 * is no JSON, or has another letter behind '?'), KINF_ERR_LIMIT (deeper than 10,000),
 * KINF_ERR_NO_MEMORY.
 */
KINF_API KINF_MUST_CHECK int kinf_json_format(struct kinf_scratch *scratch,
                                              struct kinf_str *ret_json, struct kinf_error *err,
                                              const char *form, ...);

#ifdef __cplusplus
}
#endif
#endif
