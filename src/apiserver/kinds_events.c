/*
 * Events of both groups. Neighbours: kinds.c.
 */
#include "apiserver/kinds_priv.h"

#include <stdio.h>
#include <string.h>

/* What Go's structs have always, though nobody has said it. */
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
