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

/* --- workloads.c --- */

/* To be looked at again. */
void kinf__workloads_again(struct kinf__workloads *workloads, enum kinf__work_kind kind,
                           const char *key, int64_t due_ms);

/* Errors: KINF_ERR_NOT_FOUND, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__workloads_read(struct kinf__workloads *workloads,
                                         enum kinf__work_kind kind, const char *key,
                                         struct cJSON **ret_object);
/* Each writes in the name of `manager` and returns 0 or a negative code. What is refused because
 * somebody else changed or deleted it meanwhile is looked at again by what was noted of that. */
KINF_MUST_CHECK int kinf__workloads_create(struct kinf__workloads *workloads,
                                           enum kinf__work_kind kind, const char *manager,
                                           struct cJSON *take_object);
/* Writes the status of `take_object`, which was read under this lock and not written since; of some
 * kinds its annotations, too. */
KINF_MUST_CHECK int kinf__workloads_put_status(struct kinf__workloads *workloads,
                                               enum kinf__work_kind kind, const char *manager,
                                               struct cJSON *take_object);
/* Merges a patch into it; consumed. */
KINF_MUST_CHECK int kinf__workloads_merge(struct kinf__workloads *workloads,
                                          enum kinf__work_kind kind, const char *key,
                                          const char *manager, struct cJSON *take_patch);
/* `grace_s` negative: the object's own. That it is gone already is no failure. */
KINF_MUST_CHECK int kinf__workloads_delete(struct kinf__workloads *workloads,
                                           enum kinf__work_kind kind, const char *key,
                                           int64_t grace_s);

/* A tree from JSON text with conversions in it; what they bring needs no escapes: names, numbers,
 * times. NULL: out of memory. */
struct cJSON *kinf__json_format(const char *fmt, ...) KINF_PRINTF(1, 2);
/* "namespace/name" of an object. */
void kinf__object_key_of(const struct cJSON *object, char key[2 * KINF_NAME_MAX]);
const char *kinf__name_of_key(const char *key);
bool kinf__is_being_deleted(const struct cJSON *object);
/* The truth of a member; NULL, anything else: false. */
bool kinf__doc_is_true(const struct cJSON *object, const char *name);

/* Makes `owner` the controller of `object`. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__set_controller(struct cJSON *object, enum kinf__work_kind owner_kind,
                                         const struct cJSON *owner);
/* A pod of the owner's spec.template, with generateName. NULL: out of memory. */
struct cJSON *kinf__pod_of_template(enum kinf__work_kind owner_kind, const struct cJSON *owner);

/* "2026-11-22T10:00:00Z" in seconds since 1970; `none` if it is no time. */
int64_t kinf__time_of(const char *text, int64_t none);

/* The hash of a template as it is part of names: ten letters or so. */
#define KINF__TEMPLATE_HASH_SIZE 16
KINF_MUST_CHECK int kinf__template_hash(const struct cJSON *template, int64_t n_collisions,
                                        char hash[KINF__TEMPLATE_HASH_SIZE]);

struct kinf__pod_counts {
    int64_t active, started, ready, available, terminating;
};
/* `next_ms`: lowered to when another pod becomes available. */
struct kinf__pod_counts kinf__count_pods(const struct kinf__owner *owner, int64_t min_ready_s,
                                         int64_t now_ms, int64_t *next_ms);

/* A count that is left out when it is zero, as Go does. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__set_count(struct cJSON *status, const char *name, int64_t n);
/* Writes the object's status unless it is what `before` is; takes the object then. */
KINF_MUST_CHECK int kinf__put_changed_status(struct kinf__workloads *workloads,
                                             enum kinf__work_kind kind, const char *manager,
                                             struct cJSON **object, const struct cJSON *before);

/* --- one of each kind: what is stored is brought nearer to what is wanted. --- */

KINF_MUST_CHECK int kinf__reconcile_pod(struct kinf__workloads *workloads, const char *key);
KINF_MUST_CHECK int kinf__reconcile_node(struct kinf__workloads *workloads, const char *key);
/* For whoever has made none, and wants to see pods run. */
KINF_MUST_CHECK int kinf__make_first_node(struct kinf__workloads *workloads);
KINF_MUST_CHECK int kinf__reconcile_replicaset(struct kinf__workloads *workloads, const char *key);
KINF_MUST_CHECK int kinf__reconcile_deployment(struct kinf__workloads *workloads, const char *key);
KINF_MUST_CHECK int kinf__reconcile_statefulset(struct kinf__workloads *workloads, const char *key);
KINF_MUST_CHECK int kinf__reconcile_daemonset(struct kinf__workloads *workloads, const char *key);
KINF_MUST_CHECK int kinf__reconcile_job(struct kinf__workloads *workloads, const char *key);

/* Whether the kubelet, or the scheduler, has anything to do for it. */
bool kinf__pod_needs_work(const struct kinf__member *pod);

#endif
