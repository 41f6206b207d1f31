/*
 * Typed fields of a YAML tree. Neighbours: yaml.c builds it; kubeconfig and the daemon's
 * configuration are read through this.
 */
#include "yaml/yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/duration.h"
#include "base/error.h"

#define NUMBER_MAX_DIGITS 20

bool kinf__yaml_is_null(const struct kinf__yaml_node *node)
{
    if (node == NULL)
        return true;
    if (node->type != KINF__YAML_SCALAR || node->is_quoted)
        return false;
    return node->text.len == 0 || kinf_str_equal(node->text, KINF_STR("~")) ||
           kinf_str_equal(node->text, KINF_STR("null"));
}

bool kinf__yaml_is_old_bool(const struct kinf__yaml_node *node, bool *ret_truth)
{
    /* As go-yaml knows them: of "yEs" it makes a text. */
    static const char *const words[][2] = {
        { "true", "false" }, { "True", "False" }, { "TRUE", "FALSE" }, { "yes", "no" },
        { "Yes", "No" },     { "YES", "NO" },     { "on", "off" },     { "On", "Off" },
        { "ON", "OFF" },     { "y", "n" },        { "Y", "N" },
    };

    if (node->type != KINF__YAML_SCALAR || node->is_quoted)
        return false;
    for (size_t i = 0; i < KINF__ARRAY_LEN(words); i++) {
        bool is_true = kinf_str_equal(node->text, kinf_str_from(words[i][0]));

        if (is_true || kinf_str_equal(node->text, kinf_str_from(words[i][1]))) {
            *ret_truth = is_true;
            return true;
        }
    }
    return false;
}

const struct kinf__yaml_node *kinf__yaml_get(const struct kinf__yaml_node *mapping, const char *key)
{
    if (mapping == NULL || mapping->type != KINF__YAML_MAPPING)
        return NULL;
    for (size_t i = 0; i < mapping->n_items; i++) {
        const struct kinf__yaml_node *value = mapping->items[2 * i + 1];

        if (kinf_str_equal(mapping->items[2 * i]->text, kinf_str_from(key)))
            return kinf__yaml_is_null(value) ? NULL : value;
    }
    return NULL;
}

int kinf__yaml_error(struct kinf_error *err, int code, const struct kinf__yaml *yaml,
                     const struct kinf__yaml_node *node, const char *fmt, ...)
{
    char text[KINF_ERROR_MESSAGE_SIZE];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return kinf__error_set(err, (enum kinf_errc)code, "%s:%u:%u: %s", kinf__yaml_file(yaml),
                           node->line, node->column, text);
}

/* A text that stands where a container should may be a secret, so only texts that should have been
 * another text are shown. */
static int expected(const struct kinf__yaml *yaml, const struct kinf__yaml_node *node,
                    const char *key, const char *what, struct kinf_error *err)
{
    return node->type == KINF__YAML_SCALAR
               ? kinf__yaml_error(err, KINF_ERR_CONFIG, yaml, node,
                                  "%s: %s is expected, not '%.60s'", key, what, node->text.bytes)
               : kinf__yaml_error(err, KINF_ERR_CONFIG, yaml, node, "%s: %s is expected, not a %s",
                                  key, what, node->type == KINF__YAML_MAPPING ? "mapping" : "list");
}

int kinf__yaml_read_string(const struct kinf__yaml *yaml, const struct kinf__yaml_node *mapping,
                           const char *key, const char **ret_text, struct kinf_error *err)
{
    const struct kinf__yaml_node *node = kinf__yaml_get(mapping, key);

    if (node == NULL)
        return 0;
    if (node->type != KINF__YAML_SCALAR)
        return expected(yaml, node, key, "a text", err);
    *ret_text = node->text.bytes;
    return 0;
}

int kinf__yaml_read_bool(const struct kinf__yaml *yaml, const struct kinf__yaml_node *mapping,
                         const char *key, bool *ret_truth, struct kinf_error *err)
{
    const struct kinf__yaml_node *node = kinf__yaml_get(mapping, key);

    if (node == NULL)
        return 0;
    if (node->type != KINF__YAML_SCALAR || (!kinf_str_equal(node->text, KINF_STR("true")) &&
                                            !kinf_str_equal(node->text, KINF_STR("false"))))
        return expected(yaml, node, key, "true or false", err);
    *ret_truth = node->text.len == 4;
    return 0;
}

int kinf__yaml_read_old_bool(const struct kinf__yaml *yaml, const struct kinf__yaml_node *mapping,
                             const char *key, bool *ret_truth, struct kinf_error *err)
{
    const struct kinf__yaml_node *node = kinf__yaml_get(mapping, key);

    return node != NULL && kinf__yaml_is_old_bool(node, ret_truth)
               ? 0
               : kinf__yaml_read_bool(yaml, mapping, key, ret_truth, err);
}

int kinf__yaml_read_uint(const struct kinf__yaml *yaml, const struct kinf__yaml_node *mapping,
                         const char *key, uint64_t max, uint64_t *ret_number,
                         struct kinf_error *err)
{
    const struct kinf__yaml_node *node = kinf__yaml_get(mapping, key);
    uint64_t number = 0;

    if (node == NULL)
        return 0;
    if (node->type != KINF__YAML_SCALAR || node->text.len == 0 ||
        node->text.len > NUMBER_MAX_DIGITS)
        return expected(yaml, node, key, "a number", err);
    for (size_t i = 0; i < node->text.len; i++) {
        unsigned digit = (unsigned)(node->text.bytes[i] - '0');

        if (digit > 9)
            return expected(yaml, node, key, "a number from 0", err);
        if (digit > max || number > (max - digit) / 10)
            return kinf__yaml_error(err, KINF_ERR_CONFIG, yaml, node, "%s: at most %llu", key,
                                    (unsigned long long)max);
        number = number * 10 + digit;
    }
    *ret_number = number;
    return 0;
}

int kinf__yaml_read_duration_ms(const struct kinf__yaml *yaml,
                                const struct kinf__yaml_node *mapping, const char *key,
                                int64_t *ret_ms, struct kinf_error *err)
{
    const struct kinf__yaml_node *node = kinf__yaml_get(mapping, key);

    if (node == NULL)
        return 0;
    if (node->type != KINF__YAML_SCALAR || !kinf__duration_parse(node->text.bytes, ret_ms))
        return expected(yaml, node, key, "a duration such as 500ms, 30s or 5m", err);
    return 0;
}

static int read_container(const struct kinf__yaml *yaml, const struct kinf__yaml_node *mapping,
                          const char *key, enum kinf__yaml_type type, const char *what,
                          const struct kinf__yaml_node **ret_node, struct kinf_error *err)
{
    const struct kinf__yaml_node *node = kinf__yaml_get(mapping, key);

    if (node == NULL)
        return 0;
    if (node->type == KINF__YAML_SCALAR)
        return kinf__yaml_error(err, KINF_ERR_CONFIG, yaml, node, "%s: %s is expected, not a text",
                                key, what);
    if (node->type != type)
        return expected(yaml, node, key, what, err);
    *ret_node = node;
    return 0;
}

int kinf__yaml_read_mapping(const struct kinf__yaml *yaml, const struct kinf__yaml_node *mapping,
                            const char *key, const struct kinf__yaml_node **ret_node,
                            struct kinf_error *err)
{
    return read_container(yaml, mapping, key, KINF__YAML_MAPPING, "a mapping", ret_node, err);
}

int kinf__yaml_read_sequence(const struct kinf__yaml *yaml, const struct kinf__yaml_node *mapping,
                             const char *key, const struct kinf__yaml_node **ret_node,
                             struct kinf_error *err)
{
    return read_container(yaml, mapping, key, KINF__YAML_SEQUENCE, "a list", ret_node, err);
}

static bool is_allowed(struct kinf_str key, const char *const *allowed)
{
    for (; *allowed != NULL; allowed++) {
        if (kinf_str_equal(key, kinf_str_from(*allowed)))
            return true;
    }
    return false;
}

int kinf__yaml_check_keys(const struct kinf__yaml *yaml, const struct kinf__yaml_node *mapping,
                          const char *const *allowed, struct kinf_error *err)
{
    KINF__AUTO_BUFFER names = KINF__BUFFER_INIT;

    for (size_t i = 0; i < mapping->n_items; i++) {
        const struct kinf__yaml_node *key = mapping->items[2 * i];

        if (is_allowed(key->text, allowed))
            continue;
        for (size_t k = 0; allowed[k] != NULL; k++) {
            if (kinf__buffer_printf(&names, "%s%s", k != 0 ? ", " : "", allowed[k]) < 0)
                return kinf__error_no_memory(err);
        }
        return kinf__yaml_error(err, KINF_ERR_CONFIG, yaml, key,
                                "unknown key '%.60s'; known are %.*s", key->text.bytes,
                                (int)names.len, names.bytes);
    }
    return 0;
}
