/*
 * Tables against what a real kube-apiserver 1.37.1 showed of the same objects (tests/data/tables: one
 * file a type, with the time at which it was asked), and the edges of durations.
 */
#include "table/table.h"

#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json/scan.h"
#include "object/object.h"
#include "table/row.h"
#include "unit/allocation.h"
#include "unit/test.h"

static struct kinf__json_value member_of(struct kinf__json_value value, const char *key)
{
    struct kinf__json_value member;

    if (!kinf__json_member(value, kinf_str_from(key), &member))
        fail_msg("no %s", key);
    return member;
}

static const struct kinf_type *type_of(const char *name)
{
    const struct kinf_type *type;
    char resource[64];
    const char *dot = strchr(name, '.');

    snprintf(resource, sizeof resource, "%.*s", dot != NULL ? (int)(dot - name) : (int)strlen(name),
             name);
    assert_int_equal(
        kinf_type_intern(dot != NULL ? dot + 1 : "", "v1", "Kind", resource, true, &type, NULL), 0);
    return type;
}

/* The recordings leave out what is empty, ours what nobody needs. */
static void check_columns(const struct kinf__table *table, struct kinf__json_value expected)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct kinf__json_iter ours, theirs;
    struct kinf__json_value column, other, format;
    struct kinf_str key;

    assert_int_equal(kinf__table_write_columns(table, &out), 0);
    assert_true(kinf__json_iter_init(&ours, kinf__json_value_of(kinf__buffer_str(&out))));
    assert_true(kinf__json_iter_init(&theirs, expected));
    while (kinf__json_iter_next(&theirs, &key, &other)) {
        assert_true(kinf__json_iter_next(&ours, &key, &column));
        assert_true(kinf_str_equal(member_of(column, "name").raw, member_of(other, "name").raw));
        assert_true(kinf_str_equal(member_of(column, "type").raw, member_of(other, "type").raw));
        assert_true(
            kinf_str_equal(member_of(column, "priority").raw, member_of(other, "priority").raw));
        if (!kinf__json_member(other, KINF_STR("format"), &format))
            format.raw = KINF_STR("\"\"");
        assert_true(kinf_str_equal(member_of(column, "format").raw, format.raw));
    }
    assert_false(kinf__json_iter_next(&ours, &key, &column));
}

static const struct kinf_object *decode(const struct kinf_type *type, struct kinf_str text)
{
    const struct kinf_object *object;
    struct kinf__object_decoder decoder;
    struct kinf__prune_plan *plan;
    size_t len;

    assert_int_equal(kinf__prune_plan_new(NULL, 0, NULL, 0, &plan, NULL), 0);
    kinf__object_decoder_init(&decoder, type, plan);
    assert_int_equal(kinf__object_decode(&decoder, text, true, &object, &len, NULL), 0);
    kinf__object_decoder_release(&decoder);
    kinf__prune_plan_free(plan);
    return object;
}

static struct kinf_str body_of(const struct kinf_object *object)
{
    return (struct kinf_str){ kinf__object_plain_body(object), object->body_len };
}

static bool shows(const struct kinf__table *table, const struct kinf_object *object, int64_t now_s,
                  struct kinf_str expected, struct kinf__buffer *out)
{
    struct kinf_str cells;

    out->len = 0;
    assert_int_equal(kinf__buffer_printf(out, "{"), 0);
    assert_int_equal(kinf__table_write_row(table, body_of(object), now_s, true, out), 0);
    assert_int_equal(kinf__buffer_printf(out, "}"), 0);
    cells = member_of(kinf__json_value_of(kinf__buffer_str(out)), "cells").raw;
    return kinf_str_equal(cells, expected);
}

/* The server's clock may have been at the end of the second before. */
static void check_row(const struct kinf_type *type, struct kinf__json_value row, int64_t now_s)
{
    const struct kinf__table *table = kinf__table_for(type);
    struct kinf_str expected = member_of(row, "cells").raw;
    kinf_auto_object const struct kinf_object *object = decode(type, member_of(row, "object").raw);
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;

    if (!shows(table, object, now_s, expected, &out) &&
        !shows(table, object, now_s - 1, expected, &out))
        fail_msg("%s: %s\ninstead of %.*s", type->resource, kinf__buffer_cstr(&out),
                 (int)expected.len, expected.bytes);
}

static size_t check_recording(const char *folder, const char *name)
{
    const struct kinf_type *type = type_of(name);
    struct kinf__json_iter rows;
    struct kinf__json_value recording, row;
    struct kinf_str key;
    size_t len, n = 0;
    char path[256], *text;
    int64_t now_s;

    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    text = test_read_data(path, &len);
    assert_int_equal(kinf__json_scan_all((struct kinf_str){ text, len }, 100, &len), 0);
    recording = kinf__json_value_of((struct kinf_str){ text, len });
    now_s = strtoll(member_of(recording, "now").raw.bytes, NULL, 10);
    check_columns(kinf__table_for(type), member_of(recording, "columns"));
    assert_true(kinf__json_iter_init(&rows, member_of(recording, "rows")));
    for (; kinf__json_iter_next(&rows, &key, &row); n++)
        check_row(type, row, now_s);
    free(text);
    return n;
}

/* All files of a folder of tests/data; those of custom resources say so by their group. */
static size_t check_recordings(const char *folder)
{
    char pattern[256], name[256];
    size_t n = 0;
    glob_t found;

    snprintf(pattern, sizeof pattern, "%s/%s/*.json", test_data_dir(), folder);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *file = strrchr(found.gl_pathv[i], '/') + 1;

        snprintf(name, sizeof name, "%.*s", (int)(strlen(file) - strlen(".json")), file);
        if (strstr(name, "example.com") == NULL)
            n += check_recording(folder, name);
    }
    globfree(&found);
    return n;
}

static void recorded_objects_show_as_the_server_shows_them(void **state)
{
    (void)state;
    assert_int_equal(check_recordings("tables"), 88);
    assert_int_equal(check_recordings("tables/objects"), 199);
}

/* What is not among the recordings. */
static void check_cells(const char *name, const char *members, const char *cells)
{
    const struct kinf_type *type = type_of(name);
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    const struct kinf_object *object;

    assert_int_equal(kinf__buffer_printf(
                         &text, "{\"metadata\":{\"name\":\"x\",\"namespace\":\"n\"},%s}", members),
                     0);
    object = decode(type, kinf__buffer_str(&text));
    if (!shows(kinf__table_for(type), object, 0, kinf_str_from(cells), &out))
        fail_msg("%s: %s\ninstead of %s", name, kinf__buffer_cstr(&out), cells);
    kinf_object_unref(object);
}

static void sidecars_are_known_whatever_the_order_of_statuses(void **state)
{
    static const char cells[] =
        "[\"x\",\"2/2\",\"Running\",\"2\",\"\\u003cunknown\\u003e\",\"\\u003cnone\\u003e\","
        "\"\\u003cnone\\u003e\",\"\\u003cnone\\u003e\",\"\\u003cnone\\u003e\"]";

    (void)state;
#define POD(statuses)                                                                              \
    "\"spec\":{\"initContainers\":[{\"name\":\"once\"},{\"name\":\"side\",\"restartPolicy\":"      \
    "\"Always\"}],\"containers\":[{\"name\":\"main\"}]},\"status\":{\"phase\":\"Running\","        \
    "\"initContainerStatuses\":[" statuses                                                         \
    "],\"containerStatuses\":[{\"name\":\"main\",\"ready\":"                                       \
    "true,\"state\":{\"running\":{}}}]}"
#define ONCE "{\"name\":\"once\",\"restartCount\":1,\"state\":{\"terminated\":{\"exitCode\":0}}}"
#define SIDE                                                                                       \
    "{\"name\":\"side\",\"restartCount\":2,\"ready\":true,\"started\":true,\"state\":{"            \
    "\"running\":{}}}"
    check_cells("pods", POD(ONCE "," SIDE), cells);
    check_cells("pods", POD(SIDE "," ONCE), cells);
    check_cells("pods", POD(SIDE), cells);
#undef POD
#undef ONCE
#undef SIDE
}

static void autoscalers_of_the_first_version_show_their_cpu_target(void **state)
{
    static const char name[] = "horizontalpodautoscalers.autoscaling";

    (void)state;
#define CELLS(targets)                                                                             \
    "[\"x\",\"\",\"" targets "\",\"\\u003cunset\\u003e\",4,0,\"\\u003cunknown\\u003e\"]"
    check_cells(name,
                "\"spec\":{\"maxReplicas\":4,\"targetCPUUtilizationPercentage\":50},"
                "\"status\":{\"currentCPUUtilizationPercentage\":40}",
                CELLS("cpu: 40%/50%"));
    check_cells(name, "\"spec\":{\"maxReplicas\":4,\"targetCPUUtilizationPercentage\":50}",
                CELLS("cpu: \\u003cunknown\\u003e/50%"));
    check_cells(name, "\"spec\":{\"maxReplicas\":4}", CELLS("\\u003cnone\\u003e"));
#undef CELLS
}

static void durations_change_their_form_at_the_edges(void **state)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } rows[] = {
        { -2, "<invalid>" },     { -1, "0s" },        { 0, "0s" },
        { 119, "119s" },         { 120, "2m" },       { 121, "2m1s" },
        { 599, "9m59s" },        { 600, "10m" },      { 10799, "179m" },
        { 10800, "3h" },         { 10860, "3h1m" },   { 28799, "7h59m" },
        { 28800, "8h" },         { 172799, "47h" },   { 172800, "2d" },
        { 176400, "2d1h" },      { 691199, "7d23h" }, { 691200, "8d" },
        { 63071999, "729d" },    { 63072000, "2y" },  { 63158400, "2y1d" },
        { 252287999, "7y364d" }, { 252288000, "8y" }, { 999999999999, "31709y" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf__row row = { 0 };

        kinf__row_append_duration(&row, rows[i].seconds);
        assert_string_equal(kinf__buffer_cstr(&row.text), rows[i].text);
        kinf__buffer_release(&row.text);
    }
}

static void times_are_read_with_their_zone(void **state)
{
    static const struct {
        const char *text;
        int64_t expected;
    } rows[] = {
        { "{\"t\":\"1970-01-01T00:00:00Z\"}", 0 },
        { "{\"t\":\"2000-02-29T12:00:00Z\"}", 951825600 },
        { "{\"t\":\"2026-11-21T07:06:19.123456Z\"}", 1795244779 },
        { "{\"t\":\"2100-03-01T00:00:00Z\"}", 4107542400 },
        { "{\"t\":\"2000-02-29T12:00:00+02:30\"}", 951816600 },
        { "{\"t\":\"2000-02-29T12:00:00.5-02:30\"}", 951834600 },
        { "{\"t\":\"2000-02-29T12:00:00\"}", INT64_MIN },
        { "{\"t\":\"2001-02-29T12:00:00Z\"}", INT64_MIN },
        { "{\"t\":\"\"}", INT64_MIN },
        { "{\"t\":\"soon\"}", INT64_MIN },
        { "{\"t\":7}", INT64_MIN },
        { "{\"t\":null}", INT64_MIN },
        { "{}", INT64_MIN },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++)
        assert_true(kinf__field_time(kinf__json_value_of(kinf_str_from(rows[i].text)), "t") ==
                    rows[i].expected);
}

/* Whatever the members of an object are, a row is JSON. */
static void check_malformed(const char *name, const struct kinf_type *type)
{
    static const char *const texts[] = {
        "",
        ",\"spec\":7,\"status\":[1],\"data\":1,\"subjects\":{},\"roleRef\":[],\"template\":\"\"",
        ",\"spec\":{\"containers\":{},\"selector\":[{}],\"ports\":[1,null,{}],\"rules\":\"x\","
        "\"tls\":1,"
        "\"metrics\":[1,{},{\"type\":\"Pods\"},{\"type\":\"Pods\",\"pods\":[]}],\"cidrs\":[1,{}],"
        "\"externalIPs\":[{}],\"type\":\"LoadBalancer\",\"paramRef\":{\"name\":7,\"selector\":[1]},"
        "\"parentRef\":{\"resource\":[]},\"claimRef\":{\"namespace\":{}},\"tokenRequests\":[1]},"
        "\"status\":{\"conditions\":[null,1,{}],\"containerStatuses\":[{}],\"addresses\":[1],"
        "\"initContainerStatuses\":[1],\"hard\":{\"a\":1,\"limits.b\":{}},\"used\":[1],"
        "\"loadBalancer\":{\"ingress\":[1,{\"ip\":7},{\"hostname\":8}]}},\"involvedObject\":{"
        "\"kind\":7},"
        "\"subjects\":[1,{\"kind\":\"User\"},{\"kind\":\"ServiceAccount\",\"name\":[]}],"
        "\"subsets\":[1,{\"addresses\":[1,{\"ip\":7}]},{\"ports\":[1],\"addresses\":[{}]}],"
        "\"series\":1,"
        "\"endpoints\":[1,{\"addresses\":[1]}],\"ports\":[1,{\"port\":{}}],\"webhooks\":7",
    };

    for (size_t i = 0; i < KINF__ARRAY_LEN(texts); i++) {
        KINF__AUTO_BUFFER text = KINF__BUFFER_INIT, out = KINF__BUFFER_INIT;
        const struct kinf_object *object;
        size_t len;

        assert_int_equal(
            kinf__buffer_printf(&text,
                                "{\"metadata\":{\"name\":\"x\",\"namespace\":\"n\",\"labels\":"
                                "{\"a\":\"b\"}}%s}",
                                texts[i]),
            0);
        object = decode(type, kinf__buffer_str(&text));
        assert_int_equal(kinf__buffer_printf(&out, "{"), 0);
        assert_int_equal(
            kinf__table_write_row(kinf__table_for(type), body_of(object), 0, true, &out), 0);
        assert_int_equal(kinf__buffer_printf(&out, "}"), 0);
        if (kinf__json_scan_all(kinf__buffer_str(&out), 10, &len) < 0)
            fail_msg("%s: %s", name, kinf__buffer_cstr(&out));
        kinf_object_unref(object);
    }
}

static void what_is_missing_or_of_another_form_is_shown_as_absent(void **state)
{
    glob_t found;
    char pattern[256];

    (void)state;
    snprintf(pattern, sizeof pattern, "%s/tables/objects/*.json", test_data_dir());
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *name = strrchr(found.gl_pathv[i], '/') + 1;

        name[strlen(name) - strlen(".json")] = '\0';
        check_malformed(name, type_of(name));
    }
    globfree(&found);
    check_malformed("things.x", type_of("things.x"));
}

static void check_without_memory(const char *name, const char *text)
{
    const struct kinf_type *type = type_of(name);
    kinf_auto_object const struct kinf_object *object = decode(type, kinf_str_from(text));

    for (size_t n = 1;; n++) {
        KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
        int r;

        test_fail_allocation(n);
        r = kinf__table_write_row(kinf__table_for(type), body_of(object), 0, true, &out);
        if (!test_allocation_failed()) {
            assert_int_equal(r, 0);
            break;
        }
        assert_int_equal(r, KINF_ERR_NO_MEMORY);
    }
}

static void no_memory_is_an_error(void **state)
{
    (void)state;
    check_without_memory(
        "deployments.apps",
        "{\"metadata\":{\"name\":\"x\",\"namespace\":\"n\"},\"spec\":{\"selector\":{"
        "\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b\"]}]}}}");
    check_without_memory("ingresses.networking.k8s.io",
                         "{\"metadata\":{\"name\":\"x\",\"namespace\":\"n\"},\"status\":{"
                         "\"loadBalancer\":{\"ingress\":[{\"ip\":\"1\"},{\"hostname\":\"2\"}]}}}");
    check_without_memory("pods", "{\"metadata\":{\"name\":\"x\",\"namespace\":\"n\"},\"status\":{"
                                 "\"phase\":\"Failed\",\"reason\":\"Evicted\"}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_objects_show_as_the_server_shows_them),
        cmocka_unit_test(sidecars_are_known_whatever_the_order_of_statuses),
        cmocka_unit_test(autoscalers_of_the_first_version_show_their_cpu_target),
        cmocka_unit_test(durations_change_their_form_at_the_edges),
        cmocka_unit_test(times_are_read_with_their_zone),
        cmocka_unit_test(what_is_missing_or_of_another_form_is_shown_as_absent),
        cmocka_unit_test(no_memory_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
