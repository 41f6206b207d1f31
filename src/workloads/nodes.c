/*
 * Nodes: a kubelet comes up on each that does not say how it is, and what is ready loses the taint
 * that it was created with. One that somebody says is not ready stays so.
 */
#include <stdio.h>
#include <string.h>

#include "workloads/workloads_priv.h"

static int set_conditions(struct cJSON *node)
{
    static const struct kinf__condition conditions[] = {
        { "MemoryPressure", "False", "KubeletHasSufficientMemory",
          "kubelet has sufficient memory available" },
        { "DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure" },
        { "PIDPressure", "False", "KubeletHasSufficientPID",
          "kubelet has sufficient PID available" },
        { "Ready", "True", "KubeletReady", "kubelet is posting ready status" },
    };
    char time[KINF__TIME_SIZE];

    kinf__sim_time(time);
    for (size_t i = 0; i < KINF__ARRAY_LEN(conditions); i++) {
        struct cJSON *condition = kinf__condition_set(node, &conditions[i]);

        if (condition == NULL || kinf__doc_set_text(condition, "lastHeartbeatTime", time) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

/* A member of the status that is not there yet. */
static int fill(struct cJSON *status, const char *name, struct cJSON *take_value)
{
    if (kinf__doc_get(status, name) == NULL)
        return kinf__doc_set(status, name, take_value);
    cJSON_Delete(take_value);
    return 0;
}

static int fill_status(struct kinf__workloads *workloads, struct cJSON *node)
{
    struct cJSON *status = kinf__doc_object(node, "status");
    unsigned nth = workloads->n_kubelets++;

    /* Created empty. */
    if (*kinf__doc_text(status, "nodeInfo", "kubeletVersion", NULL) == '\0')
        kinf__doc_remove(status, "nodeInfo");
    if (status == NULL ||
        fill(status, "addresses",
             kinf__json_format("[{\"type\":\"InternalIP\",\"address\":\"172.30.%u.%u\"},"
                               "{\"type\":\"Hostname\",\"address\":\"%s\"}]",
                               nth / 254 % 256, nth % 254 + 1,
                               kinf__doc_text(node, "metadata", "name", NULL))) < 0 ||
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
    return set_conditions(node);
}

static int remove_taint(struct kinf__workloads *workloads, const char *key,
                        const struct cJSON *node)
{
    KINF__AUTO_DOC *patch = kinf__json_format("{\"spec\":{\"taints\":[]}}");
    struct cJSON *taints = kinf__doc_find(patch, "spec", "taints", NULL);
    const struct cJSON *taint;

    cJSON_ArrayForEach(taint, kinf__doc_find(node, "spec", "taints", NULL))
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
    return kinf__workloads_merge(workloads, KINF__WORK_NODE, key, "kube-controller-manager",
                                 KINF__TAKE(patch));
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
int kinf__reconcile_node(struct kinf__workloads *workloads, const char *key)
{
    const struct kinf__host *host = kinf__pod_index_find_host(&workloads->pods, key);
    KINF__AUTO_DOC *node = NULL;
    int failed;

    if (host == NULL || !host->needs_kubelet)
        return 0;
    failed = kinf__workloads_read(workloads, KINF__WORK_NODE, key, &node);
    if (failed < 0)
        return failed == KINF_ERR_NOT_FOUND ? 0 : failed;
    if (kinf__condition_find(node, "Ready") != NULL)
        return remove_taint(workloads, key, node);
    if (put_labels(node) < 0 || fill_status(workloads, node) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__workloads_put_status(workloads, KINF__WORK_NODE, "kubelet", KINF__TAKE(node));
}

int kinf__make_first_node(struct kinf__workloads *workloads)
{
    return kinf__workloads_create(workloads, KINF__WORK_NODE, "kubelet",
                                  kinf__json_format("{\"metadata\":{\"name\":\"node-1\"}}"));
}
