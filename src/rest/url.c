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

static int append_byte(struct kinf__buffer *target, char byte, bool as_it_is)
{
    return as_it_is ? kinf__buffer_append(target, &byte, 1)
                    : kinf__buffer_printf(target, "%%%02X", (unsigned char)byte);
}

int kinf__url_append_version(struct kinf__buffer *target, const char *group, const char *version)
{
    return *group == '\0' ? kinf__buffer_printf(target, "/api/%s", version)
                          : kinf__buffer_printf(target, "/apis/%s/%s", group, version);
}

int kinf__url_append_resource(struct kinf__buffer *target, const struct kinf_type *type,
                              const char *name_space)
{
    int failed = kinf__url_append_version(target, type->group, type->version);

    if (failed == 0 && name_space != NULL && *name_space != '\0') {
        failed = kinf__buffer_append_str(target, KINF_STR("/namespaces"));
        if (failed == 0)
            failed = kinf__url_append_segment(target, name_space);
    }
    return failed < 0 ? failed : kinf__buffer_printf(target, "/%s", type->resource);
}

/* "." and ".." are escaped too: a library or a proxy would take a segment away. */
int kinf__url_append_segment(struct kinf__buffer *target, const char *segment)
{
    bool is_dots = strcmp(segment, ".") == 0 || strcmp(segment, "..") == 0;
    int failed = kinf__buffer_append(target, "/", 1);

    for (; failed == 0 && *segment != '\0'; segment++)
        failed = append_byte(target, *segment, !is_dots && is_unreserved(*segment));
    return failed;
}

int kinf__url_append_query(struct kinf__buffer *target, const char *name, const char *value)
{
    bool is_first = target->len == 0 || memchr(target->bytes, '?', target->len) == NULL;
    int failed = kinf__buffer_printf(target, "%c%s=", is_first ? '?' : '&', name);

    for (; failed == 0 && *value != '\0'; value++)
        failed = append_byte(target, *value, is_unreserved(*value));
    return failed;
}
