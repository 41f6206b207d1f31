/*
 * Places for so many at once, of which nobody has more than a share.
 *
 * Whoever takes one says who it is, by a digest that it could have made up. Strangers are those of
 * whom nobody has said that they are known; together they have a share, too, so that made-up callers
 * cannot take all. Who is known is remembered until newer ones need the room. Memory is bounded by
 * the number of places.
 *
 * Threads: one thread per object, or under its owner's lock.
 */
#ifndef KINF_SERVE_PLACES_H
#define KINF_SERVE_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/error.h>

#include "serve/digest.h"

struct kinf__caller {
    unsigned char id[KINF__DIGEST_SIZE];
    size_t n_places;
    uint64_t last_used; /* number of the take; 0: there is none */
    bool is_known;
};

struct kinf__places {
    size_t max, max_of_one, max_of_strangers;
    size_t n_taken, n_of_strangers;
    uint64_t n_takes;
    struct kinf__caller *callers;
    size_t n_callers;
};

/* 0: a quarter and a half of `max`, at least one. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__places_init(struct kinf__places *places, size_t max, size_t max_of_one,
                                      size_t max_of_strangers);
void kinf__places_release(struct kinf__places *places);

/* Returns whose place it is, for the calls below, or NULL, with the reason in *ret_why. */
struct kinf__caller *kinf__places_take(struct kinf__places *places,
                                       const unsigned char id[KINF__DIGEST_SIZE],
                                       const char **ret_why);
/* Of one that holds a place. */
void kinf__places_judge(struct kinf__places *places, struct kinf__caller *caller, bool is_known);
void kinf__places_give_back(struct kinf__places *places, struct kinf__caller *caller);

/* Whether all counts agree. */
bool kinf__places_check(const struct kinf__places *places);

#endif
