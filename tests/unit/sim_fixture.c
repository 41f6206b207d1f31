/*
 * The simulated server of the tests of src/sim.
 */
#include "unit/sim_fixture.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "document/patch.h"
#include "unit/patch_fixture.h"
#include "unit/test.h"

#define PATIENCE_MS 60000

struct kinf__sim *test_sim_new(void)
{
    const struct kinf__sim_options options = { .seed = 7 };
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__sim *sim = NULL;

    if (kinf__sim_new(&options, &sim, &err) < 0 || kinf__sim_start(sim, &err) < 0)
        fail_msg("%s", err.message);
    return sim;
}

void test_sim_free(struct kinf__sim *sim)
{
    kinf__sim_stop(sim);
    kinf__sim_free(sim);
}

void test_sim_settle(struct kinf__sim *sim)
{
    int64_t deadline_ms = kinf__clock_now_ms() + PATIENCE_MS;

    while (kinf__sim_due_ms(sim) == 0) {
        if (kinf__clock_now_ms() > deadline_ms)
            fail_msg("it does not settle");
        sched_yield();
    }
}

static struct kinf__resource *find(struct kinf__sim *sim, const char *spelling)
{
    const char *dot = strchr(spelling, '.');
    struct kinf__resource *resource;
    char name[KINF_NAME_MAX];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(spelling, "."), spelling);
    resource = kinf__store_find(kinf__sim_store(sim), dot != NULL ? dot + 1 : "", name);
    if (resource == NULL)
        fail_msg("no resource %s", spelling);
    return resource;
}

struct key {
    char name_space[KINF_NAME_MAX];
    const char *name;
};

static struct key split(const char *key)
{
    const char *slash = strchr(key, '/');
    struct key parts = { "", slash != NULL ? slash + 1 : key };

    if (slash != NULL)
        snprintf(parts.name_space, sizeof parts.name_space, "%.*s", (int)(slash - key), key);
    return parts;
}

static struct test_outcome outcome_of(struct kinf__verb *verb, int failed)
{
    struct test_outcome outcome = { 0 };

    if (failed < 0) {
        outcome.code = verb->refusal.code;
        outcome.refusal = verb->refusal;
        memcpy(outcome.message, verb->refusal.message, sizeof outcome.message);
    }
    kinf__verb_release(verb);
    return outcome;
}

struct test_outcome test_create(struct kinf__sim *sim, const char *resource, const char *json)
{
    struct kinf__verb verb = { .sim = sim };
    struct test_outcome outcome;

    kinf__store_lock(kinf__sim_store(sim));
    verb.resource = find(sim, resource);
    outcome = outcome_of(&verb, kinf__verb_create(&verb, test_json(json)));
    kinf__store_unlock(kinf__sim_store(sim));
    return outcome;
}

static struct test_outcome update(struct kinf__sim *sim, const char *resource,
                                  const char *subresource, struct cJSON *take_object)
{
    struct kinf__verb verb = { .sim = sim, .subresource = subresource };

    verb.resource = find(sim, resource);
    return outcome_of(&verb, kinf__verb_update(&verb, take_object));
}

struct test_outcome test_update(struct kinf__sim *sim, const char *resource,
                                const char *subresource, const char *json)
{
    struct test_outcome outcome;

    kinf__store_lock(kinf__sim_store(sim));
    outcome = update(sim, resource, subresource, test_json(json));
    kinf__store_unlock(kinf__sim_store(sim));
    return outcome;
}

static struct cJSON *get(struct kinf__sim *sim, const char *resource, const char *key)
{
    struct key parts = split(key);
    struct cJSON *object = NULL;
    int failed = kinf__store_read(find(sim, resource), parts.name_space, parts.name, &object);

    return failed == 0 ? object : NULL;
}

struct test_outcome test_merge(struct kinf__sim *sim, const char *resource, const char *key,
                               const char *subresource, const char *json)
{
    struct kinf__refusal refusal;
    struct test_outcome outcome;
    struct cJSON *object, *patch = test_json(json);

    kinf__store_lock(kinf__sim_store(sim));
    object = get(sim, resource, key);
    if (object == NULL)
        fail_msg("no %s %s", resource, key);
    assert_int_equal(kinf__patch_merge(&object, patch, &refusal), 0);
    outcome = update(sim, resource, subresource, object);
    kinf__store_unlock(kinf__sim_store(sim));
    cJSON_Delete(patch);
    return outcome;
}

static struct test_outcome remove_one(struct kinf__sim *sim, const char *resource, const char *key,
                                      const struct kinf__delete_options *options)
{
    struct key parts = split(key);
    struct kinf__verb verb = { .sim = sim, .name_space = parts.name_space, .name = parts.name };
    struct test_outcome outcome;
    bool is_gone;

    kinf__store_lock(kinf__sim_store(sim));
    verb.resource = find(sim, resource);
    outcome = outcome_of(&verb, kinf__verb_delete(&verb, options, &is_gone));
    kinf__store_unlock(kinf__sim_store(sim));
    return outcome;
}

struct test_outcome test_delete(struct kinf__sim *sim, const char *resource, const char *key,
                                enum kinf__propagation propagation)
{
    struct kinf__delete_options options = KINF__DELETE_OPTIONS_INIT;

    options.propagation = propagation;
    return remove_one(sim, resource, key, &options);
}

static void must(struct test_outcome outcome)
{
    if (outcome.code != 0)
        fail_msg("%d %s", outcome.code, outcome.message);
}

void test_must_create(struct kinf__sim *sim, const char *resource, const char *json)
{
    must(test_create(sim, resource, json));
}

void test_must_merge(struct kinf__sim *sim, const char *resource, const char *key,
                     const char *subresource, const char *json)
{
    must(test_merge(sim, resource, key, subresource, json));
}

void test_must_delete(struct kinf__sim *sim, const char *resource, const char *key,
                      enum kinf__propagation propagation)
{
    must(test_delete(sim, resource, key, propagation));
}

void test_must_delete_within(struct kinf__sim *sim, const char *resource, const char *key,
                             int64_t grace_s)
{
    struct kinf__delete_options options = KINF__DELETE_OPTIONS_INIT;

    options.grace_s = grace_s;
    must(remove_one(sim, resource, key, &options));
}

struct cJSON *test_get(struct kinf__sim *sim, const char *resource, const char *key)
{
    struct cJSON *object;

    kinf__store_lock(kinf__sim_store(sim));
    object = get(sim, resource, key);
    kinf__store_unlock(kinf__sim_store(sim));
    return object;
}

bool test_is_there(struct kinf__sim *sim, const char *resource, const char *key)
{
    struct cJSON *object = test_get(sim, resource, key);

    cJSON_Delete(object);
    return object != NULL;
}

static const struct cJSON *walk(const struct cJSON *node, const char *path)
{
    char name[KINF_NAME_MAX];
    size_t len;

    for (; node != NULL && *path != '\0'; path += len + (path[len] == '.')) {
        len = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)len, path);
        node =
            cJSON_IsArray(node) ? cJSON_GetArrayItem(node, atoi(name)) : kinf__doc_get(node, name);
    }
    return node;
}

void test_expect(struct kinf__sim *sim, const char *resource, const char *key, const char *path,
                 const char *json)
{
    struct cJSON *object = test_get(sim, resource, key), *expected = test_json(json);
    const struct cJSON *value = walk(object, path);

    if (object == NULL)
        fail_msg("no %s %s", resource, key);
    if (!(cJSON_IsNull(expected) && value == NULL) && !kinf__doc_equal(value, expected)) {
        char *text = value != NULL ? cJSON_PrintUnformatted(value) : NULL;

        fail_msg("%s %s: %s is %s, not %s", resource, key, path, text != NULL ? text : "not there",
                 json);
    }
    cJSON_Delete(expected);
    cJSON_Delete(object);
}
