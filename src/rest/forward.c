/*
 * A forward as its owner sees it, and the life of both. Neighbours: forward_curl.c has the handle,
 * forward_thread.c drives it; serve/passthrough.c decides what is forwarded.
 *
 * A forward belongs to two: to whoever made it, through its buffers, and to the thread, through its
 * handle. The former leaves by marking it, the latter frees it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "rest/forward_priv.h"

#define MAX_FORWARDS     256
#define LIMIT_MS         75000 /* the server itself gives up after 60 s */
#define KEPT_CONNECTIONS 16L

/* --- making one --- */

/* Returns why there is no place; NULL: there is one. */
static const char *enlist(struct kinf__forward *forward, const unsigned char *caller)
{
    struct kinf__forwarder *forwarder = forward->forwarder;
    const char *why;

    kinf__mutex_lock(&forwarder->lock);
    forward->caller = kinf__places_take(&forwarder->places, caller, &why);
    if (forward->caller != NULL)
        kinf__list_push_back(&forwarder->forwards, &forward->node);
    kinf__mutex_unlock(&forwarder->lock);
    if (forward->caller == NULL)
        return why;
    kinf__waker_set(&forwarder->waker);
    return NULL;
}

int kinf__forward_new(struct kinf__forwarder *forwarder,
                      const struct kinf__forward_request *request,
                      struct kinf__forward **ret_forward, struct kinf_error *err)
{
    struct kinf__forward *forward = calloc(1, sizeof *forward);
    unsigned char caller[KINF__DIGEST_SIZE];
    const char *why;

    if (forward == NULL)
        return kinf__error_no_memory(err);
    forward->forwarder = forwarder;
    forward->has_body = request->body_len != 0;
    forward->is_body_complete = !forward->has_body;
    forward->is_endless = request->is_endless;
    forward->wake = request->wake;
    forward->wake_ctx = request->wake_ctx;
    forward->body_len = -1;
    if (kinf__sha256(request->caller, caller) < 0 || !kinf__forward_prepare(forward, request)) {
        kinf__forward_destroy(forward);
        return kinf__error_no_memory(err);
    }
    why = enlist(forward, caller);
    if (why != NULL) {
        kinf__forward_destroy(forward);
        return kinf__error_set(err, KINF_ERR_LIMIT, "%s", why);
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
    kinf__forward_wake_locked(forward);
    kinf__mutex_unlock(&forward->forwarder->lock);
    kinf__waker_set(&forward->forwarder->waker);
}

size_t kinf__forward_send(struct kinf__forward *forward, const char *bytes, size_t len)
{
    struct kinf__forwarder *forwarder = forward->forwarder;

    kinf__mutex_lock(&forwarder->lock);
    if (!forward->has_head && !forward->is_through && !forward->wants_end) {
        if (len > KINF__FORWARD_BUFFER_BYTES - forward->in.len)
            len = KINF__FORWARD_BUFFER_BYTES - forward->in.len;
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
        if (err != NULL)
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

/* --- life --- */

static int start(struct kinf__forwarder *forwarder, const struct kinf__forwarder_options *options,
                 struct kinf_error *err)
{
    size_t max = options->max_forwards != 0 ? options->max_forwards : MAX_FORWARDS;
    int failed;

    if (kinf__places_init(&forwarder->places, max, options->max_of_one, options->max_of_strangers) <
        0)
        return kinf__error_no_memory(err);
    failed = kinf__waker_init(&forwarder->waker, err);
    if (failed < 0)
        return failed;
    forwarder->multi = curl_multi_init();
    if (forwarder->multi == NULL)
        return kinf__error_no_memory(err);
    curl_multi_setopt(forwarder->multi, CURLMOPT_MAXCONNECTS, KEPT_CONNECTIONS);
    return kinf__thread_start(&forwarder->thread, "kinf-upstream", kinf__forwarder_run, forwarder,
                              err);
}

static void release(struct kinf__forwarder *forwarder)
{
    curl_multi_cleanup(forwarder->multi);
    if (forwarder->waker.fd >= 0)
        kinf__waker_release(&forwarder->waker);
    kinf__mutex_release(&forwarder->lock);
    kinf__places_release(&forwarder->places);
    free(forwarder);
}

int kinf__forwarder_new(struct kinf_client *client, const struct kinf__forwarder_options *options,
                        struct kinf__forwarder **ret_forwarder, struct kinf_error *err)
{
    struct kinf__forwarder *forwarder = calloc(1, sizeof *forwarder);
    int failed;

    if (forwarder == NULL)
        return kinf__error_no_memory(err);
    forwarder->client = client;
    forwarder->head_limit_ms = options->head_limit_ms != 0 ? options->head_limit_ms : LIMIT_MS;
    forwarder->silence_limit_ms =
        options->silence_limit_ms != 0 ? options->silence_limit_ms : LIMIT_MS;
    forwarder->waker.fd = -1;
    kinf__list_init(&forwarder->forwards);
    kinf__mutex_init(&forwarder->lock, KINF__RANK_FORWARD);
    failed = start(forwarder, options, err);
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
