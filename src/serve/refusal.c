/*
 * Statuses. Neighbours: whoever refuses fills one, reply.c sends it, watch streams put it into an
 * ERROR event.
 */
#include "serve/refusal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "json/quote.h"

int(kinf__refuse)(struct kinf__refusal *refusal, int code, const char *reason, const char *fmt, ...)
{
    va_list args;

    memset(refusal, 0, sizeof *refusal);
    refusal->code = code;
    refusal->reason = reason;
    va_start(args, fmt);
    vsnprintf(refusal->message, sizeof refusal->message, fmt, args);
    va_end(args);
    return KINF_ERR_INVALID;
}

int kinf__refuse_path(struct kinf__refusal *refusal)
{
    kinf__refuse(refusal, 404, "", "404 page not found");
    refusal->is_plain = true;
    return KINF_ERR_INVALID;
}

int kinf__refuse_resource(struct kinf__refusal *refusal)
{
    kinf__refuse(refusal, 404, "NotFound", "the server could not find the requested resource");
    refusal->details = KINF__DETAILS_EMPTY;
    return KINF_ERR_INVALID;
}

int(kinf__refuse_no_memory)(struct kinf__refusal *refusal)
{
    kinf__refuse(refusal, 500, "InternalError", "out of memory");
    return KINF_ERR_NO_MEMORY;
}

void kinf__refusal_set_object(struct kinf__refusal *refusal, const char *group, const char *kind,
                              const char *name)
{
    if (refusal->details < KINF__DETAILS_OBJECT)
        refusal->details = KINF__DETAILS_OBJECT;
    snprintf(refusal->group, sizeof refusal->group, "%s", group);
    snprintf(refusal->kind, sizeof refusal->kind, "%s", kind);
    snprintf(refusal->name, sizeof refusal->name, "%s", name);
}

void kinf__refusal_add_cause(struct kinf__refusal *refusal, const char *reason, const char *field,
                             const char *message)
{
    struct kinf__refusal_cause *cause = &refusal->causes[refusal->n_causes];

    refusal->details = KINF__DETAILS_CAUSES;
    if (refusal->n_causes == KINF__REFUSAL_MAX_CAUSES)
        return;
    refusal->n_causes++;
    cause->reason = reason;
    snprintf(cause->field, sizeof cause->field, "%s", field);
    snprintf(cause->message, sizeof cause->message, "%s", message);
}

/* "name":"text", behind a comma unless it is the first member; nothing for an empty text. */
static int append_member(struct kinf__buffer *out, bool *is_first, const char *name,
                         const char *text)
{
    bool was_first = *is_first;

    if (*text == '\0')
        return 0;
    *is_first = false;
    if (kinf__buffer_printf(out, "%s\"%s\":", was_first ? "" : ",", name) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__quote(out, kinf_str_from(text));
}

static int append_cause(struct kinf__buffer *out, const struct kinf__refusal_cause *cause)
{
    bool is_first = true;

    if (kinf__buffer_append(out, "{", 1) < 0 ||
        append_member(out, &is_first, "reason", cause->reason) < 0 ||
        append_member(out, &is_first, "message", cause->message) < 0 ||
        append_member(out, &is_first, "field", cause->field) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(out, "}", 1);
}

static int append_causes(struct kinf__buffer *out, bool is_first,
                         const struct kinf__refusal *refusal)
{
    int failed = kinf__buffer_printf(out, "%s\"causes\":[", is_first ? "" : ",");

    for (size_t i = 0; failed == 0 && i < refusal->n_causes; i++) {
        failed = i != 0 ? kinf__buffer_append(out, ",", 1) : 0;
        if (failed == 0)
            failed = append_cause(out, &refusal->causes[i]);
    }
    return failed < 0 ? failed : kinf__buffer_append(out, "]", 1);
}

static int append_details(struct kinf__buffer *out, const struct kinf__refusal *refusal)
{
    bool is_first = true;

    if (refusal->details == KINF__DETAILS_NONE)
        return 0;
    if (kinf__buffer_append_str(out, KINF_STR(",\"details\":{")) < 0 ||
        append_member(out, &is_first, "name", refusal->name) < 0 ||
        append_member(out, &is_first, "group", refusal->group) < 0 ||
        append_member(out, &is_first, "kind", refusal->kind) < 0)
        return KINF_ERR_NO_MEMORY;
    if (refusal->details == KINF__DETAILS_CAUSES) {
        if (append_causes(out, is_first, refusal) < 0)
            return KINF_ERR_NO_MEMORY;
        is_first = false;
    }
    if (refusal->retry_after_s != 0 &&
        kinf__buffer_printf(out, "%s\"retryAfterSeconds\":%u", is_first ? "" : ",",
                            refusal->retry_after_s) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(out, "}", 1);
}

int kinf__refusal_write_status(const struct kinf__refusal *refusal, struct kinf__buffer *out)
{
    bool is_first = true;

    if (kinf__buffer_append_str(
            out, KINF_STR("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{")) < 0 ||
        append_member(out, &is_first, "continue", refusal->continue_token) < 0 ||
        kinf__buffer_append_str(out, KINF_STR("},\"status\":\"Failure\"")) < 0)
        return KINF_ERR_NO_MEMORY;
    is_first = false;
    if (append_member(out, &is_first, "message", refusal->message) < 0 ||
        append_member(out, &is_first, "reason", refusal->reason) < 0 ||
        append_details(out, refusal) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_printf(out, ",\"code\":%d}", refusal->code);
}

int kinf__refusal_write(const struct kinf__refusal *refusal, struct kinf__buffer *out)
{
    int failed = refusal->is_plain ? kinf__buffer_append_str(out, kinf_str_from(refusal->message))
                                   : kinf__refusal_write_status(refusal, out);

    return failed < 0 ? failed : kinf__buffer_append(out, "\n", 1);
}
