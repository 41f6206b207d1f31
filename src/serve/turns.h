/*
 * Who works on an endpoint's thread, when requests take long. Each has some time to use at once;
 * whoever used that up works in turns with the others that did: a slice of one of them in each round
 * of the thread's loop. So who comes meanwhile waits for one slice, however many of them there are.
 *
 * A slice is one call of kinf__exchange_step() or of a stream's read(): those end after about a
 * millisecond.
 *
 * Threads: the endpoint's.
 */
#ifndef KINF_SERVE_TURNS_H
#define KINF_SERVE_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct kinf__turn;

struct kinf__turns {
    struct kinf__list waiting; /* of turns */
    struct kinf__turn *holder; /* whose turn it is; NULL: nobody waits */
};

/* A request's; zero is one that is not served yet. */
struct kinf__turn {
    void (*wake)(void *ctx);
    void *ctx;
    struct kinf__list node;
    bool is_waiting;
    int64_t left_us; /* to use at once */
    int64_t since_us;
};

void kinf__turns_init(struct kinf__turns *turns);

/* It stays in place until kinf__turn_leave(). One that `is_long` has nothing to use at once. */
void kinf__turn_init(struct kinf__turn *turn, bool is_long, int64_t now_us, void (*wake)(void *ctx),
                     void *ctx);

/* Whether the caller may work now, which is to end with kinf__turn_end(). If not it waits. */
bool kinf__turn_begin(struct kinf__turns *turns, struct kinf__turn *turn, int64_t now_us);
void kinf__turn_end(struct kinf__turns *turns, struct kinf__turn *turn, int64_t now_us);
/* The wake callback runs when it is the caller's turn, perhaps at once: then it begins again. May be
 * called again while it waits. */
void kinf__turn_wait(struct kinf__turns *turns, struct kinf__turn *turn);
/* Nothing is done for it any more. */
void kinf__turn_leave(struct kinf__turns *turns, struct kinf__turn *turn);

#endif
