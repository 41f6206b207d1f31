/*
 * Kinds of which little is checked: what they cannot be without. Neighbours: kinds.c, kinds_minor.c.
 */
#include "apiserver/kinds_priv.h"

#include <stdio.h>
#include <string.h>

static void require_text(const struct cJSON *object, const struct kinf__field *parent,
                         const char *name, struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(parent, name);

    if (*kinf__doc_text(object, name, NULL) == '\0')
        kinf__invalid_required(invalid, &field, "");
}

static void require_items(const struct cJSON *object, const struct kinf__field *parent,
                          const char *name, const char *why, struct kinf__invalid *invalid)
{
    const struct kinf__field field = kinf__field(parent, name);

    if (cJSON_GetArraySize(kinf__doc_get(object, name)) == 0)
        kinf__invalid_required(invalid, &field, why);
}

void kinf__ingress_class_check(const struct cJSON *object, const struct cJSON *old,
                               struct kinf__invalid *invalid)
{
    const struct kinf__field spec = kinf__field(NULL, "spec");

    (void)old;
    require_text(kinf__doc_get(object, "spec"), &spec, "controller", invalid);
}

void kinf__service_range_check(const struct cJSON *object, const struct cJSON *old,
                               struct kinf__invalid *invalid)
{
    const struct kinf__field spec = kinf__field(NULL, "spec");

    (void)old;
    require_items(kinf__doc_get(object, "spec"), &spec, "cidrs", "at least one CIDR required",
                  invalid);
}

void kinf__volume_attributes_check(const struct cJSON *object, const struct cJSON *old,
                                   struct kinf__invalid *invalid)
{
    (void)old;
    require_text(object, NULL, "driverName", invalid);
    require_items(object, NULL, "parameters", "must contain at least one key/value pair", invalid);
}

void kinf__revision_check(const struct cJSON *object, const struct cJSON *old,
                          struct kinf__invalid *invalid)
{
    const struct kinf__field data = kinf__field(NULL, "data");

    if (kinf__doc_get(object, "data") == NULL)
        kinf__invalid_required(invalid, &data, "data is mandatory");
    else if (old != NULL)
        kinf__kind_check_same(old, object, NULL, "data", KINF__IMMUTABLE, invalid);
}

void kinf__api_service_check(const struct cJSON *object, const struct cJSON *old,
                             struct kinf__invalid *invalid)
{
    const struct kinf__field metadata = kinf__field(NULL, "metadata");
    const struct kinf__field field = kinf__field(&metadata, "name");
    const char *name = kinf__doc_text(object, "metadata", "name", NULL);
    char wanted[KINF__NAME_FAULT_SIZE], why[KINF__NAME_FAULT_SIZE + 64];

    (void)old;
    snprintf(wanted, sizeof wanted, "%.63s.%.253s", kinf__doc_text(object, "spec", "version", NULL),
             kinf__doc_text(object, "spec", "group", NULL));
    snprintf(why, sizeof why, "must be `spec.version+\".\"+spec.group`: \"%s\"", wanted);
    if (strcmp(name, wanted) != 0)
        kinf__invalid_text(invalid, &field, name, why);
}

void kinf__quota_check(const struct cJSON *object, const struct cJSON *old,
                       struct kinf__invalid *invalid)
{
    const struct kinf__field spec = kinf__field(NULL, "spec");
    const struct kinf__field hard = kinf__field(&spec, "hard");
    const struct cJSON *quantity;

    (void)old;
    cJSON_ArrayForEach(quantity, kinf__doc_find(object, "spec", "hard", NULL))
    {
        const struct kinf__field item = kinf__field_key(&hard, quantity->string);

        if (cJSON_IsString(quantity) && quantity->valuestring[0] == '-')
            kinf__invalid_text(invalid, &item, quantity->valuestring,
                               "must be greater than or equal to 0");
    }
}

/* --- what Go's structs have always, though nobody has said it --- */

int kinf__role_write(const struct kinf__write *write)
{
    return kinf__kind_fill(write->object, "{\"rules\":null}");
}

int kinf__endpoint_slice_write(const struct kinf__write *write)
{
    return kinf__kind_fill(write->object, "{\"ports\":null}");
}

int kinf__core_event_write(const struct kinf__write *write)
{
    return kinf__kind_fill(write->object,
                           "{\"eventTime\":null,\"firstTimestamp\":null,\"lastTimestamp\":null,"
                           "\"reportingComponent\":\"\",\"reportingInstance\":\"\"}");
}

int kinf__event_write(const struct kinf__write *write)
{
    return kinf__kind_fill(write->object, "{\"eventTime\":null,\"deprecatedFirstTimestamp\":null,"
                                          "\"deprecatedLastTimestamp\":null}");
}

/* --- events --- */

/* Both kinds of events are one to the server: faults have the names of the older one's fields. */
static void check_about(const struct cJSON *object, const char *about,
                        struct kinf__invalid *invalid)
{
    const struct kinf__field parent = kinf__field(NULL, "involvedObject");
    const struct kinf__field field = kinf__field(&parent, "namespace");
    const char *its = kinf__doc_text(object, about, "namespace", NULL),
               *own = kinf__doc_text(object, "metadata", "namespace", NULL);

    if (strcmp(*its != '\0' ? its : "default", own) != 0)
        kinf__invalid_text(invalid, &field, its, "does not match event.namespace");
}

void kinf__core_event_check(const struct cJSON *object, const struct cJSON *old,
                            struct kinf__invalid *invalid)
{
    (void)old;
    check_about(object, "involvedObject", invalid);
}

void kinf__event_check(const struct cJSON *object, const struct cJSON *old,
                       struct kinf__invalid *invalid)
{
    const struct kinf__field time = kinf__field(NULL, "eventTime"),
                             type_field = kinf__field(NULL, "type"),
                             message = kinf__field(NULL, "message");
    const char *type = kinf__doc_text(object, "type", NULL);
    char why[KINF__NAME_FAULT_SIZE];

    check_about(object, "regarding", invalid);
    if (*kinf__doc_text(object, "eventTime", NULL) == '\0')
        kinf__invalid_required(invalid, &time, "");
    snprintf(why, sizeof why, "has invalid value: %.128s", type);
    if (strcmp(type, "Normal") != 0 && strcmp(type, "Warning") != 0)
        kinf__invalid_text(invalid, &type_field, "", why);
    if (old != NULL && !kinf__doc_equal(kinf__doc_get(old, "note"), kinf__doc_get(object, "note")))
        kinf__invalid_value(invalid, &message, kinf__doc_get(object, "note"), KINF__IMMUTABLE);
}
