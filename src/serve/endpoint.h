/*
 * Connections: HTTP/1.1 over TCP, plain (on loopback) or with TLS, or over a unix socket, in
 * front of a server.
 *
 * Threads: start and stop, one; each endpoint has a thread of its own.
 */
#ifndef KINF_SERVE_ENDPOINT_H
#define KINF_SERVE_ENDPOINT_H

#include <sys/socket.h>
#include <sys/un.h>

#include "serve/authorizer.h"
#include "serve/server.h"

struct kinf__endpoint;

/* Of TCP alone; all zero: plain HTTP, open to whoever reaches it. */
struct kinf__endpoint_options {
    const char *cert_file; /* TLS 1.2 and later, read again when it changes; NULL: plain */
    const char *key_file;
    /* With an authorizer: clients may show certificates of these authorities, in a file that is read
     * again, too; NULL: they are asked for none. */
    const char *client_ca_file;
    struct kinf__authorizer *authorizer; /* NULL: everybody may read; outlives the endpoint */
    /* The server's backend decides who may: with TLS it is for any address and any Host header, as
     * with an authorizer. */
    bool is_guarded;
    /* For probes, on any address and without TLS: only /healthz, /livez and /readyz are answered, from
     * anybody; what else is under way at the others holds up none of it. */
    bool is_health;
    /* Of a unix socket: its file's mode (0: 0660), and who may connect (n_users 0: whoever can). */
    unsigned unix_mode;
    const uint32_t *users;
    size_t n_users;
};

/* `address`: see address.h. Errors: KINF_ERR_INVALID (no such address; or one that is not loopback
 * without TLS and somebody who decides), KINF_ERR_CONFIG (the certificate), KINF_ERR_SYSTEM (bind, listen), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__endpoint_start(struct kinf__server *server, const char *address,
                                         const struct kinf__endpoint_options *options,
                                         struct kinf__endpoint **ret_listener,
                                         struct kinf_error *err);

/* One for this process alone: a unix socket without a file, at an address that the kernel chose; other
 * processes are refused. Errors: KINF_ERR_SYSTEM, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__endpoint_start_local(struct kinf__server *server,
                                               struct kinf__endpoint **ret_endpoint,
                                               struct sockaddr_un *ret_address,
                                               socklen_t *ret_address_len, struct kinf_error *err);

/* Where it is reached, as kinf__address_url(). */
const char *kinf__endpoint_url(const struct kinf__endpoint *endpoint);

/* Accepts no more connections; those that are there go on. */
void kinf__endpoint_quiesce(struct kinf__endpoint *endpoint);
/* After kinf__endpoint_quiesce() and kinf__server_stop(): closes what is left. NULL is allowed. */
void kinf__endpoint_free(struct kinf__endpoint *endpoint);

/* Whether the files are there and certificate and key belong together; `client_ca_file` NULL: none.
 * Errors: KINF_ERR_CONFIG, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__endpoint_check_files(const char *cert_file, const char *key_file,
                                               const char *client_ca_file, struct kinf_error *err);

#endif
