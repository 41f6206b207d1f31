/*
 * What the upstream server has: its groups, versions and resources. Says which paths mean
 * something, and how resources are spelled in discovery documents.
 *
 * Threads: any thread; constant once fetched.
 */
#ifndef KINF_SERVE_CATALOG_H
#define KINF_SERVE_CATALOG_H

#include <kinformer/client.h>
#include <kinformer/type.h>

#include "base/buffer.h"
#include "rest/discovery.h"

struct kinf__catalog;

struct kinf__catalog_entry {
    char *group; /* of the path */
    char *version;
    struct kinf__discovery_resource resource;
    /* Another server's: told are the verbs of a cache, and no subresources. */
    bool is_upstream;
    /* Of what it answers with, if that is of another group: "autoscaling" and "v1" of
     * deployments/scale; NULL: its own. */
    char *answer_group;
    char *answer_version;
};

/* Asks the server, if the client has not done so within some seconds. Blocks as
 * kinf_client_find_type() does, and has its errors. A version that does not answer is left out. */
KINF_MUST_CHECK int kinf__catalog_fetch(struct kinf_client *client,
                                        struct kinf__catalog **ret_catalog, struct kinf_error *err);
void kinf__catalog_free(struct kinf__catalog *catalog); /* NULL is allowed */

/* What did not answer, as it was before: it is away, and not gone. Without memory it is left out. */
void kinf__catalog_keep_away(struct kinf__catalog *catalog, const struct kinf__catalog *before);

KINF_MUST_CHECK int kinf__catalog_new(struct kinf__catalog **ret_catalog);
/* Adds one entry, whose texts are copied, and tells its verbs as they are; what else it may be called
 * may be NULL. Errors: KINF_ERR_NO_MEMORY, nothing is added. */
KINF_MUST_CHECK int kinf__catalog_add(struct kinf__catalog *catalog,
                                      const struct kinf__catalog_entry *entry);
/* What /version answers: JSON. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__catalog_set_version(struct kinf__catalog *catalog, const char *json);

bool kinf__catalog_has_group(const struct kinf__catalog *catalog, const char *group);
/* `name` as in the entry; NULL if there is none. */
const struct kinf__catalog_entry *kinf__catalog_find(const struct kinf__catalog *catalog,
                                                     const char *group, const char *version,
                                                     const char *name);
/* The server's own answer to /version, marked; "" if it gave none. */
const char *kinf__catalog_version(const struct kinf__catalog *catalog);

/*
 * Discovery documents of the types that a server has sources of; its lock is held, and it has a
 * catalog. Verbs are get, list and watch. Each returns 0, KINF_ERR_NOT_FOUND (no type of this group
 * or version is served) or KINF_ERR_NO_MEMORY, with which what was appended is to be thrown away.
 */
struct kinf__server;

/* Whether it lacks a type that a source has from the server right now: the server did not serve it
 * when it was asked what it has. Takes the lock. */
bool kinf__catalog_is_outdated(struct kinf__server *server);

KINF_MUST_CHECK int kinf__catalog_write_groups(const struct kinf__server *server,
                                               struct kinf__buffer *out);
KINF_MUST_CHECK int kinf__catalog_write_group(const struct kinf__server *server, const char *group,
                                              struct kinf__buffer *out);
KINF_MUST_CHECK int kinf__catalog_write_resources(const struct kinf__server *server,
                                                  const char *group, const char *version,
                                                  struct kinf__buffer *out);
/* Aggregated, v2: the core group (`is_core`), or all others. */
KINF_MUST_CHECK int kinf__catalog_write_aggregated(const struct kinf__server *server, bool is_core,
                                                   struct kinf__buffer *out);

#endif
