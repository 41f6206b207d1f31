/*
 * Writing objects, items and lists. Neighbours: list.c and watch.c. A stored object's text comes
 * without kind and apiVersion, which are put in front where the server has them.
 */
#include "serve/encode.h"

#include <assert.h>
#include <string.h>

#include "json/quote.h"
#include "json/scan.h"
#include "object/object.h"

void kinf__encoder_release(struct kinf__encoder *encoder)
{
    kinf_scratch_release(&encoder->scratch);
}

bool kinf__is_custom_group(const char *group)
{
    static const char built_in[] = ".k8s.io";
    size_t len = strlen(group), tail = sizeof built_in - 1;

    return strchr(group, '.') != NULL && (len < tail || strcmp(group + len - tail, built_in) != 0);
}

static bool is_metadata(const struct kinf__encoder *encoder)
{
    return encoder->form == KINF__FORM_METADATA || encoder->form == KINF__FORM_METADATA_LIST;
}

static int append_meta_kind(const struct kinf__encoder *encoder, const char *kind,
                            const char *suffix, struct kinf__buffer *out)
{
    return kinf__buffer_printf(out, "\"kind\":\"%s%s\",\"apiVersion\":\"meta.k8s.io/%s\"", kind,
                               suffix, encoder->is_v1beta1 ? "v1beta1" : "v1");
}

/* "kind":"K","apiVersion":"V" of an object (suffix "") or of its list ("List"). */
static int append_kind(const struct kinf__encoder *encoder, const char *suffix,
                       struct kinf__buffer *out)
{
    const struct kinf_type *type = encoder->type;

    if (encoder->form == KINF__FORM_TABLE)
        return append_meta_kind(encoder, "Table", "", out);
    if (is_metadata(encoder))
        return append_meta_kind(encoder, "PartialObjectMetadata", suffix, out);
    return kinf__buffer_printf(out, "\"kind\":\"%s%s\",\"apiVersion\":\"%s%s%s\"", type->kind,
                               suffix, type->group, *type->group != '\0' ? "/" : "", type->version);
}

/* The member `metadata` of a body; an object that was stored has one. */
static struct kinf_str metadata_of(struct kinf_str body)
{
    struct kinf__json_value value = kinf__json_value_of(body);

    (void)!kinf__json_member(value, KINF_STR("metadata"), &value);
    return value.raw;
}

/* `text` is of the body and holds the metadata; its resourceVersion is replaced. */
static int add_with_version(struct kinf__pieces *out, const struct kinf_object *object,
                            struct kinf_str body, struct kinf_str text, struct kinf_str metadata,
                            const char *version)
{
    size_t begin = (size_t)(text.bytes - body.bytes), end = begin + text.len, at;
    struct kinf__json_value value;

    if (version == NULL ||
        !kinf__json_member(kinf__json_value_of(metadata), KINF_STR("resourceVersion"), &value))
        return kinf__pieces_add(out, object, body, begin, text.len);
    at = (size_t)(value.raw.bytes - body.bytes);
    if (kinf__pieces_add(out, object, body, begin, at - begin) < 0 ||
        kinf__quote(&out->bytes, kinf_str_from(version)) < 0)
        return KINF_ERR_NO_MEMORY;
    at += value.raw.len;
    return kinf__pieces_add(out, object, body, at, end - at);
}

/* What goes behind kind and apiVersion: a body begins with its brace (object/decode.c). */
static struct kinf_str members_of(struct kinf_str body)
{
    assert(body.len > 1 && body.bytes[0] == '{');
    return (struct kinf_str){ body.bytes + 1, body.len - 1 };
}

/* The body as stored, or its metadata alone. */
static int append_body(struct kinf__encoder *encoder, const struct kinf_object *object,
                       struct kinf_str body, const char *version, struct kinf__pieces *out)
{
    struct kinf_str metadata = metadata_of(body);

    if (kinf__buffer_append(&out->bytes, "{", 1) < 0 || append_kind(encoder, "", &out->bytes) < 0)
        return KINF_ERR_NO_MEMORY;
    if (is_metadata(encoder)) {
        if (kinf__buffer_append_str(&out->bytes, KINF_STR(",\"metadata\":")) < 0 ||
            add_with_version(out, object, body, metadata, metadata, version) < 0)
            return KINF_ERR_NO_MEMORY;
        return kinf__buffer_append(&out->bytes, "}", 1);
    }
    if (kinf__buffer_append(&out->bytes, ",", 1) < 0)
        return KINF_ERR_NO_MEMORY;
    return add_with_version(out, object, body, members_of(body), metadata, version);
}

static int append_object(struct kinf__encoder *encoder, const struct kinf_object *object,
                         const char *version, struct kinf__pieces *out)
{
    struct kinf_str body;

    return kinf__object_body(object, &encoder->scratch, &body) < 0
               ? KINF_ERR_NO_MEMORY
               : append_body(encoder, object, body, version, out);
}

/* --- tables --- */

/* What a row has beside its cells. */
static int append_row_object(struct kinf__encoder *encoder, const struct kinf_object *object,
                             struct kinf_str body, const char *version, struct kinf__pieces *out)
{
    int failed;

    if (encoder->include == KINF__INCLUDE_NONE)
        return kinf__buffer_append_str(&out->bytes, KINF_STR("null"));
    encoder->form =
        encoder->include == KINF__INCLUDE_OBJECT ? KINF__FORM_OBJECT : KINF__FORM_METADATA;
    failed = append_body(encoder, object, body, version, out);
    encoder->form = KINF__FORM_TABLE;
    return failed;
}

static int append_row(struct kinf__encoder *encoder, const struct kinf_object *object,
                      const char *version, bool is_of_list, struct kinf__pieces *out)
{
    struct kinf_str body;

    if (kinf__object_body(object, &encoder->scratch, &body) < 0 ||
        kinf__buffer_append(&out->bytes, "{", 1) < 0 ||
        kinf__table_write_row(encoder->table, body, encoder->now_s, is_of_list, &out->bytes) < 0 ||
        kinf__buffer_append_str(&out->bytes, KINF_STR(",\"object\":")) < 0 ||
        append_row_object(encoder, object, body, version, out) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(&out->bytes, "}", 1);
}

static int append_columns(const struct kinf__encoder *encoder, struct kinf__buffer *out)
{
    if (kinf__buffer_append_str(out, KINF_STR(",\"columnDefinitions\":")) < 0)
        return KINF_ERR_NO_MEMORY;
    return encoder->no_columns ? kinf__buffer_append_str(out, KINF_STR("null"))
                               : kinf__table_write_columns(encoder->table, out);
}

/* Up to the only row. */
static int begin_table(const struct kinf__encoder *encoder, const char *version,
                       struct kinf__buffer *out)
{
    if (kinf__buffer_append(out, "{", 1) < 0 || append_kind(encoder, "", out) < 0 ||
        kinf__buffer_printf(out, ",\"metadata\":{\"resourceVersion\":\"%s\"}", version) < 0 ||
        append_columns(encoder, out) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append_str(out, KINF_STR(",\"rows\":["));
}

int kinf__encode_object(struct kinf__encoder *encoder, const struct kinf_object *object,
                        const char *version, struct kinf__pieces *out)
{
    if (encoder->form != KINF__FORM_TABLE)
        return append_object(encoder, object, version, out);
    if (begin_table(encoder, version != NULL ? version : kinf_object_resource_version(object),
                    &out->bytes) < 0 ||
        append_row(encoder, object, version, false, out) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(&out->bytes, "]}", 2);
}

int kinf__encode_item(struct kinf__encoder *encoder, const struct kinf_object *object,
                      struct kinf__pieces *out)
{
    struct kinf_str body;

    if (encoder->form == KINF__FORM_TABLE)
        return append_row(encoder, object, NULL, true, out);
    if (is_metadata(encoder) || kinf__is_custom_group(encoder->type->group))
        return append_object(encoder, object, NULL, out);
    if (kinf__object_body(object, &encoder->scratch, &body) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__pieces_add(out, object, body, 0, body.len);
}

/* --- lists --- */

static int append_list_metadata(const struct kinf__list_head *head, bool is_custom,
                                struct kinf__buffer *out)
{
    if (kinf__buffer_append_str(out, KINF_STR("\"metadata\":{")) < 0)
        return KINF_ERR_NO_MEMORY;
    /* Custom resources' lists have a map's order, and an empty continue. */
    if (!is_custom && kinf__buffer_printf(out, "\"resourceVersion\":\"%s\"", head->version) < 0)
        return KINF_ERR_NO_MEMORY;
    if (is_custom || *head->continue_token != '\0') {
        if (kinf__buffer_printf(out, "%s\"continue\":\"%s\"", is_custom ? "" : ",",
                                head->continue_token) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    if (head->n_remaining != 0 && kinf__buffer_printf(out, ",\"remainingItemCount\":%llu",
                                                      (unsigned long long)head->n_remaining) < 0)
        return KINF_ERR_NO_MEMORY;
    if (is_custom && kinf__buffer_printf(out, ",\"resourceVersion\":\"%s\"", head->version) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(out, "}", 1);
}

static bool is_custom_list(const struct kinf__encoder *encoder)
{
    return encoder->form == KINF__FORM_OBJECT && kinf__is_custom_group(encoder->type->group);
}

int kinf__encode_list_begin(const struct kinf__encoder *encoder, const struct kinf__list_head *head,
                            struct kinf__buffer *out)
{
    const struct kinf_type *type = encoder->type;

    if (is_custom_list(encoder))
        return kinf__buffer_printf(out, "{\"apiVersion\":\"%s/%s\",\"items\":[", type->group,
                                   type->version);
    if (kinf__buffer_append(out, "{", 1) < 0 || append_kind(encoder, "List", out) < 0 ||
        kinf__buffer_append(out, ",", 1) < 0 || append_list_metadata(head, false, out) < 0)
        return KINF_ERR_NO_MEMORY;
    if (encoder->form == KINF__FORM_TABLE)
        return append_columns(encoder, out) < 0
                   ? KINF_ERR_NO_MEMORY
                   : kinf__buffer_append_str(out, KINF_STR(",\"rows\":["));
    return kinf__buffer_append_str(out, KINF_STR(",\"items\":["));
}

int kinf__encode_list_end(const struct kinf__encoder *encoder, const struct kinf__list_head *head,
                          struct kinf__buffer *out)
{
    if (!is_custom_list(encoder))
        return kinf__buffer_append_str(out, KINF_STR("]}\n"));
    if (kinf__buffer_printf(out, "],\"kind\":\"%sList\",", encoder->type->kind) < 0 ||
        append_list_metadata(head, true, out) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append_str(out, KINF_STR("}\n"));
}

static int append_bookmark(const struct kinf__encoder *encoder, const char *version,
                           bool ends_initial_events, struct kinf__buffer *out)
{
    if (kinf__buffer_append(out, "{", 1) < 0 || append_kind(encoder, "", out) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_printf(
        out, ",\"metadata\":{\"resourceVersion\":\"%s\"%s}}", version,
        ends_initial_events ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : "");
}

/* In a Table it is a row of nothing. */
int kinf__encode_bookmark(const struct kinf__encoder *encoder, const char *version,
                          bool ends_initial_events, struct kinf__buffer *out)
{
    struct kinf__encoder row = { .type = encoder->type,
                                 .form = KINF__FORM_METADATA,
                                 .is_v1beta1 = encoder->is_v1beta1 };

    if (encoder->form != KINF__FORM_TABLE)
        return append_bookmark(encoder, version, ends_initial_events, out);
    if (begin_table(encoder, version, out) < 0 ||
        kinf__buffer_append_str(out, KINF_STR("{\"cells\":[],\"object\":")) < 0 ||
        append_bookmark(&row, version, ends_initial_events, out) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append_str(out, KINF_STR("}]}"));
}
