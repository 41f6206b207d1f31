/*
 * What a server says of its resources, in both forms: any text gives a type that can be asked for,
 * or a reason. What is made of the aggregated form is JSON.
 */
#include <string.h>

#include "base/error.h"
#include "fuzz/fuzz.h"
#include "json/tree.h"
#include "rest/discovery.h"
#include "rest/documents.h"

struct answers {
    struct kinf__documents documents;
    const char *legacy; /* to every question; NULL: from the documents */
};

static int ask(void *ctx, const char *target, struct cJSON **ret_tree, struct kinf_error *err)
{
    const struct answers *answers = ctx;
    const struct kinf__document *found = kinf__documents_find(&answers->documents, target);

    if (answers->legacy != NULL)
        return kinf__json_tree_parse(kinf_str_from(answers->legacy), ret_tree, err);
    if (found == NULL)
        return kinf__error_set(err, KINF_ERR_NOT_FOUND, "none");
    if (found->text == NULL)
        return kinf__error_set(err, KINF_ERR_SERVER, "away");
    return kinf__json_tree_parse(kinf_str_from(found->text), ret_tree, err);
}

static void find_all(struct answers *answers)
{
    static const char *const names[] = { "pods", "a", "a.b", "a.v1.b", "v1.a", "a.", "po" };
    const struct kinf__discovery_source source = { ask, answers, "host" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct kinf_type *type = NULL;
        struct kinf_error err = KINF_ERROR_INIT;

        if (kinf__discovery_find_from(&source, names[i], &type, &err) == 0)
            FUZZ_REQUIRE(*type->resource != '\0' && *type->version != '\0');
        else
            FUZZ_REQUIRE(type == NULL && err.message[0] != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool is_legacy = fuzz_take_byte(&data, &size) % 2 == 1;
    struct answers answers = { .documents = KINF__DOCUMENTS_INIT };
    char *text = fuzz_text(data, size);

    if (is_legacy)
        answers.legacy = text;
    else
        (void)!kinf__documents_add_aggregated(&answers.documents, (struct kinf_str){ text, size },
                                              NULL);
    for (size_t i = 0; i < answers.documents.n_items; i++) {
        const char *document = answers.documents.items[i].text;
        struct cJSON *tree = NULL;

        if (document == NULL)
            continue;
        FUZZ_REQUIRE(kinf__json_tree_parse(kinf_str_from(document), &tree, NULL) == 0);
        kinf__json_tree_free(tree);
    }
    find_all(&answers);
    kinf__documents_release(&answers.documents);
    free(text);
    return 0;
}
