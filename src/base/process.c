/*
 * The system's part of running a program. Neighbours: who starts one watches it by a pidfd, ends its
 * group and waits for it.
 */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <unistd.h>

#define FIRST_INHERITED 3

static rlim_t kept_files = RLIM_INFINITY; /* constant once there are threads */

void kinf__process_keep_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        kept_files = limit.rlim_cur;
}

int kinf__process_pipe(int fds[2], int ours)
{
    int low[2];

    if (pipe2(low, O_CLOEXEC) < 0)
        return errno;
    fds[0] = fcntl(low[0], F_DUPFD_CLOEXEC, FIRST_INHERITED);
    fds[1] = fcntl(low[1], F_DUPFD_CLOEXEC, FIRST_INHERITED);
    close(low[0]);
    close(low[1]);
    if (fds[0] < 0 || fds[1] < 0 || fcntl(fds[ours], F_SETFL, O_NONBLOCK) < 0)
        return errno;
    return 0;
}

/* Our threads block every signal, and a program may ignore some; the child shall do neither. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    int failed;

    sigemptyset(&none);
    sigfillset(&all);
    failed = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                      POSIX_SPAWN_SETSIGDEF);
    if (failed == 0)
        failed = posix_spawnattr_setpgroup(attributes, 0);
    if (failed == 0)
        failed = posix_spawnattr_setsigmask(attributes, &none);
    return failed != 0 ? failed : posix_spawnattr_setsigdefault(attributes, &all);
}

/* Whatever else is open here, also without O_CLOEXEC by other people's code, stays here. */
static int set_descriptors(posix_spawn_file_actions_t *actions, const int fds[3])
{
    int failed = fds[0] < 0 ? posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0)
                            : posix_spawn_file_actions_adddup2(actions, fds[0], 0);

    for (int i = 1; failed == 0 && i < FIRST_INHERITED; i++)
        failed = posix_spawn_file_actions_adddup2(actions, fds[i], i);
    return failed != 0 ? failed
                       : posix_spawn_file_actions_addclosefrom_np(actions, FIRST_INHERITED);
}

/* posix_spawn() has no attribute for it, and lowering ours meanwhile would fail other threads. */
static void limit_files(pid_t pid)
{
    struct rlimit limit;

    if (prlimit(pid, RLIMIT_NOFILE, NULL, &limit) == 0 && limit.rlim_cur > kept_files) {
        limit.rlim_cur = kept_files;
        (void)prlimit(pid, RLIMIT_NOFILE, &limit, NULL);
    }
}

int kinf__process_start(char *const *args, char *const *env, const int fds[3], pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);

    if (failed != 0)
        return failed;
    failed = posix_spawnattr_init(&attributes);
    if (failed == 0) {
        failed = set_attributes(&attributes);
        if (failed == 0)
            failed = set_descriptors(&actions, fds);
        if (failed == 0)
            failed = posix_spawnp(ret_pid, args[0], &actions, &attributes, args, env);
        if (failed == 0)
            limit_files(*ret_pid);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}
