/*
 * What an informer makes of servers in trouble, end to end over written scripts: one whose watch
 * cache stands still, one that was restored from a backup, one that leaves, and resources that are
 * withdrawn. Each with the queue by key and in order, but for two that take their time and do not
 * depend on it.
 *
 * Where a script waits for silence, each of its exchanges may be used more than once, with the same
 * result: whatever was late on a slow machine is only asked for again.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "informer/informer.h"
#include "reflector/reflector_priv.h"
#include "unit/engine_fixture.h"

#define SILENT_AFTER_MS 800

#define ALWAYS_STREAM                                                                              \
    "exchange always\nmatch GET /api/v1/pods watch=1 sendInitialEvents=true !resourceVersion\n"
#define ALWAYS_LIST(rules) "exchange always\nmatch GET /api/v1/pods !watch " rules "\n"
#define ALWAYS_WATCH(rv)                                                                           \
    "exchange always\nmatch GET /api/v1/pods watch=1 !sendInitialEvents resourceVersion=" rv "\n"
#define ON_STREAM                                                                                  \
    "exchange once\nmatch GET /api/v1/pods watch=1 sendInitialEvents=true !resourceVersion\n"
#define SILENCE       "status 200\nstall forever\n"
#define ADDED(object) EVENT("ADDED", object)
#define BOOKMARK(rv)                                                                               \
    EVENT("BOOKMARK",                                                                              \
          "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" rv        \
          "\"}}")
#define INITIAL_END(rv)                                                                            \
    EVENT("BOOKMARK",                                                                              \
          "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" rv        \
          "\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}")

static struct kinf_informer_status status_of(struct engine_fixture *f)
{
    struct kinf_informer_status status;

    kinf_informer_status(f->informer, &status);
    return status;
}

/* --- what is logged --- */

/* Lines from info up that contain a text, since log_begin(). */
static struct {
    const char *trouble;
    const char *end;
    _Atomic(int) n_troubles;
    _Atomic(int) n_ends;
} logged;

static void count_line(enum kinf_log_level level, const char *module, const char *line, void *ctx)
{
    (void)level;
    (void)module;
    (void)ctx;
    if (strstr(line, logged.trouble) != NULL)
        atomic_fetch_add(&logged.n_troubles, 1);
    if (strstr(line, logged.end) != NULL)
        atomic_fetch_add(&logged.n_ends, 1);
}

static void log_begin(const char *trouble, const char *end)
{
    logged.trouble = trouble;
    logged.end = end;
    atomic_store(&logged.n_troubles, 0);
    atomic_store(&logged.n_ends, 0);
    kinf_log_set_callback(count_line, NULL);
}

static void log_end(int n_troubles, int n_ends)
{
    kinf_log_set_callback(NULL, NULL);
    assert_int_equal(atomic_load(&logged.n_troubles), n_troubles);
    assert_int_equal(atomic_load(&logged.n_ends), n_ends);
}

/* --- a watch cache that stands still --- */

/* Watch lists never get to their end, watches are silent; lists of etcd have what is new. */
static void silent_watches_of_a_frozen_cache_are_made_up_for_by_lists(void **state)
{
    struct engine_fixture *f = *state;

    f->options.initial = KINF_INITIAL_WATCHLIST;
    f->options.silent_after_ms = SILENT_AFTER_MS;
    log_begin("watches are not to be relied on resource=pods namespace=*",
              "watches deliver again resource=pods namespace=*");
    ENGINE_START(f, ALWAYS_STREAM "status 200\nerror 504 Timeout Too large resource version: 9\n",
                 ALWAYS_LIST("!resourceVersion !limit") LIST("10", POD("a", "3") "," POD("b", "4")),
                 ALWAYS_WATCH("10") SILENCE,
                 ALWAYS_LIST("!resourceVersion limit=500")
                     LIST("20", POD("a", "15") "," POD("c", "16")),
                 ALWAYS_WATCH("20") "status 200\nwait 1\n" BOOKMARK("21")
                     ADDED(POD("end", "22")) "stall forever\n",
                 ALWAYS_WATCH("22") SILENCE);
    ENGINE_EXPECT(f, "add! a@3", "add! b@4", "synced", "update a@3 a@15", "delete* b@4",
                  "add c@16");
    engine_wait_for_state(f, KINF_STATE_STALE);
    engine_expect_reason(f, "stands still");
    assert_true(status_of(f).n_extra_lists >= 1);
    assert_true(status_of(f).n_silent >= 1);
    replay_signal(f->replay, 1);
    recorder_wait_for(&f->recorder, "add end@22");
    engine_wait_for_state(f, KINF_STATE_LIVE);
    log_end(1, 1);
}

static void refused_watches_of_a_cache_that_never_comes_are_made_up_for_by_lists(void **state)
{
    struct engine_fixture *f = *state;

    f->options.silent_after_ms = SILENT_AFTER_MS;
    log_begin("list or watch failed resource=pods namespace=* retry_in_ms=", "watching again");
    ENGINE_START(f, ALWAYS_LIST("!resourceVersion !limit") LIST("10", POD("a", "3")),
                 ALWAYS_WATCH("10") "failure 429 TooManyRequests storage is (re)initializing\n",
                 ALWAYS_LIST("!resourceVersion limit=500") LIST("20", POD("a", "15")),
                 ALWAYS_WATCH("20") "wait 1\nstatus 200\n" BOOKMARK("20")
                     ADDED(POD("end", "22")) "stall forever\n",
                 ALWAYS_WATCH("22") SILENCE);
    ENGINE_EXPECT(f, "add! a@3", "synced", "update a@3 a@15");
    engine_wait_for_state(f, KINF_STATE_STALE);
    engine_expect_reason(f, "stands still");
    engine_expect_reason(f, "storage is (re)initializing");
    replay_signal(f->replay, 1);
    recorder_wait_for(&f->recorder, "add end@22");
    engine_wait_for_state(f, KINF_STATE_LIVE);
    log_end(1, 1);
}

/* The list that makes up for watches breaks off, and the watch is tried again: of the list nothing stays. */
static void a_list_that_was_given_up_leaves_nothing(void **state)
{
    struct engine_fixture *f = *state;

    f->options.silent_after_ms = SILENT_AFTER_MS;
    ENGINE_START(
        f, ALWAYS_LIST("!resourceVersion !limit") LIST("10", POD("a", "3")),
        "exchange times 100\nmatch GET /api/v1/pods watch=1 !sendInitialEvents resourceVersion=10\n"
        "failure 429 TooManyRequests storage is (re)initializing\n",
        ALWAYS_LIST(
            "!resourceVersion limit=500 !continue") "status 200\nevent "
                                                    "{\"kind\":\"List\",\"apiVersion\":\"v1\","
                                                    "\"metadata\":{\"resourceVersion\":"
                                                    "\"20\",\"continue\":\"t\"},\"items\":[" POD(
                                                        "b", "15") "]}\n",
        ALWAYS_LIST("limit=500 continue=t") "cut\n",
        ALWAYS_WATCH("10") "status 200\n" ADDED(POD("end", "22")) "stall forever\n",
        ALWAYS_WATCH("22") SILENCE);
    recorder_wait_for(&f->recorder, "add end@22");
    assert_true(status_of(f).n_extra_lists >= 1);
    assert_int_equal(status_of(f).list_since_ms, 0);
    assert_int_equal(f->informer->reflector->listed.n_items, 0);
}

static int take_version_out(const struct kinf_object *object, const struct kinf_object **ret_object,
                            void *ctx)
{
    char json[128];
    int len = snprintf(json, sizeof json, "{\"metadata\":{\"namespace\":\"n\",\"name\":\"%s\"}}",
                       kinf_object_name(object));

    (void)ctx;
    return kinf_object_new_from_json(kinf_object_type(object), json, (size_t)len, ret_object, NULL);
}

/* What is stored says nothing of versions then, and the list behind the silence nothing new. */
static void a_quiet_server_is_believed_whatever_a_transform_stores(void **state)
{
    struct engine_fixture *f = *state;

    f->options.label_selector = "app=shop"; /* the server counts nothing for it */
    f->options.silent_after_ms = SILENT_AFTER_MS;
    f->options.transform = take_version_out;
    log_begin("watches are not to be relied on", "");
    ENGINE_START(
        f, ALWAYS_LIST("!resourceVersion") LIST("10", POD("a", "3")), ON_WATCH("10") "cut\n",
        "exchange always\nmatch GET /api/v1/namespaces/n/pods fieldSelector=metadata.name=a\n" LIST(
            "10", POD("a", "3")),
        ALWAYS_WATCH("10") "status 200\nwait 1\n" END("21"), ALWAYS_WATCH("21") SILENCE);
    ENGINE_EXPECT(f, "add! a@", "synced");
    while (status_of(f).n_extra_lists == 0)
        sched_yield();
    replay_signal(f->replay, 1);
    recorder_wait_for(&f->recorder, "add end@");
    kinf_log_set_callback(NULL, NULL);
    assert_int_equal(atomic_load(&logged.n_troubles), 0);
}

/* --- a server that goes back --- */

struct waiter {
    struct kinf_informer *informer;
    pthread_t thread;
    int rc;
};

static void *wait_main(void *ctx)
{
    struct waiter *waiter = ctx;

    waiter->rc = kinf_informer_wait_for_rv(waiter->informer, "60", ENGINE_PATIENCE_MS, NULL);
    return NULL;
}

static void begin_wait(struct engine_fixture *f, struct waiter *waiter)
{
    *waiter = (struct waiter){ .informer = f->informer };
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_main, waiter), 0);
    while (atomic_load(&f->informer->n_rv_waiters) == 0)
        sched_yield();
    kinf__mutex_lock(&f->informer->progress_lock); /* it gave this up to wait */
    kinf__mutex_unlock(&f->informer->progress_lock);
}

/* The server is behind what it was. A watch from there would be silent until it has come so far. */
static void a_restored_server_is_found_out(void **state)
{
    struct engine_fixture *f = *state;
    struct waiter waiter;

    f->options.initial = KINF_INITIAL_WATCHLIST;
    ENGINE_START(f,
                 ON_STREAM "status 200\n" ADDED(POD("a", "40")) ADDED(POD("b", "45"))
                     INITIAL_END("50") BOOKMARK("51") "wait 1\ncut\n",
                 ON_VERIFY("b") LIST("30", ""),
                 ON_STREAM "status 200\n" ADDED(POD("a", "20")) ADDED(POD("c", "25"))
                     INITIAL_END("30") BOOKMARK("31") ADDED(POD("end", "32")) "stall forever\n");
    ENGINE_EXPECT(f, "add! a@40", "add! b@45", "synced");
    engine_wait_for_resource_version(f, "51");
    begin_wait(f, &waiter);
    replay_signal(f->replay, 1);
    ENGINE_EXPECT(f, "add! a@40", "add! b@45", "synced", "update a@40 a@20", "delete* b@45",
                  "add c@25", "add end@32");
    pthread_join(waiter.thread, NULL);
    assert_int_equal(waiter.rc, KINF_ERR_EXPIRED);
    engine_wait_for_resource_version(f, "32");
    engine_wait_for_state(f, KINF_STATE_LIVE);
    assert_int_equal(status_of(f).n_silent, 0);
}

/* It went back and new writes took it past the version that was known: nothing is silent, and a
 * watch would bring only what comes behind that. */
static void a_restored_server_that_was_overtaken_is_found_out(void **state)
{
    struct engine_fixture *f = *state;

    log_begin("the server is not what it was (restored from a backup?), listing resource=pods", "");
    ENGINE_START(f, ON_LIST("") LIST("10", POD("a", "3") "," POD("b", "4")),
                 ON_WATCH("10") "status 200\n" MODIFIED(POD("a", "11")) "wait 1\ncut\n",
                 ON_VERIFY("a") LIST("30", POD("a", "3")),
                 ON_LIST("!resourceVersion") LIST("30", POD("a", "3") "," POD("c", "5")),
                 ON_WATCH("30") "status 200\n" END("31"));
    engine_wait_for_resource_version(f, "11");
    replay_signal(f->replay, 1);
    ENGINE_EXPECT(f, "add! a@3", "add! b@4", "synced", "update a@3 a@11", "update a@11 a@3",
                  "delete* b@4", "add c@5", "add end@31");
    assert_int_equal(status_of(f).n_lists, 2);
    kinf_log_set_callback(NULL, NULL);
    assert_int_equal(atomic_load(&logged.n_troubles), 1);
}

/* --- a server that leaves --- */

#define SHUTTING_DOWN                                                                              \
    "status 429\nheader Content-Type: text/plain\n"                                                \
    "event The apiserver is shutting down, please try again later.\n"
#define INITIALIZING "failure 429 TooManyRequests storage is (re)initializing\n"

static void a_server_that_restarts_costs_no_list_and_two_lines(void **state)
{
    struct engine_fixture *f = *state;

    log_begin("list or watch failed resource=pods namespace=* retry_in_ms=",
              "watching again resource=pods namespace=*");
    ENGINE_START(f, ON_LIST("") LIST("10", POD("a", "3")),
                 ON_WATCH("10") "status 200\nwait 1\n" MODIFIED(POD("a", "11")),
                 ON_WATCH("11") SHUTTING_DOWN, ON_WATCH("11") SHUTTING_DOWN,
                 ON_WATCH("11") "reset\n", ON_VERIFY("a") "reset\n",
                 ON_VERIFY("a") LIST("11", POD("a", "11")),
                 ON_VERIFY_COUNT("11") LIST("11", POD("a", "11")), ON_WATCH("11") INITIALIZING,
                 ON_WATCH("11") INITIALIZING, ON_WATCH("11") "status 200\n" END("12"));
    ENGINE_EXPECT(f, "add! a@3", "synced");
    replay_signal(f->replay, 1);
    ENGINE_EXPECT(f, "add! a@3", "synced", "update a@3 a@11", "add end@12");
    engine_wait_for_state(f, KINF_STATE_LIVE);
    assert_int_equal(status_of(f).n_lists, 1);
    log_end(1, 1);
}

/* --- a resource that is withdrawn --- */

#define WIDGETS              "/apis/example.com/v1/widgets"
#define ON_WIDGETS           "exchange once\nmatch GET " WIDGETS " !watch\n"
#define ON_WIDGETS_WATCH(rv) "exchange once\nmatch GET " WIDGETS " watch=1 resourceVersion=" rv "\n"
#define ON_WIDGETS_VERIFY    "exchange once\nmatch GET /apis/example.com/v1/namespaces/n/widgets\n"
#define NO_PAGE              "status 404\nheader Content-Type: text/plain\nevent 404 page not found\n"
#define ON_GROUPS            "exchange once\nmatch GET /apis\n"
#define GROUPS(groups)       "status 200\nevent {\"kind\":\"APIGroupList\",\"groups\":[" groups "]}\n"
#define EXAMPLE              "{\"name\":\"example.com\",\"versions\":[{\"version\":\"v1\"}]}"

/* The name of the resource is asked for before, at a server that knows legacy discovery alone. */
static void start_widgets(struct engine_fixture *f, const char *script)
{
    KINF__AUTO_BUFFER whole = KINF__BUFFER_INIT;

    assert_int_equal(kinf__buffer_printf(&whole, "%s%s", ON_GROUPS GROUPS(EXAMPLE), script), 0);
    engine_make(f, "widgets.example.com", kinf__buffer_cstr(&whole));
    assert_int_equal(kinf_informer_start(f->informer, NULL), 0);
}

/* Its objects went while nobody watched. */
static void a_withdrawn_resource_is_deleted_and_comes_back(void **state)
{
    struct engine_fixture *f = *state;

    start_widgets(f, ON_WIDGETS LIST("10", POD("a", "3") "," POD("b", "4"))
                         ON_WIDGETS_WATCH("10") "status 200\n" BOOKMARK(
                             "11") "wait 1\ncut\n" ON_WIDGETS_VERIFY NO_PAGE ON_WIDGETS_WATCH("11")
                             NO_PAGE ON_GROUPS GROUPS("") ON_WIDGETS NO_PAGE ON_WIDGETS
                  "wait 2\n" LIST("40", POD("b", "35"))
                      ON_WIDGETS_WATCH("40") "status 200\n" END("41"));
    ENGINE_EXPECT(f, "add! a@3", "add! b@4", "synced");
    replay_signal(f->replay, 1);
    ENGINE_EXPECT(f, "add! a@3", "add! b@4", "synced", "delete* a@3", "delete* b@4");
    engine_wait_for_state(f, KINF_STATE_ABSENT);
    engine_wait_for_resource_version(f, "13"); /* each end has taken one */
    replay_signal(f->replay, 2);
    ENGINE_EXPECT(f, "add! a@3", "add! b@4", "synced", "delete* a@3", "delete* b@4", "add b@35",
                  "add end@41");
    engine_wait_for_state(f, KINF_STATE_LIVE);
    engine_expect_reason(f, "");
}

/* There is no version for the ends of two objects: they take none. */
static void a_withdrawn_resource_at_the_last_of_all_versions_is_deleted(void **state)
{
    struct engine_fixture *f = *state;

    start_widgets(f, ON_WIDGETS LIST("18446744073709551613", POD("a", "3") "," POD("b", "4"))
                         ON_WIDGETS_WATCH("18446744073709551613") "status 200\n" BOOKMARK(
                             "18446744073709551614") "wait 1\ncut\n" ON_WIDGETS_VERIFY NO_PAGE
                             ON_WIDGETS_WATCH("18446744073709551614") NO_PAGE ON_GROUPS GROUPS("")
                                 ON_WIDGETS NO_PAGE);
    ENGINE_EXPECT(f, "add! a@3", "add! b@4", "synced");
    replay_signal(f->replay, 1);
    ENGINE_EXPECT(f, "add! a@3", "add! b@4", "synced", "delete* a@3", "delete* b@4");
    engine_wait_for_state(f, KINF_STATE_ABSENT);
    engine_wait_for_resource_version(f, "18446744073709551614");
}

static void a_proxy_that_lost_its_way_deletes_nothing(void **state)
{
    struct engine_fixture *f = *state;

    start_widgets(f, ON_WIDGETS LIST("10", POD("a", "3"))
                         ON_WIDGETS_WATCH("10") "status 200\n" BOOKMARK(
                             "11") "wait 1\ncut\n" ON_WIDGETS_VERIFY NO_PAGE ON_WIDGETS_WATCH("11")
                             NO_PAGE ON_GROUPS NO_PAGE ON_WIDGETS_WATCH("11")
                                 NO_PAGE ON_WIDGETS_VERIFY LIST("11", POD("a", "3"))
                                     ON_WIDGETS LIST("11", POD("a", "3"))
                                         ON_WIDGETS_WATCH("11") "wait 2\nstatus 200\n" END("12"));
    ENGINE_EXPECT(f, "add! a@3", "synced");
    replay_signal(f->replay, 1);
    assert_non_null(replay_wait_request(f->replay, 6, ENGINE_PATIENCE_MS));
    engine_wait_for_state(f, KINF_STATE_ABSENT);
    assert_int_equal(status_of(f).n_objects, 1);
    replay_signal(f->replay, 2);
    ENGINE_EXPECT(f, "add! a@3", "synced", "add end@12");
}

/* One that discovery still has: its custom resources are being set up. */
static void a_resource_that_discovery_still_has_is_waited_for(void **state)
{
    struct engine_fixture *f = *state;

    start_widgets(f, ON_WIDGETS LIST("10", POD("a", "3"))
                         ON_WIDGETS_WATCH("10") "status 200\n" BOOKMARK(
                             "11") "wait 1\ncut\n" ON_WIDGETS_VERIFY NO_PAGE ON_WIDGETS_WATCH("11")
                             NO_PAGE ON_WIDGETS_WATCH("11") "status 200\n" END("12"));
    ENGINE_EXPECT(f, "add! a@3", "synced");
    replay_signal(f->replay, 1);
    ENGINE_EXPECT(f, "add! a@3", "synced", "add end@12");
    assert_int_equal(status_of(f).n_lists, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(silent_watches_of_a_frozen_cache_are_made_up_for_by_lists,
                                        engine_set_up, engine_tear_down),
        cmocka_unit_test_setup_teardown(
            refused_watches_of_a_cache_that_never_comes_are_made_up_for_by_lists,
            engine_set_up_in_order, engine_tear_down),
        cmocka_unit_test_setup_teardown(a_list_that_was_given_up_leaves_nothing,
                                        engine_set_up_in_order, engine_tear_down),
        cmocka_unit_test_setup_teardown(a_quiet_server_is_believed_whatever_a_transform_stores,
                                        engine_set_up_in_order, engine_tear_down),
        ENGINE_BOTH(a_restored_server_is_found_out),
        ENGINE_BOTH(a_restored_server_that_was_overtaken_is_found_out),
        ENGINE_BOTH(a_server_that_restarts_costs_no_list_and_two_lines),
        ENGINE_BOTH(a_withdrawn_resource_is_deleted_and_comes_back),
        ENGINE_BOTH(a_withdrawn_resource_at_the_last_of_all_versions_is_deleted),
        ENGINE_BOTH(a_proxy_that_lost_its_way_deletes_nothing),
        ENGINE_BOTH(a_resource_that_discovery_still_has_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
