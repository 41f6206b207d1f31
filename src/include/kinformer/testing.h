/*
 * For tests of programs that use kinformer: a Kubernetes API in this process, with a client of it.
 * They speak over unix sockets that no other process may use. No cluster is needed. It is
 * kinformer-sim (see docs/testing.md), so what that can do, this can: types and defaults of kube-apiserver,
 * definitions of custom resources, patches, apply, finalizers, garbage collection, faults.
 *
 *     struct kinf_fake *fake;
 *     kinf_fake_new(NULL, &fake, &err);
 *     start_my_program(kinf_fake_client(fake));
 *     kinf_fake_put(fake, "{kind: Pod, apiVersion: v1, metadata: {name: a}, spec: {...}}", &err);
 *     kinf_fake_settle(fake, 5000, &err);
 *     assert(what the program should have made of it);
 *
 * kinf_sweep() tries a controller with each of its requests failing in turn.
 *
 * Part of libkinformer-testing, which is static and goes with the static libkinformer:
 * pkg-config --libs kinformer-testing.
 *
 * Mirrors: client-go's fake clientsets, and envtest; faults: controller-runtime's interceptor.
 * Threads: any thread, but new and free.
 */
#ifndef KINFORMER_TESTING_H
#define KINFORMER_TESTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kinformer/client.h>
#include <kinformer/error.h>
#include <kinformer/object.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kinf_fake;

struct kinf_fake_options {
    size_t size;   /* of this struct; KINF_FAKE_OPTIONS_INIT sets it */
    uint64_t seed; /* of uids, generated names and faults by chance: the same seed, the same run */
    /* Pods of deployments and the like come to be, are bound, run and end, as in a cluster. By
     * default objects do only what the API server itself makes of them. All of it takes some seconds,
     * for which kinf_fake_settle_ahead() waits. */
    bool has_workloads;
};
#define KINF_FAKE_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(struct kinf_fake_options), 0, false                                                 \
    }

/* `options` NULL: the defaults. Errors: KINF_ERR_INVALID (the size is of no version of this
 * library), KINF_ERR_NO_MEMORY, KINF_ERR_SYSTEM. */
KINF_API KINF_MUST_CHECK int kinf_fake_new(const struct kinf_fake_options *options,
                                           struct kinf_fake **ret_fake, struct kinf_error *err);
/* Informers of its client are freed before, else it is refused as kinf_client_free() is. NULL is
 * allowed. */
KINF_API void kinf_fake_free(struct kinf_fake *fake);
KINF_API void kinf_fake_free_ptr(struct kinf_fake **fake);
#define kinf_auto_fake __attribute__((cleanup(kinf_fake_free_ptr)))

/* The client of this server, without a rate limit; the fake's own, which frees it. */
KINF_API struct kinf_client *kinf_fake_client(struct kinf_fake *fake);

/* Creates the objects of a manifest, YAML (any number of documents) or JSON; those that are there are
 * replaced, and the status that a manifest says is stored, too. Namespaces other than default are
 * objects like others. Errors: KINF_ERR_PARSE (with the place), KINF_ERR_CONFIG (what the API server
 * refuses, in its words), KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_fake_put(struct kinf_fake *fake, const char *manifest,
                                           struct kinf_error *err);
/* The object as it is now, with a reference for the caller; `key` is "namespace/name", or "name" of
 * what is cluster-scoped. `resource` as kubectl spells it. Errors: KINF_ERR_NOT_FOUND (object, or
 * resource), KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_fake_get(struct kinf_fake *fake, const char *resource,
                                           const char *key, const struct kinf_object **ret_object,
                                           struct kinf_error *err);
/* As a client would delete it that gives it no time: finalizers hold it, a grace period does not.
 * Errors: as above, KINF_ERR_CONFLICT. */
KINF_API KINF_MUST_CHECK int kinf_fake_delete(struct kinf_fake *fake, const char *resource,
                                              const char *key, struct kinf_error *err);

/* Makes requests fail: "update configmaps 409 times=2", "watch pods reset at=300"; of all writes but
 * the elector's the fourth: "write *,!leases 429 retry-after=1 skip=3 times=1"; its answer is lost,
 * or its connection breaks before it is carried out: "reset", "reset early". The grammar is
 * kinformer-sim's (`kinformer-sim --help`). Errors: KINF_ERR_PARSE, KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_fake_fault(struct kinf_fake *fake, const char *spec,
                                             struct kinf_error *err);
/* Takes back all of them. */
KINF_API void kinf_fake_clear_faults(struct kinf_fake *fake);
/* Breaks every request that is under way, watches included: faults hit those that begin later. */
KINF_API void kinf_fake_drop(struct kinf_fake *fake);

/* Time goes on by this much, for this whole process: leases, backoffs, resync periods and timeouts
 * move by it, in the program and in the server. It does so in steps of a second (no more than 200 of
 * them), with some milliseconds in between, in which what has become due happens: a backoff that
 * begins then ends then, too. Time goes on by itself as well. Less than 0, or more than ten years, is
 * refused. */
KINF_API void kinf_fake_advance(struct kinf_fake *fake, int64_t ms);

/* Another process takes this Lease ("namespace/name"), and renews it now: as if its holder's time had
 * been over. Each call is a renewal. Nothing renews it by itself: whoever stands for election leads
 * again when the Lease's duration is over. Errors: KINF_ERR_CONFIG, KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_fake_take_lease(struct kinf_fake *fake, const char *key,
                                                  struct kinf_error *err);

/* Waits until nothing is under way: what was written has had its consequences in the server; every
 * informer of the client that has been started has seen it, and its handlers have returned; every
 * controller of the client that runs has begun its calls and has no key that waits or is in process
 * (so that its caches have what it wrote), or waits for its turn to lead; also what those wrote.
 * Keys that are for later (backoffs, requeue-after) are left, and so are queues that are no
 * controller's. `timeout_ms` is real time. Errors: KINF_ERR_TIMEOUT (an informer or controller does
 * not get there, or a handler writes for ever; the message says who), KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_fake_settle(struct kinf_fake *fake, int64_t timeout_ms,
                                              struct kinf_error *err);
/* The same, and time goes on, `ahead_ms` at most, as far as it must until no controller has a key
 * that is due within `ahead_ms` of this call, and all lead: backoffs and Leases of the dead end, and a
 * requeue-after that is shorter comes as often as it fits. So do the steps of workloads, if there are.
 * One that waits for its turn because another leads all the time takes all of it. Resync periods are
 * not waited for, but come if time passes. */
KINF_API KINF_MUST_CHECK int kinf_fake_settle_ahead(struct kinf_fake *fake, int64_t ahead_ms,
                                                    int64_t timeout_ms, struct kinf_error *err);

/* --- sweeps --- */

/*
 * Whether a controller ends up the same whatever happens to one of its requests: it is run once
 * without a fault, and then, with each fault at each of its requests in turn, on a new fake each
 * time. The objects that are there in the end must be the same.
 *
 * A request is one that has a resource, and is no list or watch; the program's requests are counted
 * as they come, from 1. What is compared are the objects of all types but Leases and Events, without
 * what differs from run to run: resourceVersion, uid, generation, managed fields, times, ids of
 * containers, the generated part of a name, and the order of arrays.
 *
 * Mirrors: no toolkit has one.
 */

/* X(enumerator, bit, what happens). Bits, for the options. */
#define KINF_SWEEP_FAULTS(X)                                                                       \
    X(KINF_SWEEP_REFUSED, 1, "it is refused with 503")                                             \
    X(KINF_SWEEP_BUSY, 2, "it is refused with 429 and Retry-After")                                \
    X(KINF_SWEEP_CONFLICT, 4, "it is refused with 409; of updates and patches")                    \
    X(KINF_SWEEP_CUT, 8, "its connection breaks before it is carried out")                         \
    X(KINF_SWEEP_ANSWER_LOST, 16, "it is carried out, and its answer is lost")                     \
    X(KINF_SWEEP_KILLED, 32, "the program is killed before it is carried out, and started anew")   \
    X(KINF_SWEEP_KILLED_BEHIND, 64, "it is carried out, the program killed, and started anew")     \
    X(KINF_SWEEP_LEAD_LOST, 128, "another takes the Lease before it is carried out")

enum kinf_sweep_fault {
#define X(fault, bit, what) fault = bit,
    KINF_SWEEP_FAULTS(X)
#undef X
};

/* All zero but `size`, `start`, `stop` and `scenario` is the default. */
struct kinf_sweep_options {
    size_t size; /* of this struct: KINF_SWEEP_OPTIONS_INIT sets it */

    /* All are called on the thread of kinf_sweep(), and return 0 or a negative enum kinf_errc. */

    /* Starts the program with this client, as its main() would, and returns. If it fails, nothing of
     * it is left. */
    int (*start)(struct kinf_client *client, void *ctx, struct kinf_error *err);
    /* Ends it and frees what it has. Of one that is killed no request arrives any more by then, and
     * time flies until this returns: it may wait for its threads. */
    void (*stop)(void *ctx);
    /* What happens in the cluster while the program runs; calls kinf_fake_settle_ahead() where what
     * comes next is not to come at once. The end is waited for by the sweep. Writes by
     * kinf_fake_put() and kinf_fake_delete(): requests of its own would be counted, too. */
    int (*scenario)(struct kinf_fake *fake, void *ctx, struct kinf_error *err);
    /* What is there before the program starts, say definitions; NULL: nothing. */
    int (*before)(struct kinf_fake *fake, void *ctx, struct kinf_error *err);
    void *ctx;

    const struct kinf_fake_options *fake; /* NULL: the defaults */
    /* Requests for which resources, as kinf_fake_fault() spells them; NULL: *,!leases,!events */
    const char *resources;
    const char *lease;  /* of the program's elector, "namespace/name"; NULL: it has none */
    unsigned faults;    /* bits of enum kinf_sweep_fault; 0: all, LEAD_LOST if there is a Lease */
    int64_t ahead_ms;   /* of the last settling (kinf_fake_settle_ahead()); 0: 60,000 */
    int64_t timeout_ms; /* likewise, of real time; 0: 30,000 */
};
#define KINF_SWEEP_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(struct kinf_sweep_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0 \
    }

struct kinf_sweep_result {
    /* NULL: nothing is wrong. Else the first that is: the request, the fault, and a line for each
     * value that differs (- without the fault, + with it), or what never ended. Freed by free(). */
    char *report;
    size_t n_requests;    /* of the program, without faults */
    size_t n_runs;        /* with a fault */
    uint64_t reserved[4]; /* 0: for members to come */
};

/* Ends with the first fault that makes a difference; that is success, with a report. Errors:
 * KINF_ERR_INVALID (options), KINF_ERR_STATE (two runs without a fault differ: *ret_result has the
 * report; or the program sends no such request), KINF_ERR_NO_MEMORY, and what start, scenario or
 * settling fail with when there is no fault. */
KINF_API KINF_MUST_CHECK int kinf_sweep(const struct kinf_sweep_options *options,
                                        struct kinf_sweep_result *ret_result,
                                        struct kinf_error *err);

#ifdef __cplusplus
}
#endif
#endif
