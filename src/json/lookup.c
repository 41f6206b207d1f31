/*
 * Walking text along a path. Neighbours: path.c for the steps, value.c for members and elements.
 * Recursion follows the steps of the path, so KINF_PATH_MAX_STEPS bounds it.
 */
#include "json/lookup.h"

struct lookup {
    const struct kinf_path *path;
    kinf__json_value_cb *callback;
    void *ctx;
};

static bool element_at(struct kinf__json_value array, size_t index,
                       struct kinf__json_value *ret_value)
{
    struct kinf__json_value element;
    struct kinf__json_iter iter;
    struct kinf_str key;

    if (array.type != KINF__JSON_ARRAY || !kinf__json_iter_init(&iter, array))
        return false;
    while (kinf__json_iter_next(&iter, &key, &element)) {
        if (index-- == 0) {
            *ret_value = element;
            return true;
        }
    }
    return false;
}

static int walk(const struct lookup *lookup, struct kinf__json_value value, size_t at);

static int walk_each(const struct lookup *lookup, struct kinf__json_value value, size_t at)
{
    struct kinf__json_value member;
    struct kinf__json_iter iter;
    struct kinf_str key;
    int status = 0;

    if (!kinf__json_iter_init(&iter, value))
        return 0;
    while (status == 0 && kinf__json_iter_next(&iter, &key, &member))
        status = walk(lookup, member, at);
    return status;
}

/* Goes on from `value` with step `at`. */
static int walk(const struct lookup *lookup, struct kinf__json_value value, size_t at)
{
    const struct kinf__path_step *step;
    bool is_found = true;

    for (; at < lookup->path->n_steps && is_found; at++) {
        step = &lookup->path->steps[at];
        switch (step->type) {
        case KINF__PATH_KEY:
            is_found = kinf__json_member(value, step->key, &value);
            break;
        case KINF__PATH_INDEX:
            is_found = element_at(value, step->index, &value);
            break;
        case KINF__PATH_EACH:
            return walk_each(lookup, value, at + 1);
        }
    }
    return is_found ? lookup->callback(value, lookup->ctx) : 0;
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

    return walk(&lookup, kinf__json_value_of(text), 0);
}

bool kinf__json_lookup_first(struct kinf_str text, const struct kinf_path *path,
                             struct kinf__json_value *ret_value)
{
    return kinf__json_lookup(text, path, take_first, ret_value) != 0;
}
