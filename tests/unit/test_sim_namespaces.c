/*
 * Namespaces: those of the start, what may be created in one, and how one ends.
 */
#include "apiserver/namespaces.h"

#include <stdio.h>
#include <string.h>

#include "unit/sim_fixture.h"
#include "unit/test.h"

#define NS(name) "{'metadata':{'name':'" name "'}}"

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

static void a_server_begins_with_what_every_cluster_has(void **state)
{
    static const char *const names[] = { "default", "kube-system", "kube-public",
                                         "kube-node-lease" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        test_expect(*state, "namespaces", names[i], "status.phase", "'Active'");
    test_expect(*state, "services", "default/kubernetes", "spec.clusterIPs", "['10.0.0.1']");
    test_expect(*state, "services", "default/kubernetes", "spec.ports",
                "[{'name':'https','port':443,'protocol':'TCP','targetPort':6443}]");
    test_expect(*state, "priorityclasses.scheduling.k8s.io", "system-node-critical", "value",
                "2000001000");
    test_expect(*state, "apiservices.apiregistration.k8s.io", "v1.apps",
                "status.conditions.0.status", "'True'");
    test_expect(*state, "apiservices.apiregistration.k8s.io", "v1.", "spec",
                "{'version':'v1','groupPriorityMinimum':18000,'versionPriority':1}");
}

static void nothing_is_created_where_there_is_no_namespace(void **state)
{
    struct test_outcome outcome =
        test_create(*state, "configmaps", "{'metadata':{'name':'c','namespace':'nope'}}");

    assert_int_equal(outcome.code, 404);
    assert_string_equal(outcome.message, "namespaces \"nope\" not found");
    assert_string_equal(outcome.refusal.kind, "namespaces");
    assert_string_equal(outcome.refusal.name, "nope");
}

static void three_namespaces_are_never_deleted(void **state)
{
    struct test_outcome outcome =
        test_delete(*state, "namespaces", "kube-system", KINF__PROPAGATION_DEFAULT);

    assert_int_equal(outcome.code, 403);
    assert_string_equal(
        outcome.message,
        "namespaces \"kube-system\" is forbidden: this namespace may not be deleted");
    assert_int_equal(test_delete(*state, "namespaces", "default", KINF__PROPAGATION_DEFAULT).code,
                     403);
    test_must_delete(*state, "namespaces", "kube-node-lease", KINF__PROPAGATION_DEFAULT);
}

static void a_namespace_goes_with_all_that_is_in_it(void **state)
{
    char json[256];

    test_must_create(*state, "namespaces", NS("n"));
    test_must_create(*state, "namespaces", NS("n2"));
    test_must_create(*state, "configmaps", "{'metadata':{'name':'c','namespace':'n2'}}");
    for (int i = 0; i < 450; i++) {
        snprintf(json, sizeof json, "{'metadata':{'name':'c%d','namespace':'n'}}", i);
        test_must_create(*state, i % 2 != 0 ? "configmaps" : "secrets", json);
    }
    test_must_delete(*state, "namespaces", "n", KINF__PROPAGATION_DEFAULT);
    test_sim_settle(*state);
    assert_false(test_is_there(*state, "namespaces", "n"));
    assert_false(test_is_there(*state, "configmaps", "n/c1"));
    assert_false(test_is_there(*state, "secrets", "n/c448"));
    assert_true(test_is_there(*state, "configmaps", "n2/c"));
}

/* The same name again is another namespace. */
static void a_name_is_free_again(void **state)
{
    test_must_create(*state, "namespaces", NS("n"));
    test_must_delete(*state, "namespaces", "n", KINF__PROPAGATION_DEFAULT);
    test_sim_settle(*state);
    test_must_create(*state, "namespaces", NS("n"));
    test_must_create(*state, "configmaps", "{'metadata':{'name':'c','namespace':'n'}}");
    test_sim_settle(*state);
    assert_true(test_is_there(*state, "configmaps", "n/c"));
}

static void finalizers_hold_a_namespace_which_tells_of_them(void **state)
{
    struct test_outcome outcome;

    test_must_create(*state, "namespaces", NS("n"));
    test_must_create(*state, "configmaps",
                     "{'metadata':{'name':'c','namespace':'n','finalizers':['a.b/c']}}");
    test_must_create(*state, "secrets", "{'metadata':{'name':'s','namespace':'n'}}");
    test_must_delete(*state, "namespaces", "n", KINF__PROPAGATION_DEFAULT);
    test_sim_settle(*state);
    assert_false(test_is_there(*state, "secrets", "n/s"));
    test_expect(*state, "namespaces", "n", "status.phase", "'Terminating'");
    test_expect(*state, "namespaces", "n", "metadata.deletionGracePeriodSeconds", "null");
    test_expect(*state, "namespaces", "n", "status.conditions.3.message",
                "'Some resources are remaining: configmaps. has 1 resource instances'");
    test_expect(*state, "namespaces", "n", "status.conditions.4.message",
                "'Some content in the namespace has finalizers remaining: a.b/c in 1 resource "
                "instances'");
    outcome = test_create(*state, "configmaps", "{'metadata':{'name':'c2','namespace':'n'}}");
    assert_int_equal(outcome.code, 403);
    assert_string_equal(
        outcome.message,
        "configmaps \"c2\" is forbidden: unable to create new content in namespace n "
        "because it is being terminated");
    assert_string_equal(outcome.refusal.causes[0].reason, "NamespaceTerminating");
    assert_string_equal(outcome.refusal.causes[0].field, "metadata.namespace");
    assert_string_equal(outcome.refusal.causes[0].message, "namespace n is being terminated");
    test_must_merge(*state, "configmaps", "n/c", "", "{'data':{'a':'b'}}");
    test_must_merge(*state, "configmaps", "n/c", "", "{'metadata':{'finalizers':null}}");
    test_sim_settle(*state);
    assert_false(test_is_there(*state, "namespaces", "n"));
}

static void finalizers_of_its_own_hold_a_namespace(void **state)
{
    test_must_create(
        *state, "namespaces",
        "{'metadata':{'name':'n','finalizers':['a.b/c']},'spec':{'finalizers':['d.e/f']}}");
    test_expect(*state, "namespaces", "n", "spec.finalizers", "['d.e/f','kubernetes']");
    test_must_delete(*state, "namespaces", "n", KINF__PROPAGATION_DEFAULT);
    test_sim_settle(*state);
    test_expect(*state, "namespaces", "n", "spec.finalizers", "['d.e/f']");
    test_must_merge(*state, "namespaces", "n", "", "{'spec':{'finalizers':null}}");
    test_expect(*state, "namespaces", "n", "spec.finalizers", "['d.e/f']");
    test_must_merge(*state, "namespaces", "n", "finalize", "{'spec':{'finalizers':null}}");
    test_expect(*state, "namespaces", "n", "spec", "{}");
    test_must_merge(*state, "namespaces", "n", "", "{'metadata':{'finalizers':null}}");
    test_sim_settle(*state);
    assert_false(test_is_there(*state, "namespaces", "n"));
}

static void a_phase_does_not_come_back(void **state)
{
    struct test_outcome outcome;

    test_must_create(*state, "namespaces", "{'metadata':{'name':'n','finalizers':['a.b/c']}}");
    test_must_delete(*state, "namespaces", "n", KINF__PROPAGATION_DEFAULT);
    outcome = test_merge(*state, "namespaces", "n", "status", "{'status':{'phase':'Active'}}");
    assert_string_equal(
        outcome.message,
        "Namespace \"n\" is invalid: status.Phase: Invalid value: \"Active\": may only "
        "be 'Terminating' if `deletionTimestamp` is not empty");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(a_server_begins_with_what_every_cluster_has),
        T(nothing_is_created_where_there_is_no_namespace),
        T(three_namespaces_are_never_deleted),
        T(a_namespace_goes_with_all_that_is_in_it),
        T(a_name_is_free_again),
        T(finalizers_hold_a_namespace_which_tells_of_them),
        T(finalizers_of_its_own_hold_a_namespace),
        T(a_phase_does_not_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
