/*
 * Answers as they are on the wire (RFC 9112, 6 and 7). Neighbours: head.h takes the lines of heads,
 * transport.c has the bytes.
 */
#include "rest/framing.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define HEAD_MAX       (256u << 10) /* bytes, of heads and trailers; curl's own limit is like this */
#define SIZE_LINE_MAX  1024
#define MAX_HEX_DIGITS 15 /* that a count holds */

void kinf__framing_release(struct kinf__framing *framing)
{
    kinf__buffer_release(&framing->line);
}

static int refuse(const char *why, struct kinf_error *err)
{
    return kinf__error_set(err, KINF_ERR_NETWORK, "%s", why);
}

static void begin_body(struct kinf__framing *framing, const struct kinf__head *head)
{
    if (head->code == 101)
        framing->state = KINF__FRAMING_ENDLESS;
    else if (head->code == 204 || head->code == 304 || head->body_len == 0)
        framing->state = KINF__FRAMING_OVER;
    else if (head->is_chunked)
        framing->state = KINF__FRAMING_SIZE;
    else
        framing->state = head->body_len > 0 ? KINF__FRAMING_SIZED : KINF__FRAMING_ENDLESS;
    framing->left = head->body_len;
}

/* Behind the head of a 100 there is another one. */
static int take_head_line(struct kinf__framing *framing, struct kinf__head *head,
                          struct kinf_str line, struct kinf_error *err)
{
    bool is_empty = strspn(line.bytes, "\r\n") == line.len;
    int failed;

    if (head->code == 0 && strncmp(line.bytes, "HTTP/1.", 7) != 0)
        return refuse("this is no answer of HTTP/1.1", err);
    failed = kinf__head_take(head, line, err);
    if (failed < 0 || !is_empty)
        return failed;
    if (head->code < 100)
        return refuse("the answer has no status", err);
    head->is_complete = head->is_complete || head->code == 101;
    if (head->is_complete)
        begin_body(framing, head);
    return 0;
}

static int take_size(struct kinf__framing *framing, const char *line, struct kinf_error *err)
{
    size_t n_digits = strspn(line, "0123456789abcdefABCDEF");

    if (n_digits == 0 || n_digits > MAX_HEX_DIGITS || strchr(" \t;\r\n", line[n_digits]) == NULL)
        return refuse("a chunk of the answer has no size", err);
    framing->left = strtoll(line, NULL, 16);
    framing->state = framing->left != 0 ? KINF__FRAMING_CHUNK : KINF__FRAMING_TRAILER;
    return 0;
}

static int take_line(struct kinf__framing *framing, struct kinf__head *head, struct kinf_str line,
                     struct kinf_error *err)
{
    bool is_empty = strspn(line.bytes, "\r\n") == line.len;

    switch (framing->state) {
    case KINF__FRAMING_HEAD:
        return take_head_line(framing, head, line, err);
    case KINF__FRAMING_SIZE:
        return take_size(framing, line.bytes, err);
    case KINF__FRAMING_CHUNK_END:
        framing->state = KINF__FRAMING_SIZE;
        return is_empty ? 0 : refuse("a chunk of the answer is longer than its size", err);
    default:
        if (is_empty)
            framing->state = KINF__FRAMING_OVER;
        return 0;
    }
}

static bool is_counted(const struct kinf__framing *framing)
{
    return framing->state == KINF__FRAMING_SIZED || framing->state == KINF__FRAMING_CHUNK;
}

/* What comes behind the end is nobody's. */
static void take_body(struct kinf__framing *framing, struct kinf_str *bytes,
                      struct kinf_str *ret_body)
{
    size_t len = bytes->len;

    if (is_counted(framing) && (uint64_t)framing->left < len)
        len = (size_t)framing->left;
    if (framing->state != KINF__FRAMING_OVER)
        *ret_body = (struct kinf_str){ bytes->bytes, len };
    bytes->bytes += len;
    bytes->len -= len;
    if (!is_counted(framing))
        return;
    framing->left -= (int64_t)len;
    if (framing->left == 0)
        framing->state =
            framing->state == KINF__FRAMING_CHUNK ? KINF__FRAMING_CHUNK_END : KINF__FRAMING_OVER;
}

/* Lines of chunks are short, and there is no end to them. */
static bool is_too_long(struct kinf__framing *framing, size_t len)
{
    if (framing->state == KINF__FRAMING_SIZE || framing->state == KINF__FRAMING_CHUNK_END)
        return framing->line.len + len > SIZE_LINE_MAX;
    framing->n_head += len;
    return framing->n_head > HEAD_MAX;
}

int kinf__framing_take(struct kinf__framing *framing, struct kinf__head *head,
                       struct kinf_str *bytes, struct kinf_str *ret_body, struct kinf_error *err)
{
    const char *end = memchr(bytes->bytes, '\n', bytes->len);
    size_t len = end != NULL ? (size_t)(end + 1 - bytes->bytes) : bytes->len;
    const char *text;
    int failed;

    *ret_body = (struct kinf_str){ "", 0 };
    if (is_counted(framing) || framing->state == KINF__FRAMING_ENDLESS ||
        framing->state == KINF__FRAMING_OVER) {
        take_body(framing, bytes, ret_body);
        return 0;
    }
    if (is_too_long(framing, len))
        return refuse("a line of the answer does not end", err);
    if (kinf__buffer_append(&framing->line, bytes->bytes, len) < 0 ||
        (text = kinf__buffer_cstr(&framing->line)) == NULL)
        return kinf__error_no_memory(err);
    bytes->bytes += len;
    bytes->len -= len;
    if (end == NULL)
        return 0;
    failed = take_line(framing, head, (struct kinf_str){ text, framing->line.len }, err);
    framing->line.len = 0;
    return failed;
}

bool kinf__framing_may_end(const struct kinf__framing *framing)
{
    return framing->state == KINF__FRAMING_ENDLESS || framing->state == KINF__FRAMING_OVER;
}
