/*
 * One exchange at a time over a private curl multi, which alone can be woken, timed and left at any
 * moment. Neighbours: client.h has what a connection needs, http_request.c writes the request's head,
 * head.h reads the answer's, inflate.h undoes gzip, status.h reads a refusal; transport_error.c says
 * what curl's failures mean.
 *
 * Invariant: the easy handle is in the multi only while an exchange runs.
 */
#include "rest/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "rest/client.h"
#include "rest/connection.h"
#include "rest/head.h"
#include "rest/http_priv.h"
#include "rest/inflate.h"
#include "rest/status.h"
#include "rest/transport_error.h"

#define RECEIVE_BUFFER_BYTES (256 * 1024L)
#define REFUSAL_MAX_BYTES    65536 /* of a body that is no success */
#define POLL_MAX_MS          1000  /* a bound on every wait, should a wake-up ever be lost */
#define BREATH_MS            50    /* between looks at the waker while bytes never pause */

struct kinf__http {
    struct kinf_client *client;
    struct kinf__waker *waker;
    CURLM *multi;
    CURL *easy;
    struct kinf__credential *credential; /* of the last request; the easy handle has its texts */
    int64_t next_look_ms;                /* whether it is outdated */
    struct kinf__inflate *inflate;       /* made when first needed */
    char curl_message[CURL_ERROR_SIZE];

    /* the exchange that runs */
    const struct kinf__http_request *request;
    size_t n_sent; /* of the request's body */
    struct kinf_error *err;
    int status; /* of the response's head; 0 before it */
    char content_type[64];
    bool is_gzip;
    bool is_head_told;
    uint32_t retry_after_ms;
    int callback_code; /* what ended the exchange from inside; 0: nothing did */
    int socket_errno;  /* why there was no socket, if descriptors ran out; curl does not tell */
    int64_t started_ms;
    int64_t last_byte_ms;
    int64_t last_look_ms; /* at the waker and the deadline */
    struct kinf__buffer refusal;
};

/* --- deadlines --- */

/* When the exchange has to be given up, and the words for it. */
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

static struct deadline deadline_of(const struct kinf__http *http)
{
    const struct kinf__http_request *request = http->request;
    struct deadline deadline = { KINF__NEVER_MS, 0, "" };

    limit(&deadline, http->started_ms, request->total_timeout_ms,
          "the answer is not complete after");
    if (!http->is_head_told)
        limit(&deadline, http->started_ms, request->head_timeout_ms, "no answer within");
    if (http->status != 0)
        limit(&deadline, http->last_byte_ms, request->idle_timeout_ms, "the stream is silent for");
    return deadline;
}

static int fail_late(const struct kinf__http *http, const struct deadline *deadline,
                     struct kinf_error *err)
{
    return kinf__error_set(err, KINF_ERR_TIMEOUT, "server %s: %s %lld ms", http->client->host,
                           deadline->why, (long long)deadline->limit_ms);
}

/* curl goes on reading for as long as bytes are there, and only then comes back to drive(): a peer
 * that sends faster than we take would keep us for ever. */
static int look_up(struct kinf__http *http)
{
    struct deadline deadline;

    if (http->last_byte_ms - http->last_look_ms < BREATH_MS)
        return 0;
    http->last_look_ms = http->last_byte_ms;
    if (kinf__waker_is_set(http->waker))
        return kinf__error_set(http->err, KINF_ERR_STOPPED, "stopped");
    deadline = deadline_of(http);
    return deadline.at_ms <= http->last_byte_ms ? fail_late(http, &deadline, http->err) : 0;
}

/* --- what curl calls --- */

static bool is_success(const struct kinf__http *http)
{
    return http->status >= 200 && http->status < 300;
}

static void end_head(struct kinf__http *http)
{
    if (!is_success(http) || http->is_head_told)
        return;
    http->is_head_told = true;
    if (http->request->on_head != NULL)
        http->request->on_head(http->status, http->request->ctx);
}

static size_t on_header(char *bytes, size_t size, size_t n, void *ctx)
{
    struct kinf__http *http = ctx;
    struct kinf_str line = { bytes, size * n }, name, value;

    http->last_byte_ms = kinf__clock_now_ms();
    if (kinf__head_is_status(line, &http->status)) {
        http->is_gzip = false;
        http->retry_after_ms = 0;
        http->content_type[0] = '\0';
    } else if (kinf__head_is_end(line)) {
        end_head(http);
    } else if (kinf__head_split(line, &name, &value)) {
        if (kinf__head_is_named(name, "Content-Type"))
            snprintf(http->content_type, sizeof http->content_type, "%.*s", (int)value.len,
                     value.bytes);
        else if (kinf__head_is_named(name, "Content-Encoding"))
            http->is_gzip = kinf__head_is_named(value, "gzip");
        else if (kinf__head_is_named(name, "Retry-After"))
            http->retry_after_ms = kinf__head_retry_after_ms(value);
    }
    return line.len;
}

/* Inflated bytes of any response. A refusal that does not end is left when it is long enough. */
static int take_body(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    struct kinf__http *http = ctx;
    size_t room = REFUSAL_MAX_BYTES - http->refusal.len;

    if (is_success(http))
        return http->request->on_body(bytes, len, http->request->ctx, err);
    if (kinf__buffer_append(&http->refusal, bytes, len < room ? len : room) < 0)
        return kinf__error_no_memory(err);
    return 0;
}

static int take_gzip(struct kinf__http *http, const char *bytes, size_t len)
{
    int failed = 0;

    if (http->inflate == NULL)
        failed = kinf__inflate_new(&http->inflate, http->err);
    return failed < 0 ? failed
                      : kinf__inflate_feed(http->inflate, bytes, len, take_body, http, http->err);
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *ctx)
{
    struct kinf__http *http = ctx;
    size_t len = size * n;

    http->last_byte_ms = kinf__clock_now_ms();
    http->callback_code = look_up(http);
    if (http->callback_code < 0)
        return 0;
    http->callback_code =
        http->is_gzip ? take_gzip(http, bytes, len) : take_body(bytes, len, http, http->err);
    /* Again: what the callback took is our silence, not the peer's. */
    http->last_byte_ms = kinf__clock_now_ms();
    return http->callback_code < 0 || http->refusal.len == REFUSAL_MAX_BYTES ? 0 : len;
}

/* There is no seek function: curl would use it to send a request again when a connection that it kept
 * turns out to be dead. */
static size_t on_send(char *bytes, size_t size, size_t n, void *ctx)
{
    struct kinf__http *http = ctx;
    struct kinf_str body = http->request->body;
    size_t room = size * n, left = body.len - http->n_sent;
    size_t len = left < room ? left : room;

    memcpy(bytes, body.bytes + http->n_sent, len);
    http->n_sent += len;
    return len;
}

/* --- setting up --- */

static bool set_connection(struct kinf__http *http)
{
    const struct kinf__connection_callbacks callbacks = { on_header, on_bytes, on_send, http,
                                                          http->curl_message };

    kinf__connection_set_callbacks(http->easy, &callbacks);
    curl_easy_setopt(http->easy, CURLOPT_BUFFERSIZE, RECEIVE_BUFFER_BYTES);
    return kinf__connection_prepare(http->easy, http->client, &http->socket_errno) &&
           curl_easy_setopt(http->easy, CURLOPT_USERAGENT, http->client->user_agent) == CURLE_OK;
}

int kinf__http_new(struct kinf_client *client, struct kinf__waker *waker,
                   struct kinf__http **ret_http, struct kinf_error *err)
{
    struct kinf__http *http = calloc(1, sizeof *http);

    if (http == NULL)
        return kinf__error_no_memory(err);
    http->client = client;
    http->waker = waker;
    http->multi = curl_multi_init();
    http->easy = curl_easy_init();
    if (http->multi == NULL || http->easy == NULL || !set_connection(http)) {
        kinf__http_free(http);
        return kinf__error_no_memory(err);
    }
    *ret_http = http;
    return 0;
}

void kinf__http_free(struct kinf__http *http)
{
    if (http == NULL)
        return;
    curl_easy_cleanup(http->easy);
    curl_multi_cleanup(http->multi);
    kinf__credential_unref(http->credential);
    kinf__inflate_free(http->inflate);
    kinf__buffer_release(&http->refusal);
    free(http);
}

void kinf__http_disconnect(struct kinf__http *http)
{
    CURLM *fresh = curl_multi_init();

    /* Connections live in the multi. Without memory for another one, the next exchange at least
     * does not reuse what is there. */
    if (fresh == NULL) {
        curl_easy_setopt(http->easy, CURLOPT_FRESH_CONNECT, 1L);
        return;
    }
    curl_multi_cleanup(http->multi);
    http->multi = fresh;
}

/* --- one exchange --- */

/* What this request goes out with. A connection that was made with other certificates is closed. */
static int renew_credential(struct kinf__http *http, struct kinf_error *err)
{
    struct kinf__credential *fresh;
    int failed = kinf__credentials_take(&http->client->credentials, kinf__moment_now(), http->waker,
                                        &fresh, err);

    if (failed < 0)
        return failed;
    if (http->credential != NULL && http->credential->tls_number != fresh->tls_number)
        kinf__http_disconnect(http);
    if (!kinf__connection_set_credential(http->easy, &fresh->parts)) {
        kinf__credential_unref(http->credential);
        http->credential = NULL;
        kinf__http_disconnect(http);
        kinf__credential_unref(fresh);
        return kinf__error_no_memory(err);
    }
    kinf__credential_unref(http->credential);
    http->credential = fresh;
    return 0;
}

/* Whether the exchange is to be left for a connection with other certificates. */
static bool is_to_be_left(struct kinf__http *http, int64_t now_ms)
{
    const struct kinf__http_request *request = http->request;

    if (request->may_end == NULL || !is_success(http) || now_ms < http->next_look_ms)
        return false;
    http->next_look_ms = now_ms + POLL_MAX_MS;
    return kinf__credentials_are_outdated(&http->client->credentials, http->credential,
                                          kinf__moment_now()) &&
           request->may_end(request->ctx);
}

/* Waits for the socket, the waker or a deadline. */
static int wait_for_more(struct kinf__http *http, struct kinf_error *err)
{
    struct curl_waitfd waker = { http->waker->fd, CURL_WAIT_POLLIN, 0 };
    struct deadline deadline = deadline_of(http);
    int64_t now_ms = kinf__clock_now_ms();
    int64_t left_ms = deadline.at_ms - now_ms;

    http->last_look_ms = now_ms;
    if (left_ms <= 0)
        return fail_late(http, &deadline, err);
    left_ms = kinf__clock_wait_ms(left_ms < POLL_MAX_MS ? left_ms : POLL_MAX_MS);
    if (curl_multi_poll(http->multi, &waker, 1, (int)left_ms, NULL) != CURLM_OK)
        return kinf__error_set(err, KINF_ERR_SYSTEM, "cannot wait for the server %s",
                               http->client->host);
    if (waker.revents != 0)
        return kinf__error_set(err, KINF_ERR_STOPPED, "stopped");
    return 0;
}

/* Returns 1 when curl is through, with its verdict. */
static int transfer_result(struct kinf__http *http, CURLcode *ret_result)
{
    CURLMsg *message;
    int n_left;

    while ((message = curl_multi_info_read(http->multi, &n_left)) != NULL) {
        if (message->msg == CURLMSG_DONE) {
            *ret_result = message->data.result;
            return 1;
        }
    }
    return 0;
}

/* Returns 1 when the exchange was left early. */
static int drive(struct kinf__http *http, CURLcode *ret_result, struct kinf_error *err)
{
    int n_running, failed;

    http->started_ms = kinf__clock_now_ms();
    http->last_byte_ms = http->started_ms;
    http->last_look_ms = http->started_ms;
    for (;;) {
        CURLMcode code = curl_multi_perform(http->multi, &n_running);

        if (http->request->on_pause != NULL)
            http->request->on_pause(http->request->ctx);
        if (code != CURLM_OK)
            return kinf__error_no_memory(err);
        if (transfer_result(http, ret_result))
            return 0;
        if (is_to_be_left(http, kinf__clock_now_ms()))
            return 1;
        if ((failed = wait_for_more(http, err)) < 0)
            return failed;
    }
}

/* A conflict without a reason, for what was to be made: its name is taken. */
static bool is_name_taken(const struct kinf__http *http, int code)
{
    return code == KINF_ERR_CONFLICT && strcmp(kinf__http_method(http->request), "POST") == 0 &&
           !kinf__status_has_reason(kinf__buffer_str(&http->refusal));
}

static int judge_refusal(struct kinf__http *http, struct kinf_error *err)
{
    int code = kinf__status_to_error(kinf__buffer_str(&http->refusal), http->status, err);

    if (is_name_taken(http, code)) {
        code = KINF_ERR_EXISTS;
        if (err != NULL)
            err->code = KINF_ERR_EXISTS;
    }
    if (err != NULL && http->retry_after_ms != 0)
        err->retry_after_ms = http->retry_after_ms;
    kinf__error_prefix(err, "server %s answered %d", http->client->host, http->status);
    if (http->status == 401) {
        kinf__credentials_refused(&http->client->credentials, http->credential, kinf__moment_now());
        kinf__http_disconnect(http);
    }
    return code;
}

static int judge(struct kinf__http *http, CURLcode result, struct kinf_error *err)
{
    if (http->callback_code < 0)
        return http->callback_code;
    /* A head that says no has said it, whatever became of its body. */
    if (http->status >= 300 || (result == CURLE_OK && !is_success(http)))
        return judge_refusal(http, err);
    if (result == CURLE_COULDNT_CONNECT && http->socket_errno != 0)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, http->socket_errno,
                                     "no socket for the server %s", http->client->host);
    if (result != CURLE_OK)
        return kinf__transport_error(http->easy, result, http->client, http->curl_message, err);
    /* curl takes the end of the connection within the head for the end of an empty body. */
    if (!http->is_head_told)
        return kinf__broken_off(http->client, "the answer's head was cut short", err);
    if (http->is_gzip && http->inflate != NULL && !kinf__inflate_is_complete(http->inflate))
        return kinf__broken_off(http->client, "a compressed body was cut short", err);
    return 0;
}

static int exchange(struct kinf__http *http, struct kinf_error *err)
{
    CURLcode result = CURLE_OK;
    int failed;

    if (curl_multi_add_handle(http->multi, http->easy) != CURLM_OK)
        return kinf__error_no_memory(err);
    failed = drive(http, &result, err);
    curl_multi_remove_handle(http->multi, http->easy);
    curl_easy_setopt(http->easy, CURLOPT_FRESH_CONNECT, 0L);
    if (failed == 0)
        failed = judge(http, result, err);
    if (failed == KINF_ERR_TLS)
        kinf__credentials_distrusted(&http->client->credentials);
    return failed < 0 ? failed : 0;
}

static void begin(struct kinf__http *http, const struct kinf__http_request *request,
                  struct kinf_error *err)
{
    http->request = request;
    http->err = err;
    http->n_sent = 0;
    http->status = 0;
    http->is_gzip = false;
    http->content_type[0] = '\0';
    http->is_head_told = false;
    http->retry_after_ms = 0;
    http->callback_code = 0;
    http->socket_errno = 0;
    http->refusal.len = 0;
    http->curl_message[0] = '\0';
    if (http->inflate != NULL)
        kinf__inflate_reset(http->inflate);
}

int kinf__http_perform(struct kinf__http *http, const struct kinf__http_request *request,
                       struct kinf_error *err)
{
    KINF__AUTO_BUFFER url = KINF__BUFFER_INIT;
    struct curl_slist *headers = NULL, *connect_to = NULL;
    const char *text = NULL;
    int failed;

    begin(http, request, err);
    failed = renew_credential(http, err);
    if (failed == 0)
        failed = kinf__http_append_headers(request, http->client, http->credential, &headers, err);
    if (failed == 0 &&
        (kinf__connection_append_url(http->client, request->target, &url, &connect_to) < 0 ||
         (text = kinf__buffer_cstr(&url)) == NULL))
        failed = kinf__error_no_memory(err);
    if (failed == 0) {
        KINF__LOG(KINF__LOG_REST, KINF_LOG_DEBUG, "%s %s host=%s", kinf__http_method(request),
                  request->target, http->client->host);
        curl_easy_setopt(http->easy, CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(http->easy, CURLOPT_CONNECT_TO, connect_to);
        failed =
            kinf__connection_set_method(http->easy, kinf__http_method(request),
                                        request->body.bytes != NULL, (int64_t)request->body.len) &&
                    curl_easy_setopt(http->easy, CURLOPT_URL, text) == CURLE_OK
                ? exchange(http, err)
                : kinf__error_no_memory(err);
        curl_easy_setopt(http->easy, CURLOPT_HTTPHEADER, NULL);
        curl_easy_setopt(http->easy, CURLOPT_CONNECT_TO, NULL);
    }
    kinf__connection_free_headers(headers);
    curl_slist_free_all(connect_to);
    return failed;
}

const char *kinf__http_content_type(const struct kinf__http *http)
{
    return http->content_type;
}

const char *kinf__http_host(const struct kinf__http *http)
{
    return http->client->host;
}

int64_t kinf__http_request_timeout_ms(const struct kinf__http *http)
{
    return http->client->request_timeout_ms;
}
