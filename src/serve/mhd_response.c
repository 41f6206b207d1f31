/*
 * Heads of answers. Neighbours: mhd_request.c sends them and reads the bodies.
 */
#include "serve/mhd_response.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "serve/passthrough.h"

#define BLOCK_BYTES       (16u << 10) /* a buffer that the library holds as long as the answer */
#define WATCH_BLOCK_BYTES (1u << 10)  /* used by HTTP/1.0 alone: chunks are made in place */

/* A header that does not fit the memory, or that cannot be sent, is left out; none of these changes
 * what a body means, but for Content-Encoding. */
static bool add_header(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

static void add_warnings(struct MHD_Response *response, const struct kinf__buffer *warnings)
{
    for (size_t at = 0; at < warnings->len; at += strlen(warnings->bytes + at) + 1)
        add_header(response, "Warning", warnings->bytes + at);
}

static void add_numbers(struct MHD_Response *response, const struct kinf__answer *answer)
{
    char text[32];

    if (answer->retry_after_s != 0) {
        snprintf(text, sizeof text, "%u", answer->retry_after_s);
        add_header(response, "Retry-After", text);
    }
    if (answer->staleness_ms >= 0) {
        snprintf(text, sizeof text, "%lld.%03lld", (long long)(answer->staleness_ms / 1000),
                 (long long)(answer->staleness_ms % 1000));
        add_header(response, "Kinformer-Staleness-Seconds", text);
    }
    add_warnings(response, &answer->warnings);
}

static bool add_passed_headers(struct MHD_Response *response, const struct kinf__answer *answer)
{
    bool is_whole = true;

    for (size_t i = 0; i < answer->n_headers; i++) {
        const struct kinf__header *one = &answer->headers[i];

        if (kinf__passthrough_returns(one) && !add_header(response, one->name, one->value) &&
            strcasecmp(one->name, "Content-Encoding") == 0 && *one->value != '\0')
            is_whole = false;
    }
    add_header(response, "Kinformer-Source", "upstream");
    return is_whole;
}

static bool add_headers(struct MHD_Response *response, const struct kinf__answer *answer)
{
    if (answer->is_passed)
        return add_passed_headers(response, answer);
    if (answer->is_gzip && !add_header(response, "Content-Encoding", "gzip"))
        return false; /* no memory */
    if (answer->content_type != NULL)
        add_header(response, "Content-Type", answer->content_type);
    if (answer->varies_by_encoding)
        add_header(response, "Vary", "Accept-Encoding");
    if (answer->is_public || answer->varies_by_accept)
        add_header(response, "Vary", "Accept");
    if (*answer->policy != '\0') {
        add_header(response, "Content-Security-Policy", answer->policy);
        add_header(response, "X-Frame-Options", "DENY");
        add_header(response, "Referrer-Policy", "no-referrer");
    }
    if (*answer->etag != '\0')
        add_header(response, "ETag", answer->etag);
    add_header(response, "Cache-Control", answer->is_public ? "public" : "no-cache, private");
    add_header(response, "X-Content-Type-Options", "nosniff");
    add_numbers(response, answer);
    return true;
}

static struct MHD_Response *make_body(const struct kinf__answer *answer,
                                      MHD_ContentReaderCallback read, void *ctx)
{
    if (answer->stream != NULL)
        return MHD_create_response_from_callback(
            answer->stream_len >= 0 ? (uint64_t)answer->stream_len : MHD_SIZE_UNKNOWN,
            answer->stream->is_watch ? WATCH_BLOCK_BYTES : BLOCK_BYTES, read, ctx, NULL);
    return MHD_create_response_from_buffer(answer->body.len, answer->body.bytes,
                                           MHD_RESPMEM_PERSISTENT);
}

struct MHD_Response *kinf__mhd_response_new(const struct kinf__answer *answer,
                                            MHD_ContentReaderCallback read, void *ctx)
{
    struct MHD_Response *response = make_body(answer, read, ctx);

    if (response == NULL || add_headers(response, answer))
        return response;
    MHD_destroy_response(response);
    return NULL;
}

int kinf__mhd_response_write_upgrade(const struct kinf__answer *answer, struct kinf__buffer *out)
{
    int failed = kinf__buffer_append_str(
        out, KINF_STR("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                      "Kinformer-Source: upstream\r\n"));

    for (size_t i = 0; failed == 0 && i < answer->n_headers; i++) {
        const struct kinf__header *one = &answer->headers[i];

        if (kinf__passthrough_returns(one) || kinf__passthrough_names_protocol(one->name))
            failed = kinf__buffer_printf(out, "%s: %s\r\n", one->name, one->value);
    }
    return failed == 0 ? kinf__buffer_append_str(out, KINF_STR("\r\n")) : failed;
}
