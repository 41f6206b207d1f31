/*
 * Pods, and the specs of pods that templates have: what admission adds, what must be there, and what
 * of a pod can change. Neighbours: kinds.c, kinds_workloads.c, kinds_pod_parts.c.
 */
#include "apiserver/kinds_priv.h"

#include <stdio.h>
#include <string.h>

#include "apiserver/refuse.h"
#include "document/quantity.h"
#include "document/node_index.h"

#define EPHEMERAL_WORDS "cannot be set for an Ephemeral Container"
#define PORT_RANGE      "must be between 1 and 65535, inclusive"

static const char *const container_lists[] = { "initContainers", "containers" };

/* --- quality of service --- */

struct resources {
    size_t n_containers;
    size_t n_named;      /* requests and limits of processors and memory */
    size_t n_guaranteed; /* those where both are the same */
};

static void count_resources(const struct cJSON *container, struct resources *count)
{
    static const char *const names[] = { "cpu", "memory" };
    const struct cJSON *limits = kinf__doc_find(container, "resources", "limits", NULL);
    const struct cJSON *requests = kinf__doc_find(container, "resources", "requests", NULL);

    count->n_containers++;
    for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++) {
        const struct cJSON *limit = kinf__doc_get(limits, names[i]);
        const struct cJSON *request = kinf__doc_get(requests, names[i]);

        count->n_named += limit != NULL || request != NULL;
        count->n_guaranteed += limit != NULL && kinf__doc_equal(limit, request);
    }
}

const char *kinf__pod_quality(const struct cJSON *spec)
{
    struct resources count = { 0 };
    const struct cJSON *container;

    for (size_t i = 0; i < KINF__ARRAY_LEN(container_lists); i++)
        cJSON_ArrayForEach(container, kinf__doc_get(spec, container_lists[i]))
            count_resources(container, &count);
    if (count.n_named == 0)
        return "BestEffort";
    return count.n_guaranteed == 2 * count.n_containers ? "Guaranteed" : "Burstable";
}

/* --- admission --- */

static int tolerate(struct cJSON *tolerations, const char *key)
{
    KINF__AUTO_DOC *added = NULL;
    const struct cJSON *toleration;

    cJSON_ArrayForEach(toleration, tolerations)
    {
        const char *effect = kinf__doc_text(toleration, "effect", NULL);
        const char *tolerated = kinf__doc_text(toleration, "key", NULL);

        if ((strcmp(tolerated, key) == 0 || *tolerated == '\0') &&
            (strcmp(effect, "NoExecute") == 0 || *effect == '\0'))
            return 0;
    }
    added =
        cJSON_Parse("{\"operator\":\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":300}");
    if (added == NULL || kinf__doc_set_text(added, "key", key) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__doc_append(tolerations, KINF__TAKE(added));
}

static int tolerate_failures(struct cJSON *spec)
{
    struct cJSON *tolerations = kinf__doc_array(spec, "tolerations");
    int failed = tolerations != NULL ? tolerate(tolerations, "node.kubernetes.io/not-ready")
                                     : KINF_ERR_NO_MEMORY;

    return failed == 0 ? tolerate(tolerations, "node.kubernetes.io/unreachable") : failed;
}

/* Without a class of its own a pod has priority 0: which class is everybody's default is not looked
 * for. */
static int set_priority(const struct kinf__write *write, struct cJSON *spec)
{
    struct kinf__resource *classes =
        kinf__store_find(kinf__sim_store(write->sim), "scheduling.k8s.io", "priorityclasses");
    const char *name = kinf__doc_text(spec, "priorityClassName", NULL);
    KINF__AUTO_DOC *class = NULL;
    const char *preemption;
    char why[KINF__REFUSAL_MESSAGE_SIZE];
    int failed;

    if (*name == '\0')
        return kinf__kind_fill(spec,
                               "{\"priority\":0,\"preemptionPolicy\":\"PreemptLowerPriority\"}");
    failed = kinf__store_read(classes, "", name, &class);
    if (failed == KINF_ERR_NOT_FOUND) {
        snprintf(why, sizeof why, "no PriorityClass with name %s was found", name);
        return kinf__refuse_forbidden(write->refusal, write->resource,
                                      kinf__doc_text(write->object, "metadata", "name", NULL), why);
    }
    if (failed == 0)
        failed = kinf__doc_set_integer(spec, "priority", kinf__doc_integer(class, "value", 0));
    preemption = kinf__doc_text(class, "preemptionPolicy", NULL);
    return failed == 0
               ? kinf__doc_set_text(spec, "preemptionPolicy",
                                    *preemption != '\0' ? preemption : "PreemptLowerPriority")
               : failed;
}

int kinf__pod_take_topology(struct kinf__sim *sim, const char *node, struct cJSON *pod)
{
    static const char *const names[] = { "topology.kubernetes.io/zone",
                                         "topology.kubernetes.io/region" };
    struct kinf__resource *nodes = kinf__store_find(kinf__sim_store(sim), "", "nodes");
    kinf_auto_object const struct kinf_object *object = kinf__store_get(nodes, "", node);
    struct cJSON *labels;
    char label[KINF_NAME_MAX];

    for (size_t i = 0; object != NULL && i < KINF__ARRAY_LEN(names); i++) {
        if (kinf_object_get_label(object, names[i], label, sizeof label) < 0)
            continue;
        labels = kinf__doc_object(kinf__doc_get(pod, "metadata"), "labels");
        if (labels == NULL || kinf__doc_set_text(labels, names[i], label) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static int place(const struct kinf__write *write)
{
    const char *node = kinf__doc_text(write->object, "spec", "nodeName", NULL);

    return *node != '\0' ? kinf__pod_take_topology(write->sim, node, write->object) : 0;
}

int kinf__pod_create(const struct kinf__write *write)
{
    struct cJSON *spec = kinf__doc_get(write->object, "spec");
    int failed = kinf__doc_set_text(kinf__doc_get(write->object, "status"), "qosClass",
                                    kinf__pod_quality(spec));

    if (failed == 0)
        failed = place(write);
    if (failed == 0)
        failed = tolerate_failures(spec);
    return failed == 0 ? set_priority(write, spec) : failed;
}

/* --- validation --- */

static void check_ports(const struct cJSON *ports, const struct kinf__field *field,
                        struct kinf__invalid *invalid)
{
    const struct cJSON *port;
    size_t i = 0;

    cJSON_ArrayForEach(port, ports)
    {
        const struct kinf__field item = kinf__field_index(field, i++);
        const struct kinf__field number_field = kinf__field(&item, "containerPort");
        int64_t number = kinf__doc_integer(port, "containerPort", 0);

        if (number == 0)
            kinf__invalid_required(invalid, &number_field, "");
        else if (number < 0 || number > 65535)
            kinf__invalid_integer(invalid, &number_field, number, PORT_RANGE);
        kinf__kind_check_word(port, &item, "protocol", "\"SCTP\", \"TCP\", \"UDP\"", invalid);
    }
}

/* `volumes`: those of the pod, by their names. */
static void check_mounts(const struct cJSON *mounts, const struct kinf__node_index *volumes,
                         const struct kinf__field *field, struct kinf__invalid *invalid)
{
    const struct cJSON *mount;
    size_t i = 0;

    cJSON_ArrayForEach(mount, mounts)
    {
        const struct kinf__field item = kinf__field_index(field, i++);
        const struct kinf__field name_field = kinf__field(&item, "name");
        const char *name = kinf__doc_text(mount, "name", NULL);

        if (*name == '\0')
            kinf__invalid_required(invalid, &name_field, "");
        if (kinf__node_index_find(volumes, name) == NULL)
            kinf__invalid_not_found(invalid, &name_field, name);
        kinf__kind_require(mount, &item, "mountPath", invalid);
    }
}

static void check_image(const char *image, const struct kinf__field *parent,
                        struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(parent, "image");
    size_t len = strlen(image);

    if (len == 0)
        kinf__invalid_required(invalid, &field, "");
    else if (strchr(" \t\r\n", image[0]) != NULL || strchr(" \t\r\n", image[len - 1]) != NULL)
        kinf__invalid_text(invalid, &field, image, "must not have leading or trailing whitespace");
}

static void check_resources(const struct cJSON *resources, const struct kinf__field *parent,
                            struct kinf__invalid *invalid)
{
    const struct cJSON *all = kinf__doc_get(resources, "requests"), *request;
    KINF__AUTO_NODE_MEMBERS limits = { NULL, false, { KINF__HMAP_INIT } };
    char why[KINF__NAME_FAULT_SIZE];

    /* Without memory the write itself fails next. */
    if (kinf__node_members_init(&limits, kinf__doc_get(resources, "limits"),
                                (size_t)cJSON_GetArraySize(all)) < 0)
        return;
    cJSON_ArrayForEach(request, all)
    {
        const struct cJSON *node = kinf__node_members_get(&limits, request->string);
        const char *limit = cJSON_IsString(node) ? node->valuestring : "";

        if (!cJSON_IsString(request) || !kinf__quantity_exceeds(request->valuestring, limit))
            continue;
        snprintf(why, sizeof why, "must be less than or equal to %.253s limit of %.64s",
                 request->string, limit);
        kinf__invalid_text(invalid, KINF__AT(parent, "resources.requests"), request->valuestring,
                           why);
    }
}

static void check_container(const struct cJSON *container, const struct kinf__node_index *volumes,
                            const struct kinf__field *field, struct kinf__invalid *invalid)
{
    check_image(kinf__doc_text(container, "image", NULL), field, invalid);
    check_ports(kinf__doc_get(container, "ports"), KINF__AT(field, "ports"), invalid);
    kinf__kind_require_each(kinf__doc_get(container, "env"), KINF__AT(field, "env"), "name", "",
                            invalid);
    check_mounts(kinf__doc_get(container, "volumeMounts"), volumes, KINF__AT(field, "volumeMounts"),
                 invalid);
    check_resources(kinf__doc_get(container, "resources"), field, invalid);
    kinf__kind_check_word(container, field, "imagePullPolicy",
                          "\"Always\", \"IfNotPresent\", \"Never\"", invalid);
}

static void check_containers(const struct cJSON *spec, const char *name,
                             const struct kinf__node_index *volumes,
                             const struct kinf__field *parent, struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(parent, name);
    KINF__AUTO_NODE_INDEX names = { KINF__HMAP_INIT };
    struct cJSON *container;
    size_t i = 0;

    cJSON_ArrayForEach(container, kinf__doc_get(spec, name))
    {
        const struct kinf__field item = kinf__field_index(&field, i++);

        kinf__kind_check_item_name(&names, container, &item, invalid);
        check_container(container, volumes, &item, invalid);
    }
}

/* --- ephemeral containers --- */

static void check_no_services(const struct cJSON *container, const struct kinf__field *field,
                              struct kinf__invalid *invalid)
{
    static const char *const members[] = { "ports",          "resources",    "livenessProbe",
                                           "readinessProbe", "startupProbe", "lifecycle",
                                           "resizePolicy",   "restartPolicy" };

    for (size_t i = 0; i < KINF__ARRAY_LEN(members); i++) {
        const struct cJSON *member = kinf__doc_get(container, members[i]);

        if (cJSON_IsString(member) || cJSON_GetArraySize(member) != 0)
            kinf__invalid_forbidden(invalid, KINF__AT(field, members[i]), EPHEMERAL_WORDS);
    }
}

static void check_whole_mounts(const struct cJSON *mounts, const struct kinf__field *field,
                               struct kinf__invalid *invalid)
{
    static const char *const members[] = { "subPath", "subPathExpr" };
    const struct cJSON *mount;
    size_t n = 0;

    cJSON_ArrayForEach(mount, mounts)
    {
        const struct kinf__field item = kinf__field_index(field, n++);

        for (size_t i = 0; i < KINF__ARRAY_LEN(members); i++) {
            if (*kinf__doc_text(mount, members[i], NULL) != '\0')
                kinf__invalid_forbidden(invalid, KINF__AT(&item, members[i]), EPHEMERAL_WORDS);
        }
    }
}

static void check_ephemeral(struct cJSON *container, const struct kinf__node_index *others,
                            const struct kinf__node_index *volumes, const struct kinf__field *field,
                            struct kinf__invalid *invalid)
{
    const char *target = kinf__doc_text(container, "targetContainerName", NULL);

    check_container(container, volumes, field, invalid);
    if (*target != '\0' && kinf__node_index_find(others, target) == NULL)
        kinf__invalid_not_found(invalid, KINF__AT(field, "targetContainerName"), target);
    check_no_services(container, field, invalid);
    check_whole_mounts(kinf__doc_get(container, "volumeMounts"), KINF__AT(field, "volumeMounts"),
                       invalid);
}

/* Without memory a name is nobody's; the write itself fails next. */
static void note_names(const struct cJSON *spec, struct kinf__node_index *names)
{
    struct cJSON *container;

    for (size_t i = 0; i < KINF__ARRAY_LEN(container_lists); i++) {
        cJSON_ArrayForEach(container, kinf__doc_get(spec, container_lists[i]))
        {
            (void)!kinf__node_index_add(names, kinf__doc_text(container, "name", NULL), container,
                                        0);
        }
    }
}

/* Names are those of no container beside it. */
static void check_all_ephemeral(const struct cJSON *spec, const struct kinf__node_index *volumes,
                                const struct kinf__field *parent, struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(parent, "ephemeralContainers");
    KINF__AUTO_NODE_INDEX names = { KINF__HMAP_INIT };
    KINF__AUTO_NODE_INDEX others = { KINF__HMAP_INIT };
    struct cJSON *container;
    size_t i = 0;

    note_names(spec, &names);
    note_names(spec, &others);
    cJSON_ArrayForEach(container, kinf__doc_get(spec, "ephemeralContainers"))
    {
        const struct kinf__field item = kinf__field_index(&field, i++);

        check_ephemeral(container, &others, volumes, &item, invalid);
        kinf__kind_check_item_name(&names, container, &item, invalid);
    }
}

/* --- pods --- */

static void check_volume_types(const struct cJSON *volume, const struct kinf__field *field,
                               struct kinf__invalid *invalid)
{
    const struct cJSON *member;
    bool has_type = false;

    cJSON_ArrayForEach(member, volume)
    {
        if (strcmp(member->string, "name") == 0)
            continue;
        if (has_type)
            kinf__invalid_forbidden(invalid, KINF__AT(field, member->string),
                                    "may not specify more than 1 volume type");
        has_type = true;
    }
}

/* Also puts them into `names`. */
static void check_volumes(const struct cJSON *spec, struct kinf__node_index *names,
                          const struct kinf__field *parent, struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(parent, "volumes");
    struct cJSON *volume;
    size_t i = 0;

    cJSON_ArrayForEach(volume, kinf__doc_get(spec, "volumes"))
    {
        const struct kinf__field item = kinf__field_index(&field, i++);

        kinf__kind_check_item_name(names, volume, &item, invalid);
        check_volume_types(volume, &item, invalid);
    }
}

void kinf__pod_spec_check(const struct cJSON *spec, const struct kinf__field *field,
                          struct kinf__invalid *invalid)
{
    KINF__AUTO_NODE_INDEX volumes = { KINF__HMAP_INIT };

    check_volumes(spec, &volumes, field, invalid);
    if (cJSON_GetArraySize(kinf__doc_get(spec, "containers")) == 0)
        kinf__invalid_required(invalid, KINF__AT(field, "containers"), "");
    check_containers(spec, "containers", &volumes, field, invalid);
    check_containers(spec, "initContainers", &volumes, field, invalid);
    check_all_ephemeral(spec, &volumes, field, invalid);
    kinf__kind_check_word(spec, field, "restartPolicy", "\"Always\", \"OnFailure\", \"Never\"",
                          invalid);
    kinf__kind_check_word(spec, field, "dnsPolicy",
                          "\"ClusterFirstWithHostNet\", \"ClusterFirst\", \"Default\", \"None\"",
                          invalid);
    kinf__kind_check_not_negative(spec, field, "terminationGracePeriodSeconds", invalid);
}

void kinf__pod_check(const struct cJSON *object, const struct cJSON *old,
                     struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(NULL, "spec");
    const struct cJSON *spec = kinf__doc_get(object, "spec");

    kinf__pod_spec_check(spec, &field, invalid);
    if (old == NULL && cJSON_GetArraySize(kinf__doc_get(spec, "ephemeralContainers")) != 0)
        kinf__invalid_forbidden(invalid, KINF__AT(&field, "ephemeralContainers"),
                                "cannot be set on create");
}

/* --- updates --- */

static const char update_words[] =
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions "
    "to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it "
    "was previously negative)";

/* Takes out of a copy what may differ. */
static void forget_mutable(struct cJSON *spec)
{
    static const char *const members[] = { "activeDeadlineSeconds", "tolerations",
                                           "schedulingGates" };
    struct cJSON *container;

    for (size_t i = 0; i < KINF__ARRAY_LEN(members); i++)
        kinf__doc_remove(spec, members[i]);
    for (size_t i = 0; i < KINF__ARRAY_LEN(container_lists); i++)
        cJSON_ArrayForEach(container, kinf__doc_get(spec, container_lists[i]))
            kinf__doc_remove(container, "image");
}

static void check_count(const struct cJSON *old, const struct cJSON *spec, const char *name,
                        const char *why, struct kinf__invalid *invalid)
{
    if (cJSON_GetArraySize(kinf__doc_get(old, name)) !=
        cJSON_GetArraySize(kinf__doc_get(spec, name)))
        kinf__invalid_forbidden(invalid, KINF__AT(KINF__AT(NULL, "spec"), name), why);
}

int kinf__pod_update(const struct kinf__write *write)
{
    /* Not what the client says. */
    static const char *const admitted[] = { "priority", "preemptionPolicy" };
    const struct cJSON *old = kinf__doc_get(write->old, "spec");
    struct cJSON *spec = kinf__doc_get(write->object, "spec");
    struct kinf__invalid invalid;

    if (kinf__kind_keep_unsaid(old, spec, admitted, KINF__ARRAY_LEN(admitted)) < 0)
        return KINF_ERR_NO_MEMORY;
    kinf__invalid_init(&invalid, write->refusal);
    check_count(old, spec, "containers", "pod updates may not add or remove containers", &invalid);
    check_count(old, spec, "initContainers", "pod updates may not add or remove containers",
                &invalid);
    if (invalid.n_faults == 0 && !kinf__kind_is_same_but(old, spec, forget_mutable))
        kinf__invalid_forbidden(&invalid, KINF__AT(NULL, "spec"), update_words);
    return kinf__invalid_finish(&invalid, "", "Pod",
                                kinf__doc_text(write->object, "metadata", "name", NULL));
}
