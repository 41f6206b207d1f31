/*
 * kinformer-sim: a Kubernetes API in memory. The store holds the objects, src/serve reads them to
 * whoever asks, and what is here takes writes and lives on: namespaces end, owners take their
 * dependents along, workloads get their pods.
 *
 * Owner: main, or a fake (kinformer/testing.h). Threads: any, unless a line says otherwise.
 */
#ifndef KINF_APISERVER_SIM_H
#define KINF_APISERVER_SIM_H

#include "base/rfc3339.h"
#include "serve/backend.h"
#include "serve/server.h"
#include "fault/fault.h"
#include "document/managed.h"
#include "apiserver/access_policy.h"
#include "document/schema.h"
#include "apiserver/store.h"

struct kinf__sim;
struct kinf__controller;

/*
 * What goes on by itself: a controller notes what changed, and works when it is its turn.
 *
 * Threads: both are called with the store's lock held; work on the worker's thread.
 */
struct kinf__controller_ops {
    /* Must not write. */
    void (*note)(struct kinf__controller *controller, struct kinf__resource *resource,
                 const struct kinf_object *old, const struct kinf_object *object);
    /* Does what is due, in bounded portions; returns when it wants to be called again (monotonic;
     * `now_ms`: at once; KINF__NEVER_MS: when something has been noted). */
    int64_t (*work)(struct kinf__controller *controller, struct kinf__sim *sim, int64_t now_ms);
    void (*free)(struct kinf__controller *controller);
};

struct kinf__controller {
    const struct kinf__controller_ops *ops;
    /* the sim's */
    struct kinf__list node;
    int64_t due_ms;
};

struct kinf__sim_options {
    uint64_t seed;                            /* of uids, generated names and all that is random */
    struct kinf__watchcache_limits limits;    /* history and pages */
    const struct kinf__access_policy *policy; /* NULL: everybody may do everything; borrowed */
};

/* With the namespaces that every cluster has, and its API service. Nothing runs before start.
 * Errors: KINF_ERR_NO_MEMORY, KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__sim_new(const struct kinf__sim_options *options,
                                  struct kinf__sim **ret_sim, struct kinf_error *err);
/* `size` bytes for a struct that begins with its controller, all else zero. NULL: out of memory. */
void *kinf__controller_new(size_t size, const struct kinf__controller_ops *ops,
                           struct kinf_error *err);
/* Adds one, before start; it is the sim's from here on. */
void kinf__sim_add_controller(struct kinf__sim *sim, struct kinf__controller *take_controller);
/* Starts the worker. */
KINF_MUST_CHECK int kinf__sim_start(struct kinf__sim *sim, struct kinf_error *err);
/* Ends watches and the worker; endpoints are closed already to new requests. */
void kinf__sim_stop(struct kinf__sim *sim);
void kinf__sim_free(struct kinf__sim *sim); /* NULL is allowed */

struct kinf__server *kinf__sim_server(struct kinf__sim *sim);
struct kinf__store *kinf__sim_store(struct kinf__sim *sim);
const struct kinf__schema *kinf__sim_schema(const struct kinf__sim *sim);
struct kinf__faults *kinf__sim_faults(struct kinf__sim *sim);
const struct kinf__access_policy *kinf__sim_policy(const struct kinf__sim *sim);
/* Now, as objects say it: "2026-11-22T10:00:00Z". */
void kinf__sim_time(char time[KINF__RFC3339_SIZE]);
void kinf__sim_time_after(int64_t seconds, char time[KINF__RFC3339_SIZE]);
/* A number of the seed's sequence. The store's lock is held. */
uint64_t kinf__sim_random(struct kinf__sim *sim);

/* When the first controller has something to do. 0: now; else what was written has had its
 * consequences, but for those that take time. KINF__NEVER_MS: not any more. */
int64_t kinf__sim_due_ms(struct kinf__sim *sim);

/* Creates objects from manifests: YAML of any number of documents, or JSON; a list counts as its
 * items. `file` names it in messages. Errors: KINF_ERR_PARSE, KINF_ERR_CONFIG (refused, with what
 * and why), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__sim_load(struct kinf__sim *sim, struct kinf_str manifests,
                                   const char *file, struct kinf_error *err);

#endif
