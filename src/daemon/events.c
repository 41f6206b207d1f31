/*
 * Lines for people and for scripts. Neighbours: watch.c calls in from its handlers, output.c
 * writes.
 */
#include "daemon/events.h"

#include "base/buffer.h"
#include "base/error.h"
#include "handlers/line.h"

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
        failed = kinf__line_append(
            &line, &(struct kinf__line){ .type = type,
                                         .resource = events->resource,
                                         .object = shown,
                                         .old = object != NULL && old != object ? old : NULL,
                                         .in_initial_list = in_initial_list,
                                         .final_state_unknown = unknown,
                                         .with_object = events->with_objects });
    else
        failed = append_text(&line, events, type, shown, in_initial_list, unknown);
    write_line(events, &line, failed);
}

void kinf__events_print_synced(const struct kinf__events *events)
{
    KINF__AUTO_BUFFER line = KINF__BUFFER_INIT;
    int failed;

    if (events->mode == KINF__EVENTS_JSON)
        failed = kinf__line_append(
            &line, &(struct kinf__line){ .type = "SYNCED", .resource = events->resource });
    else
        failed = kinf__buffer_printf(&line, "%-8s %s\n", "SYNCED", events->resource);
    write_line(events, &line, failed);
}
