/*
 * What the last hour was like, for who looks afterwards: a sample every ten seconds, kept for the
 * curves of the status page whether somebody looks or not. The memory is fixed: 361 samples, 23 kB.
 *
 * Threads: under its owner's lock. Time is a parameter.
 */
#ifndef KINF_SERVE_LAST_HOUR_H
#define KINF_SERVE_LAST_HOUR_H

#include "serve/report.h"

enum {
    KINF__SAMPLE_EVERY_MS = 10000,
    KINF__SAMPLES_MAX = 361, /* an hour with both its ends */
};

/* X(enumerator, name, what). Of counters what happened between two samples is the difference. */
#define KINF__SAMPLE_VALUES(X)                                                                     \
    X(KINF__SAMPLE_EVENTS, "events", "counter: changes that watches brought")                      \
    X(KINF__SAMPLE_FROM_CACHE, "requestsCache", "counter: requests that the cache answered")       \
    X(KINF__SAMPLE_FROM_UPSTREAM, "requestsUpstream", "counter: requests that were passed on")     \
    X(KINF__SAMPLE_FROM_SELF, "requestsSelf", "counter: for discovery, health, metrics, the page") \
    X(KINF__SAMPLE_MEMORY, "residentBytes", "0: not known")                                        \
    X(KINF__SAMPLE_LAG, "lagMs", "how long the slowest served watch is behind")                    \
    X(KINF__SAMPLE_STALENESS, "stalenessMs", "of the type that was silent longest; negative: none")

enum {
#define X(value, name, what) value,
    KINF__SAMPLE_VALUES(X)
#undef X
        KINF__N_SAMPLE_VALUES
};

struct kinf__sample {
    int64_t at_ms;
    int64_t values[KINF__N_SAMPLE_VALUES];
};

/* All zero is empty. */
struct kinf__last_hour {
    struct kinf__sample samples[KINF__SAMPLES_MAX];
    size_t first; /* the oldest */
    size_t n_samples;
    int64_t next_ms; /* when the next is due */
};

bool kinf__last_hour_is_due(const struct kinf__last_hour *hour, int64_t now_ms);
/* The oldest makes room. The next is due a step after this one was, so that steps do not drift; if it
 * came late by more than a step, a step from now. */
void kinf__last_hour_add(struct kinf__last_hour *hour, const struct kinf__sample *sample);
/* Of n_samples, the oldest first. */
const struct kinf__sample *kinf__last_hour_at(const struct kinf__last_hour *hour, size_t i);

/* As the member `lastHour`: an array for each value, the oldest first, null for what is negative, and
 * `ageMs`, how long ago they were taken. */
void kinf__last_hour_write(const struct kinf__last_hour *hour, struct kinf__report *report);

#endif
