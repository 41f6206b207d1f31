/*
 * The base: errors, buffers, lists, the hash map, locks, clocks, wakers, log levels.
 */
#include "base/buffer.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hmap.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/rfc3339.h"
#include "base/sort.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/test.h"

static void an_error_is_written_once_and_gains_context(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    assert_int_equal(kinf__error_set(&err, KINF_ERR_PARSE, "line %d", 7), KINF_ERR_PARSE);
    kinf__error_prefix(&err, "file %s", "a.yaml");
    assert_string_equal(err.message, "file a.yaml: line 7");
    assert_int_equal(err.code, KINF_ERR_PARSE);
    assert_int_equal(kinf__error_set(NULL, KINF_ERR_PARSE, "nobody listens"), KINF_ERR_PARSE);
}

static void a_long_error_is_cut_not_overrun(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    char text[2 * KINF_ERROR_MESSAGE_SIZE];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    kinf__error_set_errno(&err, KINF_ERR_SYSTEM, ENOENT, "%s", text);
    assert_int_equal(strlen(err.message), KINF_ERROR_MESSAGE_SIZE - 1);
    kinf__error_prefix(&err, "%s", text);
    assert_int_equal(strlen(err.message), KINF_ERROR_MESSAGE_SIZE - 1);
}

static void a_system_error_names_its_cause(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    kinf__error_set_errno(&err, KINF_ERR_CONFIG, ENOENT, "cannot open x");
    assert_string_equal(err.message, "cannot open x: No such file or directory");
    assert_int_equal(err.sys_errno, ENOENT);
}

static void a_buffer_grows_and_consumes(void **state)
{
    KINF__AUTO_BUFFER buffer = KINF__BUFFER_INIT;

    (void)state;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(kinf__buffer_printf(&buffer, "%03d,", i), 0);
    assert_int_equal(buffer.len, 4000);
    kinf__buffer_consume(&buffer, 3996);
    assert_string_equal(kinf__buffer_cstr(&buffer), "999,");
    assert_int_equal(kinf__buffer_reserve(&buffer, SIZE_MAX / 2), KINF_ERR_NO_MEMORY);
    assert_string_equal(kinf__buffer_cstr(&buffer), "999,");
}

struct numbered {
    struct kinf__list in_list;
    struct kinf__hmap_node in_map;
    int number;
};

static void a_list_keeps_order_and_allows_removal_while_walking(void **state)
{
    struct kinf__list list;
    struct numbered items[10];
    int expected = 0;

    (void)state;
    kinf__list_init(&list);
    for (int i = 0; i < 10; i++) {
        items[i].number = i;
        kinf__list_push_back(&list, &items[i].in_list);
    }
    KINF__LIST_FOR_EACH_SAFE (node, &list) {
        if (KINF__LIST_ENTRY(node, struct numbered, in_list)->number % 2 != 0)
            kinf__list_remove(node);
    }
    KINF__LIST_FOR_EACH (node, &list) {
        assert_int_equal(KINF__LIST_ENTRY(node, struct numbered, in_list)->number, expected);
        expected += 2;
    }
    assert_int_equal(expected, 10);
}

static void a_map_finds_what_was_put_in(void **state)
{
    enum { n = 5000 };
    struct numbered *items = calloc(n, sizeof *items);
    struct kinf__hmap map = KINF__HMAP_INIT;

    (void)state;
    assert_non_null(items);
    for (int i = 0; i < n; i++) {
        items[i].number = i;
        assert_int_equal(kinf__hmap_insert(&map, &items[i].in_map,
                                           kinf__hash((struct kinf_str){ (char *)&items[i].number,
                                                                         sizeof(int) })),
                         0);
    }
    for (int i = 0; i < n; i += 3)
        kinf__hmap_remove(&map, &items[i].in_map);
    for (int i = 0; i < n; i++) {
        struct kinf__hmap_node *node =
            kinf__hmap_first_with_hash(&map, kinf__hash((struct kinf_str){ (char *)&i, sizeof i }));

        while (node != NULL && KINF__CONTAINER_OF(node, struct numbered, in_map)->number != i)
            node = kinf__hmap_next_with_hash(node);
        assert_int_equal(node != NULL, i % 3 != 0);
    }
    kinf__hmap_release(&map);
    free(items);
}

static void hashes_depend_on_every_byte(void **state)
{
    char text[20] = "abcdefghijklmnopqrs";
    uint64_t whole = kinf__hash((struct kinf_str){ text, 19 });

    (void)state;
    for (size_t i = 0; i < 19; i++) {
        text[i] ^= 1;
        assert_true(kinf__hash((struct kinf_str){ text, 19 }) != whole);
        text[i] ^= 1;
        assert_true(kinf__hash((struct kinf_str){ text, i }) != whole);
    }
    assert_true(kinf__hash((struct kinf_str){ text, 19 }) == whole);
}

static void times_do_not_overflow(void **state)
{
    (void)state;
    assert_true(kinf__clock_add_ms(10, 5) == 15);
    assert_true(kinf__clock_add_ms(10, KINF__NEVER_MS) == KINF__NEVER_MS);
    assert_true(kinf__clock_add_ms(KINF__NEVER_MS, 5) == KINF__NEVER_MS);
    assert_true(kinf__clock_add_ms(KINF__NEVER_MS - 3, 5) == KINF__NEVER_MS);
    assert_true(kinf__clock_left_ms(10, 15) == 5);
    assert_true(kinf__clock_left_ms(15, 15) == 0 && kinf__clock_left_ms(20, 15) == 0);
    assert_true(kinf__clock_left_ms(10, KINF__NEVER_MS) == KINF__NEVER_MS);
}

static void durations_are_sums_of_numbers_with_units(void **state)
{
    static const struct {
        const char *text;
        int64_t ms; /* negative: no duration */
    } rows[] = {
        { "0", 0 },
        { "500ms", 500 },
        { "30s", 30000 },
        { "1h30m", 5400000 },
        { "1m1s1ms", 61001 },
        { "", -1 },
        { "5", -1 },
        { "s", -1 },
        { "-5s", -1 },
        { "5 s", -1 },
        { "5d", -1 },
        { "1.5s", -1 },
        { "5s ", -1 },
        { "9000h", -1 },
        { "99999999999999999999h", -1 },
        { "8000h", 28800000000 },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        int64_t ms = -1;

        assert_int_equal(kinf__duration_parse(rows[i].text, &ms), rows[i].ms >= 0);
        assert_true(ms == rows[i].ms);
    }
}

static void times_are_written_with_four_digits_of_a_year(void **state)
{
    static const struct {
        int64_t wall_s;
        int micros, n_decimals;
        const char *text;
    } rows[] = {
        { 0, 0, 0, "1970-01-01T00:00:00Z" },
        { 951825600, 123456, 0, "2000-02-29T12:00:00Z" },
        { 951825600, 123456, 3, "2000-02-29T12:00:00.123Z" },
        { 951825600, 456, 6, "2000-02-29T12:00:00.000456Z" },
        { -62135596800, 0, 0, "0001-01-01T00:00:00Z" },
        { 253402300799, 999999, 6, "9999-12-31T23:59:59.999999Z" },
        { 253402300800, 0, 0, "9999-12-31T23:59:59Z" },
        { INT64_MAX, 0, 0, "9999-12-31T23:59:59Z" },
        { INT64_MIN, 0, 0, "0000-01-01T00:00:00Z" },
    };
    char text[KINF__RFC3339_SIZE];

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        kinf__rfc3339_write(rows[i].wall_s, rows[i].micros, rows[i].n_decimals, text);
        assert_string_equal(text, rows[i].text);
    }
}

static void times_are_whole_and_say_their_zone(void **state)
{
    static const struct {
        const char *text;
        int64_t wall_s; /* -1: no time */
    } rows[] = {
        { "1970-01-01T00:00:00Z", 0 },
        { "2000-02-29T12:00:00z", 951825600 },
        { "2000-02-29t12:00:00.123456789Z", 951825600 },
        { "2000-02-29T12:00:00+02:30", 951816600 },
        { "2000-02-29T12:00:00.5-02:30", 951834600 },
        { "2024-12-31T23:59:60Z", 1735689600 },
        { "0001-01-01T00:00:00Z", -62135596800 },
        { "9999-12-31T23:59:59Z", 253402300799 },
        { "2000-02-30T12:00:00Z", -1 },
        { "1900-02-29T12:00:00Z", -1 },
        { "2001-04-31T12:00:00Z", -1 },
        { "2000-12-32T12:00:00Z", -1 },
        { "2000-13-01T12:00:00Z", -1 },
        { "2000-00-01T12:00:00Z", -1 },
        { "2000-01-00T12:00:00Z", -1 },
        { "2000-01-01T24:00:00Z", -1 },
        { "2000-01-01T12:60:00Z", -1 },
        { "2000-01-01T12:00:61Z", -1 },
        { "2000-01-01 12:00:00Z", -1 },
        { "2000-01-01T12:00:00+24:00", -1 },
        { "2000-01-01T12:00:00+00:60", -1 },
        { "2000-01-01T12:00:00+0000", -1 },
        { "2000-01-01T12:00:00x", -1 },
        { "+200-01-01T12:00:00Z", -1 },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        size_t whole = strlen(rows[i].text);

        for (size_t len = 0; len <= whole; len++) {
            char *exact = malloc(len != 0 ? len : 1);
            int64_t wall_s = -1;
            bool is_time;

            memcpy(exact, rows[i].text, len);
            is_time = kinf__rfc3339_parse((struct kinf_str){ exact, len }, &wall_s);
            assert_int_equal(is_time, len == whole && rows[i].wall_s != -1);
            assert_true(wall_s == (is_time ? rows[i].wall_s : -1));
            free(exact);
        }
    }
}

static void a_waker_stays_set_until_cleared(void **state)
{
    struct kinf__waker waker;

    (void)state;
    assert_int_equal(kinf__waker_init(&waker, NULL), 0);
    assert_false(kinf__waker_wait(&waker, 1));
    kinf__waker_set(&waker);
    kinf__waker_set(&waker);
    assert_true(kinf__waker_wait(&waker, KINF__NEVER_MS));
    assert_true(kinf__waker_is_set(&waker));
    kinf__waker_clear(&waker);
    assert_false(kinf__waker_is_set(&waker));
    kinf__waker_release(&waker);
}

/* Whether a process that misuses these locks is ended by it; true in release builds, which do not look. */
static bool aborts(void (*misuse)(struct kinf__mutex *log, struct kinf__mutex *fifo))
{
    struct kinf__mutex log = KINF__MUTEX_INIT(KINF__RANK_LOG);
    struct kinf__mutex fifo = KINF__MUTEX_INIT(KINF__RANK_FIFO);
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        (void)!freopen("/dev/null", "w", stderr);
        signal(SIGABRT, SIG_DFL);
        misuse(&log, &fifo);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
#ifdef NDEBUG
    return true;
#else
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
#endif
}

static void lock_downwards(struct kinf__mutex *log, struct kinf__mutex *fifo) KINF__NO_TSA
{
    kinf__mutex_lock(log);
    kinf__mutex_lock(fifo);
}

static void lock_upwards(struct kinf__mutex *log, struct kinf__mutex *fifo) KINF__NO_TSA
{
    kinf__mutex_lock(fifo);
    kinf__mutex_lock(log);
    kinf__mutex_unlock(fifo);
    kinf__mutex_unlock(log);
}

static void unlock_another(struct kinf__mutex *log, struct kinf__mutex *fifo) KINF__NO_TSA
{
    kinf__mutex_lock(fifo);
    kinf__mutex_unlock(log);
}

static void wait_unlocked(struct kinf__mutex *log, struct kinf__mutex *fifo) KINF__NO_TSA
{
    struct kinf__cond cond;

    (void)log;
    kinf__cond_init(&cond);
    kinf__cond_wait_until(&cond, fifo, 0);
}

/* KINF__RANK_LOG lies above KINF__RANK_FIFO: taking the FIFO's lock under it must abort. */
static void a_broken_lock_order_aborts(void **state)
{
    (void)state;
    assert_true(aborts(lock_downwards));
#ifndef NDEBUG
    assert_false(aborts(lock_upwards));
#endif
}

static void giving_up_a_lock_that_is_not_held_aborts(void **state)
{
    (void)state;
    assert_true(aborts(unlock_another));
    assert_true(aborts(wait_unlocked));
}

static char logged[256];

static void keep_line(enum kinf_log_level level, const char *module, const char *line, void *ctx)
{
    (void)ctx;
    snprintf(logged, sizeof logged, "%s %s %s", kinf_log_level_to_string(level), module, line);
}

static void log_levels_are_set_by_module(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    kinf_log_set_callback(keep_line, NULL);
    assert_int_equal(kinf_log_set_levels("all=warn,reflector=debug", &err), 0);
    KINF__LOG(KINF__LOG_REFLECTOR, KINF_LOG_DEBUG, "list rv=%d", 3);
    assert_string_equal(logged, "debug reflector list rv=3");
    KINF__LOG(KINF__LOG_REST, KINF_LOG_INFO, "not written");
    assert_string_equal(logged, "debug reflector list rv=3");
    assert_int_equal(kinf_log_set_levels("rest=debug,nonsense=info", &err), KINF_ERR_INVALID);
    assert_false(kinf__log_enabled(KINF__LOG_REST, KINF_LOG_DEBUG));
    assert_int_equal(kinf_log_set_levels("loud", &err), KINF_ERR_INVALID);
    assert_int_equal(kinf_log_set_levels("info", &err), 0);
    kinf_log_set_callback(NULL, NULL);
}

static void standard_error_has_time_level_and_module(void **state)
{
    char line[256] = "";
    int kept = dup(STDERR_FILENO), ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    kinf_log_to_stderr();
    KINF__LOG(KINF__LOG_REST, KINF_LOG_WARN, "refused n=%d", 1);
    kinf_log_set_callback(NULL, NULL);
    dup2(kept, STDERR_FILENO);
    assert_true(read(ends[0], line, sizeof line - 1) > 0);
    /* 2026-01-31T12:00:00.000Z */
    assert_string_equal(line + 24, " warn rest: refused n=1\n");
    assert_int_equal(line[10], 'T');
    close(kept);
    close(ends[0]);
    close(ends[1]);
}

static void fill(int fd)
{
    static const char bytes[PIPE_BUF];

    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    while (write(fd, bytes, sizeof bytes) > 0)
        ;
    assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
}

/* What is in the pipe is more than a read takes. */
static void empty(int fd, int n_bytes)
{
    char bytes[PIPE_BUF];

    while (n_bytes > 0)
        n_bytes -= (int)read(fd, bytes, sizeof bytes);
    assert_int_equal(n_bytes, 0);
}

static void a_log_that_nobody_reads_holds_up_nobody(void **state)
{
    char line[256] = "";
    int kept = dup(STDERR_FILENO), ends[2], n_bytes;
    int64_t began_ms;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_true(fcntl(ends[1], F_SETPIPE_SZ, PIPE_BUF) > 0);
    fill(ends[1]);
    assert_int_equal(ioctl(ends[0], FIONREAD, &n_bytes), 0);
    dup2(ends[1], STDERR_FILENO);
    kinf_log_to_stderr();
    began_ms = kinf__clock_now_ms();
    for (int i = 0; i < 100; i++)
        KINF__LOG(KINF__LOG_REST, KINF_LOG_WARN, "refused n=%d", i);
    /* The first is waited for. */
    assert_in_range(kinf__clock_now_ms() - began_ms, 1000, 10000);
    empty(ends[0], n_bytes);
    KINF__LOG(KINF__LOG_REST, KINF_LOG_WARN, "refused n=%d", 100);
    assert_true(read(ends[0], line, sizeof line - 1) > 0);
    assert_string_equal(line + 24, " warn rest: refused n=100 lines_lost=100\n");
    KINF__LOG(KINF__LOG_REST, KINF_LOG_WARN, "last");
    memset(line, 0, sizeof line);
    assert_true(read(ends[0], line, sizeof line - 1) > 0);
    assert_string_equal(line + 24, " warn rest: last\n");
    kinf_log_set_callback(NULL, NULL);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(ends[0]);
    close(ends[1]);
}

static void a_log_line_is_one_line_whatever_names_hold(void **state)
{
    (void)state;
    kinf_log_set_callback(keep_line, NULL);
    KINF__LOG(KINF__LOG_REFLECTOR, KINF_LOG_WARN, "rejected key=%s", "a\nerror forged: \x1b[31m");
    assert_string_equal(logged, "warn reflector rejected key=a error forged:  [31m");
    kinf_log_set_callback(NULL, NULL);
}

static void a_quoted_text_ends_where_it_ends(void **state)
{
    char small[8];

    (void)state;
    kinf_log_set_callback(keep_line, NULL);
    KINF__LOG(KINF__LOG_REST, KINF_LOG_WARN, "failed error=%s n=%d",
              KINF__QUOTED("no kind \"Pod\" in \\x level=error"), 7);
    assert_string_equal(logged,
                        "warn rest failed error=\"no kind \\\"Pod\\\" in \\\\x level=error\" n=7");
    kinf_log_set_callback(NULL, NULL);
    assert_string_equal(kinf__log_quote("", small, sizeof small), "\"\"");
    assert_string_equal(kinf__log_quote("abcdefgh", small, sizeof small), "\"abcd\"");
    assert_string_equal(kinf__log_quote("abc\"defgh", small, sizeof small), "\"abc\\\"\"");
}

/* A limit decides it, and would decide otherwise the second time. */
static void the_level_of_a_line_is_asked_for_once(void **state)
{
    struct kinf__log_limit limit = { .interval_ms = 1000 };
    uint64_t suppressed;

    (void)state;
    kinf_log_set_callback(keep_line, NULL);
    KINF__LOG(KINF__LOG_REST,
              kinf__log_limit_pass(&limit, 5000, &suppressed) ? KINF_LOG_WARN : KINF_LOG_DEBUG,
              "once");
    assert_string_equal(logged, "warn rest once");
    kinf_log_set_callback(NULL, NULL);
}

static void a_log_limit_counts_what_it_holds_back(void **state)
{
    struct kinf__log_limit limit = { .interval_ms = 1000 };
    uint64_t suppressed = 99;

    (void)state;
    assert_true(kinf__log_limit_pass(&limit, 5000, &suppressed));
    assert_int_equal(suppressed, 0);
    assert_false(kinf__log_limit_pass(&limit, 5500, &suppressed));
    assert_false(kinf__log_limit_pass(&limit, 5999, &suppressed));
    assert_true(kinf__log_limit_pass(&limit, 6000, &suppressed));
    assert_int_equal(suppressed, 2);
}

/* --- sorting --- */

#define N_SORTED_MOST 30000

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static void sorting_does_as_qsort_does(void **state)
{
    static const size_t lens[] = { 0, 1, 2, 4095, 4096, 4097, 8192, 12289, N_SORTED_MOST };
    struct test_random random = test_random_init(__func__);
    uint32_t *items = calloc(N_SORTED_MOST, sizeof *items);
    uint32_t *expected = calloc(N_SORTED_MOST, sizeof *expected);

    (void)state;
    assert_true(items != NULL && expected != NULL);
    for (size_t i = 0; i < KINF__ARRAY_LEN(lens); i++) {
        for (size_t k = 0; k < lens[i]; k++)
            items[k] = expected[k] = (uint32_t)test_random_below(&random, 2 * lens[i]);
        assert_int_equal(kinf__sort(items, lens[i], sizeof *items, compare_numbers, NULL), 0);
        qsort(expected, lens[i], sizeof *expected, compare_numbers);
        assert_memory_equal(items, expected, lens[i] * sizeof *items);
    }
    free(expected);
    free(items);
}

static struct kinf__stop sort_stop;
static size_t n_compared, n_to_compare;

static int compare_and_stop(const void *a, const void *b)
{
    if (++n_compared == n_to_compare)
        kinf__stop_set(&sort_stop);
    return compare_numbers(a, b);
}

static int sort_until(uint32_t *items, size_t n_until)
{
    sort_stop = (struct kinf__stop){ false };
    n_compared = 0;
    n_to_compare = n_until;
    for (uint32_t i = 0; i < N_SORTED_MOST; i++)
        items[i] = (uint32_t)((uint64_t)i * 7919 % N_SORTED_MOST);
    return kinf__sort(items, N_SORTED_MOST, sizeof *items, compare_and_stop, &sort_stop);
}

/* In its runs, and in each pass that merges them. */
static void sorting_ends_when_it_is_stopped_and_loses_nothing(void **state)
{
    uint32_t *items = calloc(N_SORTED_MOST, sizeof *items);
    size_t n_in_all;

    (void)state;
    assert_non_null(items);
    assert_int_equal(sort_until(items, 0), 0);
    n_in_all = n_compared;
    for (size_t n = N_SORTED_MOST; n < n_in_all; n += N_SORTED_MOST / 3) {
        assert_int_equal(sort_until(items, n), KINF_ERR_STOPPED);
        assert_in_range(n_compared, n, n + 2 * N_SORTED_MOST);
        qsort(items, N_SORTED_MOST, sizeof *items, compare_numbers);
        for (uint32_t i = 0; i < N_SORTED_MOST; i++)
            assert_int_equal(items[i], i);
    }
    free(items);
}

/* --- memory --- */

/* How many of the pages that pieces of 8 kB lie in whole are there before somebody writes to them. */
static void *count_resident(void *ctx)
{
    const bool *is_touched = ctx;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), n_resident = 0;
    static char *pieces[128];
    struct kinf__touched touched = { 0 };

    for (size_t i = 0; i < KINF__ARRAY_LEN(pieces); i++) {
        unsigned char is_resident = 0;

        if (*is_touched)
            kinf__memory_touch_ahead(&touched, 8192);
        pieces[i] = malloc(8192);
        assert_non_null(pieces[i]);
        mincore(pieces[i] + (page - (uintptr_t)pieces[i] % page), 1, &is_resident);
        n_resident += is_resident & 1;
        memset(pieces[i], 1, 8192);
    }
    for (size_t i = 0; i < KINF__ARRAY_LEN(pieces); i++)
        free(pieces[i]);
    return (void *)n_resident;
}

/* On a thread that has an arena of its own. */
static uintptr_t resident_pages(bool is_touched)
{
    pthread_t thread;
    void *n_resident;

    assert_int_equal(kinf__thread_start(&thread, "pages", count_resident, &is_touched, NULL), 0);
    pthread_join(thread, &n_resident);
    return (uintptr_t)n_resident;
}

/* The sanitizers have allocators of their own; there it does no harm. */
static void pages_of_many_allocations_are_touched_at_once(void **state)
{
    uintptr_t n_resident = resident_pages(true);

    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void)n_resident;
#else
    assert_in_range(n_resident, 110, 128); /* Linux 5.14 */
#endif
}

static void what_is_no_plain_file_is_not_replaced(void **state)
{
    char folder[] = "/tmp/kinformer-test-XXXXXX", pipe_file[64], file[64], link_file[64];
    struct kinf_error err = KINF_ERROR_INIT;
    struct stat found;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(pipe_file, sizeof pipe_file, "%s/pipe", folder);
    snprintf(file, sizeof file, "%s/file", folder);
    snprintf(link_file, sizeof link_file, "%s/link", folder);
    assert_int_equal(mkfifo(pipe_file, 0600), 0);
    assert_int_equal(symlink(pipe_file, link_file), 0);
    assert_int_equal(kinf__file_replace(pipe_file, KINF_STR("x"), &err), KINF_ERR_SYSTEM);
    assert_non_null(strstr(err.message, "/pipe: it is no plain file"));
    assert_int_equal(kinf__file_replace(link_file, KINF_STR("x"), NULL), KINF_ERR_SYSTEM);
    assert_int_equal(kinf__file_replace(folder, KINF_STR("x"), NULL), KINF_ERR_SYSTEM);
    assert_int_equal(lstat(pipe_file, &found), 0);
    assert_true(S_ISFIFO(found.st_mode));
    assert_int_equal(lstat(link_file, &found), 0);
    assert_true(S_ISLNK(found.st_mode));
    assert_int_equal(kinf__file_replace(file, KINF_STR("x"), NULL), 0);
    assert_int_equal(kinf__file_replace(file, KINF_STR("yz"), NULL), 0);
    assert_int_equal(stat(file, &found), 0);
    assert_int_equal(found.st_size, 2);
    assert_int_equal(found.st_mode & 0777, 0600);
    unlink(file);
    unlink(link_file);
    unlink(pipe_file);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_is_written_once_and_gains_context),
        cmocka_unit_test(a_long_error_is_cut_not_overrun),
        cmocka_unit_test(a_system_error_names_its_cause),
        cmocka_unit_test(a_buffer_grows_and_consumes),
        cmocka_unit_test(a_list_keeps_order_and_allows_removal_while_walking),
        cmocka_unit_test(a_map_finds_what_was_put_in),
        cmocka_unit_test(hashes_depend_on_every_byte),
        cmocka_unit_test(times_do_not_overflow),
        cmocka_unit_test(durations_are_sums_of_numbers_with_units),
        cmocka_unit_test(times_are_written_with_four_digits_of_a_year),
        cmocka_unit_test(times_are_whole_and_say_their_zone),
        cmocka_unit_test(a_waker_stays_set_until_cleared),
        cmocka_unit_test(a_broken_lock_order_aborts),
        cmocka_unit_test(giving_up_a_lock_that_is_not_held_aborts),
        cmocka_unit_test(log_levels_are_set_by_module),
        cmocka_unit_test(standard_error_has_time_level_and_module),
        cmocka_unit_test(a_log_that_nobody_reads_holds_up_nobody),
        cmocka_unit_test(a_log_line_is_one_line_whatever_names_hold),
        cmocka_unit_test(a_quoted_text_ends_where_it_ends),
        cmocka_unit_test(the_level_of_a_line_is_asked_for_once),
        cmocka_unit_test(a_log_limit_counts_what_it_holds_back),
        cmocka_unit_test(sorting_does_as_qsort_does),
        cmocka_unit_test(sorting_ends_when_it_is_stopped_and_loses_nothing),
        cmocka_unit_test(pages_of_many_allocations_are_touched_at_once),
        cmocka_unit_test(what_is_no_plain_file_is_not_replaced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
