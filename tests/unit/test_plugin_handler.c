/*
 * Plugins at work: what they are told, what they may do wrong, how they are loaded anew and end. The
 * plugin is a script of ours; each time that it is opened is an instance with a number, which writes
 * down what it is told: "1 open", "1 ADDED ns/a@1", "1 MODIFIED ns/a@2 was 1", "1 close".
 */
#include "handlers/plugin_handler.h"

#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "handlers/line.h"
#include "handlers/outbox.h"
#include "unit/allocation.h"
#include "unit/informer_fixture.h"
#include "unit/outbox_fixture.h"
#include "unit/plugin_fixture.h"
#include "unit/test.h"

#define SLACK_MS 4000 /* what a busy machine may add */

struct instance {
    int number;
    const struct kinf_host *host;
    const struct kinf_object *kept;
};

static struct instance *leaker; /* who holds something when it is closed */
static struct kinf__handler *handler;
static struct kinf__outbox_feed *feed;
static struct recorder recorder;
static _Atomic(int) n_instances, n_open, n_flushed;
/* So many of the next calls fail; of flushes all while it is true. */
static _Atomic(int) failing_opens, failing_changes;
static _Atomic(bool) do_flushes_fail, keeps_objects;
/* The next call makes an allocation of its thread fail that comes later. */
static _Atomic(size_t) failing_allocation;

/* --- the script --- */

static bool is_to_fail(_Atomic(int) *n)
{
    int left = atomic_load(n);

    return left > 0 && atomic_compare_exchange_strong(n, &left, left - 1);
}

static void write_line(const struct instance *instance, const char *text)
{
    char line[64];

    snprintf(line, sizeof line, "%d %s", instance->number, text);
    recorder_write(&recorder, line);
}

static int refuse(struct kinf_error *err, const char *words)
{
    strcpy(err->message, words);
    return KINF_ERR_NETWORK;
}

static int open_instance(struct plugin_script *script, const struct kinf_host *host,
                         void **ret_state, struct kinf_error *err)
{
    struct instance *instance;

    (void)script;
    if (is_to_fail(&failing_opens))
        return refuse(err, "it will not open");
    instance = calloc(1, sizeof *instance);
    if (instance == NULL)
        return refuse(err, "no memory");
    instance->number = 1 + atomic_fetch_add(&n_instances, 1);
    instance->host = host;
    atomic_fetch_add(&n_open, 1);
    *ret_state = instance;
    write_line(instance, "open");
    test_fail_allocation(atomic_exchange(&failing_allocation, 0));
    return 0;
}

static void describe(const struct kinf_change *change, char *text, size_t size)
{
    size_t n = (size_t)snprintf(text, size, "%s", kinf__change_name(change->type));

    if (change->object != NULL)
        n += (size_t)snprintf(text + n, size - n, " %s@%s", kinf_object_key(change->object),
                              kinf_object_resource_version(change->object));
    else if (change->resource != NULL)
        n += (size_t)snprintf(text + n, size - n, " %s", change->resource);
    if (change->old != NULL)
        snprintf(text + n, size - n, " was %s", kinf_object_resource_version(change->old));
}

static int note_change(void *state, const struct kinf_change *change, struct kinf_error *err)
{
    struct instance *instance = state;
    char text[60];

    describe(change, text, sizeof text);
    write_line(instance, text);
    test_fail_allocation(atomic_exchange(&failing_allocation, 0));
    if (atomic_load(&keeps_objects) && change->object != NULL && instance->kept == NULL)
        instance->kept = instance->host->ref(instance->host, change->object);
    return is_to_fail(&failing_changes) ? refuse(err, "it is full") : 0;
}

static int note_flush(void *state, struct kinf_error *err)
{
    (void)state;
    if (atomic_load(&do_flushes_fail))
        return refuse(err, "the disk is full");
    atomic_fetch_add(&n_flushed, 1);
    return 0;
}

static void close_instance(void *state)
{
    struct instance *instance = state;

    write_line(instance, "close");
    atomic_fetch_sub(&n_open, 1);
    if (instance->kept != NULL)
        leaker = instance;
    else
        free(instance);
}

static struct plugin_script script = { open_instance, note_change, note_flush, close_instance,
                                       NULL };

static const char *config_of(struct plugin_script *of_script)
{
    static char config[32];

    snprintf(config, sizeof config, "%llu", (unsigned long long)(uintptr_t)of_script);
    return config;
}

/* --- the fixture --- */

static int begin(void **state)
{
    (void)state;
    plugin_fixture_begin();
    recorder_init(&recorder);
    n_instances = n_open = n_flushed = failing_opens = failing_changes = 0;
    do_flushes_fail = keeps_objects = false;
    failing_allocation = 0;
    return 0;
}

static void end_handler(void)
{
    kinf__handler_stop(handler);
    kinf__outbox_feed_free(feed);
    kinf__handler_free(handler);
    handler = NULL;
    feed = NULL;
}

static int end(void **state)
{
    (void)state;
    if (handler != NULL)
        end_handler();
    assert_int_equal(n_open, 0);
    recorder_release(&recorder);
    plugin_fixture_end();
    return 0;
}

static void start_script(const char *variant, struct plugin_script *of_script)
{
    plugin_install(variant, "plugin.so", SIZE_MAX);
    assert_int_equal(
        kinf__plugin_handler_new(plugin_file("plugin.so"), config_of(of_script), &handler, NULL),
        0);
    assert_int_equal(kinf__handler_start(handler, NULL), 0);
    feed = outbox_open_feed(&handler->outbox, "things");
}

static void start(const char *variant)
{
    start_script(variant, &script);
}

static void put(const char *name, int version)
{
    const struct kinf_object *object;
    char rv[16];

    snprintf(rv, sizeof rv, "%d", version);
    object = make_thing(name, rv);
    kinf__outbox_feed_put(feed, NULL, object, false);
    kinf_object_unref(object);
}

static void delete (const char *name, int version)
{
    const struct kinf_object *object;
    char rv[16];

    snprintf(rv, sizeof rv, "%d", version);
    object = make_thing(name, rv);
    kinf__outbox_feed_delete(feed, object, false);
    kinf_object_unref(object);
}

static void reload(void)
{
    assert_int_equal(kinf__plugin_handler_reload(handler, config_of(&script), NULL), 0);
}

static struct kinf__handler_status status(void)
{
    struct kinf__handler_status status;

    kinf__handler_status(handler, &status);
    return status;
}

static void wait_flushed(void)
{
    int64_t deadline_ms = kinf__clock_now_ms() + PLUGIN_PATIENCE_MS;

    while (status().outbox.n_waiting != 0 || status().outbox.n_unacknowledged != 0) {
        assert_true(kinf__clock_now_ms() < deadline_ms);
        plugin_nap();
    }
}

static void wait_starts(uint64_t n)
{
    int64_t deadline_ms = kinf__clock_now_ms() + PLUGIN_PATIENCE_MS;

    while (status().n_starts < n) {
        assert_true(kinf__clock_now_ms() < deadline_ms);
        plugin_nap();
    }
}

/* --- what it is told --- */

static void it_is_told_the_state_and_what_changes_and_is_closed(void **state)
{
    (void)state;
    start("scripted");
    put("a", 1);
    recorder_wait_for(&recorder, "1 ADDED ns/a@1");
    kinf__outbox_feed_synced(feed);
    recorder_wait_for(&recorder, "1 SYNCED things");
    put("a", 2);
    recorder_wait_for(&recorder, "1 MODIFIED ns/a@2 was 1");
    delete ("a", 3);
    recorder_wait_for(&recorder, "1 DELETED ns/a@3 was 2");
    wait_flushed();
    assert_true(n_flushed > 0);
    assert_true(status().is_running);
    assert_string_equal(handler->name, "scripted");
    kinf__handler_stop(handler);
    recorder_expect(&recorder, "1 open", "1 RESET", "1 ADDED ns/a@1", "1 SYNCED things",
                    "1 MODIFIED ns/a@2 was 1", "1 DELETED ns/a@3 was 2", "1 close");
    assert_int_equal(status().n_errors, 0);
}

/* It is closed meanwhile, since what it began itself may act, too. */
static void one_that_was_halted_is_loaded_again_and_told_all(void **state)
{
    (void)state;
    start("scripted");
    put("a", 1);
    recorder_wait_for(&recorder, "1 ADDED ns/a@1");
    wait_flushed();
    kinf__handler_halt(handler);
    assert_true(kinf__handler_join(handler));
    assert_false(status().is_running);
    recorder_wait_for(&recorder, "1 close");
    reload();
    put("b", 2);
    assert_int_equal(kinf__handler_start(handler, NULL), 0);
    recorder_wait_for(&recorder, "2 RESET");
    recorder_wait_for(&recorder, "2 ADDED ns/a@1");
    recorder_wait_for(&recorder, "2 ADDED ns/b@2");
    wait_flushed();
    assert_true(kinf__handler_stop(handler));
    recorder_wait_for(&recorder, "2 close");
    assert_int_equal(status().n_errors, 0);
}

static _Atomic(bool) leads;

static bool may_tell(void *ctx)
{
    (void)ctx;
    return atomic_load(&leads);
}

/* As a process that was halted finds it, before anybody has halted the handler. */
static void one_whose_term_is_over_is_told_nothing_more(void **state)
{
    int64_t deadline_ms = kinf__clock_now_ms() + PLUGIN_PATIENCE_MS;

    (void)state;
    start("scripted");
    recorder_wait_for(&recorder, "1 RESET");
    kinf__handler_halt(handler);
    assert_true(kinf__handler_join(handler));
    handler->may_tell = may_tell;
    atomic_store(&leads, true);
    assert_int_equal(kinf__handler_start(handler, NULL), 0);
    put("a", 1);
    recorder_wait_for(&recorder, "2 ADDED ns/a@1");
    wait_flushed();
    atomic_store(&leads, false);
    put("b", 2);
    while (status().is_running) {
        assert_true(kinf__clock_now_ms() < deadline_ms);
        plugin_nap();
    }
    recorder_expect(&recorder, "1 open", "1 RESET", "1 close", "2 open", "2 RESET",
                    "2 ADDED ns/a@1");
    atomic_store(&leads, true);
    recorder_wait_for(&recorder, "2 ADDED ns/b@2");
    wait_flushed();
    assert_true(kinf__handler_stop(handler));
    assert_int_equal(status().n_errors, 0);
}

/* P1, P2 */
static void what_it_is_too_slow_for_waits_by_key(void **state)
{
    (void)state;
    start("scripted");
    put("a", 1);
    recorder_wait_for(&recorder, "1 ADDED ns/a@1");
    wait_flushed();
    recorder_block(&recorder);
    put("x", 2);
    recorder_wait_blocked(&recorder);
    for (int i = 3; i < 3000; i++)
        put("a", i);
    put("b", 3000);
    delete ("b", 3001);
    put("c", 3002);
    assert_true(status().outbox.n_waiting <= 3);
    recorder_unblock(&recorder);
    recorder_wait_for(&recorder, "1 ADDED ns/c@3002");
    end_handler();
    recorder_expect(&recorder, "1 open", "1 RESET", "1 ADDED ns/a@1", "1 ADDED ns/x@2",
                    "1 MODIFIED ns/a@2999 was 1", "1 ADDED ns/c@3002", "1 close");
}

static void a_flush_comes_behind_a_batch(void **state)
{
    char name[16];

    (void)state;
    start("scripted");
    recorder_wait_for(&recorder, "1 RESET");
    wait_flushed();
    recorder_block(&recorder);
    put("first", 1);
    recorder_wait_blocked(&recorder);
    atomic_store(&n_flushed, 0);
    for (int i = 0; i < 3 * KINF_PLUGIN_BATCH; i++) {
        snprintf(name, sizeof name, "a%d", i);
        put(name, i + 1);
    }
    recorder_unblock(&recorder);
    wait_flushed();
    assert_true(n_flushed >= 3);
    assert_int_equal(status().outbox.n_told, 2 + 3 * KINF_PLUGIN_BATCH);
}

static void without_a_flush_it_is_done_when_it_returns(void **state)
{
    (void)state;
    start("no_flush");
    put("a", 1);
    recorder_wait_for(&recorder, "1 ADDED ns/a@1");
    wait_flushed();
    assert_int_equal(n_flushed, 0);
}

/* --- errors --- */

/* P3 */
static void an_error_leads_to_everything_anew(void **state)
{
    int64_t began_ms = kinf__clock_now_ms();

    (void)state;
    atomic_store(&failing_changes, 1);
    start("scripted");
    put("a", 1);
    recorder_wait_for(&recorder, "1 ADDED ns/a@1");
    assert_true(kinf__clock_now_ms() - began_ms >= 1000);
    end_handler();
    recorder_expect(&recorder, "1 open", "1 RESET", "1 RESET", "1 ADDED ns/a@1", "1 close");
    assert_int_equal(plugin_count_log("handler failed handler=\"scripted\" "
                                      "error=\"on_change: it is full\""),
                     1);
}

/* P3, P4 */
static void a_deletion_is_told_until_it_is_flushed(void **state)
{
    (void)state;
    start("scripted");
    put("a", 1);
    recorder_wait_for(&recorder, "1 ADDED ns/a@1");
    put("b", 1);
    recorder_wait_for(&recorder, "1 ADDED ns/b@1");
    wait_flushed();
    atomic_store(&do_flushes_fail, true);
    delete ("a", 2);
    plugin_wait_log("handler failed handler=\"scripted\" error=\"flush: the disk is full\"");
    assert_false(status().is_running);
    delete ("b", 3); /* while it is told nothing */
    put("c", 4);
    delete ("c", 5); /* nobody was told of it */
    atomic_store(&do_flushes_fail, false);
    wait_starts(2);
    wait_flushed();
    plugin_install("another_name", "plugin.so", SIZE_MAX);
    reload();
    recorder_wait_for(&recorder, "1 close");
    end_handler();
    recorder_expect(&recorder, "1 open", "1 RESET", "1 ADDED ns/a@1", "1 ADDED ns/b@1",
                    "1 DELETED ns/a@2 was 1", "1 RESET", "1 DELETED ns/a@2", "1 DELETED ns/b@3",
                    "2 open", "2 RESET", "1 close", "2 close");
}

static void one_that_cannot_be_opened_is_tried_again(void **state)
{
    (void)state;
    atomic_store(&failing_opens, 1);
    start("scripted");
    put("a", 1);
    plugin_wait_log("error=\"open: it will not open\"");
    recorder_wait_for(&recorder, "1 ADDED ns/a@1");
    assert_int_equal(status().n_starts, 2);
    assert_int_equal(status().n_errors, 1);
}

/* By SIGHUP, when it is mended: without waiting for the pause, and the file need not be another one. */
static void a_reload_ends_the_pause(void **state)
{
    int64_t began_ms = kinf__clock_now_ms();

    (void)state;
    atomic_store(&failing_opens, 1);
    start("scripted");
    plugin_wait_log("error=\"open: ");
    reload();
    recorder_wait_for(&recorder, "1 RESET");
    assert_true(kinf__clock_now_ms() - began_ms < 1000 + SLACK_MS);
    end_handler();
    recorder_expect(&recorder, "1 open", "1 RESET", "1 close");
}

static void what_was_told_is_flushed_at_the_end(void **state)
{
    (void)state;
    start("scripted");
    recorder_wait_for(&recorder, "1 RESET");
    wait_flushed();
    recorder_block(&recorder);
    put("a", 1);
    recorder_wait_blocked(&recorder);
    atomic_store(&n_flushed, 0);
    kinf__handler_interrupt(handler);
    recorder_unblock(&recorder);
    assert_true(kinf__handler_stop(handler));
    assert_int_equal(n_flushed, 1);
    assert_int_equal(status().outbox.n_unacknowledged, 0);
}

/* As an elector does, whose last term may begin when the end does. */
static void *run_terms(void *ctx)
{
    (void)ctx;
    for (;;) {
        if (kinf__handler_start(handler, NULL) < 0)
            abort();
        if (kinf__outbox_is_closed(&handler->outbox))
            return NULL;
        kinf__handler_halt(handler);
        if (!kinf__handler_join(handler))
            abort();
    }
}

static void the_end_is_not_lost_when_a_term_begins(void **state)
{
    const size_t n_rounds = test_rounds(50);

    (void)state;
    for (size_t i = 0; i < n_rounds; i++) {
        pthread_t thread;

        start("scripted");
        kinf__handler_halt(handler);
        assert_true(kinf__handler_join(handler));
        assert_int_equal(pthread_create(&thread, NULL, run_terms, NULL), 0);
        nanosleep(&(struct timespec){ .tv_nsec = (long)(i * 1000000 / n_rounds) }, NULL);
        kinf__handler_interrupt(handler);
        pthread_join(thread, NULL);
        assert_true(kinf__waker_is_set(&handler->stop));
        end_handler();
    }
    assert_int_equal(plugin_count_log("handler does not end"), 0);
}

/* --- loading it anew --- */

/* P5 */
static void a_new_one_is_told_the_state_before_the_old_one_is_closed(void **state)
{
    (void)state;
    start("scripted");
    put("a", 1);
    kinf__outbox_feed_synced(feed);
    recorder_wait_for(&recorder, "1 SYNCED things");
    wait_flushed();
    reload(); /* nothing has changed */
    put("a", 2);
    recorder_wait_for(&recorder, "1 MODIFIED ns/a@2 was 1");
    wait_flushed();
    plugin_install("another_name", "plugin.so", SIZE_MAX);
    reload();
    recorder_wait_for(&recorder, "1 close");
    put("a", 3);
    recorder_wait_for(&recorder, "2 MODIFIED ns/a@3 was 2");
    end_handler();
    recorder_expect(&recorder, "1 open", "1 RESET", "1 ADDED ns/a@1", "1 SYNCED things",
                    "1 MODIFIED ns/a@2 was 1", "2 open", "2 RESET", "2 ADDED ns/a@2",
                    "2 SYNCED things", "1 close", "2 MODIFIED ns/a@3 was 2", "2 close");
}

static void another_configuration_loads_it_anew(void **state)
{
    char config[40];

    (void)state;
    start("scripted");
    recorder_wait_for(&recorder, "1 RESET");
    snprintf(config, sizeof config, "%s ", config_of(&script));
    assert_int_equal(kinf__plugin_handler_reload(handler, config, NULL), 0);
    recorder_wait_for(&recorder, "1 close");
    assert_int_equal(kinf__plugin_handler_reload(handler, config, NULL), 0);
    put("a", 1);
    recorder_wait_for(&recorder, "2 ADDED ns/a@1");
    assert_int_equal(n_instances, 2);
}

/* P5 */
static void a_new_one_that_is_bad_leaves_the_old_one(void **state)
{
    static const char *const bad[] = { "another_abi", "small",       "no_table",   "no_symbol",
                                       "undefined",   "no_name",     "empty_name", "no_open",
                                       "no_close",    "no_on_change" };
    int version = 1;

    (void)state;
    start("scripted");
    put("a", version);
    recorder_wait_for(&recorder, "1 ADDED ns/a@1");
    for (size_t i = 0; i < KINF__ARRAY_LEN(bad) + 1; i++) {
        char line[64];

        wait_flushed();
        if (i < KINF__ARRAY_LEN(bad))
            plugin_install(bad[i], "plugin.so", SIZE_MAX);
        else
            assert_int_equal(remove(plugin_file("plugin.so")), 0);
        reload();
        while (plugin_count_log("plugin is not loaded anew, the one before stays") <= i)
            plugin_nap();
        put("a", ++version);
        snprintf(line, sizeof line, "1 MODIFIED ns/a@%d was %d", version, version - 1);
        recorder_wait_for(&recorder, line);
    }
    wait_flushed();
    plugin_install("scripted", "plugin.so", SIZE_MAX);
    atomic_store(&failing_opens, 1);
    reload();
    plugin_wait_log("error=\"open: it will not open\"");
    put("a", 100);
    recorder_wait_for(&recorder, "1 MODIFIED ns/a@100 was 12");
    reload(); /* now it opens */
    recorder_wait_for(&recorder, "2 ADDED ns/a@100");
    assert_int_equal(status().n_starts, 1);
}

static void of_three_generations_the_first_goes(void **state)
{
    (void)state;
    start("scripted");
    put("a", 1);
    recorder_wait_for(&recorder, "1 ADDED ns/a@1");
    wait_flushed();
    atomic_store(&failing_changes, 1); /* the second is not told the state */
    plugin_install("another_name", "plugin.so", SIZE_MAX);
    reload();
    plugin_wait_log("it is full");
    plugin_install("larger", "plugin.so", SIZE_MAX);
    reload();
    recorder_wait_for(&recorder, "2 close");
    end_handler();
    recorder_expect(&recorder, "1 open", "1 RESET", "1 ADDED ns/a@1", "2 open", "2 RESET", "3 open",
                    "1 close", "3 RESET", "3 ADDED ns/a@1", "2 close", "3 close");
}

/* P6 */
static void a_leak_is_said_by_name(void **state)
{
    (void)state;
    atomic_store(&keeps_objects, true);
    start("scripted");
    put("a", 1);
    recorder_wait_for(&recorder, "1 ADDED ns/a@1");
    wait_flushed();
    atomic_store(&keeps_objects, false);
    plugin_install("another_name", "plugin.so", SIZE_MAX);
    reload();
    plugin_wait_log("plugin leaks, and stays loaded handler=\"scripted\" objects=1 texts=0");
    assert_int_equal(plugin_count_log("handler=\"another\" objects"), 0);
}

/* --- slow ones --- */

/* P1 */
static void a_slow_call_is_said_by_name_once(void **state)
{
    (void)state;
    start("scripted");
    recorder_wait_for(&recorder, "1 RESET");
    wait_flushed();
    recorder_block(&recorder);
    put("a", 1);
    recorder_wait_blocked(&recorder);
    kinf__plugin_handler_look(handler, kinf__clock_now_ms() + 5000);
    assert_int_equal(plugin_count_log("plugin is slow"), 0);
    kinf__plugin_handler_look(handler, kinf__clock_now_ms() + 10001);
    kinf__plugin_handler_look(handler, kinf__clock_now_ms() + 60000);
    assert_int_equal(plugin_count_log("plugin is slow handler=\"scripted\" call=on_change ms=1000"),
                     1);
    recorder_unblock(&recorder);
    wait_flushed();
    kinf__plugin_handler_look(handler, kinf__clock_now_ms() + 60000);
    assert_int_equal(plugin_count_log("plugin is slow"), 1);
    recorder_block(&recorder);
    put("a", 2);
    recorder_wait_blocked(&recorder);
    kinf__clock_advance(20000);
    recorder_unblock(&recorder); /* nobody looked meanwhile */
    wait_flushed();
    assert_int_equal(plugin_count_log("plugin is slow"), 2);
}

static void one_that_does_not_return_is_left_after_three_seconds(void **state)
{
    int64_t began_ms;

    (void)state;
    start("scripted");
    recorder_wait_for(&recorder, "1 RESET");
    wait_flushed();
    recorder_block(&recorder);
    put("a", 1);
    recorder_wait_blocked(&recorder);
    began_ms = kinf__clock_now_ms();
    assert_false(kinf__handler_stop(handler));
    assert_true(kinf__clock_now_ms() - began_ms >= 2990);
    assert_true(kinf__clock_now_ms() - began_ms < 3000 + SLACK_MS);
    kinf__outbox_feed_free(feed);
    feed = NULL;
    kinf__handler_free(handler); /* which leaves it */
    assert_int_equal(plugin_count_log("handler does not end handler=\"scripted\""), 1);
    recorder_unblock(&recorder);
    while (!kinf__handler_stop(handler)) /* for the test's sake */
        plugin_nap();
    recorder_expect(&recorder, "1 open", "1 RESET", "1 ADDED ns/a@1", "1 close");
}

/* --- its threads --- */

#define N_THREADS 3

struct threads {
    const struct kinf_host *host;
    const struct kinf_object *object;
    pthread_t items[N_THREADS];
};

static void *use_host(void *ctx)
{
    const struct threads *threads = ctx;
    const struct kinf_host *host = threads->host;
    struct pollfd stop = { host->stop_fd(host), POLLIN, 0 };
    char name[16];
    size_t len;

    do {
        const struct kinf_object *object = host->ref(host, threads->object);

        host->count(host, "rounds", 1);
        host->log(host, KINF_LOG_DEBUG, "round");
        if (host->get_string(host, object, "metadata.name", name, sizeof name) != 1 ||
            strcmp(host->key(host, object), "ns/a") != 0)
            abort();
        host->free_text(host, host->json(host, object, &len));
        host->unref(host, object);
    } while (poll(&stop, 1, 0) == 0);
    return NULL;
}

static int open_threads(struct plugin_script *of_script, const struct kinf_host *host,
                        void **ret_state, struct kinf_error *err)
{
    struct threads *threads = calloc(1, sizeof *threads);

    (void)of_script;
    (void)err;
    threads->host = host;
    *ret_state = threads;
    return 0;
}

static int start_threads(void *state, const struct kinf_change *change, struct kinf_error *err)
{
    struct threads *threads = state;

    (void)err;
    if (threads->object != NULL || change->object == NULL)
        return 0;
    threads->object = threads->host->ref(threads->host, change->object);
    for (size_t i = 0; i < N_THREADS; i++)
        pthread_create(&threads->items[i], NULL, use_host, threads);
    return 0;
}

static int flush_nothing(void *state, struct kinf_error *err)
{
    (void)state;
    (void)err;
    return 0;
}

static void join_threads(void *state)
{
    struct threads *threads = state;

    for (size_t i = 0; threads->object != NULL && i < N_THREADS; i++)
        pthread_join(threads->items[i], NULL);
    threads->host->unref(threads->host, threads->object);
    free(threads);
}

/* While the daemon tells it, and asks for its counters. */
static void its_threads_call_while_it_is_told(void **state)
{
    static struct plugin_script threaded = { open_threads, start_threads, flush_nothing,
                                             join_threads, NULL };
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    uint64_t rounds = 0;

    (void)state;
    start_script("scripted", &threaded);
    for (int i = 1; rounds < test_rounds(8000); i++) {
        put("a", i);
        out.len = 0;
        assert_int_equal(kinf__plugin_handler_write_counts(handler, "f", "0", &out), 0);
        if (out.len != 0)
            sscanf(kinf__buffer_cstr(&out), "f{handler=\"0\",name=\"rounds\"} %" SCNu64, &rounds);
    }
    assert_true(kinf__handler_stop(handler));
    assert_int_equal(plugin_count_log("plugin leaks"), 0);
    assert_int_equal(plugin_count_log("gives back more"), 0);
}

/* --- memory --- */

static void without_memory_for_a_handler_there_is_an_error(void **state)
{
    bool did_fail = true;

    (void)state;
    plugin_install("scripted", "plugin.so", SIZE_MAX);
    for (size_t n = 1; did_fail; n++) {
        struct kinf_error err = KINF_ERROR_INIT;
        int failed;

        test_fail_allocation(n);
        failed =
            kinf__plugin_handler_new(plugin_file("plugin.so"), config_of(&script), &handler, &err);
        did_fail = test_allocation_failed();
        assert_int_equal(failed, did_fail ? KINF_ERR_NO_MEMORY : 0);
    }
    assert_int_equal(kinf__handler_start(handler, NULL), 0);
    recorder_wait_for(&recorder, "1 RESET");
    test_fail_allocation(1);
    assert_int_equal(kinf__plugin_handler_reload(handler, config_of(&script), NULL),
                     KINF_ERR_NO_MEMORY);
    assert_true(test_allocation_failed());
}

/* On its own thread: a change is told later, one that is loaded anew leaves the old one. */
static void want_of_memory_loses_nothing(void **state)
{
    int version = 1;

    (void)state;
    atomic_store(&failing_allocation, 1);
    start("scripted");
    put("a", version);
    recorder_wait_for(&recorder, "1 ADDED ns/a@1");
    for (size_t n = 1; n < 10 || plugin_count_log("plugin is loaded anew") == 0; n++) {
        size_t n_answers = plugin_count_log("plugin is loaded anew") +
                           plugin_count_log("plugin is not loaded anew");

        wait_flushed();
        plugin_install("scripted", "plugin.so", SIZE_MAX);
        atomic_store(&failing_allocation, n);
        put("a", ++version);
        wait_flushed();
        reload();
        while (plugin_count_log("plugin is loaded anew") +
                   plugin_count_log("plugin is not loaded anew") ==
               n_answers)
            plugin_nap();
    }
    put("a", ++version);
    wait_flushed();
    assert_int_equal(status().outbox.n_waiting, 0);
    assert_true(plugin_count_log("plugin is not loaded anew") > 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(it_is_told_the_state_and_what_changes_and_is_closed),
        TEST(one_that_was_halted_is_loaded_again_and_told_all),
        TEST(one_whose_term_is_over_is_told_nothing_more),
        TEST(what_it_is_too_slow_for_waits_by_key),
        TEST(a_flush_comes_behind_a_batch),
        TEST(without_a_flush_it_is_done_when_it_returns),
        TEST(an_error_leads_to_everything_anew),
        TEST(a_deletion_is_told_until_it_is_flushed),
        TEST(one_that_cannot_be_opened_is_tried_again),
        TEST(a_reload_ends_the_pause),
        TEST(what_was_told_is_flushed_at_the_end),
        TEST(the_end_is_not_lost_when_a_term_begins),
        TEST(a_new_one_is_told_the_state_before_the_old_one_is_closed),
        TEST(another_configuration_loads_it_anew),
        TEST(a_new_one_that_is_bad_leaves_the_old_one),
        TEST(of_three_generations_the_first_goes),
        TEST(a_leak_is_said_by_name),
        TEST(a_slow_call_is_said_by_name_once),
        TEST(one_that_does_not_return_is_left_after_three_seconds),
        TEST(its_threads_call_while_it_is_told),
        TEST(without_memory_for_a_handler_there_is_an_error),
        TEST(want_of_memory_loses_nothing),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
