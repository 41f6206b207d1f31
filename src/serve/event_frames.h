/*
 * Where one event of a watch's stream ends and the next begins: lines of JSON, or frames of protobuf (four
 * bytes of length, the highest first, and as many more).
 *
 * Threads: one thread per object.
 */
#ifndef KINF_SERVE_EVENT_FRAMES_H
#define KINF_SERVE_EVENT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kinf__framing {
    KINF__FRAMING_NONE, /* nobody knows; it is never between two events */
    KINF__FRAMING_LINES,
    KINF__FRAMING_LENGTHS,
};

/* All zero: of KINF__FRAMING_NONE. */
struct kinf__event_frames {
    enum kinf__framing framing;
    unsigned n_head; /* bytes of the length that have come */
    uint32_t left;   /* of it, while it comes; then of the event */
    bool is_inside;  /* an event */
};

/* "" for a header that is not there. */
void kinf__event_frames_init(struct kinf__event_frames *frames, const char *content_type,
                             const char *content_encoding);
/* Takes what comes next of the stream. Returns how many of these bytes there are up to the end of the last
 * event that ends in them; 0: none does. */
size_t kinf__event_frames_take(struct kinf__event_frames *frames, const char *bytes, size_t len);
/* Whether the stream so far ends behind an event, or has not begun. */
bool kinf__event_frames_are_whole(const struct kinf__event_frames *frames);

#endif
