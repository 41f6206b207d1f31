/*
 * Volumes and claims: how they are protected, and what of them changes. Neighbours: kinds.c.
 */
#include "apiserver/kinds_priv.h"
#include "apiserver/types.h"

#include <string.h>

#include "apiserver/refuse.h"
#include "document/quantity.h"

int kinf__volume_create(const struct kinf__write *write)
{
    struct cJSON *status = kinf__doc_get(write->object, "status");
    char time[KINF__RFC3339_SIZE];

    kinf__sim_time(time);
    if (kinf__doc_set_text(status, "lastPhaseTransitionTime", time) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__doc_add_text(kinf__doc_get(write->object, "metadata"), "finalizers",
                              "kubernetes.io/pv-protection");
}

int kinf__volume_claim_create(const struct kinf__write *write)
{
    return kinf__doc_add_text(kinf__doc_get(write->object, "metadata"), "finalizers",
                              "kubernetes.io/pvc-protection");
}

static const char access_modes[] =
    "\"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\"";

static void check_access_modes(const struct cJSON *spec, const struct kinf__field *parent,
                               const char *why, struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(parent, "accessModes");
    const struct cJSON *modes = kinf__doc_get(spec, "accessModes"), *mode;

    if (cJSON_GetArraySize(modes) == 0)
        kinf__invalid_required(invalid, &field, why);
    cJSON_ArrayForEach(mode, modes)
    {
        const char *text = cJSON_IsString(mode) ? mode->valuestring : "";

        if (!kinf__kind_is_supported(access_modes, text))
            kinf__invalid_unsupported(invalid, &field, text, access_modes);
    }
}

/* A volume's source is the member that nothing else is. */
static bool is_source(const char *name)
{
    return !kinf__has_word("capacity,accessModes,claimRef,persistentVolumeReclaimPolicy,"
                           "storageClassName,mountOptions,volumeMode,nodeAffinity,"
                           "volumeAttributesClassName",
                           name);
}

/* A secret for what can be expanded may be told later. */
static void forget_late_secret(const struct cJSON *old, struct cJSON *csi)
{
    if (kinf__doc_get(old, "controllerExpandSecretRef") == NULL)
        kinf__doc_remove(csi, "controllerExpandSecretRef");
}

static bool is_source_same(const struct cJSON *old, const struct cJSON *spec, const char *name)
{
    KINF__AUTO_DOC *source = kinf__doc_dup(kinf__doc_get(spec, name));
    const struct cJSON *before = kinf__doc_get(old, name);

    if (strcmp(name, "csi") == 0)
        forget_late_secret(before, source);
    return kinf__doc_equal(before, source);
}

/* Both have one: what the old one had, the new one has. */
static bool are_sources_same(const struct cJSON *old, const struct cJSON *spec)
{
    const struct cJSON *member;

    cJSON_ArrayForEach(member, old)
    {
        if (is_source(member->string) && !is_source_same(old, spec, member->string))
            return false;
    }
    return true;
}

static void check_source(const struct cJSON *spec, const struct cJSON *old,
                         const struct kinf__field *field, struct kinf__invalid *invalid)
{
    const struct cJSON *member;
    size_t n_sources = 0;

    cJSON_ArrayForEach(member, spec)
    {
        if (is_source(member->string) && ++n_sources > 1)
            kinf__invalid_forbidden(invalid, KINF__AT(field, member->string),
                                    "may not specify more than 1 volume type");
    }
    if (n_sources == 0)
        kinf__invalid_required(invalid, field, "must specify a volume type");
    if (old != NULL && (n_sources > 1 || !are_sources_same(old, spec)))
        kinf__invalid_forbidden(invalid, KINF__AT(field, "persistentvolumesource"),
                                "spec.persistentvolumesource is immutable after creation");
}

static void check_volume_changes(const struct cJSON *spec, const struct cJSON *old,
                                 const struct kinf__field *field, struct kinf__invalid *invalid)
{
    /* The server forgets to say that both are in the spec. */
    kinf__kind_check_same(old, spec, NULL, "volumeMode", KINF__IMMUTABLE, invalid);
    if (kinf__doc_get(old, "nodeAffinity") != NULL)
        kinf__kind_check_same(old, spec, NULL, "nodeAffinity",
                              KINF__IMMUTABLE ", except for updating from beta label to GA",
                              invalid);
    if (kinf__doc_get(old, "volumeAttributesClassName") != NULL &&
        kinf__doc_get(spec, "volumeAttributesClassName") == NULL)
        kinf__invalid_forbidden(invalid, KINF__AT(field, "volumeAttributesClassName"),
                                "update from non-nil value to nil is forbidden");
}

void kinf__volume_check(const struct cJSON *object, const struct cJSON *old,
                        struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(NULL, "spec");
    const struct cJSON *spec = kinf__doc_get(object, "spec");
    const struct cJSON *before = kinf__doc_get(old, "spec");

    check_access_modes(spec, &field, "", invalid);
    if (cJSON_GetArraySize(kinf__doc_get(spec, "capacity")) == 0)
        kinf__invalid_required(invalid, KINF__AT(&field, "capacity"), "");
    check_source(spec, before, &field, invalid);
    if (old != NULL)
        check_volume_changes(spec, before, &field, invalid);
}

/* --- what of a claim may change --- */

static const char *size_of(const struct cJSON *spec)
{
    return kinf__doc_text(spec, "resources", "requests", "storage", NULL);
}

static bool is_bound(const struct cJSON *claim)
{
    return strcmp(kinf__doc_text(claim, "status", "phase", NULL), "Bound") == 0;
}

/* As the annotation said it once. */
static const char *class_of(const struct cJSON *claim)
{
    const char *class = kinf__doc_text(claim, "metadata", "annotations",
                                       "volume.beta.kubernetes.io/storage-class", NULL);

    return *class != '\0' ? class : kinf__doc_text(claim, "spec", "storageClassName", NULL);
}

/* Admission: whether what provides the volume can expand it. Errors: KINF_ERR_NO_MEMORY. */
static int find_expandable(const struct kinf__write *write, bool *ret_is_expandable)
{
    struct kinf__resource *classes =
        kinf__store_find(kinf__sim_store(write->sim), "storage.k8s.io", "storageclasses");
    const char *name = class_of(write->object);
    KINF__AUTO_DOC *class = NULL;
    int failed = strcmp(name, class_of(write->old)) == 0
                     ? kinf__store_read(classes, "", name, &class)
                     : KINF_ERR_NOT_FOUND;

    *ret_is_expandable = kinf__doc_is_true(class, "allowVolumeExpansion");
    return failed == KINF_ERR_NOT_FOUND ? 0 : failed;
}

int kinf__volume_claim_update(const struct kinf__write *write)
{
    const char *name = kinf__doc_text(write->object, "metadata", "name", NULL);
    bool is_expandable;
    int failed;

    /* That of a claim which is not bound is immutable. */
    if (!is_bound(write->old) ||
        !kinf__quantity_exceeds(size_of(kinf__doc_get(write->object, "spec")),
                                size_of(kinf__doc_get(write->old, "spec"))))
        return 0;
    failed = find_expandable(write, &is_expandable);
    if (failed < 0 || is_expandable)
        return failed;
    return kinf__refuse_forbidden(write->refusal, write->resource, name,
                                  "only dynamically provisioned pvc can be resized and the "
                                  "storageclass that provisions the pvc must support resize");
}

/* Takes out of copies what may differ; `old_spec` is of the claim as it was. */
static void forget_mutable(const struct cJSON *claim, struct cJSON *old_spec, struct cJSON *spec)
{
    struct cJSON *specs[] = { old_spec, spec };
    bool is_unnamed = *kinf__doc_text(old_spec, "volumeName", NULL) == '\0',
         is_classless = kinf__doc_get(old_spec, "storageClassName") == NULL &&
                        kinf__doc_get(spec, "storageClassName") != NULL;

    for (size_t i = 0; i < KINF__ARRAY_LEN(specs); i++) {
        if (is_unnamed)
            kinf__doc_remove(specs[i], "volumeName");
        if (is_classless)
            kinf__doc_remove(specs[i], "storageClassName");
        if (!is_bound(claim))
            continue;
        kinf__doc_remove(kinf__doc_find(specs[i], "resources", "requests", NULL), "storage");
        kinf__doc_remove(specs[i], "volumeAttributesClassName");
    }
}

/* Without memory it is; the write itself fails next. */
static bool is_claim_same(const struct cJSON *old, const struct cJSON *object)
{
    KINF__AUTO_DOC *before = kinf__doc_dup(kinf__doc_get(old, "spec"));
    KINF__AUTO_DOC *after = kinf__doc_dup(kinf__doc_get(object, "spec"));

    if (before == NULL || after == NULL)
        return true;
    forget_mutable(object, before, after);
    return kinf__doc_equal(before, after);
}

/* It can shrink as long as it is being expanded. */
static void check_size(const struct cJSON *object, const struct cJSON *old,
                       const struct kinf__field *spec_field, struct kinf__invalid *invalid)
{
    const char *size = size_of(kinf__doc_get(object, "spec"));
    const char *capacity = kinf__doc_text(old, "status", "capacity", "storage", NULL);

    if (kinf__quantity_exceeds(size_of(kinf__doc_get(old, "spec")), size) && *capacity != '\0' &&
        !kinf__quantity_exceeds(size, capacity))
        kinf__invalid_forbidden(invalid, KINF__AT(spec_field, "resources.requests.storage"),
                                "field can not be less than status.capacity");
}

static void check_attributes_class(const struct cJSON *object, const struct cJSON *old,
                                   const struct kinf__field *spec_field,
                                   struct kinf__invalid *invalid)
{
    static const char name[] = "volumeAttributesClassName";
    const struct cJSON *class = kinf__doc_find(object, "spec", name, NULL);

    if (kinf__doc_find(old, "status", "currentVolumeAttributesClassName", NULL) == NULL ||
        kinf__doc_equal(class, kinf__doc_find(old, "spec", name, NULL)))
        return;
    if (class == NULL)
        kinf__invalid_forbidden(invalid, KINF__AT(spec_field, name),
                                "update to nil is forbidden when "
                                "status.currentVolumeAttributesClassName is not nil");
    else if (*kinf__doc_text(object, "spec", name, NULL) == '\0')
        kinf__invalid_forbidden(invalid, KINF__AT(spec_field, name),
                                "update to empty string is forbidden when "
                                "status.currentVolumeAttributesClassName is not nil");
}

static void check_capacity(const struct cJSON *status, struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(NULL, "status.capacity");
    const struct cJSON *quantity;

    cJSON_ArrayForEach(quantity, kinf__doc_get(status, "capacity"))
    {
        const struct kinf__field item = kinf__field_key(&field, quantity->string);

        if (cJSON_IsString(quantity) && quantity->valuestring[0] == '-')
            kinf__invalid_text(invalid, &item, quantity->valuestring,
                               "must be a valid resource quantity");
    }
}

void kinf__volume_claim_check(const struct cJSON *object, const struct cJSON *old,
                              struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(NULL, "spec");
    const struct kinf__field resources = kinf__field(&field, "resources");
    const struct kinf__field storage = kinf__field_key(&resources, "storage");
    const struct cJSON *spec = kinf__doc_get(object, "spec");

    check_access_modes(spec, &field, "at least 1 access mode is required", invalid);
    if (kinf__doc_find(spec, "resources", "requests", "storage", NULL) == NULL)
        kinf__invalid_required(invalid, &storage, "");
    if (old == NULL)
        return;
    if (!is_claim_same(old, object))
        kinf__invalid_forbidden(invalid, &field,
                                "spec is immutable after creation except resources.requests and "
                                "volumeAttributesClassName for bound claims");
    check_size(object, old, &field, invalid);
    kinf__kind_check_same(kinf__doc_get(old, "spec"), spec, NULL, "volumeMode", KINF__IMMUTABLE,
                          invalid);
    check_attributes_class(object, old, &field, invalid);
    check_capacity(kinf__doc_get(object, "status"), invalid);
}
