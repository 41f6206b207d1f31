/*
 * What the files of `stateDir` are called, what they are of, and the small ones that say of which type a
 * resource was.
 *
 * Threads: any thread.
 */
#ifndef KINF_DAEMON_STATE_NAMES_H
#define KINF_DAEMON_STATE_NAMES_H

#include "daemon/resource_config.h"
#include "state/folder.h"

/* These return texts that the caller frees; NULL: no memory. */

/* What decides which objects are stored, and what of them. */
char *kinf__state_scope(const struct kinf__resource_config *resource, const char *name_space);
/* Of the file; one resource may be there several times, with other selectors or without. */
char *kinf__state_name(const struct kinf__resource_config *resource, const char *name_space);

/* Of which type the resource was at this server. Errors: KINF_ERR_NOT_FOUND, KINF_ERR_CONFLICT (of
 * another server), and the file's. */
KINF_MUST_CHECK int kinf__state_find_type(const struct kinf__state_folder *folder,
                                          const char *server,
                                          const struct kinf__resource_config *resource,
                                          const struct kinf_type **ret_type,
                                          struct kinf_error *err);
/* Writes that, if it is not there as it is. What fails is logged. */
void kinf__state_keep_type(const struct kinf__state_folder *folder, const char *server,
                           const struct kinf__resource_config *resource,
                           const struct kinf_type *type);

#endif
