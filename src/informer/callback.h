/*
 * Whose user code a thread is running, and who waits for whom from there: what the call rules of
 * kinformer/informer.h are kept with.
 *
 * An owner is an informer, or several namespaces as one. A thread that runs its user code (handlers,
 * transform, index functions, on_watch_error) marks itself. One that adds an index to an owner's
 * store runs its index function, too: of that the indexer tells (indexer/indexer.h). Waiting for a
 * factory, or for several namespaces, is waiting for each of their informers, its parts. Controllers know
 * themselves whose callbacks a thread runs; their waits for each other are among these.
 *
 * Threads: the marks are each thread's own; waits any thread.
 */
#ifndef KINF_INFORMER_CALLBACK_H
#define KINF_INFORMER_CALLBACK_H

#include <stdbool.h>

#include "base/list.h"

struct kinf__callback_mark {
    const void *owner; /* NULL: none */
    bool feeds;        /* the owner's store waits for this thread: its processor or reflector */
};

/* Marks this thread and returns its mark of before, to be put back. */
struct kinf__callback_mark kinf__callback_enter(const void *owner, bool feeds);
void kinf__callback_leave(struct kinf__callback_mark before);

/* NULL: this thread runs no user code of any owner. */
const void *kinf__callback_owner(void);
/* Whether waiting for the owner's store would be waiting for this thread. */
bool kinf__callback_feeds(const void *owner);

struct kinf__callback_wait {
    struct kinf__list node;
    const void *waiter;
    const void *target;
};

/* Before waiting until no callback of `target` runs. False if that would never be: this thread runs
 * one, or one waits, perhaps by way of others, until no callback of this thread's owner runs. The
 * wait is the caller's until it ends. */
bool kinf__callback_begin_wait(struct kinf__callback_wait *wait, const void *target);
/* The same of a thread that runs a callback of `waiter`, which is no informer: a controller. */
bool kinf__callback_begin_wait_of(struct kinf__callback_wait *wait, const void *waiter,
                                  const void *target);
void kinf__callback_end_wait(struct kinf__callback_wait *wait);

/* From now on `whole` waits for `part`, which waits for nothing yet, until that wait ends. */
void kinf__callback_add_part(struct kinf__callback_wait *wait, const void *whole, const void *part);

#endif
