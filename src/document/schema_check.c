/*
 * Values of built-in types, as a Go struct takes them: the first one that does not fit is the
 * server's refusal, in the words of Go's decoder. Neighbours: schema_validate.c does the same for
 * custom resources, by their own rules.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/quantity.h"
#include "document/schema_priv.h"

#define TIME_LAYOUT       "2006-01-02T15:04:05Z07:00"
#define MICRO_TIME_LAYOUT "2006-01-02T15:04:05.000000Z07:00"

#define FAULT_SIZE 700

struct check {
    struct kinf__buffer path; /* names, with dots; structs that are embedded count */
    const char *owner;        /* Go's struct that has the last field; NULL: none has */
    char fault[FAULT_SIZE];
};

static int check_value(struct check *check, const struct kinf__schema_node *node,
                       const struct cJSON *value);

static int fault(struct check *check, const char *fmt, ...) KINF_PRINTF(2, 3);

static int fault(struct check *check, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(check->fault, sizeof check->fault, fmt, args);
    va_end(args);
    return KINF_ERR_INVALID;
}

/* --- what Go says of a type --- */

static void write_go_type(const struct kinf__schema_node *node, char *text, size_t size)
{
    size_t len = 0;

    for (; node->go == NULL && node->element != NULL; node = node->element) {
        len += (size_t)snprintf(text + len, size - len, "%s",
                                node->kind == KINF__SCHEMA_LIST ? "[]" : "map[string]");
        if (len + 32 > size)
            break;
    }
    snprintf(text + len, size - len, "%s", node->go != NULL ? node->go : "");
}

/* A number that does not fit is named, one in another type's place is not. */
static void write_value(const struct cJSON *value, bool wants_number, char *text, size_t size)
{
    if (wants_number && cJSON_IsRaw(value))
        snprintf(text, size, "number %s", value->valuestring);
    else if (wants_number && cJSON_IsNumber(value))
        snprintf(text, size, "number %.0f", value->valuedouble);
    else
        snprintf(text, size, "%s", kinf__json_type_word(value));
}

static int mismatch(struct check *check, const struct kinf__schema_node *node,
                    const struct cJSON *value)
{
    bool wants_number =
        node->kind == KINF__SCHEMA_INTEGER || node->kind == KINF__SCHEMA_INT_OR_STRING;
    char found[64], type[128];

    write_value(value, wants_number, found, sizeof found);
    write_go_type(node, type, sizeof type);
    if (kinf__buffer_cstr(&check->path) == NULL)
        return KINF_ERR_NO_MEMORY;
    if (check->owner == NULL)
        return fault(check, "json: cannot unmarshal %s into Go value of type %s", found, type);
    return fault(check, "json: cannot unmarshal %s into Go struct field %s.%s of type %s", found,
                 check->owner, check->path.bytes, type);
}

/* --- numbers --- */

static bool fits(const struct cJSON *value, bool is_32)
{
    long long number;

    if (!kinf__doc_is_integer(value))
        return false;
    if (cJSON_IsNumber(value))
        return !is_32 || (value->valuedouble >= INT32_MIN && value->valuedouble <= INT32_MAX);
    errno = 0;
    number = strtoll(value->valuestring, NULL, 10);
    return errno == 0 && (!is_32 || (number >= INT32_MIN && number <= INT32_MAX));
}

static int check_integer(struct check *check, const struct kinf__schema_node *node,
                         const struct cJSON *value)
{
    bool is_32 = node->kind == KINF__SCHEMA_INT_OR_STRING || strcmp(node->name, "int32") == 0;

    return fits(value, is_32) ? 0 : mismatch(check, node, value);
}

/* --- times --- */

/* One element of the layout ("01", "T") against what is at *at. */
struct time_part {
    const char *layout;
    int digits; /* 0: the layout itself */
    int min, max;
    const char *name;
};

static const struct time_part time_parts[] = {
    { "2006", 4, 0, 9999, "year" }, { "-", 0, 0, 0, NULL },       { "01", 2, 1, 12, "month" },
    { "-", 0, 0, 0, NULL },         { "02", 2, 1, 31, "day" },    { "T", 0, 0, 0, NULL },
    { "15", 2, 0, 23, "hour" },     { ":", 0, 0, 0, NULL },       { "04", 2, 0, 59, "minute" },
    { ":", 0, 0, 0, NULL },         { "05", 2, 0, 59, "second" },
};

static bool read_digits(const char *text, int n, int *ret)
{
    *ret = 0;
    for (int i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        *ret = *ret * 10 + text[i] - '0';
    }
    return true;
}

static int days_of(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && is_leap);
}

/* "Z" or "+02:00"; NULL: neither. */
static const char *skip_zone(const char *at)
{
    int hours, minutes;

    if (*at == 'Z')
        return at + 1;
    if ((*at != '+' && *at != '-') || !read_digits(at + 1, 2, &hours) || at[3] != ':' ||
        !read_digits(at + 4, 2, &minutes) || hours > 24 || minutes > 60)
        return NULL;
    return at + 6;
}

/* Go takes a fraction anywhere, but a MicroTime wants six digits and no more. */
static const char *skip_fraction(const char *at, bool is_micro)
{
    size_t n = *at == '.' ? strspn(at + 1, "0123456789") : 0;

    if (is_micro)
        return n >= 6 ? at + 1 + 6 : NULL;
    return n != 0 ? at + 1 + n : at;
}

static int time_fault(struct check *check, const char *text, bool is_micro, const char *rest,
                      const char *part)
{
    return fault(check, "parsing time \"%.200s\" as \"%s\": cannot parse \"%.200s\" as \"%s\"",
                 text, is_micro ? MICRO_TIME_LAYOUT : TIME_LAYOUT, rest, part);
}

static int check_zone(struct check *check, const char *text, const char *at, bool is_micro)
{
    const char *rest = skip_fraction(at, is_micro), *end;

    if (rest == NULL)
        return time_fault(check, text, is_micro, at, ".000000");
    end = skip_zone(rest);
    if (end == NULL)
        return time_fault(check, text, is_micro, rest, "Z07:00");
    if (*end != '\0')
        return fault(check, "parsing time \"%.200s\": extra text: \"%.200s\"", text, end);
    return 0;
}

static int check_time(struct check *check, const char *text, bool is_micro)
{
    int numbers[KINF__ARRAY_LEN(time_parts)] = { 0 };
    const char *at = text;

    for (size_t i = 0; i < KINF__ARRAY_LEN(time_parts); i++) {
        const struct time_part *part = &time_parts[i];
        size_t len = strlen(part->layout);

        if (part->digits == 0 ? strncmp(at, part->layout, len) != 0
                              : !read_digits(at, part->digits, &numbers[i]))
            return time_fault(check, text, is_micro, at, part->layout);
        if (part->digits != 0 && (numbers[i] < part->min || numbers[i] > part->max))
            return fault(check, "parsing time \"%.200s\": %s out of range", text, part->name);
        at += len;
    }
    if (numbers[4] > days_of(numbers[0], numbers[2]))
        return fault(check, "parsing time \"%.200s\": day out of range", text);
    return check_zone(check, text, at, is_micro);
}

bool kinf__is_time(const char *text)
{
    struct check check = { .path = KINF__BUFFER_INIT };

    return check_time(&check, text, false) == 0;
}

/* --- base64 --- */

static bool is_base64_digit(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/';
}

/* Where Go's decoder stops; negative: nowhere. Line ends do not count. */
static long base64_fault(const char *text)
{
    long group[4] = { 0 };
    size_t n = 0, n_pads = 0;
    long i;

    for (i = 0; text[i] != '\0'; i++) {
        if (text[i] == '\n' || text[i] == '\r')
            continue;
        if (text[i] == '=' ? n < 2 : !is_base64_digit(text[i]) || n_pads != 0)
            return n_pads != 0 && text[i] != '=' ? group[n - 1] : i;
        group[n++] = i;
        n_pads += text[i] == '=';
        if (n == 4 && n_pads != 0)
            return text[i + 1 + (long)strspn(text + i + 1, "\r\n")] == '\0' ? -1 : i + 1;
        n %= 4;
    }
    if (n == 0)
        return -1;
    return n_pads != 0 ? i : group[0];
}

bool kinf__is_base64(const char *text)
{
    return base64_fault(text) < 0;
}

static int check_bytes(struct check *check, const char *text)
{
    long at = base64_fault(text);

    return at < 0 ? 0 : fault(check, "illegal base64 data at input byte %ld", at);
}

/* --- walking --- */

static int check_quantity(struct check *check, const struct cJSON *value)
{
    const char *wrong = kinf__doc_is_number(value)
                            ? NULL
                            : kinf__quantity_fault(cJSON_IsString(value) ? value->valuestring : "");

    return wrong != NULL ? fault(check, "%s", wrong) : 0;
}

static int check_members(struct check *check, const struct kinf__schema_node *node,
                         const struct cJSON *object)
{
    const char *owner = check->owner;
    size_t len = check->path.len;
    const struct cJSON *member;
    int failed = 0;

    check->owner = node->go + strcspn(node->go, ".") + 1;
    for (member = object->child; failed == 0 && member != NULL; member = member->next) {
        const struct kinf__schema_field *field = kinf__schema_field_of(node, member->string);

        if (field == NULL)
            continue;
        if (field->inlined != NULL)
            failed = kinf__path_enter(&check->path, field->inlined);
        if (failed == 0)
            failed = kinf__path_enter(&check->path, field->name);
        if (failed == 0)
            failed = check_value(check, field->node, member);
        check->path.len = len;
    }
    check->owner = owner;
    return failed;
}

static int check_elements(struct check *check, const struct kinf__schema_node *node,
                          const struct cJSON *container)
{
    const struct cJSON *element;
    int failed = 0;

    for (element = container->child; failed == 0 && element != NULL; element = element->next)
        failed = check_value(check, node->element, element);
    return failed;
}

static int check_text(struct check *check, const struct kinf__schema_node *node,
                      const struct cJSON *value)
{
    if (!cJSON_IsString(value))
        return mismatch(check, node, value);
    if (node->kind == KINF__SCHEMA_TIME)
        return check_time(check, value->valuestring, strcmp(node->name, "microtime") == 0);
    return node->kind == KINF__SCHEMA_BYTES ? check_bytes(check, value->valuestring) : 0;
}

/* null is no value: it fits everywhere. The depth is bounded by the parser's. */
static int check_value(struct check *check, const struct kinf__schema_node *node,
                       const struct cJSON *value)
{
    if (cJSON_IsNull(value))
        return 0;
    switch (node->kind) {
    case KINF__SCHEMA_OBJECT:
        return cJSON_IsObject(value) ? check_members(check, node, value)
                                     : mismatch(check, node, value);
    case KINF__SCHEMA_MAP:
        return cJSON_IsObject(value) ? check_elements(check, node, value)
                                     : mismatch(check, node, value);
    case KINF__SCHEMA_LIST:
        return cJSON_IsArray(value) ? check_elements(check, node, value)
                                    : mismatch(check, node, value);
    case KINF__SCHEMA_STRING:
    case KINF__SCHEMA_TIME:
    case KINF__SCHEMA_BYTES:
        return check_text(check, node, value);
    case KINF__SCHEMA_INTEGER:
        return check_integer(check, node, value);
    case KINF__SCHEMA_NUMBER:
        return kinf__doc_is_number(value) ? 0 : mismatch(check, node, value);
    case KINF__SCHEMA_BOOLEAN:
        return cJSON_IsBool(value) ? 0 : mismatch(check, node, value);
    case KINF__SCHEMA_INT_OR_STRING:
        return cJSON_IsString(value) ? 0 : check_integer(check, node, value);
    case KINF__SCHEMA_QUANTITY:
        return check_quantity(check, value);
    case KINF__SCHEMA_ANY:
        break;
    }
    return 0;
}

int kinf__schema_check_types(const struct kinf__schema_node *node, const struct cJSON *tree,
                             const char *kind, const char *version, struct kinf__refusal *refusal)
{
    struct check check = { .path = KINF__BUFFER_INIT };
    int failed;

    if (node != NULL && node->rules != NULL) {
        node = kinf__schema_member(node, "metadata");
        tree = kinf__doc_get(tree, "metadata");
    }
    failed = node != NULL && tree != NULL ? check_value(&check, node, tree) : 0;
    kinf__buffer_release(&check.path);
    if (failed == KINF_ERR_INVALID)
        return kinf__refuse(refusal, 400, "BadRequest",
                            "%s in version \"%s\" cannot be handled as a %s: %s", kind, version,
                            kind, check.fault);
    return failed < 0 ? kinf__refuse_no_memory(refusal) : 0;
}
