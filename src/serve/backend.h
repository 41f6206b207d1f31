/*
 * Who answers what the caches do not: a server of its own behind the same paths, which takes writes,
 * decides who may, and can be made to fail. kinformer-sim has one; a cache of another server's
 * objects has none.
 *
 * A backend answers on the connection's thread and must not block. All of its functions are called
 * without a lock, on any thread, several at once.
 *
 * Threads: constant after kinf__server_new().
 */
#ifndef KINF_SERVE_BACKEND_H
#define KINF_SERVE_BACKEND_H

#include "serve/exchange.h"
#include "serve/request.h"
#include "serve/review.h"

/* A request whose body is complete. Everything is borrowed during the call. */
struct kinf__backend_call {
    const struct kinf__request_head *head;
    const struct kinf__request *request;
    struct kinf_str body;
};

/* What becomes of a request that a fault was found for, and of its answer; the backend's. */
struct kinf__fault;

struct kinf__backend {
    /* Whether the caller may: 0, or the refusal is written (401, 403). `attributes` has the verb. */
    int (*admit)(const struct kinf__request_head *head, const struct kinf__attributes *attributes,
                 struct kinf__refusal *refusal, void *ctx);
    /* Whether it answers by itself; else the caches do, if it is a GET. */
    bool (*takes)(const struct kinf__request_head *head, const struct kinf__request *request,
                  void *ctx);
    /* Writes code, content type and body (and warnings) of `answer` and returns 0, or the refusal
     * is written. */
    int (*answer)(const struct kinf__backend_call *call, struct kinf__answer *answer,
                  struct kinf__refusal *refusal, void *ctx);

    /* Faults; all NULL: none. Asked once for each request, before anybody else: whether this one is
     * to fail, and how. NULL: it is not. `request` stays until there is an answer. */
    struct kinf__fault *(*find_fault)(const struct kinf__request_head *head,
                                      const struct kinf__request *request, void *ctx);
    /* Before the request is looked at: 0: go on; KINF__STEP_WAITS: again after owner->wake;
     * negative: the refusal is written. */
    int (*hold)(struct kinf__fault *fault, const struct kinf__exchange_owner *owner,
                struct kinf__refusal *refusal);
    /* The answer on its way out, which is complete: may change anything of it, and put a stream of
     * its own around it, which it then owns. A watch must be read or kept until the exchange ends.
     * KINF__STEP_WAITS: again after owner->wake. Errors: KINF_ERR_NO_MEMORY, the answer is what it
     * is. */
    int (*distort)(struct kinf__fault *fault, const struct kinf__exchange_owner *owner,
                   struct kinf__answer *answer);
    void (*free_fault)(struct kinf__fault *fault);
    void *ctx;
};

#endif
