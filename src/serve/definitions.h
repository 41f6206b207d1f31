/*
 * Asking the upstream how custom resources are shown.
 *
 * Threads: one thread at a time.
 */
#ifndef KINF_SERVE_DEFINITIONS_H
#define KINF_SERVE_DEFINITIONS_H

#include <kinformer/client.h>

#include "serve/server.h"

/* Gives each source of a custom resource the columns of its definition; those whose definition
 * cannot be read keep what they have, at first NAME and AGE. Blocks for a request each. */
void kinf__definitions_fetch(struct kinf__server *server, struct kinf_client *client);

/* The same, of a definition that is at hand. Any thread. Errors: KINF_ERR_PARSE,
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__definitions_take(struct kinf__server *server,
                                           const struct kinf_type *type,
                                           struct kinf_str definition);

/* How many watches the informers of sources with a definition have begun. Any thread. */
uint64_t kinf__definitions_watches(struct kinf__server *server);

#endif
