/*
 * The controller that many have begun with: a Foo {deploymentName, replicas} owns a Deployment.
 *
 *     kubectl apply -f crd.yaml -f foo.yaml
 *     sample-controller [--leader-elect | --shards N --shard I]
 *
 * The Deployment is created, keeps as many replicas as the Foo says (if it says so), and how many of
 * them are available stands in the Foo's status. Another's Deployment of that name stays as it is: an
 * Event of the Foo says so, and it is tried again with growing pauses, of a minute at most.
 * When a Foo is deleted there is nothing to do: the Deployment names it as its owner, and the
 * cluster's garbage collector follows. One that the Foo names no longer stays until then.
 *
 * Of N shards each has its part of the Foos, and all Deployments, since those have hashes of their own.
 * In a StatefulSet: args: [--shards, "3", --shard, $(POD_INDEX)], as config/sharded has it.
 */
#include <kinformer/kinformer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct kinf_informer *deployments;
static struct kinf_recorder *recorder;

/* What one call is about. */
struct wanted {
    const struct kinf_object *foo;
    char name_space[KINF_NAME_MAX];
    char name[KINF_NAME_MAX]; /* of the Deployment */
    struct kinf_str replicas; /* JSON; bytes NULL: the Foo does not say */
};

/* No more than one owner has "controller": true. */
static bool is_controlled_by(const struct kinf_object *deployment, const struct kinf_object *foo)
{
    char path[64], uid[64];
    bool is_controller;

    for (int i = 0;; i++) {
        snprintf(path, sizeof path, "metadata.ownerReferences[%d].uid", i);
        if (kinf_object_get_string(deployment, path, uid, sizeof uid) < 0)
            return false;
        snprintf(path, sizeof path, "metadata.ownerReferences[%d].controller", i);
        if (strcmp(uid, kinf_object_uid(foo)) == 0)
            return kinf_object_get_bool(deployment, path, &is_controller) == 0 && is_controller;
    }
}

/* Server-side apply would take what it finds; a create fails if somebody was faster. */
static int create_deployment(struct kinf_call *call, const struct wanted *wanted,
                             struct kinf_error *err)
{
    static const char form[] =
        "{metadata:{name:?s,ownerReferences:[{apiVersion:\"sample.kinformer.dev/v1\",kind:\"Foo\","
        "name:?s,uid:?s,controller:true,blockOwnerDeletion:true}]},"
        "spec:{replicas:?j,selector:{matchLabels:{foo:?s}},template:{metadata:{labels:{foo:?s}},"
        "spec:{containers:[{name:\"nginx\",image:\"nginx:stable\"}]}}}}";
    kinf_auto_scratch struct kinf_scratch text = KINF_SCRATCH_INIT;
    const char *uid = kinf_object_uid(wanted->foo);
    struct kinf_request request = { .size = sizeof request, .verb = KINF_VERB_CREATE };

    request.type = kinf_informer_type(deployments);
    request.name_space = wanted->name_space;
    if (kinf_json_format(&text, &request.body, err, form, wanted->name,
                         kinf_object_name(wanted->foo), uid, wanted->replicas, uid, uid) < 0 ||
        kinf_call_request(call, &request, NULL, err) < 0)
        return err->code;
    kinf_recorder_event(recorder, wanted->foo, NULL, KINF_EVENT_NORMAL, "Created", "Create",
                        "created Deployment %s", wanted->name);
    return 0;
}

/* By its resourceVersion it is the one that we looked at. */
static int scale_deployment(struct kinf_call *call, const struct kinf_object *deployment,
                            const struct wanted *wanted, struct kinf_error *err)
{
    kinf_auto_scratch struct kinf_scratch room = KINF_SCRATCH_INIT, text = KINF_SCRATCH_INIT;
    struct kinf_str replicas, json;

    if (wanted->replicas.bytes == NULL ||
        (kinf_object_get_json(deployment, "spec.replicas", &room, &replicas) == 0 &&
         kinf_str_equal(replicas, wanted->replicas)))
        return 0;
    if (kinf_json_format(&text, &json, err, "{metadata:{resourceVersion:?s},spec:{replicas:?j}}",
                         kinf_object_resource_version(deployment), wanted->replicas) < 0)
        return err->code;
    return kinf_call_apply(call, kinf_object_type(deployment), wanted->name_space, wanted->name,
                           json, err);
}

/* Nothing is sent if this was applied last, and is still there. */
static int set_status(struct kinf_call *call, const struct kinf_object *deployment,
                      const struct wanted *wanted, struct kinf_error *err)
{
    kinf_auto_scratch struct kinf_scratch text = KINF_SCRATCH_INIT;
    struct kinf_str json;
    int64_t n = 0;

    if ((deployment != NULL &&
         kinf_object_get_int64(deployment, "status.availableReplicas", &n) == KINF_ERR_NO_MEMORY) ||
        kinf_json_format(&text, &json, err, "{status:{availableReplicas:?i}}", n) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf_call_apply_status(call, kinf_object_type(wanted->foo), wanted->name_space,
                                  kinf_object_name(wanted->foo), json, err);
}

/* Called for a Foo when it, or a Deployment that it owns, has changed; never twice at once, and not
 * before the caches have what its last call wrote. */
static int reconcile(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    kinf_auto_object const struct kinf_object *deployment = NULL;
    kinf_auto_scratch struct kinf_scratch room = KINF_SCRATCH_INIT;
    struct wanted wanted = { .foo = kinf_call_object(call) };
    struct kinf_str name_space = kinf_object_namespace(wanted.foo);
    struct kinf_lister lister = kinf_informer_lister(deployments, wanted.name_space);
    int rc =
        kinf_object_get_string(wanted.foo, "spec.deploymentName", wanted.name, sizeof wanted.name);

    (void)ctx;
    if (rc == KINF_ERR_NO_MEMORY || kinf_object_get_json(wanted.foo, "spec.replicas", &room,
                                                         &wanted.replicas) == KINF_ERR_NO_MEMORY)
        return KINF_ERR_NO_MEMORY;
    if (rc < 0 || wanted.name[0] == '\0') /* invalid: not tried again until the Foo changes */
        return kinf_error_set(err, KINF_ERR_INVALID, "spec.deploymentName is no name");
    snprintf(wanted.name_space, sizeof wanted.name_space, "%.*s", (int)name_space.len,
             name_space.bytes);
    if (kinf_lister_get(&lister, wanted.name, &deployment, NULL) < 0) {
        rc = create_deployment(call, &wanted, err);
    } else if (is_controlled_by(deployment, wanted.foo)) {
        rc = scale_deployment(call, deployment, &wanted, err);
    } else {
        kinf_recorder_event(recorder, wanted.foo, deployment, KINF_EVENT_WARNING, "NotOurs",
                            "Create", "Deployment %s is there, and not of this Foo", wanted.name);
        rc = kinf_error_set(err, KINF_ERR_EXISTS, "Deployment %s is not ours", wanted.name);
    }
    return rc < 0 ? rc : set_status(call, deployment, &wanted, err);
}

/* `selector` NULL: of all Foos. */
static int run(struct kinf_client *client, struct kinf_elector *elector, const char *selector,
               struct kinf_error *err)
{
    static const char *const keeps[] = { "spec.replicas", "status.availableReplicas" };
    struct kinf_informer_options of_foos = KINF_INFORMER_OPTIONS_INIT, of_deployments = of_foos;
    struct kinf_queue_options pace = { .size = sizeof pace, .backoff_max_ms = 60000 };
    struct kinf_controller_options options = KINF_CONTROLLER_OPTIONS_INIT;
    kinf_auto_factory struct kinf_factory *factory = NULL;
    kinf_auto_controller struct kinf_controller *controller = NULL;

    of_foos.resource = "foos.sample.kinformer.dev";
    of_foos.shard_selector = selector;
    of_deployments.resource = "deployments.apps";
    of_deployments.keeps = keeps; /* nothing else of them is stored */
    of_deployments.n_keeps = 2;
    options.name = "sample-controller";
    options.reconcile = reconcile;
    options.n_workers = 2;
    options.queue = &pace;
    options.elector = elector;
    if (kinf_factory_new(client, &factory, err) < 0 ||
        kinf_factory_informer(factory, &of_foos, &options.informer, err) < 0 ||
        kinf_factory_informer(factory, &of_deployments, &deployments, err) < 0)
        return err->code;
    options.factory = factory;
    if (kinf_controller_new(client, &options, &controller, err) < 0 ||
        kinf_controller_watch(controller, deployments, kinf_map_owner,
                              (void *)kinf_informer_type(options.informer), err) < 0)
        return err->code;
    return kinf_controller_run(controller, 30000, err);
}

static bool read_number(const char *text, unsigned *number)
{
    char *end;

    *number = (unsigned)strtoul(text, &end, 10);
    return end != text && *end == '\0';
}

/* False: that is no command line of ours. What we do not know might be a wish to be one of many. */
static bool read_arguments(int argc, char **argv, struct kinf_elector_options *lease)
{
    if (argc == 5 && strcmp(argv[1], "--shards") == 0 && strcmp(argv[3], "--shard") == 0)
        return read_number(argv[2], &lease->n_shards) && read_number(argv[4], &lease->shard);
    return argc == 1 || (argc == 2 && strcmp(argv[1], "--leader-elect") == 0);
}

int main(int argc, char **argv)
{
    bool is_one_of_many = argc > 1, is_shard = argc > 2;
    char selector[KINF_SHARD_SELECTOR_SIZE];
    struct kinf_error err = KINF_ERROR_INIT;
    kinf_auto_client struct kinf_client *client = NULL;
    kinf_auto_elector struct kinf_elector *elector = NULL;
    struct kinf_recorder_options events = KINF_RECORDER_OPTIONS_INIT;
    struct kinf_elector_options lease = KINF_ELECTOR_OPTIONS_INIT;
    int rc = -1;

    if (!read_arguments(argc, argv, &lease)) {
        fprintf(stderr, "usage: sample-controller [--leader-elect | --shards N --shard I]\n");
        return 2;
    }
    kinf_log_to_stderr();
    events.controller = "kinformer.dev/sample-controller";
    lease.name = "sample-controller";
    lease.name_space = "default";
    lease.release_on_stop = true;
    if ((!is_shard || kinf_shard_selector(KINF_SHARD_BY_UID, lease.n_shards, lease.shard, selector,
                                          &err) == 0) &&
        kinf_client_new(NULL, &client, &err) == 0 &&
        kinf_recorder_new(client, &events, &recorder, &err) == 0 &&
        (!is_one_of_many || kinf_elector_new(client, &lease, &elector, &err) == 0))
        rc = run(client, elector, is_shard ? selector : NULL, &err);
    kinf_recorder_free(recorder);
    if (rc < 0)
        fprintf(stderr, "sample-controller: %s\n", err.message);
    return rc < 0;
}
