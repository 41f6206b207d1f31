/*
 * The several-namespaces informer's inside for tests: a type that is known already.
 *
 * Threads: any thread.
 */
#ifndef KINF_INFORMER_NAMESPACES_H
#define KINF_INFORMER_NAMESPACES_H

#include <kinformer/namespaces.h>

/* kinf_namespaces_new() with the type already found. `client` may be NULL: see
 * kinf__informer_new_for_type(). */
KINF_MUST_CHECK int kinf__namespaces_new_for_type(struct kinf_client *client,
                                                  const struct kinf_type *type,
                                                  const struct kinf_informer_options *options,
                                                  const char *const *names, size_t n_names,
                                                  struct kinf_namespaces **ret_namespaces,
                                                  struct kinf_error *err);

#endif
