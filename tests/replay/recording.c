/*
 * Loading of recorded answers. Neighbours: script.c asks, json/scan.h reads what stands beside an
 * answer. Invariant: the SENDs of a recording, joined, are its file.
 */
#include "replay/recording.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "json/scan.h"

int replay__read_file(const char *path, struct kinf__buffer *bytes, struct kinf_error *err)
{
    FILE *file = fopen(path, "rbe");
    int failed = 0;

    if (file == NULL)
        return kinf__error_set_errno(err, KINF_ERR_CONFIG, errno, "cannot open %s", path);
    while (failed == 0 && !feof(file) && !ferror(file)) {
        failed = kinf__buffer_reserve(bytes, 65536);
        if (failed == 0)
            bytes->len += fread(bytes->bytes + bytes->len, 1, 65536, file);
    }
    if (failed < 0)
        failed = kinf__error_no_memory(err);
    else if (ferror(file))
        failed = kinf__error_set(err, KINF_ERR_CONFIG, "cannot read %s", path);
    fclose(file);
    return failed;
}

/* --- what was written down beside it --- */

static void string_at(struct kinf__json_value facts, struct kinf_str key, char *out, size_t size)
{
    struct kinf__json_value value;
    size_t len = 0;

    if (kinf__json_member(facts, key, &value) && value.type == KINF__JSON_STRING)
        len = kinf__json_unescape(value.raw, out, size - 1);
    out[len < size ? len : 0] = '\0';
}

/* --- playing --- */

/* The length of the chunk at the front of `body`, framing included; all of it if it is not whole.
 */
static size_t chunk_len(struct kinf_str body)
{
    char size_text[20];
    const char *line_end = memmem(body.bytes, body.len, "\r\n", 2);
    size_t line_len, size;

    if (line_end == NULL || (line_len = (size_t)(line_end - body.bytes)) >= sizeof size_text)
        return body.len;
    memcpy(size_text, body.bytes, line_len);
    size_text[line_len] = '\0';
    size = strtoul(size_text, NULL, 16);
    return size < body.len && line_len + 2 + size + 2 <= body.len ? line_len + 2 + size + 2
                                                                  : body.len;
}

static bool is_chunked(struct kinf_str head)
{
    char text[4096];

    snprintf(text, sizeof text, "%.*s", (int)head.len, head.bytes);
    return strcasestr(text, "\r\nTransfer-Encoding: chunked\r\n") != NULL;
}

static int add_body(struct replay__response *response, struct kinf_str body, bool chunked)
{
    int failed = 0;

    while (body.len > 0 && failed == 0) {
        size_t len = chunked ? chunk_len(body) : body.len;

        failed = replay__response_send(response, (struct kinf_str){ body.bytes, len });
        body.bytes += len;
        body.len -= len;
    }
    return failed;
}

static int add_end(struct replay__response *response, struct kinf__json_value facts)
{
    struct replay__action action = { .type = REPLAY__CUT };
    char end[128];

    string_at(facts, KINF_STR("end"), end, sizeof end);
    if (strncmp(end, "recorder closed", strlen("recorder closed")) == 0)
        action.type = REPLAY__STALL;
    else if (strstr(end, "FIN") == NULL)
        return 0;
    else if (strstr(end, "close_notify + FIN") != NULL)
        action.type = REPLAY__CLOSE_NOTIFY;
    return replay__response_add(response, action);
}

static int add_actions(struct replay__response *response, struct kinf_str body,
                       struct kinf__json_value facts)
{
    struct kinf_str head = { body.bytes, 0 };
    const char *head_end = memmem(body.bytes, body.len, "\r\n\r\n", 4);

    if (head_end != NULL) {
        head.len = (size_t)(head_end + 4 - head.bytes);
        body.bytes += head.len;
        body.len -= head.len;
    }
    if (replay__response_send(response, head) < 0 || add_body(response, body, is_chunked(head)) < 0)
        return KINF_ERR_NO_MEMORY;
    return add_end(response, facts);
}

static int read_beside(const char *dir, const char *name, const char *ending,
                       struct kinf__buffer *bytes, struct kinf_error *err)
{
    char path[1024];

    snprintf(path, sizeof path, "%s/%s%s", dir, name, ending);
    return replay__read_file(path, bytes, err);
}

int replay__recording_load(const char *dir, const char *name, struct replay__response *response,
                           struct kinf_error *err)
{
    KINF__AUTO_BUFFER bytes = KINF__BUFFER_INIT, facts = KINF__BUFFER_INIT;
    size_t at;
    int failed = read_beside(dir, name, ".http", &bytes, err);

    if (failed == 0)
        failed = read_beside(dir, name, ".json", &facts, err);
    if (failed < 0)
        return failed;
    if (kinf__json_scan_all(kinf__buffer_str(&facts), KINF__JSON_MAX_DEPTH, &at) < 0)
        return kinf__error_set(err, KINF_ERR_PARSE, "%s/%s.json is no JSON", dir, name);
    failed = add_actions(response, kinf__buffer_str(&bytes),
                         kinf__json_value_of(kinf__buffer_str(&facts)));
    return failed < 0 ? kinf__error_no_memory(err) : 0;
}
