/*
 * What definitions.c and definitions_names.c share.
 *
 * Threads: the store's lock is held.
 */
#ifndef KINF_APISERVER_DEFINITIONS_PRIV_H
#define KINF_APISERVER_DEFINITIONS_PRIV_H

#include "apiserver/definitions.h"

static inline const char *text_of(const struct cJSON *definition, const char *name)
{
    return kinf__doc_text(definition, "spec", name, NULL);
}

/* That the definition wishes for. */
static inline const char *name_of(const struct cJSON *definition, const char *name)
{
    return kinf__doc_text(definition, "spec", "names", name, NULL);
}

/* Which of its names others have, a bit for each; 0: none. `own`: what it defines already; NULL:
 * nothing yet. */
unsigned kinf__definition_find_conflicts(struct kinf__sim *sim, const struct cJSON *definition,
                                         const struct kinf__resource *own);
/* Says so in its status: names that others have stay what they were. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__definition_accept_names(struct cJSON *definition, unsigned conflicts);

#endif
