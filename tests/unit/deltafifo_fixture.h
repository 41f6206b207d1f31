/*
 * What the queue's tests share: a queue with a few known objects, items as text, threads that wait,
 * allocations that fail.
 *
 * A keyed item is written "name: Type@rv ..." as it leaves, a tombstone as Deleted*. A batch is
 * written "name: Type@rv; ...", "ReplacedAll@rv [name@rv ...]", "SyncAll" or "Bookmark@rv". Behind
 * what left before has_synced comes " initial". The calls fail the test if they fail, and check the
 * structure.
 */
#ifndef KINF_TESTS_UNIT_DELTAFIFO_FIXTURE_H
#define KINF_TESTS_UNIT_DELTAFIFO_FIXTURE_H

#include "deltafifo/deltafifo_priv.h"

struct fifo_fixture {
    enum kinf_fifo_order order; /* of what fifo_open_bare() opens */
    struct kinf_deltafifo *fifo;
    const struct kinf_object *made[128];
    size_t n_made;
    const struct kinf_object *known[8];
    size_t n_known;
    void (*window)(struct fifo_fixture *f); /* runs while an item is in process, once */
    int process_result;
    char popped[512];
};

int fifo_setup(void **state); /* keyed */
int fifo_setup_in_order(void **state);
int fifo_teardown(void **state);
/* Frees the queue and the objects; none may be left. */
void fifo_reset(struct fifo_fixture *f);

/* An object of the namespace "default". fifo_make: the fixture's. */
const struct kinf_object *fifo_object(const char *name, const char *rv);
const struct kinf_object *fifo_make(struct fifo_fixture *f, const char *name, const char *rv);
void fifo_know(struct fifo_fixture *f, const char *name, const char *rv);
int fifo_each_known(kinf_known_object_cb *callback, void *callback_ctx, void *ctx);

struct kinf_deltafifo_options fifo_known_options(struct fifo_fixture *f);
void fifo_open(struct fifo_fixture *f, const struct kinf_deltafifo_options *options);
/* Nothing can be known: "no lister" in upstream's tests. */
struct kinf_deltafifo_options fifo_bare_options(const struct fifo_fixture *f);
void fifo_open_bare(struct fifo_fixture *f);
void fifo_open_known(struct fifo_fixture *f);
void fifo_open_known_as_sync(struct fifo_fixture *f);

void fifo_add(struct fifo_fixture *f, const char *name, const char *rv);
void fifo_update(struct fifo_fixture *f, const char *name, const char *rv);
void fifo_delete(struct fifo_fixture *f, const char *name, const char *rv);
void fifo_resync(struct fifo_fixture *f);
void fifo_bookmark(struct fifo_fixture *f, const char *rv);
/* The list is name, rv, name, rv, ..., NULL. */
int fifo_try_replace(struct fifo_fixture *f, const char *list_rv, const char *const *list);
#define fifo_replace(f, list_rv, ...)                                                              \
    do {                                                                                           \
        assert_int_equal(fifo_try_replace((f), (list_rv), (const char *const[]){ __VA_ARGS__ }),   \
                         0);                                                                       \
        assert_true(kinf__deltafifo_check((f)->fifo));                                             \
    } while (0)

/* What left the queue, "" if it was empty. */
const char *fifo_pop(struct fifo_fixture *f);
int fifo_process(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx);
const char *fifo_processed_rv(struct fifo_fixture *f);
/* One of the queue's flags, which its lock guards. */
bool fifo_flag(struct kinf_deltafifo *fifo, const bool *flag);

const char *fifo_name(const char *key);
void fifo_append_text(char *text, size_t size, const char *more);
void fifo_write_item(char *text, size_t size, const struct kinf_deltas *deltas);

/* --- threads that wait --- */

struct fifo_waiter {
    struct kinf_deltafifo *fifo;
    const struct kinf_object *object;
    pthread_t thread; /* the test joins it */
    _Atomic pid_t tid;
    int result;
};

/* Holds "a" at 1, and has no room for more. */
void fifo_open_full(struct fifo_fixture *f);
/* Returns when it waits for an item. */
void fifo_start_blocked_pop(struct fifo_fixture *f, struct fifo_waiter *waiter);
/* Adds "b" at 2. */
void fifo_start_add(struct fifo_fixture *f, struct fifo_waiter *waiter);
/* Likewise; returns when it waits for room. */
void fifo_start_blocked_add(struct fifo_fixture *f, struct fifo_waiter *waiter);

/* --- failures --- */

/* Fails one allocation of `operation` after the other, each time on a queue that `prepare` opened
 * and filled: it fails with KINF_ERR_NO_MEMORY and changes nothing. */
void fifo_sweep(struct fifo_fixture *f, void (*prepare)(struct fifo_fixture *),
                int (*operation)(struct fifo_fixture *));

/* Breaks the structure and repairs it. */
#define fifo_expect_check_fires(fifo, break_it, repair_it)                                         \
    do {                                                                                           \
        assert_true(kinf__deltafifo_check(fifo));                                                  \
        break_it;                                                                                  \
        assert_false(kinf__deltafifo_check(fifo));                                                 \
        repair_it;                                                                                 \
        assert_true(kinf__deltafifo_check(fifo));                                                  \
    } while (0)

/* A test that is run by key too. */
#define FIFO_IN_ORDER_TEST(test)                                                                   \
    {                                                                                              \
        .name = #test " (in order)", .test_func = test, .setup_func = fifo_setup_in_order,         \
        .teardown_func = fifo_teardown                                                             \
    }

#endif
