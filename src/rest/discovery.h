/*
 * Discovery: which resources a server has, and how they are spelled. One table of what it said,
 * whichever way it said it:
 *
 * - aggregated (APIGroupDiscoveryList, servers since 1.26): all in two answers, to /api and /apis;
 * - legacy: /apis lists groups and versions, whose resources are asked for one by one when a search
 *   comes to them.
 *
 * Groups, versions and resources without a name are passed over, and so is what has another shape
 * than it should. What could not be asked for is not in the table: the next search asks again.
 *
 * Threads: one thread per object; a source belongs to one.
 */
#ifndef KINF_REST_DISCOVERY_H
#define KINF_REST_DISCOVERY_H

#include <stdbool.h>
#include <stddef.h>

#include <kinformer/error.h>
#include <kinformer/type.h>

#include "base/buffer.h"

/* Texts are never NULL: "" is what was not said. */
struct kinf__discovery_resource {
    char *name; /* "pods", "pods/log" */
    char *singular;
    char *kind;
    char *short_names; /* separated by commas */
    char *categories;  /* likewise */
    char *verbs;       /* likewise */
    bool namespaced;
};

/* Whether `word` is one of those that commas separate. */
bool kinf__has_word(const char *words, const char *word);

enum kinf__discovery_state {
    KINF__DISCOVERY_LISTED, /* its resources are not asked for yet */
    KINF__DISCOVERY_READ,
    KINF__DISCOVERY_AWAY, /* the server that has it does not answer */
};

struct kinf__discovery_version {
    char *group; /* "": the core group */
    char *name;
    enum kinf__discovery_state state;
    struct kinf__discovery_resource *resources;
    size_t n_resources;
};

/* All versions of all groups, in the server's order, of each group the preferred one first. */
struct kinf__discovery {
    struct kinf__discovery_version *versions;
    size_t n_versions;
    bool has_core, has_groups; /* it was asked what is below /api, and below /apis */
};
#define KINF__DISCOVERY_INIT                                                                       \
    {                                                                                              \
        NULL, 0, false, false                                                                      \
    }

void kinf__discovery_release(struct kinf__discovery *table);

/* Where answers come from: a server, or a test's documents. */
struct kinf__discovery_source {
    /* Appends the answer; `accept` NULL: JSON. */
    int (*ask)(void *ctx, const char *target, const char *accept, struct kinf__buffer *answer,
               struct kinf_error *err);
    void *ctx;
    const char *host; /* for messages */
};

/* Finds a resource by kubectl's spelling, asking for what is not in the table yet. Errors: as
 * kinf_client_find_type(). */
KINF_MUST_CHECK int kinf__discovery_find(struct kinf__discovery *table,
                                         const struct kinf__discovery_source *source,
                                         const char *resource, const struct kinf_type **ret_type,
                                         struct kinf_error *err);

/* Asks for all that is not in the table yet. A version whose server does not answer, or not with a
 * list, or refuses, stays without resources. Errors: those of asking; KINF_ERR_PROTOCOL (no
 * discovery at all), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__discovery_read_all(struct kinf__discovery *table,
                                             const struct kinf__discovery_source *source,
                                             struct kinf_error *err);

/* Whether the server has a resource at all, asked anew in the legacy form, which is the shorter one.
 *
 * A 404 alone does not tell: a proxy that lost its way says 404 to everything, and so does a server
 * whose custom resources are being set up. A resource is gone when the server still lists its API
 * groups and the resource's version is not among them, or lists that version's resources without
 * it.
 *
 * Errors, after which nobody knows: those of asking; KINF_ERR_PROTOCOL (an answer that is no
 * discovery). */
KINF_MUST_CHECK int kinf__discovery_is_served(const struct kinf__discovery_source *source,
                                              const struct kinf_type *type, bool *ret_is_served,
                                              struct kinf_error *err);

#endif
