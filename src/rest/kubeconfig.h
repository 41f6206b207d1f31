/*
 * kubeconfig files and the in-cluster configuration, resolved to what a connection needs.
 *
 * Mirrors: clientcmd.ClientConfigLoadingRules, rest.InClusterConfig.
 * Threads: one thread per object; afterwards constant.
 */
#ifndef KINF_REST_KUBECONFIG_H
#define KINF_REST_KUBECONFIG_H

#include <stdbool.h>

#include <kinformer/client.h>
#include <kinformer/error.h>

#include "rest/exec.h"
#include "rest/secret.h"

/* Everything a context resolves to. Strings are owned; NULL where nothing is set. PEM texts are the
 * decoded contents, also of files, as they were when this was loaded; the file's name is there when
 * its content is what counts, so that a later content is seen. */
struct kinf__cluster_config {
    /* Who to blame: "/x/config, cluster kind", "/x/config, user kind", "in-cluster"; a list of files
     * has them in different ones. */
    char *cluster_source;
    char *user_source;
    char *cluster_file; /* the kubeconfigs that these are in; NULL: in none */
    char *user_file;
    char *server; /* no slash at the end */
    char *tls_server_name;
    char *proxy_url;
    bool insecure_skip_tls_verify;
    char *ca_pem;
    char *ca_file;
    char *client_cert_pem;
    char *client_cert_file;
    char *client_key_pem;
    char *client_key_file;
    char *token;      /* as written */
    char *token_file; /* re-read; wins over token while it is readable */
    char *username;
    char *password;
    struct kinf__exec_config *exec; /* only if there is none of token, user name, certificate */
    struct kinf__string_list impersonation; /* "Impersonate-User: jane" */
    char *name_space;
};

/* Reads what the options name (kinformer/client.h), and puts over it what they say instead. Errors:
 * KINF_ERR_CONFIG, KINF_ERR_PARSE, KINF_ERR_LIMIT, KINF_ERR_UNSUPPORTED (users with auth-provider,
 * or with a plugin that needs a terminal), KINF_ERR_NO_MEMORY; each message names the file and what
 * to do. */
KINF_MUST_CHECK int kinf__cluster_config_load(const struct kinf_client_options *options,
                                              struct kinf__cluster_config *ret_config,
                                              struct kinf_error *err);
/* The second half of it. */
KINF_MUST_CHECK int kinf__cluster_config_override(struct kinf__cluster_config *config,
                                                  const struct kinf_client_options *options,
                                                  struct kinf_error *err);
void kinf__cluster_config_release(struct kinf__cluster_config *config);

/* Where the in-cluster files are, unless KINF_SERVICE_ACCOUNT_DIR of the environment says it; for
 * tests. Default: /var/run/secrets/kubernetes.io/serviceaccount */
extern const char *kinf__in_cluster_dir;

/* Where the pod has its token; NULL: this is no pod. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__in_cluster_token_file(char **ret_path, struct kinf_error *err);

#endif
