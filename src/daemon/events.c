/*
 * Lines for people and for scripts. Neighbours: watch.c calls in from its handlers, output.c
 * writes.
 */
#include "daemon/events.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "json/quote.h"

/* Line ends inside JSON are white space between tokens; one object must stay on one line. */
static void join_lines(char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\n' || bytes[i] == '\r')
            bytes[i] = ' ';
    }
}

static int append_object(struct kinf__buffer *line, const char *name,
                         const struct kinf_object *object)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str text;
    size_t start;

    if (kinf_object_full_json(object, &scratch, &text, NULL) < 0 ||
        kinf__buffer_printf(line, ",\"%s\":", name) < 0)
        return KINF_ERR_NO_MEMORY;
    start = line->len;
    if (kinf__buffer_append_str(line, text) < 0)
        return KINF_ERR_NO_MEMORY;
    join_lines(line->bytes + start, text.len);
    return 0;
}

static int append_json(struct kinf__buffer *line, const struct kinf__events *events,
                       const char *type, const struct kinf_object *shown,
                       const struct kinf_object *old, bool initial, bool unknown)
{
    if (kinf__buffer_printf(line, "{\"type\":\"%s\",\"resource\":", type) < 0 ||
        kinf__quote(line, kinf_str_from(events->resource)) < 0 ||
        kinf__buffer_append(line, ",\"key\":", 7) < 0 ||
        kinf__quote(line, kinf_str_from(kinf_object_key(shown))) < 0 ||
        kinf__buffer_append(line, ",\"resourceVersion\":", 19) < 0 ||
        kinf__quote(line, kinf_str_from(kinf_object_resource_version(shown))) < 0 ||
        kinf__buffer_printf(line, ",\"initial\":%s,\"finalStateUnknown\":%s",
                            initial ? "true" : "false", unknown ? "true" : "false") < 0)
        return KINF_ERR_NO_MEMORY;
    if (events->with_objects && append_object(line, "object", shown) < 0)
        return KINF_ERR_NO_MEMORY;
    if (events->with_objects && old != NULL && old != shown &&
        append_object(line, "oldObject", old) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(line, "}\n", 2);
}

/* Some types' names may hold line ends and what moves a terminal's cursor (those of RBAC). */
static void make_printable(char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)bytes[i] < ' ' || bytes[i] == '\x7f')
            bytes[i] = '?';
    }
}

static int append_text(struct kinf__buffer *line, const struct kinf__events *events,
                       const char *type, const struct kinf_object *shown, bool initial,
                       bool unknown)
{
    int failed =
        kinf__buffer_printf(line, "%-8s %s %s rv=%s%s%s", type, events->resource,
                            kinf_object_key(shown), kinf_object_resource_version(shown),
                            initial ? " initial" : "", unknown ? " final-state-unknown" : "");

    if (failed < 0)
        return failed;
    make_printable(line->bytes, line->len);
    return kinf__buffer_append(line, "\n", 1);
}

static void write_line(const struct kinf__events *events, struct kinf__buffer *line, int failed)
{
    struct kinf_error err = KINF_ERROR_INIT;

    if (failed == 0)
        failed = kinf__output_write(events->output, line->bytes, line->len, &err);
    else
        kinf__error_no_memory(&err);
    if (failed < 0 && failed != KINF_ERR_STOPPED)
        events->on_failure(&err, events->ctx);
}

void kinf__events_print(const struct kinf__events *events, const struct kinf_object *old,
                        const struct kinf_object *object, bool in_initial_list, bool unknown)
{
    KINF__AUTO_BUFFER line = KINF__BUFFER_INIT;
    const char *type = object == NULL ? "DELETED" : old == NULL ? "ADDED" : "MODIFIED";
    const struct kinf_object *shown = object != NULL ? object : old;
    int failed;

    if (events->mode == KINF__EVENTS_JSON)
        failed = append_json(&line, events, type, shown, object != NULL ? old : NULL,
                             in_initial_list, unknown);
    else
        failed = append_text(&line, events, type, shown, in_initial_list, unknown);
    write_line(events, &line, failed);
}

void kinf__events_print_synced(const struct kinf__events *events)
{
    KINF__AUTO_BUFFER line = KINF__BUFFER_INIT;
    int failed;

    if (events->mode == KINF__EVENTS_JSON) {
        failed = kinf__buffer_printf(&line, "{\"type\":\"SYNCED\",\"resource\":");
        failed = failed < 0 ? failed : kinf__quote(&line, kinf_str_from(events->resource));
        failed = failed < 0 ? failed : kinf__buffer_append(&line, "}\n", 2);
    } else {
        failed = kinf__buffer_printf(&line, "%-8s %s\n", "SYNCED", events->resource);
    }
    write_line(events, &line, failed);
}
