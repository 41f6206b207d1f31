/*
 * What is wrong with an object: faults of its fields are gathered, and told as the server's 422.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_APISERVER_INVALID_H
#define KINF_APISERVER_INVALID_H

#include "document/tree.h"
#include "serve/names.h"
#include "serve/refusal.h"

/* Where a field is, from the leaf to the root: each is a local variable of who walks there. */
struct kinf__field {
    const struct kinf__field *parent; /* NULL: the root */
    const char *name;                 /* of a member, "spec.type"; NULL: `key` or `index` */
    const char *key;                  /* of a map's element; NULL: `index` */
    size_t index;
};

static inline struct kinf__field kinf__field(const struct kinf__field *parent, const char *name)
{
    return (struct kinf__field){ .parent = parent, .name = name };
}

static inline struct kinf__field kinf__field_key(const struct kinf__field *parent, const char *key)
{
    return (struct kinf__field){ .parent = parent, .key = key };
}

static inline struct kinf__field kinf__field_index(const struct kinf__field *parent, size_t index)
{
    return (struct kinf__field){ .parent = parent, .index = index };
}

/* The member of one, for a single call. */
#define KINF__AT(parent, name) (&(const struct kinf__field){ (parent), (name), NULL, 0 })

/* Texts beyond their room are cut, as those of the refusal are. */
struct kinf__invalid {
    struct kinf__refusal *refusal;
    size_t n_faults;
    size_t len; /* of words */
    char words[KINF__REFUSAL_MESSAGE_SIZE];
};

/* Resets the refusal, which is borrowed. */
void kinf__invalid_init(struct kinf__invalid *invalid, struct kinf__refusal *refusal);

/* "<path>: <message>", which somebody else has found; `reason`: a literal. */
void kinf__invalid_add(struct kinf__invalid *invalid, const char *reason, const char *path,
                       const char *message);

/* "<field>: Required value", with ": <why>" unless that is "". */
void kinf__invalid_required(struct kinf__invalid *invalid, const struct kinf__field *field,
                            const char *why);
/* "<field>: Forbidden: <why>" */
void kinf__invalid_forbidden(struct kinf__invalid *invalid, const struct kinf__field *field,
                             const char *why);
/* "<field>: Invalid value: <value>: <why>"; the value as JSON, NULL: null. */
void kinf__invalid_value(struct kinf__invalid *invalid, const struct kinf__field *field,
                         const struct cJSON *value, const char *why);
void kinf__invalid_text(struct kinf__invalid *invalid, const struct kinf__field *field,
                        const char *value, const char *why);
void kinf__invalid_integer(struct kinf__invalid *invalid, const struct kinf__field *field,
                           int64_t value, const char *why);
void kinf__invalid_duplicate(struct kinf__invalid *invalid, const struct kinf__field *field,
                             const char *value);
/* The same of a value that is told as it is. */
void kinf__invalid_duplicate_raw(struct kinf__invalid *invalid, const struct kinf__field *field,
                                 const char *value);
/* "<field>: Unsupported value: <value>: supported values: <supported>", which are given in quotes
 * and in the server's order. */
void kinf__invalid_unsupported(struct kinf__invalid *invalid, const struct kinf__field *field,
                               const char *value, const char *supported);

/* Whether the name is of this form; if not, "<field>: Invalid value: <name>: <why>". */
bool kinf__invalid_check_name(struct kinf__invalid *invalid, const struct kinf__field *field,
                              enum kinf__name_form form, const char *name);

/* "<field>: Not found: <value>" */
void kinf__invalid_not_found(struct kinf__invalid *invalid, const struct kinf__field *field,
                             const char *value);
/* "<field>: Too long: may not be more than <max> bytes" */
void kinf__invalid_too_long(struct kinf__invalid *invalid, const struct kinf__field *field,
                            size_t max);

/* 0 if nothing was added; else writes 422 for the object and returns KINF_ERR_INVALID. */
KINF_MUST_CHECK int kinf__invalid_finish(struct kinf__invalid *invalid, const char *group,
                                         const char *kind, const char *name);

#endif
