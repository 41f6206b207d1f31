/*
 * What a watch event costs, from the socket to a handler: bench_events KUBECONFIG N_EVENTS. The
 * server has to send that many MODIFIED events of pods and be silent then (events.sh); the first
 * tenth is not counted. CPU is that of the whole process.
 */
#include <kinformer/kinformer.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { limit_s = 120 };

struct reading {
    double cpu_us;
    double wall_us;
};

struct bench {
    size_t n_first; /* events before the count starts */
    size_t n_events;
    size_t n_seen; /* the rest is the handler's thread's until `is_done` */
    struct reading start, end;
    atomic_bool is_done;
};

static struct reading read_clocks(void)
{
    struct rusage usage;
    struct timespec now;

    getrusage(RUSAGE_SELF, &usage);
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (struct reading){
        .cpu_us = 1e6 * (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                  (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec),
        .wall_us = 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec,
    };
}

static void count_update(const struct kinf_object *old, const struct kinf_object *object, void *ctx)
{
    struct bench *bench = ctx;

    (void)old;
    (void)object;
    bench->n_seen++;
    if (bench->n_seen == bench->n_first)
        bench->start = read_clocks();
    if (bench->n_seen != bench->n_events)
        return;
    bench->end = read_clocks();
    atomic_store(&bench->is_done, true);
}

static int run(struct kinf_client *client, struct bench *bench, struct kinf_error *err)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    kinf_auto_informer struct kinf_informer *pods = NULL;
    int rc;

    options.resource = "pods";
    options.handler = (struct kinf_handler){ .on_update = count_update, .ctx = bench };
    rc = kinf_informer_new(client, &options, &pods, err);
    if (rc == 0)
        rc = kinf_informer_start(pods, err);
    for (int i = 0; rc == 0 && i < limit_s * 10 && !atomic_load(&bench->is_done); i++)
        usleep(100000);
    return rc;
}

int main(int argc, char **argv)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_client_options options = KINF_CLIENT_OPTIONS_INIT;
    kinf_auto_client struct kinf_client *client = NULL;
    struct bench bench = { 0 };
    double n_counted;

    bench.n_events = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    bench.n_first = bench.n_events / 10;
    if (bench.n_first == 0) {
        fprintf(stderr, "usage: bench_events KUBECONFIG N_EVENTS\n");
        return 2;
    }
    options.kubeconfig = argv[1];
    if (kinf_client_new(&options, &client, &err) < 0 || run(client, &bench, &err) < 0) {
        fprintf(stderr, "bench_events: %s\n", err.message);
        return 1;
    }
    if (!atomic_load(&bench.is_done)) {
        fprintf(stderr, "bench_events: not all events came within %d s\n", limit_s);
        return 1;
    }
    n_counted = (double)(bench.n_events - bench.n_first);
    printf("cpu_us_per_event=%.1f events_per_second=%.0f\n",
           (bench.end.cpu_us - bench.start.cpu_us) / n_counted,
           n_counted / (bench.end.wall_us - bench.start.wall_us) * 1e6);
    return 0;
}
