/*
 * Faults on demand: which requests fail, how, and how often. Seeded and repeatable.
 *
 * Threads: any thread.
 */
#ifndef KINF_SIM_FAULT_H
#define KINF_SIM_FAULT_H

#include "serve/backend.h"

struct kinf__faults;

/* Errors: KINF_ERR_NO_MEMORY, KINF_ERR_SYSTEM. */
KINF_MUST_CHECK int kinf__faults_new(uint64_t seed, struct kinf__faults **ret_faults,
                                     struct kinf_error *err);
/* No request is under way. NULL is allowed. */
void kinf__faults_free(struct kinf__faults *faults);

/* Adds one, in the grammar of fault.c, and returns its number. Errors: KINF_ERR_PARSE. */
KINF_MUST_CHECK int kinf__faults_add(struct kinf__faults *faults, const char *spec,
                                     unsigned *ret_id, struct kinf_error *err);
/* 0: all of them. That there is none of this number is KINF_ERR_NOT_FOUND. */
KINF_MUST_CHECK int kinf__faults_remove(struct kinf__faults *faults, unsigned id);

/* To put into a struct kinf__backend, with their own ctx. */
struct kinf__fault *kinf__faults_find(struct kinf__faults *faults,
                                      const struct kinf__exchange_head *head,
                                      const struct kinf__request *request);
int kinf__fault_hold(struct kinf__fault *fault, const struct kinf__exchange_owner *owner,
                     struct kinf__refusal *refusal);
int kinf__fault_distort(struct kinf__fault *fault, const struct kinf__exchange_owner *owner,
                        struct kinf__answer *answer);
void kinf__fault_free(struct kinf__fault *fault);

#endif
