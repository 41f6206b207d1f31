/*
 * Long lists are seen: on the terminal that standard error is, in one line that is written anew and
 * erased at the end, or else in the log, every ten seconds.
 *
 * Owner: the daemon. Threads: the main thread.
 */
#ifndef KINF_DAEMON_PROGRESS_H
#define KINF_DAEMON_PROGRESS_H

#include "daemon/on_demand.h"

/* One list that is under way. */
struct kinf__progress_item {
    const char *resource;
    const char *name_space; /* NULL: all */
    uint64_t n_objects;
    uint64_t n_expected; /* 0: not known */
    uint64_t n_bytes;
    int64_t for_ms;
};

struct kinf__progress {
    bool is_terminal;
    int64_t told_ms; /* to the log, or when it began */
};

void kinf__progress_init(struct kinf__progress *progress);
/* Tells of the lists that have taken more than two seconds. Returns after how many milliseconds this is
 * to be called again; negative: whenever it suits. */
int64_t kinf__progress_tell(struct kinf__progress *progress, const struct kinf__watches *watches,
                            const struct kinf__on_demand *on_demand);
/* Nothing stands on the terminal any more. */
void kinf__progress_end(void);

/* Writes what fits into `buf`: the first of `items`, and how many more there are. Counts bytes as
 * columns. Returns `buf`. */
const char *kinf__progress_line(const struct kinf__progress_item *items, size_t n_items, char *buf,
                                size_t size);

#endif
