/*
 * One entry of the configuration's resources: reading it, checking it, comparing two. Neighbours:
 * config.c has what is said once.
 */
#include "daemon/resource_config.h"

#include <stdlib.h>
#include <string.h>

#include <kinformer/informer.h>
#include <kinformer/path.h>
#include <kinformer/selector.h>

#include "base/compiler.h"
#include "base/error.h"
#include "daemon/expand.h"
#include "informer/informer.h"
#include "object/object.h"
#include "object/shard.h"

#define NAMESPACE_MAX_LEN 63

int kinf__strings_add(struct kinf__strings *strings, const char *text)
{
    char **items = realloc(strings->items, (strings->n_items + 1) * sizeof *items);

    if (items == NULL)
        return KINF_ERR_NO_MEMORY;
    strings->items = items;
    items[strings->n_items] = strdup(text);
    if (items[strings->n_items] == NULL)
        return KINF_ERR_NO_MEMORY;
    strings->n_items++;
    return 0;
}

void kinf__strings_release(struct kinf__strings *strings)
{
    for (size_t i = 0; i < strings->n_items; i++)
        free(strings->items[i]);
    free(strings->items);
}

bool kinf__strings_equal(const struct kinf__strings *a, const struct kinf__strings *b)
{
    if (a->n_items != b->n_items)
        return false;
    for (size_t i = 0; i < a->n_items; i++) {
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    }
    return true;
}

bool kinf__text_equal(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

int kinf__config_read_text(const struct kinf__config_reader *reader, const char *key,
                           char **ret_copy)
{
    const char *text = NULL;
    int failed = kinf__yaml_read_string(reader->yaml, reader->mapping, key, &text, reader->err);

    if (failed < 0 || text == NULL)
        return failed;
    *ret_copy = strdup(text);
    return *ret_copy != NULL ? 0 : kinf__error_no_memory(reader->err);
}

int kinf__config_read_texts(const struct kinf__config_reader *reader, const char *key,
                            struct kinf__strings *strings)
{
    const struct kinf__yaml_node *list = NULL;
    int failed = kinf__yaml_read_sequence(reader->yaml, reader->mapping, key, &list, reader->err);

    for (size_t i = 0; failed == 0 && list != NULL && i < list->n_items; i++) {
        const struct kinf__yaml_node *item = list->items[i];

        if (item->type != KINF__YAML_SCALAR || kinf__yaml_is_null(item))
            return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml, item,
                                    "%s: a string is expected here", key);
        if (kinf__strings_add(strings, item->text.bytes) < 0)
            return kinf__error_no_memory(reader->err);
    }
    return failed;
}

int kinf__config_read_expanded(const struct kinf__config_reader *reader, const char *key,
                               char **ret_copy)
{
    KINF__AUTO_FREE char *text = NULL;
    struct kinf_error why = KINF_ERROR_INIT;
    int failed = kinf__config_read_text(reader, key, &text);

    if (failed < 0 || text == NULL)
        return failed;
    failed = kinf__expand(text, ret_copy, &why);
    if (failed == KINF_ERR_CONFIG)
        return kinf__yaml_error(reader->err, failed, reader->yaml,
                                kinf__yaml_get(reader->mapping, key), "%s: %s", key, why.message);
    return failed < 0 ? kinf__error_no_memory(reader->err) : 0;
}

bool kinf__resource_config_equal(const struct kinf__resource_config *a,
                                 const struct kinf__resource_config *b)
{
    return kinf__text_equal(a->resource, b->resource) &&
           kinf__strings_equal(&a->namespaces, &b->namespaces) &&
           kinf__text_equal(a->label_selector, b->label_selector) &&
           kinf__text_equal(a->field_selector, b->field_selector) &&
           kinf__text_equal(a->shard_selector, b->shard_selector) &&
           kinf__strings_equal(&a->drops, &b->drops) && kinf__strings_equal(&a->keeps, &b->keeps) &&
           kinf__strings_equal(&a->index_names, &b->index_names) &&
           kinf__strings_equal(&a->index_paths, &b->index_paths) &&
           a->resync_period_ms == b->resync_period_ms &&
           a->watch_timeout_ms == b->watch_timeout_ms && a->silent_after_ms == b->silent_after_ms &&
           a->backoff_base_ms == b->backoff_base_ms && a->backoff_max_ms == b->backoff_max_ms &&
           a->initial == b->initial && a->page_size == b->page_size &&
           a->max_object_bytes == b->max_object_bytes && a->max_queue_bytes == b->max_queue_bytes &&
           a->gzip == b->gzip && a->is_compressed == b->is_compressed && a->serve == b->serve &&
           a->state == b->state && a->max_history_bytes == b->max_history_bytes &&
           a->max_history_age_ms == b->max_history_age_ms &&
           a->max_held_bytes == b->max_held_bytes && a->assume_scope == b->assume_scope &&
           a->consistency == b->consistency;
}

void kinf__resource_config_release(struct kinf__resource_config *resource)
{
    free(resource->resource);
    free(resource->label_selector);
    free(resource->field_selector);
    free(resource->shard_selector);
    kinf__strings_release(&resource->namespaces);
    kinf__strings_release(&resource->drops);
    kinf__strings_release(&resource->keeps);
    kinf__strings_release(&resource->index_names);
    kinf__strings_release(&resource->index_paths);
}

static int read_index(const struct kinf__yaml *yaml, const struct kinf__yaml_node *node,
                      struct kinf__resource_config *resource, struct kinf_error *err)
{
    static const char *const allowed[] = { "name", "path", NULL };
    const char *name = NULL, *path = NULL;
    int failed;

    if (node->type != KINF__YAML_MAPPING)
        return kinf__yaml_error(err, KINF_ERR_CONFIG, yaml, node, "an index has a name and a path");
    if ((failed = kinf__yaml_check_keys(yaml, node, allowed, err)) < 0 ||
        (failed = kinf__yaml_read_string(yaml, node, "name", &name, err)) < 0 ||
        (failed = kinf__yaml_read_string(yaml, node, "path", &path, err)) < 0)
        return failed;
    if (name == NULL || path == NULL)
        return kinf__yaml_error(err, KINF_ERR_CONFIG, yaml, node, "an index has a name and a path");
    if (kinf__strings_add(&resource->index_names, name) < 0 ||
        kinf__strings_add(&resource->index_paths, path) < 0)
        return kinf__error_no_memory(err);
    return 0;
}

static int read_indices(const struct kinf__config_reader *reader,
                        struct kinf__resource_config *resource)
{
    const struct kinf__yaml_node *list = NULL;
    int failed =
        kinf__yaml_read_sequence(reader->yaml, reader->mapping, "indices", &list, reader->err);

    for (size_t i = 0; failed == 0 && list != NULL && i < list->n_items; i++)
        failed = read_index(reader->yaml, list->items[i], resource, reader->err);
    return failed;
}

int kinf__config_check_above_zero(const struct kinf__config_reader *reader, const char *key,
                                  uint64_t value)
{
    const struct kinf__yaml_node *node = kinf__yaml_get(reader->mapping, key);

    return node == NULL || value != 0
               ? 0
               : kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml, node,
                                  "%s has to be above 0; left out it is the default", key);
}

static int read_durations(const struct kinf__config_reader *reader,
                          struct kinf__resource_config *resource)
{
    const struct {
        const char *key;
        int64_t *ms;
        bool has_zero;
    } durations[] = { { "resyncPeriod", &resource->resync_period_ms, true },
                      { "watchTimeout", &resource->watch_timeout_ms, false },
                      { "silentAfter", &resource->silent_after_ms, false },
                      { "backoffBase", &resource->backoff_base_ms, false },
                      { "backoffMax", &resource->backoff_max_ms, false },
                      { "maxHistoryAge", &resource->max_history_age_ms, false } };
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(durations); i++) {
        failed = kinf__yaml_read_duration_ms(reader->yaml, reader->mapping, durations[i].key,
                                             durations[i].ms, reader->err);
        if (failed == 0 && !durations[i].has_zero)
            failed =
                kinf__config_check_above_zero(reader, durations[i].key, (uint64_t)*durations[i].ms);
    }
    return failed;
}

static int read_numbers(const struct kinf__config_reader *reader,
                        struct kinf__resource_config *resource)
{
    const struct {
        const char *key;
        uint64_t max;
        uint64_t *number;
        bool has_zero;
    } numbers[] = { { "pageSize", 1000000, &resource->page_size, true },
                    { "maxObjectBytes", UINT32_MAX, &resource->max_object_bytes, false },
                    { "maxQueueBytes", SIZE_MAX / 2, &resource->max_queue_bytes, false },
                    { "maxHistoryBytes", SIZE_MAX / 2, &resource->max_history_bytes, false },
                    { "maxHeldBytes", SIZE_MAX / 2, &resource->max_held_bytes, false } };
    int failed = read_durations(reader, resource);

    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(numbers); i++) {
        failed = kinf__yaml_read_uint(reader->yaml, reader->mapping, numbers[i].key, numbers[i].max,
                                      numbers[i].number, reader->err);
        if (failed == 0 && !numbers[i].has_zero)
            failed = kinf__config_check_above_zero(reader, numbers[i].key, *numbers[i].number);
    }
    return failed;
}

static int read_initial(const struct kinf__config_reader *reader, enum kinf_initial *ret_initial)
{
    const char *text = NULL;
    int failed =
        kinf__yaml_read_string(reader->yaml, reader->mapping, "initial", &text, reader->err);

    if (failed < 0 || text == NULL || kinf_initial_parse(text, ret_initial))
        return failed;
    return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml,
                            kinf__yaml_get(reader->mapping, "initial"),
                            "initial is one of auto, watchlist, list, not '%s'", text);
}

/* Secrets only if the configuration says so in as many words. */
bool kinf__choice_is_yes(enum kinf__choice choice, const struct kinf_type *type)
{
    bool is_secret = *type->group == '\0' && strcmp(type->resource, "secrets") == 0;

    return choice == KINF__CHOICE_YES || (choice == KINF__CHOICE_DEFAULT && !is_secret);
}

static int read_choice(const struct kinf__config_reader *reader, const char *key,
                       enum kinf__choice *ret_choice)
{
    bool is_yes = false;
    int failed = kinf__yaml_read_bool(reader->yaml, reader->mapping, key, &is_yes, reader->err);

    if (failed == 0 && kinf__yaml_get(reader->mapping, key) != NULL)
        *ret_choice = is_yes ? KINF__CHOICE_YES : KINF__CHOICE_NO;
    return failed;
}

static int read_choices(const struct kinf__config_reader *reader,
                        struct kinf__resource_config *resource)
{
    int failed = read_choice(reader, "serve", &resource->serve);

    if (failed == 0)
        failed = read_choice(reader, "state", &resource->state);
    if (failed == 0)
        failed = kinf__yaml_read_bool(reader->yaml, reader->mapping, "assumeScope",
                                      &resource->assume_scope, reader->err);
    return failed;
}

static int read_consistency(const struct kinf__config_reader *reader,
                            struct kinf__resource_config *resource)
{
    const char *text = NULL;
    int failed =
        kinf__yaml_read_string(reader->yaml, reader->mapping, "consistency", &text, reader->err);

    if (failed < 0 || text == NULL || kinf__consistency_parse(text, &resource->consistency))
        return failed;
    return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml,
                            kinf__yaml_get(reader->mapping, "consistency"),
                            "consistency is one of session, cache, latest, not '%s'", text);
}

bool kinf__store_parse(const char *name, bool *ret_is_compressed)
{
    *ret_is_compressed = strcmp(name, "compressed") == 0;
    return *ret_is_compressed || strcmp(name, "plain") == 0;
}

static int read_store(const struct kinf__config_reader *reader,
                      struct kinf__resource_config *resource)
{
    const char *text = "plain";
    int failed = kinf__yaml_read_string(reader->yaml, reader->mapping, "store", &text, reader->err);

    if (failed < 0)
        return failed;
    if (kinf__store_parse(text, &resource->is_compressed))
        return 0;
    return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml,
                            kinf__yaml_get(reader->mapping, "store"),
                            "store is one of plain, compressed, not '%s'", text);
}

int kinf__resource_config_read(const struct kinf__yaml *yaml, const struct kinf__yaml_node *node,
                               struct kinf__resource_config *resource, struct kinf_error *err)
{
    static const char *const allowed[] = { "resource",        "namespaces",     "labelSelector",
                                           "fieldSelector",   "drop",           "keep",
                                           "indices",         "resyncPeriod",   "watchTimeout",
                                           "silentAfter",     "maxObjectBytes", "maxQueueBytes",
                                           "pageSize",        "gzip",           "initial",
                                           "shardSelector",   "backoffBase",    "backoffMax",
                                           "serve",           "state",          "assumeScope",
                                           "maxHistoryBytes", "maxHistoryAge",  "maxHeldBytes",
                                           "consistency",     "store",          NULL };
    const struct kinf__config_reader reader = { yaml, node, err };
    int failed;

    if (node->type != KINF__YAML_MAPPING)
        return kinf__yaml_error(err, KINF_ERR_CONFIG, yaml, node,
                                "an entry of resources is a mapping");
    if ((failed = kinf__yaml_check_keys(yaml, node, allowed, err)) < 0 ||
        (failed = kinf__config_read_text(&reader, "resource", &resource->resource)) < 0 ||
        (failed = kinf__config_read_texts(&reader, "namespaces", &resource->namespaces)) < 0 ||
        (failed = kinf__config_read_expanded(&reader, "labelSelector", &resource->label_selector)) <
            0 ||
        (failed = kinf__config_read_expanded(&reader, "fieldSelector", &resource->field_selector)) <
            0 ||
        (failed = kinf__config_read_expanded(&reader, "shardSelector", &resource->shard_selector)) <
            0 ||
        (failed = kinf__config_read_texts(&reader, "drop", &resource->drops)) < 0 ||
        (failed = kinf__config_read_texts(&reader, "keep", &resource->keeps)) < 0 ||
        (failed = read_indices(&reader, resource)) < 0 ||
        (failed = read_initial(&reader, &resource->initial)) < 0 ||
        (failed = read_numbers(&reader, resource)) < 0 ||
        (failed = read_choices(&reader, resource)) < 0 ||
        (failed = read_consistency(&reader, resource)) < 0 ||
        (failed = read_store(&reader, resource)) < 0 ||
        (failed = kinf__yaml_read_bool(yaml, node, "gzip", &resource->gzip, err)) < 0)
        return failed;
    if (resource->resource == NULL)
        return kinf__yaml_error(err, KINF_ERR_CONFIG, yaml, node, "the key 'resource' is missing");
    return 0;
}

static int check_paths(const struct kinf__strings *paths, struct kinf_error *err)
{
    for (size_t i = 0; i < paths->n_items; i++) {
        struct kinf_path *path = NULL;
        int failed = kinf_path_parse(paths->items[i], &path, err);

        if (failed < 0)
            return failed;
        kinf_path_free(path);
    }
    return 0;
}

static int check_index_names(const struct kinf__strings *names, struct kinf_error *err)
{
    for (size_t i = 0; i < names->n_items; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(names->items[i], names->items[k]) == 0)
                return kinf__error_set(err, KINF_ERR_CONFIG, "index %s is there twice",
                                       names->items[i]);
        }
    }
    return 0;
}

/* What an informer would say: whether all may be dropped, and is kept that is asked for. */
static int check_together(const struct kinf__resource_config *resource, struct kinf_error *err)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    KINF__AUTO_FREE struct kinf_index *indices =
        calloc(resource->index_paths.n_items + 1, sizeof *indices);
    struct kinf__prune_plan *plan = NULL;
    int failed;

    if (indices == NULL)
        return kinf__error_no_memory(err);
    for (size_t i = 0; i < resource->index_paths.n_items; i++)
        indices[i].path = resource->index_paths.items[i];
    options.indices = indices;
    options.n_indices = resource->index_paths.n_items;
    failed = kinf__prune_plan_new(
        (const char *const *)resource->drops.items, resource->drops.n_items,
        (const char *const *)resource->keeps.items, resource->keeps.n_items, &plan, err);
    if (failed == 0)
        failed = kinf__informer_options_check_paths(&options, plan, err);
    kinf__prune_plan_free(plan);
    return failed;
}

static int check_selectors(const struct kinf__resource_config *resource, struct kinf_error *err)
{
    struct kinf_label_selector *labels = NULL;
    struct kinf_field_selector *fields = NULL;
    struct kinf__shard_selector *shard = NULL;
    int failed = 0;

    if (resource->label_selector != NULL)
        failed = kinf_label_selector_parse(resource->label_selector, &labels, err);
    if (failed == 0 && resource->field_selector != NULL)
        failed = kinf_field_selector_parse(resource->field_selector, &fields, err);
    if (failed == 0 && resource->shard_selector != NULL)
        failed = kinf__shard_selector_parse(resource->shard_selector, &shard, err);
    kinf__shard_selector_free(shard);
    kinf_label_selector_free(labels);
    kinf_field_selector_free(fields);
    return failed;
}

/* As the API server names namespaces: a DNS label. */
static bool is_namespace_name(const char *name)
{
    size_t len = strlen(name);

    return len != 0 && len <= NAMESPACE_MAX_LEN &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len && name[0] != '-' &&
           name[len - 1] != '-';
}

static int check_namespaces(const struct kinf__strings *namespaces, struct kinf_error *err)
{
    for (size_t i = 0; i < namespaces->n_items; i++) {
        const char *name = namespaces->items[i];

        if (*name == '\0')
            return kinf__error_set(err, KINF_ERR_CONFIG,
                                   "an empty namespace; leave the list out for all");
        if (!is_namespace_name(name))
            return kinf__error_set(err, KINF_ERR_CONFIG,
                                   "no namespace can be called '%s': at most %d of a-z, 0-9 and "
                                   "'-', which is neither first nor last",
                                   name, NAMESPACE_MAX_LEN);
        for (size_t k = 0; k < i; k++) {
            if (strcmp(name, namespaces->items[k]) == 0)
                return kinf__error_set(err, KINF_ERR_CONFIG, "namespace %s is there twice", name);
        }
    }
    return 0;
}

int kinf__resource_config_check(const struct kinf__resource_config *resource,
                                struct kinf_error *err)
{
    int failed;

    if ((failed = check_selectors(resource, err)) < 0 ||
        (failed = check_paths(&resource->drops, err)) < 0 ||
        (failed = check_paths(&resource->keeps, err)) < 0 ||
        (failed = check_paths(&resource->index_paths, err)) < 0 ||
        (failed = check_index_names(&resource->index_names, err)) < 0 ||
        (failed = check_together(resource, err)) < 0)
        return failed;
    return check_namespaces(&resource->namespaces, err);
}
