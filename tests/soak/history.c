/*
 * An array of entries for each object. Neighbours: writer.c fills it, stream.c looks things up.
 */
#include "soak/history.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const struct soak_type soak_types[SOAK_N_TYPES] = {
    { "pods", "/api/v1", "pods", "Pod", 150, 40 },
    { "deployments.apps", "/apis/apps/v1", "deployments", "Deployment", 30, 10 },
    { "widgets.soak.kinformer.dev", "/apis/soak.kinformer.dev/v1", "widgets", "Widget", 30, 10 },
    { "leases.coordination.k8s.io", "/apis/coordination.k8s.io/v1", "leases", "Lease", 10, 40 },
};

struct object {
    struct soak_entry *entries;
    size_t n_entries;
    size_t size;
    uint64_t n_forgotten;     /* before entries[0] */
    uint64_t n_old;           /* so many may be forgotten the next time */
    struct soak_entry backup; /* version.uid 0: it was not there */
    bool is_in_flight;
};

static struct object *objects;
static uint64_t n_writes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* --- names --- */

static unsigned n_of_type(unsigned type)
{
    return soak_types[type].n_names * SOAK_N_NAMESPACES;
}

size_t soak_n_objects(void)
{
    size_t n = 0;

    for (unsigned type = 0; type < SOAK_N_TYPES; type++)
        n += n_of_type(type);
    return n;
}

/* The number behind a prefix; SOAK_NONE if there is anything else. */
static uint64_t number_behind(struct kinf_str text, const char *prefix)
{
    size_t len = strlen(prefix);
    uint64_t number = 0;

    if (text.len <= len || text.len > len + 6 || memcmp(text.bytes, prefix, len) != 0)
        return SOAK_NONE;
    for (size_t i = len; i < text.len; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9')
            return SOAK_NONE;
        number = number * 10 + (uint64_t)(text.bytes[i] - '0');
    }
    return number;
}

uint64_t soak_object_id(unsigned type, struct kinf_str name_space, struct kinf_str name)
{
    uint64_t in_namespace = number_behind(name_space, "soak-"), n = number_behind(name, "o-");
    uint64_t first = 0;

    if (type >= SOAK_N_TYPES || in_namespace >= SOAK_N_NAMESPACES || n >= soak_types[type].n_names)
        return SOAK_NONE;
    for (unsigned i = 0; i < type; i++)
        first += n_of_type(i);
    return first + in_namespace * soak_types[type].n_names + n;
}

uint64_t soak_key_id(unsigned type, struct kinf_str key)
{
    const char *slash = memchr(key.bytes, '/', key.len);
    size_t len = slash != NULL ? (size_t)(slash - key.bytes) : 0;

    if (slash == NULL)
        return SOAK_NONE;
    return soak_object_id(type, (struct kinf_str){ key.bytes, len },
                          (struct kinf_str){ slash + 1, key.len - len - 1 });
}

unsigned soak_find_type(struct kinf_str resource)
{
    unsigned type = 0;

    while (type < SOAK_N_TYPES && !text_is(resource, soak_types[type].resource))
        type++;
    return type;
}

unsigned soak_type_of(uint64_t id)
{
    unsigned type = 0;

    for (; id >= n_of_type(type); type++)
        id -= n_of_type(type);
    return type;
}

static uint64_t within_type(uint64_t id)
{
    for (unsigned type = 0; id >= n_of_type(type); type++)
        id -= n_of_type(type);
    return id;
}

unsigned soak_namespace_of(uint64_t id)
{
    return (unsigned)(within_type(id) / soak_types[soak_type_of(id)].n_names);
}

unsigned soak_name_of(uint64_t id)
{
    return (unsigned)(within_type(id) % soak_types[soak_type_of(id)].n_names);
}

const char *soak_describe(uint64_t id)
{
    static _Thread_local char text[80];

    snprintf(text, sizeof text, "%s soak-%u/o-%u", soak_types[soak_type_of(id)].resource,
             soak_namespace_of(id), soak_name_of(id));
    return text;
}

int64_t soak_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- the history --- */

static void make_objects(void)
{
    objects = calloc(soak_n_objects(), sizeof *objects);
    if (objects == NULL)
        abort();
}

void history_lock(void)
{
    pthread_once(&once, make_objects);
    pthread_mutex_lock(&lock);
}

void history_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static void append(struct object *object, struct soak_entry entry)
{
    if (object->n_entries == object->size) {
        object->size = object->size != 0 ? 2 * object->size : 8;
        object->entries = realloc(object->entries, object->size * sizeof entry);
        if (object->entries == NULL)
            abort();
    }
    entry.at_ms = soak_now_ms();
    object->entries[object->n_entries++] = entry;
    n_writes += entry.version.rv != 0 || entry.is_deletion;
}

void history_begin(uint64_t id)
{
    objects[id].is_in_flight = true;
}

void history_note(uint64_t id, const struct version *version)
{
    const struct soak_entry *live = history_live(id);

    if (live == NULL || memcmp(&live->version, version, sizeof *version) != 0)
        append(&objects[id], (struct soak_entry){ .version = *version });
    objects[id].is_in_flight = false;
}

void history_note_gone(uint64_t id, uint64_t rv)
{
    const struct soak_entry *live = history_live(id);

    if (live != NULL) {
        struct soak_entry entry = { .version = live->version, .is_deletion = true };

        entry.version.rv = rv;
        append(&objects[id], entry);
    }
    objects[id].is_in_flight = false;
}

void history_note_marked(uint64_t id, uint64_t sum)
{
    const struct soak_entry *live = history_live(id);

    if (live != NULL)
        append(&objects[id], (struct soak_entry){ .version = { live->version.uid, 0, sum } });
}

bool history_is_in_flight(uint64_t id)
{
    return objects[id].is_in_flight;
}

const struct soak_entry *history_head(uint64_t id)
{
    const struct object *object = &objects[id];

    return object->n_entries != 0 ? &object->entries[object->n_entries - 1] : NULL;
}

const struct soak_entry *history_live(uint64_t id)
{
    const struct soak_entry *head = history_head(id);

    return head != NULL && !head->is_deletion ? head : NULL;
}

uint64_t history_n_entries(uint64_t id)
{
    return objects[id].n_forgotten + objects[id].n_entries;
}

static struct soak_entry *entry_at(uint64_t id, uint64_t number)
{
    return &objects[id].entries[number - objects[id].n_forgotten];
}

const struct soak_entry *history_entry(uint64_t id, uint64_t number)
{
    return entry_at(id, number);
}

static uint64_t first_from(uint64_t id, uint64_t from)
{
    return from > objects[id].n_forgotten ? from : objects[id].n_forgotten;
}

static bool may_have_sum(const struct soak_entry *entry, uint64_t sum)
{
    return entry->version.sum == sum || entry->version.sum == 0;
}

/* Whether it is this state. Of one that is marked, what nobody knew becomes known. */
static bool is_state(struct soak_entry *entry, const struct version *version)
{
    bool is_marked = entry->version.rv == 0 && entry->version.uid == version->uid &&
                     may_have_sum(entry, version->sum);

    if (entry->is_deletion)
        return false;
    if (is_marked)
        entry->version = *version;
    return memcmp(&entry->version, version, sizeof *version) == 0;
}

uint64_t history_find(uint64_t id, uint64_t from, const struct version *version)
{
    for (uint64_t i = first_from(id, from); i < history_n_entries(id); i++) {
        if (is_state(entry_at(id, i), version))
            return i;
    }
    return SOAK_NONE;
}

uint64_t history_find_deletion(uint64_t id, uint64_t from, uint64_t uid, uint64_t rv, uint64_t sum)
{
    for (uint64_t i = first_from(id, from); i < history_n_entries(id); i++) {
        struct soak_entry *entry = entry_at(id, i);

        if (!entry->is_deletion || entry->version.uid != uid ||
            (sum != 0 && !may_have_sum(entry, sum)) ||
            (rv != 0 && entry->version.rv != 0 && entry->version.rv != rv))
            continue;
        if (rv != 0)
            entry->version.rv = rv;
        if (sum != 0)
            entry->version.sum = sum;
        return i;
    }
    return SOAK_NONE;
}

bool history_has_sum(uint64_t id, uint64_t from, uint64_t to, uint64_t sum)
{
    for (uint64_t i = first_from(id, from); i < to; i++) {
        const struct soak_entry *entry = history_entry(id, i);

        if (!entry->is_deletion && may_have_sum(entry, sum))
            return true;
    }
    return false;
}

void history_forget_old(void)
{
    for (size_t id = 0; id < soak_n_objects(); id++) {
        struct object *object = &objects[id];
        size_t n = object->n_old > object->n_forgotten ? object->n_old - object->n_forgotten : 0;

        object->n_entries -= n;
        object->n_forgotten += n;
        if (n != 0)
            memmove(object->entries, object->entries + n,
                    object->n_entries * sizeof *object->entries);
        object->n_old = object->n_entries != 0 ? history_n_entries(id) - 1 : 0;
    }
}

void history_back_up(void)
{
    for (size_t id = 0; id < soak_n_objects(); id++) {
        const struct soak_entry *live = history_live(id);

        objects[id].backup = live != NULL ? *live : (struct soak_entry){ .at_ms = 0 };
    }
}

void history_begin_restore(void)
{
    for (size_t id = 0; id < soak_n_objects(); id++)
        history_begin(id);
}

void history_restore(void)
{
    for (size_t id = 0; id < soak_n_objects(); id++) {
        const struct version *backup = &objects[id].backup.version;
        const struct soak_entry *live = history_live(id);

        if (live != NULL && live->version.uid != backup->uid)
            history_note_gone(id, 0);
        if (backup->uid != 0)
            history_note(id, backup);
        objects[id].is_in_flight = false;
    }
}

bool history_is_changed(uint64_t id)
{
    const struct soak_entry *live = history_live(id);

    return live != NULL &&
           memcmp(&live->version, &objects[id].backup.version, sizeof live->version) != 0;
}

uint64_t history_n_writes(void)
{
    return n_writes;
}
