/*
 * Memory that many small allocations are about to take. A page that is touched for the first time costs
 * a fault, which takes longer than to fill it; the pages of many are got in one call here, in half of
 * the time.
 *
 * Threads: one thread per object, the one that allocates.
 */
#ifndef KINF_BASE_MEMORY_H
#define KINF_BASE_MEMORY_H

#include <stddef.h>

/* Of what was touched, as much as was not allocated yet. 0 is the beginning. */
struct kinf__touched {
    size_t left;
};

/* `size` bytes were allocated, and as many will be again: touches some more when that is due. What malloc
 * has of touched memory costs little, so it need not be known. Never fails: it is for speed alone. */
void kinf__memory_touch_ahead(struct kinf__touched *touched, size_t size);

#endif
