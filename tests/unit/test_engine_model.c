/*
 * The whole engine against a server that goes wrong: random histories, served over a socket with
 * breaks, refusals, forgotten versions and restores from a backup, to informers whose handlers come
 * and go, also from callbacks. Whenever the server is at rest, stores and handlers come to its
 * state; what a handler is told is a legal history all the time (G1, G3 to G7, G9); in the end
 * nothing is left and the stop was quick (G10). At times an informer ends, and one of the same
 * options begins with the store that it had some rounds ago (R1 to R3 of informer/saved.h).
 *
 * A follower judges in its callbacks, on its own thread, by the server's logs.
 */
#include <dirent.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "indexer/indexer.h"
#include "informer/informer.h"
#include "informer/saved.h"
#include "object/packed.h"
#include "state/state_file.h"
#include "unit/engine_ways.h"
#include "unit/server_model.h"
#include "unit/test.h"

#define N_FOLLOWERS 8
#define N_INFORMERS ENGINE_N_VIEWS
#define PATIENCE_MS 30000
#define N_RESTARTS  8 /* of a life, at most */
/* The test decides when it is over. */
#define RESYNC_PERIOD_MS 3600000

/* Each informer has its own namespace and selector, so that the server can tell them apart; shard and
 * part are drawn for each life. */
static struct server_view views[N_INFORMERS] = {
    { .name_space = NULL },
    { .only_labelled = true },
    { .name_space = "ns0" },
    { .name_space = "ns1", .only_labelled = true },
};
/* The same namespaces. */
static const char *const field_selectors[N_INFORMERS] = { NULL, NULL, "metadata.namespace=ns0",
                                                          "metadata.namespace=ns1" };

/* --- followers --- */

/* Guarded by the crowd's lock. */
enum follower_state {
    FOLLOWER_AWAY,
    FOLLOWER_HERE,
    FOLLOWER_AWAITED, /* is being removed by who waits for it */
    FOLLOWER_LEAVING, /* was removed from a callback */
};

struct follower {
    struct crowd *crowd;
    enum follower_state state;
    kinf_handler_id id;
    size_t view; /* of its informer */
    enum kinf_backlog backlog;

    /* guarded by mutex */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    const struct kinf_object *told[SERVER_N_SLOTS]; /* the last state of each key; NULL: none */
    size_t from[SERVER_N_SLOTS];                    /* the next place of its log */
    unsigned n_synced;
    bool is_done;
};

struct crowd {
    struct server_history *history;
    struct kinf_informer *informers[N_INFORMERS];
    atomic_bool is_restless; /* callbacks add and remove handlers */
    pthread_t dispatcher;    /* of the dispatched handlers of all informers */
    struct kinf__waker end;  /* of the dispatcher */

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct test_random random;
    struct follower followers[N_FOLLOWERS];
};

static void illegal(const char *what, const struct kinf_object *object)
{
    fflush(stdout); /* the seed */
    fprintf(stderr, "illegal: %s: %s@%s of %s\n", what, kinf_object_key(object),
            kinf_object_resource_version(object), kinf_object_uid(object));
    abort();
}

static void interfere(struct crowd *crowd);

/* Takes over what it is told, which the log has at `at`. Where one object was missing there may be
 * another one. */
static void take_over(struct follower *follower, const struct kinf_object *object, bool is_there,
                      size_t at, const char *what)
{
    size_t slot = server_slot_of(object);

    if (at == SERVER_NOWHERE)
        illegal(what, object);
    pthread_mutex_lock(&follower->mutex);
    if (follower->is_done)
        illegal("told after done", object);
    follower->from[slot] = is_there ? at + 1 : at;
    kinf_object_unref(follower->told[slot]);
    follower->told[slot] = is_there ? kinf_object_ref(object) : NULL;
    pthread_cond_broadcast(&follower->changed);
    pthread_mutex_unlock(&follower->mutex);
    interfere(follower->crowd);
}

/* The place of a state that comes after all that was told. */
static size_t place_of_state(struct follower *follower, const struct kinf_object *object)
{
    return server_history_find_state(follower->crowd->history, &views[follower->view],
                                     follower->from[server_slot_of(object)], object);
}

static void on_add(const struct kinf_object *object, bool in_initial_list, void *ctx)
{
    struct follower *follower = ctx;

    if (follower->told[server_slot_of(object)] != NULL)
        illegal("add of what is there", object);
    if (in_initial_list && follower->n_synced != 0)
        illegal("initial add after synced", object);
    take_over(follower, object, true, place_of_state(follower, object),
              "add of what the server did not have then");
}

static void on_update(const struct kinf_object *old, const struct kinf_object *object, void *ctx)
{
    struct follower *follower = ctx;

    if (follower->told[server_slot_of(object)] != old)
        illegal("update from another state than the last told", object);
    if (old == object)
        return;
    if (!kinf__object_same_uid(old, object))
        illegal("update joins two objects", object);
    take_over(follower, object, true, place_of_state(follower, object),
              "update to what the server did not have then");
}

/* The last known state, which one that lets changes merge may not have been told. */
static void take_over_missed(struct follower *follower, const struct kinf_object *object)
{
    size_t slot = server_slot_of(object), from = follower->from[slot];

    if (follower->told[slot] != object) {
        if (follower->backlog != KINF_BACKLOG_COALESCE)
            illegal("missed delete of another state than the last told", object);
        from = place_of_state(follower, object);
        if (from == SERVER_NOWHERE)
            illegal("missed delete of what the server did not have then", object);
    }
    take_over(
        follower, object, false,
        server_history_find_absence(follower->crowd->history, &views[follower->view], from, object),
        "missed delete of what was there all the time");
}

static void on_delete(const struct kinf_object *object, bool final_state_unknown, void *ctx)
{
    struct follower *follower = ctx;
    size_t slot = server_slot_of(object);

    if (follower->told[slot] == NULL)
        illegal("delete of what is not there", object);
    if (!kinf__object_same_uid(follower->told[slot], object))
        illegal("delete of another object", object);
    if (final_state_unknown)
        take_over_missed(follower, object);
    else
        take_over(follower, object, false,
                  server_history_find_deletion(follower->crowd->history, &views[follower->view],
                                               follower->from[slot], object),
                  "delete that the server did not tell");
}

static void on_synced(void *ctx)
{
    struct follower *follower = ctx;

    pthread_mutex_lock(&follower->mutex);
    if (follower->n_synced++ != 0)
        abort();
    pthread_cond_broadcast(&follower->changed);
    pthread_mutex_unlock(&follower->mutex);
}

/* With the follower's mutex, or when nobody else knows it. */
static void forget_all(struct follower *follower)
{
    for (size_t i = 0; i < SERVER_N_SLOTS; i++) {
        kinf_object_unref(follower->told[i]);
        follower->told[i] = NULL;
        follower->from[i] = 0;
    }
    follower->n_synced = 0;
    follower->is_done = false;
}

static void on_done(void *ctx)
{
    struct follower *follower = ctx;
    struct crowd *crowd = follower->crowd;

    pthread_mutex_lock(&crowd->mutex);
    pthread_mutex_lock(&follower->mutex);
    if (follower->is_done || follower->state == FOLLOWER_AWAY)
        abort();
    follower->is_done = true;
    if (follower->state == FOLLOWER_LEAVING) {
        forget_all(follower);
        follower->state = FOLLOWER_AWAY;
        pthread_cond_broadcast(&crowd->changed);
    }
    pthread_mutex_unlock(&follower->mutex);
    pthread_mutex_unlock(&crowd->mutex);
}

/* --- coming and going --- */

static void pause_ms(long delay_ms)
{
    const struct timespec delay = { .tv_nsec = delay_ms * 1000000 };

    nanosleep(&delay, NULL);
}

static void join_somewhere_locked(struct follower *follower)
{
    struct test_random *random = &follower->crowd->random;
    const struct kinf_handler handler = {
        .on_add = on_add,
        .on_update = on_update,
        .on_delete = on_delete,
        .on_synced = on_synced,
        .on_done = on_done,
        .ctx = follower,
        .resync_period_ms = test_random_below(random, 4) == 0 ? RESYNC_PERIOD_MS : 0,
        .backlog =
            test_random_below(random, 2) == 0 ? KINF_BACKLOG_UNBOUNDED : KINF_BACKLOG_COALESCE,
        .is_dispatched = test_random_below(random, 2) == 0,
    };

    follower->backlog = handler.backlog;
    follower->view = test_random_below(random, N_INFORMERS);
    follower->state = FOLLOWER_HERE;
    if (kinf_informer_add_handler(follower->crowd->informers[follower->view], &handler,
                                  &follower->id, NULL) < 0)
        follower->state = FOLLOWER_AWAY;
}

static struct follower *anybody_locked(struct crowd *crowd)
{
    return &crowd->followers[test_random_below(&crowd->random, N_FOLLOWERS)];
}

/* One of many callbacks that does something. */
static bool has_turn_locked(struct crowd *crowd)
{
    return atomic_load(&crowd->is_restless) && test_random_below(&crowd->random, 40) == 0;
}

/* Comes or begins to go. Returns whose handler is to be removed, if somebody goes. */
static struct follower *change_locked(struct follower *follower)
{
    if (follower->state == FOLLOWER_AWAY) {
        join_somewhere_locked(follower);
        return NULL;
    }
    if (follower->state != FOLLOWER_HERE)
        return NULL;
    follower->state = FOLLOWER_LEAVING;
    return follower;
}

/* From a callback, which may be that of the one who goes. */
static void interfere(struct crowd *crowd)
{
    struct follower *leaving = NULL;
    struct kinf_informer *informer = NULL;
    kinf_handler_id id = 0;
    bool is_slow;

    pthread_mutex_lock(&crowd->mutex);
    is_slow = has_turn_locked(crowd);
    if (has_turn_locked(crowd))
        leaving = change_locked(anybody_locked(crowd));
    if (leaving != NULL) {
        informer = crowd->informers[leaving->view];
        id = leaving->id;
    }
    pthread_mutex_unlock(&crowd->mutex);
    if (informer != NULL)
        kinf_informer_remove_handler(informer, id);
    if (is_slow)
        pause_ms(2);
}

/* Of the test's own thread. */
static void leave(struct follower *follower)
{
    struct crowd *crowd = follower->crowd;
    bool is_mine;

    pthread_mutex_lock(&crowd->mutex);
    is_mine = follower->state == FOLLOWER_HERE;
    if (is_mine)
        follower->state = FOLLOWER_AWAITED;
    pthread_mutex_unlock(&crowd->mutex);
    if (!is_mine)
        return;
    kinf_informer_remove_handler(crowd->informers[follower->view], follower->id);
    pthread_mutex_lock(&crowd->mutex);
    assert_true(follower->is_done);
    forget_all(follower);
    follower->state = FOLLOWER_AWAY;
    pthread_mutex_unlock(&crowd->mutex);
}

static void come_or_go(struct crowd *crowd)
{
    struct follower *follower;
    bool is_away;

    pthread_mutex_lock(&crowd->mutex);
    follower = anybody_locked(crowd);
    is_away = follower->state == FOLLOWER_AWAY;
    if (is_away)
        join_somewhere_locked(follower);
    pthread_mutex_unlock(&crowd->mutex);
    if (!is_away)
        leave(follower);
}

static struct timespec end_of_patience(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_MS / 1000;
    return until;
}

/* A program's event loop: until the end, through the stop of the informers. */
static void *dispatch_all(void *ctx)
{
    struct crowd *crowd = ctx;
    struct pollfd fds[N_INFORMERS + 1] = { { .fd = crowd->end.fd, .events = POLLIN } };

    for (size_t i = 0; i < N_INFORMERS; i++) {
        fds[i + 1].events = POLLIN;
        if (kinf_informer_fd(crowd->informers[i], &fds[i + 1].fd, NULL) < 0)
            abort();
    }
    while (!kinf__waker_is_set(&crowd->end)) {
        poll(fds, N_INFORMERS + 1, -1);
        for (size_t i = 0; i < N_INFORMERS; i++) {
            int r = fds[i + 1].revents != 0
                        ? kinf_informer_dispatch(crowd->informers[i], 5, NULL, NULL)
                        : 0;

            if (r < 0 && r != KINF_ERR_STOPPED)
                abort();
        }
    }
    return NULL;
}

/* Nobody changes the crowd any more. */
static void calm_down(struct crowd *crowd)
{
    struct timespec until = end_of_patience();

    atomic_store(&crowd->is_restless, false);
    pthread_mutex_lock(&crowd->mutex);
    for (size_t i = 0; i < N_FOLLOWERS; i++) {
        while (crowd->followers[i].state == FOLLOWER_LEAVING)
            assert_int_equal(pthread_cond_timedwait(&crowd->changed, &crowd->mutex, &until), 0);
    }
    pthread_mutex_unlock(&crowd->mutex);
}

static void crowd_init(struct crowd *crowd, struct server_history *history, uint64_t seed)
{
    *crowd = (struct crowd){ .history = history, .random = { seed } };
    pthread_mutex_init(&crowd->mutex, NULL);
    pthread_cond_init(&crowd->changed, NULL);
    for (size_t i = 0; i < N_FOLLOWERS; i++) {
        struct follower *follower = &crowd->followers[i];

        follower->crowd = crowd;
        pthread_mutex_init(&follower->mutex, NULL);
        pthread_cond_init(&follower->changed, NULL);
    }
}

/* Behind the stop: every handler is done. */
static void crowd_release(struct crowd *crowd)
{
    for (size_t i = 0; i < N_FOLLOWERS; i++) {
        struct follower *follower = &crowd->followers[i];

        assert_true(follower->state == FOLLOWER_AWAY || follower->is_done);
        forget_all(follower);
        pthread_cond_destroy(&follower->changed);
        pthread_mutex_destroy(&follower->mutex);
    }
    pthread_cond_destroy(&crowd->changed);
    pthread_mutex_destroy(&crowd->mutex);
}

/* --- informers --- */

/* The store of an informer at rest. */
struct saved {
    struct kinf_snapshot *snapshot; /* NULL: none */
    unsigned generation;
};

struct engine {
    struct test_random random;
    struct kinf_informer_options options[N_INFORMERS];
    struct saved saved[N_INFORMERS];
    struct kinf_informer *stopped[N_RESTARTS]; /* whose handlers' removal may still return */
    size_t n_stopped;
    int64_t passed_ms; /* of the handlers' resync periods */
    struct server_history history;
    struct server_model *server;
    struct kinf_client *client;
    struct crowd crowd;
};

static size_t below(struct engine *engine, size_t limit)
{
    return test_random_below(&engine->random, limit);
}

/* An object of its own: what a handler is told is then seen not to be what the server sent. */
static int copy_object(const struct kinf_object *object, const struct kinf_object **ret_object,
                       void *ctx)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str body;

    (void)ctx;
    if (kinf__object_body(object, &scratch, &body) < 0)
        return -1;
    return kinf_object_new_from_json(kinf_object_type(object), body.bytes, body.len, ret_object,
                                     NULL);
}

static int index_by_serial(const struct kinf_object *object, struct kinf_index_values *values,
                           void *ctx)
{
    char serial[32];

    (void)ctx;
    return kinf_object_get_string(object, "data.serial", serial, sizeof serial) < 0
               ? -1
               : kinf_index_values_add(values, serial, strlen(serial));
}

/* What is seen and kept of objects. */
static void fill_view(const size_t *ways, struct kinf_informer_options *options)
{
    static const char *const text[] = { "data.text" }, *const serial[] = { "data.serial" },
                             *const metadata[] = { "metadata" };
    struct server_view *view = &views[ways[CHOICE_VIEW]];
    bool is_by_field = ways[CHOICE_FIELD_SELECTOR] != 0;

    view->only_shard = ways[CHOICE_SHARD] != 0;
    view->part = (enum server_part)ways[CHOICE_PART];
    options->name_space = is_by_field ? NULL : view->name_space;
    options->field_selector = is_by_field ? field_selectors[ways[CHOICE_VIEW]] : NULL;
    options->label_selector = view->only_labelled ? "app=a" : NULL;
    options->shard_selector = view->only_shard ? SERVER_SHARD : NULL;
    options->metadata_only = view->part >= SERVER_METADATA;
    if (view->part == SERVER_ALL_METADATA) {
        options->keeps = metadata;
        options->n_keeps = 1;
    } else if (view->part == SERVER_WITHOUT_TEXT && ways[CHOICE_KEEPS] != 0) {
        options->keeps = serial;
        options->n_keeps = 1;
    } else if (view->part == SERVER_WITHOUT_TEXT) {
        options->drops = text;
        options->n_drops = 1;
    }
}

static void fill_options(struct engine *engine, size_t view, struct kinf_informer_options *options)
{
    static const struct kinf_index indices[] = {
        { "byApp", "metadata.labels.app", NULL, NULL },
        { "bySerial", "data.serial", NULL, NULL },
        { "bySerialFunction", NULL, index_by_serial, NULL },
    };
    size_t ways[N_CHOICES];

    engine_ways_choose(&engine->random, view, ways);
    server_model_set_options(options);
    fill_view(ways, options);
    options->indices = indices;
    options->n_indices = ways[CHOICE_INDICES];
    options->transform = ways[CHOICE_TRANSFORM] != 0 ? copy_object : NULL;
    options->fifo_order = ways[CHOICE_FIFO] != 0 ? KINF_FIFO_KEYED : KINF_FIFO_IN_ORDER;
    options->initial = (enum kinf_initial)ways[CHOICE_INITIAL];
    options->page_size = ways[CHOICE_PAGES] != 0 ? 2 + below(engine, 7) : 0; /* 1: a verification */
    options->max_queue_bytes = ways[CHOICE_QUEUE] != 0 ? 1 + below(engine, 4000) : 0;
    options->compressed = ways[CHOICE_COMPRESSED] != 0;
    options->accept_gzip = ways[CHOICE_GZIP] != 0;
}

/* Through a file, as the daemon has it: compressed objects go on as they are. */
static int load(struct kinf__packer *packer, kinf__saved_object_cb *callback, void *callback_ctx,
                struct kinf__saved_origin *ret_origin, void *ctx, struct kinf_error *err)
{
    struct kinf_snapshot *snapshot = ctx;
    struct kinf__state_identity identity = { .cluster = "c", .server = "s", .scope = "" };
    struct kinf__state_origin origin;
    struct kinf__state_folder *folder;
    char path[] = "/tmp/kinf-model-XXXXXX";
    uint64_t n_bytes;
    int r;

    assert_int_equal(
        kinf_type_intern("", "v1", "ConfigMap", "configmaps", true, &identity.type, err), 0);
    assert_non_null(mkdtemp(path));
    assert_int_equal(kinf__state_folder_open(path, &folder, err), 0);
    assert_int_equal(
        kinf__state_file_write(folder, "saved", &identity, snapshot, 1, NULL, &n_bytes, err), 0);
    r = kinf__state_file_load(folder, "saved", &identity, packer, callback, callback_ctx, NULL,
                              &origin, err);
    assert_int_equal(unlinkat(folder->fd, "saved", 0), 0);
    kinf__state_folder_close(folder);
    assert_int_equal(rmdir(path), 0);
    memcpy(ret_origin->rv, origin.rv, sizeof ret_origin->rv);
    ret_origin->wall_ms = origin.wall_ms;
    return r;
}

static void start_informer(struct engine *engine, size_t view)
{
    const struct kinf_informer_options *options = &engine->options[view];
    struct kinf_informer **informer = &engine->crowd.informers[view];
    struct kinf_snapshot *saved = engine->saved[view].snapshot;
    struct kinf_error err = KINF_ERROR_INIT;

    if (kinf_informer_new(engine->client, options, informer, &err) < 0)
        fail_msg("%s", err.message);
    if (options->compressed)
        kinf__packer_set_dictionary_size((*informer)->packer, 256); /* objects are that small */
    if (saved != NULL && kinf__informer_set_saved(*informer, load, saved, &err) < 0)
        fail_msg("%s", err.message);
    if (kinf_informer_start(*informer, &err) < 0)
        fail_msg("%s", err.message);
}

static void start_dispatcher(struct crowd *crowd)
{
    assert_int_equal(kinf__waker_init(&crowd->end, NULL), 0);
    assert_int_equal(
        kinf__thread_start(&crowd->dispatcher, "dispatcher", dispatch_all, crowd, NULL), 0);
}

static void stop_dispatcher(struct crowd *crowd)
{
    kinf__waker_set(&crowd->end);
    pthread_join(crowd->dispatcher, NULL);
    kinf__waker_release(&crowd->end);
}

static void engine_start(struct engine *engine)
{
    server_history_init(&engine->history, test_random_next(&engine->random));
    for (size_t n = below(engine, 30); n > 0; n--)
        server_history_change(&engine->history);
    engine->server = server_model_start(&engine->history, test_random_next(&engine->random),
                                        below(engine, 2) == 0);
    crowd_init(&engine->crowd, &engine->history, test_random_next(&engine->random));
    engine->client = server_model_client(engine->server);
    for (size_t i = 0; i < N_INFORMERS; i++) {
        engine->options[i] = (struct kinf_informer_options)KINF_INFORMER_OPTIONS_INIT;
        fill_options(engine, i, &engine->options[i]);
        start_informer(engine, i);
    }
    start_dispatcher(&engine->crowd);
}

static void stop_informer(struct kinf_informer *informer)
{
    int64_t begun_ms = kinf__clock_now_ms();

    assert_int_equal(kinf_informer_stop(informer, NULL), 0);
    assert_true(kinf__clock_now_ms() - begun_ms < test_stop_limit_ms());
}

static void forget_saved(struct saved *saved)
{
    kinf_snapshot_unref(KINF__TAKE(saved->snapshot));
}

static void engine_stop(struct engine *engine)
{
    for (size_t i = 0; i < N_INFORMERS; i++)
        stop_informer(engine->crowd.informers[i]);
    stop_dispatcher(&engine->crowd);
    for (size_t i = 0; i < N_INFORMERS; i++) {
        kinf_informer_free(engine->crowd.informers[i]);
        forget_saved(&engine->saved[i]);
    }
    while (engine->n_stopped != 0)
        kinf_informer_free(engine->stopped[--engine->n_stopped]);
    crowd_release(&engine->crowd);
    kinf_client_free(engine->client);
    server_model_stop(engine->server);
    server_history_release(&engine->history);
}

/* --- at rest --- */

/* Whether it says that it has seen everything. */
static bool is_at_newest(struct engine *engine, struct kinf_informer *informer)
{
    char rv[64];

    assert_int_equal(kinf_informer_resource_version(informer, rv, sizeof rv), 0);
    return strtoul(rv, NULL, 10) == engine->history.rv;
}

static bool has_state(struct engine *engine, size_t view)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot =
        kinf_indexer_snapshot(kinf_informer_indexer(engine->crowd.informers[view]));

    return server_history_equals(&engine->history, &views[view], snapshot);
}

static void print_status(struct kinf_informer *informer)
{
    struct kinf_informer_status status;

    kinf_informer_status(informer, &status);
    print_error("%s (%s): %zu objects, %zu queued, %llu lists, %llu watches, %llu errors\n",
                kinf_informer_state_to_string(status.state), status.reason, status.n_objects,
                status.n_queued, (unsigned long long)status.n_lists,
                (unsigned long long)status.n_watches, (unsigned long long)status.n_errors);
}

/* `is_unique`: the newest version never meant anything else, so who is there has the state. */
static void wait_for_store(struct engine *engine, size_t view, bool is_unique)
{
    struct kinf_informer *informer = engine->crowd.informers[view];
    int64_t begun_ms = kinf__clock_now_ms();

    while (!is_at_newest(engine, informer) || !has_state(engine, view)) {
        if (is_unique && is_at_newest(engine, informer) && !has_state(engine, view))
            fail_msg("view %zu is at the newest version, but not at the state", view);
        if (kinf__clock_now_ms() - begun_ms > PATIENCE_MS) {
            print_status(informer);
            fail_msg("view %zu never came to the state", view);
        }
        pause_ms(1);
    }
    assert_null(kinf__indexer_check(kinf_informer_indexer(informer)));
    assert_true(kinf__processor_check(&informer->processor));
}

static bool has_picture_locked(struct follower *follower, struct kinf_snapshot *snapshot)
{
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    size_t n_told = 0;

    for (size_t i = 0; i < SERVER_N_SLOTS; i++)
        n_told += follower->told[i] != NULL;
    if (follower->n_synced != 1 || n_told != kinf_snapshot_count(snapshot))
        return false;
    kinf_cursor_all(&cursor, snapshot);
    while ((object = kinf_cursor_next(&cursor)) != NULL) {
        if (follower->told[server_slot_of(object)] != object)
            return false;
    }
    return true;
}

static void wait_for_follower(struct follower *follower)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot =
        kinf_indexer_snapshot(kinf_informer_indexer(follower->crowd->informers[follower->view]));
    struct timespec until = end_of_patience();

    pthread_mutex_lock(&follower->mutex);
    while (!has_picture_locked(follower, snapshot))
        assert_int_equal(pthread_cond_timedwait(&follower->changed, &follower->mutex, &until), 0);
    pthread_mutex_unlock(&follower->mutex);
}

static void settle(struct engine *engine)
{
    bool is_unique = below(engine, 2) == 0;

    if (is_unique)
        server_history_outrun(&engine->history);
    calm_down(&engine->crowd);
    server_model_set_trouble(engine->server, 0);
    for (size_t i = 0; i < N_INFORMERS; i++)
        wait_for_store(engine, i, is_unique);
    for (size_t i = 0; i < N_FOLLOWERS; i++) {
        if (engine->crowd.followers[i].state == FOLLOWER_HERE)
            wait_for_follower(&engine->crowd.followers[i]);
    }
}

/* In order, a store is at each moment what the server had at the store's version. */
static void check_versions(struct engine *engine)
{
    for (size_t i = 0; i < N_INFORMERS; i++) {
        struct kinf_informer *informer = engine->crowd.informers[i];
        kinf_auto_snapshot struct kinf_snapshot *snapshot =
            kinf_indexer_snapshot(kinf_informer_indexer(informer));
        const char *rv = kinf_snapshot_resource_version(snapshot);

        if (informer->order == KINF_FIFO_IN_ORDER && rv[0] != '\0' &&
            !server_history_had(&engine->history, &views[i], snapshot))
            fail_msg("view %zu has a state at %s that the server did not have", i, rv);
    }
}

/* --- the test --- */

static void change_something(struct engine *engine)
{
    for (size_t n = 1 + below(engine, 5); n > 0; n--)
        server_history_change(&engine->history);
    server_model_wake(engine->server);
}

/* The period of every handler of one informer is over. */
static void resync(struct engine *engine)
{
    struct kinf_informer *informer = engine->crowd.informers[below(engine, N_INFORMERS)];

    if (!kinf_informer_has_synced(informer))
        return;
    engine->passed_ms += RESYNC_PERIOD_MS;
    kinf__processor_should_resync(&informer->processor, kinf__clock_now_ms() + engine->passed_ms,
                                  false);
    assert_int_equal(kinf_deltafifo_resync(informer->fifo, NULL), 0);
}

static void do_something(struct engine *engine)
{
    switch (below(engine, 32)) {
    case 0:
        server_history_set_checkpoint(&engine->history);
        break;
    case 1:
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
    case 7:
    case 8:
        come_or_go(&engine->crowd);
        break;
    case 9:
        resync(engine);
        break;
    case 10:
    case 11:
    case 12:
    case 13:
    case 14:
        pause_ms(1 + (long)below(engine, 3));
        break;
    default:
        change_something(engine);
        break;
    }
}

/* At rest, what is stored is of the present generation. */
static void save(struct engine *engine, size_t view)
{
    struct kinf_informer *informer = engine->crowd.informers[view];
    const struct kinf_informer_options *options = &engine->options[view];

    if (options->fifo_order != KINF_FIFO_IN_ORDER || options->transform != NULL)
        return;
    forget_saved(&engine->saved[view]);
    engine->saved[view] =
        (struct saved){ kinf__informer_savable(informer), engine->history.generation };
}

static void restart(struct engine *engine, size_t view)
{
    struct crowd *crowd = &engine->crowd;

    if (engine->n_stopped == N_RESTARTS)
        return;
    calm_down(crowd);
    for (size_t i = 0; i < N_FOLLOWERS; i++) {
        if (crowd->followers[i].view == view)
            leave(&crowd->followers[i]);
    }
    stop_dispatcher(crowd);
    stop_informer(crowd->informers[view]);
    engine->stopped[engine->n_stopped++] = crowd->informers[view];
    if (below(engine, 3) == 0)
        server_model_restore(engine->server, below(engine, 8));
    if (below(engine, 3) == 0)
        server_history_forget(&engine->history);
    change_something(engine);
    if (engine->saved[view].snapshot != NULL)
        server_model_set_generation(engine->server, &views[view], engine->saved[view].generation);
    start_informer(engine, view);
    start_dispatcher(crowd);
}

static void play_round(struct engine *engine)
{
    server_model_set_trouble(engine->server, (unsigned)below(engine, 101));
    if (below(engine, 2) == 0)
        restart(engine, below(engine, N_INFORMERS));
    atomic_store(&engine->crowd.is_restless, below(engine, 2) == 0);
    for (size_t n = 1 + below(engine, 60); n > 0; n--) {
        do_something(engine);
        check_versions(engine);
    }
}

static size_t count_entries(const char *path)
{
    DIR *dir = opendir(path);
    size_t n = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

/* A joined thread may be listed a little longer. */
static void wait_for_entries(const char *path, size_t n)
{
    int64_t begun_ms = kinf__clock_now_ms();

    while (count_entries(path) > n) {
        if (kinf__clock_now_ms() - begun_ms > PATIENCE_MS)
            fail_msg("%zu entries in %s instead of %zu", count_entries(path), path, n);
        pause_ms(1);
    }
}

/* A life ends in the midst of trouble, or at rest. */
static void live(struct engine *engine)
{
    engine_start(engine);
    for (size_t rounds = 1 + below(engine, 8); rounds > 0; rounds--) {
        play_round(engine);
        settle(engine);
        for (size_t i = 0; i < N_INFORMERS; i++) {
            if (below(engine, 2) == 0)
                save(engine, i);
        }
    }
    if (below(engine, 2) == 0)
        play_round(engine);
    calm_down(&engine->crowd);
    engine_stop(engine);
}

static void stores_and_handlers_follow_a_server_that_goes_wrong(void **state)
{
    struct engine engine = { .random = test_random_init("engine_model") };
    size_t n_objects = kinf__object_count(), n_lives = test_rounds(30), n_fds, n_threads;

    (void)state;
    live(&engine);
    n_fds = count_entries("/proc/self/fd");
    n_threads = count_entries("/proc/self/task");
    for (size_t lives = n_lives; lives > 0; lives--) {
        live(&engine);
        assert_int_equal(kinf__object_count(), n_objects);
        wait_for_entries("/proc/self/fd", n_fds);
        wait_for_entries("/proc/self/task", n_threads);
    }
    if (n_lives == 30) /* not in slow builds */
        engine_ways_check();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_and_handlers_follow_a_server_that_goes_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
