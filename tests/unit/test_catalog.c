/*
 * The catalog: what it takes of discovery documents and of entries, and what is left when memory is
 * out. What is written of it is tested where it is served.
 */
#include "serve/catalog.h"

#include "unit/allocation.h"
#include "unit/test.h"

#define LIST                                                                                       \
    "{\"resources\":[{\"name\":\"pods\",\"singularName\":\"pod\",\"kind\":\"Pod\","                \
    "\"namespaced\":true,\"shortNames\":[\"po\"],\"categories\":[\"all\"],"                        \
    "\"verbs\":[\"get\"]},{\"name\":\"nodes\",\"kind\":\"Node\",\"namespaced\":false}]}"

static void a_document_and_an_entry_are_read_alike(void **state)
{
    const struct kinf__catalog_entry *entry;
    struct kinf__catalog *catalog;

    (void)state;
    assert_int_equal(kinf__catalog_new(&catalog), 0);
    assert_int_equal(kinf__catalog_add_list(catalog, "", "v1", KINF_STR(LIST)), 0);
    entry = kinf__catalog_find(catalog, "", "v1", "pods");
    assert_non_null(entry);
    assert_string_equal(entry->singular, "pod");
    assert_string_equal(entry->kind, "Pod");
    assert_string_equal(entry->short_names, "[\"po\"]");
    assert_string_equal(entry->categories, "[\"all\"]");
    assert_true(entry->namespaced);
    assert_null(entry->verbs);
    entry = kinf__catalog_find(catalog, "", "v1", "nodes");
    assert_non_null(entry);
    assert_null(entry->singular);
    assert_null(entry->short_names);
    assert_false(entry->namespaced);
    kinf__catalog_free(catalog);
}

static void an_entry_that_cannot_be_copied_is_not_there(void **state)
{
    const struct kinf__catalog_entry entry = {
        .group = (char[]){ "apps" },
        .version = (char[]){ "v1" },
        .name = (char[]){ "deployments/scale" },
        .singular = (char[]){ "deployment" },
        .kind = (char[]){ "Scale" },
        .short_names = (char[]){ "[\"deploy\"]" },
        .categories = (char[]){ "[\"all\"]" },
        .verbs = (char[]){ "[\"get\"]" },
        .answer_group = (char[]){ "autoscaling" },
        .answer_version = (char[]){ "v1" },
    };
    struct kinf__catalog *catalog;
    bool was_out_of_memory = true;

    (void)state;
    assert_int_equal(kinf__catalog_new(&catalog), 0);
    for (size_t n = 1; was_out_of_memory; n++) {
        int failed;

        test_fail_allocation(n);
        failed = kinf__catalog_add(catalog, &entry);
        was_out_of_memory = test_allocation_failed();
        assert_int_equal(failed, was_out_of_memory ? KINF_ERR_NO_MEMORY : 0);
        assert_int_equal(kinf__catalog_find(catalog, "apps", "v1", entry.name) != NULL,
                         !was_out_of_memory);
    }
    assert_string_equal(kinf__catalog_find(catalog, "apps", "v1", entry.name)->answer_group,
                        "autoscaling");
    kinf__catalog_free(catalog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_and_an_entry_are_read_alike),
        cmocka_unit_test(an_entry_that_cannot_be_copied_is_not_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
