/*
 * Of the kernel's /proc/self. The names are
 * https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics
 */
#include "serve/process_metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/metrics.h"

#define NS_PER_S 1000000000ull

struct process {
    uint64_t started_ticks; /* since the machine started */
    uint64_t virtual_bytes;
    uint64_t resident_bytes;
};

/* The name of the program may hold anything but a bracket that comes later. */
static void read_stat(struct process *ret_process)
{
    FILE *file = fopen("/proc/self/stat", "re");
    unsigned long long started = 0, bytes = 0, n_pages = 0;
    char line[1024] = "";
    const char *rest;

    *ret_process = (struct process){ 0 };
    if (file == NULL)
        return;
    rest = fgets(line, sizeof line, file) != NULL ? strrchr(line, ')') : NULL;
    fclose(file);
    if (rest == NULL ||
        sscanf(rest,
               ") %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
               "%llu %llu %llu",
               &started, &bytes, &n_pages) != 3)
        return; /* untested: the kernel writes them */
    *ret_process = (struct process){ started, bytes, n_pages * (uint64_t)sysconf(_SC_PAGESIZE) };
}

uint64_t kinf__process_resident_bytes(void)
{
    struct process process;

    read_stat(&process);
    return process.resident_bytes;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now = { .tv_sec = 0 };

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Of the wall clock. */
static uint64_t start_ms(const struct process *process)
{
    uint64_t boot_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);

    if (process->started_ticks == 0)
        return 0;
    return boot_ns / 1000000 + process->started_ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

static uint64_t count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    uint64_t n = 0;

    if (folder == NULL)
        return 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        n += entry->d_name[0] != '.';
    closedir(folder);
    return n > 0 ? n - 1 : 0; /* the folder's own */
}

static uint64_t max_descriptors(void)
{
    struct rlimit limit = { .rlim_cur = 0 };

    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
}

/* X(name, type, decimals, help, value) of `process` */
#define PROCESS_METRICS(X)                                                                         \
    X("process_cpu_seconds_total", COUNTER, 9, "Time on processors, of the user and the system.",  \
      clock_ns(CLOCK_PROCESS_CPUTIME_ID))                                                          \
    X("process_start_time_seconds", GAUGE, 3,                                                      \
      "When the process started, in seconds of Unix time.", start_ms(&process))                    \
    X("process_open_fds", GAUGE, 0, "Open file descriptors.", count_descriptors())                 \
    X("process_max_fds", GAUGE, 0, "File descriptors that may be open.", max_descriptors())        \
    X("process_virtual_memory_bytes", GAUGE, 0, "Virtual memory in bytes.", process.virtual_bytes) \
    X("process_resident_memory_bytes", GAUGE, 0, "Resident memory in bytes.",                      \
      process.resident_bytes)

int kinf__process_metrics_write(struct kinf__buffer *out)
{
    static const struct kinf__metric families[] = { PROCESS_METRICS(KINF__METRIC_ROW) };
    struct process process;

    read_stat(&process);

    const uint64_t values[] = { PROCESS_METRICS(KINF__METRIC_VALUE) };

    return kinf__metrics_numbers(out, families, values, KINF__ARRAY_LEN(families), NULL);
}
