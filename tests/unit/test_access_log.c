/*
 * The access log: whole lines in their order, nobody who waits, files that are renamed.
 */
#include "daemon/access_log.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "unit/test.h"

struct fixture {
    char folder[64];
    char path[96];
    char old[96];
};

static int set_up(void **state)
{
    static struct fixture f;

    snprintf(f.folder, sizeof f.folder, "/tmp/kinf-access-log-XXXXXX");
    if (mkdtemp(f.folder) == NULL)
        return -1;
    snprintf(f.path, sizeof f.path, "%s/log", f.folder);
    snprintf(f.old, sizeof f.old, "%s/log.1", f.folder);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    unlink(f->path);
    unlink(f->old);
    return rmdir(f->folder);
}

static struct kinf__access_log *open_log(const struct fixture *f)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__access_log *log;

    assert_int_equal(kinf__access_log_new(f->path, &log, &err), 0);
    return log;
}

/* The text of a file, up to 4 MiB. */
static char *text_of(const char *path)
{
    size_t size = 4u << 20;
    char *text = calloc(1, size);
    FILE *file = fopen(path, "re");

    assert_non_null(text);
    assert_non_null(file);
    (void)!fread(text, 1, size - 1, file);
    fclose(file);
    return text;
}

static void expect_text(const char *path, const char *expected)
{
    char *text = text_of(path);

    assert_string_equal(text, expected);
    free(text);
}

static void lines_are_appended_in_their_order(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 2; i++) {
        struct kinf__access_log *log = open_log(f);

        assert_int_equal(kinf__access_log_take(kinf_str_from("one\n"), log), 0);
        assert_int_equal(kinf__access_log_take(kinf_str_from("two\n"), log), 0);
        kinf__access_log_free(log);
    }
    expect_text(f->path, "one\ntwo\none\ntwo\n");
}

static void a_file_that_cannot_be_opened_is_told(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__access_log *log;

    (void)state;
    assert_int_equal(kinf__access_log_new("/nonexistent/log", &log, &err), KINF_ERR_SYSTEM);
    assert_non_null(strstr(err.message, "/nonexistent/log"));
}

static void nap(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static void a_renamed_file_is_left_when_it_is_asked_for(void **state)
{
    struct fixture *f = *state;
    struct kinf__access_log *log = open_log(f);

    kinf__access_log_take(kinf_str_from("before\n"), log);
    assert_int_equal(rename(f->path, f->old), 0);
    kinf__access_log_reopen(log);
    while (access(f->path, F_OK) != 0)
        nap();
    kinf__access_log_take(kinf_str_from("after\n"), log);
    kinf__access_log_free(log);
    /* What came before may be in either: the file is opened before the next line is written. */
    char *old = text_of(f->old), *new = text_of(f->path);
    char both[64];

    snprintf(both, sizeof both, "%s%s", old, new);
    assert_string_equal(both, "before\nafter\n");
    assert_non_null(strstr(new, "after\n"));
    free(old);
    free(new);
}

/* A pipe that nobody reads. */
static void who_has_a_line_never_waits_and_what_does_not_fit_is_dropped_whole(void **state)
{
    struct fixture *f = *state;
    struct kinf__access_log *log;
    char line[1000];
    size_t n_taken = 0;
    int reader;

    assert_int_equal(mkfifo(f->path, 0600), 0);
    reader = open(f->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    log = open_log(f);
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    for (size_t i = 0; i < 10000; i++)
        n_taken += 1 - kinf__access_log_take((struct kinf_str){ line, sizeof line }, log);
    assert_in_range(n_taken, 1000, 4 * KINF__ACCESS_LOG_BYTES / sizeof line);
    /* Nor does who ends it: within its patience. */
    kinf__access_log_free(log);
    close(reader);
}

static void what_a_full_disk_does_not_take_is_counted(void **state)
{
    struct kinf__access_log *log;
    uint64_t n_given = 0, n_dropped = 0;

    (void)state;
    assert_int_equal(kinf__access_log_new("/dev/full", &log, NULL), 0);
    for (; n_dropped < 10; n_given++) {
        assert_true(n_given < 10000);
        n_dropped += kinf__access_log_take(kinf_str_from("line\n"), log);
        nap();
    }
    assert_true(n_dropped <= n_given);
    kinf__access_log_free(log);
}

static void a_full_disk_tears_no_line(void **state)
{
    static const char line[] = "a line of the log\n";
    struct fixture *f = *state;
    struct kinf__access_log *log = open_log(f);
    struct rlimit before, limit;
    uint64_t n_dropped = 0;
    char *text, *rest;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 100; /* in the midst of a line */
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    while (n_dropped == 0) {
        n_dropped = kinf__access_log_take(kinf_str_from(line), log);
        nap();
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    kinf__access_log_take(kinf_str_from(line), log);
    kinf__access_log_free(log);
    text = rest = text_of(f->path);
    assert_true(strlen(text) > 100);
    for (char *one; (one = strsep(&rest, "\n")) != NULL && *one != '\0';)
        assert_string_equal(one, "a line of the log");
    free(text);
}

static void a_line_that_was_torn_goes_on_in_no_other_file(void **state)
{
    struct fixture *f = *state;
    struct kinf__access_log *log = open_log(f);
    struct rlimit before, limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 3;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(kinf__access_log_take(kinf_str_from("a line\n"), log), 0);
    while (kinf__access_log_take(kinf_str_from(""), log) == 0)
        nap();
    assert_int_equal(rename(f->path, f->old), 0);
    kinf__access_log_reopen(log);
    while (access(f->path, F_OK) != 0)
        nap();
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    kinf__access_log_take(kinf_str_from("after\n"), log);
    kinf__access_log_free(log);
    expect_text(f->old, "a l");
    expect_text(f->path, "after\n");
}

#define N_THREADS 4
#define N_LINES   500

static void *take_many(void *ctx)
{
    for (int i = 0; i < N_LINES; i++)
        assert_int_equal(kinf__access_log_take(kinf_str_from("{\"a\":\"line\"}\n"), ctx), 0);
    return NULL;
}

static void lines_of_threads_stay_whole(void **state)
{
    struct fixture *f = *state;
    struct kinf__access_log *log = open_log(f);
    pthread_t threads[N_THREADS];
    size_t n = 0;
    char *text, *rest;

    for (size_t i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_many, log), 0);
    kinf__access_log_reopen(log);
    for (size_t i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    kinf__access_log_free(log);
    text = rest = text_of(f->path);
    for (char *line; (line = strsep(&rest, "\n")) != NULL && *line != '\0'; n++)
        assert_string_equal(line, "{\"a\":\"line\"}");
    free(text);
    assert_int_equal(n, N_THREADS * N_LINES);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lines_are_appended_in_their_order),
        TEST(a_file_that_cannot_be_opened_is_told),
        TEST(a_renamed_file_is_left_when_it_is_asked_for),
        TEST(who_has_a_line_never_waits_and_what_does_not_fit_is_dropped_whole),
        TEST(what_a_full_disk_does_not_take_is_counted),
        TEST(a_full_disk_tears_no_line),
        TEST(a_line_that_was_torn_goes_on_in_no_other_file),
        TEST(lines_of_threads_stay_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
