/*
 * Metrics: the text form, read back by a strict parser, the histogram, and what informers say.
 */
#include "base/metrics.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kinformer/metrics.h>

#include "unit/allocation.h"
#include "unit/informer_fixture.h"
#include "unit/test.h"

/* --- a strict parser --- */

#define MAX_SERIES 1024
#define MAX_FAMILY 64

struct series {
    char name[512]; /* with its labels, as written, less le */
    char le[16];    /* "": none */
    char value[32];
};

struct text {
    struct series series[MAX_SERIES];
    size_t n_series;
    char families[MAX_FAMILY][64];
    char types[MAX_FAMILY][16];
    size_t n_families;
    const char *error; /* NULL: well formed */
};

static bool is_name_byte(char c, bool is_first)
{
    return isalpha((unsigned char)c) || c == '_' || c == ':' ||
           (!is_first && isdigit((unsigned char)c));
}

static size_t name_len(const char *at)
{
    size_t len = 0;

    while (is_name_byte(at[len], len == 0))
        len++;
    return len;
}

/* Of `at`, which is "name="value"; 0: malformed. */
static size_t label_len(const char *at)
{
    size_t len = name_len(at);

    if (len == 0 || at[len] != '=' || at[len + 1] != '"')
        return 0;
    for (len += 2; at[len] != '"'; len++) {
        if (at[len] == '\0' || at[len] == '\n')
            return 0;
        if (at[len] == '\\' && strchr("\\\"n", at[++len]) == NULL)
            return 0;
    }
    return len + 1;
}

static void read_le(struct series *series, const char *at, size_t len)
{
    snprintf(series->le, sizeof series->le, "%.*s", (int)(len - 5), at + 4);
}

/* Returns what is behind the labels; NULL: malformed. */
static const char *read_labels(struct series *series, const char *at)
{
    size_t used = strlen(series->name);

    if (*at != '{')
        return at;
    do {
        size_t len = label_len(++at);

        if (len == 0)
            return NULL;
        if (strncmp(at, "le=", 3) == 0)
            read_le(series, at, len);
        else
            used += (size_t)snprintf(series->name + used, sizeof series->name - used, "{%.*s}",
                                     (int)len, at);
        at += len;
    } while (*at == ',');
    return *at == '}' ? at + 1 : NULL;
}

static bool is_number(const char *text)
{
    size_t n_digits = strspn(text, "0123456789");

    if (n_digits == 0)
        return false;
    text += n_digits;
    return *text == '\0' ||
           (*text == '.' && text[1] != '\0' && strspn(text + 1, "0123456789") == strlen(text + 1));
}

static bool is_of_family(const char *name, size_t len, const char *family, const char *type)
{
    static const char *const suffixes[] = { "_bucket", "_sum", "_count" };
    size_t family_len = strlen(family);

    if (len < family_len || strncmp(name, family, family_len) != 0)
        return false;
    if (strcmp(type, "histogram") != 0)
        return len == family_len;
    for (size_t i = 0; i < KINF__ARRAY_LEN(suffixes); i++) {
        if (len == family_len + strlen(suffixes[i]) &&
            strncmp(name + family_len, suffixes[i], strlen(suffixes[i])) == 0)
            return true;
    }
    return false;
}

static const char *read_sample(struct text *text, const char *line)
{
    struct series *series = &text->series[text->n_series];
    size_t len = name_len(line), last = text->n_families - 1;
    const char *at;

    if (text->n_families == 0 || text->types[last][0] == '\0')
        return "a sample before its HELP and TYPE";
    if (len == 0 || !is_of_family(line, len, text->families[last], text->types[last]))
        return "a sample of another family";
    *series = (struct series){ .name = "" };
    snprintf(series->name, sizeof series->name, "%.*s", (int)len, line);
    at = read_labels(series, line + len);
    if (at == NULL)
        return "bad labels";
    if (*at != ' ' || !is_number(at + 1))
        return "bad value";
    snprintf(series->value, sizeof series->value, "%s", at + 1);
    for (size_t i = 0; i < text->n_series; i++) {
        if (strcmp(text->series[i].name, series->name) == 0 &&
            strcmp(text->series[i].le, series->le) == 0)
            return "a series twice";
    }
    text->n_series++;
    return NULL;
}

static const char *read_help(struct text *text, const char *at)
{
    size_t len = name_len(at);
    char *family = text->families[text->n_families];

    if (len == 0 || at[len] != ' ' || at[len + 1] == '\0')
        return "bad HELP";
    snprintf(family, sizeof text->families[0], "%.*s", (int)len, at);
    for (size_t i = 0; i < text->n_families; i++) {
        if (strcmp(text->families[i], family) == 0)
            return "a family twice";
    }
    text->types[text->n_families++][0] = '\0';
    return NULL;
}

static const char *read_type(struct text *text, const char *at)
{
    size_t len = name_len(at), last = text->n_families - 1;

    if (text->n_families == 0 || strncmp(text->families[last], at, len) != 0 ||
        text->families[last][len] != '\0' || text->types[last][0] != '\0' || at[len] != ' ')
        return "TYPE without its HELP";
    at += len + 1;
    if (strcmp(at, "counter") != 0 && strcmp(at, "gauge") != 0 && strcmp(at, "histogram") != 0)
        return "bad TYPE";
    snprintf(text->types[last], sizeof text->types[0], "%s", at);
    return NULL;
}

static const char *read_line(struct text *text, const char *line)
{
    if (strncmp(line, "# HELP ", 7) == 0)
        return read_help(text, line + 7);
    if (strncmp(line, "# TYPE ", 7) == 0)
        return read_type(text, line + 7);
    return read_sample(text, line);
}

/* Buckets rise, the last is +Inf, and is the count, which comes two lines on. */
static const char *check_histograms(const struct text *text)
{
    for (size_t i = 0; i < text->n_series; i++) {
        const struct series *series = &text->series[i];
        const struct series *next = &text->series[i + 1];

        if (series->le[0] == '\0')
            continue;
        if (strcmp(series->le, "+Inf") == 0) {
            if (i + 2 >= text->n_series || strstr(next[0].name, "_sum") == NULL ||
                strstr(next[1].name, "_count") == NULL || strcmp(next[1].value, series->value) != 0)
                return "a histogram without its sum and count";
        } else if (i + 1 == text->n_series || strcmp(next->name, series->name) != 0 ||
                   atoll(next->value) < atoll(series->value) ||
                   (strcmp(next->le, "+Inf") != 0 && atof(next->le) <= atof(series->le))) {
            return "buckets that do not rise";
        }
    }
    return NULL;
}

static void parse(struct text *text, const char *bytes)
{
    char line[1024];

    *text = (struct text){ .n_series = 0 };
    while (*bytes != '\0' && text->error == NULL) {
        size_t len = strcspn(bytes, "\n");

        if (bytes[len] != '\n' || len >= sizeof line) {
            text->error = "no end of line";
            return;
        }
        snprintf(line, sizeof line, "%.*s", (int)len, bytes);
        text->error = read_line(text, line);
        bytes += len + 1;
    }
    if (text->error == NULL)
        text->error = check_histograms(text);
}

static const char *value_of(const struct text *text, const char *name)
{
    for (size_t i = 0; i < text->n_series; i++) {
        if (strcmp(text->series[i].name, name) == 0 && text->series[i].le[0] == '\0')
            return text->series[i].value;
    }
    fail_msg("no series %s", name);
    return NULL;
}

static void the_parser_refuses_what_is_malformed(void **state)
{
    static const char *const malformed[] = {
        "a 1\n",
        "# HELP a x\na 1\n",
        "# HELP a x\n# TYPE b gauge\n",
        "# HELP a x\n# TYPE a meter\n",
        "# HELP a x\n# TYPE a gauge\nb 1\n",
        "# HELP a x\n# TYPE a gauge\na 1",
        "# HELP a x\n# TYPE a gauge\na 1,5\n",
        "# HELP a x\n# TYPE a gauge\na{l=\"\\x\"} 1\n",
        "# HELP a x\n# TYPE a gauge\na{l=\"v} 1\n",
        "# HELP a x\n# TYPE a gauge\na 1\na 2\n",
        "# HELP a x\n# TYPE a gauge\na 1\n# HELP a x\n# TYPE a gauge\n",
        "# HELP a x\n# TYPE a histogram\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\n",
        "# HELP a x\n# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 2\n",
    };
    struct text *text = malloc(sizeof *text);

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < KINF__ARRAY_LEN(malformed); i++) {
        parse(text, malformed[i]);
        if (text->error == NULL)
            fail_msg("taken for well formed: %s", malformed[i]);
    }
    free(text);
}

/* --- writing --- */

static void labels_and_help_are_escaped(void **state)
{
    const struct kinf__label labels[] = { { "path", "C:\\a\n\"b\"" }, { "empty", "" } };
    KINF__AUTO_BUFFER buffer = KINF__BUFFER_INIT;

    (void)state;
    assert_int_equal(kinf__metrics_family(&buffer, "m", KINF__METRIC_GAUGE, "back\\slash\n\"q\""),
                     0);
    assert_int_equal(kinf__metrics_sample(&buffer, "m", labels, 2, 7, 0), 0);
    assert_int_equal(kinf__metrics_sample(&buffer, "m", NULL, 0, 1005, 3), 0);
    assert_string_equal(kinf__buffer_cstr(&buffer), "# HELP m back\\\\slash\\n\"q\"\n"
                                                    "# TYPE m gauge\n"
                                                    "m{path=\"C:\\\\a\\n\\\"b\\\"\",empty=\"\"} 7\n"
                                                    "m 1.005\n");
}

static void histogram_counts_durations_up_to_each_bound(void **state)
{
    struct kinf__histogram histogram = { .sum_ns = 0 };
    KINF__AUTO_BUFFER buffer = KINF__BUFFER_INIT;

    (void)state;
    kinf__histogram_observe(&histogram, 0);
    kinf__histogram_observe(&histogram, 1000000);
    kinf__histogram_observe(&histogram, 1000001);
    kinf__histogram_observe(&histogram, 10000000001);
    assert_int_equal(kinf__metrics_histogram(&buffer, "h", NULL, 0, &histogram), 0);
    assert_string_equal(kinf__buffer_cstr(&buffer), "h_bucket{le=\"0.001\"} 2\n"
                                                    "h_bucket{le=\"0.0025\"} 3\n"
                                                    "h_bucket{le=\"0.005\"} 3\n"
                                                    "h_bucket{le=\"0.01\"} 3\n"
                                                    "h_bucket{le=\"0.025\"} 3\n"
                                                    "h_bucket{le=\"0.05\"} 3\n"
                                                    "h_bucket{le=\"0.1\"} 3\n"
                                                    "h_bucket{le=\"0.25\"} 3\n"
                                                    "h_bucket{le=\"0.5\"} 3\n"
                                                    "h_bucket{le=\"1\"} 3\n"
                                                    "h_bucket{le=\"2.5\"} 3\n"
                                                    "h_bucket{le=\"5\"} 3\n"
                                                    "h_bucket{le=\"10\"} 3\n"
                                                    "h_bucket{le=\"+Inf\"} 4\n"
                                                    "h_sum 10.002000002\n"
                                                    "h_count 4\n");
}

/* --- of informers --- */

static void run_with_a_handler(struct informer_fixture *f)
{
    informer_make(f, NULL);
    informer_add(f, &f->recorders[0]);
    informer_start(f);
    feed_replace(f, "12345678901234567", "x", "1", "y", "2");
    wait_synced(f);
    recorder_wait_for(&f->recorders[0], "synced");
}

#define LATENCY_COUNT "informer_processing_latency_seconds_count{"
#define LABELS        "{name=\"main\"}{group=\"\"}{version=\"v1\"}{resource=\"things\"}"

/* The metrics of an informer whose last event was this deletion; the caller frees them. */
static struct text *text_behind_deletion(struct informer_fixture *f, const char *version)
{
    struct kinf_metrics_source source = { .name = "main" };
    struct text *text = malloc(sizeof *text);
    char *bytes = NULL, told[64];

    assert_non_null(text);
    run_with_a_handler(f);
    feed_delete(f, "x", version);
    snprintf(told, sizeof told, "delete x@%s", version);
    recorder_wait_for(&f->recorders[0], told);
    source.informer = f->informer;
    assert_int_equal(kinf_metrics_text(&source, 1, &bytes, NULL), 0);
    parse(text, bytes);
    if (text->error != NULL)
        fail_msg("%s:\n%s", text->error, bytes);
    free(bytes);
    return text;
}

static void informers_say_what_they_know(void **state)
{
    struct text *text = text_behind_deletion(*state, "98765432109876543");

    assert_string_equal(value_of(text, "informer_store_resource_version" LABELS),
                        "765432109876543");
    assert_string_equal(value_of(text, "kinformer_objects" LABELS), "1");
    assert_string_equal(value_of(text, "kinformer_handlers" LABELS), "1");
    assert_string_equal(value_of(text, "kinformer_synced" LABELS), "1");
    assert_string_equal(value_of(text, "kinformer_handler_merged_total" LABELS "{handler=\"1\"}"),
                        "0");
    assert_string_equal(value_of(text, "kinformer_state" LABELS "{state=\"stopped\"}"), "0");
    free(text);
}

/* It is opaque, as the protocol has it. */
static void a_version_that_is_no_number_is_0(void **state)
{
    struct text *text = text_behind_deletion(*state, "8x");

    assert_string_equal(value_of(text, "informer_store_resource_version" LABELS), "0");
    free(text);
}

/* Exactly one state is 1, also when there are several informers, in the order that was asked. Each
 * family has all of them. */
static void each_informer_is_in_one_state(void **state)
{
    struct informer_fixture *f = *state;
    struct kinf_metrics_source sources[2] = { { .name = "one" }, { .name = "two" } };
    const struct kinf_informer_options none = KINF_INFORMER_OPTIONS_INIT;
    struct text *text = malloc(sizeof *text);
    char *bytes = NULL;
    size_t n_in[2] = { 0, 0 }, n_latencies = 0, n_objects = 0;

    assert_non_null(text);
    run_with_a_handler(f);
    sources[0].informer = f->informer;
    assert_int_equal(kinf__informer_new_for_type(NULL, things(), &none, &sources[1].informer, NULL),
                     0);
    assert_int_equal(kinf_informer_stop(sources[1].informer, NULL), 0);
    assert_int_equal(kinf_metrics_text(sources, 2, &bytes, NULL), 0);
    parse(text, bytes);
    assert_null(text->error);
    for (size_t i = 0; i < text->n_series; i++) {
        if (strncmp(text->series[i].name, "kinformer_state{", 16) == 0)
            n_in[strstr(text->series[i].name, "\"two\"") != NULL] +=
                strcmp(text->series[i].value, "1") == 0;
        n_latencies += strncmp(text->series[i].name, LATENCY_COUNT, strlen(LATENCY_COUNT)) == 0;
        n_objects += strncmp(text->series[i].name, "kinformer_objects{", 18) == 0;
    }
    assert_int_equal(n_latencies, 2);
    assert_int_equal(n_objects, 2);
    assert_int_equal(n_in[0], 1);
    assert_int_equal(n_in[1], 1);
    kinf_informer_free(sources[1].informer);
    free(bytes);
    free(text);
}

static void two_informers_of_one_name_and_type_are_refused(void **state)
{
    struct informer_fixture *f = *state;
    struct kinf_metrics_source sources[2] = { { .name = "main" }, { .name = "main" } };
    struct kinf_error err = KINF_ERROR_INIT;
    char *bytes = NULL;

    informer_make(f, NULL);
    sources[0].informer = f->informer;
    sources[1].informer = f->informer;
    assert_int_equal(kinf_metrics_text(sources, 2, &bytes, &err), KINF_ERR_EXISTS);
    assert_string_equal(err.message, "two informers of things are named 'main'");
    assert_null(bytes);
    assert_int_equal(kinf_metrics_text(NULL, 0, &bytes, &err), 0);
    assert_non_null(strstr(bytes, "# TYPE kinformer_state gauge\n"));
    free(bytes);
}

/* The processing of items is timed, also in metrics of an informer that has stopped. */
static void latency_counts_every_item(void **state)
{
    struct informer_fixture *f = *state;
    struct kinf_metrics_source source = { .name = "main" };
    struct text *text = malloc(sizeof *text);
    char *bytes = NULL;

    assert_non_null(text);
    run_with_a_handler(f);
    source.informer = f->informer;
    assert_int_equal(kinf_informer_stop(f->informer, NULL), 0);
    assert_int_equal(kinf_metrics_text(&source, 1, &bytes, NULL), 0);
    parse(text, bytes);
    assert_null(text->error);
    assert_string_equal(value_of(text, "informer_processing_latency_seconds_count" LABELS), "2");
    assert_string_equal(value_of(text, "informer_queued_items" LABELS), "0");
    free(bytes);
    free(text);
}

static void *read_main(void *ctx)
{
    const struct kinf_metrics_source *source = ctx;
    struct text *text = malloc(sizeof *text);
    const char *error = text == NULL ? "no memory" : NULL;

    for (size_t n = test_rounds(200); n > 0 && error == NULL; n--) {
        char *bytes = NULL, *dump = NULL;

        if (kinf_metrics_text(source, 1, &bytes, NULL) < 0 ||
            kinf_informer_dump(source->informer, &dump, NULL) < 0)
            error = "no text";
        else
            parse(text, bytes);
        error = error != NULL ? error : text->error;
        free(dump);
        free(bytes);
    }
    free(text);
    return (void *)error;
}

static void metrics_may_be_read_while_everything_moves(void **state)
{
    struct informer_fixture *f = *state;
    struct kinf_metrics_source source = { .name = "main" };
    const struct kinf_handler handler = { .backlog = KINF_BACKLOG_COALESCE };
    pthread_t thread;
    kinf_handler_id id;
    char rv[16];
    void *error;

    run_with_a_handler(f);
    source.informer = f->informer;
    assert_int_equal(pthread_create(&thread, NULL, read_main, &source), 0);
    for (size_t i = 0; i < test_rounds(400); i++) {
        snprintf(rv, sizeof rv, "%zu", i + 3);
        feed_update(f, "x", rv);
        if (i % 8 == 0) {
            assert_int_equal(kinf_informer_add_handler(f->informer, &handler, &id, NULL), 0);
            kinf_informer_remove_handler(f->informer, id);
        }
    }
    assert_int_equal(kinf_informer_stop(f->informer, NULL), 0);
    assert_int_equal(pthread_join(thread, &error), 0);
    if (error != NULL)
        fail_msg("%s", (const char *)error);
}

static void dump_tells_state_queue_and_handlers(void **state)
{
    struct informer_fixture *f = *state;
    struct kinf_handler handler = { .backlog = KINF_BACKLOG_COALESCE, .is_dispatched = true };
    kinf_handler_id id;
    char *text = NULL, line[128];

    run_with_a_handler(f);
    assert_int_equal(kinf_informer_add_handler(f->informer, &handler, &id, NULL), 0);
    assert_int_equal(kinf_informer_dump(f->informer, &text, NULL), 0);
    assert_non_null(strstr(text, "informer resource=things group= version=v1 namespace= "));
    assert_non_null(strstr(text, "\nstore resource_version=2\n"));
    assert_non_null(strstr(text, "\ninformer_queued_items 0\n"));
    assert_non_null(strstr(text, "\nkinformer_objects 2\n"));
    assert_non_null(strstr(text, " backlog=unbounded dispatched=0 synced="));
    snprintf(line, sizeof line,
             "\nhandler id=%llu backlog=coalesce dispatched=1 synced=0 waiting=3 oldest_ms=",
             (unsigned long long)id);
    assert_non_null(strstr(text, line));
    free(text);
}

static void handler_status_is_found_by_id(void **state)
{
    struct informer_fixture *f = *state;
    struct kinf_handler_status status = { .n_waiting = 7 };
    struct kinf_error err = KINF_ERROR_INIT;

    run_with_a_handler(f);
    assert_int_equal(kinf_informer_handler_status(f->informer, f->recorders[0].id, &status, &err),
                     0);
    assert_int_equal(status.backlog, KINF_BACKLOG_UNBOUNDED);
    assert_int_equal(kinf_informer_handler_status(f->informer, 99, &status, &err),
                     KINF_ERR_NOT_FOUND);
    assert_string_equal(err.message, "things: no handler 99");
}

static void text_without_memory_is_an_error_and_leaks_nothing(void **state)
{
    struct informer_fixture *f = *state;
    struct kinf_metrics_source source = { .name = "main" };
    char *bytes = NULL;

    run_with_a_handler(f);
    source.informer = f->informer;
    for (size_t n = 1;; n++) {
        int rc;

        test_fail_allocation(n);
        rc = kinf_metrics_text(&source, 1, &bytes, NULL);
        if (!test_allocation_failed()) {
            assert_int_equal(rc, 0);
            assert_true(n > 3);
            break;
        }
        assert_int_equal(rc, KINF_ERR_NO_MEMORY);
        assert_null(bytes);
    }
    free(bytes);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, informer_setup, informer_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parser_refuses_what_is_malformed),
        cmocka_unit_test(labels_and_help_are_escaped),
        cmocka_unit_test(histogram_counts_durations_up_to_each_bound),
        TEST(informers_say_what_they_know),
        TEST(a_version_that_is_no_number_is_0),
        TEST(each_informer_is_in_one_state),
        TEST(two_informers_of_one_name_and_type_are_refused),
        TEST(latency_counts_every_item),
        TEST(metrics_may_be_read_while_everything_moves),
        TEST(dump_tells_state_queue_and_handlers),
        TEST(handler_status_is_found_by_id),
        TEST(text_without_memory_is_an_error_and_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
