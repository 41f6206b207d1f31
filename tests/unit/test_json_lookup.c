/*
 * Looking up paths in text.
 */
#include "json/lookup.h"

#include <string.h>

#include "base/buffer.h"
#include "unit/test.h"

static const char pod[] =
    "{\"metadata\":{\"name\":\"p\",\"labels\":{\"app\":\"web\",\"a.b/c\":\"\\u0064\"}},"
    "\"spec\":{\"containers\":[{\"name\":\"one\",\"ports\":[{\"n\":1},{\"n\":2}]},{\"name\":"
    "\"two\"},"
    "{\"image\":\"i\",\"ports\":[{\"n\":3}]}],\"nodeName\":\"n1\",\"nodeName\":\"n2\"}}";

static int collect(struct kinf__json_value value, void *ctx)
{
    struct kinf__buffer *found = ctx;

    assert_int_equal(kinf__buffer_append_str(found, value.raw), 0);
    assert_int_equal(kinf__buffer_append(found, " ", 1), 0);
    return 0;
}

static int stop_at_second(struct kinf__json_value value, void *ctx)
{
    (void)value;
    return ++*(int *)ctx == 2 ? 17 : 0;
}

static struct kinf_path *parse(const char *text)
{
    struct kinf_path *path = NULL;

    assert_int_equal(kinf_path_parse(text, &path, NULL), 0);
    return path;
}

static void assert_found(const char *text, const char *path_text, const char *expected)
{
    KINF__AUTO_BUFFER found = KINF__BUFFER_INIT;
    struct kinf_path *path = parse(path_text);

    assert_int_equal(kinf__json_lookup(kinf_str_from(text), path, collect, &found), 0);
    assert_string_equal(kinf__buffer_cstr(&found), expected);
    kinf_path_free(path);
}

static void keys_lead_to_members(void **state)
{
    (void)state;
    assert_found(pod, "metadata.name", "\"p\" ");
    assert_found(pod, "metadata.labels[\"a.b/c\"]", "\"\\u0064\" ");
    assert_found(pod, "metadata.labels", "{\"app\":\"web\",\"a.b/c\":\"\\u0064\"} ");
    assert_found(" {\"a\" : { \"\\u0062\" : [ 1 ] } } ", "a.b", "[ 1 ] ");
}

static void what_is_not_there_is_not_found(void **state)
{
    (void)state;
    assert_found(pod, "metadata.nam", "");
    assert_found(pod, "metadata.name.x", "");
    assert_found(pod, "metadata[0]", "");
    assert_found(pod, "spec.containers.name", "");
    assert_found(pod, "spec.containers[3]", "");
    assert_found(pod, "metadata.name[*]", "");
    assert_found("[]", "a", "");
    assert_found("", "a", "");
}

static void a_number_leads_to_one_element(void **state)
{
    (void)state;
    assert_found(pod, "spec.containers[0].name", "\"one\" ");
    assert_found(pod, "spec.containers[2].ports[0].n", "3 ");
}

static void a_star_leads_to_all_in_the_order_of_the_text(void **state)
{
    (void)state;
    assert_found(pod, "spec.containers[*].name", "\"one\" \"two\" ");
    assert_found(pod, "spec.containers[*].ports[*].n", "1 2 3 ");
    assert_found(pod, "metadata.labels[*]", "\"web\" \"\\u0064\" ");
    assert_found("{\"a\":[[1],2,[3,[4]]]}", "a[*][*]", "1 3 [4] ");
}

static void of_a_doubled_key_the_last_is_found(void **state)
{
    (void)state;
    assert_found(pod, "spec.nodeName", "\"n2\" ");
}

static void a_callback_ends_the_walk(void **state)
{
    struct kinf_path *path = parse("spec.containers[*].ports[*].n");
    int n_calls = 0;

    (void)state;
    assert_int_equal(kinf__json_lookup(kinf_str_from(pod), path, stop_at_second, &n_calls), 17);
    assert_int_equal(n_calls, 2);
    kinf_path_free(path);
}

static void the_first_value_is_had_without_a_callback(void **state)
{
    struct kinf_path *path = parse("spec.containers[*].ports[*].n"), *missing = parse("spec.x");
    struct kinf__json_value value;

    (void)state;
    assert_true(kinf__json_lookup_first(kinf_str_from(pod), path, &value));
    assert_int_equal(value.type, KINF__JSON_NUMBER);
    assert_true(kinf_str_equal(value.raw, KINF_STR("1")));
    assert_false(kinf__json_lookup_first(kinf_str_from(pod), missing, &value));
    assert_true(kinf_str_equal(value.raw, KINF_STR("1")));
    kinf_path_free(path);
    kinf_path_free(missing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_lead_to_members),
        cmocka_unit_test(what_is_not_there_is_not_found),
        cmocka_unit_test(a_number_leads_to_one_element),
        cmocka_unit_test(a_star_leads_to_all_in_the_order_of_the_text),
        cmocka_unit_test(of_a_doubled_key_the_last_is_found),
        cmocka_unit_test(a_callback_ends_the_walk),
        cmocka_unit_test(the_first_value_is_had_without_a_callback),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
