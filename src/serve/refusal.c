/*
 * Statuses. Neighbours: whoever refuses fills one, mhd_request.c sends it, watch streams put it into an
 * ERROR event.
 */
#include "serve/refusal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "serve/report.h"

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

int kinf__refusal_empty(struct kinf__refusal *refusal, unsigned retry_after_s)
{
    refusal->details = KINF__DETAILS_EMPTY;
    refusal->retry_after_s = retry_after_s;
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
    return kinf__refusal_empty(refusal, 0);
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

static void write_causes(struct kinf__report *report, const struct kinf__refusal *refusal)
{
    kinf__report_open(report, "causes", '[');
    for (size_t i = 0; i < refusal->n_causes; i++) {
        kinf__report_open(report, NULL, '{');
        kinf__report_said(report, "reason", refusal->causes[i].reason);
        kinf__report_said(report, "message", refusal->causes[i].message);
        kinf__report_said(report, "field", refusal->causes[i].field);
        kinf__report_close(report, '}');
    }
    kinf__report_close(report, ']');
}

static void write_details(struct kinf__report *report, const struct kinf__refusal *refusal)
{
    kinf__report_open(report, "details", '{');
    kinf__report_said(report, "name", refusal->name);
    kinf__report_said(report, "group", refusal->group);
    kinf__report_said(report, "kind", refusal->kind);
    if (refusal->details == KINF__DETAILS_CAUSES)
        write_causes(report, refusal);
    if (refusal->retry_after_s != 0)
        kinf__report_count(report, "retryAfterSeconds", refusal->retry_after_s);
    kinf__report_close(report, '}');
}

int kinf__refusal_write_status(const struct kinf__refusal *refusal, struct kinf__buffer *out)
{
    struct kinf__report report = { .out = out };

    kinf__report_open(&report, NULL, '{');
    kinf__report_text(&report, "kind", "Status");
    kinf__report_text(&report, "apiVersion", "v1");
    kinf__report_open(&report, "metadata", '{');
    kinf__report_said(&report, "continue", refusal->continue_token);
    kinf__report_close(&report, '}');
    kinf__report_text(&report, "status", "Failure");
    kinf__report_said(&report, "message", refusal->message);
    kinf__report_said(&report, "reason", refusal->reason);
    if (refusal->details != KINF__DETAILS_NONE)
        write_details(&report, refusal);
    kinf__report_count(&report, "code", (uint64_t)refusal->code);
    kinf__report_close(&report, '}');
    return report.is_out_of_memory ? KINF_ERR_NO_MEMORY : 0;
}

int kinf__refusal_write(const struct kinf__refusal *refusal, struct kinf__buffer *out)
{
    int failed = refusal->is_plain ? kinf__buffer_append_str(out, kinf_str_from(refusal->message))
                                   : kinf__refusal_write_status(refusal, out);

    return failed < 0 ? failed : kinf__buffer_append(out, "\n", 1);
}
