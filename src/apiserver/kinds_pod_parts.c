/*
 * Subresources that write a part of a pod, resize and ephemeralcontainers: whatever else is said is
 * as it was, though who said it is its manager. Neighbours: kinds_pods.c has the whole pod.
 */
#include "apiserver/kinds_priv.h"

#include <stdio.h>
#include <string.h>

static const char *const container_lists[] = { "containers", "initContainers" };

/* All but the spec is as it was, whoever says what; returns what was said of that, which the caller
 * frees. NULL: out of memory. */
static struct cJSON *restore_pod(const struct kinf__write *write)
{
    static const char *const members[] = { "labels", "annotations", "finalizers",
                                           "ownerReferences" };
    const struct cJSON *old_metadata = kinf__doc_get(write->old, "metadata");
    struct cJSON *metadata = kinf__doc_get(write->object, "metadata");
    KINF__AUTO_DOC *said = cJSON_DetachItemFromObjectCaseSensitive(write->object, "spec");
    int failed = kinf__kind_restore(write->old, write->object, "status");

    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(members); i++)
        failed = kinf__kind_restore(old_metadata, metadata, members[i]);
    if (failed == 0)
        failed = kinf__kind_restore(write->old, write->object, "spec");
    return failed == 0 ? KINF__TAKE(said) : NULL;
}

static int take_ephemeral(const struct kinf__write *write)
{
    KINF__AUTO_DOC *said = restore_pod(write);

    return said != NULL ? kinf__kind_restore(said, kinf__doc_get(write->object, "spec"),
                                             "ephemeralContainers")
                        : KINF_ERR_NO_MEMORY;
}

/* Whether a list has the same containers in the same order. */
static bool has_same_names(const struct cJSON *old, const struct cJSON *containers)
{
    const struct cJSON *before = old != NULL ? old->child : NULL,
                       *after = containers != NULL ? containers->child : NULL;

    for (; before != NULL && after != NULL; before = before->next, after = after->next) {
        if (strcmp(kinf__doc_text(before, "name", NULL), kinf__doc_text(after, "name", NULL)) != 0)
            return false;
    }
    return before == NULL && after == NULL;
}

/* Both have the same containers. */
static int take_list(const struct cJSON *said, struct cJSON *containers)
{
    const struct cJSON *from = said != NULL ? said->child : NULL;
    struct cJSON *to = containers != NULL ? containers->child : NULL;
    int failed = 0;

    for (; failed == 0 && from != NULL && to != NULL; from = from->next, to = to->next) {
        failed = kinf__kind_restore(from, to, "resources");
        if (failed == 0)
            failed = kinf__kind_restore(from, to, "resizePolicy");
    }
    return failed;
}

/* Other containers than there are stay in it, to be refused. */
static int take_sizes(const struct kinf__write *write)
{
    const struct cJSON *old = kinf__doc_get(write->old, "spec");
    KINF__AUTO_DOC *said = NULL;
    struct cJSON *spec;
    int failed = 0;

    for (size_t i = 0; i < KINF__ARRAY_LEN(container_lists); i++) {
        if (!has_same_names(kinf__doc_get(old, container_lists[i]),
                            kinf__doc_find(write->object, "spec", container_lists[i], NULL)))
            return 0;
    }
    said = restore_pod(write);
    if (said == NULL)
        return KINF_ERR_NO_MEMORY;
    spec = kinf__doc_get(write->object, "spec");
    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(container_lists); i++)
        failed = take_list(kinf__doc_get(said, container_lists[i]),
                           kinf__doc_get(spec, container_lists[i]));
    return failed;
}

static void check_ephemeral_stay(const struct cJSON *old, const struct cJSON *spec,
                                 struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(NULL, "spec.ephemeralContainers");
    KINF__AUTO_NODE_INDEX now = { KINF__HMAP_INIT };
    struct cJSON *container;
    char why[KINF__NAME_FAULT_SIZE];

    cJSON_ArrayForEach(container, kinf__doc_get(spec, "ephemeralContainers"))
    {
        /* Without memory the write itself fails next. */
        (void)!kinf__node_index_add(&now, kinf__doc_text(container, "name", NULL), container, 0);
    }
    cJSON_ArrayForEach(container, kinf__doc_get(old, "ephemeralContainers"))
    {
        const char *name = kinf__doc_text(container, "name", NULL);
        const struct kinf__node_index_entry *entry = kinf__node_index_find(&now, name);

        if (entry != NULL && kinf__doc_equal(entry->node, container))
            continue;
        snprintf(why, sizeof why, "existing ephemeral containers \"%.253s\" may not be %s\n", name,
                 entry == NULL ? "removed" : "changed");
        kinf__invalid_forbidden(invalid, &field, why);
    }
}

static int finish(const struct kinf__write *write, struct kinf__invalid *invalid)
{
    return kinf__invalid_finish(invalid, "", "Pod",
                                kinf__doc_text(write->object, "metadata", "name", NULL));
}

int kinf__pod_add_ephemeral(const struct kinf__write *write)
{
    struct kinf__invalid invalid;
    int failed = take_ephemeral(write);

    if (failed < 0)
        return failed;
    kinf__invalid_init(&invalid, write->refusal);
    kinf__pod_check(write->object, write->old, &invalid);
    check_ephemeral_stay(kinf__doc_get(write->old, "spec"), kinf__doc_get(write->object, "spec"),
                         &invalid);
    return finish(write, &invalid);
}

static bool check_same_containers(const struct cJSON *old, const struct cJSON *spec,
                                  const char *name, struct kinf__invalid *invalid)
{
    const struct kinf__field spec_field = kinf__field(NULL, "spec");
    const struct kinf__field field = kinf__field(&spec_field, name);
    const struct cJSON *before = kinf__doc_get(old, name), *after = kinf__doc_get(spec, name);
    char why[KINF__NAME_FAULT_SIZE];

    if (has_same_names(before, after))
        return true;
    if (cJSON_GetArraySize(before) != cJSON_GetArraySize(after)) {
        snprintf(why, sizeof why, "%s may not be added or removed on resize", name);
        kinf__invalid_forbidden(invalid, &field, why);
        return false;
    }
    before = before->child;
    after = after->child;
    for (size_t i = 0; before != NULL; before = before->next, after = after->next, i++) {
        const struct kinf__field item = kinf__field_index(&field, i);

        snprintf(why, sizeof why, "%s may not be renamed or reordered on resize", name);
        if (strcmp(kinf__doc_text(before, "name", NULL), kinf__doc_text(after, "name", NULL)) != 0)
            kinf__invalid_forbidden(invalid, KINF__AT(&item, "name"), why);
    }
    return false;
}

/* What was asked for, or limited, is so further on: at another number. */
static void check_none_removed(const struct cJSON *old, const struct cJSON *container,
                               const struct kinf__field *field, struct kinf__invalid *invalid)
{
    static const char *const lists[][2] = { { "requests", "resource requests cannot be removed" },
                                            { "limits", "resource limits cannot be removed" } };

    for (size_t i = 0; i < KINF__ARRAY_LEN(lists); i++) {
        const struct cJSON *after = kinf__doc_find(container, "resources", lists[i][0], NULL),
                           *resource;
        bool is_removed = false;

        cJSON_ArrayForEach(resource, kinf__doc_find(old, "resources", lists[i][0], NULL))
            is_removed = is_removed || kinf__doc_get(after, resource->string) == NULL;
        if (is_removed)
            kinf__invalid_forbidden(invalid, KINF__AT(KINF__AT(field, "resources"), lists[i][0]),
                                    lists[i][1]);
    }
}

/* Processors and memory, and what is empty without them. */
static void forget_sizes(struct cJSON *container)
{
    static const char *const lists[] = { "requests", "limits" };
    struct cJSON *resources = kinf__doc_get(container, "resources");

    for (size_t i = 0; i < KINF__ARRAY_LEN(lists); i++) {
        struct cJSON *list = kinf__doc_get(resources, lists[i]);

        kinf__doc_remove(list, "cpu");
        kinf__doc_remove(list, "memory");
        if (cJSON_GetArraySize(list) == 0)
            kinf__doc_remove(resources, lists[i]);
    }
    if (cJSON_GetArraySize(resources) == 0)
        kinf__doc_remove(container, "resources");
}

static void check_sizes(const struct cJSON *old, const struct cJSON *spec, const char *name,
                        struct kinf__invalid *invalid)
{
    const struct kinf__field spec_field = kinf__field(NULL, "spec");
    const struct kinf__field field = kinf__field(&spec_field, name);
    bool is_init = strcmp(name, "initContainers") == 0;
    const struct cJSON *before = kinf__doc_get(old, name), *after = kinf__doc_get(spec, name);
    size_t i = 0;

    before = before != NULL ? before->child : NULL;
    after = after != NULL ? after->child : NULL;
    for (; before != NULL && after != NULL; before = before->next, after = after->next) {
        const struct kinf__field item = kinf__field_index(&field, i++);

        check_none_removed(before, after, &item, invalid);
        if (!kinf__kind_is_same_but(before, after, forget_sizes))
            kinf__invalid_forbidden(invalid, is_init ? &item : &spec_field,
                                    is_init ? "only cpu and memory resources for init or sidecar "
                                              "containers are mutable"
                                            : "only cpu and memory resources are mutable");
    }
}

int kinf__pod_resize(const struct kinf__write *write)
{
    const struct cJSON *old = kinf__doc_get(write->old, "spec"), *spec;
    const char *quality = kinf__doc_text(write->old, "status", "qosClass", NULL);
    struct kinf__invalid invalid;
    bool is_same = true;
    int failed = take_sizes(write);

    if (failed < 0)
        return failed;
    spec = kinf__doc_get(write->object, "spec");
    kinf__invalid_init(&invalid, write->refusal);
    kinf__pod_check(write->object, write->old, &invalid);
    if (strcmp(quality, kinf__pod_quality(spec)) != 0)
        kinf__invalid_text(&invalid, KINF__AT(NULL, "spec"), quality,
                           "Pod QOS Class may not change as a result of resizing");
    is_same = check_same_containers(old, spec, "containers", &invalid);
    is_same = check_same_containers(old, spec, "initContainers", &invalid) && is_same;
    for (size_t i = 0; is_same && i < KINF__ARRAY_LEN(container_lists); i++)
        check_sizes(old, spec, container_lists[i], &invalid);
    return finish(write, &invalid);
}
