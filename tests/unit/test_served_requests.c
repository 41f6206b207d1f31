/*
 * Requests as clients send them, through an endpoint, a server with its sources and a forwarder: what comes back byte by byte,
 * what the log says of it, and who is waited for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include "base/compiler.h"
#include "serve/mhd_response.h"
#include "unit/scripted_server.h"
#include "unit/served_fake.h"
#include "unit/swept_fake.h"
#include "unit/test.h"

#define OBJECTS "/api/v1/namespaces/default/configmaps"
#define TOKEN   "Authorization: Bearer t\r\n"
#define TABLE   "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n"
#define LARGE   (300u << 10)

#define PATIENCE_MS 30000

struct lines {
    struct kinf__mutex lock;
    struct kinf__buffer text;
};

struct fixture {
    struct kinf_fake *fake;
    struct served_fake served;
    struct lines log;
};

static bool take_line(struct kinf_str line, void *ctx)
{
    struct lines *lines = ctx;
    int failed;

    kinf__mutex_lock(&lines->lock);
    failed = kinf__buffer_printf(&lines->text, "%.*s\n", (int)line.len, line.bytes);
    kinf__mutex_unlock(&lines->lock);
    return failed == 0;
}

static void add(struct fixture *f, struct kinf_informer_options *informer,
                struct kinf__source_options *source)
{
    struct kinf_error err = KINF_ERROR_INIT;

    assert_int_equal(served_fake_add(&f->served, informer, source, &err), 0);
    served_fake_wait(&f->served);
}

/* Without a source. */
static void setup_server(struct fixture *f, bool passes)
{
    struct kinf_error err = KINF_ERROR_INIT;

    memset(f, 0, sizeof *f);
    kinf__mutex_init(&f->log.lock, KINF__RANK_LOG);
    f->fake = swept_fake_new();
    swept_fake_put(f->fake, "a", "1");
    swept_fake_put(f->fake, "b", "2");
    assert_int_equal(served_fake_begin(&f->served, f->fake, passes, take_line, &f->log, &err), 0);
}

/* That passes on what it does not have. */
static void setup(struct fixture *f)
{
    setup_server(f, true);
}

static void add_whole(struct fixture *f)
{
    struct kinf_informer_options informer = KINF_INFORMER_OPTIONS_INIT;
    struct kinf__source_options source = { .name_space = NULL };

    add(f, &informer, &source);
}

/* With one of all ConfigMaps. */
static void setup_whole(struct fixture *f)
{
    setup(f);
    add_whole(f);
}

static void teardown(struct fixture *f)
{
    served_fake_end(&f->served);
    kinf_fake_free(f->fake);
    kinf__buffer_release(&f->log.text);
    kinf__mutex_release(&f->log.lock);
}

/* --- a client --- */

static int send_request(const struct fixture *f, const char *line, const char *headers)
{
    char text[8192];

    snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n",
             line, headers);
    return served_fake_send(&f->served, text);
}

static bool says(const struct served_answer *answer, const char *word)
{
    return strstr(answer->head, word) != NULL || strstr(answer->body, word) != NULL;
}

struct expected {
    const char *line, *headers;
    int status;
    const char *has[4];
    const char *lacks;
};

static void expect_answer(struct served_answer *answer, const struct expected *expected)
{
    bool is_right = answer->status == expected->status;

    for (size_t i = 0; is_right && i < KINF__ARRAY_LEN(expected->has); i++)
        is_right = expected->has[i] == NULL || says(answer, expected->has[i]);
    if (is_right && expected->lacks != NULL)
        is_right = !says(answer, expected->lacks);
    if (!is_right)
        fail_msg("%s (%s): %d, not %d\n%s\n%s", expected->line, expected->headers, answer->status,
                 expected->status, answer->head, answer->body);
    served_answer_release(answer);
}

static void expect(const struct fixture *f, const struct expected *expected)
{
    struct served_answer answer =
        served_fake_answer(send_request(f, expected->line, expected->headers));

    expect_answer(&answer, expected);
}

static size_t n_under_way(const struct fixture *f)
{
    struct kinf__server_status status;

    kinf__server_status(f->served.server, &status);
    return status.n_exchanges;
}

static void wait_until_under_way(const struct fixture *f, size_t n)
{
    for (int i = 0; i < PATIENCE_MS && n_under_way(f) != n; i++)
        usleep(1000);
    assert_int_equal(n_under_way(f), n);
}

/* A line is written when its request has been forgotten. */
static void wait_until_logged(struct fixture *f, const char *word)
{
    bool has = false;

    for (int i = 0; i < PATIENCE_MS && !has; i++) {
        const char *text;

        usleep(1000);
        kinf__mutex_lock(&f->log.lock);
        text = kinf__buffer_cstr(&f->log.text);
        has = text != NULL && strstr(text, word) != NULL;
        kinf__mutex_unlock(&f->log.lock);
    }
    if (!has)
        fail_msg("no %s in\n%s", word, kinf__buffer_cstr(&f->log.text));
}

/* --- answers --- */

static void answers_say_what_they_are(void **state)
{
    static const struct expected rows[] = {
        { "GET " OBJECTS "/a",
          "",
          200,
          { "Content-Type: application/json", "Cache-Control: no-cache, private",
            "X-Content-Type-Options: nosniff", "Kinformer-Staleness-Seconds: " },
          "Vary" },
        { "GET " OBJECTS "/a", "", 200, { "\"name\":\"a\"", "Content-Length: " }, "Warning" },
        { "GET " OBJECTS, "", 200, { "\"name\":\"a\"", "\"name\":\"b\"" }, "Retry-After" },
        { "GET " OBJECTS "/none",
          "",
          404,
          { "configmaps \\\"none\\\" not found", "\"reason\":\"NotFound\"",
            "\"details\":{\"name\":\"none\",\"kind\":\"configmaps\"}" },
          NULL },
        { "GET " OBJECTS "/a", TABLE, 200, { "columnDefinitions", "\"rows\"" }, NULL },
        { "GET " OBJECTS "?includeObject=Some",
          TABLE,
          400,
          { "Unable to convert to Table" },
          NULL },
        { "GET " OBJECTS "/a?includeObject=Some", TABLE, 400, { "must be 'Metadata'" }, NULL },
        { "GET /api/v1/configmaps?limit=1",
          "",
          200,
          { "\"remainingItemCount\":1" },
          "\"name\":\"b\"" },
        { "GET /api/v1/namespaces//configmaps/a",
          "",
          400,
          { "Namespace parameter required." },
          NULL },
        { "GET " OBJECTS "?resourceVersion=1&resourceVersionMatch=Exact",
          "",
          410,
          { "\"reason\":\"Expired\"" },
          NULL },
        { "GET " OBJECTS "?continue=nonsense", "", 400, { "continue" }, NULL },
        { "GET " OBJECTS "?resourceVersionMatch=Exact", "", 422, { "resourceVersionMatch" }, NULL },
        { "GET " OBJECTS "?labelSelector=%21%21", "", 400, { "\"reason\":\"BadRequest\"" }, NULL },
        { "GET " OBJECTS, "Accept: text/csv\r\n", 406, { "NotAcceptable" }, NULL },
        { "GET /api/v1/nothings",
          "",
          404,
          { "Content-Type: application/json", "the server could not find the requested resource" },
          NULL },
        { "GET /apis/nobody.example/v1/things",
          "",
          404,
          { "404 page not found", "text/plain" },
          NULL },
        { "GET /nothing", "", 401, { "token" }, NULL },
        { "OPTIONS " OBJECTS, "", 405, { "MethodNotAllowed" }, NULL },
        { "GET /version", "", 200, { "gitVersion" }, NULL },
        { "GET /api", "", 200, { "APIVersions" }, "upstream" },
        { "GET /apis", "", 200, { "\"groups\":[]" }, "Vary" },
        { "GET /apis",
          "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\r\n",
          200,
          { "Vary: Accept", "ETag: ", "APIGroupDiscoveryList", "Cache-Control: public" },
          NULL },
        { "GET /debug/state", "", 200, { "\"listExpected\"", "\"listObjects\"" }, NULL },
        { "GET /livez", "", 200, { "Content-Type: text/plain" }, NULL },
        { "GET /readyz", "", 200, { "Content-Type: text/plain" }, NULL },
    };
    struct fixture f;

    (void)state;
    setup_whole(&f);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++)
        expect(&f, &rows[i]);
    teardown(&f);
}

static void what_is_not_here_is_passed_on_for_who_has_a_token(void **state)
{
    static const struct expected rows[] = {
        { "GET /api/v1/secrets", "", 401, { "needs a bearer token of yours" }, "upstream" },
        { "GET /api/v1/secrets", TOKEN, 200, { "Kinformer-Source: upstream", "SecretList" }, NULL },
        { "GET /api", TOKEN, 200, { "Kinformer-Source: upstream" }, NULL },
        { "GET " OBJECTS "/a", TOKEN, 200, { "\"name\":\"a\"" }, "upstream" },
        { "GET " OBJECTS "/a", TOKEN "Impersonate-User: u\r\n", 403, { "upstream" }, NULL },
        { "GET " OBJECTS "/a", "Impersonate-User: u\r\n", 401, { "Unauthorized" }, NULL },
        { "GET " OBJECTS "/a",
          TOKEN "Authorization: Basic YTpi\r\n",
          200,
          { "\"name\":\"a\"" },
          "upstream" },
        { "DELETE " OBJECTS "/a",
          TOKEN "Authorization: Basic YTpi\r\n",
          400,
          { "can be read in more than one way" },
          NULL },
        { "DELETE " OBJECTS "/none", TOKEN, 404, { "upstream", "NotFound" }, NULL },
        { "DELETE " OBJECTS "/a", "", 401, { "Unauthorized" }, NULL },
        { "DELETE " OBJECTS "/a", TOKEN, 200, { "upstream" }, NULL },
        { "GET " OBJECTS "/a", TOKEN, 404, { "NotFound" }, NULL },
        { "GET " OBJECTS, "Upgrade: websocket\r\nConnection: Upgrade\r\n", 401, { "token" }, NULL },
    };
    struct fixture f;

    (void)state;
    setup_whole(&f);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++)
        expect(&f, &rows[i]);
    teardown(&f);
}

static void without_an_api_server_behind_it_the_cache_is_all_there_is(void **state)
{
    static const struct expected rows[] = {
        { "GET " OBJECTS "/a", TOKEN, 200, { "\"name\":\"a\"" }, NULL },
        { "GET /api/v1/secrets",
          TOKEN,
          403,
          { "secrets is forbidden: this cache has no such resource" },
          NULL },
        { "GET /api/v1/namespaces/default/pods/p/status",
          TOKEN,
          403,
          { "pods \\\"p\\\" is forbidden: the subresource \\\"status\\\" is not served from a "
            "cache" },
          NULL },
        { "DELETE " OBJECTS "/a", TOKEN, 405, { "MethodNotAllowed" }, NULL },
        { "GET /nothing", TOKEN, 404, { "404 page not found" }, NULL },
        { "GET " OBJECTS,
          TOKEN "Impersonate-User: u\r\n",
          403,
          { "impersonation is not answered" },
          NULL },
        { "GET " OBJECTS,
          TOKEN "Upgrade: websocket\r\nConnection: Upgrade\r\n",
          403,
          { "upgraded connections" },
          NULL },
    };
    struct fixture f;

    (void)state;
    setup_server(&f, false);
    add_whole(&f);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++)
        expect(&f, &rows[i]);
    teardown(&f);
}

static void a_page_has_the_version_of_the_first_one(void **state)
{
    struct served_answer page;
    struct fixture f;
    char line[1024];
    const char *token;

    (void)state;
    setup_whole(&f);
    page = served_fake_answer(send_request(&f, "GET " OBJECTS "?limit=1", ""));
    token = strstr(page.body, "\"continue\":\"");
    assert_non_null(token);
    token += strlen("\"continue\":\"");
    swept_fake_put(f.fake, "aa", "3");
    swept_fake_settle(f.fake);
    snprintf(line, sizeof line, "GET " OBJECTS "?continue=%.*s", (int)strcspn(token, "\""), token);
    expect(&f, &(struct expected){ line, "", 200, { "\"name\":\"b\"" }, "\"name\":\"aa\"" });
    strcat(line, "&resourceVersion=7");
    expect(&f, &(struct expected){ line, "", 400, { "not allowed when using continue" }, NULL });
    served_answer_release(&page);
    teardown(&f);
}

static void heads_that_are_no_requests_are_refused(void **state)
{
    static const struct expected two_hosts = {
        "GET /livez", "Host: localhost\r\n", 400, { NULL }, NULL
    };
    struct fixture f;
    char headers[65 * 16] = "";

    (void)state;
    setup(&f);
    for (int i = 0; i < 62; i++)
        strcat(headers, "X: y\r\n");
    expect(&f, &(struct expected){ "GET /livez", headers, 200, { NULL }, NULL });
    strcat(headers, "X: y\r\n");
    expect(&f, &(struct expected){ "GET /livez", headers, 431, { "Too Large" }, NULL });
    expect(&f, &two_hosts);
    teardown(&f);
}

static void before_the_first_list_nothing_is_answered_from_it(void **state)
{
    struct kinf_informer_options informer = KINF_INFORMER_OPTIONS_INIT;
    struct kinf__source_options source = { .name_space = NULL };
    struct kinf_error err = KINF_ERROR_INIT;
    struct fixture f;

    (void)state;
    setup(&f);
    assert_int_equal(kinf_fake_fault(f.fake, "list configmaps 503", &err), 0);
    assert_int_equal(kinf_fake_fault(f.fake, "watch configmaps 503", &err), 0);
    assert_int_equal(served_fake_add(&f.served, &informer, &source, &err), 0);
    expect(&f, &(struct expected){ "GET " OBJECTS "/a",
                                   "",
                                   429,
                                   { "Retry-After: 1", "TooManyRequests", "configmaps: " },
                                   NULL });
    expect(&f, &(struct expected){ "GET /readyz?verbose", "", 500, { "configmaps" }, NULL });
    kinf_fake_clear_faults(f.fake);
    teardown(&f);
}

/* --- sources --- */

static void each_source_answers_for_its_namespace(void **state)
{
    static const char *const names[] = { "other", "default" };
    static const struct expected rows[] = {
        { "GET " OBJECTS "/a", "", 200, { "\"name\":\"a\"" }, NULL },
        { "GET /api/v1/namespaces/other/configmaps/a", "", 404, { "NotFound" }, NULL },
        { "GET " OBJECTS, "", 200, { "\"name\":\"b\"" }, NULL },
        { "GET /api/v1/configmaps", "", 401, { "token" }, NULL },
        { "GET /api/v1/configmaps", TOKEN, 200, { "upstream", "\"name\":\"b\"" }, NULL },
    };
    struct fixture f;

    (void)state;
    setup(&f);
    for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++) {
        struct kinf_informer_options informer = KINF_INFORMER_OPTIONS_INIT;
        struct kinf__source_options source = { .name_space = names[i] };

        informer.name_space = names[i];
        add(&f, &informer, &source);
    }
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++)
        expect(&f, &rows[i]);
    teardown(&f);
}

static void what_is_wider_than_the_cache_says_so_if_it_is_answered(void **state)
{
    static const struct expected rows[] = {
        { "GET " OBJECTS, "", 200, { "Warning: 299 - \"kinformer: only configmaps" }, NULL },
        { "GET " OBJECTS "?labelSelector=sync%3Dtrue", "", 200, { "\"name\":\"a\"" }, "Warning" },
        { "GET " OBJECTS "/none", "", 404, { "NotFound" }, NULL },
        { "PUT " OBJECTS "/a", TOKEN "Content-Length: 0\r\n", 405, { "use PATCH" }, NULL },
    };
    struct kinf_informer_options informer = KINF_INFORMER_OPTIONS_INIT;
    struct kinf__source_options source = { .label_selector = "sync=true",
                                           .assume_scope = true,
                                           .is_pruned = true };
    struct fixture f;

    (void)state;
    setup(&f);
    informer.label_selector = "sync=true";
    add(&f, &informer, &source);
    expect(&f, &rows[0]);
    expect(&f, &(struct expected){ "GET " OBJECTS "?labelSelector=sync%3Dtrue",
                                   "",
                                   200,
                                   { "come without the fields that this cache leaves out" },
                                   NULL });
    expect(&f, &rows[2]);
    expect(&f, &rows[3]);
    teardown(&f);
}

static void what_is_narrower_is_asked_for_upstream(void **state)
{
    static const struct expected rows[] = {
        { "GET " OBJECTS, "", 401, { "token" }, NULL },
        { "GET " OBJECTS "/a", "", 200, { "\"name\":\"a\"" }, NULL },
        { "GET " OBJECTS "/none", "", 401, { "token" }, NULL },
        { "GET " OBJECTS "/none", TOKEN, 404, { "upstream" }, NULL },
    };
    struct kinf_informer_options informer = KINF_INFORMER_OPTIONS_INIT;
    struct kinf__source_options source = { .label_selector = "sync=true" };
    struct fixture f;

    (void)state;
    setup(&f);
    informer.label_selector = "sync=true";
    add(&f, &informer, &source);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++)
        expect(&f, &rows[i]);
    teardown(&f);
}

static void latest_is_answered_by_the_api_server(void **state)
{
    static const struct expected rows[] = {
        { "GET " OBJECTS "/a", "", 401, { "token" }, NULL },
        { "GET " OBJECTS "/a", TOKEN, 200, { "upstream" }, NULL },
        { "GET " OBJECTS "/a?resourceVersion=0", "", 200, { "\"name\":\"a\"" }, "upstream" },
    };
    struct kinf_informer_options informer = KINF_INFORMER_OPTIONS_INIT;
    struct kinf__source_options source = { .consistency = KINF__CONSISTENCY_LATEST };
    struct fixture f;

    (void)state;
    setup(&f);
    add(&f, &informer, &source);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++)
        expect(&f, &rows[i]);
    teardown(&f);
}

static void what_could_not_be_read_is_not_said_to_be_gone(void **state)
{
    static const struct expected rows[] = {
        { "GET " OBJECTS "/large",
          "",
          503,
          { "configmaps \\\"large\\\" is not in this cache, which leaves out 1 objects",
            "\"reason\":\"ServiceUnavailable\"", "\"details\":{\"name\":\"large\"" },
          NULL },
        { "GET " OBJECTS,
          "",
          200,
          { "Warning: 299 - \"kinformer: 1 configmaps that could not be read" },
          "\"large\"" },
        { "GET " OBJECTS "/a", "", 200, { "\"name\":\"a\"" }, "Warning" },
    };
    struct kinf_informer_options informer = KINF_INFORMER_OPTIONS_INIT;
    struct kinf__source_options source = { .name_space = NULL };
    struct kinf_error err = KINF_ERROR_INIT;
    char manifest[8192], filler[4096] = "";
    struct fixture f;

    (void)state;
    setup(&f);
    memset(filler, 'x', sizeof filler - 1);
    snprintf(manifest, sizeof manifest,
             "{apiVersion: v1, kind: ConfigMap, metadata: {name: large}, data: {value: \"%s\"}}",
             filler);
    assert_int_equal(kinf_fake_put(f.fake, manifest, &err), 0);
    informer.max_object_bytes = 2048;
    add(&f, &informer, &source);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++)
        expect(&f, &rows[i]);
    teardown(&f);
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
    struct fixture f;

    (void)state;
    setup_whole(&f);
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
    teardown(&f);
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

/* --- waiting --- */

static void a_version_to_come_is_waited_for_until_it_comes(void **state)
{
    struct served_answer answer;
    struct fixture f;
    int fd;

    (void)state;
    setup_whole(&f);
    fd = send_request(&f, "GET " OBJECTS "?resourceVersion=100000", "");
    wait_until_under_way(&f, 1);
    usleep(20000);
    assert_int_equal(n_under_way(&f), 1);
    kinf_fake_advance(f.fake, 5000);
    answer = served_fake_answer(fd);
    expect_answer(&answer, &(struct expected){ "a version that never comes",
                                               "",
                                               504,
                                               { "Too large resource version", "Timeout" },
                                               NULL });
    wait_until_under_way(&f, 0);

    /* A watch that begins with the state has begun: it is told in its stream. */
    fd = send_request(&f,
                      "GET " OBJECTS
                      "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
                      "&allowWatchBookmarks=true&resourceVersion=100000",
                      "");
    wait_until_under_way(&f, 1);
    kinf_fake_advance(f.fake, 5000);
    answer = served_fake_answer(fd);
    expect_answer(&answer, &(struct expected){
                               "a watch of it",
                               "",
                               200,
                               { "{\"type\":\"ERROR\",\"object\":", "Too large resource version" },
                               NULL });
    teardown(&f);
}

/* Returns the version of the list, as a number. */
static unsigned long version_now(const struct fixture *f)
{
    struct served_answer answer = served_fake_answer(send_request(f, "GET " OBJECTS, ""));
    const char *at = strstr(answer.body, "\"metadata\":{\"resourceVersion\":\"");
    unsigned long version;

    assert_non_null(at);
    version = strtoul(at + strlen("\"metadata\":{\"resourceVersion\":\""), NULL, 10);
    served_answer_release(&answer);
    return version;
}

static void a_version_that_comes_is_answered_with(void **state)
{
    struct served_answer answer;
    struct fixture f;
    char line[256];
    int fd;

    (void)state;
    setup_whole(&f);
    snprintf(line, sizeof line, "GET " OBJECTS "?resourceVersion=%lu", version_now(&f) + 1);
    wait_until_under_way(&f, 0);
    fd = send_request(&f, line, "");
    wait_until_under_way(&f, 1);
    swept_fake_put(f.fake, "c", "3");
    answer = served_fake_answer(fd);
    expect_answer(&answer, &(struct expected){ line, "", 200, { "\"name\":\"c\"" }, NULL });
    teardown(&f);
}

/* For a version nobody waits longer than 3 s, whoever is there to hear it. */
static void whoever_hangs_up_is_not_waited_for(void **state)
{
    struct fixture f;
    int waits, watches;

    (void)state;
    setup_whole(&f);
    waits = send_request(&f, "GET " OBJECTS "?resourceVersion=100000", "");
    watches = send_request(&f, "GET " OBJECTS "?watch=1&resourceVersion=100000", "");
    wait_until_under_way(&f, 2);
    close(watches);
    wait_until_under_way(&f, 1);
    wait_until_logged(&f, "?watch=1\\u0026resourceVersion=100000\",\"code\":200");
    close(waits);
    kinf_fake_advance(f.fake, 5000);
    wait_until_under_way(&f, 0);
    wait_until_logged(&f, "?resourceVersion=100000\",\"code\":504");
    teardown(&f);
}

static void a_watch_tells_what_comes_and_ends_in_time(void **state)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct served_answer answer;
    struct fixture f;
    int fd;

    (void)state;
    setup_whole(&f);
    fd = send_request(&f, "GET " OBJECTS "?watch=1&timeoutSeconds=100", "");
    assert_true(served_fake_read(fd, "\"name\":\"b\"", &text));
    swept_fake_put(f.fake, "c", "3");
    assert_true(
        served_fake_read(fd, "{\"type\":\"ADDED\",\"object\":{\"kind\":\"ConfigMap\"", &text));
    assert_true(served_fake_read(fd, "\"name\":\"c\"", &text));
    close(fd);
    wait_until_under_way(&f, 0);
    expect(&f, &(struct expected){
                   "GET /debug/state",
                   "",
                   200,
                   { "\"recentEvents\":[{", "\"type\":\"ADDED\",\"key\":\"default/c\"" },
                   NULL });

    fd = send_request(&f, "GET " OBJECTS "?watch=1&timeoutSeconds=100", "");
    wait_until_under_way(&f, 1);
    wait_until_logged(&f, "timeoutSeconds=100");
    kinf_fake_advance(f.fake, 50000);
    assert_int_equal(n_under_way(&f), 1);
    kinf_fake_advance(f.fake, 60000);
    answer = served_fake_answer(fd);
    expect_answer(&answer,
                  &(struct expected){
                      "a watch", "", 200, { "Transfer-Encoding: chunked", "\"ADDED\"" }, NULL });
    teardown(&f);
}

/* Long targets take turns from their first step on. */
static void who_sleeps_has_given_up_its_turn(void **state)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct fixture f;
    char filler[1200] = "", line[1600];
    int watches;

    (void)state;
    setup_whole(&f);
    memset(filler, 'x', sizeof filler - 1);
    snprintf(line, sizeof line, "GET " OBJECTS "?watch=1&filler=%s", filler);
    watches = send_request(&f, line, "");
    assert_true(served_fake_read(watches, "\"name\":\"b\"", &text));
    snprintf(line, sizeof line, "GET " OBJECTS "?filler=%s", filler);
    expect(&f, &(struct expected){ line, "", 200, { "\"name\":\"b\"" }, NULL });
    close(watches);
    teardown(&f);
}

static void a_stop_answers_who_waits(void **state)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct served_answer answer;
    struct fixture f;
    int waits, watches;

    (void)state;
    setup_whole(&f);
    waits = send_request(&f, "GET " OBJECTS "?resourceVersion=100000", "");
    watches = send_request(&f, "GET " OBJECTS "?watch=1", "");
    assert_true(served_fake_read(watches, "\"name\":\"b\"", &text));
    wait_until_under_way(&f, 2);
    served_fake_stop(&f.served);
    answer = served_fake_answer(waits);
    expect_answer(
        &answer,
        &(struct expected){
            "who waits", "", 503, { "this cache is going away", "ServiceUnavailable" }, NULL });
    assert_true(served_fake_read(watches, "\r\n0\r\n", &text));
    close(watches);
    teardown(&f);
}

/* --- bodies --- */

static void send_all(int fd, const char *bytes, size_t len)
{
    while (len != 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

        assert_true(n > 0);
        bytes += n;
        len -= (size_t)n;
    }
}

/* A ConfigMap of this name, whose value is long. */
static void append_large(struct kinf__buffer *body, const char *name)
{
    assert_int_equal(
        kinf__buffer_printf(
            body,
            "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\"},"
            "\"data\":{\"value\":\"",
            name),
        0);
    for (size_t i = 0; i < LARGE; i++)
        assert_int_equal(kinf__buffer_append(body, "x", 1), 0);
    assert_int_equal(kinf__buffer_append_str(body, KINF_STR("\"}}")), 0);
}

static void expect_large(struct fixture *f, const char *key)
{
    kinf_auto_object const struct kinf_object *object = NULL;
    struct kinf_error err = KINF_ERROR_INIT;
    char *value = malloc(LARGE + 2);

    assert_non_null(value);
    assert_int_equal(kinf_fake_get(f->fake, "configmaps", key, &object, &err), 0);
    assert_int_equal(kinf_object_get_string(object, "data.value", value, LARGE + 2), 0);
    assert_int_equal(strspn(value, "x"), LARGE);
    assert_int_equal(strlen(value), LARGE);
    free(value);
}

static void long_bodies_go_through_whole(void **state)
{
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;
    struct served_answer answer;
    struct fixture f;
    char length[128];
    int fd;

    (void)state;
    setup_whole(&f);
    append_large(&body, "whole");
    snprintf(length, sizeof length,
             TOKEN "Content-Type: application/json\r\nContent-Length: %zu\r\n", body.len);
    fd = send_request(&f, "POST " OBJECTS, length);
    send_all(fd, body.bytes, body.len);
    answer = served_fake_answer(fd);
    expect_answer(&answer, &(struct expected){ "a long body", "", 201, { "upstream" }, NULL });
    expect_large(&f, "default/whole");

    body.len = 0;
    append_large(&body, "chunks");
    fd = send_request(&f, "POST " OBJECTS,
                      TOKEN "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n");
    for (size_t at = 0; at < body.len; at += 50000) {
        size_t len = body.len - at < 50000 ? body.len - at : 50000;
        char line[32];

        send_all(fd, line, (size_t)snprintf(line, sizeof line, "%zx\r\n", len));
        send_all(fd, body.bytes + at, len);
        send_all(fd, "\r\n", 2);
    }
    send_all(fd, "0\r\n\r\n", 5);
    answer = served_fake_answer(fd);
    expect_answer(&answer, &(struct expected){ "chunks", "", 201, { "upstream" }, NULL });
    expect_large(&f, "default/chunks");
    /* And it is read back, from where it is held. */
    swept_fake_settle(f.fake);
    expect(&f, &(struct expected){ "GET " OBJECTS "/chunks", "", 200, { "xxxxxxxx\"}" }, NULL });
    teardown(&f);
}

static void who_asks_before_a_body_is_told(void **state)
{
    static const char body[] =
        "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"e\"}}";
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct served_answer answer;
    struct fixture f;
    char headers[256];
    int fd;

    (void)state;
    setup_whole(&f);
    snprintf(headers, sizeof headers,
             "Expect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n",
             sizeof body - 1);
    expect(&f, &(struct expected){ "POST " OBJECTS, headers, 401, { "token" }, "100 Continue" });
    strcat(headers, TOKEN);
    fd = send_request(&f, "POST " OBJECTS, headers);
    assert_true(served_fake_read(fd, "HTTP/1.1 100 Continue\r\n\r\n", &text));
    send_all(fd, body, sizeof body - 1);
    answer = served_fake_answer(fd);
    expect_answer(&answer, &(struct expected){
                               "a body that was asked for", "", 201, { "\"name\":\"e\"" }, NULL });
    teardown(&f);
}

/* --- another protocol --- */

static void what_changes_its_protocol_is_carried_both_ways(void **state)
{
    static const char request[] =
        "POST /api/v1/namespaces/default/pods/p/exec?command=sh HTTP/1.1\r\nHost: "
        "localhost\r\n" TOKEN "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";
    static const char upgrade[] =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nfirst";
    static const struct kinf__forwarder_options forwarding = KINF__FORWARDER_OPTIONS_INIT;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER head = KINF__BUFFER_INIT;
    struct kinf__server_options options = { .name = NULL };
    struct kinf_error err = KINF_ERROR_INIT;
    struct served_fake served = { .fake = NULL };
    struct kinf_client *client;
    unsigned port;
    int listener = test_listen(4, &port), upstream, fd;

    (void)state;
    client = test_client_of(port, NULL);
    assert_int_equal(kinf__forwarder_new(client, &forwarding, &served.forwarder, &err), 0);
    options.forwarder = served.forwarder;
    assert_int_equal(kinf__server_new(&options, &served.server, &err), 0);
    assert_int_equal(kinf__endpoint_start_local(served.server, &served.endpoint, &served.address,
                                                &served.address_len, &err),
                     0);
    fd = served_fake_send(&served, request);
    upstream = accept(listener, NULL, NULL);
    assert_true(served_fake_read(upstream, "\r\n\r\n", &head));
    assert_non_null(strstr(head.bytes, "Upgrade: SPDY/3.1"));
    assert_non_null(strstr(head.bytes, "Authorization: Bearer t"));
    send_all(upstream, upgrade, sizeof upgrade - 1);
    assert_true(served_fake_read(fd, "first", &text));
    assert_non_null(strstr(text.bytes, "HTTP/1.1 101 "));
    assert_non_null(strstr(text.bytes, "Upgrade: SPDY/3.1\r\n"));
    assert_non_null(strstr(text.bytes, "Kinformer-Source: upstream\r\n"));
    send_all(fd, "up", 2);
    assert_true(served_fake_read(upstream, "up", &head));
    send_all(upstream, "down", 4);
    assert_true(served_fake_read(fd, "down", &text));
    close(upstream);
    assert_false(served_fake_read(fd, "more", &text));
    close(fd);
    close(listener);
    served_fake_end(&served);
    kinf_client_free(client);
}

/* --- the log --- */

static void each_request_is_a_line_of_the_log(void **state)
{
    static const struct {
        const char *line, *headers, *told;
    } rows[] = {
        { "GET " OBJECTS "/a", "",
          "\"verb\":\"get\",\"target\":\"" OBJECTS
          "/a\",\"code\":200,\"source\":\"cache\",\"ms\":" },
        { "GET " OBJECTS "?limit=1&continue=x&password=y&labelSelector=z", "",
          "\"verb\":\"list\",\"target\":\"" OBJECTS
          "?limit=1\\u0026continue=...\\u0026labelSelector=z\",\"code\":400," },
        { "GET /api/v1/secrets", TOKEN,
          "\"verb\":\"list\",\"target\":\"/api/v1/"
          "secrets\",\"code\":200,\"source\":\"upstream\"," },
        { "GET /version", "", "\"target\":\"/version\",\"code\":200,\"source\":\"self\"," },
        { "GET /api/v1/namespaces/x/services/y/proxy/secret", "",
          "\"target\":\"/api/v1/namespaces/x/services/y/proxy/\"," },
        { "GET http://user:password@host/version", "", "\"target\":\"\"," },
    };
    struct fixture f;

    (void)state;
    setup_whole(&f);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct served_answer answer =
            served_fake_answer(send_request(&f, rows[i].line, rows[i].headers));

        served_answer_release(&answer);
        wait_until_logged(&f, rows[i].told);
    }
    assert_int_equal(memcmp(f.log.text.bytes, "{\"time\":\"", 9), 0);
    assert_non_null(strstr(f.log.text.bytes, "\"client\":\"unix uid="));
    assert_null(strstr(f.log.text.bytes, "password"));
    assert_null(strstr(f.log.text.bytes, "proxy/secret"));
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_say_what_they_are),
        cmocka_unit_test(what_is_not_here_is_passed_on_for_who_has_a_token),
        cmocka_unit_test(without_an_api_server_behind_it_the_cache_is_all_there_is),
        cmocka_unit_test(a_page_has_the_version_of_the_first_one),
        cmocka_unit_test(heads_that_are_no_requests_are_refused),
        cmocka_unit_test(before_the_first_list_nothing_is_answered_from_it),
        cmocka_unit_test(each_source_answers_for_its_namespace),
        cmocka_unit_test(what_is_wider_than_the_cache_says_so_if_it_is_answered),
        cmocka_unit_test(what_is_narrower_is_asked_for_upstream),
        cmocka_unit_test(latest_is_answered_by_the_api_server),
        cmocka_unit_test(what_could_not_be_read_is_not_said_to_be_gone),
        cmocka_unit_test(a_catalog_is_outdated_once_what_it_lacks_is_live),
        cmocka_unit_test(how_stale_an_answer_is_is_said_to_the_millisecond),
        cmocka_unit_test(a_version_to_come_is_waited_for_until_it_comes),
        cmocka_unit_test(a_version_that_comes_is_answered_with),
        cmocka_unit_test(whoever_hangs_up_is_not_waited_for),
        cmocka_unit_test(a_watch_tells_what_comes_and_ends_in_time),
        cmocka_unit_test(who_sleeps_has_given_up_its_turn),
        cmocka_unit_test(a_stop_answers_who_waits),
        cmocka_unit_test(long_bodies_go_through_whole),
        cmocka_unit_test(who_asks_before_a_body_is_told),
        cmocka_unit_test(what_changes_its_protocol_is_carried_both_ways),
        cmocka_unit_test(each_request_is_a_line_of_the_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
