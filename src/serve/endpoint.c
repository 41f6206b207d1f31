/*
 * libmicrohttpd in front of exchanges. Neighbours: exchange.c makes answers; nobody else sees the
 * library.
 *
 * Its traps, and what is done about them: stopping it with a suspended connection aborts the
 * process, so the server is stopped first, which wakes every exchange, and nothing suspends once
 * that has begun. A body reader that returns 0 without suspending would be called in a loop. The
 * handler's URL is unescaped already, so the target is taken from the log callback. A suspended
 * connection does not see that its peer is gone: the server's timer asks is_gone().
 */
#include "serve/endpoint.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "serve/address.h"
#include "serve/exchange.h"
#include "serve/identity.h"
#include "serve/passthrough.h"
#include "serve/server_priv.h"

#define CONNECTION_LIMIT  16384
#define RESERVED_FILES    256   /* descriptors that are not the clients': upstream, files, timers */
#define HEAD_TIMEOUT_MS   10000 /* from connecting to the end of the first head */
#define BODY_TIMEOUT_MS   30000 /* from there to the end of a request's body */
#define CONNECTION_MEMORY (32u << 10)
#define IDLE_TIMEOUT_S    90          /* as kube-apiserver's, for connections without a request */
#define BLOCK_BYTES       (16u << 10) /* a buffer that the library holds as long as the answer */
#define WATCH_BLOCK_BYTES (1u << 10)  /* used by HTTP/1.0 alone: chunks are made in place */
#define WATCH_READ_BYTES  (16u << 10) /* of the connection's memory stays untouched what is more */
#define SEND_BUFFER_BYTES (256 << 10)
#define UNIX_MODE         0660
#define BACKLOG           1024
#define HEADERS_MAX       64
#define RECEIVE_MAX       (16u << 20) /* of a body that nobody wants */
#define TLS_VERSIONS      "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct kinf__endpoint {
    struct kinf__server *server;
    struct MHD_Daemon *mhd;
    char *url;
    char *path; /* of a unix socket; NULL: TCP */
    bool checks_host;
    unsigned unix_mode;
    uint32_t *users; /* of a unix socket, by uid */
    size_t n_users;
    struct kinf__identity *identity;     /* NULL: plain; the endpoint's thread */
    struct kinf__authorizer *authorizer; /* NULL: open */
    struct kinf__tick_hook hook;
    struct kinf__mutex lock;
    /* guarded by lock */
    struct kinf__list waiting; /* connections that owe a head, or the rest of a body */
};

/* A connection from accept to close, between whose requests the library counts silence. That is not
 * enough for a client that sends a byte now and then and never a whole request. */
struct peer {
    struct kinf__list node; /* in the endpoint's list while it owes something; else alone */
    int fd;
    int64_t deadline_ms;
};

/* One request on its connection. */
struct connection {
    /* constant */
    struct kinf__endpoint *endpoint;
    struct MHD_Connection *mhd;
    int fd;
    char *target;
    /* the connection's thread */
    struct kinf__exchange *exchange;
    int64_t body_len; /* of the request; 0: none; negative: not told */
    size_t n_received;
    struct kinf__mutex lock;
    /* guarded by lock */
    bool is_woken; /* since the reader looked */
    bool is_suspended;
};

/* --- suspending --- */

static void wake(void *ctx)
{
    struct connection *connection = ctx;

    kinf__mutex_lock(&connection->lock);
    connection->is_woken = true;
    if (connection->is_suspended) {
        connection->is_suspended = false;
        MHD_resume_connection(connection->mhd);
    }
    kinf__mutex_unlock(&connection->lock);
}

/* Returns false if it was woken since begin_work(): then there is something to do. */
static bool suspend(struct connection *connection)
{
    bool is_woken;

    kinf__mutex_lock(&connection->lock);
    is_woken = connection->is_woken;
    if (!is_woken) {
        connection->is_suspended = true;
        MHD_suspend_connection(connection->mhd);
    }
    kinf__mutex_unlock(&connection->lock);
    return !is_woken;
}

static void begin_work(struct connection *connection)
{
    kinf__mutex_lock(&connection->lock);
    connection->is_woken = false;
    kinf__mutex_unlock(&connection->lock);
}

static void cut_off(void *ctx)
{
    struct connection *connection = ctx;

    shutdown(connection->fd, SHUT_RDWR);
    wake(connection);
}

/* Only a suspended connection is asked: of the others the library takes care. */
static bool is_gone(void *ctx)
{
    struct connection *connection = ctx;
    struct pollfd poller = { .fd = connection->fd, .events = POLLRDHUP };
    bool is_suspended;

    kinf__mutex_lock(&connection->lock);
    is_suspended = connection->is_suspended;
    kinf__mutex_unlock(&connection->lock);
    return is_suspended && poll(&poller, 1, 0) == 1;
}

/* --- requests that never end --- */

static void await_request(struct kinf__endpoint *endpoint, struct peer *peer, int64_t patience_ms)
{
    peer->deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), patience_ms);
    kinf__mutex_lock(&endpoint->lock);
    kinf__list_remove(&peer->node);
    kinf__list_push_back(&endpoint->waiting, &peer->node);
    kinf__mutex_unlock(&endpoint->lock);
}

static void forgive(struct kinf__endpoint *endpoint, struct peer *peer)
{
    kinf__mutex_lock(&endpoint->lock);
    kinf__list_remove(&peer->node);
    kinf__list_init(&peer->node);
    kinf__mutex_unlock(&endpoint->lock);
}

/* Runs on the server's timer. The library closes what is shut down here, and only after it has said
 * so in note_connection(), which waits for the lock: the descriptor is still the peer's. */
static void cut_slow_requests(int64_t now_ms, void *ctx)
{
    struct kinf__endpoint *endpoint = ctx;

    kinf__mutex_lock(&endpoint->lock);
    KINF__LIST_FOR_EACH (node, &endpoint->waiting) {
        struct peer *peer = KINF__LIST_ENTRY(node, struct peer, node);

        if (peer->deadline_ms <= now_ms)
            shutdown(peer->fd, SHUT_RDWR);
    }
    kinf__mutex_unlock(&endpoint->lock);
}

/* The certificate callback has no context but the session's own. */
static void name_identity(const struct kinf__endpoint *endpoint, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *session;

    if (endpoint->identity == NULL)
        return;
    session = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    if (session != NULL)
        gnutls_session_set_ptr(session->tls_session, endpoint->identity);
}

static void note_connection(void *ctx, struct MHD_Connection *mhd, void **socket_context,
                            enum MHD_ConnectionNotificationCode code)
{
    struct kinf__endpoint *endpoint = ctx;
    struct peer *peer = *socket_context;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        name_identity(endpoint, mhd);
        /* Without memory it is as patient as the library. */
        peer = *socket_context = calloc(1, sizeof *peer);
        if (peer == NULL)
            return;
        kinf__list_init(&peer->node);
        peer->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        await_request(endpoint, peer, HEAD_TIMEOUT_MS);
    } else if (peer != NULL) {
        forgive(endpoint, peer);
        free(peer);
        *socket_context = NULL;
    }
}

static struct peer *peer_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* --- answers --- */

static ssize_t read_body(void *ctx, uint64_t position, char *buf, size_t size)
{
    struct connection *connection = ctx;
    const struct kinf__answer *answer = kinf__exchange_step(connection->exchange, NULL);
    ssize_t n;

    (void)position;
    if (answer->stream->is_watch && size > WATCH_READ_BYTES)
        size = WATCH_READ_BYTES;
    do {
        begin_work(connection);
        n = answer->stream->read(answer->stream, buf, size);
    } while (n == 0 && !suspend(connection));
    if (n == KINF__STREAM_END)
        return MHD_CONTENT_READER_END_OF_STREAM;
    return n < 0 ? MHD_CONTENT_READER_END_WITH_ERROR : n;
}

static struct MHD_Response *make_body(struct connection *connection,
                                      const struct kinf__answer *answer)
{
    if (answer->stream != NULL)
        return MHD_create_response_from_callback(
            answer->stream_len >= 0 ? (uint64_t)answer->stream_len : MHD_SIZE_UNKNOWN,
            answer->stream->is_watch ? WATCH_BLOCK_BYTES : BLOCK_BYTES, read_body, connection,
            NULL);
    return MHD_create_response_from_buffer(answer->body.len, answer->body.bytes,
                                           MHD_RESPMEM_PERSISTENT);
}

/* A header that does not fit the memory is left out; none of these changes what a body means, but
 * for Content-Encoding. */
static bool add_header(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

static void add_numbers(struct MHD_Response *response, const struct kinf__answer *answer)
{
    char text[300];

    if (answer->retry_after_s != 0) {
        snprintf(text, sizeof text, "%u", answer->retry_after_s);
        add_header(response, "Retry-After", text);
    }
    if (answer->staleness_ms >= 0) {
        snprintf(text, sizeof text, "%lld.%03lld", (long long)(answer->staleness_ms / 1000),
                 (long long)(answer->staleness_ms % 1000));
        add_header(response, "Kinformer-Staleness-Seconds", text);
    }
    if (*answer->warning != '\0') {
        snprintf(text, sizeof text, "299 - \"%s\"", answer->warning);
        add_header(response, "Warning", text);
    }
}

static bool add_passed_headers(struct MHD_Response *response, const struct kinf__answer *answer)
{
    bool is_whole = true;

    for (size_t i = 0; i < answer->n_headers; i++) {
        const struct kinf__header *one = &answer->headers[i];

        if (kinf__passthrough_returns(one) && !add_header(response, one->name, one->value) &&
            strcasecmp(one->name, "Content-Encoding") == 0)
            is_whole = false;
    }
    add_header(response, "Kinformer-Source", "upstream");
    return is_whole;
}

static bool add_headers(struct MHD_Response *response, const struct kinf__answer *answer)
{
    if (answer->is_passed)
        return add_passed_headers(response, answer);
    if (answer->is_gzip && !add_header(response, "Content-Encoding", "gzip"))
        return false;
    if (answer->content_type != NULL)
        add_header(response, "Content-Type", answer->content_type);
    if (answer->varies_by_encoding)
        add_header(response, "Vary", "Accept-Encoding");
    if (answer->is_public || answer->varies_by_accept)
        add_header(response, "Vary", "Accept");
    if (*answer->policy != '\0') {
        add_header(response, "Content-Security-Policy", answer->policy);
        add_header(response, "X-Frame-Options", "DENY");
        add_header(response, "Referrer-Policy", "no-referrer");
    }
    if (*answer->etag != '\0')
        add_header(response, "ETag", answer->etag);
    add_header(response, "Cache-Control", answer->is_public ? "public" : "no-cache, private");
    add_header(response, "X-Content-Type-Options", "nosniff");
    add_numbers(response, answer);
    return true;
}

static enum MHD_Result send_answer(struct connection *connection, const struct kinf__answer *answer)
{
    struct MHD_Response *response = make_body(connection, answer);
    enum MHD_Result result = MHD_NO;

    if (response == NULL)
        return MHD_NO;
    if (add_headers(response, answer))
        result = MHD_queue_response(connection->mhd, (unsigned)answer->code, response);
    MHD_destroy_response(response);
    return result;
}

static const char *header(struct connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection->mhd, MHD_HEADER_KIND, name);
}

static enum MHD_Result refuse(struct connection *connection, int code, const char *message)
{
    struct kinf__answer answer = { .code = code,
                                   .content_type = "text/plain; charset=utf-8",
                                   .body = { (char *)(uintptr_t)message, strlen(message), 0 },
                                   .staleness_ms = -1 };

    return send_answer(connection, &answer);
}

/* --- headers and bodies of requests --- */

struct headers {
    struct kinf__header items[HEADERS_MAX];
    size_t n_items;
};

static enum MHD_Result collect_header(void *ctx, enum MHD_ValueKind kind, const char *name,
                                      const char *value)
{
    struct headers *headers = ctx;

    (void)kind;
    if (headers->n_items == HEADERS_MAX)
        return MHD_NO;
    headers->items[headers->n_items++] = (struct kinf__header){ name, value != NULL ? value : "" };
    return MHD_YES;
}

static void describe_address(const struct sockaddr *address, char *buf, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "", port[8] = "";
    bool is_v6 = address->sa_family == AF_INET6;
    socklen_t len = is_v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

    if (getnameinfo(address, len, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(buf, size, is_v6 ? "[%s]:%s" : "%s:%s", host, port);
}

static void describe_client(struct connection *connection, struct kinf__client *client)
{
    const union MHD_ConnectionInfo *peer =
        MHD_get_connection_info(connection->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const char *user_agent = header(connection, "User-Agent");
    struct ucred credentials;
    socklen_t len = sizeof credentials;

    *client = (struct kinf__client){ .peer = "" };
    snprintf(client->user_agent, sizeof client->user_agent, "%s",
             user_agent != NULL ? user_agent : "");
    if (connection->endpoint->path == NULL) {
        if (peer != NULL)
            describe_address(peer->client_addr, client->peer, sizeof client->peer);
    } else if (getsockopt(connection->fd, SOL_SOCKET, SO_PEERCRED, &credentials, &len) == 0) {
        snprintf(client->peer, sizeof client->peer, "unix uid=%u pid=%d", credentials.uid,
                 credentials.pid);
    }
}

static int count_authorizations(const struct headers *headers)
{
    int n = 0;

    for (size_t i = 0; i < headers->n_items; i++)
        n += strcasecmp(headers->items[i].name, "Authorization") == 0;
    return n;
}

static void read_head(struct connection *connection, const char *method, struct headers *headers,
                      struct kinf__client *client, struct kinf__exchange_head *ret_head)
{
    describe_client(connection, client);
    MHD_get_connection_values(connection->mhd, MHD_HEADER_KIND, collect_header, headers);
    *ret_head = (struct kinf__exchange_head){
        .method = method,
        .target = kinf_str_from(connection->target),
        .accept = header(connection, "Accept"),
        .accept_encoding = header(connection, "Accept-Encoding"),
        .if_none_match = header(connection, "If-None-Match"),
        .headers = headers->items,
        .n_headers = headers->n_items,
        .body_len = connection->body_len,
        .client = client,
        .authorization = header(connection, "Authorization"),
        .has_many_authorizations = count_authorizations(headers) > 1,
    };
}

static int64_t body_len_of(struct connection *connection)
{
    const char *len = header(connection, "Content-Length");

    if (header(connection, "Transfer-Encoding") != NULL)
        return KINF__FORWARD_CHUNKED;
    return len != NULL ? strtoll(len, NULL, 10) : 0;
}

static enum MHD_Result step(struct connection *connection, const char *method)
{
    struct headers headers = { .n_items = 0 };
    struct kinf__client client;
    struct kinf__exchange_head head;
    const struct kinf__answer *answer;

    read_head(connection, method, &headers, &client, &head);
    do {
        begin_work(connection);
        answer = kinf__exchange_step(connection->exchange, &head);
    } while (answer == NULL && !suspend(connection));
    return answer != NULL ? send_answer(connection, answer) : MHD_YES;
}

/* The library takes an answer in front of a body for these alone; for others it would wait. */
static bool may_answer_early(const struct connection *connection, const char *method)
{
    return connection->body_len == 0 || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0;
}

/* A body comes behind the first step. A client that has its answer already is only listened to, since
 * closing would make the answer vanish with what is under way; one that asked first sends nothing. */
static enum MHD_Result begin_with_body(struct connection *connection, const char *method)
{
    struct headers headers = { .n_items = 0 };
    struct kinf__client client;
    struct kinf__exchange_head head;
    const struct kinf__answer *answer;

    read_head(connection, method, &headers, &client, &head);
    begin_work(connection);
    answer = kinf__exchange_step(connection->exchange, &head);
    return answer != NULL && header(connection, "Expect") != NULL &&
                   may_answer_early(connection, method)
               ? send_answer(connection, answer)
               : MHD_YES;
}

/* The library calls again for what is left of a piece only when more has come, which is never behind
 * the last one: all is taken, or the connection sleeps until there is room. That time is not the
 * client's. */
static enum MHD_Result receive(struct connection *connection, const char *bytes, size_t *len)
{
    struct peer *peer = peer_of(connection->mhd);
    bool sleeps = false;

    while (*len != 0 && !sleeps) {
        size_t n_taken;

        begin_work(connection);
        n_taken = kinf__exchange_take_body(connection->exchange, bytes, *len);
        bytes += n_taken;
        *len -= n_taken;
        connection->n_received += n_taken;
        sleeps = n_taken == 0 && suspend(connection);
    }
    if (peer != NULL && sleeps)
        forgive(connection->endpoint, peer);
    else if (peer != NULL && kinf__list_is_empty(&peer->node))
        await_request(connection->endpoint, peer, BODY_TIMEOUT_MS);
    return connection->n_received <= RECEIVE_MAX ? MHD_YES : MHD_NO;
}

/* --- one request --- */

/* Whether the process at the other end of a unix socket runs as one of the users. */
static bool is_welcome(const struct connection *connection)
{
    const struct kinf__endpoint *endpoint = connection->endpoint;
    struct ucred credentials;
    socklen_t len = sizeof credentials;

    if (endpoint->n_users == 0)
        return true;
    if (getsockopt(connection->fd, SOL_SOCKET, SO_PEERCRED, &credentials, &len) < 0)
        return false;
    for (size_t i = 0; i < endpoint->n_users; i++) {
        if (endpoint->users[i] == credentials.uid)
            return true;
    }
    return false;
}

/* 0: the request may be answered. */
static int check_head(struct connection *connection, const char *version, const char **ret_why)
{
    const char *host = header(connection, "Host");

    if (!is_welcome(connection)) {
        *ret_why = "403 Forbidden: this socket is not for your user\n";
        return 403;
    }
    if (host == NULL && strcmp(version, "HTTP/1.0") != 0) {
        *ret_why = "400 Bad Request: missing required Host header";
        return 400;
    }
    if (connection->endpoint->checks_host && host != NULL && !kinf__address_is_local_host(host)) {
        *ret_why = "403 Forbidden: the Host header names no loopback address\n";
        return 403;
    }
    if (MHD_get_connection_values(connection->mhd, MHD_HEADER_KIND, NULL, NULL) > HEADERS_MAX) {
        *ret_why = "431 Request Header Fields Too Large\n";
        return 431;
    }
    return 0;
}

static enum MHD_Result begin(struct connection *connection, const char *method, const char *version)
{
    const struct kinf__exchange_owner owner = { wake, cut_off, is_gone, connection,
                                                connection->endpoint->authorizer };
    const char *why;
    int code;

    connection->fd =
        MHD_get_connection_info(connection->mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    connection->body_len = body_len_of(connection);
    code = check_head(connection, version, &why);
    if (code != 0)
        return may_answer_early(connection, method) ? refuse(connection, code, why) : MHD_NO;
    connection->exchange = kinf__exchange_new(connection->endpoint->server, &owner);
    if (connection->exchange == NULL)
        return MHD_NO;
    return connection->body_len != 0 ? begin_with_body(connection, method) : MHD_YES;
}

/* Called once with the head, then for each piece of a body that the library has, then, and after
 * each suspension, until there is an answer. One in the first call would close the connection. */
static enum MHD_Result handle(void *ctx, struct MHD_Connection *mhd, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_len, void **request)
{
    struct connection *connection = *request;

    (void)url;
    if (connection == NULL)
        return MHD_NO;
    if (connection->exchange == NULL) {
        connection->endpoint = ctx;
        connection->mhd = mhd;
        if (peer_of(mhd) != NULL && body_len_of(connection) != 0)
            await_request(ctx, peer_of(mhd), BODY_TIMEOUT_MS);
        else if (peer_of(mhd) != NULL)
            forgive(ctx, peer_of(mhd));
        return begin(connection, method, version);
    }
    if (*upload_len != 0)
        return receive(connection, upload, upload_len);
    if (peer_of(mhd) != NULL)
        forgive(ctx, peer_of(mhd));
    kinf__exchange_end_body(connection->exchange);
    return step(connection, method);
}

/* The request line as it came; what is returned is handle()'s *request. */
static void *note_target(void *ctx, const char *target, struct MHD_Connection *mhd)
{
    struct connection *connection = calloc(1, sizeof *connection);

    (void)ctx;
    (void)mhd;
    if (connection == NULL)
        return NULL;
    connection->target = strdup(target);
    if (connection->target == NULL) {
        free(connection);
        return NULL;
    }
    kinf__mutex_init(&connection->lock, KINF__RANK_CONNECTION);
    return connection;
}

static void forget_request(void *ctx, struct MHD_Connection *mhd, void **request,
                           enum MHD_RequestTerminationCode why)
{
    struct kinf__endpoint *endpoint = ctx;
    struct connection *connection = *request;

    (void)why;
    if (peer_of(mhd) != NULL)
        await_request(endpoint, peer_of(mhd), IDLE_TIMEOUT_S * 1000);
    if (connection == NULL)
        return;
    *request = NULL;
    kinf__exchange_free(connection->exchange);
    kinf__mutex_release(&connection->lock);
    free(connection->target);
    free(connection);
}

/* --- life --- */

KINF_PRINTF(2, 0)
static void log_library(void *ctx, const char *fmt, va_list args)
{
    char line[512];

    (void)ctx;
    vsnprintf(line, sizeof line, fmt, args);
    kinf__make_one_line(line);
    KINF__LOG(KINF__LOG_SERVE, KINF_LOG_DEBUG, "libmicrohttpd says=\"%s\"", line);
}

/* Clients never get the descriptors that the caches live on: one that cannot connect any more is no
 * use to anybody. Of the rest an endpoint has half, since there may be two. */
static unsigned connection_limit(void)
{
    struct rlimit files;
    rlim_t limit = 2 * RESERVED_FILES;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        limit = files.rlim_cur;
    limit = limit > 2 * RESERVED_FILES ? (limit - RESERVED_FILES) / 2 : limit / 4;
    return limit < CONNECTION_LIMIT ? (unsigned)limit : CONNECTION_LIMIT;
}

static int choose_certificate(gnutls_session_t session, const gnutls_datum_t *authorities,
                              int n_authorities, const gnutls_pk_algorithm_t *algorithms,
                              int n_algorithms, gnutls_pcert_st **ret_chain, unsigned *ret_n_chain,
                              gnutls_privkey_t *ret_key)
{
    (void)authorities;
    (void)n_authorities;
    (void)algorithms;
    (void)n_algorithms;
    kinf__identity_get(gnutls_session_get_ptr(session), kinf__clock_now_ms(), ret_chain,
                       ret_n_chain, ret_key);
    return 0;
}

static int start(struct kinf__endpoint *endpoint, int fd, struct kinf_error *err)
{
    struct MHD_OptionItem tls[] = {
        { MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)(intptr_t)choose_certificate },
        { MHD_OPTION_HTTPS_PRIORITIES, 0, (char[]){ TLS_VERSIONS } },
        { MHD_OPTION_END, 0, NULL },
    };
    unsigned flags =
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_ERROR_LOG;

    if (endpoint->identity == NULL)
        tls[0].option = MHD_OPTION_END;
    else
        flags |= MHD_USE_TLS;
    if (listen(fd, BACKLOG) < 0)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "listen");
    endpoint->mhd = MHD_start_daemon(
        flags, 0, NULL, NULL, handle, endpoint, MHD_OPTION_EXTERNAL_LOGGER, log_library, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_URI_LOG_CALLBACK, note_target, endpoint,
        MHD_OPTION_NOTIFY_COMPLETED, forget_request, endpoint, MHD_OPTION_NOTIFY_CONNECTION,
        note_connection, endpoint, MHD_OPTION_CONNECTION_LIMIT, connection_limit(),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_TIMEOUT_S, MHD_OPTION_ARRAY, tls,
        MHD_OPTION_END);
    if (endpoint->mhd == NULL)
        return kinf__error_set(err, KINF_ERR_SYSTEM, "the HTTP server does not start");
    return 0;
}

static int prepare_unix(struct kinf__endpoint *endpoint, const char *path,
                        const struct kinf__endpoint_options *options, struct kinf_error *err)
{
    endpoint->path = strdup(path);
    endpoint->unix_mode = options->unix_mode != 0 ? options->unix_mode : UNIX_MODE;
    endpoint->users = calloc(options->n_users + 1, sizeof endpoint->users[0]);
    if (endpoint->path == NULL || endpoint->users == NULL)
        return kinf__error_no_memory(err);
    for (size_t i = 0; i < options->n_users; i++)
        endpoint->users[i] = options->users[i];
    endpoint->n_users = options->n_users;
    return 0;
}

/* What needs no socket. */
static int prepare(struct kinf__endpoint *endpoint, const char *path,
                   const struct kinf__endpoint_options *options, struct kinf_error *err)
{
    if (path != NULL)
        return prepare_unix(endpoint, path, options, err);
    if (options->authorizer != NULL && options->cert_file == NULL)
        return kinf__error_set(err, KINF_ERR_CONFIG, "tokens are not taken without TLS");
    endpoint->authorizer = options->authorizer;
    endpoint->checks_host = options->authorizer == NULL;
    return options->cert_file != NULL
               ? kinf__identity_new(options->cert_file, options->key_file, &endpoint->identity, err)
               : 0;
}

static int open_socket(struct kinf__endpoint *endpoint, const struct kinf__address *address,
                       struct kinf_error *err)
{
    int fd = -1, size = SEND_BUFFER_BYTES;
    int failed =
        kinf__address_bind(address, endpoint->authorizer != NULL, endpoint->unix_mode, &fd, err);

    if (failed < 0)
        return failed;
    /* Connections inherit it: what a client that takes nothing holds in the kernel. */
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    endpoint->url = kinf__address_url(address, fd, endpoint->identity != NULL ? "https" : "http");
    failed = endpoint->url != NULL ? start(endpoint, fd, err) : kinf__error_no_memory(err);
    if (failed < 0)
        close(fd);
    return failed;
}

int kinf__endpoint_start(struct kinf__server *server, const char *address,
                         const struct kinf__endpoint_options *options,
                         struct kinf__endpoint **ret_listener, struct kinf_error *err)
{
    struct kinf__endpoint *endpoint;
    struct kinf__address parsed;
    int failed = kinf__address_parse(address, &parsed, err);

    if (failed < 0)
        return failed;
    endpoint = calloc(1, sizeof *endpoint);
    if (endpoint == NULL)
        return kinf__error_no_memory(err);
    endpoint->server = server;
    kinf__mutex_init(&endpoint->lock, KINF__RANK_CONNECTION);
    kinf__list_init(&endpoint->waiting);
    endpoint->hook = (struct kinf__tick_hook){ .tick = cut_slow_requests, .ctx = endpoint };
    kinf__server_add_hook(server, &endpoint->hook);
    failed = prepare(endpoint, parsed.path, options, err);
    if (failed == 0)
        failed = open_socket(endpoint, &parsed, err);
    if (failed < 0) {
        kinf__endpoint_free(endpoint);
        return failed;
    }
    *ret_listener = endpoint;
    return 0;
}

const char *kinf__endpoint_url(const struct kinf__endpoint *endpoint)
{
    return endpoint->url;
}

void kinf__endpoint_quiesce(struct kinf__endpoint *endpoint)
{
    MHD_socket fd = MHD_quiesce_daemon(endpoint->mhd);

    if (fd != MHD_INVALID_SOCKET)
        close(fd);
    if (endpoint->path != NULL)
        unlink(endpoint->path);
}

void kinf__endpoint_free(struct kinf__endpoint *endpoint)
{
    if (endpoint == NULL)
        return;
    if (endpoint->mhd != NULL)
        MHD_stop_daemon(endpoint->mhd);
    kinf__server_remove_hook(endpoint->server, &endpoint->hook);
    kinf__mutex_release(&endpoint->lock);
    kinf__identity_free(endpoint->identity);
    free(endpoint->users);
    free(endpoint->path);
    free(endpoint->url);
    free(endpoint);
}

int kinf__endpoint_check_files(const char *cert_file, const char *key_file, struct kinf_error *err)
{
    struct kinf__identity *identity;
    int failed = kinf__identity_new(cert_file, key_file, &identity, err);

    if (failed == 0)
        kinf__identity_free(identity);
    return failed;
}
