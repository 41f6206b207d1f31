/*
 * The faults that there are, those that have hit a request, and the thread that wakes them.
 * Neighbours: fault_spec.c reads and asks lines, fault_answer.c and fault_stream.c make what is
 * sent.
 *
 * A fault that waits is woken when its time has come, when its client has gone, which nobody else
 * looks for, and when all of them are stopped. After kinf__fault_free() it is not.
 */
#include "fault/fault.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/thread.h"
#include "json/quote.h"
#include "fault/fault_answer.h"
#include "fault/fault_spec.h"
#include "fault/fault_stream.h"

#define RULES_MAX 1000
#define LOG_LEN   128
#define PATH_SIZE KINF__FAULT_SPEC_SIZE
#define GONE_MS   200 /* how often is looked whether a client has gone */

struct rule {
    struct kinf__list node;
    struct kinf__fault_spec spec;
    unsigned id;
    int64_t until_ms;
    struct kinf__fault_tally tally;
};

struct logged {
    enum kinf__fault_verb verb;
    unsigned fault_id;
    char target[KINF__FAULT_TARGET_SIZE];
};

struct kinf__faults {
    /* constant */
    uint64_t seed;
    pthread_t timer;
    struct kinf__mutex lock;
    struct kinf__cond changed;
    /* guarded by lock */
    struct kinf__list rules;
    size_t n_rules;
    unsigned last_id;
    struct kinf__list live; /* those that have hit a request that is under way */
    struct logged log[LOG_LEN];
    uint64_t n_requests;
    bool is_stopping;
    bool is_ended;
};

struct kinf__fault {
    /* constant */
    struct kinf__faults *faults;
    unsigned rule_id;
    struct kinf__fault_effect effect;
    struct kinf__fault_object object; /* texts are the request's, valid until there is an answer */
    bool takes_gzip;
    /* the connection's thread */
    bool is_holding;
    int64_t hold_until_ms;
    /* guarded by the faults' lock */
    struct kinf__list node;
    const struct kinf__exchange_owner *owner; /* NULL: not known yet */
    bool is_waiting;
    int64_t wake_ms;
    bool is_gone;
};

/* --- time --- */

/* When it has to be looked at next. The lock is held. */
static int64_t look_at(struct kinf__fault *fault, int64_t now_ms)
{
    if (!fault->is_waiting)
        return KINF__NEVER_MS;
    fault->is_gone = fault->owner->is_gone(fault->owner->ctx);
    if (!fault->is_gone && fault->wake_ms > now_ms)
        return fault->wake_ms < now_ms + GONE_MS ? fault->wake_ms : now_ms + GONE_MS;
    fault->is_waiting = false;
    fault->owner->wake(fault->owner->ctx);
    return KINF__NEVER_MS;
}

static void *keep_time(void *ctx)
{
    struct kinf__faults *faults = ctx;

    kinf__mutex_lock(&faults->lock);
    while (!faults->is_ended) {
        int64_t now_ms = kinf__clock_now_ms(), next_ms = KINF__NEVER_MS;

        KINF__LIST_FOR_EACH (node, &faults->live) {
            int64_t at_ms = look_at(KINF__LIST_ENTRY(node, struct kinf__fault, node), now_ms);

            next_ms = at_ms < next_ms ? at_ms : next_ms;
        }
        (void)kinf__cond_wait_until(&faults->changed, &faults->lock, next_ms);
    }
    kinf__mutex_unlock(&faults->lock);
    return NULL;
}

static int64_t now_ms(void *ctx)
{
    (void)ctx;
    return kinf__clock_now_ms();
}

static void wake_at(int64_t at_ms, void *ctx)
{
    struct kinf__fault *fault = ctx;

    kinf__mutex_lock(&fault->faults->lock);
    fault->is_waiting = true;
    fault->wake_ms = at_ms;
    kinf__cond_signal(&fault->faults->changed);
    kinf__mutex_unlock(&fault->faults->lock);
}

static bool is_over(void *ctx)
{
    struct kinf__fault *fault = ctx;
    bool is;

    kinf__mutex_lock(&fault->faults->lock);
    is = fault->is_gone || fault->faults->is_stopping;
    kinf__mutex_unlock(&fault->faults->lock);
    return is;
}

/* --- what has hit --- */

static void know_owner(struct kinf__fault *fault, const struct kinf__exchange_owner *owner)
{
    kinf__mutex_lock(&fault->faults->lock);
    fault->owner = owner;
    kinf__mutex_unlock(&fault->faults->lock);
}

/* Whether the silence goes on. Not if nobody hears it. */
static bool is_held(struct kinf__fault *fault)
{
    int64_t at_ms = kinf__clock_now_ms();

    if (!fault->is_holding)
        fault->hold_until_ms = kinf__clock_add_ms(at_ms, fault->effect.time_ms);
    fault->is_holding = true;
    if (at_ms >= fault->hold_until_ms || is_over(fault))
        return false;
    wake_at(fault->hold_until_ms, fault);
    return true;
}

static bool is_carried_out(const struct kinf__fault_effect *effect)
{
    switch (effect->kind) {
    case KINF__FAULT_CODE:
    case KINF__FAULT_LOGIN:
    case KINF__FAULT_HANG:
        return effect->is_late;
    case KINF__FAULT_REFUSE:
        return effect->shape == KINF__FAULT_IGNORED || effect->shape == KINF__FAULT_ENDLESS;
    default:
        return !effect->is_early;
    }
}

int kinf__fault_hold(struct kinf__fault *fault, const struct kinf__exchange_owner *owner,
                     struct kinf__refusal *refusal)
{
    if (is_carried_out(&fault->effect))
        return KINF__STEP_ANSWERED;
    know_owner(fault, owner);
    if (fault->effect.kind != KINF__FAULT_HANG)
        return kinf__fault_refuse(&fault->effect, &fault->object, refusal);
    if (is_held(fault))
        return KINF__STEP_WAITS;
    return is_over(fault) ? kinf__refuse(refusal, 503, "ServiceUnavailable", "nobody hears it")
                          : KINF__STEP_ANSWERED;
}

/* How long the stream will be; negative: not known. */
static int64_t stream_len(const struct kinf__fault_effect *effect,
                          const struct kinf__answer *answer)
{
    int64_t len = answer->stream != NULL ? answer->stream_len : (int64_t)answer->body.len;

    switch (effect->kind) {
    case KINF__FAULT_GZIP:
    case KINF__FAULT_ERROR:
        return -1;
    case KINF__FAULT_CLOSE:
        if (effect->unit != KINF__FAULT_BYTES)
            return -1;
        return len >= 0 && (uint64_t)len > effect->after ? (int64_t)effect->after : len;
    default:
        return answer->stream != NULL && answer->stream->is_watch ? -1 : len;
    }
}

static int wrap(struct kinf__fault *fault, struct kinf__answer *answer)
{
    const struct kinf__fault_clock clock = { now_ms, wake_at, is_over, fault };
    int64_t len = stream_len(&fault->effect, answer);
    int failed;

    if (answer->stream == NULL && answer->body.len == 0)
        return 0;
    failed = kinf__fault_stream_new(&fault->effect, &clock, answer->stream, &answer->body,
                                    &answer->stream);
    if (failed == 0)
        answer->stream_len = len;
    return failed;
}

/* A watch is known to the server, which may end it at any time: it lives as long as the answer. */
static int rewrite(struct kinf__fault *fault, struct kinf__answer *answer)
{
    struct kinf__buffer body = KINF__BUFFER_INIT;
    int failed = kinf__fault_rewrite(&fault->effect, &fault->object, answer, &body);

    if (failed < 0)
        return failed;
    kinf__buffer_release(&answer->body);
    answer->body = body;
    if (answer->stream == NULL)
        return 0;
    failed = wrap(fault, answer);
    if (failed < 0)
        answer->breaks = KINF__STREAM_BROKEN;
    answer->stream_len = (int64_t)body.len;
    return failed;
}

static int compress(struct kinf__fault *fault, struct kinf__answer *answer)
{
    int failed;

    if (!fault->takes_gzip || answer->is_gzip || (answer->stream == NULL && answer->body.len == 0))
        return 0;
    failed = wrap(fault, answer);
    answer->is_gzip = answer->varies_by_encoding = failed == 0;
    return failed;
}

static int edit(const struct kinf__fault_effect *effect, struct kinf__answer *answer)
{
    int failed = kinf__fault_edit(effect, answer);

    if (failed < 0)
        answer->breaks = KINF__STREAM_BROKEN;
    return failed;
}

static bool is_before_head(const struct kinf__fault_effect *effect)
{
    return effect->unit == KINF__FAULT_BYTES && effect->after == 0;
}

/* Nothing at all is answered if somebody has come to stop it. */
static int hold_answer(struct kinf__fault *fault, struct kinf__answer *answer)
{
    if (fault->effect.is_late && is_held(fault))
        return KINF__STEP_WAITS;
    if (is_over(fault))
        answer->breaks = KINF__STREAM_BROKEN;
    return 0;
}

int kinf__fault_distort(struct kinf__fault *fault, const struct kinf__exchange_owner *owner,
                        struct kinf__answer *answer)
{
    const struct kinf__fault_effect *effect = &fault->effect;

    know_owner(fault, owner);
    switch (effect->kind) {
    case KINF__FAULT_CODE:
        return effect->is_late || effect->form != KINF__FAULT_AS_JSON ? rewrite(fault, answer) : 0;
    case KINF__FAULT_LOGIN:
        return rewrite(fault, answer);
    case KINF__FAULT_HANG:
        return hold_answer(fault, answer);
    case KINF__FAULT_REFUSE:
        if (effect->shape == KINF__FAULT_OLD_ETCD)
            return rewrite(fault, answer);
        return is_carried_out(effect) ? wrap(fault, answer) : 0;
    case KINF__FAULT_RESET:
    case KINF__FAULT_CUT:
        if (!is_before_head(effect) && !effect->is_early)
            return wrap(fault, answer);
        answer->breaks =
            effect->kind == KINF__FAULT_RESET ? KINF__STREAM_RESET : KINF__STREAM_BROKEN;
        return 0;
    case KINF__FAULT_EMPTY:
    case KINF__FAULT_GROW:
        return answer->code == 200 ? edit(effect, answer) : 0;
    case KINF__FAULT_GZIP:
        return compress(fault, answer);
    case KINF__FAULT_TWICE:
    case KINF__FAULT_BOOKMARK:
    case KINF__FAULT_ERROR:
        return answer->stream != NULL && answer->stream->is_watch ? wrap(fault, answer) : 0;
    default:
        return wrap(fault, answer);
    }
}

/* NULL: it was removed. The lock is held. */
static struct rule *find_rule(struct kinf__faults *faults, unsigned id)
{
    KINF__LIST_FOR_EACH (node, &faults->rules) {
        struct rule *rule = KINF__LIST_ENTRY(node, struct rule, node);

        if (rule->id == id)
            return rule;
    }
    return NULL;
}

void kinf__fault_free(struct kinf__fault *fault)
{
    struct rule *rule;

    kinf__mutex_lock(&fault->faults->lock);
    kinf__list_remove(&fault->node);
    rule = find_rule(fault->faults, fault->rule_id);
    if (rule != NULL)
        rule->tally.n_over++;
    kinf__mutex_unlock(&fault->faults->lock);
    free(fault);
}

/* --- finding --- */

static enum kinf__fault_verb verb_of(const struct kinf__request *request)
{
    switch (request->verb) {
    case KINF__VERB_CREATE:
        return KINF__FAULT_CREATE;
    case KINF__VERB_UPDATE:
        return KINF__FAULT_UPDATE;
    case KINF__VERB_PATCH:
        return KINF__FAULT_PATCH;
    case KINF__VERB_DELETE:
        return KINF__FAULT_DELETE;
    case KINF__VERB_DELETE_COLLECTION:
        return KINF__FAULT_DELETE_COLLECTION;
    case KINF__VERB_LIST:
        return KINF__FAULT_LIST;
    case KINF__VERB_WATCH:
        return kinf__request_is_true(request, "sendInitialEvents") ? KINF__FAULT_WATCH_LIST
                                                                   : KINF__FAULT_WATCH;
    case KINF__VERB_GET:
    case KINF__VERB_CONNECT:
    case KINF__VERB_OTHER:
        break;
    }
    return KINF__FAULT_GET;
}

/* As much of it as lines can name. */
static void copy_path(struct kinf_str target, char path[PATH_SIZE])
{
    const char *mark = memchr(target.bytes, '?', target.len);
    size_t len = mark != NULL ? (size_t)(mark - target.bytes) : target.len;

    snprintf(path, PATH_SIZE, "%.*s", (int)(len < PATH_SIZE ? len : PATH_SIZE), target.bytes);
}

static void note_request(struct kinf__faults *faults, const struct kinf__request_head *head,
                         const struct kinf__fault_subject *subject, unsigned fault_id)
{
    struct logged *logged = &faults->log[faults->n_requests++ % LOG_LEN];

    logged->verb = subject->verb;
    logged->fault_id = fault_id;
    snprintf(
        logged->target, sizeof logged->target, "%.*s",
        (int)(head->target.len < sizeof logged->target ? head->target.len : sizeof logged->target),
        head->target.bytes);
}

static struct kinf__fault *hit(struct kinf__faults *faults, struct rule *rule,
                               const struct kinf__fault_subject *subject,
                               const struct kinf__request_head *head)
{
    struct kinf__fault *fault = calloc(1, sizeof *fault);

    if (fault == NULL)
        return NULL;
    if (rule->tally.n_hits++ == 0)
        snprintf(rule->tally.first_hit, sizeof rule->tally.first_hit, "%s %s",
                 kinf__fault_verb_to_string(subject->verb), subject->path);
    fault->faults = faults;
    fault->rule_id = rule->id;
    fault->effect = rule->spec.effect;
    fault->object = (struct kinf__fault_object){ subject->verb, subject->group, subject->resource,
                                                 subject->name };
    fault->takes_gzip = head->takes_gzip;
    kinf__list_push_back(&faults->live, &fault->node);
    return fault;
}

/* The lock is held. Those behind the one that hits do not count the request. */
static struct kinf__fault *ask_rules(struct kinf__faults *faults,
                                     const struct kinf__fault_subject *subject,
                                     const struct kinf__request_head *head, unsigned *ret_id)
{
    int64_t at_ms = kinf__clock_now_ms();

    KINF__LIST_FOR_EACH (node, &faults->rules) {
        struct rule *rule = KINF__LIST_ENTRY(node, struct rule, node);

        if (at_ms >= rule->until_ms || !kinf__fault_spec_selects(&rule->spec, subject))
            continue;
        rule->tally.n_requests++;
        if (!kinf__fault_spec_is_due(&rule->spec, rule->tally.n_requests, rule->tally.n_hits,
                                     faults->seed + rule->id))
            continue;
        *ret_id = rule->id;
        return hit(faults, rule, subject, head);
    }
    return NULL;
}

struct kinf__fault *kinf__faults_find(struct kinf__faults *faults,
                                      const struct kinf__request_head *head,
                                      const struct kinf__request *request)
{
    char path[PATH_SIZE];
    const struct kinf__fault_subject subject = {
        .verb = verb_of(request),
        .path = path,
        .resource = request->resource,
        .group = request->group,
        .subresource = request->subresource,
        .name_space = request->name_space,
        .name = request->name,
        .user_agent = head->user_agent,
    };
    struct kinf__fault *fault = NULL;
    unsigned id = 0;

    copy_path(head->target, path);
    kinf__mutex_lock(&faults->lock);
    if (!faults->is_stopping) {
        fault = ask_rules(faults, &subject, head, &id);
        note_request(faults, head, &subject, id);
    }
    kinf__mutex_unlock(&faults->lock);
    return fault;
}

/* --- the lines --- */

int kinf__faults_add(struct kinf__faults *faults, const char *spec, unsigned *ret_id,
                     struct kinf_error *err)
{
    struct rule *rule = calloc(1, sizeof *rule);
    int failed =
        rule != NULL ? kinf__fault_spec_parse(spec, &rule->spec, err) : kinf__error_no_memory(err);

    if (failed < 0) {
        free(rule);
        return failed;
    }
    rule->until_ms = kinf__clock_add_ms(kinf__clock_now_ms(), rule->spec.for_ms);
    kinf__mutex_lock(&faults->lock);
    if (faults->n_rules == RULES_MAX) {
        failed = kinf__error_set(err, KINF_ERR_LIMIT, "there are %d faults already", RULES_MAX);
    } else {
        faults->n_rules++;
        rule->id = *ret_id = ++faults->last_id;
        kinf__list_push_back(&faults->rules, &rule->node);
    }
    kinf__mutex_unlock(&faults->lock);
    if (failed < 0)
        free(rule);
    return failed;
}

int kinf__faults_remove(struct kinf__faults *faults, unsigned id)
{
    int result = id == 0 ? 0 : KINF_ERR_NOT_FOUND;

    kinf__mutex_lock(&faults->lock);
    KINF__LIST_FOR_EACH_SAFE (node, &faults->rules) {
        struct rule *rule = KINF__LIST_ENTRY(node, struct rule, node);

        if (id != 0 && rule->id != id)
            continue;
        kinf__list_remove(&rule->node);
        faults->n_rules--;
        free(rule);
        result = 0;
    }
    kinf__mutex_unlock(&faults->lock);
    return result;
}

struct kinf__fault_tally kinf__faults_tally(struct kinf__faults *faults, unsigned id)
{
    struct kinf__fault_tally tally = { .n_requests = 0 };
    const struct rule *rule;

    kinf__mutex_lock(&faults->lock);
    rule = find_rule(faults, id);
    if (rule != NULL)
        tally = rule->tally;
    kinf__mutex_unlock(&faults->lock);
    return tally;
}

static int write_rule(const struct rule *rule, struct kinf__buffer *out)
{
    if (kinf__buffer_printf(out, "{\"id\":%u,\"spec\":", rule->id) < 0 ||
        kinf__quote(out, kinf_str_from(rule->spec.text)) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_printf(out, ",\"requests\":%" PRIu64 ",\"hits\":%" PRIu64 "}",
                               rule->tally.n_requests, rule->tally.n_hits);
}

int kinf__faults_write(struct kinf__faults *faults, struct kinf__buffer *out)
{
    int failed = kinf__buffer_append_str(out, KINF_STR("{\"faults\":["));

    kinf__mutex_lock(&faults->lock);
    KINF__LIST_FOR_EACH (node, &faults->rules) {
        if (failed == 0 && node->prev != &faults->rules)
            failed = kinf__buffer_append(out, ",", 1);
        if (failed == 0)
            failed = write_rule(KINF__LIST_ENTRY(node, struct rule, node), out);
    }
    kinf__mutex_unlock(&faults->lock);
    return failed < 0 ? failed : kinf__buffer_append_str(out, KINF_STR("]}\n"));
}

static int write_logged(const struct logged *logged, uint64_t number, struct kinf__buffer *out)
{
    if (kinf__buffer_printf(out, "{\"number\":%" PRIu64 ",\"verb\":\"%s\",\"target\":", number,
                            kinf__fault_verb_to_string(logged->verb)) < 0 ||
        kinf__quote(out, kinf_str_from(logged->target)) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_printf(out, ",\"fault\":%u}", logged->fault_id);
}

int kinf__faults_write_requests(struct kinf__faults *faults, struct kinf__buffer *out)
{
    int failed = kinf__buffer_append_str(out, KINF_STR("{\"requests\":["));
    uint64_t first;

    kinf__mutex_lock(&faults->lock);
    first = faults->n_requests > LOG_LEN ? faults->n_requests - LOG_LEN : 0;
    for (uint64_t i = first; failed == 0 && i < faults->n_requests; i++) {
        failed = i != first ? kinf__buffer_append(out, ",", 1) : 0;
        if (failed == 0)
            failed = write_logged(&faults->log[i % LOG_LEN], i + 1, out);
    }
    kinf__mutex_unlock(&faults->lock);
    return failed < 0 ? failed : kinf__buffer_append_str(out, KINF_STR("]}\n"));
}

/* --- life --- */

int kinf__faults_new(uint64_t seed, struct kinf__faults **ret_faults, struct kinf_error *err)
{
    struct kinf__faults *faults = calloc(1, sizeof *faults);
    int failed;

    if (faults == NULL)
        return kinf__error_no_memory(err);
    faults->seed = seed;
    kinf__mutex_init(&faults->lock, KINF__RANK_FAULTS);
    kinf__cond_init(&faults->changed);
    kinf__list_init(&faults->rules);
    kinf__list_init(&faults->live);
    failed = kinf__thread_start(&faults->timer, "kinf-faults", keep_time, faults, err);
    if (failed < 0) {
        kinf__cond_release(&faults->changed);
        kinf__mutex_release(&faults->lock);
        free(faults);
        return failed;
    }
    *ret_faults = faults;
    return 0;
}

void kinf__faults_stop(struct kinf__faults *faults)
{
    kinf__mutex_lock(&faults->lock);
    faults->is_stopping = true;
    KINF__LIST_FOR_EACH (node, &faults->live) {
        struct kinf__fault *fault = KINF__LIST_ENTRY(node, struct kinf__fault, node);

        if (fault->owner != NULL)
            fault->owner->wake(fault->owner->ctx);
    }
    kinf__mutex_unlock(&faults->lock);
}

void kinf__faults_free(struct kinf__faults *faults)
{
    if (faults == NULL)
        return;
    kinf__mutex_lock(&faults->lock);
    faults->is_ended = true;
    kinf__cond_signal(&faults->changed);
    kinf__mutex_unlock(&faults->lock);
    pthread_join(faults->timer, NULL);
    KINF__LIST_FOR_EACH_SAFE (node, &faults->rules)
        free(KINF__LIST_ENTRY(node, struct rule, node));
    kinf__cond_release(&faults->changed);
    kinf__mutex_release(&faults->lock);
    free(faults);
}
