/*
 * A server's history for the model tests of the queue: random changes, lists, restores from a
 * backup, and what the server has after each. A key is a number here, a resourceVersion another.
 */
#ifndef KINF_TESTS_UNIT_DELTAFIFO_HISTORY_H
#define KINF_TESTS_UNIT_DELTAFIFO_HISTORY_H

#include <kinformer/deltafifo.h>

#include "unit/test.h"

enum { history_n_keys = 8, history_n_list_most = 2 * history_n_keys };

struct fifo_history {
    struct test_random random;
    unsigned server_rv;
    const struct kinf_object *truth[history_n_keys]; /* what the server has, NULL if nothing */
    const struct kinf_object **made;
    size_t n_made;
    size_t n_made_room;
};

/* Gives up every object that was made. */
void history_release(struct fifo_history *history);
size_t history_below(struct fifo_history *history, size_t limit);

/* An object, the history's. rv_number 0: without a resourceVersion. */
const struct kinf_object *history_make(struct fifo_history *history, size_t key,
                                       unsigned rv_number);
size_t history_key_of(const struct kinf_object *object);
unsigned history_version_of(const struct kinf_object *object);

/* One change, as the watch event that it makes. A deletion now and then of a key that nobody has.
 */
enum kinf_delta_type history_change(struct fifo_history *history,
                                    const struct kinf_object **ret_object);
/* What the server has after changes that nobody watched, or a restore, in any order, behind older
 * copies of some of it. server_rv is the list's version then. Returns how many. */
size_t history_list(struct fifo_history *history, const struct kinf_object **list);

#endif
