/*
 * One request on its connection: what libmicrohttpd has of it goes to an exchange, and the answer
 * back. A connection whose exchange has nothing to say is suspended.
 *
 * Threads: the endpoint's; exchanges wake from any.
 */
#ifndef KINF_SERVE_MHD_REQUEST_H
#define KINF_SERVE_MHD_REQUEST_H

#include <gnutls/gnutls.h>
#include <microhttpd.h>

#include "serve/authorizer.h"
#include "serve/client_certificate.h"
#include "serve/peer.h"
#include "serve/turns.h"

/* The first libmicrohttpd that can be told to be strict with heads. */
#define KINF__MHD_STRICT_LIBRARY 0x00097701

#define KINF__MHD_IDLE_S 90 /* as kube-apiserver's, for connections without a request */

/* What the requests of an endpoint have in common; constant while it runs, but for the peers. */
struct kinf__mhd_request_rules {
    struct kinf__server *server;
    struct kinf__authorizer *authorizer; /* NULL: open */
    /* The endpoint's thread; NULL: clients show no certificates. */
    struct kinf__client_authority *client_authority;
    bool is_unix;
    bool is_health;   /* probes alone */
    bool is_local;    /* of this process alone */
    bool checks_host; /* a Host header has to name this machine */
    uint32_t *users;  /* of a unix socket, by uid; none: whoever can connect */
    size_t n_users;
    struct kinf__peers peers;
    struct kinf__turns turns; /* the endpoint's thread */
};

/* NULL: it is plain. What MHD_get_connection_info() returns stands only until it is asked again, since
 * libmicrohttpd 1.0 has one place for it in each connection: nobody keeps it. */
gnutls_session_t kinf__mhd_session(struct MHD_Connection *mhd);

/* The library's callbacks; `ctx` is the rules, and each connection's socket context its peer. */

/* MHD_OPTION_URI_LOG_CALLBACK: the request line as it came; returns what is *place below. */
void *kinf__mhd_request_new(void *ctx, const char *target, struct MHD_Connection *mhd);
/* MHD_AccessHandlerCallback. */
enum MHD_Result kinf__mhd_request_handle(void *ctx, struct MHD_Connection *mhd, const char *url,
                                         const char *method, const char *version,
                                         const char *upload, size_t *upload_len, void **place);
/* MHD_OPTION_NOTIFY_COMPLETED. */
void kinf__mhd_request_end(void *ctx, struct MHD_Connection *mhd, void **place,
                           enum MHD_RequestTerminationCode why);

#endif
