/*
 * An elector's insides: elector.c has its life and what it is asked, elector_threads.c what its two
 * threads do. All of the election is under the lock, but never a request or a callback.
 *
 * Threads: as said at each member.
 */
#ifndef KINF_ELECTOR_ELECTOR_PRIV_H
#define KINF_ELECTOR_ELECTOR_PRIV_H

#include <pthread.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/thread.h"
#include "elector/election.h"
#include "elector/elector.h"
#include "rest/http.h"

enum kinf__elector_life {
    KINF__ELECTOR_NOT_STARTED,
    KINF__ELECTOR_RUNNING,
    KINF__ELECTOR_STOPPING,
    KINF__ELECTOR_STOPPED,
};

struct kinf_elector {
    /* constant after creation */
    struct kinf_client *client;
    struct kinf_elector_options options; /* without its strings */
    char *name, *name_space, *identity;
    char *set;                     /* of shards; NULL: there are none */
    char *collection, *item, *all; /* targets; the last one lists those of the set */
    struct kinf__waker stop;

    /* owned by the renewer */
    struct kinf__http *http;
    uint64_t random;
    char known_blocker[KINF__LEASE_NAME_SIZE]; /* the Lease that we wait for, as it was logged */
    struct kinf__log_limit log_limit;

    struct kinf__mutex lock;
    struct kinf__cond changed;
    /* guarded by lock */
    enum kinf__elector_life life;
    unsigned n_controllers; /* that have joined */
    bool is_theirs;         /* one of them has started it */
    pthread_t renewer, teller;
    bool has_teller;
    bool is_over; /* the renewer is through */
    struct kinf__election election;
    int64_t known_term; /* of the last look that saw us lead; -1: the last one did not */
    int64_t told_term;  /* by on_started, while the election's is_acting */
    char told_leader[KINF_ELECTOR_IDENTITY_SIZE];
    uint64_t n_terms, n_failures;
    char reason[KINF_ERROR_MESSAGE_SIZE];
};

/* Whether it leads now. */
bool kinf__elector_leads_locked(const struct kinf_elector *elector) KINF__REQUIRES(elector->lock);
/* Until `until_ms`, or something changes, or it is worth a look. */
void kinf__elector_wait_until_locked(struct kinf_elector *elector, int64_t until_ms)
    KINF__REQUIRES(elector->lock);

/* What its threads run; `ctx` is the elector. */
void *kinf__elector_renew(void *ctx);
void *kinf__elector_tell(void *ctx);

#endif
