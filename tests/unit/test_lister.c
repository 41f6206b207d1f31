/*
 * Listers: by namespace and label selector, by name.
 */
#include <kinformer/lister.h>

#include <stdio.h>
#include <string.h>

#include "unit/indexer_fixture.h"
#include "unit/test.h"

static struct kinf_indexer *indexer;

static void store(const char *name_space, const char *name, const char *labels)
{
    char text[512];
    kinf_auto_object const struct kinf_object *object = NULL;

    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"u\",\"labels\":%s}}",
             name, name_space, labels);
    object = indexer_json_object(text);
    assert_int_equal(kinf_indexer_add(indexer, object, NULL, NULL), 0);
}

static int new_store(void **state)
{
    (void)state;
    assert_int_equal(kinf_indexer_new(NULL, 0, &indexer, NULL), 0);
    store("one", "a", "{\"app\":\"web\",\"tier\":\"front\"}");
    store("one", "b", "{\"app\":\"db\"}");
    store("one-2", "a", "{\"app\":\"web\"}");
    store("two", "a", "{}");
    return 0;
}

static int free_store(void **state)
{
    (void)state;
    kinf_indexer_free(indexer);
    return 0;
}

static char *list(const char *name_space, const char *selector_text)
{
    const struct kinf_lister lister = { indexer, name_space };
    struct kinf_label_selector *selector = NULL;
    kinf_auto_object_list struct kinf_object_list objects = KINF_OBJECT_LIST_INIT;

    if (selector_text != NULL)
        assert_int_equal(kinf_label_selector_parse(selector_text, &selector, NULL), 0);
    assert_int_equal(kinf_lister_list(&lister, selector, &objects, NULL), 0);
    kinf_label_selector_free(selector);
    return indexer_list_text(&objects);
}

static void a_selector_matches_some_all_or_none(void **state)
{
    (void)state;
    assert_text(list(NULL, "app=web"), "one-2/a one/a");
    assert_text(list(NULL, ""), "one-2/a one/a one/b two/a");
    assert_text(list(NULL, NULL), "one-2/a one/a one/b two/a");
    assert_text(list(NULL, "app=none"), "");
    assert_text(list("", "!app"), "two/a");
}

static void a_namespace_has_its_own_objects_only(void **state)
{
    (void)state;
    assert_text(list("one", NULL), "one/a one/b");
    assert_text(list("one", "app=web,tier in (front)"), "one/a");
    assert_text(list("on", NULL), "");
    assert_text(list("three", ""), "");
}

static void an_object_is_got_by_name(void **state)
{
    const struct kinf_lister all = { indexer, NULL }, one = { indexer, "one" };
    kinf_auto_object const struct kinf_object *first = NULL;
    kinf_auto_object const struct kinf_object *second = NULL;
    const struct kinf_object *none = NULL;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    assert_int_equal(kinf_lister_get(&one, "b", &first, &err), 0);
    assert_string_equal(kinf_object_key(first), "one/b");
    assert_int_equal(kinf_lister_get(&all, "one/b", &second, &err), 0);
    assert_ptr_equal(second, first);
    assert_int_equal(kinf_lister_get(&one, "c", &none, &err), KINF_ERR_NOT_FOUND);
    assert_string_equal(err.message, "\"one/c\" not found");
    assert_null(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_selector_matches_some_all_or_none, new_store, free_store),
        cmocka_unit_test_setup_teardown(a_namespace_has_its_own_objects_only, new_store,
                                        free_store),
        cmocka_unit_test_setup_teardown(an_object_is_got_by_name, new_store, free_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
