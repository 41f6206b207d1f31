/*
 * What others of the library ask of an elector.
 */
#ifndef KINF_ELECTOR_ELECTOR_H
#define KINF_ELECTOR_ELECTOR_H

#include <stdbool.h>

#include <kinformer/elector.h>

/* When it asks the server next, by kinf__clock_now_ms(); 0: now, or it waits for an answer;
 * KINF__NEVER_MS: it is stopped. */
int64_t kinf__elector_due_ms(struct kinf_elector *elector);
/* For controllers, which may share one: the first starts it, and the last one that leaves stops it, unless
 * its program has started it. Errors: KINF_ERR_STATE (it was stopped). */
KINF_MUST_CHECK int kinf__elector_join(struct kinf_elector *elector, struct kinf_error *err);
void kinf__elector_leave(struct kinf_elector *elector);
/* Sees to it that it runs; for who has joined. Errors: as kinf_elector_start(), but when it runs. */
KINF_MUST_CHECK int kinf__elector_run(struct kinf_elector *elector, struct kinf_error *err);
/* Whether this thread is in a callback of it. */
bool kinf__elector_is_inside(struct kinf_elector *elector);

#endif
