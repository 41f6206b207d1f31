/*
 * Things that are due at a time, the earliest one first: a pairing heap. A timer is part of what is
 * due, so setting one needs no memory; setting costs next to nothing, the rest the logarithm of how
 * many there are.
 *
 * Threads: one thread per heap, or under its owner's lock.
 */
#ifndef KINF_BASE_TIMERS_H
#define KINF_BASE_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

/* Zero is one that is not set. */
struct kinf__timer {
    int64_t at_ms;
    bool is_set;
    /* the module's */
    struct kinf__timer *child; /* its first one; none is due before it */
    struct kinf__timer *next;  /* sibling */
    struct kinf__timer *prev;  /* sibling; of a first child its parent */
};

/* Zero is empty. */
struct kinf__timers {
    struct kinf__timer *first; /* the earliest; NULL: none */
};

/* Sets it, or sets it anew. */
void kinf__timer_set(struct kinf__timers *timers, struct kinf__timer *timer, int64_t at_ms);
/* One that is not set is allowed. */
void kinf__timer_clear(struct kinf__timers *timers, struct kinf__timer *timer);

/* When the earliest one is due; KINF__NEVER_MS: none is set. */
int64_t kinf__timers_next_ms(const struct kinf__timers *timers);
/* Clears and returns the earliest one that is due; NULL: none is. */
struct kinf__timer *kinf__timers_take_due(struct kinf__timers *timers, int64_t now_ms);

#endif
