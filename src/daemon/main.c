/*
 * kinformerd: read what to do, do it, say why it ended.
 */
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <kinformer/api.h>
#include <kinformer/log.h>

#include "daemon/daemon.h"
#include "daemon/options.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* The next descriptor would take the number of a closed one, and events would be written into a
 * socket. What is opened in their place refuses to be read or written, as a closed one does. */
static void fill_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
}

/* An informer has four descriptors; the soft limit is low for the sake of select(). */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void log_to_stderr(enum kinf_log_level level, const char *module, const char *line,
                          void *ctx)
{
    char when[32];
    struct timespec now;
    struct tm utc;

    (void)ctx;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc);
    fprintf(stderr, "%s.%03ldZ %s %s: %s\n", when, now.tv_nsec / 1000000,
            kinf_log_level_to_string(level), module, line);
}

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
        printf("configuration is good: %zu resource%s\n", options->config.n_resources,
               options->config.n_resources == 1 ? "" : "s");
        return 0;
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

    fill_standard_descriptors();
    raise_descriptor_limit();
    /* An arena of a thread grows by a system call for each object. One for all grows in steps. */
    mallopt(M_ARENA_MAX, 1);
    kinf_log_set_callback(log_to_stderr, NULL);
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
