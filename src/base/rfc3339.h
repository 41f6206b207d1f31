/*
 * Times as RFC 3339 writes them, and Go does: "2006-01-02T15:04:05Z", "2006-01-02T17:04:05.5+02:00".
 *
 * Threads: any thread.
 */
#ifndef KINF_BASE_RFC3339_H
#define KINF_BASE_RFC3339_H

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/str.h>

/* Unix time; a fraction of a second is left out. Returns false, and leaves *ret_wall_s alone, if the
 * text is no time, or says no zone. */
bool kinf__rfc3339_parse(struct kinf_str text, int64_t *ret_wall_s);

#endif
