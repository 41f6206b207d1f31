/*
 * The initial events of a watch list. Neighbours: reflector_collect.c fills and settles them.
 * Invariant: unless `is_unsettled`, keys rise strictly and no event deletes.
 */
#include "reflector/initial_events.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sort.h"

#define N_FIRST 64

static int compare_keys(const struct kinf__initial_event *a, const struct kinf__initial_event *b)
{
    return strcmp(kinf_object_key(a->object), kinf_object_key(b->object));
}

static int compare_events(const void *left, const void *right)
{
    const struct kinf__initial_event *a = left, *b = right;
    int order = compare_keys(a, b);

    return order != 0 ? order : (a->no > b->no) - (a->no < b->no);
}

void kinf__initial_events_release(struct kinf__initial_events *events)
{
    for (size_t i = 0; i < events->n_events; i++)
        kinf_object_unref(events->events[i].object);
    free(events->events);
    *events = (struct kinf__initial_events){ .events = NULL };
}

static int make_room(struct kinf__initial_events *events)
{
    size_t size = events->size == 0 ? N_FIRST : events->size * 2;
    struct kinf__initial_event *grown;

    if (events->n_events < events->size)
        return 0;
    grown = reallocarray(events->events, size, sizeof *grown);
    if (grown == NULL)
        return KINF_ERR_NO_MEMORY;
    events->events = grown;
    events->size = size;
    return 0;
}

int kinf__initial_events_add(struct kinf__initial_events *events, const struct kinf_object *object,
                             bool is_deleted, struct kinf_error *err)
{
    struct kinf__initial_event *event;

    if (make_room(events) < 0)
        return kinf__error_no_memory(err);
    event = &events->events[events->n_events];
    *event = (struct kinf__initial_event){ kinf_object_ref(object), events->n_events, is_deleted };
    if (is_deleted || (events->n_events != 0 && compare_keys(event - 1, event) >= 0))
        events->is_unsettled = true;
    events->n_events++;
    return 0;
}

/* Of sorted events. Those that it does not come to stay, behind the ones that are left. */
static int keep_last_of_each_key(struct kinf__initial_events *events, const struct kinf__stop *stop)
{
    size_t n_events = events->n_events, n_left = 0, i;

    for (i = 0; i < n_events && !kinf__stop_is_set(stop); i++) {
        struct kinf__initial_event *event = &events->events[i];
        bool is_last = i + 1 == n_events || compare_keys(event, event + 1) != 0;

        if (is_last && !event->is_deleted)
            events->events[n_left++] = *event;
        else
            kinf_object_unref(event->object);
    }
    memmove(&events->events[n_left], &events->events[i], (n_events - i) * sizeof *events->events);
    events->n_events = n_left + (n_events - i);
    return i < n_events ? KINF_ERR_STOPPED : 0;
}

int kinf__initial_events_settle(struct kinf__initial_events *events, const struct kinf__stop *stop)
{
    int r;

    if (!events->is_unsettled)
        return 0;
    r = kinf__sort(events->events, events->n_events, sizeof *events->events, compare_events, stop);
    if (r == 0)
        r = keep_last_of_each_key(events, stop);
    events->is_unsettled = r < 0;
    return r;
}

bool kinf__initial_events_check(const struct kinf__initial_events *events)
{
    if (events->n_events > events->size)
        return false;
    for (size_t i = 0; !events->is_unsettled && i < events->n_events; i++) {
        const struct kinf__initial_event *event = &events->events[i];

        if (event->is_deleted || (i != 0 && compare_keys(event - 1, event) >= 0))
            return false;
    }
    return true;
}
