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

struct kinf__webhook_options kinf__webhook_config_options(
    const struct kinf__webhook_config *webhook)
{
    return (struct kinf__webhook_options){
        .site = { .url = webhook->url,
                  .ca_file = webhook->ca_file,
                  .cert_file = webhook->cert_file,
                  .key_file = webhook->key_file,
                  .token_file = webhook->token_file,
                  .is_plain_allowed = webhook->is_plain_allowed },
        .timeout_ms = webhook->timeout_ms,
        .max_batch_bytes = webhook->max_batch_bytes,
    };
}

static int check_webhook(const struct kinf__config_reader *section,
                         const struct kinf__webhook_config *webhook)
{
    const struct kinf__webhook_options options = kinf__webhook_config_options(webhook);
    struct kinf_error told = KINF_ERROR_INIT;

    if (webhook->url == NULL)
        return kinf__yaml_error(section->err, KINF_ERR_CONFIG, section->yaml, section->mapping,
                                "webhook: it has no url");
    if (kinf__webhook_check(&options, &told) == 0)
        return 0;
    return kinf__yaml_error(section->err, KINF_ERR_CONFIG, section->yaml, section->mapping,
                            "webhook: %s", told.message);
}

static int read_webhook_fields(const struct kinf__config_reader *section,
                               struct kinf__webhook_config *webhook)
{
    const struct kinf__yaml *yaml = section->yaml;
    const struct kinf__yaml_node *node = section->mapping;
    int failed;

    if ((failed = kinf__config_read_text(section, "url", &webhook->url)) < 0 ||
        (failed = kinf__config_read_text(section, "caFile", &webhook->ca_file)) < 0 ||
        (failed = kinf__config_read_text(section, "certFile", &webhook->cert_file)) < 0 ||
        (failed = kinf__config_read_text(section, "keyFile", &webhook->key_file)) < 0 ||
        (failed = kinf__config_read_text(section, "tokenFile", &webhook->token_file)) < 0 ||
        (failed = kinf__yaml_read_bool(yaml, node, "insecure", &webhook->is_plain_allowed,
                                       section->err)) < 0 ||
        (failed = kinf__yaml_read_duration_ms(yaml, node, "timeout", &webhook->timeout_ms,
                                              section->err)) < 0)
        return failed;
    return kinf__yaml_read_uint(yaml, node, "maxBatchBytes", SIZE_MAX / 2,
                                &webhook->max_batch_bytes, section->err);
}

static int read_webhook(const struct kinf__config_reader *reader,
                        struct kinf__handler_config *handler)
{
    static const char *const allowed[] = { "url",     "caFile",        "certFile",
                                           "keyFile", "tokenFile",     "insecure",
                                           "timeout", "maxBatchBytes", NULL };
    struct kinf__config_reader section = { reader->yaml, NULL, reader->err };
    int failed;

    if (kinf__yaml_get(reader->mapping, "acknowledge") != NULL)
        return kinf__yaml_error(reader->err, KINF_ERR_CONFIG, reader->yaml, reader->mapping,
                                "acknowledge is for exec: a webhook does it by its answers");
    if ((failed = kinf__yaml_read_mapping(reader->yaml, reader->mapping, "webhook",
                                          &section.mapping, reader->err)) < 0 ||
        (failed = kinf__yaml_check_keys(reader->yaml, section.mapping, allowed, reader->err)) < 0 ||
        (failed = read_webhook_fields(&section, &handler->webhook)) < 0)
        return failed;
    return check_webhook(&section, &handler->webhook);
}

typedef int read_kind_fn(const struct kinf__config_reader *reader,
                         struct kinf__handler_config *handler);

static const struct {
    const char *key;
    read_kind_fn *read;
} kinds[] = { { "exec", read_exec }, { "webhook", read_webhook } };

/* Returns NULL unless there is one. */
static read_kind_fn *find_kind(const struct kinf__yaml_node *node)
{
    read_kind_fn *found = NULL;
    size_t n = 0;

    for (size_t i = 0; i < KINF__ARRAY_LEN(kinds); i++) {
        if (kinf__yaml_get(node, kinds[i].key) == NULL)
            continue;
        found = kinds[i].read;
        n++;
    }
    return n == 1 ? found : NULL;
}

int kinf__handler_config_read(const struct kinf__yaml *yaml, const struct kinf__yaml_node *node,
                              struct kinf__handler_config *handler, struct kinf_error *err)
{
    static const char *const allowed[] = { "exec", "webhook", "resources", "acknowledge", NULL };
    const struct kinf__config_reader reader = { yaml, node, err };
    read_kind_fn *read;
    int failed;

    if (node->type != KINF__YAML_MAPPING)
        return kinf__yaml_error(err, KINF_ERR_CONFIG, yaml, node, "a handler is a mapping");
    if ((failed = kinf__yaml_check_keys(yaml, node, allowed, err)) < 0 ||
        (failed = kinf__config_read_texts(&reader, "resources", &handler->resources)) < 0)
        return failed;
    read = find_kind(node);
    return read != NULL ? read(&reader, handler)
                        : kinf__yaml_error(err, KINF_ERR_CONFIG, yaml, node,
                                           "a handler has one of exec and webhook");
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

static int copy_strings(const struct kinf__strings *from, struct kinf__strings *to)
{
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < from->n_items; i++)
        failed = kinf__strings_add(to, from->items[i]);
    return failed;
}

static int copy_text(const char *from, char **to)
{
    *to = from != NULL ? strdup(from) : NULL;
    return from == NULL || *to != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

/* X(member) */
#define WEBHOOK_TEXTS(X) X(url) X(ca_file) X(cert_file) X(key_file) X(token_file)

static int copy_webhook(const struct kinf__webhook_config *from, struct kinf__webhook_config *to)
{
    int failed = 0;

    *to = (struct kinf__webhook_config){ .is_plain_allowed = from->is_plain_allowed,
                                         .timeout_ms = from->timeout_ms,
                                         .max_batch_bytes = from->max_batch_bytes };
#define X(member)                                                                                  \
    if (failed == 0)                                                                               \
        failed = copy_text(from->member, &to->member);
    WEBHOOK_TEXTS(X)
#undef X
    return failed;
}

static bool is_same_webhook(const struct kinf__webhook_config *a,
                            const struct kinf__webhook_config *b)
{
#define X(member) kinf__text_equal(a->member, b->member) &&
    return WEBHOOK_TEXTS(X) a->is_plain_allowed == b->is_plain_allowed &&
           a->timeout_ms == b->timeout_ms && a->max_batch_bytes == b->max_batch_bytes;
#undef X
}

int kinf__handler_config_copy(const struct kinf__handler_config *from,
                              struct kinf__handler_config *to, struct kinf_error *err)
{
    *to = (struct kinf__handler_config){ .acknowledges = from->acknowledges };
    if (copy_strings(&from->exec, &to->exec) < 0 ||
        copy_webhook(&from->webhook, &to->webhook) < 0 ||
        copy_strings(&from->resources, &to->resources) < 0)
        return kinf__error_no_memory(err);
    return 0;
}

void kinf__handler_config_release(struct kinf__handler_config *handler)
{
    kinf__strings_release(&handler->exec);
#define X(member) free(handler->webhook.member);
    WEBHOOK_TEXTS(X)
#undef X
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
    return kinf__strings_equal(&a->exec, &b->exec) && is_same_webhook(&a->webhook, &b->webhook) &&
           kinf__strings_equal(&a->resources, &b->resources) && a->acknowledges == b->acknowledges;
}
