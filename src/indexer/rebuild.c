/*
 * Building whole versions: join the list with the version before, make entries, build each tree from
 * below. Neighbours: indexer.c publishes the result, tree.c builds the trees; a relist is
 * joined by the informer's handle_deltas.c, which tells handlers of the pairs.
 */
#include "indexer/rebuild.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "base/sort.h"

/* --- sorting --- */

/* One text to be sorted. Its beginning is held here, since comparing is mostly waiting for memory.
 */
struct kinf__text {
    uint64_t fragment; /* the 8 bytes behind what all texts have in common */
    const char *bytes; /* with NUL */
    size_t number;     /* which one it was; later ones follow equal ones */
};

static int compare_texts(const void *a, const void *b)
{
    const struct kinf__text *left = a, *right = b;
    int order = (left->fragment > right->fragment) - (left->fragment < right->fragment);

    /* A zero in the last byte: both end within their fragments. */
    if (order == 0 && (left->fragment & 0xff) != 0)
        order = strcmp(left->bytes, right->bytes);
    return order != 0 ? order : (left->number > right->number) - (left->number < right->number);
}

/* Whether each is above the one before; or else equal, unless `strictly`. */
static bool is_sorted(const struct kinf__text *texts, size_t n, bool strictly,
                      const struct kinf__stop *stop)
{
    for (size_t i = 1; i < n && !kinf__stop_is_set(stop); i++) {
        int order = strcmp(texts[i - 1].bytes, texts[i].bytes);

        if (order > 0 || (strictly && order == 0))
            return false;
    }
    return true;
}

static int sort_texts(struct kinf__text *texts, size_t n, const struct kinf__stop *stop)
{
    size_t n_common = SIZE_MAX;

    if (is_sorted(texts, n, false, stop))
        return 0;
    for (size_t i = 0; i < n && !kinf__stop_is_set(stop); i++) {
        size_t at = 0;

        while (at < n_common && texts[0].bytes[at] != '\0' &&
               texts[0].bytes[at] == texts[i].bytes[at])
            at++;
        n_common = at;
    }
    for (size_t i = 0; i < n && !kinf__stop_is_set(stop); i++) {
        struct kinf__key key = { { NULL, 0 }, kinf_str_from(texts[i].bytes + n_common) };

        texts[i].fragment = kinf__key_fragment(key, 0);
    }
    return kinf__sort(texts, n, sizeof texts[0], compare_texts, stop);
}

/* --- the join --- */

/* Of a key that is listed twice the last one counts. */
static void drop_doubles(struct kinf__join *join)
{
    size_t n = 0;

    for (size_t i = 0; i < join->n_keys && !kinf__stop_is_set(join->stop); i++) {
        if (n > 0 && strcmp(join->by_key[n - 1].bytes, join->by_key[i].bytes) == 0)
            join->pairs[join->by_key[--n].number].object = NULL;
        join->by_key[n++] = join->by_key[i];
    }
    join->n_keys = n;
}

/* A server lists by key, as a rule. */
static int order_list(struct kinf__join *join)
{
    int result;

    if (is_sorted(join->by_key, join->n_keys, true, join->stop))
        return 0;
    result = sort_texts(join->by_key, join->n_keys, join->stop);
    if (result == 0)
        drop_doubles(join);
    return result;
}

/* Of what is stored: the pair that is listed, or one more. `*at` moves forward to its key. */
static struct kinf__pair *pair_of(struct kinf__join *join, const struct kinf_object *stored,
                                  size_t *at)
{
    struct kinf__pair *pair;

    for (; *at < join->n_keys && !kinf__stop_is_set(join->stop); ++*at) {
        const struct kinf__text *key = &join->by_key[*at];
        int order;

        pair = &join->pairs[key->number];
        order = pair->object == stored ? 0 : strcmp(key->bytes, kinf_object_key(stored));
        if (order > 0)
            break;
        if (order == 0) {
            ++*at;
            return pair;
        }
    }
    pair = &join->pairs[join->n_pairs++];
    pair->object = NULL;
    return pair;
}

static void join_base(struct kinf__join *join)
{
    const struct kinf_object *stored;
    struct kinf_cursor cursor;
    size_t at = 0;
    uint32_t value;

    kinf_cursor_all(&cursor, join->base);
    while (!kinf__stop_is_set(join->stop) && (stored = kinf__tree_object_at(&cursor)) != NULL) {
        struct kinf__pair *pair = pair_of(join, stored, &at);

        pair->old = stored;
        kinf__tree_at(&cursor, &pair->old_entry, &value);
        kinf__tree_advance(&cursor);
    }
}

static void take_list(struct kinf__join *join, const struct kinf_object *const *objects)
{
    for (size_t i = 0; i < join->n_listed && !kinf__stop_is_set(join->stop); i++) {
        join->pairs[i] = (struct kinf__pair){ .object = objects[i] };
        join->by_key[i] = (struct kinf__text){ 0, kinf_object_key(objects[i]), i };
    }
}

int kinf__join_init(struct kinf__join *join, struct kinf_snapshot *take_base,
                    const struct kinf_object *const *objects, size_t n_objects,
                    const struct kinf__stop *stop)
{
    size_t n_pairs_max = n_objects + take_base->count + 1;
    int result = KINF_ERR_NO_MEMORY;

    *join = (struct kinf__join){ .base = take_base,
                                 .stop = stop,
                                 .pairs = reallocarray(NULL, n_pairs_max, sizeof *join->pairs),
                                 .n_listed = n_objects,
                                 .n_pairs = n_objects,
                                 .by_key = reallocarray(NULL, n_objects + 1, sizeof *join->by_key),
                                 .n_keys = n_objects };
    if (join->pairs != NULL && join->by_key != NULL) {
        take_list(join, objects);
        result = kinf__stop_is_set(stop) ? KINF_ERR_STOPPED : order_list(join);
    }
    if (result == 0) {
        join_base(join);
        result = kinf__stop_is_set(stop) ? KINF_ERR_STOPPED : 0;
    }
    if (result < 0)
        kinf__join_release(join);
    return result;
}

void kinf__join_release(struct kinf__join *join)
{
    kinf_snapshot_unref(join->base);
    free(join->pairs);
    free(join->by_key);
    *join = (struct kinf__join){ .base = NULL };
}

/* --- entries --- */

/* In the order of their keys, with a count each. */
struct entries {
    const struct kinf__stop *stop; /* ends the work on them; NULL: nothing does */
    struct kinf__tree_item *items;
    size_t n;
};

static int init_entries(struct entries *entries, size_t n_max, const struct kinf__stop *stop)
{
    entries->stop = stop;
    entries->n = 0;
    entries->items = calloc(n_max + 1, sizeof entries->items[0]);
    return entries->items != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

static void release_entries(struct entries *entries)
{
    for (size_t i = 0; i < entries->n; i++)
        kinf__entry_unref(entries->items[i].entry);
    free(entries->items);
}

static bool keeps_object(const struct kinf__pair *pair)
{
    return pair->object == pair->old;
}

static int append_entry(struct entries *entries, const struct kinf__join *join,
                        const struct kinf__pair *pair, struct kinf__index_set *set,
                        struct kinf_index_values *values)
{
    struct kinf__entry **entry = &entries->items[entries->n].entry;
    struct kinf__entry *known = keeps_object(pair) ? pair->old_entry : NULL;
    int result = 0;

    if (known != NULL && set == join->base->set)
        *entry = kinf__entry_ref(known);
    else
        result = kinf__index_values_entry(values, set, pair->object, known, entry);
    entries->n += result == 0;
    return result;
}

static int make_entries(struct entries *entries, const struct kinf__join *join,
                        struct kinf__index_set *set, struct kinf_index_values *values)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < join->n_keys && !kinf__stop_is_set(join->stop); i++) {
        const struct kinf__pair *pair = &join->pairs[join->by_key[i].number];

        if (pair->object != NULL)
            result = append_entry(entries, join, pair, set, values);
    }
    return result;
}

/* --- trees --- */

/* All values of one index. The number of a text is that of its entry, so that equal values stay in
 * the order of the keys. Returns how many there are; counts only if `texts` is NULL. */
static size_t list_values(const struct entries *entries, uint32_t index, struct kinf__text *texts)
{
    size_t n = 0;

    for (size_t i = 0; i < entries->n && !kinf__stop_is_set(entries->stop); i++) {
        const struct kinf__entry *entry = entries->items[i].entry;
        uint32_t at = entry->starts[index];

        for (; at < entry->starts[index + 1]; n++) {
            struct kinf_str value = kinf__entry_value(entry, at);

            if (texts != NULL)
                texts[n] = (struct kinf__text){ 0, value.bytes, i };
            at += (uint32_t)value.len + 1;
        }
    }
    return n;
}

static int build_index(struct kinf_snapshot *version, const struct entries *entries, uint32_t index)
{
    size_t n = list_values(entries, index, NULL);
    KINF__AUTO_FREE struct kinf__text *texts = malloc((n + 1) * sizeof texts[0]);
    KINF__AUTO_FREE struct kinf__tree_item *items = malloc((n + 1) * sizeof items[0]);
    int result;

    if (texts == NULL || items == NULL)
        return KINF_ERR_NO_MEMORY;
    n = list_values(entries, index, texts); /* fewer, if it is stopped */
    result = sort_texts(texts, n, entries->stop);
    if (result < 0)
        return result; /* untested: a race with stop, of one sort; no memory */
    for (size_t i = 0; i < n && !kinf__stop_is_set(entries->stop); i++) {
        items[i].entry = entries->items[texts[i].number].entry;
        items[i].value = (uint32_t)(texts[i].bytes - (const char *)items[i].entry);
    }
    return kinf__tree_build(true, items, n, entries->stop, &version->indices[index]);
}

/* Builds every tree of an empty version. */
static int build_trees(struct kinf_snapshot *version, const struct entries *entries)
{
    int result =
        kinf__tree_build(false, entries->items, entries->n, entries->stop, &version->items);

    for (uint32_t i = 0; result == 0 && i < version->set->n; i++)
        result = build_index(version, entries, i);
    version->count = entries->n;
    /* What was cut short may look complete. */
    return result == 0 && kinf__stop_is_set(entries->stop) ? KINF_ERR_STOPPED : result;
}

static bool changes_nothing(const struct kinf__join *join)
{
    size_t i = 0;

    while (i < join->n_pairs && !kinf__stop_is_set(join->stop) && keeps_object(&join->pairs[i]))
        i++;
    return i == join->n_pairs;
}

static int build(struct kinf_snapshot *version, const struct kinf__join *join,
                 struct kinf_index_values *values)
{
    struct entries entries;
    int result;

    if (init_entries(&entries, join->n_keys, join->stop) < 0)
        return KINF_ERR_NO_MEMORY;
    result = make_entries(&entries, join, version->set, values);
    if (result == 0)
        result = build_trees(version, &entries);
    release_entries(&entries);
    return result;
}

int kinf__snapshot_build(const struct kinf__join *join, struct kinf__index_set *set,
                         struct kinf_index_values *values, struct kinf_snapshot **ret_snapshot)
{
    kinf_auto_snapshot struct kinf_snapshot *version =
        kinf__snapshot_new(join->base->graveyard, set);
    int result = 0;

    if (version == NULL)
        return KINF_ERR_NO_MEMORY;
    if (set == join->base->set && changes_nothing(join))
        kinf__snapshot_share(version, join->base);
    else
        result = build(version, join, values);
    if (result == 0)
        *ret_snapshot = KINF__TAKE(version);
    return result;
}

int kinf__snapshot_reindex(const struct kinf_snapshot *base, struct kinf__index_set *set,
                           struct kinf_index_values *values, struct kinf_snapshot **ret_snapshot)
{
    kinf_auto_snapshot struct kinf_snapshot *version = kinf__snapshot_new(base->graveyard, set);
    struct entries entries;
    struct kinf_cursor cursor;
    struct kinf__entry *old;
    uint32_t value;
    int result = 0;

    if (version == NULL || init_entries(&entries, base->count, NULL) < 0)
        return KINF_ERR_NO_MEMORY;
    kinf_cursor_all(&cursor, base);
    while (result == 0 && kinf__tree_at(&cursor, &old, &value)) {
        result = kinf__index_values_entry(values, set, old->object, old,
                                          &entries.items[entries.n].entry);
        entries.n += result == 0;
        kinf__tree_advance(&cursor);
    }
    if (result == 0)
        result = build_trees(version, &entries);
    release_entries(&entries);
    if (result < 0)
        return result;
    kinf__snapshot_date(version, base);
    *ret_snapshot = KINF__TAKE(version);
    return 0;
}
