/*
 * The aids of the queue's tests.
 */
#include "unit/deltafifo_fixture.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"
#include "object/object.h"

#include "unit/allocation.h"
#include "unit/test.h"

static const struct kinf_type pods = { "", "v1", "Pod", "pods", true };

const struct kinf_object *fifo_object(const char *name, const char *rv)
{
    const struct kinf__object_parts parts = {
        .type = &pods,
        .name_space = KINF_STR("default"),
        .name = kinf_str_from(name),
        .uid = KINF_STR("uid"),
        .resource_version = kinf_str_from(rv),
        .body = KINF_STR("{}"),
    };
    const struct kinf_object *object = NULL;

    assert_int_equal(kinf__object_new(&parts, &object, NULL), 0);
    return object;
}

const struct kinf_object *fifo_make(struct fifo_fixture *f, const char *name, const char *rv)
{
    assert_true(f->n_made < KINF__ARRAY_LEN(f->made));
    return f->made[f->n_made++] = fifo_object(name, rv);
}

int fifo_each_known(kinf_known_object_cb *callback, void *callback_ctx, void *ctx)
{
    const struct fifo_fixture *f = ctx;
    int rc = 0;

    for (size_t i = 0; i < f->n_known && rc == 0; i++)
        rc = callback(f->known[i], callback_ctx);
    return rc;
}

static bool fifo_has_known_key(const char *key, void *ctx)
{
    const struct fifo_fixture *f = ctx;

    for (size_t i = 0; i < f->n_known; i++) {
        if (strcmp(kinf_object_key(f->known[i]), key) == 0)
            return true;
    }
    return false;
}

void fifo_know(struct fifo_fixture *f, const char *name, const char *rv)
{
    f->known[f->n_known++] = fifo_make(f, name, rv);
}

struct kinf_deltafifo_options fifo_known_options(struct fifo_fixture *f)
{
    struct kinf_deltafifo_options options = KINF_DELTAFIFO_OPTIONS_INIT;

    options.order = KINF_FIFO_KEYED;
    options.known = (struct kinf_known_objects){ fifo_each_known, fifo_has_known_key, f };
    return options;
}

void fifo_open(struct fifo_fixture *f, const struct kinf_deltafifo_options *options)
{
    assert_int_equal(kinf_deltafifo_new(options, &f->fifo, NULL), 0);
}

struct kinf_deltafifo_options fifo_bare_options(const struct fifo_fixture *f)
{
    struct kinf_deltafifo_options options = KINF_DELTAFIFO_OPTIONS_INIT;

    options.order = f->order;
    return options;
}

void fifo_open_bare(struct fifo_fixture *f)
{
    const struct kinf_deltafifo_options options = fifo_bare_options(f);

    fifo_open(f, &options);
}

void fifo_open_known(struct fifo_fixture *f)
{
    const struct kinf_deltafifo_options options = fifo_known_options(f);

    fifo_open(f, &options);
}

void fifo_open_known_as_sync(struct fifo_fixture *f)
{
    struct kinf_deltafifo_options options = fifo_known_options(f);

    options.replace_as_sync = true;
    fifo_open(f, &options);
}

int fifo_setup(void **state)
{
    struct fifo_fixture *f = calloc(1, sizeof *f);

    if (f == NULL)
        return -1;
    f->order = KINF_FIFO_KEYED;
    *state = f;
    return 0;
}

int fifo_setup_in_order(void **state)
{
    if (fifo_setup(state) < 0)
        return -1;
    ((struct fifo_fixture *)*state)->order = KINF_FIFO_IN_ORDER;
    return 0;
}

void fifo_reset(struct fifo_fixture *f)
{
    if (f->fifo != NULL)
        assert_true(kinf__deltafifo_check(f->fifo));
    kinf_deltafifo_free(f->fifo);
    for (size_t i = 0; i < f->n_made; i++)
        kinf_object_unref(f->made[i]);
    assert_int_equal(kinf__object_count(), 0);
    *f = (struct fifo_fixture){ .order = f->order };
}

int fifo_teardown(void **state)
{
    fifo_reset(*state);
    free(*state);
    return 0;
}

void fifo_add(struct fifo_fixture *f, const char *name, const char *rv)
{
    assert_int_equal(kinf_deltafifo_add(f->fifo, fifo_make(f, name, rv), NULL), 0);
    assert_true(kinf__deltafifo_check(f->fifo));
}

void fifo_update(struct fifo_fixture *f, const char *name, const char *rv)
{
    assert_int_equal(kinf_deltafifo_update(f->fifo, fifo_make(f, name, rv), NULL), 0);
    assert_true(kinf__deltafifo_check(f->fifo));
}

void fifo_delete(struct fifo_fixture *f, const char *name, const char *rv)
{
    assert_int_equal(kinf_deltafifo_delete(f->fifo, fifo_make(f, name, rv), NULL), 0);
    assert_true(kinf__deltafifo_check(f->fifo));
}

/* The list is name, rv, name, rv, ..., NULL. */
int fifo_try_replace(struct fifo_fixture *f, const char *list_rv, const char *const *list)
{
    const struct kinf_object *objects[8];
    size_t n_objects = 0;

    for (; list[2 * n_objects] != NULL; n_objects++)
        objects[n_objects] = fifo_make(f, list[2 * n_objects], list[2 * n_objects + 1]);
    return kinf_deltafifo_replace(f->fifo, objects, n_objects, list_rv, NULL);
}

void fifo_resync(struct fifo_fixture *f)
{
    assert_int_equal(kinf_deltafifo_resync(f->fifo, NULL), 0);
    assert_true(kinf__deltafifo_check(f->fifo));
}

void fifo_bookmark(struct fifo_fixture *f, const char *rv)
{
    assert_int_equal(kinf_deltafifo_bookmark(f->fifo, rv, NULL), 0);
    assert_true(kinf__deltafifo_check(f->fifo));
}

const char *fifo_name(const char *key)
{
    return strchr(key, '/') + 1;
}

void fifo_append_text(char *text, size_t size, const char *more)
{
    assert_true(strlen(text) + strlen(more) < size);
    strcat(text, more);
}

static void write_delta(char *text, size_t size, const struct kinf_delta *delta)
{
    const char *rv = delta->resource_version;
    char piece[64];

    if (delta->object != NULL)
        rv = kinf_object_resource_version(delta->object);
    snprintf(piece, sizeof piece, "%s%s%s%s", kinf_delta_type_to_string(delta->type),
             delta->final_state_unknown ? "*" : "", rv != NULL ? "@" : "", rv != NULL ? rv : "");
    fifo_append_text(text, size, piece);
}

static void write_list(char *text, size_t size, const struct kinf_delta *delta)
{
    for (size_t i = 0; i < delta->n_objects; i++) {
        char piece[64];

        snprintf(piece, sizeof piece, "%s%s@%s", i == 0 ? " [" : " ",
                 fifo_name(kinf_object_key(delta->objects[i])),
                 kinf_object_resource_version(delta->objects[i]));
        fifo_append_text(text, size, piece);
    }
    fifo_append_text(text, size, delta->n_objects == 0 ? " []" : "]");
}

static void write_batch(char *text, size_t size, const struct kinf_deltas *deltas)
{
    for (size_t i = 0; i < deltas->n_items; i++) {
        const struct kinf_delta *delta = &deltas->items[i];

        if (i != 0)
            fifo_append_text(text, size, "; ");
        if (delta->object != NULL) {
            fifo_append_text(text, size, fifo_name(kinf_object_key(delta->object)));
            fifo_append_text(text, size, ": ");
        }
        write_delta(text, size, delta);
        if (delta->type == KINF_DELTA_REPLACED_ALL)
            write_list(text, size, delta);
    }
}

void fifo_write_item(char *text, size_t size, const struct kinf_deltas *deltas)
{
    if (deltas->key == NULL) {
        write_batch(text, size, deltas);
        return;
    }
    fifo_append_text(text, size, fifo_name(deltas->key));
    fifo_append_text(text, size, ":");
    for (size_t i = 0; i < deltas->n_items; i++) {
        fifo_append_text(text, size, " ");
        write_delta(text, size, &deltas->items[i]);
    }
}

int fifo_process(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx)
{
    struct fifo_fixture *f = ctx;
    void (*window)(struct fifo_fixture *) = f->window;

    f->popped[0] = '\0';
    fifo_write_item(f->popped, sizeof f->popped, deltas);
    if (in_initial_list)
        fifo_append_text(f->popped, sizeof f->popped, " initial");
    f->window = NULL;
    if (window != NULL)
        window(f);
    assert_true(kinf__deltafifo_check(f->fifo));
    return f->process_result;
}

/* What left the queue, "" if it was empty. */
const char *fifo_pop(struct fifo_fixture *f)
{
    int rc = kinf_deltafifo_pop(f->fifo, fifo_process, f, 0);

    assert_true(kinf__deltafifo_check(f->fifo));
    if (rc == KINF_ERR_TIMEOUT)
        return "";
    assert_int_equal(rc, 0);
    return f->popped;
}

const char *fifo_processed_rv(struct fifo_fixture *f)
{
    static char rv[KINF__FIFO_RV_SIZE];

    assert_int_equal(kinf_deltafifo_resource_version(f->fifo, rv, sizeof rv), 0);
    return rv;
}

bool fifo_flag(struct kinf_deltafifo *fifo, const bool *flag)
{
    bool is_set;

    kinf__mutex_lock(&fifo->lock);
    is_set = *flag;
    kinf__mutex_unlock(&fifo->lock);
    return is_set;
}

/* --- threads that wait --- */

static int process_nothing(const struct kinf_deltas *deltas, bool in_initial_list, void *ctx)
{
    (void)deltas;
    (void)in_initial_list;
    (void)ctx;
    return 0;
}

static void *wait_in_pop(void *ctx)
{
    struct fifo_waiter *waiter = ctx;

    atomic_store(&waiter->tid, gettid());
    waiter->result = kinf_deltafifo_pop(waiter->fifo, process_nothing, NULL, KINF_FOREVER);
    return NULL;
}

static void *wait_in_add(void *ctx)
{
    struct fifo_waiter *waiter = ctx;

    waiter->result = kinf_deltafifo_add(waiter->fifo, waiter->object, NULL);
    return NULL;
}

void fifo_open_full(struct fifo_fixture *f)
{
    struct kinf_deltafifo_options options = fifo_bare_options(f);

    if (f->order == KINF_FIFO_KEYED)
        options = fifo_known_options(f);
    options.max_bytes = 1;
    fifo_open(f, &options);
    fifo_add(f, "a", "1");
}

/* Whether a thread of this process runs, or would if it were its turn. */
static bool is_awake(pid_t tid)
{
    char path[64], state = 'R';
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
    fclose(file);
    return state != 'S';
}

void fifo_start_blocked_pop(struct fifo_fixture *f, struct fifo_waiter *waiter)
{
    waiter->fifo = f->fifo;
    atomic_init(&waiter->tid, 0);
    assert_int_equal(kinf__thread_start(&waiter->thread, "pop", wait_in_pop, waiter, NULL), 0);
    while (atomic_load(&waiter->tid) == 0 || is_awake(atomic_load(&waiter->tid)))
        sched_yield();
}

void fifo_start_add(struct fifo_fixture *f, struct fifo_waiter *waiter)
{
    waiter->fifo = f->fifo;
    waiter->object = fifo_make(f, "b", "2");
    waiter->result = 1;
    assert_int_equal(kinf__thread_start(&waiter->thread, "add", wait_in_add, waiter, NULL), 0);
}

void fifo_start_blocked_add(struct fifo_fixture *f, struct fifo_waiter *waiter)
{
    size_t n_waiting = 0;

    fifo_start_add(f, waiter);
    while (n_waiting == 0) {
        sched_yield();
        kinf__mutex_lock(&f->fifo->lock);
        n_waiting = f->fifo->n_waiting_producers;
        kinf__mutex_unlock(&f->fifo->lock);
    }
}

/* --- failures --- */

static void write_keyed(const struct kinf__keyed *keyed, char *text, size_t size)
{
    KINF__LIST_FOR_EACH (node, &keyed->queue) {
        const struct kinf__fifo_item *item =
            KINF__LIST_ENTRY(node, struct kinf__fifo_item, in_queue);

        fifo_write_item(
            text, size,
            &(struct kinf_deltas){ kinf__fifo_item_key(item), item->deltas, item->n_deltas });
        fifo_append_text(text, size, ";");
    }
    fifo_append_text(text, size, keyed->last_rv);
}

static void write_in_order(const struct kinf__in_order *in_order, char *text, size_t size)
{
    for (size_t i = 0; i < in_order->n_entries; i++) {
        const struct kinf__fifo_entry *entry =
            &in_order->ring[(in_order->head + i) % in_order->n_allocated];
        const struct kinf_delta delta = {
            .type = entry->type,
            .object = entry->object,
            .resource_version = entry->list != NULL ? entry->list->rv : NULL,
        };

        write_delta(text, size, &delta);
        fifo_append_text(text, size, ";");
    }
    fifo_append_text(text, size, in_order->processed_rv);
}

static void write_queue(const struct fifo_fixture *f, char *text, size_t size)
{
    text[0] = '\0';
    if (f->order == KINF_FIFO_KEYED)
        write_keyed(&f->fifo->keyed, text, size);
    else
        write_in_order(&f->fifo->in_order, text, size);
    fifo_append_text(text, size, f->fifo->populated ? " populated" : "");
}

void fifo_sweep(struct fifo_fixture *f, void (*prepare)(struct fifo_fixture *),
                int (*operation)(struct fifo_fixture *))
{
    size_t n_failed = 0;
    bool failed = true;

    for (size_t n = 1; failed; n++) {
        char before[2048], after[2048];
        int rc;

        prepare(f);
        write_queue(f, before, sizeof before);
        test_fail_allocation(n);
        rc = operation(f);
        failed = test_allocation_failed();
        assert_int_equal(rc, failed ? KINF_ERR_NO_MEMORY : 0);
        write_queue(f, after, sizeof after);
        assert_int_equal(strcmp(before, after) == 0, failed);
        n_failed += failed;
        fifo_reset(f);
    }
    assert_true(n_failed != 0);
}
