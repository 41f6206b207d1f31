/*
 * Decisions in a hash map and a list by use. Neighbours: review.c makes what is decided.
 */
#include "serve/decisions.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    struct kinf__hmap_node in_map;
    struct kinf__list in_list;
    struct kinf__question question;
    struct kinf__decision decision;
};

/* A part of a cryptographic hash is a hash that users cannot aim at one bucket. */
static uint64_t hash_of(const struct kinf__question *question)
{
    uint64_t hash;

    memcpy(&hash, question->digest, sizeof hash);
    return hash;
}

static struct entry *find(const struct kinf__decisions *decisions,
                          const struct kinf__question *question)
{
    struct kinf__hmap_node *node = kinf__hmap_first_with_hash(&decisions->map, hash_of(question));

    for (; node != NULL; node = kinf__hmap_next_with_hash(node)) {
        struct entry *entry = KINF__CONTAINER_OF(node, struct entry, in_map);

        if (memcmp(entry->question.digest, question->digest, sizeof question->digest) == 0)
            return entry;
    }
    return NULL;
}

static void drop(struct kinf__decisions *decisions, struct entry *entry)
{
    kinf__hmap_remove(&decisions->map, &entry->in_map);
    kinf__list_remove(&entry->in_list);
    free(entry->decision.text);
    free(entry);
}

static struct entry *oldest(struct kinf__decisions *decisions)
{
    return KINF__LIST_ENTRY(decisions->by_use.next, struct entry, in_list);
}

void kinf__decisions_init(struct kinf__decisions *decisions, size_t max)
{
    decisions->map = (struct kinf__hmap)KINF__HMAP_INIT;
    decisions->max = max;
    kinf__list_init(&decisions->by_use);
}

void kinf__decisions_release(struct kinf__decisions *decisions)
{
    while (!kinf__list_is_empty(&decisions->by_use))
        drop(decisions, oldest(decisions));
    kinf__hmap_release(&decisions->map);
}

const struct kinf__decision *kinf__decisions_find(struct kinf__decisions *decisions,
                                                  const struct kinf__question *question,
                                                  int64_t now_ms, bool or_stale)
{
    struct entry *entry = find(decisions, question);
    bool is_fresh = entry != NULL && entry->decision.until_ms > now_ms;
    bool is_kept = is_fresh || (entry != NULL && entry->decision.stale_until_ms > now_ms);

    if (entry != NULL && !is_kept)
        drop(decisions, entry);
    if (!is_kept || !(is_fresh || or_stale))
        return NULL;
    kinf__list_remove(&entry->in_list);
    kinf__list_push_back(&decisions->by_use, &entry->in_list);
    return &entry->decision;
}

static int add(struct kinf__decisions *decisions, struct entry *entry)
{
    while (decisions->map.n_nodes >= decisions->max)
        drop(decisions, oldest(decisions));
    if (kinf__hmap_insert(&decisions->map, &entry->in_map, hash_of(&entry->question)) < 0)
        return KINF_ERR_NO_MEMORY;
    kinf__list_push_back(&decisions->by_use, &entry->in_list);
    return 0;
}

int kinf__decisions_put(struct kinf__decisions *decisions, const struct kinf__question *question,
                        const struct kinf__decision *decision)
{
    struct entry *entry = find(decisions, question);

    /* An old one must not outlive its successor for want of memory. */
    if (entry != NULL)
        drop(decisions, entry);
    entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        return KINF_ERR_NO_MEMORY;
    entry->question = *question;
    entry->decision = *decision;
    if (decision->text != NULL)
        entry->decision.text = strdup(decision->text);
    if ((decision->text != NULL && entry->decision.text == NULL) || add(decisions, entry) < 0) {
        free(entry->decision.text);
        free(entry);
        return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

bool kinf__decisions_check(const struct kinf__decisions *decisions)
{
    size_t n = 0;

    KINF__LIST_FOR_EACH (node, &decisions->by_use) {
        struct entry *entry = KINF__LIST_ENTRY(node, struct entry, in_list);

        if (find(decisions, &entry->question) != entry)
            return false;
        n++;
    }
    return n == decisions->map.n_nodes && n <= decisions->max;
}
