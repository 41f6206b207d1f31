/*
 * Electors and their server in one process: what kinformer/elector.h promises.
 *
 * Time goes on by itself, and the times are short; only what must not happen is waited for.
 */
#include <kinformer/testing.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <kinformer/kinformer.h>

#include "unit/allocation.h"
#include "unit/hanging_client.h"
#include "unit/test.h"

#define PATIENCE_MS 60000
#define LEASE_MS    3000
#define RENEW_MS    2000
#define RETRY_MS    100

struct told {
    _Atomic(int) n_started, n_stopped, n_leaders;
    _Atomic(bool) blocks; /* callbacks wait */
    char leader[KINF_ELECTOR_IDENTITY_SIZE];
};

struct stage {
    struct kinf_fake *fake;
    struct kinf_error err;
    struct told told;
    struct kinf_elector *elector;
};

static void must(struct stage *stage, int failed)
{
    if (failed < 0)
        print_error("%s\n", stage->err.message);
    assert_int_equal(failed, 0);
}

static void pause_ms(int ms)
{
    const struct timespec pause = { ms / 1000, ms % 1000 * 1000000L };

    nanosleep(&pause, NULL);
}

static void wait_while_blocked(struct told *told)
{
    while (told->blocks)
        pause_ms(1);
}

static void on_started(void *ctx)
{
    struct told *told = ctx;

    told->n_started++;
    wait_while_blocked(told);
}

static void on_stopped(void *ctx)
{
    struct told *told = ctx;

    wait_while_blocked(told);
    told->n_stopped++;
}

static void on_leader(const char *identity, void *ctx)
{
    struct told *told = ctx;

    snprintf(told->leader, sizeof told->leader, "%s", identity);
    told->n_leaders++;
}

static struct kinf_elector_options options_of(const char *identity, struct told *told)
{
    struct kinf_elector_options options = KINF_ELECTOR_OPTIONS_INIT;

    options.name = "lock";
    options.name_space = "default";
    options.identity = identity;
    options.lease_ms = LEASE_MS;
    options.renew_deadline_ms = RENEW_MS;
    options.retry_ms = RETRY_MS;
    options.release_on_stop = true;
    if (told != NULL) {
        options.on_started = on_started;
        options.on_stopped = on_stopped;
        options.on_leader = on_leader;
        options.ctx = told;
    }
    return options;
}

static struct kinf_elector *make(struct stage *stage, const struct kinf_elector_options *options)
{
    struct kinf_elector *elector;

    must(stage, kinf_elector_new(kinf_fake_client(stage->fake), options, &elector, &stage->err));
    return elector;
}

static struct kinf_elector *start(struct stage *stage, const char *identity, struct told *told)
{
    struct kinf_elector_options options = options_of(identity, told);
    struct kinf_elector *elector = make(stage, &options);

    must(stage, kinf_elector_start(elector, &stage->err));
    return elector;
}

static int begin(void **state)
{
    struct stage *stage = calloc(1, sizeof *stage);

    stage->err = (struct kinf_error)KINF_ERROR_INIT;
    must(stage, kinf_fake_new(NULL, &stage->fake, &stage->err));
    *state = stage;
    return 0;
}

static int end(void **state)
{
    struct stage *stage = *state;

    stage->told.blocks = false;
    kinf_elector_free(stage->elector);
    kinf_fake_free(stage->fake);
    free(stage);
    return 0;
}

#define WAIT_FOR(condition)                                                                        \
    do {                                                                                           \
        for (int n_ = 0; !(condition); n_++) {                                                     \
            if (n_ == PATIENCE_MS)                                                                 \
                fail_msg("not in time: %s", #condition);                                           \
            pause_ms(1);                                                                           \
        }                                                                                          \
    } while (0)

static bool named_lease_has(struct stage *stage, const char *key, const char *part)
{
    const struct kinf_object *lease;
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str json;
    bool has;

    if (kinf_fake_get(stage->fake, "leases", key, &lease, NULL) < 0)
        return false;
    assert_int_equal(kinf_object_json(lease, &scratch, &json, NULL), 0);
    has = memmem(json.bytes, json.len, part, strlen(part)) != NULL;
    kinf_object_unref(lease);
    return has;
}

static bool lease_has(struct stage *stage, const char *part)
{
    return named_lease_has(stage, "default/lock", part);
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- leading --- */

/* L7 */
static void one_leads_and_hands_over_when_it_stops(void **state)
{
    struct stage *stage = *state;
    struct told other_told = { .n_started = 0 };
    struct kinf_elector *first = start(stage, "first", &stage->told), *second;
    struct kinf_fence fence, later;

    WAIT_FOR(stage->told.n_started == 1);
    second = start(stage, "second", &other_told);
    WAIT_FOR(other_told.n_leaders == 1);
    assert_string_equal(other_told.leader, "first");
    assert_true(kinf_elector_fence(first, &fence));
    assert_true(fence.left_ms > 0 && fence.left_ms <= RENEW_MS);
    assert_int_equal(kinf_elector_wait(second, LEASE_MS + 500, &stage->err), KINF_ERR_TIMEOUT);
    assert_non_null(strstr(stage->err.message, "held by first"));
    /* It was renewed meanwhile, as one term. */
    assert_true(kinf_elector_fence(first, &later));
    assert_int_equal(later.term, fence.term);

    must(stage, kinf_elector_stop(first, &stage->err));
    assert_false(kinf_elector_leads(first));
    assert_int_equal(stage->told.n_started, 1);
    assert_int_equal(stage->told.n_stopped, 1);
    assert_string_equal(stage->told.leader, "");
    /* Nobody's, or the other's by now. */
    assert_false(lease_has(stage, "\"holderIdentity\":\"first\""));
    must(stage, kinf_elector_wait(second, LEASE_MS - 500, &stage->err));
    assert_true(kinf_elector_fence(second, &later));
    assert_true(later.term > fence.term);
    WAIT_FOR(other_told.n_started == 1);
    kinf_elector_free(first);
    kinf_elector_free(second);
    assert_int_equal(other_told.n_stopped, 1);
}

static struct kinf_elector *start_shard(struct stage *stage, const char *identity, unsigned n,
                                        unsigned shard, struct told *told)
{
    struct kinf_elector_options options = options_of(identity, told);
    struct kinf_elector *elector;

    options.n_shards = n;
    options.shard = shard;
    elector = make(stage, &options);
    must(stage, kinf_elector_start(elector, &stage->err));
    return elector;
}

/* L8 */
static void a_shard_waits_for_the_one_that_has_its_hashes_and_says_so(void **state)
{
    struct stage *stage = *state;
    struct kinf_elector *one = start_shard(stage, "one", 3, 0, NULL), *two, *three;
    struct kinf_elector_status status = { .leads = true };

    must(stage, kinf_elector_wait(one, PATIENCE_MS, &stage->err));
    two = start_shard(stage, "two", 2, 0, NULL); /* the same Lease */
    three = start_shard(stage, "three", 4, 1, &stage->told);
    assert_int_equal(kinf_elector_wait(three, LEASE_MS + 500, &stage->err), KINF_ERR_TIMEOUT);
    assert_non_null(strstr(stage->err.message, "the Lease default/lock-1 is nobody's; waits for "
                                               "lock-0, which one holds"));
    kinf_elector_status(three, &status);
    assert_non_null(strstr(status.reason, "waits for lock-0, which one holds"));
    assert_false(status.leads);
    assert_int_equal(status.n_failures, 0);
    kinf_elector_status(two, &status);
    assert_string_equal(status.leader, "one");
    assert_int_equal(stage->told.n_started, 0);

    kinf_elector_free(one);
    /* Two and three overlap: one of them leads, the other one waits for it. */
    WAIT_FOR(kinf_elector_leads(two) || kinf_elector_leads(three));
    assert_true(kinf_elector_leads(two) != kinf_elector_leads(three));
    kinf_elector_free(two);
    must(stage, kinf_elector_wait(three, PATIENCE_MS, &stage->err));
    kinf_elector_status(three, &status);
    assert_string_equal(status.reason, "");
    WAIT_FOR(stage->told.n_started == 1);
    kinf_elector_free(three);
    assert_int_equal(stage->told.n_stopped, 1);
}

/* L2 */
static void a_leap_of_time_ends_a_term_at_once(void **state)
{
    struct stage *stage = *state;
    struct kinf_fence fence, later;

    stage->elector = start(stage, "a", &stage->told);
    must(stage, kinf_elector_wait(stage->elector, PATIENCE_MS, &stage->err));
    WAIT_FOR(stage->told.n_started == 1);
    assert_true(kinf_elector_fence(stage->elector, &fence));
    /* As if the process had been halted. */
    must(stage, kinf_fake_fault(stage->fake, "update leases 500", &stage->err));
    must(stage, kinf_fake_fault(stage->fake, "get leases 500", &stage->err));
    kinf_fake_advance(stage->fake, RENEW_MS);
    assert_false(kinf_elector_leads(stage->elector));
    WAIT_FOR(stage->told.n_stopped == 1);
    kinf_fake_clear_faults(stage->fake);
    must(stage, kinf_elector_wait(stage->elector, PATIENCE_MS, &stage->err));
    WAIT_FOR(stage->told.n_started == 2);
    assert_true(kinf_elector_fence(stage->elector, &later));
    assert_true(later.term > fence.term);
}

/* L1 */
static void a_server_that_hangs_ends_a_term_in_time(void **state)
{
    struct stage *stage = *state;

    stage->elector = start(stage, "a", &stage->told);
    WAIT_FOR(stage->told.n_started == 1);
    must(stage, kinf_fake_fault(stage->fake, "update leases stall=600s", &stage->err));
    must(stage, kinf_fake_fault(stage->fake, "get leases stall=600s", &stage->err));
    WAIT_FOR(!kinf_elector_leads(stage->elector));
    WAIT_FOR(stage->told.n_stopped == 1);
    assert_int_equal(stage->told.n_started, 1);
}

/* L1 */
static void a_callback_that_blocks_holds_up_nobody_but_itself(void **state)
{
    struct stage *stage = *state;

    stage->told.blocks = true;
    stage->elector = start(stage, "a", &stage->told);
    WAIT_FOR(stage->told.n_started == 1);
    /* It is renewed while on_started runs. */
    for (int64_t end_ms = now_ms() + RENEW_MS + 500; now_ms() < end_ms; pause_ms(10))
        assert_true(kinf_elector_leads(stage->elector));
    must(stage, kinf_fake_fault(stage->fake, "update leases 500", &stage->err));
    must(stage, kinf_fake_fault(stage->fake, "get leases 500", &stage->err));
    WAIT_FOR(!kinf_elector_leads(stage->elector));
    stage->told.blocks = false;
    WAIT_FOR(stage->told.n_stopped == 1);
}

static void block(enum kinf_log_level level, const char *module, const char *text, void *ctx)
{
    (void)level;
    (void)text;
    if (strcmp(module, "elector") == 0)
        wait_while_blocked(ctx);
}

/* L1 */
static void a_log_that_blocks_does_not_keep_the_end_of_a_term_secret(void **state)
{
    struct stage *stage = *state;
    struct told log = { .blocks = true };

    kinf_log_set_callback(block, &log);
    stage->elector = start(stage, "a", &stage->told);
    WAIT_FOR(stage->told.n_started == 1);
    WAIT_FOR(!kinf_elector_leads(stage->elector));
    WAIT_FOR(stage->told.n_stopped == 1);
    log.blocks = false;
    must(stage, kinf_elector_stop(stage->elector, &stage->err));
    kinf_log_set_callback(NULL, NULL);
}

/* L3 */
static void a_lease_edited_by_hand_ends_the_term(void **state)
{
    struct stage *stage = *state;

    stage->elector = start(stage, "a", &stage->told);
    WAIT_FOR(stage->told.n_started == 1);
    must(stage, kinf_fake_put(stage->fake,
                              "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: "
                              "lock, namespace: default}, spec: {holderIdentity: somebody, "
                              "leaseDurationSeconds: 1}}",
                              &stage->err));
    WAIT_FOR(stage->told.n_stopped == 1);
    WAIT_FOR(stage->told.n_started == 2);
    assert_true(lease_has(stage, "\"holderIdentity\":\"a\""));
}

static void a_deleted_lease_is_made_again(void **state)
{
    struct stage *stage = *state;

    stage->elector = start(stage, "a", &stage->told);
    WAIT_FOR(stage->told.n_started == 1);
    must(stage, kinf_fake_delete(stage->fake, "leases", "default/lock", &stage->err));
    WAIT_FOR(lease_has(stage, "\"holderIdentity\":\"a\""));
    assert_true(kinf_elector_leads(stage->elector));
    assert_int_equal(stage->told.n_stopped, 0);
}

static void a_namespace_is_waited_for_and_missed(void **state)
{
    static const char *const name_space =
        "{apiVersion: v1, kind: Namespace, metadata: {name: late}}";
    struct stage *stage = *state;
    struct kinf_elector_options options = options_of("a", &stage->told);
    struct kinf_elector_status status;

    options.name_space = "late";
    stage->elector = make(stage, &options);
    must(stage, kinf_elector_start(stage->elector, &stage->err));
    assert_int_equal(kinf_elector_wait(stage->elector, 500, &stage->err), KINF_ERR_TIMEOUT);
    assert_non_null(strstr(stage->err.message, "namespaces \"late\" not found"));
    must(stage, kinf_fake_put(stage->fake, name_space, &stage->err));
    must(stage, kinf_elector_wait(stage->elector, PATIENCE_MS, &stage->err));
    must(stage, kinf_fake_delete(stage->fake, "namespaces", "late", &stage->err));
    WAIT_FOR(stage->told.n_stopped == 1);
    kinf_elector_status(stage->elector, &status);
    assert_false(status.leads);
    assert_true(status.n_failures > 0);
    assert_int_equal(status.n_terms, 1);
    assert_string_not_equal(status.reason, "");
    must(stage, kinf_fake_put(stage->fake, name_space, &stage->err));
    must(stage, kinf_elector_wait(stage->elector, PATIENCE_MS, &stage->err));
}

/* --- stopping --- */

static void assert_stops_within(struct stage *stage, int64_t ms)
{
    int64_t begin_ms = now_ms();

    must(stage, kinf_elector_stop(stage->elector, &stage->err));
    assert_true(now_ms() - begin_ms <= ms);
    assert_false(kinf_elector_leads(stage->elector));
    assert_int_equal(stage->told.n_started, stage->told.n_stopped);
    assert_int_equal(kinf_elector_wait(stage->elector, PATIENCE_MS, &stage->err), KINF_ERR_STOPPED);
    must(stage, kinf_elector_stop(stage->elector, &stage->err));
    assert_int_equal(kinf_elector_start(stage->elector, &stage->err), KINF_ERR_STATE);
}

static void it_stops_before_it_was_started(void **state)
{
    struct stage *stage = *state;
    struct kinf_elector_options options = options_of("a", &stage->told);

    stage->elector = make(stage, &options);
    assert_false(kinf_elector_leads(stage->elector));
    assert_stops_within(stage, 1000);
}

static void it_stops_while_it_waits_for_its_turn(void **state)
{
    struct stage *stage = *state;
    struct kinf_elector *other = start(stage, "other", NULL);

    must(stage, kinf_elector_wait(other, PATIENCE_MS, &stage->err));
    stage->elector = start(stage, "a", &stage->told);
    WAIT_FOR(stage->told.n_leaders == 1);
    assert_stops_within(stage, 1000);
    assert_true(kinf_elector_leads(other));
    kinf_elector_free(other);
}

static void a_request_that_hangs_is_given_up_by_stop(void **state)
{
    struct stage *stage = *state;

    must(stage, kinf_fake_fault(stage->fake, "get leases hang", &stage->err));
    stage->elector = start(stage, "a", &stage->told);
    pause_ms(100);
    assert_stops_within(stage, 1000);
}

static void *stop_it(void *ctx)
{
    struct stage *stage = ctx;

    assert_int_equal(kinf_elector_stop(stage->elector, NULL), 0);
    return NULL;
}

/* As often as a server that does not answer. */
static void a_credential_plugin_that_hangs_takes_the_time_of_a_request(void **state)
{
    struct stage *stage = *state;
    struct kinf_elector_options options = options_of("a", NULL);
    struct kinf_client *client = test_hanging_client();
    struct kinf_elector_status status;
    int64_t begin_ms = now_ms();

    must(stage, kinf_elector_new(client, &options, &stage->elector, &stage->err));
    must(stage, kinf_elector_start(stage->elector, &stage->err));
    do {
        pause_ms(10);
        kinf_elector_status(stage->elector, &status);
    } while (status.n_failures < 2 && now_ms() - begin_ms < PATIENCE_MS / 2);
    assert_in_range(status.n_failures, 2, 10);
    assert_non_null(strstr(status.reason, "credential plugin"));
    kinf_elector_free(stage->elector);
    stage->elector = NULL;
    kinf_client_free(client);
}

static void a_credential_plugin_that_hangs_is_given_up_by_stop(void **state)
{
    struct stage *stage = *state;
    struct kinf_elector_options options = options_of("a", &stage->told);
    struct kinf_client *client = test_hanging_client();

    must(stage, kinf_elector_new(client, &options, &stage->elector, &stage->err));
    must(stage, kinf_elector_start(stage->elector, &stage->err));
    pause_ms(100);
    assert_stops_within(stage, 1000);
    kinf_elector_free(stage->elector);
    stage->elector = NULL;
    kinf_client_free(client);
}

static void a_start_during_the_stop_changes_nothing(void **state)
{
    struct stage *stage = *state;
    pthread_t stopper;

    stage->elector = start(stage, "a", &stage->told);
    WAIT_FOR(stage->told.n_started == 1);
    stage->told.blocks = true;
    pthread_create(&stopper, NULL, stop_it, stage);
    WAIT_FOR(!kinf_elector_leads(stage->elector));
    assert_int_equal(kinf_elector_start(stage->elector, &stage->err), KINF_ERR_STATE);
    stage->told.blocks = false;
    pthread_join(stopper, NULL);
}

static void a_release_that_hangs_is_given_up(void **state)
{
    struct stage *stage = *state;

    stage->elector = start(stage, "a", &stage->told);
    WAIT_FOR(stage->told.n_started == 1);
    must(stage, kinf_fake_fault(stage->fake, "get leases stall=600s", &stage->err));
    assert_stops_within(stage, 2000 + 1000);
    assert_true(lease_has(stage, "\"holderIdentity\":\"a\""));
}

static void a_release_is_tried_again_when_it_was_in_conflict(void **state)
{
    struct stage *stage = *state;

    stage->elector = start(stage, "a", &stage->told);
    WAIT_FOR(stage->told.n_started == 1);
    must(stage, kinf_fake_fault(stage->fake, "update leases 409 times=2", &stage->err));
    assert_stops_within(stage, 2000);
    assert_true(lease_has(stage, "\"holderIdentity\":\"\""));
}

static void a_lease_is_kept_if_it_is_not_to_be_released(void **state)
{
    struct stage *stage = *state;
    struct kinf_elector_options options = options_of("a", NULL);

    options.release_on_stop = false;
    stage->elector = make(stage, &options);
    must(stage, kinf_elector_start(stage->elector, &stage->err));
    must(stage, kinf_elector_wait(stage->elector, PATIENCE_MS, &stage->err));
    assert_stops_within(stage, 1000);
    assert_true(lease_has(stage, "\"holderIdentity\":\"a\""));
}

/* L7 */
static void it_is_released_only_after_on_stopped_has_returned(void **state)
{
    struct stage *stage = *state;
    pthread_t stoppers[2];

    stage->elector = start(stage, "a", &stage->told);
    WAIT_FOR(stage->told.n_started == 1);
    stage->told.blocks = true;
    for (int i = 0; i < 2; i++)
        pthread_create(&stoppers[i], NULL, stop_it, stage);
    WAIT_FOR(!kinf_elector_leads(stage->elector));
    pause_ms(200);
    assert_int_equal(stage->told.n_stopped, 0);
    assert_true(lease_has(stage, "\"holderIdentity\":\"a\""));
    stage->told.blocks = false;
    for (int i = 0; i < 2; i++)
        pthread_join(stoppers[i], NULL);
    assert_true(lease_has(stage, "\"holderIdentity\":\"\""));
}

/* L7: also by one that goes on. */
static void a_shard_makes_way_only_after_on_stopped_has_returned(void **state)
{
    struct stage *stage = *state;

    stage->elector = start_shard(stage, "a", 1, 0, &stage->told);
    WAIT_FOR(stage->told.n_started == 1);
    stage->told.blocks = true;
    must(stage,
         kinf_fake_put(stage->fake,
                       "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: "
                       "lock-1, namespace: default, labels: {kinformer.dev/shards-of: lock}}, "
                       "spec: {holderIdentity: b, leaseDurationSeconds: 600}}",
                       &stage->err));
    must(stage, kinf_fake_delete(stage->fake, "leases", "default/lock-0", &stage->err));
    WAIT_FOR(!kinf_elector_leads(stage->elector));
    pause_ms(2 * RETRY_MS);
    assert_true(named_lease_has(stage, "default/lock-0", "\"holderIdentity\":\"a\""));
    assert_int_equal(stage->told.n_stopped, 0);
    stage->told.blocks = false;
    WAIT_FOR(named_lease_has(stage, "default/lock-0", "\"holderIdentity\":\"\""));
    assert_int_equal(stage->told.n_stopped, 1);
}

static void stop_and_free_it(void *ctx)
{
    struct stage *stage = ctx;

    assert_int_equal(kinf_elector_stop(stage->elector, NULL), KINF_ERR_STATE);
    kinf_elector_free(stage->elector);
    stage->told.n_started++;
}

static void its_own_callbacks_cannot_end_it(void **state)
{
    struct stage *stage = *state;
    struct kinf_elector_options options = options_of("a", NULL);

    options.on_started = stop_and_free_it;
    options.ctx = stage;
    stage->elector = make(stage, &options);
    must(stage, kinf_elector_start(stage->elector, &stage->err));
    WAIT_FOR(stage->told.n_started == 1);
    assert_true(kinf_elector_leads(stage->elector));
}

static void *look(void *ctx)
{
    struct stage *stage = ctx;
    struct kinf_elector_status status;

    while (!stage->told.blocks) {
        (void)kinf_elector_leads(stage->elector);
        kinf_elector_status(stage->elector, &status);
    }
    return NULL;
}

static void it_may_be_asked_from_any_thread(void **state)
{
    struct stage *stage = *state;
    pthread_t threads[3];

    stage->elector = start(stage, "a", NULL);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, look, stage);
    must(stage, kinf_elector_wait(stage->elector, PATIENCE_MS, &stage->err));
    must(stage, kinf_elector_stop(stage->elector, &stage->err));
    stage->told.blocks = true;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

/* --- options --- */

static void refuses(struct stage *stage, const struct kinf_elector_options *options,
                    const char *part)
{
    struct kinf_elector *elector;

    assert_int_equal(
        kinf_elector_new(kinf_fake_client(stage->fake), options, &elector, &stage->err),
        KINF_ERR_INVALID);
    if (strstr(stage->err.message, part) == NULL)
        fail_msg("no %s in: %s", part, stage->err.message);
}

static void what_cannot_be_meant_is_refused(void **state)
{
    struct stage *stage = *state;
    struct kinf_elector_options good = options_of("a", NULL), bad;
    char long_one[300];

    memset(long_one, 'x', sizeof long_one);
    long_one[sizeof long_one - 1] = '\0';
#define REFUSES(member, value, part)                                                               \
    bad = good;                                                                                    \
    bad.member = (value);                                                                          \
    refuses(stage, &bad, (part))
    REFUSES(name, NULL, "name");
    REFUSES(name, "a/b", "a/b");
    REFUSES(name_space, NULL, "namespace");
    REFUSES(name_space, "No", "No");
    REFUSES(identity, "", "identity");
    REFUSES(identity, "a\nb", "identity");
    REFUSES(identity, long_one, "identity");
    REFUSES(lease_ms, RENEW_MS, "lease_ms");
    REFUSES(lease_ms, -1, "negative");
    REFUSES(lease_ms, 86400001, "a day");
    REFUSES(retry_ms, RENEW_MS, "1.2 times");
    REFUSES(size, 3, "size");
    REFUSES(shard, 1, "a shard needs n_shards");
    REFUSES(n_shards, KINF_SHARDS_MAX + 1, "1 to 1000");
    good.n_shards = 3;
    REFUSES(shard, 3, "no shard 3");
    long_one[64] = '\0';
    REFUSES(name, long_one, "63 bytes");
#undef REFUSES
}

static void without_an_identity_each_has_its_own(void **state)
{
    struct stage *stage = *state;
    struct kinf_elector_options options = options_of(NULL, NULL);
    struct kinf_elector *one = make(stage, &options), *two = make(stage, &options);

    assert_true(strlen(kinf_elector_identity(one)) > 32);
    assert_string_not_equal(kinf_elector_identity(one), kinf_elector_identity(two));
    kinf_elector_free(one);
    kinf_elector_free(two);
}

static void without_memory_there_is_none(void **state)
{
    struct stage *stage = *state;
    struct kinf_elector_options options = options_of("a", &stage->told);
    struct kinf_elector *elector = NULL;

    options.n_shards = 2;
    for (size_t n = 1; elector == NULL; n++) {
        test_fail_allocation(n);
        if (kinf_elector_new(kinf_fake_client(stage->fake), &options, &elector, &stage->err) < 0)
            assert_int_equal(stage->err.code, KINF_ERR_NO_MEMORY);
        test_fail_allocation(0);
    }
    kinf_elector_free(elector);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(one_leads_and_hands_over_when_it_stops),
        TEST(a_shard_waits_for_the_one_that_has_its_hashes_and_says_so),
        TEST(a_leap_of_time_ends_a_term_at_once),
        TEST(a_server_that_hangs_ends_a_term_in_time),
        TEST(a_callback_that_blocks_holds_up_nobody_but_itself),
        TEST(a_log_that_blocks_does_not_keep_the_end_of_a_term_secret),
        TEST(a_lease_edited_by_hand_ends_the_term),
        TEST(a_deleted_lease_is_made_again),
        TEST(a_namespace_is_waited_for_and_missed),
        TEST(it_stops_before_it_was_started),
        TEST(it_stops_while_it_waits_for_its_turn),
        TEST(a_request_that_hangs_is_given_up_by_stop),
        TEST(a_credential_plugin_that_hangs_takes_the_time_of_a_request),
        TEST(a_credential_plugin_that_hangs_is_given_up_by_stop),
        TEST(a_start_during_the_stop_changes_nothing),
        TEST(a_release_that_hangs_is_given_up),
        TEST(a_release_is_tried_again_when_it_was_in_conflict),
        TEST(a_lease_is_kept_if_it_is_not_to_be_released),
        TEST(it_is_released_only_after_on_stopped_has_returned),
        TEST(a_shard_makes_way_only_after_on_stopped_has_returned),
        TEST(its_own_callbacks_cannot_end_it),
        TEST(it_may_be_asked_from_any_thread),
        TEST(what_cannot_be_meant_is_refused),
        TEST(without_an_identity_each_has_its_own),
        TEST(without_memory_there_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
