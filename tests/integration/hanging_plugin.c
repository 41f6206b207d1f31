/* A plugin that says its configuration, and does not return from a change of "plugins/hang". */
#include <string.h>
#include <unistd.h>

#include <kinformer/plugin.h>

static int begin(const struct kinf_host *host, const char *config, void **ret_state,
                 struct kinf_error *err)
{
    (void)err;
    host->log(host, KINF_LOG_INFO, config);
    *ret_state = (void *)host;
    return 0;
}

static int hang(void *state, const struct kinf_change *change, struct kinf_error *err)
{
    const struct kinf_host *host = state;

    (void)err;
    if (change->object == NULL || strcmp(host->key(host, change->object), "plugins/hang") != 0)
        return 0;
    host->log(host, KINF_LOG_INFO, "hangs");
    for (;;)
        pause();
}

static void end(void *state)
{
    (void)state;
}

static const struct kinf_plugin table = {
    KINF_PLUGIN_ABI, sizeof table, "hanging", begin, hang, NULL, end
};
KINF_PLUGIN(table)
