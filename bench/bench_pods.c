/*
 * A client of bench/ (bench/README.md has what all of them do) on the library:
 *
 *     bench_pods FLAVOUR INITIAL KUBECONFIG N_EVENTS TIMES
 *
 * FLAVOUR is whole (every byte is kept), compressed (likewise), agent (what a node agent keeps) or
 * metadata (the server is asked for no more). INITIAL is default, gzip (a list that the server has
 * compressed) or watchlist.
 */
#include <kinformer/kinformer.h>

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "store_work.h"

#define RV_SIZE    24
#define PHASE_SIZE 64

struct arrival {
    char rv[RV_SIZE];
    int64_t ns;
};

struct bench {
    struct kinf_informer *pods;
    size_t n_events;
    const char *times; /* where arrivals are written */
    /* the handler's */
    size_t n_seen;
    struct arrival *arrivals;
    /* atomic: the handler writes, the main thread reads */
    _Atomic(uint64_t) n_told, sum;
};

static const char *const agent_fields[] = { "spec.nodeName", "status.phase", "status.podIP",
                                            "spec.containers[*].name" };

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Prints what was used so far; the store is counted behind it, and not from the handler. */
static void mark(struct bench *bench, const char *name, bool counts)
{
    int64_t at_ns = now_ns();
    struct kinf_informer_status status = { 0 };
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    if (counts)
        kinf_informer_status(bench->pods, &status);
    printf("%s at_ns=%" PRId64 " cpu_us=%lld told=%" PRIu64 " sum=%016" PRIx64 " objects=%zu\n",
           name, at_ns,
           (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000LL + usage.ru_utime.tv_usec +
               usage.ru_stime.tv_usec,
           atomic_load(&bench->n_told), atomic_load(&bench->sum), status.n_objects);
    fflush(stdout);
}

/* --- the handler --- */

static uint64_t hash_more(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3U;
    return (hash ^ '\n') * 0x100000001b3U;
}

static void add(struct bench *bench, const struct kinf_object *pod)
{
    char phase[PHASE_SIZE] = "";
    uint64_t hash = hash_more(0xcbf29ce484222325U, kinf_object_name(pod));

    /* Metadata has none. */
    if (kinf_object_get_string(pod, "status.phase", phase, sizeof phase) < 0)
        phase[0] = '\0';
    hash = hash_more(hash, kinf_object_uid(pod));
    hash = hash_more(hash, kinf_object_resource_version(pod));
    hash = hash_more(hash, phase);
    atomic_fetch_add(&bench->sum, hash);
    atomic_fetch_add(&bench->n_told, 1);
}

static void write_arrivals(const struct bench *bench)
{
    FILE *file = fopen(bench->times, "we");

    for (size_t i = 0; file != NULL && i < bench->n_events; i++)
        fprintf(file, "%s %" PRId64 "\n", bench->arrivals[i].rv, bench->arrivals[i].ns);
    if (file == NULL || fclose(file) != 0) {
        perror(bench->times);
        exit(1);
    }
    puts("written");
    fflush(stdout);
}

static void take_event(struct bench *bench, const struct kinf_object *pod)
{
    struct arrival *arrival = &bench->arrivals[bench->n_seen];

    if (bench->n_seen == bench->n_events)
        return;
    snprintf(arrival->rv, sizeof arrival->rv, "%s", kinf_object_resource_version(pod));
    arrival->ns = now_ns();
    bench->n_seen++;
    if (bench->n_seen == bench->n_events / 10)
        mark(bench, "warm", false);
    if (bench->n_seen != bench->n_events)
        return;
    mark(bench, "done", false);
    write_arrivals(bench);
}

static void on_change(const struct kinf_object *old, const struct kinf_object *pod, void *ctx)
{
    if (pod == NULL)
        return;
    add(ctx, pod);
    if (old != NULL)
        take_event(ctx, pod);
}

static void on_synced(void *ctx)
{
    mark(ctx, "synced", true);
}

/* --- */

static int start(struct bench *bench, struct kinf_client *client, const char *flavour,
                 const char *initial, struct kinf_error *err)
{
    const struct kinf_index by_namespace = { "namespace", "metadata.namespace", NULL, NULL };
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;

    options.resource = "pods";
    options.indices = &by_namespace;
    options.n_indices = 1;
    options.handler.on_change = on_change;
    options.handler.on_synced = on_synced;
    options.handler.ctx = bench;
    options.metadata_only = strcmp(flavour, "metadata") == 0;
    options.compressed = strcmp(flavour, "compressed") == 0;
    options.accept_gzip = strcmp(initial, "gzip") == 0;
    if (strcmp(initial, "watchlist") == 0)
        options.initial = KINF_INITIAL_WATCHLIST;
    if (strcmp(flavour, "agent") == 0) {
        options.keeps = agent_fields;
        options.n_keeps = sizeof agent_fields / sizeof agent_fields[0];
    }
    if (kinf_informer_new(client, &options, &bench->pods, err) < 0)
        return -1;
    return kinf_informer_start(bench->pods, err);
}

int main(int argc, char **argv)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_client_options options = KINF_CLIENT_OPTIONS_INIT;
    kinf_auto_client struct kinf_client *client = NULL;
    struct bench bench = { 0 };
    char line[64];

    if (argc != 6) {
        fprintf(stderr, "usage: bench_pods FLAVOUR INITIAL KUBECONFIG N_EVENTS TIMES\n");
        return 2;
    }
    options.kubeconfig = argv[3];
    bench.n_events = strtoul(argv[4], NULL, 10);
    bench.times = argv[5];
    bench.arrivals = calloc(bench.n_events + 1, sizeof *bench.arrivals);
    if (bench.arrivals == NULL || kinf_client_new(&options, &client, &err) < 0 ||
        start(&bench, client, argv[1], argv[2], &err) < 0) {
        fprintf(stderr, "bench_pods: %s\n", err.message);
        return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (!store_work(bench.pods, line))
            mark(&bench, "mark", true);
    }
    kinf_informer_free(bench.pods);
    free(bench.arrivals);
    return 0;
}
