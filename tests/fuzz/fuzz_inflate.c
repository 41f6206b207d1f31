/*
 * gzip members in pieces: the same bytes as in one, and nothing is held back.
 */
#include <string.h>

#include "base/compiler.h"
#include "fuzz/fuzz.h"
#include "rest/inflate.h"

#define MAX_BYTES (4u << 20)

struct output {
    struct kinf__inflate *inflate;
    struct kinf__buffer bytes;
};

static int keep(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    struct output *output = ctx;

    (void)err;
    if (output->bytes.len + len > MAX_BYTES)
        return KINF_ERR_LIMIT;
    return kinf__buffer_append(&output->bytes, bytes, len);
}

static int feed(const char *bytes, size_t len, void *ctx)
{
    struct output *output = ctx;

    return kinf__inflate_feed(output->inflate, bytes, len, keep, output, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned seed = fuzz_take_byte(&data, &size);
    struct output whole = { 0 }, pieces = { 0 };
    int r, r_pieces;

    FUZZ_REQUIRE(kinf__inflate_new(&whole.inflate, NULL) == 0);
    FUZZ_REQUIRE(kinf__inflate_new(&pieces.inflate, NULL) == 0);
    r = feed((const char *)data, size, &whole);
    r_pieces = fuzz_feed_pieces(data, size, seed + 1, feed, &pieces);
    FUZZ_REQUIRE(r == r_pieces);
    if (r == 0) {
        FUZZ_REQUIRE(
            kinf_str_equal(kinf__buffer_str(&whole.bytes), kinf__buffer_str(&pieces.bytes)));
        FUZZ_REQUIRE(kinf__inflate_is_complete(whole.inflate) ==
                     kinf__inflate_is_complete(pieces.inflate));
    }
    kinf__inflate_free(whole.inflate);
    kinf__inflate_free(pieces.inflate);
    kinf__buffer_release(&whole.bytes);
    kinf__buffer_release(&pieces.bytes);
    return 0;
}
