/*
 * How fast a JSON text is scanned, pruned and searched, beside memcpy and cJSON: bench_json [FILE
 * [SECONDS]]. Prints the best of some runs each, in GB of input a second of one thread, and the
 * bytes kept or found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cjson/cJSON.h>

#include "base/buffer.h"
#include "json/path.h"
#include "json/plan.h"

#define N_RUNS     7
#define N_NS_PER_S 1000000000LL
#define N_OTHERS   300

struct bench {
    struct kinf_str text;
    struct kinf__json_plan *all;  /* captures what an informer needs */
    struct kinf__json_plan *less; /* the same without metadata.managedFields */
    struct kinf__json_plan *few;  /* the same, and little else kept */
    struct kinf_path *path;       /* what is looked up */
    struct kinf__buffer out;
    /* The text without a fifth of its members, each time others: of one text alone the processor learns
     * what comes next. */
    struct kinf_str others[N_OTHERS];
    size_t next_other;
};

/* One pass over the text; false on failure. */
typedef bool pass_fn(struct bench *bench);

static bool pass_memcpy(struct bench *bench)
{
    bench->out.len = 0;
    return kinf__buffer_append_str(&bench->out, bench->text) == 0;
}

static bool pass_scan(struct bench *bench)
{
    size_t len;

    return kinf__json_scan(bench->text, true, &len) == 0;
}

static bool pass_scan_others(struct bench *bench)
{
    size_t len;

    return kinf__json_scan(bench->others[bench->next_other++ % N_OTHERS], true, &len) == 0;
}

static bool prune(struct bench *bench, const struct kinf__json_plan *plan)
{
    struct kinf__json_capture captures[KINF__JSON_MAX_CAPTURES];
    size_t len;

    bench->out.len = 0;
    return kinf__json_prune(plan, bench->text, true, &bench->out, captures, &len) == 0;
}

static bool pass_prune_all(struct bench *bench)
{
    return prune(bench, bench->all);
}

static bool pass_prune_less(struct bench *bench)
{
    return prune(bench, bench->less);
}

static bool pass_prune_few(struct bench *bench)
{
    return prune(bench, bench->few);
}

static int take(struct kinf__json_value value, void *ctx)
{
    return kinf__buffer_append_str(ctx, value.raw);
}

static bool pass_lookup(struct bench *bench)
{
    bench->out.len = 0;
    return kinf__json_lookup(bench->text, bench->path, 0, take, &bench->out) == 0;
}

static bool pass_cjson(struct bench *bench)
{
    cJSON *tree = cJSON_ParseWithLength(bench->text.bytes, bench->text.len);

    cJSON_Delete(tree);
    return tree != NULL;
}

static long long now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * N_NS_PER_S + now.tv_nsec;
}

/* Nanoseconds for one pass, over `run_ns` or a little more; negative on failure. */
static double run(struct bench *bench, pass_fn *pass, long long run_ns)
{
    long long start = now_ns(), spent = 0;
    size_t n_passes = 0;

    while (spent < run_ns) {
        for (int i = 0; i < 16; i++, n_passes++) {
            if (!pass(bench))
                return -1;
        }
        spent = now_ns() - start;
    }
    return (double)spent / (double)n_passes;
}

/* A pass has `len` bytes of input. */
static bool measure_of(struct bench *bench, const char *name, pass_fn *pass, double seconds,
                       size_t len)
{
    double best = 0;

    bench->out.len = 0;
    for (int i = 0; i < N_RUNS; i++) {
        double ns = run(bench, pass, (long long)(seconds * N_NS_PER_S / N_RUNS));

        if (ns < 0) {
            fprintf(stderr, "%s failed\n", name);
            return false;
        }
        if (best == 0 || ns < best)
            best = ns;
    }
    printf("%-28s %7.2f GB/s  %9.2f us  kept %zu\n", name, (double)len / best, best / 1000,
           bench->out.len);
    return true;
}

static bool measure(struct bench *bench, const char *name, pass_fn *pass, double seconds)
{
    return measure_of(bench, name, pass, seconds, bench->text.len);
}

static bool measure_lookups(struct bench *bench, double seconds)
{
    static const char *const paths[] = { "spec.nodeName", "metadata.labels[\"app\"]",
                                         "spec.containers[*].name", "spec.nobody", "nobody" };
    struct kinf_error err = KINF_ERROR_INIT;
    bool is_right = true;
    char name[64];

    for (size_t i = 0; is_right && i < KINF__ARRAY_LEN(paths); i++) {
        if (kinf_path_parse(paths[i], &bench->path, &err) < 0) {
            fprintf(stderr, "%s\n", err.message);
            return false;
        }
        snprintf(name, sizeof name, "get %s", paths[i]);
        is_right = measure(bench, name, pass_lookup, seconds);
        kinf_path_free(bench->path);
    }
    return is_right;
}

static bool add(struct kinf__json_plan *plan, const char *text, bool is_keep, bool is_drop,
                unsigned slot)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_path *path = NULL;
    int status = kinf_path_parse(text, &path, &err);

    if (status == 0 && is_drop)
        status = kinf__json_plan_drop(plan, path, &err);
    else if (status == 0 && is_keep)
        status = kinf__json_plan_keep(plan, path, &err);
    else if (status == 0)
        status = kinf__json_plan_protect(plan, path, &err);
    if (status == 0 && slot < KINF__JSON_MAX_CAPTURES)
        status = kinf__json_plan_capture(plan, path, slot, &err);
    if (status < 0)
        fprintf(stderr, "%s\n", err.message);
    kinf_path_free(path);
    return status == 0;
}

static struct kinf__json_plan *make_plan(const char *const *keeps, const char *drop)
{
    static const char *const needed[] = { "metadata.name",
                                          "metadata.namespace",
                                          "metadata.uid",
                                          "metadata.labels",
                                          "metadata.resourceVersion",
                                          "apiVersion",
                                          "kind" };
    struct kinf__json_plan *plan = NULL;
    bool is_right = kinf__json_plan_new(&plan, NULL) == 0;

    for (unsigned i = 0; is_right && i < KINF__ARRAY_LEN(needed); i++)
        is_right = add(plan, needed[i], false, false, i);
    for (; is_right && keeps != NULL && *keeps != NULL; keeps++)
        is_right = add(plan, *keeps, true, false, KINF__JSON_MAX_CAPTURES);
    if (is_right && drop != NULL)
        is_right = add(plan, drop, false, true, KINF__JSON_MAX_CAPTURES);
    if (!is_right)
        exit(1);
    return plan;
}

static void read_file(const char *path, struct kinf__buffer *file)
{
    char part[65536];
    FILE *stream = fopen(path, "rb");

    if (stream == NULL) {
        perror(path);
        exit(1);
    }
    for (size_t n; (n = fread(part, 1, sizeof part, stream)) > 0;) {
        if (kinf__buffer_append(file, part, n) < 0)
            exit(1);
    }
    fclose(stream);
}

static void leave_out_a_fifth(cJSON *container)
{
    for (cJSON *child = container->child, *next; child != NULL; child = next) {
        next = child->next;
        if (rand() % 5 == 0)
            cJSON_Delete(cJSON_DetachItemViaPointer(container, child));
        else
            leave_out_a_fifth(child);
    }
}

/* Returns how long they are on the average. */
static size_t make_others(struct bench *bench)
{
    size_t len = 0;

    for (size_t i = 0; i < N_OTHERS; i++) {
        cJSON *tree = cJSON_ParseWithLength(bench->text.bytes, bench->text.len);

        if (tree == NULL)
            exit(1);
        leave_out_a_fifth(tree);
        bench->others[i] = kinf_str_from(cJSON_PrintUnformatted(tree));
        len += bench->others[i].len;
        cJSON_Delete(tree);
    }
    return len / N_OTHERS;
}

int main(int argc, char **argv)
{
    static const char *const agent_fields[] = { "spec.nodeName", "spec.containers[*].name",
                                                "status.phase", "status.podIP", NULL };
    const char *path = argc > 1 ? argv[1] : "bench/pod.json";
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 0.7;
    KINF__AUTO_BUFFER file = KINF__BUFFER_INIT;
    struct bench bench = { .out = KINF__BUFFER_INIT };
    size_t others_len;
    bool is_right;

    read_file(path, &file);
    bench.text = kinf__buffer_str(&file);
    others_len = make_others(&bench);
    bench.all = make_plan(NULL, NULL);
    bench.less = make_plan(NULL, "metadata.managedFields");
    bench.few = make_plan(agent_fields, NULL);
    is_right = measure(&bench, "memcpy", pass_memcpy, seconds) &&
               measure(&bench, "scan", pass_scan, seconds) &&
               measure_of(&bench, "scan, other ones", pass_scan_others, seconds, others_len) &&
               measure(&bench, "prune, all kept", pass_prune_all, seconds) &&
               measure(&bench, "prune, no managedFields", pass_prune_less, seconds) &&
               measure(&bench, "prune, agent fields", pass_prune_few, seconds) &&
               measure_lookups(&bench, seconds) &&
               measure(&bench, "cJSON, parse and delete", pass_cjson, seconds);
    kinf__json_plan_free(bench.all);
    kinf__json_plan_free(bench.less);
    kinf__json_plan_free(bench.few);
    kinf__buffer_release(&bench.out);
    for (size_t i = 0; i < N_OTHERS; i++)
        free((char *)bench.others[i].bytes);
    return is_right ? 0 : 1;
}
