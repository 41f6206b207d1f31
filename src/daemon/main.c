/*
 * kinformerd: read what to do, do it, say why it ended.
 */
#include <stdio.h>
#include <stdlib.h>

#include <kinformer/api.h>
#include <kinformer/log.h>

#include "daemon/daemon.h"
#include "daemon/options.h"
#include "serve/program.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* The command line wins over the environment, which wins over the file. */
static int set_log_levels(const struct kinf__options *options, struct kinf_error *err)
{
    const char *levels = options->log_levels;

    if (levels == NULL)
        levels = getenv("KINF_LOG");
    if (levels == NULL)
        levels = options->config.log_levels;
    return levels != NULL ? kinf_log_set_levels(levels, err) : 0;
}

static int complain(const struct kinf_error *err)
{
    fprintf(stderr, "kinformerd: %s\n", err->message);
    switch (err->code) {
    case KINF_ERR_INVALID:
    case KINF_ERR_CONFIG:
    case KINF_ERR_PARSE:
    case KINF_ERR_UNSUPPORTED:
        return EXIT_USAGE;
    default:
        return EXIT_FAILED;
    }
}

static int check_config(struct kinf__options *options, struct kinf_error *err)
{
    size_t n = options->config.n_resources;
    int failed = options->is_online ? kinf__daemon_run(options, err) : 0;

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

    kinf__program_begin();
    if (kinf__options_parse(argc, argv, &options, &err) < 0)
        return complain(&err);
    failed = set_log_levels(&options, &err);
    if (failed == 0)
        failed = execute(&options, &err);
    kinf__options_release(&options);
    if (failed < 0)
        return complain(&err);
    return fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED;
}
