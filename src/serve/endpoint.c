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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <microhttpd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "serve/exchange.h"
#include "serve/identity.h"
#include "serve/server_priv.h"

#define CONNECTION_LIMIT  4096
#define CONNECTION_MEMORY (32u << 10)
#define IDLE_TIMEOUT_S    90 /* as kube-apiserver's, for connections without a request */
#define BLOCK_BYTES       (16u << 10)
#define SEND_BUFFER_BYTES (256 << 10)
#define BACKLOG           1024
#define TLS_VERSIONS      "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct kinf__endpoint {
    struct kinf__server *server;
    struct MHD_Daemon *mhd;
    char *url;
    char *path; /* of a unix socket; NULL: TCP */
    bool checks_host;
    struct kinf__identity *identity;     /* NULL: plain; the endpoint's thread */
    struct kinf__authorizer *authorizer; /* NULL: open */
};

/* One request on its connection. */
struct connection {
    /* constant */
    struct kinf__endpoint *endpoint;
    struct MHD_Connection *mhd;
    int fd;
    char *target;
    struct kinf__exchange *exchange; /* the connection's thread */
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

/* --- one request --- */

static ssize_t read_body(void *ctx, uint64_t position, char *buf, size_t size)
{
    struct connection *connection = ctx;
    const struct kinf__answer *answer = kinf__exchange_step(connection->exchange, NULL);
    ssize_t n;

    (void)position;
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
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_body,
                                                 connection, NULL);
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

static bool add_headers(struct MHD_Response *response, const struct kinf__answer *answer)
{
    if (answer->is_gzip && !add_header(response, "Content-Encoding", "gzip"))
        return false;
    if (answer->content_type != NULL)
        add_header(response, "Content-Type", answer->content_type);
    if (answer->varies_by_encoding)
        add_header(response, "Vary", "Accept-Encoding");
    if (answer->is_public)
        add_header(response, "Vary", "Accept");
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

static enum MHD_Result find_impersonation(void *ctx, enum MHD_ValueKind kind, const char *name,
                                          const char *value)
{
    (void)kind;
    (void)value;
    if (strncasecmp(name, "Impersonate-", strlen("Impersonate-")) == 0)
        *(bool *)ctx = true;
    return MHD_YES;
}

static enum MHD_Result count_authorizations(void *ctx, enum MHD_ValueKind kind, const char *name,
                                            const char *value)
{
    (void)kind;
    (void)value;
    *(int *)ctx += strcasecmp(name, "Authorization") == 0;
    return MHD_YES;
}

static enum MHD_Result step(struct connection *connection, const char *method)
{
    struct kinf__exchange_head head = {
        .method = method,
        .target = kinf_str_from(connection->target),
        .accept = header(connection, "Accept"),
        .accept_encoding = header(connection, "Accept-Encoding"),
        .if_none_match = header(connection, "If-None-Match"),
        .authorization = header(connection, "Authorization"),
    };
    const struct kinf__answer *answer;
    int n_authorizations = 0;

    MHD_get_connection_values(connection->mhd, MHD_HEADER_KIND, count_authorizations,
                              &n_authorizations);
    head.has_many_authorizations = n_authorizations > 1;
    MHD_get_connection_values(connection->mhd, MHD_HEADER_KIND, find_impersonation,
                              &head.is_impersonated);
    do {
        begin_work(connection);
        answer = kinf__exchange_step(connection->exchange, &head);
    } while (answer == NULL && !suspend(connection));
    return answer != NULL ? send_answer(connection, answer) : MHD_YES;
}

/* The first call for a request comes before its body, of which nothing is wanted: a request with
 * one is answered, and its connection closed. */
static enum MHD_Result handle(void *ctx, struct MHD_Connection *mhd, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_len, void **request)
{
    struct kinf__endpoint *endpoint = ctx;
    struct connection *connection = *request;
    struct kinf__exchange_owner owner = { wake, cut_off, is_gone, connection,
                                          endpoint->authorizer };

    (void)url;
    (void)upload;
    if (connection == NULL)
        return MHD_NO;
    *upload_len = 0;
    if (connection->exchange == NULL) {
        const char *host;

        connection->endpoint = endpoint;
        connection->mhd = mhd;
        connection->fd =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        host = header(connection, "Host");
        if (host == NULL && strcmp(version, "HTTP/1.0") != 0)
            return refuse(connection, 400, "400 Bad Request: missing required Host header");
        if (endpoint->checks_host && host != NULL && !kinf__endpoint_is_local_host(host))
            return refuse(connection, 403,
                          "403 Forbidden: the Host header names no loopback "
                          "address\n");
        connection->exchange = kinf__exchange_new(endpoint->server, &owner);
        if (connection->exchange == NULL)
            return MHD_NO;
    }
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
    struct connection *connection = *request;

    (void)ctx;
    (void)mhd;
    (void)why;
    if (connection == NULL)
        return;
    *request = NULL;
    kinf__exchange_free(connection->exchange);
    kinf__mutex_release(&connection->lock);
    free(connection->target);
    free(connection);
}

/* --- addresses --- */

bool kinf__endpoint_is_local_host(const char *host)
{
    char name[64];
    struct in_addr v4;
    size_t len = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    const char *port = len <= strlen(host) ? host + len : "";

    if (len >= sizeof name ||
        (*port != '\0' && (*port != ':' || strspn(port + 1, "0123456789") != strlen(port + 1))))
        return false;
    memcpy(name, host, len);
    name[len] = '\0';
    if (strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0)
        return true;
    return inet_pton(AF_INET, name, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}

/* "HOST:PORT" or "[HOST]:PORT" into its parts. */
static bool split_address(const char *address, char *host, size_t size, const char **ret_port)
{
    const char *colon = strrchr(address, ':');
    size_t len = colon != NULL ? (size_t)(colon - address) : 0;

    if (len == 0 || colon[1] == '\0' || strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return false;
    if (*address == '[' && address[len - 1] == ']') {
        address++;
        len -= 2;
    } else if (memchr(address, ':', len) != NULL) {
        return false;
    }
    if (len == 0 || len >= size)
        return false;
    memcpy(host, address, len);
    host[len] = '\0';
    *ret_port = colon + 1;
    return true;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 ==
               127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static int resolve(const char *address, bool is_guarded, struct addrinfo **ret_found,
                   struct kinf_error *err)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    struct addrinfo *found;
    char host[256];
    const char *port;

    if (!split_address(address, host, sizeof host, &port) || strlen(port) > 5 || atoi(port) > 65535)
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "--listen %s: an address is HOST:PORT, [HOST]:PORT or unix:PATH",
                               address);
    if (getaddrinfo(host, port, &hints, &found) != 0)
        return kinf__error_set(err, KINF_ERR_INVALID, "--listen %s: no such host", address);
    if (!is_guarded && !is_loopback(found->ai_addr)) {
        freeaddrinfo(found);
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "--listen %s: an address that is not loopback needs TLS and "
                               "'auth: delegated'",
                               address);
    }
    *ret_found = found;
    return 0;
}

static const char *unix_path(const char *address)
{
    return strncmp(address, "unix:", 5) == 0 ? address + 5 : NULL;
}

static int check_unix_path(const char *path, struct kinf_error *err)
{
    struct sockaddr_un address;

    if (*path == '\0' || strlen(path) >= sizeof address.sun_path)
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "--listen unix:%s: a path of 1 to %zu bytes is needed", path,
                               sizeof address.sun_path - 1);
    return 0;
}

int kinf__endpoint_check(const char *address, bool is_guarded, struct kinf_error *err)
{
    const char *path = unix_path(address);
    struct addrinfo *found;
    int failed;

    if (path != NULL)
        return check_unix_path(path, err);
    failed = resolve(address, is_guarded, &found, err);
    if (failed == 0)
        freeaddrinfo(found);
    return failed;
}

int kinf__endpoint_check_files(const char *cert_file, const char *key_file, struct kinf_error *err)
{
    struct kinf__identity *identity;
    int failed = kinf__identity_new(cert_file, key_file, &identity, err);

    if (failed == 0)
        kinf__identity_free(identity);
    return failed;
}

static int bind_tcp(const char *address, bool is_guarded, int *ret_fd, struct kinf_error *err)
{
    struct addrinfo *found;
    int failed = resolve(address, is_guarded, &found, err), fd, yes = 1;

    if (failed < 0)
        return failed;
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) < 0 ||
        bind(fd, found->ai_addr, found->ai_addrlen) < 0) {
        failed = kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "--listen %s", address);
        if (fd >= 0)
            close(fd);
    } else {
        *ret_fd = fd;
    }
    freeaddrinfo(found);
    return failed;
}

/* A socket's file that nobody listens at is what is left of a process that was killed. */
static void remove_abandoned(const struct sockaddr_un *address)
{
    KINF__AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat file;

    if (fd >= 0 && lstat(address->sun_path, &file) == 0 && S_ISSOCK(file.st_mode) &&
        connect(fd, (const struct sockaddr *)address, sizeof *address) < 0 && errno == ECONNREFUSED)
        unlink(address->sun_path);
}

static int bind_unix(const char *path, int *ret_fd, struct kinf_error *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    mode_t mask;
    int failed = check_unix_path(path, err), fd, bound;

    if (failed < 0)
        return failed;
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "--listen unix:%s", path);
    remove_abandoned(&address);
    mask = umask(0117);
    bound = bind(fd, (const struct sockaddr *)&address, sizeof address);
    umask(mask);
    if (bound < 0) {
        failed = kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "--listen unix:%s", path);
        close(fd);
        return failed;
    }
    *ret_fd = fd;
    return 0;
}

static char *make_url(int fd, const char *address, const char *scheme)
{
    struct sockaddr_storage bound = { .ss_family = AF_UNSPEC };
    socklen_t len = sizeof bound;
    char host[NI_MAXHOST], port[NI_MAXSERV], *url = NULL;

    if (unix_path(address) != NULL)
        return strdup(address);
    if (getsockname(fd, (struct sockaddr *)&bound, &len) < 0 ||
        getnameinfo((struct sockaddr *)&bound, len, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0 ||
        asprintf(&url, bound.ss_family == AF_INET6 ? "%s://[%s]:%s" : "%s://%s:%s", scheme, host,
                 port) < 0)
        return NULL;
    return url;
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

/* The certificate callback has no context but the session's own. */
static void note_connection(void *ctx, struct MHD_Connection *mhd, void **context,
                            enum MHD_ConnectionNotificationCode what)
{
    struct kinf__endpoint *endpoint = ctx;
    const union MHD_ConnectionInfo *session;

    (void)context;
    if (what != MHD_CONNECTION_NOTIFY_STARTED || endpoint->identity == NULL)
        return;
    session = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    if (session != NULL)
        gnutls_session_set_ptr(session->tls_session, endpoint->identity);
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
        note_connection, endpoint, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTION_LIMIT,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_TIMEOUT_S, MHD_OPTION_ARRAY, tls,
        MHD_OPTION_END);
    if (endpoint->mhd == NULL)
        return kinf__error_set(err, KINF_ERR_SYSTEM, "the HTTP server does not start");
    return 0;
}

/* What needs no socket. */
static int prepare(struct kinf__endpoint *endpoint, const char *path,
                   const struct kinf__endpoint_options *options, struct kinf_error *err)
{
    endpoint->path = path != NULL ? strdup(path) : NULL;
    if (path != NULL)
        return endpoint->path != NULL ? 0 : kinf__error_no_memory(err);
    if (options->authorizer != NULL && options->cert_file == NULL)
        return kinf__error_set(err, KINF_ERR_CONFIG, "tokens are not taken without TLS");
    endpoint->authorizer = options->authorizer;
    endpoint->checks_host = options->authorizer == NULL;
    return options->cert_file != NULL
               ? kinf__identity_new(options->cert_file, options->key_file, &endpoint->identity, err)
               : 0;
}

static int open_socket(struct kinf__endpoint *endpoint, const char *address, struct kinf_error *err)
{
    const char *path = unix_path(address);
    int fd = -1, size = SEND_BUFFER_BYTES;
    int failed = path != NULL ? bind_unix(path, &fd, err)
                              : bind_tcp(address, endpoint->authorizer != NULL, &fd, err);

    if (failed < 0)
        return failed;
    /* Connections inherit it: what a client that takes nothing holds in the kernel. */
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    endpoint->url = make_url(fd, address, endpoint->identity != NULL ? "https" : "http");
    failed = endpoint->url != NULL ? start(endpoint, fd, err) : kinf__error_no_memory(err);
    if (failed < 0)
        close(fd);
    return failed;
}

int kinf__endpoint_start(struct kinf__server *server, const char *address,
                         const struct kinf__endpoint_options *options,
                         struct kinf__endpoint **ret_listener, struct kinf_error *err)
{
    struct kinf__endpoint *endpoint = calloc(1, sizeof *endpoint);
    int failed;

    if (endpoint == NULL)
        return kinf__error_no_memory(err);
    endpoint->server = server;
    failed = prepare(endpoint, unix_path(address), options, err);
    if (failed == 0)
        failed = open_socket(endpoint, address, err);
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
    kinf__identity_free(endpoint->identity);
    free(endpoint->path);
    free(endpoint->url);
    free(endpoint);
}
