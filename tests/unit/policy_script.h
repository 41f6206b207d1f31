/*
 * Scripts for the policy: what it must ask for next, and what happens, word by word.
 *
 * Words that begin with '?' are what the policy must ask for next:
 *   ?list ?list@RV ?list,LIMIT ?list+TOKEN,LIMIT ?stream ?stream@RV ?watch@RV ?verify ?ask
 *   ?wait ?wait/MS ?stop
 * (?wait also lets the time pass). The others are what happens:
 *   page=RV page=RV+TOKEN  a page, with a continue token
 *   page=RV+TOKEN/N        the first page of N kB, of a state of 100 times as many bytes
 *   news=RV                a whole list that differs from what is stored
 *   initial=RV initial=RV/N  the bookmark behind the initial events, behind N kB
 *   nolist=E  cutlist=E    a list failed before, or after the body began
 *   noverify=E             a verification came to nothing
 *   counted                verified, and as many as are known
 *   accepted rv=RV bookmark=RV ended silent nowatch=E error=E undecodable verified doubted gone
 *   not_gone stop
 *   resume=RV              first of all: a state of an earlier run is there
 *   unconfirmed confirmed  no event: what the policy says of that
 *   +MS                    time passes
 *
 * Threads: the test's.
 */
#ifndef KINF_TESTS_UNIT_POLICY_SCRIPT_H
#define KINF_TESTS_UNIT_POLICY_SCRIPT_H

#include "reflector/policy.h"

/* The failures that E names. */
struct policy_error {
    const char *name;
    struct kinf_error err;
};
extern const struct policy_error policy_errors[];
extern const size_t n_policy_errors;

/* One run of a policy. The invariants are checked after each step. */
struct policy_run {
    struct kinf__policy policy;
    int64_t now_ms;
    uint64_t random; /* of each call: 0 is the least wait */
    struct kinf__policy_action action;
};

#define POLICY_RUN_BEGIN_MS 1000000

struct policy_run policy_run_new(const struct kinf__policy_options *options);
/* Fills in `action`. */
void policy_run_next(struct policy_run *run);
void policy_run_tell(struct policy_run *run, struct kinf__policy_event event);
void policy_run_play(struct policy_run *run, const char *script);

#endif
