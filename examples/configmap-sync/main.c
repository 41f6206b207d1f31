/*
 * Keeps a copy of each ConfigMap labelled sync=true in every other namespace. A ConfigMap of that name that is not
 * ours is left alone, and looked at again each minute. Of several replicas one acts: who holds the Lease default/configmap-sync.
 *
 * Wider than the house's 100 columns, so that it can be seen at one glance: no more than 60 lines of C.
 */
/* clang-format off */
#include <kinformer/kinformer.h>
#include <stdio.h>

#define OWNER "sync.example/owner"
static struct kinf_informer *copies, *namespaces;

static int reconcile(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    const struct kinf_object *source = kinf_call_object(call), *ns;
    kinf_auto_snapshot struct kinf_snapshot *all = kinf_indexer_snapshot(kinf_informer_indexer(namespaces));
    kinf_auto_scratch struct kinf_scratch room = KINF_SCRATCH_INIT, text = KINF_SCRATCH_INIT;
    struct kinf_str data = { NULL, 0 }, json;
    struct kinf_cursor cursor;
    int rc = kinf_object_get_json(source, "data", &room, &data);

    (void)ctx;
    if (rc == KINF_ERR_NO_MEMORY || kinf_json_format(&text, &json, err, "{metadata:{labels:{sync-copy:\"true\"}},data:?j}", data) < 0)
        return KINF_ERR_NO_MEMORY;
    for (kinf_cursor_all(&cursor, all); (ns = kinf_cursor_next(&cursor)) != NULL;) {
        if (kinf_str_equal(kinf_str_from(kinf_object_name(ns)), kinf_object_namespace(source)) || kinf_object_has(ns, "metadata.deletionTimestamp"))
            continue;
        rc = kinf_call_apply(call, kinf_object_type(source), kinf_object_name(ns), kinf_object_name(source), json, err);
        if (rc == KINF_ERR_EXISTS)
            kinf_call_requeue_after(call, 60000);
        else if (rc < 0)
            return rc;
    }
    return 0;
}

static int cleanup(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    kinf_auto_object_list struct kinf_object_list list = KINF_OBJECT_LIST_INIT;
    int rc = kinf_indexer_by_index(kinf_informer_indexer(copies), "owner", kinf_call_key(call), &list, err);

    (void)ctx;
    for (size_t i = 0; rc == 0 && i < list.n_items; i++)
        rc = kinf_call_delete(call, list.items[i], err);
    return rc;
}

int main(void)
{
    static const struct kinf_index owner = { "owner", "metadata.annotations[\"" OWNER "\"]", NULL, NULL };
    struct kinf_error err = KINF_ERROR_INIT;
    kinf_auto_client struct kinf_client *client = NULL;
    kinf_auto_factory struct kinf_factory *factory = NULL;
    struct kinf_informer_options from = { .size = sizeof from, .resource = "configmaps", .label_selector = "sync=true" };
    struct kinf_informer_options to = { .size = sizeof to, .resource = "configmaps", .label_selector = "sync-copy=true",
        .indices = &owner, .n_indices = 1 };
    struct kinf_informer_options ns = { .size = sizeof ns, .resource = "namespaces", .metadata_only = true };
    struct kinf_elector_options lease = { .size = sizeof lease, .name_space = "default", .name = "configmap-sync", .release_on_stop = true };
    struct kinf_controller_options options = { .size = sizeof options, .name = "configmap-sync", .reconcile = reconcile, .cleanup = cleanup,
        .finalizer = "sync.example/cleanup", .owner_annotation = OWNER, .n_workers = 4 };
    kinf_auto_elector struct kinf_elector *elector = NULL;
    kinf_auto_controller struct kinf_controller *controller = NULL;

    kinf_log_to_stderr();
    if (kinf_client_new(NULL, &client, &err) < 0 || kinf_factory_new(client, &factory, &err) < 0 ||
        kinf_factory_informer(factory, &from, &options.informer, &err) < 0 || kinf_factory_informer(factory, &to, &copies, &err) < 0 ||
        kinf_factory_informer(factory, &ns, &namespaces, &err) < 0 || kinf_elector_new(client, &lease, &elector, &err) < 0 ||
        (options.factory = factory, options.elector = elector, kinf_controller_new(client, &options, &controller, &err)) < 0 ||
        kinf_controller_watch(controller, copies, kinf_map_annotation, (void *)OWNER, &err) < 0 || kinf_controller_watch(controller, namespaces, kinf_map_all, options.informer, &err) < 0 ||
        kinf_controller_run(controller, 30000, &err) < 0)
        return fprintf(stderr, "configmap-sync: %s\n", err.message), 1;
    return 0;
}
