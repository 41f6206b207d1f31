/*
 * The policy file: what is read and refused, what its rules allow, and how reviews are answered
 * (compared with kube-apiserver 1.37).
 */
#include "apiserver/access_policy.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "document/tree.h"
#include "unit/allocation.h"
#include "unit/test.h"

static const char example[] = "users:\n"
                              "- name: alice\n"
                              "  token: alice-token\n"
                              "  groups: [developers]\n"
                              "- {name: bob, token: bob-token, uid: b-1}\n"
                              "- {name: root, token: root-token, groups: [system:masters]}\n"
                              "rules:\n"
                              "- groups: [developers]\n"
                              "  namespaces: [shop]\n"
                              "  apiGroups: [\"\"]\n"
                              "  resources: [pods, pods/log]\n"
                              "  verbs: [get, list]\n"
                              "- users: [bob]\n"
                              "  apiGroups: [apps, '*.x']\n"
                              "  resources: ['*/scale', deployments]\n"
                              "  resourceNames: [web]\n"
                              "  verbs: ['*']\n"
                              "- users: [bob]\n"
                              "  apiGroups: ['*']\n"
                              "  resources: ['*']\n"
                              "  verbs: [watch]\n"
                              "- users: [system:anonymous]\n"
                              "  nonResourceURLs: [/metrics, /debug/*]\n"
                              "  verbs: [get]\n";

static struct kinf__access_policy *parse(const char *text)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__access_policy *policy = NULL;

    if (kinf__access_policy_parse(kinf_str_from(text), "f", &policy, &err) < 0)
        fail_msg("%s", err.message);
    return policy;
}

static struct kinf__access_policy_user user_of(const struct kinf__access_policy *policy,
                                               const char *token)
{
    struct kinf__access_policy_user user = { "", "", NULL, 0 };

    if (token == NULL)
        return kinf__access_policy_anonymous();
    assert_true(kinf__access_policy_find_token(policy, kinf_str_from(token), &user));
    return user;
}

/* --- reading --- */

static void a_token_is_somebodys(void **state)
{
    struct kinf__access_policy *policy = parse(example);
    struct kinf__access_policy_user user = user_of(policy, "alice-token");
    const char *token;

    (void)state;
    assert_string_equal(user.name, "alice");
    assert_string_equal(user.uid, "");
    assert_int_equal(user.n_groups, 2);
    assert_string_equal(user.groups[0], "developers");
    assert_string_equal(user.groups[1], "system:authenticated");
    assert_string_equal(user_of(policy, "bob-token").uid, "b-1");
    assert_false(kinf__access_policy_find_token(policy, KINF_STR("alice-toke"), &user));
    assert_false(kinf__access_policy_find_token(policy, KINF_STR(""), &user));
    assert_true(kinf__access_policy_get_user(policy, 2, &user, &token));
    assert_string_equal(user.name, "root");
    assert_string_equal(token, "root-token");
    assert_false(kinf__access_policy_get_user(policy, 3, &user, &token));
    kinf__access_policy_free(policy);
}

static void without_a_policy_every_token_is_the_administrators(void **state)
{
    struct kinf__access_policy_user user = user_of(NULL, "whatever");

    (void)state;
    assert_string_equal(user.name, "kubernetes-admin");
    assert_string_equal(user.groups[0], "system:masters");
    assert_false(kinf__access_policy_find_token(NULL, KINF_STR(""), &user));
}

static void what_is_wrong_has_a_place(void **state)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        { "[]", "f:1:1: a mapping is expected" },
        { "user: []", "f:1:1: unknown key 'user'; known are users, rules" },
        { "users: 5", "f:1:8: users: a list is expected, not a text" },
        { "users: [5]", "f:1:9: a mapping is expected" },
        { "users: [{token: a}]", "f:1:9: a user needs a name" },
        { "users:\n- name: a", "f:2:3: a user needs a token: printable ASCII characters without "
                               "blanks" },
        { "users: [{name: a, token: 'a b'}]",
          "f:1:9: a user needs a token: printable ASCII characters without blanks" },
        { "users: [{name: a, token: a, group: [b]}]",
          "f:1:29: unknown key 'group'; known are name, token, uid, groups" },
        { "users: [{name: a, token: a}, {name: b, token: a}]",
          "f:1:30: there is another user with this token" },
        { "users: [{name: a, token: b}, {name: a, token: a}]",
          "f:1:30: there is another user of this name" },
        { "rules: [{verbs: [get]}]", "f:1:9: a rule needs users or groups" },
        { "rules: [{users: [a]}]", "f:1:9: a rule needs verbs" },
        { "rules: [{users: [a], verbs: [get]}]",
          "f:1:9: a rule needs resources or nonResourceURLs" },
        { "rules: [{users: [a], verbs: [get], resources: [pods]}]",
          "f:1:9: a rule for resources needs apiGroups: [\"\"] is the core" },
        { "rules: [{users: [a], verbs: [get], resources: [p], nonResourceURLs: [/x]}]",
          "f:1:9: a rule is for resources or for nonResourceURLs, not both" },
        { "rules: [{users: [[a]], verbs: [get]}]", "f:1:18: users: a list of texts is expected" },
        { "rules: [{users: a}]", "f:1:17: users: a list is expected, not a text" },
        { "rules: [", "f:2:1: did not find expected node content" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf_error err = KINF_ERROR_INIT;
        struct kinf__access_policy *policy = NULL;

        assert_true(kinf__access_policy_parse(kinf_str_from(rows[i].text), "f", &policy, &err) < 0);
        assert_string_equal(err.message, rows[i].message);
        assert_null(policy);
    }
}

static void an_empty_file_allows_what_everybody_may(void **state)
{
    struct kinf__access_policy *policy = parse("");

    (void)state;
    kinf__access_policy_free(policy);
    assert_int_equal(kinf__access_policy_read("/no/such/file", &policy, NULL), KINF_ERR_CONFIG);
}

/* --- rules --- */

/* "verb group resource/subresource namespace name", "-" for nothing; or "verb /path". */
static bool allows(const struct kinf__access_policy *policy, const char *token, const char *what)
{
    struct kinf__access_policy_user user = user_of(policy, token);
    char parts[5][32] = { "" }, *subresource;
    int n =
        sscanf(what, "%31s %31s %31s %31s %31s", parts[0], parts[1], parts[2], parts[3], parts[4]);
    struct kinf__attributes attributes = { "", "", "", "", "", "", "", "", "", "" };

    assert_true(n >= 2);
    for (int i = 0; i < 5; i++) {
        if (strcmp(parts[i], "-") == 0)
            parts[i][0] = '\0';
    }
    attributes.verb = parts[0];
    if (n == 2) {
        attributes.path = parts[1];
        return kinf__access_policy_allows(policy, &user, &attributes);
    }
    subresource = strchr(parts[2], '/');
    if (subresource != NULL) {
        *subresource = '\0';
        attributes.subresource = subresource + 1;
    }
    attributes.group = parts[1];
    attributes.resource = parts[2];
    attributes.name_space = parts[3];
    attributes.name = parts[4];
    return kinf__access_policy_allows(policy, &user, &attributes);
}

static void rules_allow_what_they_say(void **state)
{
    static const struct {
        const char *token, *what;
        bool is_allowed;
    } rows[] = {
        { "alice-token", "get - pods shop web", true },
        { "alice-token", "list - pods shop", true },
        { "alice-token", "list - pods", false }, /* in all namespaces */
        { "alice-token", "list - pods other", false },
        { "alice-token", "watch - pods shop", false },
        { "alice-token", "get apps pods shop", false },
        { "alice-token", "get - pods/log shop web", true },
        { "alice-token", "get - pods/exec shop web", false },
        { "alice-token", "get - log shop", false },
        { "bob-token", "get apps deployments any web", true },
        { "bob-token", "get apps deployments any other", false },
        { "bob-token", "list apps deployments any", false }, /* names nothing */
        { "bob-token", "update apps anything/scale any web", true },
        { "bob-token", "update apps anything/scales any web", false },
        { "bob-token", "update apps anything/status any web", false },
        { "bob-token", "update a.x deployments any web", false }, /* no pattern but a star */
        { "bob-token", "watch any.group things/part", true },
        { "bob-token", "watch /watch", false },
        { "root-token", "delete any things", true },
        { "root-token", "post /any", true },
        { NULL, "get /metrics", true },
        { NULL, "get /metrics/x", false },
        { NULL, "get /debug/", true },
        { NULL, "get /debug/pprof", true },
        { NULL, "get /debug", false },
        { NULL, "post /metrics", false },
        { NULL, "get - pods shop web", false },
        /* built in */
        { NULL, "get /version", true },
        { NULL, "get /healthz", true },
        { NULL, "get /apis", false },
        { "alice-token", "get /apis", true },
        { "alice-token", "get /apis/apps/v1", true },
        { "alice-token", "get /openapi/v3", true },
        { "alice-token", "get /metrics", false },
        { "alice-token", "create authorization.k8s.io selfsubjectaccessreviews", true },
        { "alice-token", "create authorization.k8s.io subjectaccessreviews", false },
        { "alice-token", "create authentication.k8s.io selfsubjectreviews", true },
        { NULL, "create authentication.k8s.io selfsubjectreviews", false },
    };
    struct kinf__access_policy *policy = parse(example);

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        if (allows(policy, rows[i].token, rows[i].what) != rows[i].is_allowed)
            fail_msg("%s: %s", rows[i].token != NULL ? rows[i].token : "nobody", rows[i].what);
        assert_true(allows(NULL, rows[i].token, rows[i].what));
    }
    kinf__access_policy_free(policy);
}

/* --- reviews --- */

/* The answer's status as JSON, or its error. */
static int review(const struct kinf__access_policy *policy, const char *kind, const char *token,
                  const char *body, struct kinf__buffer *status, struct kinf_error *err)
{
    struct kinf__access_policy_user caller = user_of(policy, token);
    KINF__AUTO_DOC *tree = NULL;
    int failed = kinf__doc_parse(kinf_str_from(body), &tree, err);

    if (failed == 0)
        failed = kinf__access_policy_review(policy, kind, &caller, tree, err);
    if (failed < 0)
        return failed;
    if (kinf__doc_print(kinf__doc_get(tree, "status"), status) < 0 ||
        kinf__buffer_cstr(status) == NULL)
        return KINF_ERR_NO_MEMORY;
    return 0;
}

static void assert_status(const struct kinf__access_policy *policy, const char *kind,
                          const char *token, const char *body, const char *expected)
{
    KINF__AUTO_BUFFER status = KINF__BUFFER_INIT;
    struct kinf_error err = KINF_ERROR_INIT;

    if (review(policy, kind, token, body, &status, &err) < 0)
        fail_msg("%s: %s", body, err.message);
    assert_string_equal(status.bytes, expected);
}

static void assert_refused(const char *kind, const char *body, int code, const char *message)
{
    KINF__AUTO_BUFFER status = KINF__BUFFER_INIT;
    struct kinf_error err = KINF_ERROR_INIT;

    assert_int_equal(review(NULL, kind, NULL, body, &status, &err), KINF_ERR_INVALID);
    assert_int_equal(err.http_status, code);
    assert_string_equal(err.message, message);
}

static void tokens_are_reviewed(void **state)
{
    struct kinf__access_policy *policy = parse(example);
    static const char unknown[] = "{\"user\":{},\"error\":\"invalid bearer token\"}";

    (void)state;
    assert_status(policy, "TokenReview", NULL,
                  "{\"spec\":{\"token\":\"alice-token\"},\"status\":{\"error\":\"x\"}}",
                  "{\"authenticated\":true,\"user\":{\"username\":\"alice\",\"groups\":["
                  "\"developers\",\"system:authenticated\"]},"
                  "\"audiences\":[\"https://kubernetes.default.svc\"]}");
    assert_status(policy, "TokenReview", NULL, "{\"spec\":{\"token\":\"nobodys\"}}", unknown);
    assert_status(policy, "TokenReview", NULL,
                  "{\"spec\":{\"token\":\"alice-token\",\"audiences\":[\"other\"]}}", unknown);
    assert_status(policy, "TokenReview", NULL,
                  "{\"spec\":{\"token\":\"bob-token\",\"audiences\":[\"other\","
                  "\"https://kubernetes.default.svc\"]}}",
                  "{\"authenticated\":true,\"user\":{\"username\":\"bob\",\"uid\":\"b-1\","
                  "\"groups\":[\"system:authenticated\"]},"
                  "\"audiences\":[\"https://kubernetes.default.svc\"]}");
    assert_refused("TokenReview", "{}", 400, "token is required for TokenReview in authentication");
    kinf__access_policy_free(policy);
}

static void access_is_reviewed(void **state)
{
    struct kinf__access_policy *policy = parse(example);
    static const char yes[] = "{\"allowed\":true}", no[] = "{\"allowed\":false}";

    (void)state;
    assert_status(policy, "SubjectAccessReview", NULL,
                  "{\"spec\":{\"user\":\"x\",\"groups\":[\"developers\"],\"resourceAttributes\":{"
                  "\"verb\":\"get\",\"resource\":\"pods\",\"namespace\":\"shop\"}}}",
                  yes);
    assert_status(policy, "SubjectAccessReview", NULL,
                  "{\"spec\":{\"user\":\"bob\",\"resourceAttributes\":{\"verb\":\"patch\","
                  "\"group\":\"apps\",\"resource\":\"x\",\"subresource\":\"scale\","
                  "\"name\":\"web\"}}}",
                  yes);
    assert_status(policy, "SubjectAccessReview", NULL,
                  "{\"spec\":{\"user\":\"x\",\"resourceAttributes\":{}}}", no);
    assert_status(policy, "SubjectAccessReview", NULL,
                  "{\"spec\":{\"user\":\"system:anonymous\",\"nonResourceAttributes\":{"
                  "\"verb\":\"get\",\"path\":\"/metrics\"}}}",
                  yes);
    assert_status(policy, "SelfSubjectAccessReview", "alice-token",
                  "{\"spec\":{\"resourceAttributes\":{\"verb\":\"list\",\"resource\":\"pods\","
                  "\"namespace\":\"shop\"}}}",
                  yes);
    assert_status(policy, "SelfSubjectAccessReview", NULL,
                  "{\"spec\":{\"resourceAttributes\":{\"verb\":\"list\",\"resource\":\"pods\","
                  "\"namespace\":\"shop\"}}}",
                  no);
    assert_status(policy, "LocalSubjectAccessReview", NULL,
                  "{\"metadata\":{\"namespace\":\"shop\"},\"spec\":{\"groups\":[\"developers\"],"
                  "\"resourceAttributes\":{\"verb\":\"get\",\"resource\":\"pods\","
                  "\"namespace\":\"shop\"}}}",
                  yes);
    kinf__access_policy_free(policy);
}

static void what_the_server_refuses_to_review_is_refused(void **state)
{
    (void)state;
    assert_refused("SubjectAccessReview", "{}", 422,
                   ".authorization.k8s.io \"\" is invalid: [spec: Invalid value: null: exactly one "
                   "of nonResourceAttributes or resourceAttributes must be specified, spec.user: "
                   "Invalid value: \"\": at least one of user or group must be specified]");
    assert_refused(
        "SelfSubjectAccessReview",
        "{\"spec\":{\"resourceAttributes\":{},\"nonResourceAttributes\":{\"path\":"
        "\"/x\"}}}",
        422,
        ".authorization.k8s.io \"\" is invalid: spec: Invalid value: {\"Path\":\"/x\","
        "\"Verb\":\"\"}: exactly one of nonResourceAttributes or resourceAttributes must "
        "be specified");
    assert_refused("LocalSubjectAccessReview",
                   "{\"metadata\":{\"namespace\":\"a\"},\"spec\":{\"user\":\"u\","
                   "\"resourceAttributes\":{\"namespace\":\"other\"}}}",
                   422,
                   ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes.namespace: "
                   "Invalid value: \"other\": must match metadata.namespace");
    assert_refused("LocalSubjectAccessReview",
                   "{\"spec\":{\"user\":\"u\",\"nonResourceAttributes\":{\"path\":\"/x\","
                   "\"verb\":\"get\"}}}",
                   422,
                   ".authorization.k8s.io \"\" is invalid: spec.nonResourceAttributes: Invalid "
                   "value: {\"Path\":\"/x\",\"Verb\":\"get\"}: disallowed on this kind of request");
    assert_refused("SelfSubjectRulesReview", "{\"spec\":{}}", 400, "no namespace on request");
}

static void callers_are_told_who_they_are(void **state)
{
    struct kinf__access_policy *policy = parse(example);

    (void)state;
    assert_status(policy, "SelfSubjectReview", "bob-token", "{}",
                  "{\"userInfo\":{\"username\":\"bob\",\"uid\":\"b-1\","
                  "\"groups\":[\"system:authenticated\"]}}");
    kinf__access_policy_free(policy);
}

static void callers_are_told_what_they_may(void **state)
{
    static const char all[] =
        "{\"resourceRules\":[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"]}],"
        "\"nonResourceRules\":[{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}],"
        "\"incomplete\":false}";
    static const char health[] =
        "{\"verbs\":[\"get\"],\"nonResourceURLs\":[\"/healthz\",\"/livez\",\"/readyz\","
        "\"/version\",\"/version/\"]}";
    struct kinf__access_policy *policy = parse(example);
    KINF__AUTO_BUFFER status = KINF__BUFFER_INIT;
    char expected[512];

    (void)state;
    assert_status(NULL, "SelfSubjectRulesReview", NULL, "{\"spec\":{\"namespace\":\"a\"}}", all);
    snprintf(expected, sizeof expected,
             "{\"resourceRules\":[],\"nonResourceRules\":[{\"verbs\":[\"get\"],"
             "\"nonResourceURLs\":[\"/metrics\",\"/debug/*\"]},%s],\"incomplete\":false}",
             health);
    assert_status(policy, "SelfSubjectRulesReview", NULL, "{\"spec\":{\"namespace\":\"a\"}}",
                  expected);
    assert_int_equal(review(policy, "SelfSubjectRulesReview", "alice-token",
                            "{\"spec\":{\"namespace\":\"shop\"}}", &status, NULL),
                     0);
    assert_non_null(strstr(status.bytes, "{\"verbs\":[\"get\",\"list\"],\"apiGroups\":[\"\"],"
                                         "\"resources\":[\"pods\",\"pods/log\"]}"));
    status.len = 0;
    assert_int_equal(review(policy, "SelfSubjectRulesReview", "alice-token",
                            "{\"spec\":{\"namespace\":\"other\"}}", &status, NULL),
                     0);
    assert_null(strstr(status.bytes, "pods"));
    kinf__access_policy_free(policy);
}

static void out_of_memory_is_an_ordinary_error(void **state)
{
    static const struct {
        const char *kind, *body;
    } rows[] = {
        { "TokenReview", "{\"spec\":{\"token\":\"alice-token\"}}" },
        { "TokenReview", "{\"spec\":{\"token\":\"x\"}}" },
        { "SubjectAccessReview",
          "{\"spec\":{\"groups\":[\"g\"],\"nonResourceAttributes\":{\"path\":\"/\"}}}" },
        { "LocalSubjectAccessReview", "{\"spec\":{\"resourceAttributes\":{\"namespace\":\"x\"}}}" },
        { "SelfSubjectRulesReview", "{\"spec\":{\"namespace\":\"shop\"}}" },
        { "SelfSubjectReview", "{}" },
    };

    (void)state;
    for (size_t n = 1, i = 0; i < KINF__ARRAY_LEN(rows); n++) {
        KINF__AUTO_BUFFER status = KINF__BUFFER_INIT;
        struct kinf_error err = KINF_ERROR_INIT;
        struct kinf__access_policy *policy = NULL;
        bool did_fail;
        int failed;

        test_fail_allocation(n);
        failed = kinf__access_policy_parse(kinf_str_from(example), "f", &policy, &err);
        if (failed == 0)
            failed = review(policy, rows[i].kind, "alice-token", rows[i].body, &status, &err);
        did_fail = test_allocation_failed();
        assert_int_equal(failed == KINF_ERR_NO_MEMORY, did_fail);
        kinf__access_policy_free(policy);
        if (!did_fail) {
            n = 0;
            i++;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_somebodys),
        cmocka_unit_test(without_a_policy_every_token_is_the_administrators),
        cmocka_unit_test(what_is_wrong_has_a_place),
        cmocka_unit_test(an_empty_file_allows_what_everybody_may),
        cmocka_unit_test(rules_allow_what_they_say),
        cmocka_unit_test(tokens_are_reviewed),
        cmocka_unit_test(access_is_reviewed),
        cmocka_unit_test(what_the_server_refuses_to_review_is_refused),
        cmocka_unit_test(callers_are_told_who_they_are),
        cmocka_unit_test(callers_are_told_what_they_may),
        cmocka_unit_test(out_of_memory_is_an_ordinary_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
