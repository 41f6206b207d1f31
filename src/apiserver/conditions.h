/*
 * Conditions in a status.
 *
 * Threads: one thread per tree.
 */
#ifndef KINF_APISERVER_CONDITIONS_H
#define KINF_APISERVER_CONDITIONS_H

#include "document/tree.h"

struct kinf__condition {
    const char *type;
    const char *status;  /* "True", "False" */
    const char *reason;  /* NULL or "": none */
    const char *message; /* likewise */
};

/* Sets status.conditions' one of this type; the time of its transition is now if its status is
 * another than before. Returns it, for what else it has. NULL: out of memory. */
KINF_MUST_CHECK struct cJSON *kinf__condition_set(struct cJSON *object,
                                                  const struct kinf__condition *condition);
/* NULL: none. */
const struct cJSON *kinf__condition_find(const struct cJSON *object, const char *type);
/* Whether there is one of this type, and of this status. */
bool kinf__condition_is(const struct cJSON *object, const char *type, const char *status);

#endif
