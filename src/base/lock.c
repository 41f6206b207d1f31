/*
 * Ranked mutexes. Invariant (debug builds): the locks that a thread holds have rising ranks, and it
 * gives up none that it does not hold.
 */
#include "base/lock.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

#ifndef NDEBUG
static const char *const rank_names[] = {
#define X(rank, name, what) [rank] = name,
    KINF__LOCK_RANKS(X)
#undef X
};

static _Thread_local uint64_t held_ranks; /* one bit a rank */
static_assert(KINF__N_RANKS <= 64, "a bit for each rank");

static void note_locking(const struct kinf__mutex *mutex)
{
    uint64_t above = held_ranks >> mutex->rank;

    if (above != 0) {
        fprintf(stderr, "kinformer: lock order broken: %s taken while %s is held\n",
                rank_names[mutex->rank],
                rank_names[mutex->rank + (enum kinf__lock_rank)__builtin_ctzll(above)]);
        abort();
    }
    held_ranks |= UINT64_C(1) << mutex->rank;
}

/* What waits or is unlocked must be held: somebody forgot to lock. */
static void check_held(const struct kinf__mutex *mutex)
{
    if ((held_ranks >> mutex->rank & 1) == 0) {
        fprintf(stderr, "kinformer: %s given up while it is not held\n", rank_names[mutex->rank]);
        abort();
    }
}

static void note_unlocked(const struct kinf__mutex *mutex)
{
    check_held(mutex);
    held_ranks &= ~(UINT64_C(1) << mutex->rank);
}

bool kinf__mutex_none_held(void)
{
    return held_ranks == 0;
}
#else
static void note_locking(const struct kinf__mutex *mutex)
{
    (void)mutex;
}

static void check_held(const struct kinf__mutex *mutex)
{
    (void)mutex;
}

static void note_unlocked(const struct kinf__mutex *mutex)
{
    (void)mutex;
}

bool kinf__mutex_none_held(void)
{
    return true;
}
#endif

void kinf__mutex_init(struct kinf__mutex *mutex, enum kinf__lock_rank rank)
{
    pthread_mutex_init(&mutex->mutex, NULL);
    mutex->rank = rank;
}

void kinf__mutex_release(struct kinf__mutex *mutex)
{
    pthread_mutex_destroy(&mutex->mutex);
}

void kinf__mutex_lock(struct kinf__mutex *mutex) KINF__NO_TSA
{
    note_locking(mutex);
    pthread_mutex_lock(&mutex->mutex);
}

void kinf__mutex_unlock(struct kinf__mutex *mutex) KINF__NO_TSA
{
    note_unlocked(mutex);
    pthread_mutex_unlock(&mutex->mutex);
}

void kinf__cond_init(struct kinf__cond *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&cond->cond, &attr);
    pthread_condattr_destroy(&attr);
}

void kinf__cond_release(struct kinf__cond *cond)
{
    pthread_cond_destroy(&cond->cond);
}

void kinf__cond_signal(struct kinf__cond *cond)
{
    pthread_cond_signal(&cond->cond);
}

void kinf__cond_broadcast(struct kinf__cond *cond)
{
    pthread_cond_broadcast(&cond->cond);
}

static void add_ms(struct timespec *time, int64_t ms)
{
    time->tv_sec += ms / 1000;
    time->tv_nsec += ms % 1000 * 1000000;
    if (time->tv_nsec >= 1000000000) {
        time->tv_sec++;
        time->tv_nsec -= 1000000000;
    }
}

bool kinf__cond_wait_until(struct kinf__cond *cond, struct kinf__mutex *mutex, int64_t deadline_ms)
{
    struct timespec deadline;

    check_held(mutex);
    if (deadline_ms == KINF__NEVER_MS) {
        pthread_cond_wait(&cond->cond, &mutex->mutex);
        return true;
    }
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    add_ms(&deadline, kinf__clock_wait_ms(kinf__clock_left_ms(kinf__clock_now_ms(), deadline_ms)));
    pthread_cond_timedwait(&cond->cond, &mutex->mutex, &deadline);
    return kinf__clock_now_ms() < deadline_ms;
}
