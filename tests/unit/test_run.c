/*
 * Waiting for the signal that ends a program.
 */
#include <kinformer/run.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/test.h"

static bool is_taken(int signo)
{
    struct sigaction action;

    sigaction(signo, NULL, &action);
    return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

/* Sends the signal once it is waited for. */
static void *send_main(void *ctx)
{
    const int *signo = ctx;

    while (!is_taken(SIGTERM))
        sched_yield();
    kill(getpid(), *signo);
    return NULL;
}

static void run_and_send(int signo)
{
    pthread_t sender;

    assert_int_equal(pthread_create(&sender, NULL, send_main, &signo), 0);
    assert_int_equal(kinf_run_until_signal(NULL), 0);
    pthread_join(sender, NULL);
}

static void either_signal_ends_the_wait(void **state)
{
    (void)state;
    run_and_send(SIGTERM);
    run_and_send(SIGINT);
}

static void dispositions_and_mask_are_given_back(void **state)
{
    sigset_t blocked, after;

    (void)state;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    run_and_send(SIGTERM);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    assert_int_equal(sigismember(&after, SIGTERM), 1);
    assert_int_equal(sigismember(&after, SIGINT), 0);
    pthread_sigmask(SIG_UNBLOCK, &blocked, NULL);
    assert_false(is_taken(SIGINT));
    assert_false(is_taken(SIGTERM));
}

static void what_is_ignored_stays_ignored(void **state)
{
    struct sigaction after;

    (void)state;
    signal(SIGINT, SIG_IGN);
    run_and_send(SIGTERM);
    sigaction(SIGINT, NULL, &after);
    assert_true(after.sa_handler == SIG_IGN);
    signal(SIGINT, SIG_DFL);
}

static void second_signal_ends_the_program(void **state)
{
    pid_t child = fork();
    int status;

    (void)state;
    if (child == 0) {
        run_and_send(SIGTERM);
        raise(SIGTERM);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(either_signal_ends_the_wait),
        cmocka_unit_test(dispositions_and_mask_are_given_back),
        cmocka_unit_test(what_is_ignored_stays_ignored),
        cmocka_unit_test(second_signal_ends_the_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
