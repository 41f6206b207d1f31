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
/* Whether this thread is in a callback of it. */
bool kinf__elector_is_inside(struct kinf_elector *elector);

#endif
