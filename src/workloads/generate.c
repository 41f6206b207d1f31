/*
 * Generating. Neighbours: profile.c has the looks, store.c takes the texts as they are: the verbs
 * would find nothing to say about them, and take ten times as long.
 */
#include "workloads/generate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "workloads/profile.h"
#include "apiserver/verbs.h"

#define MAX_NUMBER 10000000
#define N_LOOKS    300 /* that Deployments have */
#define PORTION    500 /* objects before others get the lock */
#define DAY_S      86400

#define NUMBERS(X)                                                                                 \
    X(namespaces)                                                                                  \
    X(nodes)                                                                                       \
    X(deployments)                                                                                 \
    X(pods)                                                                                        \
    X(services)                                                                                    \
    X(configmaps)

enum number {
#define X(name) N_##name,
    NUMBERS(X)
#undef X
        N_NUMBERS
};

static const char *const names[] = {
#define X(name) #name,
    NUMBERS(X)
#undef X
};

struct generator {
    struct kinf__sim *sim;
    struct kinf__store *store;
    struct kinf__dice dice;
    unsigned wanted[N_NUMBERS];
    uint64_t looks[N_LOOKS];
    unsigned n_pods, n_put;
    int64_t now_s;
    struct kinf__buffer text;
    struct kinf_error *err;
};

/* --- what is wanted --- */

static int refuse_name(struct kinf_str name, struct kinf_error *err)
{
    char known[128] = "";
    size_t len = 0;

    for (int i = 0; i < N_NUMBERS; i++)
        len +=
            (size_t)snprintf(known + len, sizeof known - len, "%s%s", i != 0 ? ", " : "", names[i]);
    return kinf__error_set(err, KINF_ERR_CONFIG, "\"%.*s\" cannot be generated, only %s",
                           (int)(name.len < 64 ? name.len : 64), name.bytes, known);
}

static int parse_one(struct kinf_str item, long wanted[N_NUMBERS], struct kinf_error *err)
{
    const char *equals = memchr(item.bytes, '=', item.len);
    struct kinf_str name = { item.bytes,
                             equals != NULL ? (size_t)(equals - item.bytes) : item.len };
    char *end;
    long number;

    for (int i = 0; i < N_NUMBERS; i++) {
        if (!kinf_str_equal(name, kinf_str_from(names[i])))
            continue;
        number = equals != NULL ? strtol(equals + 1, &end, 10) : -1;
        if (equals == NULL || end != item.bytes + item.len || end == equals + 1 || number < 0 ||
            number > MAX_NUMBER)
            return kinf__error_set(err, KINF_ERR_CONFIG, "%s=: a number up to %d is wanted",
                                   names[i], MAX_NUMBER);
        wanted[i] = number;
        return 0;
    }
    return refuse_name(name, err);
}

static long one_for(long number, long each)
{
    return (number + each - 1) / each;
}

/* What was not said follows from the rest. */
static void complete(long wanted[N_NUMBERS])
{
    if (wanted[N_pods] < 0)
        wanted[N_pods] = wanted[N_deployments] > 0 ? 3 * wanted[N_deployments] : 0;
    if (wanted[N_deployments] < 0)
        wanted[N_deployments] = one_for(wanted[N_pods], 10);
    if (wanted[N_nodes] < 0)
        wanted[N_nodes] = one_for(wanted[N_pods], 50);
    if (wanted[N_namespaces] < 0)
        wanted[N_namespaces] = one_for(wanted[N_deployments], 20);
    for (int i = 0; i < N_NUMBERS; i++)
        wanted[i] = wanted[i] > 0 ? wanted[i] : 0;
    /* Pods have owners, and run somewhere. */
    if (wanted[N_pods] > 0 && wanted[N_deployments] == 0)
        wanted[N_deployments] = 1;
    if (wanted[N_pods] > 0 && wanted[N_nodes] == 0)
        wanted[N_nodes] = 1;
}

static int parse(const char *what, unsigned wanted[N_NUMBERS], struct kinf_error *err)
{
    long numbers[N_NUMBERS];
    int failed = 0;

    for (int i = 0; i < N_NUMBERS; i++)
        numbers[i] = -1;
    while (failed == 0) {
        size_t len = strcspn(what, ",");

        failed = parse_one((struct kinf_str){ what, len }, numbers, err);
        if (what[len] == '\0')
            break;
        what += len + 1;
    }
    complete(numbers);
    for (int i = 0; i < N_NUMBERS; i++)
        wanted[i] = (unsigned)numbers[i];
    return failed;
}

/* --- values --- */

static void write_uid(struct kinf__dice *dice, char uid[40])
{
    uint64_t a = kinf__dice_next(dice), b = kinf__dice_next(dice);

    snprintf(uid, 40, "%08" PRIx64 "-%04" PRIx64 "-4%03" PRIx64 "-a%03" PRIx64 "-%012" PRIx64,
             a >> 32, a >> 16 & 0xffff, a & 0xfff, b >> 52, b & 0xffffffffffff);
}

/* Another one for each number of a ReplicaSet's, without drawing one twice: a permutation. */
static void write_suffix(unsigned number, uint64_t offset, char suffix[6])
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    const uint64_t n_letters = sizeof letters - 1,
                   n_all = n_letters * n_letters * n_letters * n_letters * n_letters;
    uint64_t at = ((uint64_t)number * 6700417 + offset) % n_all;

    for (int i = 0; i < 5; i++, at /= n_letters)
        suffix[i] = letters[at % n_letters];
    suffix[5] = '\0';
}

static void write_host_ip(unsigned node, char ip[32])
{
    snprintf(ip, 32, "172.%u.%u.%u", 16 + node / 64516 % 16, node / 254 % 254, node % 254 + 1);
}

/* --- storing --- */

static void pass_lock_on(struct generator *generator)
{
    if (++generator->n_put % PORTION != 0)
        return;
    kinf__store_unlock(generator->store);
    kinf__store_lock(generator->store);
}

/* `resource` of the core group has its name alone. */
static int put(struct generator *generator, const char *group, const char *resource,
               const struct kinf__buffer *text, const struct kinf__hole_values *values)
{
    struct kinf__resource *into = kinf__store_find(generator->store, group, resource);
    struct kinf__hole_values filled = *values;
    char version[24];
    int failed;

    if (into == NULL)
        return kinf__error_set(generator->err, KINF_ERR_NOT_FOUND, "no resource %s", resource);
    snprintf(version, sizeof version, "%" PRIu64, kinf__store_version(generator->store) + 1);
    filled.version = version;
    filled.dice = &generator->dice;
    generator->text.len = 0;
    if (kinf__fill_holes(kinf__buffer_str(text), &filled, &generator->text) < 0)
        return kinf__error_no_memory(generator->err);
    failed = kinf__store_put_text(generator->store, into, kinf__buffer_str(&generator->text),
                                  generator->err);
    if (failed == 0)
        pass_lock_on(generator);
    return failed;
}

static int make_namespace(struct generator *generator, unsigned number)
{
    struct kinf__verb verb = { .sim = generator->sim,
                               .resource = kinf__store_find(generator->store, "", "namespaces") };
    struct cJSON *object = cJSON_CreateObject();
    char name[64];
    int failed = 0;

    kinf__profile_namespace(number, name);
    if (kinf__doc_set_text(kinf__doc_object(object, "metadata"), "name", name) < 0) {
        cJSON_Delete(object);
        return kinf__error_no_memory(generator->err);
    }
    if (kinf__verb_create(&verb, object) < 0 && verb.refusal.code != 409)
        failed = kinf__error_set(generator->err, KINF_ERR_CONFIG, "namespace %s: %s", name,
                                 verb.refusal.message);
    kinf__verb_release(&verb);
    return failed;
}

static int make_node(struct generator *generator, unsigned number)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    char uid[40], ip[32], created[KINF__RFC3339_SIZE], heartbeat[KINF__RFC3339_SIZE];
    const struct kinf__hole_values values = {
        .uid = uid, .host_ip = ip, .created = created, .started = heartbeat
    };

    write_uid(&generator->dice, uid);
    write_host_ip(number, ip);
    kinf__rfc3339_write(generator->now_s - DAY_S * (1 + kinf__dice_below(&generator->dice, 90)), 0,
                        0, created);
    kinf__rfc3339_write(generator->now_s - kinf__dice_below(&generator->dice, 300), 0, 0,
                        heartbeat);
    if (kinf__profile_write_node(&generator->dice, number, &text) < 0)
        return kinf__error_no_memory(generator->err);
    return put(generator, "", "nodes", &text, &values);
}

static int make_pod(struct generator *generator, const struct kinf__profile *profile,
                    const struct kinf__buffer *text, int64_t since_s, unsigned number,
                    uint64_t offset)
{
    struct kinf__dice *dice = &generator->dice;
    unsigned nth = generator->n_pods++, node = nth % generator->wanted[N_nodes];
    uint64_t age_s = (uint64_t)(generator->now_s - since_s);
    int64_t created_s = since_s + (int64_t)(kinf__dice_next(dice) % (age_s + 1));
    char name[128], uid[40], suffix[6], node_name[24], pod_ip[32], host_ip[32],
        created[KINF__RFC3339_SIZE], started[KINF__RFC3339_SIZE], restarts[12];
    const struct kinf__hole_values values = { .name = name,
                                              .uid = uid,
                                              .node = node_name,
                                              .pod_ip = pod_ip,
                                              .host_ip = host_ip,
                                              .created = created,
                                              .started = started,
                                              .suffix = suffix,
                                              .restarts = restarts };

    write_suffix(number, offset, suffix);
    snprintf(name, sizeof name, "%s-%s-%s", profile->name, profile->hash, suffix);
    write_uid(dice, uid);
    snprintf(node_name, sizeof node_name, "node-%u", node);
    write_host_ip(node, host_ip);
    snprintf(pod_ip, sizeof pod_ip, "10.%u.%u.%u", 64 + nth / 65024 % 64, nth / 254 % 256,
             nth % 254 + 1);
    kinf__rfc3339_write(created_s, 0, 0, created);
    kinf__rfc3339_write(created_s + 2 + kinf__dice_below(dice, 40), 0, 0, started);
    snprintf(restarts, sizeof restarts, "%u",
             kinf__dice_below(dice, 8) == 0 ? 1 + kinf__dice_below(dice, 9) : 0);
    return put(generator, "", "pods", text, &values);
}

static int make_pods(struct generator *generator, const struct kinf__profile *profile,
                     int64_t since_s)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    uint64_t offset = kinf__dice_next(&generator->dice) >> 32;
    int failed = 0;

    if (kinf__profile_write_pod(profile, KINF__POD_RUNNING, &text) < 0)
        return kinf__error_no_memory(generator->err);
    for (unsigned i = 0; failed == 0 && i < profile->replicas; i++)
        failed = make_pod(generator, profile, &text, since_s, i, offset);
    return failed;
}

/* Those that a look is written into: each object's text, then its place. */
static int make_owners(struct generator *generator, const struct kinf__profile *profile)
{
    KINF__AUTO_BUFFER deployment = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER replicaset = KINF__BUFFER_INIT;
    const struct kinf__hole_values values = { .name = NULL };
    int failed;

    if (kinf__profile_write_deployment(profile, &deployment) < 0 ||
        kinf__profile_write_replicaset(profile, &replicaset) < 0)
        return kinf__error_no_memory(generator->err);
    failed = put(generator, "apps", "deployments", &deployment, &values);
    return failed < 0 ? failed : put(generator, "apps", "replicasets", &replicaset, &values);
}

static int64_t look(struct generator *generator, unsigned number, struct kinf__profile *profile)
{
    unsigned n_namespaces = generator->wanted[N_namespaces];
    int64_t since_s =
        generator->now_s - DAY_S / 24 - (int64_t)(kinf__dice_next(&generator->dice) % (60 * DAY_S));

    kinf__profile_init(profile, generator->looks[number % N_LOOKS], number);
    if (n_namespaces != 0)
        kinf__profile_namespace(number % n_namespaces, profile->name_space);
    kinf__rfc3339_write(since_s, 0, 0, profile->time);
    return since_s;
}

static int make_deployment(struct generator *generator, unsigned number)
{
    unsigned n_pods = generator->wanted[N_pods], n_deployments = generator->wanted[N_deployments];
    struct kinf__profile profile;
    int64_t since_s = look(generator, number, &profile);
    int failed;

    profile.replicas = n_pods / n_deployments + (number < n_pods % n_deployments);
    write_uid(&generator->dice, profile.deployment_uid);
    write_uid(&generator->dice, profile.replicaset_uid);
    failed = make_owners(generator, &profile);
    return failed < 0 ? failed : make_pods(generator, &profile, since_s);
}

static int make_service(struct generator *generator, unsigned number)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    char uid[40], ip[32];
    const struct kinf__hole_values values = { .uid = uid, .pod_ip = ip };
    struct kinf__profile profile;

    look(generator, number, &profile);
    write_uid(&generator->dice, uid);
    snprintf(ip, sizeof ip, "10.%u.%u.%u", 96 + number / 65024 % 16, number / 254 % 256,
             number % 254 + 1);
    if (kinf__profile_write_service(&profile, &text) < 0)
        return kinf__error_no_memory(generator->err);
    return put(generator, "", "services", &text, &values);
}

static int make_configmap(struct generator *generator, unsigned number)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    char name[96], uid[40];
    const struct kinf__hole_values values = { .name = name, .uid = uid };
    struct kinf__profile profile;

    look(generator, number, &profile);
    write_uid(&generator->dice, uid);
    snprintf(name, sizeof name, "%s-config", profile.name);
    if (kinf__profile_write_configmap(&profile, &generator->dice, &text) < 0)
        return kinf__error_no_memory(generator->err);
    return put(generator, "", "configmaps", &text, &values);
}

/* --- all of it --- */

/* In this order: what others refer to is there before them. */
static int make_all(struct generator *generator)
{
    static int (*const makers[N_NUMBERS])(struct generator *, unsigned) = {
        [N_namespaces] = make_namespace,   [N_nodes] = make_node,
        [N_deployments] = make_deployment, /* with their pods */
        [N_services] = make_service,       [N_configmaps] = make_configmap,
    };
    int failed = 0;

    for (int i = 0; i < N_NUMBERS; i++) {
        for (unsigned j = 0; failed == 0 && makers[i] != NULL && j < generator->wanted[i]; j++)
            failed = makers[i](generator, j);
    }
    return failed;
}

int kinf__generate(struct kinf__sim *sim, const char *what, struct kinf_error *err)
{
    struct generator generator = {
        .sim = sim, .store = kinf__sim_store(sim), .now_s = kinf__clock_wall_ms() / 1000, .err = err
    };
    int failed = parse(what, generator.wanted, err);

    if (failed < 0)
        return failed;
    kinf__store_lock(generator.store);
    generator.dice.state = kinf__sim_random(sim);
    for (int i = 0; i < N_LOOKS; i++)
        generator.looks[i] = kinf__dice_next(&generator.dice);
    failed = make_all(&generator);
    kinf__store_unlock(generator.store);
    kinf__buffer_release(&generator.text);
    return failed;
}
