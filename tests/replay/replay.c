/*
 * The server: listening, the lists that all connections share, what tests ask. Neighbours:
 * connection.c runs a connection, script.c and generate.c make what is played. Invariant: a
 * connection stays in the list until its thread is joined, and its descriptor is closed under the
 * lock, so that stop never shuts down somebody else's.
 */
#include "replay/replay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/evp.h>

#include "base/clock.h"
#include "base/error.h"
#include "replay/replay_priv.h"

#define DEFAULT_TRANSCRIPTS_DIR "tests/data/transcripts"
#define BACKLOG                 128

/* --- for connections --- */

static bool is_usable(const struct replay__exchange *exchange, const struct replay_request *request)
{
    return (exchange->max_uses == 0 || exchange->n_used < exchange->max_uses) &&
           replay__matcher_matches(&exchange->matcher, request);
}

static struct replay__exchange *choose_locked(struct replay *replay,
                                              const struct replay_request *request)
{
    for (size_t i = 0; i < replay->script.n_exchanges; i++) {
        if (is_usable(&replay->script.exchanges[i], request))
            return &replay->script.exchanges[i];
    }
    return NULL;
}

static bool list_locked(struct replay *replay, struct replay_request *request)
{
    struct replay_request **requests =
        realloc(replay->requests, (replay->n_requests + 1) * sizeof *requests);

    if (requests == NULL)
        return false;
    replay->requests = requests;
    requests[replay->n_requests++] = request;
    return true;
}

const struct replay__exchange *replay__admit(struct replay *replay, struct replay_request *request,
                                             bool *ret_listed)
{
    struct replay__exchange *exchange;

    pthread_mutex_lock(&replay->lock);
    exchange = choose_locked(replay, request);
    if (exchange != NULL)
        exchange->n_used++;
    else
        replay->n_violations++;
    request->is_expected = exchange != NULL;
    *ret_listed = (exchange == NULL || !exchange->is_unlisted) && list_locked(replay, request);
    pthread_cond_broadcast(&replay->changed);
    pthread_mutex_unlock(&replay->lock);
    return exchange;
}

void replay__note_answered(struct replay__connection *connection)
{
    struct replay *replay = connection->replay;

    if (connection->is_answered)
        return;
    connection->is_answered = true;
    pthread_mutex_lock(&replay->lock);
    replay->n_answered++;
    pthread_cond_broadcast(&replay->changed);
    pthread_mutex_unlock(&replay->lock);
}

enum replay__wake_up replay__look(struct replay__connection *connection, unsigned signal)
{
    struct replay *replay = connection->replay;
    enum replay__wake_up wake_up = REPLAY__WAKE_UP_NOTHING;

    pthread_mutex_lock(&replay->lock);
    kinf__waker_clear(&connection->waker);
    if (replay->is_stopping) {
        wake_up = REPLAY__WAKE_UP_STOP;
    } else if (signal != 0 && replay->signals[signal] > 0) {
        replay->signals[signal]--;
        wake_up = REPLAY__WAKE_UP_SIGNAL;
    }
    pthread_mutex_unlock(&replay->lock);
    return wake_up;
}

void replay__connection_leave(struct replay__connection *connection)
{
    struct replay *replay = connection->replay;

    pthread_mutex_lock(&replay->lock);
    replay__channel_close(&connection->channel);
    connection->is_open = false;
    connection->is_finished = true;
    replay->n_open--;
    pthread_cond_broadcast(&replay->changed);
    pthread_mutex_unlock(&replay->lock);
}

/* --- accepting --- */

static void connection_free(struct replay__connection *connection)
{
    kinf__waker_release(&connection->waker);
    free(connection);
}

static struct replay__connection *connection_new(struct replay *replay, int fd)
{
    struct replay__connection *connection = calloc(1, sizeof *connection);

    if (connection == NULL)
        return NULL;
    if (kinf__waker_init(&connection->waker, NULL) < 0) {
        free(connection);
        return NULL;
    }
    kinf__list_init(&connection->in_replay);
    connection->replay = replay;
    connection->fd = fd;
    connection->is_open = true;
    return connection;
}

/* The thread starts under the lock, so that nobody joins it before its handle is written. */
static void take_in(struct replay *replay, int fd)
{
    struct replay__connection *connection = connection_new(replay, fd);

    if (connection == NULL) {
        close(fd);
        return;
    }
    pthread_mutex_lock(&replay->lock);
    connection->number = ++replay->n_accepted;
    if (kinf__thread_start(&connection->thread, "replay-conn", replay__connection_main, connection,
                           NULL) == 0) {
        kinf__list_push_back(&replay->connections, &connection->in_replay);
        replay->n_open++;
        connection = NULL;
    }
    pthread_cond_broadcast(&replay->changed);
    pthread_mutex_unlock(&replay->lock);
    if (connection != NULL) {
        close(fd);
        connection_free(connection);
    }
}

static struct replay__connection *take_finished_locked(struct replay *replay, bool even_running)
{
    KINF__LIST_FOR_EACH (node, &replay->connections) {
        struct replay__connection *connection =
            KINF__LIST_ENTRY(node, struct replay__connection, in_replay);

        if (connection->is_finished || even_running) {
            kinf__list_remove(node);
            return connection;
        }
    }
    return NULL;
}

/* Joins the threads that have finished, or all. */
static void join_connections(struct replay *replay, bool even_running)
{
    struct replay__connection *connection;

    do {
        pthread_mutex_lock(&replay->lock);
        connection = take_finished_locked(replay, even_running);
        pthread_mutex_unlock(&replay->lock);
        if (connection != NULL) {
            pthread_join(connection->thread, NULL);
            connection_free(connection);
        }
    } while (connection != NULL);
}

static void *accept_main(void *ctx)
{
    struct replay *replay = ctx;
    struct pollfd fds[] = { { .fd = replay->listener, .events = POLLIN },
                            { .fd = replay->stop.fd, .events = POLLIN } };

    while (fds[1].revents == 0) {
        int fd;

        join_connections(replay, false);
        if (poll(fds, KINF__ARRAY_LEN(fds), -1) < 0 || fds[0].revents == 0)
            continue;
        fd = accept4(replay->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            take_in(replay, fd);
    }
    return NULL;
}

/* --- start and stop --- */

static int listen_on_loopback(struct replay *replay, struct kinf_error *err)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;

    replay->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (replay->listener < 0 || bind(replay->listener, (struct sockaddr *)&address, size) < 0 ||
        listen(replay->listener, BACKLOG) < 0 ||
        getsockname(replay->listener, (struct sockaddr *)&address, &size) < 0)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "cannot listen on loopback");
    replay->port = ntohs(address.sin_port);
    snprintf(replay->url, sizeof replay->url, "%s://127.0.0.1:%u",
             replay->tls.context != NULL ? "https" : "http", replay->port);
    return 0;
}

static int make_script(struct replay *replay, const struct replay_options *options,
                       struct kinf_error *err)
{
    const char *dir =
        options->transcripts_dir != NULL ? options->transcripts_dir : DEFAULT_TRANSCRIPTS_DIR;
    int failed = 0;

    if (options->script != NULL)
        failed = replay__script_parse(&replay->script, options->script, dir, err);
    if (failed == 0 && options->generate.pod_file != NULL)
        failed =
            replay__generator_new(&options->generate, &replay->script, &replay->generator, err);
    if (failed == 0 && replay->script.has_discovery)
        failed = replay__script_add_discovery(&replay->script, err);
    return failed;
}

static void replay_free(struct replay *replay)
{
    for (size_t i = 0; i < replay->n_requests; i++) {
        replay__request_release(replay->requests[i]);
        free(replay->requests[i]);
    }
    free(replay->requests);
    replay__script_release(&replay->script);
    replay__generator_free(replay->generator);
    replay__tls_release(&replay->tls);
    if (replay->listener >= 0)
        close(replay->listener);
    kinf__waker_release(&replay->stop);
    pthread_cond_destroy(&replay->changed);
    pthread_mutex_destroy(&replay->lock);
    free(replay);
}

static struct replay *replay_new(void)
{
    struct replay *replay = calloc(1, sizeof *replay);
    pthread_condattr_t attributes;

    if (replay == NULL)
        return NULL;
    replay->listener = -1;
    replay->stop.fd = -1;
    kinf__list_init(&replay->connections);
    pthread_mutex_init(&replay->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&replay->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return replay;
}

int replay__start(const struct replay_options *options, struct replay__script take_script,
                  struct replay **ret_replay, struct kinf_error *err)
{
    struct replay *replay = replay_new();
    int failed;

    if (replay == NULL) {
        replay__script_release(&take_script);
        return kinf__error_no_memory(err);
    }
    replay->script = take_script;
    failed = kinf__waker_init(&replay->stop, err);
    if (failed == 0)
        failed = make_script(replay, options, err);
    if (failed == 0 && !options->plain)
        failed = replay__tls_init(&replay->tls, options, err);
    if (failed == 0)
        failed = listen_on_loopback(replay, err);
    if (failed == 0)
        failed = kinf__thread_start(&replay->thread, "replay", accept_main, replay, err);
    if (failed < 0)
        replay_free(replay);
    else
        *ret_replay = replay;
    return failed;
}

int replay_start(const struct replay_options *options, struct replay **ret_replay,
                 struct kinf_error *err)
{
    const struct replay__script none = REPLAY__SCRIPT_INIT;

    return replay__start(options, none, ret_replay, err);
}

void replay_stop(struct replay *replay)
{
    if (replay == NULL)
        return;
    pthread_mutex_lock(&replay->lock);
    replay->is_stopping = true;
    pthread_cond_broadcast(&replay->changed);
    pthread_mutex_unlock(&replay->lock);
    kinf__waker_set(&replay->stop);
    pthread_join(replay->thread, NULL);
    pthread_mutex_lock(&replay->lock);
    KINF__LIST_FOR_EACH (node, &replay->connections) {
        struct replay__connection *connection =
            KINF__LIST_ENTRY(node, struct replay__connection, in_replay);

        kinf__waker_set(&connection->waker);
        if (connection->is_open)
            shutdown(connection->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&replay->lock);
    join_connections(replay, true);
    replay_free(replay);
}

/* --- how to reach it --- */

const char *replay_url(const struct replay *replay)
{
    return replay->url;
}

uint16_t replay_port(const struct replay *replay)
{
    return replay->port;
}

const char *replay_ca_pem(const struct replay *replay)
{
    return replay->tls.ca_pem != NULL ? replay->tls.ca_pem : "";
}

static int write_authority(const struct replay *replay, FILE *file)
{
    size_t len = strlen(replay_ca_pem(replay));
    KINF__AUTO_FREE char *encoded = malloc(4 * (len / 3 + 1) + 1);

    if (encoded == NULL)
        return KINF_ERR_NO_MEMORY;
    EVP_EncodeBlock((unsigned char *)encoded, (const unsigned char *)replay_ca_pem(replay),
                    (int)len);
    fprintf(file, "    certificate-authority-data: %s\n", encoded);
    return 0;
}

int replay_write_kubeconfig(const struct replay *replay, const char *path, struct kinf_error *err)
{
    FILE *file = fopen(path, "we");
    int failed = 0;

    if (file == NULL)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "cannot write %s", path);
    fprintf(file,
            "apiVersion: v1\nkind: Config\ncurrent-context: replay\n"
            "contexts:\n- name: replay\n  context:\n    cluster: replay\n    user: replay\n"
            "users:\n- name: replay\n  user:\n    token: replay\n"
            "clusters:\n- name: replay\n  cluster:\n    server: %s\n",
            replay->url);
    if (replay->tls.ca_pem != NULL)
        failed = write_authority(replay, file);
    if (fclose(file) != 0 && failed == 0)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "cannot write %s", path);
    return failed < 0 ? kinf__error_no_memory(err) : 0;
}

/* --- what it is told and what it saw --- */

void replay_signal(struct replay *replay, unsigned signal)
{
    if (signal == 0 || signal > REPLAY_MAX_SIGNAL)
        return;
    pthread_mutex_lock(&replay->lock);
    replay->signals[signal]++;
    KINF__LIST_FOR_EACH (node, &replay->connections)
        kinf__waker_set(&KINF__LIST_ENTRY(node, struct replay__connection, in_replay)->waker);
    pthread_mutex_unlock(&replay->lock);
}

typedef bool condition(const struct replay *replay, size_t n);

/* Waits until the condition holds, under the lock; whether it does. */
static bool wait_locked(struct replay *replay, condition *holds, size_t n, int64_t timeout_ms)
{
    int64_t end_ms = kinf__clock_add_ms(kinf__clock_now_ms(), timeout_ms);
    struct timespec end = { .tv_sec = end_ms / 1000, .tv_nsec = end_ms % 1000 * 1000000 };

    while (!holds(replay, n)) {
        if (pthread_cond_timedwait(&replay->changed, &replay->lock, &end) == ETIMEDOUT)
            return holds(replay, n);
    }
    return true;
}

static bool wait_for(struct replay *replay, condition *holds, size_t n, int64_t timeout_ms)
{
    bool held;

    pthread_mutex_lock(&replay->lock);
    held = wait_locked(replay, holds, n, timeout_ms);
    pthread_mutex_unlock(&replay->lock);
    return held;
}

static bool has_request(const struct replay *replay, size_t n)
{
    return replay->n_requests > n;
}

const struct replay_request *replay_wait_request(struct replay *replay, size_t n,
                                                 int64_t timeout_ms)
{
    const struct replay_request *request = NULL;

    pthread_mutex_lock(&replay->lock);
    if (wait_locked(replay, has_request, n, timeout_ms))
        request = replay->requests[n];
    pthread_mutex_unlock(&replay->lock);
    return request;
}

static size_t read_count(struct replay *replay, const size_t *count)
{
    size_t n;

    pthread_mutex_lock(&replay->lock);
    n = *count;
    pthread_mutex_unlock(&replay->lock);
    return n;
}

size_t replay_n_requests(struct replay *replay)
{
    return read_count(replay, &replay->n_requests);
}

size_t replay_n_violations(struct replay *replay)
{
    return read_count(replay, &replay->n_violations);
}

static bool is_used_up(const struct replay *replay, size_t n)
{
    (void)n;
    for (size_t i = 0; i < replay->script.n_exchanges; i++) {
        if (replay->script.exchanges[i].n_used < replay->script.exchanges[i].max_uses)
            return false;
    }
    return true;
}

bool replay_wait_used_up(struct replay *replay, int64_t timeout_ms)
{
    return wait_for(replay, is_used_up, 0, timeout_ms);
}

static bool has_answered(const struct replay *replay, size_t n)
{
    return replay->n_answered >= n;
}

bool replay_wait_answered(struct replay *replay, size_t n, int64_t timeout_ms)
{
    return wait_for(replay, has_answered, n, timeout_ms);
}

static bool has_open(const struct replay *replay, size_t n)
{
    return replay->n_open == n;
}

bool replay_wait_connections(struct replay *replay, size_t n, int64_t timeout_ms)
{
    return wait_for(replay, has_open, n, timeout_ms);
}

uint64_t replay_generated_checksum(const struct replay *replay)
{
    return replay->generator != NULL ? replay__generator_checksum(replay->generator) : 0;
}

uint64_t replay_generated_sum(const struct replay *replay, uint64_t n_events, bool has_phase)
{
    return replay->generator != NULL ? replay__generator_sum(replay->generator, n_events, has_phase)
                                     : 0;
}
