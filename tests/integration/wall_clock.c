/*
 * A wall clock that a test sets, for LD_PRELOAD: what WALL_CLOCK_FILE holds, eight bytes, are the
 * seconds by which it is off.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static const volatile int64_t *offset_s;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("WALL_CLOCK_FILE");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map = fd >= 0 ? mmap(NULL, sizeof *offset_s, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (map == MAP_FAILED)
        abort();
    offset_s = map;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    int rc;

    if (real == NULL)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    rc = real(clock, now);
    if (clock == CLOCK_REALTIME && offset_s != NULL)
        now->tv_sec += *offset_s;
    return rc;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec precise;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &precise);
    *now = (struct timeval){ precise.tv_sec, precise.tv_nsec / 1000 };
    return 0;
}

time_t time(time_t *ret_now)
{
    struct timespec precise;

    clock_gettime(CLOCK_REALTIME, &precise);
    if (ret_now != NULL)
        *ret_now = precise.tv_sec;
    return precise.tv_sec;
}
