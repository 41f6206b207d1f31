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

static int append_text(struct kinf__buffer *line, const struct kinf_change *change)
{
    int failed = kinf__buffer_printf(line, "%-8s %s %s rv=%s%s%s", kinf__change_name(change->type),
                                     change->resource, kinf_object_key(change->object),
                                     kinf_object_resource_version(change->object),
                                     change->in_initial_list ? " initial" : "",
                                     change->final_state_unknown ? " final-state-unknown" : "");

    if (failed < 0)
        return failed;
    make_printable(line->bytes, line->len);
    return kinf__buffer_append(line, "\n", 1);
}

static void write_line(const struct kinf__events *events, struct kinf__buffer *line, int failed)
{
    struct kinf_error err = KINF_ERROR_INIT;

    if (failed == 0)
        failed = kinf__output_write(events->output, &events->is_over, line->bytes, line->len, &err);
    else
        kinf__error_no_memory(&err);
    if (failed < 0 && failed != KINF_ERR_STOPPED)
        events->on_failure(&err, events->ctx);
}

void kinf__events_print(const struct kinf__events *events, const struct kinf_object *old,
                        const struct kinf_object *object, bool in_initial_list, bool unknown)
{
    KINF__AUTO_BUFFER line = KINF__BUFFER_INIT;
    const struct kinf_change change = {
        .type = object == NULL ? KINF_CHANGE_DELETED
                : old == NULL  ? KINF_CHANGE_ADDED
                               : KINF_CHANGE_MODIFIED,
        .resource = events->resource,
        .object = object != NULL ? object : old,
        .old = object != NULL && old != object ? old : NULL,
        .in_initial_list = in_initial_list,
        .final_state_unknown = unknown,
    };
    int failed;

    if (events->mode == KINF__EVENTS_JSON)
        failed = kinf__line_append(&line, &change,
                                   events->with_objects ? KINF__LINE_OBJECTS : KINF__LINE_NAMES);
    else
        failed = append_text(&line, &change);
    write_line(events, &line, failed);
}

void kinf__events_print_synced(const struct kinf__events *events)
{
    KINF__AUTO_BUFFER line = KINF__BUFFER_INIT;
    int failed;

    if (events->mode == KINF__EVENTS_JSON)
        failed = kinf__line_append(
            &line,
            &(struct kinf_change){ .type = KINF_CHANGE_SYNCED, .resource = events->resource },
            KINF__LINE_NAMES);
    else
        failed = kinf__buffer_printf(&line, "%-8s %s\n", "SYNCED", events->resource);
    write_line(events, &line, failed);
}

void kinf__events_end(struct kinf__events *events)
{
    kinf__output_leave(events->output, &events->is_over);
}
