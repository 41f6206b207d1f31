/*
 * A kubeconfig's cluster and user. Neighbours: kubeconfig.c finds them, exec_config.c reads a
 * user's plugin.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "base/error.h"
#include "rest/kubeconfig_priv.h"

/* --- cluster --- */

/* A key without a value would mean the system's authorities: another trust than was meant. */
static int check_authority_is_written(const struct kinf__kubeconfig_entry *cluster,
                                      struct kinf_error *err)
{
    const struct kinf__yaml_node *fields = cluster->fields;

    for (size_t i = 0; fields != NULL && i < fields->n_items; i++) {
        const struct kinf__yaml_node *key = fields->items[2 * i], *value = fields->items[2 * i + 1];

        if (kinf_str_equal(key->text, KINF_STR("certificate-authority-data")) &&
            kinf__yaml_is_null(value) && value->text.len == 0)
            return kinf__yaml_error(
                err, KINF_ERR_CONFIG, cluster->file, key,
                "certificate-authority-data has no value; a '#' behind a blank begins a comment");
    }
    return 0;
}

/* The address goes into messages: it may neither break their line nor tell a password. */
static int check_server(const struct kinf__kubeconfig_entry *cluster, const char *server,
                        struct kinf_error *err)
{
    const char *wrong = NULL;

    if (server == NULL)
        wrong = "this cluster has no server";
    else if (strchr(server, '@') != NULL)
        wrong = "server: a user name in the address is not supported; write it under 'user'";
    for (const char *at = server; wrong == NULL && *at != '\0'; at++) {
        if (*at <= ' ' || *at > '~')
            wrong = "server: an address has printable ASCII without blanks only";
    }
    return wrong != NULL
               ? kinf__yaml_error(err, KINF_ERR_CONFIG, cluster->file, cluster->place, "%s", wrong)
               : 0;
}

/* As Go knows them. */
static bool has_proxy_scheme(const char *url)
{
    static const char *const schemes[] = { "http://", "https://", "socks5://", "socks5h://" };

    for (size_t i = 0; i < KINF__ARRAY_LEN(schemes); i++) {
        if (strncmp(url, schemes[i], strlen(schemes[i])) == 0)
            return true;
    }
    return false;
}

/* An '@' behind the host means that a '/' of the password was taken for the host's end. */
static CURLUcode parse_proxy(const char *url)
{
    const char *authority = strstr(url, "://") + 3;
    CURLU *parsed = curl_url();
    CURLUcode status = parsed != NULL
                           ? curl_url_set(parsed, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME)
                           : CURLUE_OUT_OF_MEMORY;

    curl_url_cleanup(parsed);
    return status == CURLUE_OK && strchr(authority + strcspn(authority, "/?#"), '@') != NULL
               ? CURLUE_MALFORMED_INPUT
               : status;
}

/* What curl does not understand it would quote, with the password. */
static int check_proxy(const struct kinf__kubeconfig_entry *cluster, const char *url,
                       struct kinf_error *err)
{
    const char *wrong = NULL;
    CURLUcode status;

    if (url == NULL)
        return 0;
    if (!has_proxy_scheme(url))
        wrong = "it begins with none of http://, https://, socks5://";
    else if ((status = parse_proxy(url)) == CURLUE_OUT_OF_MEMORY)
        return kinf__error_no_memory(err);
    else if (status != CURLUE_OK)
        wrong = "it is no URL; a '/' in a name or a password is written %2F, an '@' %40";
    return wrong == NULL ? 0
                         : kinf__yaml_error(err, KINF_ERR_CONFIG, cluster->file,
                                            kinf__yaml_get(cluster->fields, "proxy-url"),
                                            "proxy-url: %s", wrong);
}

int kinf__kubeconfig_read_cluster(const struct kinf__kubeconfig_entry *cluster,
                                  struct kinf__cluster_config *config, struct kinf_error *err)
{
    int failed;

    if ((failed = kinf__kubeconfig_string(cluster, "server", &config->server, err)) < 0 ||
        (failed = check_server(cluster, config->server, err)) < 0 ||
        (failed = kinf__kubeconfig_string(cluster, "tls-server-name", &config->tls_server_name,
                                          err)) < 0 ||
        (failed = kinf__kubeconfig_string(cluster, "proxy-url", &config->proxy_url, err)) < 0 ||
        (failed = check_proxy(cluster, config->proxy_url, err)) < 0 ||
        (failed =
             kinf__yaml_read_old_bool(cluster->file, cluster->fields, "insecure-skip-tls-verify",
                                      &config->insecure_skip_tls_verify, err)) < 0 ||
        (failed = check_authority_is_written(cluster, err)) < 0 ||
        (failed =
             kinf__kubeconfig_pem(cluster, "certificate-authority", "certificate-authority-data",
                                  &config->ca_pem, &config->ca_file, err)) < 0)
        return failed;
    if (config->insecure_skip_tls_verify && config->ca_pem != NULL)
        return kinf__yaml_error(
            err, KINF_ERR_CONFIG, cluster->file, cluster->place,
            "a certificate authority and insecure-skip-tls-verify exclude each other");
    for (size_t len = strlen(config->server); len > 0 && config->server[len - 1] == '/'; len--)
        config->server[len - 1] = '\0';
    return 0;
}

/* --- user --- */

static int read_token(const struct kinf__kubeconfig_entry *user,
                      struct kinf__cluster_config *config, struct kinf_error *err)
{
    int failed = kinf__kubeconfig_string(user, "token", &config->token, err);

    if (failed == 0 && config->token != NULL && !kinf__is_token(config->token))
        return kinf__yaml_error(err, KINF_ERR_CONFIG, user->file, user->place,
                                "token: it has a blank, a line's end or another byte that no "
                                "token has");
    return failed;
}

static int read_token_file(const struct kinf__kubeconfig_entry *user,
                           struct kinf__cluster_config *config, struct kinf_error *err)
{
    KINF__AUTO_SECRET *token = NULL;
    int failed = kinf__kubeconfig_path(user, "tokenFile", &config->token_file, err);

    if (failed < 0 || config->token_file == NULL || config->token != NULL)
        return failed;
    /* Read here for the error alone: the file is read again when it is used. */
    failed = kinf__secret_read_file(config->token_file, &token, err);
    if (failed < 0)
        kinf__error_prefix(err, "%s: tokenFile", kinf__yaml_file(user->file));
    return failed;
}

static int refuse_auth_provider(const struct kinf__kubeconfig_entry *user, struct kinf_error *err)
{
    const struct kinf__yaml_node *node = kinf__yaml_get(user->fields, "auth-provider");

    if (node == NULL)
        return 0;
    return kinf__yaml_error(err, KINF_ERR_UNSUPPORTED, user->file, node,
                            "user '%s': auth-provider is no longer supported anywhere; let the "
                            "cluster's tool write an exec plugin, or use a token",
                            user->name);
}

/* --- impersonation --- */

static int add_header(const struct kinf__kubeconfig_entry *user,
                      struct kinf__cluster_config *config, const char *name,
                      const struct kinf__yaml_node *value, struct kinf_error *err)
{
    char *line;

    if (value->type != KINF__YAML_SCALAR || !kinf__is_one_line(value->text.bytes))
        return kinf__yaml_error(err, KINF_ERR_CONFIG, user->file, value,
                                "impersonation: a text of one line is expected");
    if (asprintf(&line, "%s: %s", name, value->text.bytes) < 0)
        line = NULL;
    return kinf__string_list_append(&config->impersonation, line) < 0 ? kinf__error_no_memory(err)
                                                                      : 0;
}

static int add_headers(const struct kinf__kubeconfig_entry *user,
                       struct kinf__cluster_config *config, const char *name,
                       const struct kinf__yaml_node *list, struct kinf_error *err)
{
    int failed = 0;

    if (list != NULL && list->type != KINF__YAML_SEQUENCE)
        return kinf__yaml_error(err, KINF_ERR_CONFIG, user->file, list,
                                "impersonation: a list of texts is expected");
    for (size_t i = 0; failed == 0 && list != NULL && i < list->n_items; i++)
        failed = add_header(user, config, name, list->items[i], err);
    return failed;
}

/* Bytes that a header's name cannot have are escaped, as the server expects it. */
static int append_extra_name(struct kinf__buffer *name, struct kinf_str key)
{
    static const char others[] = "!#$&'*+-.^_`|~";
    int failed = kinf__buffer_append_str(name, KINF_STR("Impersonate-Extra-"));

    for (size_t i = 0; failed == 0 && i < key.len; i++) {
        unsigned char c = (unsigned char)key.bytes[i];
        bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                        (c >= 'A' && c <= 'Z') || (c != '\0' && strchr(others, c) != NULL);

        failed = is_plain ? kinf__buffer_append(name, &key.bytes[i], 1)
                          : kinf__buffer_printf(name, "%%%02X", c);
    }
    return failed;
}

static int add_extra(const struct kinf__kubeconfig_entry *user, struct kinf__cluster_config *config,
                     struct kinf_error *err)
{
    const struct kinf__yaml_node *extra = NULL;
    int failed = kinf__yaml_read_mapping(user->file, user->fields, "as-user-extra", &extra, err);

    for (size_t i = 0; failed == 0 && extra != NULL && i < extra->n_items; i++) {
        KINF__AUTO_BUFFER name = KINF__BUFFER_INIT;

        if (append_extra_name(&name, extra->items[2 * i]->text) < 0 ||
            kinf__buffer_cstr(&name) == NULL)
            return kinf__error_no_memory(err);
        failed = add_headers(user, config, name.bytes, extra->items[2 * i + 1], err);
    }
    return failed;
}

static int read_impersonation(const struct kinf__kubeconfig_entry *user,
                              struct kinf__cluster_config *config, struct kinf_error *err)
{
    const struct kinf__yaml_node *as = kinf__yaml_get(user->fields, "as"),
                                 *uid = kinf__yaml_get(user->fields, "as-uid"),
                                 *groups = kinf__yaml_get(user->fields, "as-groups"),
                                 *extra = kinf__yaml_get(user->fields, "as-user-extra");
    int failed = 0;

    /* Without the user the rest would be left out by the server: other rights than were meant. */
    if (as == NULL && (uid != NULL || groups != NULL || extra != NULL))
        return kinf__yaml_error(err, KINF_ERR_CONFIG, user->file, user->place,
                                "user '%s': as-uid, as-groups and as-user-extra need 'as'",
                                user->name);
    if (as != NULL)
        failed = add_header(user, config, "Impersonate-User", as, err);
    if (failed == 0 && uid != NULL)
        failed = add_header(user, config, "Impersonate-Uid", uid, err);
    if (failed == 0)
        failed = add_headers(user, config, "Impersonate-Group", groups, err);
    return failed < 0 ? failed : add_extra(user, config, err);
}

/* --- the user as a whole --- */

int kinf__kubeconfig_read_user(const struct kinf__kubeconfig_entry *user,
                               const struct kinf__kubeconfig_entry *cluster,
                               struct kinf__cluster_config *config, struct kinf_error *err)
{
    int failed;

    if ((failed = refuse_auth_provider(user, err)) < 0 ||
        (failed = read_token(user, config, err)) < 0 ||
        (failed = read_token_file(user, config, err)) < 0 ||
        (failed = kinf__kubeconfig_string(user, "username", &config->username, err)) < 0 ||
        (failed = kinf__kubeconfig_string(user, "password", &config->password, err)) < 0 ||
        (failed = kinf__kubeconfig_pem(user, "client-certificate", "client-certificate-data",
                                       &config->client_cert_pem, &config->client_cert_file, err)) <
            0 ||
        (failed = kinf__kubeconfig_pem(user, "client-key", "client-key-data",
                                       &config->client_key_pem, &config->client_key_file, err)) <
            0 ||
        (failed = read_impersonation(user, config, err)) < 0)
        return failed;
    if ((config->token != NULL || config->token_file != NULL) && config->username != NULL)
        return kinf__yaml_error(err, KINF_ERR_CONFIG, user->file, user->place,
                                "a token and a username exclude each other");
    return kinf__kubeconfig_read_exec(user, cluster, config, err);
}
