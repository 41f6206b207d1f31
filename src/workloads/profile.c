/*
 * Generated applications: their words. Neighbours: profile_text.c writes them out, generate.c
 * stores that.
 */
#include "workloads/profile.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const teams[] = {
    "payments",  "checkout", "catalog",  "search",   "identity",  "billing",   "logistics",
    "inventory", "pricing",  "risk",     "media",    "messaging", "analytics", "growth",
    "platform",  "support",  "partners", "insights", "delivery",  "returns",
};

static const char *const stages[] = { "prod", "staging", "dev", "canary" };

static const char *const apps[] = {
    "ledger",    "gateway",  "orders",    "basket",   "profile",  "session", "invoice",  "tariff",
    "shipment",  "tracking", "warehouse", "stock",    "quotes",   "fraud",   "scoring",  "thumbs",
    "transcode", "mailer",   "push",      "events",   "funnel",   "ranking", "suggest",  "index",
    "crawler",   "audit",    "consent",   "accounts", "vouchers", "loyalty", "geocoder", "routes",
};

static const char *const components[] = {
    "api", "worker", "frontend", "consumer", "scheduler", "cache", "relay", "exporter",
};

static const char *const registries[] = {
    "registry.internal.example",
    "eu.images.example",
    "ghcr.io/example",
    "docker.io/example",
};

static const char *const sidecars[] = { "proxy", "log-shipper", "metrics-agent", "vault-agent" };

static const char *const variables[] = {
    "DATABASE_URL",
    "CACHE_HOSTS",
    "BROKER_ADDRESSES",
    "LOG_FORMAT",
    "LOG_LEVEL",
    "TRACING_ENDPOINT",
    "TRACING_SAMPLING",
    "FEATURE_FLAGS_URL",
    "HTTP_MAX_IN_FLIGHT",
    "HTTP_IDLE_TIMEOUT",
    "GOGC",
    "JAVA_OPTS",
    "WORKER_THREADS",
    "BATCH_SIZE",
    "RETRY_BUDGET",
    "SHUTDOWN_DELAY",
    "REGION",
    "CURRENCY_DEFAULT",
    "METRICS_PREFIX",
    "SCHEMA_REGISTRY",
    "OBJECT_BUCKET",
    "SIGNING_KEY_ID",
    "PUBLIC_BASE_URL",
    "RATE_LIMIT_PER_CLIENT",
    "CIRCUIT_OPEN_AFTER",
    "QUEUE_VISIBILITY_MS",
    "TENANT_MODE",
    "SNAPSHOT_INTERVAL",
};

static const char *const secret_variables[] = {
    "DATABASE_PASSWORD", "BROKER_PASSWORD", "API_TOKEN", "SIGNING_KEY", "WEBHOOK_SECRET",
};

static const char *const fields[][2] = {
    { "POD_NAME", "metadata.name" },  { "POD_NAMESPACE", "metadata.namespace" },
    { "NODE_NAME", "spec.nodeName" }, { "POD_IP", "status.podIP" },
    { "HOST_IP", "status.hostIP" },   { "SERVICE_ACCOUNT", "spec.serviceAccountName" },
};

static const char *const probe_paths[] = { "/healthz", "/livez", "/status/ready",
                                           "/internal/ping" };
static const char *const volume_names[] = { "config", "scratch", "certificates", "templates" };

const struct kinf__condition kinf__node_conditions[] = {
    { "MemoryPressure", "False", "KubeletHasSufficientMemory",
      "kubelet has sufficient memory available" },
    { "DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure" },
    { "PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available" },
    { "Ready", "True", "KubeletReady", "kubelet is posting ready status" },
};

#define PICK(dice, words) (words)[kinf__dice_below((dice), KINF__ARRAY_LEN(words))]

uint64_t kinf__dice_next(struct kinf__dice *dice)
{
    uint64_t z = (dice->state += 0x9e3779b97f4a7c15U);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}

unsigned kinf__dice_below(struct kinf__dice *dice, unsigned limit)
{
    return (unsigned)((kinf__dice_next(dice) >> 32) * limit >> 32);
}

static KINF_PRINTF(4, 5) void add_pair(struct kinf__pairs *pairs, const char *name,
                                       const char *source, const char *fmt, ...)
{
    struct kinf__pair *pair = &pairs->items[pairs->n];
    va_list args;

    if (pairs->n == KINF__PROFILE_MAX_PAIRS)
        return;
    pairs->n++;
    pair->name = name;
    pair->source = source;
    va_start(args, fmt);
    vsnprintf(pair->value, sizeof pair->value, fmt, args);
    va_end(args);
}

/* Sorted by name, as the server writes maps. */
static void add_labels(struct kinf__profile *profile, struct kinf__dice *dice,
                       const char *component)
{
    static const char *const managers[] = { "Helm", "argocd", "flux" };
    struct kinf__pairs *labels = &profile->labels;

    add_pair(labels, "app.kubernetes.io/component", NULL, "%s", component);
    add_pair(labels, "app.kubernetes.io/instance", NULL, "%s", profile->name);
    add_pair(labels, "app.kubernetes.io/managed-by", NULL, "%s", PICK(dice, managers));
    add_pair(labels, "app.kubernetes.io/name", NULL, "%s", profile->app);
    add_pair(labels, "app.kubernetes.io/part-of", NULL, "%s-suite", profile->team);
    add_pair(labels, "app.kubernetes.io/version", NULL, "v%u.%u.%u", kinf__dice_below(dice, 6),
             kinf__dice_below(dice, 30), kinf__dice_below(dice, 12));
    if (kinf__dice_below(dice, 2) == 0)
        add_pair(labels, "cost-center", NULL, "cc-%u", 1000 + kinf__dice_below(dice, 90));
    if (kinf__dice_below(dice, 3) == 0)
        add_pair(labels, "data-class", NULL, "%s",
                 kinf__dice_below(dice, 2) == 0 ? "internal" : "confidential");
    add_pair(labels, "team", NULL, "%s", profile->team);
    add_pair(labels, "tier", NULL, "tier-%u", 1 + kinf__dice_below(dice, 4));
}

static void add_annotations(struct kinf__profile *profile, struct kinf__dice *dice)
{
    struct kinf__pairs *annotations = &profile->annotations;

    add_pair(annotations, "checksum/config", NULL, "%016" PRIx64 "%016" PRIx64,
             kinf__dice_next(dice), kinf__dice_next(dice));
    if (kinf__dice_below(dice, 2) == 0)
        add_pair(annotations, "checksum/secrets", NULL, "%016" PRIx64 "%016" PRIx64,
                 kinf__dice_next(dice), kinf__dice_next(dice));
    if (kinf__dice_below(dice, 3) == 0)
        add_pair(annotations, "cluster-autoscaler.kubernetes.io/safe-to-evict", NULL, "%s",
                 kinf__dice_below(dice, 2) == 0 ? "true" : "false");
    add_pair(annotations, "example.com/on-call", NULL, "%s-on-call@%s.example", profile->team,
             profile->team);
    add_pair(annotations, "example.com/repository", NULL, "https://git.example/%s/%s/-/tree/%08x",
             profile->team, profile->app, (unsigned)kinf__dice_next(dice));
    if (kinf__dice_below(dice, 2) == 0)
        add_pair(annotations, "kubectl.kubernetes.io/default-container", NULL, "%s", profile->app);
    add_pair(annotations, "prometheus.io/path", NULL, "/%smetrics",
             kinf__dice_below(dice, 2) == 0 ? "internal/" : "");
    add_pair(annotations, "prometheus.io/port", NULL, "%u", 9000 + kinf__dice_below(dice, 200));
    add_pair(annotations, "prometheus.io/scrape", NULL, "true");
    if (kinf__dice_below(dice, 2) == 0)
        add_pair(annotations, "sidecar.istio.io/inject", NULL, "false");
}

/* Values that look like those of such a variable, and of no other application. */
static void add_variable(struct kinf__profile_container *container,
                         const struct kinf__profile *profile, struct kinf__dice *dice,
                         const char *name)
{
    struct kinf__pairs *env = &container->env;
    uint64_t number = kinf__dice_next(dice);

    switch (number % 5) {
    case 0:
        add_pair(env, name, NULL, "%s-%s.%s.svc.cluster.local:%u", profile->team, PICK(dice, apps),
                 PICK(dice, teams), 1024 + kinf__dice_below(dice, 60000));
        break;
    case 1:
        add_pair(env, name, NULL, "https://%s.%s.example/%s/%06" PRIx64, PICK(dice, apps),
                 PICK(dice, teams), PICK(dice, components), number >> 40);
        break;
    case 2:
        add_pair(env, name, NULL, "%u%s", 1 + kinf__dice_below(dice, 5000),
                 kinf__dice_below(dice, 2) == 0 ? "ms" : "");
        break;
    case 3:
        add_pair(env, name, NULL, "%s,%s,%s", PICK(dice, apps), PICK(dice, apps),
                 PICK(dice, components));
        break;
    default:
        add_pair(env, name, NULL, "%s_%s_%016" PRIx64, profile->app, PICK(dice, stages), number);
    }
}

/* Every variable once: the list is walked from a place on, with some left out. */
static void add_env(struct kinf__profile *profile, struct kinf__profile_container *container,
                    struct kinf__dice *dice, unsigned n_wanted)
{
    unsigned n_variables = KINF__ARRAY_LEN(variables), at = kinf__dice_below(dice, n_variables);

    for (unsigned i = 0; i < KINF__ARRAY_LEN(fields); i++) {
        if (kinf__dice_below(dice, 3) != 0)
            add_pair(&container->env, fields[i][0], "fieldRef", "%s", fields[i][1]);
    }
    add_pair(&container->env, "GOMAXPROCS", "resourceFieldRef", "limits.cpu");
    for (unsigned i = 0; i < n_wanted; i++, at++)
        add_variable(container, profile, dice, variables[at % n_variables]);
    for (unsigned i = 0; i < KINF__ARRAY_LEN(secret_variables); i++) {
        if (kinf__dice_below(dice, 3) == 0)
            add_pair(&container->env, secret_variables[i], "secretKeyRef", "%s", profile->name);
    }
}

static void add_container(struct kinf__profile *profile, struct kinf__dice *dice, const char *name)
{
    bool is_main = profile->n_containers == 0;
    struct kinf__profile_container *container = &profile->containers[profile->n_containers++];

    container->name = name;
    snprintf(container->image, sizeof container->image, "%s/%s/%s:%u.%u.%u-%07x",
             PICK(dice, registries), is_main ? profile->team : "mesh", name,
             kinf__dice_below(dice, 9), kinf__dice_below(dice, 40), kinf__dice_below(dice, 20),
             (unsigned)kinf__dice_next(dice) & 0xfffffff);
    container->port = is_main ? 8000 + kinf__dice_below(dice, 999) : 0;
    container->cpu_m = 5 * (1 + kinf__dice_below(dice, 200));
    container->memory_mi = 16 * (1 + kinf__dice_below(dice, 128));
    container->has_limits = kinf__dice_below(dice, 4) != 0;
    container->has_probes = is_main;
    container->probe_path = PICK(dice, probe_paths);
    add_env(profile, container, dice,
            is_main ? 4 + kinf__dice_below(dice, 10) : 1 + kinf__dice_below(dice, 4));
}

static void add_containers(struct kinf__profile *profile, struct kinf__dice *dice)
{
    unsigned at = kinf__dice_below(dice, KINF__ARRAY_LEN(sidecars));
    unsigned n_sidecars = kinf__dice_below(dice, KINF__PROFILE_MAX_CONTAINERS);

    add_container(profile, dice, profile->app);
    for (unsigned i = 0; i < n_sidecars; i++)
        add_container(profile, dice, sidecars[(at + i) % KINF__ARRAY_LEN(sidecars)]);
    profile->has_init = kinf__dice_below(dice, 3) == 0;
    profile->n_volumes = 1 + kinf__dice_below(dice, KINF__PROFILE_MAX_VOLUMES);
    for (unsigned i = 0; i < profile->n_volumes; i++)
        profile->volumes[i] = volume_names[i];
}

void kinf__profile_namespace(unsigned number, char name[64])
{
    unsigned n_teams = KINF__ARRAY_LEN(teams), n_stages = KINF__ARRAY_LEN(stages);
    unsigned round = number / (n_teams * n_stages);

    snprintf(name, 64, "%s-%s", teams[number % n_teams], stages[number / n_teams % n_stages]);
    if (round != 0)
        snprintf(name, 64, "%s-%s-%u", teams[number % n_teams], stages[number / n_teams % n_stages],
                 round + 1);
}

static void write_hash(struct kinf__dice *dice, char hash[16])
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";

    for (int i = 0; i < 10; i++)
        hash[i] = letters[kinf__dice_below(dice, sizeof letters - 1)];
    hash[10] = '\0';
}

void kinf__profile_init(struct kinf__profile *profile, uint64_t seed, unsigned number)
{
    struct kinf__dice dice = { seed };
    const char *component;

    memset(profile, 0, sizeof *profile);
    profile->team = PICK(&dice, teams);
    profile->app = PICK(&dice, apps);
    component = PICK(&dice, components);
    snprintf(profile->name, sizeof profile->name, "%s-%s-%u", profile->app, component, number);
    snprintf(profile->name_space, sizeof profile->name_space, "%s", "default");
    add_labels(profile, &dice, component);
    add_annotations(profile, &dice);
    add_containers(profile, &dice);
    write_hash(&dice, profile->hash);
    profile->scheduler = "default-scheduler";
    snprintf(profile->time, sizeof profile->time, "2026-01-01T00:00:00Z");
}
