/*
 * The choices of a cache that fills itself: promises D2 to D5, D7, D8 and D10 of demand.h. Nothing is
 * changed by choosing; demand.c has the states of types and changes them.
 *
 * Threads: the demand's lock is held; rules alone need none.
 */
#ifndef KINF_SERVE_DEMAND_POLICY_H
#define KINF_SERVE_DEMAND_POLICY_H

#include "serve/demand.h"

/* Why a type is not to be cached; NULL: it may be. `verbs` NULL: they are known to do. */
const char *kinf__demand_forbids(const struct kinf__demand_rules *rules, const char *group,
                                 const char *resource, const char *verbs);

size_t kinf__demand_count(const struct kinf__demand *demand, enum kinf__demand_state state);
/* Of all that are started or cached. */
uint64_t kinf__demand_bytes(const struct kinf__demand *demand);

struct kinf__demand_choice {
    struct kinf__demand_type *type; /* NULL: none */
    enum kinf__demand_cause cause;  /* of an end */
    char reason[KINF__DEMAND_REASON_MAX];
};

/* Of those that wait the next one; with a reason if it has to go on waiting, else "". */
void kinf__demand_choose_start(const struct kinf__demand *demand, int64_t now_ms,
                               struct kinf__demand_choice *ret_choice);
/* One that has to go. */
void kinf__demand_choose_end(const struct kinf__demand *demand, int64_t now_ms,
                             struct kinf__demand_choice *ret_choice);
/* Whether one might be stale, if the API server is there. */
bool kinf__demand_is_in_doubt(const struct kinf__demand *demand, int64_t now_ms);

#endif
