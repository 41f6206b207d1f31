/*
 * At most one leader acts.
 *
 * Who acts looks at the clock, then asks its elector, then looks at the clock again: it led at some
 * moment between the two. A term is one span of time without a gap, so it led from the first such
 * moment of a term to the last one; no two spans of different processes may overlap. Terms grow, and a
 * term is one process's, but across a restore of the server, which takes the Lease back.
 *
 * Threads: one.
 */
#ifndef SOAK_LEADERS_H
#define SOAK_LEADERS_H

#include <stdint.h>

#include <kinformer/str.h>

void leaders_act(struct kinf_str identity, uint64_t term, int64_t from_ms, int64_t to_ms);
/* The server was restored. */
void leaders_restored(void);
uint64_t leaders_n_terms(void);

#endif
