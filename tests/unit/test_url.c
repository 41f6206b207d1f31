/*
 * Request targets: paths of resources, escaped values.
 */
#include "rest/url.h"

#include <string.h>

#include "unit/allocation.h"
#include "unit/test.h"

static const struct kinf_type pods = { "", "v1", "Pod", "pods", true };
static const struct kinf_type deployments = { "apps", "v1", "Deployment", "deployments", true };

static void assert_path(const struct kinf_type *type, const char *name_space, const char *expected)
{
    KINF__AUTO_BUFFER target = KINF__BUFFER_INIT;

    assert_int_equal(kinf__url_append_resource(&target, type, name_space), 0);
    assert_string_equal(kinf__buffer_cstr(&target), expected);
}

static void assert_value(const char *value, const char *expected)
{
    KINF__AUTO_BUFFER target = KINF__BUFFER_INIT;

    assert_int_equal(kinf__url_append_query(&target, "k", value), 0);
    assert_string_equal(kinf__buffer_cstr(&target), expected);
}

static void the_core_group_has_a_path_of_its_own(void **state)
{
    (void)state;
    assert_path(&pods, NULL, "/api/v1/pods");
    assert_path(&pods, "", "/api/v1/pods");
    assert_path(&pods, "kube-system", "/api/v1/namespaces/kube-system/pods");
    assert_path(&deployments, NULL, "/apis/apps/v1/deployments");
    assert_path(&deployments, "a", "/apis/apps/v1/namespaces/a/deployments");
}

static void a_namespace_cannot_mean_another_path(void **state)
{
    (void)state;
    assert_path(&pods, "..", "/api/v1/namespaces/%2E%2E/pods");
    assert_path(&pods, ".", "/api/v1/namespaces/%2E/pods");
    assert_path(&pods, "a.b", "/api/v1/namespaces/a.b/pods");
    assert_path(&pods, "a/secrets?x=#%", "/api/v1/namespaces/a%2Fsecrets%3Fx%3D%23%25/pods");
}

static void the_first_parameter_follows_a_question_mark(void **state)
{
    KINF__AUTO_BUFFER target = KINF__BUFFER_INIT;

    (void)state;
    assert_int_equal(kinf__url_append_resource(&target, &pods, NULL), 0);
    assert_int_equal(kinf__url_append_query(&target, "watch", "1"), 0);
    assert_int_equal(kinf__url_append_query(&target, "continue", ""), 0);
    assert_int_equal(kinf__url_append_query(&target, "limit", "500"), 0);
    assert_string_equal(kinf__buffer_cstr(&target), "/api/v1/pods?watch=1&continue=&limit=500");
}

static void a_value_cannot_end_its_parameter(void **state)
{
    (void)state;
    assert_value("app in (web, api),!x", "?k=app%20in%20%28web%2C%20api%29%2C%21x");
    assert_value("a+b&c=d?e", "?k=a%2Bb%26c%3Dd%3Fe");
    assert_value("\xc3\xa4", "?k=%C3%A4");
}

static void only_unreserved_bytes_stay_as_they_are(void **state)
{
    KINF__AUTO_BUFFER target = KINF__BUFFER_INIT;
    char every[256] = "";
    size_t n_plain = 0;

    (void)state;
    for (int byte = 1; byte < 256; byte++)
        every[byte - 1] = (char)byte;
    assert_int_equal(kinf__url_append_query(&target, "k", every), 0);
    for (size_t i = strlen("?k="); i < target.len; i++) {
        if (target.bytes[i] == '%')
            i += 2;
        else
            n_plain++;
    }
    assert_value("AZaz09-._~", "?k=AZaz09-._~");
    assert_int_equal(n_plain, 26 + 26 + 10 + 4);
    assert_int_equal(target.len, strlen("?k=") + n_plain + 3 * (255 - n_plain));
}

static void out_of_memory_is_an_ordinary_error(void **state)
{
    bool did_fail = true;

    (void)state;
    for (size_t n = 1; did_fail; n++) {
        KINF__AUTO_BUFFER target = KINF__BUFFER_INIT;
        int path, query;

        test_fail_allocation(n);
        path = kinf__url_append_resource(&target, &deployments,
                                         "a-namespace-with-a-name-that-is-rather-long");
        query = kinf__url_append_query(
            &target, "labelSelector",
            "app in (web, api), environment notin (production, staging), tier");
        did_fail = test_allocation_failed();
        assert_int_equal(path == 0 && query == 0, !did_fail);
        if (did_fail)
            assert_int_equal(path < 0 ? path : query, KINF_ERR_NO_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_core_group_has_a_path_of_its_own),
        cmocka_unit_test(a_namespace_cannot_mean_another_path),
        cmocka_unit_test(the_first_parameter_follows_a_question_mark),
        cmocka_unit_test(a_value_cannot_end_its_parameter),
        cmocka_unit_test(only_unreserved_bytes_stay_as_they_are),
        cmocka_unit_test(out_of_memory_is_an_ordinary_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
