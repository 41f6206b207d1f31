/*
 * What was applied, by object, and comparing it with what is there.
 */
#include "controller/applied.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define MAX_DEPTH 200 /* deeper is not covered, and applied */

struct entry {
    struct kinf__hmap_node node;
    const struct kinf_type *type;
    bool is_status;
    uint64_t hash; /* of the text */
    size_t len;
    char key[];
};

static struct entry *entry_of(struct kinf__hmap_node *node)
{
    return KINF__CONTAINER_OF(node, struct entry, node);
}

static struct entry *find(const struct kinf__applied *applied, struct kinf__applied_to to)
{
    const struct kinf_str key = { to.key, strlen(to.key) };
    struct kinf__hmap_node *node = kinf__hmap_first_with_hash(&applied->objects, kinf__hash(key));

    for (; node != NULL; node = kinf__hmap_next_with_hash(node)) {
        const struct entry *entry = entry_of(node);

        if (entry->type == to.type && entry->is_status == to.is_status &&
            strcmp(entry->key, to.key) == 0)
            return entry_of(node);
    }
    return NULL;
}

void kinf__applied_release(struct kinf__applied *applied)
{
    for (size_t i = 0; i < applied->objects.n_buckets; i++) {
        while (applied->objects.buckets[i] != NULL) {
            struct entry *entry = entry_of(applied->objects.buckets[i]);

            kinf__hmap_remove(&applied->objects, &entry->node);
            free(entry);
        }
    }
    kinf__hmap_release(&applied->objects);
    *applied = (struct kinf__applied){ KINF__HMAP_INIT };
}

bool kinf__applied_is(const struct kinf__applied *applied, struct kinf__applied_to to,
                      struct kinf_str json)
{
    const struct entry *entry = find(applied, to);

    return entry != NULL && entry->len == json.len && entry->hash == kinf__hash(json);
}

static struct entry *add(struct kinf__applied *applied, struct kinf__applied_to to)
{
    size_t size = strlen(to.key) + 1;
    struct entry *entry = malloc(sizeof *entry + size);

    if (entry == NULL)
        return NULL;
    entry->type = to.type;
    entry->is_status = to.is_status;
    memcpy(entry->key, to.key, size);
    if (kinf__hmap_insert(&applied->objects, &entry->node, kinf__hash(kinf_str_from(to.key))) < 0) {
        free(entry);
        return NULL;
    }
    return entry;
}

void kinf__applied_set(struct kinf__applied *applied, struct kinf__applied_to to,
                       struct kinf_str json)
{
    struct entry *entry = find(applied, to);

    if (entry == NULL)
        entry = add(applied, to);
    if (entry == NULL)
        return;
    entry->hash = kinf__hash(json);
    entry->len = json.len;
}

void kinf__applied_forget(struct kinf__applied *applied, struct kinf__applied_to to)
{
    struct entry *entry = find(applied, to);

    if (entry == NULL)
        return;
    kinf__hmap_remove(&applied->objects, &entry->node);
    free(entry);
}

void kinf__applied_forget_both(struct kinf__applied *applied, const struct kinf_type *type,
                               const char *key)
{
    kinf__applied_forget(applied, (struct kinf__applied_to){ type, key, false });
    kinf__applied_forget(applied, (struct kinf__applied_to){ type, key, true });
}

/* --- comparing --- */

static bool covers(struct kinf__json_value have, struct kinf__json_value want, unsigned depth);

/* Escapes may differ. */
static bool is_same_text(struct kinf_str a, struct kinf_str b)
{
    KINF__AUTO_FREE char *text = NULL;
    size_t len;

    if (kinf_str_equal(a, b))
        return true;
    if (memchr(a.bytes, '\\', a.len) == NULL && memchr(b.bytes, '\\', b.len) == NULL)
        return false;
    text = malloc(b.len);
    if (text == NULL)
        return false;
    len = kinf__json_unescape(b, text, b.len);
    return kinf__json_string_equals(a, (struct kinf_str){ text, len });
}

/* The value of the member whose key is written `key`. */
static struct kinf__json_value member(struct kinf__json_value object, struct kinf_str key)
{
    struct kinf__json_value value, none = { KINF__JSON_NULL, { NULL, 0 } };
    struct kinf__json_iter members;
    struct kinf_str other;

    if (!kinf__json_iter_init(&members, object))
        return none;
    while (kinf__json_iter_next(&members, &other, &value)) {
        if (is_same_text(other, key))
            return value;
    }
    return none;
}

static bool covers_object(struct kinf__json_value have, struct kinf__json_value want,
                          unsigned depth)
{
    struct kinf__json_iter members;
    struct kinf__json_value value;
    struct kinf_str key;

    if (!kinf__json_iter_init(&members, want))
        return false;
    while (kinf__json_iter_next(&members, &key, &value)) {
        if (!covers(member(have, key), value, depth + 1))
            return false;
    }
    return true;
}

static bool covers_array(struct kinf__json_value have, struct kinf__json_value want, unsigned depth)
{
    struct kinf__json_iter haves, wants;
    struct kinf__json_value a, b;
    struct kinf_str key;
    bool has_a, has_b;

    if (!kinf__json_iter_init(&haves, have) || !kinf__json_iter_init(&wants, want))
        return false;
    do {
        has_a = kinf__json_iter_next(&haves, &key, &a);
        has_b = kinf__json_iter_next(&wants, &key, &b);
        if (has_a != has_b || (has_b && !covers(a, b, depth + 1)))
            return false;
    } while (has_b);
    return true;
}

static bool covers(struct kinf__json_value have, struct kinf__json_value want, unsigned depth)
{
    if (have.type != want.type || depth > MAX_DEPTH)
        return false;
    switch (want.type) {
    case KINF__JSON_NULL:
        return true;
    case KINF__JSON_OBJECT:
        return covers_object(have, want, depth);
    case KINF__JSON_ARRAY:
        return covers_array(have, want, depth);
    case KINF__JSON_STRING:
        return is_same_text(have.raw, want.raw);
    default:
        return kinf_str_equal(have.raw, want.raw);
    }
}

bool kinf__json_covers(struct kinf__json_value have, struct kinf__json_value want)
{
    return covers(have, want, 0);
}
