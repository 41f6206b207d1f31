/*
 * Requests as clients send them, through an endpoint and a server with its sources: what comes back
 * byte by byte, of what is cached, of what is passed on, and of what is neither.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/wait.h>

#include "apiserver/store.h"
#include "base/compiler.h"
#include "serve/mhd_response.h"
#include "unit/serve_fixture.h"
#include "unit/swept_fake.h"
#include "unit/test.h"

/* --- answers --- */

static void answers_say_what_they_are(void **state)
{
    static const struct serve_expected rows[] = {
        { "GET " OBJECTS "/a", "", 200,
          "Content-Type: application/json\n"
          "Cache-Control: no-cache, private\n"
          "X-Content-Type-Options: nosniff\n"
          "Kinformer-Staleness-Seconds: ",
          "Vary" },
        { "GET " OBJECTS "/a", "", 200,
          "\"name\":\"a\"\n"
          "Content-Length: ",
          "Warning" },
        { "GET " OBJECTS, "", 200,
          "\"name\":\"a\"\n"
          "\"name\":\"b\"",
          "Retry-After" },
        { "GET " OBJECTS "/none", "", 404,
          "configmaps \\\"none\\\" not found\n"
          "\"reason\":\"NotFound\"\n"
          "\"details\":{\"name\":\"none\",\"kind\":\"configmaps\"}",
          NULL },
        { "GET " OBJECTS "/a", TABLE, 200,
          "columnDefinitions\n"
          "\"rows\"",
          NULL },
        { "GET " OBJECTS "?includeObject=Some", TABLE, 400, "Unable to convert to Table", NULL },
        { "GET " OBJECTS "/a?includeObject=Some", TABLE, 400, "must be 'Metadata'", NULL },
        { "GET /api/v1/configmaps?limit=1", "", 200, "\"remainingItemCount\":1", "\"name\":\"b\"" },
        { "GET /api/v1/namespaces//configmaps/a", "", 400, "Namespace parameter required.", NULL },
        { "GET " OBJECTS "?resourceVersion=1&resourceVersionMatch=Exact", "", 410,
          "\"reason\":\"Expired\"", NULL },
        { "GET " OBJECTS "?continue=nonsense", "", 400, "continue", NULL },
        { "GET " OBJECTS "?resourceVersionMatch=Exact", "", 422, "resourceVersionMatch", NULL },
        { "GET " OBJECTS "?labelSelector=%21%21", "", 400, "\"reason\":\"BadRequest\"", NULL },
        { "GET " OBJECTS, "Accept: text/csv\r\n", 406, "NotAcceptable", NULL },
        { "GET /api/v1/nothings", "", 404,
          "Content-Type: application/json\n"
          "the server could not find the requested resource",
          NULL },
        { "GET /apis/nobody.example/v1/things", "", 404,
          "404 page not found\n"
          "text/plain",
          NULL },
        { "GET /nothing", "", 401, "token", NULL },
        { "OPTIONS " OBJECTS, "", 405, "MethodNotAllowed", NULL },
        { "GET /version", "", 200, "gitVersion", NULL },
        { "GET /api", "", 200, "APIVersions", "upstream" },
        { "GET /apis", "", 200, "\"groups\":[]", "Vary" },
        { "GET /apis",
          "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\r\n", 200,
          "Vary: Accept\n"
          "ETag: \n"
          "APIGroupDiscoveryList\n"
          "Cache-Control: public",
          NULL },
        { "GET /debug/state", "", 200,
          "\"listExpected\"\n"
          "\"listObjects\"",
          NULL },
        { "GET /livez", "", 200, "Content-Type: text/plain", NULL },
        { "GET /readyz", "", 200, "Content-Type: text/plain", NULL },
    };
    struct serve_fixture f;

    (void)state;
    serve_setup_whole(&f);
    serve_expect_all(&f, rows, KINF__ARRAY_LEN(rows));
    serve_teardown(&f);
}

static void what_is_not_here_is_passed_on_for_who_has_a_token(void **state)
{
    static const struct serve_expected rows[] = {
        { "GET /api/v1/secrets", "", 401, "needs a bearer token of yours", "upstream" },
        { "GET /api/v1/secrets", TOKEN, 200,
          "Kinformer-Source: upstream\n"
          "SecretList",
          NULL },
        { "GET /api", TOKEN, 200, "Kinformer-Source: upstream", NULL },
        { "GET " OBJECTS "/a", TOKEN, 200, "\"name\":\"a\"", "upstream" },
        { "GET " OBJECTS "/a", TOKEN "Impersonate-User: u\r\n", 403, "upstream", NULL },
        { "GET " OBJECTS "/a", "Impersonate-User: u\r\n", 401, "Unauthorized", NULL },
        { "GET " OBJECTS "/a", TOKEN "Authorization: Basic YTpi\r\n", 200, "\"name\":\"a\"",
          "upstream" },
        { "DELETE " OBJECTS "/a", TOKEN "Authorization: Basic YTpi\r\n", 400,
          "can be read in more than one way", NULL },
        { "DELETE " OBJECTS "/none", TOKEN, 404,
          "upstream\n"
          "NotFound",
          NULL },
        { "DELETE " OBJECTS "/a", "", 401, "Unauthorized", NULL },
        { "DELETE " OBJECTS "/a", TOKEN, 200, "upstream", NULL },
        { "GET " OBJECTS "/a", TOKEN, 404, "NotFound", NULL },
        { "GET " OBJECTS, "Upgrade: websocket\r\nConnection: Upgrade\r\n", 401, "token", NULL },
    };
    struct serve_fixture f;

    (void)state;
    serve_setup_whole(&f);
    serve_expect_all(&f, rows, KINF__ARRAY_LEN(rows));
    serve_teardown(&f);
}

static void without_an_api_server_behind_it_the_cache_is_all_there_is(void **state)
{
    static const struct serve_expected rows[] = {
        { "GET " OBJECTS "/a", TOKEN, 200, "\"name\":\"a\"", NULL },
        { "GET /api/v1/secrets", TOKEN, 403,
          "secrets is forbidden: this cache has no such resource", NULL },
        { "GET /api/v1/namespaces/default/pods/p/status", TOKEN, 403,
          "pods \\\"p\\\" is forbidden: the subresource \\\"status\\\" is not served from a cache",
          NULL },
        { "DELETE " OBJECTS "/a", TOKEN, 405, "MethodNotAllowed", NULL },
        { "GET /nothing", TOKEN, 404, "404 page not found", NULL },
        { "GET " OBJECTS, TOKEN "Impersonate-User: u\r\n", 403, "impersonation is not answered",
          NULL },
        { "GET " OBJECTS, TOKEN "Upgrade: websocket\r\nConnection: Upgrade\r\n", 403,
          "upgraded connections", NULL },
    };
    struct serve_fixture f;

    (void)state;
    serve_setup_server(&f, false);
    serve_add_whole(&f);
    serve_expect_all(&f, rows, KINF__ARRAY_LEN(rows));
    serve_teardown(&f);
}

/* The request for what comes behind the page that this one asks for, or that a refusal offers. */
static void ask_for_page(const struct serve_fixture *f, const char *line, int status,
                         char ret_line[1024])
{
    struct served_answer answer = served_fake_answer(serve_send_request(f, line, ""));
    const char *token;

    assert_int_equal(answer.status, status);
    token = strstr(answer.body, "\"continue\":\"");
    assert_non_null(token);
    token += strlen("\"continue\":\"");
    snprintf(ret_line, 1024, "GET " OBJECTS "?limit=1&continue=%.*s", (int)strcspn(token, "\""),
             token);
    served_answer_release(&answer);
}

static void a_page_has_the_version_of_the_first_one(void **state)
{
    struct serve_fixture f;
    char line[1024];

    (void)state;
    serve_setup_whole(&f);
    ask_for_page(&f, "GET " OBJECTS "?limit=1", 200, line);
    swept_fake_put(f.fake, "aa", "3");
    swept_fake_settle(f.fake);
    serve_expect(&f, line, "", 200, "\"name\":\"b\"", "\"name\":\"aa\"");
    strcat(line, "&resourceVersion=7");
    serve_expect(&f, line, "", 400, "not allowed when using continue", NULL);
    serve_teardown(&f);
}

static struct kinf__backup *back_up(const struct serve_fixture *f)
{
    struct kinf__store *store = kinf__sim_store(f->fake->sim);
    struct kinf__backup *backup;

    kinf__store_lock(store);
    assert_int_equal(kinf__store_back_up(store, &backup), 0);
    kinf__store_unlock(store);
    return backup;
}

static void restore(const struct serve_fixture *f, struct kinf__backup *backup)
{
    struct kinf__store *store = kinf__sim_store(f->fake->sim);

    kinf__store_lock(store);
    assert_int_equal(kinf__store_restore(store, backup), 0);
    kinf__store_unlock(store);
    kinf__backup_free(backup);
    /* Who has more than there is has settled. */
    while (kinf__watchcache_version(kinf__source_cache(f->served.sources[0].source)) !=
           kinf__store_version(store))
        kinf__fake_nap();
}

/* Restored from a backup, the API server gives the same version to another state, of which somebody
 * reads pages, too. */
static void a_page_is_not_of_another_state_with_the_same_version(void **state)
{
    char old_line[1024], line[1024], text[256];
    struct kinf__backup *backup;
    struct serve_fixture f;
    uint64_t version;

    (void)state;
    serve_setup_whole(&f);
    backup = back_up(&f);
    swept_fake_put(f.fake, "c", "undone");
    swept_fake_settle(f.fake);
    version = kinf__store_version(kinf__sim_store(f.fake->sim));
    ask_for_page(&f, "GET " OBJECTS "?limit=1", 200, old_line);
    restore(&f, backup);
    swept_fake_put(f.fake, "d", "4");
    swept_fake_settle(f.fake);
    serve_expect(&f, "GET " OBJECTS, "", 200, "\"name\":\"d\"", "\"name\":\"c\"");
    assert_int_equal(kinf__store_version(kinf__sim_store(f.fake->sim)), version);
    ask_for_page(&f, "GET " OBJECTS "?limit=1", 200, line);
    serve_expect(&f, old_line, "", 410, "\"reason\":\"Expired\"", "\"items\"");
    /* To whom that is old, too. */
    swept_fake_put(f.fake, "e", "5");
    swept_fake_settle(f.fake);
    serve_expect(&f, line, "", 200, "\"name\":\"b\"\n\"remainingItemCount\":1", NULL);
    /* What the number says alone is not enough, either. */
    snprintf(text, sizeof text, "GET " OBJECTS "?resourceVersion=%llu&resourceVersionMatch=Exact",
             (unsigned long long)version);
    serve_expect(&f, text, "", 410, "too old", NULL);
    serve_teardown(&f);
}

/* As kube-apiserver, which leaves it to the client whether to take two states for one. */
static void who_comes_too_late_for_a_page_may_go_on_in_another_state(void **state)
{
    char old_line[1024], line[1024];
    struct serve_fixture f;

    (void)state;
    serve_setup_whole(&f);
    ask_for_page(&f, "GET " OBJECTS "?limit=1", 200, old_line);
    swept_fake_put(f.fake, "aa", "3");
    swept_fake_put(f.fake, "c", "4");
    swept_fake_settle(f.fake);
    kinf__watchcache_tick(kinf__source_cache(f.served.sources[0].source), INT64_MAX);
    ask_for_page(&f, old_line, 410, line);
    serve_expect(&f, old_line, "", 410, "or use the continue token in this response", NULL);
    serve_expect(&f, line, "", 200, "\"name\":\"aa\"\n\"remainingItemCount\":2", NULL);
    /* The next is of the same state again. */
    ask_for_page(&f, line, 200, line);
    swept_fake_put(f.fake, "ab", "5");
    swept_fake_settle(f.fake);
    serve_expect(&f, line, "", 200, "\"name\":\"b\"\n\"remainingItemCount\":1", "\"name\":\"ab\"");
    serve_teardown(&f);
}

static void heads_that_are_no_requests_are_refused(void **state)
{
    struct serve_fixture f;
    char headers[65 * 16] = "";

    (void)state;
    serve_setup(&f);
    for (int i = 0; i < 62; i++)
        strcat(headers, "X: y\r\n");
    serve_expect(&f, "GET /livez", headers, 200, NULL, NULL);
    strcat(headers, "X: y\r\n");
    serve_expect(&f, "GET /livez", headers, 431, "Too Large", NULL);
    serve_expect(&f, "GET /livez", "Host: localhost\r\n", 400, NULL, NULL);
    serve_teardown(&f);
}

static void before_the_first_list_nothing_is_answered_from_it(void **state)
{
    struct kinf_informer_options informer = KINF_INFORMER_OPTIONS_INIT;
    struct kinf__source_options source = { .name_space = NULL };
    struct kinf_error err = KINF_ERROR_INIT;
    struct serve_fixture f;

    (void)state;
    serve_setup(&f);
    assert_int_equal(kinf_fake_fault(f.fake, "list configmaps 503", &err), 0);
    assert_int_equal(kinf_fake_fault(f.fake, "watch configmaps 503", &err), 0);
    assert_int_equal(served_fake_add(&f.served, &informer, &source, &err), 0);
    serve_expect(&f, "GET " OBJECTS "/a", "", 429,
                 "Retry-After: 1\n"
                 "TooManyRequests\n"
                 "configmaps: ",
                 NULL);
    serve_expect(&f, "GET /readyz?verbose", "", 500, "configmaps", NULL);
    kinf_fake_clear_faults(f.fake);
    serve_teardown(&f);
}

/* --- sources --- */

/* By a server with this one. */
static void expect_of(struct kinf_informer_options *informer, struct kinf__source_options *source,
                      const struct serve_expected *rows, size_t n_rows)
{
    struct serve_fixture f;

    serve_setup(&f);
    serve_add(&f, informer, source);
    serve_expect_all(&f, rows, n_rows);
    serve_teardown(&f);
}

static void each_source_answers_for_its_namespace(void **state)
{
    static const char *const names[] = { "other", "default" };
    static const struct serve_expected rows[] = {
        { "GET " OBJECTS "/a", "", 200, "\"name\":\"a\"", NULL },
        { "GET /api/v1/namespaces/other/configmaps/a", "", 404, "NotFound", NULL },
        { "GET " OBJECTS, "", 200, "\"name\":\"b\"", NULL },
        { "GET /api/v1/configmaps", "", 401, "token", NULL },
        { "GET /api/v1/configmaps", TOKEN, 200,
          "upstream\n"
          "\"name\":\"b\"",
          NULL },
    };
    struct serve_fixture f;

    (void)state;
    serve_setup(&f);
    for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++) {
        struct kinf_informer_options informer = KINF_INFORMER_OPTIONS_INIT;
        struct kinf__source_options source = { .name_space = names[i] };

        informer.name_space = names[i];
        serve_add(&f, &informer, &source);
    }
    serve_expect_all(&f, rows, KINF__ARRAY_LEN(rows));
    serve_teardown(&f);
}

/* Whichever is first. */
static void an_object_is_looked_for_where_all_are(void **state)
{
    struct kinf_informer_options informer = KINF_INFORMER_OPTIONS_INIT;
    struct kinf__source_options source = { .label_selector = "sync=false" };
    struct serve_fixture f;

    (void)state;
    informer.label_selector = source.label_selector;
    serve_setup_server(&f, false);
    serve_add(&f, &informer, &source);
    serve_add_whole(&f);
    serve_expect(&f, "GET " OBJECTS "/b", "", 200, "\"name\":\"b\"", NULL);
    serve_teardown(&f);
}

static void what_is_wider_than_the_cache_says_so_if_it_is_answered(void **state)
{
    static const struct serve_expected rows[] = {
        { "GET " OBJECTS, "", 200, "Warning: 299 - \"kinformer: only configmaps", NULL },
        { "GET " OBJECTS "?labelSelector=sync%3Dtrue", "", 200,
          "come without the fields that this cache leaves out", NULL },
        { "GET " OBJECTS "/none", "", 404, "NotFound", NULL },
        { "PUT " OBJECTS "/a", TOKEN "Content-Length: 0\r\n", 405, "use PATCH", NULL },
    };
    struct kinf_informer_options informer = KINF_INFORMER_OPTIONS_INIT;
    struct kinf__source_options source = { .label_selector = "sync=true",
                                           .assume_scope = true,
                                           .is_pruned = true };

    (void)state;
    informer.label_selector = "sync=true";
    expect_of(&informer, &source, rows, KINF__ARRAY_LEN(rows));
}

static void what_is_narrower_is_asked_for_upstream(void **state)
{
    static const struct serve_expected rows[] = {
        { "GET " OBJECTS, "", 401, "token", NULL },
        { "GET " OBJECTS "/a", "", 200, "\"name\":\"a\"", NULL },
        { "GET " OBJECTS "/none", "", 401, "token", NULL },
        { "GET " OBJECTS "/none", TOKEN, 404, "upstream", NULL },
    };
    struct kinf_informer_options informer = KINF_INFORMER_OPTIONS_INIT;
    struct kinf__source_options source = { .label_selector = "sync=true" };

    (void)state;
    informer.label_selector = "sync=true";
    expect_of(&informer, &source, rows, KINF__ARRAY_LEN(rows));
}

static void latest_is_answered_by_the_api_server(void **state)
{
    static const struct serve_expected rows[] = {
        { "GET " OBJECTS "/a", "", 401, "token", NULL },
        { "GET " OBJECTS "/a", TOKEN, 200, "upstream", NULL },
        { "GET " OBJECTS "/a?resourceVersion=0", "", 200, "\"name\":\"a\"", "upstream" },
    };
    struct kinf_informer_options informer = KINF_INFORMER_OPTIONS_INIT;
    struct kinf__source_options source = { .consistency = KINF__CONSISTENCY_LATEST };

    (void)state;
    expect_of(&informer, &source, rows, KINF__ARRAY_LEN(rows));
}

/* The configuration does not allow it. */
static void latest_is_refused_where_nobody_is_behind(void **state)
{
    static const struct serve_expected rows[] = {
        { "GET " OBJECTS "/a", TOKEN, 403,
          "configmaps without a resourceVersion are answered by the API server alone\n"
          "\"reason\":\"Forbidden\"",
          NULL },
        { "GET " OBJECTS "/a?resourceVersion=0", "", 200, "\"name\":\"a\"", NULL },
    };
    struct kinf_informer_options informer = KINF_INFORMER_OPTIONS_INIT;
    struct kinf__source_options source = { .consistency = KINF__CONSISTENCY_LATEST };
    struct serve_fixture f;

    (void)state;
    serve_setup_server(&f, false);
    serve_add(&f, &informer, &source);
    serve_expect_all(&f, rows, KINF__ARRAY_LEN(rows));
    serve_teardown(&f);
}

static void what_could_not_be_read_is_not_said_to_be_gone(void **state)
{
    static const struct serve_expected rows[] = {
        { "GET " OBJECTS "/large", "", 503,
          "configmaps \\\"large\\\" is not in this cache, which leaves out 1 objects\n"
          "\"reason\":\"ServiceUnavailable\"\n"
          "\"details\":{\"name\":\"large\"",
          NULL },
        { "GET " OBJECTS, "", 200,
          "Warning: 299 - \"kinformer: 1 configmaps that could not be read", "\"large\"" },
        { "GET " OBJECTS "/a", "", 200, "\"name\":\"a\"", "Warning" },
    };
    struct kinf_informer_options informer = KINF_INFORMER_OPTIONS_INIT;
    struct kinf__source_options source = { .name_space = NULL };
    struct kinf_error err = KINF_ERROR_INIT;
    char manifest[8192], filler[4096] = "";
    struct serve_fixture f;

    (void)state;
    serve_setup(&f);
    memset(filler, 'x', sizeof filler - 1);
    snprintf(manifest, sizeof manifest,
             "{apiVersion: v1, kind: ConfigMap, metadata: {name: large}, data: {value: \"%s\"}}",
             filler);
    assert_int_equal(kinf_fake_put(f.fake, manifest, &err), 0);
    informer.max_object_bytes = 2048;
    serve_add(&f, &informer, &source);
    serve_expect_all(&f, rows, KINF__ARRAY_LEN(rows));
    serve_teardown(&f);
}

static void a_catalog_is_outdated_once_what_it_lacks_is_live(void **state)
{
    static const char definition[] =
        "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,\n"
        "metadata: {name: gadgets.example.com}, spec: {group: example.com, scope: Namespaced,\n"
        "names: {plural: gadgets, kind: Gadget, singular: gadget}, versions: [{name: v1, served: "
        "true,\n"
        "storage: true, schema: {openAPIV3Schema: {type: object}}}]}}";
    struct kinf_informer_options informer = KINF_INFORMER_OPTIONS_INIT;
    struct kinf__source_options source = { .name_space = NULL };
    struct kinf_error err = KINF_ERROR_INIT;
    struct serve_fixture f;

    (void)state;
    serve_setup_whole(&f);
    assert_false(kinf__catalog_is_outdated(f.served.server));
    assert_int_equal(kinf_fake_put(f.fake, definition, &err), 0);
    assert_int_equal(kinf_fake_fault(f.fake, "list gadgets.example.com 503", &err), 0);
    assert_int_equal(kinf_fake_fault(f.fake, "watch gadgets.example.com 503", &err), 0);
    informer.resource = "gadgets.v1.example.com";
    kinf_fake_advance(f.fake, 10000); /* the client asks what there is not more often */
    assert_int_equal(served_fake_add(&f.served, &informer, &source, &err), 0);
    assert_false(kinf__catalog_is_outdated(f.served.server));
    kinf_fake_clear_faults(f.fake);
    kinf_fake_advance(f.fake, 60000);
    served_fake_wait(&f.served);
    assert_true(kinf__catalog_is_outdated(f.served.server));
    serve_teardown(&f);
}

/* --- heads of answers --- */

static const char *staleness_of(int64_t ms, char buf[32])
{
    const struct kinf__answer answer = { .code = 200, .staleness_ms = ms };
    struct MHD_Response *response = kinf__mhd_response_new(&answer, NULL, NULL);
    const char *value;

    assert_non_null(response);
    value = MHD_get_response_header(response, "Kinformer-Staleness-Seconds");
    snprintf(buf, 32, "%s", value != NULL ? value : "none");
    MHD_destroy_response(response);
    return buf;
}

static void how_stale_an_answer_is_is_said_to_the_millisecond(void **state)
{
    char text[32];

    (void)state;
    assert_string_equal(staleness_of(-1, text), "none");
    assert_string_equal(staleness_of(0, text), "0.000");
    assert_string_equal(staleness_of(61007, text), "61.007");
}

/* Whose bytes are compressed, and who reads them as they are, has read something else. */
static void an_answer_without_its_encoding_is_not_sent(void **state)
{
    static const struct kinf__header headers[] = {
        { "Content-Type", "application/json" },
        { "Audit-Id", "a\rb" },
        { "Content-Encoding", "gzip" },
    };
    static const struct kinf__header broken[] = { { "content-encoding", "gz\rip" } },
                                     none[] = { { "Content-Encoding", "" } };
    struct kinf__answer answer = { .code = 200, .is_passed = true, .headers = headers };
    struct MHD_Response *response;

    (void)state;
    answer.n_headers = KINF__ARRAY_LEN(headers);
    response = kinf__mhd_response_new(&answer, NULL, NULL);
    assert_non_null(response);
    assert_string_equal(MHD_get_response_header(response, "Content-Encoding"), "gzip");
    assert_null(MHD_get_response_header(response, "Audit-Id"));
    MHD_destroy_response(response);
    answer.n_headers = 1;
    answer.headers = none;
    response = kinf__mhd_response_new(&answer, NULL, NULL);
    assert_non_null(response);
    assert_null(MHD_get_response_header(response, "Content-Encoding"));
    MHD_destroy_response(response);
    answer.headers = broken;
    assert_null(kinf__mhd_response_new(&answer, NULL, NULL));
}

/* --- clients --- */

static void a_fakes_socket_is_of_its_process_alone(void **state)
{
    struct serve_fixture f;
    int status;
    pid_t child;

    (void)state;
    test_skip_in_valgrind("it looks for leaks at the end of the forked process, too");
    serve_setup_whole(&f);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char text[512] = "";
        int fd = serve_send_request(&f, "GET " OBJECTS "/a", "");
        ssize_t n = recv(fd, text, sizeof text - 1, MSG_WAITALL);

        _exit(n > 0 && strncmp(text, "HTTP/1.1 403 Forbidden\r\n", 24) == 0 &&
                      strstr(text, "this socket is of one process") != NULL
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    serve_expect(&f, "GET " OBJECTS "/a", "", 200, "\"name\":\"a\"", NULL);
    serve_teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_say_what_they_are),
        cmocka_unit_test(what_is_not_here_is_passed_on_for_who_has_a_token),
        cmocka_unit_test(without_an_api_server_behind_it_the_cache_is_all_there_is),
        cmocka_unit_test(a_page_has_the_version_of_the_first_one),
        cmocka_unit_test(a_page_is_not_of_another_state_with_the_same_version),
        cmocka_unit_test(who_comes_too_late_for_a_page_may_go_on_in_another_state),
        cmocka_unit_test(heads_that_are_no_requests_are_refused),
        cmocka_unit_test(before_the_first_list_nothing_is_answered_from_it),
        cmocka_unit_test(each_source_answers_for_its_namespace),
        cmocka_unit_test(an_object_is_looked_for_where_all_are),
        cmocka_unit_test(what_is_wider_than_the_cache_says_so_if_it_is_answered),
        cmocka_unit_test(what_is_narrower_is_asked_for_upstream),
        cmocka_unit_test(latest_is_answered_by_the_api_server),
        cmocka_unit_test(latest_is_refused_where_nobody_is_behind),
        cmocka_unit_test(what_could_not_be_read_is_not_said_to_be_gone),
        cmocka_unit_test(a_catalog_is_outdated_once_what_it_lacks_is_live),
        cmocka_unit_test(how_stale_an_answer_is_is_said_to_the_millisecond),
        cmocka_unit_test(an_answer_without_its_encoding_is_not_sent),
        cmocka_unit_test(a_fakes_socket_is_of_its_process_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
