/*
 * The table of requests: what is counted where, that nobody makes it grow, and its text.
 */
#include "serve/request_metrics.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "unit/allocation.h"
#include "unit/test.h"

#define MS 1000000

static void observe(struct kinf__request_metrics *metrics, enum kinf__request_verb verb,
                    const char *resource, int code, int64_t duration_ns)
{
    const struct kinf__request_outcome outcome = { verb, KINF__SOURCE_CACHE, resource, code,
                                                   duration_ns };

    kinf__request_metrics_observe(metrics, &outcome);
}

/* The value of a series, by its whole name with labels; -1: it is not there. */
static long value_of(const char *text, const char *series)
{
    size_t len = strlen(series);

    for (const char *at = text; (at = strstr(at, series)) != NULL; at += len) {
        if (at[len] == ' ' && (at == text || at[-1] == '\n'))
            return strtol(at + len + 1, NULL, 10);
    }
    return -1;
}

static long value(struct kinf__request_metrics *metrics, const char *series)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;

    assert_int_equal(kinf__request_metrics_write(metrics, &out), 0);
    return value_of(kinf__buffer_cstr(&out), series);
}

static size_t count_of(const char *text, const char *part)
{
    size_t n = 0;

    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        n++;
    return n;
}

static void requests_are_counted_by_verb_resource_source_and_code(void **state)
{
    struct kinf__request_metrics m;

    (void)state;
    kinf__request_metrics_init(&m);
    observe(&m, KINF__VERB_LIST, "pods", 200, 3 * MS);
    observe(&m, KINF__VERB_LIST, "pods", 200, 40 * MS);
    observe(&m, KINF__VERB_LIST, "pods", 403, MS / 2);
    observe(&m, KINF__VERB_DELETE_COLLECTION, "deployments.apps", 405, 20000ll * MS);
    observe(&m, KINF__VERB_GET, "", 200, 0);
#define TOTAL(verb, resource, code)                                                                \
    "kinformer_requests_total{verb=\"" verb "\",resource=\"" resource                              \
    "\",source=\"cache\",code=\"" code "\"}"
    assert_int_equal(value(&m, TOTAL("list", "pods", "200")), 2);
    assert_int_equal(value(&m, TOTAL("list", "pods", "403")), 1);
    assert_int_equal(value(&m, TOTAL("deletecollection", "deployments.apps", "405")), 1);
    assert_int_equal(value(&m, TOTAL("get", "", "200")), 1);
    assert_int_equal(value(&m, TOTAL("get", "pods", "200")), -1);
#define BUCKET(verb, resource, le)                                                                 \
    "kinformer_request_duration_seconds_bucket{verb=\"" verb "\",resource=\"" resource             \
    "\",source=\"cache\",le=\"" le "\"}"
    assert_int_equal(value(&m, BUCKET("list", "pods", "0.001")), 1);
    assert_int_equal(value(&m, BUCKET("list", "pods", "0.0025")), 1);
    assert_int_equal(value(&m, BUCKET("list", "pods", "0.005")), 2);
    assert_int_equal(value(&m, BUCKET("list", "pods", "0.05")), 3);
    assert_int_equal(value(&m, BUCKET("deletecollection", "deployments.apps", "10")), 0);
    assert_int_equal(value(&m, BUCKET("deletecollection", "deployments.apps", "+Inf")), 1);
    kinf__request_metrics_release(&m);
}

static void nobody_makes_the_table_grow(void **state)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct kinf__request_metrics m;
    const char *text;

    (void)state;
    kinf__request_metrics_init(&m);
    for (int i = 0; i < 5000; i++) {
        char resource[32];

        snprintf(resource, sizeof resource, "things%d", i);
        observe(&m, KINF__VERB_GET, resource, 200, MS);
        observe(&m, KINF__VERB_LIST, resource, 200, MS);
    }
    assert_in_range(m.n_rows, 512, KINF__REQUEST_ROWS);
    assert_int_equal(kinf__request_metrics_write(&m, &out), 0);
    text = kinf__buffer_cstr(&out);
    assert_int_equal(count_of(text, "kinformer_requests_total{"), m.n_rows);
    /* Who was there before goes on, all others are one. */
    assert_int_equal(value_of(text, TOTAL("get", "things0", "200")), 1);
    assert_int_equal(value_of(text, TOTAL("get", "things4999", "200")), -1);
    assert_int_equal(value_of(text, TOTAL("get", "other", "200")), 5000 - 256);
    assert_int_equal(value_of(text, TOTAL("list", "other", "200")), 5000 - 256);
    observe(&m, KINF__VERB_GET, "things0", 200, MS);
    assert_int_equal(value(&m, TOTAL("get", "things0", "200")), 2);
    kinf__request_metrics_release(&m);
}

static void every_verb_and_source_finds_a_row_in_a_full_table(void **state)
{
    struct kinf__request_metrics m;

    (void)state;
    kinf__request_metrics_init(&m);
    for (int i = 0; i < 2000; i++) {
        char resource[32];
        const struct kinf__request_outcome outcome = {
            .verb = (enum kinf__request_verb)(i % KINF__N_VERBS),
            .source = (enum kinf__request_source)(i % KINF__N_REQUEST_SOURCES),
            .resource = resource,
            .code = 200,
        };

        snprintf(resource, sizeof resource, "things%d", i);
        kinf__request_metrics_observe(&m, &outcome);
    }
    for (int verb = 0; verb < KINF__N_VERBS; verb++) {
        for (int source = 0; source < KINF__N_REQUEST_SOURCES; source++) {
            const struct kinf__request_outcome outcome = { (enum kinf__request_verb)verb,
                                                           (enum kinf__request_source)source,
                                                           "late", 200, 0 };

            kinf__request_metrics_observe(&m, &outcome);
        }
    }
    assert_int_equal(m.n_rows, KINF__REQUEST_ROWS);
    kinf__request_metrics_release(&m);
}

static void a_server_with_strange_codes_makes_no_row_grow(void **state)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct kinf__request_metrics m;
    const char *text;

    (void)state;
    kinf__request_metrics_init(&m);
    for (int code = 200; code < 300; code++)
        observe(&m, KINF__VERB_GET, "pods", code, MS);
    assert_int_equal(kinf__request_metrics_write(&m, &out), 0);
    text = kinf__buffer_cstr(&out);
    assert_int_equal(count_of(text, "kinformer_requests_total{"), KINF__REQUEST_CODES);
    assert_int_equal(value_of(text, TOTAL("get", "pods", "214")), 1);
    assert_int_equal(value_of(text, TOTAL("get", "pods", "other")), 100 - 15);
    kinf__request_metrics_release(&m);
}

static void decisions_are_counted_by_review_and_verdict(void **state)
{
    struct kinf__request_metrics m;

    (void)state;
    kinf__request_metrics_init(&m);
    kinf__request_metrics_note_decision(&m, false, KINF__VERDICT_ALLOWED);
    for (int i = 0; i < 3; i++)
        kinf__request_metrics_note_decision(&m, true, KINF__VERDICT_ALLOWED);
    kinf__request_metrics_note_decision(&m, false, KINF__VERDICT_FAILED);
#define DECISIONS(review, verdict)                                                                 \
    "kinformer_access_decisions_total{review=\"" review "\",verdict=\"" verdict "\"}"
    assert_int_equal(value(&m, DECISIONS("made", "allowed")), 1);
    assert_int_equal(value(&m, DECISIONS("kept", "allowed")), 3);
    assert_int_equal(value(&m, DECISIONS("made", "failed")), 1);
    assert_int_equal(value(&m, DECISIONS("kept", "denied")), 0);
    kinf__request_metrics_release(&m);
}

static void without_memory_nothing_is_counted_and_nothing_breaks(void **state)
{
    struct kinf__request_metrics m;
    size_t n = 0;

    (void)state;
    kinf__request_metrics_init(&m);
    do {
        test_fail_allocation(++n);
        observe(&m, KINF__VERB_GET, "pods", 200, MS);
    } while (test_allocation_failed());
    assert_int_equal(m.n_rows, 1);
    assert_int_equal(value(&m, TOTAL("get", "pods", "200")), 1);
    kinf__request_metrics_release(&m);
}

/* --- threads --- */

#define N_THREADS 4

static void *observe_many(void *ctx)
{
    struct kinf__request_metrics *metrics = ctx;

    for (int i = 0; i < 500; i++) {
        char resource[32];

        snprintf(resource, sizeof resource, "things%d", i % 7);
        observe(metrics, KINF__VERB_GET, resource, 200 + i % 3, MS);
        kinf__request_metrics_note_decision(metrics, true, KINF__VERDICT_ALLOWED);
    }
    return NULL;
}

static void threads_count_while_another_reads(void **state)
{
    struct kinf__request_metrics m;
    pthread_t threads[N_THREADS];
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    long sum = 0;

    (void)state;
    kinf__request_metrics_init(&m);
    for (size_t i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, observe_many, &m), 0);
    for (int i = 0; i < 20; i++)
        assert_in_range(value(&m, DECISIONS("kept", "allowed")), 0, N_THREADS * 500);
    for (size_t i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(kinf__request_metrics_write(&m, &out), 0);
    for (const char *at = kinf__buffer_cstr(&out);
         (at = strstr(at, "kinformer_request_duration_seconds_count{")) != NULL; at++)
        sum += strtol(strchr(at, ' '), NULL, 10);
    assert_int_equal(sum, N_THREADS * 500);
    kinf__request_metrics_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_counted_by_verb_resource_source_and_code),
        cmocka_unit_test(nobody_makes_the_table_grow),
        cmocka_unit_test(every_verb_and_source_finds_a_row_in_a_full_table),
        cmocka_unit_test(a_server_with_strange_codes_makes_no_row_grow),
        cmocka_unit_test(decisions_are_counted_by_review_and_verdict),
        cmocka_unit_test(without_memory_nothing_is_counted_and_nothing_breaks),
        cmocka_unit_test(threads_count_while_another_reads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
