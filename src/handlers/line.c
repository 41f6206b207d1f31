/*
 * Lines of JSON. Neighbours: daemon/events.c prints them, exec_handler.c sends them.
 */
#include "handlers/line.h"

#include "json/quote.h"

/* Line ends inside JSON are white space between tokens; one object must stay on one line. */
static void join_lines(char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\n' || bytes[i] == '\r')
            bytes[i] = ' ';
    }
}

static int append_object(struct kinf__buffer *out, const char *name,
                         const struct kinf_object *object)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str text;
    size_t start;

    if (kinf_object_full_json(object, &scratch, &text, NULL) < 0 ||
        kinf__buffer_printf(out, ",\"%s\":", name) < 0)
        return KINF_ERR_NO_MEMORY;
    start = out->len;
    if (kinf__buffer_append_str(out, text) < 0)
        return KINF_ERR_NO_MEMORY;
    join_lines(out->bytes + start, text.len);
    return 0;
}

static int append_text(struct kinf__buffer *out, const char *name, const char *text)
{
    int failed = kinf__buffer_printf(out, ",\"%s\":", name);

    return failed < 0 ? failed : kinf__quote(out, kinf_str_from(text));
}

static int append_names(struct kinf__buffer *out, const struct kinf_change *change)
{
    if (append_text(out, "key", kinf_object_key(change->object)) < 0 ||
        append_text(out, "resourceVersion", kinf_object_resource_version(change->object)) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_printf(out, ",\"initial\":%s,\"finalStateUnknown\":%s",
                               change->in_initial_list ? "true" : "false",
                               change->final_state_unknown ? "true" : "false");
}

const char *kinf__change_name(enum kinf_change_type type)
{
    static const char *const names[] = { [KINF_CHANGE_RESET] = "RESET",
                                         [KINF_CHANGE_ADDED] = "ADDED",
                                         [KINF_CHANGE_MODIFIED] = "MODIFIED",
                                         [KINF_CHANGE_DELETED] = "DELETED",
                                         [KINF_CHANGE_SYNCED] = "SYNCED" };

    return names[type];
}

static int append_members(struct kinf__buffer *out, const struct kinf_change *change,
                          enum kinf__line_parts parts)
{
    int failed = kinf__buffer_printf(out, "{\"type\":\"%s\"", kinf__change_name(change->type));

    if (failed == 0 && change->resource != NULL)
        failed = append_text(out, "resource", change->resource);
    if (failed == 0 && change->object != NULL)
        failed = append_names(out, change);
    if (failed == 0 && change->sequence != 0)
        failed = kinf__buffer_printf(out, ",\"seq\":%llu", (unsigned long long)change->sequence);
    if (failed == 0 && change->object != NULL && parts != KINF__LINE_NAMES)
        failed = append_object(out, "object", change->object);
    if (failed == 0 && change->old != NULL && parts == KINF__LINE_OBJECTS)
        failed = append_object(out, "oldObject", change->old);
    return failed < 0 ? failed : kinf__buffer_append(out, "}\n", 2);
}

int kinf__line_append(struct kinf__buffer *out, const struct kinf_change *change,
                      enum kinf__line_parts parts)
{
    size_t start = out->len;
    int failed = append_members(out, change, parts);

    if (failed < 0)
        out->len = start;
    return failed;
}
