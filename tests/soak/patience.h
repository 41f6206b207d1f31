/*
 * What a program does whose server is away, or refuses, when it starts: it tries again, and ends when that
 * was so for ten seconds on end. Who is refused while rights or versions are withdrawn is started again
 * (parts.py), so that its last words must be of that, and not of a server that is away at that moment.
 *
 * Threads: one per object.
 */
#ifndef SOAK_PATIENCE_H
#define SOAK_PATIENCE_H

#include <kinformer/kinformer.h>

#include <stdbool.h>

/* 0 is the beginning. */
struct patience {
    unsigned n_tries; /* in a row that failed for the same one of both reasons */
    bool was_refused;
};

/* Behind a try that failed: waits a little; false: that was the last one. */
bool patience_wait(struct patience *patience, const struct kinf_error *err);

#endif
