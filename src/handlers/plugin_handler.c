/*
 * Telling a plugin what the outbox has. Neighbours: handler.c begins again when it failed, plugin.c
 * loads and calls it, outbox.c has what it is to be told.
 *
 * A reload: the new one is opened beside the current one and takes its place; the one before it is
 * closed when the new one has been told the state, which is as many changes as waited when it was begun.
 * Requests are followed where nothing is unflushed, so what an old one was told is done or told anew.
 */
#include "handlers/plugin_handler.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/metrics.h"
#include "handlers/plugin.h"

#define PATIENCE_MS  3000
#define SLOW_MS      10000
#define NO_MEMORY_MS 100

_Static_assert(KINF_PLUGIN_BATCH == KINF__OUTBOX_WINDOW, "a flush comes where the window ends");

struct plugin_handler {
    struct kinf__handler base;
    /* constant */
    char *path;
    struct kinf__plugin_counts counts;
    /* the thread's */
    struct kinf__plugin *plugin; /* NULL: it is closed, and to be loaded anew */
    struct kinf__plugin *old;    /* until the plugin knows the state; NULL: there is none */
    char *config;                /* of the plugin */
    struct kinf_change change;   /* what it is told; references are held */
    struct kinf__buffer resource;
    uint64_t n_left; /* of the state */
    uint64_t n_unflushed;
    /* atomic */
    _Atomic(char *) requested_config; /* a reload is asked for; NULL: none */
    struct kinf__mutex call_lock;
    /* guarded by call_lock */
    struct call {
        const char *name; /* of what is under way; NULL: nothing */
        int64_t began_ms;
        bool is_called_slow; /* it was said */
    } call;
};

static struct plugin_handler *of(struct kinf__handler *base)
{
    return KINF__CONTAINER_OF(base, struct plugin_handler, base);
}

/* --- calls --- */

static void set_call(struct plugin_handler *handler, const char *name)
{
    kinf__mutex_lock(&handler->call_lock);
    handler->call = (struct call){ name, kinf__clock_now_ms(), false };
    kinf__mutex_unlock(&handler->call_lock);
}

void kinf__plugin_handler_look(struct kinf__handler *base, int64_t now_ms)
{
    struct plugin_handler *handler = of(base);
    struct call call;
    bool is_slow;

    kinf__mutex_lock(&handler->call_lock);
    call = handler->call;
    is_slow = call.name != NULL && now_ms - call.began_ms > SLOW_MS;
    handler->call.is_called_slow = call.is_called_slow || is_slow;
    kinf__mutex_unlock(&handler->call_lock);
    if (is_slow && !call.is_called_slow)
        KINF__LOG(KINF__LOG_HANDLERS, KINF_LOG_WARN, "plugin is slow handler=%s call=%s ms=%lld",
                  KINF__QUOTED(base->name), call.name, (long long)(now_ms - call.began_ms));
}

/* Returns `failed`, which is said. */
static int end_call(struct plugin_handler *handler, int failed, const struct kinf_error *err)
{
    const char *name = handler->call.name; /* which only this thread changes */

    kinf__plugin_handler_look(&handler->base, kinf__clock_now_ms());
    set_call(handler, NULL);
    if (failed < 0)
        kinf__handler_failed(&handler->base, "%s: %s", name, err->message);
    return failed;
}

static int load_plugin(struct plugin_handler *handler, struct kinf__plugin **ret_plugin,
                       struct kinf_error *err)
{
    const struct kinf__plugin_surroundings surroundings = { &handler->counts, &handler->base.stop };

    return kinf__plugin_load(handler->path, &surroundings, ret_plugin, err);
}

static int open_plugin(struct plugin_handler *handler, struct kinf__plugin *plugin,
                       const char *config)
{
    struct kinf_error err = KINF_ERROR_INIT;

    set_call(handler, "open");
    return end_call(handler, kinf__plugin_open(plugin, config, &err), &err);
}

static void close_plugin(struct plugin_handler *handler, struct kinf__plugin *take_plugin)
{
    if (take_plugin == NULL)
        return;
    set_call(handler, "close");
    kinf__plugin_free(take_plugin);
    (void)end_call(handler, 0, NULL);
}

/* --- what it is told --- */

static int take(const struct kinf_change *change, void *ctx)
{
    struct plugin_handler *handler = ctx;
    const char *resource = change->resource != NULL ? change->resource : "";

    handler->resource.len = 0;
    if (kinf__buffer_append(&handler->resource, resource, strlen(resource) + 1) < 0)
        return KINF_ERR_NO_MEMORY;
    handler->change = *change;
    handler->change.resource = change->resource != NULL ? handler->resource.bytes : NULL;
    kinf_object_ref(change->object);
    kinf_object_ref(change->old);
    return 0;
}

static int tell_change(struct plugin_handler *handler)
{
    struct kinf_error err = KINF_ERROR_INIT;
    int failed;

    set_call(handler, "on_change");
    failed = end_call(handler, kinf__plugin_tell(handler->plugin, &handler->change, &err), &err);
    kinf_object_unref(handler->change.object);
    kinf_object_unref(handler->change.old);
    handler->n_unflushed++;
    if (handler->n_left != 0)
        handler->n_left--;
    return failed;
}

/* What it was told is done. */
static int flush(struct plugin_handler *handler)
{
    struct kinf_error err = KINF_ERROR_INIT;
    int failed;

    set_call(handler, "flush");
    failed = end_call(handler, kinf__plugin_flush(handler->plugin, &err), &err);
    if (failed == 0) {
        (void)kinf__outbox_acknowledge(&handler->base.outbox, handler->change.sequence);
        handler->n_unflushed = 0;
    }
    return failed;
}

/* Returns 1, 0 if nothing is left that may be told and all is flushed, or what failed. */
static int tell_next(struct plugin_handler *handler)
{
    int n = kinf__outbox_next(&handler->base.outbox, take, handler), failed = 0;

    if (n < 0)
        (void)kinf__waker_wait(&handler->base.stop, NO_MEMORY_MS);
    if (n == 1)
        failed = tell_change(handler);
    if (failed == 0 && handler->n_unflushed != 0 &&
        (n == 0 || kinf__plugin_table(handler->plugin)->flush == NULL)) {
        failed = flush(handler);
        n = 1;
    }
    return failed < 0 ? failed : n != 0;
}

/* --- loading it anew --- */

static int open_anew(struct plugin_handler *handler, const char *config,
                     struct kinf__plugin **ret_plugin)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__plugin *plugin = NULL;
    int failed;

    set_call(handler, "load");
    failed = end_call(handler, load_plugin(handler, &plugin, &err), &err);
    if (failed == 0)
        failed = open_plugin(handler, plugin, config);
    if (failed == 0) {
        *ret_plugin = plugin;
        return 0;
    }
    close_plugin(handler, plugin);
    KINF__LOG(KINF__LOG_HANDLERS, KINF_LOG_ERROR,
              "plugin is not loaded anew, the one before stays handler=%s path=%s",
              KINF__QUOTED(handler->base.name), KINF__QUOTED(handler->path));
    return failed;
}

/* Puts the new one in the place of the current one, which goes if it never was at work. */
static void replace(struct plugin_handler *handler, struct kinf__plugin *take_plugin,
                    char *take_config)
{
    struct kinf__plugin *before = handler->plugin;

    handler->plugin = take_plugin;
    free(handler->config);
    handler->config = take_config;
    if (kinf__plugin_is_open(before)) {
        close_plugin(handler, handler->old);
        handler->old = before;
    } else {
        close_plugin(handler, before);
    }
    KINF__LOG(KINF__LOG_HANDLERS, KINF_LOG_INFO, "plugin is loaded anew handler=%s path=%s",
              KINF__QUOTED(handler->base.name), KINF__QUOTED(handler->path));
}

/* Returns whether another one is at work now. */
static bool follow_request(struct plugin_handler *handler)
{
    KINF__AUTO_FREE char *config = NULL;
    struct kinf__plugin *plugin = NULL;

    atomic_store(&handler->base.is_hurried, false); /* before, so that no later one is missed */
    config = atomic_exchange(&handler->requested_config, NULL);
    if (config == NULL)
        return false;
    if ((strcmp(config, handler->config) == 0 && !kinf__plugin_is_outdated(handler->plugin)) ||
        open_anew(handler, config, &plugin) < 0)
        return false;
    replace(handler, plugin, KINF__TAKE(config));
    return true;
}

static void begin_state(struct plugin_handler *handler)
{
    struct kinf__outbox_status status;

    kinf__outbox_reset(&handler->base.outbox);
    kinf__outbox_status(&handler->base.outbox, &status);
    handler->n_left = status.n_waiting;
    handler->n_unflushed = 0;
}

/* --- its life --- */

static bool is_any_requested(struct plugin_handler *handler)
{
    return atomic_load(&handler->requested_config) != NULL;
}

/* Where nothing is unflushed. `is_idle`: nothing waits either. */
static void look_after_generations(struct plugin_handler *handler, bool is_idle)
{
    if (is_idle || handler->n_left == 0)
        close_plugin(handler, KINF__TAKE(handler->old));
    if (follow_request(handler))
        begin_state(handler);
    else if (is_idle && !is_any_requested(handler))
        (void)kinf__waker_wait(&handler->base.outbox.wake, KINF__NEVER_MS);
    kinf__waker_clear(&handler->base.outbox.wake);
}

static void tell_until_it_fails(struct plugin_handler *handler)
{
    int n = 0;

    while (n >= 0 && kinf__handler_goes_on(&handler->base)) {
        n = tell_next(handler);
        if (n >= 0 && handler->n_unflushed == 0)
            look_after_generations(handler, n == 0);
    }
    if (n < 0)
        handler->n_unflushed = 0; /* it is told anew */
}

/* It was closed when the handler was halted. */
static int load_again(struct plugin_handler *handler)
{
    struct kinf_error err = KINF_ERROR_INIT;

    set_call(handler, "load");
    return end_call(handler, load_plugin(handler, &handler->plugin, &err), &err);
}

static void attend(struct kinf__handler *base)
{
    struct plugin_handler *handler = of(base);

    atomic_fetch_add(&base->n_starts, 1);
    if (handler->plugin == NULL && load_again(handler) < 0)
        return;
    (void)follow_request(handler);
    if (!kinf__plugin_is_open(handler->plugin) &&
        open_plugin(handler, handler->plugin, handler->config) < 0)
        return;
    atomic_store(&base->is_running, true);
    begin_state(handler);
    tell_until_it_fails(handler);
    atomic_store(&base->is_running, false);
}

static void end(struct kinf__handler *base)
{
    struct plugin_handler *handler = of(base);

    if (handler->n_unflushed != 0)
        (void)flush(handler);
    handler->n_unflushed = 0;
    close_plugin(handler, KINF__TAKE(handler->old));
    close_plugin(handler, KINF__TAKE(handler->plugin));
}

static void release(struct kinf__handler *base)
{
    struct plugin_handler *handler = of(base);

    kinf__plugin_free(handler->plugin);
    kinf__plugin_counts_release(&handler->counts);
    kinf__mutex_release(&handler->call_lock);
    kinf__buffer_release(&handler->resource);
    free(atomic_load(&handler->requested_config));
    free(handler->config);
    free(handler->path);
}

/* --- what the header promises --- */

static int copy_texts(struct plugin_handler *handler, const char *path, const char *config,
                      struct kinf_error *err)
{
    handler->path = strdup(path);
    handler->config = strdup(config);
    return handler->path == NULL || handler->config == NULL ? kinf__error_no_memory(err) : 0;
}

int kinf__plugin_handler_new(const char *path, const char *config,
                             struct kinf__handler **ret_handler, struct kinf_error *err)
{
    static const struct kinf__handler_kind kind = { .attend = attend,
                                                    .release = release,
                                                    .name = "plugin",
                                                    .end = end,
                                                    .patience_ms = PATIENCE_MS };
    const struct kinf__outbox_options options = { .acknowledges = true, .keeps_old = true };
    struct plugin_handler *handler = calloc(1, sizeof *handler);
    int failed;

    if (handler == NULL)
        return kinf__error_no_memory(err);
    kinf__plugin_counts_init(&handler->counts);
    kinf__mutex_init(&handler->call_lock, KINF__RANK_PLUGIN);
    failed = copy_texts(handler, path, config, err);
    if (failed == 0)
        failed = load_plugin(handler, &handler->plugin, err);
    if (failed < 0) {
        release(&handler->base);
        free(handler);
        return failed;
    }
    failed = kinf__handler_init(&handler->base, &kind,
                                strdup(kinf__plugin_table(handler->plugin)->name), &options, err);
    if (failed < 0) {
        kinf__handler_free(&handler->base);
        return failed;
    }
    *ret_handler = &handler->base;
    return 0;
}

int kinf__plugin_handler_reload(struct kinf__handler *base, const char *config,
                                struct kinf_error *err)
{
    char *copy = strdup(config);

    if (copy == NULL)
        return kinf__error_no_memory(err);
    free(atomic_exchange(&of(base)->requested_config, copy));
    kinf__handler_hurry(base);
    return 0;
}

int kinf__plugin_handler_write_counts(struct kinf__handler *base, const char *family,
                                      const char *label, struct kinf__buffer *out)
{
    struct kinf__plugin_counts *counts = &of(base)->counts;
    int failed = 0;

    kinf__mutex_lock(&counts->lock);
    for (size_t i = 0; failed == 0 && i < counts->n_items; i++) {
        const struct kinf__label labels[] = { { "handler", label },
                                              { "name", counts->items[i].name } };

        failed = kinf__metrics_sample(out, family, labels, KINF__ARRAY_LEN(labels),
                                      counts->items[i].value, 0);
    }
    kinf__mutex_unlock(&counts->lock);
    return failed;
}
