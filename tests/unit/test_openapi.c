/*
 * OpenAPI documents: that they hold together, and have what kubectl looks for.
 */
#include "apiserver/openapi.h"

#include <stdio.h>
#include <string.h>

#include "apiserver/types.h"
#include "unit/allocation.h"
#include "unit/test.h"

#define MAX_RESOURCES 128
#define REFERENCE     "#/components/schemas/"

static struct kinf__schema *builtin, *custom;
static struct kinf__openapi_resource resources[MAX_RESOURCES];
static size_t n_resources;

static void add(const char *group, const char *version, const char *resource, const char *kind,
                const char *verbs, bool namespaced, const struct kinf__schema_node *schema)
{
    const struct kinf__openapi_resource row = { .group = group,
                                                .version = version,
                                                .resource = resource,
                                                .kind = kind,
                                                .verbs = verbs,
                                                .namespaced = namespaced,
                                                .schema = schema };

    assert_true(n_resources < MAX_RESOURCES);
    resources[n_resources++] = row;
}

static struct cJSON *parse(struct kinf__buffer *text)
{
    struct cJSON *tree;

    assert_int_equal(kinf__doc_parse(kinf__buffer_str(text), &tree, NULL), 0);
    return tree;
}

static struct cJSON *document(const char *group, const char *version)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    assert_int_equal(
        kinf__openapi_write_version(builtin, resources, n_resources, group, version, &text), 0);
    return parse(&text);
}

/* Every reference leads somewhere. */
static size_t check_references(const struct cJSON *node, const struct cJSON *schemas)
{
    size_t n = 0;

    for (const struct cJSON *child = node->child; child != NULL; child = child->next) {
        n += check_references(child, schemas);
        if (child->string == NULL || strcmp(child->string, "$ref") != 0 || !cJSON_IsString(child))
            continue;
        assert_memory_equal(child->valuestring, REFERENCE, strlen(REFERENCE));
        if (kinf__doc_get(schemas, child->valuestring + strlen(REFERENCE)) == NULL)
            fail_msg("%s is not there", child->valuestring);
        n++;
    }
    return n;
}

/* As kubectl asks, before it sends an object. */
static const struct cJSON *find_patch(const struct cJSON *doc, const char *kind)
{
    const struct cJSON *path;

    cJSON_ArrayForEach(path, kinf__doc_get(doc, "paths"))
    {
        const struct cJSON *patch = kinf__doc_get(path, "patch");

        if (strcmp(kinf__doc_text(patch, "x-kubernetes-group-version-kind", "kind", NULL), kind) ==
            0)
            return patch;
    }
    return NULL;
}

static bool has_field_validation(const struct cJSON *patch)
{
    const struct cJSON *parameter;

    cJSON_ArrayForEach(parameter, kinf__doc_get(patch, "parameters"))
    {
        if (strcmp(kinf__doc_text(parameter, "name", NULL), "fieldValidation") == 0)
            return strcmp(kinf__doc_text(parameter, "in", NULL), "query") == 0;
    }
    return false;
}

static const struct cJSON *find_schema(const struct cJSON *doc, const char *kind)
{
    const struct cJSON *schema;

    cJSON_ArrayForEach(schema, kinf__doc_find(doc, "components", "schemas", NULL))
    {
        const struct cJSON *kinds = kinf__doc_get(schema, "x-kubernetes-group-version-kind");

        if (kinds != NULL && strcmp(kinf__doc_text(kinds->child, "kind", NULL), kind) == 0)
            return schema;
    }
    return NULL;
}

static void every_version_has_a_document_that_holds_together(void **state)
{
    size_t n = 0;

    (void)state;
    for (size_t i = 0; i < n_resources; i++) {
        const struct kinf__openapi_resource *at = &resources[i];
        KINF__AUTO_DOC *doc = document(at->group, at->version);
        bool has_patch = kinf__has_verb(at->verbs, "patch");
        const struct cJSON *patch = find_patch(doc, at->kind);

        n += check_references(doc, kinf__doc_find(doc, "components", "schemas", NULL));
        assert_non_null(find_schema(doc, at->kind));
        assert_int_equal(patch != NULL, has_patch);
        if (has_patch)
            assert_true(has_field_validation(patch));
    }
    assert_true(n > 1000);
}

static void the_root_has_each_version_once(void **state)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    KINF__AUTO_DOC *doc = NULL;
    const struct cJSON *paths;

    (void)state;
    assert_int_equal(kinf__openapi_write_root(resources, n_resources, &text), 0);
    doc = parse(&text);
    paths = kinf__doc_get(doc, "paths");
    assert_string_equal(kinf__doc_text(paths, "api/v1", "serverRelativeURL", NULL),
                        "/openapi/v3/api/v1");
    assert_string_equal(kinf__doc_text(paths, "apis/apps/v1", "serverRelativeURL", NULL),
                        "/openapi/v3/apis/apps/v1");
    assert_string_equal(kinf__doc_text(paths, "apis/ex.org/v1", "serverRelativeURL", NULL),
                        "/openapi/v3/apis/ex.org/v1");
    assert_int_equal(cJSON_GetArraySize(paths), 17);
}

static void documents_say_how_lists_are_merged(void **state)
{
    KINF__AUTO_DOC *doc = document("apps", "v1");
    const struct cJSON *schemas = kinf__doc_find(doc, "components", "schemas", NULL);
    const struct cJSON *ports =
        kinf__doc_find(schemas, "io.k8s.api.core.v1.Container", "properties", "ports", NULL);
    const struct cJSON *spec = kinf__doc_get(schemas, "io.k8s.api.apps.v1.DeploymentSpec");
    const struct cJSON *strategy = kinf__doc_find(spec, "properties", "strategy", NULL);

    (void)state;
    assert_string_equal(kinf__doc_text(ports, "type", NULL), "array");
    assert_string_equal(kinf__doc_text(ports, "x-kubernetes-list-type", NULL), "map");
    assert_int_equal(cJSON_GetArraySize(kinf__doc_get(ports, "x-kubernetes-list-map-keys")), 2);
    assert_string_equal(kinf__doc_text(ports, "x-kubernetes-patch-merge-key", NULL),
                        "containerPort");
    assert_string_equal(kinf__doc_text(ports, "x-kubernetes-patch-strategy", NULL), "merge");
    assert_string_equal(kinf__doc_text(ports, "items", "$ref", NULL),
                        REFERENCE "io.k8s.api.core.v1.ContainerPort");
    assert_string_equal(kinf__doc_text(strategy, "x-kubernetes-patch-strategy", NULL),
                        "retainKeys");
    assert_string_equal(kinf__doc_text(kinf__doc_get(strategy, "allOf")->child, "$ref", NULL),
                        REFERENCE "io.k8s.api.apps.v1.DeploymentStrategy");
    assert_int_equal(cJSON_GetArraySize(kinf__doc_get(spec, "required")), 2);
    assert_non_null(kinf__doc_find(find_patch(doc, "Deployment"), "requestBody", "content",
                                   "application/strategic-merge-patch+json", NULL));
    assert_string_equal(kinf__doc_text(find_schema(doc, "Deployment"), "description", NULL),
                        "kinformer-sim has no descriptions of types and fields.");
}

static void custom_resources_repeat_their_definition(void **state)
{
    KINF__AUTO_DOC *doc = document("ex.org", "v1");
    const struct cJSON *foo =
        kinf__doc_find(doc, "components", "schemas", "org.ex.v1.Foo", "properties", NULL);

    (void)state;
    assert_string_equal(kinf__doc_text(foo, "spec", "properties", "a", "pattern", NULL), "^x$");
    assert_string_equal(kinf__doc_text(foo, "metadata", "$ref", NULL),
                        REFERENCE "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    assert_string_equal(kinf__doc_text(foo, "kind", "type", NULL), "string");
    assert_null(kinf__doc_find(find_patch(doc, "Foo"), "requestBody", "content",
                               "application/strategic-merge-patch+json", NULL));
    assert_non_null(find_schema(doc, "Bar"));
    assert_non_null(
        kinf__doc_find(doc, "paths", "/apis/ex.org/v1/namespaces/{namespace}/foos", NULL));
    assert_non_null(kinf__doc_find(doc, "paths", "/apis/ex.org/v1/bars/{name}", "get", NULL));
}

static void what_is_not_served_has_no_document(void **state)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)state;
    assert_int_equal(
        kinf__openapi_write_version(builtin, resources, n_resources, "apps", "v2", &text),
        KINF_ERR_NOT_FOUND);
    assert_int_equal(text.len, 0);
}

static void sweep(const char *group)
{
    bool has_failed = true;

    for (size_t n = 1; has_failed; n++) {
        KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
        int failed;

        test_fail_allocation(n);
        failed = kinf__openapi_write_version(builtin, resources, n_resources, group, "v1", &text);
        has_failed = test_allocation_failed();
        assert_int_equal(failed, has_failed ? KINF_ERR_NO_MEMORY : 0);
    }
}

static void a_lack_of_memory_is_told(void **state)
{
    bool has_failed = true;

    (void)state;
    sweep("ex.org");
    sweep("apps");
    for (size_t n = 1; has_failed; n++) {
        KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
        int failed;

        test_fail_allocation(n);
        failed = kinf__openapi_write_root(resources, n_resources, &text);
        has_failed = test_allocation_failed();
        assert_int_equal(failed, has_failed ? KINF_ERR_NO_MEMORY : 0);
    }
}

static int set_up(void **state)
{
    KINF__AUTO_DOC *definition =
        cJSON_Parse("{\"type\":\"object\",\"properties\":{\"metadata\":{\"type\":\"object\"},"
                    "\"spec\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\","
                    "\"pattern\":\"^x$\"}}}}}");

    (void)state;
    assert_int_equal(kinf__schema_new(&builtin), 0);
    assert_int_equal(kinf__schema_of_definition(builtin, definition, &custom, NULL), 0);
    for (size_t i = 0; i < kinf__n_builtins; i++) {
        const struct kinf__builtin *at = &kinf__builtins[i];

        add(at->group, at->version, at->resource, at->kind, at->verbs, at->namespaced,
            kinf__schema_find(builtin, at->group, at->version, at->kind));
    }
    add("ex.org", "v1", "foos", "Foo", "", true, kinf__schema_find(custom, "", "", ""));
    add("ex.org", "v1", "bars", "Bar", "", false, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kinf__schema_free(custom);
    kinf__schema_free(builtin);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_has_a_document_that_holds_together),
        cmocka_unit_test(the_root_has_each_version_once),
        cmocka_unit_test(documents_say_how_lists_are_merged),
        cmocka_unit_test(custom_resources_repeat_their_definition),
        cmocka_unit_test(what_is_not_served_has_no_document),
        cmocka_unit_test(a_lack_of_memory_is_told),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
