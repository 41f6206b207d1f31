/*
 * An HTTP server on loopback that answers by path, plain or over TLS with certificates made on the
 * spot. Each answer closes its connection.
 *
 * Threads: the test's; the server answers on one of its own.
 */
#ifndef KINF_TESTS_UNIT_REST_SERVER_H
#define KINF_TESTS_UNIT_REST_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include <kinformer/client.h>

/* What a target gets. Any other gets 404 with "404 page not found\n", as from kube-apiserver. */
struct rest_answer {
    const char *target; /* "/api/v1" */
    const char *status; /* "200 OK", with further header lines behind it; NULL: the same */
    const char *body;   /* NULL: "{}", and no end until the client goes away */
};

/* A certificate and its key, in PEM. */
struct rest_identity {
    char *cert_pem;
    char *key_pem;
};

/* Makes a certificate: `name` is a DNS name or an IP address; it ends `seconds` from now; `issuer`
 * NULL makes a certificate authority. The caller releases it. */
struct rest_identity rest_identity_make(const char *name, long seconds,
                                        const struct rest_identity *issuer);
void rest_identity_release(struct rest_identity *identity);

struct rest_server;

/* `identity` NULL: plain HTTP. `client_authority` not NULL: clients need a certificate of it. All
 * are borrowed until the server stops. */
struct rest_server *rest_server_start(const struct rest_answer *answers, size_t n_answers,
                                      const struct rest_identity *identity,
                                      const struct rest_identity *client_authority);
void rest_server_stop(struct rest_server *server);
/* Before the first connection: speaks this version of TLS (OpenSSL's number) and no other. */
void rest_server_speak_only(struct rest_server *server, int tls_version);

unsigned rest_server_port(const struct rest_server *server);
/* All requests so far, heads whole, one behind the other; a copy that the caller frees. */
char *rest_server_requests(struct rest_server *server);
/* The name in the certificate that the last client showed; "" for none. */
const char *rest_server_client_name(struct rest_server *server);
size_t rest_server_n_requests(struct rest_server *server);

/* A client of a kubeconfig with this text, as kinf_client_new() makes it. */
int rest_client_new(const char *kubeconfig, struct kinf_client **ret_client,
                    struct kinf_error *err);

#endif
