/*
 * APIServices. Neighbours: namespaces.c makes the first at the start, definitions.c keeps them.
 */
#include "apiserver/definitions.h"

#include <stdio.h>
#include <string.h>

#include "apiserver/conditions.h"
#include "apiserver/verbs.h"

#define GROUP           "apiregistration.k8s.io"
#define AUTOMANAGED     "kube-aggregator.kubernetes.io/automanaged"
#define NAME_SIZE       (2 * KINF_NAME_MAX)
#define CUSTOM_PRIORITY 1000
#define OTHER_PRIORITY  16000

/* In which order discovery names groups. */
static const struct {
    const char *group;
    int priority;
} groups[] = {
    { "", 18000 },
    { "apps", 17800 },
    { "events.k8s.io", 17750 },
    { "authentication.k8s.io", 17700 },
    { "authorization.k8s.io", 17600 },
    { "autoscaling", 17500 },
    { "batch", 17400 },
    { "certificates.k8s.io", 17300 },
    { "networking.k8s.io", 17200 },
    { "policy", 17100 },
    { "rbac.authorization.k8s.io", 17000 },
    { "storage.k8s.io", 16800 },
    { "apiextensions.k8s.io", 16700 },
    { "admissionregistration.k8s.io", 16700 },
    { "scheduling.k8s.io", 16600 },
    { "coordination.k8s.io", 16500 },
    { "node.k8s.io", 16300 },
    { "discovery.k8s.io", 16200 },
};

static int64_t group_priority(const struct kinf__resource *resource)
{
    for (size_t i = 0; !resource->is_custom && i < KINF__ARRAY_LEN(groups); i++) {
        if (strcmp(groups[i].group, resource->group) == 0)
            return groups[i].priority;
    }
    return resource->is_custom ? CUSTOM_PRIORITY : OTHER_PRIORITY;
}

static int64_t version_priority(const struct kinf__resource *resource, const char *version)
{
    if (resource->is_custom)
        return 100;
    if (*resource->group == '\0')
        return 1;
    return strcmp(version, "v2") == 0 ? 30 : 15;
}

static int describe(struct cJSON *object, const struct kinf__resource *resource,
                    const char *version, const char *name)
{
    static const struct kinf__condition available = { "Available", "True", "Local",
                                                      "Local APIServices are always available" };
    struct cJSON *metadata = kinf__doc_object(object, "metadata");
    struct cJSON *spec = kinf__doc_object(object, "spec");
    struct cJSON *labels = metadata != NULL ? kinf__doc_object(metadata, "labels") : NULL;

    if (labels == NULL || spec == NULL || kinf__doc_set_text(metadata, "name", name) < 0 ||
        kinf__doc_set_text(labels, AUTOMANAGED, resource->is_custom ? "true" : "onstart") < 0 ||
        (*resource->group != '\0' && kinf__doc_set_text(spec, "group", resource->group) < 0) ||
        kinf__doc_set_text(spec, "version", version) < 0 ||
        kinf__doc_set_integer(spec, "groupPriorityMinimum", group_priority(resource)) < 0 ||
        kinf__doc_set_integer(spec, "versionPriority", version_priority(resource, version)) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__condition_set(object, &available) != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

static int ensure(struct kinf__sim *sim, struct kinf__resource *services,
                  const struct kinf__resource *resource, const char *version)
{
    struct kinf__verb verb = { .sim = sim, .resource = services, .manager = "kube-apiserver" };
    char name[NAME_SIZE];
    KINF__AUTO_DOC *object = NULL;
    int failed;

    snprintf(name, sizeof name, "%s.%s", version, resource->group);
    if (kinf__store_has(services, "", name))
        return 0;
    object = cJSON_CreateObject();
    if (object == NULL || describe(object, resource, version, name) < 0)
        return KINF_ERR_NO_MEMORY;
    failed = kinf__verb_load(&verb, KINF__TAKE(object));
    kinf__verb_release(&verb);
    return failed;
}

static bool is_served(struct kinf__sim *sim, const char *name)
{
    for (struct kinf__resource *resource = NULL;
         (resource = kinf__store_next(kinf__sim_store(sim), resource)) != NULL;) {
        char own[NAME_SIZE];

        for (size_t i = 0; i < resource->n_versions; i++) {
            snprintf(own, sizeof own, "%s.%s", resource->versions[i].type->version,
                     resource->group);
            if (strcmp(own, name) == 0)
                return true;
        }
    }
    return false;
}

static int remove_unserved(struct kinf__sim *sim, struct kinf__resource *services)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf__store_snapshot(services);
    const struct kinf_object *service;
    struct kinf_cursor cursor;
    int failed = 0;

    kinf_cursor_all(&cursor, snapshot);
    while (failed >= 0 && (service = kinf_cursor_next(&cursor)) != NULL) {
        char value[8];

        if (kinf_object_get_label(service, AUTOMANAGED, value, sizeof value) < 0 ||
            is_served(sim, kinf_object_name(service)))
            continue;
        failed = kinf__verb_delete_object(sim, services, service, KINF__PROPAGATION_DEFAULT);
    }
    return failed;
}

int kinf__api_services_follow(struct kinf__sim *sim)
{
    struct kinf__store *store = kinf__sim_store(sim);
    struct kinf__resource *services = kinf__store_find(store, GROUP, "apiservices");
    int failed = 0;

    for (const struct kinf__resource *resource = NULL;
         (resource = kinf__store_next(store, resource)) != NULL;) {
        /* Its own group has none. */
        for (size_t i = 0;
             failed == 0 && strcmp(resource->group, GROUP) != 0 && i < resource->n_versions; i++)
            failed = ensure(sim, services, resource, resource->versions[i].type->version);
    }
    return failed == 0 ? remove_unserved(sim, services) : failed;
}
