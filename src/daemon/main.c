/*
 * kinformerd: read what to do, do it, say why it ended.
 */
#include <stdio.h>
#include <stdlib.h>

#include <kinformer/api.h>
#include <kinformer/log.h>

#include "base/process.h"
#include "daemon/daemon.h"
#include "daemon/options.h"
#include "handlers/plugin.h"
#include "serve/program.h"

/* It is the plugin that is bad, and not how we were called. */
static int check_plugin(const char *path, struct kinf_error *err)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    int failed = kinf__plugin_describe(path, &out, err);

    if (failed < 0)
        err->code = KINF_ERR_SYSTEM;
    else
        printf("%.*s\n", (int)out.len, out.bytes);
    return failed;
}

static int check_plugins(const struct kinf__config *config, struct kinf_error *err)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < config->n_handlers; i++) {
        if (config->handlers[i].plugin != NULL)
            failed = kinf__plugin_describe(config->handlers[i].plugin, &out, err);
    }
    return failed;
}

static int check_config(struct kinf__options *options, struct kinf_error *err)
{
    size_t n = options->config.n_resources;
    int failed = check_plugins(&options->config, err);

    if (failed == 0 && options->is_online)
        failed = kinf__daemon_run(options, err);

    if (failed == 0)
        printf("configuration is good: %zu resource%s%s%s\n", n, n == 1 ? "" : "s",
               options->is_online ? " that the server has and lets read" : "",
               options->config.on_demand.is_enabled ? ", others on demand" : "");
    return failed;
}

static int execute(struct kinf__options *options, struct kinf_error *err)
{
    switch (options->command) {
    case KINF__COMMAND_HELP:
        fputs(kinf__options_help, stdout);
        return 0;
    case KINF__COMMAND_VERSION:
        printf("kinformerd %s\n", kinf_version());
        return 0;
    case KINF__COMMAND_CHECK_CONFIG:
        return check_config(options, err);
    case KINF__COMMAND_CHECK_PLUGIN:
        return check_plugin(options->checked_plugin, err);
    case KINF__COMMAND_RUN:
    case KINF__COMMAND_MEASURE:
        break;
    }
    return kinf__daemon_run(options, err);
}

int main(int argc, char *argv[])
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__options options;
    int failed;

    kinf__daemon_hold_reload();
    kinf__process_keep_file_limit();
    kinf__program_begin();
    failed = kinf__options_parse(argc, argv, &options, &err);
    if (failed < 0)
        return kinf__program_end("kinformerd", failed, &err);
    failed = kinf__options_set_log_levels(&options, &options.config, &err);
    if (failed == 0) {
        kinf__config_warn(&options.config);
        failed = execute(&options, &err);
    }
    kinf__options_release(&options);
    return kinf__program_end("kinformerd", failed, &err);
}
