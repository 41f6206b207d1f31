/*
 * How often the upstream may be asked about tokens that nothing is known of: by each address, and by
 * all together four times as often. Up to a second's questions may come at once.
 *
 * Who has spent less is to go first, so whoever asks much, from however many addresses, holds up
 * nobody who asks little. An address is forgotten when it has no inquiry and its credit is whole: so
 * there are as many as inquiries, and as questions of a second.
 *
 * Threads: one thread per object, or under its owner's lock.
 */
#ifndef KINF_SERVE_CREDIT_H
#define KINF_SERVE_CREDIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

/* An address that asks. */
struct kinf__payer {
    struct kinf__list node;
    uint64_t address;
    size_t n_inquiries; /* counted by who makes them */
    int64_t spent_us;   /* when its credit is whole, monotonic */
};

struct kinf__credit {
    struct kinf__list payers;
    int64_t cost_us; /* of one question, for an address */
    int64_t spent_us;
};

void kinf__credit_init(struct kinf__credit *credit, unsigned questions_per_s);
void kinf__credit_release(struct kinf__credit *credit);

/* Valid until the next call, or as long as it has inquiries. NULL: out of memory. */
struct kinf__payer *kinf__credit_payer(struct kinf__credit *credit, uint64_t address,
                                       int64_t now_ms);
/* The one with the most inquiries; NULL: there are none at all. */
struct kinf__payer *kinf__credit_greatest(const struct kinf__credit *credit);

/* From when on it may ask one more. */
int64_t kinf__credit_ready_ms(const struct kinf__credit *credit, const struct kinf__payer *payer);
void kinf__credit_spend(struct kinf__credit *credit, struct kinf__payer *payer, int64_t now_ms);

#endif
