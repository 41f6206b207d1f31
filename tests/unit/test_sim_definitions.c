/*
 * CustomResourceDefinitions: which are valid, what is served of them, and how they end.
 */
#include "apiserver/definitions.h"

#include <stdio.h>
#include <string.h>

#include "unit/allocation.h"
#include "unit/patch_fixture.h"
#include "unit/sim_fixture.h"
#include "unit/test.h"

#define DEFINITIONS "customresourcedefinitions.apiextensions.k8s.io"
#define NAME        "foos.a.example.com"
#define OPEN                                                                                       \
    "'schema':{'openAPIV3Schema':{'type':'object','x-kubernetes-preserve-unknown-fields':true}}"
#define V1    "{'name':'v1','served':true,'storage':true," OPEN "}"
#define NAMES "'names':{'plural':'foos','kind':'Foo'}"
#define SPEC(versions)                                                                             \
    "'spec':{'group':'a.example.com','scope':'Namespaced'," NAMES ",'versions':[" versions "]}"
#define FOO(versions) "{'metadata':{'name':'" NAME "'}," SPEC(versions) "}"
#define OBJECT(name)                                                                               \
    "{'apiVersion':'a.example.com/v1','kind':'Foo','metadata':{'name':'" name "'},'spec':{'x':1}}"

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

static bool is_served(struct kinf__sim *sim, const char *version)
{
    struct kinf__resource *resource;
    bool is_served;

    kinf__store_lock(kinf__sim_store(sim));
    resource = kinf__store_find(kinf__sim_store(sim), "a.example.com", "foos");
    is_served = resource != NULL && kinf__resource_find_version(resource, version) != NULL;
    kinf__store_unlock(kinf__sim_store(sim));
    return is_served;
}

/* --- what is valid --- */

#define SHOWN(name, storage)                                                                       \
    "{\"Name\":\"" name "\",\"Served\":true,\"Storage\":" storage                                  \
    ",\"Deprecated\":false,\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,"     \
    "\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}"
#define NO_STORAGE "must have exactly one version marked as storage version"
#define NO_STORED                                                                                  \
    "status.storedVersions: Invalid value: null: must have at least one stored version"
#define TYPED(type)                                                                                \
    "{'name':'v1','served':true,'storage':true,'schema':{'openAPIV3Schema':" type "}}"

static const struct {
    const char *json;
    const char *message; /* behind "is invalid: " */
} refused[] = {
    { "{'metadata':{'name':'" NAME "'},'spec':{'group':'a.example.com','scope':'Namespaced'," NAMES
      "}}",
      "[spec.versions: Invalid value: null: " NO_STORAGE ", " NO_STORED "]" },
    { FOO("{'name':'v1','served':true,'storage':false," OPEN "}"),
      "[spec.versions: Invalid value: [" SHOWN("v1", "false") "]: " NO_STORAGE ", " NO_STORED "]" },
    { FOO(V1 ",{'name':'v1','served':true,'storage':false," OPEN "}"),
      "spec.versions: Invalid value: [" SHOWN("v1", "true") "," SHOWN(
          "v1", "false") "]: must "
                         "contain unique version names" },
    { FOO("{'name':'v1','served':true,'storage':true}"),
      "spec.versions[0].schema.openAPIV3Schema: Required value" },
    { FOO(TYPED("{'type':'string'}")), "spec.validation.openAPIV3Schema.type: Invalid value: "
                                       "\"string\": must be object at the root" },
    { FOO(TYPED("{}")),
      "spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root" },
    { FOO(TYPED(
          "{'type':'object','properties':{'a':{'type':'array'},'spec':{},'m':{'type':'foo'}}}")),
      "[spec.validation.openAPIV3Schema.properties[a].items: Required value: must be specified, "
      "spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty "
      "for "
      "specified object fields, spec.validation.openAPIV3Schema.properties[m].type: Unsupported "
      "value: \"foo\": supported values: \"array\", \"boolean\", \"integer\", \"number\", "
      "\"object\", \"string\"]" },
    { "{'metadata':{'name':'" NAME "'},'spec':{'group':'a.example.com'," NAMES ",'versions':[" V1
      "]}}",
      "spec.scope: Required value" },
    { "{'metadata':{'name':'foos.ab'},'spec':{'group':'ab','scope':'Cluster'," NAMES
      ",'versions':[" V1 "]}}",
      "spec.group: Invalid value: \"ab\": should be a domain with at least one dot" },
    { "{'metadata':{'name':'foos.x.k8s.io'},'spec':{'group':'x.k8s.io','scope':'Cluster'," NAMES
      ",'versions':[" V1 "]}}",
      "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must "
      "have "
      "approval annotation \"api-approved.kubernetes.io\", see "
      "https://github.com/kubernetes/enhancements/pull/1111" },
    { "{'metadata':{'name':'" NAME "'},'spec':{'group':'a.example.com','scope':'Namespaced',"
      "'conversion':{'strategy':'Foo'}," NAMES ",'versions':[" V1 "]}}",
      "spec.conversion.strategy: Unsupported value: \"Foo\": supported values: \"None\", "
      "\"Webhook\"" },
};

static void faults_of_definitions_are_told_in_the_servers_words(void **state)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct test_outcome outcome = test_create(*state, DEFINITIONS, refused[i].json);
        const char *words = strstr(outcome.message, "is invalid: ");

        if (outcome.code != 422 || words == NULL)
            fail_msg("%s: %d %s", refused[i].json, outcome.code, outcome.message);
        assert_string_equal(words + strlen("is invalid: "), refused[i].message);
    }
}

/* --- what is served --- */

static void what_is_defined_is_served_at_once(void **state)
{
    test_must_create(*state, DEFINITIONS, FOO(V1));
    test_must_create(*state, "foos.a.example.com", OBJECT("f"));
    test_expect(*state, "foos.a.example.com", "default/f", "spec", "{'x':1}");
    test_expect(*state, "foos.a.example.com", "default/f", "metadata.generation", "1");
    test_sim_settle(*state);
    test_expect(*state, DEFINITIONS, NAME, "spec.names",
                "{'plural':'foos','singular':'foo','kind':'Foo','listKind':'FooList'}");
    test_expect(*state, DEFINITIONS, NAME, "spec.conversion", "{'strategy':'None'}");
    test_expect(*state, DEFINITIONS, NAME, "status.storedVersions", "['v1']");
    test_expect(*state, DEFINITIONS, NAME, "status.acceptedNames",
                "{'plural':'foos','singular':'foo','kind':'Foo','listKind':'FooList'}");
    test_expect(*state, DEFINITIONS, NAME, "status.conditions.0.reason", "'NoConflicts'");
    test_expect(*state, DEFINITIONS, NAME, "status.conditions.1.type", "'Established'");
    test_expect(*state, DEFINITIONS, NAME, "status.conditions.1.status", "'True'");
    test_expect(*state, "apiservices.apiregistration.k8s.io", "v1.a.example.com", "spec",
                "{'group':'a.example.com','version':'v1','groupPriorityMinimum':1000,"
                "'versionPriority':100}");
}

static void versions_come_and_go(void **state)
{
    test_must_create(*state, DEFINITIONS, FOO(V1));
    test_must_create(*state, "foos.a.example.com", OBJECT("f"));
    test_must_merge(*state, DEFINITIONS, NAME, "",
                    "{'spec':{'versions':[" V1 ",{'name':'v2','served':true,'storage':false," OPEN
                    "},{'name':'v3beta1','served':false,'storage':false," OPEN "}]}}");
    assert_true(is_served(*state, "v1"));
    assert_true(is_served(*state, "v2"));
    assert_false(is_served(*state, "v3beta1"));
    test_expect(*state, "foos.a.example.com", "default/f", "apiVersion", "'a.example.com/v2'");
    test_must_merge(*state, DEFINITIONS, NAME, "",
                    "{'spec':{'versions':[{'name':'v1','served':false,'storage':false," OPEN
                    "},{'name':'v2','served':true,'storage':true," OPEN "}]}}");
    test_sim_settle(*state);
    assert_false(is_served(*state, "v1"));
    assert_true(is_served(*state, "v2"));
    assert_true(test_is_there(*state, "foos.a.example.com", "default/f"));
    assert_false(test_is_there(*state, "apiservices.apiregistration.k8s.io", "v1.a.example.com"));
    test_expect(*state, DEFINITIONS, NAME, "status.storedVersions", "['v1','v2']");
    test_expect(*state, DEFINITIONS, NAME, "metadata.generation", "3");
}

static void a_version_that_stored_objects_stays_in_the_definition(void **state)
{
    struct test_outcome outcome;

    test_must_create(*state, DEFINITIONS, FOO(V1));
    outcome =
        test_merge(*state, DEFINITIONS, NAME, "",
                   "{'spec':{'versions':[{'name':'v2','served':true,'storage':true," OPEN "}]}}");
    assert_non_null(
        strstr(outcome.message,
               "is invalid: status.storedVersions[0]: Invalid value: \"v1\": missing from "
               "spec.versions; v1 was previously a storage version, and must remain in "
               "spec.versions until a storage migration ensures no data remains persisted "
               "in v1 and removes v1 from status.storedVersions"));
    outcome = test_merge(*state, DEFINITIONS, NAME, "", "{'spec':{'scope':'Cluster'}}");
    assert_non_null(
        strstr(outcome.message, "spec.scope: Invalid value: \"Cluster\": field is immutable"));
}

static void the_status_is_a_subresource_where_it_is_defined_so(void **state)
{
    test_must_create(
        *state, DEFINITIONS,
        FOO("{'name':'v1','served':true,'storage':true,'subresources':{'status':{}}," OPEN "}"));
    test_must_create(*state, "foos.a.example.com",
                     "{'metadata':{'name':'f'},'spec':{'x':1},'status':{'y':1}}");
    test_expect(*state, "foos.a.example.com", "default/f", "status", "null");
    test_must_merge(*state, "foos.a.example.com", "default/f", "status",
                    "{'metadata':{'labels':{'a':'b'}},'spec':{'x':2},'status':{'y':2}}");
    test_expect(*state, "foos.a.example.com", "default/f", "status", "{'y':2}");
    test_expect(*state, "foos.a.example.com", "default/f", "spec", "{'x':1}");
    test_expect(*state, "foos.a.example.com", "default/f", "metadata.labels", "null");
}

static void names_are_the_first_ones(void **state)
{
    static const char other[] =
        "{'metadata':{'name':'foozs.a.example.com'},'spec':{'group':'a.example.com','scope':"
        "'Namespaced','names':{'plural':'foozs','kind':'Foo','singular':'foo','shortNames':['fo'],"
        "'categories':['all']},'versions':[" V1 "]}}";

    test_must_create(*state, DEFINITIONS, FOO(V1));
    test_must_create(*state, DEFINITIONS, other);
    test_sim_settle(*state);
    test_expect(*state, DEFINITIONS, "foozs.a.example.com", "status.acceptedNames",
                "{'plural':'foozs','shortNames':['fo'],'kind':'','categories':['all']}");
    test_expect(*state, DEFINITIONS, "foozs.a.example.com", "status.conditions.0.reason",
                "'ListKindConflict'");
    test_expect(*state, DEFINITIONS, "foozs.a.example.com", "status.conditions.0.message",
                "'\\\"FooList\\\" is already in use'");
    test_expect(*state, DEFINITIONS, "foozs.a.example.com", "status.conditions.1.reason",
                "'NotAccepted'");
    /* When the names are free it is its turn. */
    test_must_delete(*state, DEFINITIONS, NAME, KINF__PROPAGATION_DEFAULT);
    test_sim_settle(*state);
    test_expect(*state, DEFINITIONS, "foozs.a.example.com", "status.conditions.1.status", "'True'");
    test_must_create(*state, "foozs.a.example.com", "{'metadata':{'name':'f'}}");
}

/* --- the end --- */

static void a_definition_goes_after_its_objects(void **state)
{
    struct test_outcome outcome;
    char json[256];

    test_must_create(*state, DEFINITIONS, FOO(V1));
    for (int i = 0; i < 450; i++) {
        snprintf(json, sizeof json,
                 "{'apiVersion':'a.example.com/v1','kind':'Foo','metadata':{'name':'f%d'%s}}", i,
                 i % 3 == 0 ? ",'finalizers':['a.b/c']" : "");
        test_must_create(*state, "foos.a.example.com", json);
    }
    test_must_delete(*state, DEFINITIONS, NAME, KINF__PROPAGATION_DEFAULT);
    test_expect(*state, DEFINITIONS, NAME, "metadata.finalizers",
                "['customresourcecleanup.apiextensions.k8s.io']");
    test_expect(*state, DEFINITIONS, NAME, "metadata.generation", "1");
    test_sim_settle(*state);
    test_expect(*state, DEFINITIONS, NAME, "status.conditions.2.reason",
                "'InstanceDeletionInProgress'");
    assert_false(test_is_there(*state, "foos.a.example.com", "default/f1"));
    outcome = test_create(*state, "foos.a.example.com", OBJECT("late"));
    assert_int_equal(outcome.code, 403);
    assert_string_equal(outcome.message,
                        "foos.a.example.com \"late\" is forbidden: create not allowed while custom "
                        "resource definition is terminating");
    for (int i = 0; i < 450; i += 3) {
        snprintf(json, sizeof json, "default/f%d", i);
        test_must_merge(*state, "foos.a.example.com", json, "", "{'metadata':{'finalizers':null}}");
    }
    test_sim_settle(*state);
    assert_false(test_is_there(*state, DEFINITIONS, NAME));
    assert_false(is_served(*state, "v1"));
    assert_false(test_is_there(*state, "apiservices.apiregistration.k8s.io", "v1.a.example.com"));
}

static void a_definition_may_come_again(void **state)
{
    test_must_create(*state, DEFINITIONS, FOO(V1));
    test_must_create(*state, "foos.a.example.com", OBJECT("f"));
    test_must_delete(*state, DEFINITIONS, NAME, KINF__PROPAGATION_DEFAULT);
    test_sim_settle(*state);
    test_must_create(*state, DEFINITIONS, FOO(V1));
    assert_false(test_is_there(*state, "foos.a.example.com", "default/f"));
    test_must_create(*state, "foos.a.example.com", OBJECT("f"));
}

static void a_definition_of_which_nothing_is_served_is_only_a_record(void **state)
{
    test_must_create(*state, DEFINITIONS,
                     FOO("{'name':'v1','served':false,'storage':true," OPEN "}"));
    test_sim_settle(*state);
    assert_false(is_served(*state, "v1"));
    test_must_merge(*state, DEFINITIONS, NAME, "", "{'spec':{'versions':[" V1 "]}}");
    assert_true(is_served(*state, "v1"));
    test_must_delete(*state, DEFINITIONS, NAME, KINF__PROPAGATION_DEFAULT);
    test_sim_settle(*state);
    assert_false(test_is_there(*state, DEFINITIONS, NAME));
}

/* Whatever fails when it is made, it is not there afterwards, or it is as it should be. */
static void a_definition_without_memory_is_made_up_for(void **state)
{
    bool has_failed = true;

    for (size_t n = 1; has_failed; n += 1 + n / 8) {
        struct test_outcome outcome;

        test_fail_allocation(n);
        outcome = test_create(*state, DEFINITIONS, FOO(V1));
        has_failed = test_allocation_failed();
        if (!has_failed)
            assert_int_equal(outcome.code, 0);
        if (!test_is_there(*state, DEFINITIONS, NAME))
            continue;
        test_sim_settle(*state);
        test_expect(*state, DEFINITIONS, NAME, "status.conditions.1.status", "'True'");
        assert_true(is_served(*state, "v1"));
        test_must_delete(*state, DEFINITIONS, NAME, KINF__PROPAGATION_DEFAULT);
        test_sim_settle(*state);
        assert_false(test_is_there(*state, DEFINITIONS, NAME));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(faults_of_definitions_are_told_in_the_servers_words),
        T(what_is_defined_is_served_at_once),
        T(versions_come_and_go),
        T(a_version_that_stored_objects_stays_in_the_definition),
        T(the_status_is_a_subresource_where_it_is_defined_so),
        T(names_are_the_first_ones),
        T(a_definition_goes_after_its_objects),
        T(a_definition_may_come_again),
        T(a_definition_of_which_nothing_is_served_is_only_a_record),
        T(a_definition_without_memory_is_made_up_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
