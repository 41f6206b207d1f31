/*
 * Turns. Neighbours: mhd_request.c begins and ends them. Invariant: somebody holds the turn as long as
 * somebody waits, and whoever holds it was woken for it.
 */
#include "serve/turns.h"

#define BURST_US 200
#define DEBT_US  1000 /* at most, since the last slice is as long as it is */
/* Of the time in which it does nothing a request gets back a part: a watch that is told something
 * now and then never waits. */
#define REFILL 1000

void kinf__turns_init(struct kinf__turns *turns)
{
    kinf__list_init(&turns->waiting);
    turns->holder = NULL;
}

void kinf__turn_init(struct kinf__turn *turn, bool is_long, int64_t now_us, void (*wake)(void *ctx),
                     void *ctx)
{
    *turn = (struct kinf__turn){
        .wake = wake, .ctx = ctx, .left_us = is_long ? 0 : BURST_US, .since_us = now_us
    };
    kinf__list_init(&turn->node);
}

static void refill(struct kinf__turn *turn, int64_t now_us)
{
    turn->left_us += (now_us - turn->since_us) / REFILL;
    if (turn->left_us > BURST_US)
        turn->left_us = BURST_US;
}

bool kinf__turn_begin(struct kinf__turns *turns, struct kinf__turn *turn, int64_t now_us)
{
    if (!turn->is_waiting && turns->holder != turn)
        refill(turn, now_us);
    turn->since_us = now_us;
    return turns->holder == turn || (!turn->is_waiting && turn->left_us > 0);
}

static void pass_on(struct kinf__turns *turns)
{
    struct kinf__turn *next;

    turns->holder = NULL;
    if (kinf__list_is_empty(&turns->waiting))
        return;
    next = KINF__LIST_ENTRY(turns->waiting.next, struct kinf__turn, node);
    kinf__list_remove(&next->node);
    next->is_waiting = false;
    turns->holder = next;
    next->wake(next->ctx);
}

void kinf__turn_end(struct kinf__turns *turns, struct kinf__turn *turn, int64_t now_us)
{
    turn->left_us -= now_us - turn->since_us;
    if (turn->left_us < -DEBT_US)
        turn->left_us = -DEBT_US;
    turn->since_us = now_us;
    if (turns->holder == turn)
        pass_on(turns);
}

void kinf__turn_wait(struct kinf__turns *turns, struct kinf__turn *turn)
{
    if (!turn->is_waiting && turns->holder != turn) {
        kinf__list_push_back(&turns->waiting, &turn->node);
        turn->is_waiting = true;
    }
    if (turns->holder == NULL)
        pass_on(turns);
}

void kinf__turn_leave(struct kinf__turns *turns, struct kinf__turn *turn)
{
    if (turn->is_waiting)
        kinf__list_remove(&turn->node);
    turn->is_waiting = false;
    if (turns->holder == turn)
        pass_on(turns);
}
