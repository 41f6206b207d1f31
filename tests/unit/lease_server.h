/*
 * A server with one Lease, for the state machines of electors.
 */
#ifndef KINF_TESTS_LEASE_SERVER_H
#define KINF_TESTS_LEASE_SERVER_H

#include "elector/election.h"

struct lease_server {
    char text[4096]; /* "": there is none */
    unsigned version, uid;
    char calls[256]; /* "get create update..." */
};

/* Stores it under the next version, which stands first in its metadata; behind it the uid, which is
 * another one if there was no Lease. */
void lease_server_put(struct lease_server *server, const char *text);

/* What the server does with a request, but for LIST; its answer is server->text. */
int lease_server_answer(struct lease_server *server, enum kinf__election_verb verb,
                        const char *body);

/* Adds the verb to `calls`. */
void lease_server_note(struct lease_server *server, enum kinf__election_verb verb);

#endif
