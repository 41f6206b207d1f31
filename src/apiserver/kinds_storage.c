/*
 * Volumes and claims, and their classes: PersistentVolume, PersistentVolumeClaim, StorageClass,
 * VolumeAttributesClass. Neighbours: kinds.c.
 */
#include "apiserver/kinds_priv.h"

#include <stdio.h>
#include <string.h>

int kinf__volume_create(const struct kinf__write *write)
{
    struct cJSON *status = kinf__doc_get(write->object, "status");
    char time[KINF__TIME_SIZE];

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
        char quoted[64];

        snprintf(quoted, sizeof quoted, "\"%s\"", text);
        if (strstr(access_modes, quoted) == NULL)
            kinf__invalid_unsupported(invalid, &field, text, access_modes);
    }
}

/* A volume's source is the member that nothing else is. */
static bool is_source(const char *name)
{
    static const char *const others[] = { "capacity",
                                          "accessModes",
                                          "claimRef",
                                          "persistentVolumeReclaimPolicy",
                                          "storageClassName",
                                          "mountOptions",
                                          "volumeMode",
                                          "nodeAffinity",
                                          "volumeAttributesClassName" };

    for (size_t i = 0; i < KINF__ARRAY_LEN(others); i++) {
        if (strcmp(name, others[i]) == 0)
            return false;
    }
    return true;
}

void kinf__volume_check(const struct cJSON *object, const struct cJSON *old,
                        struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(NULL, "spec");
    const struct kinf__field capacity = kinf__field(&field, "capacity");
    const struct kinf__field source_field = kinf__field(&field, "persistentvolumesource");
    const struct cJSON *spec = kinf__doc_get(object, "spec"), *source = NULL, *member;

    check_access_modes(spec, &field, "", invalid);
    if (cJSON_GetArraySize(kinf__doc_get(spec, "capacity")) == 0)
        kinf__invalid_required(invalid, &capacity, "");
    cJSON_ArrayForEach(member, spec)
    {
        if (is_source(member->string))
            source = member;
    }
    if (source == NULL)
        kinf__invalid_required(invalid, &field, "must specify a volume type");
    else if (old != NULL &&
             !kinf__doc_equal(source, kinf__doc_find(old, "spec", source->string, NULL)))
        kinf__invalid_forbidden(invalid, &source_field,
                                "spec.persistentvolumesource is immutable after creation");
}

/* Requests of a claim may grow, and it may be bound. */
static void forget_mutable(struct cJSON *spec)
{
    kinf__doc_remove(spec, "resources");
    kinf__doc_remove(spec, "volumeName");
    kinf__doc_remove(spec, "volumeAttributesClassName");
    kinf__doc_remove(spec, "storageClassName");
}

static void check_claim_update(const struct cJSON *spec, const struct cJSON *old,
                               const struct kinf__field *field, struct kinf__invalid *invalid)
{
    KINF__AUTO_DOC *before = kinf__doc_dup(old);
    KINF__AUTO_DOC *after = kinf__doc_dup(spec);

    /* Without memory it is the write itself that fails next. */
    if (before == NULL || after == NULL)
        return;
    forget_mutable(before);
    forget_mutable(after);
    if (!kinf__doc_equal(before, after))
        kinf__invalid_forbidden(invalid, field,
                                "spec is immutable after creation except resources.requests and "
                                "volumeAttributesClassName for bound claims");
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
    if (old != NULL)
        check_claim_update(spec, kinf__doc_get(old, "spec"), &field, invalid);
}

/* --- classes --- */

void kinf__storage_class_check(const struct cJSON *object, const struct cJSON *old,
                               struct kinf__invalid *invalid)
{
    static const char *const members[] = { "provisioner", "parameters", "reclaimPolicy",
                                           "volumeBindingMode" };

    kinf__kind_require(object, NULL, "provisioner", invalid);
    for (size_t i = 0; i < KINF__ARRAY_LEN(members); i++)
        kinf__kind_check_fixed(object, old, members[i], invalid);
}

void kinf__volume_attributes_check(const struct cJSON *object, const struct cJSON *old,
                                   struct kinf__invalid *invalid)
{
    (void)old;
    kinf__kind_require(object, NULL, "driverName", invalid);
    kinf__kind_require_items(object, NULL, "parameters", "must contain at least one key/value pair",
                             invalid);
}
