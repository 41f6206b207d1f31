/*
 * Reading and writing Leases. Neighbours: election.c decides by them.
 */
#include "elector/lease.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "json/quote.h"
#include "json/scan.h"

#define MAX_DEPTH 1000

/* What holders write; all else in a spec is somebody else's. */
static const char *const claimed[] = { "holderIdentity", "leaseDurationSeconds", "acquireTime",
                                       "renewTime", "leaseTransitions" };

void kinf__lease_release(struct kinf__lease *lease)
{
    kinf__buffer_release(&lease->text);
    *lease = (struct kinf__lease){ .duration_ms = 0 };
}

/* --- reading --- */

/* One that is too long to be kept is told by its length. */
static void read_string(struct kinf__json_value spec, const char *key, char *text, size_t size)
{
    struct kinf__json_value value;
    size_t len = 0;

    if (kinf__json_member(spec, kinf_str_from(key), &value) && value.type == KINF__JSON_STRING)
        len = kinf__json_unescape(value.raw, text, size - 1);
    text[len < size ? len : 0] = '\0';
    if (len >= size)
        snprintf(text, size, "(a name of %zu bytes)", len);
}

/* 0 for what is no positive integer, or a larger one than the API has. */
static int64_t read_count(struct kinf__json_value spec, const char *key)
{
    struct kinf__json_value value;
    char digits[12] = "";
    int64_t count;
    char *end;

    if (!kinf__json_member(spec, kinf_str_from(key), &value) || value.type != KINF__JSON_NUMBER ||
        value.raw.len >= sizeof digits)
        return 0;
    memcpy(digits, value.raw.bytes, value.raw.len);
    count = strtoll(digits, &end, 10);
    return *end == '\0' && count > 0 && count <= INT32_MAX ? count : 0;
}

static struct kinf__json_value member(struct kinf__json_value object, const char *key)
{
    struct kinf__json_value value = { KINF__JSON_NULL, { NULL, 0 } };

    (void)!kinf__json_member(object, kinf_str_from(key), &value);
    return value;
}

static void read_metadata(struct kinf__lease *lease)
{
    struct kinf__json_value metadata =
        member(kinf__json_value_of(kinf__buffer_str(&lease->text)), "metadata");
    char range[KINF__SHARD_RANGE_SIZE];

    read_string(metadata, "name", lease->name, sizeof lease->name);
    read_string(metadata, "uid", lease->uid, sizeof lease->uid);
    read_string(member(metadata, "annotations"), KINF__LEASE_RANGE_ANNOTATION, range, sizeof range);
    lease->has_range = kinf__shard_range_read(range, &lease->range);
}

static void read_spec(struct kinf__lease *lease)
{
    struct kinf__json_value spec =
                                member(kinf__json_value_of(kinf__buffer_str(&lease->text)), "spec"),
                            holder;

    lease->spec = spec.type == KINF__JSON_OBJECT ? spec.raw : (struct kinf_str){ NULL, 0 };
    read_string(spec, "holderIdentity", lease->holder, sizeof lease->holder);
    read_string(spec, "acquireTime", lease->acquired_at, sizeof lease->acquired_at);
    lease->duration_ms = read_count(spec, "leaseDurationSeconds") * 1000;
    lease->transitions = read_count(spec, "leaseTransitions");
    lease->is_released = kinf__json_member(spec, KINF_STR("holderIdentity"), &holder) &&
                         kinf__json_string_equals(holder.raw, KINF_STR("")) &&
                         lease->duration_ms == 1000;
}

int kinf__lease_read(struct kinf__lease *lease, struct kinf_str text, struct kinf_error *err)
{
    size_t at;
    int failed = kinf__json_scan_all(text, MAX_DEPTH, &at);

    lease->text.len = 0;
    lease->spec = (struct kinf_str){ NULL, 0 };
    if (failed < 0)
        return kinf__json_error(err, KINF_ERR_PARSE, text, at);
    if (kinf__json_value_of(text).type != KINF__JSON_OBJECT)
        return kinf__error_set(err, KINF_ERR_PARSE, "the Lease is no object");
    if (kinf__buffer_append_str(&lease->text, text) < 0)
        return kinf__error_no_memory(err);
    read_spec(lease);
    read_metadata(lease);
    return 0;
}

/* --- writing --- */

static bool is_claimed(struct kinf_str key)
{
    for (size_t i = 0; i < KINF__ARRAY_LEN(claimed); i++) {
        if (kinf__json_string_equals(key, kinf_str_from(claimed[i])))
            return true;
    }
    return false;
}

static int append_member(struct kinf__buffer *out, struct kinf_str key, struct kinf_str value)
{
    const char *comma = out->bytes[out->len - 1] == '{' ? "" : ",";

    return kinf__buffer_printf(out, "%s%.*s:", comma, (int)key.len, key.bytes) < 0
               ? KINF_ERR_NO_MEMORY
               : kinf__buffer_append_str(out, value);
}

/* The members of the object `from` without those that `is_left_out` (NULL: all), behind what is there. */
static int append_members(struct kinf__buffer *out, struct kinf_str from,
                          bool (*is_left_out)(struct kinf_str key))
{
    struct kinf__json_iter iter;
    struct kinf__json_value value;
    struct kinf_str key;
    int failed = 0;

    if (from.len == 0 || !kinf__json_iter_init(&iter, kinf__json_value_of(from)))
        return 0;
    while (failed == 0 && kinf__json_iter_next(&iter, &key, &value)) {
        if (is_left_out == NULL || !is_left_out(key))
            failed = append_member(out, key, value.raw);
    }
    return failed;
}

static int append_spec(struct kinf__buffer *out, const struct kinf__lease_claim *claim,
                       struct kinf_str spec)
{
    if (kinf__buffer_printf(out, "\"spec\":{\"holderIdentity\":") < 0 ||
        kinf__quote(out, kinf_str_from(claim->holder)) < 0 ||
        kinf__buffer_printf(out,
                            ",\"leaseDurationSeconds\":%" PRId64 ",\"acquireTime\":\"%s\","
                            "\"renewTime\":\"%s\",\"leaseTransitions\":%" PRId64,
                            claim->duration_s, claim->acquired_at, claim->renewed_at,
                            claim->transitions) < 0 ||
        append_members(out, spec, is_claimed) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(out, "}}", 2);
}

/* --- metadata of shards --- */

static bool is_marked(struct kinf_str key)
{
    return kinf__json_string_equals(key, KINF_STR("labels")) ||
           kinf__json_string_equals(key, KINF_STR("annotations"));
}

static bool is_set_label(struct kinf_str key)
{
    return kinf__json_string_equals(key, KINF_STR(KINF__LEASE_SET_LABEL));
}

static bool is_range_annotation(struct kinf_str key)
{
    return kinf__json_string_equals(key, KINF_STR(KINF__LEASE_RANGE_ANNOTATION));
}

/* ,"labels":{"KEY":"VALUE", and what else is in `from`}: neither needs escapes. */
static int append_mark(struct kinf__buffer *out, const char *name, struct kinf__json_value from,
                       const char *key, const char *value, bool (*is_left_out)(struct kinf_str key))
{
    return kinf__buffer_printf(out, "%s\"%s\":{\"%s\":\"%s\"",
                               out->bytes[out->len - 1] == '{' ? "" : ",", name, key, value) < 0 ||
                   append_members(out, from.raw, is_left_out) < 0
               ? KINF_ERR_NO_MEMORY
               : kinf__buffer_append(out, "}", 1);
}

/* Into an object that is open, and closes it. */
static int append_marks(struct kinf__buffer *out, const struct kinf__lease_claim *claim,
                        struct kinf__json_value metadata)
{
    if (claim->shards_of != NULL &&
        (append_mark(out, "labels", member(metadata, "labels"), KINF__LEASE_SET_LABEL,
                     claim->shards_of, is_set_label) < 0 ||
         append_mark(out, "annotations", member(metadata, "annotations"),
                     KINF__LEASE_RANGE_ANNOTATION, claim->range, is_range_annotation) < 0))
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(out, "},", 2);
}

/* --- the whole --- */

int kinf__lease_write(const struct kinf__lease_claim *claim, const char *name_space,
                      const char *name, struct kinf__buffer *out)
{
    static const struct kinf__json_value none = { KINF__JSON_NULL, { NULL, 0 } };

    if (kinf__buffer_printf(out, "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
                                 "\"metadata\":{\"name\":") < 0 ||
        kinf__quote(out, kinf_str_from(name)) < 0 ||
        kinf__buffer_printf(out, ",\"namespace\":") < 0 ||
        kinf__quote(out, kinf_str_from(name_space)) < 0 || append_marks(out, claim, none) < 0)
        return KINF_ERR_NO_MEMORY;
    return append_spec(out, claim, none.raw);
}

static bool is_written(struct kinf_str key)
{
    return kinf__json_string_equals(key, KINF_STR("spec")) ||
           kinf__json_string_equals(key, KINF_STR("metadata"));
}

int kinf__lease_rewrite(const struct kinf__lease *lease, const struct kinf__lease_claim *claim,
                        struct kinf__buffer *out)
{
    struct kinf__json_value metadata =
        member(kinf__json_value_of(kinf__buffer_str(&lease->text)), "metadata");

    if (kinf__buffer_append(out, "{", 1) < 0 ||
        append_members(out, kinf__buffer_str(&lease->text), is_written) < 0 ||
        kinf__buffer_printf(out, "%s\"metadata\":{", out->len > 1 ? "," : "") < 0 ||
        append_members(out, metadata.raw, claim->shards_of != NULL ? is_marked : NULL) < 0 ||
        append_marks(out, claim, metadata) < 0)
        return KINF_ERR_NO_MEMORY;
    return append_spec(out, claim, lease->spec);
}
