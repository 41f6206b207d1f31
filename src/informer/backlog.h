/*
 * A backlog: the notifications that wait for one handler. Of two kinds (enum kinf_backlog):
 * unbounded, each told as it came; coalescing, where those of one key merge.
 *
 * What waits for a key in a coalescing one is not a list of what happened but the net change from
 * what its handler was told last: nothing, one notification, or a delete and an add (another object
 * of the same name). So the merge rules are those of composing changes:
 *
 *   waiting                 + came                 = waits
 *   add(a)                  update(a, b) or sync   add(b), in the initial list if add(a) was
 *   add(a)                  delete                 nothing
 *   update(told, a), sync   update(a, b) or sync   update(told, b)
 *   update(told, a), sync   delete(b)              delete(b), final_state_unknown as it came
 *   delete(a)               add(b), another uid    delete(a), add(b)
 *   delete(a)               add(b), the same uid   update(told, b)
 *   delete(a), add(b)       update(b, c) or sync   delete(a), add(c)
 *   delete(a), add(b)       delete                 delete(a), final_state_unknown as it was
 *
 * A sync is an update from a state to itself. A key keeps the place of the first notification that
 * waits for it: one that changes all the time cannot be put off for ever, and no add of the initial
 * list falls behind the sentinel by merging. Keys have no other order.
 *
 * Mirrors: buffer.RingGrowing of cache.processorListener.
 * Threads: under its owner's lock.
 */
#ifndef KINF_INFORMER_BACKLOG_H
#define KINF_INFORMER_BACKLOG_H

#include <stddef.h>

#include <kinformer/informer.h>

#include "informer/notification.h"

/* Most that are taken at once. */
#define KINF__BACKLOG_TAKE 64

struct kinf__backlog;

struct kinf__backlog_class {
    struct kinf__backlog *(*make)(void); /* NULL: no memory */
    void (*free)(struct kinf__backlog *backlog);
    /* Makes room for `n` pushes in all. Errors: KINF_ERR_NO_MEMORY. */
    int (*reserve)(struct kinf__backlog *backlog, size_t n);
    /* Gives back what is not reserved, but for a little. */
    void (*trim)(struct kinf__backlog *backlog);
    void (*push)(struct kinf__backlog *backlog, const struct kinf__notification *notification,
                 uint32_t now_ms);
    size_t (*take)(struct kinf__backlog *backlog, struct kinf__notification *ret_notifications);
    /* NULL: nothing merges. */
    bool (*take_initial)(struct kinf__backlog *backlog, const char *key,
                         const struct kinf_object **ret_object);
    uint32_t (*oldest)(const struct kinf__backlog *backlog);
    bool (*check)(const struct kinf__backlog *backlog);
};

struct kinf__backlog {
    const struct kinf__backlog_class *class;
    size_t n_notifications; /* callbacks that would run if all were told */
    size_t n_reserved;      /* pushes that cannot fail */
    uint64_t n_merged;      /* callbacks that merging has spared */
};

extern const struct kinf__backlog_class kinf__backlog_unbounded;
extern const struct kinf__backlog_class kinf__backlog_coalescing;

/* With room for the sentinel. Errors: KINF_ERR_INVALID (no such kind), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__backlog_new(enum kinf_backlog kind, struct kinf__backlog **ret_backlog,
                                      struct kinf_error *err);
/* Frees what waits, too, which may take a while. NULL is allowed. */
void kinf__backlog_free(struct kinf__backlog *backlog);

/* Makes sure that `n` more notifications can be pushed. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__backlog_reserve(struct kinf__backlog *backlog, size_t n);
/* Gives back what was reserved and not needed. */
void kinf__backlog_unreserve(struct kinf__backlog *backlog, size_t n);
/* Pushes notifications that room was reserved for; the objects gain references. */
void kinf__backlog_push(struct kinf__backlog *backlog,
                        const struct kinf__notification *notifications, size_t n, int64_t now_ms);

/* Takes the first out, as many as can be told without asking again, with their references. Returns
 * how many; 0: nothing waits. */
static inline size_t kinf__backlog_take(
    struct kinf__backlog *backlog, struct kinf__notification ret_notifications[KINF__BACKLOG_TAKE])
{
    return backlog->class->take(backlog, ret_notifications);
}

/* Takes out what waits for a key of which the handler was told nothing yet, although its snapshot
 * has it: told together with the snapshot's add, it is *ret_object (with a reference; NULL: gone)
 * and nothing else. False: nothing waits, or nothing merges. */
bool kinf__backlog_take_initial(struct kinf__backlog *backlog, const char *key,
                                const struct kinf_object **ret_object);

/* Since when the first waits; false: nothing does. */
bool kinf__backlog_oldest(const struct kinf__backlog *backlog, uint32_t *ret_since_ms);

/* Whether it is sound: what waits has the objects of its type, the numbers are right, there is room
 * for what was reserved; and what its class knows. */
bool kinf__backlog_check(const struct kinf__backlog *backlog);

#endif
