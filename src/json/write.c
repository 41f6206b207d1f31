/*
 * Texts as JSON strings. Neighbours: those who make small documents.
 */
#include "json/write.h"

int kinf__json_append_string(struct kinf__buffer *json, const char *text)
{
    if (kinf__buffer_append(json, "\"", 1) < 0)
        return KINF_ERR_NO_MEMORY;
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        int failed = c == '"' || c == '\\' ? kinf__buffer_printf(json, "\\%c", c)
                     : c < 0x20            ? kinf__buffer_printf(json, "\\u%04x", c)
                                           : kinf__buffer_append(json, text, 1);

        if (failed < 0)
            return failed;
    }
    return kinf__buffer_append(json, "\"", 1);
}
