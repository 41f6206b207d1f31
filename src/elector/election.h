/*
 * What an elector asks the server next, and whether it leads: a state machine without I/O, clock or
 * randomness of its own. elector_threads.c carries out what it says.
 *
 * A try is a GET and perhaps a write, or of who holds the Lease one write alone, by what its last write
 * was answered with. Invariant: who holds it has written the Lease that `seen` was, or is about to find
 * out. Of a set of shards a try also lists the others' Leases before it takes the Lease, and as long as
 * it holds it and does not lead (claims.h); without shards who holds it leads. A claim is withdrawn only
 * while `is_acting` is false.
 *
 * Times are of one clock that no one sets.
 *
 * Mirrors: LeaderElector.tryAcquireOrRenew, release.
 * Threads: one thread per object, or under its owner's lock.
 */
#ifndef KINF_ELECTOR_ELECTION_H
#define KINF_ELECTOR_ELECTION_H

#include "elector/claims.h"
#include "elector/lease.h"

/* What an election is about; the strings are borrowed. */
struct kinf__election_terms {
    const char *name_space, *name, *identity;
    int64_t lease_ms, renew_deadline_ms, retry_ms;
    const char *set; /* of shards; `name` is that of this one */
    unsigned n_shards, shard;
};

enum kinf__election_verb {
    KINF__ELECTION_WAIT, /* until `until_ms` */
    KINF__ELECTION_GET,
    KINF__ELECTION_LIST, /* the Leases of the set */
    KINF__ELECTION_CREATE,
    KINF__ELECTION_UPDATE,
    KINF__ELECTION_DONE, /* the Lease is released, or not ours */
};

struct kinf__election_step {
    enum kinf__election_verb verb;
    int64_t until_ms; /* of a request: its answer is of no use later */
    struct kinf_str body;
};

struct kinf__election {
    struct kinf__election_terms terms;

    struct kinf__lease seen; /* what the server has, as far as we know */
    bool is_newest;          /* nothing speaks against writing over it */
    /* The last spec that we have seen, to tell when it changes; it may have been deleted since. */
    bool has_observed;
    struct kinf__buffer observed;
    char observed_uid[KINF__LEASE_UID_SIZE], observed_holder[KINF_ELECTOR_IDENTITY_SIZE];
    int64_t
        free_ms; /* when the time of all holders that we have seen is over; 0: it was released */
    int64_t deleted_ms;   /* likewise of those in Leases of this name that were deleted */
    int64_t highest_term; /* of anybody, or more: terms that were counted anew; -1: none was seen */

    /* What we have written last, or tried to. */
    char acquired_at[KINF__RFC3339_SIZE];
    int64_t term;
    bool may_be_ours;       /* it may be in the Lease */
    int64_t holds_until_ms; /* 0: we do not hold it */
    int64_t leads_until_ms; /* 0: we do not lead; never above holds_until_ms */

    struct kinf__claims claims;
    bool
        is_clear; /* behind our claim nobody's was seen that overlaps with it, and it has stood since */
    int64_t blocked_until_ms; /* by the claim that the last list had; 0: by none */

    /* the try that runs */
    enum kinf__election_verb asked; /* WAIT: none does */
    int64_t sent_ms, try_until_ms;
    bool is_new_term; /* the write would begin one */
    bool is_withdrawing;
    enum kinf__election_verb claims_by; /* the write, if the list lets us; WAIT: it is behind us */
    unsigned n_reads;
    struct kinf__buffer body;

    int64_t next_ms; /* when the next try begins */
    bool is_releasing;

    /* The owner's to set: what it had begun since we led has not ended. */
    bool is_acting;
};

void kinf__election_init(struct kinf__election *election, const struct kinf__election_terms *terms);
void kinf__election_release(struct kinf__election *election);

/* What to do now. `wall_ms` is for others to read. A request is to be answered before the next
 * call. */
void kinf__election_next(struct kinf__election *election, int64_t now_ms, int64_t wall_ms,
                         uint64_t random, struct kinf__election_step *ret_step);

/* How the request ended: 0 with the answer's body, or the code of its failure; `is_refused`: the
 * server has said no, so that nothing was written. `err` is written to if the body cannot be read:
 * then the request has failed, too, and this returns its code; otherwise 0, or `code`. */
int kinf__election_answer(struct kinf__election *election, int64_t now_ms, uint64_t random,
                          int code, bool is_refused, struct kinf_str body, struct kinf_error *err);

/* Whether we lead. */
bool kinf__election_leads(const struct kinf__election *election, int64_t now_ms);

/* We lead no more. */
void kinf__election_resign(struct kinf__election *election);
/* From now on the steps are those that give the Lease up, if it is ours. Behind resign. */
void kinf__election_begin_release(struct kinf__election *election, int64_t until_ms);

/* Who leads, as far as we have seen; "": nobody. The election's own. */
const char *kinf__election_leader(const struct kinf__election *election);
/* Whose claim we wait for, NULL: nobody's. The election's own. */
const struct kinf__claim *kinf__election_blocker(const struct kinf__election *election,
                                                 int64_t now_ms);

#endif
