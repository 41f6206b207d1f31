/*
 * What is passed on, what is refused, and which headers go along: decisions without a connection.
 */
#include "serve/passthrough.h"

#include <string.h>

#include "unit/test.h"

static const struct kinf__pass_head token = { .has_token = true };

static void each_request_has_its_way(void **state)
{
    static const struct kinf__pass_head none = { 0 },
                                        upgrade = { .has_token = true, .is_upgrade = true },
                                        impersonated = { .has_token = true,
                                                         .is_impersonated = true },
                                        malformed = { .has_token = true, .is_malformed = true };
    static const struct {
        bool is_enabled;
        const char *method;
        enum kinf__route route;
        const struct kinf__pass_head *head;
        bool is_not_cached, is_pruned, is_strange;
        enum kinf__pass_verdict verdict;
    } cases[] = {
        /* Reads that the cache can answer are the cache's, token or not. */
        { true, "GET", KINF__ROUTE_RESOURCE, &token, false, false, false, KINF__PASS_ANSWER },
        { true, "GET", KINF__ROUTE_RESOURCE, &none, false, true, false, KINF__PASS_ANSWER },
        { true, "GET", KINF__ROUTE_RESOURCE, &none, false, false, true, KINF__PASS_ANSWER },
        /* Those that it cannot are the server's, for those who say who they are. */
        { true, "GET", KINF__ROUTE_RESOURCE, &token, true, true, false, KINF__PASS_FORWARD },
        { true, "GET", KINF__ROUTE_RESOURCE, &none, true, false, false, KINF__PASS_NO_TOKEN },
        { true, "GET", KINF__ROUTE_OTHER, &token, false, false, false, KINF__PASS_FORWARD },
        { true, "GET", KINF__ROUTE_OTHER, &none, false, false, false, KINF__PASS_NO_TOKEN },
        { false, "GET", KINF__ROUTE_RESOURCE, &token, true, false, false, KINF__PASS_ANSWER },
        { false, "GET", KINF__ROUTE_OTHER, &token, false, false, false, KINF__PASS_ANSWER },
        /* Discovery is whole for those who can ask for all of it. */
        { true, "GET", KINF__ROUTE_APIS, &token, false, false, false, KINF__PASS_FORWARD },
        { true, "GET", KINF__ROUTE_GROUP_VERSION, &none, false, false, false, KINF__PASS_ANSWER },
        /* The daemon's own pages. */
        { true, "GET", KINF__ROUTE_METRICS, &token, false, false, false, KINF__PASS_ANSWER },
        { true, "GET", KINF__ROUTE_HEALTH, &token, false, false, false, KINF__PASS_ANSWER },
        { true, "GET", KINF__ROUTE_VERSION, &token, false, false, false, KINF__PASS_ANSWER },
        { true, "POST", KINF__ROUTE_ROOT, &token, false, false, false, KINF__PASS_ANSWER },
        /* Writes. */
        { true, "POST", KINF__ROUTE_RESOURCE, &token, false, true, false, KINF__PASS_FORWARD },
        { true, "PATCH", KINF__ROUTE_RESOURCE, &token, false, true, false, KINF__PASS_FORWARD },
        { true, "DELETE", KINF__ROUTE_RESOURCE, &token, false, true, false, KINF__PASS_FORWARD },
        { true, "PUT", KINF__ROUTE_RESOURCE, &token, false, false, false, KINF__PASS_FORWARD },
        { true, "PUT", KINF__ROUTE_RESOURCE, &token, false, true, false, KINF__PASS_PRUNED },
        { true, "PUT", KINF__ROUTE_RESOURCE, &none, false, true, false, KINF__PASS_NO_TOKEN },
        { true, "POST", KINF__ROUTE_RESOURCE, &none, false, false, false, KINF__PASS_NO_TOKEN },
        { false, "POST", KINF__ROUTE_RESOURCE, &token, false, false, false, KINF__PASS_ANSWER },
        { true, "HEAD", KINF__ROUTE_RESOURCE, &token, false, false, false, KINF__PASS_ANSWER },
        /* Methods are case-sensitive: this one is not exempt from what is checked for PUT. */
        { true, "put", KINF__ROUTE_RESOURCE, &token, false, true, false, KINF__PASS_ANSWER },
        { true, "get", KINF__ROUTE_OTHER, &token, false, false, false, KINF__PASS_ANSWER },
        { true, "CONNECT", KINF__ROUTE_OTHER, &token, false, false, false, KINF__PASS_ANSWER },
        /* Whose rights count for an impersonation only the server knows. */
        { true, "GET", KINF__ROUTE_RESOURCE, &impersonated, false, false, false,
          KINF__PASS_FORWARD },
        { false, "GET", KINF__ROUTE_RESOURCE, &impersonated, false, false, false,
          KINF__PASS_ANSWER },
        /* Never. */
        { true, "GET", KINF__ROUTE_RESOURCE, &upgrade, false, false, false, KINF__PASS_UPGRADE },
        { false, "POST", KINF__ROUTE_RESOURCE, &upgrade, false, false, false, KINF__PASS_UPGRADE },
        { true, "POST", KINF__ROUTE_RESOURCE, &malformed, false, false, false,
          KINF__PASS_MALFORMED },
        { true, "POST", KINF__ROUTE_RESOURCE, &token, false, false, true, KINF__PASS_MALFORMED },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(cases); i++) {
        const struct kinf__pass_question question = { .is_enabled = cases[i].is_enabled,
                                                      .method = cases[i].method,
                                                      .route = cases[i].route,
                                                      .head = *cases[i].head,
                                                      .is_plain = !cases[i].is_strange,
                                                      .is_pruned = cases[i].is_pruned,
                                                      .is_not_cached = cases[i].is_not_cached };

        if (kinf__passthrough_decide(&question) != cases[i].verdict)
            fail_msg("case %zu: %s", i, cases[i].method);
    }
}

static void headers_go_on_only_if_they_are_known(void **state)
{
    static const char *const sent[] = {
        "Accept",          "accept-encoding",  "AUTHORIZATION",
        "Content-Type",    "User-Agent",       "If-None-Match",
        "Audit-ID",        "Impersonate-User", "Impersonate-Extra-a",
        "Kubectl-Command", "Traceparent"
    };
    static const char *const kept[] = { "X-Remote-User",
                                        "X-Remote-Group",
                                        "X-Remote-Extra-a",
                                        "Connection",
                                        "Keep-Alive",
                                        "Upgrade",
                                        "Transfer-Encoding",
                                        "TE",
                                        "Trailer",
                                        "Content-Length",
                                        "Host",
                                        "Expect",
                                        "Cookie",
                                        "X-Forwarded-For",
                                        "Forwarded",
                                        "Proxy-Connection",
                                        "Proxy-Authorization",
                                        "Range" };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(sent); i++)
        assert_true(kinf__passthrough_sends(sent[i]));
    for (size_t i = 0; i < KINF__ARRAY_LEN(kept); i++)
        assert_false(kinf__passthrough_sends(kept[i]));
}

static void answers_bring_what_describes_them(void **state)
{
    static const struct {
        struct kinf__header header;
        bool is_returned;
    } cases[] = {
        { { "Content-Type", "application/json" }, true },
        { { "content-encoding", "gzip" }, true },
        { { "ETag", "\"x\"" }, true },
        { { "Audit-Id", "x" }, true },
        { { "Retry-After", "1" }, true },
        { { "Warning", "299 - \"x\"" }, true },
        { { "Location", "/openapi/v3?hash=x" }, true },
        { { "Location", "https://elsewhere/" }, false },
        { { "Location", "//elsewhere/" }, false },
        /* Browsers read these as the one before. */
        { { "Location", "/\\elsewhere/" }, false },
        { { "Location", "/\t/elsewhere/" }, false },
        { { "Connection", "close" }, false },
        { { "Transfer-Encoding", "chunked" }, false },
        { { "Content-Length", "5" }, false },
        { { "Set-Cookie", "x" }, false },
        { { "Date", "x" }, false },
        { { "Strict-Transport-Security", "x" }, false },
        { { "Kinformer-Staleness-Seconds", "0" }, false },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(cases); i++)
        assert_int_equal(kinf__passthrough_returns(&cases[i].header), cases[i].is_returned);
}

static struct kinf__pass_head look(const char *name, const char *value, const char *other)
{
    const struct kinf__header headers[] = { { name, value }, { "Authorization", other } };

    return kinf__passthrough_look(headers, other != NULL ? 2 : 1);
}

static void headers_say_who_asks(void **state)
{
    (void)state;
    assert_true(look("Authorization", "Bearer x", NULL).has_token);
    assert_true(look("authorization", "bearer x", NULL).has_token);
    assert_false(look("Authorization", "Bearer  x", NULL).has_token);
    assert_false(look("Authorization", "Bearer ", NULL).has_token);
    assert_false(look("Authorization", "Bearer", NULL).has_token);
    assert_false(look("Authorization", "Basic eDp5", NULL).has_token);
    assert_false(look("X-Authorization", "Bearer x", NULL).has_token);
    assert_true(look("Authorization", "Bearer x", "Bearer y").is_malformed);
    assert_true(look("impersonate-user", "x", NULL).is_impersonated);
    assert_true(look("Upgrade", "websocket", NULL).is_upgrade);
    assert_true(look("upgrade", "SPDY/3.1", NULL).is_upgrade);
    assert_false(look("Upgrade", "h2c", NULL).is_upgrade);
}

static void targets_that_can_be_read_in_two_ways_stay_here(void **state)
{
    static const struct kinf_str strange[] = {
        { "/a#b", 4 }, { "/a b", 4 }, { "/a\tb", 4 }, { "/a\\b", 4 }, { "/a\x80", 3 }, { "", 0 },
    };

    (void)state;
    assert_true(kinf__passthrough_is_plain(
        "PUT", KINF_STR("/apis/g/v/things/a:b?fieldSelector=a!%3Db,c=(d)&x=~'*+@;$-._//")));
    for (size_t i = 0; i < KINF__ARRAY_LEN(strange); i++)
        assert_false(kinf__passthrough_is_plain("GET", strange[i]));
    /* Proxies merge slashes: what is another path here would be a resource there. */
    assert_true(kinf__passthrough_is_plain("GET", KINF_STR("//api/v1")));
    assert_false(kinf__passthrough_is_plain("PUT", KINF_STR("//api/v1")));
    assert_false(kinf__passthrough_is_plain("DELETE", KINF_STR("/api/v1//pods?a")));
}

static void refusals_name_the_remedy(void **state)
{
    struct kinf__refusal refusal;

    (void)state;
    assert_int_equal(kinf__passthrough_refuse(KINF__PASS_PRUNED, "pods", &refusal),
                     KINF_ERR_INVALID);
    assert_int_equal(refusal.code, 405);
    assert_non_null(strstr(refusal.message, "PATCH"));
    (void)kinf__passthrough_refuse(KINF__PASS_NO_TOKEN, "pods", &refusal);
    assert_int_equal(refusal.code, 401);
    assert_non_null(strstr(refusal.message, "token"));
    (void)kinf__passthrough_refuse(KINF__PASS_UPGRADE, "pods", &refusal);
    assert_int_equal(refusal.code, 403);
    (void)kinf__passthrough_refuse(KINF__PASS_MALFORMED, "pods", &refusal);
    assert_int_equal(refusal.code, 400);
    (void)kinf__passthrough_refuse_length(&refusal);
    assert_int_equal(refusal.code, 413);
    assert_string_equal(refusal.message, "Request entity too large: limit is 3145728");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_has_its_way),
        cmocka_unit_test(headers_go_on_only_if_they_are_known),
        cmocka_unit_test(answers_bring_what_describes_them),
        cmocka_unit_test(headers_say_who_asks),
        cmocka_unit_test(targets_that_can_be_read_in_two_ways_stay_here),
        cmocka_unit_test(refusals_name_the_remedy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
