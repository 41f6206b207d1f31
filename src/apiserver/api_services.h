/*
 * An APIService for each group and version that is served: discovery for those who look there.
 *
 * Threads: the store's lock is held.
 */
#ifndef KINF_APISERVER_API_SERVICES_H
#define KINF_APISERVER_API_SERVICES_H

#include "apiserver/sim.h"

/* Makes those that are missing, and removes the automatic ones of versions that nobody has any
 * more. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__api_services_follow(struct kinf__sim *sim);

#endif
