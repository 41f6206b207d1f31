/*
 * Parsing the command line into the same configuration that a file gives. The flags are a contract:
 * scripts rely on them.
 */
#include "daemon/options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/duration.h"
#include "base/error.h"
#include "serve/address.h"

#define TIMEOUT_DEFAULT_MS 30000

const char kinf__options_help[] =
    "Usage: kinformerd [options]\n"
    "\n"
    "Watches resources of a Kubernetes cluster, keeps them in a local indexed store and tells\n"
    "what happens to them.\n"
    "\n"
    "What to watch (either a file, or flags that apply to every --resource):\n"
    "  --config FILE         YAML configuration; excludes the flags of this group\n"
    "  --resource NAME       pods, deployments.apps or deployments.v1.apps; may be repeated\n"
    "  --namespace NS        only this namespace; may be repeated; default: all\n"
    "  --selector L          label selector, evaluated by the server\n"
    "  --field-selector F    field selector, evaluated by the server\n"
    "  --drop PATH           do not store this part of objects, say metadata.managedFields;\n"
    "                        may be repeated\n"
    "  --keep PATH           store only this part (and what the runtime needs); may be repeated\n"
    "\n"
    "Which cluster:\n"
    "  --kubeconfig FILE     default: $KUBECONFIG, ~/.kube/config, in-cluster\n"
    "  --context NAME        default: the current context\n"
    "\n"
    "Whom to serve, by the Kubernetes API:\n"
    "  --listen ADDRESS      HOST:PORT of a loopback address, or unix:PATH; may be repeated\n"
    "  --pass-through        send what is not cached, and writes, to the server with the caller's\n"
    "                        token\n"
    "  --write-kubeconfig FILE  for kubectl and others, of the first TCP address\n"
    "\n"
    "What to print:\n"
    "  --events MODE         text, json or none; default: text on a terminal, else none\n"
    "  --events-objects      with --events json: whole objects too\n"
    "  --measure             sync, print one line of figures for each resource, exit\n"
    "  --timeout DURATION    of --measure, from the start; default 30s\n"
    "  --log-level LEVELS    off, error, warn, info, debug, or all=info,reflector=debug;\n"
    "                        default info, or $KINF_LOG\n"
    "  --check-config        read the configuration, say whether it is good, exit\n"
    "  --version, --help\n"
    "\n"
    "Exit status: 0 done, 1 failed while running, 2 wrong usage or configuration.\n"
    "Signals: SIGTERM and SIGINT stop, SIGHUP reads the configuration again.\n";

enum flag {
    FLAG_CONFIG = 256,
    FLAG_KUBECONFIG,
    FLAG_CONTEXT,
    FLAG_RESOURCE,
    FLAG_NAMESPACE,
    FLAG_SELECTOR,
    FLAG_FIELD_SELECTOR,
    FLAG_DROP,
    FLAG_KEEP,
    FLAG_LISTEN,
    FLAG_PASS_THROUGH,
    FLAG_WRITE_KUBECONFIG,
    FLAG_EVENTS,
    FLAG_EVENTS_OBJECTS,
    FLAG_MEASURE,
    FLAG_TIMEOUT,
    FLAG_CHECK_CONFIG,
    FLAG_LOG_LEVEL,
    FLAG_VERSION,
    FLAG_HELP,
};

static const struct option long_options[] = {
    { "config", required_argument, NULL, FLAG_CONFIG },
    { "kubeconfig", required_argument, NULL, FLAG_KUBECONFIG },
    { "context", required_argument, NULL, FLAG_CONTEXT },
    { "resource", required_argument, NULL, FLAG_RESOURCE },
    { "namespace", required_argument, NULL, FLAG_NAMESPACE },
    { "selector", required_argument, NULL, FLAG_SELECTOR },
    { "field-selector", required_argument, NULL, FLAG_FIELD_SELECTOR },
    { "drop", required_argument, NULL, FLAG_DROP },
    { "keep", required_argument, NULL, FLAG_KEEP },
    { "listen", required_argument, NULL, FLAG_LISTEN },
    { "pass-through", no_argument, NULL, FLAG_PASS_THROUGH },
    { "write-kubeconfig", required_argument, NULL, FLAG_WRITE_KUBECONFIG },
    { "events", required_argument, NULL, FLAG_EVENTS },
    { "events-objects", no_argument, NULL, FLAG_EVENTS_OBJECTS },
    { "measure", no_argument, NULL, FLAG_MEASURE },
    { "timeout", required_argument, NULL, FLAG_TIMEOUT },
    { "check-config", no_argument, NULL, FLAG_CHECK_CONFIG },
    { "log-level", required_argument, NULL, FLAG_LOG_LEVEL },
    { "version", no_argument, NULL, FLAG_VERSION },
    { "help", no_argument, NULL, FLAG_HELP },
    { NULL, 0, NULL, 0 },
};

/* The flags as they were given; texts point into argv. */
struct flags {
    struct kinf__strings resources;
    struct kinf__resource_config shared; /* what applies to every --resource */
    const char *selector;
    const char *field_selector;
};

static void flags_release(struct flags *flags)
{
    struct kinf__strings *const lists[] = { &flags->resources, &flags->shared.namespaces,
                                            &flags->shared.drops, &flags->shared.keeps };

    for (size_t i = 0; i < KINF__ARRAY_LEN(lists); i++) {
        for (size_t k = 0; k < lists[i]->n_items; k++)
            free(lists[i]->items[k]);
        free(lists[i]->items);
    }
}

/* The list that a repeatable flag adds to; NULL for other flags. */
static struct kinf__strings *list_of(struct flags *flags, int flag)
{
    switch (flag) {
    case FLAG_RESOURCE:
        return &flags->resources;
    case FLAG_NAMESPACE:
        return &flags->shared.namespaces;
    case FLAG_DROP:
        return &flags->shared.drops;
    case FLAG_KEEP:
        return &flags->shared.keeps;
    default:
        return NULL;
    }
}

static int add_listen(struct kinf__overrides *overrides, const char *address,
                      struct kinf_error *err)
{
    if (overrides->n_listen == KINF__MAX_LISTEN)
        return kinf__error_set(err, KINF_ERR_INVALID, "more than %d --listen", KINF__MAX_LISTEN);
    overrides->listen[overrides->n_listen++] = address;
    return 0;
}

static int take_flag(int flag, struct flags *flags, struct kinf__options *options,
                     struct kinf_error *err)
{
    struct kinf__strings *list = list_of(flags, flag);

    if (list != NULL)
        return kinf__strings_add(list, optarg) < 0 ? kinf__error_no_memory(err) : 0;
    switch (flag) {
    case FLAG_CONFIG:
        options->config_file = optarg;
        return 0;
    case FLAG_KUBECONFIG:
        options->overrides.kubeconfig = optarg;
        return 0;
    case FLAG_CONTEXT:
        options->overrides.context = optarg;
        return 0;
    case FLAG_SELECTOR:
        flags->selector = optarg;
        return 0;
    case FLAG_FIELD_SELECTOR:
        flags->field_selector = optarg;
        return 0;
    case FLAG_LISTEN:
        return add_listen(&options->overrides, optarg, err);
    case FLAG_PASS_THROUGH:
        options->overrides.pass_through = true;
        return 0;
    case FLAG_WRITE_KUBECONFIG:
        options->kubeconfig_out = optarg;
        return 0;
    case FLAG_EVENTS:
        if (!kinf__events_mode_parse(optarg, &options->overrides.events))
            return kinf__error_set(err, KINF_ERR_INVALID,
                                   "--events is one of text, json, none, not '%s'", optarg);
        return 0;
    case FLAG_EVENTS_OBJECTS:
        options->overrides.events_objects = true;
        return 0;
    case FLAG_TIMEOUT:
        if (!kinf__duration_parse(optarg, &options->timeout_ms) || options->timeout_ms == 0)
            return kinf__error_set(err, KINF_ERR_INVALID,
                                   "--timeout is a duration such as 30s, not '%s'", optarg);
        return 0;
    case FLAG_LOG_LEVEL:
        options->log_levels = optarg;
        return 0;
    case FLAG_MEASURE:
        options->command = KINF__COMMAND_MEASURE;
        return 0;
    case FLAG_CHECK_CONFIG:
        options->command = KINF__COMMAND_CHECK_CONFIG;
        return 0;
    case FLAG_VERSION:
        options->command = KINF__COMMAND_VERSION;
        return 0;
    case FLAG_HELP:
        options->command = KINF__COMMAND_HELP;
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
    if (optopt > 0 && optopt < FLAG_CONFIG)
        return kinf__error_set(err, KINF_ERR_INVALID, "'-%c' is no option (see --help)", optopt);
    if (optopt != 0)
        return kinf__error_set(err, KINF_ERR_INVALID, "'%s': this option takes no value",
                               argv[optind - 1]);
    return kinf__error_set(err, KINF_ERR_INVALID,
                           "'%s' is no option, or short for several (see "
                           "--help)",
                           argv[optind - 1]);
}

static int read_flags(int argc, char *argv[], struct flags *flags, struct kinf__options *options,
                      struct kinf_error *err)
{
    int flag, failed;

    optind = 1;
    while ((flag = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        failed = flag == '?' || flag == ':' ? refuse_flag(flag, argv, err)
                                            : take_flag(flag, flags, options, err);
        if (failed < 0)
            return failed;
    }
    if (optind < argc)
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "'%s' is no option; a resource is given by --resource %s",
                               argv[optind], argv[optind]);
    return 0;
}

static int copy_text(const char *text, char **copy)
{
    if (text == NULL)
        return 0;
    free(*copy);
    *copy = strdup(text);
    return *copy != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

static int copy_list(const struct kinf__strings *from, struct kinf__strings *to)
{
    for (size_t i = 0; i < from->n_items; i++) {
        if (kinf__strings_add(to, from->items[i]) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static int add_resources(const struct flags *flags, struct kinf__config *config)
{
    for (size_t i = 0; i < flags->resources.n_items; i++) {
        struct kinf__resource_config *resource = kinf__config_add_resource(config);

        if (resource == NULL || copy_text(flags->resources.items[i], &resource->resource) < 0 ||
            copy_text(flags->selector, &resource->label_selector) < 0 ||
            copy_text(flags->field_selector, &resource->field_selector) < 0 ||
            copy_list(&flags->shared.namespaces, &resource->namespaces) < 0 ||
            copy_list(&flags->shared.drops, &resource->drops) < 0 ||
            copy_list(&flags->shared.keeps, &resource->keeps) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

/* What the command line says of the cluster and of printing wins over the file. */
static int override(const struct kinf__overrides *overrides, struct kinf__config *config,
                    struct kinf_error *err)
{
    if (copy_text(overrides->kubeconfig, &config->kubeconfig) < 0 ||
        copy_text(overrides->context, &config->context) < 0)
        return kinf__error_no_memory(err);
    for (size_t i = 0; i < overrides->n_listen; i++) {
        int failed = kinf__address_check(overrides->listen[i], config->is_delegated, err);

        if (failed < 0)
            return failed;
        if (kinf__strings_add(&config->listen, overrides->listen[i]) < 0)
            return kinf__error_no_memory(err);
    }
    if (overrides->events != KINF__EVENTS_DEFAULT)
        config->events = overrides->events;
    config->pass_through = config->pass_through || overrides->pass_through;
    config->events_objects = config->events_objects || overrides->events_objects;
    if (config->events_objects && config->events != KINF__EVENTS_JSON)
        return kinf__error_set(err, KINF_ERR_INVALID, "--events-objects needs --events json");
    return 0;
}

int kinf__options_read_config(const struct kinf__options *options, struct kinf__config *ret_config,
                              struct kinf_error *err)
{
    struct kinf__config config;
    int failed = kinf__config_read(options->config_file, &config, err);

    if (failed < 0)
        return failed;
    failed = override(&options->overrides, &config, err);
    if (failed < 0) {
        kinf__config_release(&config);
        return failed;
    }
    *ret_config = config;
    return 0;
}

static bool has_resource_flags(const struct flags *flags)
{
    return flags->resources.n_items != 0 || flags->shared.namespaces.n_items != 0 ||
           flags->shared.drops.n_items != 0 || flags->shared.keeps.n_items != 0 ||
           flags->selector != NULL || flags->field_selector != NULL;
}

static int make_config(const struct flags *flags, struct kinf__options *options,
                       struct kinf_error *err)
{
    int failed;

    if (options->config_file != NULL) {
        if (has_resource_flags(flags))
            return kinf__error_set(err, KINF_ERR_INVALID,
                                   "--config excludes --resource and the flags that go with it");
        return kinf__options_read_config(options, &options->config, err);
    }
    if (flags->resources.n_items == 0)
        return kinf__error_set(
            err, KINF_ERR_INVALID,
            "nothing to watch: give --resource pods or --config FILE (see --help)");
    if (add_resources(flags, &options->config) < 0)
        return kinf__error_no_memory(err);
    failed = override(&options->overrides, &options->config, err);
    return failed < 0 ? failed : kinf__config_check(&options->config, "command line", err);
}

int kinf__options_parse(int argc, char *argv[], struct kinf__options *ret_options,
                        struct kinf_error *err)
{
    struct kinf__options options = { .timeout_ms = TIMEOUT_DEFAULT_MS };
    struct flags flags = { 0 };
    int failed = read_flags(argc, argv, &flags, &options, err);

    if (failed == 0 && options.command != KINF__COMMAND_HELP &&
        options.command != KINF__COMMAND_VERSION)
        failed = make_config(&flags, &options, err);
    flags_release(&flags);
    if (failed < 0) {
        kinf__options_release(&options);
        return failed;
    }
    *ret_options = options;
    return 0;
}

void kinf__options_release(struct kinf__options *options)
{
    kinf__config_release(&options->config);
}
