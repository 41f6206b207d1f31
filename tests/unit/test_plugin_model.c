/*
 * A plugin under random changes, errors and reloads, against what it should know: P2 to P6 of
 * kinformer/plugin.h. Each time that it is opened is an instance with a state of its own.
 */
#include "handlers/plugin_handler.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "unit/informer_fixture.h"
#include "unit/outbox_fixture.h"
#include "unit/plugin_fixture.h"
#include "unit/test.h"

#define N_NAMES 6

/* On the plugin's thread there is nobody to catch what cmocka throws. */
#define MUST(condition) ((condition) ? (void)0 : give_up(#condition, __LINE__))

struct instance {
    int has[N_NAMES]; /* the version; 0: nothing */
    bool was_reset;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* guarded by lock */
static struct test_random dice;
static bool is_calm; /* nothing fails any more */
static int n_open;
static struct instance *newest;
static int born[N_NAMES];      /* the first version of what the store has */
static int heard[N_NAMES];     /* the newest version that some instance was told */
static int owed[N_NAMES];      /* the version by which a deletion has to be told; 0: none */
static bool was_paid[N_NAMES]; /* that was told, and not flushed yet */

static void give_up(const char *what, int line)
{
    fprintf(stderr, "line %d: %s\n", line, what);
    abort();
}

/* --- the plugin --- */

static int maybe_fail(size_t one_in)
{
    if (is_calm || test_random_below(&dice, one_in) != 0)
        return 0;
    memset(was_paid, 0, sizeof was_paid); /* it is told again */
    return KINF_ERR_NETWORK;
}

static int open_instance(struct plugin_script *script, const struct kinf_host *host,
                         void **ret_state, struct kinf_error *err)
{
    int failed;

    (void)script;
    (void)host;
    (void)err;
    pthread_mutex_lock(&lock);
    failed = maybe_fail(4);
    if (failed == 0) {
        *ret_state = newest = calloc(1, sizeof *newest);
        MUST(++n_open <= 3);
    }
    pthread_mutex_unlock(&lock);
    return failed;
}

static int version_of(const struct kinf_object *object)
{
    return object != NULL ? atoi(kinf_object_resource_version(object)) : 0;
}

static void apply_change(struct instance *instance, const struct kinf_change *change)
{
    int i = change->object != NULL ? kinf_object_name(change->object)[0] - 'a' : 0;
    int version = version_of(change->object), old = version_of(change->old);

    MUST(instance == newest);
    MUST(instance->was_reset || change->type == KINF_CHANGE_RESET);
    if (change->type == KINF_CHANGE_RESET) {
        memset(instance->has, 0, sizeof instance->has);
        instance->was_reset = true;
    } else if (change->type != KINF_CHANGE_SYNCED) {
        MUST(strcmp(change->resource, "things") == 0);
        MUST(old == instance->has[i]);
        MUST((change->type == KINF_CHANGE_ADDED) <= (old == 0));
        MUST((change->type == KINF_CHANGE_MODIFIED) <= (old != 0 && old < version));
        instance->has[i] = change->type == KINF_CHANGE_DELETED ? 0 : version;
        heard[i] = version;
        if (change->type == KINF_CHANGE_DELETED && owed[i] == version)
            was_paid[i] = true;
    }
}

static int tell_instance(void *state, const struct kinf_change *change, struct kinf_error *err)
{
    int failed;

    (void)err;
    pthread_mutex_lock(&lock);
    apply_change(state, change);
    failed = maybe_fail(25);
    pthread_mutex_unlock(&lock);
    return failed;
}

static int flush_instance(void *state, struct kinf_error *err)
{
    int failed;

    (void)state;
    (void)err;
    pthread_mutex_lock(&lock);
    failed = maybe_fail(10);
    for (int i = 0; failed == 0 && i < N_NAMES; i++) {
        if (was_paid[i])
            owed[i] = 0, was_paid[i] = false;
    }
    pthread_mutex_unlock(&lock);
    return failed;
}

static void close_instance(void *state)
{
    pthread_mutex_lock(&lock);
    n_open--;
    if (newest == state)
        newest = NULL;
    free(state);
    pthread_mutex_unlock(&lock);
}

/* --- the store --- */

static const struct kinf_object *make(int i, int version)
{
    char name[2] = { (char)('a' + i), '\0' }, rv[16];

    snprintf(rv, sizeof rv, "%d", version);
    return make_thing(name, rv);
}

static void put(struct kinf__outbox_feed *feed, int *store, int i, int version)
{
    kinf_auto_object const struct kinf_object *object = make(i, version);

    pthread_mutex_lock(&lock);
    if (store[i] == 0)
        born[i] = version;
    pthread_mutex_unlock(&lock);
    store[i] = version;
    kinf__outbox_feed_put(feed, NULL, object, false);
}

static void delete (struct kinf__outbox_feed *feed, int *store, int i, int version)
{
    kinf_auto_object const struct kinf_object *object = make(i, version);

    if (store[i] == 0)
        return;
    pthread_mutex_lock(&lock);
    if (heard[i] >= born[i])
        owed[i] = version, was_paid[i] = false;
    pthread_mutex_unlock(&lock);
    store[i] = 0;
    kinf__outbox_feed_delete(feed, object, false);
}

static void reload(struct kinf__handler *handler, const struct plugin_script *script, size_t n)
{
    char config[40];

    snprintf(config, sizeof config, "%llu%*s", (unsigned long long)(uintptr_t)script, (int)n, "");
    assert_int_equal(kinf__plugin_handler_reload(handler, config, NULL), 0);
}

static bool is_settled(struct kinf__handler *handler, const int *store)
{
    struct kinf__handler_status status;
    bool is_settled;

    kinf__handler_status(handler, &status);
    pthread_mutex_lock(&lock);
    is_settled = status.outbox.n_waiting == 0 && status.outbox.n_unacknowledged == 0 &&
                 n_open == 1 && memcmp(newest->has, store, sizeof newest->has) == 0;
    for (int i = 0; i < N_NAMES; i++)
        is_settled = is_settled && owed[i] == 0;
    pthread_mutex_unlock(&lock);
    return is_settled;
}

static void settle(struct kinf__handler *handler, const int *store)
{
    struct timespec began, now;

    clock_gettime(CLOCK_MONOTONIC, &began);
    pthread_mutex_lock(&lock);
    is_calm = true;
    pthread_mutex_unlock(&lock);
    do {
        kinf__clock_advance(61000);
        plugin_nap();
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - began.tv_sec > 60)
            fail_msg("it does not get there");
    } while (!is_settled(handler, store));
}

static void run(struct test_random *random)
{
    static struct plugin_script script = { open_instance, tell_instance, flush_instance,
                                           close_instance, NULL };
    struct kinf__handler *handler;
    struct kinf__outbox_feed *feed;
    int store[N_NAMES] = { 0 };
    char config[40];

    dice = (struct test_random){ test_random_next(random) };
    memset(born, 0, sizeof born);
    memset(heard, 0, sizeof heard);
    memset(owed, 0, sizeof owed);
    memset(was_paid, 0, sizeof was_paid);
    is_calm = false;
    newest = NULL;
    snprintf(config, sizeof config, "%llu", (unsigned long long)(uintptr_t)&script);
    assert_int_equal(kinf__plugin_handler_new(plugin_variant("scripted"), config, &handler, NULL),
                     0);
    assert_int_equal(kinf__handler_start(handler, NULL), 0);
    feed = outbox_open_feed(&handler->outbox, "things");
    for (int step = 1; step < 150; step++) {
        size_t what = test_random_below(random, 20);
        int i = (int)test_random_below(random, N_NAMES);

        if (what < 9)
            put(feed, store, i, step);
        else if (what < 14)
            delete (feed, store, i, step);
        else if (what == 14)
            reload(handler, &script, test_random_below(random, 4));
        else if (what == 15)
            kinf__outbox_feed_synced(feed);
        else if (what == 16)
            kinf__clock_advance(61000);
        else
            plugin_nap();
    }
    settle(handler, store);
    assert_true(kinf__handler_stop(handler));
    kinf__outbox_feed_free(feed);
    kinf__handler_free(handler);
    assert_int_equal(n_open, 0);
}

static void the_newest_knows_the_state_and_no_deletion_is_lost(void **state)
{
    (void)state;
    plugin_fixture_begin();
    kinf__clock_begin_simulation();
    test_model("plugin", 100, run);
    kinf__clock_end_simulation();
    assert_int_equal(plugin_count_log("plugin leaks"), 0);
    assert_true(plugin_count_log("plugin is loaded anew") > 0);
    plugin_fixture_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_knows_the_state_and_no_deletion_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
