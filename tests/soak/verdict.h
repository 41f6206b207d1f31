/*
 * What is not as promised. Each is a line of JSON on standard output when it is found, and counted.
 *
 * Threads: any.
 */
#ifndef SOAK_VERDICT_H
#define SOAK_VERDICT_H

#include <stdint.h>

/* `promise`: a word for which of the promises. */
void verdict_diverges(const char *promise, const char *form, ...)
    __attribute__((format(printf, 2, 3)));
uint64_t verdict_count(void);

/* Writes a line to standard output, whole. */
void verdict_say(const char *form, ...) __attribute__((format(printf, 1, 2)));

#endif
