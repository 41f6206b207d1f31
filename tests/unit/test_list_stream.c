/*
 * The list stream: lists of any form in any pieces, what it leaves out, what it refuses.
 */
#include "reflector/list_stream.h"

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

/* --- recorded lists: all of them are in test_transcripts.c --- */

static void every_cut_end_is_noticed(void **state)
{
    struct test_transcript transcript = test_transcript_read("01-list-cr-limit1-page1");
    struct stream_driver list;

    (void)state;
    stream_driver_init_list(&list, "Widget", MAX_OBJECT_BYTES);
    assert_int_equal(transcript.body[transcript.len - 1], '\n');
    for (size_t len = 0; len < transcript.len - 1; len++)
        assert_int_equal(stream_driver_decode(&list, transcript.body, len, WHOLE, NULL),
                         KINF_ERR_TRUNCATED);
    assert_int_equal(stream_driver_decode(&list, transcript.body, transcript.len - 1, WHOLE, NULL),
                     0);
    stream_driver_release(&list);
    test_transcript_release(&transcript);
}

static void the_continue_token_is_taken_as_it_is(void **state)
{
    struct test_transcript transcript = test_transcript_read("01-list-limit1-page1");
    struct stream_driver list;
    const char *token = strstr(transcript.body, "\"continue\":\"") + 12;

    (void)state;
    stream_driver_init_list(&list, "ConfigMap", MAX_OBJECT_BYTES);
    must(stream_driver_decode(&list, transcript.body, transcript.len, WHOLE, NULL));
    assert_int_equal(strcspn(token, "\""), strlen(list.list.continue_token));
    assert_memory_equal(list.list.continue_token, token, strcspn(token, "\""));
    stream_driver_release(&list);
    test_transcript_release(&transcript);
}

static void tables_are_refused(void **state)
{
    static const char *const names[] = { "14-table-list", "14-table-list-cr" };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++) {
        struct stream_driver list;

        stream_driver_init_list(&list, "ConfigMap", MAX_OBJECT_BYTES);
        stream_driver_expect_recorded(&list, names[i], KINF_ERR_UNSUPPORTED, "");
    }
}

/* --- forms --- */

#define ITEM(name)                                                                                 \
    "{\"metadata\":{\"namespace\":\"a\",\"name\":\"" name "\",\"resourceVersion\":\"1\"}}"

static void try_text(const char *text, size_t max_object_bytes, const char *expected)
{
    struct stream_driver list;

    stream_driver_init_list(&list, "Thing", max_object_bytes);
    stream_driver_expect(&list, text, strlen(text), 0, expected);
}

/* In one piece. */
static int decode_text(struct stream_driver *list, const char *text, struct kinf_error *err)
{
    return stream_driver_decode(list, text, strlen(text), WHOLE, err);
}

static void members_come_in_any_order_and_form(void **state)
{
    static const struct {
        const char *text;
        const char *expected;
    } rows[] = {
        { "{\"items\":[],\"metadata\":{\"resourceVersion\":\"5\"}}", "rv=5" },
        { "{\"items\":null,\"metadata\":{\"resourceVersion\":\"5\"}}", "rv=5" },
        { " \r\n\t{ \"metadata\" : {\"resourceVersion\":\"5\", \"continue\" : \"t\"} , \"items\" : "
          "[ " ITEM("x") " , " ITEM("y") " ] } \n",
          "a/x@1 a/y@1 rv=5 continue" },
        { "{\"extra\":[1,{\"items\":[2]}],\"n\":-1.5e3,\"it\\u0065ms\":[" ITEM(
              "x") "],\"t\":true,"
                   "\"m\":null,\"metadata\":{\"resourceVersion\":\"5\",\"remainingItemCount\":12}}",
          "a/x@1 rv=5 remaining=12" },
        { "{\"metadata\":null,\"items\":[],\"metadata\":{\"resourceVersion\":\"6\"}}", "rv=6" },
        { "{\"kind\":\"Table\",\"apiVersion\":\"furniture.example.com/v1\",\"metadata\":"
          "{\"resourceVersion\":\"5\"},\"items\":[]}",
          "rv=5" },
        /* No counts, so it is not known. */
        { "{\"metadata\":{\"resourceVersion\":\"5\",\"remainingItemCount\":-3},\"items\":[]}",
          "rv=5" },
        { "{\"metadata\":{\"resourceVersion\":\"5\",\"remainingItemCount\":\"3\"},\"items\":[]}",
          "rv=5" },
        { "{\"metadata\":{\"resourceVersion\":\"5\",\"remainingItemCount\":"
          "99999999999999999999},\"items\":[]}",
          "rv=5" },
        { "{\"kind\":null,\"apiVersion\":7,\"metadata\":{\"resourceVersion\":\"5\",\"continue\":"
          "null},"
          "\"items\":[]}",
          "rv=5" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++)
        try_text(rows[i].text, MAX_OBJECT_BYTES, rows[i].expected);
}

static void what_is_no_list_is_an_error(void **state)
{
    static const struct {
        const char *text;
        int code;
        const char *message;
    } rows[] = {
        { "", KINF_ERR_TRUNCATED, "ends before" },
        { "null", KINF_ERR_PARSE, "list: start expected" },
        { "[]", KINF_ERR_PARSE, "list: start expected" },
        { "<html>", KINF_ERR_PARSE, "list: start expected" },
        { "{1:2}", KINF_ERR_PARSE, "list: first key expected" },
        { "{\"a\" 1}", KINF_ERR_PARSE, "list: colon expected" },
        { "{\"a\":1 \"b\":2}", KINF_ERR_PARSE, "list: value end expected" },
        { "{\"a\":1,}", KINF_ERR_PARSE, "list: key expected" },
        { "{\"a\":01}", KINF_ERR_PARSE, "" },
        { "{\"a\":nil}", KINF_ERR_PARSE, "list: " },
        { "{\"a\\x\":1}", KINF_ERR_PARSE, "list: " },
        { "{\"items\":{},\"metadata\":{}}", KINF_ERR_PARSE, "items are no array" },
        { "{\"items\":[],\"items\":[]}", KINF_ERR_PARSE, "items are there twice" },
        { "{\"items\":[" ITEM("x") " " ITEM("y") "]}", KINF_ERR_PARSE, "list: item end expected" },
        { "{\"items\":[" ITEM("x") ",]}", KINF_ERR_PARSE, "list: item" },
        { "{\"items\":[{\"metadata\":{\"name\":tru}}]}", KINF_ERR_PARSE, "list: item" },
        { "{}", KINF_ERR_PARSE, "no items" },
        { "{\"metadata\":{\"resourceVersion\":\"1\"}}", KINF_ERR_PARSE, "no items" },
        { "{\"items\":[],\"metadata\":{}}", KINF_ERR_PARSE, "no metadata.resourceVersion" },
        { "{\"items\":[],\"metadata\":{\"resourceVersion\":7}}", KINF_ERR_PARSE, "no metadata" },
        { "{\"items\":[],\"metadata\":{\"resourceVersion\":\"1\\u0000\"}}", KINF_ERR_PARSE,
          "metadata.resourceVersion" },
        { "{\"items\":[],\"metadata\":{\"resourceVersion\":\"1\"}} {}", KINF_ERR_PARSE,
          "list: end expected" },
    };
    struct stream_driver list;

    (void)state;
    stream_driver_init_list(&list, "Thing", MAX_OBJECT_BYTES);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf_error err = KINF_ERROR_INIT;

        assert_int_equal(decode_text(&list, rows[i].text, &err), rows[i].code);
        assert_int_equal(err.code, rows[i].code);
        if (strstr(err.message, rows[i].message) == NULL)
            fail_msg("'%s' does not say '%s'", err.message, rows[i].message);
    }
    stream_driver_release(&list);
}

static void a_version_or_token_that_does_not_fit_is_an_error(void **state)
{
    struct stream_driver list;
    char text[2 * KINF__CONTINUE_SIZE];

    (void)state;
    stream_driver_init_list(&list, "Thing", MAX_OBJECT_BYTES);
    snprintf(text, sizeof text, "{\"items\":[],\"metadata\":{\"resourceVersion\":\"%0*d\"}}",
             KINF__RV_SIZE - 1, 7);
    assert_int_equal(decode_text(&list, text, NULL), 0);
    snprintf(text, sizeof text, "{\"items\":[],\"metadata\":{\"resourceVersion\":\"%0*d\"}}",
             KINF__RV_SIZE, 7);
    assert_int_equal(decode_text(&list, text, NULL), KINF_ERR_LIMIT);
    snprintf(text, sizeof text,
             "{\"items\":[],\"metadata\":{\"resourceVersion\":\"1\",\"continue\":\"%0*d\"}}",
             KINF__CONTINUE_SIZE, 7);
    assert_int_equal(decode_text(&list, text, NULL), KINF_ERR_LIMIT);
    stream_driver_release(&list);
}

/* --- what is left out --- */

static void an_item_that_is_no_object_of_the_type_is_passed_over(void **state)
{
    (void)state;
    try_text(
        "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" ITEM(
            "x") ",null,17,\"s\",[1],{},{\"metadata\":{\"name\":7}},"
                 "{\"kind\":\"Other\",\"metadata\":{\"name\":\"o\",\"namespace\":\"b\"}}," ITEM(
                     "y") "]}",
        MAX_OBJECT_BYTES,
        "a/x@1 ( PARSE) ( PARSE) ( PARSE) ( PARSE) ( PARSE) ( PARSE) (b/o PARSE) a/y@1 rv=5");
}

static void an_item_above_the_limit_is_passed_over(void **state)
{
    static const char big[] =
        "{\"metadata\":{\"namespace\":\"a\",\"name\":\"big\"},\"data\":{\"brackets\":\"]}\\\"}"
        "\\\\\","
        "\"deep\":[[{\"a\":[]}]],\"more\":\"................................................\"}}";
    char text[1024];

    (void)state;
    snprintf(text, sizeof text,
             "{\"items\":[%s," ITEM("x") ",%s],\"metadata\":{\"resourceVersion\":\"5\"}}", big,
             big);
    try_text(text, sizeof big - 1, "a/big@ a/x@1 a/big@ rv=5");
    try_text(text, sizeof big - 2, "(a/big LIMIT) a/x@1 (a/big LIMIT) rv=5");
    try_text(text, 70, "(a/big LIMIT) a/x@1 (a/big LIMIT) rv=5");
}

static void an_item_nested_too_deep_is_passed_over(void **state)
{
    enum { DEPTH = 10001 };
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct stream_driver list;

    (void)state;
    must(kinf__buffer_printf(&text,
                             "{\"items\":[{\"metadata\":{\"namespace\":\"a\",\"name\":\"deep\"},"
                             "\"x\":"));
    for (int i = 0; i < DEPTH; i++)
        must(kinf__buffer_append(&text, "[", 1));
    for (int i = 0; i < DEPTH; i++)
        must(kinf__buffer_append(&text, "]", 1));
    must(kinf__buffer_printf(&text, "}," ITEM("x") "],\"metadata\":{\"resourceVersion\":\"5\"}}"));
    stream_driver_init_list(&list, "Thing", MAX_OBJECT_BYTES);
    must(stream_driver_decode(&list, text.bytes, text.len, (struct test_cut){ .step = 100 }, NULL));
    assert_string_equal(list.text.bytes, "(a/deep LIMIT) a/x@1 rv=5");
    stream_driver_release(&list);
}

/* 4 MiB in one item with a limit of 1 KiB: nothing near that may be kept. */
static void an_item_above_the_limit_is_not_kept(void **state)
{
    enum { SIZE = 4 << 20, LIMIT = 1024 };
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct stream_driver list;

    (void)state;
    must(kinf__buffer_printf(&text,
                             "{\"items\":[{\"metadata\":{\"namespace\":\"a\",\"name\":\"big\"},"
                             "\"x\":\""));
    must(kinf__buffer_reserve(&text, SIZE));
    memset(text.bytes + text.len, 'y', SIZE);
    text.len += SIZE;
    must(kinf__buffer_printf(&text, "\"}],\"metadata\":{\"resourceVersion\":\"5\"}}"));
    stream_driver_init_list(&list, "Thing", LIMIT);
    must(
        stream_driver_decode(&list, text.bytes, text.len, (struct test_cut){ .step = 4096 }, NULL));
    assert_string_equal(list.text.bytes, "(a/big LIMIT) rv=5");
    assert_true(list.max_tail < 8192);
    stream_driver_release(&list);
}

/* It has no end that could be found without reading it as a number. */
static void a_number_above_the_limit_in_place_of_an_item_ends_the_list(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct stream_driver list;
    char text[512];

    (void)state;
    snprintf(text, sizeof text, "{\"items\":[1%0300d]}", 0);
    stream_driver_init_list(&list, "Thing", 200);
    assert_int_equal(
        stream_driver_decode(&list, text, strlen(text), (struct test_cut){ .step = 1 }, &err),
        KINF_ERR_PARSE);
    assert_non_null(strstr(err.message, "list: "));
    stream_driver_release(&list);
}

static void a_member_above_the_limit_ends_the_list(void **state)
{
    struct stream_driver list;
    char text[512];

    (void)state;
    snprintf(text, sizeof text, "{\"extra\":\"%0300d\",\"items\":[]}", 7);
    stream_driver_init_list(&list, "Thing", 200);
    assert_int_equal(decode_text(&list, text, NULL), KINF_ERR_LIMIT);
    assert_int_equal(
        stream_driver_decode(&list, text, strlen(text), (struct test_cut){ .step = 1 }, NULL),
        KINF_ERR_LIMIT);
    stream_driver_release(&list);
}

/* --- the caller --- */

static void a_callback_ends_the_list(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct stream_driver list;

    (void)state;
    stream_driver_init_list(&list, "Thing", MAX_OBJECT_BYTES);
    list.n_left = 1;
    assert_int_equal(decode_text(&list, "{\"items\":[" ITEM("x") "," ITEM("y") "]}", &err),
                     KINF_ERR_STOPPED);
    assert_string_equal(err.message, "enough");
    assert_string_equal(list.text.bytes, "a/x@1");
    stream_driver_release(&list);
}

/* 1 MiB byte by byte: with a scan for each byte this would take hours. */
static void small_pieces_of_a_large_item_stay_cheap(void **state)
{
    enum { SIZE = 1 << 20 };
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct stream_driver list;

    (void)state;
    must(kinf__buffer_printf(
        &text,
        "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{\"metadata\":{\"namespace\":\"a\","
        "\"name\":\"x\",\"resourceVersion\":\"1\"},\"x\":\""));
    must(kinf__buffer_reserve(&text, SIZE));
    memset(text.bytes + text.len, 'y', SIZE);
    text.len += SIZE;
    must(kinf__buffer_printf(&text, "\"}," ITEM("y") "]}"));
    stream_driver_init_list(&list, "Thing", MAX_OBJECT_BYTES);
    must(stream_driver_decode(&list, text.bytes, text.len, (struct test_cut){ .step = 1 }, NULL));
    assert_string_equal(list.text.bytes, "a/x@1 a/y@1 rv=5");
    /* Of which nothing is kept when they are over. */
    assert_in_range(list.max_tail, SIZE, 4 * SIZE);
    assert_in_range(list.list.tail.size, 0, SIZE);
    assert_in_range(list.decoder.body.size, 0, SIZE);
    stream_driver_release(&list);
}

static void no_memory_is_an_error_and_leaks_nothing(void **state)
{
    static const char text[] =
        "{\"items\":[" ITEM("x") "," ITEM("y") ",{\"metadata\":7}],"
                                               "\"metadata\":{\"resourceVersion\":\"5\"}}";
    size_t objects = kinf__object_count();
    bool has_failed;

    (void)state;
    for (size_t n = 1;; n++) {
        struct stream_driver list;
        int r = 0;

        stream_driver_init_list(&list, "Thing", MAX_OBJECT_BYTES);
        must(kinf__buffer_reserve(&list.text, 256));
        test_fail_allocation(n);
        for (size_t at = 0; r == 0 && at < sizeof text - 1; at += 10)
            r = stream_driver_feed(&list, text + at,
                                   sizeof text - 1 - at < 10 ? sizeof text - 1 - at : 10);
        if (r == 0)
            r = stream_driver_finish(&list, NULL);
        has_failed = test_allocation_failed();
        test_fail_allocation(0);
        assert_int_equal(r, has_failed ? KINF_ERR_NO_MEMORY : 0);
        stream_driver_release(&list);
        assert_int_equal(kinf__object_count(), objects);
        if (!has_failed)
            break;
    }
}

static void every_state_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(kinf__list_stream_state_to_string(KINF__LIST_END), "end");
    assert_string_equal(kinf__list_stream_state_to_string((enum kinf__list_stream_state)99),
                        "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_end_is_noticed),
        cmocka_unit_test(the_continue_token_is_taken_as_it_is),
        cmocka_unit_test(tables_are_refused),
        cmocka_unit_test(members_come_in_any_order_and_form),
        cmocka_unit_test(what_is_no_list_is_an_error),
        cmocka_unit_test(a_version_or_token_that_does_not_fit_is_an_error),
        cmocka_unit_test(an_item_that_is_no_object_of_the_type_is_passed_over),
        cmocka_unit_test(an_item_above_the_limit_is_passed_over),
        cmocka_unit_test(an_item_nested_too_deep_is_passed_over),
        cmocka_unit_test(an_item_above_the_limit_is_not_kept),
        cmocka_unit_test(a_member_above_the_limit_ends_the_list),
        cmocka_unit_test(a_number_above_the_limit_in_place_of_an_item_ends_the_list),
        cmocka_unit_test(a_callback_ends_the_list),
        cmocka_unit_test(small_pieces_of_a_large_item_stay_cheap),
        cmocka_unit_test(no_memory_is_an_error_and_leaks_nothing),
        cmocka_unit_test(every_state_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
