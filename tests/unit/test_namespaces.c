/*
 * Several namespaces as one, without a server: the tests queue what each namespace's reflector
 * would. G numbers are the guarantees of kinformer/informer.h.
 */
#include "informer/informer.h"

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"
#include "unit/allocation.h"
#include "unit/informer_fixture.h"
#include "unit/test.h"

#define PATIENCE_MS 60000
#define ALARM_S     120
#define N_MANY      400 /* notifications: some chunks of a backlog */

struct namespaces_fixture {
    struct kinf_namespaces *namespaces;
    size_t n_objects_before;
    struct recorder recorders[2];
};

static int setup(void **state)
{
    struct namespaces_fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->n_objects_before = kinf__object_count();
    for (size_t i = 0; i < KINF__ARRAY_LEN(f->recorders); i++)
        recorder_init(&f->recorders[i]);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct namespaces_fixture *f = *state;

    kinf_namespaces_free(f->namespaces);
    assert_int_equal(kinf__object_count(), f->n_objects_before);
    for (size_t i = 0; i < KINF__ARRAY_LEN(f->recorders); i++)
        recorder_release(&f->recorders[i]);
    free(f);
    return 0;
}

static int try_names(struct namespaces_fixture *f, const struct kinf_informer_options *options,
                     const char *const *names, struct kinf_error *err)
{
    size_t n_names = 0;

    while (names[n_names] != NULL)
        n_names++;
    return kinf__namespaces_new_for_type(NULL, things(), options, names, n_names, &f->namespaces,
                                         err);
}

static void make_with(struct namespaces_fixture *f, const struct kinf_informer_options *options,
                      const char *const *names)
{
    struct kinf_error err = KINF_ERROR_INIT;

    if (try_names(f, options, names, &err) < 0)
        fail_msg("%s", err.message);
}

static void make(struct namespaces_fixture *f)
{
    const struct kinf_informer_options none = KINF_INFORMER_OPTIONS_INIT;

    make_with(f, &none, (const char *const[]){ "a", "b", NULL });
}

static void start(struct namespaces_fixture *f)
{
    assert_int_equal(kinf_namespaces_start(f->namespaces, NULL), 0);
}

static void add(struct namespaces_fixture *f, struct recorder *recorder)
{
    struct kinf_handler handler = recorder_handler(recorder);

    assert_int_equal(kinf_namespaces_add_handler(f->namespaces, &handler, &recorder->id, NULL), 0);
}

static const struct kinf_object *make_in(const char *name_space, const char *name, const char *rv)
{
    const struct kinf_object *object;
    char json[256];

    snprintf(json, sizeof json,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"u-%s\","
             "\"resourceVersion\":\"%s\",\"labels\":{\"name\":\"%s\"}}}",
             name, name_space, name, rv, name);
    assert_int_equal(kinf_object_new_from_json(things(), json, strlen(json), &object, NULL), 0);
    return object;
}

/* The first list of a namespace: the names, NULL; each at version 1. */
static void feed_list_of(struct namespaces_fixture *f, const char *name_space,
                         const char *const *names)
{
    struct kinf_informer *informer = kinf_namespaces_informer(f->namespaces, name_space);
    const struct kinf_object *objects[8];
    size_t n = 0;

    for (; names[n] != NULL; n++)
        objects[n] = make_in(name_space, names[n], "1");
    assert_int_equal(kinf_deltafifo_replace(informer->fifo, objects, n, "1", NULL), 0);
    while (n > 0)
        kinf_object_unref(objects[--n]);
    kinf__informer_note_contact(informer);
}
#define feed(f, name_space, ...)                                                                   \
    feed_list_of((f), (name_space), (const char *const[]){ __VA_ARGS__, NULL })

static void feed_change(struct namespaces_fixture *f, const char *name_space, const char *name,
                        const char *rv)
{
    struct kinf_informer *informer = kinf_namespaces_informer(f->namespaces, name_space);
    const struct kinf_object *object = make_in(name_space, name, rv);

    assert_int_equal(kinf_deltafifo_update(informer->fifo, object, NULL), 0);
    kinf_object_unref(object);
    kinf__informer_note_contact(informer);
}

static void wait_all_synced(struct namespaces_fixture *f)
{
    assert_int_equal(kinf_namespaces_wait_synced(f->namespaces, PATIENCE_MS, NULL), 0);
}

/* --- names --- */

static void names_must_make_sense(void **state)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    struct namespaces_fixture *f = *state;
    const struct kinf_type *type;

#define EXPECT(code, ...)                                                                          \
    assert_int_equal(try_names(f, &options, (const char *const[]){ __VA_ARGS__, NULL }, &err), code)
    EXPECT(KINF_ERR_INVALID, NULL);
    EXPECT(KINF_ERR_INVALID, "a", "");
    EXPECT(KINF_ERR_INVALID, "a/b");
    EXPECT(KINF_ERR_EXISTS, "b", "a", "b");
    assert_non_null(strstr(err.message, "\"b\""));
    options.name_space = "a";
    EXPECT(KINF_ERR_INVALID, "b");
    options.name_space = "";
    EXPECT(0, "a", "b");
#undef EXPECT
    kinf_namespaces_free(f->namespaces);
    f->namespaces = NULL;
    options.name_space = NULL;
    assert_int_equal(kinf_type_intern("", "v1", "Node", "nodes", false, &type, NULL), 0);
    assert_int_equal(kinf__namespaces_new_for_type(NULL, type, &options, (const char *[]){ "a" }, 1,
                                                   &f->namespaces, NULL),
                     KINF_ERR_INVALID);
    assert_null(f->namespaces);
}

/* --- being told --- */

/* G7 */
static void synced_is_told_once_after_every_list(void **state)
{
    struct namespaces_fixture *f = *state;
    struct recorder *a = &f->recorders[0];

    make(f);
    add(f, a);
    start(f);
    feed(f, "a", "x");
    recorder_wait_for(a, "add! x@1");
    assert_false(kinf_namespaces_handler_has_synced(f->namespaces, a->id));
    assert_false(kinf_namespaces_has_synced(f->namespaces));
    feed(f, "b", "y");
    wait_all_synced(f);
    assert_true(kinf_namespaces_has_synced(f->namespaces));
    recorder_expect(a, "add! x@1", "add! y@1", "synced");
    feed_change(f, "a", "x", "2");
    recorder_expect(a, "add! x@1", "add! y@1", "synced", "update x@1 x@2");
    assert_true(kinf_namespaces_handler_has_synced(f->namespaces, a->id));
}

static void handler_of_the_options_is_told(void **state)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct namespaces_fixture *f = *state;

    options.handler = recorder_handler(&f->recorders[0]);
    make_with(f, &options, (const char *const[]){ "b", NULL });
    start(f);
    feed(f, "b", "y");
    recorder_expect(&f->recorders[0], "add! y@1", "synced");
}

/* One descriptor for all the namespaces; a snapshot of each, an object at a time. */
static void dispatched_handler_is_told_every_store(void **state)
{
    struct namespaces_fixture *f = *state;
    struct recorder *a = &f->recorders[0];
    struct kinf_handler handler = recorder_handler(a);
    size_t n_waiting = 1;
    struct pollfd fd = { .events = POLLIN };

    make(f);
    start(f);
    feed(f, "a", "w", "x");
    feed(f, "b", "y", "z");
    wait_all_synced(f);
    handler.is_dispatched = true;
    assert_int_equal(kinf_namespaces_add_handler(f->namespaces, &handler, &a->id, NULL), 0);
    assert_int_equal(kinf_namespaces_fd(f->namespaces, &fd.fd, NULL), 0);
    while (!kinf_namespaces_handler_has_synced(f->namespaces, a->id)) {
        assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
        assert_int_equal(kinf_namespaces_dispatch(f->namespaces, 1, &n_waiting, NULL), 0);
    }
    assert_int_equal(poll(&fd, 1, 0), 0);
    assert_int_equal(n_waiting, 0);
    recorder_expect(a, "add! w@1", "add! x@1", "add! y@1", "add! z@1", "synced");
    feed_change(f, "b", "y", "2");
    assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
    assert_int_equal(kinf_namespaces_dispatch(f->namespaces, 9, NULL, NULL), 0);
    assert_int_equal(recorder_count(a, "update y@1 y@2"), 1);
    assert_int_equal(kinf_namespaces_stop(f->namespaces, NULL), 0);
    assert_int_equal(kinf_namespaces_dispatch(f->namespaces, 9, NULL, NULL), KINF_ERR_STOPPED);
}

/* G6 */
static void late_handler_is_told_every_store(void **state)
{
    struct namespaces_fixture *f = *state;

    make(f);
    start(f);
    feed(f, "a", "x", "y");
    feed(f, "b", "z");
    wait_all_synced(f);
    add(f, &f->recorders[0]);
    recorder_wait_for(&f->recorders[0], "synced");
    assert_int_equal(recorder_count(&f->recorders[0], "add! "), 3);
    assert_int_equal(f->recorders[0].n_lines, 4);
}

/* G8: all on one thread, and the order of each namespace. */
struct one_thread {
    pthread_t thread;
    size_t n_calls;
    size_t n_wrong;
    uint64_t last_rv[2];
    atomic_bool is_done;
};

static void check_thread(const struct kinf_object *old, const struct kinf_object *object, void *ctx)
{
    struct one_thread *seen = ctx;
    size_t i = kinf_object_namespace(object).bytes[0] == 'b';
    uint64_t rv = strtoull(kinf_object_resource_version(object), NULL, 10);

    (void)old;
    if (seen->n_calls++ == 0)
        seen->thread = pthread_self();
    seen->n_wrong += pthread_equal(seen->thread, pthread_self()) == 0 || rv <= seen->last_rv[i];
    seen->last_rv[i] = rv;
}

static void note_done(void *ctx)
{
    atomic_store(&((struct one_thread *)ctx)->is_done, true);
}

static void *feed_many_of(void *ctx)
{
    struct kinf_informer *informer = ctx;
    char rv[24], name[24];
    size_t n = test_rounds(4000);

    for (size_t i = 1; i <= n; i++) {
        const struct kinf_object *object;

        snprintf(rv, sizeof rv, "%zu", i);
        snprintf(name, sizeof name, "o%zu", i);
        object = make_in(informer->name_space, name, rv);
        if (kinf_deltafifo_add(informer->fifo, object, NULL) < 0)
            abort();
        kinf_object_unref(object);
    }
    return NULL;
}

static void callbacks_come_one_after_another_on_one_thread(void **state)
{
    struct namespaces_fixture *f = *state;
    struct one_thread seen = { .n_calls = 0 };
    struct kinf_handler handler = { .on_change = check_thread, .on_done = note_done, .ctx = &seen };
    struct recorder *end = &f->recorders[0];
    pthread_t threads[2];
    kinf_handler_id id;

    make(f);
    assert_int_equal(kinf_namespaces_add_handler(f->namespaces, &handler, &id, NULL), 0);
    start(f);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, feed_many_of,
                           kinf_namespaces_informer(f->namespaces, i == 0 ? "a" : "b")),
            0);
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    add(f, end);
    recorder_wait(end, 2 * test_rounds(4000));
    kinf_namespaces_remove_handler(f->namespaces, id);
    assert_true(atomic_load(&seen.is_done));
    assert_true(seen.n_calls > 0);
    assert_int_equal(seen.n_wrong, 0);
}

/* G8: much waits while the handler sleeps. */
static void slow_handler_holds_up_nobody(void **state)
{
    struct namespaces_fixture *f = *state;
    char last[24];

    make(f);
    add(f, &f->recorders[0]);
    add(f, &f->recorders[1]);
    recorder_block(&f->recorders[0]);
    start(f);
    feed(f, "a", "x");
    feed(f, "b", NULL);
    recorder_wait_blocked(&f->recorders[0]);
    for (int i = 2; i < N_MANY; i++) {
        snprintf(last, sizeof last, "%d", i);
        feed_change(f, "a", "x", last);
        recorder_wait(&f->recorders[1], 1);
    }
    feed_change(f, "b", "y", "1000");
    recorder_wait_for(&f->recorders[1], "add y@1000");
    assert_int_equal(recorder_count(&f->recorders[0], ""), 1);
    recorder_unblock(&f->recorders[0]);
    recorder_wait_for(&f->recorders[0], "add y@1000");
}

/* --- leaving --- */

/* G9 */
static void removed_handler_is_told_nothing_more(void **state)
{
    struct namespaces_fixture *f = *state;

    make(f);
    add(f, &f->recorders[0]);
    add(f, &f->recorders[1]);
    start(f);
    feed(f, "a", "x");
    feed(f, "b", "y");
    recorder_wait_for(&f->recorders[0], "synced");
    kinf_namespaces_remove_handler(f->namespaces, f->recorders[0].id);
    kinf_namespaces_remove_handler(f->namespaces, f->recorders[0].id);
    assert_int_equal(recorder_count(&f->recorders[0], "done"), 1);
    feed_change(f, "a", "x", "2");
    recorder_wait_for(&f->recorders[1], "update x@1 x@2");
    assert_int_equal(recorder_count(&f->recorders[0], ""), 4);
}

struct removal {
    struct kinf_namespaces *namespaces;
    kinf_handler_id id;
};

static void remove_at_first_add(struct recorder *recorder, const char *line)
{
    const struct removal *removal = recorder->react_ctx;

    if (strncmp(line, "add", 3) == 0)
        kinf_namespaces_remove_handler(removal->namespaces, removal->id);
}

/* G9 */
static void handler_removes_itself(void **state)
{
    struct namespaces_fixture *f = *state;
    struct kinf_informer_status status;
    struct removal removal;

    make(f);
    add(f, &f->recorders[0]);
    removal = (struct removal){ f->namespaces, f->recorders[0].id };
    f->recorders[0].react = remove_at_first_add;
    f->recorders[0].react_ctx = &removal;
    start(f);
    feed(f, "a", "x", "y", "z");
    feed(f, "b", NULL);
    recorder_expect(&f->recorders[0], "add! x@1", "done");
    kinf_informer_status(kinf_namespaces_informer(f->namespaces, "b"), &status);
    assert_int_equal(status.n_handlers, 0);
    add(f, &f->recorders[1]);
    recorder_wait_for(&f->recorders[1], "synced");
}

static void handler_removes_another(void **state)
{
    struct namespaces_fixture *f = *state;
    struct removal removal;

    make(f);
    add(f, &f->recorders[0]);
    add(f, &f->recorders[1]);
    removal = (struct removal){ f->namespaces, f->recorders[1].id };
    f->recorders[0].react = remove_at_first_add;
    f->recorders[0].react_ctx = &removal;
    start(f);
    feed(f, "a", "x");
    feed(f, "b", NULL);
    recorder_wait_for(&f->recorders[1], "done");
    recorder_wait_for(&f->recorders[0], "synced");
}

static void handlers_of_what_never_started_are_done(void **state)
{
    struct namespaces_fixture *f = *state;

    make(f);
    add(f, &f->recorders[0]);
    add(f, &f->recorders[1]);
    kinf_namespaces_remove_handler(f->namespaces, f->recorders[0].id);
    recorder_expect(&f->recorders[0], "done");
    assert_int_equal(kinf_namespaces_stop(f->namespaces, NULL), 0);
    recorder_expect(&f->recorders[1], "done");
}

/* --- life --- */

/* G10: while much waits. */
static void stopping_waits_for_the_running_callback_only(void **state)
{
    struct namespaces_fixture *f = *state;
    struct kinf_handler handler;
    char rv[24];

    make(f);
    add(f, &f->recorders[0]);
    recorder_block(&f->recorders[0]);
    start(f);
    feed(f, "a", "x");
    feed(f, "b", NULL);
    recorder_wait_blocked(&f->recorders[0]);
    for (int i = 2; i < N_MANY; i++) {
        snprintf(rv, sizeof rv, "%d", i);
        feed_change(f, "a", "x", rv);
    }
    add(f, &f->recorders[1]);
    recorder_wait_for(&f->recorders[1], "synced");
    recorder_unblock(&f->recorders[0]);
    assert_int_equal(kinf_namespaces_stop(f->namespaces, NULL), 0);
    assert_int_equal(kinf_namespaces_stop(f->namespaces, NULL), 0);
    assert_int_equal(recorder_count(&f->recorders[0], "done"), 1);
    handler = recorder_handler(&f->recorders[1]);
    assert_int_equal(
        kinf_namespaces_add_handler(f->namespaces, &handler, &f->recorders[1].id, NULL),
        KINF_ERR_STOPPED);
    assert_int_equal(kinf_namespaces_start(f->namespaces, NULL), KINF_ERR_STATE);
}

static void a_second_start_is_refused_and_changes_nothing(void **state)
{
    struct namespaces_fixture *f = *state;

    make(f);
    add(f, &f->recorders[0]);
    start(f);
    assert_int_equal(kinf_namespaces_start(f->namespaces, NULL), KINF_ERR_STATE);
    feed(f, "a", "x");
    feed(f, "b", NULL);
    recorder_expect(&f->recorders[0], "add! x@1", "synced");
}

static void a_start_that_fails_stops_all_of_them(void **state)
{
    struct namespaces_fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_informer_status status;

    make(f);
    kinf__thread_set_stack(NO_STACK);
    assert_int_equal(kinf_namespaces_start(f->namespaces, &err), KINF_ERR_SYSTEM);
    kinf__thread_set_stack(0);
    assert_non_null(strstr(err.message, "kinf-processor"));
    for (size_t i = 0; i < 2; i++) {
        kinf_informer_status(kinf_namespaces_informer(f->namespaces, i == 0 ? "a" : "b"), &status);
        assert_int_equal(status.state, KINF_STATE_STOPPED);
    }
    assert_int_equal(kinf_namespaces_start(f->namespaces, NULL), KINF_ERR_STATE);
}

static void stop_here(struct recorder *recorder, const char *line)
{
    if (strcmp(line, "add! x@1") == 0)
        recorder_set_result(recorder, kinf_namespaces_stop(recorder->react_ctx, NULL));
    if (strcmp(line, "synced") == 0)
        kinf_namespaces_free(recorder->react_ctx);
}

/* And a freeing does nothing. */
static void stopping_from_a_callback_is_refused(void **state)
{
    struct namespaces_fixture *f = *state;

    make(f);
    add(f, &f->recorders[0]);
    f->recorders[0].react = stop_here;
    f->recorders[0].react_ctx = f->namespaces;
    start(f);
    feed(f, "a", "x");
    feed(f, "b", NULL);
    recorder_expect(&f->recorders[0], "add! x@1", "synced");
    assert_int_equal(recorder_result(&f->recorders[0]), KINF_ERR_STATE);
    feed_change(f, "a", "x", "2");
    recorder_expect(&f->recorders[0], "add! x@1", "synced", "update x@1 x@2");
}

struct stop_from_within {
    struct namespaces_fixture *f;
    _Atomic(int) result;
};

static int stop_in_transform(const struct kinf_object *object,
                             const struct kinf_object **ret_object, void *ctx)
{
    struct stop_from_within *stop = ctx;

    stop->result = kinf_namespaces_stop(stop->f->namespaces, NULL);
    *ret_object = kinf_object_ref(object);
    return 0;
}

/* Which is user code of one of the namespaces. */
static void stopping_from_a_transform_is_refused(void **state)
{
    struct namespaces_fixture *f = *state;
    struct stop_from_within stop = { .f = f };
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;

    options.transform = stop_in_transform;
    options.transform_ctx = &stop;
    make_with(f, &options, (const char *const[]){ "a", "b", NULL });
    start(f);
    feed(f, "a", NULL);
    feed(f, "b", "x");
    wait_all_synced(f);
    assert_int_equal(stop.result, KINF_ERR_STATE);
}

/* User code of one namespace stops another informer, whose callback stops all namespaces meanwhile. */
struct crossing {
    struct namespaces_fixture *f;
    struct kinf_informer *other;
    _Atomic(bool) is_there; /* the other one's callback */
    _Atomic(bool) has_stopped;
};

static int stop_other_in_transform(const struct kinf_object *object,
                                   const struct kinf_object **ret_object, void *ctx)
{
    struct crossing *crossing = ctx;

    while (!crossing->is_there)
        sched_yield();
    if (!crossing->has_stopped && kinf_informer_stop(crossing->other, NULL) < 0)
        abort();
    crossing->has_stopped = true;
    *ret_object = kinf_object_ref(object);
    return 0;
}

static void stop_all_once_waited_for(struct recorder *recorder, const char *line)
{
    struct crossing *crossing = recorder->react_ctx;

    if (strcmp(line, "synced") != 0)
        return;
    crossing->is_there = true;
    informer_await_stop(crossing->other);
    recorder_set_result(recorder, kinf_namespaces_stop(crossing->f->namespaces, NULL));
}

static void stop_that_is_refused_changes_nothing(void **state)
{
    struct namespaces_fixture *f = *state;
    struct crossing crossing = { .f = f };
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;

    alarm(ALARM_S);
    f->recorders[1].react = stop_all_once_waited_for;
    f->recorders[1].react_ctx = &crossing;
    options.handler = recorder_handler(&f->recorders[1]);
    assert_int_equal(kinf__informer_new_for_type(NULL, things(), &options, &crossing.other, NULL),
                     0);
    assert_int_equal(kinf_informer_start(crossing.other, NULL), 0);
    options.handler = recorder_handler(&f->recorders[0]);
    options.transform = stop_other_in_transform;
    options.transform_ctx = &crossing;
    make_with(f, &options, (const char *const[]){ "a", "b", NULL });
    start(f);
    assert_int_equal(kinf_deltafifo_replace(crossing.other->fifo, NULL, 0, "1", NULL), 0);
    kinf__informer_note_contact(crossing.other);
    feed(f, "a", "x");
    recorder_expect(&f->recorders[1], "synced", "done");
    assert_int_equal(recorder_result(&f->recorders[1]), KINF_ERR_STATE);
    feed(f, "b", NULL);
    recorder_expect(&f->recorders[0], "add! x@1", "synced");
    feed_change(f, "a", "x", "2");
    recorder_expect(&f->recorders[0], "add! x@1", "synced", "update x@1 x@2");
    kinf_informer_free(crossing.other);
    assert_int_equal(kinf_namespaces_stop(f->namespaces, NULL), 0);
    alarm(0);
}

static void waiting_names_who_is_not_synced(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct namespaces_fixture *f = *state;

    make(f);
    start(f);
    feed(f, "a", NULL);
    assert_int_equal(
        kinf_informer_wait_synced(kinf_namespaces_informer(f->namespaces, "a"), PATIENCE_MS, NULL),
        0);
    assert_int_equal(kinf_namespaces_wait_synced(f->namespaces, 1, &err), KINF_ERR_TIMEOUT);
    assert_non_null(strstr(err.message, "namespace b"));
}

static void version_is_waited_for_in_its_namespace(void **state)
{
    struct namespaces_fixture *f = *state;

    make(f);
    start(f);
    feed(f, "a", "x");
    feed(f, "b", "y");
    feed_change(f, "a", "x", "7");
    assert_int_equal(kinf_namespaces_wait_for_rv(f->namespaces, "a", "7", PATIENCE_MS, NULL), 0);
    assert_int_equal(kinf_namespaces_wait_for_rv(f->namespaces, "b", "7", 1, NULL),
                     KINF_ERR_TIMEOUT);
    assert_int_equal(kinf_namespaces_wait_for_rv(f->namespaces, "c", "7", 1, NULL),
                     KINF_ERR_NOT_FOUND);
}

/* --- reading --- */

/* "a-b/..." sorts before "a/...", although "a" sorts before "a-b". */
static void lists_are_sorted_by_key_across_namespaces(void **state)
{
    const struct kinf_index by_name = { .name = "byName", .path = "metadata.name" };
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    kinf_auto_object_list struct kinf_object_list all = KINF_OBJECT_LIST_INIT,
                                                  by_index = KINF_OBJECT_LIST_INIT;
    struct namespaces_fixture *f = *state;

    options.indices = &by_name;
    options.n_indices = 1;
    make_with(f, &options, (const char *const[]){ "a", "b", "a-b", "a0", NULL });
    start(f);
    feed(f, "a", "x", "y");
    feed(f, "a-b", "x");
    feed(f, "b", NULL);
    feed(f, "a0", "x");
    wait_all_synced(f);
    assert_int_equal(kinf_namespaces_list(f->namespaces, NULL, &all, NULL), 0);
    assert_int_equal(all.n_items, 4);
    for (size_t i = 1; i < all.n_items; i++)
        assert_true(strcmp(kinf_object_key(all.items[i - 1]), kinf_object_key(all.items[i])) < 0);
    assert_string_equal(kinf_object_key(all.items[0]), "a-b/x");
    assert_int_equal(kinf_namespaces_by_index(f->namespaces, "byName", "y", &by_index, NULL), 0);
    assert_int_equal(by_index.n_items, 1);
    assert_string_equal(kinf_object_key(by_index.items[0]), "a/y");
    assert_int_equal(kinf_namespaces_by_index(f->namespaces, "none", "y", &all, NULL),
                     KINF_ERR_NOT_FOUND);
}

static void selector_and_key_find_objects(void **state)
{
    struct kinf_label_selector *selector;
    kinf_auto_object_list struct kinf_object_list list = KINF_OBJECT_LIST_INIT;
    kinf_auto_object const struct kinf_object *object = NULL;
    const struct kinf_object *other;
    struct kinf_error err = KINF_ERROR_INIT;
    struct namespaces_fixture *f = *state;

    make(f);
    start(f);
    feed(f, "a", "x");
    feed(f, "b", "x", "y");
    wait_all_synced(f);
    assert_int_equal(kinf_label_selector_parse("name=x", &selector, NULL), 0);
    assert_int_equal(kinf_namespaces_list(f->namespaces, selector, &list, NULL), 0);
    kinf_label_selector_free(selector);
    assert_int_equal(list.n_items, 2);
    assert_string_equal(kinf_object_key(list.items[1]), "b/x");
    assert_int_equal(kinf_namespaces_get(f->namespaces, "b/y", &object, NULL), 0);
    assert_string_equal(kinf_object_name(object), "y");
    assert_int_equal(kinf_namespaces_get(f->namespaces, "a/y", &other, &err), KINF_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "a/y"));
    assert_int_equal(kinf_namespaces_get(f->namespaces, "c/y", &other, NULL), KINF_ERR_NOT_FOUND);
    assert_int_equal(kinf_namespaces_get(f->namespaces, "y", &other, NULL), KINF_ERR_NOT_FOUND);
    assert_null(kinf_namespaces_informer(f->namespaces, "c"));
    assert_ptr_equal(kinf_namespaces_type(f->namespaces), things());
}

/* --- memory --- */

static void failing_to_make_one_leaves_nothing(void **state)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct namespaces_fixture *f = *state;
    int rc = -1;

    options.handler = recorder_handler(&f->recorders[0]);
    for (size_t n = 1; rc < 0; n++) {
        test_fail_allocation(n);
        rc = try_names(f, &options, (const char *const[]){ "a", "b", NULL }, NULL);
        assert_int_equal(rc, test_allocation_failed() ? KINF_ERR_NO_MEMORY : 0);
    }
    assert_int_equal(f->recorders[0].n_lines, 0);
}

static void handler_without_memory_is_told_nothing(void **state)
{
    struct namespaces_fixture *f = *state;
    struct recorder *a = &f->recorders[0];
    struct kinf_handler handler = recorder_handler(a);
    int rc = -1;

    make(f);
    start(f);
    feed(f, "a", "x");
    feed(f, "b", "y");
    wait_all_synced(f);
    for (size_t n = 1; rc < 0; n++) {
        assert_int_equal(recorder_count(a, ""), 0);
        test_fail_allocation(n);
        rc = kinf_namespaces_add_handler(f->namespaces, &handler, &a->id, NULL);
        assert_int_equal(rc, test_allocation_failed() ? KINF_ERR_NO_MEMORY : 0);
    }
    recorder_wait_for(a, "synced");
}

static void lists_without_memory_fail_whole(void **state)
{
    struct namespaces_fixture *f = *state;
    kinf_auto_object_list struct kinf_object_list list = KINF_OBJECT_LIST_INIT;
    int rc = -1;

    make(f);
    start(f);
    feed(f, "a", "x");
    feed(f, "b", "y");
    wait_all_synced(f);
    for (size_t n = 1; rc < 0; n++) {
        assert_null(list.items);
        test_fail_allocation(n);
        rc = kinf_namespaces_list(f->namespaces, NULL, &list, NULL);
        assert_int_equal(rc, test_allocation_failed() ? KINF_ERR_NO_MEMORY : 0);
    }
    assert_int_equal(list.n_items, 2);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(names_must_make_sense),
        TEST(synced_is_told_once_after_every_list),
        TEST(handler_of_the_options_is_told),
        TEST(dispatched_handler_is_told_every_store),
        TEST(late_handler_is_told_every_store),
        TEST(callbacks_come_one_after_another_on_one_thread),
        TEST(slow_handler_holds_up_nobody),
        TEST(removed_handler_is_told_nothing_more),
        TEST(handler_removes_itself),
        TEST(handler_removes_another),
        TEST(handlers_of_what_never_started_are_done),
        TEST(stopping_waits_for_the_running_callback_only),
        TEST(a_second_start_is_refused_and_changes_nothing),
        TEST(a_start_that_fails_stops_all_of_them),
        TEST(stopping_from_a_callback_is_refused),
        TEST(stopping_from_a_transform_is_refused),
        TEST(stop_that_is_refused_changes_nothing),
        TEST(waiting_names_who_is_not_synced),
        TEST(version_is_waited_for_in_its_namespace),
        TEST(lists_are_sorted_by_key_across_namespaces),
        TEST(selector_and_key_find_objects),
        TEST(failing_to_make_one_leaves_nothing),
        TEST(handler_without_memory_is_told_nothing),
        TEST(lists_without_memory_fail_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
