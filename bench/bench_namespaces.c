/*
 * What many namespaces as one informer cost: bench_namespaces [N_NAMESPACES [N_HANDLERS]], by default 1,000
 * and 3. Prints threads and resident memory once all have started and have their list of 10 objects, then
 * the time until everybody is synced, of a change from the queue to all handlers, and of the stop.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <kinformer/deltafifo.h>

#include "informer/informer.h"
#include "bench.h"

enum { n_objects = 10, n_changes = 20 };

struct bench {
    struct kinf_namespaces *namespaces;
    size_t n_namespaces;
    size_t n_handlers;
    char **names;
    atomic_size_t n_told;
    atomic_size_t n_synced;
};

static void on_change(const struct kinf_object *old, const struct kinf_object *object, void *ctx)
{
    struct bench *bench = ctx;

    (void)old;
    (void)object;
    atomic_fetch_add_explicit(&bench->n_told, 1, memory_order_relaxed);
}

static void on_synced(void *ctx)
{
    struct bench *bench = ctx;

    atomic_fetch_add(&bench->n_synced, 1);
}

static void wait_for(atomic_size_t *count, size_t n)
{
    const struct timespec pause = { .tv_nsec = 100000 };

    while (atomic_load(count) < n)
        nanosleep(&pause, NULL);
}

static const struct kinf_object *make_object(const char *name_space, size_t i, size_t version)
{
    static const struct kinf_type pods = { "", "v1", "Pod", "pods", true };
    const struct kinf_object *object;
    char json[256];

    snprintf(json, sizeof json,
             "{\"metadata\":{\"name\":\"o%zu\",\"namespace\":\"%s\",\"uid\":\"u%zu\","
             "\"resourceVersion\":\"%zu\"}}",
             i, name_space, i, version);
    require(kinf_object_new_from_json(&pods, json, strlen(json), &object, NULL));
    return object;
}

static struct kinf_informer *informer_of(struct bench *bench, size_t i)
{
    return kinf_namespaces_informer(bench->namespaces, bench->names[i]);
}

static void feed_list(struct bench *bench, size_t i)
{
    const struct kinf_object *objects[n_objects];

    for (size_t k = 0; k < n_objects; k++)
        objects[k] = make_object(bench->names[i], k, 1);
    require(kinf_deltafifo_replace(informer_of(bench, i)->fifo, objects, n_objects, "1", NULL));
    for (size_t k = 0; k < n_objects; k++)
        kinf_object_unref(objects[k]);
    kinf__informer_note_contact(informer_of(bench, i));
}

static void feed_change(struct bench *bench, size_t i, size_t version)
{
    const struct kinf_object *object = make_object(bench->names[i], version % n_objects, version);

    require(kinf_deltafifo_update(informer_of(bench, i)->fifo, object, NULL));
    kinf_object_unref(object);
}

static void make(struct bench *bench)
{
    static const struct kinf_type pods = { "", "v1", "Pod", "pods", true };
    const struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    const struct kinf_handler handler = { .on_change = on_change,
                                          .on_synced = on_synced,
                                          .ctx = bench };
    kinf_handler_id id;

    bench->names = calloc(bench->n_namespaces, sizeof *bench->names);
    for (size_t i = 0; i < bench->n_namespaces; i++) {
        bench->names[i] = malloc(32);
        snprintf(bench->names[i], 32, "team-%zu", i);
    }
    require(kinf__namespaces_new_for_type(NULL, &pods, &options, (const char *const *)bench->names,
                                          bench->n_namespaces, &bench->namespaces, NULL));
    for (size_t i = 0; i < bench->n_handlers; i++)
        require(kinf_namespaces_add_handler(bench->namespaces, &handler, &id, NULL));
}

static void print_status(const char *name)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[128];

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0)
            printf("%s", line);
    }
    if (file != NULL)
        fclose(file);
}

int main(int argc, char **argv)
{
    struct bench bench = { .n_namespaces = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000,
                           .n_handlers = argc > 2 ? strtoul(argv[2], NULL, 10) : 3 };
    double begun_ns = time_ns();
    size_t n_told;

    make(&bench);
    require(kinf_namespaces_start(bench.namespaces, NULL));
    for (size_t i = 0; i < bench.n_namespaces; i++)
        feed_list(&bench, i);
    wait_for(&bench.n_synced, bench.n_handlers);
    printf("%zu namespaces, %zu handlers\nsynced after    %8.1f ms\n", bench.n_namespaces,
           bench.n_handlers, (time_ns() - begun_ns) / 1e6);
    print_status("Threads");
    print_status("VmRSS");
    print_status("VmSize");
    n_told = atomic_load(&bench.n_told);
    begun_ns = time_ns();
    for (size_t version = 2; version < 2 + n_changes; version++) {
        for (size_t i = 0; i < bench.n_namespaces; i++)
            feed_change(&bench, i, version);
    }
    wait_for(&bench.n_told, n_told + n_changes * bench.n_namespaces * bench.n_handlers);
    printf("a change        %8.1f us\n",
           (time_ns() - begun_ns) / 1e3 / (double)(n_changes * bench.n_namespaces));
    begun_ns = time_ns();
    require(kinf_namespaces_stop(bench.namespaces, NULL));
    printf("stopped after   %8.1f ms\n", (time_ns() - begun_ns) / 1e6);
    kinf_namespaces_free(bench.namespaces);
    for (size_t i = 0; i < bench.n_namespaces; i++)
        free(bench.names[i]);
    free(bench.names);
    return 0;
}
