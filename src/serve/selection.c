/*
 * Selecting. Neighbours: list.c and watch.c walk, the watch cache calls the match for events.
 */
#include "serve/selection.h"

#include <stdio.h>
#include <string.h>

#define COST_BYTES 8192 /* of an object whose fields are looked at: as much as a small one */

static int matches(const struct kinf__selection *selection, const struct kinf_object *object)
{
    return kinf_label_selector_matches(selection->labels, object)
               ? kinf__fields_match(selection->fields, object)
               : 0;
}

int kinf__selection_matches(const struct kinf_object *object, void *ctx)
{
    return matches(ctx, object);
}

bool kinf__selection_is_all(const struct kinf__selection *selection)
{
    return *selection->name == '\0' && selection->labels == NULL && selection->fields == NULL;
}

void kinf__walk_init(struct kinf__walk *walk, const struct kinf__selection *selection,
                     const struct kinf_snapshot *snapshot, const char *after)
{
    walk->selection = selection;
    walk->after = after;
    walk->prefix[0] = '\0';
    if (*selection->name_space != '\0')
        snprintf(walk->prefix, sizeof walk->prefix, "%s/", selection->name_space);
    walk->uses_index = selection->index != NULL &&
                       kinf_cursor_index(&walk->cursor, snapshot, selection->index,
                                         kinf_str_from(selection->index_value), NULL) == 0;
    if (walk->uses_index)
        return;
    if (strcmp(after, walk->prefix) > 0)
        kinf_cursor_after(&walk->cursor, snapshot, after);
    else if (walk->prefix[0] != '\0')
        kinf_cursor_prefix(&walk->cursor, snapshot, kinf_str_from(walk->prefix));
    else
        kinf_cursor_all(&walk->cursor, snapshot);
}

static int selects(const struct kinf__walk *walk, const struct kinf_object *object)
{
    const struct kinf__selection *selection = walk->selection;

    if (strcmp(kinf_object_key(object), walk->after) <= 0 ||
        (*selection->name != '\0' && strcmp(kinf_object_name(object), selection->name) != 0))
        return 0;
    return matches(selection, object);
}

static void take_patience(const struct kinf__walk *walk, const struct kinf_object *object,
                          size_t *patience)
{
    size_t cost = 1;

    if (walk->selection->fields != NULL)
        cost += kinf_object_size(object) / COST_BYTES;
    *patience -= cost < *patience ? cost : *patience;
}

enum kinf__walked kinf__walk_next(struct kinf__walk *walk, size_t *patience,
                                  const struct kinf_object **ret_object)
{
    size_t prefix_len = strlen(walk->prefix);
    const struct kinf_object *object;
    int is_selected;

    while (*patience != 0 && (object = kinf_cursor_next(&walk->cursor)) != NULL) {
        const char *key = kinf_object_key(object);
        int order = prefix_len != 0 ? strncmp(key, walk->prefix, prefix_len) : 0;

        if (order > 0 && !walk->uses_index)
            return KINF__WALK_END;
        take_patience(walk, object, patience);
        is_selected = order == 0 ? selects(walk, object) : 0;
        if (is_selected == 0)
            continue;
        *ret_object = object;
        return is_selected > 0 ? KINF__WALK_OBJECT : KINF__WALK_NO_MEMORY;
    }
    return *patience == 0 ? KINF__WALK_PAUSED : KINF__WALK_END;
}
