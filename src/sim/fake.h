/*
 * The fake's insides, for fake.c and sweep.c.
 */
#ifndef KINF_SIM_FAKE_H
#define KINF_SIM_FAKE_H

#include <kinformer/testing.h>

#include "apiserver/sim.h"
#include "serve/endpoint.h"

struct kinf_fake {
    /* constant after creation */
    struct kinf__sim *sim;
    struct kinf__endpoint *endpoint;
    struct kinf_client *client;
    /* Behind each look of those who settle, on their thread; NULL: none. Negative: they fail so;
     * positive: the look does not count. */
    int (*on_look)(void *ctx, struct kinf_error *err);
    void *look_ctx;
};

/* Real time, for what must end whatever the program's clock says. */
int64_t kinf__fake_real_ms(void);
void kinf__fake_nap(void); /* a millisecond of it */

#endif
