/*
 * One page of a LIST. Neighbours: reflector_collect.c has what came so far. Invariant: a page that
 * failed leaves nothing behind, so it can be asked for again.
 */
#include "reflector/reflector_priv.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"

/* --- what comes --- */

int kinf__reflector_on_item(const struct kinf_object *take_object, void *ctx,
                            struct kinf_error *err)
{
    return kinf__reflector_collect_item(ctx, take_object, err);
}

int kinf__reflector_on_rejected_item(const char *key, const struct kinf_error *why, void *ctx,
                                     struct kinf_error *err)
{
    struct kinf__reflector *reflector = ctx;
    enum kinf__quarantine_verdict verdict;

    reflector->n_list_items++;
    return kinf__reflector_reject(ctx, key, why, &verdict, err);
}

/* --- a page --- */

static int on_body(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    struct kinf__reflector *reflector = ctx;
    int64_t came_ms = kinf__clock_now_ms();
    int r = kinf__reflector_check_type(reflector, bytes, len, err);

    reflector->has_begun = true;
    reflector->n_list_bytes += len;
    kinf__reflector_count(&reflector->received_bytes, len);
    if (r == 0)
        r = kinf__list_stream_feed(&reflector->list_stream, bytes, len, err);
    kinf__reflector_note_progress(reflector);
    if (r == 0 && !kinf__pace_take(&reflector->pace, len, false, came_ms, kinf__clock_now_ms()))
        r = kinf__error_set(err, KINF_ERR_TIMEOUT,
                            "server %s: the list drips, %zu bytes in %lld ms",
                            kinf__http_host(reflector->http), reflector->pace.n_bytes,
                            (long long)reflector->pace.window_ms);
    return r;
}

static int append_target(struct kinf__reflector *reflector,
                         const struct kinf__policy_action *action, struct kinf__buffer *target)
{
    char limit[24] = "";
    int r = kinf__reflector_append_target(reflector, NULL, target);

    if (action->limit != 0)
        snprintf(limit, sizeof limit, "%zu", action->limit);
    if (r == 0)
        r = kinf__reflector_append_query(target, "resourceVersion", action->rv);
    if (r == 0)
        r = kinf__reflector_append_query(target, "limit", limit);
    return r < 0 ? r : kinf__reflector_append_query(target, "continue", action->continue_token);
}

static int request_page(struct kinf__reflector *reflector, struct kinf__buffer *target,
                        const struct kinf__policy_action *action, struct kinf_error *err)
{
    struct kinf__http_request request = {
        .accept = reflector->options.metadata_only ? KINF__ACCEPT_METADATA("List") : NULL,
        .accept_gzip = reflector->options.accept_gzip,
        .head_timeout_ms = action->head_timeout_ms,
        .idle_timeout_ms = action->idle_timeout_ms,
        .on_body = on_body,
        .ctx = reflector,
    };
    int r;

    request.target = kinf__buffer_cstr(target);
    if (request.target == NULL)
        return kinf__error_no_memory(err);
    r = kinf__http_perform(reflector->http, &request, err);
    if (r == 0)
        r = kinf__list_stream_finish(&reflector->list_stream, err);
    if (r == KINF_ERR_TIMEOUT)
        kinf__http_disconnect(reflector->http);
    return r;
}

int kinf__reflector_receive_page(struct kinf__reflector *reflector, struct kinf__buffer *target,
                                 const struct kinf__policy_action *action, struct kinf_error *err)
{
    const struct kinf__list_stream *stream = &reflector->list_stream;
    int r;

    reflector->has_begun = false;
    reflector->is_json = false;
    kinf__list_stream_reset(&reflector->list_stream);
    kinf__pace_begin(&reflector->pace, action->idle_timeout_ms, kinf__clock_now_ms());
    r = request_page(reflector, target, action, err);
    if (r == 0 && stream->continue_token[0] != '\0' &&
        strcmp(stream->continue_token, action->continue_token) == 0)
        return kinf__error_set(err, KINF_ERR_PARSE, "list: a page names itself as the next one");
    return r;
}

/* The first page is next. */
static void begin(struct kinf__reflector *reflector, const struct kinf__policy_action *action)
{
    kinf__reflector_begin_list(reflector);
    if (action->is_extra)
        kinf__reflector_count(&reflector->n_extra_lists, 1);
}

void kinf__reflector_list(struct kinf__reflector *reflector,
                          const struct kinf__policy_action *action)
{
    KINF__AUTO_BUFFER target = KINF__BUFFER_INIT;
    const struct kinf__list_stream *stream = &reflector->list_stream;
    struct kinf__policy_event event = { .type = KINF__POLICY_LIST_PAGE };
    struct kinf_error err = KINF_ERROR_INIT;
    bool is_last;
    size_t n_before, n_items_before;
    int r;

    if (action->continue_token[0] == '\0')
        begin(reflector, action);
    n_before = reflector->listed.n_items;
    n_items_before = reflector->n_list_items;
    if (append_target(reflector, action, &target) < 0)
        r = kinf__error_no_memory(&err);
    else
        r = kinf__reflector_receive_page(reflector, &target, action, &err);
    is_last = stream->continue_token[0] == '\0';
    if (r == 0 && is_last && reflector->must_relist) {
        kinf__reflector_drop_list(reflector);
        kinf__reflector_tell_failure(reflector, KINF__POLICY_UNDECODABLE, &reflector->relist_why);
        return;
    }
    event.n_items = reflector->n_list_items;
    if (r == 0 && is_last && action->is_extra)
        event.has_news = kinf__reflector_has_news(reflector);
    if (r == 0 && is_last)
        r = kinf__reflector_finish_list(
            reflector, "list", action->list_rv[0] != '\0' ? action->list_rv : stream->rv, &err);
    if (r < 0) {
        kinf__reflector_keep_items(reflector, n_before);
        reflector->n_list_items = n_items_before;
        kinf__reflector_tell_failure(reflector, KINF__POLICY_LIST_FAILED, &err);
        return;
    }
    if (!is_last && reflector->n_list_items == n_items_before) {
        (void)kinf__error_set(&err, KINF_ERR_SERVER,
                              "list: pages without objects, one after another");
        event.err = &err;
    }
    if (!is_last && stream->remaining_item_count >= 0)
        kinf__reflector_expect_items(reflector, reflector->n_list_items +
                                                    (uint64_t)stream->remaining_item_count);
    event.rv = stream->rv;
    event.continue_token = stream->continue_token;
    event.n_bytes = reflector->n_list_bytes;
    event.n_remaining = stream->remaining_item_count;
    kinf__reflector_tell(reflector, &event);
}
