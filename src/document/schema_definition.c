/*
 * Schemas of custom resources: nodes of a definition's openAPIV3Schema, so that everything that
 * walks built-in types walks these. Neighbours: schema.c has the arena, schema_validate.c reads the
 * limits of values out of the definition itself.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "document/schema_priv.h"

#define OBJECT_META "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

/* Fields that every object has. */
#define N_OWN_FIELDS 3

struct maker {
    struct kinf__schema *schema;
    const struct kinf__schema_node *metadata;
    struct kinf_error *err;
};

static const struct kinf__schema_node any = { .kind = KINF__SCHEMA_ANY, .name = "" };
static const struct kinf__schema_node text = { .kind = KINF__SCHEMA_STRING, .name = "string" };

static int make_node(struct maker *maker, const struct cJSON *rules, bool is_root,
                     const struct kinf__schema_node **ret_node);

static int compare_fields(const void *a, const void *b)
{
    const struct kinf__schema_field *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static int make_fields(struct maker *maker, const struct cJSON *rules,
                       const struct cJSON *properties, struct kinf__schema_field *fields)
{
    const struct cJSON *required = kinf__doc_get(rules, "required"), *property;
    int failed = 0;

    cJSON_ArrayForEach(property, properties)
    {
        fields->name = property->string;
        fields->fallback = kinf__doc_get(property, "default");
        fields->is_required = kinf__doc_has_text(required, property->string);
        failed = make_node(maker, property, false, &fields->node);
        if (failed < 0)
            return failed;
        fields++;
    }
    return 0;
}

/* apiVersion, kind and metadata, whatever the definition says of them. */
static size_t add_own_fields(struct maker *maker, struct kinf__schema_field *fields, size_t n)
{
    const struct kinf__schema_field own[N_OWN_FIELDS] = {
        { .name = "apiVersion", .node = &text },
        { .name = "kind", .node = &text },
        { .name = "metadata", .node = maker->metadata },
    };

    for (size_t i = 0; i < N_OWN_FIELDS; i++) {
        size_t at = 0;

        while (at < n && strcmp(fields[at].name, own[i].name) != 0)
            at++;
        fields[at] = own[i];
        n += at == n;
    }
    return n;
}

static int make_object(struct maker *maker, const struct cJSON *rules, bool has_own,
                       struct kinf__schema_node *node)
{
    const struct cJSON *properties = kinf__doc_get(rules, "properties");
    size_t n = properties != NULL ? (size_t)cJSON_GetArraySize(properties) : 0;
    struct kinf__schema_field *fields;
    int failed;

    if (properties != NULL && !cJSON_IsObject(properties))
        return kinf__error_set(maker->err, KINF_ERR_PARSE, "properties is no object");
    fields = kinf__schema_alloc(maker->schema, n + N_OWN_FIELDS, sizeof *fields);
    if (fields == NULL)
        return kinf__error_no_memory(maker->err);
    failed = make_fields(maker, rules, properties, fields);
    if (failed < 0)
        return failed;
    if (has_own)
        n = add_own_fields(maker, fields, n);
    qsort(fields, n, sizeof *fields, compare_fields);
    node->kind = KINF__SCHEMA_OBJECT;
    node->fields = fields;
    node->n_fields = n;
    return 0;
}

static int make_map(struct maker *maker, const struct cJSON *values, struct kinf__schema_node *node)
{
    node->kind = KINF__SCHEMA_MAP;
    node->element = &any;
    return cJSON_IsTrue(values) ? 0 : make_node(maker, values, false, &node->element);
}

static int make_keys(struct maker *maker, const struct cJSON *rules, struct kinf__schema_node *node)
{
    const struct cJSON *keys = kinf__doc_get(rules, "x-kubernetes-list-map-keys"), *key;
    size_t n = cJSON_IsArray(keys) ? (size_t)cJSON_GetArraySize(keys) : 0, i = 0;
    const char **names = kinf__schema_alloc(maker->schema, n + 1, sizeof *names);

    if (names == NULL)
        return kinf__error_no_memory(maker->err);
    cJSON_ArrayForEach(key, keys)
    {
        if (!cJSON_IsString(key))
            return kinf__error_set(maker->err, KINF_ERR_PARSE,
                                   "x-kubernetes-list-map-keys has no text");
        names[i++] = key->valuestring;
    }
    node->list = n != 0 ? KINF__LIST_MAP : KINF__LIST_ATOMIC;
    node->keys = names;
    return 0;
}

static int make_list(struct maker *maker, const struct cJSON *rules, struct kinf__schema_node *node)
{
    const struct cJSON *items = kinf__doc_get(rules, "items");
    const char *list = kinf__doc_text(rules, "x-kubernetes-list-type", NULL);
    int failed = 0;

    node->kind = KINF__SCHEMA_LIST;
    node->element = &any;
    if (strcmp(list, "set") == 0)
        node->list = KINF__LIST_SET;
    else if (strcmp(list, "map") == 0)
        failed = make_keys(maker, rules, node);
    return failed < 0 || items == NULL ? failed : make_node(maker, items, false, &node->element);
}

static enum kinf__schema_kind scalar_kind(const struct cJSON *rules, const char *type)
{
    if (kinf__doc_is_true(rules, "x-kubernetes-int-or-string"))
        return KINF__SCHEMA_INT_OR_STRING;
    return strcmp(type, "string") == 0    ? KINF__SCHEMA_STRING
           : strcmp(type, "integer") == 0 ? KINF__SCHEMA_INTEGER
           : strcmp(type, "number") == 0  ? KINF__SCHEMA_NUMBER
           : strcmp(type, "boolean") == 0 ? KINF__SCHEMA_BOOLEAN
                                          : KINF__SCHEMA_ANY;
}

/* By type; one without is an object if it has properties. */
static int make_kind(struct maker *maker, const struct cJSON *rules, bool has_own,
                     struct kinf__schema_node *node)
{
    const struct cJSON *values = kinf__doc_get(rules, "additionalProperties");
    const char *type = kinf__doc_text(rules, "type", NULL);
    bool has_fields = kinf__doc_get(rules, "properties") != NULL || node->is_embedded || has_own;

    if (strcmp(type, "array") == 0)
        return make_list(maker, rules, node);
    if (values != NULL && !cJSON_IsFalse(values) && !has_fields)
        return make_map(maker, values, node);
    if (has_fields || strcmp(type, "object") == 0)
        return make_object(maker, rules, node->is_embedded || has_own, node);
    node->kind = scalar_kind(rules, type);
    return 0;
}

/* The depth is bounded by the parser's. */
static int make_node(struct maker *maker, const struct cJSON *rules, bool is_root,
                     const struct kinf__schema_node **ret_node)
{
    struct kinf__schema_node *node = kinf__schema_alloc(maker->schema, 1, sizeof *node);

    if (node == NULL)
        return kinf__error_no_memory(maker->err);
    if (!cJSON_IsObject(rules))
        return kinf__error_set(maker->err, KINF_ERR_PARSE, "a schema is no object");
    node->name = "";
    node->rules = rules;
    node->preserves_unknown = kinf__doc_is_true(rules, "x-kubernetes-preserve-unknown-fields");
    node->is_nullable = kinf__doc_is_true(rules, "nullable");
    node->is_embedded = kinf__doc_is_true(rules, "x-kubernetes-embedded-resource");
    node->is_atomic = strcmp(kinf__doc_text(rules, "x-kubernetes-map-type", NULL), "atomic") == 0;
    *ret_node = node;
    return make_kind(maker, rules, is_root, node);
}

int kinf__schema_of_definition(const struct kinf__schema *builtin, const struct cJSON *open_api,
                               struct kinf__schema **ret_schema, struct kinf_error *err)
{
    struct kinf__schema *schema = calloc(1, sizeof *schema);
    struct maker maker = { schema, kinf__schema_type(builtin, OBJECT_META), err };
    int failed;

    if (schema == NULL)
        return kinf__error_no_memory(err);
    schema->values = open_api != NULL
                         ? kinf__doc_dup(open_api)
                         : cJSON_Parse("{\"x-kubernetes-preserve-unknown-fields\":true}");
    failed = schema->values != NULL ? make_node(&maker, schema->values, true, &schema->root)
                                    : kinf__error_no_memory(err);
    if (failed < 0)
        kinf__schema_free(schema);
    else
        *ret_schema = schema;
    return failed;
}
