/*
 * Handlers that are programs: what they are told, what they may do wrong, and how they end. They are
 * commands of the shell in a folder of the test's own.
 */
#include "handlers/exec_handler.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <kinformer/log.h>

#include "base/clock.h"
#include "handlers/child.h"
#include "handlers/outbox.h"
#include "unit/informer_fixture.h"
#include "unit/outbox_fixture.h"
#include "unit/test.h"

#define PATIENCE_MS 60000
#define SLACK_MS    3000 /* what a busy machine may add */

struct fixture {
    char folder[64];
    struct kinf__handler *handler;
    struct kinf__outbox_feed *feed;
};

static size_t n_log_lines;

static void count_line(enum kinf_log_level level, const char *module, const char *line, void *ctx)
{
    (void)level;
    (void)line;
    (void)ctx;
    if (strcmp(module, "handlers") == 0)
        __atomic_fetch_add(&n_log_lines, 1, __ATOMIC_RELAXED);
}

static int begin(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (f == NULL || mkdtemp(strcpy(f->folder, "/tmp/kinformer-test-XXXXXX")) == NULL)
        return -1;
    *state = f;
    __atomic_store_n(&n_log_lines, 0, __ATOMIC_RELAXED);
    kinf_log_set_callback(count_line, NULL);
    return setenv("FOLDER", f->folder, 1);
}

static int end(void **state)
{
    struct fixture *f = *state;
    char command[128];

    if (f->handler != NULL)
        kinf__handler_stop(f->handler);
    kinf__outbox_feed_free(f->feed);
    kinf__handler_free(f->handler);
    kinf_log_set_callback(NULL, NULL);
    snprintf(command, sizeof command, "rm -rf %s", f->folder);
    free(f);
    return system(command);
}

static void start_args(struct fixture *f, char **args, size_t n_args, bool acknowledges)
{
    test_skip_in_valgrind("it knows no pidfd_open()");
    assert_int_equal(kinf__exec_handler_new(args, n_args, acknowledges, &f->handler, NULL), 0);
    assert_int_equal(kinf__handler_start(f->handler, NULL), 0);
    f->feed = outbox_open_feed(&f->handler->outbox, "things");
}

static void start(struct fixture *f, const char *command, bool acknowledges)
{
    start_args(f, (char *[]){ (char *)"/bin/sh", (char *)"-c", (char *)command }, 3, acknowledges);
}

static void put(struct fixture *f, const char *name, const char *text)
{
    const struct kinf_object *object = make_thing_of(name, name, "1", text);

    kinf__outbox_feed_put(f->feed, NULL, object, false);
    kinf_object_unref(object);
}

/* More than a pipe holds. */
static void put_large(struct fixture *f, const char *name)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    const struct kinf_object *object;

    assert_int_equal(
        kinf__buffer_printf(&text,
                            "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":"
                            "\"u\",\"resourceVersion\":\"1\"},\"text\":\"%0300000d\"}",
                            name, 0),
        0);
    assert_int_equal(kinf_object_new_from_json(things(), text.bytes, text.len, &object, NULL), 0);
    kinf__outbox_feed_put(f->feed, NULL, object, false);
    kinf_object_unref(object);
}

static void nap(void)
{
    const struct timespec moment = { .tv_nsec = 5000000 };

    nanosleep(&moment, NULL);
}

/* The content of a file of the folder, which the caller frees; "" if it is not there. */
static char *content(const struct fixture *f, const char *name)
{
    char path[128];
    FILE *file;
    char *text = calloc(1, 1 << 20);

    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    file = fopen(path, "re");
    assert_non_null(text);
    if (file != NULL) {
        (void)!fread(text, 1, (1 << 20) - 1, file);
        fclose(file);
    }
    return text;
}

static void wait_for_text(const struct fixture *f, const char *name, const char *wanted)
{
    int64_t deadline_ms = kinf__clock_now_ms() + PATIENCE_MS;
    bool is_there = false;

    while (!is_there) {
        char *text = content(f, name);

        is_there = strstr(text, wanted) != NULL;
        if (!is_there && kinf__clock_now_ms() > deadline_ms)
            fail_msg("no %s in %s", wanted, text);
        free(text);
        nap();
    }
}

static struct kinf__handler_status status_of(const struct fixture *f)
{
    struct kinf__handler_status status;

    kinf__handler_status(f->handler, &status);
    return status;
}

static void wait_for_starts(const struct fixture *f, uint64_t n)
{
    int64_t deadline_ms = kinf__clock_now_ms() + PATIENCE_MS;

    while (status_of(f).n_starts < n) {
        assert_true(kinf__clock_now_ms() < deadline_ms);
        nap();
    }
}

static int64_t stop_ms(struct fixture *f)
{
    int64_t began_ms = kinf__clock_now_ms();

    kinf__handler_stop(f->handler);
    return kinf__clock_now_ms() - began_ms;
}

static bool is_alive(pid_t pid)
{
    return kill(pid, 0) == 0;
}

static pid_t read_pid(const struct fixture *f, const char *name)
{
    char *text;
    pid_t pid;

    wait_for_text(f, name, "\n");
    text = content(f, name);
    pid = (pid_t)atoi(text);
    free(text);
    assert_true(pid > 1);
    return pid;
}

/* --- good ones --- */

static void it_is_told_and_ends_with_its_input(void **state)
{
    struct fixture *f = *state;

    start(f, "cat > $FOLDER/told; echo end > $FOLDER/end", false);
    put(f, "a", "x");
    wait_for_text(f, "told", "{\"type\":\"RESET\"}\n{\"type\":\"ADDED\",\"resource\":\"things\"");
    kinf__outbox_feed_synced(f->feed);
    wait_for_text(f, "told", "{\"type\":\"SYNCED\",\"resource\":\"things\"}\n");
    assert_true(stop_ms(f) < KINF__CHILD_GRACE_MS + SLACK_MS);
    wait_for_text(f, "end", "end"); /* it was not killed */
    assert_int_equal(status_of(f).n_starts, 1);
    assert_false(status_of(f).is_running);
}

static void more_than_is_composed_at_once_is_told_without_news(void **state)
{
    struct fixture *f = *state;
    char name[32];

    start(f, "sleep 0.5; exec cat > $FOLDER/told", false);
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "thing-%d", i);
        put(f, name, "x");
    }
    kinf__outbox_feed_synced(f->feed);
    wait_for_text(f, "told", "{\"type\":\"SYNCED\"");
}

static void one_that_ends_is_started_again_and_told_anew(void **state)
{
    struct fixture *f = *state;

    start(f, "head -n 2 > $FOLDER/told-$$; cat $FOLDER/told-$$ >> $FOLDER/all", false);
    put(f, "a", "x");
    wait_for_text(f, "all", "}}\n{\"type\":\"RESET\"}\n{\"type\":\"ADDED\"");
}

static void acknowledged_lines_are_counted_off(void **state)
{
    struct fixture *f = *state;
    struct kinf__outbox_status status;
    int64_t deadline_ms = kinf__clock_now_ms() + PATIENCE_MS;

    start(f, "n=0; while read -r line; do n=$((n+1)); echo \"{\\\"ack\\\": $n}\"; done", true);
    for (int i = 0; i < 3000; i++) { /* three windows */
        char name[16];

        snprintf(name, sizeof name, "a%d", i);
        put(f, name, "x");
    }
    do {
        nap();
        kinf__outbox_status(&f->handler->outbox, &status);
        assert_true(kinf__clock_now_ms() < deadline_ms);
    } while (status.n_waiting != 0 || status.n_unacknowledged != 0);
    assert_int_equal(status.n_told, 3001);
    assert_int_equal(status_of(f).n_errors, 0);
}

/* --- bad ones --- */

static void one_that_closes_its_input_is_replaced(void **state)
{
    struct fixture *f = *state;
    pid_t pid;

    start(f, "echo $$ >> $FOLDER/pid; exec 0<&-; sleep 1000", false);
    pid = read_pid(f, "pid");
    wait_for_starts(f, 2);
    assert_false(is_alive(pid));
}

static void garbage_is_counted_and_logged_within_bounds(void **state)
{
    struct fixture *f = *state;
    int64_t deadline_ms = kinf__clock_now_ms() + PATIENCE_MS;

    start(f,
          "yes garbage | head -n 5000; printf '{\"ack\":-1}\\n{\"ack\":1.5}\\n{\"ack\":\"1\"}\\n"
          "{\"ack\":99999999999999999999}\\n[[1]]\\n{\"ack\":77}\\n{\"ack\":1}\\n';"
          "head -c 300000 /dev/zero | tr '\\0' x; echo; cat > $FOLDER/told",
          true);
    while (status_of(f).n_errors < 5007) {
        assert_true(kinf__clock_now_ms() < deadline_ms);
        nap();
    }
    assert_int_equal(status_of(f).n_errors, 5007); /* {"ack":1} is right */
    assert_string_equal(status_of(f).last_error.message, "a line is no acknowledgement");
    assert_true(__atomic_load_n(&n_log_lines, __ATOMIC_RELAXED) <= 100);
    put(f, "a", "x");
    wait_for_text(f, "told", "ns/a");
    assert_int_equal(status_of(f).n_starts, 1);
}

static void what_it_forked_ends_with_it(void **state)
{
    struct fixture *f = *state;
    pid_t pid;

    start(f, "sleep 1000 & echo $! >> $FOLDER/pid; exit 0", false);
    pid = read_pid(f, "pid");
    wait_for_starts(f, 2);
    for (int i = 0; i < 60000 && is_alive(pid); i++) /* whoever adopted it may be slow to reap it */
        nap();
    assert_false(is_alive(pid));
}

static void one_that_dies_at_once_is_not_started_often(void **state)
{
    struct fixture *f = *state;
    int64_t began_ms = kinf__clock_now_ms();

    start(f, "exit 3", false);
    wait_for_starts(f, 3);
    assert_true(kinf__clock_now_ms() - began_ms >= 3000); /* 1 s and 2 s at least */
    assert_non_null(strstr(status_of(f).last_error.message, "exit_code=3"));
    assert_true(status_of(f).last_error.at_ms >= began_ms);
    assert_true(stop_ms(f) < SLACK_MS);
}

static void one_that_never_reads_holds_up_nobody(void **state)
{
    struct fixture *f = *state;
    struct kinf__outbox_status status;
    int64_t taken_ms;

    start(f, "exec sleep 1000", false);
    wait_for_starts(f, 1);
    for (int i = 0; i < 20000; i++) {
        char name[16];

        snprintf(name, sizeof name, "a%d", i % 2000);
        put(f, name, "x");
    }
    kinf__outbox_status(&f->handler->outbox, &status);
    assert_true(status.n_waiting <= 2001);
    assert_true(status.n_told < 2001); /* a pipe and a batch */
    taken_ms = stop_ms(f);
    assert_true(taken_ms < 2 * KINF__CHILD_GRACE_MS + SLACK_MS);
}

static void one_that_ignores_sigterm_is_killed(void **state)
{
    struct fixture *f = *state;
    pid_t pid;

    start(f, "trap '' TERM; echo $$ > $FOLDER/pid; while :; do sleep 1; done", false);
    pid = read_pid(f, "pid");
    assert_true(stop_ms(f) < 3 * KINF__CHILD_GRACE_MS + SLACK_MS);
    assert_false(is_alive(pid));
}

static void a_program_that_is_not_there_is_tried_again(void **state)
{
    struct fixture *f = *state;

    start_args(f, (char *[]){ (char *)"/nonexistent/handler" }, 1, false);
    put(f, "a", "x");
    wait_for_starts(f, 2);
    assert_false(status_of(f).is_running);
    assert_true(__atomic_load_n(&n_log_lines, __ATOMIC_RELAXED) >= 1);
    assert_string_equal(status_of(f).last_error.message,
                        "it cannot be run: No such file or directory");
    assert_true(stop_ms(f) < SLACK_MS);
}

static void one_that_cannot_acknowledge_any_more_is_replaced(void **state)
{
    struct fixture *f = *state;

    start(f, "exec 1>&-; exec cat > /dev/null", true);
    wait_for_starts(f, 2);
}

/* --- what it gets of ours --- */

static void it_has_three_descriptors_and_no_blocked_signal(void **state)
{
    struct fixture *f = *state;

    start(f,
          "(exec ls /proc/self/fd > $FOLDER/fds);"
          "(exec grep SigBlk /proc/self/status >> $FOLDER/fds); cat > /dev/null",
          false);
    /* The last one is of ls itself. */
    wait_for_text(f, "fds", "0\n1\n2\n3\nSigBlk:\t0000000000000000");
}

static void the_line_that_it_reads_is_ended_at_the_end(void **state)
{
    struct fixture *f = *state;
    char *text;

    start(f, "sleep 0.3; cat > $FOLDER/told", false);
    put_large(f, "a");
    put_large(f, "b");
    wait_for_starts(f, 1);
    nap();
    assert_true(stop_ms(f) < 2 * KINF__CHILD_GRACE_MS + SLACK_MS);
    text = content(f, "told");
    assert_true(text[0] == '\0' || text[strlen(text) - 1] == '\n');
    free(text);
}

/* --- halted --- */

static size_t count_of(const struct fixture *f, const char *name, const char *part)
{
    char *text = content(f, name);
    size_t n = 0;

    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        n++;
    free(text);
    return n;
}

static void one_that_was_halted_is_told_all_when_it_is_started_again(void **state)
{
    struct fixture *f = *state;

    start(f, "cat >> $FOLDER/told; echo >> $FOLDER/ended", false);
    assert_int_equal(kinf__handler_start(f->handler, NULL), KINF_ERR_STATE);
    put(f, "a", "x");
    wait_for_text(f, "told", "\"key\":\"ns/a\"");
    for (size_t n = 1; n <= 3; n++) {
        kinf__handler_halt(f->handler);
        assert_true(kinf__handler_join(f->handler));
        assert_false(status_of(f).is_running);
        assert_int_equal(count_of(f, "ended", "\n"), n);
        put(f, "b", "x");
        assert_int_equal(count_of(f, "told", "ns/b"), n - 1);
        assert_int_equal(kinf__handler_start(f->handler, NULL), 0);
        while (count_of(f, "told", "ns/a") < n + 1 || count_of(f, "told", "ns/b") < n)
            nap();
        assert_int_equal(count_of(f, "told", "RESET"), n + 1);
    }
    /* One that is halted is stopped like any other, and does not begin again. */
    kinf__handler_halt(f->handler);
    assert_true(kinf__handler_join(f->handler));
    kinf__handler_interrupt(f->handler);
    assert_int_equal(kinf__handler_start(f->handler, NULL), 0);
    kinf__handler_stop(f->handler);
    assert_int_equal(status_of(f).n_starts, 4);
}

static _Atomic(bool) leads;

static bool may_tell(void *ctx)
{
    (void)ctx;
    return atomic_load(&leads);
}

/* As a process that was halted finds it, before anybody has halted the handler. */
static void one_whose_term_is_over_is_told_nothing_more(void **state)
{
    int64_t deadline_ms = kinf__clock_now_ms() + PATIENCE_MS;
    struct fixture *f = *state;

    start(f, "cat >> $FOLDER/told; echo >> $FOLDER/ended", false);
    wait_for_text(f, "told", "RESET");
    kinf__handler_halt(f->handler);
    assert_true(kinf__handler_join(f->handler));
    f->handler->may_tell = may_tell;
    atomic_store(&leads, true);
    assert_int_equal(kinf__handler_start(f->handler, NULL), 0);
    put(f, "a", "x");
    wait_for_text(f, "told", "\"key\":\"ns/a\"");
    atomic_store(&leads, false);
    put(f, "b", "x");
    while (count_of(f, "ended", "\n") < 2) {
        assert_true(kinf__clock_now_ms() < deadline_ms);
        nap();
    }
    assert_int_equal(count_of(f, "told", "ns/b"), 0);
    atomic_store(&leads, true);
    wait_for_text(f, "told", "\"key\":\"ns/b\"");
    assert_int_equal(count_of(f, "told", "ns/a"), 2);
    assert_int_equal(status_of(f).n_errors, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(it_is_told_and_ends_with_its_input),
        TEST(one_that_was_halted_is_told_all_when_it_is_started_again),
        TEST(one_whose_term_is_over_is_told_nothing_more),
        TEST(more_than_is_composed_at_once_is_told_without_news),
        TEST(one_that_ends_is_started_again_and_told_anew),
        TEST(acknowledged_lines_are_counted_off),
        TEST(one_that_closes_its_input_is_replaced),
        TEST(garbage_is_counted_and_logged_within_bounds),
        TEST(what_it_forked_ends_with_it),
        TEST(one_that_dies_at_once_is_not_started_often),
        TEST(one_that_never_reads_holds_up_nobody),
        TEST(one_that_ignores_sigterm_is_killed),
        TEST(a_program_that_is_not_there_is_tried_again),
        TEST(one_that_cannot_acknowledge_any_more_is_replaced),
        TEST(it_has_three_descriptors_and_no_blocked_signal),
        TEST(the_line_that_it_reads_is_ended_at_the_end),
    };
#undef TEST

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
