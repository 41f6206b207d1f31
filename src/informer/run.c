/*
 * Waiting for the signal that ends a program. Handlers and not sigwait(): other threads of the
 * program need not block the signals for it.
 */
#include <kinformer/run.h>

#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/thread.h"

static const int signals[] = { SIGINT, SIGTERM };
#define N_SIGNALS KINF__ARRAY_LEN(signals)

static struct kinf__waker signalled;

static void on_signal(int signo)
{
    (void)signo;
    kinf__waker_set(&signalled);
}

/* What the program ignores stays ignored, as nohup and shells want it. */
static int take_signal(int signo, struct sigaction *ret_before, struct kinf_error *err)
{
    /* SA_RESETHAND: a second one ends the program even if this thread is slow to return. */
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART | SA_RESETHAND };

    sigemptyset(&action.sa_mask);
    if (sigaction(signo, NULL, ret_before) < 0 ||
        (ret_before->sa_handler != SIG_IGN && sigaction(signo, &action, NULL) < 0))
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "cannot take signal %d", signo);
    return 0;
}

/* Takes them all, waits, and gives back what was taken. */
static int wait_for_signal(struct kinf_error *err)
{
    struct sigaction before[N_SIGNALS];
    size_t n_taken = 0;
    int rc = 0;

    while (n_taken < N_SIGNALS && rc == 0) {
        rc = take_signal(signals[n_taken], &before[n_taken], err);
        n_taken += rc == 0;
    }
    if (rc == 0)
        (void)kinf__waker_wait(&signalled, KINF__NEVER_MS);
    while (n_taken-- > 0)
        sigaction(signals[n_taken], &before[n_taken], NULL);
    return rc;
}

int kinf_run_until_signal(struct kinf_error *err)
{
    sigset_t wanted, before;
    int rc = kinf__waker_init(&signalled, err);

    if (rc < 0)
        return rc; /* untested: the kernel refuses */
    sigemptyset(&wanted);
    for (size_t i = 0; i < N_SIGNALS; i++)
        sigaddset(&wanted, signals[i]);
    pthread_sigmask(SIG_UNBLOCK, &wanted, &before);
    rc = wait_for_signal(err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    kinf__waker_release(&signalled);
    return rc;
}
