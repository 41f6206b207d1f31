/*
 * Starting another program: it gets three descriptors and nothing else of ours, a process group of
 * its own, so that it can be ended with all that it started, and the signals of a fresh program.
 *
 * Threads: any thread. Made by posix_spawn(), which shares no lock or allocation with others.
 */
#ifndef KINF_BASE_PROCESS_H
#define KINF_BASE_PROCESS_H

#include <sys/types.h>

#include "base/compiler.h"

/* Programs get the soft limit of descriptors that we have now, right behind their start, however far ours
 * is raised after this: above 1,023 select() breaks, and some close all that may be open, one by one.
 * Before any other thread. */
void kinf__process_keep_file_limit(void);

/* A pipe that programs do not inherit, above the descriptors that a child gets, so that none is
 * closed when it is put in place. `ours` (0 reads, 1 writes) is the end that does not block. Returns 0
 * or an errno; what is open then the caller closes (the other is -1). */
KINF_MUST_CHECK int kinf__process_pipe(int fds[2], int ours);

/* `fds` are its standard input (-1: empty), output and error. `args[0]` is a path, or a name for
 * PATH. Its process group has the number of the process. Returns 0 or an errno. */
KINF_MUST_CHECK int kinf__process_start(char *const *args, char *const *env, const int fds[3],
                                        pid_t *ret_pid);

#endif
