/*
 * Patches, as a client of the simulated server would send them: a byte for the kind, a line for the
 * document, the rest is the patch.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "document/patch.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* Lists of objects inside each other, of scalars, and one that is replaced. */
static struct kinf__schema_node root, list, texts, set, atomic;
static const struct kinf__schema_node text = { .kind = KINF__SCHEMA_STRING, .name = "" };
static const struct kinf__schema_field fields[] = {
    { .name = "a", .node = &list },   { .name = "f", .node = &set },
    { .name = "l", .node = &texts },  { .name = "n", .node = &text },
    { .name = "r", .node = &atomic },
};

static void set_up(void)
{
    root = (struct kinf__schema_node){ .name = "x.Node", .fields = fields, .n_fields = N(fields) };
    list = (struct kinf__schema_node){
        .kind = KINF__SCHEMA_LIST, .name = "", .element = &root, .merge_key = "n"
    };
    texts = (struct kinf__schema_node){ .kind = KINF__SCHEMA_MAP, .name = "", .element = &text };
    set = (struct kinf__schema_node){
        .kind = KINF__SCHEMA_LIST, .name = "", .element = &text, .merge_key = ""
    };
    atomic = (struct kinf__schema_node){ .kind = KINF__SCHEMA_LIST, .name = "", .element = &root };
}

/* What comes out can be written and read again. */
static void check_tree(const struct cJSON *tree)
{
    KINF__AUTO_BUFFER text_before = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER text_after = KINF__BUFFER_INIT;
    KINF__AUTO_DOC *again = NULL;

    FUZZ_REQUIRE(kinf__doc_print(tree, &text_before) == 0);
    FUZZ_REQUIRE(kinf__doc_parse(kinf__buffer_str(&text_before), &again, NULL) == 0);
    FUZZ_REQUIRE(kinf__doc_print(again, &text_after) == 0);
    FUZZ_REQUIRE(kinf_str_equal(kinf__buffer_str(&text_before), kinf__buffer_str(&text_after)));
}

static void try_patch(unsigned how, struct cJSON **tree, const struct cJSON *patch)
{
    struct kinf__refusal refusal = { 0 };
    int result;

    if (how % 3 == 0)
        result = kinf__patch_json(tree, patch, &refusal);
    else if (how % 3 == 1)
        result = kinf__patch_merge(tree, patch, &refusal);
    else
        result = kinf__patch_strategic(tree, patch, how % 2 == 0 ? &root : NULL, &refusal);
    if (result < 0)
        FUZZ_REQUIRE(refusal.code >= 400 && refusal.message[0] != '\0');
    else
        check_tree(*tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned how = fuzz_take_byte(&data, &size);
    KINF__AUTO_FREE char *document = fuzz_text(data, size);
    char *line_end = strchr(document, '\n');
    KINF__AUTO_DOC *tree = NULL;
    KINF__AUTO_DOC *patch = NULL;

    if (line_end == NULL)
        return 0;
    set_up();
    *line_end = '\0';
    if (kinf__doc_parse(kinf_str_from(document), &tree, NULL) == 0 && cJSON_IsObject(tree) &&
        kinf__doc_parse(kinf_str_from(line_end + 1), &patch, NULL) == 0)
        try_patch(how, &tree, patch);
    return 0;
}
