/*
 * The process of the test has one thread, and starts the runs one after another. Neighbours:
 * allocation.c asks whether an allocation fails; pthread_create() is ours, so that threads of
 * libraries are met, too, and each knows from whom it is.
 */
#include "unit/sweep.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit/test.h"

#define LOOK_NS     1000000
#define PATIENCE_MS 60000
#define N_FRAMES    40
#define N_CALLERS   8 /* of which four are ours */
#define MAX_STACKS  10000
#define SAMPLE      16

/* --- what fails --- */

static _Thread_local bool is_swept;
static enum test_swept swept;
static size_t fails_at; /* 0: nothing does */
static bool shows_it;   /* where that is */

/* Shared with the process of the test. */
static struct count {
    _Atomic(size_t) n;
    bool has_stacks;             /* they are to be written down */
    uint64_t stacks[MAX_STACKS]; /* by what calls each came about */
} * count;

bool test_swept_set(bool is)
{
    bool was = is_swept;

    is_swept = is;
    return was;
}

bool test_swept_hit(void)
{
    return fails_at != 0 && atomic_load(&count->n) >= fails_at;
}

/* The sanitizers' has the names of static functions. */
void __sanitizer_print_stack_trace(void) __attribute__((weak));
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));
/* What _exit() would leave out of `make coverage`. */
void __gcov_dump(void) __attribute__((weak));

static void print_stack(void)
{
    void *frames[N_FRAMES];

    if (__sanitizer_print_stack_trace != NULL)
        __sanitizer_print_stack_trace();
    else
        backtrace_symbols_fd(frames, backtrace(frames, N_FRAMES), STDERR_FILENO);
}

static uint64_t stack_hash(void)
{
    void *frames[N_CALLERS];
    int n = backtrace(frames, N_CALLERS);
    uint64_t hash = 0;

    for (int i = 0; i < n; i++)
        hash = (hash ^ (uintptr_t)frames[i]) * 0x9e3779b97f4a7c15U;
    return hash;
}

bool test_swept_fails_now(enum test_swept what)
{
    size_t n;

    if (!is_swept || what != swept)
        return false;
    n = atomic_fetch_add(&count->n, 1);
    if (count->has_stacks && n < MAX_STACKS) {
        is_swept = false;
        count->stacks[n] = stack_hash();
        is_swept = true;
    }
    if (n + 1 != fails_at)
        return false;
    if (shows_it) {
        fprintf(stderr, "number %zu fails here:\n", fails_at);
        print_stack();
    }
    return true;
}

/* --- threads --- */

struct beginning {
    void *(*main)(void *);
    void *ctx;
    bool is_swept;
};

static void *begin_thread(void *ctx)
{
    struct beginning beginning = *(struct beginning *)ctx;
    sigset_t asked;

    free(ctx);
    sigemptyset(&asked);
    sigaddset(&asked, SIGUSR2);
    pthread_sigmask(SIG_UNBLOCK, &asked, NULL);
    is_swept = beginning.is_swept;
    return beginning.main(beginning.ctx);
}

/* That of the C library, or of the sanitizer; libraries call this one, too. */
__attribute__((visibility("default"))) int pthread_create(pthread_t *thread,
                                                          const pthread_attr_t *attributes,
                                                          void *(*main)(void *), void *ctx)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    struct beginning *beginning;
    bool is_ours = is_swept;
    int failed;

    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    if (count == NULL)
        return create(thread, attributes, main, ctx);
    if (test_swept_fails_now(TEST_SWEPT_THREADS))
        return EAGAIN;
    is_swept = false; /* of what follows nothing is the scenario's */
    beginning = malloc(sizeof *beginning);
    if (beginning == NULL)
        return EAGAIN;
    *beginning = (struct beginning){ main, ctx, is_ours };
    failed = create(thread, attributes, begin_thread, beginning);
    if (failed != 0)
        free(beginning);
    is_swept = is_ours;
    return failed;
}

/* --- a run --- */

void test_swept_fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    _exit(1);
}

bool test_swept_ok(int failed, const struct kinf_error *err, const char *file, int line)
{
    if (failed == 0)
        return true;
    if (!test_swept_hit())
        test_swept_fail(file, line, err->message);
    if (err->code != failed || err->message[0] == '\0')
        test_swept_fail(file, line, "an error without a code or a message");
    if (failed != KINF_ERR_NO_MEMORY &&
        (swept == TEST_SWEPT_ALLOCATIONS || failed != KINF_ERR_SYSTEM))
        test_swept_fail(file, line, err->message);
    return false;
}

static void on_asked(int signo)
{
    (void)signo;
    fprintf(stderr, "thread %ld:\n", (long)syscall(SYS_gettid));
    print_stack();
}

static int run(void (*scenario)(void))
{
    signal(SIGUSR2, on_asked);
    scenario();
    fails_at = 0;
    if (__lsan_do_recoverable_leak_check != NULL && __lsan_do_recoverable_leak_check() != 0)
        return 1;
    return 0;
}

/* --- all of them --- */

static void nap(long ns)
{
    const struct timespec pause = { 0, ns };

    nanosleep(&pause, NULL);
}

static void ask_for_stacks(pid_t process)
{
    char path[64];
    DIR *threads;

    snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    threads = opendir(path);
    for (struct dirent *entry; threads != NULL && (entry = readdir(threads)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        syscall(SYS_tgkill, process, atoi(entry->d_name), SIGUSR2);
        for (int i = 0; i < 20; i++)
            nap(LOOK_NS * 50);
    }
    if (threads != NULL)
        closedir(threads);
}

/* Whether it went well. */
static bool wait_for(pid_t process)
{
    int status = 0;

    for (int i = 0; i < PATIENCE_MS; i++) {
        if (waitpid(process, &status, WNOHANG) == process) {
            if (WIFSIGNALED(status))
                fprintf(stderr, "signal %d\n", WTERMSIG(status));
            return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        }
        nap(LOOK_NS);
    }
    fprintf(stderr, "it hangs\n");
    ask_for_stacks(process);
    kill(process, SIGKILL);
    waitpid(process, &status, 0);
    return false;
}

static bool try(void (*scenario)(void), size_t n)
{
    pid_t process;

    atomic_store(&count->n, 0);
    fails_at = n;
    fflush(NULL);
    process = fork();
    assert_true(process >= 0);
    if (process == 0) {
        int failed = run(scenario);

        if (__gcov_dump != NULL)
            __gcov_dump();
        _exit(failed);
    }
    fails_at = 0;
    return wait_for(process);
}

static void must_go_well(void (*scenario)(void), size_t n, const char *name)
{
    if (try(scenario, n))
        return;
    fprintf(stderr, "KINF_TEST_SWEEP=%zu of %s; once more:\n", n, name);
    shows_it = true;
    try(scenario, n);
    shows_it = false;
    fail_msg("with number %zu of %s failing", n, name);
}

/* What earlier sweeps of this program have met. */
static uint64_t met[MAX_STACKS];
static size_t n_met;

static bool has(const uint64_t *stacks, size_t n, uint64_t stack)
{
    for (size_t i = 0; i < n; i++) {
        if (stacks[i] == stack)
            return true;
    }
    return false;
}

static void note_met(size_t n)
{
    for (size_t i = 0; i < n && n_met < MAX_STACKS; i++) {
        if (!has(met, n_met, count->stacks[i]))
            met[n_met++] = count->stacks[i];
    }
}

/* Of those that came about by the same calls the first and the last. */
static bool is_picked(size_t i, size_t n)
{
    const char *wanted = getenv("KINF_TEST_SWEEP");
    uint64_t stack = count->stacks[i];

    if (swept == TEST_SWEPT_THREADS || (wanted != NULL && strcmp(wanted, "all") == 0))
        return true;
    return !has(met, n_met, stack) &&
           (!has(count->stacks, i, stack) || !has(count->stacks + i + 1, n - i - 1, stack));
}

static bool is_sampled(void)
{
    const char *mode = getenv("KINF_TEST_MODE");

    return swept == TEST_SWEPT_ALLOCATIONS && mode != NULL && strcmp(mode, "asan") != 0 &&
           strcmp(mode, "coverage") != 0;
}

static void sweep_all(void (*scenario)(void), const char *name)
{
    size_t n = atomic_load(&count->n), n_picked = 0, n_runs = 0, n_hits = 0;

    assert_true(n <= MAX_STACKS);
    for (size_t i = 0; i < n; i++) {
        if (!is_picked(i, n) || (is_sampled() && n_picked++ % SAMPLE != 0))
            continue;
        must_go_well(scenario, i + 1, name);
        n_runs++;
        n_hits += atomic_load(&count->n) > i;
    }
    note_met(n);
    printf("%zu of %s, %zu failed\n", n, name, n_hits);
    /* How often threads meet is not the same each time. */
    assert_true(n_hits >= n_runs * 9 / 10);
}

void test_sweep(enum test_swept what, void (*scenario)(void), size_t at_least)
{
    const char *name = what == TEST_SWEPT_THREADS ? "the threads" : "the allocations";
    const char *one = getenv("KINF_TEST_SWEEP");

    one = one != NULL && strcmp(one, "all") != 0 ? one : NULL;
    count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(count, MAP_FAILED);
    swept = what;
    shows_it = one != NULL;
    (void)stack_hash(); /* loads what it needs */
    count->has_stacks = true;
    must_go_well(scenario, one != NULL ? strtoul(one, NULL, 10) : 0, name);
    count->has_stacks = false;
    assert_true(one != NULL || atomic_load(&count->n) >= at_least);
    if (one == NULL)
        sweep_all(scenario, name);
    munmap(count, sizeof *count);
    count = NULL;
}
