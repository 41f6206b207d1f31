/*
 * A parsed path, as the other modules of the library see it, and looking up what it names.
 *
 * Threads: any thread; constant after parsing.
 */
#ifndef KINF_JSON_PATH_H
#define KINF_JSON_PATH_H

#include <stddef.h>

#include <kinformer/path.h>
#include <kinformer/str.h>

#include "json/scan.h"

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

/*
 * Finding what a path names in text that was scanned before. With a doubled key the first one
 * counts, and what lies behind the last value found is not looked at.
 */

/* Called for each value that the path names, in the order of the text. 0 goes on; anything else
 * ends the walk and is returned by it. */
typedef int kinf__json_value_cb(struct kinf__json_value value, void *ctx);

/* The text starts with the value that the path's first `n_done` steps name; what follows it is not
 * looked at. Returns 0 after the last value (also when there was none), or what the callback returned. */
int kinf__json_lookup(struct kinf_str text, const struct kinf_path *path, size_t n_done,
                      kinf__json_value_cb *callback, void *ctx);

/* The first value that the path names, likewise. Returns false if there is none. */
bool kinf__json_lookup_first(struct kinf_str text, const struct kinf_path *path, size_t n_done,
                             struct kinf__json_value *ret_value);

#endif
