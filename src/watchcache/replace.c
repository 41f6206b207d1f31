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
    const struct kinf__notification *told;
    const struct kinf__notification *predecessor; /* NULL: none */
};

struct dating {
    struct arrival *arrivals;
    size_t n_arrivals;
    const struct kinf__notification **ended; /* not dated yet */
    size_t n_ended;
    struct kinf__dated_change *dated;
    size_t n_left;    /* of `dated`, from the front */
    uint64_t highest; /* version that is free */
};

static bool is_predecessor(const struct kinf__notification *told,
                           const struct kinf__notification *next)
{
    return told->type == KINF__NOTIFY_DELETE && next->type == KINF__NOTIFY_ADD &&
           strcmp(kinf_object_key(told->old), kinf_object_key(next->object)) == 0;
}

/* What ended and what arrived. */
static void sort_out(struct dating *dating, const struct kinf__notification *told, size_t n)
{
    const struct kinf__notification *predecessor = NULL;

    for (size_t i = 0; i < n; i++) {
        const struct kinf__notification *one = &told[i];

        if (one->type != KINF__NOTIFY_DELETE) {
            const char *rv = kinf_object_resource_version(one->object);

            dating->arrivals[dating->n_arrivals++] =
                (struct arrival){ kinf__watchcache_parse_rv(rv), one, predecessor };
            predecessor = NULL;
        } else if (i + 1 < n && is_predecessor(one, &told[i + 1])) {
            predecessor = one;
        } else {
            dating->ended[dating->n_ended++] = one;
        }
    }
}

static int compare(const void *a, const void *b)
{
    const struct arrival *x = a, *y = b;

    return (x->version > y->version) - (x->version < y->version);
}

static void put(struct dating *dating, const struct kinf__notification *told, uint64_t version)
{
    dating->dated[--dating->n_left] = (struct kinf__dated_change){ told, version };
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
        put(dating, arrival->told, arrival->version);
        if (arrival->predecessor != NULL)
            dating->ended[dating->n_ended++] = arrival->predecessor;
    }
    put_ended_above(dating, above);
    return dating->n_ended == 0 ? 0 : KINF_ERR_INVALID;
}

int kinf__date_replace(const struct kinf__notification *told, size_t n_told, uint64_t above,
                       uint64_t list_version, struct kinf__dated_change *ret_dated)
{
    KINF__AUTO_FREE struct arrival *arrivals = calloc(n_told + 1, sizeof *arrivals);
    KINF__AUTO_FREE const struct kinf__notification **ended = calloc(n_told + 1, sizeof *ended);
    struct dating dating = { .arrivals = arrivals,
                             .ended = ended,
                             .dated = ret_dated,
                             .n_left = n_told,
                             .highest = list_version };

    if (arrivals == NULL || ended == NULL)
        return KINF_ERR_NO_MEMORY;
    sort_out(&dating, told, n_told);
    qsort(arrivals, dating.n_arrivals, sizeof arrivals[0], compare);
    return date(&dating, above);
}
