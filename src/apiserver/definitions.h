/*
 * CustomResourceDefinitions: what they define is served, and ends with them. Which are valid is for
 * kinf__kind_validate() to say.
 *
 * Threads: the store's lock is held.
 */
#ifndef KINF_APISERVER_DEFINITIONS_H
#define KINF_APISERVER_DEFINITIONS_H

#include "apiserver/sim.h"

/* Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__definitions_new(struct kinf__controller **ret_controller,
                                          struct kinf_error *err);

/* After one was stored: what it defines is served as it says, unless that takes waiting for readers
 * of a version that goes: then the worker does so. Its status is written. Errors: KINF_ERR_PARSE,
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__definition_apply(struct kinf__sim *sim, const struct cJSON *definition,
                                           struct kinf_error *err);

/* One that is to be deleted waits until its objects are gone: changes it so. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__definition_begin_end(struct cJSON *definition);

/* Makes the APIServices that are missing, one for each group and version that is served, and removes
 * the automatic ones of versions that nobody has any more. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__api_services_follow(struct kinf__sim *sim);

#endif
