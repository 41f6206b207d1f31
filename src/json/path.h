/*
 * A parsed path, as the other modules of the library see it.
 *
 * Threads: any thread; constant after parsing.
 */
#ifndef KINF_JSON_PATH_H
#define KINF_JSON_PATH_H

#include <stddef.h>

#include <kinformer/path.h>
#include <kinformer/str.h>

enum kinf__path_step_type {
    KINF__PATH_KEY,   /* a member of an object */
    KINF__PATH_INDEX, /* an element of an array */
    KINF__PATH_EACH,  /* every element or value */
};

struct kinf__path_step {
    enum kinf__path_step_type type;
    struct kinf_str key; /* KINF__PATH_KEY: decoded (no escapes), the path's own */
    size_t index;        /* KINF__PATH_INDEX */
};

struct kinf_path {
    size_t n_steps;
    struct kinf__path_step steps[KINF_PATH_MAX_STEPS];
    char *text; /* as parsed, with NUL; in the path's allocation, as are the keys */
    char *keys; /* the bytes of all decoded keys */
};

#endif
