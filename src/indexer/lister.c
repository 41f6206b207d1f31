/*
 * Listers. Neighbours: snapshot.c reads, object/ matches selectors.
 */
#include <kinformer/lister.h>

#include <stdlib.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/misuse.h"
#include "indexer/snapshot.h"

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
        return NULL;
    return kinf__buffer_cstr(buffer);
}

static int append_matching(struct kinf_cursor *cursor, const struct kinf_label_selector *selector,
                           struct kinf_object_list *list)
{
    bool takes_all = selector == NULL || kinf_label_selector_is_empty(selector);
    const struct kinf_object *object;

    while ((object = kinf_cursor_next(cursor)) != NULL) {
        if ((takes_all || kinf_label_selector_matches(selector, object)) &&
            kinf__object_list_append(list, object) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
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
        result = append_matching(&cursor, selector, &list);
    }
    if (result < 0) {
        kinf_object_list_release(&list);
        return kinf__error_no_memory(err);
    }
    *ret_list = list;
    return 0;
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
