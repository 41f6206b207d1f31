/*
 * Handlers that come and go while an informer runs: from outside, from their own callbacks, from
 * each other's. G1 to G10 are the guarantees of kinformer/informer.h.
 */
#include "unit/informer_fixture.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "unit/test.h"

static void run_with(struct informer_fixture *f, size_t n_handlers)
{
    informer_make(f, NULL);
    for (size_t i = 0; i < n_handlers; i++)
        informer_add(f, &f->recorders[i]);
    informer_start(f);
}

static void *remove_main(void *ctx)
{
    struct recorder *recorder = ctx;

    kinf_informer_remove_handler(recorder->informer, recorder->id);
    recorder_write(recorder, "removed");
    return NULL;
}

static pthread_t remove_elsewhere(struct recorder *recorder)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, remove_main, recorder), 0);
    return thread;
}

/* --- joining --- */

/* Mirrors TestAddWhileActive. G6, G7 */
static void late_handler_is_told_everything_then_what_changes(void **state)
{
    struct informer_fixture *f = *state;

    run_with(f, 0);
    feed_replace(f, "7", "x", "1", "y", "2");
    wait_synced(f);
    informer_add(f, &f->recorders[0]);
    recorder_wait_for(&f->recorders[0], "synced");
    feed_delete(f, "x", "8");
    recorder_expect(&f->recorders[0], "add! x@1", "add! y@2", "synced", "delete x@8");
    assert_true(kinf_informer_handler_has_synced(f->informer, f->recorders[0].id));
}

/* Mirrors TestSharedInformerMultipleRegistration. */
static void one_handler_may_be_added_twice(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0];
    kinf_handler_id first;

    run_with(f, 1);
    first = a->id;
    informer_add(f, a);
    assert_true(first != a->id);
    feed_replace(f, "7", NULL);
    recorder_expect(a, "synced", "synced");
    kinf_informer_remove_handler(f->informer, first);
    recorder_wait_for(a, "done");
    feed_add(f, "x", "8");
    recorder_expect(a, "synced", "synced", "done", "add x@8");
}

static void add_another(struct recorder *recorder, const char *line)
{
    struct kinf_handler handler = recorder_handler(recorder->react_ctx);
    kinf_handler_id id;

    if (strcmp(line, "add! x@1") == 0)
        recorder_set_result(recorder,
                            kinf_informer_add_handler(recorder->informer, &handler, &id, NULL));
}

/* G6: the handler that a callback adds may hear of an object from the snapshot or as an event, but
 * once. */
static void callbacks_may_add_handlers(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0], *b = &f->recorders[1];

    informer_make(f, NULL);
    a->react = add_another;
    a->react_ctx = b;
    informer_add(f, a);
    informer_start(f);
    feed_replace(f, "7", "x", "1", "y", "2");
    recorder_wait_for(b, "synced");
    recorder_expect(b, "add! x@1", "add! y@2", "synced");
    recorder_wait_for(a, "add! y@2");
    assert_int_equal(recorder_result(a), 0);
}

/* --- leaving --- */

/* Mirrors TestRemoveWhileActive. */
static void removed_handler_is_told_nothing_more(void **state)
{
    struct informer_fixture *f = *state;

    run_with(f, 2);
    feed_replace(f, "7", "x", "1");
    recorder_wait_for(&f->recorders[0], "synced");
    kinf_informer_remove_handler(f->informer, f->recorders[0].id);
    feed_add(f, "y", "8");
    recorder_expect(&f->recorders[1], "add! x@1", "synced", "add y@8");
    recorder_expect(&f->recorders[0], "add! x@1", "synced", "done");
}

static size_t count_leaving(struct kinf__handlers *handlers)
{
    size_t n = 0;

    kinf__mutex_lock(&handlers->lock);
    KINF__LIST_FOR_EACH (node, &handlers->leaving)
        n++;
    kinf__mutex_unlock(&handlers->lock);
    return n;
}

/* Mirrors TestRemoveEventHandler_SynchronousShutdown. G9 */
static void removal_waits_for_the_running_callback(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0];
    pthread_t first, second;

    run_with(f, 1);
    recorder_block(a);
    feed_replace(f, "7", "x", "1", "y", "2");
    recorder_wait_blocked(a);
    first = remove_elsewhere(a);
    second = remove_elsewhere(a);
    while (count_leaving(&f->informer->handlers) == 0)
        sched_yield();
    recorder_unblock(a);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    recorder_expect(a, "add! x@1", "done", "removed", "removed");
}

/* Mirrors TestRemovingRemovedSharedInformer, TestSharedInformerRemoveForeignHandler. */
static void removing_what_is_not_there_is_harmless(void **state)
{
    struct informer_fixture *f = *state;

    run_with(f, 1);
    kinf_informer_remove_handler(f->informer, 0);
    kinf_informer_remove_handler(f->informer, 12345);
    kinf_informer_remove_handler(f->informer, f->recorders[0].id);
    kinf_informer_remove_handler(f->informer, f->recorders[0].id);
    recorder_expect(&f->recorders[0], "done");
}

static void remove_other(struct recorder *recorder, const char *line)
{
    struct recorder *other = recorder->react_ctx;

    if (strcmp(line, "done") != 0)
        kinf_informer_remove_handler(recorder->informer, other->id);
}

/* G9: in its own callback, a removal is complete at once. */
static void handler_may_remove_itself(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0];

    informer_make(f, NULL);
    a->react = remove_other;
    a->react_ctx = a;
    informer_add(f, a);
    feed_replace(f, "7", "x", "1", "y", "2");
    informer_start(f);
    recorder_expect(a, "add! x@1", "done");
    /* for somebody else it waits, though nothing is left to be done */
    kinf_informer_remove_handler(f->informer, a->id);
    assert_true(kinf__list_is_empty(&f->informer->handlers.leaving));
}

struct once {
    struct kinf_informer *informer;
    kinf_handler_id id; /* what add_handler has written, and no lock */
    _Atomic(bool) is_done;
};

static void remove_by_its_id(const struct kinf_object *object, bool in_initial_list, void *ctx)
{
    struct once *once = ctx;

    (void)object;
    (void)in_initial_list;
    kinf_informer_remove_handler(once->informer, once->id);
}

static void note_once_done(void *ctx)
{
    ((struct once *)ctx)->is_done = true;
}

/* G9; that the id is written first is for ThreadSanitizer to see. */
static void handler_knows_its_id_in_its_first_callback(void **state)
{
    const struct timespec delay = { .tv_nsec = 1000000 };
    struct informer_fixture *f = *state;
    struct once once = { .id = 0 };
    const struct kinf_handler handler = { .on_add = remove_by_its_id,
                                          .on_done = note_once_done,
                                          .ctx = &once };

    run_with(f, 0);
    feed_replace(f, "7", "x", "1");
    wait_synced(f);
    once.informer = f->informer;
    assert_int_equal(kinf_informer_add_handler(f->informer, &handler, &once.id, NULL), 0);
    while (!once.is_done)
        nanosleep(&delay, NULL);
}

/* G9 */
static void handler_may_remove_another(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0], *b = &f->recorders[1];

    informer_make(f, NULL);
    a->react = remove_other;
    a->react_ctx = b;
    informer_add(f, a);
    informer_add(f, b);
    recorder_block(a);
    recorder_block(b);
    informer_start(f);
    feed_replace(f, "7", "x", "1", "y", "2");
    recorder_wait_blocked(a);
    recorder_wait_blocked(b);
    recorder_unblock(a);
    recorder_wait_for(a, "synced"); /* its callbacks did not wait for b's */
    recorder_unblock(b);
    recorder_expect(b, "add! x@1", "done");
}

struct removal {
    struct kinf_informer *informer;
    kinf_handler_id victim;
    size_t n_told_before; /* the remover's callbacks before it removes */
    _Atomic(size_t) n_begun;
    _Atomic(size_t) n_begun_then; /* when the removal had returned */
    _Atomic(bool) is_done;
};

static void begin_callback(const struct kinf_object *old, const struct kinf_object *object,
                           void *ctx)
{
    struct removal *removal = ctx;

    (void)old;
    (void)object;
    if (atomic_load(&removal->is_done))
        abort();
    atomic_fetch_add(&removal->n_begun, 1);
}

static void note_done(void *ctx)
{
    struct removal *removal = ctx;

    atomic_store(&removal->is_done, true);
}

static void remove_victim(const struct kinf_object *old, const struct kinf_object *object,
                          void *ctx)
{
    struct removal *removal = ctx;

    (void)old;
    (void)object;
    if (removal->n_told_before-- != 0)
        return;
    kinf_informer_remove_handler(removal->informer, removal->victim);
    atomic_store(&removal->n_begun_then, atomic_load(&removal->n_begun));
}

/* G9: one that began at the same moment, and on_done behind it. */
static void handler_removed_by_another_has_one_callback_left_at_most(void **state)
{
    struct informer_fixture *f = *state;
    struct test_random random = test_random_init(__func__);

    for (size_t rounds = test_rounds(200); rounds > 0; rounds--) {
        struct removal removal = { .n_told_before = test_random_below(&random, 40) };
        const struct kinf_handler victim = { .on_change = begin_callback,
                                             .on_done = note_done,
                                             .ctx = &removal };
        const struct kinf_handler remover = { .on_change = remove_victim, .ctx = &removal };
        kinf_handler_id id;

        informer_make(f, NULL);
        removal.informer = f->informer;
        assert_int_equal(kinf_informer_add_handler(f->informer, &victim, &removal.victim, NULL), 0);
        assert_int_equal(kinf_informer_add_handler(f->informer, &remover, &id, NULL), 0);
        feed_many(f, 50);
        informer_start(f);
        while (!atomic_load(&removal.is_done))
            sched_yield();
        kinf_informer_free(KINF__TAKE(f->informer));
        assert_in_range(atomic_load(&removal.n_begun) - atomic_load(&removal.n_begun_then), 0, 1);
    }
}

/* Would wait for each other if a removal waited in callbacks. */
static void handlers_may_remove_each_other(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0], *b = &f->recorders[1];

    run_with(f, 0);
    a->react = remove_other;
    a->react_ctx = b;
    b->react = remove_other;
    b->react_ctx = a;
    recorder_block(a);
    recorder_block(b);
    informer_add(f, a);
    informer_add(f, b);
    feed_replace(f, "7", "x", "1", "y", "2");
    recorder_wait_blocked(a);
    recorder_wait_blocked(b);
    recorder_unblock(a);
    recorder_wait_for(a, "add! y@2"); /* so b is removed */
    recorder_unblock(b);
    recorder_wait_for(a, "done");
    recorder_expect(b, "add! x@1", "done");
}

/* What a callback removed, and what removed itself, is joined by the stop. */
static void stop_frees_those_who_left_by_themselves(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0];

    informer_make(f, NULL);
    a->react = remove_other;
    a->react_ctx = a;
    informer_add(f, a);
    informer_start(f);
    feed_replace(f, "7", "x", "1");
    recorder_wait_for(a, "done");
    assert_int_equal(kinf_informer_stop(f->informer, NULL), 0);
    assert_true(kinf__list_is_empty(&f->informer->handlers.leaving));
}

/* Nobody adds another handler, and nobody stops: each thread that ends joins those before it. */
static void those_who_left_by_themselves_do_not_pile_up(void **state)
{
    struct informer_fixture *f = *state;

    informer_make(f, NULL);
    for (size_t i = 0; i < KINF__ARRAY_LEN(f->recorders); i++) {
        f->recorders[i].react = remove_other;
        f->recorders[i].react_ctx = &f->recorders[i];
        informer_add(f, &f->recorders[i]);
    }
    informer_start(f);
    feed_replace(f, "7", "x", "1");
    for (size_t i = 0; i < KINF__ARRAY_LEN(f->recorders); i++)
        recorder_wait_for(&f->recorders[i], "done");
    while (count_leaving(&f->informer->handlers) > 1)
        sched_yield();
}

/* G8 */
static void slow_handler_holds_up_nobody(void **state)
{
    struct informer_fixture *f = *state;

    run_with(f, 2);
    recorder_block(&f->recorders[0]);
    feed_replace(f, "7", "x", "1");
    recorder_wait_blocked(&f->recorders[0]);
    feed_update(f, "x", "8");
    recorder_expect(&f->recorders[1], "add! x@1", "synced", "update x@1 x@8");
    assert_int_equal(recorder_count(&f->recorders[0], ""), 1);
    recorder_unblock(&f->recorders[0]);
    recorder_expect(&f->recorders[0], "add! x@1", "synced", "update x@1 x@8");
}

/* --- abuse --- */

#define N_ABUSERS 100

static void *abuse_main(void *ctx)
{
    informer_come_and_go(ctx, test_rounds(8), informer_add);
    return NULL;
}

/* Mirrors TestSharedInformerHandlerAbuse. */
static void hundred_threads_add_and_remove_handlers(void **state)
{
    struct informer_fixture *f = *state;
    pthread_t threads[N_ABUSERS];
    char rv[16];

    run_with(f, 1);
    feed_replace(f, "1", "x", "1", "y", "1");
    for (size_t i = 0; i < N_ABUSERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, abuse_main, f), 0);
    for (unsigned i = 2; i < 500; i++) {
        snprintf(rv, sizeof rv, "%u", i);
        feed_update(f, i % 2 == 0 ? "x" : "y", rv);
    }
    for (size_t i = 0; i < N_ABUSERS; i++)
        pthread_join(threads[i], NULL);
    recorder_wait_for(&f->recorders[0], "update y@497 y@499");
    assert_true(kinf__processor_check(&f->informer->processor));
    assert_int_equal(kinf__processor_count(&f->informer->processor), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        INFORMER_TEST_BOTH(late_handler_is_told_everything_then_what_changes),
        INFORMER_TEST_BOTH(one_handler_may_be_added_twice),
        INFORMER_TEST_BOTH(callbacks_may_add_handlers),
        INFORMER_TEST_BOTH(removed_handler_is_told_nothing_more),
        INFORMER_TEST_BOTH(removal_waits_for_the_running_callback),
        INFORMER_TEST_BOTH(removing_what_is_not_there_is_harmless),
        INFORMER_TEST_BOTH(handler_may_remove_itself),
        INFORMER_TEST_BOTH(handler_knows_its_id_in_its_first_callback),
        INFORMER_TEST_BOTH(handler_may_remove_another),
        INFORMER_TEST_BOTH(handler_removed_by_another_has_one_callback_left_at_most),
        INFORMER_TEST_BOTH(handlers_may_remove_each_other),
        INFORMER_TEST_BOTH(stop_frees_those_who_left_by_themselves),
        INFORMER_TEST_BOTH(those_who_left_by_themselves_do_not_pile_up),
        INFORMER_TEST_BOTH(slow_handler_holds_up_nobody),
        INFORMER_TEST_BOTH(hundred_threads_add_and_remove_handlers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
