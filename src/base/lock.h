/*
 * Mutexes with a rank, and condition variables on the monotonic clock.
 *
 * A thread may take a lock only if its rank is above the rank of every lock it holds: the ladder
 * below is the whole order, so no two threads can wait for each other. Debug builds check it and
 * abort with both names, since a broken order is a bug of ours and never a condition of run time.
 *
 * Threads: any thread.
 */
#ifndef KINF_BASE_LOCK_H
#define KINF_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/* The ladder, from the first to be taken to the last. X(enumerator, name, what it guards) */
#define KINF__LOCK_RANKS(X)                                                                        \
    X(KINF__RANK_SIM, "sim", "what the simulated server has")                                      \
    X(KINF__RANK_FEED, "sim.feed", "one version of a resource, as it is written and told")         \
    X(KINF__RANK_SERVER, "serve", "what is served, and the requests under way")                    \
    X(KINF__RANK_DEMAND, "serve.demand", "which types are asked for, and cached on demand")        \
    X(KINF__RANK_AUTHORIZER, "serve.authorizer", "decisions on who may read, and inquiries")       \
    X(KINF__RANK_CONTROLLERS, "rest.controllers", "which controllers of a client run")             \
    X(KINF__RANK_CONTROLLER, "controller", "whether calls may begin, what they wrote")             \
    X(KINF__RANK_FACTORY, "informer.factory", "a factory's informers, and whose turn it is")       \
    X(KINF__RANK_HANDLERS, "informer.handlers", "who listens, and who is leaving")                 \
    X(KINF__RANK_CALLBACKS, "informer.callbacks", "which informers wait for which")                \
    X(KINF__RANK_ELECTOR, "elector", "who leads, and what of it is told")                          \
    X(KINF__RANK_RECORDER, "recorder", "events that wait to be sent")                              \
    X(KINF__RANK_OUTBOX, "handlers.outbox", "what a handler of the daemon is to be told")          \
    X(KINF__RANK_STATE, "daemon.state", "which stores are kept in files")                          \
    X(KINF__RANK_STATE_LOAD, "state.load", "who makes objects of which section of a file")         \
    X(KINF__RANK_CLIENT, "rest.client", "who uses a client")                                       \
    X(KINF__RANK_LIFECYCLE, "informer.lifecycle", "start and stop of an informer")                 \
    X(KINF__RANK_APPLY, "informer.apply",                                                          \
      "store update with its distribution, against joining handlers")                              \
    X(KINF__RANK_LISTENER, "informer.listener", "one handler's queue")                             \
    X(KINF__RANK_FIFO, "deltafifo", "the queue")                                                   \
    X(KINF__RANK_WATCHCACHE, "watchcache", "what a type is served from: history, cursors")         \
    X(KINF__RANK_INDEXER, "indexer", "the store's current version")                                \
    X(KINF__RANK_GRAVEYARD, "indexer.graveyard", "tree nodes waiting to be freed")                 \
    X(KINF__RANK_STATUS, "status", "an informer's visible state")                                  \
    X(KINF__RANK_DISCOVERY, "rest.discovery", "whose turn it is to read discovery")                \
    X(KINF__RANK_REQUESTS, "rest.requests", "a client's idle connections, its rate limit")         \
    X(KINF__RANK_CREDENTIALS, "rest.credentials", "tokens and certificates")                       \
    X(KINF__RANK_TYPES, "object.types", "the table of resource types")                             \
    X(KINF__RANK_QUEUE, "queue", "keys that are to be worked on")                                  \
    X(KINF__RANK_PLUGIN, "handlers.plugin", "what a plugin counts, and which call is under way")   \
    X(KINF__RANK_DAEMON, "daemon", "why the daemon ends")                                          \
    X(KINF__RANK_FORWARD, "serve.forward", "requests that are passed through")                     \
    X(KINF__RANK_SESSION, "serve.session", "what a cache has to show")                             \
    X(KINF__RANK_FAULTS, "sim.faults", "which requests fail, and the streams that wait")           \
    X(KINF__RANK_CONNECTION, "serve.connection", "whether a connection sleeps, or owes a head")    \
    X(KINF__RANK_REQUEST_METRICS, "serve.request_metrics", "how often what was asked for")         \
    X(KINF__RANK_ACCESS_LOG, "daemon.access_log", "lines that are to be written")                  \
    X(KINF__RANK_OUTPUT, "daemon.output", "standard output")                                       \
    X(KINF__RANK_LOG, "log", "the log callback")

enum kinf__lock_rank {
#define X(rank, name, what) rank,
    KINF__LOCK_RANKS(X)
#undef X
        KINF__N_RANKS
};

struct KINF__CAPABILITY kinf__mutex {
    pthread_mutex_t mutex;
    enum kinf__lock_rank rank;
};

#define KINF__MUTEX_INIT(lock_rank)                                                                \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER, (lock_rank)                                                     \
    }

void kinf__mutex_init(struct kinf__mutex *mutex, enum kinf__lock_rank rank);
void kinf__mutex_release(struct kinf__mutex *mutex);
void kinf__mutex_lock(struct kinf__mutex *mutex) KINF__ACQUIRES(mutex);
void kinf__mutex_unlock(struct kinf__mutex *mutex) KINF__RELEASES(mutex);

/* Whether this thread holds no ranked lock. Always true in release builds: for assertions in front
 * of user code only. */
bool kinf__mutex_none_held(void);

struct kinf__cond {
    pthread_cond_t cond;
};

void kinf__cond_init(struct kinf__cond *cond);
void kinf__cond_release(struct kinf__cond *cond);
void kinf__cond_signal(struct kinf__cond *cond);
void kinf__cond_broadcast(struct kinf__cond *cond);

/* Waits until signalled, spuriously woken, or `deadline_ms` (monotonic, KINF__NEVER_MS allowed) is
 * over. Returns false only when it is over. */
bool kinf__cond_wait_until(struct kinf__cond *cond, struct kinf__mutex *mutex, int64_t deadline_ms)
    KINF__REQUIRES(mutex);

#endif
