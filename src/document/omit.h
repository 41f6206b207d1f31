/*
 * What Go leaves out: a client may send empty lists and maps and nulls, and the server, whose structs
 * have none, does not return them.
 *
 * Threads: one thread per tree.
 */
#ifndef KINF_DOCUMENT_OMIT_H
#define KINF_DOCUMENT_OMIT_H

#include "document/schema.h"
#include "document/tree.h"

/* Removes empty lists and maps where they are optional; elements that are null become the empty text,
 * if they are texts; quantities get the one text that their value has. Of custom resources, their
 * metadata's alone. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__omit_empty(const struct kinf__schema_node *node, struct cJSON *object);

/* Lists that are not optional are null where there is none, or nothing in it; not those of custom
 * resources. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__show_lists(const struct kinf__schema_node *node, struct cJSON *object);

#endif
