/*
 * Waiting for a server at the start.
 */
#include "soak/patience.h"

#include <time.h>

#define PAUSE_NS  100000000
#define MAX_TRIES 100

static bool is_refusal(const struct kinf_error *err)
{
    return kinf_error_is_not_found(err) || kinf_error_is_unauthorized(err) ||
           kinf_error_is_forbidden(err);
}

bool patience_wait(struct patience *patience, const struct kinf_error *err)
{
    const struct timespec pause = { 0, PAUSE_NS };

    if (is_refusal(err) != patience->was_refused)
        *patience = (struct patience){ .was_refused = is_refusal(err) };
    if (++patience->n_tries >= MAX_TRIES)
        return false;
    nanosleep(&pause, NULL);
    return true;
}
