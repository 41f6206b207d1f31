/*
 * What the queue costs in both orders: bench_deltafifo [N_RUNS]. Prints the best of some runs:
 * nanoseconds for a delta to be added and popped, one by one and a thousand at a time, and
 * milliseconds for a Replace of 150,000 objects, to queue it and to pop it.
 */
#include <stdio.h>
#include <stdlib.h>

#include <kinformer/deltafifo.h>

#include "object/object.h"
#include "bench.h"

enum { n_objects = 150000, n_burst = 1000 };

struct bench {
    struct kinf_deltafifo *fifo;
    const struct kinf_object *objects[n_objects];
    size_t n_processed;
};

struct result {
    double one_ns;
    double burst_ns;
    double queue_ms;
    double pop_ms;
};

static void make_objects(struct bench *bench)
{
    static const struct kinf_type pods = { "", "v1", "Pod", "pods", true };

    for (size_t i = 0; i < n_objects; i++) {
        struct kinf__object_parts parts = { .type = &pods, .name_space = KINF_STR("default") };
        char name[32], rv[32];

        snprintf(name, sizeof name, "some-deployment-%zu", i);
        snprintf(rv, sizeof rv, "%zu", i + 1);
        parts.name = kinf_str_from(name);
        parts.uid = KINF_STR("5e1c3a5e-0f1e-4a53-9c4e-0d4f4f7c9a11");
        parts.resource_version = kinf_str_from(rv);
        parts.body = KINF_STR("{}");
        require(kinf__object_new(&parts, &bench->objects[i], NULL));
    }
}

static int process(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx)
{
    struct bench *bench = ctx;

    (void)in_initial_list;
    for (size_t i = 0; i < deltas->n_items; i++)
        bench->n_processed += deltas->items[i].object != NULL ? 1 : deltas->items[i].n_objects;
    return 0;
}

static void pop_all(struct bench *bench, size_t n_expected)
{
    bench->n_processed = 0;
    while (bench->n_processed < n_expected)
        require(kinf_deltafifo_pop(bench->fifo, process, bench, 0));
}

/* Nanoseconds a delta, with `n_pending` added before they are popped. */
static double measure_updates(struct bench *bench, size_t n_pending)
{
    double start = time_ns();

    for (size_t i = 0; i < n_objects; i += n_pending) {
        for (size_t k = 0; k < n_pending; k++)
            require(kinf_deltafifo_update(bench->fifo, bench->objects[i + k], NULL));
        pop_all(bench, n_pending);
    }
    return (time_ns() - start) / n_objects;
}

static struct result measure(struct bench *bench, enum kinf_fifo_order order)
{
    struct kinf_deltafifo_options options = KINF_DELTAFIFO_OPTIONS_INIT;
    struct result result;
    double start, queued;

    options.order = order;
    require(kinf_deltafifo_new(&options, &bench->fifo, NULL));
    result.one_ns = measure_updates(bench, 1);
    result.burst_ns = measure_updates(bench, n_burst);
    start = time_ns();
    require(kinf_deltafifo_replace(bench->fifo, bench->objects, n_objects, "150001", NULL));
    queued = time_ns();
    pop_all(bench, n_objects);
    result.pop_ms = (time_ns() - queued) / 1e6;
    result.queue_ms = (queued - start) / 1e6;
    kinf_deltafifo_free(bench->fifo);
    return result;
}

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

static void measure_best(struct bench *bench, enum kinf_fifo_order order, int n_runs)
{
    struct result best = measure(bench, order);

    for (int i = 1; i < n_runs; i++) {
        const struct result result = measure(bench, order);

        best.one_ns = lesser(best.one_ns, result.one_ns);
        best.burst_ns = lesser(best.burst_ns, result.burst_ns);
        best.queue_ms = lesser(best.queue_ms, result.queue_ms);
        best.pop_ms = lesser(best.pop_ms, result.pop_ms);
    }
    printf("%-9s %7.0f ns add+pop  %7.0f ns in bursts  Replace of %d: %7.2f ms + %7.2f ms\n",
           kinf_fifo_order_to_string(order), best.one_ns, best.burst_ns, (int)n_objects,
           best.queue_ms, best.pop_ms);
}

int main(int argc, char **argv)
{
    int n_runs = argc > 1 ? atoi(argv[1]) : 5;
    struct bench *bench = calloc(1, sizeof *bench);

    if (bench == NULL)
        return 1;
    make_objects(bench);
    measure_best(bench, KINF_FIFO_KEYED, n_runs);
    measure_best(bench, KINF_FIFO_IN_ORDER, n_runs);
    for (size_t i = 0; i < n_objects; i++)
        kinf_object_unref(bench->objects[i]);
    free(bench);
    return 0;
}
