/*
 * What the tests of patches share: tables of documents before and after.
 *
 * Texts in tables have ' where JSON has ".
 */
#ifndef KINF_TESTS_UNIT_PATCH_FIXTURE_H
#define KINF_TESTS_UNIT_PATCH_FIXTURE_H

#include "document/patch.h"

/* Everything of one kind of patch, over the same schema or none. */
typedef int test_patch_fn(struct cJSON **tree, const struct cJSON *patch,
                          struct kinf__refusal *refusal);

struct test_patch_row {
    const char *before;
    const char *patch;
    const char *after; /* NULL: refused */
    int code;
    const char *message;
};

/* Fails the test if the text is no JSON. The caller frees it. */
struct cJSON *test_json(const char *text);
/* Members of equal documents may come in any order, elements may not. */
void test_patch_row(const struct test_patch_row *row, test_patch_fn *patch);
/* Every allocation fails once, of the row's patch, cJSON's too. */
void test_patch_row_without_memory(const struct test_patch_row *row, test_patch_fn *patch);

#endif
