/*
 * An event as it is recorded, and as the server is told it.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_RECORDER_EVENT_H
#define KINF_RECORDER_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/object.h>

#include "base/buffer.h"
#include "base/list.h"

#define KINF__EVENT_NOTE_MAX 1024 /* as the server reads it */

struct kinf__event {
    struct kinf__list node; /* in the queue */
    const struct kinf_object *regarding, *related;
    bool is_warning;
    char *reason, *action, *note;
    int64_t at_wall_ms;
};

/* What of it tells series apart: all but note and versions. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__event_append_key(const struct kinf__event *event,
                                           struct kinf__buffer *key);

/* Takes the note, and cuts it. NULL: out of memory. */
struct kinf__event *kinf__event_new(const struct kinf_object *regarding,
                                    const struct kinf_object *related, bool is_warning,
                                    const char *reason, const char *action, char *take_note,
                                    int64_t wall_ms);
void kinf__event_free(struct kinf__event *event);

/* Who reports. */
struct kinf__event_source {
    const char *controller, *instance;
};

/* How often, and when last. */
struct kinf__event_series {
    unsigned count;
    int64_t last_wall_ms;
};

/* Where events about the object are. */
struct kinf_str kinf__event_namespace(const struct kinf__event *event);

/* The event; with a series if there is more than one. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__event_write(const struct kinf__event *event, const char *name,
                                      const struct kinf__event_source *source,
                                      const struct kinf__event_series *series,
                                      struct kinf__buffer *out);
/* A merge patch that says how many there are now. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__event_write_series(const struct kinf__event_series *series,
                                             struct kinf__buffer *out);

#define KINF__EVENT_NAME_SIZE 254

/* A name that no other event has, after that of the object if that can be. */
void kinf__event_name(const struct kinf__event *event, uint64_t number,
                      char name[KINF__EVENT_NAME_SIZE]);

#endif
