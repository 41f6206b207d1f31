/*
 * A watch list until its bookmark: what it sends is collected like a list. Neighbours:
 * reflector_watch.c performs the request, reflector_list.c begins and finishes what is collected.
 * Invariant: before the bookmark neither the queue nor the policy learns of an event.
 */
#include "reflector/reflector_priv.h"

#include "base/error.h"
#include "base/log.h"

void kinf__reflector_begin_stream(struct kinf__reflector *reflector)
{
    kinf__reflector_count(&reflector->n_watch_lists, 1);
    kinf__reflector_begin_list(reflector);
    reflector->is_streaming = true;
}

int kinf__reflector_on_initial_event(struct kinf__reflector *reflector,
                                     const struct kinf_object *object, bool is_deleted,
                                     struct kinf_error *err)
{
    int r = kinf__initial_events_add(&reflector->initial, object, is_deleted, err);

    if (r < 0)
        return r;
    if (object == reflector->found)
        kinf__reflector_count(&reflector->n_unchanged, 1);
    kinf__reflector_note_decoded(reflector, kinf_object_key(object));
    return 0;
}

/* Makes a list of the events. */
static int take_listed(struct kinf__reflector *reflector)
{
    struct kinf__initial_events *initial = &reflector->initial;
    struct kinf__listed *listed = &reflector->listed;

    kinf__initial_events_settle(initial);
    if (initial->n_events == 0)
        return 0;
    listed->items = calloc(initial->n_events, sizeof *listed->items);
    if (listed->items == NULL)
        return KINF_ERR_NO_MEMORY;
    listed->size = initial->n_events;
    for (size_t i = 0; i < initial->n_events; i++)
        listed->items[listed->n_items++] = KINF__TAKE(initial->events[i].object);
    initial->n_events = 0;
    return 0;
}

int kinf__reflector_on_initial_end(struct kinf__reflector *reflector, const char *rv,
                                   struct kinf_error *err)
{
    int r;

    if (reflector->must_relist)
        return kinf__error_set(err, KINF_ERR_PARSE, "undecodable initial event");
    if (take_listed(reflector) < 0)
        return kinf__error_no_memory(err);
    r = kinf__reflector_finish_list(reflector, "watchlist", rv, err);
    if (r < 0)
        return r;
    reflector->is_streaming = false;
    reflector->is_silent = false;
    kinf__reflector_count(&reflector->n_watches, 1);
    kinf__reflector_tell(reflector,
                         &(struct kinf__policy_event){ .type = KINF__POLICY_INITIAL_END,
                                                       .rv = rv,
                                                       .n_bytes = reflector->n_list_bytes });
    kinf__reflector_set_phase(reflector, KINF__REFLECTOR_WATCHING);
    return 0;
}

void kinf__reflector_give_up_stream(struct kinf__reflector *reflector)
{
    reflector->is_streaming = false;
    kinf__reflector_drop_list(reflector);
    if (reflector->policy.is_list_round)
        KINF__LOG(KINF__LOG_REFLECTOR, KINF_LOG_INFO,
                  "no watch list from this server now, asking for a list resource=%s "
                  "namespace=%s",
                  reflector->options.type->resource, kinf__reflector_namespace(reflector));
}
