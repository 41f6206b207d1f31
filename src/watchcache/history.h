/*
 * The history: a ring of what happened to the store, the oldest falls out. It holds entries of the
 * store, which are counted and have the object and its index values; nothing is copied.
 *
 * What an event brought in is in the store, or is what a later event of its key took out. So the
 * bytes that the history alone keeps in memory are those of what its events took out.
 *
 * Threads: under its owner's lock.
 */
#ifndef KINF_WATCHCACHE_HISTORY_H
#define KINF_WATCHCACHE_HISTORY_H

#include <stdbool.h>

#include "indexer/entry.h"

/* What happened to one key; with neither entry, a bookmark. */
struct kinf__past_event {
    struct kinf__entry *old; /* what was there, a reference; NULL: nothing */
    struct kinf__entry *now; /* what is, a reference; NULL: nothing */
    uint64_t version;
    int64_t at_ms;
};

/* Between what was stored and the list that replaced it things may have come and gone of which nobody
 * knows. */
struct kinf__history_gap {
    uint64_t before, behind; /* the versions of both */
};

#define KINF__N_HISTORY_GAPS 16

/* All zero is empty. Events are numbered for ever; a number never comes twice. */
struct kinf__history {
    struct kinf__past_event *ring;
    size_t n_allocated; /* zero or a power of two */
    uint64_t first;     /* number of the oldest */
    uint64_t end;       /* number that the next one gets */
    uint64_t start;     /* version before the oldest: what came after it is all there */
    size_t bytes;
    struct kinf__history_gap gaps[KINF__N_HISTORY_GAPS]; /* the oldest first */
    size_t n_gaps;
};

/* Frees what it holds. */
void kinf__history_release(struct kinf__history *history);

/* Empties it: begins anew after `start`, with the numbers going on. Returns what it held. */
struct kinf__history kinf__history_restart(struct kinf__history *history, uint64_t start);

/* Errors: KINF_ERR_NO_MEMORY, nothing changed. */
KINF_MUST_CHECK int kinf__history_reserve(struct kinf__history *history, size_t n_more);
/* Gives back what a large write left, if it can. */
void kinf__history_shrink(struct kinf__history *history);
/* Takes the event's references; there is room. */
void kinf__history_append(struct kinf__history *history, const struct kinf__past_event *take_event);
/* Takes the oldest out, which there is; its references become the caller's. */
struct kinf__past_event kinf__history_take_oldest(struct kinf__history *history);

/* A list has replaced everything; `behind` is not below `before`. Of too many gaps the oldest two become
 * one, so that what has no version in it is none. */
void kinf__history_note_gap(struct kinf__history *history, uint64_t before, uint64_t behind);
static inline bool kinf__history_gap_has(struct kinf__history_gap gap, uint64_t version)
{
    return gap.before < version && version < gap.behind;
}
/* The version itself, or in a gap, where what happened from there on is not known, that of before it. */
uint64_t kinf__history_before_gap(const struct kinf__history *history, uint64_t version);

static inline struct kinf__past_event *kinf__history_at(const struct kinf__history *history,
                                                        uint64_t number)
{
    return &history->ring[number & (history->n_allocated - 1)];
}

/* The number of the first event above a version. */
uint64_t kinf__history_search(const struct kinf__history *history, uint64_t version);
/* The version that everything in front of an event led to. */
uint64_t kinf__history_version_before(const struct kinf__history *history, uint64_t number);

void kinf__past_event_release(struct kinf__past_event *event);

/* NULL if it is as it should be, else what is wrong. `version` is the store's. */
const char *kinf__history_check(const struct kinf__history *history, uint64_t version);

#endif
