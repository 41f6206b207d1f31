/*
 * Thousands of watches of pods, and what they are told of the events that they are for.
 *
 * An event is a change of a pod by `loader events`, which puts its number k and the time into an
 * annotation; pod k modulo the number of pods is on node k modulo the number of nodes. Or it is one of
 * tests/replay, whose resourceVersion and rate say both. So each watch
 * knows which events are its own, and one that is lost, repeated or out of order shows. A watch that
 * is cut connects again; after a restart all do at once, as soon as the first of them is answered.
 * They go on from their last version, or where the server does not have that any more from the state
 * that it sends instead: there an event counts as seen when its pod carries it.
 *
 * Threads: one.
 */
#ifndef KINF_BENCH_SERVE_WATCHES_H
#define KINF_BENCH_SERVE_WATCHES_H

#include <stdint.h>

struct watches_options {
    int pid; /* the server's; 0: it will be restarted */
    unsigned n_watches;
    unsigned n_nodes; /* each watches one of them; 0: each watches all */
    uint64_t rv;      /* from here on */
    uint64_t first;   /* the number of the first event */
    uint64_t n_events;
    /* Of tests/replay, whose event k has the version rv + 1 + k; watches begin with the state. */
    uint64_t rate;    /* 0: it is the loader */
    int64_t began_ns; /* by the wall clock, when the first event was due less one interval */
};

/* Says "ready" when all watches are open, and what was measured when all events have come, or none
 * any more. Returns whether one was lost, repeated or out of order. */
int run_watches(const struct watches_options *options);

#endif
