/*
 * Whether a body that goes on gets anywhere: a peer that sends a byte now and then is never silent,
 * and never done.
 *
 * Threads: one thread per object.
 */
#ifndef KINF_REFLECTOR_PACE_H
#define KINF_REFLECTOR_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So many bytes are progress, whatever they mean: the least of any link that is worth waiting for,
 * 0.9 kB/s with the default times. */
#define KINF__PACE_BYTES 65536

struct kinf__pace {
    int64_t window_ms; /* within which there must be progress */
    int64_t since_ms;  /* the last one */
    size_t n_bytes;    /* since then */
};

void kinf__pace_begin(struct kinf__pace *pace, int64_t window_ms, int64_t now_ms);

/* A piece of `len` bytes came at `came_ms` and was worked on until `done_ms`, which is not the
 * peer's time. `is_progress`: it brought something in itself. Returns false when it comes too late.
 */
bool kinf__pace_take(struct kinf__pace *pace, size_t len, bool is_progress, int64_t came_ms,
                     int64_t done_ms);

#endif
