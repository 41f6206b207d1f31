/*
 * Reviews: what is sent, and what an answer means; whatever is doubtful is a no or an error.
 */
#include "serve/review.h"

#include "base/compiler.h"
#include "unit/test.h"

static void a_token_is_sent_as_a_string(void **state)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;

    (void)state;
    assert_int_equal(kinf__review_write_token(KINF_STR("a\"b"), &out), 0);
    assert_string_equal(kinf__buffer_cstr(&out),
                        "{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\","
                        "\"spec\":{\"token\":\"a\\\"b\"}}");
}

static void attributes_are_sent_as_they_are_asked_for(void **state)
{
    static const struct {
        struct kinf__attributes attributes;
        const char *expected;
    } rows[] = {
        { { "list", "", "", "v1", "pods", "", "", "", "", "" },
          "\"resourceAttributes\":{\"verb\":\"list\",\"version\":\"v1\",\"resource\":\"pods\"}" },
        { { "get", "", "apps", "v1", "deployments", "status", "n", "d", "", "" },
          "\"resourceAttributes\":{\"verb\":\"get\",\"group\":\"apps\",\"version\":\"v1\","
          "\"resource\":\"deployments\",\"subresource\":\"status\",\"namespace\":\"n\","
          "\"name\":\"d\"}" },
        { { "watch", "", "", "v1", "pods", "", "n", "", "a=b", "spec.nodeName=x" },
          "\"resourceAttributes\":{\"verb\":\"watch\",\"version\":\"v1\",\"resource\":\"pods\","
          "\"namespace\":\"n\",\"labelSelector\":{\"rawSelector\":\"a=b\"},"
          "\"fieldSelector\":{\"rawSelector\":\"spec.nodeName=x\"}}" },
        { { "get", "/metrics", "", "", "", "", "", "", "", "" },
          "\"nonResourceAttributes\":{\"verb\":\"get\",\"path\":\"/metrics\"}" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
        KINF__AUTO_BUFFER expected = KINF__BUFFER_INIT;

        assert_int_equal(kinf__review_write_access("\"user\":\"u\"", &rows[i].attributes, &out), 0);
        assert_int_equal(kinf__buffer_printf(&expected,
                                             "{\"kind\":\"SubjectAccessReview\","
                                             "\"apiVersion\":\"authorization.k8s.io/v1\","
                                             "\"spec\":{\"user\":\"u\",%s}}",
                                             rows[i].expected),
                         0);
        assert_string_equal(kinf__buffer_cstr(&out), kinf__buffer_cstr(&expected));
    }
}

#define TOKEN_REVIEW(status) "{\"kind\":\"TokenReview\",\"status\":" status "}"

static void a_token_is_somebody_only_if_the_answer_says_so(void **state)
{
    static const struct {
        const char *answer;
        int code;
        bool is_yes;
        const char *text;
    } rows[] = {
        { TOKEN_REVIEW("{\"authenticated\":true,\"user\":{\"username\":\"a\",\"uid\":\"7\","
                       "\"groups\":[\"g\"],\"extra\":{\"k\":[\"v\"]}}}"),
          0, true, "\"user\":\"a\",\"uid\":\"7\",\"groups\":[\"g\"],\"extra\":{\"k\":[\"v\"]}" },
        { TOKEN_REVIEW("{\"authenticated\":true,\"user\":{\"username\":\"a\",\"groups\":null}}"), 0,
          true, "\"user\":\"a\"" },
        { TOKEN_REVIEW("{\"error\":\"no\"}"), 0, false, "no" },
        { TOKEN_REVIEW("{\"authenticated\":false,\"user\":{\"username\":\"a\"}}"), 0, false, "" },
        { TOKEN_REVIEW("{\"authenticated\":\"true\",\"user\":{\"username\":\"a\"}}"), 0, false,
          "" },
        { TOKEN_REVIEW("{\"authenticated\":true}"), KINF_ERR_PARSE, false, "" },
        { TOKEN_REVIEW("{\"authenticated\":true,\"user\":{}}"), KINF_ERR_PARSE, false, "" },
        { TOKEN_REVIEW("null"), KINF_ERR_PARSE, false, "" },
        { "{\"kind\":\"Status\",\"status\":\"Failure\"}", KINF_ERR_PARSE, false, "" },
        { "", KINF_ERR_PARSE, false, "" },
        { "{\"kind\":", KINF_ERR_PARSE, false, "" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        KINF__AUTO_BUFFER user = KINF__BUFFER_INIT;
        bool is_yes = false;

        assert_int_equal(
            kinf__review_read_token(kinf_str_from(rows[i].answer), &is_yes, &user, NULL),
            rows[i].code);
        if (rows[i].code == 0)
            assert_int_equal(is_yes, rows[i].is_yes);
        assert_string_equal(kinf__buffer_cstr(&user), rows[i].text);
    }
}

#define ACCESS_REVIEW(status) "{\"kind\":\"SubjectAccessReview\",\"status\":" status "}"

static void access_is_given_only_if_the_answer_says_so(void **state)
{
    static const struct {
        const char *answer;
        int code;
        bool is_yes;
        const char *reason;
    } rows[] = {
        { ACCESS_REVIEW("{\"allowed\":true,\"reason\":\"RBAC: \\\"x\\\"\"}"), 0, true,
          "RBAC: \"x\"" },
        { ACCESS_REVIEW("{\"allowed\":false,\"reason\":\"no\"}"), 0, false, "no" },
        { ACCESS_REVIEW("{\"allowed\":true,\"denied\":true}"), 0, false, "" },
        { ACCESS_REVIEW("{}"), 0, false, "" },
        { ACCESS_REVIEW("{\"allowed\":1}"), 0, false, "" },
        { TOKEN_REVIEW("{\"allowed\":true}"), KINF_ERR_PARSE, false, "" },
        { "[]", KINF_ERR_PARSE, false, "" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        KINF__AUTO_BUFFER reason = KINF__BUFFER_INIT;
        bool is_yes = false;

        assert_int_equal(
            kinf__review_read_access(kinf_str_from(rows[i].answer), &is_yes, &reason, NULL),
            rows[i].code);
        if (rows[i].code == 0)
            assert_int_equal(is_yes, rows[i].is_yes);
        assert_string_equal(kinf__buffer_cstr(&reason), rows[i].reason);
    }
}

static void a_user_has_a_name(void **state)
{
    KINF__AUTO_BUFFER name = KINF__BUFFER_INIT;

    (void)state;
    assert_int_equal(kinf__review_user_name("\"user\":\"a:\\u0062\",\"uid\":\"7\"", &name), 0);
    assert_string_equal(kinf__buffer_cstr(&name), "a:b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_sent_as_a_string),
        cmocka_unit_test(attributes_are_sent_as_they_are_asked_for),
        cmocka_unit_test(a_token_is_somebody_only_if_the_answer_says_so),
        cmocka_unit_test(access_is_given_only_if_the_answer_says_so),
        cmocka_unit_test(a_user_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
