/*
 * One entry of the configuration's handlers.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_DAEMON_HANDLER_CONFIG_H
#define KINF_DAEMON_HANDLER_CONFIG_H

#include "daemon/resource_config.h"
#include "daemon/webhook_config.h"

struct kinf__handler_config {
    struct kinf__strings exec; /* a program and its arguments; none: it is no program */
    struct kinf__webhook_config webhook;
    char *plugin;                   /* the path of a shared object; NULL: it is none */
    char *plugin_config;            /* its `config`, as JSON */
    struct kinf__strings resources; /* as their entries name them; none: all */
    bool acknowledges;
};

/* Fills an empty entry, whose owner releases it, on failure too. The program, or the files, have to be
 * there. Errors: KINF_ERR_CONFIG, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__handler_config_read(const struct kinf__yaml *yaml,
                                              const struct kinf__yaml_node *node,
                                              struct kinf__handler_config *handler,
                                              struct kinf_error *err);
/* --exec: a command of the shell, told of everything. Errors: KINF_ERR_INVALID (it is empty),
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__handler_config_set_command(struct kinf__handler_config *handler,
                                                     const char *command, struct kinf_error *err);
/* A plugin with its configuration ("null": --plugin has none). Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__handler_config_set_plugin(struct kinf__handler_config *handler,
                                                    const char *path, const char *config,
                                                    struct kinf_error *err);
KINF_MUST_CHECK int kinf__handler_config_copy(const struct kinf__handler_config *from,
                                              struct kinf__handler_config *to,
                                              struct kinf_error *err);
void kinf__handler_config_release(struct kinf__handler_config *handler);

bool kinf__handler_config_wants(const struct kinf__handler_config *handler, const char *resource);
/* But for plugin_config, which a reload may change. */
bool kinf__handler_config_equal(const struct kinf__handler_config *a,
                                const struct kinf__handler_config *b);

#endif
