/*
 * The connections of all endpoints of a server together, by the address that they come from: an IPv4
 * address, of an IPv6 address the /64, of a process at a unix socket its user.
 *
 * There are as many as the process may have descriptors, without those that it lives on itself, but
 * 32,768 at most. Of one address there are never more than twice as many as are left: it alone may
 * have two thirds, each of two two fifths, and whoever comes next finds room.
 *
 * Threads: any thread.
 */
#ifndef KINF_SERVE_CONNECTIONS_H
#define KINF_SERVE_CONNECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hmap.h"
#include "base/lock.h"
#include "base/log.h"

struct kinf__connections {
    struct kinf__mutex lock;
    /* guarded by lock */
    struct kinf__hmap by_address;
    size_t max; /* descriptors for them, and what is kept apart of these */
    size_t n_apart;
    size_t n;
    struct kinf__log_limit warnings;
};

/* The connections of one address. */
struct kinf__address_count;

/* All that the process may have by RLIMIT_NOFILE, but some for files, timers and endpoints. */
void kinf__connections_init(struct kinf__connections *connections);
/* All were given back. */
void kinf__connections_release(struct kinf__connections *connections);

/* Keeps so many more descriptors apart; negative: so many fewer. Who is connected stays. */
void kinf__connections_keep_apart(struct kinf__connections *connections, int n_files);

/* Counts one more; NULL: there is no room, or no memory. */
struct kinf__address_count *kinf__connections_take(struct kinf__connections *connections,
                                                   uint64_t address);
void kinf__connections_give_back(struct kinf__connections *connections,
                                 struct kinf__address_count *count);

#endif
