/*
 * Events, as `kubectl describe` shows them: the same one again only counts, and of all together
 * some hundreds are kept.
 *
 * Mirrors: record.EventRecorder.
 * Threads: the store's lock is held.
 */
#ifndef KINF_WORKLOADS_RECORDER_H
#define KINF_WORKLOADS_RECORDER_H

#include "base/hmap.h"
#include "base/list.h"
#include "apiserver/sim.h"

#define KINF__MAX_EVENTS 500

/* All zero but for the list, which kinf__recorder_init() makes. */
struct kinf__recorder {
    struct kinf__hmap by_text;
    struct kinf__list oldest; /* first */
    size_t n_events;
    uint64_t n_recorded;
    int64_t full_ms; /* when the rate limit has its whole burst again */
};

void kinf__recorder_init(struct kinf__recorder *recorder);
void kinf__recorder_release(struct kinf__recorder *recorder);

/* One happening. `object` has apiVersion, kind and metadata. */
struct kinf__happening {
    const char *api_version, *kind; /* of the object */
    const struct cJSON *object;
    const char *component; /* "kubelet" */
    const char *type;      /* "Normal", "Warning" */
    const char *reason;
    const char *message;
};

/* Events tell people; that one cannot be written, or would be one too many, is nobody's failure. */
void kinf__record(struct kinf__recorder *recorder, struct kinf__sim *sim, int64_t now_ms,
                  const struct kinf__happening *happening);

#endif
