/*
 * Events. Neighbours: controllers record, verbs.c stores. At most RATE_PER_S a second beyond a
 * burst: a rollout of thousands of pods shall not be about its events.
 */
#include "workloads/recorder.h"

#include <inttypes.h>
#include <stdarg.h>
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

static struct cJSON *make_event(const struct kinf__happening *happening, const char *name,
                                const char *message)
{
    const struct cJSON *object = happening->object;
    KINF__AUTO_DOC *event = cJSON_CreateObject();
    struct cJSON *metadata = kinf__doc_object(event, "metadata");
    struct cJSON *about = kinf__doc_object(event, "involvedObject");
    struct cJSON *source = kinf__doc_object(event, "source");
    const char *name_space = kinf__doc_text(object, "metadata", "namespace", NULL);
    char time[KINF__TIME_SIZE];

    kinf__sim_time(time);
    if (metadata == NULL || about == NULL || source == NULL ||
        kinf__doc_set_text(event, "apiVersion", "v1") < 0 ||
        kinf__doc_set_text(event, "kind", "Event") < 0 ||
        kinf__doc_set_text(metadata, "name", name) < 0 ||
        kinf__doc_set_text(metadata, "namespace", *name_space != '\0' ? name_space : "default") <
            0 ||
        kinf__doc_set_text(about, "apiVersion", happening->api_version) < 0 ||
        kinf__doc_set_text(about, "kind", happening->kind) < 0 ||
        kinf__doc_set_text(about, "name", kinf__doc_text(object, "metadata", "name", NULL)) < 0 ||
        (*name_space != '\0' && kinf__doc_set_text(about, "namespace", name_space) < 0) ||
        kinf__doc_set_text(about, "uid", kinf__doc_text(object, "metadata", "uid", NULL)) < 0 ||
        kinf__doc_set_text(about, "resourceVersion",
                           kinf__doc_text(object, "metadata", "resourceVersion", NULL)) < 0 ||
        kinf__doc_set_text(event, "reason", happening->reason) < 0 ||
        kinf__doc_set_text(event, "message", message) < 0 ||
        kinf__doc_set_text(source, "component", happening->component) < 0 ||
        kinf__doc_set_text(event, "firstTimestamp", time) < 0 ||
        kinf__doc_set_text(event, "lastTimestamp", time) < 0 ||
        kinf__doc_set_integer(event, "count", 1) < 0 ||
        kinf__doc_set_text(event, "type", happening->type) < 0 ||
        kinf__doc_set_text(event, "reportingComponent", happening->component) < 0 ||
        kinf__doc_set_text(event, "reportingInstance", "") < 0)
        return NULL;
    return KINF__TAKE(event);
}

static void record_new(struct kinf__recorder *recorder, struct kinf__verb *verb,
                       const struct kinf__happening *happening, uint64_t hash, const char *message)
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
    event = make_event(happening, entry->name, message);
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
    char time[KINF__TIME_SIZE];

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
                  const struct kinf__happening *happening, const char *fmt, ...)
{
    struct kinf__verb verb = { .sim = sim, .manager = happening->component };
    char message[512], text[768];
    struct kinf__hmap_node *node;
    uint64_t hash;
    va_list args;

    verb.resource = kinf__store_find(kinf__sim_store(sim), "", "events");
    if (verb.resource == NULL || !is_allowed(recorder, now_ms))
        return;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    snprintf(text, sizeof text, "%s/%s/%s",
             kinf__doc_text(happening->object, "metadata", "uid", NULL), happening->reason,
             message);
    hash = kinf__hash(kinf_str_from(text));
    node = kinf__hmap_first_with_hash(&recorder->by_text, hash);
    if (node != NULL) {
        record_again(recorder, &verb, KINF__CONTAINER_OF(node, struct entry, node));
    } else {
        if (recorder->n_events >= KINF__MAX_EVENTS)
            delete_oldest(recorder, sim, verb.resource);
        record_new(recorder, &verb, happening, hash, message);
    }
    kinf__verb_release(&verb);
}
