/*
 * Conditions in a status.
 *
 * Threads: one thread per tree.
 */
#ifndef KINF_APISERVER_CONDITIONS_H
#define KINF_APISERVER_CONDITIONS_H

#include "document/tree.h"

struct kinf__condition_value {
    const char *type;
    const char *status; /* "True", "False" */
    const char *reason;
    const char *message;
};

/* Sets status.conditions' one of this type; the time of its transition is now if its status is
 * another than before. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__condition_set(struct cJSON *object,
                                        const struct kinf__condition_value *value);
/* Whether there is one of this type, and of this status. */
bool kinf__condition_is(const struct cJSON *object, const char *type, const char *status);

#endif
