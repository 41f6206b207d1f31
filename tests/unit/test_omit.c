/*
 * Objects as Go prints them: what is empty is left out, what must be there is null.
 */
#include "document/schema.h"

#include <stdlib.h>

#include "allocation.h"
#include "test.h"

#include "base/compiler.h"

static struct kinf__schema *schema;

static void assert_becomes(const char *kind,
                           int change(const struct kinf__schema_node *node, struct cJSON *object),
                           const char *sent, const char *expected)
{
    struct cJSON *object = cJSON_Parse(sent), *wanted = cJSON_Parse(expected);

    assert_non_null(object);
    assert_non_null(wanted);
    assert_int_equal(change(kinf__schema_find(schema, "", "v1", kind), object), 0);
    assert_true(cJSON_Compare(object, wanted, true));
    cJSON_Delete(object);
    cJSON_Delete(wanted);
}

static void empty_lists_and_maps_are_left_out_and_objects_are_not(void **state)
{
    (void)state;
    assert_becomes("ConfigMap", kinf__omit_empty,
                   "{\"data\":{},\"metadata\":{\"finalizers\":[],\"labels\":{\"a\":\"\"}}}",
                   "{\"metadata\":{\"labels\":{\"a\":\"\"}}}");
    assert_becomes("Pod", kinf__omit_empty,
                   "{\"spec\":{\"nodeSelector\":{},\"securityContext\":{},\"volumes\":[{\"name\":"
                   "\"a\",\"emptyDir\":{}}]}}",
                   "{\"spec\":{\"securityContext\":{},\"volumes\":[{\"name\":\"a\",\"emptyDir\":{}"
                   "}]}}");
}

static void texts_that_are_null_are_empty(void **state)
{
    (void)state;
    assert_becomes("ConfigMap", kinf__omit_empty, "{\"data\":{\"a\":null,\"b\":\"c\"}}",
                   "{\"data\":{\"a\":\"\",\"b\":\"c\"}}");
}

static void quantities_have_one_text(void **state)
{
    (void)state;
    assert_becomes("ResourceQuota", kinf__omit_empty,
                   "{\"spec\":{\"hard\":{\"cpu\":0.5,\"memory\":\"1024Mi\",\"pods\":\"x\"}}}",
                   "{\"spec\":{\"hard\":{\"cpu\":\"500m\",\"memory\":\"1Gi\",\"pods\":\"x\"}}}");
}

static void lists_that_must_be_there_are_null(void **state)
{
    (void)state;
    assert_becomes("Pod", kinf__show_lists, "{\"spec\":{}}", "{\"spec\":{\"containers\":null}}");
    assert_becomes("Pod", kinf__show_lists, "{\"spec\":{\"containers\":[]}}",
                   "{\"spec\":{\"containers\":null}}");
}

static void what_is_not_known_stays(void **state)
{
    struct cJSON *object = cJSON_Parse("{\"spec\":{\"a\":[],\"b\":{}}}");

    (void)state;
    assert_int_equal(kinf__omit_empty(NULL, object), 0);
    assert_int_equal(kinf__show_lists(NULL, object), 0);
    assert_non_null(kinf__doc_find(object, "spec", "b", NULL));
    cJSON_Delete(object);
    assert_becomes("Pod", kinf__omit_empty, "{\"spec\":[[],null],\"metadata\":{\"labels\":[]}}",
                   "{\"spec\":[[],null],\"metadata\":{\"labels\":[]}}");
    assert_becomes("Pod", kinf__show_lists, "{\"spec\":[{}]}", "{\"spec\":[{}]}");
}

static void *counted_malloc(size_t size)
{
    return malloc(size);
}

/* Elements, quantities and lists: what any of it needs may be missing, and the tree stays whole. */
static void without_memory_it_says_so(void **state)
{
    static const char sent[] =
        "{\"metadata\":{\"finalizers\":[null,\"a/b\"],\"labels\":{\"a\":null}},\"spec\":{"
        "\"containers\":[{\"resources\":{\"limits\":{\"cpu\":0.5,\"memory\":\"1024Mi\"}}}],"
        "\"initContainers\":[]}}";
    const struct kinf__schema_node *node = kinf__schema_find(schema, "", "v1", "Pod");
    struct cJSON_Hooks hooks = { counted_malloc, free };
    bool has_failed = true;

    (void)state;
    cJSON_InitHooks(&hooks);
    for (size_t n = 1; has_failed; n++) {
        struct cJSON *object = cJSON_Parse(sent);
        int failed;

        assert_non_null(object);
        test_fail_allocation(n);
        failed = kinf__omit_empty(node, object);
        if (failed == 0) {
            kinf__doc_remove(kinf__doc_get(object, "spec"), "containers");
            failed = kinf__show_lists(node, object);
        }
        has_failed = test_allocation_failed();
        assert_int_equal(failed, has_failed ? KINF_ERR_NO_MEMORY : 0);
        assert_true(n > 3 || has_failed);
        cJSON_Delete(object);
    }
    cJSON_InitHooks(NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_lists_and_maps_are_left_out_and_objects_are_not),
        cmocka_unit_test(texts_that_are_null_are_empty),
        cmocka_unit_test(quantities_have_one_text),
        cmocka_unit_test(lists_that_must_be_there_are_null),
        cmocka_unit_test(what_is_not_known_stays),
        cmocka_unit_test(without_memory_it_says_so),
    };
    int failed;

    if (kinf__schema_new(&schema) < 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    kinf__schema_free(schema);
    return failed;
}
