/*
 * Sources, and the server's life. Neighbours: exchange.c registers requests here, server_time.c does
 * what time does.
 */
#include "serve/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "informer/sink.h"
#include "serve/exchange_priv.h"
#include "serve/token.h"
#include "serve/watch.h"

#define PATIENCE_MS  2000
#define SOURCE_FILES 8 /* of an informer's connection, and of the next one while it changes */

/* --- sources --- */

static const char *const consistencies[] = {
#define X(consistency, name, what) name,
    KINF__CONSISTENCIES(X)
#undef X
};

const char *kinf__consistency_to_string(enum kinf__consistency consistency)
{
    return consistencies[consistency];
}

bool kinf__consistency_parse(const char *name, enum kinf__consistency *ret_consistency)
{
    for (size_t i = 0; i < KINF__ARRAY_LEN(consistencies); i++) {
        if (strcmp(consistencies[i], name) != 0)
            continue;
        *ret_consistency = (enum kinf__consistency)i;
        return true;
    }
    return false;
}

static void free_texts(char **texts, size_t n_texts)
{
    for (size_t i = 0; texts != NULL && i < n_texts; i++)
        free(texts[i]);
    free(texts);
}

static char **dup_texts(const char *const *texts, size_t n_texts)
{
    char **copy = calloc(n_texts + 1, sizeof *copy);
    bool is_whole = copy != NULL;

    for (size_t i = 0; is_whole && i < n_texts; i++) {
        copy[i] = strdup(texts[i]);
        is_whole = copy[i] != NULL;
    }
    if (!is_whole)
        free_texts(KINF__TAKE(copy), n_texts); /* no memory */
    return copy;
}

void kinf__source_free(struct kinf__source *source)
{
    if (source == NULL)
        return;
    kinf__watchcache_free(source->cache);
    kinf__session_release(&source->session);
    kinf__scope_release(&source->scope);
    free_texts(source->index_names, source->n_indices);
    free_texts(source->index_paths, source->n_indices);
    free(source);
}

static struct kinf__source *source_new(const struct kinf__source_options *options)
{
    struct kinf__source *source = calloc(1, sizeof *source);

    if (source == NULL)
        return NULL;
    source->informer = options->informer;
    source->store = options->store;
    source->type =
        options->informer != NULL ? kinf_informer_type(options->informer) : options->store.type;
    atomic_init(&source->table, kinf__table_for(source->type));
    source->index_names = dup_texts(options->index_names, options->n_indices);
    source->index_paths = dup_texts(options->index_paths, options->n_indices);
    source->n_indices = options->n_indices;
    source->is_pruned = options->is_pruned;
    source->assume_scope = options->assume_scope;
    source->is_unserved = options->is_unserved;
    source->serves_saved = options->serves_saved;
    source->consistency = options->consistency;
    kinf__session_init(&source->session);
    kinf__list_init(&source->watches);
    source->is_on_demand = options->is_on_demand;
    if (kinf__scope_init(&source->scope, options->name_space, options->label_selector,
                         options->field_selector, options->shard_selector,
                         options->informer != NULL ? kinf__informer_plan(options->informer)
                                                   : NULL) < 0 ||
        source->index_names == NULL || source->index_paths == NULL) {
        kinf__source_free(source);
        return NULL;
    }
    return source;
}

static void on_cache_due(int64_t due_ms, void *ctx)
{
    kinf__server_expect(ctx, due_ms);
}

static int open_cache(struct kinf__server *server, struct kinf__source *source,
                      const struct kinf__watchcache_limits *limits, struct kinf_error *err)
{
    struct kinf_indexer *indexer =
        source->informer != NULL ? kinf_informer_indexer(source->informer) : source->store.indexer;
    struct kinf__sink sink;
    int failed = kinf__watchcache_new(indexer, limits, &source->cache, err);

    if (failed < 0 || source->is_unserved)
        return failed;
    kinf__watchcache_set_on_due(source->cache, on_cache_due, server);
    sink = kinf__watchcache_sink(source->cache);
    if (source->informer != NULL)
        failed = kinf__informer_set_sink(source->informer, &sink, err);
    if (failed == 0)
        kinf__watchcache_set_enabled(source->cache, true);
    return failed;
}

/* Two sources of one type may differ in their selectors alone: the later one gets a number. The lock
 * is held. */
static bool is_named(const struct kinf__server *server, size_t n_sources, const char *name)
{
    for (size_t i = 0; i < n_sources; i++) {
        if (strcmp(server->sources[i]->name, name) == 0)
            return true;
    }
    return false;
}

/* After those before it. */
static void name_source(const struct kinf__server *server, size_t place)
{
    struct kinf__source *source = server->sources[place];
    const struct kinf_type *type = source->type;
    const char *dot = *type->group != '\0' ? "." : "",
               *colon = *source->scope.name_space != '\0' ? ":" : "";

    snprintf(source->name, sizeof source->name, "%s%s%s%s%s", type->resource, dot, type->group,
             colon, source->scope.name_space);
    for (unsigned i = 2; is_named(server, place, source->name); i++)
        snprintf(source->name, sizeof source->name, "%s%s%s%s%s-%u", type->resource, dot,
                 type->group, colon, source->scope.name_space, i);
}

/* Anew, so that what takes another's place has its name, too. */
static void name_sources(const struct kinf__server *server)
{
    for (size_t i = 0; i < server->n_sources; i++)
        name_source(server, i);
}

/* Descriptors that its informer lives on. */
static int files_of(const struct kinf__source *source)
{
    return source->informer != NULL ? SOURCE_FILES : 0;
}

/* For one more source, and for all that are not published to be noted as pruned. */
static int make_room(struct kinf__server *server)
{
    size_t n_sources = server->n_sources + server->n_unpublished;
    struct kinf__source **sources =
        realloc(server->sources, (n_sources + 1) * sizeof(struct kinf__source *));
    const struct kinf_type **pruned;

    if (sources == NULL)
        return KINF_ERR_NO_MEMORY;
    server->sources = sources;
    pruned = realloc(server->pruned, (server->n_pruned + server->n_unpublished + 1) *
                                         sizeof(const struct kinf_type *));
    if (pruned == NULL)
        return KINF_ERR_NO_MEMORY;
    server->pruned = pruned;
    return 0;
}

static int register_source(struct kinf__server *server, struct kinf__source *source)
{
    int failed;

    kinf__mutex_lock(&server->lock);
    failed = make_room(server);
    if (failed == 0) {
        server->sources[server->n_sources + server->n_unpublished++] = source;
        kinf__connections_keep_apart(&server->connections, files_of(source));
        kinf__server_expect(server, 0);
    }
    kinf__mutex_unlock(&server->lock);
    return failed;
}

int kinf__server_add_source(struct kinf__server *server, const struct kinf__source_options *options,
                            struct kinf__source **ret_source, struct kinf_error *err)
{
    struct kinf__source *source = source_new(options);
    int failed;

    if (source == NULL)
        return kinf__error_no_memory(err);
    failed = open_cache(server, source, &options->limits, err);
    if (failed == 0 && source->informer != NULL)
        failed = kinf__fields_keep_readable(source->informer, err);
    if (failed == 0 && register_source(server, source) < 0)
        failed = kinf__error_no_memory(err);
    if (failed < 0) {
        kinf__source_free(source);
        return failed;
    }
    *ret_source = source;
    return 0;
}

/* Leaves the others in their order. */
static void remove_source(struct kinf__server *server, const struct kinf__source *source)
{
    size_t n_sources = server->n_sources + server->n_unpublished, place = 0;

    while (server->sources[place] != source)
        place++;
    memmove(&server->sources[place], &server->sources[place + 1],
            (n_sources - place - 1) * sizeof(struct kinf__source *));
    if (place < server->n_sources)
        server->n_sources--;
    else
        server->n_unpublished--;
}

static bool is_passed_watch_of(const struct kinf__exchange *exchange, const struct kinf_type *type)
{
    const struct kinf__request *request = &exchange->request;

    return exchange->forward != NULL && request->verb == KINF__VERB_WATCH &&
           *request->subresource == '\0' && !exchange->head.is_impersonated &&
           strcmp(request->group, type->group) == 0 &&
           strcmp(request->version, type->version) == 0 &&
           strcmp(request->resource, type->resource) == 0;
}

static void end_behind_event(struct kinf__exchange *exchange)
{
    atomic_store(&exchange->is_to_end, true);
    exchange->owner.wake(exchange->owner.ctx);
}

/* They began before there was a source, and would hold a connection each for as long as they like. The
 * lock is held. */
static void end_passed_watches(struct kinf__server *server, const struct kinf_type *type)
{
    KINF__LIST_FOR_EACH (node, &server->exchanges) {
        struct kinf__exchange *exchange = KINF__LIST_ENTRY(node, struct kinf__exchange, node);

        if (is_passed_watch_of(exchange, type))
            end_behind_event(exchange);
    }
}

void kinf__server_call_watches_back(struct kinf__server *server, struct kinf__source *source)
{
    source->has_passed_watches = false;
    KINF__LIST_FOR_EACH (node, &server->exchanges) {
        struct kinf__exchange *exchange = KINF__LIST_ENTRY(node, struct kinf__exchange, node);

        if (exchange->late_source == source->number)
            end_behind_event(exchange);
    }
}

/* There is room. The lock is held. */
static void note_pruned(struct kinf__server *server, const struct kinf_type *type)
{
    for (size_t i = 0; i < server->n_pruned; i++) {
        if (server->pruned[i] == type)
            return;
    }
    server->pruned[server->n_pruned++] = type;
}

void kinf__server_publish_source(struct kinf__server *server, struct kinf__source *source)
{
    kinf__mutex_lock(&server->lock);
    remove_source(server, source);
    memmove(&server->sources[server->n_sources + 1], &server->sources[server->n_sources],
            server->n_unpublished * sizeof(struct kinf__source *));
    server->sources[server->n_sources++] = source;
    source->number = ++server->n_published;
    if (source->is_pruned && !source->is_unserved)
        note_pruned(server, source->type);
    name_sources(server);
    if (source->is_on_demand)
        end_passed_watches(server, source->type);
    kinf__mutex_unlock(&server->lock);
}

struct kinf__watchcache *kinf__source_cache(const struct kinf__source *source)
{
    return source->cache;
}

/* --- ending --- */

/* Ends the watches of a source, or all (NULL), and wakes who waits. The lock is held. */
static void end_exchanges(struct kinf__server *server, const struct kinf__source *source)
{
    KINF__LIST_FOR_EACH (node, &server->exchanges) {
        struct kinf__exchange *exchange = KINF__LIST_ENTRY(node, struct kinf__exchange, node);

        if (source != NULL && exchange->source != source)
            continue;
        if (exchange->watch != NULL)
            kinf__watch_end(exchange->watch);
        if (exchange->forward != NULL)
            kinf__forward_end(exchange->forward);
        exchange->owner.wake(exchange->owner.ctx);
    }
}

static void cut_exchanges_off(struct kinf__server *server, const struct kinf__source *source)
{
    KINF__LIST_FOR_EACH (node, &server->exchanges) {
        struct kinf__exchange *exchange = KINF__LIST_ENTRY(node, struct kinf__exchange, node);

        if (source == NULL || exchange->source == source)
            exchange->owner.cut_off(exchange->owner.ctx);
    }
}

/* Whoever is writing of its watches does not come back to it. */
static void drop_places(struct kinf__source *source)
{
    KINF__LIST_FOR_EACH_SAFE (node, &source->watches) {
        struct kinf__exchange *exchange = KINF__LIST_ENTRY(node, struct kinf__exchange, watch_node);

        if (exchange->watch == NULL)
            kinf__list_remove(node);
    }
}

void kinf__server_withdraw_source(struct kinf__server *server, struct kinf__source *source)
{
    kinf__mutex_lock(&server->lock);
    source->withdrawn_ms = kinf__clock_now_ms();
    remove_source(server, source);
    server->sources[server->n_sources + server->n_unpublished++] = source;
    name_sources(server);
    end_exchanges(server, source);
    kinf__mutex_unlock(&server->lock);
}

void kinf__server_source_use(struct kinf__server *server, const struct kinf__source *source,
                             struct kinf__source_use *ret_use)
{
    struct kinf__watchcache_status status;

    kinf__watchcache_status(source->cache, &status);
    kinf__mutex_lock(&server->lock);
    *ret_use = (struct kinf__source_use){
        .n_users = source->n_users,
        .n_watches = status.n_cursors,
        .last_ms = source->used_ms,
        .bytes = status.store_bytes + status.history_bytes + status.page_bytes,
    };
    kinf__mutex_unlock(&server->lock);
}

void kinf__server_retire_source(struct kinf__server *server, struct kinf__source *source)
{
    int64_t deadline_ms;

    kinf__mutex_lock(&server->lock);
    deadline_ms = kinf__clock_add_ms(
        source->withdrawn_ms != 0 ? source->withdrawn_ms : kinf__clock_now_ms(), PATIENCE_MS);
    source->is_retired = true;
    remove_source(server, source);
    kinf__connections_keep_apart(&server->connections, -files_of(source));
    name_sources(server);
    drop_places(source);
    end_exchanges(server, source);
    while (source->n_users != 0) {
        if (!kinf__cond_wait_until(&server->changed, &server->lock, deadline_ms)) {
            cut_exchanges_off(server, source);
            deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), PATIENCE_MS);
        }
    }
    kinf__mutex_unlock(&server->lock);
    kinf__watchcache_set_enabled(source->cache, false);
}

void kinf__server_stop(struct kinf__server *server)
{
    int64_t deadline_ms = kinf__clock_add_ms(kinf__clock_now_ms(), PATIENCE_MS);

    atomic_store(&server->is_stopping, true);
    kinf__mutex_lock(&server->lock);
    end_exchanges(server, NULL);
    while (server->n_exchanges != 0) {
        if (!kinf__cond_wait_until(&server->changed, &server->lock, deadline_ms)) {
            cut_exchanges_off(server, NULL);
            break;
        }
    }
    kinf__mutex_unlock(&server->lock);
    kinf__tunnels_stop(server->tunnels);
}

void kinf__server_set_authorizer(struct kinf__server *server, struct kinf__authorizer *authorizer)
{
    server->authorizer = authorizer;
}

bool kinf__server_is_stopping(struct kinf__server *server)
{
    return atomic_load(&server->is_stopping);
}

void kinf__server_cut_off(struct kinf__server *server)
{
    kinf__mutex_lock(&server->lock);
    cut_exchanges_off(server, NULL);
    kinf__mutex_unlock(&server->lock);
}

/* --- life --- */

int kinf__server_new(const struct kinf__server_options *options, struct kinf__server **ret_server,
                     struct kinf_error *err)
{
    struct kinf__server *server = calloc(1, sizeof *server);
    int failed;

    if (server == NULL)
        return kinf__error_no_memory(err);
    server->max_staleness_ms =
        options->max_staleness_ms != 0 ? options->max_staleness_ms : KINF__SERVE_STALENESS_MIN_MS;
    server->forwarder = options->forwarder;
    server->backend = options->backend;
    server->demand = options->demand;
    server->log_request = options->log_request;
    server->write_metrics = options->write_metrics;
    server->write_state = options->write_state;
    server->program_ctx = options->program_ctx;
    server->log_ctx = options->log_ctx;
    server->name = options->name != NULL ? options->name : "kinformerd";
    server->token_issuer =
        kinf__token_issuer(options->source != NULL ? options->source : server->name);
    server->started_ms = kinf__clock_now_ms();
    kinf__mutex_init(&server->lock, KINF__RANK_SERVER);
    kinf__cond_init(&server->changed);
    kinf__list_init(&server->exchanges);
    kinf__list_init(&server->hooks);
    kinf__connections_init(&server->connections);
    if (server->forwarder != NULL)
        kinf__connections_keep_apart(&server->connections,
                                     (int)kinf__forwarder_max(server->forwarder));
    kinf__request_metrics_init(&server->request_metrics);
    failed = server->forwarder != NULL ? kinf__tunnels_new(&server->tunnels, err) : 0;
    if (failed == 0)
        failed = kinf__server_begin_time(server, err);
    if (failed < 0) {
        kinf__tunnels_free(server->tunnels);
        kinf__connections_release(&server->connections);
        kinf__request_metrics_release(&server->request_metrics);
        kinf__cond_release(&server->changed);
        kinf__mutex_release(&server->lock);
        free(server);
        return failed;
    }
    *ret_server = server;
    return 0;
}

void kinf__server_free(struct kinf__server *server)
{
    if (server == NULL)
        return;
    kinf__server_end_time(server);
    kinf__tunnels_free(server->tunnels);
    kinf__catalog_free(server->catalog);
    free(server->sources);
    free(server->pruned);
    for (size_t i = 0; i < server->n_tables; i++)
        kinf__table_free(server->tables[i].table);
    free(server->tables);
    kinf__connections_release(&server->connections);
    kinf__request_metrics_release(&server->request_metrics);
    kinf__cond_release(&server->changed);
    kinf__mutex_release(&server->lock);
    free(server);
}

void kinf__server_set_catalog(struct kinf__server *server, struct kinf__catalog *catalog)
{
    struct kinf__catalog *old;

    kinf__mutex_lock(&server->lock);
    old = server->catalog;
    if (old != NULL)
        kinf__catalog_keep_away(catalog, old);
    server->catalog = catalog;
    kinf__mutex_unlock(&server->lock);
    kinf__catalog_free(old);
}

size_t kinf__server_n_exchanges(struct kinf__server *server)
{
    size_t n_exchanges;

    kinf__mutex_lock(&server->lock);
    n_exchanges = server->n_exchanges;
    kinf__mutex_unlock(&server->lock);
    return n_exchanges;
}
