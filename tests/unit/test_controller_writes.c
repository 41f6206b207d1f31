/*
 * What calls write, while the cache is behind: a controller on a server in this process, with an
 * informer whose changes come only when the test lets them.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "controller/controller.h"
#include "unit/controller_fixture.h"
#include "unit/test.h"

#define ALL_OF_THEM 1000000
#define PATIENCE_MS 60000

/* Of ConfigMaps labelled slow=true. */
static struct kinf_informer *slow;
static _Atomic(int) n_come, n_let_in;

static void nap(int64_t ms)
{
    const struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };

    nanosleep(&pause, NULL);
}

static void wait_for(_Atomic(int) *number, int least)
{
    for (int i = 0; i < PATIENCE_MS && *number < least; i++)
        nap(1);
    assert_true(*number >= least);
}

/* In front of the store: behind it nothing of this informer goes on. */
static int wait_to_be_let_in(const struct kinf_object *object,
                             const struct kinf_object **ret_object, void *ctx)
{
    int number = ++n_come;

    (void)ctx;
    while (n_let_in < number)
        nap(1);
    *ret_object = kinf_object_ref(object);
    return 0;
}

static void let_in(void)
{
    n_let_in = ALL_OF_THEM;
}

static void expect_number(struct stage *stage, int expected)
{
    for (int i = 0; i < PATIENCE_MS && stage->number != expected; i++)
        nap(1);
    assert_int_equal(stage->number, expected);
}

static int begin(void **state)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct stage *stage;

    stage_begin(state);
    stage = *state;
    n_come = n_let_in = 0;
    options.resource = "configmaps";
    options.label_selector = "slow=true";
    options.transform = wait_to_be_let_in;
    stage_must(stage, kinf_informer_new(stage->client, &options, &slow, &stage->err));
    return 0;
}

static int end(void **state)
{
    struct stage *stage = *state;

    n_let_in = ALL_OF_THEM;
    kinf_controller_free(stage->controller);
    stage->controller = NULL;
    kinf_informer_free(slow);
    return stage_end(state);
}

static void start_empty(struct stage *stage)
{
    stage_make(stage);
    stage_must(stage, kinf_controller_watch(stage->controller, slow, kinf_map_annotation,
                                            (void *)"owner", &stage->err));
    stage_start(stage);
}

static void start(struct stage *stage)
{
    start_empty(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
}

static const struct kinf_type *config_maps(struct kinf_call *call)
{
    return kinf_object_type(kinf_call_object(call));
}

static size_t n_cached(void)
{
    kinf_auto_snapshot struct kinf_snapshot *all =
        kinf_indexer_snapshot(kinf_informer_indexer(slow));

    return kinf_snapshot_count(all);
}

static bool is_cached(const char *key)
{
    kinf_auto_object const struct kinf_object *object = NULL;

    return kinf_indexer_get_by_key(kinf_informer_indexer(slow), key, &object) == 0;
}

/* --- C3 --- */

static int create_if_there_is_none(struct stage *stage, struct kinf_call *call,
                                   struct kinf_error *err)
{
    struct kinf_request request = KINF_REQUEST_INIT;

    (void)stage;
    if (n_cached() != 0)
        return 0;
    request.verb = KINF_VERB_CREATE;
    request.type = config_maps(call);
    request.name_space = "default";
    request.body = KINF_STR("{\"metadata\":{\"generateName\":\"made-\",\"labels\":{\"slow\":"
                            "\"true\"}}}");
    kinf_call_requeue_after(call, 0);
    return kinf_call_request(call, &request, NULL, err);
}

static void what_the_server_has_named_is_waited_for(void **state)
{
    struct stage *stage = *state;

    stage->reconcile = create_if_there_is_none;
    start(stage);
    wait_for(&n_come, 1);
    nap(100);
    assert_int_equal(stage->n_reconciles, 1);
    let_in();
    wait_for(&stage->n_reconciles, 2);
    stage_settle(stage);
    assert_int_equal(n_cached(), 1);
}

static int apply_labelled(struct kinf_call *call, const char *label, const char *value,
                          struct kinf_error *err)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str json;
    int rc = kinf_json_format(&scratch, &json, err, "{metadata:{labels:{slow:?s}},data:{value:?s}}",
                              label, value);

    return rc < 0 ? rc : kinf_call_apply(call, config_maps(call), "default", "x", json, err);
}

/* Between both writes, and in front of the second, comes one that is not let in. */
static int show_and_take_away(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    int rc;

    if (stage->n_reconciles > 1) {
        stage->number = is_cached("default/x") ? -1 : 1;
        return 0;
    }
    rc = apply_labelled(call, "true", "1", err);
    wait_for(&n_come, 1);
    stage_put(stage, "between", "slow: 'true'", "1");
    if (rc == 0)
        rc = apply_labelled(call, "false", "1", err);
    n_let_in = 1;
    kinf_call_requeue_after(call, 0);
    return rc;
}

static void what_has_left_before_it_came_is_waited_for(void **state)
{
    struct stage *stage = *state;

    stage->reconcile = show_and_take_away;
    start(stage);
    wait_for(&n_come, 2);
    nap(100);
    assert_int_equal(stage->number, 0);
    stage_delete(stage, "default/between");
    let_in();
    expect_number(stage, 1);
}

/* The answer to what changes nothing has an old version. */
static int create_and_touch_another(struct stage *stage, struct kinf_call *call,
                                    struct kinf_error *err)
{
    struct kinf_request touch = KINF_REQUEST_INIT;
    int rc;

    if (stage->n_reconciles > 1) {
        stage->number = is_cached("default/x") ? 1 : -1;
        return 0;
    }
    touch.verb = KINF_VERB_MERGE_PATCH;
    touch.type = config_maps(call);
    touch.name_space = "default";
    touch.name = "touched";
    touch.body = KINF_STR("{}");
    rc = apply_labelled(call, "true", "1", err);
    if (rc == 0)
        rc = kinf_call_request(call, &touch, NULL, err);
    kinf_call_requeue_after(call, 0);
    return rc;
}

static void what_changes_nothing_hides_no_write_before_it(void **state)
{
    struct stage *stage = *state;

    stage->reconcile = create_and_touch_another;
    start_empty(stage);
    n_let_in = 1;
    stage_put(stage, "touched", "slow: 'true'", "1");
    while (!is_cached("default/touched"))
        nap(1);
    stage_put(stage, "a", "sync: 'true'", "1");
    wait_for(&n_come, 2);
    nap(200);
    assert_int_equal(stage->number, 0);
    let_in();
    expect_number(stage, 1);
}

static size_t n_remembered(struct stage *stage)
{
    struct kinf_controller *controller = stage->controller;
    size_t n_keys;

    kinf__mutex_lock(&controller->lock);
    n_keys = controller->own_writes.keys.n_nodes;
    kinf__mutex_unlock(&controller->lock);
    return n_keys;
}

static void wait_until_remembered(struct stage *stage, size_t n_expected)
{
    for (int i = 0; i < PATIENCE_MS && n_remembered(stage) != n_expected; i++)
        nap(1);
    assert_int_equal(n_remembered(stage), n_expected);
}

static int write_once(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    (void)stage;
    return apply_labelled(call, "true", "1", err);
}

static void what_the_caches_have_is_forgotten_without_another_call(void **state)
{
    struct stage *stage = *state;

    stage->reconcile = write_once;
    start(stage);
    wait_for(&n_come, 1);
    stage_put(stage, "b", "sync: 'true'", "1");
    wait_until_remembered(stage, 2);
    kinf_fake_advance(stage->fake, 3000);
    assert_int_equal(n_remembered(stage), 2);
    let_in();
    wait_until_remembered(stage, 0);
    assert_int_equal(stage->n_reconciles, 2);
}

/* --- subresources --- */

#define SCALABLE(name)                                                                             \
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: " name                               \
    ", namespace: default, labels: {hidden: 'true'}}, spec: {replicas: 1, selector: "              \
    "{matchLabels: {a: b}}, template: "                                                            \
    "{metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}"

static struct kinf_informer *others;
static enum kinf_verb scale_verb;

/* Makes the controller, which watches these, too. */
static void make_with(struct stage *stage, const struct kinf_informer_options *options)
{
    stage_make(stage);
    stage_must(stage, kinf_informer_new(stage->client, options, &others, &stage->err));
    stage_must(stage, kinf_controller_watch(stage->controller, others, kinf_map_annotation,
                                            (void *)"owner", &stage->err));
}

static void end_with(struct stage *stage)
{
    let_in();
    kinf_controller_free(stage->controller);
    stage->controller = NULL;
    kinf_informer_free(others);
}

static int write_below(struct stage *stage, struct kinf_call *call, enum kinf_verb verb,
                       const char *resource, const char *name, const char *subresource,
                       const char *json, struct kinf_error *err)
{
    struct kinf_request request = KINF_REQUEST_INIT;
    int failed = kinf_client_find_type(stage->client, resource, &request.type, err);

    request.verb = verb;
    request.name_space = "default";
    request.name = name;
    request.subresource = subresource;
    request.body = kinf_str_from(json);
    kinf_call_requeue_after(call, 0);
    return failed < 0 ? failed : kinf_call_request(call, &request, NULL, err);
}

/* To two, if the cache has one. */
static int scale_up(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    kinf_auto_object const struct kinf_object *object = NULL;
    int64_t replicas;

    if (kinf_indexer_get_by_key(kinf_informer_indexer(others), "default/d", &object) < 0 ||
        kinf_object_get_int64(object, "spec.replicas", &replicas) < 0 || replicas != 1)
        return 0;
    stage->number++;
    return write_below(stage, call, scale_verb, "deployments.apps", "d", "scale",
                       "{\"metadata\":{\"name\":\"d\",\"namespace\":\"default\"},"
                       "\"spec\":{\"replicas\":2}}",
                       err);
}

static void expect_one_scale(struct stage *stage, enum kinf_verb verb)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;

    options.resource = "deployments";
    options.label_selector = "hidden=true"; /* a Scale has no labels */
    options.transform = wait_to_be_let_in;
    stage_must(stage, kinf_fake_put(stage->fake, SCALABLE("d"), &stage->err));
    stage->reconcile = scale_up;
    scale_verb = verb;
    n_let_in = 1;
    make_with(stage, &options);
    stage_start(stage);
    stage_settle(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    wait_for(&n_come, 2);
    nap(100);
    assert_int_equal(stage->n_reconciles, 1);
    let_in();
    wait_for(&stage->n_reconciles, 2);
    stage_settle(stage);
    assert_int_equal(stage->number, 1);
    end_with(stage);
}

/* C3: its answer has the version of the object. */
static void a_scale_is_waited_for(void **state)
{
    expect_one_scale(*state, KINF_VERB_UPDATE);
}

static void a_patched_scale_is_waited_for(void **state)
{
    expect_one_scale(*state, KINF_VERB_MERGE_PATCH);
}

static int scale_blindly(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    if (++stage->number != 1)
        return 0;
    return write_below(stage, call, KINF_VERB_MERGE_PATCH, "deployments.apps", "d", "scale",
                       "{\"spec\":{\"replicas\":2}}", err);
}

/* C3: a selector chooses what has no labels, as a Scale, and not its object: it may never come. */
static void a_scale_of_what_an_informer_does_not_have_is_not_waited_for(void **state)
{
    struct stage *stage = *state;
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;

    options.resource = "deployments";
    options.label_selector = "!hidden";
    stage_must(stage, kinf_fake_put(stage->fake, SCALABLE("d"), &stage->err));
    stage->reconcile = scale_blindly;
    make_with(stage, &options);
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    expect_number(stage, 2);
    assert_int_equal(stage_status(stage).n_waits, 0);
    end_with(stage);
}

static int ask_for_token(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    if (++stage->number != 1)
        return 0;
    return write_below(stage, call, KINF_VERB_CREATE, "serviceaccounts", "default", "token",
                       "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenRequest\","
                       "\"spec\":{\"audiences\":[\"x\"]}}",
                       err);
}

static int evict(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    if (++stage->number != 1)
        return 0;
    return write_below(stage, call, KINF_VERB_CREATE, "pods", "p", "eviction",
                       "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{"
                       "\"name\":\"p\",\"namespace\":\"default\"}}",
                       err);
}

static void expect_no_wait(struct stage *stage, const char *resource, const char *manifest,
                           stage_callback *callback)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;

    options.resource = resource;
    stage_must(stage, kinf_fake_put(stage->fake, manifest, &stage->err));
    stage->reconcile = callback;
    make_with(stage, &options);
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    expect_number(stage, 2);
    assert_int_equal(stage_status(stage).n_waits, 0);
    assert_int_equal(stage_status(stage).n_other_errors, 0);
    end_with(stage);
}

/* C3: its answer has a name, and no version. */
static void a_token_is_no_write_to_its_account(void **state)
{
    expect_no_wait(*state, "serviceaccounts",
                   "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: "
                   "default}}",
                   ask_for_token);
}

/* C3: it is answered with a Status. */
static void an_eviction_is_not_waited_for(void **state)
{
    expect_no_wait(*state, "pods",
                   "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default}, spec: "
                   "{containers: [{name: c, image: i}]}}",
                   evict);
}

/* --- whose it is --- */

static int apply_ours(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    char value[16] = "";
    int rc;

    (void)!kinf_object_get_string(kinf_call_object(call), "data.value", value, sizeof value);
    rc = apply_labelled(call, "true", value, err);
    stage->number = rc;
    return rc;
}

/* The server knows whose it is, if the cache does not. */
static void what_the_cache_keeps_no_annotation_of_is_ours_all_the_same(void **state)
{
    static const char *const keeps[] = { "data" };
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_informer *pruned;
    struct stage *stage = *state;

    let_in();
    options.resource = "configmaps";
    options.label_selector = "slow=true";
    options.keeps = keeps;
    options.n_keeps = KINF__ARRAY_LEN(keeps);
    stage->options.owner_annotation = "owner";
    stage->reconcile = apply_ours;
    stage_make(stage);
    stage_must(stage, kinf_informer_new(stage->client, &options, &pruned, &stage->err));
    stage_must(stage, kinf_controller_watch(stage->controller, pruned, kinf_map_label,
                                            (void *)"owner", &stage->err));
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_settle(stage);
    stage_patch(stage, "a", "{\"data\":{\"value\":\"2\"}}");
    stage_settle(stage);
    assert_int_equal(stage->number, 0);
    assert_string_equal(stage_value(stage, "default/x"), "2");
    kinf_controller_free(stage->controller);
    stage->controller = NULL;
    kinf_informer_free(pruned);
}

static int apply_by_value(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    char value[16] = "";

    (void)stage;
    (void)!kinf_object_get_string(kinf_call_object(call), "data.value", value, sizeof value);
    return kinf_call_apply(call, config_maps(call), "default", value,
                           KINF_STR("{\"data\":{\"of\":\"us\"}}"), err);
}

/* Nobody would say that they are gone. */
static void of_what_no_informer_selects_nothing_is_remembered(void **state)
{
    struct stage *stage = *state;
    char json[64];

    let_in();
    stage->reconcile = apply_by_value;
    start(stage);
    for (int i = 0; i < 10; i++) {
        snprintf(json, sizeof json, "{\"data\":{\"value\":\"x-%d\"}}", i);
        stage_patch(stage, "a", json);
        stage_settle(stage);
    }
    assert_true(stage_has(stage, "default/x-9"));
    assert_int_equal(stage->controller->applied.objects.n_nodes, 0);
}

/* Something comes, and waits. */
static void hold_back(struct stage *stage)
{
    int n_before = n_come;

    stage_put(stage, "between", "slow: 'true'", "1");
    wait_for(&n_come, n_before + 1);
}

static const struct kinf_object *begin_owned(struct stage *stage)
{
    stage->options.owner_annotation = "owner";
    stage->reconcile = apply_ours;
    n_let_in = 2; /* x is created, and then changed */
    start(stage);
    stage_settle(stage);
    assert_true(is_cached("default/x"));
    n_let_in = n_come;
    hold_back(stage);
    return stage_get(stage, "default/x");
}

/* The cache still has ours. */
static void what_another_has_made_since_is_left_alone(void **state)
{
    struct stage *stage = *state;

    kinf_object_unref(begin_owned(stage));
    stage_delete(stage, "default/x");
    stage_put(stage, "x", "", "foreign");
    stage_patch(stage, "a", "{\"data\":{\"value\":\"2\"}}");
    expect_number(stage, KINF_ERR_CONFLICT);
    assert_true(is_cached("default/x"));
    let_in();
    expect_number(stage, KINF_ERR_EXISTS);
    assert_string_equal(stage_value(stage, "default/x"), "foreign");
    assert_int_equal(stage_status(stage).n_invalid, 0);
}

/* A refusal for good is one that was looked into. */
static void a_refusal_that_could_not_be_looked_into_is_not_for_good(void **state)
{
    struct stage *stage = *state;

    kinf_object_unref(begin_owned(stage));
    stage_delete(stage, "default/x");
    stage_put(stage, "x", "", "foreign");
    stage_must(stage, kinf_fake_fault(stage->fake, "get configmaps 503 times=1", &stage->err));
    stage_patch(stage, "a", "{\"data\":{\"value\":\"2\"}}");
    expect_number(stage, KINF_ERR_CONFLICT);
    assert_int_equal(stage_status(stage).n_invalid, 0);
    let_in();
    expect_number(stage, KINF_ERR_EXISTS);
}

static void what_was_deleted_since_is_made_anew_when_the_cache_knows(void **state)
{
    struct stage *stage = *state;
    kinf_auto_object const struct kinf_object *old = begin_owned(stage);
    kinf_auto_object const struct kinf_object *now = NULL;

    stage_delete(stage, "default/x");
    stage_patch(stage, "a", "{\"data\":{\"value\":\"2\"}}");
    expect_number(stage, KINF_ERR_CONFLICT);
    assert_false(stage_has(stage, "default/x"));
    let_in();
    expect_number(stage, 0);
    now = stage_get(stage, "default/x");
    assert_string_not_equal(kinf_object_uid(now), kinf_object_uid(old));
    assert_int_equal(stage_status(stage).n_conflicts, 1);
}

static int delete_what_is_cached(struct stage *stage, struct kinf_call *call,
                                 struct kinf_error *err)
{
    kinf_auto_object const struct kinf_object *object = NULL;

    if (strcmp(kinf_call_key(call), "default/a") == 0 &&
        kinf_indexer_get_by_key(kinf_informer_indexer(slow), "default/x", &object) == 0)
        stage->number = kinf_call_delete(call, object, err);
    return stage->number == 1 ? 0 : stage->number;
}

/* It was deleted, and another made since. */
static void a_delete_is_of_the_very_object(void **state)
{
    struct stage *stage = *state;

    stage_put(stage, "x", "slow: 'true'", "1");
    stage->reconcile = delete_what_is_cached;
    stage->number = 1;
    n_let_in = 1;
    start_empty(stage);
    stage_settle(stage);
    hold_back(stage);
    stage_delete(stage, "default/x");
    stage_put(stage, "x", "", "another");
    stage_put(stage, "a", "sync: 'true'", "1");
    expect_number(stage, 0);
    assert_string_equal(stage_value(stage, "default/x"), "another");
    assert_int_equal(stage_status(stage).n_conflicts, 0);
}

/* Not each 409 says that it is another. */
static void a_delete_that_was_refused_otherwise_is_tried_again(void **state)
{
    struct stage *stage = *state;

    let_in();
    stage_put(stage, "x", "slow: 'true'", "1");
    stage->reconcile = delete_what_is_cached;
    stage->number = 1;
    start_empty(stage);
    stage_must(stage, kinf_fake_fault(stage->fake, "delete configmaps 409 times=1", &stage->err));
    stage_put(stage, "a", "sync: 'true'", "1");
    expect_number(stage, 0);
    assert_false(stage_has(stage, "default/x"));
    assert_int_equal(stage_status(stage).n_conflicts, 1);
}

static int delete_until_it_is_gone(struct stage *stage, struct kinf_call *call,
                                   struct kinf_error *err)
{
    kinf_auto_object const struct kinf_object *object = NULL;

    if (kinf_indexer_get_by_key(kinf_informer_indexer(slow), "default/x", &object) < 0)
        return 0;
    stage->number++;
    kinf_call_requeue_after(call, 0);
    return kinf_call_delete(call, object, err);
}

/* C3: the second try learns that it is gone, and the third call sees that. */
static void a_delete_whose_answer_was_lost_is_seen(void **state)
{
    struct stage *stage = *state;

    stage_put(stage, "x", "slow: 'true'", "1");
    stage->reconcile = delete_until_it_is_gone;
    n_let_in = 1;
    start_empty(stage);
    stage_settle(stage);
    hold_back(stage);
    stage_must(stage, kinf_fake_fault(stage->fake, "delete configmaps reset after=0 times=1",
                                      &stage->err));
    stage_put(stage, "a", "sync: 'true'", "1");
    for (int i = 0; i < PATIENCE_MS && stage->number < 3 && stage_status(stage).n_waits == 0; i++)
        nap(1);
    let_in();
    stage_settle(stage);
    assert_int_equal(stage->number, 2);
}

/* --- status --- */

static int apply_status(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    const struct kinf_type *type;
    struct kinf_str json;
    int rc = kinf_client_find_type(stage->client, "deployments.apps", &type, err);

    if (rc == 0)
        rc = kinf_json_format(&scratch, &json, err,
                              stage->number == 4 ? "{spec:{replicas:9},status:{replicas:?i}}"
                                                 : "{status:{replicas:?i}}",
                              (int64_t)stage->number);
    return rc < 0 ? rc : kinf_call_apply_status(call, type, "default", "d", json, err);
}

static int64_t number_in_d(struct stage *stage, const char *path)
{
    kinf_auto_object const struct kinf_object *object = NULL;
    int64_t number;

    stage_must(stage, kinf_fake_get(stage->fake, "deployments", "default/d", &object, &stage->err));
    stage_must(stage, kinf_object_get_int64(object, path, &number));
    return number;
}

static struct kinf_informer *watch(struct stage *stage, const char *resource, kinf_map_cb *map,
                                   const char *ctx)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_informer *informer;

    options.resource = resource;
    stage_must(stage, kinf_informer_new(stage->client, &options, &informer, &stage->err));
    stage_must(stage, kinf_controller_watch(stage->controller, informer, map,
                                            (void *)(uintptr_t)ctx, &stage->err));
    return informer;
}

static void settle_status(struct stage *stage, int number, const char *value)
{
    char json[64];

    stage->number = number;
    snprintf(json, sizeof json, "{\"data\":{\"value\":\"%s\"}}", value);
    stage_patch(stage, "a", json);
    stage_settle(stage);
}

static void a_status_is_applied_alone_and_once(void **state)
{
    struct stage *stage = *state;
    struct kinf_informer *deployments;
    struct kinf_controller_status before, after;

    let_in();
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_must(stage, kinf_fake_put(
                          stage->fake,
                          "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: "
                          "default}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, "
                          "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, "
                          "image: i}]}}}}",
                          &stage->err));
    stage->reconcile = apply_status;
    stage->options.owner_annotation = "owner"; /* a status has none */
    stage_make(stage);
    deployments = watch(stage, "deployments", kinf_map_annotation, "owner");
    stage_start(stage);
    settle_status(stage, 3, "2");
    assert_int_equal(number_in_d(stage, "status.replicas"), 3);
    before = stage_status(stage);
    settle_status(stage, 3, "3");
    after = stage_status(stage);
    assert_true(after.n_reconciles > before.n_reconciles);
    assert_int_equal(after.n_requests, before.n_requests);
    assert_int_equal(after.n_applies_spared - before.n_applies_spared,
                     after.n_reconciles - before.n_reconciles);
    settle_status(stage, 4, "4");
    assert_int_equal(number_in_d(stage, "status.replicas"), 4);
    assert_int_equal(number_in_d(stage, "spec.replicas"), 1);
    kinf_controller_free(stage->controller);
    stage->controller = NULL;
    kinf_informer_free(deployments);
}

/* One text for the object, one for its status. `number`: what to do before. */
enum before {
    NOTHING,
    PATCH, /* another write */
    SCALE, /* another text for the object */
};

#define WHOLE(replicas)                                                                            \
    KINF_STR("{\"spec\":{\"replicas\":" replicas                                                   \
             ",\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":{"          \
             "\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":"      \
             "\"i\"}]}}}}")

static int apply_both(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    enum before before = (enum before)atomic_exchange(&stage->number, NOTHING);
    const struct kinf_type *type;
    int rc = kinf_client_find_type(stage->client, "deployments.apps", &type, err);

    if (rc == 0 && before == PATCH)
        rc = write_below(stage, call, KINF_VERB_MERGE_PATCH, "deployments.apps", "d", NULL, "{}",
                         err);
    if (rc == 0)
        rc = kinf_call_apply(call, type, "default", "d", before == SCALE ? WHOLE("5") : WHOLE("2"),
                             err);
    return rc < 0 ? rc
                  : kinf_call_apply_status(call, type, "default", "d",
                                           KINF_STR("{\"status\":{\"replicas\":3}}"), err);
}

static uint64_t n_requests_of(struct stage *stage, enum before before, const char *value)
{
    uint64_t n_before = stage_status(stage).n_requests;

    settle_status(stage, (int)before, value);
    return stage_status(stage).n_requests - n_before;
}

static void an_object_and_its_status_are_applied_once_each(void **state)
{
    struct stage *stage = *state;
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;

    let_in();
    options.resource = "deployments";
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_must(stage, kinf_fake_put(stage->fake, SCALABLE("d"), &stage->err));
    stage->reconcile = apply_both;
    make_with(stage, &options);
    stage_start(stage);
    stage_settle(stage);
    assert_int_equal(stage_status(stage).n_requests, 2);
    assert_int_equal(number_in_d(stage, "status.replicas"), 3);
    assert_int_equal(n_requests_of(stage, NOTHING, "2"), 0);
    assert_int_equal(n_requests_of(stage, PATCH, "3"), 3);
    assert_int_equal(n_requests_of(stage, NOTHING, "4"), 0);
    end_with(stage);
}

/* The cache still has the one before, and its status. */
static void what_is_made_anew_gets_its_status_anew(void **state)
{
    struct stage *stage = *state;
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    uint64_t n_before;
    int n_held_back;

    options.resource = "deployments";
    options.transform = wait_to_be_let_in;
    let_in();
    stage_put(stage, "a", "sync: 'true'", "1");
    stage->reconcile = apply_both;
    make_with(stage, &options);
    stage_start(stage);
    stage_settle(stage);
    n_let_in = n_held_back = n_come;
    stage_must(stage, kinf_fake_put(stage->fake, SCALABLE("between"), &stage->err));
    wait_for(&n_come, n_held_back + 1);
    stage_must(stage, kinf_fake_delete(stage->fake, "deployments", "default/d", &stage->err));
    n_before = stage_status(stage).n_requests;
    stage->number = SCALE;
    stage_patch(stage, "a", "{\"data\":{\"value\":\"2\"}}");
    for (int i = 0; i < PATIENCE_MS && stage_status(stage).n_requests < n_before + 2; i++)
        nap(1);
    assert_int_equal(stage_status(stage).n_requests, n_before + 2);
    let_in();
    stage_settle(stage);
    assert_int_equal(number_in_d(stage, "status.replicas"), 3);
    end_with(stage);
}

/* --- maps --- */

static _Atomic(int) n_of_one, n_of_two;

static int count_names(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    (void)ctx;
    (void)err;
    n_of_one += strcmp(kinf_call_key(call), "one") == 0;
    n_of_two += strcmp(kinf_call_key(call), "two") == 0;
    return 0;
}

static void put_member(struct stage *stage, const char *of)
{
    char label[32];

    snprintf(label, sizeof label, "of: '%s'", of);
    stage_put(stage, "member", label, "1");
    stage_settle(stage);
}

/* C2: the value of a label has no '/': it names what has no namespace. */
static void a_label_names_its_old_and_its_new_key(void **state)
{
    struct stage *stage = *state;
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_informer *namespaces, *members;

    options.resource = "namespaces";
    stage_must(stage, kinf_informer_new(stage->client, &options, &namespaces, &stage->err));
    stage->options.informer = namespaces;
    stage->options.reconcile = count_names;
    stage_must(stage,
               kinf_fake_put(stage->fake,
                             "{apiVersion: v1, kind: Namespace, metadata: {name: one}}\n---\n"
                             "{apiVersion: v1, kind: Namespace, metadata: {name: two}}",
                             &stage->err));
    stage_must(stage, kinf_controller_new(stage->client, &stage->options, &stage->controller,
                                          &stage->err));
    members = watch(stage, "configmaps", kinf_map_label, "of");
    stage_start(stage);
    stage_settle(stage);
    n_of_one = n_of_two = 0;
    put_member(stage, "one");
    assert_true(n_of_one == 1 && n_of_two == 0);
    put_member(stage, "two");
    assert_true(n_of_one == 2 && n_of_two == 1);
    stage_delete(stage, "default/member");
    stage_settle(stage);
    assert_true(n_of_one == 2 && n_of_two == 2);
    kinf_controller_free(stage->controller);
    stage->controller = NULL;
    kinf_informer_free(members);
    kinf_informer_free(namespaces);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, begin, end)
        T(what_the_server_has_named_is_waited_for),
        T(what_has_left_before_it_came_is_waited_for),
        T(what_changes_nothing_hides_no_write_before_it),
        T(what_the_caches_have_is_forgotten_without_another_call),
        T(a_scale_is_waited_for),
        T(a_patched_scale_is_waited_for),
        T(a_scale_of_what_an_informer_does_not_have_is_not_waited_for),
        T(a_token_is_no_write_to_its_account),
        T(an_eviction_is_not_waited_for),
        T(what_the_cache_keeps_no_annotation_of_is_ours_all_the_same),
        T(of_what_no_informer_selects_nothing_is_remembered),
        T(what_another_has_made_since_is_left_alone),
        T(a_refusal_that_could_not_be_looked_into_is_not_for_good),
        T(what_was_deleted_since_is_made_anew_when_the_cache_knows),
        T(a_delete_is_of_the_very_object),
        T(a_delete_that_was_refused_otherwise_is_tried_again),
        T(a_delete_whose_answer_was_lost_is_seen),
        T(a_status_is_applied_alone_and_once),
        T(an_object_and_its_status_are_applied_once_each),
        T(what_is_made_anew_gets_its_status_anew),
        T(a_label_names_its_old_and_its_new_key),
#undef T
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
