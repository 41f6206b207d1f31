/*
 * Tunnels. Neighbours: mhd_request.c takes clients' sockets from libmicrohttpd and gives them back,
 * forward.h has the API server's side.
 *
 * The thread learns of sockets by an edge-triggered epoll, and of forwards by a mark and a wake-up.
 * A tunnel that is open is in the list of the thread, which alone looks at it; opening hands it over.
 */
#include "serve/tunnel.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <gnutls/gnutls.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/thread.h"

#define PIECE_BYTES    (16u << 10)
#define PIECES_AT_ONCE 8 /* before the others have their turn */
#define N_AT_ONCE      64
#define LOOK_MS        1000 /* between looks at the time, once a side has ended */
/* How long a side may take nothing once the other has ended; a reader may be a person. */
#define SERVER_MS 2000
#define CLIENT_MS 90000

struct kinf__tunnels {
    /* constant */
    pthread_t thread;
    struct kinf__waker waker;
    int epoll;
    struct kinf__list open; /* the thread's */
    struct kinf__mutex lock;
    /* guarded by lock */
    struct kinf__list handed_over;
    bool is_ended;
};

/* What is on its way to one side. */
struct way {
    size_t at, len;
    char bytes[PIECE_BYTES];
};

struct kinf__tunnel {
    /* constant once it is open */
    struct kinf__tunnels *tunnels;
    struct kinf__forward *forward;
    void (*on_over)(void *ctx);
    void *ctx;
    int fd;
    gnutls_session_t tls; /* NULL: plain */
    /* the list's owner's */
    struct kinf__list node;
    struct kinf__buffer head;
    bool is_readable, is_writable;
    bool is_client_over, is_server_over;
    bool is_deaf;          /* the client: what it gets is dropped */
    bool is_broken;        /* nothing more goes anywhere */
    int64_t over_since_ms; /* the first end that was seen, or what was taken since; 0: none */
    struct way up, down;   /* to the server, to the client */
    /* atomic */
    _Atomic(bool) is_woken;
};

/* --- one tunnel --- */

static bool is_empty(const struct way *way)
{
    return way->at == way->len;
}

static void note_end(struct kinf__tunnel *tunnel)
{
    if (tunnel->over_since_ms == 0)
        tunnel->over_since_ms = kinf__clock_now_ms();
}

static void note_progress(struct kinf__tunnel *tunnel)
{
    if (tunnel->over_since_ms != 0)
        tunnel->over_since_ms = kinf__clock_now_ms();
}

/* Returns what was received or sent, 0 for the end, or -1 with errno: EAGAIN when the socket says, EINTR
 * at once. */
static ssize_t of_tls(ssize_t n)
{
    if (n >= 0)
        return n;
    errno = n == GNUTLS_E_AGAIN ? EAGAIN : n == GNUTLS_E_INTERRUPTED ? EINTR : ECONNRESET;
    return n == GNUTLS_E_PREMATURE_TERMINATION ? 0 : -1;
}

static ssize_t receive(const struct kinf__tunnel *tunnel, char *bytes, size_t size)
{
    return tunnel->tls != NULL ? of_tls(gnutls_record_recv(tunnel->tls, bytes, size))
                               : recv(tunnel->fd, bytes, size, MSG_DONTWAIT);
}

/* What was not sent is tried again as it was: TLS wants that. Who takes nothing any more may have said
 * something before. */
static ssize_t send_out(const struct kinf__tunnel *tunnel, const char *bytes, size_t len)
{
    return tunnel->tls != NULL ? of_tls(gnutls_record_send(tunnel->tls, bytes, len))
                               : send(tunnel->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void take_up(struct kinf__tunnel *tunnel)
{
    struct way *up = &tunnel->up;
    ssize_t n = receive(tunnel, up->bytes, sizeof up->bytes);

    up->at = 0;
    up->len = n > 0 ? (size_t)n : 0;
    if (n < 0 && errno == EAGAIN) {
        tunnel->is_readable = false;
    } else if (n == 0 || (n < 0 && errno != EINTR)) {
        note_end(tunnel);
        tunnel->is_client_over = true;
        kinf__forward_end_body(tunnel->forward);
    }
}

/* Returns whether there may be more to do at once. */
static bool carry_up(struct kinf__tunnel *tunnel)
{
    struct way *up = &tunnel->up;
    size_t n;

    if (is_empty(up)) {
        if (!tunnel->is_readable || tunnel->is_client_over)
            return false;
        take_up(tunnel);
        return true;
    }
    n = kinf__forward_send(tunnel->forward, up->bytes + up->at, up->len - up->at);
    up->at += n;
    if (n != 0)
        note_progress(tunnel);
    return n != 0;
}

static bool give_down(struct kinf__tunnel *tunnel)
{
    struct way *down = &tunnel->down;
    ssize_t n = send_out(tunnel, down->bytes + down->at, down->len - down->at);

    if (n > 0) {
        down->at += (size_t)n;
        note_progress(tunnel);
    } else if (errno == EAGAIN) {
        tunnel->is_writable = false;
    } else if (errno != EINTR) { /* untested: a race with a client that goes */
        tunnel->is_deaf = true;
        note_end(tunnel);
    }
    return tunnel->is_writable;
}

static ssize_t next_down(struct kinf__tunnel *tunnel, char *bytes, size_t size)
{
    size_t len = tunnel->head.len < size ? tunnel->head.len : size;

    if (len == 0)
        return kinf__forward_read(tunnel->forward, bytes, size);
    memcpy(bytes, tunnel->head.bytes, len);
    kinf__buffer_consume(&tunnel->head, len);
    return (ssize_t)len;
}

static bool carry_down(struct kinf__tunnel *tunnel)
{
    struct way *down = &tunnel->down;
    ssize_t n;

    if (tunnel->is_deaf) /* untested: a race with a client that goes */
        down->at = down->len;
    if (!is_empty(down))
        return tunnel->is_writable && give_down(tunnel);
    if (tunnel->is_server_over)
        return false;
    n = next_down(tunnel, down->bytes, sizeof down->bytes);
    down->at = 0;
    down->len = n > 0 ? (size_t)n : 0;
    tunnel->is_server_over = n == KINF__FORWARD_END;
    tunnel->is_broken = n == KINF__FORWARD_BROKEN;
    if (tunnel->is_server_over)
        note_end(tunnel);
    return n > 0;
}

static bool is_over(const struct kinf__tunnel *tunnel)
{
    int64_t limit_ms = tunnel->is_server_over ? CLIENT_MS : SERVER_MS;

    return tunnel->is_broken || (tunnel->is_server_over && is_empty(&tunnel->down)) ||
           (tunnel->over_since_ms != 0 && kinf__clock_now_ms() - tunnel->over_since_ms >= limit_ms);
}

/* Returns whether it has to be looked at again without waiting. */
static bool carry(struct kinf__tunnel *tunnel)
{
    bool goes_up = true, goes_down = true;

    for (int i = 0; i < PIECES_AT_ONCE && (goes_up || goes_down) && !tunnel->is_broken; i++) {
        goes_up = carry_up(tunnel);
        goes_down = carry_down(tunnel);
    }
    return goes_up || goes_down;
}

/* --- the thread --- */

static void take_out(struct kinf__tunnel *tunnel)
{
    kinf__list_remove(&tunnel->node);
    epoll_ctl(tunnel->tunnels->epoll, EPOLL_CTL_DEL, tunnel->fd, NULL);
    if (tunnel->tls != NULL && !tunnel->is_broken && is_empty(&tunnel->down))
        (void)gnutls_bye(tunnel->tls, GNUTLS_SHUT_WR);
    tunnel->on_over(tunnel->ctx);
}

/* Without memory in the kernel it would never be heard of. */
static void put_in(struct kinf__tunnel *tunnel)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                 .data.ptr = tunnel };

    if (epoll_ctl(tunnel->tunnels->epoll, EPOLL_CTL_ADD, tunnel->fd, &event) < 0)
        tunnel->is_broken = true; /* untested: the kernel refuses */
    atomic_store(&tunnel->is_woken, true);
    kinf__list_push_back(&tunnel->tunnels->open, &tunnel->node);
}

/* Returns whether the thread is to end. */
static bool take_over(struct kinf__tunnels *tunnels)
{
    bool is_ended;

    kinf__mutex_lock(&tunnels->lock);
    is_ended = tunnels->is_ended;
    KINF__LIST_FOR_EACH_SAFE (node, &tunnels->handed_over) {
        kinf__list_remove(node);
        put_in(KINF__LIST_ENTRY(node, struct kinf__tunnel, node));
    }
    kinf__mutex_unlock(&tunnels->lock);
    return is_ended;
}

/* Returns how long may be waited; negative: for ever. */
static int carry_all(struct kinf__tunnels *tunnels, bool is_ended)
{
    int wait_ms = -1;

    KINF__LIST_FOR_EACH_SAFE (node, &tunnels->open) {
        struct kinf__tunnel *tunnel = KINF__LIST_ENTRY(node, struct kinf__tunnel, node);

        if (atomic_exchange(&tunnel->is_woken, false) && carry(tunnel)) {
            atomic_store(&tunnel->is_woken, true);
            wait_ms = 0;
        }
        if (is_ended || is_over(tunnel))
            take_out(tunnel);
        else if (tunnel->over_since_ms != 0 && wait_ms < 0)
            wait_ms = LOOK_MS;
    }
    return wait_ms;
}

static void await(struct kinf__tunnels *tunnels, int wait_ms)
{
    struct epoll_event events[N_AT_ONCE];
    int n = epoll_wait(tunnels->epoll, events, N_AT_ONCE, wait_ms);

    for (int i = 0; i < n; i++) {
        struct kinf__tunnel *tunnel = events[i].data.ptr;

        if (tunnel == NULL)
            continue;
        /* It may have gone while nobody takes what it sent before. */
        if ((events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
            note_end(tunnel);
        tunnel->is_readable = tunnel->is_readable || (events[i].events & ~(uint32_t)EPOLLOUT) != 0;
        tunnel->is_writable = tunnel->is_writable || (events[i].events & ~(uint32_t)EPOLLIN) != 0;
        atomic_store(&tunnel->is_woken, true);
    }
}

static void *run(void *ctx)
{
    struct kinf__tunnels *tunnels = ctx;

    for (;;) {
        bool is_ended;
        int wait_ms;

        kinf__waker_clear(&tunnels->waker);
        is_ended = take_over(tunnels);
        wait_ms = carry_all(tunnels, is_ended);
        if (is_ended)
            return NULL;
        await(tunnels, wait_ms);
    }
}

/* --- life --- */

static int start(struct kinf__tunnels *tunnels, struct kinf_error *err)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };
    int failed = kinf__waker_init(&tunnels->waker, err);

    if (failed < 0)
        return failed;
    tunnels->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (tunnels->epoll < 0 ||
        epoll_ctl(tunnels->epoll, EPOLL_CTL_ADD, tunnels->waker.fd, &event) < 0)
        return kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "epoll");
    return kinf__thread_start(&tunnels->thread, "kinf-tunnels", run, tunnels, err);
}

static void release(struct kinf__tunnels *tunnels)
{
    kinf__close_fd(&tunnels->epoll);
    if (tunnels->waker.fd >= 0)
        kinf__waker_release(&tunnels->waker);
    kinf__mutex_release(&tunnels->lock);
    free(tunnels);
}

int kinf__tunnels_new(struct kinf__tunnels **ret_tunnels, struct kinf_error *err)
{
    struct kinf__tunnels *tunnels = calloc(1, sizeof *tunnels);
    int failed;

    if (tunnels == NULL)
        return kinf__error_no_memory(err);
    tunnels->waker.fd = tunnels->epoll = -1;
    kinf__list_init(&tunnels->open);
    kinf__list_init(&tunnels->handed_over);
    kinf__mutex_init(&tunnels->lock, KINF__RANK_CONNECTION);
    failed = start(tunnels, err);
    if (failed < 0) {
        release(tunnels);
        return failed;
    }
    *ret_tunnels = tunnels;
    return 0;
}

void kinf__tunnels_stop(struct kinf__tunnels *tunnels)
{
    bool was_ended;

    if (tunnels == NULL)
        return;
    kinf__mutex_lock(&tunnels->lock);
    was_ended = tunnels->is_ended;
    tunnels->is_ended = true;
    kinf__mutex_unlock(&tunnels->lock);
    kinf__waker_set(&tunnels->waker);
    if (!was_ended)
        pthread_join(tunnels->thread, NULL);
}

void kinf__tunnels_free(struct kinf__tunnels *tunnels)
{
    if (tunnels == NULL)
        return;
    kinf__tunnels_stop(tunnels);
    release(tunnels);
}

struct kinf__tunnel *kinf__tunnel_new(struct kinf__tunnels *tunnels, struct kinf__forward *forward,
                                      struct kinf__buffer *head, void (*on_over)(void *ctx),
                                      void *ctx)
{
    struct kinf__tunnel *tunnel = calloc(1, sizeof *tunnel);

    if (tunnel == NULL)
        return NULL; /* no memory */
    tunnel->tunnels = tunnels;
    tunnel->forward = forward;
    tunnel->head = *head;
    *head = (struct kinf__buffer)KINF__BUFFER_INIT;
    tunnel->on_over = on_over;
    tunnel->ctx = ctx;
    return tunnel;
}

void kinf__tunnel_free(struct kinf__tunnel *tunnel)
{
    if (tunnel == NULL)
        return;
    kinf__buffer_release(&tunnel->head);
    free(tunnel);
}

void kinf__tunnel_open(struct kinf__tunnel *tunnel, int fd, gnutls_session_t tls)
{
    struct kinf__tunnels *tunnels = tunnel->tunnels;
    bool is_ended;

    tunnel->fd = fd;
    tunnel->tls = tls;
    kinf__mutex_lock(&tunnels->lock);
    is_ended = tunnels->is_ended;
    if (!is_ended)
        kinf__list_push_back(&tunnels->handed_over, &tunnel->node);
    kinf__mutex_unlock(&tunnels->lock);
    kinf__waker_set(&tunnels->waker);
    if (is_ended)
        tunnel->on_over(tunnel->ctx);
}

void kinf__tunnel_wake(struct kinf__tunnel *tunnel)
{
    atomic_store(&tunnel->is_woken, true);
    kinf__waker_set(&tunnel->tunnels->waker);
}
