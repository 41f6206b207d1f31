/*
 * DELETE, of one object and of a selection.
 */
#include <stdio.h>
#include <string.h>

#include "object/object.h"
#include "serve/list_options.h"
#include "serve/selection.h"

#include "apiserver/refuse.h"
#include "apiserver/request_priv.h"
#include "apiserver/types.h"

/* --- delete --- */

static int read_delete_options(struct kinf__call *call, struct cJSON **ret_body,
                               struct kinf__delete_options *options)
{
    int failed = call->backend->body.len != 0 ? kinf__call_read_body(call, NULL, ret_body) : 0;

    return failed == 0 ? kinf__write_options_read_delete(call->request->query, *ret_body, options,
                                                         &call->verb.is_dry_run, call->refusal)
                       : failed;
}

/* Kinds whose deletion is answered with the object; of the others a Status tells. */
static bool returns_deleted(const struct kinf__resource *resource)
{
    if (*resource->group == '\0')
        return kinf__has_word("pods,services,persistentvolumes,persistentvolumeclaims,podtemplates,"
                              "resourcequotas,serviceaccounts",
                              resource->name);
    return strcmp(resource->group, "storage.k8s.io") == 0 &&
           strcmp(resource->name, "csistoragecapacities") != 0;
}

static int answer_deleted(struct kinf__call *call)
{
    const struct kinf__resource *resource = call->verb.resource;
    KINF__AUTO_DOC *status = cJSON_CreateObject();
    struct cJSON *details;

    if (status == NULL || kinf__doc_set_text(status, "kind", "Status") < 0 ||
        kinf__doc_set_text(status, "apiVersion", "v1") < 0 ||
        kinf__doc_object(status, "metadata") == NULL ||
        kinf__doc_set_text(status, "status", "Success") < 0 ||
        (details = kinf__doc_object(status, "details")) == NULL ||
        kinf__doc_set_text(details, "name", call->verb.name) < 0 ||
        (*resource->group != '\0' && kinf__doc_set_text(details, "group", resource->group) < 0) ||
        kinf__doc_set_text(details, "kind", resource->name) < 0 ||
        kinf__doc_set_text(details, "uid",
                           kinf__doc_text(call->verb.object, "metadata", "uid", NULL)) < 0)
        return kinf__refuse_no_memory(call->refusal);
    return kinf__call_answer_tree(call, status);
}

static void warn_of_orphans(struct kinf__call *call)
{
    const struct kinf__resource *resource = call->verb.resource;

    if (strcmp(resource->group, "batch") == 0 && strcmp(resource->name, "jobs") == 0)
        kinf__answer_warn(call->answer,
                          "child pods are preserved by default when jobs are deleted; set "
                          "propagationPolicy=Background to remove them or set "
                          "propagationPolicy=Orphan to suppress this warning");
}

int kinf__call_delete_one(struct kinf__call *call)
{
    struct kinf__delete_options options = KINF__DELETE_OPTIONS_INIT;
    KINF__AUTO_DOC *body = NULL;
    bool is_gone;
    int failed = read_delete_options(call, &body, &options);

    if (failed < 0)
        return failed;
    if (options.propagation == KINF__PROPAGATION_DEFAULT)
        warn_of_orphans(call);
    failed = kinf__verb_delete(&call->verb, &options, &is_gone);
    if (failed == 0 && is_gone && !returns_deleted(call->verb.resource))
        return answer_deleted(call);
    return kinf__call_answer_verb(call, failed, 200);
}

/* --- deletecollection --- */

/* Items of built-in types do not say what they are: the list does. */
static int add_item(struct kinf__call *call, struct cJSON *items)
{
    struct cJSON *item = KINF__TAKE(call->verb.object);

    if (!call->verb.resource->is_custom) {
        kinf__doc_remove(item, "kind");
        kinf__doc_remove(item, "apiVersion");
    }
    return kinf__doc_append(items, item);
}

/* What is deleted by a selection, and the list that tells of it. */
static int delete_selected(struct kinf__call *call, const struct kinf__delete_options *options,
                           const struct kinf__selection *selection, struct cJSON *items)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf__store_snapshot(call->verb.resource);
    size_t patience = SIZE_MAX;
    const struct kinf_object *object;
    struct kinf__walk walk;

    kinf__walk_init(&walk, selection, snapshot, "");
    while (kinf__walk_next(&walk, &patience, &object) == KINF__WALK_OBJECT) {
        char name_space[KINF_NAME_MAX];
        bool is_gone;
        int failed;

        call->verb.name = kinf__object_key_split(kinf_object_key(object), name_space);
        call->verb.name_space = name_space;
        /* What is told is what they were. */
        failed = kinf__verb_get(&call->verb);
        if (failed == 0)
            failed = add_item(call, items);
        if (failed == 0)
            failed = kinf__verb_delete(&call->verb, options, &is_gone);
        cJSON_Delete(KINF__TAKE(call->verb.object));
        if (failed < 0)
            return failed == KINF_ERR_NO_MEMORY ? kinf__refuse_no_memory(call->refusal) : failed;
    }
    return 0;
}

static int answer_list(struct kinf__call *call, struct cJSON *take_items)
{
    const struct kinf__resource *resource = call->verb.resource;
    KINF__AUTO_DOC *list = cJSON_CreateObject();
    KINF__AUTO_DOC *items = take_items;
    char kind[KINF_NAME_MAX + 8], version[24], api_version[KINF__API_VERSION_SIZE];
    struct cJSON *metadata;

    snprintf(kind, sizeof kind, "%sList", resource->kind);
    snprintf(version, sizeof version, "%llu",
             (unsigned long long)kinf__store_version(kinf__sim_store(call->sim)));
    kinf__type_api_version(call->verb.version->type, api_version);
    if (list == NULL || kinf__doc_set_text(list, "kind", kind) < 0 ||
        kinf__doc_set_text(list, "apiVersion", api_version) < 0 ||
        (metadata = kinf__doc_object(list, "metadata")) == NULL ||
        kinf__doc_set_text(metadata, "resourceVersion", version) < 0 ||
        kinf__doc_set(list, "items", KINF__TAKE(items)) < 0)
        return kinf__refuse_no_memory(call->refusal);
    return kinf__call_answer_tree(call, list);
}

int kinf__call_delete_many(struct kinf__call *call)
{
    struct kinf__delete_options options = KINF__DELETE_OPTIONS_INIT;
    struct kinf__list_options selectors = { .labels = NULL };
    KINF__AUTO_DOC *body = NULL;
    struct kinf__selection selection;
    struct cJSON *items;
    int failed;

    if ((failed = kinf__list_options_read(call->request, &selectors, call->refusal)) < 0)
        return failed;
    failed = read_delete_options(call, &body, &options);
    if (failed == 0 && selectors.fields != NULL)
        failed =
            kinf__fields_bind(selectors.fields, call->verb.version->type, NULL, 0, call->refusal);
    selection = (struct kinf__selection){ .name_space = call->request->name_space,
                                          .name = "",
                                          .labels = selectors.labels,
                                          .fields = selectors.fields };
    items = cJSON_CreateArray();
    if (failed == 0)
        failed = items != NULL ? delete_selected(call, &options, &selection, items)
                               : kinf__refuse_no_memory(call->refusal);
    if (failed == 0)
        failed = answer_list(call, KINF__TAKE(items));
    cJSON_Delete(items);
    kinf__list_options_release(&selectors);
    return failed;
}
