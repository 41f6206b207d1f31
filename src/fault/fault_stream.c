/*
 * Distorted bodies. Neighbours: fault.c makes them and keeps the time, fault_answer.c changes
 * answers that are known as a whole.
 *
 * Three ways: a place in the stream at which something happens, a pace, and lines of a watch that
 * are dropped or repeated. Nothing is held of an event that passes; only what is repeated is.
 */
#include "fault/fault_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "serve/gzip.h"
#include "fault/fault_answer.h"

#define CHUNK_BYTES (16u << 10) /* read at once, where it cannot go straight to the reader */
#define LINE_MAX    (1u << 20)
#define KEPT_BYTES  (64u << 10) /* of an empty buffer */

static const char bookmark_start[] = "{\"type\":\"BOOKMARK\"";
static const char end_mark[] = "k8s.io/initial-events-end";
static const char version_name[] = "\"resourceVersion\":\"";

enum phase {
    PHASE_BEFORE, /* the place is not reached */
    PHASE_PAUSED,
    PHASE_AFTER,
    PHASE_LAST, /* what is in `out` is the last */
};

struct faulty {
    struct kinf__stream stream;
    struct kinf__fault_effect effect;
    struct kinf__fault_clock clock;
    struct kinf__stream *inner; /* NULL: none */
    struct kinf__buffer body;   /* instead of it, if it is not empty */
    size_t n_body_sent;
    bool is_ended; /* what is read from */
    struct kinf__buffer out;
    size_t n_out_sent;
    /* the place */
    enum phase phase;
    uint64_t n_sent;
    uint64_t n_events;
    bool is_in_event;
    int64_t began_ms;
    int64_t until_ms; /* of a pause */
    /* the pace */
    uint64_t n_left; /* until the next pause */
    /* lines */
    struct kinf__buffer line; /* so far */
    bool is_passing;          /* the rest of the line is not looked at */
    bool is_behind_mark;      /* the initial events have ended */
};

/* --- reading --- */

static ssize_t read_source(struct faulty *faulty, char *buf, size_t size)
{
    size_t n = faulty->body.len - faulty->n_body_sent;

    if (faulty->body.len == 0)
        return faulty->inner != NULL ? faulty->inner->read(faulty->inner, buf, size)
                                     : KINF__STREAM_END;
    if (n == 0)
        return KINF__STREAM_END;
    n = n < size ? n : size;
    memcpy(buf, faulty->body.bytes + faulty->n_body_sent, n);
    faulty->n_body_sent += n;
    return (ssize_t)n;
}

static size_t take_out(struct faulty *faulty, char *buf, size_t size)
{
    struct kinf__buffer *out = &faulty->out;
    size_t n = out->len - faulty->n_out_sent;

    n = n < size ? n : size;
    if (n != 0)
        memcpy(buf, out->bytes + faulty->n_out_sent, n);
    faulty->n_out_sent += n;
    if (faulty->n_out_sent == out->len) {
        faulty->n_out_sent = out->len = 0;
        if (out->size > KEPT_BYTES)
            kinf__buffer_release(out);
    }
    return n;
}

/* What was read too far first. */
static ssize_t read_on(struct faulty *faulty, char *buf, size_t size)
{
    size_t n = take_out(faulty, buf, size);

    return n != 0 ? (ssize_t)n : read_source(faulty, buf, size);
}

/* Whether the time is over; else the stream is read again then. Not that a stop is waited for. */
static ssize_t pause_until(struct faulty *faulty, int64_t until_ms)
{
    if (faulty->clock.is_over(faulty->clock.ctx))
        return KINF__STREAM_BROKEN;
    if (faulty->clock.now_ms(faulty->clock.ctx) >= until_ms)
        return 1;
    faulty->clock.wake_at(until_ms, faulty->clock.ctx);
    return 0;
}

/* --- a place --- */

static bool is_time(const struct faulty *faulty)
{
    int64_t at_ms = kinf__clock_add_ms(faulty->began_ms, (int64_t)faulty->effect.after);

    return faulty->effect.unit == KINF__FAULT_MS &&
           faulty->clock.now_ms(faulty->clock.ctx) >= at_ms;
}

/* Whether it shows to the reader as an end, and not as a failure. */
static bool is_orderly(const struct faulty *faulty)
{
    return faulty->effect.kind == KINF__FAULT_CLOSE || faulty->effect.kind == KINF__FAULT_ERROR;
}

static bool is_there(const struct faulty *faulty)
{
    const struct kinf__fault_effect *effect = &faulty->effect;

    if (effect->unit == KINF__FAULT_BYTES)
        return faulty->n_sent >= effect->after;
    if (effect->unit == KINF__FAULT_EVENTS)
        return faulty->n_events >= effect->after;
    return is_time(faulty) && !(is_orderly(faulty) && faulty->is_in_event);
}

/* How many events may have passed before something happens. */
static uint64_t event_limit(const struct faulty *faulty)
{
    if (faulty->effect.unit == KINF__FAULT_EVENTS)
        return faulty->effect.after;
    return is_orderly(faulty) && is_time(faulty) ? faulty->n_events + 1 : UINT64_MAX;
}

/* Counts what is in `buf` up to the limit; returns how much that is. */
static size_t count(struct faulty *faulty, const char *buf, size_t n, uint64_t limit)
{
    const char *at = buf, *end = buf + n, *line_end;

    while (at < end && faulty->n_events < limit) {
        line_end = memchr(at, '\n', (size_t)(end - at));
        faulty->is_in_event = line_end == NULL;
        faulty->n_events += line_end != NULL;
        at = line_end != NULL ? line_end + 1 : end;
    }
    faulty->n_sent += (uint64_t)(at - buf);
    return (size_t)(at - buf);
}

/* What is behind the limit is kept for later. */
static ssize_t read_before(struct faulty *faulty, char *buf, size_t size)
{
    const struct kinf__fault_effect *effect = &faulty->effect;
    ssize_t n;
    size_t n_counted;

    if (effect->unit == KINF__FAULT_BYTES && size > effect->after - faulty->n_sent)
        size = effect->after - faulty->n_sent;
    n = read_source(faulty, buf, size);
    if (n <= 0)
        return n;
    n_counted = count(faulty, buf, (size_t)n, event_limit(faulty));
    if (kinf__buffer_append(&faulty->out, buf + n_counted, (size_t)n - n_counted) < 0)
        return KINF__STREAM_BROKEN;
    return (ssize_t)n_counted;
}

static ssize_t read_paused(struct faulty *faulty, char *buf, size_t size)
{
    ssize_t paused = pause_until(faulty, faulty->until_ms);

    if (paused <= 0)
        return paused;
    faulty->phase = PHASE_AFTER;
    return read_on(faulty, buf, size);
}

static int write_error(struct faulty *faulty)
{
    struct kinf__refusal refusal;
    int code = faulty->effect.code;

    kinf__refuse(&refusal, code, code == 410 ? "Expired" : "InternalError",
                 code == 410 ? "too old resource version" : "the watch has failed");
    faulty->out.len = faulty->n_out_sent = 0;
    return kinf__fault_write_event(&refusal, &faulty->out);
}

static ssize_t read_last(struct faulty *faulty, char *buf, size_t size)
{
    size_t n = take_out(faulty, buf, size);

    return n != 0 ? (ssize_t)n : KINF__STREAM_END;
}

static ssize_t strike(struct faulty *faulty, char *buf, size_t size)
{
    switch (faulty->effect.kind) {
    case KINF__FAULT_RESET:
        return KINF__STREAM_RESET;
    case KINF__FAULT_CUT:
        return KINF__STREAM_BROKEN;
    case KINF__FAULT_STALL:
        faulty->phase = PHASE_PAUSED;
        faulty->until_ms =
            kinf__clock_add_ms(faulty->clock.now_ms(faulty->clock.ctx), faulty->effect.time_ms);
        return read_paused(faulty, buf, size);
    case KINF__FAULT_ERROR:
        faulty->phase = PHASE_LAST;
        return write_error(faulty) < 0 ? KINF__STREAM_BROKEN : read_last(faulty, buf, size);
    default:
        return KINF__STREAM_END;
    }
}

static ssize_t read_to_place(struct faulty *faulty, char *buf, size_t size)
{
    switch (faulty->phase) {
    case PHASE_BEFORE:
        return is_there(faulty) ? strike(faulty, buf, size) : read_before(faulty, buf, size);
    case PHASE_PAUSED:
        return read_paused(faulty, buf, size);
    case PHASE_AFTER:
        return read_on(faulty, buf, size);
    case PHASE_LAST:
        break;
    }
    return read_last(faulty, buf, size);
}

/* --- bytes --- */

static ssize_t read_dripping(struct faulty *faulty, char *buf, size_t size)
{
    ssize_t n = faulty->n_left == 0 ? pause_until(faulty, faulty->until_ms) : 1;

    if (n <= 0)
        return n;
    if (faulty->n_left == 0)
        faulty->n_left = faulty->effect.n_bytes;
    n = read_source(faulty, buf, size < faulty->n_left ? size : faulty->n_left);
    if (n <= 0)
        return n;
    faulty->n_left -= (uint64_t)n;
    faulty->until_ms =
        kinf__clock_add_ms(faulty->clock.now_ms(faulty->clock.ctx), faulty->effect.time_ms);
    return n;
}

static ssize_t read_flipped(struct faulty *faulty, char *buf, size_t size)
{
    uint64_t at = faulty->effect.after - faulty->n_sent; /* far away once it has passed */
    ssize_t n = read_source(faulty, buf, size);

    if (n <= 0)
        return n;
    if (at < (uint64_t)n)
        buf[at] ^= 1;
    faulty->n_sent += (uint64_t)n;
    return n;
}

static int write_member(struct faulty *faulty, const char *bytes, size_t len)
{
    struct kinf__gzip *gzip;
    int failed = kinf__gzip_new(&gzip);

    if (failed < 0)
        return failed;
    while (failed == 0 && !kinf__gzip_is_done(gzip)) {
        char piece[1024];
        size_t taken = len, n = kinf__gzip_write(gzip, bytes, &taken, true, piece, sizeof piece);

        bytes += taken;
        len -= taken;
        failed = kinf__buffer_append(&faulty->out, piece, n);
    }
    kinf__gzip_free(gzip);
    return failed;
}

static ssize_t read_gzip(struct faulty *faulty, char *buf, size_t size)
{
    uint64_t wanted = faulty->effect.n_bytes;
    char plain[CHUNK_BYTES];
    size_t n_out = take_out(faulty, buf, size);
    ssize_t n;

    if (n_out != 0)
        return (ssize_t)n_out;
    n = read_source(faulty, plain, wanted < sizeof plain ? (size_t)wanted : sizeof plain);
    if (n <= 0)
        return n;
    if (write_member(faulty, plain, (size_t)n) < 0)
        return KINF__STREAM_BROKEN;
    return (ssize_t)take_out(faulty, buf, size);
}

/* --- lines --- */

static bool starts_bookmark(const struct kinf__buffer *line)
{
    size_t len = sizeof bookmark_start - 1;

    return line->len >= len && memcmp(line->bytes, bookmark_start, len) == 0;
}

static bool has_text(const struct kinf__buffer *line, const char *text)
{
    return memmem(line->bytes, line->len, text, strlen(text)) != NULL;
}

static bool hides_state(const struct faulty *faulty)
{
    return faulty->effect.kind == KINF__FAULT_REFUSE &&
           faulty->effect.shape == KINF__FAULT_IGNORED && !faulty->is_behind_mark;
}

/* The start of the line is there. */
static bool needs_all_of_it(const struct faulty *faulty)
{
    return starts_bookmark(&faulty->line) != (faulty->effect.kind == KINF__FAULT_TWICE);
}

static int put(struct faulty *faulty, const char *bytes, size_t len)
{
    return hides_state(faulty) ? 0 : kinf__buffer_append(&faulty->out, bytes, len);
}

static int send_line(struct faulty *faulty, unsigned n_times)
{
    int failed = 0;

    for (unsigned i = 0; failed == 0 && i < n_times; i++)
        failed = put(faulty, faulty->line.bytes, faulty->line.len);
    return failed;
}

/* The line again, with the version below its own. */
static int send_older(struct faulty *faulty)
{
    struct kinf__buffer *line = &faulty->line;
    const char *text = kinf__buffer_cstr(line), *at, *end;
    uint64_t version;

    if (text == NULL)
        return KINF_ERR_NO_MEMORY;
    at = strstr(text, version_name);
    if (at == NULL)
        return 0;
    at += sizeof version_name - 1;
    end = at + strspn(at, "0123456789");
    version = strtoull(at, NULL, 10);
    if (end == at || version <= 1)
        return 0;
    return kinf__buffer_printf(&faulty->out, "%.*s%" PRIu64 "%s", (int)(at - text), text,
                               version - 1, end);
}

static int send_bookmark(struct faulty *faulty)
{
    bool is_mark = has_text(&faulty->line, end_mark);
    int failed;

    switch (faulty->effect.shape) {
    case KINF__FAULT_BOOKMARK_TWICE:
        return send_line(faulty, 2);
    case KINF__FAULT_BOOKMARK_OLD:
        failed = send_line(faulty, 1);
        return failed == 0 && !is_mark ? send_older(faulty) : failed;
    case KINF__FAULT_ENDLESS:
        return send_line(faulty, is_mark ? 0 : 1);
    case KINF__FAULT_IGNORED:
        failed = send_line(faulty, 1);
        faulty->is_behind_mark = faulty->is_behind_mark || is_mark;
        return failed;
    default:
        return 0;
    }
}

static int end_line(struct faulty *faulty)
{
    int failed;

    if (faulty->effect.kind == KINF__FAULT_TWICE)
        failed = send_line(faulty, starts_bookmark(&faulty->line) ? 1 : 2);
    else
        failed = starts_bookmark(&faulty->line) ? send_bookmark(faulty) : send_line(faulty, 1);
    faulty->line.len = 0;
    return failed;
}

/* Whether what comes of the line can go on at once. */
static bool may_pass(const struct faulty *faulty)
{
    if (faulty->line.len < sizeof bookmark_start - 1)
        return false;
    return !needs_all_of_it(faulty) || faulty->line.len > LINE_MAX;
}

/* A piece of one line. */
static int take_piece(struct faulty *faulty, const char *bytes, size_t len, bool ends)
{
    int failed = 0;

    if (faulty->is_passing) {
        faulty->is_passing = !ends;
        return put(faulty, bytes, len);
    }
    if (kinf__buffer_append(&faulty->line, bytes, len) < 0)
        return KINF_ERR_NO_MEMORY;
    if (ends)
        return end_line(faulty);
    if (may_pass(faulty)) {
        failed = send_line(faulty, 1);
        kinf__buffer_release(&faulty->line);
        faulty->is_passing = true;
    }
    return failed;
}

static int take_text(struct faulty *faulty, const char *bytes, size_t len)
{
    int failed = 0;

    while (failed == 0 && len != 0) {
        const char *end = memchr(bytes, '\n', len);
        size_t n = end != NULL ? (size_t)(end - bytes) + 1 : len;

        failed = take_piece(faulty, bytes, n, end != NULL);
        bytes += n;
        len -= n;
    }
    return failed;
}

static ssize_t read_lines(struct faulty *faulty, char *buf, size_t size)
{
    char text[CHUNK_BYTES];
    size_t n_out;
    ssize_t n;

    while ((n_out = take_out(faulty, buf, size)) == 0) {
        if (faulty->is_ended)
            return KINF__STREAM_END;
        n = read_source(faulty, text, sizeof text);
        faulty->is_ended = n == KINF__STREAM_END;
        if (faulty->is_ended)
            n = end_line(faulty) < 0 ? KINF__STREAM_BROKEN : 1;
        else if (n > 0 && take_text(faulty, text, (size_t)n) < 0)
            n = KINF__STREAM_BROKEN;
        if (n <= 0)
            return n;
    }
    return (ssize_t)n_out;
}

/* --- life --- */

static ssize_t faulty_read(struct kinf__stream *stream, char *buf, size_t size)
{
    struct faulty *faulty = KINF__CONTAINER_OF(stream, struct faulty, stream);

    switch (faulty->effect.kind) {
    case KINF__FAULT_RESET:
    case KINF__FAULT_CUT:
    case KINF__FAULT_CLOSE:
    case KINF__FAULT_STALL:
    case KINF__FAULT_ERROR:
        return read_to_place(faulty, buf, size);
    case KINF__FAULT_DRIP:
        return read_dripping(faulty, buf, size);
    case KINF__FAULT_FLIP:
        return read_flipped(faulty, buf, size);
    case KINF__FAULT_GZIP:
        return read_gzip(faulty, buf, size);
    case KINF__FAULT_TWICE:
    case KINF__FAULT_BOOKMARK:
    case KINF__FAULT_REFUSE:
        return read_lines(faulty, buf, size);
    default:
        return read_source(faulty, buf, size);
    }
}

static void faulty_free(struct kinf__stream *stream)
{
    struct faulty *faulty = KINF__CONTAINER_OF(stream, struct faulty, stream);

    if (faulty->inner != NULL)
        faulty->inner->free(faulty->inner);
    kinf__buffer_release(&faulty->body);
    kinf__buffer_release(&faulty->out);
    kinf__buffer_release(&faulty->line);
    free(faulty);
}

int kinf__fault_stream_new(const struct kinf__fault_effect *effect,
                           const struct kinf__fault_clock *clock, struct kinf__stream *take_inner,
                           struct kinf__buffer *take_body, struct kinf__stream **ret_stream)
{
    struct faulty *faulty = calloc(1, sizeof *faulty);

    if (faulty == NULL)
        return KINF_ERR_NO_MEMORY;
    faulty->stream = (struct kinf__stream){ faulty_read, faulty_free,
                                            take_inner != NULL && take_inner->is_watch };
    faulty->effect = *effect;
    faulty->clock = *clock;
    faulty->inner = take_inner;
    faulty->body = *take_body;
    *take_body = (struct kinf__buffer)KINF__BUFFER_INIT;
    faulty->n_left = effect->n_bytes;
    faulty->began_ms = clock->now_ms(clock->ctx);
    /* A silent stream is not read before. */
    if (effect->unit == KINF__FAULT_MS)
        clock->wake_at(kinf__clock_add_ms(faulty->began_ms, (int64_t)effect->after), clock->ctx);
    *ret_stream = &faulty->stream;
    return 0;
}
