/*
 * What it costs to hold objects compressed, and what it saves: bench_packed [N_PODS [N_TEMPLATES]]. So
 * many pods of so many different templates, in the order of a list, are held plain and packed, once
 * whole and once without managedFields. Prints bytes at rest and, of each, the processor's microseconds
 * for one object: a write in that order, and a read right behind it and of any.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "apiserver/store.h"
#include "object/packed.h"
#include "workloads/generate.h"

#define N_PODS      10050
#define N_TEMPLATES 500

struct cost {
    size_t n_objects;
    size_t plain_bytes, packed_bytes;
    double write_us, read_us, label_us;
};

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int fail(const struct kinf_error *err)
{
    fprintf(stderr, "bench_packed: %s\n", err->message);
    return 1;
}

static struct kinf_snapshot *generate(struct kinf__sim *sim, unsigned long n_pods,
                                      unsigned long n_templates, struct kinf_error *err)
{
    struct kinf__store *store = kinf__sim_store(sim);
    struct kinf_snapshot *pods;
    char what[64];

    snprintf(what, sizeof what, "pods=%lu,deployments=%lu", n_pods, n_templates);
    if (kinf__generate(sim, what, err) < 0)
        return NULL;
    kinf__store_lock(store);
    pods = kinf__store_snapshot(kinf__store_find(store, "", "pods"));
    kinf__store_unlock(store);
    return pods;
}

/* As an informer has it: decoded by the plan. */
static int decode(const struct kinf_object *from, const struct kinf__prune_plan *plan,
                  const struct kinf_object **ret_object, struct kinf_error *err)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__object_decoder decoder;
    struct kinf_str text;
    size_t len;
    int r;

    kinf__object_decoder_init(&decoder, kinf_object_type(from), plan);
    r = kinf_object_full_json(from, &scratch, &text, err);
    if (r == 0)
        r = kinf__object_decode(&decoder, text, true, ret_object, &len, err);
    kinf__object_decoder_release(&decoder);
    return r;
}

static int add(struct cost *cost, struct kinf__packer *packer, const struct kinf_object *plain,
               struct kinf_error *err)
{
    kinf_auto_object const struct kinf_object *packed = NULL;
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str text;
    char value[64];
    double begun_us = now_us();
    int r = kinf__packer_repack(packer, plain, &packed, err);

    if (r < 0 || !packed->is_packed)
        return r;
    cost->write_us += now_us() - begun_us;
    begun_us = now_us();
    r = kinf_object_json(packed, &scratch, &text, err);
    cost->read_us += now_us() - begun_us;
    begun_us = now_us();
    (void)!kinf_object_get_label(packed, "team", value, sizeof value);
    cost->label_us += now_us() - begun_us;
    cost->n_objects++;
    cost->plain_bytes += kinf_object_size(plain);
    cost->packed_bytes += kinf_object_size(packed);
    return r;
}

static int measure(const char *name, const struct kinf_snapshot *pods, const char *drop,
                   struct kinf_error *err)
{
    struct kinf__prune_plan *plan = NULL;
    struct kinf__packer *packer = NULL;
    struct cost cost = { .n_objects = 0 };
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    int r = kinf__prune_plan_new(&drop, drop != NULL ? 1 : 0, NULL, 0, &plan, err);

    if (r == 0)
        r = kinf__packer_new(&packer, err);
    kinf_cursor_all(&cursor, pods);
    while (r == 0 && (object = kinf_cursor_next(&cursor)) != NULL) {
        const struct kinf_object *plain = NULL;

        r = decode(object, plan, &plain, err);
        if (r == 0)
            r = add(&cost, packer, plain, err);
        kinf_object_unref(plain);
    }
    if (r == 0 && cost.n_objects != 0)
        printf("%-24s pods=%zu plain=%zu B packed=%zu B ratio=%.1f write=%.1f us read=%.1f us "
               "label=%.2f us\n",
               name, cost.n_objects, cost.plain_bytes / cost.n_objects,
               cost.packed_bytes / cost.n_objects,
               (double)cost.plain_bytes / (double)cost.packed_bytes,
               cost.write_us / (double)cost.n_objects, cost.read_us / (double)cost.n_objects,
               cost.label_us / (double)cost.n_objects);
    kinf__packer_free(packer);
    kinf__prune_plan_free(plan);
    return r;
}

int main(int argc, char **argv)
{
    const struct kinf__sim_options options = { .seed = 1 };
    unsigned long n_pods = argc > 1 ? strtoul(argv[1], NULL, 10) : N_PODS;
    unsigned long n_templates = argc > 2 ? strtoul(argv[2], NULL, 10) : N_TEMPLATES;
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_snapshot *pods;
    struct kinf__sim *sim;
    int r;

    if (kinf__sim_new(&options, &sim, &err) < 0 ||
        (pods = generate(sim, n_pods, n_templates, &err)) == NULL)
        return fail(&err);
    r = measure("whole", pods, NULL, &err);
    if (r == 0)
        r = measure("without managedFields", pods, "metadata.managedFields", &err);
    kinf_snapshot_unref(pods);
    kinf__sim_stop(sim);
    kinf__sim_free(sim);
    return r < 0 ? fail(&err) : 0;
}
