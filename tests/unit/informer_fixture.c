/*
 * The aids of the informer's tests.
 */
#include "unit/informer_fixture.h"

#include <sched.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "unit/test.h"

#define PATIENCE_S 60

/* --- objects --- */

const struct kinf_type *things(void)
{
    const struct kinf_type *type;

    assert_int_equal(kinf_type_intern("", "v1", "Thing", "things", true, &type, NULL), 0);
    return type;
}

const struct kinf_object *make_thing_of(const char *name, const char *uid, const char *rv,
                                        const char *text)
{
    const struct kinf_object *object;
    struct kinf_error err = KINF_ERROR_INIT;
    char json[512];

    snprintf(json, sizeof json,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"%s\","
             "\"resourceVersion\":\"%s\"},\"text\":\"%s\"}",
             name, uid, rv, text);
    if (kinf_object_new_from_json(things(), json, strlen(json), &object, &err) < 0)
        fail_msg("%s", err.message);
    return object;
}

const struct kinf_object *make_thing(const char *name, const char *rv)
{
    char uid[64];

    snprintf(uid, sizeof uid, "u-%s", name);
    return make_thing_of(name, uid, rv, "");
}

/* --- recorders --- */

static struct timespec deadline(void)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_S;
    return end;
}

static void append_line(struct recorder *recorder, const char *line)
{
    if (recorder->n_lines == recorder->n_allocated) {
        recorder->n_allocated = recorder->n_allocated != 0 ? 2 * recorder->n_allocated : 64;
        recorder->lines =
            realloc(recorder->lines, recorder->n_allocated * sizeof recorder->lines[0]);
        if (recorder->lines == NULL)
            abort();
    }
    snprintf(recorder->lines[recorder->n_lines++], sizeof recorder->lines[0], "%s", line);
}

void recorder_write(struct recorder *recorder, const char *line)
{
    if (!kinf__mutex_none_held())
        abort();
    pthread_mutex_lock(&recorder->mutex);
    append_line(recorder, line);
    recorder->is_waiting = true;
    pthread_cond_broadcast(&recorder->changed);
    while (recorder->is_blocked)
        pthread_cond_wait(&recorder->changed, &recorder->mutex);
    recorder->is_waiting = false;
    pthread_mutex_unlock(&recorder->mutex);
    if (recorder->react != NULL)
        recorder->react(recorder, line);
}

static void describe(char *text, size_t size, const struct kinf_object *object)
{
    snprintf(text, size, "%s@%s", kinf_object_name(object), kinf_object_resource_version(object));
}

/* G2: what the handler is told about is in the store, or newer. */
static void check_store(struct recorder *recorder, const struct kinf_object *object)
{
    kinf_auto_object const struct kinf_object *stored = NULL;

    if (!recorder->is_checking_store)
        return;
    if (kinf_indexer_get_by_key(kinf_informer_indexer(recorder->informer), kinf_object_key(object),
                                &stored) < 0 ||
        strtoul(kinf_object_resource_version(stored), NULL, 10) <
            strtoul(kinf_object_resource_version(object), NULL, 10))
        recorder_write(recorder, "the store is behind");
}

static void on_add(const struct kinf_object *object, bool in_initial_list, void *ctx)
{
    char name[32], line[64];

    check_store(ctx, object);
    describe(name, sizeof name, object);
    snprintf(line, sizeof line, "add%s %s", in_initial_list ? "!" : "", name);
    recorder_write(ctx, line);
}

static void on_update(const struct kinf_object *old, const struct kinf_object *object, void *ctx)
{
    char old_name[32], name[32], line[64];

    check_store(ctx, object);
    describe(old_name, sizeof old_name, old);
    describe(name, sizeof name, object);
    snprintf(line, sizeof line, "update %s %s", old_name, name);
    recorder_write(ctx, line);
}

static void on_delete(const struct kinf_object *object, bool final_state_unknown, void *ctx)
{
    char name[32], line[64];

    describe(name, sizeof name, object);
    snprintf(line, sizeof line, "delete%s %s", final_state_unknown ? "*" : "", name);
    recorder_write(ctx, line);
}

static void on_synced(void *ctx)
{
    recorder_write(ctx, "synced");
}

static void on_done(void *ctx)
{
    recorder_write(ctx, "done");
}

void recorder_init(struct recorder *recorder)
{
    *recorder = (struct recorder){ 0 };
    pthread_mutex_init(&recorder->mutex, NULL);
    pthread_cond_init(&recorder->changed, NULL);
}

void recorder_release(struct recorder *recorder)
{
    free(recorder->lines);
    pthread_cond_destroy(&recorder->changed);
    pthread_mutex_destroy(&recorder->mutex);
}

struct kinf_handler recorder_handler(struct recorder *recorder)
{
    struct kinf_handler handler = {
        .on_add = on_add,
        .on_update = on_update,
        .on_delete = on_delete,
        .on_synced = on_synced,
        .on_done = on_done,
        .ctx = recorder,
    };

    return handler;
}

static void print_lines(struct recorder *recorder)
{
    for (size_t i = 0; i < recorder->n_lines; i++)
        print_error("  %s\n", recorder->lines[i]);
}

/* False when the time is over. */
static bool wait_changed(struct recorder *recorder, const struct timespec *until)
{
    return pthread_cond_timedwait(&recorder->changed, &recorder->mutex, until) == 0;
}

void recorder_wait(struct recorder *recorder, size_t n_lines)
{
    struct timespec until = deadline();
    size_t n_seen;

    pthread_mutex_lock(&recorder->mutex);
    while (recorder->n_lines < n_lines && wait_changed(recorder, &until))
        continue;
    n_seen = recorder->n_lines;
    if (n_seen < n_lines)
        print_lines(recorder);
    pthread_mutex_unlock(&recorder->mutex);
    if (n_seen < n_lines)
        fail_msg("%zu lines instead of %zu", n_seen, n_lines);
}

static bool has_line(const struct recorder *recorder, const char *line)
{
    for (size_t i = 0; i < recorder->n_lines; i++) {
        if (strcmp(recorder->lines[i], line) == 0)
            return true;
    }
    return false;
}

void recorder_wait_for(struct recorder *recorder, const char *line)
{
    struct timespec until = deadline();
    bool is_there;

    pthread_mutex_lock(&recorder->mutex);
    while (!(is_there = has_line(recorder, line)) && wait_changed(recorder, &until))
        continue;
    if (!is_there)
        print_lines(recorder);
    pthread_mutex_unlock(&recorder->mutex);
    if (!is_there)
        fail_msg("'%s' never came", line);
}

void recorder_wait_blocked(struct recorder *recorder)
{
    struct timespec until = deadline();
    bool is_waiting;

    pthread_mutex_lock(&recorder->mutex);
    while (!(recorder->is_waiting && recorder->is_blocked) && wait_changed(recorder, &until))
        continue;
    is_waiting = recorder->is_waiting;
    pthread_mutex_unlock(&recorder->mutex);
    assert_true(is_waiting);
}

static void set_blocked(struct recorder *recorder, bool is_blocked)
{
    pthread_mutex_lock(&recorder->mutex);
    recorder->is_blocked = is_blocked;
    pthread_cond_broadcast(&recorder->changed);
    pthread_mutex_unlock(&recorder->mutex);
}

void recorder_block(struct recorder *recorder)
{
    set_blocked(recorder, true);
}

void recorder_unblock(struct recorder *recorder)
{
    set_blocked(recorder, false);
}

void recorder_set_result(struct recorder *recorder, int result)
{
    pthread_mutex_lock(&recorder->mutex);
    recorder->result = result;
    pthread_mutex_unlock(&recorder->mutex);
}

int recorder_result(struct recorder *recorder)
{
    int result;

    pthread_mutex_lock(&recorder->mutex);
    result = recorder->result;
    pthread_mutex_unlock(&recorder->mutex);
    return result;
}

size_t recorder_count(struct recorder *recorder, const char *prefix)
{
    size_t n = 0;

    pthread_mutex_lock(&recorder->mutex);
    for (size_t i = 0; i < recorder->n_lines; i++)
        n += strncmp(recorder->lines[i], prefix, strlen(prefix)) == 0;
    pthread_mutex_unlock(&recorder->mutex);
    return n;
}

void recorder_expect_lines(struct recorder *recorder, const char *const *lines)
{
    size_t n = 0;
    bool is_same = true;

    while (lines[n] != NULL)
        n++;
    recorder_wait(recorder, n);
    pthread_mutex_lock(&recorder->mutex);
    for (size_t i = 0; i < n && is_same; i++)
        is_same = strcmp(recorder->lines[i], lines[i]) == 0;
    is_same = is_same && recorder->n_lines == n;
    if (!is_same)
        print_lines(recorder);
    pthread_mutex_unlock(&recorder->mutex);
    assert_true(is_same);
}

/* --- an informer without a reflector --- */

int informer_setup(void **state)
{
    struct informer_fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->order = KINF_FIFO_KEYED;
    f->n_objects_before = kinf__object_count();
    for (size_t i = 0; i < KINF__ARRAY_LEN(f->recorders); i++)
        recorder_init(&f->recorders[i]);
    *state = f;
    return 0;
}

int informer_setup_in_order(void **state)
{
    struct informer_fixture *f;

    informer_setup(state);
    f = *state;
    f->order = KINF_FIFO_IN_ORDER;
    return 0;
}

int informer_teardown(void **state)
{
    struct informer_fixture *f = *state;

    kinf_informer_free(f->informer);
    assert_int_equal(kinf__object_count(), f->n_objects_before);
    for (size_t i = 0; i < KINF__ARRAY_LEN(f->recorders); i++)
        recorder_release(&f->recorders[i]);
    free(f);
    return 0;
}

void informer_make(struct informer_fixture *f, const struct kinf_informer_options *options)
{
    struct kinf_informer_options own = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_error err = KINF_ERROR_INIT;

    if (options != NULL)
        own = *options;
    own.fifo_order = f->order;
    if (kinf__informer_new_for_type(NULL, things(), &own, &f->informer, &err) < 0)
        fail_msg("%s", err.message);
}

void informer_start(struct informer_fixture *f)
{
    struct kinf_error err = KINF_ERROR_INIT;

    if (kinf_informer_start(f->informer, &err) < 0)
        fail_msg("%s", err.message);
}

void informer_add_resynced(struct informer_fixture *f, struct recorder *recorder,
                           int64_t resync_period_ms)
{
    struct kinf_handler handler = recorder_handler(recorder);
    struct kinf_error err = KINF_ERROR_INIT;

    handler.resync_period_ms = resync_period_ms;
    recorder->informer = f->informer;
    if (kinf_informer_add_handler(f->informer, &handler, &recorder->id, &err) < 0)
        fail_msg("%s", err.message);
}

void informer_await_stop(struct kinf_informer *informer)
{
    struct kinf_informer_status status = { 0 };

    while (status.state != KINF_STATE_STOPPED) {
        sched_yield();
        kinf_informer_status(informer, &status);
    }
}

void informer_add(struct informer_fixture *f, struct recorder *recorder)
{
    informer_add_resynced(f, recorder, 0);
}

void informer_come_and_go(struct informer_fixture *f, size_t n,
                          void (*add)(struct informer_fixture *f, struct recorder *recorder))
{
    for (size_t i = 0; i < n; i++) {
        struct recorder recorder;

        recorder_init(&recorder);
        add(f, &recorder);
        if (i % 2 == 0)
            recorder_wait_for(&recorder, "synced");
        kinf_informer_remove_handler(f->informer, recorder.id);
        if (recorder_count(&recorder, "done") != 1)
            abort();
        recorder_release(&recorder);
    }
}

void feed_object(struct informer_fixture *f, enum kinf_delta_type type,
                 const struct kinf_object *take_object)
{
    int rc;

    if (type == KINF_DELTA_ADDED)
        rc = kinf_deltafifo_add(f->informer->fifo, take_object, NULL);
    else if (type == KINF_DELTA_UPDATED)
        rc = kinf_deltafifo_update(f->informer->fifo, take_object, NULL);
    else
        rc = kinf_deltafifo_delete(f->informer->fifo, take_object, NULL);
    kinf_object_unref(take_object);
    assert_int_equal(rc, 0);
    kinf__informer_note_contact(f->informer);
}

void feed_add(struct informer_fixture *f, const char *name, const char *rv)
{
    feed_object(f, KINF_DELTA_ADDED, make_thing(name, rv));
}

void feed_update(struct informer_fixture *f, const char *name, const char *rv)
{
    feed_object(f, KINF_DELTA_UPDATED, make_thing(name, rv));
}

void feed_delete(struct informer_fixture *f, const char *name, const char *rv)
{
    feed_object(f, KINF_DELTA_DELETED, make_thing(name, rv));
}

static void replace(struct informer_fixture *f, const char *list_rv,
                    const struct kinf_object **take_objects, size_t n_objects)
{
    assert_int_equal(
        kinf_deltafifo_replace(f->informer->fifo, take_objects, n_objects, list_rv, NULL), 0);
    for (size_t i = 0; i < n_objects; i++)
        kinf_object_unref(take_objects[i]);
    kinf__informer_note_contact(f->informer);
}

void feed_list(struct informer_fixture *f, const char *list_rv, const char *const *list)
{
    const struct kinf_object *objects[32];
    size_t n_objects = 0;

    for (; list[0] != NULL; list += 2)
        objects[n_objects++] = make_thing(list[0], list[1]);
    replace(f, list_rv, objects, n_objects);
}

void feed_many(struct informer_fixture *f, size_t n)
{
    const struct kinf_object **objects = calloc(n, sizeof *objects);
    char name[32];

    assert_non_null(objects);
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "o%zu", i);
        objects[i] = make_thing(name, "1");
    }
    replace(f, "1", objects, n);
    free(objects);
}

void wait_synced(struct informer_fixture *f)
{
    struct kinf_error err = KINF_ERROR_INIT;

    if (kinf_informer_wait_synced(f->informer, PATIENCE_S * 1000, &err) < 0)
        fail_msg("%s", err.message);
}
