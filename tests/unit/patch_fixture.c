/*
 * Rows of before, patch and after.
 */
#include "unit/patch_fixture.h"

#include <stdio.h>
#include <string.h>

#include "unit/allocation.h"
#include "unit/test.h"

struct cJSON *test_json(const char *text)
{
    KINF__AUTO_FREE char *json = NULL;
    struct kinf_error err = KINF_ERROR_INIT;
    struct cJSON *tree;

    /* The memory that a test wants to fail is not this. */
    assert_true(asprintf(&json, "%s", text) >= 0);
    for (char *at = json; *at != '\0'; at++)
        *at = *at == '\'' ? '"' : *at;
    if (kinf__doc_parse(kinf_str_from(json), &tree, &err) < 0)
        fail_msg("%s: %s", json, err.message);
    return tree;
}

static void expect_document(const struct test_patch_row *row, const struct cJSON *tree)
{
    KINF__AUTO_DOC *after = test_json(row->after);
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    assert_int_equal(kinf__doc_print(tree, &text), 0);
    if (!kinf__doc_equal(tree, after))
        fail_msg("%s with %s became %s", row->before, row->patch, kinf__buffer_cstr(&text));
}

static void expect_refusal(const struct test_patch_row *row, int result,
                           const struct kinf__refusal *refusal)
{
    assert_int_equal(result, KINF_ERR_INVALID);
    if (refusal->code != row->code || strcmp(refusal->message, row->message) != 0)
        fail_msg("%s with %s: %d '%s'", row->before, row->patch, refusal->code, refusal->message);
}

void test_patch_row(const struct test_patch_row *row, test_patch_fn *patch)
{
    KINF__AUTO_DOC *tree = test_json(row->before);
    KINF__AUTO_DOC *document = test_json(row->patch);
    KINF__AUTO_BUFFER text_before = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER text_after = KINF__BUFFER_INIT;
    struct kinf__refusal refusal = { 0 };
    int result;

    assert_int_equal(kinf__doc_print(document, &text_before), 0);
    result = patch(&tree, document, &refusal);

    if (row->after == NULL)
        expect_refusal(row, result, &refusal);
    else if (result < 0)
        fail_msg("%s with %s: %s", row->before, row->patch, refusal.message);
    else
        expect_document(row, tree);
    assert_int_equal(kinf__doc_print(document, &text_after), 0);
    assert_string_equal(kinf__buffer_cstr(&text_before), kinf__buffer_cstr(&text_after));
}

static void *counted_malloc(size_t size)
{
    return malloc(size);
}

void test_patch_row_without_memory(const struct test_patch_row *row, test_patch_fn *patch)
{
    struct cJSON_Hooks hooks = { counted_malloc, free };
    struct kinf__refusal refusal = { 0 };
    bool has_failed = true;
    int result;

    cJSON_InitHooks(&hooks);
    for (size_t n = 1; has_failed; n++) {
        KINF__AUTO_DOC *tree = test_json(row->before);
        KINF__AUTO_DOC *document = test_json(row->patch);

        test_fail_allocation(n);
        result = patch(&tree, document, &refusal);
        has_failed = test_allocation_failed();
        /* A comparison goes on without an index. */
        if (has_failed && result == KINF_ERR_NO_MEMORY)
            assert_int_equal(refusal.code, 500);
        else
            assert_int_equal(result, row->after != NULL ? 0 : KINF_ERR_INVALID);
    }
    cJSON_InitHooks(NULL);
}
