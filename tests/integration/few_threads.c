/* For LD_PRELOAD: while the file $THREADS_FILE is there, no more threads can be started than it says, each
 * time that it says another number; the first that cannot is refused a second later. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int n_started, limit_before;

static int read_limit(void)
{
    FILE *file = fopen(getenv("THREADS_FILE"), "r");
    int limit = -1;

    if (file == NULL)
        return -1;
    (void)!fscanf(file, "%d", &limit);
    fclose(file);
    return limit;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *ctx)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(
            RTLD_NEXT, "pthread_create");
    int limit = read_limit();

    if (atomic_exchange(&limit_before, limit) != limit)
        atomic_store(&n_started, 0);
    if (limit < 0 || atomic_fetch_add(&n_started, 1) < limit)
        return real(thread, attr, main, ctx);
    sleep(1);
    return EAGAIN;
}
