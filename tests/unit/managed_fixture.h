/*
 * Types and steps for the tests of managed fields. The tables of steps are recorded from
 * kube-apiserver 1.37.1: what was sent, and what was there afterwards.
 *
 * Threads: one.
 */
#ifndef KINF_TESTS_UNIT_MANAGED_FIXTURE_H
#define KINF_TESTS_UNIT_MANAGED_FIXTURE_H

#include "document/managed.h"

/* The kinds, as the server's schema has them, as far as the tests go. A Widget is a custom resource
 * with everything there is in lists and maps. */
enum test_kind {
    TEST_CONFIG_MAP,
    TEST_SERVICE,
    TEST_DEPLOYMENT,
    TEST_WIDGET,
};

const struct kinf__schema_node *test_kind_schema(enum test_kind kind);

enum test_op {
    CREATE, /* the body has its defaults */
    PUT,
    MERGE, /* a merge patch */
    APPLY,
    FORCE,
};

/* Texts have ' for ". Bodies lack apiVersion, kind and name. */
struct test_step {
    enum test_op op;
    const char *manager;
    const char *subresource;
    const char *body;
    /* Lines of managedFields, "a Apply v1 @0: data{x}\n" with the step that gave the time; or of a
     * refusal, "409 message". */
    const char *expected;
    const char *object; /* afterwards, without managedFields; NULL: not compared */
};

/* Does one after the other. */
void test_steps(enum test_kind kind, const char *name, const struct test_step *steps,
                size_t n_steps);
#define TEST_STEPS(kind, name, steps) test_steps(kind, name, steps, sizeof(steps) / sizeof *(steps))

/* cJSON's allocations can fail, too, until false is given. */
void test_fail_trees(bool fails);

/* Of a text with ' for ". The caller frees it. */
struct cJSON *test_tree(const char *text);
/* The lines of an object's managedFields; the caller frees them. */
char *test_print_managed(const struct cJSON *object);

#endif
