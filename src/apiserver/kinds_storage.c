/*
 * Volumes and claims, and their classes: PersistentVolume, PersistentVolumeClaim, StorageClass,
 * VolumeAttributesClass. Neighbours: kinds.c.
 */
#include "apiserver/kinds_priv.h"
#include "apiserver/types.h"

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

void kinf__volume_check(const struct cJSON *object, const struct cJSON *old,
                        struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(NULL, "spec");
    const struct cJSON *spec = kinf__doc_get(object, "spec"), *source = NULL, *member;

    check_access_modes(spec, &field, "", invalid);
    if (cJSON_GetArraySize(kinf__doc_get(spec, "capacity")) == 0)
        kinf__invalid_required(invalid, KINF__AT(&field, "capacity"), "");
    cJSON_ArrayForEach(member, spec)
    {
        if (is_source(member->string))
            source = member;
    }
    if (source == NULL)
        kinf__invalid_required(invalid, &field, "must specify a volume type");
    else if (old != NULL &&
             !kinf__doc_equal(source, kinf__doc_find(old, "spec", source->string, NULL)))
        kinf__invalid_forbidden(invalid, KINF__AT(&field, "persistentvolumesource"),
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
    if (old != NULL && !kinf__kind_is_same_but(kinf__doc_get(old, "spec"), spec, forget_mutable))
        kinf__invalid_forbidden(invalid, &field,
                                "spec is immutable after creation except resources.requests and "
                                "volumeAttributesClassName for bound claims");
}

/* --- classes --- */
