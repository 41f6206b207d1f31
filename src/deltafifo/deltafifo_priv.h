/*
 * The insides of the queue. deltafifo.c has what both orders share: life, limits, waiting, close,
 * has_synced. What an order does differently stands behind struct kinf__fifo_ops: keyed.c and
 * in_order.c.
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
#include "base/stop.h"

/* Room for a resourceVersion with its NUL. */
#define KINF__FIFO_RV_SIZE 64
/* Most items leave with one delta, so most need no second allocation. */
#define KINF__FIFO_N_INLINE 2
/* A ring that became larger than this is given back when it is empty. */
#define KINF__FIFO_N_RING_KEPT 1024

/* Keyed: one key and its pending deltas, each with a reference. The key is the one of the objects.
 */
struct kinf__fifo_item {
    struct kinf__hmap_node in_map;
    struct kinf__list in_queue;
    struct kinf_delta *deltas; /* `inlined`, or allocated */
    size_t n_deltas;           /* never 0 while queued or in process */
    size_t n_allocated;
    struct kinf_delta inlined[KINF__FIFO_N_INLINE];
    char rv_before[KINF__FIFO_RV_SIZE]; /* the last received when the first delta came */
};

/* guarded by the queue's lock */
struct kinf__keyed {
    struct kinf__hmap items; /* by key: exactly what is in `queue` */
    struct kinf__list queue; /* in the order in which the keys arrived */
    /* What the consumer processes, outside the lock; in neither `items` nor `queue`. Its deltas do
     * not change until the consumer has taken it out again. */
    struct kinf__fifo_item *in_process;
    char last_rv[KINF__FIFO_RV_SIZE]; /* last received */
    struct kinf__list dropped; /* items of a list that abort cut short; freed with the queue */
};

/* In order: what a ReplacedAll carries, and a Bookmark, which has no objects. One allocation, with
 * a reference to each object. */
struct kinf__fifo_list {
    char rv[KINF__FIFO_RV_SIZE];
    size_t n_objects;
    const struct kinf_object *objects[];
};

/* In order: one delta that waits. It has what taking it needs, so that no object is touched then.
 */
struct kinf__fifo_entry {
    const struct kinf_object *object; /* a reference; Added, Updated, Deleted */
    struct kinf__fifo_list *list;     /* owned; ReplacedAll, Bookmark */
    size_t n_bytes;
    uint32_t hash; /* of the object's key */
    enum kinf_delta_type type;
};

struct kinf__in_order {
    /* guarded by the queue's lock: a ring, its first entry at `head` */
    struct kinf__fifo_entry *ring;
    size_t n_allocated; /* zero or a power of two */
    size_t head;
    size_t n_entries;
    char processed_rv[KINF__FIFO_RV_SIZE];
    /* owned by the consumer from taking to finishing */
    struct kinf_delta *batch; /* room for KINF_FIFO_BATCH_MAX; has the references of its objects */
    size_t n_in_process;
    struct kinf__fifo_list *list_in_process;
};

/* One order. _locked: with the queue's lock held; the others are called without it. */
struct kinf__fifo_ops {
    /* At the ends of the queue's life. init fails with KINF_ERR_NO_MEMORY, having kept nothing. */
    int (*init)(struct kinf_deltafifo *fifo);
    void (*release)(struct kinf_deltafifo *fifo);

    /* As the exported functions promise; the frame has seen to room and limits, but for replace,
     * which prepares what it can before it waits for room. KINF_ERR_NO_MEMORY: nothing changed. */
    int (*enqueue_locked)(struct kinf_deltafifo *fifo, enum kinf_delta_type type,
                          const struct kinf_object *object, uint64_t hash,
                          const struct kinf_object **ret_dropped);
    int (*replace)(struct kinf_deltafifo *fifo, const struct kinf_object *const *objects,
                   size_t n_objects, const char *rv);
    int (*resync_locked)(struct kinf_deltafifo *fifo);
    int (*bookmark_locked)(struct kinf_deltafifo *fifo, const char *rv);

    /* As if nothing was aborted. */
    size_t (*len_locked)(const struct kinf_deltafifo *fifo);
    /* Takes out what leaves next; the queue is not empty. */
    void (*take_locked)(struct kinf_deltafifo *fifo, struct kinf_deltas *ret_deltas);
    /* What was taken has been processed, or `is_dropped`: kinf__fifo_finish_locked(), and gives up
     * what was processed. */
    void (*finish)(struct kinf_deltafifo *fifo, bool is_dropped);
    const char *(*processed_rv_locked)(const struct kinf_deltafifo *fifo);
    bool (*check_locked)(const struct kinf_deltafifo *fifo);
};

extern const struct kinf__fifo_ops kinf__fifo_keyed_ops;
extern const struct kinf__fifo_ops kinf__fifo_in_order_ops;

struct kinf_deltafifo {
    /* constant after start */
    struct kinf_deltafifo_options options;
    const struct kinf__fifo_ops *ops;

    struct kinf__mutex lock;
    struct kinf__cond not_empty; /* or closed: the consumer waits */
    struct kinf__cond not_full;  /* or closed: producers wait */
    struct kinf__stop stop;      /* set by abort before it has the lock; looked at in loops */

    /* guarded by lock */
    size_t n_bytes; /* of the objects that are queued */
    size_t n_waiting_producers;
    bool has_news;       /* queued since the consumer was woken last */
    bool is_corked;      /* see deltafifo.h */
    bool is_nudged;      /* likewise */
    bool is_awaited;     /* the consumer waits for an item, and nobody has woken it */
    bool is_borrowed;    /* see deltafifo.h */
    bool is_wanted_back; /* the consumer would do something, but for that */
    bool is_processing;
    pthread_t consumer; /* who does, while is_processing */
    bool in_process_is_initial;
    bool populated;
    size_t initial_count; /* of the first Replace: what is queued or in process */
    bool closed;
    bool aborted;                   /* what is queued counts no more, and is freed with the queue */
    struct kinf__keyed keyed;       /* one of both is used */
    struct kinf__in_order in_order; /* each member says by whom */
};

/* --- for the orders (deltafifo.c) --- */

uint64_t kinf__fifo_hash(const char *key);
/* Whether an object's resourceVersion counts: it is there, and fits. */
bool kinf__fifo_rv_counts(const char *rv);
/* Leaves the lock, and wakes the consumer if there is news that it is due. After the lock: it
 * would only wait for that. */
void kinf__fifo_unlock(struct kinf_deltafifo *fifo) KINF__RELEASES(fifo->lock);
/* 0 when there is room for producers, after waiting for it. Errors: KINF_ERR_STOPPED. */
KINF_MUST_CHECK int kinf__fifo_wait_for_room_locked(struct kinf_deltafifo *fifo)
    KINF__REQUIRES(fifo->lock);
/* A list was queued: if nothing came before, all that is queued now is the initial population. */
void kinf__fifo_populate_locked(struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock);
void kinf__fifo_finish_locked(struct kinf_deltafifo *fifo, bool is_dropped)
    KINF__REQUIRES(fifo->lock);
void kinf__fifo_abort_locked(struct kinf_deltafifo *fifo) KINF__REQUIRES(fifo->lock);

/* --- by key (keyed.c) --- */

const char *kinf__fifo_item_key(const struct kinf__fifo_item *item);
size_t kinf__fifo_item_bytes(const struct kinf__fifo_item *item);

/* Whether the structure is sound: bytes and initial count add up, an aborted queue is closed, no
 * borrowed one is awaited.
 * Keyed: a key is in the queue exactly if it is in the map, once; items have deltas, of one
 * key, no two Deleted in a row, a tombstone is a Deleted. In order: each entry has what its type
 * needs and nothing else; no two bookmarks in a row; the initial population ends with a ReplacedAll
 * and has nothing in it that could leave with another. Takes the lock. */
bool kinf__deltafifo_check(struct kinf_deltafifo *fifo);

#endif
