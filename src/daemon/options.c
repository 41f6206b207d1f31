/*
 * Parsing the command line into the same configuration that a file gives. The flags are a contract:
 * scripts rely on them.
 */
#include "daemon/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kinformer/log.h>

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
    "  --store HOW           plain, or compressed: in a tenth of the memory where objects are\n"
    "                        alike, and reading takes some microseconds more; default: plain\n"
    "\n"
    "Which cluster:\n"
    "  --kubeconfig FILE     default: $KUBECONFIG, ~/.kube/config, in-cluster\n"
    "  --context NAME        default: the current context\n"
    "\n"
    "Whom to serve, by the Kubernetes API:\n"
    "  --listen ADDRESS      HOST:PORT of a loopback address, or unix:PATH; may be repeated\n"
    "  --health-listen ADDRESS  any HOST:PORT, :PORT of all addresses, or unix:PATH, for probes\n"
    "                        alone: /healthz, /livez and /readyz\n"
    "  --pass-through        send what is not cached, and writes, to the server with the caller's\n"
    "                        token; reads wait for the writes that went before them\n"
    "                        (consistency: session, in the configuration)\n"
    "  --on-demand           cache what clients ask for, also if it is not named, as the server "
    "lets\n"
    "                        kinformerd read it; needs --pass-through\n"
    "  --write-kubeconfig FILE  for kubectl and others, of the first TCP address\n"
    "  --client-token FILE   where these have their token; default: the pod's, if tokens are "
    "taken\n"
    "\n"
    "Whom to tell:\n"
    "  --exec COMMAND        run it by /bin/sh -c and send it what happens, a line of JSON each,\n"
    "                        on its standard input; may be repeated (handlers, in the\n"
    "                        configuration)\n"
    "  --plugin FILE         load this shared object (kinformer/plugin.h) and call it with what\n"
    "                        happens; may be repeated (likewise)\n"
    "\n"
    "What to print:\n"
    "  --events MODE         text, json or none; default: text on a terminal, else none\n"
    "  --events-objects      with --events json: whole objects too\n"
    "  --measure             sync, print one line of figures for each resource, exit\n"
    "  --timeout DURATION    of --measure and --online, from the start; default 30s\n"
    "  --log-level LEVELS    off, error, warn, info, debug, or all=info,reflector=debug;\n"
    "                        default info, or $KINF_LOG\n"
    "  --check-config        read the configuration, say whether it is good, exit\n"
    "  --online              with --check-config: ask the server, too, whether each resource is\n"
    "                        there and may be listed and watched; a line for each that is wrong\n"
    "  --check-plugin FILE   load the plugin, say what it is or why it is none, exit; it is not\n"
    "                        opened, but its constructors run\n"
    "  --version, --help\n"
    "\n"
    "Exit status: 0 done, 1 failed while running, 2 wrong usage or configuration.\n"
    "Signals: SIGTERM and SIGINT stop, SIGHUP reads the configuration again, and plugins that\n"
    "have changed.\n";

/* The command line as it was given; texts point into argv. */
struct flags {
    struct kinf__options options;
    struct kinf__flag_values resources;
    /* of each resource */
    struct kinf__flag_values namespaces, drops, keeps;
    const char *selector;
    const char *field_selector;
    const char *store;
};

static int take_events(const struct kinf__flag *flag, const char *value, void *member,
                       struct kinf_error *err)
{
    return kinf__events_mode_parse(value, member)
               ? 0
               : kinf__error_set(err, KINF_ERR_INVALID, "--%s is one of text, json, none, not '%s'",
                                 flag->name, value);
}

static int take_duration(const struct kinf__flag *flag, const char *value, void *member,
                         struct kinf_error *err)
{
    int64_t *duration_ms = member;

    return kinf__duration_parse(value, duration_ms) && *duration_ms != 0
               ? 0
               : kinf__error_set(err, KINF_ERR_INVALID, "--%s is a duration such as 30s, not '%s'",
                                 flag->name, value);
}

#define AT(member) offsetof(struct flags, member)
static const struct kinf__flag known_flags[] = {
    { "config", true, AT(options.config_file), 0, kinf__flag_text },
    { "kubeconfig", true, AT(options.overrides.kubeconfig), 0, kinf__flag_text },
    { "context", true, AT(options.overrides.context), 0, kinf__flag_text },
    { "resource", true, AT(resources), 0, kinf__flag_add },
    { "namespace", true, AT(namespaces), 0, kinf__flag_add },
    { "selector", true, AT(selector), 0, kinf__flag_text },
    { "field-selector", true, AT(field_selector), 0, kinf__flag_text },
    { "drop", true, AT(drops), 0, kinf__flag_add },
    { "keep", true, AT(keeps), 0, kinf__flag_add },
    { "store", true, AT(store), 0, kinf__flag_text },
    { "listen", true, AT(options.overrides.listen), 0, kinf__flag_add },
    { "health-listen", true, AT(options.overrides.health_listen), 0, kinf__flag_text },
    { "pass-through", false, AT(options.overrides.pass_through), 0, kinf__flag_on },
    { "on-demand", false, AT(options.overrides.on_demand), 0, kinf__flag_on },
    { "write-kubeconfig", true, AT(options.kubeconfig_out), 0, kinf__flag_text },
    { "client-token", true, AT(options.client_token), 0, kinf__flag_text },
    { "exec", true, AT(options.overrides.execs), 0, kinf__flag_add },
    { "plugin", true, AT(options.overrides.plugins), 0, kinf__flag_add },
    { "events", true, AT(options.overrides.events), 0, take_events },
    { "events-objects", false, AT(options.overrides.events_objects), 0, kinf__flag_on },
    { "measure", false, AT(options.command), KINF__COMMAND_MEASURE, kinf__flag_set },
    { "timeout", true, AT(options.timeout_ms), 0, take_duration },
    { "check-config", false, AT(options.command), KINF__COMMAND_CHECK_CONFIG, kinf__flag_set },
    { "check-plugin", true, AT(options.checked_plugin), 0, kinf__flag_text },
    { "online", false, AT(options.is_online), 0, kinf__flag_on },
    { "log-level", true, AT(options.log_levels), 0, kinf__flag_text },
    { "version", false, AT(options.command), KINF__COMMAND_VERSION, kinf__flag_set },
    { "help", false, AT(options.command), KINF__COMMAND_HELP, kinf__flag_set },
};

static int copy_text(const char *text, char **copy)
{
    if (text == NULL)
        return 0;
    free(*copy);
    *copy = strdup(text);
    return *copy != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

static int copy_values(const struct kinf__flag_values *from, struct kinf__strings *to)
{
    for (size_t i = 0; i < from->n_items; i++) {
        if (kinf__strings_add(to, from->items[i]) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static int add_resources(const struct flags *flags, struct kinf__config *config,
                         struct kinf_error *err)
{
    bool is_compressed = false;

    if (flags->store != NULL && !kinf__store_parse(flags->store, &is_compressed))
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "--store is one of plain, compressed, not '%s'", flags->store);
    for (size_t i = 0; i < flags->resources.n_items; i++) {
        struct kinf__resource_config *resource = kinf__config_add_resource(config);

        if (resource == NULL || copy_text(flags->resources.items[i], &resource->resource) < 0 ||
            copy_text(flags->selector, &resource->label_selector) < 0 ||
            copy_text(flags->field_selector, &resource->field_selector) < 0 ||
            copy_values(&flags->namespaces, &resource->namespaces) < 0 ||
            copy_values(&flags->drops, &resource->drops) < 0 ||
            copy_values(&flags->keeps, &resource->keeps) < 0)
            return kinf__error_no_memory(err);
        resource->is_compressed = is_compressed;
    }
    return 0;
}

/* What is for clients needs an address where they come. */
static int check_reachable(const struct kinf__options *options, const struct kinf__config *config,
                           struct kinf_error *err)
{
    size_t n_tcp = 0;

    for (size_t i = 0; i < config->listen.n_items; i++)
        n_tcp += strncmp(config->listen.items[i], "unix:", strlen("unix:")) != 0;
    if (config->pass_through && config->listen.n_items == 0)
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "--pass-through (passThrough) needs --listen ADDRESS (listen): "
                               "requests are passed on for clients that come there");
    for (size_t i = 0; i < config->n_resources && !config->pass_through; i++) {
        if (config->resources[i].consistency == KINF__CONSISTENCY_LATEST)
            return kinf__error_set(err, KINF_ERR_CONFIG,
                                   "resource %s: consistency: latest needs --pass-through "
                                   "(passThrough)",
                                   config->resources[i].resource);
    }
    if (config->on_demand.is_enabled && !config->pass_through)
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "--on-demand (onDemand) needs --pass-through (passThrough): what is "
                               "not cached yet is passed on");
    if (options->kubeconfig_out != NULL && n_tcp == 0)
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "--write-kubeconfig needs --listen HOST:PORT (listen): clients of "
                               "kubeconfigs take no unix sockets");
    if (options->client_token != NULL && options->kubeconfig_out == NULL)
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "--client-token goes with --write-kubeconfig");
    return 0;
}

static int add_handlers(const struct kinf__overrides *overrides, struct kinf__config *config,
                        struct kinf_error *err)
{
    size_t n_execs = overrides->execs.n_items, n = n_execs + overrides->plugins.n_items;
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < n; i++) {
        struct kinf__handler_config *handler = kinf__config_add_handler(config);

        if (handler == NULL)
            failed = kinf__error_no_memory(err);
        else if (i < n_execs)
            failed = kinf__handler_config_set_command(handler, overrides->execs.items[i], err);
        else
            failed = kinf__handler_config_set_plugin(handler, overrides->plugins.items[i - n_execs],
                                                     "null", err);
    }
    return failed;
}

/* What the command line says of the cluster and of printing wins over the file. */
static int override(const struct kinf__options *options, struct kinf__config *config,
                    struct kinf_error *err)
{
    const struct kinf__overrides *overrides = &options->overrides;
    int failed;

    if (copy_text(overrides->kubeconfig, &config->kubeconfig) < 0 ||
        copy_text(overrides->context, &config->context) < 0 ||
        copy_text(overrides->health_listen, &config->health_listen) < 0)
        return kinf__error_no_memory(err);
    if (overrides->health_listen != NULL) {
        failed = kinf__address_check(overrides->health_listen, true, err);

        if (failed < 0)
            return failed;
    }
    for (size_t i = 0; i < overrides->listen.n_items; i++) {
        failed = kinf__address_check(overrides->listen.items[i], config->is_delegated, err);

        if (failed < 0)
            return failed;
    }
    if (copy_values(&overrides->listen, &config->listen) < 0)
        return kinf__error_no_memory(err);
    if (overrides->events != KINF__EVENTS_DEFAULT)
        config->events = overrides->events;
    config->pass_through = config->pass_through || overrides->pass_through;
    config->on_demand.is_enabled = config->on_demand.is_enabled || overrides->on_demand;
    config->events_objects = config->events_objects || overrides->events_objects;
    if (config->events_objects && config->events != KINF__EVENTS_JSON)
        return kinf__error_set(err, KINF_ERR_INVALID, "--events-objects needs --events json");
    failed = add_handlers(overrides, config, err);
    if (failed == 0 && config->shards.lease != NULL && config->n_handlers == 0)
        return kinf__error_set(
            err, KINF_ERR_CONFIG,
            "lease is for handlers, and there are none: what is served needs none");
    return failed < 0 ? failed : check_reachable(options, config, err);
}

/* Something has to be cached, now or on demand. */
static int check_some(const struct kinf__options *options, const struct kinf__config *config,
                      struct kinf_error *err)
{
    if (config->n_resources != 0 ||
        (config->on_demand.is_enabled && options->command != KINF__COMMAND_MEASURE))
        return 0;
    if (options->config_file != NULL)
        return kinf__error_set(err, KINF_ERR_CONFIG, "%s names no resource to watch",
                               options->config_file);
    return kinf__error_set(
        err, KINF_ERR_INVALID,
        "nothing to watch: give --resource pods, --on-demand or --config FILE (see --help)");
}

int kinf__options_read_config(const struct kinf__options *options, struct kinf__config *ret_config,
                              struct kinf_error *err)
{
    struct kinf__config config;
    int failed = kinf__config_read(options->config_file, &config, err);

    if (failed < 0)
        return failed;
    failed = override(options, &config, err);
    if (failed == 0)
        failed = check_some(options, &config, err);
    if (failed < 0) {
        kinf__config_release(&config);
        return failed;
    }
    *ret_config = config;
    return 0;
}

static bool has_resource_flags(const struct flags *flags)
{
    return flags->resources.n_items != 0 || flags->namespaces.n_items != 0 ||
           flags->drops.n_items != 0 || flags->keeps.n_items != 0 || flags->selector != NULL ||
           flags->field_selector != NULL || flags->store != NULL;
}

static int make_config(struct flags *flags, struct kinf_error *err)
{
    struct kinf__options *options = &flags->options;
    int failed;

    if (options->config_file != NULL) {
        if (has_resource_flags(flags))
            return kinf__error_set(err, KINF_ERR_INVALID,
                                   "--config excludes --resource and the flags that go with it");
        return kinf__options_read_config(options, &options->config, err);
    }
    if (flags->resources.n_items == 0 && has_resource_flags(flags))
        return kinf__error_set(
            err, KINF_ERR_INVALID,
            "nothing to watch: --namespace, selectors, --drop, --keep and --store go with "
            "--resource");
    failed = add_resources(flags, &options->config, err);
    if (failed == 0)
        failed = override(options, &options->config, err);
    if (failed == 0)
        failed = check_some(options, &options->config, err);
    return failed < 0 ? failed : kinf__config_check(&options->config, "command line", err);
}

int kinf__options_parse(int argc, char *argv[], struct kinf__options *ret_options,
                        struct kinf_error *err)
{
    struct flags flags = { .options = { .timeout_ms = TIMEOUT_DEFAULT_MS } };
    int failed = kinf__flags_read(argc, argv, known_flags, KINF__ARRAY_LEN(known_flags), &flags,
                                  "a resource is given by --resource", err);

    if (failed == 0 && flags.options.checked_plugin != NULL &&
        flags.options.command == KINF__COMMAND_RUN)
        flags.options.command = KINF__COMMAND_CHECK_PLUGIN;
    if (failed == 0 && flags.options.command != KINF__COMMAND_HELP &&
        flags.options.command != KINF__COMMAND_VERSION &&
        flags.options.command != KINF__COMMAND_CHECK_PLUGIN)
        failed = make_config(&flags, err);
    if (failed == 0 && flags.options.is_online &&
        flags.options.command != KINF__COMMAND_CHECK_CONFIG)
        failed = kinf__error_set(err, KINF_ERR_INVALID, "--online goes with --check-config");
    if (failed < 0)
        kinf__options_release(&flags.options);
    else
        *ret_options = flags.options;
    return failed;
}

int kinf__options_set_log_levels(const struct kinf__options *options,
                                 const struct kinf__config *config, struct kinf_error *err)
{
    const char *levels = options->log_levels, *variable = getenv("KINF_LOG");
    KINF__AUTO_FREE char *text = NULL;

    if (levels == NULL)
        levels = variable != NULL && *variable != '\0' ? variable : config->log_levels;
    /* A module that is not named keeps its level: of what was set before nothing shall stay. */
    if (asprintf(&text, "info%s%s", levels != NULL ? "," : "", levels != NULL ? levels : "") < 0) {
        text = NULL;
        return kinf__error_no_memory(err);
    }
    return kinf_log_set_levels(text, err);
}

void kinf__options_release(struct kinf__options *options)
{
    kinf__config_release(&options->config);
}
