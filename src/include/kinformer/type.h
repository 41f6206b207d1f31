/*
 * Resource types: what the API server calls group, version, resource and kind.
 *
 * Mirrors: schema.GroupVersionResource with schema.GroupVersionKind.
 * Threads: any thread.
 */
#ifndef KINFORMER_TYPE_H
#define KINFORMER_TYPE_H

#include <stdbool.h>

#include <kinformer/api.h>
#include <kinformer/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every type exists once in a process and is never freed, so that an object can name its type by a
 * pointer for as long as it lives, and two types are equal when their pointers are. There are as
 * many as the program asks for: a few, or at most what a cluster serves. */
struct kinf_type {
    const char *group; /* "" for the core group */
    const char *version;
    const char *kind;     /* "Deployment" */
    const char *resource; /* "deployments" */
    bool namespaced;
};

/* Finds the type or adds it. The strings are copied. Errors: KINF_ERR_INVALID (NULL, an empty
 * version, kind or resource, or one with a byte that JSON or a URL would have to escape),
 * KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_type_intern(const char *group, const char *version,
                                              const char *kind, const char *resource,
                                              bool namespaced, const struct kinf_type **ret_type,
                                              struct kinf_error *err);

#ifdef __cplusplus
}
#endif
#endif
