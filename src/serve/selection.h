/*
 * Which objects a request is about, and walking over them in a version of the store.
 *
 * Threads: a selection any, it never changes; a walk belongs to one.
 */
#ifndef KINF_SERVE_SELECTION_H
#define KINF_SERVE_SELECTION_H

#include <kinformer/indexer.h>
#include <kinformer/selector.h>

#include "serve/fields.h"

/* Borrows everything. */
struct kinf__selection {
    const char *name_space;                   /* "": all */
    const char *name;                         /* "": all */
    const struct kinf_label_selector *labels; /* NULL: all */
    const struct kinf__fields *fields;        /* NULL: all */
    /* An index whose value the fields require; NULL: none. */
    const char *index;
    const char *index_value;
};

/* Labels and fields; `ctx` is the selection. For struct kinf__watch_filter, whose results these are. */
int kinf__selection_matches(const struct kinf_object *object, void *ctx);
/* Whether everything is selected. */
bool kinf__selection_is_all(const struct kinf__selection *selection);

struct kinf__walk {
    const struct kinf__selection *selection;
    const char *after; /* a key: begins above it; "": at the start */
    struct kinf_cursor cursor;
    bool uses_index;                /* of one value; its order is that of the keys, too */
    char prefix[KINF_NAME_MAX + 1]; /* "namespace/" or "" */
};

/* Starts. The selection, the snapshot and `after` must outlive the walk, which must not be moved. */
void kinf__walk_init(struct kinf__walk *walk, const struct kinf__selection *selection,
                     const struct kinf_snapshot *snapshot, const char *after);
/* X(enumerator, what it means) */
#define KINF__WALKED(X)                                                                            \
    X(KINF__WALK_END, "there is no more")                                                          \
    X(KINF__WALK_OBJECT, "*ret_object is the next one")                                            \
    X(KINF__WALK_PAUSED, "enough was looked at: the same call goes on")                            \
    X(KINF__WALK_NO_MEMORY, "whether the next one is selected cannot be told")

enum kinf__walked {
#define X(walked, what) walked,
    KINF__WALKED(X)
#undef X
};

/* Looking at an object takes one from *patience, at a large one's fields more. About a millisecond
 * of it: */
#define KINF__WALK_PATIENCE 512

/* The next object that is selected, in the order of keys. */
enum kinf__walked kinf__walk_next(struct kinf__walk *walk, size_t *patience,
                                  const struct kinf_object **ret_object);

#endif
