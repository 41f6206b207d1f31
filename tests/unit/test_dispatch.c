/*
 * Dispatched handlers: callbacks on the thread of a program's own event loop. G6 to G9 are the
 * guarantees of kinformer/informer.h.
 */
#include "unit/informer_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "unit/allocation.h"
#include "unit/test.h"

#define PATIENCE_MS 60000

/* --- aids --- */

static struct kinf_handler dispatched(struct recorder *recorder)
{
    struct kinf_handler handler = recorder_handler(recorder);

    handler.is_dispatched = true;
    return handler;
}

static void add_handler(struct informer_fixture *f, struct recorder *recorder,
                        const struct kinf_handler *handler)
{
    recorder->informer = f->informer;
    assert_int_equal(kinf_informer_add_handler(f->informer, handler, &recorder->id, NULL), 0);
}

static void add_dispatched(struct informer_fixture *f, struct recorder *recorder)
{
    const struct kinf_handler handler = dispatched(recorder);

    add_handler(f, recorder, &handler);
}

static void run_with(struct informer_fixture *f, size_t n_handlers)
{
    informer_make(f, NULL);
    for (size_t i = 0; i < n_handlers; i++)
        add_dispatched(f, &f->recorders[i]);
    informer_start(f);
}

static int fd_of(struct informer_fixture *f)
{
    int fd = -1;

    assert_int_equal(kinf_informer_fd(f->informer, &fd, NULL), 0);
    return fd;
}

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

    return poll(&poll_fd, 1, timeout_ms) == 1;
}

/* Tells `max` at most; how many wait still. */
static size_t dispatch(struct informer_fixture *f, size_t max)
{
    struct kinf_error err = KINF_ERROR_INIT;
    size_t n_waiting = SIZE_MAX;

    if (kinf_informer_dispatch(f->informer, max, &n_waiting, &err) < 0)
        fail_msg("%s", err.message);
    return n_waiting;
}

static struct kinf_handler_status status_of(struct informer_fixture *f, struct recorder *recorder)
{
    struct kinf_handler_status status;

    assert_int_equal(kinf_informer_handler_status(f->informer, recorder->id, &status, NULL), 0);
    return status;
}

static void wait_waiting(struct informer_fixture *f, struct recorder *recorder, size_t n)
{
    while (status_of(f, recorder).n_waiting != n)
        sched_yield();
}

/* What a loop does until the recorder has a line. */
static void loop_until(struct informer_fixture *f, struct recorder *recorder, const char *line)
{
    while (recorder_count(recorder, line) == 0) {
        assert_true(is_readable(fd_of(f), PATIENCE_MS));
        dispatch(f, 3);
    }
}

/* --- the descriptor --- */

static void fd_is_readable_as_long_as_a_callback_waits(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0];

    run_with(f, 1);
    assert_false(is_readable(fd_of(f), 0));
    assert_int_equal(dispatch(f, 10), 0);
    feed_replace(f, "7", "x", "1", "y", "2");
    wait_waiting(f, a, 3);
    for (size_t n_left = 3; n_left-- > 0;) {
        assert_true(is_readable(fd_of(f), PATIENCE_MS));
        assert_int_equal(dispatch(f, 1), n_left);
    }
    assert_false(is_readable(fd_of(f), 0));
    recorder_expect(a, "add! x@1", "add! y@2", "synced");
    feed_update(f, "x", "8");
    assert_true(is_readable(fd_of(f), PATIENCE_MS));
    assert_int_equal(dispatch(f, 1), 0);
    assert_false(is_readable(fd_of(f), 0));
    recorder_expect(a, "add! x@1", "add! y@2", "synced", "update x@1 x@8");
}

static void dispatching_none_only_says_how_many_wait(void **state)
{
    struct informer_fixture *f = *state;

    run_with(f, 1);
    feed_replace(f, "7", "x", "1");
    wait_waiting(f, &f->recorders[0], 2);
    assert_int_equal(dispatch(f, 0), 2);
    assert_true(is_readable(fd_of(f), 0));
    assert_int_equal(recorder_count(&f->recorders[0], ""), 0);
    assert_int_equal(kinf_informer_dispatch(f->informer, 2, NULL, NULL), 0);
    assert_int_equal(recorder_count(&f->recorders[0], ""), 2);
}

/* Of those that merge: what came and went is not told, but may have made it readable. */
static void what_has_merged_away_leaves_nothing_readable_behind_a_dispatch(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0];
    struct kinf_handler handler = dispatched(a);

    handler.backlog = KINF_BACKLOG_COALESCE;
    informer_make(f, NULL);
    add_handler(f, a, &handler);
    informer_start(f);
    feed_replace(f, "7", NULL);
    loop_until(f, a, "synced");
    feed_add(f, "x", "8");
    assert_true(is_readable(fd_of(f), PATIENCE_MS));
    feed_delete(f, "x", "9");
    wait_waiting(f, a, 0);
    assert_int_equal(dispatch(f, 10), 0);
    assert_false(is_readable(fd_of(f), 0));
    recorder_expect(a, "synced");
    feed_add(f, "y", "10");
    assert_true(is_readable(fd_of(f), PATIENCE_MS));
    loop_until(f, a, "add y@10");
}

/* Each dispatch that leaves something is followed by an edge. */
static void edge_triggered_loop_misses_nothing(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0];
    struct epoll_event event = { .events = EPOLLIN | EPOLLET };
    int loop = epoll_create1(EPOLL_CLOEXEC);

    run_with(f, 1);
    assert_int_equal(epoll_ctl(loop, EPOLL_CTL_ADD, fd_of(f), &event), 0);
    feed_many(f, 300);
    while (recorder_count(a, "synced") == 0) {
        assert_int_equal(epoll_wait(loop, &event, 1, PATIENCE_MS), 1);
        dispatch(f, 7);
    }
    assert_int_equal(recorder_count(a, "add!"), 300);
    for (unsigned i = 2; i < 50; i++) {
        char rv[16];

        snprintf(rv, sizeof rv, "%u", i);
        feed_update(f, "o0", rv);
        assert_int_equal(epoll_wait(loop, &event, 1, PATIENCE_MS), 1);
        dispatch(f, 7);
    }
    loop_until(f, a, "update o0@48 o0@49");
    close(loop);
}

static void fd_is_one_an_informer_and_closed_by_exec(void **state)
{
    struct informer_fixture *f = *state;
    struct epoll_event event = { .events = EPOLLIN };
    struct kinf_informer *first;
    int loop = epoll_create1(EPOLL_CLOEXEC), fd;

    run_with(f, 1);
    fd = fd_of(f);
    assert_int_equal(fd, fd_of(f));
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal(epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event), 0);
    first = f->informer;
    informer_make(f, NULL); /* of which nobody has been added when it is asked */
    assert_int_not_equal(fd_of(f), fd);
    assert_int_equal(epoll_ctl(loop, EPOLL_CTL_ADD, fd_of(f), &event), 0);
    /* two as one: an epoll instance can be waited for as well */
    assert_false(is_readable(loop, 0));
    add_dispatched(f, &f->recorders[1]);
    informer_start(f);
    feed_replace(f, "7", NULL);
    assert_true(is_readable(loop, PATIENCE_MS));
    loop_until(f, &f->recorders[1], "synced");
    assert_false(is_readable(loop, 0));
    kinf_informer_free(first);
    close(loop);
    recorder_expect(&f->recorders[0], "done");
}

/* --- callbacks --- */

static void note_thread(struct recorder *recorder, const char *line)
{
    (void)line;
    recorder_set_result(recorder,
                        pthread_equal(pthread_self(), *(pthread_t *)recorder->react_ctx) ? 1 : -1);
}

/* G8 */
static void callbacks_run_where_they_are_dispatched(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0];
    pthread_t here = pthread_self();

    a->react = note_thread;
    a->react_ctx = &here;
    run_with(f, 1);
    feed_replace(f, "7", "x", "1");
    loop_until(f, a, "synced");
    assert_int_equal(recorder_result(a), 1);
    assert_int_equal(kinf_informer_stop(f->informer, NULL), 0);
    recorder_expect(a, "add! x@1", "synced", "done");
    assert_int_equal(recorder_result(a), 1);
}

/* G6, G7: a few at a time, with changes in between. */
static void late_handler_is_told_the_store_in_pieces(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0], *b = &f->recorders[1];

    informer_make(f, NULL);
    informer_add(f, b);
    informer_start(f);
    feed_replace(f, "7", "x", "1", "y", "2", "z", "3");
    recorder_wait_for(b, "synced");
    add_dispatched(f, a);
    assert_true(is_readable(fd_of(f), 0));
    assert_int_equal(status_of(f, a).n_waiting, 4);
    assert_int_equal(dispatch(f, 1), 3);
    feed_delete(f, "x", "8");
    recorder_wait_for(b, "delete x@8");
    assert_int_equal(dispatch(f, 2), 2);
    assert_false(kinf_informer_handler_has_synced(f->informer, a->id));
    assert_int_equal(dispatch(f, 1), 1);
    assert_true(kinf_informer_handler_has_synced(f->informer, a->id));
    assert_int_equal(dispatch(f, 10), 0);
    recorder_expect(a, "add! x@1", "add! y@2", "add! z@3", "synced", "delete x@8");
    assert_int_equal(status_of(f, a).n_told, 5);
}

/* G8: it costs what its backlog does. */
static void handler_that_nobody_dispatches_holds_up_nobody(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0], *b = &f->recorders[1], *c = &f->recorders[2];
    struct kinf_handler merging = dispatched(b);

    merging.backlog = KINF_BACKLOG_COALESCE;
    run_with(f, 1);
    add_handler(f, b, &merging);
    informer_add(f, c);
    feed_replace(f, "1", "x", "1");
    for (unsigned i = 2; i <= 500; i++) {
        char rv[16];

        snprintf(rv, sizeof rv, "%u", i);
        feed_update(f, "x", rv);
    }
    recorder_wait_for(c, "update x@499 x@500");
    assert_int_equal(status_of(f, a).n_waiting, 501);
    assert_int_equal(status_of(f, b).n_waiting, 2);
    assert_true(kinf__handlers_check(&f->informer->handlers));
    assert_int_equal(dispatch(f, SIZE_MAX), 0);
    assert_int_equal(recorder_count(a, ""), 501);
    recorder_expect(b, "add! x@500", "synced");
}

static void handlers_take_turns(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0], *b = &f->recorders[1];

    run_with(f, 2);
    feed_many(f, 500);
    wait_waiting(f, a, 501);
    wait_waiting(f, b, 501);
    assert_int_equal(dispatch(f, 1), 1001);
    assert_int_equal(dispatch(f, 1), 1000);
    assert_int_equal(recorder_count(a, ""), 1);
    assert_int_equal(recorder_count(b, ""), 1);
    assert_int_equal(dispatch(f, 200), 800);
    assert_in_range(recorder_count(a, ""), 50, 150);
    assert_int_equal(dispatch(f, 800), 0);
}

static void due_handlers_are_resynced(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0];
    struct kinf_handler handler = dispatched(a);
    struct kinf__list *subscriptions;

    handler.resync_period_ms = 3600000;
    informer_make(f, NULL);
    add_handler(f, a, &handler);
    subscriptions = &f->informer->processor.subscriptions;
    KINF__LIST_ENTRY(subscriptions->next, struct kinf__subscription, in_processor)->next_resync_ms =
        0;
    informer_start(f);
    feed_replace(f, "7", "x", "1");
    loop_until(f, a, "update x@1 x@1");
}

/* --- who may not --- */

static void dispatch_here(struct recorder *recorder, const char *line)
{
    if (strcmp(line, "done") != 0)
        recorder_set_result(recorder, kinf_informer_dispatch(recorder->react_ctx, 1, NULL, NULL));
}

static void callbacks_may_not_dispatch(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0], *b = &f->recorders[1];
    struct kinf_informer *other;

    informer_make(f, NULL);
    other = f->informer;
    run_with(f, 1);
    a->react = dispatch_here;
    a->react_ctx = f->informer;
    b->react = dispatch_here;
    b->react_ctx = f->informer;
    informer_add(f, b); /* with a thread of its own */
    feed_replace(f, "7", "x", "1");
    recorder_wait_for(b, "synced");
    while (recorder_result(b) == 0)
        sched_yield();
    assert_int_equal(recorder_result(b), KINF_ERR_STATE);
    dispatch(f, 1);
    assert_int_equal(recorder_result(a), KINF_ERR_STATE);
    a->react_ctx = other;
    recorder_set_result(a, 0);
    dispatch(f, 1);
    assert_int_equal(recorder_result(a), KINF_ERR_STATE);
    kinf_informer_free(other);
}

static void *dispatch_main(void *ctx)
{
    struct informer_fixture *f = ctx;

    while (!is_readable(fd_of(f), PATIENCE_MS))
        continue;
    return kinf_informer_dispatch(f->informer, SIZE_MAX, NULL, NULL) == 0 ? f : NULL;
}

/* A thread that dispatches, with the first recorder's callback under way. */
static pthread_t dispatch_elsewhere(struct informer_fixture *f)
{
    pthread_t thread;

    recorder_block(&f->recorders[0]);
    assert_int_equal(pthread_create(&thread, NULL, dispatch_main, f), 0);
    recorder_wait_blocked(&f->recorders[0]);
    return thread;
}

static void expect_dispatched(pthread_t thread)
{
    void *result;

    pthread_join(thread, &result);
    assert_non_null(result);
}

static void one_thread_dispatches_at_a_time(void **state)
{
    struct informer_fixture *f = *state;
    struct kinf_error err = KINF_ERROR_INIT;
    pthread_t thread;

    run_with(f, 2);
    feed_replace(f, "7", "x", "1");
    thread = dispatch_elsewhere(f);
    assert_int_equal(kinf_informer_dispatch(f->informer, 1, NULL, &err), KINF_ERR_STATE);
    assert_non_null(strstr(err.message, "another thread"));
    recorder_unblock(&f->recorders[0]);
    expect_dispatched(thread);
    loop_until(f, &f->recorders[0], "synced");
    loop_until(f, &f->recorders[1], "synced");
}

/* --- leaving --- */

static void removed_handler_is_told_nothing_more(void **state)
{
    struct informer_fixture *f = *state;

    run_with(f, 2);
    feed_replace(f, "7", "x", "1");
    wait_waiting(f, &f->recorders[0], 2);
    kinf_informer_remove_handler(f->informer, f->recorders[0].id);
    recorder_expect(&f->recorders[0], "done");
    loop_until(f, &f->recorders[1], "synced");
    kinf_informer_remove_handler(f->informer, f->recorders[1].id);
    recorder_expect(&f->recorders[1], "add! x@1", "synced", "done");
    assert_false(is_readable(fd_of(f), 0));
}

static void removing_the_one_that_waits_makes_it_unreadable(void **state)
{
    struct informer_fixture *f = *state;

    run_with(f, 1);
    feed_replace(f, "7", "x", "1");
    wait_waiting(f, &f->recorders[0], 2);
    assert_true(is_readable(fd_of(f), PATIENCE_MS));
    kinf_informer_remove_handler(f->informer, f->recorders[0].id);
    assert_false(is_readable(fd_of(f), 0));
    assert_int_equal(dispatch(f, 10), 0);
}

static void remove_self(struct recorder *recorder, const char *line)
{
    if (strcmp(line, "done") != 0)
        kinf_informer_remove_handler(recorder->informer, recorder->id);
}

/* G9 */
static void handler_may_remove_itself(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0];

    a->react = remove_self;
    run_with(f, 1);
    feed_replace(f, "7", "x", "1", "y", "2");
    wait_waiting(f, a, 3);
    assert_int_equal(dispatch(f, 10), 0);
    recorder_expect(a, "add! x@1", "done");
    assert_true(kinf__list_is_empty(&f->informer->handlers.leaving));
    assert_false(is_readable(fd_of(f), 0));
}

static void *remove_main(void *ctx)
{
    struct recorder *recorder = ctx;

    kinf_informer_remove_handler(recorder->informer, recorder->id);
    recorder_write(recorder, "removed");
    return NULL;
}

/* Whether the removal of a handler has begun. */
static bool has_leaving(struct informer_fixture *f)
{
    struct kinf__handlers *handlers = &f->informer->handlers;
    bool has;

    kinf__mutex_lock(&handlers->lock);
    has = !kinf__list_is_empty(&handlers->leaving);
    kinf__mutex_unlock(&handlers->lock);
    return has;
}

/* G9 */
static void removal_waits_for_the_running_callback(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0];
    pthread_t dispatcher, removers[2];

    run_with(f, 1);
    feed_replace(f, "7", "x", "1", "y", "2");
    dispatcher = dispatch_elsewhere(f);
    for (size_t i = 0; i < KINF__ARRAY_LEN(removers); i++)
        assert_int_equal(pthread_create(&removers[i], NULL, remove_main, a), 0);
    while (!has_leaving(f))
        sched_yield();
    recorder_unblock(a);
    for (size_t i = 0; i < KINF__ARRAY_LEN(removers); i++)
        pthread_join(removers[i], NULL);
    expect_dispatched(dispatcher);
    recorder_expect(a, "add! x@1", "done", "removed", "removed");
}

/* --- the end --- */

static void behind_a_stop_nothing_is_told(void **state)
{
    struct informer_fixture *f = *state;
    int fd;

    run_with(f, 1);
    fd = fd_of(f);
    feed_replace(f, "7", "x", "1");
    wait_waiting(f, &f->recorders[0], 2);
    assert_int_equal(kinf_informer_stop(f->informer, NULL), 0);
    recorder_expect(&f->recorders[0], "done");
    assert_int_equal(kinf_informer_dispatch(f->informer, 10, NULL, NULL), KINF_ERR_STOPPED);
    assert_int_equal(fd_of(f), fd);
    assert_false(is_readable(fd, 0));
}

static void *stop_main(void *ctx)
{
    struct informer_fixture *f = ctx;

    return kinf_informer_stop(f->informer, NULL) == 0 ? f : NULL;
}

/* G10 */
static void stop_waits_for_the_running_callback_and_ends_the_dispatch(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0];
    pthread_t dispatcher, stopper;

    run_with(f, 2);
    feed_many(f, 200);
    wait_waiting(f, a, 201);
    dispatcher = dispatch_elsewhere(f);
    assert_int_equal(pthread_create(&stopper, NULL, stop_main, f), 0);
    recorder_wait_for(&f->recorders[1], "done"); /* nobody tells it anything, so stop does */
    recorder_unblock(a);
    expect_dispatched(stopper);
    expect_dispatched(dispatcher);
    recorder_expect(a, "add! o0@1", "done");
}

static void stop_here(struct recorder *recorder, const char *line)
{
    if (strcmp(line, "done") != 0)
        recorder_set_result(recorder, kinf_informer_stop(recorder->informer, NULL));
}

static void callbacks_may_not_stop_their_informer(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0];

    a->react = stop_here;
    run_with(f, 1);
    feed_replace(f, "7", NULL);
    loop_until(f, a, "synced");
    assert_int_equal(recorder_result(a), KINF_ERR_STATE);
}

static void those_of_an_informer_that_never_ran_are_done_with_it(void **state)
{
    struct informer_fixture *f = *state;

    informer_make(f, NULL);
    add_dispatched(f, &f->recorders[0]);
    add_dispatched(f, &f->recorders[1]);
    assert_int_equal(dispatch(f, 1), 0);
    kinf_informer_remove_handler(f->informer, f->recorders[0].id);
    recorder_expect(&f->recorders[0], "done");
    kinf_informer_free(KINF__TAKE(f->informer));
    recorder_expect(&f->recorders[1], "done");
}

/* --- what is not to be had --- */

static void without_descriptors_nothing_is_added(void **state)
{
    struct informer_fixture *f = *state;
    const struct kinf_handler handler = dispatched(&f->recorders[0]);
    struct rlimit before, none;
    kinf_handler_id id = 77;
    int fd = 77;

    informer_make(f, NULL);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(kinf_informer_add_handler(f->informer, &handler, &id, NULL), KINF_ERR_SYSTEM);
    assert_int_equal(kinf_informer_fd(f->informer, &fd, NULL), KINF_ERR_SYSTEM);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(id, 77);
    assert_int_equal(fd, 77);
    assert_int_equal(kinf__processor_count(&f->informer->processor), 0);
    assert_int_equal(recorder_count(&f->recorders[0], ""), 0);
    add_dispatched(f, &f->recorders[0]);
}

/* What this thread allocates: the handler, and not what it is told. */
static void adding_survives_every_allocation_failure(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0];
    const struct kinf_handler handler = dispatched(a);
    size_t n_failed = 0;
    int rc = KINF_ERR_NO_MEMORY;

    run_with(f, 0);
    feed_replace(f, "7", "x", "1");
    wait_synced(f);
    for (size_t n = 1; rc < 0; n++) {
        test_fail_allocation(n);
        rc = kinf_informer_add_handler(f->informer, &handler, &a->id, NULL);
        n_failed += test_allocation_failed();
        assert_true(rc == 0 || rc == KINF_ERR_NO_MEMORY);
        assert_int_equal(is_readable(fd_of(f), 0), rc == 0);
    }
    assert_true(n_failed > 0);
    loop_until(f, a, "synced");
    recorder_expect(a, "add! x@1", "synced");
}

/* --- at random --- */

/* The last changes once, behind all others: of no other key is the newest state told last. */
#define N_NAMES 9

/* What a handler was told last of each name; 0: nothing. */
struct mirror {
    unsigned long versions[N_NAMES];
};

static unsigned long version_of(const struct kinf_object *object)
{
    return object != NULL ? strtoul(kinf_object_resource_version(object), NULL, 10) : 0;
}

/* G4: what it leads from is what was told last. */
static void mirror_change(const struct kinf_object *old, const struct kinf_object *object,
                          void *ctx)
{
    struct mirror *mirror = ctx;
    int i = kinf_object_name(object != NULL ? object : old)[0] - 'a';

    assert_int_equal(mirror->versions[i] != 0, old != NULL);
    if (object != NULL && old != NULL)
        assert_int_equal(mirror->versions[i], version_of(old));
    mirror->versions[i] = version_of(object);
}

static kinf_handler_id add_mirror(struct informer_fixture *f, struct mirror *mirror,
                                  enum kinf_backlog backlog)
{
    const struct kinf_handler handler = {
        .on_change = mirror_change, .ctx = mirror, .backlog = backlog, .is_dispatched = true
    };
    kinf_handler_id id;

    assert_int_equal(kinf_informer_add_handler(f->informer, &handler, &id, NULL), 0);
    return id;
}

static void expect_mirrored(struct informer_fixture *f, const struct mirror *mirror)
{
    kinf_auto_snapshot struct kinf_snapshot *store =
        kinf_indexer_snapshot(kinf_informer_indexer(f->informer));
    char key[] = "ns/a";

    for (size_t i = 0; i < N_NAMES; i++) {
        key[3] = (char)('a' + i);
        assert_int_equal(mirror->versions[i], version_of(kinf_snapshot_get(store, key)));
    }
}

static void change_one(struct informer_fixture *f, struct test_random *random, unsigned version)
{
    const char name[] = { (char)('a' + test_random_below(random, N_NAMES - 1)), '\0' };
    char rv[16];

    snprintf(rv, sizeof rv, "%u", version);
    if (test_random_below(random, 3) == 0)
        feed_delete(f, name, rv);
    else
        feed_update(f, name, rv);
}

/* Two that are there from the start, and one of each kind that comes and goes. */
static void what_is_told_in_pieces_is_the_store(void **state)
{
    struct informer_fixture *f = *state;
    struct test_random random = test_random_init(__func__);
    struct mirror mirrors[4] = { { { 0 } } };
    kinf_handler_id ids[4];

    informer_make(f, NULL);
    for (size_t i = 0; i < 4; i++)
        ids[i] = add_mirror(f, &mirrors[i], (enum kinf_backlog)(i % 2));
    informer_start(f);
    feed_replace(f, "1", "a", "1", "b", "1");
    for (unsigned version = 2; version < test_rounds(20000); version++) {
        change_one(f, &random, version);
        if (test_random_below(&random, 4) == 0)
            dispatch(f, test_random_below(&random, 20));
        if (test_random_below(&random, 50) == 0) {
            size_t i = 2 + test_random_below(&random, 2);

            kinf_informer_remove_handler(f->informer, ids[i]);
            mirrors[i] = (struct mirror){ { 0 } };
            ids[i] = add_mirror(f, &mirrors[i], (enum kinf_backlog)(i % 2));
            assert_true(kinf__handlers_check(&f->informer->handlers));
        }
    }
    feed_add(f, "i", "99999");
    for (size_t i = 0; i < 4; i++) {
        while (mirrors[i].versions[N_NAMES - 1] == 0) {
            assert_true(is_readable(fd_of(f), PATIENCE_MS));
            dispatch(f, 10);
        }
        expect_mirrored(f, &mirrors[i]);
    }
}

/* --- all at once --- */

#define N_UPDATES 2000

static void *feed_main(void *ctx)
{
    struct informer_fixture *f = ctx;
    char rv[16];

    for (unsigned i = 2; i <= test_rounds(N_UPDATES); i++) {
        snprintf(rv, sizeof rv, "%u", i);
        feed_update(f, "x", rv);
    }
    feed_add(f, "last", "1");
    return NULL;
}

static void *come_and_go_main(void *ctx)
{
    struct informer_fixture *f = ctx;

    informer_come_and_go(f, test_rounds(200), add_dispatched);
    recorder_write(&f->recorders[3], "gone");
    return NULL;
}

/* A loop in this thread, changes and handlers that come and go in others. */
static void loop_among_threads_misses_nothing(void **state)
{
    struct informer_fixture *f = *state;
    struct recorder *a = &f->recorders[0];
    pthread_t feeder, guest;

    run_with(f, 1);
    feed_replace(f, "1", "x", "1");
    assert_int_equal(pthread_create(&feeder, NULL, feed_main, f), 0);
    assert_int_equal(pthread_create(&guest, NULL, come_and_go_main, f), 0);
    while (recorder_count(a, "add last@1") == 0 || recorder_count(&f->recorders[3], "gone") == 0) {
        if (is_readable(fd_of(f), 10))
            dispatch(f, 5);
    }
    pthread_join(feeder, NULL);
    pthread_join(guest, NULL);
    assert_int_equal(recorder_count(a, "update"), f->order == KINF_FIFO_IN_ORDER
                                                      ? test_rounds(N_UPDATES) - 1
                                                      : recorder_count(a, "update"));
    assert_int_equal(dispatch(f, 0), 0);
    assert_false(is_readable(fd_of(f), 0));
    assert_true(kinf__handlers_check(&f->informer->handlers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        INFORMER_TEST_BOTH(fd_is_readable_as_long_as_a_callback_waits),
        INFORMER_TEST(dispatching_none_only_says_how_many_wait),
        INFORMER_TEST(what_has_merged_away_leaves_nothing_readable_behind_a_dispatch),
        INFORMER_TEST_BOTH(edge_triggered_loop_misses_nothing),
        INFORMER_TEST(fd_is_one_an_informer_and_closed_by_exec),
        INFORMER_TEST(callbacks_run_where_they_are_dispatched),
        INFORMER_TEST_BOTH(late_handler_is_told_the_store_in_pieces),
        INFORMER_TEST_IN_ORDER(handler_that_nobody_dispatches_holds_up_nobody),
        INFORMER_TEST(handlers_take_turns),
        INFORMER_TEST_BOTH(due_handlers_are_resynced),
        INFORMER_TEST(callbacks_may_not_dispatch),
        INFORMER_TEST(one_thread_dispatches_at_a_time),
        INFORMER_TEST(removed_handler_is_told_nothing_more),
        INFORMER_TEST(removing_the_one_that_waits_makes_it_unreadable),
        INFORMER_TEST(handler_may_remove_itself),
        INFORMER_TEST(removal_waits_for_the_running_callback),
        INFORMER_TEST(behind_a_stop_nothing_is_told),
        INFORMER_TEST(stop_waits_for_the_running_callback_and_ends_the_dispatch),
        INFORMER_TEST(callbacks_may_not_stop_their_informer),
        INFORMER_TEST(those_of_an_informer_that_never_ran_are_done_with_it),
        INFORMER_TEST(without_descriptors_nothing_is_added),
        INFORMER_TEST(adding_survives_every_allocation_failure),
        INFORMER_TEST_BOTH(what_is_told_in_pieces_is_the_store),
        INFORMER_TEST_BOTH(loop_among_threads_misses_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
