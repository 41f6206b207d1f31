/*
 * Keeping in mind what others claim. Neighbours: lease.c reads each Lease, election.c decides.
 *
 * As an election does for its own Lease (L2, L6), this believes no time that others have written, and
 * what a person deletes or empties is live until its time is over.
 */
#include "elector/claims.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "json/scan.h"

#define MAX_DEPTH 1000

void kinf__claims_init(struct kinf__claims *claims, const char *set, const char *lease,
                       unsigned n_shards, unsigned shard, int64_t lease_ms)
{
    *claims = (struct kinf__claims){ .lease = lease, .lease_ms = lease_ms };
    if (n_shards == 0)
        return;
    claims->set = set;
    claims->range = kinf__shard_range_of(n_shards, shard);
    kinf__shard_range_write(claims->range, claims->range_text);
}

static void drop(struct kinf__claims *claims, size_t i)
{
    kinf__buffer_release(&claims->items[i].observed);
    claims->items[i] = claims->items[--claims->n_items];
}

void kinf__claims_release(struct kinf__claims *claims)
{
    while (claims->n_items > 0)
        drop(claims, claims->n_items - 1);
    free(KINF__TAKE(claims->items));
}

/* --- reading --- */

/* And not one that was made behind a deletion: who has that one may know nothing of this. */
static bool is_of(const struct kinf__claim *claim, const struct kinf__lease *lease)
{
    return strcmp(claim->lease, lease->name) == 0 && strcmp(claim->lease_uid, lease->uid) == 0;
}

/* Whoever has taken it over by the rules has waited until what was claimed before is over. */
static void supersede(struct kinf__claims *claims, const struct kinf__lease *lease)
{
    for (size_t i = 0; i < claims->n_items; i++) {
        struct kinf__claim *claim = &claims->items[i];

        if (is_of(claim, lease) &&
            lease->transitions >= claim->transitions + (lease->is_released ? 0 : 1))
            claim->until_ms = 0;
    }
}

static struct kinf__claim *find(struct kinf__claims *claims, const struct kinf__lease *lease,
                                struct kinf__shard_range range)
{
    for (size_t i = 0; i < claims->n_items; i++) {
        struct kinf__claim *claim = &claims->items[i];

        if (is_of(claim, lease) && claim->transitions == lease->transitions &&
            claim->range.first == range.first && claim->range.last == range.last)
            return claim;
    }
    return NULL;
}

static struct kinf__claim *add(struct kinf__claims *claims, const struct kinf__lease *lease,
                               struct kinf__shard_range range)
{
    struct kinf__claim *items =
                           reallocarray(claims->items, claims->n_items + 1, sizeof *claims->items),
                       *claim;

    if (items == NULL)
        return NULL;
    claims->items = items;
    claim = &items[claims->n_items++];
    *claim = (struct kinf__claim){ .transitions = lease->transitions, .range = range };
    memcpy(claim->lease, lease->name, sizeof claim->lease);
    memcpy(claim->lease_uid, lease->uid, sizeof claim->lease_uid);
    return claim;
}

/* It has changed, or we see it for the first time: its time begins anew. A person may have written a
 * shorter one: the holder acts until it finds out. */
static int observe(struct kinf__claim *claim, const struct kinf__lease *lease, int64_t until_ms)
{
    claim->is_listed = true;
    if (kinf_str_equal(kinf__buffer_str(&claim->observed), lease->spec))
        return 0;
    if (until_ms > claim->until_ms)
        claim->until_ms = until_ms;
    memcpy(claim->holder, lease->holder, sizeof claim->holder);
    claim->observed.len = 0;
    return kinf__buffer_append_str(&claim->observed, lease->spec);
}

/* Who does not say what it claims may act on anything. */
static int note_lease(struct kinf__claims *claims, const struct kinf__lease *lease, int64_t now_ms)
{
    struct kinf__shard_range range = lease->has_range ? lease->range : kinf__shard_range_of(1, 0);
    int64_t duration_ms = lease->duration_ms != 0 ? lease->duration_ms : claims->lease_ms;
    struct kinf__claim *claim;

    if (strcmp(lease->name, claims->lease) == 0)
        return 0;
    supersede(claims, lease);
    if (lease->holder[0] == '\0' || !kinf__shard_ranges_overlap(range, claims->range))
        return 0;
    claim = find(claims, lease, range);
    if (claim == NULL)
        claim = add(claims, lease, range);
    return claim != NULL ? observe(claim, lease, now_ms + duration_ms) : KINF_ERR_NO_MEMORY;
}

static int read_items(struct kinf__claims *claims, struct kinf__json_value items, int64_t now_ms,
                      struct kinf_error *err)
{
    struct kinf__lease lease = { .duration_ms = 0 };
    struct kinf__json_value item;
    struct kinf__json_iter iter;
    struct kinf_str no_key;
    int failed = 0;

    if (!kinf__json_iter_init(&iter, items))
        return 0;
    while (failed == 0 && kinf__json_iter_next(&iter, &no_key, &item)) {
        failed = kinf__lease_read(&lease, item.raw, err);
        if (failed == 0 && note_lease(claims, &lease, now_ms) < 0)
            failed = kinf__error_no_memory(err);
    }
    kinf__lease_release(&lease);
    return failed;
}

/* Those that are gone, and whose time was over when they were asked for. */
static void forget(struct kinf__claims *claims, int64_t asked_ms)
{
    for (size_t i = claims->n_items; i-- > 0;) {
        if (!claims->items[i].is_listed && asked_ms >= claims->items[i].until_ms)
            drop(claims, i);
        else
            claims->items[i].is_listed = false;
    }
}

int kinf__claims_read(struct kinf__claims *claims, struct kinf_str list, int64_t asked_ms,
                      int64_t now_ms, struct kinf_error *err)
{
    struct kinf__json_value items;
    size_t at;
    int failed = kinf__json_scan_all(list, MAX_DEPTH, &at);

    if (failed < 0)
        return kinf__json_error(err, KINF_ERR_PARSE, list, at);
    if (!kinf__json_member(kinf__json_value_of(list), KINF_STR("items"), &items) ||
        (items.type != KINF__JSON_ARRAY && items.type != KINF__JSON_NULL))
        return kinf__error_set(err, KINF_ERR_PARSE, "the list of Leases has no items");
    failed = read_items(claims, items, now_ms, err);
    if (failed == 0)
        forget(claims, asked_ms);
    return failed;
}

/* --- whose turn it is --- */

/* The larger N is, the smaller are the parts. */
static bool is_before(struct kinf__shard_range a, const char *lease_of_a,
                      struct kinf__shard_range b, const char *lease_of_b)
{
    uint64_t size_a = a.last - a.first, size_b = b.last - b.first;

    if (size_a != size_b)
        return size_a < size_b;
    return a.first != b.first ? a.first < b.first : strcmp(lease_of_a, lease_of_b) < 0;
}

const struct kinf__claim *kinf__claims_blocker(const struct kinf__claims *claims, int64_t at_ms)
{
    const struct kinf__claim *first = NULL;

    for (size_t i = 0; i < claims->n_items; i++) {
        const struct kinf__claim *claim = &claims->items[i];

        if (at_ms < claim->until_ms &&
            (first == NULL || is_before(claim->range, claim->lease, first->range, first->lease)))
            first = claim;
    }
    return first;
}

bool kinf__claims_yield(const struct kinf__claims *claims, const struct kinf__claim *to)
{
    return is_before(to->range, to->lease, claims->range, claims->lease);
}
