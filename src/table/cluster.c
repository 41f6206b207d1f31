/*
 * Nodes, namespaces, configuration, storage, events, and what extends the API.
 */
#include "table/rules.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- nodes --- */

void kinf__cell_node_status(struct kinf__row *row)
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

void kinf__cell_node_roles(struct kinf__row *row)
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
    kinf__row_append_set(row, roles, n);
    kinf__cell_text(row, "<none>");
}

void kinf__cell_node_address(struct kinf__row *row, const char *type, const char *otherwise)
{
    struct kinf__json_value address;

    if (kinf__field_find(row->object, "status.addresses", "type", type, &address))
        kinf__row_append_field(row, address, "address");
    kinf__cell_text(row, otherwise);
}

void kinf__cell_kernel(struct kinf__row *row)
{
    if (kinf__field_has_text(row->object, "status.nodeInfo.kernelVersion"))
        kinf__row_append_field(row, row->object, "status.nodeInfo.kernelVersion");
    else
        kinf__row_printf(row, "<unknown>");
    if (kinf__field_has_text(row->object, "status.nodeInfo.architecture")) {
        kinf__row_printf(row, " (");
        kinf__row_append_field(row, row->object, "status.nodeInfo.architecture");
        kinf__row_printf(row, ")");
    }
    kinf__cell_text(row, "");
}

/* --- configuration, quotas --- */

void kinf__cell_config_data(struct kinf__row *row)
{
    kinf__cell_int(row, (int64_t)(kinf__field_count(row->object, "data") +
                                  kinf__field_count(row->object, "binaryData")));
}

/* "cpu: 1/2, pods: 0/5": what is used of what is allowed, of limits or of all else. */
static void cell_of_quota(struct kinf__row *row, bool of_limits)
{
    static const char limits[] = "\"limits.";
    struct kinf__json_value used = { .type = KINF__JSON_NULL }, amount;

    (void)kinf__field(row->object, "status.used", &used);
    for (struct kinf__items hard = kinf__field_items(row->object, "status.hard");
         kinf__items_next(&hard);) {
        bool is_limit =
            hard.key.len >= sizeof limits && memcmp(hard.key.bytes, limits, sizeof limits - 1) == 0;
        struct kinf_str name = { hard.key.bytes + 1, hard.key.len - 2 };

        if (is_limit != of_limits)
            continue;
        kinf__row_printf(row, "%s", row->text.len != 0 ? ", " : "");
        kinf__row_append(row, (struct kinf__json_value){ KINF__JSON_STRING, hard.key });
        kinf__row_printf(row, ": ");
        if (used.type == KINF__JSON_OBJECT && kinf__json_member(used, name, &amount))
            kinf__row_append(row, amount);
        else
            kinf__row_printf(row, "0");
        kinf__row_printf(row, "/");
        kinf__row_append(row, hard.value);
    }
    kinf__cell_text(row, "");
}

void kinf__cells_quota(struct kinf__row *row)
{
    cell_of_quota(row, false);
    cell_of_quota(row, true);
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

/* That there is a series counts more than what it says. */
static bool is_series(const struct kinf__row *row)
{
    struct kinf__json_value series;

    return kinf__field(row->object, "series", &series);
}

static void append_first(struct kinf__row *row, const char *const *paths)
{
    for (; *paths != NULL; paths++) {
        if (kinf__field_has_text(row->object, *paths)) {
            kinf__row_append_field(row, row->object, *paths);
            return;
        }
    }
}

void kinf__cell_last_seen(struct kinf__row *row)
{
    static const char *const paths[] = { "lastTimestamp",  "deprecatedLastTimestamp",
                                         "firstTimestamp", "deprecatedFirstTimestamp",
                                         "eventTime",      NULL };

    kinf__cell_ago(row,
                   is_series(row) ? kinf__field_time(row->object, "series.lastObservedTime")
                                  : first_time(row, paths),
                   "<unknown>");
}

void kinf__cell_first_seen(struct kinf__row *row)
{
    static const char *const paths[] = { "firstTimestamp", "deprecatedFirstTimestamp", "eventTime",
                                         NULL };

    kinf__cell_ago(row, first_time(row, paths), "<unknown>");
}

void kinf__cell_event_object(struct kinf__row *row)
{
    static const char *const kinds[] = { "involvedObject.kind", "regarding.kind", NULL },
                             *const names[] = { "involvedObject.name", "regarding.name", NULL };
    size_t len;

    append_first(row, kinds);
    kinf__row_lower(row);
    kinf__row_printf(row, "/");
    len = row->text.len;
    append_first(row, names);
    if (row->text.len == len)
        row->text.len = len - 1;
    kinf__cell_text(row, "");
}

void kinf__cell_event_source(struct kinf__row *row)
{
    static const char *const components[] = { "source.component", "deprecatedSource.component",
                                              "reportingComponent", "reportingController", NULL },
                             *const hosts[] = { "source.host", "deprecatedSource.host",
                                                "reportingInstance", NULL };
    size_t len;

    append_first(row, components);
    kinf__row_printf(row, ", ");
    len = row->text.len;
    append_first(row, hosts);
    if (row->text.len == len)
        row->text.len = len - 2;
    kinf__cell_text(row, "");
}

/* Without blanks around it. */
void kinf__cell_message(struct kinf__row *row, const char *path, const char *otherwise)
{
    size_t begin = 0;

    kinf__row_append_field(row, row->object, path);
    while (row->text.len != 0 && isspace((unsigned char)row->text.bytes[row->text.len - 1]))
        row->text.len--;
    while (begin < row->text.len && isspace((unsigned char)row->text.bytes[begin]))
        begin++;
    row->text.len -= begin;
    if (begin != 0)
        memmove(row->text.bytes, row->text.bytes + begin, row->text.len);
    kinf__cell_text(row, otherwise);
}

void kinf__cell_event_count(struct kinf__row *row)
{
    int64_t n = kinf__field_int(row->object, "count", 0);

    if (n == 0)
        n = kinf__field_int(row->object, "deprecatedCount", 0);
    if (is_series(row))
        n = kinf__field_int(row->object, "series.count", 0);
    else if (n == 0)
        n = 1;
    kinf__cell_int(row, n);
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

void kinf__cell_modes(struct kinf__row *row, const char *path, const char *otherwise)
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
    kinf__cell_text(row, otherwise);
}

/* Keys of annotations have dots. */
static bool find_annotation(const struct kinf__row *row, struct kinf_str key,
                            struct kinf__json_value *ret)
{
    struct kinf__json_value annotations;

    return kinf__field(row->object, "metadata.annotations", &annotations) &&
           annotations.type == KINF__JSON_OBJECT && kinf__json_member(annotations, key, ret);
}

static bool is_annotated(const struct kinf__row *row, struct kinf_str key)
{
    struct kinf__json_value value;

    return find_annotation(row, key, &value) &&
           kinf__json_string_equals(value.raw, KINF_STR("true"));
}

/* The annotation came before the field, and still goes before it. */
void kinf__cell_storage_class(struct kinf__row *row)
{
    struct kinf__json_value value;

    if (find_annotation(row, KINF_STR("volume.beta.kubernetes.io/storage-class"), &value))
        kinf__row_append(row, value);
    else
        kinf__row_append_field(row, row->object, "spec.storageClassName");
    kinf__cell_text(row, "");
}

void kinf__cell_phase(struct kinf__row *row)
{
    if (kinf__field_has_text(row->object, "metadata.deletionTimestamp"))
        kinf__row_printf(row, "Terminating");
    else
        kinf__row_append_field(row, row->object, "status.phase");
    kinf__cell_text(row, "");
}

/* Two cells, of a claim that is bound. */
void kinf__cells_bound(struct kinf__row *row)
{
    if (kinf__field_has_text(row->object, "spec.volumeName")) {
        kinf__cell_optional(row, "status.capacity.storage", "0");
        kinf__cell_modes(row, "status.accessModes", "");
    } else {
        kinf__cell_text(row, "");
        kinf__cell_text(row, "");
    }
}

/* Of a list only: there the server knows which class is the default, if several say so. */
void kinf__cell_storage_class_name(struct kinf__row *row)
{
    kinf__row_append_field(row, row->object, "metadata.name");
    if (row->is_of_list &&
        (is_annotated(row, KINF_STR("storageclass.kubernetes.io/is-default-class")) ||
         is_annotated(row, KINF_STR("storageclass.beta.kubernetes.io/is-default-class"))))
        kinf__row_printf(row, " (default)");
    kinf__cell_text(row, "");
}

void kinf__cell_ingress_class_name(struct kinf__row *row)
{
    kinf__row_append_field(row, row->object, "metadata.name");
    if (is_annotated(row, KINF_STR("ingressclass.kubernetes.io/is-default-class")))
        kinf__row_printf(row, " (default)");
    kinf__cell_text(row, "");
}

void kinf__cell_audiences(struct kinf__row *row)
{
    struct kinf__json_value requests;
    bool is_set = kinf__field(row->object, "spec.tokenRequests", &requests);

    kinf__row_append_each(row, row->object, "spec.tokenRequests", "audience");
    kinf__cell_text(row, is_set ? "" : "<unset>");
}

void kinf__cell_claim_state(struct kinf__row *row)
{
    struct kinf__json_value allocation;
    bool is_allocated = kinf__field(row->object, "status.allocation", &allocation);

    if (kinf__field_has_text(row->object, "metadata.deletionTimestamp"))
        kinf__row_printf(row, is_allocated ? "deleted," : "deleted");
    else if (!is_allocated)
        kinf__row_printf(row, "pending");
    if (is_allocated)
        kinf__row_printf(row, "allocated");
    if (is_allocated && kinf__field_count(row->object, "status.reservedFor") != 0)
        kinf__row_printf(row, ",reserved");
    kinf__cell_text(row, "");
}

/* --- rights, certificates --- */

static void cell_subjects(struct kinf__row *row, const char *kind)
{
    for (struct kinf__items subject = kinf__field_items(row->object, "subjects");
         kinf__items_next(&subject);) {
        if (!kinf__field_is(subject.value, "kind", kind))
            continue;
        kinf__row_printf(row, "%s", row->text.len != 0 ? ", " : "");
        if (strcmp(kind, "ServiceAccount") == 0) {
            kinf__row_append_field(row, subject.value, "namespace");
            kinf__row_printf(row, "/");
        }
        kinf__row_append_field(row, subject.value, "name");
    }
    kinf__cell_text(row, "");
}

void kinf__cells_subjects(struct kinf__row *row)
{
    cell_subjects(row, "User");
    cell_subjects(row, "Group");
    cell_subjects(row, "ServiceAccount");
}

void kinf__cell_requested_duration(struct kinf__row *row)
{
    int64_t seconds = kinf__field_int(row->object, "spec.expirationSeconds", INT64_MIN);

    if (seconds != INT64_MIN)
        kinf__row_append_duration(row, seconds);
    kinf__cell_text(row, "<none>");
}

static bool has_condition(const struct kinf__row *row, const char *type)
{
    struct kinf__json_value condition;

    return kinf__field_condition(row->object, type, &condition);
}

void kinf__cell_request_state(struct kinf__row *row)
{
    kinf__row_printf(row, "%s%s%s",
                     has_condition(row, "Denied")     ? "Denied"
                     : has_condition(row, "Approved") ? "Approved"
                                                      : "Pending",
                     has_condition(row, "Failed") ? ",Failed" : "",
                     kinf__field_has_text(row->object, "status.certificate") ? ",Issued" : "");
    kinf__cell_text(row, "");
}

/* The last condition of one of these types; a type that says nothing without being true only then. */
static void cell_last_condition(struct kinf__row *row, const char *const *types, bool is_true,
                                const char *otherwise)
{
    const char *last = otherwise;

    for (struct kinf__items item = kinf__field_items(row->object, "status.conditions");
         kinf__items_next(&item);) {
        if (is_true && !kinf__field_is(item.value, "status", "True"))
            continue;
        for (const char *const *type = types; *type != NULL; type++) {
            if (kinf__field_is(item.value, "type", *type))
                last = *type;
        }
    }
    kinf__cell_text(row, last);
}

void kinf__cell_pod_certificate_state(struct kinf__row *row)
{
    static const char *const types[] = { "Issued", "Denied", "Failed", NULL };

    cell_last_condition(row, types, false, "Pending");
}

void kinf__cell_migration_state(struct kinf__row *row)
{
    static const char *const types[] = { "Running", "Failed", "Succeeded", NULL };

    cell_last_condition(row, types, true, "Unknown");
}

void kinf__cell_migrated(struct kinf__row *row)
{
    kinf__row_append_field(row, row->object, "spec.resource.resource");
    if (kinf__field_has_text(row->object, "spec.resource.group"))
        kinf__row_printf(row, ".");
    kinf__row_append_field(row, row->object, "spec.resource.group");
    kinf__cell_text(row, "");
}

/* --- what extends the API, or limits its use --- */

void kinf__cell_available(struct kinf__row *row)
{
    struct kinf__json_value condition;

    if (kinf__field_condition(row->object, "Available", &condition)) {
        kinf__row_append_field(row, condition, "status");
        if (!kinf__field_is(condition, "status", "True") &&
            kinf__field_has_text(condition, "reason")) {
            kinf__row_printf(row, " (");
            kinf__row_append_field(row, condition, "reason");
            kinf__row_printf(row, ")");
        }
    }
    kinf__cell_text(row, "Unknown");
}

void kinf__cell_dangling(struct kinf__row *row)
{
    struct kinf__json_value condition;

    if (kinf__field_condition(row->object, "Dangling", &condition))
        kinf__row_append_field(row, condition, "status");
    kinf__cell_text(row, "?");
}

/* As Go prints a LabelSelector. */
static void append_selector_of_go(struct kinf__row *row, struct kinf__json_value selector)
{
    kinf__row_printf(row, "&LabelSelector{MatchLabels:map[string]string{");
    for (struct kinf__items label = kinf__field_items(selector, "matchLabels");
         kinf__items_next(&label);) {
        kinf__row_append(row, (struct kinf__json_value){ KINF__JSON_STRING, label.key });
        kinf__row_printf(row, ": ");
        kinf__row_append(row, label.value);
        kinf__row_printf(row, ",");
    }
    kinf__row_printf(row, "},MatchExpressions:[]LabelSelectorRequirement{");
    for (struct kinf__items item = kinf__field_items(selector, "matchExpressions");
         kinf__items_next(&item);) {
        const char *separator = "";

        kinf__row_printf(row, "LabelSelectorRequirement{Key:");
        kinf__row_append_field(row, item.value, "key");
        kinf__row_printf(row, ",Operator:");
        kinf__row_append_field(row, item.value, "operator");
        kinf__row_printf(row, ",Values:[");
        for (struct kinf__items value = kinf__field_items(item.value, "values");
             kinf__items_next(&value); separator = " ") {
            kinf__row_printf(row, "%s", separator);
            kinf__row_append(row, value.value);
        }
        kinf__row_printf(row, "],},");
    }
    kinf__row_printf(row, "},}");
}

void kinf__cell_param(struct kinf__row *row)
{
    struct kinf__json_value selector;

    if (kinf__field_has_text(row->object, "spec.paramRef.name")) {
        if (kinf__field_has_text(row->object, "spec.paramRef.namespace"))
            kinf__row_append_field(row, row->object, "spec.paramRef.namespace");
        else
            kinf__row_printf(row, "*");
        kinf__row_printf(row, "/");
        kinf__row_append_field(row, row->object, "spec.paramRef.name");
    } else if (kinf__field(row->object, "spec.paramRef.selector", &selector)) {
        append_selector_of_go(row, selector);
    }
    kinf__cell_text(row, "<unset>");
}

void kinf__cell_versions(struct kinf__row *row)
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

void kinf__cell_established(struct kinf__row *row)
{
    kinf__cell_bool(row, kinf__field_condition_is_true(row->object, "Established"));
}
