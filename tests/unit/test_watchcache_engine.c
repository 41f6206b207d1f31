/*
 * The watch cache behind whole informers: random histories, served over a socket by a server that
 * breaks connections, forgets versions and is restored from a backup. Followers watch the caches
 * with selections of their own. What they are told is, at any time, what the server's logs have;
 * and whenever the server is at rest they come to its state.
 *
 * A follower reads in its wake callback, on the informer's processor thread.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <kinformer/selector.h>

#include "base/clock.h"
#include "informer/informer.h"
#include "unit/server_model.h"
#include "unit/test.h"
#include "watchcache/watchcache.h"

enum { n_sources = 2, n_followers = 8, patience_ms = 60000 };

/* Of the informers. */
static const struct server_view views[n_sources] = { { .name_space = NULL },
                                                     { .only_labelled = true } };

struct source {
    struct kinf_informer *informer;
    struct kinf__watchcache *cache;
};

struct follower {
    struct engine *engine;
    struct source *source;
    struct server_view view; /* of the informer and the watch together */
    bool may_resume;

    pthread_mutex_t mutex;
    /* guarded by mutex */
    struct kinf__watch_cursor *cursor; /* NULL: is leaving */
    bool is_lost;                      /* expired, the test's thread begins anew */
    uint64_t version;
    const struct kinf_object *told[SERVER_N_SLOTS]; /* with a reference */
    size_t from[SERVER_N_SLOTS];                    /* the next place of the slot's log */
};

struct engine {
    struct test_random random;
    struct server_history history;
    struct server_model *server;
    struct kinf_client *client;
    struct kinf_label_selector *only_a;
    struct source sources[n_sources];
    struct follower followers[n_followers];
    bool has_restores;
    _Atomic(size_t) n_told, n_expired, n_resumed;
};

static size_t below(struct engine *engine, size_t limit)
{
    return test_random_below(&engine->random, limit);
}

static void pause_ms(long delay_ms)
{
    const struct timespec delay = { .tv_nsec = delay_ms * 1000000 };

    nanosleep(&delay, NULL);
}

/* --- judging, on whatever thread --- */

static void illegal(const char *what, const struct kinf__watch_event *event)
{
    fflush(stdout); /* the seed */
    fprintf(stderr, "illegal: %s: %s %s@%s, version %llu\n", what,
            kinf__watch_event_type_to_string(event->type), kinf_object_key(event->object),
            kinf_object_resource_version(event->object), (unsigned long long)event->version);
    abort();
}

static void take_over(struct follower *follower, size_t slot, const struct kinf_object *object,
                      size_t from)
{
    kinf_object_unref(follower->told[slot]);
    follower->told[slot] = kinf_object_ref(object);
    follower->from[slot] = from;
}

static void judge_state(struct follower *follower, const struct kinf__watch_event *event)
{
    size_t slot = server_slot_of(event->object);
    const struct kinf_object *told = follower->told[slot];
    size_t place = server_history_find_state(&follower->engine->history, &follower->view,
                                             follower->from[slot], event->object);

    if ((told != NULL) != (event->type == KINF__WATCH_MODIFIED))
        illegal("added what is there, or modified what is not", event);
    if (told != NULL && !kinf__object_same_uid(told, event->object))
        illegal("modified into another object", event);
    if (kinf__watchcache_parse_rv(kinf_object_resource_version(event->object)) != event->version)
        illegal("not the object's version", event);
    if (place == SERVER_NOWHERE)
        illegal("the server did not have that then", event);
    take_over(follower, slot, event->object, place + 1);
}

/* W4: the last object that was told. */
static void judge_deletion(struct follower *follower, const struct kinf__watch_event *event)
{
    size_t slot = server_slot_of(event->object);
    size_t place = server_history_find_absence(&follower->engine->history, &follower->view,
                                               follower->from[slot], event->object);

    if (follower->told[slot] != event->object)
        illegal("not the last object that was told", event);
    if (place == SERVER_NOWHERE)
        illegal("the server had that all the time", event);
    take_over(follower, slot, NULL, place);
}

static void judge(struct follower *follower, const struct kinf__watch_event *event)
{
    atomic_fetch_add(&follower->engine->n_told, 1);
    if (event->type == KINF__WATCH_BOOKMARK) {
        if (event->version < follower->version)
            abort();
    } else if (event->version <= follower->version) {
        illegal("versions do not rise", event);
    } else if (event->type == KINF__WATCH_DELETED) {
        judge_deletion(follower, event);
    } else {
        judge_state(follower, event);
    }
    follower->version = event->version;
}

static void read_locked(struct follower *follower)
{
    struct kinf__watch_event event;

    do {
        int rc;

        while ((rc = kinf__watch_cursor_next(follower->cursor, &event)) == 1)
            judge(follower, &event);
        if (rc == KINF_ERR_EXPIRED)
            follower->is_lost = true;
        else if (rc < 0)
            abort();
    } while (!follower->is_lost && kinf__watch_cursor_arm(follower->cursor));
}

static void on_wake(void *ctx)
{
    struct follower *follower = ctx;

    pthread_mutex_lock(&follower->mutex);
    if (follower->cursor != NULL)
        read_locked(follower);
    pthread_mutex_unlock(&follower->mutex);
}

/* --- coming and going, on the test's thread --- */

static int match_labels(const struct kinf_object *object, void *ctx)
{
    return kinf_label_selector_matches(ctx, object);
}

static struct kinf__watch_filter filter_of(const struct follower *follower)
{
    struct kinf__watch_filter filter = { .name_space = follower->view.name_space };

    if (follower->view.only_labelled && follower->source == &follower->engine->sources[0]) {
        filter.match = match_labels;
        filter.match_ctx = follower->engine->only_a;
    }
    filter.wants_bookmarks = follower->may_resume;
    return filter;
}

/* The callback may be waiting for the mutex, so it is freed without. */
static void leave(struct follower *follower)
{
    struct kinf__watch_cursor *cursor;

    pthread_mutex_lock(&follower->mutex);
    cursor = KINF__TAKE(follower->cursor);
    if (cursor != NULL && !follower->is_lost)
        follower->version = kinf__watch_cursor_progress(cursor);
    pthread_mutex_unlock(&follower->mutex);
    kinf__watch_cursor_free(cursor);
}

static void forget_all(struct follower *follower)
{
    for (size_t i = 0; i < SERVER_N_SLOTS; i++)
        take_over(follower, i, NULL, 0);
}

static void take_snapshot_locked(struct follower *follower, struct kinf_snapshot *snapshot)
{
    struct server_history *history = &follower->engine->history;
    struct kinf__watch_filter filter = filter_of(follower);
    const struct kinf_object *object;
    struct kinf_cursor cursor;

    forget_all(follower);
    follower->version = kinf__watchcache_parse_rv(kinf_snapshot_resource_version(snapshot));
    kinf_cursor_all(&cursor, snapshot);
    while ((object = kinf_cursor_next(&cursor)) != NULL) {
        size_t place;

        if ((follower->view.name_space != NULL &&
             !kinf_str_equal(kinf_object_namespace(object),
                             kinf_str_from(follower->view.name_space))) ||
            (filter.match != NULL && filter.match(object, filter.match_ctx) == 0))
            continue;
        place = server_history_find_state(history, &follower->view, 0, object);
        assert_true(place != SERVER_NOWHERE);
        take_over(follower, server_slot_of(object), object, place + 1);
    }
}

static int resume_locked(struct follower *follower)
{
    const struct kinf__watch_filter filter = filter_of(follower);

    return kinf__watchcache_subscribe(follower->source->cache, &filter, follower->version, on_wake,
                                      follower, &follower->cursor, NULL);
}

static void list_and_watch_locked(struct follower *follower)
{
    const struct kinf__watch_filter filter = filter_of(follower);
    struct kinf_snapshot *snapshot = NULL;
    int rc = kinf__watchcache_subscribe_now(follower->source->cache, &filter, on_wake, follower,
                                            &snapshot, &follower->cursor, NULL);

    assert_true(rc == 0 || rc == KINF_ERR_STATE); /* not synced yet */
    if (rc < 0)
        return;
    take_snapshot_locked(follower, snapshot);
    kinf_snapshot_unref(snapshot);
}

/* Goes on from where it was, if nothing keeps it from that. */
static void come(struct follower *follower)
{
    struct engine *engine = follower->engine;
    bool resumes = follower->may_resume && !follower->is_lost && follower->version != 0;

    pthread_mutex_lock(&follower->mutex);
    if (resumes && resume_locked(follower) == 0)
        atomic_fetch_add(&engine->n_resumed, 1);
    else
        list_and_watch_locked(follower);
    follower->is_lost = false;
    if (follower->cursor != NULL)
        read_locked(follower);
    pthread_mutex_unlock(&follower->mutex);
}

static void choose_view(struct follower *follower)
{
    static const char *const name_spaces[] = { NULL, "ns0", "ns1", "ns2" };
    struct engine *engine = follower->engine;
    size_t source = below(engine, n_sources);

    follower->source = &engine->sources[source];
    follower->view.name_space = name_spaces[below(engine, 4)];
    follower->view.only_labelled = source == 1 || below(engine, 2) == 0;
    follower->version = 0;
}

static bool has_lost(struct follower *follower)
{
    bool is_lost;

    pthread_mutex_lock(&follower->mutex);
    is_lost = follower->cursor == NULL || follower->is_lost;
    pthread_mutex_unlock(&follower->mutex);
    return is_lost;
}

static void come_again_if_lost(struct follower *follower)
{
    if (!has_lost(follower))
        return;
    if (follower->cursor != NULL)
        atomic_fetch_add(&follower->engine->n_expired, 1);
    leave(follower);
    come(follower);
}

static void come_or_go(struct engine *engine)
{
    struct follower *follower = &engine->followers[below(engine, n_followers)];

    leave(follower);
    if (below(engine, 4) == 0)
        choose_view(follower);
    if (below(engine, 3) != 0)
        come(follower);
}

/* --- life --- */

static void start_source(struct engine *engine, size_t i)
{
    const struct kinf__watchcache_limits limits = { .history_bytes = 4000 + below(engine, 100000) };
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct source *source = &engine->sources[i];
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__sink sink;

    server_model_set_options(&options);
    options.label_selector = views[i].only_labelled ? "app=a" : NULL;
    options.fifo_order = KINF_FIFO_IN_ORDER;
    options.initial = (enum kinf_initial)below(engine, KINF_INITIAL_LIST + 1);
    options.page_size = below(engine, 3) == 0 ? 1 + below(engine, 8) : 0;
    if (kinf_informer_new(engine->client, &options, &source->informer, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(kinf__watchcache_new(kinf_informer_indexer(source->informer), &limits,
                                          &source->cache, NULL),
                     0);
    sink = kinf__watchcache_sink(source->cache);
    assert_int_equal(kinf__informer_set_sink(source->informer, &sink, NULL), 0);
    kinf__watchcache_set_enabled(source->cache, true);
    assert_int_equal(kinf_informer_start(source->informer, NULL), 0);
}

static void engine_start(struct engine *engine)
{
    server_history_init(&engine->history, test_random_next(&engine->random));
    for (size_t n = below(engine, 30); n > 0; n--)
        server_history_change(&engine->history);
    engine->server = server_model_start(&engine->history, test_random_next(&engine->random),
                                        below(engine, 2) == 0);
    assert_int_equal(kinf_label_selector_parse("app=a", &engine->only_a, NULL), 0);
    engine->client = server_model_client(engine->server);
    /* A version of before a restore may be one of after it; that cannot be told in a resume. */
    engine->has_restores = below(engine, 2) == 0;
    for (size_t i = 0; i < n_sources; i++)
        start_source(engine, i);
    for (size_t i = 0; i < n_followers; i++) {
        struct follower *follower = &engine->followers[i];

        memset(follower, 0, sizeof *follower);
        follower->engine = engine;
        follower->may_resume = !engine->has_restores;
        pthread_mutex_init(&follower->mutex, NULL);
        choose_view(follower);
    }
}

static void engine_stop(struct engine *engine)
{
    for (size_t i = 0; i < n_sources; i++)
        assert_int_equal(kinf_informer_stop(engine->sources[i].informer, NULL), 0);
    for (size_t i = 0; i < n_followers; i++) {
        leave(&engine->followers[i]);
        forget_all(&engine->followers[i]);
        pthread_mutex_destroy(&engine->followers[i].mutex);
    }
    for (size_t i = 0; i < n_sources; i++) {
        struct kinf__watchcache_status status;

        assert_null(kinf__watchcache_check(engine->sources[i].cache));
        /* What an honest server says can always become history. */
        kinf__watchcache_status(engine->sources[i].cache, &status);
        if (!engine->has_restores && status.n_restarts != 0)
            fail_msg("the history began anew: %s", status.last_restart_reason);
        kinf__watchcache_free(engine->sources[i].cache);
        kinf_informer_free(engine->sources[i].informer);
    }
    kinf_client_free(engine->client);
    kinf_label_selector_free(engine->only_a);
    server_model_stop(engine->server);
    server_history_release(&engine->history);
}

/* --- at rest --- */

static void wait_for_cache(struct engine *engine, size_t i)
{
    int64_t begun_ms = kinf__clock_now_ms();
    kinf_auto_snapshot struct kinf_snapshot *snapshot = NULL;

    while (kinf__watchcache_version(engine->sources[i].cache) != engine->history.rv) {
        if (kinf__clock_now_ms() - begun_ms > patience_ms)
            fail_msg("cache %zu never came to the newest version", i);
        pause_ms(1);
    }
    snapshot = kinf__watchcache_snapshot(engine->sources[i].cache, NULL);
    assert_true(server_history_equals(&engine->history, &views[i], snapshot));
}

/* Whether it was told everything up to the newest version, which then is the server's state. */
static bool is_up_to_date(struct follower *follower)
{
    struct engine *engine = follower->engine;
    bool is_there;

    pthread_mutex_lock(&follower->mutex);
    is_there =
        !follower->is_lost && kinf__watch_cursor_progress(follower->cursor) == engine->history.rv;
    for (size_t i = 0; is_there && i < SERVER_N_SLOTS; i++) {
        const struct server_state *now = &engine->history.now[i];
        const struct kinf_object *told = follower->told[i];

        assert_int_equal(told != NULL, server_view_sees(&follower->view, i, now));
        if (told != NULL)
            assert_int_equal(kinf__watchcache_parse_rv(kinf_object_resource_version(told)),
                             now->rv);
    }
    pthread_mutex_unlock(&follower->mutex);
    return is_there;
}

static void wait_for_follower(struct follower *follower)
{
    int64_t begun_ms = kinf__clock_now_ms();

    come_again_if_lost(follower);
    while (!is_up_to_date(follower)) {
        if (kinf__clock_now_ms() - begun_ms > patience_ms)
            fail_msg("a follower never came to the newest version");
        pause_ms(1);
        come_again_if_lost(follower);
    }
}

/* The newest version never meant anything else. */
static void settle(struct engine *engine)
{
    server_history_outrun(&engine->history);
    server_model_wake(engine->server);
    server_model_set_trouble(engine->server, 0);
    for (size_t i = 0; i < n_sources; i++)
        wait_for_cache(engine, i);
    for (size_t i = 0; i < n_followers; i++)
        wait_for_follower(&engine->followers[i]);
}

/* --- the test --- */

static void do_something(struct engine *engine)
{
    switch (below(engine, 20)) {
    case 0:
        server_history_set_checkpoint(&engine->history);
        break;
    case 1:
        if (engine->has_restores)
            server_model_restore(engine->server, below(engine, 8));
        break;
    case 2:
        server_history_forget(&engine->history);
        break;
    case 3:
        server_model_restart(engine->server);
        break;
    case 4:
    case 5:
    case 6:
        come_or_go(engine);
        break;
    case 7:
    case 8:
        pause_ms(1 + (long)below(engine, 3));
        break;
    case 9:
        come_again_if_lost(&engine->followers[below(engine, n_followers)]);
        break;
    default:
        for (size_t n = 1 + below(engine, 5); n > 0; n--)
            server_history_change(&engine->history);
        server_model_wake(engine->server);
        break;
    }
}

static void live(struct engine *engine)
{
    engine_start(engine);
    for (size_t rounds = 1 + below(engine, 4); rounds > 0; rounds--) {
        server_model_set_trouble(engine->server, (unsigned)below(engine, 101));
        for (size_t n = 1 + below(engine, 80); n > 0; n--)
            do_something(engine);
        settle(engine);
    }
    engine_stop(engine);
}

static void followers_are_told_what_the_server_went_through(void **state)
{
    struct engine engine = { .random = test_random_init("watchcache_engine") };
    size_t n_objects = kinf__object_count();

    (void)state;
    for (size_t lives = test_rounds(24); lives > 0; lives--) {
        live(&engine);
        assert_int_equal(kinf__object_count(), n_objects);
    }
    assert_true(atomic_load(&engine.n_told) > 0);
    print_message("told=%zu expired=%zu resumed=%zu\n", atomic_load(&engine.n_told),
                  atomic_load(&engine.n_expired), atomic_load(&engine.n_resumed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(followers_are_told_what_the_server_went_through),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
