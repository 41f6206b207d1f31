/*
 * Requests, as libmicrohttpd brings them. Neighbours: endpoint.c starts the library, exchange.c makes
 * answers, peer.c counts how long a request takes to arrive.
 *
 * The library's traps, and what is done about them: stopping it with a suspended connection aborts
 * the process, so the server is stopped first, which wakes every exchange, and nothing suspends once
 * that has begun. A body reader that returns 0 without suspending would be called in a loop. The
 * handler's URL is unescaped already, so the target is taken from the log callback. A suspended
 * connection does not see that its peer is gone: server_time.c does.
 *
 * The library's own way to change protocols is not used: with TLS it stalls, and it ends connections
 * under a lock that resuming others takes. A connection with a tunnel sleeps, and is closed when it
 * wakes up.
 */
#include "serve/mhd_request.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "serve/address.h"
#include "serve/exchange.h"
#include "serve/mhd_response.h"
#include "serve/request_head.h"

#define LONG_TARGET_BYTES 1024        /* reading it may take as long as answering others */
#define BODY_TIMEOUT_MS   30000       /* from the end of the head to the end of a request's body */
#define WATCH_READ_BYTES  (16u << 10) /* of the connection's memory stays untouched what is more */
#define HEADERS_MAX       64
#define RECEIVE_MAX       (16u << 20) /* of a body that nobody wants */

struct mhd_request {
    /* constant */
    struct kinf__mhd_request_rules *rules;
    struct MHD_Connection *mhd;
    int fd;
    char *target;
    const char *target_at;        /* in the library's memory: a place, not a text */
    struct kinf__header *headers; /* owned; the texts are the library's */
    struct kinf__request_head head;
    /* the connection's thread */
    struct kinf__exchange *exchange;
    size_t n_received;
    bool awaits_hang_up;
    struct kinf__turn turn;
    struct kinf__mutex lock;
    /* guarded by lock */
    bool is_woken; /* since the reader looked */
    bool is_suspended;
    bool waits_for_turn;         /* then nothing else ends that, but the server's stop */
    struct kinf__tunnel *tunnel; /* NULL: there is none; then it is what is woken */
};

static void resume_locked(struct mhd_request *request)
{
    if (!request->is_suspended)
        return;
    request->is_suspended = request->waits_for_turn = false;
    MHD_resume_connection(request->mhd);
}

static void wake(void *ctx)
{
    struct mhd_request *request = ctx;

    kinf__mutex_lock(&request->lock);
    request->is_woken = true;
    if (request->tunnel != NULL)
        kinf__tunnel_wake(request->tunnel);
    else if (!request->waits_for_turn || kinf__server_is_stopping(request->rules->server))
        resume_locked(request);
    kinf__mutex_unlock(&request->lock);
}

static void wake_for_turn(void *ctx)
{
    struct mhd_request *request = ctx;

    kinf__mutex_lock(&request->lock);
    resume_locked(request);
    kinf__mutex_unlock(&request->lock);
}

/* Returns false if it was woken since begin_work(): then there is something to do. */
static bool suspend(struct mhd_request *request)
{
    bool is_woken;

    /* The library does not look at the socket of a connection that sleeps. */
    if (!request->awaits_hang_up)
        kinf__exchange_await_hang_up(request->exchange, request->fd);
    request->awaits_hang_up = true;
    kinf__mutex_lock(&request->lock);
    is_woken = request->is_woken;
    if (!is_woken) {
        request->is_suspended = true;
        MHD_suspend_connection(request->mhd);
    }
    kinf__mutex_unlock(&request->lock);
    return !is_woken;
}

static void begin_work(struct mhd_request *request)
{
    kinf__mutex_lock(&request->lock);
    request->is_woken = false;
    kinf__mutex_unlock(&request->lock);
}

/* Unless the server stops: then each connection is through when the endpoint ends. */
static bool sleep_for_turn(struct mhd_request *request)
{
    bool sleeps;

    kinf__mutex_lock(&request->lock);
    sleeps = !kinf__server_is_stopping(request->rules->server);
    if (sleeps) {
        request->is_suspended = request->waits_for_turn = true;
        MHD_suspend_connection(request->mhd);
    }
    kinf__mutex_unlock(&request->lock);
    if (sleeps)
        kinf__turn_wait(&request->rules->turns, &request->turn);
    return sleeps;
}

static int64_t now_us(void)
{
    return kinf__clock_now_ns() / 1000;
}

/* Begins work that end_slice() ends, or returns false: the connection sleeps until its turn. */
static bool begin_slice(struct mhd_request *request)
{
    begin_work(request);
    return kinf__turn_begin(&request->rules->turns, &request->turn, now_us()) ||
           !sleep_for_turn(request);
}

static void end_slice(struct mhd_request *request)
{
    kinf__turn_end(&request->rules->turns, &request->turn, now_us());
}

static void cut_off(void *ctx)
{
    struct mhd_request *request = ctx;

    shutdown(request->fd, SHUT_RDWR);
    wake(request);
}

static bool has_hung_up(const struct mhd_request *request)
{
    struct pollfd poller = { .fd = request->fd, .events = POLLRDHUP };

    return poll(&poller, 1, 0) == 1;
}

/* Only a suspended connection is asked: of the others the library takes care. */
static bool is_gone(void *ctx)
{
    struct mhd_request *request = ctx;
    bool is_suspended;

    kinf__mutex_lock(&request->lock);
    is_suspended = request->is_suspended;
    kinf__mutex_unlock(&request->lock);
    return is_suspended && has_hung_up(request);
}

gnutls_session_t kinf__mhd_session(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);

    return info != NULL ? info->tls_session : NULL;
}

static struct kinf__peer *peer_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* The library would say FIN before it closes: a client that is quick would see no reset. Whatever is
 * no TCP is closed as ever. */
static void reset(const struct mhd_request *request)
{
    const struct sockaddr nobody = { .sa_family = AF_UNSPEC };

    (void)connect(request->fd, &nobody, sizeof nobody);
}

static ssize_t read_body(void *ctx, uint64_t position, char *buf, size_t size)
{
    struct mhd_request *request = ctx;
    const struct kinf__answer *answer = kinf__exchange_step(request->exchange);
    ssize_t n;

    (void)position;
    if (answer->stream->is_watch && size > WATCH_READ_BYTES)
        size = WATCH_READ_BYTES;
    do {
        if (!begin_slice(request))
            return 0;
        n = answer->stream->read(answer->stream, buf, size);
        end_slice(request);
        /* A stop waits for nobody's walk: the answer is cut. */
    } while ((n == KINF__STREAM_LATER && !kinf__server_is_stopping(request->rules->server)) ||
             (n == 0 && !suspend(request)));
    if (n == KINF__STREAM_END)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n == KINF__STREAM_RESET)
        reset(request);
    return n < 0 ? MHD_CONTENT_READER_END_WITH_ERROR : n;
}

/* The library calls again, and closes; that may be before this returns. */
static void end_tunnel(void *ctx)
{
    struct mhd_request *request = ctx;

    MHD_resume_connection(request->mhd);
}

/* What a client sends before it has the answer is lost with the library's buffer: it may not. */
static enum MHD_Result begin_tunnel(struct mhd_request *request, const struct kinf__answer *answer)
{
    gnutls_session_t session = kinf__mhd_session(request->mhd);
    KINF__AUTO_BUFFER head = KINF__BUFFER_INIT;
    struct kinf__tunnel *tunnel;
    int yes = 1;

    if (kinf__mhd_response_write_upgrade(answer, &head) < 0)
        return MHD_NO; /* no memory */
    tunnel = kinf__exchange_tunnel(request->exchange, &head, end_tunnel, request);
    if (tunnel == NULL)
        return MHD_NO; /* no memory */
    (void)setsockopt(request->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (session != NULL)
        kinf__tls_transport_leave(kinf__peer_transport(peer_of(request->mhd)));
    kinf__mutex_lock(&request->lock);
    request->tunnel = tunnel;
    kinf__mutex_unlock(&request->lock);
    MHD_suspend_connection(request->mhd);
    kinf__tunnel_open(tunnel, request->fd, session);
    return MHD_YES;
}

static enum MHD_Result send_answer(struct mhd_request *request, const struct kinf__answer *answer)
{
    struct MHD_Response *response;
    enum MHD_Result result;

    if (answer->breaks == KINF__STREAM_RESET)
        reset(request);
    if (answer->breaks != 0)
        return MHD_NO;
    if (answer->code == 101)
        return begin_tunnel(request, answer);
    response = kinf__mhd_response_new(answer, read_body, request);
    if (response == NULL)
        return MHD_NO;
    result = MHD_queue_response(request->mhd, (unsigned)answer->code, response);
    MHD_destroy_response(response);
    return result;
}

/* --- the head --- */

struct headers {
    struct kinf__header *items;
    size_t n_items;
    size_t max;
};

static enum MHD_Result collect_header(void *ctx, enum MHD_ValueKind kind, const char *name,
                                      const char *value)
{
    struct headers *headers = ctx;

    (void)kind;
    if (headers->n_items == headers->max)
        return MHD_NO; /* untested: the library counted them before */
    headers->items[headers->n_items++] = (struct kinf__header){ name, value != NULL ? value : "" };
    return MHD_YES;
}

static int check_form(struct mhd_request *request, const char *version, const char **ret_why)
{
    struct kinf__raw_head raw = { .method = request->head.method,
                                  .target = request->target,
                                  .target_at = request->target_at,
                                  .version = version,
                                  .headers = request->head.headers,
                                  .n_headers = request->head.n_headers };

    /* Later ones refuse by themselves what cannot be seen here (endpoint.c), and may lay out a head
     * in another way. */
    if (MHD_VERSION < KINF__MHD_STRICT_LIBRARY)
        raw.size = MHD_get_connection_info(request->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)
                       ->header_size;
    return kinf__raw_head_check(&raw, ret_why);
}

/* Returns 0, or the status of a refusal. */
static int read_head(struct mhd_request *request, const char *method, const char *version,
                     const char **ret_why)
{
    int n = MHD_get_connection_values(request->mhd, MHD_HEADER_KIND, NULL, NULL);
    struct headers headers = { .max = n > 0 ? (size_t)n : 0 };

    *ret_why = "431 Request Header Fields Too Large";
    if (n > HEADERS_MAX)
        return 431;
    *ret_why = "500 Internal Server Error: out of memory";
    headers.items = request->headers = calloc(headers.max + 1, sizeof *headers.items);
    if (headers.items == NULL)
        return 500;
    MHD_get_connection_values(request->mhd, MHD_HEADER_KIND, collect_header, &headers);
    request->head = kinf__request_head_of(method, kinf_str_from(request->target), headers.items,
                                          headers.n_items);
    return check_form(request, version, ret_why);
}

/* 0: it may ask. */
static int check_client(const struct mhd_request *request, const char **ret_why)
{
    const struct kinf__mhd_request_rules *rules = request->rules;
    const char *host = kinf__request_head_value(&request->head, "Host");

    if (rules->is_local && !kinf__peer_is_local(request->fd)) {
        *ret_why = "403 Forbidden: this socket is of one process";
        return 403;
    }
    if (rules->n_users != 0 && !kinf__peer_is_one_of(request->fd, rules->users, rules->n_users)) {
        *ret_why = "403 Forbidden: this socket is not for your user";
        return 403;
    }
    if (rules->checks_host && host != NULL && !kinf__address_is_local_host(host)) {
        *ret_why = "403 Forbidden: the Host header names no loopback address";
        return 403;
    }
    return 0;
}

/* The library would wait for the body, of which nobody may know where it ends, so this is written
 * past it, behind all that it has answered so far; it closes. */
static enum MHD_Result refuse(const struct mhd_request *request, int code, const char *why)
{
    gnutls_session_t session = kinf__mhd_session(request->mhd);
    char text[256];
    int len = snprintf(text, sizeof text,
                       "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
                       "Connection: close\r\n\r\n%s",
                       code, MHD_get_reason_phrase_for((unsigned)code), why);

    if (session != NULL)
        (void)gnutls_record_send(session, text, (size_t)len);
    else
        (void)send(request->fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
    return MHD_NO;
}

/* --- steps --- */

static enum MHD_Result step(struct mhd_request *request)
{
    const struct kinf__answer *answer;

    /* It may have slept for long. */
    if (request->rules->turns.holder == &request->turn && has_hung_up(request))
        return MHD_NO;
    do {
        if (!begin_slice(request))
            return MHD_YES;
        answer = kinf__exchange_step(request->exchange);
        end_slice(request);
    } while (answer == NULL && !suspend(request));
    return answer != NULL ? send_answer(request, answer) : MHD_YES;
}

/* The library takes an answer in front of a body for these alone; for others it would wait. */
static bool may_answer_early(const struct kinf__request_head *head)
{
    return head->expects && (strcmp(head->method, "POST") == 0 || strcmp(head->method, "PUT") == 0);
}

/* A body comes behind the first step. A client that has its answer already is only listened to, since
 * closing would make the answer vanish with what is under way; one that asked first sends nothing. */
static enum MHD_Result begin_with_body(struct mhd_request *request)
{
    const struct kinf__answer *answer;

    begin_work(request);
    answer = kinf__exchange_step(request->exchange);
    return answer != NULL && may_answer_early(&request->head) ? send_answer(request, answer)
                                                              : MHD_YES;
}

/* The library calls again for what is left of a piece only when more has come, which is never behind
 * the last one: all is taken, or the connection sleeps until there is room. That time is not the
 * client's. */
static enum MHD_Result receive(struct mhd_request *request, const char *bytes, size_t *len)
{
    struct kinf__peer *peer = peer_of(request->mhd);
    bool sleeps = false;

    while (*len != 0 && !sleeps) {
        size_t n_taken;

        begin_work(request);
        n_taken = kinf__exchange_take_body(request->exchange, bytes, *len);
        bytes += n_taken;
        *len -= n_taken;
        request->n_received += n_taken;
        sleeps = n_taken == 0 && suspend(request);
    }
    if (sleeps)
        kinf__peer_forgive(&request->rules->peers, peer);
    else if (!kinf__peer_owes(peer))
        kinf__peer_await(&request->rules->peers, peer, BODY_TIMEOUT_MS);
    return request->n_received <= RECEIVE_MAX ? MHD_YES : MHD_NO;
}

/* NULL: none is asked for. */
static const struct kinf__client_certificate *judge_certificate(const struct mhd_request *request)
{
    struct kinf__client_certificate *certificate = kinf__peer_certificate(peer_of(request->mhd));
    const gnutls_datum_t *chain;
    unsigned n_chain = 0;

    if (request->rules->client_authority == NULL || certificate == NULL)
        return NULL;
    chain = gnutls_certificate_get_peers(kinf__mhd_session(request->mhd), &n_chain);
    kinf__client_certificate_judge(certificate, request->rules->client_authority, chain, n_chain,
                                   kinf__clock_now_ms());
    return certificate;
}

static struct kinf__exchange *new_exchange(struct mhd_request *request)
{
    const struct kinf__exchange_owner owner = {
        .wake = wake,
        .cut_off = cut_off,
        .is_gone = is_gone,
        .ctx = request,
        .authorizer = request->rules->authorizer,
        .address = kinf__peer_address(request->fd),
        .certificate = judge_certificate(request),
        .is_health = request->rules->is_health,
    };
    const union MHD_ConnectionInfo *address =
        MHD_get_connection_info(request->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    char peer[64] = "";

    if (request->rules->is_unix)
        kinf__peer_describe_process(request->fd, peer, sizeof peer);
    else if (address != NULL)
        kinf__peer_describe_address(address->client_addr, peer, sizeof peer);
    return kinf__exchange_new(request->rules->server, &owner, &request->head, peer);
}

static enum MHD_Result begin(struct mhd_request *request, const char *method, const char *version)
{
    struct kinf__peers *peers = &request->rules->peers;
    const char *why;
    int code;

    kinf__turn_init(&request->turn, strlen(request->target) > LONG_TARGET_BYTES, now_us(),
                    wake_for_turn, request);
    request->fd =
        MHD_get_connection_info(request->mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    code = read_head(request, method, version, &why);
    if (code == 0)
        code = check_client(request, &why);
    if (code != 0)
        return refuse(request, code, why);
    if (request->head.body_len != 0)
        kinf__peer_await(peers, peer_of(request->mhd), BODY_TIMEOUT_MS);
    else
        kinf__peer_forgive(peers, peer_of(request->mhd));
    request->exchange = new_exchange(request);
    if (request->exchange == NULL)
        return MHD_NO;
    return request->head.body_len != 0 ? begin_with_body(request) : MHD_YES;
}

/* --- the library's callbacks --- */

void *kinf__mhd_request_new(void *ctx, const char *target, struct MHD_Connection *mhd)
{
    struct mhd_request *request = calloc(1, sizeof *request);

    (void)ctx;
    (void)mhd;
    if (request == NULL)
        return NULL;
    request->target_at = target;
    request->target = strdup(target);
    if (request->target == NULL) {
        free(request);
        return NULL;
    }
    kinf__mutex_init(&request->lock, KINF__RANK_CONNECTION);
    return request;
}

/* Called once with the head, then for each piece of a body that the library has, then, and after
 * each suspension, until there is an answer. One in the first call would close the connection. */
enum MHD_Result kinf__mhd_request_handle(void *ctx, struct MHD_Connection *mhd, const char *url,
                                         const char *method, const char *version,
                                         const char *upload, size_t *upload_len, void **place)
{
    struct kinf__mhd_request_rules *rules = ctx;
    struct mhd_request *request = *place;

    (void)url;
    /* Of a connection that was refused, there may be bytes yet. */
    if (request == NULL || peer_of(mhd) == NULL || request->tunnel != NULL)
        return MHD_NO;
    if (request->exchange == NULL) {
        request->rules = rules;
        request->mhd = mhd;
        return begin(request, method, version);
    }
    if (*upload_len != 0)
        return receive(request, upload, upload_len);
    kinf__peer_forgive(&rules->peers, peer_of(mhd));
    kinf__exchange_end_body(request->exchange);
    return step(request);
}

void kinf__mhd_request_end(void *ctx, struct MHD_Connection *mhd, void **place,
                           enum MHD_RequestTerminationCode why)
{
    struct kinf__mhd_request_rules *rules = ctx;
    struct mhd_request *request = *place;

    (void)why;
    kinf__peer_await(&rules->peers, peer_of(mhd), KINF__MHD_IDLE_S * 1000);
    if (request == NULL)
        return;
    *place = NULL;
    kinf__turn_leave(&rules->turns, &request->turn);
    kinf__exchange_free(request->exchange);
    kinf__tunnel_free(request->tunnel);
    kinf__mutex_release(&request->lock);
    free(request->headers);
    free(request->target);
    free(request);
}
