/*
 * A simulated server without its sockets: objects are written by the verbs, as JSON, and looked at.
 * Quotes in JSON may be written as apostrophes.
 *
 * Threads: the test's; the server has its worker.
 */
#ifndef KINF_TESTS_UNIT_SIM_FIXTURE_H
#define KINF_TESTS_UNIT_SIM_FIXTURE_H

#include "apiserver/verbs.h"

/* Started, without workloads. */
struct kinf__sim *test_sim_new(void);
void test_sim_free(struct kinf__sim *sim);
/* Waits until the worker has nothing left to do. */
void test_sim_settle(struct kinf__sim *sim);

/* What a write was refused with; all zero: it was not. */
struct test_outcome {
    int code; /* 0: it was done */
    char message[KINF__REFUSAL_MESSAGE_SIZE];
    struct kinf__refusal refusal;
};

/* `resource`: "pods", "deployments.apps". The object names itself. */
struct test_outcome test_create(struct kinf__sim *sim, const char *resource, const char *json);
/* `subresource` "": the object itself. */
struct test_outcome test_update(struct kinf__sim *sim, const char *resource,
                                const char *subresource, const char *json);
/* The object as it is, with `json` merged into it (RFC 7386), is what is written. */
struct test_outcome test_merge(struct kinf__sim *sim, const char *resource, const char *key,
                               const char *subresource, const char *json);
struct test_outcome test_delete(struct kinf__sim *sim, const char *resource, const char *key,
                                enum kinf__propagation propagation);
/* These fail the test unless they succeed. */
void test_must_create(struct kinf__sim *sim, const char *resource, const char *json);
void test_must_merge(struct kinf__sim *sim, const char *resource, const char *key,
                     const char *subresource, const char *json);
void test_must_delete(struct kinf__sim *sim, const char *resource, const char *key,
                      enum kinf__propagation propagation);
/* `grace_s` negative: not said. */
void test_must_delete_within(struct kinf__sim *sim, const char *resource, const char *key,
                             int64_t grace_s);

/* NULL: it is not there. The caller frees it. */
struct cJSON *test_get(struct kinf__sim *sim, const char *resource, const char *key);
bool test_is_there(struct kinf__sim *sim, const char *resource, const char *key);
/* That what is at the path ("spec.ports.0.port"; names with dots are not for this) is this value. */
void test_expect(struct kinf__sim *sim, const char *resource, const char *key, const char *path,
                 const char *json);

#endif
