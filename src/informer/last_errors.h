/*
 * What went wrong lately, for a person who comes when it is over: the last few messages, each once
 * with how often it came.
 *
 * Threads: under its owner's lock. Nothing here reads a clock.
 */
#ifndef KINF_INFORMER_LAST_ERRORS_H
#define KINF_INFORMER_LAST_ERRORS_H

#include <kinformer/error.h>

enum { KINF__LAST_ERRORS = 4 };

struct kinf__last_error {
    int64_t first_ms;
    int64_t last_ms;
    uint64_t n; /* how often it came since the first time */
    char message[KINF_ERROR_MESSAGE_SIZE];
};

/* All zero is none. */
struct kinf__last_errors {
    struct kinf__last_error items[KINF__LAST_ERRORS]; /* the one that came last is the first */
    size_t n_items;
};

/* The oldest makes room. */
void kinf__last_errors_note(struct kinf__last_errors *errors, const char *message, int64_t now_ms);

#endif
