/*
 * The cache of discovery: how often a server is asked, and who waits for whom.
 */
#include "rest/discovery_cache.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "rest/client.h"
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

#define PODS RESOURCE("pods", "pod", "Pod", "Namespaced", ",\"shortNames\":[\"po\"]")
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

static void what_is_to_be_found_anew_is_asked_for_once_an_interval(void **state)
{
    static const struct test_reply replies[] = { { .body = CORE }, { .body = CORE } };
    struct kinf_error err = { .message = "as it was" };
    const struct kinf_type *type;
    struct fixture f;

    (void)state;
    start(&f, replies, 2);
    assert_int_equal(find(&f, "po"), 0);
    assert_int_equal(kinf__discovery_find_anew(f.client, "po", &type, &err), 0);
    assert_string_equal(err.message, "as it was");
    expect_targets(&f, "/api\n");
    grow_old(&f);
    assert_int_equal(kinf__discovery_find_anew(f.client, "po", &type, NULL), 0);
    assert_string_equal(type->kind, "Pod");
    expect_targets(&f, "/api\n/api\n");
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

static void an_answer_that_does_not_end_is_not_kept(void **state)
{
    size_t size = (16u << 20) + 2;
    KINF__AUTO_FREE char *blanks = malloc(size);
    const struct test_reply replies[] = { { .body = blanks } };
    struct fixture f;

    (void)state;
    assert_non_null(blanks);
    memset(blanks, ' ', size - 1);
    blanks[size - 1] = '\0';
    start(&f, replies, 1);
    assert_int_equal(find(&f, "pods"), KINF_ERR_LIMIT);
    stop(&f);
}

static void who_has_no_memory_to_ask_leaves_the_turn_to_others(void **state)
{
    static const struct test_reply replies[] = { { .body = CORE } };
    struct fixture f;

    (void)state;
    start(&f, replies, 1);
    test_fail_allocation(1);
    assert_int_equal(find(&f, "pods"), KINF_ERR_NO_MEMORY);
    assert_true(test_allocation_failed());
    expect_targets(&f, "");
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
        cmocka_unit_test(two_requests_tell_every_name),
        cmocka_unit_test(an_unknown_name_asks_again_but_not_all_the_time),
        cmocka_unit_test(what_is_to_be_found_anew_is_asked_for_once_an_interval),
        cmocka_unit_test(a_group_that_is_away_is_named_until_it_is_back),
        cmocka_unit_test(a_server_that_fails_is_asked_again),
        cmocka_unit_test(an_answer_that_does_not_end_is_not_kept),
        cmocka_unit_test(who_has_no_memory_to_ask_leaves_the_turn_to_others),
        cmocka_unit_test(those_who_ask_at_once_cause_one_request),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
