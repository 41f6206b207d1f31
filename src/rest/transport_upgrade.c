/*
 * Bytes of connections that may change their protocol. Neighbours: transport.c has the trips and waits,
 * framing.h tells where the answer ends.
 *
 * curl makes the connection alone (CURLOPT_CONNECT_ONLY), since it cannot tell the end of one that it
 * writes to. The handle stays in the multi, which would close the connection.
 *
 * Invariant: of what was received one piece at most waits for its taker, and nothing more is received
 * until it has gone. A failure to send ends the trip only behind what the server had said.
 */
#include "rest/transport_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "rest/client.h"
#include "rest/connection.h"
#include "rest/framing.h"
#include "rest/secret.h"

#define PIECE_BYTES    (16u << 10) /* what is sent and received at once */
#define PIECES_AT_ONCE 4           /* before others have their turn */

struct kinf__upgrade {
    bool is_connected;
    curl_socket_t fd; /* once it is */
    struct kinf__framing framing;
    struct kinf__buffer out; /* stays as it is until all of it is sent: TLS wants that */
    size_t n_sent;           /* of it */
    bool is_head_sent;
    bool is_full;         /* the socket takes no more now */
    bool is_send_over;    /* there is no more to be sent */
    CURLcode send_result; /* a failure: what the server said before that is still received */
    struct kinf_str in;   /* of `received`: not looked at */
    struct kinf_str held; /* a piece of body, in front of that, that nobody has taken */
    bool has_more;        /* it was left before all was received */
    char received[PIECE_BYTES];
};

/* --- life --- */

struct kinf__upgrade *kinf__upgrade_new(void)
{
    return calloc(1, sizeof(struct kinf__upgrade));
}

void kinf__upgrade_free(struct kinf__upgrade *upgrade)
{
    if (upgrade == NULL)
        return;
    kinf__framing_release(&upgrade->framing);
    kinf__secret_buffer_release(&upgrade->out);
    free(upgrade);
}

bool kinf__upgrade_begin(struct kinf__roundtrip *trip)
{
    struct kinf__upgrade *upgrade = trip->upgrade;

    upgrade->is_connected =
        curl_easy_getinfo(trip->easy, CURLINFO_ACTIVESOCKET, &upgrade->fd) == CURLE_OK;
    return upgrade->is_connected;
}

bool kinf__upgrade_is_sent(const struct kinf__upgrade *upgrade)
{
    return upgrade->is_head_sent || upgrade->n_sent != 0;
}

/* --- the request --- */

/* There is a token among them: what is sent later must not leave a copy behind by growing. */
static int make_room(const struct kinf__roundtrip_request *request, size_t line_len,
                     struct kinf__buffer *out)
{
    size_t size = line_len + 256;

    for (size_t i = 0; i < request->n_headers; i++)
        size += strlen(request->headers[i].name) + strlen(request->headers[i].value) + 4;
    return kinf__buffer_reserve(out, size > PIECE_BYTES ? size : PIECE_BYTES);
}

int kinf__upgrade_write_head(struct kinf__roundtrip *trip,
                             const struct kinf__roundtrip_request *request, const char *url)
{
    struct kinf__buffer *out = &trip->upgrade->out;
    struct kinf_str host = kinf__connection_authority(trip->client);
    const char *authority = strstr(url, "://") + 3, *path = authority + strcspn(authority, "/");
    int failed = make_room(request, strlen(path) + host.len, out);

    if (failed == 0)
        failed =
            kinf__buffer_printf(out, "%s %s HTTP/1.1\r\nHost: %.*s\r\nConnection: Upgrade\r\n%s",
                                request->method, path, (int)host.len, host.bytes,
                                strcmp(request->method, "GET") != 0 ? "Content-Length: 0\r\n" : "");

    for (size_t i = 0; failed == 0 && i < request->n_headers; i++)
        failed = kinf__buffer_printf(out, "%s: %s\r\n", request->headers[i].name,
                                     request->headers[i].value);
    return failed == 0 ? kinf__buffer_append_str(out, KINF_STR("\r\n")) : failed;
}

/* --- there --- */

static bool has_all_sent(const struct kinf__upgrade *upgrade)
{
    return upgrade->n_sent == upgrade->out.len;
}

/* Whether there is something to send, of the other protocol. */
static bool fill(struct kinf__roundtrip *trip)
{
    struct kinf__upgrade *upgrade = trip->upgrade;
    ssize_t n;

    upgrade->is_head_sent = true;
    upgrade->out.len = upgrade->n_sent = 0;
    if (trip->head.code != 101 || !trip->head.is_complete || upgrade->is_send_over ||
        trip->is_send_paused)
        return false;
    n = trip->ops->on_send(upgrade->out.bytes, PIECE_BYTES, trip->ctx);
    trip->is_send_paused = n < 0;
    upgrade->is_send_over = n == 0;
    upgrade->out.len = n > 0 ? (size_t)n : 0;
    return n > 0;
}

static void send_pieces(struct kinf__roundtrip *trip)
{
    struct kinf__upgrade *upgrade = trip->upgrade;
    CURLcode result = upgrade->send_result;

    upgrade->is_full = false;
    for (int i = 0; i < PIECES_AT_ONCE && result == CURLE_OK; i++) {
        size_t n = 0;

        if (has_all_sent(upgrade) && !fill(trip))
            return;
        result = curl_easy_send(trip->easy, upgrade->out.bytes + upgrade->n_sent,
                                upgrade->out.len - upgrade->n_sent, &n);
        upgrade->n_sent += n;
        trip->sent_ms = kinf__clock_now_ms();
    }
    /* Or there is more: then poll says at once that it takes more. */
    upgrade->is_full = result == CURLE_OK || result == CURLE_AGAIN;
    upgrade->send_result = upgrade->is_full ? CURLE_OK : result;
}

/* --- and back --- */

/* Returns 0, KINF__ROUNDTRIP_PAUSE, or a negative code. */
static int hand_out(struct kinf__roundtrip *trip)
{
    struct kinf__upgrade *upgrade = trip->upgrade;
    int code = 0;

    if (upgrade->held.len != 0)
        code =
            trip->ops->on_body(upgrade->held.bytes, upgrade->held.len, trip->ctx, &trip->failure);
    trip->is_receive_paused = code == KINF__ROUNDTRIP_PAUSE;
    if (code == 0)
        upgrade->held.len = 0;
    return code;
}

/* The other protocol may be silent for as long as it likes. */
static void accept_head(struct kinf__roundtrip *trip)
{
    trip->is_accepted = trip->ops->on_head(&trip->head, trip->ctx);
    if (trip->head.code == 101)
        trip->limits.idle_ms = trip->limits.total_ms = 0;
}

static int take_received(struct kinf__roundtrip *trip)
{
    struct kinf__upgrade *upgrade = trip->upgrade;
    int code = hand_out(trip);

    while (code == 0 && upgrade->in.len != 0) {
        bool was_complete = trip->head.is_complete;

        code = kinf__framing_take(&upgrade->framing, &trip->head, &upgrade->in, &upgrade->held,
                                  &trip->failure);
        if (code < 0) {
            kinf__error_prefix(&trip->failure, "server %s", trip->client->host);
            return code;
        }
        if (trip->head.is_complete && !was_complete)
            accept_head(trip);
        code = hand_out(trip);
    }
    return code;
}

static bool is_answered(const struct kinf__upgrade *upgrade)
{
    return upgrade->framing.state == KINF__FRAMING_OVER && upgrade->held.len == 0;
}

static CURLcode receive_pieces(struct kinf__roundtrip *trip, bool *ret_is_end)
{
    struct kinf__upgrade *upgrade = trip->upgrade;

    upgrade->has_more = false;
    for (int i = 0; i < PIECES_AT_ONCE; i++) {
        CURLcode result;
        size_t n = 0;
        int code = trip->is_receive_paused ? KINF__ROUNDTRIP_PAUSE : take_received(trip);

        if (code < 0)
            trip->code = code;
        if (code != 0 || is_answered(upgrade))
            return CURLE_OK;
        result = curl_easy_recv(trip->easy, upgrade->received, sizeof upgrade->received, &n);
        if (result == CURLE_AGAIN)
            return CURLE_OK;
        *ret_is_end = result == CURLE_OK && n == 0;
        if (result != CURLE_OK || *ret_is_end)
            return result;
        upgrade->in = (struct kinf_str){ upgrade->received, n };
        trip->received_ms = kinf__clock_now_ms();
    }
    upgrade->has_more = true;
    return CURLE_OK;
}

static int judge_end(struct kinf__roundtrip *trip)
{
    if (kinf__framing_may_end(&trip->upgrade->framing))
        return 0;
    return kinf__broken_off(trip->client,
                            trip->head.is_complete ? "the body was cut short"
                                                   : "the answer's head was cut short",
                            &trip->failure);
}

/* --- both ways --- */

bool kinf__upgrade_carry(struct kinf__roundtrip *trip, int *ret_code)
{
    const struct kinf__upgrade *upgrade = trip->upgrade;
    bool is_end = false;
    CURLcode result;

    if (!upgrade->is_connected)
        return false;
    send_pieces(trip);
    result = receive_pieces(trip, &is_end);
    if (result == CURLE_OK && !upgrade->has_more && !trip->is_receive_paused)
        result = upgrade->send_result;
    if (trip->code < 0)
        *ret_code = trip->code;
    else if (is_answered(upgrade))
        *ret_code = 0;
    else if (result != CURLE_OK)
        *ret_code =
            kinf__connection_error(trip->easy, result, trip->client, trip->message, &trip->failure);
    else if (is_end)
        *ret_code = judge_end(trip);
    else if (upgrade->is_send_over && has_all_sent(upgrade))
        *ret_code = 0;
    else
        return false;
    return true;
}

bool kinf__upgrade_waits(const struct kinf__roundtrip *trip, struct curl_waitfd *ret_wait,
                         bool *ret_has_more)
{
    const struct kinf__upgrade *upgrade = trip->upgrade;
    int events = (trip->is_receive_paused ? 0 : CURL_WAIT_POLLIN) |
                 (upgrade->is_full ? CURL_WAIT_POLLOUT : 0);

    if (!upgrade->is_connected || events == 0)
        return false;
    *ret_has_more = *ret_has_more || (upgrade->has_more && !trip->is_receive_paused);
    *ret_wait = (struct curl_waitfd){ upgrade->fd, (short)events, 0 };
    return true;
}
