/*
 * Touching what malloc hands out next: a block that is allocated and freed becomes what is allocated
 * behind it. Invariant: the block is smaller than what malloc maps by itself, and small enough that
 * freeing it gives nothing back to the system.
 */
#include "base/memory.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define STEP_BYTES ((size_t)64 << 10) /* a multiple of every page size */

/* Of Linux 5.14; older ones refuse it. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static void touch(void)
{
    void *block = aligned_alloc((size_t)sysconf(_SC_PAGESIZE), STEP_BYTES);

    if (block != NULL)
        (void)madvise(block, STEP_BYTES, MADV_POPULATE_WRITE);
    free(block);
}

void kinf__memory_touch_ahead(struct kinf__touched *touched, size_t size)
{
    if (size > touched->left) {
        touch();
        touched->left = STEP_BYTES;
    }
    touched->left = size < touched->left ? touched->left - size : 0;
}
