/*
 * Forms of JSON. Neighbours: kinformer/text.h, which says what a form is. What comes out is scanned
 * as a whole, so the walk over the form need not know where a value may stand.
 */
#include <kinformer/text.h>

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/error.h"
#include "base/misuse.h"
#include "json/quote.h"
#include "json/scan.h"
#include "object/object.h"

static int invalid(struct kinf_error *err, const char *form, const char *at, const char *problem)
{
    return kinf__error_set(err, KINF_ERR_INVALID, "form column %zu: %s", (size_t)(at - form) + 1,
                           problem);
}

static int append_text(struct kinf__buffer *out, struct kinf_str text)
{
    return text.bytes == NULL ? kinf__buffer_append_str(out, KINF_STR("null"))
                              : kinf__quote(out, text);
}

/* Checked by itself: two values, or half of one, may make JSON of the whole. */
static int append_json(struct kinf__buffer *out, struct kinf_str json)
{
    size_t len;

    if (json.bytes == NULL)
        return kinf__buffer_append_str(out, KINF_STR("null"));
    if (kinf__json_scan_all(json, KINF__JSON_MAX_DEPTH, &len) < 0)
        return KINF_ERR_INVALID;
    return kinf__buffer_append_str(out, json);
}

static int append_argument(struct kinf__buffer *out, char letter, va_list *args)
{
    switch (letter) {
    case 's':
        return append_text(out, kinf_str_from(va_arg(*args, const char *)));
    case 'v':
        return append_text(out, va_arg(*args, struct kinf_str));
    case 'i':
        return kinf__buffer_printf(out, "%" PRId64, va_arg(*args, int64_t));
    case 'j':
        return append_json(out, va_arg(*args, struct kinf_str));
    default:
        return KINF_ERR_INVALID;
    }
}

/* Of a string in the form, with its quotes; all of the rest if it does not end. */
static size_t string_len(const char *at)
{
    size_t len = 1;

    while (at[len] != '\0' && at[len] != '"')
        len += at[len] == '\\' && at[len + 1] != '\0' ? 2 : 1;
    return at[len] == '"' ? len + 1 : len;
}

static size_t word_len(const char *at)
{
    return strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$./-+");
}

/* A word in front of a colon is a key; others are numbers, true, false and null. */
static int append_word(struct kinf__buffer *out, struct kinf_str word)
{
    const char *behind = word.bytes + word.len;

    return behind[strspn(behind, " \t\r\n")] == ':' ? kinf__quote(out, word)
                                                    : kinf__buffer_append_str(out, word);
}

static int append_form(struct kinf__buffer *out, const char *form, va_list *args,
                       struct kinf_error *err)
{
    size_t len;
    int rc = 0;

    for (const char *at = form; rc == 0 && *at != '\0'; at += len) {
        if (*at == '?') {
            rc = append_argument(out, at[1], args);
            if (rc == KINF_ERR_INVALID)
                return invalid(err, form, at, "no ?s, ?v, ?i or ?j, or no JSON to put there");
            len = 2;
        } else if (*at == '"') {
            len = string_len(at);
            rc = kinf__buffer_append(out, at, len);
        } else if ((len = word_len(at)) != 0) {
            rc = append_word(out, (struct kinf_str){ at, len });
        } else {
            len = 1;
            rc = kinf__buffer_append(out, at, len);
        }
    }
    return rc < 0 ? kinf__error_no_memory(err) : 0;
}

static int check(struct kinf_str json, struct kinf_error *err)
{
    size_t len;
    int rc = kinf__json_scan_all(json, KINF__JSON_MAX_DEPTH, &len);

    if (rc == 0)
        return 0;
    return kinf__json_error(err, rc == KINF_ERR_LIMIT ? KINF_ERR_LIMIT : KINF_ERR_INVALID, json,
                            len);
}

int kinf_json_format(struct kinf_scratch *scratch, struct kinf_str *ret_json,
                     struct kinf_error *err, const char *form, ...)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, scratch, ret_json, form);

    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    va_list args;
    int rc;

    va_start(args, form);
    rc = append_form(&out, form, &args, err);
    va_end(args);
    if (rc == 0)
        rc = check(kinf__buffer_str(&out), err);
    if (rc < 0)
        return rc;
    kinf_scratch_release(scratch);
    *scratch = (struct kinf_scratch){ out.bytes, out.size };
    *ret_json = (struct kinf_str){ out.bytes, out.len };
    out = (struct kinf__buffer)KINF__BUFFER_INIT;
    return 0;
}
