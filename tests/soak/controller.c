/*
 * A controller with a queue, behind a Lease: several of these processes run, and one acts.
 */
#include "soak/controller.h"

#include <kinformer/kinformer.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "soak/history.h"
#include "soak/link.h"
#include "soak/patience.h"

#define OWNER    "soak.kinformer.dev/widget"
#define PAUSE_NS 10000000

static struct kinf_informer *widgets, *mirrors;

/* --- the election --- */

/* Says that it leads, with the times of before and behind the question, so that a process that is
 * halted in between says nothing wrong. */
static void *act(void *ctx)
{
    const struct timespec pause = { 0, PAUSE_NS };
    struct kinf_elector *elector = ctx;
    struct kinf_fence fence;

    for (;; nanosleep(&pause, NULL)) {
        int64_t from_ms = soak_now_ms();

        if (kinf_elector_fence(elector, &fence))
            link_say("L %s %lld %lld %lld", kinf_elector_identity(elector), (long long)fence.term,
                     (long long)from_ms, (long long)soak_now_ms());
    }
    return NULL;
}

/* --- reconciling --- */

static int reconcile(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    const struct kinf_object *widget = kinf_call_object(call);
    kinf_auto_scratch struct kinf_scratch text = KINF_SCRATCH_INIT;
    struct kinf_str name_space = kinf_object_namespace(widget), json;
    char place[KINF_NAME_MAX];

    (void)ctx;
    snprintf(place, sizeof place, "%.*s", (int)name_space.len, name_space.bytes);
    if (kinf_json_format(&text, &json, err, "{data:{of:?s}}",
                         kinf_object_resource_version(widget)) < 0)
        return err->code;
    return kinf_call_apply(call, kinf_informer_type(mirrors), place, kinf_object_name(widget), json,
                           err);
}

/* The widget is gone. */
static int cleanup(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    kinf_auto_object const struct kinf_object *mirror = NULL;

    (void)ctx;
    if (kinf_indexer_get_by_key(kinf_informer_indexer(mirrors), kinf_call_key(call), &mirror) < 0)
        return 0;
    return kinf_call_delete(call, mirror, err);
}

static int start_controller(struct kinf_client *client, struct kinf_elector *elector,
                            struct kinf_controller **ret_controller, struct kinf_error *err)
{
    static const struct kinf_queue_options pace = { .size = sizeof pace,
                                                    .backoff_max_ms = 1000,
                                                    .keys_per_second = -1 };
    struct kinf_controller_options options = KINF_CONTROLLER_OPTIONS_INIT;

    options.name = "soak";
    options.informer = widgets;
    options.reconcile = reconcile;
    options.cleanup = cleanup;
    options.owner_annotation = OWNER;
    options.n_workers = 4;
    options.queue = &pace;
    options.elector = elector;
    if (kinf_controller_new(client, &options, ret_controller, err) < 0 ||
        kinf_controller_watch(*ret_controller, mirrors, kinf_map_annotation, (void *)OWNER, err) <
            0)
        return err->code;
    return kinf_controller_start(*ret_controller, err);
}

static int make_informer(struct kinf_client *client, const char *resource,
                         struct kinf_informer **ret_informer, struct kinf_error *err)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct patience patience = { 0 };
    int failed;

    options.resource = resource;
    options.watch_timeout_ms = 5000;
    options.silent_after_ms = 6000;
    options.backoff_base_ms = 50;
    options.backoff_max_ms = 1000;
    do {
        failed = kinf_informer_new(client, &options, ret_informer, err);
    } while (failed < 0 && patience_wait(&patience, err));
    return failed;
}

static int make_elector(struct kinf_client *client, const char *name,
                        struct kinf_elector **ret_elector, struct kinf_error *err)
{
    struct kinf_elector_options options = KINF_ELECTOR_OPTIONS_INIT;
    char identity[100];

    snprintf(identity, sizeof identity, "%s-%lld", name, (long long)soak_now_ms());
    options.name = "soak";
    options.name_space = "default";
    options.identity = identity;
    options.lease_ms = 4000;
    options.renew_deadline_ms = 3000;
    options.retry_ms = 500;
    options.release_on_stop = true;
    return kinf_elector_new(client, &options, ret_elector, err);
}

int controller_run(const char *name, const char *path, struct kinf_error *err)
{
    const struct kinf_client_options fast = { .size = sizeof fast,
                                              .queries_per_second = -1,
                                              .request_timeout_ms = 5000 };
    kinf_auto_client struct kinf_client *client = NULL;
    kinf_auto_elector struct kinf_elector *elector = NULL;
    kinf_auto_informer struct kinf_informer *of_widgets = NULL, *of_mirrors = NULL;
    kinf_auto_controller struct kinf_controller *controller = NULL;
    pthread_t actor;

    if (kinf_client_new(&fast, &client, err) < 0 || make_elector(client, name, &elector, err) < 0 ||
        make_informer(client, "widgets.soak.kinformer.dev", &of_widgets, err) < 0 ||
        make_informer(client, "configmaps", &of_mirrors, err) < 0)
        return err->code;
    widgets = of_widgets;
    mirrors = of_mirrors;
    link_open(path, name, "types=", "");
    if (start_controller(client, elector, &controller, err) < 0 ||
        pthread_create(&actor, NULL, act, elector) != 0)
        return -1;
    while (link_wait_check())
        ;
    _exit(0); /* the actor has no end of its own */
}
