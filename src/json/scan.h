/*
 * The byte scanner: a validating pass over JSON text (a second one where the first is not sure), without allocation and without
 * recursion, that accepts what RFC 8259 accepts (UTF-8 well formed, surrogate escapes of any kind,
 * no BOM) and nothing else.
 *
 * A scan starts at a value, leading white space allowed, and ends behind it; what follows is the
 * caller's. Text that ends in mid-value is KINF_ERR_TRUNCATED, unless it is wrong already. A number
 * at the very end of the text is complete only if `is_final`, since more digits may follow.
 *
 * Threads: any thread.
 */
#ifndef KINF_JSON_SCAN_H
#define KINF_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include <kinformer/error.h>
#include <kinformer/str.h>

/* Objects and arrays inside each other; kube-apiserver accepts almost 10,000. */
#define KINF__JSON_MAX_DEPTH 10000

enum kinf__json_type {
    KINF__JSON_NULL,
    KINF__JSON_BOOL,
    KINF__JSON_NUMBER,
    KINF__JSON_STRING,
    KINF__JSON_ARRAY,
    KINF__JSON_OBJECT,
};

/* A value in its text. The bytes are those of the text it was found in: a string with its quotes
 * and escapes. */
struct kinf__json_value {
    enum kinf__json_type type;
    struct kinf_str raw;
};

/* Scans one value. *ret_len is the offset behind it, or of the offending byte when this returns
 * KINF_ERR_PARSE or KINF_ERR_LIMIT (depth). Returns KINF_ERR_TRUNCATED when more bytes are needed;
 * *ret_len is then the length of the text. */
KINF_MUST_CHECK int kinf__json_scan(struct kinf_str text, bool is_final, size_t *ret_len);

/* Scans a whole text: one value, with nothing but white space around it, and at most `max_depth`
 * (not above KINF__JSON_MAX_DEPTH) deep. *ret_len and errors as above. */
KINF_MUST_CHECK int kinf__json_scan_all(struct kinf_str text, unsigned max_depth, size_t *ret_len);

/* Puts an offset and an excerpt of the text into `err` and returns `code`. */
int kinf__json_error(struct kinf_error *err, int code, struct kinf_str text, size_t offset);

/*
 * A walk over the members of an object or the elements of an array in text that was scanned before,
 * so there are no errors to return; in other text the walk ends early.
 */
struct kinf__json_iter {
    const char *at;
    const char *end;
    bool is_object;
};

/* Starts at an object or array. Returns false if the value is neither. */
bool kinf__json_iter_init(struct kinf__json_iter *iter, struct kinf__json_value value);

/* The next member (ret_key: raw, with quotes) or element (ret_key: empty). Returns false at the
 * end. */
bool kinf__json_iter_next(struct kinf__json_iter *iter, struct kinf_str *ret_key,
                          struct kinf__json_value *ret_value);

/* The value that text, scanned before, holds. */
struct kinf__json_value kinf__json_value_of(struct kinf_str text);

/* Decodes a raw string (with quotes). Writes at most `size` bytes to `out`, no NUL, and returns the
 * whole decoded length, so a result above `size` means that it was cut (nothing useful was
 * written). The decoded form is never longer than the raw one. Unpaired surrogates become U+FFFD.
 */
size_t kinf__json_unescape(struct kinf_str raw, char *out, size_t size);

/* Whether a raw string (with quotes) decodes to exactly `text`. */
bool kinf__json_string_equals(struct kinf_str raw, struct kinf_str text);

/* The value of member `key` of an object. With a doubled key the first one counts (the last one in
 * Go, but kube-apiserver sends none): what lies behind is not looked at. Returns false if there is
 * none or `value` is not an object. */
bool kinf__json_member(struct kinf__json_value value, struct kinf_str key,
                       struct kinf__json_value *ret_value);

#endif
