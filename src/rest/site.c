/*
 * From a URL to a client. Neighbours: client.c checks URL and certificates, credentials.c reads the
 * files again.
 */
#include "rest/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "rest/client.h"
#include "rest/connection.h"

/* Where "https://host:port" ends. */
static size_t authority_end(const char *url)
{
    const char *start = strstr(url, "://");

    start = start != NULL ? start + 3 : url;
    return (size_t)(start - url) + strcspn(start, "/?#");
}

/* Nobody's password is a part of a name that is logged. */
static int check_url(const char *url, struct kinf_error *err)
{
    if (memchr(url, '@', authority_end(url)) != NULL)
        return kinf__error_set(err, KINF_ERR_CONFIG,
                               "a URL with a user in it: use tokenFile or certFile");
    if (!kinf__is_token(url) || strchr(url, '#') != NULL)
        return kinf__error_set(err, KINF_ERR_CONFIG,
                               "a URL has neither blanks nor control characters nor '#'");
    return 0;
}

/* Everything but https:// is http:// here, or will be refused as neither. */
static int check_plain(const struct kinf__site *site, struct kinf_error *err)
{
    if (strncmp(site->url, "https://", 8) != 0 &&
        (site->token_file != NULL || site->cert_file != NULL || site->ca_file != NULL))
        return kinf__error_set(err, KINF_ERR_CONFIG,
                               "tokens and certificates are for https:// alone");
    return (site->cert_file == NULL) == (site->key_file == NULL)
               ? 0
               : kinf__error_set(err, KINF_ERR_CONFIG, "certFile and keyFile go together");
}

/* Both are NULL where there is no such file. */
static int copy_file(const char *path, char **ret_path, char **ret_text, struct kinf_error *err)
{
    if (path == NULL)
        return 0;
    *ret_path = strdup(path);
    return *ret_path == NULL ? kinf__error_no_memory(err)
                             : kinf__secret_read_file(path, ret_text, err);
}

static int read_files(const struct kinf__site *site, struct kinf__cluster_config *config,
                      struct kinf_error *err)
{
    KINF__AUTO_SECRET *token = NULL;
    int failed = copy_file(site->ca_file, &config->ca_file, &config->ca_pem, err);

    if (failed == 0)
        failed =
            copy_file(site->cert_file, &config->client_cert_file, &config->client_cert_pem, err);
    if (failed == 0)
        failed = copy_file(site->key_file, &config->client_key_file, &config->client_key_pem, err);
    if (failed < 0 || site->token_file == NULL)
        return failed;
    /* For the error alone: it is read again when it is used. */
    failed = kinf__secret_read_token(site->token_file, &token, err);
    if (failed == 0 && (config->token_file = strdup(site->token_file)) == NULL)
        failed = kinf__error_no_memory(err);
    return failed;
}

static int make_config(const struct kinf__site *site, struct kinf__cluster_config *config,
                       struct kinf_error *err)
{
    *config =
        (struct kinf__cluster_config){ .cluster_source = strdup("its configuration"),
                                       .user_source = strdup("its configuration"),
                                       .server = strndup(site->url, authority_end(site->url)) };
    if (config->cluster_source == NULL || config->user_source == NULL || config->server == NULL)
        return kinf__error_no_memory(err);
    return read_files(site, config, err);
}

static int keep_plain_at_home(const struct kinf__site *site, const struct kinf_client *client,
                              struct kinf_error *err)
{
    return client->is_https || site->is_plain_allowed || kinf__connection_is_loopback(client->host)
               ? 0
               : kinf__error_set(err, KINF_ERR_CONFIG,
                                 "http:// shows all objects to the network: use https://, or "
                                 "insecure: true where something else keeps them secret");
}

static int find_target(const char *url, char **ret_target, struct kinf_error *err)
{
    const char *rest = url + authority_end(url);

    if (asprintf(ret_target, "%s%s", *rest == '/' ? "" : "/", rest) >= 0)
        return 0;
    *ret_target = NULL;
    return kinf__error_no_memory(err);
}

int kinf__site_client_new(const struct kinf__site *site, struct kinf_client **ret_client,
                          char **ret_target, struct kinf_error *err)
{
    struct kinf__cluster_config config = { 0 };
    struct kinf_client *client;
    int failed = check_url(site->url, err);

    if (failed == 0)
        failed = check_plain(site, err);
    if (failed == 0)
        failed = make_config(site, &config, err);
    if (failed < 0) {
        kinf__cluster_config_release(&config);
        return failed;
    }
    if ((failed = kinf__client_new_of(&config, site->connect_timeout_ms, &client, err)) < 0)
        return failed;
    failed = keep_plain_at_home(site, client, err);
    if (failed == 0)
        failed = find_target(site->url, ret_target, err);
    if (failed < 0) {
        kinf_client_free(client);
        return failed;
    }
    *ret_client = client;
    return 0;
}
