/*
 * Parsing the command line. The flags are a contract: scripts rely on them.
 */
#include "sim/options.h"

#include <errno.h>
#include <stdlib.h>
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
    "  RESOURCES  pods, deployments.apps, *.apps, pods/status, *, with commas, but !leases;\n"
    "             or path=/apis\n"
    "  FAULT      instead of an answer: CODE (409, 429, 503...), login, hang[=TIME],\n"
    "             refuse=422|old|400|403|500|ignored|endless (of watch lists)\n"
    "             to the answer: reset, cut, close, truncate, stall[=TIME], flip, gzip, empty,\n"
    "             drip=BYTES/TIME, grow=BYTES; of a watch: twice, error[=CODE],\n"
    "             bookmark=twice|old|none\n"
    "  OPTION     where: after=BYTES, after=3events, after=500ms; how: retry-after=S,\n"
    "             as=json|text|html, late (the request is carried out first), early (a\n"
    "             reset or cut comes before it);\n"
    "             which: namespace=, name=, user-agent=;\n"
    "             how often: skip=N, every=N, times=N, p=0.1, for=TIME\n"
    "At --fault-listen: GET, POST, DELETE /faults, GET /requests, and POST /actions/NAME: backup,\n"
    "restore, expire (all history), drop (all connections), rotate (the certificate).\n"
    "\n"
    "Prints a line `serving URL` for each address once it is there.\n"
    "Exit status: 0 done, 1 failed while running, 2 wrong usage or input.\n"
    "Signals: SIGTERM and SIGINT stop.\n";

/* Returns what is behind the digits; NULL: there are none, or too many for 64 bits. */
static const char *read_number(const char *text, uint64_t *ret_number)
{
    size_t n_digits = strspn(text, "0123456789");

    errno = 0;
    *ret_number = strtoull(text, NULL, 10);
    return n_digits != 0 && errno == 0 ? text + n_digits : NULL;
}

/* Returns what is behind the size; the text itself: it begins with none. */
static const char *read_size(const char *text, size_t *ret_size)
{
    static const struct {
        const char *name;
        unsigned shift;
    } units[] = { { "KiB", 10 }, { "MiB", 20 }, { "GiB", 30 } };
    uint64_t number;
    const char *end = read_number(text, &number);

    for (size_t i = 0; end != NULL && i < KINF__ARRAY_LEN(units); i++) {
        if (strncmp(end, units[i].name, 3) != 0 || number == 0 ||
            number > SIZE_MAX >> units[i].shift)
            continue;
        *ret_size = (size_t)number << units[i].shift;
        return end + 3;
    }
    return text;
}

/* "64MiB", "5m" or "64MiB,5m". */
static int take_history(const struct kinf__flag *flag, const char *text, void *member,
                        struct kinf_error *err)
{
    struct kinf__watchcache_limits *limits = member;
    const char *age = read_size(text, &limits->history_bytes);

    if (age != text && *age == '\0')
        return 0;
    if ((age == text || *age++ == ',') && kinf__duration_parse(age, &limits->history_age_ms) &&
        limits->history_age_ms != 0)
        return 0;
    return kinf__error_set(err, KINF_ERR_INVALID,
                           "--%s is a size, an age or both, such as 64MiB,5m, not '%s'", flag->name,
                           text);
}

static int take_number(const struct kinf__flag *flag, const char *text, void *member,
                       struct kinf_error *err)
{
    const char *end = read_number(text, member);

    return end != NULL && *end == '\0'
               ? 0
               : kinf__error_set(err, KINF_ERR_INVALID, "--%s is a number from 0, not '%s'",
                                 flag->name, text);
}

#define AT(member) offsetof(struct kinf__sim_arguments, member)
static const struct kinf__flag known_flags[] = {
    { "listen", true, AT(listen), 0, kinf__flag_add },
    { "tls", false, AT(has_tls), 0, kinf__flag_on },
    { "policy", true, AT(policy_file), 0, kinf__flag_text },
    { "write-kubeconfig", true, AT(kubeconfig_out), 0, kinf__flag_text },
    { "load", true, AT(loads), 0, kinf__flag_add },
    { "generate", true, AT(generate), 0, kinf__flag_text },
    { "churn", true, AT(churn), 0, kinf__flag_text },
    { "seed", true, AT(seed), 0, take_number },
    { "no-workloads", false, AT(has_no_workloads), 0, kinf__flag_on },
    { "history", true, AT(limits), 0, take_history },
    { "fault", true, AT(faults), 0, kinf__flag_add },
    { "fault-listen", true, AT(fault_listen), 0, kinf__flag_text },
    { "log-level", true, AT(log_levels), 0, kinf__flag_text },
    { "version", false, AT(command), KINF__SIM_COMMAND_VERSION, kinf__flag_set },
    { "help", false, AT(command), KINF__SIM_COMMAND_HELP, kinf__flag_set },
};

/* `wants`: what is missing for an address that is not loopback; NULL: nothing. */
static int check_address(const char *address, const char *wants, struct kinf_error *err)
{
    int failed = kinf__address_check(address, true, err);

    if (failed == 0 && wants != NULL && kinf__address_check(address, false, NULL) < 0)
        failed = kinf__error_set(err, KINF_ERR_INVALID, "cannot listen at %s: %s", address, wants);
    return failed;
}

/* Whoever reaches an address that is not loopback has to show who he is, to somebody he knows. */
static int check_addresses(const struct kinf__sim_arguments *arguments, struct kinf_error *err)
{
    const char *wants = arguments->has_tls && arguments->policy_file != NULL
                            ? NULL
                            : "an address that is not loopback needs --tls and --policy";
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < arguments->listen.n_items; i++)
        failed = check_address(arguments->listen.items[i], wants, err);
    if (failed == 0 && arguments->fault_listen != NULL)
        failed =
            check_address(arguments->fault_listen,
                          "faults are taken at loopback addresses and unix sockets alone", err);
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
    int failed;

    if (arguments->listen.n_items == 0)
        arguments->listen.items[arguments->listen.n_items++] = LISTEN_DEFAULT;
    failed = check_addresses(arguments, err);
    return failed < 0 ? failed : check_kubeconfig(arguments, err);
}

int kinf__sim_arguments_parse(int argc, char *argv[], struct kinf__sim_arguments *ret_arguments,
                              struct kinf_error *err)
{
    struct kinf__sim_arguments arguments = { .seed = SEED_DEFAULT };
    int failed = kinf__flags_read(argc, argv, known_flags, KINF__ARRAY_LEN(known_flags), &arguments,
                                  "a manifest is given by --load", err);

    if (failed == 0 && arguments.command == KINF__SIM_COMMAND_RUN)
        failed = check(&arguments, err);
    if (failed == 0)
        *ret_arguments = arguments;
    return failed;
}
