/*
 * The command line of kinformer-sim.
 */
#include "sim/options.h"

#include <string.h>

#include "base/compiler.h"
#include "unit/test.h"

#define MAX_WORDS 600

/* Splits `line` at blanks, in place. */
static int split(char *line, char *argv[MAX_WORDS])
{
    static char name[] = "kinformer-sim";
    int argc = 0;

    argv[argc++] = name;
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    return argc;
}

static char line[4096];

static int parse(const char *text, struct kinf__sim_arguments *arguments, struct kinf_error *err)
{
    char *argv[MAX_WORDS];

    assert_true(strlen(text) < sizeof line);
    strcpy(line, text);
    return kinf__sim_arguments_parse(split(line, argv), argv, arguments, err);
}

static struct kinf__sim_arguments parsed(const char *text)
{
    struct kinf__sim_arguments arguments;
    struct kinf_error err = KINF_ERROR_INIT;

    if (parse(text, &arguments, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    return arguments;
}

static void without_flags_it_listens_at_a_free_port_of_loopback(void **state)
{
    struct kinf__sim_arguments arguments = parsed("");

    (void)state;
    assert_int_equal(arguments.command, KINF__SIM_COMMAND_RUN);
    assert_int_equal(arguments.listen.n_items, 1);
    assert_string_equal(arguments.listen.items[0], "127.0.0.1:0");
    assert_int_equal(arguments.seed, 1);
    assert_int_equal(arguments.limits.history_bytes, 0);
    assert_null(arguments.policy_file);
    assert_null(arguments.generate);
}

static void every_flag_is_taken(void **state)
{
    struct kinf__sim_arguments arguments =
        parsed("--listen 127.0.0.1:1 --listen unix:/x --tls --policy p --write-kubeconfig k "
               "--load a --load b --generate pods=5 --churn 50/s --seed 18446744073709551615 "
               "--no-workloads --history 16KiB,30s --fault f --fault g --fault-listen unix:/f "
               "--log-level debug");

    (void)state;
    assert_int_equal(arguments.listen.n_items, 2);
    assert_string_equal(arguments.listen.items[1], "unix:/x");
    assert_true(arguments.has_tls);
    assert_string_equal(arguments.policy_file, "p");
    assert_string_equal(arguments.kubeconfig_out, "k");
    assert_int_equal(arguments.loads.n_items, 2);
    assert_string_equal(arguments.loads.items[0], "a");
    assert_string_equal(arguments.generate, "pods=5");
    assert_string_equal(arguments.churn, "50/s");
    assert_true(arguments.seed == UINT64_MAX);
    assert_true(arguments.has_no_workloads);
    assert_int_equal(arguments.limits.history_bytes, 16384);
    assert_int_equal(arguments.limits.history_age_ms, 30000);
    assert_int_equal(arguments.faults.n_items, 2);
    assert_string_equal(arguments.faults.items[1], "g");
    assert_string_equal(arguments.fault_listen, "unix:/f");
    assert_string_equal(arguments.log_levels, "debug");
}

static void a_history_has_a_size_or_an_age_or_both(void **state)
{
    struct kinf__sim_arguments arguments = parsed("--history 2GiB");

    (void)state;
    assert_int_equal(arguments.limits.history_bytes, (int64_t)2 << 30);
    assert_int_equal(arguments.limits.history_age_ms, 0);
    arguments = parsed("--history 90s");
    assert_int_equal(arguments.limits.history_bytes, 0);
    assert_int_equal(arguments.limits.history_age_ms, 90000);
}

static void what_is_wrong_is_said_with_what_to_do(void **state)
{
    static const struct {
        const char *line, *message;
    } rows[] = {
        { "--listen", "--listen needs a value (see --help)" },
        { "--tls=yes", "'--tls=yes': this option takes no value" },
        { "--nonsense", "'--nonsense' is no option, or short for several (see --help)" },
        { "-x", "'-x' is no option (see --help)" },
        { "pods.yaml", "'pods.yaml' is no option; a manifest is given by --load pods.yaml" },
        { "--seed -1", "--seed is a number from 0, not '-1'" },
        { "--seed 18446744073709551616", "--seed is a number from 0, not '18446744073709551616'" },
        { "--history 5", "--history is a size, an age or both, such as 64MiB,5m, not '5'" },
        { "--history 5m,64MiB",
          "--history is a size, an age or both, such as 64MiB,5m, not '5m,64MiB'" },
        { "--history 99999999999GiB",
          "--history is a size, an age or both, such as 64MiB,5m, not '99999999999GiB'" },
        { "--history 0MiB", "--history is a size, an age or both, such as 64MiB,5m, not '0MiB'" },
        { "--history 1MiB,0s",
          "--history is a size, an age or both, such as 64MiB,5m, not '1MiB,0s'" },
        { "--history 1MiB,", "--history is a size, an age or both, such as 64MiB,5m, not '1MiB,'" },
        { "--listen here",
          "cannot listen at here: an address is HOST:PORT, [HOST]:PORT, :PORT or unix:PATH" },
        { "--listen 0.0.0.0:0",
          "cannot listen at 0.0.0.0:0: an address that is not loopback needs --tls and --policy" },
        { "--listen [::]:0 --tls",
          "cannot listen at [::]:0: an address that is not loopback needs --tls and --policy" },
        { "--listen 0.0.0.0:0 --policy p",
          "cannot listen at 0.0.0.0:0: an address that is not loopback needs --tls and --policy" },
        { "--fault-listen here",
          "cannot listen at here: an address is HOST:PORT, [HOST]:PORT, :PORT or unix:PATH" },
        { "--tls --policy p --fault-listen 0.0.0.0:0",
          "cannot listen at 0.0.0.0:0: faults are taken at loopback addresses and unix sockets "
          "alone" },
        { "--listen unix:/x --write-kubeconfig k",
          "--write-kubeconfig needs a --listen HOST:PORT: clients of kubeconfigs take no unix "
          "sockets" },
        { "--policy p --write-kubeconfig k",
          "--write-kubeconfig with --policy needs --tls: clients send no tokens over plain HTTP" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf__sim_arguments arguments;
        struct kinf_error err = KINF_ERROR_INIT;

        assert_int_equal(parse(rows[i].line, &arguments, &err), KINF_ERR_INVALID);
        assert_string_equal(err.message, rows[i].message);
    }
}

static void with_tls_and_a_policy_it_may_be_anywhere(void **state)
{
    (void)state;
    assert_string_equal(parsed("--listen 0.0.0.0:0 --tls --policy p").listen.items[0], "0.0.0.0:0");
}

static void a_flag_may_be_repeated_so_often(void **state)
{
    struct kinf__sim_arguments arguments;
    struct kinf_error err = KINF_ERROR_INIT;
    char text[4096] = "";

    (void)state;
    for (int i = 0; i < KINF__FLAG_MAX_VALUES; i++)
        strcat(text, "--fault f ");
    assert_int_equal(parsed(text).faults.n_items, KINF__FLAG_MAX_VALUES);
    strcat(text, "--fault f");
    assert_int_equal(parse(text, &arguments, &err), KINF_ERR_INVALID);
    assert_string_equal(err.message, "more than 256 --fault");
}

static void help_names_every_flag(void **state)
{
    static const char *const flags[] = {
        "--listen",   "--tls",          "--policy",    "--write-kubeconfig", "--load",
        "--generate", "--churn",        "--seed",      "--no-workloads",     "--history",
        "--fault ",   "--fault-listen", "--log-level", "--version",          "--help",
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(flags); i++)
        assert_non_null(strstr(kinf__sim_help, flags[i]));
    /* Others do not count: nothing is checked that is not needed. */
    assert_int_equal(parsed("--help --listen nonsense").command, KINF__SIM_COMMAND_HELP);
    assert_int_equal(parsed("--version").command, KINF__SIM_COMMAND_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_flags_it_listens_at_a_free_port_of_loopback),
        cmocka_unit_test(every_flag_is_taken),
        cmocka_unit_test(a_history_has_a_size_or_an_age_or_both),
        cmocka_unit_test(what_is_wrong_is_said_with_what_to_do),
        cmocka_unit_test(with_tls_and_a_policy_it_may_be_anywhere),
        cmocka_unit_test(a_flag_may_be_repeated_so_often),
        cmocka_unit_test(help_names_every_flag),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
