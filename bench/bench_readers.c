/*
 * What readers of snapshots cost the writer: bench_readers [OBJECTS] (10000). One thread writes
 * 20,000 updates a second by the clock, alone and beside 64 threads that list namespaces; then the
 * same as fast as it can. Said beside the rate: how long a write took, and how often the writer gave
 * the processor away of its own accord while it wrote, which is what waiting for a lock would be.
 *
 * Readers that never pause take the processors from everybody by their number alone; these list,
 * then pause, so that there are processors left.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "indexer/indexer.h"
#include "object/object.h"

#define N_NAMESPACES     50
#define N_READERS        64
#define READER_PAUSE_MS  20
#define UPDATES_A_SECOND 20000
#define UPDATES_A_TICK   20
#define PACED_S          3
#define N_SATURATED      200000

struct bench {
    struct kinf_indexer *indexer;
    const struct kinf_object **objects;
    size_t n;
    size_t next; /* to be written */
    int64_t *times_ns;
    /* atomic */
    _Atomic(bool) is_over;
    _Atomic(size_t) n_listed;
};

static void check(int result)
{
    if (result < 0)
        abort();
}

static int index_by_node(const struct kinf_object *object, struct kinf_index_values *values,
                         void *ctx)
{
    const char *node = kinf_object_uid(object);

    (void)ctx;
    return kinf_index_values_add(values, node, strlen(node));
}

static const struct kinf_object *make_object(size_t i, unsigned round)
{
    char name_space[32], name[48], uid[48];
    struct kinf__object_parts parts = { .resource_version = KINF_STR("123456789"),
                                        .body = KINF_STR("{\"metadata\":{},\"spec\":{}}") };
    const struct kinf_object *object;

    snprintf(name_space, sizeof name_space, "namespace-%zu", i % N_NAMESPACES);
    snprintf(name, sizeof name, "deployment-%zu-%08x", i / 10, (unsigned)(i * 2654435761U));
    snprintf(uid, sizeof uid, "node-%zu", (i + round) % 100);
    parts.name_space = kinf_str_from(name_space);
    parts.name = kinf_str_from(name);
    parts.uid = kinf_str_from(uid);
    check(kinf__object_new(&parts, &object, NULL));
    return object;
}

/* Two states of each object, written in turns: the index changes each time. */
static void set_up(struct bench *bench)
{
    const struct kinf_index index = { .name = "node", .function = index_by_node };

    check(kinf_indexer_new(&index, 1, &bench->indexer, NULL));
    bench->objects = calloc(2 * bench->n, sizeof bench->objects[0]);
    bench->times_ns = calloc(N_SATURATED, sizeof bench->times_ns[0]);
    if (bench->objects == NULL || bench->times_ns == NULL)
        abort();
    for (size_t i = 0; i < 2 * bench->n; i++)
        bench->objects[i] = make_object(i % bench->n, i >= bench->n);
    for (size_t i = 0; i < bench->n; i++)
        check(kinf_indexer_add(bench->indexer, bench->objects[i], NULL, NULL));
}

static void pause_ms(long ms)
{
    const struct timespec pause = { .tv_nsec = ms * 1000000 };

    nanosleep(&pause, NULL);
}

static void *read_on(void *ctx)
{
    struct bench *bench = ctx;
    unsigned name_space = (unsigned)(uintptr_t)&ctx % N_NAMESPACES;
    char prefix[32];

    while (!atomic_load_explicit(&bench->is_over, memory_order_relaxed)) {
        struct kinf_snapshot *snapshot = kinf_indexer_snapshot(bench->indexer);
        const struct kinf_object *object;
        struct kinf_cursor cursor;
        size_t n = 0;

        snprintf(prefix, sizeof prefix, "namespace-%u/", name_space++ % N_NAMESPACES);
        kinf_cursor_prefix(&cursor, snapshot, kinf_str_from(prefix));
        while ((object = kinf_cursor_next(&cursor)) != NULL)
            n += kinf_object_key(object)[0] != '\0';
        kinf_snapshot_unref(snapshot);
        atomic_fetch_add(&bench->n_listed, n);
        pause_ms(READER_PAUSE_MS);
    }
    return NULL;
}

static void write_one(struct bench *bench, int64_t *ret_ns)
{
    int64_t begun_ns = kinf__clock_now_ns();

    check(kinf_indexer_update(bench->indexer, bench->objects[bench->next], NULL, NULL));
    bench->next = (bench->next + 1) % (2 * bench->n);
    *ret_ns = kinf__clock_now_ns() - begun_ns;
}

static long voluntary_switches(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_THREAD, &usage) < 0)
        abort();
    return usage.ru_nvcsw;
}

static int compare_times(const void *a, const void *b)
{
    const int64_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

static void report(struct bench *bench, const char *what, size_t n, int64_t begun_ns, long n_waits)
{
    double seconds = (double)(kinf__clock_now_ns() - begun_ns) / 1e9;

    qsort(bench->times_ns, n, sizeof bench->times_ns[0], compare_times);
    printf("  %-34s %8.0f/s   median %6.2f us   p99 %7.2f us   %ld waits\n", what,
           (double)n / seconds, (double)bench->times_ns[n / 2] / 1e3,
           (double)bench->times_ns[n * 99 / 100] / 1e3, n_waits);
}

/* By the clock: what was late is made up for at once. */
static void write_paced(struct bench *bench, const char *what)
{
    size_t n = 0, n_wanted = (size_t)UPDATES_A_SECOND * PACED_S;
    int64_t begun_ns = kinf__clock_now_ns();
    long n_waits = 0;

    while (n < n_wanted) {
        int64_t due_ns = begun_ns + (int64_t)(n / UPDATES_A_TICK) *
                                        (1000000000 / UPDATES_A_SECOND * UPDATES_A_TICK);
        long before;

        while (kinf__clock_now_ns() < due_ns)
            pause_ms(0);
        before = voluntary_switches();
        for (int i = 0; i < UPDATES_A_TICK; i++)
            write_one(bench, &bench->times_ns[n++]);
        n_waits += voluntary_switches() - before;
    }
    report(bench, what, n, begun_ns, n_waits);
}

static void write_saturated(struct bench *bench, const char *what)
{
    int64_t begun_ns = kinf__clock_now_ns();
    long before = voluntary_switches();

    for (size_t n = 0; n < N_SATURATED; n++)
        write_one(bench, &bench->times_ns[n]);
    report(bench, what, N_SATURATED, begun_ns, voluntary_switches() - before);
}

static void beside_readers(struct bench *bench)
{
    pthread_t threads[N_READERS];
    int64_t begun_ns = kinf__clock_now_ns();

    for (size_t i = 0; i < N_READERS; i++) {
        if (pthread_create(&threads[i], NULL, read_on, bench) != 0)
            abort();
    }
    write_paced(bench, "20,000/s beside 64 readers");
    write_saturated(bench, "saturated beside 64 readers");
    atomic_store(&bench->is_over, true);
    for (size_t i = 0; i < N_READERS; i++)
        pthread_join(threads[i], NULL);
    printf("  readers listed %.1f million objects a second\n",
           (double)atomic_load(&bench->n_listed) /
               ((double)(kinf__clock_now_ns() - begun_ns) / 1e9) / 1e6);
}

int main(int argc, char **argv)
{
    struct bench bench = { .n = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000 };

    if (bench.n == 0) {
        fprintf(stderr, "usage: bench_readers [OBJECTS]\n");
        return 2;
    }
    set_up(&bench);
    printf("%zu objects, one index\n", bench.n);
    write_paced(&bench, "20,000/s alone");
    write_saturated(&bench, "saturated alone");
    beside_readers(&bench);
    kinf_indexer_free(bench.indexer);
    for (size_t i = 0; i < 2 * bench.n; i++)
        kinf_object_unref(bench.objects[i]);
    free(bench.objects);
    free(bench.times_ns);
    return 0;
}
