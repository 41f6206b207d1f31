/*
 * Churn. Neighbours: profile.c has the looks of its pods, store.c takes them as texts: so a change
 * costs no more than its bytes, and there can be ten thousand a second. Deployments go by the verbs,
 * and the workloads do the rest about them.
 *
 * Invariant: `credit` is how many changes are owed. Time adds to it, each change that is noted takes
 * from it; as long as it is positive, something is done.
 */
#include "workloads/churn.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "workloads/profile.h"
#include "workloads/workloads_priv.h"
#include "apiserver/verbs.h"

#define NAMESPACE     "churn"
#define MAX_RATE      100000
#define MAX_SLOTS     500
#define N_LOOKS       12
#define PORTION       200 /* changes before others get the lock */
#define N_DEPLOYMENTS 3
#define ROLLOUT_RATE  40    /* from which on rollouts, which are fast, take only a part */
#define ROLLOUT_MS    15000 /* between two, on average */
#define RETRY_MS      1000

/* A pod, or the place for one. */
struct slot {
    bool is_used;
    enum kinf__pod_stage stage;
    unsigned look;
    unsigned n_restarts;
    uint64_t seed; /* of its digests */
    char name[128], uid[40], suffix[8], node[KINF_NAME_MAX], pod_ip[32];
    char created[KINF__RFC3339_SIZE], started[KINF__RFC3339_SIZE], deleted[KINF__RFC3339_SIZE];
};

struct churn {
    struct kinf__controller controller;
    double rate;
    double credit;
    int64_t last_ms; /* when time was added; 0: never */
    bool is_begun;
    struct kinf__resource *pods, *nodes, *deployments;
    struct kinf__dice dice;
    struct kinf__profile looks[N_LOOKS];
    struct kinf__buffer texts[N_LOOKS][KINF__N_POD_STAGES];
    struct slot slots[MAX_SLOTS];
    unsigned n_slots;
    const struct slot *writing; /* whose change is our own */
    uint64_t n_made;
    char last_node[KINF_NAME_MAX];
    struct kinf__buffer text;
    int64_t rollout_ms;
};

static struct churn *of(struct kinf__controller *controller)
{
    return KINF__CONTAINER_OF(controller, struct churn, controller);
}

/* --- noting --- */

static struct slot *find_slot(struct churn *churn, const char *name)
{
    for (unsigned i = 0; i < churn->n_slots; i++) {
        if (churn->slots[i].is_used && strcmp(churn->slots[i].name, name) == 0)
            return &churn->slots[i];
    }
    return NULL;
}

static void note(struct kinf__controller *controller, struct kinf__resource *resource,
                 const struct kinf_object *old, const struct kinf_object *object)
{
    struct churn *churn = of(controller);
    const struct kinf_object *any = object != NULL ? object : old;
    struct slot *slot;

    if (any == NULL || !kinf_str_equal(kinf_object_namespace(any), KINF_STR(NAMESPACE)))
        return;
    churn->credit -= 1;
    if (resource != churn->pods || churn->writing != NULL)
        return;
    slot = find_slot(churn, kinf_object_name(any));
    if (slot != NULL)
        slot->is_used = false;
}

/* --- pods --- */

/* The next one in the order of names; without nodes, one that there is not. */
static void pick_node(struct churn *churn, char name[KINF_NAME_MAX])
{
    struct kinf_snapshot *snapshot kinf_auto_snapshot = kinf__store_snapshot(churn->nodes);
    const struct kinf_object *node;
    struct kinf_cursor cursor;

    kinf_cursor_after(&cursor, snapshot, churn->last_node);
    node = kinf_cursor_next(&cursor);
    if (node == NULL) {
        kinf_cursor_all(&cursor, snapshot);
        node = kinf_cursor_next(&cursor);
    }
    snprintf(churn->last_node, sizeof churn->last_node, "%s",
             node != NULL ? kinf_object_name(node) : "");
    snprintf(name, KINF_NAME_MAX, "%s", node != NULL ? churn->last_node : "node-of-churn");
}

static void begin_pod(struct churn *churn, struct slot *slot)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    uint64_t n = churn->n_made++, a = kinf__dice_next(&churn->dice);
    const struct kinf__profile *look;
    char name[sizeof slot->name];

    memset(slot, 0, sizeof *slot);
    slot->is_used = true;
    slot->stage = KINF__POD_PENDING;
    slot->look = (unsigned)(n % N_LOOKS);
    slot->seed = a;
    look = &churn->looks[slot->look];
    /* Counted, so that no name comes twice. */
    for (int i = 4; i >= 0; i--, n /= sizeof letters - 1)
        slot->suffix[i] = letters[n % (sizeof letters - 1)];
    if (snprintf(name, sizeof name, "%s-%s-%s", look->name, look->hash, slot->suffix) > 0)
        memcpy(slot->name, name, sizeof name);
    snprintf(slot->uid, sizeof slot->uid,
             "%08" PRIx64 "-%04" PRIx64 "-4%03" PRIx64 "-b000-%012" PRIx64, a >> 32,
             a >> 16 & 0xffff, a & 0xfff, churn->n_made);
    snprintf(slot->pod_ip, sizeof slot->pod_ip, "10.%u.%u.%u",
             48 + (unsigned)(churn->n_made / 65024 % 16), (unsigned)(churn->n_made / 254 % 256),
             (unsigned)(churn->n_made % 254 + 1));
    kinf__sim_time(slot->created);
    kinf__sim_time(slot->started);
    kinf__sim_time(slot->deleted);
}

static int put_pod(struct churn *churn, struct kinf__sim *sim, struct slot *slot)
{
    struct kinf__store *store = kinf__sim_store(sim);
    struct kinf__dice digests = { slot->seed + slot->n_restarts };
    char version[24], restarts[12];
    struct kinf__hole_values values = {
        .name = slot->name,
        .uid = slot->uid,
        .version = version,
        .node = slot->node,
        .pod_ip = slot->pod_ip,
        .host_ip = "172.31.0.1",
        .created = slot->created,
        .started = slot->started,
        .deleted = slot->deleted,
        .suffix = slot->suffix,
        .restarts = restarts,
        .dice = &digests,
    };
    int failed;

    snprintf(version, sizeof version, "%" PRIu64, kinf__store_version(store) + 1);
    snprintf(restarts, sizeof restarts, "%u", slot->n_restarts);
    churn->text.len = 0;
    failed = kinf__fill_holes(kinf__buffer_str(&churn->texts[slot->look][slot->stage]), &values,
                              &churn->text);
    churn->writing = slot;
    if (failed == 0)
        failed = kinf__store_put_text(store, churn->pods, kinf__buffer_str(&churn->text), NULL);
    churn->writing = NULL;
    return failed;
}

static int remove_pod(struct churn *churn, struct kinf__sim *sim, struct slot *slot)
{
    int failed;

    churn->writing = slot;
    failed = kinf__store_remove(kinf__sim_store(sim), churn->pods, NAMESPACE, slot->name, NULL);
    churn->writing = NULL;
    slot->is_used = false;
    return failed == KINF_ERR_NOT_FOUND ? 0 : failed;
}

/* Where it goes from here. The faster all is, the longer the lives: most changes are a container's
 * that crashes and comes back. */
static void advance(struct churn *churn, struct slot *slot)
{
    unsigned n_changes = churn->rate >= 1000 ? 60 : 8;

    switch (slot->stage) {
    case KINF__POD_PENDING:
        pick_node(churn, slot->node);
        slot->stage = KINF__POD_BOUND;
        return;
    case KINF__POD_UNREADY:
        slot->n_restarts++;
        slot->stage = KINF__POD_RUNNING;
        break;
    case KINF__POD_RUNNING:
        slot->stage =
            kinf__dice_below(&churn->dice, n_changes) == 0 ? KINF__POD_ENDING : KINF__POD_UNREADY;
        break;
    default:
        slot->stage = slot->stage == KINF__POD_BOUND ? KINF__POD_STARTING : KINF__POD_RUNNING;
    }
    kinf__sim_time(slot->stage == KINF__POD_ENDING ? slot->deleted : slot->started);
}

/* One change: a pod is taken a step further, whichever it is. */
static int change_pod(struct churn *churn, struct kinf__sim *sim)
{
    struct slot *slot = &churn->slots[kinf__dice_below(&churn->dice, churn->n_slots)];
    int failed;

    if (slot->is_used && slot->stage == KINF__POD_ENDING)
        return remove_pod(churn, sim, slot);
    if (slot->is_used)
        advance(churn, slot);
    else
        begin_pod(churn, slot);
    failed = put_pod(churn, sim, slot);
    if (failed < 0)
        slot->is_used = false;
    return failed;
}

/* --- Deployments --- */

static struct cJSON *make_deployment(unsigned number)
{
    return kinf__json_format(
        "{\"metadata\":{\"name\":\"roller-%u\",\"labels\":{\"app\":\"roller-%u\"}},"
        "\"spec\":{\"replicas\":3,\"selector\":{\"matchLabels\":{\"app\":\"roller-%u\"}},"
        "\"template\":{\"metadata\":{\"labels\":{\"app\":\"roller-%u\"}},"
        "\"spec\":{\"containers\":[{\"name\":\"main\","
        "\"image\":\"registry.internal.example/roller:1\"}]}}}}",
        number, number, number, number);
}

/* Another image, or another number of pods. */
static int change_deployment(struct churn *churn, struct kinf__sim *sim)
{
    struct kinf__verb verb = { .sim = sim,
                               .resource = churn->deployments,
                               .name_space = NAMESPACE };
    unsigned number = kinf__dice_below(&churn->dice, N_DEPLOYMENTS);
    KINF__AUTO_DOC *patch = NULL;
    unsigned replicas = 2 + kinf__dice_below(&churn->dice, 4);
    char name[24];
    int failed;

    snprintf(name, sizeof name, "roller-%u", number);
    if (kinf__dice_below(&churn->dice, 3) == 0)
        patch = kinf__json_format("{\"spec\":{\"replicas\":%u}}", replicas);
    else
        patch = kinf__json_format(
            "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":"
            "\"registry.internal.example/roller:%08x\"}]}}}}",
            (unsigned)kinf__dice_next(&churn->dice));
    if (patch == NULL)
        return KINF_ERR_NO_MEMORY;
    verb.name = name;
    failed = kinf__verb_patch(&verb, KINF__PATCH_MERGE, patch, false);
    if (failed < 0 && verb.refusal.code == 404) {
        struct cJSON *deployment = make_deployment(number);

        kinf__verb_release(&verb);
        verb.name = NULL;
        failed = deployment != NULL ? kinf__verb_create(&verb, deployment) : KINF_ERR_NO_MEMORY;
    }
    kinf__verb_release(&verb);
    return failed;
}

/* --- working --- */

static int make_namespace(struct kinf__sim *sim)
{
    struct kinf__verb verb = { .sim = sim,
                               .resource =
                                   kinf__store_find(kinf__sim_store(sim), "", "namespaces") };
    struct cJSON *tree = kinf__json_format("{\"metadata\":{\"name\":\"" NAMESPACE "\"}}");
    int failed = tree != NULL ? kinf__verb_create(&verb, tree) : KINF_ERR_NO_MEMORY;

    if (failed < 0 && verb.refusal.code == 409)
        failed = 0;
    kinf__verb_release(&verb);
    return failed;
}

static int begin(struct churn *churn, struct kinf__sim *sim, int64_t now_ms)
{
    struct kinf__store *store = kinf__sim_store(sim);

    churn->pods = kinf__store_find(store, "", "pods");
    churn->nodes = kinf__store_find(store, "", "nodes");
    churn->deployments = kinf__store_find(store, "apps", "deployments");
    if (churn->pods == NULL || churn->nodes == NULL || churn->deployments == NULL ||
        make_namespace(sim) < 0)
        return KINF_ERR_NO_MEMORY;
    churn->is_begun = true;
    churn->credit = 0;
    churn->last_ms = now_ms;
    churn->rollout_ms = now_ms + ROLLOUT_MS / 5;
    return 0;
}

/* What could not be done in time is not made up for, beyond a second's worth. */
static void add_time(struct churn *churn, int64_t now_ms)
{
    double most = churn->rate > 1 ? churn->rate : 1;

    churn->credit += (double)(now_ms - churn->last_ms) * churn->rate / 1000;
    churn->last_ms = now_ms;
    if (churn->credit > most)
        churn->credit = most;
}

static int change_something(struct churn *churn, struct kinf__sim *sim, int64_t now_ms)
{
    if (churn->rate < ROLLOUT_RATE || now_ms < churn->rollout_ms)
        return change_pod(churn, sim);
    churn->rollout_ms =
        now_ms + ROLLOUT_MS / 2 + (int64_t)kinf__dice_below(&churn->dice, ROLLOUT_MS);
    return change_deployment(churn, sim);
}

static int64_t work(struct kinf__controller *controller, struct kinf__sim *sim, int64_t now_ms)
{
    struct churn *churn = of(controller);

    if (!churn->is_begun && begin(churn, sim, now_ms) < 0)
        return now_ms + RETRY_MS;
    add_time(churn, now_ms);
    for (int i = 0; i < PORTION && churn->credit >= 1; i++) {
        if (change_something(churn, sim, now_ms) < 0)
            return now_ms + RETRY_MS;
    }
    if (churn->credit >= 1)
        return now_ms;
    return now_ms + 1 + (int64_t)((1 - churn->credit) / churn->rate * 1000);
}

/* --- life --- */

static void free_churn(struct kinf__controller *controller)
{
    struct churn *churn = of(controller);

    for (int i = 0; i < N_LOOKS; i++) {
        for (int stage = 0; stage < KINF__N_POD_STAGES; stage++)
            kinf__buffer_release(&churn->texts[i][stage]);
    }
    kinf__buffer_release(&churn->text);
    free(churn);
}

static int parse_rate(const char *text, double *ret_rate, struct kinf_error *err)
{
    char *end;
    double rate = strtod(text, &end);

    if (end == text || strcmp(end, "/s") != 0 || !(rate > 0) || rate > MAX_RATE)
        return kinf__error_set(err, KINF_ERR_CONFIG,
                               "\"%.64s\" is no rate of changes, as 50/s is, up to %d/s", text,
                               MAX_RATE);
    *ret_rate = rate;
    return 0;
}

static int write_looks(struct churn *churn)
{
    for (unsigned i = 0; i < N_LOOKS; i++) {
        struct kinf__profile *look = &churn->looks[i];

        kinf__profile_init(look, kinf__dice_next(&churn->dice), i);
        snprintf(look->name_space, sizeof look->name_space, NAMESPACE);
        look->scheduler = KINF__CHURN_SCHEDULER;
        kinf__sim_time(look->time);
        for (int stage = 0; stage < KINF__N_POD_STAGES; stage++) {
            if (kinf__profile_write_pod(look, (enum kinf__pod_stage)stage,
                                        &churn->texts[i][stage]) < 0)
                return KINF_ERR_NO_MEMORY;
        }
    }
    return 0;
}

int kinf__churn_add(struct kinf__sim *sim, const char *rate,
                    struct kinf__controller **ret_controller, struct kinf_error *err)
{
    static const struct kinf__controller_ops ops = { note, work, free_churn };
    struct churn *churn;
    double changes_per_s = 0;
    int failed = parse_rate(rate, &changes_per_s, err);

    if (failed < 0)
        return failed;
    churn = kinf__controller_new(sizeof *churn, &ops, err);
    if (churn == NULL)
        return KINF_ERR_NO_MEMORY;
    churn->rate = changes_per_s;
    churn->n_slots = changes_per_s < 200 ? 4 + (unsigned)(2 * changes_per_s) : MAX_SLOTS;
    kinf__store_lock(kinf__sim_store(sim));
    churn->dice.state = kinf__sim_random(sim);
    kinf__store_unlock(kinf__sim_store(sim));
    if (write_looks(churn) < 0) {
        free_churn(&churn->controller);
        return kinf__error_no_memory(err);
    }
    kinf__sim_add_controller(sim, &churn->controller);
    if (ret_controller != NULL)
        *ret_controller = &churn->controller;
    return 0;
}
