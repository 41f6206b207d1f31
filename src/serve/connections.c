/*
 * Counts in a hash map. Neighbours: peer.c takes and gives back, server.c keeps descriptors apart for
 * its sources and for what it passes on.
 */
#include "serve/connections.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"

#define RESERVED_FILES   256 /* files, timers, sockets of endpoints, reviews, requests of its own */
#define MOST_CONNECTIONS 32768 /* 28 kB each, where there are watches */
#define WARNING_MS       10000

struct kinf__address_count {
    struct kinf__hmap_node in_map;
    uint64_t address;
    size_t n;
};

/* Where there are so few that nothing can be kept apart, the half. */
void kinf__connections_init(struct kinf__connections *connections)
{
    struct rlimit files;
    rlim_t limit = 2 * RESERVED_FILES;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        limit = files.rlim_cur;
    *connections = (struct kinf__connections){
        .by_address = KINF__HMAP_INIT,
        .max = limit > 2 * RESERVED_FILES ? limit - RESERVED_FILES : limit / 2,
        .warnings = { .interval_ms = WARNING_MS },
    };
    kinf__mutex_init(&connections->lock, KINF__RANK_CONNECTION);
}

void kinf__connections_release(struct kinf__connections *connections)
{
    kinf__hmap_release(&connections->by_address);
    kinf__mutex_release(&connections->lock);
}

void kinf__connections_keep_apart(struct kinf__connections *connections, int n_files)
{
    kinf__mutex_lock(&connections->lock);
    connections->n_apart += (size_t)n_files;
    kinf__mutex_unlock(&connections->lock);
}

static uint64_t hash_of(uint64_t address)
{
    return kinf__hash((struct kinf_str){ (const char *)&address, sizeof address });
}

static struct kinf__address_count *find(const struct kinf__connections *connections,
                                        uint64_t address)
{
    struct kinf__hmap_node *node =
        kinf__hmap_first_with_hash(&connections->by_address, hash_of(address));

    for (; node != NULL; node = kinf__hmap_next_with_hash(node)) {
        struct kinf__address_count *count =
            KINF__CONTAINER_OF(node, struct kinf__address_count, in_map);

        if (count->address == address)
            return count;
    }
    return NULL;
}

static struct kinf__address_count *add(struct kinf__connections *connections, uint64_t address)
{
    struct kinf__address_count *count = calloc(1, sizeof *count);

    if (count == NULL)
        return NULL;
    count->address = address;
    if (kinf__hmap_insert(&connections->by_address, &count->in_map, hash_of(address)) == 0)
        return count;
    free(count);
    return NULL;
}

/* How many there may be. The lock is held. */
static size_t limit_of(const struct kinf__connections *connections)
{
    size_t n_files =
        connections->max > connections->n_apart ? connections->max - connections->n_apart : 0;

    return n_files < MOST_CONNECTIONS ? n_files : MOST_CONNECTIONS;
}

static void warn(struct kinf__connections *connections, size_t n_of_address)
{
    uint64_t n_suppressed;

    if (kinf__log_limit_pass(&connections->warnings, kinf__clock_now_ms(), &n_suppressed))
        KINF__LOG(KINF__LOG_SERVE, KINF_LOG_WARN,
                  "connection refused: too many connections=%zu of_its_address=%zu max=%zu "
                  "suppressed=%" PRIu64,
                  connections->n, n_of_address, limit_of(connections), n_suppressed);
}

struct kinf__address_count *kinf__connections_take(struct kinf__connections *connections,
                                                   uint64_t address)
{
    struct kinf__address_count *count;
    size_t limit, n_of_address;

    kinf__mutex_lock(&connections->lock);
    count = find(connections, address);
    limit = limit_of(connections);
    n_of_address = count != NULL ? count->n : 0;
    if (connections->n >= limit || n_of_address >= 2 * (limit - connections->n)) {
        warn(connections, n_of_address);
        count = NULL;
    } else if (count != NULL || (count = add(connections, address)) != NULL) {
        count->n++;
        connections->n++;
    }
    kinf__mutex_unlock(&connections->lock);
    return count;
}

void kinf__connections_give_back(struct kinf__connections *connections,
                                 struct kinf__address_count *count)
{
    kinf__mutex_lock(&connections->lock);
    connections->n--;
    if (--count->n == 0) {
        kinf__hmap_remove(&connections->by_address, &count->in_map);
        free(count);
    }
    kinf__mutex_unlock(&connections->lock);
}
