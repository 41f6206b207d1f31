/*
 * Reading recorded HTTP/1.1 responses. Neighbours: the tests of the streams.
 */
#include "unit/transcript.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "unit/test.h"

#define EVERY_OFFSET_UP_TO 20000
#define N_SAMPLED_OFFSETS  300

/* The response as it was received; the body behind the head. */
struct response {
    char *head; /* terminated */
    const char *body;
    size_t len;
};

static bool has_header(const struct response *response, const char *line)
{
    return strcasestr(response->head, line) != NULL;
}

static char *copy_of(const char *bytes, size_t len)
{
    char *copy = malloc(len + 1);

    assert_non_null(copy);
    if (len != 0)
        memcpy(copy, bytes, len);
    copy[len] = '\0';
    return copy;
}

static bool join_chunks(const struct response *response, char **ret_body, size_t *ret_len)
{
    const char *at = response->body, *end = response->body + response->len;
    char *body = malloc(response->len + 1);
    size_t len = 0;
    bool is_complete = false;

    assert_non_null(body);
    while (at < end && !is_complete) {
        char *digits_end;
        size_t size = strtoul(at, &digits_end, 16);

        is_complete = size == 0;
        at = digits_end + 2;
        if (size > (size_t)(end - at))
            size = (size_t)(end - at);
        memcpy(body + len, at, size);
        len += size;
        at += size + 2;
    }
    body[len] = '\0';
    *ret_body = body;
    *ret_len = len;
    return is_complete;
}

/* Inflates any number of gzip members that follow each other. */
static void inflate_members(char **body, size_t *len)
{
    size_t size = *len * 2000 + 1024, out_len = 0;
    char *out = malloc(size);
    z_stream z = { .next_in = (unsigned char *)*body, .avail_in = (unsigned)*len };
    int r = Z_OK;

    assert_non_null(out);
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    while (z.avail_in != 0 && (r == Z_OK || r == Z_STREAM_END)) {
        z.next_out = (unsigned char *)out + out_len;
        z.avail_out = (unsigned)(size - out_len);
        r = inflate(&z, Z_SYNC_FLUSH);
        out_len = size - z.avail_out;
        if (r == Z_STREAM_END)
            inflateReset(&z);
    }
    assert_true(r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR);
    inflateEnd(&z);
    free(*body);
    *body = copy_of(out, out_len);
    *len = out_len;
    free(out);
}

struct test_transcript test_transcript_read(const char *name)
{
    struct test_transcript transcript = { .is_complete = true };
    struct response response;
    char path[256], *text, *head_end;
    size_t len;

    snprintf(path, sizeof path, "transcripts/%s.http", name);
    text = test_read_data(path, &len);
    head_end = strstr(text, "\r\n\r\n");
    if (head_end == NULL)
        fail_msg("%s has no head", path);
    *head_end = '\0';
    response = (struct response){ text, head_end + 4, len - (size_t)(head_end + 4 - text) };
    transcript.http_status = atoi(strchr(text, ' '));
    if (has_header(&response, "\nTransfer-Encoding: chunked")) {
        transcript.is_complete = join_chunks(&response, &transcript.body, &transcript.len);
    } else {
        transcript.body = copy_of(response.body, response.len);
        transcript.len = response.len;
    }
    if (has_header(&response, "\nContent-Encoding: gzip"))
        inflate_members(&transcript.body, &transcript.len);
    free(text);
    return transcript;
}

void test_transcript_release(struct test_transcript *transcript)
{
    free(transcript->body);
}

static int feed_copy(const char *bytes, size_t len, test_feed_fn *feed, void *ctx)
{
    char *copy = malloc(len != 0 ? len : 1);
    int r;

    assert_non_null(copy);
    if (len != 0)
        memcpy(copy, bytes, len);
    r = feed(copy, len, ctx);
    free(copy);
    return r;
}

int test_feed_cut(const char *body, size_t len, struct test_cut cut, test_feed_fn *feed, void *ctx)
{
    int r = 0;

    if (cut.step == 0) {
        r = feed_copy(body, cut.at, feed, ctx);
        return r < 0 ? r : feed_copy(body + cut.at, len - cut.at, feed, ctx);
    }
    for (size_t at = 0; r == 0 && at < len; at += cut.step)
        r = feed_copy(body + at, len - at < cut.step ? len - at : cut.step, feed, ctx);
    return r;
}

void test_each_cut(size_t len, void (*try_cut)(struct test_cut cut, void *ctx), void *ctx)
{
    static const size_t steps[] = { 1, 2, 3, 7, 64, 1000, 2048, 16384 };
    size_t stride = len > EVERY_OFFSET_UP_TO ? len / N_SAMPLED_OFFSETS : 1;

    try_cut((struct test_cut){ .step = len + 1 }, ctx);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        try_cut((struct test_cut){ .step = steps[i] }, ctx);
    for (size_t at = 0; at <= len; at += stride)
        try_cut((struct test_cut){ .at = at }, ctx);
}
