/*
 * What a program says in place of its kubeconfig. Neighbours: kubeconfig.c calls in when the rest is
 * read.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "object/object.h"
#include "rest/kubeconfig.h"

static bool is_given(const char *text)
{
    return text != NULL && *text != '\0';
}

/* Puts a copy of `text`, if it is given, in place of *member. */
static int replace(char **member, const char *text, struct kinf_error *err)
{
    char *copy;

    if (!is_given(text))
        return 0;
    copy = strdup(text);
    if (copy == NULL)
        return kinf__error_no_memory(err);
    kinf__secret_replace(member, copy);
    return 0;
}

static int replace_file(char **pem, char **file, const char *path, const char *what,
                        struct kinf_error *err)
{
    char *content = NULL, *absolute;
    int failed;

    if (!is_given(path))
        return 0;
    failed = kinf__secret_read_file(path, &content, err);
    if (failed < 0) {
        kinf__error_prefix(err, "%s", what);
        return failed;
    }
    absolute = realpath(path, NULL);
    if (absolute == NULL)
        absolute = strdup(path);
    kinf__secret_replace(pem, content);
    free(*file);
    *file = absolute;
    return absolute != NULL ? 0 : kinf__error_no_memory(err);
}

static void forget(char **text)
{
    kinf__secret_replace(text, NULL);
}

static int override_server(struct kinf__cluster_config *config,
                           const struct kinf_client_options *options, struct kinf_error *err)
{
    int failed;

    if (is_given(options->certificate_authority) && options->insecure_skip_tls_verify)
        return kinf__error_set(err, KINF_ERR_CONFIG,
                               "the options certificate_authority and insecure_skip_tls_verify "
                               "exclude each other");
    if (is_given(options->server))
        forget(&config->tls_server_name);
    if (is_given(options->certificate_authority))
        config->insecure_skip_tls_verify = false;
    if (options->insecure_skip_tls_verify) {
        config->insecure_skip_tls_verify = true;
        forget(&config->ca_pem);
        forget(&config->ca_file);
    }
    if ((failed = replace(&config->server, options->server, err)) < 0 ||
        (failed = replace(&config->tls_server_name, options->tls_server_name, err)) < 0 ||
        (failed = replace_file(&config->ca_pem, &config->ca_file, options->certificate_authority,
                               "certificate_authority", err)) < 0)
        return failed;
    if (is_given(options->server) || is_given(options->certificate_authority))
        failed = replace(&config->cluster_source, "the client's options", err);
    for (size_t len = strlen(config->server); len > 0 && config->server[len - 1] == '/'; len--)
        config->server[len - 1] = '\0';
    return failed;
}

static int override_user(struct kinf__cluster_config *config,
                         const struct kinf_client_options *options, struct kinf_error *err)
{
    int failed;

    if (is_given(options->token) && !kinf__is_token(options->token))
        return kinf__error_set(err, KINF_ERR_CONFIG,
                               "the option token has a blank, a line's end or another byte that "
                               "no token has");
    if ((failed = replace(&config->token, options->token, err)) < 0 ||
        (failed = replace_file(&config->client_cert_pem, &config->client_cert_file,
                               options->client_certificate, "client_certificate", err)) < 0 ||
        (failed = replace_file(&config->client_key_pem, &config->client_key_file,
                               options->client_key, "client_key", err)) < 0)
        return failed;
    if (is_given(options->token)) {
        forget(&config->token_file);
        forget(&config->username);
        forget(&config->password);
    }
    if (is_given(options->token) || is_given(options->client_certificate)) {
        kinf__exec_config_free(config->exec);
        config->exec = NULL;
    }
    if (is_given(options->client_certificate) || is_given(options->client_key))
        return replace(&config->user_source, "the client's options", err);
    return 0;
}

int kinf__cluster_config_override(struct kinf__cluster_config *config,
                                  const struct kinf_client_options *options, struct kinf_error *err)
{
    int failed = override_server(config, options, err);

    if (failed == 0)
        failed = override_user(config, options, err);
    if (failed == 0 && is_given(options->name_space))
        failed = kinf__name_check_namespace(options->name_space, err);
    return failed < 0 ? failed : replace(&config->name_space, options->name_space, err);
}
