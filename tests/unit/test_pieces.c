/*
 * Objects in every form, as clients read them: the same bytes whether the object was copied or is sent
 * from itself, in whatever pieces.
 */
#include "serve/pieces.h"

#include <stdio.h>
#include <string.h>

#include "object/object.h"
#include "serve/encode.h"
#include "unit/allocation.h"
#include "unit/test.h"

static const struct kinf_type pods = { "", "v1", "Pod", "pods", true };
static const struct kinf_type gadgets = { "example.org", "v1", "Gadget", "gadgets", false };

#define POD_METADATA(version)                                                                      \
    "\"metadata\":{\"name\":\"web\",\"namespace\":\"a\",\"uid\":\"u\",\"resourceVersion\":"        \
    "\"" version "\",\"labels\":{\"app\":\"x\"}}"
#define POD_SPEC "\"spec\":{\"nodeName\":\"n1\"}"
#define POD      "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"," POD_METADATA("5") "," POD_SPEC "}"
#define PARTIAL  "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\","

/* Metadata behind the rest, the version behind the rest of it, and line ends. */
#define GADGET                                                                                     \
    "{\"spec\":{\"size\":3},\"metadata\":{\"annotations\":{\"a\":\"b\"},\"name\":\"one\",\n"       \
    "\"resourceVersion\" : \"6\"}\n}"
#define GADGET_METADATA(version)                                                                   \
    "\"metadata\":{\"annotations\":{\"a\":\"b\"},\"name\":\"one\", \"resourceVersion\" : "         \
    "\"" version "\"}"
#define GADGET_LINE(version)                                                                       \
    "{\"kind\":\"Gadget\",\"apiVersion\":\"example.org/"                                           \
    "v1\",\"spec\":{\"size\":3}," GADGET_METADATA(version) " }"
#define TABLE(version)                                                                             \
    "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{\"resourceVersion\":"     \
    "\"" version "\"},\"columnDefinitions\":null,\"rows\":["
#define ROW "{\"cells\":[\"one\",\"\\u003cunknown\\u003e\"],\"object\":"

static const struct one_case {
    const struct kinf_type *type;
    enum kinf__form form;
    enum kinf__include_object include;
    bool is_item;
    const char *json;
    const char *version;
    const char *expected;
} cases[] = {
    { &pods, KINF__FORM_OBJECT, 0, false, POD, NULL, POD },
    { &pods, KINF__FORM_OBJECT, 0, false, POD, "77",
      "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"," POD_METADATA("77") "," POD_SPEC "}" },
    { &pods, KINF__FORM_METADATA, 0, false, POD, "77", PARTIAL POD_METADATA("77") "}" },
    { &pods, KINF__FORM_METADATA_LIST, 0, true, POD, NULL, PARTIAL POD_METADATA("5") "}" },
    { &pods, KINF__FORM_OBJECT, 0, true, POD, NULL, "{" POD_METADATA("5") "," POD_SPEC "}" },
    { &gadgets, KINF__FORM_OBJECT, 0, false, GADGET, NULL, GADGET_LINE("6") },
    { &gadgets, KINF__FORM_OBJECT, 0, false, GADGET, "77", GADGET_LINE("77") },
    { &gadgets, KINF__FORM_OBJECT, 0, true, GADGET, NULL, GADGET_LINE("6") },
    { &gadgets, KINF__FORM_METADATA, 0, false, GADGET, "77", PARTIAL GADGET_METADATA("77") "}" },
    { &gadgets, KINF__FORM_OBJECT, 0, false, "{\"metadata\":{\"name\":\"two\"},\"data\":{}}", "77",
      "{\"kind\":\"Gadget\",\"apiVersion\":\"example.org/v1\",\"metadata\":{\"name\":\"two\"},"
      "\"data\":{}}" },
    { &gadgets, KINF__FORM_TABLE, KINF__INCLUDE_METADATA, false, GADGET, "77",
      TABLE("77") ROW PARTIAL GADGET_METADATA("77") "}}]}" },
    { &gadgets, KINF__FORM_TABLE, KINF__INCLUDE_OBJECT, false, GADGET, "77",
      TABLE("77") ROW GADGET_LINE("77") "}]}" },
    { &gadgets, KINF__FORM_TABLE, KINF__INCLUDE_NONE, false, GADGET, NULL,
      TABLE("6") ROW "null}]}" },
    { &gadgets, KINF__FORM_TABLE, KINF__INCLUDE_OBJECT, true, GADGET, NULL,
      ROW GADGET_LINE("6") "}" },
};

static const struct kinf_object *make_object(const struct kinf_type *type, const char *json)
{
    const struct kinf_object *object;

    assert_int_equal(kinf_object_new_from_json(type, json, strlen(json), &object, NULL), 0);
    return object;
}

static int encode(const struct one_case *one, const struct kinf_object *object,
                  struct kinf__pieces *out)
{
    struct kinf__encoder encoder = { .type = one->type,
                                     .form = one->form,
                                     .include = one->include,
                                     .table = kinf__table_for(one->type),
                                     .no_columns = true };
    int failed = one->is_item ? kinf__encode_item(&encoder, object, out)
                              : kinf__encode_object(&encoder, object, one->version, out);

    kinf__encoder_release(&encoder);
    return failed;
}

/* Takes all there is, `step` bytes at a time. */
static void take_all(struct kinf__pieces *pieces, size_t step, struct kinf__buffer *out)
{
    static char piece[16384];
    size_t len = kinf__pieces_len(pieces), n;

    while ((n = kinf__pieces_take(pieces, piece, step)) != 0) {
        assert_true(n == step || kinf__pieces_len(pieces) == 0);
        assert_int_equal(kinf__buffer_append(out, piece, n), 0);
        assert_int_equal(kinf__pieces_len(pieces), len - out->len);
    }
    assert_int_equal(out->len, len);
}

static void every_form_is_the_same_copied_or_held_in_pieces_of_any_size(void **state)
{
    static const size_t steps[] = { 1, 7, 16384 }, larges[] = { 0, 1, 60, SIZE_MAX };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(cases) * KINF__ARRAY_LEN(steps); i++) {
        const struct one_case *one = &cases[i / KINF__ARRAY_LEN(steps)];

        for (size_t k = 0; k < KINF__ARRAY_LEN(larges); k++) {
            kinf_auto_object const struct kinf_object *object = make_object(one->type, one->json);
            struct kinf__pieces pieces = { .large = larges[k] };
            KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;

            assert_int_equal(encode(one, object, &pieces), 0);
            take_all(&pieces, steps[i % KINF__ARRAY_LEN(steps)], &out);
            assert_string_equal(kinf__buffer_cstr(&out), one->expected);
            kinf__pieces_release(&pieces);
        }
    }
}

/* Of a megabyte, with its version in the middle. */
static const struct kinf_object *make_large(void)
{
    static char text[(1u << 20) + 1024];

    snprintf(text, sizeof text,
             "{\"metadata\":{\"annotations\":{\"a\":\"%0524288d\"},\"name\":\"one\","
             "\"resourceVersion\":\"6\"},\"data\":{\"b\":\"%0524288d\"}}",
             1, 2);
    return make_object(&gadgets, text);
}

static void a_large_object_is_held_and_not_copied(void **state)
{
    static const struct one_case one = { .type = &gadgets, .version = "77" };
    const struct kinf_object *object = make_large();
    struct kinf__pieces pieces = { .large = 16384 };
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;

    (void)state;
    assert_false(kinf__pieces_are_enough(&pieces, 1));
    assert_int_equal(encode(&one, object, &pieces), 0);
    kinf_object_unref(object);
    assert_true(pieces.bytes.size < 1024);
    assert_true(kinf__pieces_are_enough(&pieces, SIZE_MAX));
    take_all(&pieces, 16384, &out);
    assert_true(out.len > 1u << 20);
    assert_non_null(strstr(kinf__buffer_cstr(&out), "\"resourceVersion\":\"77\""));
    kinf__pieces_clear(&pieces, 1024);
    assert_int_equal(kinf__object_count(), 0);
    assert_true(pieces.bytes.size != 0);
    assert_int_equal(kinf__pieces_len(&pieces), 0);
    assert_false(kinf__pieces_are_enough(&pieces, 1));
    kinf__pieces_release(&pieces);
    assert_int_equal(pieces.bytes.size, 0);
}

static void what_is_given_up_half_way_is_freed(void **state)
{
    static const struct one_case one = { .type = &gadgets, .version = "77" };
    static char piece[8192];

    (void)state;
    for (size_t n_read = 0; n_read < 200; n_read += 9) {
        const struct kinf_object *object = make_large();
        struct kinf__pieces pieces = { .large = 16384 };
        struct kinf__stream *stream;

        assert_int_equal(encode(&one, object, &pieces), 0);
        kinf_object_unref(object);
        assert_int_equal(kinf__pieces_stream(&pieces, &stream), 0);
        for (size_t i = 0; i < n_read; i++)
            assert_true(stream->read(stream, piece, sizeof piece) != 0);
        stream->free(stream);
        assert_int_equal(kinf__object_count(), 0);
    }
}

static void a_stream_ends_behind_the_last_byte(void **state)
{
    static const struct one_case one = { .type = &gadgets, .version = "77" };
    static char piece[65536];
    kinf_auto_object const struct kinf_object *object = make_large();
    struct kinf__pieces pieces = { .large = 16384 };
    struct kinf__stream *stream;
    size_t len, n_read = 0;
    ssize_t n;

    (void)state;
    assert_int_equal(encode(&one, object, &pieces), 0);
    len = kinf__pieces_len(&pieces);
    assert_int_equal(kinf__pieces_stream(&pieces, &stream), 0);
    while ((n = stream->read(stream, piece, sizeof piece)) > 0)
        n_read += (size_t)n;
    assert_int_equal(n, KINF__STREAM_END);
    assert_int_equal(n_read, len);
    stream->free(stream);
}

static void out_of_memory_leaks_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(cases); i++) {
        bool did_fail = true;

        for (size_t n = 1; did_fail; n++) {
            const struct kinf_object *object = make_object(cases[i].type, cases[i].json);
            struct kinf__pieces pieces = { .large = 40 };
            struct kinf__stream *stream;
            int failed;

            test_fail_allocation(n);
            failed = encode(&cases[i], object, &pieces);
            if (failed == 0)
                failed = kinf__pieces_stream(&pieces, &stream);
            did_fail = test_allocation_failed();
            assert_int_equal(failed, did_fail ? KINF_ERR_NO_MEMORY : 0);
            if (failed == 0)
                stream->free(stream);
            kinf__pieces_release(&pieces);
            kinf_object_unref(object);
            assert_int_equal(kinf__object_count(), 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_the_same_copied_or_held_in_pieces_of_any_size),
        cmocka_unit_test(a_large_object_is_held_and_not_copied),
        cmocka_unit_test(what_is_given_up_half_way_is_freed),
        cmocka_unit_test(a_stream_ends_behind_the_last_byte),
        cmocka_unit_test(out_of_memory_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
