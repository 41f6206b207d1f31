/*
 * Requests: how each is said, what is made again and what is not, and how often they go out.
 */
#include <kinformer/request.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "rest/client.h"
#include "rest/request.h"
#include "rest/status.h"
#include "unit/allocation.h"
#include "unit/scripted_server.h"
#include "unit/test.h"

struct fixture {
    struct replay *server;
    struct kinf_client *client;
    const struct kinf_type *pods, *nodes, *scalable;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    assert_int_equal(kinf_type_intern("", "v1", "Pod", "pods", true, &f->pods, NULL), 0);
    assert_int_equal(kinf_type_intern("", "v1", "Node", "nodes", false, &f->nodes, NULL), 0);
    assert_int_equal(
        kinf_type_intern("apps", "v1", "Deployment", "deployments", true, &f->scalable, NULL), 0);
    *state = f;
    return 0;
}

static void start_limited(struct fixture *f, const struct test_reply *replies, size_t n_replies,
                          double per_second, int burst)
{
    struct kinf_client_options options = KINF_CLIENT_OPTIONS_INIT;

    f->server = test_server_start(replies, n_replies);
    options.queries_per_second = per_second;
    options.burst = burst;
    f->client = test_client_of(replay_port(f->server), &options);
}

static void start(struct fixture *f, const struct test_reply *replies, size_t n_replies)
{
    start_limited(f, replies, n_replies, -1, 0);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    kinf_client_free(f->client);
    if (f->server != NULL)
        replay_stop(f->server);
    free(f);
    return 0;
}

static void expect_requests(struct fixture *f, const char *expected)
{
    char *requests = test_server_requests(f->server);

    assert_string_equal(requests, expected);
    free(requests);
}

static struct kinf_request get_pod(struct fixture *f)
{
    return (struct kinf_request){
        .size = sizeof(struct kinf_request), .type = f->pods, .name_space = "n", .name = "a"
    };
}

static int request_of(struct fixture *f, struct kinf_request request, struct kinf_error *err)
{
    request.size = sizeof request;
    return kinf_client_request(f->client, &request, NULL, err);
}

/* --- how each is said --- */

static void each_verb_is_said_as_the_server_understands_it(void **state)
{
    static const int64_t no_grace;
    struct fixture *f = *state;
    const struct kinf_type *pods = f->pods, *nodes = f->nodes, *deployments = f->scalable;
    const struct {
        struct kinf_request request;
        const char *expected;
    } rows[] = {
        { { .type = pods, .name_space = "n", .name = "a" }, "GET /api/v1/namespaces/n/pods/a - -" },
        { { .type = nodes, .name = "system:node" }, "GET /api/v1/nodes/system%3Anode - -" },
        { { .type = deployments, .name_space = "n", .name = "d", .subresource = "scale" },
          "GET /apis/apps/v1/namespaces/n/deployments/d/scale - -" },
        { { .verb = KINF_VERB_LIST,
            .type = pods,
            .label_selector = "a in (b, c)",
            .field_selector = "spec.nodeName=x",
            .limit = 500,
            .continue_token = "e=",
            .resource_version = "7",
            .resource_version_match = "NotOlderThan" },
          "GET /api/v1/pods?labelSelector=a%20in%20%28b%2C%20c%29&fieldSelector=spec.nodeName%3Dx"
          "&limit=500&continue=e%3D&resourceVersion=7&resourceVersionMatch=NotOlderThan - -" },
        { { .verb = KINF_VERB_CREATE,
            .type = pods,
            .name_space = "n",
            .body = KINF_STR("{}"),
            .dry_run = true,
            .field_manager = "me",
            .field_validation = "Strict" },
          "POST /api/v1/namespaces/n/pods?fieldManager=me&fieldValidation=Strict&dryRun=All "
          "application/json {}" },
        { { .verb = KINF_VERB_CREATE,
            .type = pods,
            .name_space = "n",
            .name = "a",
            .subresource = "eviction",
            .body = KINF_STR("{}") },
          "POST /api/v1/namespaces/n/pods/a/eviction application/json {}" },
        { { .verb = KINF_VERB_UPDATE,
            .type = pods,
            .name_space = "n",
            .name = "a",
            .subresource = "status",
            .body = KINF_STR("{\"a\":1}") },
          "PUT /api/v1/namespaces/n/pods/a/status application/json {\"a\":1}" },
        { { .verb = KINF_VERB_JSON_PATCH,
            .type = nodes,
            .name = "a",
            .body = KINF_STR("[]"),
            .force = true },
          "PATCH /api/v1/nodes/a application/json-patch+json []" },
        { { .verb = KINF_VERB_MERGE_PATCH, .type = nodes, .name = "a", .body = KINF_STR("{}") },
          "PATCH /api/v1/nodes/a application/merge-patch+json {}" },
        { { .verb = KINF_VERB_STRATEGIC_PATCH, .type = nodes, .name = "a", .body = KINF_STR("{}") },
          "PATCH /api/v1/nodes/a application/strategic-merge-patch+json {}" },
        { { .verb = KINF_VERB_APPLY,
            .type = nodes,
            .name = "a",
            .body = KINF_STR("{}"),
            .field_manager = "me & you",
            .force = true },
          "PATCH /api/v1/nodes/a?fieldManager=me%20%26%20you&force=true "
          "application/apply-patch+yaml {}" },
        { { .verb = KINF_VERB_DELETE, .type = nodes, .name = "a" },
          "DELETE /api/v1/nodes/a application/json "
          "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\"}" },
        { { .verb = KINF_VERB_DELETE,
            .type = nodes,
            .name = "a",
            .dry_run = true,
            .if_uid = "u\"1",
            .if_resource_version = "7",
            .propagation = KINF_PROPAGATION_FOREGROUND,
            .grace_period_s = &no_grace },
          "DELETE /api/v1/nodes/a application/json {\"kind\":\"DeleteOptions\",\"apiVersion\":"
          "\"v1\",\"dryRun\":[\"All\"],\"preconditions\":{\"uid\":\"u\\\"1\",\"resourceVersion\":"
          "\"7\"},\"propagationPolicy\":\"Foreground\",\"gracePeriodSeconds\":0}" },
        { { .verb = KINF_VERB_DELETE_COLLECTION,
            .type = pods,
            .name_space = "n",
            .label_selector = "a=b",
            .propagation = KINF_PROPAGATION_ORPHAN },
          "DELETE /api/v1/namespaces/n/pods?labelSelector=a%3Db application/json {\"kind\":"
          "\"DeleteOptions\",\"apiVersion\":\"v1\",\"propagationPolicy\":\"Orphan\"}" },
    };
    struct test_reply replies[KINF__ARRAY_LEN(rows)] = { { 0 } };
    char expected[8192] = "";

    start(f, replies, KINF__ARRAY_LEN(rows));
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        assert_int_equal(request_of(f, rows[i].request, NULL), 0);
        strcat(strcat(expected, rows[i].expected), "\n");
    }
    expect_requests(f, expected);
}

static void what_cannot_be_meant_is_refused_before_it_is_sent(void **state)
{
    static const int64_t grace_s = 1;
    struct fixture *f = *state;
    const struct kinf_type *pods = f->pods, *nodes = f->nodes;
    const struct {
        struct kinf_request request;
        const char *words;
    } rows[] = {
        { { .name = "a" }, "a type" },
        { { .type = pods, .name_space = "n" }, "a name" },
        { { .type = pods, .name_space = "n", .name = "" }, "a name is needed" },
        { { .type = pods, .name_space = "n", .name = "a/b" }, "\"a/b\" is no name" },
        { { .type = pods, .name_space = "n", .name = "a%2fb" }, "\"a%2fb\" is no name" },
        { { .type = nodes, .name = "." }, "\".\" is no name" },
        { { .type = nodes, .name = ".." }, "\"..\" is no name" },
        { { .type = pods, .name = "a" }, "a namespace" },
        { { .type = pods, .name_space = "n/m", .name = "a" }, "a namespace" },
        { { .type = nodes, .name_space = "n", .name = "a" }, "no namespaces" },
        { { .type = nodes, .name = "a", .subresource = "status/x" }, "\"status/x\" is no name" },
        { { .type = nodes, .name = "a", .subresource = "" }, "\"\" is no name" },
        { { .type = nodes, .name = "a", .body = KINF_STR("{}") }, "no body" },
        { { .verb = KINF_VERB_LIST, .type = nodes, .name = "a" }, "no name" },
        { { .verb = KINF_VERB_CREATE, .type = nodes }, "a body" },
        { { .verb = KINF_VERB_CREATE, .type = pods, .body = KINF_STR("{}") }, "a namespace" },
        { { .verb = KINF_VERB_UPDATE, .type = nodes, .body = KINF_STR("{}") }, "update: a name" },
        { { .verb = KINF_VERB_APPLY, .type = nodes, .name = "a", .body = KINF_STR("{}") },
          "field manager" },
        { { .verb = KINF_VERB_DELETE_COLLECTION, .type = pods }, "a namespace" },
        { { .verb = (enum kinf_verb)99, .type = nodes }, "no verb" },
        { { .verb = KINF_VERB_UPDATE,
            .type = nodes,
            .name = "a",
            .body = KINF_STR("{}"),
            .if_uid = "u" },
          "preconditions" },
        { { .type = nodes, .name = "a", .grace_period_s = &grace_s }, "preconditions" },
        { { .verb = KINF_VERB_DELETE, .type = nodes, .name = "a", .label_selector = "a=b" },
          "selectors" },
        { { .verb = KINF_VERB_DELETE, .type = nodes, .name = "a", .resource_version = "7" },
          "resourceVersion" },
        { { .verb = KINF_VERB_DELETE,
            .type = nodes,
            .name = "a",
            .propagation = (enum kinf_propagation)99 },
          "propagation" },
    };
    static const char *const targets[] = { "x", "", "/a b", "/a#b", "/a\r\nX: y", "/\xc3\xa4" };

    start(f, NULL, 0);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf_error err = KINF_ERROR_INIT;

        assert_int_equal(request_of(f, rows[i].request, &err), KINF_ERR_INVALID);
        if (strstr(err.message, rows[i].words) == NULL)
            fail_msg("row %zu: %s", i, err.message);
    }
    assert_int_equal(
        kinf_client_request_raw(f->client, "HEAD", "/x", KINF_STR(""), NULL, NULL, NULL),
        KINF_ERR_INVALID);
    for (size_t i = 0; i < KINF__ARRAY_LEN(targets); i++)
        assert_int_equal(
            kinf_client_request_raw(f->client, "GET", targets[i], KINF_STR(""), NULL, NULL, NULL),
            KINF_ERR_INVALID);
    assert_int_equal(
        kinf_client_request_raw(f->client, "POST", "/x", KINF_STR(""), "a\r\nX: y", NULL, NULL),
        KINF_ERR_INVALID);
    expect_requests(f, "");
}

static void raw_requests_go_out_as_they_are(void **state)
{
    static const struct test_reply replies[] = { { .body = "{\"major\":\"1\"}" },
                                                 { .status = "201 Created" } };
    struct fixture *f = *state;
    kinf_auto_response struct kinf_response response = KINF_RESPONSE_INIT;

    start(f, replies, 2);
    assert_int_equal(kinf_client_request_raw(f->client, "GET", "/version",
                                             (struct kinf_str){ NULL, 0 }, NULL, &response, NULL),
                     0);
    assert_int_equal(response.http_status, 200);
    assert_string_equal(response.body, "{\"major\":\"1\"}");
    assert_int_equal(response.len, strlen(response.body));
    kinf_response_release(&response);
    assert_int_equal(kinf_client_request_raw(f->client, "POST", "/a?b=c", KINF_STR("x"),
                                             "text/plain", &response, NULL),
                     0);
    assert_int_equal(response.http_status, 201);
    assert_string_equal(response.body, "");
    expect_requests(f, "GET /version - -\nPOST /a?b=c text/plain x\n");
}

/* --- what is made again --- */

static void only_what_cannot_happen_twice_is_made_again(void **state)
{
    static const struct {
        const char *method;
        struct kinf_error err;
        int64_t wait_ms; /* -1: not */
    } rows[] = {
        { "GET", { KINF_ERR_TOO_MANY_REQUESTS, 429, 0, 3000, "" }, 3000 },
        { "POST", { KINF_ERR_TOO_MANY_REQUESTS, 429, 0, 3000, "" }, 3000 },
        { "POST", { KINF_ERR_TOO_MANY_REQUESTS, 429, 0, 0, "" }, -1 },
        { "PUT", { KINF_ERR_SERVER, 503, 0, 1000, "" }, 1000 },
        { "PUT", { KINF_ERR_SERVER, 500, 0, 0, "" }, -1 },
        { "GET", { KINF_ERR_CONFLICT, 409, 0, 1000, "" }, -1 },
        { "GET", { KINF_ERR_NETWORK, 0, ECONNRESET, 0, "" }, 1000 },
        { "POST", { KINF_ERR_NETWORK, 0, ECONNRESET, 0, "" }, -1 },
        { "DELETE", { KINF_ERR_NETWORK, 0, ECONNRESET, 0, "" }, -1 },
        { "GET", { KINF_ERR_NETWORK, 0, ECONNREFUSED, 0, "" }, -1 },
        { "GET", { KINF_ERR_TIMEOUT, 0, 0, 0, "" }, -1 },
        { "GET", { KINF_ERR_NOT_FOUND, 404, 0, 0, "" }, -1 },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        int64_t wait_ms = -1;

        assert_int_equal(kinf__retry_may(rows[i].method, &rows[i].err, 0, &wait_ms),
                         rows[i].wait_ms >= 0);
        assert_int_equal(wait_ms, rows[i].wait_ms);
        assert_false(kinf__retry_may(rows[i].method, &rows[i].err, KINF__RETRY_MAX, &wait_ms));
    }
}

#define BUSY                                                                                       \
    {                                                                                              \
        .status = "429 Too Many Requests", .headers = "Retry-After: 1\r\n", .body = "busy"         \
    }

static void a_server_that_is_busy_is_asked_again_when_it_says(void **state)
{
    static const struct test_reply replies[] = { BUSY, { .body = "{}" } };
    struct fixture *f = *state;
    struct kinf_request request = { .size = sizeof request,
                                    .verb = KINF_VERB_CREATE,
                                    .type = f->nodes,
                                    .body = KINF_STR("{}"),
                                    .timeout_ms = 60000 };
    kinf_auto_response struct kinf_response response = KINF_RESPONSE_INIT;

    start(f, replies, 2);
    assert_int_equal(kinf_client_request(f->client, &request, &response, NULL), 0);
    assert_string_equal(response.body, "{}");
    expect_requests(f, "POST /api/v1/nodes application/json {}\n"
                       "POST /api/v1/nodes application/json {}\n");
}

static void a_wait_that_is_longer_than_the_time_is_not_begun(void **state)
{
    static const struct test_reply replies[] = { BUSY };
    struct fixture *f = *state;
    struct kinf_request request = get_pod(f);
    struct kinf_error err = KINF_ERROR_INIT;

    start(f, replies, 1);
    request.timeout_ms = 900;
    assert_int_equal(kinf_client_request(f->client, &request, NULL, &err),
                     KINF_ERR_TOO_MANY_REQUESTS);
    assert_int_equal(err.http_status, 429);
    assert_true(kinf_error_is_too_many_requests(&err));
}

static void what_broke_off_is_read_again_and_not_changed_again(void **state)
{
    static const struct test_reply replies[] = {
        { .body = "{", .end = TEST_END_CUT },
        { .body = "{}" },
        { .body = "{", .end = TEST_END_CUT },
    };
    struct fixture *f = *state;
    struct kinf_request request = get_pod(f);
    kinf_auto_response struct kinf_response response = KINF_RESPONSE_INIT;

    start(f, replies, 3);
    request.timeout_ms = 60000;
    assert_int_equal(kinf_client_request(f->client, &request, &response, NULL), 0);
    assert_string_equal(response.body, "{}");
    request.verb = KINF_VERB_DELETE;
    assert_int_equal(kinf_client_request(f->client, &request, NULL, NULL), KINF_ERR_NETWORK);
    expect_requests(f, "GET /api/v1/namespaces/n/pods/a - -\nGET /api/v1/namespaces/n/pods/a - -\n"
                       "DELETE /api/v1/namespaces/n/pods/a application/json "
                       "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\"}\n");
}

static void what_ended_the_tries_is_told_with_what_began_them(void **state)
{
    static const struct test_reply replies[] = { BUSY,
                                                 { .status = "403 Forbidden", .body = "no" } };
    struct fixture *f = *state;
    struct kinf_request request = get_pod(f);
    struct kinf_error err = KINF_ERROR_INIT;

    start(f, replies, 2);
    request.timeout_ms = 60000;
    assert_int_equal(kinf_client_request(f->client, &request, NULL, &err), KINF_ERR_FORBIDDEN);
    assert_int_equal(err.http_status, 403);
    assert_non_null(strstr(err.message, "403"));
    assert_non_null(strstr(err.message, "429: busy"));
}

/* --- ends --- */

static void an_answer_above_the_limit_is_refused(void **state)
{
    static const struct test_reply replies[] = { { .body = "{\"a\":1}" }, { .body = "{\"a\":1}" } };
    struct fixture *f = *state;
    struct kinf_request request = get_pod(f);
    kinf_auto_response struct kinf_response response = KINF_RESPONSE_INIT;

    start(f, replies, 2);
    request.max_response_bytes = 6;
    assert_int_equal(kinf_client_request(f->client, &request, &response, NULL), KINF_ERR_LIMIT);
    assert_null(response.body);
    request.max_response_bytes = 7;
    assert_int_equal(kinf_client_request(f->client, &request, &response, NULL), 0);
}

static void a_call_ends_with_its_time(void **state)
{
    struct fixture *f = *state;
    struct kinf_request request = get_pod(f);
    struct kinf_error err = KINF_ERROR_INIT;

    start(f, NULL, 0);
    request.timeout_ms = 30;
    assert_int_equal(kinf_client_request(f->client, &request, NULL, &err), KINF_ERR_TIMEOUT);
    assert_true(kinf_error_is_timeout(&err));
}

static void *interrupt(void *ctx)
{
    struct fixture *f = ctx;

    test_server_wait(f->server, 1);
    kinf_client_interrupt(f->client);
    return NULL;
}

/* While it waits for the answer. */
static void expect_stopped_by(struct fixture *f, void *(*other)(void *))
{
    struct kinf_request request = get_pod(f);
    pthread_t thread;

    start(f, NULL, 0);
    request.timeout_ms = 60000;
    assert_int_equal(pthread_create(&thread, NULL, other, f), 0);
    assert_int_equal(kinf_client_request(f->client, &request, NULL, NULL), KINF_ERR_STOPPED);
    pthread_join(thread, NULL);
}

static void a_call_can_be_interrupted(void **state)
{
    expect_stopped_by(*state, interrupt);
}

static void *free_and_interrupt(void *ctx)
{
    struct fixture *f = ctx;

    test_server_wait(f->server, 1);
    kinf_client_free(f->client);
    kinf_client_interrupt(f->client);
    return NULL;
}

static void a_client_is_not_freed_before_its_calls(void **state)
{
    struct fixture *f = *state;

    expect_stopped_by(f, free_and_interrupt);
    assert_int_equal(strncmp(kinf_client_server(f->client), "http://127.0.0.1:", 17), 0);
}

static void what_is_not_said_of_a_client_has_its_default(void **state)
{
    struct fixture *f = *state;

    start_limited(f, NULL, 0, 0, 0);
    assert_int_equal(f->client->rate_limit.interval_us, 1000000 / 50);
    assert_int_equal(f->client->rate_limit.burst, 100);
    assert_int_equal(f->client->connect_timeout_ms, 30000);
    assert_int_equal(f->client->request_timeout_ms, 30000);
    assert_string_equal(f->client->user_agent, "kinformer/" KINF_VERSION_STRING);
}

static void *ask_a_lot(void *ctx)
{
    struct fixture *f = ctx;

    for (int i = 0; i < 5; i++)
        assert_int_equal(kinf_client_request_raw(f->client, "GET", "/x",
                                                 (struct kinf_str){ NULL, 0 }, NULL, NULL, NULL),
                         0);
    return NULL;
}

static void threads_share_a_client(void **state)
{
    static const struct test_reply replies[20];
    struct fixture *f = *state;
    pthread_t threads[4];
    char *requests;
    size_t n_lines = 0;

    start(f, replies, KINF__ARRAY_LEN(replies));
    for (size_t i = 0; i < KINF__ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_a_lot, f), 0);
    for (size_t i = 0; i < KINF__ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    requests = test_server_requests(f->server);
    for (const char *at = requests; (at = strchr(at, '\n')) != NULL; at++)
        n_lines++;
    free(requests);
    assert_int_equal(n_lines, 20);
}

static void every_lack_of_memory_is_an_error(void **state)
{
    struct test_reply replies[64] = { { 0 } };
    struct fixture *f = *state;
    struct kinf_request request = get_pod(f);
    bool is_over = false;

    for (size_t i = 0; i < KINF__ARRAY_LEN(replies); i++)
        replies[i].body = "{}";
    start(f, replies, KINF__ARRAY_LEN(replies));
    request.timeout_ms = 60000;
    for (size_t n = 1; !is_over; n++) {
        kinf_auto_response struct kinf_response response = KINF_RESPONSE_INIT;
        int failed;

        assert_in_range(n, 1, KINF__ARRAY_LEN(replies));
        test_fail_allocation(n);
        failed = kinf_client_request(f->client, &request, &response, NULL);
        is_over = !test_allocation_failed();
        assert_int_equal(failed, is_over ? 0 : KINF_ERR_NO_MEMORY);
    }
}

/* --- errors --- */

static void a_conflict_without_a_reason_is_a_taken_name_for_what_is_made(void **state)
{
#define SAYS(text)                                                                                 \
    {                                                                                              \
        .status = "409 Conflict", .body = text                                                     \
    }
    static const struct test_reply replies[] = {
        SAYS("taken"),
        SAYS("{\"status\":\"Failure\",\"code\":409}"),
        SAYS("{\"status\":\"Failure\",\"reason\":\"Conflict\",\"code\":409}"),
        SAYS("stale"),
    };
    struct fixture *f = *state;
    struct kinf_request request = {
        .size = sizeof request, .verb = KINF_VERB_CREATE, .type = f->nodes, .body = KINF_STR("{}")
    };
    struct kinf_error err = KINF_ERROR_INIT;

    start(f, replies, KINF__ARRAY_LEN(replies));
    assert_int_equal(kinf_client_request(f->client, &request, NULL, &err), KINF_ERR_EXISTS);
    assert_true(kinf_error_is_already_exists(&err));
    assert_int_equal(kinf_client_request(f->client, &request, NULL, NULL), KINF_ERR_EXISTS);
    assert_int_equal(kinf_client_request(f->client, &request, NULL, NULL), KINF_ERR_CONFLICT);
    request.verb = KINF_VERB_UPDATE;
    request.name = "a";
    assert_int_equal(kinf_client_request(f->client, &request, NULL, NULL), KINF_ERR_CONFLICT);
#undef SAYS
}

static void refusals_are_told_apart(void **state)
{
    static const struct {
        const char *status;
        int http_status;
        bool (*is)(const struct kinf_error *err);
    } rows[] = {
        { "{\"status\":\"Failure\",\"reason\":\"AlreadyExists\",\"code\":409}", 409,
          kinf_error_is_already_exists },
        { "{\"status\":\"Failure\",\"reason\":\"Conflict\",\"code\":409}", 409,
          kinf_error_is_conflict },
        { "{\"status\":\"Failure\",\"reason\":\"NotFound\",\"code\":404}", 404,
          kinf_error_is_not_found },
        { "{\"status\":\"Failure\",\"reason\":\"Invalid\",\"code\":422}", 422,
          kinf_error_is_invalid },
        { "{\"status\":\"Failure\",\"reason\":\"Unauthorized\",\"code\":401}", 401,
          kinf_error_is_unauthorized },
        { "{\"status\":\"Failure\",\"reason\":\"Forbidden\",\"code\":403}", 403,
          kinf_error_is_forbidden },
        { "{\"status\":\"Failure\",\"reason\":\"Expired\",\"code\":410}", 410,
          kinf_error_is_expired },
        { "{\"status\":\"Failure\",\"reason\":\"TooManyRequests\",\"code\":429}", 429,
          kinf_error_is_too_many_requests },
        { "{\"status\":\"Failure\",\"reason\":\"Timeout\",\"code\":504}", 504,
          kinf_error_is_timeout },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf_error err = KINF_ERROR_INIT;

        assert_true(
            kinf__status_to_error(kinf_str_from(rows[i].status), rows[i].http_status, &err) < 0);
        for (size_t k = 0; k < KINF__ARRAY_LEN(rows); k++)
            assert_int_equal(rows[k].is(&err), i == k);
    }
}

/* --- how often --- */

static void requests_keep_to_the_limit_of_their_client(void **state)
{
    static const struct test_reply replies[] = { { .body = "{}" } };
    struct fixture *f = *state;
    struct kinf_request request = get_pod(f);
    struct kinf_error err = KINF_ERROR_INIT;

    start_limited(f, replies, 1, 0.001, 1);
    assert_int_equal(kinf_client_request(f->client, &request, NULL, NULL), 0);
    assert_int_equal(kinf_client_request(f->client, &request, NULL, &err), KINF_ERR_TIMEOUT);
    assert_non_null(strstr(err.message, "rate limit"));
    expect_requests(f, "GET /api/v1/namespaces/n/pods/a - -\n");
}

/* Nobody waits for a turn that nobody uses. */
static void who_is_stopped_gives_its_turn_back(void **state)
{
    static const struct test_reply replies[] = { { .body = "{}" } };
    struct fixture *f = *state;
    struct kinf_request request = get_pod(f);
    struct kinf__http *http;
    struct kinf__waker stop;
    int64_t next_us;

    start_limited(f, replies, 1, 0.1, 1);
    assert_int_equal(kinf_client_request(f->client, &request, NULL, NULL), 0);
    next_us = f->client->rate_limit.next_us;
    assert_int_equal(kinf__waker_init(&stop, NULL), 0);
    assert_int_equal(kinf__http_new(f->client, &stop, &http, NULL), 0);
    kinf__waker_set(&stop);
    assert_int_equal(kinf__request_over(f->client, http, &stop, &request, NULL, NULL),
                     KINF_ERR_STOPPED);
    assert_true(f->client->rate_limit.next_us == next_us);
    kinf__http_free(http);
    kinf__waker_release(&stop);
}

static void *halt(void *ctx)
{
    const struct timespec pause = { 0, 50000000 };

    (void)ctx;
    nanosleep(&pause, NULL);
    kinf__clock_advance(60000);
    return NULL;
}

/* A process that was halted while it waited for its turn: others may lead by now. */
static void what_comes_too_late_for_its_time_is_not_sent(void **state)
{
    static const struct test_reply replies[] = { { .body = "{}" } };
    struct fixture *f = *state;
    struct kinf_request request = get_pod(f);
    struct kinf_error err = KINF_ERROR_INIT;
    pthread_t thread;

    start_limited(f, replies, 1, 0.5, 1);
    assert_int_equal(kinf_client_request(f->client, &request, NULL, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, halt, NULL), 0);
    request.timeout_ms = 10000;
    assert_int_equal(kinf_client_request(f->client, &request, NULL, &err), KINF_ERR_TIMEOUT);
    pthread_join(thread, NULL);
    expect_requests(f, "GET /api/v1/namespaces/n/pods/a - -\n");
}

int main(void)
{
#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_SERVER(each_verb_is_said_as_the_server_understands_it),
        WITH_SERVER(what_cannot_be_meant_is_refused_before_it_is_sent),
        WITH_SERVER(raw_requests_go_out_as_they_are),
        cmocka_unit_test(only_what_cannot_happen_twice_is_made_again),
        WITH_SERVER(a_server_that_is_busy_is_asked_again_when_it_says),
        WITH_SERVER(a_wait_that_is_longer_than_the_time_is_not_begun),
        WITH_SERVER(what_broke_off_is_read_again_and_not_changed_again),
        WITH_SERVER(what_ended_the_tries_is_told_with_what_began_them),
        WITH_SERVER(an_answer_above_the_limit_is_refused),
        WITH_SERVER(a_call_ends_with_its_time),
        WITH_SERVER(a_call_can_be_interrupted),
        WITH_SERVER(a_client_is_not_freed_before_its_calls),
        WITH_SERVER(what_is_not_said_of_a_client_has_its_default),
        WITH_SERVER(threads_share_a_client),
        WITH_SERVER(every_lack_of_memory_is_an_error),
        WITH_SERVER(a_conflict_without_a_reason_is_a_taken_name_for_what_is_made),
        cmocka_unit_test(refusals_are_told_apart),
        WITH_SERVER(requests_keep_to_the_limit_of_their_client),
        WITH_SERVER(who_is_stopped_gives_its_turn_back),
        WITH_SERVER(what_comes_too_late_for_its_time_is_not_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
