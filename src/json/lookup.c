/*
 * Walking text along a path. Neighbours: path.c for the steps, cursor.c for members and elements.
 * Recursion follows the steps of the path, so KINF_PATH_MAX_STEPS bounds it.
 */
#include "json/lookup.h"

#include "json/cursor.h"

struct lookup {
    const struct kinf_path *path;
    kinf__json_value_cb *callback;
    void *ctx;
};

static bool find_element(struct kinf__json_cursor *cursor, size_t index)
{
    struct kinf_str key;

    if (!kinf__json_cursor_enter(cursor, KINF__JSON_ARRAY))
        return false;
    for (; kinf__json_cursor_next(cursor, KINF__JSON_ARRAY, &key); index--) {
        if (index == 0)
            return true;
        kinf__json_cursor_skip(cursor);
    }
    return false;
}

static int walk(const struct lookup *lookup, struct kinf__json_cursor *cursor, size_t at);

static int walk_each(const struct lookup *lookup, struct kinf__json_cursor *cursor, size_t at)
{
    const enum kinf__json_type container = kinf__json_cursor_type(cursor);
    struct kinf_str key;
    unsigned depth;
    size_t start;
    int status = 0;

    if (!kinf__json_cursor_enter(cursor, container))
        return 0;
    depth = cursor->depth;
    while (status == 0 && kinf__json_cursor_next(cursor, container, &key)) {
        start = cursor->at;
        status = walk(lookup, cursor, at);
        if (cursor->at == start)
            kinf__json_cursor_skip(cursor);
        kinf__json_cursor_leave(cursor, depth);
    }
    return status;
}

/* Goes on with step `at` from in front of a value, and ends there, behind it, or inside. */
static int walk(const struct lookup *lookup, struct kinf__json_cursor *cursor, size_t at)
{
    const struct kinf__path_step *step;
    bool is_found = true;

    for (; at < lookup->path->n_steps && is_found; at++) {
        step = &lookup->path->steps[at];
        switch (step->type) {
        case KINF__PATH_KEY:
            is_found = kinf__json_cursor_find(cursor, step->key);
            break;
        case KINF__PATH_INDEX:
            is_found = find_element(cursor, step->index);
            break;
        case KINF__PATH_EACH:
            return walk_each(lookup, cursor, at + 1);
        }
    }
    return is_found ? lookup->callback(kinf__json_cursor_take(cursor), lookup->ctx) : 0;
}

static int take_first(struct kinf__json_value value, void *ctx)
{
    *(struct kinf__json_value *)ctx = value;
    return 1;
}

int kinf__json_lookup(struct kinf_str text, const struct kinf_path *path,
                      kinf__json_value_cb *callback, void *ctx)
{
    const struct lookup lookup = { path, callback, ctx };
    struct kinf__json_cursor cursor;

    kinf__json_cursor_init(&cursor, text);
    return walk(&lookup, &cursor, 0);
}

bool kinf__json_lookup_first(struct kinf_str text, const struct kinf_path *path,
                             struct kinf__json_value *ret_value)
{
    return kinf__json_lookup(text, path, take_first, ret_value) != 0;
}
