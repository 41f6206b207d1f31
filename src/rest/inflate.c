/*
 * gzip members through zlib. Neighbours: http.c feeds what the network gives.
 */
#include "rest/inflate.h"

#include <limits.h>
#include <stdlib.h>

#include <zlib.h>

#include "base/error.h"

#define OUT_SIZE       65536
#define GZIP_ONLY_BITS (15 + 16) /* zlib's way to say: 32 kB window, gzip header */

struct kinf__inflate {
    z_stream stream;
    bool is_complete;
    char out[OUT_SIZE];
};

int kinf__inflate_new(struct kinf__inflate **ret_inflate, struct kinf_error *err)
{
    struct kinf__inflate *inflate = calloc(1, sizeof *inflate);

    if (inflate == NULL || inflateInit2(&inflate->stream, GZIP_ONLY_BITS) != Z_OK) {
        free(inflate);
        return kinf__error_no_memory(err);
    }
    inflate->is_complete = true;
    *ret_inflate = inflate;
    return 0;
}

void kinf__inflate_free(struct kinf__inflate *inflate)
{
    if (inflate == NULL)
        return;
    inflateEnd(&inflate->stream);
    free(inflate);
}

void kinf__inflate_reset(struct kinf__inflate *inflate)
{
    inflateReset(&inflate->stream);
    inflate->is_complete = true;
}

bool kinf__inflate_is_complete(const struct kinf__inflate *inflate)
{
    return inflate->is_complete;
}

/* One turn of zlib. Returns 1 while more can come out, 0 when it wants input. */
static int turn(struct kinf__inflate *gzip, kinf__inflate_cb *callback, void *ctx,
                struct kinf_error *err)
{
    z_stream *stream = &gzip->stream;
    size_t len;
    int status, failed;

    stream->next_out = (Bytef *)gzip->out;
    stream->avail_out = OUT_SIZE;
    status = inflate(stream, Z_SYNC_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
        if (status == Z_MEM_ERROR)
            return kinf__error_no_memory(err);
        return kinf__error_set(err, KINF_ERR_PARSE, "a compressed body that is no gzip: %s",
                               stream->msg != NULL ? stream->msg : "broken");
    }
    len = OUT_SIZE - stream->avail_out;
    if (len != 0 && (failed = callback(gzip->out, len, ctx, err)) < 0)
        return failed;
    gzip->is_complete = status == Z_STREAM_END;
    if (status == Z_STREAM_END) {
        /* Another turn without input would begin a member that nobody sent. */
        inflateReset(stream);
        return stream->avail_in != 0;
    }
    return stream->avail_in != 0 || stream->avail_out == 0;
}

int kinf__inflate_feed(struct kinf__inflate *inflate, const char *bytes, size_t len,
                       kinf__inflate_cb *callback, void *ctx, struct kinf_error *err)
{
    int more = 0;

    for (size_t n; len != 0 && more >= 0; bytes += n, len -= n) {
        n = len < UINT_MAX ? len : UINT_MAX;
        inflate->stream.next_in = (Bytef *)bytes;
        inflate->stream.avail_in = (uInt)n;
        do {
            more = turn(inflate, callback, ctx, err);
        } while (more > 0);
    }
    return more;
}
