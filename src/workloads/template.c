/*
 * What controllers write: pods of templates, owner references, hashes. Neighbours: the
 * reconcilers of each kind.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "workloads/workloads_priv.h"

struct cJSON *kinf__json_format(const char *fmt, ...)
{
    KINF__AUTO_FREE char *text = NULL;
    struct cJSON *tree = NULL;
    va_list args;
    int len;

    va_start(args, fmt);
    len = vasprintf(&text, fmt, args);
    va_end(args);
    if (len < 0) {
        text = NULL;
        return NULL;
    }
    return kinf__doc_parse((struct kinf_str){ text, (size_t)len }, &tree, NULL) == 0 ? tree : NULL;
}

/* --- asking --- */

void kinf__object_key_of(const struct cJSON *object, char key[KINF__KEY_SIZE])
{
    kinf__object_key_join(key, kinf__doc_text(object, "metadata", "namespace", NULL),
                          kinf__doc_text(object, "metadata", "name", NULL));
}

const struct kinf__owner *kinf__work_owner(const struct kinf__work *work)
{
    return kinf__pod_index_find_owner(&work->workloads->pods,
                                      kinf__doc_text(work->tree, "metadata", "uid", NULL));
}

struct kinf__pod_counts kinf__count_pods(struct kinf__work *work, const struct kinf__owner *owner)
{
    int64_t now_ms = work->workloads->now_ms,
            min_ready_s = kinf__doc_integer(work->spec, "minReadySeconds", 0);
    struct kinf__pod_counts counts = { 0 };

    KINF__POD_INDEX_FOR_EACH(pod, owner)
    {
        int64_t available_ms;

        counts.terminating += pod->is_terminating && !pod->is_finished;
        if (!kinf__member_is_active(pod))
            continue;
        counts.active++;
        counts.started += pod->is_started;
        counts.ready += pod->is_ready;
        if (!pod->is_ready)
            continue;
        if (pod->ready_ms == 0)
            pod->ready_ms = now_ms;
        available_ms = kinf__clock_add_ms(pod->ready_ms, min_ready_s * 1000);
        if (available_ms <= now_ms)
            counts.available++;
        else
            kinf__work_again(work, available_ms);
    }
    return counts;
}

/* --- hashes --- */

int kinf__template_hash(const struct cJSON *template, int64_t n_collisions,
                        char hash[KINF__TEMPLATE_HASH_SIZE])
{
    /* No vowels, and nothing that is taken for another: names shall not say anything. */
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    uint64_t sum;

    if (kinf__doc_print(template, &text) < 0)
        return KINF_ERR_NO_MEMORY;
    sum = (kinf__text_hash(text.bytes, text.len) + (uint64_t)n_collisions) * 0x9e3779b97f4a7c15U;
    for (int i = 0; i < 10; i++) {
        hash[i] = letters[sum % (sizeof letters - 1)];
        sum /= sizeof letters - 1;
    }
    hash[10] = '\0';
    return 0;
}

/* --- objects --- */

void kinf__work_record(const struct kinf__work *work, const char *component, const char *reason,
                       const char *fmt, ...)
{
    bool is_bad = strncmp(reason, "Failed", 6) == 0 || strstr(reason, "Exceeded") != NULL;
    char message[512];
    const struct kinf__happening happening = {
        .api_version = kinf__work_types[work->kind].api_version,
        .kind = kinf__work_types[work->kind].kind,
        .object = work->tree,
        .component = component,
        .type = is_bad ? "Warning" : "Normal",
        .reason = reason,
        .message = message,
    };
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    kinf__record(&work->workloads->recorder, work->workloads->sim, work->workloads->now_ms,
                 &happening);
}

int kinf__work_set_condition(const struct kinf__work *work, const struct kinf__condition *condition)
{
    static const char *const time_names[KINF__N_WORK_KINDS] = {
        [KINF__WORK_NODE] = "lastHeartbeatTime",
        [KINF__WORK_DEPLOYMENT] = "lastUpdateTime",
        [KINF__WORK_JOB] = "lastProbeTime",
    };
    struct cJSON *node = kinf__condition_set(work->tree, condition);
    char time[KINF__RFC3339_SIZE];

    kinf__sim_time(time);
    return node != NULL ? kinf__doc_set_text(node, time_names[work->kind], time)
                        : KINF_ERR_NO_MEMORY;
}

int kinf__work_set_controller(const struct kinf__work *work, struct cJSON *object)
{
    return kinf__doc_set(
        kinf__doc_object(object, "metadata"), "ownerReferences",
        kinf__json_format("[{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"name\":\"%s\",\"uid\":\"%s\","
                          "\"controller\":true,\"blockOwnerDeletion\":true}]",
                          kinf__work_types[work->kind].api_version,
                          kinf__work_types[work->kind].kind,
                          kinf__doc_text(work->tree, "metadata", "name", NULL),
                          kinf__doc_text(work->tree, "metadata", "uid", NULL)));
}

static int copy_member(struct cJSON *to, const struct cJSON *from, const char *name)
{
    const struct cJSON *value = kinf__doc_get(from, name);

    return value != NULL ? kinf__doc_set(to, name, kinf__doc_dup(value)) : 0;
}

struct cJSON *kinf__work_make_pod(const struct kinf__work *work)
{
    const struct cJSON *template = kinf__doc_get(work->spec, "template");
    const struct cJSON *from = kinf__doc_get(template, "metadata");
    KINF__AUTO_DOC *pod =
        kinf__json_format("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{"
                          "\"namespace\":\"%s\",\"generateName\":\"%s-\",\"labels\":{}}}",
                          kinf__doc_text(work->tree, "metadata", "namespace", NULL),
                          kinf__doc_text(work->tree, "metadata", "name", NULL));
    struct cJSON *metadata = kinf__doc_get(pod, "metadata");

    if (pod == NULL || copy_member(metadata, from, "labels") < 0 ||
        copy_member(metadata, from, "annotations") < 0 ||
        copy_member(metadata, from, "finalizers") < 0 || kinf__work_set_controller(work, pod) < 0 ||
        copy_member(pod, template, "spec") < 0)
        return NULL;
    return KINF__TAKE(pod);
}

int kinf__set_count(struct cJSON *status, const char *name, int64_t n)
{
    if (n != 0)
        return kinf__doc_set_integer(status, name, n);
    kinf__doc_remove(status, name);
    return 0;
}

int kinf__work_put_changed_status(struct kinf__work *work)
{
    if (kinf__doc_equal(kinf__doc_get(work->tree, "status"), work->old_status))
        return 0;
    return kinf__work_put_status(work, KINF__CONTROLLER_MANAGER);
}
