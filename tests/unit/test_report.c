/*
 * Documents that are written member by member: what comes in is hostile, what comes out is JSON.
 */
#include "serve/report.h"

#include <string.h>

#include <kinformer/error.h>

#include "json/scan.h"
#include "unit/allocation.h"
#include "unit/test.h"

#define NOW_WALL_MS 1795000000123 /* 2026-11-18T11:06:40.123Z */

static struct kinf__report report_to(struct kinf__buffer *out)
{
    return (struct kinf__report){ .out = out, .now_ms = 100000, .now_wall_ms = NOW_WALL_MS };
}

static void members_and_items_are_separated(void **state)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct kinf__report report = report_to(&out);

    (void)state;
    kinf__report_open(&report, NULL, '{');
    kinf__report_text(&report, "text", "x");
    kinf__report_open(&report, "none", '[');
    kinf__report_close(&report, ']');
    kinf__report_open(&report, "items", '[');
    for (uint64_t i = 0; i < 2; i++) {
        kinf__report_open(&report, NULL, '{');
        kinf__report_count(&report, "i", i);
        kinf__report_close(&report, '}');
    }
    kinf__report_close(&report, ']');
    kinf__report_bool(&report, "yes", true);
    kinf__report_bool(&report, "no", false);
    kinf__report_close(&report, '}');
    assert_int_equal(kinf__report_end(&report), 0);
    assert_string_equal(kinf__buffer_cstr(&out),
                        "{\"text\":\"x\",\"none\":[],\"items\":[{\"i\":0},{\"i\":1}],"
                        "\"yes\":true,\"no\":false}\n");
}

static void expect_written(void (*put)(struct kinf__report *report, const char *key, int64_t ms),
                           int64_t ms, const char *expected)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct kinf__report report = report_to(&out);

    put(&report, NULL, ms);
    assert_string_equal(kinf__buffer_cstr(&out), expected);
}

static void times_are_of_the_wall_clock_and_none_is_null(void **state)
{
    (void)state;
    expect_written(kinf__report_time, 100000, "\"2026-11-18T11:06:40.123Z\"");
    expect_written(kinf__report_time, 100000 - 124, "\"2026-11-18T11:06:39.999Z\"");
    expect_written(kinf__report_time, 0, "null");
    expect_written(kinf__report_ms, 0, "0");
    expect_written(kinf__report_ms, 9007199254740993, "9007199254740993");
    expect_written(kinf__report_ms, -1, "null");
    expect_written(kinf__report_exact_ms, 0, "0.000");
    expect_written(kinf__report_exact_ms, 1234567890, "1234.567");
}

static void versions_are_strings(void **state)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct kinf__report report = report_to(&out);

    (void)state;
    kinf__report_version(&report, NULL, UINT64_MAX);
    kinf__report_version(&report, NULL, 0);
    assert_string_equal(kinf__buffer_cstr(&out), "\"18446744073709551615\",\"\"");
}

static void write_text(struct kinf__report *report, const char *text)
{
    kinf__report_open(report, NULL, '{');
    kinf__report_text(report, "a", text);
    kinf__report_text(report, "b", text);
    kinf__report_close(report, '}');
}

static void no_text_breaks_the_document(void **state)
{
    struct test_random random = test_random_init("no_text_breaks_the_document");

    (void)state;
    for (size_t round = 0; round < test_rounds(2000); round++) {
        KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
        struct kinf__report report = report_to(&out);
        char text[64];
        size_t len = test_random_below(&random, sizeof text - 1), scanned;

        for (size_t i = 0; i < len; i++)
            text[i] = (char)(1 + test_random_below(&random, 255));
        text[len] = '\0';
        write_text(&report, text);
        assert_int_equal(kinf__report_end(&report), 0);
        assert_int_equal(kinf__json_scan_all(kinf__buffer_str(&out), 8, &scanned), 0);
        assert_null(memchr(out.bytes, '<', out.len));
    }
}

static void lack_of_memory_is_told_at_the_end(void **state)
{
    (void)state;
    for (size_t n = 1;; n++) {
        KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
        struct kinf__report report = report_to(&out);
        int failed;

        test_fail_allocation(n);
        write_text(&report,
                   "a text that is long enough for the buffer to grow more than once, since "
                   "it is there twice, as are its members");
        failed = kinf__report_end(&report);
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
        cmocka_unit_test(members_and_items_are_separated),
        cmocka_unit_test(times_are_of_the_wall_clock_and_none_is_null),
        cmocka_unit_test(versions_are_strings),
        cmocka_unit_test(no_text_breaks_the_document),
        cmocka_unit_test(lack_of_memory_is_told_at_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
