/*
 * What a program that serves does first.
 *
 * Threads: one thread, before any other.
 */
#ifndef KINF_SERVE_PROGRAM_H
#define KINF_SERVE_PROGRAM_H

/* Occupies standard descriptors that are closed, raises the limit of descriptors, lets all
 * threads share one arena and have small stacks, logs to standard error. */
void kinf__program_begin(void);

#endif
