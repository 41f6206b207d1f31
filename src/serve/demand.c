/*
 * The states of types in a cache that fills itself: each changes here alone, in enter(), under the lock.
 * Neighbours: demand_policy.c chooses, resource.c says what was asked for in vain, debug_state.c and
 * state.c tell of it.
 */
#include "serve/demand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/metrics.h"
#include "serve/demand_policy.h"

/* --- the rules --- */

void kinf__demand_set_rules(struct kinf__demand *demand, const struct kinf__demand_rules *rules)
{
    kinf__mutex_lock(&demand->lock);
    demand->rules = *rules;
    if (rules->idle_ms == 0)
        demand->rules.idle_ms = KINF__DEMAND_IDLE_MS;
    if (rules->max_types == 0)
        demand->rules.max_types = KINF__DEMAND_MAX_TYPES;
    if (rules->max_bytes == 0)
        demand->rules.max_bytes = KINF__DEMAND_MAX_BYTES;
    if (rules->max_staleness_ms == 0)
        demand->rules.max_staleness_ms = KINF__DEMAND_STALE_MS;
    kinf__mutex_unlock(&demand->lock);
}

/* --- types --- */

static void free_type(struct kinf__demand_type *type)
{
    free(type->group);
    free(type->version);
    free(type->resource);
    free(type);
}

static struct kinf__demand_type *find_type(struct kinf__demand *demand,
                                           const struct kinf__demand_request *request)
{
    KINF__LIST_FOR_EACH (node, &demand->types) {
        struct kinf__demand_type *type = KINF__LIST_ENTRY(node, struct kinf__demand_type, node);

        if (strcmp(type->resource, request->resource) == 0 &&
            strcmp(type->group, request->group) == 0 &&
            strcmp(type->version, request->version) == 0)
            return type;
    }
    return NULL;
}

/* NULL: out of memory. */
static struct kinf__demand_type *add_type(struct kinf__demand *demand,
                                          const struct kinf__demand_request *request)
{
    struct kinf__demand_type *type = calloc(1, sizeof *type);

    if (type == NULL)
        return NULL;
    type->group = strdup(request->group);
    type->version = strdup(request->version);
    type->resource = strdup(request->resource);
    if (type->group == NULL || type->version == NULL || type->resource == NULL) {
        free_type(type);
        return NULL;
    }
    kinf__list_push_back(&demand->types, &type->node);
    return type;
}

static void enter(struct kinf__demand_type *type, enum kinf__demand_state state, int64_t now_ms)
{
    type->state = state;
    type->since_ms = now_ms;
}

static void set_reason(struct kinf__demand_type *type, const char *reason)
{
    snprintf(type->reason, sizeof type->reason, "%s", reason);
}

/* --- being asked --- */

static void ask(struct kinf__demand *demand, struct kinf__demand_type *type,
                const struct kinf__demand_request *request, int64_t now_ms)
{
    const char *against =
        kinf__demand_forbids(&demand->rules, request->group, request->resource, request->verbs);

    type->n_gets = now_ms - type->asked_ms < demand->rules.idle_ms ? type->n_gets : 0;
    type->n_gets += request->is_get;
    type->n_asked++;
    type->asked_ms = now_ms;
    if (type->state != KINF__DEMAND_ASKED || now_ms < type->away_ms)
        return;
    if (against != NULL) {
        set_reason(type, against);
    } else if (request->is_get && type->n_gets < KINF__DEMAND_MANY_GETS) {
        set_reason(type, "only single objects were read so far, and seldom");
    } else {
        enter(type, KINF__DEMAND_QUEUED, now_ms);
        set_reason(type, "is about to be started");
        if (demand->wake != NULL)
            kinf__waker_set(demand->wake);
    }
}

void kinf__demand_ask(struct kinf__demand *demand, const struct kinf__demand_request *request,
                      int64_t now_ms)
{
    struct kinf__demand_type *type;

    kinf__mutex_lock(&demand->lock);
    if (demand->rules.is_enabled) {
        type = find_type(demand, request);
        if (type == NULL)
            type = add_type(demand, request);
        if (type != NULL)
            ask(demand, type, request, now_ms);
    }
    kinf__mutex_unlock(&demand->lock);
}

void kinf__demand_ask_unknown(struct kinf__demand *demand)
{
    kinf__mutex_lock(&demand->lock);
    if (demand->rules.is_enabled && !demand->has_unknown) {
        demand->has_unknown = true;
        if (demand->wake != NULL)
            kinf__waker_set(demand->wake);
    }
    kinf__mutex_unlock(&demand->lock);
}

bool kinf__demand_take_unknown(struct kinf__demand *demand, int64_t now_ms)
{
    bool is_due;

    kinf__mutex_lock(&demand->lock);
    is_due = demand->has_unknown && now_ms >= demand->unknown_ms;
    if (is_due) {
        demand->has_unknown = false;
        demand->unknown_ms = now_ms + KINF__DEMAND_UNKNOWN_MS;
    }
    kinf__mutex_unlock(&demand->lock);
    return is_due;
}

/* --- starting --- */

static const char listing[] = "its first list is under way";

static void begin(struct kinf__demand *demand, struct kinf__demand_type *type, int64_t now_ms)
{
    enter(type, KINF__DEMAND_STARTING, now_ms);
    set_reason(type, listing);
    type->is_failing = false;
    type->use = (struct kinf__demand_use){ .bytes = 0 };
    type->n_gets = 0;
    demand->n_starts++;
    if (demand->start_credit_ms < now_ms)
        demand->start_credit_ms = now_ms;
    demand->start_credit_ms += KINF__DEMAND_START_MS;
}

/* What nobody asked for in the meantime does not wait for ever. */
static void forget_old(struct kinf__demand *demand, int64_t now_ms)
{
    KINF__LIST_FOR_EACH (node, &demand->types) {
        struct kinf__demand_type *type = KINF__LIST_ENTRY(node, struct kinf__demand_type, node);

        if (type->state == KINF__DEMAND_QUEUED &&
            (!demand->rules.is_enabled || now_ms - type->asked_ms >= demand->rules.idle_ms))
            enter(type, KINF__DEMAND_ASKED, now_ms);
    }
}

struct kinf__demand_type *kinf__demand_next_start(struct kinf__demand *demand, int64_t now_ms)
{
    struct kinf__demand_choice choice;

    kinf__mutex_lock(&demand->lock);
    forget_old(demand, now_ms);
    kinf__demand_choose_start(demand, now_ms, &choice);
    if (choice.type != NULL && *choice.reason != '\0')
        set_reason(KINF__TAKE(choice.type), choice.reason);
    if (choice.type != NULL)
        begin(demand, choice.type, now_ms);
    kinf__mutex_unlock(&demand->lock);
    return choice.type;
}

/* --- giving up --- */

/* D6 */
static void stay_away(struct kinf__demand_type *type, int64_t now_ms)
{
    int64_t wait_ms = KINF__DEMAND_AWAY_MS;

    if (type->state == KINF__DEMAND_CACHED && now_ms - type->since_ms >= KINF__DEMAND_AWAY_MAX)
        type->n_away = 0;
    for (unsigned i = 0; i < type->n_away && wait_ms < KINF__DEMAND_AWAY_MAX; i++)
        wait_ms *= 2;
    type->n_away++;
    type->away_ms = now_ms + (wait_ms < KINF__DEMAND_AWAY_MAX ? wait_ms : KINF__DEMAND_AWAY_MAX);
}

static void give_up(struct kinf__demand *demand, struct kinf__demand_type *type,
                    enum kinf__demand_cause cause, const char *reason, int64_t now_ms)
{
    if (cause == KINF__DEMAND_TYPES || cause == KINF__DEMAND_BYTES ||
        cause == KINF__DEMAND_REFUSED || cause == KINF__DEMAND_STALE)
        stay_away(type, now_ms);
    enter(type, KINF__DEMAND_LEAVING, now_ms);
    set_reason(type, reason);
    demand->n_given_up[cause]++;
}

struct kinf__demand_type *kinf__demand_next_end(struct kinf__demand *demand, int64_t now_ms)
{
    struct kinf__demand_choice choice;

    kinf__mutex_lock(&demand->lock);
    kinf__demand_choose_end(demand, now_ms, &choice);
    if (choice.type != NULL)
        give_up(demand, choice.type, choice.cause, choice.reason, now_ms);
    kinf__mutex_unlock(&demand->lock);
    return choice.type;
}

/* --- how it went --- */

void kinf__demand_note_use(struct kinf__demand *demand, struct kinf__demand_type *type,
                           const struct kinf__demand_use *use, int64_t now_ms)
{
    kinf__mutex_lock(&demand->lock);
    type->use = *use;
    if (use->n_watches != 0)
        type->use.last_ms = now_ms;
    kinf__mutex_unlock(&demand->lock);
}

void kinf__demand_note_trouble(struct kinf__demand *demand, struct kinf__demand_type *type,
                               const char *trouble, int64_t now_ms)
{
    bool is_starting;

    kinf__mutex_lock(&demand->lock);
    is_starting = type->state == KINF__DEMAND_STARTING;
    if (trouble != NULL && !type->is_failing)
        type->failing_ms = now_ms;
    type->is_failing = trouble != NULL;
    if (trouble != NULL)
        snprintf(type->reason, sizeof type->reason, "its %s: %.200s",
                 is_starting ? "first list fails" : "list or watch fails", trouble);
    else
        set_reason(type, is_starting ? listing : "");
    kinf__mutex_unlock(&demand->lock);
}

bool kinf__demand_take_probe(struct kinf__demand *demand, int64_t now_ms)
{
    bool is_due;

    kinf__mutex_lock(&demand->lock);
    is_due = now_ms >= demand->probe_ms && kinf__demand_is_in_doubt(demand, now_ms);
    if (is_due)
        demand->probe_ms = now_ms + KINF__DEMAND_PROBE_MS;
    kinf__mutex_unlock(&demand->lock);
    return is_due;
}

void kinf__demand_note_server(struct kinf__demand *demand, bool answers, int64_t now_ms)
{
    kinf__mutex_lock(&demand->lock);
    if (answers)
        demand->answered_ms = now_ms;
    else
        demand->unanswered_ms = now_ms;
    kinf__mutex_unlock(&demand->lock);
}

void kinf__demand_note_cached(struct kinf__demand *demand, struct kinf__demand_type *type,
                              int64_t now_ms)
{
    kinf__mutex_lock(&demand->lock);
    enter(type, KINF__DEMAND_CACHED, now_ms);
    type->is_failing = false;
    type->use.contact_ms = now_ms;
    set_reason(type, "");
    kinf__mutex_unlock(&demand->lock);
}

void kinf__demand_give_up(struct kinf__demand *demand, struct kinf__demand_type *type,
                          enum kinf__demand_cause cause, const char *reason, int64_t now_ms)
{
    kinf__mutex_lock(&demand->lock);
    give_up(demand, type, cause, reason, now_ms);
    kinf__mutex_unlock(&demand->lock);
}

void kinf__demand_note_gone(struct kinf__demand *demand, struct kinf__demand_type *type,
                            int64_t now_ms)
{
    kinf__mutex_lock(&demand->lock);
    enter(type, KINF__DEMAND_ASKED, now_ms);
    type->use = (struct kinf__demand_use){ .bytes = 0 };
    kinf__mutex_unlock(&demand->lock);
}

bool kinf__demand_has_queued(struct kinf__demand *demand)
{
    bool has_queued;

    kinf__mutex_lock(&demand->lock);
    has_queued = kinf__demand_count(demand, KINF__DEMAND_QUEUED) != 0;
    kinf__mutex_unlock(&demand->lock);
    return has_queued;
}

/* "pods." is of the core group, whatever other group has pods. */
const char *kinf__demand_name(const struct kinf__demand_type *type, char *buf, size_t size)
{
    if (*type->group == '\0')
        snprintf(buf, size, "%s.", type->resource);
    else
        snprintf(buf, size, "%s.%s.%s", type->resource, type->version, type->group);
    return buf;
}

/* --- what is told --- */

static const char *state_name(enum kinf__demand_state state)
{
    static const char *const names[] = {
#define X(state, name) name,
        KINF__DEMAND_STATES(X)
#undef X
    };

    return names[state];
}

static void report_type(struct kinf__report *report, const struct kinf__demand_type *type)
{
    kinf__report_open(report, NULL, '{');
    kinf__report_text(report, "resource", type->resource);
    kinf__report_text(report, "group", type->group);
    kinf__report_text(report, "version", type->version);
    kinf__report_text(report, "state", state_name(type->state));
    kinf__report_text(report, "reason", type->reason);
    kinf__report_time(report, "since", type->since_ms);
    kinf__report_count(report, "missed", type->n_asked);
    kinf__report_time(report, "lastMissed", type->asked_ms);
    kinf__report_time(report, "lastUsed", type->use.last_ms);
    kinf__report_time(report, "notBefore", type->away_ms > report->now_ms ? type->away_ms : 0);
    kinf__report_count(report, "bytes", type->use.bytes);
    kinf__report_count(report, "expectedBytes", type->use.expected);
    kinf__report_count(report, "watchers", type->use.n_watches);
    kinf__report_close(report, '}');
}

void kinf__demand_report(struct kinf__demand *demand, struct kinf__report *report)
{
    kinf__mutex_lock(&demand->lock);
    kinf__report_open(report, "onDemand", '{');
    kinf__report_bool(report, "enabled", demand->rules.is_enabled);
    kinf__report_ms(report, "idleMs", demand->rules.idle_ms);
    kinf__report_count(report, "maxTypes", demand->rules.max_types);
    kinf__report_count(report, "maxBytes", demand->rules.max_bytes);
    kinf__report_count(report, "bytes", kinf__demand_bytes(demand));
    kinf__report_open(report, "types", '[');
    KINF__LIST_FOR_EACH (node, &demand->types)
        report_type(report, KINF__LIST_ENTRY(node, struct kinf__demand_type, node));
    kinf__report_close(report, ']');
    kinf__report_close(report, '}');
    kinf__mutex_unlock(&demand->lock);
}

struct counts {
    uint64_t n_types, n_waiting, n_away, bytes, n_starts, n_given_up[KINF__N_DEMAND_CAUSES];
};

/* Those that would be cached if they had not to stay away. */
static size_t count_away(struct kinf__demand *demand, int64_t now_ms)
{
    size_t n = 0;

    KINF__LIST_FOR_EACH (node, &demand->types) {
        const struct kinf__demand_type *type =
            KINF__LIST_ENTRY(node, struct kinf__demand_type, node);

        n += type->state == KINF__DEMAND_ASKED && now_ms < type->away_ms;
    }
    return n;
}

static void read_counts(struct kinf__demand *demand, int64_t now_ms, struct counts *counts)
{
    kinf__mutex_lock(&demand->lock);
    counts->n_types = kinf__demand_count(demand, KINF__DEMAND_CACHED);
    counts->n_waiting = kinf__demand_count(demand, KINF__DEMAND_QUEUED);
    counts->n_away = count_away(demand, now_ms);
    counts->bytes = kinf__demand_bytes(demand);
    counts->n_starts = demand->n_starts;
    memcpy(counts->n_given_up, demand->n_given_up, sizeof counts->n_given_up);
    kinf__mutex_unlock(&demand->lock);
}

static int write_given_up(struct kinf__buffer *out, const struct counts *counts)
{
    static const char name[] = "kinformer_on_demand_evictions_total";
    static const char *const causes[] = {
#define X(cause, label) label,
        KINF__DEMAND_CAUSES(X)
#undef X
    };
    int failed = kinf__metrics_family(out, name, KINF__METRIC_COUNTER,
                                      "Types that were given up, by the reason.");

    for (size_t i = 0; failed == 0 && i < KINF__N_DEMAND_CAUSES; i++)
        failed = kinf__metrics_sample(out, name, &(struct kinf__label){ "reason", causes[i] }, 1,
                                      counts->n_given_up[i], 0);
    return failed;
}

/* X(name, type, decimals, help, value) of `counts` */
#define DEMAND_METRICS(X)                                                                          \
    X("kinformer_on_demand_types", GAUGE, 0, "Types that are cached since they were asked for.",   \
      counts.n_types)                                                                              \
    X("kinformer_on_demand_waiting_types", GAUGE, 0,                                               \
      "Types that are to be cached and wait for a place, or for their turn.", counts.n_waiting)    \
    X("kinformer_on_demand_away_types", GAUGE, 0,                                                  \
      "Types that stay away for a while, since they were refused, stale or too much.",             \
      counts.n_away)                                                                               \
    X("kinformer_on_demand_bytes", GAUGE, 0,                                                       \
      "Memory of those that are cached and of the ones that are started, about.", counts.bytes)    \
    X("kinformer_on_demand_starts_total", COUNTER, 0,                                              \
      "Types whose cache was started since they were asked for.", counts.n_starts)

int kinf__demand_write_metrics(struct kinf__demand *demand, int64_t now_ms,
                               struct kinf__buffer *out)
{
    static const struct kinf__metric families[] = { DEMAND_METRICS(KINF__METRIC_ROW) };
    struct counts counts = { 0 };
    int failed;

    if (demand != NULL)
        read_counts(demand, now_ms, &counts);

    const uint64_t values[] = { DEMAND_METRICS(KINF__METRIC_VALUE) };

    failed = kinf__metrics_numbers(out, families, values, KINF__ARRAY_LEN(families), NULL);
    return failed < 0 ? failed : write_given_up(out, &counts);
}

/* --- life --- */

void kinf__demand_init(struct kinf__demand *demand, struct kinf__waker *wake)
{
    *demand = (struct kinf__demand){ .wake = wake };
    kinf__list_init(&demand->types);
    kinf__mutex_init(&demand->lock, KINF__RANK_DEMAND);
}

void kinf__demand_release(struct kinf__demand *demand)
{
    KINF__LIST_FOR_EACH_SAFE (node, &demand->types)
        free_type(KINF__LIST_ENTRY(node, struct kinf__demand_type, node));
    kinf__mutex_release(&demand->lock);
}
