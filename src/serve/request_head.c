/*
 * Reading a head suspiciously. Neighbours: transfer.c has it from libmicrohttpd 0.9.75, which takes
 * almost everything, and of whose own strictness the levels are of no use: above 0 it closes without
 * an answer, below it looks for blanks in names alone.
 */
#include "serve/request_head.h"

#include <stdbool.h>
#include <strings.h>

static const char bad[] = "400 Bad Request";

/* --- bytes --- */

/* Whether `next` begins the line behind the one that ends here. */
static bool is_next_line(const char *next, const char *end)
{
    return next == end + sizeof "\n" - 1 || next == end + sizeof "\r\n" - 1;
}

static bool is_whole(const struct kinf__request_head *head)
{
    const char *end = head->version + strlen(head->version);
    size_t rest;

    if (head->target_at != head->method + strlen(head->method) + 1 ||
        head->version != head->target_at + strlen(head->target) + 1)
        return false;
    for (size_t i = 0; i < head->n_headers; i++) {
        const struct kinf__header *one = &head->headers[i];

        if (!is_next_line(one->name, end) || one->value <= one->name + strlen(one->name))
            return false;
        end = one->value + strlen(one->value);
    }
    rest = head->size - (size_t)(end - head->method);
    return rest >= sizeof "\n\n" - 1 && rest <= sizeof "\r\n\r\n" - 1;
}

static bool is_token(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "!#$%&'*+-.^_`|~";

    return *text != '\0' && text[strspn(text, allowed)] == '\0';
}

/* Whether there is no control character in it; `blank` is allowed. */
static bool is_text(const char *text, char blank)
{
    for (; *text != '\0'; text++) {
        if (((unsigned char)*text < ' ' || *text == 0x7f) && *text != blank)
            return false;
    }
    return true;
}

/* --- what the headers say --- */

static bool is_host(const char *value)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "!$%&()*+,-.:;=[']_~";

    return value[strspn(value, allowed)] == '\0';
}

static int refuse(const char *why, const char **ret_why)
{
    *ret_why = why;
    return 400;
}

static int check_framing(const struct kinf__request_head *head, const char **ret_why)
{
    size_t n_hosts = 0, n_lengths = 0, n_codings = 0;

    for (size_t i = 0; i < head->n_headers; i++) {
        const char *name = head->headers[i].name, *value = head->headers[i].value;

        if (strcasecmp(name, "Host") == 0) {
            n_hosts++;
            if (!is_host(value))
                return refuse("400 Bad Request: malformed Host header", ret_why);
        }
        n_lengths += strcasecmp(name, "Content-Length") == 0;
        if (strcasecmp(name, "Transfer-Encoding") == 0 &&
            (++n_codings > 1 || strcasecmp(value, "chunked") != 0)) {
            *ret_why = "Unsupported transfer encoding";
            return 501;
        }
    }
    if (n_hosts == 0 && strcmp(head->version, "HTTP/1.0") != 0)
        return refuse("400 Bad Request: missing required Host header", ret_why);
    if (n_hosts > 1)
        return refuse("400 Bad Request: too many Host headers", ret_why);
    return n_lengths + n_codings > 1 ? refuse("400 Bad Request: two lengths", ret_why) : 0;
}

int kinf__request_head_check(const struct kinf__request_head *head, const char **ret_why)
{
    if ((head->size != 0 && !is_whole(head)) || !is_token(head->method) ||
        !is_text(head->target, '\0') || strchr(head->target, ' ') != NULL)
        return refuse(bad, ret_why);
    for (size_t i = 0; i < head->n_headers; i++) {
        if (!is_token(head->headers[i].name))
            return refuse("400 Bad Request: invalid header name", ret_why);
        if (!is_text(head->headers[i].value, '\t'))
            return refuse(bad, ret_why);
    }
    return check_framing(head, ret_why);
}

struct kinf_str kinf__request_head_bearer_token(const char *authorization)
{
    static const char scheme[] = "Bearer ";
    const char *token;

    if (authorization == NULL || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return (struct kinf_str){ NULL, 0 };
    token = authorization + sizeof scheme - 1;
    return (struct kinf_str){ token, strcspn(token, " ") };
}
