/*
 * Tells long work to end: each of its loops looks at it, and what they belong to returns
 * KINF_ERR_STOPPED.
 *
 * Threads: any thread.
 */
#ifndef KINF_BASE_STOP_H
#define KINF_BASE_STOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* All zero is not set. Never cleared. */
struct kinf__stop {
    _Atomic(bool) is_set;
};

static inline void kinf__stop_set(struct kinf__stop *stop)
{
    atomic_store_explicit(&stop->is_set, true, memory_order_release);
}

/* NULL: nothing ends it. */
static inline bool kinf__stop_is_set(const struct kinf__stop *stop)
{
    return stop != NULL && atomic_load_explicit(&stop->is_set, memory_order_acquire);
}

#endif
