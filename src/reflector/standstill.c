/*
 * Telling a watch cache that stands still from a quiet one. Neighbours: the policy asks, and makes
 * the lists. Invariant: nothing is found while watches deliver.
 */
#include "reflector/standstill.h"

#include <string.h>

void kinf__standstill_init(struct kinf__standstill *standstill, int64_t list_interval_ms)
{
    *standstill = (struct kinf__standstill){ .list_interval_ms = list_interval_ms,
                                             .max_silent = KINF__STANDSTILL_SILENT_UNKNOWN };
}

bool kinf__standstill_is_sign(const struct kinf_error *err)
{
    return err->code == KINF_ERR_TOO_MANY_REQUESTS &&
           strstr(err->message, "(re)initializing") != NULL;
}

static void look(struct kinf__standstill *standstill, int64_t now_ms)
{
    if (standstill->n_signs >= KINF__STANDSTILL_SIGNS &&
        now_ms - standstill->first_sign_ms >= standstill->list_interval_ms)
        standstill->is_found = true;
}

void kinf__standstill_sign(struct kinf__standstill *standstill, int64_t now_ms)
{
    if (now_ms - standstill->last_sign_ms > KINF__STANDSTILL_SIGN_MEMORY_MS)
        standstill->n_signs = 0;
    if (standstill->n_signs++ == 0)
        standstill->first_sign_ms = now_ms;
    standstill->last_sign_ms = now_ms;
    look(standstill, now_ms);
}

void kinf__standstill_silent(struct kinf__standstill *standstill)
{
    standstill->n_silent++;
}

void kinf__standstill_delivered(struct kinf__standstill *standstill, bool is_bookmark)
{
    standstill->is_found = false;
    standstill->n_quiet = 0;
    standstill->n_signs = 0;
    standstill->n_silent = 0;
    if (!is_bookmark)
        return;
    standstill->has_bookmarks = true;
    standstill->max_silent = KINF__STANDSTILL_SILENT;
}

bool kinf__standstill_begin_list(struct kinf__standstill *standstill, int64_t now_ms)
{
    look(standstill, now_ms);
    if (standstill->is_found)
        return now_ms >= standstill->next_list_ms;
    if (standstill->n_silent < standstill->max_silent)
        return false;
    standstill->n_silent = 0;
    standstill->is_check = true;
    return true;
}

void kinf__standstill_listed(struct kinf__standstill *standstill, bool has_news, int64_t now_ms)
{
    bool is_check = standstill->is_check;

    standstill->next_list_ms = now_ms + standstill->list_interval_ms;
    standstill->is_check = false;
    standstill->n_silent = 0;
    if (standstill->is_found) {
        standstill->n_quiet = has_news ? 0 : standstill->n_quiet + 1;
    } else if (is_check && has_news) {
        standstill->is_found = true;
    } else if (is_check) {
        standstill->max_silent *= 2;
        if (standstill->max_silent > KINF__STANDSTILL_SILENT_UNKNOWN)
            standstill->max_silent = KINF__STANDSTILL_SILENT_UNKNOWN;
    }
}

void kinf__standstill_list_failed(struct kinf__standstill *standstill, int64_t now_ms)
{
    standstill->next_list_ms = now_ms + standstill->list_interval_ms;
    standstill->is_check = false;
}
