/*
 * Compressing a body while it is sent.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_SERVE_GZIP_H
#define KINF_SERVE_GZIP_H

#include <stdbool.h>
#include <stddef.h>

#include <kinformer/error.h>

struct kinf__gzip;

/* Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__gzip_new(struct kinf__gzip **ret_gzip);
void kinf__gzip_free(struct kinf__gzip *gzip); /* NULL is allowed */

/* Takes up to *len bytes, writes how many it took to *len, and up to `size` to `out`; returns how
 * many. `is_last`: nothing follows what is given here. */
size_t kinf__gzip_write(struct kinf__gzip *gzip, const char *bytes, size_t *len, bool is_last,
                        char *out, size_t size);
/* Whether all was given and all was written. */
bool kinf__gzip_is_done(const struct kinf__gzip *gzip);

#endif
