/*
 * Dating the changes of a list. Neighbours: feed.c. Versions are given from the highest down; what
 * ended and has no version yet waits on a stack, from which each free version takes one. Taking the
 * highest free version for each finds versions for all whenever there are enough.
 */
#include "watchcache/replace.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "watchcache/watchcache.h"

/* Something new or changed, and what of the same name it took the place of. */
struct arrival {
    uint64_t version;
    const struct kinf__sink_change *change;
    const struct kinf__sink_change *predecessor; /* NULL: none */
};

struct dating {
    struct arrival *arrivals;
    size_t n_arrivals;
    const struct kinf__sink_change **ended; /* not dated yet */
    size_t n_ended;
    struct kinf__dated_change *dated;
    size_t n_left;    /* of `dated`, from the front */
    uint64_t highest; /* version that is free */
};

static bool is_predecessor(const struct kinf__sink_change *change,
                           const struct kinf__sink_change *next)
{
    return change->object == NULL && next->old == NULL && next->object != NULL &&
           strcmp(kinf_object_key(change->old), kinf_object_key(next->object)) == 0;
}

/* What ended and what arrived. */
static void sort_out(struct dating *dating, const struct kinf__sink_change *changes, size_t n)
{
    const struct kinf__sink_change *predecessor = NULL;

    for (size_t i = 0; i < n; i++) {
        const struct kinf__sink_change *change = &changes[i];

        if (change->object != NULL) {
            dating->arrivals[dating->n_arrivals++] =
                (struct arrival){ kinf__watchcache_parse_rv(change->resource_version), change,
                                  predecessor };
            predecessor = NULL;
        } else if (i + 1 < n && is_predecessor(change, &changes[i + 1])) {
            predecessor = change;
        } else {
            dating->ended[dating->n_ended++] = change;
        }
    }
}

static int compare(const void *a, const void *b)
{
    const struct arrival *x = a, *y = b;

    return (x->version > y->version) - (x->version < y->version);
}

static void put(struct dating *dating, const struct kinf__sink_change *change, uint64_t version)
{
    dating->dated[--dating->n_left] = (struct kinf__dated_change){ change, version };
    dating->highest = version - 1;
}

static void put_ended_above(struct dating *dating, uint64_t version)
{
    while (dating->n_ended > 0 && dating->highest > version)
        put(dating, dating->ended[--dating->n_ended], dating->highest);
}

static int date(struct dating *dating, uint64_t above)
{
    while (dating->n_arrivals > 0) {
        const struct arrival *arrival = &dating->arrivals[--dating->n_arrivals];

        put_ended_above(dating, arrival->version);
        if (arrival->version <= above || arrival->version > dating->highest)
            return KINF_ERR_INVALID;
        put(dating, arrival->change, arrival->version);
        if (arrival->predecessor != NULL)
            dating->ended[dating->n_ended++] = arrival->predecessor;
    }
    put_ended_above(dating, above);
    return dating->n_ended == 0 ? 0 : KINF_ERR_INVALID;
}

int kinf__date_replace(const struct kinf__sink_change *changes, size_t n_changes, uint64_t above,
                       uint64_t list_version, struct kinf__dated_change *ret_dated)
{
    KINF__AUTO_FREE struct arrival *arrivals = calloc(n_changes + 1, sizeof *arrivals);
    KINF__AUTO_FREE const struct kinf__sink_change **ended = calloc(n_changes + 1, sizeof *ended);
    struct dating dating = { .arrivals = arrivals,
                             .ended = ended,
                             .dated = ret_dated,
                             .n_left = n_changes,
                             .highest = list_version };

    if (arrivals == NULL || ended == NULL)
        return KINF_ERR_NO_MEMORY;
    sort_out(&dating, changes, n_changes);
    qsort(arrivals, dating.n_arrivals, sizeof arrivals[0], compare);
    return date(&dating, above);
}
