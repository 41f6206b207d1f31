/*
 * Rules of single kinds, which kinds.c puts together.
 *
 * Threads: the store's lock is held.
 */
#ifndef KINF_APISERVER_KINDS_PRIV_H
#define KINF_APISERVER_KINDS_PRIV_H

#include "apiserver/invalid.h"
#include "apiserver/kinds.h"
#include "apiserver/names.h"

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

/* A fault unless the member is a text that is not empty. */
void kinf__kind_require(const struct cJSON *object, const struct kinf__field *parent,
                        const char *name, struct kinf__invalid *invalid);
/* The same of a list or a map; `why`: "", or what is said of it. */
void kinf__kind_require_items(const struct cJSON *object, const struct kinf__field *parent,
                              const char *name, const char *why, struct kinf__invalid *invalid);
/* Of each element of a list: that its member is a text that is not empty. */
void kinf__kind_require_each(const struct cJSON *list, const struct kinf__field *field,
                             const char *name, const char *why, struct kinf__invalid *invalid);
/* As kinf__kind_check_same() of a member of the object itself, of which the server does not say what
 * it is not to become. `old` NULL: no fault. */
void kinf__kind_check_fixed(const struct cJSON *object, const struct cJSON *old, const char *name,
                            struct kinf__invalid *invalid);

/* kinds_pods.c */
void kinf__pod_spec_check(const struct cJSON *spec, const struct kinf__field *field,
                          struct kinf__invalid *invalid);
kinf__rule_cb kinf__pod_create, kinf__pod_update;
kinf__check_cb kinf__pod_check;

/* kinds_workloads.c */
kinf__rule_cb kinf__daemon_set_create, kinf__daemon_set_update;
kinf__check_cb kinf__deployment_check, kinf__replica_set_check, kinf__daemon_set_check,
    kinf__stateful_set_check, kinf__job_check, kinf__cron_job_check, kinf__pod_template_check,
    kinf__replication_controller_check, kinf__revision_check, kinf__autoscaler_check;

/* kinds_services.c */
kinf__rule_cb kinf__service_create, kinf__service_update;
kinf__check_cb kinf__service_check;

/* kinds_configs.c */
kinf__check_cb kinf__secret_check, kinf__config_map_check;

/* kinds_cluster.c */
kinf__rule_cb kinf__namespace_write, kinf__namespace_finalize, kinf__node_create;
kinf__check_cb kinf__namespace_check_fields, kinf__quota_check, kinf__lease_check,
    kinf__priority_class_check, kinf__api_service_check;

/* kinds_storage.c */
kinf__rule_cb kinf__volume_create, kinf__volume_claim_create;
kinf__check_cb kinf__volume_check, kinf__volume_claim_check, kinf__storage_class_check,
    kinf__volume_attributes_check;

/* kinds_network.c */
kinf__rule_cb kinf__endpoint_slice_write;
kinf__check_cb kinf__ingress_check, kinf__ingress_class_check, kinf__service_range_check,
    kinf__endpoint_slice_check;

/* kinds_rbac.c */
kinf__rule_cb kinf__role_write;
kinf__check_cb kinf__role_check, kinf__cluster_role_check, kinf__binding_check;

/* kinds_events.c */
kinf__rule_cb kinf__core_event_write, kinf__event_write;
kinf__check_cb kinf__core_event_check, kinf__event_check;

/* definitions_check.c */
kinf__rule_cb kinf__definition_write;
kinf__check_cb kinf__definition_check;

#endif
