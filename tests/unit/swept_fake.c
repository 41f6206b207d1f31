#include "unit/swept_fake.h"

#include <stdio.h>

#include "unit/sweep.h"

#define AHEAD_MS    60000
#define FIRST_MS    30
#define PATIENCE_MS 30000
#define BACKOFF_MS  2000

struct kinf_fake *swept_fake_new(void)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_fake *fake;

    SWEPT_MUST(kinf_fake_new(NULL, &fake, &err), &err);
    return fake;
}

void swept_fake_put(struct kinf_fake *fake, const char *name, const char *value)
{
    struct kinf_error err = KINF_ERROR_INIT;
    char manifest[256];

    snprintf(manifest, sizeof manifest,
             "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: default, labels: "
             "{sync: \"true\"}}, data: {value: \"%s\"}}",
             name, value);
    SWEPT_MUST(kinf_fake_put(fake, manifest, &err), &err);
}

void swept_fake_delete(struct kinf_fake *fake, const char *name)
{
    struct kinf_error err = KINF_ERROR_INIT;
    char key[64];

    snprintf(key, sizeof key, "default/%s", name);
    SWEPT_MUST(kinf_fake_delete(fake, "configmaps", key, &err), &err);
}

void swept_value(const struct kinf_object *object, char value[16])
{
    bool was_swept = test_swept_set(false);

    value[0] = '\0';
    if (object != NULL)
        (void)!kinf_object_get_string(object, "data.value", value, 16);
    (void)test_swept_set(was_swept);
}

const char *swept_fake_value(struct kinf_fake *fake, const char *name)
{
    static char value[16];
    kinf_auto_object const struct kinf_object *object = NULL;
    char key[64];

    snprintf(key, sizeof key, "default/%s", name);
    (void)!kinf_fake_get(fake, "configmaps", key, &object, NULL);
    swept_value(object, value);
    return value;
}

/* Settling alone gives a backoff that no queue knows of a tenth of a second of real time. Time goes on
 * only where something has failed, and less and less often: a slow machine is no reason for it. */
void swept_fake_settle(struct kinf_fake *fake)
{
    struct kinf_error err = KINF_ERROR_INIT;
    int64_t timeout_ms = test_swept_hit() ? FIRST_MS : PATIENCE_MS;
    int failed;

    while ((failed = kinf_fake_settle_ahead(fake, AHEAD_MS, timeout_ms, &err)) ==
               KINF_ERR_TIMEOUT &&
           timeout_ms < PATIENCE_MS) {
        kinf_fake_advance(fake, BACKOFF_MS);
        timeout_ms *= 2;
    }
    SWEPT_MUST(failed, &err);
}
