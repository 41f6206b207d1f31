/*
 * The Accept header: in which form the client wants its answer.
 *
 * Only JSON is written, so a client that lists anything beside JSON (protobuf first, as client-go
 * does) gets JSON.
 *
 * Threads: any thread.
 */
#ifndef KINF_SERVE_ACCEPT_H
#define KINF_SERVE_ACCEPT_H

#include <stdbool.h>

#include "serve/refusal.h"

/* X(enumerator, value of "as", what it is) */
#define KINF__FORMS(X)                                                                             \
    X(KINF__FORM_OBJECT, "", "as stored")                                                          \
    X(KINF__FORM_TABLE, "Table", "rows for kubectl")                                               \
    X(KINF__FORM_METADATA, "PartialObjectMetadata", "metadata alone")                              \
    X(KINF__FORM_METADATA_LIST, "PartialObjectMetadataList", "a list of metadata")                 \
    X(KINF__FORM_DISCOVERY, "APIGroupDiscoveryList", "aggregated discovery")

enum kinf__form {
#define X(form, as, what) form,
    KINF__FORMS(X)
#undef X
        KINF__N_FORMS
};

struct kinf__accepted {
    enum kinf__form form;
    bool is_v1beta1; /* of meta.k8s.io, for Table and metadata */
};

/* What a row of a Table carries beside its cells. */
enum kinf__include_object {
    KINF__INCLUDE_METADATA,
    KINF__INCLUDE_OBJECT,
    KINF__INCLUDE_NONE,
    KINF__INCLUDE_INVALID, /* refused where a Table is made, not before */
};

/* What may be asked for at an endpoint: a set of forms. */
#define KINF__FORMS_PLAIN     (1u << KINF__FORM_OBJECT)
#define KINF__FORMS_DISCOVERY (KINF__FORMS_PLAIN | 1u << KINF__FORM_DISCOVERY)
#define KINF__FORMS_RESOURCE                                                                       \
    (KINF__FORMS_PLAIN | 1u << KINF__FORM_TABLE | 1u << KINF__FORM_METADATA |                      \
     1u << KINF__FORM_METADATA_LIST)

/* `header` NULL or "": anything. By q first, then the specific before wildcards, then in the
 * header's order. Refuses with 406 when nothing of `forms` is accepted. Returns 0 or
 * KINF_ERR_INVALID. */
KINF_MUST_CHECK int kinf__accept_negotiate(const char *header, unsigned forms,
                                           struct kinf__accepted *ret_accepted,
                                           struct kinf__refusal *refusal);

#endif
