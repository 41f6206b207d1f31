/*
 * A simulated server whose worker is the test: controllers are called by hand, and time is a number.
 *
 * Threads: one thread.
 */
#ifndef KINF_TESTS_UNIT_WORKLOADS_FIXTURE_H
#define KINF_TESTS_UNIT_WORKLOADS_FIXTURE_H

#include "apiserver/sim.h"
#include "apiserver/verbs.h"

#define WORKED_MAX 3

struct worked {
    struct kinf__sim *sim;
    struct kinf__controller *controllers[WORKED_MAX]; /* the sim's */
    int64_t due_ms[WORKED_MAX];
    size_t n_controllers;
    int64_t now_ms;
};

/* With nothing in it, and no controller that works. */
void worked_init(struct worked *worked, uint64_t seed);
void worked_release(struct worked *worked);
/* The sim's from here on, and called from here on. */
void worked_add(struct worked *worked, struct kinf__controller *take_controller);
/* With the workloads. */
void worked_init_workloads(struct worked *worked, uint64_t seed);

/* Goes to the next time that somebody wants, and calls who does, once. False: that is not before
 * `until_ms`, which is now. */
bool worked_step(struct worked *worked, int64_t until_ms);
/* All that happens within `ms`. */
void worked_run(struct worked *worked, int64_t ms);

/* Objects are JSON with ' for "; all of these fail the test. */
void worked_create(struct worked *worked, const char *group, const char *resource,
                   const char *object);
void worked_merge(struct worked *worked, const char *group, const char *resource, const char *key,
                  const char *patch);
void worked_merge_status(struct worked *worked, const char *group, const char *resource,
                         const char *key, const char *patch);
void worked_delete(struct worked *worked, const char *group, const char *resource, const char *key);
/* The caller frees it; NULL: there is none. */
struct cJSON *worked_get(struct worked *worked, const char *group, const char *resource,
                         const char *key);
/* What stands at a path of cursors' grammar ("status.phase"), as text; "": nothing. Of the test's
 * until the next call. */
const char *worked_text(struct worked *worked, const char *group, const char *resource,
                        const char *key, const char *path);
int64_t worked_number(struct worked *worked, const char *group, const char *resource,
                      const char *key, const char *path);
/* Those of the namespace, all if it is NULL; the caller releases them. */
struct kinf_object_list worked_list(struct worked *worked, const char *group, const char *resource,
                                    const char *name_space);

#endif
