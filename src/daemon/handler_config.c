/*
 * Reading an entry of handlers. Neighbours: config.c has the list, handlers.c runs what it says.
 */
#include "daemon/handler_config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "daemon/plugin_config.h"

/* --- whether a program is there --- */

static bool is_program(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

static bool is_in_folder(const char *folder, size_t len, const char *name)
{
    KINF__AUTO_BUFFER path = KINF__BUFFER_INIT;
    const char *text = NULL;

    if (kinf__buffer_printf(&path, "%.*s/%s", (int)len, len == 0 ? "." : folder, name) == 0)
        text = kinf__buffer_cstr(&path);
    return text != NULL && is_program(text);
}

/* As posix_spawnp() looks for it. */
static bool is_found(const char *name)
{
    const char *folders = getenv("PATH");

    if (strchr(name, '/') != NULL)
        return is_program(name);
    for (const char *at = folders != NULL ? folders : "/bin:/usr/bin"; *name != '\0'; at++) {
        size_t len = strcspn(at, ":");

        if (is_in_folder(at, len, name))
            return true;
        at += len;
        if (*at == '\0')
            break;
    }
    return false;
}

/* --- the entry --- */

static int check_exec(const struct kinf__config_reader *reader, const struct kinf__strings *exec)
{
    const struct kinf__yaml_node *node = kinf__yaml_get(reader->mapping, "exec");

    if (exec->n_items == 0)
        return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml, node,
                                "exec is a program and its arguments: [python3, handler.py]");
    if (!is_found(exec->items[0]))
        return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml, node,
                                "exec: there is no program '%s'", exec->items[0]);
    return 0;
}

static int read_exec(const struct kinf__config_reader *reader, struct kinf__handler_config *handler)
{
    int failed = kinf__config_read_texts(reader, "exec", &handler->exec);

    if (failed == 0)
        failed = kinf__yaml_read_bool(reader->yaml, reader->mapping, "acknowledge",
                                      &handler->acknowledges, reader->err);
    return failed < 0 ? failed : check_exec(reader, &handler->exec);
}

static int read_webhook(const struct kinf__config_reader *reader,
                        struct kinf__handler_config *handler)
{
    struct kinf__config_reader section = *reader;
    int failed = kinf__yaml_read_mapping(reader->yaml, reader->mapping, "webhook", &section.mapping,
                                         reader->err);

    return failed < 0 ? failed : kinf__webhook_config_read(&section, &handler->webhook);
}

static int check_plugin(const struct kinf__config_reader *reader, const char *path)
{
    struct stat status;

    if (path == NULL || stat(path, &status) < 0 || !S_ISREG(status.st_mode) ||
        access(path, R_OK) < 0)
        return kinf__yaml_error(
            reader->err, KINF_ERR_CONFIG, reader->yaml, kinf__yaml_get(reader->mapping, "plugin"),
            "plugin: '%s' is no file that can be read", path != NULL ? path : "");
    return 0;
}

static int read_plugin(const struct kinf__config_reader *reader,
                       struct kinf__handler_config *handler)
{
    KINF__AUTO_BUFFER config = KINF__BUFFER_INIT;
    int failed = kinf__config_read_text(reader, "plugin", &handler->plugin);

    if (failed == 0)
        failed = check_plugin(reader, handler->plugin);
    if (failed < 0)
        return failed;
    if (kinf__plugin_config_write(kinf__yaml_get(reader->mapping, "config"), &config) < 0)
        return kinf__error_no_memory(reader->err);
    return kinf__buffer_take_text(&config, &handler->plugin_config, reader->err);
}

struct kind {
    const char *key;
    const char *other_key; /* that goes with it alone; NULL: none */
    int (*read)(const struct kinf__config_reader *reader, struct kinf__handler_config *handler);
};

static const struct kind kinds[] = { { "exec", "acknowledge", read_exec },
                                     { "webhook", NULL, read_webhook },
                                     { "plugin", "config", read_plugin } };

/* Returns NULL unless there is one. */
static const struct kind *find_kind(const struct kinf__config_reader *reader)
{
    const struct kind *found = NULL;
    size_t n = 0;

    for (size_t i = 0; i < KINF__ARRAY_LEN(kinds); i++) {
        if (kinf__yaml_get(reader->mapping, kinds[i].key) == NULL)
            continue;
        found = &kinds[i];
        n++;
    }
    return n == 1 ? found : NULL;
}

static int check_keys(const struct kinf__config_reader *reader, const struct kind *kind)
{
    for (size_t i = 0; i < KINF__ARRAY_LEN(kinds); i++) {
        const char *key = kinds[i].other_key;

        if (&kinds[i] != kind && key != NULL && kinf__yaml_get(reader->mapping, key) != NULL)
            return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml,
                                    kinf__yaml_get(reader->mapping, key),
                                    "%s goes with %s, not with %s", key, kinds[i].key, kind->key);
    }
    return 0;
}

int kinf__handler_config_read(const struct kinf__yaml *yaml, const struct kinf__yaml_node *node,
                              struct kinf__handler_config *handler, struct kinf_error *err)
{
    static const char *const allowed[] = { "exec",      "webhook",     "plugin", "config",
                                           "resources", "acknowledge", NULL };
    const struct kinf__config_reader reader = { yaml, node, err };
    const struct kind *kind;
    int failed;

    if (node->type != KINF__YAML_MAPPING)
        return kinf__yaml_error(err, KINF_ERR_CONFIG, yaml, node, "a handler is a mapping");
    if ((failed = kinf__yaml_check_keys(yaml, node, allowed, err)) < 0)
        return failed;
    if ((kind = find_kind(&reader)) == NULL)
        return kinf__yaml_error(err, KINF_ERR_CONFIG, yaml, node,
                                "a handler has one of exec, plugin and webhook");
    if ((failed = check_keys(&reader, kind)) < 0 ||
        (failed = kinf__config_read_texts(&reader, "resources", &handler->resources)) < 0)
        return failed;
    return kind->read(&reader, handler);
}

int kinf__handler_config_set_command(struct kinf__handler_config *handler, const char *command,
                                     struct kinf_error *err)
{
    if (*command == '\0')
        return kinf__error_set(err, KINF_ERR_INVALID, "--exec is a command, not ''");
    if (kinf__strings_add(&handler->exec, "/bin/sh") < 0 ||
        kinf__strings_add(&handler->exec, "-c") < 0 ||
        kinf__strings_add(&handler->exec, command) < 0)
        return kinf__error_no_memory(err);
    return 0;
}

int kinf__handler_config_set_plugin(struct kinf__handler_config *handler, const char *path,
                                    const char *config, struct kinf_error *err)
{
    handler->plugin = strdup(path);
    handler->plugin_config = strdup(config);
    return handler->plugin != NULL && handler->plugin_config != NULL ? 0
                                                                     : kinf__error_no_memory(err);
}

static int copy_strings(const struct kinf__strings *from, struct kinf__strings *to)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < from->n_items; i++)
        failed = kinf__strings_add(to, from->items[i]);
    return failed;
}

int kinf__handler_config_copy(const struct kinf__handler_config *from,
                              struct kinf__handler_config *to, struct kinf_error *err)
{
    *to = (struct kinf__handler_config){ .acknowledges = from->acknowledges };
    if (from->plugin != NULL &&
        kinf__handler_config_set_plugin(to, from->plugin, from->plugin_config, err) < 0)
        return KINF_ERR_NO_MEMORY;
    if (copy_strings(&from->exec, &to->exec) < 0 ||
        kinf__webhook_config_copy(&from->webhook, &to->webhook) < 0 ||
        copy_strings(&from->resources, &to->resources) < 0)
        return kinf__error_no_memory(err);
    return 0;
}

void kinf__handler_config_release(struct kinf__handler_config *handler)
{
    kinf__strings_release(&handler->exec);
    kinf__webhook_config_release(&handler->webhook);
    free(handler->plugin);
    free(handler->plugin_config);
    kinf__strings_release(&handler->resources);
}

bool kinf__handler_config_wants(const struct kinf__handler_config *handler, const char *resource)
{
    for (size_t i = 0; i < handler->resources.n_items; i++) {
        if (strcmp(handler->resources.items[i], resource) == 0)
            return true;
    }
    return handler->resources.n_items == 0;
}

bool kinf__handler_config_equal(const struct kinf__handler_config *a,
                                const struct kinf__handler_config *b)
{
    return kinf__strings_equal(&a->exec, &b->exec) &&
           kinf__webhook_config_equal(&a->webhook, &b->webhook) &&
           kinf__text_equal(a->plugin, b->plugin) &&
           kinf__strings_equal(&a->resources, &b->resources) && a->acknowledges == b->acknowledges;
}
