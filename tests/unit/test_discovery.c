/*
 * Finding a resource on a server: which questions are asked, and what the answers come to.
 */
#include <kinformer/client.h>

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "unit/rest_server.h"
#include "unit/test.h"

#define RESOURCE(name, singular, kind, short_name)                                                 \
    "{\"name\":\"" name "\",\"singularName\":\"" singular "\",\"kind\":\"" kind                    \
    "\",\"namespaced\":true,\"shortNames\":[\"" short_name                                         \
    "\"],\"verbs\":[\"get\",\"list\",\"watch\"]}"
#define LIST(...) "{\"kind\":\"APIResourceList\",\"resources\":[" __VA_ARGS__ "]}"
#define GROUP(name, version)                                                                       \
    "{\"name\":\"" name "\",\"preferredVersion\":{\"groupVersion\":\"" name "/" version            \
    "\",\"version\":\"" version "\"}}"

static const struct rest_answer answers[] = {
    { "/api/v1", NULL,
      LIST(RESOURCE("pods", "pod", "Pod", "po") "," RESOURCE("events", "", "Event", "ev")) },
    { "/apis", NULL,
      "{\"kind\":\"APIGroupList\",\"groups\":[" GROUP("apps", "v1") "," GROUP(
          "broken.example", "v1") "," GROUP("v2ray.example", "v1beta1") "]}" },
    { "/apis/apps", NULL, GROUP("apps", "v1") },
    { "/apis/apps/v1", NULL,
      LIST(RESOURCE("deployments", "deployment", "Deployment", "deploy") "," RESOURCE("ev", "",
                                                                                      "Ev", "x")) },
    { "/apis/apps/v1beta2", NULL,
      LIST(RESOURCE("deployments", "deployment", "Deployment", "deploy")) },
    { "/apis/broken.example/v1", "503 Service Unavailable", "service unavailable\n" },
    { "/apis/v2ray.example", NULL, GROUP("v2ray.example", "v1beta1") },
    { "/apis/v2ray.example/v1beta1", NULL,
      LIST(RESOURCE("gadgets", "gadget", "Gadget",
                    "gg") ",{\"name\":\"locks\",\"kind\":\"Lock\",\"verbs\":[\"create\"]}") },
    { "/apis/garbage.example", NULL, "{\"name\":" },
    { "/apis/refused.example", "403 Forbidden",
      "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"no\",\"reason\":\"Forbidden\","
      "\"code\":403}" },
};

static struct rest_server *server;
static struct kinf_client *client;

static int begin(void **state)
{
    char text[256];

    (void)state;
    server = rest_server_start(answers, sizeof answers / sizeof *answers, NULL, NULL);
    snprintf(text, sizeof text,
             "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%u'}}]\n"
             "contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n",
             rest_server_port(server));
    return rest_client_new(text, &client, NULL);
}

static int end(void **state)
{
    (void)state;
    kinf_client_free(client);
    rest_server_stop(server);
    return 0;
}

/* An error that shows whether it was touched. */
static struct kinf_error untouched(void)
{
    struct kinf_error err = { .code = KINF_ERR_STATE, .message = "as it was" };

    return err;
}

static const struct kinf_type *find(const char *resource)
{
    struct kinf_error err = untouched();
    const struct kinf_type *type = NULL;

    if (kinf_client_find_type(client, resource, &type, &err) < 0)
        fail_msg("%s: %s", resource, err.message);
    assert_string_equal(err.message, "as it was");
    return type;
}

static void assert_found(const char *resource, const char *group, const char *version,
                         const char *plural)
{
    const struct kinf_type *type = find(resource);

    assert_string_equal(type->group, group);
    assert_string_equal(type->version, version);
    assert_string_equal(type->resource, plural);
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

static void core_types_need_one_question(void **state)
{
    (void)state;
    assert_found("pods", "", "v1", "pods");
    assert_int_equal(rest_server_n_requests(server), 1);
    assert_found("po", "", "v1", "pods");
    assert_found("pods.v1", "", "v1", "pods");
    assert_int_equal(rest_server_n_requests(server), 3);
}

static void groups_are_asked_in_the_servers_order(void **state)
{
    KINF__AUTO_FREE char *requests = NULL;

    (void)state;
    assert_found("deployments", "apps", "v1", "deployments");
    requests = rest_server_requests(server);
    assert_non_null(strstr(requests, "GET /api/v1 "));
    assert_non_null(strstr(requests, "GET /apis "));
    assert_null(strstr(requests, "broken.example"));
}

static void a_group_narrows_the_question(void **state)
{
    KINF__AUTO_FREE char *requests = NULL;

    (void)state;
    assert_found("deployments.apps", "apps", "v1", "deployments");
    assert_found("deployments.v1beta2.apps", "apps", "v1beta2", "deployments");
    /* A group that begins like a version. */
    assert_found("gadgets.v2ray.example", "v2ray.example", "v1beta1", "gadgets");
    requests = rest_server_requests(server);
    assert_null(strstr(requests, "GET /api/v1 "));
    assert_int_equal(rest_server_n_requests(server), 5);
}

static void a_broken_group_hides_no_other(void **state)
{
    (void)state;
    assert_found("gadgets", "v2ray.example", "v1beta1", "gadgets");
    /* It may be the one that has this. */
    assert_fails("unicorns", KINF_ERR_SERVER, "service unavailable");
}

/* "ev" is the short name of events, and deployments come with a resource of that name. */
static void a_name_goes_before_a_short_name_of_its_list(void **state)
{
    (void)state;
    assert_found("ev", "", "v1", "events");
    assert_found("ev.apps", "apps", "v1", "ev");
    assert_found("Event", "", "v1", "events");
}

static void what_is_not_there_is_named(void **state)
{
    (void)state;
    assert_fails("unicorns.apps", KINF_ERR_NOT_FOUND, "'unicorns.apps'");
    assert_fails("unicorns.apps", KINF_ERR_NOT_FOUND, "127.0.0.1:");
    assert_fails("pods.no.such.group", KINF_ERR_NOT_FOUND, "api-resources");
    assert_fails("deployments.v7.apps", KINF_ERR_NOT_FOUND, "'deployments.v7.apps'");
    assert_fails("locks.v2ray.example", KINF_ERR_UNSUPPORTED, "listed and watched");
    assert_fails("x.refused.example", KINF_ERR_FORBIDDEN, "answered 403: no");
    assert_fails("x.garbage.example", KINF_ERR_TRUNCATED, "discovery /apis/garbage.example");
}

static void names_that_would_leave_the_path_are_refused(void **state)
{
    static const char *const names[] = { "",      ".",     "..",        "pods/status",
                                         "a%2fb", "pods.", "pods..b",   "pods?x",
                                         "po ds", ".apps", "pods.a..b", "pods\n" };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_fails(names[i], KINF_ERR_INVALID, "is no name of a resource");
    assert_int_equal(rest_server_n_requests(server), 0);
}

static void an_interrupted_client_asks_no_more(void **state)
{
    (void)state;
    kinf_client_interrupt(client);
    assert_fails("pods", KINF_ERR_STOPPED, "stopped");
    assert_fails("pods", KINF_ERR_STOPPED, "stopped");
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SERVER(core_types_need_one_question),
        WITH_SERVER(groups_are_asked_in_the_servers_order),
        WITH_SERVER(a_group_narrows_the_question),
        WITH_SERVER(a_broken_group_hides_no_other),
        WITH_SERVER(a_name_goes_before_a_short_name_of_its_list),
        WITH_SERVER(what_is_not_there_is_named),
        WITH_SERVER(names_that_would_leave_the_path_are_refused),
        WITH_SERVER(an_interrupted_client_asks_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
