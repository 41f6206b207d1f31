/*
 * One page of a LIST, and what follows the last one. Neighbours: reflector.c; what begins and ends
 * a list here begins and ends a watch list, too. Invariant: `listed`, `initial`, `known` and the
 * decoder's lookup are held from a list's begin until it was handed to the queue or given up.
 */
#include "reflector/reflector_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

#define N_LISTED_FIRST 64

/* --- collecting --- */

static void forget_listed(struct kinf__listed *listed, size_t n_kept)
{
    while (listed->n_items > n_kept)
        kinf_object_unref(listed->items[--listed->n_items]);
}

void kinf__reflector_drop_list(struct kinf__reflector *reflector)
{
    struct kinf__listed *listed = &reflector->listed;

    forget_listed(listed, 0);
    free(listed->items);
    *listed = (struct kinf__listed){ .items = NULL };
    kinf__initial_events_release(&reflector->initial);
    reflector->decoder.lookup = NULL;
    kinf_snapshot_unref(KINF__TAKE(reflector->known));
    reflector->found = NULL;
}

static int make_room(struct kinf__listed *listed)
{
    size_t size = listed->size == 0 ? N_LISTED_FIRST : listed->size * 2;
    const struct kinf_object **items;

    if (listed->n_items < listed->size)
        return 0;
    items = realloc(listed->items, size * sizeof *items);
    if (items == NULL)
        return KINF_ERR_NO_MEMORY;
    listed->items = items;
    listed->size = size;
    return 0;
}

int kinf__reflector_on_item(const struct kinf_object *take_object, void *ctx,
                            struct kinf_error *err)
{
    struct kinf__reflector *reflector = ctx;
    struct kinf__listed *listed = &reflector->listed;

    if (kinf__reflector_is_outside(reflector, take_object)) {
        kinf__reflector_note_decoded(reflector, kinf_object_key(take_object));
        kinf_object_unref(take_object);
        return 0;
    }
    if (make_room(listed) < 0) {
        kinf_object_unref(take_object);
        return kinf__error_no_memory(err);
    }
    if (take_object == reflector->found)
        kinf__reflector_count(&reflector->n_unchanged, 1);
    kinf__reflector_note_decoded(reflector, kinf_object_key(take_object));
    listed->items[listed->n_items++] = take_object;
    return 0;
}

int kinf__reflector_on_rejected_item(const char *key, const struct kinf_error *why, void *ctx,
                                     struct kinf_error *err)
{
    enum kinf__quarantine_verdict verdict;

    return kinf__reflector_reject(ctx, key, why, &verdict, err);
}

static const struct kinf_object *look_up(const char *key, void *ctx)
{
    struct kinf__reflector *reflector = ctx;

    reflector->found = kinf_snapshot_get(reflector->known, key);
    return kinf_object_ref(reflector->found);
}

/* --- a page --- */

static int on_body(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    struct kinf__reflector *reflector = ctx;

    reflector->has_begun = true;
    reflector->n_list_bytes += len;
    kinf__reflector_count(&reflector->received_bytes, len);
    return kinf__list_stream_feed(&reflector->list_stream, bytes, len, err);
}

static int append_target(struct kinf__reflector *reflector,
                         const struct kinf__policy_action *action, struct kinf__buffer *target)
{
    char limit[24] = "";
    int r = kinf__reflector_append_target(reflector, target);

    if (action->limit != 0)
        snprintf(limit, sizeof limit, "%zu", action->limit);
    if (r == 0)
        r = kinf__reflector_append_query(target, "resourceVersion", action->rv);
    if (r == 0)
        r = kinf__reflector_append_query(target, "limit", limit);
    return r < 0 ? r : kinf__reflector_append_query(target, "continue", action->continue_token);
}

static int request_page(struct kinf__reflector *reflector, const struct kinf__policy_action *action,
                        struct kinf_error *err)
{
    KINF__AUTO_BUFFER target = KINF__BUFFER_INIT;
    struct kinf__http_request request = {
        .accept = reflector->options.metadata_only ? KINF__ACCEPT_METADATA("List") : NULL,
        .accept_gzip = reflector->options.accept_gzip,
        .head_timeout_ms = action->head_timeout_ms,
        .idle_timeout_ms = action->idle_timeout_ms,
        .on_body = on_body,
        .ctx = reflector,
    };
    int r;

    if (append_target(reflector, action, &target) < 0 ||
        (request.target = kinf__buffer_cstr(&target)) == NULL)
        return kinf__error_no_memory(err);
    r = kinf__http_perform(reflector->http, &request, err);
    if (r == 0)
        r = kinf__list_stream_finish(&reflector->list_stream, err);
    if (r == KINF_ERR_TIMEOUT)
        kinf__http_disconnect(reflector->http);
    return r;
}

static int receive_page(struct kinf__reflector *reflector, const struct kinf__policy_action *action,
                        struct kinf_error *err)
{
    const struct kinf__list_stream *stream = &reflector->list_stream;
    int r;

    reflector->has_begun = false;
    kinf__list_stream_reset(&reflector->list_stream);
    r = request_page(reflector, action, err);
    if (r == 0 && stream->continue_token[0] != '\0' &&
        strcmp(stream->continue_token, action->continue_token) == 0)
        return kinf__error_set(err, KINF_ERR_PARSE, "list: a page names itself as the next one");
    return r;
}

/* --- a list --- */

void kinf__reflector_begin_list(struct kinf__reflector *reflector)
{
    kinf__reflector_drop_list(reflector);
    if (reflector->options.known != NULL) {
        reflector->known = kinf_indexer_snapshot(reflector->options.known);
        reflector->decoder.lookup = look_up;
        reflector->decoder.lookup_ctx = reflector;
    }
    kinf__quarantine_begin_list(&reflector->quarantine);
    reflector->must_relist = false;
    reflector->n_list_bytes = 0;
    reflector->n_outside_before = reflector->n_outside_shard;
    reflector->list_begun_ms = kinf__clock_now_ms();
    kinf__reflector_count(&reflector->n_lists, 1);
    kinf__reflector_set_phase(reflector, KINF__REFLECTOR_LISTING);
}

static void log_list(const struct kinf__reflector *reflector, const char *how, const char *rv)
{
    KINF__LOG(KINF__LOG_REFLECTOR, KINF_LOG_INFO,
              "listed resource=%s namespace=%s by=%s objects=%zu rv=%s ms=%" PRId64,
              reflector->options.type->resource, kinf__reflector_namespace(reflector), how,
              reflector->listed.n_items, rv, kinf__clock_now_ms() - reflector->list_begun_ms);
}

int kinf__reflector_finish_list(struct kinf__reflector *reflector, const char *how, const char *rv,
                                struct kinf_error *err)
{
    int r = kinf_deltafifo_replace(reflector->options.fifo, reflector->listed.items,
                                   reflector->listed.n_items, rv, err);

    if (r < 0)
        return r;
    atomic_store_explicit(&reflector->last_list_ms, kinf__clock_now_ms(), memory_order_relaxed);
    log_list(reflector, how, rv);
    kinf__reflector_drop_list(reflector);
    kinf__quarantine_end_list(&reflector->quarantine, kinf__clock_now_ms());
    kinf__reflector_judge_shard(reflector);
    kinf__reflector_publish_quarantine(reflector);
    kinf__reflector_note_proof(reflector);
    return 0;
}

/* Whether what was listed is not what is stored, by their versions: a transform may have changed
 * what is stored. */
static bool has_news(const struct kinf__reflector *reflector)
{
    const struct kinf__listed *listed = &reflector->listed;

    if (reflector->known == NULL)
        return false;
    for (size_t i = 0; i < listed->n_items; i++) {
        const struct kinf_object *known =
            kinf_snapshot_get(reflector->known, kinf_object_key(listed->items[i]));

        if (known == NULL || strcmp(kinf_object_resource_version(known),
                                    kinf_object_resource_version(listed->items[i])) != 0)
            return true;
    }
    return kinf_snapshot_count(reflector->known) != listed->n_items;
}

/* The first page is next. */
static void begin(struct kinf__reflector *reflector)
{
    kinf__reflector_begin_list(reflector);
    if (reflector->policy.is_extra)
        kinf__reflector_count(&reflector->n_extra_lists, 1);
}

void kinf__reflector_list(struct kinf__reflector *reflector,
                          const struct kinf__policy_action *action)
{
    const struct kinf__list_stream *stream = &reflector->list_stream;
    struct kinf__policy_event event = { .type = KINF__POLICY_LIST_PAGE };
    struct kinf_error err = KINF_ERROR_INIT;
    bool is_last;
    size_t n_before;
    int r;

    if (action->continue_token[0] == '\0')
        begin(reflector);
    n_before = reflector->listed.n_items;
    r = receive_page(reflector, action, &err);
    is_last = stream->continue_token[0] == '\0';
    if (r == 0 && is_last && reflector->must_relist) {
        kinf__reflector_drop_list(reflector);
        kinf__reflector_tell_failure(reflector, KINF__POLICY_UNDECODABLE, &reflector->relist_why);
        return;
    }
    event.n_items = reflector->listed.n_items;
    if (r == 0 && is_last && reflector->policy.is_extra)
        event.has_news = has_news(reflector);
    if (r == 0 && is_last)
        r = kinf__reflector_finish_list(
            reflector, "list", action->list_rv[0] != '\0' ? action->list_rv : stream->rv, &err);
    if (r < 0) {
        forget_listed(&reflector->listed, n_before);
        kinf__reflector_tell_failure(reflector, KINF__POLICY_LIST_FAILED, &err);
        return;
    }
    event.rv = stream->rv;
    event.continue_token = stream->continue_token;
    event.n_bytes = reflector->n_list_bytes;
    event.n_remaining = stream->remaining_item_count;
    kinf__reflector_tell(reflector, &event);
}
