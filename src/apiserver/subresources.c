/*
 * Scale, binding, eviction, token. Neighbours: request.c routes here, verbs.c writes.
 */
#include "apiserver/subresources.h"

#include <stdio.h>
#include <string.h>

#include "apiserver/conditions.h"
#include "apiserver/invalid.h"
#include "apiserver/kinds.h"
#include "apiserver/refuse.h"
#include "apiserver/types.h"
#include "apiserver/verbs_priv.h"

bool kinf__subresource_is_main(const struct kinf__verb *verb)
{
    return kinf__has_word("status,finalize,approval,ephemeralcontainers,resize", verb->subresource);
}

bool kinf__subresource_is_known(const struct kinf__verb *verb)
{
    if (!verb->resource->is_custom)
        return kinf__has_word(verb->resource->subresources, verb->subresource);
    return (strcmp(verb->subresource, "status") == 0 && verb->version->has_status) ||
           (strcmp(verb->subresource, "scale") == 0 && verb->version->has_scale);
}

const char *kinf__subresource_kind(const struct kinf__verb *verb)
{
    static const char *const kinds[][2] = { { "binding", "Binding" },
                                            { "eviction", "Eviction" },
                                            { "scale", "Scale" },
                                            { "token", "TokenRequest" } };

    for (size_t i = 0; i < KINF__ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i][0], verb->subresource) == 0)
            return kinds[i][1];
    }
    return verb->resource->kind;
}

int kinf__subresource_check_kind(struct kinf__verb *verb, const struct cJSON *body)
{
    const char *wanted = kinf__subresource_kind(verb), *kind = kinf__doc_text(body, "kind", NULL);
    const char *version = kinf__doc_text(body, "apiVersion", NULL), *slash = strchr(version, '/');
    const char *package = strcmp(wanted, "Eviction") == 0  ? "policy"
                          : strcmp(wanted, "Scale") == 0   ? "autoscaling"
                          : strcmp(wanted, "Binding") == 0 ? "core"
                                                           : "authentication";

    version = slash != NULL ? slash + 1 : version;
    return *kind == '\0' || strcmp(kind, wanted) == 0
               ? 0
               : kinf__refuse_bad_request(&verb->refusal,
                                          "%s in version \"%s\" cannot be handled as a %s: "
                                          "converting (%s.%s) to (%s.%s): unknown conversion",
                                          kind, version, wanted, version, kind, package, wanted);
}

/* --- scale --- */

/* Walks ".spec.replicas" to the object that has the last name; NULL: there is none. `is_made`: what
 * is missing is made. */
static struct cJSON *walk_path(struct cJSON *object, const char *path, bool is_made,
                               char last[KINF_NAME_MAX])
{
    while (object != NULL && *path == '.') {
        size_t len = strcspn(++path, ".");

        snprintf(last, KINF_NAME_MAX, "%.*s", (int)len, path);
        path += len;
        if (*path == '.')
            object = is_made ? kinf__doc_object(object, last) : kinf__doc_get(object, last);
    }
    return object;
}

static int64_t number_at(struct cJSON *object, const char *path)
{
    char last[KINF_NAME_MAX] = "";

    object = walk_path(object, path, false, last);
    return kinf__doc_integer(object, last, 0);
}

static const char *text_at(struct cJSON *object, const char *path)
{
    char last[KINF_NAME_MAX] = "";

    object = walk_path(object, path, false, last);
    return kinf__doc_text(object, last, NULL);
}

static int print_values(const struct cJSON *requirement, const char *word, struct kinf__buffer *out)
{
    const struct cJSON *value;
    const char *comma = "";

    if (kinf__buffer_printf(out, "%s %s (", kinf__doc_text(requirement, "key", NULL), word) < 0)
        return KINF_ERR_NO_MEMORY;
    cJSON_ArrayForEach(value, kinf__doc_get(requirement, "values"))
    {
        if (cJSON_IsString(value) &&
            kinf__buffer_printf(out, "%s%s", comma, value->valuestring) < 0)
            return KINF_ERR_NO_MEMORY;
        comma = ",";
    }
    return kinf__buffer_printf(out, ")");
}

static int print_requirement(const struct cJSON *requirement, struct kinf__buffer *out)
{
    const char *operator= kinf__doc_text(requirement, "operator", NULL);

    if (strcmp(operator, "In") == 0)
        return print_values(requirement, "in", out);
    if (strcmp(operator, "NotIn") == 0)
        return print_values(requirement, "notin", out);
    return kinf__buffer_printf(out, "%s%s", strcmp(operator, "Exists") == 0 ? "" : "!",
                               kinf__doc_text(requirement, "key", NULL));
}

/* "app=web,tier in (a)" of matchLabels and matchExpressions. */
static int print_selector(const struct cJSON *selector, struct kinf__buffer *out)
{
    const struct cJSON *labels = kinf__doc_get(selector, "matchLabels"), *label, *requirement;
    const char *comma = "";

    /* Those of replication controllers are labels alone. */
    if (labels == NULL && kinf__doc_get(selector, "matchExpressions") == NULL)
        labels = selector;
    cJSON_ArrayForEach(label, labels)
    {
        if (!cJSON_IsString(label))
            continue;
        if (kinf__buffer_printf(out, "%s%s=%s", comma, label->string, label->valuestring) < 0)
            return KINF_ERR_NO_MEMORY;
        comma = ",";
    }
    cJSON_ArrayForEach(requirement, kinf__doc_get(selector, "matchExpressions"))
    {
        if (kinf__buffer_printf(out, "%s", comma) < 0 || print_requirement(requirement, out) < 0)
            return KINF_ERR_NO_MEMORY;
        comma = ",";
    }
    return kinf__buffer_cstr(out) != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

static int fill_scale_status(const struct kinf__verb *verb, struct cJSON *status)
{
    const struct kinf__resource_version *version = verb->version;
    KINF__AUTO_BUFFER selector = KINF__BUFFER_INIT;
    const char *path = version->scale_status_replicas;

    if (kinf__doc_set_integer(status, "replicas",
                              number_at(verb->object, path != NULL ? path : ".status.replicas")) <
        0)
        return KINF_ERR_NO_MEMORY;
    if (!verb->resource->is_custom) {
        if (print_selector(kinf__doc_find(verb->object, "spec", "selector", NULL), &selector) < 0)
            return KINF_ERR_NO_MEMORY;
        return selector.len != 0 ? kinf__doc_set_text(status, "selector", selector.bytes) : 0;
    }
    if (version->scale_selector == NULL || *text_at(verb->object, version->scale_selector) == '\0')
        return 0;
    return kinf__doc_set_text(status, "selector", text_at(verb->object, version->scale_selector));
}

static const char *spec_path(const struct kinf__verb *verb)
{
    return verb->version->scale_spec_replicas != NULL ? verb->version->scale_spec_replicas
                                                      : ".spec.replicas";
}

static int fill_scale(const struct kinf__verb *verb, struct cJSON *scale)
{
    static const char *const kept[] = { "name", "namespace", "uid", "resourceVersion",
                                        "creationTimestamp" };
    struct cJSON *metadata = kinf__doc_object(scale, "metadata"), *spec, *status;
    int64_t replicas = number_at(verb->object, spec_path(verb));

    if (metadata == NULL || kinf__doc_set_text(scale, "kind", "Scale") < 0 ||
        kinf__doc_set_text(scale, "apiVersion", "autoscaling/v1") < 0)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < KINF__ARRAY_LEN(kept); i++) {
        const char *text = kinf__doc_text(verb->object, "metadata", kept[i], NULL);

        if (*text != '\0' && kinf__doc_set_text(metadata, kept[i], text) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    spec = kinf__doc_object(scale, "spec");
    status = kinf__doc_object(scale, "status");
    if (spec == NULL || status == NULL ||
        (replicas != 0 && kinf__doc_set_integer(spec, "replicas", replicas) < 0))
        return KINF_ERR_NO_MEMORY;
    return fill_scale_status(verb, status);
}

int kinf__scale_read(struct kinf__verb *verb, struct cJSON **ret_scale)
{
    KINF__AUTO_DOC *scale = cJSON_CreateObject();
    int failed = verb->object == NULL ? kinf__verb_get(verb) : 0;

    if (failed < 0)
        return failed;
    if (scale == NULL || fill_scale(verb, scale) < 0)
        return refuse_no_memory(verb);
    *ret_scale = KINF__TAKE(scale);
    return 0;
}

static int check_scale(struct kinf__verb *verb, const struct cJSON *scale, int64_t *ret_replicas)
{
    const char *name = kinf__doc_text(scale, "metadata", "name", NULL);
    char text[64];

    *ret_replicas = kinf__doc_integer(kinf__doc_get(scale, "spec"), "replicas", 0);
    if (*name != '\0' && strcmp(name, verb->name) != 0)
        return kinf__verb_refuse_name(verb, name);
    if (*ret_replicas >= 0)
        return 0;
    snprintf(text, sizeof text, "Invalid value: %lld: must be greater than or equal to 0",
             (long long)*ret_replicas);
    return kinf__refuse_invalid(&verb->refusal, "autoscaling", "Scale", verb->name,
                                "FieldValueInvalid", "spec.replicas", text);
}

int kinf__scale_write(struct kinf__verb *verb, const struct cJSON *scale)
{
    const char *version = kinf__doc_text(scale, "metadata", "resourceVersion", NULL);
    char last[KINF_NAME_MAX] = "";
    KINF__AUTO_DOC *object = NULL;
    struct cJSON *parent;
    int64_t replicas;
    int failed = check_scale(verb, scale, &replicas);

    if (failed == 0)
        failed = kinf__verb_get(verb);
    if (failed < 0)
        return failed;
    object = KINF__TAKE(verb->object);
    parent = walk_path(object, spec_path(verb), true, last);
    if (parent == NULL || kinf__doc_set_integer(parent, last, replicas) < 0 ||
        (*version != '\0' &&
         kinf__doc_set_text(kinf__doc_get(object, "metadata"), "resourceVersion", version) < 0))
        return refuse_no_memory(verb);
    return kinf__verb_replace(verb, KINF__TAKE(object));
}

/* --- pods --- */

/* What a POST below an object is answered with, if it has no object of its own. */
static int answer_success(struct kinf__verb *verb, struct cJSON **body)
{
    struct cJSON *status = cJSON_Parse("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                                       "\"status\":\"Success\",\"code\":201}");

    if (status == NULL)
        return refuse_no_memory(verb);
    cJSON_Delete(*body);
    *body = status;
    return 0;
}

static int set_scheduled(struct cJSON *pod, const char *node)
{
    static const struct kinf__condition scheduled = { .type = "PodScheduled", .status = "True" };
    struct cJSON *spec = kinf__doc_object(pod, "spec"), *condition;

    if (spec == NULL || kinf__doc_set_text(spec, "nodeName", node) < 0)
        return KINF_ERR_NO_MEMORY;
    condition = kinf__condition_set(pod, &scheduled);
    return condition != NULL ? kinf__doc_set(condition, "lastProbeTime", cJSON_CreateNull())
                             : KINF_ERR_NO_MEMORY;
}

static int refuse_other_name(struct kinf__verb *verb)
{
    return kinf__refuse_bad_request(&verb->refusal, "name in URL does not match name in %s object",
                                    kinf__subresource_kind(verb));
}

/* The server forgets to say what of an object it is that is wrong. */
static int check_target(struct kinf__verb *verb, const struct cJSON *target)
{
    const char *kind = kinf__doc_text(target, "kind", NULL);

    if (*kind != '\0' && strcmp(kind, "Node") != 0)
        return kinf__refuse(&verb->refusal, 500, "",
                            "target.kind: Unsupported value: \"%s\": supported values: \"Node\", "
                            "\"<empty>\"",
                            kind);
    return *kinf__doc_text(target, "name", NULL) == '\0'
               ? kinf__refuse(&verb->refusal, 500, "", "target.name: Required value")
               : 0;
}

/* What a binding says of the pod is meant: it is for no other one, and none that has changed. */
static int check_bound_for(struct kinf__verb *verb, const struct cJSON *binding)
{
    static const char *const members[][2] = { { "uid", "UID" },
                                              { "resourceVersion", "ResourceVersion" } };

    for (size_t i = 0; i < KINF__ARRAY_LEN(members); i++) {
        const char *said = kinf__doc_text(binding, "metadata", members[i][0], NULL);
        const char *there = kinf__doc_text(verb->object, "metadata", members[i][0], NULL);

        if (*said != '\0' && strcmp(said, there) != 0)
            return kinf__verb_refuse_precondition(verb, verb->object, members[i][1], said, there);
    }
    return 0;
}

static int refuse_binding(struct kinf__verb *verb, const char *why)
{
    kinf__refuse(&verb->refusal, 409, "Conflict",
                 "Operation cannot be fulfilled on pods/binding \"%s\": pod %s %s", verb->name,
                 verb->name, why);
    kinf__refusal_set_object(&verb->refusal, "", "pods/binding", verb->name);
    return KINF_ERR_INVALID;
}

static int check_unbound(struct kinf__verb *verb)
{
    const char *node = kinf__doc_text(verb->object, "spec", "nodeName", NULL);
    char why[KINF_NAME_MAX + 64];

    if (kinf__is_being_deleted(verb->object))
        return refuse_binding(verb, "is being deleted, cannot be assigned to a host");
    if (*node != '\0') {
        snprintf(why, sizeof why, "is already assigned to node \"%s\"", node);
        return refuse_binding(verb, why);
    }
    return cJSON_GetArraySize(kinf__doc_find(verb->object, "spec", "schedulingGates", NULL)) != 0
               ? refuse_binding(verb, "has non-empty .spec.schedulingGates")
               : 0;
}

static int copy_map(struct cJSON *metadata, const char *name, const struct cJSON *from)
{
    struct cJSON *to = from != NULL ? kinf__doc_object(metadata, name) : NULL;
    const struct cJSON *member;
    int failed = from != NULL && to == NULL ? KINF_ERR_NO_MEMORY : 0;

    cJSON_ArrayForEach(member, from)
    {
        if (failed == 0)
            failed = kinf__doc_set(to, member->string, kinf__doc_dup(member));
    }
    return failed;
}

/* What the pod is told by its binding. */
static int take_binding(struct kinf__verb *verb, struct cJSON *pod, const struct cJSON *binding)
{
    const struct cJSON *metadata = kinf__doc_get(binding, "metadata");
    const struct cJSON *target = kinf__doc_get(binding, "target");
    const char *node = kinf__doc_text(target, "name", NULL);
    bool has_kind = *kinf__doc_text(target, "kind", NULL) != '\0';
    int failed = copy_map(metadata_of(pod), "annotations", kinf__doc_get(metadata, "annotations"));

    if (failed == 0)
        failed = copy_map(metadata_of(pod), "labels", kinf__doc_get(metadata, "labels"));
    if (failed == 0 && has_kind)
        failed = kinf__pod_take_topology(verb->sim, node, pod);
    return failed == 0 ? set_scheduled(pod, node) : failed;
}

static int bind_pod(struct kinf__verb *verb, struct cJSON **body)
{
    const char *name = kinf__doc_text(*body, "metadata", "name", NULL);
    KINF__AUTO_DOC *pod = NULL;
    int failed;

    if (*name != '\0' && strcmp(name, verb->name) != 0)
        return refuse_other_name(verb);
    if ((failed = check_target(verb, kinf__doc_get(*body, "target"))) < 0 ||
        (failed = kinf__verb_get(verb)) < 0 || (failed = check_bound_for(verb, *body)) < 0 ||
        (failed = check_unbound(verb)) < 0)
        return failed;
    pod = KINF__TAKE(verb->object);
    if (take_binding(verb, pod, *body) < 0)
        return refuse_no_memory(verb);
    failed = kinf__verb_replace(verb, KINF__TAKE(pod));
    return failed < 0 ? failed : answer_success(verb, body);
}

static int evict_pod(struct kinf__verb *verb, struct cJSON **body)
{
    struct kinf__delete_options options = KINF__DELETE_OPTIONS_INIT;
    const struct cJSON *asked = kinf__doc_get(*body, "deleteOptions"),
                       *preconditions = kinf__doc_get(asked, "preconditions");
    bool is_gone;
    int failed;

    if (strcmp(kinf__doc_text(*body, "metadata", "name", NULL), verb->name) != 0)
        return refuse_other_name(verb);
    verb->is_dry_run = verb->is_dry_run || cJSON_GetArraySize(kinf__doc_get(asked, "dryRun")) != 0;
    options.is_eviction = true;
    options.grace_s = kinf__doc_integer(asked, "gracePeriodSeconds", -1);
    options.uid = kinf__doc_text(preconditions, "uid", NULL);
    options.resource_version = kinf__doc_text(preconditions, "resourceVersion", NULL);
    failed = kinf__verb_delete(verb, &options, &is_gone);
    return failed < 0 ? failed : answer_success(verb, body);
}

/* --- tokens --- */

static int check_duration(struct kinf__verb *verb, int64_t seconds)
{
    const struct kinf__field spec = kinf__field(NULL, "spec"),
                             field = kinf__field(&spec, "expirationSeconds");
    struct kinf__invalid invalid;

    kinf__invalid_init(&invalid, &verb->refusal);
    if (seconds < 600)
        kinf__invalid_integer(&invalid, &field, seconds,
                              "may not specify a duration less than 10 minutes");
    if (seconds > (int64_t)1 << 32)
        kinf__invalid_integer(&invalid, &field, seconds,
                              "may not specify a duration larger than 2^32 seconds");
    return kinf__invalid_finish(&invalid, "authentication.k8s.io", "TokenRequest", "");
}

/* Nobody can use it: there are no keys. It has the form of one. */
static int make_token(struct kinf__verb *verb, struct cJSON **body)
{
    int64_t seconds = kinf__doc_integer(kinf__doc_get(*body, "spec"), "expirationSeconds", 3600);
    struct cJSON *spec = kinf__doc_object(*body, "spec"),
                 *status = kinf__doc_object(*body, "status"), *metadata;
    char time[KINF__RFC3339_SIZE], token[256];
    int failed = kinf__verb_get(verb);

    if (failed == 0)
        failed = check_duration(verb, seconds);
    if (failed < 0)
        return failed;
    kinf__sim_time_after(seconds, time);
    snprintf(token, sizeof token, "kinformer-sim.%.64s.%.64s.%016llx", verb->name_space, verb->name,
             (unsigned long long)kinf__sim_random(verb->sim));
    metadata = kinf__doc_object(*body, "metadata");
    if (spec == NULL || status == NULL || metadata == NULL ||
        kinf__doc_set_text(*body, "kind", "TokenRequest") < 0 ||
        kinf__doc_set_text(*body, "apiVersion", "authentication.k8s.io/v1") < 0 ||
        kinf__doc_set_text(metadata, "name", verb->name) < 0 ||
        kinf__doc_set_text(metadata, "namespace", verb->name_space) < 0 ||
        kinf__doc_set_integer(spec, "expirationSeconds", seconds) < 0 ||
        kinf__doc_set_text(status, "token", token) < 0 ||
        kinf__doc_set_text(status, "expirationTimestamp", time) < 0)
        return refuse_no_memory(verb);
    return 0;
}

int kinf__subresource_post(struct kinf__verb *verb, struct cJSON **body)
{
    if (strcmp(verb->subresource, "binding") == 0)
        return bind_pod(verb, body);
    if (strcmp(verb->subresource, "eviction") == 0)
        return evict_pod(verb, body);
    if (strcmp(verb->subresource, "token") == 0)
        return make_token(verb, body);
    return kinf__refuse_method(&verb->refusal);
}
