/*
 * See fuzz.h.
 */
#include "fuzz/fuzz.h"

#include <string.h>

static char *copy_of(const uint8_t *data, size_t size, size_t room)
{
    char *copy = malloc(size + room);

    FUZZ_REQUIRE(copy != NULL || size + room == 0);
    if (size != 0)
        memcpy(copy, data, size);
    return copy;
}

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = copy_of(data, size, 1);

    text[size] = '\0';
    return text;
}

int fuzz_feed_pieces(const uint8_t *data, size_t size, unsigned seed, fuzz_feed_fn *feed, void *ctx)
{
    uint32_t state = seed * 2654435761U + 1;
    int r = 0;

    for (size_t at = 0, len; r == 0 && at < size; at += len) {
        char *piece;

        state = state * 1664525 + 1013904223;
        len = 1 + (state >> 26);
        if (len > size - at)
            len = size - at;
        piece = copy_of(data + at, len, 0);
        r = feed(piece, len, ctx);
        free(piece);
    }
    return r;
}
