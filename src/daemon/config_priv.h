/*
 * Between config.c (the file) and config_resource.c (an entry of its resources).
 *
 * Threads: one thread per object.
 */
#ifndef KINF_DAEMON_CONFIG_PRIV_H
#define KINF_DAEMON_CONFIG_PRIV_H

#include "daemon/config.h"
#include "yaml/yaml.h"

/* What is being read. */
struct kinf__config_reader {
    const struct kinf__yaml *yaml;
    const struct kinf__yaml_node *mapping;
    struct kinf_error *err;
};

/* A copy of the key's value; untouched if it is not there. Errors: KINF_ERR_CONFIG,
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__config_read_text(const struct kinf__config_reader *reader,
                                           const char *key, char **ret_copy);
/* Appends copies of the key's values. Errors: likewise. */
KINF_MUST_CHECK int kinf__config_read_texts(const struct kinf__config_reader *reader,
                                            const char *key, struct kinf__strings *strings);

void kinf__strings_release(struct kinf__strings *strings);

/* Appends an entry to the configuration's. Errors: likewise. */
KINF_MUST_CHECK int kinf__resource_config_read(const struct kinf__yaml *yaml,
                                               const struct kinf__yaml_node *node,
                                               struct kinf__config *config, struct kinf_error *err);
void kinf__resource_config_release(struct kinf__resource_config *resource);

/* Paths, selectors and namespaces. Errors: those of their parsers, KINF_ERR_CONFIG. */
KINF_MUST_CHECK int kinf__resource_config_check(const struct kinf__resource_config *resource,
                                                struct kinf_error *err);

#endif
