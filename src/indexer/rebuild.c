/*
 * Building whole versions: sort, make entries, build each tree from below. Neighbours: indexer.c
 * publishes the result, tree_build.c builds the trees.
 */
#include "indexer/rebuild.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "base/sort.h"

/* --- sorting --- */

/* One text to be sorted. Its beginning is held here, since comparing is mostly waiting for memory.
 */
struct text {
    uint64_t fragment; /* the 8 bytes behind what all texts have in common */
    const char *bytes; /* with NUL */
    size_t number;     /* which one it was; later ones follow equal ones */
};

static int compare_texts(const void *a, const void *b)
{
    const struct text *left = a, *right = b;
    int order = (left->fragment > right->fragment) - (left->fragment < right->fragment);

    /* A zero in the last byte: both end within their fragments. */
    if (order == 0 && (left->fragment & 0xff) != 0)
        order = strcmp(left->bytes, right->bytes);
    return order != 0 ? order : (left->number > right->number) - (left->number < right->number);
}

static bool is_sorted(const struct text *texts, size_t n, const struct kinf__stop *stop)
{
    for (size_t i = 1; i < n && !kinf__stop_is_set(stop); i++) {
        if (strcmp(texts[i - 1].bytes, texts[i].bytes) > 0)
            return false;
    }
    return true;
}

static int sort_texts(struct text *texts, size_t n, const struct kinf__stop *stop)
{
    size_t n_common = SIZE_MAX;

    if (is_sorted(texts, n, stop))
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

/* --- entries --- */

/* Entries in the order of their keys, with a count each. */
struct entries {
    const struct kinf__stop *stop; /* ends the work on them; NULL: nothing does */
    struct kinf__entry **items;
    size_t n;
};

static void release_entries(struct entries *entries)
{
    for (size_t i = 0; i < entries->n; i++)
        kinf__entry_unref(entries->items[i]);
    free(entries->items);
}

static int init_entries(struct entries *entries, size_t n_max, const struct kinf__stop *stop)
{
    entries->stop = stop;
    entries->n = 0;
    entries->items = malloc((n_max != 0 ? n_max : 1) * sizeof entries->items[0]);
    return entries->items != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

/* Moves the cursor forward to the key. Returns the entry if it is of this very object. */
static struct kinf__entry *find_unchanged(struct kinf_cursor *cursor,
                                          const struct kinf_object *object)
{
    const struct kinf_object *stored;
    struct kinf__entry *entry;
    uint32_t value;

    while ((stored = kinf__tree_object_at(cursor)) != NULL) {
        int order = stored == object ? 0 : strcmp(kinf_object_key(stored), kinf_object_key(object));

        if (order >= 0)
            return stored == object && kinf__tree_at(cursor, &entry, &value) ? entry : NULL;
        kinf__tree_advance(cursor);
    }
    return NULL;
}

/* Appends the entry of each text's object, but only of the last of those with one key. */
static int append_entries(const struct kinf_snapshot *base,
                          const struct kinf_object *const *objects, const struct text *texts,
                          size_t n, struct kinf_index_values *values, struct entries *entries,
                          size_t *ret_n_unchanged)
{
    struct kinf_cursor cursor;
    size_t n_unchanged = 0;

    kinf_cursor_all(&cursor, base);
    for (size_t i = 0; i < n; i++) {
        const struct kinf_object *object = objects[texts[i].number];
        struct kinf__entry *entry;

        if (kinf__stop_is_set(entries->stop))
            return KINF_ERR_STOPPED;
        if (i + 1 < n && strcmp(texts[i].bytes, texts[i + 1].bytes) == 0)
            continue;
        entry = find_unchanged(&cursor, object);
        if (entry != NULL) {
            kinf__entry_ref(entry);
            n_unchanged++;
        } else if (kinf__index_values_entry(values, base->set, object, NULL, &entry) < 0) {
            return KINF_ERR_NO_MEMORY;
        }
        entries->items[entries->n++] = entry;
    }
    *ret_n_unchanged = n_unchanged;
    return 0;
}

static int make_entries(const struct kinf_snapshot *base, const struct kinf_object *const *objects,
                        size_t n, struct kinf_index_values *values, const struct kinf__stop *stop,
                        struct entries *ret_entries, size_t *ret_n_unchanged)
{
    KINF__AUTO_FREE struct text *texts = malloc((n != 0 ? n : 1) * sizeof texts[0]);
    int result;

    if (texts == NULL || init_entries(ret_entries, n, stop) < 0)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < n && !kinf__stop_is_set(stop); i++)
        texts[i] = (struct text){ 0, kinf_object_key(objects[i]), i };
    result = kinf__stop_is_set(stop) ? KINF_ERR_STOPPED : sort_texts(texts, n, stop);
    if (result == 0)
        result = append_entries(base, objects, texts, n, values, ret_entries, ret_n_unchanged);
    if (result < 0)
        release_entries(ret_entries);
    return result;
}

/* --- trees --- */

static int build_items(struct kinf_snapshot *version, const struct entries *entries)
{
    KINF__AUTO_FREE struct kinf__tree_item *items = calloc(entries->n + 1, sizeof items[0]);

    if (items == NULL)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < entries->n && !kinf__stop_is_set(entries->stop); i++)
        items[i].entry = entries->items[i];
    return kinf__tree_build(false, items, entries->n, entries->stop, &version->items);
}

/* All values of one index. The number of a text is that of its entry, so that equal values stay in
 * the order of the keys. Returns how many there are; counts only if `texts` is NULL. */
static size_t list_values(const struct entries *entries, uint32_t index, struct text *texts)
{
    size_t n = 0;

    for (size_t i = 0; i < entries->n && !kinf__stop_is_set(entries->stop); i++) {
        const struct kinf__entry *entry = entries->items[i];
        uint32_t at = entry->starts[index];

        for (; at < entry->starts[index + 1]; n++) {
            struct kinf_str value = kinf__entry_value(entry, at);

            if (texts != NULL)
                texts[n] = (struct text){ 0, value.bytes, i };
            at += (uint32_t)value.len + 1;
        }
    }
    return n;
}

static int build_index(struct kinf_snapshot *version, const struct entries *entries, uint32_t index)
{
    size_t n = list_values(entries, index, NULL);
    KINF__AUTO_FREE struct text *texts = malloc((n + 1) * sizeof texts[0]);
    KINF__AUTO_FREE struct kinf__tree_item *items = malloc((n + 1) * sizeof items[0]);
    int result;

    if (texts == NULL || items == NULL)
        return KINF_ERR_NO_MEMORY;
    n = list_values(entries, index, texts); /* fewer, if it is stopped */
    result = sort_texts(texts, n, entries->stop);
    if (result < 0)
        return result;
    for (size_t i = 0; i < n && !kinf__stop_is_set(entries->stop); i++) {
        items[i].entry = entries->items[texts[i].number];
        items[i].value = (uint32_t)(texts[i].bytes - (const char *)items[i].entry);
    }
    return kinf__tree_build(true, items, n, entries->stop, &version->indices[index]);
}

/* Builds every tree of an empty version. */
static int build_trees(struct kinf_snapshot *version, const struct entries *entries)
{
    int result = build_items(version, entries);

    for (uint32_t i = 0; result == 0 && i < version->set->n; i++)
        result = build_index(version, entries, i);
    version->count = entries->n;
    /* What was cut short may look complete. */
    return result == 0 && kinf__stop_is_set(entries->stop) ? KINF_ERR_STOPPED : result;
}

int kinf__snapshot_build(const struct kinf_snapshot *base, const struct kinf_object *const *objects,
                         size_t n_objects, struct kinf_index_values *values,
                         const struct kinf__stop *stop, struct kinf_snapshot **ret_snapshot)
{
    kinf_auto_snapshot struct kinf_snapshot *version =
        kinf__snapshot_new(base->graveyard, base->set);
    struct entries entries;
    size_t n_unchanged = 0;
    int result;

    if (version == NULL)
        return KINF_ERR_NO_MEMORY;
    result = make_entries(base, objects, n_objects, values, stop, &entries, &n_unchanged);
    if (result < 0)
        return result;
    if (n_unchanged == entries.n && n_unchanged == base->count)
        kinf__snapshot_share(version, base);
    else
        result = build_trees(version, &entries);
    release_entries(&entries);
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
        result = kinf__index_values_entry(values, set, old->object, old, &entries.items[entries.n]);
        entries.n += result == 0;
        kinf__tree_advance(&cursor);
    }
    if (result == 0)
        result = build_trees(version, &entries);
    release_entries(&entries);
    if (result < 0)
        return result;
    memcpy(version->resource_version, base->resource_version, sizeof version->resource_version);
    *ret_snapshot = KINF__TAKE(version);
    return 0;
}
