/*
 * A growable run of bytes. A buffer that is all zero is empty and valid.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_BASE_BUFFER_H
#define KINF_BASE_BUFFER_H

#include <stddef.h>

#include <kinformer/error.h>
#include <kinformer/str.h>

#include "base/compiler.h"

struct kinf__buffer {
    char *bytes;
    size_t len;
    size_t size;
};

#define KINF__BUFFER_INIT                                                                          \
    {                                                                                              \
        NULL, 0, 0                                                                                 \
    }

void kinf__buffer_release(struct kinf__buffer *buffer);
#define KINF__AUTO_BUFFER KINF__CLEANUP(kinf__buffer_release) struct kinf__buffer

/* Makes room for `more` bytes behind len. Errors: KINF_ERR_NO_MEMORY, nothing changed. */
KINF_MUST_CHECK int kinf__buffer_reserve(struct kinf__buffer *buffer, size_t more);

KINF_MUST_CHECK int kinf__buffer_append(struct kinf__buffer *buffer, const void *bytes, size_t len);
KINF_MUST_CHECK int kinf__buffer_append_str(struct kinf__buffer *buffer, struct kinf_str text);
KINF_MUST_CHECK int kinf__buffer_printf(struct kinf__buffer *buffer, const char *fmt, ...)
    KINF_PRINTF(2, 3);

/* Drops the first `len` bytes; the rest moves to the front. */
void kinf__buffer_consume(struct kinf__buffer *buffer, size_t len);

/* Puts a NUL behind the bytes (not counted in len) and returns them: the buffer's until it changes.
 * NULL when out of memory. */
const char *kinf__buffer_cstr(struct kinf__buffer *buffer);

/* Gives that text away, to be freed by free(), and leaves an empty buffer. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__buffer_take_text(struct kinf__buffer *buffer, char **ret_text,
                                           struct kinf_error *err);

static inline struct kinf_str kinf__buffer_str(const struct kinf__buffer *buffer)
{
    struct kinf_str view = { buffer->bytes, buffer->len };

    return view;
}

#endif
