/*
 * Credential plugins: what they are given, what is taken from them, and how they are ended. They
 * are shell scripts in a folder of the test's own.
 */
#include "rest/exec.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kinformer/log.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "unit/allocation.h"
#include "unit/scripted_server.h"
#include "unit/test.h"

#define V1           "client.authentication.k8s.io/v1"
#define V1BETA1      "client.authentication.k8s.io/v1beta1"
#define ANSWER(more) "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":{" more "}}"
#define LIMIT_MS     60000
#define AN_HOUR      3600
#define FILES        500 /* no usual limit */

/* --- reading an answer --- */

/* In memory of exactly its length, so that a look behind it is found. */
static int parse(const char *text, size_t len, struct kinf__exec_answer *ret_answer,
                 struct kinf_error *err)
{
    char *exact = malloc(len + (len == 0));
    int failed;

    assert_non_null(exact);
    memcpy(exact, text, len);
    failed = kinf__exec_parse((struct kinf_str){ exact, len }, KINF__EXEC_V1, ret_answer, err);
    free(exact);
    return failed;
}

static void an_answer_says_what_and_how_long(void **state)
{
    static const struct {
        const char *text, *token;
        int64_t expires_s;
    } rows[] = {
        { ANSWER("\"token\":\"abc\""), "abc", INT64_MAX },
        { ANSWER("\"token\":\"a\\u0062c\",\"clientKeyData\":\"\",\"expirationTimestamp\":null"),
          "abc", INT64_MAX },
        { " \n" ANSWER("\"token\":\"t\",\"expirationTimestamp\":\"1970-01-02T00:00:01Z\"") "\n",
          "t", 86401 },
        { ANSWER("\"token\":\"t\",\"expirationTimestamp\":\"2024-02-29T12:30:00.123456789Z\""), "t",
          1709209800 },
        { ANSWER("\"expirationTimestamp\":\"2024-02-29T12:30:00+02:30\",\"token\":\"t\""), "t",
          1709200800 },
        { ANSWER("\"token\":\"t\",\"expirationTimestamp\":\"2024-02-29t12:30:00.5-02:30\""), "t",
          1709218800 },
        { ANSWER("\"token\":\"t\",\"expirationTimestamp\":\"2024-12-31T23:59:60Z\""), "t",
          1735689600 },
        { ANSWER("\"token\":\"t\",\"expirationTimestamp\":\"2024-01-01T00:00:00+23:59\""), "t",
          1703980860 },
        { "{\"status\":{\"token\":\"t\"},\"spec\":{},\"apiVersion\":\"" V1
          "\",\"kind\":\"ExecCredential\"}",
          "t", INT64_MAX },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kinf_error err = KINF_ERROR_INIT;
        struct kinf__exec_answer answer;

        if (parse(rows[i].text, strlen(rows[i].text), &answer, &err) < 0)
            fail_msg("%s: %s", rows[i].text, err.message);
        assert_int_equal(err.code, 0);
        assert_string_equal(answer.token, rows[i].token);
        assert_null(answer.cert_pem);
        assert_true(answer.expires_wall_s == rows[i].expires_s);
        kinf__exec_answer_release(&answer);
    }
}

#define TIME(text) ANSWER("\"token\":\"s3cret\",\"expirationTimestamp\":\"" text "\"")

static void what_is_no_answer_is_named_without_showing_it(void **state)
{
    static const struct {
        const char *text, *word;
    } rows[] = {
        { "", "no JSON" },
        { "s3cret", "no JSON" },
        { ANSWER("\"token\":\"s3cret\"") "s3cret", "no JSON" },
        { "\"s3cret\"", "no ExecCredential" },
        { "{\"kind\":\"s3cret\"}", "no ExecCredential" },
        { "{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"s3cret\"}}", "apiVersion is not" },
        { "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1BETA1
          "\",\"status\":{\"token\":\"s3cret\"}}",
          "apiVersion is not " V1 "," },
        { "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\"}", "no status" },
        { "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":\"s3cret\"}",
          "no status" },
        { ANSWER(""), "neither a token nor" },
        { ANSWER("\"token\":\"\""), "neither a token nor" },
        { ANSWER("\"token\":5"), "status.token is no text" },
        { ANSWER("\"token\":\"s3cret\\n\""), "status.token has a blank" },
        { ANSWER("\"token\":\"s3cret\\u0000x\""), "status.token has a NUL" },
        { ANSWER("\"token\":\"s3cret\",\"clientKeyData\":\"s3cret\""), "go together" },
        { ANSWER("\"clientCertificateData\":\"s3cret\""), "go together" },
        { ANSWER("\"clientCertificateData\":\"s3cret\",\"clientKeyData\":\"s3cret\""),
          "certificate cannot be read" },
        { TIME("s3cret"), "no time" },
        { TIME("2024-02-29T12:30:00"), "no time" },
        { TIME("2024-13-01T12:30:00Z"), "no time" },
        { TIME("2024-00-01T12:30:00Z"), "no time" },
        { TIME("2024-12-00T12:30:00Z"), "no time" },
        { TIME("2024-12-32T12:30:00Z"), "no time" },
        { TIME("2024-06-31T12:30:00Z"), "no time" },
        { TIME("2023-02-29T12:30:00Z"), "no time" },
        { TIME("2024-12-01T24:30:00Z"), "no time" },
        { TIME("2024-12-01Txx:30:00Z"), "no time" },
        { TIME("2024-12-01T12:60:00Z"), "no time" },
        { TIME("2024-12-01T12:xx:00Z"), "no time" },
        { TIME("2024-12-01T12:30:61Z"), "no time" },
        { TIME("2024-12-01T12:30:xxZ"), "no time" },
        { TIME("2024-12-01T12:30:00+xx:30"), "no time" },
        { TIME("2024-12-01T12:30:00+02:60"), "no time" },
        { TIME("2024-12-01T12:30:00+02:xx"), "no time" },
        { TIME("2024-12-01T12:30:00+0230"), "no time" },
        { TIME("2024/12-01T12:30:00Z"), "no time" },
        { TIME("2024-12/01T12:30:00Z"), "no time" },
        { TIME("2024-12-01 12:30:00Z"), "no time" },
        { TIME("2024-12-01T12.30:00Z"), "no time" },
        { TIME("2024-12-01T12:30.00Z"), "no time" },
        { TIME("2024-12-01T12:30:00+24:00"), "no time" },
        { TIME("-024-12-01T12:30:00Z"), "no time" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kinf_error err = KINF_ERROR_INIT;
        struct kinf__exec_answer answer;

        assert_int_equal(parse(rows[i].text, strlen(rows[i].text), &answer, &err), KINF_ERR_PARSE);
        assert_int_equal(err.code, KINF_ERR_PARSE);
        if (strstr(err.message, rows[i].word) == NULL || strstr(err.message, "s3cret") != NULL)
            fail_msg("%s: %s", rows[i].text, err.message);
    }
}

static void an_answer_cut_anywhere_is_none(void **state)
{
    static const char text[] = TIME("2024-12-01T12:30:00Z");
    struct kinf__exec_answer answer;

    (void)state;
    for (size_t len = 0; len < sizeof text - 1; len++)
        assert_int_equal(parse(text, len, &answer, NULL), KINF_ERR_PARSE);
    assert_int_equal(parse(text, sizeof text - 1, &answer, NULL), 0);
    kinf__exec_answer_release(&answer);
}

static void an_answer_without_memory_is_an_ordinary_error(void **state)
{
    static const char text[] = TIME("2024-12-01T12:30:00Z");
    bool did_fail = true;

    (void)state;
    for (size_t n = 1; did_fail; n++) {
        struct kinf__exec_answer answer;
        int failed;

        test_fail_allocation(n);
        failed = kinf__exec_parse(kinf_str_from(text), KINF__EXEC_V1, &answer, NULL);
        did_fail = test_allocation_failed();
        assert_int_equal(failed, did_fail ? KINF_ERR_NO_MEMORY : 0);
        if (failed == 0)
            kinf__exec_answer_release(&answer);
    }
}

static void append_escaped(struct kinf__buffer *text, const char *pem)
{
    for (; *pem != '\0'; pem++)
        assert_int_equal(*pem == '\n' ? kinf__buffer_append(text, "\\n", 2)
                                      : kinf__buffer_append(text, pem, 1),
                         0);
}

/* The end of the certificate counts when it comes first; of two that do not fit nothing is taken. */
static void a_certificate_has_its_own_end(void **state)
{
    const int64_t began_s = time(NULL);
    struct kinf__key_pair authority = test_key_pair("authority", NULL, AN_HOUR, NULL);
    const struct kinf__key_pair ids[] = { test_key_pair("a", NULL, AN_HOUR, &authority),
                                          test_key_pair("b", NULL, -AN_HOUR, &authority) };
    const struct {
        const char *cert, *key, *word;
    } rows[] = { { ids[0].cert_pem, ids[0].key_pem, NULL },
                 { ids[0].cert_pem, ids[1].key_pem, "does not belong" },
                 { ids[1].cert_pem, ids[1].key_pem, "expired" } };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
        struct kinf_error err = KINF_ERROR_INIT;
        struct kinf__exec_answer answer = { 0 };
        int failed;

        assert_int_equal(kinf__buffer_printf(&text,
                                             "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
                                             "\",\"status\":{\"expirationTimestamp\":"
                                             "\"2999-01-01T00:00:00Z\",\"clientCertificateData\":"
                                             "\""),
                         0);
        append_escaped(&text, rows[i].cert);
        assert_int_equal(kinf__buffer_printf(&text, "\",\"clientKeyData\":\""), 0);
        append_escaped(&text, rows[i].key);
        assert_int_equal(kinf__buffer_printf(&text, "\"}}"), 0);
        failed = kinf__exec_parse(kinf__buffer_str(&text), KINF__EXEC_V1, &answer, &err);
        assert_int_equal(failed, rows[i].word == NULL ? 0 : KINF_ERR_PARSE);
        if (rows[i].word != NULL) {
            assert_non_null(strstr(err.message, rows[i].word));
            continue;
        }
        assert_null(answer.token);
        assert_string_equal(answer.cert_pem, rows[i].cert);
        assert_string_equal(answer.key_pem, rows[i].key);
        assert_true(answer.expires_wall_s >= began_s + AN_HOUR &&
                    answer.expires_wall_s <= time(NULL) + AN_HOUR);
        kinf__exec_answer_release(&answer);
    }
    for (size_t i = 0; i < 2; i++)
        kinf__key_pair_release((struct kinf__key_pair *)&ids[i]);
    kinf__key_pair_release(&authority);
}

/* --- running --- */

struct fixture {
    char folder[64];
    char path[128]; /* of the plugin */
    struct kinf__waker waker;
    struct kinf__exec_config config;
    struct kinf__exec_answer answer;
    struct kinf_error err;
};

static struct kinf__buffer log_lines;

static void collect(enum kinf_log_level level, const char *module, const char *line, void *ctx)
{
    (void)level;
    (void)module;
    (void)ctx;
    (void)!kinf__buffer_printf(&log_lines, "%s\n", line);
}

static int begin(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    strcpy(f->folder, "/tmp/kinformer-test-XXXXXX");
    if (f == NULL || mkdtemp(f->folder) == NULL)
        return -1;
    snprintf(f->path, sizeof f->path, "%s/plugin", f->folder);
    f->config.command = f->path;
    *state = f;
    kinf_log_set_callback(collect, NULL);
    return kinf__waker_init(&f->waker, NULL) < 0 ? -1 : setenv("FOLDER", f->folder, 1);
}

static int end(void **state)
{
    struct fixture *f = *state;
    char command[128];

    kinf_log_set_callback(NULL, NULL);
    kinf__buffer_release(&log_lines);
    kinf__exec_answer_release(&f->answer);
    kinf__string_list_release(&f->config.args);
    kinf__string_list_release(&f->config.env);
    kinf__waker_release(&f->waker);
    snprintf(command, sizeof command, "rm -rf '%s'", f->folder);
    free(f);
    return system(command);
}

static void write_plugin(struct fixture *f, const char *body)
{
    int fd;

    test_skip_in_valgrind("it knows no pidfd_open()");
    fd = open(f->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    assert_true(fd >= 0);
    assert_true(dprintf(fd, "#!/bin/sh\n%s\n", body) > 0);
    assert_int_equal(close(fd), 0);
}

static int run(struct fixture *f, int64_t limit_ms)
{
    return kinf__exec_run(&f->config, &f->waker, limit_ms, &f->answer, &f->err);
}

#define SAY_TOKEN "echo '" ANSWER("\"token\":\"s3cret\"") "'"

static void run_well(struct fixture *f)
{
    if (run(f, LIMIT_MS) < 0)
        fail_msg("%s", f->err.message);
    assert_string_equal(f->answer.token, "s3cret");
}

static void assert_fails(struct fixture *f, int64_t limit_ms, const char *word)
{
    assert_int_equal(run(f, limit_ms), KINF_ERR_UNAUTHORIZED);
    assert_int_equal(f->err.code, KINF_ERR_UNAUTHORIZED);
    assert_null(f->answer.token);
    if (strstr(f->err.message, word) == NULL || strstr(f->err.message, f->config.command) == NULL ||
        strstr(f->err.message, "s3cret") != NULL || strchr(f->err.message, '\n') != NULL)
        fail_msg("%s", f->err.message);
}

/* What the plugin left in its folder. */
static void assert_file(struct fixture *f, const char *name, const char *expected)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    char path[128];

    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    assert_int_equal(kinf__file_read(path, 1 << 20, &text, NULL), 0);
    assert_string_equal(kinf__buffer_cstr(&text), expected);
}

static void add(struct kinf__string_list *list, const char *text)
{
    assert_int_equal(kinf__string_list_append(list, strdup(text)), 0);
}

static void a_plugin_gets_its_arguments_and_the_request(void **state)
{
    struct fixture *f = *state;

    add(&f->config.args, "a b");
    add(&f->config.args, "");
    f->config.cluster_json = (char *)"{\"server\":\"https://a\"}";
    write_plugin(f, "printf '%s|' \"$@\" >$FOLDER/args\n"
                    "printf %s \"$KUBERNETES_EXEC_INFO\" >$FOLDER/info\n" SAY_TOKEN);
    run_well(f);
    assert_file(f, "args", "a b||");
    assert_file(f, "info",
                "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
                "\",\"spec\":{\"cluster\":{\"server\":\"https://a\"},\"interactive\":false}}");
}

static void the_request_has_the_version_that_is_configured(void **state)
{
    struct fixture *f = *state;

    f->config.version = KINF__EXEC_V1BETA1;
    write_plugin(f, "printf %s \"$KUBERNETES_EXEC_INFO\" >$FOLDER/info\n" SAY_TOKEN);
    assert_fails(f, LIMIT_MS, "apiVersion is not " V1BETA1);
    assert_file(f, "info",
                "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1BETA1
                "\",\"spec\":{\"interactive\":false}}");
}

static void configured_variables_are_put_over_ours(void **state)
{
    struct fixture *f = *state;

    setenv("PLUGIN_OURS", "ours", 1);
    setenv("PLUGIN_BOTH", "ours", 1);
    setenv("KUBERNETES_EXEC_INFO", "another one's", 1);
    add(&f->config.env, "PLUGIN_BOTH=theirs");
    add(&f->config.env, "PLUGIN_THEIRS=a=b");
    write_plugin(f, "env | grep -e ^PLUGIN_ -e ^KUBERNETES_EXEC | sort >$FOLDER/env\n" SAY_TOKEN);
    run_well(f);
    unsetenv("PLUGIN_OURS");
    unsetenv("PLUGIN_BOTH");
    unsetenv("KUBERNETES_EXEC_INFO");
    assert_file(f, "env",
                "KUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
                "\",\"spec\":{\"interactive\":false}}\n"
                "PLUGIN_BOTH=theirs\nPLUGIN_OURS=ours\nPLUGIN_THEIRS=a=b\n");
}

static void a_plugin_inherits_no_descriptor_signal_or_terminal(void **state)
{
    struct fixture *f = *state;
    int fd = fcntl(STDOUT_FILENO, F_DUPFD, 100);
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    sigset_t all, mask;

    write_plugin(f,
                 "cat >$FOLDER/stdin\n"
                 "for fd in /proc/$$/fd/*; do [ ${fd##*/} -lt 100 ] || echo $fd; done "
                 ">$FOLDER/fds\n"
                 /* The C library ignores two of its own, above the 31 that have a name. */
                 "sed -n 's/^\\(SigBlk\\|SigIgn\\).*\\(.......\\)$/\\1 \\2/p' /proc/self/status "
                 ">$FOLDER/signals\n"
                 "[ $(cut -d' ' -f5 /proc/$$/stat) = $$ ] && echo own >$FOLDER/group\n" SAY_TOKEN);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    run_well(f);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    signal(SIGPIPE, before);
    close(fd);
    assert_file(f, "stdin", "");
    assert_file(f, "fds", "");
    assert_file(f, "signals", "SigBlk 0000000\nSigIgn 0000000\n");
    assert_file(f, "group", "own\n");
}

/* Right behind its start, not before: the plugin waits for it. */
static void a_plugin_has_the_limit_of_descriptors_that_we_began_with(void **state)
{
    struct fixture *f = *state;
    struct rlimit raised, before;
    char plugin[256];

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    raised = before;
    raised.rlim_cur = raised.rlim_max;
    snprintf(plugin, sizeof plugin,
             "until [ \"$(ulimit -Sn)/$(ulimit -Hn)\" = %ju/%ju ]; do :; done\n" SAY_TOKEN,
             (uintmax_t)FILES, (uintmax_t)before.rlim_max);
    write_plugin(f, plugin);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ FILES, before.rlim_max }), 0);
    kinf__process_keep_file_limit();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &raised), 0);
    run_well(f);
    kinf__process_keep_file_limit();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static unsigned count_descriptors(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Also of one that closes its standard error long before it answers. */
static void no_descriptor_of_a_plugin_stays_open(void **state)
{
    struct fixture *f = *state;
    unsigned n_before = count_descriptors();

    write_plugin(f, "exec 2>&-\nsleep 0.1\n" SAY_TOKEN);
    run_well(f);
    assert_int_equal(count_descriptors(), n_before);
}

static void standard_error_goes_to_the_log_and_the_answer_does_not(void **state)
{
    struct fixture *f = *state;

    write_plugin(f, "printf 'one\\ntw\\033o\\nhalf' >&2\n" SAY_TOKEN);
    run_well(f);
    assert_non_null(kinf__buffer_cstr(&log_lines));
    assert_non_null(strstr(log_lines.bytes, "says=\"one\""));
    assert_non_null(strstr(log_lines.bytes, "says=\"tw o\""));
    assert_non_null(strstr(log_lines.bytes, "says=\"half\""));
    assert_null(strstr(log_lines.bytes, "s3cret"));
}

static size_t count(const char *text, const char *word)
{
    size_t n = 0;

    while ((text = strstr(text, word)) != NULL) {
        text++;
        n++;
    }
    return n;
}

static void a_plugin_that_talks_too_much_is_cut_short_in_the_log(void **state)
{
    struct fixture *f = *state;

    write_plugin(f, "i=0; while [ $i -lt 300 ]; do echo line >&2; i=$((i+1)); done\n" SAY_TOKEN);
    run_well(f);
    assert_int_equal(count(kinf__buffer_cstr(&log_lines), "says="), 100);
    assert_int_equal(count(log_lines.bytes, "more is not shown"), 1);
}

static void a_missing_plugin_is_told_with_its_hint(void **state)
{
    struct fixture *f = *state;

    test_skip_in_valgrind("it knows no pidfd_open()");
    f->config.install_hint = (char *)"get it\nfrom here";
    assert_fails(f, LIMIT_MS, "No such file or directory; get it from here");
    f->config.command = (char *)"kinformer-no-such-plugin";
    assert_fails(f, LIMIT_MS, "No such file or directory; get it from here");
    f->config.command = f->folder;
    assert_fails(f, LIMIT_MS, "Permission denied");
}

static void a_plugin_that_fails_is_told_with_its_code(void **state)
{
    struct fixture *f = *state;

    write_plugin(f, SAY_TOKEN "\nexit 3");
    assert_fails(f, LIMIT_MS, "exit code 3");
    write_plugin(f, SAY_TOKEN "\nkill -9 $$");
    assert_fails(f, LIMIT_MS, "signal 9");
    write_plugin(f, "echo s3cret");
    assert_fails(f, LIMIT_MS, "no JSON");
    write_plugin(f, "echo oh >&2; exit 1");
    assert_fails(f, LIMIT_MS, "see the log");
}

static void an_answer_without_an_end_is_left(void **state)
{
    struct fixture *f = *state;

    write_plugin(f, "while :; do echo s3cret s3cret s3cret s3cret; done");
    assert_fails(f, LIMIT_MS, "more than 1048576 bytes");
}

/* The first line of a file that a plugin wrote. */
static pid_t read_pid(struct fixture *f, const char *name)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    char path[128];

    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    while (kinf__file_read(path, 64, &text, NULL) < 0 || text.len == 0 ||
           text.bytes[text.len - 1] != '\n')
        usleep(1000);
    return (pid_t)strtol(kinf__buffer_cstr(&text), NULL, 10);
}

/* Gone, or dead and not yet waited for by whoever adopted it. */
static bool is_dead(pid_t pid)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return kinf__file_read(path, 512, &text, NULL) < 0 ||
           strstr(kinf__buffer_cstr(&text), ") Z ") != NULL;
}

#define CHILD_THAT_STAYS "sleep 1000 & echo $! >$FOLDER/child\n"

static void a_plugin_that_hangs_is_killed_with_its_children(void **state)
{
    struct fixture *f = *state;
    char path[128];
    pid_t child;

    write_plugin(f, CHILD_THAT_STAYS "wait");
    /* The child is there when the time is over, however slow this machine is. */
    snprintf(path, sizeof path, "%s/child", f->folder);
    for (int64_t limit_ms = 100; access(path, F_OK) != 0; limit_ms *= 2)
        assert_fails(f, limit_ms, "did not end within");
    child = read_pid(f, "child");
    while (!is_dead(child))
        usleep(1000);
}

static void *set_when_started(void *ctx)
{
    struct fixture *f = ctx;

    read_pid(f, "child");
    kinf__waker_set(&f->waker);
    return NULL;
}

static void the_waker_ends_a_plugin_at_once(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    pid_t child;

    write_plugin(f, CHILD_THAT_STAYS "wait");
    assert_int_equal(kinf__thread_start(&thread, "setter", set_when_started, f, NULL), 0);
    assert_int_equal(run(f, LIMIT_MS), KINF_ERR_STOPPED);
    pthread_join(thread, NULL);
    child = read_pid(f, "child");
    while (!is_dead(child))
        usleep(1000);
}

/* A helper that a plugin leaves behind has its pipes. */
static void what_a_plugin_leaves_behind_is_not_waited_for(void **state)
{
    struct fixture *f = *state;

    write_plugin(f, CHILD_THAT_STAYS SAY_TOKEN);
    run_well(f);
    assert_int_equal(kill(read_pid(f, "child"), SIGKILL), 0);
}

static void a_program_that_reaps_no_children_can_have_plugins(void **state)
{
    struct fixture *f = *state;
    void (*before)(int);

    write_plugin(f, SAY_TOKEN);
    before = signal(SIGCHLD, SIG_IGN);
    run_well(f);
    signal(SIGCHLD, before);
}

static void a_run_without_memory_is_an_ordinary_error(void **state)
{
    struct fixture *f = *state;
    bool did_fail = true;
    static char *few[] = { (char *)"PATH=/usr/bin:/bin", NULL };
    char **before = environ;

    write_plugin(f, SAY_TOKEN);
    add(&f->config.args, "a");
    add(&f->config.env, "A=b");
    environ = few;
    for (size_t n = 1; did_fail; n++) {
        int failed;

        test_fail_allocation(n);
        failed = run(f, LIMIT_MS);
        did_fail = test_allocation_failed();
        assert_int_equal(failed, did_fail ? KINF_ERR_NO_MEMORY : 0);
        kinf__exec_answer_release(&f->answer);
    }
    environ = before;
}

#define RUNS(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_says_what_and_how_long),
        cmocka_unit_test(what_is_no_answer_is_named_without_showing_it),
        cmocka_unit_test(an_answer_cut_anywhere_is_none),
        cmocka_unit_test(an_answer_without_memory_is_an_ordinary_error),
        cmocka_unit_test(a_certificate_has_its_own_end),
        RUNS(a_plugin_gets_its_arguments_and_the_request),
        RUNS(the_request_has_the_version_that_is_configured),
        RUNS(configured_variables_are_put_over_ours),
        RUNS(a_plugin_inherits_no_descriptor_signal_or_terminal),
        RUNS(a_plugin_has_the_limit_of_descriptors_that_we_began_with),
        RUNS(no_descriptor_of_a_plugin_stays_open),
        RUNS(standard_error_goes_to_the_log_and_the_answer_does_not),
        RUNS(a_plugin_that_talks_too_much_is_cut_short_in_the_log),
        RUNS(a_missing_plugin_is_told_with_its_hint),
        RUNS(a_plugin_that_fails_is_told_with_its_code),
        RUNS(an_answer_without_an_end_is_left),
        RUNS(a_plugin_that_hangs_is_killed_with_its_children),
        RUNS(the_waker_ends_a_plugin_at_once),
        RUNS(what_a_plugin_leaves_behind_is_not_waited_for),
        RUNS(a_program_that_reaps_no_children_can_have_plugins),
        RUNS(a_run_without_memory_is_an_ordinary_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
