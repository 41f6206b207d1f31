/*
 * A program and its API server in one process: what kinformer/testing.h promises.
 */
#include <kinformer/testing.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kinformer/kinformer.h>
#include <kinformer/request.h>

#include "base/clock.h"
#include "unit/test.h"

#define PATIENCE_MS 60000

#define CONFIG_MAP(name, value)                                                                    \
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"" name                 \
    "\",\"namespace\":\"default\"},\"data\":{\"value\":\"" value "\"}}"

struct stage {
    struct kinf_fake *fake;
    struct kinf_client *client;
    struct kinf_error err;
    _Atomic(size_t) n_added, n_updated, n_deleted; /* read while handlers may still run */
};

static void must(struct stage *stage, int failed)
{
    if (failed < 0)
        print_error("%s\n", stage->err.message);
    assert_int_equal(failed, 0);
}

static int begin(void **state)
{
    struct stage *stage = calloc(1, sizeof *stage);

    stage->err = (struct kinf_error)KINF_ERROR_INIT;
    must(stage, kinf_fake_new(NULL, &stage->fake, &stage->err));
    stage->client = kinf_fake_client(stage->fake);
    *state = stage;
    return 0;
}

static int end(void **state)
{
    struct stage *stage = *state;

    kinf_fake_free(stage->fake);
    free(stage);
    return 0;
}

static void settle(struct stage *stage)
{
    must(stage, kinf_fake_settle(stage->fake, PATIENCE_MS, &stage->err));
}

/* The body of an answer, which the caller frees; the request must succeed. */
static char *ask(struct stage *stage, const char *method, const char *target, const char *body,
                 const char *content_type)
{
    struct kinf_response response = KINF_RESPONSE_INIT;

    must(stage, kinf_client_request_raw(stage->client, method, target,
                                        (struct kinf_str){ body, body != NULL ? strlen(body) : 0 },
                                        content_type, &response, &stage->err));
    return response.body;
}

static int try(struct stage *stage, const char *method, const char *target, const char *body)
{
    return kinf_client_request_raw(stage->client, method, target,
                                   (struct kinf_str){ body, body != NULL ? strlen(body) : 0 }, NULL,
                                   NULL, &stage->err);
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        print_error("no %s in: %s\n", part, text);
    assert_non_null(strstr(text, part));
}

static void on_add(const struct kinf_object *object, bool is_initial, void *ctx)
{
    (void)object;
    (void)is_initial;
    ((struct stage *)ctx)->n_added++;
}

static void on_update(const struct kinf_object *old, const struct kinf_object *object, void *ctx)
{
    (void)old;
    (void)object;
    ((struct stage *)ctx)->n_updated++;
}

static void on_delete(const struct kinf_object *object, bool is_final_state_unknown, void *ctx)
{
    (void)object;
    (void)is_final_state_unknown;
    ((struct stage *)ctx)->n_deleted++;
}

static struct kinf_informer *watch(struct stage *stage, const char *resource, const char *labels)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_informer *informer;

    options.resource = resource;
    options.label_selector = labels;
    options.handler = (struct kinf_handler){
        .on_add = on_add, .on_update = on_update, .on_delete = on_delete, .ctx = stage
    };
    must(stage, kinf_informer_new(stage->client, &options, &informer, &stage->err));
    must(stage, kinf_informer_start(informer, &stage->err));
    return informer;
}

/* --- tests --- */

static void settled_handlers_have_heard_of_every_write(void **state)
{
    struct stage *stage = *state;
    struct kinf_informer *informer = watch(stage, "configmaps", NULL);

    settle(stage);
    assert_int_equal(stage->n_added, 0);
    for (int i = 0; i < 50; i++) {
        char manifest[256];

        snprintf(manifest, sizeof manifest,
                 "{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d, namespace: default}}", i);
        must(stage, kinf_fake_put(stage->fake, manifest, &stage->err));
    }
    settle(stage);
    assert_int_equal(stage->n_added, 50);
    must(stage, kinf_fake_put(stage->fake, CONFIG_MAP("c7", "new"), &stage->err));
    must(stage, kinf_fake_delete(stage->fake, "cm", "default/c9", &stage->err));
    settle(stage);
    assert_int_equal(stage->n_updated, 1);
    assert_int_equal(stage->n_deleted, 1);
    kinf_informer_free(informer);
}

static void informers_whom_nothing_concerns_settle_too(void **state)
{
    struct stage *stage = *state;
    struct kinf_informer *selective = watch(stage, "configmaps", "app=web"),
                         *other = watch(stage, "pods", NULL);

    must(stage, kinf_fake_put(stage->fake, CONFIG_MAP("c", "x"), &stage->err));
    settle(stage);
    assert_int_equal(stage->n_added, 0);
    kinf_informer_free(selective);
    kinf_informer_free(other);
}

/* A handler that writes: for each object that is added another one, up to five. */
struct writer {
    struct stage *stage;
    size_t n;
};

static void write_another(const struct kinf_object *object, bool is_initial, void *ctx)
{
    struct writer *writer = ctx;
    char manifest[256];

    (void)object;
    (void)is_initial;
    if (++writer->n > 5)
        return;
    snprintf(manifest, sizeof manifest,
             "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"w%zu\"}}",
             writer->n);
    (void)!kinf_client_request_raw(writer->stage->client, "POST",
                                   "/api/v1/namespaces/default/configmaps", kinf_str_from(manifest),
                                   NULL, NULL, NULL);
}

static void settling_waits_for_what_handlers_write(void **state)
{
    struct stage *stage = *state;
    struct writer writer = { stage, 0 };
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_informer *informer;

    options.resource = "configmaps";
    options.handler = (struct kinf_handler){ .on_add = write_another, .ctx = &writer };
    must(stage, kinf_informer_new(stage->client, &options, &informer, &stage->err));
    must(stage, kinf_informer_start(informer, &stage->err));
    must(stage, kinf_fake_put(stage->fake, CONFIG_MAP("first", "x"), &stage->err));
    settle(stage);
    assert_int_equal(writer.n, 6);
    kinf_informer_free(informer);
}

static void who_does_not_get_there_is_named(void **state)
{
    struct stage *stage = *state;
    struct kinf_informer *informer;

    must(stage, kinf_fake_fault(stage->fake, "list,watch configmaps 403", &stage->err));
    informer = watch(stage, "configmaps", NULL);
    assert_int_equal(kinf_fake_settle(stage->fake, 200, &stage->err), KINF_ERR_TIMEOUT);
    assert_has(stage->err.message, "configmaps");
    kinf_informer_free(informer);
}

static void leaps_of_time_end_backoffs_at_once(void **state)
{
    struct stage *stage = *state;
    struct kinf_informer *informer = watch(stage, "configmaps", NULL);
    struct timespec began, ended;

    settle(stage);
    must(stage, kinf_fake_fault(stage->fake, "list,watch configmaps 503 times=8", &stage->err));
    kinf_fake_drop(stage->fake);
    must(stage, kinf_fake_put(stage->fake, CONFIG_MAP("c", "x"), &stage->err));
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (int i = 0; i < 20 && stage->n_added == 0; i++) {
        kinf_fake_advance(stage->fake, 60000);
        (void)!kinf_fake_settle(stage->fake, 300, &stage->err);
    }
    kinf_fake_clear_faults(stage->fake);
    kinf_fake_advance(stage->fake, 120000);
    settle(stage);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    assert_int_equal(stage->n_added, 1);
    /* Eight backoffs last minutes. */
    assert_true(ended.tv_sec - began.tv_sec < 30);
    kinf_informer_free(informer);
}

static void without_a_bound_nothing_that_is_due_is_left(void **state)
{
    struct stage *stage = *state;
    struct kinf_informer *informer = watch(stage, "configmaps", NULL);

    must(stage, kinf_fake_settle_ahead(stage->fake, KINF_FOREVER, PATIENCE_MS, &stage->err));
    must(stage, kinf_fake_settle_ahead(stage->fake, KINF_FOREVER, 1000, &stage->err));
    kinf_informer_free(informer);
}

static int64_t number_of(struct stage *stage, const char *resource, const char *key,
                         const char *path)
{
    kinf_auto_object const struct kinf_object *object = NULL;
    int64_t number = -1;

    must(stage, kinf_fake_get(stage->fake, resource, key, &object, &stage->err));
    must(stage, kinf_object_get_int64(object, path, &number));
    return number;
}

static void settling_ahead_waits_for_workloads(void **state)
{
    const struct kinf_fake_options options = { .size = sizeof options, .has_workloads = true };
    struct stage stage = { .err = KINF_ERROR_INIT };

    (void)state;
    must(&stage, kinf_fake_new(&options, &stage.fake, &stage.err));
    must(&stage,
         kinf_fake_put(stage.fake,
                       "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: "
                       "{replicas: 3, selector: {matchLabels: {a: b}}, template: {metadata: "
                       "{labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}",
                       &stage.err));
    must(&stage, kinf_fake_settle_ahead(stage.fake, 60000, PATIENCE_MS, &stage.err));
    assert_int_equal(number_of(&stage, "deployments", "default/d", "status.readyReplicas"), 3);
    kinf_fake_free(stage.fake);
}

static void time_does_not_go_back(void **state)
{
    struct stage *stage = *state;
    int64_t before_ms = kinf__clock_now_ms();

    kinf_fake_advance(stage->fake, -60000);
    kinf_fake_advance(stage->fake, INT64_MIN);
    kinf_fake_advance(stage->fake, INT64_MAX);
    assert_in_range(kinf__clock_now_ms() - before_ms, 0, PATIENCE_MS);
}

static void a_lease_may_be_taken_before_it_is_there(void **state)
{
    kinf_auto_object const struct kinf_object *lease = NULL;
    struct stage *stage = *state;
    char holder[16];

    must(stage, kinf_fake_take_lease(stage->fake, "default/new", &stage->err));
    assert_int_equal(stage->err.code, 0);
    must(stage, kinf_fake_get(stage->fake, "leases", "default/new", &lease, &stage->err));
    assert_int_equal(kinf_object_get_string(lease, "spec.holderIdentity", holder, sizeof holder),
                     0);
    assert_string_equal(holder, "another");
}

static void writes_are_the_servers(void **state)
{
    struct stage *stage = *state;
    char *body =
        ask(stage, "POST", "/api/v1/namespaces/default/configmaps", CONFIG_MAP("c", "one"), NULL);

    assert_has(body, "\"uid\":\"");
    assert_has(body, "\"creationTimestamp\":\"");
    free(body);
    assert_int_equal(
        try(stage, "POST", "/api/v1/namespaces/default/configmaps", CONFIG_MAP("c", "two")),
        KINF_ERR_EXISTS);
    body = ask(stage, "PATCH", "/api/v1/namespaces/default/configmaps/c",
               "{\"data\":{\"more\":\"x\"}}", "application/merge-patch+json");
    assert_has(body, "\"more\":\"x\"");
    assert_has(body, "\"value\":\"one\"");
    free(body);
    assert_true(kinf_client_request_raw(stage->client, "PATCH",
                                        "/api/v1/namespaces/default/configmaps/c",
                                        KINF_STR("{\"metadata\":null}"),
                                        "application/merge-patch+json", NULL, &stage->err) < 0);
    assert_has(stage->err.message, "name must be provided");
    assert_int_equal(try(stage, "PUT", "/api/v1/namespaces/default/configmaps/c",
                         "{\"metadata\":{\"name\":\"c\",\"resourceVersion\":\"1\"}}"),
                     KINF_ERR_CONFLICT);
    body = ask(stage, "DELETE", "/api/v1/namespaces/default/configmaps/c", NULL, NULL);
    assert_has(body, "\"status\":\"Success\"");
    free(body);
    assert_int_equal(try(stage, "GET", "/api/v1/namespaces/default/configmaps/c", NULL),
                     KINF_ERR_NOT_FOUND);
}

/* As kube-apiserver does it: they see that it is being deleted. */
static void a_pod_is_told_to_go_before_it_is_gone(void **state)
{
    struct stage *stage = *state;
    struct kinf_informer *informer = watch(stage, "pods", NULL);

    must(stage, kinf_fake_put(stage->fake,
                              "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: "
                              "[{name: c, image: i}]}}",
                              &stage->err));
    settle(stage);
    must(stage, kinf_fake_delete(stage->fake, "pods", "default/p", &stage->err));
    settle(stage);
    assert_int_equal(stage->n_updated, 1);
    assert_int_equal(stage->n_deleted, 1);
    kinf_informer_free(informer);
}

static void a_namespace_takes_what_is_in_it_along(void **state)
{
    struct stage *stage = *state;
    const struct kinf_object *object;

    must(stage, kinf_fake_put(stage->fake,
                              "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n---\n"
                              "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: "
                              "shop}}\n",
                              &stage->err));
    must(stage, kinf_fake_delete(stage->fake, "namespaces", "shop", &stage->err));
    settle(stage);
    assert_int_equal(kinf_fake_get(stage->fake, "namespaces", "shop", &object, &stage->err),
                     KINF_ERR_NOT_FOUND);
    assert_int_equal(kinf_fake_get(stage->fake, "configmaps", "shop/c", &object, &stage->err),
                     KINF_ERR_NOT_FOUND);
}

static void dependents_go_with_their_owner(void **state)
{
    struct stage *stage = *state;
    const struct kinf_object *owner, *object;
    char manifest[512];

    must(stage, kinf_fake_put(stage->fake, CONFIG_MAP("owner", "x"), &stage->err));
    must(stage, kinf_fake_get(stage->fake, "configmaps", "default/owner", &owner, &stage->err));
    snprintf(manifest, sizeof manifest,
             "{apiVersion: v1, kind: ConfigMap, metadata: {name: dependent, namespace: default, "
             "ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: %s}]}}",
             kinf_object_uid(owner));
    kinf_object_unref(owner);
    must(stage, kinf_fake_put(stage->fake, manifest, &stage->err));
    settle(stage);
    must(stage,
         kinf_fake_get(stage->fake, "configmaps", "default/dependent", &object, &stage->err));
    kinf_object_unref(object);
    must(stage, kinf_fake_delete(stage->fake, "configmaps", "default/owner", &stage->err));
    settle(stage);
    assert_int_equal(
        kinf_fake_get(stage->fake, "configmaps", "default/dependent", &object, &stage->err),
        KINF_ERR_NOT_FOUND);
}

static void its_state_can_be_asked_for(void **state)
{
    struct stage *stage = *state;
    char *body = ask(stage, "GET", "/debug/state", NULL, NULL);

    assert_has(body, "\"resource\":\"configmaps\"");
    assert_has(body, "\"lastErrors\":[]");
    assert_null(strstr(body, "\"lastErrors\":[{"));
    free(body);
}

/* `size`: the default of one. */
#define GADGETS(size)                                                                              \
    "apiVersion: apiextensions.k8s.io/v1\n"                                                        \
    "kind: CustomResourceDefinition\n"                                                             \
    "metadata: {name: gadgets.example.com}\n"                                                      \
    "spec:\n"                                                                                      \
    "  group: example.com\n"                                                                       \
    "  scope: Namespaced\n"                                                                        \
    "  names: {plural: gadgets, kind: Gadget, singular: gadget}\n"                                 \
    "  versions:\n"                                                                                \
    "  - name: v1\n"                                                                               \
    "    served: true\n"                                                                           \
    "    storage: true\n"                                                                          \
    "    subresources: {status: {}}\n"                                                             \
    "    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, "              \
    "properties: {size: {type: integer, default: " size "}}}, status: {type: object, "             \
    "x-kubernetes-preserve-unknown-fields: true}}}}\n"

static void custom_resources_are_served_once_they_are_defined(void **state)
{
    struct stage *stage = *state;
    struct kinf_informer *informer;
    char *body;

    must(stage, kinf_fake_put(stage->fake, GADGETS("3"), &stage->err));
    informer = watch(stage, "gadgets.example.com", NULL);
    body = ask(stage, "POST", "/apis/example.com/v1/namespaces/default/gadgets",
               "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Gadget\",\"metadata\":{\"name\":"
               "\"g\"},\"spec\":{}}",
               NULL);
    assert_has(body, "\"size\":3");
    free(body);
    settle(stage);
    assert_int_equal(stage->n_added, 1);
    kinf_informer_free(informer);
}

#define LEASE(transitions)                                                                         \
    "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: l, namespace: default}, "  \
    "spec: {leaseTransitions: " transitions "}}"

#define GADGET(members)                                                                            \
    "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: g, namespace: default}, " members \
    "}"

/* Also those that clients have to say the version of. */
static void what_is_there_is_replaced(void **state)
{
    static const struct {
        const char *manifest, *resource, *key, *path;
        int64_t number;
    } rows[] = {
        { GADGETS("3"), NULL, NULL, NULL, 0 },
        { GADGET("spec: {}"), "gadgets", "default/g", "spec.size", 3 },
        { GADGET("spec: {size: 5}, status: {seen: 1}"), "gadgets", "default/g", "status.seen", 1 },
        { GADGET("spec: {size: 6}, status: {seen: 2}"), "gadgets", "default/g", "status.seen", 2 },
        { GADGET("spec: {size: 7}"), "gadgets", "default/g", "spec.size", 7 },
        { GADGETS("4"), NULL, NULL, NULL, 0 },
        { GADGET("spec: {}"), "gadgets", "default/g", "spec.size", 4 },
        { LEASE("1"), "leases", "default/l", "spec.leaseTransitions", 1 },
        { LEASE("2"), "leases", "default/l", "spec.leaseTransitions", 2 },
    };
    struct stage *stage = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        must(stage, kinf_fake_put(stage->fake, rows[i].manifest, &stage->err));
        if (rows[i].path != NULL)
            assert_int_equal(number_of(stage, rows[i].resource, rows[i].key, rows[i].path),
                             rows[i].number);
    }
}

static void manifests_that_say_a_version_are_of_that_one(void **state)
{
    struct stage *stage = *state;

    must(stage, kinf_fake_put(stage->fake, LEASE("1"), &stage->err));
    assert_int_equal(kinf_fake_put(stage->fake,
                                   "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: "
                                   "{name: l, namespace: default, resourceVersion: '1'}}",
                                   &stage->err),
                     KINF_ERR_CONFIG);
    assert_has(stage->err.message, "the object has been modified");
    assert_int_equal(number_of(stage, "leases", "default/l", "spec.leaseTransitions"), 1);
}

static void faults_hit_as_often_as_they_are_asked_for(void **state)
{
    struct stage *stage = *state;

    must(stage, kinf_fake_put(stage->fake, CONFIG_MAP("c", "x"), &stage->err));
    must(stage, kinf_fake_fault(stage->fake, "update configmaps 409 times=2", &stage->err));
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            try(stage, "PUT", "/api/v1/namespaces/default/configmaps/c", CONFIG_MAP("c", "y")),
            KINF_ERR_CONFLICT);
    assert_int_equal(
        try(stage, "PUT", "/api/v1/namespaces/default/configmaps/c", CONFIG_MAP("c", "y")), 0);
    assert_int_equal(kinf_fake_fault(stage->fake, "update configmaps sometimes", &stage->err),
                     KINF_ERR_PARSE);
}

static void wrong_manifests_say_where(void **state)
{
    struct stage *stage = *state;

    assert_int_equal(kinf_fake_put(stage->fake, "a: [", &stage->err), KINF_ERR_PARSE);
    assert_int_equal(kinf_fake_put(stage->fake, "{apiVersion: v1, kind: Unicorn}", &stage->err),
                     KINF_ERR_CONFIG);
    assert_has(stage->err.message, "Unicorn");
    assert_int_equal(kinf_fake_put(stage->fake,
                                   "{apiVersion: v1, kind: ConfigMap, metadata: {name: No_Name}}",
                                   &stage->err),
                     KINF_ERR_CONFIG);
    assert_has(stage->err.message, "metadata.name: Invalid value");
}

/* Seconds since 1970 of the first creationTimestamp in a body, which is freed. */
static time_t created_at(char *take_body)
{
    const char *at = strstr(take_body, "\"creationTimestamp\":\"");
    struct tm utc = { .tm_year = 0 };

    assert_non_null(at);
    assert_non_null(strptime(at + strlen("\"creationTimestamp\":\""), "%Y-%m-%dT%H:%M:%SZ", &utc));
    free(take_body);
    return timegm(&utc);
}

static void all_that_the_server_dates_has_the_simulated_time(void **state)
{
    struct stage *stage = *state;
    time_t before = created_at(
        ask(stage, "POST", "/api/v1/namespaces/default/configmaps", CONFIG_MAP("c", "x"), NULL));

    kinf_fake_advance(stage->fake, 3600 * 1000);
    assert_true(created_at(ask(stage, "POST", "/api/v1/namespaces/default/configmaps",
                               CONFIG_MAP("d", "x"), NULL)) >= before + 3600);
    assert_true(created_at(ask(stage, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                               "{\"apiVersion\":\"authentication.k8s.io/v1\","
                               "\"kind\":\"SelfSubjectReview\"}",
                               NULL)) >= before + 3600);
}

static void two_fakes_are_two_servers(void **state)
{
    struct stage *stage = *state;
    kinf_auto_fake struct kinf_fake *other = NULL;
    const struct kinf_object *object;

    must(stage, kinf_fake_new(NULL, &other, &stage->err));
    must(stage, kinf_fake_put(other, CONFIG_MAP("c", "x"), &stage->err));
    assert_int_equal(kinf_fake_get(stage->fake, "configmaps", "default/c", &object, &stage->err),
                     KINF_ERR_NOT_FOUND);
}

static void options_of_another_size_are_refused(void **state)
{
    struct stage *stage = *state;
    struct kinf_fake_options options = KINF_FAKE_OPTIONS_INIT;
    struct kinf_fake *fake;

    options.size--;
    assert_int_equal(kinf_fake_new(&options, &fake, &stage->err), KINF_ERR_INVALID);
}

/* An elector's writes come when they come. */
static void the_nth_write_fails(void **state)
{
    static const struct {
        const char *fault;
        int failed;
        bool is_stored;
    } rows[] = {
        { "409", KINF_ERR_EXISTS, false },
        { "503", KINF_ERR_SERVER, false },
        { "reset early", KINF_ERR_NETWORK, false },
        { "reset", KINF_ERR_NETWORK, true },
    };
    struct stage *stage = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char fault[128];

        snprintf(fault, sizeof fault, "write *,!leases %s skip=1 times=1", rows[i].fault);
        must(stage, kinf_fake_fault(stage->fake, fault, &stage->err));
        for (int k = 0; k < 3; k++) {
            int expected = k == 1                        ? rows[i].failed
                           : k == 2 && rows[i].is_stored ? KINF_ERR_EXISTS
                                                         : 0;

            assert_int_equal(try(stage, "POST",
                                 "/apis/coordination.k8s.io/v1/namespaces/default/leases",
                                 "{\"metadata\":{\"generateName\":\"lease-\"}}"),
                             0);
            assert_int_equal(try(stage, "POST", "/api/v1/namespaces/default/configmaps",
                                 k == 0 ? "{\"metadata\":{\"generateName\":\"other-\"}}"
                                        : CONFIG_MAP("nth", "1")),
                             expected);
        }
        must(stage, kinf_fake_delete(stage->fake, "cm", "default/nth", &stage->err));
        kinf_fake_clear_faults(stage->fake);
    }
}

/* --- what a callback may not do --- */

static void give_back_what_is_lent(const struct kinf_object *object, bool in_initial_list,
                                   void *ctx)
{
    (void)in_initial_list;
    (void)ctx;
    kinf_object_unref(object);
}

static void run_a_callback_that_frees(void)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_informer *informer;
    struct stage *stage;

    begin((void **)&stage);
    must(stage, kinf_fake_put(stage->fake, CONFIG_MAP("a", "1"), &stage->err));
    options.resource = "configmaps";
    options.handler.on_add = give_back_what_is_lent;
    must(stage, kinf_informer_new(stage->client, &options, &informer, &stage->err));
    must(stage, kinf_informer_start(informer, &stage->err));
    settle(stage);
    kinf_informer_free(informer);
    end((void **)&stage);
}

static void a_callback_that_frees_what_it_borrowed_is_caught(void **state)
{
    char said[1024] = "", rest[1024];
    int pipes[2], status;
    size_t len = 0;
    ssize_t n;
    pid_t child;

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        run_a_callback_that_frees();
        _exit(0);
    }
    close(pipes[1]);
    while ((n = read(pipes[0], said + len, sizeof said - 1 - len)) > 0)
        len += (size_t)n;
    while (read(pipes[0], rest, sizeof rest) > 0) /* sanitizers say more */
        ;
    assert_int_equal(waitpid(child, &status, 0), child);
    close(pipes[0]);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
#if !defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, "configmaps default/a was given back more often than"));
#endif
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(settled_handlers_have_heard_of_every_write),
        TEST(informers_whom_nothing_concerns_settle_too),
        TEST(settling_waits_for_what_handlers_write),
        TEST(who_does_not_get_there_is_named),
        TEST(leaps_of_time_end_backoffs_at_once),
        TEST(without_a_bound_nothing_that_is_due_is_left),
        TEST(settling_ahead_waits_for_workloads),
        TEST(time_does_not_go_back),
        TEST(a_lease_may_be_taken_before_it_is_there),
        TEST(writes_are_the_servers),
        TEST(a_pod_is_told_to_go_before_it_is_gone),
        TEST(a_namespace_takes_what_is_in_it_along),
        TEST(dependents_go_with_their_owner),
        TEST(its_state_can_be_asked_for),
        TEST(custom_resources_are_served_once_they_are_defined),
        TEST(what_is_there_is_replaced),
        TEST(manifests_that_say_a_version_are_of_that_one),
        TEST(faults_hit_as_often_as_they_are_asked_for),
        TEST(the_nth_write_fails),
        TEST(wrong_manifests_say_where),
        TEST(all_that_the_server_dates_has_the_simulated_time),
        TEST(two_fakes_are_two_servers),
        TEST(options_of_another_size_are_refused),
        cmocka_unit_test(a_callback_that_frees_what_it_borrowed_is_caught),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
