/*
 * Values of custom resources against their definition: what is wrong, in the server's words.
 * Neighbours: schema_definition.c keeps the definition beside its nodes, pattern.c matches.
 *
 * The walk is over the definition, which says more than nodes do. Order and words are those of the
 * OpenAPI validation in kube-apiserver; members come in the definition's order, which there is
 * random.
 */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/node_index.h"
#include "document/schema_priv.h"

#define INVALID      "FieldValueInvalid"
#define TYPE_INVALID "FieldValueTypeInvalid"

#define GO_NUMBER_SIZE 64

#define EXACT 9007199254740992.0 /* 2^53 */

/* Definitions say the same of every element of a list: its patterns are compiled once. */
#define N_PATTERNS 8

struct validation {
    struct kinf__buffer path;
    struct kinf__schema_fault *faults;
    size_t n_max;
    int n;
    struct {
        const struct cJSON *rule;
        struct kinf__pattern *pattern;
    } patterns[N_PATTERNS];
    size_t n_patterns; /* ever */
};

static int validate(struct validation *v, const struct cJSON *rules, const struct cJSON *value);

/* --- numbers --- */

/* Beyond 2^53 every double is one. */
static bool is_whole(double number)
{
    return number > EXACT || number < -EXACT || number == (double)(long long)number;
}

/* 2.0 is one, too. */
static bool is_integer(const struct cJSON *value)
{
    return kinf__doc_is_integer(value) ||
           (kinf__doc_is_number(value) && is_whole(kinf__doc_number(value)));
}

/* What the server keeps as an integer of 64 bits, and prints and compares as one. */
static bool is_go_integer(const struct cJSON *value)
{
    double number = kinf__doc_number(value);

    return kinf__doc_is_integer(value) && number < 9.2e18 && number > -9.2e18;
}

/* As Go does: as few digits as say it, with an exponent below -4 and from 6 on. */
static void print_go_double(double number, char text[GO_NUMBER_SIZE])
{
    int digits = 0, exponent;

    do
        snprintf(text, GO_NUMBER_SIZE, "%.*e", digits, number);
    while (strtod(text, NULL) != number && ++digits < 17);
    exponent = atoi(strchr(text, 'e') + 1);
    if (exponent >= -4 && exponent < 6)
        snprintf(text, GO_NUMBER_SIZE, "%.*f", digits > exponent ? digits - exponent : 0, number);
}

/* --- faults --- */

static int add_fault(struct validation *v, const char *reason, const char *field, const char *fmt,
                     ...) KINF_PRINTF(4, 5);

static int add_fault(struct validation *v, const char *reason, const char *field, const char *fmt,
                     ...)
{
    struct kinf__schema_fault *fault;
    va_list args;

    if ((size_t)v->n++ >= v->n_max)
        return 0;
    fault = &v->faults[v->n - 1];
    fault->reason = reason;
    snprintf(fault->field, sizeof fault->field, "%s", field);
    va_start(args, fmt);
    vsnprintf(fault->message, sizeof fault->message, fmt, args);
    va_end(args);
    return 0;
}

static const char *path_of(struct validation *v)
{
    v->path.bytes[v->path.len] = '\0';
    return v->path.bytes;
}

static int print_value(const struct cJSON *value, struct kinf__buffer *out)
{
    char text[GO_NUMBER_SIZE];

    if (!kinf__doc_is_number(value) || is_go_integer(value))
        return kinf__doc_print(value, out);
    print_go_double(kinf__doc_number(value), text);
    return kinf__buffer_append_str(out, kinf_str_from(text));
}

/* "Invalid value: VALUE: PATH in body WHAT" */
static int add_invalid(struct validation *v, const char *reason, const struct cJSON *value,
                       const char *what, const char *limit)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    const char *path = path_of(v);

    if (print_value(value, &text) < 0 || kinf__buffer_cstr(&text) == NULL)
        return KINF_ERR_NO_MEMORY;
    return add_fault(v, reason, path, "Invalid value: %.200s: %s in body %s%s", text.bytes, path,
                     what, limit);
}

static int add_composite(struct validation *v, const char *what)
{
    return add_fault(v, INVALID, "<nil>", "Invalid value: \"\": \"%s\" %s", path_of(v), what);
}

/* --- types --- */

static const char *type_of(const struct cJSON *value)
{
    if (kinf__doc_is_number(value))
        return is_integer(value) ? "integer" : "number";
    return cJSON_IsBool(value) ? "boolean" : kinf__json_type_word(value);
}

static bool is_of_type(const struct cJSON *value, const char *type)
{
    const char *found = type_of(value);

    if (strcmp(type, "integer,string") == 0)
        return cJSON_IsString(value) || is_integer(value);
    return strcmp(found, type) == 0 ||
           (strcmp(type, "number") == 0 && strcmp(found, "integer") == 0);
}

static int check_type(struct validation *v, const struct cJSON *rules, const struct cJSON *value)
{
    bool is_either = kinf__doc_is_true(rules, "x-kubernetes-int-or-string");
    const char *type = is_either ? "integer,string" : kinf__doc_text(rules, "type", NULL);
    const char *path = path_of(v), *found = type_of(value);

    if (*type == '\0' || is_of_type(value, type) ||
        (cJSON_IsNull(value) && kinf__doc_is_true(rules, "nullable")))
        return 0;
    return add_fault(v, TYPE_INVALID, path,
                     "Invalid value: \"%s\": %s in body must be of type %s: \"%s\"", found, path,
                     type, found);
}

static int check_enum(struct validation *v, const struct cJSON *rules, const struct cJSON *value)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    const struct cJSON *values = kinf__doc_get(rules, "enum"), *allowed;

    cJSON_ArrayForEach(allowed, values)
    {
        if (kinf__doc_equal(allowed, value))
            return 0;
    }
    if (!cJSON_IsArray(values) || kinf__doc_is_empty(values))
        return 0;
    if (kinf__buffer_append_str(&text, KINF_STR("Unsupported value: ")) < 0 ||
        kinf__doc_print(value, &text) < 0 ||
        kinf__buffer_append_str(&text, KINF_STR(": supported values: ")) < 0)
        return KINF_ERR_NO_MEMORY;
    cJSON_ArrayForEach(allowed, values)
    {
        const char *quote = cJSON_IsString(allowed) ? "" : "\"";

        if (kinf__buffer_printf(&text, "%s%s", allowed->prev->next != NULL ? ", " : "", quote) <
                0 ||
            kinf__doc_print(allowed, &text) < 0 || kinf__buffer_printf(&text, "%s", quote) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    if (kinf__buffer_cstr(&text) == NULL)
        return KINF_ERR_NO_MEMORY;
    return add_fault(v, "FieldValueNotSupported", path_of(v), "%s", text.bytes);
}

/* --- texts --- */

static long limit_of(const struct cJSON *rules, const char *name, long none)
{
    const struct cJSON *limit = kinf__doc_get(rules, name);

    return cJSON_IsNumber(limit) && limit->valuedouble >= 0 ? (long)limit->valuedouble : none;
}

static long count_characters(const char *text)
{
    long n = 0;

    for (; *text != '\0'; text++)
        n += (*text & 0xc0) != 0x80;
    return n;
}

/* Of this validation, compiled before or now; NULL: it cannot be checked. */
static int find_pattern(struct validation *v, const struct cJSON *rule,
                        const struct kinf__pattern **ret_pattern)
{
    size_t at = v->n_patterns % N_PATTERNS;

    for (size_t i = 0; i < N_PATTERNS; i++) {
        if (v->patterns[i].rule == rule) {
            *ret_pattern = v->patterns[i].pattern;
            return 0;
        }
    }
    kinf__pattern_free(v->patterns[at].pattern);
    v->patterns[at].rule = NULL;
    if (kinf__pattern_new(rule->valuestring, &v->patterns[at].pattern) < 0)
        return KINF_ERR_NO_MEMORY;
    v->patterns[at].rule = rule;
    v->n_patterns++;
    *ret_pattern = v->patterns[at].pattern;
    return 0;
}

static int check_pattern(struct validation *v, const struct cJSON *rules, const struct cJSON *value)
{
    const struct cJSON *rule = kinf__doc_get(rules, "pattern");
    const struct kinf__pattern *pattern;
    char what[300];

    if (!cJSON_IsString(rule))
        return 0;
    if (find_pattern(v, rule, &pattern) < 0)
        return KINF_ERR_NO_MEMORY;
    if (pattern == NULL || kinf__pattern_matches(pattern, value->valuestring))
        return 0;
    snprintf(what, sizeof what, "'%s'", rule->valuestring);
    return add_invalid(v, INVALID, value, "should match ", what);
}

static int check_lengths(struct validation *v, const struct cJSON *rules, const struct cJSON *value)
{
    long length = count_characters(value->valuestring);
    long min = limit_of(rules, "minLength", 0), max = limit_of(rules, "maxLength", -1);
    char what[64];

    if (max >= 0 && length > max)
        return add_fault(v, "FieldValueTooLong", path_of(v),
                         "Too long: may not be more than %ld bytes", max);
    if (length >= min)
        return check_pattern(v, rules, value);
    snprintf(what, sizeof what, "%ld chars long", min);
    return add_invalid(v, INVALID, value, "should be at least ", what);
}

static bool is_uuid(const char *text)
{
    size_t n = 0;

    for (; *text != '\0'; text++) {
        if (*text == '-' && (n == 8 || n == 12 || n == 16 || n == 20))
            continue;
        if (strchr("0123456789abcdefABCDEF", *text) == NULL)
            return false;
        n++;
    }
    return n == 32;
}

static bool is_date(const char *text)
{
    char time[32];

    snprintf(time, sizeof time, "%.20sT00:00:00Z", text);
    return strlen(text) == 10 && kinf__is_time(time);
}

/* Formats that are not known here are taken for right. */
static bool has_format(const char *text, const char *format)
{
    unsigned char address[16];

    if (strcmp(format, "date-time") == 0 || strcmp(format, "datetime") == 0)
        return kinf__is_time(text);
    if (strcmp(format, "date") == 0)
        return is_date(text);
    if (strcmp(format, "byte") == 0)
        return kinf__is_base64(text);
    if (strcmp(format, "uuid") == 0)
        return is_uuid(text);
    if (strcmp(format, "ipv4") == 0)
        return inet_pton(AF_INET, text, address) == 1;
    if (strcmp(format, "ipv6") == 0)
        return inet_pton(AF_INET6, text, address) == 1;
    return true;
}

static int check_text(struct validation *v, const struct cJSON *rules, const struct cJSON *value)
{
    const char *format = kinf__doc_text(rules, "format", NULL);
    char what[128];
    int failed = check_lengths(v, rules, value);

    if (failed < 0 || has_format(value->valuestring, format))
        return failed;
    snprintf(what, sizeof what, "%.40s: \"%.60s\"", format, value->valuestring);
    return add_invalid(v, TYPE_INVALID, value, "must be of type ", what);
}

/* --- limits of numbers --- */

static int add_limit(struct validation *v, const struct cJSON *value, const char *what,
                     double limit)
{
    char text[GO_NUMBER_SIZE];

    if (is_go_integer(value))
        snprintf(text, sizeof text, "%lld", (long long)limit);
    else
        print_go_double(limit, text);
    return add_invalid(v, INVALID, value, what, text);
}

static int check_range(struct validation *v, const struct cJSON *rules, const struct cJSON *value)
{
    const char *format = kinf__doc_text(rules, "format", NULL), *path = path_of(v);
    bool is_32 = strcmp(format, "int32") == 0;
    double number = kinf__doc_number(value);

    if (strcmp(kinf__doc_text(rules, "type", NULL), "integer") != 0)
        return 0;
    if (is_integer(value) && (!is_32 || (number >= INT32_MIN && number <= INT32_MAX)) &&
        number < 9.3e18 && number > -9.3e18)
        return 0;
    return add_fault(v, INVALID, "<nil>",
                     "Invalid value: \"\": Checked value must be of type integer %s%s in %s",
                     is_32 ? "with format " : "", is_32 ? format : "(default format)", path);
}

/* As far as doubles tell. */
static bool is_multiple(double number, double factor)
{
    double quotient = number / factor, off;

    if (quotient > EXACT || quotient < -EXACT)
        return true;
    off = quotient - (double)(long long)(quotient < 0 ? quotient - 0.5 : quotient + 0.5);
    return off < 1e-9 && off > -1e-9;
}

/* A minimum (`sign` 1) or a maximum (-1), which the value itself may not be if it is exclusive. */
static int check_bound(struct validation *v, const struct cJSON *rules, const struct cJSON *value,
                       const char *const names[2], int sign)
{
    const struct cJSON *bound = kinf__doc_get(rules, names[0]);
    bool is_exclusive = kinf__doc_is_true(rules, names[1]);
    double number = kinf__doc_number(value), limit = kinf__doc_number(bound);
    char what[64];

    if (!kinf__doc_is_number(bound) || (sign > 0 ? number > limit : number < limit) ||
        (!is_exclusive && number == limit))
        return 0;
    snprintf(what, sizeof what, "should be %s than %s", sign > 0 ? "greater" : "less",
             is_exclusive ? "" : "or equal to ");
    return add_limit(v, value, what, limit);
}

static int check_number(struct validation *v, const struct cJSON *rules, const struct cJSON *value)
{
    static const char *const minimum[] = { "minimum", "exclusiveMinimum" };
    static const char *const maximum[] = { "maximum", "exclusiveMaximum" };
    const struct cJSON *multiple = kinf__doc_get(rules, "multipleOf");
    double factor = kinf__doc_number(multiple);
    int failed = check_range(v, rules, value);

    if (failed == 0 && factor > 0 && !is_multiple(kinf__doc_number(value), factor))
        failed = add_limit(v, value, "should be a multiple of ", factor);
    if (failed == 0)
        failed = check_bound(v, rules, value, minimum, 1);
    return failed < 0 ? failed : check_bound(v, rules, value, maximum, -1);
}

/* --- lists and objects --- */

/* Of items or properties, at least and at most. */
static int check_count(struct validation *v, const struct cJSON *rules, const char *const names[2],
                       const char *unit, const struct cJSON *container)
{
    long min = limit_of(rules, names[0], 0), max = limit_of(rules, names[1], -1);
    long n = cJSON_GetArraySize(container);
    const char *path = path_of(v);

    if (n < min)
        return add_fault(v, INVALID, path,
                         "Invalid value: %ld: %s in body should have at least %ld %s", n, path, min,
                         unit);
    return max >= 0 && n > max
               ? add_fault(v, "FieldValueTooMany", path, "Too many: %ld: must have at most %ld %s",
                           n, max, max == 1 ? "item" : "items")
               : 0;
}

/* What must differ: the element, or its keys, `{"k":"a"}`. */
static int print_element(const struct cJSON *item, const struct cJSON *keys,
                         struct kinf__buffer *out)
{
    const struct cJSON *key, *value;
    const char *comma = "{";

    if (keys == NULL || !cJSON_IsObject(item))
        return kinf__doc_print(item, out);
    cJSON_ArrayForEach(key, keys)
    {
        value = cJSON_IsString(key) ? kinf__doc_get(item, key->valuestring) : NULL;
        if (value == NULL)
            continue;
        if (kinf__buffer_printf(out, "%s\"%s\":", comma, key->valuestring) < 0 ||
            kinf__doc_print(value, out) < 0)
            return KINF_ERR_NO_MEMORY;
        comma = ",";
    }
    return kinf__buffer_printf(out, "%s}", *comma == '{' ? "{" : "");
}

/* Each once, by what is printed of them. */
static int check_uniqueness(struct validation *v, const struct cJSON *keys,
                            const struct cJSON *list)
{
    KINF__AUTO_NODE_INDEX seen = { KINF__HMAP_INIT };
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    size_t len = v->path.len, i = 0;
    const struct cJSON *item;
    int failed = 0;

    for (item = list->child; failed == 0 && item != NULL; item = item->next, i++) {
        text.len = 0;
        if (print_element(item, keys, &text) < 0 || kinf__buffer_cstr(&text) == NULL)
            return KINF_ERR_NO_MEMORY;
        if (kinf__node_index_find(&seen, text.bytes) == NULL) {
            failed = kinf__node_index_add(&seen, text.bytes, NULL, 0);
            continue;
        }
        failed = kinf__path_enter_index(&v->path, i);
        if (failed == 0)
            add_fault(v, "FieldValueDuplicate", path_of(v), "Duplicate value: %s", text.bytes);
        v->path.len = len;
    }
    return failed;
}

static int check_elements(struct validation *v, const struct cJSON *rules, const struct cJSON *list)
{
    const struct cJSON *items = kinf__doc_get(rules, "items"), *item;
    size_t len = v->path.len, i = 0;
    int failed = 0;

    if (!cJSON_IsObject(items))
        return 0;
    for (item = list->child; failed == 0 && item != NULL; item = item->next) {
        failed = kinf__path_enter_index(&v->path, i++);
        if (failed == 0)
            failed = validate(v, items, item);
        v->path.len = len;
    }
    return failed;
}

static int check_list(struct validation *v, const struct cJSON *rules, const struct cJSON *list)
{
    static const char *const limits[] = { "minItems", "maxItems" };
    const char *type = kinf__doc_text(rules, "x-kubernetes-list-type", NULL);
    int failed = check_elements(v, rules, list);

    if (failed == 0)
        failed = check_count(v, rules, limits, "items", list);
    if (failed == 0 && strcmp(type, "set") == 0)
        failed = check_uniqueness(v, NULL, list);
    if (failed == 0 && strcmp(type, "map") == 0)
        failed = check_uniqueness(v, kinf__doc_get(rules, "x-kubernetes-list-map-keys"), list);
    return failed;
}

static int require(struct validation *v, const struct cJSON *object, const char *name)
{
    size_t len = v->path.len;

    if (kinf__doc_get(object, name) != NULL)
        return 0;
    if (kinf__path_enter(&v->path, name) < 0)
        return KINF_ERR_NO_MEMORY;
    add_fault(v, "FieldValueRequired", path_of(v), "Required value");
    v->path.len = len;
    return 0;
}

static int check_required(struct validation *v, const struct cJSON *rules,
                          const struct cJSON *object)
{
    const struct cJSON *name;

    cJSON_ArrayForEach(name, kinf__doc_get(rules, "required"))
    {
        if (cJSON_IsString(name) && require(v, object, name->valuestring) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    if (!kinf__doc_is_true(rules, "x-kubernetes-embedded-resource"))
        return 0;
    return require(v, object, "apiVersion") < 0 ? KINF_ERR_NO_MEMORY : require(v, object, "kind");
}

static int check_members(struct validation *v, const struct cJSON *rules,
                         const struct cJSON *object)
{
    const struct cJSON *properties = kinf__doc_get(rules, "properties"), *member;
    const struct cJSON *others = kinf__doc_get(rules, "additionalProperties");
    size_t len = v->path.len;
    int failed = 0;

    for (member = object->child; failed == 0 && member != NULL; member = member->next) {
        const struct cJSON *own = kinf__doc_get(properties, member->string);

        own = own != NULL ? own : others;
        if (!cJSON_IsObject(own))
            continue;
        failed = kinf__path_enter(&v->path, member->string);
        if (failed == 0)
            failed = validate(v, own, member);
        v->path.len = len;
    }
    return failed;
}

static int check_object(struct validation *v, const struct cJSON *rules, const struct cJSON *object)
{
    static const char *const limits[] = { "minProperties", "maxProperties" };
    int failed = check_count(v, rules, limits, "properties", object);

    if (failed == 0)
        failed = check_members(v, rules, object);
    return failed < 0 ? failed : check_required(v, rules, object);
}

/* --- anyOf and its like --- */

/* How many faults there would be; negative: failed. */
static int count_faults(struct validation *v, const struct cJSON *rules, const struct cJSON *value)
{
    size_t n_max = v->n_max;
    int n = v->n, failed, n_faults;

    v->n_max = 0;
    failed = validate(v, rules, value);
    n_faults = v->n - n;
    v->n_max = n_max;
    v->n = n;
    return failed < 0 ? failed : n_faults;
}

/* How many of the alternatives hold; *ret_nearest: of the rest, the one with the fewest faults. */
static int count_matches(struct validation *v, const struct cJSON *alternatives,
                         const struct cJSON *value, const struct cJSON **ret_nearest)
{
    const struct cJSON *rules;
    int matches = 0, n_fewest = 0;

    *ret_nearest = NULL;
    cJSON_ArrayForEach(rules, alternatives)
    {
        int n = count_faults(v, rules, value);

        if (n < 0)
            return n;
        matches += n == 0;
        if (n != 0 && (*ret_nearest == NULL || n < n_fewest)) {
            *ret_nearest = rules;
            n_fewest = n;
        }
    }
    return matches;
}

static int check_alternatives(struct validation *v, const struct cJSON *rules,
                              const struct cJSON *value, const char *name, bool is_one)
{
    const struct cJSON *alternatives = kinf__doc_get(rules, name), *nearest;
    int matches;
    char what[96];

    if (!cJSON_IsArray(alternatives) || alternatives->child == NULL)
        return 0;
    matches = count_matches(v, alternatives, value, &nearest);
    if (matches < 0 || (is_one ? matches == 1 : matches != 0))
        return matches < 0 ? matches : 0;
    if (!is_one)
        add_composite(v, "must validate at least one schema (anyOf)");
    else if (matches == 0)
        add_composite(v, "must validate one and only one schema (oneOf). Found none valid");
    else {
        snprintf(what, sizeof what,
                 "must validate one and only one schema (oneOf). Found %d valid alternatives",
                 matches);
        add_composite(v, what);
    }
    /* Who only counts does not ask again, or nested ones would take exponential time. */
    return matches == 0 && nearest != NULL && v->n_max != 0 ? validate(v, nearest, value) : 0;
}

static int check_all(struct validation *v, const struct cJSON *rules, const struct cJSON *value)
{
    const struct cJSON *parts = kinf__doc_get(rules, "allOf"), *part;
    int n = v->n, n_before, n_valid = 0, failed = 0;

    cJSON_ArrayForEach(part, parts)
    {
        n_before = v->n;
        failed = validate(v, part, value);
        if (failed < 0)
            return failed;
        n_valid += v->n == n_before;
    }
    if (v->n == n)
        return 0;
    return add_composite(v, n_valid == 0 ? "must validate all the schemas (allOf). None validated"
                                         : "must validate all the schemas (allOf)");
}

static int check_logic(struct validation *v, const struct cJSON *rules, const struct cJSON *value)
{
    const struct cJSON *forbidden = kinf__doc_get(rules, "not");
    int failed = check_alternatives(v, rules, value, "anyOf", false), n;

    if (failed == 0)
        failed = check_alternatives(v, rules, value, "oneOf", true);
    if (failed == 0)
        failed = check_all(v, rules, value);
    if (failed < 0 || !cJSON_IsObject(forbidden))
        return failed;
    n = count_faults(v, forbidden, value);
    return n != 0 ? (n < 0 ? n : 0) : add_composite(v, "must not validate the schema (not)");
}

/* The depth is bounded by the parser's. */
static int validate(struct validation *v, const struct cJSON *rules, const struct cJSON *value)
{
    int failed = check_type(v, rules, value);

    if (failed == 0 && !cJSON_IsNull(value))
        failed = check_logic(v, rules, value);
    if (failed == 0 && cJSON_IsString(value))
        failed = check_text(v, rules, value);
    if (failed == 0 && kinf__doc_is_number(value))
        failed = check_number(v, rules, value);
    if (failed == 0 && cJSON_IsArray(value))
        failed = check_list(v, rules, value);
    if (failed == 0)
        failed = check_enum(v, rules, value);
    if (failed == 0 && cJSON_IsObject(value))
        failed = check_object(v, rules, value);
    return failed;
}

int kinf__schema_validate(const struct kinf__schema_node *node, const struct cJSON *tree,
                          struct kinf__schema_fault *faults, size_t n_max)
{
    struct validation v = { .faults = faults, .n_max = n_max };
    int failed;

    if (node == NULL || node->rules == NULL)
        return 0;
    failed = kinf__buffer_reserve(&v.path, 1);
    if (failed == 0)
        failed = validate(&v, node->rules, tree);
    kinf__buffer_release(&v.path);
    for (size_t i = 0; i < N_PATTERNS; i++)
        kinf__pattern_free(v.patterns[i].pattern);
    return failed < 0 ? failed : v.n;
}
