/*
 * The keys that failed. Neighbours: reflector.c. Invariants: an entry is in both the map and the
 * list; n_quarantined counts those that are quarantined.
 */
#include "reflector/quarantine.h"

#include <string.h>

#include "base/error.h"

struct entry {
    struct kinf__hmap_node by_key;
    struct kinf__list in_entries;
    uint64_t list_no; /* of the last failure; 0: of one whose quarantine was lifted */
    int64_t failed_ms;
    bool is_quarantined;
    char key[];
};

static struct entry *entry_of(struct kinf__list *node)
{
    return KINF__LIST_ENTRY(node, struct entry, in_entries);
}

static struct entry *find(const struct kinf__quarantine *quarantine, const char *key)
{
    struct kinf__hmap_node *node =
        kinf__hmap_first_with_hash(&quarantine->by_key, kinf__hash(kinf_str_from(key)));

    for (; node != NULL; node = kinf__hmap_next_with_hash(node)) {
        struct entry *entry = KINF__CONTAINER_OF(node, struct entry, by_key);

        if (strcmp(entry->key, key) == 0)
            return entry;
    }
    return NULL;
}

static int add(struct kinf__quarantine *quarantine, const char *key, struct entry **ret_entry)
{
    size_t size = strlen(key) + 1;
    struct entry *entry = malloc(sizeof *entry + size);

    if (entry == NULL)
        return KINF_ERR_NO_MEMORY;
    *entry = (struct entry){ .list_no = quarantine->list_no };
    memcpy(entry->key, key, size);
    if (kinf__hmap_insert(&quarantine->by_key, &entry->by_key, kinf__hash(kinf_str_from(key))) <
        0) {
        free(entry);
        return KINF_ERR_NO_MEMORY;
    }
    kinf__list_push_back(&quarantine->entries, &entry->in_entries);
    *ret_entry = entry;
    return 0;
}

static void forget(struct kinf__quarantine *quarantine, struct entry *entry)
{
    kinf__hmap_remove(&quarantine->by_key, &entry->by_key);
    kinf__list_remove(&entry->in_entries);
    free(entry);
}

static void lift(struct kinf__quarantine *quarantine, struct entry *entry)
{
    entry->is_quarantined = false;
    entry->list_no = 0;
    quarantine->n_quarantined--;
}

void kinf__quarantine_init(struct kinf__quarantine *quarantine)
{
    *quarantine = (struct kinf__quarantine){ .by_key = KINF__HMAP_INIT, .list_no = 1 };
    kinf__list_init(&quarantine->entries);
}

void kinf__quarantine_release(struct kinf__quarantine *quarantine)
{
    KINF__LIST_FOR_EACH_SAFE (node, &quarantine->entries)
        forget(quarantine, entry_of(node));
    kinf__hmap_release(&quarantine->by_key);
    quarantine->n_quarantined = 0;
}

void kinf__quarantine_begin_list(struct kinf__quarantine *quarantine)
{
    quarantine->list_no++;
}

void kinf__quarantine_end_list(struct kinf__quarantine *quarantine, int64_t now_ms)
{
    KINF__LIST_FOR_EACH_SAFE (node, &quarantine->entries) {
        struct entry *entry = entry_of(node);

        if (entry->is_quarantined && entry->list_no != quarantine->list_no)
            lift(quarantine, entry);
        if (!entry->is_quarantined && now_ms - entry->failed_ms >= KINF__QUARANTINE_MEMORY_MS)
            forget(quarantine, entry);
    }
}

static enum kinf__quarantine_verdict judge(struct kinf__quarantine *quarantine, struct entry *entry,
                                           bool is_first)
{
    if (entry->is_quarantined) {
        entry->list_no = quarantine->list_no;
        return KINF__QUARANTINE_KNOWN;
    }
    if (is_first || entry->list_no == quarantine->list_no)
        return KINF__QUARANTINE_RELIST;
    entry->is_quarantined = true;
    entry->list_no = quarantine->list_no;
    quarantine->n_quarantined++;
    return KINF__QUARANTINE_NEW;
}

int kinf__quarantine_fail(struct kinf__quarantine *quarantine, const char *key, int64_t now_ms,
                          enum kinf__quarantine_verdict *ret_verdict, struct kinf_error *err)
{
    struct entry *entry = find(quarantine, key);
    bool is_first = entry == NULL;

    if (entry == NULL && quarantine->by_key.n_nodes >= KINF__QUARANTINE_MAX_KEYS) {
        entry = find(quarantine, "");
        is_first = entry == NULL;
        key = "";
    }
    if (entry == NULL && add(quarantine, key, &entry) < 0)
        return kinf__error_no_memory(err);
    if (!entry->is_quarantined && !is_first &&
        now_ms - entry->failed_ms >= KINF__QUARANTINE_MEMORY_MS) {
        entry->list_no = quarantine->list_no;
        is_first = true;
    }
    entry->failed_ms = now_ms;
    *ret_verdict = judge(quarantine, entry, is_first);
    return 0;
}

bool kinf__quarantine_decoded(struct kinf__quarantine *quarantine, const char *key)
{
    struct entry *entry = quarantine->n_quarantined != 0 ? find(quarantine, key) : NULL;

    if (entry == NULL || !entry->is_quarantined)
        return false;
    lift(quarantine, entry);
    return true;
}

bool kinf__quarantine_check(const struct kinf__quarantine *quarantine)
{
    size_t n_entries = 0, n_quarantined = 0;

    KINF__LIST_FOR_EACH (node, &quarantine->entries) {
        struct entry *entry = entry_of(node);

        if (find(quarantine, entry->key) != entry || entry->list_no > quarantine->list_no)
            return false;
        n_entries++;
        n_quarantined += entry->is_quarantined;
    }
    return n_entries == quarantine->by_key.n_nodes && n_quarantined == quarantine->n_quarantined;
}
