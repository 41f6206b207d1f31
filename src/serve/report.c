/*
 * Writing a document. Neighbours: quote.c escapes; debug_state.c, catalog.c,
 * refusal.c and review.c have something to say.
 */
#include "serve/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/rfc3339.h"
#include "json/quote.h"

static void append(struct kinf__report *report, const char *bytes, size_t len)
{
    if (!report->is_out_of_memory)
        report->is_out_of_memory = kinf__buffer_append(report->out, bytes, len) < 0;
}

static void append_quoted(struct kinf__report *report, struct kinf_str text)
{
    if (!report->is_out_of_memory)
        report->is_out_of_memory = kinf__quote(report->out, text) < 0;
}

/* What comes in front of a value. */
static void begin(struct kinf__report *report, const char *key)
{
    if (report->has_before)
        append(report, ",", 1);
    report->has_before = true;
    if (key == NULL)
        return;
    append_quoted(report, kinf_str_from(key));
    append(report, ":", 1);
}

static void append_literal(struct kinf__report *report, const char *key, const char *text)
{
    begin(report, key);
    append(report, text, strlen(text));
}

void kinf__report_open(struct kinf__report *report, const char *key, char bracket)
{
    begin(report, key);
    append(report, &bracket, 1);
    report->has_before = false;
}

void kinf__report_close(struct kinf__report *report, char bracket)
{
    append(report, &bracket, 1);
    report->has_before = true;
}

void kinf__report_str(struct kinf__report *report, const char *key, struct kinf_str text)
{
    begin(report, key);
    append_quoted(report, text);
}

void kinf__report_text(struct kinf__report *report, const char *key, const char *text)
{
    kinf__report_str(report, key, kinf_str_from(text));
}

void kinf__report_said(struct kinf__report *report, const char *key, const char *text)
{
    if (*text != '\0')
        kinf__report_text(report, key, text);
}

void kinf__report_count(struct kinf__report *report, const char *key, uint64_t count)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, count);
    append_literal(report, key, text);
}

void kinf__report_bool(struct kinf__report *report, const char *key, bool value)
{
    append_literal(report, key, value ? "true" : "false");
}

void kinf__report_ms(struct kinf__report *report, const char *key, int64_t ms)
{
    if (ms < 0)
        append_literal(report, key, "null");
    else
        kinf__report_count(report, key, (uint64_t)ms);
}

void kinf__report_exact_ms(struct kinf__report *report, const char *key, int64_t ns)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRId64 ".%03" PRId64, ns / 1000000, ns / 1000 % 1000);
    append_literal(report, key, text);
}

void kinf__report_time(struct kinf__report *report, const char *key, int64_t at_ms)
{
    int64_t wall_ms = report->now_wall_ms - (report->now_ms - at_ms);
    char text[KINF__RFC3339_SIZE];

    if (at_ms == 0) {
        append_literal(report, key, "null");
        return;
    }
    kinf__rfc3339_write(wall_ms / 1000, (int)(wall_ms % 1000) * 1000, 3, text);
    kinf__report_text(report, key, text);
}

void kinf__report_version(struct kinf__report *report, const char *key, uint64_t version)
{
    char text[24] = "";

    if (version != 0)
        snprintf(text, sizeof text, "%" PRIu64, version);
    kinf__report_text(report, key, text);
}

int kinf__report_end(struct kinf__report *report)
{
    append(report, "\n", 1);
    return report->is_out_of_memory ? KINF_ERR_NO_MEMORY : 0;
}
