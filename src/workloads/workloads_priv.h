/*
 * What the files of the workloads share: the index, the queue, and writing on behalf of somebody.
 *
 * Threads: the store's lock is held.
 */
#ifndef KINF_WORKLOADS_WORKLOADS_PRIV_H
#define KINF_WORKLOADS_WORKLOADS_PRIV_H

#include "workloads/pod_index.h"
#include "workloads/recorder.h"
#include "apiserver/conditions.h"
#include "apiserver/verbs.h"
#include "workloads/workloads.h"
#include "workloads/workqueue.h"

/* At most so many pods are made or deleted for an owner before others have their turn. */
#define KINF__WORK_BURST 50

struct kinf__workloads {
    struct kinf__controller controller;
    struct kinf__sim *sim; /* NULL before the first work */
    struct kinf__resource *resources[KINF__N_WORK_KINDS];
    struct kinf__pod_index pods;
    struct kinf__workqueue queue;
    struct kinf__recorder recorder;
    int64_t now_ms;      /* of the work under way */
    bool is_lost;        /* the index is not what is stored: all of it is read again */
    uint32_t n_ips;      /* pods got so far */
    uint32_t n_kubelets; /* came up so far */
    bool had_node;       /* there is or was one */
};

/* A reconcile under way: of what, and the object as it was read. */
struct kinf__work {
    struct kinf__workloads *workloads;
    enum kinf__work_kind kind;
    const char *key;
    struct cJSON *tree; /* NULL: not read, or written already */
    const struct cJSON *spec;
    struct cJSON *old_status;
    int64_t next_ms; /* when it is looked at again, whatever is noted; KINF__NEVER_MS: it is not */
};

/* --- workloads.c --- */

/* Errors: KINF_ERR_NOT_FOUND, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__workloads_read(struct kinf__workloads *workloads,
                                         enum kinf__work_kind kind, const char *key,
                                         struct cJSON **ret_object);
/* Likewise, the work's own. */
KINF_MUST_CHECK int kinf__work_read(struct kinf__work *work);
void kinf__work_again(struct kinf__work *work, int64_t due_ms);

/* Each writes and returns 0 or a negative code. What is refused because somebody else changed or
 * deleted it meanwhile is looked at again by what was noted of that. */

/* `ret_object`: as it is stored; NULL is allowed. Errors: KINF_ERR_CONFLICT (there is one of this
 * name), others. */
KINF_MUST_CHECK int kinf__workloads_create(struct kinf__workloads *workloads,
                                           enum kinf__work_kind kind, const char *manager,
                                           struct cJSON *take_object, struct cJSON **ret_object);
/* Writes the status of the work's object, which is not written since it was read; of some kinds its
 * annotations, too. */
KINF_MUST_CHECK int kinf__work_put_status(struct kinf__work *work, const char *manager);
/* Merges a patch into it; consumed. */
KINF_MUST_CHECK int kinf__workloads_merge(struct kinf__workloads *workloads,
                                          enum kinf__work_kind kind, const char *key,
                                          struct cJSON *take_patch);
/* `grace_s` negative: the object's own. That it is gone already is no failure. */
KINF_MUST_CHECK int kinf__workloads_delete(struct kinf__workloads *workloads,
                                           enum kinf__work_kind kind, const char *key,
                                           int64_t grace_s);

/* --- template.c --- */

/* The manager of what controllers write. */
#define KINF__CONTROLLER_MANAGER "kube-controller-manager"

/* A tree from JSON text with conversions in it; what they bring needs no escapes: names, numbers,
 * times. NULL: out of memory. */
struct cJSON *kinf__json_format(const char *fmt, ...) KINF_PRINTF(1, 2);
/* "namespace/name" of an object. */
void kinf__object_key_of(const struct cJSON *object, char key[KINF__KEY_SIZE]);

/* An event about the work's object. */
void kinf__work_record(const struct kinf__work *work, const char *component, const char *reason,
                       const char *fmt, ...) KINF_PRINTF(4, 5);
/* A condition of the work's object, with the time that its kind has beside that of the transition.
 * Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__work_set_condition(const struct kinf__work *work,
                                             const struct kinf__condition *condition);

/* Makes the work's object the controller of `object`. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__work_set_controller(const struct kinf__work *work, struct cJSON *object);
/* A pod of its spec.template, with generateName. NULL: out of memory. */
struct cJSON *kinf__work_make_pod(const struct kinf__work *work);

/* The hash of a template as it is part of names: ten letters or so. */
#define KINF__TEMPLATE_HASH_SIZE 16
KINF_MUST_CHECK int kinf__template_hash(const struct cJSON *template, int64_t n_collisions,
                                        char hash[KINF__TEMPLATE_HASH_SIZE]);

/* What has the work's object as its controller; NULL: nothing. */
const struct kinf__owner *kinf__work_owner(const struct kinf__work *work);

struct kinf__pod_counts {
    int64_t active, started, ready, available, terminating;
};
/* Available after the spec's minReadySeconds; the work is done again when another pod becomes so. */
struct kinf__pod_counts kinf__count_pods(struct kinf__work *work, const struct kinf__owner *owner);

/* A count that is left out when it is zero, as Go does. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__set_count(struct cJSON *status, const char *name, int64_t n);
/* Writes the object's status unless it is what it was. */
KINF_MUST_CHECK int kinf__work_put_changed_status(struct kinf__work *work);

/* --- one of each kind: what is stored is brought nearer to what is wanted. KINF_ERR_NOT_FOUND: there
 * is nothing any more. --- */

KINF_MUST_CHECK int kinf__reconcile_pod(struct kinf__work *work);
KINF_MUST_CHECK int kinf__reconcile_node(struct kinf__work *work);
KINF_MUST_CHECK int kinf__reconcile_replicaset(struct kinf__work *work);
KINF_MUST_CHECK int kinf__reconcile_deployment(struct kinf__work *work);
KINF_MUST_CHECK int kinf__reconcile_statefulset(struct kinf__work *work);
KINF_MUST_CHECK int kinf__reconcile_daemonset(struct kinf__work *work);
KINF_MUST_CHECK int kinf__reconcile_job(struct kinf__work *work);
KINF_MUST_CHECK int kinf__reconcile_claim(struct kinf__work *work);
KINF_MUST_CHECK int kinf__reconcile_volume(struct kinf__work *work);

/* protection.c: the claim that the pod's volume `i` is of, as a key; "": it is of none. False: there
 * are not so many volumes. */
bool kinf__pod_get_claim(const struct kinf_object *pod, size_t i, char key[KINF__KEY_SIZE]);

/* For whoever has made none, and wants to see pods run. */
KINF_MUST_CHECK int kinf__make_first_node(struct kinf__workloads *workloads);
/* Whether the kubelet, or the scheduler, has anything to do for it. */
bool kinf__pod_needs_work(const struct kinf__member *pod);

#endif
