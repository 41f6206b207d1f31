/*
 * Informers that begin with the store of an earlier run, against written servers. Cites saved.h.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "informer/saved.h"
#include "reflector/reflector_priv.h"
#include "unit/engine_fixture.h"

#define BOOKMARK(rv)                                                                               \
    EVENT("BOOKMARK",                                                                              \
          "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" rv        \
          "\"}}")
#define ADDED(object)   EVENT("ADDED", object)
#define DELETED(object) EVENT("DELETED", object)
#define SILENCE         "status 200\nstall forever\n"
/* What the newest of the saved pods leads to, and how many there are. */
#define VERIFIED                                                                                   \
    ON_VERIFY("b")                                                                                 \
    LIST("20", POD("b", "4")), ON_VERIFY("a") LIST("20", POD("a", "3")),                           \
        ON_VERIFY_COUNT(                                                                           \
            "10") "status 200\nevent {\"kind\":\"List\",\"apiVersion\":\"v1\",\"metadata\":{"      \
                  "\"resourceVersion\":\"10\",\"remainingItemCount\":1,\"continue\":\"c\"},"       \
                  "\"items\":[" POD("a", "3") "]}\n"
#define WALL_MS 1700000000000

/* What was saved: its version and its pods, up to NULL; rv NULL: there is nothing. */
struct saved {
    const char *rv;
    const char *pods[4];
};

static int load(struct kinf__packer *packer, kinf__saved_object_cb *callback, void *callback_ctx,
                struct kinf__saved_origin *ret_origin, void *ctx, struct kinf_error *err)
{
    const struct saved *saved = ctx;
    const struct kinf_type *type;
    int r = 0;

    (void)packer;
    if (saved->rv == NULL)
        return kinf__error_set(err, KINF_ERR_PARSE, "damaged");
    assert_int_equal(kinf_type_intern("", "v1", "Pod", "pods", true, &type, err), 0);
    for (size_t i = 0; r == 0 && saved->pods[i] != NULL; i++) {
        const char *text = saved->pods[i];
        const struct kinf_object *object;

        r = kinf_object_new_from_json(type, text, strlen(text), &object, err);
        if (r == 0)
            r = callback(object, callback_ctx, err);
    }
    strcpy(ret_origin->rv, saved->rv);
    ret_origin->wall_ms = WALL_MS;
    return r;
}

static struct saved two = { "10", { POD("a", "3"), POD("b", "4"), NULL } };

static void start(struct engine_fixture *f, struct saved *saved, const char *const *parts)
{
    KINF__AUTO_BUFFER script = KINF__BUFFER_INIT;
    struct kinf_error err = KINF_ERROR_INIT;

    for (; *parts != NULL; parts++)
        assert_int_equal(kinf__buffer_printf(&script, "%s", *parts), 0);
    engine_make(f, "pods", kinf__buffer_cstr(&script));
    assert_int_equal(kinf__informer_set_saved(f->informer, load, saved, &err), 0);
    assert_int_equal(kinf_informer_start(f->informer, &err), 0);
}
#define START(f, saved, ...) start((f), (saved), (const char *const[]){ __VA_ARGS__, NULL })

static struct kinf_informer_status status_of(struct engine_fixture *f)
{
    struct kinf_informer_status status;

    kinf_informer_status(f->informer, &status);
    return status;
}

/* Whether the lines come in this order, whatever is between. */
static void expect_before(struct engine_fixture *f, const char *first, const char *second)
{
    size_t at[2] = { SIZE_MAX, SIZE_MAX };

    for (size_t i = 0; i < f->recorder.n_lines; i++) {
        at[0] = strcmp(f->recorder.lines[i], first) == 0 ? i : at[0];
        at[1] = strcmp(f->recorder.lines[i], second) == 0 ? i : at[1];
    }
    assert_true(at[0] < at[1] && at[1] != SIZE_MAX);
}

/* R1, R2, R3, R4 */
static void the_watch_goes_on_where_it_was(void **state)
{
    struct engine_fixture *f = *state;

    START(f, &two, VERIFIED,
          ON_WATCH("10") "status 200\n" ADDED(POD("c", "11")) MODIFIED(POD("a", "12"))
              DELETED(POD("b", "13")) BOOKMARK("25") "stall forever\n");
    ENGINE_EXPECT(f, "add! a@3", "add! b@4", "add c@11", "update a@3 a@12", "delete b@13",
                  "synced");
    expect_before(f, "delete b@13", "synced");
    engine_wait_for_state(f, KINF_STATE_LIVE);
    engine_expect_reason(f, "");
    engine_wait_for_resource_version(f, "25");
    assert_int_equal(status_of(f).n_lists, 0);
    assert_true(kinf_informer_has_synced(f->informer));
    assert_int_equal(kinf__informer_saved_wall_ms(f->informer), 0);
}

/* As long as their texts are, as of a list that was received: it says how the next one is asked for. */
static void what_was_loaded_counts_as_a_list(void **state)
{
    struct engine_fixture *f = *state;

    START(f, &two, VERIFIED, ON_WATCH("10") "status 200\n" BOOKMARK("20") "stall forever\n");
    ENGINE_EXPECT(f, "add! a@3", "add! b@4", "synced");
    assert_int_equal(kinf_informer_stop(f->informer, NULL), 0);
    assert_int_equal(f->informer->reflector->policy.expected_bytes,
                     strlen(two.pods[0]) + strlen(two.pods[1]));
}

/* R4 */
static void an_event_proves_nothing_but_itself(void **state)
{
    struct engine_fixture *f = *state;
    struct kinf_informer_status status;
    struct kinf_error err = KINF_ERROR_INIT;

    START(f, &two, VERIFIED, ON_WATCH("10") "status 200\n" ADDED(POD("c", "11")) "stall forever\n");
    ENGINE_EXPECT(f, "add! a@3", "add! b@4", "add c@11");
    status = status_of(f);
    assert_int_equal(status.state, KINF_STATE_STALE);
    assert_false(status.has_synced);
    assert_int_equal(status.last_contact_ms, 0);
    assert_int_equal(kinf__informer_saved_wall_ms(f->informer), WALL_MS);
    assert_null(kinf__informer_savable(f->informer));
    engine_expect_reason(f, "loaded from a file of 2023-11-14T22:13:20Z, the server has not");
    assert_int_equal(kinf_informer_wait_synced(f->informer, 10, &err), KINF_ERR_TIMEOUT);
}

static _Atomic(bool) may_index;

static int index_later(const struct kinf_object *object, struct kinf_index_values *values,
                       void *ctx)
{
    (void)object;
    (void)values;
    (void)ctx;
    while (!atomic_load(&may_index))
        sched_yield();
    return 0;
}

/* R4: the bookmark that confirms is not the first one in the queue. */
static void a_bookmark_that_waits_in_front_of_what_was_missed_proves_nothing(void **state)
{
    const struct kinf_index index = { .name = "later", .function = index_later };
    struct engine_fixture *f = *state;

    atomic_store(&may_index, false);
    f->options.indices = &index;
    f->options.n_indices = 1;
    START(f, &two, VERIFIED,
          ON_WATCH("10") "status 200\n" BOOKMARK("15") ADDED(POD("c", "18")) BOOKMARK("25")
              ADDED(POD("d", "26")) "stall forever\n");
    while (status_of(f).n_events < 2)
        sched_yield();
    atomic_store(&may_index, true);
    ENGINE_EXPECT(f, "add! a@3", "add! b@4", "add c@18", "add d@26", "synced");
    expect_before(f, "add c@18", "synced");
    expect_before(f, "synced", "add d@26");
}

/* R4: the server was at 20 when it was asked. */
static void an_event_behind_what_the_server_had_proves_the_rest(void **state)
{
    struct engine_fixture *f = *state;

    START(f, &two, VERIFIED,
          ON_WATCH("10") "status 200\n" ADDED(POD("c", "11"))
              ADDED(POD("d", "21")) "stall forever\n");
    ENGINE_EXPECT(f, "add! a@3", "add! b@4", "add c@11", "add d@21", "synced");
    expect_before(f, "add d@21", "synced");
}

/* R4: a bookmark of what the server was at before says nothing of what it has written since. */
static void a_bookmark_before_what_the_server_had_proves_nothing(void **state)
{
    struct engine_fixture *f = *state;

    START(f, &two, VERIFIED,
          ON_WATCH("10") "status 200\n" BOOKMARK("15") ADDED(POD("c", "16")) "stall forever\n");
    ENGINE_EXPECT(f, "add! a@3", "add! b@4", "add c@16");
    assert_int_equal(status_of(f).state, KINF_STATE_STALE);
    assert_false(kinf_informer_has_synced(f->informer));
}

/* R4: that it ended may have kept the rest back. */
static void a_watch_that_brought_something_proves_nothing_by_its_end(void **state)
{
    struct engine_fixture *f = *state;

    START(f, &two, VERIFIED, ON_WATCH("10") "status 200\n" ADDED(POD("c", "11")) "stall 1000\n",
          ON_WATCH("11") "status 200\n" ADDED(POD("d", "12")) "stall forever\n");
    ENGINE_EXPECT(f, "add! a@3", "add! b@4", "add c@11", "add d@12");
    assert_false(kinf_informer_has_synced(f->informer));
}

/* R4: a watch of another history may be as silent as that of a quiet resource. */
static void who_cannot_be_asked_is_listed(void **state)
{
    struct engine_fixture *f = *state;

    START(f, &two, "exchange always\nmatch GET /api/v1/namespaces/n/pods !watch\nstatus 500\n",
          "exchange always\nmatch GET /api/v1/pods watch=1 resourceVersion=10\nstatus 200\n"
          "stall 1000\n",
          ON_LIST("!resourceVersion") LIST("5", OTHER_POD("b", "4")), ON_WATCH("5") SILENCE);
    ENGINE_EXPECT(f, "add! a@3", "add! b@4", "delete* a@3", "delete* b@4", "add b@4", "synced");
}

/* R4: a quiet resource, without a bookmark. */
static void a_watch_that_lasted_proves_it(void **state)
{
    struct engine_fixture *f = *state;

    START(f, &two, VERIFIED, ON_WATCH("10") "status 200\nstall 1000\n", ON_WATCH("10") SILENCE);
    ENGINE_EXPECT(f, "add! a@3", "add! b@4", "synced");
    engine_wait_for_state(f, KINF_STATE_LIVE);
}

/* R2, R3, R4 */
static void an_expired_version_is_listed_and_what_is_unchanged_stays(void **state)
{
    struct engine_fixture *f = *state;

    START(f, &two, VERIFIED,
          ON_WATCH("10") "status 200\nevent {\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\","
                         "\"code\":410,\"reason\":\"Expired\"}}\n",
          ON_LIST("resourceVersion=10") LIST("30", POD("a", "3") "," POD("c", "25")),
          ON_WATCH("30") SILENCE);
    ENGINE_EXPECT(f, "add! a@3", "add! b@4", "add c@25", "delete* b@4", "synced");
    expect_before(f, "delete* b@4", "synced");
    engine_wait_for_resource_version(f, "30");
    assert_int_equal(status_of(f).n_lists, 1);
}

/* R2: b is another one in the state that the server was put back to. */
static void a_restored_server_is_noticed(void **state)
{
    struct engine_fixture *f = *state;

    START(f, &two, ON_VERIFY("b") LIST("20", OTHER_POD("b", "4")),
          ON_LIST("!resourceVersion") LIST("20", POD("a", "3") "," OTHER_POD("b", "4")),
          ON_WATCH("20") SILENCE);
    ENGINE_EXPECT(f, "add! a@3", "add! b@4", "delete* b@4", "add b@4", "synced");
}

/* R2: as after any outage, a server that has not reached the version. */
static void a_server_that_is_behind_is_listed(void **state)
{
    struct engine_fixture *f = *state;

    START(f, &two, ON_VERIFY("b") LIST("5", POD("b", "4")),
          ON_LIST("!resourceVersion") LIST("5", POD("b", "4")), ON_WATCH("5") SILENCE);
    ENGINE_EXPECT(f, "add! a@3", "add! b@4", "delete* a@3", "synced");
    engine_wait_for_resource_version(f, "5");
}

/* R1, R4: there is no server, and what is stored can be read. */
static void a_server_that_is_away_leaves_what_was_saved(void **state)
{
    struct engine_fixture *f = *state;

    START(f, &two, "exchange always\nmatch GET /api/v1/namespaces/n/pods !watch\nstatus 503\n",
          "exchange always\nmatch GET /api/v1/pods watch=1 resourceVersion=10\nstatus 503\n");
    ENGINE_EXPECT(f, "add! a@3", "add! b@4");
    while (status_of(f).n_errors < 2)
        continue;
    assert_int_equal(status_of(f).state, KINF_STATE_STALE);
    engine_expect_reason(f, "has not confirmed it: ");
    engine_wait_for_resource_version(f, "10");
    assert_int_equal(status_of(f).n_objects, 2);
    assert_int_equal(status_of(f).n_lists, 0);
}

/* R5 */
static void what_cannot_be_loaded_is_as_if_there_were_nothing(void **state)
{
    static struct saved nothing, without_version = { "", { POD("a", "3"), NULL } };
    struct engine_fixture *f = *state;

    START(f, &nothing, ON_LIST("!resourceVersion") LIST("30", POD("a", "3")),
          ON_WATCH("30") SILENCE);
    ENGINE_EXPECT(f, "add! a@3", "synced");
    engine_release(f);
    f->recorder.n_lines = 0;
    START(f, &without_version, ON_LIST("!resourceVersion") LIST("30", POD("c", "5")),
          ON_WATCH("30") SILENCE);
    ENGINE_EXPECT(f, "add! c@5", "synced");
}

/* Loads `two`, and a stop begins in front of the first object or behind the last. */
struct stopped {
    struct engine_fixture *f;
    bool is_behind;
    _Atomic(int) result;
    _Atomic(bool) is_over;
};

static int load_and_stop(struct kinf__packer *packer, kinf__saved_object_cb *callback,
                         void *callback_ctx, struct kinf__saved_origin *ret_origin, void *ctx,
                         struct kinf_error *err)
{
    struct stopped *stopped = ctx;

    if (!stopped->is_behind)
        kinf__informer_interrupt(stopped->f->informer);
    stopped->result = load(packer, callback, callback_ctx, ret_origin, &two, err);
    if (stopped->is_behind)
        kinf__informer_interrupt(stopped->f->informer);
    stopped->is_over = true;
    return stopped->result;
}

static void a_stop_gives_up_what_is_being_loaded(void **state)
{
    struct engine_fixture *f = *state;

    for (int is_behind = 0; is_behind <= 1; is_behind++) {
        struct stopped stopped = { .f = f, .is_behind = is_behind };

        engine_make(f, "pods", "");
        assert_int_equal(kinf__informer_set_saved(f->informer, load_and_stop, &stopped, NULL), 0);
        assert_int_equal(kinf_informer_start(f->informer, NULL), 0);
        while (!stopped.is_over)
            sched_yield();
        assert_int_equal(kinf_informer_stop(f->informer, NULL), 0);
        assert_int_equal(stopped.result, is_behind ? 0 : KINF_ERR_STOPPED);
        assert_int_equal(status_of(f).n_objects, 0);
        assert_int_equal(kinf__informer_saved_wall_ms(f->informer), 0);
        engine_release(f);
    }
    engine_make(f, "pods", "");
}

static void an_empty_store_is_a_state_too(void **state)
{
    static struct saved empty = { "10", { NULL } };
    struct engine_fixture *f = *state;

    START(f, &empty, "exchange times 2\nmatch GET /api/v1/pods !watch limit=1\n" LIST("10", ""),
          ON_WATCH("10") "status 200\n" ADDED(POD("a", "11")) BOOKMARK("15") "stall forever\n");
    ENGINE_EXPECT(f, "add a@11", "synced");
}

static void what_is_synced_can_be_saved(void **state)
{
    struct engine_fixture *f = *state;
    kinf_auto_snapshot struct kinf_snapshot *snapshot = NULL;

    START(f, &two, VERIFIED, ON_WATCH("10") "status 200\n" BOOKMARK("20") "stall forever\n");
    ENGINE_EXPECT(f, "add! a@3", "add! b@4", "synced");
    /* The handler may hear of it before the others do. */
    assert_int_equal(kinf_informer_wait_synced(f->informer, ENGINE_PATIENCE_MS, NULL), 0);
    assert_int_equal(kinf_informer_wait_for_rv(f->informer, "20", ENGINE_PATIENCE_MS, NULL), 0);
    snapshot = kinf__informer_savable(f->informer);
    assert_non_null(snapshot);
    assert_string_equal(kinf_snapshot_resource_version(snapshot), "20");
}

/* What is left out would not come again by a watch. */
static void what_is_quarantined_keeps_the_store_from_being_saved(void **state)
{
    static struct saved nothing;
    struct engine_fixture *f = *state;

    START(f, &nothing, ON_LIST_TWICE("!resourceVersion") LIST("30", POD("a", "3") "," BAD_POD("x")),
          ON_WATCH("30") SILENCE);
    ENGINE_EXPECT(f, "add! a@3", "synced");
    assert_int_equal(status_of(f).n_quarantined, 1);
    assert_null(kinf__informer_savable(f->informer));
}

static int keep(const struct kinf_object *object, const struct kinf_object **ret_object, void *ctx)
{
    (void)ctx;
    *ret_object = kinf_object_ref(object);
    return 0;
}

static void only_what_can_be_exact_begins_with_it(void **state)
{
    struct engine_fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;

    f->options.transform = keep;
    engine_make(f, "pods", "");
    assert_int_equal(kinf__informer_set_saved(f->informer, load, &two, &err), KINF_ERR_INVALID);
    engine_release(f);
    f->options.transform = NULL;
    f->options.fifo_order = KINF_FIFO_KEYED;
    engine_make(f, "pods", "");
    assert_int_equal(kinf__informer_set_saved(f->informer, load, &two, &err), KINF_ERR_INVALID);
    engine_release(f);
    f->options.fifo_order = KINF_FIFO_IN_ORDER;
    engine_make(f, "pods", "");
    assert_int_equal(kinf__informer_set_saved(f->informer, load, &two, &err), 0);
    assert_int_equal(kinf__informer_set_saved(f->informer, load, &two, &err), KINF_ERR_STATE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, engine_set_up_in_order, engine_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_watch_goes_on_where_it_was),
        TEST(what_was_loaded_counts_as_a_list),
        TEST(an_event_proves_nothing_but_itself),
        TEST(a_bookmark_that_waits_in_front_of_what_was_missed_proves_nothing),
        TEST(an_event_behind_what_the_server_had_proves_the_rest),
        TEST(a_bookmark_before_what_the_server_had_proves_nothing),
        TEST(a_watch_that_brought_something_proves_nothing_by_its_end),
        TEST(who_cannot_be_asked_is_listed),
        TEST(a_watch_that_lasted_proves_it),
        TEST(an_expired_version_is_listed_and_what_is_unchanged_stays),
        TEST(a_restored_server_is_noticed),
        TEST(a_server_that_is_behind_is_listed),
        TEST(a_server_that_is_away_leaves_what_was_saved),
        TEST(what_cannot_be_loaded_is_as_if_there_were_nothing),
        TEST(a_stop_gives_up_what_is_being_loaded),
        TEST(an_empty_store_is_a_state_too),
        TEST(what_is_synced_can_be_saved),
        TEST(what_is_quarantined_keeps_the_store_from_being_saved),
        TEST(only_what_can_be_exact_begins_with_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
