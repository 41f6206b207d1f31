/*
 * Manifests and request bodies: YAML and JSON from anywhere.
 * What is taken is an object, and JSON that reads as the same again; what is refused has a message.
 */
#include "fuzz/fuzz.h"
#include "document/manifest.h"
#include "document/tree.h"

static void check_tree(const struct cJSON *tree)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT, again = KINF__BUFFER_INIT;
    KINF__AUTO_DOC *copy = NULL;

    FUZZ_REQUIRE(kinf__doc_print(tree, &text) == 0);
    FUZZ_REQUIRE(kinf__doc_parse(kinf__buffer_str(&text), &copy, NULL) == 0);
    FUZZ_REQUIRE(kinf__doc_print(copy, &again) == 0);
    FUZZ_REQUIRE(kinf_str_equal(kinf__buffer_str(&text), kinf__buffer_str(&again)));
}

static int take(struct cJSON *take_object, const char *where, void *ctx)
{
    KINF__AUTO_DOC *object = take_object;

    (void)ctx;
    FUZZ_REQUIRE(cJSON_IsObject(object));
    FUZZ_REQUIRE(where[0] != '\0');
    check_tree(object);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct kinf_error err = KINF_ERROR_INIT;
    KINF__AUTO_DOC *tree = NULL;

    if (kinf__manifest_read((struct kinf_str){ text, size }, "f", take, NULL, &err) < 0)
        FUZZ_REQUIRE(err.message[0] != '\0');
    err.message[0] = '\0';
    if (kinf__manifest_parse_one((struct kinf_str){ text, size }, &tree, &err) == 0)
        check_tree(tree);
    else
        FUZZ_REQUIRE(err.message[0] != '\0');
    free(text);
    return 0;
}
