/*
 * Threads with a name, and an event descriptor that wakes a thread which waits in poll().
 *
 * Threads: any thread, unless a line says otherwise.
 */
#ifndef KINF_BASE_THREAD_H
#define KINF_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <kinformer/error.h>

/* Starts a thread with every signal blocked (the program's own threads take signals) and `name`,
 * cut to 15 bytes, shown by the system's tools. The caller joins it. Errors: KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__thread_start(pthread_t *ret_thread, const char *name,
                                       void *(*main)(void *), void *ctx, struct kinf_error *err);

/* The size of the stacks from now on, for a program that knows all that runs on its threads; 0, as it
 * is at first, the system's (8 MiB), whatever the callbacks do. */
void kinf__thread_set_stack(size_t bytes);
size_t kinf__thread_stack(void);

/* The same with the system's stack whatever was set: for others' code. */
KINF_MUST_CHECK int kinf__thread_start_for_others(pthread_t *ret_thread, const char *name,
                                                  void *(*main)(void *), void *ctx,
                                                  struct kinf_error *err);

/* A wake-up that is not lost: once set, its descriptor stays readable until it is cleared. */
struct kinf__waker {
    int fd;
};

KINF_MUST_CHECK int kinf__waker_init(struct kinf__waker *waker, struct kinf_error *err);
void kinf__waker_release(struct kinf__waker *waker);
void kinf__waker_set(struct kinf__waker *waker); /* also from a signal handler */
void kinf__waker_clear(struct kinf__waker *waker);
bool kinf__waker_is_set(const struct kinf__waker *waker);

/* Waits until the waker is set (true) or `delay_ms` have passed (false). Does not clear it. */
bool kinf__waker_wait(const struct kinf__waker *waker, int64_t delay_ms);

#endif
