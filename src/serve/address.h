/*
 * Addresses to listen at: "HOST:PORT", "[HOST]:PORT", ":PORT" (all of this machine, of IPv4 and IPv6) or
 * "unix:PATH".
 *
 * Threads: any thread; binding a unix socket sets the process's umask for a moment.
 */
#ifndef KINF_SERVE_ADDRESS_H
#define KINF_SERVE_ADDRESS_H

#include <stdbool.h>

#include <sys/stat.h>

#include <kinformer/error.h>

#define KINF__HOST_MAX 256 /* with the NUL */

/* The parts, borrowed from `text` but for the host. */
struct kinf__address {
    const char *text;
    const char *path;          /* of a unix socket; NULL: TCP */
    char host[KINF__HOST_MAX]; /* "": all */
    const char *port;          /* 0 to 65535; 0: a free one */
};

/* Errors: KINF_ERR_INVALID. */
KINF_MUST_CHECK int kinf__address_parse(const char *text, struct kinf__address *ret_address,
                                        struct kinf_error *err);

/* Whether an address would be taken, without a socket: for --check-config; `is_guarded`: there are
 * TLS and an authorizer, without which TCP is for loopback alone. Errors: KINF_ERR_INVALID. */
KINF_MUST_CHECK int kinf__address_check(const char *text, bool is_guarded, struct kinf_error *err);

/* Makes a socket that does not listen yet. `unix_mode`: of a unix socket's file, which takes the
 * place of one that nobody listens at. Errors: KINF_ERR_INVALID (as above), KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__address_bind(const struct kinf__address *address, bool is_guarded,
                                       mode_t unix_mode, int *ret_fd, struct kinf_error *err);

/* "http://127.0.0.1:8001" with the port that was taken, or "unix:PATH"; the caller frees it. NULL:
 * out of memory. */
char *kinf__address_url(const struct kinf__address *address, int fd, const char *scheme);

/* Whether a Host header names this machine and not some page's server (DNS rebinding): localhost,
 * 127.0.0.0/8 or ::1, with or without a port. */
bool kinf__address_is_local_host(const char *host);

#endif
