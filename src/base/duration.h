/*
 * Durations as Go writes them: "500ms", "30s", "5m", "1h", or a sum such as "1h30m". 0 needs no
 * unit.
 *
 * Threads: any thread.
 */
#ifndef KINF_BASE_DURATION_H
#define KINF_BASE_DURATION_H

#include <stdbool.h>
#include <stdint.h>

#define KINF__DURATION_MAX_MS ((int64_t)366 * 24 * 3600 * 1000)

/* Returns false, and leaves *ret_ms alone, if the text is no duration or longer than a year. */
bool kinf__duration_parse(const char *text, int64_t *ret_ms);

#endif
