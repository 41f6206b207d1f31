/*
 * kubeconfig files and the in-cluster configuration, resolved to what a connection needs.
 *
 * Mirrors: clientcmd.ClientConfigLoadingRules, rest.InClusterConfig.
 * Threads: one thread per object; afterwards constant.
 */
#ifndef KINF_REST_KUBECONFIG_H
#define KINF_REST_KUBECONFIG_H

#include <stdbool.h>

#include <kinformer/error.h>

/* Everything a context resolves to. Strings are owned; NULL where nothing is set. PEM blobs are the
 * decoded contents, also of files (certificate-authority: FILE), so that rotation is a re-read. */
struct kinf__cluster_config {
    char *source; /* "/x/config, context kind-kind" or "in-cluster", for messages */
    char *server; /* no slash at the end */
    char *tls_server_name;
    char *proxy_url;
    bool insecure_skip_tls_verify;
    char *ca_pem;
    char *client_cert_pem;
    char *client_key_pem;
    char *token;      /* as written */
    char *token_file; /* re-read; wins over token while it is readable */
    char *username;
    char *password;
    char *name_space;
};

/* `path` NULL: $KUBECONFIG (a list, first wins), ~/.kube/config, in-cluster. `context` NULL: the
 * current-context. Errors: KINF_ERR_CONFIG, KINF_ERR_PARSE, KINF_ERR_LIMIT, KINF_ERR_UNSUPPORTED (users
 * with exec, auth-provider or impersonation), KINF_ERR_NO_MEMORY; each message names the file and
 * what to do. */
KINF_MUST_CHECK int kinf__cluster_config_load(const char *path, const char *context,
                                              struct kinf__cluster_config *ret_config,
                                              struct kinf_error *err);
void kinf__cluster_config_release(struct kinf__cluster_config *config);

/* Where the in-cluster files are; for tests. Default: /var/run/secrets/kubernetes.io/serviceaccount
 */
extern const char *kinf__in_cluster_dir;

#endif
