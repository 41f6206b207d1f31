/*
 * The reflector's thread and life. Neighbours: policy.c decides, reflector_list.c,
 * reflector_watch.c, reflector_verify.c and reflector_ask.c perform; what these have in common lies below them, in
 * reflector_collect.c and reflector_report.c. Invariants: the thread ends after the waker
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

#define MAX_OBJECT_BYTES ((size_t)16 << 20)

/* --- the thread --- */

static void trace(enum kinf__policy_state from, enum kinf__policy_event_type event,
                  enum kinf__policy_state to, void *ctx)
{
    struct kinf__reflector *reflector = ctx;

    KINF__LOG(KINF__LOG_REFLECTOR, KINF_LOG_DEBUG, "policy resource=%s from=%s event=\"%s\" to=%s",
              reflector->options.type->resource, kinf__policy_state_to_string(from),
              kinf__policy_event_to_string(event), kinf__policy_state_to_string(to));
}

static void *run(void *ctx)
{
    struct kinf__reflector *reflector = ctx;

    kinf__reflector_load(reflector);
    for (;;) {
        struct kinf__policy_action action;

        if (kinf__waker_is_set(&reflector->interrupted))
            kinf__reflector_tell(reflector,
                                 &(struct kinf__policy_event){ .type = KINF__POLICY_STOP });
        kinf__policy_next(&reflector->policy, kinf__clock_now_ms(), kinf__reflector_draw(reflector),
                          &action);
        if (action.type != KINF__DO_LIST && action.type != KINF__DO_WAIT)
            kinf__reflector_drop_list(reflector); /* one that was given up */
        switch (action.type) {
        case KINF__DO_LIST:
            kinf__reflector_list(reflector, &action);
            break;
        case KINF__DO_WATCH_LIST:
        case KINF__DO_WATCH:
            kinf__reflector_watch(reflector, &action);
            break;
        case KINF__DO_VERIFY:
            kinf__reflector_verify(reflector, &action);
            break;
        case KINF__DO_ASK:
            kinf__reflector_ask(reflector, &action);
            break;
        case KINF__DO_WAIT:
            (void)kinf__waker_wait(&reflector->interrupted, action.wait_ms);
            break;
        case KINF__DO_STOP:
            kinf__reflector_hide_progress(reflector);
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
        reflector->random = (uint64_t)kinf__clock_now_ns(); /* untested: the kernel refuses */
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
    reflector->decoder.packer = options->packer;
    if (options->metadata_only)
        kinf__object_decoder_expect(&reflector->decoder, KINF__KIND_METADATA, "meta.k8s.io", "v1");
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

void kinf__reflector_set_saved(struct kinf__reflector *reflector, kinf__saved_load_fn *load,
                               void *ctx)
{
    reflector->load = load;
    reflector->load_ctx = ctx;
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

void kinf__reflector_stop(struct kinf__reflector *reflector)
{
    if (reflector->has_thread) {
        kinf__reflector_interrupt(reflector);
        pthread_join(reflector->thread, NULL);
    }
    reflector->has_thread = false;
    kinf__http_free(KINF__TAKE(reflector->http));
}

void kinf__reflector_free(struct kinf__reflector *reflector)
{
    if (reflector == NULL)
        return;
    kinf__reflector_stop(reflector);
    kinf__reflector_release_list(reflector);
    kinf__newest_release(&reflector->newest);
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
    int64_t list_since_ms = atomic_load_explicit(&reflector->list_since_ms, memory_order_acquire);

    *ret_counts = (struct kinf__reflector_counts){
        .n_lists = LOAD(n_lists),
        .n_watches = LOAD(n_watches),
        .n_events = LOAD(n_events),
        .n_bookmarks = LOAD(n_bookmarks),
        .n_errors = LOAD(n_errors),
        .n_silent = LOAD(n_silent),
        .n_extra_lists = LOAD(n_extra_lists),
        .n_quarantined = LOAD(n_quarantined),
        .n_outside_shard = LOAD(n_outside_shard),
        .received_bytes = LOAD(received_bytes),
        .last_list_ms = LOAD(last_list_ms),
    };
    if (list_since_ms == 0)
        return;
    ret_counts->list_since_ms = list_since_ms;
    ret_counts->n_list_objects = LOAD(n_list_objects);
    ret_counts->n_list_expected = LOAD(n_list_expected);
    ret_counts->list_bytes = LOAD(list_bytes);
#undef LOAD
}
