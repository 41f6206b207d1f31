/*
 * What fields a type has: of built-in types from the table that is part of the program
 * (schema.txt, recorded from kube-apiserver), of custom resources from their definitions.
 *
 * Threads: constant once made; any thread.
 */
#ifndef KINF_DOCUMENT_SCHEMA_H
#define KINF_DOCUMENT_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/error.h>

#include "serve/refusal.h"
#include "document/tree.h"

enum kinf__schema_kind {
    KINF__SCHEMA_OBJECT, /* with fields of its own */
    KINF__SCHEMA_MAP,    /* names are free; `element` */
    KINF__SCHEMA_LIST,   /* `element` */
    KINF__SCHEMA_STRING,
    KINF__SCHEMA_INTEGER,
    KINF__SCHEMA_NUMBER,
    KINF__SCHEMA_BOOLEAN,
    KINF__SCHEMA_INT_OR_STRING,
    KINF__SCHEMA_QUANTITY, /* a string or a number */
    KINF__SCHEMA_TIME,     /* a string, of RFC 3339 */
    KINF__SCHEMA_BYTES,    /* a string, in base64 */
    KINF__SCHEMA_ANY,      /* anything, nothing is known of it */
};

enum kinf__schema_list {
    KINF__LIST_ATOMIC, /* replaced whole */
    KINF__LIST_SET,    /* of scalars, each once */
    KINF__LIST_MAP,    /* of objects, by `keys` */
};

struct kinf__schema_node {
    enum kinf__schema_kind kind;
    const char *name; /* of the type: "io.k8s.api.core.v1.Container", "int32", "microtime"; "" */
    const char *go;   /* of a built-in one, in Go: "v1.Container"; NULL: as its element says */
    /* An object's; sorted by name. */
    const struct kinf__schema_field *fields;
    size_t n_fields;
    const struct kinf__schema_node *element;
    bool preserves_unknown; /* fields that are not named are kept, too */
    bool is_atomic;         /* an object or a map that one field manager owns whole */
    bool is_nullable;
    bool is_embedded; /* an object with apiVersion, kind and metadata of its own */
    /* A list's, for server-side apply. */
    enum kinf__schema_list list;
    const char *const *keys; /* NULL at the end */
    /* For strategic merge patches: the list is merged, by this member ("": its elements are scalars);
     * NULL: it is replaced. `retains_keys`: $retainKeys of its elements, or of this object. */
    const char *merge_key;
    bool retains_keys;
    bool is_replaced; /* an object that such a patch does not merge */
    /* A custom resource's: the definition's own schema; NULL: built in. */
    const struct cJSON *rules;
};

struct kinf__schema_field {
    const char *name;
    const struct kinf__schema_node *node;
    const struct cJSON *fallback; /* the default; NULL: none */
    const char *inlined;          /* Go's struct inside the struct that has it; NULL: none */
    bool is_required;
    /* In protobuf: its number in the lowest byte, above it those of the messages it is in which JSON
     * inlines; 0: it has none. `keeps_zero`: JSON has the field also if it is zero. */
    bool keeps_zero;
    uint32_t path;
};

struct kinf__schema;

/* The built-in one. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__schema_new(struct kinf__schema **ret_schema);
/* Of one version of a CustomResourceDefinition, from its schema.openAPIV3Schema (NULL: anything
 * goes), which is copied, with metadata, apiVersion and kind as every object has them; `builtin` has
 * metadata and outlives it. Errors: KINF_ERR_PARSE, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__schema_of_definition(const struct kinf__schema *builtin,
                                               const struct cJSON *open_api,
                                               struct kinf__schema **ret_schema,
                                               struct kinf_error *err);
void kinf__schema_free(struct kinf__schema *schema); /* NULL is allowed */

/* The root of a kind; of a definition's, whatever is asked. NULL: none. */
const struct kinf__schema_node *kinf__schema_find(const struct kinf__schema *schema,
                                                  const char *group, const char *version,
                                                  const char *kind);
/* The node of a member: a field, a map's element, or NULL: not known. `node` may be NULL. */
const struct kinf__schema_node *kinf__schema_member(const struct kinf__schema_node *node,
                                                    const char *name);

/* An object's field; NULL: none of this name. */
const struct kinf__schema_field *kinf__schema_field_of(const struct kinf__schema_node *node,
                                                       const char *name);
/* The type of this name ("io.k8s.api.core.v1.Container"); NULL: none. */
const struct kinf__schema_node *kinf__schema_type(const struct kinf__schema *schema,
                                                  const char *name);

/* Removes what is not known, and calls for each ("unknown field \"spec.x\""), also for doubled
 * members, of which the last one stays, in the server's order. Known members that are null go, too,
 * unless they may be. `node` NULL: nothing is known of it, only doubled members go. What `problem`
 * (may be NULL) returns, if it is not 0, ends it. Errors: KINF_ERR_NO_MEMORY. */
typedef int kinf__schema_problem_cb(const char *problem, void *ctx);
KINF_MUST_CHECK int kinf__schema_prune(const struct kinf__schema_node *node, struct cJSON *tree,
                                       kinf__schema_problem_cb *problem, void *ctx);

/* Whether values are of their types, as a Go struct would take them: refuses with 400 as the server
 * does. (Of custom resources, only their metadata: kinf__schema_validate() has the rest.) `kind`: the
 * "Deployment" of version "v1". Returns 0, KINF_ERR_INVALID or KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__schema_check_types(const struct kinf__schema_node *node,
                                             const struct cJSON *tree, const char *kind,
                                             const char *version, struct kinf__refusal *refusal);

/* Fills in what has a default where its parent is there. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__schema_default(const struct kinf__schema_node *node, struct cJSON *tree);
/* What the server fills into built-in objects after that, by looking at other fields: the pull policy
 * by the image's tag, a service's by its type. Kinds that have none are left alone, whatever has a
 * wrong type as well. A Secret's stringData goes into its data; a Job gets labels and a selector if it
 * has a uid; a Service gets no addresses. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__default_object(const char *group, const char *kind, struct cJSON *object);

/* What Go leaves out, whose structs have no empty lists and maps and no nulls: removes empty lists
 * and maps where they are optional; elements that are null become the empty text, if they are texts;
 * quantities get the one text that their value has. Of custom resources, their metadata's alone.
 * Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__omit_empty(const struct kinf__schema_node *node, struct cJSON *object);
/* Lists that are not optional are null where there is none, or nothing in it; not those of custom
 * resources. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__show_lists(const struct kinf__schema_node *node, struct cJSON *object);

/* Of custom resources: types, required members, enum, minimum, maximum, lengths, pattern, format,
 * item and property counts, anyOf and its like, doubled elements of sets and maps. Each fault
 * becomes a cause in the words of the server's; at most `n_max`. Returns how many there were, or a
 * negative code. Nothing is said of built-in types, nor of x-kubernetes-validations. */
struct kinf__schema_fault {
    const char *reason; /* "FieldValueInvalid"; a literal */
    char field[256];    /* "spec.x", or "<nil>" */
    char message[512];  /* "Invalid value: ..."; cut if it is longer */
};
int kinf__schema_validate(const struct kinf__schema_node *node, const struct cJSON *tree,
                          struct kinf__schema_fault *faults, size_t n_max);

#endif
