/*
 * What a plugin is handed of the configuration: any YAML, as JSON.
 *
 * Numbers as JSON writes them, true, false and null keep their type, as elsewhere in this file; all else
 * is a text, as what is in quotes.
 *
 * Threads: any thread.
 */
#ifndef KINF_DAEMON_PLUGIN_CONFIG_H
#define KINF_DAEMON_PLUGIN_CONFIG_H

#include "base/buffer.h"
#include "yaml/yaml.h"

/* `node` NULL is null. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__plugin_config_write(const struct kinf__yaml_node *node,
                                              struct kinf__buffer *out);

#endif
