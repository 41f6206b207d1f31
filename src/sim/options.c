/*
 * Parsing the command line. The flags are a contract: scripts rely on them.
 */
#include "sim/options.h"

#include <getopt.h>
#include <string.h>

#include "base/compiler.h"
#include "base/duration.h"
#include "base/error.h"
#include "serve/address.h"

#define LISTEN_DEFAULT "127.0.0.1:0"
#define SEED_DEFAULT   1

const char kinf__sim_help[] =
    "Usage: kinformer-sim [options]\n"
    "\n"
    "A Kubernetes API in memory: takes writes, serves lists and watches, brings deployments and\n"
    "jobs to life, and fails when it is told to. Nothing is kept when it ends.\n"
    "\n"
    "Where to listen:\n"
    "  --listen ADDRESS      HOST:PORT or unix:PATH; may be repeated; default 127.0.0.1:0, a free\n"
    "                        port; not only loopback with --tls and --policy\n"
    "  --tls                 HTTPS, by a certificate of its own (SIGHUP makes another one)\n"
    "  --policy FILE         YAML: users with their tokens, and who may do what; default: "
    "everybody\n"
    "                        may do everything\n"
    "  --write-kubeconfig FILE  for kubectl and others, of the first TCP address\n"
    "\n"
    "What there is:\n"
    "  --load FILE           create the objects of a manifest, YAML or JSON; may be repeated\n"
    "  --generate COUNTS     make objects, say pods=1000,nodes=20\n"
    "  --churn RATE          go on changing objects, say 50/s\n"
    "  --seed N              of names, uids, and all that is random; default 1\n"
    "  --no-workloads        nobody makes pods of deployments, jobs and the like\n"
    "  --history LIMITS      how much watches may be behind: a size, an age, or both; default\n"
    "                        64MiB,5m\n"
    "\n"
    "What fails:\n"
    "  --fault SPEC          make requests fail; may be repeated\n"
    "  --fault-listen ADDRESS  take faults while running; HOST:PORT or unix:PATH\n"
    "\n"
    "  --log-level LEVELS    off, error, warn, info, debug, or all=info,serve=debug;\n"
    "                        default info, or $KINF_LOG\n"
    "  --version, --help\n"
    "\n"
    "Faults: VERBS RESOURCES FAULT [OPTION]..., say `watch pods reset after=4000`\n"
    "  VERBS      get list watch watchlist create update patch delete deletecollection, with\n"
    "             commas; read, write, *\n"
    "  RESOURCES  pods, deployments.apps, *.apps, pods/status, *, with commas; or path=/apis\n"
    "  FAULT      instead of an answer: CODE (409, 429, 503...), login, hang[=TIME],\n"
    "             refuse=422|old|400|403|500|ignored|endless (of watch lists)\n"
    "             to the answer: reset, cut, close, truncate, stall[=TIME], flip, gzip, empty,\n"
    "             drip=BYTES/TIME, grow=BYTES; of a watch: twice, error[=CODE],\n"
    "             bookmark=twice|old|none\n"
    "  OPTION     where: after=BYTES, after=3events, after=500ms; how: retry-after=S,\n"
    "             as=json|text|html, late (the request is carried out first);\n"
    "             which: namespace=, name=, user-agent=;\n"
    "             how often: skip=N, every=N, times=N, p=0.1, for=TIME\n"
    "At --fault-listen: GET, POST, DELETE /faults, GET /requests, and POST /actions/NAME: backup,\n"
    "restore, expire (all history), drop (all connections), rotate (the certificate).\n"
    "\n"
    "Prints a line `serving URL` for each address once it is there.\n"
    "Exit status: 0 done, 1 failed while running, 2 wrong usage or input.\n"
    "Signals: SIGTERM and SIGINT stop.\n";

enum flag {
    FLAG_LISTEN = 256,
    FLAG_TLS,
    FLAG_POLICY,
    FLAG_WRITE_KUBECONFIG,
    FLAG_LOAD,
    FLAG_GENERATE,
    FLAG_CHURN,
    FLAG_SEED,
    FLAG_NO_WORKLOADS,
    FLAG_HISTORY,
    FLAG_FAULT,
    FLAG_FAULT_LISTEN,
    FLAG_LOG_LEVEL,
    FLAG_VERSION,
    FLAG_HELP,
};

static const struct option long_options[] = {
    { "listen", required_argument, NULL, FLAG_LISTEN },
    { "tls", no_argument, NULL, FLAG_TLS },
    { "policy", required_argument, NULL, FLAG_POLICY },
    { "write-kubeconfig", required_argument, NULL, FLAG_WRITE_KUBECONFIG },
    { "load", required_argument, NULL, FLAG_LOAD },
    { "generate", required_argument, NULL, FLAG_GENERATE },
    { "churn", required_argument, NULL, FLAG_CHURN },
    { "seed", required_argument, NULL, FLAG_SEED },
    { "no-workloads", no_argument, NULL, FLAG_NO_WORKLOADS },
    { "history", required_argument, NULL, FLAG_HISTORY },
    { "fault", required_argument, NULL, FLAG_FAULT },
    { "fault-listen", required_argument, NULL, FLAG_FAULT_LISTEN },
    { "log-level", required_argument, NULL, FLAG_LOG_LEVEL },
    { "version", no_argument, NULL, FLAG_VERSION },
    { "help", no_argument, NULL, FLAG_HELP },
    { NULL, 0, NULL, 0 },
};

static int add_value(struct kinf__sim_values *values, const char *flag, const char *value,
                     struct kinf_error *err)
{
    if (values->n_items == KINF__SIM_MAX_VALUES)
        return kinf__error_set(err, KINF_ERR_INVALID, "more than %d %s", KINF__SIM_MAX_VALUES,
                               flag);
    values->items[values->n_items++] = value;
    return 0;
}

/* Digits and nothing else, of 64 bits. */
static bool parse_number(const char *text, size_t len, uint64_t *ret_number)
{
    uint64_t number = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned digit = (unsigned)(text[i] - '0');

        if (digit > 9 || number > (UINT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *ret_number = number;
    return len != 0;
}

static bool parse_size(const char *text, size_t *ret_size)
{
    static const struct {
        const char *name;
        unsigned shift;
    } units[] = { { "KiB", 10 }, { "MiB", 20 }, { "GiB", 30 } };
    size_t n_digits = strspn(text, "0123456789");
    uint64_t number;

    for (size_t i = 0; i < KINF__ARRAY_LEN(units); i++) {
        if (strcmp(text + n_digits, units[i].name) != 0 || !parse_number(text, n_digits, &number) ||
            number == 0 || number > SIZE_MAX >> units[i].shift)
            continue;
        *ret_size = (size_t)number << units[i].shift;
        return true;
    }
    return false;
}

/* "64MiB", "5m" or "64MiB,5m". */
static int parse_history(const char *text, struct kinf__watchcache_limits *limits,
                         struct kinf_error *err)
{
    char size[32];
    size_t len = strcspn(text, ",");
    const char *age = text[len] == ',' ? text + len + 1 : NULL;

    if (len < sizeof size) {
        memcpy(size, text, len);
        size[len] = '\0';
        if (age == NULL && kinf__duration_parse(size, &limits->history_age_ms) &&
            limits->history_age_ms != 0)
            return 0;
        if (parse_size(size, &limits->history_bytes) &&
            (age == NULL ||
             (kinf__duration_parse(age, &limits->history_age_ms) && limits->history_age_ms != 0)))
            return 0;
    }
    return kinf__error_set(err, KINF_ERR_INVALID,
                           "--history is a size, an age or both, such as 64MiB,5m, not '%s'", text);
}

static int parse_seed(const char *text, uint64_t *ret_seed, struct kinf_error *err)
{
    return parse_number(text, strlen(text), ret_seed)
               ? 0
               : kinf__error_set(err, KINF_ERR_INVALID, "--seed is a number from 0, not '%s'",
                                 text);
}

static int take_flag(int flag, struct kinf__sim_arguments *arguments, struct kinf_error *err)
{
    switch (flag) {
    case FLAG_LISTEN:
        return add_value(&arguments->listen, "--listen", optarg, err);
    case FLAG_TLS:
        arguments->has_tls = true;
        return 0;
    case FLAG_POLICY:
        arguments->policy_file = optarg;
        return 0;
    case FLAG_WRITE_KUBECONFIG:
        arguments->kubeconfig_out = optarg;
        return 0;
    case FLAG_LOAD:
        return add_value(&arguments->loads, "--load", optarg, err);
    case FLAG_GENERATE:
        arguments->generate = optarg;
        return 0;
    case FLAG_CHURN:
        arguments->churn = optarg;
        return 0;
    case FLAG_SEED:
        return parse_seed(optarg, &arguments->seed, err);
    case FLAG_NO_WORKLOADS:
        arguments->has_no_workloads = true;
        return 0;
    case FLAG_HISTORY:
        return parse_history(optarg, &arguments->limits, err);
    case FLAG_FAULT:
        return add_value(&arguments->faults, "--fault", optarg, err);
    case FLAG_FAULT_LISTEN:
        arguments->fault_listen = optarg;
        return 0;
    case FLAG_LOG_LEVEL:
        arguments->log_levels = optarg;
        return 0;
    case FLAG_VERSION:
        arguments->command = KINF__SIM_COMMAND_VERSION;
        return 0;
    case FLAG_HELP:
        arguments->command = KINF__SIM_COMMAND_HELP;
        return 0;
    default:
        return kinf__error_set(err, KINF_ERR_INVALID, "a flag that nobody handles");
    }
}

/* What getopt stumbled over: ':' or '?'. */
static int refuse_flag(int complaint, char *argv[], struct kinf_error *err)
{
    if (complaint == ':')
        return kinf__error_set(err, KINF_ERR_INVALID, "%s needs a value (see --help)",
                               argv[optind - 1]);
    if (optopt > 0 && optopt < FLAG_LISTEN)
        return kinf__error_set(err, KINF_ERR_INVALID, "'-%c' is no option (see --help)", optopt);
    if (optopt != 0)
        return kinf__error_set(err, KINF_ERR_INVALID, "'%s': this option takes no value",
                               argv[optind - 1]);
    return kinf__error_set(err, KINF_ERR_INVALID,
                           "'%s' is no option, or short for several (see --help)",
                           argv[optind - 1]);
}

static int read_flags(int argc, char *argv[], struct kinf__sim_arguments *arguments,
                      struct kinf_error *err)
{
    int flag, failed;

    optind = 0; /* begins anew, also after a failure */
    while ((flag = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        failed = flag == '?' || flag == ':' ? refuse_flag(flag, argv, err)
                                            : take_flag(flag, arguments, err);
        if (failed < 0)
            return failed;
    }
    if (optind < argc)
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "'%s' is no option; a manifest is given by --load %s", argv[optind],
                               argv[optind]);
    return 0;
}

/* Whoever reaches an address that is not loopback has to show who he is, to somebody he knows. */
static int check_address(const struct kinf__sim_arguments *arguments, const char *address,
                         struct kinf_error *err)
{
    bool is_guarded = arguments->has_tls && arguments->policy_file != NULL;
    int failed = kinf__address_check(address, true, err);

    if (failed == 0 && kinf__address_check(address, is_guarded, NULL) < 0)
        failed = kinf__error_set(err, KINF_ERR_INVALID,
                                 "--listen %s: an address that is not loopback needs --tls and "
                                 "--policy",
                                 address);
    return failed;
}

static bool is_unix(const char *address)
{
    return strncmp(address, "unix:", 5) == 0;
}

static int check_kubeconfig(const struct kinf__sim_arguments *arguments, struct kinf_error *err)
{
    size_t i = 0;

    if (arguments->kubeconfig_out == NULL)
        return 0;
    while (i < arguments->listen.n_items && is_unix(arguments->listen.items[i]))
        i++;
    if (i == arguments->listen.n_items)
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "--write-kubeconfig needs a --listen HOST:PORT: clients of "
                               "kubeconfigs take no unix sockets");
    if (arguments->policy_file != NULL && !arguments->has_tls)
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "--write-kubeconfig with --policy needs --tls: clients send no "
                               "tokens over plain HTTP");
    return 0;
}

static int check(struct kinf__sim_arguments *arguments, struct kinf_error *err)
{
    int failed = 0;

    if (arguments->listen.n_items == 0)
        arguments->listen.items[arguments->listen.n_items++] = LISTEN_DEFAULT;
    for (size_t i = 0; failed == 0 && i < arguments->listen.n_items; i++)
        failed = check_address(arguments, arguments->listen.items[i], err);
    return failed < 0 ? failed : check_kubeconfig(arguments, err);
}

int kinf__sim_arguments_parse(int argc, char *argv[], struct kinf__sim_arguments *ret_arguments,
                              struct kinf_error *err)
{
    struct kinf__sim_arguments arguments = { .seed = SEED_DEFAULT };
    int failed = read_flags(argc, argv, &arguments, err);

    if (failed == 0 && arguments.command == KINF__SIM_COMMAND_RUN)
        failed = check(&arguments, err);
    if (failed == 0)
        *ret_arguments = arguments;
    return failed;
}
