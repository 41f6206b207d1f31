/*
 * The index of pods and ReplicaSets. Neighbours: workloads.c feeds it, its siblings read it. What an
 * object says is read from its text, in one walk: a tree of each would cost more than all the rest.
 */
#include "workloads/pod_index.h"

#include <stdio.h>
#include <string.h>

#include "apiserver/meta_text.h"
#include "object/object.h"

const struct kinf__work_type kinf__work_types[] = {
    [KINF__WORK_POD] = { "", "v1", "pods", "Pod" },
    [KINF__WORK_NODE] = { "", "v1", "nodes", "Node" },
    [KINF__WORK_REPLICASET] = { "apps", "apps/v1", "replicasets", "ReplicaSet" },
    [KINF__WORK_DEPLOYMENT] = { "apps", "apps/v1", "deployments", "Deployment" },
    [KINF__WORK_STATEFULSET] = { "apps", "apps/v1", "statefulsets", "StatefulSet" },
    [KINF__WORK_DAEMONSET] = { "apps", "apps/v1", "daemonsets", "DaemonSet" },
    [KINF__WORK_JOB] = { "batch", "batch/v1", "jobs", "Job" },
    [KINF__WORK_CLAIM] = { "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim" },
    [KINF__WORK_VOLUME] = { "", "v1", "persistentvolumes", "PersistentVolume" },
};

/* --- what an object says --- */

struct facts {
    struct kinf__owner_reference owner; /* its controller */
    char node[KINF_NAME_MAX];
    char ip[64]; /* a node's */
    uint64_t revision;
    bool is_terminating, is_ended;
    bool is_started, is_running, is_ready, is_finished, is_succeeded;
    bool is_gated;
    bool is_unschedulable; /* a pod that says so; a node that is cordoned or tainted */
    bool is_of_churn;
    bool has_readiness; /* a condition "Ready", whatever it is */
    bool is_tainted_unready;
};

/* A text that is too long counts as none. */
static void copy_text(struct kinf__json_value value, char *text, size_t size)
{
    size_t len =
        value.type == KINF__JSON_STRING ? kinf__json_unescape(value.raw, text, size - 1) : 0;

    text[len < size ? len : 0] = '\0';
}

static bool is_text(struct kinf__json_value value, const char *text)
{
    return value.type == KINF__JSON_STRING &&
           kinf__json_string_equals(value.raw, kinf_str_from(text));
}

static bool is_true(struct kinf__json_value value)
{
    return value.type == KINF__JSON_BOOL && value.raw.bytes[0] == 't';
}

static bool has_elements(struct kinf__json_value list)
{
    struct kinf__json_iter iter;
    struct kinf__json_value value;
    struct kinf_str key;

    return kinf__json_iter_init(&iter, list) && kinf__json_iter_next(&iter, &key, &value);
}

static bool has_text(struct kinf__json_value object, const char *name, const char *text)
{
    struct kinf__json_value value;

    return kinf__json_member(object, kinf_str_from(name), &value) && is_text(value, text);
}

static void read_owners(struct kinf__json_value owners, struct facts *facts)
{
    struct kinf__owner_reference owner;
    struct kinf__json_iter iter;

    if (!kinf__json_iter_init(&iter, owners))
        return;
    while (kinf__owner_reference_next(&iter, &owner)) {
        if (owner.is_controller) {
            facts->owner = owner;
            return;
        }
    }
}

static void read_labels(struct kinf__json_value labels, struct facts *facts)
{
    struct kinf__json_value value;
    char text[128] = "";

    if (!kinf__json_member(labels, KINF_STR("controller-revision-hash"), &value))
        return;
    copy_text(value, text, sizeof text);
    facts->revision = kinf__text_hash(text, strlen(text));
}

static void read_metadata(struct kinf__json_value metadata, struct facts *facts)
{
    struct kinf__json_iter iter;
    struct kinf__json_value value;
    struct kinf_str key;

    if (!kinf__json_iter_init(&iter, metadata))
        return;
    while (kinf__json_iter_next(&iter, &key, &value)) {
        if (kinf__json_string_equals(key, KINF_STR("ownerReferences")))
            read_owners(value, facts);
        else if (kinf__json_string_equals(key, KINF_STR("labels")))
            read_labels(value, facts);
        else if (kinf__json_string_equals(key, KINF_STR("deletionTimestamp")))
            facts->is_terminating = value.type == KINF__JSON_STRING;
        else if (kinf__json_string_equals(key, KINF_STR("deletionGracePeriodSeconds")))
            facts->is_ended = kinf_str_equal(value.raw, KINF_STR("0"));
    }
}

static void read_conditions(struct kinf__json_value conditions, struct facts *facts)
{
    struct kinf__json_iter iter;
    struct kinf__json_value condition;
    struct kinf_str key;

    if (!kinf__json_iter_init(&iter, conditions))
        return;
    while (kinf__json_iter_next(&iter, &key, &condition)) {
        if (has_text(condition, "type", "Ready")) {
            facts->has_readiness = true;
            facts->is_ready = has_text(condition, "status", "True");
        } else if (has_text(condition, "type", "PodScheduled")) {
            facts->is_unschedulable = has_text(condition, "status", "False");
        }
    }
}

static void read_pod_status(struct kinf__json_value status, struct facts *facts)
{
    struct kinf__json_iter iter;
    struct kinf__json_value value;
    struct kinf_str key;

    if (!kinf__json_iter_init(&iter, status))
        return;
    while (kinf__json_iter_next(&iter, &key, &value)) {
        if (kinf__json_string_equals(key, KINF_STR("phase"))) {
            facts->is_running = is_text(value, "Running");
            facts->is_succeeded = is_text(value, "Succeeded");
            facts->is_finished = facts->is_succeeded || is_text(value, "Failed");
        } else if (kinf__json_string_equals(key, KINF_STR("conditions"))) {
            read_conditions(value, facts);
        } else if (kinf__json_string_equals(key, KINF_STR("startTime"))) {
            facts->is_started = true;
        }
    }
}

static void read_taints(struct kinf__json_value taints, struct facts *facts)
{
    struct kinf__json_iter iter;
    struct kinf__json_value taint;
    struct kinf_str key;

    if (!kinf__json_iter_init(&iter, taints))
        return;
    while (kinf__json_iter_next(&iter, &key, &taint)) {
        if (has_text(taint, "key", KINF__NOT_READY_TAINT))
            facts->is_tainted_unready = true;
        else if (!has_text(taint, "effect", "PreferNoSchedule"))
            facts->is_unschedulable = true;
    }
}

static void read_addresses(struct kinf__json_value addresses, struct facts *facts)
{
    struct kinf__json_iter iter;
    struct kinf__json_value address, value;
    struct kinf_str key;

    if (!kinf__json_iter_init(&iter, addresses))
        return;
    while (kinf__json_iter_next(&iter, &key, &address)) {
        if (has_text(address, "type", "InternalIP") &&
            kinf__json_member(address, KINF_STR("address"), &value))
            copy_text(value, facts->ip, sizeof facts->ip);
    }
}

/* Of a pod or a node, which have no member in common. */
static void read_spec(struct kinf__json_value spec, struct facts *facts)
{
    struct kinf__json_iter iter;
    struct kinf__json_value value;
    struct kinf_str key;

    if (!kinf__json_iter_init(&iter, spec))
        return;
    while (kinf__json_iter_next(&iter, &key, &value)) {
        if (kinf__json_string_equals(key, KINF_STR("nodeName")))
            copy_text(value, facts->node, sizeof facts->node);
        else if (kinf__json_string_equals(key, KINF_STR("schedulerName")))
            facts->is_of_churn = is_text(value, KINF__CHURN_SCHEDULER);
        else if (kinf__json_string_equals(key, KINF_STR("schedulingGates")))
            facts->is_gated = has_elements(value);
        else if (kinf__json_string_equals(key, KINF_STR("unschedulable")))
            facts->is_unschedulable |= is_true(value);
        else if (kinf__json_string_equals(key, KINF_STR("taints")))
            read_taints(value, facts);
    }
}

static int read_facts(const struct kinf_object *object, enum kinf__work_kind kind,
                      struct facts *facts)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__json_value whole, part, value;
    struct kinf_str body;

    if (kinf__object_body(object, &scratch, &body) < 0)
        return KINF_ERR_NO_MEMORY;
    whole = kinf__json_value_of(body);
    if (kinf__json_member(whole, KINF_STR("metadata"), &part))
        read_metadata(part, facts);
    if (kind == KINF__WORK_REPLICASET)
        return 0;
    if (kinf__json_member(whole, KINF_STR("spec"), &part))
        read_spec(part, facts);
    if (!kinf__json_member(whole, KINF_STR("status"), &part))
        return 0;
    if (kind == KINF__WORK_POD) {
        read_pod_status(part, facts);
        return 0;
    }
    if (kinf__json_member(part, KINF_STR("addresses"), &value))
        read_addresses(value, facts);
    if (kinf__json_member(part, KINF_STR("conditions"), &value))
        read_conditions(value, facts);
    return 0;
}

/* --- hosts --- */

struct kinf__host *kinf__pod_index_find_host(const struct kinf__pod_index *index, const char *name)
{
    struct kinf__hmap_node *node =
        kinf__hmap_first_with_hash(&index->by_name, kinf__hash(kinf_str_from(name)));

    for (; node != NULL; node = kinf__hmap_next_with_hash(node)) {
        struct kinf__host *host = KINF__CONTAINER_OF(node, struct kinf__host, node);

        if (strcmp(host->name, name) == 0)
            return host;
    }
    return NULL;
}

static struct kinf__host *ensure_host(struct kinf__pod_index *index, const char *name)
{
    size_t len = strlen(name) + 1;
    struct kinf__host *host = kinf__pod_index_find_host(index, name);

    if (host != NULL)
        return host;
    host = calloc(1, sizeof *host + len);
    if (host == NULL ||
        kinf__hmap_insert(&index->by_name, &host->node, kinf__hash(kinf_str_from(name))) < 0) {
        free(host);
        return NULL;
    }
    memcpy(host->name, name, len);
    kinf__list_init(&host->pods);
    kinf__list_push_back(&index->hosts, &host->link);
    return host;
}

static void drop_host_if_unused(struct kinf__pod_index *index, struct kinf__host *host)
{
    if (host->is_there || host->n_pods != 0)
        return;
    kinf__list_remove(&host->link);
    kinf__hmap_remove(&index->by_name, &host->node);
    free(host);
}

static void leave_host(struct kinf__pod_index *index, struct kinf__member *pod)
{
    struct kinf__host *host = pod->host;

    if (host == NULL)
        return;
    pod->host = NULL;
    kinf__list_remove(&pod->on_host);
    host->n_pods--;
    drop_host_if_unused(index, host);
}

static int join_host(struct kinf__pod_index *index, struct kinf__member *pod, const char *name)
{
    if (pod->host != NULL && strcmp(pod->host->name, name) == 0)
        return 0;
    leave_host(index, pod);
    if (*name == '\0')
        return 0;
    pod->host = ensure_host(index, name);
    if (pod->host == NULL)
        return KINF_ERR_NO_MEMORY;
    kinf__list_push_back(&pod->host->pods, &pod->on_host);
    pod->host->n_pods++;
    return 0;
}

int kinf__pod_index_set_host(struct kinf__pod_index *index, const char *name,
                             const struct kinf_object *object, struct kinf__host **ret_host)
{
    struct kinf__host *host =
        object != NULL ? ensure_host(index, name) : kinf__pod_index_find_host(index, name);
    struct facts facts = { .node = "" };

    *ret_host = NULL;
    if (host == NULL)
        return object != NULL ? KINF_ERR_NO_MEMORY : 0;
    if (object != NULL && read_facts(object, KINF__WORK_NODE, &facts) < 0)
        return KINF_ERR_NO_MEMORY;
    host->is_there = object != NULL;
    host->was_there = true;
    host->takes_pods = facts.is_ready && !facts.is_tainted_unready && !facts.is_unschedulable &&
                       !facts.is_terminating;
    host->needs_kubelet =
        host->is_there && (!facts.has_readiness || (facts.is_ready && facts.is_tainted_unready));
    snprintf(host->ip, sizeof host->ip, "%s", facts.ip);
    if (host->is_there || host->n_pods != 0)
        *ret_host = host;
    drop_host_if_unused(index, host);
    return 0;
}

struct kinf__host *kinf__pod_index_pick_host(const struct kinf__pod_index *index,
                                             kinf__host_fits_cb *fits, void *ctx)
{
    struct kinf__host *best = NULL;

    KINF__LIST_FOR_EACH (node, &index->hosts) {
        struct kinf__host *host = KINF__LIST_ENTRY(node, struct kinf__host, link);

        if (host->takes_pods && (best == NULL || host->n_pods < best->n_pods) && fits(host, ctx))
            best = host;
    }
    return best;
}

/* --- owners --- */

struct kinf__owner *kinf__pod_index_find_owner(const struct kinf__pod_index *index, const char *uid)
{
    struct kinf__hmap_node *node =
        kinf__hmap_first_with_hash(&index->by_uid, kinf__hash(kinf_str_from(uid)));

    for (; node != NULL; node = kinf__hmap_next_with_hash(node)) {
        struct kinf__owner *owner = KINF__CONTAINER_OF(node, struct kinf__owner, node);

        if (strcmp(owner->uid, uid) == 0)
            return owner;
    }
    return NULL;
}

static enum kinf__work_kind kind_of(const char *name)
{
    int kind = 0;

    while (kind < KINF__N_WORK_KINDS && strcmp(kinf__work_types[kind].kind, name) != 0)
        kind++;
    return (enum kinf__work_kind)kind;
}

/* An owner is in the namespace of what it owns. */
static struct kinf__owner *ensure_owner(struct kinf__pod_index *index, const char *member_key,
                                        const struct facts *facts)
{
    struct kinf__owner *owner = kinf__pod_index_find_owner(index, facts->owner.uid);
    size_t uid_size = strlen(facts->owner.uid) + 1;
    size_t namespace_len = (size_t)(strrchr(member_key, '/') - member_key) + 1;
    char *key;

    if (owner != NULL)
        return owner;
    owner = calloc(1, sizeof *owner + uid_size + namespace_len + strlen(facts->owner.name) + 1);
    if (owner == NULL || kinf__hmap_insert(&index->by_uid, &owner->node,
                                           kinf__hash(kinf_str_from(facts->owner.uid))) < 0) {
        free(owner);
        return NULL;
    }
    memcpy(owner->uid, facts->owner.uid, uid_size);
    key = owner->uid + uid_size;
    owner->key = key;
    memcpy(key, member_key, namespace_len);
    strcpy(key + namespace_len, facts->owner.name);
    owner->kind = kind_of(facts->owner.kind);
    kinf__list_init(&owner->members);
    return owner;
}

static void leave_owner(struct kinf__pod_index *index, struct kinf__member *member)
{
    struct kinf__owner *owner = member->owner;

    if (owner == NULL)
        return;
    member->owner = NULL;
    kinf__list_remove(&member->sibling);
    if (--owner->n_members != 0)
        return;
    kinf__hmap_remove(&index->by_uid, &owner->node);
    free(owner);
}

static int join_owner(struct kinf__pod_index *index, struct kinf__member *member,
                      const struct facts *facts)
{
    if (member->owner != NULL && strcmp(member->owner->uid, facts->owner.uid) == 0)
        return 0;
    leave_owner(index, member);
    if (facts->owner.uid[0] == '\0' || strchr(member->key, '/') == NULL)
        return 0;
    member->owner = ensure_owner(index, member->key, facts);
    if (member->owner == NULL)
        return KINF_ERR_NO_MEMORY;
    kinf__list_push_back(&member->owner->members, &member->sibling);
    member->owner->n_members++;
    return 0;
}

/* --- members --- */

static uint64_t key_hash(enum kinf__work_kind kind, const char *key)
{
    return kinf__hash(kinf_str_from(key)) + kind;
}

struct kinf__member *kinf__pod_index_find(const struct kinf__pod_index *index,
                                          enum kinf__work_kind kind, const char *key)
{
    struct kinf__hmap_node *node = kinf__hmap_first_with_hash(&index->by_key, key_hash(kind, key));

    for (; node != NULL; node = kinf__hmap_next_with_hash(node)) {
        struct kinf__member *member = KINF__CONTAINER_OF(node, struct kinf__member, node);

        if (member->kind == kind && strcmp(member->key, key) == 0)
            return member;
    }
    return NULL;
}

static struct kinf__member *add_member(struct kinf__pod_index *index, enum kinf__work_kind kind,
                                       const char *key)
{
    size_t len = strlen(key) + 1;
    struct kinf__member *member = calloc(1, sizeof *member + len);

    if (member == NULL ||
        kinf__hmap_insert(&index->by_key, &member->node, key_hash(kind, key)) < 0) {
        free(member);
        return NULL;
    }
    memcpy(member->key, key, len);
    member->kind = kind;
    member->order = index->n_seen++;
    kinf__list_init(&member->sibling);
    kinf__list_init(&member->on_host);
    kinf__list_init(&member->waiting);
    return member;
}

static void remove_member(struct kinf__pod_index *index, struct kinf__member *member)
{
    leave_owner(index, member);
    leave_host(index, member);
    kinf__list_remove(&member->waiting);
    kinf__hmap_remove(&index->by_key, &member->node);
    free(member);
}

static void take_facts(struct kinf__member *member, const struct facts *facts)
{
    member->revision = facts->revision;
    member->is_terminating = facts->is_terminating;
    member->is_ended = facts->is_terminating && facts->is_ended;
    member->is_started = facts->is_started;
    member->is_running = facts->is_running;
    member->is_finished = facts->is_finished;
    member->is_succeeded = facts->is_succeeded;
    member->is_gated = facts->is_gated;
    member->is_unschedulable = facts->is_unschedulable;
    member->is_of_churn = facts->is_of_churn;
    member->is_ready = facts->is_ready && facts->is_running;
    if (!member->is_ready)
        member->ready_ms = 0;
    if (facts->node[0] != '\0' || facts->is_terminating)
        kinf__list_remove(&member->waiting);
}

/* What owners look at; what else changes in a pod is nothing to them. */
static int state_of(const struct kinf__member *member)
{
    return 1 | member->is_terminating << 1 | member->is_started << 2 | member->is_running << 3 |
           member->is_ready << 4 | member->is_finished << 5 | member->is_succeeded << 6 |
           (member->host != NULL) << 7;
}

static void say_owner(const struct kinf__member *member, enum kinf__work_kind *kind, char *key,
                      size_t size)
{
    if (member->owner == NULL || member->owner->kind == KINF__N_WORK_KINDS)
        return;
    *kind = member->owner->kind;
    snprintf(key, size, "%s", member->owner->key);
}

static int set_member(struct kinf__pod_index *index, struct kinf__member *member,
                      const struct kinf_object *object, int old_state,
                      struct kinf__member_change *change)
{
    struct facts facts = { .node = "" };

    if (read_facts(object, member->kind, &facts) < 0 || join_host(index, member, facts.node) < 0 ||
        join_owner(index, member, &facts) < 0)
        return KINF_ERR_NO_MEMORY;
    take_facts(member, &facts);
    say_owner(member, &change->owner_kind, change->owner_key, sizeof change->owner_key);
    if (change->owner_kind == change->old_owner_kind &&
        strcmp(change->owner_key, change->old_owner_key) == 0) {
        change->old_owner_key[0] = '\0';
        if (member->kind == KINF__WORK_POD && state_of(member) == old_state)
            change->owner_key[0] = '\0';
    }
    change->member = member;
    change->n_siblings = member->owner != NULL ? member->owner->n_members : 0;
    return 0;
}

int kinf__pod_index_set(struct kinf__pod_index *index, enum kinf__work_kind kind, const char *key,
                        const struct kinf_object *object, struct kinf__member_change *ret_change)
{
    struct kinf__member *member = kinf__pod_index_find(index, kind, key);
    int old_state = member != NULL ? state_of(member) : 0;

    ret_change->member = NULL;
    ret_change->n_siblings = 0;
    ret_change->owner_kind = ret_change->old_owner_kind = KINF__N_WORK_KINDS;
    ret_change->owner_key[0] = ret_change->old_owner_key[0] = '\0';
    if (member != NULL)
        say_owner(member, &ret_change->old_owner_kind, ret_change->old_owner_key,
                  sizeof ret_change->old_owner_key);
    else if (object != NULL && (member = add_member(index, kind, key)) == NULL)
        return KINF_ERR_NO_MEMORY;
    if (object != NULL)
        return set_member(index, member, object, old_state, ret_change);
    if (member != NULL)
        remove_member(index, member);
    return 0;
}

/* --- all of it --- */

uint64_t kinf__text_hash(const char *bytes, size_t len)
{
    uint64_t hash = 0xcbf29ce484222325U;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3U;
    return hash;
}

void kinf__pod_index_init(struct kinf__pod_index *index)
{
    memset(index, 0, sizeof *index);
    kinf__list_init(&index->hosts);
    kinf__list_init(&index->waiting);
}

void kinf__pod_index_release(struct kinf__pod_index *index)
{
    for (size_t i = 0; i < index->by_key.n_buckets; i++) {
        while (index->by_key.buckets[i] != NULL)
            remove_member(index,
                          KINF__CONTAINER_OF(index->by_key.buckets[i], struct kinf__member, node));
    }
    KINF__LIST_FOR_EACH_SAFE (node, &index->hosts) {
        struct kinf__host *host = KINF__LIST_ENTRY(node, struct kinf__host, link);

        host->is_there = false;
        drop_host_if_unused(index, host);
    }
    kinf__hmap_release(&index->by_key);
    kinf__hmap_release(&index->by_uid);
    kinf__hmap_release(&index->by_name);
    kinf__pod_index_init(index);
}

static size_t count_links(const struct kinf__list *list)
{
    size_t n = 0;

    KINF__LIST_FOR_EACH (node, list)
        n++;
    return n;
}

static bool check_member(const struct kinf__pod_index *index, const struct kinf__member *member)
{
    if (member->owner != NULL &&
        (kinf__pod_index_find_owner(index, member->owner->uid) != member->owner ||
         count_links(&member->owner->members) != member->owner->n_members))
        return false;
    if (member->host != NULL &&
        (kinf__pod_index_find_host(index, member->host->name) != member->host ||
         count_links(&member->host->pods) != member->host->n_pods))
        return false;
    return kinf__pod_index_find(index, member->kind, member->key) == member;
}

bool kinf__pod_index_check(const struct kinf__pod_index *index)
{
    size_t n_owned = 0, n_members = 0;

    for (size_t i = 0; i < index->by_key.n_buckets; i++) {
        struct kinf__hmap_node *node = index->by_key.buckets[i];

        for (; node != NULL; node = node->next) {
            const struct kinf__member *member = KINF__CONTAINER_OF(node, struct kinf__member, node);

            if (!check_member(index, member))
                return false;
            n_owned += member->owner != NULL;
        }
    }
    for (size_t i = 0; i < index->by_uid.n_buckets; i++) {
        struct kinf__hmap_node *node = index->by_uid.buckets[i];

        for (; node != NULL; node = node->next)
            n_members += KINF__CONTAINER_OF(node, struct kinf__owner, node)->n_members;
    }
    return n_owned == n_members && count_links(&index->hosts) == index->by_name.n_nodes;
}
