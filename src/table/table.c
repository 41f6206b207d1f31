/*
 * What every type shows. Its columns, with all that the API server says of them, are recorded from one
 * (columns.inc); here is what fills them, a cell for each. Neighbours: pod.c, workload.c, network.c and
 * cluster.c have cells that are more than a field, row.c all others, serve/ puts rows into Tables.
 */
#include "table/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "object/object.h"
#include "table/custom.h"
#include "table/row.h"
#include "table/rules.h"

#include "table/columns.inc"

#define MAX_CELLS 11

struct kinf__table {
    const char *group;
    const char *resource;
    const char *columns; /* JSON */
    struct kinf__cell cells[MAX_CELLS];
    struct kinf__custom_columns *custom; /* more of both; NULL: none */
};

#define OWN(cell)                                                                                  \
    {                                                                                              \
        cell, NULL, NULL, NULL                                                                     \
    }
#define CELL(cell, path, otherwise)                                                                \
    {                                                                                              \
        NULL, cell, path, otherwise                                                                \
    }
#define TEXT(path, otherwise)     CELL(kinf__cell_string, path, otherwise)
#define OPTIONAL(path, otherwise) CELL(kinf__cell_optional, path, otherwise)
#define INT(path)                 CELL(kinf__cell_number, path, NULL)
#define INT_OR(path, otherwise)   CELL(kinf__cell_number, path, otherwise)
#define FLAG(path, otherwise)     CELL(kinf__cell_flag, path, otherwise)
#define COUNT(path)               CELL(kinf__cell_count, path, NULL)
#define PAIR(path, otherwise)     CELL(kinf__cell_pair, path, otherwise)
#define READY(path, wanted)       CELL(kinf__cell_ready, path, wanted)
#define LABELS(path)              CELL(kinf__cell_labels, path, "<none>")
#define SELECTOR(path)            CELL(kinf__cell_selector, path, "<none>")
#define CONTAINERS(path)          CELL(kinf__cell_containers, path, "") /* two */
#define ADDRESS(type)             CELL(kinf__cell_node_address, type, "<none>")
#define MODES(path)               CELL(kinf__cell_modes, path, "")
#define MESSAGE(path)             CELL(kinf__cell_message, path, "")
#define JOINED(path)              CELL(kinf__cell_joined, path, "")
#define SINCE(path, otherwise)    CELL(kinf__cell_since, path, otherwise)
#define NAME                      TEXT("metadata.name", "")
#define AGE                       SINCE("metadata.creationTimestamp", "<unknown>")
#define CREATED                   CELL(kinf__cell_value, "metadata.creationTimestamp", NULL)

#define SHOW(columns, ...)                                                                         \
    {                                                                                              \
        columns, { __VA_ARGS__ }, NULL                                                             \
    }

static const struct kinf__table tables[] = {
    /* core */
    SHOW(PODS, NAME, OWN(kinf__cells_pod), AGE, TEXT("status.podIP", "<none>"),
         TEXT("spec.nodeName", "<none>"), TEXT("status.nominatedNodeName", "<none>"),
         OWN(kinf__cell_gates)),
    SHOW(NODES, NAME, OWN(kinf__cell_node_status), OWN(kinf__cell_node_roles), AGE,
         TEXT("status.nodeInfo.kubeletVersion", ""), ADDRESS("InternalIP"), ADDRESS("ExternalIP"),
         TEXT("status.nodeInfo.osImage", "<unknown>"), OWN(kinf__cell_kernel),
         TEXT("status.nodeInfo.containerRuntimeVersion", "<unknown>")),
    SHOW(SERVICES, NAME, TEXT("spec.type", ""), TEXT("spec.clusterIP", "<none>"),
         OWN(kinf__cell_external_ip), OWN(kinf__cell_service_ports), AGE, LABELS("spec.selector")),
    SHOW(ENDPOINTS, NAME, OWN(kinf__cell_endpoints), AGE),
    SHOW(CONFIGMAPS, NAME, OWN(kinf__cell_config_data), AGE),
    SHOW(SECRETS, NAME, TEXT("type", ""), COUNT("data"), AGE),
    SHOW(SERVICEACCOUNTS, NAME, AGE),
    SHOW(NAMESPACES, NAME, TEXT("status.phase", ""), AGE),
    SHOW(LIMITRANGES, NAME, CREATED),
    SHOW(RESOURCEQUOTAS, NAME, OWN(kinf__cells_quota), AGE),
    SHOW(EVENTS, OWN(kinf__cell_last_seen), TEXT("type", ""), TEXT("reason", ""),
         OWN(kinf__cell_event_object), TEXT("involvedObject.fieldPath", ""),
         OWN(kinf__cell_event_source), MESSAGE("message"), OWN(kinf__cell_first_seen),
         OWN(kinf__cell_event_count), NAME),
    SHOW(EVENTS_EVENTS, OWN(kinf__cell_last_seen), TEXT("type", ""), TEXT("reason", ""),
         OWN(kinf__cell_event_object), TEXT("regarding.fieldPath", ""),
         OWN(kinf__cell_event_source), MESSAGE("note"), OWN(kinf__cell_first_seen),
         OWN(kinf__cell_event_count), NAME),
    SHOW(PERSISTENTVOLUMECLAIMS, NAME, OWN(kinf__cell_phase), TEXT("spec.volumeName", ""),
         OWN(kinf__cells_bound), OWN(kinf__cell_storage_class),
         OPTIONAL("spec.volumeAttributesClassName", "<unset>"), AGE,
         TEXT("spec.volumeMode", "<unset>")),
    SHOW(PERSISTENTVOLUMES, NAME, TEXT("spec.capacity.storage", "0"), MODES("spec.accessModes"),
         TEXT("spec.persistentVolumeReclaimPolicy", ""), OWN(kinf__cell_phase),
         PAIR("spec.claimRef.namespace/spec.claimRef.name", ""), OWN(kinf__cell_storage_class),
         OPTIONAL("spec.volumeAttributesClassName", "<unset>"), TEXT("status.reason", ""), AGE,
         TEXT("spec.volumeMode", "<unset>")),
    SHOW(PODTEMPLATES, NAME, CONTAINERS("template.spec.containers"),
         LABELS("template.metadata.labels")),
    SHOW(REPLICATIONCONTROLLERS, NAME, INT("spec.replicas"), INT("status.replicas"),
         INT("status.readyReplicas"), AGE, CONTAINERS("spec.template.spec.containers"),
         LABELS("spec.selector")),
    /* apps, batch, autoscaling, policy */
    SHOW(DEPLOYMENTS, NAME, READY("status.readyReplicas", "spec.replicas"),
         INT("status.updatedReplicas"), INT("status.availableReplicas"), AGE,
         CONTAINERS("spec.template.spec.containers"), SELECTOR("spec.selector")),
    SHOW(REPLICASETS, NAME, INT("spec.replicas"), INT("status.replicas"),
         INT("status.readyReplicas"), AGE, CONTAINERS("spec.template.spec.containers"),
         SELECTOR("spec.selector")),
    SHOW(STATEFULSETS, NAME, READY("status.readyReplicas", "spec.replicas"), AGE,
         CONTAINERS("spec.template.spec.containers")),
    SHOW(DAEMONSETS, NAME, INT("status.desiredNumberScheduled"),
         INT("status.currentNumberScheduled"), INT("status.numberReady"),
         INT("status.updatedNumberScheduled"), INT("status.numberAvailable"),
         LABELS("spec.template.spec.nodeSelector"), AGE,
         CONTAINERS("spec.template.spec.containers"), SELECTOR("spec.selector")),
    SHOW(CONTROLLERREVISIONS, NAME, OWN(kinf__cell_controller), INT("revision"), AGE),
    SHOW(JOBS, NAME, OWN(kinf__cell_job_state), OWN(kinf__cell_completions),
         OWN(kinf__cell_job_duration), AGE, CONTAINERS("spec.template.spec.containers"),
         SELECTOR("spec.selector")),
    SHOW(CRONJOBS, NAME, TEXT("spec.schedule", ""), TEXT("spec.timeZone", "<none>"),
         OWN(kinf__cell_suspend), COUNT("status.active"),
         SINCE("status.lastScheduleTime", "<none>"), AGE,
         CONTAINERS("spec.jobTemplate.spec.template.spec.containers"),
         SELECTOR("spec.jobTemplate.spec.selector")),
    SHOW(HORIZONTALPODAUTOSCALERS, NAME,
         PAIR("spec.scaleTargetRef.kind/spec.scaleTargetRef.name", ""), OWN(kinf__cell_targets),
         TEXT("spec.minReplicas", "<unset>"), INT("spec.maxReplicas"),
         INT("status.currentReplicas"), AGE),
    SHOW(PODDISRUPTIONBUDGETS, NAME, TEXT("spec.minAvailable", "N/A"),
         TEXT("spec.maxUnavailable", "N/A"), INT("status.disruptionsAllowed"), AGE),
    /* networks */
    SHOW(ENDPOINTSLICES, NAME, TEXT("addressType", ""), OWN(kinf__cell_slice_ports),
         OWN(kinf__cell_slice_endpoints), AGE),
    SHOW(INGRESSES, NAME, TEXT("spec.ingressClassName", "<none>"), OWN(kinf__cell_hosts),
         OWN(kinf__cell_ingress_address), OWN(kinf__cell_ingress_ports), AGE),
    SHOW(INGRESSCLASSES, OWN(kinf__cell_ingress_class_name), TEXT("spec.controller", ""),
         OWN(kinf__cell_class_parameters), AGE),
    SHOW(NETWORKPOLICIES, NAME, SELECTOR("spec.podSelector"), AGE),
    SHOW(IPADDRESSES, NAME, OWN(kinf__cell_parent), AGE),
    SHOW(SERVICECIDRS, NAME, JOINED("spec.cidrs"), AGE),
    /* storage, devices */
    SHOW(STORAGECLASSES, OWN(kinf__cell_storage_class_name), TEXT("provisioner", ""),
         TEXT("reclaimPolicy", "Delete"), TEXT("volumeBindingMode", "Immediate"),
         FLAG("allowVolumeExpansion", "false"), AGE),
    SHOW(VOLUMEATTACHMENTS, NAME, TEXT("spec.attacher", ""),
         TEXT("spec.source.persistentVolumeName", ""), TEXT("spec.nodeName", ""),
         FLAG("status.attached", "false"), AGE),
    SHOW(VOLUMEATTRIBUTESCLASSES, NAME, TEXT("driverName", ""), AGE),
    SHOW(CSIDRIVERS, NAME, FLAG("spec.attachRequired", "true"),
         FLAG("spec.podInfoOnMount", "false"), FLAG("spec.storageCapacity", "false"),
         OWN(kinf__cell_audiences), FLAG("spec.requiresRepublish", "false"),
         CELL(kinf__cell_joined, "spec.volumeLifecycleModes", "<none>"), AGE),
    SHOW(CSINODES, NAME, COUNT("spec.drivers"), AGE),
    SHOW(CSISTORAGECAPACITIES, NAME, CREATED),
    SHOW(DEVICECLASSES, NAME, AGE),
    SHOW(DEVICETAINTRULES, NAME, TEXT("spec.taint.key", ""), TEXT("spec.taint.value", ""),
         TEXT("spec.taint.effect", ""), SINCE("spec.taint.timeAdded", ""), AGE),
    SHOW(RESOURCECLAIMS, NAME, OWN(kinf__cell_claim_state), AGE),
    SHOW(RESOURCECLAIMTEMPLATES, NAME, AGE),
    SHOW(RESOURCESLICES, NAME, TEXT("spec.nodeName", ""), TEXT("spec.driver", ""),
         TEXT("spec.pool.name", ""), AGE),
    /* rights, certificates */
    SHOW(ROLES, NAME, CREATED),
    SHOW(CLUSTERROLES, NAME, CREATED),
    SHOW(ROLEBINDINGS, NAME, PAIR("roleRef.kind/roleRef.name", ""), AGE, OWN(kinf__cells_subjects)),
    SHOW(CLUSTERROLEBINDINGS, NAME, PAIR("roleRef.kind/roleRef.name", ""), AGE,
         OWN(kinf__cells_subjects)),
    SHOW(CERTIFICATESIGNINGREQUESTS, NAME, AGE, TEXT("spec.signerName", "<none>"),
         TEXT("spec.username", ""), OWN(kinf__cell_requested_duration),
         OWN(kinf__cell_request_state)),
    SHOW(CLUSTERTRUSTBUNDLES, NAME, TEXT("spec.signerName", "<none>")),
    SHOW(PODCERTIFICATEREQUESTS, NAME, TEXT("spec.podName", ""),
         TEXT("spec.serviceAccountName", ""), TEXT("spec.nodeName", ""),
         TEXT("spec.signerName", ""), OWN(kinf__cell_pod_certificate_state),
         LABELS("spec.unverifiedUserAnnotations")),
    /* the server, and what extends it */
    SHOW(APISERVICES, NAME, PAIR("spec.service.namespace/spec.service.name", "Local"),
         OWN(kinf__cell_available), AGE),
    SHOW(CUSTOMRESOURCEDEFINITIONS, NAME, TEXT("spec.scope", ""), OWN(kinf__cell_versions), CREATED,
         TEXT("spec.group", ""), TEXT("spec.names.kind", ""), JOINED("spec.names.shortNames"),
         OWN(kinf__cell_established)),
    SHOW(MUTATINGWEBHOOKCONFIGURATIONS, NAME, COUNT("webhooks"), AGE),
    SHOW(VALIDATINGWEBHOOKCONFIGURATIONS, NAME, COUNT("webhooks"), AGE),
    SHOW(MUTATINGADMISSIONPOLICIES, NAME, COUNT("spec.mutations"),
         PAIR("spec.paramKind.apiVersion/spec.paramKind.kind", "<unset>"), AGE),
    SHOW(VALIDATINGADMISSIONPOLICIES, NAME, COUNT("spec.validations"),
         PAIR("spec.paramKind.apiVersion/spec.paramKind.kind", "<unset>"), AGE),
    SHOW(MUTATINGADMISSIONPOLICYBINDINGS, NAME, TEXT("spec.policyName", ""), OWN(kinf__cell_param),
         AGE),
    SHOW(VALIDATINGADMISSIONPOLICYBINDINGS, NAME, TEXT("spec.policyName", ""),
         OWN(kinf__cell_param), AGE),
    SHOW(FLOWSCHEMAS, NAME, TEXT("spec.priorityLevelConfiguration.name", ""),
         INT("spec.matchingPrecedence"), TEXT("spec.distinguisherMethod.type", "<none>"), AGE,
         OWN(kinf__cell_dangling)),
    SHOW(PRIORITYLEVELCONFIGURATIONS, NAME, TEXT("spec.type", ""),
         INT_OR("spec.limited.nominalConcurrencyShares", "<none>"),
         INT_OR("spec.limited.limitResponse.queuing.queues", "<none>"),
         INT_OR("spec.limited.limitResponse.queuing.handSize", "<none>"),
         INT_OR("spec.limited.limitResponse.queuing.queueLengthLimit", "<none>"), AGE),
    SHOW(PRIORITYCLASSES, NAME, INT("value"), FLAG("globalDefault", "false"), AGE,
         TEXT("preemptionPolicy", "")),
    SHOW(RUNTIMECLASSES, NAME, TEXT("handler", ""), AGE),
    SHOW(LEASES, NAME, TEXT("spec.holderIdentity", ""), AGE),
    SHOW(STORAGEVERSIONMIGRATIONS, NAME, OWN(kinf__cell_migrated), OWN(kinf__cell_migration_state)),
};

/* Custom resources whose definitions have no columns, and all else. */
static const struct kinf__table rest = SHOW(REST, NAME, AGE);

const struct kinf__table *kinf__table_for(const struct kinf_type *type)
{
    for (size_t i = 0; i < KINF__ARRAY_LEN(tables); i++) {
        if (strcmp(tables[i].resource, type->resource) == 0 &&
            strcmp(tables[i].group, type->group) == 0)
            return &tables[i];
    }
    return &rest;
}

int kinf__table_of_definition(struct kinf_str definition, const char *version,
                              struct kinf__table **ret_table)
{
    struct kinf__table *table = malloc(sizeof *table);
    int failed;

    if (table == NULL)
        return KINF_ERR_NO_MEMORY;
    *table = (struct kinf__table){ .columns = "[" NAME_COLUMN "]", .cells = { NAME } };
    failed = kinf__custom_columns_read(definition, version, &table->custom);
    if (failed < 0) {
        free(table);
        return failed;
    }
    *ret_table = table;
    return 0;
}

void kinf__table_free(struct kinf__table *table)
{
    if (table == NULL)
        return;
    kinf__custom_columns_free(table->custom);
    free(table);
}

int kinf__table_write_columns(const struct kinf__table *table, struct kinf__buffer *out)
{
    int failed = kinf__buffer_append_str(out, kinf_str_from(table->columns));

    if (failed < 0 || table->custom == NULL)
        return failed;
    out->len--; /* the bracket */
    failed = kinf__custom_columns_write(table->custom, out);
    return failed < 0 ? failed : kinf__buffer_printf(out, "]");
}

static void write_cell(const struct kinf__cell *cell, struct kinf__row *row)
{
    if (cell->own != NULL)
        cell->own(row);
    else if (cell->write != NULL)
        cell->write(row, cell->path, cell->otherwise);
}

int kinf__table_write_row(const struct kinf__table *table, struct kinf_str body, int64_t now_s,
                          bool is_of_list, struct kinf__buffer *out)
{
    struct kinf__row row = {
        .object = kinf__json_value_of(body), .now_s = now_s, .is_of_list = is_of_list, .out = out
    };

    if (kinf__buffer_printf(out, "\"cells\":[") < 0)
        return KINF_ERR_NO_MEMORY;
    for (size_t i = 0; i < MAX_CELLS; i++)
        write_cell(&table->cells[i], &row);
    if (table->custom != NULL)
        kinf__custom_columns_cells(table->custom, &row);
    kinf__buffer_release(&row.text);
    if (row.is_out_of_memory || kinf__buffer_printf(out, "]") < 0)
        return KINF_ERR_NO_MEMORY;
    return row.conditions != NULL ? kinf__buffer_printf(out, ",\"conditions\":%s", row.conditions)
                                  : 0;
}
