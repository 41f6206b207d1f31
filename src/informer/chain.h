/*
 * The chain: a queue of notifications without a bound, in chunks, each told as it came.
 *
 * Mirrors: buffer.RingGrowing of cache.processorListener.
 * Threads: under its owner's lock; chunks that were taken out are the taker's.
 */
#ifndef KINF_INFORMER_CHAIN_H
#define KINF_INFORMER_CHAIN_H

#include <stddef.h>

#include "informer/notification.h"

struct kinf__chunk {
    struct kinf__chunk *next;
    size_t n_items;
    size_t n_released; /* of them, the first: they hold nothing any more */
    size_t capacity;
    struct kinf__notification items[]; /* hold references; `old` of updates only */
};

struct kinf__chain {
    struct kinf__chunk *first;
    struct kinf__chunk *last;
    size_t n_notifications;
    struct kinf__chunk *spares; /* empty, and all of one size; a push takes at most one */
    size_t n_spares;
    struct kinf__chunk *sentinel; /* until it is pushed */
};

/* Errors: KINF_ERR_NO_MEMORY; release it then, too. */
KINF_MUST_CHECK int kinf__chain_init(struct kinf__chain *chain);
void kinf__chain_release(struct kinf__chain *chain);

/* Makes sure that the next `n_pushes`, of up to `n_most` notifications each, cannot fail. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__chain_reserve(struct kinf__chain *chain, size_t n_pushes, size_t n_most);
/* Gives back what was reserved and not needed, but for one small chunk. */
void kinf__chain_trim(struct kinf__chain *chain);
/* Appends notifications. */
void kinf__chain_push(struct kinf__chain *chain, const struct kinf__notification *notifications,
                      size_t n_notifications, int64_t now_ms);
/* Appends the sentinel, the first time. Needs no reserve. */
void kinf__chain_push_synced(struct kinf__chain *chain, int64_t now_ms);

/* Takes everything out; NULL: it is empty. */
struct kinf__chunk *kinf__chain_take_all(struct kinf__chain *chain);
/* Drops the references of a notification. */
void kinf__notification_release(struct kinf__notification *notification);
/* Frees a chunk that was taken, and those behind it. NULL is allowed. */
void kinf__chunks_free(struct kinf__chunk *chunk);

/* The first one's since_ms; false: it is empty. */
bool kinf__chain_oldest(const struct kinf__chain *chain, uint32_t *ret_since_ms);

/* Whether it is sound: chunks are filled in order and none is empty, the last one is last,
 * notifications have the objects of their type, the number is right. */
bool kinf__chain_check(const struct kinf__chain *chain);

#endif
