/*
 * What the store costs: bench_indexer [OBJECTS]... (150000 and 1000000). Objects have small bodies
 * and keys as pods of deployments have; one index, by node. Memory runs first, in a fresh heap.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "indexer/indexer.h"
#include "object/object.h"

#define N_GETS        1000000
#define N_WRITES      200000
#define N_HELD        64
#define N_PER_NODE    100
#define N_REPLICAS    10
#define N_NAMESPACES  200
#define KEY_SIZE      80
#define NODE_NAME_MAX 40

struct bench {
    size_t n;
    const struct kinf_object **objects;
    struct kinf_indexer *indexer;
    uint64_t random;
    size_t n_object_bytes; /* of the allocator */
};

static void *must(void *allocated)
{
    if (allocated == NULL)
        abort();
    return allocated;
}

static void check(int result)
{
    if (result < 0)
        abort();
}

static uint64_t next_random(struct bench *bench)
{
    uint64_t z = bench->random += 0x9e3779b97f4a7c15U;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

static int index_by_node(const struct kinf_object *object, struct kinf_index_values *values,
                         void *ctx)
{
    const char *node = kinf_object_uid(object);

    (void)ctx;
    return kinf_index_values_add(values, node, strlen(node));
}

/* --- objects --- */

static const struct kinf_object *make_object(struct bench *bench, size_t i)
{
    char name_space[KEY_SIZE], name[KEY_SIZE], node[NODE_NAME_MAX];
    struct kinf__object_parts parts = { .resource_version = KINF_STR("123456789"),
                                        .body = KINF_STR("{\"metadata\":{},\"spec\":{}}") };
    const struct kinf_object *object;
    size_t app = i / N_REPLICAS;

    snprintf(name_space, sizeof name_space, "namespace-%zu", app % N_NAMESPACES);
    snprintf(name, sizeof name, "deployment-%zu-%08x-%05zx", app, (unsigned)(app * 2654435761U), i);
    snprintf(node, sizeof node, "node-%zu.example.org",
             (size_t)(next_random(bench) % (bench->n / N_PER_NODE)));
    parts.name_space = kinf_str_from(name_space);
    parts.name = kinf_str_from(name);
    parts.uid = kinf_str_from(node);
    check(kinf__object_new(&parts, &object, NULL));
    bench->n_object_bytes += malloc_usable_size((void *)(uintptr_t)object);
    return object;
}

static void shuffle(struct bench *bench)
{
    for (size_t i = bench->n; i > 1; i--) {
        size_t k = next_random(bench) % i;
        const struct kinf_object *swap = bench->objects[i - 1];

        bench->objects[i - 1] = bench->objects[k];
        bench->objects[k] = swap;
    }
}

static int compare_objects(const void *a, const void *b)
{
    const struct kinf_object *const *left = a, *const *right = b;

    return strcmp(kinf_object_key(*left), kinf_object_key(*right));
}

/* Objects in the order of a list, as the server sends them. */
static void make_objects(struct bench *bench)
{
    bench->objects = must(calloc(bench->n, sizeof bench->objects[0]));
    for (size_t i = 0; i < bench->n; i++)
        bench->objects[i] = make_object(bench, i);
    qsort(bench->objects, bench->n, sizeof bench->objects[0], compare_objects);
}

/* --- measuring --- */

static void report(const char *what, size_t n, int64_t started_ns)
{
    printf("  %-58s %9.3f us\n", what,
           (double)(kinf__clock_now_ns() - started_ns) / 1e3 / (double)n);
}

static void report_ms(const char *what, int64_t started_ns)
{
    printf("  %-58s %9.1f ms\n", what, (double)(kinf__clock_now_ns() - started_ns) / 1e6);
}

static void measure_memory(struct bench *bench)
{
    size_t before = mallinfo2().uordblks, after;

    check(kinf_indexer_replace(bench->indexer, bench->objects, bench->n, "1", NULL));
    after = mallinfo2().uordblks;
    printf("  %-58s %9.0f B\n", "memory per object beyond the object, one index",
           (double)(after - before) / (double)bench->n);
    printf("  %-58s %9.0f B\n", "the object itself",
           (double)bench->n_object_bytes / (double)bench->n + (double)sizeof(size_t));
}

static void measure_gets(struct bench *bench)
{
    struct kinf_snapshot *snapshot = kinf_indexer_snapshot(bench->indexer);
    char(*keys)[KEY_SIZE] = must(calloc(N_GETS, KEY_SIZE));
    size_t n_found = 0;
    int64_t started_ns;

    for (size_t i = 0; i < N_GETS; i++)
        strcpy(keys[i], kinf_object_key(bench->objects[next_random(bench) % bench->n]));
    started_ns = kinf__clock_now_ns();
    for (size_t i = 0; i < N_GETS; i++) {
        const struct kinf_object *object;

        check(kinf_indexer_get_by_key(bench->indexer, keys[i], &object));
        kinf_object_unref(object);
    }
    report("GetByKey, random key", N_GETS, started_ns);
    started_ns = kinf__clock_now_ns();
    for (size_t i = 0; i < N_GETS; i++)
        n_found += kinf_snapshot_get(snapshot, keys[i]) != NULL;
    report("the same in a snapshot", N_GETS, started_ns);
    if (n_found != N_GETS)
        abort();
    free(keys);
    kinf_snapshot_unref(snapshot);
}

static void measure_lists(struct bench *bench)
{
    struct kinf_object_list list = KINF_OBJECT_LIST_INIT;
    int64_t started_ns = kinf__clock_now_ns();

    check(kinf_indexer_list(bench->indexer, &list, NULL));
    report_ms("List", started_ns);
    kinf_object_list_release(&list);
    started_ns = kinf__clock_now_ns();
    check(kinf_indexer_by_index(bench->indexer, "byNode", "node-7.example.org", &list, NULL));
    report("ByIndex, per object found", list.n_items, started_ns);
    kinf_object_list_release(&list);
}

/* --- writes --- */

/* Updates of random objects; `n_held` snapshots are held, a new one after each write. */
static void write_some(struct bench *bench, size_t n_held)
{
    struct kinf_snapshot *held[N_HELD] = { NULL };

    for (size_t i = 0; i < N_WRITES; i++) {
        check(kinf_indexer_add(bench->indexer, bench->objects[next_random(bench) % bench->n], NULL,
                               NULL));
        if (n_held != 0) {
            kinf_snapshot_unref(held[i % n_held]);
            held[i % n_held] = kinf_indexer_snapshot(bench->indexer);
        }
    }
    for (size_t i = 0; i < n_held; i++)
        kinf_snapshot_unref(held[i]);
}

static void remove_and_add(struct bench *bench, bool is_held)
{
    for (size_t i = 0; i < N_WRITES / 2; i++) {
        const struct kinf_object *object = bench->objects[next_random(bench) % bench->n];
        struct kinf_snapshot *held = is_held ? kinf_indexer_snapshot(bench->indexer) : NULL;

        check(kinf_indexer_delete(bench->indexer, kinf_object_key(object), NULL, NULL, NULL));
        kinf_snapshot_unref(held);
        held = is_held ? kinf_indexer_snapshot(bench->indexer) : NULL;
        check(kinf_indexer_add(bench->indexer, object, NULL, NULL));
        kinf_snapshot_unref(held);
    }
}

static void measure_writes(struct bench *bench, size_t n_trees)
{
    static const struct {
        const char *name;
        size_t n_held;
    } runs[] = { { "update, nothing held", 0 },
                 { "update, a new snapshot each, the last one held", 1 },
                 { "update, a new snapshot each, the last 64 held", N_HELD } };
    char what[100];
    int64_t started_ns;

    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        snprintf(what, sizeof what, "%s, per tree of %zu", runs[i].name, n_trees);
        started_ns = kinf__clock_now_ns();
        write_some(bench, runs[i].n_held);
        report(what, N_WRITES * n_trees, started_ns);
    }
    for (int is_held = 0; is_held <= 1; is_held++) {
        snprintf(what, sizeof what, "delete or add, %s held, per tree of %zu",
                 is_held ? "one" : "nothing", n_trees);
        started_ns = kinf__clock_now_ns();
        remove_and_add(bench, is_held);
        report(what, N_WRITES * n_trees, started_ns);
    }
}

/* --- whole versions --- */

static void reap_all(struct bench *bench)
{
    while (kinf__indexer_reap(bench->indexer, 1000))
        ;
}

static size_t resident_bytes(void)
{
    FILE *file = must(fopen("/proc/self/statm", "r"));
    unsigned long n_pages = 0;

    if (fscanf(file, "%*s %lu", &n_pages) != 1)
        abort();
    fclose(file);
    return n_pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void measure_replace(struct bench *bench)
{
    struct kinf_snapshot *snapshot;
    size_t resident;
    int64_t started_ns = kinf__clock_now_ns();

    check(kinf_indexer_replace(bench->indexer, bench->objects, bench->n, "2", NULL));
    report_ms("Replace by the same objects", started_ns);
    kinf_object_unref(bench->objects[bench->n / 2]);
    bench->objects[bench->n / 2] = make_object(bench, bench->n / 2);
    started_ns = kinf__clock_now_ns();
    check(kinf_indexer_replace(bench->indexer, bench->objects, bench->n, "2", NULL));
    report_ms("Replace, one object differs", started_ns);
    shuffle(bench);
    started_ns = kinf__clock_now_ns();
    check(kinf_indexer_replace(bench->indexer, bench->objects, bench->n - 1, "2", NULL));
    report_ms("Replace, in no order, one object fewer", started_ns);
    reap_all(bench);

    snapshot = kinf_indexer_snapshot(bench->indexer);
    check(kinf_indexer_replace(bench->indexer, NULL, 0, "3", NULL));
    for (size_t i = 0; i < bench->n; i++)
        kinf_object_unref(bench->objects[i]);
    free(bench->objects);
    bench->objects = NULL;
    started_ns = kinf__clock_now_ns();
    kinf_snapshot_unref(snapshot);
    report("letting go of a large version", 1, started_ns);
    started_ns = kinf__clock_now_ns();
    kinf__indexer_reap(bench->indexer, 1000);
    report("a slice of its memory", 1, started_ns);
    resident = resident_bytes();
    reap_all(bench);
    report_ms("all of its memory", started_ns);
    printf("  %-58s %9.0f %%\n", "went back to the system, of the objects' bytes",
           100.0 * ((double)resident - (double)resident_bytes()) / (double)bench->n_object_bytes);
}

/* --- readers --- */

struct reader {
    struct kinf_indexer *indexer;
    _Atomic(bool) is_over;
    size_t n_lists;
};

static void *list_on(void *ctx)
{
    struct reader *reader = ctx;

    while (!atomic_load(&reader->is_over)) {
        struct kinf_object_list list = KINF_OBJECT_LIST_INIT;

        check(kinf_indexer_list(reader->indexer, &list, NULL));
        kinf_object_list_release(&list);
        reader->n_lists++;
    }
    return NULL;
}

static int compare_times(const void *a, const void *b)
{
    const int64_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

/* The time below which so many of a thousand sorted ones are. */
static double us_at(const int64_t *times_ns, size_t per_thousand)
{
    size_t at = N_WRITES / 1000 * per_thousand;

    return (double)times_ns[at] / 1e3;
}

/* The time of single writes, by themselves and beside a thread that lists all the time. */
static void measure_write_times(struct bench *bench, const char *what)
{
    int64_t *times_ns = must(calloc(N_WRITES, sizeof times_ns[0]));

    for (size_t i = 0; i < N_WRITES; i++) {
        int64_t started_ns = kinf__clock_now_ns();

        check(kinf_indexer_add(bench->indexer, bench->objects[next_random(bench) % bench->n], NULL,
                               NULL));
        times_ns[i] = kinf__clock_now_ns() - started_ns;
    }
    qsort(times_ns, N_WRITES, sizeof times_ns[0], compare_times);
    printf("  %-58s %9.3f us, 99 %%: %.3f, 99.9 %%: %.3f\n", what, us_at(times_ns, 500),
           us_at(times_ns, 990), us_at(times_ns, 999));
    free(times_ns);
}

static void measure_readers(struct bench *bench)
{
    struct reader reader = { .indexer = bench->indexer };
    pthread_t thread;

    measure_write_times(bench, "one update, median");
    if (pthread_create(&thread, NULL, list_on, &reader) != 0)
        abort();
    measure_write_times(bench, "one update beside a thread that lists all, median");
    atomic_store(&reader.is_over, true);
    pthread_join(thread, NULL);
}

static void run(size_t n)
{
    const struct kinf_index by_node = { "byNode", NULL, index_by_node, NULL };
    struct bench bench = { .n = n, .random = 1 };

    printf("%zu objects\n", n);
    make_objects(&bench);
    check(kinf_indexer_new(&by_node, 1, &bench.indexer, NULL));
    measure_memory(&bench);
    measure_gets(&bench);
    measure_lists(&bench);
    measure_writes(&bench, 2);
    measure_readers(&bench);
    kinf_indexer_free(bench.indexer);

    check(kinf_indexer_new(NULL, 0, &bench.indexer, NULL));
    check(kinf_indexer_replace(bench.indexer, bench.objects, n, "1", NULL));
    measure_writes(&bench, 1);
    kinf_indexer_free(bench.indexer);

    check(kinf_indexer_new(&by_node, 1, &bench.indexer, NULL));
    check(kinf_indexer_replace(bench.indexer, bench.objects, n, "1", NULL));
    measure_replace(&bench);
    kinf_indexer_free(bench.indexer);
}

int main(int argc, char **argv)
{
    if (argc == 1) {
        run(150000);
        run(1000000);
    }
    for (int i = 1; i < argc; i++)
        run(strtoul(argv[i], NULL, 10));
    return 0;
}
