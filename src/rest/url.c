/*
 * Building request targets. Neighbours: reflector and discovery.
 */
#include "rest/url.h"

#include <string.h>

/* RFC 3986's unreserved bytes; everything else is written as %XX. */
static bool is_unreserved(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || (byte != '\0' && strchr("-._~", byte) != NULL);
}

static int append_escaped(struct kinf__buffer *target, const char *text)
{
    int failed = 0;

    for (; failed == 0 && *text != '\0'; text++) {
        if (is_unreserved(*text))
            failed = kinf__buffer_append(target, text, 1);
        else
            failed = kinf__buffer_printf(target, "%%%02X", (unsigned char)*text);
    }
    return failed;
}

bool kinf__url_is_segment(const char *text)
{
    return *text != '\0' && strcmp(text, ".") != 0 && strcmp(text, "..") != 0 &&
           strpbrk(text, "/%") == NULL;
}

int kinf__url_append_resource(struct kinf__buffer *target, const struct kinf_type *type,
                              const char *name_space)
{
    bool is_scoped = name_space != NULL && *name_space != '\0';
    int failed;

    if (is_scoped && !kinf__url_is_segment(name_space))
        return KINF_ERR_INVALID;
    if (*type->group == '\0')
        failed = kinf__buffer_printf(target, "/api/%s", type->version);
    else
        failed = kinf__buffer_printf(target, "/apis/%s/%s", type->group, type->version);
    if (failed == 0 && is_scoped) {
        failed = kinf__buffer_printf(target, "/namespaces/");
        if (failed == 0)
            failed = append_escaped(target, name_space);
    }
    return failed < 0 ? failed : kinf__buffer_printf(target, "/%s", type->resource);
}

int kinf__url_append_query(struct kinf__buffer *target, const char *name, const char *value)
{
    bool is_first = target->len == 0 || memchr(target->bytes, '?', target->len) == NULL;
    int failed = kinf__buffer_printf(target, "%c%s=", is_first ? '?' : '&', name);

    return failed < 0 ? failed : append_escaped(target, value);
}
