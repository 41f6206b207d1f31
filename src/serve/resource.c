/*
 * Objects, lists and watches, out of a source. Neighbours: route.c chooses it; list.c and watch.c make
 * the bodies.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hmap.h"
#include "serve/exchange_priv.h"
#include "serve/list.h"
#include "serve/query.h"
#include "serve/route.h"
#include "serve/token.h"
#include "serve/watch.h"

#define VERSION_WAIT_MS  3000
#define WATCH_DEFAULT_MS 1800000 /* to twice as much, as the server's --min-request-timeout */
#define WATCH_MAX_S      86400
#define LARGE_BYTES      (64u << 10) /* of an object, what is sent from itself */

static const char json[] = "application/json";

/* --- once there is a source --- */

/* The form must fit what is asked for: one object, a list, or a stream. */
static int check_form(struct kinf__exchange *exchange)
{
    enum kinf__form form = exchange->accepted.form;
    bool is_named = *exchange->request.name != '\0', is_watch = exchange->options.is_watch;
    const struct kinf_type *type = exchange->source->type;
    int package_len = (int)strcspn(type->group, ".");

    if (form == KINF__FORM_METADATA && !is_named && !is_watch)
        return kinf__refuse(exchange->refusal, 406, "NotAcceptable",
                            "you requested PartialObjectMetadata, but the requested object is a "
                            "list (*%.*s.%sList)",
                            package_len != 0 ? package_len : 4,
                            package_len != 0 ? type->group : "core", type->kind);
    if (form == KINF__FORM_METADATA_LIST && is_named)
        return kinf__refuse(exchange->refusal, 406, "NotAcceptable",
                            "you requested PartialObjectMetadataList, but the requested object is "
                            "not a list (*%.*s.%s)",
                            package_len != 0 ? package_len : 4,
                            package_len != 0 ? type->group : "core", type->kind);
    return 0;
}

static void find_index(struct kinf__exchange *exchange)
{
    const struct kinf__source *source = exchange->source;

    for (size_t i = 0; i < source->n_indices; i++) {
        const char *value =
            kinf__fields_required_at(exchange->options.fields, source->index_paths[i]);

        if (value == NULL)
            continue;
        exchange->selection.index = source->index_names[i];
        exchange->selection.index_value = value;
        return;
    }
}

static int refuse_lost(struct kinf__exchange *exchange, const char *label)
{
    const struct kinf__request *request = &exchange->request;

    kinf__refuse(
        exchange->refusal, 403, "Forbidden",
        "%s is forbidden: this cache leaves out the field that the selector asks for, %.200s",
        request->resource, label);
    kinf__refusal_set_object(exchange->refusal, request->group, request->resource, "");
    return KINF_ERR_INVALID;
}

static int bind(struct kinf__exchange *exchange)
{
    const struct kinf__source *source = exchange->source;
    const char *name = kinf__fields_required(exchange->options.fields, "metadata.name"), *lost;
    int failed = 0;

    if (exchange->options.fields != NULL)
        failed = kinf__fields_bind(exchange->options.fields, source->type,
                                   (const char *const *)source->index_paths, source->n_indices,
                                   exchange->refusal);
    if (failed == 0 && (lost = kinf__scope_apply(&source->scope, exchange->options.fields)) != NULL)
        failed = refuse_lost(exchange, lost);
    if (failed < 0)
        return failed;
    /* Elsewhere every namespace may have an object of that name. */
    if (source->type->namespaced && *exchange->request.name_space == '\0')
        name = NULL;
    exchange->selection = (struct kinf__selection){
        .name_space = exchange->request.name_space,
        .name = name != NULL ? name : "",
        .labels = exchange->options.labels,
        .fields = exchange->options.fields,
    };
    find_index(exchange);
    exchange->encoder = (struct kinf__encoder){ .type = source->type,
                                                .form = exchange->accepted.form,
                                                .is_v1beta1 = exchange->accepted.is_v1beta1,
                                                .include = exchange->options.include,
                                                .table = atomic_load(&source->table),
                                                .now_s = kinf__clock_wall_ms() / 1000 };
    return check_form(exchange);
}

/* --- versions --- */

static int refuse_future(struct kinf__exchange *exchange)
{
    kinf__refuse(exchange->refusal, 504, "Timeout",
                 "Timeout: Too large resource version: %s, current: %" PRIu64,
                 exchange->options.resource_version,
                 kinf__watchcache_version(exchange->source->cache));
    kinf__refusal_add_cause(exchange->refusal, "ResourceVersionTooLarge", "",
                            "Too large resource version");
    exchange->refusal->retry_after_s = 1;
    return KINF_ERR_INVALID;
}

static void note_version(struct kinf__version_waiter *waiter, int result, void *ctx)
{
    struct kinf__exchange *exchange = ctx;

    (void)waiter;
    atomic_store(&exchange->wait_result, result);
    exchange->owner.wake(exchange->owner.ctx);
}

/* Whether the answer must not be older than what the client names. */
static bool is_bound_below(const struct kinf__exchange *exchange)
{
    const struct kinf__list_options *options = &exchange->options;
    bool is_watch = options->is_watch && *exchange->request.name == '\0';

    if (*options->continue_token != '\0' && !is_watch)
        return false;
    /* A watch after a version in the future is silent up to it. */
    return !is_watch || options->sends_initial_events;
}

/* The version that has to be reached first; 0: none. */
static uint64_t version_to_reach(const struct kinf__exchange *exchange)
{
    return is_bound_below(exchange) ? kinf__watchcache_parse_rv(exchange->options.resource_version)
                                    : 0;
}

/* --- answers --- */

/* The server looks when it has something to convert. */
static int check_include(struct kinf__exchange *exchange)
{
    if (exchange->accepted.form != KINF__FORM_TABLE ||
        exchange->options.include != KINF__INCLUDE_INVALID)
        return 0;
    return kinf__refuse(exchange->refusal, 400, "BadRequest",
                        "Unable to convert to Table as requested: includeObject: Invalid value: "
                        "\"%s\": must be 'Metadata', 'Object', 'None', or empty",
                        exchange->options.include_text);
}

/* It may be one of those that could not be read: to say that it is not there would be a deletion to
 * whoever reads it. */
static int refuse_left_out(struct kinf__exchange *exchange)
{
    const struct kinf__request *request = &exchange->request;

    kinf__refuse(exchange->refusal, 503, "ServiceUnavailable",
                 "%s \"%s\" is not in this cache, which leaves out %" PRIu64
                 " objects that it could not read",
                 request->resource, request->name, kinf__source_left_out(exchange->source));
    kinf__refusal_set_object(exchange->refusal, request->group, request->resource, request->name);
    return KINF_ERR_INVALID;
}

/* It holds a version of the store, or an object of it, until it is read. */
static void give_time(struct kinf__exchange *exchange)
{
    kinf__mutex_lock(&exchange->server->lock);
    kinf__server_time_limit(exchange, kinf__clock_now_ms());
    kinf__mutex_unlock(&exchange->server->lock);
}

/* What is large is sent from the object itself: a client that takes nothing holds no copy. */
static int write_object(struct kinf__exchange *exchange, const struct kinf_object *object)
{
    struct kinf__answer *answer = &exchange->answer;
    struct kinf__pieces pieces = { .large = LARGE_BYTES };

    if (kinf__encode_object(&exchange->encoder, object, NULL, &pieces) < 0 ||
        kinf__buffer_append(&pieces.bytes, "\n", 1) < 0) {
        kinf__pieces_release(&pieces);
        return KINF_ERR_NO_MEMORY;
    }
    if (pieces.object == NULL) {
        answer->body = pieces.bytes;
        return 0;
    }
    answer->stream_len = (int64_t)kinf__pieces_len(&pieces);
    return kinf__pieces_stream(&pieces, &answer->stream);
}

static int answer_object(struct kinf__exchange *exchange)
{
    const struct kinf__request *request = &exchange->request;
    const struct kinf__source *source = exchange->source;
    kinf_auto_snapshot struct kinf_snapshot *snapshot =
        kinf__watchcache_snapshot(source->cache, NULL);
    const struct kinf_object *object;
    char key[2 * KINF_NAME_MAX + 2], resource[2 * KINF_NAME_MAX], quoted[KINF__REFUSAL_NAME_SIZE];

    snprintf(key, sizeof key, "%s%s%s", request->name_space,
             *request->name_space != '\0' ? "/" : "", request->name);
    object = snapshot != NULL ? kinf_snapshot_get(snapshot, key) : NULL;
    if (object == NULL) {
        if (!source->assume_scope && kinf__scope_is_selective(&source->scope)) {
            (void)kinf__route_refuse_scope(exchange, source);
            return kinf__route_go_upstream(exchange);
        }
        if (kinf__source_left_out(source) != 0)
            return refuse_left_out(exchange);
        snprintf(resource, sizeof resource, "%s%s%s", request->resource,
                 *request->group != '\0' ? "." : "", request->group);
        kinf__refuse(exchange->refusal, 404, "NotFound", "%s %s not found", resource,
                     kinf__query_quote(request->name, quoted, sizeof quoted));
        kinf__refusal_set_object(exchange->refusal, request->group, request->resource,
                                 request->name);
        return KINF_ERR_INVALID;
    }
    if (check_include(exchange) < 0)
        return KINF_ERR_INVALID;
    if (write_object(exchange, object) < 0)
        return kinf__refuse_no_memory(exchange->refusal);
    if (exchange->answer.stream != NULL)
        give_time(exchange);
    return 0;
}

/* Of the list that is to go on. */
static int read_token(struct kinf__exchange *exchange, struct kinf__token *ret_token)
{
    const struct kinf__list_options *options = &exchange->options;
    int failed = kinf__token_read(exchange->server->token_issuer, options->continue_token,
                                  ret_token, exchange->refusal);

    if (failed < 0)
        return failed;
    return kinf__watchcache_parse_rv(options->resource_version) != 0
               ? kinf__refuse(exchange->refusal, 400, "BadRequest",
                              "specifying resource version is not allowed when using continue")
               : 0;
}

static bool wants_exact(const struct kinf__list_options *options)
{
    return options->match == KINF__RV_MATCH_EXACT ||
           (options->match == KINF__RV_MATCH_UNSET && options->limit > 0 &&
            kinf__watchcache_parse_rv(options->resource_version) != 0);
}

/* A page is read from the version that its first one was read from. */
static int find_snapshot(struct kinf__exchange *exchange, struct kinf__token *ret_token,
                         struct kinf_snapshot **ret_snapshot)
{
    const struct kinf__list_options *options = &exchange->options;
    struct kinf__watchcache *cache = exchange->source->cache;
    bool is_page = *options->continue_token != '\0';
    int failed = 0;

    *ret_token = (struct kinf__token){
        .version.number = kinf__watchcache_parse_rv(options->resource_version),
    };
    if (is_page && (failed = read_token(exchange, ret_token)) < 0)
        return failed;
    if (is_page ? ret_token->version.number == 0 : !wants_exact(options)) {
        *ret_snapshot = kinf__watchcache_snapshot(cache, &ret_token->version);
        return *ret_snapshot != NULL ? 0 : refuse_future(exchange);
    }
    /* It is not in the future: it was waited for. */
    if (kinf__watchcache_snapshot_at(cache, &ret_token->version, ret_snapshot, NULL) == 0)
        return 0;
    return is_page ? kinf__token_offer_rest(exchange->server->token_issuer, ret_token,
                                            exchange->refusal)
                   : kinf__refuse(exchange->refusal, 410, "Expired",
                                  "The resourceVersion for the provided list is too old.");
}

/* Steps until the listing knows how its answer begins; others go on between the steps. */
static int begin_list(struct kinf__exchange *exchange)
{
    struct kinf__list_result result;
    int more = kinf__listing_step(exchange->listing, &result);

    if (more < 0)
        return kinf__refuse_no_memory(exchange->refusal);
    if (more > 0) {
        exchange->owner.wake(exchange->owner.ctx);
        return KINF__STEP_WAITS;
    }
    if (result.snapshot != NULL)
        kinf__watchcache_hold(exchange->source->cache, result.snapshot, &result.version,
                              kinf__clock_now_ms());
    exchange->answer.body = result.body;
    exchange->answer.stream = result.stream;
    exchange->answer.is_gzip = result.is_gzip;
    exchange->answer.varies_by_encoding = result.stream != NULL;
    /* Who takes a small body slowly holds no version of the store. */
    if (result.stream == NULL)
        kinf__listing_free(exchange->listing);
    else
        give_time(exchange);
    exchange->listing = NULL;
    return 0;
}

static int answer_list(struct kinf__exchange *exchange)
{
    const struct kinf__list_options *options = &exchange->options;
    struct kinf_snapshot *snapshot = NULL;
    struct kinf__token token;
    int failed = find_snapshot(exchange, &token, &snapshot);

    if (failed < 0)
        return failed;
    failed = kinf__listing_new(
        &(struct kinf__list_params){
            .selection = &exchange->selection,
            .snapshot = snapshot,
            .issuer = exchange->server->token_issuer,
            .encoder = &exchange->encoder,
            .from = &token,
            .limit = strcmp(options->resource_version, "0") != 0 || *options->continue_token != '\0'
                         ? options->limit
                         : 0,
            .may_gzip = exchange->head.takes_gzip && exchange->fault == NULL },
        &exchange->listing);
    return failed < 0 ? kinf__refuse_no_memory(exchange->refusal) : begin_list(exchange);
}

/* --- watches --- */

static int64_t watch_time_ms(const struct kinf__exchange *exchange)
{
    int64_t asked_s = exchange->options.timeout_s;

    if (asked_s == 0)
        return WATCH_DEFAULT_MS + (int64_t)((uintptr_t)exchange / 64 % WATCH_DEFAULT_MS);
    return (asked_s < WATCH_MAX_S ? asked_s : WATCH_MAX_S) * 1000;
}

/* From here on others may end the watch: it has to be known to them, and whoever wanted that before
 * could not. */
static void publish_watch(struct kinf__exchange *exchange)
{
    int64_t now_ms = kinf__clock_now_ms();

    kinf__mutex_lock(&exchange->server->lock);
    exchange->watch = exchange->answer.stream;
    kinf__list_push_back(&exchange->source->watches, &exchange->watch_node);
    exchange->watch_since_ms = now_ms;
    exchange->deadline_ms = kinf__clock_add_ms(now_ms, watch_time_ms(exchange));
    if (exchange->access_until_ms != 0 && exchange->access_until_ms < exchange->deadline_ms)
        exchange->deadline_ms = exchange->access_until_ms;
    kinf__server_time_watch(exchange, now_ms);
    if (exchange->source->is_retired || exchange->source->withdrawn_ms != 0 ||
        exchange->has_hung_up || atomic_load(&exchange->server->is_stopping))
        kinf__watch_end(exchange->watch);
    kinf__mutex_unlock(&exchange->server->lock);
}

static void fill_watch(struct kinf__exchange *exchange, struct kinf__watch_params *params)
{
    const struct kinf__list_options *options = &exchange->options;
    uint64_t version = kinf__watchcache_parse_rv(options->resource_version);

    *params = (struct kinf__watch_params){
        .cache = exchange->source->cache,
        .selection = &exchange->selection,
        .encoder = &exchange->encoder,
        .bookmarks = options->allows_bookmarks,
        .wake = exchange->owner.wake,
        .cut_off = exchange->owner.cut_off,
        .ctx = exchange->owner.ctx,
    };
    if (options->has_send_initial_events)
        params->replays = options->sends_initial_events;
    else
        params->replays = version == 0;
    params->version = params->replays ? 0 : version;
}

static int answer_watch(struct kinf__exchange *exchange)
{
    struct kinf__watch_params params;
    int failed;

    /* What the server does, too; to the time that is over before it began it has two answers. */
    if (exchange->accepted.form == KINF__FORM_METADATA_LIST || exchange->options.timeout_s < 0)
        return 0;
    fill_watch(exchange, &params);
    failed = kinf__watch_open(&params, &exchange->answer.stream);
    if (failed == KINF_ERR_NO_MEMORY)
        return kinf__refuse_no_memory(exchange->refusal);
    if (failed < 0)
        return refuse_future(exchange); /* untested: check_synced() saw a list */
    publish_watch(exchange);
    free(KINF__TAKE(exchange->refusal));
    return 0;
}

/* A watch list whose version is not reached says so in its stream. */
static int answer_future(struct kinf__exchange *exchange)
{
    bool is_watch = exchange->options.is_watch && *exchange->request.name == '\0';
    int refused = refuse_future(exchange);

    if (!is_watch)
        return refused;
    exchange->answer.content_type = json;
    return kinf__watch_open_refusal(exchange->refusal, &exchange->answer.stream) < 0
               ? kinf__refuse_no_memory(exchange->refusal)
               : 0;
}

static void warn_of_saved(struct kinf__exchange *exchange)
{
    char when[KINF__RFC3339_SIZE];

    if (kinf__source_saved_when(exchange->source, when))
        kinf__answer_warn(&exchange->answer,
                          "kinformer: this is what was known at %s, before a restart; the API "
                          "server has not confirmed it yet",
                          when);
}

static int answer(struct kinf__exchange *exchange)
{
    uint64_t n_left_out;

    exchange->answer.content_type = json;
    exchange->answer.staleness_ms =
        kinf__source_staleness_ms(exchange->source, kinf__clock_now_ms());
    warn_of_saved(exchange);
    if (*exchange->request.name != '\0')
        return answer_object(exchange);
    if (check_include(exchange) < 0)
        return KINF_ERR_INVALID;
    n_left_out = kinf__source_left_out(exchange->source);
    if (n_left_out != 0)
        kinf__answer_warn(&exchange->answer,
                          "kinformer: %" PRIu64 " %s that could not be read are not in this answer",
                          n_left_out, exchange->source->type->resource);
    return exchange->options.is_watch ? answer_watch(exchange) : answer_list(exchange);
}

/* --- steps --- */

static int check_synced(struct kinf__exchange *exchange)
{
    const char *missing = kinf__source_missing(exchange->source);

    if (missing == NULL)
        return 0;
    kinf__refuse(exchange->refusal, 429, "TooManyRequests", "%s: %s",
                 exchange->source->type->resource, missing);
    return kinf__refusal_empty(exchange->refusal, 1);
}

/* Whether the version is reached; if not, the exchange is woken then. */
static bool wait_for(struct kinf__exchange *exchange, uint64_t version, int64_t deadline_ms)
{
    exchange->waiter.version = version;
    exchange->waiter.deadline_ms = deadline_ms;
    exchange->waiter.done = note_version;
    exchange->waiter.ctx = exchange;
    atomic_store(&exchange->wait_result, KINF__STEP_WAITS);
    return kinf__watchcache_wait(exchange->source->cache, &exchange->waiter);
}

/* A watch would stay there for as long as it likes. */
static void note_watch_beyond(struct kinf__exchange *exchange)
{
    if (exchange->request.verb != KINF__VERB_WATCH)
        return;
    kinf__mutex_lock(&exchange->server->lock);
    exchange->late_source = exchange->source->number;
    exchange->source->has_passed_watches = true;
    kinf__server_expect(exchange->server, 0);
    kinf__mutex_unlock(&exchange->server->lock);
}

/* The API server answers who has a token. */
static int refuse_behind(struct kinf__exchange *exchange)
{
    atomic_fetch_add(&exchange->source->session.n_misses, 1);
    kinf__refuse(exchange->refusal, 504, "Timeout",
                 "Timeout: the cache does not have yet what was written to %s through it",
                 exchange->request.resource);
    exchange->refusal->retry_after_s = 1;
    if (exchange->head.token.len == 0)
        return KINF_ERR_INVALID;
    note_watch_beyond(exchange);
    exchange->reads_ahead = exchange->request.verb != KINF__VERB_WATCH &&
                            !kinf__scope_is_selective(&exchange->source->scope);
    return kinf__route_go_upstream(exchange);
}

/* What is of before a restart, and is served so, shows nothing. */
static enum kinf__session_state look_at_session(struct kinf__exchange *exchange,
                                                uint64_t *ret_number)
{
    bool is_saved = kinf__source_is_saved(exchange->source);
    struct kinf__store_version version = { .number = 0 };
    kinf_auto_snapshot struct kinf_snapshot *snapshot =
        kinf__watchcache_snapshot(exchange->source->cache, &version);

    *ret_number = version.number;
    return snapshot == NULL || is_saved
               ? KINF__SESSION_LATE
               : kinf__session_look(&exchange->source->session, snapshot, version.number);
}

/* Whatever changes may be what is waited for: it is looked at again after each change. */
static int wait_for_session(struct kinf__exchange *exchange)
{
    struct kinf__session *session = &exchange->source->session;
    enum kinf__session_state state;
    uint64_t version = 0;

    do {
        state = look_at_session(exchange, &version);
        if (state == KINF__SESSION_REACHED)
            return answer(exchange);
        if (state == KINF__SESSION_LATE && exchange->head.token.len != 0)
            return refuse_behind(exchange);
        if (exchange->session_until_ms == 0) {
            exchange->session_until_ms = kinf__clock_add_ms(kinf__clock_now_ms(), VERSION_WAIT_MS);
            atomic_fetch_add(&session->n_waits, 1);
        }
    } while (wait_for(exchange, version + 1, exchange->session_until_ms));
    return KINF__STEP_WAITS;
}

static int end_session_wait(struct kinf__exchange *exchange, int result)
{
    if (result == 0)
        return wait_for_session(exchange);
    if (result == KINF_ERR_TIMEOUT)
        kinf__session_note_late(&exchange->source->session);
    return refuse_behind(exchange);
}

static bool awaits_session(struct kinf__exchange *exchange)
{
    return exchange->source->consistency == KINF__CONSISTENCY_SESSION &&
           kinf__session_is_behind(&exchange->source->session) &&
           kinf__route_wants_latest(exchange);
}

static int wait_or_answer(struct kinf__exchange *exchange)
{
    const struct kinf__store_source *store = &exchange->source->store;
    uint64_t version = version_to_reach(exchange);

    if (store->catch_up != NULL)
        store->catch_up(store->ctx);
    if (awaits_session(exchange))
        return wait_for_session(exchange);
    if (version == 0 ||
        wait_for(exchange, version, kinf__clock_add_ms(kinf__clock_now_ms(), VERSION_WAIT_MS)))
        return answer(exchange);
    return KINF__STEP_WAITS;
}

int kinf__resource_step(struct kinf__exchange *exchange)
{
    int step;

    if (kinf__route_lacks_namespace(&exchange->request))
        return kinf__refuse(exchange->refusal, 400, "BadRequest", "Namespace parameter required.");
    if ((step = kinf__accept_negotiate(exchange->head.accept, KINF__FORMS_RESOURCE,
                                       &exchange->accepted, exchange->refusal)) < 0 ||
        (step = kinf__exchange_read_options(exchange, exchange->refusal)) < 0 ||
        (step = kinf__route_acquire_source(exchange)) != 0 || (step = bind(exchange)) < 0 ||
        (step = check_synced(exchange)) < 0)
        return step;
    return wait_or_answer(exchange);
}

static bool is_given_up(struct kinf__exchange *exchange)
{
    bool is_retired;

    kinf__mutex_lock(&exchange->server->lock);
    is_retired = exchange->source->is_retired;
    kinf__mutex_unlock(&exchange->server->lock);
    return is_retired || atomic_load(&exchange->server->is_stopping);
}

int kinf__resource_step_again(struct kinf__exchange *exchange)
{
    int result;

    if (is_given_up(exchange)) {
        kinf__refuse(exchange->refusal, 503, "ServiceUnavailable", "this cache is going away");
        return kinf__refusal_empty(exchange->refusal, 1);
    }
    if (exchange->listing != NULL)
        return begin_list(exchange);
    result = atomic_load(&exchange->wait_result);
    if (result == KINF__STEP_WAITS)
        return result;
    if (exchange->session_until_ms != 0)
        return end_session_wait(exchange, result);
    return result == 0 ? answer(exchange) : answer_future(exchange);
}
