/*
 * A forward's handle: how it is set up, and what curl calls on the thread. Neighbours: connection.c
 * says how a connection to the server is made, head.c reads the lines of a head.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "rest/connection.h"
#include "rest/forward_priv.h"
#include "rest/head.h"

#define RECEIVE_BYTES (16 * 1024L) /* what curl hands out at once */

/* --- what curl calls --- */

static size_t on_send(char *bytes, size_t size, size_t n, void *ctx)
{
    struct kinf__forward *forward = ctx;
    size_t len = size * n;

    kinf__mutex_lock(&forward->forwarder->lock);
    if (len > forward->in.len)
        len = forward->in.len;
    if (len == 0 && !forward->is_body_complete) {
        forward->is_send_paused = true;
        len = CURL_READFUNC_PAUSE;
    } else if (len != 0) {
        memcpy(bytes, forward->in.bytes, len);
        kinf__buffer_consume(&forward->in, len);
        forward->is_sent = true;
        forward->last_byte_ms = kinf__clock_now_ms();
        kinf__forward_wake_locked(forward);
    }
    kinf__mutex_unlock(&forward->forwarder->lock);
    return len;
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *ctx)
{
    struct kinf__forward *forward = ctx;
    size_t len = size * n;

    kinf__mutex_lock(&forward->forwarder->lock);
    forward->last_byte_ms = kinf__clock_now_ms();
    if (forward->out.len != 0 && forward->out.len + len > KINF__FORWARD_BUFFER_BYTES) {
        forward->is_receive_paused = true;
        len = CURL_WRITEFUNC_PAUSE;
    } else if (kinf__buffer_append(&forward->out, bytes, len) < 0) {
        len = 0;
    } else {
        kinf__forward_wake_locked(forward);
    }
    kinf__mutex_unlock(&forward->forwarder->lock);
    return len;
}

static void forget_headers(struct kinf__forward *forward)
{
    for (size_t i = 0; i < forward->n_headers; i++)
        free((char *)(uintptr_t)forward->headers[i].name);
    forward->n_headers = 0;
    forward->body_len = -1;
    forward->is_chunked = false;
}

/* One allocation: the name, a NUL, the value, a NUL. */
static bool add_header(struct kinf__forward *forward, struct kinf_str name, struct kinf_str value)
{
    char *text;

    if (forward->n_headers == KINF__FORWARD_HEADERS_MAX)
        return true;
    text = calloc(1, name.len + value.len + 2);
    if (text == NULL)
        return false;
    memcpy(text, name.bytes, name.len);
    memcpy(text + name.len + 1, value.bytes, value.len);
    forward->headers[forward->n_headers++] = (struct kinf__header){ text, text + name.len + 1 };
    return true;
}

/* Chunks end by themselves, whatever length is told beside them. Two lengths are none: others would
 * see the answer end elsewhere. */
static bool take_length(struct kinf__forward *forward, struct kinf_str value)
{
    long long told = strtoll(value.bytes, NULL, 10);

    if (forward->is_chunked)
        return true;
    if (told < 0 || (forward->body_len >= 0 && forward->body_len != told))
        return false;
    forward->body_len = told;
    return true;
}

static bool take_header(struct kinf__forward *forward, struct kinf_str name, struct kinf_str value)
{
    if (kinf__head_is_named(name, "Content-Length"))
        return take_length(forward, value);
    if (!kinf__head_is_named(name, "Transfer-Encoding"))
        return add_header(forward, name, value);
    forward->is_chunked = true;
    forward->body_len = -1;
    return true;
}

/* A server that refuses a token does not know the caller; one that is busy has not looked. */
static void end_head_locked(struct kinf__forward *forward)
{
    int code = forward->code;

    if (forward->has_head || code < 200)
        return;
    forward->has_head = true;
    if (code < 300 || code == 401 || code == 403)
        kinf__places_judge(&forward->forwarder->places, forward->caller, code != 401);
    kinf__forward_wake_locked(forward);
}

static bool take_line_locked(struct kinf__forward *forward, struct kinf_str line)
{
    struct kinf_str name, value;

    /* Trailers come after the head has been read by others. */
    if (forward->has_head)
        return true;
    if (kinf__head_is_status(line, &forward->code)) {
        forget_headers(forward);
        return true;
    }
    if (kinf__head_is_end(line)) {
        end_head_locked(forward);
        return true;
    }
    return !kinf__head_split(line, &name, &value) || take_header(forward, name, value);
}

static size_t on_header(char *line, size_t size, size_t n, void *ctx)
{
    struct kinf__forward *forward = ctx;
    bool is_taken;

    kinf__mutex_lock(&forward->forwarder->lock);
    forward->last_byte_ms = kinf__clock_now_ms();
    is_taken = take_line_locked(forward, (struct kinf_str){ line, size * n });
    kinf__mutex_unlock(&forward->forwarder->lock);
    return is_taken ? size * n : 0;
}

/* --- setting up --- */

static bool is_given(const struct kinf__forward_request *request, struct kinf_str name)
{
    for (size_t i = 0; i < request->n_headers; i++) {
        if (kinf__head_is_named(name, request->headers[i].name))
            return true;
    }
    return false;
}

/* What curl would add by itself; a line without a value takes it back. */
static int take_back_defaults(struct kinf__forward *forward,
                              const struct kinf__forward_request *request)
{
    static const char *const lines[] = { "Accept:", "Content-Type:", "Expect:" };

    for (size_t i = 0; i < KINF__ARRAY_LEN(lines); i++) {
        if (!is_given(request, (struct kinf_str){ lines[i], strlen(lines[i]) - 1 }) &&
            kinf__connection_append_header(&forward->sent_headers, lines[i]) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static int append_headers(struct kinf__forward *forward,
                          const struct kinf__forward_request *request)
{
    struct curl_slist **headers = &forward->sent_headers;

    for (size_t i = 0; i < request->n_headers; i++) {
        KINF__AUTO_SECRET_BUFFER line = KINF__BUFFER_INIT;
        const struct kinf__header *header = &request->headers[i];

        if (kinf__buffer_printf(&line, *header->value != '\0' ? "%s: %s" : "%s;", header->name,
                                header->value) < 0 ||
            kinf__connection_append_header(headers, kinf__buffer_cstr(&line)) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    if (take_back_defaults(forward, request) < 0)
        return KINF_ERR_NO_MEMORY;
    return request->body_len == KINF__FORWARD_CHUNKED
               ? kinf__connection_append_header(headers, "Transfer-Encoding: chunked")
               : 0;
}

static bool set_method(struct kinf__forward *forward, const struct kinf__forward_request *request)
{
    bool is_read = strcmp(request->method, "GET") == 0;

    /* curl sends a request again when a connection that it kept turns out to be dead. */
    return curl_easy_setopt(forward->easy, CURLOPT_FRESH_CONNECT, is_read ? 0L : 1L) == CURLE_OK &&
           kinf__connection_set_method(forward->easy, request->method,
                                       !is_read && forward->has_body, request->body_len);
}

static bool set_url(struct kinf__forward *forward, struct kinf_str target)
{
    KINF__AUTO_BUFFER path = KINF__BUFFER_INIT, url = KINF__BUFFER_INIT;
    const char *text;

    if (kinf__buffer_append_str(&path, target) < 0 || (text = kinf__buffer_cstr(&path)) == NULL ||
        kinf__connection_append_url(forward->forwarder->client, text, &url, &forward->connect_to) <
            0 ||
        (text = kinf__buffer_cstr(&url)) == NULL)
        return false;
    return curl_easy_setopt(forward->easy, CURLOPT_URL, text) == CURLE_OK &&
           curl_easy_setopt(forward->easy, CURLOPT_CONNECT_TO, forward->connect_to) == CURLE_OK;
}

static void set_callbacks(struct kinf__forward *forward)
{
    const struct kinf__connection_callbacks callbacks = { on_header, on_bytes, on_send, forward,
                                                          forward->curl_message };

    kinf__connection_set_callbacks(forward->easy, &callbacks);
    curl_easy_setopt(forward->easy, CURLOPT_PRIVATE, forward);
    curl_easy_setopt(forward->easy, CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
}

/* Of the client's credential the authority alone; a name and a password in the server's URL would be
 * the client's, too. */
bool kinf__forward_prepare(struct kinf__forward *forward,
                           const struct kinf__forward_request *request)
{
    struct kinf_client *client = forward->forwarder->client;
    struct kinf__credential_parts shown = { NULL, NULL, NULL, NULL };

    forward->easy = curl_easy_init();
    if (forward->easy == NULL)
        return false;
    set_callbacks(forward);
    forward->credential = kinf__credentials_peek(&client->credentials, kinf__moment_now());
    shown.ca_pem = forward->credential->parts.ca_pem;
    return kinf__connection_prepare(forward->easy, client, &forward->socket_errno) &&
           curl_easy_setopt(forward->easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_NONE) == CURLE_OK &&
           kinf__connection_set_credential(forward->easy, &shown) && set_method(forward, request) &&
           append_headers(forward, request) == 0 &&
           curl_easy_setopt(forward->easy, CURLOPT_HTTPHEADER, forward->sent_headers) == CURLE_OK &&
           set_url(forward, request->target);
}

void kinf__forward_destroy(struct kinf__forward *forward)
{
    curl_easy_cleanup(forward->easy);
    kinf__connection_free_headers(forward->sent_headers);
    curl_slist_free_all(forward->connect_to);
    kinf__credential_unref(forward->credential);
    forget_headers(forward);
    kinf__buffer_release(&forward->in);
    kinf__buffer_release(&forward->out);
    free(forward);
}
