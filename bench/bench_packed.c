/*
 * What it costs to hold objects compressed, and what it saves: bench_packed [N_PODS [N_TEMPLATES]]. So
 * many pods of so many different templates, in the order of a list, are held plain and packed, once
 * whole and once without managedFields, of what a decoder hands over. Prints bytes at rest, without the
 * texts that the packer has at hand, and the processor's microseconds for one object: a write and a read
 * in that order, and at random, as events come.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "apiserver/store.h"
#include "object/packed.h"
#include "workloads/generate.h"

#define N_PODS      10050
#define N_TEMPLATES 500

/* Of so many writes and reads. */
struct cost {
    size_t n;
    double write_us, read_us, label_us;
};

/* The pods as they are, and what is made of them. */
struct pods {
    struct kinf__packer *packer;
    const struct kinf_object **plain, **packed;
    size_t n;
    size_t n_packed, plain_bytes, packed_bytes;
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

static void note_large(struct kinf__object_parts *parts, size_t i, struct kinf__json_value value)
{
    parts->large[i] =
        (struct kinf__json_stretch){ (size_t)(value.raw.bytes - parts->body.bytes), value.raw.len };
}

/* What a decoder hands to the packer. */
static struct kinf__object_parts parts_of(const struct kinf_object *plain)
{
    struct kinf__object_parts parts = {
        .type = kinf_object_type(plain),
        .name_space = kinf_object_namespace(plain),
        .name = kinf_str_from(kinf_object_name(plain)),
        .uid = kinf_str_from(kinf_object_uid(plain)),
        .resource_version = kinf_str_from(kinf_object_resource_version(plain)),
        .body = { kinf__object_plain_body(plain), plain->body_len },
    };
    const struct kinf__json_value body = kinf__json_value_of(parts.body);
    struct kinf__json_value value;

    kinf__object_tell_places(plain, &parts);
    if (kinf__json_member(body, KINF_STR("spec"), &value))
        note_large(&parts, 0, value);
    if (kinf__json_member(body, KINF_STR("status"), &value))
        note_large(&parts, 1, value);
    if (kinf__json_member(body, KINF_STR("metadata"), &value) &&
        kinf__json_member(value, KINF_STR("managedFields"), &value))
        note_large(&parts, 2, value);
    return parts;
}

/* The object is packed again, and takes the place of the one before. */
static int write_and_read(struct pods *pods, size_t i, struct cost *cost, struct kinf_error *err)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    const struct kinf_object *packed;
    struct kinf_str text;
    char value[64];
    const struct kinf__object_parts parts = parts_of(pods->plain[i]);
    double begun_us = now_us();
    int r = kinf__packer_make(pods->packer, &parts, &packed, err);

    if (r < 0)
        return r;
    kinf_object_unref(pods->packed[i]);
    pods->packed[i] = packed;
    if (!packed->is_packed)
        return 0;
    cost->write_us += now_us() - begun_us;
    begun_us = now_us();
    r = kinf_object_json(packed, &scratch, &text, err);
    cost->read_us += now_us() - begun_us;
    begun_us = now_us();
    (void)!kinf_object_get_label(packed, "team", value, sizeof value);
    cost->label_us += now_us() - begun_us;
    cost->n++;
    return r;
}

static size_t next_in_order(uint64_t *state)
{
    return (*state)++;
}

static size_t next_at_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1;
    return *state >> 33;
}

/* As often as there are pods. */
static int visit(struct pods *pods, size_t (*next)(uint64_t *state), struct cost *cost,
                 struct kinf_error *err)
{
    uint64_t state = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < pods->n; i++)
        r = write_and_read(pods, next(&state) % pods->n, cost, err);
    return r;
}

static void count_bytes(struct pods *pods)
{
    for (size_t i = 0; i < pods->n; i++) {
        if (!pods->packed[i]->is_packed)
            continue;
        pods->n_packed++;
        pods->plain_bytes += kinf_object_size(pods->plain[i]);
        pods->packed_bytes += kinf_object_size(pods->packed[i]);
    }
}

static void print_cost(const char *order, const struct cost *cost)
{
    printf("  %-22s write=%.1f us read=%.1f us label=%.2f us\n", order,
           cost->write_us / (double)cost->n, cost->read_us / (double)cost->n,
           cost->label_us / (double)cost->n);
}

static int measure(const char *name, struct pods *pods, struct kinf_error *err)
{
    struct cost in_order = { .n = 0 }, at_random = { .n = 0 };
    int r = visit(pods, next_in_order, &in_order, err);

    if (r == 0)
        count_bytes(pods);
    if (r == 0)
        r = visit(pods, next_at_random, &at_random, err);
    if (r < 0 || pods->n_packed == 0)
        return r;
    printf("%-24s pods=%zu plain=%zu B packed=%zu B ratio=%.1f\n", name, pods->n_packed,
           pods->plain_bytes / pods->n_packed, pods->packed_bytes / pods->n_packed,
           (double)pods->plain_bytes / (double)pods->packed_bytes);
    print_cost("in a list's order", &in_order);
    print_cost("at random", &at_random);
    return 0;
}

static int decode_all(struct pods *pods, const struct kinf_snapshot *from, const char *drop,
                      struct kinf_error *err)
{
    struct kinf__prune_plan *plan = NULL;
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    int r = kinf__prune_plan_new(&drop, drop != NULL ? 1 : 0, NULL, 0, &plan, err);

    kinf_cursor_all(&cursor, from);
    while (r == 0 && (object = kinf_cursor_next(&cursor)) != NULL)
        r = decode(object, plan, &pods->plain[pods->n++], err);
    kinf__prune_plan_free(plan);
    return r;
}

static int run(const char *name, const struct kinf_snapshot *from, const char *drop,
               struct kinf_error *err)
{
    size_t n = kinf_snapshot_count(from);
    struct pods pods = { .plain = calloc(n, sizeof *pods.plain),
                         .packed = calloc(n, sizeof *pods.packed) };
    int r = pods.plain == NULL || pods.packed == NULL ? KINF_ERR_NO_MEMORY
                                                      : decode_all(&pods, from, drop, err);

    if (r == 0)
        r = kinf__packer_new(&pods.packer, err);
    if (r == 0)
        r = measure(name, &pods, err);
    for (size_t i = 0; i < pods.n; i++) {
        kinf_object_unref(pods.plain[i]);
        kinf_object_unref(pods.packed[i]);
    }
    kinf__packer_free(pods.packer);
    free(pods.plain);
    free(pods.packed);
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
    r = run("whole", pods, NULL, &err);
    if (r == 0)
        r = run("without managedFields", pods, "metadata.managedFields", &err);
    kinf_snapshot_unref(pods);
    kinf__sim_stop(sim);
    kinf__sim_free(sim);
    return r < 0 ? fail(&err) : 0;
}
