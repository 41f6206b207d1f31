/*
 * Garbage collection: each propagation, several owners, owners that are not there; and at random
 * against a model.
 */
#include "apiserver/owners.h"

#include <stdio.h>
#include <string.h>

#include "unit/allocation.h"
#include "unit/patch_fixture.h"
#include "unit/sim_fixture.h"
#include "unit/test.h"

static int set_up(void **state)
{
    *state = test_sim_new();
    return 0;
}

static int tear_down(void **state)
{
    test_sim_free(*state);
    return 0;
}

static void uid_of(struct kinf__sim *sim, const char *key, char uid[64])
{
    struct cJSON *object = test_get(sim, "configmaps", key);

    snprintf(uid, 64, "%s", kinf__doc_text(object, "metadata", "uid", NULL));
    cJSON_Delete(object);
}

static void make(struct kinf__sim *sim, const char *name)
{
    char json[128];

    snprintf(json, sizeof json, "{'metadata':{'name':'%s'}}", name);
    test_must_create(sim, "configmaps", json);
}

/* A secret or ConfigMap with an owner, which is a ConfigMap; "!" in front: it blocks. */
static void own(struct kinf__sim *sim, const char *resource, const char *name, const char *owner)
{
    bool blocks = *owner == '!';
    char key[64], uid[64], json[512];

    owner += blocks;
    snprintf(key, sizeof key, "default/%s", owner);
    uid_of(sim, key, uid);
    snprintf(json, sizeof json,
             "{'metadata':{'name':'%s','ownerReferences':[{'apiVersion':'v1','kind':'ConfigMap',"
             "'name':'%s','uid':'%s','blockOwnerDeletion':%s}]}}",
             name, owner, uid, blocks ? "true" : "false");
    test_must_create(sim, resource, json);
}

static void dependents_go_after_their_owner(void **state)
{
    make(*state, "a");
    own(*state, "secrets", "b", "a");
    own(*state, "configmaps", "c", "a");
    own(*state, "secrets", "d", "c");
    test_must_delete(*state, "configmaps", "default/a", KINF__PROPAGATION_BACKGROUND);
    assert_false(test_is_there(*state, "configmaps", "default/a"));
    test_sim_settle(*state);
    assert_false(test_is_there(*state, "secrets", "default/b"));
    assert_false(test_is_there(*state, "configmaps", "default/c"));
    assert_false(test_is_there(*state, "secrets", "default/d"));
}

static void events_are_left_alone(void **state)
{
    make(*state, "a");
    own(*state, "events", "e", "a");
    test_must_delete(*state, "configmaps", "default/a", KINF__PROPAGATION_BACKGROUND);
    test_sim_settle(*state);
    assert_true(test_is_there(*state, "events", "default/e"));
    test_must_delete(*state, "events", "default/e", KINF__PROPAGATION_ORPHAN);
    assert_false(test_is_there(*state, "events", "default/e"));
}

static void one_owner_that_is_left_is_enough(void **state)
{
    char a[64], b[64], json[512];

    make(*state, "a");
    make(*state, "b");
    uid_of(*state, "default/a", a);
    uid_of(*state, "default/b", b);
    snprintf(
        json, sizeof json,
        "{'metadata':{'name':'c','ownerReferences':[{'apiVersion':'v1','kind':'ConfigMap',"
        "'name':'a','uid':'%s'},{'apiVersion':'v1','kind':'ConfigMap','name':'b','uid':'%s'}]}}",
        a, b);
    test_must_create(*state, "secrets", json);
    test_must_delete(*state, "configmaps", "default/a", KINF__PROPAGATION_BACKGROUND);
    test_sim_settle(*state);
    test_expect(*state, "secrets", "default/c", "metadata.ownerReferences.0.name", "'b'");
    test_expect(*state, "secrets", "default/c", "metadata.ownerReferences.1", "null");
    test_must_delete(*state, "configmaps", "default/b", KINF__PROPAGATION_BACKGROUND);
    test_sim_settle(*state);
    assert_false(test_is_there(*state, "secrets", "default/c"));
}

static void an_owner_waits_for_those_who_block_it(void **state)
{
    make(*state, "a");
    own(*state, "secrets", "b", "!a");
    own(*state, "configmaps", "held", "!a");
    own(*state, "secrets", "c", "a");
    test_must_merge(*state, "configmaps", "default/held", "",
                    "{'metadata':{'finalizers':['a.b/c']}}");
    test_must_delete(*state, "configmaps", "default/a", KINF__PROPAGATION_FOREGROUND);
    test_expect(*state, "configmaps", "default/a", "metadata.finalizers", "['foregroundDeletion']");
    test_expect(*state, "configmaps", "default/a", "metadata.deletionGracePeriodSeconds", "0");
    test_sim_settle(*state);
    assert_true(test_is_there(*state, "configmaps", "default/a"));
    assert_true(test_is_there(*state, "configmaps", "default/held"));
    assert_false(test_is_there(*state, "secrets", "default/b"));
    assert_false(test_is_there(*state, "secrets", "default/c"));
    test_must_merge(*state, "configmaps", "default/held", "", "{'metadata':{'finalizers':null}}");
    test_sim_settle(*state);
    assert_false(test_is_there(*state, "configmaps", "default/held"));
    assert_false(test_is_there(*state, "configmaps", "default/a"));
}

static void deletion_in_the_foreground_goes_down_all_levels(void **state)
{
    make(*state, "a");
    own(*state, "configmaps", "b", "!a");
    own(*state, "configmaps", "c", "!b");
    test_must_merge(*state, "configmaps", "default/c", "", "{'metadata':{'finalizers':['a.b/c']}}");
    test_must_delete(*state, "configmaps", "default/a", KINF__PROPAGATION_FOREGROUND);
    test_sim_settle(*state);
    test_expect(*state, "configmaps", "default/b", "metadata.finalizers", "['foregroundDeletion']");
    assert_true(test_is_there(*state, "configmaps", "default/a"));
    test_must_merge(*state, "configmaps", "default/c", "", "{'metadata':{'finalizers':null}}");
    test_sim_settle(*state);
    assert_false(test_is_there(*state, "configmaps", "default/c"));
    assert_false(test_is_there(*state, "configmaps", "default/b"));
    assert_false(test_is_there(*state, "configmaps", "default/a"));
}

static void an_owner_that_is_forgotten_waits_no_longer(void **state)
{
    make(*state, "a");
    own(*state, "configmaps", "b", "!a");
    test_must_merge(*state, "configmaps", "default/b", "", "{'metadata':{'finalizers':['a.b/c']}}");
    test_must_delete(*state, "configmaps", "default/a", KINF__PROPAGATION_FOREGROUND);
    test_sim_settle(*state);
    assert_true(test_is_there(*state, "configmaps", "default/a"));
    test_must_merge(*state, "configmaps", "default/b", "", "{'metadata':{'ownerReferences':null}}");
    test_sim_settle(*state);
    assert_false(test_is_there(*state, "configmaps", "default/a"));
    assert_true(test_is_there(*state, "configmaps", "default/b"));
}

static void orphans_forget_their_owner(void **state)
{
    char name[32], key[64];

    make(*state, "a");
    for (int i = 0; i < 250; i++) {
        snprintf(name, sizeof name, "o%d", i);
        own(*state, "secrets", name, "a");
    }
    test_must_delete(*state, "configmaps", "default/a", KINF__PROPAGATION_ORPHAN);
    test_sim_settle(*state);
    assert_false(test_is_there(*state, "configmaps", "default/a"));
    for (int i = 0; i < 250; i++) {
        snprintf(key, sizeof key, "default/o%d", i);
        test_expect(*state, "secrets", key, "metadata.ownerReferences", "null");
    }
}

static void owners_that_never_were_are_no_owners(void **state)
{
    make(*state, "a");
    test_must_create(
        *state, "secrets",
        "{'metadata':{'name':'b','ownerReferences':[{'apiVersion':'v1','kind':'ConfigMap',"
        "'name':'a','uid':'another'}]}}");
    test_must_create(*state, "secrets",
                     "{'metadata':{'name':'c','ownerReferences':[{'apiVersion':'x.y/v1','kind':'Z',"
                     "'name':'a','uid':'u'}]}}");
    test_sim_settle(*state);
    assert_false(test_is_there(*state, "secrets", "default/b"));
    /* Of a type that is not served nobody can tell. */
    assert_true(test_is_there(*state, "secrets", "default/c"));
}

static void owners_are_in_the_same_namespace_or_in_none(void **state)
{
    char uid[64], json[512];

    make(*state, "a");
    uid_of(*state, "default/a", uid);
    test_must_create(*state, "namespaces", "{'metadata':{'name':'n'}}");
    snprintf(json, sizeof json,
             "{'metadata':{'name':'b','namespace':'n','ownerReferences':[{'apiVersion':'v1',"
             "'kind':'ConfigMap','name':'a','uid':'%s'}]}}",
             uid);
    test_must_create(*state, "secrets", json);
    snprintf(json, sizeof json,
             "{'metadata':{'name':'p','ownerReferences':[{'apiVersion':'v1','kind':'ConfigMap',"
             "'name':'a','uid':'%s'}]},'value':1}",
             uid);
    test_must_create(*state, "priorityclasses.scheduling.k8s.io", json);
    test_sim_settle(*state);
    assert_false(test_is_there(*state, "secrets", "n/b"));
    assert_true(test_is_there(*state, "priorityclasses.scheduling.k8s.io", "p"));
}

static void owners_that_own_each_other_go(void **state)
{
    char uid[64], json[512];

    make(*state, "a");
    own(*state, "configmaps", "b", "!a");
    uid_of(*state, "default/b", uid);
    snprintf(json, sizeof json,
             "{'metadata':{'ownerReferences':[{'apiVersion':'v1','kind':'ConfigMap','name':'b',"
             "'uid':'%s'}]}}",
             uid);
    test_must_merge(*state, "configmaps", "default/a", "", json);
    test_must_delete(*state, "configmaps", "default/a", KINF__PROPAGATION_BACKGROUND);
    test_sim_settle(*state);
    assert_false(test_is_there(*state, "configmaps", "default/a"));
    assert_false(test_is_there(*state, "configmaps", "default/b"));
}

/* --- how a deletion begins: what the server made of the same --- */

static const struct {
    const char *kind;
    const char *finalizers;
    enum kinf__propagation propagation;
    const char *after;
} begins[] = {
    { "ConfigMap", "[]", KINF__PROPAGATION_DEFAULT, "null" },
    { "ConfigMap", "[]", KINF__PROPAGATION_FOREGROUND, "['foregroundDeletion']" },
    { "ConfigMap", "[]", KINF__PROPAGATION_ORPHAN, "['orphan']" },
    { "ConfigMap", "['a.b/c','orphan']", KINF__PROPAGATION_FOREGROUND,
      "['a.b/c','foregroundDeletion']" },
    { "ConfigMap", "['a.b/c','foregroundDeletion']", KINF__PROPAGATION_BACKGROUND, "['a.b/c']" },
    { "ConfigMap", "['a.b/c']", KINF__PROPAGATION_ORPHAN, "['a.b/c','orphan']" },
    { "ConfigMap", "['orphan']", KINF__PROPAGATION_DEFAULT, "['orphan']" },
    { "ConfigMap", "['foregroundDeletion']", KINF__PROPAGATION_DEFAULT, "['foregroundDeletion']" },
    { "ReplicationController", "[]", KINF__PROPAGATION_DEFAULT, "['orphan']" },
    { "ReplicationController", "[]", KINF__PROPAGATION_BACKGROUND, "null" },
    { "Event", "['a.b/c']", KINF__PROPAGATION_ORPHAN, "['a.b/c']" },
    { "Event", "['orphan']", KINF__PROPAGATION_FOREGROUND, "null" },
};

static void finalizers_follow_the_propagation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        struct kinf__resource resource = { 0 };
        char kind[32], group[] = "", json[256];
        struct cJSON *object, *expected = test_json(begins[i].after);
        const struct cJSON *finalizers;
        bool waits;

        snprintf(kind, sizeof kind, "%s", begins[i].kind);
        snprintf(json, sizeof json, "{'metadata':{'finalizers':%s}}", begins[i].finalizers);
        resource.group = group;
        resource.kind = kind;
        object = test_json(json);
        assert_int_equal(
            kinf__owners_begin_delete(&resource, object, begins[i].propagation, &waits), 0);
        finalizers = kinf__doc_find(object, "metadata", "finalizers", NULL);
        assert_int_equal(waits, !cJSON_IsNull(expected));
        if (waits)
            assert_true(kinf__doc_equal(finalizers, expected));
        else
            assert_int_equal(cJSON_GetArraySize(finalizers), 0);
        cJSON_Delete(object);
        cJSON_Delete(expected);
    }
}

/* --- at random --- */

#define N_OBJECTS 12

/* What should be there, by the rules of background deletion alone. */
struct model {
    bool is_there[N_OBJECTS];
    int owner[N_OBJECTS]; /* -1: none */
};

static void collect(struct model *model)
{
    for (bool is_changed = true; is_changed;) {
        is_changed = false;
        for (int i = 0; i < N_OBJECTS; i++) {
            if (model->is_there[i] && model->owner[i] >= 0 && !model->is_there[model->owner[i]]) {
                model->is_there[i] = false;
                is_changed = true;
            }
        }
    }
}

static void step(struct kinf__sim *sim, struct model *model, struct test_random *random)
{
    int i = (int)test_random_below(random, N_OBJECTS);
    int owner = (int)test_random_below(random, N_OBJECTS);
    char name[16], other[16], key[32];

    snprintf(name, sizeof name, "m%d", i);
    snprintf(other, sizeof other, "%sm%d", owner % 2 != 0 ? "!" : "", owner);
    snprintf(key, sizeof key, "default/%s", name);
    if (model->is_there[i]) {
        bool is_foreground = test_random_below(random, 2) != 0;

        test_must_delete(sim, "configmaps", key,
                         is_foreground ? KINF__PROPAGATION_FOREGROUND
                                       : KINF__PROPAGATION_BACKGROUND);
        model->is_there[i] = false;
        collect(model);
    } else if (model->is_there[owner]) {
        own(sim, "configmaps", name, other);
        model->is_there[i] = true;
        model->owner[i] = owner;
    } else {
        make(sim, name);
        model->is_there[i] = true;
        model->owner[i] = -1;
    }
}

static void what_is_left_is_what_has_owners(void **state)
{
    struct test_random random = test_random_init("what_is_left_is_what_has_owners");
    struct model model = { 0 };
    char key[32];

    for (size_t n = 0; n < test_rounds(800); n++) {
        step(*state, &model, &random);
        test_sim_settle(*state);
        for (int i = 0; i < N_OBJECTS; i++) {
            snprintf(key, sizeof key, "default/m%d", i);
            if (test_is_there(*state, "configmaps", key) != model.is_there[i])
                fail_msg("step %zu: m%d should%s be there", n, i, model.is_there[i] ? "" : " not");
        }
    }
}

/* --- without memory --- */

static const struct kinf_object *object_of(const char *json)
{
    const struct kinf_type *type;
    const struct kinf_object *object;

    assert_int_equal(kinf_type_intern("", "v1", "ConfigMap", "configmaps", true, &type, NULL), 0);
    assert_int_equal(kinf_object_new_from_json(type, json, strlen(json), &object, NULL), 0);
    return object;
}

static void a_collector_without_memory_says_so_and_stays_whole(void **state)
{
    static const char json[] =
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"1\",\"ownerReferences\":["
        "{\"uid\":\"2\"},{\"uid\":\"3\"}]}}";
    const struct kinf_object *object = object_of(json);
    char kind[] = "ConfigMap";
    bool has_failed = true;

    (void)state;
    for (size_t n = 1; has_failed; n++) {
        struct kinf__controller *controller = NULL;
        struct kinf__resource resource = { .kind = kind };
        int failed;

        test_fail_allocation(n);
        failed = kinf__owners_new(&controller, NULL);
        if (failed == 0) {
            controller->ops->note(controller, &resource, NULL, object);
            controller->ops->note(controller, &resource, object, object);
            controller->ops->note(controller, &resource, object, NULL);
        }
        has_failed = test_allocation_failed();
        if (failed == 0)
            controller->ops->free(controller);
        else
            assert_true(has_failed);
    }
    kinf_object_unref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(dependents_go_after_their_owner),
        T(events_are_left_alone),
        T(one_owner_that_is_left_is_enough),
        T(an_owner_waits_for_those_who_block_it),
        T(deletion_in_the_foreground_goes_down_all_levels),
        T(an_owner_that_is_forgotten_waits_no_longer),
        T(orphans_forget_their_owner),
        T(owners_that_never_were_are_no_owners),
        T(owners_are_in_the_same_namespace_or_in_none),
        T(owners_that_own_each_other_go),
        T(what_is_left_is_what_has_owners),
        cmocka_unit_test(finalizers_follow_the_propagation),
        cmocka_unit_test(a_collector_without_memory_says_so_and_stays_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
