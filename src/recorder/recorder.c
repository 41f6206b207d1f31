/*
 * A recorder's thread and its queue. Neighbours: series.c says what is to be sent, event.c what it
 * looks like.
 *
 * One request at a time, and one try: what failed waits in its series for the next one, and others
 * are sent meanwhile.
 *
 * The lock guards queue and counts alone; nothing is formatted or sent under it.
 */
#include <kinformer/recorder.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/misuse.h"
#include "base/thread.h"
#include "json/quote.h"
#include "object/object.h"
#include "recorder/series.h"
#include "rest/client.h"
#include "rest/http.h"
#include "rest/url.h"

#define MAX_QUEUED         1000
#define BURST              50
#define PER_SECOND         10.0
#define TRIES              12
#define TRY_MIN_MS         1000 /* between the first two tries; then twice as long each time */
#define TRY_MAX_MS         10000
#define RETRY_AFTER_MAX_MS 60000 /* longer is not waited, whatever the server asks for */
#define HUNG_MS            60000 /* between tries that hang: nothing else is sent meanwhile */
#define LOOK_MS            10000 /* between looks for series that are over */
#define FLUSH_MS           1000
#define REQUEST_MS         10000
#define TEXT_MAX           128 /* as the server reads it */
#define LOG_INTERVAL_MS    30000
#define ANSWER_MAX         ((size_t)4 << 20)

struct kinf_recorder {
    /* constant after creation */
    struct kinf_client *client;
    char *controller, *instance;
    size_t max_queued;
    struct kinf__waker stop;
    pthread_t sender;

    /* owned by the sender */
    struct kinf__http *http;
    struct kinf__rate_limit rate_limit;
    struct kinf__series_set series;
    struct kinf__log_limit log_limit;
    int64_t next_look_ms;
    uint64_t number;        /* of the next event, for its name */
    int64_t flush_until_ms; /* 0: it has not begun */

    struct kinf__mutex lock;
    struct kinf__cond changed;
    /* guarded by lock */
    struct kinf__list queue;
    bool is_stopping;
    struct kinf_recorder_status status;
};

/* --- recording --- */

static bool is_text(const char *text)
{
    size_t len = strlen(text);

    return len >= 1 && kinf__quote_fit(kinf_str_from(text), TEXT_MAX) == len;
}

/* Returns false, and takes nothing, if there is no room. */
static bool enqueue(struct kinf_recorder *recorder, struct kinf__event *event)
{
    bool has_room;

    kinf__mutex_lock(&recorder->lock);
    recorder->status.n_recorded++;
    has_room = event != NULL && recorder->status.n_queued < recorder->max_queued;
    if (has_room) {
        kinf__list_push_back(&recorder->queue, &event->node);
        recorder->status.n_queued++;
        kinf__cond_signal(&recorder->changed);
    } else {
        recorder->status.n_dropped++;
    }
    kinf__mutex_unlock(&recorder->lock);
    return has_room;
}

void kinf_recorder_event(struct kinf_recorder *recorder, const struct kinf_object *regarding,
                         const struct kinf_object *related, enum kinf_event_type type,
                         const char *reason, const char *action, const char *note, ...)
{
    KINF__REFUSE_NULL(NULL, , recorder, regarding, reason, action, note);

    struct kinf__event *event;
    char *text;
    va_list args;

    if (!is_text(reason) || !is_text(action)) {
        (void)kinf__misuse(NULL, KINF_ERR_INVALID,
                           "kinf_recorder_event: reason and action are 1 to %d bytes", TEXT_MAX);
        return;
    }
    va_start(args, note);
    if (vasprintf(&text, note, args) < 0)
        text = NULL;
    va_end(args);
    event = kinf__event_new(regarding, related, type == KINF_EVENT_WARNING, reason, action, text,
                            kinf__clock_wall_ms());
    if (!enqueue(recorder, event))
        kinf__event_free(event);
}

/* The next event, or NULL. */
static struct kinf__event *dequeue(struct kinf_recorder *recorder) KINF__REQUIRES(recorder->lock)
{
    struct kinf__event *event;

    if (kinf__list_is_empty(&recorder->queue))
        return NULL;
    event = KINF__LIST_ENTRY(recorder->queue.next, struct kinf__event, node);
    kinf__list_remove(&event->node);
    recorder->status.n_queued--;
    return event;
}

/* --- sending --- */

static int write_target(const struct kinf__series *series, bool is_new, struct kinf__buffer *target)
{
    static const struct kinf_type type = { "events.k8s.io", "v1", "Event", "events", true };
    struct kinf_str name_space = kinf__event_namespace(series->event);
    char text[KINF_NAME_MAX];

    snprintf(text, sizeof text, "%.*s", (int)name_space.len, name_space.bytes);
    if (kinf__url_append_resource(target, &type, text) < 0 ||
        (!is_new && kinf__url_append_segment(target, series->name) < 0) ||
        kinf__buffer_cstr(target) == NULL)
        return KINF_ERR_NO_MEMORY;
    return 0;
}

static int write_body(const struct kinf_recorder *recorder, const struct kinf__series *series,
                      bool is_new, struct kinf__buffer *body)
{
    const struct kinf__event_source source = { recorder->controller, recorder->instance };

    return is_new ? kinf__event_write(series->event, series->name, &source, &series->seen, body)
                  : kinf__event_write_series(&series->seen, body);
}

static int perform(struct kinf_recorder *recorder, const struct kinf__series *series, bool is_new,
                   struct kinf_error *err)
{
    KINF__AUTO_BUFFER target = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER answer = KINF__BUFFER_INIT;
    struct kinf__http_body keep = { &answer, ANSWER_MAX, 0 };
    struct kinf__http_request request = {
        .method = is_new ? "POST" : "PATCH",
        .content_type = is_new ? "application/json" : "application/merge-patch+json",
        .total_timeout_ms = REQUEST_MS,
        .on_head = kinf__http_body_begin,
        .on_body = kinf__http_body_keep,
        .ctx = &keep,
    };
    int code;

    if (write_target(series, is_new, &target) < 0 ||
        write_body(recorder, series, is_new, &body) < 0)
        return kinf__error_no_memory(err);
    request.target = target.bytes;
    request.body = kinf__buffer_str(&body);
    if (recorder->flush_until_ms != 0)
        request.total_timeout_ms =
            kinf__clock_left_ms(kinf__clock_now_ms(), recorder->flush_until_ms) + 1;
    code = kinf__http_perform(recorder->http, &request, err);
    if (code < 0 && err->http_status == 0)
        kinf__http_disconnect(recorder->http);
    return code;
}

/* What is there already is ours, of a try whose answer was lost, and may not know of those that came
 * since; one that is gone is made again. */
static int tell_server(struct kinf_recorder *recorder, struct kinf__series *series,
                       struct kinf_error *err)
{
    bool is_new = series->n_told == 0;
    int code = perform(recorder, series, is_new, err);

    if (!is_new && code == KINF_ERR_NOT_FOUND) {
        code = perform(recorder, series, true, err);
    } else if (is_new && code == KINF_ERR_EXISTS) {
        series->n_told = 1;
        code = series->seen.count > 1 ? perform(recorder, series, false, err) : 0;
    }
    if (code == 0)
        kinf__series_told(series, kinf__clock_now_ms());
    return code;
}

/* Not what the server refuses for good. */
static bool may_try_again(int code, const struct kinf_error *err)
{
    return code != KINF_ERR_STOPPED && (err->http_status == 0 || err->http_status >= 500 ||
                                        err->http_status == 429 || err->http_status == 401);
}

static int64_t pause_ms(const struct kinf_error *err, unsigned n_tries)
{
    int64_t ms = n_tries < TRIES ? (int64_t)TRY_MIN_MS << n_tries : TRY_MAX_MS;
    int64_t least_ms = err->code == KINF_ERR_TIMEOUT ? HUNG_MS : err->retry_after_ms;

    if (ms > TRY_MAX_MS)
        ms = TRY_MAX_MS;
    if (least_ms > RETRY_AFTER_MAX_MS)
        least_ms = RETRY_AFTER_MAX_MS;
    return ms > least_ms ? ms : least_ms;
}

/* Waits for the rate limit's turn. Returns false at the end. */
static bool wait_for_turn(struct kinf_recorder *recorder)
{
    int64_t wait_ms;

    if (recorder->flush_until_ms != 0)
        return kinf__clock_now_ms() < recorder->flush_until_ms;
    (void)kinf__rate_limit_take(&recorder->rate_limit, kinf__clock_now_ms(), KINF__NEVER_MS,
                                &wait_ms);
    return !kinf__waker_wait(&recorder->stop, wait_ms);
}

static void log_failure(struct kinf_recorder *recorder, const struct kinf_error *err)
{
    uint64_t n_suppressed;

    if (kinf__log_limit_pass(&recorder->log_limit, kinf__clock_now_ms(), &n_suppressed))
        KINF__LOG(KINF__LOG_RECORDER, KINF_LOG_WARN,
                  "an event is lost error=%s suppressed=%" PRIu64, KINF__QUOTED(err->message),
                  n_suppressed);
}

/* Where nobody is there, nobody refuses: that is no reason to give up. */
static bool is_worth_a_try(const struct kinf__series *series, int code,
                           const struct kinf_error *err)
{
    return may_try_again(code, err) && (code == KINF_ERR_NETWORK || series->n_tries + 1 < TRIES);
}

/* Stopped before the end: it is sent then. */
static void deliver(struct kinf_recorder *recorder, struct kinf__series *series)
{
    struct kinf_error err = KINF_ERROR_INIT;
    bool is_last = recorder->flush_until_ms != 0;
    int64_t hung_until_ms = kinf__series_hung_until_ms(&recorder->series, series);
    int code;

    if (hung_until_ms != 0 && !is_last) {
        kinf__series_put_off(&recorder->series, series, hung_until_ms);
        return;
    }
    code = wait_for_turn(recorder) ? tell_server(recorder, series, &err) : KINF_ERR_STOPPED;
    if (code == KINF_ERR_STOPPED && !is_last)
        return;
    if (code < 0 && !is_last && is_worth_a_try(series, code, &err)) {
        kinf__series_try_later(&recorder->series, series,
                               kinf__clock_now_ms() + pause_ms(&err, series->n_tries),
                               code == KINF_ERR_TIMEOUT);
        return;
    }
    kinf__mutex_lock(&recorder->lock);
    if (code == 0)
        recorder->status.n_sent++;
    else if (code == KINF_ERR_STOPPED)
        recorder->status.n_dropped += series->seen.count - series->n_told;
    else
        recorder->status.n_failed += series->seen.count - series->n_told;
    kinf__mutex_unlock(&recorder->lock);
    if (code < 0 && code != KINF_ERR_STOPPED)
        log_failure(recorder, &err);
    if (code < 0)
        kinf__series_drop(&recorder->series, series);
}

/* --- the sender --- */

static void count_lost(struct kinf_recorder *recorder) KINF__REQUIRES(recorder->lock)
{
    recorder->status.n_dropped += recorder->series.n_lost;
    recorder->series.n_lost = 0;
}

static void handle(struct kinf_recorder *recorder, struct kinf__event *take_event)
{
    struct kinf__series *series =
        kinf__series_add(&recorder->series, take_event, recorder->number++, kinf__clock_now_ms());

    kinf__mutex_lock(&recorder->lock);
    count_lost(recorder);
    kinf__mutex_unlock(&recorder->lock);
    if (series != NULL && kinf__series_is_urgent(series))
        deliver(recorder, series);
}

/* Returns false if there is none. */
static bool send_one_due(struct kinf_recorder *recorder, bool is_last)
{
    struct kinf__series *series =
        kinf__series_due(&recorder->series, kinf__clock_now_ms(), is_last);

    if (series != NULL)
        deliver(recorder, series);
    return series != NULL;
}

static void retry_one(struct kinf_recorder *recorder)
{
    struct kinf__series *series = kinf__series_retry(&recorder->series, kinf__clock_now_ms());

    if (series != NULL)
        deliver(recorder, series);
}

static int64_t next_wake_ms(const struct kinf_recorder *recorder)
{
    int64_t retry_ms = kinf__series_retry_ms(&recorder->series);

    if (kinf__list_is_empty(&recorder->series.order))
        return KINF__NEVER_MS;
    return retry_ms < recorder->next_look_ms ? retry_ms : recorder->next_look_ms;
}

/* One event, one next try and one that is due, so that none of these waits for all of another kind;
 * or a wait. Returns false at the end. */
static bool take_step(struct kinf_recorder *recorder) KINF__REQUIRES(recorder->lock)
{
    struct kinf__event *event;

    if (recorder->is_stopping)
        return false;
    event = dequeue(recorder);
    kinf__mutex_unlock(&recorder->lock);
    if (event != NULL)
        handle(recorder, event);
    retry_one(recorder);
    if (kinf__clock_now_ms() >= recorder->next_look_ms && !send_one_due(recorder, false))
        recorder->next_look_ms = kinf__clock_now_ms() + LOOK_MS;
    kinf__mutex_lock(&recorder->lock);
    if (!recorder->is_stopping && kinf__list_is_empty(&recorder->queue))
        (void)kinf__cond_wait_until(&recorder->changed, &recorder->lock, next_wake_ms(recorder));
    return true;
}

/* All that is counted is sent in one go: first the queue is counted. */
static void flush(struct kinf_recorder *recorder) KINF__REQUIRES(recorder->lock)
{
    struct kinf__event *event;

    recorder->flush_until_ms = kinf__clock_now_ms() + FLUSH_MS;
    kinf__waker_clear(&recorder->stop);
    while ((event = dequeue(recorder)) != NULL)
        (void)kinf__series_add(&recorder->series, event, recorder->number++, kinf__clock_now_ms());
    count_lost(recorder);
    kinf__mutex_unlock(&recorder->lock);
    while (send_one_due(recorder, true))
        continue;
    kinf__mutex_lock(&recorder->lock);
}

static void *send_events(void *ctx)
{
    struct kinf_recorder *recorder = ctx;

    kinf__mutex_lock(&recorder->lock);
    while (take_step(recorder))
        continue;
    flush(recorder);
    kinf__mutex_unlock(&recorder->lock);
    return NULL;
}

/* --- life --- */

static int refuse(struct kinf_error *err, const char *what)
{
    return kinf__error_set(err, KINF_ERR_INVALID, "recorder: %s", what);
}

static int check(const struct kinf_recorder_options *options, struct kinf_error *err)
{
    if (options->controller == NULL || !is_text(options->controller))
        return refuse(err, "the controller needs a name of 1 to 128 bytes");
    if (options->instance != NULL && !is_text(options->instance))
        return refuse(err, "the name of an instance has 1 to 128 bytes");
    return 0;
}

static int copy_strings(struct kinf_recorder *recorder, const struct kinf_recorder_options *options)
{
    char host[TEXT_MAX] = "";

    if (gethostname(host, sizeof host - 1) < 0 || host[0] == '\0')
        snprintf(host, sizeof host, "unknown");
    recorder->controller = strdup(options->controller);
    recorder->instance = strdup(options->instance != NULL ? options->instance : host);
    return recorder->controller == NULL || recorder->instance == NULL ? KINF_ERR_NO_MEMORY : 0;
}

static int fill(struct kinf_recorder *recorder, const struct kinf_recorder_options *options,
                struct kinf_error *err)
{
    int failed;

    if (copy_strings(recorder, options) < 0)
        return kinf__error_no_memory(err);
    recorder->max_queued = options->max_queued != 0 ? options->max_queued : MAX_QUEUED;
    kinf__rate_limit_init(&recorder->rate_limit,
                          options->events_per_second != 0 ? options->events_per_second : PER_SECOND,
                          BURST);
    recorder->log_limit.interval_ms = LOG_INTERVAL_MS;
    if (getrandom(&recorder->number, sizeof recorder->number, 0) < 0)
        recorder->number = (uint64_t)kinf__clock_wall_ms() << 20;
    if ((failed = kinf__waker_init(&recorder->stop, err)) < 0 ||
        (failed = kinf__http_new(recorder->client, &recorder->stop, &recorder->http, err)) < 0)
        return failed;
    return kinf__thread_start(&recorder->sender, "kinf-recorder", send_events, recorder, err);
}

static void destroy(struct kinf_recorder *recorder)
{
    kinf__series_set_release(&recorder->series);
    kinf__http_free(recorder->http);
    kinf__waker_release(&recorder->stop);
    kinf__cond_release(&recorder->changed);
    kinf__mutex_release(&recorder->lock);
    kinf__client_let_go(recorder->client);
    free(recorder->controller);
    free(recorder->instance);
    free(recorder);
}

int kinf_recorder_new(struct kinf_client *client, const struct kinf_recorder_options *options,
                      struct kinf_recorder **ret_recorder, struct kinf_error *err)
{
    KINF__REFUSE_NULL(err, KINF_ERR_INVALID, client, options, ret_recorder);

    struct kinf_recorder_options own;
    struct kinf_recorder *recorder;
    int failed = kinf__options_read(&own, sizeof own, options, "struct kinf_recorder_options", err);

    if (failed < 0 || (failed = check(&own, err)) < 0)
        return failed;
    recorder = calloc(1, sizeof *recorder);
    if (recorder == NULL)
        return kinf__error_no_memory(err);
    recorder->client = client;
    kinf__client_hold(client);
    recorder->stop.fd = -1;
    kinf__mutex_init(&recorder->lock, KINF__RANK_RECORDER);
    kinf__cond_init(&recorder->changed);
    kinf__list_init(&recorder->queue);
    kinf__series_set_init(&recorder->series);
    failed = fill(recorder, &own, err);
    if (failed < 0)
        destroy(recorder);
    else
        *ret_recorder = recorder;
    return failed;
}

void kinf_recorder_free(struct kinf_recorder *recorder)
{
    if (recorder == NULL)
        return;
    kinf__mutex_lock(&recorder->lock);
    recorder->is_stopping = true;
    kinf__waker_set(&recorder->stop);
    kinf__cond_broadcast(&recorder->changed);
    kinf__mutex_unlock(&recorder->lock);
    pthread_join(recorder->sender, NULL);
    if (recorder->status.n_dropped != 0 || recorder->status.n_failed != 0)
        KINF__LOG(KINF__LOG_RECORDER, KINF_LOG_WARN,
                  "events were lost dropped=%" PRIu64 " failed=%" PRIu64,
                  recorder->status.n_dropped, recorder->status.n_failed);
    destroy(recorder);
}

void kinf_recorder_free_ptr(struct kinf_recorder **recorder)
{
    KINF__REFUSE_NULL(NULL, , recorder);
    kinf_recorder_free(*recorder);
}

void kinf_recorder_status(struct kinf_recorder *recorder, struct kinf_recorder_status *ret_status)
{
    KINF__REFUSE_NULL(NULL, , recorder, ret_status);
    kinf__mutex_lock(&recorder->lock);
    *ret_status = recorder->status;
    kinf__mutex_unlock(&recorder->lock);
}
