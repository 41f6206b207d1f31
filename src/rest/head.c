/*
 * Lines of heads. Neighbours: http.c wants a few of them, forward_curl.c hands them on.
 */
#include "rest/head.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define RETRY_AFTER_MAX_S 3600

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

bool kinf__head_is_status(struct kinf_str line, int *ret_code)
{
    const char *space;

    if (line.len < 5 || memcmp(line.bytes, "HTTP/", 5) != 0)
        return false;
    space = memchr(line.bytes, ' ', line.len);
    *ret_code = space != NULL ? (int)strtol(space + 1, NULL, 10) : 0;
    return true;
}

bool kinf__head_is_end(struct kinf_str line)
{
    return trim(line).len == 0;
}

bool kinf__head_split(struct kinf_str line, struct kinf_str *ret_name, struct kinf_str *ret_value)
{
    const char *colon = line.len != 0 ? memchr(line.bytes, ':', line.len) : NULL;
    size_t name_len = colon != NULL ? (size_t)(colon - line.bytes) : 0;

    if (colon == NULL)
        return false;
    *ret_name = (struct kinf_str){ line.bytes, name_len };
    *ret_value = trim((struct kinf_str){ colon + 1, line.len - name_len - 1 });
    return true;
}

bool kinf__head_is_named(struct kinf_str name, const char *other)
{
    return name.len == strlen(other) && strncasecmp(name.bytes, other, name.len) == 0;
}

uint32_t kinf__head_retry_after_ms(struct kinf_str value)
{
    uint32_t seconds = 0;

    for (size_t i = 0; i < value.len; i++) {
        if (value.bytes[i] < '0' || value.bytes[i] > '9' || seconds > RETRY_AFTER_MAX_S)
            return 0;
        seconds = seconds * 10 + (uint32_t)(value.bytes[i] - '0');
    }
    return (seconds < RETRY_AFTER_MAX_S ? seconds : RETRY_AFTER_MAX_S) * 1000;
}
