/*
 * Text on its way to a client: bytes of its own and, between them, parts of one object's JSON that
 * are not copied. Whoever takes nothing holds those bytes and a reference, however large the object;
 * of one that is held compressed its text, which is nowhere else.
 *
 * Owner: a stream. Threads: one thread per object.
 */
#ifndef KINF_SERVE_PIECES_H
#define KINF_SERVE_PIECES_H

#include <kinformer/object.h>

#include "base/buffer.h"
#include "serve/stream.h"

#define KINF__PIECES_PARTS_MAX 2 /* around a resourceVersion that is replaced */

struct kinf__pieces {
    struct kinf__buffer bytes; /* to append to */
    size_t large; /* parts of this length and more are not copied; the owner's choice */
    /* the module's */
    const struct kinf_object *object; /* a reference; NULL: there are no parts */
    struct kinf__part {
        size_t at; /* in front of this byte of `bytes` */
        size_t offset;
        size_t len;
    } parts[KINF__PIECES_PARTS_MAX];
    unsigned n_parts;
    unsigned n_parts_taken;
    size_t n_taken; /* of `bytes` */
};

/* Frees what it holds: it is as new, but for `large`. */
void kinf__pieces_release(struct kinf__pieces *pieces);
/* The same, keeping the room of `bytes` up to a size. */
void kinf__pieces_clear(struct kinf__pieces *pieces, size_t max_size);

/* Appends part of an object's JSON, which is `body`, as one line: line ends become spaces. Until the
 * next clear() no other object is added once this one is held. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__pieces_add(struct kinf__pieces *pieces, const struct kinf_object *object,
                                     struct kinf_str body, size_t offset, size_t len);

/* Bytes that were not taken yet. */
size_t kinf__pieces_len(const struct kinf__pieces *pieces);
/* Whether to take before more objects are added: `n_bytes` are there, or an object is held. */
bool kinf__pieces_are_enough(const struct kinf__pieces *pieces, size_t n_bytes);
/* Writes up to `size` of them to `buf`; returns how many. */
size_t kinf__pieces_take(struct kinf__pieces *pieces, char *buf, size_t size);

/* A stream of what is there; it takes the pieces over. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__pieces_stream(struct kinf__pieces *take_pieces,
                                        struct kinf__stream **ret_stream);

#endif
