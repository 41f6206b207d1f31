/*
 * Marks of threads, and the waits between owners. Neighbours: listener.c and pop_loop.c
 * mark their threads, the indexer the one that adds an index; life.c, factory.c, namespaces.c and the
 * controller ask.
 *
 * Invariant: the waits of the list have no cycle, since one that would close a cycle is refused.
 */
#include "informer/callback.h"

#include <stddef.h>

#include "base/lock.h"
#include "indexer/indexer.h"

static _Thread_local struct kinf__callback_mark mark;

static struct kinf__mutex waits_lock = KINF__MUTEX_INIT(KINF__RANK_CALLBACKS);
/* guarded by waits_lock */
static struct kinf__list waits = { &waits, &waits };

struct kinf__callback_mark kinf__callback_enter(const void *owner, bool feeds)
{
    struct kinf__callback_mark before = mark;

    mark = (struct kinf__callback_mark){ owner, feeds };
    return before;
}

void kinf__callback_leave(struct kinf__callback_mark before)
{
    mark = before;
}

const void *kinf__callback_owner(void)
{
    return mark.owner != NULL ? mark.owner : kinf__indexer_adding_for();
}

bool kinf__callback_feeds(const void *owner)
{
    return (mark.owner == owner && mark.feeds) || kinf__indexer_adding_for() == owner;
}

/* Whether `from` waits for `to`, perhaps by way of others. Ends, since there is no cycle. */
static bool waits_for_locked(const void *from, const void *to) KINF__REQUIRES(waits_lock)
{
    if (from == to)
        return true;
    KINF__LIST_FOR_EACH (node, &waits) {
        const struct kinf__callback_wait *wait =
            KINF__LIST_ENTRY(node, struct kinf__callback_wait, node);

        if (wait->waiter == from && waits_for_locked(wait->target, to))
            return true;
    }
    return false;
}

void kinf__callback_add_part(struct kinf__callback_wait *wait, const void *whole, const void *part)
{
    *wait = (struct kinf__callback_wait){ .waiter = whole, .target = part };
    kinf__mutex_lock(&waits_lock);
    kinf__list_push_back(&waits, &wait->node);
    kinf__mutex_unlock(&waits_lock);
}

bool kinf__callback_begin_wait(struct kinf__callback_wait *wait, const void *target)
{
    return kinf__callback_begin_wait_of(wait, kinf__callback_owner(), target);
}

bool kinf__callback_begin_wait_of(struct kinf__callback_wait *wait, const void *waiter,
                                  const void *target)
{
    const void *adding_for = kinf__indexer_adding_for();
    bool may_wait = true;

    *wait = (struct kinf__callback_wait){ .waiter = waiter, .target = target };
    kinf__list_init(&wait->node);
    if (waiter == NULL)
        return true;
    kinf__mutex_lock(&waits_lock);
    may_wait = !waits_for_locked(target, waiter) &&
               (adding_for == NULL || !waits_for_locked(target, adding_for));
    if (may_wait)
        kinf__list_push_back(&waits, &wait->node);
    kinf__mutex_unlock(&waits_lock);
    return may_wait;
}

void kinf__callback_end_wait(struct kinf__callback_wait *wait)
{
    if (wait->waiter == NULL)
        return;
    kinf__mutex_lock(&waits_lock);
    kinf__list_remove(&wait->node);
    kinf__mutex_unlock(&waits_lock);
}
