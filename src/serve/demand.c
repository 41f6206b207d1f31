/*
 * Which types a cache that fills itself has. Neighbours: resource.c says what was asked for in vain,
 * debug_state.c and state.c tell of it.
 *
 * A walk over all types is cheap beside what leads to it: a request that goes on to the API server, or
 * a second that went by.
 */
#include "serve/demand.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/metrics.h"
#include "rest/discovery.h"

#define QUIET_PART 30 /* of idle_ms: used within that is in use */

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

static bool matches(const char *pattern, const char *group, const char *resource)
{
    size_t len = strcspn(pattern, ".");

    if (strncmp(pattern, "*.", 2) == 0)
        return strcmp(pattern + 2, group) == 0;
    return strlen(resource) == len && strncmp(pattern, resource, len) == 0 &&
           (pattern[len] == '\0' || strcmp(pattern + len + 1, group) == 0);
}

static bool is_among(const char *const *patterns, size_t n_patterns, const char *group,
                     const char *resource)
{
    for (size_t i = 0; i < n_patterns; i++) {
        if (matches(patterns[i], group, resource))
            return true;
    }
    return false;
}

/* NULL: nothing is against it. */
static const char *forbidden_by_rules(const struct kinf__demand_rules *rules, const char *group,
                                      const char *resource)
{
    if (is_among(rules->excludes, rules->n_excludes, group, resource))
        return "onDemand.exclude names it";
    if (*group == '\0' && strcmp(resource, "secrets") == 0 &&
        !is_among(rules->includes, rules->n_includes, group, resource))
        return "Secrets are cached only if onDemand.include or resources names them";
    return NULL;
}

static const char *forbidden(const struct kinf__demand_rules *rules,
                             const struct kinf__demand_request *request)
{
    if (!kinf__discovery_has_word(request->verbs, "list"))
        return "the API server offers no list of it";
    if (!kinf__discovery_has_word(request->verbs, "watch"))
        return "the API server offers no watch of it";
    return forbidden_by_rules(rules, request->group, request->resource);
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

static bool is_active(const struct kinf__demand_type *type)
{
    return type->state == KINF__DEMAND_STARTING || type->state == KINF__DEMAND_CACHED;
}

/* --- being asked --- */

static void ask(struct kinf__demand *demand, struct kinf__demand_type *type,
                const struct kinf__demand_request *request, int64_t now_ms)
{
    const char *against = forbidden(&demand->rules, request);

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

static size_t count(struct kinf__demand *demand, enum kinf__demand_state state)
{
    size_t n = 0;

    KINF__LIST_FOR_EACH (node, &demand->types)
        n += KINF__LIST_ENTRY(node, struct kinf__demand_type, node)->state == state;
    return n;
}

static size_t count_active(struct kinf__demand *demand)
{
    return count(demand, KINF__DEMAND_STARTING) + count(demand, KINF__DEMAND_CACHED);
}

/* D7 */
static bool may_start(struct kinf__demand *demand, int64_t now_ms)
{
    const int64_t row_ms = (KINF__DEMAND_IN_A_ROW - 1) * KINF__DEMAND_START_MS;

    return count(demand, KINF__DEMAND_STARTING) < KINF__DEMAND_AT_ONCE &&
           now_ms >= demand->start_credit_ms - row_ms;
}

/* Of those that wait, who has waited longest. */
static struct kinf__demand_type *first_queued(struct kinf__demand *demand)
{
    struct kinf__demand_type *first = NULL;

    KINF__LIST_FOR_EACH (node, &demand->types) {
        struct kinf__demand_type *type = KINF__LIST_ENTRY(node, struct kinf__demand_type, node);

        if (type->state == KINF__DEMAND_QUEUED &&
            (first == NULL || type->since_ms < first->since_ms))
            first = type;
    }
    return first;
}

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
    struct kinf__demand_type *type;

    kinf__mutex_lock(&demand->lock);
    forget_old(demand, now_ms);
    type = first_queued(demand);
    if (type != NULL && !may_start(demand, now_ms)) {
        set_reason(type, "waits for its turn: many other types were started just now");
        type = NULL;
    } else if (type != NULL && count_active(demand) >= demand->rules.max_types) {
        snprintf(type->reason, sizeof type->reason,
                 "onDemand.maxTypes (%" PRIu64 ") are cached, and all of them are in use",
                 demand->rules.max_types);
        type = NULL;
    }
    if (type != NULL)
        begin(demand, type, now_ms);
    kinf__mutex_unlock(&demand->lock);
    return type;
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

/* `reason` NULL: it has one. */
static void give_up(struct kinf__demand *demand, struct kinf__demand_type *type,
                    enum kinf__demand_cause cause, const char *reason, int64_t now_ms)
{
    if (cause == KINF__DEMAND_TYPES || cause == KINF__DEMAND_BYTES ||
        cause == KINF__DEMAND_REFUSED || cause == KINF__DEMAND_STALE)
        stay_away(type, now_ms);
    enter(type, KINF__DEMAND_LEAVING, now_ms);
    if (reason != NULL)
        set_reason(type, reason);
    demand->n_given_up[cause]++;
}

/* When it was used last. */
static int64_t used_ms(const struct kinf__demand_type *type)
{
    return type->use.last_ms > type->since_ms ? type->use.last_ms : type->since_ms;
}

/* How soon one has to go, of those that might; 0: not at all. */
typedef int rank_fn(const struct kinf__demand_type *type, const struct kinf__demand_rules *rules,
                    int64_t now_ms);

/* The first to go; of several the least recently used. */
static struct kinf__demand_type *find_first(struct kinf__demand *demand, rank_fn *rank,
                                            int64_t now_ms)
{
    struct kinf__demand_type *first = NULL;
    int first_rank = 0;

    KINF__LIST_FOR_EACH (node, &demand->types) {
        struct kinf__demand_type *type = KINF__LIST_ENTRY(node, struct kinf__demand_type, node);
        int its_rank = is_active(type) ? rank(type, &demand->rules, now_ms) : 0;

        if (its_rank != 0 && (first == NULL || its_rank < first_rank ||
                              (its_rank == first_rank && used_ms(type) < used_ms(first)))) {
            first = type;
            first_rank = its_rank;
        }
    }
    return first;
}

static int rank_idle(const struct kinf__demand_type *type, const struct kinf__demand_rules *rules,
                     int64_t now_ms)
{
    int64_t last_ms = used_ms(type);

    if (type->state == KINF__DEMAND_STARTING && type->asked_ms > last_ms)
        last_ms = type->asked_ms;
    return type->use.n_watches == 0 && now_ms - last_ms >= rules->idle_ms;
}

/* D8 */
static int rank_failing(const struct kinf__demand_type *type,
                        const struct kinf__demand_rules *rules, int64_t now_ms)
{
    (void)rules;
    return type->state == KINF__DEMAND_STARTING && type->is_failing &&
           now_ms - type->since_ms >= KINF__DEMAND_TRY_MS;
}

static int rank_forbidden(const struct kinf__demand_type *type,
                          const struct kinf__demand_rules *rules, int64_t now_ms)
{
    (void)now_ms;
    return !rules->is_enabled || forbidden_by_rules(rules, type->group, type->resource) != NULL;
}

static bool is_quiet(const struct kinf__demand_type *type, const struct kinf__demand_rules *rules,
                     int64_t now_ms)
{
    return type->state == KINF__DEMAND_CACHED && type->use.n_watches == 0 &&
           now_ms - used_ms(type) >= rules->idle_ms / QUIET_PART;
}

/* D4, for a newcomer. */
static int rank_quiet(const struct kinf__demand_type *type, const struct kinf__demand_rules *rules,
                      int64_t now_ms)
{
    return is_quiet(type, rules, now_ms);
}

/* D5, and for types that are too many since the limit was lowered. */
static int rank_any(const struct kinf__demand_type *type, const struct kinf__demand_rules *rules,
                    int64_t now_ms)
{
    if (is_quiet(type, rules, now_ms))
        return 1;
    if (type->state == KINF__DEMAND_STARTING)
        return 2;
    return type->use.n_watches == 0 ? 3 : 4;
}

static uint64_t mega(uint64_t bytes)
{
    return (bytes + (1 << 20) - 1) >> 20;
}

/* All, or (`watched`) what cannot make way. */
static uint64_t sum_bytes(struct kinf__demand *demand, bool watched)
{
    uint64_t sum = 0;

    KINF__LIST_FOR_EACH (node, &demand->types) {
        const struct kinf__demand_type *type =
            KINF__LIST_ENTRY(node, struct kinf__demand_type, node);

        if (is_active(type) && (!watched || type->use.n_watches != 0))
            sum += type->use.bytes;
    }
    return sum;
}

/* What cannot have room, whoever makes way: of what nobody watches. */
static struct kinf__demand_type *find_too_large(struct kinf__demand *demand)
{
    uint64_t kept = sum_bytes(demand, true), max = demand->rules.max_bytes;

    KINF__LIST_FOR_EACH (node, &demand->types) {
        struct kinf__demand_type *type = KINF__LIST_ENTRY(node, struct kinf__demand_type, node);

        if (is_active(type) && type->use.n_watches == 0 && kept + type->use.expected > max)
            return type;
    }
    return NULL;
}

static struct kinf__demand_type *end_for_bytes(struct kinf__demand *demand, int64_t now_ms)
{
    uint64_t max = demand->rules.max_bytes, sum = sum_bytes(demand, false);
    struct kinf__demand_type *type = find_too_large(demand);
    char reason[KINF__DEMAND_REASON_MAX];

    if (type != NULL) {
        snprintf(reason, sizeof reason,
                 "too large: a list of it takes about %" PRIu64 " MiB, and other types that are "
                 "watched take %" PRIu64 "; onDemand.maxBytes is %" PRIu64 " MiB",
                 mega(type->use.expected), mega(sum_bytes(demand, true)), mega(max));
    } else if (sum > max) {
        type = find_first(demand, rank_any, now_ms);
        snprintf(reason, sizeof reason,
                 "made room: types on demand took %" PRIu64 " MiB, this one %" PRIu64
                 "; onDemand.maxBytes is %" PRIu64 " MiB",
                 mega(sum), mega(type->use.bytes), mega(max));
    }
    if (type != NULL)
        give_up(demand, type, KINF__DEMAND_BYTES, reason, now_ms);
    return type;
}

static struct kinf__demand_type *end_for_types(struct kinf__demand *demand, int64_t now_ms)
{
    size_t n = count_active(demand), max = demand->rules.max_types;
    struct kinf__demand_type *type = NULL;
    char reason[KINF__DEMAND_REASON_MAX];

    if (n > max)
        type = find_first(demand, rank_any, now_ms);
    else if (n == max && first_queued(demand) != NULL && may_start(demand, now_ms))
        type = find_first(demand, rank_quiet, now_ms);
    if (type == NULL)
        return NULL;
    snprintf(reason, sizeof reason,
             "made room for another type: onDemand.maxTypes is %zu, and this one was not in use",
             max);
    give_up(demand, type, KINF__DEMAND_TYPES, reason, now_ms);
    return type;
}

static struct kinf__demand_type *end_for_rules(struct kinf__demand *demand, int64_t now_ms)
{
    struct kinf__demand_type *type = find_first(demand, rank_forbidden, now_ms);
    const struct kinf__demand_rules *rules = &demand->rules;

    if (type != NULL) {
        give_up(demand, type, KINF__DEMAND_RULES,
                rules->is_enabled ? forbidden_by_rules(rules, type->group, type->resource)
                                  : "onDemand is off",
                now_ms);
        return type;
    }
    type = find_first(demand, rank_idle, now_ms);
    if (type != NULL) {
        give_up(demand, type, KINF__DEMAND_IDLE, "nobody used it for onDemand.idle", now_ms);
        return type;
    }
    type = find_first(demand, rank_failing, now_ms);
    if (type != NULL)
        give_up(demand, type, KINF__DEMAND_REFUSED, NULL, now_ms);
    return type;
}

/* D10. For how long something has been so, of which the API server's absence is not the reason. */
static int64_t lasts_ms(const struct kinf__demand *demand, int64_t since_ms, int64_t now_ms)
{
    return now_ms - (since_ms > demand->unanswered_ms ? since_ms : demand->unanswered_ms);
}

static struct kinf__demand_type *give_up_stale(struct kinf__demand *demand,
                                               struct kinf__demand_type *type, int64_t now_ms)
{
    char reason[KINF__DEMAND_REASON_MAX];

    if (type->is_failing && lasts_ms(demand, type->failing_ms, now_ms) >= KINF__DEMAND_TRY_MS)
        snprintf(reason, sizeof reason, "could not be kept fresh, %.280s", type->reason);
    else if (lasts_ms(demand, type->use.contact_ms, now_ms) >= demand->rules.max_staleness_ms)
        snprintf(reason, sizeof reason,
                 "could not be kept fresh, nothing came of it for %" PRId64 " s",
                 (now_ms - type->use.contact_ms) / 1000);
    else
        return NULL;
    give_up(demand, type, KINF__DEMAND_STALE, reason, now_ms);
    return type;
}

static struct kinf__demand_type *end_for_staleness(struct kinf__demand *demand, int64_t now_ms)
{
    struct kinf__demand_type *gone = NULL;

    if (demand->answered_ms == 0 || now_ms - demand->answered_ms > 2 * KINF__DEMAND_PROBE_MS)
        return NULL;
    KINF__LIST_FOR_EACH (node, &demand->types) {
        struct kinf__demand_type *type = KINF__LIST_ENTRY(node, struct kinf__demand_type, node);

        if (gone == NULL && type->state == KINF__DEMAND_CACHED)
            gone = give_up_stale(demand, type, now_ms);
    }
    return gone;
}

struct kinf__demand_type *kinf__demand_next_end(struct kinf__demand *demand, int64_t now_ms)
{
    struct kinf__demand_type *type;

    kinf__mutex_lock(&demand->lock);
    type = end_for_rules(demand, now_ms);
    if (type == NULL)
        type = end_for_staleness(demand, now_ms);
    if (type == NULL)
        type = end_for_bytes(demand, now_ms);
    if (type == NULL)
        type = end_for_types(demand, now_ms);
    kinf__mutex_unlock(&demand->lock);
    return type;
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

/* In time: who goes for silence has been in doubt for a minute. */
static bool is_in_doubt(const struct kinf__demand *demand, const struct kinf__demand_type *type,
                        int64_t now_ms)
{
    return type->state == KINF__DEMAND_CACHED &&
           (type->is_failing ||
            now_ms - type->use.contact_ms >= demand->rules.max_staleness_ms - KINF__DEMAND_TRY_MS);
}

bool kinf__demand_take_probe(struct kinf__demand *demand, int64_t now_ms)
{
    bool is_due = false;

    kinf__mutex_lock(&demand->lock);
    if (now_ms >= demand->probe_ms) {
        KINF__LIST_FOR_EACH (node, &demand->types)
            is_due =
                is_due ||
                is_in_doubt(demand, KINF__LIST_ENTRY(node, struct kinf__demand_type, node), now_ms);
    }
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
    has_queued = first_queued(demand) != NULL;
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
    kinf__report_count(report, "bytes", sum_bytes(demand, false));
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
    counts->n_types = count(demand, KINF__DEMAND_CACHED);
    counts->n_waiting = count(demand, KINF__DEMAND_QUEUED);
    counts->n_away = count_away(demand, now_ms);
    counts->bytes = sum_bytes(demand, false);
    counts->n_starts = demand->n_starts;
    memcpy(counts->n_given_up, demand->n_given_up, sizeof counts->n_given_up);
    kinf__mutex_unlock(&demand->lock);
}

static int write_number(struct kinf__buffer *out, enum kinf__metric_type type, const char *name,
                        const char *help, uint64_t value)
{
    int failed = kinf__metrics_family(out, name, type, help);

    return failed < 0 ? failed : kinf__metrics_sample(out, name, NULL, 0, value, 0);
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

static int write_gauges(struct kinf__buffer *out, const struct counts *counts)
{
    const struct {
        const char *name, *help;
        uint64_t value;
    } gauges[] = {
        { "kinformer_on_demand_types", "Types that are cached since they were asked for.",
          counts->n_types },
        { "kinformer_on_demand_waiting_types",
          "Types that are to be cached and wait for a place, or for their turn.",
          counts->n_waiting },
        { "kinformer_on_demand_away_types",
          "Types that stay away for a while, since they were refused, stale or too much.",
          counts->n_away },
        { "kinformer_on_demand_bytes",
          "Memory of those that are cached and of the ones that are started, about.",
          counts->bytes },
    };
    int failed = 0;

    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(gauges); i++)
        failed =
            write_number(out, KINF__METRIC_GAUGE, gauges[i].name, gauges[i].help, gauges[i].value);
    return failed;
}

int kinf__demand_write_metrics(struct kinf__demand *demand, int64_t now_ms,
                               struct kinf__buffer *out)
{
    struct counts counts = { 0 };
    int failed;

    if (demand != NULL)
        read_counts(demand, now_ms, &counts);
    failed = write_gauges(out, &counts);
    if (failed == 0)
        failed = write_number(out, KINF__METRIC_COUNTER, "kinformer_on_demand_starts_total",
                              "Types whose cache was started since they were asked for.",
                              counts.n_starts);
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
