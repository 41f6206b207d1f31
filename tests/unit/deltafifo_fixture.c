/*
 * The aids of the queue's tests.
 */
#include "unit/deltafifo_fixture.h"

#include <stdio.h>
#include <string.h>

#include "object/object.h"

#include "unit/test.h"

static const struct kinf_type pods = { "", "v1", "Pod", "pods", true };

const struct kinf_object *fifo_object(const char *name, const char *rv)
{
    const struct kinf__object_parts parts = {
        &pods,           KINF_STR("default"), kinf_str_from(name),
        KINF_STR("uid"), kinf_str_from(rv),   KINF_STR("{}")
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

    options.known = (struct kinf_known_objects){ fifo_each_known, fifo_has_known_key, f };
    return options;
}

void fifo_open(struct fifo_fixture *f, const struct kinf_deltafifo_options *options)
{
    assert_int_equal(kinf_deltafifo_new(options, &f->fifo, NULL), 0);
}

/* Nothing is known: "no lister" in upstream's tests. */
void fifo_open_bare(struct fifo_fixture *f)
{
    const struct kinf_deltafifo_options options = KINF_DELTAFIFO_OPTIONS_INIT;

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
    *state = calloc(1, sizeof(struct fifo_fixture));
    return *state != NULL ? 0 : -1;
}

void fifo_reset(struct fifo_fixture *f)
{
    if (f->fifo != NULL)
        assert_true(kinf__deltafifo_check(f->fifo));
    kinf_deltafifo_free(f->fifo);
    for (size_t i = 0; i < f->n_made; i++)
        kinf_object_unref(f->made[i]);
    assert_int_equal(kinf__object_count(), 0);
    memset(f, 0, sizeof *f);
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

const char *fifo_name(const char *key)
{
    return strchr(key, '/') + 1;
}

void fifo_append_text(char *text, size_t size, const char *more)
{
    assert_true(strlen(text) + strlen(more) < size);
    strcat(text, more);
}

void fifo_write_item(char *text, size_t size, const struct kinf_deltas *deltas)
{
    fifo_append_text(text, size, fifo_name(deltas->key));
    fifo_append_text(text, size, ":");
    for (size_t i = 0; i < deltas->n_items; i++) {
        const struct kinf_delta *delta = &deltas->items[i];
        char piece[64];

        snprintf(piece, sizeof piece, " %s%s@%s", kinf_delta_type_to_string(delta->type),
                 delta->final_state_unknown ? "*" : "",
                 kinf_object_resource_version(delta->object));
        fifo_append_text(text, size, piece);
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
