/*
 * A definition that somebody posts and an object of it, in two lines: what is pruned and filled in
 * stays as it is the second time, and OpenAPI of it is JSON. A Pod of the same object: as well.
 */
#include <string.h>

#include "base/compiler.h"
#include "fuzz/fuzz.h"
#include "document/schema.h"
#include "apiserver/openapi.h"

#define N_FAULTS 4

static struct kinf__schema *builtin;

static int look(const char *problem, void *ctx)
{
    (void)ctx;
    FUZZ_REQUIRE(strstr(problem, " field \"") != NULL);
    return 0;
}

static int refuse_all(const char *problem, void *ctx)
{
    (void)ctx;
    fprintf(stderr, "once more: %s\n", problem);
    abort();
}

static void check_faults(const struct kinf__schema_node *node, const struct cJSON *tree)
{
    struct kinf__schema_fault faults[N_FAULTS];
    int n = kinf__schema_validate(node, tree, faults, N_FAULTS);

    FUZZ_REQUIRE(n >= 0);
    for (int i = 0; i < n && i < N_FAULTS; i++) {
        FUZZ_REQUIRE(memchr(faults[i].message, '\0', sizeof faults[i].message) != NULL);
        FUZZ_REQUIRE(faults[i].reason[0] != '\0' && faults[i].message[0] != '\0');
    }
}

static void prune_twice(const struct kinf__schema_node *node, struct cJSON *tree)
{
    struct cJSON *first;

    FUZZ_REQUIRE(kinf__schema_prune(node, tree, look, NULL) == 0);
    first = kinf__doc_dup(tree);
    FUZZ_REQUIRE(kinf__schema_prune(node, tree, refuse_all, NULL) == 0);
    FUZZ_REQUIRE(kinf__doc_equal(first, tree));
    cJSON_Delete(first);
}

static void take_custom(const struct cJSON *definition, const struct cJSON *object)
{
    struct kinf__openapi_resource resource = { "ex.org", "v1", "foos", "Foo", "", true, NULL };
    KINF__AUTO_DOC *tree = kinf__doc_dup(object), *doc = NULL;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct kinf__schema *schema;
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__refusal refusal;

    if (kinf__schema_of_definition(builtin, definition, &schema, &err) < 0) {
        FUZZ_REQUIRE(err.message[0] != '\0');
        return;
    }
    resource.schema = kinf__schema_find(schema, "ex.org", "v1", "Foo");
    (void)!kinf__schema_check_types(resource.schema, tree, "Foo", "v1", &refusal);
    prune_twice(resource.schema, tree);
    FUZZ_REQUIRE(kinf__schema_default(resource.schema, tree) == 0);
    check_faults(resource.schema, tree);
    FUZZ_REQUIRE(kinf__openapi_write_version(builtin, &resource, 1, "ex.org", "v1", &text) == 0);
    doc = cJSON_ParseWithLength(text.bytes, text.len);
    /* cJSON reads no deeper than it wrote. */
    FUZZ_REQUIRE(doc != NULL || text.len > 1000);
    kinf__schema_free(schema);
}

static void take_pod(struct cJSON *tree)
{
    const struct kinf__schema_node *node = kinf__schema_find(builtin, "", "v1", "Pod");
    struct kinf__refusal refusal;
    int failed = kinf__schema_check_types(node, tree, "Pod", "v1", &refusal);

    FUZZ_REQUIRE(failed == 0 || refusal.code == 400);
    prune_twice(node, tree);
    FUZZ_REQUIRE(kinf__schema_default(node, tree) == 0);
    FUZZ_REQUIRE(kinf__default_object("", "Pod", tree) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *line = memchr(text, '\n', size);
    struct cJSON *definition = NULL, *object = NULL;

    if (builtin == NULL)
        FUZZ_REQUIRE(kinf__schema_new(&builtin) == 0);
    if (line != NULL) {
        struct kinf_str first = { text, (size_t)(line - text) };
        struct kinf_str second = { line + 1, size - first.len - 1 };

        if (kinf__doc_parse(first, &definition, NULL) < 0)
            definition = NULL;
        if (kinf__doc_parse(second, &object, NULL) < 0)
            object = NULL;
    }
    if (definition != NULL && object != NULL)
        take_custom(definition, object);
    if (object != NULL)
        take_pod(object);
    cJSON_Delete(definition);
    cJSON_Delete(object);
    free(text);
    return 0;
}
