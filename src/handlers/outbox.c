/*
 * What waits for a consumer, in order, and what it has been told. Neighbours: outbox_feeds.c says what is
 * to be told, exec_handler.c and other kinds take it.
 */
#include "handlers/outbox_priv.h"

#include <stdlib.h>

#include "base/error.h"

/* --- what waits --- */

bool kinf__outbox_entry_is_placed(const struct kinf__outbox_entry *entry)
{
    return !kinf__list_is_empty(&entry->place);
}

void kinf__outbox_wait_for_turn(struct kinf__outbox *outbox, struct kinf__outbox_entry *entry)
{
    if (kinf__outbox_entry_is_placed(entry))
        return;
    kinf__list_push_back(&outbox->waiting, &entry->place);
    outbox->n_waiting++;
    kinf__waker_set(&outbox->wake);
}

void kinf__outbox_leave_waiting(struct kinf__outbox *outbox, struct kinf__outbox_entry *entry)
{
    if (!kinf__outbox_entry_is_placed(entry))
        return;
    kinf__list_remove(&entry->place);
    outbox->n_waiting--;
}

void kinf__outbox_entry_free(struct kinf__outbox_entry *entry)
{
    kinf__list_remove(&entry->place);
    kinf_object_unref(entry->object);
    kinf_object_unref(entry->old);
    free(entry);
}

void kinf__outbox_set_object(const struct kinf_object **place, const struct kinf_object *object)
{
    const struct kinf_object *before = *place;

    *place = kinf_object_ref(object);
    kinf_object_unref(before);
}

void kinf__outbox_drop_deletions(struct kinf__outbox_feed *feed)
{
    KINF__LIST_FOR_EACH_SAFE (place, &feed->outbox->waiting) {
        struct kinf__outbox_entry *entry =
            KINF__LIST_ENTRY(place, struct kinf__outbox_entry, place);

        if (entry->feed == feed && entry->is_deleted) {
            kinf__outbox_leave_waiting(feed->outbox, entry);
            kinf__outbox_entry_free(entry);
        }
    }
    KINF__LIST_FOR_EACH_SAFE (place, &feed->outbox->unacknowledged) {
        struct kinf__outbox_entry *entry =
            KINF__LIST_ENTRY(place, struct kinf__outbox_entry, place);

        if (entry->feed == feed)
            kinf__outbox_entry_free(entry);
    }
}

/* --- a consumer that is new --- */

/* What waited leaves, but for deletions; those that were told and not acknowledged come first. */
static void gather_deletions(struct kinf__outbox *outbox)
{
    struct kinf__list all;

    kinf__list_init(&all);
    kinf__list_append(&all, &outbox->unacknowledged);
    kinf__list_append(&all, &outbox->waiting);
    outbox->n_waiting = 0;
    KINF__LIST_FOR_EACH_SAFE (place, &all) {
        struct kinf__outbox_entry *entry =
            KINF__LIST_ENTRY(place, struct kinf__outbox_entry, place);

        kinf__list_remove(place);
        kinf__outbox_set_object(&entry->old, NULL);
        if (entry->is_deleted && outbox->options.acknowledges)
            kinf__outbox_wait_for_turn(outbox, entry);
        else if (entry->is_deleted)
            kinf__outbox_entry_free(entry);
    }
}

void kinf__outbox_reset_locked(struct kinf__outbox *outbox)
{
    gather_deletions(outbox);
    kinf__outbox_feeds_tell_anew(outbox);
    outbox->is_reset_due = true;
    kinf__waker_set(&outbox->wake);
}

void kinf__outbox_reset(struct kinf__outbox *outbox)
{
    kinf__mutex_lock(&outbox->lock);
    kinf__outbox_reset_locked(outbox);
    outbox->n_acknowledged = outbox->n_told;
    kinf__mutex_unlock(&outbox->lock);
}

/* --- telling --- */

static struct kinf_change describe(const struct kinf__outbox_entry *entry)
{
    return (struct kinf_change){
        .type = entry->object == NULL ? KINF_CHANGE_SYNCED
                : entry->is_deleted   ? KINF_CHANGE_DELETED
                : entry->is_told      ? KINF_CHANGE_MODIFIED
                                      : KINF_CHANGE_ADDED,
        .resource = entry->feed->resource,
        .object = entry->object,
        .old = entry->old,
        .in_initial_list = entry->in_initial_list && !entry->is_told && !entry->is_deleted,
        .final_state_unknown = entry->final_state_unknown,
    };
}

static void note_told(struct kinf__outbox *outbox, struct kinf__outbox_entry *entry)
{
    kinf__outbox_leave_waiting(outbox, entry);
    entry->is_told = entry->was_ever_told = true;
    entry->sequence = outbox->n_told;
    entry->feed->is_known = true;
    if (entry->is_deleted && outbox->options.acknowledges)
        kinf__list_push_back(&outbox->unacknowledged, &entry->place);
    else if (entry->is_deleted)
        kinf__outbox_entry_free(entry);
    else if (outbox->options.keeps_old)
        kinf__outbox_set_object(&entry->old, entry->object);
}

/* The entry is NULL when it is RESET's turn. */
static int tell(struct kinf__outbox *outbox, struct kinf__outbox_entry *entry,
                kinf__outbox_take_cb *take, void *ctx)
{
    struct kinf_change change = { .type = KINF_CHANGE_RESET };
    int failed;

    if (entry != NULL)
        change = describe(entry);
    if (outbox->options.acknowledges)
        change.sequence = outbox->n_told + 1;
    if ((failed = take(&change, ctx)) < 0)
        return failed;
    outbox->n_told++;
    outbox->is_reset_due = false;
    if (entry != NULL)
        note_told(outbox, entry);
    return 1;
}

static bool may_tell(const struct kinf__outbox *outbox)
{
    return !outbox->options.acknowledges ||
           outbox->n_told - outbox->n_acknowledged < KINF__OUTBOX_WINDOW;
}

int kinf__outbox_next(struct kinf__outbox *outbox, kinf__outbox_take_cb *take, void *ctx)
{
    int n = 0;

    kinf__mutex_lock(&outbox->lock);
    if (may_tell(outbox)) {
        if (outbox->is_reset_due)
            n = tell(outbox, NULL, take, ctx);
        else if (!kinf__list_is_empty(&outbox->waiting))
            n = tell(outbox,
                     KINF__LIST_ENTRY(outbox->waiting.next, struct kinf__outbox_entry, place), take,
                     ctx);
    }
    kinf__mutex_unlock(&outbox->lock);
    return n;
}

static void free_acknowledged(struct kinf__outbox *outbox)
{
    KINF__LIST_FOR_EACH_SAFE (place, &outbox->unacknowledged) {
        struct kinf__outbox_entry *entry =
            KINF__LIST_ENTRY(place, struct kinf__outbox_entry, place);

        if (entry->sequence > outbox->n_acknowledged)
            break;
        kinf__outbox_entry_free(entry);
    }
}

bool kinf__outbox_acknowledge(struct kinf__outbox *outbox, uint64_t sequence)
{
    bool makes_sense;

    kinf__mutex_lock(&outbox->lock);
    makes_sense = sequence >= outbox->n_acknowledged && sequence <= outbox->n_told;
    if (makes_sense) {
        outbox->n_acknowledged = sequence;
        free_acknowledged(outbox);
    }
    kinf__mutex_unlock(&outbox->lock);
    return makes_sense;
}

/* --- life --- */

int kinf__outbox_init(struct kinf__outbox *outbox, const struct kinf__outbox_options *options,
                      struct kinf_error *err)
{
    *outbox = (struct kinf__outbox){ .options = *options };
    kinf__list_init(&outbox->feeds);
    kinf__list_init(&outbox->waiting);
    kinf__list_init(&outbox->unacknowledged);
    kinf__mutex_init(&outbox->lock, KINF__RANK_OUTBOX);
    return kinf__waker_init(&outbox->wake, err);
}

void kinf__outbox_release(struct kinf__outbox *outbox)
{
    kinf__waker_release(&outbox->wake);
    kinf__mutex_release(&outbox->lock);
}

void kinf__outbox_close(struct kinf__outbox *outbox)
{
    kinf__mutex_lock(&outbox->lock);
    outbox->is_closed = true;
    kinf__mutex_unlock(&outbox->lock);
    kinf__waker_set(&outbox->wake);
}

bool kinf__outbox_is_closed(struct kinf__outbox *outbox)
{
    bool is_closed;

    kinf__mutex_lock(&outbox->lock);
    is_closed = outbox->is_closed;
    kinf__mutex_unlock(&outbox->lock);
    return is_closed;
}

void kinf__outbox_status(struct kinf__outbox *outbox, struct kinf__outbox_status *ret_status)
{
    kinf__mutex_lock(&outbox->lock);
    ret_status->n_waiting = outbox->n_waiting + outbox->is_reset_due;
    ret_status->n_told = outbox->n_told;
    ret_status->n_unacknowledged =
        outbox->options.acknowledges ? outbox->n_told - outbox->n_acknowledged : 0;
    kinf__mutex_unlock(&outbox->lock);
}

bool kinf__outbox_check(struct kinf__outbox *outbox)
{
    uint64_t sequence = outbox->n_acknowledged;
    size_t n = 0;
    bool is_sound = outbox->n_acknowledged <= outbox->n_told;

    kinf__mutex_lock(&outbox->lock);
    KINF__LIST_FOR_EACH (place, &outbox->waiting) {
        const struct kinf__outbox_entry *entry =
            KINF__LIST_ENTRY(place, struct kinf__outbox_entry, place);

        is_sound = is_sound && (entry->object != NULL || entry == &entry->feed->synced);
        n++;
    }
    is_sound = is_sound && n == outbox->n_waiting;
    KINF__LIST_FOR_EACH (place, &outbox->unacknowledged) {
        const struct kinf__outbox_entry *entry =
            KINF__LIST_ENTRY(place, struct kinf__outbox_entry, place);

        is_sound = is_sound && entry->is_deleted && entry->sequence > sequence &&
                   entry->sequence <= outbox->n_told;
        sequence = entry->sequence;
    }
    KINF__LIST_FOR_EACH (link, &outbox->feeds)
        is_sound = is_sound &&
                   kinf__outbox_feed_check(KINF__LIST_ENTRY(link, struct kinf__outbox_feed, link));
    kinf__mutex_unlock(&outbox->lock);
    return is_sound;
}
