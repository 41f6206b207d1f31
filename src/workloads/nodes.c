/*
 * Nodes: a kubelet comes up on each that does not say how it is, and what is ready loses the taint
 * that it was created with. One that somebody says is not ready stays so.
 */
#include <string.h>

#include "workloads/profile.h"
#include "workloads/workloads_priv.h"

/* A member of the status that is not there yet. */
static int fill(struct cJSON *status, const char *name, struct cJSON *take_value)
{
    if (kinf__doc_get(status, name) == NULL)
        return kinf__doc_set(status, name, take_value);
    cJSON_Delete(take_value);
    return 0;
}

static int fill_status(const struct kinf__work *work)
{
    struct cJSON *status = kinf__doc_object(work->tree, "status");
    unsigned nth = work->workloads->n_kubelets++;
    int failed = 0;

    /* Created empty. */
    if (*kinf__doc_text(status, "nodeInfo", "kubeletVersion", NULL) == '\0')
        kinf__doc_remove(status, "nodeInfo");
    if (status == NULL ||
        fill(status, "addresses",
             kinf__json_format("[{\"type\":\"InternalIP\",\"address\":\"172.30.%u.%u\"},"
                               "{\"type\":\"Hostname\",\"address\":\"%s\"}]",
                               nth / 254 % 256, nth % 254 + 1, work->key)) < 0 ||
        fill(status, "capacity",
             kinf__json_format("{\"cpu\":\"8\",\"ephemeral-storage\":\"100Gi\","
                               "\"memory\":\"32Gi\",\"pods\":\"110\"}")) < 0 ||
        fill(status, "allocatable", kinf__doc_dup(kinf__doc_get(status, "capacity"))) < 0 ||
        fill(status, "nodeInfo",
             kinf__json_format("{\"machineID\":\"\",\"systemUUID\":\"\",\"bootID\":\"\","
                               "\"kernelVersion\":\"6.12.41\",\"osImage\":\"Linux\","
                               "\"containerRuntimeVersion\":\"containerd://2.1.4\","
                               "\"kubeletVersion\":\"v1.37.1\",\"kubeProxyVersion\":\"\","
                               "\"operatingSystem\":\"linux\",\"architecture\":\"amd64\"}")) < 0)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; failed == 0 && i < KINF__N_NODE_CONDITIONS; i++)
        failed = kinf__work_set_condition(work, &kinf__node_conditions[i]);
    return failed;
}

static int remove_taint(const struct kinf__work *work)
{
    KINF__AUTO_DOC *patch = kinf__json_format("{\"spec\":{\"taints\":[]}}");
    struct cJSON *taints = kinf__doc_find(patch, "spec", "taints", NULL);
    const struct cJSON *taint;

    cJSON_ArrayForEach(taint, kinf__doc_get(work->spec, "taints"))
    {
        if (strcmp(kinf__doc_text(taint, "key", NULL), KINF__NOT_READY_TAINT) != 0 &&
            kinf__doc_append(taints, kinf__doc_dup(taint)) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    if (patch == NULL)
        return KINF_ERR_NO_MEMORY;
    if (taints->child == NULL &&
        kinf__doc_set(kinf__doc_get(patch, "spec"), "taints", cJSON_CreateNull()) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__workloads_merge(work->workloads, KINF__WORK_NODE, work->key, KINF__TAKE(patch));
}

/* Those that selectors are fond of; what is there stays. */
static int put_labels(struct cJSON *node)
{
    struct cJSON *labels = kinf__doc_object(kinf__doc_object(node, "metadata"), "labels");
    const char *name = kinf__doc_text(node, "metadata", "name", NULL);

    if (labels == NULL || fill(labels, "kubernetes.io/hostname", cJSON_CreateString(name)) < 0 ||
        fill(labels, "kubernetes.io/os", cJSON_CreateString("linux")) < 0)
        return KINF_ERR_NO_MEMORY;
    return fill(labels, "kubernetes.io/arch", cJSON_CreateString("amd64"));
}

/* First it is ready; that is noted, and the taint goes. */
int kinf__reconcile_node(struct kinf__work *work)
{
    const struct kinf__host *host = kinf__pod_index_find_host(&work->workloads->pods, work->key);
    int failed = host != NULL && host->needs_kubelet ? kinf__work_read(work) : KINF_ERR_NOT_FOUND;

    if (failed < 0)
        return failed;
    if (kinf__condition_find(work->tree, "Ready") != NULL)
        return remove_taint(work);
    if (put_labels(work->tree) < 0 || fill_status(work) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__work_put_status(work, "kubelet");
}

int kinf__make_first_node(struct kinf__workloads *workloads)
{
    return kinf__workloads_create(workloads, KINF__WORK_NODE, "kubelet",
                                  kinf__json_format("{\"metadata\":{\"name\":\"node-1\"}}"), NULL);
}
