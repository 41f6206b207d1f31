/*
 * From YAML nodes to JSON. The parser has limited their depth, and has no two equal keys.
 */
#include "daemon/plugin_config.h"

#include "json/quote.h"
#include "json/scan.h"

/* A number, true or false, as JSON has it. */
static bool is_json_scalar(const struct kinf__yaml_node *node)
{
    size_t len;

    return !node->is_quoted && node->text.len != 0 && node->text.bytes[0] != '"' &&
           kinf__json_scan_all(node->text, 1, &len) == 0;
}

static int write_scalar(const struct kinf__yaml_node *node, struct kinf__buffer *out)
{
    return is_json_scalar(node) ? kinf__buffer_append_str(out, node->text)
                                : kinf__quote(out, node->text);
}

static int write_items(const struct kinf__yaml_node *node, struct kinf__buffer *out)
{
    bool is_mapping = node->type == KINF__YAML_MAPPING;
    const struct kinf__yaml_node *const *item = node->items;
    int failed = kinf__buffer_append(out, is_mapping ? "{" : "[", 1);

    for (size_t i = 0; failed == 0 && i < node->n_items; i++) {
        if (i != 0)
            failed = kinf__buffer_append(out, ",", 1);
        if (failed == 0 && is_mapping)
            failed = kinf__quote(out, (*item++)->text);
        if (failed == 0 && is_mapping)
            failed = kinf__buffer_append(out, ":", 1);
        if (failed == 0)
            failed = kinf__plugin_config_write(*item++, out);
    }
    return failed < 0 ? failed : kinf__buffer_append(out, is_mapping ? "}" : "]", 1);
}

int kinf__plugin_config_write(const struct kinf__yaml_node *node, struct kinf__buffer *out)
{
    if (node == NULL || kinf__yaml_is_null(node))
        return kinf__buffer_append(out, "null", 4);
    return node->type == KINF__YAML_SCALAR ? write_scalar(node, out) : write_items(node, out);
}
