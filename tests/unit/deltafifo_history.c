/*
 * The aids of the queue's model tests.
 */
#include "unit/deltafifo_history.h"

#include <stdio.h>
#include <string.h>

#include "object/object.h"

static const struct kinf_type pods = { "", "v1", "Pod", "pods", true };

void history_release(struct fifo_history *history)
{
    for (size_t i = 0; i < history->n_made; i++)
        kinf_object_unref(history->made[i]);
    free(history->made);
    assert_int_equal(kinf__object_count(), 0);
}

size_t history_below(struct fifo_history *history, size_t limit)
{
    return test_random_below(&history->random, limit);
}

const struct kinf_object *history_make(struct fifo_history *history, size_t key, unsigned rv_number)
{
    char name[] = { (char)('a' + key), '\0' }, rv[16] = "";
    struct kinf__object_parts parts = { .type = &pods, .body = KINF_STR("{}") };

    if (rv_number != 0)
        snprintf(rv, sizeof rv, "%u", rv_number);
    parts.name = kinf_str_from(name);
    parts.resource_version = kinf_str_from(rv);
    if (history->n_made == history->n_made_room) {
        history->n_made_room = history->n_made_room * 2 + 64;
        history->made = reallocarray(history->made, history->n_made_room, sizeof history->made[0]);
        assert_non_null(history->made);
    }
    assert_int_equal(kinf__object_new(&parts, &history->made[history->n_made], NULL), 0);
    return history->made[history->n_made++];
}

size_t history_key_of(const struct kinf_object *object)
{
    return (size_t)(kinf_object_key(object)[0] - 'a');
}

unsigned history_version_of(const struct kinf_object *object)
{
    return (unsigned)strtoul(kinf_object_resource_version(object), NULL, 10);
}

enum kinf_delta_type history_change(struct fifo_history *history,
                                    const struct kinf_object **ret_object)
{
    size_t key = history_below(history, history_n_keys);
    const struct kinf_object *object = history_make(history, key, ++history->server_rv);
    bool is_new = history->truth[key] == NULL;
    bool deletes = history_below(history, 3) == 0;

    *ret_object = object;
    history->truth[key] = deletes ? NULL : object;
    if (deletes)
        return KINF_DELTA_DELETED;
    return is_new ? KINF_DELTA_ADDED : KINF_DELTA_UPDATED;
}

/* What happened while nobody watched. */
static void miss_changes(struct fifo_history *history)
{
    for (size_t n = history_below(history, 4); n > 0; n--) {
        size_t key = history_below(history, history_n_keys);

        history->server_rv++;
        history->truth[key] =
            history_below(history, 2) == 0 ? NULL : history_make(history, key, history->server_rv);
    }
}

/* A server restored from a backup: lower versions, other content. */
static void restore_server(struct fifo_history *history)
{
    history->server_rv /= 2;
    for (size_t key = 0; key < history_n_keys; key++)
        history->truth[key] =
            history_below(history, 2) == 0 ? NULL : history_make(history, key, history->server_rv);
}

static void shuffle(struct fifo_history *history, const struct kinf_object **list, size_t n_list)
{
    for (size_t i = n_list; i > 1; i--) {
        size_t k = history_below(history, i);
        const struct kinf_object *other = list[k];

        list[k] = list[i - 1];
        list[i - 1] = other;
    }
}

size_t history_list(struct fifo_history *history, const struct kinf_object **list)
{
    size_t n_list = 0, n_doubled;

    if (history_below(history, 8) == 0 && history->server_rv > 1)
        restore_server(history);
    else
        miss_changes(history);
    for (size_t key = 0; key < history_n_keys; key++) {
        const struct kinf_object *object = history->truth[key];

        if (object != NULL && history_below(history, 16) == 0)
            list[n_list++] = history_make(history, key, history_version_of(object));
    }
    n_doubled = n_list;
    for (size_t key = 0; key < history_n_keys; key++) {
        if (history->truth[key] != NULL)
            list[n_list++] = history->truth[key];
    }
    shuffle(history, list + n_doubled, n_list - n_doubled);
    history->server_rv++;
    return n_list;
}
