/*
 * Reading a head suspiciously. Neighbours: mhd_request.c has it from libmicrohttpd 0.9.75, which takes
 * almost everything, and of whose own strictness the levels are of no use: above 0 it closes without
 * an answer, below it looks for blanks in names alone.
 */
#include "serve/request_head.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char bad[] = "400 Bad Request";

/* --- bytes --- */

/* Whether `next` begins the line behind the one that ends here. */
static bool is_next_line(const char *next, const char *end)
{
    return next == end + sizeof "\n" - 1 || next == end + sizeof "\r\n" - 1;
}

static bool is_whole(const struct kinf__raw_head *head)
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

static int check_framing(const struct kinf__raw_head *head, const char **ret_why)
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

int kinf__raw_head_check(const struct kinf__raw_head *head, const char **ret_why)
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

/* --- what is asked for --- */

static bool begins_with(const char *text, const char *prefix)
{
    return strncasecmp(text, prefix, strlen(prefix)) == 0;
}

/* By upstream's bearertoken.Authenticator: behind one blank, up to the next one. */
static struct kinf_str bearer_token(const char *authorization)
{
    static const char scheme[] = "Bearer ";
    const char *token = authorization + sizeof scheme - 1;

    if (!begins_with(authorization, scheme))
        return (struct kinf_str){ NULL, 0 };
    return (struct kinf_str){ token, strcspn(token, " ") };
}

static void read_credential(const char *value, struct kinf__request_head *head)
{
    head->has_two_credentials = head->has_two_credentials || head->has_credential;
    head->has_credential = true;
    head->token = bearer_token(value);
}

/* Websockets of browsers have no headers of their own. By upstream's websocket.ProtocolAuthenticator
 * it is one of the protocols, in another code, as which it is good for telling callers apart. */
static void read_protocols(const char *value, struct kinf__request_head *head)
{
    static const char mark[] = "base64url.bearer.authorization.k8s.io.";
    const char *found = strstr(value, mark);

    if (found == NULL)
        return;
    head->has_two_credentials = head->has_two_credentials || head->has_credential;
    head->has_credential = true;
    head->token = (struct kinf_str){ found, strcspn(found, ", \t") };
}

/* HTTP/2 is offered by many, and need not be taken. */
static bool is_upgrade(const char *value)
{
    return *value != '\0' && !begins_with(value, "h2c");
}

static void take_text(const char **place, const char *value)
{
    if (*place == NULL)
        *place = value;
}

/* One coding of a list, with its parameters. One of no weight is one that is not to be. */
static bool is_gzip(const char *coding, size_t len)
{
    const char *weight = memchr(coding, ';', len);
    size_t name_len = weight != NULL ? (size_t)(weight - coding) : len;

    while (name_len > 0 && (coding[name_len - 1] == ' ' || coding[name_len - 1] == '\t'))
        name_len--;
    if (name_len != 4 || strncasecmp(coding, "gzip", 4) != 0)
        return false;
    while (weight != NULL && weight < coding + len && strchr("; \tqQ=", *weight) != NULL)
        weight++;
    return weight == NULL || weight == coding + len ||
           strspn(weight, "0. \t") < (size_t)(coding + len - weight);
}

static bool names_gzip(const char *value)
{
    while (*value != '\0') {
        size_t len;

        value += strspn(value, ", \t");
        len = strcspn(value, ",");
        if (is_gzip(value, len))
            return true;
        value += len;
    }
    return false;
}

/* Of what is there once, the first counts. */
static void read_header(const struct kinf__header *header, struct kinf__request_head *head)
{
    const char *name = header->name, *value = header->value;

    if (strcasecmp(name, "Accept") == 0)
        take_text(&head->accept, value);
    else if (strcasecmp(name, "Accept-Encoding") == 0)
        head->takes_gzip = head->takes_gzip || names_gzip(value);
    else if (strcasecmp(name, "If-None-Match") == 0)
        take_text(&head->if_none_match, value);
    else if (strcasecmp(name, "User-Agent") == 0)
        take_text(&head->user_agent, value);
    else if (strcasecmp(name, "Expect") == 0)
        head->expects = true;
    else if (strcasecmp(name, "Upgrade") == 0)
        head->is_upgrade = head->is_upgrade || is_upgrade(value);
    else if (strcasecmp(name, "Content-Length") == 0)
        head->body_len = strtoll(value, NULL, 10);
    else if (strcasecmp(name, "Transfer-Encoding") == 0)
        head->body_len = KINF__CHUNKED;
    else if (strcasecmp(name, "Authorization") == 0)
        read_credential(value, head);
    else if (begins_with(name, "Impersonate-"))
        head->is_impersonated = true;
}

struct kinf__request_head kinf__request_head_of(const char *method, struct kinf_str target,
                                                const struct kinf__header *headers,
                                                size_t n_headers)
{
    struct kinf__request_head head = {
        .method = method, .target = target, .headers = headers, .n_headers = n_headers
    };

    for (size_t i = 0; i < n_headers; i++)
        read_header(&headers[i], &head);
    for (size_t i = 0; head.is_upgrade && i < n_headers; i++) {
        if (strcasecmp(headers[i].name, "Sec-WebSocket-Protocol") == 0)
            read_protocols(headers[i].value, &head);
    }
    if (head.user_agent == NULL)
        head.user_agent = "";
    return head;
}

const char *kinf__request_head_value(const struct kinf__request_head *head, const char *name)
{
    for (size_t i = 0; i < head->n_headers; i++) {
        if (strcasecmp(head->headers[i].name, name) == 0)
            return head->headers[i].value;
    }
    return NULL;
}
