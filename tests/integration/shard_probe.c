/*
 * A sharded controller of ConfigMaps that says what it does, a line each, appended to a file that
 * others append to as well.
 *
 *     shard-probe IDENTITY NAMESPACE SET FILE LEASE_MS RENEW_MS RETRY_MS SHARDS SHARD
 *
 * "act IDENTITY TERM MS" comes each few milliseconds while it leads, with the time of before it asked,
 * so that a process that is halted in between writes no wrong line. A call copies data.round to
 * data.done, with its identity in data.by: "did IDENTITY KEY ROUND".
 */
#include <kinformer/kinformer.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NS 5000000

static int file;
static const char *identity, *name_space;
static atomic_bool is_over;

static long long now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void note(const char *what, const char *text, const char *more)
{
    char line[600];
    int len = snprintf(line, sizeof line, "%s %s %s %s\n", what, identity, text, more);

    if (write(file, line, (size_t)len) != len)
        abort();
}

static void *act(void *ctx)
{
    const struct timespec pause = { 0, PAUSE_NS };
    struct kinf_fence fence;

    for (; !is_over; nanosleep(&pause, NULL)) {
        char term[24], time[24];

        snprintf(time, sizeof time, "%lld", now_ms());
        if (!kinf_elector_fence(ctx, &fence))
            continue;
        snprintf(term, sizeof term, "%lld", (long long)fence.term);
        note("act", term, time);
    }
    return NULL;
}

static int reconcile(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    const struct kinf_object *object = kinf_call_object(call);
    kinf_auto_scratch struct kinf_scratch text = KINF_SCRATCH_INIT;
    struct kinf_str json;
    char round[24];

    (void)ctx;
    if (kinf_object_get_string(object, "data.round", round, sizeof round) < 0)
        return 0;
    if (kinf_json_format(&text, &json, err, "{data:{done:?s,by:?s}}", round, identity) < 0 ||
        kinf_call_apply(call, kinf_object_type(object), name_space, kinf_object_name(object), json,
                        err) < 0)
        return err->code;
    note("did", kinf_call_key(call), round);
    return 0;
}

static int run(struct kinf_client *client, struct kinf_elector *elector, const char *selector,
               struct kinf_error *err)
{
    kinf_auto_informer struct kinf_informer *informer = NULL;
    kinf_auto_controller struct kinf_controller *controller = NULL;
    struct kinf_informer_options of_maps = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_controller_options options = KINF_CONTROLLER_OPTIONS_INIT;
    pthread_t actor;
    int rc;

    of_maps.resource = "configmaps";
    of_maps.name_space = name_space;
    of_maps.shard_selector = selector;
    options.name = "shard-probe";
    options.reconcile = reconcile;
    options.elector = elector;
    if (kinf_informer_new(client, &of_maps, &informer, err) < 0)
        return err->code;
    options.informer = informer;
    if (kinf_controller_new(client, &options, &controller, err) < 0)
        return err->code;
    if (pthread_create(&actor, NULL, act, elector) != 0)
        abort();
    rc = kinf_controller_run(controller, 30000, err);
    is_over = true;
    pthread_join(actor, NULL);
    return rc;
}

int main(int argc, char **argv)
{
    kinf_auto_client struct kinf_client *client = NULL;
    kinf_auto_elector struct kinf_elector *elector = NULL;
    struct kinf_elector_options options = KINF_ELECTOR_OPTIONS_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    char selector[KINF_SHARD_SELECTOR_SIZE];

    if (argc != 10)
        return 2;
    kinf_log_to_stderr();
    identity = options.identity = argv[1];
    options.name_space = name_space = argv[2];
    options.name = argv[3];
    file = open(argv[4], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    options.lease_ms = atoi(argv[5]);
    options.renew_deadline_ms = atoi(argv[6]);
    options.retry_ms = atoi(argv[7]);
    options.n_shards = (unsigned)atoi(argv[8]);
    options.shard = (unsigned)atoi(argv[9]);
    options.release_on_stop = true;

    if (file < 0 || kinf_client_new(NULL, &client, &err) < 0 ||
        kinf_shard_selector(KINF_SHARD_BY_UID, options.n_shards, options.shard, selector, &err) <
            0 ||
        kinf_elector_new(client, &options, &elector, &err) < 0 ||
        run(client, elector, selector, &err) < 0) {
        fprintf(stderr, "shard-probe: %s\n", err.message);
        return 1;
    }
    return 0;
}
