/*
 * The columns of every type. Neighbours: pod.c, workload.c, network.c and cluster.c have the cells,
 * row.c writes them, serve/ puts rows into Tables.
 */
#include "table/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "object/object.h"
#include "table/custom.h"
#include "table/row.h"
#include "table/rules.h"

#define MAX_COLUMNS 11

struct column {
    const char *name;
    const char *type;
    bool is_wide; /* priority 1 */
};

struct kinf__table {
    const char *group;
    const char *resource;
    struct column columns[MAX_COLUMNS];
    kinf__table_cells_fn *cells;
    struct kinf__custom_columns
        *custom; /* instead of columns behind the name, and of cells; NULL: none */
};

#define COLUMN(name, type, is_wide)                                                                \
    {                                                                                              \
        name, type, is_wide                                                                        \
    }
#define TEXT(name) COLUMN(name, "string", false)
#define WIDE(name) COLUMN(name, "string", true)
#define INT(name)  COLUMN(name, "integer", false)
#define CREATED    COLUMN("Created At", "date", false)
#define NAME       TEXT("Name")
#define AGE        TEXT("Age")
#define TEMPLATE   WIDE("Containers"), WIDE("Images")

static void time_of_creation(struct kinf__row *row)
{
    kinf__cell_value(row, "metadata.creationTimestamp");
}

#define EVENT_COLUMNS                                                                              \
    TEXT("Last Seen"), TEXT("Type"), TEXT("Reason"), TEXT("Object"), WIDE("Subobject"),            \
        WIDE("Source"), TEXT("Message"), WIDE("First Seen"), WIDE("Count"), WIDE("Name")

/* A type, its cells, and their columns. */
#define SHOWN(group, resource, cells, ...)                                                         \
    {                                                                                              \
        group, resource, { __VA_ARGS__ }, cells, NULL                                              \
    }

static const struct kinf__table tables[] = {
    SHOWN("", "pods", kinf__table_pod, NAME, TEXT("Ready"), TEXT("Status"), TEXT("Restarts"), AGE,
          WIDE("IP"), WIDE("Node"), WIDE("Nominated Node"), WIDE("Readiness Gates")),
    SHOWN("", "nodes", kinf__table_node, NAME, TEXT("Status"), TEXT("Roles"), AGE, TEXT("Version"),
          WIDE("Internal-IP"), WIDE("External-IP"), WIDE("OS-Image"), WIDE("Kernel-Version"),
          WIDE("Container-Runtime")),
    SHOWN("", "services", kinf__table_service, NAME, TEXT("Type"), TEXT("Cluster-IP"),
          TEXT("External-IP"), TEXT("Port(s)"), AGE, WIDE("Selector")),
    SHOWN("apps", "deployments", kinf__table_deployment, NAME, TEXT("Ready"), TEXT("Up-to-date"),
          TEXT("Available"), AGE, TEMPLATE, WIDE("Selector")),
    SHOWN("apps", "replicasets", kinf__table_replicaset, NAME, INT("Desired"), INT("Current"),
          INT("Ready"), AGE, TEMPLATE, WIDE("Selector")),
    SHOWN("", "replicationcontrollers", kinf__table_replicationcontroller, NAME, INT("Desired"),
          INT("Current"), INT("Ready"), AGE, TEMPLATE, WIDE("Selector")),
    SHOWN("apps", "statefulsets", kinf__table_statefulset, NAME, TEXT("Ready"), AGE, TEMPLATE),
    SHOWN("apps", "daemonsets", kinf__table_daemonset, NAME, INT("Desired"), INT("Current"),
          INT("Ready"), INT("Up-to-date"), INT("Available"), TEXT("Node Selector"), AGE, TEMPLATE,
          WIDE("Selector")),
    SHOWN("batch", "jobs", kinf__table_job, NAME, TEXT("Status"), TEXT("Completions"),
          TEXT("Duration"), AGE, TEMPLATE, WIDE("Selector")),
    SHOWN("batch", "cronjobs", kinf__table_cronjob, NAME, TEXT("Schedule"), TEXT("Timezone"),
          COLUMN("Suspend", "boolean", false), INT("Active"), TEXT("Last Schedule"), AGE, TEMPLATE,
          WIDE("Selector")),
    SHOWN("", "configmaps", kinf__table_configmap, NAME, TEXT("Data"), AGE),
    SHOWN("", "secrets", kinf__table_secret, NAME, TEXT("Type"), TEXT("Data"), AGE),
    SHOWN("", "namespaces", kinf__table_namespace, NAME, TEXT("Status"), AGE),
    SHOWN("", "events", kinf__table_event, EVENT_COLUMNS),
    SHOWN("events.k8s.io", "events", kinf__table_event, EVENT_COLUMNS),
    SHOWN("discovery.k8s.io", "endpointslices", kinf__table_endpointslice, NAME,
          TEXT("AddressType"), TEXT("Ports"), TEXT("Endpoints"), AGE),
    SHOWN("networking.k8s.io", "ingresses", kinf__table_ingress, NAME, TEXT("Class"), TEXT("Hosts"),
          TEXT("Address"), TEXT("Ports"), AGE),
    SHOWN("coordination.k8s.io", "leases", kinf__table_lease, NAME, TEXT("Holder"), AGE),
    SHOWN("", "persistentvolumeclaims", kinf__table_claim, NAME, TEXT("Status"), TEXT("Volume"),
          TEXT("Capacity"), TEXT("Access Modes"), TEXT("StorageClass"),
          TEXT("VolumeAttributesClass"), AGE, WIDE("VolumeMode")),
    SHOWN("", "persistentvolumes", kinf__table_volume, NAME, TEXT("Capacity"), TEXT("Access Modes"),
          TEXT("Reclaim Policy"), TEXT("Status"), TEXT("Claim"), TEXT("StorageClass"),
          TEXT("VolumeAttributesClass"), TEXT("Reason"), AGE, WIDE("VolumeMode")),
    SHOWN("apiextensions.k8s.io", "customresourcedefinitions", kinf__table_crd, NAME, TEXT("Scope"),
          TEXT("Versions"), CREATED, WIDE("Group"), WIDE("Kind"), WIDE("ShortNames"),
          COLUMN("Established", "boolean", true)),
    SHOWN("autoscaling", "horizontalpodautoscalers", kinf__table_hpa, NAME, TEXT("Reference"),
          TEXT("Targets"), TEXT("MinPods"), TEXT("MaxPods"), TEXT("Replicas"), AGE),
    SHOWN("policy", "poddisruptionbudgets", kinf__table_pdb, NAME, TEXT("Min Available"),
          TEXT("Max Unavailable"), INT("Allowed Disruptions"), AGE),
    SHOWN("rbac.authorization.k8s.io", "roles", time_of_creation, NAME, CREATED),
    SHOWN("rbac.authorization.k8s.io", "clusterroles", time_of_creation, NAME, CREATED),
};

static const struct kinf__table rest = SHOWN("", "", kinf__cell_age, NAME, AGE);

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
    *table = (struct kinf__table){ .columns = { NAME } };
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
    int failed = kinf__buffer_printf(out, "[");

    for (size_t i = 0; failed == 0 && i < MAX_COLUMNS && table->columns[i].name != NULL; i++) {
        const struct column *column = &table->columns[i];

        failed = kinf__buffer_printf(
            out,
            "%s{\"name\":\"%s\",\"type\":\"%s\",\"format\":\"%s\",\"description\":\"\","
            "\"priority\":%d}",
            i != 0 ? "," : "", column->name, column->type,
            strcmp(column->name, "Name") == 0 ? "name" : "", (int)column->is_wide);
    }
    if (failed == 0 && table->custom != NULL)
        failed = kinf__custom_columns_write(table->custom, out);
    return failed < 0 ? failed : kinf__buffer_printf(out, "]");
}

int kinf__table_write_cells(const struct kinf__table *table, const struct kinf_object *object,
                            int64_t now_s, struct kinf__buffer *out)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__row row = { .now_s = now_s, .out = out };
    struct kinf_str body;

    if (kinf__object_body(object, &scratch, &body) < 0 || kinf__buffer_printf(out, "[") < 0)
        return KINF_ERR_NO_MEMORY;
    row.object = kinf__json_value_of(body);
    /* Events have it last, and write it themselves. */
    if (strcmp(table->columns[0].name, "Name") == 0)
        kinf__cell_string(&row, "metadata.name", "");
    if (table->custom != NULL)
        kinf__custom_columns_cells(table->custom, &row);
    else
        table->cells(&row);
    kinf__buffer_release(&row.text);
    return row.is_out_of_memory ? KINF_ERR_NO_MEMORY : kinf__buffer_printf(out, "]");
}
