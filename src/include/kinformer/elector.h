/*
 * Leader election on a Lease: of several processes one acts, the others wait for their turn. Or, with
 * shards, one for each part of all hashes.
 *
 * Guarantees (tests cite these numbers):
 *  L1  Whether this process leads is a matter of the clock, not of belief: kinf_elector_leads() is
 *      false as soon as renew_deadline_ms have passed since the last renewal that succeeded was
 *      sent, whatever hangs: the network, a callback, a credential plugin, this whole process. Who
 *      takes over waits for lease_ms, which is longer, from when it saw that renewal or later.
 *  L2  The clock is the one that no one sets, and that goes on while the machine sleeps. Times that
 *      others have written into the Lease are not believed; only whether it changes counts.
 *  L3  The Lease is changed only as it was read (by its resourceVersion). Who finds it changed by
 *      another leads no more.
 *  L4  Each term has a number, the Lease's leaseTransitions, above that of the term before, for as
 *      long as the Lease is not deleted by somebody. A new term begins with each take-over, also
 *      with one by the same identity.
 *  L5  A Lease of our identity that this elector has not written is another's: nobody knows whether
 *      that process still runs. It is waited out.
 *  L6  A Lease that a person has deleted, emptied or given to another while its holder's time was not
 *      over is waited out, too, by those who had seen that time: the holder acts until it finds out.
 *      Who has not seen it, since it is started behind a deletion, leads at once, while the holder
 *      still acts, up to its next renewal; and counts terms anew.
 *  L7  on_stopped has returned before the Lease is released. Who releases hands over at once.
 *  L8  Of a set of shards no two lead whose parts overlap, however many shards each of them thinks that
 *      there are; and each leads in the end whose part nobody else's overlaps any more.
 *
 * L1 holds between two reads of the clock: what is done after a look may be late, if the process is
 * halted in between. What must not be done by two goes with a number that the other side checks
 * (kinf_elector_fence(), or a resourceVersion).
 *
 * A Lease edited by hand: one without spec, or without a holder, is free, but for L6; without a
 * duration that can be meant, another's time in it is our own lease_ms. Labels, annotations and fields of the spec
 * that are not ours are kept as they are. A namespace that is not there, or goes away, is waited for.
 *
 * Shards (n_shards above 0): the shard i stands for the Lease NAME-i. An annotation of it,
 * kinformer.dev/shard-range, has the range of hashes that its holder claims (as kinf_shard_selector()
 * has it), and a label, kinformer.dev/shards-of, the NAME, by which the others find it. It leads only
 * while it holds that Lease, and no live Lease of the set claims a part of its range. So when n_shards
 * changes and the processes are replaced one after another, a new one waits until the old ones have
 * ended whose hashes it gets: what is handed over is nobody's for a while, and never two's. Of several
 * that claim at once those of more shards are first; who leads makes way for nobody, unless it finds its
 * Lease written by somebody else, or the answer to a renewal of its own was lost: then it looks again
 * who claims a part of its range. A Lease of the set that a person edits or deletes is as L6 says. One
 * that says no range claims all. Several processes may stand for one shard. Electors without shards
 * know nothing of those with: one that is to be sharded some day begins with one shard. Leases of
 * shards that are no more stay, released.
 *
 * Needs the verbs get, create and update of leases.coordination.k8s.io; with shards list, too, and
 * lists of the newest state: from an API server, and not from a cache.
 *
 * Mirrors: leaderelection.LeaderElector with resourcelock.LeaseLock.
 * Threads: any thread, unless a line says otherwise.
 */
#ifndef KINFORMER_ELECTOR_H
#define KINFORMER_ELECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/api.h>
#include <kinformer/client.h>
#include <kinformer/error.h>
#include <kinformer/selector.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kinf_elector;

/* All zero but `size` and `name` is the default. Strings are copied. Callbacks run one after another
 * on a thread of the elector's own, renewing goes on meanwhile; they may call anything of this
 * library but kinf_elector_stop() and kinf_elector_free() of their elector, and the same of a controller
 * that it leads. Any may be NULL. */
struct kinf_elector_options {
    size_t size;            /* of this struct: KINF_ELECTOR_OPTIONS_INIT sets it */
    const char *name;       /* of the Lease */
    const char *name_space; /* default: the client's (kinf_client_namespace()) */
    /* Who we are, no more than 253 bytes; no other process may have it. Default: the host's name
     * and a random number. */
    const char *identity;
    int64_t lease_ms;          /* others wait so long; whole seconds, rounded up; 0: 15,000 */
    int64_t renew_deadline_ms; /* we lead so long after a renewal; 0: 10,000 */
    int64_t retry_ms; /* between renewals; between tries to lead 1 to 2.2 times this; 0: 2,000 */
    /* Others need not wait when we stop in order: for programs whose on_stopped returns when all
     * that it had begun has ended. */
    bool release_on_stop;
    /* A term has begun. Not told if it was over before it could be. */
    void (*on_started)(void *ctx);
    /* The term that on_started told is over, by the clock or since we stop: nothing may be begun
     * any more when this returns. Always told after on_started. */
    void (*on_stopped)(void *ctx);
    /* Another leads, or we do; "" is nobody. What came and went meanwhile is not told. */
    void (*on_leader)(const char *identity, void *ctx);
    void *ctx;
    /* We are the shard with the number `shard`, from 0, of so many (KINF_SHARDS_MAX at most, and the
     * name has 63 bytes then). 0 and 0: one leads. */
    unsigned n_shards;
    unsigned shard;
};
#define KINF_ELECTOR_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(struct kinf_elector_options), NULL, NULL, NULL, 0, 0, 0, false, NULL, NULL, NULL,   \
            NULL, 0, 0                                                                             \
    }

/* Asks nobody anything yet. `client` is borrowed: it is not freed before the elector, whose requests
 * have a connection of their own, are not under the client's rate limit, and do not end by
 * kinf_client_interrupt(). Errors:
 * KINF_ERR_INVALID (a name that is none, an identity that is empty or too long, no namespace; a shard
 * that is none;
 * lease_ms not above renew_deadline_ms, or that not above 1.2 times retry_ms; a negative time, or
 * one above a day), KINF_ERR_NO_MEMORY, KINF_ERR_SYSTEM. */
KINF_API KINF_MUST_CHECK int kinf_elector_new(struct kinf_client *client,
                                              const struct kinf_elector_options *options,
                                              struct kinf_elector **ret_elector,
                                              struct kinf_error *err);
/* Stops and frees. Not from a callback, nor before a controller that has it is stopped: that is
 * logged, and nothing is freed. NULL is allowed. */
KINF_API void kinf_elector_free(struct kinf_elector *elector);
KINF_API void kinf_elector_free_ptr(struct kinf_elector **elector);
#define kinf_auto_elector __attribute__((cleanup(kinf_elector_free_ptr)))

/* Begins to stand for election, once. Errors: KINF_ERR_STATE (started or stopped before),
 * KINF_ERR_SYSTEM: then it may be tried again. Mirrors: LeaderElector.Run. */
KINF_API KINF_MUST_CHECK int kinf_elector_start(struct kinf_elector *elector,
                                                struct kinf_error *err);
/* We lead no more from the moment of this call. Returns when on_stopped has, the Lease is released
 * if the options say so (in two seconds at most, or it is left to run out), and every thread has
 * ended. A request that is under way is given up. A second stop is harmless. Errors: KINF_ERR_STATE (from a
 * callback of this elector: it would wait for itself; before a controller that has it is stopped). */
KINF_API int kinf_elector_stop(struct kinf_elector *elector, struct kinf_error *err);

/* Whether this process leads now (L1). Mirrors: LeaderElector.IsLeader. */
KINF_API bool kinf_elector_leads(struct kinf_elector *elector);

/* For what must not be done by two. */
struct kinf_fence {
    int64_t term;    /* grows with each term (L4) */
    int64_t left_ms; /* how long we lead if no renewal succeeds any more: what is begun should not
                        take longer */
};
/* Writes `ret_fence` if this process leads now, else returns false. */
KINF_API bool kinf_elector_fence(struct kinf_elector *elector, struct kinf_fence *ret_fence);

/* Waits until this process leads. Errors: KINF_ERR_TIMEOUT (the message tells who leads, and what
 * failed last), KINF_ERR_STOPPED. */
KINF_API KINF_MUST_CHECK int kinf_elector_wait(struct kinf_elector *elector, int64_t timeout_ms,
                                               struct kinf_error *err);

#define KINF_ELECTOR_IDENTITY_SIZE 256
struct kinf_elector_status {
    bool leads;
    int64_t term;                            /* ours, while we lead */
    int64_t left_ms;                         /* likewise */
    char leader[KINF_ELECTOR_IDENTITY_SIZE]; /* who leads, as far as we have seen; "": nobody. Of a
                                                shard who holds its Lease, who may wait yet */
    char reason[KINF_ERROR_MESSAGE_SIZE]; /* of the last request that failed, until one succeeds; or
                                             which shard is waited for */
    uint64_t n_terms;                     /* that we have had */
    uint64_t n_failures;                  /* of requests */
    uint64_t reserved[4];                 /* 0: for members to come */
};
KINF_API void kinf_elector_status(struct kinf_elector *elector,
                                  struct kinf_elector_status *ret_status);
/* Who we are; the elector's own. */
KINF_API const char *kinf_elector_identity(const struct kinf_elector *elector);

#ifdef __cplusplus
}
#endif
#endif
