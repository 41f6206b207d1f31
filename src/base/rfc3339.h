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

/* Room for one with its NUL. */
#define KINF__RFC3339_SIZE 40
/* With none, three or six decimals of its second, `micros` of which are over. A year has four digits:
 * of what is before 0000 and after 9999 the first and the last second are written. */
void kinf__rfc3339_write(int64_t wall_s, int micros, int n_decimals, char text[KINF__RFC3339_SIZE]);

#endif
