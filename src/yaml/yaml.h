/*
 * YAML as a small tree that remembers where everything stood. kubeconfig and configuration files
 * are read through it, so that every complaint can say file, line and column.
 *
 * Scalars keep their text: "true", 'true' and true differ only in `is_quoted`, and it is the reader
 * of a field who decides what type it wants. Configuration is one document, and a second one an
 * error; of a kubeconfig the first one counts; manifests are streams. Aliases and merge keys (<<)
 * are resolved (not copied) and counted, so that a file cannot blow up while it is walked.
 *
 * Threads: one thread per document while parsing; afterwards constant.
 */
#ifndef KINF_YAML_YAML_H
#define KINF_YAML_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/error.h>
#include <kinformer/str.h>

/* A file larger than this, nodes (each use of an alias counts what it stands for), and depth. */
#define KINF__YAML_MAX_BYTES (16u << 20)
#define KINF__YAML_MAX_NODES 1000000u
#define KINF__YAML_MAX_DEPTH 64

enum kinf__yaml_type { KINF__YAML_SCALAR, KINF__YAML_SEQUENCE, KINF__YAML_MAPPING };

struct kinf__yaml_node {
    enum kinf__yaml_type type;
    bool is_quoted; /* a scalar that was written in quotes or as a block, or tagged as a text */
    unsigned line;  /* from 1 */
    unsigned column;
    struct kinf_str text; /* scalar; has a NUL behind it; a NUL inside is refused when parsing */
    size_t n_items;
    /* sequence: elements; mapping: key, value, key, value... (n_items counts pairs) */
    const struct kinf__yaml_node **items;
};

struct kinf__yaml;

/* Parses text; `file` names it in messages (copied). An empty document is a null scalar. Errors:
 * KINF_ERR_PARSE ("file:line:column: reason"; doubled keys of a mapping too), KINF_ERR_LIMIT,
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__yaml_parse(struct kinf_str text, const char *file,
                                     struct kinf__yaml **ret_yaml, struct kinf_error *err);
/* Reads and parses a file. Errors: KINF_ERR_CONFIG (cannot be read), and those above. */
KINF_MUST_CHECK int kinf__yaml_read(const char *file, struct kinf__yaml **ret_yaml,
                                    struct kinf_error *err);
/* The same of the first document: what is behind it is not looked at. */
KINF_MUST_CHECK int kinf__yaml_read_first(const char *file, struct kinf__yaml **ret_yaml,
                                          struct kinf_error *err);
void kinf__yaml_free(struct kinf__yaml *yaml);

/* A document of a stream, borrowed during the call. Returns 0, a positive number (no more of them),
 * or a negative code, which is handed on. */
typedef int kinf__yaml_take_cb(const struct kinf__yaml *yaml, void *ctx);
/* Parses documents one after the other: what is behind the last one that was taken is not looked
 * at. Doubled keys are left to the taker where they are allowed. Nodes and depth of each document are
 * limited, the text is not. Errors: those of kinf__yaml_parse() and of `take`. */
KINF_MUST_CHECK int kinf__yaml_parse_all(struct kinf_str text, const char *file,
                                         bool allows_doubled_keys, kinf__yaml_take_cb *take,
                                         void *ctx, struct kinf_error *err);
void kinf__yaml_free_ptr(struct kinf__yaml **yaml);

const struct kinf__yaml_node *kinf__yaml_root(const struct kinf__yaml *yaml);
const char *kinf__yaml_file(const struct kinf__yaml *yaml);

/* Whether it is absent or written as nothing, ~ or null. NULL is null. */
bool kinf__yaml_is_null(const struct kinf__yaml_node *node);

/* Whether it is a boolean of YAML 1.1, which kubectl reads: unquoted true, yes, on or y, false, no,
 * off or n, each also as True and TRUE. If so *ret_truth is which. */
bool kinf__yaml_is_old_bool(const struct kinf__yaml_node *node, bool *ret_truth);

/* The value of a key, or NULL if it is absent or null. `mapping` may be NULL. */
const struct kinf__yaml_node *kinf__yaml_get(const struct kinf__yaml_node *mapping,
                                             const char *key);

/* Writes "file:line:column: text" and returns `code`. */
int kinf__yaml_error(struct kinf_error *err, int code, const struct kinf__yaml *yaml,
                     const struct kinf__yaml_node *node, const char *fmt, ...) KINF_PRINTF(5, 6);

/*
 * Typed reading of one field of a mapping. An absent or null field leaves *ret_x as it is and
 * returns 0. Errors: KINF_ERR_CONFIG with place and what was expected.
 */
KINF_MUST_CHECK int kinf__yaml_read_string(const struct kinf__yaml *yaml,
                                           const struct kinf__yaml_node *mapping, const char *key,
                                           const char **ret_text, struct kinf_error *err);
/* true or false, unquoted or quoted; nothing else. */
KINF_MUST_CHECK int kinf__yaml_read_bool(const struct kinf__yaml *yaml,
                                         const struct kinf__yaml_node *mapping, const char *key,
                                         bool *ret_truth, struct kinf_error *err);
/* The same, or a boolean of YAML 1.1: for files that others read, too. */
KINF_MUST_CHECK int kinf__yaml_read_old_bool(const struct kinf__yaml *yaml,
                                             const struct kinf__yaml_node *mapping, const char *key,
                                             bool *ret_truth, struct kinf_error *err);
KINF_MUST_CHECK int kinf__yaml_read_uint(const struct kinf__yaml *yaml,
                                         const struct kinf__yaml_node *mapping, const char *key,
                                         uint64_t max, uint64_t *ret_number,
                                         struct kinf_error *err);
/* "500ms", "30s", "5m", "1h", or a sum of such, as Go writes durations; 0 needs no unit. */
KINF_MUST_CHECK int kinf__yaml_read_duration_ms(const struct kinf__yaml *yaml,
                                                const struct kinf__yaml_node *mapping,
                                                const char *key, int64_t *ret_ms,
                                                struct kinf_error *err);
KINF_MUST_CHECK int kinf__yaml_read_mapping(const struct kinf__yaml *yaml,
                                            const struct kinf__yaml_node *mapping, const char *key,
                                            const struct kinf__yaml_node **ret_node,
                                            struct kinf_error *err);
KINF_MUST_CHECK int kinf__yaml_read_sequence(const struct kinf__yaml *yaml,
                                             const struct kinf__yaml_node *mapping, const char *key,
                                             const struct kinf__yaml_node **ret_node,
                                             struct kinf_error *err);

/* Complains about the first key of a mapping that is not in the list (NULL at its end). Errors:
 * KINF_ERR_CONFIG, naming the key and those that exist. */
KINF_MUST_CHECK int kinf__yaml_check_keys(const struct kinf__yaml *yaml,
                                          const struct kinf__yaml_node *mapping,
                                          const char *const *allowed, struct kinf_error *err);

#endif
