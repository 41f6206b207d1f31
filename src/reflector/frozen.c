/*
 * Telling a watch cache that stands still from a quiet one. Neighbours: the policy asks, and makes
 * the lists. Invariant: nothing is found while watches deliver.
 */
#include "reflector/frozen.h"

#include <string.h>

void kinf__frozen_init(struct kinf__frozen *frozen, int64_t list_interval_ms)
{
    *frozen = (struct kinf__frozen){ .list_interval_ms = list_interval_ms,
                                     .max_silent = KINF__FROZEN_SILENT_UNKNOWN };
}

bool kinf__frozen_is_sign(const struct kinf_error *err)
{
    return err->code == KINF_ERR_TOO_MANY_REQUESTS &&
           strstr(err->message, "(re)initializing") != NULL;
}

static void look(struct kinf__frozen *frozen, int64_t now_ms)
{
    if (frozen->n_signs >= KINF__FROZEN_SIGNS &&
        now_ms - frozen->first_sign_ms >= frozen->list_interval_ms)
        frozen->is_found = true;
}

void kinf__frozen_sign(struct kinf__frozen *frozen, int64_t now_ms)
{
    if (now_ms - frozen->last_sign_ms > KINF__FROZEN_SIGN_MEMORY_MS)
        frozen->n_signs = 0;
    if (frozen->n_signs++ == 0)
        frozen->first_sign_ms = now_ms;
    frozen->last_sign_ms = now_ms;
    look(frozen, now_ms);
}

void kinf__frozen_outage(struct kinf__frozen *frozen)
{
    frozen->had_outage = true;
    frozen->n_silent = 0; /* what counts is the silence behind it */
}

void kinf__frozen_verified(struct kinf__frozen *frozen)
{
    frozen->had_outage = false;
}

void kinf__frozen_silent(struct kinf__frozen *frozen)
{
    frozen->n_silent++;
}

void kinf__frozen_delivered(struct kinf__frozen *frozen, bool is_bookmark)
{
    frozen->is_found = false;
    frozen->n_quiet = 0;
    frozen->n_signs = 0;
    frozen->n_silent = 0;
    if (!is_bookmark)
        return;
    frozen->has_bookmarks = true;
    frozen->max_silent = KINF__FROZEN_SILENT;
}

bool kinf__frozen_begin_list(struct kinf__frozen *frozen, int64_t now_ms)
{
    unsigned max_silent = frozen->had_outage ? 1 : frozen->max_silent;

    look(frozen, now_ms);
    if (frozen->is_found)
        return now_ms >= frozen->next_list_ms;
    if (frozen->n_silent < max_silent)
        return false;
    frozen->n_silent = 0;
    frozen->had_outage = false;
    frozen->is_check = true;
    return true;
}

void kinf__frozen_listed(struct kinf__frozen *frozen, bool has_news, int64_t now_ms)
{
    bool is_check = frozen->is_check;

    frozen->next_list_ms = now_ms + frozen->list_interval_ms;
    frozen->is_check = false;
    frozen->had_outage = false;
    frozen->n_silent = 0;
    if (frozen->is_found) {
        frozen->n_quiet = has_news ? 0 : frozen->n_quiet + 1;
    } else if (is_check && has_news) {
        frozen->is_found = true;
    } else if (is_check) {
        frozen->max_silent *= 2;
        if (frozen->max_silent > KINF__FROZEN_SILENT_UNKNOWN)
            frozen->max_silent = KINF__FROZEN_SILENT_UNKNOWN;
    }
}

void kinf__frozen_list_failed(struct kinf__frozen *frozen, int64_t now_ms)
{
    frozen->next_list_ms = now_ms + frozen->list_interval_ms;
    frozen->is_check = false;
}
