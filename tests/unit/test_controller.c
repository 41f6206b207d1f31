/*
 * A controller against a server in this process: what kinformer/controller.h promises.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "informer/informer.h"
#include "unit/allocation.h"
#include "unit/controller_fixture.h"
#include "unit/test.h"

static void nap(int64_t ms)
{
    const struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };

    nanosleep(&pause, NULL);
}

/* --- what is called --- */

static int copy(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    char value[64] = "", name[300];

    (void)stage;
    (void)!kinf_object_get_string(kinf_call_object(call), "data.value", value, sizeof value);
    snprintf(name, sizeof name, "copy-of-%s", kinf_object_name(kinf_call_object(call)));
    return stage_apply(call, name, value, err);
}

static int delete_copy(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    kinf_auto_object const struct kinf_object *object = NULL;
    char key[300];

    snprintf(key, sizeof key, "default/copy-of-%s", strchr(kinf_call_key(call), '/') + 1);
    if (kinf_indexer_get_by_key(kinf_informer_indexer(stage->copies), key, &object) < 0)
        return 0;
    return kinf_call_delete(call, object, err);
}

/* C2, C5 */
static void reconciles_what_is_there_and_what_changes(void **state)
{
    struct stage *stage = *state;

    stage_put(stage, "a", "sync: 'true'", "1");
    stage_put(stage, "other", "", "1");
    stage->reconcile = copy;
    stage_start(stage);
    stage_settle(stage);
    assert_string_equal(stage_value(stage, "default/copy-of-a"), "1");
    stage_put(stage, "b", "sync: 'true'", "2");
    stage_put(stage, "a", "sync: 'true'", "3");
    stage_settle(stage);
    assert_string_equal(stage_value(stage, "default/copy-of-a"), "3");
    assert_string_equal(stage_value(stage, "default/copy-of-b"), "2");
    assert_false(stage_has(stage, "default/copy-of-other"));
    /* Of the other state, too: what was changed by hand is put right. */
    stage_put(stage, "copy-of-b", "sync-copy: 'true'", "changed");
    stage_settle(stage);
    assert_string_equal(stage_value(stage, "default/copy-of-b"), "2");
    stage_delete(stage, "default/copy-of-b");
    stage_settle(stage);
    assert_string_equal(stage_value(stage, "default/copy-of-b"), "2");
}

static void applying_what_is_so_sends_nothing(void **state)
{
    struct stage *stage = *state;
    struct kinf_controller_status before, after;

    stage->reconcile = copy;
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_settle(stage);
    before = stage_status(stage);
    stage_patch(stage, "a", "{\"data\":{\"other\":\"x\"}}");
    stage_settle(stage);
    after = stage_status(stage);
    assert_true(after.n_reconciles > before.n_reconciles);
    assert_int_equal(after.n_requests, before.n_requests);
    assert_true(after.n_applies_spared > before.n_applies_spared);
}

static int copy_once_and_look(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    kinf_auto_object const struct kinf_object *object = NULL;
    char now[64] = "0", next[64];
    int rc;

    (void)!kinf_indexer_get_by_key(kinf_informer_indexer(stage->copies), "default/counter",
                                   &object);
    if (object != NULL)
        (void)!kinf_object_get_string(object, "data.value", now, sizeof now);
    /* Nobody else writes it: the cache must have the last one. */
    if (atoi(now) != stage->number)
        return kinf_error_set(err, KINF_ERR_INVALID, "the cache has %s, not %d", now,
                              stage->number);
    if (stage->number >= 50)
        return 0;
    snprintf(next, sizeof next, "%d", stage->number + 1);
    rc = stage_apply(call, "counter", next, err);
    if (rc == 0)
        stage->number++;
    kinf_call_requeue_after(call, 0);
    return rc;
}

/* C3 */
static void a_call_sees_what_the_last_one_wrote(void **state)
{
    struct stage *stage = *state;

    stage->reconcile = copy_once_and_look;
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    for (int i = 0; i < STAGE_PATIENCE_MS && stage->number < 50; i++)
        nap(5);
    stage_settle(stage);
    assert_int_equal(stage->number, 50);
    assert_int_equal(stage_status(stage).n_invalid, 0);
    assert_true(stage_status(stage).n_waits >= 49);
    assert_int_equal(stage_status(stage).n_wait_timeouts, 0);
}

/* C3: the watch hangs, so the cache does not get there. */
static void old_data_is_not_acted_upon(void **state)
{
    struct stage *stage = *state;

    stage->reconcile = copy_once_and_look;
    stage_make(stage);
    stage_must(stage, kinf_fake_fault(stage->fake, "watch configmaps stall after=0", &stage->err));
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_start(stage);
    for (int i = 0; i < STAGE_PATIENCE_MS && stage->number < 1; i++)
        nap(5);
    for (int i = 0; i < STAGE_PATIENCE_MS && stage_status(stage).n_wait_timeouts == 0; i++)
        kinf_fake_advance(stage->fake, 1000);
    assert_int_equal(stage->number, 1);
    assert_int_equal(stage->n_reconciles, 1);
    kinf_fake_clear_faults(stage->fake);
    kinf_fake_drop(stage->fake);
    for (int i = 0; i < STAGE_PATIENCE_MS && stage->number < 50; i++) {
        kinf_fake_advance(stage->fake, 1000);
        nap(5);
    }
    assert_int_equal(stage->number, 50);
    assert_int_equal(stage_status(stage).n_invalid, 0);
}

/* --- calls --- */

static _Atomic(int) n_inside, n_at_once;

static int be_slow(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    (void)call;
    (void)err;
    if (++n_inside > 1)
        n_at_once++;
    for (int i = 0; i < STAGE_PATIENCE_MS && stage->number == 0; i++)
        nap(1);
    n_inside--;
    return 0;
}

/* Until the controller knows of the object as the server has it. */
static void wait_told(struct stage *stage, const char *key)
{
    kinf_auto_object const struct kinf_object *object = stage_get(stage, key);

    assert_non_null(object);
    for (int i = 0; i < 5000; i++) {
        if (kinf__informer_is_settled(stage->sources, kinf_object_resource_version(object)))
            return;
        nap(1);
    }
    fail_msg("%s is not told", key);
}

/* C1 */
static void changes_during_a_call_wait_for_its_end_and_are_one(void **state)
{
    struct stage *stage = *state;

    n_inside = n_at_once = 0;
    stage->options.n_workers = 4;
    stage->reconcile = be_slow;
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    for (int i = 0; i < STAGE_PATIENCE_MS && n_inside == 0; i++)
        nap(1);
    stage_put(stage, "a", "sync: 'true'", "2");
    stage_put(stage, "a", "sync: 'true'", "3");
    wait_told(stage, "default/a");
    assert_int_equal(stage->n_reconciles, 1);
    stage->number = 1;
    stage_settle(stage);
    assert_int_equal(stage->n_reconciles, 2);
    assert_int_equal(n_at_once, 0);
}

static int say_stopped(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    (void)call;
    return stage->n_reconciles < 4 ? kinf_error_set(err, KINF_ERR_STOPPED, "not so") : 0;
}

static void who_says_stopped_is_called_again_and_has_not_failed(void **state)
{
    struct stage *stage = *state;

    stage->reconcile = say_stopped;
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    for (int i = 0; i < STAGE_PATIENCE_MS && stage->n_reconciles < 4; i++)
        nap(1);
    stage_settle(stage);
    assert_int_equal(stage->n_reconciles, 4);
    assert_int_equal(stage_status(stage).n_stopped, 3);
    assert_int_equal(stage_status(stage).n_other_errors, 0);
}

static void every_object_is_called_for_each_resync_and_keys_may_be_added_by_hand(void **state)
{
    struct stage *stage = *state;

    stage->options.resync_period_ms = 60000;
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_put(stage, "b", "sync: 'true'", "1");
    stage_settle(stage);
    assert_int_equal(stage->n_reconciles, 2);
    kinf_fake_advance(stage->fake, 62000);
    for (int i = 0; i < STAGE_PATIENCE_MS && stage->n_reconciles < 4; i++)
        nap(1);
    assert_int_equal(stage->n_reconciles, 4);
    stage_must(stage,
               kinf_queue_add(kinf_controller_queue(stage->controller), "default/a", &stage->err));
    stage_settle(stage);
    assert_int_equal(stage->n_reconciles, 5);
}

/* --- deletion --- */

static bool has_finalizer(struct stage *stage, const char *key, const char *finalizer)
{
    kinf_auto_object const struct kinf_object *object = stage_get(stage, key);
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str json;

    return object != NULL &&
           kinf_object_get_json(object, "metadata.finalizers", &scratch, &json) == 0 &&
           memmem(json.bytes, json.len, finalizer, strlen(finalizer)) != NULL;
}

static int must_have_finalizer(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    return kinf_object_has(kinf_call_object(call), "metadata.finalizers")
               ? copy(stage, call, err)
               : kinf_error_set(err, KINF_ERR_INVALID, "no finalizer");
}

/* C4, C5 */
static void a_finalizer_is_there_before_and_goes_after(void **state)
{
    struct stage *stage = *state;

    stage->options.finalizer = "example.org/test";
    stage->reconcile = must_have_finalizer;
    stage->cleanup = delete_copy;
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_put(stage, "b", "sync: 'true'", "1");
    stage_patch(stage, "b", "{\"metadata\":{\"finalizers\":[\"example.org/other\"]}}");
    stage_start(stage);
    stage_settle(stage);
    assert_int_equal(stage_status(stage).n_invalid, 0);
    assert_true(has_finalizer(stage, "default/a", "example.org/test"));
    assert_true(has_finalizer(stage, "default/b", "example.org/test"));
    assert_true(has_finalizer(stage, "default/b", "example.org/other"));
    stage_delete(stage, "default/a");
    stage_delete(stage, "default/b");
    stage_settle(stage);
    assert_false(stage_has(stage, "default/a"));
    assert_false(stage_has(stage, "default/copy-of-a"));
    assert_false(stage_has(stage, "default/copy-of-b"));
    assert_true(has_finalizer(stage, "default/b", "example.org/other"));
    assert_false(has_finalizer(stage, "default/b", "example.org/test"));
    stage_patch(stage, "b", "{\"metadata\":{\"finalizers\":null}}");
    stage_settle(stage);
    assert_false(stage_has(stage, "default/b"));
}

/* That it is gone will be told. */
static void what_goes_before_it_has_its_finalizer_is_no_failure(void **state)
{
    struct stage *stage = *state;

    stage->options.finalizer = "example.org/cleanup";
    stage_must(stage, kinf_fake_fault(stage->fake, "patch configmaps 404 times=1", &stage->err));
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    for (int i = 0; i < STAGE_PATIENCE_MS && stage->n_reconciles == 0; i++)
        nap(1);
    stage_settle(stage);
    assert_int_equal(stage->n_reconciles, 1);
    assert_int_equal(stage_status(stage).n_other_errors, 0);
    assert_int_equal(stage_status(stage).n_conflicts, 1);
}

static int wait_to_go_on(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    (void)call;
    (void)err;
    while (stage->number == 0)
        nap(1);
    return 0;
}

/* As of any conflict: upon the same old object it would fail again. */
static void a_finalizer_in_conflict_waits_for_another_version(void **state)
{
    struct kinf_controller_status status = { .n_waits = 0 };
    struct stage *stage = *state;

    stage->options.finalizer = "example.org/cleanup";
    stage->reconcile = wait_to_go_on;
    stage_make(stage);
    stage_must(stage, kinf_fake_fault(stage->fake, "watch configmaps stall after=0", &stage->err));
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_patch(stage, "a", "{\"metadata\":{\"finalizers\":[\"example.org/cleanup\"]}}");
    stage_put(stage, "z", "sync: 'true'", "1");
    stage_start(stage);
    while (stage->n_reconciles == 0)
        nap(1);
    stage_patch(stage, "z", "{\"data\":{\"value\":\"2\"}}");
    stage->number = 1;
    for (; status.n_conflicts < 2 && status.n_waits == 0; status = stage_status(stage))
        nap(1);
    assert_int_equal(status.n_conflicts, 1);
    kinf_fake_clear_faults(stage->fake);
    kinf_fake_drop(stage->fake);
    for (int i = 0;
         i < STAGE_PATIENCE_MS && !has_finalizer(stage, "default/z", "example.org/cleanup"); i++) {
        kinf_fake_advance(stage->fake, 1000);
        nap(5);
    }
    assert_true(has_finalizer(stage, "default/z", "example.org/cleanup"));
}

/* C5: what the server has against it is no conflict, if the object is as it was. */
static void a_finalizer_that_is_refused_is_not_tried_for_ever(void **state)
{
    struct stage *stage = *state;

    stage->options.finalizer = "example.org/cleanup";
    stage_must(stage, kinf_fake_fault(stage->fake, "patch configmaps 422 times=1", &stage->err));
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    for (int i = 0; i < STAGE_PATIENCE_MS && stage_status(stage).n_invalid == 0; i++)
        nap(1);
    stage_settle(stage);
    assert_int_equal(stage_status(stage).n_invalid, 1);
    assert_int_equal(stage_status(stage).n_conflicts, 0);
    assert_int_equal(stage->n_reconciles, 0);
    stage_patch(stage, "a", "{\"data\":{\"value\":\"2\"}}");
    stage_settle(stage);
    assert_int_equal(stage->n_reconciles, 1);
}

/* C5 */
static void who_loses_the_label_is_cleaned_up(void **state)
{
    struct stage *stage = *state;

    stage->options.finalizer = "example.org/test";
    stage->reconcile = copy;
    stage->cleanup = delete_copy;
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_settle(stage);
    assert_true(stage_has(stage, "default/copy-of-a"));
    stage_patch(stage, "a", "{\"metadata\":{\"labels\":{\"sync\":null}}}");
    stage_settle(stage);
    assert_false(stage_has(stage, "default/copy-of-a"));
    assert_true(stage_has(stage, "default/a"));
    assert_false(has_finalizer(stage, "default/a", "example.org/test"));
    assert_int_equal(stage->n_cleanups_gone, 0);
    stage_patch(stage, "a", "{\"metadata\":{\"labels\":{\"sync\":\"true\"}}}");
    stage_settle(stage);
    assert_true(stage_has(stage, "default/copy-of-a"));
}

static void without_a_finalizer_cleanup_has_no_object(void **state)
{
    struct stage *stage = *state;

    stage->reconcile = copy;
    stage->cleanup = delete_copy;
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_settle(stage);
    stage_delete(stage, "default/a");
    stage_settle(stage);
    assert_false(stage_has(stage, "default/copy-of-a"));
    assert_true(stage->n_cleanups_gone > 0);
}

static int delete_myself(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    if (stage->number++ == 0)
        (void)!kinf_fake_delete(stage->fake, "configmaps", kinf_call_key(call), NULL);
    return copy(stage, call, err);
}

static void what_is_deleted_while_it_is_reconciled_is_cleaned_up(void **state)
{
    struct stage *stage = *state;

    stage->options.finalizer = "example.org/test";
    stage->reconcile = delete_myself;
    stage->cleanup = delete_copy;
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_settle(stage);
    assert_false(stage_has(stage, "default/a"));
    assert_false(stage_has(stage, "default/copy-of-a"));
}

/* --- errors --- */

static int fail_for_ever(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    (void)call;
    stage->number++;
    return kinf_error_set(err, KINF_ERR_NETWORK, "no luck");
}

static void what_fails_for_ever_is_tried_ever_more_rarely(void **state)
{
    struct stage *stage = *state;
    int n;

    stage->reconcile = fail_for_ever;
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_put(stage, "b", "", "1");
    for (int i = 0; i < 10; i++)
        kinf_fake_advance(stage->fake, 10000);
    n = stage->number;
    assert_in_range(n, 8, 40);
    assert_int_equal(stage_status(stage).n_other_errors, n);
    stage->reconcile = NULL;
    for (int i = 0; i < 20; i++)
        kinf_fake_advance(stage->fake, 100000);
    stage_settle(stage);
    assert_int_equal(stage_status(stage).queue.n_keys, 0);
}

static int find_a_foreign_one(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    (void)call;
    stage->number++;
    return kinf_error_set(err, KINF_ERR_EXISTS, "not ours");
}

static _Atomic(int) n_told;

static void note_line(enum kinf_log_level level, const char *module, const char *line, void *ctx)
{
    (void)module;
    (void)ctx;
    n_told += level == KINF_LOG_WARN && strstr(line, "not ours") != NULL &&
              strstr(line, "code=EXISTS") != NULL;
}

/* The first are as a rule of a cache that is behind. */
static void a_conflict_that_stays_is_said(void **state)
{
    struct stage *stage = *state;

    n_told = 0;
    kinf_log_set_callback(note_line, NULL);
    stage->reconcile = find_a_foreign_one;
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    for (int i = 0; i < 10; i++)
        kinf_fake_advance(stage->fake, 10000);
    stage_stop(stage);
    kinf_log_set_callback(NULL, NULL);
    assert_in_range(n_told, 1, stage->number - 3);
}

static int fail_invalid(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    static const struct kinf_type type = { "", "v1", "ConfigMap", "configmaps", true };
    const struct kinf_type *found;
    int rc =
        kinf_type_intern(type.group, type.version, type.kind, type.resource, true, &found, err);

    (void)stage;
    return rc < 0 ? rc
                  : kinf_call_apply(call, found, "default", "Not A Name", KINF_STR("{\"data\":{}}"),
                                    err);
}

static void what_is_not_acceptable_is_not_tried_until_it_changes(void **state)
{
    struct stage *stage = *state;
    int n;

    stage->reconcile = fail_invalid;
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_settle(stage);
    kinf_fake_advance(stage->fake, 100000);
    stage_settle(stage);
    n = stage->n_reconciles;
    assert_int_equal(stage_status(stage).n_invalid, n);
    assert_in_range(n, 1, 2);
    stage_put(stage, "a", "sync: 'true'", "2");
    stage_settle(stage);
    assert_true(stage->n_reconciles > n);
}

static int put_off(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    (void)call;
    if (stage->number++ != 0)
        return 0;
    kinf_error_set(err, KINF_ERR_TOO_MANY_REQUESTS, "later");
    err->retry_after_ms = 30000;
    return KINF_ERR_TOO_MANY_REQUESTS;
}

static void a_time_to_come_back_is_obeyed(void **state)
{
    struct stage *stage = *state;

    stage->reconcile = put_off;
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_settle(stage);
    kinf_fake_advance(stage->fake, 25000);
    stage_settle(stage);
    assert_int_equal(stage->number, 1);
    assert_int_equal(stage_status(stage).n_put_off, 1);
    kinf_fake_advance(stage->fake, 10000);
    nap(20);
    stage_settle(stage);
    assert_int_equal(stage->number, 2);
}

/* An update of what the cache has, while another writes it. */
static int update_old(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_request request = KINF_REQUEST_INIT;
    const struct kinf_object *object = kinf_call_object(call);

    if (stage->number++ == 0)
        stage_patch(stage, "a", "{\"data\":{\"other\":\"x\"}}");
    request.verb = KINF_VERB_UPDATE;
    request.type = kinf_object_type(object);
    request.name_space = "default";
    request.name = "a";
    if (stage->number > 2 || kinf_object_full_json(object, &scratch, &request.body, err) < 0)
        return 0;
    return kinf_call_request(call, &request, NULL, err);
}

static void after_a_conflict_the_newer_version_is_seen(void **state)
{
    struct stage *stage = *state;

    stage->reconcile = update_old;
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_settle(stage);
    nap(50);
    stage_settle(stage);
    assert_int_equal(stage_status(stage).n_conflicts, 1);
    assert_int_equal(stage_status(stage).n_other_errors, 0);
    assert_true(stage->number >= 2);
}

static int come_back(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    (void)err;
    stage->number++;
    kinf_call_requeue_after(call, 60000);
    return 0;
}

static void a_key_comes_back_when_it_was_asked_to(void **state)
{
    struct stage *stage = *state;

    stage->reconcile = come_back;
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_settle(stage);
    assert_int_equal(stage->number, 1);
    kinf_fake_advance(stage->fake, 61000);
    nap(20);
    stage_settle(stage);
    assert_int_equal(stage->number, 2);
}

/* --- maps --- */

static _Atomic(int) n_failures_left;

static int map_without_memory(const struct kinf_object *object, struct kinf_keys *keys, void *ctx)
{
    char key[64];
    int rc;

    (void)ctx;
    snprintf(key, sizeof key, "default/lost-%s", kinf_object_name(object));
    if (n_failures_left > 0) {
        n_failures_left--;
        test_fail_allocation(1);
    }
    rc = kinf_keys_add(keys, key);
    test_fail_allocation(0);
    return rc;
}

/* C2 */
static void want_of_memory_loses_no_key(void **state)
{
    struct stage *stage = *state;

    stage_make(stage);
    stage_must(stage, kinf_controller_watch(stage->controller, stage->copies, map_without_memory,
                                            NULL, &stage->err));
    n_failures_left = 3;
    stage_put(stage, "x", "sync-copy: 'true'", "1");
    stage_start(stage);
    for (int i = 0; i < STAGE_PATIENCE_MS && stage->n_cleanups_gone == 0; i++)
        nap(2);
    assert_int_equal(n_failures_left, 0);
    assert_int_equal(stage->n_cleanups_gone, 1);
}

/* C2 */
static void maps_name_the_owner_that_controls(void **state)
{
    struct stage *stage = *state;
    kinf_auto_object const struct kinf_object *a = NULL;
    kinf_auto_object const struct kinf_object *b = NULL;
    char manifest[1024];
    const struct kinf_type *type;
    int n;

    stage_must(stage, kinf_client_find_type(stage->client, "configmaps", &type, &stage->err));
    stage_make(stage);
    stage_must(stage, kinf_controller_watch(stage->controller, stage->copies, kinf_map_owner,
                                            (void *)(uintptr_t)type, &stage->err));
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_put(stage, "b", "sync: 'true'", "1");
    stage_settle(stage);
    n = stage->n_reconciles;
    a = stage_get(stage, "default/a");
    b = stage_get(stage, "default/b");
    snprintf(manifest, sizeof manifest,
             "{apiVersion: v1, kind: ConfigMap, metadata: {name: other-group, namespace: default, "
             "labels: {sync-copy: 'true'}, ownerReferences: [{apiVersion: apps/v1, kind: "
             "ConfigMap, name: b, uid: '%s', controller: true}]}}\n---\n"
             "{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, namespace: default, "
             "labels: {sync-copy: 'true'}, ownerReferences: [{apiVersion: v1, kind: ConfigMap, "
             "name: b, uid: '%s'}, {apiVersion: v1, kind: ConfigMap, name: a, uid: '%s', "
             "controller: true}]}}",
             kinf_object_uid(b), kinf_object_uid(b), kinf_object_uid(a));
    stage_must(stage, kinf_fake_put(stage->fake, manifest, &stage->err));
    stage_settle(stage);
    assert_int_equal(stage->n_reconciles, n + 1);
}

static void all_are_named_when_one_comes_or_goes(void **state)
{
    struct stage *stage = *state;

    stage_make(stage);
    stage_must(stage, kinf_controller_watch(stage->controller, stage->copies, kinf_map_all,
                                            stage->sources, &stage->err));
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_put(stage, "b", "sync: 'true'", "1");
    stage_start(stage);
    stage_settle(stage);
    assert_int_equal(stage->n_reconciles, 2);
    stage_put(stage, "x", "sync-copy: 'true'", "1");
    stage_settle(stage);
    assert_int_equal(stage->n_reconciles, 4);
    stage_put(stage, "x", "sync-copy: 'true'", "2");
    stage_settle(stage);
    assert_int_equal(stage->n_reconciles, 4);
    stage_delete(stage, "default/x");
    stage_settle(stage);
    assert_int_equal(stage->n_reconciles, 6);
}

/* --- the end --- */

static int stop_from_inside(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    (void)call;
    stage->number = kinf_controller_stop(stage->controller, err);
    return 0;
}

static void stopping_from_a_callback_is_refused(void **state)
{
    struct stage *stage = *state;

    stage->reconcile = stop_from_inside;
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_settle(stage);
    assert_int_equal(stage->number, KINF_ERR_STATE);
}

struct pair {
    struct kinf_controller *controllers[2];
    /* atomic */
    _Atomic(int) n_there; /* callbacks that run */
    _Atomic(int) n_refused, n_stopped;
};

struct side {
    struct pair *pair;
    int other;
};

static int stop_the_other(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    const struct side *side = ctx;
    struct pair *pair = side->pair;

    (void)call;
    pair->n_there++;
    while (pair->n_there < 2)
        nap(1);
    if (kinf_controller_stop(pair->controllers[side->other], err) == KINF_ERR_STATE)
        pair->n_refused++;
    else
        pair->n_stopped++;
    return 0;
}

static void two_that_stop_each_other_do_not_wait_for_ever(void **state)
{
    struct kinf_controller_options options = KINF_CONTROLLER_OPTIONS_INIT;
    struct pair pair = { .n_there = 0 };
    struct side sides[] = { { &pair, 1 }, { &pair, 0 } };
    struct stage *stage = *state;

    alarm(120);
    stage_make(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    options.name = "pair";
    options.informer = stage->sources;
    options.reconcile = stop_the_other;
    for (int i = 0; i < 2; i++) {
        options.ctx = &sides[i];
        stage_must(stage,
                   kinf_controller_new(stage->client, &options, &pair.controllers[i], &stage->err));
    }
    stage_must(stage, kinf_informer_start(stage->sources, &stage->err));
    for (int i = 0; i < 2; i++)
        stage_must(stage, kinf_controller_start(pair.controllers[i], &stage->err));
    while (pair.n_refused + pair.n_stopped < 2)
        nap(1);
    assert_int_equal(pair.n_refused, 1);
    for (int i = 0; i < 2; i++)
        kinf_controller_free(pair.controllers[i]);
    alarm(0);
}

static int hang(struct stage *stage, struct kinf_call *call, struct kinf_error *err)
{
    int rc;

    stage->number = 1;
    rc = stage_apply(call, "hangs", "1", err);
    stage->number = rc;
    return rc;
}

/* C7 */
static void stop_gives_up_requests(void **state)
{
    struct stage *stage = *state;
    int64_t began_ms;

    stage->reconcile = hang;
    stage_must(stage, kinf_fake_fault(stage->fake, "patch configmaps hang", &stage->err));
    stage_start(stage);
    stage_put(stage, "a", "sync: 'true'", "1");
    for (int i = 0; i < STAGE_PATIENCE_MS && stage->number == 0; i++)
        nap(1);
    nap(20);
    began_ms = kinf__clock_now_ms();
    stage_must(stage, kinf_controller_stop(stage->controller, &stage->err));
    assert_true(kinf__clock_now_ms() - began_ms < 1000);
    assert_int_equal(stage->number, KINF_ERR_STOPPED);
    assert_int_equal(stage_status(stage).n_other_errors, 0);
    stage_must(stage, kinf_controller_stop(stage->controller, &stage->err));
    assert_int_equal(kinf_controller_start(stage->controller, NULL), KINF_ERR_STATE);
}

static void stops_in_any_state(void **state)
{
    struct stage *stage = *state;

    stage_make(stage);
    stage_stop(stage);
    stage_must(stage, kinf_fake_fault(stage->fake, "list,watch configmaps hang", &stage->err));
    stage_start(stage);
    assert_false(stage_status(stage).is_active);
    stage_stop(stage);
    kinf_fake_clear_faults(stage->fake);
    stage_start(stage);
    stage_stop(stage);
}

static void informers_are_not_freed_before_their_controller(void **state)
{
    struct stage *stage = *state;

    stage->reconcile = copy;
    stage_start(stage);
    kinf_informer_free(stage->sources);
    kinf_informer_free(stage->copies);
    stage_put(stage, "a", "sync: 'true'", "1");
    stage_settle(stage);
    assert_string_equal(stage_value(stage, "default/copy-of-a"), "1");
    stage_must(stage, kinf_controller_stop(stage->controller, &stage->err));
    kinf_informer_free(KINF__TAKE(stage->sources));
    kinf_informer_free(KINF__TAKE(stage->copies));
}

static int count_call(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    struct stage *stage = ctx;

    (void)call;
    (void)err;
    stage->n_reconciles++;
    return 0;
}

/* A controller of all ConfigMaps, whose informer is a factory's. */
static void make_with_factory(struct stage *stage)
{
    struct kinf_informer_options sources = KINF_INFORMER_OPTIONS_INIT;

    sources.resource = "configmaps";
    stage->options.reconcile = count_call;
    stage->options.ctx = stage;
    stage_must(stage, kinf_factory_new(stage->client, &stage->options.factory, &stage->err));
    stage_must(stage, kinf_factory_informer(stage->options.factory, &sources,
                                            &stage->options.informer, &stage->err));
    stage_must(stage, kinf_controller_new(stage->client, &stage->options, &stage->controller,
                                          &stage->err));
}

static void an_informer_beside_the_factory_is_started_too(void **state)
{
    struct kinf_informer_options secrets = KINF_INFORMER_OPTIONS_INIT;
    struct stage *stage = *state;

    make_with_factory(stage);
    secrets.resource = "secrets";
    stage_must(stage, kinf_informer_new(stage->client, &secrets, &stage->copies, &stage->err));
    stage_must(stage, kinf_controller_watch(stage->controller, stage->copies, kinf_map_annotation,
                                            (void *)"owner", &stage->err));
    stage_put(stage, "a", "", "1");
    stage_must(stage, kinf_controller_start(stage->controller, &stage->err));
    for (int i = 0; i < STAGE_PATIENCE_MS && stage->n_reconciles == 0; i++)
        nap(1);
    assert_int_equal(stage->n_reconciles, 1);
    stage_must(stage, kinf_controller_stop(stage->controller, &stage->err));
    assert_int_equal(kinf_informer_start(stage->copies, NULL), KINF_ERR_STATE);
    kinf_factory_free(stage->options.factory);
}

/* Not one that does not run yet: nobody would start it. */
static void a_lent_informer_that_runs_is_used_and_not_freed(void **state)
{
    struct kinf_informer_options sources = KINF_INFORMER_OPTIONS_INIT;
    const char *const names[] = { "default", "other" };
    struct stage *stage = *state;
    struct kinf_namespaces *namespaces;

    sources.resource = "configmaps";
    stage_must(stage,
               kinf_namespaces_new(stage->client, &sources, names, 2, &namespaces, &stage->err));
    stage->options.informer = kinf_namespaces_informer(namespaces, "default");
    stage->options.reconcile = count_call;
    stage->options.ctx = stage;
    for (int i = 0; i < 2; i++) {
        kinf_controller_free(stage->controller);
        stage_must(stage, kinf_controller_new(stage->client, &stage->options, &stage->controller,
                                              &stage->err));
        assert_int_equal(kinf_controller_start(stage->controller, &stage->err),
                         i == 0 ? KINF_ERR_STATE : 0);
        if (i == 0)
            stage_must(stage, kinf_namespaces_start(namespaces, &stage->err));
    }
    kinf_namespaces_free(namespaces);
    stage_put(stage, "a", "", "1");
    stage_settle(stage);
    assert_int_equal(stage->n_reconciles, 1);
    stage_must(stage, kinf_controller_stop(stage->controller, &stage->err));
    assert_true(kinf_namespaces_has_synced(namespaces));
    kinf_namespaces_free(namespaces);
}

/* The other goes on; the last ends what they have in common. */
static void assert_one_goes_on_without_the_other(struct stage *stage)
{
    struct kinf_informer_status status;
    struct kinf_controller *other;

    stage_must(stage, kinf_controller_new(stage->client, &stage->options, &other, &stage->err));
    stage_must(stage, kinf_controller_start(other, &stage->err));
    stage_must(stage, kinf_controller_start(stage->controller, &stage->err));
    stage_put(stage, "a", "", "1");
    stage_settle(stage);
    assert_int_equal(stage->n_reconciles, 2);
    kinf_controller_free(other);
    stage_put(stage, "b", "", "1");
    stage_settle(stage);
    assert_int_equal(stage->n_reconciles, 3);
    stage_must(stage, kinf_controller_stop(stage->controller, &stage->err));
    kinf_informer_status(stage->options.informer, &status);
    assert_int_equal(status.state, KINF_STATE_STOPPED);
}

static void of_two_with_one_informer_the_last_stops_it(void **state)
{
    struct kinf_informer_options sources = KINF_INFORMER_OPTIONS_INIT;
    struct stage *stage = *state;

    sources.resource = "configmaps";
    stage->options.reconcile = count_call;
    stage->options.ctx = stage;
    stage_must(stage,
               kinf_informer_new(stage->client, &sources, &stage->options.informer, &stage->err));
    stage_must(stage, kinf_controller_new(stage->client, &stage->options, &stage->controller,
                                          &stage->err));
    assert_one_goes_on_without_the_other(stage);
    kinf_informer_free(stage->options.informer);
}

static void of_two_with_one_factory_the_last_shuts_it_down(void **state)
{
    struct stage *stage = *state;

    make_with_factory(stage);
    assert_one_goes_on_without_the_other(stage);
    kinf_factory_free(stage->options.factory);
}

static void a_factory_is_not_freed_before_its_controller(void **state)
{
    struct stage *stage = *state;

    make_with_factory(stage);
    stage_must(stage, kinf_controller_start(stage->controller, &stage->err));
    kinf_factory_free(stage->options.factory);
    stage_put(stage, "a", "", "1");
    stage_settle(stage);
    assert_int_equal(stage->n_reconciles, 1);
    stage_must(stage, kinf_controller_stop(stage->controller, &stage->err));
    kinf_factory_free(stage->options.factory);
}

static void run_tells_of_a_refusal(void **state)
{
    struct stage *stage = *state;

    stage_make(stage);
    stage_must(stage, kinf_fake_fault(stage->fake, "list,watch configmaps 403", &stage->err));
    assert_int_equal(kinf_controller_run(stage->controller, 600000, &stage->err),
                     KINF_ERR_FORBIDDEN);
}

static void options_that_cannot_be_meant_are_refused(void **state)
{
    struct stage *stage = *state;
    struct kinf_controller_options options;
    struct kinf_controller *controller;

    stage_make(stage);
    options = stage->options;
    options.name = NULL;
    assert_int_equal(kinf_controller_new(stage->client, &options, &controller, NULL),
                     KINF_ERR_INVALID);
    options = stage->options;
    options.reconcile = NULL;
    assert_int_equal(kinf_controller_new(stage->client, &options, &controller, NULL),
                     KINF_ERR_INVALID);
    options = stage->options;
    options.finalizer = "nodomain";
    assert_int_equal(kinf_controller_new(stage->client, &options, &controller, NULL),
                     KINF_ERR_INVALID);
    options.finalizer = "example.org/x";
    options.cleanup = NULL;
    assert_int_equal(kinf_controller_new(stage->client, &options, &controller, NULL),
                     KINF_ERR_INVALID);
    options = stage->options;
    options.n_workers = 1001;
    assert_int_equal(kinf_controller_new(stage->client, &options, &controller, NULL),
                     KINF_ERR_INVALID);
}

static void lack_of_memory_leaves_nothing_behind(void **state)
{
    struct stage *stage = *state;
    size_t n = 0;
    int failed = -1;

    stage->options.finalizer = "example.org/x";
    stage->options.owner_annotation = "owner";
    stage_make(stage);
    for (n = 1; failed < 0; n++) {
        struct kinf_controller *controller = NULL;

        test_fail_allocation(n);
        failed = kinf_controller_new(stage->client, &stage->options, &controller, &stage->err);
        if (failed == 0)
            failed = kinf_controller_watch(controller, stage->copies, kinf_map_label,
                                           (void *)"owner", &stage->err);
        if (failed == 0)
            failed = kinf_controller_start(controller, &stage->err);
        if (!test_allocation_failed())
            assert_int_equal(failed, 0);
        test_fail_allocation(0);
        kinf_controller_free(controller);
        if (failed < 0) {
            stage_stop(stage);
            stage_make(stage);
        }
        assert_true(n < 1000);
    }
    assert_true(n > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, stage_begin, stage_end)
        T(reconciles_what_is_there_and_what_changes),
        T(applying_what_is_so_sends_nothing),
        T(a_call_sees_what_the_last_one_wrote),
        T(old_data_is_not_acted_upon),
        T(changes_during_a_call_wait_for_its_end_and_are_one),
        T(who_says_stopped_is_called_again_and_has_not_failed),
        T(every_object_is_called_for_each_resync_and_keys_may_be_added_by_hand),
        T(a_finalizer_is_there_before_and_goes_after),
        T(what_goes_before_it_has_its_finalizer_is_no_failure),
        T(a_finalizer_in_conflict_waits_for_another_version),
        T(a_finalizer_that_is_refused_is_not_tried_for_ever),
        T(who_loses_the_label_is_cleaned_up),
        T(without_a_finalizer_cleanup_has_no_object),
        T(what_is_deleted_while_it_is_reconciled_is_cleaned_up),
        T(a_conflict_that_stays_is_said),
        T(what_fails_for_ever_is_tried_ever_more_rarely),
        T(what_is_not_acceptable_is_not_tried_until_it_changes),
        T(a_time_to_come_back_is_obeyed),
        T(after_a_conflict_the_newer_version_is_seen),
        T(a_key_comes_back_when_it_was_asked_to),
        T(want_of_memory_loses_no_key),
        T(maps_name_the_owner_that_controls),
        T(all_are_named_when_one_comes_or_goes),
        T(stopping_from_a_callback_is_refused),
        T(two_that_stop_each_other_do_not_wait_for_ever),
        T(stop_gives_up_requests),
        T(stops_in_any_state),
        T(informers_are_not_freed_before_their_controller),
        T(an_informer_beside_the_factory_is_started_too),
        T(a_lent_informer_that_runs_is_used_and_not_freed),
        T(of_two_with_one_informer_the_last_stops_it),
        T(of_two_with_one_factory_the_last_shuts_it_down),
        T(a_factory_is_not_freed_before_its_controller),
        T(run_tells_of_a_refusal),
        T(options_that_cannot_be_meant_are_refused),
        T(lack_of_memory_leaves_nothing_behind),
#undef T
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
