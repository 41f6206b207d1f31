/*
 * The pace of a body. Neighbours: the reflector's requests ask for each piece.
 */
#include "reflector/pace.h"

void kinf__pace_begin(struct kinf__pace *pace, int64_t window_ms, int64_t now_ms)
{
    *pace = (struct kinf__pace){ .window_ms = window_ms, .since_ms = now_ms };
}

bool kinf__pace_take(struct kinf__pace *pace, size_t len, bool is_progress, int64_t came_ms,
                     int64_t done_ms)
{
    bool is_late;

    pace->n_bytes += len;
    if (is_progress || pace->n_bytes >= KINF__PACE_BYTES) {
        kinf__pace_begin(pace, pace->window_ms, done_ms);
        return true;
    }
    is_late = came_ms - pace->since_ms > pace->window_ms;
    pace->since_ms += done_ms - came_ms;
    return !is_late;
}
