/*
 * Kubeconfigs for the clients of what is served.
 *
 * Threads: any thread.
 */
#ifndef KINF_SERVE_KUBECONFIG_FILE_H
#define KINF_SERVE_KUBECONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include <kinformer/error.h>

/* With neither token nor file it has no credentials, but is there: kr8s and lightkube need a user. */
struct kinf__kubeconfig_user {
    const char *name;
    const char *token; /* NULL: none */
    /* Absolute; written beside the token that is in it, which not all clients read from files. NULL:
     * none. */
    const char *token_file;
};

/* All of it is borrowed. */
struct kinf__kubeconfig_file {
    const char *url;            /* "https://127.0.0.1:6443" */
    const char *authority_file; /* whom to trust, in PEM; NULL: as the system does */
    /* The first one is the current one; none: one who is anybody, where no tokens are looked at. */
    const struct kinf__kubeconfig_user *users;
    size_t n_users;
};

/* Writes it as kinf__file_replace() does. Errors: KINF_ERR_SYSTEM, KINF_ERR_CONFIG (the authority
 * or a token cannot be read), KINF_ERR_LIMIT, KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__kubeconfig_file_write(const struct kinf__kubeconfig_file *file,
                                                const char *path, struct kinf_error *err);
/* The same, if what is there differs from what would be written. */
KINF_MUST_CHECK int kinf__kubeconfig_file_refresh(const struct kinf__kubeconfig_file *file,
                                                  const char *path, bool *ret_changed,
                                                  struct kinf_error *err);

#endif
