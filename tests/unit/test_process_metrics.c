/*
 * What a process says of itself.
 */
#include "serve/process_metrics.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "unit/test.h"

/* Of a metric without labels. */
static double value_of(const char *text, const char *name)
{
    for (const char *at = text; (at = strstr(at, name)) != NULL; at++) {
        if ((at == text || at[-1] == '\n') && at[strlen(name)] == ' ')
            return strtod(at + strlen(name), NULL);
    }
    fail_msg("no %s in\n%s", name, text);
    return 0;
}

static void a_process_says_when_it_began_and_what_it_holds(void **state)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    const char *text;

    (void)state;
    assert_int_equal(kinf__process_metrics_write(&out), 0);
    text = kinf__buffer_cstr(&out);
    assert_true(value_of(text, "process_start_time_seconds") > (double)time(NULL) - 3600);
    assert_true(value_of(text, "process_start_time_seconds") < (double)time(NULL) + 2);
    assert_true(value_of(text, "process_open_fds") >= 3);
    assert_true(value_of(text, "process_resident_memory_bytes") > 100000);
    assert_true(kinf__process_resident_bytes() > 100000);
}

/* As when there is no descriptor left to read it with. */
static void what_cannot_be_found_out_is_nothing(void **state)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct rlimit before, none;
    uint64_t bytes;
    int failed;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    failed = kinf__process_metrics_write(&out);
    bytes = kinf__process_resident_bytes();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(failed, 0);
    assert_int_equal(bytes, 0);
    assert_true(value_of(kinf__buffer_cstr(&out), "process_start_time_seconds") == 0);
    assert_true(value_of(out.bytes, "process_open_fds") == 0);
    assert_true(value_of(out.bytes, "process_virtual_memory_bytes") == 0);
    assert_true(value_of(out.bytes, "process_cpu_seconds_total") > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_says_when_it_began_and_what_it_holds),
        cmocka_unit_test(what_cannot_be_found_out_is_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
