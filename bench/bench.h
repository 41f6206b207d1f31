/*
 * What benchmarks of single parts begin with: an end when something fails, and the time.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdio.h>
#include <stdlib.h>

#include <kinformer/error.h>

#include "base/clock.h"

static inline void require(int rc)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "failed: %s\n", kinf_errc_to_string((enum kinf_errc)rc));
    exit(1);
}

static inline double time_ns(void)
{
    return (double)kinf__clock_now_ns();
}

#endif
