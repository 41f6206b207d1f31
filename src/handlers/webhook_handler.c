/*
 * Posting what the outbox has. Neighbours: handler.c has the thread, outbox.c what is to be told,
 * rest/site.h the way there.
 *
 * Invariant: the lines from `at` on are those of the numbers from `first` on that the outbox told last.
 */
#include "handlers/webhook_handler.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/error.h"
#include "handlers/line.h"
#include "rest/http.h"

#define CONNECT_TIMEOUT_MS 10000
#define REFUSED_MS         30000 /* the least before what is a mistake is posted again */
#define NO_MEMORY_MS       100
#define RUN_SIZE           17

struct webhook {
    struct kinf__handler base;
    /* constant */
    struct kinf_client *client;
    char *target;
    char run[RUN_SIZE];
    int64_t timeout_ms;
    /* the thread's */
    struct kinf__http *http;
    struct kinf__backoff backoff; /* between two attempts to post a batch */
    struct kinf__buffer lines;
    size_t at;        /* up to here they are taken */
    size_t len;       /* of the batch, which begins there; 0: there is none */
    uint64_t first;   /* number of its first line */
    size_t max_bytes; /* of a batch; less than was configured if the receiver said so */
};

/* --- a batch --- */

/* The outbox tells a change again that is not taken here. */
static int append_line(const struct kinf_change *change, void *ctx)
{
    struct webhook *webhook = ctx;
    struct kinf__buffer *lines = &webhook->lines;
    size_t before = lines->len;
    int failed = kinf__line_append(lines, change, KINF__LINE_OBJECT);

    if (failed == 0 && before != 0 && lines->len > webhook->max_bytes) {
        lines->len = before;
        return KINF_ERR_LIMIT;
    }
    if (failed == 0 && before == 0)
        webhook->first = change->sequence;
    return failed;
}

/* Returns false if that has to be tried again for want of memory. */
static bool compose(struct webhook *webhook)
{
    int n = 1;

    if (webhook->len != 0)
        return true;
    webhook->at = webhook->lines.len = 0;
    if (webhook->lines.size / 2 > webhook->max_bytes) /* for a large object */
        kinf__buffer_release(&webhook->lines);
    while (n > 0)
        n = kinf__outbox_next(&webhook->base.outbox, append_line, webhook);
    webhook->len = webhook->lines.len;
    return n != KINF_ERR_NO_MEMORY || webhook->len != 0;
}

static struct kinf_str batch_of(const struct webhook *webhook)
{
    return (struct kinf_str){ webhook->lines.bytes + webhook->at, webhook->len };
}

/* As many whole lines of those that are left as make a batch. */
static size_t choose_len(const struct webhook *webhook)
{
    const char *start = webhook->lines.bytes + webhook->at, *end;
    size_t left = webhook->lines.len - webhook->at, max = webhook->max_bytes;

    if (left <= max)
        return left;
    end = memrchr(start, '\n', max);
    if (end == NULL)
        end = memchr(start + max, '\n', left - max);
    return (size_t)(end + 1 - start);
}

static uint64_t count_lines(struct kinf_str text)
{
    uint64_t n = 0;

    for (size_t i = 0; i < text.len; i++)
        n += text.bytes[i] == '\n';
    return n;
}

static uint64_t last_of(const struct webhook *webhook)
{
    return webhook->first + count_lines(batch_of(webhook)) - 1;
}

static void note_taken(struct webhook *webhook)
{
    uint64_t last = last_of(webhook);

    (void)kinf__outbox_acknowledge(&webhook->base.outbox, last);
    webhook->first = last + 1;
    webhook->at += webhook->len;
    webhook->len = choose_len(webhook);
    kinf__backoff_reset(&webhook->backoff);
    atomic_store(&webhook->base.is_running, true);
}

/* --- a request --- */

static int pass_over(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    (void)bytes;
    (void)len;
    (void)ctx;
    (void)err;
    return 0;
}

static int post(struct webhook *webhook, struct kinf_error *err)
{
    char numbers[48], term[24];
    const struct kinf__header headers[] = { { "Kinformer-Run", webhook->run },
                                            { "Kinformer-Sequence", numbers },
                                            { "Kinformer-Lease", webhook->base.lease },
                                            { "Kinformer-Term", term } };
    const struct kinf__http_request request = { .target = webhook->target,
                                                .is_query_secret = true,
                                                .body = batch_of(webhook),
                                                .content_type = "application/x-ndjson",
                                                .accept = "*/*",
                                                .headers = headers,
                                                .n_headers = webhook->base.lease != NULL ? 4 : 2,
                                                .total_timeout_ms = webhook->timeout_ms,
                                                .on_body = pass_over };

    snprintf(numbers, sizeof numbers, "%" PRIu64 "-%" PRIu64, webhook->first, last_of(webhook));
    snprintf(term, sizeof term, "%" PRId64, webhook->base.term);
    return kinf__http_perform(webhook->http, &request, err);
}

/* Whether trying again helps by itself. */
static bool is_passing(int http_status)
{
    return http_status == 0 || http_status == 408 || http_status == 429 || http_status >= 500;
}

static void try_later(struct webhook *webhook, const struct kinf_error *err)
{
    int64_t least_ms = err->retry_after_ms;

    kinf__handler_failed(&webhook->base, "changes %" PRIu64 " to %" PRIu64 ": %s%s", webhook->first,
                         last_of(webhook), err->message,
                         err->http_status / 100 == 3 ? " (redirects are not followed)" : "");
    if (!is_passing(err->http_status) && least_ms < REFUSED_MS)
        least_ms = REFUSED_MS;
    kinf__handler_pause(&webhook->base, &webhook->backoff, least_ms);
}

/* The batch ends with this text from here on, which is shorter than what it ended with. */
static void end_batch_with(struct webhook *webhook, char *from, struct kinf_str text)
{
    struct kinf__buffer *lines = &webhook->lines;
    char *end = lines->bytes + webhook->at + webhook->len;
    size_t n_saved = (size_t)(end - from) - text.len;

    memcpy(from, text.bytes, text.len);
    memmove(from + text.len, end, (size_t)(lines->bytes + lines->len - end));
    lines->len -= n_saved;
    webhook->len -= n_saved;
}

/* Of the only line of the batch, whose object is its last member. Returns false if that is no smaller. */
static bool leave_object_out(struct webhook *webhook)
{
    const struct kinf_str instead = KINF_STR(",\"object\":{\"tooLarge\":true}}\n");
    static const char member[] = ",\"object\":";
    char *line = webhook->lines.bytes + webhook->at;
    char *object = memmem(line, webhook->len, member, sizeof member - 1);

    if (object == NULL || webhook->len - (size_t)(object - line) <= instead.len)
        return false;
    kinf__handler_failed(
        &webhook->base,
        "a line of %zu bytes is too large for it, and is posted without its object: %.*s",
        webhook->len, (int)(object - line), line);
    end_batch_with(webhook, object, instead);
    return true;
}

static void make_smaller(struct webhook *webhook, const struct kinf_error *err)
{
    if (count_lines(batch_of(webhook)) > 1) {
        webhook->max_bytes = webhook->len / 2;
        webhook->len = choose_len(webhook);
        kinf__handler_failed(&webhook->base, "%s: batches have %zu bytes at most from here on",
                             err->message, webhook->max_bytes);
    } else if (!leave_object_out(webhook)) {
        try_later(webhook, err);
    }
}

/* Returns false if everything is to be told anew. */
static bool post_batch(struct webhook *webhook)
{
    struct kinf_error err = KINF_ERROR_INIT;
    int failed = post(webhook, &err);

    if (failed == 0)
        note_taken(webhook);
    if (failed == 0 || failed == KINF_ERR_STOPPED)
        return true;
    atomic_store(&webhook->base.is_running, false);
    if (err.http_status == 409) {
        kinf__handler_failed(&webhook->base, "it asks for everything anew: %s", err.message);
        return false;
    }
    if (err.http_status == 413)
        make_smaller(webhook, &err);
    else
        try_later(webhook, &err);
    return true;
}

/* --- its life --- */

static bool tell(struct webhook *webhook)
{
    struct kinf__handler *base = &webhook->base;

    if (!compose(webhook)) {
        (void)kinf__waker_wait(&base->stop, NO_MEMORY_MS);
        return true;
    }
    if (webhook->len != 0)
        return post_batch(webhook);
    (void)kinf__waker_wait(&base->outbox.wake, KINF__NEVER_MS);
    kinf__waker_clear(&base->outbox.wake);
    return true;
}

static void attend(struct kinf__handler *base)
{
    struct webhook *webhook = KINF__CONTAINER_OF(base, struct webhook, base);

    atomic_fetch_add(&base->n_starts, 1);
    webhook->len = 0;
    kinf__outbox_reset(&base->outbox);
    while (kinf__handler_goes_on(base) && tell(webhook))
        ;
    atomic_store(&base->is_running, false);
}

/* --- what the header promises --- */

static void release(struct kinf__handler *base)
{
    struct webhook *webhook = KINF__CONTAINER_OF(base, struct webhook, base);

    kinf__http_free(webhook->http);
    kinf_client_free(webhook->client);
    free(webhook->target);
    kinf__buffer_release(&webhook->lines);
}

static void draw_run(char *run)
{
    uint64_t number;

    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
        number = (uint64_t)kinf__clock_wall_ms();
    snprintf(run, RUN_SIZE, "%016" PRIx64, number);
}

static struct kinf__site site_of(const struct kinf__webhook_options *options)
{
    struct kinf__site site = options->site;

    if (site.connect_timeout_ms == 0)
        site.connect_timeout_ms =
            options->timeout_ms != 0 && options->timeout_ms < CONNECT_TIMEOUT_MS
                ? options->timeout_ms
                : CONNECT_TIMEOUT_MS;
    return site;
}

int kinf__webhook_check(const struct kinf__webhook_options *options, struct kinf_error *err)
{
    struct kinf__site site = site_of(options);
    struct kinf_client *client;
    char *target;
    int failed = kinf__site_client_new(&site, &client, &target, err);

    if (failed < 0)
        return failed;
    kinf_client_free(client);
    free(target);
    return 0;
}

static int fill(struct webhook *webhook, const struct kinf__webhook_options *options,
                struct kinf_error *err)
{
    struct kinf__site site = site_of(options);
    int failed = kinf__site_client_new(&site, &webhook->client, &webhook->target, err);

    draw_run(webhook->run);
    webhook->timeout_ms = options->timeout_ms != 0 ? options->timeout_ms : KINF__WEBHOOK_TIMEOUT_MS;
    webhook->max_bytes =
        options->max_batch_bytes != 0 ? options->max_batch_bytes : KINF__WEBHOOK_MAX_BATCH_BYTES;
    kinf__backoff_init(&webhook->backoff, KINF__HANDLER_BACKOFF_BASE_MS,
                       KINF__HANDLER_BACKOFF_MAX_MS);
    return failed < 0 ? failed
                      : kinf__http_new(webhook->client, &webhook->base.stop, &webhook->http, err);
}

int kinf__webhook_handler_new(const struct kinf__webhook_options *options,
                              struct kinf__handler **ret_handler, struct kinf_error *err)
{
    static const struct kinf__handler_kind kind = { .attend = attend,
                                                    .release = release,
                                                    .name = "webhook" };
    const char *url = options->site.url;
    struct webhook *webhook = calloc(1, sizeof *webhook);
    int failed;

    if (webhook == NULL)
        return kinf__error_no_memory(err);
    failed = kinf__handler_init(&webhook->base, &kind, strndup(url, strcspn(url, "?")),
                                &(struct kinf__outbox_options){ .acknowledges = true }, err);
    if (failed == 0)
        failed = fill(webhook, options, err);
    if (failed < 0) {
        kinf__handler_free(&webhook->base);
        return failed;
    }
    *ret_handler = &webhook->base;
    return 0;
}
