/*
 * The test as the worker. What the sim's own controllers would do (namespaces, owners) is not done.
 */
#include "unit/workloads_fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "workloads/workloads.h"
#include "unit/test.h"

void worked_init(struct worked *worked, uint64_t seed)
{
    const struct kinf__sim_options options = { .seed = seed };
    struct kinf_error err = KINF_ERROR_INIT;

    memset(worked, 0, sizeof *worked);
    worked->now_ms = 1000;
    if (kinf__sim_new(&options, &worked->sim, &err) < 0)
        fail_msg("%s", err.message);
}

void worked_release(struct worked *worked)
{
    kinf__sim_stop(worked->sim);
    kinf__sim_free(worked->sim);
}

void worked_add(struct worked *worked, struct kinf__controller *take_controller)
{
    assert_true(worked->n_controllers < WORKED_MAX);
    kinf__sim_add_controller(worked->sim, take_controller);
    worked->controllers[worked->n_controllers++] = take_controller;
}

void worked_init_workloads(struct worked *worked, uint64_t seed)
{
    worked_init(worked, seed);
    assert_int_equal(
        kinf__workloads_add(worked->sim, &worked->controllers[worked->n_controllers++], NULL), 0);
}

/* As the sim's worker has it: what was noted makes it due at once. */
static int64_t due_of(const struct worked *worked, size_t i)
{
    const struct kinf__controller *controller = worked->controllers[i];

    return controller->due_ms == 0 ? worked->now_ms : worked->due_ms[i];
}

bool worked_step(struct worked *worked, int64_t until_ms)
{
    size_t first = 0;

    for (size_t i = 1; i < worked->n_controllers; i++) {
        if (due_of(worked, i) < due_of(worked, first))
            first = i;
    }
    if (worked->n_controllers == 0 || due_of(worked, first) >= until_ms) {
        worked->now_ms = until_ms;
        return false;
    }
    if (due_of(worked, first) > worked->now_ms)
        worked->now_ms = due_of(worked, first);
    kinf__store_lock(kinf__sim_store(worked->sim));
    worked->controllers[first]->due_ms = KINF__NEVER_MS;
    worked->due_ms[first] = worked->controllers[first]->ops->work(worked->controllers[first],
                                                                  worked->sim, worked->now_ms);
    kinf__store_unlock(kinf__sim_store(worked->sim));
    return true;
}

void worked_run(struct worked *worked, int64_t ms)
{
    int64_t until_ms = worked->now_ms + ms;
    size_t n_steps = 0;

    while (worked_step(worked, until_ms)) {
        if (++n_steps > 10000000)
            fail_msg("no end of work");
    }
}

/* --- objects --- */

static struct cJSON *parse(const char *text)
{
    struct kinf_error err = KINF_ERROR_INIT;
    char *copy = strdup(text);
    struct cJSON *tree;

    for (char *at = copy; *at != '\0'; at++)
        *at = *at == '\'' ? '"' : *at;
    if (kinf__doc_parse(kinf_str_from(copy), &tree, &err) < 0)
        fail_msg("%s: %s", err.message, copy);
    free(copy);
    return tree;
}

static void name_verb(struct worked *worked, struct kinf__verb *verb, const char *group,
                      const char *resource, const char *key, char name_space[KINF_NAME_MAX])
{
    const char *slash = strchr(key, '/');

    memset(verb, 0, sizeof *verb);
    verb->sim = worked->sim;
    verb->resource = kinf__store_find(kinf__sim_store(worked->sim), group, resource);
    assert_non_null(verb->resource);
    snprintf(name_space, KINF_NAME_MAX, "%.*s", slash != NULL ? (int)(slash - key) : 0, key);
    verb->name_space = name_space;
    verb->name = slash != NULL ? slash + 1 : key;
}

static void expect(struct worked *worked, struct kinf__verb *verb, int failed)
{
    if (failed < 0)
        fail_msg("%s", verb->refusal.message);
    kinf__verb_release(verb);
    kinf__store_unlock(kinf__sim_store(worked->sim));
}

void worked_create(struct worked *worked, const char *group, const char *resource,
                   const char *object)
{
    char name_space[KINF_NAME_MAX];
    struct kinf__verb verb;

    kinf__store_lock(kinf__sim_store(worked->sim));
    name_verb(worked, &verb, group, resource, "", name_space);
    expect(worked, &verb, kinf__verb_create(&verb, parse(object)));
}

static void merge(struct worked *worked, const char *group, const char *resource, const char *key,
                  const char *subresource, const char *patch)
{
    struct cJSON *tree = parse(patch);
    char name_space[KINF_NAME_MAX];
    struct kinf__verb verb;

    kinf__store_lock(kinf__sim_store(worked->sim));
    name_verb(worked, &verb, group, resource, key, name_space);
    verb.subresource = subresource;
    expect(worked, &verb, kinf__verb_patch(&verb, KINF__PATCH_MERGE, tree, false));
    cJSON_Delete(tree);
}

void worked_merge(struct worked *worked, const char *group, const char *resource, const char *key,
                  const char *patch)
{
    merge(worked, group, resource, key, NULL, patch);
}

void worked_merge_status(struct worked *worked, const char *group, const char *resource,
                         const char *key, const char *patch)
{
    merge(worked, group, resource, key, "status", patch);
}

void worked_delete(struct worked *worked, const char *group, const char *resource, const char *key)
{
    const struct kinf__delete_options options = KINF__DELETE_OPTIONS_INIT;
    char name_space[KINF_NAME_MAX];
    struct kinf__verb verb;
    bool is_gone;

    kinf__store_lock(kinf__sim_store(worked->sim));
    name_verb(worked, &verb, group, resource, key, name_space);
    expect(worked, &verb, kinf__verb_delete(&verb, &options, &is_gone));
}

static const struct kinf_object *get(struct worked *worked, const char *group, const char *resource,
                                     const char *key)
{
    const struct kinf_object *object;
    char name_space[KINF_NAME_MAX];
    struct kinf__verb verb;

    kinf__store_lock(kinf__sim_store(worked->sim));
    name_verb(worked, &verb, group, resource, key, name_space);
    object = kinf__store_get(verb.resource, name_space, verb.name);
    kinf__store_unlock(kinf__sim_store(worked->sim));
    return object;
}

struct cJSON *worked_get(struct worked *worked, const char *group, const char *resource,
                         const char *key)
{
    const struct kinf_object *object kinf_auto_object = get(worked, group, resource, key);
    struct cJSON *tree = NULL;

    if (object != NULL)
        assert_int_equal(kinf__store_to_tree(object, &tree), 0);
    return tree;
}

const char *worked_text(struct worked *worked, const char *group, const char *resource,
                        const char *key, const char *path)
{
    const struct kinf_object *object kinf_auto_object = get(worked, group, resource, key);
    static char text[1024];

    text[0] = '\0';
    if (object != NULL && kinf_object_get_string(object, path, text, sizeof text) < 0)
        text[0] = '\0';
    return text;
}

int64_t worked_number(struct worked *worked, const char *group, const char *resource,
                      const char *key, const char *path)
{
    const struct kinf_object *object kinf_auto_object = get(worked, group, resource, key);
    int64_t number = 0;

    if (object != NULL && kinf_object_get_int64(object, path, &number) < 0)
        number = 0;
    return number;
}

struct kinf_object_list worked_list(struct worked *worked, const char *group, const char *resource,
                                    const char *name_space)
{
    struct kinf_object_list list = KINF_OBJECT_LIST_INIT;
    struct kinf_snapshot *snapshot kinf_auto_snapshot = NULL;
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    size_t n = 0;

    kinf__store_lock(kinf__sim_store(worked->sim));
    snapshot =
        kinf__store_snapshot(kinf__store_find(kinf__sim_store(worked->sim), group, resource));
    kinf__store_unlock(kinf__sim_store(worked->sim));
    list.items = calloc(kinf_snapshot_count(snapshot) + 1, sizeof(struct kinf_object *));
    assert_non_null(list.items);
    kinf_cursor_all(&cursor, snapshot);
    while ((object = kinf_cursor_next(&cursor)) != NULL) {
        if (name_space == NULL ||
            kinf_str_equal(kinf_object_namespace(object), kinf_str_from(name_space)))
            list.items[n++] = kinf_object_ref(object);
    }
    list.n_items = n;
    return list;
}
