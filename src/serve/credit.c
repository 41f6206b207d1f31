/*
 * Credit as one number: the time at which all that was spent has come back (the generic cell rate
 * algorithm). Neighbours: authorizer.c asks whose turn it is.
 */
#include "serve/credit.h"

#include <stdlib.h>

#define ADDRESSES 4 /* as many may ask at their full rate at once */
#define WHOLE_US  1000000

void kinf__credit_init(struct kinf__credit *credit, unsigned questions_per_s)
{
    kinf__list_init(&credit->payers);
    credit->cost_us = WHOLE_US / questions_per_s;
    credit->spent_us = 0;
}

static void drop(struct kinf__payer *payer)
{
    kinf__list_remove(&payer->node);
    free(payer);
}

void kinf__credit_release(struct kinf__credit *credit)
{
    KINF__LIST_FOR_EACH_SAFE (node, &credit->payers)
        drop(KINF__LIST_ENTRY(node, struct kinf__payer, node));
}

struct kinf__payer *kinf__credit_payer(struct kinf__credit *credit, uint64_t address,
                                       int64_t now_ms)
{
    struct kinf__payer *found = NULL;

    KINF__LIST_FOR_EACH_SAFE (node, &credit->payers) {
        struct kinf__payer *payer = KINF__LIST_ENTRY(node, struct kinf__payer, node);

        if (payer->address == address)
            found = payer;
        else if (payer->n_inquiries == 0 && payer->spent_us <= now_ms * 1000)
            drop(payer);
    }
    if (found == NULL && (found = calloc(1, sizeof *found)) != NULL) {
        found->address = address;
        kinf__list_push_back(&credit->payers, &found->node);
    }
    return found;
}

struct kinf__payer *kinf__credit_greatest(const struct kinf__credit *credit)
{
    struct kinf__payer *greatest = NULL;

    KINF__LIST_FOR_EACH (node, &credit->payers) {
        struct kinf__payer *payer = KINF__LIST_ENTRY(node, struct kinf__payer, node);

        if (greatest == NULL || payer->n_inquiries > greatest->n_inquiries)
            greatest = payer;
    }
    return greatest;
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t kinf__credit_ready_ms(const struct kinf__credit *credit, const struct kinf__payer *payer)
{
    int64_t ready_us =
        max(payer->spent_us + credit->cost_us, credit->spent_us + credit->cost_us / ADDRESSES) -
        WHOLE_US;

    return (ready_us + 999) / 1000;
}

void kinf__credit_spend(struct kinf__credit *credit, struct kinf__payer *payer, int64_t now_ms)
{
    payer->spent_us = max(payer->spent_us, now_ms * 1000) + credit->cost_us;
    credit->spent_us = max(credit->spent_us, now_ms * 1000) + credit->cost_us / ADDRESSES;
}
