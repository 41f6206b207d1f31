/*
 * Ends of events. Neighbour: passthrough.c ends watches there.
 */
#include "serve/event_frames.h"

#include <string.h>
#include <strings.h>

#define HEAD_LEN 4

void kinf__event_frames_init(struct kinf__event_frames *frames, const char *content_type,
                             const char *content_encoding)
{
    static const char json[] = "application/json",
                      protobuf[] = "application/vnd.kubernetes.protobuf";

    *frames = (struct kinf__event_frames){ .framing = KINF__FRAMING_NONE };
    if (*content_encoding != '\0')
        return;
    if (strncasecmp(content_type, json, sizeof json - 1) == 0)
        frames->framing = KINF__FRAMING_LINES;
    else if (strncasecmp(content_type, protobuf, sizeof protobuf - 1) == 0)
        frames->framing = KINF__FRAMING_LENGTHS;
}

static size_t take_lines(struct kinf__event_frames *frames, const char *bytes, size_t len)
{
    const char *end = memrchr(bytes, '\n', len);

    if (len != 0)
        frames->is_inside = bytes[len - 1] != '\n';
    return end != NULL ? (size_t)(end - bytes) + 1 : 0;
}

/* A byte of the length, or as much of the event as there is. Returns how many bytes that was. */
static size_t take_part(struct kinf__event_frames *frames, const char *bytes, size_t len)
{
    size_t part = 1;

    if (frames->n_head < HEAD_LEN) {
        frames->left = frames->left << 8 | (unsigned char)*bytes;
        frames->n_head++;
    } else {
        part = len < frames->left ? len : frames->left;
        frames->left -= (uint32_t)part;
    }
    frames->is_inside = frames->n_head < HEAD_LEN || frames->left != 0;
    if (!frames->is_inside)
        frames->n_head = 0;
    return part;
}

static size_t take_lengths(struct kinf__event_frames *frames, const char *bytes, size_t len)
{
    size_t whole = 0;

    for (size_t at = 0; at < len;) {
        at += take_part(frames, bytes + at, len - at);
        if (!frames->is_inside)
            whole = at;
    }
    return whole;
}

size_t kinf__event_frames_take(struct kinf__event_frames *frames, const char *bytes, size_t len)
{
    switch (frames->framing) {
    case KINF__FRAMING_LINES:
        return take_lines(frames, bytes, len);
    case KINF__FRAMING_LENGTHS:
        return take_lengths(frames, bytes, len);
    default:
        return 0;
    }
}

bool kinf__event_frames_are_whole(const struct kinf__event_frames *frames)
{
    return frames->framing != KINF__FRAMING_NONE && !frames->is_inside;
}
