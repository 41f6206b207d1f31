/*
 * Growable bytes. Neighbours: all who collect text. Invariant: len <= size, bytes NULL only if size
 * 0.
 */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define SIZE_MIN_GROWN 64

void kinf__buffer_release(struct kinf__buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct kinf__buffer)KINF__BUFFER_INIT;
}

int kinf__buffer_reserve(struct kinf__buffer *buffer, size_t more)
{
    size_t size = buffer->size < SIZE_MIN_GROWN ? SIZE_MIN_GROWN : buffer->size;
    char *bytes;

    if (more <= buffer->size - buffer->len)
        return 0;
    if (more > SIZE_MAX / 4 - buffer->len)
        return KINF_ERR_NO_MEMORY;
    while (size - buffer->len < more)
        size += size / 2;
    bytes = realloc(buffer->bytes, size);
    if (bytes == NULL)
        return KINF_ERR_NO_MEMORY;
    buffer->bytes = bytes;
    buffer->size = size;
    return 0;
}

int kinf__buffer_append(struct kinf__buffer *buffer, const void *bytes, size_t len)
{
    if (len == 0)
        return 0;
    if (kinf__buffer_reserve(buffer, len) < 0)
        return KINF_ERR_NO_MEMORY;
    memcpy(buffer->bytes + buffer->len, bytes, len);
    buffer->len += len;
    return 0;
}

int kinf__buffer_append_str(struct kinf__buffer *buffer, struct kinf_str text)
{
    return kinf__buffer_append(buffer, text.bytes, text.len);
}

int kinf__buffer_printf(struct kinf__buffer *buffer, const char *fmt, ...)
{
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (len < 0 || kinf__buffer_reserve(buffer, (size_t)len + 1) < 0)
        return KINF_ERR_NO_MEMORY;
    va_start(args, fmt);
    vsnprintf(buffer->bytes + buffer->len, (size_t)len + 1, fmt, args);
    va_end(args);
    buffer->len += (size_t)len;
    return 0;
}

void kinf__buffer_consume(struct kinf__buffer *buffer, size_t len)
{
    if (len == 0)
        return;
    buffer->len -= len;
    memmove(buffer->bytes, buffer->bytes + len, buffer->len);
}

const char *kinf__buffer_cstr(struct kinf__buffer *buffer)
{
    if (kinf__buffer_reserve(buffer, 1) < 0)
        return NULL;
    buffer->bytes[buffer->len] = '\0';
    return buffer->bytes;
}

int kinf__buffer_take_text(struct kinf__buffer *buffer, char **ret_text, struct kinf_error *err)
{
    if (kinf__buffer_cstr(buffer) == NULL)
        return kinf__error_no_memory(err);
    *ret_text = buffer->bytes;
    *buffer = (struct kinf__buffer)KINF__BUFFER_INIT;
    return 0;
}
