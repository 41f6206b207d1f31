/*
 * Discovery: which resources a server has, and how they are spelled.
 *
 * kinf_client_find_type() is this module's public face.
 *
 * Threads: any thread; a source belongs to one.
 */
#ifndef KINF_REST_DISCOVERY_H
#define KINF_REST_DISCOVERY_H

#include <kinformer/client.h>
#include <kinformer/error.h>
#include <kinformer/type.h>

struct cJSON;

/* Where answers come from: a server, or a test's table. */
struct kinf__discovery_source {
    int (*ask)(void *ctx, const char *target, struct cJSON **ret_tree, struct kinf_error *err);
    void *ctx;
    const char *host; /* for messages */
};

struct kinf__http;
struct kinf__buffer;

/* One answer as it came, up to 16 MiB; `accept` NULL: JSON. Errors: KINF_ERR_LIMIT, those of
 * kinf__http_perform(). */
KINF_MUST_CHECK int kinf__discovery_ask(struct kinf__http *http, const char *target,
                                        const char *accept, struct kinf__buffer *answer,
                                        struct kinf_error *err);

/* Asks a server: `ctx` is a kinf__http. Nothing is cached. */
KINF_MUST_CHECK int kinf__discovery_ask_server(void *ctx, const char *target,
                                               struct cJSON **ret_tree, struct kinf_error *err);

/* Finds a resource by kubectl's spelling. Errors: as kinf_client_find_type(). */
KINF_MUST_CHECK int kinf__discovery_find_from(const struct kinf__discovery_source *source,
                                              const char *resource,
                                              const struct kinf_type **ret_type,
                                              struct kinf_error *err);

/* As kinf_client_find_type(), but what was read a while ago (KINF__DISCOVERY_INTERVAL_MS) is asked for
 * again first: a name may mean another version by now. */
KINF_MUST_CHECK int kinf__discovery_find_anew(struct kinf_client *client, const char *resource,
                                              const struct kinf_type **ret_type,
                                              struct kinf_error *err);

/* The resource of one APIResourceList that kubectl would mean by `name`: plural, or else singular,
 * kind or short name. Errors: KINF_ERR_NOT_FOUND without a text, KINF_ERR_UNSUPPORTED,
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__discovery_pick(const struct cJSON *list, const char *name,
                                         const char *group, const char *version,
                                         const struct kinf_type **ret_type, struct kinf_error *err);

#endif
