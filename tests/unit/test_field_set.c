/*
 * Sets of fields: as text, as sets, and where they come from.
 */
#include "document/field_set.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "unit/allocation.h"
#include "unit/managed_fixture.h"
#include "unit/test.h"

/* Of a fieldsV1, with ' for ". */
static struct kinf__field_set set_of(const char *text)
{
    KINF__AUTO_DOC *fields = test_tree(text);
    struct kinf__field_set set = { 0 };

    assert_int_equal(kinf__field_set_read(fields, &set), 0);
    return set;
}

static void expect_set(const struct kinf__field_set *set, const char *expected)
{
    KINF__AUTO_DOC *fields = NULL;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    assert_int_equal(kinf__field_set_write(set, &fields), 0);
    assert_int_equal(kinf__doc_print(fields, &text), 0);
    for (char *c = (char *)(uintptr_t)kinf__buffer_cstr(&text); *c != '\0'; c++)
        *c = *c == '"' ? '\'' : *c;
    assert_string_equal(text.bytes, expected);
}

static void what_is_read_is_written_sorted(void **state)
{
    static const struct {
        const char *text;
        const char *expected;
    } table[] = {
        { "{}", "{}" },
        { "[]", "{}" },
        { "{'f:b':{},'f:a':{}}", "{'f:a':{},'f:b':{}}" },
        { "{'f:a':{'f:b':{},'.':{}}}", "{'f:a':{'.':{},'f:b':{}}}" },
        { "{'f:a':{'.':{}}}", "{'f:a':{}}" },
        { "{'f:a':{'v:1':{},'i:0':{},'k:{}':{}}}", "{'f:a':{'i:0':{},'k:{}':{},'v:1':{}}}" },
        { "{'f:a':{},'f:a':{'f:b':{}}}", "{'f:a':{}}" },
        { "{'x:a':{},'f':{},'':{},'f:':{}}", "{'f:':{}}" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        KINF__AUTO_FIELD_SET set = set_of(table[i].text);

        expect_set(&set, table[i].expected);
    }
}

static int join(const char *path, void *ctx)
{
    return kinf__buffer_printf(ctx, "%s\n", path);
}

static int refuse(const char *path, void *ctx)
{
    (void)path;
    (void)ctx;
    return KINF_ERR_STOPPED;
}

static void members_have_paths(void **state)
{
    KINF__AUTO_FIELD_SET set = set_of(
        "{'f:metadata':{'f:labels':{'f:a.b/c':{}}},'f:spec':{'f:l':{'.':{},'i:3':{},"
        "'v:7':{}},'f:ports':{'k:{\\'name\\':\\'x\\',\\'port\\':80}':{'f:name':{}},'k:no':{}}}}");
    KINF__AUTO_BUFFER paths = KINF__BUFFER_INIT;

    (void)state;
    assert_int_equal(kinf__field_set_each(&set, join, &paths), 0);
    assert_string_equal(kinf__buffer_cstr(&paths), ".metadata.labels.a.b/c\n"
                                                   ".spec.l\n"
                                                   ".spec.l[3]\n"
                                                   ".spec.l[=7]\n"
                                                   ".spec.ports[no]\n"
                                                   ".spec.ports[name=\"x\",port=80].name\n");
    assert_int_equal(kinf__field_set_each(&set, refuse, NULL), KINF_ERR_STOPPED);
}

static void sets_are_added_subtracted_and_intersected(void **state)
{
    static const struct {
        const char *a;
        const char *b;
        const char *sum;
        const char *difference;
        const char *both;
    } table[] = {
        { "{}", "{}", "{}", "{}", "{}" },
        { "{'f:a':{}}", "{}", "{'f:a':{}}", "{'f:a':{}}", "{}" },
        { "{}", "{'f:a':{}}", "{'f:a':{}}", "{}", "{}" },
        { "{'f:a':{},'f:c':{}}", "{'f:b':{},'f:c':{}}", "{'f:a':{},'f:b':{},'f:c':{}}",
          "{'f:a':{}}", "{'f:c':{}}" },
        /* a path is not what is below it */
        { "{'f:a':{'.':{},'f:x':{}}}", "{'f:a':{}}", "{'f:a':{'.':{},'f:x':{}}}",
          "{'f:a':{'f:x':{}}}", "{'f:a':{}}" },
        { "{'f:a':{'f:x':{},'f:y':{}}}", "{'f:a':{'.':{},'f:x':{}}}",
          "{'f:a':{'.':{},'f:x':{},'f:y':{}}}", "{'f:a':{'f:y':{}}}", "{'f:a':{'f:x':{}}}" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        KINF__AUTO_FIELD_SET sum = set_of(table[i].a);
        KINF__AUTO_FIELD_SET difference = set_of(table[i].a);
        KINF__AUTO_FIELD_SET both = set_of(table[i].a);
        KINF__AUTO_FIELD_SET b = set_of(table[i].b);

        assert_int_equal(kinf__field_set_add(&sum, &b), 0);
        expect_set(&sum, table[i].sum);
        kinf__field_set_subtract(&difference, &b);
        expect_set(&difference, table[i].difference);
        kinf__field_set_retain(&both, &b);
        expect_set(&both, table[i].both);
    }
}

/* A twin: 4 * 4 paths of two steps, and the four of one. */
#define N_STEPS 4
#define N_BITS  (N_STEPS * (N_STEPS + 1))

static struct kinf__field_set set_of_bits(uint32_t bits)
{
    KINF__AUTO_DOC *fields = cJSON_CreateObject();
    struct kinf__field_set set = { 0 };
    char name[8];

    for (int i = 0; i < N_BITS; i++) {
        struct cJSON *upper;

        if ((bits >> i & 1) == 0)
            continue;
        snprintf(name, sizeof name, "f:%d", i / (N_STEPS + 1));
        upper = kinf__doc_object(fields, name);
        snprintf(name, sizeof name, "f:%d", i % (N_STEPS + 1) - 1);
        assert_non_null(kinf__doc_object(upper, i % (N_STEPS + 1) == 0 ? "." : name));
    }
    assert_int_equal(kinf__field_set_read(fields, &set), 0);
    return set;
}

static void expect_bits(const struct kinf__field_set *set, uint32_t bits)
{
    KINF__AUTO_FIELD_SET other = set_of_bits(bits);
    KINF__AUTO_DOC *a = NULL;
    KINF__AUTO_DOC *b = NULL;

    assert_int_equal(kinf__field_set_write(set, &a), 0);
    assert_int_equal(kinf__field_set_write(&other, &b), 0);
    assert_true(kinf__doc_equal(a, b));
}

static void sets_are_as_sets_of_bits(void **state)
{
    struct test_random random = test_random_init("field_set");
    size_t n_rounds = test_rounds(2000);

    (void)state;
    for (size_t i = 0; i < n_rounds; i++) {
        uint32_t a = (uint32_t)test_random_next(&random) & ((1U << N_BITS) - 1);
        uint32_t b = (uint32_t)(test_random_next(&random) & test_random_next(&random)) &
                     ((1U << N_BITS) - 1);
        KINF__AUTO_FIELD_SET set = set_of_bits(a);
        KINF__AUTO_FIELD_SET other = set_of_bits(b);

        assert_int_equal(kinf__field_set_add(&set, &other), 0);
        expect_bits(&set, a | b);
        kinf__field_set_subtract(&set, &other);
        expect_bits(&set, a & ~b);
        kinf__field_set_release(&set);
        set = set_of_bits(a);
        kinf__field_set_retain(&set, &other);
        expect_bits(&set, a & b);
    }
}

static void an_object_has_fields_by_its_schema(void **state)
{
    static const struct {
        const char *object;
        const char *expected;
    } table[] = {
        { "{}", "{}" },
        { "{'spec':{'replicas':1}}", "{'f:spec':{'f:replicas':{}}}" },
        { "{'spec':{'selector':{'a':'b'},'order':['x']}}",
          "{'f:spec':{'f:order':{},'f:selector':{}}}" },
        { "{'spec':{'labels':{'a':'b'},'template':{},'nothing':null}}",
          "{'f:spec':{'f:labels':{'f:a':{}},'f:nothing':{},'f:template':{}}}" },
        { "{'spec':{'tags':['b','a'],'numbers':[1,-2.5]}}",
          "{'f:spec':{'f:numbers':{'v:-2.5':{},'v:1':{}},'f:tags':{'v:\\'a\\'':{},'v:\\'b\\'':{}}}"
          "}" },
        { "{'spec':{'containers':[{'name':'c','ports':[{'port':80}]}]}}",
          "{'f:spec':{'f:containers':{'k:{\\'name\\':\\'c\\'}':{'.':{},'f:name':{},'f:ports':{"
          "'k:{\\'port\\':80,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:port':{}}}}}}}" },
        { "{'spec':{'free':{'a':{'b':[{'c':1}]},'d':{}}}}",
          "{'f:spec':{'f:free':{'f:a':{'.':{},'f:b':{}},'f:d':{}}}}" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        KINF__AUTO_DOC *object = test_tree(table[i].object);
        KINF__AUTO_FIELD_SET set = { 0 };

        assert_int_equal(kinf__field_set_of(test_kind_schema(TEST_WIDGET), object, &set), 0);
        expect_set(&set, table[i].expected);
    }
}

static void differences_are_found(void **state)
{
    static const struct {
        enum test_kind kind;
        const char *old;
        const char *object;
        const char *changed;
        const char *removed;
    } table[] = {
        { TEST_WIDGET, "{'spec':{'replicas':1}}", "{'spec':{'replicas':1}}", "{}", "{}" },
        { TEST_WIDGET, "{'spec':{'replicas':1}}", "{'spec':{'replicas':2}}",
          "{'f:spec':{'f:replicas':{}}}", "{}" },
        { TEST_WIDGET, "{}", "{'spec':{'labels':{'a':'b'}}}",
          "{'f:spec':{'.':{},'f:labels':{'.':{},'f:a':{}}}}", "{}" },
        { TEST_WIDGET, "{'spec':{'labels':{'a':'b'}}}", "{}", "{}",
          "{'f:spec':{'.':{},'f:labels':{'.':{},'f:a':{}}}}" },
        { TEST_WIDGET, "{'spec':{'labels':{'a':'b'}}}", "{'spec':{'labels':{}}}", "{}",
          "{'f:spec':{'f:labels':{'f:a':{}}}}" },
        /* an order is no field */
        { TEST_WIDGET, "{'spec':{'tags':['a','b']}}", "{'spec':{'tags':['b','a']}}", "{}", "{}" },
        { TEST_WIDGET, "{'spec':{'order':['a','b']}}", "{'spec':{'order':['b','a']}}",
          "{'f:spec':{'f:order':{}}}", "{}" },
        /* another shape */
        { TEST_WIDGET, "{'spec':{'free':{'a':{'b':1}}}}", "{'spec':{'free':{'a':7}}}",
          "{'f:spec':{'f:free':{'f:a':{}}}}", "{'f:spec':{'f:free':{'f:a':{'f:b':{}}}}}" },
        { TEST_WIDGET, "{'spec':{'nothing':null}}", "{'spec':{}}", "{}",
          "{'f:spec':{'f:nothing':{}}}" },
        /* doubled elements */
        { TEST_WIDGET, "{'spec':{'tags':['a','a']}}", "{'spec':{'tags':['a']}}",
          "{'f:spec':{'f:tags':{'v:\\'a\\'':{}}}}", "{}" },
        { TEST_WIDGET, "{'spec':{'tags':['a','a','b']}}", "{'spec':{'tags':['b']}}", "{}",
          "{'f:spec':{'f:tags':{'v:\\'a\\'':{}}}}" },
        /* structs that are there without a member */
        { TEST_DEPLOYMENT, "{}", "{'spec':{'template':{'spec':{'containers':[{'name':'c'}]}}}}",
          "{'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'c\\'}':{'.':{},"
          "'f:name':{}}}}}}}",
          "{}" },
        { TEST_DEPLOYMENT, "{}", "{'spec':{'strategy':{'rollingUpdate':{'maxSurge':1}}}}",
          "{'f:spec':{'f:strategy':{'f:rollingUpdate':{'.':{},'f:maxSurge':{}}}}}", "{}" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        KINF__AUTO_DOC *old = test_tree(table[i].old);
        KINF__AUTO_DOC *object = test_tree(table[i].object);
        KINF__AUTO_FIELD_SET changed = { 0 };
        KINF__AUTO_FIELD_SET removed = { 0 };

        assert_int_equal(kinf__field_set_compare(test_kind_schema(table[i].kind), old, object,
                                                 &changed, &removed),
                         0);
        expect_set(&changed, table[i].changed);
        expect_set(&removed, table[i].removed);
    }
}

static void what_is_removed_leaves_what_is_above(void **state)
{
    static const struct {
        enum test_kind kind;
        const char *set;
        const char *object;
        const char *removed;
        const char *dropped;
    } table[] = {
        { TEST_WIDGET, "{}", "{'spec':{'labels':{'a':'b'}}}", "{'spec':{'labels':{'a':'b'}}}",
          "{'spec':{'labels':{'a':'b'}}}" },
        { TEST_CONFIG_MAP, "{'f:data':{'f:a':{},'f:c':{}}}", "{'data':{'a':'b','d':'e'}}",
          "{'data':{'d':'e'}}", "{'data':{'d':'e'}}" },
        { TEST_CONFIG_MAP, "{'f:metadata':{'f:labels':{'f:a':{}}}}",
          "{'metadata':{'labels':{'a':'b'}}}", "{'metadata':{'labels':{}}}", "{'metadata':{}}" },
        { TEST_CONFIG_MAP, "{'f:metadata':{}}", "{'metadata':{'labels':{'a':'b'}}}", "{}", "{}" },
        { TEST_WIDGET, "{'f:spec':{'f:tags':{'v:\\'a\\'':{}},'f:none':{'f:x':{}}}}",
          "{'spec':{'tags':['b','a']}}", "{'spec':{'tags':['b']}}", "{'spec':{'tags':['b']}}" },
        { TEST_WIDGET, "{'f:spec':{'f:replicas':{}}}", "{'spec':{'replicas':1}}", "{'spec':{}}",
          "{'spec':{}}" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct kinf__schema_node *node = test_kind_schema(table[i].kind);
        KINF__AUTO_DOC *object = test_tree(table[i].object);
        KINF__AUTO_DOC *removed = test_tree(table[i].removed);
        KINF__AUTO_DOC *dropped = test_tree(table[i].dropped);
        KINF__AUTO_FIELD_SET set = set_of(table[i].set);

        assert_int_equal(kinf__field_set_remove_from(&set, node, object, false), 0);
        assert_true(kinf__doc_equal(object, removed));
        assert_int_equal(kinf__field_set_remove_from(&set, node, object, true), 0);
        assert_true(kinf__doc_equal(object, dropped));
    }
}

static void structs_above_members_are_members(void **state)
{
    KINF__AUTO_FIELD_SET set =
        set_of("{'f:spec':{'f:labels':{'f:a':{}},'f:free':{'f:x':{'f:y':{}}},'f:containers':{"
               "'k:{\\'name\\':\\'c\\'}':{'f:env':{'k:{\\'name\\':\\'e\\'}':{'f:value':{}}}}}}}");

    (void)state;
    kinf__field_set_add_structs(&set, test_kind_schema(TEST_WIDGET));
    expect_set(&set, "{'f:spec':{'.':{},'f:containers':{'.':{},'k:{\\'name\\':\\'c\\'}':{'f:env':{"
                     "'.':{},'k:{\\'name\\':\\'e\\'}':{'f:value':{}}}}},'f:free':{'.':{},'f:x':{"
                     "'f:y':{}}},'f:labels':{'.':{},'f:a':{}}}}");
}

/* As deep as trees may be. */
static void depth_does_no_harm(void **state)
{
    KINF__AUTO_DOC *tree = cJSON_CreateObject();
    KINF__AUTO_DOC *empty = cJSON_CreateObject();
    KINF__AUTO_FIELD_SET set = { 0 };
    KINF__AUTO_FIELD_SET changed = { 0 };
    KINF__AUTO_FIELD_SET removed = { 0 };
    struct cJSON *at = tree;

    (void)state;
    for (int i = 0; i < 999; i++)
        at = kinf__doc_object(at, "x");
    assert_int_equal(kinf__field_set_of(NULL, tree, &set), 0);
    assert_int_equal(kinf__field_set_compare(NULL, empty, tree, &changed, &removed), 0);
    assert_int_equal(kinf__field_set_add(&set, &changed), 0);
    assert_int_equal(kinf__field_set_remove_from(&set, NULL, tree, false), 0);
    assert_null(tree->child);
}

static void sets_survive_any_failed_allocation(void **state)
{
    KINF__AUTO_FIELD_SET base = set_of("{'f:a':{'f:x':{},'f:y':{}},'f:c':{}}");
    KINF__AUTO_FIELD_SET more = set_of("{'f:a':{'f:x':{'f:1':{}},'f:z':{}},'f:b':{'f:2':{}}}");
    size_t n = 1;
    int failed;

    (void)state;
    test_fail_trees(true);
    for (bool has_failed = true; has_failed; n++) {
        KINF__AUTO_FIELD_SET set = { 0 };
        KINF__AUTO_BUFFER paths = KINF__BUFFER_INIT;
        KINF__AUTO_DOC *fields = NULL;

        test_fail_allocation(n);
        failed = kinf__field_set_add(&set, &base);
        if (failed == 0)
            failed = kinf__field_set_add(&set, &more);
        if (failed == 0)
            failed = kinf__field_set_write(&set, &fields);
        if (failed == 0)
            failed = kinf__field_set_each(&set, join, &paths);
        has_failed = test_allocation_failed();
        assert_int_equal(failed, has_failed ? KINF_ERR_NO_MEMORY : 0);
    }
    test_fail_trees(false);
    assert_true(n > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_written_sorted),
        cmocka_unit_test(members_have_paths),
        cmocka_unit_test(sets_are_added_subtracted_and_intersected),
        cmocka_unit_test(sets_are_as_sets_of_bits),
        cmocka_unit_test(an_object_has_fields_by_its_schema),
        cmocka_unit_test(differences_are_found),
        cmocka_unit_test(what_is_removed_leaves_what_is_above),
        cmocka_unit_test(structs_above_members_are_members),
        cmocka_unit_test(depth_does_no_harm),
        cmocka_unit_test(sets_survive_any_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
