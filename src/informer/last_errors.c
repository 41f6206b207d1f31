/*
 * The last errors. Neighbours: state.c notes, debug_state.c tells.
 */
#include "informer/last_errors.h"

#include <stdio.h>
#include <string.h>

/* The place of the message; else that of the oldest, which it takes. */
static size_t place_of(const struct kinf__last_errors *errors, const char *message)
{
    size_t at = 0;

    while (at < errors->n_items && strcmp(errors->items[at].message, message) != 0)
        at++;
    return at < KINF__LAST_ERRORS ? at : KINF__LAST_ERRORS - 1;
}

void kinf__last_errors_note(struct kinf__last_errors *errors, const char *message, int64_t now_ms)
{
    size_t place = place_of(errors, message);
    struct kinf__last_error error = errors->items[place];

    if (strcmp(error.message, message) != 0) {
        error = (struct kinf__last_error){ .first_ms = now_ms };
        snprintf(error.message, sizeof error.message, "%s", message);
    }
    error.last_ms = now_ms;
    error.n++;
    if (place == errors->n_items)
        errors->n_items++;
    memmove(&errors->items[1], &errors->items[0], place * sizeof error);
    errors->items[0] = error;
}
