/*
 * The line of progress: what fits, and what is only counted.
 */
#include "daemon/progress.h"

#include <string.h>

#include "unit/test.h"

static const struct kinf__progress_item items[] = {
    { "pods", NULL, 3000, 10000, 12300000, 4900 },
    { "configmaps", "kube-system", 200, 0, 1000000, 4000 },
    { "nodes", NULL, 7, 5, 20000, 2000 },
};

static void expect(size_t n_items, size_t size, const char *expected)
{
    char buf[256];

    assert_string_equal(kinf__progress_line(items, n_items, buf, size), expected);
}

#define PODS       "listing pods: 3000 of about 10000 objects, 12.3 MB, 4 s"
#define CONFIGMAPS "configmaps in kube-system: 200 objects, 1.0 MB, 4 s"
#define NODES      "nodes: 7 objects, 0.0 MB, 2 s"

static void it_has_all_that_fit(void **state)
{
    (void)state;
    expect(1, 256, PODS);
    expect(3, 256, PODS "; " CONFIGMAPS "; " NODES);
    expect(3, sizeof(PODS "; " CONFIGMAPS "; " NODES), PODS "; " CONFIGMAPS "; " NODES);
}

static void what_does_not_fit_is_counted(void **state)
{
    (void)state;
    expect(3, sizeof(PODS "; " CONFIGMAPS "; " NODES) - 1, PODS "; " CONFIGMAPS "; and 1 more");
    expect(3, 80, PODS "; and 2 more");
}

static void a_narrow_terminal_cuts_it(void **state)
{
    char buf[256];

    (void)state;
    expect(3, 20, "listing pods: 3000 ");
    for (size_t size = 1; size < sizeof buf; size++)
        assert_true(strlen(kinf__progress_line(items, 3, buf, size)) < size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_has_all_that_fit),
        cmocka_unit_test(what_does_not_fit_is_counted),
        cmocka_unit_test(a_narrow_terminal_cuts_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
