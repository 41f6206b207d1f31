/*
 * libmicrohttpd behind a socket: its options, TLS, start and stop. Neighbours: address.c makes the
 * socket, peer.c says who may connect, mhd_request.c has the requests. Nobody but it and this sees the
 * library.
 */
#include "serve/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <microhttpd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"
#include "serve/address.h"
#include "serve/identity.h"
#include "serve/mhd_request.h"

#define PROBE_CONNECTIONS 64
#define HEAD_TIMEOUT_MS   10000 /* from connecting to the end of the first head */
#define CONNECTION_MEMORY (32u << 10)
#define SEND_BUFFER_BYTES (256 << 10)
#define UNIX_MODE         0660
#define RELIEF_MS         1000
#define BACKLOG           1024
#define TLS_VERSIONS      "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct kinf__endpoint {
    struct kinf__mhd_request_rules rules;
    struct MHD_Daemon *mhd;
    int listen_fd; /* the library's from its start on */
    int silent_fd; /* that nothing ever happens at */
    char *url;
    char *path;   /* of a unix socket; NULL: TCP */
    dev_t device; /* of its file, as inode */
    ino_t inode;
    bool is_guarded; /* TLS, and somebody decides who may */
    unsigned unix_mode;
    struct kinf__identity *identity;    /* NULL: plain; the endpoint's thread */
    struct kinf__tls_activity activity; /* the endpoint's thread */
    struct kinf__tick_hook hook;
    _Atomic(int64_t) relief_ms; /* when it is looked whether somebody is let in; never: as a rule */
};

/* The certificate callback has no context but the session's own. Of clients any certificate is taken,
 * or none: mhd_request.c looks at it. */
static void prepare_session(struct kinf__endpoint *endpoint, struct MHD_Connection *mhd, int fd,
                            struct kinf__peer *peer)
{
    gnutls_session_t session = kinf__mhd_session(mhd);
    struct MHD_Daemon *daemon;

    if (session == NULL)
        return; /* plain */
    gnutls_session_set_ptr(session, endpoint->identity);
    if (endpoint->rules.client_authority != NULL)
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
    if (peer == NULL)
        return; /* it is about to end */
    daemon = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_DAEMON)->daemon;
    kinf__tls_transport_init(kinf__peer_transport(peer), session, fd,
                             MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
                             &endpoint->activity);
}

static void note_connection(void *ctx, struct MHD_Connection *mhd, void **socket_context,
                            enum MHD_ConnectionNotificationCode code)
{
    struct kinf__endpoint *endpoint = ctx;
    struct kinf__peers *peers = &endpoint->rules.peers;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        int fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;

        *socket_context = kinf__peer_new(peers, fd);
        prepare_session(endpoint, mhd, fd, *socket_context);
        if (*socket_context == NULL)
            shutdown(fd, SHUT_RDWR);
        kinf__peer_await(peers, *socket_context, HEAD_TIMEOUT_MS);
    } else {
        kinf__peer_free(peers, *socket_context);
        *socket_context = NULL;
    }
}

/* While a thread starts the library: what that said last, which is all that it tells of a failure. */
static _Thread_local char *last_words;

#define WORDS_SIZE 256

KINF_PRINTF(2, 0)
static void log_library(void *ctx, const char *fmt, va_list args)
{
    struct kinf__endpoint *endpoint = ctx;
    char line[512];

    vsnprintf(line, sizeof line, fmt, args);
    kinf__make_one_line(line);
    for (size_t len = strlen(line); len > 0 && strchr(" .", line[len - 1]) != NULL;)
        line[--len] = '\0';
    if (last_words != NULL)
        snprintf(last_words, WORDS_SIZE, "%s", line);
    KINF__LOG(KINF__LOG_SERVE, KINF_LOG_DEBUG, "libmicrohttpd says=\"%s\"", line);
    atomic_store(&endpoint->relief_ms, kinf__clock_now_ms() + RELIEF_MS);
    kinf__server_expect(endpoint->rules.server, atomic_load(&endpoint->relief_ms));
}

/* A connection that ends as soon as it has begun. */
static void come_and_go(struct kinf__endpoint *endpoint)
{
    const struct sockaddr_un address = { .sun_family = AF_UNIX };
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return;
    close(ends[0]);
    (void)MHD_add_connection(endpoint->mhd, ends[1], (const struct sockaddr *)&address,
                             sizeof address.sun_family);
}

/* When there was no descriptor for a connection the library accepts no other until one of those ends
 * that it has, and watches last long. It says so, and somebody waits still a second later. Runs on the
 * server's timer. */
static int64_t relieve(int64_t now_ms, void *ctx)
{
    struct kinf__endpoint *endpoint = ctx;
    struct pollfd waiting = { endpoint->listen_fd, POLLIN, 0 };
    int64_t due_ms = atomic_load(&endpoint->relief_ms), next_ms = KINF__NEVER_MS;

    if (due_ms > now_ms)
        return due_ms;
    if (poll(&waiting, 1, 0) > 0) {
        next_ms = now_ms + RELIEF_MS;
        come_and_go(endpoint);
    }
    return atomic_compare_exchange_strong(&endpoint->relief_ms, &due_ms, next_ms) ? next_ms
                                                                                  : due_ms;
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
#if MHD_VERSION >= KINF__MHD_STRICT_LIBRARY
    struct MHD_OptionItem strictness[] = { { MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1, NULL },
                                           { MHD_OPTION_END, 0, NULL } };
#else
    struct MHD_OptionItem strictness[] = { { MHD_OPTION_END, 0, NULL } };
#endif
    unsigned flags =
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_ERROR_LOG;
    char words[WORDS_SIZE] = "";
    sigset_t all, before;

    if (endpoint->identity == NULL)
        tls[0].option = MHD_OPTION_END;
    else
        flags |= MHD_USE_TLS;
    endpoint->listen_fd = fd;
    endpoint->silent_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (endpoint->silent_fd < 0)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "eventfd");
    if (listen(fd, BACKLOG) < 0)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "listen");
    /* The library's thread would take the program's signals. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    last_words = words;
    endpoint->mhd = MHD_start_daemon(
        flags, 0, NULL, NULL, kinf__mhd_request_handle, &endpoint->rules,
        MHD_OPTION_EXTERNAL_LOGGER, log_library, endpoint, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_URI_LOG_CALLBACK, kinf__mhd_request_new, &endpoint->rules,
        MHD_OPTION_NOTIFY_COMPLETED, kinf__mhd_request_end, &endpoint->rules,
        MHD_OPTION_NOTIFY_CONNECTION, note_connection, endpoint, MHD_OPTION_CONNECTION_LIMIT,
        endpoint->rules.is_health ? PROBE_CONNECTIONS : (unsigned)INT_MAX,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)KINF__MHD_IDLE_S, MHD_OPTION_THREAD_STACK_SIZE,
        kinf__thread_stack(), MHD_OPTION_ARRAY, tls, MHD_OPTION_ARRAY, strictness, MHD_OPTION_END);
    last_words = NULL;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (endpoint->mhd == NULL)
        return kinf__error_set(err, KINF_ERR_SYSTEM, "the HTTP server does not start: %s", words);
    endpoint->hook = (struct kinf__tick_hook){ .tick = relieve, .ctx = endpoint };
    kinf__server_add_hook(endpoint->rules.server, &endpoint->hook);
    return 0;
}

static int prepare_unix(struct kinf__endpoint *endpoint, const char *path,
                        const struct kinf__endpoint_options *options, struct kinf_error *err)
{
    endpoint->rules.is_unix = true;
    endpoint->path = strdup(path);
    endpoint->unix_mode = options->unix_mode != 0 ? options->unix_mode : UNIX_MODE;
    endpoint->rules.users = calloc(options->n_users + 1, sizeof endpoint->rules.users[0]);
    if (endpoint->path == NULL || endpoint->rules.users == NULL)
        return kinf__error_no_memory(err);
    for (size_t i = 0; i < options->n_users; i++)
        endpoint->rules.users[i] = options->users[i];
    endpoint->rules.n_users = options->n_users;
    return 0;
}

/* What needs no socket. */
static int prepare(struct kinf__endpoint *endpoint, const char *path,
                   const struct kinf__endpoint_options *options, struct kinf_error *err)
{
    int failed;

    if (options->is_health) {
        endpoint->rules.is_health = true;
        endpoint->rules.peers.are_uncounted = true;
        endpoint->is_guarded = true;
    }
    if (path != NULL)
        return prepare_unix(endpoint, path, options, err);
    if (options->is_health)
        return 0;
    if (options->authorizer != NULL && options->cert_file == NULL)
        return kinf__error_set(err, KINF_ERR_CONFIG, "tokens are not taken without TLS");
    endpoint->rules.authorizer = options->authorizer;
    endpoint->is_guarded =
        options->authorizer != NULL || (options->is_guarded && options->cert_file != NULL);
    endpoint->rules.checks_host = !endpoint->is_guarded;
    if (options->cert_file == NULL)
        return 0;
    failed = kinf__identity_new(options->cert_file, options->key_file, &endpoint->identity, err);
    if (failed == 0 && options->authorizer != NULL && options->client_ca_file != NULL)
        failed = kinf__client_authority_new(options->client_ca_file,
                                            &endpoint->rules.client_authority, err);
    return failed;
}

static void note_file(struct kinf__endpoint *endpoint)
{
    struct stat file;

    if (endpoint->path != NULL && lstat(endpoint->path, &file) == 0) {
        endpoint->device = file.st_dev;
        endpoint->inode = file.st_ino;
    }
}

static int open_socket(struct kinf__endpoint *endpoint, const struct kinf__address *address,
                       struct kinf_error *err)
{
    int fd = -1, size = SEND_BUFFER_BYTES;
    int failed = kinf__address_bind(address, endpoint->is_guarded, endpoint->unix_mode, &fd, err);

    if (failed < 0)
        return failed;
    /* Connections inherit it: what a client that takes nothing holds in the kernel. */
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    endpoint->url = kinf__address_url(address, fd, endpoint->identity != NULL ? "https" : "http");
    note_file(endpoint);
    failed = endpoint->url != NULL ? start(endpoint, fd, err) : kinf__error_no_memory(err);
    if (failed < 0)
        close(fd);
    return failed;
}

static void init(struct kinf__endpoint *endpoint, struct kinf__server *server)
{
    endpoint->rules.server = server;
    endpoint->silent_fd = -1;
    atomic_init(&endpoint->relief_ms, KINF__NEVER_MS);
    kinf__peers_init(&endpoint->rules.peers, server);
    kinf__turns_init(&endpoint->rules.turns);
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
    init(endpoint, server);
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

/* The kernel gives a name that nobody has, in the abstract namespace. */
static int bind_local(struct sockaddr_un *ret_address, socklen_t *ret_len, struct kinf_error *err)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    socklen_t len = sizeof address;

    if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address.sun_family) == 0 &&
        getsockname(fd, (struct sockaddr *)&address, &len) == 0) {
        *ret_address = address;
        *ret_len = len;
        return fd;
    }
    if (fd >= 0)
        close(fd); /* untested: the kernel refuses */
    return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "no unix socket");
}

int kinf__endpoint_start_local(struct kinf__server *server, struct kinf__endpoint **ret_endpoint,
                               struct sockaddr_un *ret_address, socklen_t *ret_address_len,
                               struct kinf_error *err)
{
    struct kinf__endpoint *endpoint = calloc(1, sizeof *endpoint);
    int fd, failed;

    if (endpoint == NULL)
        return kinf__error_no_memory(err);
    init(endpoint, server);
    endpoint->rules.is_unix = true;
    endpoint->rules.is_local = true;
    fd = bind_local(ret_address, ret_address_len, err);
    failed = fd < 0 ? fd : start(endpoint, fd, err);
    if (failed < 0) {
        if (fd >= 0)
            close(fd);
        kinf__endpoint_free(endpoint);
        return failed;
    }
    *ret_endpoint = endpoint;
    return 0;
}

const char *kinf__endpoint_url(const struct kinf__endpoint *endpoint)
{
    return endpoint->url;
}

/* Who found none may have begun to listen there, and the file is its own then. As long as this one
 * listens nobody takes the file for abandoned. */
static void remove_file(const struct kinf__endpoint *endpoint)
{
    struct stat file;

    if (endpoint->path != NULL && lstat(endpoint->path, &file) == 0 &&
        file.st_dev == endpoint->device && file.st_ino == endpoint->inode)
        unlink(endpoint->path);
}

/* MHD_quiesce_daemon() takes the socket out of the epoll set of the library's thread, which ends the
 * program if that was about to do so. When another file takes the socket's place, the kernel takes it
 * out, and closes it. */
void kinf__endpoint_quiesce(struct kinf__endpoint *endpoint)
{
    remove_file(endpoint);
    dup3(endpoint->silent_fd, endpoint->listen_fd, O_CLOEXEC);
}

void kinf__endpoint_free(struct kinf__endpoint *endpoint)
{
    if (endpoint == NULL)
        return;
    if (endpoint->mhd != NULL) {
        kinf__server_remove_hook(endpoint->rules.server, &endpoint->hook);
        MHD_stop_daemon(endpoint->mhd);
    }
    kinf__close_fd(&endpoint->silent_fd);
    kinf__peers_release(&endpoint->rules.peers);
    kinf__identity_free(endpoint->identity);
    kinf__client_authority_free(endpoint->rules.client_authority);
    free(endpoint->rules.users);
    free(endpoint->path);
    free(endpoint->url);
    free(endpoint);
}

int kinf__endpoint_check_files(const char *cert_file, const char *key_file,
                               const char *client_ca_file, struct kinf_error *err)
{
    struct kinf__client_authority *authority = NULL;
    struct kinf__identity *identity;
    int failed = kinf__identity_new(cert_file, key_file, &identity, err);

    if (failed < 0)
        return failed;
    kinf__identity_free(identity);
    if (client_ca_file != NULL)
        failed = kinf__client_authority_new(client_ca_file, &authority, err);
    if (failed == 0)
        kinf__client_authority_free(authority);
    return failed;
}
