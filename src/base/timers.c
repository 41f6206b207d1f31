/*
 * The pairing heap. Nothing here recurses: a heap of any shape takes constant room on the stack.
 */
#include "base/timers.h"

#include <stddef.h>

#include "base/clock.h"
#include "base/compiler.h"

static struct kinf__timer *meld(struct kinf__timer *a, struct kinf__timer *b)
{
    struct kinf__timer *first = b, *other = a;

    if (a == NULL || b == NULL)
        return a != NULL ? a : b;
    if (a->at_ms <= b->at_ms) {
        first = a;
        other = b;
    }
    other->next = first->child;
    other->prev = first;
    if (first->child != NULL)
        first->child->prev = other;
    first->child = other;
    return first;
}

static struct kinf__timer *detach(struct kinf__timer *timer)
{
    timer->next = timer->prev = NULL;
    return timer;
}

/* One heap of siblings: pairs first, then the pairs one after another. */
static struct kinf__timer *meld_all(struct kinf__timer *siblings)
{
    struct kinf__timer *pairs = NULL, *all = NULL;

    while (siblings != NULL) {
        struct kinf__timer *one = siblings, *other = one->next, *pair;

        siblings = other != NULL ? other->next : NULL;
        pair = meld(detach(one), other != NULL ? detach(other) : NULL);
        pair->next = pairs;
        pairs = pair;
    }
    while (pairs != NULL) {
        struct kinf__timer *pair = pairs;

        pairs = pair->next;
        all = meld(all, detach(pair));
    }
    return all;
}

static void cut(struct kinf__timer *timer)
{
    if (timer->prev->child == timer)
        timer->prev->child = timer->next;
    else
        timer->prev->next = timer->next;
    if (timer->next != NULL)
        timer->next->prev = timer->prev;
}

void kinf__timer_clear(struct kinf__timers *timers, struct kinf__timer *timer)
{
    struct kinf__timer *below;

    if (!timer->is_set)
        return;
    below = meld_all(KINF__TAKE(timer->child));
    if (timers->first == timer) {
        timers->first = below;
    } else {
        cut(timer);
        timers->first = meld(timers->first, below);
    }
    detach(timer)->is_set = false;
}

void kinf__timer_set(struct kinf__timers *timers, struct kinf__timer *timer, int64_t at_ms)
{
    kinf__timer_clear(timers, timer);
    timer->at_ms = at_ms;
    timer->is_set = true;
    timers->first = meld(timers->first, timer);
}

int64_t kinf__timers_next_ms(const struct kinf__timers *timers)
{
    return timers->first != NULL ? timers->first->at_ms : KINF__NEVER_MS;
}

struct kinf__timer *kinf__timers_take_due(struct kinf__timers *timers, int64_t now_ms)
{
    struct kinf__timer *first = timers->first;

    if (first == NULL || first->at_ms > now_ms)
        return NULL;
    kinf__timer_clear(timers, first);
    return first;
}
