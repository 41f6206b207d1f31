/*
 * Asking a server for a resource, through the connection. What the spellings mean is
 * test_discovery.c's.
 */
#include <kinformer/client.h>

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "unit/scripted_server.h"
#include "unit/test.h"

#define RESOURCE(name, kind)                                                                       \
    "{\"kind\":\"APIResourceList\",\"resources\":[{\"name\":\"" name "\",\"kind\":\"" kind         \
    "\",\"namespaced\":true,\"verbs\":[\"list\",\"watch\"]}]}"
#define GROUP(name, version)                                                                       \
    "{\"name\":\"" name "\",\"preferredVersion\":{\"version\":\"" version "\"}}"

static const struct test_reply replies[] = {
    { .path = "/api/v1", .body = RESOURCE("pods", "Pod") },
    { .path = "/apis",
      .body = "{\"kind\":\"APIGroupList\",\"groups\":[" GROUP("broken.example",
                                                              "v1") "," GROUP("apps", "v1") "]}" },
    { .path = "/apis/broken.example/v1",
      .status = "503 Service Unavailable",
      .body = "service unavailable\n" },
    { .path = "/apis/apps/v1", .body = RESOURCE("deployments", "Deployment") },
};

static const struct test_reply failing[] = {
    { .path = "/apis",
      .body = "{\"kind\":\"APIGroupList\",\"groups\":[" GROUP("garbage.example", "v1") "," GROUP(
          "refused.example", "v1") "]}" },
    { .path = "/apis/garbage.example/v1", .body = "{\"name\":" },
    { .path = "/apis/refused.example/v1",
      .status = "403 Forbidden",
      .body =
          "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"no\",\"reason\":\"Forbidden\","
          "\"code\":403}" },
};

static struct replay *server;
static struct kinf_client *client;

static void start(const struct test_reply *of, size_t n)
{
    server = test_server_start(of, n);
    client = test_client_of(replay_port(server), NULL);
}

static int begin(void **state)
{
    (void)state;
    start(replies, KINF__ARRAY_LEN(replies));
    return 0;
}

static int end(void **state)
{
    (void)state;
    kinf_client_free(client);
    replay_stop(server);
    return 0;
}

static void assert_found(const char *resource, const char *group, const char *kind)
{
    struct kinf_error err = { .code = KINF_ERR_STATE, .message = "as it was" };
    const struct kinf_type *type = NULL;

    if (kinf_client_find_type(client, resource, &type, &err) < 0)
        fail_msg("%s: %s", resource, err.message);
    assert_string_equal(err.message, "as it was");
    assert_string_equal(type->group, group);
    assert_string_equal(type->version, "v1");
    assert_string_equal(type->kind, kind);
}

static void assert_fails(const char *resource, int code, const char *word)
{
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf_type *type = NULL;

    assert_int_equal(kinf_client_find_type(client, resource, &type, &err), code);
    assert_int_equal(err.code, code);
    assert_null(type);
    if (strstr(err.message, word) == NULL)
        fail_msg("'%s' does not say '%s'", err.message, word);
}

static void what_was_asked_for_is_not_asked_for_again(void **state)
{
    KINF__AUTO_FREE char *requests = NULL;

    (void)state;
    assert_found("pods", "", "Pod");
    assert_found("Pods", "", "Pod");
    requests = test_server_heads(server);
    assert_non_null(strstr(requests, "GET /api HTTP/1.1\r\n"));
    assert_non_null(strstr(requests, ";as=APIGroupDiscoveryList,application/json\r\n"));
    assert_non_null(strstr(requests, "GET /api/v1 HTTP/1.1\r\n"));
    assert_non_null(strstr(requests, "Accept: application/json\r\n"));
    assert_int_equal(replay_n_requests(server), 2);
}

static void a_context_without_a_namespace_has_an_empty_one(void **state)
{
    (void)state;
    assert_string_equal(kinf_client_namespace(client), "");
}

static void a_broken_group_hides_no_other(void **state)
{
    (void)state;
    assert_found("deployments", "apps", "Deployment");
    assert_fails("unicorns", KINF_ERR_NOT_FOUND, "broken.example");
}

static void a_failure_names_the_server(void **state)
{
    assert_fails("unicorns.apps", KINF_ERR_NOT_FOUND, "127.0.0.1:");
    end(state);
    start(failing, KINF__ARRAY_LEN(failing));
    assert_fails("x.refused.example", KINF_ERR_FORBIDDEN, "answered 403: no");
    assert_fails("x.garbage.example", KINF_ERR_TRUNCATED, "discovery /apis/garbage.example/v1");
}

static void a_name_that_would_leave_the_path_is_not_asked_for(void **state)
{
    (void)state;
    assert_fails("../pods", KINF_ERR_INVALID, "is no name of a resource");
    assert_fails("pods\n", KINF_ERR_INVALID, "'pods ' is no name of a resource");
    assert_int_equal(replay_n_requests(server), 0);
}

static void an_interrupted_client_asks_no_more(void **state)
{
    (void)state;
    kinf_client_interrupt(client);
    assert_fails("pods", KINF_ERR_STOPPED, "stopped");
    assert_fails("pods", KINF_ERR_STOPPED, "stopped");
}

static void over_plain_http_no_credential_is_sent(void **state)
{
    KINF__AUTO_FREE char *requests = NULL;
    char text[512];

    (void)state;
    kinf_client_free(client);
    snprintf(text, sizeof text,
             "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%u'}}]\n"
             "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
             "users: [{name: u, user: {token: s3cret, as: jane, as-groups: [system:masters]}}]\n",
             replay_port(server));
    assert_int_equal(test_client_new(text, NULL, &client, NULL), 0);
    assert_found("pods", "", "Pod");
    requests = test_server_heads(server);
    assert_non_null(strstr(requests, "GET /api/v1 HTTP/1.1\r\n"));
    assert_null(strstr(requests, "s3cret"));
    assert_null(strcasestr(requests, "Authorization"));
    assert_null(strcasestr(requests, "Impersonate"));
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SERVER(what_was_asked_for_is_not_asked_for_again),
        WITH_SERVER(a_context_without_a_namespace_has_an_empty_one),
        WITH_SERVER(a_broken_group_hides_no_other),
        WITH_SERVER(a_failure_names_the_server),
        WITH_SERVER(a_name_that_would_leave_the_path_is_not_asked_for),
        WITH_SERVER(an_interrupted_client_asks_no_more),
        WITH_SERVER(over_plain_http_no_credential_is_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
