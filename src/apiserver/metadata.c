/*
 * Validation of metadata. Neighbours: kinds.c, which knows the form of names; names.c.
 */
#include "apiserver/kinds_priv.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "document/node_index.h"

#define ANNOTATIONS_MAX      262144
#define FINALIZER_ORPHAN     "orphan"
#define FINALIZER_FOREGROUND "foregroundDeletion"

/* What is put behind it will end well: a dash at its end is no fault. */
static void check_generate_name(const char *prefix, const struct kinf__field *field,
                                enum kinf__name_form form, struct kinf__invalid *invalid)
{
    char name[KINF__NAME_FAULT_SIZE], why[KINF__NAME_FAULT_SIZE];
    size_t len;

    snprintf(name, sizeof name, "%s", prefix);
    len = strlen(name);
    if (len > 1 && name[len - 1] == '-')
        name[len - 1] = 'a';
    if (!kinf__name_is(form, name, why))
        kinf__invalid_text(invalid, field, prefix, why);
}

static void check_names(const struct cJSON *metadata, const struct kinf__field *field,
                        enum kinf__name_form form, struct kinf__invalid *invalid)
{
    const struct kinf__field name_field = kinf__field(field, "name");
    const char *name = kinf__doc_text(metadata, "name", NULL);
    const char *prefix = kinf__doc_text(metadata, "generateName", NULL);

    if (*prefix != '\0')
        check_generate_name(prefix, KINF__AT(field, "generateName"), form, invalid);
    if (*name == '\0')
        kinf__invalid_required(invalid, &name_field, "name or generateName is required");
    else
        kinf__invalid_check_name(invalid, &name_field, form, name);
}

static void check_labels(const struct cJSON *labels, const struct kinf__field *field,
                         struct kinf__invalid *invalid)
{
    const struct cJSON *label;

    cJSON_ArrayForEach(label, labels)
    {
        kinf__invalid_check_name(invalid, field, KINF__NAME_QUALIFIED, label->string);
        if (cJSON_IsString(label))
            kinf__invalid_check_name(invalid, field, KINF__NAME_LABEL_VALUE, label->valuestring);
    }
}

/* Their keys may be of any case, even in a prefix. */
static void check_annotation(const char *key, const struct kinf__field *field,
                             struct kinf__invalid *invalid)
{
    char lower[KINF__NAME_FAULT_SIZE], why[KINF__NAME_FAULT_SIZE];
    size_t len = strlen(key);

    if (len >= sizeof lower)
        len = sizeof lower - 1;
    for (size_t i = 0; i < len; i++)
        lower[i] = (char)tolower((unsigned char)key[i]);
    lower[len] = '\0';
    if (!kinf__name_is(KINF__NAME_QUALIFIED, lower, why))
        kinf__invalid_text(invalid, field, key, why);
}

static void check_annotations(const struct cJSON *annotations, const struct kinf__field *field,
                              struct kinf__invalid *invalid)
{
    const struct cJSON *annotation;
    size_t size = 0;

    cJSON_ArrayForEach(annotation, annotations)
    {
        check_annotation(annotation->string, field, invalid);
        size += strlen(annotation->string);
        if (cJSON_IsString(annotation))
            size += strlen(annotation->valuestring);
    }
    if (size > ANNOTATIONS_MAX)
        kinf__invalid_too_long(invalid, field, ANNOTATIONS_MAX);
}

void kinf__metadata_validate_labels(const struct cJSON *metadata, const struct kinf__field *field,
                                    struct kinf__invalid *invalid)
{
    check_labels(kinf__doc_get(metadata, "labels"), KINF__AT(field, "labels"), invalid);
    check_annotations(kinf__doc_get(metadata, "annotations"), KINF__AT(field, "annotations"),
                      invalid);
}

/* --- owners --- */

static void check_owner(const struct cJSON *owner, const struct kinf__field *field,
                        struct kinf__invalid *invalid)
{
    static const char *const names[] = { "apiVersion", "kind", "name", "uid" };

    for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++) {

        if (*kinf__doc_text(owner, names[i], NULL) == '\0')
            kinf__invalid_required(invalid, KINF__AT(field, names[i]), "must not be empty");
    }
    if (strcmp(kinf__doc_text(owner, "kind", NULL), "Event") == 0 &&
        strcmp(kinf__doc_text(owner, "apiVersion", NULL), "v1") == 0)
        kinf__invalid_value(invalid, field, owner,
                            "/v1, Kind=Event is disallowed from being an owner");
}

static void check_owners(const struct cJSON *owners, const struct kinf__field *field,
                         struct kinf__invalid *invalid)
{
    const struct cJSON *owner, *controller = NULL;
    size_t i = 0;

    cJSON_ArrayForEach(owner, owners)
    {
        const struct kinf__field item = kinf__field_index(field, i++);

        check_owner(owner, &item, invalid);
    }
    cJSON_ArrayForEach(owner, owners)
    {
        char why[KINF__NAME_FAULT_SIZE];

        if (!kinf__doc_is_true(owner, "controller"))
            continue;
        if (controller != NULL) {
            snprintf(why, sizeof why,
                     "Only one reference can have Controller set to true. Found \"true\" in "
                     "references for %s/%s and %s/%s",
                     kinf__doc_text(controller, "kind", NULL),
                     kinf__doc_text(controller, "name", NULL), kinf__doc_text(owner, "kind", NULL),
                     kinf__doc_text(owner, "name", NULL));
            kinf__invalid_value(invalid, field, owners, why);
            return;
        }
        controller = owner;
    }
}

/* --- finalizers --- */

static bool is_standard_finalizer(const char *name)
{
    return strcmp(name, FINALIZER_ORPHAN) == 0 || strcmp(name, FINALIZER_FOREGROUND) == 0 ||
           strcmp(name, "kubernetes") == 0;
}

static void check_finalizers(const struct cJSON *finalizers, bool is_extension,
                             const struct kinf__field *field, struct kinf__invalid *invalid)
{
    const struct cJSON *finalizer;
    size_t i = 0;

    cJSON_ArrayForEach(finalizer, finalizers)
    {
        const struct kinf__field item = kinf__field_index(field, i++);
        const char *name = cJSON_IsString(finalizer) ? finalizer->valuestring : "";

        kinf__invalid_check_name(invalid, field, KINF__NAME_QUALIFIED, name);
        if (!is_extension && strchr(name, '/') == NULL && !is_standard_finalizer(name))
            kinf__invalid_text(
                invalid, &item, name,
                "name is neither a standard finalizer name nor is it fully qualified");
    }
    if (kinf__doc_has_text(finalizers, FINALIZER_ORPHAN) &&
        kinf__doc_has_text(finalizers, FINALIZER_FOREGROUND))
        kinf__invalid_value(invalid, field, finalizers,
                            "finalizer orphan and foregroundDeletion cannot be both set");
}

static int index_texts(struct kinf__node_index *index, const struct cJSON *array)
{
    struct cJSON *text;

    cJSON_ArrayForEach(text, array)
    {
        if (cJSON_IsString(text) && kinf__node_index_find(index, text->valuestring) == NULL &&
            kinf__node_index_add(index, text->valuestring, text, 0) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

/* An object that is being deleted waits for those who were there, and for nobody else. */
static void check_new_finalizers(const struct cJSON *metadata, const struct cJSON *old,
                                 const struct kinf__field *field, struct kinf__invalid *invalid)
{
    KINF__AUTO_NODE_INDEX before = { KINF__HMAP_INIT };
    struct cJSON *finalizer;
    char names[KINF__NAME_FAULT_SIZE] = "", why[2 * KINF__NAME_FAULT_SIZE];
    size_t len = 0;

    /* Without memory the write itself fails next. */
    if (kinf__doc_get(old, "deletionTimestamp") == NULL ||
        index_texts(&before, kinf__doc_get(old, "finalizers")) < 0)
        return;
    cJSON_ArrayForEach(finalizer, kinf__doc_get(metadata, "finalizers"))
    {
        if (!cJSON_IsString(finalizer) ||
            kinf__node_index_find(&before, finalizer->valuestring) != NULL)
            continue;
        if (len < sizeof names)
            len += (size_t)snprintf(names + len, sizeof names - len, "%s\"%s\"",
                                    len != 0 ? ", " : "", finalizer->valuestring);
    }
    if (len == 0)
        return;
    snprintf(why, sizeof why,
             "no new finalizers can be added if the object is being deleted, found new finalizers "
             "[]string{%s}",
             names);
    kinf__invalid_forbidden(invalid, field, why);
}

/* "Invalid value: <value>: field is immutable" of what the client says otherwise. */
static void check_same(const struct cJSON *metadata, const struct cJSON *old,
                       const struct kinf__field *field, struct kinf__invalid *invalid)
{
    static const char *const names[] = { "uid", "deletionTimestamp", "deletionGracePeriodSeconds" };

    for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++) {
        const struct cJSON *value = kinf__doc_get(metadata, names[i]);

        if (value != NULL && !kinf__doc_equal(kinf__doc_get(old, names[i]), value))
            kinf__invalid_value(invalid, KINF__AT(field, names[i]), value, "field is immutable");
    }
}

void kinf__metadata_validate(const struct cJSON *object, const struct cJSON *old,
                             struct kinf__metadata_rules rules, struct kinf__invalid *invalid)
{
    const struct cJSON *metadata = kinf__doc_get(object, "metadata");
    const struct kinf__field field = kinf__field(NULL, "metadata");
    const struct kinf__field finalizers = kinf__field(&field, "finalizers");

    check_names(metadata, &field, rules.form, invalid);
    kinf__kind_check_not_negative(metadata, &field, "generation", invalid);
    kinf__metadata_validate_labels(metadata, &field, invalid);
    check_owners(kinf__doc_get(metadata, "ownerReferences"), KINF__AT(&field, "ownerReferences"),
                 invalid);
    check_finalizers(kinf__doc_get(metadata, "finalizers"), rules.is_extension, &finalizers,
                     invalid);
    if (old == NULL)
        return;
    check_new_finalizers(metadata, kinf__doc_get(old, "metadata"), &finalizers, invalid);
    check_same(metadata, kinf__doc_get(old, "metadata"), &field, invalid);
}
