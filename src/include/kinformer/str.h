/*
 * A view of bytes that somebody else owns. Not terminated; may hold NUL.
 *
 * Threads: a view is as safe as the bytes it shows.
 * Mirrors: Go's string, which also is a pointer and a length.
 */
#ifndef KINFORMER_STR_H
#define KINFORMER_STR_H

#include <stddef.h>
#include <string.h>
#include <stdbool.h>

struct kinf_str {
    const char *bytes;
    size_t len;
};

/* A view of a literal. */
#define KINF_STR(literal) ((struct kinf_str){ "" literal, sizeof(literal) - 1 })

/* A view of a string, without its terminator; NULL is empty. */
static inline struct kinf_str kinf_str_from(const char *text)
{
    struct kinf_str view = { text, text != NULL ? strlen(text) : 0 };

    return view;
}

/* Whether both show the same bytes; all empty ones are equal. */
static inline bool kinf_str_equal(struct kinf_str a, struct kinf_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.bytes, b.bytes, a.len) == 0);
}

/* Bytewise order, a prefix first: negative, zero or positive. */
static inline int kinf_str_compare(struct kinf_str a, struct kinf_str b)
{
    size_t shorter = a.len < b.len ? a.len : b.len;
    int order = shorter != 0 ? memcmp(a.bytes, b.bytes, shorter) : 0;

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

#endif
