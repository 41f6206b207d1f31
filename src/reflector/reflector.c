/*
 * The reflector's thread and life. Neighbours: policy.c decides, reflector_list.c,
 * reflector_watch.c, reflector_watch_list.c and reflector_ask.c perform. Invariants: the thread ends after the waker
 * was set or the queue was closed, and only then; a version is told to the policy only after the
 * queue has what it names.
 */
#include "reflector/reflector.h"

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "reflector/reflector_priv.h"
#include "rest/url.h"

#define MAX_OBJECT_BYTES ((size_t)16 << 20)

const char *kinf__reflector_phase_to_string(enum kinf__reflector_phase phase)
{
    static const char *const names[] = {
#define X(phase_, name) [phase_] = name,
        KINF__REFLECTOR_PHASES(X)
#undef X
    };

    return (size_t)phase < KINF__ARRAY_LEN(names) ? names[phase] : "unknown";
}

/* --- telling --- */

/* splitmix64: jitter needs no secrets. */
static uint64_t draw(struct kinf__reflector *reflector)
{
    uint64_t z = reflector->random += 0x9e3779b97f4a7c15U;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

static void trace(enum kinf__policy_state from, enum kinf__policy_event_type event,
                  enum kinf__policy_state to, void *ctx)
{
    struct kinf__reflector *reflector = ctx;

    KINF__LOG(KINF__LOG_REFLECTOR, KINF_LOG_DEBUG, "policy resource=%s from=%s event=\"%s\" to=%s",
              reflector->options.type->resource, kinf__policy_state_to_string(from),
              kinf__policy_event_to_string(event), kinf__policy_state_to_string(to));
}

static void report_phase(struct kinf__reflector *reflector, enum kinf__reflector_phase phase,
                         const struct kinf_error *err, int64_t wait_ms)
{
    const struct kinf__reflector_callbacks *callbacks = &reflector->options.callbacks;

    reflector->has_phase = true;
    reflector->phase = phase;
    if (callbacks->on_phase != NULL)
        callbacks->on_phase(phase, err, wait_ms, callbacks->ctx);
}

void kinf__reflector_set_phase(struct kinf__reflector *reflector, enum kinf__reflector_phase phase)
{
    if (!reflector->has_phase || reflector->phase != phase)
        report_phase(reflector, phase, NULL, 0);
}

void kinf__reflector_note_proof(struct kinf__reflector *reflector)
{
    const struct kinf__reflector_callbacks *callbacks = &reflector->options.callbacks;

    if (callbacks->on_proof != NULL)
        callbacks->on_proof(callbacks->ctx);
}

const char *kinf__reflector_namespace(const struct kinf__reflector *reflector)
{
    const char *name_space = reflector->options.name_space;

    return name_space == NULL || name_space[0] == '\0' ? "*" : name_space;
}

/* What to tell of a standstill that no failure has shown. */
static void explain_standstill(const struct kinf_error *cause, struct kinf_error *ret_err)
{
    static const char what[] = "the server's watch cache stands still, listing instead";

    if (cause != NULL && cause->code != 0 && cause->code != KINF_ERR_TIMEOUT)
        (void)kinf__error_set(ret_err, cause->code, "%s: %s", what, cause->message);
    else
        (void)kinf__error_set(ret_err, KINF_ERR_SERVER, "%s: a list has what no watch has brought",
                              what);
}

static void report_standstill(struct kinf__reflector *reflector, const struct kinf_error *cause)
{
    const struct kinf__reflector_callbacks *callbacks = &reflector->options.callbacks;
    bool stands_still = reflector->policy.standstill.is_found;
    struct kinf_error err = KINF_ERROR_INIT;

    if (stands_still == reflector->stands_still)
        return;
    reflector->stands_still = stands_still;
    if (stands_still)
        explain_standstill(cause, &err);
    if (callbacks->on_standstill != NULL)
        callbacks->on_standstill(stands_still ? &err : NULL, callbacks->ctx);
}

void kinf__reflector_tell(struct kinf__reflector *reflector, const struct kinf__policy_event *event)
{
    int64_t now_ms = kinf__clock_now_ms();

    kinf__policy_event(&reflector->policy, now_ms, draw(reflector), event);
    if (reflector->policy.state == KINF__POLICY_WAITING)
        report_phase(reflector, KINF__REFLECTOR_WAITING, event->err,
                     reflector->policy.wait_end_ms - now_ms);
    report_standstill(reflector, event->err);
}

/* The owner learns of each wait by on_phase, and says it as loudly as it likes. */
void kinf__reflector_tell_failure(struct kinf__reflector *reflector,
                                  enum kinf__policy_event_type type, const struct kinf_error *err)
{
    struct kinf__policy_event event = { .type = type,
                                        .err = err,
                                        .has_begun = reflector->has_begun };

    if (err->code == KINF_ERR_STOPPED) {
        event = (struct kinf__policy_event){ .type = KINF__POLICY_STOP };
    } else {
        kinf__reflector_count(&reflector->n_errors, 1);
        KINF__LOG(KINF__LOG_REFLECTOR, KINF_LOG_DEBUG, "failed resource=%s event=\"%s\" error=%s",
                  reflector->options.type->resource, kinf__policy_event_to_string(type),
                  KINF__QUOTED(err->message));
    }
    kinf__reflector_tell(reflector, &event);
}

/* --- what both requests need --- */

int kinf__reflector_append_query(struct kinf__buffer *target, const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return 0;
    return kinf__url_append_query(target, name, value);
}

int kinf__reflector_append_target(struct kinf__reflector *reflector, struct kinf__buffer *target)
{
    const struct kinf__reflector_options *options = &reflector->options;
    int r = kinf__url_append_resource(target, options->type, options->name_space);

    if (r == 0)
        r = kinf__reflector_append_query(target, "labelSelector", options->label_selector);
    if (r == 0)
        r = kinf__reflector_append_query(target, "fieldSelector", options->field_selector);
    if (r == 0 && options->shard != NULL)
        r = kinf__reflector_append_query(target, "shardSelector",
                                         kinf__shard_selector_text(options->shard));
    return r;
}

void kinf__reflector_publish_quarantine(struct kinf__reflector *reflector)
{
    atomic_store_explicit(&reflector->n_quarantined, reflector->quarantine.n_quarantined,
                          memory_order_relaxed);
}

int kinf__reflector_reject(struct kinf__reflector *reflector, const char *key,
                           const struct kinf_error *why, enum kinf__quarantine_verdict *ret_verdict,
                           struct kinf_error *err)
{
    const struct kinf__reflector_callbacks *callbacks = &reflector->options.callbacks;
    int r =
        kinf__quarantine_fail(&reflector->quarantine, key, kinf__clock_now_ms(), ret_verdict, err);

    if (r < 0 || *ret_verdict == KINF__QUARANTINE_KNOWN)
        return r;
    KINF__LOG(KINF__LOG_REFLECTOR, KINF_LOG_DEBUG, "rejected resource=%s key=%s new=%d error=%s",
              reflector->options.type->resource, key, *ret_verdict == KINF__QUARANTINE_RELIST,
              KINF__QUOTED(why->message));
    if (*ret_verdict == KINF__QUARANTINE_RELIST) {
        reflector->must_relist = true;
        reflector->relist_why = *why;
        kinf__error_prefix(&reflector->relist_why, "object %s", key[0] != '\0' ? key : "?");
        return 0;
    }
    kinf__reflector_publish_quarantine(reflector);
    if (callbacks->on_quarantine != NULL)
        callbacks->on_quarantine(key, why, callbacks->ctx);
    return 0;
}

void kinf__reflector_note_decoded(struct kinf__reflector *reflector, const char *key)
{
    if (!kinf__quarantine_decoded(&reflector->quarantine, key))
        return;
    kinf__reflector_publish_quarantine(reflector);
    KINF__LOG(KINF__LOG_REFLECTOR, KINF_LOG_INFO, "object decodes again resource=%s key=%s",
              reflector->options.type->resource, key);
}

static void report_shard(struct kinf__reflector *reflector, const char *key)
{
    const struct kinf__reflector_callbacks *callbacks = &reflector->options.callbacks;

    reflector->is_shard_ignored = key != NULL;
    if (callbacks->on_shard_ignored != NULL)
        callbacks->on_shard_ignored(key, callbacks->ctx);
}

bool kinf__reflector_is_outside(struct kinf__reflector *reflector, const struct kinf_object *object)
{
    const struct kinf__shard_selector *shard = reflector->options.shard;

    if (shard == NULL || kinf__shard_selector_matches(shard, object))
        return false;
    kinf__reflector_count(&reflector->n_outside_shard, 1);
    if (!reflector->is_shard_ignored)
        report_shard(reflector, kinf_object_key(object));
    return true;
}

void kinf__reflector_judge_shard(struct kinf__reflector *reflector)
{
    if (reflector->is_shard_ignored && reflector->n_outside_shard == reflector->n_outside_before)
        report_shard(reflector, NULL);
}

/* --- the thread --- */

static void *run(void *ctx)
{
    struct kinf__reflector *reflector = ctx;

    for (;;) {
        struct kinf__policy_action action;

        if (kinf__waker_is_set(&reflector->interrupted))
            kinf__reflector_tell(reflector,
                                 &(struct kinf__policy_event){ .type = KINF__POLICY_STOP });
        kinf__policy_next(&reflector->policy, kinf__clock_now_ms(), draw(reflector), &action);
        switch (action.type) {
        case KINF__DO_LIST:
            kinf__reflector_list(reflector, &action);
            break;
        case KINF__DO_WATCH_LIST:
        case KINF__DO_WATCH:
            kinf__reflector_watch(reflector, &action);
            break;
        case KINF__DO_ASK:
            kinf__reflector_ask(reflector);
            break;
        case KINF__DO_WAIT:
            (void)kinf__waker_wait(&reflector->interrupted, action.wait_ms);
            break;
        case KINF__DO_STOP:
            return NULL;
        }
    }
}

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static void init_policy(struct kinf__reflector *reflector)
{
    const struct kinf__reflector_options *options = &reflector->options;
    const struct kinf__policy_options wanted = {
        .initial = options->initial,
        .has_selector = is_set(options->label_selector) || is_set(options->field_selector) ||
                        options->shard != NULL,
        .page_size = options->page_size,
        .watch_timeout_ms = options->watch_timeout_ms,
        .silent_after_ms = options->silent_after_ms,
        .backoff_base_ms = options->backoff_base_ms,
        .backoff_max_ms = options->backoff_max_ms,
        .trace = trace,
        .trace_ctx = reflector,
    };

    kinf__policy_init(&reflector->policy, &wanted);
    if (getrandom(&reflector->random, sizeof reflector->random, GRND_NONBLOCK) < 0)
        reflector->random = (uint64_t)kinf__clock_now_ns();
}

static void init_streams(struct kinf__reflector *reflector)
{
    struct kinf__reflector_options *options = &reflector->options;

    if (options->max_object_bytes == 0)
        options->max_object_bytes = MAX_OBJECT_BYTES;
    reflector->list_callbacks =
        (struct kinf__list_stream_callbacks){ kinf__reflector_on_item,
                                              kinf__reflector_on_rejected_item, reflector };
    reflector->watch_callbacks = (struct kinf__watch_stream_callbacks){
        kinf__reflector_on_event, kinf__reflector_on_bookmark, kinf__reflector_on_error,
        kinf__reflector_on_rejected_event, reflector
    };
    kinf__object_decoder_init(&reflector->decoder, options->type, options->plan);
    if (options->metadata_only) {
        reflector->decoder.kind = KINF__KIND_METADATA;
        reflector->decoder.group = "meta.k8s.io";
        reflector->decoder.version = "v1";
    }
    kinf__list_stream_init(&reflector->list_stream, &reflector->decoder, options->max_object_bytes,
                           &reflector->list_callbacks);
    kinf__watch_stream_init(&reflector->watch_stream, &reflector->decoder,
                            options->max_object_bytes, &reflector->watch_callbacks);
}

int kinf__reflector_new(const struct kinf__reflector_options *options,
                        struct kinf__reflector **ret_reflector, struct kinf_error *err)
{
    struct kinf__reflector *reflector = calloc(1, sizeof *reflector);
    int r;

    if (reflector == NULL)
        return kinf__error_no_memory(err);
    reflector->options = *options;
    kinf__quarantine_init(&reflector->quarantine);
    init_policy(reflector);
    init_streams(reflector);
    reflector->interrupted.fd = -1;
    r = kinf__waker_init(&reflector->interrupted, err);
    if (r == 0)
        r = kinf__http_new(options->client, &reflector->interrupted, &reflector->http, err);
    if (r < 0) {
        kinf__reflector_free(reflector);
        return r;
    }
    *ret_reflector = reflector;
    return 0;
}

int kinf__reflector_start(struct kinf__reflector *reflector, struct kinf_error *err)
{
    int r = kinf__thread_start(&reflector->thread, "kinf-reflector", run, reflector, err);

    reflector->has_thread = r == 0;
    return r;
}

void kinf__reflector_interrupt(struct kinf__reflector *reflector)
{
    kinf__waker_set(&reflector->interrupted);
}

void kinf__reflector_free(struct kinf__reflector *reflector)
{
    if (reflector == NULL)
        return;
    if (reflector->has_thread) {
        kinf__reflector_interrupt(reflector);
        pthread_join(reflector->thread, NULL);
    }
    kinf__reflector_drop_list(reflector);
    kinf__http_free(reflector->http);
    kinf__list_stream_release(&reflector->list_stream);
    kinf__watch_stream_release(&reflector->watch_stream);
    kinf__object_decoder_release(&reflector->decoder);
    kinf__quarantine_release(&reflector->quarantine);
    kinf__waker_release(&reflector->interrupted);
    free(reflector);
}

void kinf__reflector_counts(const struct kinf__reflector *reflector,
                            struct kinf__reflector_counts *ret_counts)
{
#define LOAD(member) atomic_load_explicit(&reflector->member, memory_order_relaxed)
    *ret_counts = (struct kinf__reflector_counts){
        .n_lists = LOAD(n_lists),
        .n_watch_lists = LOAD(n_watch_lists),
        .n_watches = LOAD(n_watches),
        .n_events = LOAD(n_events),
        .n_bookmarks = LOAD(n_bookmarks),
        .n_unchanged = LOAD(n_unchanged),
        .n_errors = LOAD(n_errors),
        .n_silent = LOAD(n_silent),
        .n_extra_lists = LOAD(n_extra_lists),
        .n_quarantined = LOAD(n_quarantined),
        .n_outside_shard = LOAD(n_outside_shard),
        .received_bytes = LOAD(received_bytes),
        .last_list_ms = LOAD(last_list_ms),
    };
#undef LOAD
}
