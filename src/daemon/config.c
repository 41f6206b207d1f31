/*
 * The configuration file. Neighbours: options.c makes the same struct from the command line,
 * resource_config.c has the entries of resources. Every complaint says file, line and column; what
 * the file does not say keeps its default.
 */
#include "daemon/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/log.h"
#include "serve/address.h"
#include "serve/endpoint.h"
#include "yaml/yaml.h"

#define STATE_INTERVAL_MS 300000

void kinf__config_release(struct kinf__config *config)
{
    for (size_t i = 0; i < config->n_resources; i++)
        kinf__resource_config_release(&config->resources[i]);
    for (size_t i = 0; i < config->n_handlers; i++)
        kinf__handler_config_release(&config->handlers[i]);
    free(config->resources);
    free(config->handlers);
    free(config->kubeconfig);
    free(config->context);
    free(config->log_levels);
    free(config->cert_file);
    free(config->unix_users);
    free(config->key_file);
    free(config->client_ca_file);
    kinf__strings_release(&config->listen);
    kinf__strings_release(&config->on_demand.excludes);
    kinf__strings_release(&config->on_demand.includes);
    kinf__strings_release(&config->on_demand.drops);
    kinf__shard_config_release(&config->shards);
    free(config->health_listen);
    free(config->access_log);
    free(config->state_dir);
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

struct kinf__handler_config *kinf__config_add_handler(struct kinf__config *config)
{
    struct kinf__handler_config *handlers =
        realloc(config->handlers, (config->n_handlers + 1) * sizeof *handlers);

    if (handlers == NULL)
        return NULL;
    config->handlers = handlers;
    handlers[config->n_handlers] = (struct kinf__handler_config){ 0 };
    return &handlers[config->n_handlers++];
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

static int read_events(const struct kinf__config_reader *reader, struct kinf__config *config)
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

static int read_max_staleness(const struct kinf__config_reader *reader, struct kinf__config *config)
{
    const struct kinf__yaml_node *node = kinf__yaml_get(reader->mapping, "maxStaleness");
    int failed = kinf__yaml_read_duration_ms(reader->yaml, reader->mapping, "maxStaleness",
                                             &config->max_staleness_ms, reader->err);

    if (failed == 0 && node != NULL && config->max_staleness_ms < KINF__SERVE_STALENESS_MIN_MS)
        return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml, node,
                                "maxStaleness is 3m at least: silence of less proves nothing");
    return failed;
}

static int read_tls(const struct kinf__config_reader *reader, struct kinf__config *config)
{
    static const char *const allowed[] = { "certFile", "keyFile", "clientCAFile", NULL };
    const struct kinf__yaml_node *node = kinf__yaml_get(reader->mapping, "tls");
    const struct kinf__config_reader files = { reader->yaml, node, reader->err };
    int failed;

    if (node == NULL)
        return 0;
    if (node->type != KINF__YAML_MAPPING)
        return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml, node,
                                "tls has a certFile and a keyFile");
    if ((failed = kinf__yaml_check_keys(reader->yaml, node, allowed, reader->err)) < 0 ||
        (failed = kinf__config_read_text(&files, "certFile", &config->cert_file)) < 0 ||
        (failed = kinf__config_read_text(&files, "keyFile", &config->key_file)) < 0 ||
        (failed = kinf__config_read_text(&files, "clientCAFile", &config->client_ca_file)) < 0)
        return failed;
    if (config->cert_file == NULL || config->key_file == NULL)
        return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml, node,
                                "tls has a certFile and a keyFile");
    return kinf__endpoint_check_files(config->cert_file, config->key_file, config->client_ca_file,
                                      reader->err);
}

/* 0 is none, and no default: an answer holds for its own request then. */
static int read_review_time(const struct kinf__config_reader *reader, const char *key,
                            int64_t *ret_ms)
{
    int failed =
        kinf__yaml_read_duration_ms(reader->yaml, reader->mapping, key, ret_ms, reader->err);

    if (failed == 0 && *ret_ms == 0 && kinf__yaml_get(reader->mapping, key) != NULL)
        *ret_ms = 1;
    return failed;
}

static int read_auth(const struct kinf__config_reader *reader, struct kinf__config *config)
{
    const struct kinf__yaml_node *node = kinf__yaml_get(reader->mapping, "auth");
    const char *mode = NULL;
    int failed = kinf__yaml_read_string(reader->yaml, reader->mapping, "auth", &mode, reader->err);

    if (failed == 0)
        failed = read_review_time(reader, "authAllowFor", &config->auth_allow_ms);
    if (failed == 0)
        failed = read_review_time(reader, "authDenyFor", &config->auth_deny_ms);
    if (failed == 0)
        failed = kinf__yaml_read_duration_ms(reader->yaml, reader->mapping, "authStaleFor",
                                             &config->auth_stale_ms, reader->err);
    if (failed == 0 && mode == NULL && config->client_ca_file != NULL)
        return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml,
                                kinf__yaml_get(reader->mapping, "tls"),
                                "clientCAFile needs 'auth: delegated': by that it is asked what "
                                "users of certificates may");
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

static int bad_value(const struct kinf__config_reader *reader, const char *key, const char *what)
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

static int read_unix_users(const struct kinf__config_reader *reader, struct kinf__config *config)
{
    struct kinf__strings users = { 0 };
    int failed = kinf__config_read_texts(reader, "unixUsers", &users);

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
    kinf__strings_release(&users);
    return failed;
}

static int read_unix(const struct kinf__config_reader *reader, struct kinf__config *config)
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

/* "events", "events.events.k8s.io" or "*.example.com": small letters, digits, '-' and dots. */
static int check_excludes(const struct kinf__config_reader *section,
                          const struct kinf__strings *names)
{
    for (size_t i = 0; i < names->n_items; i++) {
        const char *name = names->items[i], *rest = strncmp(name, "*.", 2) == 0 ? name + 2 : name;

        if (*rest == '\0' || rest[strspn(rest, "abcdefghijklmnopqrstuvwxyz0123456789-.")] != '\0')
            return kinf__yaml_error(section->err, KINF_ERR_CONFIG, section->yaml,
                                    kinf__yaml_get(section->mapping, "exclude"),
                                    "onDemand.exclude: '%s' is no RESOURCE, RESOURCE.GROUP or "
                                    "*.GROUP",
                                    name);
    }
    return 0;
}

static int check_includes(const struct kinf__config_reader *section,
                          const struct kinf__strings *names)
{
    for (size_t i = 0; i < names->n_items; i++) {
        if (strcmp(names->items[i], "secrets") != 0)
            return kinf__yaml_error(section->err, KINF_ERR_CONFIG, section->yaml,
                                    kinf__yaml_get(section->mapping, "include"),
                                    "onDemand.include: only secrets are left out unless they are "
                                    "named here, not '%s'",
                                    names->items[i]);
    }
    return 0;
}

static int read_on_demand_limits(const struct kinf__config_reader *section,
                                 struct kinf__on_demand_config *config)
{
    int failed = kinf__yaml_read_duration_ms(section->yaml, section->mapping, "idle",
                                             &config->idle_ms, section->err);

    if (failed == 0)
        failed = kinf__yaml_read_uint(section->yaml, section->mapping, "maxTypes", 1000,
                                      &config->max_types, section->err);
    if (failed == 0)
        failed = kinf__yaml_read_uint(section->yaml, section->mapping, "maxBytes", SIZE_MAX / 2,
                                      &config->max_bytes, section->err);
    if (failed == 0)
        failed = kinf__config_check_above_zero(section, "idle", (uint64_t)config->idle_ms);
    if (failed == 0)
        failed = kinf__config_check_above_zero(section, "maxTypes", config->max_types);
    return failed < 0 ? failed
                      : kinf__config_check_above_zero(section, "maxBytes", config->max_bytes);
}

static int read_on_demand(const struct kinf__config_reader *reader,
                          struct kinf__on_demand_config *config)
{
    static const char *const allowed[] = { "idle",    "maxTypes", "maxBytes", "exclude",
                                           "include", "drop",     NULL };
    const struct kinf__yaml_node *node = kinf__yaml_get(reader->mapping, "onDemand");
    const struct kinf__config_reader section = { reader->yaml, node, reader->err };
    int failed;

    if (node == NULL)
        return 0;
    if (node->type != KINF__YAML_MAPPING)
        return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml, node,
                                "onDemand is a mapping; {} has the defaults");
    config->is_enabled = true;
    if ((failed = kinf__yaml_check_keys(reader->yaml, node, allowed, reader->err)) < 0 ||
        (failed = read_on_demand_limits(&section, config)) < 0 ||
        (failed = kinf__config_read_texts(&section, "exclude", &config->excludes)) < 0 ||
        (failed = kinf__config_read_texts(&section, "include", &config->includes)) < 0 ||
        (failed = kinf__config_read_texts(&section, "drop", &config->drops)) < 0 ||
        (failed = check_excludes(&section, &config->excludes)) < 0)
        return failed;
    return check_includes(&section, &config->includes);
}

static bool has_resource(const struct kinf__config *config, const char *name)
{
    for (size_t i = 0; i < config->n_resources; i++) {
        if (strcmp(config->resources[i].resource, name) == 0)
            return true;
    }
    return false;
}

static int read_handler(const struct kinf__config_reader *reader,
                        const struct kinf__yaml_node *node, struct kinf__config *config)
{
    struct kinf__handler_config *handler = kinf__config_add_handler(config);
    int failed;

    if (handler == NULL)
        return kinf__error_no_memory(reader->err);
    failed = kinf__handler_config_read(reader->yaml, node, handler, reader->err);
    for (size_t i = 0; failed == 0 && i < handler->resources.n_items; i++) {
        if (!has_resource(config, handler->resources.items[i]))
            failed = kinf__yaml_error(
                reader->err, KINF_ERR_CONFIG, reader->yaml, kinf__yaml_get(node, "resources"),
                "the handler's %s is none of this file's resources", handler->resources.items[i]);
    }
    return failed;
}

/* After the resources, which they name. */
static int read_handlers(const struct kinf__config_reader *reader, struct kinf__config *config)
{
    const struct kinf__yaml_node *list = NULL;
    int failed =
        kinf__yaml_read_sequence(reader->yaml, reader->mapping, "handlers", &list, reader->err);

    for (size_t i = 0; failed == 0 && list != NULL && i < list->n_items; i++)
        failed = read_handler(reader, list->items[i], config);
    return failed;
}

static int read_state(const struct kinf__config_reader *reader, struct kinf__config *config)
{
    int failed = kinf__config_read_text(reader, "stateDir", &config->state_dir);

    config->state_interval_ms = STATE_INTERVAL_MS;
    if (failed == 0)
        failed = kinf__yaml_read_duration_ms(reader->yaml, reader->mapping, "stateInterval",
                                             &config->state_interval_ms, reader->err);
    if (failed == 0)
        failed = kinf__yaml_read_bool(reader->yaml, reader->mapping, "serveStale",
                                      &config->serve_stale, reader->err);
    if (failed == 0 && config->serve_stale && config->state_dir == NULL)
        return bad_value(reader, "serveStale", "serveStale needs a stateDir");
    return failed;
}

static bool has_text(const struct kinf__strings *strings, const char *text)
{
    for (size_t i = 0; i < strings->n_items; i++) {
        if (strcmp(strings->items[i], text) == 0)
            return true;
    }
    return false;
}

/* Of these alone files would have the same name. */
static bool share_namespace(const struct kinf__resource_config *a,
                            const struct kinf__resource_config *b)
{
    for (size_t i = 0; i < a->namespaces.n_items; i++) {
        if (has_text(&b->namespaces, a->namespaces.items[i]))
            return true;
    }
    return a->namespaces.n_items == 0 && b->namespaces.n_items == 0;
}

static bool are_twins(const struct kinf__resource_config *a, const struct kinf__resource_config *b)
{
    return kinf__text_equal(a->resource, b->resource) &&
           kinf__text_equal(a->label_selector, b->label_selector) &&
           kinf__text_equal(a->field_selector, b->field_selector) &&
           kinf__text_equal(a->shard_selector, b->shard_selector) && share_namespace(a, b);
}

static size_t number_of_last(const struct kinf__config *config)
{
    const struct kinf__resource_config *last = &config->resources[config->n_resources - 1];
    size_t number = 0;

    for (const struct kinf__resource_config *other = config->resources; other != last; other++) {
        if (are_twins(other, last) && other->number >= number)
            number = other->number + 1;
    }
    return number;
}

static int read_root(const struct kinf__yaml *yaml, struct kinf__config *config,
                     struct kinf_error *err)
{
    static const char *const allowed[] = {
        "kubeconfig",   "context",       "log",          "events",    "eventsObjects",
        "resources",    "listen",        "maxStaleness", "tls",       "auth",
        "authAllowFor", "authDenyFor",   "authStaleFor", "unixMode",  "unixUsers",
        "passThrough",  "healthListen",  "startSpread",  "accessLog", "onDemand",
        "handlers",     "shards",        "shard",        "shardBy",   "lease",
        "stateDir",     "stateInterval", "serveStale",   NULL
    };
    const struct kinf__yaml_node *root = kinf__yaml_root(yaml), *list = NULL;
    const struct kinf__config_reader reader = { yaml, root, err };
    int failed;

    if (root->type != KINF__YAML_MAPPING)
        return kinf__yaml_error(err, KINF_ERR_CONFIG, yaml, root, "a configuration is a mapping");
    if ((failed = kinf__yaml_check_keys(yaml, root, allowed, err)) < 0 ||
        (failed = kinf__config_read_text(&reader, "kubeconfig", &config->kubeconfig)) < 0 ||
        (failed = kinf__config_read_text(&reader, "context", &config->context)) < 0 ||
        (failed = kinf__config_read_text(&reader, "log", &config->log_levels)) < 0 ||
        (failed = read_events(&reader, config)) < 0 ||
        (failed = kinf__yaml_read_bool(yaml, root, "eventsObjects", &config->events_objects, err)) <
            0 ||
        (failed = kinf__config_read_texts(&reader, "listen", &config->listen)) < 0 ||
        (failed = kinf__config_read_text(&reader, "healthListen", &config->health_listen)) < 0 ||
        (failed = kinf__config_read_text(&reader, "accessLog", &config->access_log)) < 0 ||
        (failed = read_tls(&reader, config)) < 0 || (failed = read_auth(&reader, config)) < 0 ||
        (failed = read_unix(&reader, config)) < 0 ||
        (failed = read_max_staleness(&reader, config)) < 0 ||
        (failed = kinf__yaml_read_duration_ms(yaml, root, "startSpread", &config->start_spread_ms,
                                              err)) < 0 ||
        (failed = kinf__yaml_read_bool(yaml, root, "passThrough", &config->pass_through, err)) <
            0 ||
        (failed = read_on_demand(&reader, &config->on_demand)) < 0 ||
        (failed = kinf__shard_config_read(&reader, &config->shards)) < 0 ||
        (failed = read_state(&reader, config)) < 0 ||
        (failed = kinf__yaml_read_sequence(yaml, root, "resources", &list, err)) < 0)
        return failed;
    for (size_t i = 0; failed == 0 && list != NULL && i < list->n_items; i++) {
        struct kinf__resource_config *resource = kinf__config_add_resource(config);

        failed = resource != NULL ? kinf__resource_config_read(yaml, list->items[i], resource, err)
                                  : kinf__error_no_memory(err);
        if (failed == 0)
            failed = kinf__shard_config_apply(&config->shards, resource, err);
        if (failed == 0)
            resource->number = number_of_last(config);
    }
    return failed < 0 ? failed : read_handlers(&reader, config);
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

int kinf__config_check(const struct kinf__config *config, const char *where, struct kinf_error *err)
{
    struct kinf__resource_config dropping = { .drops = config->on_demand.drops };
    int failed = kinf__resource_config_check(&dropping, err);

    if (failed < 0) {
        kinf__error_prefix(err, "%s: onDemand.drop", where);
        return failed;
    }
    for (size_t i = 0; failed == 0 && i < config->listen.n_items; i++)
        failed = kinf__address_check(config->listen.items[i], config->is_delegated, err);
    if (failed == 0 && config->health_listen != NULL)
        failed = kinf__address_check(config->health_listen, true, err);
    if (failed < 0) {
        kinf__error_prefix(err, "%s", where);
        return failed;
    }
    for (size_t i = 0; i < config->n_resources; i++) {
        const struct kinf__resource_config *resource = &config->resources[i];

        failed = kinf__resource_config_check(resource, err);
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

/* --- what is no mistake, and hardly meant --- */

static void tell_idle_keys(const struct kinf__config *config)
{
    size_t n_unix = 0, n = config->listen.n_items;

    for (size_t i = 0; i < n; i++)
        n_unix += strncmp(config->listen.items[i], "unix:", strlen("unix:")) == 0;
    const struct {
        bool is_idle;
        const char *key;
        const char *needs;
    } rows[] = {
        { config->access_log != NULL && n == 0, "accessLog", "an address in listen" },
        { config->cert_file != NULL && n == n_unix, "tls", "HOST:PORT in listen" },
        { config->unix_mode != 0 && n_unix == 0, "unixMode", "unix:PATH in listen" },
        { config->n_unix_users != 0 && n_unix == 0, "unixUsers", "unix:PATH in listen" },
    };

    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        if (rows[i].is_idle)
            KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_WARN, "a key has no effect key=%s needs=%s",
                      rows[i].key, KINF__QUOTED(rows[i].needs));
    }
}

static bool has_all(const struct kinf__strings *strings, const struct kinf__strings *wanted)
{
    for (size_t i = 0; i < wanted->n_items; i++) {
        if (!has_text(strings, wanted->items[i]))
            return false;
    }
    return true;
}

static bool store_the_same(const struct kinf__resource_config *a,
                           const struct kinf__resource_config *b)
{
    return has_all(&a->drops, &b->drops) && has_all(&b->drops, &a->drops) &&
           has_all(&a->keeps, &b->keeps) && has_all(&b->keeps, &a->keeps);
}

/* Of two that differ it is not known. */
static bool surely_meet(const char *selector, const char *other)
{
    return selector == NULL || other == NULL || strcmp(selector, other) == 0;
}

static bool surely_overlap(const struct kinf__resource_config *a,
                           const struct kinf__resource_config *b)
{
    return strcmp(a->resource, b->resource) == 0 &&
           (a->namespaces.n_items == 0 || b->namespaces.n_items == 0 || share_namespace(a, b)) &&
           surely_meet(a->label_selector, b->label_selector) &&
           surely_meet(a->field_selector, b->field_selector) &&
           surely_meet(a->shard_selector, b->shard_selector);
}

static bool is_any_handler_told(const struct kinf__config *config, const char *resource)
{
    for (size_t i = 0; i < config->n_handlers; i++) {
        if (kinf__handler_config_wants(&config->handlers[i], resource))
            return true;
    }
    return false;
}

/* An object is told of as the entry has it that has it first. */
static void tell_overlaps(const struct kinf__config *config, size_t last)
{
    const struct kinf__resource_config *resources = config->resources;

    for (size_t i = 0; i < last; i++) {
        if (surely_overlap(&resources[i], &resources[last]) &&
            !store_the_same(&resources[i], &resources[last]) &&
            is_any_handler_told(config, resources[i].resource))
            KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_WARN,
                      "which of two entries a handler sees is chance: they overlap, and drop or "
                      "keep other fields resource=%s entries=%zu,%zu",
                      resources[i].resource, i + 1, last + 1);
    }
}

void kinf__config_warn(const struct kinf__config *config)
{
    tell_idle_keys(config);
    for (size_t i = 0; i < config->n_resources; i++)
        tell_overlaps(config, i);
}
