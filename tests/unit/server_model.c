/*
 * The model server. Neighbours: server_history.c has what it serves. One thread polls all
 * connections. Invariant: nothing is sent while the history's lock is held.
 */
#include "unit/server_model.h"

#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <zlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "replay/request.h"
#include "replay/response.h"
#include "unit/scripted_server.h"

#define MAX_CONNECTIONS 16
#define N_CLIENTS       8 /* that can be told apart: a namespace or none, labelled or not */
#define READ_SIZE       4096

/* What becomes of a connection. */
enum fate { FATE_STAYS, FATE_FIN, FATE_RST };

struct connection {
    int fd; /* -1: none */
    struct kinf__buffer input;
    int64_t ready_ms; /* nothing is sent before */
    bool was_delayed;
    bool is_watching;
    bool is_silent; /* a watch that hangs */
    struct server_view view;
    char name_space[16];
    size_t next_event;
    unsigned generation;
    unsigned long told_rv;
};

struct server_model {
    struct server_history *history;
    bool has_watch_lists;
    unsigned port;
    pthread_t thread;
    struct kinf__waker waker;
    atomic_bool is_stopping;
    atomic_bool must_restart;
    atomic_uint trouble;
    unsigned listed_generation[N_CLIENTS]; /* guarded by the history's lock */

    /* owned by the thread */
    int listener;
    int64_t accept_again_ms;
    struct test_random random;
    struct connection connections[MAX_CONNECTIONS];
    bool may_ask_to_wait; /* that costs a second, so few do it, and once */
    struct kinf__buffer out;
};

static void must(int r)
{
    if (r < 0)
        abort();
}

static size_t below(struct server_model *server, size_t limit)
{
    return test_random_below(&server->random, limit);
}

/* `permille` is how often at full trouble. */
static bool chance(struct server_model *server, unsigned permille)
{
    return below(server, 100000) < (size_t)permille * atomic_load(&server->trouble);
}

/* --- sending --- */

static bool send_all(int fd, const char *bytes, size_t len)
{
    while (len != 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

/* Sends what was put out, at times in small pieces. */
static enum fate flush(struct server_model *server, struct connection *connection)
{
    size_t size = chance(server, 100) ? (server->out.len < 1000 ? 1 : 100) : server->out.len;
    size_t at = 0;

    while (at < server->out.len) {
        size_t len = server->out.len - at < size ? server->out.len - at : size;

        if (!send_all(connection->fd, server->out.bytes + at, len))
            return FATE_FIN;
        at += len;
    }
    server->out.len = 0;
    return FATE_STAYS;
}

static enum fate some_end(struct server_model *server)
{
    return below(server, 2) == 0 ? FATE_FIN : FATE_RST;
}

/* Sends only the beginning. */
static enum fate flush_cut(struct server_model *server, struct connection *connection)
{
    server->out.len = below(server, server->out.len);
    flush(server, connection);
    return some_end(server);
}

/* --- putting out --- */

static void put_chunk(struct server_model *server, const char *bytes, size_t len)
{
    if (len == 0)
        return;
    must(kinf__buffer_printf(&server->out, "%zx\r\n", len));
    must(kinf__buffer_append(&server->out, bytes, len));
    must(kinf__buffer_printf(&server->out, "\r\n"));
}

static void put_last_chunk(struct server_model *server)
{
    must(kinf__buffer_printf(&server->out, "0\r\n\r\n"));
}

static void put_stream_head(struct server_model *server, const char *headers)
{
    must(kinf__buffer_printf(&server->out,
                             "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                             "%sTransfer-Encoding: chunked\r\n\r\n",
                             headers));
}

static void put_answer(struct server_model *server, int status, const char *headers,
                       const struct kinf__buffer *body)
{
    must(replay__append_status_line(&server->out, status, ""));
    must(kinf__buffer_printf(&server->out,
                             "Content-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n",
                             headers, body->len));
    must(kinf__buffer_append_str(&server->out, kinf__buffer_str(body)));
}

static void put_text(struct server_model *server, int status, const char *text)
{
    const struct kinf__buffer body = { (char *)(uintptr_t)text, strlen(text), 0 };

    put_answer(server, status, "", &body);
}

static void put_status(struct server_model *server, int status, const char *reason,
                       const char *headers)
{
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;

    must(replay__append_status_object(&body, status, reason, "by chance"));
    put_answer(server, status, headers, &body);
}

static void put_error_event(struct server_model *server, int status, const char *reason)
{
    KINF__AUTO_BUFFER line = KINF__BUFFER_INIT;

    must(kinf__buffer_printf(&line, "{\"type\":\"ERROR\",\"object\":"));
    must(replay__append_status_object(&line, status, reason, "by chance"));
    must(kinf__buffer_printf(&line, "}\n"));
    put_chunk(server, line.bytes, line.len);
}

static void put_bookmark(struct server_model *server, unsigned long rv, bool ends_initial_events)
{
    KINF__AUTO_BUFFER line = KINF__BUFFER_INIT;

    must(kinf__buffer_printf(
        &line,
        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\","
        "\"metadata\":{\"resourceVersion\":\"%lu\"%s}}}\n",
        rv,
        ends_initial_events ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : ""));
    put_chunk(server, line.bytes, line.len);
}

static void put_object_event(struct server_model *server, const struct server_view *view,
                             const char *type, size_t slot, const struct server_state *state,
                             unsigned long rv)
{
    KINF__AUTO_BUFFER line = KINF__BUFFER_INIT;
    size_t cut;

    must(kinf__buffer_printf(&line, "{\"type\":\"%s\",\"object\":", type));
    server_append_object(&line, slot, state, rv, view->part, true);
    must(kinf__buffer_printf(&line, "}\n"));
    cut = chance(server, 200) ? below(server, line.len) : line.len;
    put_chunk(server, line.bytes, cut);
    put_chunk(server, line.bytes + cut, line.len - cut);
}

/* --- refusals --- */

static void put_too_large(struct server_model *server)
{
    put_text(server, 504,
             "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":"
             "\"Timeout: Too large resource version\",\"reason\":\"Timeout\",\"details\":"
             "{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\",\"message\":"
             "\"Too large resource version\"}]},\"code\":504}");
}

static void put_refusal(struct server_model *server)
{
    static const struct {
        int status;
        const char *reason;
    } refusals[] = { { 429, "TooManyRequests" },
                     { 500, "InternalError" },
                     { 503, "ServiceUnavailable" },
                     { 401, "Unauthorized" } };
    size_t which = below(server, KINF__ARRAY_LEN(refusals) + 2);

    if (which < KINF__ARRAY_LEN(refusals)) {
        put_status(server, refusals[which].status, refusals[which].reason, "");
    } else if (which == KINF__ARRAY_LEN(refusals) && server->may_ask_to_wait) {
        server->may_ask_to_wait = false;
        put_status(server, 429, "TooManyRequests", "Retry-After: 1\r\n");
    } else {
        put_text(server, 502, "<html>bad gateway</html>");
    }
}

/* A watch from a version that is forgotten, on one of the two ways. */
static void put_expired(struct server_model *server)
{
    if (below(server, 2) == 0) {
        put_status(server, 410, "Expired", "");
        return;
    }
    put_stream_head(server, "");
    put_error_event(server, 410, "Expired");
    put_last_chunk(server);
}

/* A watch from a version of another generation. */
static void put_foreign(struct server_model *server)
{
    if (below(server, 2) == 0)
        put_expired(server);
    else
        put_status(server, 500, "InternalError", "");
}

/* --- LIST --- */

static size_t client_of(const struct server_view *view)
{
    size_t name_space = view->name_space != NULL ? 1 + (size_t)(view->name_space[2] - '0') : 0;

    return 2 * name_space + view->only_labelled;
}

static unsigned long number_of(const struct replay_request *request, const char *name)
{
    char value[32];

    return replay_request_query(request, name, value, sizeof value) ? strtoul(value, NULL, 10) : 0;
}

/* A page of what the view saw at `rv`. */
struct page {
    unsigned generation;
    unsigned long rv;
    size_t from_slot;
    size_t limit;
    long only_slot;       /* of a field selector; negative: none */
    bool is_verification; /* of a client that does not list: it knows a generation already */
    struct server_state states[SERVER_N_SLOTS];
};

static void append_items(struct kinf__buffer *body, const struct server_view *view,
                         struct page *page)
{
    size_t n_items = 0;

    for (; page->from_slot < SERVER_N_SLOTS; page->from_slot++) {
        const struct server_state *state = &page->states[page->from_slot];

        if (!server_view_sees(view, page->from_slot, state) ||
            (page->only_slot >= 0 && (size_t)page->only_slot != page->from_slot))
            continue;
        if (page->limit != 0 && n_items == page->limit)
            return;
        must(kinf__buffer_printf(body, "%s", n_items++ != 0 ? "," : ""));
        server_append_object(body, page->from_slot, state, state->rv, view->part, false);
    }
}

static void append_list(struct kinf__buffer *body, const struct server_view *view,
                        struct page *page)
{
    KINF__AUTO_BUFFER items = KINF__BUFFER_INIT;

    append_items(&items, view, page);
    must(kinf__buffer_printf(body,
                             "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":"
                             "{\"resourceVersion\":\"%lu\"",
                             view->part == SERVER_WHOLE ? "ConfigMap" : "PartialObjectMetadata",
                             view->part == SERVER_WHOLE ? "v1" : "meta.k8s.io/v1", page->rv));
    if (page->from_slot < SERVER_N_SLOTS)
        must(kinf__buffer_printf(body, ",\"continue\":\"%u-%lu-%zu\"", page->generation, page->rv,
                                 page->from_slot));
    must(kinf__buffer_printf(body, "},\"items\":["));
    must(kinf__buffer_append_str(body, kinf__buffer_str(&items)));
    must(kinf__buffer_printf(body, "]}\n"));
}

/* The version that the request gets; false: it is refused. */
static bool choose_rv_locked(struct server_model *server, const struct replay_request *request,
                             struct page *page)
{
    const struct server_history *history = server->history;
    unsigned long wanted_rv = number_of(request, "resourceVersion");
    char token[64];

    *page = (struct page){ .generation = history->generation,
                           .rv = history->rv,
                           .limit = number_of(request, "limit"),
                           .only_slot = -1 };
    page->is_verification = page->limit == 1;
    if (replay_request_query(request, "fieldSelector", token, sizeof token)) {
        const char *named = strstr(token, "metadata.name=k");

        if (named != NULL)
            page->only_slot = strtol(named + strlen("metadata.name=k"), NULL, 10);
    }
    if (replay_request_query(request, "resourceVersionMatch", token, sizeof token)) {
        page->rv = wanted_rv;
        return wanted_rv >= history->oldest_rv && wanted_rv <= history->rv;
    }
    if (replay_request_query(request, "continue", token, sizeof token))
        return sscanf(token, "%u-%lu-%zu", &page->generation, &page->rv, &page->from_slot) == 3 &&
               page->generation == history->generation && page->rv >= history->oldest_rv;
    if (wanted_rv > history->rv)
        return false;
    if (wanted_rv >= history->oldest_rv && wanted_rv != 0 && below(server, 2) == 0)
        page->rv = wanted_rv + below(server, history->rv - wanted_rv + 1);
    return true;
}

static bool make_page(struct server_model *server, const struct server_view *view,
                      const struct replay_request *request, struct kinf__buffer *body)
{
    struct page page;
    bool is_served;

    pthread_mutex_lock(&server->history->lock);
    is_served = choose_rv_locked(server, request, &page);
    if (is_served) {
        server_history_at_locked(server->history, page.rv, page.states);
        append_list(body, view, &page);
        if (page.from_slot >= SERVER_N_SLOTS && !page.is_verification)
            server->listed_generation[client_of(view)] = page.generation;
    }
    pthread_mutex_unlock(&server->history->lock);
    return is_served;
}

static void gzip_body(struct kinf__buffer *body)
{
    KINF__AUTO_BUFFER compressed = KINF__BUFFER_INIT;
    z_stream stream = { .next_in = (Bytef *)body->bytes, .avail_in = (uInt)body->len };

    must(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY));
    stream.avail_out = (uInt)deflateBound(&stream, body->len);
    must(kinf__buffer_reserve(&compressed, stream.avail_out));
    stream.next_out = (Bytef *)compressed.bytes;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        abort();
    body->len = 0;
    must(kinf__buffer_append(body, compressed.bytes, stream.total_out));
    deflateEnd(&stream);
}

static enum fate answer_list(struct server_model *server, struct connection *connection,
                             const struct replay_request *request)
{
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;
    char token[64];
    bool is_gzip;

    if (!make_page(server, &connection->view, request, &body)) {
        if (replay_request_query(request, "continue", token, sizeof token) ||
            replay_request_query(request, "resourceVersionMatch", token, sizeof token))
            put_status(server, 410, "Expired", "");
        else
            put_too_large(server);
        return flush(server, connection);
    }
    is_gzip = replay_request_header(request, "Accept-Encoding", token, sizeof token) &&
              strcmp(token, "gzip") == 0;
    if (is_gzip)
        gzip_body(&body);
    if (chance(server, 40))
        body.len = below(server, body.len); /* a proxy ends it tidily */
    put_stream_head(server, is_gzip ? "Content-Encoding: gzip\r\n" : "");
    for (size_t at = 0; at < body.len;) {
        size_t len = 1 + below(server, body.len - at);

        put_chunk(server, body.bytes + at, len);
        at += len;
    }
    put_last_chunk(server);
    return chance(server, 80) ? flush_cut(server, connection) : flush(server, connection);
}

/* --- WATCH --- */

static void begin_stream_locked(struct server_model *server, struct connection *connection,
                                unsigned long rv)
{
    const struct server_history *history = server->history;
    size_t next = history->n_events;

    while (next > 0 && history->events[next - 1].rv > rv)
        next--;
    connection->next_event = next;
    connection->generation = history->generation;
    connection->told_rv = rv;
    connection->is_watching = true;
    connection->is_silent = chance(server, 10);
    put_stream_head(server, "");
    server_model_wake(server); /* there may be events already */
}

static void begin_watch_list_locked(struct server_model *server, struct connection *connection,
                                    unsigned long rv)
{
    const struct server_history *history = server->history;

    if (!server->has_watch_lists) {
        put_status(server, 422, "Invalid", "");
        return;
    }
    if (rv > history->rv) {
        put_too_large(server);
        return;
    }
    begin_stream_locked(server, connection, history->rv);
    for (size_t i = 0; i < SERVER_N_SLOTS; i++) {
        if (server_view_sees(&connection->view, i, &history->now[i]))
            put_object_event(server, &connection->view, "ADDED", i, &history->now[i],
                             history->now[i].rv);
    }
    put_bookmark(server, history->rv, true);
    server->listed_generation[client_of(&connection->view)] = history->generation;
}

static void begin_watch_locked(struct server_model *server, struct connection *connection,
                               unsigned long rv)
{
    const struct server_history *history = server->history;

    if (server->listed_generation[client_of(&connection->view)] != history->generation)
        put_foreign(server);
    else if (rv == 0 || rv > history->rv)
        abort(); /* it never told anybody such a version */
    else if (rv < history->oldest_rv)
        put_expired(server);
    else
        begin_stream_locked(server, connection, rv);
}

static enum fate answer_watch(struct server_model *server, struct connection *connection,
                              const struct replay_request *request)
{
    unsigned long rv = number_of(request, "resourceVersion");
    char value[8];

    pthread_mutex_lock(&server->history->lock);
    if (replay_request_query(request, "sendInitialEvents", value, sizeof value))
        begin_watch_list_locked(server, connection, rv);
    else
        begin_watch_locked(server, connection, rv);
    pthread_mutex_unlock(&server->history->lock);
    return chance(server, 50) ? flush_cut(server, connection) : flush(server, connection);
}

/* An object that comes into the selector's sight is added, one that leaves it is deleted. */
static void put_event(struct server_model *server, struct connection *connection,
                      const struct server_event *event)
{
    bool was_seen = server_view_sees(&connection->view, event->slot, &event->before);
    bool is_seen = server_view_sees(&connection->view, event->slot, &event->after);

    if (!was_seen && !is_seen)
        return;
    if (is_seen)
        put_object_event(server, &connection->view, was_seen ? "MODIFIED" : "ADDED", event->slot,
                         &event->after, event->rv);
    else
        put_object_event(server, &connection->view, "DELETED", event->slot, &event->before,
                         event->rv);
    connection->told_rv = event->rv;
}

/* False: the server was restored behind the watch's back. */
static bool put_news(struct server_model *server, struct connection *connection)
{
    const struct server_history *history = server->history;
    bool is_calm = atomic_load(&server->trouble) == 0;
    bool is_valid;

    pthread_mutex_lock(&server->history->lock);
    is_valid = connection->generation == history->generation;
    if (is_valid) {
        while (connection->next_event < history->n_events)
            put_event(server, connection, &history->events[connection->next_event++]);
        if (connection->told_rv != history->rv && (is_calm || below(server, 8) == 0)) {
            put_bookmark(server, history->rv, false);
            connection->told_rv = history->rv;
        }
    }
    pthread_mutex_unlock(&server->history->lock);
    return is_valid;
}

static enum fate end_watch(struct server_model *server, struct connection *connection)
{
    connection->is_watching = false;
    if (chance(server, 200))
        put_chunk(server, "{\"type\":\"ADDED\",\"obj", 21); /* it is a proxy that ends it */
    put_last_chunk(server);
    return flush(server, connection);
}

static enum fate push(struct server_model *server, struct connection *connection)
{
    if (!put_news(server, connection)) {
        server->out.len = 0;
        return some_end(server);
    }
    if (server->out.len == 0)
        return FATE_STAYS;
    if (chance(server, 40))
        return flush_cut(server, connection);
    if (chance(server, 20)) {
        server->out.len = 0; /* what was news is not told */
        put_error_event(server, 410, "Expired");
        return end_watch(server, connection);
    }
    if (chance(server, 10)) {
        put_error_event(server, 500, "InternalError");
        return end_watch(server, connection);
    }
    if (chance(server, 50))
        return end_watch(server, connection);
    return flush(server, connection);
}

/* --- requests --- */

static enum fate answer_discovery(struct server_model *server, struct connection *connection,
                                  struct kinf_str path)
{
    if (kinf_str_equal(path, KINF_STR("/api")))
        put_text(server, 200, "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"]}");
    else if (kinf_str_equal(path, KINF_STR("/apis")))
        put_text(server, 200, "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[]}");
    else if (kinf_str_equal(path, KINF_STR("/api/v1")))
        put_text(server, 200,
                 "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"v1\","
                 "\"resources\":[{\"name\":\"configmaps\",\"singularName\":\"configmap\","
                 "\"namespaced\":true,\"kind\":\"ConfigMap\","
                 "\"verbs\":[\"get\",\"list\",\"watch\"]}]}");
    else
        put_status(server, 404, "NotFound", "");
    return flush(server, connection);
}

static bool read_view(struct connection *connection, const struct replay_request *request,
                      struct kinf_str path)
{
    char text[128], selector[64], accept[256];

    snprintf(text, sizeof text, "%.*s", (int)path.len, path.bytes);
    connection->view = (struct server_view){ .part = SERVER_WHOLE };
    if (replay_request_header(request, "Accept", accept, sizeof accept) &&
        strstr(accept, "as=PartialObjectMetadata") != NULL)
        connection->view.part = SERVER_ALL_METADATA;
    if (strcmp(text, "/api/v1/configmaps") != 0) {
        if (sscanf(text, "/api/v1/namespaces/%15[^/]/configmaps", connection->name_space) != 1)
            return false;
        connection->view.name_space = connection->name_space;
    }
    if (replay_request_query(request, "fieldSelector", selector, sizeof selector) &&
        sscanf(selector, "metadata.namespace=%15[^,]", connection->name_space) == 1)
        connection->view.name_space = connection->name_space;
    connection->view.only_labelled =
        replay_request_query(request, "labelSelector", selector, sizeof selector);
    return true;
}

static enum fate answer(struct server_model *server, struct connection *connection,
                        const struct replay_request *request)
{
    struct kinf_str path = replay__request_path(request);
    char value[8];

    if (!read_view(connection, request, path))
        return answer_discovery(server, connection, path);
    if (chance(server, 30))
        return some_end(server);
    if (chance(server, 100)) {
        put_refusal(server);
        return flush(server, connection);
    }
    return replay_request_query(request, "watch", value, sizeof value)
               ? answer_watch(server, connection, request)
               : answer_list(server, connection, request);
}

/* The length of the request's head; 0: it is not complete. */
static size_t head_len(const struct connection *connection)
{
    const struct kinf__buffer *input = &connection->input;
    const char *end = input->len != 0 ? memmem(input->bytes, input->len, "\r\n\r\n", 4) : NULL;

    return end != NULL ? (size_t)(end - input->bytes) + 4 : 0;
}

static enum fate answer_next(struct server_model *server, struct connection *connection)
{
    size_t len = head_len(connection);
    struct replay_request request;
    enum fate fate;

    if (len == 0)
        return FATE_STAYS;
    must(replay__request_init(&request, (struct kinf_str){ connection->input.bytes, len }));
    kinf__buffer_consume(&connection->input, len);
    fate = answer(server, connection, &request);
    replay__request_release(&request);
    return fate;
}

/* --- connections --- */

static void drop(struct connection *connection, enum fate fate)
{
    const struct linger at_once = { .l_onoff = 1, .l_linger = 0 };

    if (fate == FATE_RST)
        setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(connection->fd);
    kinf__buffer_release(&connection->input);
    *connection = (struct connection){ .fd = -1 };
}

static bool receive(struct connection *connection)
{
    ssize_t n;

    must(kinf__buffer_reserve(&connection->input, READ_SIZE));
    n = recv(connection->fd, connection->input.bytes + connection->input.len, READ_SIZE, 0);
    if (n <= 0)
        return false;
    connection->input.len += (size_t)n;
    return true;
}

static bool has_work(const struct connection *connection)
{
    return connection->is_watching || head_len(connection) != 0;
}

/* Does what is due; something else may be due later. */
static void step(struct server_model *server, struct connection *connection)
{
    enum fate fate;

    if (connection->is_silent || !has_work(connection) ||
        kinf__clock_now_ms() < connection->ready_ms)
        return;
    if (!connection->was_delayed && chance(server, 100)) {
        connection->was_delayed = true;
        connection->ready_ms = kinf__clock_now_ms() + 1 + (int64_t)below(server, 8);
        return;
    }
    connection->was_delayed = false;
    fate = connection->is_watching ? push(server, connection) : answer_next(server, connection);
    server->out.len = 0;
    if (fate != FATE_STAYS)
        drop(connection, fate);
}

static void accept_one(struct server_model *server)
{
    int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
    int on = 1;

    for (size_t i = 0; fd >= 0 && i < MAX_CONNECTIONS; i++) {
        if (server->connections[i].fd < 0) {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            server->connections[i].fd = fd;
            return;
        }
    }
    if (fd >= 0)
        close(fd);
}

static void restart(struct server_model *server)
{
    for (size_t i = 0; i < MAX_CONNECTIONS; i++) {
        if (server->connections[i].fd >= 0)
            drop(&server->connections[i], some_end(server));
    }
    server->accept_again_ms = kinf__clock_now_ms() + (int64_t)below(server, 5);
}

/* --- the thread --- */

/* poll() passes over descriptors that are -1. */
static void wait_for_work(struct server_model *server, struct pollfd *fds)
{
    int64_t now_ms = kinf__clock_now_ms(), until_ms = INT64_MAX;

    fds[0] = (struct pollfd){ .fd = server->waker.fd, .events = POLLIN };
    fds[1] = (struct pollfd){ .fd = server->listener, .events = POLLIN };
    if (server->accept_again_ms > now_ms) {
        fds[1].fd = -1;
        until_ms = server->accept_again_ms;
    }
    for (size_t i = 0; i < MAX_CONNECTIONS; i++) {
        const struct connection *connection = &server->connections[i];

        fds[2 + i] = (struct pollfd){ .fd = connection->fd, .events = POLLIN };
        if (connection->was_delayed && connection->ready_ms < until_ms)
            until_ms = connection->ready_ms;
    }
    poll(fds, 2 + MAX_CONNECTIONS,
         until_ms == INT64_MAX ? -1 : (int)(until_ms > now_ms ? until_ms - now_ms : 0));
    kinf__waker_clear(&server->waker);
}

static void *run(void *ctx)
{
    struct server_model *server = ctx;
    struct pollfd fds[2 + MAX_CONNECTIONS];

    while (!atomic_load(&server->is_stopping)) {
        wait_for_work(server, fds);
        for (size_t i = 0; i < MAX_CONNECTIONS; i++) {
            if (fds[2 + i].fd >= 0 && fds[2 + i].revents != 0 && !receive(&server->connections[i]))
                drop(&server->connections[i], FATE_FIN);
        }
        if (fds[1].fd >= 0 && fds[1].revents != 0)
            accept_one(server);
        if (atomic_exchange(&server->must_restart, false))
            restart(server);
        for (size_t i = 0; i < MAX_CONNECTIONS; i++) {
            if (server->connections[i].fd >= 0)
                step(server, &server->connections[i]);
        }
    }
    return NULL;
}

struct server_model *server_model_start(struct server_history *history, uint64_t seed,
                                        bool has_watch_lists)
{
    struct server_model *server = calloc(1, sizeof *server);

    assert_non_null(server);
    server->history = history;
    server->has_watch_lists = has_watch_lists;
    server->random.state = seed;
    server->may_ask_to_wait = below(server, 8) == 0;
    for (size_t i = 0; i < MAX_CONNECTIONS; i++)
        server->connections[i].fd = -1;
    for (size_t i = 0; i < N_CLIENTS; i++)
        server->listed_generation[i] = UINT_MAX;
    must(kinf__waker_init(&server->waker, NULL));
    server->listener = test_listen(64, &server->port);
    must(fcntl(server->listener, F_SETFL, O_NONBLOCK));
    must(kinf__thread_start(&server->thread, "model-server", run, server, NULL));
    return server;
}

void server_model_stop(struct server_model *server)
{
    atomic_store(&server->is_stopping, true);
    server_model_wake(server);
    pthread_join(server->thread, NULL);
    restart(server);
    close(server->listener);
    kinf__buffer_release(&server->out);
    kinf__waker_release(&server->waker);
    free(server);
}

struct kinf_client *server_model_client(const struct server_model *server)
{
    return test_client_of(server->port, NULL);
}

static void ignore_watch_error(const struct kinf_error *err, void *ctx)
{
    (void)err;
    (void)ctx;
}

void server_model_set_options(struct kinf_informer_options *options)
{
    options->resource = "configmaps";
    options->silent_after_ms = 400;
    options->watch_timeout_ms = 1000;
    options->backoff_base_ms = 1;
    options->backoff_max_ms = 4;
    options->on_watch_error = ignore_watch_error;
}

void server_model_wake(struct server_model *server)
{
    kinf__waker_set(&server->waker);
}

void server_model_set_generation(struct server_model *server, const struct server_view *view,
                                 unsigned generation)
{
    pthread_mutex_lock(&server->history->lock);
    server->listed_generation[client_of(view)] = generation;
    pthread_mutex_unlock(&server->history->lock);
}

void server_model_set_trouble(struct server_model *server, unsigned percent)
{
    atomic_store(&server->trouble, percent);
    server_model_wake(server);
}

void server_model_restore(struct server_model *server, size_t n_changes)
{
    server_history_restore(server->history);
    for (; n_changes > 0; n_changes--)
        server_history_change(server->history);
    server_model_restart(server);
}

void server_model_restart(struct server_model *server)
{
    atomic_store(&server->must_restart, true);
    server_model_wake(server);
}
