/*
 * Faults on demand: which requests fail, how, and how often. Seeded and repeatable: the same
 * requests in the same order get the same faults.
 *
 * Threads: any thread.
 */
#ifndef KINF_FAULT_FAULT_H
#define KINF_FAULT_FAULT_H

#include "base/buffer.h"
#include "serve/backend.h"

struct kinf__faults;

/* Starts the thread that wakes what waits. Errors: KINF_ERR_NO_MEMORY, KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__faults_new(uint64_t seed, struct kinf__faults **ret_faults,
                                     struct kinf_error *err);
/* Before kinf__server_stop(): nothing waits any more, and nothing fails. What stalls breaks. */
void kinf__faults_stop(struct kinf__faults *faults);
/* No request is under way: the endpoints are freed. NULL is allowed. */
void kinf__faults_free(struct kinf__faults *faults);

/* Adds one, in the grammar of fault_spec.h, and returns its number, from 1; those before it are
 * asked first. Errors: KINF_ERR_PARSE, KINF_ERR_LIMIT (1,000 are there), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__faults_add(struct kinf__faults *faults, const char *spec,
                                     unsigned *ret_id, struct kinf_error *err);
/* 0: all of them. Requests that it has hit already stay hit. Errors: KINF_ERR_NOT_FOUND. */
KINF_MUST_CHECK int kinf__faults_remove(struct kinf__faults *faults, unsigned id);

#define KINF__FAULT_TARGET_SIZE 256
struct kinf__fault_tally {
    uint64_t n_requests; /* that the line selected, and none before it took */
    uint64_t n_hits;     /* of these: that it has hit */
    uint64_t n_over;     /* of these: that have ended, carried out or not */
    char first_hit[KINF__FAULT_TARGET_SIZE + 20]; /* "patch /api/v1/..."; "": none */
};
/* All zero if there is none of this number. */
struct kinf__fault_tally kinf__faults_tally(struct kinf__faults *faults, unsigned id);
/* Appends {"faults":[{"id":1,"spec":"...","requests":4,"hits":2},...]} with a line end: how many
 * requests it selected, and how many of them failed. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__faults_write(struct kinf__faults *faults, struct kinf__buffer *out);
/* Appends {"requests":[{"number":7,"verb":"list","target":"/api/...","fault":1},...]}: the last
 * ones, the oldest first; long targets are cut; "fault" 0: none. Errors: as above. */
KINF_MUST_CHECK int kinf__faults_write_requests(struct kinf__faults *faults,
                                                struct kinf__buffer *out);

/* To put into a struct kinf__backend, with their own ctx. */
struct kinf__fault *kinf__faults_find(struct kinf__faults *faults,
                                      const struct kinf__request_head *head,
                                      const struct kinf__request *request);
int kinf__fault_hold(struct kinf__fault *fault, const struct kinf__exchange_owner *owner,
                     struct kinf__refusal *refusal);
int kinf__fault_distort(struct kinf__fault *fault, const struct kinf__exchange_owner *owner,
                        struct kinf__answer *answer);
void kinf__fault_free(struct kinf__fault *fault);

#endif
