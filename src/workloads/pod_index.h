/*
 * What controllers ask about pods without reading them: whose each is, on which node, and how far
 * it has come. Also which ReplicaSets a Deployment has. Fed with every change, so that nothing is
 * ever searched for among all pods.
 *
 * Threads: the store's lock is held.
 */
#ifndef KINF_WORKLOADS_POD_INDEX_H
#define KINF_WORKLOADS_POD_INDEX_H

#include <stdbool.h>

#include <kinformer/object.h>

#include "base/hmap.h"
#include "base/list.h"
#include "object/object.h"

/* The types that something is done about; also what a key in the work queue is of. */
enum kinf__work_kind {
    KINF__WORK_POD,
    KINF__WORK_NODE,
    KINF__WORK_REPLICASET,
    KINF__WORK_DEPLOYMENT,
    KINF__WORK_STATEFULSET,
    KINF__WORK_DAEMONSET,
    KINF__WORK_JOB,
    KINF__WORK_CLAIM,
    KINF__WORK_VOLUME,
    KINF__N_WORK_KINDS
};

struct kinf__work_type {
    const char *group, *api_version, *resource, *kind;
};
extern const struct kinf__work_type kinf__work_types[KINF__N_WORK_KINDS];

/* schedulerName of pods whose whole life is made up by churn.c. */
#define KINF__CHURN_SCHEDULER "kinformer-sim-churn"

/* What a node has from its creation until it is ready. */
#define KINF__NOT_READY_TAINT "node.kubernetes.io/not-ready"

/* A node, or a name that pods were bound to. */
struct kinf__host {
    struct kinf__hmap_node node;
    struct kinf__list link; /* of the index */
    struct kinf__list pods;
    size_t n_pods;
    bool is_there;  /* there is a node of this name */
    bool was_there; /* ... or was */
    bool takes_pods;
    bool needs_kubelet; /* that says it is ready, or has its taint taken away since it is */
    uint64_t mark;      /* of whoever walks through members and hosts */
    char ip[64];
    char name[];
};

struct kinf__owner {
    struct kinf__hmap_node node;
    struct kinf__list members;
    size_t n_members;
    enum kinf__work_kind kind; /* KINF__N_WORK_KINDS: nobody here looks after it */
    const char *key;           /* "namespace/name"; behind the uid */
    char uid[];
};

struct kinf__member {
    struct kinf__hmap_node node;
    struct kinf__list sibling;
    struct kinf__owner *owner; /* its controller; NULL: none */
    enum kinf__work_kind kind; /* pod or ReplicaSet */
    uint64_t order;            /* of having been seen first */
    /* a pod's */
    struct kinf__list on_host;
    struct kinf__list waiting; /* for a node to be there */
    struct kinf__host *host;   /* NULL: not bound */
    uint64_t revision;         /* kinf__text_hash() of its controller-revision-hash, or 0 */
    bool is_terminating;
    bool is_ended; /* deleted without a grace period: only finalizers keep it */
    bool is_started, is_running, is_ready;
    bool is_finished, is_succeeded;
    bool is_gated;         /* it is not to be bound yet */
    bool is_unschedulable; /* and says so */
    bool is_of_churn;      /* nobody runs it */
    /* its controllers' own */
    int64_t ready_ms; /* seen so; 0: not yet */
    int step;         /* what the kubelet does next, see pods.c */
    int64_t step_ms;  /* when */
    char key[];
};

struct kinf__pod_index {
    struct kinf__hmap by_key;
    struct kinf__hmap by_uid;  /* owners */
    struct kinf__hmap by_name; /* hosts */
    struct kinf__list hosts;
    struct kinf__list waiting;
    uint64_t n_seen;
    uint64_t n_marks;
};

void kinf__pod_index_init(struct kinf__pod_index *index);
void kinf__pod_index_release(struct kinf__pod_index *index);

/* What a change is to others. */
struct kinf__member_change {
    struct kinf__member *member; /* NULL: it is gone */
    enum kinf__work_kind owner_kind, old_owner_kind;
    char owner_key[KINF__KEY_SIZE]; /* "": none, or it need not know */
    char old_owner_key[KINF__KEY_SIZE];
    size_t n_siblings; /* that the owner has, this one among them */
};

/* Takes over what a pod or a ReplicaSet is now; `object` NULL: it is gone, and `key` says which.
 * Errors: KINF_ERR_NO_MEMORY, the index is in between. */
KINF_MUST_CHECK int kinf__pod_index_set(struct kinf__pod_index *index, enum kinf__work_kind kind,
                                        const char *key, const struct kinf_object *object,
                                        struct kinf__member_change *ret_change);
/* Of a node; *ret_host NULL: it is gone, and no pod is bound to it. */
KINF_MUST_CHECK int kinf__pod_index_set_host(struct kinf__pod_index *index, const char *name,
                                             const struct kinf_object *object,
                                             struct kinf__host **ret_host);

/* NULL: none. */
struct kinf__member *kinf__pod_index_find(const struct kinf__pod_index *index,
                                          enum kinf__work_kind kind, const char *key);
/* NULL: neither a node nor a pod that is bound to it. */
struct kinf__host *kinf__pod_index_find_host(const struct kinf__pod_index *index, const char *name);
/* NULL: nothing has this controller. */
struct kinf__owner *kinf__pod_index_find_owner(const struct kinf__pod_index *index,
                                               const char *uid);
/* The node with the fewest pods of those that take any and fit; NULL: none. */
typedef bool kinf__host_fits_cb(const struct kinf__host *host, void *ctx);
struct kinf__host *kinf__pod_index_pick_host(const struct kinf__pod_index *index,
                                             kinf__host_fits_cb *fits, void *ctx);

/* Counts as an owner's pod: neither finished nor going. */
static inline bool kinf__member_is_active(const struct kinf__member *pod)
{
    return !pod->is_finished && !pod->is_terminating;
}

/* FNV-1a: the same in every process. */
uint64_t kinf__text_hash(const char *bytes, size_t len);

/* Whether links and counts fit. For tests. */
bool kinf__pod_index_check(const struct kinf__pod_index *index);

#define KINF__POD_INDEX_FOR_EACH(member, owner)                                                    \
    for (struct kinf__member *member = kinf__pod_index_first(owner); member != NULL;               \
         member = kinf__pod_index_next(owner, member))

static inline struct kinf__member *kinf__pod_index_next(const struct kinf__owner *owner,
                                                        const struct kinf__member *member)
{
    return member->sibling.next == &owner->members
               ? NULL
               : KINF__LIST_ENTRY(member->sibling.next, struct kinf__member, sibling);
}

/* `owner` may be NULL. */
static inline struct kinf__member *kinf__pod_index_first(const struct kinf__owner *owner)
{
    return owner == NULL || kinf__list_is_empty(&owner->members)
               ? NULL
               : KINF__LIST_ENTRY(owner->members.next, struct kinf__member, sibling);
}

#endif
