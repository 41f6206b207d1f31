/*
 * `$(NAME)` in a text stands for a variable of the environment, as in a container's args.
 *
 * Threads: any, while nobody changes the environment.
 */
#ifndef KINF_DAEMON_EXPAND_H
#define KINF_DAEMON_EXPAND_H

#include <kinformer/error.h>

/* A new text that the caller frees; `$$(` stands for `$(`. Errors: KINF_ERR_CONFIG (a variable that
 * is not set, or empty: a selector without its value would be another selection; a name that is
 * none or does not end), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__expand(const char *text, char **ret_text, struct kinf_error *err);

#endif
