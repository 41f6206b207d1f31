/*
 * Several namespaces as one: an informer each, and for each handler a funnel that all of them feed.
 * Neighbours: informer.c does the work of each, funnel.c makes one thread of many.
 *
 * Invariants: the parts are sorted so that their lists, one after another, are sorted by key; a
 * handler is in `handlers` until it is removed and then in `leaving` until it is freed; whoever
 * claims it there, and nobody else, waits for its threads and frees it, without the lock. A funnel
 * is removed before its inputs are waited for, so none of them is held back by it.
 */
#include "informer/namespaces.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/misuse.h"
#include "informer/callback.h"
#include "informer/funnel.h"
#include "informer/informer.h"
#include "informer/options.h"
#include "object/name.h"

/* One namespace. */
struct part {
    char *name;
    struct kinf_informer *informer;
};

/* One handler. */
struct fan {
    struct kinf__list in_owner;
    kinf_handler_id id;
    bool is_claimed;
    struct kinf__funnel *funnel;
    kinf_handler_id inputs[]; /* of each part's informer; 0: none */
};

struct kinf_namespaces {
    /* constant after creation */
    const struct kinf_type *type;
    struct part *parts;
    size_t n_parts;

    struct kinf__mutex lock;
    struct kinf__cond gone; /* one of `leaving` was freed */
    /* guarded by lock */
    struct kinf__list handlers;
    struct kinf__list leaving; /* removed, not yet joined */
    kinf_handler_id last_id;
    bool is_started;
    bool is_closed;
};

static struct fan *fan_of(struct kinf__list *node)
{
    return KINF__LIST_ENTRY(node, struct fan, in_owner);
}

static struct fan *find_fan(struct kinf__list *list, kinf_handler_id id)
{
    KINF__LIST_FOR_EACH (node, list) {
        if (fan_of(node)->id == id)
            return fan_of(node);
    }
    return NULL;
}

/* --- parts --- */

/* The order of the keys in them: as if the slash belonged to the name. */
static int compare_names(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return (unsigned char)(*a != '\0' ? *a : '/') - (unsigned char)(*b != '\0' ? *b : '/');
}

static int compare_parts(const void *a, const void *b)
{
    return compare_names(((const struct part *)a)->name, ((const struct part *)b)->name);
}

static const struct part *find_part(const struct kinf_namespaces *namespaces, struct kinf_str name)
{
    for (size_t i = 0; i < namespaces->n_parts; i++) {
        if (kinf_str_equal(kinf_str_from(namespaces->parts[i].name), name))
            return &namespaces->parts[i];
    }
    return NULL;
}

static int check_names(const struct kinf_informer_options *options, const char *const *names,
                       size_t n_names, struct kinf_error *err)
{
    if (options->name_space != NULL)
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "the options of several namespaces name one themselves");
    if (n_names == 0)
        return kinf__error_set(err, KINF_ERR_INVALID, "no namespace is named");
    for (size_t i = 0; i < n_names; i++) {
        int rc = kinf__name_check_namespace(names[i] != NULL ? names[i] : "", err);

        if (rc < 0)
            return rc;
    }
    return 0;
}

static int sort_parts(struct kinf_namespaces *namespaces, struct kinf_error *err)
{
    struct part *parts = namespaces->parts;

    qsort(parts, namespaces->n_parts, sizeof *parts, compare_parts);
    for (size_t i = 1; i < namespaces->n_parts; i++) {
        if (strcmp(parts[i - 1].name, parts[i].name) == 0)
            return kinf__error_set(err, KINF_ERR_EXISTS, "the namespace \"%s\" is named twice",
                                   parts[i].name);
    }
    return 0;
}

static int copy_names(struct kinf_namespaces *namespaces, const char *const *names, size_t n_names,
                      struct kinf_error *err)
{
    namespaces->parts = calloc(n_names, sizeof *namespaces->parts);
    if (namespaces->parts == NULL)
        return kinf__error_no_memory(err);
    for (; namespaces->n_parts < n_names; namespaces->n_parts++) {
        struct part *part = &namespaces->parts[namespaces->n_parts];

        part->name = strdup(names[namespaces->n_parts]);
        if (part->name == NULL)
            return kinf__error_no_memory(err);
    }
    return sort_parts(namespaces, err);
}

static int make_informers(struct kinf_namespaces *namespaces, struct kinf_client *client,
                          const struct kinf_informer_options *options, struct kinf_error *err)
{
    struct kinf_informer_options each = *options;
    int rc = 0;

    each.handler = (struct kinf_handler){ .ctx = NULL };
    for (size_t i = 0; rc == 0 && i < namespaces->n_parts; i++) {
        each.name_space = namespaces->parts[i].name;
        rc = kinf__informer_new_for_type(client, namespaces->type, &each,
                                         &namespaces->parts[i].informer, err);
        if (rc == 0)
            kinf__informer_lend(namespaces->parts[i].informer);
    }
    return rc;
}

static void release(struct kinf_namespaces *namespaces)
{
    for (size_t i = 0; i < namespaces->n_parts; i++) {
        kinf__informer_free(namespaces->parts[i].informer);
        free(namespaces->parts[i].name);
    }
    free(namespaces->parts);
    kinf__cond_release(&namespaces->gone);
    kinf__mutex_release(&namespaces->lock);
    free(namespaces);
}

static bool is_in_callback(const struct kinf_namespaces *namespaces)
{
    const void *owner = kinf__callback_owner();

    for (size_t i = 0; i < namespaces->n_parts; i++) {
        if (namespaces->parts[i].informer == owner)
            return true;
    }
    return namespaces == owner;
}

/* --- handlers leave --- */

static void remove_inputs(struct kinf_namespaces *namespaces, const struct fan *fan)
{
    for (size_t i = 0; i < namespaces->n_parts; i++)
        kinf_informer_remove_handler(namespaces->parts[i].informer, fan->inputs[i]);
}

/* Inputs without a thread go at once, and none gets one meanwhile: starting needs the lock. */
static void dismiss_locked(struct kinf_namespaces *namespaces, struct fan *fan)
    KINF__REQUIRES(namespaces->lock)
{
    kinf__list_remove(&fan->in_owner);
    kinf__list_push_back(&namespaces->leaving, &fan->in_owner);
    kinf__funnel_remove(fan->funnel);
    if (!namespaces->is_started)
        remove_inputs(namespaces, fan);
}

/* The caller has claimed it. */
static void finish_claimed(struct kinf_namespaces *namespaces, struct fan *fan)
{
    remove_inputs(namespaces, fan);
    kinf__funnel_finish(fan->funnel);
    kinf__mutex_lock(&namespaces->lock);
    kinf__list_remove(&fan->in_owner);
    kinf__cond_broadcast(&namespaces->gone);
    kinf__mutex_unlock(&namespaces->lock);
    kinf__funnel_free(fan->funnel);
    free(fan);
}

/* Claims a leaving handler for this thread to finish. NULL when there is nothing to do for it: it
 * is gone, or is left to others because this thread must not wait. */
static struct fan *claim_locked(struct kinf_namespaces *namespaces, kinf_handler_id id)
    KINF__REQUIRES(namespaces->lock)
{
    struct fan *fan;

    while ((fan = find_fan(&namespaces->leaving, id)) != NULL) {
        if (kinf__callback_owner() != NULL && (namespaces->is_started || fan->is_claimed)) {
            /* Waits for nobody in a callback, and nothing more is queued. */
            remove_inputs(namespaces, fan);
            return NULL;
        }
        if (!fan->is_claimed) {
            fan->is_claimed = true;
            return fan;
        }
        kinf__cond_wait_until(&namespaces->gone, &namespaces->lock, KINF_FOREVER);
    }
    return NULL;
}

static void finish(struct kinf_namespaces *namespaces, kinf_handler_id id)
{
    struct fan *fan;

    kinf__mutex_lock(&namespaces->lock);
    fan = claim_locked(namespaces, id);
    kinf__mutex_unlock(&namespaces->lock);
    if (fan != NULL)
        finish_claimed(namespaces, fan);
}

static struct fan *claim_any_locked(struct kinf_namespaces *namespaces, bool only_done)
    KINF__REQUIRES(namespaces->lock)
{
    KINF__LIST_FOR_EACH (node, &namespaces->leaving) {
        struct fan *fan = fan_of(node);
        bool is_done = atomic_load_explicit(&fan->funnel->is_done, memory_order_acquire);

        if (!fan->is_claimed && (is_done || !only_done)) {
            fan->is_claimed = true;
            return fan;
        }
    }
    return NULL;
}

static bool finish_any(struct kinf_namespaces *namespaces, bool only_done)
{
    struct fan *fan;

    kinf__mutex_lock(&namespaces->lock);
    fan = claim_any_locked(namespaces, only_done);
    kinf__mutex_unlock(&namespaces->lock);
    if (fan != NULL)
        finish_claimed(namespaces, fan);
    return fan != NULL;
}

/* Frees what was removed from callbacks, when this thread may wait for a moment. */
static void reap(struct kinf_namespaces *namespaces)
{
    if (kinf__callback_owner() != NULL)
        return;
    while (finish_any(namespaces, true))
        continue;
}

static void close_handlers(struct kinf_namespaces *namespaces)
{
    kinf__mutex_lock(&namespaces->lock);
    namespaces->is_closed = true;
    KINF__LIST_FOR_EACH_SAFE (node, &namespaces->handlers)
        dismiss_locked(namespaces, fan_of(node));
    kinf__mutex_unlock(&namespaces->lock);
}

static void join_handlers(struct kinf_namespaces *namespaces)
{
    while (finish_any(namespaces, false))
        continue;
    kinf__mutex_lock(&namespaces->lock);
    while (!kinf__list_is_empty(&namespaces->leaving))
        kinf__cond_wait_until(&namespaces->gone, &namespaces->lock, KINF_FOREVER);
    kinf__mutex_unlock(&namespaces->lock);
}

/* --- handlers join --- */

static int fan_new(struct kinf_namespaces *namespaces, const struct kinf_handler *handler,
                   struct fan **ret_fan, struct kinf_error *err)
{
    struct fan *fan = calloc(1, sizeof *fan + namespaces->n_parts * sizeof fan->inputs[0]);
    int rc;

    if (fan == NULL)
        return kinf__error_no_memory(err);
    kinf__list_init(&fan->in_owner);
    rc = kinf__funnel_new(handler, namespaces->n_parts, namespaces, &fan->funnel, err);
    if (rc < 0) {
        free(fan);
        return rc;
    }
    *ret_fan = fan;
    return 0;
}

/* The thread comes last: until every input is there, nothing is told. */
static int start_fan_locked(struct kinf_namespaces *namespaces, struct fan *fan,
                            struct kinf_error *err) KINF__REQUIRES(namespaces->lock)
{
    struct kinf_handler input = kinf__funnel_input(fan->funnel);
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < namespaces->n_parts; i++)
        rc = kinf_informer_add_handler(namespaces->parts[i].informer, &input, &fan->inputs[i], err);
    return rc == 0 && namespaces->is_started ? kinf__funnel_start(fan->funnel, err) : rc;
}

/* On failure *ret_id is of a handler that leaves, or 0. */
static int add_locked(struct kinf_namespaces *namespaces, const struct kinf_handler *handler,
                      kinf_handler_id *ret_id, struct kinf_error *err)
    KINF__REQUIRES(namespaces->lock)
{
    struct fan *fan = NULL;
    int rc;

    *ret_id = 0;
    if (namespaces->is_closed)
        return kinf__error_set(err, KINF_ERR_STOPPED, "the informer has stopped");
    rc = fan_new(namespaces, handler, &fan, err);
    if (rc < 0)
        return rc;
    fan->id = ++namespaces->last_id;
    *ret_id = fan->id;
    kinf__list_push_back(&namespaces->handlers, &fan->in_owner);
    rc = start_fan_locked(namespaces, fan, err);
    if (rc < 0) {
        fan->funnel->handler = (struct kinf_handler){ .ctx = NULL };
        dismiss_locked(namespaces, fan);
    }
    return rc;
}

/* --- life --- */

int kinf__namespaces_new_for_type(struct kinf_client *client, const struct kinf_type *type,
                                  const struct kinf_informer_options *options,
                                  const char *const *names, size_t n_names,
                                  struct kinf_namespaces **ret_namespaces, struct kinf_error *err)
{
    struct kinf_namespaces *namespaces;
    kinf_handler_id id;
    int rc = check_names(options, names, n_names, err);

    if (rc < 0)
        return rc;
    namespaces = calloc(1, sizeof *namespaces);
    if (namespaces == NULL)
        return kinf__error_no_memory(err);
    namespaces->type = type;
    kinf__mutex_init(&namespaces->lock, KINF__RANK_NAMESPACES);
    kinf__cond_init(&namespaces->gone);
    kinf__list_init(&namespaces->handlers);
    kinf__list_init(&namespaces->leaving);
    rc = copy_names(namespaces, names, n_names, err);
    if (rc == 0)
        rc = make_informers(namespaces, client, options, err);
    if (rc == 0 && kinf__handler_has_callback(&options->handler))
        rc = kinf_namespaces_add_handler(namespaces, &options->handler, &id, err);
    if (rc < 0)
        release(namespaces);
    else
        *ret_namespaces = namespaces;
    return rc;
}

int kinf_namespaces_new(struct kinf_client *client, const struct kinf_informer_options *options,
                        const char *const *names, size_t n_names,
                        struct kinf_namespaces **ret_namespaces, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, client, options, ret_namespaces);
    if (n_names != 0)
        KINF__REFUSE_NULL(err, KINF_ERR_INVALID, names);

    struct kinf_informer_options own;
    const struct kinf_type *type;
    int rc;

    rc = kinf__informer_options_read(client, options, &own, &type, err);
    return rc < 0 ? rc
                  : kinf__namespaces_new_for_type(client, type, &own, names, n_names,
                                                  ret_namespaces, err);
}

void kinf_namespaces_free(struct kinf_namespaces *namespaces)
{
    struct kinf_error err = KINF_ERROR_INIT;

    if (namespaces == NULL)
        return;
    if (kinf_namespaces_stop(namespaces, &err) < 0) {
        KINF__LOG(KINF__LOG_INFORMER, KINF_LOG_ERROR, "not freed resource=%s error=%s",
                  namespaces->type->resource, KINF__QUOTED(err.message));
        return;
    }
    release(namespaces);
}

void kinf_namespaces_free_ptr(struct kinf_namespaces **namespaces)
{
    KINF__REFUSE_NULL(NULL, , namespaces);
    kinf_namespaces_free(*namespaces);
}

static int start_funnels(struct kinf_namespaces *namespaces, struct kinf_error *err)
{
    int rc = 0;

    kinf__mutex_lock(&namespaces->lock);
    if (namespaces->is_started || namespaces->is_closed) {
        kinf__mutex_unlock(&namespaces->lock);
        return kinf__error_set(err, KINF_ERR_STATE, "the informer was started or stopped before");
    }
    namespaces->is_started = true;
    KINF__LIST_FOR_EACH (node, &namespaces->handlers) {
        if (rc == 0)
            rc = kinf__funnel_start(fan_of(node)->funnel, err);
    }
    kinf__mutex_unlock(&namespaces->lock);
    return rc;
}

int kinf_namespaces_start(struct kinf_namespaces *namespaces, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, namespaces);

    int rc = start_funnels(namespaces, err);

    if (rc == KINF_ERR_STATE)
        return rc;
    for (size_t i = 0; rc == 0 && i < namespaces->n_parts; i++)
        rc = kinf__informer_start(namespaces->parts[i].informer, err);
    if (rc < 0)
        kinf_namespaces_stop(namespaces, NULL);
    return rc;
}

int kinf_namespaces_stop(struct kinf_namespaces *namespaces, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, namespaces);

    struct kinf__callback_wait wait;
    int rc = 0;

    if (is_in_callback(namespaces) || !kinf__callback_begin_wait(&wait, namespaces))
        return kinf__error_set(err, KINF_ERR_STATE,
                               "an informer cannot be stopped from its own callback, nor from one "
                               "that it waits for");
    close_handlers(namespaces);
    for (size_t i = 0; rc == 0 && i < namespaces->n_parts; i++)
        rc = kinf__informer_stop(namespaces->parts[i].informer, err);
    join_handlers(namespaces);
    kinf__callback_end_wait(&wait);
    return rc;
}

int kinf_namespaces_wait_synced(struct kinf_namespaces *namespaces, int64_t timeout_ms,
                                struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, namespaces);

    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), timeout_ms);

    for (size_t i = 0; i < namespaces->n_parts; i++) {
        const struct part *part = &namespaces->parts[i];
        int rc = kinf_informer_wait_synced(
            part->informer, kinf__clock_left_ms(kinf__clock_now_ms(), deadline_ms), err);

        if (rc < 0) {
            kinf__error_prefix(err, "namespace %s", part->name);
            return rc;
        }
    }
    return 0;
}

bool kinf_namespaces_has_synced(struct kinf_namespaces *namespaces)
{
    KINF__REFUSE_NULL(NULL, false, namespaces);
    for (size_t i = 0; i < namespaces->n_parts; i++) {
        if (!kinf_informer_has_synced(namespaces->parts[i].informer))
            return false;
    }
    return true;
}

/* --- handlers --- */

int kinf_namespaces_add_handler(struct kinf_namespaces *namespaces,
                                const struct kinf_handler *handler, kinf_handler_id *ret_id,
                                struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, namespaces, handler, ret_id);

    kinf_handler_id id;
    int rc;

    reap(namespaces);
    kinf__mutex_lock(&namespaces->lock);
    rc = add_locked(namespaces, handler, &id, err);
    kinf__mutex_unlock(&namespaces->lock);
    if (rc < 0)
        finish(namespaces, id);
    else
        *ret_id = id;
    return rc;
}

void kinf_namespaces_remove_handler(struct kinf_namespaces *namespaces, kinf_handler_id id)
{
    KINF__REFUSE_NULL(NULL, , namespaces);

    struct fan *fan;

    kinf__mutex_lock(&namespaces->lock);
    fan = find_fan(&namespaces->handlers, id);
    if (fan != NULL)
        dismiss_locked(namespaces, fan);
    kinf__mutex_unlock(&namespaces->lock);
    finish(namespaces, id);
    reap(namespaces);
}

bool kinf_namespaces_handler_has_synced(struct kinf_namespaces *namespaces, kinf_handler_id id)
{
    KINF__REFUSE_NULL(NULL, false, namespaces);

    const struct fan *fan;
    bool has_synced;

    kinf__mutex_lock(&namespaces->lock);
    fan = find_fan(&namespaces->handlers, id);
    has_synced =
        fan != NULL && atomic_load_explicit(&fan->funnel->has_synced, memory_order_acquire);
    kinf__mutex_unlock(&namespaces->lock);
    return has_synced;
}

/* --- reading --- */

/* What is asked of each part: by selector, or by index if one is named. */
struct question {
    const struct kinf_label_selector *selector;
    const char *index;
    const char *value;
};

static int ask_part(const struct part *part, const struct question *question,
                    struct kinf_object_list *ret_list, struct kinf_error *err)
{
    const struct kinf_lister lister = kinf_informer_lister(part->informer, NULL);

    if (question->index != NULL)
        return kinf_indexer_by_index(lister.indexer, question->index, question->value, ret_list,
                                     err);
    return kinf_lister_list(&lister, question->selector, ret_list, err);
}

/* Moves the objects of `take_list` behind those of `list`. */
static int append_list(struct kinf_object_list *list, struct kinf_object_list *take_list,
                       struct kinf_error *err)
{
    const struct kinf_object **items;

    if (take_list->n_items == 0)
        return 0;
    items = reallocarray(list->items, list->n_items + take_list->n_items, sizeof *items);
    if (items == NULL) {
        kinf_object_list_release(take_list);
        return kinf__error_no_memory(err);
    }
    memcpy(items + list->n_items, take_list->items, take_list->n_items * sizeof *items);
    list->items = items;
    list->n_items += take_list->n_items;
    free(take_list->items);
    return 0;
}

static int ask_all(const struct kinf_namespaces *namespaces, const struct question *question,
                   struct kinf_object_list *ret_list, struct kinf_error *err)
{
    struct kinf_object_list all = KINF_OBJECT_LIST_INIT;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < namespaces->n_parts; i++) {
        struct kinf_object_list list = KINF_OBJECT_LIST_INIT;

        rc = ask_part(&namespaces->parts[i], question, &list, err);
        if (rc == 0)
            rc = append_list(&all, &list, err);
    }
    if (rc < 0)
        kinf_object_list_release(&all);
    else
        *ret_list = all;
    return rc;
}

int kinf_namespaces_list(struct kinf_namespaces *namespaces,
                         const struct kinf_label_selector *selector,
                         struct kinf_object_list *ret_list, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, namespaces, ret_list);

    const struct question question = { .selector = selector };

    return ask_all(namespaces, &question, ret_list, err);
}

int kinf_namespaces_by_index(struct kinf_namespaces *namespaces, const char *index,
                             const char *value, struct kinf_object_list *ret_list,
                             struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, namespaces, index, value, ret_list);

    const struct question question = { .index = index, .value = value };

    return ask_all(namespaces, &question, ret_list, err);
}

int kinf_namespaces_get(struct kinf_namespaces *namespaces, const char *key,
                        const struct kinf_object **ret_object, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, namespaces, key, ret_object);

    const char *slash = strchr(key, '/');
    struct kinf_str name = { key, slash != NULL ? (size_t)(slash - key) : 0 };
    const struct part *part = find_part(namespaces, name);

    if (part == NULL ||
        kinf_indexer_get_by_key(kinf_informer_indexer(part->informer), key, ret_object) < 0)
        return kinf__error_set(err, KINF_ERR_NOT_FOUND, "\"%s\" not found", key);
    return 0;
}

int kinf_namespaces_wait_for_rv(struct kinf_namespaces *namespaces, const char *name,
                                const char *resource_version, int64_t timeout_ms,
                                struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, namespaces, name, resource_version);

    const struct part *part = find_part(namespaces, kinf_str_from(name));

    if (part == NULL)
        return kinf__error_set(err, KINF_ERR_NOT_FOUND, "the namespace \"%s\" is not watched",
                               name);
    return kinf_informer_wait_for_rv(part->informer, resource_version, timeout_ms, err);
}

struct kinf_informer *kinf_namespaces_informer(struct kinf_namespaces *namespaces, const char *name)
{
    KINF__REFUSE_NULL(NULL, NULL, namespaces, name);

    const struct part *part = find_part(namespaces, kinf_str_from(name));

    return part != NULL ? part->informer : NULL;
}

const struct kinf_type *kinf_namespaces_type(const struct kinf_namespaces *namespaces)
{
    KINF__REFUSE_NULL(NULL, NULL, namespaces);
    return namespaces->type;
}
