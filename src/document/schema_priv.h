/*
 * What the makers of schemas share: schema.c of the recorded text, schema_definition.c of
 * definitions; and those who walk objects by them.
 */
#ifndef KINF_DOCUMENT_SCHEMA_PRIV_H
#define KINF_DOCUMENT_SCHEMA_PRIV_H

#include "document/schema.h"

struct kinf__schema_root {
    const char *group;
    const char *version;
    const char *kind;
    const struct kinf__schema_node *node;
};

struct kinf__schema_block; /* of the arena */

struct kinf__schema {
    struct kinf__schema_block *blocks; /* all nodes, fields and texts; the newest one first */
    struct cJSON *values;              /* what defaults and rules point into */
    /* the built-in one's */
    struct kinf__schema_node *types; /* sorted by name */
    size_t n_types;
    struct kinf__schema_root *roots;
    size_t n_roots;
    /* a definition's */
    const struct kinf__schema_node *root;
};

/* Zeroed, and freed with the schema. NULL: out of memory. */
void *kinf__schema_alloc(struct kinf__schema *schema, size_t n, size_t size);

/* A longer path: of a member, or an element. Errors: KINF_ERR_NO_MEMORY. */
static inline int kinf__path_enter(struct kinf__buffer *path, const char *name)
{
    return kinf__buffer_printf(path, "%s%s", path->len != 0 ? "." : "", name);
}

static inline int kinf__path_enter_index(struct kinf__buffer *path, size_t index)
{
    return kinf__buffer_printf(path, "[%zu]", index);
}

/* What check_types() takes for a time of RFC 3339, and for base64. */
bool kinf__is_time(const char *text);
bool kinf__is_base64(const char *text);

/* Regular expressions as definitions have them, which are Go's, run by POSIX's matcher: common ones
 * mean the same. */
struct kinf__pattern;

/* *ret_pattern is NULL if it has no translation, or would be costly: it cannot be checked. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__pattern_new(const char *text, struct kinf__pattern **ret_pattern);
void kinf__pattern_free(struct kinf__pattern *pattern); /* NULL is allowed */

/* Whether it is anywhere in the text; true as well for texts that are too long to look. */
bool kinf__pattern_matches(const struct kinf__pattern *pattern, const char *text);

#endif
