/*
 * What protects claims and volumes that are used: the finalizer with which the API server makes them
 * goes once they are deleted and nobody uses them. Whoever does so is noted when it ends.
 */
#include <stdio.h>

#include "workloads/workloads_priv.h"

bool kinf__pod_get_claim(const struct kinf_object *pod, size_t i, char key[KINF__KEY_SIZE])
{
    const struct kinf_str name_space = kinf_object_namespace(pod);
    char path[64], name[KINF_NAME_MAX];

    key[0] = '\0';
    snprintf(path, sizeof path, "spec.volumes[%zu].name", i);
    if (kinf_object_get_string(pod, path, name, sizeof name) < 0)
        return false;
    snprintf(path, sizeof path, "spec.volumes[%zu].persistentVolumeClaim.claimName", i);
    if (kinf_object_get_string(pod, path, name, sizeof name) == 0)
        snprintf(key, KINF__KEY_SIZE, "%.*s/%s", (int)name_space.len, name_space.bytes, name);
    return true;
}

/* A pod that is on no node does not count: no kubelet starts it with a claim that is going. */
static bool uses(const struct kinf_object *pod, const char *key)
{
    char claim[KINF__KEY_SIZE], node[KINF_NAME_MAX];

    if (kinf_object_get_string(pod, "spec.nodeName", node, sizeof node) < 0)
        return false;
    for (size_t i = 0; kinf__pod_get_claim(pod, i, claim); i++) {
        if (strcmp(claim, key) == 0)
            return true;
    }
    return false;
}

static bool is_claim_used(const struct kinf__work *work)
{
    struct kinf_snapshot *snapshot kinf_auto_snapshot =
        kinf__store_snapshot(work->workloads->resources[KINF__WORK_POD]);
    const struct kinf_str name_space = { work->key,
                                         (size_t)(kinf__object_key_name(work->key) - work->key) };
    const struct kinf_object *pod;
    struct kinf_cursor cursor;

    kinf_cursor_prefix(&cursor, snapshot, name_space);
    while ((pod = kinf_cursor_next(&cursor)) != NULL) {
        if (uses(pod, work->key))
            return true;
    }
    return false;
}

static int let_go(struct kinf__work *work, const char *finalizer)
{
    kinf__doc_remove_text(kinf__doc_get(work->tree, "metadata"), "finalizers", finalizer);
    return kinf__verb_put(work->workloads->sim, work->workloads->resources[work->kind], "",
                          KINF__CONTROLLER_MANAGER, KINF__TAKE(work->tree));
}

int kinf__reconcile_claim(struct kinf__work *work)
{
    int failed = kinf__work_read(work);

    if (failed < 0 || !kinf__is_being_deleted(work->tree) || is_claim_used(work))
        return failed;
    return let_go(work, "kubernetes.io/pvc-protection");
}

int kinf__reconcile_volume(struct kinf__work *work)
{
    int failed = kinf__work_read(work);

    if (failed < 0 || !kinf__is_being_deleted(work->tree) ||
        strcmp(kinf__doc_text(work->tree, "status", "phase", NULL), "Bound") == 0)
        return failed;
    return let_go(work, "kubernetes.io/pv-protection");
}
