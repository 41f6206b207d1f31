/*
 * Starting threads and waking them.
 */
#include "base/thread.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

#define THREAD_NAME_SIZE 16 /* the kernel's, with the NUL */

static _Atomic(size_t) stack_bytes;

static int create(pthread_t *ret_thread, size_t stack, void *(*main)(void *), void *ctx)
{
    pthread_attr_t attributes;
    int failed = pthread_attr_init(&attributes);

    if (failed != 0)
        return failed;
    if (stack != 0)
        failed = pthread_attr_setstacksize(&attributes, stack);
    if (failed == 0)
        failed = pthread_create(ret_thread, &attributes, main, ctx);
    pthread_attr_destroy(&attributes);
    return failed;
}

static int start(pthread_t *ret_thread, const char *name, size_t stack, void *(*main)(void *),
                 void *ctx, struct kinf_error *err)
{
    char short_name[THREAD_NAME_SIZE];
    sigset_t all, before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = create(ret_thread, stack, main, ctx);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, failed, "cannot start thread %s", name);
    snprintf(short_name, sizeof short_name, "%s", name);
    pthread_setname_np(*ret_thread, short_name);
    return 0;
}

int kinf__thread_start(pthread_t *ret_thread, const char *name, void *(*main)(void *), void *ctx,
                       struct kinf_error *err)
{
    return start(ret_thread, name, kinf__thread_stack(), main, ctx, err);
}

int kinf__thread_start_for_others(pthread_t *ret_thread, const char *name, void *(*main)(void *),
                                  void *ctx, struct kinf_error *err)
{
    return start(ret_thread, name, 0, main, ctx, err);
}

void kinf__thread_set_stack(size_t bytes)
{
    atomic_store(&stack_bytes, bytes);
}

size_t kinf__thread_stack(void)
{
    return atomic_load(&stack_bytes);
}

int kinf__waker_init(struct kinf__waker *waker, struct kinf_error *err)
{
    waker->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (waker->fd < 0)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno,
                                     "cannot make an event descriptor");
    return 0;
}

void kinf__waker_release(struct kinf__waker *waker)
{
    if (waker->fd >= 0)
        close(waker->fd);
    waker->fd = -1;
}

void kinf__waker_set(struct kinf__waker *waker)
{
    int saved = errno;

    (void)!eventfd_write(waker->fd, 1);
    errno = saved;
}

void kinf__waker_clear(struct kinf__waker *waker)
{
    eventfd_t value;

    (void)!eventfd_read(waker->fd, &value);
}

bool kinf__waker_is_set(const struct kinf__waker *waker)
{
    return kinf__waker_wait(waker, 0);
}

bool kinf__waker_wait(const struct kinf__waker *waker, int64_t delay_ms)
{
    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), delay_ms);
    struct pollfd fd = { waker->fd, POLLIN, 0 };

    for (;;) {
        int64_t wait_ms = kinf__clock_wait_ms(delay_ms);
        int timeout_ms = wait_ms > INT_MAX ? INT_MAX : (int)wait_ms;

        if (poll(&fd, 1, timeout_ms) > 0)
            return true;
        delay_ms = deadline_ms - kinf__clock_now_ms();
        if (delay_ms <= 0)
            return false;
    }
}
