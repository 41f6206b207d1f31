/*
 * What order and versions the changes of a list have: the list says only what is there, not when it
 * came to be.
 *
 * Threads: any thread.
 */
#ifndef KINF_WATCHCACHE_REPLACE_H
#define KINF_WATCHCACHE_REPLACE_H

#include "informer/sink.h"

struct kinf__dated_change {
    const struct kinf__notification *told;
    uint64_t version;
};

/*
 * Gives each change a version above `above` and up to `list_version` that no other one has, and
 * writes them to `ret_dated` (room for all) ascending: what is new or changed with its own; the end
 * of a name that was re-created with the highest that is free below its new beginning; the other
 * ends with the highest that are free. A server gave each of them one, so there are enough. Errors:
 * KINF_ERR_INVALID (not on this server, or the store was not at `above`), KINF_ERR_NO_MEMORY.
 */
KINF_MUST_CHECK int kinf__date_replace(const struct kinf__notification *told, size_t n_told,
                                       uint64_t above, uint64_t list_version,
                                       struct kinf__dated_change *ret_dated);

#endif
