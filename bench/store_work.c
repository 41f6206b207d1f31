/*
 * See store_work.h. Objects are taken in steps of a prime number, so that each call finds another one
 * far away. Readers that never pause take the processors from everybody by their number alone; these
 * list, then pause, so that there are processors left.
 */
#include "store_work.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <kinformer/kinformer.h>

#include "base/clock.h"

#define STEP             7919
#define LISTS_MIN        3
#define LISTS_NS         INT64_C(500000000)
#define N_GETS           1000000
#define N_BY_INDEX       20000
#define UPDATES_A_SECOND 20000
#define UPDATES_A_TICK   20
#define N_PACED          40000
#define SATURATED_NS     INT64_C(1000000000)
#define READER_PAUSE_NS  20000000
#define READERS_MAX      80

#define BY_HASH                                                                                    \
    {                                                                                              \
        "hash", "metadata.labels.pod-template-hash", NULL, NULL                                    \
    }
#define BY_NAMESPACE                                                                               \
    {                                                                                              \
        "namespace", "metadata.namespace", NULL, NULL                                              \
    }

static void check(int result)
{
    if (result < 0) {
        fprintf(stderr, "bench_pods: %s\n", kinf_errc_to_string(result));
        exit(1);
    }
}

static int64_t since(int64_t begun_ns)
{
    return kinf__clock_now_ns() - begun_ns;
}

/* Of all threads: what a collector does counts, and what others on the machine do does not. */
static int64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* --- lists --- */

static size_t list(const struct kinf_lister *lister, const struct kinf_label_selector *selector)
{
    kinf_auto_object_list struct kinf_object_list found = KINF_OBJECT_LIST_INIT;

    check(kinf_lister_list(lister, selector, &found, NULL));
    return found.n_items;
}

static void lists(struct kinf_informer *pods, const char *text)
{
    struct kinf_lister lister = kinf_informer_lister(pods, NULL);
    struct kinf_label_selector *selector;
    int64_t begun_ns, begun_cpu_ns;
    size_t n = 0, n_found = 0;

    check(kinf_label_selector_parse(text, &selector, NULL));
    begun_cpu_ns = cpu_ns();
    begun_ns = kinf__clock_now_ns();
    for (; n < LISTS_MIN || since(begun_ns) < LISTS_NS; n++)
        n_found += list(&lister, selector);
    printf("lists found=%zu ns=%" PRId64 "\n", n_found / n, (cpu_ns() - begun_cpu_ns) / (int64_t)n);
    kinf_label_selector_free(selector);
}

/* --- gets --- */

static int64_t get_all(struct kinf_indexer *store, const struct kinf_object_list *all)
{
    int64_t begun_ns = cpu_ns();

    for (size_t i = 0; i < N_GETS; i++) {
        const struct kinf_object *object;

        check(kinf_indexer_get_by_key(store, kinf_object_key(all->items[i * STEP % all->n_items]),
                                      &object));
        kinf_object_unref(object);
    }
    return (cpu_ns() - begun_ns) / N_GETS;
}

static int64_t find_all(struct kinf_indexer *store, size_t *ret_n_found)
{
    kinf_auto_string_list struct kinf_string_list values = KINF_STRING_LIST_INIT;
    int64_t begun_ns;

    check(kinf_indexer_list_index_values(store, "hash", &values, NULL));
    begun_ns = cpu_ns();
    for (size_t i = 0; i < N_BY_INDEX; i++) {
        kinf_auto_object_list struct kinf_object_list found = KINF_OBJECT_LIST_INIT;

        check(kinf_indexer_by_index(store, "hash", values.items[i * STEP % values.n_items], &found,
                                    NULL));
        *ret_n_found += found.n_items;
    }
    return (cpu_ns() - begun_ns) / N_BY_INDEX;
}

static void gets(struct kinf_informer *pods)
{
    static const struct kinf_index by_hash = BY_HASH;
    kinf_auto_object_list struct kinf_object_list all = KINF_OBJECT_LIST_INIT;
    struct kinf_indexer *store = kinf_informer_indexer(pods);
    int64_t get_ns, find_ns;
    size_t n_found = 0;

    check(kinf_indexer_list(store, &all, NULL));
    get_ns = get_all(store, &all);
    check(kinf_indexer_add_indices(store, &by_hash, 1, NULL));
    find_ns = find_all(store, &n_found);
    printf("gets get_ns=%" PRId64 " by_index_ns=%" PRId64 " found=%zu\n", get_ns, find_ns,
           n_found / N_BY_INDEX);
}

/* --- writes --- */

struct writing {
    struct kinf_indexer *store;
    struct kinf_object_list all;
    struct kinf_string_list name_spaces;
    size_t next;
    int64_t times_ns[N_PACED];
    /* atomic */
    _Atomic(bool) is_over;
    _Atomic(size_t) n_lists, n_listed, n_readers;
};

static void pause_ns(long ns)
{
    const struct timespec pause = { .tv_nsec = ns };

    nanosleep(&pause, NULL);
}

static void *read_on(void *ctx)
{
    struct writing *writing = ctx;
    size_t at = atomic_fetch_add(&writing->n_readers, 1);

    for (; !atomic_load(&writing->is_over); at++) {
        const struct kinf_lister lister = {
            writing->store, writing->name_spaces.items[at % writing->name_spaces.n_items]
        };

        atomic_fetch_add(&writing->n_listed, list(&lister, NULL));
        atomic_fetch_add(&writing->n_lists, 1);
        pause_ns(READER_PAUSE_NS);
    }
    return NULL;
}

static void write_one(struct writing *writing)
{
    check(kinf_indexer_update(writing->store, writing->all.items[writing->next], NULL, NULL));
    writing->next = (writing->next + STEP) % writing->all.n_items;
}

/* By the clock: what was late is made up for at once. */
static void write_paced(struct writing *writing)
{
    int64_t begun_ns = kinf__clock_now_ns();

    for (size_t n = 0; n < N_PACED; n++) {
        int64_t due_ns = begun_ns + (int64_t)(n / UPDATES_A_TICK * UPDATES_A_TICK) *
                                        (1000000000 / UPDATES_A_SECOND);

        while (kinf__clock_now_ns() < due_ns)
            pause_ns((long)(due_ns - kinf__clock_now_ns() > 0 ? due_ns - kinf__clock_now_ns() : 0));
        writing->times_ns[n] = kinf__clock_now_ns();
        write_one(writing);
        writing->times_ns[n] = since(writing->times_ns[n]);
    }
}

static size_t write_saturated(struct writing *writing)
{
    int64_t begun_ns = kinf__clock_now_ns();
    size_t n = 0;

    for (; since(begun_ns) < SATURATED_NS; n++)
        write_one(writing);
    return n;
}

static int compare_times(const void *a, const void *b)
{
    const int64_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

static void write_beside(struct writing *writing, size_t n_readers)
{
    pthread_t threads[READERS_MAX];
    int64_t begun_ns = kinf__clock_now_ns(), read_ns;
    size_t n_saturated, n_lists, n_listed;

    for (size_t i = 0; i < n_readers; i++)
        check(pthread_create(&threads[i], NULL, read_on, writing) == 0 ? 0 : KINF_ERR_SYSTEM);
    write_paced(writing);
    n_lists = atomic_load(&writing->n_lists);
    n_listed = atomic_load(&writing->n_listed);
    read_ns = since(begun_ns);
    n_saturated = write_saturated(writing);
    atomic_store(&writing->is_over, true);
    for (size_t i = 0; i < n_readers; i++)
        pthread_join(threads[i], NULL);
    qsort(writing->times_ns, N_PACED, sizeof writing->times_ns[0], compare_times);
    printf("writes p50_ns=%" PRId64 " p99_ns=%" PRId64 " per_s=%zu lists_per_s=%.0f found=%zu\n",
           writing->times_ns[N_PACED / 2], writing->times_ns[N_PACED / 100 * 99], n_saturated,
           (double)n_lists * 1e9 / (double)read_ns, n_lists != 0 ? n_listed / n_lists : 0);
}

static void writes(struct kinf_informer *pods, size_t n_readers)
{
    static const struct kinf_index by_namespace = BY_NAMESPACE;
    struct writing *writing = calloc(1, sizeof *writing);

    check(writing != NULL && n_readers <= READERS_MAX ? 0 : KINF_ERR_INVALID);
    check(kinf_indexer_list(kinf_informer_indexer(pods), &writing->all, NULL));
    check(kinf_indexer_new(&by_namespace, 1, &writing->store, NULL));
    check(
        kinf_indexer_replace(writing->store, writing->all.items, writing->all.n_items, "1", NULL));
    check(kinf_indexer_list_index_values(writing->store, "namespace", &writing->name_spaces, NULL));
    write_beside(writing, n_readers);
    kinf_string_list_release(&writing->name_spaces);
    kinf_object_list_release(&writing->all);
    kinf_indexer_free(writing->store);
    free(writing);
}

/* --- stop --- */

static void stop(struct kinf_informer *pods)
{
    int64_t begun_ns = kinf__clock_now_ns();

    check(kinf_informer_stop(pods, NULL));
    printf("stop ns=%" PRId64 "\n", since(begun_ns));
}

/* --- */

bool store_work(struct kinf_informer *pods, const char *line)
{
    if (strncmp(line, "lists ", strlen("lists ")) == 0)
        lists(pods, line + strlen("lists "));
    else if (strcmp(line, "gets") == 0)
        gets(pods);
    else if (strncmp(line, "writes ", strlen("writes ")) == 0)
        writes(pods, strtoul(line + strlen("writes "), NULL, 10));
    else if (strcmp(line, "stop") == 0)
        stop(pods);
    else
        return false;
    fflush(stdout);
    return true;
}
