/*
 * kinf-replay: generated pods for benchmarks. Prints where it listens, then each request and when it
 * came, until SIGINT or SIGTERM.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "replay/replay.h"

#define TELL_MS 100

static const char usage[] =
    "usage: kinf-replay --generate-pods N --pod FILE [OPTION]...\n"
    "  --generate-pods N        pods at /api/v1/pods, made of the one in --pod FILE (JSON)\n"
    "  --watchlist              answer sendInitialEvents with a stream\n"
    "  --events RATE|max        MODIFIED events a second on each watch\n"
    "  --n-events N             then silence\n"
    "  --expire MS              so long behind these the first watch is told 410; later ones are "
    "silent\n"
    "  --plain                  http instead of https\n"
    "  --write-kubeconfig FILE  and --write-ca FILE\n";

struct arguments {
    struct replay_options options;
    const char *kubeconfig;
    const char *ca_file;
};

enum option_name {
    OPTION_PLAIN = 256,
    OPTION_KUBECONFIG,
    OPTION_CA,
    OPTION_GENERATE,
    OPTION_POD,
    OPTION_WATCHLIST,
    OPTION_EVENTS,
    OPTION_N_EVENTS,
    OPTION_EXPIRE,
};

static const struct option option_list[] = {
    { "plain", no_argument, NULL, OPTION_PLAIN },
    { "write-kubeconfig", required_argument, NULL, OPTION_KUBECONFIG },
    { "write-ca", required_argument, NULL, OPTION_CA },
    { "generate-pods", required_argument, NULL, OPTION_GENERATE },
    { "pod", required_argument, NULL, OPTION_POD },
    { "watchlist", no_argument, NULL, OPTION_WATCHLIST },
    { "events", required_argument, NULL, OPTION_EVENTS },
    { "n-events", required_argument, NULL, OPTION_N_EVENTS },
    { "expire", required_argument, NULL, OPTION_EXPIRE },
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
    case OPTION_PLAIN:
        options->plain = true;
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
    case OPTION_WATCHLIST:
        generate->watchlist = true;
        break;
    case OPTION_EVENTS:
        generate->events_per_s = strcmp(optarg, "max") == 0 ? REPLAY_SATURATED : number_of(optarg);
        break;
    case OPTION_N_EVENTS:
        generate->n_events = number_of(optarg);
        break;
    case OPTION_EXPIRE:
        generate->expires = true;
        generate->expires_ms = (int64_t)number_of(optarg);
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
    if (optind != argc || arguments->options.generate.n_pods == 0 ||
        arguments->options.generate.pod_file == NULL) {
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
    const struct replay_generate_options *generate = &arguments->options.generate;
    struct kinf_error err = KINF_ERROR_INIT;

    if (arguments->kubeconfig != NULL &&
        replay_write_kubeconfig(replay, arguments->kubeconfig, &err) < 0) {
        fprintf(stderr, "kinf-replay: %s\n", err.message);
        return -1;
    }
    if (arguments->ca_file != NULL && write_text(arguments->ca_file, replay_ca_pem(replay)) < 0)
        return -1;
    printf("server=%s objects=%u checksum=%016llx sum=%016llx sum_metadata=%016llx\n",
           replay_url(replay), generate->n_pods,
           (unsigned long long)replay_generated_checksum(replay),
           (unsigned long long)replay_generated_sum(replay, generate->n_events, true),
           (unsigned long long)replay_generated_sum(replay, generate->n_events, false));
    return fflush(stdout) == 0 ? 0 : -1;
}

/* Until one of the signals comes. */
static void tell_requests(struct replay *replay, const sigset_t *signals)
{
    const struct timespec at_once = { 0 };
    const struct replay_request *request;
    size_t n = 0;

    while (sigtimedwait(signals, NULL, &at_once) < 0) {
        request = replay_wait_request(replay, n, TELL_MS);
        if (request == NULL)
            continue;
        printf("request at_ms=%lld %s\n", (long long)request->at_ms, request->line);
        fflush(stdout);
        n++;
    }
}

/* Returns whether everything was expected. */
static bool sum_up(struct replay *replay)
{
    size_t n = replay_n_requests(replay), n_violations = replay_n_violations(replay);

    for (size_t i = 0; i < n; i++) {
        const struct replay_request *request = replay_wait_request(replay, i, 0);

        if (!request->is_expected)
            printf("violation %s\n", request->line);
    }
    printf("requests=%zu violations=%zu\n", n, n_violations);
    return n_violations == 0;
}

int main(int argc, char **argv)
{
    struct arguments arguments = { .kubeconfig = NULL };
    struct kinf_error err = KINF_ERROR_INIT;
    struct replay *replay = NULL;
    sigset_t signals;
    bool is_clean;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    parse_arguments(&arguments, argc, argv);
    if (replay_start(&arguments.options, &replay, &err) < 0) {
        fprintf(stderr, "kinf-replay: %s\n", err.message);
        return 2;
    }
    if (announce(replay, &arguments) < 0) {
        replay_stop(replay);
        return 2;
    }
    tell_requests(replay, &signals);
    is_clean = sum_up(replay);
    replay_stop(replay);
    return is_clean ? 0 : 1;
}
