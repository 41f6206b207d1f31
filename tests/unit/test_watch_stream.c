/*
 * The watch stream: watches of any form in any pieces, what it leaves out.
 */
#include "reflector/watch_stream.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "unit/allocation.h"
#include "unit/stream_driver.h"

static void must(int r)
{
    assert_int_equal(r, 0);
}

static void try_text(const char *text, size_t max_object_bytes, const char *expected)
{
    struct stream_driver watch;

    stream_driver_init_watch(&watch, "Thing", max_object_bytes);
    stream_driver_expect(&watch, text, strlen(text), 0, expected);
}

/* --- forms --- */

#define OBJECT(name)                                                                               \
    "{\"metadata\":{\"namespace\":\"a\",\"name\":\"" name "\",\"resourceVersion\":\"1\"}}"
#define EVENT(type, name) "{\"type\":\"" type "\",\"object\":" OBJECT(name) "}"

static void an_event_is_understood_in_any_form(void **state)
{
    static const struct {
        const char *text;
        const char *expected;
    } rows[] = {
        { EVENT("ADDED", "x") "\n" EVENT("MODIFIED", "x") "\n" EVENT("DELETED", "x") "\n",
          "A a/x@1 M a/x@1 D a/x@1" },
        { "{\"object\":" OBJECT("x") ",\"type\":\"ADDED\"}\n", "A a/x@1" },
        { " { \"type\" : \"ADDED\" , \"object\" : " OBJECT("x") " } \r\n", "A a/x@1" },
        { "{\"type\":\"ADDED\",\"object\":" OBJECT("x") " } \n", "A a/x@1" },
        { "{\"type\":\"ADDED\",\"object\":" OBJECT("x") ",\"more\":[1]}\n", "A a/x@1" },
        { "{\"type\":\"ADDED\",\"object\":" OBJECT("x") ",\"type\":\"DELETED\"}\n", "A a/x@1" },
        { "{\"more\":{\"type\":\"x\"},\"type\":\"MODIFI\\u0045D\",\"object\":" OBJECT("x") "}\n",
          "M a/x@1" },
        { "\n \n" EVENT("ADDED", "x") "\n\n", "A a/x@1" },
        { EVENT("ADDED", "x") EVENT("ADDED", "y") " " EVENT("DELETED", "y") "\n",
          "A a/x@1 A a/y@1 D a/y@1" },
        { EVENT("ADDED", "x") "\n" EVENT("ADDED", "last"), "A a/x@1 A a/last@1" },
        { "{\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}},\"type\":\"BOOKMARK\"}\n",
          "B@9" },
        { "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}\n", "E410" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++)
        try_text(rows[i].text, MAX_OBJECT_BYTES, rows[i].expected);
}

static void a_clean_end_inside_an_event_is_noticed(void **state)
{
    static const char text[] = EVENT("ADDED", "x") "\n" EVENT("ADDED", "y");
    size_t first = strlen(EVENT("ADDED", "x"));
    struct stream_driver watch;

    (void)state;
    stream_driver_init_watch(&watch, "Thing", MAX_OBJECT_BYTES);
    for (size_t len = 1; len < sizeof text - 1; len++) {
        int expected = len == first || len == first + 1 ? 0 : KINF_ERR_TRUNCATED;

        assert_int_equal(stream_driver_decode(&watch, text, len, WHOLE, NULL), expected);
    }
    stream_driver_release(&watch);
}

/* --- what is left out --- */

static void what_cannot_be_decoded_is_passed_over(void **state)
{
    static const struct {
        const char *text;
        const char *expected;
    } rows[] = {
        { "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"namespace\":\"a\",\"name\":\"bad\"},"
          "\"x\":tru}}",
          "(a/bad PARSE)" },
        { "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"namespace\":\"a\",\"name\":\"cut\"},"
          "\"x\":[",
          "(a/cut PARSE)" },
        { "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Other\",\"metadata\":{\"namespace\":\"a\","
          "\"name\":"
          "\"o\"}}}",
          "(a/o PARSE)" },
        { "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Other\",\"metadata\":{\"namespace\":\"a\","
          "\"name\":"
          "\"o\"}},\"more\":1}",
          "(a/o PARSE)" },
        { "{\"type\":\"ADDED\",\"object\":{}}", "( PARSE)" },
        { "{\"type\":\"ADDED\",\"object\":null}", "( PARSE)" },
        { "{\"type\":\"ADDED\"}", "( PARSE)" },
        { "{\"type\":7,\"object\":" OBJECT("x") "}", "(a/x PARSE)" },
        { "{\"type\":\"RENAMED\",\"object\":" OBJECT("x") "}", "(a/x PARSE)" },
        { "{\"object\":" OBJECT("x") "}", "(a/x PARSE)" },
        { "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{}}}", "( PARSE)" },
        { "[1]", "( PARSE)" },
        { "}", "( PARSE)" },
        { EVENT("ADDED", "w") "}", "A a/w@1 ( PARSE)" },
        { "\x01\xff", "( PARSE)" },
    };
    char text[1024], expected[256];

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        snprintf(text, sizeof text, "%s\n" EVENT("ADDED", "y") "\n", rows[i].text);
        snprintf(expected, sizeof expected, "%s A a/y@1", rows[i].expected);
        try_text(text, MAX_OBJECT_BYTES, expected);
    }
}

static void an_error_that_is_no_status_is_still_an_error(void **state)
{
    (void)state;
    try_text("{\"type\":\"ERROR\",\"object\":\"boom\"}\n" EVENT("ADDED", "x") "\n",
             MAX_OBJECT_BYTES, "E0 A a/x@1");
}

static void events_of_a_table_are_passed_over(void **state)
{
    struct stream_driver watch;

    (void)state;
    stream_driver_init_watch(&watch, "ConfigMap", MAX_OBJECT_BYTES);
    stream_driver_expect_recorded(&watch, "14-table-watchlist", 0,
                                  "( PARSE) B@231 ( PARSE) B@232 B@232");
}

static void an_object_above_the_limit_is_passed_over(void **state)
{
    static const char big[] = "{\"metadata\":{\"namespace\":\"a\",\"name\":\"big\"},\"data\":\""
                              "................................\"}";
    char text[1024];

    (void)state;
    snprintf(text, sizeof text,
             "{\"type\":\"ADDED\",\"object\":%s}\n" EVENT(
                 "ADDED", "x") "\n"
                               "{\"object\":%s,\"type\":\"ADDED\"}\n",
             big, big);
    try_text(text, sizeof big - 1, "A a/big@ A a/x@1 A a/big@");
    try_text(text, sizeof big - 2, "(a/big LIMIT) A a/x@1 (a/big LIMIT)");
}

/* Also when all of it is there at once, and the object alone would do. */
static void an_event_whose_line_is_too_long_is_passed_over(void **state)
{
    char text[1024];

    (void)state;
    snprintf(text, sizeof text,
             "{\"type\":\"ADDED\",\"object\":" OBJECT("x") ",\"more\":\"%0500d\"}\n" EVENT(
                 "ADDED", "y") "\n",
             0);
    try_text(text, 100, "(a/x LIMIT) A a/y@1");
}

/* A line of 4 MiB with a limit of 1 KiB: nothing near that may be kept. */
static void a_line_above_the_limit_is_not_kept(void **state)
{
    enum { SIZE = 4 << 20, LIMIT = 1024 };
    static const size_t steps[] = { 100, 4096, SIZE_MAX / 2 };
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)state;
    must(kinf__buffer_printf(&text,
                             "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"namespace\":\"a\","
                             "\"name\":\"big\"},\"x\":\""));
    must(kinf__buffer_reserve(&text, SIZE));
    memset(text.bytes + text.len, 'y', SIZE);
    text.len += SIZE;
    must(kinf__buffer_printf(&text, "\"}}\n" EVENT("ADDED", "x") "\n"));
    for (size_t i = 0; i < KINF__ARRAY_LEN(steps); i++) {
        struct stream_driver watch;

        stream_driver_init_watch(&watch, "Thing", LIMIT);
        must(stream_driver_decode(&watch, text.bytes, text.len,
                                  (struct test_cut){ .step = steps[i] }, NULL));
        assert_string_equal(watch.text.bytes, "(a/big LIMIT) A a/x@1");
        assert_true(watch.max_tail < 16384);
        stream_driver_release(&watch);
    }
}

static void a_large_tail_is_given_back(void **state)
{
    enum { SIZE = 4 << 20 };
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct stream_driver watch;

    (void)state;
    must(kinf__buffer_printf(&text,
                             "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"namespace\":\"a\","
                             "\"name\":\"big\"},\"x\":\""));
    must(kinf__buffer_reserve(&text, SIZE));
    memset(text.bytes + text.len, 'y', SIZE);
    text.len += SIZE;
    must(kinf__buffer_printf(&text, "\"}}\n"));
    stream_driver_init_watch(&watch, "Thing", MAX_OBJECT_BYTES);
    must(stream_driver_decode(&watch, text.bytes, text.len, (struct test_cut){ .step = 16384 },
                              NULL));
    assert_string_equal(watch.text.bytes, "A a/big@");
    assert_true(watch.max_tail >= SIZE);
    assert_int_equal(watch.watch.tail.size, 0);
    stream_driver_release(&watch);
}

/* --- the caller --- */

static void a_callback_ends_the_watch(void **state)
{
    static const char text[] =
        EVENT("ADDED", "x") "\n" EVENT("ADDED", "y") "\n" EVENT("ADDED", "z");
    struct kinf_error err = KINF_ERROR_INIT;
    struct stream_driver watch;

    (void)state;
    stream_driver_init_watch(&watch, "Thing", MAX_OBJECT_BYTES);
    watch.n_left = 2;
    watch.err = &err;
    assert_int_equal(stream_driver_feed(&watch, text, sizeof text - 1), KINF_ERR_STOPPED);
    assert_string_equal(err.message, "enough");
    assert_memory_equal(watch.text.bytes, "A a/x@1 A a/y@1 ", watch.text.len);
    stream_driver_release(&watch);
}

static void no_memory_is_an_error_and_leaks_nothing(void **state)
{
    static const char text[] = EVENT("ADDED", "x") "\n" EVENT(
        "ADDED", "y") "\n"
                      "{\"type\":\"ADDED\",\"object\":{}}\n"
                      "{\"object\":" OBJECT("z") ",\"type\":\"ADDED\"}";
    size_t objects = kinf__object_count();
    bool has_failed;

    (void)state;
    for (size_t n = 1;; n++) {
        struct stream_driver watch;
        int r = 0;

        stream_driver_init_watch(&watch, "Thing", MAX_OBJECT_BYTES);
        must(kinf__buffer_reserve(&watch.text, 256));
        test_fail_allocation(n);
        for (size_t at = 0; r == 0 && at < sizeof text - 1; at += 10)
            r = stream_driver_feed(&watch, text + at,
                                   sizeof text - 1 - at < 10 ? sizeof text - 1 - at : 10);
        if (r == 0)
            r = stream_driver_finish(&watch, NULL);
        has_failed = test_allocation_failed();
        test_fail_allocation(0);
        assert_int_equal(r, has_failed ? KINF_ERR_NO_MEMORY : 0);
        stream_driver_release(&watch);
        assert_int_equal(kinf__object_count(), objects);
        if (!has_failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_understood_in_any_form),
        cmocka_unit_test(a_clean_end_inside_an_event_is_noticed),
        cmocka_unit_test(what_cannot_be_decoded_is_passed_over),
        cmocka_unit_test(an_error_that_is_no_status_is_still_an_error),
        cmocka_unit_test(events_of_a_table_are_passed_over),
        cmocka_unit_test(an_object_above_the_limit_is_passed_over),
        cmocka_unit_test(an_event_whose_line_is_too_long_is_passed_over),
        cmocka_unit_test(a_line_above_the_limit_is_not_kept),
        cmocka_unit_test(a_large_tail_is_given_back),
        cmocka_unit_test(a_callback_ends_the_watch),
        cmocka_unit_test(no_memory_is_an_error_and_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
