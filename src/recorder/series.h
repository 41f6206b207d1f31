/*
 * Series of events: which events are the same, how often they came, and what of it the server is to
 * be told when. Pure.
 *
 * Mirrors: eventBroadcasterImpl's eventCache, with finishSeries and refreshExistingEventSeries; there
 * only events of one resourceVersion are the same.
 * Threads: one thread per object.
 */
#ifndef KINF_RECORDER_SERIES_H
#define KINF_RECORDER_SERIES_H

#include "base/hmap.h"
#include "recorder/event.h"

#define KINF__SERIES_MAX        4096 /* the one that was silent for longest goes for another */
#define KINF__SERIES_FINISH_MS  360000
#define KINF__SERIES_REFRESH_MS 1800000

struct kinf__series {
    struct kinf__hmap_node node;
    struct kinf__list order; /* the one that was silent for longest first */
    char *key;
    struct kinf__event *event; /* the first */
    char name[KINF__EVENT_NAME_SIZE];
    struct kinf__event_series seen;
    unsigned n_told; /* how many the server knows; 0: there is no event */
    int64_t last_ms, told_ms;
    struct kinf__list retry; /* in the set's `retries` while it waits for its next try */
    int64_t retry_ms;
    unsigned n_tries; /* that failed since the server was told */
    bool has_hung;    /* the last of them: the others of its namespace wait for its next */
};

struct kinf__series_set {
    struct kinf__hmap map;
    struct kinf__list order;
    struct kinf__list retries; /* by time, the next one first */
    uint64_t
        n_lost; /* events of which the server is never told: without memory, or of a series that
                        went for another; who counts them sets it to 0 */
};

void kinf__series_set_init(struct kinf__series_set *set);
void kinf__series_set_release(struct kinf__series_set *set);

/* Takes the event and counts it; `number` is for the name of a new one. NULL: out of memory. */
struct kinf__series *kinf__series_add(struct kinf__series_set *set, struct kinf__event *take_event,
                                      uint64_t number, int64_t now_ms);

/* Whether the server is to be told at once: the first, and that there is a second. Not while it waits
 * for its next try. */
bool kinf__series_is_urgent(const struct kinf__series *series);
void kinf__series_told(struct kinf__series *series, int64_t now_ms);
void kinf__series_drop(struct kinf__series_set *set, struct kinf__series *series);

/* One that the server should be told of now, since it is over or was not told for long, and that does
 * not wait for its next try; at the end (`is_last`) any of which it does not know all. NULL: none.
 * Those that are over and told are dropped. */
struct kinf__series *kinf__series_due(struct kinf__series_set *set, int64_t now_ms, bool is_last);

/* It waits until then for its next try, and is counted on meanwhile. */
void kinf__series_put_off(struct kinf__series_set *set, struct kinf__series *series,
                          int64_t retry_ms);
/* The same after a try that failed. */
void kinf__series_try_later(struct kinf__series_set *set, struct kinf__series *series,
                            int64_t retry_ms, bool has_hung);
/* When the next try is of another one of its namespace whose last try hung, as this one's would; 0:
 * there is none. */
int64_t kinf__series_hung_until_ms(const struct kinf__series_set *set,
                                   const struct kinf__series *series);
/* When the next try of any is; KINF__NEVER_MS: none waits. */
int64_t kinf__series_retry_ms(const struct kinf__series_set *set);
/* The first one whose next try is at hand, or NULL. It waits on until it was told, is put off or
 * dropped. */
struct kinf__series *kinf__series_retry(const struct kinf__series_set *set, int64_t now_ms);

#endif
