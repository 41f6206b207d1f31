/*
 * The factory: who shares an informer, who must not, and the life of all of them together. Without
 * a server: the tests queue what a reflector would.
 */
#include "informer/informer.h"

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"
#include "unit/allocation.h"
#include "unit/informer_fixture.h"
#include "unit/test.h"

#define PATIENCE_MS 60000
#define ALARM_S     120

struct factory_fixture {
    struct kinf_factory *factory;
    size_t n_objects_before;
    struct recorder recorders[2];
};

static int setup(void **state)
{
    struct factory_fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->n_objects_before = kinf__object_count();
    assert_int_equal(kinf__factory_new(NULL, &f->factory, NULL), 0);
    for (size_t i = 0; i < KINF__ARRAY_LEN(f->recorders); i++)
        recorder_init(&f->recorders[i]);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct factory_fixture *f = *state;

    kinf_factory_free(f->factory);
    assert_int_equal(kinf__object_count(), f->n_objects_before);
    for (size_t i = 0; i < KINF__ARRAY_LEN(f->recorders); i++)
        recorder_release(&f->recorders[i]);
    free(f);
    return 0;
}

static const struct kinf_type *type_of(const char *resource, bool namespaced)
{
    const struct kinf_type *type;

    assert_int_equal(kinf_type_intern("", "v1", "Any", resource, namespaced, &type, NULL), 0);
    return type;
}

static struct kinf_informer *ask_of_type(struct factory_fixture *f, const struct kinf_type *type,
                                         const struct kinf_informer_options *options)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_informer *informer;

    if (kinf__factory_informer_for_type(f->factory, type, options, &informer, &err) < 0)
        fail_msg("%s", err.message);
    return informer;
}

static struct kinf_informer *ask(struct factory_fixture *f,
                                 const struct kinf_informer_options *options)
{
    return ask_of_type(f, things(), options);
}

static void feed(struct kinf_informer *informer, const char *name)
{
    const struct kinf_object *object = make_thing(name, "1");

    assert_int_equal(kinf_deltafifo_replace(informer->fifo, &object, 1, "1", NULL), 0);
    kinf_object_unref(object);
    kinf__informer_note_contact(informer);
}

static void feed_change(struct kinf_informer *informer, const char *name, const char *rv)
{
    const struct kinf_object *object = make_thing(name, rv);

    assert_int_equal(kinf_deltafifo_update(informer->fifo, object, NULL), 0);
    kinf_object_unref(object);
    kinf__informer_note_contact(informer);
}

static void start(struct factory_fixture *f)
{
    assert_int_equal(kinf_factory_start(f->factory, NULL), 0);
}

static void expect_refused(struct factory_fixture *f, const struct kinf_informer_options *options,
                           int code, const char *word)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_informer *informer = NULL;

    assert_int_equal(
        kinf__factory_informer_for_type(f->factory, things(), options, &informer, &err), code);
    assert_null(informer);
    if (strstr(err.message, word) == NULL)
        fail_msg("%s", err.message);
}

/* --- who shares --- */

static void equal_requests_share_one_informer(void **state)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct factory_fixture *f = *state;
    struct kinf_informer *first = ask(f, &options);

    options.name_space = "";
    options.label_selector = "";
    assert_ptr_equal(ask(f, &options), first);
    options.name_space = "ns";
    options.label_selector = "a=b";
    assert_ptr_equal(ask(f, &options), ask(f, &options));
}

static void other_objects_are_another_informer(void **state)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct factory_fixture *f = *state;
    struct kinf_informer *informers[5];

    informers[0] = ask(f, &options);
    informers[1] = ask_of_type(f, type_of("others", true), &options);
    options.name_space = "ns";
    informers[2] = ask(f, &options);
    options.label_selector = "a=b";
    informers[3] = ask(f, &options);
    options.field_selector = "spec.x=y";
    informers[4] = ask(f, &options);
    for (size_t i = 0; i < KINF__ARRAY_LEN(informers); i++) {
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(informers[i], informers[k]);
    }
}

static void handlers_of_both_requests_are_told(void **state)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct factory_fixture *f = *state;
    struct kinf_informer *informer;

    options.handler = recorder_handler(&f->recorders[0]);
    informer = ask(f, &options);
    options.handler = recorder_handler(&f->recorders[1]);
    assert_ptr_equal(ask(f, &options), informer);
    start(f);
    feed(informer, "x");
    recorder_expect(&f->recorders[0], "add! x@1", "synced");
    recorder_expect(&f->recorders[1], "add! x@1", "synced");
}

static void request_may_leave_tuning_as_it_is(void **state)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    const struct kinf_informer_options none = KINF_INFORMER_OPTIONS_INIT;
    struct factory_fixture *f = *state;
    struct kinf_informer *informer;

    options.page_size = 500;
    options.accept_gzip = true;
    options.fifo_order = KINF_FIFO_KEYED;
    informer = ask(f, &options);
    assert_ptr_equal(ask(f, &none), informer);
    options.page_size = 100;
    expect_refused(f, &options, KINF_ERR_INVALID, "page_size");
}

static void order_of_paths_does_not_count(void **state)
{
    const char *const drops[] = { "status", "metadata.managedFields" };
    const char *const turned[] = { "metadata.managedFields", "status" };
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct factory_fixture *f = *state;
    struct kinf_informer *informer;

    options.drops = drops;
    options.n_drops = 2;
    informer = ask(f, &options);
    options.drops = turned;
    assert_ptr_equal(ask(f, &options), informer);
}

/* --- who must not --- */

static int transform_nothing(const struct kinf_object *object,
                             const struct kinf_object **ret_object, void *ctx)
{
    (void)ctx;
    *ret_object = kinf_object_ref(object);
    return 0;
}

static void ignore_error(const struct kinf_error *err, void *ctx)
{
    (void)err;
    (void)ctx;
}

/* A request that would store more than the first must not be surprised by what is missing. */
static void conflicting_request_is_refused_by_name(void **state)
{
    const struct kinf_informer_options none = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    const char *const paths[] = { "status" };
    struct factory_fixture *f = *state;

    options.keeps = paths;
    options.n_keeps = 1;
    ask(f, &options);
    expect_refused(f, &none, KINF_ERR_INVALID, "keeps");
    options.drops = paths;
    options.n_drops = 1;
    expect_refused(f, &options, KINF_ERR_INVALID, "drops");
    options.n_drops = 0;
    options.metadata_only = true;
    expect_refused(f, &options, KINF_ERR_INVALID, "metadata_only");
    options.metadata_only = false;
    options.compressed = true;
    expect_refused(f, &options, KINF_ERR_INVALID, "compressed");
    options.compressed = false;
    options.transform = transform_nothing;
    expect_refused(f, &options, KINF_ERR_INVALID, "transform");
    options.transform = NULL;
    options.on_watch_error = ignore_error;
    expect_refused(f, &options, KINF_ERR_INVALID, "on_watch_error");
}

static void error_callback_of_another_context_is_refused(void **state)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct factory_fixture *f = *state;
    struct kinf_informer *informer;

    options.on_watch_error = ignore_error;
    options.on_watch_error_ctx = &f->recorders[0];
    informer = ask(f, &options);
    assert_ptr_equal(ask(f, &options), informer);
    options.on_watch_error_ctx = &f->recorders[1];
    expect_refused(f, &options, KINF_ERR_INVALID, "on_watch_error");
}

static void handler_of_a_refused_request_is_told_nothing(void **state)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct factory_fixture *f = *state;
    const char *const drops[] = { "status" };
    struct kinf_informer_status status;
    struct kinf_informer *informer = ask(f, &options);

    options.handler = recorder_handler(&f->recorders[0]);
    options.drops = drops;
    options.n_drops = 1;
    expect_refused(f, &options, KINF_ERR_INVALID, "drops");
    kinf_informer_status(informer, &status);
    assert_int_equal(status.n_handlers, 0);
    assert_int_equal(f->recorders[0].n_lines, 0);
}

static void malformed_request_leaves_nothing_behind(void **state)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct factory_fixture *f = *state;

    options.label_selector = "a in (";
    expect_refused(f, &options, KINF_ERR_PARSE, "");
    expect_refused(f, &options, KINF_ERR_PARSE, "");
    assert_int_equal(kinf_factory_start(f->factory, NULL), 0);
    assert_int_equal(kinf_factory_wait_synced(f->factory, 0, NULL), 0);
}

/* --- indices --- */

static size_t n_found(struct kinf_informer *informer, const char *index, const char *value)
{
    kinf_auto_object_list struct kinf_object_list list = KINF_OBJECT_LIST_INIT;

    assert_int_equal(
        kinf_indexer_by_index(kinf_informer_indexer(informer), index, value, &list, NULL), 0);
    return list.n_items;
}

static void indices_of_all_requests_are_there(void **state)
{
    const struct kinf_index by_uid = { .name = "byUID", .path = "metadata.uid" };
    const struct kinf_index both[] = { by_uid, { .name = "byName", .path = "metadata.name" } };
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct factory_fixture *f = *state;
    struct kinf_informer *informer;

    options.indices = &by_uid;
    options.n_indices = 1;
    informer = ask(f, &options);
    start(f);
    feed(informer, "x");
    assert_int_equal(kinf_factory_wait_synced(f->factory, PATIENCE_MS, NULL), 0);
    options.indices = both;
    options.n_indices = 2;
    assert_ptr_equal(ask(f, &options), informer);
    assert_ptr_equal(ask(f, &options), informer);
    assert_int_equal(n_found(informer, "byUID", "u-x"), 1);
    assert_int_equal(n_found(informer, "byName", "x"), 1);
}

static int ask_factory(const struct kinf_object *object, struct kinf_index_values *values,
                       void *ctx)
{
    const struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_informer *informer = NULL;

    (void)object;
    if (kinf__factory_informer_for_type(ctx, things(), &options, &informer, NULL) != KINF_ERR_STATE)
        return KINF_ERR_STATE;
    return kinf_index_values_add(values, "refused", 7);
}

static void index_functions_ask_no_factory(void **state)
{
    struct factory_fixture *f = *state;
    const struct kinf_index indices[] = { { "first", NULL, ask_factory, f->factory },
                                          { "late", NULL, ask_factory, f->factory } };
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_informer *informer;

    alarm(ALARM_S);
    options.indices = indices;
    options.n_indices = 1;
    informer = ask(f, &options);
    start(f);
    feed(informer, "x");
    assert_int_equal(kinf_factory_wait_synced(f->factory, PATIENCE_MS, NULL), 0);
    options.n_indices = 2;
    assert_ptr_equal(ask(f, &options), informer);
    assert_int_equal(kinf_indexer_failed_index_values(kinf_informer_indexer(informer)), 0);
    alarm(0);
}

static void another_index_of_a_name_is_refused(void **state)
{
    struct kinf_index index = { .name = "byUID", .path = "metadata.uid" };
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct factory_fixture *f = *state;

    options.indices = &index;
    options.n_indices = 1;
    ask(f, &options);
    index.path = "metadata.name";
    expect_refused(f, &options, KINF_ERR_EXISTS, "byUID");
    index.name = "broken";
    index.path = "a[";
    expect_refused(f, &options, KINF_ERR_PARSE, "");
    index.path = "a";
    ask(f, &options);
    index.name = NULL;
    expect_refused(f, &options, KINF_ERR_INVALID, "name");
    options.name_space = "ns";
    expect_refused(f, &options, KINF_ERR_INVALID, "name");
}

static void index_that_one_request_has_twice_is_refused(void **state)
{
    const struct kinf_index twice[] = { { .name = "a", .path = "x" },
                                        { .name = "a", .path = "y" } };
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct factory_fixture *f = *state;

    options.indices = twice;
    options.n_indices = 2;
    expect_refused(f, &options, KINF_ERR_EXISTS, "");
    options.n_indices = 0;
    ask(f, &options);
    options.n_indices = 2;
    expect_refused(f, &options, KINF_ERR_EXISTS, "");
    options.n_indices = 1;
    ask(f, &options);
}

/* --- life --- */

static void starting_again_starts_only_what_is_new(void **state)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct factory_fixture *f = *state;
    struct kinf_informer *first, *second;

    first = ask(f, &options);
    start(f);
    start(f);
    options.name_space = "ns";
    second = ask(f, &options);
    assert_int_equal(second->life, KINF__LIFE_NEW);
    feed(first, "x");
    feed(second, "y");
    assert_int_equal(kinf_factory_wait_synced(f->factory, PATIENCE_MS, NULL), 0);
    assert_false(kinf_informer_has_synced(second));
    start(f);
    assert_int_equal(kinf_factory_wait_synced(f->factory, PATIENCE_MS, NULL), 0);
    assert_true(kinf_informer_has_synced(second));
}

static void those_behind_one_that_cannot_be_started_still_can(void **state)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct factory_fixture *f = *state;
    struct kinf_informer *first, *second;

    first = ask(f, &options);
    options.name_space = "ns";
    second = ask(f, &options);
    kinf__thread_set_stack(NO_STACK);
    assert_int_equal(kinf_factory_start(f->factory, NULL), KINF_ERR_SYSTEM);
    kinf__thread_set_stack(0);
    assert_int_equal(first->life, KINF__LIFE_STOPPED);
    start(f);
    feed(second, "y");
    assert_int_equal(kinf_informer_wait_synced(second, PATIENCE_MS, NULL), 0);
    assert_int_equal(kinf_factory_wait_synced(f->factory, PATIENCE_MS, NULL), KINF_ERR_STOPPED);
}

static void ask_and_start_here(struct recorder *recorder, const char *line)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct factory_fixture *f = recorder->react_ctx;
    struct kinf_informer *informer;
    int rc;

    if (strcmp(line, "done") != 0)
        return;
    options.name_space = "later";
    rc = kinf__factory_informer_for_type(f->factory, things(), &options, &informer, NULL);
    recorder_set_result(recorder, rc < 0 ? rc : kinf_factory_start(f->factory, NULL));
}

/* on_done of one that cannot be started runs before the start returns, and waits for no end of it. */
static void done_handler_asks_and_starts_while_a_start_fails(void **state)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct factory_fixture *f = *state;
    struct kinf_informer *first;

    alarm(ALARM_S);
    f->recorders[0].react = ask_and_start_here;
    f->recorders[0].react_ctx = f;
    recorder_set_result(&f->recorders[0], 1);
    options.handler = recorder_handler(&f->recorders[0]);
    first = ask(f, &options);
    kinf__thread_set_stack(NO_STACK);
    assert_int_equal(kinf_factory_start(f->factory, NULL), KINF_ERR_SYSTEM);
    kinf__thread_set_stack(0);
    recorder_expect(&f->recorders[0], "done");
    assert_int_equal(recorder_result(&f->recorders[0]), KINF_ERR_SYSTEM);
    assert_int_equal(first->life, KINF__LIFE_STOPPED);
    assert_int_equal(kinf_factory_start(f->factory, NULL), 0);
    alarm(0);
}

static void waiting_ends_with_the_time(void **state)
{
    const struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    struct factory_fixture *f = *state;

    ask(f, &options);
    start(f);
    assert_int_equal(kinf_factory_wait_synced(f->factory, 1, &err), KINF_ERR_TIMEOUT);
    assert_non_null(strstr(err.message, "things"));
}

struct late {
    struct kinf_informer *informer;
    size_t n_looks;
};

static struct kinf_informer *feed_at_the_second_look(size_t i, void *ctx)
{
    struct late *late = ctx;

    if (i != 0)
        return NULL;
    if (++late->n_looks == 2)
        feed(late->informer, "x");
    return late->informer;
}

static void waiting_that_succeeds_in_the_end_leaves_no_error(void **state)
{
    const struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    struct factory_fixture *f = *state;
    struct late late = { ask(f, &options), 0 };

    start(f);
    assert_int_equal(
        kinf__informer_wait_each_synced(feed_at_the_second_look, &late, PATIENCE_MS, &err), 0);
    assert_in_range(late.n_looks, 2, SIZE_MAX);
    assert_int_equal(err.code, 0);
    assert_string_equal(err.message, "");
}

static void after_shutdown_stores_are_read_and_nothing_starts(void **state)
{
    const struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct factory_fixture *f = *state;
    struct kinf_lister lister;
    struct kinf_informer *informer = ask(f, &options);
    kinf_auto_object const struct kinf_object *object = NULL;

    start(f);
    feed(informer, "x");
    assert_int_equal(kinf_factory_wait_synced(f->factory, PATIENCE_MS, NULL), 0);
    assert_int_equal(kinf_factory_shutdown(f->factory, NULL), 0);
    assert_int_equal(informer->life, KINF__LIFE_STOPPED);
    assert_int_equal(kinf_factory_shutdown(f->factory, NULL), 0);
    assert_int_equal(kinf_factory_start(f->factory, NULL), 0);
    expect_refused(f, &options, KINF_ERR_STOPPED, "shut down");
    lister = kinf_informer_lister(informer, "ns");
    assert_int_equal(kinf_lister_get(&lister, "x", &object, NULL), 0);
}

static void shut_down_here(struct recorder *recorder, const char *line)
{
    if (strcmp(line, "add! x@1") == 0)
        recorder_set_result(recorder, kinf_factory_shutdown(recorder->react_ctx, NULL));
    if (strcmp(line, "synced") == 0)
        kinf_factory_free(recorder->react_ctx);
}

/* And a freeing does nothing. */
static void shutdown_from_a_callback_is_refused(void **state)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct factory_fixture *f = *state;
    struct kinf_informer *informer;

    f->recorders[0].react = shut_down_here;
    f->recorders[0].react_ctx = f->factory;
    options.handler = recorder_handler(&f->recorders[0]);
    informer = ask(f, &options);
    start(f);
    feed(informer, "x");
    recorder_expect(&f->recorders[0], "add! x@1", "synced");
    assert_int_equal(recorder_result(&f->recorders[0]), KINF_ERR_STATE);
    assert_int_equal(kinf_factory_shutdown(f->factory, NULL), 0);
    recorder_expect(&f->recorders[0], "add! x@1", "synced", "done");
}

/* One of the factory's callbacks stops another informer, and one of that one's shuts the factory down
 * meanwhile. */
struct crossing {
    struct factory_fixture *f;
    struct kinf_informer *other;
    _Atomic(bool) is_there; /* the other one's callback */
};

static void stop_other_here(struct recorder *recorder, const char *line)
{
    struct crossing *crossing = recorder->react_ctx;

    if (strcmp(line, "synced") != 0)
        return;
    while (!crossing->is_there)
        sched_yield();
    recorder_set_result(recorder, kinf_informer_stop(crossing->other, NULL));
}

static void shut_down_once_waited_for(struct recorder *recorder, const char *line)
{
    struct crossing *crossing = recorder->react_ctx;

    if (strcmp(line, "synced") != 0)
        return;
    crossing->is_there = true;
    informer_await_stop(crossing->other);
    recorder_set_result(recorder, kinf_factory_shutdown(crossing->f->factory, NULL));
}

static void shutdown_that_is_refused_changes_nothing(void **state)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct factory_fixture *f = *state;
    struct crossing crossing = { .f = f };
    struct kinf_informer *informer;

    alarm(ALARM_S);
    f->recorders[0].react = stop_other_here;
    f->recorders[1].react = shut_down_once_waited_for;
    f->recorders[0].react_ctx = f->recorders[1].react_ctx = &crossing;
    options.handler = recorder_handler(&f->recorders[1]);
    assert_int_equal(kinf__informer_new_for_type(NULL, things(), &options, &crossing.other, NULL),
                     0);
    assert_int_equal(kinf_informer_start(crossing.other, NULL), 0);
    options.handler = recorder_handler(&f->recorders[0]);
    informer = ask(f, &options);
    start(f);
    feed(crossing.other, "x");
    feed(informer, "x");
    recorder_expect(&f->recorders[1], "add! x@1", "synced", "done");
    assert_int_equal(recorder_result(&f->recorders[1]), KINF_ERR_STATE);
    options.handler = (struct kinf_handler){ .ctx = NULL };
    assert_ptr_equal(ask(f, &options), informer);
    feed_change(informer, "x", "2");
    recorder_expect(&f->recorders[0], "add! x@1", "synced", "update x@1 x@2");
    assert_int_equal(recorder_result(&f->recorders[0]), 0);
    kinf_informer_free(crossing.other);
    assert_int_equal(kinf_factory_shutdown(f->factory, NULL), 0);
    alarm(0);
}

static void *ask_often(void *ctx)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_informer *informer, *first = NULL;
    const struct kinf_index index = { .name = "byUID", .path = "metadata.uid" };
    struct factory_fixture *f = ctx;

    options.indices = &index;
    options.n_indices = 1;
    for (int i = 0; i < 100; i++) {
        if (kinf__factory_informer_for_type(f->factory, things(), &options, &informer, NULL) < 0 ||
            (first != NULL && informer != first) || kinf_factory_start(f->factory, NULL) < 0)
            abort();
        first = informer;
    }
    return first;
}

static void requests_at_once_make_one_informer(void **state)
{
    struct factory_fixture *f = *state;
    pthread_t threads[4];
    void *informers[4];

    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, f), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], &informers[i]);
    for (size_t i = 1; i < 4; i++)
        assert_ptr_equal(informers[i], informers[0]);
}

static void *shut_down(void *ctx)
{
    struct factory_fixture *f = ctx;

    kinf_factory_shutdown(f->factory, NULL);
    return NULL;
}

/* Whoever asks meanwhile is served or refused, and nothing is left running. */
static void shutdown_ends_whatever_is_under_way(void **state)
{
    const struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct factory_fixture *f = *state;
    struct kinf_informer *informer;
    pthread_t thread;
    int rc = 0;

    ask(f, &options);
    assert_int_equal(pthread_create(&thread, NULL, shut_down, f), 0);
    while (rc == 0) {
        rc = kinf__factory_informer_for_type(f->factory, things(), &options, &informer, NULL);
        assert_int_equal(kinf_factory_start(f->factory, NULL), 0);
    }
    assert_int_equal(rc, KINF_ERR_STOPPED);
    pthread_join(thread, NULL);
}

struct shutdown {
    struct factory_fixture *f;
    _Atomic(bool) is_over;
    bool was_over; /* before the request */
    pthread_t thread;
    bool has_thread;
};

static void *shut_down_and_say_so(void *ctx)
{
    struct shutdown *shutdown = ctx;

    kinf_factory_shutdown(shutdown->f->factory, NULL);
    shutdown->is_over = true;
    return NULL;
}

/* Of a request that adds it to a store with an object: the shutdown comes in the midst. */
static int index_during_shutdown(const struct kinf_object *object, struct kinf_index_values *values,
                                 void *ctx)
{
    struct shutdown *shutdown = ctx;

    (void)object;
    (void)values;
    if (!shutdown->has_thread) {
        if (pthread_create(&shutdown->thread, NULL, shut_down_and_say_so, shutdown) != 0)
            abort();
        shutdown->has_thread = true;
        poll(NULL, 0, 50); /* enough for one that does not wait */
        shutdown->was_over = shutdown->is_over;
    }
    return 0;
}

static void shutdown_waits_for_the_request_under_way(void **state)
{
    struct factory_fixture *f = *state;
    struct shutdown shutdown = { .f = f };
    const struct kinf_index index = { .name = "slow",
                                      .function = index_during_shutdown,
                                      .ctx = &shutdown };
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_informer *informer;

    options.handler = recorder_handler(&f->recorders[0]);
    informer = ask(f, &options);
    start(f);
    feed(informer, "x");
    recorder_expect(&f->recorders[0], "add! x@1", "synced");
    options.handler = (struct kinf_handler){ .ctx = NULL };
    options.indices = &index;
    options.n_indices = 1;
    assert_ptr_equal(ask(f, &options), informer);
    assert_true(shutdown.has_thread);
    assert_false(shutdown.was_over);
    pthread_join(shutdown.thread, NULL);
    recorder_expect(&f->recorders[0], "add! x@1", "synced", "done");
}

/* --- memory --- */

static void requests_without_memory_change_nothing(void **state)
{
    const struct kinf_index indices[] = { { .name = "byUID", .path = "metadata.uid" },
                                          { .name = "byName", .path = "metadata.name" } };
    const char *const paths[] = { "status.conditions", "metadata.managedFields" };
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct factory_fixture *f = *state;
    struct kinf_informer *informer = NULL, *again;
    int rc = -1;

    options.name_space = "ns";
    options.label_selector = "a=b";
    options.field_selector = "spec.x=y";
    options.drops = paths;
    options.n_drops = 2;
    options.indices = indices;
    for (options.n_indices = 1; options.n_indices <= 2; options.n_indices++) {
        for (size_t n = 1; rc < 0; n++) {
            test_fail_allocation(n);
            rc = kinf__factory_informer_for_type(f->factory, things(), &options, &again, NULL);
            if (test_allocation_failed())
                assert_int_equal(rc, KINF_ERR_NO_MEMORY);
            else
                assert_int_equal(rc, 0);
        }
        assert_true(informer == NULL || informer == again);
        informer = again;
        rc = -1;
    }
    assert_int_equal(n_found(informer, "byName", "x"), 0);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(equal_requests_share_one_informer),
        TEST(other_objects_are_another_informer),
        TEST(handlers_of_both_requests_are_told),
        TEST(request_may_leave_tuning_as_it_is),
        TEST(order_of_paths_does_not_count),
        TEST(conflicting_request_is_refused_by_name),
        TEST(error_callback_of_another_context_is_refused),
        TEST(handler_of_a_refused_request_is_told_nothing),
        TEST(malformed_request_leaves_nothing_behind),
        TEST(indices_of_all_requests_are_there),
        TEST(index_functions_ask_no_factory),
        TEST(another_index_of_a_name_is_refused),
        TEST(index_that_one_request_has_twice_is_refused),
        TEST(starting_again_starts_only_what_is_new),
        TEST(those_behind_one_that_cannot_be_started_still_can),
        TEST(done_handler_asks_and_starts_while_a_start_fails),
        TEST(waiting_ends_with_the_time),
        TEST(waiting_that_succeeds_in_the_end_leaves_no_error),
        TEST(after_shutdown_stores_are_read_and_nothing_starts),
        TEST(shutdown_from_a_callback_is_refused),
        TEST(shutdown_that_is_refused_changes_nothing),
        TEST(requests_at_once_make_one_informer),
        TEST(shutdown_ends_whatever_is_under_way),
        TEST(shutdown_waits_for_the_request_under_way),
        TEST(requests_without_memory_change_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
