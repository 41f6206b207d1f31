/*
 * Faults of fields. Neighbours: whoever validates adds them; verbs.c answers with the refusal.
 */
#include "apiserver/invalid.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "json/quote.h"

#define VALUE_SIZE 1024 /* of a value in a message */

/* Returns the length of what is there now. */
static size_t print_field(const struct kinf__field *field, char *text, size_t size)
{
    size_t len = field->parent != NULL ? print_field(field->parent, text, size) : 0;
    int more;

    if (field->name != NULL)
        more = snprintf(text + len, size - len, "%s%s", len != 0 ? "." : "", field->name);
    else if (field->key != NULL)
        more = snprintf(text + len, size - len, "[%s]", field->key);
    else
        more = snprintf(text + len, size - len, "[%zu]", field->index);
    return more < 0 || (size_t)more >= size - len ? size - 1 : len + (size_t)more;
}

/* "spec.containers[0].name", "data[a b]"; cut to the room there is. */
static void print_path(const struct kinf__field *field, char *text, size_t size)
{
    text[0] = '\0';
    print_field(field, text, size);
}

void kinf__invalid_init(struct kinf__invalid *invalid, struct kinf__refusal *refusal)
{
    memset(refusal, 0, sizeof *refusal);
    invalid->refusal = refusal;
    invalid->n_faults = 0;
    invalid->len = 0;
    invalid->words[0] = '\0';
}

void kinf__invalid_add(struct kinf__invalid *invalid, const char *reason, const char *path,
                       const char *message)
{
    size_t left = sizeof invalid->words - invalid->len;
    int len;

    kinf__refusal_add_cause(invalid->refusal, reason, path, message);
    len = snprintf(invalid->words + invalid->len, left, "%s%s: %s",
                   invalid->n_faults != 0 ? ", " : "", path, message);
    invalid->len =
        len < 0 || (size_t)len >= left ? sizeof invalid->words - 1 : invalid->len + (size_t)len;
    invalid->n_faults++;
}

static void add(struct kinf__invalid *invalid, const char *reason, const struct kinf__field *field,
                const char *fmt, ...) KINF_PRINTF(4, 5);

static void add(struct kinf__invalid *invalid, const char *reason, const struct kinf__field *field,
                const char *fmt, ...)
{
    char path[256], message[KINF__REFUSAL_MESSAGE_SIZE];
    va_list args;

    print_path(field, path, sizeof path);
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    kinf__invalid_add(invalid, reason, path, message);
}

void kinf__invalid_required(struct kinf__invalid *invalid, const struct kinf__field *field,
                            const char *why)
{
    add(invalid, "FieldValueRequired", field, "Required value%s%s", *why != '\0' ? ": " : "", why);
}

void kinf__invalid_forbidden(struct kinf__invalid *invalid, const struct kinf__field *field,
                             const char *why)
{
    add(invalid, "FieldValueForbidden", field, "Forbidden: %s", why);
}

/* In quotes, or as much of it as fits; want of memory shows as nothing between them. */
static void quote(const char *text, char *quoted, size_t size)
{
    KINF__AUTO_BUFFER buffer = KINF__BUFFER_INIT;
    const char *bytes = NULL;

    if (kinf__quote(&buffer, kinf_str_from(text)) == 0)
        bytes = kinf__buffer_cstr(&buffer);
    snprintf(quoted, size, "%s", bytes != NULL ? bytes : "\"\"");
}

void kinf__invalid_value(struct kinf__invalid *invalid, const struct kinf__field *field,
                         const struct cJSON *value, const char *why)
{
    char *text = value != NULL ? cJSON_PrintUnformatted(value) : NULL;

    add(invalid, "FieldValueInvalid", field, "Invalid value: %.*s: %s", VALUE_SIZE,
        text != NULL ? text : "null", why);
    cJSON_free(text);
}

void kinf__invalid_text(struct kinf__invalid *invalid, const struct kinf__field *field,
                        const char *value, const char *why)
{
    char quoted[VALUE_SIZE];

    quote(value, quoted, sizeof quoted);
    add(invalid, "FieldValueInvalid", field, "Invalid value: %s: %s", quoted, why);
}

void kinf__invalid_integer(struct kinf__invalid *invalid, const struct kinf__field *field,
                           int64_t value, const char *why)
{
    add(invalid, "FieldValueInvalid", field, "Invalid value: %lld: %s", (long long)value, why);
}

void kinf__invalid_duplicate(struct kinf__invalid *invalid, const struct kinf__field *field,
                             const char *value)
{
    char quoted[VALUE_SIZE];

    quote(value, quoted, sizeof quoted);
    kinf__invalid_duplicate_raw(invalid, field, quoted);
}

void kinf__invalid_duplicate_raw(struct kinf__invalid *invalid, const struct kinf__field *field,
                                 const char *value)
{
    add(invalid, "FieldValueDuplicate", field, "Duplicate value: %s", value);
}

void kinf__invalid_unsupported(struct kinf__invalid *invalid, const struct kinf__field *field,
                               const char *value, const char *supported)
{
    char quoted[VALUE_SIZE];

    quote(value, quoted, sizeof quoted);
    add(invalid, "FieldValueNotSupported", field, "Unsupported value: %s: supported values: %s",
        quoted, supported);
}

void kinf__invalid_not_found(struct kinf__invalid *invalid, const struct kinf__field *field,
                             const char *value)
{
    char quoted[VALUE_SIZE];

    quote(value, quoted, sizeof quoted);
    add(invalid, "FieldValueNotFound", field, "Not found: %s", quoted);
}

bool kinf__invalid_check_name(struct kinf__invalid *invalid, const struct kinf__field *field,
                              enum kinf__name_form form, const char *name)
{
    char why[KINF__NAME_FAULT_SIZE];
    bool is_good = kinf__name_is(form, name, why);

    if (!is_good)
        kinf__invalid_text(invalid, field, name, why);
    return is_good;
}

void kinf__invalid_too_long(struct kinf__invalid *invalid, const struct kinf__field *field,
                            size_t max)
{
    add(invalid, "FieldValueTooLong", field, "Too long: may not be more than %zu bytes", max);
}

int kinf__invalid_finish(struct kinf__invalid *invalid, const char *group, const char *kind,
                         const char *name)
{
    struct kinf__refusal *refusal = invalid->refusal;
    bool is_list = invalid->n_faults > 1;

    if (invalid->n_faults == 0)
        return 0;
    refusal->code = 422;
    refusal->reason = "Invalid";
    snprintf(refusal->message, sizeof refusal->message, "%s%s%s \"%s\" is invalid: %s%s%s", kind,
             *group != '\0' ? "." : "", group, name, is_list ? "[" : "", invalid->words,
             is_list ? "]" : "");
    kinf__refusal_set_object(refusal, group, kind, name);
    return KINF_ERR_INVALID;
}
