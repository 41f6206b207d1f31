/*
 * Discovery documents by their target, in the legacy form: "/api/v1", "/apis", "/apis/GROUP",
 * "/apis/GROUP/VERSION".
 *
 * A server since 1.26 says all of it in two answers (aggregated discovery, APIGroupDiscoveryList);
 * these are taken apart into what older ones would answer, so that whoever reads knows one form.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_REST_DOCUMENTS_H
#define KINF_REST_DOCUMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include <kinformer/error.h>
#include <kinformer/str.h>

/* For asking "/api" and "/apis". */
#define KINF__ACCEPT_DISCOVERY                                                                     \
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"                        \
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

struct kinf__document {
    char *target;
    char *text; /* NULL: the server that has it is away */
};

struct kinf__documents {
    struct kinf__document *items;
    size_t n_items;
};
#define KINF__DOCUMENTS_INIT                                                                       \
    {                                                                                              \
        NULL, 0                                                                                    \
    }

void kinf__documents_release(struct kinf__documents *documents);

/* The document, valid until the next one is added; NULL: there is none. */
const struct kinf__document *kinf__documents_find(const struct kinf__documents *documents,
                                                  const char *target);

/* Adds a copy; `text.bytes` NULL, which an empty answer has, too: away. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__documents_add(struct kinf__documents *documents, const char *target,
                                        struct kinf_str text);

/* Takes the answer to "/api" or "/apis" apart if it is aggregated: returns 1; else 0, and nothing
 * was added. Groups and versions of the answer that have no name are passed over. Errors:
 * KINF_ERR_PARSE (no JSON), KINF_ERR_NO_MEMORY; some may have been added then. */
KINF_MUST_CHECK int kinf__documents_add_aggregated(struct kinf__documents *documents,
                                                   struct kinf_str answer, struct kinf_error *err);

#endif
