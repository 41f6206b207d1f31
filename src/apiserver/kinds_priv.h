/*
 * Rules of single kinds, which kinds.c puts together.
 *
 * Threads: the store's lock is held.
 */
#ifndef KINF_APISERVER_KINDS_PRIV_H
#define KINF_APISERVER_KINDS_PRIV_H

#include "apiserver/invalid.h"
#include "apiserver/kinds.h"
#include "document/node_index.h"

/* One write; everything is borrowed. */
struct kinf__write {
    struct kinf__sim *sim;
    struct kinf__resource *resource;
    const struct cJSON *old; /* NULL: the object is new */
    struct cJSON *object;
    struct kinf__refusal *refusal;
};

/* Return 0, KINF_ERR_INVALID with the refusal written, or KINF_ERR_NO_MEMORY without. */
typedef int kinf__rule_cb(const struct kinf__write *write);
typedef void kinf__check_cb(const struct cJSON *object, const struct cJSON *old,
                            struct kinf__invalid *invalid);

/* kinds.c: puts members of `json`, an object's text, where the object has none, at any depth. */
KINF_MUST_CHECK int kinf__kind_fill(struct cJSON *object, const char *json);
/* A fault unless the member at the path is what it was; `why`: "field is immutable". */
void kinf__kind_check_same(const struct cJSON *old, const struct cJSON *object,
                           const struct kinf__field *parent, const char *name, const char *why,
                           struct kinf__invalid *invalid);
#define KINF__IMMUTABLE "field is immutable"
/* A fault if the member is a negative number. */
void kinf__kind_check_not_negative(const struct cJSON *object, const struct kinf__field *parent,
                                   const char *name, struct kinf__invalid *invalid);

/* Whether a word is one of those, which are given as kinf__invalid_unsupported() wants them. */
bool kinf__kind_is_supported(const char *supported, const char *word);
/* A fault if the member is another word than those. */
void kinf__kind_check_word(const struct cJSON *object, const struct kinf__field *parent,
                           const char *name, const char *supported, struct kinf__invalid *invalid);
/* A fault unless an item's name is a label, and nobody else's in the list before it: those are in
 * `names`. Without memory none is, and the write itself fails next. */
void kinf__kind_check_item_name(struct kinf__node_index *names, struct cJSON *item,
                                const struct kinf__field *field, struct kinf__invalid *invalid);
/* Whether both are the same but for what `forget` takes out of copies; without memory they are. */
bool kinf__kind_is_same_but(const struct cJSON *old, const struct cJSON *object,
                            void (*forget)(struct cJSON *object));

/* A fault unless the member is a text that is not empty. */
void kinf__kind_require(const struct cJSON *object, const struct kinf__field *parent,
                        const char *name, struct kinf__invalid *invalid);
/* Of each element of a list: that its member is a text that is not empty. */
void kinf__kind_require_each(const struct cJSON *list, const struct kinf__field *field,
                             const char *name, const char *why, struct kinf__invalid *invalid);
/* metadata.c: what differs between types. */
struct kinf__metadata_rules {
    enum kinf__name_form form; /* of names */
    bool is_extension;         /* definitions and custom resources: finalizers need no prefix */
};

/* Adds the faults of object.metadata. `old`: what the object was; NULL: it is new. */
void kinf__metadata_validate(const struct cJSON *object, const struct cJSON *old,
                             struct kinf__metadata_rules rules, struct kinf__invalid *invalid);
/* Of a template within an object: labels and annotations. */
void kinf__metadata_validate_labels(const struct cJSON *metadata, const struct kinf__field *field,
                                    struct kinf__invalid *invalid);

/* kinds_pods.c */
void kinf__pod_spec_check(const struct cJSON *spec, const struct kinf__field *field,
                          struct kinf__invalid *invalid);
kinf__rule_cb kinf__pod_create, kinf__pod_update;
kinf__check_cb kinf__pod_check;
/* The class of quality of service. */
const char *kinf__pod_quality(const struct cJSON *spec);

/* kinds_pod_parts.c */
kinf__rule_cb kinf__pod_resize, kinf__pod_add_ephemeral;

/* kinds_workloads.c */
kinf__rule_cb kinf__daemon_set_create, kinf__daemon_set_update;
kinf__check_cb kinf__deployment_check, kinf__replica_set_check, kinf__daemon_set_check,
    kinf__stateful_set_check, kinf__job_check, kinf__cron_job_check, kinf__pod_template_check,
    kinf__replication_controller_check, kinf__revision_check, kinf__autoscaler_check;

/* kinds_jobs.c: of a Job that was there before. */
kinf__check_cb kinf__job_status_check;

/* kinds_services.c */
kinf__rule_cb kinf__service_create, kinf__service_update;
kinf__check_cb kinf__service_check, kinf__ingress_check;

/* kinds_configs.c */
kinf__check_cb kinf__secret_check, kinf__config_map_check;

/* kinds_cluster.c */
kinf__rule_cb kinf__namespace_write, kinf__namespace_finalize, kinf__node_create;
kinf__check_cb kinf__namespace_check_fields, kinf__quota_check, kinf__lease_check,
    kinf__priority_class_check, kinf__api_service_check, kinf__role_check, kinf__binding_check,
    kinf__core_event_check, kinf__event_check;
/* Members of an event of either group get the names that they have in the other one. */
KINF_MUST_CHECK int kinf__event_rename(struct cJSON *object);

/* kinds_storage.c */
kinf__rule_cb kinf__volume_create, kinf__volume_claim_create, kinf__volume_claim_update;
kinf__check_cb kinf__volume_check, kinf__volume_claim_check;

/* definitions_check.c */
kinf__rule_cb kinf__definition_write;
kinf__check_cb kinf__definition_check;

#endif
