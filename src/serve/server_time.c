/*
 * What time does, and what comes by itself: watches and lists whose time is over end, bookmarks are
 * asked for, peers that hang up are seen, the caches forget. Neighbours: resource.c sets their timer,
 * mhd_request.c awaits hang-ups. A watch that nothing happens to costs nothing here.
 *
 * A server that nothing happens to sleeps: each tick finds out when something is due next, and who
 * makes something due says so to kinf__server_expect(). Invariant: nothing is due before next_tick_ms
 * that the last tick knew of, or that was said since. The tick begins by forgetting what was said, so
 * what is said meanwhile counts, whether it was seen or not. There are TICK_MS between two ticks, so
 * however much is said costs no more.
 *
 * Hang-ups come by an epoll of their own. It is read under the server's lock, and under it an
 * exchange leaves it: what is read is of an exchange that is there.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/error.h"
#include "serve/exchange_priv.h"
#include "serve/process_metrics.h"
#include "serve/watch.h"

#define TICK_MS          200 /* between two, at least */
#define BOOKMARK_MS      25000
#define BOOKMARK_STEP_MS 1000  /* many watches share a tick */
#define ANSWER_MAX_MS    60000 /* kube-apiserver's --request-timeout */
#define N_AT_ONCE        64

/* --- watches --- */

static void set_timer(struct kinf__exchange *exchange, int64_t now_ms)
{
    int64_t bookmark_ms = kinf__clock_add_ms(now_ms, BOOKMARK_MS);

    bookmark_ms -= bookmark_ms % BOOKMARK_STEP_MS;
    kinf__timer_set(&exchange->server->timers, &exchange->timer,
                    bookmark_ms < exchange->deadline_ms ? bookmark_ms : exchange->deadline_ms);
}

static void want_bookmark(struct kinf__exchange *exchange)
{
    kinf__watch_want_bookmark(exchange->watch);
    exchange->owner.wake(exchange->owner.ctx);
}

static void end_watch(struct kinf__exchange *exchange)
{
    kinf__watch_end(exchange->watch);
    exchange->owner.wake(exchange->owner.ctx);
}

/* The first bookmark comes with the next tick. */
void kinf__server_time_watch(struct kinf__exchange *exchange, int64_t now_ms)
{
    kinf__timer_set(&exchange->server->timers, &exchange->timer, now_ms);
    kinf__server_expect(exchange->server, now_ms);
}

void kinf__server_time_limit(struct kinf__exchange *exchange, int64_t now_ms)
{
    exchange->deadline_ms = kinf__clock_add_ms(now_ms, ANSWER_MAX_MS);
    kinf__timer_set(&exchange->server->timers, &exchange->timer, exchange->deadline_ms);
    kinf__server_expect(exchange->server, exchange->deadline_ms);
}

/* A list that ends before its end is none: its reader is to see that. */
static void end_list(struct kinf__exchange *exchange)
{
    exchange->server->n_lists_cut_off++;
    exchange->owner.cut_off(exchange->owner.ctx);
}

/* Who takes what is left of a watch slowly may hold a version of the store, as by a list. */
static void end_watch_in_time(struct kinf__exchange *exchange, int64_t now_ms)
{
    if (exchange->is_ending) {
        exchange->owner.cut_off(exchange->owner.ctx);
        return;
    }
    exchange->is_ending = true;
    end_watch(exchange);
    kinf__server_time_limit(exchange, now_ms);
}

static void on_due(struct kinf__exchange *exchange, int64_t now_ms)
{
    if (now_ms < exchange->deadline_ms) {
        want_bookmark(exchange);
        set_timer(exchange, now_ms);
    } else if (exchange->watch != NULL) {
        end_watch_in_time(exchange, now_ms);
    } else {
        end_list(exchange);
    }
}

void kinf__server_want_bookmarks(struct kinf__server *server)
{
    kinf__mutex_lock(&server->lock);
    KINF__LIST_FOR_EACH (node, &server->exchanges) {
        struct kinf__exchange *exchange = KINF__LIST_ENTRY(node, struct kinf__exchange, node);

        if (exchange->watch != NULL)
            want_bookmark(exchange);
    }
    kinf__mutex_unlock(&server->lock);
}

/* --- hang-ups --- */

void kinf__exchange_await_hang_up(struct kinf__exchange *exchange, int fd)
{
    struct epoll_event event = { .events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = exchange };

    kinf__mutex_lock(&exchange->server->lock);
    /* Without memory in the kernel it shows when something is written. */
    if (epoll_ctl(exchange->server->hang_ups, EPOLL_CTL_ADD, fd, &event) == 0)
        exchange->hang_up_fd = fd;
    kinf__mutex_unlock(&exchange->server->lock);
}

void kinf__server_forget_hang_up(struct kinf__exchange *exchange)
{
    if (exchange->hang_up_fd >= 0)
        epoll_ctl(exchange->server->hang_ups, EPOLL_CTL_DEL, exchange->hang_up_fd, NULL);
    exchange->hang_up_fd = -1;
}

static void on_hang_up(struct kinf__exchange *exchange)
{
    exchange->has_hung_up = true;
    if (exchange->forward != NULL)
        kinf__forward_end(exchange->forward);
    else if (exchange->watch != NULL)
        end_watch(exchange);
    else if (exchange->owner.authorizer != NULL)
        kinf__authorizer_give_up(exchange->owner.authorizer, &exchange->access);
}

static void see_hang_ups(struct kinf__server *server)
{
    struct epoll_event events[N_AT_ONCE];
    int n;

    do {
        n = epoll_wait(server->hang_ups, events, N_AT_ONCE, 0);
        for (int i = 0; i < n; i++)
            on_hang_up(events[i].data.ptr);
    } while (n == N_AT_ONCE);
}

/* --- the last hour --- */

/* Adds what one source has to a sample: new events, and how far behind it is. */
static void sample_source(struct kinf__source *source, int64_t now_ms, struct kinf__sample *sample)
{
    int64_t *values = sample->values, staleness_ms = kinf__source_staleness_ms(source, now_ms);
    struct kinf__watchcache_status cache;
    struct kinf_informer_status informer;
    uint64_t n_events;

    kinf__source_status(source, &informer);
    kinf__watchcache_status(source->cache, &cache);
    n_events = source->informer != NULL ? informer.n_events : cache.n_events_total;
    values[KINF__SAMPLE_EVENTS] += (int64_t)(n_events - source->n_events_sampled);
    source->n_events_sampled = n_events;
    if (cache.max_lag_since_ms != 0 && now_ms - cache.max_lag_since_ms > values[KINF__SAMPLE_LAG])
        values[KINF__SAMPLE_LAG] = now_ms - cache.max_lag_since_ms;
    if (staleness_ms > values[KINF__SAMPLE_STALENESS])
        values[KINF__SAMPLE_STALENESS] = staleness_ms;
}

/* Counters go on from the sample before, also when a source has gone. */
static void take_sample(struct kinf__server *server, int64_t now_ms)
{
    struct kinf__last_hour *hour = &server->last_hour;
    struct kinf__sample sample = { .at_ms = now_ms };
    uint64_t n_requests[KINF__N_REQUEST_SOURCES];

    if (hour->n_samples != 0)
        sample.values[KINF__SAMPLE_EVENTS] =
            kinf__last_hour_at(hour, hour->n_samples - 1)->values[KINF__SAMPLE_EVENTS];
    kinf__request_metrics_totals(&server->request_metrics, n_requests);
    sample.values[KINF__SAMPLE_FROM_CACHE] = (int64_t)n_requests[KINF__SOURCE_CACHE];
    sample.values[KINF__SAMPLE_FROM_UPSTREAM] = (int64_t)n_requests[KINF__SOURCE_UPSTREAM];
    sample.values[KINF__SAMPLE_FROM_SELF] = (int64_t)n_requests[KINF__SOURCE_SELF];
    sample.values[KINF__SAMPLE_MEMORY] = (int64_t)kinf__process_resident_bytes();
    sample.values[KINF__SAMPLE_STALENESS] = -1;
    for (size_t i = 0; i < server->n_sources; i++)
        sample_source(server->sources[i], now_ms, &sample);
    kinf__last_hour_add(hour, &sample);
}

/* --- the tick --- */

static int64_t sooner(int64_t a_ms, int64_t b_ms)
{
    return a_ms < b_ms ? a_ms : b_ms;
}

/* In what is of before a restart something may be missing that is yet to come, and to go. */
static void tick_session(struct kinf__source *source, int64_t now_ms)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot = NULL;
    struct kinf__store_version version;

    if (!kinf__session_is_behind(&source->session) || kinf__source_is_saved(source))
        return;
    snapshot = kinf__watchcache_snapshot(source->cache, &version);
    if (snapshot != NULL)
        kinf__session_tick(&source->session, snapshot, version.number, now_ms);
}

static bool is_late(struct kinf__source *source)
{
    struct kinf__session_status status;

    kinf__session_status(&source->session, &status);
    return status.is_late;
}

/* Nobody tells that a cache has what it was behind with. One that is not behind is not late. */
static int64_t tick_source(struct kinf__server *server, struct kinf__source *source, int64_t now_ms)
{
    int64_t due_ms = kinf__watchcache_tick(source->cache, now_ms);

    tick_session(source, now_ms);
    if (source->has_passed_watches && source->withdrawn_ms == 0 && !is_late(source))
        kinf__server_call_watches_back(server, source);
    return kinf__session_is_behind(&source->session) ? now_ms : due_ms;
}

/* Returns when the next is due. */
static int64_t tick(struct kinf__server *server, int64_t now_ms)
{
    int64_t due_ms = KINF__NEVER_MS;
    struct kinf__timer *timer;

    /* Of one that was withdrawn, too, requests may still wait. */
    for (size_t i = 0; i < server->n_sources + server->n_unpublished; i++)
        due_ms = sooner(due_ms, tick_source(server, server->sources[i], now_ms));
    if (kinf__last_hour_is_due(&server->last_hour, now_ms))
        take_sample(server, now_ms);
    while ((timer = kinf__timers_take_due(&server->timers, now_ms)) != NULL)
        on_due(KINF__CONTAINER_OF(timer, struct kinf__exchange, timer), now_ms);
    KINF__LIST_FOR_EACH (node, &server->hooks) {
        struct kinf__tick_hook *hook = KINF__LIST_ENTRY(node, struct kinf__tick_hook, node);

        due_ms = sooner(due_ms, hook->tick(now_ms, hook->ctx));
    }
    due_ms = sooner(due_ms, server->last_hour.next_ms);
    return sooner(due_ms, kinf__timers_next_ms(&server->timers));
}

void kinf__server_add_hook(struct kinf__server *server, struct kinf__tick_hook *hook)
{
    kinf__mutex_lock(&server->lock);
    kinf__list_push_back(&server->hooks, &hook->node);
    kinf__mutex_unlock(&server->lock);
}

void kinf__server_remove_hook(struct kinf__server *server, struct kinf__tick_hook *hook)
{
    kinf__mutex_lock(&server->lock);
    kinf__list_remove(&hook->node);
    kinf__mutex_unlock(&server->lock);
}

/* --- the thread --- */

/* Returns whether it was later before. */
static bool move_up(struct kinf__server *server, int64_t due_ms)
{
    int64_t next_ms = atomic_load(&server->next_tick_ms);

    while (due_ms < next_ms) {
        if (atomic_compare_exchange_weak(&server->next_tick_ms, &next_ms, due_ms))
            return true;
    }
    return false;
}

void kinf__server_expect(struct kinf__server *server, int64_t due_ms)
{
    if (move_up(server, due_ms))
        kinf__waker_set(&server->time_changed);
}

/* The lock is given up meanwhile. */
static void sleep_until(struct kinf__server *server, int64_t until_ms) KINF__REQUIRES(server->lock)
{
    struct pollfd fds[] = { { server->hang_ups, POLLIN, 0 },
                            { server->time_changed.fd, POLLIN, 0 } };
    int64_t left_ms = kinf__clock_left_ms(kinf__clock_now_ms(), until_ms);

    kinf__mutex_unlock(&server->lock);
    poll(fds, KINF__ARRAY_LEN(fds),
         left_ms < INT_MAX ? (int)kinf__clock_wait_ms(left_ms) : INT_MAX);
    kinf__waker_clear(&server->time_changed);
    kinf__mutex_lock(&server->lock);
}

static void *keep_time(void *ctx)
{
    struct kinf__server *server = ctx;
    int64_t not_before_ms = 0;

    kinf__mutex_lock(&server->lock);
    while (!atomic_load(&server->is_time_over)) {
        int64_t now_ms = kinf__clock_now_ms(), next_ms = atomic_load(&server->next_tick_ms);

        see_hang_ups(server);
        if (now_ms >= next_ms && now_ms >= not_before_ms) {
            atomic_store(&server->next_tick_ms, KINF__NEVER_MS);
            move_up(server, tick(server, now_ms));
            not_before_ms = kinf__clock_add_ms(now_ms, TICK_MS);
            next_ms = atomic_load(&server->next_tick_ms);
        }
        sleep_until(server, next_ms > not_before_ms ? next_ms : not_before_ms);
    }
    kinf__mutex_unlock(&server->lock);
    return NULL;
}

int kinf__server_begin_time(struct kinf__server *server, struct kinf_error *err)
{
    int failed = kinf__waker_init(&server->time_changed, err);

    if (failed < 0)
        return failed;
    server->hang_ups = epoll_create1(EPOLL_CLOEXEC);
    failed = server->hang_ups < 0
                 ? kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "epoll_create1")
                 : kinf__thread_start(&server->timer, "kinf-serve", keep_time, server, err);
    if (failed < 0) {
        kinf__close_fd(&server->hang_ups);
        kinf__waker_release(&server->time_changed);
    }
    return failed;
}

void kinf__server_end_time(struct kinf__server *server)
{
    atomic_store(&server->is_time_over, true);
    kinf__waker_set(&server->time_changed);
    pthread_join(server->timer, NULL);
    kinf__close_fd(&server->hang_ups);
    kinf__waker_release(&server->time_changed);
}
