/*
 * Upstream's read calls and its listers: whole lists, each from one snapshot. Neighbours: snapshot.c
 * has the cursors that fill them, object/ matches selectors.
 */
#include "indexer/indexer.h"
#include "indexer/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include <kinformer/lister.h>

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/misuse.h"

#define LIST_GROWTH_MIN 16

/* --- lists --- */

void kinf_object_list_release(struct kinf_object_list *list)
{
    KINF__REFUSE_NULL(NULL, , list);
    for (size_t i = 0; i < list->n_items; i++)
        kinf_object_unref(list->items[i]);
    free(list->items);
    *list = (struct kinf_object_list)KINF_OBJECT_LIST_INIT;
}

void kinf_string_list_release(struct kinf_string_list *list)
{
    KINF__REFUSE_NULL(NULL, , list);
    for (size_t i = 0; i < list->n_items; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct kinf_string_list)KINF_STRING_LIST_INIT;
}

/* Room for one more item in a list that was only ever grown by this: its room is zero, or a power
 * of two. NULL when out of memory: the list is as it was. */
static void *grow(void *items, size_t n_items)
{
    if (n_items != 0 && (n_items < LIST_GROWTH_MIN || (n_items & (n_items - 1)) != 0))
        return items;
    return realloc(items,
                   (n_items < LIST_GROWTH_MIN ? LIST_GROWTH_MIN : 2 * n_items) * sizeof(void *));
}

static int append_object(struct kinf_object_list *list, const struct kinf_object *object)
{
    const struct kinf_object **items = grow(list->items, list->n_items);

    if (items == NULL)
        return KINF_ERR_NO_MEMORY;
    list->items = items;
    list->items[list->n_items++] = kinf_object_ref(object);
    return 0;
}

/* Appends what is left at the cursor and matches; NULL matches all. */
static int append_objects(struct kinf_object_list *list, struct kinf_cursor *cursor,
                          const struct kinf_label_selector *selector)
{
    bool takes_all = selector == NULL || kinf_label_selector_is_empty(selector);
    const struct kinf_object *object;
    int result = 0;

    while (result == 0 && (object = kinf_cursor_next(cursor)) != NULL) {
        if (takes_all || kinf_label_selector_matches(selector, object))
            result = append_object(list, object);
    }
    return result;
}

static int append_string(struct kinf_string_list *list, struct kinf_str text)
{
    char **items = grow(list->items, list->n_items);
    char *copy;

    if (items == NULL)
        return KINF_ERR_NO_MEMORY;
    list->items = items;
    copy = strndup(text.bytes, text.len);
    if (copy == NULL)
        return KINF_ERR_NO_MEMORY;
    list->items[list->n_items++] = copy;
    return 0;
}

/* Hands out a list that is complete, or gives it up. */
static int finish_objects(struct kinf_object_list *list, int result,
                          struct kinf_object_list *ret_list, struct kinf_error *err)
{
    if (result < 0) {
        kinf_object_list_release(list);
        return kinf__error_no_memory(err);
    }
    *ret_list = *list;
    return 0;
}

static int finish_strings(struct kinf_string_list *list, int result,
                          struct kinf_string_list *ret_list, struct kinf_error *err)
{
    if (result < 0) {
        kinf_string_list_release(list);
        return kinf__error_no_memory(err);
    }
    *ret_list = *list;
    return 0;
}

/* Appends the keys of what is left at the cursor. */
static int append_keys(struct kinf_string_list *list, struct kinf_cursor *cursor)
{
    const struct kinf_object *object;
    int result = 0;

    while (result == 0 && (object = kinf_cursor_next(cursor)) != NULL)
        result = append_string(list, kinf_str_from(kinf_object_key(object)));
    return result;
}

/* --- by key --- */

int kinf_indexer_list(struct kinf_indexer *indexer, struct kinf_object_list *ret_list,
                      struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, indexer, ret_list);

    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(indexer);
    struct kinf_object_list list = KINF_OBJECT_LIST_INIT;
    struct kinf_cursor cursor;

    kinf_cursor_all(&cursor, snapshot);
    return finish_objects(&list, append_objects(&list, &cursor, NULL), ret_list, err);
}

int kinf_indexer_list_keys(struct kinf_indexer *indexer, struct kinf_string_list *ret_keys,
                           struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, indexer, ret_keys);

    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(indexer);
    struct kinf_string_list keys = KINF_STRING_LIST_INIT;
    struct kinf_cursor cursor;

    kinf_cursor_all(&cursor, snapshot);
    return finish_strings(&keys, append_keys(&keys, &cursor), ret_keys, err);
}

/* --- by index --- */

static int compare_keys(const void *a, const void *b)
{
    const struct kinf_object *const *left = a, *const *right = b;

    return strcmp(kinf_object_key(*left), kinf_object_key(*right));
}

/* Puts the finds of several values in order, each once. */
static void unite(struct kinf_object_list *list)
{
    size_t n = 0;

    if (list->n_items != 0)
        qsort(list->items, list->n_items, sizeof list->items[0], compare_keys);
    for (size_t i = 0; i < list->n_items; i++) {
        if (n == 0 || list->items[n - 1] != list->items[i])
            list->items[n++] = list->items[i];
        else
            kinf_object_unref(list->items[i]);
    }
    list->n_items = n;
}

/* `values` are packed, each with its NUL. */
static int append_by_values(struct kinf_object_list *list, const struct kinf_snapshot *snapshot,
                            const char *index, struct kinf_str values)
{
    struct kinf_cursor cursor;
    int result = 0;

    while (result == 0 && values.len != 0) {
        struct kinf_str value = kinf_str_from(values.bytes);

        result = kinf_cursor_index(&cursor, snapshot, index, value, NULL);
        if (result == 0)
            result = append_objects(list, &cursor, NULL);
        values.bytes += value.len + 1;
        values.len -= value.len + 1;
    }
    return result;
}

int kinf_indexer_index(struct kinf_indexer *indexer, const char *index,
                       const struct kinf_object *probe, struct kinf_object_list *ret_list,
                       struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, indexer, index, probe, ret_list);

    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(indexer);
    KINF__AUTO_INDEX_VALUES values = KINF__INDEX_VALUES_INIT;
    struct kinf_object_list list = KINF_OBJECT_LIST_INIT;
    uint32_t number;
    int result;

    if (!kinf__index_set_find(snapshot->set, index, &number))
        return kinf__error_set(err, KINF_ERR_NOT_FOUND, "index %s does not exist", index);
    result = kinf__index_values_of(&values, snapshot->set->indices[number], probe);
    if (result == KINF_ERR_INVALID)
        return kinf__error_set(err, KINF_ERR_INVALID, "index %s fails on object %s", index,
                               kinf_object_key(probe));
    if (result == 0)
        result = append_by_values(&list, snapshot, index, kinf__buffer_str(&values.bytes));
    unite(&list);
    return finish_objects(&list, result, ret_list, err);
}

int kinf_indexer_by_index(struct kinf_indexer *indexer, const char *index, const char *value,
                          struct kinf_object_list *ret_list, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, indexer, index, value, ret_list);

    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(indexer);
    struct kinf_object_list list = KINF_OBJECT_LIST_INIT;
    struct kinf_cursor cursor;
    int result = kinf_cursor_index(&cursor, snapshot, index, kinf_str_from(value), err);

    if (result < 0)
        return result;
    return finish_objects(&list, append_objects(&list, &cursor, NULL), ret_list, err);
}

int kinf_indexer_index_keys(struct kinf_indexer *indexer, const char *index, const char *value,
                            struct kinf_string_list *ret_keys, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, indexer, index, value, ret_keys);

    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(indexer);
    struct kinf_string_list keys = KINF_STRING_LIST_INIT;
    struct kinf_cursor cursor;
    int result = kinf_cursor_index(&cursor, snapshot, index, kinf_str_from(value), err);

    if (result < 0)
        return result;
    return finish_strings(&keys, append_keys(&keys, &cursor), ret_keys, err);
}

/* Each value once: from one the search goes on behind every key that has it. */
static int append_values(struct kinf_string_list *list, const struct kinf__tree *tree)
{
    struct kinf__key key = { { NULL, 0 }, { NULL, 0 } };
    struct kinf_cursor cursor;
    struct kinf__entry *entry;
    uint32_t value;
    int result = 0;

    kinf__tree_seek(tree, key, &cursor);
    while (result == 0 && kinf__tree_at(&cursor, &entry, &value)) {
        key = (struct kinf__key){ kinf__entry_value(entry, value), KINF_STR("\x01") };
        result = append_string(list, key.head);
        kinf__tree_seek(tree, key, &cursor);
    }
    return result;
}

int kinf_indexer_list_index_values(struct kinf_indexer *indexer, const char *index,
                                   struct kinf_string_list *ret_values, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, indexer, index, ret_values);

    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(indexer);
    struct kinf_string_list values = KINF_STRING_LIST_INIT;
    uint32_t number;
    int result = 0;

    if (kinf__index_set_find(snapshot->set, index, &number))
        result = append_values(&values, &snapshot->indices[number]);
    return finish_strings(&values, result, ret_values, err);
}

/* --- the store itself --- */

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int kinf_indexer_get_indices(struct kinf_indexer *indexer, struct kinf_string_list *ret_names,
                             struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, indexer, ret_names);

    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(indexer);
    struct kinf_string_list names = KINF_STRING_LIST_INIT;
    int result = 0;

    for (uint32_t i = 0; result == 0 && i < snapshot->set->n; i++)
        result = append_string(&names, kinf_str_from(snapshot->set->indices[i]->name));
    if (names.n_items != 0)
        qsort(names.items, names.n_items, sizeof names.items[0], compare_strings);
    return finish_strings(&names, result, ret_names, err);
}

void kinf__indexer_each_unmet(struct kinf_indexer *indexer, kinf__unmet_path_cb *callback,
                              void *ctx)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(indexer);

    for (uint32_t i = 0; snapshot->count != 0 && i < snapshot->set->n; i++) {
        const struct kinf_path *path = snapshot->set->indices[i]->path;

        if (path != NULL && snapshot->indices[i].root == NULL)
            callback(kinf_path_text(path), "indices", ctx);
    }
}

int kinf_indexer_resource_version(struct kinf_indexer *indexer, char *buf, size_t size)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, indexer, buf);

    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(indexer);
    size_t needed = strlen(snapshot->resource_version) + 1;

    if (needed > size)
        return KINF_ERR_LIMIT;
    memcpy(buf, snapshot->resource_version, needed);
    return 0;
}

/* --- listers --- */

static bool has_namespace(const struct kinf_lister *lister)
{
    return lister->name_space != NULL && lister->name_space[0] != '\0';
}

/* "namespace/" of a namespaced lister, "" of others; with `name` behind it. NULL when out of
 * memory. */
static const char *make_key(const struct kinf_lister *lister, const char *name,
                            struct kinf__buffer *buffer)
{
    if (has_namespace(lister) && kinf__buffer_printf(buffer, "%s/", lister->name_space) < 0)
        return NULL;
    if (kinf__buffer_append_str(buffer, kinf_str_from(name)) < 0)
        return NULL; /* no memory */
    return kinf__buffer_cstr(buffer);
}

int kinf_lister_list(const struct kinf_lister *lister, const struct kinf_label_selector *selector,
                     struct kinf_object_list *ret_list, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, lister, ret_list);
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, lister->indexer);

    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(lister->indexer);
    KINF__AUTO_BUFFER prefix = KINF__BUFFER_INIT;
    struct kinf_object_list list = KINF_OBJECT_LIST_INIT;
    struct kinf_cursor cursor;
    int result = KINF_ERR_NO_MEMORY;

    if (make_key(lister, "", &prefix) != NULL) {
        kinf_cursor_prefix(&cursor, snapshot, kinf__buffer_str(&prefix));
        result = append_objects(&list, &cursor, selector);
    }
    return finish_objects(&list, result, ret_list, err);
}

int kinf_lister_get(const struct kinf_lister *lister, const char *name,
                    const struct kinf_object **ret_object, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, lister, name, ret_object);
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, lister->indexer);

    KINF__AUTO_BUFFER buffer = KINF__BUFFER_INIT;
    const char *key = make_key(lister, name, &buffer);

    if (key == NULL)
        return kinf__error_no_memory(err);
    if (kinf_indexer_get_by_key(lister->indexer, key, ret_object) < 0)
        return kinf__error_set(err, KINF_ERR_NOT_FOUND, "\"%s\" not found", key);
    return 0;
}
