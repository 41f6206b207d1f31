/*
 * For tests of programs that use kinformer: a Kubernetes API in this process, with a client of it.
 * They speak over unix sockets that no other process may use. No cluster is needed. It is
 * kinformer-sim (see README), so what that can do, this can: types and defaults of kube-apiserver,
 * definitions of custom resources, patches, apply, finalizers, garbage collection, faults.
 *
 *     struct kinf_fake *fake;
 *     kinf_fake_new(NULL, &fake, &err);
 *     start_my_program(kinf_fake_client(fake));
 *     kinf_fake_put(fake, "{kind: Pod, apiVersion: v1, metadata: {name: a}, spec: {...}}", &err);
 *     kinf_fake_settle(fake, 5000, &err);
 *     assert(what the program should have made of it);
 *
 * Part of libkinformer-testing, which is static and goes with the static libkinformer:
 * pkg-config --libs kinformer-testing.
 *
 * Mirrors: client-go's fake clientsets, and envtest.
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
     * default objects do only what the API server itself makes of them. */
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

/* Makes requests fail: "update configmaps 409 times=2", "watch pods reset at=300". The grammar is
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
 * begins then ends then, too. Time goes on by itself as well. */
KINF_API void kinf_fake_advance(struct kinf_fake *fake, int64_t ms);

/* Waits until nothing is under way: what was written has had its consequences in the server, every
 * informer of the client that has been started has seen it, and its handlers have returned; also
 * what those wrote. `timeout_ms` is real time. Errors: KINF_ERR_TIMEOUT (an informer does not get
 * there, or a handler writes for ever; the message says who), KINF_ERR_NO_MEMORY. */
KINF_API KINF_MUST_CHECK int kinf_fake_settle(struct kinf_fake *fake, int64_t timeout_ms,
                                              struct kinf_error *err);

#ifdef __cplusplus
}
#endif
#endif
