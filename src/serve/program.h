/*
 * What a program that serves does first and last.
 *
 * Threads: one thread, before and after all others.
 */
#ifndef KINF_SERVE_PROGRAM_H
#define KINF_SERVE_PROGRAM_H

#include <kinformer/error.h>

/* Occupies standard descriptors that are closed, raises the limit of descriptors, lets all
 * threads share one arena and have small stacks, logs to standard error. */
void kinf__program_begin(void);

/* What main() returns: 0; 2: what it was told to do makes no sense; 1: it failed. Of the latter two,
 * and of output that cannot be written, it says why, as `name: message`. */
int kinf__program_end(const char *name, int failed, struct kinf_error *err);

#endif
