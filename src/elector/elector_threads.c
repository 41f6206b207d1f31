/*
 * An elector's two threads around an election (election.h). The renewer asks the server; the teller
 * runs callbacks, so that neither a request that hangs keeps on_stopped waiting, nor a callback a
 * renewal. Without callbacks there is no teller.
 */
#include "elector/elector_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define LOOK_MS         1000 /* between looks at the clock: waits do not count the machine's sleep */
#define RELEASE_MS      2000 /* of stop, at most */
#define LEASE_MAX_BYTES ((size_t)4 << 20)

/* --- time --- */

void kinf__elector_wait_until_locked(struct kinf_elector *elector, int64_t until_ms)
{
    int64_t left_ms = kinf__clock_left_ms(kinf__clock_boot_ms(), until_ms);

    if (left_ms != KINF__NEVER_MS && left_ms > LOOK_MS)
        left_ms = LOOK_MS;
    (void)kinf__cond_wait_until(&elector->changed, &elector->lock,
                                kinf__clock_add_ms(kinf__clock_now_ms(), left_ms));
}

bool kinf__elector_leads_locked(const struct kinf_elector *elector)
{
    return kinf__election_leads(&elector->election, kinf__clock_boot_ms());
}

/* --- the renewer --- */

static uint64_t next_random(struct kinf_elector *elector)
{
    uint64_t z = elector->random += 0x9e3779b97f4a7c15U;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

/* Without the lock: a log that is slow is no reason to answer late whether we lead. */
static void log_lead(struct kinf_elector *elector, int64_t before, int64_t now)
    KINF__REQUIRES(elector->lock)
{
    enum kinf_log_level level =
        elector->life == KINF__ELECTOR_RUNNING ? KINF_LOG_WARN : KINF_LOG_INFO;

    kinf__mutex_unlock(&elector->lock);
    if (before >= 0)
        KINF__LOG(KINF__LOG_ELECTOR, level, "leads no more lease=%s/%s term=%" PRId64,
                  elector->name_space, elector->name, before);
    if (now >= 0)
        KINF__LOG(KINF__LOG_ELECTOR, KINF_LOG_INFO,
                  "leads lease=%s/%s term=%" PRId64 " identity=%s", elector->name_space,
                  elector->name, now, KINF__QUOTED(elector->identity));
    kinf__mutex_lock(&elector->lock);
}

/* Logs and counts that we have begun or ceased to lead. */
static void note_lead(struct kinf_elector *elector) KINF__REQUIRES(elector->lock)
{
    int64_t term = kinf__elector_leads_locked(elector) ? elector->election.term : -1,
            before = elector->known_term;

    if (term == before)
        return;
    elector->known_term = term;
    elector->n_terms += term >= 0;
    log_lead(elector, before, term);
}

/* Logs whom we begin to wait for. */
static void note_blocker(struct kinf_elector *elector) KINF__REQUIRES(elector->lock)
{
    const struct kinf__claim *claim =
        kinf__election_blocker(&elector->election, kinf__clock_boot_ms());
    const char *lease = claim != NULL ? claim->lease : "";
    char holder[KINF_ELECTOR_IDENTITY_SIZE];

    if (strcmp(lease, elector->known_blocker) == 0)
        return;
    snprintf(elector->known_blocker, sizeof elector->known_blocker, "%s", lease);
    if (claim == NULL)
        return;
    memcpy(holder, claim->holder, sizeof holder);
    kinf__mutex_unlock(&elector->lock);
    KINF__LOG(KINF__LOG_ELECTOR, KINF_LOG_INFO,
              "waits for a part of its shard lease=%s/%s of=%s holder=%s", elector->name_space,
              elector->name, elector->known_blocker, KINF__QUOTED(holder));
    kinf__mutex_lock(&elector->lock);
}

/* What is a part of electing, and no trouble. */
static bool is_usual(const struct kinf__election_step *step, int code)
{
    return code == KINF_ERR_STOPPED || (step->verb == KINF__ELECTION_GET
                                            ? code == KINF_ERR_NOT_FOUND
                                            : code == KINF_ERR_CONFLICT || code == KINF_ERR_EXISTS);
}

static void note_outcome(struct kinf_elector *elector, const struct kinf__election_step *step,
                         int code, const struct kinf_error *err) KINF__REQUIRES(elector->lock)
{
    uint64_t n_suppressed;

    if (code == 0)
        elector->reason[0] = '\0';
    if (code == 0 || is_usual(step, code))
        return;
    elector->n_failures++;
    memcpy(elector->reason, err->message, sizeof elector->reason);
    kinf__mutex_unlock(&elector->lock);
    if (kinf__log_limit_pass(&elector->log_limit, kinf__clock_now_ms(), &n_suppressed))
        KINF__LOG(KINF__LOG_ELECTOR, KINF_LOG_WARN,
                  "request failed lease=%s/%s error=%s suppressed=%" PRIu64, elector->name_space,
                  elector->name, KINF__QUOTED(err->message), n_suppressed);
    kinf__mutex_lock(&elector->lock);
}

static int perform(struct kinf_elector *elector, const struct kinf__election_step *step,
                   struct kinf__buffer *answer, struct kinf_error *err)
{
    static const char *const methods[] = { [KINF__ELECTION_GET] = "GET",
                                           [KINF__ELECTION_LIST] = "GET",
                                           [KINF__ELECTION_CREATE] = "POST",
                                           [KINF__ELECTION_UPDATE] = "PUT" };
    const char *const targets[] = { [KINF__ELECTION_GET] = elector->item,
                                    [KINF__ELECTION_LIST] = elector->all,
                                    [KINF__ELECTION_CREATE] = elector->collection,
                                    [KINF__ELECTION_UPDATE] = elector->item };
    struct kinf__http_body body = { answer, LEASE_MAX_BYTES, 0 };
    const struct kinf__http_request request = {
        .method = methods[step->verb],
        .target = targets[step->verb],
        .body = step->body,
        /* At least one: 0 would be no limit. */
        .total_timeout_ms = kinf__clock_left_ms(kinf__clock_boot_ms(), step->until_ms) + 1,
        .on_head = kinf__http_body_begin,
        .on_body = kinf__http_body_keep,
        .ctx = &body,
    };
    int code = kinf__http_perform(elector->http, &request, err);

    if (code < 0 && err->http_status == 0)
        kinf__http_disconnect(elector->http);
    return code;
}

/* 5xx: it may have happened all the same. */
static bool is_refused(const struct kinf_error *err)
{
    return err->http_status >= 400 && err->http_status < 500;
}

/* One request, without the lock; `step` borrows from the election, which only this thread changes. */
static void ask(struct kinf_elector *elector, const struct kinf__election_step *step)
    KINF__REQUIRES(elector->lock)
{
    KINF__AUTO_BUFFER answer = KINF__BUFFER_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    int code;

    kinf__mutex_unlock(&elector->lock);
    code = perform(elector, step, &answer, &err);
    kinf__mutex_lock(&elector->lock);
    code = kinf__election_answer(&elector->election, kinf__clock_boot_ms(), next_random(elector),
                                 code, is_refused(&err), kinf__buffer_str(&answer), &err);
    if (elector->life != KINF__ELECTOR_RUNNING)
        kinf__election_resign(&elector->election);
    kinf__cond_broadcast(&elector->changed);
    note_outcome(elector, step, code, &err);
    note_lead(elector);
    note_blocker(elector);
}

static enum kinf__election_verb take_step(struct kinf_elector *elector)
    KINF__REQUIRES(elector->lock)
{
    struct kinf__election_step step;

    kinf__election_next(&elector->election, kinf__clock_boot_ms(), kinf__clock_wall_ms(),
                        next_random(elector), &step);
    note_lead(elector);
    if (step.verb == KINF__ELECTION_WAIT)
        kinf__elector_wait_until_locked(elector, step.until_ms);
    else if (step.verb != KINF__ELECTION_DONE)
        ask(elector, &step);
    return step.verb;
}

/* What we had begun has ended: then others may begin. */
static void release_lease(struct kinf_elector *elector) KINF__REQUIRES(elector->lock)
{
    while (elector->election.is_acting)
        kinf__elector_wait_until_locked(elector, KINF__NEVER_MS);
    kinf__waker_clear(&elector->stop);
    kinf__election_begin_release(&elector->election, kinf__clock_boot_ms() + RELEASE_MS);
    while (take_step(elector) != KINF__ELECTION_DONE)
        continue;
}

void *kinf__elector_renew(void *ctx)
{
    struct kinf_elector *elector = ctx;

    kinf__mutex_lock(&elector->lock);
    while (elector->life == KINF__ELECTOR_RUNNING)
        take_step(elector);
    note_lead(elector);
    if (elector->options.release_on_stop)
        release_lease(elector);
    elector->is_over = true;
    kinf__cond_broadcast(&elector->changed);
    kinf__mutex_unlock(&elector->lock);
    return NULL;
}

/* --- the teller --- */

static void tell_event(struct kinf_elector *elector, void (*on_event)(void *ctx))
    KINF__REQUIRES(elector->lock)
{
    kinf__mutex_unlock(&elector->lock);
    if (on_event != NULL)
        on_event(elector->options.ctx);
    kinf__mutex_lock(&elector->lock);
}

static void tell_leader(struct kinf_elector *elector) KINF__REQUIRES(elector->lock)
{
    char leader[KINF_ELECTOR_IDENTITY_SIZE];

    snprintf(leader, sizeof leader, "%s", kinf__election_leader(&elector->election));
    memcpy(elector->told_leader, leader, sizeof leader);
    kinf__mutex_unlock(&elector->lock);
    if (elector->options.on_leader != NULL)
        elector->options.on_leader(leader, elector->options.ctx);
    kinf__mutex_lock(&elector->lock);
}

/* Tells one thing, or waits for one. Returns false when there will be none. */
static bool tell_next(struct kinf_elector *elector) KINF__REQUIRES(elector->lock)
{
    bool is_leader = kinf__elector_leads_locked(elector);

    if (elector->election.is_acting &&
        (!is_leader || elector->election.term != elector->told_term)) {
        tell_event(elector, elector->options.on_stopped);
        elector->election.is_acting = false;
        kinf__cond_broadcast(&elector->changed);
    } else if (is_leader && !elector->election.is_acting) {
        elector->election.is_acting = true;
        elector->told_term = elector->election.term;
        tell_event(elector, elector->options.on_started);
    } else if (strcmp(kinf__election_leader(&elector->election), elector->told_leader) != 0) {
        tell_leader(elector);
    } else if (elector->is_over) {
        return false;
    } else {
        kinf__elector_wait_until_locked(elector, is_leader ? elector->election.leads_until_ms
                                                           : KINF__NEVER_MS);
    }
    return true;
}

void *kinf__elector_tell(void *ctx)
{
    struct kinf_elector *elector = ctx;

    kinf__mutex_lock(&elector->lock);
    while (tell_next(elector))
        continue;
    kinf__mutex_unlock(&elector->lock);
    return NULL;
}
