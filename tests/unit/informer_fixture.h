/*
 * What the informer's tests share: objects, and handlers that write down what they are told.
 *
 * A recorder writes one line a callback: "add a@1", "add! a@1" (initial list), "update a@1 a@2",
 * "delete a@2", "delete* a@2" (final state unknown), "synced", "done". Waiting for lines ends when
 * they are there, and fails the test after a long time.
 */
#ifndef KINF_TESTS_UNIT_INFORMER_FIXTURE_H
#define KINF_TESTS_UNIT_INFORMER_FIXTURE_H

#include <pthread.h>
#include <stdbool.h>

#include "informer/informer.h"

/* For kinf__thread_set_stack(): no thread can be started. */
#define NO_STACK ((size_t)1 << 50)

/* --- objects --- */

const struct kinf_type *things(void);
/* An object of the namespace "ns" with the uid "u-" and its name. */
const struct kinf_object *make_thing(const char *name, const char *rv);
const struct kinf_object *make_thing_of(const char *name, const char *uid, const char *rv,
                                        const char *text);

/* --- recorders --- */

struct recorder {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    char (*lines)[64];
    size_t n_lines;
    size_t n_allocated;
    bool is_blocked; /* the next callback waits until this is false */
    bool is_waiting; /* a callback does */
    bool is_checking_store;
    struct kinf_informer *informer; /* for `react` and checking the store */
    kinf_handler_id id;
    /* Called in a callback, after the line was written, without the mutex. */
    void (*react)(struct recorder *recorder, const char *line);
    void *react_ctx;
    int result; /* see recorder_set_result() */
};

void recorder_init(struct recorder *recorder);
void recorder_release(struct recorder *recorder);
/* What a callback does: writes the line, waits at the gate, reacts. Aborts the program if a lock of
 * the library is held (G8). */
void recorder_write(struct recorder *recorder, const char *line);
/* The handler that writes into the recorder. */
struct kinf_handler recorder_handler(struct recorder *recorder);
/* Waits until there are so many lines. */
void recorder_wait(struct recorder *recorder, size_t n_lines);
/* Waits until a line of this text is there. */
void recorder_wait_for(struct recorder *recorder, const char *line);
/* Waits until a callback waits at the gate. */
void recorder_wait_blocked(struct recorder *recorder);
void recorder_block(struct recorder *recorder);
void recorder_unblock(struct recorder *recorder);
/* What a reaction leaves for the test, which waits for a later line before it looks. */
void recorder_set_result(struct recorder *recorder, int result);
int recorder_result(struct recorder *recorder);
size_t recorder_count(struct recorder *recorder, const char *prefix);
/* Waits for as many lines as are given, and compares all: ..., NULL. */
void recorder_expect_lines(struct recorder *recorder, const char *const *lines);
#define recorder_expect(recorder, ...)                                                             \
    recorder_expect_lines((recorder), (const char *const[]){ __VA_ARGS__, NULL })

/* --- an informer without a reflector --- */

struct informer_fixture {
    struct kinf_informer *informer;
    enum kinf_fifo_order order; /* of the informers that are made */
    size_t n_objects_before;
    struct recorder recorders[4];
};

/* One test with an informer's queue by key, in order, or once with each. */
#define INFORMER_TEST(test) cmocka_unit_test_setup_teardown(test, informer_setup, informer_teardown)
#define INFORMER_TEST_IN_ORDER(test)                                                               \
    {                                                                                              \
#test " (in order)", test, informer_setup_in_order, informer_teardown, NULL                \
    }
#define INFORMER_TEST_BOTH(test) INFORMER_TEST(test), INFORMER_TEST_IN_ORDER(test)

int informer_setup(void **state);
int informer_setup_in_order(void **state);
int informer_teardown(void **state);

/* Makes the informer; `options` NULL: none; their order is the fixture's. */
void informer_make(struct informer_fixture *f, const struct kinf_informer_options *options);
void informer_start(struct informer_fixture *f);
/* Until another thread has stopped it. */
void informer_await_stop(struct kinf_informer *informer);
/* Adds a recorder's handler. */
void informer_add(struct informer_fixture *f, struct recorder *recorder);
/* For threads: a handler that `add` adds comes and goes, `n` times, every other time when it is synced.
 * Aborts the program if one is not done when it has been removed (G9). */
void informer_come_and_go(struct informer_fixture *f, size_t n,
                          void (*add)(struct informer_fixture *f, struct recorder *recorder));
void informer_add_resynced(struct informer_fixture *f, struct recorder *recorder,
                           int64_t resync_period_ms);

/* What a reflector would queue. */
void feed_add(struct informer_fixture *f, const char *name, const char *rv);
void feed_update(struct informer_fixture *f, const char *name, const char *rv);
void feed_delete(struct informer_fixture *f, const char *name, const char *rv);
void feed_object(struct informer_fixture *f, enum kinf_delta_type type,
                 const struct kinf_object *take_object);
/* The list is name, rv, name, rv, ..., NULL. */
void feed_list(struct informer_fixture *f, const char *list_rv, const char *const *list);
#define feed_replace(f, list_rv, ...)                                                              \
    feed_list((f), (list_rv), (const char *const[]){ __VA_ARGS__, NULL })
/* Replaces with `n` objects named "o0".. at version 1. */
void feed_many(struct informer_fixture *f, size_t n);
void wait_synced(struct informer_fixture *f);

#endif
