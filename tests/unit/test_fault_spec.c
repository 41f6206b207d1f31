/*
 * Lines of faults: what they mean, what is refused, which requests they select, and how often.
 */
#include "fault/fault_spec.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "unit/test.h"

static struct kinf__fault_spec parsed;

static const struct kinf__fault_spec *parse(const char *line)
{
    struct kinf_error err = KINF_ERROR_INIT;

    if (kinf__fault_spec_parse(line, &parsed, &err) < 0)
        fail_msg("%s: %s", line, err.message);
    assert_string_equal(parsed.text, line);
    return &parsed;
}

static void faults_have_their_arguments(void **state)
{
    static const struct {
        const char *line;
        struct kinf__fault_effect effect;
    } rows[] = {
        { "list pods 410", { .kind = KINF__FAULT_CODE, .code = 410 } },
        { "* * 429 retry-after=7", { .kind = KINF__FAULT_CODE, .code = 429, .retry_after_s = 7 } },
        { "* * 503 as=html",
          { .kind = KINF__FAULT_CODE, .code = 503, .form = KINF__FAULT_AS_HTML } },
        { "* * 503 as=text late",
          { .kind = KINF__FAULT_CODE, .code = 503, .form = KINF__FAULT_AS_TEXT, .is_late = true } },
        { "* * login", { .kind = KINF__FAULT_LOGIN, .code = 410 } },
        { "* * hang", { .kind = KINF__FAULT_HANG, .code = 410, .time_ms = KINF__NEVER_MS } },
        { "* * hang=5s late",
          { .kind = KINF__FAULT_HANG, .code = 410, .time_ms = 5000, .is_late = true } },
        { "write * cut early", { .kind = KINF__FAULT_CUT, .code = 410, .is_early = true } },
        { "watch pods reset after=4000",
          { .kind = KINF__FAULT_RESET, .code = 410, .after = 4000 } },
        { "watch * close after=3events",
          { .kind = KINF__FAULT_CLOSE, .code = 410, .unit = KINF__FAULT_EVENTS, .after = 3 } },
        { "watch * cut at=1event",
          { .kind = KINF__FAULT_CUT, .code = 410, .unit = KINF__FAULT_EVENTS, .after = 1 } },
        { "watch * stall=2s after=1m",
          { .kind = KINF__FAULT_STALL,
            .code = 410,
            .unit = KINF__FAULT_MS,
            .after = 60000,
            .time_ms = 2000 } },
        { "list pods truncate at=64K",
          { .kind = KINF__FAULT_CLOSE, .code = 410, .after = 64 << 10 } },
        { "watch pods flip at=300 every=2",
          { .kind = KINF__FAULT_FLIP, .code = 410, .after = 300 } },
        { "* * drip=10/100ms",
          { .kind = KINF__FAULT_DRIP, .code = 410, .n_bytes = 10, .time_ms = 100 } },
        { "* * gzip=20", { .kind = KINF__FAULT_GZIP, .code = 410, .n_bytes = 20 } },
        { "list pods grow=5M", { .kind = KINF__FAULT_GROW, .code = 410, .n_bytes = 5 << 20 } },
        { "watchlist pods refuse=422",
          { .kind = KINF__FAULT_REFUSE, .code = 410, .shape = KINF__FAULT_GATE_OFF } },
        { "watch pods bookmark=old",
          { .kind = KINF__FAULT_BOOKMARK, .code = 410, .shape = KINF__FAULT_BOOKMARK_OLD } },
        { "watch pods error=500 after=2events",
          { .kind = KINF__FAULT_ERROR, .code = 500, .unit = KINF__FAULT_EVENTS, .after = 2 } },
        { "\twatch  pods   twice ", { .kind = KINF__FAULT_TWICE, .code = 410 } },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        const struct kinf__fault_effect *is = &parse(rows[i].line)->effect,
                                        *wants = &rows[i].effect;

        if (is->kind != wants->kind || is->code != wants->code || is->unit != wants->unit ||
            is->after != wants->after || is->shape != wants->shape || is->form != wants->form ||
            is->retry_after_s != wants->retry_after_s || is->is_late != wants->is_late ||
            is->is_early != wants->is_early ||
            (wants->n_bytes != 0 && is->n_bytes != wants->n_bytes) ||
            (wants->time_ms != 0 && is->time_ms != wants->time_ms))
            fail_msg("%s: something else", rows[i].line);
    }
}

static void what_means_nothing_is_refused_with_the_word(void **state)
{
    static const struct {
        const char *line;
        const char *message;
    } rows[] = {
        { "", "a fault is: VERBS RESOURCES FAULT" },
        { "list pods", "a fault is: VERBS RESOURCES FAULT" },
        { "lst pods 500", "there is no verb \"lst\"" },
        { "list, pods 500", "there is no verb \"\"" },
        { "list ,pods 500", "\",pods\" is no list of resources" },
        { "list path=api 500", "\"path=api\" is no list of resources" },
        { "list pods 200", "there is no fault \"200\"" },
        { "list pods 600", "there is no fault \"600\"" },
        { "list pods explode", "there is no fault \"explode\"" },
        { "list pods reset=1", "fault reset: not with 1" },
        { "list pods drip", "fault drip: a value is missing" },
        { "list pods drip=0/1s", "fault drip: not with 0/1s" },
        { "list pods drip=1", "fault drip: not with 1" },
        { "list pods grow=1G", "fault grow: not with 1G" },
        { "list pods gzip=0", "fault gzip: not with 0" },
        { "list pods stall=-1s", "fault stall: not with -1s" },
        { "list pods twice", "fault twice: not of these verbs" },
        { "watch pods refuse=418", "fault refuse: not with 418" },
        { "list pods refuse=422", "fault refuse: not of these verbs" },
        { "list pods reset after=", "fault reset: not with after=" },
        { "list pods reset after", "fault reset: not with after" },
        { "list pods reset after=3evens", "fault reset: not with after=3evens" },
        { "list pods reset after=99999999999999999999",
          "fault reset: not with after=99999999999999999999" },
        { "watch pods error after=9", "fault error: not with after=9" },
        { "list pods flip after=1s", "fault flip: not with after=1s" },
        { "list pods 410 after=1", "fault CODE: not with after=1" },
        { "list pods reset late", "fault reset: not with late" },
        { "list pods 410 late=1", "fault CODE: not with late=1" },
        { "list pods 410 early", "fault CODE: not with early" },
        { "list !pods 410", "\"!pods\" is no list of resources" },
        { "list pods reset as=html", "fault reset: not with as=html" },
        { "list pods 410 as=yaml", "fault CODE: not with as=yaml" },
        { "list pods 410 retry-after=0", "fault CODE: not with retry-after=0" },
        { "list pods 410 p=2", "fault CODE: not with p=2" },
        { "list pods 410 p=nan", "fault CODE: not with p=nan" },
        { "list pods 410 p=", "fault CODE: not with p=" },
        { "list pods 410 every=0", "fault CODE: not with every=0" },
        { "list pods 410 times=x", "fault CODE: not with times=x" },
        { "list pods 410 name=", "fault CODE: not with name=" },
        { "list pods 410 for=ever", "fault CODE: not with for=ever" },
        { "list pods 410 color=red", "there is no option \"color\"" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf_error err = KINF_ERROR_INIT;

        assert_int_equal(kinf__fault_spec_parse(rows[i].line, &parsed, &err), KINF_ERR_PARSE);
        assert_string_equal(err.message, rows[i].message);
    }
}

static void a_line_has_an_end(void **state)
{
    char line[KINF__FAULT_SPEC_SIZE + 1];

    (void)state;
    memset(line, ' ', sizeof line);
    memcpy(line, "list pods 410", 13);
    line[KINF__FAULT_SPEC_SIZE - 1] = '\0';
    (void)parse(line);
    line[KINF__FAULT_SPEC_SIZE - 1] = ' ';
    line[KINF__FAULT_SPEC_SIZE] = '\0';
    assert_int_equal(kinf__fault_spec_parse(line, &parsed, NULL), KINF_ERR_PARSE);
}

/* --- selection --- */

static struct kinf__fault_subject subject_of(enum kinf__fault_verb verb, const char *group,
                                             const char *resource, const char *name,
                                             const char *subresource)
{
    return (struct kinf__fault_subject){ verb,  "/apis/apps/v1/x", resource,
                                         group, subresource,       "shop",
                                         name,  "kubectl/v1.37" };
}

static void lines_select_by_verb_resource_and_caller(void **state)
{
    const struct kinf__fault_subject list = subject_of(KINF__FAULT_LIST, "", "pods", "", ""),
                                     get = subject_of(KINF__FAULT_GET, "", "pods", "web", ""),
                                     status = subject_of(KINF__FAULT_UPDATE, "", "pods", "web",
                                                         "status"),
                                     deployments = subject_of(KINF__FAULT_WATCH_LIST, "apps",
                                                              "deployments", "", ""),
                                     path = subject_of(KINF__FAULT_GET, "apps", "", "", "");
    static const struct {
        const char *line;
        unsigned selected; /* a bit for each of the five */
    } rows[] = {
        { "* * 500", 15 },
        { "any * 500", 15 },
        { "* path=/apis/apps 500", 31 },
        { "get path=/ 500", 18 },
        { "* path=/api/ 500", 0 },
        { "list pods 500", 1 },
        { "read pods 500", 3 },
        { "write * 500", 4 },
        { "* pods 500", 3 },
        { "* pod 500", 0 },
        { "* pods. 500", 3 },
        { "* pods.apps 500", 0 },
        { "* *.apps 500", 8 },
        { "* deployments 500", 8 },
        { "* deployments.apps 500", 8 },
        { "* deployments.app 500", 0 },
        { "* pods,deployments 500", 11 },
        { "* secrets,pods 500", 3 },
        { "* *,!pods 500", 12 },
        { "* *,!*.apps,!pods/* 500", 3 },
        { "* *,!*,pods 500", 3 },
        { "* pods/status 500", 4 },
        { "* pods/* 500", 4 },
        { "* */status 500", 4 },
        { "get pods/web 500", 2 },
        { "get,update pods,pods/status 500", 6 },
        { "watch * 500", 8 },
        { "watchlist * 500", 8 },
        { "* * 500 namespace=shop", 15 },
        { "* * 500 namespace=sho", 0 },
        { "* * 500 name=web", 6 },
        { "* * 500 user-agent=kubectl", 15 },
        { "* * 500 user-agent=curl", 0 },
        { "* * empty", 1 },
        { "* * grow=1", 3 },
        { "* * bookmark=none", 8 },
    };
    const struct kinf__fault_subject *const subjects[] = { &list, &get, &status, &deployments,
                                                           &path };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        unsigned selected = 0;

        (void)parse(rows[i].line);
        for (unsigned k = 0; k < KINF__ARRAY_LEN(subjects); k++)
            selected |= (unsigned)kinf__fault_spec_selects(&parsed, subjects[k]) << k;
        if (selected != rows[i].selected)
            fail_msg("%s: selects %u and not %u", rows[i].line, selected, rows[i].selected);
    }
}

static void a_watch_is_no_watch_list(void **state)
{
    const struct kinf__fault_subject watch = subject_of(KINF__FAULT_WATCH, "", "pods", "", "");

    (void)state;
    assert_true(kinf__fault_spec_selects(parse("watch pods 500"), &watch));
    assert_false(kinf__fault_spec_selects(parse("watchlist pods 500"), &watch));
    assert_false(kinf__fault_spec_selects(parse("watch pods refuse=422"), &watch));
}

/* --- how often --- */

/* Which of the first requests fail: "..x" */
static const char *pattern(const char *line, size_t n, uint64_t seed)
{
    static char text[1001];
    uint64_t n_hits = 0;

    (void)parse(line);
    for (size_t i = 0; i < n; i++) {
        bool is_due = kinf__fault_spec_is_due(&parsed, i + 1, n_hits, seed);

        n_hits += is_due;
        text[i] = is_due ? 'x' : '.';
    }
    text[n] = '\0';
    return text;
}

static void lines_say_how_often(void **state)
{
    (void)state;
    assert_string_equal(pattern("* * 500", 5, 1), "xxxxx");
    assert_string_equal(pattern("* * 500 times=2", 5, 1), "xx...");
    assert_string_equal(pattern("* * 500 skip=2", 5, 1), "..xxx");
    assert_string_equal(pattern("* * 500 every=2", 5, 1), ".x.x.");
    assert_string_equal(pattern("* * 500 skip=1 every=3 times=2", 12, 1), "...x..x.....");
    assert_string_equal(pattern("* * 500 p=0", 5, 1), ".....");
    assert_string_equal(pattern("* * 500 p=1", 5, 1), "xxxxx");
}

static void chance_is_the_same_each_time(void **state)
{
    char first[1001];
    size_t n_hits = 0;

    (void)state;
    snprintf(first, sizeof first, "%s", pattern("* * 500 p=0.1", 1000, 7));
    assert_string_equal(pattern("* * 500 p=0.1", 1000, 7), first);
    assert_string_not_equal(pattern("* * 500 p=0.1", 1000, 8), first);
    for (size_t i = 0; i < 1000; i++)
        n_hits += first[i] == 'x';
    assert_in_range(n_hits, 60, 140);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_have_their_arguments),
        cmocka_unit_test(what_means_nothing_is_refused_with_the_word),
        cmocka_unit_test(a_line_has_an_end),
        cmocka_unit_test(lines_select_by_verb_resource_and_caller),
        cmocka_unit_test(a_watch_is_no_watch_list),
        cmocka_unit_test(lines_say_how_often),
        cmocka_unit_test(chance_is_the_same_each_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
