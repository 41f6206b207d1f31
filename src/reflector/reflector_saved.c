/*
 * Beginning with the state of an earlier run. Neighbours: who has it hands over the objects, and
 * reflector_collect.c gathers them; policy.c goes on as after an outage, and reflector_verify.c asks
 * about the newest of them. Invariant: either all of it is in the queue, or the reflector begins as if
 * there were none.
 */
#include "reflector/reflector_priv.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "object/object.h"

#define OBJECTS_A_LOOK 64 /* at whether it is to stop */

static int take(const struct kinf_object *take_object, void *ctx, struct kinf_error *err)
{
    struct kinf__reflector *reflector = ctx;

    if (reflector->n_list_items % OBJECTS_A_LOOK == 0 &&
        kinf__waker_is_set(&reflector->interrupted)) {
        kinf_object_unref(take_object);
        return kinf__error_set(err, KINF_ERR_STOPPED, "stopped");
    }
    reflector->n_list_bytes += take_object->body_len;
    return kinf__reflector_collect_item(reflector, take_object, err);
}

/* What an empty version stands for cannot be gone on from. */
static int load(struct kinf__reflector *reflector, struct kinf__saved_origin *origin,
                struct kinf_error *err)
{
    int r = reflector->load(reflector->options.packer, take, reflector, origin, reflector->load_ctx,
                            err);

    return r == 0 && origin->rv[0] == '\0'
               ? kinf__error_set(err, KINF_ERR_INVALID, "a state without a resourceVersion")
               : r;
}

static int hand_on(struct kinf__reflector *reflector, const struct kinf__saved_origin *origin,
                   struct kinf_error *err)
{
    const struct kinf__reflector_callbacks *callbacks = &reflector->options.callbacks;
    const struct kinf__listed *listed = &reflector->listed;
    int r;

    if (callbacks->on_loaded != NULL)
        callbacks->on_loaded(origin->wall_ms, callbacks->ctx);
    r = kinf_deltafifo_replace(reflector->options.fifo, listed->items, listed->n_items, origin->rv,
                               err);
    if (r < 0 && callbacks->on_loaded != NULL)
        callbacks->on_loaded(0, callbacks->ctx);
    return r;
}

static void resume(struct kinf__reflector *reflector, const struct kinf__saved_origin *origin,
                   int64_t begun_ms)
{
    const struct kinf__listed *listed = &reflector->listed;

    KINF__LOG(KINF__LOG_REFLECTOR, KINF_LOG_INFO,
              "loaded resource=%s namespace=%s objects=%zu rv=%s ms=%" PRId64,
              reflector->options.type->resource, kinf__reflector_namespace(reflector),
              listed->n_items, origin->rv, kinf__clock_now_ms() - begun_ms);
    kinf__newest_take_list(&reflector->newest, listed->items, listed->n_items,
                           reflector->options.stop);
    reflector->n_known = (int64_t)listed->n_items;
    reflector->is_unconfirmed = true;
    kinf__policy_resume(&reflector->policy, origin->rv, reflector->n_list_bytes);
}

/* Why there is nothing to load, who was asked for it has said. */
void kinf__reflector_load(struct kinf__reflector *reflector)
{
    struct kinf__saved_origin origin = { .rv = "" };
    struct kinf_error err = KINF_ERROR_INIT;
    int64_t begun_ms = kinf__clock_now_ms();
    int r;

    if (reflector->load == NULL)
        return;
    reflector->n_list_items = 0;
    reflector->n_list_bytes = 0;
    r = load(reflector, &origin, &err);
    if (r == 0 && (r = hand_on(reflector, &origin, &err)) == 0)
        resume(reflector, &origin, begun_ms);
    else if (r == KINF_ERR_NO_MEMORY)
        KINF__LOG(KINF__LOG_REFLECTOR, KINF_LOG_WARN, /* no memory */
                  "not loaded resource=%s error=%s", reflector->options.type->resource,
                  KINF__QUOTED(err.message));
    kinf__reflector_drop_list(reflector);
}
