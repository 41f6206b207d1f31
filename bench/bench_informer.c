/*
 * What an event and a relist cost behind the reflector: bench_informer [N_RUNS]. Updates of 2,000
 * pods of 15 kB are queued as fast as the informer takes them; it has one index, by node, and one
 * handler. Prints for both orders the best of some runs: wall and CPU time an event, how many events
 * a second that is, and what CPU time queue, store and index take when each runs alone, on one
 * thread. Lists are of small pods, most of them the stored objects, as the reflector hands them on;
 * for these, the median of the processor thread's CPU time.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "indexer/indexer.h"
#include "informer/informer.h"
#include "bench.h"

enum {
    n_pods = 2000,
    n_generations = 3,
    n_rounds = 30,
    n_events = n_pods * n_rounds,
    body_size = 15200,
    n_burst = 1000,
    n_relists_max = 100,
};

struct bench {
    const struct kinf_type *type;
    const struct kinf_object *pods[n_generations][n_pods];
    struct kinf_indexer *indexer; /* of the stage that is measured alone */
    enum kinf_fifo_order order;
    _Atomic(size_t) n_told;
    pthread_mutex_t mutex;
    pthread_cond_t all_told;
};

struct result {
    double wall_ns;
    double cpu_ns;
    double queue_ns;
    double store_ns;
    double indexed_ns; /* store and index */
};

static const struct kinf_index by_node = KINF_INDEX_BY_NODE_NAME;

static double now_ns(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* --- pods --- */

static size_t append_fields(char *text, size_t len, size_t end)
{
    for (size_t i = 0; len < end; i++)
        len += (size_t)sprintf(text + len, "%s\"f:field-%zu\":{\"f:name\":{},\"f:value\":\"%zu\"}",
                               i != 0 ? "," : "", i, i * 7919);
    return len;
}

/* Laid out as the server does: a third each in managed fields, spec and status. */
static const struct kinf_object *make_pod(struct bench *bench, size_t i, size_t generation)
{
    static char text[body_size + 1024];
    const struct kinf_object *object;
    size_t len = (size_t)sprintf(
        text,
        "{\"metadata\":{\"name\":\"some-deployment-%zu\",\"namespace\":\"load-%zu\",\"uid\":"
        "\"5e1c3a5e-0f1e-4a53-9c4e-%012zu\",\"resourceVersion\":\"%zu\",\"managedFields\":[{",
        i, i % 10, i, (generation + 1) * 100000 + i);

    len = append_fields(text, len, body_size / 3);
    len += (size_t)sprintf(text + len, "}]},\"spec\":{\"containers\":[{");
    len = append_fields(text, len, 2 * body_size / 3);
    len += (size_t)sprintf(text + len, "}],\"nodeName\":\"node-%03zu\"},\"status\":{", i % 50);
    len = append_fields(text, len, body_size);
    len += (size_t)sprintf(text + len, "}}");
    require(kinf_object_new_from_json(bench->type, text, len, &object, NULL));
    return object;
}

static void make_pods(struct bench *bench)
{
    for (size_t g = 0; g < n_generations; g++) {
        for (size_t i = 0; i < n_pods; i++)
            bench->pods[g][i] = make_pod(bench, i, g);
    }
}

/* Event `i`: each pod in turn, and each time another of its states. */
static const struct kinf_object *event(const struct bench *bench, size_t i)
{
    return bench->pods[(1 + i / n_pods) % n_generations][i % n_pods];
}

/* --- the whole --- */

static void on_change(const struct kinf_object *old, const struct kinf_object *object, void *ctx)
{
    struct bench *bench = ctx;

    if (old == NULL || object == NULL || atomic_fetch_add(&bench->n_told, 1) + 1 < n_events)
        return;
    pthread_mutex_lock(&bench->mutex);
    pthread_cond_signal(&bench->all_told);
    pthread_mutex_unlock(&bench->mutex);
}

static void wait_told(struct bench *bench)
{
    pthread_mutex_lock(&bench->mutex);
    while (atomic_load(&bench->n_told) < n_events)
        pthread_cond_wait(&bench->all_told, &bench->mutex);
    pthread_mutex_unlock(&bench->mutex);
}

static struct kinf_informer *make_informer(struct bench *bench)
{
    const struct kinf_informer_options options = {
        .size = sizeof options,
        .fifo_order = bench->order,
        .indices = &by_node,
        .n_indices = 1,
        .handler = { .on_change = on_change, .ctx = bench },
    };
    struct kinf_informer *informer;

    require(kinf__informer_new_for_type(NULL, bench->type, &options, &informer, NULL));
    require(kinf_informer_start(informer, NULL));
    require(kinf_deltafifo_replace(informer->fifo, bench->pods[0], n_pods, "1", NULL));
    require(kinf_informer_wait_for_rv(informer, "1", 60000, NULL));
    return informer;
}

static void measure_whole(struct bench *bench, struct result *result)
{
    struct kinf_informer *informer = make_informer(bench);
    double wall_ns, cpu_ns;

    atomic_store(&bench->n_told, 0);
    wall_ns = now_ns(CLOCK_MONOTONIC);
    cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (size_t i = 0; i < n_events; i++)
        require(kinf_deltafifo_update(informer->fifo, event(bench, i), NULL));
    wait_told(bench);
    result->wall_ns = (now_ns(CLOCK_MONOTONIC) - wall_ns) / n_events;
    result->cpu_ns = (now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns) / n_events;
    kinf_informer_free(informer);
}

/* --- stages alone, on one thread --- */

static int drop(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx)
{
    (void)deltas;
    (void)in_initial_list;
    (void)ctx;
    return 0;
}

static double measure_queue(struct bench *bench)
{
    struct kinf_deltafifo_options options = KINF_DELTAFIFO_OPTIONS_INIT;
    struct kinf_deltafifo *fifo;
    double start_ns;

    options.order = bench->order;
    require(kinf_deltafifo_new(&options, &fifo, NULL));
    start_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (size_t i = 0; i < n_events; i++) {
        require(kinf_deltafifo_update(fifo, event(bench, i), NULL));
        while ((i + 1) % n_burst == 0 && kinf_deltafifo_len(fifo) != 0)
            require(kinf_deltafifo_pop(fifo, drop, NULL, 0));
    }
    start_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - start_ns;
    kinf_deltafifo_free(fifo);
    return start_ns / n_events;
}

static void store(struct bench *bench, size_t at)
{
    struct kinf_store_change changes[n_burst];

    if (bench->order == KINF_FIFO_KEYED) {
        for (size_t i = 0; i < n_burst; i++)
            require(kinf_indexer_update(bench->indexer, event(bench, at + i), NULL, NULL));
        return;
    }
    for (size_t i = 0; i < n_burst; i++)
        changes[i] = (struct kinf_store_change){ .object = event(bench, at + i) };
    require(kinf_indexer_transaction(bench->indexer, changes, n_burst, NULL));
}

static double measure_store(struct bench *bench, size_t n_indices)
{
    double start_ns;

    require(kinf_indexer_new(&by_node, n_indices, &bench->indexer, NULL));
    require(kinf_indexer_replace(bench->indexer, bench->pods[0], n_pods, "1", NULL));
    start_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (size_t i = 0; i < n_events; i += n_burst)
        store(bench, i);
    start_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - start_ns;
    kinf_indexer_free(bench->indexer);
    return start_ns / n_events;
}

static struct result measure(struct bench *bench)
{
    struct result result;

    measure_whole(bench, &result);
    result.queue_ns = measure_queue(bench);
    result.store_ns = measure_store(bench, 0);
    result.indexed_ns = measure_store(bench, 1);
    return result;
}

/* --- results --- */

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

static struct result measure_best(struct bench *bench, enum kinf_fifo_order order, int n_runs)
{
    struct result best;

    bench->order = order;
    best = measure(bench);
    for (int i = 1; i < n_runs; i++) {
        const struct result result = measure(bench);

        best.wall_ns = lesser(best.wall_ns, result.wall_ns);
        best.cpu_ns = lesser(best.cpu_ns, result.cpu_ns);
        best.queue_ns = lesser(best.queue_ns, result.queue_ns);
        best.store_ns = lesser(best.store_ns, result.store_ns);
        best.indexed_ns = lesser(best.indexed_ns, result.indexed_ns);
    }
    printf("%-9s %5.2f us wall  %5.2f us CPU  %7.0f events/s  alone: queue %.2f  store %.2f  "
           "index %.2f us\n",
           kinf_fifo_order_to_string(order), best.wall_ns / 1e3, best.cpu_ns / 1e3,
           1e9 / best.wall_ns, best.queue_ns / 1e3, best.store_ns / 1e3,
           (best.indexed_ns - best.store_ns) / 1e3);
    return best;
}

/* --- relists --- */

/* In the order of the list. */
static const struct kinf_object *make_small_pod(const struct bench *bench, size_t i, int generation)
{
    const struct kinf_object *object;
    char text[300];
    int len = snprintf(text, sizeof text,
                       "{\"metadata\":{\"name\":\"deployment-%08zu-5d4f8c7b9-%05zx\",\"namespace\":"
                       "\"namespace-%03zu\",\"uid\":\"5e1c3a5e-0f1e-4a53-9c4e-%012zu\","
                       "\"resourceVersion\":\"%d%07zu\"},\"spec\":{\"nodeName\":\"node-%05zu\"}}",
                       i / 10, i, i / 5000, i, generation, i, i * 7919 % 10000);

    require(kinf_object_new_from_json(bench->type, text, (size_t)len, &object, NULL));
    return object;
}

static double relist(struct kinf_informer *informer, const struct kinf_object *const *pods,
                     size_t n)
{
    const struct kinf_delta delta = {
        .type = KINF_DELTA_REPLACED_ALL, .objects = pods, .n_objects = n, .resource_version = "1"
    };
    const struct kinf_deltas deltas = { NULL, &delta, 1 };
    double start_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);

    require(kinf__handle_deltas(&informer->target, &deltas, false, &informer->batch));
    kinf__batch_clear(&informer->batch);
    start_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
    while (kinf__indexer_reap(informer->indexer, n))
        continue;
    return start_ns;
}

static int compare_times(const void *a, const void *b)
{
    const double *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

/* Each relist is the one of two lists that the store does not have, or if `news` is false the other
 * one. */
static double median_relist(struct kinf_informer *informer, const struct kinf_object **lists[2],
                            size_t n, bool news, int n_runs)
{
    double times_ns[n_relists_max];

    for (int i = 0; i < n_runs; i++)
        times_ns[i] = relist(informer, lists[news && i % 2 == 0], n);
    qsort(times_ns, (size_t)n_runs, sizeof times_ns[0], compare_times);
    return times_ns[n_runs / 2];
}

/* A tenth of the pods has another state in the second list. */
static void make_lists(const struct bench *bench, size_t n, const struct kinf_object **lists[2])
{
    for (int k = 0; k < 2; k++) {
        lists[k] = malloc(n * sizeof lists[k][0]);
        require(lists[k] != NULL ? 0 : KINF_ERR_NO_MEMORY);
    }
    for (size_t i = 0; i < n; i++) {
        lists[0][i] = make_small_pod(bench, i, 1);
        lists[1][i] = i % 10 == 0 ? make_small_pod(bench, i, 2) : kinf_object_ref(lists[0][i]);
    }
}

/* This thread is the informer's processor thread. */
static void measure_relists(const struct bench *bench, size_t n, int n_runs)
{
    const struct kinf_informer_options options = { .size = sizeof options,
                                                   .indices = &by_node,
                                                   .n_indices = 1 };
    const struct kinf_object **lists[2];
    struct kinf_informer *informer;
    double first_ns, same_ns, news_ns;

    make_lists(bench, n, lists);
    require(kinf__informer_new_for_type(NULL, bench->type, &options, &informer, NULL));
    first_ns = relist(informer, lists[0], n);
    same_ns = median_relist(informer, lists, n, false, n_runs);
    news_ns = median_relist(informer, lists, n, true, n_runs);
    printf("list of %7zu  first %7.1f ms  again, no news %7.1f ms  a tenth changed %7.1f ms\n", n,
           first_ns / 1e6, same_ns / 1e6, news_ns / 1e6);
    kinf_informer_free(informer);
    for (size_t i = 0; i < 2 * n; i++)
        kinf_object_unref(lists[i / n][i % n]);
    free(lists[0]);
    free(lists[1]);
}

int main(int argc, char **argv)
{
    static const size_t list_sizes[] = { 10000, 150000, 1000000 };
    int n_runs = argc > 1 ? atoi(argv[1]) : 5;
    struct bench *bench = calloc(1, sizeof *bench);
    struct result keyed, in_order;

    if (bench == NULL || n_runs < 1 || n_runs > n_relists_max)
        return 1;
    require(kinf_type_intern("", "v1", "Pod", "pods", true, &bench->type, NULL));
    for (size_t i = 0; i < sizeof list_sizes / sizeof list_sizes[0]; i++)
        measure_relists(bench, list_sizes[i], n_runs);
    pthread_mutex_init(&bench->mutex, NULL);
    pthread_cond_init(&bench->all_told, NULL);
    make_pods(bench);
    keyed = measure_best(bench, KINF_FIFO_KEYED, n_runs);
    in_order = measure_best(bench, KINF_FIFO_IN_ORDER, n_runs);
    printf("in order against keyed: %.2f of the wall time, %.2f of the CPU\n",
           in_order.wall_ns / keyed.wall_ns, in_order.cpu_ns / keyed.cpu_ns);
    for (size_t i = 0; i < (size_t)n_generations * n_pods; i++)
        kinf_object_unref(bench->pods[i / n_pods][i % n_pods]);
    pthread_cond_destroy(&bench->all_told);
    pthread_mutex_destroy(&bench->mutex);
    free(bench);
    return 0;
}
