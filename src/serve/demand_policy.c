/*
 * What is taken up, what has to go, and why. Nothing is changed here: the same types at the same time
 * lead to the same choice, and demand.c carries it out.
 *
 * A walk over all types is cheap beside what leads to it: a request that goes on to the API server, or
 * a second that went by.
 */
#include "serve/demand_policy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "rest/discovery.h"

#define QUIET_PART 30 /* of idle_ms: used within that is in use */

/* --- the rules --- */

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

static const char *unfit(const char *verbs)
{
    if (!kinf__has_word(verbs, "list"))
        return "the API server offers no list of it";
    return kinf__has_word(verbs, "watch") ? NULL : "the API server offers no watch of it";
}

/* OpenShift's, and Rancher's: a cache would show everybody what it was shown itself. */
static bool depends_on_who_asks(const char *group)
{
    return strcmp(group, "project.openshift.io") == 0 || strcmp(group, "ext.cattle.io") == 0;
}

const char *kinf__demand_forbids(const struct kinf__demand_rules *rules, const char *group,
                                 const char *resource, const char *verbs)
{
    const char *why = verbs != NULL ? unfit(verbs) : NULL;

    if (why != NULL)
        return why;
    if (is_among(rules->excludes, rules->n_excludes, group, resource))
        return "onDemand.exclude names it";
    if (*group == '\0' && strcmp(resource, "secrets") == 0 &&
        !is_among(rules->includes, rules->n_includes, group, resource))
        return "Secrets are cached only if onDemand.include or resources names them";
    return depends_on_who_asks(group) ? "the API server shows each caller its own" : NULL;
}

/* --- counting --- */

static bool is_active(const struct kinf__demand_type *type)
{
    return type->state == KINF__DEMAND_STARTING || type->state == KINF__DEMAND_CACHED;
}

size_t kinf__demand_count(const struct kinf__demand *demand, enum kinf__demand_state state)
{
    size_t n = 0;

    KINF__LIST_FOR_EACH (node, &demand->types)
        n += KINF__LIST_ENTRY(node, struct kinf__demand_type, node)->state == state;
    return n;
}

static size_t count_active(const struct kinf__demand *demand)
{
    return kinf__demand_count(demand, KINF__DEMAND_STARTING) +
           kinf__demand_count(demand, KINF__DEMAND_CACHED);
}

/* All, or (`watched`) what cannot make way. */
static uint64_t sum_bytes(const struct kinf__demand *demand, bool watched)
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

uint64_t kinf__demand_bytes(const struct kinf__demand *demand)
{
    return sum_bytes(demand, false);
}

/* --- who is next to start --- */

/* D7 */
static bool may_start(const struct kinf__demand *demand, int64_t now_ms)
{
    const int64_t row_ms = (KINF__DEMAND_IN_A_ROW - 1) * KINF__DEMAND_START_MS;

    return kinf__demand_count(demand, KINF__DEMAND_STARTING) < KINF__DEMAND_AT_ONCE &&
           now_ms >= demand->start_credit_ms - row_ms;
}

/* Of those that wait, who has waited longest. */
static struct kinf__demand_type *first_queued(const struct kinf__demand *demand)
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

void kinf__demand_choose_start(const struct kinf__demand *demand, int64_t now_ms,
                               struct kinf__demand_choice *ret_choice)
{
    *ret_choice = (struct kinf__demand_choice){ .type = first_queued(demand) };
    if (!may_start(demand, now_ms))
        snprintf(ret_choice->reason, sizeof ret_choice->reason,
                 "waits for its turn: many other types were started just now");
    else if (count_active(demand) >= demand->rules.max_types)
        snprintf(ret_choice->reason, sizeof ret_choice->reason,
                 "onDemand.maxTypes (%" PRIu64 ") are cached, and all of them are in use",
                 demand->rules.max_types);
}

/* --- who has to go --- */

/* When it was used last. */
static int64_t used_ms(const struct kinf__demand_type *type)
{
    return type->use.last_ms > type->since_ms ? type->use.last_ms : type->since_ms;
}

/* How soon one has to go, of those that might; 0: not at all. */
typedef int rank_fn(const struct kinf__demand *demand, const struct kinf__demand_type *type,
                    int64_t now_ms);

/* The first to go; of several the least recently used. */
static struct kinf__demand_type *find_first(const struct kinf__demand *demand, rank_fn *rank,
                                            int64_t now_ms)
{
    struct kinf__demand_type *first = NULL;
    int first_rank = 0;

    KINF__LIST_FOR_EACH (node, &demand->types) {
        struct kinf__demand_type *type = KINF__LIST_ENTRY(node, struct kinf__demand_type, node);
        int its_rank = is_active(type) ? rank(demand, type, now_ms) : 0;

        if (its_rank != 0 && (first == NULL || its_rank < first_rank ||
                              (its_rank == first_rank && used_ms(type) < used_ms(first)))) {
            first = type;
            first_rank = its_rank;
        }
    }
    return first;
}

static const char *forbidden(const struct kinf__demand *demand,
                             const struct kinf__demand_type *type)
{
    if (!demand->rules.is_enabled)
        return "onDemand is off";
    return kinf__demand_forbids(&demand->rules, type->group, type->resource, NULL);
}

static int rank_forbidden(const struct kinf__demand *demand, const struct kinf__demand_type *type,
                          int64_t now_ms)
{
    (void)now_ms;
    return forbidden(demand, type) != NULL;
}

static int rank_idle(const struct kinf__demand *demand, const struct kinf__demand_type *type,
                     int64_t now_ms)
{
    int64_t last_ms = used_ms(type);

    if (type->state == KINF__DEMAND_STARTING && type->asked_ms > last_ms)
        last_ms = type->asked_ms;
    return type->use.n_watches == 0 && now_ms - last_ms >= demand->rules.idle_ms;
}

/* D8 */
static int rank_refused(const struct kinf__demand *demand, const struct kinf__demand_type *type,
                        int64_t now_ms)
{
    (void)demand;
    return type->state == KINF__DEMAND_STARTING && type->is_failing &&
           now_ms - type->since_ms >= KINF__DEMAND_TRY_MS;
}

/* For how long something has been so that the API server's absence does not explain. */
static int64_t lasts_ms(const struct kinf__demand *demand, int64_t since_ms, int64_t now_ms)
{
    return now_ms - (since_ms > demand->unanswered_ms ? since_ms : demand->unanswered_ms);
}

static bool fails_for_long(const struct kinf__demand *demand, const struct kinf__demand_type *type,
                           int64_t now_ms)
{
    return type->is_failing &&
           lasts_ms(demand, type->failing_ms, now_ms) >= KINF__DEMAND_FAILING_MS;
}

/* D10 */
static int rank_stale(const struct kinf__demand *demand, const struct kinf__demand_type *type,
                      int64_t now_ms)
{
    return type->state == KINF__DEMAND_CACHED && demand->answered_ms != 0 &&
           now_ms - demand->answered_ms <= 2 * KINF__DEMAND_PROBE_MS &&
           (fails_for_long(demand, type, now_ms) ||
            lasts_ms(demand, type->use.contact_ms, now_ms) >= demand->rules.max_staleness_ms);
}

/* In time: what goes for silence has been in doubt for a minute. */
static int rank_doubtful(const struct kinf__demand *demand, const struct kinf__demand_type *type,
                         int64_t now_ms)
{
    return type->state == KINF__DEMAND_CACHED &&
           (type->is_failing ||
            now_ms - type->use.contact_ms >= demand->rules.max_staleness_ms - KINF__DEMAND_TRY_MS);
}

bool kinf__demand_is_in_doubt(const struct kinf__demand *demand, int64_t now_ms)
{
    return find_first(demand, rank_doubtful, now_ms) != NULL;
}

/* D4, for a newcomer. */
static int rank_quiet(const struct kinf__demand *demand, const struct kinf__demand_type *type,
                      int64_t now_ms)
{
    return type->state == KINF__DEMAND_CACHED && type->use.n_watches == 0 &&
           now_ms - used_ms(type) >= demand->rules.idle_ms / QUIET_PART;
}

/* D5, and for types that are too many since the limit was lowered. */
static int rank_any(const struct kinf__demand *demand, const struct kinf__demand_type *type,
                    int64_t now_ms)
{
    if (rank_quiet(demand, type, now_ms))
        return 1;
    if (type->state == KINF__DEMAND_STARTING)
        return 2;
    return type->use.n_watches == 0 ? 3 : 4;
}

/* What cannot have room, whoever makes way: of what nobody watches. */
static int rank_too_large(const struct kinf__demand *demand, const struct kinf__demand_type *type,
                          int64_t now_ms)
{
    (void)now_ms;
    return type->use.n_watches == 0 &&
           sum_bytes(demand, true) + type->use.expected > demand->rules.max_bytes;
}

static uint64_t mega(uint64_t bytes)
{
    return (bytes + (1 << 20) - 1) >> 20;
}

static bool choose_for_itself(const struct kinf__demand *demand, int64_t now_ms,
                              struct kinf__demand_choice *choice)
{
    static const struct {
        rank_fn *rank;
        enum kinf__demand_cause cause;
    } causes[] = { { rank_forbidden, KINF__DEMAND_RULES },
                   { rank_idle, KINF__DEMAND_IDLE },
                   { rank_refused, KINF__DEMAND_REFUSED },
                   { rank_stale, KINF__DEMAND_STALE } };

    for (size_t i = 0; choice->type == NULL && i < KINF__ARRAY_LEN(causes); i++) {
        choice->type = find_first(demand, causes[i].rank, now_ms);
        choice->cause = causes[i].cause;
    }
    return choice->type != NULL;
}

static void explain(const struct kinf__demand *demand, int64_t now_ms,
                    struct kinf__demand_choice *choice)
{
    const struct kinf__demand_type *type = choice->type;
    char *reason = choice->reason;
    const size_t size = sizeof choice->reason;

    if (choice->cause == KINF__DEMAND_RULES)
        snprintf(reason, size, "%s", forbidden(demand, type));
    else if (choice->cause == KINF__DEMAND_IDLE)
        snprintf(reason, size, "nobody used it for onDemand.idle");
    else if (choice->cause == KINF__DEMAND_REFUSED)
        snprintf(reason, size, "%s", type->reason);
    else if (fails_for_long(demand, type, now_ms))
        snprintf(reason, size, "could not be kept fresh, %.280s", type->reason);
    else
        snprintf(reason, size, "could not be kept fresh, nothing came of it for %" PRId64 " s",
                 (now_ms - type->use.contact_ms) / 1000);
}

static bool choose_for_bytes(const struct kinf__demand *demand, int64_t now_ms,
                             struct kinf__demand_choice *choice)
{
    uint64_t max = demand->rules.max_bytes, sum = sum_bytes(demand, false);

    choice->cause = KINF__DEMAND_BYTES;
    choice->type = find_first(demand, rank_too_large, now_ms);
    if (choice->type != NULL) {
        snprintf(choice->reason, sizeof choice->reason,
                 "too large: a list of it takes about %" PRIu64 " MiB, and other types that are "
                 "watched take %" PRIu64 "; onDemand.maxBytes is %" PRIu64 " MiB",
                 mega(choice->type->use.expected), mega(sum_bytes(demand, true)), mega(max));
    } else if (sum > max) {
        choice->type = find_first(demand, rank_any, now_ms);
        snprintf(choice->reason, sizeof choice->reason,
                 "made room: types on demand took %" PRIu64 " MiB, this one %" PRIu64
                 "; onDemand.maxBytes is %" PRIu64 " MiB",
                 mega(sum), mega(choice->type->use.bytes), mega(max));
    }
    return choice->type != NULL;
}

static void choose_for_types(const struct kinf__demand *demand, int64_t now_ms,
                             struct kinf__demand_choice *choice)
{
    size_t n = count_active(demand), max = demand->rules.max_types;

    choice->cause = KINF__DEMAND_TYPES;
    if (n > max) {
        choice->type = find_first(demand, rank_any, now_ms);
        snprintf(choice->reason, sizeof choice->reason,
                 "onDemand.maxTypes is %zu by now, and there were %zu", max, n);
    } else if (n == max && first_queued(demand) != NULL && may_start(demand, now_ms)) {
        choice->type = find_first(demand, rank_quiet, now_ms);
        snprintf(
            choice->reason, sizeof choice->reason,
            "made room for another type: onDemand.maxTypes is %zu, and this one was not in use",
            max);
    }
}

void kinf__demand_choose_end(const struct kinf__demand *demand, int64_t now_ms,
                             struct kinf__demand_choice *ret_choice)
{
    *ret_choice = (struct kinf__demand_choice){ .type = NULL };
    if (choose_for_itself(demand, now_ms, ret_choice))
        explain(demand, now_ms, ret_choice);
    else if (!choose_for_bytes(demand, now_ms, ret_choice))
        choose_for_types(demand, now_ms, ret_choice);
}
