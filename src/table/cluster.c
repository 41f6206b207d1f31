/*
 * Nodes, namespaces, configuration, storage, events, and what extends the API.
 */
#include "table/rules.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- nodes --- */

static void cell_node_status(struct kinf__row *row)
{
    struct kinf__json_value condition;

    if (!kinf__field_condition(row->object, "Ready", &condition))
        kinf__row_printf(row, "Unknown");
    else
        kinf__row_printf(row, kinf__field_is(condition, "status", "True") ? "Ready" : "NotReady");
    if (kinf__field_is_true(row->object, "spec.unschedulable"))
        kinf__row_printf(row, ",SchedulingDisabled");
    kinf__cell_text(row, "");
}

static int compare_roles(const void *a, const void *b)
{
    return kinf_str_compare(*(const struct kinf_str *)a, *(const struct kinf_str *)b);
}

/* What a label says of the node's role, without quotes; empty if nothing. */
static struct kinf_str role_of(struct kinf_str key, struct kinf__json_value value)
{
    static const char prefix[] = "\"node-role.kubernetes.io/";
    size_t prefix_len = sizeof prefix - 1;

    if (key.len > prefix_len + 1 && memcmp(key.bytes, prefix, prefix_len) == 0)
        return (struct kinf_str){ key.bytes + prefix_len, key.len - prefix_len - 1 };
    if (kinf__json_string_equals(key, KINF_STR("kubernetes.io/role")) && value.raw.len > 2)
        return (struct kinf_str){ value.raw.bytes + 1, value.raw.len - 2 };
    return (struct kinf_str){ "", 0 };
}

static void cell_roles(struct kinf__row *row)
{
    size_t n = 0, size = kinf__field_count(row->object, "metadata.labels");
    KINF__AUTO_FREE struct kinf_str *roles = calloc(size + 1, sizeof *roles);

    if (roles == NULL) {
        row->is_out_of_memory = true;
        size = 0;
    }
    for (struct kinf__items label = kinf__field_items(row->object, "metadata.labels");
         n < size && kinf__items_next(&label);) {
        struct kinf_str role = role_of(label.key, label.value);

        if (role.len != 0)
            roles[n++] = role;
    }
    if (n != 0)
        qsort(roles, n, sizeof *roles, compare_roles);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !kinf_str_equal(roles[i], roles[i - 1]))
            kinf__row_printf(row, "%s%.*s", i != 0 ? "," : "", (int)roles[i].len, roles[i].bytes);
    }
    kinf__cell_text(row, "<none>");
}

static void cell_address(struct kinf__row *row, const char *type)
{
    struct kinf__json_value address;

    if (kinf__field_find(row->object, "status.addresses", "type", type, &address))
        kinf__row_append_field(row, address, "address");
    kinf__cell_text(row, "<none>");
}

static void cell_kernel(struct kinf__row *row)
{
    if (kinf__field_has_text(row->object, "status.nodeInfo.kernelVersion")) {
        kinf__row_append_field(row, row->object, "status.nodeInfo.kernelVersion");
        kinf__row_printf(row, " (");
        kinf__row_append_field(row, row->object, "status.nodeInfo.architecture");
        kinf__row_printf(row, ")");
    }
    kinf__cell_text(row, "<unknown>");
}

void kinf__table_node(struct kinf__row *row)
{
    cell_node_status(row);
    cell_roles(row);
    kinf__cell_age(row);
    kinf__cell_string(row, "status.nodeInfo.kubeletVersion", "");
    cell_address(row, "InternalIP");
    cell_address(row, "ExternalIP");
    kinf__cell_string(row, "status.nodeInfo.osImage", "<unknown>");
    cell_kernel(row);
    kinf__cell_string(row, "status.nodeInfo.containerRuntimeVersion", "<unknown>");
}

/* --- small ones --- */

void kinf__table_namespace(struct kinf__row *row)
{
    kinf__cell_string(row, "status.phase", "");
    kinf__cell_age(row);
}

void kinf__table_configmap(struct kinf__row *row)
{
    kinf__cell_int(row, (int64_t)(kinf__field_count(row->object, "data") +
                                  kinf__field_count(row->object, "binaryData")));
    kinf__cell_age(row);
}

void kinf__table_secret(struct kinf__row *row)
{
    kinf__cell_string(row, "type", "");
    kinf__cell_int(row, (int64_t)kinf__field_count(row->object, "data"));
    kinf__cell_age(row);
}

void kinf__table_lease(struct kinf__row *row)
{
    kinf__cell_string(row, "spec.holderIdentity", "");
    kinf__cell_age(row);
}

/* --- events, of both groups: the newer one has other names for the same --- */

/* The first of these that is a time. */
static int64_t first_time(const struct kinf__row *row, const char *const *paths)
{
    int64_t time_s = INT64_MIN;

    for (; time_s == INT64_MIN && *paths != NULL; paths++)
        time_s = kinf__field_time(row->object, *paths);
    return time_s;
}

static void append_first(struct kinf__row *row, const char *path, const char *other)
{
    kinf__row_append_field(row, row->object,
                           kinf__field_has_text(row->object, path) ? path : other);
}

static void cell_object(struct kinf__row *row)
{
    size_t begin = row->text.len;

    append_first(row, "involvedObject.kind", "regarding.kind");
    for (size_t i = begin; i < row->text.len; i++)
        row->text.bytes[i] = (char)tolower((unsigned char)row->text.bytes[i]);
    kinf__row_printf(row, "/");
    append_first(row, "involvedObject.name", "regarding.name");
    kinf__cell_text(row, "");
}

static void cell_source(struct kinf__row *row)
{
    bool is_old = kinf__field_has_text(row->object, "source.component") ||
                  kinf__field_has_text(row->object, "deprecatedSource.component");

    if (is_old) {
        append_first(row, "source.component", "deprecatedSource.component");
        if (kinf__field_has_text(row->object, "source.host") ||
            kinf__field_has_text(row->object, "deprecatedSource.host"))
            kinf__row_printf(row, ", ");
        append_first(row, "source.host", "deprecatedSource.host");
    } else {
        append_first(row, "reportingComponent", "reportingController");
        if (kinf__field_has_text(row->object, "reportingInstance"))
            kinf__row_printf(row, ", ");
        kinf__row_append_field(row, row->object, "reportingInstance");
    }
    kinf__cell_text(row, "");
}

static void cell_count(struct kinf__row *row)
{
    int64_t n = kinf__field_int(row->object, "series.count", 0);

    if (n == 0)
        n = kinf__field_int(row->object, "count", 0);
    if (n == 0)
        n = kinf__field_int(row->object, "deprecatedCount", 0);
    kinf__cell_int(row, n > 0 ? n : 1);
}

void kinf__table_event(struct kinf__row *row)
{
    static const char *const last[] = { "series.lastObservedTime",
                                        "lastTimestamp",
                                        "deprecatedLastTimestamp",
                                        "firstTimestamp",
                                        "deprecatedFirstTimestamp",
                                        "eventTime",
                                        NULL };
    static const char *const first[] = { "firstTimestamp", "deprecatedFirstTimestamp", "eventTime",
                                         NULL };

    kinf__cell_since(row, first_time(row, last), "<unknown>");
    kinf__cell_string(row, "type", "");
    kinf__cell_string(row, "reason", "");
    cell_object(row);
    append_first(row, "involvedObject.fieldPath", "regarding.fieldPath");
    kinf__cell_text(row, "");
    cell_source(row);
    append_first(row, "message", "note");
    kinf__cell_text(row, "");
    kinf__cell_since(row, first_time(row, first), "<unknown>");
    cell_count(row);
    kinf__cell_string(row, "metadata.name", "");
}

/* --- storage --- */

static bool has_mode(const struct kinf__row *row, const char *path, const char *mode)
{
    for (struct kinf__items item = kinf__field_items(row->object, path); kinf__items_next(&item);) {
        if (item.value.type == KINF__JSON_STRING &&
            kinf__json_string_equals(item.value.raw, kinf_str_from(mode)))
            return true;
    }
    return false;
}

static void append_modes(struct kinf__row *row, const char *path)
{
    static const struct {
        const char *mode;
        const char *shown;
    } modes[] = { { "ReadWriteOnce", "RWO" },
                  { "ReadOnlyMany", "ROX" },
                  { "ReadWriteMany", "RWX" },
                  { "ReadWriteOncePod", "RWOP" } };

    for (size_t i = 0; i < KINF__ARRAY_LEN(modes); i++) {
        if (has_mode(row, path, modes[i].mode)) {
            kinf__row_comma(row);
            kinf__row_printf(row, "%s", modes[i].shown);
        }
    }
}

/* The annotation came before the field, and still goes before it. Its key has dots. */
static void cell_storage_class(struct kinf__row *row)
{
    struct kinf__json_value annotations, value;

    if (kinf__field(row->object, "metadata.annotations", &annotations) &&
        annotations.type == KINF__JSON_OBJECT &&
        kinf__json_member(annotations, KINF_STR("volume.beta.kubernetes.io/storage-class"), &value))
        kinf__row_append(row, value);
    else
        kinf__row_append_field(row, row->object, "spec.storageClassName");
    kinf__cell_text(row, "");
}

static void cell_phase(struct kinf__row *row)
{
    if (kinf__field_has_text(row->object, "metadata.deletionTimestamp"))
        kinf__row_printf(row, "Terminating");
    else
        kinf__row_append_field(row, row->object, "status.phase");
    kinf__cell_text(row, "");
}

void kinf__table_claim(struct kinf__row *row)
{
    bool is_bound = kinf__field_has_text(row->object, "spec.volumeName");

    cell_phase(row);
    kinf__cell_string(row, "spec.volumeName", "");
    if (is_bound)
        kinf__row_append_field(row, row->object, "status.capacity.storage");
    kinf__cell_text(row, "");
    if (is_bound)
        append_modes(row, "status.accessModes");
    kinf__cell_text(row, "");
    cell_storage_class(row);
    kinf__cell_string(row, "spec.volumeAttributesClassName", "<unset>");
    kinf__cell_age(row);
    kinf__cell_string(row, "spec.volumeMode", "<unset>");
}

void kinf__table_volume(struct kinf__row *row)
{
    kinf__cell_string(row, "spec.capacity.storage", "");
    append_modes(row, "spec.accessModes");
    kinf__cell_text(row, "");
    kinf__cell_string(row, "spec.persistentVolumeReclaimPolicy", "");
    cell_phase(row);
    if (kinf__field_has_text(row->object, "spec.claimRef.name")) {
        kinf__row_append_field(row, row->object, "spec.claimRef.namespace");
        kinf__row_printf(row, "/");
        kinf__row_append_field(row, row->object, "spec.claimRef.name");
    }
    kinf__cell_text(row, "");
    cell_storage_class(row);
    kinf__cell_string(row, "spec.volumeAttributesClassName", "<unset>");
    kinf__cell_string(row, "status.reason", "");
    kinf__cell_age(row);
    kinf__cell_string(row, "spec.volumeMode", "<unset>");
}

/* --- definitions of custom resources --- */

static void cell_versions(struct kinf__row *row)
{
    for (struct kinf__items version = kinf__field_items(row->object, "spec.versions");
         kinf__items_next(&version);) {
        kinf__row_comma(row);
        kinf__row_append_field(row, version.value, "name");
        if (kinf__field_is_true(version.value, "storage"))
            kinf__row_printf(row, "(storage)");
    }
    kinf__cell_text(row, "");
}

static void cell_short_names(struct kinf__row *row)
{
    for (struct kinf__items name = kinf__field_items(row->object, "spec.names.shortNames");
         kinf__items_next(&name);) {
        kinf__row_comma(row);
        kinf__row_append(row, name.value);
    }
    kinf__cell_text(row, "");
}

void kinf__table_crd(struct kinf__row *row)
{
    kinf__cell_string(row, "spec.scope", "");
    cell_versions(row);
    kinf__cell_value(row, "metadata.creationTimestamp");
    kinf__cell_string(row, "spec.group", "");
    kinf__cell_string(row, "spec.names.kind", "");
    cell_short_names(row);
    kinf__cell_bool(row, kinf__field_condition_is_true(row->object, "Established"));
}
