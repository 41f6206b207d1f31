/*
 * CustomResourceDefinitions: which are valid, what is served of them, and how they end.
 */
#include "apiserver/definitions.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "serve/exchange.h"
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

/* Of the test of versions: whatever becomes of it, they end before the server does. */
static struct kinf__exchange *watches[2];

static int tear_down(void **state)
{
    for (int i = 0; i < 2; i++)
        kinf__exchange_free(KINF__TAKE(watches[i]));
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

static bool is_called(struct kinf__sim *sim, const char *spelling)
{
    bool is_called;

    kinf__store_lock(kinf__sim_store(sim));
    is_called = kinf__store_find_spelling(kinf__sim_store(sim), spelling) != NULL;
    kinf__store_unlock(kinf__sim_store(sim));
    return is_called;
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

static void names_that_change_are_served(void **state)
{
    test_must_create(*state, DEFINITIONS, FOO(V1));
    test_must_merge(*state, DEFINITIONS, NAME, "",
                    "{'spec':{'names':{'singular':'fooling','shortNames':['fa','fb'],"
                    "'categories':['all']}}}");
    assert_true(is_called(*state, "fb"));
    assert_true(is_called(*state, "fooling"));
    test_expect(*state, DEFINITIONS, NAME, "status.acceptedNames",
                "{'plural':'foos','singular':'fooling','kind':'Foo','listKind':'FooList',"
                "'shortNames':['fa','fb'],'categories':['all']}");
    test_must_merge(*state, DEFINITIONS, NAME, "", "{'spec':{'names':{'shortNames':null}}}");
    assert_false(is_called(*state, "fb"));
}

/* It is served on by those that it had. */
static void names_of_others_are_not_taken(void **state)
{
    static const char other[] =
        "{'metadata':{'name':'bars.a.example.com'},'spec':{'group':'a.example.com','scope':"
        "'Namespaced','names':{'plural':'bars','kind':'Bar','shortNames':['ba']},"
        "'versions':[" V1 "]}}";

    test_must_create(*state, DEFINITIONS, other);
    test_must_create(*state, DEFINITIONS, FOO(V1));
    test_must_merge(*state, DEFINITIONS, NAME, "", "{'spec':{'names':{'shortNames':['fa']}}}");
    test_must_merge(*state, DEFINITIONS, NAME, "", "{'spec':{'names':{'shortNames':['ba']}}}");
    test_expect(*state, DEFINITIONS, NAME, "status.acceptedNames.shortNames", "['fa']");
    test_expect(*state, DEFINITIONS, NAME, "status.conditions.0.reason", "'ShortNamesConflict'");
    test_expect(*state, DEFINITIONS, NAME, "status.conditions.1.status", "'True'");
    assert_true(is_called(*state, "fa"));
    test_must_delete(*state, DEFINITIONS, "bars.a.example.com", KINF__PROPAGATION_DEFAULT);
    test_sim_settle(*state);
    test_expect(*state, DEFINITIONS, NAME, "status.acceptedNames.shortNames", "['ba']");
    assert_true(is_called(*state, "ba"));
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

/* --- versions of an object, when memory is out --- */

static void ignore(void *ctx)
{
    (void)ctx;
}

static bool is_gone(void *ctx)
{
    (void)ctx;
    return false;
}

/* The answer is there until the exchange is freed. */
static struct kinf__exchange *get(struct kinf__sim *sim, const char *target,
                                  const struct kinf__answer **ret_answer)
{
    const struct kinf__exchange_owner owner = { .wake = ignore,
                                                .cut_off = ignore,
                                                .is_gone = is_gone };
    const struct kinf__request_head head =
        kinf__request_head_of("GET", kinf_str_from(target), NULL, 0);
    struct kinf__exchange *exchange =
        kinf__exchange_new(kinf__sim_server(sim), &owner, &head, NULL);

    assert_non_null(exchange);
    *ret_answer = kinf__exchange_step(exchange);
    assert_non_null(*ret_answer);
    return exchange;
}

static int code_of(struct kinf__sim *sim, const char *target)
{
    const struct kinf__answer *answer;
    struct kinf__exchange *exchange = get(sim, target, &answer);
    int code = answer->code;

    kinf__exchange_free(exchange);
    return code;
}

/* Whether what discovery says of a version has this text. */
static bool is_discovered(struct kinf__sim *sim, const char *version, const char *text)
{
    const struct kinf__answer *answer;
    struct kinf__exchange *exchange;
    char target[64];
    bool is_there;

    snprintf(target, sizeof target, "/apis/a.example.com/%s", version);
    exchange = get(sim, target, &answer);
    is_there = memmem(answer->body.bytes, answer->body.len, text, strlen(text)) != NULL;
    kinf__exchange_free(exchange);
    return is_there;
}

static void discovery_follows_the_definition(void **state)
{
#define WITH(version, storage, subresources)                                                       \
    "{'name':'" version "','served':true,'storage':" storage ",'subresources':{" subresources      \
    "}," OPEN "}"
    test_must_create(*state, DEFINITIONS, FOO(V1));
    assert_false(is_discovered(*state, "v1", "\"foos/status\""));
    test_must_merge(
        *state, DEFINITIONS, NAME, "",
        "{'spec':{'names':{'shortNames':['fa'],'categories':['all']},'versions':[" WITH(
            "v1", "true", "'status':{}") "," WITH("v2", "false",
                                                  "'scale':{'specReplicasPath':'.spec.n','"
                                                  "statusReplicasPath':'.status.n'}") "]}}");
    assert_true(is_discovered(*state, "v1", "\"foos/status\""));
    assert_false(is_discovered(*state, "v1", "\"foos/scale\""));
    assert_false(is_discovered(*state, "v2", "\"foos/status\""));
    assert_true(is_discovered(*state, "v2", "\"foos/scale\""));
    assert_true(is_discovered(*state, "v2", "\"shortNames\":[\"fa\"]"));
    assert_true(is_discovered(*state, "v2", "\"categories\":[\"all\"]"));
    test_must_merge(*state, DEFINITIONS, NAME, "",
                    "{'spec':{'names':{'shortNames':['fb']},'versions':[" V1
                    ",{'name':'v2','served':false,'storage':false," OPEN "}]}}");
    test_sim_settle(*state);
    assert_true(is_discovered(*state, "v1", "\"shortNames\":[\"fb\"]"));
    assert_false(is_discovered(*state, "v1", "\"foos/status\""));
    assert_int_equal(code_of(*state, "/apis/a.example.com/v2"), 404);
#undef WITH
}

#define FOOS(version) "/apis/a.example.com/" version "/namespaces/default/foos"

/* A watch of one version, and what an informer would make of it. */
struct follower {
    const char *target;
    struct kinf__exchange **exchange; /* NULL: begin anew */
    const struct kinf__answer *answer;
    unsigned n_there;
};

static void follow(struct kinf__sim *sim, struct follower *follower)
{
    char text[16384];
    ssize_t n;

    if (*follower->exchange == NULL) {
        *follower->exchange = get(sim, follower->target, &follower->answer);
        follower->n_there = 0;
    }
    assert_int_equal(follower->answer->code, 200);
    do {
        n = follower->answer->stream->read(follower->answer->stream, text, sizeof text - 1);
    } while (n == KINF__STREAM_LATER);
    assert_true(n >= 0);
    text[n] = '\0';
    for (const char *at = text; (at = strstr(at, "{\"type\":\"")) != NULL; at += 9) {
        if (strncmp(at + 9, "ADDED", 5) == 0)
            follower->n_there++;
        else if (strncmp(at + 9, "DELETED", 7) == 0)
            follower->n_there--;
        else if (strncmp(at + 9, "ERROR", 5) != 0)
            fail_msg("%s", text);
        assert_in_range(follower->n_there, 0, 1);
    }
    if (strstr(text, "\"ERROR\"") == NULL)
        return;
    kinf__exchange_free(KINF__TAKE(*follower->exchange));
    follow(sim, follower);
}

static void expect_alike(struct kinf__sim *sim, struct follower *followers)
{
    bool is_there = test_is_there(sim, "foos.a.example.com", "default/f");

    assert_int_equal(code_of(sim, FOOS("v1") "/f"), is_there ? 200 : 404);
    assert_int_equal(code_of(sim, FOOS("v1beta1") "/f"), is_there ? 200 : 404);
    for (int i = 0; i < 2; i++) {
        follow(sim, &followers[i]);
        assert_int_equal(followers[i].n_there, is_there);
    }
}

/* A write is one of all versions or of none, and whoever watches one sees it once. */
static void versions_have_the_same_objects_without_memory(void **state)
{
    struct follower followers[2] = { { .target = FOOS("v1") "?watch=1", .exchange = &watches[0] },
                                     { .target = FOOS("v1beta1") "?watch=1",
                                       .exchange = &watches[1] } };
    unsigned n_refused = 0;

    test_must_create(*state, DEFINITIONS,
                     FOO(V1 ",{'name':'v1beta1','served':true,'storage':false," OPEN "}"));
    for (int deletes = 0; deletes < 2; deletes++) {
        bool has_failed = true;

        for (size_t n = 1; has_failed; n++) {
            bool was_there = test_is_there(*state, "foos.a.example.com", "default/f");
            struct test_outcome outcome;

            if (!was_there && deletes)
                test_must_create(*state, "foos.a.example.com", OBJECT("f"));
            if (was_there && !deletes)
                test_must_delete(*state, "foos.a.example.com", "default/f",
                                 KINF__PROPAGATION_BACKGROUND);
            test_fail_allocation(n);
            outcome = deletes ? test_delete(*state, "foos.a.example.com", "default/f",
                                            KINF__PROPAGATION_BACKGROUND)
                              : test_create(*state, "foos.a.example.com", OBJECT("f"));
            has_failed = test_allocation_failed();
            n_refused += outcome.code != 0;
            if (!has_failed && outcome.code != 0)
                fail_msg("%zu: %d %s", n, outcome.code, outcome.message);
            expect_alike(*state, followers);
        }
    }
    assert_true(n_refused > 10);
}

/* Whether of what is written just now, or of something else. */
static void reads_do_not_wait_for_a_write(void **state)
{
    test_must_create(*state, DEFINITIONS, FOO(V1));
    test_must_create(*state, "foos.a.example.com", OBJECT("f"));
    kinf__store_lock(kinf__sim_store(*state));
    assert_int_equal(code_of(*state, FOOS("v1") "/f"), 200);
    assert_int_equal(code_of(*state, "/api/v1/namespaces/default"), 200);
    kinf__store_unlock(kinf__sim_store(*state));
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
        T(names_that_change_are_served),
        T(names_of_others_are_not_taken),
        T(discovery_follows_the_definition),
        T(a_definition_goes_after_its_objects),
        T(a_definition_may_come_again),
        T(a_definition_of_which_nothing_is_served_is_only_a_record),
        T(a_definition_without_memory_is_made_up_for),
        T(versions_have_the_same_objects_without_memory),
        T(reads_do_not_wait_for_a_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
