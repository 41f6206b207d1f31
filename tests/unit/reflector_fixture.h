/*
 * What the reflector's tests share: a reflector with all it works between, and the bodies that its
 * scripted server sends.
 *
 * Threads: the test's; the reflector calls back on its own.
 */
#ifndef KINF_TESTS_UNIT_REFLECTOR_FIXTURE_H
#define KINF_TESTS_UNIT_REFLECTOR_FIXTURE_H

#include <pthread.h>

#include "base/buffer.h"
#include "reflector/reflector.h"
#include "unit/scripted_server.h"
#include "unit/test.h"

#define POD(name, rv)                                                                              \
    "{\"metadata\":{\"namespace\":\"n\",\"name\":\"" name "\",\"uid\":\"u-" name                   \
    "\",\"resourceVersion\":\"" rv "\"},\"spec\":{\"nodeName\":\"x\"}}"
#define LIST(rv, more, items)                                                                      \
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" rv          \
    "\"" more "},\"items\":[" items "]}\n"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define BOOKMARK(rv)                                                                               \
    EVENT("BOOKMARK",                                                                              \
          "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" rv        \
          "\"}}")
#define STATUS(code, reason)                                                                       \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"m\","         \
    "\"reason\":\"" reason "\",\"code\":" code "}"
#define WATCH_FROM(rv)                                                                             \
    "/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=" rv "&timeoutSeconds=1\n"

/* Whether an object is still as it was, after an outage; and as of a version. */
#define VERIFY(name) "/api/v1/namespaces/n/pods?fieldSelector=metadata.name%3D" name "&limit=1\n"
#define VERIFY_AT(name, rv)                                                                        \
    "/api/v1/namespaces/n/pods?fieldSelector=metadata.name%3D" name                                \
    "&limit=1&resourceVersionMatch=Exact&resourceVersion=" rv "\n"
/* How many there were at a version, and the answer of a server that has forgotten it. */
#define VERIFY_COUNT(rv) "/api/v1/pods?limit=1&resourceVersionMatch=Exact&resourceVersion=" rv "\n"
#define UNCOUNTED                                                                                  \
    {                                                                                              \
        .status = "410 Gone", .body = STATUS("410", "Expired")                                     \
    }

/* A reflector with all it works between. */
struct reflector_fixture {
    struct replay *server;
    struct kinf_client *client;
    struct kinf_indexer *indexer;
    struct kinf_deltafifo *fifo;
    struct kinf__prune_plan *plan;
    struct kinf__reflector_options options;
    struct kinf__reflector *reflector;
    struct kinf__buffer popped;
    size_t n_objects_before;

    /* guarded by lock; written by the reflector's callbacks */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct kinf__buffer phases;
    struct kinf__buffer quarantined;
    int64_t wait_ms;
    size_t n_contacts;
};

void reflector_set_up(struct reflector_fixture *f, const struct test_reply *replies,
                      size_t n_replies);
#define SET_UP(f, replies) reflector_set_up((f), (replies), KINF__ARRAY_LEN(replies))
void reflector_start(struct reflector_fixture *f);
/* Stops the reflector; returns how long that took. */
int64_t reflector_stop(struct reflector_fixture *f);
/* Stops everything. No object is left. */
void reflector_tear_down(struct reflector_fixture *f);

struct kinf__reflector_counts reflector_counts(struct reflector_fixture *f);

/* Waits until the phases so far begin with `expected`. */
void reflector_expect_phases(struct reflector_fixture *f, const char *expected);
/* Waits until so many proofs of life came. */
void reflector_expect_contacts(struct reflector_fixture *f, size_t n);
/* Processes what comes until it is `expected`: the first letter of each delta's type ('!': a
 * tombstone) with "ns/name@rv". */
void reflector_expect_deltas(struct reflector_fixture *f, const char *expected);
/* What was asked for so far, after the `n`-th request was answered. */
void reflector_expect_targets(struct reflector_fixture *f, size_t n, const char *expected);

/* Starts in this way, waits for so many requests and these phases, and stops within the limit. */
void reflector_stops_at_once(enum kinf_initial initial, const struct test_reply *replies,
                             size_t n_replies, size_t n_requests, const char *phases);
#define STOPS_AT_ONCE(initial, replies, phases)                                                    \
    reflector_stops_at_once((initial), (replies), KINF__ARRAY_LEN(replies),                        \
                            KINF__ARRAY_LEN(replies), (phases))

#endif
