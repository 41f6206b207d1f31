/*
 * The insides of the queue, shared by deltafifo.c (producers and consumer), replace.c and item.c.
 *
 * Threads: as each member says; the tests look inside only while nobody else does.
 */
#ifndef KINF_DELTAFIFO_DELTAFIFO_PRIV_H
#define KINF_DELTAFIFO_DELTAFIFO_PRIV_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <kinformer/deltafifo.h>

#include "base/hmap.h"
#include "base/list.h"
#include "base/lock.h"

/* Room for a resourceVersion with its NUL. */
#define KINF__FIFO_RV_SIZE 64
/* Most items leave with one delta, so most need no second allocation. */
#define KINF__FIFO_N_INLINE 2

/* One key and its pending deltas, each with a reference. The key is the one of the objects. */
struct kinf__fifo_item {
    struct kinf__hmap_node in_map;
    struct kinf__list in_queue;
    struct kinf_delta *deltas; /* `inlined`, or allocated */
    size_t n_deltas;           /* never 0 while queued or in process */
    size_t n_allocated;
    struct kinf_delta inlined[KINF__FIFO_N_INLINE];
    char rv_before[KINF__FIFO_RV_SIZE]; /* the last received when the first delta came */
};

struct kinf_deltafifo {
    /* constant after start */
    struct kinf_deltafifo_options options;

    struct kinf__mutex lock;
    struct kinf__cond not_empty; /* or closed: the consumer waits */
    struct kinf__cond not_full;  /* or closed: producers wait */

    /* guarded by lock */
    struct kinf__hmap items; /* by key: exactly what is in `queue` */
    struct kinf__list queue; /* in the order in which the keys arrived */
    size_t n_bytes;          /* of the objects in `queue` */
    size_t n_waiting_producers;
    /* What the consumer processes, outside the lock; in neither `items` nor `queue`. Its deltas do
     * not change until the consumer has taken it out again. */
    struct kinf__fifo_item *in_process;
    pthread_t consumer; /* who does, while in_process is set */
    bool in_process_is_initial;
    bool populated;
    size_t initial_count; /* items of the first Replace, not yet processed */
    bool closed;
    bool aborted;
    char last_rv[KINF__FIFO_RV_SIZE]; /* last received */
};

/* --- items (item.c) --- */

/* An item with one delta, whose object gains a reference; NULL when out of memory. */
struct kinf__fifo_item *kinf__fifo_item_new(const struct kinf_delta *first);
/* Gives up the objects too; never under the lock. */
void kinf__fifo_item_free(struct kinf__fifo_item *item);
/* Frees every item of a list that nobody else links. */
void kinf__fifo_items_free(struct kinf__list *items);

/* Room for `n_more` deltas, which kinf__fifo_item_push() then adds without a failure; their objects
 * gain a reference. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__fifo_item_reserve(struct kinf__fifo_item *item, size_t n_more);
void kinf__fifo_item_push(struct kinf__fifo_item *item, const struct kinf_delta *delta);

const char *kinf__fifo_item_key(const struct kinf__fifo_item *item);
struct kinf_delta *kinf__fifo_item_newest(struct kinf__fifo_item *item);
size_t kinf__fifo_item_bytes(const struct kinf__fifo_item *item);
/* The item of a key in a map of items; NULL if there is none. */
struct kinf__fifo_item *kinf__fifo_item_find(const struct kinf__hmap *map, const char *key,
                                             uint64_t hash);
uint64_t kinf__fifo_hash(const char *key);

/* --- the queue (deltafifo.c) --- */

/* 0 when there is room for producers, after waiting for it. Errors: KINF_ERR_STOPPED. */
KINF_MUST_CHECK int kinf__fifo_wait_for_room_locked(struct kinf_deltafifo *fifo)
    KINF__REQUIRES(fifo->lock);
/* Whether the consumer has this key in its hands. */
bool kinf__fifo_in_process_locked(const struct kinf_deltafifo *fifo, const char *key)
    KINF__REQUIRES(fifo->lock);
/* Puts a new item at the tail; the map must have room for it. */
void kinf__fifo_link_locked(struct kinf_deltafifo *fifo, struct kinf__fifo_item *item,
                            uint64_t hash) KINF__REQUIRES(fifo->lock);
/* Appends to an item that has room for it, and collapses the last two Deleted. The object that was
 * dropped, if any, is returned for the caller to give up outside the lock. */
const struct kinf_object *kinf__fifo_append_locked(struct kinf_deltafifo *fifo,
                                                   struct kinf__fifo_item *item,
                                                   const struct kinf_delta *delta)
    KINF__REQUIRES(fifo->lock);

/* Whether the structure is sound: a key is in the queue exactly if it is in the map, once; items
 * have deltas, of one key, no two Deleted in a row, a tombstone is a Deleted; bytes and initial
 * count add up; an aborted queue is closed and empty. Takes the lock. */
bool kinf__deltafifo_check(struct kinf_deltafifo *fifo);

#endif
