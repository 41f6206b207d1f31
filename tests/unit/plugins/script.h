/*
 * A plugin that does what a test says: its configuration is the address of a script, as a number.
 */
#ifndef KINF_TESTS_UNIT_PLUGINS_SCRIPT_H
#define KINF_TESTS_UNIT_PLUGINS_SCRIPT_H

#include <kinformer/plugin.h>

struct plugin_script {
    int (*open)(struct plugin_script *script, const struct kinf_host *host, void **ret_state,
                struct kinf_error *err);
    int (*on_change)(void *state, const struct kinf_change *change, struct kinf_error *err);
    int (*flush)(void *state, struct kinf_error *err);
    void (*close)(void *state);
    int *
        n_opened; /* the address of a variable of the plugin's own, which it sets when it is opened */
};

#endif
