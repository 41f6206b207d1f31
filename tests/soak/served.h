/*
 * What lists say, compared with the history while nobody writes.
 *
 * Threads: one. `wait` is called while there is no answer yet, or not the right one.
 */
#ifndef SOAK_SERVED_H
#define SOAK_SERVED_H

#include <stdint.h>

/* Lists all types, of the `server` or by the `sidecar`. */
void served_compare_lists(const char *where, int64_t patience_ms, void (*wait)(void));
/* Waits until each widget has its ConfigMap, as the controllers make them. */
void served_wait_mirrored(int64_t patience_ms, void (*wait)(void));

#endif
