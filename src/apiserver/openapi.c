/*
 * OpenAPI documents. Neighbours: schema.c has the types, schema_definition.c those of custom
 * resources, whose own text is repeated here.
 *
 * What is read of them: kubectl looks for the path with a PATCH of the kind it is about to send, for
 * that one's parameter fieldValidation and its content types; for the schema of the kind
 * (x-kubernetes-group-version-kind), from there along properties, items, additionalProperties and
 * $ref, and for how lists are merged.
 */
#include "apiserver/openapi.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "json/quote.h"
#include "apiserver/types.h"

#define SCHEMAS     "#/components/schemas/"
#define QUANTITY    "io.k8s.apimachinery.pkg.api.resource.Quantity"
#define INT_STRING  "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
#define OBJECT_META "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
#define DESCRIPTION "kinformer-sim has no descriptions of types and fields."

struct document {
    const struct kinf__schema *schema;
    struct kinf__buffer *out;
    bool is_out_of_memory;
    /* Types that are referred to, in the order in which they were met; each is written once. */
    const struct kinf__schema_node **types;
    size_t n_types, n_room;
};

/* --- writing --- */

static void put(struct document *doc, const char *text)
{
    if (kinf__buffer_append_str(doc->out, kinf_str_from(text)) < 0)
        doc->is_out_of_memory = true;
}

static void put_quoted(struct document *doc, const char *text)
{
    if (kinf__quote(doc->out, kinf_str_from(text)) < 0)
        doc->is_out_of_memory = true;
}

static void put_tree(struct document *doc, const struct cJSON *tree)
{
    if (tree == NULL || kinf__doc_print(tree, doc->out) < 0)
        doc->is_out_of_memory = true;
}

/* "name":"text" */
static void put_member(struct document *doc, const char *name, const char *text)
{
    put_quoted(doc, name);
    put(doc, ":");
    put_quoted(doc, text);
}

static void put_kind(struct document *doc, const struct kinf__openapi_resource *resource)
{
    put(doc, "{");
    put_member(doc, "group", resource->group);
    put(doc, ",");
    put_member(doc, "kind", resource->kind);
    put(doc, ",");
    put_member(doc, "version", resource->version);
    put(doc, "}");
}

/* --- paths --- */

static const char patch_members[] =
    ",\"parameters\":["
    "{\"name\":\"dryRun\",\"in\":\"query\",\"schema\":{\"type\":\"string\"}},"
    "{\"name\":\"fieldManager\",\"in\":\"query\",\"schema\":{\"type\":\"string\"}},"
    "{\"name\":\"fieldValidation\",\"in\":\"query\",\"schema\":{\"type\":\"string\"}},"
    "{\"name\":\"force\",\"in\":\"query\",\"schema\":{\"type\":\"boolean\"}}],"
    "\"requestBody\":{\"content\":{"
    "\"application/apply-patch+yaml\":{\"schema\":{\"type\":\"object\"}},"
    "\"application/json-patch+json\":{\"schema\":{\"type\":\"object\"}},"
    "\"application/merge-patch+json\":{\"schema\":{\"type\":\"object\"}}";

/* Custom resources have no strategic merge. */
static const char strategic_member[] =
    ",\"application/strategic-merge-patch+json\":{\"schema\":{\"type\":\"object\"}}";

struct operation {
    const char *verb;
    const char *method;
    const char *action;
};

static const struct operation collection_operations[] = {
    { "list", "get", "list" },
    { "create", "post", "post" },
    { "deletecollection", "delete", "deletecollection" },
};

static const struct operation item_operations[] = {
    { "get", "get", "get" },
    { "update", "put", "put" },
    { "patch", "patch", "patch" },
    { "delete", "delete", "delete" },
};

static void put_operation(struct document *doc, const struct kinf__openapi_resource *resource,
                          const struct operation *operation)
{
    bool is_custom = resource->schema == NULL || resource->schema->rules != NULL;

    put_quoted(doc, operation->method);
    put(doc, ":{");
    put_member(doc, "x-kubernetes-action", operation->action);
    put(doc, ",\"x-kubernetes-group-version-kind\":");
    put_kind(doc, resource);
    if (strcmp(operation->verb, "patch") == 0) {
        put(doc, patch_members);
        put(doc, is_custom ? "" : strategic_member);
        put(doc, "},\"required\":true}");
    }
    put(doc, ",\"responses\":{\"200\":{\"description\":\"OK\"}}}");
}

static void put_path(struct document *doc, const struct kinf__openapi_resource *resource,
                     const char *behind, const struct operation *operations, size_t n_operations,
                     bool *is_first)
{
    bool is_first_operation = true;

    for (size_t i = 0; i < n_operations; i++) {
        if (!kinf__has_verb(resource->verbs, operations[i].verb))
            continue;
        if (is_first_operation) {
            put(doc, *is_first ? "\"" : ",\"");
            *is_first = false;
            put(doc, *resource->group != '\0' ? "/apis/" : "/api");
            put(doc, resource->group);
            put(doc, "/");
            put(doc, resource->version);
            put(doc, resource->namespaced ? "/namespaces/{namespace}/" : "/");
            put(doc, resource->resource);
            put(doc, behind);
            put(doc, "\":{");
        }
        put(doc, is_first_operation ? "" : ",");
        is_first_operation = false;
        put_operation(doc, resource, &operations[i]);
    }
    put(doc, is_first_operation ? "" : "}");
}

/* --- types --- */

/* A field may have a copy of a type's node, with marks of its own. */
static void note_type(struct document *doc, const char *name)
{
    const struct kinf__schema_node *type = kinf__schema_type(doc->schema, name);

    for (size_t i = 0; i < doc->n_types; i++) {
        if (doc->types[i] == type)
            return;
    }
    if (doc->n_types == doc->n_room) {
        size_t n_room = doc->n_room != 0 ? 2 * doc->n_room : 64;
        const struct kinf__schema_node **types =
            reallocarray(doc->types, n_room, sizeof(const struct kinf__schema_node *));

        if (types == NULL) {
            doc->is_out_of_memory = true;
            return;
        }
        doc->types = types;
        doc->n_room = n_room;
    }
    doc->types[doc->n_types++] = type;
}

static void put_reference(struct document *doc, const char *name)
{
    put(doc, "\"$ref\":\"" SCHEMAS);
    put(doc, name);
    put(doc, "\"");
}

static void put_scalar(struct document *doc, const struct kinf__schema_node *node)
{
    switch (node->kind) {
    case KINF__SCHEMA_INTEGER:
        put(doc, "\"type\":\"integer\",");
        put_member(doc, "format", node->name);
        break;
    case KINF__SCHEMA_NUMBER:
        put(doc, "\"type\":\"number\",\"format\":\"double\"");
        break;
    case KINF__SCHEMA_BOOLEAN:
        put(doc, "\"type\":\"boolean\"");
        break;
    case KINF__SCHEMA_QUANTITY:
        put_reference(doc, QUANTITY);
        break;
    case KINF__SCHEMA_INT_OR_STRING:
        put_reference(doc, INT_STRING);
        break;
    case KINF__SCHEMA_TIME:
        put(doc, "\"type\":\"string\",\"format\":\"date-time\"");
        break;
    case KINF__SCHEMA_BYTES:
        put(doc, "\"type\":\"string\",\"format\":\"byte\"");
        break;
    case KINF__SCHEMA_ANY:
        put(doc, "\"type\":\"object\"");
        break;
    default:
        put(doc, "\"type\":\"string\"");
    }
}

static void put_list_members(struct document *doc, const struct kinf__schema_node *node)
{
    static const char *const types[] = { "atomic", "set", "map" };

    put(doc, ",");
    put_member(doc, "x-kubernetes-list-type", types[node->list]);
    if (node->keys != NULL)
        put(doc, ",\"x-kubernetes-list-map-keys\":[");
    for (size_t i = 0; node->keys != NULL && node->keys[i] != NULL; i++) {
        put(doc, i != 0 ? "," : "");
        put_quoted(doc, node->keys[i]);
    }
    put(doc, node->keys != NULL ? "]" : "");
    if (node->merge_key != NULL && *node->merge_key != '\0') {
        put(doc, ",");
        put_member(doc, "x-kubernetes-patch-merge-key", node->merge_key);
    }
    if (node->merge_key != NULL) {
        put(doc, ",");
        put_member(doc, "x-kubernetes-patch-strategy",
                   node->retains_keys ? "merge,retainKeys" : "merge");
    }
}

/* The members of a schema, without braces. */
static void put_node(struct document *doc, const struct kinf__schema_node *node)
{
    bool is_list = node->kind == KINF__SCHEMA_LIST;
    const char *strategy = node->retains_keys ? "retainKeys" : node->is_replaced ? "replace" : NULL;

    if (node->kind == KINF__SCHEMA_OBJECT) {
        note_type(doc, node->name);
        put(doc, strategy != NULL ? "\"x-kubernetes-patch-strategy\":\"" : "");
        put(doc, strategy != NULL ? strategy : "");
        put(doc, strategy != NULL ? "\",\"allOf\":[{" : "");
        put_reference(doc, node->name);
        put(doc, strategy != NULL ? "}]" : "");
    } else if (is_list || node->kind == KINF__SCHEMA_MAP) {
        put(doc, is_list ? "\"type\":\"array\",\"items\":{"
                         : "\"type\":\"object\",\"additionalProperties\":{");
        put_node(doc, node->element);
        put(doc, "}");
        if (is_list)
            put_list_members(doc, node);
        put(doc, node->is_atomic ? ",\"x-kubernetes-map-type\":\"atomic\"" : "");
    } else {
        put_scalar(doc, node);
    }
}

static void put_required(struct document *doc, const struct kinf__schema_node *type)
{
    bool is_first = true;

    for (size_t i = 0; i < type->n_fields; i++) {
        if (!type->fields[i].is_required)
            continue;
        put(doc, is_first ? ",\"required\":[" : ",");
        put_quoted(doc, type->fields[i].name);
        is_first = false;
    }
    put(doc, is_first ? "" : "]");
}

static void put_type(struct document *doc, const struct kinf__schema_node *type)
{
    put(doc, "{\"type\":\"object\",\"properties\":{");
    for (size_t i = 0; i < type->n_fields; i++) {
        put(doc, i != 0 ? "," : "");
        put_quoted(doc, type->fields[i].name);
        put(doc, ":{");
        put_node(doc, type->fields[i].node);
        put(doc, "}");
    }
    put(doc, "}");
    put_required(doc, type);
    put(doc, type->is_atomic ? ",\"x-kubernetes-map-type\":\"atomic\"" : "");
}

/* --- kinds --- */

static const struct kinf__openapi_resource *find_resource(
    const struct kinf__openapi_resource *resources, size_t n, const char *group,
    const char *version, const struct kinf__schema_node *schema)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(resources[i].group, group) == 0 && strcmp(resources[i].version, version) == 0 &&
            (schema == NULL || resources[i].schema == schema))
            return &resources[i];
    }
    return NULL;
}

static void put_root_members(struct document *doc, const struct kinf__openapi_resource *resource)
{
    put(doc, ",\"description\":\"" DESCRIPTION "\",\"x-kubernetes-group-version-kind\":[");
    put_kind(doc, resource);
    put(doc, "]");
}

/* "org.example.v1.Widget", as the server names them. */
static void put_custom_name(struct document *doc, const struct kinf__openapi_resource *resource)
{
    size_t end = strlen(resource->group);
    KINF__AUTO_BUFFER name = KINF__BUFFER_INIT;
    int failed = 0;

    while (end > 0 && failed == 0) {
        size_t begin = end;

        while (begin > 0 && resource->group[begin - 1] != '.')
            begin--;
        failed = kinf__buffer_printf(&name, "%.*s.", (int)(end - begin), resource->group + begin);
        end = begin > 0 ? begin - 1 : 0;
    }
    if (failed < 0 || kinf__buffer_printf(&name, "%s.%s", resource->version, resource->kind) < 0 ||
        kinf__buffer_cstr(&name) == NULL)
        doc->is_out_of_memory = true;
    else
        put_quoted(doc, name.bytes);
}

/* A property that every object has, whatever the definition says of it. */
static int set_property(struct cJSON *properties, const char *name, const char *json)
{
    return kinf__doc_set(properties, name, cJSON_Parse(json));
}

static struct cJSON *custom_schema(const struct kinf__openapi_resource *resource)
{
    struct cJSON *schema =
        resource->schema != NULL ? kinf__doc_dup(resource->schema->rules) : cJSON_CreateObject();
    struct cJSON *properties = schema != NULL ? kinf__doc_object(schema, "properties") : NULL;

    if (properties != NULL && kinf__doc_set_text(schema, "type", "object") == 0 &&
        set_property(properties, "apiVersion", "{\"type\":\"string\"}") == 0 &&
        set_property(properties, "kind", "{\"type\":\"string\"}") == 0 &&
        set_property(properties, "metadata", "{\"$ref\":\"" SCHEMAS OBJECT_META "\"}") == 0)
        return schema;
    cJSON_Delete(schema);
    return NULL;
}

static int add_kind(struct cJSON *schema, const struct kinf__openapi_resource *resource)
{
    struct cJSON *kinds = cJSON_CreateArray(), *kind = cJSON_CreateObject();
    int failed = kind != NULL && kinds != NULL ? 0 : KINF_ERR_NO_MEMORY;

    if (failed == 0 && (kinf__doc_set_text(kind, "group", resource->group) < 0 ||
                        kinf__doc_set_text(kind, "kind", resource->kind) < 0 ||
                        kinf__doc_set_text(kind, "version", resource->version) < 0))
        failed = KINF_ERR_NO_MEMORY;
    if (failed == 0)
        failed = kinf__doc_append(kinds, KINF__TAKE(kind));
    if (failed == 0)
        failed = kinf__doc_set(schema, "x-kubernetes-group-version-kind", KINF__TAKE(kinds));
    cJSON_Delete(kind);
    cJSON_Delete(kinds);
    return failed;
}

static void put_custom_type(struct document *doc, const struct kinf__openapi_resource *resource)
{
    KINF__AUTO_DOC *schema = custom_schema(resource);

    if (schema == NULL || add_kind(schema, resource) < 0)
        doc->is_out_of_memory = true;
    put_custom_name(doc, resource);
    put(doc, ":");
    put_tree(doc, schema);
}

/* Kinds first, which make a list of what they refer to, then that list, which grows on the way. */
static void put_types(struct document *doc, const struct kinf__openapi_resource *resources,
                      size_t n, const char *group, const char *version)
{
    put(doc, "\"" QUANTITY "\":{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"number\"}]},"
             "\"" INT_STRING "\":{\"format\":\"int-or-string\","
             "\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}]}");
    for (size_t i = 0; i < n; i++) {
        const struct kinf__openapi_resource *at = &resources[i];

        if (strcmp(at->group, group) != 0 || strcmp(at->version, version) != 0)
            continue;
        if (at->schema != NULL && at->schema->rules == NULL) {
            note_type(doc, at->schema->name);
            continue;
        }
        put(doc, ",");
        put_custom_type(doc, at);
        note_type(doc, OBJECT_META);
    }
    for (size_t i = 0; i < doc->n_types; i++) {
        const struct kinf__openapi_resource *resource =
            find_resource(resources, n, group, version, doc->types[i]);

        put(doc, ",");
        put_quoted(doc, doc->types[i]->name);
        put(doc, ":");
        put_type(doc, doc->types[i]);
        if (resource != NULL)
            put_root_members(doc, resource);
        put(doc, "}");
    }
}

static void put_paths(struct document *doc, const struct kinf__openapi_resource *resources,
                      size_t n, const char *group, const char *version)
{
    bool is_first = true;

    for (size_t i = 0; i < n; i++) {
        const struct kinf__openapi_resource *at = &resources[i];

        if (strcmp(at->group, group) != 0 || strcmp(at->version, version) != 0)
            continue;
        put_path(doc, at, "", collection_operations, KINF__ARRAY_LEN(collection_operations),
                 &is_first);
        put_path(doc, at, "/{name}", item_operations, KINF__ARRAY_LEN(item_operations), &is_first);
    }
}

int kinf__openapi_write_version(const struct kinf__schema *schema,
                                const struct kinf__openapi_resource *resources, size_t n_resources,
                                const char *group, const char *version, struct kinf__buffer *out)
{
    struct document doc = { .schema = schema, .out = out };

    if (find_resource(resources, n_resources, group, version, NULL) == NULL)
        return KINF_ERR_NOT_FOUND;
    put(&doc, "{\"openapi\":\"3.0.0\",\"info\":{\"title\":\"Kubernetes\",\"version\":\"1.37\"},"
              "\"paths\":{");
    put_paths(&doc, resources, n_resources, group, version);
    put(&doc, "},\"components\":{\"schemas\":{");
    put_types(&doc, resources, n_resources, group, version);
    put(&doc, "}}}\n");
    free(doc.types);
    return doc.is_out_of_memory ? KINF_ERR_NO_MEMORY : 0;
}

static void put_version_path(struct document *doc, const struct kinf__openapi_resource *resource)
{
    bool has_group = *resource->group != '\0';

    put(doc, has_group ? "apis/" : "api");
    put(doc, resource->group);
    put(doc, "/");
    put(doc, resource->version);
}

int kinf__openapi_write_root(const struct kinf__openapi_resource *resources, size_t n_resources,
                             struct kinf__buffer *out)
{
    struct document doc = { .out = out };

    put(&doc, "{\"paths\":{");
    for (size_t i = 0; i < n_resources; i++) {
        const struct kinf__openapi_resource *at = &resources[i];

        if (find_resource(resources, i, at->group, at->version, NULL) != NULL)
            continue;
        put(&doc, i != 0 ? ",\"" : "\"");
        put_version_path(&doc, at);
        put(&doc, "\":{\"serverRelativeURL\":\"/openapi/v3/");
        put_version_path(&doc, at);
        put(&doc, "\"}");
    }
    put(&doc, "}}\n");
    return doc.is_out_of_memory ? KINF_ERR_NO_MEMORY : 0;
}
