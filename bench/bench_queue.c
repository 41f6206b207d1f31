/*
 * What the queue of keys costs: bench_queue [N_RUNS]. Prints the best of some runs: adds a second of
 * keys of a controller's size ("some-namespace/some-deployment-123456") by 1, 2 and 4 threads, of
 * keys that are new, of keys that wait already, and for later; keys that one thread gets and gives
 * back; the whole way with as many workers as producers; and the memory of a key that waits.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <kinformer/queue.h>

#include "bench.h"

enum { n_keys = 400000, n_threads_most = 4 };

static char keys[n_keys][48];

struct part {
    struct kinf_queue *queue;
    pthread_t thread;
    size_t first, end; /* of keys */
};

static void *add_part(void *ctx)
{
    const struct part *part = ctx;

    for (size_t i = part->first; i < part->end; i++)
        require(kinf_queue_add(part->queue, keys[i], NULL));
    return NULL;
}

/* At times that are not in order. */
static void *add_part_later(void *ctx)
{
    const struct part *part = ctx;

    for (size_t i = part->first; i < part->end; i++)
        require(kinf_queue_add_after(part->queue, keys[i], 3600000 + (int64_t)(i * 7919 % n_keys),
                                     NULL));
    return NULL;
}

static void *work(void *ctx)
{
    const struct part *part = ctx;
    const char *key;

    while (kinf_queue_get(part->queue, KINF_FOREVER, &key, NULL) == 0)
        kinf_queue_done(part->queue, key);
    return NULL;
}

static void start(struct part *parts, int n_threads, void *(*run)(void *), struct kinf_queue *queue)
{
    for (int i = 0; i < n_threads; i++) {
        parts[i].queue = queue;
        parts[i].first = (size_t)n_keys * (size_t)i / (size_t)n_threads;
        parts[i].end = (size_t)n_keys * (size_t)(i + 1) / (size_t)n_threads;
        require(pthread_create(&parts[i].thread, NULL, run, &parts[i]));
    }
}

static void join(const struct part *parts, int n_threads)
{
    for (int i = 0; i < n_threads; i++)
        require(pthread_join(parts[i].thread, NULL));
}

static struct kinf_queue *open_queue(void)
{
    struct kinf_queue *queue;

    require(kinf_queue_new(NULL, &queue, NULL));
    return queue;
}

/* Each below returns keys a second. */

static double add_all(struct kinf_queue *queue, void *(*add)(void *), int n_threads)
{
    struct part parts[n_threads_most];
    double begun_ns = time_ns();

    start(parts, n_threads, add, queue);
    join(parts, n_threads);
    return n_keys * 1e9 / (time_ns() - begun_ns);
}

static double take_all(struct kinf_queue *queue)
{
    double begun_ns = time_ns();
    const char *key;

    for (size_t i = 0; i < n_keys; i++) {
        require(kinf_queue_get(queue, 0, &key, NULL));
        kinf_queue_done(queue, key);
    }
    return n_keys * 1e9 / (time_ns() - begun_ns);
}

static double pass_all(int n_threads)
{
    struct part producers[n_threads_most], workers[n_threads_most];
    struct kinf_queue *queue = open_queue();
    double begun_ns = time_ns(), per_second;

    start(workers, n_threads, work, queue);
    start(producers, n_threads, add_part, queue);
    join(producers, n_threads);
    require(kinf_queue_drain(queue, KINF_FOREVER, NULL));
    per_second = n_keys * 1e9 / (time_ns() - begun_ns);
    join(workers, n_threads);
    kinf_queue_free(queue);
    return per_second;
}

static void keep_best(double *best, double value)
{
    if (value > *best)
        *best = value;
}

static void measure(int n_threads, int n_runs)
{
    double fresh = 0, again = 0, later = 0, taken = 0, passed = 0;

    for (int i = 0; i < n_runs; i++) {
        struct kinf_queue *queue = open_queue();

        keep_best(&fresh, add_all(queue, add_part, n_threads));
        keep_best(&again, add_all(queue, add_part, n_threads));
        keep_best(&taken, take_all(queue));
        keep_best(&later, add_all(queue, add_part_later, n_threads));
        kinf_queue_free(queue);
        keep_best(&passed, pass_all(n_threads));
    }
    printf("%d threads: %5.2f million adds/s of new keys, %5.2f of keys that wait, %5.2f for "
           "later; get "
           "and done %5.2f; all of it with %d workers %5.2f\n",
           n_threads, fresh / 1e6, again / 1e6, later / 1e6, taken / 1e6, n_threads, passed / 1e6);
}

static void measure_memory(void)
{
    struct kinf_queue *queue = open_queue();
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;

    add_all(queue, add_part, 1);
    printf("memory: %.0f bytes a key of %zu\n",
           (double)(mallinfo2().uordblks + mallinfo2().hblkhd - before) / n_keys,
           (size_t)snprintf(NULL, 0, "%s", keys[0]));
    kinf_queue_free(queue);
}

int main(int argc, char **argv)
{
    int n_runs = argc > 1 ? atoi(argv[1]) : 5;

    for (size_t i = 0; i < n_keys; i++)
        snprintf(keys[i], sizeof keys[i], "some-namespace/some-deployment-%06zu", i);
    for (int n_threads = 1; n_threads <= n_threads_most; n_threads *= 2)
        measure(n_threads, n_runs);
    measure_memory();
    return 0;
}
