/*
 * Round trips over a curl multi, which alone can be woken, timed and left at any moment. Neighbours:
 * connection.h sets up TLS, proxies and sockets and says what failed, head.h reads the answer's head;
 * http.c waits for one round trip of ours, serve/forward.c drives those of others; transport_upgrade.c
 * has the bytes of upgrades, of which curl makes the connection alone.
 *
 * Invariant: a trip is in its transport's list while its easy handle is in the multi.
 */
#include "rest/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>
#include <openssl/crypto.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "rest/client.h"
#include "rest/connection.h"
#include "rest/secret.h"
#include "rest/transport_priv.h"

#define KEPT_CONNECTIONS 16L
#define WAIT_MAX_MS      120000 /* a bound on every wait, should a wake-up ever be lost */
#define BREATH_MS        50     /* between looks at the limits while bytes never pause */

_Static_assert(KINF__ROUNDTRIP_MESSAGE_SIZE >= CURL_ERROR_SIZE, "curl writes as much");

/* --- life --- */

/* For the waker, all that are there, and one more. */
static int make_room_to_wait(struct kinf__transport *transport)
{
    struct curl_waitfd *waits;
    size_t n = 2;

    KINF__LIST_FOR_EACH (node, &transport->trips)
        n++;
    if (n <= transport->n_waits)
        return 0;
    waits = realloc(transport->waits, 2 * n * sizeof *waits);
    if (waits == NULL)
        return KINF_ERR_NO_MEMORY;
    transport->waits = waits;
    transport->n_waits = 2 * n;
    return 0;
}

/* Connections live in the multi. */
int kinf__transport_init(struct kinf__transport *transport, struct kinf_error *err)
{
    kinf__list_init(&transport->trips);
    transport->multi = curl_multi_init();
    if (transport->multi == NULL || make_room_to_wait(transport) < 0)
        return kinf__error_no_memory(err);
    curl_multi_setopt(transport->multi, CURLMOPT_MAXCONNECTS, KEPT_CONNECTIONS);
    return 0;
}

void kinf__transport_release(struct kinf__transport *transport)
{
    curl_multi_cleanup(transport->multi);
    transport->multi = NULL;
    free(transport->waits);
    transport->waits = NULL;
    transport->n_waits = 0;
}

/* --- limits --- */

/* When the trip has to be given up, and the words for it. */
struct deadline {
    int64_t at_ms;
    int64_t limit_ms;
    const char *why;
};

static void limit(struct deadline *deadline, int64_t from_ms, int64_t limit_ms, const char *why)
{
    int64_t at_ms = kinf__clock_add_ms(from_ms, limit_ms);

    if (limit_ms > 0 && at_ms < deadline->at_ms)
        *deadline = (struct deadline){ at_ms, limit_ms, why };
}

/* Whoever is waited for on this side is not the server. */
static struct deadline deadline_of(const struct kinf__roundtrip *trip)
{
    const struct kinf__limits *limits = &trip->limits;
    struct deadline deadline = { KINF__NEVER_MS, 0, "" };

    limit(&deadline, trip->started_ms, limits->total_ms, "the answer is not complete after");
    if (!trip->is_accepted && !trip->is_send_paused)
        limit(&deadline, trip->sent_ms, limits->head_ms, "no answer within");
    if (trip->head.is_complete && !trip->is_receive_paused && !trip->is_held)
        limit(&deadline, trip->received_ms, limits->idle_ms, "the stream is silent for");
    return deadline;
}

static int fail_late(struct kinf__roundtrip *trip, const struct deadline *deadline)
{
    return kinf__error_set(&trip->failure, KINF_ERR_TIMEOUT, "server %s: %s %lld ms",
                           trip->client->host, deadline->why, (long long)deadline->limit_ms);
}

static int fail_stopped(struct kinf__roundtrip *trip)
{
    return kinf__error_set(&trip->failure, KINF_ERR_STOPPED, "stopped");
}

/* curl goes on reading for as long as bytes are there, and only then comes back: a peer that sends
 * faster than we take would keep us for ever. */
static int look_up(struct kinf__roundtrip *trip)
{
    struct deadline deadline;

    if (trip->received_ms - trip->looked_ms < BREATH_MS)
        return 0;
    trip->looked_ms = trip->received_ms;
    if (trip->stop != NULL && kinf__waker_is_set(trip->stop))
        return fail_stopped(trip);
    deadline = deadline_of(trip);
    return deadline.at_ms <= trip->received_ms ? fail_late(trip, &deadline) : 0;
}

/* --- what curl calls --- */

static size_t on_header(char *bytes, size_t size, size_t n, void *ctx)
{
    struct kinf__roundtrip *trip = ctx;
    bool was_complete = trip->head.is_complete;

    trip->received_ms = kinf__clock_now_ms();
    trip->code = kinf__head_take(&trip->head, (struct kinf_str){ bytes, size * n }, &trip->failure);
    if (trip->code < 0) {
        kinf__error_prefix(&trip->failure, "server %s", trip->client->host);
        return 0;
    }
    if (trip->head.is_complete && !was_complete)
        trip->is_accepted = trip->ops->on_head(&trip->head, trip->ctx);
    return size * n;
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *ctx)
{
    struct kinf__roundtrip *trip = ctx;
    int code;

    trip->received_ms = kinf__clock_now_ms();
    code = look_up(trip);
    if (code == 0)
        code = trip->ops->on_body(bytes, size * n, trip->ctx, &trip->failure);
    /* Again: what the callback took is our silence, not the peer's. */
    trip->received_ms = kinf__clock_now_ms();
    trip->is_receive_paused = code == KINF__ROUNDTRIP_PAUSE;
    if (trip->is_receive_paused)
        return CURL_WRITEFUNC_PAUSE;
    trip->code = code;
    return code < 0 ? 0 : size * n;
}

static size_t on_send(char *bytes, size_t size, size_t n, void *ctx)
{
    struct kinf__roundtrip *trip = ctx;
    ssize_t len = trip->ops->on_send(bytes, size * n, trip->ctx);

    trip->sent_ms = kinf__clock_now_ms();
    trip->is_body_begun = trip->is_body_begun || len > 0;
    trip->is_send_paused = len < 0;
    return len < 0 ? CURL_READFUNC_PAUSE : (size_t)len;
}

/* A body is not sent twice, since what was handed out has gone; curl asks for it when a connection that it
 * kept turns out to be dead. From 8.7 on it asks for the next request, too, if the one before was given
 * up so, and takes a refusal for that one's failure. */
static int on_rewind(void *ctx, curl_off_t offset, int origin)
{
    const struct kinf__roundtrip *trip = ctx;

    return offset == 0 && origin == SEEK_SET && !trip->is_body_begun ? CURL_SEEKFUNC_OK
                                                                     : CURL_SEEKFUNC_FAIL;
}

/* curl sends a request again when the connection that it had kept for it closes without a word. The
 * server may have taken it before: so that is for what changes nothing, and for what it can only have
 * seen the head of. */
static int on_about_to_send(void *ctx, char *server, char *own, int server_port, int own_port)
{
    struct kinf__roundtrip *trip = ctx;
    bool is_repeated = trip->has_begun;

    (void)server;
    (void)own;
    (void)server_port;
    (void)own_port;
    trip->has_begun = true;
    if (!is_repeated || trip->may_repeat || (trip->has_body && !trip->is_body_begun))
        return CURL_PREREQFUNC_OK;
    trip->code =
        kinf__broken_off(trip->client, "the connection was closed as it was sent", &trip->failure);
    return CURL_PREREQFUNC_ABORT;
}

/* --- a request's headers --- */

static bool append_line(struct kinf__roundtrip *trip, const char *line)
{
    struct curl_slist *longer = line != NULL ? curl_slist_append(trip->headers, line) : NULL;

    if (longer == NULL)
        return false;
    trip->headers = longer;
    return true;
}

static bool append_given(struct kinf__roundtrip *trip,
                         const struct kinf__roundtrip_request *request)
{
    for (size_t i = 0; i < request->n_headers; i++) {
        KINF__AUTO_SECRET_BUFFER line = KINF__BUFFER_INIT;
        const struct kinf__header *header = &request->headers[i];

        if (kinf__buffer_printf(&line, *header->value != '\0' ? "%s: %s" : "%s;", header->name,
                                header->value) < 0 ||
            !append_line(trip, kinf__buffer_cstr(&line)))
            return false;
    }
    return true;
}

static bool append_credential(struct kinf__roundtrip *trip,
                              const struct kinf__credential *credential)
{
    const struct kinf__string_list *impersonation = &trip->client->config.impersonation;
    bool is_done = true;

    if (credential == NULL || !trip->client->is_https)
        return true;
    if (credential->parts.authorization != NULL)
        is_done = append_line(trip, credential->parts.authorization);
    for (size_t i = 0; is_done && i < impersonation->n_items; i++)
        is_done = append_line(trip, impersonation->items[i]);
    return is_done;
}

/* As client-go: by tls-server-name only the certificate is known. */
static bool append_host(struct kinf__roundtrip *trip)
{
    struct kinf_str authority = kinf__connection_authority(trip->client);
    KINF__AUTO_BUFFER line = KINF__BUFFER_INIT;

    return !kinf__connection_has_other_name(trip->client) ||
           (kinf__buffer_printf(&line, "Host: %.*s", (int)authority.len, authority.bytes) == 0 &&
            append_line(trip, kinf__buffer_cstr(&line)));
}

/* Whether its method is of a request that has one: that there is none has to be said then (RFC 9110,
 * 8.6). */
static bool lacks_body(const struct kinf__roundtrip_request *request)
{
    return !request->has_body &&
           (strcmp(request->method, "POST") == 0 || strcmp(request->method, "PUT") == 0 ||
            strcmp(request->method, "PATCH") == 0);
}

/* First what curl would add by itself: a line without a value takes it back, and those that are given
 * still count. It would also ask whether a long body is welcome, and wait a second for an answer. */
static bool set_headers(struct kinf__roundtrip *trip, const struct kinf__roundtrip_request *request)
{
    bool is_chunked = request->has_body && request->body_len == KINF__CHUNKED;

    return append_line(trip, "Accept:") && append_line(trip, "Content-Type:") &&
           append_line(trip, "Expect:") && append_host(trip) &&
           (!is_chunked || append_line(trip, "Transfer-Encoding: chunked")) &&
           (!lacks_body(request) || append_line(trip, "Content-Length: 0")) &&
           append_credential(trip, request->credential) && append_given(trip, request) &&
           curl_easy_setopt(trip->easy, CURLOPT_HTTPHEADER, trip->headers) == CURLE_OK;
}

/* --- preparing --- */

/* Of the client's credential a foreign request has the authority alone; a name and a password in the
 * server's URL would be the client's, too. */
static bool set_credential(struct kinf__roundtrip *trip, const struct kinf__credential *credential)
{
    struct kinf__credential *before = trip->authority;
    struct kinf__credential_parts shown = { NULL, NULL, NULL, NULL };
    bool is_set;

    trip->authority = NULL;
    if (credential != NULL) {
        shown = credential->parts;
    } else {
        trip->authority = kinf__credentials_peek(&trip->client->credentials, kinf__moment_now());
        shown.ca_pem = trip->authority->parts.ca_pem;
    }
    is_set = kinf__connection_set_credential(trip->easy, &shown);
    kinf__credential_unref(before);
    return is_set && curl_easy_setopt(trip->easy, CURLOPT_HTTPAUTH,
                                      credential != NULL ? (long)CURLAUTH_BASIC
                                                         : (long)CURLAUTH_NONE) == CURLE_OK;
}

static bool set_method(struct kinf__roundtrip *trip, const struct kinf__roundtrip_request *request)
{
    return curl_easy_setopt(trip->easy, request->has_body ? CURLOPT_POST : CURLOPT_HTTPGET, 1L) ==
               CURLE_OK &&
           curl_easy_setopt(trip->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                            request->has_body ? (curl_off_t)request->body_len : (curl_off_t)-1) ==
               CURLE_OK &&
           curl_easy_setopt(trip->easy, CURLOPT_CUSTOMREQUEST, request->method) == CURLE_OK;
}

static bool set_url(struct kinf__roundtrip *trip, const struct kinf__roundtrip_request *request)
{
    KINF__AUTO_BUFFER url = KINF__BUFFER_INIT;
    const char *text;

    return kinf__connection_append_url(trip->client, request->target, &url, &trip->connect_to) ==
               0 &&
           (text = kinf__buffer_cstr(&url)) != NULL &&
           curl_easy_setopt(trip->easy, CURLOPT_URL, text) == CURLE_OK &&
           curl_easy_setopt(trip->easy, CURLOPT_CONNECT_TO, trip->connect_to) == CURLE_OK &&
           (trip->upgrade == NULL || kinf__upgrade_write_head(trip, request, text) == 0);
}

/* A proxy lets it through to the server in any case. */
static bool set_upgrade(struct kinf__roundtrip *trip, bool is_upgrade)
{
    if (is_upgrade && (trip->upgrade = kinf__upgrade_new()) == NULL)
        return false;
    return curl_easy_setopt(trip->easy, CURLOPT_CONNECT_ONLY, is_upgrade ? 1L : 0L) == CURLE_OK &&
           curl_easy_setopt(trip->easy, CURLOPT_HTTPPROXYTUNNEL, is_upgrade ? 1L : 0L) == CURLE_OK;
}

/* Headers are overwritten, since there are tokens among them. */
static void forget_request(struct kinf__roundtrip *trip)
{
    curl_easy_setopt(trip->easy, CURLOPT_HTTPHEADER, NULL);
    curl_easy_setopt(trip->easy, CURLOPT_CONNECT_TO, NULL);
    for (struct curl_slist *at = trip->headers; at != NULL; at = at->next)
        OPENSSL_cleanse(at->data, strlen(at->data));
    curl_slist_free_all(trip->headers);
    curl_slist_free_all(trip->connect_to);
    kinf__upgrade_free(trip->upgrade);
    trip->headers = NULL;
    trip->connect_to = NULL;
    trip->upgrade = NULL;
}

int kinf__roundtrip_prepare(struct kinf__roundtrip *trip,
                            const struct kinf__roundtrip_request *request, struct kinf_error *err)
{
    kinf__head_release(&trip->head);
    forget_request(trip); /* one that could not be added */
    *trip = (struct kinf__roundtrip){ .client = trip->client,
                                      .ops = trip->ops,
                                      .ctx = trip->ctx,
                                      .easy = trip->easy,
                                      .authority = trip->authority,
                                      .limits = request->limits,
                                      .stop = request->stop,
                                      .may_repeat = strcmp(request->method, "GET") == 0 ||
                                                    strcmp(request->method, "HEAD") == 0,
                                      .has_body = request->has_body };
    if (set_credential(trip, request->credential) && set_method(trip, request) &&
        set_upgrade(trip, request->is_upgrade) &&
        (request->is_upgrade || set_headers(trip, request)) && set_url(trip, request))
        return 0;
    forget_request(trip);
    return kinf__error_no_memory(err);
}

int kinf__roundtrip_init(struct kinf__roundtrip *trip, struct kinf_client *client,
                         const char *user_agent, long buffer_bytes,
                         const struct kinf__roundtrip_ops *ops, void *ctx, struct kinf_error *err)
{
    CURL *easy = curl_easy_init();

    *trip = (struct kinf__roundtrip){ .client = client, .ops = ops, .ctx = ctx, .easy = easy };
    if (easy == NULL || !kinf__connection_prepare(easy, client, &trip->socket_errno) ||
        curl_easy_setopt(easy, CURLOPT_USERAGENT, user_agent) != CURLE_OK)
        return kinf__error_no_memory(err);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, trip);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, trip->message);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, trip);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, trip);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_send);
    curl_easy_setopt(easy, CURLOPT_READDATA, trip);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_rewind);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, trip);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_about_to_send);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, trip);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, buffer_bytes);
    return 0;
}

void kinf__roundtrip_release(struct kinf__roundtrip *trip)
{
    kinf__roundtrip_leave(trip);
    forget_request(trip);
    curl_easy_cleanup(trip->easy);
    kinf__credential_unref(trip->authority);
    kinf__head_release(&trip->head);
}

/* --- under way --- */

int kinf__roundtrip_add(struct kinf__roundtrip *trip, struct kinf__transport *transport,
                        struct kinf_error *err)
{
    if (transport->multi == NULL && kinf__transport_init(transport, err) < 0)
        return KINF_ERR_NO_MEMORY;
    if (make_room_to_wait(transport) < 0)
        return kinf__error_no_memory(err);
    if (curl_multi_add_handle(transport->multi, trip->easy) != CURLM_OK)
        return kinf__error_no_memory(err);
    trip->transport = transport;
    trip->sent_ms = kinf__clock_now_ms();
    trip->received_ms = trip->sent_ms;
    trip->looked_ms = trip->sent_ms;
    trip->started_ms = trip->limits.total_from_ms != 0 ? trip->limits.total_from_ms : trip->sent_ms;
    kinf__list_push_back(&transport->trips, &trip->node);
    return 0;
}

void kinf__roundtrip_leave(struct kinf__roundtrip *trip)
{
    long n_bytes = 0, n_connections = 0;

    if (trip->transport == NULL)
        return;
    curl_easy_getinfo(trip->easy, CURLINFO_NUM_CONNECTS, &n_connections);
    atomic_fetch_add(&trip->transport->n_connections, (uint64_t)n_connections);
    curl_easy_getinfo(trip->easy, CURLINFO_REQUEST_SIZE, &n_bytes);
    trip->is_sent = trip->upgrade != NULL ? kinf__upgrade_is_sent(trip->upgrade) : n_bytes != 0;
    curl_multi_remove_handle(trip->transport->multi, trip->easy);
    kinf__list_remove(&trip->node);
    trip->transport = NULL;
    forget_request(trip);
}

void kinf__roundtrip_resume(struct kinf__roundtrip *trip)
{
    int64_t now_ms = kinf__clock_now_ms();

    if (!trip->is_send_paused && !trip->is_receive_paused)
        return;
    if (trip->is_send_paused)
        trip->sent_ms = now_ms;
    trip->received_ms = now_ms;
    trip->is_send_paused = false;
    trip->is_receive_paused = false;
    if (trip->upgrade == NULL)
        curl_easy_pause(trip->easy, CURLPAUSE_CONT);
}

/* --- the end --- */

static void end(struct kinf__roundtrip *trip, int code)
{
    kinf__roundtrip_leave(trip);
    trip->ops->on_end(code, &trip->failure, trip->ctx);
}

static int judge(struct kinf__roundtrip *trip, CURLcode result)
{
    struct kinf_error *err = &trip->failure;

    if (trip->code < 0)
        return trip->code;
    if (result == CURLE_COULDNT_CONNECT && trip->socket_errno != 0)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, trip->socket_errno,
                                     "no socket for the server %s", trip->client->host);
    if (result != CURLE_OK)
        return kinf__connection_error(trip->easy, result, trip->client, trip->message, err);
    /* curl takes the end of the connection within the head for the end of an empty body. */
    return trip->head.is_complete
               ? 0
               : kinf__broken_off(trip->client, "the answer's head was cut short", err);
}

static void fail_all(struct kinf__transport *transport, enum kinf_errc code, const char *why)
{
    KINF__LIST_FOR_EACH_SAFE (node, &transport->trips) {
        struct kinf__roundtrip *trip = KINF__LIST_ENTRY(node, struct kinf__roundtrip, node);

        end(trip,
            kinf__error_set(&trip->failure, code, "%s the server %s", why, trip->client->host));
    }
}

/* --- upgrades --- */

static void carry_all(struct kinf__transport *transport)
{
    KINF__LIST_FOR_EACH_SAFE (node, &transport->trips) {
        struct kinf__roundtrip *trip = KINF__LIST_ENTRY(node, struct kinf__roundtrip, node);

        int code;

        if (trip->upgrade != NULL && kinf__upgrade_carry(trip, &code))
            end(trip, code);
    }
}

/* Returns how many there are to wait for; *ret_has_more: there is no time for that. */
static unsigned list_waits(struct kinf__transport *transport, const struct kinf__waker *waker,
                           bool *ret_has_more)
{
    unsigned n = 0;

    transport->waits[n++] = (struct curl_waitfd){ waker->fd, CURL_WAIT_POLLIN, 0 };
    KINF__LIST_FOR_EACH (node, &transport->trips) {
        struct kinf__roundtrip *trip = KINF__LIST_ENTRY(node, struct kinf__roundtrip, node);

        if (trip->upgrade != NULL && kinf__upgrade_waits(trip, &transport->waits[n], ret_has_more))
            n++;
    }
    return n;
}

/* --- the thread --- */

void kinf__transport_perform(struct kinf__transport *transport)
{
    CURLMsg *message;
    int n_running, n_left;

    if (curl_multi_perform(transport->multi, &n_running) != CURLM_OK)
        fail_all(transport, KINF_ERR_NO_MEMORY, "no memory to talk to");
    while ((message = curl_multi_info_read(transport->multi, &n_left)) != NULL) {
        struct kinf__roundtrip *trip = NULL;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&trip);
        if (trip->upgrade == NULL || message->data.result != CURLE_OK || !kinf__upgrade_begin(trip))
            end(trip, judge(trip, message->data.result));
    }
    carry_all(transport);
}

/* Ends what is late; returns whether anything was. `*left_ms` becomes no more than the others have. */
static bool end_late(struct kinf__transport *transport, int64_t now_ms, int64_t *left_ms)
{
    bool has_ended = false;

    KINF__LIST_FOR_EACH_SAFE (node, &transport->trips) {
        struct kinf__roundtrip *trip = KINF__LIST_ENTRY(node, struct kinf__roundtrip, node);
        struct deadline deadline = deadline_of(trip);

        trip->looked_ms = now_ms;
        if (deadline.at_ms <= now_ms) {
            end(trip, fail_late(trip, &deadline));
            has_ended = true;
        } else if (deadline.at_ms - now_ms < *left_ms) {
            *left_ms = deadline.at_ms - now_ms;
        }
    }
    return has_ended;
}

void kinf__transport_wake(struct kinf__transport *transport)
{
    (void)curl_multi_wakeup(transport->multi);
}

void kinf__transport_wait(struct kinf__transport *transport, struct kinf__waker *waker,
                          int64_t until_ms)
{
    int64_t now_ms = kinf__clock_now_ms(), left_ms = kinf__clock_left_ms(now_ms, until_ms);
    bool has_more = false;
    unsigned n_waits;

    if (left_ms > WAIT_MAX_MS)
        left_ms = WAIT_MAX_MS;
    if (end_late(transport, now_ms, &left_ms))
        return;
    n_waits = list_waits(transport, waker, &has_more);
    if (curl_multi_poll(transport->multi, transport->waits, n_waits,
                        has_more ? 0 : (int)kinf__clock_wait_ms(left_ms), NULL) != CURLM_OK)
        fail_all(transport, KINF_ERR_SYSTEM, "cannot wait for");
    if (transport->waits[0].revents == 0)
        return;
    KINF__LIST_FOR_EACH_SAFE (node, &transport->trips) {
        struct kinf__roundtrip *trip = KINF__LIST_ENTRY(node, struct kinf__roundtrip, node);

        if (trip->stop == waker)
            end(trip, fail_stopped(trip));
    }
}
