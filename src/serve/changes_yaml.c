/*
 * Changes in YAML, which become JSON first: every scalar in quotes but whole numbers and null, since
 * nothing else is asked of one. Neighbour: changes.c reads what comes of it.
 */
#include <string.h>

#include "json/quote.h"
#include "serve/changes.h"
#include "yaml/yaml.h"

static int append(const struct kinf__yaml_node *node, struct kinf__buffer *out);

static bool is_number(const struct kinf__yaml_node *node)
{
    return !node->is_quoted && node->text.len != 0 &&
           strspn(node->text.bytes, "0123456789") == node->text.len &&
           (node->text.bytes[0] != '0' || node->text.len == 1);
}

static int append_scalar(const struct kinf__yaml_node *node, struct kinf__buffer *out)
{
    if (kinf__yaml_is_null(node))
        return kinf__buffer_append_str(out, KINF_STR("null"));
    return is_number(node) ? kinf__buffer_append_str(out, node->text)
                           : kinf__quote(out, node->text);
}

static int append_pair(const struct kinf__yaml_node *key, const struct kinf__yaml_node *value,
                       struct kinf__buffer *out)
{
    int failed = key->type == KINF__YAML_SCALAR ? kinf__quote(out, key->text) : KINF_ERR_PARSE;

    if (failed == 0)
        failed = kinf__buffer_append_str(out, KINF_STR(":"));
    return failed == 0 ? append(value, out) : failed;
}

/* The depth is the parser's, and so is the number of nodes. */
static int append(const struct kinf__yaml_node *node, struct kinf__buffer *out)
{
    bool is_mapping = node->type == KINF__YAML_MAPPING;
    int failed;

    if (node->type == KINF__YAML_SCALAR)
        return append_scalar(node, out);
    failed = kinf__buffer_append_str(out, is_mapping ? KINF_STR("{") : KINF_STR("["));
    for (size_t i = 0; failed == 0 && i < node->n_items; i++) {
        if (i != 0)
            failed = kinf__buffer_append_str(out, KINF_STR(","));
        if (failed == 0)
            failed = is_mapping ? append_pair(node->items[2 * i], node->items[2 * i + 1], out)
                                : append(node->items[i], out);
    }
    return failed == 0 ? kinf__buffer_append_str(out, is_mapping ? KINF_STR("}") : KINF_STR("]"))
                       : failed;
}

int kinf__changes_yaml_to_json(struct kinf_str text, struct kinf__buffer *out)
{
    struct kinf__yaml *yaml;
    int failed = kinf__yaml_parse(text, "yaml", &yaml, NULL);

    if (failed < 0)
        return failed;
    failed = append(kinf__yaml_root(yaml), out);
    kinf__yaml_free(yaml);
    return failed;
}
