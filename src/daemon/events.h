/*
 * The printing handler: notifications as lines of text or JSON.
 *
 *   text  ADDED    pods default/web-1 rv=1042
 *   json  as handlers/line.h has it
 *
 * It is a contract: scripts rely on it.
 *
 * Threads: handlers run on their listeners' threads; an events object is shared by those of one
 * resource.
 */
#ifndef KINF_DAEMON_EVENTS_H
#define KINF_DAEMON_EVENTS_H

#include <stdatomic.h>
#include <stdbool.h>

#include <kinformer/object.h>

#include "daemon/config.h"
#include "daemon/output.h"

struct kinf__events {
    /* constant */
    struct kinf__output *output;
    enum kinf__events_mode mode; /* text or JSON */
    bool with_objects;
    const char *resource; /* "pods", "deployments.apps"; borrowed */
    void (*on_failure)(const struct kinf_error *err, void *ctx); /* the output is gone */
    void *ctx;
    /* atomic */
    struct kinf__stop is_over;
};

/* `old` and `object` as kinf_handler's on_change; `unknown`: the deletion itself was missed. */
void kinf__events_print(const struct kinf__events *events, const struct kinf_object *old,
                        const struct kinf_object *object, bool in_initial_list, bool unknown);
void kinf__events_print_synced(const struct kinf__events *events);
/* From here on nothing is printed, and nobody waits for who reads it. */
void kinf__events_end(struct kinf__events *events);

#endif
