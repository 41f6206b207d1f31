/*
 * Lines of JSON. Neighbours: daemon/events.c prints them, outbox.c says what is to be sent.
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

static int append_names(struct kinf__buffer *out, const struct kinf__line *line)
{
    if (append_text(out, "key", kinf_object_key(line->object)) < 0 ||
        append_text(out, "resourceVersion", kinf_object_resource_version(line->object)) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_printf(out, ",\"initial\":%s,\"finalStateUnknown\":%s",
                               line->in_initial_list ? "true" : "false",
                               line->final_state_unknown ? "true" : "false");
}

static int append_members(struct kinf__buffer *out, const struct kinf__line *line)
{
    int failed = kinf__buffer_printf(out, "{\"type\":\"%s\"", line->type);

    if (failed == 0 && line->resource != NULL)
        failed = append_text(out, "resource", line->resource);
    if (failed == 0 && line->object != NULL)
        failed = append_names(out, line);
    if (failed == 0 && line->sequence != 0)
        failed = kinf__buffer_printf(out, ",\"seq\":%llu", (unsigned long long)line->sequence);
    if (failed == 0 && line->object != NULL && line->with_object)
        failed = append_object(out, "object", line->object);
    if (failed == 0 && line->old != NULL && line->with_object)
        failed = append_object(out, "oldObject", line->old);
    return failed < 0 ? failed : kinf__buffer_append(out, "}\n", 2);
}

int kinf__line_append(struct kinf__buffer *out, const struct kinf__line *line)
{
    size_t start = out->len;
    int failed = append_members(out, line);

    if (failed < 0)
        out->len = start;
    return failed;
}
