/*
 * What a watch list sends before its bookmark, and the state that it adds up to.
 *
 * Events are kept as they come, in any order of keys and versions; settling leaves of each key what
 * its last event says. The usual stream, objects in the order of their keys and nothing else, costs
 * one comparison an event and no sorting.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_REFLECTOR_INITIAL_EVENTS_H
#define KINF_REFLECTOR_INITIAL_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#include <kinformer/error.h>
#include <kinformer/object.h>

#include "base/compiler.h"
#include "base/stop.h"

struct kinf__initial_event {
    const struct kinf_object *object; /* a reference */
    size_t no;                        /* in the order of arrival */
    bool is_deleted;
};

struct kinf__initial_events {
    struct kinf__initial_event *events;
    size_t n_events;
    size_t size;
    bool is_unsettled; /* a key came twice or out of order, or was deleted */
};

/* Empty is all zero. Drops what is held. */
void kinf__initial_events_release(struct kinf__initial_events *events);

/* Takes a reference of its own. Errors: KINF_ERR_NO_MEMORY, nothing changed. */
KINF_MUST_CHECK int kinf__initial_events_add(struct kinf__initial_events *events,
                                             const struct kinf_object *object, bool is_deleted,
                                             struct kinf_error *err);

/* Afterwards there is one event for each key that is left, in the order of keys, and none of them
 * deletes. `stop` may be NULL. Errors: KINF_ERR_STOPPED, KINF_ERR_NO_MEMORY; then there are events to
 * be released, or, of the latter, to be settled again. */
KINF_MUST_CHECK int kinf__initial_events_settle(struct kinf__initial_events *events,
                                                const struct kinf__stop *stop);

/* Whether what counts as settled is. For tests. */
bool kinf__initial_events_check(const struct kinf__initial_events *events);

#endif
