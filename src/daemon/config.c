/*
 * The configuration file. Neighbours: options.c makes the same struct from the command line. Every
 * complaint says file, line and column; what the file does not say keeps its default.
 */
#include "daemon/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kinformer/path.h>
#include <kinformer/selector.h>

#include "base/compiler.h"
#include "base/error.h"
#include "daemon/expand.h"
#include "object/shard.h"
#include "serve/address.h"
#include "serve/endpoint.h"
#include "yaml/yaml.h"

#define NAMESPACE_MAX_LEN 63

/* What the readers below are in the middle of. */
struct reader {
    const struct kinf__yaml *yaml;
    const struct kinf__yaml_node *mapping;
    struct kinf_error *err;
};

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

static void strings_release(struct kinf__strings *strings)
{
    for (size_t i = 0; i < strings->n_items; i++)
        free(strings->items[i]);
    free(strings->items);
}

static bool strings_equal(const struct kinf__strings *a, const struct kinf__strings *b)
{
    if (a->n_items != b->n_items)
        return false;
    for (size_t i = 0; i < a->n_items; i++) {
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    }
    return true;
}

static bool text_equal(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

bool kinf__resource_config_equal(const struct kinf__resource_config *a,
                                 const struct kinf__resource_config *b)
{
    return text_equal(a->resource, b->resource) && strings_equal(&a->namespaces, &b->namespaces) &&
           text_equal(a->label_selector, b->label_selector) &&
           text_equal(a->field_selector, b->field_selector) &&
           text_equal(a->shard_selector, b->shard_selector) &&
           strings_equal(&a->drops, &b->drops) && strings_equal(&a->keeps, &b->keeps) &&
           strings_equal(&a->index_names, &b->index_names) &&
           strings_equal(&a->index_paths, &b->index_paths) &&
           a->resync_period_ms == b->resync_period_ms &&
           a->watch_timeout_ms == b->watch_timeout_ms && a->silent_after_ms == b->silent_after_ms &&
           a->backoff_base_ms == b->backoff_base_ms && a->backoff_max_ms == b->backoff_max_ms &&
           a->initial == b->initial && a->page_size == b->page_size &&
           a->max_object_bytes == b->max_object_bytes && a->max_queue_bytes == b->max_queue_bytes &&
           a->gzip == b->gzip && a->serve == b->serve &&
           a->max_history_bytes == b->max_history_bytes &&
           a->max_history_age_ms == b->max_history_age_ms &&
           a->max_held_bytes == b->max_held_bytes && a->assume_scope == b->assume_scope &&
           a->is_latest == b->is_latest;
}

static void resource_release(struct kinf__resource_config *resource)
{
    free(resource->resource);
    free(resource->label_selector);
    free(resource->field_selector);
    free(resource->shard_selector);
    strings_release(&resource->namespaces);
    strings_release(&resource->drops);
    strings_release(&resource->keeps);
    strings_release(&resource->index_names);
    strings_release(&resource->index_paths);
}

void kinf__config_release(struct kinf__config *config)
{
    for (size_t i = 0; i < config->n_resources; i++)
        resource_release(&config->resources[i]);
    free(config->resources);
    free(config->kubeconfig);
    free(config->context);
    free(config->log_levels);
    free(config->cert_file);
    free(config->unix_users);
    free(config->key_file);
    strings_release(&config->listen);
    *config = (struct kinf__config){ 0 };
}

struct kinf__resource_config *kinf__config_add_resource(struct kinf__config *config)
{
    struct kinf__resource_config *resources =
        realloc(config->resources, (config->n_resources + 1) * sizeof *resources);

    if (resources == NULL)
        return NULL;
    config->resources = resources;
    resources[config->n_resources] = (struct kinf__resource_config){ 0 };
    return &resources[config->n_resources++];
}

bool kinf__events_mode_parse(const char *text, enum kinf__events_mode *ret_mode)
{
    static const struct {
        const char *name;
        enum kinf__events_mode mode;
    } modes[] = { { "none", KINF__EVENTS_NONE },
                  { "text", KINF__EVENTS_TEXT },
                  { "json", KINF__EVENTS_JSON } };

    for (size_t i = 0; i < KINF__ARRAY_LEN(modes); i++) {
        if (strcmp(text, modes[i].name) == 0) {
            *ret_mode = modes[i].mode;
            return true;
        }
    }
    return false;
}

static int read_text(const struct reader *reader, const char *key, char **ret_copy)
{
    const char *text = NULL;
    int failed = kinf__yaml_read_string(reader->yaml, reader->mapping, key, &text, reader->err);

    if (failed < 0 || text == NULL)
        return failed;
    *ret_copy = strdup(text);
    return *ret_copy != NULL ? 0 : kinf__error_no_memory(reader->err);
}

/* A text with variables of the environment: of a node's cache, say, the node's name. */
static int read_selector(const struct reader *reader, const char *key, char **ret_copy)
{
    KINF__AUTO_FREE char *text = NULL;
    struct kinf_error why = KINF_ERROR_INIT;
    int failed = read_text(reader, key, &text);

    if (failed < 0 || text == NULL)
        return failed;
    failed = kinf__expand(text, ret_copy, &why);
    if (failed == KINF_ERR_CONFIG)
        return kinf__yaml_error(reader->err, failed, reader->yaml,
                                kinf__yaml_get(reader->mapping, key), "%s: %s", key, why.message);
    return failed < 0 ? kinf__error_no_memory(reader->err) : 0;
}

static int read_texts(const struct reader *reader, const char *key, struct kinf__strings *strings)
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

static int read_indices(const struct reader *reader, struct kinf__resource_config *resource)
{
    const struct kinf__yaml_node *list = NULL;
    int failed =
        kinf__yaml_read_sequence(reader->yaml, reader->mapping, "indices", &list, reader->err);

    for (size_t i = 0; failed == 0 && list != NULL && i < list->n_items; i++)
        failed = read_index(reader->yaml, list->items[i], resource, reader->err);
    return failed;
}

static int read_numbers(const struct reader *reader, struct kinf__resource_config *resource)
{
    const struct {
        const char *key;
        int64_t *ms;
    } durations[] = { { "resyncPeriod", &resource->resync_period_ms },
                      { "watchTimeout", &resource->watch_timeout_ms },
                      { "silentAfter", &resource->silent_after_ms },
                      { "backoffBase", &resource->backoff_base_ms },
                      { "backoffMax", &resource->backoff_max_ms },
                      { "maxHistoryAge", &resource->max_history_age_ms } };
    const struct {
        const char *key;
        uint64_t max;
        uint64_t *number;
    } numbers[] = { { "pageSize", 1000000, &resource->page_size },
                    { "maxObjectBytes", UINT32_MAX, &resource->max_object_bytes },
                    { "maxQueueBytes", SIZE_MAX / 2, &resource->max_queue_bytes },
                    { "maxHistoryBytes", SIZE_MAX / 2, &resource->max_history_bytes },
                    { "maxHeldBytes", SIZE_MAX / 2, &resource->max_held_bytes } };
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(durations); i++)
        failed = kinf__yaml_read_duration_ms(reader->yaml, reader->mapping, durations[i].key,
                                             durations[i].ms, reader->err);
    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(numbers); i++)
        failed = kinf__yaml_read_uint(reader->yaml, reader->mapping, numbers[i].key, numbers[i].max,
                                      numbers[i].number, reader->err);
    return failed;
}

static int read_initial(const struct reader *reader, enum kinf_initial *ret_initial)
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

static int read_serve(const struct reader *reader, struct kinf__resource_config *resource)
{
    bool serve = false;
    int failed = kinf__yaml_read_bool(reader->yaml, reader->mapping, "serve", &serve, reader->err);

    if (failed == 0 && kinf__yaml_get(reader->mapping, "serve") != NULL)
        resource->serve = serve ? KINF__SERVE_YES : KINF__SERVE_NO;
    if (failed == 0)
        failed = kinf__yaml_read_bool(reader->yaml, reader->mapping, "assumeScope",
                                      &resource->assume_scope, reader->err);
    return failed;
}

static int read_consistency(const struct reader *reader, struct kinf__resource_config *resource)
{
    const char *text = NULL;
    int failed =
        kinf__yaml_read_string(reader->yaml, reader->mapping, "consistency", &text, reader->err);

    if (failed < 0 || text == NULL)
        return failed;
    resource->is_latest = strcmp(text, "latest") == 0;
    if (resource->is_latest || strcmp(text, "cache") == 0)
        return 0;
    return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml,
                            kinf__yaml_get(reader->mapping, "consistency"),
                            "consistency is one of cache, latest, not '%s'", text);
}

static int read_resource(const struct kinf__yaml *yaml, const struct kinf__yaml_node *node,
                         struct kinf__config *config, struct kinf_error *err)
{
    static const char *const allowed[] = { "resource",
                                           "namespaces",
                                           "labelSelector",
                                           "fieldSelector",
                                           "drop",
                                           "keep",
                                           "indices",
                                           "resyncPeriod",
                                           "watchTimeout",
                                           "silentAfter",
                                           "maxObjectBytes",
                                           "maxQueueBytes",
                                           "pageSize",
                                           "gzip",
                                           "initial",
                                           "shardSelector",
                                           "backoffBase",
                                           "backoffMax",
                                           "serve",
                                           "assumeScope",
                                           "maxHistoryBytes",
                                           "maxHistoryAge",
                                           "maxHeldBytes",
                                           "consistency",
                                           NULL };
    const struct reader reader = { yaml, node, err };
    struct kinf__resource_config *resource;
    int failed;

    if (node->type != KINF__YAML_MAPPING)
        return kinf__yaml_error(err, KINF_ERR_CONFIG, yaml, node,
                                "an entry of resources is a mapping");
    resource = kinf__config_add_resource(config);
    if (resource == NULL)
        return kinf__error_no_memory(err);
    if ((failed = kinf__yaml_check_keys(yaml, node, allowed, err)) < 0 ||
        (failed = read_text(&reader, "resource", &resource->resource)) < 0 ||
        (failed = read_texts(&reader, "namespaces", &resource->namespaces)) < 0 ||
        (failed = read_selector(&reader, "labelSelector", &resource->label_selector)) < 0 ||
        (failed = read_selector(&reader, "fieldSelector", &resource->field_selector)) < 0 ||
        (failed = read_selector(&reader, "shardSelector", &resource->shard_selector)) < 0 ||
        (failed = read_texts(&reader, "drop", &resource->drops)) < 0 ||
        (failed = read_texts(&reader, "keep", &resource->keeps)) < 0 ||
        (failed = read_indices(&reader, resource)) < 0 ||
        (failed = read_initial(&reader, &resource->initial)) < 0 ||
        (failed = read_numbers(&reader, resource)) < 0 ||
        (failed = read_serve(&reader, resource)) < 0 ||
        (failed = read_consistency(&reader, resource)) < 0 ||
        (failed = kinf__yaml_read_bool(yaml, node, "gzip", &resource->gzip, err)) < 0)
        return failed;
    if (resource->resource == NULL)
        return kinf__yaml_error(err, KINF_ERR_CONFIG, yaml, node, "the key 'resource' is missing");
    return 0;
}

static int read_events(const struct reader *reader, struct kinf__config *config)
{
    const char *mode = NULL;
    int failed =
        kinf__yaml_read_string(reader->yaml, reader->mapping, "events", &mode, reader->err);

    if (failed == 0 && mode != NULL && !kinf__events_mode_parse(mode, &config->events))
        return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml,
                                kinf__yaml_get(reader->mapping, "events"),
                                "events is one of none, text, json, not '%s'", mode);
    return failed;
}

static int read_max_staleness(const struct reader *reader, struct kinf__config *config)
{
    int failed = kinf__yaml_read_duration_ms(reader->yaml, reader->mapping, "maxStaleness",
                                             &config->max_staleness_ms, reader->err);

    if (failed == 0 && config->max_staleness_ms != 0 &&
        config->max_staleness_ms < KINF__SERVE_STALENESS_MIN_MS)
        return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml,
                                kinf__yaml_get(reader->mapping, "maxStaleness"),
                                "maxStaleness is 3m at least: silence of less proves nothing");
    return failed;
}

static int read_tls(const struct reader *reader, struct kinf__config *config)
{
    static const char *const allowed[] = { "certFile", "keyFile", NULL };
    const struct kinf__yaml_node *node = kinf__yaml_get(reader->mapping, "tls");
    const struct reader files = { reader->yaml, node, reader->err };
    int failed;

    if (node == NULL)
        return 0;
    if (node->type != KINF__YAML_MAPPING)
        return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml, node,
                                "tls has a certFile and a keyFile");
    if ((failed = kinf__yaml_check_keys(reader->yaml, node, allowed, reader->err)) < 0 ||
        (failed = read_text(&files, "certFile", &config->cert_file)) < 0 ||
        (failed = read_text(&files, "keyFile", &config->key_file)) < 0)
        return failed;
    if (config->cert_file == NULL || config->key_file == NULL)
        return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml, node,
                                "tls has a certFile and a keyFile");
    return kinf__endpoint_check_files(config->cert_file, config->key_file, reader->err);
}

static int read_auth(const struct reader *reader, struct kinf__config *config)
{
    const struct kinf__yaml_node *node = kinf__yaml_get(reader->mapping, "auth");
    const char *mode = NULL;
    int failed = kinf__yaml_read_string(reader->yaml, reader->mapping, "auth", &mode, reader->err);

    if (failed == 0)
        failed = kinf__yaml_read_duration_ms(reader->yaml, reader->mapping, "authAllowFor",
                                             &config->auth_allow_ms, reader->err);
    if (failed == 0)
        failed = kinf__yaml_read_duration_ms(reader->yaml, reader->mapping, "authDenyFor",
                                             &config->auth_deny_ms, reader->err);
    if (failed < 0 || mode == NULL)
        return failed;
    if (strcmp(mode, "delegated") != 0)
        return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml, node,
                                "auth is delegated, or left out, not '%s'", mode);
    if (config->cert_file == NULL)
        return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml, node,
                                "auth: delegated needs 'tls': clients send no token without it");
    config->is_delegated = true;
    return 0;
}

static int bad_value(const struct reader *reader, const char *key, const char *what)
{
    return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml,
                            kinf__yaml_get(reader->mapping, key), "%s", what);
}

/* The whole text as a number. */
static bool read_digits(const char *text, int base, unsigned long max, unsigned long *ret_number)
{
    char *end;

    errno = 0;
    *ret_number = strtoul(text, &end, base);
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *ret_number <= max;
}

static int read_unix_users(const struct reader *reader, struct kinf__config *config)
{
    struct kinf__strings users = { 0 };
    int failed = read_texts(reader, "unixUsers", &users);

    if (failed == 0 && users.n_items != 0) {
        config->unix_users = calloc(users.n_items, sizeof config->unix_users[0]);
        if (config->unix_users == NULL)
            failed = kinf__error_no_memory(reader->err);
    }
    for (size_t i = 0; failed == 0 && i < users.n_items; i++) {
        unsigned long uid;

        if (!read_digits(users.items[i], 10, UINT32_MAX, &uid))
            failed = bad_value(reader, "unixUsers", "unixUsers are numbers of users");
        else
            config->unix_users[config->n_unix_users++] = (uint32_t)uid;
    }
    strings_release(&users);
    return failed;
}

static int read_unix(const struct reader *reader, struct kinf__config *config)
{
    const char *mode = NULL;
    unsigned long number = 0;
    int failed =
        kinf__yaml_read_string(reader->yaml, reader->mapping, "unixMode", &mode, reader->err);

    if (failed == 0 && mode != NULL && (!read_digits(mode, 8, 0777, &number) || number == 0))
        failed = bad_value(reader, "unixMode", "unixMode is octal, such as \"0660\"");
    config->unix_mode = (unsigned)number;
    return failed < 0 ? failed : read_unix_users(reader, config);
}

static int read_root(const struct kinf__yaml *yaml, struct kinf__config *config,
                     struct kinf_error *err)
{
    static const char *const allowed[] = {
        "kubeconfig", "context",      "log",         "events", "eventsObjects", "resources",
        "listen",     "maxStaleness", "tls",         "auth",   "authAllowFor",  "authDenyFor",
        "unixMode",   "unixUsers",    "passThrough", NULL
    };
    const struct kinf__yaml_node *root = kinf__yaml_root(yaml), *list = NULL;
    const struct reader reader = { yaml, root, err };
    int failed;

    if (root->type != KINF__YAML_MAPPING)
        return kinf__yaml_error(err, KINF_ERR_CONFIG, yaml, root, "a configuration is a mapping");
    if ((failed = kinf__yaml_check_keys(yaml, root, allowed, err)) < 0 ||
        (failed = read_text(&reader, "kubeconfig", &config->kubeconfig)) < 0 ||
        (failed = read_text(&reader, "context", &config->context)) < 0 ||
        (failed = read_text(&reader, "log", &config->log_levels)) < 0 ||
        (failed = read_events(&reader, config)) < 0 ||
        (failed = kinf__yaml_read_bool(yaml, root, "eventsObjects", &config->events_objects, err)) <
            0 ||
        (failed = read_texts(&reader, "listen", &config->listen)) < 0 ||
        (failed = read_tls(&reader, config)) < 0 || (failed = read_auth(&reader, config)) < 0 ||
        (failed = read_unix(&reader, config)) < 0 ||
        (failed = read_max_staleness(&reader, config)) < 0 ||
        (failed = kinf__yaml_read_bool(yaml, root, "passThrough", &config->pass_through, err)) <
            0 ||
        (failed = kinf__yaml_read_sequence(yaml, root, "resources", &list, err)) < 0)
        return failed;
    for (size_t i = 0; failed == 0 && list != NULL && i < list->n_items; i++)
        failed = read_resource(yaml, list->items[i], config, err);
    return failed;
}

int kinf__config_read(const char *file, struct kinf__config *ret_config, struct kinf_error *err)
{
    KINF__CLEANUP(kinf__yaml_free_ptr) struct kinf__yaml *yaml = NULL;
    struct kinf__config config = { 0 };
    int failed = kinf__yaml_read(file, &yaml, err);

    if (failed == 0)
        failed = read_root(yaml, &config, err);
    if (failed == 0)
        failed = kinf__config_check(&config, file, err);
    if (failed < 0) {
        kinf__config_release(&config);
        return failed;
    }
    *ret_config = config;
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

static int check_resource(const struct kinf__resource_config *resource, struct kinf_error *err)
{
    int failed;

    if ((failed = check_selectors(resource, err)) < 0 ||
        (failed = check_paths(&resource->drops, err)) < 0 ||
        (failed = check_paths(&resource->keeps, err)) < 0 ||
        (failed = check_paths(&resource->index_paths, err)) < 0)
        return failed;
    return check_namespaces(&resource->namespaces, err);
}

int kinf__config_check(const struct kinf__config *config, const char *where, struct kinf_error *err)
{
    if (config->n_resources == 0)
        return kinf__error_set(err, KINF_ERR_CONFIG, "%s names no resource to watch", where);
    for (size_t i = 0; i < config->listen.n_items; i++) {
        int failed = kinf__address_check(config->listen.items[i], config->is_delegated, err);

        if (failed < 0)
            return failed;
    }
    for (size_t i = 0; i < config->n_resources; i++) {
        const struct kinf__resource_config *resource = &config->resources[i];
        int failed = check_resource(resource, err);

        if (failed == 0 && resource->is_latest && !config->pass_through)
            failed = kinf__error_set(err, KINF_ERR_CONFIG, "consistency: latest needs passThrough");
        if (failed < 0) {
            kinf__error_prefix(err, "%s: resource %s", where, resource->resource);
            return failed;
        }
        for (size_t k = 0; k < i; k++) {
            if (kinf__resource_config_equal(resource, &config->resources[k]))
                return kinf__error_set(err, KINF_ERR_CONFIG, "%s: resource %s is there twice",
                                       where, resource->resource);
        }
    }
    return 0;
}
