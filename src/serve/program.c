/*
 * Descriptors, memory, logging and the status of the end. Neighbours: the main() of each program.
 */
#include "serve/program.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include <kinformer/log.h>

#include "base/error.h"
#include "base/thread.h"

/* Of a thread. The deepest that was measured, with AddressSanitizer: 44 kB of kinformerd's, 570 kB of
 * kinformer-sim's, while it patches JSON as deep as it takes. What is smaller than 2 MiB is never
 * made of huge pages. */
#define STACK_BYTES ((size_t)1 << 20)

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* The next descriptor would take the number of a closed one, and events would be written into a
 * socket. What is opened in their place refuses to be read or written, as a closed one does. */
static void fill_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
}

/* An informer has four descriptors, a client one; the soft limit is low for the sake of select(). */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

void kinf__program_begin(void)
{
    fill_standard_descriptors();
    raise_descriptor_limit();
    /* An arena of a thread grows by a system call for each object, the first one grows in steps; but two
     * threads that load one type would wait for each other. */
    mallopt(M_ARENA_MAX, 2);
    kinf__thread_set_stack(STACK_BYTES);
    kinf_log_to_stderr();
}

static bool is_usage(int code)
{
    return code == KINF_ERR_INVALID || code == KINF_ERR_CONFIG || code == KINF_ERR_PARSE ||
           code == KINF_ERR_UNSUPPORTED;
}

int kinf__program_end(const char *name, int failed, struct kinf_error *err)
{
    if (failed >= 0 && fflush(stdout) == 0)
        return EXIT_DONE;
    if (failed >= 0)
        kinf__error_set_errno(err, KINF_ERR_SYSTEM, errno, "cannot write to standard output");
    fprintf(stderr, "%s: %s\n", name, err->message);
    return is_usage(err->code) ? EXIT_USAGE : EXIT_FAILED;
}
