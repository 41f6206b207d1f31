/*
 * Forwards: their owners' side, what the transport calls on the thread, and the thread. Neighbours:
 * rest/transport.h carries them; passthrough.c decides what is forwarded.
 *
 * A forward belongs to two: to whoever made it, through its buffers, and to the thread, through its
 * round trip. The former leaves by marking it, the latter frees it. What the transport has paused is
 * resumed by a mark and a wake-up.
 */
#include "serve/forward.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/thread.h"
#include "rest/transport.h"
#include "serve/places.h"

#define MAX_FORWARDS  256
#define LIMIT_MS      75000 /* the server itself gives up after 60 s */
#define BUFFER_BYTES  (64u << 10)
#define RECEIVE_BYTES (16 * 1024L) /* what is handed out at once */

struct kinf__forwarder {
    /* constant */
    struct kinf_client *client;
    int64_t head_limit_ms;
    int64_t silence_limit_ms;
    pthread_t thread;
    struct kinf__waker waker;
    struct kinf__transport transport; /* the thread's */
    struct kinf__mutex lock;
    /* guarded by lock */
    struct kinf__list forwards;
    struct kinf__places places;
    bool is_ended;
    /* atomic */
    struct kinf__histogram latency; /* to the head */
};

struct kinf__forward {
    /* constant after creation */
    struct kinf__forwarder *forwarder;
    int64_t began_ns;

    /* the thread's */
    struct kinf__roundtrip trip;
    bool is_begun;

    /* guarded by the forwarder's lock */
    struct kinf__list node;
    struct kinf__caller *caller; /* whose place it has */
    void (*wake)(void *ctx);     /* NULL: the owner has left */
    void *wake_ctx;
    struct kinf__buffer in;  /* of the request's body */
    struct kinf__buffer out; /* of the answer's */
    bool is_body_complete;
    bool is_send_paused;
    bool is_receive_paused;
    bool is_sent;
    const struct kinf__head *head; /* the trip's, once it is complete */
    bool is_through;               /* the trip is, or it never began */
    struct kinf_error failure;     /* its first; while it is not through, it is to be ended */
};

static void wake_locked(struct kinf__forward *forward)
{
    if (forward->wake != NULL)
        forward->wake(forward->wake_ctx);
}

static void finish_locked(struct kinf__forward *forward)
{
    forward->is_sent = forward->is_sent || forward->trip.is_sent;
    forward->is_through = true;
    wake_locked(forward);
}

/* When no list has it. */
static void destroy(struct kinf__forward *forward)
{
    kinf__roundtrip_release(&forward->trip);
    kinf__buffer_release(&forward->in);
    kinf__buffer_release(&forward->out);
    free(forward);
}

/* --- what the transport calls --- */

static ssize_t on_send(char *bytes, size_t room, void *ctx)
{
    struct kinf__forward *forward = ctx;
    ssize_t n;

    kinf__mutex_lock(&forward->forwarder->lock);
    n = (ssize_t)(room < forward->in.len ? room : forward->in.len);
    forward->is_send_paused = n == 0 && !forward->is_body_complete;
    if (n != 0) {
        memcpy(bytes, forward->in.bytes, (size_t)n);
        kinf__buffer_consume(&forward->in, (size_t)n);
        forward->is_sent = true;
        wake_locked(forward);
    } else if (forward->is_send_paused) {
        n = -KINF__ROUNDTRIP_PAUSE;
    }
    kinf__mutex_unlock(&forward->forwarder->lock);
    return n;
}

/* A server that refuses a token does not know the caller; one that is busy has not looked. */
static bool on_head(const struct kinf__head *head, void *ctx)
{
    struct kinf__forward *forward = ctx;

    kinf__histogram_observe(&forward->forwarder->latency, kinf__clock_now_ns() - forward->began_ns);
    kinf__mutex_lock(&forward->forwarder->lock);
    forward->head = head;
    if (head->code < 300 || head->code == 401 || head->code == 403)
        kinf__places_judge(&forward->forwarder->places, forward->caller, head->code != 401);
    wake_locked(forward);
    kinf__mutex_unlock(&forward->forwarder->lock);
    return true;
}

static int on_body(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    struct kinf__forward *forward = ctx;
    int code = 0;

    kinf__mutex_lock(&forward->forwarder->lock);
    /* Nothing may come behind a line that was cut. */
    forward->is_receive_paused = forward->failure.code == 0 && forward->out.len != 0 &&
                                 forward->out.len + len > BUFFER_BYTES;
    if (forward->is_receive_paused)
        code = KINF__ROUNDTRIP_PAUSE;
    else if (forward->failure.code != 0)
        code = forward->failure.code; /* untested: a race with an end */
    else if (kinf__buffer_append(&forward->out, bytes, len) < 0)
        code = kinf__error_no_memory(err);
    else
        wake_locked(forward);
    kinf__mutex_unlock(&forward->forwarder->lock);
    return code;
}

static void on_end(int code, const struct kinf_error *err, void *ctx)
{
    struct kinf__forward *forward = ctx;

    (void)code;
    KINF__LOG(KINF__LOG_SERVE, KINF_LOG_DEBUG, "passed through code=%d error=%s",
              forward->trip.head.code, KINF__QUOTED(err->message));
    kinf__mutex_lock(&forward->forwarder->lock);
    if (forward->failure.code == 0)
        forward->failure = *err;
    finish_locked(forward);
    kinf__mutex_unlock(&forward->forwarder->lock);
}

/* --- making one --- */

static int make_trip(struct kinf__forward *forward, const struct kinf__forward_request *request,
                     struct kinf_error *err)
{
    static const struct kinf__roundtrip_ops ops = { on_send, on_head, on_body, on_end };
    const struct kinf__forwarder *forwarder = forward->forwarder;
    const struct kinf__roundtrip_request foreign = {
        .method = request->method,
        .target = request->target,
        .has_body = request->body_len != 0,
        .body_len = request->body_len,
        .is_upgrade = request->is_upgrade,
        .headers = request->headers,
        .n_headers = request->n_headers,
        .limits = { .head_ms = forwarder->head_limit_ms,
                    .idle_ms = request->is_endless ? 0 : forwarder->silence_limit_ms },
    };
    int failed = kinf__roundtrip_init(&forward->trip, forwarder->client, NULL, RECEIVE_BYTES, &ops,
                                      forward, err);

    return failed < 0 ? failed : kinf__roundtrip_prepare(&forward->trip, &foreign, err);
}

static int enlist(struct kinf__forward *forward, const unsigned char *caller,
                  struct kinf_error *err)
{
    struct kinf__forwarder *forwarder = forward->forwarder;
    const char *why;

    kinf__mutex_lock(&forwarder->lock);
    forward->caller = kinf__places_take(&forwarder->places, caller, &why);
    if (forward->caller != NULL)
        kinf__list_push_back(&forwarder->forwards, &forward->node);
    kinf__mutex_unlock(&forwarder->lock);
    if (forward->caller == NULL)
        return kinf__error_set(err, KINF_ERR_LIMIT, "%s", why);
    kinf__waker_set(&forwarder->waker);
    return 0;
}

int kinf__forward_new(struct kinf__forwarder *forwarder,
                      const struct kinf__forward_request *request,
                      struct kinf__forward **ret_forward, struct kinf_error *err)
{
    struct kinf__forward *forward = calloc(1, sizeof *forward);
    unsigned char caller[KINF__DIGEST_SIZE];
    int failed;

    if (forward == NULL)
        return kinf__error_no_memory(err);
    forward->forwarder = forwarder;
    forward->began_ns = kinf__clock_now_ns();
    forward->is_body_complete = request->body_len == 0 && !request->is_upgrade;
    forward->wake = request->wake;
    forward->wake_ctx = request->wake_ctx;
    failed = kinf__sha256(request->caller, caller) < 0 ? kinf__error_no_memory(err)
                                                       : make_trip(forward, request, err);
    if (failed == 0)
        failed = enlist(forward, caller, err);
    if (failed < 0)
        destroy(forward);
    else
        *ret_forward = forward;
    return failed;
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
    if (!forward->is_through && forward->failure.code == 0)
        kinf__error_set(&forward->failure, KINF_ERR_STOPPED, "stopped");
    wake_locked(forward);
    kinf__mutex_unlock(&forward->forwarder->lock);
    kinf__waker_set(&forward->forwarder->waker);
}

size_t kinf__forward_send(struct kinf__forward *forward, const char *bytes, size_t len)
{
    struct kinf__forwarder *forwarder = forward->forwarder;

    kinf__mutex_lock(&forwarder->lock);
    if ((forward->head == NULL || forward->head->code == 101) && forward->failure.code == 0 &&
        !forward->is_through) {
        if (len > BUFFER_BYTES - forward->in.len)
            len = BUFFER_BYTES - forward->in.len;
        if (len != 0 && kinf__buffer_append(&forward->in, bytes, len) < 0)
            kinf__error_no_memory(&forward->failure);
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

int kinf__forward_head(struct kinf__forward *forward, const struct kinf__head **ret_head,
                       struct kinf_error *err)
{
    int code = 0;

    kinf__mutex_lock(&forward->forwarder->lock);
    if (forward->head != NULL) {
        *ret_head = forward->head;
        code = 1;
    } else if (forward->failure.code != 0 && forward->is_through) {
        /* From here on it is known whether it was sent. */
        if (err != NULL)
            *err = forward->failure;
        code = forward->failure.code;
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
    bool resumes;

    kinf__mutex_lock(&forwarder->lock);
    if (forward->failure.code == KINF_ERR_STOPPED)
        cut_at_line_locked(forward);
    if (forward->out.len != 0) {
        n = (ssize_t)(forward->out.len < size ? forward->out.len : size);
        memcpy(buf, forward->out.bytes, (size_t)n);
        kinf__buffer_consume(&forward->out, (size_t)n);
    } else if (forward->failure.code != 0) {
        n = KINF__FORWARD_BROKEN;
    } else if (forward->is_through) {
        n = KINF__FORWARD_END;
    }
    resumes = forward->is_receive_paused && forward->out.len == 0;
    kinf__mutex_unlock(&forwarder->lock);
    if (resumes)
        kinf__waker_set(&forwarder->waker);
    return n;
}

/* --- the thread --- */

static void give_back_locked(struct kinf__forward *forward)
{
    kinf__list_remove(&forward->node);
    kinf__places_give_back(&forward->forwarder->places, forward->caller);
    destroy(forward);
}

/* Returns whether its trip is to be resumed, which hands over bodies, under the lock. */
static bool attend_locked(struct kinf__forward *forward)
{
    if (forward->wake == NULL) {
        give_back_locked(forward);
        return false;
    }
    if (forward->is_through)
        return false;
    if (forward->failure.code != 0) {
        kinf__roundtrip_leave(&forward->trip);
        finish_locked(forward);
        return false;
    }
    if (!forward->is_begun) {
        forward->is_begun = true;
        if (kinf__roundtrip_add(&forward->trip, &forward->forwarder->transport, &forward->failure) <
            0)
            finish_locked(forward); /* no memory */
        return false;
    }
    /* Silence is nobody's loss while there is something to take. */
    forward->trip.is_held = forward->out.len != 0;
    return (forward->is_send_paused && (forward->in.len != 0 || forward->is_body_complete)) ||
           (forward->is_receive_paused && forward->out.len == 0);
}

/* A forward leaves the list on this thread alone, so the next one is still there when the lock has
 * been given up for a while. Returns whether the thread is to end. */
static bool attend_all(struct kinf__forwarder *forwarder)
{
    bool is_over;

    kinf__mutex_lock(&forwarder->lock);
    KINF__LIST_FOR_EACH_SAFE (node, &forwarder->forwards) {
        struct kinf__forward *forward = KINF__LIST_ENTRY(node, struct kinf__forward, node);

        if (!attend_locked(forward))
            continue;
        kinf__mutex_unlock(&forwarder->lock);
        kinf__roundtrip_resume(&forward->trip);
        kinf__mutex_lock(&forwarder->lock);
    }
    is_over = forwarder->is_ended && kinf__list_is_empty(&forwarder->forwards);
    kinf__mutex_unlock(&forwarder->lock);
    return is_over;
}

static void *run(void *ctx)
{
    struct kinf__forwarder *forwarder = ctx;

    for (;;) {
        kinf__waker_clear(&forwarder->waker);
        if (attend_all(forwarder))
            return NULL;
        kinf__transport_perform(&forwarder->transport);
        kinf__transport_wait(&forwarder->transport, &forwarder->waker, KINF__NEVER_MS);
    }
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
    if ((failed = kinf__waker_init(&forwarder->waker, err)) < 0 ||
        (failed = kinf__transport_init(&forwarder->transport, err)) < 0)
        return failed;
    return kinf__thread_start(&forwarder->thread, "kinf-upstream", run, forwarder, err);
}

static void release(struct kinf__forwarder *forwarder)
{
    kinf__transport_release(&forwarder->transport);
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

size_t kinf__forwarder_max(const struct kinf__forwarder *forwarder)
{
    return forwarder->places.max;
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

/* --- state --- */

void kinf__forwarder_status(struct kinf__forwarder *forwarder,
                            struct kinf__forwarder_status *ret_status)
{
    *ret_status = (struct kinf__forwarder_status){ .n_connections = atomic_load(
                                                       &forwarder->transport.n_connections) };
    kinf__mutex_lock(&forwarder->lock);
    KINF__LIST_FOR_EACH (node, &forwarder->forwards)
        ret_status->n_forwards++;
    kinf__mutex_unlock(&forwarder->lock);
}

const struct kinf__histogram *kinf__forwarder_latency(const struct kinf__forwarder *forwarder)
{
    return &forwarder->latency;
}
