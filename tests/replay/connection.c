/*
 * One connection: reads requests and plays the answers. Neighbours: replay.c owns the lists and
 * chooses exchanges, channel.c moves the bytes. Invariant: whatever it waits for, the peer's
 * leaving and the server's stop end the wait.
 */
#include "replay/replay_priv.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define INPUT_MAX_BYTES  (16u << 20)
#define READ_SIZE        16384
#define STREAM_MAX_BATCH 64
#define BAD_REQUEST      "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"

/* How an answer leaves its connection. */
enum outcome {
    OUTCOME_GO_ON,
    OUTCOME_CLOSE_NOTIFY,
    OUTCOME_CUT,
    OUTCOME_RESET,
    OUTCOME_LOST, /* the peer is away, or the server stops */
};

/* --- waiting --- */

static struct timespec time_left(int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns - kinf__clock_now_ns();

    if (left_ns < 0)
        left_ns = 0;
    return (struct timespec){ .tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000 };
}

/* Waits for `signal` (0: none) until `deadline_ns` (INT64_MAX: no end). */
static enum outcome wait_until(struct replay__connection *connection, int64_t deadline_ns,
                               unsigned signal)
{
    struct pollfd fds[] = { { .fd = connection->fd, .events = POLLRDHUP },
                            { .fd = connection->waker.fd, .events = POLLIN } };

    for (;;) {
        enum replay__wake_up wake_up = replay__look(connection, signal);
        struct timespec left = time_left(deadline_ns);

        if (wake_up == REPLAY__WAKE_UP_STOP)
            return OUTCOME_LOST;
        if (wake_up == REPLAY__WAKE_UP_SIGNAL || (left.tv_sec == 0 && left.tv_nsec == 0))
            return OUTCOME_GO_ON;
        if (ppoll(fds, KINF__ARRAY_LEN(fds), deadline_ns == INT64_MAX ? NULL : &left, NULL) < 0 &&
            errno != EINTR)
            return OUTCOME_LOST;
        if (fds[0].revents != 0)
            return OUTCOME_LOST;
    }
}

static enum outcome stall(struct replay__connection *connection)
{
    replay__note_answered(connection);
    return wait_until(connection, INT64_MAX, 0);
}

/* --- playing --- */

/* Sends as much as the response's limit lets through. */
static enum outcome send_bytes(struct replay__connection *connection, struct kinf_str bytes)
{
    size_t len = bytes.len < connection->budget ? bytes.len : connection->budget;

    if (!replay__channel_write(&connection->channel, bytes.bytes, len))
        return OUTCOME_LOST;
    connection->budget -= len;
    return connection->budget == 0 ? OUTCOME_CUT : OUTCOME_GO_ON;
}

static bool is_last(const struct replay__stream *stream, uint64_t from)
{
    return stream->n_events != 0 && from == stream->n_events;
}

/* How many events are due at once, waiting for the first of them. */
static enum outcome wait_for_events(struct replay__connection *connection,
                                    const struct replay__stream *stream, int64_t start_ns,
                                    uint64_t from, uint64_t *ret_to)
{
    uint64_t to = from + STREAM_MAX_BATCH, due;
    double ns_per_event = 1e9 / (double)stream->events_per_s;
    enum outcome outcome = OUTCOME_GO_ON;

    if (is_last(stream, from))
        outcome = wait_until(connection, INT64_MAX, 0);
    if (stream->events_per_s != REPLAY_SATURATED && outcome == OUTCOME_GO_ON) {
        outcome =
            wait_until(connection, start_ns + (int64_t)((double)(from + 1) * ns_per_event), 0);
        due = (uint64_t)((double)(kinf__clock_now_ns() - start_ns) / ns_per_event);
        to = due > from && due < to ? due : from + 1;
    }
    *ret_to = stream->n_events != 0 && to > stream->n_events ? stream->n_events : to;
    return outcome;
}

/* Event k (from 0) is due k + 1 intervals after the request came, however late the others were: who
 * measures knows by that when it should have been sent. */
static enum outcome play_stream(struct replay__connection *connection,
                                const struct replay__stream *stream,
                                const struct replay_request *request)
{
    KINF__AUTO_BUFFER wire = KINF__BUFFER_INIT;
    int64_t start_ns = request->at_ms * 1000000;
    enum outcome outcome = OUTCOME_GO_ON;
    uint64_t from = 0, to;

    while (outcome == OUTCOME_GO_ON && !(stream->ends && is_last(stream, from))) {
        outcome = wait_for_events(connection, stream, start_ns, from, &to);
        if (outcome != OUTCOME_GO_ON)
            break;
        wire.len = 0;
        if (stream->append(stream->ctx, request, from, to, &wire) < 0)
            return OUTCOME_LOST;
        outcome = send_bytes(connection, kinf__buffer_str(&wire));
        from = to;
    }
    return outcome;
}

static enum outcome perform(struct replay__connection *connection,
                            const struct replay__response *response,
                            const struct replay__action *action,
                            const struct replay_request *request)
{
    switch (action->type) {
    case REPLAY__SEND:
        return send_bytes(connection,
                          (struct kinf_str){ response->wire.bytes + action->start, action->len });
    case REPLAY__STREAM:
        return play_stream(connection, action->stream, request);
    case REPLAY__STALL:
        return stall(connection);
    case REPLAY__PAUSE:
        return wait_until(connection, kinf__clock_now_ns() + action->pause_ms * 1000000, 0);
    case REPLAY__WAIT:
        return wait_until(connection, INT64_MAX, action->signal);
    case REPLAY__CLOSE_NOTIFY:
        return OUTCOME_CLOSE_NOTIFY;
    case REPLAY__CUT:
        return OUTCOME_CUT;
    case REPLAY__RESET:
        return OUTCOME_RESET;
    }
    return OUTCOME_LOST;
}

static enum outcome play(struct replay__connection *connection,
                         const struct replay__response *response,
                         const struct replay_request *request)
{
    enum outcome outcome = response->wire_limit != 0 ? OUTCOME_GO_ON : OUTCOME_CUT;

    connection->budget = response->wire_limit;
    for (size_t i = 0; i < response->n_actions && outcome == OUTCOME_GO_ON; i++)
        outcome = perform(connection, response, &response->actions[i], request);
    return outcome;
}

static enum outcome refuse(struct replay__connection *connection,
                           const struct replay_request *request)
{
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT, answer = KINF__BUFFER_INIT;
    char message[512];

    snprintf(message, sizeof message, "the script expects no %s", request->line);
    if (replay__append_status_object(&body, 500, "InternalError", message) < 0 ||
        replay__append_status_line(&answer, 500, "") < 0 ||
        kinf__buffer_printf(&answer,
                            "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                            body.len) < 0 ||
        kinf__buffer_append_str(&answer, kinf__buffer_str(&body)) < 0)
        return OUTCOME_LOST;
    return replay__channel_write(&connection->channel, answer.bytes, answer.len) ? OUTCOME_GO_ON
                                                                                 : OUTCOME_LOST;
}

/* --- requests --- */

/* Reads until `input` has `len` bytes. */
static bool read_more(struct replay__connection *connection)
{
    struct kinf__buffer *input = &connection->input;
    size_t n;

    if (input->len > INPUT_MAX_BYTES || kinf__buffer_reserve(input, READ_SIZE) < 0)
        return false;
    n = replay__channel_read(&connection->channel, input->bytes + input->len, READ_SIZE);
    input->len += n;
    return n > 0;
}

/* Returns false if its end cannot be told. */
static bool read_body(struct replay__connection *connection, struct replay_request *request)
{
    char text[24];
    size_t len;

    if (!replay_request_header(request, "Content-Length", text, sizeof text))
        return !replay__request_says(request, "Transfer-Encoding", "chunked");
    len = strtoul(text, NULL, 10);
    while (connection->input.len < len) {
        if (!read_more(connection))
            return false;
    }
    if (len != 0)
        request->body = strndup(connection->input.bytes, len);
    kinf__buffer_consume(&connection->input, len);
    return true;
}

/* Such as a TLS hello. */
static bool is_no_http(const struct kinf__buffer *input)
{
    return input->len != 0 && !isupper((unsigned char)input->bytes[0]);
}

/* The next request, on the heap; NULL at the end of the connection. */
static struct replay_request *read_request(struct replay__connection *connection)
{
    struct kinf__buffer *input = &connection->input;
    struct replay_request *request = NULL;
    const char *end;
    size_t head_len;

    while (input->len == 0 || (end = memmem(input->bytes, input->len, "\r\n\r\n", 4)) == NULL) {
        if (is_no_http(input)) {
            replay__channel_write(&connection->channel, BAD_REQUEST, sizeof BAD_REQUEST - 1);
            return NULL;
        }
        if (!read_more(connection))
            return NULL;
    }
    head_len = (size_t)(end - input->bytes) + 4;
    request = malloc(sizeof *request);
    if (request == NULL ||
        replay__request_init(request, (struct kinf_str){ input->bytes, head_len }) < 0) {
        free(request);
        return NULL;
    }
    kinf__buffer_consume(input, head_len);
    request->connection = connection->number;
    request->at_ms = kinf__clock_now_ms();
    memcpy(request->client_name, connection->client_name, sizeof request->client_name);
    return request;
}

static enum outcome answer(struct replay__connection *connection, struct replay_request *request)
{
    bool is_last =
        replay__request_says(request, "Connection", "close") || !read_body(connection, request);
    bool is_listed;
    const struct replay__exchange *exchange =
        replay__admit(connection->replay, request, &is_listed);
    enum outcome outcome;

    connection->is_answered = false;
    outcome = exchange != NULL ? play(connection, &exchange->response, request)
                               : refuse(connection, request);
    replay__note_answered(connection);
    if (!is_listed) {
        replay__request_release(request);
        free(request);
    }
    return outcome == OUTCOME_GO_ON && is_last ? OUTCOME_CLOSE_NOTIFY : outcome;
}

static enum replay__farewell farewell_of(enum outcome outcome)
{
    if (outcome == OUTCOME_RESET)
        return REPLAY__FAREWELL_RST;
    return outcome == OUTCOME_CLOSE_NOTIFY ? REPLAY__FAREWELL_CLOSE_NOTIFY : REPLAY__FAREWELL_FIN;
}

void *replay__connection_main(void *ctx)
{
    struct replay__connection *connection = ctx;
    enum outcome outcome = OUTCOME_GO_ON;
    struct replay_request *request;

    if (replay__channel_open(&connection->channel, connection->fd,
                             connection->replay->tls.context)) {
        replay__channel_peer_name(&connection->channel, connection->client_name,
                                  sizeof connection->client_name);
        while (outcome == OUTCOME_GO_ON && (request = read_request(connection)) != NULL)
            outcome = answer(connection, request);
    }
    replay__channel_finish(&connection->channel, farewell_of(outcome));
    kinf__buffer_release(&connection->input);
    replay__connection_leave(connection);
    return NULL;
}
