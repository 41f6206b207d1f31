/*
 * From protobuf to a tree, by the schema's numbers of fields. Scalars become a text of JSON first,
 * which the tree's parser takes: it mends and refuses strings and numbers as it does those of JSON.
 *
 * The depth is bounded by the types: none that has numbers contains itself.
 */
#include "document/protobuf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/rfc3339.h"
#include "base/wire.h"
#include "json/quote.h"
#include "json/scan.h"
#include "rest/secret.h"

/* Of JSON inside it: the tree around it has to stay below cJSON's own limit. */
#define MAX_JSON_DEPTH 800
/* Years 0 to 9999, in seconds of 1970; the beginning of year 1 is Go's zero. */
#define FIRST_SECOND (-62167219200)
#define LAST_SECOND  253402300799
#define ZERO_SECOND  (-62135596800)

struct decoder {
    struct kinf__buffer text; /* of the scalar at hand, as JSON */
    struct kinf_error *err;
};

/* --- the wire --- */

static int check_wire(struct decoder *decoder, const struct kinf__wire_field *field,
                      enum kinf__wire_type type)
{
    return field->type == type ? 0
                               : kinf__error_set(decoder->err, KINF_ERR_PARSE,
                                                 "proto: wrong wireType = %d", (int)field->type);
}

static const enum kinf__wire_type all_bytes[] = { KINF__WIRE_BYTES, KINF__WIRE_BYTES };

/* A message of few scalars: the values of its fields by number, what it has of them. */
static int read_small(struct decoder *decoder, struct kinf_str message,
                      const enum kinf__wire_type *types, size_t n_types,
                      struct kinf__wire_field *fields)
{
    struct kinf__wire_field field = { .number = 0 };
    int failed = 0;

    while (failed == 0 && message.len > 0) {
        failed = kinf__wire_read(&message, &field, decoder->err);
        if (failed < 0 || field.number > n_types)
            continue;
        failed = check_wire(decoder, &field, types[field.number - 1]);
        fields[field.number - 1] = field;
    }
    return failed;
}

/* --- scalars --- */

static int write_base64(struct kinf__buffer *out, struct kinf_str bytes)
{
    if (kinf__buffer_append(out, "\"", 1) < 0 ||
        kinf__secret_append_base64(out, bytes.bytes, bytes.len) < 0 ||
        kinf__buffer_append(out, "\"", 1) < 0)
        return KINF_ERR_NO_MEMORY;
    return 0;
}

/* Little-endian; no bytes are zero. */
static int write_number(struct decoder *decoder, struct kinf_str bytes)
{
    uint64_t bits = 0;
    double number;

    for (size_t i = 0; i < bytes.len; i++)
        bits |= (uint64_t)(unsigned char)bytes.bytes[i] << 8 * i;
    memcpy(&number, &bits, sizeof number);
    return isfinite(number)
               ? kinf__buffer_printf(&decoder->text, "%.17g", number)
               : kinf__error_set(decoder->err, KINF_ERR_PARSE, "a number that is not finite");
}

/* Message Timestamp: seconds = 1, nanos = 2. Of Time only the seconds count, as in JSON. */
static int write_time(struct decoder *decoder, struct kinf_str message, bool is_micro)
{
    static const enum kinf__wire_type types[] = { KINF__WIRE_VARINT, KINF__WIRE_VARINT };
    struct kinf__wire_field fields[2] = { { .number = 0 } };
    int failed = read_small(decoder, message, types, 2, fields);
    int64_t seconds = (int64_t)fields[0].integer;
    char text[KINF__RFC3339_SIZE];

    if (failed < 0)
        return failed;
    if (message.len == 0 || seconds == ZERO_SECOND)
        return kinf__buffer_append(&decoder->text, "null", 4);
    if (seconds < FIRST_SECOND || seconds > LAST_SECOND || fields[1].integer > 999999999)
        return kinf__error_set(decoder->err, KINF_ERR_PARSE, "a time outside of years 0 to 9999");
    kinf__rfc3339_write(seconds, (int)(fields[1].integer / 1000), is_micro ? 6 : 0, text);
    return kinf__buffer_printf(&decoder->text, "\"%s\"", text);
}

/* Message IntOrString: type = 1, intVal = 2, strVal = 3. */
static int write_int_or_string(struct decoder *decoder, struct kinf_str message)
{
    static const enum kinf__wire_type types[] = { KINF__WIRE_VARINT, KINF__WIRE_VARINT,
                                                  KINF__WIRE_BYTES };
    struct kinf__wire_field fields[3] = { { .number = 0 } };
    int failed = read_small(decoder, message, types, 3, fields);

    if (failed < 0)
        return failed;
    return fields[0].integer == 0
               ? kinf__buffer_printf(&decoder->text, "%d", (int32_t)fields[1].integer)
               : kinf__quote(&decoder->text, fields[2].bytes);
}

/* Message Quantity: string = 1. */
static int write_quantity(struct decoder *decoder, struct kinf_str message)
{
    struct kinf__wire_field field = { .number = 0 };
    int failed = read_small(decoder, message, all_bytes, 1, &field);

    return failed < 0
               ? failed
               : kinf__quote(&decoder->text, field.bytes.len != 0 ? field.bytes : KINF_STR("0"));
}

/* Messages RawExtension and FieldsV1: the text of JSON = 1. */
static int write_raw(struct decoder *decoder, struct kinf_str message)
{
    struct kinf__wire_field field = { .number = 0 };
    int failed = read_small(decoder, message, all_bytes, 1, &field);
    size_t len;

    if (failed < 0)
        return failed;
    if (field.bytes.len == 0)
        return kinf__buffer_append(&decoder->text, "null", 4);
    failed = kinf__json_scan_all(field.bytes, MAX_JSON_DEPTH, &len);
    return failed < 0 ? kinf__json_error(decoder->err, failed, field.bytes, len)
                      : kinf__buffer_append_str(&decoder->text, field.bytes);
}

static int write_integer(struct decoder *decoder, const char *type, uint64_t integer)
{
    int64_t value = strcmp(type, "int32") == 0 ? (int32_t)integer : (int64_t)integer;

    return kinf__buffer_printf(&decoder->text, "%lld", (long long)value);
}

/* The kinds that are no composites. */
static int write_scalar(struct decoder *decoder, const struct kinf__schema_node *node,
                        const struct kinf__wire_field *wire)
{
    struct kinf__buffer *text = &decoder->text;

    switch (node->kind) {
    case KINF__SCHEMA_STRING:
        return kinf__quote(text, wire->bytes);
    case KINF__SCHEMA_BYTES:
        return write_base64(text, wire->bytes);
    case KINF__SCHEMA_INTEGER:
        return write_integer(decoder, node->name, wire->integer);
    case KINF__SCHEMA_BOOLEAN:
        return kinf__buffer_append_str(text, kinf_str_from(wire->integer != 0 ? "true" : "false"));
    case KINF__SCHEMA_NUMBER:
        return write_number(decoder, wire->bytes);
    case KINF__SCHEMA_TIME:
        return write_time(decoder, wire->bytes, strcmp(node->name, "microtime") == 0);
    case KINF__SCHEMA_INT_OR_STRING:
        return write_int_or_string(decoder, wire->bytes);
    case KINF__SCHEMA_QUANTITY:
        return write_quantity(decoder, wire->bytes);
    default:
        return write_raw(decoder, wire->bytes);
    }
}

static enum kinf__wire_type wire_type_of(const struct kinf__schema_node *node)
{
    if (node->kind == KINF__SCHEMA_INTEGER || node->kind == KINF__SCHEMA_BOOLEAN)
        return KINF__WIRE_VARINT;
    return node->kind == KINF__SCHEMA_NUMBER ? KINF__WIRE_FIXED64 : KINF__WIRE_BYTES;
}

/* Its text stays in the decoder until the next one. */
static int make_scalar(struct decoder *decoder, const struct kinf__schema_node *node,
                       const struct kinf__wire_field *wire, struct cJSON **ret_value)
{
    int failed;

    decoder->text.len = 0;
    failed = write_scalar(decoder, node, wire);
    return failed < 0 ? failed
                      : kinf__doc_parse(kinf__buffer_str(&decoder->text), ret_value, decoder->err);
}

/* What Go's encoder of JSON takes for empty; those that are structs there never are. */
static bool is_zero(const struct kinf__schema_node *node, struct kinf_str text)
{
    if (kinf_str_equal(text, KINF_STR("null")))
        return true;
    return node->kind != KINF__SCHEMA_ANY && node->kind != KINF__SCHEMA_INT_OR_STRING &&
           (kinf_str_equal(text, KINF_STR("\"\"")) || kinf_str_equal(text, KINF_STR("0")) ||
            kinf_str_equal(text, KINF_STR("false")));
}

/* --- messages --- */

static const struct kinf__schema_node string_node = { .kind = KINF__SCHEMA_STRING,
                                                      .name = "string" };

static int decode_message(struct decoder *decoder, const struct kinf__schema_node *node,
                          uint32_t path, struct kinf_str message, struct cJSON *object);
static int append_elements(struct decoder *decoder, const struct kinf__schema_node *element,
                           const struct kinf__wire_field *wire, struct cJSON *array);

/* A list that is no field is a message of its own: items = 1. */
static int decode_items(struct decoder *decoder, const struct kinf__schema_node *element,
                        struct kinf_str message, struct cJSON *array)
{
    struct kinf__wire_field field;
    int failed = 0;

    while (failed == 0 && message.len > 0) {
        failed = kinf__wire_read(&message, &field, decoder->err);
        if (failed == 0 && field.number == 1)
            failed = append_elements(decoder, element, &field, array);
    }
    return failed;
}

/* A list's element, or a map's. */
static int make_value(struct decoder *decoder, const struct kinf__schema_node *node,
                      const struct kinf__wire_field *wire, struct cJSON **ret_value)
{
    KINF__AUTO_DOC *value = NULL;
    int failed = check_wire(decoder, wire, wire_type_of(node));

    if (failed < 0)
        return failed;
    if (node->kind != KINF__SCHEMA_OBJECT && node->kind != KINF__SCHEMA_LIST)
        return make_scalar(decoder, node, wire, ret_value);
    value = node->kind == KINF__SCHEMA_OBJECT ? cJSON_CreateObject() : cJSON_CreateArray();
    if (value == NULL)
        return KINF_ERR_NO_MEMORY;
    failed = node->kind == KINF__SCHEMA_OBJECT
                 ? decode_message(decoder, node, 0, wire->bytes, value)
                 : decode_items(decoder, node->element, wire->bytes, value);
    if (failed == 0)
        *ret_value = KINF__TAKE(value);
    return failed;
}

static int append_element(struct decoder *decoder, const struct kinf__schema_node *element,
                          const struct kinf__wire_field *wire, struct cJSON *array)
{
    struct cJSON *value = NULL;
    int failed = make_value(decoder, element, wire, &value);

    return failed < 0 ? failed : kinf__doc_append(array, value);
}

/* Numbers come one by one, or all of them packed in one field. */
static int append_elements(struct decoder *decoder, const struct kinf__schema_node *element,
                           const struct kinf__wire_field *wire, struct cJSON *array)
{
    struct kinf__wire_field item = { .type = wire_type_of(element) };
    struct kinf_str rest = wire->bytes;
    int failed = 0;

    if (item.type == KINF__WIRE_BYTES || wire->type != KINF__WIRE_BYTES)
        return append_element(decoder, element, wire, array);
    while (failed == 0 && rest.len > 0) {
        failed = kinf__wire_read_value(&rest, &item, decoder->err);
        if (failed == 0)
            failed = append_element(decoder, element, &item, array);
    }
    return failed;
}

/* An entry of a map: key = 1, value = 2. */
static int decode_entry(struct decoder *decoder, const struct kinf__schema_node *element,
                        struct kinf_str message, struct cJSON *map)
{
    const enum kinf__wire_type types[] = { KINF__WIRE_BYTES, wire_type_of(element) };
    struct kinf__wire_field fields[2] = { { .type = types[0] }, { .type = types[1] } };
    KINF__AUTO_DOC *name = NULL;
    struct cJSON *member = NULL;
    int failed;

    if ((failed = read_small(decoder, message, types, 2, fields)) < 0 ||
        (failed = make_scalar(decoder, &string_node, &fields[0], &name)) < 0 ||
        (failed = make_value(decoder, element, &fields[1], &member)) < 0)
        return failed;
    /* Doubled keys stay for now: looking for them here would take a time that is quadratic. */
    return kinf__doc_append_member(map, name->valuestring, member);
}

static int set_composite(struct decoder *decoder, const struct kinf__schema_field *field,
                         const struct kinf__wire_field *wire, struct cJSON *object)
{
    const struct kinf__schema_node *node = field->node;
    bool is_list = node->kind == KINF__SCHEMA_LIST;
    struct cJSON *child =
        is_list ? kinf__doc_array(object, field->name) : kinf__doc_object(object, field->name);
    int failed;

    if (child == NULL)
        return KINF_ERR_NO_MEMORY;
    if (is_list)
        return append_elements(decoder, node->element, wire, child);
    failed = check_wire(decoder, wire, KINF__WIRE_BYTES);
    if (failed < 0)
        return failed;
    if (node->kind == KINF__SCHEMA_MAP)
        return decode_entry(decoder, node->element, wire->bytes, child);
    failed = decode_message(decoder, node, 0, wire->bytes, child);
    if (failed == 0 && child->child == NULL && !field->keeps_zero)
        kinf__doc_remove(object, field->name);
    return failed;
}

static int set_scalar(struct decoder *decoder, const struct kinf__schema_field *field,
                      const struct kinf__wire_field *wire, struct cJSON *object)
{
    struct cJSON *value = NULL;
    int failed = check_wire(decoder, wire, wire_type_of(field->node));

    if (failed == 0)
        failed = make_scalar(decoder, field->node, wire, &value);
    if (failed < 0)
        return failed;
    if ((!field->keeps_zero || cJSON_IsNull(value)) &&
        is_zero(field->node, kinf__buffer_str(&decoder->text))) {
        cJSON_Delete(value);
        kinf__doc_remove(object, field->name);
        return 0;
    }
    return kinf__doc_set(object, field->name, value);
}

/* The member that a field is; NULL: it is unknown, or (*ret_wraps) a message whose fields are. */
static const struct kinf__schema_field *find_field(const struct kinf__schema_node *node,
                                                   uint32_t path, bool *ret_wraps)
{
    *ret_wraps = false;
    for (size_t i = 0; i < node->n_fields; i++) {
        const struct kinf__schema_field *field = &node->fields[i];

        if (field->path == path)
            return field;
        for (uint32_t above = field->path >> 8; above != 0; above >>= 8)
            *ret_wraps |= above == path;
    }
    return NULL;
}

static int decode_field(struct decoder *decoder, const struct kinf__schema_node *node,
                        uint32_t path, const struct kinf__wire_field *wire, struct cJSON *object)
{
    const struct kinf__schema_field *field;
    bool wraps;
    int failed = 0;

    if (wire->number > 0xff)
        return 0;
    field = find_field(node, path << 8 | (uint32_t)wire->number, &wraps);
    if (wraps && (failed = check_wire(decoder, wire, KINF__WIRE_BYTES)) == 0)
        return decode_message(decoder, node, path << 8 | (uint32_t)wire->number, wire->bytes,
                              object);
    if (failed < 0 || field == NULL)
        return failed;
    failed = field->node->kind <= KINF__SCHEMA_LIST ? set_composite(decoder, field, wire, object)
                                                    : set_scalar(decoder, field, wire, object);
    if (failed < 0)
        kinf__error_prefix(decoder->err, "%s", field->name);
    return failed;
}

/* `path`: of the message, where JSON inlines it into `object`; 0: it is the object. */
static int decode_message(struct decoder *decoder, const struct kinf__schema_node *node,
                          uint32_t path, struct kinf_str message, struct cJSON *object)
{
    struct kinf__wire_field wire;
    int failed = 0;

    while (failed == 0 && message.len > 0) {
        failed = kinf__wire_read(&message, &wire, decoder->err);
        if (failed == 0)
            failed = decode_field(decoder, node, path, &wire, object);
    }
    return failed;
}

/* --- the envelope --- */

/* Message Unknown: typeMeta = 1 (apiVersion = 1, kind = 2), raw = 2; what else it has, says nothing. */
static int read_envelope(struct decoder *decoder, struct kinf_str body, struct cJSON *object,
                         struct kinf_str *ret_raw)
{
    static const char magic[4] = { 'k', '8', 's', '\0' };
    static const struct kinf__schema_field fields[] = {
        { .name = "apiVersion", .node = &string_node, .keeps_zero = true },
        { .name = "kind", .node = &string_node, .keeps_zero = true },
    };
    struct kinf__wire_field parts[2] = { { .number = 0 } },
                            names[2] = { { .type = KINF__WIRE_BYTES },
                                         { .type = KINF__WIRE_BYTES } };
    int failed;

    if (body.len < sizeof magic || memcmp(body.bytes, magic, sizeof magic) != 0)
        return kinf__error_set(decoder->err, KINF_ERR_PARSE,
                               "provided data does not appear to be a protobuf message, expected "
                               "prefix [107 56 115 0]");
    body.bytes += sizeof magic;
    body.len -= sizeof magic;
    if ((failed = read_small(decoder, body, all_bytes, 2, parts)) < 0 ||
        (failed = read_small(decoder, parts[0].bytes, all_bytes, 2, names)) < 0 ||
        (failed = set_scalar(decoder, &fields[0], &names[0], object)) < 0 ||
        (failed = set_scalar(decoder, &fields[1], &names[1], object)) < 0)
        return failed;
    *ret_raw = parts[1].bytes;
    return 0;
}

static bool has_numbers(const struct kinf__schema_node *node)
{
    for (size_t i = 0; i < node->n_fields; i++) {
        if (node->fields[i].path != 0)
            return true;
    }
    return false;
}

/* DeleteOptions are of every group. */
static int find_root(struct decoder *decoder, const struct kinf__schema *schema,
                     const struct cJSON *object, const struct kinf__schema_node **ret_node)
{
    const char *api_version = kinf__doc_text(object, "apiVersion", NULL);
    const char *kind = kinf__doc_text(object, "kind", NULL);
    const char *slash = strchr(api_version, '/');
    char group[256] = "";

    if (strcmp(kind, "DeleteOptions") == 0)
        *ret_node = kinf__schema_find(schema, "", "v1", kind);
    else {
        if (slash != NULL)
            snprintf(group, sizeof group, "%.*s", (int)(slash - api_version), api_version);
        *ret_node = kinf__schema_find(schema, group, slash != NULL ? slash + 1 : api_version, kind);
    }
    if (*ret_node == NULL)
        return kinf__error_set(decoder->err, KINF_ERR_NOT_FOUND,
                               "no kind \"%.100s\" is registered for version \"%.100s\"", kind,
                               api_version);
    if (!has_numbers(*ret_node))
        return kinf__error_set(decoder->err, KINF_ERR_UNSUPPORTED,
                               "kinformer-sim takes kind \"%.100s\" only as JSON", kind);
    return 0;
}

static int decode(struct decoder *decoder, const struct kinf__schema *schema, struct kinf_str body,
                  struct cJSON *object)
{
    const struct kinf__schema_node *root;
    struct kinf_str raw;
    int failed;

    if ((failed = read_envelope(decoder, body, object, &raw)) < 0 ||
        (failed = find_root(decoder, schema, object, &root)) < 0 ||
        (failed = decode_message(decoder, root, 0, raw, object)) < 0)
        return failed;
    return kinf__doc_undouble(object);
}

int kinf__protobuf_decode(const struct kinf__schema *schema, struct kinf_str body,
                          struct cJSON **ret_tree, struct kinf_error *err)
{
    struct decoder decoder = { .err = err };
    KINF__AUTO_DOC *object = cJSON_CreateObject();
    int failed = object != NULL ? decode(&decoder, schema, body, object) : KINF_ERR_NO_MEMORY;

    kinf__buffer_release(&decoder.text);
    if (failed == 0)
        *ret_tree = KINF__TAKE(object);
    else if (failed == KINF_ERR_NO_MEMORY)
        return kinf__error_no_memory(err);
    return failed;
}
