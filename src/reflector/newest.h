/*
 * The newest that is known of a resource: the objects that changed last, and the one that was
 * deleted last. If the server is put back to a backup, what it has lost is among them, or nothing
 * of this resource is.
 *
 * They are held as they were received: a transform changes what is stored. What was left out (by a
 * shard, a quarantine) is not among them.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_REFLECTOR_NEWEST_H
#define KINF_REFLECTOR_NEWEST_H

#include <stdbool.h>
#include <stddef.h>

#include <kinformer/object.h>

#include "base/stop.h"

#define KINF__NEWEST_MAX 3

struct kinf__newest {
    const struct kinf_object *stored[KINF__NEWEST_MAX]; /* the newest first; a reference each */
    size_t n_stored;
    /* Who it was and no more: what is deleted, secrets above all, does not stay in memory. A
     * reference; NULL: none since the last list. */
    const struct kinf_object *deleted;
};

/* Whether a version is newer than another one. Those that have no order never are. */
bool kinf__newest_is_newer(const char *rv, const char *than);

/* An event. */
void kinf__newest_note(struct kinf__newest *newest, const struct kinf_object *object,
                       bool is_deleted);
/* What is stored under a key is not known to be the newest. */
void kinf__newest_drop(struct kinf__newest *newest, const char *key);
/* A whole list, in whatever order. `stop` (NULL: nothing) ends it: nobody asks for the newest then. */
void kinf__newest_take_list(struct kinf__newest *newest, const struct kinf_object *const *items,
                            size_t n_items, const struct kinf__stop *stop);
/* Forgets all. */
void kinf__newest_release(struct kinf__newest *newest);

#endif
