/*
 * Standing for election, one answer after another. Neighbours: lease.c reads and writes Leases,
 * elector_threads.c has thread, clock and connection.
 *
 * Where this differs from upstream it is more careful: time counts from when a renewal was sent, a
 * deleted Lease and one of our name that we have not written are waited out, and the number of the
 * term rises with every take-over.
 */
#include "elector/election.h"

#include <stdio.h>
#include <string.h>

#define TRY_MIN_MS        1000
#define READS_OF_A_LEADER 2 /* in one try */
#define READS_OF_RELEASE  8

void kinf__election_init(struct kinf__election *election, const struct kinf__election_terms *terms)
{
    *election = (struct kinf__election){ .terms = *terms, .highest_term = -1 };
    kinf__claims_init(&election->claims, terms->set, terms->name, terms->n_shards, terms->shard,
                      terms->lease_ms);
}

void kinf__election_release(struct kinf__election *election)
{
    kinf__lease_release(&election->seen);
    kinf__claims_release(&election->claims);
    kinf__buffer_release(&election->observed);
    kinf__buffer_release(&election->body);
}

bool kinf__election_leads(const struct kinf__election *election, int64_t now_ms)
{
    return now_ms < election->leads_until_ms;
}

static bool holds(const struct kinf__election *election, int64_t now_ms)
{
    return now_ms < election->holds_until_ms;
}

void kinf__election_resign(struct kinf__election *election)
{
    election->holds_until_ms = election->leads_until_ms = 0;
    election->is_newest = election->is_clear = false;
}

const char *kinf__election_leader(const struct kinf__election *election)
{
    return election->observed_holder;
}

const struct kinf__claim *kinf__election_blocker(const struct kinf__election *election,
                                                 int64_t now_ms)
{
    return kinf__election_leads(election, now_ms) || election->blocked_until_ms == 0
               ? NULL
               : kinf__claims_blocker(&election->claims, now_ms);
}

/* A term that was over once stays over, also if the Lease is held still. */
static void lapse(struct kinf__election *election, int64_t now_ms)
{
    if ((election->leads_until_ms != 0 && !kinf__election_leads(election, now_ms)) ||
        (election->holds_until_ms != 0 && !holds(election, now_ms)))
        kinf__election_resign(election);
}

static bool is_shard(const struct kinf__election *election)
{
    return election->claims.set != NULL;
}

/* The Lease alone does not say that nobody else acts on our hashes. */
static bool must_look(const struct kinf__election *election)
{
    return is_shard(election) && !election->is_clear;
}

static bool gives_up(const struct kinf__election *election)
{
    return election->is_releasing || election->is_withdrawing;
}

/* --- what others do --- */

/* The write that `seen` comes from is ours, not one of our name's. */
static bool is_ours(const struct kinf__election *election)
{
    const struct kinf__lease *seen = &election->seen;

    return election->may_be_ours && strcmp(seen->holder, election->terms.identity) == 0 &&
           strcmp(seen->acquired_at, election->acquired_at) == 0 &&
           seen->transitions == election->term;
}

static bool is_observed(const struct kinf__election *election)
{
    return election->has_observed &&
           kinf_str_equal(kinf__buffer_str(&election->observed), election->seen.spec);
}

/* What has ended the time of a holder is its own release, and not that a person takes the Lease from
 * it, or deletes it: it acts until it sees that. */
static void count_time(struct kinf__election *election, int64_t now_ms)
{
    const struct kinf__lease *seen = &election->seen;
    int64_t duration_ms = seen->duration_ms != 0 ? seen->duration_ms : election->terms.lease_ms;

    if (strcmp(seen->uid, election->observed_uid) != 0)
        election->deleted_ms = election->free_ms;
    if (seen->is_released)
        election->free_ms = election->deleted_ms;
    else if (seen->holder[0] != '\0' && now_ms + duration_ms > election->free_ms)
        election->free_ms = now_ms + duration_ms;
}

/* Who has made it again behind a deletion may have counted anew: that was a term, too. */
static void count_terms(struct kinf__election *election)
{
    const struct kinf__lease *seen = &election->seen;

    if (seen->transitions > election->highest_term)
        election->highest_term = seen->transitions;
    else if (strcmp(seen->uid, election->observed_uid) != 0 && !is_ours(election))
        election->highest_term++;
}

/* Somebody has changed it since, or we see it for the first time: its time begins anew. Without
 * memory for its text it counts as changed each time. */
static void observe(struct kinf__election *election, int64_t now_ms)
{
    const struct kinf__lease *seen = &election->seen;

    if (is_observed(election))
        return;
    election->observed.len = 0;
    election->has_observed = kinf__buffer_append_str(&election->observed, seen->spec) == 0;
    count_time(election, now_ms);
    count_terms(election);
    memcpy(election->observed_uid, seen->uid, sizeof seen->uid);
    memcpy(election->observed_holder, seen->holder, sizeof seen->holder);
}

/* --- tries --- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t end_of_try(const struct kinf__election *election, int64_t now_ms)
{
    int64_t half_ms = election->terms.renew_deadline_ms / 2;

    return now_ms + (half_ms > TRY_MIN_MS ? half_ms : TRY_MIN_MS);
}

static void begin_try(struct kinf__election *election, int64_t now_ms)
{
    election->n_reads = 0;
    election->try_until_ms = end_of_try(election, now_ms);
    election->asked = KINF__ELECTION_GET;
    if (!holds(election, now_ms))
        return;
    election->try_until_ms = earlier(election->try_until_ms, election->holds_until_ms);
    if (election->is_newest)
        election->asked = KINF__ELECTION_UPDATE;
}

/* Who waits for a time that another has left looks again at its end. */
static void end_try(struct kinf__election *election, int64_t now_ms, uint64_t random)
{
    int64_t retry_ms = election->terms.retry_ms;

    election->asked = election->is_releasing ? KINF__ELECTION_DONE : KINF__ELECTION_WAIT;
    election->is_withdrawing = false;
    election->next_ms = now_ms + retry_ms;
    if (election->blocked_until_ms > now_ms)
        election->next_ms = earlier(election->next_ms, election->blocked_until_ms);
    if (holds(election, now_ms))
        return;
    election->next_ms += (int64_t)(random % (uint64_t)(retry_ms + retry_ms / 5 + 1));
    if (election->free_ms > now_ms)
        election->next_ms = earlier(election->next_ms, election->free_ms);
}

/* By the time of it we know our own write again, also among others of our name: within the second it
 * is by chance. A number that a person has set to the last one stays. */
static void begin_term(struct kinf__election *election, int64_t wall_ms, uint64_t random)
{
    kinf__rfc3339_write(wall_ms / 1000, (int)(random % 1000000), 6, election->acquired_at);
    election->term = earlier(election->highest_term + 1, INT32_MAX);
}

static int write_body(struct kinf__election *election, int64_t wall_ms)
{
    char now[KINF__RFC3339_SIZE];
    struct kinf__lease_claim claim = {
        .holder = gives_up(election) ? "" : election->terms.identity,
        .acquired_at = gives_up(election) ? now : election->acquired_at,
        .renewed_at = now,
        .duration_s = gives_up(election) ? 1 : (election->terms.lease_ms + 999) / 1000,
        .transitions = election->term,
        .shards_of = election->claims.set,
        .range = election->claims.range_text,
    };

    kinf__rfc3339_write(wall_ms / 1000, (int)(wall_ms % 1000) * 1000, 6, now);
    election->body.len = 0;
    return election->asked == KINF__ELECTION_CREATE
               ? kinf__lease_write(&claim, election->terms.name_space, election->terms.name,
                                   &election->body)
               : kinf__lease_rewrite(&election->seen, &claim, &election->body);
}

static int prepare_write(struct kinf__election *election, int64_t now_ms, int64_t wall_ms,
                         uint64_t random)
{
    election->is_new_term = !gives_up(election) && !holds(election, now_ms);
    if (election->is_new_term)
        begin_term(election, wall_ms, random);
    election->may_be_ours = true;
    return write_body(election, wall_ms);
}

static bool is_write(const struct kinf__election *election)
{
    return election->asked == KINF__ELECTION_CREATE || election->asked == KINF__ELECTION_UPDATE;
}

static void fill_step(struct kinf__election *election, int64_t now_ms,
                      struct kinf__election_step *ret_step)
{
    election->sent_ms = now_ms;
    *ret_step = (struct kinf__election_step){
        .verb = election->asked,
        .until_ms =
            election->asked == KINF__ELECTION_WAIT ? election->next_ms : election->try_until_ms,
    };
    if (is_write(election))
        ret_step->body = kinf__buffer_str(&election->body);
}

/* What we had begun ends first; then there is time for the write. */
static void hold_back(struct kinf__election *election, int64_t now_ms,
                      struct kinf__election_step *ret_step)
{
    election->try_until_ms = end_of_try(election, now_ms);
    *ret_step = (struct kinf__election_step){ .verb = KINF__ELECTION_WAIT,
                                              .until_ms = election->try_until_ms };
}

void kinf__election_next(struct kinf__election *election, int64_t now_ms, int64_t wall_ms,
                         uint64_t random, struct kinf__election_step *ret_step)
{
    if (election->is_withdrawing && election->is_acting) {
        hold_back(election, now_ms, ret_step);
        return;
    }
    lapse(election, now_ms);
    if (election->asked == KINF__ELECTION_WAIT && now_ms >= election->next_ms)
        begin_try(election, now_ms);
    if (election->is_releasing && now_ms >= election->try_until_ms)
        election->asked = KINF__ELECTION_DONE;
    if (is_write(election) && prepare_write(election, now_ms, wall_ms, random) < 0)
        end_try(election, now_ms, random);
    fill_step(election, now_ms, ret_step);
}

/* --- answers --- */

/* There is a Lease: what now? WAIT is nothing. */
static enum kinf__election_verb judge_seen(struct kinf__election *election, int64_t now_ms)
{
    bool ours;

    observe(election, now_ms);
    ours = is_ours(election);
    if (election->is_releasing)
        return ours ? KINF__ELECTION_UPDATE : KINF__ELECTION_WAIT;
    if (holds(election, now_ms) && !ours)
        kinf__election_resign(election);
    else if (ours || now_ms >= election->free_ms)
        return KINF__ELECTION_UPDATE;
    return KINF__ELECTION_WAIT;
}

/* There is none. */
static enum kinf__election_verb judge_absent(struct kinf__election *election, int64_t now_ms)
{
    if (election->is_releasing)
        return KINF__ELECTION_WAIT;
    return holds(election, now_ms) || now_ms >= election->free_ms ? KINF__ELECTION_CREATE
                                                                  : KINF__ELECTION_WAIT;
}

/* Nobody has written it since. Else nobody knows whether our claim stood meanwhile, also if it stands
 * now: somebody may have begun to act on what is ours. */
static bool is_as_seen(const struct kinf__election *election, int code, struct kinf_str body)
{
    return code == 0 && kinf_str_equal(kinf__buffer_str(&election->seen.text), body);
}

/* Without a look nothing is claimed; what is claimed is renewed first. */
static enum kinf__election_verb look_first(struct kinf__election *election, int64_t now_ms,
                                           enum kinf__election_verb verb)
{
    if (verb == KINF__ELECTION_WAIT || election->is_releasing || holds(election, now_ms))
        return verb;
    election->claims_by = verb;
    return KINF__ELECTION_LIST;
}

static int take_read(struct kinf__election *election, int64_t now_ms, int code,
                     struct kinf_str body, struct kinf_error *err)
{
    enum kinf__election_verb verb = KINF__ELECTION_WAIT;

    election->n_reads++;
    election->is_clear = election->is_clear && is_as_seen(election, code, body);
    if (code == 0)
        code = kinf__lease_read(&election->seen, body, err);
    if (code == 0)
        verb = judge_seen(election, now_ms);
    else if (code == KINF_ERR_NOT_FOUND)
        verb = judge_absent(election, now_ms);
    election->asked = is_shard(election) ? look_first(election, now_ms, verb) : verb;
    return code;
}

/* Who was not yet clear, and leads since before its claim fell, makes way: who came meanwhile may act.
 * Without a write that says so our claim would stand for as long as the Lease lasts. */
static enum kinf__election_verb judge_blocked(struct kinf__election *election, int64_t now_ms,
                                              const struct kinf__claim *blocker)
{
    election->blocked_until_ms = blocker->until_ms;
    if (kinf__election_leads(election, now_ms))
        kinf__election_resign(election);
    if (!is_ours(election) ||
        (holds(election, now_ms) && !kinf__claims_yield(&election->claims, blocker)))
        return KINF__ELECTION_WAIT;
    kinf__election_resign(election);
    election->is_withdrawing = true;
    return KINF__ELECTION_UPDATE;
}

/* Nobody else claims a part of ours: if we have written our claim, nobody will. */
static enum kinf__election_verb judge_clear(struct kinf__election *election, int64_t now_ms)
{
    election->blocked_until_ms = 0;
    if (!holds(election, now_ms))
        return election->claims_by;
    election->is_clear = true;
    election->leads_until_ms = election->holds_until_ms;
    return KINF__ELECTION_WAIT;
}

static int take_list(struct kinf__election *election, int64_t now_ms, int code,
                     struct kinf_str body, struct kinf_error *err)
{
    const struct kinf__claim *blocker;

    election->asked = KINF__ELECTION_WAIT;
    if (code == 0)
        code = kinf__claims_read(&election->claims, body, election->sent_ms, now_ms, err);
    if (code < 0)
        return code;
    blocker = kinf__claims_blocker(&election->claims, election->sent_ms);
    election->asked =
        blocker != NULL ? judge_blocked(election, now_ms, blocker) : judge_clear(election, now_ms);
    return 0;
}

/* The server has what we wrote. If its text cannot be read, it is asked for before the next
 * renewal. */
static void note_written(struct kinf__election *election, int64_t now_ms, struct kinf_str body)
{
    int64_t until_ms = election->sent_ms + election->terms.renew_deadline_ms;

    election->is_newest = kinf__lease_read(&election->seen, body, NULL) == 0;
    if (election->is_newest)
        observe(election, now_ms);
    election->asked = KINF__ELECTION_WAIT;
    if (gives_up(election)) {
        election->may_be_ours = false;
        return;
    }
    if (election->term > election->highest_term)
        election->highest_term = election->term;
    if (now_ms >= until_ms || (!election->is_new_term && !holds(election, now_ms)))
        return;
    election->holds_until_ms = until_ms;
    election->claims_by = KINF__ELECTION_WAIT;
    if (must_look(election))
        election->asked = KINF__ELECTION_LIST;
    else
        election->leads_until_ms = until_ms;
}

static bool is_changed(int code)
{
    return code == KINF_ERR_CONFLICT || code == KINF_ERR_EXISTS || code == KINF_ERR_NOT_FOUND;
}

/* Who leads, or gives up, sees at once what is there; others come again later. */
static void note_not_written(struct kinf__election *election, int64_t now_ms, int code,
                             bool is_refused)
{
    unsigned n_reads = election->is_releasing ? READS_OF_RELEASE : READS_OF_A_LEADER;

    election->is_newest = false;
    if (is_refused && election->is_new_term)
        election->may_be_ours = false;
    election->asked = KINF__ELECTION_WAIT;
    if (is_changed(code) && election->n_reads < n_reads &&
        (election->is_releasing || holds(election, now_ms)))
        election->asked = KINF__ELECTION_GET;
}

int kinf__election_answer(struct kinf__election *election, int64_t now_ms, uint64_t random,
                          int code, bool is_refused, struct kinf_str body, struct kinf_error *err)
{
    lapse(election, now_ms);
    if (election->asked == KINF__ELECTION_GET) {
        code = take_read(election, now_ms, code, body, err);
    } else if (election->asked == KINF__ELECTION_LIST) {
        code = take_list(election, now_ms, code, body, err);
    } else if (code == 0) {
        note_written(election, now_ms, body);
    } else {
        note_not_written(election, now_ms, code, is_refused);
    }
    if (election->asked == KINF__ELECTION_WAIT)
        end_try(election, now_ms, random);
    return code;
}

void kinf__election_begin_release(struct kinf__election *election, int64_t until_ms)
{
    election->is_releasing = true;
    election->asked = election->may_be_ours ? KINF__ELECTION_GET : KINF__ELECTION_DONE;
    election->n_reads = 0;
    election->try_until_ms = until_ms;
}
