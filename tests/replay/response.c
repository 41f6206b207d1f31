/*
 * Responses. Neighbours: script.c, recording.c and generate.c make them, connection.c plays them.
 * Invariant: every SEND lies within wire.
 */
#include "replay/response.h"

#include <string.h>

void replay__response_release(struct replay__response *response)
{
    kinf__buffer_release(&response->wire);
    free(response->actions);
    response->actions = NULL;
    response->n_actions = 0;
}

int replay__response_add(struct replay__response *response, struct replay__action action)
{
    struct replay__action *actions =
        realloc(response->actions, (response->n_actions + 1) * sizeof *actions);

    if (actions == NULL)
        return KINF_ERR_NO_MEMORY;
    response->actions = actions;
    actions[response->n_actions++] = action;
    return 0;
}

int replay__response_send_wire(struct replay__response *response, size_t start)
{
    const struct replay__action action = { .type = REPLAY__SEND,
                                           .start = start,
                                           .len = response->wire.len - start };

    return action.len != 0 ? replay__response_add(response, action) : 0;
}

int replay__response_send(struct replay__response *response, struct kinf_str bytes)
{
    size_t start = response->wire.len;

    if (kinf__buffer_append_str(&response->wire, bytes) < 0)
        return KINF_ERR_NO_MEMORY;
    return replay__response_send_wire(response, start);
}

int replay__response_send_chunk(struct replay__response *response, struct kinf_str bytes)
{
    size_t start = response->wire.len;

    if (bytes.len == 0)
        return 0;
    if (kinf__buffer_printf(&response->wire, "%zx\r\n", bytes.len) < 0 ||
        kinf__buffer_append_str(&response->wire, bytes) < 0 ||
        kinf__buffer_append_str(&response->wire, KINF_STR("\r\n")) < 0)
        return KINF_ERR_NO_MEMORY;
    return replay__response_send_wire(response, start);
}

static const char *usual_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } known[] = {
        { 200, "OK" },
        { 400, "Bad Request" },
        { 401, "Unauthorized" },
        { 403, "Forbidden" },
        { 404, "Not Found" },
        { 406, "Not Acceptable" },
        { 410, "Gone" },
        { 422, "Unprocessable Entity" },
        { 429, "Too Many Requests" },
        { 500, "Internal Server Error" },
        { 503, "Service Unavailable" },
        { 504, "Gateway Timeout" },
    };

    for (size_t i = 0; i < KINF__ARRAY_LEN(known); i++) {
        if (known[i].status == status)
            return known[i].reason;
    }
    return "Unknown";
}

int replay__append_status_line(struct kinf__buffer *wire, int status, const char *reason)
{
    return kinf__buffer_printf(wire, "HTTP/1.1 %d %s\r\n", status,
                               *reason != '\0' ? reason : usual_reason(status));
}

static int append_escaped(struct kinf__buffer *text, const char *message)
{
    for (; *message != '\0'; message++) {
        unsigned char byte = (unsigned char)*message;

        if ((byte < 0x20                   ? kinf__buffer_printf(text, "\\u%04x", byte)
             : byte == '"' || byte == '\\' ? kinf__buffer_printf(text, "\\%c", byte)
                                           : kinf__buffer_append(text, message, 1)) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

int replay__append_status_object(struct kinf__buffer *text, int code, const char *reason,
                                 const char *message)
{
    if (kinf__buffer_append_str(text, KINF_STR("{\"kind\":\"Status\",\"apiVersion\":\"v1\","
                                               "\"metadata\":{},\"status\":\"Failure\","
                                               "\"message\":\"")) < 0 ||
        append_escaped(text, message) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_printf(text, "\",\"reason\":\"%s\",\"code\":%d}", reason, code);
}
