/*
 * Events. Neighbours: controllers record, verbs.c stores. At most RATE_PER_S a second beyond a
 * burst: a rollout of thousands of pods shall not be about its events.
 */
#include "workloads/recorder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "apiserver/verbs.h"

#define RATE_PER_S 50
#define BURST      200

/* One that is stored. */
struct entry {
    struct kinf__hmap_node node; /* by what it says */
    struct kinf__list link;
    uint64_t n_times;
    char name[KINF_NAME_MAX];
    char name_space[KINF_NAME_MAX];
};

void kinf__recorder_init(struct kinf__recorder *recorder)
{
    memset(recorder, 0, sizeof *recorder);
    kinf__list_init(&recorder->oldest);
}

static void forget(struct kinf__recorder *recorder, struct entry *entry)
{
    kinf__hmap_remove(&recorder->by_text, &entry->node);
    kinf__list_remove(&entry->link);
    recorder->n_events--;
    free(entry);
}

void kinf__recorder_release(struct kinf__recorder *recorder)
{
    KINF__LIST_FOR_EACH_SAFE (node, &recorder->oldest)
        forget(recorder, KINF__LIST_ENTRY(node, struct entry, link));
    kinf__hmap_release(&recorder->by_text);
}

static bool is_allowed(struct kinf__recorder *recorder, int64_t now_ms)
{
    const int64_t cost_ms = 1000 / RATE_PER_S;

    if (recorder->full_ms < now_ms)
        recorder->full_ms = now_ms;
    if (recorder->full_ms - now_ms >= BURST * cost_ms)
        return false;
    recorder->full_ms += cost_ms;
    return true;
}

static void delete_oldest(struct kinf__recorder *recorder, struct kinf__sim *sim,
                          struct kinf__resource *events)
{
    struct entry *entry = KINF__LIST_ENTRY(recorder->oldest.next, struct entry, link);

    /* A namespace that ended has taken it along. */
    (void)!kinf__store_remove(kinf__sim_store(sim), events, entry->name_space, entry->name, NULL);
    forget(recorder, entry);
}

/* The message alone may need escapes. */
static struct cJSON *make_event(const struct kinf__happening *happening, const struct entry *entry)
{
    const struct cJSON *object = happening->object;
    const char *name_space = kinf__doc_text(object, "metadata", "namespace", NULL);
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    KINF__AUTO_DOC *event = NULL;
    char time[KINF__RFC3339_SIZE];

    kinf__sim_time(time);
    if (kinf__buffer_printf(
            &text,
            "{\"apiVersion\":\"v1\",\"kind\":\"Event\","
            "\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\"},"
            "\"involvedObject\":{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"name\":\"%s\","
            "\"namespace\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"%s\"},"
            "\"source\":{\"component\":\"%s\"},\"reason\":\"%s\",\"message\":\"\","
            "\"firstTimestamp\":\"%s\",\"lastTimestamp\":\"%s\",\"count\":1,\"type\":\"%s\","
            "\"reportingComponent\":\"%s\",\"reportingInstance\":\"\"}",
            entry->name, entry->name_space, happening->api_version, happening->kind,
            kinf__doc_text(object, "metadata", "name", NULL), name_space,
            kinf__doc_text(object, "metadata", "uid", NULL),
            kinf__doc_text(object, "metadata", "resourceVersion", NULL), happening->component,
            happening->reason, time, time, happening->type, happening->component) < 0 ||
        kinf__doc_parse(kinf__buffer_str(&text), &event, NULL) < 0 ||
        kinf__doc_set_text(event, "message", happening->message) < 0)
        return NULL;
    if (*name_space == '\0')
        kinf__doc_remove(kinf__doc_get(event, "involvedObject"), "namespace");
    return KINF__TAKE(event);
}

static void record_new(struct kinf__recorder *recorder, struct kinf__verb *verb,
                       const struct kinf__happening *happening, uint64_t hash)
{
    const char *name_space = kinf__doc_text(happening->object, "metadata", "namespace", NULL);
    struct entry *entry = calloc(1, sizeof *entry);
    struct cJSON *event;

    if (entry == NULL)
        return;
    entry->n_times = 1;
    /* The time in its name keeps those of one second in their order. */
    snprintf(entry->name, sizeof entry->name, "%.200s.%016" PRIx64,
             kinf__doc_text(happening->object, "metadata", "name", NULL),
             (uint64_t)kinf__clock_wall_ms() << 20 | (recorder->n_recorded++ & 0xfffff));
    snprintf(entry->name_space, sizeof entry->name_space, "%s",
             *name_space != '\0' ? name_space : "default");
    event = make_event(happening, entry);
    /* A namespace that is ending takes none. */
    if (event == NULL || kinf__verb_create(verb, event) < 0 ||
        kinf__hmap_insert(&recorder->by_text, &entry->node, hash) < 0) {
        free(entry);
        return;
    }
    kinf__list_push_back(&recorder->oldest, &entry->link);
    recorder->n_events++;
}

static void record_again(struct kinf__recorder *recorder, struct kinf__verb *verb,
                         struct entry *entry)
{
    KINF__AUTO_DOC *patch = cJSON_CreateObject();
    char time[KINF__RFC3339_SIZE];

    kinf__sim_time(time);
    verb->name_space = entry->name_space;
    verb->name = entry->name;
    if (patch == NULL || kinf__doc_set_integer(patch, "count", (int64_t)++entry->n_times) < 0 ||
        kinf__doc_set_text(patch, "lastTimestamp", time) < 0)
        return;
    if (kinf__verb_patch(verb, KINF__PATCH_MERGE, patch, false) < 0)
        forget(recorder, entry);
}

void kinf__record(struct kinf__recorder *recorder, struct kinf__sim *sim, int64_t now_ms,
                  const struct kinf__happening *happening)
{
    struct kinf__verb verb = { .sim = sim, .manager = happening->component };
    char text[768];
    struct kinf__hmap_node *node;
    uint64_t hash;

    verb.resource = kinf__store_find(kinf__sim_store(sim), "", "events");
    if (verb.resource == NULL || !is_allowed(recorder, now_ms))
        return;
    snprintf(text, sizeof text, "%s/%s/%s",
             kinf__doc_text(happening->object, "metadata", "uid", NULL), happening->reason,
             happening->message);
    hash = kinf__hash(kinf_str_from(text));
    node = kinf__hmap_first_with_hash(&recorder->by_text, hash);
    if (node != NULL) {
        record_again(recorder, &verb, KINF__CONTAINER_OF(node, struct entry, node));
    } else {
        if (recorder->n_events >= KINF__MAX_EVENTS)
            delete_oldest(recorder, sim, verb.resource);
        record_new(recorder, &verb, happening, hash);
    }
    kinf__verb_release(&verb);
}
