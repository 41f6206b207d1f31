/*
 * A response as the list of actions that play it. All bytes that it sends are made beforehand,
 * chunk framing included, and lie in one buffer.
 *
 * Threads: one thread until it is complete; then constant.
 */
#ifndef KINF_TESTS_REPLAY_RESPONSE_H
#define KINF_TESTS_REPLAY_RESPONSE_H

#include "base/buffer.h"
#include "replay/replay.h"

/* A body that is made while it is sent: an endless one, or one that must differ each time. */
struct replay__stream {
    /* Appends the framed bytes of events `from` to `to` - 1 (from 0). `request` is the one that is
     * answered. Called by many threads. Errors: KINF_ERR_NO_MEMORY. */
    int (*append)(const void *ctx, const struct replay_request *request, uint64_t from, uint64_t to,
                  struct kinf__buffer *wire);
    const void *ctx;
    uint64_t events_per_s; /* REPLAY_SATURATED: as the client reads */
    uint64_t n_events;     /* 0: no end */
    bool ends;             /* behind the last event, for what comes next; otherwise it is silent */
};

enum replay__action_type {
    REPLAY__SEND,
    REPLAY__STALL, /* until the peer or the server leaves */
    REPLAY__PAUSE, /* for a time */
    REPLAY__WAIT,  /* for a signal */
    REPLAY__STREAM,
    /* the connection ends: */
    REPLAY__CLOSE_NOTIFY, /* TLS's and then TCP's end of the stream */
    REPLAY__CUT,          /* TCP's end only */
    REPLAY__RESET,        /* RST */
};

struct replay__action {
    enum replay__action_type type;
    size_t start, len; /* SEND: in wire */
    int64_t pause_ms;  /* PAUSE */
    unsigned signal;   /* WAIT */
    const struct replay__stream *stream;
};

#define REPLAY__NO_LIMIT SIZE_MAX

struct replay__response {
    struct kinf__buffer wire;
    struct replay__action *actions;
    size_t n_actions;
    size_t wire_limit; /* after so many bytes it is cut */
};

#define REPLAY__RESPONSE_INIT                                                                      \
    {                                                                                              \
        .wire_limit = REPLAY__NO_LIMIT                                                             \
    }

void replay__response_release(struct replay__response *response);

/* All of these: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int replay__response_add(struct replay__response *response,
                                         struct replay__action action);
/* A SEND of these bytes, or of them as one chunk. An empty chunk would end the body: nothing is
 * added then. */
KINF_MUST_CHECK int replay__response_send(struct replay__response *response, struct kinf_str bytes);
KINF_MUST_CHECK int replay__response_send_chunk(struct replay__response *response,
                                                struct kinf_str bytes);
/* A SEND of what was appended to wire since it had `start` bytes. */
KINF_MUST_CHECK int replay__response_send_wire(struct replay__response *response, size_t start);

/* "HTTP/1.1 STATUS REASON" with CRLF, the usual reason if `reason` is empty. */
KINF_MUST_CHECK int replay__append_status_line(struct kinf__buffer *wire, int status,
                                               const char *reason);
/* A Status object as the API server sends it. The message is escaped. */
KINF_MUST_CHECK int replay__append_status_object(struct kinf__buffer *text, int code,
                                                 const char *reason, const char *message);

#endif
