/*
 * What calls wrote, by key, until the caches have it: a controller reads what it wrote.
 *
 * A key's list belongs to the call that runs for the key, of which there is one at most (C1), and
 * between calls to the controller's lock, which guards the table of all keys. What the caches have is
 * forgotten, whether its key is called again or not. The memory that is needed to remember a write is
 * taken before it is sent.
 */
#ifndef KINF_CONTROLLER_OWN_WRITES_H
#define KINF_CONTROLLER_OWN_WRITES_H

#include <stdbool.h>

#include <kinformer/error.h>
#include <kinformer/object.h>

#include "base/hmap.h"
#include "base/list.h"

struct kinf_call;
struct kinf_controller;

/* The table: keys of which something is awaited, or a call runs that has written. */
struct kinf__own_writes {
    struct kinf__hmap keys;
    size_t next_bucket; /* where to go on forgetting */
};

/* What is awaited for one key. */
struct kinf__written {
    struct kinf__hmap_node node;
    struct kinf__list items; /* in the order in which they were written */
    bool is_lent;            /* to a call; guarded by the controller's lock */
    char key[];
};

/* Frees all. */
void kinf__own_writes_release(struct kinf__own_writes *own_writes);

/* Waits until the caches have what the last call of this key wrote. Errors: KINF_ERR_TIMEOUT,
 * KINF_ERR_STOPPED. */
KINF_MUST_CHECK int kinf__own_writes_wait(struct kinf_call *call, struct kinf_error *err);
/* Behind a call: nothing is kept of a key of which nothing is awaited. `was_refused`: a version that
 * the cache did not have may be what the call failed for. */
void kinf__own_writes_end(struct kinf_call *call, bool was_refused);
/* Forgets what the caches have by now of some keys that no call has. To be called again and again
 * while there are any, under the controller's lock. */
void kinf__own_writes_forget(struct kinf_controller *controller);

/* Memory for one write to `key` of `type`; of what the server is to name, "namespace/" or "". To be
 * released. */
struct kinf__own_write {
    struct kinf_call *call;
    const struct kinf_type *type;
    const char *key;
    bool is_nameless;
    struct kinf__list spare;
};
KINF_MUST_CHECK int kinf__own_write_init(struct kinf__own_write *write, struct kinf_call *call,
                                         const struct kinf_type *type, const char *key,
                                         struct kinf_error *err);
void kinf__own_write_release(struct kinf__own_write *write);

/* How it went: the server has the object so now; returns whether an informer chooses it, so that its end
 * will be told ... */
bool kinf__own_write_stored(struct kinf__own_write *write, const struct kinf_object *object);
/* ... has it with this version, and we do not know how it is; an informer whose selectors may not
 * choose it awaits it only if it has it ... */
void kinf__own_write_changed(struct kinf__own_write *write, const char *version);
/* ... has deleted that with this uid ... */
void kinf__own_write_deleted(struct kinf__own_write *write, const char *uid);
/* ... has not what we saw: the object of this version; "": none. */
void kinf__own_write_refused(struct kinf__own_write *write, const char *seen_version);

#endif
