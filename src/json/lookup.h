/*
 * Finding what a path names in text that was scanned before. With a doubled key the first one
 * counts, and what lies behind the last value found is not looked at.
 *
 * Threads: any thread.
 */
#ifndef KINF_JSON_LOOKUP_H
#define KINF_JSON_LOOKUP_H

#include "json/path.h"
#include "json/scan.h"

/* Called for each value that the path names, in the order of the text. 0 goes on; anything else
 * ends the walk and is returned by it. */
typedef int kinf__json_value_cb(struct kinf__json_value value, void *ctx);

/* Returns 0 after the last value (also when there was none), or what the callback returned. */
int kinf__json_lookup(struct kinf_str text, const struct kinf_path *path,
                      kinf__json_value_cb *callback, void *ctx);

/* The first value that the path names. Returns false if there is none. */
bool kinf__json_lookup_first(struct kinf_str text, const struct kinf_path *path,
                             struct kinf__json_value *ret_value);

#endif
