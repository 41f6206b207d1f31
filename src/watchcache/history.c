/*
 * The ring. Neighbours: feed.c appends, cursor.c reads. Invariant: versions rise strictly, but a
 * bookmark may have that of the event before it.
 */
#include "watchcache/history.h"

#include <stdlib.h>
#include <string.h>

#define MIN_ALLOCATED   64
#define N_ROOM_KEPT     1024
#define N_CHAINS_LOOKED 256

/* --- events --- */

/* Of what it took out, and of itself. */
static size_t event_bytes(const struct kinf__past_event *event)
{
    size_t bytes = sizeof *event;

    if (event->old != NULL)
        bytes += sizeof *event->old + kinf_object_size(event->old->object);
    return bytes;
}

void kinf__past_event_release(struct kinf__past_event *event)
{
    if (event->old != NULL)
        kinf__entry_unref(event->old);
    if (event->now != NULL)
        kinf__entry_unref(event->now);
}

static bool is_bookmark(const struct kinf__past_event *event)
{
    return event->old == NULL && event->now == NULL;
}

static struct kinf_str key_of(const struct kinf__past_event *event)
{
    return kinf__object_key((event->now != NULL ? event->now : event->old)->object);
}

/* --- life --- */

void kinf__history_release(struct kinf__history *history)
{
    for (uint64_t i = history->first; i < history->end; i++)
        kinf__past_event_release(kinf__history_at(history, i));
    free(history->ring);
    *history = (struct kinf__history){ .ring = NULL };
}

struct kinf__history kinf__history_restart(struct kinf__history *history, uint64_t start)
{
    struct kinf__history held = *history;

    *history = (struct kinf__history){ .first = held.end, .end = held.end, .start = start };
    return held;
}

/* --- changing --- */

/* Gives it room for `n_wanted`, which is not less than what it holds. */
static int resize(struct kinf__history *history, size_t n_wanted)
{
    struct kinf__history other = *history;

    other.n_allocated = MIN_ALLOCATED;
    while (other.n_allocated < n_wanted)
        other.n_allocated *= 2;
    other.ring = calloc(other.n_allocated, sizeof other.ring[0]);
    if (other.ring == NULL)
        return KINF_ERR_NO_MEMORY;
    for (uint64_t i = history->first; i < history->end; i++)
        *kinf__history_at(&other, i) = *kinf__history_at(history, i);
    free(history->ring);
    *history = other;
    return 0;
}

int kinf__history_reserve(struct kinf__history *history, size_t n_more)
{
    size_t n_wanted = (size_t)(history->end - history->first) + n_more;

    return n_wanted <= history->n_allocated ? 0 : resize(history, n_wanted);
}

void kinf__history_shrink(struct kinf__history *history)
{
    size_t n_held = (size_t)(history->end - history->first);

    /* That there is no memory for a smaller one leaves the larger. */
    if (history->n_allocated > N_ROOM_KEPT && n_held <= history->n_allocated / 8)
        (void)!resize(history, n_held * 2);
}

void kinf__history_append(struct kinf__history *history, const struct kinf__past_event *take_event)
{
    *kinf__history_at(history, history->end) = *take_event;
    history->end++;
    history->bytes += event_bytes(take_event);
}

struct kinf__past_event kinf__history_take_oldest(struct kinf__history *history)
{
    struct kinf__past_event event = *kinf__history_at(history, history->first);

    history->bytes -= event_bytes(&event);
    history->start = event.version;
    history->first++;
    return event;
}

static void drop_gaps(struct kinf__history *history, size_t n)
{
    history->n_gaps -= n;
    memmove(history->gaps, history->gaps + n, history->n_gaps * sizeof history->gaps[0]);
}

void kinf__history_note_gap(struct kinf__history *history, uint64_t before, uint64_t behind)
{
    if (behind - before < 2)
        return;
    while (history->n_gaps > 0 && history->gaps[0].behind <= history->start)
        drop_gaps(history, 1);
    if (history->n_gaps == KINF__N_HISTORY_GAPS) {
        history->gaps[1].before = history->gaps[0].before;
        drop_gaps(history, 1);
    }
    history->gaps[history->n_gaps++] = (struct kinf__history_gap){ before, behind };
}

/* --- reading --- */

uint64_t kinf__history_before_gap(const struct kinf__history *history, uint64_t version)
{
    for (size_t i = 0; i < history->n_gaps; i++) {
        if (kinf__history_gap_has(history->gaps[i], version))
            return history->gaps[i].before;
    }
    return version;
}

uint64_t kinf__history_search(const struct kinf__history *history, uint64_t version)
{
    uint64_t low = history->first, high = history->end;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (kinf__history_at(history, middle)->version > version)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

uint64_t kinf__history_version_before(const struct kinf__history *history, uint64_t number)
{
    return number > history->first ? kinf__history_at(history, number - 1)->version
                                   : history->start;
}

/* --- the check --- */

/* An object that an event took out is the one that the last event of its key had brought in. */
static const char *check_chain(const struct kinf__history *history, uint64_t number)
{
    const struct kinf__past_event *event = kinf__history_at(history, number);

    for (uint64_t i = number; i-- > history->first;) {
        const struct kinf__past_event *before = kinf__history_at(history, i);

        if (!is_bookmark(before) && kinf_str_equal(key_of(before), key_of(event)))
            return before->now == event->old ? NULL : "an event does not follow the one before it";
    }
    return NULL;
}

static const char *check_event(const struct kinf__history *history, uint64_t number)
{
    const struct kinf__past_event *event = kinf__history_at(history, number);
    uint64_t before = kinf__history_version_before(history, number);

    if (event->version < before || (event->version == before && !is_bookmark(event)))
        return "versions do not rise";
    if (event->old != NULL && event->now != NULL &&
        !kinf_str_equal(kinf__object_key(event->old->object), kinf__object_key(event->now->object)))
        return "an event is of two keys";
    if (is_bookmark(event) || number + N_CHAINS_LOOKED < history->end)
        return NULL;
    return check_chain(history, number);
}

const char *kinf__history_check(const struct kinf__history *history, uint64_t version)
{
    const char *wrong = NULL;
    size_t bytes = 0;

    if (history->end - history->first > history->n_allocated)
        return "more events than room";
    for (uint64_t i = history->first; wrong == NULL && i < history->end; i++) {
        wrong = check_event(history, i);
        bytes += event_bytes(kinf__history_at(history, i));
    }
    if (wrong == NULL && bytes != history->bytes)
        wrong = "wrong count of bytes";
    if (wrong == NULL && kinf__history_version_before(history, history->end) > version)
        wrong = "the history is ahead of the store";
    return wrong;
}
