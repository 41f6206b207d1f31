/*
 * What a handler's queue costs: bench_listener [N_RUNS]. For both backlogs prints the best of some
 * runs: nanoseconds from a change to its callback, for a handler that keeps up and for one that
 * begins when everything waits; then what waits for it, in bytes, beside the objects.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "informer/batch.h"
#include "informer/handlers.h"
#include "object/object.h"
#include "bench.h"

enum { n_keys = 10000, n_states = 15, n_changes = n_keys * n_states };

struct bench {
    const struct kinf_object *objects[n_states][n_keys];
    struct kinf_indexer *indexer;
    struct kinf__processor processor;
    struct kinf__processor *processors[1];
    struct kinf__handlers handlers;
    pthread_mutex_t gate;
    atomic_size_t n_told;
    atomic_bool is_synced;
};

struct result {
    double fast_ns;    /* push and callback, side by side */
    double push_ns;    /* while the handler waits */
    double deliver_ms; /* of what waited then */
    double bytes;      /* a waiting notification */
    size_t n_waiting;
};

static void make_objects(struct bench *bench)
{
    static const struct kinf_type pods = { "", "v1", "Pod", "pods", true };

    for (size_t i = 0; i < n_changes; i++) {
        struct kinf__object_parts parts = { .type = &pods, .name_space = KINF_STR("default") };
        char name[32], rv[32];

        snprintf(name, sizeof name, "some-deployment-%zu", i % n_keys);
        snprintf(rv, sizeof rv, "%zu", i + 1);
        parts.name = kinf_str_from(name);
        parts.uid = KINF_STR("5e1c3a5e-0f1e-4a53-9c4e-0d4f4f7c9a11");
        parts.resource_version = kinf_str_from(rv);
        parts.body = KINF_STR("{}");
        require(kinf__object_new(&parts, &bench->objects[i / n_keys][i % n_keys], NULL));
    }
}

/* --- the handler --- */

static void on_change(const struct kinf_object *old, const struct kinf_object *object, void *ctx)
{
    struct bench *bench = ctx;

    (void)old;
    (void)object;
    atomic_fetch_add_explicit(&bench->n_told, 1, memory_order_relaxed);
}

/* Waits here until everything is queued, if the gate is shut. */
static void on_synced(void *ctx)
{
    struct bench *bench = ctx;

    pthread_mutex_lock(&bench->gate);
    pthread_mutex_unlock(&bench->gate);
    atomic_store(&bench->is_synced, true);
}

static kinf_handler_id join(struct bench *bench, enum kinf_backlog backlog)
{
    const struct kinf_handler handler = {
        .on_change = on_change, .on_synced = on_synced, .ctx = bench, .backlog = backlog
    };
    kinf_handler_id id;

    atomic_store(&bench->n_told, 0);
    atomic_store(&bench->is_synced, false);
    require(kinf_indexer_new(NULL, 0, &bench->indexer, NULL));
    kinf__processor_init(&bench->processor, bench->indexer);
    bench->processors[0] = &bench->processor;
    kinf__handlers_init(&bench->handlers, bench, bench->processors, 1);
    require(kinf__handlers_start(&bench->handlers, NULL));
    require(kinf__handlers_add(&bench->handlers, &handler, 0, &id, NULL));
    kinf__processor_set_synced(&bench->processor);
    return id;
}

static struct kinf_handler_status status_of(struct bench *bench, kinf_handler_id id)
{
    struct kinf_handler_status status = { .n_waiting = 0 };

    (void)kinf__handlers_status(&bench->handlers, id, 0, &status);
    return status;
}

static void wait_told(struct bench *bench, kinf_handler_id id)
{
    const struct timespec pause = { .tv_nsec = 100000 };

    while (!atomic_load(&bench->is_synced) || status_of(bench, id).n_waiting != 0)
        nanosleep(&pause, NULL);
}

static void leave(struct bench *bench)
{
    kinf__handlers_release(&bench->handlers);
    kinf__processor_release(&bench->processor);
    kinf_indexer_free(bench->indexer);
}

/* --- measuring --- */

/* Distribution alone: nothing is stored. */
static void change_all(struct bench *bench)
{
    for (size_t state = 0; state < n_states; state++) {
        for (size_t key = 0; key < n_keys; key++) {
            const struct kinf_object *object = bench->objects[state][key];
            struct kinf__notification notification = {
                .type = state == 0 ? KINF__NOTIFY_ADD : KINF__NOTIFY_UPDATE,
                .old = state == 0 ? NULL : bench->objects[state - 1][key],
                .object = object,
            };

            const struct kinf__batch batch = { .notifications = { &notification, 1 },
                                               .n_notifications = 1 };

            require(kinf__processor_begin(&bench->processor, &batch));
            require(kinf__processor_distribute(&bench->processor, &batch, NULL));
            if (key % 64 == 63)
                kinf__processor_wake(&bench->processor);
        }
    }
    kinf__processor_wake(&bench->processor);
}

static void measure_fast(struct bench *bench, enum kinf_backlog backlog, struct result *result)
{
    kinf_handler_id id = join(bench, backlog);
    double start = time_ns();

    change_all(bench);
    wait_told(bench, id);
    result->fast_ns = (time_ns() - start) / n_changes;
    leave(bench);
}

static void measure_slow(struct bench *bench, enum kinf_backlog backlog, struct result *result)
{
    size_t bytes_before;
    kinf_handler_id id;
    double start;

    pthread_mutex_lock(&bench->gate);
    id = join(bench, backlog);
    bytes_before = mallinfo2().uordblks;
    start = time_ns();
    change_all(bench);
    result->push_ns = (time_ns() - start) / n_changes;
    result->n_waiting = status_of(bench, id).n_waiting;
    result->bytes = (double)(mallinfo2().uordblks - bytes_before) / (double)result->n_waiting;
    start = time_ns();
    pthread_mutex_unlock(&bench->gate);
    wait_told(bench, id);
    result->deliver_ms = (time_ns() - start) / 1e6;
    leave(bench);
}

static struct result measure(struct bench *bench, enum kinf_backlog backlog)
{
    struct result result;

    measure_fast(bench, backlog, &result);
    measure_slow(bench, backlog, &result);
    return result;
}

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

static void measure_best(struct bench *bench, const char *name, enum kinf_backlog backlog,
                         int n_runs)
{
    struct result best = measure(bench, backlog);

    for (int i = 1; i < n_runs; i++) {
        const struct result result = measure(bench, backlog);

        best.fast_ns = lesser(best.fast_ns, result.fast_ns);
        best.push_ns = lesser(best.push_ns, result.push_ns);
        best.deliver_ms = lesser(best.deliver_ms, result.deliver_ms);
        best.bytes = lesser(best.bytes, result.bytes);
    }
    printf("%-9s keeping up: %4.0f ns a change to its callback   lagging: %4.0f ns a change, "
           "%zu wait, %.0f bytes each, %.1f ms to tell them\n",
           name, best.fast_ns, best.push_ns, best.n_waiting, best.bytes, best.deliver_ms);
}

int main(int argc, char **argv)
{
    int n_runs = argc > 1 ? atoi(argv[1]) : 5;
    struct bench *bench = calloc(1, sizeof *bench);

    if (bench == NULL)
        return 1;
    pthread_mutex_init(&bench->gate, NULL);
    make_objects(bench);
    printf("%d changes of %d keys\n", (int)n_changes, (int)n_keys);
    measure_best(bench, "unbounded", KINF_BACKLOG_UNBOUNDED, n_runs);
    measure_best(bench, "coalesce", KINF_BACKLOG_COALESCE, n_runs);
    for (size_t i = 0; i < n_changes; i++)
        kinf_object_unref(bench->objects[i / n_keys][i % n_keys]);
    pthread_mutex_destroy(&bench->gate);
    free(bench);
    return 0;
}
