/*
 * The body of a watch: bytes in any pieces in, events out.
 *
 * One event is one line, {"type":..,"object":..}. A line that lies wholly in one piece is decoded
 * where it is, in one pass when it starts as the API server writes it; any other order of members,
 * white space and several events on a line are understood, too. Of an incomplete line the part that
 * is there is kept. A line that is larger than an object may be is left out without being kept.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_REFLECTOR_WATCH_STREAM_H
#define KINF_REFLECTOR_WATCH_STREAM_H

#include "base/buffer.h"
#include "object/object.h"
#include "reflector/stream.h"

enum kinf__watch_event_type { KINF__WATCH_ADDED, KINF__WATCH_MODIFIED, KINF__WATCH_DELETED };

/* What each returns: 0 goes on, a negative value ends the stream, as kinf__stream_reject_cb. */
struct kinf__watch_stream_callbacks {
    /* The object is borrowed during the call. */
    int (*on_event)(enum kinf__watch_event_type type, const struct kinf_object *object, void *ctx,
                    struct kinf_error *err);
    int (*on_bookmark)(const char *rv, bool ends_initial_events, void *ctx, struct kinf_error *err);
    /* An ERROR event; `event` is what its Status says. */
    int (*on_error)(const struct kinf_error *event, void *ctx, struct kinf_error *err);
    kinf__stream_reject_cb *on_reject; /* also for an event of unknown type */
    void *ctx;
};

struct kinf__watch_stream {
    struct kinf__object_decoder *decoder; /* borrowed, as are the callbacks */
    const struct kinf__watch_stream_callbacks *callbacks;
    size_t max_object_bytes;
    struct kinf__buffer tail; /* an incomplete line */
    bool is_skipping;         /* the rest of a line that is too large */
};

void kinf__watch_stream_init(struct kinf__watch_stream *stream,
                             struct kinf__object_decoder *decoder, size_t max_object_bytes,
                             const struct kinf__watch_stream_callbacks *callbacks);
void kinf__watch_stream_release(struct kinf__watch_stream *stream);
/* Starts a new body. */
void kinf__watch_stream_reset(struct kinf__watch_stream *stream);

/* After an error only reset and release are allowed. Errors: KINF_ERR_NO_MEMORY, or what a callback
 * returned. */
KINF_MUST_CHECK int kinf__watch_stream_feed(struct kinf__watch_stream *stream, const char *bytes,
                                            size_t len, struct kinf_error *err);

/* The body came to its proper end: a last line without newline counts. Errors: as feed, and
 * KINF_ERR_TRUNCATED (the last line is incomplete). */
KINF_MUST_CHECK int kinf__watch_stream_finish(struct kinf__watch_stream *stream,
                                              struct kinf_error *err);

#endif
