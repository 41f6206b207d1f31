/*
 * Deflating. Neighbours: list.c. The fastest level: the other end of the line is near.
 */
#include "serve/gzip.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include <zlib.h>

#define GZIP_WINDOW_BITS (15 + 16) /* with gzip's header */
#define MEMORY_LEVEL     8

struct kinf__gzip {
    z_stream z;
    bool is_done;
};

int kinf__gzip_new(struct kinf__gzip **ret_gzip)
{
    struct kinf__gzip *gzip = calloc(1, sizeof *gzip);

    if (gzip == NULL)
        return KINF_ERR_NO_MEMORY;
    if (deflateInit2(&gzip->z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW_BITS, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        free(gzip);
        return KINF_ERR_NO_MEMORY;
    }
    *ret_gzip = gzip;
    return 0;
}

void kinf__gzip_free(struct kinf__gzip *gzip)
{
    if (gzip == NULL)
        return;
    deflateEnd(&gzip->z);
    free(gzip);
}

static unsigned clamp(size_t size)
{
    return size < UINT_MAX ? (unsigned)size : UINT_MAX;
}

size_t kinf__gzip_write(struct kinf__gzip *gzip, const char *bytes, size_t *len, bool is_last,
                        char *out, size_t size)
{
    unsigned given = clamp(*len), room = clamp(size);

    gzip->z.next_in = (unsigned char *)(uintptr_t)bytes;
    gzip->z.avail_in = given;
    gzip->z.next_out = (unsigned char *)out;
    gzip->z.avail_out = room;
    if (deflate(&gzip->z, is_last && given == *len ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_END)
        gzip->is_done = true;
    *len = given - gzip->z.avail_in;
    return room - gzip->z.avail_out;
}

bool kinf__gzip_is_done(const struct kinf__gzip *gzip)
{
    return gzip->is_done;
}
