/*
 * One entry of the configuration's resources, and how fields of the file are read.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_DAEMON_RESOURCE_CONFIG_H
#define KINF_DAEMON_RESOURCE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/error.h>
#include <kinformer/informer.h>

#include "serve/server.h"
#include "yaml/yaml.h"

/* Owned strings. */
struct kinf__strings {
    char **items;
    size_t n_items;
};

/* Appends a copy. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__strings_add(struct kinf__strings *strings, const char *text);
void kinf__strings_release(struct kinf__strings *strings);
bool kinf__strings_equal(const struct kinf__strings *a, const struct kinf__strings *b);
/* Whether both are NULL or the same. */
bool kinf__text_equal(const char *a, const char *b);

/* Whether a resource is served where something listens, and kept in stateDir. */
enum kinf__choice {
    KINF__CHOICE_DEFAULT, /* all but Secrets */
    KINF__CHOICE_NO,
    KINF__CHOICE_YES,
};

bool kinf__choice_is_yes(enum kinf__choice choice, const struct kinf_type *type);

/* One entry of `resources:`, or one --resource with the flags that apply to all. */
struct kinf__resource_config {
    char *resource;
    struct kinf__strings namespaces; /* none: all */
    char *label_selector;            /* NULL: none */
    char *field_selector;
    char *shard_selector;
    struct kinf__strings drops;
    struct kinf__strings keeps;
    struct kinf__strings index_names; /* beside index_paths */
    struct kinf__strings index_paths;
    int64_t resync_period_ms;
    int64_t watch_timeout_ms;
    int64_t silent_after_ms;
    int64_t backoff_base_ms;
    int64_t backoff_max_ms;
    enum kinf_initial initial;
    uint64_t page_size;
    uint64_t max_object_bytes;
    uint64_t max_queue_bytes;
    bool gzip;
    bool is_compressed; /* what is stored */
    enum kinf__choice serve;
    enum kinf__choice state;
    uint64_t max_history_bytes; /* 0 in each of these three: the watch cache's default */
    int64_t max_history_age_ms;
    uint64_t max_held_bytes;
    enum kinf__consistency consistency;
    size_t number;     /* above those before it of its name, selectors and one of its namespaces */
    bool is_on_demand; /* it is in no list: somebody asked for it */
    bool assume_scope; /* answer what is wider than namespaces and selectors, with a Warning */
};

/* What is being read. */
struct kinf__config_reader {
    const struct kinf__yaml *yaml;
    const struct kinf__yaml_node *mapping;
    struct kinf_error *err;
};

/* A copy of the key's value; untouched if it is not there. Errors: KINF_ERR_CONFIG,
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__config_read_text(const struct kinf__config_reader *reader,
                                           const char *key, char **ret_copy);
/* Appends copies of the key's values. Errors: likewise. */
KINF_MUST_CHECK int kinf__config_read_texts(const struct kinf__config_reader *reader,
                                            const char *key, struct kinf__strings *strings);

/* Of a number for which 0 makes no sense, and would be taken for the default: whether it was given as 0.
 * Errors: KINF_ERR_CONFIG. */
KINF_MUST_CHECK int kinf__config_check_above_zero(const struct kinf__config_reader *reader,
                                                  const char *key, uint64_t value);

/* The same of a text with variables of the environment (expand.h): of a node's cache, say, the node's
 * name. Errors: likewise. */
KINF_MUST_CHECK int kinf__config_read_expanded(const struct kinf__config_reader *reader,
                                               const char *key, char **ret_copy);

/* Of plain and compressed. False: it is neither. */
bool kinf__store_parse(const char *name, bool *ret_is_compressed);

/* Fills an empty entry, whose owner releases it, on failure too. Errors: likewise. */
KINF_MUST_CHECK int kinf__resource_config_read(const struct kinf__yaml *yaml,
                                               const struct kinf__yaml_node *node,
                                               struct kinf__resource_config *resource,
                                               struct kinf_error *err);
void kinf__resource_config_release(struct kinf__resource_config *resource);

/* Paths, selectors and namespaces. Errors: those of their parsers, KINF_ERR_CONFIG. */
KINF_MUST_CHECK int kinf__resource_config_check(const struct kinf__resource_config *resource,
                                                struct kinf_error *err);

/* Whether a running informer of `a` also is what `b` asks for. */
bool kinf__resource_config_equal(const struct kinf__resource_config *a,
                                 const struct kinf__resource_config *b);

#endif
