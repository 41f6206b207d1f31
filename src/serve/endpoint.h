/*
 * Connections: HTTP/1.1 over TCP, plain (on loopback) or with TLS, or over a unix socket, in
 * front of a server.
 *
 * Threads: start and stop, one; each endpoint has a thread of its own.
 */
#ifndef KINF_SERVE_ENDPOINT_H
#define KINF_SERVE_ENDPOINT_H

#include "serve/authorizer.h"
#include "serve/server.h"

struct kinf__endpoint;

/* Of TCP alone; all zero: plain HTTP, open to whoever reaches it. */
struct kinf__endpoint_options {
    const char *cert_file; /* TLS 1.2 and later, read again when it changes; NULL: plain */
    const char *key_file;
    struct kinf__authorizer *authorizer; /* NULL: everybody may read; outlives the endpoint */
    /* Of a unix socket: its file's mode (0: 0660), and who may connect (n_users 0: whoever can). */
    unsigned unix_mode;
    const uint32_t *users;
    size_t n_users;
};

/* `address` is "HOST:PORT", "[HOST]:PORT" or "unix:PATH". A port of 0 takes a free one. Errors:
 * KINF_ERR_INVALID (no such address; or one that is not loopback without TLS and an authorizer),
 * KINF_ERR_CONFIG (the certificate), KINF_ERR_SYSTEM (bind, listen), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__endpoint_start(struct kinf__server *server, const char *address,
                                         const struct kinf__endpoint_options *options,
                                         struct kinf__endpoint **ret_listener,
                                         struct kinf_error *err);

/* "http://127.0.0.1:8001" with the port that was taken, or "unix:PATH". */
const char *kinf__endpoint_url(const struct kinf__endpoint *endpoint);

/* Accepts no more connections; those that are there go on. */
void kinf__endpoint_quiesce(struct kinf__endpoint *endpoint);
/* After kinf__endpoint_quiesce() and kinf__server_stop(): closes what is left. NULL is allowed. */
void kinf__endpoint_free(struct kinf__endpoint *endpoint);

/* Whether an address would be taken, without a socket: for --check-config; `is_guarded`: there are
 * TLS and an authorizer. Errors: KINF_ERR_INVALID. */
KINF_MUST_CHECK int kinf__endpoint_check(const char *address, bool is_guarded,
                                         struct kinf_error *err);
/* Whether both files are there and belong together. Errors: KINF_ERR_CONFIG, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__endpoint_check_files(const char *cert_file, const char *key_file,
                                               struct kinf_error *err);

/* Whether a Host header names this machine and not some page's server (DNS rebinding): localhost,
 * 127.0.0.0/8 or ::1, with or without a port. */
bool kinf__endpoint_is_local_host(const char *host);

#endif
