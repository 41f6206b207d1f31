/*
 * In-cluster configuration. Neighbours: kubeconfig.c falls back to it.
 */
#include "rest/kubeconfig_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define WHITE_SPACE " \t\r\n"

const char *kinf__in_cluster_dir = "/var/run/secrets/kubernetes.io/serviceaccount";

bool kinf__in_cluster_is_possible(void)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");

    return host != NULL && *host != '\0' && port != NULL && *port != '\0';
}

/* "DIR/NAME"; NULL when out of memory. */
static char *file_of(const char *name)
{
    const char *folder = getenv("KINF_SERVICE_ACCOUNT_DIR");
    char *path = NULL;

    if (folder == NULL || *folder == '\0')
        folder = kinf__in_cluster_dir;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

static int read_file(const char *name, char **ret_text, struct kinf_error *err)
{
    KINF__AUTO_FREE char *path = file_of(name);
    int failed =
        path != NULL ? kinf__secret_read_file(path, ret_text, err) : kinf__error_no_memory(err);

    if (failed < 0)
        kinf__error_prefix(err, "in-cluster");
    return failed;
}

/* POD_NAMESPACE, then the service account's file; without both there is none. */
static int find_namespace(char **ret_name, struct kinf_error *err)
{
    const char *given = getenv("POD_NAMESPACE");
    KINF__AUTO_FREE char *text = NULL;
    size_t start, len;
    int failed;

    if (given == NULL || *given == '\0') {
        if ((failed = read_file("namespace", &text, NULL)) < 0)
            return failed == KINF_ERR_NO_MEMORY ? kinf__error_no_memory(err) : 0;
        given = text;
    }
    start = strspn(given, WHITE_SPACE);
    for (len = strlen(given + start); len > 0 && strchr(WHITE_SPACE, given[start + len - 1]);)
        len--;
    *ret_name = strndup(given + start, len);
    return *ret_name != NULL ? 0 : kinf__error_no_memory(err);
}

int kinf__in_cluster_load(struct kinf__cluster_config *config, struct kinf_error *err)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    KINF__AUTO_SECRET *token = NULL;
    int failed;

    if (host == NULL || port == NULL)
        return kinf__error_set(err, KINF_ERR_CONFIG, "this is no pod of a cluster");
    if (asprintf(&config->server, strchr(host, ':') != NULL ? "https://[%s]:%s" : "https://%s:%s",
                 host, port) < 0) {
        config->server = NULL;
        return kinf__error_no_memory(err);
    }
    /* Read here for the error alone: the file is read again when it is used. */
    if ((failed = read_file("token", &token, err)) < 0 ||
        (failed = read_file("ca.crt", &config->ca_pem, err)) < 0)
        return failed;
    if ((failed = find_namespace(&config->name_space, err)) < 0)
        return failed;
    config->token_file = file_of("token");
    config->ca_file = file_of("ca.crt");
    config->cluster_source = strdup("in-cluster");
    config->user_source = strdup("in-cluster");
    if (config->token_file == NULL || config->ca_file == NULL || config->cluster_source == NULL ||
        config->user_source == NULL)
        return kinf__error_no_memory(err);
    return 0;
}

int kinf__in_cluster_token_file(char **ret_path, struct kinf_error *err)
{
    char *path = kinf__in_cluster_is_possible() ? file_of("token") : NULL;

    if (path == NULL && kinf__in_cluster_is_possible())
        return kinf__error_no_memory(err);
    *ret_path = path;
    return 0;
}
