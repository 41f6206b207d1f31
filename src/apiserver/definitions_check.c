/*
 * What CustomResourceDefinitions must be like. Neighbours: kinds.c, definitions.c.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "apiserver/kinds_priv.h"
#include "document/node_index.h"

#define STORAGE_WORDS "must have exactly one version marked as storage version"

/* Which version's form objects may be stored in: once there, it stays. */
static int add_stored_version(struct cJSON *object, const char *name)
{
    struct cJSON *status = kinf__doc_object(object, "status");

    return status != NULL ? kinf__doc_add_text(status, "storedVersions", name) : KINF_ERR_NO_MEMORY;
}

int kinf__definition_write(const struct kinf__write *write)
{
    struct cJSON *spec = kinf__doc_object(write->object, "spec");
    const struct cJSON *version;
    int failed = spec != NULL ? 0 : KINF_ERR_NO_MEMORY;

    if (cJSON_IsFalse(kinf__doc_get(spec, "preserveUnknownFields")))
        kinf__doc_remove(spec, "preserveUnknownFields");
    cJSON_ArrayForEach(version, kinf__doc_get(spec, "versions"))
    {
        if (failed == 0 && kinf__doc_is_true(version, "storage"))
            failed = add_stored_version(write->object, kinf__doc_text(version, "name", NULL));
    }
    return failed;
}

/* --- schemas --- */

static bool may_be_untyped(const struct cJSON *schema)
{
    return kinf__doc_is_true(schema, "x-kubernetes-int-or-string") ||
           kinf__doc_is_true(schema, "x-kubernetes-preserve-unknown-fields");
}

/* `why`: of a type that is missing. The depth is bounded by the parser's. */
static void check_schema(const struct cJSON *schema, const struct kinf__field *field,
                         const char *why, struct kinf__invalid *invalid)
{
    const struct kinf__field items_field = kinf__field(field, "items");
    const struct kinf__field additional_field = kinf__field(field, "additionalProperties");
    const struct kinf__field properties_field = kinf__field(field, "properties");
    const char *type = kinf__doc_text(schema, "type", NULL);
    const struct cJSON *items = kinf__doc_get(schema, "items");
    const struct cJSON *additional = kinf__doc_get(schema, "additionalProperties");
    const struct cJSON *properties = kinf__doc_get(schema, "properties"), *property;

    if (*type == '\0' && !may_be_untyped(schema))
        kinf__invalid_required(invalid, KINF__AT(field, "type"), why);
    kinf__kind_check_word(schema, field, "type",
                          "\"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"",
                          invalid);
    if (strcmp(type, "array") == 0 && items == NULL)
        kinf__invalid_required(invalid, &items_field, "must be specified");
    if (cJSON_GetArraySize(properties) != 0 && additional != NULL && !cJSON_IsFalse(additional))
        kinf__invalid_forbidden(invalid, &additional_field,
                                "additionalProperties and properties are mutual exclusive");
    if (cJSON_IsObject(items))
        check_schema(items, &items_field, "must not be empty for specified array items", invalid);
    if (cJSON_IsObject(additional))
        check_schema(additional, &additional_field, "must not be empty for specified object fields",
                     invalid);
    cJSON_ArrayForEach(property, properties)
    {
        const struct kinf__field item = kinf__field_key(&properties_field, property->string);

        check_schema(property, &item, "must not be empty for specified object fields", invalid);
    }
}

static void check_root(const struct cJSON *schema, const struct kinf__field *parent,
                       struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(parent, "openAPIV3Schema");
    const char *type = kinf__doc_text(schema, "type", NULL);

    if (*type != '\0' && strcmp(type, "object") != 0)
        kinf__invalid_text(invalid, KINF__AT(&field, "type"), type, "must be object at the root");
    else
        check_schema(schema, &field, "must not be empty at the root", invalid);
}

static const struct cJSON *schema_of(const struct cJSON *version)
{
    return kinf__doc_find(version, "schema", "openAPIV3Schema", NULL);
}

/* One schema of all versions is told as the definition's own. */
static bool is_one_schema(const struct cJSON *versions)
{
    const struct cJSON *version;

    cJSON_ArrayForEach(version, versions)
    {
        if (!kinf__doc_equal(schema_of(version), schema_of(versions->child)))
            return false;
    }
    return true;
}

static void check_schemas(const struct cJSON *versions, const struct kinf__field *spec,
                          struct kinf__invalid *invalid)
{
    const struct kinf__field list = kinf__field(spec, "versions");
    const struct cJSON *version;
    bool is_one = is_one_schema(versions);
    size_t i = 0;

    cJSON_ArrayForEach(version, versions)
    {
        const struct kinf__field item = kinf__field_index(&list, i);
        const struct kinf__field holder = kinf__field(&item, "schema");

        if (!cJSON_IsObject(schema_of(version)))
            kinf__invalid_required(invalid, KINF__AT(&holder, "openAPIV3Schema"), "");
        else if (!is_one || i == 0)
            check_root(schema_of(version), is_one ? KINF__AT(spec, "validation") : &holder,
                       invalid);
        i++;
    }
}

/* --- versions --- */

static int print_version(const struct cJSON *version, struct cJSON *shown)
{
    static const char *const truths[][2] = { { "Served", "served" },
                                             { "Storage", "storage" },
                                             { "Deprecated", "deprecated" } };
    int failed = kinf__doc_set_text(shown, "Name", kinf__doc_text(version, "name", NULL));

    for (size_t i = 0; failed == 0 && i < KINF__ARRAY_LEN(truths); i++)
        failed = kinf__doc_set(shown, truths[i][0],
                               cJSON_CreateBool(kinf__doc_is_true(version, truths[i][1])));
    return failed == 0 ? kinf__kind_fill(shown, "{\"DeprecationWarning\":null,\"Schema\":null,"
                                                "\"Subresources\":null,"
                                                "\"AdditionalPrinterColumns\":null,"
                                                "\"SelectableFields\":null}")
                       : failed;
}

/* The versions as messages show them; NULL: there are none, or no memory for them. */
static struct cJSON *print_versions(const struct cJSON *versions)
{
    struct cJSON *array = cJSON_GetArraySize(versions) != 0 ? cJSON_CreateArray() : NULL;
    const struct cJSON *version;

    cJSON_ArrayForEach(version, versions)
    {
        struct cJSON *shown = array != NULL ? cJSON_CreateObject() : NULL;

        if (shown == NULL || print_version(version, shown) < 0) {
            cJSON_Delete(shown);
            break;
        }
        if (kinf__doc_append(array, shown) < 0)
            break;
    }
    return array;
}

static void fault_versions(const struct cJSON *versions, const struct kinf__field *field,
                           const char *why, struct kinf__invalid *invalid)
{
    KINF__AUTO_DOC *shown = print_versions(versions);

    kinf__invalid_value(invalid, field, shown, why);
}

static void check_label(const char *name, const struct kinf__field *field,
                        struct kinf__invalid *invalid)
{
    if (*name == '\0')
        kinf__invalid_required(invalid, field, "");
    else
        (void)kinf__invalid_check_name(invalid, field, KINF__NAME_LABEL_1035, name);
}

static bool has_twice(const struct cJSON *versions)
{
    KINF__AUTO_NODE_INDEX names = { KINF__HMAP_INIT };
    struct cJSON *version;

    cJSON_ArrayForEach(version, versions)
    {
        const char *name = kinf__doc_text(version, "name", NULL);

        if (kinf__node_index_find(&names, name) != NULL)
            return true;
        /* Without memory the write itself fails next. */
        if (kinf__node_index_add(&names, name, version, 0) < 0)
            return false;
    }
    return false;
}

static void check_versions(const struct cJSON *versions, const struct kinf__field *spec,
                           struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(spec, "versions");
    const struct cJSON *version;
    size_t i = 0, n_stored = 0;

    cJSON_ArrayForEach(version, versions)
    {
        const struct kinf__field item = kinf__field_index(&field, i++);

        check_label(kinf__doc_text(version, "name", NULL), KINF__AT(&item, "name"), invalid);
        n_stored += kinf__doc_is_true(version, "storage");
    }
    if (has_twice(versions))
        fault_versions(versions, &field, "must contain unique version names", invalid);
    if (n_stored != 1)
        fault_versions(versions, &field, STORAGE_WORDS, invalid);
}

static bool has_version(const struct cJSON *versions, const char *name)
{
    const struct cJSON *version;

    cJSON_ArrayForEach(version, versions)
    {
        if (strcmp(kinf__doc_text(version, "name", NULL), name) == 0)
            return true;
    }
    return false;
}

static void check_stored_versions(const struct cJSON *object, struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(NULL, "status.storedVersions");
    const struct cJSON *stored = kinf__doc_find(object, "status", "storedVersions", NULL), *item;
    size_t i = 0;

    if (cJSON_GetArraySize(stored) == 0)
        kinf__invalid_value(invalid, &field, stored, "must have at least one stored version");
    cJSON_ArrayForEach(item, stored)
    {
        const struct kinf__field item_field = kinf__field_index(&field, i++);
        const char *name = cJSON_IsString(item) ? item->valuestring : "";
        char why[KINF__NAME_FAULT_SIZE];

        snprintf(why, sizeof why,
                 "missing from spec.versions; %.63s was previously a storage version, and must "
                 "remain in spec.versions until a storage migration ensures no data remains "
                 "persisted in %.63s and removes %.63s from status.storedVersions",
                 name, name, name);
        if (!has_version(kinf__doc_find(object, "spec", "versions", NULL), name))
            kinf__invalid_text(invalid, &item_field, name, why);
    }
}

/* --- names --- */

static void check_kind(const char *kind, const struct kinf__field *field,
                       struct kinf__invalid *invalid)
{
    char lower[KINF__NAME_FAULT_SIZE], why[KINF__NAME_FAULT_SIZE], words[KINF__NAME_FAULT_SIZE];

    snprintf(lower, sizeof lower, "%s", kind);
    for (char *at = lower; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    if (*kind == '\0') {
        kinf__invalid_required(invalid, field, "");
    } else if (!kinf__name_is(KINF__NAME_LABEL_1035, lower, why)) {
        snprintf(words, sizeof words, "may have mixed case, but should otherwise match: %s", why);
        kinf__invalid_text(invalid, field, kind, words);
    }
}

static void check_names(const struct cJSON *names, const struct kinf__field *spec,
                        struct kinf__invalid *invalid)
{
    check_label(kinf__doc_text(names, "plural", NULL), KINF__AT(spec, "names.plural"), invalid);
    check_label(kinf__doc_text(names, "singular", NULL), KINF__AT(spec, "names.singular"), invalid);
    check_kind(kinf__doc_text(names, "kind", NULL), KINF__AT(spec, "names.kind"), invalid);
    check_kind(kinf__doc_text(names, "listKind", NULL), KINF__AT(spec, "names.listKind"), invalid);
}

static bool is_protected(const char *group)
{
    static const char *const suffixes[] = { ".k8s.io", ".kubernetes.io" };

    if (strcmp(group, "k8s.io") == 0 || strcmp(group, "kubernetes.io") == 0)
        return true;
    for (size_t i = 0; i < KINF__ARRAY_LEN(suffixes); i++) {
        size_t len = strlen(group), suffix = strlen(suffixes[i]);

        if (len > suffix && strcmp(group + len - suffix, suffixes[i]) == 0)
            return true;
    }
    return false;
}

static void check_group(const char *group, const struct kinf__field *spec,
                        struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(spec, "group");

    if (*group == '\0')
        kinf__invalid_required(invalid, &field, "");
    else if (kinf__invalid_check_name(invalid, &field, KINF__NAME_SUBDOMAIN, group) &&
             strchr(group, '.') == NULL)
        kinf__invalid_text(invalid, &field, group, "should be a domain with at least one dot");
}

static void check_approval(const struct cJSON *object, struct kinf__invalid *invalid)
{
    static const char annotation[] = "api-approved.kubernetes.io";
    const struct kinf__field annotations = kinf__field(NULL, "metadata.annotations");
    const struct kinf__field field = kinf__field_key(&annotations, annotation);

    if (is_protected(kinf__doc_text(object, "spec", "group", NULL)) &&
        *kinf__doc_text(object, "metadata", "annotations", annotation, NULL) == '\0')
        kinf__invalid_required(
            invalid, &field,
            "protected groups must have approval annotation \"api-approved.kubernetes.io\", see "
            "https://github.com/kubernetes/enhancements/pull/1111");
}

static void check_name(const struct cJSON *object, struct kinf__invalid *invalid)
{
    const char *name = kinf__doc_text(object, "metadata", "name", NULL);
    char expected[2 * KINF_NAME_MAX];

    snprintf(expected, sizeof expected, "%s.%s",
             kinf__doc_text(object, "spec", "names", "plural", NULL),
             kinf__doc_text(object, "spec", "group", NULL));
    if (strcmp(expected, name) != 0)
        kinf__invalid_text(invalid, KINF__AT(NULL, "metadata.name"), name,
                           "must be spec.names.plural+\".\"+spec.group");
}

/* --- all of it --- */

static void check_words(const struct cJSON *spec, const struct kinf__field *field,
                        struct kinf__invalid *invalid)
{
    kinf__kind_require(spec, field, "scope", invalid);
    kinf__kind_check_word(spec, field, "scope", "\"Cluster\", \"Namespaced\"", invalid);
    if (kinf__doc_is_true(spec, "preserveUnknownFields"))
        kinf__invalid_value(invalid, KINF__AT(field, "preserveUnknownFields"),
                            kinf__doc_get(spec, "preserveUnknownFields"),
                            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true "
                            "in spec.versions[*].schema instead");
    kinf__kind_check_word(kinf__doc_get(spec, "conversion"), KINF__AT(field, "conversion"),
                          "strategy", "\"None\", \"Webhook\"", invalid);
}

static void check_update(const struct cJSON *spec, const struct cJSON *old,
                         const struct kinf__field *field, struct kinf__invalid *invalid)
{
    const struct kinf__field names = kinf__field(field, "names");

    kinf__kind_check_same(old, spec, field, "group", KINF__IMMUTABLE, invalid);
    kinf__kind_check_same(old, spec, field, "scope", KINF__IMMUTABLE, invalid);
    kinf__kind_check_same(kinf__doc_get(old, "names"), kinf__doc_get(spec, "names"), &names, "kind",
                          KINF__IMMUTABLE, invalid);
    kinf__kind_check_same(kinf__doc_get(old, "names"), kinf__doc_get(spec, "names"), &names,
                          "plural", KINF__IMMUTABLE, invalid);
}

void kinf__definition_check(const struct cJSON *object, const struct cJSON *old,
                            struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(NULL, "spec");
    const struct cJSON *spec = kinf__doc_get(object, "spec");
    const struct cJSON *versions = kinf__doc_get(spec, "versions");

    if (old == NULL)
        check_name(object, invalid);
    check_group(kinf__doc_text(spec, "group", NULL), &field, invalid);
    check_words(spec, &field, invalid);
    check_versions(versions, &field, invalid);
    check_schemas(versions, &field, invalid);
    check_names(kinf__doc_get(spec, "names"), &field, invalid);
    check_approval(object, invalid);
    check_stored_versions(object, invalid);
    if (old != NULL)
        check_update(spec, kinf__doc_get(old, "spec"), &field, invalid);
}
