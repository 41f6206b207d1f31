/*
 * A controller of ConfigMaps on a server in this process.
 */
#ifndef KINF_TESTS_UNIT_CONTROLLER_FIXTURE_H
#define KINF_TESTS_UNIT_CONTROLLER_FIXTURE_H

#include <stdatomic.h>

#include <kinformer/kinformer.h>
#include <kinformer/testing.h>

#define STAGE_PATIENCE_MS 60000

struct stage;
typedef int stage_callback(struct stage *stage, struct kinf_call *call, struct kinf_error *err);

struct stage {
    struct kinf_fake *fake;
    struct kinf_client *client;
    struct kinf_informer *sources; /* labelled sync=true */
    struct kinf_informer *copies;  /* labelled sync-copy=true */
    struct kinf_controller *controller;
    struct kinf_controller_options options;
    struct kinf_error err;
    _Atomic(stage_callback *) reconcile;
    _Atomic(stage_callback *) cleanup;
    const char *selector; /* of the sources */
    _Atomic(int) n_reconciles, n_cleanups, n_cleanups_gone;
    _Atomic(int) number; /* a test's own */
};

int stage_begin(void **state);
int stage_end(void **state);

/* Makes the controller; what tests change of the options before is kept. */
void stage_make(struct stage *stage);
void stage_start(struct stage *stage);
/* Frees the controller and the informers, as a program that ends. */
void stage_stop(struct stage *stage);
void stage_must(struct stage *stage, int failed);

/* Waits until the server, the informers and the queue have nothing left to do but what is for
 * later. */
void stage_settle(struct stage *stage);
struct kinf_controller_status stage_status(struct stage *stage);

/* default/NAME with a label ("" for none), data.value and finalizers. */
void stage_put(struct stage *stage, const char *name, const char *label, const char *value);
void stage_delete(struct stage *stage, const char *key);
/* With a reference; NULL: there is none. */
const struct kinf_object *stage_get(struct stage *stage, const char *key);
bool stage_has(struct stage *stage, const char *key);
/* data.value; "-": no object, or no value. In a buffer of its own. */
const char *stage_value(struct stage *stage, const char *key);
/* A merge patch. */
void stage_patch(struct stage *stage, const char *name, const char *json);

/* Applies a ConfigMap default/NAME with label sync-copy=true, the annotation owner and data.value.
 */
int stage_apply(struct kinf_call *call, const char *name, const char *value,
                struct kinf_error *err);

#endif
