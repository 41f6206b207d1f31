/*
 * What was applied last to which object, so that applying it again can be spared.
 *
 * Only of objects that a watched informer has: they are forgotten when it says that they are gone.
 * Threads: guarded by the controller's lock, but for kinf__json_covers().
 */
#ifndef KINF_CONTROLLER_APPLIED_H
#define KINF_CONTROLLER_APPLIED_H

#include <stdbool.h>

#include <kinformer/str.h>
#include <kinformer/type.h>

#include "base/hmap.h"
#include "json/scan.h"

/* All zero is empty. */
struct kinf__applied {
    struct kinf__hmap objects;
};

/* An object, and whether it is about its status. */
struct kinf__applied_to {
    const struct kinf_type *type;
    const char *key;
    bool is_status;
};

void kinf__applied_release(struct kinf__applied *applied);
/* Whether `json` was applied last. */
bool kinf__applied_is(const struct kinf__applied *applied, struct kinf__applied_to to,
                      struct kinf_str json);
/* For want of memory nothing is known of it then. */
void kinf__applied_set(struct kinf__applied *applied, struct kinf__applied_to to,
                       struct kinf_str json);
void kinf__applied_forget(struct kinf__applied *applied, struct kinf__applied_to to);
/* The object and its status: it was written otherwise, or is gone. */
void kinf__applied_forget_both(struct kinf__applied *applied, const struct kinf_type *type,
                               const char *key);

/* Whether `have` has all that `want` says: objects member by member, arrays element by element,
 * null is absence; numbers as they are written. */
bool kinf__json_covers(struct kinf__json_value have, struct kinf__json_value want);

#endif
