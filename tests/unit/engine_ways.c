/*
 * Drawing options. Neighbours: test_engine_model.c makes informers of them.
 */
#include "unit/engine_ways.h"

#include <stdbool.h>
#include <string.h>

#include <kinformer/informer.h>

#include "unit/server_history.h"

#define N_WAYS_MAX 8

static const size_t n_ways[N_CHOICES] = {
    [CHOICE_VIEW] = ENGINE_N_VIEWS,
    [CHOICE_SHARD] = 2,
    [CHOICE_PART] = SERVER_ALL_METADATA + 1,
    [CHOICE_KEEPS] = 2,
    [CHOICE_FIELD_SELECTOR] = 2,
    [CHOICE_INDICES] = 4,
    [CHOICE_TRANSFORM] = 2,
    [CHOICE_FIFO] = 2,
    [CHOICE_INITIAL] = KINF_INITIAL_LIST + 1,
    [CHOICE_PAGES] = 2,
    [CHOICE_QUEUE] = 2,
    [CHOICE_COMPRESSED] = 2,
    [CHOICE_GZIP] = 2,
};

/* Which two ways an informer has had, the lesser choice first. */
static bool have_met[N_CHOICES][N_WAYS_MAX][N_CHOICES][N_WAYS_MAX];

/* Of metadata alone there is no serial to be indexed, and what is compressed is not transformed. */
static bool may_meet(enum choice a, size_t way_a, enum choice b, size_t way_b)
{
    if (a == CHOICE_PART && b == CHOICE_INDICES)
        return way_a < SERVER_METADATA || way_b == 1;
    return a != CHOICE_TRANSFORM || b != CHOICE_COMPRESSED || way_a == 0 || way_b == 0;
}

static void draw_ways(struct test_random *random, size_t view, size_t *ways)
{
    for (size_t i = 0; i < N_CHOICES; i++)
        ways[i] = test_random_below(random, n_ways[i]);
    ways[CHOICE_VIEW] = view;
    if (ways[CHOICE_PART] >= SERVER_METADATA)
        ways[CHOICE_INDICES] = 1;
    if (ways[CHOICE_TRANSFORM] != 0)
        ways[CHOICE_COMPRESSED] = 0;
}

/* Counts those that have not met; they have then, if `notes`. */
static size_t count_new_pairs(const size_t *ways, bool notes)
{
    size_t n = 0;

    for (size_t a = 0; a < N_CHOICES; a++) {
        for (size_t b = a + 1; b < N_CHOICES; b++) {
            bool *has_met = &have_met[a][ways[a]][b][ways[b]];

            n += !*has_met;
            *has_met = *has_met || notes;
        }
    }
    return n;
}

/* At random, but of some draws the one that has the most pairs of ways that no informer had yet. */
void engine_ways_choose(struct test_random *random, size_t view, size_t ret_ways[N_CHOICES])
{
    size_t ways[N_CHOICES], n_most = 0, n;

    draw_ways(random, view, ret_ways);
    n_most = count_new_pairs(ret_ways, false);
    for (size_t i = 0; i < 20; i++) {
        draw_ways(random, view, ways);
        n = count_new_pairs(ways, false);
        if (n > n_most) {
            memcpy(ret_ways, ways, sizeof ways);
            n_most = n;
        }
    }
    (void)count_new_pairs(ret_ways, true);
}

void engine_ways_check(void)
{
    for (size_t a = 0; a < N_CHOICES; a++) {
        for (size_t b = a + 1; b < N_CHOICES; b++) {
            for (size_t i = 0; i < n_ways[a] * n_ways[b]; i++) {
                size_t way_a = i / n_ways[b], way_b = i % n_ways[b];

                if (!have_met[a][way_a][b][way_b] && may_meet(a, way_a, b, way_b))
                    fail_msg("no informer had choice %zu as %zu and %zu as %zu", a, way_a, b,
                             way_b);
            }
        }
    }
}
