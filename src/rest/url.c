/*
 * Building request targets. Neighbours: reflector and discovery.
 */
#include "rest/url.h"

#include <string.h>

int kinf__url_append_resource(struct kinf__buffer *target, const struct kinf_type *type,
                              const char *name_space)
{
    int failed;

    if (*type->group == '\0')
        failed = kinf__buffer_printf(target, "/api/%s", type->version);
    else
        failed = kinf__buffer_printf(target, "/apis/%s/%s", type->group, type->version);
    if (failed == 0 && name_space != NULL && *name_space != '\0')
        failed = kinf__buffer_printf(target, "/namespaces/%s", name_space);
    return failed < 0 ? failed : kinf__buffer_printf(target, "/%s", type->resource);
}

/* RFC 3986's unreserved bytes; everything else is written as %XX. */
static bool is_unreserved(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || (byte != '\0' && strchr("-._~", byte) != NULL);
}

int kinf__url_append_query(struct kinf__buffer *target, const char *name, const char *value)
{
    bool is_first = target->len == 0 || memchr(target->bytes, '?', target->len) == NULL;
    int failed = kinf__buffer_printf(target, "%c%s=", is_first ? '?' : '&', name);

    for (; failed == 0 && *value != '\0'; value++) {
        if (is_unreserved(*value))
            failed = kinf__buffer_append(target, value, 1);
        else
            failed = kinf__buffer_printf(target, "%%%02X", (unsigned char)*value);
    }
    return failed;
}
