/*
 * The coalescer: a queue of notifications in which those of one key merge.
 *
 * What waits for a key is not a list of what happened but the net change from what its handler was
 * told last: nothing, one notification, or a delete and an add (another object of the same name).
 * So the merge rules are those of composing changes:
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
 * Threads: under its owner's lock.
 */
#ifndef KINF_INFORMER_COALESCER_H
#define KINF_INFORMER_COALESCER_H

#include "base/hmap.h"
#include "base/list.h"
#include "informer/notification.h"

/* What waits for one key, or the sentinel, which has no object. Holds references. */
struct kinf__pending {
    struct kinf__hmap_node in_map;
    struct kinf__list in_order;
    const struct kinf_object *told;   /* last; NULL: the handler knows nothing of the key */
    const struct kinf_object *gone;   /* of the delete; NULL: none */
    const struct kinf_object *object; /* what there is now; NULL: nothing */
    uint32_t since_ms;                /* of the first notification that is in it */
    bool in_initial_list;
    bool final_state_unknown;
};

struct kinf__coalescer {
    struct kinf__hmap map;    /* keys */
    struct kinf__list order;  /* what waits, the first first */
    size_t n_notifications;   /* callbacks that would run if all were told */
    uint64_t n_merged;        /* callbacks that merging has spared */
    struct kinf__list spares; /* of struct kinf__pending, empty */
    size_t n_spares;
    struct kinf__pending *sentinel; /* until it is pushed */
};

/* Errors: KINF_ERR_NO_MEMORY; release it then, too. */
KINF_MUST_CHECK int kinf__coalescer_init(struct kinf__coalescer *coalescer);
void kinf__coalescer_release(struct kinf__coalescer *coalescer);

/* Makes sure that the next pushes cannot fail, of so many notifications all together. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__coalescer_reserve(struct kinf__coalescer *coalescer,
                                            size_t n_notifications);
/* Gives back what was reserved and not needed, but for a little. */
void kinf__coalescer_trim(struct kinf__coalescer *coalescer);
/* Merges notifications into what waits, each into that of its key. */
void kinf__coalescer_push(struct kinf__coalescer *coalescer,
                          const struct kinf__notification *notifications, size_t n_notifications,
                          int64_t now_ms);
/* Queues the sentinel, the first time. Needs no reserve. */
void kinf__coalescer_push_synced(struct kinf__coalescer *coalescer, int64_t now_ms);

/* Takes the first out; NULL: nothing waits. The caller frees it. */
struct kinf__pending *kinf__coalescer_pop(struct kinf__coalescer *coalescer);
/* Takes out what waits for a key of which the handler was told nothing yet, although its snapshot
 * has it: told together with the snapshot's add it is pending->object, if any, and nothing else.
 * NULL: nothing waits. The caller frees it. */
struct kinf__pending *kinf__coalescer_take_initial(struct kinf__coalescer *coalescer,
                                                   const char *key);

/* Most callbacks that one pending stands for. */
#define KINF__PENDING_MAX 2

/* The callbacks, in their order; returns how many. They borrow from the pending. */
size_t kinf__pending_notifications(const struct kinf__pending *pending,
                                   struct kinf__notification ret_notifications[KINF__PENDING_MAX]);
void kinf__pending_free(struct kinf__pending *pending);

/* The first one's since_ms; false: nothing waits. */
bool kinf__coalescer_oldest(const struct kinf__coalescer *coalescer, uint32_t *ret_since_ms);

/* Whether it is sound: what is in order is in the map once, under its key, has a notification to
 * tell, and the numbers are right. */
bool kinf__coalescer_check(const struct kinf__coalescer *coalescer);

#endif
