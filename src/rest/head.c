/*
 * Heads of answers. Neighbours: transport.c.
 */
#include "rest/head.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

#define RETRY_AFTER_MAX_S 3600

static void forget(struct kinf__head *head)
{
    for (size_t i = 0; i < head->n_headers; i++)
        free((char *)(uintptr_t)head->headers[i].name);
    head->n_headers = 0;
    head->body_len = KINF__CHUNKED;
    head->is_chunked = false;
}

void kinf__head_release(struct kinf__head *head)
{
    forget(head);
    head->code = 0;
    head->is_complete = false;
}

static struct kinf_str trim(struct kinf_str text)
{
    while (text.len != 0 && strchr(" \t\r\n", text.bytes[text.len - 1]) != NULL)
        text.len--;
    while (text.len != 0 && strchr(" \t", *text.bytes) != NULL) {
        text.bytes++;
        text.len--;
    }
    return text;
}

static bool is_named(struct kinf_str name, const char *other)
{
    return name.len == strlen(other) && strncasecmp(name.bytes, other, name.len) == 0;
}

/* One allocation: the name, a NUL, the value, a NUL. */
static int add(struct kinf__head *head, struct kinf_str name, struct kinf_str value,
               struct kinf_error *err)
{
    char *text;

    if (head->n_headers == KINF__HEADERS_MAX)
        return 0;
    text = calloc(1, name.len + value.len + 2);
    if (text == NULL)
        return kinf__error_no_memory(err);
    memcpy(text, name.bytes, name.len);
    memcpy(text + name.len + 1, value.bytes, value.len);
    head->headers[head->n_headers++] = (struct kinf__header){ text, text + name.len + 1 };
    return 0;
}

/* Chunks end by themselves, whatever length is told beside them. Two lengths are none: others would
 * see the answer end elsewhere. */
static int take_length(struct kinf__head *head, struct kinf_str value, struct kinf_error *err)
{
    char *end;
    long long told = strtoll(value.bytes, &end, 10);

    if (head->is_chunked)
        return 0;
    if (value.len == 0 || end != value.bytes + value.len)
        return kinf__error_set(err, KINF_ERR_NETWORK, "the answer's length is no number");
    if (told < 0 || (head->body_len >= 0 && head->body_len != told))
        return kinf__error_set(err, KINF_ERR_NETWORK, "the answer's length is told in two ways");
    head->body_len = told;
    return 0;
}

static int take_header(struct kinf__head *head, struct kinf_str line, const char *colon,
                       struct kinf_error *err)
{
    struct kinf_str name = { line.bytes, (size_t)(colon - line.bytes) };
    struct kinf_str value = trim((struct kinf_str){ colon + 1, line.len - name.len - 1 });

    if (is_named(name, "Content-Length"))
        return take_length(head, value, err);
    if (!is_named(name, "Transfer-Encoding"))
        return add(head, name, value, err);
    head->is_chunked = true;
    head->body_len = KINF__CHUNKED;
    return 0;
}

static void begin(struct kinf__head *head, struct kinf_str line)
{
    const char *space = memchr(line.bytes, ' ', line.len);

    forget(head);
    head->code = space != NULL ? (int)strtol(space + 1, NULL, 10) : 0;
}

int kinf__head_take(struct kinf__head *head, struct kinf_str line, struct kinf_error *err)
{
    const char *colon;

    if (head->is_complete)
        return 0;
    if (line.len >= 5 && memcmp(line.bytes, "HTTP/", 5) == 0) {
        begin(head, line);
        return 0;
    }
    if (trim(line).len == 0) {
        head->is_complete = head->code >= 200;
        return 0;
    }
    colon = memchr(line.bytes, ':', line.len);
    return colon != NULL ? take_header(head, line, colon, err) : 0;
}

const char *kinf__head_value(const struct kinf__head *head, const char *name)
{
    for (size_t i = 0; i < head->n_headers; i++) {
        if (strcasecmp(head->headers[i].name, name) == 0)
            return head->headers[i].value;
    }
    return "";
}

uint32_t kinf__head_retry_after_ms(const struct kinf__head *head)
{
    const char *value = kinf__head_value(head, "Retry-After");
    uint32_t seconds = 0;

    for (; *value != '\0'; value++) {
        if (*value < '0' || *value > '9')
            return 0;
        seconds = seconds * 10 + (uint32_t)(*value - '0');
        if (seconds > RETRY_AFTER_MAX_S)
            seconds = RETRY_AFTER_MAX_S;
    }
    return seconds * 1000;
}
