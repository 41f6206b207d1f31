/*
 * The thread that drives all forwards: it puts their handles into the multi, resumes what waits,
 * ends what is late, and frees what its owner has left.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "rest/forward_priv.h"
#include "rest/transport_error.h"

#define POLL_MAX_MS 1000

static void finish_locked(struct kinf__forward *forward)
{
    forward->is_through = true;
    kinf__forward_wake_locked(forward);
}

/* What the lock's holder has to do with a handle, once the lock is gone. */
struct work {
    bool adds, resumes, leaves, is_left;
};

/* When the exchange has to be given up; NULL: not now. Whoever is waited for on the other side is
 * not the server. */
static const char *lateness_locked(const struct kinf__forward *forward, int64_t now_ms)
{
    const struct kinf__forwarder *forwarder = forward->forwarder;
    int64_t silent_ms = now_ms - forward->last_byte_ms;

    if (!forward->is_added || forward->is_through)
        return NULL;
    if (!forward->has_head)
        return !forward->is_send_paused && silent_ms >= forwarder->head_limit_ms
                   ? "no answer in time"
                   : NULL;
    return !forward->is_endless && !forward->is_receive_paused && forward->out.len == 0 &&
                   silent_ms >= forwarder->silence_limit_ms
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

/* The body's bytes say so earlier, but there may be none. */
static void note_sent_locked(struct kinf__forward *forward)
{
    long n_bytes = 0;

    curl_easy_getinfo(forward->easy, CURLINFO_REQUEST_SIZE, &n_bytes);
    forward->is_sent = forward->is_sent || n_bytes != 0;
}

static void leave(struct kinf__forward *forward, const struct work *work)
{
    struct kinf__forwarder *forwarder = forward->forwarder;

    take_out(forward);
    kinf__mutex_lock(&forwarder->lock);
    if (work->is_left) {
        kinf__list_remove(&forward->node);
        kinf__places_give_back(&forwarder->places, forward->caller);
    } else if (!forward->is_through) {
        if (forward->failure.code == 0)
            kinf__error_set(&forward->failure, KINF_ERR_STOPPED, "stopped");
        note_sent_locked(forward);
        finish_locked(forward);
    }
    kinf__mutex_unlock(&forwarder->lock);
    if (work->is_left)
        kinf__forward_destroy(forward);
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
        note_sent_locked(forward);
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

/* How often limits are looked at while nothing happens. */
static int poll_ms_of(const struct kinf__forwarder *forwarder)
{
    int64_t limit_ms = forwarder->head_limit_ms < forwarder->silence_limit_ms
                           ? forwarder->head_limit_ms
                           : forwarder->silence_limit_ms;

    return (int)(limit_ms < POLL_MAX_MS ? limit_ms : POLL_MAX_MS);
}

void *kinf__forwarder_run(void *ctx)
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
        curl_multi_poll(forwarder->multi, &waker, 1, poll_ms_of(forwarder), NULL);
    }
    return NULL;
}
