/*
 * The client's life: a configuration that is read and checked. Neighbours: kubeconfig.c reads it,
 * credentials.c has what of it changes, http.c connects with it, discovery.c asks for resources.
 */
#include "rest/client.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "base/error.h"
#include "base/misuse.h"
#include "rest/certificates.h"
#include "rest/http.h"

#define CONNECT_TIMEOUT_MS 30000
#define REQUEST_TIMEOUT_MS 30000
#define QUERIES_PER_SECOND 50.0
#define QUERY_BURST        100

/* --- what the process needs once --- */

static pthread_once_t library_once = PTHREAD_ONCE_INIT;
static CURLcode library_status;

static void init_library(void)
{
    library_status = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static int check_library(struct kinf_error *err)
{
    const curl_version_info_data *version;

    pthread_once(&library_once, init_library);
    if (library_status != CURLE_OK)
        return kinf__error_set(err, KINF_ERR_UNSUPPORTED, "libcurl does not start: %s",
                               curl_easy_strerror(library_status));
    version = curl_version_info(CURLVERSION_NOW);
    if (version->ssl_version == NULL || strncmp(version->ssl_version, "OpenSSL/", 8) != 0)
        return kinf__error_set(err, KINF_ERR_UNSUPPORTED,
                               "libcurl is built with %s, but kinformer needs its OpenSSL flavour "
                               "(Debian: libcurl4-openssl-dev)",
                               version->ssl_version != NULL ? version->ssl_version : "no TLS");
    return 0;
}

/* --- the server's name --- */

/* What `part` of the URL is; NULL if it has none. The caller frees it with curl_free(). */
static char *part_of(CURLU *url, CURLUPart part)
{
    char *text = NULL;

    return curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) == CURLUE_OK ? text : NULL;
}

/* Whether requests can be put behind the URL. */
static bool is_bare(CURLU *url)
{
    char *query = part_of(url, CURLUPART_QUERY), *fragment = part_of(url, CURLUPART_FRAGMENT);
    bool is_there = query != NULL || fragment != NULL;

    curl_free(query);
    curl_free(fragment);
    return !is_there;
}

static int server_error(const struct kinf_client *client, const char *what, struct kinf_error *err)
{
    return kinf__error_set(err, KINF_ERR_CONFIG, "%s: the server '%s' %s",
                           client->config.cluster_source, client->config.server, what);
}

static int read_server(struct kinf_client *client, CURLU *url, struct kinf_error *err)
{
    char *scheme = part_of(url, CURLUPART_SCHEME), *host = part_of(url, CURLUPART_HOST),
         *port = part_of(url, CURLUPART_PORT);
    int failed = 0;

    if (scheme == NULL || host == NULL || port == NULL ||
        (strcmp(scheme, "https") != 0 && strcmp(scheme, "http") != 0)) {
        failed = server_error(client, "is no https:// or http:// URL", err);
    } else if (!is_bare(url)) {
        failed = server_error(client, "has '?' or '#' in it", err);
    } else if (asprintf(&client->host, "%s:%s", host, port) < 0) {
        client->host = NULL;
        failed = kinf__error_no_memory(err);
    } else {
        client->is_https = strcmp(scheme, "https") == 0;
    }
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    return failed;
}

static int check_server(struct kinf_client *client, struct kinf_error *err)
{
    CURLU *url = curl_url();
    CURLUcode status = url != NULL ? curl_url_set(url, CURLUPART_URL, client->config.server, 0)
                                   : CURLUE_OUT_OF_MEMORY;
    int failed;

    if (status == CURLUE_OUT_OF_MEMORY)
        failed = kinf__error_no_memory(err);
    else
        failed = read_server(client, url, err);
    curl_url_cleanup(url);
    return failed;
}

/* --- life --- */

static int64_t or_default(int64_t given, int64_t otherwise)
{
    return given > 0 ? given : otherwise;
}

static int check_certificates(const struct kinf__cluster_config *config, struct kinf_error *err)
{
    int failed = 0;

    if (config->ca_pem != NULL)
        failed = kinf__certificates_check_authority(config->ca_pem, config->cluster_source, err);
    return failed < 0
               ? failed
               : kinf__certificates_check_client(config->client_cert_pem, config->client_key_pem,
                                                 config->user_source, NULL, err);
}

static int fill(struct kinf_client *client, const struct kinf_client_options *options,
                struct kinf_error *err)
{
    int failed;

    if ((failed = check_certificates(&client->config, err)) < 0 ||
        (failed = check_server(client, err)) < 0 ||
        (failed = kinf__credentials_init(&client->credentials, &client->config, client->is_https,
                                         err)) < 0)
        return failed;
    client->user_agent = strdup(options->user_agent != NULL ? options->user_agent
                                                            : "kinformer/" KINF_VERSION_STRING);
    if (client->user_agent == NULL)
        return kinf__error_no_memory(err);
    client->connect_timeout_ms = or_default(options->connect_timeout_ms, CONNECT_TIMEOUT_MS);
    client->request_timeout_ms = or_default(options->request_timeout_ms, REQUEST_TIMEOUT_MS);
    kinf__rate_limit_init(&client->rate_limit,
                          options->queries_per_second != 0 ? options->queries_per_second
                                                           : QUERIES_PER_SECOND,
                          options->burst > 0 ? options->burst : QUERY_BURST);
    return 0;
}

/* What a kubeconfig would say of a server in this process. */
static int make_config(struct kinf__cluster_config *config, struct kinf_error *err)
{
    config->cluster_source = strdup("a server in this process");
    config->server = strdup("http://127.0.0.1:1");
    if (config->cluster_source != NULL && config->server != NULL)
        return 0;
    kinf__cluster_config_release(config);
    return kinf__error_no_memory(err);
}

static void init(struct kinf_client *client, const struct kinf__cluster_config *config)
{
    client->config = *config;
    client->interrupted.fd = -1;
    kinf__mutex_init(&client->users_lock, KINF__RANK_CLIENT);
    kinf__list_init(&client->users);
    kinf__mutex_init(&client->controllers_lock, KINF__RANK_CONTROLLERS);
    kinf__list_init(&client->controllers);
    kinf__mutex_init(&client->requests_lock, KINF__RANK_REQUESTS);
    kinf__discovery_cache_init(&client->discovery);
}

/* `local` NULL: the server is somewhere in the network. */
static int client_new(struct kinf__cluster_config *take_config,
                      const struct kinf_client_options *options, const struct sockaddr_un *local,
                      socklen_t local_len, struct kinf_client **ret_client, struct kinf_error *err)
{
    struct kinf_client *client = calloc(1, sizeof *client);
    int failed;

    if (client == NULL) {
        kinf__cluster_config_release(take_config);
        return kinf__error_no_memory(err);
    }
    init(client, take_config);
    if (local != NULL)
        client->local = *local;
    client->local_len = local_len;
    failed = kinf__waker_init(&client->interrupted, err);
    if (failed == 0)
        failed = fill(client, options, err);
    if (failed < 0) {
        kinf_client_free(client);
        return failed;
    }
    *ret_client = client;
    return 0;
}

int kinf_client_new(const struct kinf_client_options *options, struct kinf_client **ret_client,
                    struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, ret_client);

    struct kinf_client_options own = KINF_CLIENT_OPTIONS_INIT;
    struct kinf__cluster_config config;
    int rc = 0;

    if (options != NULL)
        rc = kinf__options_read(&own, sizeof own, options, "struct kinf_client_options", err);
    if (rc == 0)
        rc = check_library(err);
    if (rc == 0)
        rc = kinf__cluster_config_load(&own, &config, err);
    return rc < 0 ? rc : client_new(&config, &own, NULL, 0, ret_client, err);
}

int kinf__client_new_local(const struct sockaddr_un *address, socklen_t address_len,
                           struct kinf_client **ret_client, struct kinf_error *err)
{
    static const struct kinf_client_options options = { .size = sizeof options,
                                                        .queries_per_second = -1 };
    struct kinf__cluster_config config = { 0 };
    int failed = check_library(err);

    if (failed == 0)
        failed = make_config(&config, err);
    return failed < 0 ? failed
                      : client_new(&config, &options, address, address_len, ret_client, err);
}

int kinf__client_new_of(struct kinf__cluster_config *take_config, int64_t connect_timeout_ms,
                        struct kinf_client **ret_client, struct kinf_error *err)
{
    const struct kinf_client_options options = { .size = sizeof options,
                                                 .connect_timeout_ms = connect_timeout_ms };
    int failed = check_library(err);

    if (failed == 0)
        return client_new(take_config, &options, NULL, 0, ret_client, err);
    kinf__cluster_config_release(take_config);
    return failed;
}

bool kinf__client_is_held(struct kinf_client *client)
{
    size_t n_holders = atomic_load_explicit(&client->n_holders, memory_order_acquire);

    if (n_holders == 0)
        return false;
    (void)kinf__misuse(NULL, KINF_ERR_STATE,
                       "a client is not freed before the informers, factories and calls that use "
                       "it: there are %zu",
                       n_holders);
    return true;
}

void kinf_client_free(struct kinf_client *client)
{
    if (client == NULL || kinf__client_is_held(client))
        return;
    while (client->n_idle != 0)
        kinf__http_free(client->idle[--client->n_idle]);
    kinf__mutex_release(&client->users_lock);
    kinf__mutex_release(&client->controllers_lock);
    kinf__mutex_release(&client->requests_lock);
    kinf__discovery_cache_release(&client->discovery);
    if (client->credentials.config != NULL)
        kinf__credentials_release(&client->credentials);
    kinf__cluster_config_release(&client->config);
    kinf__waker_release(&client->interrupted);
    free(client->host);
    free(client->user_agent);
    free(client);
}

void kinf__client_add_user(struct kinf_client *client, struct kinf__list *node)
{
    kinf__mutex_lock(&client->users_lock);
    kinf__list_push_back(&client->users, node);
    kinf__mutex_unlock(&client->users_lock);
}

void kinf__client_remove_user(struct kinf_client *client, struct kinf__list *node)
{
    kinf__mutex_lock(&client->users_lock);
    kinf__list_remove(node);
    kinf__mutex_unlock(&client->users_lock);
}

void kinf__client_add_controller(struct kinf_client *client, struct kinf__list *node)
{
    kinf__mutex_lock(&client->controllers_lock);
    kinf__list_push_back(&client->controllers, node);
    kinf__mutex_unlock(&client->controllers_lock);
}

void kinf__client_remove_controller(struct kinf_client *client, struct kinf__list *node)
{
    kinf__mutex_lock(&client->controllers_lock);
    kinf__list_remove(node);
    kinf__mutex_unlock(&client->controllers_lock);
}

void kinf_client_free_ptr(struct kinf_client **client)
{
    KINF__REFUSE_NULL(NULL, , client);
    kinf_client_free(*client);
}

const char *kinf_client_server(const struct kinf_client *client)
{
    KINF__REFUSE_NULL(NULL, "", client);
    return client->config.server;
}

const char *kinf_client_namespace(const struct kinf_client *client)
{
    KINF__REFUSE_NULL(NULL, "", client);
    return client->config.name_space != NULL ? client->config.name_space : "";
}

void kinf_client_interrupt(struct kinf_client *client)
{
    KINF__REFUSE_NULL(NULL, , client);
    kinf__waker_set(&client->interrupted);
}
