/*
 * The keys of a queue: which wait, which are in process, which are for later. Pure: whoever calls
 * has the time.
 *
 * Threads: under the queue's lock.
 */
#ifndef KINF_QUEUE_KEYS_H
#define KINF_QUEUE_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/queue.h>

#include "base/hmap.h"
#include "base/list.h"
#include "base/timers.h"

enum kinf__key_state {
    KINF__KEY_IDLE,       /* for later, or not forgotten: else it is not there */
    KINF__KEY_WAITING,    /* to be taken */
    KINF__KEY_IN_PROCESS, /* and not given back yet */
};

struct kinf__queue_key {
    struct kinf__hmap_node node;
    struct kinf__list in_list; /* of its priority, or of those in process; idle: of none */
    struct kinf__timer later;  /* independent of the state */
    int64_t since_ns;          /* waiting, or to wait again: since when */
    int64_t began_ns;          /* in process: since when */
    unsigned n_requeues;
    uint8_t state;         /* enum kinf__key_state */
    int8_t priority;       /* waiting, or in process: the one by which it was taken */
    int8_t later_priority; /* of `later` */
    int8_t again_priority; /* of waits_again */
    bool waits_again;      /* in process: it was added meanwhile */
    char text[];
};

struct kinf__keys {
    struct kinf__hmap by_text;
    struct kinf__list waiting[KINF_N_PRIORITIES]; /* the lowest first */
    struct kinf__list in_process;                 /* the one that was taken first is the first */
    struct kinf__timers later;
    size_t n_waiting[KINF_N_PRIORITIES];
    size_t n_in_process;
    size_t n_later;
    uint64_t n_adds; /* keys that began to wait, or are to wait again */
};

void kinf__keys_init(struct kinf__keys *keys);
void kinf__keys_release(struct kinf__keys *keys);

/* NULL: it is not there. */
struct kinf__queue_key *kinf__keys_find(const struct kinf__keys *keys, const char *text,
                                        uint64_t hash);
/* Finds it, or makes it, idle, for one of the calls below. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__keys_provide(struct kinf__keys *keys, const char *text, uint64_t hash,
                                       struct kinf__queue_key **ret_key);

void kinf__keys_add(struct kinf__keys *keys, struct kinf__queue_key *key,
                    enum kinf_priority priority, int64_t now_ns);
void kinf__keys_add_later(struct kinf__keys *keys, struct kinf__queue_key *key,
                          enum kinf_priority priority, int64_t due_ms);
/* Adds what was for later and is due. To be called in front of every other change, so that what
 * came first is first. */
void kinf__keys_wake(struct kinf__keys *keys, int64_t now_ms);

size_t kinf__keys_n_waiting(const struct kinf__keys *keys);
/* The next one, into process. There is one. */
struct kinf__queue_key *kinf__keys_take(struct kinf__keys *keys, int64_t now_ns);
/* Of one in process. It may be freed, here and below. */
void kinf__keys_done(struct kinf__keys *keys, struct kinf__queue_key *key);
void kinf__keys_forget(struct kinf__keys *keys, struct kinf__queue_key *key);

/* Whether all parts agree. For tests. */
bool kinf__keys_check(const struct kinf__keys *keys);

#endif
