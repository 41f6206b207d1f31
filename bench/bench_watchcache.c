/*
 * What watches cost: bench_watchcache [N_EVENTS]. Updates of 5,000 pods of 2 kB on 1,000 nodes are
 * written to a store, one a write, with a watch cache behind it and 1,000 cursors. Whoever is woken
 * reads and arms again at once, on the same thread: so this is what the cache costs without
 * sockets. Prints the CPU time of an event for several kinds of selections, what of it the store
 * alone needs, how many wake-ups and told events there were, and what memory a cursor takes.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <kinformer/selector.h>

#include "watchcache/watchcache.h"
#include "bench.h"

enum { n_pods = 5000, n_nodes = 1000, n_cursors = 1000, body_size = 2000 };

struct watch {
    struct kinf__watch_cursor *cursor;
    char node[16];
};

struct bench {
    struct kinf_indexer *indexer;
    struct kinf__watchcache *cache;
    struct kinf__sink sink;
    const struct kinf_object **stored; /* borrowed from the indexer */
    struct watch watches[n_cursors];
    size_t n_wakes, n_told;
    unsigned version;
};

static double cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static const struct kinf_object *make_pod(size_t number, unsigned version)
{
    const struct kinf_object *object;
    const struct kinf_type *type;
    char text[body_size + 512], filler[body_size];

    memset(filler, 'x', sizeof filler);
    filler[sizeof filler - 1] = '\0';
    require(kinf_type_intern("", "v1", "Pod", "pods", true, &type, NULL));
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"pod-%zu\",\"namespace\":\"ns-%zu\",\"uid\":\"%zu\","
             "\"resourceVersion\":\"%u\",\"labels\":{\"app\":\"web\"},"
             "\"annotations\":{\"filler\":\"%s\"}},\"spec\":{\"nodeName\":\"node-%zu\"}}",
             number, number % 50, number, version, filler, number % n_nodes);
    require(kinf_object_new_from_json(type, text, strlen(text), &object, NULL));
    return object;
}

/* --- watches --- */

static struct bench bench;

static void read_and_arm(void *ctx)
{
    struct watch *watch = ctx;
    struct kinf__watch_event event;

    bench.n_wakes++;
    do {
        while (kinf__watch_cursor_next(watch->cursor, &event) == 1)
            bench.n_told++;
    } while (kinf__watch_cursor_arm(watch->cursor));
}

static int match_labels(const struct kinf_object *object, void *ctx)
{
    return kinf_label_selector_matches(ctx, object);
}

static void begin_watches(const struct kinf__watch_filter *filter)
{
    for (size_t i = 0; i < n_cursors; i++) {
        struct watch *watch = &bench.watches[i];
        struct kinf__watch_filter own = *filter;

        snprintf(watch->node, sizeof watch->node, "node-%zu", i % n_nodes);
        if (own.index != NULL)
            own.index_value = watch->node;
        require(kinf__watchcache_subscribe(bench.cache, &own, kinf__watchcache_version(bench.cache),
                                           read_and_arm, watch, &watch->cursor, NULL));
        if (kinf__watch_cursor_arm(watch->cursor))
            read_and_arm(watch);
    }
}

static void end_watches(void)
{
    for (size_t i = 0; i < n_cursors; i++) {
        kinf__watch_cursor_free(bench.watches[i].cursor);
        bench.watches[i].cursor = NULL;
    }
}

/* --- events --- */

static void write_event(bool has_cache)
{
    size_t number = bench.version * 7919U % n_pods;
    const struct kinf_object *object = make_pod(number, ++bench.version);
    const struct kinf_object *old = kinf_object_ref(bench.stored[number]);
    const struct kinf__notification change = { .type = KINF__NOTIFY_UPDATE,
                                               .old = old,
                                               .object = object };

    require(kinf_indexer_update(bench.indexer, object, NULL, NULL));
    if (has_cache)
        bench.sink.on_write(KINF__WRITE_CHANGES, &change, 1, 0, bench.sink.ctx);
    bench.stored[number] = object;
    kinf_object_unref(old);
    kinf_object_unref(object);
}

/* Nanoseconds an event. */
static double measure(size_t n_events, bool has_cache)
{
    double begun_ns = cpu_ns();

    bench.n_wakes = 0;
    bench.n_told = 0;
    for (size_t i = 0; i < n_events; i++)
        write_event(has_cache);
    return (cpu_ns() - begun_ns) / (double)n_events;
}

static void run(const char *name, const struct kinf__watch_filter *filter, size_t n_events,
                double alone_ns)
{
    size_t bytes = mallinfo2().uordblks;
    double event_ns;

    begin_watches(filter);
    bytes = mallinfo2().uordblks - bytes;
    event_ns = measure(n_events, true);
    printf("%-34s %9.2f us an event, %8.2f of it the cache; wakes=%zu told=%zu events=%zu "
           "bytes/cursor=%zu\n",
           name, event_ns / 1e3, (event_ns - alone_ns) / 1e3, bench.n_wakes, bench.n_told, n_events,
           bytes / n_cursors);
    end_watches();
}

static void fill_store(void)
{
    static const struct kinf_index by_node = KINF_INDEX_BY_NODE_NAME;

    require(kinf_indexer_new(&by_node, 1, &bench.indexer, NULL));
    bench.stored = calloc(n_pods, sizeof bench.stored[0]);
    if (bench.stored == NULL)
        require(KINF_ERR_NO_MEMORY);
    for (size_t i = 0; i < n_pods; i++) {
        const struct kinf_object *object = make_pod(i, ++bench.version);

        require(kinf_indexer_add(bench.indexer, object, NULL, NULL));
        bench.stored[i] = object;
        kinf_object_unref(object);
    }
}

int main(int argc, char **argv)
{
    size_t n_events = argc > 1 ? (size_t)atol(argv[1]) : 20000;
    struct kinf_label_selector *nobody;
    const struct kinf__watch_filter all = { .name = NULL };
    const struct kinf__watch_filter scoped = { .index = "byNodeName", .index_value = "" };
    const struct kinf__watch_filter name_space = { .name_space = "elsewhere" };
    struct kinf__watch_filter labelled = { .match = match_labels };
    double alone_ns, idle_ns;

    require(kinf_label_selector_parse("app=nobody", &nobody, NULL));
    labelled.match_ctx = nobody;
    fill_store();
    require(kinf__watchcache_new(bench.indexer, NULL, &bench.cache, NULL));
    bench.sink = kinf__watchcache_sink(bench.cache);
    measure(n_events, false);
    alone_ns = measure(n_events, false);
    printf("%-34s %9.2f us an event, with making its object\n", "store alone", alone_ns / 1e3);
    kinf__watchcache_set_enabled(bench.cache, true);
    idle_ns = measure(n_events, true);
    printf("%-34s %9.2f us an event, %8.2f of it the cache\n", "history, nobody watches",
           idle_ns / 1e3, (idle_ns - alone_ns) / 1e3);
    run("1,000 cursors of a node each", &scoped, n_events, alone_ns);
    run("1,000 cursors of another namespace", &name_space, n_events, alone_ns);
    run("1,000 cursors of no such label", &labelled, n_events / 20, alone_ns);
    run("1,000 cursors of all", &all, n_events / 20, alone_ns);
    kinf__watchcache_free(bench.cache);
    kinf_indexer_free(bench.indexer);
    kinf_label_selector_free(nobody);
    free(bench.stored);
    return 0;
}
