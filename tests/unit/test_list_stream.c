/*
 * The list stream: recorded lists in any pieces, what it leaves out, what it refuses.
 */
#include "reflector/list_stream.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "unit/allocation.h"
#include "unit/test.h"
#include "unit/transcript.h"

#define MAX_OBJECT_BYTES (16 << 20)

/* "ns/name@rv" of each object, then the list's metadata; made from the recordings by another
 * program. */
static const struct {
    const char *name;
    const char *kind;
    const char *expected;
} recorded[] = {
    { "01-list-chunked", "ConfigMap",
      "kube-system/extension-apiserver-authentication@24 "
      "kube-system/kube-apiserver-legacy-service-account-token-tracking@38 t1/alpha@212 "
      "t1/beta@213 t1/gamma@214 rv=224" },
    { "01-list-cr-chunked", "Widget",
      "t1/w0@219 t1/w1@220 t1/w2@221 t1/w3@222 t1/w4@223 t1/w5@224 rv=224" },
    { "01-list-cr-empty", "Widget", "rv=224" },
    { "01-list-cr-limit1-page1", "Widget", "t1/w0@220 rv=224 continue remaining=2" },
    { "01-list-cr-limit1-page2", "Widget", "t1/w1@221 rv=224 continue remaining=1" },
    { "01-list-cr-limit1-page3", "Widget", "t1/w2@222 rv=224" },
    { "01-list-cr", "Widget", "t1/w0@220 t1/w1@221 t1/w2@222 rv=224" },
    { "01-list-empty", "ConfigMap", "rv=224" },
    { "01-list-exact", "ConfigMap", "t1/alpha@210 t1/beta@211 t1/gamma@212 rv=222" },
    { "01-list-gzip-below-threshold", "ConfigMap", "t1/alpha@210 t1/beta@211 t1/gamma@212 rv=228" },
    { "01-list-gzip", "ConfigMap", "big/big0@226 big/big1@227 big/big2@228 rv=228" },
    { "01-list-limit1-page1", "ConfigMap", "t1/alpha@210 rv=222 continue remaining=2" },
    { "01-list-limit1-page2", "ConfigMap", "t1/beta@211 rv=222 continue remaining=1" },
    { "01-list-limit1-page3", "ConfigMap", "t1/gamma@212 rv=222" },
    { "01-list-limit1-selector-page1", "ConfigMap", "t1/alpha@210 rv=224 continue" },
    { "01-list-plain", "ConfigMap", "t1/alpha@210 t1/beta@211 t1/gamma@212 rv=222" },
    { "01-list-pretty", "ConfigMap", "t1/alpha@210 t1/beta@211 t1/gamma@212 rv=224" },
    { "01-list-rv0-limit1", "ConfigMap", "t1/alpha@210 t1/beta@211 t1/gamma@212 rv=222" },
    { "01-list-rv0", "ConfigMap", "t1/alpha@210 t1/beta@211 t1/gamma@212 rv=222" },
    { "05-list-continue-after-foreign-compaction", "ConfigMap",
      "t1/beta@211 rv=226 continue remaining=1" },
    { "05-list-continue-inconsistent-page2", "ConfigMap",
      "t1/beta@211 rv=236 continue remaining=1" },
    { "05-list-continue-inconsistent-page3", "ConfigMap", "t1/gamma@212 rv=236" },
    { "05-list-notolderthan-old", "ConfigMap", "t1/alpha@210 t1/beta@211 t1/gamma@212 rv=236" },
    { "05-list-rv-old-no-match", "ConfigMap", "t1/alpha@210 t1/beta@211 t1/gamma@212 rv=236" },
    { "12-conversion-ok-list-v1", "Gizmo", "t1/g0@227 t1/g1@228 rv=230" },
    { "12-crd-recreated-list-200", "Widget", "rv=229" },
    { "13-list-1mib-value-gzip", "ConfigMap", "huge/big@380 rv=380" },
    { "13-list-configmaps-escapes", "ConfigMap",
      "stress/binary@221 stress/duplicate-keys@224 stress/escapes@217 stress/invalid-utf8-json@220 "
      "stress/invalid-utf8-protobuf@225 stress/lone-surrogate@219 stress/no-data@223 "
      "stress/nul@218 stress/with.dots.in.name@222 rv=225" },
    { "13-list-cr-stress", "Widget",
      "stress/deep060@365 stress/deeparray060@366 stress/empties@362 stress/keys@363 "
      "stress/lone@364 stress/numbers@361 rv=366" },
    { "14-drop-managedfields", "ConfigMap", "t1/alpha@209 rv=218 continue remaining=1" },
    { "14-metadata-list-cr", "PartialObjectMetadata", "t1/w0@218 rv=218" },
    { "14-metadata-list-limit1", "PartialObjectMetadata",
      "t1/alpha@209 rv=218 continue remaining=1" },
    { "14-metadata-list-with-fallback", "ConfigMap", "t1/alpha@209 t1/beta@210 rv=218" },
    { "14-metadata-list", "PartialObjectMetadata", "t1/alpha@209 t1/beta@210 rv=218" },
    { "17-rv-list-above-objects", "ConfigMap",
      "t1/alpha@209 t1/beta@210 t1/rv0@262 t1/rv1@264 t1/rv2@266 rv=269" },
};

/* One list, decoded. */
struct list {
    struct kinf__prune_plan *plan;
    struct kinf__object_decoder decoder;
    struct kinf__list_stream_callbacks callbacks;
    struct kinf__list_stream stream;
    struct kinf__buffer text; /* what came out */
    uint64_t hash;            /* of the objects' bytes */
    size_t max_tail;
    int fail_with; /* of on_object */
};

static void must(int r)
{
    assert_int_equal(r, 0);
}

static int note_object(const struct kinf_object *take_object, void *ctx, struct kinf_error *err)
{
    struct list *list = ctx;
    kinf_auto_object const struct kinf_object *object = take_object;
    kinf_auto_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str json;

    must(kinf_object_json(object, &scratch, &json, NULL));
    for (size_t i = 0; i < json.len; i++)
        list->hash = (list->hash ^ (unsigned char)json.bytes[i]) * 0x100000001b3U;
    must(kinf__buffer_printf(&list->text, "%s@%s ", kinf_object_key(object),
                             kinf_object_resource_version(object)));
    return list->fail_with < 0 ? kinf__error_set(err, KINF_ERR_STOPPED, "enough") : 0;
}

static int note_reject(const char *key, const struct kinf_error *why, void *ctx,
                       struct kinf_error *err)
{
    struct list *list = ctx;

    (void)err;
    must(kinf__buffer_printf(&list->text, "(%s %s) ", key, kinf_errc_to_string(why->code)));
    return 0;
}

static void list_init(struct list *list, const char *kind, size_t max_object_bytes)
{
    const struct kinf_type *type;

    *list = (struct list){ .callbacks = { note_object, note_reject, list } };
    must(kinf_type_intern("", "v1", kind, "things", true, &type, NULL));
    must(kinf__prune_plan_new(NULL, 0, NULL, 0, &list->plan, NULL));
    kinf__object_decoder_init(&list->decoder, type, list->plan);
    kinf__list_stream_init(&list->stream, &list->decoder, max_object_bytes, &list->callbacks);
}

static void list_release(struct list *list)
{
    kinf__list_stream_release(&list->stream);
    kinf__object_decoder_release(&list->decoder);
    kinf__prune_plan_free(list->plan);
    kinf__buffer_release(&list->text);
}

static int feed(const char *bytes, size_t len, void *ctx)
{
    struct list *list = ctx;
    int r = kinf__list_stream_feed(&list->stream, bytes, len, NULL);

    if (list->stream.tail.size > list->max_tail)
        list->max_tail = list->stream.tail.size;
    return r;
}

static void note_metadata(struct list *list)
{
    must(kinf__buffer_printf(&list->text, "rv=%s", list->stream.rv));
    if (list->stream.continue_token[0] != '\0')
        must(kinf__buffer_printf(&list->text, " continue"));
    if (list->stream.remaining_item_count >= 0)
        must(kinf__buffer_printf(&list->text, " remaining=%lld",
                                 (long long)list->stream.remaining_item_count));
}

/* Decodes a body cut as told, behind whatever came before. What came out is in list->text. */
static int decode(struct list *list, const char *body, size_t len, struct test_cut cut,
                  struct kinf_error *err)
{
    int r;

    list->text.len = 0;
    list->hash = 0xcbf29ce484222325U;
    kinf__list_stream_reset(&list->stream);
    r = test_feed_cut(body, len, cut, feed, list);
    if (r == 0)
        r = kinf__list_stream_finish(&list->stream, err);
    if (r == 0)
        note_metadata(list);
    assert_non_null(kinf__buffer_cstr(&list->text));
    return r;
}

static const struct test_cut whole = { .step = SIZE_MAX / 2 };

/* Decodes one text in one piece. */
static int decode_text(struct list *list, const char *text, struct kinf_error *err)
{
    int r;

    list->text.len = 0;
    kinf__list_stream_reset(&list->stream);
    r = kinf__list_stream_feed(&list->stream, text, strlen(text), err);
    if (r == 0)
        r = kinf__list_stream_finish(&list->stream, err);
    if (r == 0)
        note_metadata(list);
    assert_non_null(kinf__buffer_cstr(&list->text));
    return r;
}

/* --- recorded lists --- */

struct trial {
    struct list *list;
    const char *body;
    size_t len;
    const char *expected;
    int expected_code;
    uint64_t hash;
};

static void try_cut(struct test_cut cut, void *ctx)
{
    struct trial *trial = ctx;

    assert_int_equal(decode(trial->list, trial->body, trial->len, cut, NULL), trial->expected_code);
    assert_string_equal(trial->list->text.bytes, trial->expected);
    if (trial->hash == 0)
        trial->hash = trial->list->hash;
    assert_true(trial->list->hash == trial->hash);
}

static void recorded_lists_decode_in_any_pieces(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(recorded); i++) {
        struct test_transcript transcript = test_transcript_read(recorded[i].name);
        struct list list;
        struct trial trial = { .list = &list,
                               .body = transcript.body,
                               .len = transcript.len,
                               .expected = recorded[i].expected };

        printf("  %s\n", recorded[i].name);
        list_init(&list, recorded[i].kind, MAX_OBJECT_BYTES);
        test_each_cut(trial.len, try_cut, &trial);
        list_release(&list);
        test_transcript_release(&transcript);
    }
}

static void every_cut_end_is_noticed(void **state)
{
    struct test_transcript transcript = test_transcript_read("01-list-cr-limit1-page1");
    struct list list;

    (void)state;
    list_init(&list, "Widget", MAX_OBJECT_BYTES);
    assert_int_equal(transcript.body[transcript.len - 1], '\n');
    for (size_t len = 0; len < transcript.len - 1; len++)
        assert_int_equal(decode(&list, transcript.body, len, whole, NULL), KINF_ERR_TRUNCATED);
    assert_int_equal(decode(&list, transcript.body, transcript.len - 1, whole, NULL), 0);
    list_release(&list);
    test_transcript_release(&transcript);
}

static void the_continue_token_is_taken_as_it_is(void **state)
{
    struct test_transcript transcript = test_transcript_read("01-list-limit1-page1");
    struct list list;
    const char *token = strstr(transcript.body, "\"continue\":\"") + 12;

    (void)state;
    list_init(&list, "ConfigMap", MAX_OBJECT_BYTES);
    must(decode(&list, transcript.body, transcript.len, whole, NULL));
    assert_int_equal(strcspn(token, "\""), strlen(list.stream.continue_token));
    assert_memory_equal(list.stream.continue_token, token, strcspn(token, "\""));
    list_release(&list);
    test_transcript_release(&transcript);
}

static void tables_are_refused(void **state)
{
    static const char *const names[] = { "14-table-list", "14-table-list-cr" };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++) {
        struct test_transcript transcript = test_transcript_read(names[i]);
        struct list list;
        struct trial trial = { .list = &list,
                               .body = transcript.body,
                               .len = transcript.len,
                               .expected = "",
                               .expected_code = KINF_ERR_UNSUPPORTED };

        list_init(&list, "ConfigMap", MAX_OBJECT_BYTES);
        test_each_cut(trial.len, try_cut, &trial);
        list_release(&list);
        test_transcript_release(&transcript);
    }
}

/* --- forms --- */

#define ITEM(name)                                                                                 \
    "{\"metadata\":{\"namespace\":\"a\",\"name\":\"" name "\",\"resourceVersion\":\"1\"}}"

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
        { "{\"kind\":null,\"apiVersion\":7,\"metadata\":{\"resourceVersion\":\"5\",\"continue\":"
          "null},"
          "\"items\":[]}",
          "rv=5" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct list list;
        struct trial trial = { .list = &list,
                               .body = rows[i].text,
                               .len = strlen(rows[i].text),
                               .expected = rows[i].expected };

        list_init(&list, "Thing", MAX_OBJECT_BYTES);
        test_each_cut(trial.len, try_cut, &trial);
        list_release(&list);
    }
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
    struct list list;

    (void)state;
    list_init(&list, "Thing", MAX_OBJECT_BYTES);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf_error err = KINF_ERROR_INIT;

        assert_int_equal(decode_text(&list, rows[i].text, &err), rows[i].code);
        assert_int_equal(err.code, rows[i].code);
        if (strstr(err.message, rows[i].message) == NULL)
            fail_msg("'%s' does not say '%s'", err.message, rows[i].message);
    }
    list_release(&list);
}

static void a_version_or_token_that_does_not_fit_is_an_error(void **state)
{
    struct list list;
    char text[2 * KINF__CONTINUE_SIZE];

    (void)state;
    list_init(&list, "Thing", MAX_OBJECT_BYTES);
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
    list_release(&list);
}

/* --- what is left out --- */

static void try_text(const char *text, size_t max_object_bytes, const char *expected)
{
    struct list list;
    struct trial trial = { .list = &list, .body = text, .len = strlen(text), .expected = expected };

    list_init(&list, "Thing", max_object_bytes);
    test_each_cut(trial.len, try_cut, &trial);
    list_release(&list);
}

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
    struct list list;

    (void)state;
    must(kinf__buffer_printf(&text,
                             "{\"items\":[{\"metadata\":{\"namespace\":\"a\",\"name\":\"deep\"},"
                             "\"x\":"));
    for (int i = 0; i < DEPTH; i++)
        must(kinf__buffer_append(&text, "[", 1));
    for (int i = 0; i < DEPTH; i++)
        must(kinf__buffer_append(&text, "]", 1));
    must(kinf__buffer_printf(&text, "}," ITEM("x") "],\"metadata\":{\"resourceVersion\":\"5\"}}"));
    list_init(&list, "Thing", MAX_OBJECT_BYTES);
    must(decode(&list, text.bytes, text.len, (struct test_cut){ .step = 100 }, NULL));
    assert_string_equal(list.text.bytes, "(a/deep LIMIT) a/x@1 rv=5");
    list_release(&list);
}

/* 4 MiB in one item with a limit of 1 KiB: nothing near that may be kept. */
static void an_item_above_the_limit_is_not_kept(void **state)
{
    enum { SIZE = 4 << 20, LIMIT = 1024 };
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct list list;

    (void)state;
    must(kinf__buffer_printf(&text,
                             "{\"items\":[{\"metadata\":{\"namespace\":\"a\",\"name\":\"big\"},"
                             "\"x\":\""));
    must(kinf__buffer_reserve(&text, SIZE));
    memset(text.bytes + text.len, 'y', SIZE);
    text.len += SIZE;
    must(kinf__buffer_printf(&text, "\"}],\"metadata\":{\"resourceVersion\":\"5\"}}"));
    list_init(&list, "Thing", LIMIT);
    must(decode(&list, text.bytes, text.len, (struct test_cut){ .step = 4096 }, NULL));
    assert_string_equal(list.text.bytes, "(a/big LIMIT) rv=5");
    assert_true(list.max_tail < 8192);
    list_release(&list);
}

static void a_member_above_the_limit_ends_the_list(void **state)
{
    struct list list;
    char text[512];

    (void)state;
    snprintf(text, sizeof text, "{\"extra\":\"%0300d\",\"items\":[]}", 7);
    list_init(&list, "Thing", 200);
    assert_int_equal(decode_text(&list, text, NULL), KINF_ERR_LIMIT);
    assert_int_equal(decode(&list, text, strlen(text), (struct test_cut){ .step = 1 }, NULL),
                     KINF_ERR_LIMIT);
    list_release(&list);
}

/* --- the caller --- */

static void a_callback_ends_the_list(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct list list;

    (void)state;
    list_init(&list, "Thing", MAX_OBJECT_BYTES);
    list.fail_with = KINF_ERR_STOPPED;
    assert_int_equal(decode_text(&list, "{\"items\":[" ITEM("x") "," ITEM("y") "]}", &err),
                     KINF_ERR_STOPPED);
    assert_string_equal(err.message, "enough");
    assert_string_equal(list.text.bytes, "a/x@1 ");
    list_release(&list);
}

/* 1 MiB byte by byte: with a scan for each byte this would take hours. */
static void small_pieces_of_a_large_item_stay_cheap(void **state)
{
    enum { SIZE = 1 << 20 };
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct list list;

    (void)state;
    must(kinf__buffer_printf(
        &text,
        "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{\"metadata\":{\"namespace\":\"a\","
        "\"name\":\"x\",\"resourceVersion\":\"1\"},\"x\":\""));
    must(kinf__buffer_reserve(&text, SIZE));
    memset(text.bytes + text.len, 'y', SIZE);
    text.len += SIZE;
    must(kinf__buffer_printf(&text, "\"}," ITEM("y") "]}"));
    list_init(&list, "Thing", MAX_OBJECT_BYTES);
    must(decode(&list, text.bytes, text.len, (struct test_cut){ .step = 1 }, NULL));
    assert_string_equal(list.text.bytes, "a/x@1 a/y@1 rv=5");
    list_release(&list);
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
        struct list list;
        int r = 0;

        list_init(&list, "Thing", MAX_OBJECT_BYTES);
        must(kinf__buffer_reserve(&list.text, 256));
        test_fail_allocation(n);
        for (size_t at = 0; r == 0 && at < sizeof text - 1; at += 10)
            r = kinf__list_stream_feed(&list.stream, text + at,
                                       sizeof text - 1 - at < 10 ? sizeof text - 1 - at : 10, NULL);
        if (r == 0)
            r = kinf__list_stream_finish(&list.stream, NULL);
        has_failed = test_allocation_failed();
        test_fail_allocation(0);
        assert_int_equal(r, has_failed ? KINF_ERR_NO_MEMORY : 0);
        list_release(&list);
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
        cmocka_unit_test(recorded_lists_decode_in_any_pieces),
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
        cmocka_unit_test(a_callback_ends_the_list),
        cmocka_unit_test(small_pieces_of_a_large_item_stay_cheap),
        cmocka_unit_test(no_memory_is_an_error_and_leaks_nothing),
        cmocka_unit_test(every_state_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
