/*
 * Shares of places. Neighbours: forward.c asks for one with each request.
 *
 * There are twice as many records as places: those that hold one, and as many that are remembered.
 * Of a stranger without a place nothing is kept, so strangers push out nobody.
 */
#include "serve/places.h"

#include <stdlib.h>
#include <string.h>

static size_t share(size_t given, size_t max, size_t part)
{
    if (given != 0)
        return given;
    return max >= part ? max / part : 1;
}

int kinf__places_init(struct kinf__places *places, size_t max, size_t max_of_one,
                      size_t max_of_strangers)
{
    *places = (struct kinf__places){ .max = max,
                                     .max_of_one = share(max_of_one, max, 4),
                                     .max_of_strangers = share(max_of_strangers, max, 2),
                                     .n_callers = 2 * max };
    places->callers = calloc(places->n_callers, sizeof places->callers[0]);
    return places->callers != NULL ? 0 : KINF_ERR_NO_MEMORY;
}

void kinf__places_release(struct kinf__places *places)
{
    free(places->callers);
    *places = (struct kinf__places){ 0 };
}

/* The caller's record, or the one to be made its own: free, or idle for the longest time. */
static struct kinf__caller *find(struct kinf__places *places, const unsigned char *id)
{
    struct kinf__caller *oldest = NULL;

    for (size_t i = 0; i < places->n_callers; i++) {
        struct kinf__caller *caller = &places->callers[i];

        if (caller->last_used != 0 && memcmp(caller->id, id, KINF__DIGEST_SIZE) == 0)
            return caller;
        if (caller->n_places == 0 && (oldest == NULL || caller->last_used < oldest->last_used))
            oldest = caller;
    }
    return oldest;
}

struct kinf__caller *kinf__places_take(struct kinf__places *places,
                                       const unsigned char id[KINF__DIGEST_SIZE],
                                       const char **ret_why)
{
    struct kinf__caller *caller;
    bool is_new;

    *ret_why = "too many requests are passed on already";
    if (places->n_taken == places->max)
        return NULL;
    caller = find(places, id);
    is_new = caller->last_used == 0 || memcmp(caller->id, id, KINF__DIGEST_SIZE) != 0;
    *ret_why = "too many requests of yours are passed on already";
    if (!is_new && caller->n_places >= places->max_of_one)
        return NULL;
    *ret_why = "too many requests are passed on already for tokens that the API server has not "
               "accepted yet";
    if ((is_new || !caller->is_known) && places->n_of_strangers >= places->max_of_strangers)
        return NULL;
    if (is_new) {
        *caller = (struct kinf__caller){ .n_places = 0 };
        memcpy(caller->id, id, KINF__DIGEST_SIZE);
    }
    caller->last_used = ++places->n_takes;
    caller->n_places++;
    places->n_taken++;
    places->n_of_strangers += !caller->is_known;
    return caller;
}

void kinf__places_judge(struct kinf__places *places, struct kinf__caller *caller, bool is_known)
{
    if (is_known && !caller->is_known)
        places->n_of_strangers -= caller->n_places;
    else if (!is_known && caller->is_known)
        places->n_of_strangers += caller->n_places;
    caller->is_known = is_known;
}

void kinf__places_give_back(struct kinf__places *places, struct kinf__caller *caller)
{
    places->n_of_strangers -= !caller->is_known;
    places->n_taken--;
    caller->n_places--;
    if (caller->n_places == 0 && !caller->is_known)
        caller->last_used = 0;
}

bool kinf__places_check(const struct kinf__places *places)
{
    size_t n_taken = 0, n_of_strangers = 0;

    for (size_t i = 0; i < places->n_callers; i++) {
        const struct kinf__caller *caller = &places->callers[i];

        if (caller->n_places > places->max_of_one ||
            (caller->last_used == 0 && caller->n_places != 0) ||
            (caller->last_used != 0 && caller->n_places == 0 && !caller->is_known))
            return false;
        n_taken += caller->n_places;
        n_of_strangers += caller->is_known ? 0 : caller->n_places;
    }
    return n_taken == places->n_taken && n_taken <= places->max &&
           n_of_strangers == places->n_of_strangers;
}
