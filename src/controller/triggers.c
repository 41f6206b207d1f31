/*
 * From changes to keys: one handler for each watched informer, and the ready-made maps.
 *
 * A key that cannot be queued for want of memory is tried again by its handler, which its informer
 * waits for; the changes behind it wait, too. So nothing is lost (C2).
 */
#include "controller/controller.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/misuse.h"
#include "informer/informer.h"
#include "object/shard.h"

#define NO_MEMORY_WAIT_MS 100

struct kinf_keys {
    struct kinf__trigger *trigger;
    enum kinf_priority priority;
    bool is_update; /* neither came nor went */
    bool is_first_list;
};

/* --- keys --- */

static bool pause_for_memory(struct kinf_controller *controller)
{
    int64_t until_ms = kinf__clock_add_ms(kinf__clock_now_ms(), NO_MEMORY_WAIT_MS);
    bool is_stopping;

    kinf__mutex_lock(&controller->lock);
    if (controller->life < KINF__CONTROLLER_STOPPING)
        (void)kinf__cond_wait_until(&controller->changed, &controller->lock, until_ms);
    is_stopping = controller->life >= KINF__CONTROLLER_STOPPING;
    kinf__mutex_unlock(&controller->lock);
    return !is_stopping;
}

int kinf_keys_add(struct kinf_keys *keys, const char *key)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, keys, key);

    struct kinf_queue_add_options options = KINF_QUEUE_ADD_OPTIONS_INIT;
    int failed;

    options.priority = keys->priority;
    failed = kinf_queue_add_with(keys->trigger->controller->queue, key, &options, NULL);
    /* At the end nobody needs it. */
    return failed == KINF_ERR_STOPPED ? 0 : failed;
}

static int map(const struct kinf_object *object, struct kinf_keys *keys)
{
    const struct kinf__trigger *trigger = keys->trigger;

    return trigger->map == NULL ? kinf_keys_add(keys, kinf_object_key(object))
                                : trigger->map(object, keys, trigger->map_ctx);
}

static void add_keys(const struct kinf_object *object, struct kinf_keys *keys)
{
    struct kinf_controller *controller = keys->trigger->controller;
    int failed;

    do
        failed = map(object, keys);
    while (failed == KINF_ERR_NO_MEMORY && pause_for_memory(controller));
    if (failed == 0 || failed == KINF_ERR_NO_MEMORY)
        return;
    kinf__count(controller, KINF__N_MAP_ERRORS);
    KINF__LOG(KINF__LOG_CONTROLLER, KINF_LOG_WARN, "a map failed controller=%s object=%s error=%s",
              controller->name, kinf_object_key(object),
              kinf_errc_to_string((enum kinf_errc)failed));
}

/* --- the handler --- */

static void wake_waiters(struct kinf_controller *controller)
{
    if (atomic_load(&controller->n_waiters) == 0)
        return;
    kinf__mutex_lock(&controller->lock);
    kinf__cond_broadcast(&controller->changed);
    kinf__mutex_unlock(&controller->lock);
}

static void on_add(const struct kinf_object *object, bool in_initial_list, void *ctx)
{
    struct kinf__trigger *trigger = ctx;
    struct kinf_keys keys = { trigger, in_initial_list ? KINF_PRIORITY_LOW : KINF_PRIORITY_NORMAL,
                              false, in_initial_list };

    wake_waiters(trigger->controller);
    add_keys(object, &keys);
}

static void on_update(const struct kinf_object *old, const struct kinf_object *object, void *ctx)
{
    struct kinf__trigger *trigger = ctx;
    struct kinf_keys keys = { trigger, old == object ? KINF_PRIORITY_LOW : KINF_PRIORITY_NORMAL,
                              true, false };

    wake_waiters(trigger->controller);
    add_keys(object, &keys);
    if (old != object && trigger->map != NULL)
        add_keys(old, &keys);
}

static void on_delete(const struct kinf_object *object, bool final_state_unknown, void *ctx)
{
    struct kinf__trigger *trigger = ctx;
    struct kinf_controller *controller = trigger->controller;
    struct kinf_keys keys = { trigger, KINF_PRIORITY_NORMAL, false, false };

    (void)final_state_unknown;
    kinf__mutex_lock(&controller->lock);
    kinf__applied_forget_both(&controller->applied, kinf_object_type(object),
                              kinf_object_key(object));
    kinf__cond_broadcast(&controller->changed);
    kinf__mutex_unlock(&controller->lock);
    add_keys(object, &keys);
}

void kinf__trigger_add_all(struct kinf__trigger *trigger)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot =
        kinf_indexer_snapshot(trigger->informer->indexer);
    struct kinf_keys keys = { trigger, KINF_PRIORITY_LOW, true, false };
    const struct kinf_object *object;
    struct kinf_cursor cursor;

    kinf_cursor_all(&cursor, snapshot);
    while ((object = kinf_cursor_next(&cursor)) != NULL)
        add_keys(object, &keys);
}

int kinf__trigger_listen(struct kinf__trigger *trigger, struct kinf_error *err)
{
    struct kinf_handler handler = KINF_HANDLER_INIT;
    int failed;

    handler.on_add = on_add;
    handler.on_update = on_update;
    handler.on_delete = on_delete;
    handler.ctx = trigger;
    if (trigger->map == NULL)
        handler.resync_period_ms = trigger->controller->options.resync_period_ms;
    failed = kinf_informer_add_handler(trigger->informer, &handler, &trigger->handler, err);
    if (failed == 0)
        kinf__informer_hold(trigger->informer);
    return failed;
}

void kinf__trigger_let_go(struct kinf__trigger *trigger)
{
    if (trigger->handler != 0)
        kinf__informer_let_go(trigger->informer);
    trigger->handler = 0;
}

/* --- triggers --- */

void kinf__trigger_free(struct kinf__trigger *trigger)
{
    kinf__list_remove(&trigger->node);
    kinf_label_selector_free(trigger->labels);
    kinf_field_selector_free(trigger->fields);
    free(trigger);
}

static int parse_selectors(struct kinf__trigger *trigger, struct kinf_error *err)
{
    const struct kinf_informer *informer = trigger->informer;
    int failed = 0;

    if (informer->label_selector != NULL)
        failed = kinf_label_selector_parse(informer->label_selector, &trigger->labels, err);
    if (failed == 0 && informer->field_selector != NULL)
        failed = kinf_field_selector_parse(informer->field_selector, &trigger->fields, err);
    return failed;
}

int kinf__trigger_add(struct kinf_controller *controller, struct kinf_informer *informer,
                      kinf_map_cb *source_map, void *ctx, struct kinf_error *err)
{
    struct kinf__trigger *trigger = calloc(1, sizeof *trigger);
    int failed;

    if (trigger == NULL)
        return kinf__error_no_memory(err);
    trigger->controller = controller;
    trigger->informer = informer;
    trigger->map = source_map;
    trigger->map_ctx = ctx;
    kinf__list_init(&trigger->node);
    failed = parse_selectors(trigger, err);
    if (failed < 0) {
        kinf__trigger_free(trigger);
        return failed;
    }
    kinf__list_push_back(&controller->triggers, &trigger->node);
    return 0;
}

bool kinf__trigger_has_place(const struct kinf__trigger *trigger, const struct kinf_type *type,
                             const char *key)
{
    const char *name_space = trigger->informer->name_space;
    size_t len = name_space != NULL ? strlen(name_space) : 0;

    return trigger->informer->type == type &&
           (len == 0 || (strncmp(key, name_space, len) == 0 && key[len] == '/'));
}

bool kinf__trigger_selects(const struct kinf__trigger *trigger, const struct kinf_object *object)
{
    const struct kinf__shard_selector *shard = trigger->informer->shard;

    return kinf_label_selector_matches(trigger->labels, object) &&
           (trigger->fields == NULL || kinf_field_selector_matches(trigger->fields, object)) &&
           (shard == NULL || kinf__shard_selector_matches(shard, object));
}

bool kinf__trigger_selects_all(const struct kinf__trigger *trigger)
{
    return kinf_label_selector_is_empty(trigger->labels) && trigger->fields == NULL &&
           trigger->informer->shard == NULL;
}

const struct kinf_object *kinf__trigger_get(const struct kinf__trigger *trigger, const char *key)
{
    const struct kinf_object *object = NULL;

    return kinf_indexer_get_by_key(trigger->informer->indexer, key, &object) == 0 ? object : NULL;
}

/* --- maps --- */

static bool is_controller(struct kinf__json_value reference)
{
    struct kinf__json_value value;

    return kinf__json_member(reference, KINF_STR("controller"), &value) &&
           kinf_str_equal(value.raw, KINF_STR("true"));
}

/* The version may be another: it is the same object. */
static bool is_of_type(struct kinf__json_value reference, const struct kinf_type *type)
{
    char kind[KINF_NAME_MAX], version[KINF_NAME_MAX];
    size_t group_len = strlen(type->group);

    if (!kinf__member_text(reference, "kind", kind, sizeof kind) || strcmp(kind, type->kind) != 0 ||
        !kinf__member_text(reference, "apiVersion", version, sizeof version))
        return false;
    return group_len == 0
               ? strchr(version, '/') == NULL
               : strncmp(version, type->group, group_len) == 0 && version[group_len] == '/';
}

static int add_owner(struct kinf__json_value reference, const struct kinf_object *object,
                     const struct kinf_type *type, struct kinf_keys *keys)
{
    struct kinf_str name_space = kinf_object_namespace(object);
    char name[KINF_NAME_MAX], key[KINF__KEY_SIZE];

    if (!kinf__member_text(reference, "name", name, sizeof name))
        return 0;
    snprintf(key, sizeof key, "%.*s%s%s", type->namespaced ? (int)name_space.len : 0,
             name_space.bytes, type->namespaced && name_space.len != 0 ? "/" : "", name);
    return kinf_keys_add(keys, key);
}

int kinf_map_owner(const struct kinf_object *object, struct kinf_keys *keys, void *ctx)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, object, keys, ctx);

    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__json_value reference;
    struct kinf__json_iter references;
    struct kinf_str json, key;
    int rc = kinf_object_get_json(object, "metadata.ownerReferences", &scratch, &json);

    if (rc < 0)
        return rc == KINF_ERR_NO_MEMORY ? rc : 0;
    if (!kinf__json_iter_init(&references, kinf__json_value_of(json)))
        return 0;
    while (rc == 0 && kinf__json_iter_next(&references, &key, &reference)) {
        if (is_controller(reference) && is_of_type(reference, ctx))
            rc = add_owner(reference, object, ctx, keys);
    }
    return rc;
}

static int add_text(struct kinf_keys *keys, int rc, const char *key)
{
    if (rc < 0)
        return rc == KINF_ERR_NO_MEMORY ? rc : 0;
    return key[0] != '\0' ? kinf_keys_add(keys, key) : 0;
}

int kinf_map_annotation(const struct kinf_object *object, struct kinf_keys *keys, void *ctx)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, object, keys, ctx);

    char key[KINF__KEY_SIZE];

    return add_text(keys, kinf_object_get_annotation(object, ctx, key, sizeof key), key);
}

int kinf_map_label(const struct kinf_object *object, struct kinf_keys *keys, void *ctx)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, object, keys, ctx);

    char key[KINF__KEY_SIZE];

    return add_text(keys, kinf_object_get_label(object, ctx, key, sizeof key), key);
}

int kinf_map_all(const struct kinf_object *object, struct kinf_keys *keys, void *ctx)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, object, keys, ctx);

    kinf_auto_snapshot struct kinf_snapshot *all = NULL;
    const struct kinf_object *other;
    struct kinf_cursor cursor;
    int rc = 0;

    /* Of its first list the controller's own objects are told, and called, in any case. */
    if (keys->is_update ||
        (keys->is_first_list && kinf__primary(keys->trigger->controller)->informer == ctx))
        return 0;
    all = kinf_indexer_snapshot(kinf_informer_indexer(ctx));
    kinf_cursor_all(&cursor, all);
    while (rc == 0 && (other = kinf_cursor_next(&cursor)) != NULL)
        rc = kinf_keys_add(keys, kinf_object_key(other));
    return rc;
}
