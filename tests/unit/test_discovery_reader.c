/*
 * The cache of discovery: the aggregated form taken apart, and how often a server is asked.
 */
#include "rest/discovery_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "rest/client.h"
#include "rest/documents.h"
#include "unit/allocation.h"
#include "unit/scripted_server.h"
#include "unit/test.h"

#define LIST(items)           "{\"kind\":\"APIGroupDiscoveryList\",\"items\":[" items "]}"
#define GROUP(name, versions) "{\"metadata\":{\"name\":\"" name "\"},\"versions\":[" versions "]}"
#define VERSION(name, freshness, resources)                                                        \
    "{\"version\":\"" name "\",\"freshness\":\"" freshness "\",\"resources\":[" resources "]}"
#define RESOURCE(name, singular, kind, scope, more)                                                \
    "{\"resource\":\"" name "\",\"singularResource\":\"" singular                                  \
    "\",\"responseKind\":{\"group\":\"\",\"version\":\"v1\",\"kind\":\"" kind                      \
    "\"},\"scope\":\"" scope "\",\"verbs\":[\"get\",\"list\",\"watch\"]" more "}"

#define PODS                                                                                       \
    RESOURCE("pods", "pod", "Pod", "Namespaced",                                                   \
             ",\"shortNames\":[\"po\"],\"categories\":[\"all\"],\"subresources\":["                \
             "{\"subresource\":\"log\",\"responseKind\":{\"kind\":\"Pod\"},\"verbs\":[\"get\"]}]")
#define CORE LIST(GROUP("", VERSION("v1", "Current", PODS)))
#define APPS                                                                                       \
    GROUP("apps", VERSION("v1", "Current",                                                         \
                          RESOURCE("deployments", "deployment", "Deployment", "Namespaced", "")))
#define AWAY                                                                                       \
    GROUP("away.example", VERSION("v1", "Stale", RESOURCE("things", "", "Thing", "Cluster", "")))
#define BACK                                                                                       \
    GROUP("away.example", VERSION("v1", "Current", RESOURCE("things", "", "Thing", "Cluster", "")))
#define TWO                                                                                        \
    GROUP("two.example",                                                                           \
          VERSION("v2", "Current", RESOURCE("b", "", "B", "Cluster", "")) "," VERSION(             \
              "v1", "Current", RESOURCE("a", "", "A", "Cluster", "")))
#define GROUPS LIST(APPS "," AWAY "," TWO)

/* --- taking apart --- */

static void expect(const struct kinf__documents *documents, const char *target, const char *text)
{
    const struct kinf__document *found = kinf__documents_find(documents, target);

    if (found == NULL)
        fail_msg("no %s", target);
    else if (text == NULL)
        assert_null(found->text);
    else
        assert_string_equal(found->text, text);
}

static void an_aggregated_answer_is_what_older_servers_say(void **state)
{
    struct kinf__documents documents = KINF__DOCUMENTS_INIT;

    (void)state;
    assert_int_equal(kinf__documents_add_aggregated(&documents, KINF_STR(CORE), NULL), 1);
    assert_int_equal(documents.n_items, 1);
    expect(&documents, "/api/v1",
           "{\"kind\":\"APIResourceList\",\"resources\":[{\"namespaced\":true,\"name\":\"pods\","
           "\"singularName\":\"pod\",\"kind\":\"Pod\",\"verbs\":[\"get\",\"list\",\"watch\"],"
           "\"shortNames\":[\"po\"],\"categories\":[\"all\"]},{\"namespaced\":true,\"name\":"
           "\"pods/log\",\"kind\":\"Pod\",\"verbs\":[\"get\"]}]}");
    assert_int_equal(kinf__documents_add_aggregated(&documents, KINF_STR(GROUPS), NULL), 1);
    expect(&documents, "/apis/two.example",
           "{\"kind\":\"APIGroup\",\"name\":\"two.example\",\"preferredVersion\":{\"kind\":\"\","
           "\"version\":\"v2\"},\"versions\":[{\"version\":\"v2\"},{\"version\":\"v1\"}]}");
    expect(&documents, "/apis/away.example/v1", NULL);
    assert_non_null(strstr(kinf__documents_find(&documents, "/apis")->text,
                           "{\"kind\":\"APIGroupList\",\"groups\":[{\"kind\":\"APIGroup\",\"name\":"
                           "\"apps\""));
    assert_null(kinf__documents_find(&documents, "/apis/two.example/v3"));
    kinf__documents_release(&documents);
}

static void other_answers_are_left_alone(void **state)
{
    struct kinf__documents documents = KINF__DOCUMENTS_INIT;

    (void)state;
    assert_int_equal(
        kinf__documents_add_aggregated(&documents, KINF_STR("{\"kind\":\"APIGroupList\"}"), NULL),
        0);
    assert_int_equal(kinf__documents_add_aggregated(&documents, KINF_STR("[]"), NULL), 0);
    assert_true(kinf__documents_add_aggregated(&documents, KINF_STR("<html>"), NULL) < 0);
    assert_int_equal(documents.n_items, 0);
    /* Parts that are something else than they should be. */
    assert_int_equal(kinf__documents_add_aggregated(
                         &documents,
                         KINF_STR(LIST("7,{},{\"metadata\":7,\"versions\":[7,{\"version\":7}]},"
                                       "{\"metadata\":{\"name\":\"x\"},\"versions\":[{\"version\":"
                                       "\"v1\",\"resources\":[{},7,{\"resource\":\"r\",\"verbs\":["
                                       "7],\"subresources\":[{}]}]}]}")),
                         NULL),
                     1);
    expect(&documents, "/apis/x/v1",
           "{\"kind\":\"APIResourceList\",\"resources\":[{\"namespaced\":false,\"name\":\"r\","
           "\"verbs\":[]}]}");
    kinf__documents_release(&documents);
}

static void every_lack_of_memory_is_an_error(void **state)
{
    (void)state;
    for (size_t n = 1;; n++) {
        struct kinf__documents documents = KINF__DOCUMENTS_INIT;
        int r;

        test_fail_allocation(n);
        r = kinf__documents_add_aggregated(&documents, KINF_STR(GROUPS), NULL);
        kinf__documents_release(&documents);
        if (!test_allocation_failed()) {
            assert_int_equal(r, 1);
            return;
        }
        assert_int_equal(r, KINF_ERR_NO_MEMORY);
    }
}

/* --- asking --- */

struct fixture {
    struct replay *server;
    struct kinf_client *client;
};

static void start(struct fixture *f, const struct test_reply *replies, size_t n_replies)
{
    f->server = test_server_start(replies, n_replies);
    f->client = test_client_of(replay_port(f->server), NULL);
}

static void stop(struct fixture *f)
{
    kinf_client_free(f->client);
    replay_stop(f->server);
}

static void expect_targets(struct fixture *f, const char *expected)
{
    char *targets = test_server_targets(f->server);

    assert_string_equal(targets, expected);
    free(targets);
}

static int find(struct fixture *f, const char *name)
{
    const struct kinf_type *type;

    return kinf_client_find_type(f->client, name, &type, NULL);
}

/* As if the interval had passed. */
static void grow_old(struct fixture *f)
{
    f->client->discovery.begun_ms = kinf__clock_now_ms() - KINF__DISCOVERY_INTERVAL_MS;
}

static void two_requests_tell_every_name(void **state)
{
    static const struct test_reply replies[] = { { .body = CORE }, { .body = GROUPS } };
    struct fixture f;

    (void)state;
    start(&f, replies, 2);
    assert_int_equal(find(&f, "po"), 0);
    expect_targets(&f, "/api\n");
    assert_int_equal(find(&f, "deployments"), 0);
    assert_int_equal(find(&f, "deployment.apps"), 0);
    assert_int_equal(find(&f, "b.two.example"), 0);
    assert_int_equal(find(&f, "a"), 0);
    assert_int_equal(find(&f, "a.v1.two.example"), 0);
    assert_int_equal(find(&f, "pods/log"), KINF_ERR_INVALID);
    expect_targets(&f, "/api\n/apis\n");
    stop(&f);
}

static void an_unknown_name_asks_again_but_not_all_the_time(void **state)
{
    static const struct test_reply replies[] = {
        { .body = CORE }, { .body = LIST("") }, { .body = CORE }, { .body = GROUPS }
    };
    struct fixture f;

    (void)state;
    start(&f, replies, 4);
    for (int i = 0; i < 3; i++)
        assert_int_equal(find(&f, "deployments"), KINF_ERR_NOT_FOUND);
    expect_targets(&f, "/api\n/apis\n");
    grow_old(&f);
    assert_int_equal(find(&f, "po"), 0);
    expect_targets(&f, "/api\n/apis\n");
    assert_int_equal(find(&f, "deployments"), 0);
    expect_targets(&f, "/api\n/apis\n/api\n/apis\n");
    assert_int_equal(find(&f, "unicorns"), KINF_ERR_NOT_FOUND);
    expect_targets(&f, "/api\n/apis\n/api\n/apis\n");
    stop(&f);
}

static void a_group_that_is_away_is_named_until_it_is_back(void **state)
{
    static const struct test_reply replies[] = { { .body = CORE },
                                                 { .body = GROUPS },
                                                 { .body = LIST(BACK) } };
    const struct kinf_type *type;
    struct kinf_error err = KINF_ERROR_INIT;
    struct fixture f;

    (void)state;
    start(&f, replies, 3);
    assert_int_equal(kinf_client_find_type(f.client, "things", &type, &err), KINF_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "away.example"));
    assert_int_equal(find(&f, "things.away.example"), KINF_ERR_SERVER);
    grow_old(&f);
    assert_int_equal(find(&f, "things.away.example"), 0);
    stop(&f);
}

static void a_server_that_fails_is_asked_again(void **state)
{
    static const struct test_reply replies[] = {
        { .status = "503 Service Unavailable", .body = "no" },
        { .body = CORE },
    };
    struct fixture f;

    (void)state;
    start(&f, replies, 2);
    assert_int_equal(find(&f, "pods"), KINF_ERR_SERVER);
    assert_int_equal(find(&f, "pods"), 0);
    stop(&f);
}

static void *find_pods(void *ctx)
{
    assert_int_equal(find(ctx, "pods"), 0);
    return NULL;
}

static void those_who_ask_at_once_cause_one_request(void **state)
{
    static const struct test_reply replies[] = { { .body = CORE, .is_held = true } };
    pthread_t threads[8];
    struct fixture f;

    (void)state;
    start(&f, replies, 1);
    for (size_t i = 0; i < KINF__ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, find_pods, &f), 0);
    test_server_let_go(f.server);
    for (size_t i = 0; i < KINF__ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    expect_targets(&f, "/api\n");
    stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_aggregated_answer_is_what_older_servers_say),
        cmocka_unit_test(other_answers_are_left_alone),
        cmocka_unit_test(every_lack_of_memory_is_an_error),
        cmocka_unit_test(two_requests_tell_every_name),
        cmocka_unit_test(an_unknown_name_asks_again_but_not_all_the_time),
        cmocka_unit_test(a_group_that_is_away_is_named_until_it_is_back),
        cmocka_unit_test(a_server_that_fails_is_asked_again),
        cmocka_unit_test(those_who_ask_at_once_cause_one_request),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
