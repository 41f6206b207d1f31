/*
 * What a request asks of the upstream before it is answered, and what it is told without that; a
 * watch that ends with its right.
 */
#include "serve/access.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/thread.h"
#include "rest/secret.h"
#include "serve/server_priv.h"
#include "unit/informer_fixture.h"
#include "unit/test.h"

#define PATIENCE_MS 60000

/* An upstream that knows everybody and forbids nothing, and writes down the last question. */
struct guarded {
    struct kinf__server *server;
    struct kinf__authorizer *authorizer;
    struct kinf__waker woken;
    unsigned n_reviews;
    char asked[1024]; /* "" if nothing was */
};

static int send_review(void *ctx, const char *target, struct kinf_str body,
                       struct kinf__buffer *answer, struct kinf_error *err)
{
    struct guarded *g = ctx;

    (void)err;
    g->n_reviews++;
    if (strcmp(target, KINF__TOKEN_REVIEW_TARGET) == 0)
        return kinf__buffer_printf(answer,
                                   "{\"kind\":\"TokenReview\",\"status\":{"
                                   "\"authenticated\":true,\"user\":{\"username\":\"u\"}}}");
    snprintf(g->asked, sizeof g->asked, "%.*s", (int)body.len, body.bytes);
    return kinf__buffer_printf(answer, "{\"kind\":\"SubjectAccessReview\","
                                       "\"status\":{\"allowed\":true}}");
}

static void wake(void *ctx)
{
    kinf__waker_set(&((struct guarded *)ctx)->woken);
}

static void cut_off(void *ctx)
{
    (void)ctx;
}

static bool is_gone(void *ctx)
{
    (void)ctx;
    return false;
}

static void begin(struct guarded *g)
{
    memset(g, 0, sizeof *g);
    assert_int_equal(kinf__waker_init(&g->woken, NULL), 0);
    assert_int_equal(kinf__server_new(&(struct kinf__server_options){ 0 }, &g->server, NULL), 0);
}

static void end(struct guarded *g)
{
    kinf__server_stop(g->server);
    kinf__server_free(g->server);
    kinf__waker_release(&g->woken);
}

/* Knows nothing yet. */
static void set_authorizer(struct guarded *g, int64_t watch_ms)
{
    const struct kinf__authorizer_options options = { .watch_ms = watch_ms };

    assert_int_equal(kinf__authorizer_new(&options, send_review, g, &g->authorizer, NULL), 0);
    g->n_reviews = 0;
    g->asked[0] = '\0';
}

static struct kinf__exchange *exchange_of(struct guarded *g, const struct kinf__request_head *head)
{
    const struct kinf__exchange_owner owner = {
        .wake = wake, .cut_off = cut_off, .is_gone = is_gone, .ctx = g, .authorizer = g->authorizer
    };
    struct kinf__exchange *exchange = kinf__exchange_new(g->server, &owner, head, NULL);

    assert_non_null(exchange);
    return exchange;
}

/* One at a time. */
static struct kinf__request_head head_of(const char *method, const char *target,
                                         const char *authorization)
{
    static struct kinf__header header = { "Authorization", NULL };

    header.value = authorization;
    return kinf__request_head_of(method, kinf_str_from(target), &header, authorization != NULL);
}

static const struct kinf__answer *answer_of(struct guarded *g, struct kinf__exchange *exchange)
{
    const struct kinf__answer *answer;

    while ((answer = kinf__exchange_step(exchange)) == NULL)
        assert_true(kinf__authorizer_work(g->authorizer, kinf__clock_now_ms()));
    return answer;
}

/* Of a request of its own, which `asked` and `n_reviews` are of. */
static int code_of(struct guarded *g, const struct kinf__request_head *head)
{
    struct kinf__exchange *exchange;
    int code;

    set_authorizer(g, 0);
    exchange = exchange_of(g, head);
    code = answer_of(g, exchange)->code;
    kinf__exchange_free(exchange);
    kinf__authorizer_free(g->authorizer);
    return code;
}

static void a_request_asks_for_what_it_would_be_answered(void **state)
{
    static const struct {
        const char *target;
        const char *attributes;
    } rows[] = {
        { "/api/v1/pods", "resourceAttributes\":{\"verb\":\"list\",\"version\":\"v1\","
                          "\"resource\":\"pods\"}" },
        { "/api/v1/%70ods?watch=1&watch=0",
          "resourceAttributes\":{\"verb\":\"watch\",\"version\":\"v1\",\"resource\":\"pods\"}" },
        { "/api/v1/pods?watch=0&watch=1",
          "resourceAttributes\":{\"verb\":\"list\",\"version\":\"v1\",\"resource\":\"pods\"}" },
        { "/apis/apps/v1/namespaces/n/deployments/d?watch=1&labelSelector=a",
          "resourceAttributes\":{\"verb\":\"get\",\"group\":\"apps\",\"version\":\"v1\","
          "\"resource\":\"deployments\",\"namespace\":\"n\",\"name\":\"d\"}" },
        { "/apis/apps/v1/namespaces/n/deployments/d/status",
          "resourceAttributes\":{\"verb\":\"get\",\"group\":\"apps\",\"version\":\"v1\","
          "\"resource\":\"deployments\",\"subresource\":\"status\",\"namespace\":\"n\","
          "\"name\":\"d\"}" },
        { "/api/v1/namespaces/n/pods?fieldSelector=spec.nodeName%3Dx,metadata.name%3Da&"
          "fieldSelector=metadata.name%3Db",
          "resourceAttributes\":{\"verb\":\"list\",\"version\":\"v1\",\"resource\":\"pods\","
          "\"namespace\":\"n\",\"name\":\"a\",\"fieldSelector\":{\"rawSelector\":"
          "\"spec.nodeName=x,metadata.name=a\"}}" },
        { "/api/v1/pods?fieldSelector=metadata.name%21%3Da&labelSelector=b",
          "resourceAttributes\":{\"verb\":\"list\",\"version\":\"v1\",\"resource\":\"pods\","
          "\"labelSelector\":{\"rawSelector\":\"b\"},"
          "\"fieldSelector\":{\"rawSelector\":\"metadata.name!=a\"}}" },
        { "/api/v1/namespaces?fieldSelector=metadata.name%3D",
          "resourceAttributes\":{\"verb\":\"list\",\"version\":\"v1\",\"resource\":\"namespaces\","
          "\"fieldSelector\":{\"rawSelector\":\"metadata.name=\"}}" },
        /* A namespace is in itself. */
        { "/api/v1/namespaces/n",
          "resourceAttributes\":{\"verb\":\"get\",\"version\":\"v1\",\"resource\":\"namespaces\","
          "\"namespace\":\"n\",\"name\":\"n\"}" },
        /* Deprecated watches, which have no selectors. */
        { "/api/v1/watch/namespaces/n/pods?watch=0&labelSelector=b&fieldSelector=metadata.name%3Da",
          "resourceAttributes\":{\"verb\":\"watch\",\"version\":\"v1\",\"resource\":\"pods\","
          "\"namespace\":\"n\"}" },
        { "/apis/apps/v1/watch/namespaces/n/deployments/d",
          "resourceAttributes\":{\"verb\":\"watch\",\"group\":\"apps\",\"version\":\"v1\","
          "\"resource\":\"deployments\",\"namespace\":\"n\",\"name\":\"d\"}" },
        { "/api/v1/watch/namespaces/n/pods/p/status",
          "resourceAttributes\":{\"verb\":\"watch\",\"version\":\"v1\",\"resource\":\"pods\","
          "\"subresource\":\"status\",\"namespace\":\"n\",\"name\":\"p\"}" },
        { "/api/v1/watch/namespaces/n",
          "resourceAttributes\":{\"verb\":\"watch\",\"version\":\"v1\",\"resource\":\"namespaces\","
          "\"namespace\":\"n\",\"name\":\"n\"}" },
        { "/", "nonResourceAttributes\":{\"verb\":\"get\",\"path\":\"/\"}" },
        { "/api", "nonResourceAttributes\":{\"verb\":\"get\",\"path\":\"/api\"}" },
        { "/apis/apps/v1",
          "nonResourceAttributes\":{\"verb\":\"get\",\"path\":\"/apis/apps/v1\"}" },
        { "/version/", "nonResourceAttributes\":{\"verb\":\"get\",\"path\":\"/version/\"}" },
        { "/metrics?x=1", "nonResourceAttributes\":{\"verb\":\"get\",\"path\":\"/metrics\"}" },
        { "/debug/state", "nonResourceAttributes\":{\"verb\":\"get\",\"path\":\"/debug/state\"}" },
        { "/readyz/pods", "nonResourceAttributes\":{\"verb\":\"get\",\"path\":\"/readyz/pods\"}" },
        { "/api//v1/pods",
          "nonResourceAttributes\":{\"verb\":\"get\",\"path\":\"/api//v1/pods\"}" },
        { "/nothing", "nonResourceAttributes\":{\"verb\":\"get\",\"path\":\"/nothing\"}" },
    };
    struct guarded g;

    (void)state;
    begin(&g);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        const struct kinf__request_head head = head_of("GET", rows[i].target, "Bearer t");
        char expected[1024];

        (void)code_of(&g, &head);
        snprintf(expected, sizeof expected,
                 "{\"kind\":\"SubjectAccessReview\",\"apiVersion\":\"authorization.k8s.io/v1\","
                 "\"spec\":{\"user\":\"u\",\"%s}}",
                 rows[i].attributes);
        assert_string_equal(g.asked, expected);
    }
    end(&g);
}

/* No rule would name it as it came. */
static void a_path_in_disguise_is_not_found(void **state)
{
    static const char *const targets[] = { "/metric%73", "/debug/%73tate", "/%61pi",
                                           "/api//v1/%70ods", "/%72eadyz/pods" };
    struct guarded g;

    (void)state;
    begin(&g);
    for (size_t i = 0; i < KINF__ARRAY_LEN(targets); i++) {
        const struct kinf__request_head head = head_of("GET", targets[i], "Bearer t");

        assert_int_equal(code_of(&g, &head), 404);
        assert_int_equal(g.n_reviews, 0);
    }
    end(&g);
}

static void without_one_token_nothing_is_asked_or_answered(void **state)
{
    static const char *const closed[] = { "/",         "/api",         "/apis/apps/v1",
                                          "/version",  "/metrics",     "/debug/state",
                                          "/readyz/x", "/api/v1/pods", "/nothing" };
    static const char *const none[] = { NULL, "", "Bearer", "Bearer ", "Bearer  ", "Basic dTpw" };
    static const char *const open[] = { "/healthz", "/livez" };
    struct kinf__request_head head;
    struct guarded g;

    (void)state;
    begin(&g);
    for (size_t i = 0; i < KINF__ARRAY_LEN(closed); i++) {
        for (size_t k = 0; k < KINF__ARRAY_LEN(none); k++) {
            head = head_of("GET", closed[i], none[k]);
            assert_int_equal(code_of(&g, &head), 401);
            assert_int_equal(g.n_reviews, 0);
        }
        head = head_of("GET", closed[i], "Bearer t");
        head.has_two_credentials = true;
        assert_int_equal(code_of(&g, &head), 401);
        assert_int_equal(g.n_reviews, 0);
    }
    for (size_t i = 0; i < KINF__ARRAY_LEN(open); i++) {
        head = head_of("GET", open[i], NULL);
        assert_int_equal(code_of(&g, &head), 200);
        assert_int_equal(g.n_reviews, 0);
    }
    end(&g);
}

/* One second is what a test may take. */
static void a_token_of_another_time_is_nobodys_and_no_review_is_spent_on_it(void **state)
{
    static const struct {
        const char *claim;
        int from_now_s;
        bool is_reviewed;
    } rows[] = {
        { "exp", -1, false }, { "exp", 60, true },  { "nbf", 62, false },
        { "nbf", 59, true },  { "nbf", -60, true }, { "iat", 3600, true },
    };
    struct guarded g;

    (void)state;
    begin(&g);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        KINF__AUTO_BUFFER authorization = KINF__BUFFER_INIT;
        struct kinf__request_head head;
        char claims[64];
        int code, len = snprintf(claims, sizeof claims, "{\"%s\":%" PRId64 "   }", rows[i].claim,
                                 kinf__clock_wall_ms() / 1000 + rows[i].from_now_s);

        /* Text of these letters has no other base64url, if it is not padded. */
        assert_int_equal(kinf__buffer_printf(&authorization, "Bearer e30."), 0);
        assert_int_equal(kinf__secret_append_base64(&authorization, claims, (size_t)len), 0);
        assert_int_equal(kinf__buffer_printf(&authorization, ".sig"), 0);
        head = head_of("GET", "/version", kinf__buffer_cstr(&authorization));
        code = code_of(&g, &head);
        assert_int_equal(code == 401, !rows[i].is_reviewed);
        assert_int_equal(g.n_reviews != 0, rows[i].is_reviewed);
    }
    end(&g);
}

static void an_answer_that_was_there_is_counted_apart_from_one_that_was_asked_for(void **state)
{
    struct kinf__request_head head = head_of("GET", "/version", "Bearer t");
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct guarded g;

    (void)state;
    begin(&g);
    set_authorizer(&g, 0);
    for (int i = 0; i < 3; i++) {
        struct kinf__exchange *exchange = exchange_of(&g, &head);

        assert_int_not_equal(answer_of(&g, exchange)->code, 401);
        kinf__exchange_free(exchange);
    }
    kinf__authorizer_free(g.authorizer);
    assert_int_equal(kinf__request_metrics_write(&g.server->request_metrics, &text), 0);
#define DECISIONS(review, n)                                                                       \
    "kinformer_access_decisions_total{review=\"" review "\",verdict=\"allowed\"} " n "\n"
    assert_non_null(strstr(kinf__buffer_cstr(&text), DECISIONS("made", "1")));
    assert_non_null(strstr(kinf__buffer_cstr(&text), DECISIONS("kept", "2")));
    end(&g);
}

/* Who asks for it is told to come again. */
static void when_too_many_wait_more_are_throttled(void **state)
{
    const struct kinf__authorizer_options options = { .max_inquiries = 1 };
    const struct kinf__request_head first_head = head_of("GET", "/version", "Bearer t");
    const struct kinf__request_head second_head = head_of("GET", "/metrics", "Bearer t");
    struct kinf__exchange *first, *second;
    const struct kinf__answer *answer;
    struct guarded g;

    (void)state;
    begin(&g);
    assert_int_equal(kinf__authorizer_new(&options, send_review, &g, &g.authorizer, NULL), 0);
    first = exchange_of(&g, &first_head);
    assert_null(kinf__exchange_step(first));
    second = exchange_of(&g, &second_head);
    answer = kinf__exchange_step(second);
    assert_non_null(answer);
    assert_int_equal(answer->code, 429);
    assert_int_equal(answer->retry_after_s, 1);
    assert_non_null(strstr(kinf__buffer_cstr((struct kinf__buffer *)&answer->body),
                           "\"too many reviews of credentials at once\""));
    assert_int_equal(g.n_reviews, 0);
    kinf__exchange_free(second);
    kinf__exchange_free(first);
    kinf__authorizer_free(g.authorizer);
    end(&g);
}

static void nobody_is_asked_about_in_anothers_name(void **state)
{
    static const struct kinf__header headers[] = { { "Authorization", "Bearer t" },
                                                   { "impersonate-USER", "admin" } };
    const struct kinf__request_head head =
        kinf__request_head_of("GET", KINF_STR("/api/v1/pods"), headers, 2);
    struct guarded g;

    (void)state;
    begin(&g);
    assert_int_equal(code_of(&g, &head), 403);
    assert_int_equal(g.n_reviews, 0);
    end(&g);
}

static void set_catalog(struct guarded *g)
{
    const struct kinf__catalog_entry entry = { .group = (char[]){ "" },
                                               .version = (char[]){ "v1" },
                                               .resource.name = (char[]){ "things" },
                                               .resource.singular = (char[]){ "thing" },
                                               .resource.kind = (char[]){ "Thing" },
                                               .resource.namespaced = true };
    struct kinf__catalog *catalog;

    assert_int_equal(kinf__catalog_new(&catalog), 0);
    assert_int_equal(kinf__catalog_add(catalog, &entry), 0);
    kinf__server_set_catalog(g->server, catalog);
}

/* A token that nobody looked at is no better than none. */
static void other_methods_do_not_tell_what_there_is(void **state)
{
    static const char *const targets[] = { "/api/v1/namespaces/n/things",
                                           "/api/v1/namespaces/n/nothings" };
    struct guarded g;

    (void)state;
    begin(&g);
    set_catalog(&g);
    for (size_t i = 0; i < KINF__ARRAY_LEN(targets); i++) {
        const struct kinf__request_head head = head_of("POST", targets[i], "Bearer t");

        assert_int_equal(code_of(&g, &head), 405);
    }
    end(&g);
}

/* --- watches --- */

static struct kinf__source *add_source(struct guarded *g, struct informer_fixture *f)
{
    struct kinf__source_options options = { 0 };
    struct kinf__source *source;

    informer_make(f, NULL);
    options.informer = f->informer;
    assert_int_equal(kinf__server_add_source(g->server, &options, &source, NULL), 0);
    kinf__server_publish_source(g->server, source);
    informer_start(f);
    feed_replace(f, "5", "a", "3", "b", "4");
    wait_synced(f);
    return source;
}

/* Until its end. Returns the number of events. */
static unsigned read_watch(struct guarded *g, struct kinf__stream *stream)
{
    unsigned n_lines = 0;
    char bytes[512];
    ssize_t n;

    while ((n = stream->read(stream, bytes, sizeof bytes)) != KINF__STREAM_END) {
        assert_true(n >= 0 || n == KINF__STREAM_LATER);
        for (ssize_t i = 0; i < n; i++)
            n_lines += bytes[i] == '\n';
        if (n == 0) {
            assert_true(kinf__waker_wait(&g->woken, PATIENCE_MS));
            kinf__waker_clear(&g->woken);
        }
    }
    return n_lines;
}

static void a_watch_ends_when_its_right_has_to_be_asked_for_again(void **state)
{
    const struct kinf__request_head head =
        head_of("GET", "/api/v1/namespaces/ns/things?watch=1&timeoutSeconds=3600", "Bearer t");
    struct kinf__exchange *exchange;
    struct kinf__source *source;
    const struct kinf__answer *answer;
    int64_t began_ms = kinf__clock_now_ms();
    struct guarded g;

    begin(&g);
    set_catalog(&g);
    source = add_source(&g, *state);
    set_authorizer(&g, 300);
    exchange = exchange_of(&g, &head);
    answer = answer_of(&g, exchange);
    assert_int_equal(answer->code, 200);
    assert_int_equal(read_watch(&g, answer->stream), 2);
    assert_true(kinf__clock_now_ms() - began_ms >= 300);
    kinf__exchange_free(exchange);
    kinf__authorizer_free(g.authorizer);
    kinf__server_retire_source(g.server, source);
    assert_int_equal(kinf_informer_stop(((struct informer_fixture *)*state)->informer, NULL), 0);
    kinf__source_free(source);
    end(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_asks_for_what_it_would_be_answered),
        cmocka_unit_test(a_path_in_disguise_is_not_found),
        cmocka_unit_test(without_one_token_nothing_is_asked_or_answered),
        cmocka_unit_test(a_token_of_another_time_is_nobodys_and_no_review_is_spent_on_it),
        cmocka_unit_test(an_answer_that_was_there_is_counted_apart_from_one_that_was_asked_for),
        cmocka_unit_test(when_too_many_wait_more_are_throttled),
        cmocka_unit_test(nobody_is_asked_about_in_anothers_name),
        cmocka_unit_test(other_methods_do_not_tell_what_there_is),
        INFORMER_TEST_IN_ORDER(a_watch_ends_when_its_right_has_to_be_asked_for_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
