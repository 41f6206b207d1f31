/*
 * Pieces. Neighbours: encode.c adds, watch.c, list.c and resource.c send. Small parts are copied all
 * the same, since many small objects in one buffer are sent at once.
 */
#include "serve/pieces.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "object/object.h"

void kinf__pieces_release(struct kinf__pieces *pieces)
{
    kinf__pieces_clear(pieces, 0);
}

void kinf__pieces_clear(struct kinf__pieces *pieces, size_t max_size)
{
    if (pieces->bytes.size > max_size)
        kinf__buffer_release(&pieces->bytes);
    kinf_object_unref(pieces->object);
    *pieces = (struct kinf__pieces){ .bytes = { pieces->bytes.bytes, 0, pieces->bytes.size },
                                     .large = pieces->large };
}

/* A line end between the tokens of an event's object would end the event. */
static void make_one_line(char *bytes, size_t len)
{
    for (char *at = bytes, *end = bytes + len; (at = memchr(at, '\n', (size_t)(end - at))) != NULL;
         at++)
        *at = ' ';
}

static int add_copy(struct kinf__buffer *bytes, struct kinf_str text)
{
    if (kinf__buffer_append_str(bytes, text) < 0)
        return KINF_ERR_NO_MEMORY;
    make_one_line(bytes->bytes + bytes->len - text.len, text.len);
    return 0;
}

int kinf__pieces_add(struct kinf__pieces *pieces, const struct kinf_object *object,
                     struct kinf_str body, size_t offset, size_t len)
{
    if (len < pieces->large || kinf__object_plain_body(object) == NULL)
        return add_copy(&pieces->bytes, (struct kinf_str){ body.bytes + offset, len });
    assert((pieces->object == NULL || pieces->object == object) &&
           pieces->n_parts < KINF__PIECES_PARTS_MAX);
    if (pieces->object == NULL)
        pieces->object = kinf_object_ref(object);
    pieces->parts[pieces->n_parts++] = (struct kinf__part){ pieces->bytes.len, offset, len };
    return 0;
}

size_t kinf__pieces_len(const struct kinf__pieces *pieces)
{
    size_t len = pieces->bytes.len - pieces->n_taken;

    for (unsigned i = pieces->n_parts_taken; i < pieces->n_parts; i++)
        len += pieces->parts[i].len;
    return len;
}

bool kinf__pieces_are_enough(const struct kinf__pieces *pieces, size_t n_bytes)
{
    return pieces->object != NULL || pieces->bytes.len - pieces->n_taken >= n_bytes;
}

static size_t take_part(struct kinf__pieces *pieces, struct kinf__part *part, char *buf,
                        size_t size)
{
    size_t n = part->len < size ? part->len : size;

    memcpy(buf, kinf__object_plain_body(pieces->object) + part->offset, n);
    make_one_line(buf, n);
    part->offset += n;
    part->len -= n;
    pieces->n_parts_taken += part->len == 0;
    return n;
}

/* Up to where a part stands, or the end. */
static size_t take_bytes(struct kinf__pieces *pieces, size_t end, char *buf, size_t size)
{
    size_t n = end - pieces->n_taken;

    n = n < size ? n : size;
    if (n != 0)
        memcpy(buf, pieces->bytes.bytes + pieces->n_taken, n);
    pieces->n_taken += n;
    return n;
}

size_t kinf__pieces_take(struct kinf__pieces *pieces, char *buf, size_t size)
{
    size_t n_done = 0, n;

    do {
        struct kinf__part *part =
            pieces->n_parts_taken < pieces->n_parts ? &pieces->parts[pieces->n_parts_taken] : NULL;

        if (part != NULL && part->at == pieces->n_taken)
            n = take_part(pieces, part, buf + n_done, size - n_done);
        else
            n = take_bytes(pieces, part != NULL ? part->at : pieces->bytes.len, buf + n_done,
                           size - n_done);
        n_done += n;
    } while (n != 0);
    return n_done;
}

/* --- as a stream --- */

struct pieces_stream {
    struct kinf__stream stream;
    struct kinf__pieces pieces;
};

static ssize_t stream_read(struct kinf__stream *stream, char *buf, size_t size)
{
    struct pieces_stream *one = KINF__CONTAINER_OF(stream, struct pieces_stream, stream);
    size_t n = kinf__pieces_take(&one->pieces, buf, size);

    return n != 0 ? (ssize_t)n : KINF__STREAM_END;
}

static void stream_free(struct kinf__stream *stream)
{
    struct pieces_stream *one = KINF__CONTAINER_OF(stream, struct pieces_stream, stream);

    kinf__pieces_release(&one->pieces);
    free(one);
}

int kinf__pieces_stream(struct kinf__pieces *take_pieces, struct kinf__stream **ret_stream)
{
    struct pieces_stream *one = malloc(sizeof *one);

    if (one == NULL) {
        kinf__pieces_release(take_pieces);
        return KINF_ERR_NO_MEMORY;
    }
    one->stream = (struct kinf__stream){ stream_read, stream_free, false };
    one->pieces = *take_pieces;
    *take_pieces = (struct kinf__pieces){ .large = take_pieces->large };
    *ret_stream = &one->stream;
    return 0;
}
