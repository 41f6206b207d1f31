/*
 * The text of events, events.k8s.io/v1. Neighbours: series.c counts them, recorder.c sends them.
 */
#include "recorder/event.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kinformer/type.h>

#include "base/rfc3339.h"
#include "json/quote.h"
#include "object/object.h"

#define NUMBER_LEN 17 /* a dot and sixteen digits */

struct kinf__event *kinf__event_new(const struct kinf_object *regarding,
                                    const struct kinf_object *related, bool is_warning,
                                    const char *reason, const char *action, char *take_note,
                                    int64_t wall_ms)
{
    struct kinf__event *event = calloc(1, sizeof *event);

    if (event == NULL) {
        free(take_note);
        return NULL;
    }
    event->regarding = kinf_object_ref(regarding);
    event->related = related != NULL ? kinf_object_ref(related) : NULL;
    event->is_warning = is_warning;
    event->reason = strdup(reason);
    event->action = strdup(action);
    event->note = take_note;
    event->at_wall_ms = wall_ms;
    if (event->reason == NULL || event->action == NULL || event->note == NULL) {
        kinf__event_free(event);
        return NULL;
    }
    event->note[kinf__quote_fit(kinf_str_from(event->note), KINF__EVENT_NOTE_MAX)] = '\0';
    return event;
}

void kinf__event_free(struct kinf__event *event)
{
    if (event == NULL)
        return;
    kinf_object_unref(event->regarding);
    kinf_object_unref(event->related);
    free(event->reason);
    free(event->action);
    free(event->note);
    free(event);
}

/* --- what it is about --- */

static int append_object_key(const struct kinf_object *object, struct kinf__buffer *key)
{
    const struct kinf_type *type = kinf_object_type(object);

    return kinf__buffer_printf(key, "\n%s/%s %s %s", type->group, type->kind,
                               kinf_object_key(object), kinf_object_uid(object));
}

int kinf__event_append_key(const struct kinf__event *event, struct kinf__buffer *key)
{
    if (kinf__buffer_printf(key, "%d\n%s\n%s", event->is_warning, event->reason, event->action) <
            0 ||
        append_object_key(event->regarding, key) < 0)
        return KINF_ERR_NO_MEMORY;
    return event->related != NULL ? append_object_key(event->related, key) : 0;
}

/* Events about what has no namespace are in "default": the server wants it so. */
struct kinf_str kinf__event_namespace(const struct kinf__event *event)
{
    struct kinf_str name_space = kinf_object_namespace(event->regarding);

    return name_space.len != 0 ? name_space : KINF_STR("default");
}

static bool is_name_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-';
}

/* Whether something may follow it, with a dot between. */
static bool is_subdomain(const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < len; i++) {
        bool is_edge = i == 0 || i + 1 == len || name[i - 1] == '.' || name[i + 1] == '.';

        if (name[i] == '.' ? is_edge : !is_name_byte(name[i]) || (is_edge && name[i] == '-'))
            return false;
    }
    return len >= 1 && len <= KINF__EVENT_NAME_SIZE - 1 - NUMBER_LEN;
}

void kinf__event_name(const struct kinf__event *event, uint64_t number,
                      char name[KINF__EVENT_NAME_SIZE])
{
    const char *about = kinf_object_name(event->regarding);

    snprintf(name, KINF__EVENT_NAME_SIZE, "%s.%016" PRIx64, is_subdomain(about) ? about : "event",
             number);
}

/* --- JSON --- */

static int append_text(struct kinf__buffer *out, const char *key, struct kinf_str value)
{
    const char *comma = out->bytes[out->len - 1] == '{' ? "" : ",";

    return kinf__buffer_printf(out, "%s\"%s\":", comma, key) < 0 ? KINF_ERR_NO_MEMORY
                                                                 : kinf__quote(out, value);
}

static int append_time(struct kinf__buffer *out, const char *key, int64_t wall_ms)
{
    char text[KINF__RFC3339_SIZE];

    kinf__rfc3339_write(wall_ms / 1000, (int)(wall_ms % 1000) * 1000, 6, text);
    return kinf__buffer_printf(out, ",\"%s\":\"%s\"", key, text);
}

static int append_reference(struct kinf__buffer *out, const char *key,
                            const struct kinf_object *object)
{
    const struct kinf_type *type = kinf_object_type(object);
    struct kinf_str name_space = kinf_object_namespace(object);
    char api_version[KINF__API_VERSION_SIZE];

    kinf__type_api_version(type, api_version);
    if (kinf__buffer_printf(out, ",\"%s\":{\"apiVersion\":\"%s\",\"kind\":\"%s\"", key, api_version,
                            type->kind) < 0 ||
        append_text(out, "name", kinf_str_from(kinf_object_name(object))) < 0 ||
        (name_space.len != 0 && append_text(out, "namespace", name_space) < 0) ||
        append_text(out, "uid", kinf_str_from(kinf_object_uid(object))) < 0 ||
        append_text(out, "resourceVersion", kinf_str_from(kinf_object_resource_version(object))) <
            0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(out, "}", 1);
}

static int append_series(struct kinf__buffer *out, const struct kinf__event_series *series)
{
    if (kinf__buffer_printf(out, "\"series\":{\"count\":%u", series->count) < 0 ||
        append_time(out, "lastObservedTime", series->last_wall_ms) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(out, "}", 1);
}

static int append_head(const struct kinf__event *event, const char *name, struct kinf__buffer *out)
{
    if (kinf__buffer_printf(
            out, "{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{") < 0 ||
        append_text(out, "name", kinf_str_from(name)) < 0 ||
        append_text(out, "namespace", kinf__event_namespace(event)) < 0 ||
        kinf__buffer_append(out, "}", 1) < 0)
        return KINF_ERR_NO_MEMORY;
    return append_time(out, "eventTime", event->at_wall_ms);
}

int kinf__event_write(const struct kinf__event *event, const char *name,
                      const struct kinf__event_source *source,
                      const struct kinf__event_series *series, struct kinf__buffer *out)
{
    if (append_head(event, name, out) < 0 ||
        append_text(out, "reportingController", kinf_str_from(source->controller)) < 0 ||
        append_text(out, "reportingInstance", kinf_str_from(source->instance)) < 0 ||
        append_text(out, "type", kinf_str_from(event->is_warning ? "Warning" : "Normal")) < 0 ||
        append_text(out, "reason", kinf_str_from(event->reason)) < 0 ||
        append_text(out, "action", kinf_str_from(event->action)) < 0 ||
        append_text(out, "note", kinf_str_from(event->note)) < 0 ||
        append_reference(out, "regarding", event->regarding) < 0 ||
        (event->related != NULL && append_reference(out, "related", event->related) < 0) ||
        (series->count > 1 &&
         (kinf__buffer_append(out, ",", 1) < 0 || append_series(out, series) < 0)))
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(out, "}", 1);
}

int kinf__event_write_series(const struct kinf__event_series *series, struct kinf__buffer *out)
{
    if (kinf__buffer_append(out, "{", 1) < 0 || append_series(out, series) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(out, "}", 1);
}
