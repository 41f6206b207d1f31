/*
 * Reading recorded HTTP/1.1 responses. Neighbours: the tests of the streams.
 */
#include "unit/transcript.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "json/scan.h"
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

/* --- what was written down beside it --- */

static char *string_of(struct kinf__json_value value)
{
    char *text = calloc(1, value.raw.len + 1);

    assert_non_null(text);
    assert_int_equal(value.type, KINF__JSON_STRING);
    (void)kinf__json_unescape(value.raw, text, value.raw.len);
    return text;
}

static void note_request_line(struct test_transcript *transcript, struct kinf__json_value line)
{
    char *text = string_of(line), *target = strchr(text, ' ') + 1;

    transcript->target = copy_of(target, (size_t)(strrchr(target, ' ') - target));
    free(text);
}

static void note_headers(struct test_transcript *transcript, struct kinf__json_value headers)
{
    struct kinf__json_iter iter;
    struct kinf__json_value header;
    struct kinf_str key;

    assert_true(kinf__json_iter_init(&iter, headers));
    while (kinf__json_iter_next(&iter, &key, &header)) {
        char *text = string_of(header);

        if (strncmp(text, "Accept: ", 8) == 0 && transcript->accept == NULL)
            transcript->accept = strdup(text + 8);
        free(text);
    }
}

static void read_facts(struct test_transcript *transcript, const char *name)
{
    struct kinf__json_value facts, value;
    char path[256], *text;
    size_t len;

    snprintf(path, sizeof path, "transcripts/%s.json", name);
    text = test_read_data(path, &len);
    assert_int_equal(kinf__json_scan((struct kinf_str){ text, len }, true, &len), 0);
    facts = kinf__json_value_of((struct kinf_str){ text, len });
    assert_true(kinf__json_member(facts, KINF_STR("request_line"), &value));
    note_request_line(transcript, value);
    assert_true(kinf__json_member(facts, KINF_STR("request_headers"), &value));
    note_headers(transcript, value);
    assert_true(kinf__json_member(facts, KINF_STR("end_ms"), &value));
    transcript->end_ms = (int64_t)strtod(value.raw.bytes, NULL);
    free(text);
}

static bool read_body(struct test_transcript *transcript, const struct response *response)
{
    const char *retry_after = strcasestr(response->head, "\nRetry-After: ");
    bool is_complete = true;

    transcript->http_status = atoi(strchr(response->head, ' '));
    if (retry_after != NULL)
        transcript->retry_after_ms = (uint32_t)atoi(retry_after + 14) * 1000;
    if (has_header(response, "\nTransfer-Encoding: chunked")) {
        is_complete = join_chunks(response, &transcript->body, &transcript->len);
    } else {
        transcript->body = copy_of(response->body, response->len);
        transcript->len = response->len;
    }
    if (has_header(response, "\nContent-Encoding: gzip"))
        inflate_members(&transcript->body, &transcript->len);
    return is_complete;
}

struct test_transcript test_transcript_read(const char *name)
{
    struct test_transcript transcript = { .http_status = 0 };
    char path[256], *text, *head_end;

    snprintf(path, sizeof path, "transcripts/%s.http", name);
    text = test_read_data(path, &transcript.wire_len);
    head_end = strstr(text, "\r\n\r\n");
    if (head_end != NULL) {
        size_t head_len = (size_t)(head_end + 4 - text);

        *head_end = '\0';
        transcript.is_complete =
            read_body(&transcript,
                      &(struct response){ text, text + head_len, transcript.wire_len - head_len });
    } else if (transcript.wire_len != 0) {
        fail_msg("%s has no head", path);
    }
    free(text);
    read_facts(&transcript, name);
    return transcript;
}

void test_transcript_release(struct test_transcript *transcript)
{
    free(transcript->body);
    free(transcript->target);
    free(transcript->accept);
}

bool test_transcript_query(const struct test_transcript *transcript, const char *name, char *value,
                           size_t size)
{
    const char *at = strchr(transcript->target, '?');
    size_t len = strlen(name);

    value[0] = '\0';
    for (; at != NULL; at = strchr(at, '&')) {
        at++;
        if (strncmp(at, name, len) == 0 && at[len] == '=') {
            at += len + 1;
            snprintf(value, size, "%.*s", (int)strcspn(at, "&"), at);
            return true;
        }
    }
    return false;
}

static int is_recording(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return len > 5 && strcmp(entry->d_name + len - 5, ".http") == 0;
}

char **test_transcript_names(size_t *ret_n)
{
    struct dirent **entries;
    char path[1024], **names;
    int n;

    snprintf(path, sizeof path, "%s/transcripts", test_data_dir());
    n = scandir(path, &entries, is_recording, alphasort);
    assert_true(n > 0);
    names = calloc((size_t)n, sizeof *names);
    assert_non_null(names);
    for (int i = 0; i < n; i++) {
        names[i] = copy_of(entries[i]->d_name, strlen(entries[i]->d_name) - 5);
        free(entries[i]);
    }
    free(entries);
    *ret_n = (size_t)n;
    return names;
}

/* --- pieces --- */

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
