/*
 * Regular expressions as definitions of custom resources have them, which are Go's, run by POSIX's
 * matcher: common ones mean the same.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_DOCUMENT_PATTERN_H
#define KINF_DOCUMENT_PATTERN_H

#include <stdbool.h>

#include <kinformer/api.h>

struct kinf__pattern;

/* *ret_pattern is NULL if it has no translation, or would be costly: it cannot be checked. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__pattern_new(const char *text, struct kinf__pattern **ret_pattern);
void kinf__pattern_free(struct kinf__pattern *pattern); /* NULL is allowed */

/* Whether it is anywhere in the text; true as well for texts that are too long to look. */
bool kinf__pattern_matches(const struct kinf__pattern *pattern, const char *text);

#endif
