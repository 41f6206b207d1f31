/*
 * Random histories: a server that loses events and may be restored to an earlier state, a queue of
 * either order, and handlers that come and go. What each handler is told is a legal history (G1,
 * G3, G4, G6, G7, G9), and when nothing moves any more its own picture is the store's, the store's
 * is the server's, and so is the version.
 *
 * A follower checks in its callbacks, on its own thread; the test looks at it only after it was
 * told of the round's last object, or is done.
 */
#include "unit/informer_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "indexer/indexer.h"

#include "unit/test.h"

#define N_FOLLOWERS 6
#define N_KEYS_MAX  1500       /* a resync and many a list are then told in slices */
#define END_KEY     N_KEYS_MAX /* of the object that ends a round */
#define N_SLOTS     (N_KEYS_MAX + 1)

/* --- followers --- */

struct follower {
    struct informer_fixture *f;
    bool may_go_back;   /* the server is restored now and then */
    kinf_handler_id id; /* 0: not there */
    enum kinf_backlog backlog;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    const struct kinf_object *told[N_SLOTS]; /* the last state of each key; NULL: none */
    unsigned n_synced;
    bool is_done;
    unsigned long end_serial; /* of the last END_KEY told */
};

static void illegal(const char *what, const struct kinf_object *object)
{
    fprintf(stderr, "illegal: %s: %s@%s\n", what, kinf_object_key(object),
            kinf_object_resource_version(object));
    abort();
}

static unsigned long version(const struct kinf_object *object)
{
    return strtoul(kinf_object_resource_version(object), NULL, 10);
}

/* The server's text is "secret-" and the serial; what handlers and index functions see has the
 * serial alone. */
#define SECRET "secret-"

static void read_text(const struct kinf_object *object, char text[32])
{
    if (kinf_object_get_string(object, "text", text, 32) < 0)
        illegal("no text", object);
}

static unsigned long serial(const struct kinf_object *object)
{
    char text[32];

    read_text(object, text);
    if (text[0] == SECRET[0])
        illegal("the transform has not seen it", object);
    return strtoul(text, NULL, 10);
}

static int redact(const struct kinf_object *object, const struct kinf_object **ret_object,
                  void *ctx)
{
    char text[32];

    (void)ctx;
    read_text(object, text);
    if (text[0] != SECRET[0])
        illegal("transformed twice", object);
    *ret_object = make_thing_of(kinf_object_name(object), kinf_object_uid(object),
                                kinf_object_resource_version(object), text + strlen(SECRET));
    return 0;
}

static int index_by_serial(const struct kinf_object *object, struct kinf_index_values *values,
                           void *ctx)
{
    char text[32];

    (void)ctx;
    return kinf_index_values_add(values, text,
                                 (size_t)snprintf(text, sizeof text, "%lu", serial(object)));
}

static size_t slot_of(const struct kinf_object *object)
{
    return strtoul(kinf_object_name(object) + 1, NULL, 10);
}

static void tell(struct follower *follower, const struct kinf_object *object, bool is_there)
{
    size_t slot = slot_of(object);

    if (follower->is_done)
        illegal("told after done", object);
    pthread_mutex_lock(&follower->mutex);
    kinf_object_unref(follower->told[slot]);
    follower->told[slot] = is_there ? kinf_object_ref(object) : NULL;
    if (slot == END_KEY)
        follower->end_serial = serial(object);
    pthread_cond_broadcast(&follower->changed);
    pthread_mutex_unlock(&follower->mutex);
}

static void on_add(const struct kinf_object *object, bool in_initial_list, void *ctx)
{
    struct follower *follower = ctx;

    if (follower->told[slot_of(object)] != NULL)
        illegal("add of what is there", object);
    if (in_initial_list && follower->n_synced != 0)
        illegal("initial add after synced", object);
    tell(follower, object, true);
}

static void on_update(const struct kinf_object *old, const struct kinf_object *object, void *ctx)
{
    struct follower *follower = ctx;

    if (follower->told[slot_of(object)] != old)
        illegal("update from another state than the last told", object);
    if (!kinf__object_same_uid(old, object))
        illegal("update joins two objects", object);
    if (version(object) < version(old) && !follower->may_go_back)
        illegal("update goes back", object);
    tell(follower, object, true);
}

static void on_delete(const struct kinf_object *object, bool final_state_unknown, void *ctx)
{
    struct follower *follower = ctx;
    const struct kinf_object *last = follower->told[slot_of(object)];

    if (last == NULL)
        illegal("delete of what is not there", object);
    if (!kinf__object_same_uid(last, object))
        illegal("delete of another object", object);
    if ((version(object) < version(last) && !follower->may_go_back) ||
        (final_state_unknown && follower->backlog == KINF_BACKLOG_UNBOUNDED &&
         version(object) != version(last)))
        illegal("delete of another state", object);
    tell(follower, object, false);
}

static void on_synced(void *ctx)
{
    struct follower *follower = ctx;

    if (follower->n_synced++ != 0)
        abort();
}

static void on_done(void *ctx)
{
    struct follower *follower = ctx;

    if (follower->is_done)
        abort();
    follower->is_done = true;
}

static void follower_init(struct follower *follower, struct informer_fixture *f, bool may_go_back)
{
    *follower = (struct follower){ .f = f, .may_go_back = may_go_back };
    pthread_mutex_init(&follower->mutex, NULL);
    pthread_cond_init(&follower->changed, NULL);
}

static void follower_forget(struct follower *follower)
{
    for (size_t i = 0; i < N_SLOTS; i++) {
        kinf_object_unref(follower->told[i]);
        follower->told[i] = NULL;
    }
    follower->id = 0;
    follower->n_synced = 0;
    follower->is_done = false;
    follower->end_serial = 0;
}

static void follower_join(struct follower *follower, int64_t resync_period_ms,
                          enum kinf_backlog backlog)
{
    const struct kinf_handler handler = {
        .on_add = on_add,
        .on_update = on_update,
        .on_delete = on_delete,
        .on_synced = on_synced,
        .on_done = on_done,
        .ctx = follower,
        .resync_period_ms = resync_period_ms,
        .backlog = backlog,
    };

    follower->backlog = backlog;

    assert_int_equal(
        kinf_informer_add_handler(follower->f->informer, &handler, &follower->id, NULL), 0);
}

static void follower_leave(struct follower *follower)
{
    kinf_informer_remove_handler(follower->f->informer, follower->id);
    assert_true(follower->is_done);
    follower_forget(follower);
}

static void follower_wait_end(struct follower *follower, unsigned long end_serial)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    pthread_mutex_lock(&follower->mutex);
    while (follower->end_serial < end_serial)
        assert_int_equal(pthread_cond_timedwait(&follower->changed, &follower->mutex, &until), 0);
    pthread_mutex_unlock(&follower->mutex);
}

/* Nothing moves: the picture is the store. */
static void follower_compare(struct follower *follower)
{
    kinf_auto_snapshot struct kinf_snapshot *snapshot =
        kinf_indexer_snapshot(kinf_informer_indexer(follower->f->informer));
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    size_t n_told = 0;

    pthread_mutex_lock(&follower->mutex);
    for (size_t i = 0; i < N_SLOTS; i++)
        n_told += follower->told[i] != NULL;
    assert_int_equal(n_told, kinf_snapshot_count(snapshot));
    kinf_cursor_all(&cursor, snapshot);
    while ((object = kinf_cursor_next(&cursor)) != NULL)
        assert_ptr_equal(follower->told[slot_of(object)], object);
    pthread_mutex_unlock(&follower->mutex);
}

/* --- the server --- */

struct server_state {
    unsigned long rv;
    struct {
        unsigned long uid; /* 0: not there */
        unsigned long rv;
        unsigned long serial; /* of the write: never comes again, as versions do */
    } objects[N_SLOTS];
};

struct server {
    struct informer_fixture *f;
    struct test_random random;
    size_t n_keys;
    bool is_restored; /* now and then */
    unsigned long uid;
    unsigned long serial;
    struct server_state now;
    struct server_state backup;
};

static const struct kinf_object *object_of(struct server *server, size_t slot)
{
    char name[32], uid[32], rv[32], text[32];

    snprintf(name, sizeof name, "k%zu", slot);
    snprintf(uid, sizeof uid, "%lu", server->now.objects[slot].uid);
    snprintf(rv, sizeof rv, "%lu", server->now.objects[slot].rv);
    snprintf(text, sizeof text, SECRET "%lu", server->now.objects[slot].serial);
    return make_thing_of(name, uid, rv, text);
}

/* What the watch sees of it is up to chance. */
static void send(struct server *server, enum kinf_delta_type type, size_t slot, bool is_lost)
{
    if (!is_lost)
        feed_object(server->f, type, object_of(server, slot));
}

static void delete_object(struct server *server, size_t slot, bool is_lost)
{
    server->now.objects[slot].rv = ++server->now.rv;
    send(server, KINF_DELTA_DELETED, slot, is_lost);
    server->now.objects[slot].uid = 0;
}

static void write_object(struct server *server, size_t slot, bool is_lost)
{
    bool is_new = server->now.objects[slot].uid == 0;

    if (is_new)
        server->now.objects[slot].uid = ++server->uid;
    server->now.objects[slot].rv = ++server->now.rv;
    server->now.objects[slot].serial = ++server->serial;
    send(server, is_new ? KINF_DELTA_ADDED : KINF_DELTA_UPDATED, slot, is_lost);
}

static void change_something(struct server *server, bool is_lost)
{
    size_t slot = test_random_below(&server->random, server->n_keys);

    if (server->now.objects[slot].uid != 0 && test_random_below(&server->random, 3) == 0)
        delete_object(server, slot, is_lost);
    else
        write_object(server, slot, is_lost);
}

static void relist(struct server *server)
{
    const struct kinf_object *objects[N_SLOTS];
    size_t n_objects = 0;
    char rv[32];

    for (size_t i = 0; i < N_SLOTS; i++) {
        if (server->now.objects[i].uid != 0)
            objects[n_objects++] = object_of(server, i);
    }
    snprintf(rv, sizeof rv, "%lu", server->now.rv);
    assert_int_equal(
        kinf_deltafifo_replace(server->f->informer->fifo, objects, n_objects, rv, NULL), 0);
    for (size_t i = 0; i < n_objects; i++)
        kinf_object_unref(objects[i]);
    kinf__informer_note_contact(server->f->informer);
}

/* A break of the watch: some events are missed, then a list. */
static void lose_and_relist(struct server *server)
{
    for (size_t n = test_random_below(&server->random, server->n_keys); n > 0; n--)
        change_something(server, true);
    relist(server);
}

/* The server comes back as it was at some time before, and counts up from there again. */
static void back_up_or_restore(struct server *server)
{
    if (!server->is_restored)
        return;
    if (test_random_below(&server->random, 2) == 0) {
        server->backup = server->now;
        return;
    }
    server->now = server->backup;
    relist(server);
}

static void bookmark(struct server *server)
{
    char rv[32];

    server->now.rv += test_random_below(&server->random, 3);
    snprintf(rv, sizeof rv, "%lu", server->now.rv);
    assert_int_equal(kinf_deltafifo_bookmark(server->f->informer->fifo, rv, NULL), 0);
    kinf__informer_note_contact(server->f->informer);
}

/* --- the test --- */

static void come_or_go(struct server *server, struct follower *follower)
{
    if (follower->id != 0)
        follower_leave(follower);
    else
        follower_join(follower, test_random_below(&server->random, 2) == 0 ? 1000 : 0,
                      test_random_below(&server->random, 2) == 0 ? KINF_BACKLOG_COALESCE
                                                                 : KINF_BACKLOG_UNBOUNDED);
}

/* Everybody syncing, as when a resync is due: they hear of unchanged objects, too. */
static void resync(struct server *server)
{
    kinf__processor_should_resync(&server->f->informer->processor, INT64_MAX / 2, false);
    assert_int_equal(kinf_deltafifo_resync(server->f->informer->fifo, NULL), 0);
}

static void play_round(struct server *server, struct follower *followers)
{
    for (size_t n = test_random_below(&server->random, 60); n > 0; n--) {
        switch (test_random_below(&server->random, 18)) {
        case 0:
            lose_and_relist(server);
            break;
        case 1:
            resync(server);
            break;
        case 2:
        case 3:
            come_or_go(server, &followers[test_random_below(&server->random, N_FOLLOWERS)]);
            break;
        case 4:
            bookmark(server);
            break;
        case 5:
            back_up_or_restore(server);
            break;
        default:
            change_something(server, false);
            break;
        }
    }
}

static void wait_end(struct server *server, struct follower *followers)
{
    write_object(server, END_KEY, false);
    for (size_t i = 0; i < N_FOLLOWERS; i++) {
        if (followers[i].id != 0)
            follower_wait_end(&followers[i], server->serial);
    }
}

/* The store is the server's state, at its version. */
static void compare_store(struct server *server)
{
    struct kinf_informer *informer = server->f->informer;
    kinf_auto_snapshot struct kinf_snapshot *snapshot = kinf_indexer_snapshot(informer->indexer);
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    size_t n_objects = 0;

    for (size_t i = 0; i < N_SLOTS; i++)
        n_objects += server->now.objects[i].uid != 0;
    assert_int_equal(kinf_snapshot_count(snapshot), n_objects);
    kinf_cursor_all(&cursor, snapshot);
    while ((object = kinf_cursor_next(&cursor)) != NULL) {
        assert_int_equal(version(object), server->now.objects[slot_of(object)].rv);
        assert_int_equal(serial(object), server->now.objects[slot_of(object)].serial);
    }
    assert_null(kinf__indexer_check(informer->indexer));
    assert_true(kinf__processor_check(&informer->processor));
}

static void compare_version(struct server *server)
{
    char rv[32], seen[64];

    snprintf(rv, sizeof rv, "%lu", server->now.rv);
    assert_int_equal(kinf_informer_wait_for_rv(server->f->informer, rv, 60000, NULL), 0);
    assert_int_equal(kinf_informer_resource_version(server->f->informer, seen, sizeof seen), 0);
    assert_string_equal(seen, rv);
}

/* By key, keys leave the queue as they came. A list or a resync of the round may have put the end's
 * key in front of others; once it has left, it comes last. */
static void settle(struct server *server, struct follower *followers)
{
    if (followers[0].id == 0)
        follower_join(&followers[0], 0, KINF_BACKLOG_COALESCE);
    wait_end(server, followers);
    wait_end(server, followers);
    bookmark(server);
    compare_version(server);
    compare_store(server);
    for (size_t i = 0; i < N_FOLLOWERS; i++) {
        if (followers[i].id != 0)
            follower_compare(&followers[i]);
    }
}

static void play(struct informer_fixture *f, size_t n_keys, bool is_restored, size_t n_rounds)
{
    const struct kinf_index indices[] = { { .name = "text", .path = "text" },
                                          { .name = "serial", .function = index_by_serial } };
    const struct kinf_informer_options options = { .size = sizeof options,
                                                   .indices = indices,
                                                   .n_indices = KINF__ARRAY_LEN(indices),
                                                   .transform = redact };
    struct follower *followers = calloc(N_FOLLOWERS, sizeof *followers);
    struct server *server = calloc(1, sizeof *server);

    assert_true(followers != NULL && server != NULL);
    server->f = f;
    server->random = test_random_init("informer_model");
    server->n_keys = n_keys;
    server->is_restored = is_restored;
    server->now.rv = server->backup.rv = 1;
    informer_make(f, &options);
    for (size_t i = 0; i < N_FOLLOWERS; i++)
        follower_init(&followers[i], f, is_restored);
    follower_join(&followers[0], 0, KINF_BACKLOG_COALESCE);
    relist(server);
    informer_start(f);
    for (; n_rounds > 0; n_rounds--) {
        play_round(server, followers);
        settle(server, followers);
    }
    assert_int_equal(kinf_informer_stop(f->informer, NULL), 0);
    for (size_t i = 0; i < N_FOLLOWERS; i++)
        follower_forget(&followers[i]);
    free(server);
    free(followers);
}

static void every_handler_is_told_a_legal_history_that_ends_at_the_store(void **state)
{
    play(*state, 12, false, test_rounds(600));
}

static void so_it_is_when_the_server_is_restored(void **state)
{
    play(*state, 12, true, test_rounds(600));
}

static void so_it_is_with_large_lists(void **state)
{
    play(*state, N_KEYS_MAX, true, test_rounds(40));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        INFORMER_TEST_BOTH(every_handler_is_told_a_legal_history_that_ends_at_the_store),
        INFORMER_TEST_BOTH(so_it_is_when_the_server_is_restored),
        INFORMER_TEST_BOTH(so_it_is_with_large_lists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
