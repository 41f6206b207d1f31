/*
 * Columns of custom resources: which paths are understood, and what their cells are.
 */
#include "table/table.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "json/scan.h"
#include "table/custom.h"
#include "unit/allocation.h"
#include "unit/test.h"

#define NOW_S 1000000000 /* 2001-09-09T01:46:40Z */

#define OBJECT                                                                                     \
    "{\"metadata\":{\"name\":\"a\",\"creationTimestamp\":\"2001-09-09T01:45:40Z\","                \
    "\"annotations\":"                                                                             \
    "{\"x.y/"                                                                                      \
    "z\":\"dotted\",\"q\":\"a\\\"b\"}},\"spec\":{\"n\":3,\"f\":2.5,\"big\":7.0,\"on\":true,"       \
    "\"off\":false,\"nothing\":null,\"empty\":\"\",\"list\":[\"a\",\"b\"],\"map\":{\"k\":1},"      \
    "\"ports\":[{\"name\":\"http\",\"port\":80},{\"name\":\"https\",\"port\":443},{\"port\":9}],"  \
    "\"steps\":[{},{\"k\":1},{\"k\":2}],\"max\":9223372036854775807,"                              \
    "\"min\":-9223372036854775808,\"odd\":9007199254740993,\"over\":9223372036854775808,"          \
    "\"under\":-9223372036854775809,\"huge\":1e300,\"exp\":-12e2,\"cut\":-7.9,"                    \
    "\"east\":\"2001-09-09T03:45:40+02:00\",\"west\":\"2001-09-08T23:45:40.0-02:00\","             \
    "\"zoneless\":\"2001-09-09T01:45:40\",\"zero\":\"0001-01-01T00:00:00Z\",\"nil\":\"null\"},"    \
    "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":\"Synced\","   \
    "\"status\":\"False\"}]}}"

static struct kinf__custom_columns *read_one(const char *type, const char *path)
{
    KINF__AUTO_BUFFER definition = KINF__BUFFER_INIT;
    struct kinf__custom_columns *columns;

    assert_int_equal(
        kinf__buffer_printf(&definition,
                            "{\"spec\":{\"versions\":[{\"name\":\"v0\"},{\"name\":\"v1\","
                            "\"additionalPrinterColumns\":[{\"name\":\"C\",\"type\":\"%s\","
                            "\"jsonPath\":\"%s\"}]}]}}",
                            type, path),
        0);
    assert_int_equal(kinf__custom_columns_read(kinf__buffer_str(&definition), "v1", &columns), 0);
    return columns;
}

static void each_path_gives_the_cell_of_its_type(void **state)
{
    /* The path as it stands in JSON. */
    static const struct {
        const char *type, *path, *cell;
    } rows[] = {
        { "string", ".metadata.name", "\"a\"" },
        { "string", ".spec.n", "\"3\"" },
        { "string", ".spec.list", "\"[\\\"a\\\",\\\"b\\\"]\"" },
        { "string", ".spec.map", "\"{\\\"k\\\":1}\"" },
        { "string", ".spec.empty", "\"\"" },
        { "string", ".spec.on", "\"true\"" },
        { "string", ".spec.none", "null" },
        { "string", ".spec.nothing", "null" },
        { "string", ".spec.list[1]", "\"b\"" },
        { "string", ".spec.list[-1]", "\"b\"" },
        { "string", ".spec.list[-3]", "null" },
        { "string", ".spec.list[2]", "null" },
        { "string", ".spec.list[*]", "\"a\"" },
        { "string", ".spec.map[*]", "null" },
        { "string", ".spec.map.*", "\"1\"" },
        { "string", ".spec.list[]", "\"a\"" },
        { "string", ".spec.list.[0]", "null" },
        { "string", ".spec.list.", "null" },
        { "string", ".", "null" },
        { "string", ".status.conditions[-1:].type", "\"Synced\"" },
        { "string", ".spec.list[0:1]", "\"a\"" },
        { "string", ".spec.list[1:]", "\"b\"" },
        { "string", ".spec.list[:1]", "\"a\"" },
        { "string", ".spec.list[:]", "\"a\"" },
        { "string", ".spec.list[:-1]", "\"a\"" },
        { "string", ".spec.list[-2:2]", "\"a\"" },
        { "string", ".spec.list[-3:]", "null" },
        { "string", ".spec.list[2:]", "null" },
        { "string", ".spec.list[0:3]", "null" },
        { "string", ".spec.list[0:-3]", "null" },
        { "string", ".spec.list[1:1]", "null" },
        { "string", ".spec.list[1:0]", "null" },
        { "string", ".spec.map[0:1]", "null" },
        { "string", ".spec.none[0:1]", "null" },
        { "string", ".spec.steps[:].k", "\"1\"" },
        { "string", ".spec.steps[:1].k", "null" },
        { "string", ".spec.steps[::2].k", "\"2\"" },
        { "string", ".spec.steps[1:3:1].k", "\"1\"" },
        { "string", ".spec.list[::]", "\"a\"" },
        { "string", ".spec.list[::0]", "null" },
        { "string", ".spec.list[::-1]", "null" },
        { "string", ".spec.list[0:1:1:1]", "null" },
        { "string", ".spec.list[-]", "null" },
        { "string", ".spec.list[0:-]", "null" },
        { "string", ".spec.list[0::-]", "null" },
        { "string", ".spec.list[ 0]", "null" },
        { "string", ".spec.list[+0]", "null" },
        { "string", ".spec.list[0-]", "null" },
        { "string", ".spec.list[9999999999999999999]", "null" },
        { "string", ".spec.n[0]", "null" },
        { "string", ".metadata.annotations.x\\\\.y/z", "\"dotted\"" },
        /* What is quoted is read as behind a dot. */
        { "string", ".metadata.annotations['x\\\\.y/z']", "\"dotted\"" },
        { "string", ".metadata.annotations['x.y/z']", "null" },
        { "string", ".metadata['annotations']['q']", "\"a\\\"b\"" },
        { "string", "['metadata'].name", "\"a\"" },
        { "string", ".spec['map.k']", "\"1\"" },
        { "string", ".spec.map['*']", "\"1\"" },
        { "string", ".metadata[\\\"name\\\"]", "null" },
        { "string", ".spec['']", "null" },
        { "string", ".spec['n", "null" },
        { "string", ".spec['n'", "null" },
        { "string", ".spec['n'x]", "null" },
        { "string", ".spec['n']x", "null" },
        { "string", ".spec['list[0]']", "null" },
        { "string", ".spec['list[0']]", "null" },
        { "string", ".spec['n','f']", "null" },
        { "string", "['a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a']", "null" },
        { "string", ".metadata.annotations.q", "\"a\\\"b\"" },
        { "string", ".spec.ports[?(@.name==\\\"https\\\")].port", "\"443\"" },
        { "string", ".spec.ports[?(@.name=='https')].port", "\"443\"" },
        { "string", ".spec.ports[?(@.name != 'http')].port", "\"443\"" },
        { "string", ".spec.ports[?(@.port==9)].name", "null" },
        { "string", ".status.conditions[?(@.type==\\\"Ready\\\")].status", "\"True\"" },
        { "string", ".status.conditions[?(@.type==\\\"Gone\\\")].status", "null" },
        { "integer", ".spec.n", "3" },
        { "integer", ".spec.big", "7" },
        { "integer", ".spec.max", "9223372036854775807" },
        { "integer", ".spec.min", "-9223372036854775808" },
        { "integer", ".spec.odd", "9007199254740993" },
        { "integer", ".spec.over", "-9223372036854775808" },
        { "integer", ".spec.under", "-9223372036854775808" },
        { "integer", ".spec.huge", "-9223372036854775808" },
        { "integer", ".spec.exp", "-1200" },
        { "integer", ".spec.cut", "-7" },
        { "integer", ".spec.on", "null" },
        { "integer", ".metadata.name", "null" },
        { "number", ".spec.f", "2.5" },
        { "boolean", ".spec.on", "true" },
        { "boolean", ".spec.off", "false" },
        { "boolean", ".spec.n", "null" },
        { "date", ".metadata.creationTimestamp", "\"60s\"" },
        { "date", ".spec.east", "\"60s\"" },
        { "date", ".spec.west", "\"60s\"" },
        { "date", ".spec.zoneless", "\"\\u003cinvalid\\u003e\"" },
        { "date", ".spec.empty", "\"\\u003cunknown\\u003e\"" },
        { "date", ".spec.nil", "\"\\u003cunknown\\u003e\"" },
        { "date", ".spec.zero", "\"\\u003cunknown\\u003e\"" },
        { "date", ".metadata.name", "\"\\u003cinvalid\\u003e\"" },
        { "date", ".spec.n", "null" },
        { "string", "..name", "null" },
        { "string", "name", "null" },
        { "string", ".spec.n,f", "null" },
        { "string", ".spec.list[", "null" },
        { "string", ".spec.list[?(@.a", "null" },
        { "string", ".spec.list['a", "null" },
        { "string", ".a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a", "null" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf__custom_columns *columns = read_one(rows[i].type, rows[i].path);
        KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
        struct kinf__row row = { .object = kinf__json_value_of(KINF_STR(OBJECT)),
                                 .now_s = NOW_S,
                                 .out = &out };

        kinf__custom_columns_cells(columns, &row);
        assert_false(row.is_out_of_memory);
        if (strcmp(kinf__buffer_cstr(&out), rows[i].cell) != 0)
            fail_msg("%s %s: %s instead of %s", rows[i].type, rows[i].path, out.bytes,
                     rows[i].cell);
        kinf__buffer_release(&row.text);
        kinf__custom_columns_free(columns);
    }
}

static void columns_are_those_of_the_version(void **state)
{
    static const char definition[] =
        "{\"spec\":{\"versions\":[{\"name\":\"v1\"},{\"name\":\"v2\",\"additionalPrinterColumns\":["
        "{\"name\":\"A \\\"b\\\"\",\"type\":\"integer\",\"format\":\"int32\",\"priority\":1,"
        "\"jsonPath\":\".a\"},{\"name\":\"B\",\"type\":\"date\",\"jsonPath\":\".b\","
        "\"description\":\"When <b>.\"}]}]}}";
    static const char expected[] =
        ",{\"name\":\"A \\\"b\\\"\",\"type\":\"integer\",\"format\":\"int32\",\"description\":"
        "\"Custom resource definition column (in JSONPath format): .a\",\"priority\":1},"
        "{\"name\":\"B\",\"type\":\"date\",\"format\":\"\",\"description\":"
        "\"When \\u003cb\\u003e.\",\"priority\":0}]";
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct kinf__table *table;

    (void)state;
    assert_int_equal(kinf__table_of_definition(KINF_STR("{"), "v2", &table), KINF_ERR_PARSE);
    assert_int_equal(kinf__table_of_definition(kinf_str_from(definition), "v1", &table),
                     KINF_ERR_NOT_FOUND);
    assert_int_equal(kinf__table_of_definition(kinf_str_from(definition), "v3", &table),
                     KINF_ERR_NOT_FOUND);
    assert_int_equal(kinf__table_of_definition(kinf_str_from(definition), "v2", &table), 0);
    assert_int_equal(kinf__table_write_columns(table, &out), 0);
    assert_true(out.len > sizeof expected);
    assert_string_equal(kinf__buffer_cstr(&out) + out.len - (sizeof expected - 1), expected);
    kinf__table_free(table);
}

static void no_memory_is_an_error(void **state)
{
    static const char definition[] =
        "{\"spec\":{\"versions\":[{\"name\":\"v1\",\"additionalPrinterColumns\":[{\"name\":\"A\","
        "\"type\":\"string\",\"jsonPath\":\".a\"},{\"name\":\"B\"}]}]}}";

    (void)state;
    for (size_t n = 1;; n++) {
        struct kinf__table *table = NULL;
        int failed;

        test_fail_allocation(n);
        failed = kinf__table_of_definition(kinf_str_from(definition), "v1", &table);
        kinf__table_free(table);
        if (!test_allocation_failed()) {
            assert_int_equal(failed, 0);
            return;
        }
        assert_int_equal(failed, KINF_ERR_NO_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_path_gives_the_cell_of_its_type),
        cmocka_unit_test(columns_are_those_of_the_version),
        cmocka_unit_test(no_memory_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
