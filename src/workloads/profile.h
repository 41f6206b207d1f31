/*
 * What generated applications look like: from a seed, the words, containers, variables and volumes
 * of one, and the texts of its objects. Pure.
 *
 * Texts have holes for what differs from pod to pod, so that thousands of them are made by copying.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_WORKLOADS_PROFILE_H
#define KINF_WORKLOADS_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/rfc3339.h"
#include "apiserver/conditions.h"

#define KINF__PROFILE_MAX_CONTAINERS 3
#define KINF__PROFILE_MAX_PAIRS      24
#define KINF__PROFILE_MAX_VOLUMES    4

/* splitmix64: the same numbers on every machine. */
struct kinf__dice {
    uint64_t state;
};
uint64_t kinf__dice_next(struct kinf__dice *dice);
/* 0 <= result < limit */
unsigned kinf__dice_below(struct kinf__dice *dice, unsigned limit);

/* A label, an annotation, a variable. */
struct kinf__pair {
    const char *name;
    const char *source; /* of a variable: "fieldRef" and so on; NULL: it has a value */
    char value[120];
};

struct kinf__pairs {
    struct kinf__pair items[KINF__PROFILE_MAX_PAIRS];
    unsigned n;
};

struct kinf__profile_container {
    const char *name;
    char image[120];
    unsigned port; /* 0: none */
    unsigned cpu_m, memory_mi;
    bool has_limits, has_probes;
    const char *probe_path;
    struct kinf__pairs env;
};

struct kinf__profile {
    char name[64]; /* of the Deployment; unique */
    char hash[16]; /* of its pod template */
    char name_space[64];
    const char *app, *team;
    struct kinf__pairs labels, annotations;
    struct kinf__profile_container containers[KINF__PROFILE_MAX_CONTAINERS];
    unsigned n_containers;
    bool has_init;
    const char *volumes[KINF__PROFILE_MAX_VOLUMES];
    unsigned n_volumes;
    unsigned replicas;
    char deployment_uid[40], replicaset_uid[40]; /* of the latter "": its pods have no owner */
    const char *scheduler;
    char time[KINF__RFC3339_SIZE]; /* of its creation */
};

/* Of seed and number, which is part of the name. */
void kinf__profile_init(struct kinf__profile *profile, uint64_t seed, unsigned number);

/* Words of a seed, for namespaces: "payments-prod". */
void kinf__profile_namespace(unsigned number, char name[64]);

/* What a kubelet says of a node that is well. */
#define KINF__N_NODE_CONDITIONS 4
extern const struct kinf__condition kinf__node_conditions[KINF__N_NODE_CONDITIONS];

/* How far a pod has come. */
enum kinf__pod_stage {
    KINF__POD_PENDING,
    KINF__POD_BOUND,
    KINF__POD_STARTING,
    KINF__POD_RUNNING,
    KINF__POD_UNREADY, /* it was running and ready */
    KINF__POD_ENDING,  /* it is deleted, and has its grace period */
    KINF__N_POD_STAGES
};

/* X(member of the values, letter): a hole is KINF__HOLE and a letter. */
#define KINF__HOLE '\1'
#define KINF__HOLES(X)                                                                             \
    X(name, 'n')                                                                                   \
    X(uid, 'u')                                                                                    \
    X(version, 'v')                                                                                \
    X(node, 'o')                                                                                   \
    X(pod_ip, 'i')                                                                                 \
    X(host_ip, 'h')                                                                                \
    X(created, 'c') /* times */                                                                    \
    X(started, 's')                                                                                \
    X(deleted, 'e')                                                                                \
    X(suffix, 'x') /* five letters */                                                              \
    X(restarts, 'r')
#define KINF__HOLE_DIGEST 'd' /* another one each time */

struct kinf__hole_values {
#define X(member, letter) const char *member;
    KINF__HOLES(X)
#undef X
    struct kinf__dice *dice; /* of digests */
};

/* Each appends the text of an object, without kind and apiVersion, with holes. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__profile_write_pod(const struct kinf__profile *profile,
                                            enum kinf__pod_stage stage, struct kinf__buffer *text);
KINF_MUST_CHECK int kinf__profile_write_replicaset(const struct kinf__profile *profile,
                                                   struct kinf__buffer *text);
KINF_MUST_CHECK int kinf__profile_write_deployment(const struct kinf__profile *profile,
                                                   struct kinf__buffer *text);
KINF_MUST_CHECK int kinf__profile_write_service(const struct kinf__profile *profile,
                                                struct kinf__buffer *text);
KINF_MUST_CHECK int kinf__profile_write_configmap(const struct kinf__profile *profile,
                                                  struct kinf__dice *dice,
                                                  struct kinf__buffer *text);
/* A node, which is nobody's. */
KINF_MUST_CHECK int kinf__profile_write_node(struct kinf__dice *dice, unsigned number,
                                             struct kinf__buffer *text);

/* Copies a text with its holes filled. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__fill_holes(struct kinf_str text, const struct kinf__hole_values *values,
                                     struct kinf__buffer *out);

#endif
