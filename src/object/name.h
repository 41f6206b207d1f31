/*
 * Forms of names that the API server asks for.
 *
 * Threads: any thread.
 */
#ifndef KINF_OBJECT_NAME_H
#define KINF_OBJECT_NAME_H

#include <kinformer/error.h>

/* Whether `text` could be the name of a namespace: a DNS label. Errors: KINF_ERR_INVALID (message
 * names it). Mirrors: validation.ValidateNamespaceName. */
KINF_MUST_CHECK int kinf__name_check_namespace(const char *text, struct kinf_error *err);

/* Whether `text` could be the name of any object: one segment of a path. Errors: KINF_ERR_INVALID
 * (message names it). Mirrors: path.IsValidPathSegmentName, which rules for every type. */
KINF_MUST_CHECK int kinf__name_check_segment(const char *text, struct kinf_error *err);

#endif
