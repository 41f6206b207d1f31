/*
 * The way to an API server: its address, its certificates, our credentials.
 *
 * Mirrors: rest.Config with clientcmd's loading rules.
 * Threads: any thread.
 */
#ifndef KINFORMER_CLIENT_H
#define KINFORMER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/api.h>
#include <kinformer/error.h>
#include <kinformer/type.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kinf_client;

/* All strings are copied. All zero but `size` is the default. */
struct kinf_client_options {
    size_t size;            /* of this struct: KINF_CLIENT_OPTIONS_INIT sets it */
    const char *kubeconfig; /* a file; default: $KUBECONFIG (a list), ~/.kube/config, in-cluster */
    const char *context;    /* default: the file's current-context */
    const char *user_agent; /* default: "kinformer/VERSION" */
    int64_t connect_timeout_ms; /* resolve, connect and TLS; default 0: 30,000 */
    int64_t request_timeout_ms; /* of a short request; default 0: 30,000 */

    /* How often requests (kinformer/request.h) may go out, all threads together: so many a second
     * (default 0: 50; negative: no limit), and so many at once after a rest (default 0: 100). That is
     * ten times client-go's, so that a controller is not choked by it; the server has its own means
     * against those that ask too much. */
    double queries_per_second;
    int burst;

    /* Instead of what the configuration says; default NULL (false): as it says. Mirrors:
     * clientcmd.ConfigOverrides. */
    const char *cluster; /* the name of another cluster of the kubeconfig */
    const char *user;    /* the name of another user of it */
    const char *name_space;
    const char *server;                /* tls-server-name is not taken over then */
    const char *tls_server_name;       /* what the certificate of the server is for */
    const char *certificate_authority; /* a file; also ends insecure-skip-tls-verify */
    bool insecure_skip_tls_verify;     /* also ends any certificate authority */
    const char *client_certificate;    /* a file */
    const char *client_key;            /* a file */
    const char *token;                 /* ends token file, password and plugin */
};
#define KINF_CLIENT_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(struct kinf_client_options), NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL,  \
            NULL, NULL, false, NULL, NULL, NULL                                                    \
    }

/* Reads the configuration; connects to nothing and runs no credential plugin yet. `options` NULL: all defaults. Errors:
 * KINF_ERR_CONFIG (names file and what to do), KINF_ERR_PARSE (a malformed file, with its place),
 * KINF_ERR_LIMIT (a file above 16 MiB, more than 32 files), KINF_ERR_UNSUPPORTED (libcurl is not the OpenSSL flavour; a
 * credential that is not supported), KINF_ERR_TLS (a certificate or key that cannot be read), KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_client_new(const struct kinf_client_options *options,
                                             struct kinf_client **ret_client,
                                             struct kinf_error *err);
/* NULL is allowed. Refused while an informer or a factory has it, or a call of another thread runs:
 * then it must be freed again when they are gone. */
KINF_API void kinf_client_free(struct kinf_client *client);
KINF_API void kinf_client_free_ptr(struct kinf_client **client);
#define kinf_auto_client __attribute__((cleanup(kinf_client_free_ptr)))

/* "https://host:port[/prefix]", without a slash at the end; and the namespace of the context, "" if
 * it names none. The client's own. */
KINF_API const char *kinf_client_server(const struct kinf_client *client);
KINF_API const char *kinf_client_namespace(const struct kinf_client *client);

/* Asks the server for a resource by kubectl's spelling: "pods", "deployments.apps",
 * "deployments.v1.apps". Blocks; each request that it takes may last the request timeout. The type
 * is never freed. Errors: KINF_ERR_INVALID (no name that a resource could have), KINF_ERR_NOT_FOUND
 * (the server has no such resource), KINF_ERR_UNSUPPORTED (it cannot be listed and watched),
 * KINF_ERR_PROTOCOL (what answers is no API server, say a proxy's login page), KINF_ERR_STOPPED
 * (interrupted), KINF_ERR_NO_MEMORY, or what a request failed with: KINF_ERR_TIMEOUT, NETWORK, TLS,
 * UNAUTHORIZED, FORBIDDEN... Mirrors: meta.RESTMapper with restmapper's shortcuts. */
KINF_API KINF_MUST_CHECK int kinf_client_find_type(struct kinf_client *client, const char *resource,
                                                   const struct kinf_type **ret_type,
                                                   struct kinf_error *err);

/* Makes blocking calls of this client, running and future, return KINF_ERR_STOPPED, and those that
 * wait for a version in an informer of it (kinf_informer_wait_for_rv()), these within 100 ms. What
 * informers do by themselves is not concerned. Also from a signal handler. */
KINF_API void kinf_client_interrupt(struct kinf_client *client);

#ifdef __cplusplus
}
#endif
#endif
