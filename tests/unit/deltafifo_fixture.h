/*
 * What the queue's tests share: a queue with a few known objects, and items as text.
 *
 * An item is written "name: Type@rv ..." as it leaves, a tombstone as Deleted*, and " initial"
 * behind what left before has_synced. The calls fail the test if they fail, and check the
 * structure.
 */
#ifndef KINF_TESTS_UNIT_DELTAFIFO_FIXTURE_H
#define KINF_TESTS_UNIT_DELTAFIFO_FIXTURE_H

#include "deltafifo/deltafifo_priv.h"

struct fifo_fixture {
    struct kinf_deltafifo *fifo;
    const struct kinf_object *made[128];
    size_t n_made;
    const struct kinf_object *known[8];
    size_t n_known;
    void (*window)(struct fifo_fixture *f); /* runs while an item is in process, once */
    int process_result;
    char popped[512];
};

int fifo_setup(void **state);
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
void fifo_open_bare(struct fifo_fixture *f);
void fifo_open_known(struct fifo_fixture *f);
void fifo_open_known_as_sync(struct fifo_fixture *f);

void fifo_add(struct fifo_fixture *f, const char *name, const char *rv);
void fifo_update(struct fifo_fixture *f, const char *name, const char *rv);
void fifo_delete(struct fifo_fixture *f, const char *name, const char *rv);
void fifo_resync(struct fifo_fixture *f);
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

const char *fifo_name(const char *key);
void fifo_append_text(char *text, size_t size, const char *more);
void fifo_write_item(char *text, size_t size, const struct kinf_deltas *deltas);

#endif
