/*
 * Restarts what uses a ConfigMap or a Secret when its data change.
 *
 *     configmap-reloader [deployments.apps | statefulsets.apps | daemonsets.apps]
 *     kubectl annotate deployment web kinformer.dev/reload=true
 *
 * Of Deployments (or the like) with this annotation, a hash of all the data that their pods use stands
 * in an annotation of the pod template: with another hash the cluster replaces the pods. So it is
 * known what they were started with, also after a restart of this program; the first hash replaces
 * them, too, since it is not known then. While something that is used is missing (optional or not)
 * pods are left alone: new ones might not start. Several replicas do no harm: they write the same.
 * Who may read workloads but no Secrets can test by the hash what a short secret is.
 */
#include <kinformer/kinformer.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RELOAD "kinformer.dev/reload"
#define HASH   "kinformer.dev/config-hash"
#define PODS   "spec.template.spec."

/* Where a pod names what it uses. */
static const struct {
    const char *resource, *path;
} uses[] = {
    { "configmaps", PODS "volumes[*].configMap.name" },
    { "configmaps", PODS "volumes[*].projected.sources[*].configMap.name" },
    { "configmaps", PODS "containers[*].envFrom[*].configMapRef.name" },
    { "configmaps", PODS "containers[*].env[*].valueFrom.configMapKeyRef.name" },
    { "configmaps", PODS "initContainers[*].envFrom[*].configMapRef.name" },
    { "configmaps", PODS "initContainers[*].env[*].valueFrom.configMapKeyRef.name" },
    { "secrets", PODS "volumes[*].secret.secretName" },
    { "secrets", PODS "volumes[*].projected.sources[*].secret.name" },
    { "secrets", PODS "containers[*].envFrom[*].secretRef.name" },
    { "secrets", PODS "containers[*].env[*].valueFrom.secretKeyRef.name" },
    { "secrets", PODS "initContainers[*].envFrom[*].secretRef.name" },
    { "secrets", PODS "initContainers[*].env[*].valueFrom.secretKeyRef.name" },
};
enum { N_USES = sizeof uses / sizeof uses[0], VALUE_SIZE = 2 * KINF_NAME_MAX + 16 };
static struct kinf_path *paths[N_USES];
static struct kinf_informer *config_maps, *secrets;

/* Over what a workload uses: for the index, or else for the hash. */
struct walk {
    struct kinf_str name_space;
    const char *resource;             /* where we are */
    struct kinf_index_values *values; /* "configmaps/namespace/name"; NULL: the hash is made */
    uint64_t hash;                    /* FNV-1a of these and the data */
    size_t n_uses, n_missing;
};

static void hash_text(struct walk *walk, struct kinf_str text)
{
    for (size_t i = 0; i <= text.len; i++)
        walk->hash = (walk->hash ^ (i < text.len ? (unsigned char)text.bytes[i] : 0)) *
                     UINT64_C(0x100000001b3);
}

static int hash_use(struct walk *walk, const char *value)
{
    struct kinf_informer *from = strcmp(walk->resource, "secrets") == 0 ? secrets : config_maps;
    kinf_auto_object const struct kinf_object *config = NULL;
    kinf_auto_scratch struct kinf_scratch one = KINF_SCRATCH_INIT, two = KINF_SCRATCH_INIT;
    struct kinf_str texts = { NULL, 0 }, bytes = { NULL, 0 };

    walk->n_uses++;
    if (kinf_indexer_get_by_key(kinf_informer_indexer(from), strchr(value, '/') + 1, &config) < 0)
        walk->n_missing++;
    else if (kinf_object_get_json(config, "data", &one, &texts) == KINF_ERR_NO_MEMORY ||
             kinf_object_get_json(config, "binaryData", &two, &bytes) == KINF_ERR_NO_MEMORY)
        return KINF_ERR_NO_MEMORY;
    hash_text(walk, kinf_str_from(value));
    hash_text(walk, texts);
    hash_text(walk, bytes);
    return 0;
}

static int on_name(struct kinf_str json, void *ctx)
{
    struct walk *walk = ctx;
    char name[KINF_NAME_MAX], value[VALUE_SIZE];

    if (kinf_json_string(json, name, sizeof name) < 0)
        return 0;
    snprintf(value, sizeof value, "%s/%.*s/%s", walk->resource, (int)walk->name_space.len,
             walk->name_space.bytes, name);
    return walk->values != NULL ? kinf_index_values_add(walk->values, value, strlen(value))
                                : hash_use(walk, value);
}

static int walk_uses(const struct kinf_object *workload, struct walk *walk)
{
    int rc = 0;

    walk->name_space = kinf_object_namespace(workload);
    for (int i = 0; rc == 0 && i < N_USES; i++) {
        walk->resource = uses[i].resource;
        rc = kinf_object_each(workload, paths[i], on_name, walk);
    }
    return rc;
}

static int index_uses(const struct kinf_object *workload, struct kinf_index_values *values,
                      void *ctx)
{
    struct walk walk = { .values = values };

    (void)ctx;
    return walk_uses(workload, &walk);
}

/* From what has changed to those that use it. */
static int map_to_users(const struct kinf_object *config, struct kinf_keys *keys, void *workloads)
{
    kinf_auto_string_list struct kinf_string_list users = KINF_STRING_LIST_INIT;
    char value[VALUE_SIZE];
    int rc;

    snprintf(value, sizeof value, "%s/%s", kinf_object_type(config)->resource,
             kinf_object_key(config));
    rc = kinf_indexer_index_keys(kinf_informer_indexer(workloads), "uses", value, &users, NULL);
    for (size_t i = 0; rc == 0 && i < users.n_items; i++)
        rc = kinf_keys_add(keys, users.items[i]);
    return rc;
}

/* Called for a workload when it, or something that it uses, has changed. */
static int reconcile(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    const struct kinf_object *workload = kinf_call_object(call);
    struct walk walk = { .hash = UINT64_C(0xcbf29ce484222325) };
    kinf_auto_scratch struct kinf_scratch text = KINF_SCRATCH_INIT;
    char wish[sizeof "true"], name_space[KINF_NAME_MAX], now[17], before[17] = "";
    struct kinf_str json;
    int rc = kinf_object_get_annotation(workload, RELOAD, wish, sizeof wish);

    (void)ctx;
    if (rc < 0 || strcmp(wish, "true") != 0)
        return rc == KINF_ERR_NO_MEMORY ? rc : 0;
    if (walk_uses(workload, &walk) < 0 ||
        kinf_object_get_string(workload, "spec.template.metadata.annotations[\"" HASH "\"]", before,
                               sizeof before) == KINF_ERR_NO_MEMORY)
        return KINF_ERR_NO_MEMORY;
    snprintf(now, sizeof now, "%016" PRIx64, walk.hash);
    if (walk.n_uses == 0 || walk.n_missing != 0 || strcmp(now, before) == 0)
        return 0;
    snprintf(name_space, sizeof name_space, "%.*s", (int)walk.name_space.len,
             walk.name_space.bytes);
    if (kinf_json_format(&text, &json, err,
                         "{spec:{template:{metadata:{annotations:{" HASH ":?s}}}}}", now) < 0)
        return err->code;
    return kinf_call_apply(call, kinf_object_type(workload), name_space, kinf_object_name(workload),
                           json, err);
}

static int run(struct kinf_client *client, const char *resource, struct kinf_error *err)
{
    static const struct kinf_index index = { "uses", NULL, index_uses, NULL };
    static const char *const keeps[] = { "metadata.annotations", "spec.template" };
    struct kinf_informer_options of_workloads = { .size = sizeof of_workloads,
                                                  .resource = resource,
                                                  .indices = &index,
                                                  .n_indices = 1,
                                                  .keeps = keeps,
                                                  .n_keeps = 2 };
    struct kinf_informer_options of_maps = { .size = sizeof of_maps, .resource = "configmaps" };
    struct kinf_informer_options of_secrets = { .size = sizeof of_secrets, .resource = "secrets" };
    struct kinf_controller_options options = { .size = sizeof options,
                                               .name = "configmap-reloader",
                                               .reconcile = reconcile };
    kinf_auto_factory struct kinf_factory *factory = NULL;
    kinf_auto_controller struct kinf_controller *controller = NULL;

    if (kinf_factory_new(client, &factory, err) < 0 ||
        kinf_factory_informer(factory, &of_workloads, &options.informer, err) < 0 ||
        kinf_factory_informer(factory, &of_maps, &config_maps, err) < 0 ||
        kinf_factory_informer(factory, &of_secrets, &secrets, err) < 0)
        return err->code;
    options.factory = factory;
    if (kinf_controller_new(client, &options, &controller, err) < 0 ||
        kinf_controller_watch(controller, config_maps, map_to_users, options.informer, err) < 0 ||
        kinf_controller_watch(controller, secrets, map_to_users, options.informer, err) < 0)
        return err->code;
    return kinf_controller_run(controller, 30000, err);
}

int main(int argc, char **argv)
{
    kinf_auto_client struct kinf_client *client = NULL;
    struct kinf_error err = KINF_ERROR_INIT;
    int rc = kinf_client_new(NULL, &client, &err);

    kinf_log_to_stderr();
    for (int i = 0; rc == 0 && i < N_USES; i++)
        rc = kinf_path_parse(uses[i].path, &paths[i], &err);
    if (rc == 0)
        rc = run(client, argc > 1 ? argv[1] : "deployments.apps", &err);
    for (int i = 0; i < N_USES; i++)
        kinf_path_free(paths[i]);
    if (rc < 0)
        fprintf(stderr, "configmap-reloader: %s\n", err.message);
    return rc < 0;
}
