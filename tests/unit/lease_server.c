#include "unit/lease_server.h"

#include <stdio.h>
#include <string.h>

#include "unit/test.h"

static const char *skip_member(const char *text, const char *key)
{
    return strncmp(text, key, strlen(key)) == 0 ? strchr(text, ',') + 1 : text;
}

void lease_server_put(struct lease_server *server, const char *text)
{
    const char *metadata = strstr(text, "\"metadata\":{"), *rest;
    char stored[sizeof server->text];

    assert_non_null(metadata);
    metadata += strlen("\"metadata\":{");
    rest = skip_member(skip_member(metadata, "\"resourceVersion\""), "\"uid\"");
    server->version++;
    if (server->text[0] == '\0')
        server->uid = server->version;
    snprintf(stored, sizeof stored, "%.*s\"resourceVersion\":\"%u\",\"uid\":\"%u\",%s",
             (int)(metadata - text), text, server->version, server->uid, rest);
    memcpy(server->text, stored, sizeof stored);
}

static bool has_newest_version(const struct lease_server *server, const char *body)
{
    char version[64];

    snprintf(version, sizeof version, "\"resourceVersion\":\"%u\"", server->version);
    return strstr(body, version) != NULL;
}

int lease_server_answer(struct lease_server *server, enum kinf__election_verb verb,
                        const char *body)
{
    bool is_there = server->text[0] != '\0';

    switch (verb) {
    case KINF__ELECTION_GET:
        return is_there ? 0 : KINF_ERR_NOT_FOUND;
    case KINF__ELECTION_CREATE:
        if (is_there)
            return KINF_ERR_EXISTS;
        break;
    default:
        if (!is_there)
            return KINF_ERR_NOT_FOUND;
        if (!has_newest_version(server, body))
            return KINF_ERR_CONFLICT;
    }
    lease_server_put(server, body);
    return 0;
}

void lease_server_note(struct lease_server *server, enum kinf__election_verb verb)
{
    static const char *const names[] = { "wait", "get", "list", "create", "update", "done" };
    size_t len = strlen(server->calls);

    snprintf(server->calls + len, sizeof server->calls - len, "%s%s", len != 0 ? " " : "",
             names[verb]);
}
