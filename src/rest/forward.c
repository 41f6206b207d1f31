/*
 * One thread, one curl multi, an easy handle for each request. Neighbours: connection.c says how a
 * connection to the server is made; serve/passthrough.c decides what is forwarded.
 *
 * A forward belongs to two: to whoever made it, through its buffers, and to the thread, through its
 * handle. The former leaves by marking it, the latter frees it. Only the thread touches a handle
 * once it is in the list; what curl has paused is therefore resumed by a mark and a wake-up.
 */
#include "rest/forward.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/thread.h"
#include "rest/client.h"
#include "rest/connection.h"
#include "rest/transport_error.h"

#define BUFFER_BYTES     (64u << 10)
#define RECEIVE_BYTES    (16 * 1024L) /* what curl hands out at once */
#define HEAD_LIMIT_MS    75000        /* the server itself gives up after 60 s */
#define POLL_MAX_MS      1000
#define HEADERS_MAX      64
#define KEPT_CONNECTIONS 16L

struct kinf__forwarder {
    /* constant */
    struct kinf_client *client;
    size_t max_forwards;
    pthread_t thread;
    struct kinf__waker waker;
    CURLM *multi; /* the thread's */
    struct kinf__mutex lock;
    /* guarded by lock */
    struct kinf__list forwards;
    size_t n_forwards;
    bool is_ended;
};

struct kinf__forward {
    /* constant after creation */
    struct kinf__forwarder *forwarder;
    bool has_body;
    int64_t silence_ms;
    struct curl_slist *sent_headers;
    struct curl_slist *connect_to;
    struct kinf__credential *credential; /* the handle has its authority */

    /* the thread's */
    CURL *easy;
    bool is_added;
    int socket_errno;
    char curl_message[CURL_ERROR_SIZE];

    /* guarded by the forwarder's lock */
    struct kinf__list node;
    void (*wake)(void *ctx); /* NULL: the owner has left */
    void *wake_ctx;
    struct kinf__buffer in;  /* of the request's body */
    struct kinf__buffer out; /* of the answer's */
    bool is_body_complete;
    bool is_send_paused;
    bool is_receive_paused;
    bool wants_end;
    bool is_sent;
    int64_t last_byte_ms;
    struct kinf__header headers[HEADERS_MAX];
    size_t n_headers;
    int64_t body_len;
    int code;
    bool has_head;
    bool is_through;           /* curl is, or it never began */
    struct kinf_error failure; /* code 0: the answer is complete */
};

/* --- both sides, the lock held --- */

static void wake_locked(struct kinf__forward *forward)
{
    if (forward->wake != NULL)
        forward->wake(forward->wake_ctx);
}

static void finish_locked(struct kinf__forward *forward)
{
    forward->is_through = true;
    wake_locked(forward);
}

static void forget_headers(struct kinf__forward *forward)
{
    for (size_t i = 0; i < forward->n_headers; i++)
        free((char *)(uintptr_t)forward->headers[i].name);
    forward->n_headers = 0;
    forward->body_len = -1;
}

/* --- what curl calls, on the thread --- */

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
        wake_locked(forward);
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
    if (forward->out.len != 0 && forward->out.len + len > BUFFER_BYTES) {
        forward->is_receive_paused = true;
        len = CURL_WRITEFUNC_PAUSE;
    } else if (kinf__buffer_append(&forward->out, bytes, len) < 0) {
        len = 0;
    } else {
        wake_locked(forward);
    }
    kinf__mutex_unlock(&forward->forwarder->lock);
    return len;
}

static struct kinf_str trim(const char *bytes, size_t len)
{
    while (len != 0 && strchr(" \t\r\n", bytes[len - 1]) != NULL)
        len--;
    while (len != 0 && strchr(" \t", *bytes) != NULL) {
        bytes++;
        len--;
    }
    return (struct kinf_str){ bytes, len };
}

/* One allocation: the name, a NUL, the value, a NUL. */
static bool add_header(struct kinf__forward *forward, struct kinf_str name, struct kinf_str value)
{
    char *text = calloc(1, name.len + value.len + 2);

    if (text == NULL)
        return false;
    memcpy(text, name.bytes, name.len);
    memcpy(text + name.len + 1, value.bytes, value.len);
    if (strcasecmp(text, "Content-Length") == 0) {
        long long told = strtoll(text + name.len + 1, NULL, 10);

        forward->body_len = told >= 0 ? told : -1;
        free(text);
        return true;
    }
    forward->headers[forward->n_headers++] = (struct kinf__header){ text, text + name.len + 1 };
    return true;
}

static bool take_line(struct kinf__forward *forward, const char *line, size_t len)
{
    const char *colon = memchr(line, ':', len);

    if (len >= 5 && memcmp(line, "HTTP/", 5) == 0) {
        const char *space = memchr(line, ' ', len);

        forget_headers(forward);
        forward->code = space != NULL ? (int)strtol(space + 1, NULL, 10) : 0;
        return true;
    }
    if (trim(line, len).len == 0) {
        forward->has_head = forward->has_head || forward->code >= 200;
        if (forward->has_head)
            wake_locked(forward);
        return true;
    }
    /* Trailers come after the head has been read by others. */
    if (colon == NULL || forward->has_head || forward->n_headers == HEADERS_MAX)
        return true;
    return add_header(forward, (struct kinf_str){ line, (size_t)(colon - line) },
                      trim(colon + 1, len - (size_t)(colon + 1 - line)));
}

static size_t on_header(char *line, size_t size, size_t n, void *ctx)
{
    struct kinf__forward *forward = ctx;
    bool is_taken;

    kinf__mutex_lock(&forward->forwarder->lock);
    forward->last_byte_ms = kinf__clock_now_ms();
    is_taken = take_line(forward, line, size * n);
    kinf__mutex_unlock(&forward->forwarder->lock);
    return is_taken ? size * n : 0;
}

/* --- making one --- */

static int append_headers(struct kinf__forward *forward,
                          const struct kinf__forward_request *request)
{
    /* What curl would add by itself; a line without a value takes it back. */
    static const char *const none[] = { "Accept:", "Content-Type:", "Expect:" };
    struct curl_slist **headers = &forward->sent_headers;

    for (size_t i = 0; i < request->n_headers; i++) {
        KINF__AUTO_SECRET_BUFFER line = KINF__BUFFER_INIT;
        const struct kinf__header *header = &request->headers[i];

        if (kinf__buffer_printf(&line, *header->value != '\0' ? "%s: %s" : "%s;", header->name,
                                header->value) < 0 ||
            kinf__connection_append_header(headers, kinf__buffer_cstr(&line)) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < KINF__ARRAY_LEN(none); i++) {
        bool is_there = false;

        for (size_t k = 0; k < request->n_headers && !is_there; k++)
            is_there = strncasecmp(none[i], request->headers[k].name, strlen(none[i]) - 1) == 0 &&
                       strlen(request->headers[k].name) == strlen(none[i]) - 1;
        if (!is_there && kinf__connection_append_header(headers, none[i]) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return request->body_len == KINF__FORWARD_CHUNKED
               ? kinf__connection_append_header(headers, "Transfer-Encoding: chunked")
               : 0;
}

static void set_callbacks(struct kinf__forward *forward)
{
    CURL *easy = forward->easy;

    curl_easy_setopt(easy, CURLOPT_PRIVATE, forward);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, forward->curl_message);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, forward);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, forward);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_send);
    curl_easy_setopt(easy, CURLOPT_READDATA, forward);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
}

static bool set_method(struct kinf__forward *forward, const struct kinf__forward_request *request)
{
    CURL *easy = forward->easy;
    bool is_read = strcmp(request->method, "GET") == 0;

    /* curl sends a request again when a connection that it kept turns out to be dead. */
    return curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, is_read ? 0L : 1L) == CURLE_OK &&
           curl_easy_setopt(easy, is_read || !forward->has_body ? CURLOPT_HTTPGET : CURLOPT_POST,
                            1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                            forward->has_body ? (curl_off_t)request->body_len : (curl_off_t)-1) ==
               CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method) == CURLE_OK;
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

/* Of the client's credential the authority alone; a name and a password in the server's URL would be
 * the client's, too. */
static bool set_all(struct kinf__forward *forward, const struct kinf__forward_request *request)
{
    struct kinf_client *client = forward->forwarder->client;

    set_callbacks(forward);
    forward->credential = kinf__credentials_peek(&client->credentials, kinf__moment_now());
    return kinf__connection_prepare(forward->easy, client, &forward->socket_errno) &&
           curl_easy_setopt(forward->easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_NONE) == CURLE_OK &&
           kinf__connection_set_blob(forward->easy, CURLOPT_CAINFO_BLOB,
                                     forward->credential->parts.ca_pem) &&
           set_method(forward, request) && append_headers(forward, request) == 0 &&
           curl_easy_setopt(forward->easy, CURLOPT_HTTPHEADER, forward->sent_headers) == CURLE_OK &&
           set_url(forward, request->target);
}

static void destroy(struct kinf__forward *forward)
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

static bool enlist(struct kinf__forward *forward)
{
    struct kinf__forwarder *forwarder = forward->forwarder;
    bool has_room;

    kinf__mutex_lock(&forwarder->lock);
    has_room = forwarder->n_forwards < forwarder->max_forwards;
    if (has_room) {
        forwarder->n_forwards++;
        kinf__list_push_back(&forwarder->forwards, &forward->node);
    }
    kinf__mutex_unlock(&forwarder->lock);
    if (has_room)
        kinf__waker_set(&forwarder->waker);
    return has_room;
}

int kinf__forward_new(struct kinf__forwarder *forwarder,
                      const struct kinf__forward_request *request,
                      struct kinf__forward **ret_forward, struct kinf_error *err)
{
    struct kinf__forward *forward = calloc(1, sizeof *forward);

    if (forward == NULL)
        return kinf__error_no_memory(err);
    forward->forwarder = forwarder;
    forward->has_body = request->body_len != 0;
    forward->is_body_complete = !forward->has_body;
    forward->silence_ms = request->silence_ms;
    forward->wake = request->wake;
    forward->wake_ctx = request->wake_ctx;
    forward->body_len = -1;
    forward->easy = curl_easy_init();
    if (forward->easy == NULL || !set_all(forward, request)) {
        destroy(forward);
        return kinf__error_no_memory(err);
    }
    if (!enlist(forward)) {
        destroy(forward);
        return kinf__error_set(err, KINF_ERR_LIMIT, "%zu requests are passed through already",
                               forwarder->max_forwards);
    }
    *ret_forward = forward;
    return 0;
}

/* --- the owner's side --- */

void kinf__forward_free(struct kinf__forward *forward)
{
    struct kinf__forwarder *forwarder;

    if (forward == NULL)
        return;
    forwarder = forward->forwarder;
    kinf__mutex_lock(&forwarder->lock);
    forward->wake = NULL;
    kinf__mutex_unlock(&forwarder->lock);
    kinf__waker_set(&forwarder->waker);
}

void kinf__forward_end(struct kinf__forward *forward)
{
    kinf__mutex_lock(&forward->forwarder->lock);
    forward->wants_end = true;
    wake_locked(forward);
    kinf__mutex_unlock(&forward->forwarder->lock);
    kinf__waker_set(&forward->forwarder->waker);
}

size_t kinf__forward_send(struct kinf__forward *forward, const char *bytes, size_t len)
{
    struct kinf__forwarder *forwarder = forward->forwarder;

    kinf__mutex_lock(&forwarder->lock);
    if (!forward->has_head && !forward->is_through && !forward->wants_end) {
        if (len > BUFFER_BYTES - forward->in.len)
            len = BUFFER_BYTES - forward->in.len;
        if (len != 0 && kinf__buffer_append(&forward->in, bytes, len) < 0) {
            kinf__error_no_memory(&forward->failure);
            forward->wants_end = true;
        }
    }
    kinf__mutex_unlock(&forwarder->lock);
    kinf__waker_set(&forwarder->waker);
    return len;
}

void kinf__forward_end_body(struct kinf__forward *forward)
{
    kinf__mutex_lock(&forward->forwarder->lock);
    forward->is_body_complete = true;
    kinf__mutex_unlock(&forward->forwarder->lock);
    kinf__waker_set(&forward->forwarder->waker);
}

int kinf__forward_head(struct kinf__forward *forward, struct kinf__forward_head *ret_head,
                       struct kinf_error *err)
{
    int code = 0;

    kinf__mutex_lock(&forward->forwarder->lock);
    if (forward->has_head) {
        *ret_head = (struct kinf__forward_head){ forward->code, forward->headers,
                                                 forward->n_headers, forward->body_len };
        code = 1;
    } else if (forward->is_through && forward->failure.code != 0) {
        *err = forward->failure;
        code = forward->failure.code;
    } else if (forward->is_through || forward->wants_end) {
        code = kinf__error_set(err, forward->wants_end ? KINF_ERR_STOPPED : KINF_ERR_NETWORK, "%s",
                               forward->wants_end ? "stopped" : "the answer's head was cut short");
    }
    kinf__mutex_unlock(&forward->forwarder->lock);
    return code;
}

bool kinf__forward_is_sent(struct kinf__forward *forward)
{
    bool is_sent;

    kinf__mutex_lock(&forward->forwarder->lock);
    is_sent = forward->is_sent;
    kinf__mutex_unlock(&forward->forwarder->lock);
    return is_sent;
}

/* Half a line would be taken for a broken one. */
static void cut_at_line_locked(struct kinf__forward *forward)
{
    while (forward->out.len != 0 && forward->out.bytes[forward->out.len - 1] != '\n')
        forward->out.len--;
}

ssize_t kinf__forward_read(struct kinf__forward *forward, char *buf, size_t size)
{
    struct kinf__forwarder *forwarder = forward->forwarder;
    ssize_t n = 0;
    bool is_whole, resumes;

    kinf__mutex_lock(&forwarder->lock);
    is_whole = forward->is_through && forward->failure.code == 0;
    if (forward->wants_end && !is_whole)
        cut_at_line_locked(forward);
    if (forward->out.len != 0) {
        n = (ssize_t)(forward->out.len < size ? forward->out.len : size);
        memcpy(buf, forward->out.bytes, (size_t)n);
        kinf__buffer_consume(&forward->out, (size_t)n);
    } else if (forward->is_through || forward->wants_end) {
        n = is_whole ? KINF__FORWARD_END : KINF__FORWARD_BROKEN;
    }
    resumes = forward->is_receive_paused && forward->out.len == 0;
    kinf__mutex_unlock(&forwarder->lock);
    if (resumes)
        kinf__waker_set(&forwarder->waker);
    return n;
}

/* --- the thread --- */

/* What the lock's holder has to do with a handle, once the lock is gone. */
struct work {
    bool adds, resumes, leaves, is_left;
};

/* When the exchange has to be given up; NULL: not now. */
static const char *lateness_locked(const struct kinf__forward *forward, int64_t now_ms)
{
    int64_t silent_ms = now_ms - forward->last_byte_ms;

    if (!forward->is_added || forward->is_through)
        return NULL;
    if (!forward->has_head)
        return !forward->is_send_paused && silent_ms >= HEAD_LIMIT_MS ? "no answer in time" : NULL;
    return forward->silence_ms != 0 && !forward->is_receive_paused && forward->out.len == 0 &&
                   silent_ms >= forward->silence_ms
               ? "the answer stopped"
               : NULL;
}

static struct work look_locked(struct kinf__forward *forward, int64_t now_ms)
{
    struct work work = { .is_left = forward->wake == NULL };
    const char *late = lateness_locked(forward, now_ms);

    if (late != NULL)
        kinf__error_set(&forward->failure, KINF_ERR_TIMEOUT, "server %s: %s",
                        forward->forwarder->client->host, late);
    work.leaves = work.is_left || late != NULL || (forward->wants_end && !forward->is_through);
    if (work.leaves)
        return work;
    work.adds = !forward->is_added && !forward->is_through;
    if (work.adds)
        forward->last_byte_ms = now_ms;
    work.resumes =
        forward->is_added && !forward->is_through &&
        ((forward->is_send_paused && (forward->in.len != 0 || forward->is_body_complete)) ||
         (forward->is_receive_paused && forward->out.len == 0));
    if (work.resumes) {
        forward->is_send_paused = false;
        forward->is_receive_paused = false;
        forward->last_byte_ms = now_ms;
    }
    return work;
}

static void take_out(struct kinf__forward *forward)
{
    if (forward->is_added)
        curl_multi_remove_handle(forward->forwarder->multi, forward->easy);
    forward->is_added = false;
}

static void leave(struct kinf__forward *forward, const struct work *work)
{
    struct kinf__forwarder *forwarder = forward->forwarder;

    take_out(forward);
    kinf__mutex_lock(&forwarder->lock);
    if (work->is_left) {
        kinf__list_remove(&forward->node);
        forwarder->n_forwards--;
    } else if (!forward->is_through) {
        if (forward->failure.code == 0)
            kinf__error_set(&forward->failure, KINF_ERR_STOPPED, "stopped");
        finish_locked(forward);
    }
    kinf__mutex_unlock(&forwarder->lock);
    if (work->is_left)
        destroy(forward);
}

static void fail(struct kinf__forward *forward, int code, const char *why)
{
    kinf__mutex_lock(&forward->forwarder->lock);
    kinf__error_set(&forward->failure, code, "%s", why);
    finish_locked(forward);
    kinf__mutex_unlock(&forward->forwarder->lock);
}

static void attend(struct kinf__forward *forward, const struct work *work)
{
    if (work->leaves) {
        leave(forward, work);
    } else if (work->adds) {
        forward->is_added =
            curl_multi_add_handle(forward->forwarder->multi, forward->easy) == CURLM_OK;
        if (!forward->is_added)
            fail(forward, KINF_ERR_NO_MEMORY, "out of memory");
    } else if (work->resumes) {
        curl_easy_pause(forward->easy, CURLPAUSE_CONT);
    }
}

/* A forward leaves the list on this thread alone, so the next one is still there when the lock has
 * been given up for a while; new ones are put at the end. */
static void attend_all(struct kinf__forwarder *forwarder)
{
    int64_t now_ms = kinf__clock_now_ms();
    struct kinf__list *node;

    kinf__mutex_lock(&forwarder->lock);
    node = forwarder->forwards.next;
    while (node != &forwarder->forwards) {
        struct kinf__forward *forward = KINF__LIST_ENTRY(node, struct kinf__forward, node);
        struct work work = look_locked(forward, now_ms);

        node = node->next;
        if (!work.adds && !work.resumes && !work.leaves)
            continue;
        kinf__mutex_unlock(&forwarder->lock);
        attend(forward, &work);
        kinf__mutex_lock(&forwarder->lock);
    }
    kinf__mutex_unlock(&forwarder->lock);
}

/* Why curl gave up; a head that is complete has been handed on, whatever became of its body. */
static int judge(struct kinf__forward *forward, CURLcode result, struct kinf_error *err)
{
    const struct kinf_client *client = forward->forwarder->client;

    if (result == CURLE_OK)
        return 0;
    if (result == CURLE_COULDNT_CONNECT && forward->socket_errno != 0)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, forward->socket_errno,
                                     "no socket for the server %s", client->host);
    return kinf__transport_error(forward->easy, result, client, forward->curl_message, err);
}

static void collect(struct kinf__forwarder *forwarder)
{
    CURLMsg *message;
    int n_left;

    while ((message = curl_multi_info_read(forwarder->multi, &n_left)) != NULL) {
        struct kinf__forward *forward = NULL;
        struct kinf_error err = KINF_ERROR_INIT;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&forward);
        (void)judge(forward, message->data.result, &err);
        take_out(forward);
        KINF__LOG(KINF__LOG_REST, KINF_LOG_DEBUG, "passed through code=%d error=%s", forward->code,
                  KINF__QUOTED(err.message));
        kinf__mutex_lock(&forwarder->lock);
        if (forward->failure.code == 0)
            forward->failure = err;
        finish_locked(forward);
        kinf__mutex_unlock(&forwarder->lock);
    }
}

static bool is_ended(struct kinf__forwarder *forwarder)
{
    bool is_over;

    kinf__mutex_lock(&forwarder->lock);
    is_over = forwarder->is_ended && kinf__list_is_empty(&forwarder->forwards);
    kinf__mutex_unlock(&forwarder->lock);
    return is_over;
}

static void *run(void *ctx)
{
    struct kinf__forwarder *forwarder = ctx;
    struct curl_waitfd waker = { forwarder->waker.fd, CURL_WAIT_POLLIN, 0 };
    int n_running;

    for (;;) {
        kinf__waker_clear(&forwarder->waker);
        attend_all(forwarder);
        if (is_ended(forwarder))
            break;
        curl_multi_perform(forwarder->multi, &n_running);
        collect(forwarder);
        curl_multi_poll(forwarder->multi, &waker, 1, POLL_MAX_MS, NULL);
    }
    return NULL;
}

/* --- life --- */

static int start(struct kinf__forwarder *forwarder, struct kinf_error *err)
{
    int failed = kinf__waker_init(&forwarder->waker, err);

    if (failed < 0)
        return failed;
    forwarder->multi = curl_multi_init();
    if (forwarder->multi == NULL)
        return kinf__error_no_memory(err);
    curl_multi_setopt(forwarder->multi, CURLMOPT_MAXCONNECTS, KEPT_CONNECTIONS);
    return kinf__thread_start(&forwarder->thread, "kinf-upstream", run, forwarder, err);
}

static void release(struct kinf__forwarder *forwarder)
{
    curl_multi_cleanup(forwarder->multi);
    if (forwarder->waker.fd >= 0)
        kinf__waker_release(&forwarder->waker);
    kinf__mutex_release(&forwarder->lock);
    free(forwarder);
}

int kinf__forwarder_new(struct kinf_client *client, size_t max_forwards,
                        struct kinf__forwarder **ret_forwarder, struct kinf_error *err)
{
    struct kinf__forwarder *forwarder = calloc(1, sizeof *forwarder);
    int failed;

    if (forwarder == NULL)
        return kinf__error_no_memory(err);
    forwarder->client = client;
    forwarder->max_forwards = max_forwards;
    forwarder->waker.fd = -1;
    kinf__list_init(&forwarder->forwards);
    kinf__mutex_init(&forwarder->lock, KINF__RANK_FORWARD);
    failed = start(forwarder, err);
    if (failed < 0) {
        release(forwarder);
        return failed;
    }
    *ret_forwarder = forwarder;
    return 0;
}

void kinf__forwarder_free(struct kinf__forwarder *forwarder)
{
    if (forwarder == NULL)
        return;
    kinf__mutex_lock(&forwarder->lock);
    forwarder->is_ended = true;
    kinf__mutex_unlock(&forwarder->lock);
    kinf__waker_set(&forwarder->waker);
    pthread_join(forwarder->thread, NULL);
    release(forwarder);
}
