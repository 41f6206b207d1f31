/*
 * From addresses to endpoints. Neighbours: daemon.c calls in the order of the header, watch.c adds
 * sources to the server.
 */
#include "daemon/serving.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "daemon/access_log.h"
#include "serve/definitions.h"
#include "serve/endpoint.h"

int kinf__serving_check_upstream(const struct kinf_client *client, struct kinf_error *err)
{
    return strncmp(kinf_client_server(client), "https://", 8) == 0
               ? 0
               : kinf__error_set(err, KINF_ERR_CONFIG,
                                 "passThrough needs a server with https://: it sends tokens of "
                                 "others to %s",
                                 kinf_client_server(client));
}

static int start_forwarder(struct kinf__serving *serving, struct kinf_client *client,
                           struct kinf_error *err)
{
    const struct kinf__forwarder_options options = KINF__FORWARDER_OPTIONS_INIT;
    int failed = kinf__serving_check_upstream(client, err);

    return failed < 0 ? failed : kinf__forwarder_new(client, &options, &serving->forwarder, err);
}

static int write_metrics(struct kinf__buffer *out, void *ctx)
{
    const struct kinf__serving *serving = ctx;
    int failed = kinf__daemon_handlers_write_metrics(out, serving->handlers);

    return failed < 0 ? failed : kinf__state_keeper_write_metrics(out, serving->keeper);
}

static void write_state(struct kinf__report *report, void *ctx)
{
    const struct kinf__serving *serving = ctx;

    kinf__daemon_handlers_report(report, serving->handlers);
}

int kinf__serving_new(const struct kinf__config *config, struct kinf_client *client,
                      struct kinf__waker *wake, struct kinf__daemon_handlers *handlers,
                      struct kinf__state_keeper *keeper, struct kinf__serving **ret_serving,
                      struct kinf_error *err)
{
    struct kinf__server_options options = { .max_staleness_ms = config->max_staleness_ms,
                                            .source = kinf_client_server(client),
                                            .write_metrics = write_metrics,
                                            .write_state = write_state };
    struct kinf__serving *serving = calloc(1, sizeof *serving);
    int failed = 0;

    if (serving == NULL)
        return kinf__error_no_memory(err);
    serving->handlers = handlers;
    serving->keeper = keeper;
    options.program_ctx = serving;
    if (config->pass_through)
        failed = start_forwarder(serving, client, err);
    options.forwarder = serving->forwarder;
    options.demand = serving->forwarder != NULL ? &serving->demand : NULL;
    kinf__demand_init(&serving->demand, wake);
    if (failed == 0 && config->access_log != NULL) {
        failed = kinf__access_log_new(config->access_log, &serving->access_log, err);
        options.log_request = kinf__access_log_take;
    }
    options.log_ctx = serving->access_log;
    if (failed == 0)
        failed = kinf__server_new(&options, &serving->server, err);
    if (failed < 0) {
        kinf__access_log_free(serving->access_log);
        kinf__forwarder_free(serving->forwarder);
        kinf__demand_release(&serving->demand);
        free(serving);
        return failed;
    }
    *ret_serving = serving;
    return 0;
}

void kinf__serving_reopen_log(struct kinf__serving *serving)
{
    if (serving->access_log != NULL)
        kinf__access_log_reopen(serving->access_log);
}

void kinf__serving_refresh_kubeconfig(struct kinf__serving *serving)
{
    if (serving->kubeconfig != NULL)
        kinf__client_kubeconfig_refresh(serving->kubeconfig);
}

void kinf__serving_stop(struct kinf__serving *serving)
{
    if (serving == NULL)
        return;
    for (size_t i = 0; i < serving->n_endpoints; i++)
        kinf__endpoint_quiesce(serving->endpoints[i]);
    kinf__server_stop(serving->server);
    for (size_t i = 0; i < serving->n_endpoints; i++)
        kinf__endpoint_free(serving->endpoints[i]);
    serving->n_endpoints = 0;
}

void kinf__serving_free(struct kinf__serving *serving)
{
    if (serving == NULL)
        return;
    kinf__server_free(serving->server);
    kinf__forwarder_free(serving->forwarder);
    kinf__authorizer_free(serving->authorizer);
    kinf__access_log_free(serving->access_log);
    kinf__client_kubeconfig_free(serving->kubeconfig);
    kinf__demand_release(&serving->demand);
    free(serving->endpoints);
    free(serving);
}

static int add_type(struct kinf__catalog *catalog, const struct kinf_type *type)
{
    const struct kinf__catalog_entry entry = {
        .group = (char *)(uintptr_t)type->group,
        .version = (char *)(uintptr_t)type->version,
        .resource = { .name = (char *)(uintptr_t)type->resource,
                      .kind = (char *)(uintptr_t)type->kind,
                      .verbs = (char *)(uintptr_t) "get,list,watch",
                      .namespaced = type->namespaced },
        .is_upstream = true,
    };

    return kinf__catalog_add(catalog, &entry);
}

int kinf__serving_use_types(struct kinf__serving *serving, const struct kinf_type *const *types,
                            size_t n_types, struct kinf_error *err)
{
    struct kinf__catalog *catalog;
    int failed = kinf__catalog_new(&catalog);

    if (failed < 0)
        return kinf__error_no_memory(err);
    for (size_t i = 0; failed == 0 && i < n_types; i++)
        failed = add_type(catalog, types[i]);
    if (failed < 0) {
        kinf__catalog_free(catalog);
        return kinf__error_no_memory(err);
    }
    kinf__server_set_catalog(serving->server, catalog);
    return 0;
}

int kinf__serving_refresh(struct kinf__serving *serving, struct kinf_client *client,
                          struct kinf_error *err)
{
    struct kinf__catalog *catalog;
    int failed = kinf__catalog_fetch(client, &catalog, err);

    if (failed < 0)
        return failed;
    kinf__server_set_catalog(serving->server, catalog);
    kinf__definitions_fetch(serving->server, client);
    return 0;
}

/* --- the kubeconfig of clients --- */

/* There is one (options.c). */
static const char *first_http_url(const struct kinf__serving *serving)
{
    size_t i = 0;

    while (strncmp(kinf__endpoint_url(serving->endpoints[i]), "http", 4) != 0)
        i++;
    return kinf__endpoint_url(serving->endpoints[i]);
}

static int start_authorizer(struct kinf__serving *serving, const struct kinf__config *config,
                            struct kinf_client *client, struct kinf_error *err)
{
    const struct kinf__authorizer_options options = { .allow_ms = config->auth_allow_ms,
                                                      .deny_ms = config->auth_deny_ms,
                                                      .stale_ms = config->auth_stale_ms };
    int failed = kinf__authorizer_new(&options, NULL, NULL, &serving->authorizer, err);

    return failed < 0 ? failed : kinf__authorizer_start(serving->authorizer, client, err);
}

static int start_endpoint(struct kinf__serving *serving, const char *address,
                          const struct kinf__endpoint_options *options, struct kinf_error *err)
{
    struct kinf__endpoint *endpoint;
    int failed = kinf__endpoint_start(serving->server, address, options, &endpoint, err);

    if (failed < 0)
        return failed;
    serving->endpoints[serving->n_endpoints++] = endpoint;
    KINF__LOG(KINF__LOG_SERVE, KINF_LOG_INFO, "%s url=%s",
              options->is_health ? "answering probes" : "serving", kinf__endpoint_url(endpoint));
    return 0;
}

int kinf__serving_listen(struct kinf__serving *serving, const struct kinf__config *config,
                         struct kinf_client *client, const struct kinf__options *given,
                         struct kinf_error *err)
{
    struct kinf__endpoint_options options = { .cert_file = config->cert_file,
                                              .key_file = config->key_file,
                                              .client_ca_file = config->client_ca_file,
                                              .unix_mode = config->unix_mode,
                                              .users = config->unix_users,
                                              .n_users = config->n_unix_users };
    const struct kinf__endpoint_options health = { .is_health = true };
    int failed = 0;

    serving->endpoints = calloc(config->listen.n_items + 1, sizeof(struct kinf__endpoint *));
    if (serving->endpoints == NULL)
        return kinf__error_no_memory(err);
    if (config->is_delegated)
        failed = start_authorizer(serving, config, client, err);
    options.authorizer = serving->authorizer;
    kinf__server_set_authorizer(serving->server, serving->authorizer);
    for (size_t i = 0; failed == 0 && i < config->listen.n_items; i++)
        failed = start_endpoint(serving, config->listen.items[i], &options, err);
    if (failed == 0 && config->health_listen != NULL)
        failed = start_endpoint(serving, config->health_listen, &health, err);
    if (failed == 0 && given->kubeconfig_out != NULL)
        failed = kinf__client_kubeconfig_new(given, config, client, first_http_url(serving),
                                             &serving->kubeconfig, err);
    return failed;
}
