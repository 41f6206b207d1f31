/*
 * What others claim of a set of shards: the Leases of the set, as they were listed.
 *
 * The electors of a set stand for a Lease each, NAME-SHARD, which says in a label what set it belongs
 * to and in an annotation which hashes its holder claims. One acts only while its own Lease is held,
 * and only after it has seen, behind writing its claim, that no live Lease claims a part of it.
 *
 * Why no two act on one hash: take two holders whose claims overlap, and that of the two whose claim
 * was written last. It listed behind that, of the newest state, so it saw the other's claim, and acts
 * only when the other's Lease is released, which it is after on_stopped (L7), is taken over by the
 * rules of elections, or was seen unchanged for its duration, which is longer than its holder acts
 * without a renewal (L1). That time begins when the answer came that showed it first, and is over
 * for lists that were asked for behind its end: what comes late may have been true only then. Nothing
 * else shortens it: a release ends the claims of its term and those before in the same Lease, and not
 * in one that a person has deleted, whose holder acts until it finds out (L6). Who takes a Lease over
 * is trusted to have waited: one that a person has emptied, and that a process takes which had not seen
 * it before, is over for the others, too.
 *
 * While a claim stands nobody begins to act on a part of it, so who acts only renews. It has stood if
 * each write found the Lease as the one before had left it. Who finds another one, whatever that says,
 * does not know who looked in between: it lists again behind its next write, and makes way if it sees
 * a claim. Without that its time ends.
 *
 * Why it goes on: claims are written only where none was seen. Of several that were written at once
 * the one that is before the others (kinf__claims_yield(), an order that never changes) stays, and the
 * others are withdrawn, that is, their Leases released; so each claim that does not act waits for one
 * that acts, or for one behind it that acts or goes. Who acts withdraws for nobody, unless it had to
 * list again: who waits for it need not know whether it does.
 *
 * Owner: an election. Threads: one thread per object, or under its owner's lock.
 */
#ifndef KINF_ELECTOR_CLAIMS_H
#define KINF_ELECTOR_CLAIMS_H

#include "elector/lease.h"
#include "object/shard.h"

/* One term of one Lease, with one range: one that changes hands against the rules has several for a
 * while. */
struct kinf__claim {
    char lease[KINF__LEASE_NAME_SIZE];
    char lease_uid[KINF__LEASE_UID_SIZE];
    char holder[KINF_ELECTOR_IDENTITY_SIZE];
    struct kinf__shard_range range;
    struct kinf__buffer observed; /* the spec, to tell when it changes */
    int64_t transitions;
    int64_t until_ms; /* it is live until then, by our clock */
    bool is_listed;   /* by the last list */
};

struct kinf__claims {
    /* constant; strings are borrowed */
    const char *set;   /* NULL: there are no shards */
    const char *lease; /* ours: what it says is the election's business */
    struct kinf__shard_range range;
    char range_text[KINF__SHARD_RANGE_SIZE];
    int64_t lease_ms; /* of Leases that do not say how long */

    struct kinf__claim *items; /* that overlap with ours */
    size_t n_items;
};

/* `n_shards` 0: there are none. */
void kinf__claims_init(struct kinf__claims *claims, const char *set, const char *lease,
                       unsigned n_shards, unsigned shard, int64_t lease_ms);
void kinf__claims_release(struct kinf__claims *claims);

/* Takes the answer to a list of the set's Leases, which was asked for at `asked_ms` and came at
 * `now_ms`. Errors: KINF_ERR_PARSE, KINF_ERR_NO_MEMORY: then not all was taken. */
KINF_MUST_CHECK int kinf__claims_read(struct kinf__claims *claims, struct kinf_str list,
                                      int64_t asked_ms, int64_t now_ms, struct kinf_error *err);

/* The claim to a part of ours that is live at this time; of several the one before the others, NULL:
 * none. It is valid until the next read. Who acts if there is none asks of the time at which it asked
 * for the last list. */
const struct kinf__claim *kinf__claims_blocker(const struct kinf__claims *claims, int64_t at_ms);
/* Whether ours makes way for that one: smaller ranges are before larger ones. */
bool kinf__claims_yield(const struct kinf__claims *claims, const struct kinf__claim *to);

#endif
