/*
 * A merge sort from below. Runs are sorted by qsort(), each small enough not to hold up a stop.
 */
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

#include <kinformer/error.h>

#include "base/compiler.h"

#define RUN_LEN 4096

struct sort {
    size_t size;
    int (*compare)(const void *, const void *);
    const struct kinf__stop *stop;
};

/* Merges `left` and the items from `right` to `end` behind it. */
static bool merge(const struct sort *sort, const char *left, const char *right, const char *end,
                  char *to)
{
    const char *left_end = right;

    while (left < left_end && right < end) {
        const char **next = sort->compare(left, right) <= 0 ? &left : &right;

        if (kinf__stop_is_set(sort->stop))
            return false;
        memcpy(to, *next, sort->size);
        *next += sort->size;
        to += sort->size;
    }
    memcpy(to, left, (size_t)(left_end - left));
    memcpy(to + (left_end - left), right, (size_t)(end - right));
    return true;
}

static bool merge_runs(const struct sort *sort, const char *from, char *to, size_t len,
                       size_t run_len)
{
    bool goes_on = true;

    for (size_t at = 0; at < len && goes_on; at += 2 * run_len) {
        size_t middle = len - at < run_len ? len : at + run_len;
        size_t end = len - middle < run_len ? len : middle + run_len;

        goes_on = merge(sort, from + at, from + middle, from + end, to + at);
    }
    return goes_on;
}

static bool sort_runs(const struct sort *sort, char *items, size_t n_items)
{
    for (size_t at = 0; at < n_items; at += RUN_LEN) {
        if (kinf__stop_is_set(sort->stop))
            return false;
        qsort(items + at * sort->size, n_items - at < RUN_LEN ? n_items - at : RUN_LEN, sort->size,
              sort->compare);
    }
    return true;
}

static int merge_all(const struct sort *sort, char *items, size_t n_items, char *room)
{
    char *from = items, *to = room;
    bool goes_on = true;

    for (size_t n = RUN_LEN; n < n_items && goes_on; n *= 2) {
        goes_on = merge_runs(sort, from, to, n_items * sort->size, n * sort->size);
        if (goes_on) {
            char *merged = to;

            to = from;
            from = merged;
        }
    }
    if (from != items)
        memcpy(items, from, n_items * sort->size);
    return goes_on ? 0 : KINF_ERR_STOPPED;
}

int kinf__sort(void *items, size_t n_items, size_t size, int (*compare)(const void *, const void *),
               const struct kinf__stop *stop)
{
    const struct sort sort = { size, compare, stop };
    KINF__AUTO_FREE char *room = NULL;

    if (!sort_runs(&sort, items, n_items))
        return KINF_ERR_STOPPED;
    if (n_items <= RUN_LEN)
        return 0;
    room = reallocarray(NULL, n_items, size);
    return room != NULL ? merge_all(&sort, items, n_items, room) : KINF_ERR_NO_MEMORY;
}
