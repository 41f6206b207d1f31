/*
 * A controller, and a test that has each of its requests fail in turn: refused, lost, the program
 * killed there and started anew. Whatever happens, the same objects are there in the end. No
 * cluster is needed; it takes a second.
 *
 *     cc main.c $(pkg-config --cflags --libs kinformer-testing) -o test
 */
#include <stdio.h>
#include <stdlib.h>

#include <kinformer/kinformer.h>
#include <kinformer/testing.h>

/* --- the controller: every namespace with isolated=true has a policy that lets nobody in --- */

static struct kinf_informer *namespaces, *policies;
static struct kinf_controller *controller;

static int isolate(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    static const char deny[] = "{\"metadata\":{\"labels\":{\"isolates\":\"true\"}},"
                               "\"spec\":{\"podSelector\":{},\"policyTypes\":[\"Ingress\"]}}";

    (void)ctx;
    return kinf_call_apply(call, kinf_informer_type(policies), kinf_call_key(call), "isolation",
                           kinf_str_from(deny), err);
}

static int let_in(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    kinf_auto_snapshot struct kinf_snapshot *all =
        kinf_indexer_snapshot(kinf_informer_indexer(policies));
    const struct kinf_object *policy;
    struct kinf_cursor cursor;

    (void)ctx;
    for (kinf_cursor_all(&cursor, all); (policy = kinf_cursor_next(&cursor)) != NULL;) {
        if (kinf_str_equal(kinf_object_namespace(policy), kinf_str_from(kinf_call_key(call))))
            return kinf_call_delete(call, policy, err);
    }
    return 0;
}

static int namespace_of(const struct kinf_object *policy, struct kinf_keys *keys, void *ctx)
{
    char name[KINF_NAME_MAX];
    struct kinf_str name_space = kinf_object_namespace(policy);

    (void)ctx;
    snprintf(name, sizeof name, "%.*s", (int)name_space.len, name_space.bytes);
    return kinf_keys_add(keys, name);
}

static void stop(void *ctx)
{
    (void)ctx;
    kinf_controller_free(controller);
    kinf_informer_free(namespaces);
    kinf_informer_free(policies);
    controller = NULL;
    namespaces = policies = NULL;
}

/* As main() would. */
static int start(struct kinf_client *client, void *ctx, struct kinf_error *err)
{
    struct kinf_informer_options of = { .size = sizeof of,
                                        .resource = "namespaces",
                                        .label_selector = "isolated=true" };
    struct kinf_informer_options to = { .size = sizeof to,
                                        .resource = "networkpolicies.networking.k8s.io",
                                        .label_selector = "isolates=true" };
    struct kinf_controller_options options = {
        .size = sizeof options, .name = "isolation", .reconcile = isolate, .cleanup = let_in
    };

    (void)ctx;
    if (kinf_informer_new(client, &of, &namespaces, err) == 0 &&
        kinf_informer_new(client, &to, &policies, err) == 0 &&
        (options.informer = namespaces, kinf_controller_new(client, &options, &controller, err)) ==
            0 &&
        kinf_controller_watch(controller, policies, namespace_of, NULL, err) == 0 &&
        kinf_controller_start(controller, err) == 0)
        return 0;
    stop(NULL);
    return KINF_ERR_STATE;
}

/* --- its test --- */

static int scenario(struct kinf_fake *fake, void *ctx, struct kinf_error *err)
{
    static const char shop[] = "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: "
                               "{isolated: 'true'}}}\n---\n"
                               "{apiVersion: v1, kind: Namespace, metadata: {name: bank, labels: "
                               "{isolated: 'true'}}}";
    static const char open[] = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}";

    (void)ctx;
    if (kinf_fake_put(fake, shop, err) < 0 || kinf_fake_settle_ahead(fake, 60000, 10000, err) < 0 ||
        kinf_fake_delete(fake, "netpol", "bank/isolation", err) < 0)
        return KINF_ERR_STATE;
    return kinf_fake_put(fake, open, err);
}

int main(void)
{
    const struct kinf_sweep_options options = {
        .size = sizeof options, .start = start, .stop = stop, .scenario = scenario
    };
    struct kinf_sweep_result result;
    struct kinf_error err = KINF_ERROR_INIT;

    if (kinf_sweep(&options, &result, &err) < 0)
        return fprintf(stderr, "sweep: %s\n", err.message), 1;
    if (result.report != NULL)
        return fputs(result.report, stderr), free(result.report), 1;
    printf("%zu requests, %zu runs with a fault: the same each time\n", result.n_requests,
           result.n_runs);
    return 0;
}
