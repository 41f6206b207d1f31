/*
 * kinf-replay: the replay server as a program. Prints where it listens, then serves until SIGINT or
 * SIGTERM; SIGUSR1 and SIGUSR2 give signals 1 and 2 to the script.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "replay/recording.h"
#include "replay/replay.h"

static const char usage[] =
    "usage: kinf-replay [OPTION]...\n"
    "  --script FILE            exchanges to play, see tests/replay/README.md\n"
    "  --transcripts DIR        recorded answers (tests/data/transcripts)\n"
    "  --port N                 a free one if not given\n"
    "  --plain                  http instead of https\n"
    "  --max-connections N      further ones wait (64)\n"
    "  --write-kubeconfig FILE  and --write-ca FILE\n"
    "  --generate-pods N        N pods of --pod FILE (JSON) at /api/v1/pods\n"
    "    --namespaces N         (10)   --chunk-size BYTES of the LIST (16384)\n"
    "    --watchlist            answer sendInitialEvents with a stream\n"
    "    --events RATE|max      MODIFIED events a second on each watch\n"
    "    --n-events N           then silence\n"
    "  --verbose                print the requests at the end\n";

struct arguments {
    struct replay_options options;
    const char *script_file;
    const char *kubeconfig;
    const char *ca_file;
    bool verbose;
};

enum option_name {
    OPTION_SCRIPT = 256,
    OPTION_TRANSCRIPTS,
    OPTION_PORT,
    OPTION_PLAIN,
    OPTION_MAX_CONNECTIONS,
    OPTION_KUBECONFIG,
    OPTION_CA,
    OPTION_GENERATE,
    OPTION_POD,
    OPTION_NAMESPACES,
    OPTION_CHUNK_SIZE,
    OPTION_WATCHLIST,
    OPTION_EVENTS,
    OPTION_N_EVENTS,
    OPTION_VERBOSE,
};

static const struct option option_list[] = {
    { "script", required_argument, NULL, OPTION_SCRIPT },
    { "transcripts", required_argument, NULL, OPTION_TRANSCRIPTS },
    { "port", required_argument, NULL, OPTION_PORT },
    { "plain", no_argument, NULL, OPTION_PLAIN },
    { "max-connections", required_argument, NULL, OPTION_MAX_CONNECTIONS },
    { "write-kubeconfig", required_argument, NULL, OPTION_KUBECONFIG },
    { "write-ca", required_argument, NULL, OPTION_CA },
    { "generate-pods", required_argument, NULL, OPTION_GENERATE },
    { "pod", required_argument, NULL, OPTION_POD },
    { "namespaces", required_argument, NULL, OPTION_NAMESPACES },
    { "chunk-size", required_argument, NULL, OPTION_CHUNK_SIZE },
    { "watchlist", no_argument, NULL, OPTION_WATCHLIST },
    { "events", required_argument, NULL, OPTION_EVENTS },
    { "n-events", required_argument, NULL, OPTION_N_EVENTS },
    { "verbose", no_argument, NULL, OPTION_VERBOSE },
    { NULL, 0, NULL, 0 },
};

static unsigned long long number_of(const char *text)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0') {
        fprintf(stderr, "kinf-replay: '%s' is no number\n", text);
        exit(2);
    }
    return number;
}

static void take_option(struct arguments *arguments, int name)
{
    struct replay_options *options = &arguments->options;
    struct replay_generate_options *generate = &options->generate;

    switch (name) {
    case OPTION_SCRIPT:
        arguments->script_file = optarg;
        break;
    case OPTION_TRANSCRIPTS:
        options->transcripts_dir = optarg;
        break;
    case OPTION_PORT:
        options->port = (uint16_t)number_of(optarg);
        break;
    case OPTION_PLAIN:
        options->plain = true;
        break;
    case OPTION_MAX_CONNECTIONS:
        options->max_connections = (unsigned)number_of(optarg);
        break;
    case OPTION_KUBECONFIG:
        arguments->kubeconfig = optarg;
        break;
    case OPTION_CA:
        arguments->ca_file = optarg;
        break;
    case OPTION_GENERATE:
        generate->n_pods = (unsigned)number_of(optarg);
        break;
    case OPTION_POD:
        generate->pod_file = optarg;
        break;
    case OPTION_NAMESPACES:
        generate->n_namespaces = (unsigned)number_of(optarg);
        break;
    case OPTION_CHUNK_SIZE:
        generate->chunk_size = number_of(optarg);
        break;
    case OPTION_WATCHLIST:
        generate->watchlist = true;
        break;
    case OPTION_EVENTS:
        generate->events_per_s = strcmp(optarg, "max") == 0 ? REPLAY_SATURATED : number_of(optarg);
        break;
    case OPTION_N_EVENTS:
        generate->n_events = number_of(optarg);
        break;
    case OPTION_VERBOSE:
        arguments->verbose = true;
        break;
    default:
        fputs(usage, stderr);
        exit(2);
    }
}

static void parse_arguments(struct arguments *arguments, int argc, char **argv)
{
    int name;

    while ((name = getopt_long(argc, argv, "", option_list, NULL)) != -1)
        take_option(arguments, name);
    if (optind != argc || (arguments->options.generate.n_pods != 0) !=
                              (arguments->options.generate.pod_file != NULL)) {
        fputs(usage, stderr);
        exit(2);
    }
}

static int write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
        perror(path);
        return -1;
    }
    return 0;
}

static int announce(struct replay *replay, const struct arguments *arguments)
{
    struct kinf_error err = KINF_ERROR_INIT;

    if (arguments->kubeconfig != NULL &&
        replay_write_kubeconfig(replay, arguments->kubeconfig, &err) < 0) {
        fprintf(stderr, "kinf-replay: %s\n", err.message);
        return -1;
    }
    if (arguments->ca_file != NULL && write_text(arguments->ca_file, replay_ca_pem(replay)) < 0)
        return -1;
    printf("server=%s", replay_url(replay));
    if (arguments->options.generate.n_pods != 0)
        printf(" objects=%u checksum=%016llx", arguments->options.generate.n_pods,
               (unsigned long long)replay_generated_checksum(replay));
    printf("\n");
    return fflush(stdout) == 0 ? 0 : -1;
}

static void serve(struct replay *replay, const sigset_t *signals)
{
    int signal;

    do {
        signal = sigwaitinfo(signals, NULL);
        if (signal == SIGUSR1 || signal == SIGUSR2)
            replay_signal(replay, signal == SIGUSR1 ? 1 : 2);
    } while (signal != SIGINT && signal != SIGTERM);
}

/* Returns whether the script expected everything. */
static bool sum_up(struct replay *replay, bool verbose)
{
    size_t n = replay_n_requests(replay), n_violations = replay_n_violations(replay);

    for (size_t i = 0; i < n; i++) {
        const struct replay_request *request = replay_wait_request(replay, i, 0);

        if (verbose || !request->is_expected)
            printf("%s %s\n", request->is_expected ? "request" : "violation", request->line);
    }
    printf("requests=%zu violations=%zu\n", n, n_violations);
    return n_violations == 0;
}

static sigset_t block_signals(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    return signals;
}

int main(int argc, char **argv)
{
    KINF__AUTO_BUFFER script = KINF__BUFFER_INIT;
    struct arguments arguments = { .verbose = false };
    struct kinf_error err = KINF_ERROR_INIT;
    struct replay *replay = NULL;
    sigset_t signals = block_signals();
    bool is_clean;

    parse_arguments(&arguments, argc, argv);
    if ((arguments.script_file != NULL &&
         (replay__read_file(arguments.script_file, &script, &err) < 0 ||
          (arguments.options.script = kinf__buffer_cstr(&script)) == NULL)) ||
        replay_start(&arguments.options, &replay, &err) < 0) {
        fprintf(stderr, "kinf-replay: %s\n", err.message);
        return 2;
    }
    if (announce(replay, &arguments) < 0) {
        replay_stop(replay);
        return 2;
    }
    serve(replay, &signals);
    is_clean = sum_up(replay, arguments.verbose);
    replay_stop(replay);
    return is_clean ? 0 : 1;
}
