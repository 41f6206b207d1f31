/*
 * The verbs that change something, as the API server has them: what is checked, filled in and
 * refused. Requests come here by way of request.c, controllers and manifests directly.
 *
 * Threads: the store's lock is held.
 */
#ifndef KINF_APISERVER_VERBS_H
#define KINF_APISERVER_VERBS_H

#include "apiserver/sim.h"

enum kinf__field_validation {
    KINF__FIELDS_WARN, /* unknown and doubled fields are dropped, with a warning */
    KINF__FIELDS_IGNORE,
    KINF__FIELDS_STRICT,
};

#define KINF__MAX_WARNINGS 32

/* How, and for whom. All zero but for `sim` and `resource` is what a controller wants. */
struct kinf__verb {
    struct kinf__sim *sim;
    struct kinf__resource *resource;
    struct kinf__resource_version *version; /* NULL: the preferred one */
    const char *name_space;                 /* of the path; NULL, "": as the object says */
    const char *name;                       /* of the path; NULL, "": likewise */
    const char *subresource;                /* "status"; NULL, "": none */
    const char *manager;                    /* field manager; NULL: "kinformer-sim" */
    enum kinf__field_validation validation;
    bool is_dry_run;
    /* the result */
    struct cJSON *object; /* what is stored now (or would be); the caller frees it */
    bool is_created;
    char warnings[KINF__MAX_WARNINGS][256];
    size_t n_warnings;
    struct kinf__refusal refusal; /* of a failure */
};

/* All return 0, or a negative code with verb->refusal written. `take_object` is consumed. */

KINF_MUST_CHECK int kinf__verb_create(struct kinf__verb *verb, struct cJSON *take_object);
/* `take_object` names itself; without a resourceVersion it wins over everything, or is refused where
 * the kind wants one. */
KINF_MUST_CHECK int kinf__verb_update(struct kinf__verb *verb, struct cJSON *take_object);

/* As a manifest says it, status and all: that is a state, not a wish. What is there is updated. */
KINF_MUST_CHECK int kinf__verb_load(struct kinf__verb *verb, struct cJSON *take_object);
/* The object as it was read and changed by ourselves: nothing is decoded. */
KINF_MUST_CHECK int kinf__verb_replace(struct kinf__verb *verb, struct cJSON *take_object);
/* As it is: verb->object. */
KINF_MUST_CHECK int kinf__verb_get(struct kinf__verb *verb);

/* What is answered and not stored, as reviews are: decoded, placed and with its manager. */
KINF_MUST_CHECK int kinf__verb_receive(struct kinf__verb *verb, struct cJSON *object);

enum kinf__patch_type {
    KINF__PATCH_JSON,
    KINF__PATCH_MERGE,
    KINF__PATCH_STRATEGIC,
    KINF__PATCH_APPLY,
};

/* `force`: of apply. */
KINF_MUST_CHECK int kinf__verb_patch(struct kinf__verb *verb, enum kinf__patch_type type,
                                     const struct cJSON *patch, bool force);
/* Of what a patch made, which is this text: the decoder's refusal becomes that of the patch. */
int kinf__verb_refuse_made(struct kinf__verb *verb, const char *text);

enum kinf__propagation {
    KINF__PROPAGATION_DEFAULT,
    KINF__PROPAGATION_BACKGROUND,
    KINF__PROPAGATION_FOREGROUND,
    KINF__PROPAGATION_ORPHAN,
};

struct kinf__delete_options {
    int64_t grace_s; /* negative: not said, what it has already or the object's own */
    enum kinf__propagation propagation;
    const char *uid; /* preconditions; NULL: none */
    const char *resource_version;
    bool is_eviction;
};
#define KINF__DELETE_OPTIONS_INIT                                                                  \
    {                                                                                              \
        -1, KINF__PROPAGATION_DEFAULT, NULL, NULL, false                                           \
    }

/* verb->object: the object as it is (`*ret_is_gone` false: finalizers, or a grace period, keep it),
 * or as it was. */
KINF_MUST_CHECK int kinf__verb_delete(struct kinf__verb *verb,
                                      const struct kinf__delete_options *options,
                                      bool *ret_is_gone);

/* For controllers, whose own the object is; what is refused they see again. `subresource` "": none. */
KINF_MUST_CHECK int kinf__verb_put(struct kinf__sim *sim, struct kinf__resource *resource,
                                   const char *subresource, const char *manager,
                                   struct cJSON *take_object);
/* Not another one of its name. */
KINF_MUST_CHECK int kinf__verb_delete_object(struct kinf__sim *sim, struct kinf__resource *resource,
                                             const struct kinf_object *object,
                                             enum kinf__propagation propagation);

/* Frees what the result holds: it can be used again. */
void kinf__verb_release(struct kinf__verb *verb);

#endif
