#include "unit/controller_fixture.h"

#include <stdio.h>
#include <string.h>

#include "unit/test.h"

void stage_must(struct stage *stage, int failed)
{
    if (failed < 0)
        print_error("%s\n", stage->err.message);
    assert_int_equal(failed, 0);
}

int stage_begin(void **state)
{
    struct stage *stage = calloc(1, sizeof *stage);

    stage->selector = "sync=true";
    stage->options = (struct kinf_controller_options)KINF_CONTROLLER_OPTIONS_INIT;
    stage->options.name = "test";
    stage_must(stage, kinf_fake_new(NULL, &stage->fake, &stage->err));
    stage->client = kinf_fake_client(stage->fake);
    *state = stage;
    return 0;
}

int stage_end(void **state)
{
    struct stage *stage = *state;

    stage_stop(stage);
    kinf_fake_free(stage->fake);
    free(stage);
    return 0;
}

static int reconcile(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    struct stage *stage = ctx;

    stage_callback *callback = stage->reconcile;

    stage->n_reconciles++;
    return callback != NULL ? callback(stage, call, err) : 0;
}

static int cleanup(struct kinf_call *call, void *ctx, struct kinf_error *err)
{
    struct stage *stage = ctx;

    stage_callback *callback = stage->cleanup;

    stage->n_cleanups++;
    if (kinf_call_object(call) == NULL)
        stage->n_cleanups_gone++;
    return callback != NULL ? callback(stage, call, err) : 0;
}

static struct kinf_informer *make_informer(struct stage *stage, const char *labels)
{
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_informer *informer;

    options.resource = "configmaps";
    options.label_selector = labels;
    stage_must(stage, kinf_informer_new(stage->client, &options, &informer, &stage->err));
    return informer;
}

void stage_make(struct stage *stage)
{
    stage->sources = make_informer(stage, stage->selector);
    stage->copies = make_informer(stage, "sync-copy=true");
    stage->options.informer = stage->sources;
    stage->options.reconcile = reconcile;
    stage->options.cleanup = cleanup;
    stage->options.ctx = stage;
    stage_must(stage, kinf_controller_new(stage->client, &stage->options, &stage->controller,
                                          &stage->err));
    stage_must(stage, kinf_controller_watch(stage->controller, stage->copies, kinf_map_annotation,
                                            (void *)"owner", &stage->err));
}

void stage_start(struct stage *stage)
{
    if (stage->controller == NULL)
        stage_make(stage);
    stage_must(stage, kinf_controller_start(stage->controller, &stage->err));
}

void stage_stop(struct stage *stage)
{
    kinf_controller_free(stage->controller);
    stage->controller = NULL;
    kinf_informer_free(stage->sources);
    kinf_informer_free(stage->copies);
    stage->sources = stage->copies = NULL;
}

struct kinf_controller_status stage_status(struct stage *stage)
{
    struct kinf_controller_status status;

    kinf_controller_status(stage->controller, &status);
    return status;
}

void stage_settle(struct stage *stage)
{
    stage_must(stage, kinf_fake_settle(stage->fake, STAGE_PATIENCE_MS, &stage->err));
}

void stage_put(struct stage *stage, const char *name, const char *label, const char *value)
{
    char manifest[1024];

    snprintf(manifest, sizeof manifest,
             "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: default, labels: "
             "{%s}}, data: {value: \"%s\"}}",
             name, label, value);
    stage_must(stage, kinf_fake_put(stage->fake, manifest, &stage->err));
}

void stage_delete(struct stage *stage, const char *key)
{
    stage_must(stage, kinf_fake_delete(stage->fake, "configmaps", key, &stage->err));
}

const struct kinf_object *stage_get(struct stage *stage, const char *key)
{
    const struct kinf_object *object = NULL;

    return kinf_fake_get(stage->fake, "configmaps", key, &object, &stage->err) == 0 ? object : NULL;
}

bool stage_has(struct stage *stage, const char *key)
{
    kinf_auto_object const struct kinf_object *object = stage_get(stage, key);

    return object != NULL;
}

const char *stage_value(struct stage *stage, const char *key)
{
    static char value[256];
    kinf_auto_object const struct kinf_object *object = stage_get(stage, key);

    if (object == NULL || kinf_object_get_string(object, "data.value", value, sizeof value) < 0)
        snprintf(value, sizeof value, "-");
    return value;
}

void stage_patch(struct stage *stage, const char *name, const char *json)
{
    char target[256];

    snprintf(target, sizeof target, "/api/v1/namespaces/default/configmaps/%s", name);
    stage_must(stage, kinf_client_request_raw(stage->client, "PATCH", target, kinf_str_from(json),
                                              "application/merge-patch+json", NULL, &stage->err));
}

int stage_apply(struct kinf_call *call, const char *name, const char *value, struct kinf_error *err)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_client *client = kinf_call_client(call);
    const struct kinf_type *type;
    struct kinf_str json;
    int rc = kinf_client_find_type(client, "configmaps", &type, err);

    if (rc == 0)
        rc = kinf_json_format(&scratch, &json, err,
                              "{metadata:{labels:{sync-copy:\"true\"},annotations:{owner:?s}},"
                              "data:{value:?s}}",
                              kinf_call_key(call), value);
    return rc < 0 ? rc : kinf_call_apply(call, type, "default", name, json, err);
}
