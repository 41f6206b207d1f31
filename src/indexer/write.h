/*
 * One write: objects stored and removed in every tree of a version, together or not at all.
 *
 * A version that nobody else holds is changed in place, else a copy that shares every tree. Each
 * change of a tree is recorded, so that a write that runs out of memory half way is taken back.
 *
 * Threads: one writer, under the indexer's lock, but for settling.
 */
#ifndef KINF_INDEXER_WRITE_H
#define KINF_INDEXER_WRITE_H

#include "indexer/snapshot.h"

#define KINF__WRITE_FEW_CHANGES 8

struct kinf__write {
    struct kinf_snapshot *version; /* that is changed */
    struct kinf_snapshot *old;     /* that it replaces; NULL if changed in place */
    size_t count;                  /* of objects, once it is committed */
    struct kinf__tree_change *changes;
    size_t n_changes;
    size_t n_changes_max;
    struct kinf__tree_change few[KINF__WRITE_FEW_CHANGES];
};

/* The write must be ended by abort, or by commit and settle. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__write_begin(struct kinf__write *write, struct kinf_snapshot *current);

/* Puts an entry in place of the one of the same key, unless that has the same object: then it stays.
 * `*ret_old` is what was there, or NULL: borrowed until the write is settled. Errors:
 * KINF_ERR_NO_MEMORY; then the write must be aborted. */
KINF_MUST_CHECK int kinf__write_set(struct kinf__write *write, struct kinf__entry *entry,
                                    const struct kinf_object **ret_old);
KINF_MUST_CHECK int kinf__write_remove(struct kinf__write *write, const char *key,
                                       const struct kinf_object **ret_old);

/* Leaves everything as it was. */
void kinf__write_abort(struct kinf__write *write);

/* Returns the version to publish. Its resourceVersion changes unless `resource_version` is NULL or
 * "". */
struct kinf_snapshot *kinf__write_commit(struct kinf__write *write, const char *resource_version);

/* Gives up what the write replaced; without the lock, for this may take a while. */
void kinf__write_settle(struct kinf__write *write, struct kinf__graveyard *graveyard);

#endif
