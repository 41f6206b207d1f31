/*
 * What the readers of kubeconfig share: entries of its lists, and their fields.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_REST_KUBECONFIG_PRIV_H
#define KINF_REST_KUBECONFIG_PRIV_H

#include "rest/kubeconfig.h"
#include "yaml/yaml.h"

/* A named entry and the file it is from. */
struct kinf__kubeconfig_entry {
    const struct kinf__yaml *file;
    const char *name;
    const struct kinf__yaml_node *place;  /* for messages */
    const struct kinf__yaml_node *fields; /* NULL if there are none */
};

/*
 * Fields. One that is absent or empty leaves *ret_text as it is and returns 0. Errors:
 * KINF_ERR_CONFIG with its place, KINF_ERR_LIMIT, KINF_ERR_NO_MEMORY; no message has a part of a
 * value that may be secret.
 */

KINF_MUST_CHECK int kinf__kubeconfig_string(const struct kinf__kubeconfig_entry *entry,
                                            const char *key, char **ret_text,
                                            struct kinf_error *err);

/* A path, which is meant from the kubeconfig's folder; the result is absolute. */
KINF_MUST_CHECK int kinf__kubeconfig_path(const struct kinf__kubeconfig_entry *entry,
                                          const char *key, char **ret_path, struct kinf_error *err);
/* The same for a path at hand; NULL when out of memory. */
char *kinf__kubeconfig_resolve(const struct kinf__kubeconfig_entry *entry, const char *path);

/* KEY-data holds the content in base64 and wins over KEY, which names a file: of the latter also
 * the name. */
KINF_MUST_CHECK int kinf__kubeconfig_pem(const struct kinf__kubeconfig_entry *entry,
                                         const char *key, const char *data_key, char **ret_pem,
                                         char **ret_file, struct kinf_error *err);

/* --- entries --- */

KINF_MUST_CHECK int kinf__kubeconfig_read_cluster(const struct kinf__kubeconfig_entry *cluster,
                                                  struct kinf__cluster_config *config,
                                                  struct kinf_error *err);

/* The cluster comes first: a plugin may be told about it. */
KINF_MUST_CHECK int kinf__kubeconfig_read_user(const struct kinf__kubeconfig_entry *user,
                                               const struct kinf__kubeconfig_entry *cluster,
                                               struct kinf__cluster_config *config,
                                               struct kinf_error *err);

/* The user's `exec`. Also KINF_ERR_UNSUPPORTED: one that needs a terminal. */
KINF_MUST_CHECK int kinf__kubeconfig_read_exec(const struct kinf__kubeconfig_entry *user,
                                               const struct kinf__kubeconfig_entry *cluster,
                                               struct kinf__cluster_config *config,
                                               struct kinf_error *err);

/* --- of a pod (mirrors rest.InClusterConfig) --- */

/* Whether the environment says that this is one. */
bool kinf__in_cluster_is_possible(void);

/* Errors: KINF_ERR_CONFIG (token or authority cannot be read), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__in_cluster_load(struct kinf__cluster_config *config,
                                          struct kinf_error *err);

#endif
