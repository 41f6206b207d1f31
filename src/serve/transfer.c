/*
 * Requests, as libmicrohttpd brings them. Neighbours: endpoint.c starts the library, exchange.c makes
 * answers, peer.c counts how long a request takes to arrive.
 *
 * The library's traps, and what is done about them: stopping it with a suspended connection aborts
 * the process, so the server is stopped first, which wakes every exchange, and nothing suspends once
 * that has begun. A body reader that returns 0 without suspending would be called in a loop. The
 * handler's URL is unescaped already, so the target is taken from the log callback. A suspended
 * connection does not see that its peer is gone: server_time.c does.
 * Its way to change protocols is not used: with TLS it stalls, and it ends connections under a lock
 * that resuming others takes. A connection with a tunnel sleeps, and is closed when it wakes up.
 */
#include "serve/transfer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <gnutls/gnutls.h>

#include "base/clock.h"
#include "serve/address.h"
#include "serve/exchange.h"
#include "serve/passthrough.h"
#include "serve/request_head.h"

#define LONG_TARGET_BYTES 1024        /* reading it may take as long as answering others */
#define BODY_TIMEOUT_MS   30000       /* from the end of the head to the end of a request's body */
#define WATCH_READ_BYTES  (16u << 10) /* of the connection's memory stays untouched what is more */
#define HEADERS_MAX       64
#define RECEIVE_MAX       (16u << 20) /* of a body that nobody wants */
#define BLOCK_BYTES       (16u << 10) /* a buffer that the library holds as long as the answer */
#define WATCH_BLOCK_BYTES (1u << 10)  /* used by HTTP/1.0 alone: chunks are made in place */

struct transfer {
    /* constant */
    struct kinf__transfer_rules *rules;
    struct MHD_Connection *mhd;
    int fd;
    char *target;
    const char *target_at; /* in the library's memory: a place, not a text */
    /* the connection's thread */
    struct kinf__exchange *exchange;
    int64_t body_len; /* of the request; 0: none; negative: not told */
    size_t n_received;
    bool awaits_hang_up;
    struct kinf__turn turn;
    struct kinf__mutex lock;
    /* guarded by lock */
    bool is_woken; /* since the reader looked */
    bool is_suspended;
    bool waits_for_turn; /* then nothing else ends that, but the server's stop */
    struct kinf__tunnel *tunnel; /* NULL: there is none */
};

struct headers {
    struct kinf__header items[HEADERS_MAX];
    size_t n_items;
};

static void resume_locked(struct transfer *transfer)
{
    if (!transfer->is_suspended)
        return;
    transfer->is_suspended = transfer->waits_for_turn = false;
    MHD_resume_connection(transfer->mhd);
}

static void wake(void *ctx)
{
    struct transfer *transfer = ctx;

    kinf__mutex_lock(&transfer->lock);
    transfer->is_woken = true;
    if (transfer->tunnel != NULL)
        kinf__tunnel_wake(transfer->tunnel);
    else if (!transfer->waits_for_turn || kinf__server_is_stopping(transfer->rules->server))
        resume_locked(transfer);
    kinf__mutex_unlock(&transfer->lock);
}

static void wake_for_turn(void *ctx)
{
    struct transfer *transfer = ctx;

    kinf__mutex_lock(&transfer->lock);
    resume_locked(transfer);
    kinf__mutex_unlock(&transfer->lock);
}

/* Returns false if it was woken since begin_work(): then there is something to do. */
static bool suspend(struct transfer *transfer)
{
    bool is_woken;

    /* The library does not look at the socket of a connection that sleeps. */
    if (!transfer->awaits_hang_up)
        kinf__exchange_await_hang_up(transfer->exchange, transfer->fd);
    transfer->awaits_hang_up = true;
    kinf__mutex_lock(&transfer->lock);
    is_woken = transfer->is_woken;
    if (!is_woken) {
        transfer->is_suspended = true;
        MHD_suspend_connection(transfer->mhd);
    }
    kinf__mutex_unlock(&transfer->lock);
    return !is_woken;
}

static void begin_work(struct transfer *transfer)
{
    kinf__mutex_lock(&transfer->lock);
    transfer->is_woken = false;
    kinf__mutex_unlock(&transfer->lock);
}

/* Unless the server stops: then each connection is through when the endpoint ends. */
static bool sleep_for_turn(struct transfer *transfer)
{
    bool sleeps;

    kinf__mutex_lock(&transfer->lock);
    sleeps = !kinf__server_is_stopping(transfer->rules->server);
    if (sleeps) {
        transfer->is_suspended = transfer->waits_for_turn = true;
        MHD_suspend_connection(transfer->mhd);
    }
    kinf__mutex_unlock(&transfer->lock);
    if (sleeps)
        kinf__turn_wait(&transfer->rules->turns, &transfer->turn);
    return sleeps;
}

static int64_t now_us(void)
{
    return kinf__clock_now_ns() / 1000;
}

/* Begins work that end_slice() ends, or returns false: the connection sleeps until its turn. */
static bool begin_slice(struct transfer *transfer)
{
    begin_work(transfer);
    return kinf__turn_begin(&transfer->rules->turns, &transfer->turn, now_us()) ||
           !sleep_for_turn(transfer);
}

static void end_slice(struct transfer *transfer)
{
    kinf__turn_end(&transfer->rules->turns, &transfer->turn, now_us());
}

static void cut_off(void *ctx)
{
    struct transfer *transfer = ctx;

    shutdown(transfer->fd, SHUT_RDWR);
    wake(transfer);
}

static bool has_hung_up(const struct transfer *transfer)
{
    struct pollfd poller = { .fd = transfer->fd, .events = POLLRDHUP };

    return poll(&poller, 1, 0) == 1;
}

/* Only a suspended connection is asked: of the others the library takes care. */
static bool is_gone(void *ctx)
{
    struct transfer *transfer = ctx;
    bool is_suspended;

    kinf__mutex_lock(&transfer->lock);
    is_suspended = transfer->is_suspended;
    kinf__mutex_unlock(&transfer->lock);
    return is_suspended && has_hung_up(transfer);
}

static struct kinf__peer *peer_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* The library would say FIN before it closes: a client that is quick would see no reset. Whatever is
 * no TCP is closed as ever. */
static void reset(const struct transfer *transfer)
{
    const struct sockaddr nobody = { .sa_family = AF_UNSPEC };

    (void)connect(transfer->fd, &nobody, sizeof nobody);
}

static ssize_t read_body(void *ctx, uint64_t position, char *buf, size_t size)
{
    struct transfer *transfer = ctx;
    const struct kinf__answer *answer = kinf__exchange_step(transfer->exchange, NULL);
    ssize_t n;

    (void)position;
    if (answer->stream->is_watch && size > WATCH_READ_BYTES)
        size = WATCH_READ_BYTES;
    do {
        if (!begin_slice(transfer))
            return 0;
        n = answer->stream->read(answer->stream, buf, size);
        end_slice(transfer);
        /* A stop waits for nobody's walk: the answer is cut. */
    } while ((n == KINF__STREAM_LATER && !kinf__server_is_stopping(transfer->rules->server)) ||
             (n == 0 && !suspend(transfer)));
    if (n == KINF__STREAM_END)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n == KINF__STREAM_RESET)
        reset(transfer);
    return n < 0 ? MHD_CONTENT_READER_END_WITH_ERROR : n;
}

/* --- answers --- */

/* A header that does not fit the memory is left out; none of these changes what a body means, but
 * for Content-Encoding. */
static bool add_header(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

static void add_warnings(struct MHD_Response *response, const struct kinf__buffer *warnings)
{
    for (size_t at = 0; at < warnings->len; at += strlen(warnings->bytes + at) + 1)
        add_header(response, "Warning", warnings->bytes + at);
}

static void add_numbers(struct MHD_Response *response, const struct kinf__answer *answer)
{
    char text[32];

    if (answer->retry_after_s != 0) {
        snprintf(text, sizeof text, "%u", answer->retry_after_s);
        add_header(response, "Retry-After", text);
    }
    if (answer->staleness_ms >= 0) {
        snprintf(text, sizeof text, "%lld.%03lld", (long long)(answer->staleness_ms / 1000),
                 (long long)(answer->staleness_ms % 1000));
        add_header(response, "Kinformer-Staleness-Seconds", text);
    }
    add_warnings(response, &answer->warnings);
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

static struct MHD_Response *make_body(struct transfer *transfer, const struct kinf__answer *answer)
{
    if (answer->stream != NULL)
        return MHD_create_response_from_callback(
            answer->stream_len >= 0 ? (uint64_t)answer->stream_len : MHD_SIZE_UNKNOWN,
            answer->stream->is_watch ? WATCH_BLOCK_BYTES : BLOCK_BYTES, read_body, transfer, NULL);
    return MHD_create_response_from_buffer(answer->body.len, answer->body.bytes,
                                           MHD_RESPMEM_PERSISTENT);
}

/* NULL: out of memory, or a header does not fit without which the body means something else. */
static struct MHD_Response *make_response(struct transfer *transfer,
                                          const struct kinf__answer *answer)
{
    struct MHD_Response *response = make_body(transfer, answer);

    if (response == NULL || add_headers(response, answer))
        return response;
    MHD_destroy_response(response);
    return NULL;
}

/* --- tunnels --- */

static int write_upgrade(const struct kinf__answer *answer, struct kinf__buffer *out)
{
    int failed = kinf__buffer_append_str(
        out, KINF_STR("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                      "Kinformer-Source: upstream\r\n"));

    for (size_t i = 0; failed == 0 && i < answer->n_headers; i++) {
        const struct kinf__header *one = &answer->headers[i];

        if (kinf__passthrough_returns(one) || kinf__passthrough_names_protocol(one->name))
            failed = kinf__buffer_printf(out, "%s: %s\r\n", one->name, one->value);
    }
    return failed == 0 ? kinf__buffer_append_str(out, KINF_STR("\r\n")) : failed;
}

/* The library calls again, and closes; that may be before this returns. */
static void end_tunnel(void *ctx)
{
    struct transfer *transfer = ctx;

    MHD_resume_connection(transfer->mhd);
}

/* What a client sends before it has the answer is lost with the library's buffer: it may not. */
static enum MHD_Result begin_tunnel(struct transfer *transfer, const struct kinf__answer *answer)
{
    const union MHD_ConnectionInfo *tls =
        MHD_get_connection_info(transfer->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    KINF__AUTO_BUFFER head = KINF__BUFFER_INIT;
    struct kinf__tunnel *tunnel;
    int yes = 1;

    if (write_upgrade(answer, &head) < 0)
        return MHD_NO;
    tunnel = kinf__exchange_tunnel(transfer->exchange, &head, end_tunnel, transfer);
    if (tunnel == NULL)
        return MHD_NO;
    (void)setsockopt(transfer->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    kinf__mutex_lock(&transfer->lock);
    transfer->tunnel = tunnel;
    kinf__mutex_unlock(&transfer->lock);
    MHD_suspend_connection(transfer->mhd);
    kinf__tunnel_open(tunnel, transfer->fd, tls != NULL ? tls->tls_session : NULL);
    return MHD_YES;
}

static enum MHD_Result send_answer(struct transfer *transfer, const struct kinf__answer *answer)
{
    struct MHD_Response *response;
    enum MHD_Result result;

    if (answer->breaks == KINF__STREAM_RESET)
        reset(transfer);
    if (answer->breaks != 0)
        return MHD_NO;
    if (answer->code == 101)
        return begin_tunnel(transfer, answer);
    response = make_response(transfer, answer);
    if (response == NULL)
        return MHD_NO;
    result = MHD_queue_response(transfer->mhd, (unsigned)answer->code, response);
    MHD_destroy_response(response);
    return result;
}

static const char *header(struct transfer *transfer, const char *name)
{
    return MHD_lookup_connection_value(transfer->mhd, MHD_HEADER_KIND, name);
}

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

static void describe_client(struct transfer *transfer, struct kinf__client *client)
{
    const union MHD_ConnectionInfo *peer =
        MHD_get_connection_info(transfer->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const char *user_agent = header(transfer, "User-Agent");

    *client = (struct kinf__client){ .peer = "" };
    snprintf(client->user_agent, sizeof client->user_agent, "%s",
             user_agent != NULL ? user_agent : "");
    if (transfer->rules->is_unix)
        kinf__peer_describe_process(transfer->fd, client->peer, sizeof client->peer);
    else if (peer != NULL)
        kinf__peer_describe_address(peer->client_addr, client->peer, sizeof client->peer);
}

static int count_authorizations(const struct headers *headers)
{
    int n = 0;

    for (size_t i = 0; i < headers->n_items; i++)
        n += strcasecmp(headers->items[i].name, "Authorization") == 0;
    return n;
}

static void read_head(struct transfer *transfer, const char *method, struct headers *headers,
                      struct kinf__client *client, struct kinf__exchange_head *ret_head)
{
    describe_client(transfer, client);
    MHD_get_connection_values(transfer->mhd, MHD_HEADER_KIND, collect_header, headers);
    *ret_head = (struct kinf__exchange_head){
        .method = method,
        .target = kinf_str_from(transfer->target),
        .accept = header(transfer, "Accept"),
        .accept_encoding = header(transfer, "Accept-Encoding"),
        .if_none_match = header(transfer, "If-None-Match"),
        .headers = headers->items,
        .n_headers = headers->n_items,
        .body_len = transfer->body_len,
        .client = client,
        .authorization = header(transfer, "Authorization"),
        .has_many_authorizations = count_authorizations(headers) > 1,
    };
}

static int64_t body_len_of(struct transfer *transfer)
{
    const char *len = header(transfer, "Content-Length");

    if (header(transfer, "Transfer-Encoding") != NULL)
        return KINF__CHUNKED;
    return len != NULL ? strtoll(len, NULL, 10) : 0;
}

static enum MHD_Result step(struct transfer *transfer, const char *method)
{
    struct headers headers = { .n_items = 0 };
    struct kinf__client client;
    struct kinf__exchange_head head;
    const struct kinf__answer *answer;

    /* It may have slept for long. */
    if (transfer->rules->turns.holder == &transfer->turn && has_hung_up(transfer))
        return MHD_NO;
    read_head(transfer, method, &headers, &client, &head);
    do {
        if (!begin_slice(transfer))
            return MHD_YES;
        answer = kinf__exchange_step(transfer->exchange, &head);
        end_slice(transfer);
    } while (answer == NULL && !suspend(transfer));
    return answer != NULL ? send_answer(transfer, answer) : MHD_YES;
}

/* The library takes an answer in front of a body for these alone; for others it would wait. */
static bool may_answer_early(const struct transfer *transfer, const char *method)
{
    return transfer->body_len == 0 || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0;
}

/* A body comes behind the first step. A client that has its answer already is only listened to, since
 * closing would make the answer vanish with what is under way; one that asked first sends nothing. */
static enum MHD_Result begin_with_body(struct transfer *transfer, const char *method)
{
    struct headers headers = { .n_items = 0 };
    struct kinf__client client;
    struct kinf__exchange_head head;
    const struct kinf__answer *answer;

    read_head(transfer, method, &headers, &client, &head);
    begin_work(transfer);
    answer = kinf__exchange_step(transfer->exchange, &head);
    return answer != NULL && header(transfer, "Expect") != NULL &&
                   may_answer_early(transfer, method)
               ? send_answer(transfer, answer)
               : MHD_YES;
}

/* The library calls again for what is left of a piece only when more has come, which is never behind
 * the last one: all is taken, or the connection sleeps until there is room. That time is not the
 * client's. */
static enum MHD_Result receive(struct transfer *transfer, const char *bytes, size_t *len)
{
    struct kinf__peer *peer = peer_of(transfer->mhd);
    bool sleeps = false;

    while (*len != 0 && !sleeps) {
        size_t n_taken;

        begin_work(transfer);
        n_taken = kinf__exchange_take_body(transfer->exchange, bytes, *len);
        bytes += n_taken;
        *len -= n_taken;
        transfer->n_received += n_taken;
        sleeps = n_taken == 0 && suspend(transfer);
    }
    if (sleeps)
        kinf__peer_forgive(&transfer->rules->peers, peer);
    else if (!kinf__peer_owes(peer))
        kinf__peer_await(&transfer->rules->peers, peer, BODY_TIMEOUT_MS);
    return transfer->n_received <= RECEIVE_MAX ? MHD_YES : MHD_NO;
}

static int check_form(struct transfer *transfer, const char *method, const char *version,
                      const char **ret_why)
{
    struct headers headers = { .n_items = 0 };
    struct kinf__request_head head = { .method = method,
                                       .target = transfer->target,
                                       .target_at = transfer->target_at,
                                       .version = version };

    if (MHD_get_connection_values(transfer->mhd, MHD_HEADER_KIND, collect_header, &headers) >
        HEADERS_MAX) {
        *ret_why = "431 Request Header Fields Too Large";
        return 431;
    }
    head.headers = headers.items;
    head.n_headers = headers.n_items;
    /* Later ones refuse by themselves what cannot be seen here (endpoint.c), and may lay out a head
     * in another way. */
    if (MHD_VERSION < KINF__TRANSFER_STRICT_LIBRARY)
        head.size = MHD_get_connection_info(transfer->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)
                        ->header_size;
    return kinf__request_head_check(&head, ret_why);
}

/* 0: it may ask. */
static int check_client(struct transfer *transfer, const char **ret_why)
{
    const struct kinf__transfer_rules *rules = transfer->rules;
    const char *host = header(transfer, "Host");

    if (rules->is_local && !kinf__peer_is_local(transfer->fd)) {
        *ret_why = "403 Forbidden: this socket is of one process";
        return 403;
    }
    if (rules->n_users != 0 && !kinf__peer_is_one_of(transfer->fd, rules->users, rules->n_users)) {
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
static enum MHD_Result refuse(const struct transfer *transfer, int code, const char *why)
{
    const union MHD_ConnectionInfo *tls =
        MHD_get_connection_info(transfer->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    char text[256];
    int len = snprintf(text, sizeof text,
                       "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
                       "Connection: close\r\n\r\n%s",
                       code, MHD_get_reason_phrase_for((unsigned)code), why);

    if (tls != NULL)
        (void)gnutls_record_send(tls->tls_session, text, (size_t)len);
    else
        (void)send(transfer->fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
    return MHD_NO;
}

static enum MHD_Result begin(struct transfer *transfer, const char *method, const char *version)
{
    struct kinf__exchange_owner owner = {
        .wake = wake,
        .cut_off = cut_off,
        .is_gone = is_gone,
        .ctx = transfer,
        .authorizer = transfer->rules->authorizer,
        .is_health = transfer->rules->is_health,
    };
    const char *why;
    int code;

    kinf__turn_init(&transfer->turn, strlen(transfer->target) > LONG_TARGET_BYTES, now_us(),
                    wake_for_turn, transfer);
    transfer->fd =
        MHD_get_connection_info(transfer->mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    owner.address = kinf__peer_address(transfer->fd);
    transfer->body_len = body_len_of(transfer);
    code = check_form(transfer, method, version, &why);
    if (code == 0)
        code = check_client(transfer, &why);
    if (code != 0)
        return refuse(transfer, code, why);
    transfer->exchange = kinf__exchange_new(transfer->rules->server, &owner);
    if (transfer->exchange == NULL)
        return MHD_NO;
    return transfer->body_len != 0 ? begin_with_body(transfer, method) : MHD_YES;
}

void *kinf__transfer_new(void *ctx, const char *target, struct MHD_Connection *mhd)
{
    struct transfer *transfer = calloc(1, sizeof *transfer);

    (void)ctx;
    (void)mhd;
    if (transfer == NULL)
        return NULL;
    transfer->target_at = target;
    transfer->target = strdup(target);
    if (transfer->target == NULL) {
        free(transfer);
        return NULL;
    }
    kinf__mutex_init(&transfer->lock, KINF__RANK_CONNECTION);
    return transfer;
}

/* Called once with the head, then for each piece of a body that the library has, then, and after
 * each suspension, until there is an answer. One in the first call would close the connection. */
enum MHD_Result kinf__transfer_handle(void *ctx, struct MHD_Connection *mhd, const char *url,
                                      const char *method, const char *version, const char *upload,
                                      size_t *upload_len, void **request)
{
    struct kinf__transfer_rules *rules = ctx;
    struct transfer *transfer = *request;

    (void)url;
    /* Of a connection that was refused, there may be bytes yet. */
    if (transfer == NULL || peer_of(mhd) == NULL)
        return MHD_NO;
    if (transfer->tunnel != NULL)
        return MHD_NO;
    if (transfer->exchange == NULL) {
        transfer->rules = rules;
        transfer->mhd = mhd;
        if (body_len_of(transfer) != 0)
            kinf__peer_await(&rules->peers, peer_of(mhd), BODY_TIMEOUT_MS);
        else
            kinf__peer_forgive(&rules->peers, peer_of(mhd));
        return begin(transfer, method, version);
    }
    if (*upload_len != 0)
        return receive(transfer, upload, upload_len);
    kinf__peer_forgive(&rules->peers, peer_of(mhd));
    kinf__exchange_end_body(transfer->exchange);
    return step(transfer, method);
}

void kinf__transfer_end(void *ctx, struct MHD_Connection *mhd, void **request,
                        enum MHD_RequestTerminationCode why)
{
    struct kinf__transfer_rules *rules = ctx;
    struct transfer *transfer = *request;

    (void)why;
    kinf__peer_await(&rules->peers, peer_of(mhd), KINF__TRANSFER_IDLE_S * 1000);
    if (transfer == NULL)
        return;
    *request = NULL;
    kinf__turn_leave(&rules->turns, &transfer->turn);
    kinf__exchange_free(transfer->exchange);
    kinf__tunnel_free(transfer->tunnel);
    kinf__mutex_release(&transfer->lock);
    free(transfer->target);
    free(transfer);
}
