/*
 * From what was asked for to running watches. Neighbours: serve/demand.c decides, errand.c has the
 * thread that asks the server, watch.c runs informers.
 */
#include "daemon/on_demand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kinformer/request.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "serve/definitions.h"
#include "serve/encode.h"
#include "watchcache/watchcache.h"

#define SOON_MS  100   /* while something starts or ends */
#define LATER_MS 2000  /* while anything is cached: it may grow, or not be used any more */
#define DRAIN_MS 30000 /* for requests under way, before they are cut off */

/* --- what a watch tells --- */

static void wake(void *ctx)
{
    kinf__waker_set(((struct kinf__on_demand *)ctx)->watches->wake);
}

/* Its state says the rest. */
static bool on_error(const char *resource, bool has_synced, const struct kinf_error *err, void *ctx)
{
    (void)resource;
    (void)has_synced;
    (void)err;
    wake(ctx);
    return true;
}

/* Nothing is printed. */
static void on_output_failure(const struct kinf_error *err, void *ctx)
{
    (void)err;
    (void)ctx;
}

/* --- entries --- */

static void free_entry(struct kinf__on_demand_entry *entry)
{
    kinf__watch_free(entry->watch);
    kinf__resource_config_release(&entry->config);
    kinf__list_remove(&entry->node);
    free(entry);
}

static int fill_config(const struct kinf__on_demand *on_demand,
                       const struct kinf__demand_type *type, struct kinf__resource_config *config)
{
    char name[KINF__DEMAND_NAME_SIZE];
    const struct kinf__strings *drops = &on_demand->watches->config.on_demand.drops;

    config->is_on_demand = true;
    config->serve = KINF__CHOICE_YES;
    config->resource = strdup(kinf__demand_name(type, name, sizeof name));
    if (config->resource == NULL)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < drops->n_items; i++) {
        if (kinf__strings_add(&config->drops, drops->items[i]) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

/* Returns false without memory. */
static bool add_entry(struct kinf__on_demand *on_demand, struct kinf__demand_type *type)
{
    struct kinf__on_demand_entry *entry = calloc(1, sizeof *entry);

    if (entry == NULL)
        return false;
    entry->type = type;
    kinf__list_push_back(&on_demand->fresh, &entry->node);
    if (fill_config(on_demand, type, &entry->config) < 0) {
        free_entry(entry);
        return false;
    }
    return true;
}

static struct kinf__on_demand_entry *find_entry(const struct kinf__list *entries,
                                                const struct kinf__demand_type *type)
{
    KINF__LIST_FOR_EACH (node, entries) {
        struct kinf__on_demand_entry *entry =
            KINF__LIST_ENTRY(node, struct kinf__on_demand_entry, node);

        if (entry->type == type)
            return entry;
    }
    return NULL;
}

static struct kinf__source *source_of(const struct kinf__on_demand_entry *entry)
{
    return entry->watch->sources[0];
}

/* In "deployments.apps". */
static const char *dot_before(const char *group)
{
    return *group != '\0' ? "." : "";
}

/* --- giving up --- */

static void tell_given_up(const struct kinf__on_demand_entry *entry)
{
    KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_INFO, "given up resource=%s%s%s reason=%s",
              entry->type->resource, dot_before(entry->type->group), entry->type->group,
              KINF__QUOTED(entry->type->reason));
}

/* The decision has been made, and its reason is the type's. */
static void withdraw(struct kinf__on_demand *on_demand, struct kinf__on_demand_entry *entry,
                     int64_t now_ms)
{
    struct kinf__server *server = on_demand->watches->serving->server;

    tell_given_up(entry);
    entry->is_given_up = true;
    entry->until_ms = kinf__clock_add_ms(now_ms, DRAIN_MS);
    if (entry->is_running)
        kinf__server_withdraw_source(server, source_of(entry));
}

static void give_up(struct kinf__on_demand *on_demand, struct kinf__on_demand_entry *entry,
                    enum kinf__demand_cause cause, const char *reason)
{
    int64_t now_ms = kinf__clock_now_ms();

    kinf__demand_give_up(on_demand->demand, entry->type, cause, reason, now_ms);
    withdraw(on_demand, entry, now_ms);
}

static void end_what_is_due(struct kinf__on_demand *on_demand, int64_t now_ms)
{
    struct kinf__demand_type *type;

    while ((type = kinf__demand_next_end(on_demand->demand, now_ms)) != NULL) {
        struct kinf__on_demand_entry *entry = find_entry(&on_demand->entries, type);

        if (entry == NULL)
            entry = find_entry(&on_demand->fresh, type);
        withdraw(on_demand, entry, now_ms);
    }
}

static void end_entry(struct kinf__on_demand *on_demand, struct kinf__on_demand_entry *entry)
{
    struct kinf__demand_type *type = entry->type;

    free_entry(entry);
    kinf__demand_note_gone(on_demand->demand, type, kinf__clock_now_ms());
}

/* --- looking after those that run --- */

/* About what a first list that is under way will have brought. */
static uint64_t expect_bytes(const struct kinf_informer_status *status, uint64_t bytes)
{
    if (status->n_list_objects == 0 || status->n_list_expected <= status->n_list_objects)
        return bytes;
    return bytes / status->n_list_objects * status->n_list_expected;
}

static void note_use(struct kinf__on_demand *on_demand, const struct kinf__on_demand_entry *entry,
                     const struct kinf_informer_status *status,
                     const struct kinf__source_use *source, int64_t now_ms)
{
    struct kinf__demand_use use = { .bytes = source->bytes + status->queued_bytes,
                                    .n_watches = source->n_watches,
                                    .last_ms = source->last_ms,
                                    .contact_ms = status->last_contact_ms };

    if (!status->has_synced && status->list_bytes > use.bytes)
        use.bytes = status->list_bytes;
    use.expected = status->has_synced ? use.bytes : expect_bytes(status, use.bytes);
    kinf__demand_note_use(on_demand->demand, entry->type, &use, now_ms);
}

static void publish(struct kinf__on_demand *on_demand, struct kinf__on_demand_entry *entry,
                    int64_t now_ms)
{
    KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_INFO, "cached resource=%s%s%s", entry->type->resource,
              dot_before(entry->type->group), entry->type->group);
    kinf__watch_publish(entry->watch);
    kinf__demand_note_cached(on_demand->demand, entry->type, now_ms);
}

/* Without rights, and of what is gone, nothing newer comes: whoever asks is better off upstream. */
static void refuse(struct kinf__on_demand *on_demand, struct kinf__on_demand_entry *entry,
                   const struct kinf_informer_status *status)
{
    char reason[KINF__DEMAND_REASON_MAX];

    snprintf(reason, sizeof reason, "%s: %.200s",
             status->state == KINF_STATE_FORBIDDEN
                 ? "kinformerd itself may not list and watch it in all namespaces"
                 : "the API server has it no more",
             status->reason);
    give_up(on_demand, entry, KINF__DEMAND_REFUSED, reason);
}

static bool is_live(const struct kinf_informer_status *status)
{
    return status->has_synced &&
           (status->state == KINF_STATE_LIVE || status->state == KINF_STATE_DEGRADED);
}

/* A cache of what has no order would never be there: of nothing could be said whether it is newer. */
static bool has_numbers(const struct kinf__on_demand_entry *entry)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot =
        kinf_indexer_snapshot(kinf_informer_indexer(entry->watch->informers[0]));

    return kinf__watchcache_parse_rv(kinf_snapshot_resource_version(snapshot)) != 0;
}

static bool is_refused(const struct kinf_informer_status *status)
{
    return status->state == KINF_STATE_FORBIDDEN || status->state == KINF_STATE_ABSENT;
}

/* A server that starts refuses what it will allow, and what a proxy does not know may be there: of what is
 * cached it is over when the objects are gone, too. Until then it is a failure like any other. */
static bool is_refused_for_good(const struct kinf__on_demand_entry *entry,
                                const struct kinf_informer_status *status)
{
    return entry->type->state == KINF__DEMAND_STARTING
               ? is_refused(status)
               : status->state == KINF_STATE_ABSENT && status->n_objects == 0;
}

/* A watch that is open is the end of it; that a request is under way again is not, once the type is
 * cached. */
static void note_trouble(struct kinf__on_demand *on_demand,
                         const struct kinf__on_demand_entry *entry,
                         const struct kinf_informer_status *status, int64_t now_ms)
{
    bool is_failing = status->state == KINF_STATE_BACKING_OFF || is_refused(status);

    if (is_failing || entry->type->state == KINF__DEMAND_STARTING ||
        status->state != KINF_STATE_LISTING)
        kinf__demand_note_trouble(on_demand->demand, entry->type,
                                  is_failing ? status->reason : NULL, now_ms);
}

/* What the configuration names, since a reload, is its own. */
static bool is_configured(const struct kinf__on_demand *on_demand,
                          const struct kinf__on_demand_entry *entry)
{
    const struct kinf_type *type = kinf_informer_type(entry->watch->informers[0]);
    const struct kinf__watches *watches = on_demand->watches;

    for (size_t i = 0; i < watches->n_items; i++) {
        if (kinf_informer_type(watches->items[i]->informers[0]) == type)
            return true;
    }
    return false;
}

/* Of a configuration before a reload. */
static bool drops_others(const struct kinf__on_demand *on_demand,
                         const struct kinf__on_demand_entry *entry)
{
    return !kinf__strings_equal(&entry->config.drops, &on_demand->watches->config.on_demand.drops);
}

static void look_at(struct kinf__on_demand *on_demand, struct kinf__on_demand_entry *entry,
                    int64_t now_ms)
{
    struct kinf_informer_status status;
    struct kinf__source_use use;

    kinf_informer_status(entry->watch->informers[0], &status);
    kinf__server_source_use(entry->watch->server, source_of(entry), &use);
    if (entry->is_given_up) {
        if (use.n_users == 0 || now_ms >= entry->until_ms)
            end_entry(on_demand, entry);
        return;
    }
    note_use(on_demand, entry, &status, &use, now_ms);
    if (is_refused_for_good(entry, &status))
        refuse(on_demand, entry, &status);
    else if (is_configured(on_demand, entry))
        give_up(on_demand, entry, KINF__DEMAND_RULES, "resources names it by now");
    else if (drops_others(on_demand, entry))
        give_up(on_demand, entry, KINF__DEMAND_RULES, "onDemand.drop is another one by now");
    else if (entry->type->state == KINF__DEMAND_STARTING && is_live(&status) && !has_numbers(entry))
        give_up(on_demand, entry, KINF__DEMAND_REFUSED, "its resourceVersions are no numbers");
    else if (entry->type->state == KINF__DEMAND_STARTING && is_live(&status))
        publish(on_demand, entry, now_ms);
    else
        note_trouble(on_demand, entry, &status, now_ms);
}

/* --- starting --- */

static void start_what_is_due(struct kinf__on_demand *on_demand, int64_t now_ms)
{
    struct kinf__demand_type *type;

    while ((type = kinf__demand_next_start(on_demand->demand, now_ms)) != NULL) {
        if (add_entry(on_demand, type))
            continue;
        kinf__demand_give_up(on_demand->demand, type, KINF__DEMAND_REFUSED, "out of memory",
                             now_ms);
        kinf__demand_note_gone(on_demand->demand, type, now_ms);
    }
}

bool kinf__on_demand_has_errand(const struct kinf__on_demand *on_demand)
{
    return on_demand->wants_discovery || on_demand->wants_probe ||
           !kinf__list_is_empty(&on_demand->fresh);
}

static int make(struct kinf__on_demand *on_demand, struct kinf__on_demand_entry *entry)
{
    const struct kinf__watch_owner owner = { wake, on_error, on_output_failure, on_demand };
    const struct kinf__events events = { .output = &on_demand->watches->output,
                                         .mode = KINF__EVENTS_NONE };
    struct kinf__watches *watches = on_demand->watches;

    return kinf__watch_new(watches->client, &entry->config, &events, NULL, &owner,
                           watches->serving->server, NULL, &entry->watch, &entry->err);
}

/* Whoever may not ask has been answered, too. */
static void probe(const struct kinf__on_demand *on_demand)
{
    kinf_auto_response struct kinf_response response = KINF_RESPONSE_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    int failed = kinf_client_request_raw(on_demand->watches->client, "GET", "/readyz",
                                         (struct kinf_str){ NULL, 0 }, NULL, &response, &err);

    kinf__demand_note_server(on_demand->demand,
                             failed == 0 || failed == KINF_ERR_FORBIDDEN ||
                                 failed == KINF_ERR_NOT_FOUND,
                             kinf__clock_now_ms());
}

void kinf__on_demand_prepare(struct kinf__on_demand *on_demand)
{
    struct kinf__watches *watches = on_demand->watches;
    struct kinf_error err = KINF_ERROR_INIT;
    bool is_any_custom = false;

    if (on_demand->wants_discovery &&
        kinf__serving_refresh(watches->serving, watches->client, &err) < 0)
        KINF__LOG(KINF__LOG_DAEMON, KINF_LOG_WARN,
                  "what the server has was not read again error=%s", KINF__QUOTED(err.message));
    KINF__LIST_FOR_EACH (node, &on_demand->fresh) {
        struct kinf__on_demand_entry *entry =
            KINF__LIST_ENTRY(node, struct kinf__on_demand_entry, node);

        if (make(on_demand, entry) == 0)
            is_any_custom = is_any_custom || kinf__is_custom_group(entry->type->group);
    }
    if (is_any_custom)
        kinf__definitions_fetch(watches->serving->server, watches->client);
    if (on_demand->wants_probe)
        probe(on_demand);
}

static void start_entry(struct kinf__on_demand *on_demand, struct kinf__on_demand_entry *entry)
{
    if (!entry->is_given_up && entry->watch != NULL &&
        kinf__watch_start(entry->watch, &entry->err) == 0) {
        entry->is_running = true;
        kinf__list_remove(&entry->node);
        kinf__list_push_back(&on_demand->entries, &entry->node);
        return;
    }
    if (!entry->is_given_up) {
        kinf__demand_give_up(on_demand->demand, entry->type, KINF__DEMAND_REFUSED,
                             entry->err.message, kinf__clock_now_ms());
        tell_given_up(entry);
    }
    end_entry(on_demand, entry);
}

void kinf__on_demand_take_over(struct kinf__on_demand *on_demand)
{
    on_demand->wants_discovery = false;
    on_demand->wants_probe = false;
    KINF__LIST_FOR_EACH_SAFE (node, &on_demand->fresh)
        start_entry(on_demand, KINF__LIST_ENTRY(node, struct kinf__on_demand_entry, node));
}

int64_t kinf__on_demand_look(struct kinf__on_demand *on_demand, bool is_idle)
{
    int64_t now_ms = kinf__clock_now_ms(), again_ms = LATER_MS;

    if (on_demand->demand == NULL)
        return -1;
    KINF__LIST_FOR_EACH_SAFE (node, &on_demand->entries)
        look_at(on_demand, KINF__LIST_ENTRY(node, struct kinf__on_demand_entry, node), now_ms);
    end_what_is_due(on_demand, now_ms);
    if (is_idle) {
        start_what_is_due(on_demand, now_ms);
        if (kinf__demand_take_unknown(on_demand->demand, now_ms))
            on_demand->wants_discovery = true;
        if (kinf__demand_take_probe(on_demand->demand, now_ms))
            on_demand->wants_probe = true;
    }
    KINF__LIST_FOR_EACH (node, &on_demand->entries) {
        if (KINF__LIST_ENTRY(node, struct kinf__on_demand_entry, node)->type->state !=
            KINF__DEMAND_CACHED)
            again_ms = SOON_MS;
    }
    return again_ms == SOON_MS || !kinf__list_is_empty(&on_demand->entries) ||
                   kinf__demand_has_queued(on_demand->demand)
               ? again_ms
               : -1;
}

const struct kinf__watch *kinf__on_demand_watch(const struct kinf__on_demand *on_demand, size_t i)
{
    KINF__LIST_FOR_EACH (node, &on_demand->entries) {
        if (i-- == 0)
            return KINF__LIST_ENTRY(node, struct kinf__on_demand_entry, node)->watch;
    }
    return NULL;
}

/* --- life --- */

struct kinf__demand_rules kinf__on_demand_rules(const struct kinf__config *config)
{
    const struct kinf__on_demand_config *section = &config->on_demand;

    return (struct kinf__demand_rules){
        .is_enabled = section->is_enabled,
        .idle_ms = section->idle_ms,
        .max_types = section->max_types,
        .max_bytes = section->max_bytes,
        .excludes = (const char *const *)section->excludes.items,
        .n_excludes = section->excludes.n_items,
        .includes = (const char *const *)section->includes.items,
        .n_includes = section->includes.n_items,
    };
}

void kinf__on_demand_set_rules(struct kinf__on_demand *on_demand, const struct kinf__config *config)
{
    struct kinf__demand_rules rules = kinf__on_demand_rules(config);

    rules.max_staleness_ms = on_demand->max_staleness_ms;
    if (on_demand->demand != NULL)
        kinf__demand_set_rules(on_demand->demand, &rules);
}

void kinf__on_demand_init(struct kinf__on_demand *on_demand, struct kinf__watches *watches)
{
    *on_demand = (struct kinf__on_demand){ .watches = watches,
                                           .max_staleness_ms = watches->config.max_staleness_ms };
    kinf__list_init(&on_demand->fresh);
    kinf__list_init(&on_demand->entries);
    if (watches->serving != NULL && watches->serving->forwarder != NULL)
        on_demand->demand = &watches->serving->demand;
    kinf__on_demand_set_rules(on_demand, &watches->config);
}

void kinf__on_demand_release(struct kinf__on_demand *on_demand)
{
    struct kinf__list *const lists[] = { &on_demand->entries, &on_demand->fresh };

    KINF__LIST_FOR_EACH (node, &on_demand->entries)
        kinf__watch_interrupt(KINF__LIST_ENTRY(node, struct kinf__on_demand_entry, node)->watch);
    for (size_t i = 0; i < KINF__ARRAY_LEN(lists); i++) {
        KINF__LIST_FOR_EACH_SAFE (node, lists[i])
            free_entry(KINF__LIST_ENTRY(node, struct kinf__on_demand_entry, node));
    }
}
