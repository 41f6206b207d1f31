/*
 * What the tests of the store share.
 */
#include "unit/indexer_fixture.h"

#include <stdio.h>
#include <string.h>

#include "indexer/indexer.h"
#include "object/object.h"
#include "unit/test.h"

/* --- objects --- */

const struct kinf_object *indexer_object(const char *key, const char *rv, const char *words)
{
    const char *slash = strchr(key, '/');
    struct kinf__object_parts parts = {
        .name = kinf_str_from(slash != NULL ? slash + 1 : key),
        .uid = kinf_str_from(words),
        .resource_version = kinf_str_from(rv),
        .body = KINF_STR("{}"),
    };
    const struct kinf_object *object;

    if (slash != NULL)
        parts.name_space = (struct kinf_str){ key, (size_t)(slash - key) };
    assert_int_equal(kinf__object_new(&parts, &object, NULL), 0);
    return object;
}

const struct kinf_object *indexer_json_object(const char *text)
{
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf_type *type;
    const struct kinf_object *object;

    assert_int_equal(kinf_type_intern("", "v1", "Pod", "pods", true, &type, &err), 0);
    if (kinf_object_new_from_json(type, text, strlen(text), &object, &err) < 0)
        fail_msg("%s", err.message);
    return object;
}

/* --- index functions --- */

/* Adds each word, or its first `len_max` bytes. */
static int add_words(const char *words, size_t len_max, struct kinf_index_values *values)
{
    while (words[0] != '\0') {
        size_t len = strcspn(words, ",");
        int result = kinf_index_values_add(values, words, len < len_max ? len : len_max);

        if (result < 0)
            return result;
        words += len + (words[len] == ',');
        if (words[0] == '\0' && words[-1] == ',')
            return kinf_index_values_add(values, "", 0);
    }
    return 0;
}

int index_by_word(const struct kinf_object *object, struct kinf_index_values *values, void *ctx)
{
    (void)ctx;
    if (add_words(kinf_object_uid(object), SIZE_MAX, values) < 0)
        return KINF_ERR_NO_MEMORY;
    return strstr(kinf_object_uid(object), "fail") != NULL ? -1 : 0;
}

int index_by_letter(const struct kinf_object *object, struct kinf_index_values *values, void *ctx)
{
    (void)ctx;
    return add_words(kinf_object_uid(object), 1, values);
}

int index_by_namespace(const struct kinf_object *object, struct kinf_index_values *values,
                       void *ctx)
{
    struct kinf_str name_space = kinf_object_namespace(object);

    (void)ctx;
    return kinf_index_values_add(values, name_space.bytes, name_space.len);
}

int index_by_user(const struct kinf_object *object, struct kinf_index_values *values, void *ctx)
{
    char users[256];
    int result = kinf_object_get_annotation(object, "users", users, sizeof users);

    (void)ctx;
    if (result == KINF_ERR_NOT_FOUND)
        return 0;
    return result < 0 ? result : add_words(users, SIZE_MAX, values);
}

/* --- writing --- */

void indexer_check(struct kinf_indexer *indexer)
{
    const char *wrong = kinf__indexer_check(indexer);

    if (wrong != NULL)
        fail_msg("%s", wrong);
}

void indexer_add(struct kinf_indexer *indexer, const char *key, const char *rv, const char *words)
{
    kinf_auto_object const struct kinf_object *object = indexer_object(key, rv, words);

    assert_int_equal(kinf_indexer_add(indexer, object, NULL, NULL), 0);
    indexer_check(indexer);
}

void indexer_delete(struct kinf_indexer *indexer, const char *key, const char *rv)
{
    assert_int_equal(kinf_indexer_delete(indexer, key, rv, NULL, NULL), 0);
    indexer_check(indexer);
}

/* --- reading --- */

static char *join(const struct kinf_string_list *list)
{
    size_t len = 1;
    char *text;

    for (size_t i = 0; i < list->n_items; i++)
        len += strlen(list->items[i]) + 1;
    text = calloc(1, len);
    assert_non_null(text);
    for (size_t i = 0; i < list->n_items; i++) {
        if (i > 0)
            strcat(text, " ");
        strcat(text, list->items[i]);
    }
    return text;
}

char *indexer_keys(struct kinf_indexer *indexer)
{
    kinf_auto_string_list struct kinf_string_list keys = KINF_STRING_LIST_INIT;

    assert_int_equal(kinf_indexer_list_keys(indexer, &keys, NULL), 0);
    return join(&keys);
}

char *indexer_by_index(struct kinf_indexer *indexer, const char *index, const char *value)
{
    kinf_auto_string_list struct kinf_string_list keys = KINF_STRING_LIST_INIT;
    kinf_auto_object_list struct kinf_object_list objects = KINF_OBJECT_LIST_INIT;

    assert_int_equal(kinf_indexer_index_keys(indexer, index, value, &keys, NULL), 0);
    assert_int_equal(kinf_indexer_by_index(indexer, index, value, &objects, NULL), 0);
    assert_int_equal(keys.n_items, objects.n_items);
    for (size_t i = 0; i < keys.n_items; i++)
        assert_string_equal(keys.items[i], kinf_object_key(objects.items[i]));
    return join(&keys);
}

char *indexer_values(struct kinf_indexer *indexer, const char *index)
{
    kinf_auto_string_list struct kinf_string_list values = KINF_STRING_LIST_INIT;

    assert_int_equal(kinf_indexer_list_index_values(indexer, index, &values, NULL), 0);
    return join(&values);
}

char *indexer_list_text(const struct kinf_object_list *list)
{
    struct kinf_string_list keys = KINF_STRING_LIST_INIT;
    char *text;

    keys.items = calloc(list->n_items + 1, sizeof keys.items[0]);
    assert_non_null(keys.items);
    for (size_t i = 0; i < list->n_items; i++)
        keys.items[i] = (char *)(uintptr_t)kinf_object_key(list->items[i]);
    keys.n_items = list->n_items;
    text = join(&keys);
    free(keys.items);
    return text;
}
