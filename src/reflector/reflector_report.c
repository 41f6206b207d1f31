/*
 * What a reflector tells its policy and its owner, and what all of its requests have in common.
 * Neighbours: the performers above (reflector_list.c, reflector_watch.c, reflector_ask.c), which
 * end by telling the policy what came of it. Invariant: the owner's phase is WAITING whenever the
 * policy's state is.
 */
#include "reflector/reflector_priv.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "rest/url.h"

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
uint64_t kinf__reflector_draw(struct kinf__reflector *reflector)
{
    uint64_t z = reflector->random += 0x9e3779b97f4a7c15U;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
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

void kinf__reflector_note_contact(struct kinf__reflector *reflector, bool by_watch)
{
    const struct kinf__reflector_callbacks *callbacks = &reflector->options.callbacks;

    if (callbacks->on_contact != NULL)
        callbacks->on_contact(by_watch, callbacks->ctx);
}

const char *kinf__reflector_namespace(const struct kinf__reflector *reflector)
{
    const char *name_space = reflector->options.name_space;

    return name_space == NULL || name_space[0] == '\0' ? "*" : name_space;
}

/* What to tell of a frozen watch cache that no failure has shown. */
static void explain_frozen(const struct kinf_error *cause, struct kinf_error *ret_err)
{
    static const char what[] = "the server's watch cache stands still, listing instead";

    if (cause != NULL && cause->code != 0 && cause->code != KINF_ERR_TIMEOUT)
        (void)kinf__error_set(ret_err, cause->code, "%s: %s", what, cause->message);
    else
        (void)kinf__error_set(ret_err, KINF_ERR_SERVER, "%s: a list has what no watch has brought",
                              what);
}

static void report_frozen(struct kinf__reflector *reflector, const struct kinf_error *cause)
{
    const struct kinf__reflector_callbacks *callbacks = &reflector->options.callbacks;
    bool stands_still = kinf__policy_stands_still(&reflector->policy);
    struct kinf_error err = KINF_ERROR_INIT;

    if (stands_still == reflector->stands_still)
        return;
    reflector->stands_still = stands_still;
    if (stands_still)
        explain_frozen(cause, &err);
    if (callbacks->on_frozen != NULL)
        callbacks->on_frozen(stands_still ? &err : NULL, callbacks->ctx);
}

/* The bookmark comes behind all that was queued before, so whoever meets it has had that. Without
 * memory for it the next event tries again. */
static void report_confirmed(struct kinf__reflector *reflector)
{
    const struct kinf__reflector_callbacks *callbacks = &reflector->options.callbacks;

    if (!reflector->is_unconfirmed || !kinf__policy_is_confirmed(&reflector->policy))
        return;
    if (callbacks->on_confirmed != NULL)
        callbacks->on_confirmed(reflector->policy.rv, callbacks->ctx);
    reflector->is_unconfirmed =
        kinf_deltafifo_bookmark(reflector->options.fifo, reflector->policy.rv, NULL) ==
        KINF_ERR_NO_MEMORY;
}

void kinf__reflector_tell(struct kinf__reflector *reflector, const struct kinf__policy_event *event)
{
    int64_t now_ms = kinf__clock_now_ms(), wait_ms;

    kinf__policy_event(&reflector->policy, now_ms, kinf__reflector_draw(reflector), event);
    wait_ms = kinf__policy_wait_ms(&reflector->policy, now_ms);
    /* What a watch list leads to without a wait has taken its time. */
    if (wait_ms >= 0 || (event->type == KINF__POLICY_WATCH_ENDED && reflector->is_streaming))
        report_phase(reflector, KINF__REFLECTOR_WAITING, event->err, wait_ms > 0 ? wait_ms : 0);
    report_frozen(reflector, event->err);
    report_confirmed(reflector);
}

/* The owner learns of each wait by on_phase, and says it as loudly as it likes. */
void kinf__reflector_tell_failure(struct kinf__reflector *reflector,
                                  enum kinf__policy_event_type type, const struct kinf_error *err)
{
    struct kinf__policy_event event = { .type = type,
                                        .err = err,
                                        .has_begun = reflector->has_begun };

    kinf__reflector_hide_progress(reflector);
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

/* --- what requests have in common --- */

int kinf__reflector_check_type(struct kinf__reflector *reflector, const char *bytes, size_t len,
                               struct kinf_error *err)
{
    int failed = 0;

    if (!reflector->is_json)
        failed = kinf__http_check_json(reflector->http, bytes, len, err);
    reflector->is_json = failed == 0;
    if (failed < 0)
        kinf__error_prefix(err, "server %s", kinf__http_host(reflector->http));
    return failed;
}

int kinf__reflector_append_query(struct kinf__buffer *target, const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return 0;
    return kinf__url_append_query(target, name, value);
}

/* A name may hold what parts a selector. */
static int append_name(struct kinf__buffer *selector, const char *name)
{
    int r = kinf__buffer_append_str(selector, KINF_STR("metadata.name="));

    for (; r == 0 && *name != '\0'; name++)
        r = kinf__buffer_printf(selector, "%s%c", strchr("\\,=", *name) != NULL ? "\\" : "", *name);
    return r;
}

/* The informer's own, which may be what it is allowed to ask for, and the name. */
static int append_field_selector(struct kinf__buffer *target, const char *own,
                                 const struct kinf_object *named)
{
    KINF__AUTO_BUFFER both = KINF__BUFFER_INIT;
    int r = 0;

    if (named == NULL)
        return kinf__reflector_append_query(target, "fieldSelector", own);
    if (own != NULL && own[0] != '\0')
        r = kinf__buffer_printf(&both, "%s,", own);
    if (r < 0 || append_name(&both, kinf_object_name(named)) < 0 ||
        kinf__buffer_cstr(&both) == NULL)
        return KINF_ERR_NO_MEMORY;
    return kinf__reflector_append_query(target, "fieldSelector", both.bytes);
}

int kinf__reflector_append_target(struct kinf__reflector *reflector,
                                  const struct kinf_object *named, struct kinf__buffer *target)
{
    const struct kinf__reflector_options *options = &reflector->options;
    KINF__AUTO_BUFFER name_space = KINF__BUFFER_INIT;
    int r;

    if (named != NULL && (kinf__buffer_append_str(&name_space, kinf_object_namespace(named)) < 0 ||
                          kinf__buffer_cstr(&name_space) == NULL))
        return KINF_ERR_NO_MEMORY;
    r = kinf__url_append_resource(target, options->type,
                                  named != NULL ? name_space.bytes : options->name_space);
    if (r == 0)
        r = kinf__reflector_append_query(target, "labelSelector", options->label_selector);
    if (r == 0)
        r = append_field_selector(target, options->field_selector, named);
    if (r == 0 && options->shard != NULL)
        r = kinf__reflector_append_query(target, "shardSelector",
                                         kinf__shard_selector_text(options->shard));
    return r;
}
