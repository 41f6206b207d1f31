/*
 * A reflector between a scripted server, a queue and a store. Neighbours: test_reflector.c,
 * test_watch_list.c.
 */
#include "unit/reflector_fixture.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"

#define WAIT_MS 60000

static void must(int r)
{
    assert_int_equal(r, 0);
}

/* --- what the reflector reports --- */

static void append(struct kinf__buffer *buffer, const char *a, const char *b)
{
    if (kinf__buffer_printf(buffer, "%s%s ", a, b) < 0)
        abort();
}

static void on_phase(enum kinf__reflector_phase phase, const struct kinf_error *err,
                     int64_t wait_ms, void *ctx)
{
    struct reflector_fixture *f = ctx;

    pthread_mutex_lock(&f->lock);
    append(&f->phases, kinf__reflector_phase_to_string(phase), "");
    if (phase == KINF__REFLECTOR_WAITING) {
        f->phases.len--;
        append(&f->phases, ":", kinf_errc_to_string(err->code));
        f->wait_ms = wait_ms;
    }
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static void on_contact(bool by_watch, void *ctx)
{
    struct reflector_fixture *f = ctx;

    (void)by_watch;
    pthread_mutex_lock(&f->lock);
    f->n_contacts++;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static void on_quarantine(const char *key, const struct kinf_error *err, void *ctx)
{
    struct reflector_fixture *f = ctx;

    pthread_mutex_lock(&f->lock);
    append(&f->quarantined, key, "");
    f->quarantined.len--;
    append(&f->quarantined, ":", kinf_errc_to_string(err->code));
    pthread_mutex_unlock(&f->lock);
}

/* Waits for a change of what callbacks wrote, with the lock held. Returns false when the time is
 * over. */
static bool wait_for_change(struct reflector_fixture *f, int64_t begun_ms)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    pthread_cond_timedwait(&f->changed, &f->lock, &until);
    return kinf__clock_now_ms() - begun_ms < WAIT_MS;
}

/* Waits until the phases so far begin with `expected`. */
void reflector_expect_phases(struct reflector_fixture *f, const char *expected)
{
    int64_t begun_ms = kinf__clock_now_ms();
    size_t len = strlen(expected);
    char *phases;

    pthread_mutex_lock(&f->lock);
    while (f->phases.len < len && wait_for_change(f, begun_ms))
        continue;
    assert_non_null(kinf__buffer_cstr(&f->phases));
    phases = strndup(f->phases.bytes, f->phases.len < len ? f->phases.len : len);
    pthread_mutex_unlock(&f->lock);
    assert_string_equal(phases, expected);
    free(phases);
}

/* Waits until so many proofs of life came. */
void reflector_expect_contacts(struct reflector_fixture *f, size_t n)
{
    int64_t begun_ms = kinf__clock_now_ms();
    bool have_come;

    pthread_mutex_lock(&f->lock);
    while (f->n_contacts < n && wait_for_change(f, begun_ms))
        continue;
    have_come = f->n_contacts >= n;
    pthread_mutex_unlock(&f->lock);
    assert_true(have_come);
}

/* --- the store --- */

static int each_known(kinf_known_object_cb *callback, void *callback_ctx, void *ctx)
{
    struct reflector_fixture *f = ctx;
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(f->indexer);
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    int r = 0;

    kinf_cursor_all(&cursor, snapshot);
    while (r == 0 && (object = kinf_cursor_next(&cursor)) != NULL)
        r = callback(object, callback_ctx);
    return r;
}

static bool has_key(const char *key, void *ctx)
{
    struct reflector_fixture *f = ctx;
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(f->indexer);

    return kinf_snapshot_get(snapshot, key) != NULL;
}

static int process(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx)
{
    struct reflector_fixture *f = ctx;

    (void)in_initial_list;
    for (size_t i = 0; i < deltas->n_items; i++) {
        const struct kinf_delta *delta = &deltas->items[i];

        must(kinf__buffer_printf(&f->popped, "%c%s %s@%s ",
                                 kinf_delta_type_to_string(delta->type)[0],
                                 delta->final_state_unknown ? "!" : "", deltas->key,
                                 kinf_object_resource_version(delta->object)));
        if (delta->type == KINF_DELTA_DELETED)
            must(kinf_indexer_delete(f->indexer, deltas->key, NULL, NULL, NULL));
        else
            must(kinf_indexer_add(f->indexer, delta->object, NULL, NULL));
    }
    return 0;
}

/* Processes what comes until it is `expected`: the first letter of each delta's type ('!': a
 * tombstone) with "ns/name@rv". */
void reflector_expect_deltas(struct reflector_fixture *f, const char *expected)
{
    f->popped.len = 0;
    while (f->popped.len < strlen(expected)) {
        int r = kinf_deltafifo_pop(f->fifo, process, f, WAIT_MS);

        assert_non_null(kinf__buffer_cstr(&f->popped));
        if (r < 0)
            fail_msg("after '%s' nothing comes of '%s'", f->popped.bytes, expected);
    }
    assert_non_null(kinf__buffer_cstr(&f->popped));
    assert_string_equal(f->popped.bytes, expected);
}

/* --- life --- */

void reflector_set_up(struct reflector_fixture *f, const struct test_reply *replies,
                      size_t n_replies)
{
    struct kinf_deltafifo_options fifo_options = { .size = sizeof fifo_options,
                                                   .known = { each_known, has_key, f },
                                                   .order = KINF_FIFO_KEYED };
    const struct kinf_type *type;

    *f = (struct reflector_fixture){ .n_objects_before = kinf__object_count() };
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    f->server = test_server_start(replies, n_replies);
    f->client = test_client_of(replay_port(f->server), NULL);
    must(kinf_type_intern("", "v1", "Pod", "pods", true, &type, NULL));
    must(kinf_indexer_new(NULL, 0, &f->indexer, NULL));
    must(kinf_deltafifo_new(&fifo_options, &f->fifo, NULL));
    must(kinf__prune_plan_new(NULL, 0, NULL, 0, &f->plan, NULL));
    f->options = (struct kinf__reflector_options){
        .client = f->client,
        .type = type,
        .plan = f->plan,
        .fifo = f->fifo,
        .known = f->indexer,
        .initial = KINF_INITIAL_LIST,
        .watch_timeout_ms = 1000,
        .backoff_base_ms = 10,
        .backoff_max_ms = 40,
        .callbacks = { .on_phase = on_phase,
                       .on_contact = on_contact,
                       .on_quarantine = on_quarantine,
                       .ctx = f },
    };
}
void reflector_start(struct reflector_fixture *f)
{
    must(kinf__reflector_new(&f->options, &f->reflector, NULL));
    must(kinf__reflector_start(f->reflector, NULL));
}

struct kinf__reflector_counts reflector_counts(struct reflector_fixture *f)
{
    struct kinf__reflector_counts counts;

    kinf__reflector_counts(f->reflector, &counts);
    return counts;
}

/* Stops the reflector; returns how long that took. */
int64_t reflector_stop(struct reflector_fixture *f)
{
    int64_t begun_ms = kinf__clock_now_ms();

    kinf_deltafifo_close(f->fifo);
    kinf__reflector_free(KINF__TAKE(f->reflector));
    return kinf__clock_now_ms() - begun_ms;
}

/* Stops everything. No object is left. */
void reflector_tear_down(struct reflector_fixture *f)
{
    reflector_stop(f);
    replay_stop(f->server);
    kinf_deltafifo_free(f->fifo);
    kinf_indexer_free(f->indexer);
    kinf__prune_plan_free(f->plan);
    kinf_client_free(f->client);
    kinf__buffer_release(&f->popped);
    kinf__buffer_release(&f->phases);
    kinf__buffer_release(&f->quarantined);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    assert_int_equal(kinf__object_count(), f->n_objects_before);
}

/* What was asked for so far, after the `n`-th request was answered. */
void reflector_expect_targets(struct reflector_fixture *f, size_t n, const char *expected)
{
    char *targets;

    test_server_wait(f->server, n);
    targets = test_server_targets(f->server);
    assert_string_equal(targets, expected);
    free(targets);
}

static int64_t stop_in(enum kinf_initial initial, const struct test_reply *replies,
                       size_t n_replies, size_t n_requests, const char *phases)
{
    struct reflector_fixture f;
    int64_t took_ms;

    reflector_set_up(&f, replies, n_replies);
    f.options.initial = initial;
    f.options.backoff_base_ms = 60000;
    f.options.backoff_max_ms = 60000;
    reflector_start(&f);
    test_server_wait(f.server, n_requests);
    reflector_expect_phases(&f, phases);
    took_ms = reflector_stop(&f);
    reflector_tear_down(&f);
    return took_ms;
}

/* A busy machine may take the processor away once; what is slow itself is slow each time. */
void reflector_stops_at_once(enum kinf_initial initial, const struct test_reply *replies,
                             size_t n_replies, size_t n_requests, const char *phases)
{
    int64_t best_ms = INT64_MAX;

    for (int i = 0; i < 5 && best_ms >= test_stop_limit_ms(); i++) {
        int64_t took_ms = stop_in(initial, replies, n_replies, n_requests, phases);

        best_ms = took_ms < best_ms ? took_ms : best_ms;
    }
    assert_true(best_ms < test_stop_limit_ms());
}
