/*
 * Variables in texts of the configuration.
 */
#include "daemon/expand.h"

#include <stdlib.h>
#include <string.h>

#include "unit/allocation.h"
#include "unit/test.h"

static void expect(const char *text, const char *expected)
{
    struct kinf_error err = KINF_ERROR_INIT;
    char *expanded = NULL;

    if (expected == NULL) {
        assert_int_equal(kinf__expand(text, &expanded, &err), KINF_ERR_CONFIG);
        assert_null(expanded);
        return;
    }
    assert_int_equal(kinf__expand(text, &expanded, &err), 0);
    assert_string_equal(expanded, expected);
    free(expanded);
}

static void variables_are_replaced_wherever_they_stand(void **state)
{
    (void)state;
    expect("", "");
    expect("spec.nodeName=n1", "spec.nodeName=n1");
    expect("spec.nodeName=$(KINF_TEST_NODE)", "spec.nodeName=worker-1");
    expect("$(KINF_TEST_NODE)", "worker-1");
    expect("a$(KINF_TEST_NODE)$(KINF_TEST_NODE)z", "aworker-1worker-1z");
    /* What a value holds is not looked at again. */
    expect("$(KINF_TEST_DOLLAR)", "$(KINF_TEST_NODE)");
}

static void other_dollars_stay(void **state)
{
    (void)state;
    expect("a=$", "a=$");
    expect("$$", "$$");
    expect("$HOME ${HOME}", "$HOME ${HOME}");
    expect("$$(KINF_TEST_NODE)", "$(KINF_TEST_NODE)");
    expect("$$$(KINF_TEST_NODE)", "$$(KINF_TEST_NODE)");
}

static void selector_without_its_value_is_refused(void **state)
{
    (void)state;
    expect("spec.nodeName=$(KINF_TEST_UNSET)", NULL);
    expect("spec.nodeName=$(KINF_TEST_EMPTY)", NULL);
    expect("$()", NULL);
    expect("$(KINF_TEST_NODE", NULL);
    expect("$(", NULL);
}

static void lack_of_memory_is_an_error(void **state)
{
    char *expanded = NULL;
    int failed;

    (void)state;
    for (size_t n = 1;; n++) {
        test_fail_allocation(n);
        failed = kinf__expand("spec.nodeName=$(KINF_TEST_NODE)", &expanded, NULL);
        if (!test_allocation_failed())
            break;
        assert_int_equal(failed, KINF_ERR_NO_MEMORY);
        assert_null(expanded);
    }
    assert_int_equal(failed, 0);
    free(expanded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_are_replaced_wherever_they_stand),
        cmocka_unit_test(other_dollars_stay),
        cmocka_unit_test(selector_without_its_value_is_refused),
        cmocka_unit_test(lack_of_memory_is_an_error),
    };

    setenv("KINF_TEST_NODE", "worker-1", 1);
    setenv("KINF_TEST_EMPTY", "", 1);
    setenv("KINF_TEST_DOLLAR", "$(KINF_TEST_NODE)", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
