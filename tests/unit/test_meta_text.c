/*
 * Metadata read from text: what is there, what is not, and what is too long to be.
 */
#include "apiserver/meta_text.h"

#include <stdio.h>
#include <string.h>

#include "unit/test.h"

static const struct kinf_object *object_of(const char *metadata)
{
    const struct kinf_object *object;
    const struct kinf_type *type;
    char json[4096];

    snprintf(json, sizeof json, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"%s}}", metadata);
    assert_int_equal(kinf_type_intern("", "v1", "ConfigMap", "configmaps", true, &type, NULL), 0);
    assert_int_equal(kinf_object_new_from_json(type, json, strlen(json), &object, NULL), 0);
    return object;
}

static void what_is_not_there_is_none(void **state)
{
    static const char *const texts[] = { "", ",\"ownerReferences\":[],\"finalizers\":[]",
                                         ",\"ownerReferences\":null,\"deletionTimestamp\":null" };
    struct kinf__meta_text meta;

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(texts); i++) {
        const kinf_auto_object struct kinf_object *object = object_of(texts[i]);
        kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;

        assert_int_equal(kinf__meta_text_read(object, &scratch, &meta), 0);
        assert_false(meta.is_going);
        assert_int_equal(meta.owners.type, KINF__JSON_NULL);
        assert_false(kinf__meta_text_has_finalizer(&meta, "a"));
        assert_false(kinf__meta_text_is_going(object));
    }
    assert_int_equal(kinf__meta_text_read(NULL, NULL, &meta), 0);
    assert_false(meta.is_going);
}

static void owners_and_finalizers_are_read(void **state)
{
    const kinf_auto_object struct kinf_object *object = object_of(
        ",\"deletionTimestamp\":\"2026-11-22T10:00:00Z\",\"finalizers\":[1,\"x/y\"],"
        "\"ownerReferences\":[{\"uid\":\"1\",\"name\":\"b\",\"kind\":\"K\",\"apiVersion\":\"g/v\","
        "\"controller\":true},{\"uid\":\"\\u0032\",\"blockOwnerDeletion\":true}]");
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__owner_reference owner;
    struct kinf__meta_text meta;
    struct kinf__json_iter iter;

    (void)state;
    assert_int_equal(kinf__meta_text_read(object, &scratch, &meta), 0);
    assert_true(meta.is_going);
    assert_true(kinf__meta_text_is_going(object));
    assert_true(kinf__meta_text_has_finalizer(&meta, "x/y"));
    assert_false(kinf__meta_text_has_finalizer(&meta, "1"));
    assert_true(kinf__json_iter_init(&iter, meta.owners));
    assert_true(kinf__owner_reference_next(&iter, &owner));
    assert_string_equal(owner.api_version, "g/v");
    assert_string_equal(owner.kind, "K");
    assert_string_equal(owner.name, "b");
    assert_string_equal(owner.uid, "1");
    assert_true(owner.is_controller);
    assert_false(owner.blocks);
    assert_true(kinf__owner_reference_next(&iter, &owner));
    assert_string_equal(owner.uid, "2");
    assert_string_equal(owner.name, "");
    assert_false(owner.is_controller);
    assert_true(owner.blocks);
    assert_false(kinf__owner_reference_next(&iter, &owner));
}

static void a_text_that_is_too_long_or_none_counts_as_none(void **state)
{
    char text[1024], uid[65];
    struct kinf__owner_reference owner;
    struct kinf__json_iter iter;

    (void)state;
    for (int len = 63; len <= 64; len++) {
        memset(uid, 'u', (size_t)len);
        uid[len] = '\0';
        snprintf(text, sizeof text, "[{\"uid\":\"%s\",\"name\":7,\"controller\":\"true\"},8]", uid);
        assert_true(kinf__json_iter_init(&iter, kinf__json_value_of(kinf_str_from(text))));
        assert_true(kinf__owner_reference_next(&iter, &owner));
        assert_string_equal(owner.uid, len == 63 ? uid : "");
        assert_string_equal(owner.name, "");
        assert_false(owner.is_controller);
        assert_true(kinf__owner_reference_next(&iter, &owner));
        assert_string_equal(owner.uid, "");
        assert_false(kinf__owner_reference_next(&iter, &owner));
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_there_is_none),
        cmocka_unit_test(owners_and_finalizers_are_read),
        cmocka_unit_test(a_text_that_is_too_long_or_none_counts_as_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
