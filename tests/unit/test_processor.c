/*
 * HandleDeltas, the processor and its listeners, driven without a queue: what is stored, who is
 * told what and in which order, who joins and leaves when. G1 to G10 are the guarantees of
 * kinformer/informer.h.
 */
#include "informer/handle_deltas.h"
#include "informer/handlers.h"

#include <stdio.h>
#include <string.h>

#include "unit/allocation.h"
#include "unit/informer_fixture.h"
#include "unit/test.h"

struct fixture {
    size_t n_objects_before;
    struct kinf_indexer *indexer;
    struct kinf__processor processor;
    struct kinf__processor *processors[1];
    struct kinf__handlers handlers;
    struct kinf__delta_target target;
    struct kinf__batch batch;
    struct recorder a;
    struct recorder b;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->n_objects_before = kinf__object_count();
    assert_int_equal(kinf_indexer_new(NULL, 0, &f->indexer, NULL), 0);
    kinf__processor_init(&f->processor, f->indexer);
    f->processors[0] = &f->processor;
    kinf__handlers_init(&f->handlers, f, f->processors, 1);
    f->target.indexer = f->indexer;
    f->target.processor = &f->processor;
    recorder_init(&f->a);
    recorder_init(&f->b);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    assert_true(kinf__processor_check(&f->processor));
    assert_true(kinf__handlers_check(&f->handlers));
    kinf__handlers_release(&f->handlers);
    kinf__processor_release(&f->processor);
    kinf__batch_release(&f->batch);
    kinf_indexer_free(f->indexer);
    assert_int_equal(kinf__object_count(), f->n_objects_before);
    recorder_release(&f->b);
    recorder_release(&f->a);
    free(f);
    return 0;
}

static kinf_handler_id join_as(struct fixture *f, const struct kinf_handler *handler,
                               int64_t now_ms)
{
    struct kinf_error err = KINF_ERROR_INIT;
    kinf_handler_id id;

    if (kinf__handlers_add(&f->handlers, handler, now_ms, &id, &err) < 0)
        fail_msg("%s", err.message);
    return id;
}

static kinf_handler_id join_resynced(struct fixture *f, struct recorder *recorder,
                                     int64_t period_ms, int64_t now_ms)
{
    struct kinf_handler handler = recorder_handler(recorder);

    handler.resync_period_ms = period_ms;
    return join_as(f, &handler, now_ms);
}

static kinf_handler_id join_coalescing(struct fixture *f, struct recorder *recorder)
{
    struct kinf_handler handler = recorder_handler(recorder);

    handler.backlog = KINF_BACKLOG_COALESCE;
    return join_as(f, &handler, 0);
}

static kinf_handler_id join(struct fixture *f, struct recorder *recorder)
{
    return join_resynced(f, recorder, 0, 0);
}

static void start(struct fixture *f)
{
    assert_int_equal(kinf__handlers_start(&f->handlers, NULL), 0);
}

static void handle_deltas(struct fixture *f, const char *key, const struct kinf_delta *deltas,
                          size_t n_deltas)
{
    const struct kinf_deltas together = { key, deltas, n_deltas };

    assert_int_equal(kinf__handle_deltas(&f->target, &together, false, &f->batch), 0);
    kinf__processor_wake(&f->processor);
    kinf__batch_clear(&f->batch);
}

/* One delta, as it comes by key; its object is consumed. */
static void handle_take(struct fixture *f, enum kinf_delta_type type, bool final_state_unknown,
                        const struct kinf_object *take_object)
{
    const struct kinf_delta delta = { .type = type,
                                      .final_state_unknown = final_state_unknown,
                                      .object = take_object };

    handle_deltas(f, kinf_object_key(take_object), &delta, 1);
    kinf_object_unref(take_object);
}

static void handle(struct fixture *f, enum kinf_delta_type type, const char *name, const char *rv)
{
    handle_take(f, type, false, make_thing(name, rv));
}

static const struct kinf_object *stored(struct fixture *f, const char *key)
{
    const struct kinf_object *object = NULL;

    if (kinf_indexer_get_by_key(f->indexer, key, &object) < 0)
        return NULL;
    kinf_object_unref(object); /* the store's reference is enough here */
    return object;
}

/* --- what deltas mean --- */

static void deltas_change_the_store_and_are_told(void **state)
{
    struct fixture *f = *state;

    join(f, &f->a);
    start(f);
    handle(f, KINF_DELTA_ADDED, "x", "1");
    handle(f, KINF_DELTA_UPDATED, "x", "2");
    handle(f, KINF_DELTA_REPLACED, "x", "3");
    handle(f, KINF_DELTA_UPDATED, "y", "4");
    handle(f, KINF_DELTA_DELETED, "x", "5");
    recorder_expect(&f->a, "add x@1", "update x@1 x@2", "update x@2 x@3", "add y@4", "delete x@5");
    assert_null(stored(f, "ns/x"));
    assert_non_null(stored(f, "ns/y"));
}

/* G4 */
static void recreated_object_is_told_as_delete_then_add(void **state)
{
    struct fixture *f = *state;

    join(f, &f->a);
    start(f);
    handle_take(f, KINF_DELTA_ADDED, false, make_thing_of("x", "first", "1", ""));
    handle_take(f, KINF_DELTA_REPLACED, false, make_thing_of("x", "second", "7", ""));
    recorder_expect(&f->a, "add x@1", "delete* x@1", "add x@7");
    assert_string_equal(kinf_object_uid(stored(f, "ns/x")), "second");
}

/* G4: nobody was told of it */
static void deletion_of_what_nobody_saw_is_not_told(void **state)
{
    struct fixture *f = *state;

    join(f, &f->a);
    start(f);
    handle(f, KINF_DELTA_DELETED, "x", "1");
    handle(f, KINF_DELTA_ADDED, "y", "2");
    recorder_expect(&f->a, "add y@2");
}

/* G4, G5 */
static void deletion_of_a_successor_ends_the_stored_object(void **state)
{
    struct fixture *f = *state;

    join(f, &f->a);
    start(f);
    handle_take(f, KINF_DELTA_ADDED, false, make_thing_of("x", "first", "1", ""));
    handle_take(f, KINF_DELTA_DELETED, false, make_thing_of("x", "second", "9", ""));
    recorder_expect(&f->a, "add x@1", "delete* x@1");
    assert_null(stored(f, "ns/x"));
}

/* G5 */
static void missed_deletion_says_that_the_state_is_unknown(void **state)
{
    struct fixture *f = *state;

    join(f, &f->a);
    start(f);
    handle(f, KINF_DELTA_ADDED, "x", "1");
    handle_take(f, KINF_DELTA_DELETED, true, make_thing("x", "1"));
    recorder_expect(&f->a, "add x@1", "delete* x@1");
}

static void deletion_moves_the_version_of_the_store_but_a_tombstone_does_not(void **state)
{
    struct fixture *f = *state;
    char rv[64];

    handle(f, KINF_DELTA_ADDED, "x", "1");
    handle(f, KINF_DELTA_ADDED, "y", "2");
    handle(f, KINF_DELTA_DELETED, "x", "5");
    assert_int_equal(kinf_indexer_resource_version(f->indexer, rv, sizeof rv), 0);
    assert_string_equal(rv, "5");
    handle_take(f, KINF_DELTA_DELETED, true, make_thing("y", "2"));
    assert_int_equal(kinf_indexer_resource_version(f->indexer, rv, sizeof rv), 0);
    assert_string_equal(rv, "5");
}

/* Mirrors TestSharedInformerWatchDisruption. G3 */
static void unchanged_objects_are_told_to_syncing_handlers_only(void **state)
{
    struct fixture *f = *state;
    const struct kinf_object *kept;

    join_resynced(f, &f->a, 5000, 0);
    join(f, &f->b);
    start(f);
    handle(f, KINF_DELTA_ADDED, "x", "1");
    kept = stored(f, "ns/x");
    handle(f, KINF_DELTA_REPLACED, "x", "1");
    assert_true(kinf__processor_should_resync(&f->processor, 5000, true));
    handle(f, KINF_DELTA_REPLACED, "x", "1");
    handle_take(f, KINF_DELTA_SYNC, false, kinf_object_ref(kept));
    handle(f, KINF_DELTA_REPLACED, "x", "2");
    recorder_expect(&f->a, "add x@1", "update x@1 x@1", "update x@1 x@1", "update x@1 x@2");
    recorder_expect(&f->b, "add x@1", "update x@1 x@2");
}

static void unchanged_object_keeps_its_stored_copy(void **state)
{
    struct fixture *f = *state;
    const struct kinf_object *kept;

    handle(f, KINF_DELTA_ADDED, "x", "1");
    kept = stored(f, "ns/x");
    handle(f, KINF_DELTA_REPLACED, "x", "1");
    assert_ptr_equal(stored(f, "ns/x"), kept);
}

/* After a restore of etcd the same version may stand for other content. G3 */
static void other_content_of_the_same_version_is_a_change(void **state)
{
    struct fixture *f = *state;

    join(f, &f->a);
    start(f);
    handle_take(f, KINF_DELTA_ADDED, false, make_thing_of("x", "u", "1", "before"));
    handle_take(f, KINF_DELTA_REPLACED, false, make_thing_of("x", "u", "1", "after"));
    recorder_expect(&f->a, "add x@1", "update x@1 x@1");
}

/* --- transform --- */

struct transform_fixture {
    size_t n_calls;
    const char *name; /* of the result; NULL: fails */
};

static int rename_versions(const struct kinf_object *object, const struct kinf_object **ret_object,
                           void *ctx)
{
    struct transform_fixture *t = ctx;
    char rv[32];

    t->n_calls++;
    if (t->name == NULL)
        return -1;
    snprintf(rv, sizeof rv, "%s0", kinf_object_resource_version(object));
    *ret_object = make_thing(t->name, rv);
    return 0;
}

static void set_transform(struct fixture *f, struct transform_fixture *t)
{
    f->target.transform = rename_versions;
    f->target.transform_ctx = t;
}

/* Mirrors TestSharedInformerTransformer, TestTransformingInformer. */
static void transformed_objects_are_stored_and_told(void **state)
{
    struct fixture *f = *state;
    struct transform_fixture t = { 0, "x" };

    set_transform(f, &t);
    join(f, &f->a);
    start(f);
    handle(f, KINF_DELTA_ADDED, "x", "1");
    handle(f, KINF_DELTA_UPDATED, "x", "2");
    handle(f, KINF_DELTA_DELETED, "x", "3");
    recorder_expect(&f->a, "add x@10", "update x@10 x@20", "delete x@30");
    assert_int_equal(t.n_calls, 3);
}

/* Mirrors TestTransformingInformerRace. */
static void nothing_is_transformed_twice(void **state)
{
    struct fixture *f = *state;
    struct transform_fixture t = { 0, "x" };

    set_transform(f, &t);
    handle(f, KINF_DELTA_ADDED, "x", "1");
    handle_take(f, KINF_DELTA_SYNC, false, kinf_object_ref(stored(f, "ns/x")));
    handle_take(f, KINF_DELTA_REPLACED, false, kinf_object_ref(stored(f, "ns/x")));
    handle_take(f, KINF_DELTA_DELETED, true, kinf_object_ref(stored(f, "ns/x")));
    assert_int_equal(t.n_calls, 1);
}

/* By key, a tombstone is made of what is still in the queue, which no transform has seen. G5 */
static void tombstone_tells_what_the_store_has(void **state)
{
    struct fixture *f = *state;
    struct transform_fixture t = { 0, "x" };

    set_transform(f, &t);
    join(f, &f->a);
    start(f);
    handle(f, KINF_DELTA_ADDED, "x", "1");
    handle_take(f, KINF_DELTA_DELETED, true, make_thing("x", "1"));
    recorder_expect(&f->a, "add x@10", "delete* x@10");
    assert_int_equal(t.n_calls, 1);
}

static void failing_transform_stores_the_object_as_received(void **state)
{
    struct fixture *f = *state;
    struct transform_fixture t = { 0, NULL };

    set_transform(f, &t);
    handle(f, KINF_DELTA_ADDED, "x", "1");
    assert_string_equal(kinf_object_resource_version(stored(f, "ns/x")), "1");
}

static void transform_cannot_change_the_key(void **state)
{
    struct fixture *f = *state;
    struct transform_fixture t = { 0, "y" };

    set_transform(f, &t);
    handle(f, KINF_DELTA_ADDED, "x", "1");
    assert_string_equal(kinf_object_resource_version(stored(f, "ns/x")), "1");
    assert_null(stored(f, "ns/y"));
}

/* --- joining --- */

/* G6 */
static void late_handler_is_told_the_store_first(void **state)
{
    struct fixture *f = *state;

    start(f);
    handle(f, KINF_DELTA_ADDED, "y", "1");
    handle(f, KINF_DELTA_ADDED, "x", "2");
    join(f, &f->a);
    handle(f, KINF_DELTA_UPDATED, "x", "3");
    recorder_expect(&f->a, "add! x@2", "add! y@1", "update x@2 x@3");
}

/* G6, G7 */
static void on_synced_comes_once_and_behind_the_initial_list(void **state)
{
    struct fixture *f = *state;
    kinf_handler_id a, b;

    a = join(f, &f->a);
    start(f);
    handle(f, KINF_DELTA_ADDED, "x", "1");
    kinf__processor_set_synced(&f->processor);
    kinf__processor_set_synced(&f->processor);
    handle(f, KINF_DELTA_ADDED, "y", "2");
    b = join(f, &f->b);
    handle(f, KINF_DELTA_ADDED, "z", "3");
    recorder_expect(&f->a, "add x@1", "synced", "add y@2", "add z@3");
    recorder_expect(&f->b, "add! x@1", "add! y@2", "synced", "add z@3");
    assert_true(kinf__handlers_has_synced(&f->handlers, a));
    assert_true(kinf__handlers_has_synced(&f->handlers, b));
    assert_false(kinf__handlers_has_synced(&f->handlers, b + 1));
}

/* The moments of a change at which a handler may join. */
static void change_with_joins(struct fixture *f, struct recorder *before, struct recorder *after,
                              const struct kinf_object *object,
                              struct kinf__notification *notification)
{
    const struct kinf__batch batch = { .notifications = { notification, 1 }, .n_notifications = 1 };
    const struct kinf_index index = { .name = "late", .path = "text" };

    assert_int_equal(kinf__processor_begin(&f->processor, &batch), 0);
    assert_int_equal(kinf_indexer_add_indices(f->indexer, &index, 1, NULL), 0); /* is no write */
    join(f, before);
    if (object != NULL)
        assert_int_equal(kinf_indexer_update(f->indexer, object, NULL, NULL), 0);
    else
        assert_int_equal(kinf_indexer_delete(f->indexer, "ns/x", NULL, NULL, NULL), 0);
    join(f, after);
    assert_int_equal(kinf__processor_distribute(&f->processor, &batch, NULL), 0);
}

/* G6: it is either in the snapshot or told, whenever the handler joins */
static void handler_that_joins_during_an_update_is_told_it_once(void **state)
{
    struct fixture *f = *state;
    const struct kinf_object *one = make_thing("x", "1");
    const struct kinf_object *two = make_thing("x", "2");
    struct kinf__notification update = { .type = KINF__NOTIFY_UPDATE, .old = one, .object = two };

    start(f);
    assert_int_equal(kinf_indexer_add(f->indexer, one, NULL, NULL), 0);
    change_with_joins(f, &f->a, &f->b, two, &update);
    handle(f, KINF_DELTA_UPDATED, "x", "3");
    recorder_expect(&f->a, "add! x@1", "update x@1 x@2", "update x@2 x@3");
    recorder_expect(&f->b, "add! x@2", "update x@2 x@3");
    kinf_object_unref(two);
    kinf_object_unref(one);
}

/* G6 */
static void handler_that_joins_during_a_deletion_is_told_it_once(void **state)
{
    struct fixture *f = *state;
    const struct kinf_object *one = make_thing("x", "1");
    struct kinf__notification delete = { .type = KINF__NOTIFY_DELETE, .old = one, .object = one };

    start(f);
    assert_int_equal(kinf_indexer_add(f->indexer, one, NULL, NULL), 0);
    change_with_joins(f, &f->a, &f->b, NULL, &delete);
    handle(f, KINF_DELTA_ADDED, "y", "3");
    recorder_expect(&f->a, "add! x@1", "delete x@1", "add y@3");
    recorder_expect(&f->b, "add y@3");
    kinf_object_unref(one);
}

/* G6: it needs room for what it has to be told, as those who were there before do */
static void handler_that_joins_during_a_large_change_is_told_all_of_it(void **state)
{
    enum { n_many = 2500 };
    struct fixture *f = *state;
    const struct kinf_object *object = make_thing("x", "1");
    struct kinf__notification *many = calloc(n_many, sizeof *many);
    const struct kinf__batch batch = { .notifications = { many, n_many },
                                       .n_notifications = n_many };

    assert_non_null(many);
    for (size_t i = 0; i < n_many; i++)
        many[i] = (struct kinf__notification){ .type = KINF__NOTIFY_ADD, .object = object };
    start(f);
    assert_int_equal(kinf__processor_begin(&f->processor, &batch), 0);
    join(f, &f->a);
    assert_int_equal(kinf_indexer_add(f->indexer, object, NULL, NULL), 0);
    join(f, &f->b);
    assert_int_equal(kinf__processor_distribute(&f->processor, &batch, NULL), 0);
    kinf__processor_wake(&f->processor);
    recorder_wait(&f->a, n_many);
    handle(f, KINF_DELTA_UPDATED, "x", "2");
    recorder_expect(&f->b, "add! x@1", "update x@1 x@2");
    assert_int_equal(recorder_count(&f->a, "add x@1"), n_many);
    free(many);
    kinf_object_unref(object);
}

static struct kinf__listener *first_listener(struct fixture *f)
{
    return KINF__LIST_ENTRY(f->handlers.listeners.next, struct kinf__listener, in_owner);
}

/* What nobody is to be told needs no room, and what was reserved does not stay. */
static void room_for_a_large_change_is_given_back(void **state)
{
    enum { n_many = 100000 };
    struct fixture *f = *state;
    const struct kinf_object *object = make_thing("x", "1");
    struct kinf__notification *many = calloc(n_many, sizeof *many);
    const struct kinf__batch unchanged = { .resynced = { many, n_many }, .n_resynced = n_many };
    const struct kinf__batch changed = { .notifications = { many, n_many },
                                         .n_notifications = n_many };

    assert_non_null(many);
    for (size_t i = 0; i < n_many; i++)
        many[i] = (struct kinf__notification){ .type = KINF__NOTIFY_UPDATE,
                                               .old = object,
                                               .object = object };
    join_resynced(f, &f->a, 5000, 0);
    assert_int_equal(kinf__processor_begin(&f->processor, &unchanged), 0);
    assert_int_equal(first_listener(f)->backlog->n_reserved, 1); /* the sentinel */
    kinf__processor_cancel(&f->processor);
    assert_int_equal(kinf__processor_begin(&f->processor, &changed), 0);
    assert_int_equal(first_listener(f)->backlog->n_reserved, n_many + 1);
    kinf__processor_cancel(&f->processor);
    assert_int_equal(first_listener(f)->backlog->n_reserved, 1);
    kinf__handlers_remove(&f->handlers, first_listener(f)->id);
    join_coalescing(f, &f->b);
    assert_int_equal(kinf__processor_begin(&f->processor, &changed), 0);
    assert_int_equal(kinf__processor_distribute(&f->processor, &changed, NULL), 0);
    assert_int_equal(first_listener(f)->backlog->n_reserved, 1);
    kinf__handlers_remove(&f->handlers, first_listener(f)->id);
    join_coalescing(f, &f->a);
    assert_int_equal(first_listener(f)->backlog->n_reserved, 1);
    free(many);
    kinf_object_unref(object);
}

/* G6 */
static void change_that_was_given_up_is_told_to_nobody(void **state)
{
    struct fixture *f = *state;
    const struct kinf_object *object = make_thing("x", "1");
    const struct kinf__batch batch = { .n_notifications = 0 };

    start(f);
    assert_int_equal(kinf__processor_begin(&f->processor, &batch), 0);
    join(f, &f->a);
    kinf__processor_cancel(&f->processor);
    handle(f, KINF_DELTA_ADDED, "x", "2");
    recorder_expect(&f->a, "add x@2");
    kinf_object_unref(object);
}

static void who_is_closed_takes_nobody(void **state)
{
    struct fixture *f = *state;
    struct kinf_handler handler = recorder_handler(&f->a);
    struct kinf_error err = KINF_ERROR_INIT;
    kinf_handler_id id = 7;

    kinf__handlers_close(&f->handlers);
    assert_int_equal(kinf__handlers_add(&f->handlers, &handler, 0, &id, &err), KINF_ERR_STOPPED);
    assert_int_equal(id, 7);
    assert_string_equal(err.message, "the informer has stopped");
}

/* --- the queue --- */

/* G1, G8: thousands of notifications wait for one handler while the other goes on */
static void slow_handler_holds_up_nobody_and_loses_nothing(void **state)
{
    struct fixture *f = *state;
    size_t n = test_rounds(2000) + 300; /* some chunks */
    char rv[16], line[64];

    join(f, &f->a);
    join(f, &f->b);
    start(f);
    recorder_block(&f->a);
    for (size_t i = 1; i <= n; i++) {
        snprintf(rv, sizeof rv, "%zu", i);
        handle(f, i == 1 ? KINF_DELTA_ADDED : KINF_DELTA_UPDATED, "x", rv);
    }
    recorder_wait(&f->b, n);
    assert_int_equal(recorder_count(&f->a, ""), 1);
    assert_true(kinf__processor_check(&f->processor));
    recorder_unblock(&f->a);
    recorder_wait(&f->a, n);
    for (size_t i = 2; i <= n; i++) {
        snprintf(line, sizeof line, "update x@%zu x@%zu", i - 1, i);
        assert_string_equal(f->a.lines[i - 1], line);
    }
}

/* G9 */
static void removal_drops_what_is_queued(void **state)
{
    struct fixture *f = *state;
    kinf_handler_id id = join(f, &f->a);

    recorder_block(&f->a);
    start(f);
    handle(f, KINF_DELTA_ADDED, "x", "1");
    recorder_wait_blocked(&f->a);
    handle(f, KINF_DELTA_UPDATED, "x", "2");
    kinf__handlers_close(&f->handlers);
    recorder_unblock(&f->a);
    kinf__handlers_join(&f->handlers);
    recorder_expect(&f->a, "add x@1", "done");
    kinf__handlers_remove(&f->handlers, id);
}

/* G9 */
static void handler_that_never_ran_is_told_done(void **state)
{
    struct fixture *f = *state;
    kinf_handler_id id = join(f, &f->a);

    handle(f, KINF_DELTA_ADDED, "x", "1");
    kinf__handlers_remove(&f->handlers, id);
    recorder_expect(&f->a, "done");
    kinf__handlers_remove(&f->handlers, id);
    assert_int_equal(kinf__processor_count(&f->processor), 0);
}

/* The short form, and handlers with holes. */
static void note_change(const struct kinf_object *old, const struct kinf_object *object, void *ctx)
{
    recorder_write(ctx, old == NULL ? "+" : object == NULL ? "-" : "=");
}

static void on_change_stands_in_for_what_is_missing(void **state)
{
    struct fixture *f = *state;
    struct kinf_handler handler = { .on_change = note_change, .ctx = &f->a };
    struct kinf_handler empty = { .ctx = NULL };
    kinf_handler_id id;

    assert_int_equal(kinf__handlers_add(&f->handlers, &handler, 0, &id, NULL), 0);
    assert_int_equal(kinf__handlers_add(&f->handlers, &empty, 0, &id, NULL), 0);
    start(f);
    handle(f, KINF_DELTA_ADDED, "x", "1");
    handle(f, KINF_DELTA_UPDATED, "x", "2");
    handle(f, KINF_DELTA_DELETED, "x", "3");
    recorder_expect(&f->a, "+", "=", "-");
}

/* --- merging --- */

/* G3, G8 */
static void slow_coalescing_handler_is_told_the_newest_once(void **state)
{
    struct fixture *f = *state;
    char rv[16];

    join_coalescing(f, &f->a);
    recorder_block(&f->a);
    start(f);
    handle(f, KINF_DELTA_ADDED, "x", "1");
    recorder_wait_blocked(&f->a);
    for (int i = 2; i <= 1001; i++) {
        snprintf(rv, sizeof rv, "%d", i);
        handle(f, KINF_DELTA_UPDATED, "x", rv);
        handle(f, i % 2 == 0 ? KINF_DELTA_ADDED : KINF_DELTA_DELETED, "y", rv);
    }
    handle_take(f, KINF_DELTA_REPLACED, false, make_thing_of("x", "other", "1002", ""));
    assert_true(kinf__processor_check(&f->processor));
    recorder_unblock(&f->a);
    recorder_expect(&f->a, "add x@1", "delete* x@1001", "add x@1002");
}

/* G7: also of an add that merged */
static void initial_list_is_told_before_synced_although_it_merges(void **state)
{
    struct fixture *f = *state;

    join_coalescing(f, &f->a);
    handle(f, KINF_DELTA_ADDED, "x", "1");
    handle(f, KINF_DELTA_ADDED, "y", "2");
    kinf__processor_set_synced(&f->processor);
    handle(f, KINF_DELTA_ADDED, "z", "3");
    handle(f, KINF_DELTA_UPDATED, "x", "4");
    start(f);
    recorder_expect(&f->a, "add x@4", "add y@2", "synced", "add z@3");
}

/* The store has x, y and z; the handler waits in its callback about x while they all change. */
static void join_and_change_all(struct fixture *f, enum kinf_backlog backlog)
{
    struct kinf_handler handler = recorder_handler(&f->a);

    handler.backlog = backlog;
    start(f);
    handle(f, KINF_DELTA_ADDED, "x", "1");
    handle(f, KINF_DELTA_ADDED, "y", "2");
    handle(f, KINF_DELTA_ADDED, "z", "3");
    handle_take(f, KINF_DELTA_ADDED, false, make_thing_of("zz", "first", "4", ""));
    kinf__processor_set_synced(&f->processor);
    recorder_block(&f->a);
    join_as(f, &handler, 0);
    recorder_wait_blocked(&f->a);
    handle(f, KINF_DELTA_UPDATED, "x", "5");
    handle(f, KINF_DELTA_UPDATED, "y", "6");
    handle(f, KINF_DELTA_UPDATED, "y", "7");
    handle(f, KINF_DELTA_DELETED, "z", "8");
    handle_take(f, KINF_DELTA_UPDATED, false, make_thing_of("zz", "second", "9", ""));
    handle(f, KINF_DELTA_ADDED, "a", "10");
    assert_true(kinf__processor_check(&f->processor));
    recorder_unblock(&f->a);
}

/* G4, G6 */
static void late_coalescing_handler_is_told_what_changed_before_its_turn_as_it_is(void **state)
{
    struct fixture *f = *state;

    join_and_change_all(f, KINF_BACKLOG_COALESCE);
    recorder_expect(&f->a, "add! x@1", "add! y@7", "add! zz@9", "synced", "update x@1 x@5",
                    "add a@10");
}

/* G4, G6 */
static void late_unbounded_handler_is_told_the_store_of_its_start_and_then_all(void **state)
{
    struct fixture *f = *state;

    join_and_change_all(f, KINF_BACKLOG_UNBOUNDED);
    recorder_expect(&f->a, "add! x@1", "add! y@2", "add! z@3", "add! zz@4", "synced",
                    "update x@1 x@5", "update y@2 y@6", "update y@6 y@7", "delete z@8",
                    "delete* zz@4", "add zz@9", "add a@10");
}

/* G9 */
static void removal_drops_what_merged(void **state)
{
    struct fixture *f = *state;
    kinf_handler_id id = join_coalescing(f, &f->a);

    recorder_block(&f->a);
    start(f);
    handle(f, KINF_DELTA_ADDED, "x", "1");
    recorder_wait_blocked(&f->a);
    handle(f, KINF_DELTA_UPDATED, "x", "2");
    handle(f, KINF_DELTA_ADDED, "y", "3");
    kinf__handlers_close(&f->handlers);
    recorder_unblock(&f->a);
    kinf__handlers_join(&f->handlers);
    recorder_expect(&f->a, "add x@1", "done");
    kinf__handlers_remove(&f->handlers, id);
}

static void unknown_backlog_is_refused(void **state)
{
    struct fixture *f = *state;
    struct kinf_handler handler = recorder_handler(&f->a);
    struct kinf_error err = KINF_ERROR_INIT;
    kinf_handler_id id = 7;

    handler.backlog = (enum kinf_backlog)2;
    assert_int_equal(kinf__handlers_add(&f->handlers, &handler, 0, &id, &err), KINF_ERR_INVALID);
    assert_int_equal(id, 7);
    assert_string_equal(err.message, "a handler has no backlog 2");
}

/* --- what waits --- */

static struct kinf_handler_status status_of(struct fixture *f, kinf_handler_id id, int64_t now_ms)
{
    struct kinf_handler_status status;

    assert_true(kinf__handlers_status(&f->handlers, id, now_ms, &status));
    return status;
}

static void expect_status(struct fixture *f, kinf_handler_id id, size_t n_waiting, uint64_t n_told,
                          uint64_t n_merged)
{
    const struct kinf_handler_status status = status_of(f, id, 0);

    assert_int_equal(status.n_waiting, n_waiting);
    assert_int_equal(status.n_told, n_told);
    assert_int_equal(status.n_merged, n_merged);
}

static void status_tells_what_waits_and_what_merged(void **state)
{
    struct fixture *f = *state;
    kinf_handler_id a = join_coalescing(f, &f->a);
    kinf_handler_id b = join(f, &f->b);
    struct kinf_handler_status status;

    recorder_block(&f->a);
    recorder_block(&f->b);
    start(f);
    handle(f, KINF_DELTA_ADDED, "x", "1");
    recorder_wait_blocked(&f->a);
    recorder_wait_blocked(&f->b);
    handle(f, KINF_DELTA_UPDATED, "x", "2");
    handle(f, KINF_DELTA_UPDATED, "x", "3");
    handle(f, KINF_DELTA_ADDED, "y", "4");
    handle(f, KINF_DELTA_DELETED, "y", "5");
    expect_status(f, a, 2, 0, 3);
    expect_status(f, b, 5, 0, 0);
    assert_int_equal(status_of(f, a, 0).backlog, KINF_BACKLOG_COALESCE);
    recorder_unblock(&f->a);
    recorder_unblock(&f->b);
    kinf__processor_set_synced(&f->processor);
    recorder_expect(&f->a, "add x@1", "update x@1 x@3", "synced");
    recorder_wait(&f->b, 6);
    assert_false(kinf__handlers_status(&f->handlers, b + 1, 0, &status));
}

static void age_is_that_of_the_oldest_and_never_negative(void **state)
{
    struct fixture *f = *state;
    kinf_handler_id id = join_coalescing(f, &f->a);
    const struct kinf_object *object = make_thing("x", "1");
    const struct kinf__notification add = { .type = KINF__NOTIFY_ADD, .object = object };
    struct kinf__subscription *subscription = &first_listener(f)->subscriptions[0];
    const int64_t late_ms = ((int64_t)5 << 32) - 100; /* the lower half wraps */

    assert_int_equal(status_of(f, id, late_ms).oldest_ms, 0);
    assert_int_equal(kinf__listener_reserve(subscription, 1), 0);
    kinf__listener_push(subscription, &add, 1, late_ms);
    assert_int_equal(status_of(f, id, late_ms - 1).oldest_ms, 0);
    assert_int_equal(status_of(f, id, late_ms + 300).oldest_ms, 300);
    kinf__handlers_remove(&f->handlers, id);
    kinf_object_unref(object);
}

static void objects_of_the_snapshot_wait_from_the_moment_of_joining(void **state)
{
    struct fixture *f = *state;
    struct kinf_handler handler = recorder_handler(&f->a);
    kinf_handler_id id;

    handle(f, KINF_DELTA_ADDED, "x", "1");
    handle(f, KINF_DELTA_ADDED, "y", "2");
    id = join_as(f, &handler, 5000);
    assert_int_equal(status_of(f, id, 5700).n_waiting, 2);
    assert_int_equal(status_of(f, id, 5700).oldest_ms, 700);
}

/* --- resync --- */

/* Mirrors TestListenerResyncPeriods. */
static void resync_periods_are_independent(void **state)
{
    struct fixture *f = *state;

    join_resynced(f, &f->a, 2000, 100);
    join_resynced(f, &f->b, 3000, 100);
    start(f);
    handle(f, KINF_DELTA_ADDED, "x", "1");
    for (int64_t now_ms = 100; now_ms <= 6100; now_ms += 1000) {
        if (kinf__processor_should_resync(&f->processor, now_ms, true))
            handle_take(f, KINF_DELTA_SYNC, false, kinf_object_ref(stored(f, "ns/x")));
    }
    handle(f, KINF_DELTA_UPDATED, "x", "2");
    recorder_expect(&f->a, "add x@1", "update x@1 x@1", "update x@1 x@1", "update x@1 x@1",
                    "update x@1 x@2");
    recorder_expect(&f->b, "add x@1", "update x@1 x@1", "update x@1 x@1", "update x@1 x@2");
}

/* Mirrors TestResyncCheckPeriod. */
static void next_resync_is_the_earliest_and_at_least_a_second_away(void **state)
{
    struct fixture *f = *state;

    assert_true(kinf__processor_next_resync_ms(&f->processor) == KINF_FOREVER);
    join(f, &f->a);
    assert_true(kinf__processor_next_resync_ms(&f->processor) == KINF_FOREVER);
    assert_false(kinf__processor_should_resync(&f->processor, INT64_MAX - 1, true));
    join_resynced(f, &f->a, 4000, 0);
    assert_int_equal(kinf__processor_next_resync_ms(&f->processor), 4000);
    join_resynced(f, &f->b, 1, 0);
    assert_int_equal(kinf__processor_next_resync_ms(&f->processor), KINF__RESYNC_MIN_MS);
    assert_false(kinf__processor_should_resync(&f->processor, KINF__RESYNC_MIN_MS - 1, true));
    assert_true(kinf__processor_should_resync(&f->processor, KINF__RESYNC_MIN_MS, true));
    assert_int_equal(kinf__processor_next_resync_ms(&f->processor), 2 * KINF__RESYNC_MIN_MS);
}

static void resync_of_one_handler_does_not_cut_another_short(void **state)
{
    struct fixture *f = *state;

    join_resynced(f, &f->a, 2000, 0);
    join_resynced(f, &f->b, 3000, 0);
    start(f);
    handle(f, KINF_DELTA_ADDED, "x", "1");
    assert_true(kinf__processor_should_resync(&f->processor, 2000, true));
    /* a's Sync is still queued when b is due */
    assert_true(kinf__processor_should_resync(&f->processor, 3000, false));
    handle_take(f, KINF_DELTA_SYNC, false, kinf_object_ref(stored(f, "ns/x")));
    assert_false(kinf__processor_should_resync(&f->processor, 3500, true));
    handle_take(f, KINF_DELTA_SYNC, false, kinf_object_ref(stored(f, "ns/x")));
    handle(f, KINF_DELTA_UPDATED, "x", "2");
    recorder_expect(&f->a, "add x@1", "update x@1 x@1", "update x@1 x@2");
    recorder_expect(&f->b, "add x@1", "update x@1 x@1", "update x@1 x@2");
}

/* --- no memory --- */

static void joining_without_memory_leaves_nothing_behind(void **state)
{
    struct fixture *f = *state;
    struct kinf_handler handler = recorder_handler(&f->a);
    kinf_handler_id id = 7;

    start(f);
    for (size_t n = 1;; n++) {
        int rc;

        test_fail_allocation(n);
        rc = kinf__handlers_add(&f->handlers, &handler, 0, &id, NULL);
        if (!test_allocation_failed()) {
            assert_int_equal(rc, 0);
            assert_true(n > 3);
            break;
        }
        assert_int_equal(rc, KINF_ERR_NO_MEMORY);
        assert_int_equal(id, 7);
        assert_int_equal(kinf__processor_count(&f->processor), 0);
    }
    assert_int_equal(recorder_count(&f->a, ""), 0);
}

/* --- check --- */

static void check_fires_on_a_broken_structure(void **state)
{
    struct fixture *f = *state;
    struct kinf__listener *listener;
    const struct kinf_object *object = make_thing("x", "1");
    const struct kinf__notification halves[2] = {
        { .type = KINF__NOTIFY_ADD, .object = object },
        { .type = KINF__NOTIFY_UPDATE, .object = object }, /* without an old one */
    };

    join(f, &f->a);
    listener = first_listener(f);
    assert_true(kinf__processor_check(&f->processor));
    f->processor.n_subscriptions++;
    assert_false(kinf__processor_check(&f->processor));
    f->processor.n_subscriptions--;
    assert_true(kinf__handlers_check(&f->handlers));
    atomic_store(&listener->is_removed, true);
    assert_false(kinf__handlers_check(&f->handlers));
    atomic_store(&listener->is_removed, false);
    assert_int_equal(kinf__listener_reserve(&listener->subscriptions[0], 2), 0);
    kinf__listener_push(&listener->subscriptions[0], halves, 1, 0);
    assert_true(kinf__processor_check(&f->processor));
    kinf__listener_push(&listener->subscriptions[0], &halves[1], 1, 0);
    assert_false(kinf__processor_check(&f->processor));
    kinf__handlers_remove(&f->handlers, listener->id);
    kinf_object_unref(object);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(deltas_change_the_store_and_are_told),
        TEST(recreated_object_is_told_as_delete_then_add),
        TEST(deletion_of_what_nobody_saw_is_not_told),
        TEST(deletion_of_a_successor_ends_the_stored_object),
        TEST(missed_deletion_says_that_the_state_is_unknown),
        TEST(deletion_moves_the_version_of_the_store_but_a_tombstone_does_not),
        TEST(unchanged_objects_are_told_to_syncing_handlers_only),
        TEST(unchanged_object_keeps_its_stored_copy),
        TEST(other_content_of_the_same_version_is_a_change),
        TEST(transformed_objects_are_stored_and_told),
        TEST(nothing_is_transformed_twice),
        TEST(tombstone_tells_what_the_store_has),
        TEST(failing_transform_stores_the_object_as_received),
        TEST(transform_cannot_change_the_key),
        TEST(late_handler_is_told_the_store_first),
        TEST(on_synced_comes_once_and_behind_the_initial_list),
        TEST(handler_that_joins_during_an_update_is_told_it_once),
        TEST(handler_that_joins_during_a_deletion_is_told_it_once),
        TEST(handler_that_joins_during_a_large_change_is_told_all_of_it),
        TEST(room_for_a_large_change_is_given_back),
        TEST(change_that_was_given_up_is_told_to_nobody),
        TEST(who_is_closed_takes_nobody),
        TEST(slow_handler_holds_up_nobody_and_loses_nothing),
        TEST(removal_drops_what_is_queued),
        TEST(handler_that_never_ran_is_told_done),
        TEST(on_change_stands_in_for_what_is_missing),
        TEST(slow_coalescing_handler_is_told_the_newest_once),
        TEST(initial_list_is_told_before_synced_although_it_merges),
        TEST(late_coalescing_handler_is_told_what_changed_before_its_turn_as_it_is),
        TEST(late_unbounded_handler_is_told_the_store_of_its_start_and_then_all),
        TEST(removal_drops_what_merged),
        TEST(unknown_backlog_is_refused),
        TEST(status_tells_what_waits_and_what_merged),
        TEST(age_is_that_of_the_oldest_and_never_negative),
        TEST(objects_of_the_snapshot_wait_from_the_moment_of_joining),
        TEST(resync_periods_are_independent),
        TEST(next_resync_is_the_earliest_and_at_least_a_second_away),
        TEST(resync_of_one_handler_does_not_cut_another_short),
        TEST(joining_without_memory_leaves_nothing_behind),
        TEST(check_fires_on_a_broken_structure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
