/*
 * Columns by JSONPath as client-go reads it: keys, indices, slices, wildcards, and filters that
 * compare one field with a text, which is what definitions have in practice. Anything else is a cell
 * without a value. Of several matches the first counts, as with the API server. Neighbours: table.c.
 */
#include "table/custom.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/quote.h"

#define MAX_STEPS   16
#define MAX_COLUMNS 64
#define MAX_DIGITS  9
#define TO_THE_END  LONG_MAX
#define ZERO_TIME_S (-62135596800) /* 0001-01-01T00:00:00Z, of Go a time that is not set */

enum step_type {
    STEP_KEY,
    STEP_EACH,
    STEP_SLICE,
    STEP_FILTER,
};

/* Texts are parts of the column's path. */
struct step {
    enum step_type type;
    const char *key; /* STEP_KEY; STEP_FILTER: the field that is compared */
    const char *value;
    bool is_unequal;
    /* STEP_SLICE: indices, negative ones from the array's end */
    long begin;
    long end; /* behind the last one, or TO_THE_END */
    long stride;
};

struct column {
    char *name;
    char *type;
    char *format;
    char *description;
    int64_t priority;
    char *path;
    struct step steps[MAX_STEPS];
    size_t n_steps;
    bool is_understood;
};

struct kinf__custom_columns {
    size_t n_items;
    struct column items[];
};

/* --- paths --- */

/* A key up to what cannot be in one, its escapes taken away; ends it with a NUL in `*at`, whose byte
 * it returns. */
static char take_key(char **at, const char **ret_key)
{
    char *from = *at, *to = *at, end;

    *ret_key = to;
    while (strchr(" \t\r\n.,[]$@{}", *from) == NULL) {
        if (*from == '\\' && from[1] != '\0')
            from++;
        *to++ = *from++;
    }
    end = *from;
    *to = '\0';
    *at = from;
    return end;
}

/* "'text'" or "\"text\""; leaves `*at` behind it. */
static bool take_quoted(char **at, const char **ret_text)
{
    char quote = **at, *end = quote == '\'' || quote == '"' ? strchr(*at + 1, quote) : NULL;

    if (end == NULL)
        return false;
    *ret_text = *at + 1;
    *end = '\0';
    *at = end + 1;
    return true;
}

/* Behind "[?(": `@.field=="text")`. */
static bool take_filter(char **at, struct step *step)
{
    char *field = *at + 2, *sign;

    if (strncmp(*at, "@.", 2) != 0 || (sign = strpbrk(field, "=! )")) == NULL)
        return false;
    *at = sign + strspn(sign, " ");
    if (strncmp(*at, "==", 2) != 0 && strncmp(*at, "!=", 2) != 0)
        return false;
    *step = (struct step){ .type = STEP_FILTER, .key = field, .is_unequal = **at == '!' };
    *at += 2 + strspn(*at + 2, " ");
    *sign = '\0';
    if (!take_quoted(at, &step->value))
        return false;
    *at += strspn(*at, " ");
    return *(*at)++ == ')';
}

/* Digits, maybe with a sign; `otherwise` if there is nothing. */
static bool take_number(char **at, long otherwise, long *ret)
{
    size_t n_digits = strspn(*at + (**at == '-'), "0123456789");

    *ret = n_digits != 0 ? strtol(*at, at, 10) : otherwise;
    return n_digits <= MAX_DIGITS && **at != '-';
}

/* "begin:end:stride", each of which may be missing, or an index. */
static bool take_slice(char **at, struct step *step)
{
    *step = (struct step){ .type = STEP_SLICE, .stride = 1 };
    if (!take_number(at, 0, &step->begin))
        return false;
    if (**at != ':') {
        step->end = step->begin != -1 ? step->begin + 1 : TO_THE_END;
        return true;
    }
    ++*at;
    if (!take_number(at, TO_THE_END, &step->end))
        return false;
    if (**at == ':') {
        ++*at;
        if (!take_number(at, 1, &step->stride))
            return false;
    }
    return step->stride > 0;
}

/* Behind "[", and what ends it. */
static bool take_subscript(char **at, struct step *step)
{
    if (**at == '*') {
        *step = (struct step){ .type = STEP_SLICE, .end = TO_THE_END, .stride = 1 };
        ++*at;
    } else if (strncmp(*at, "?(", 2) == 0) {
        *at += 2;
        if (!take_filter(at, step))
            return false;
    } else if (!take_slice(at, step)) {
        return false;
    }
    return *(*at)++ == ']';
}

static bool parse(struct column *column, char *at);

/* "'x']" is read as ".x" is, with its dots and escapes; leaves `*at` behind it. */
static bool parse_quoted(struct column *column, char **at)
{
    char *quote = *at, *end = strchr(quote + 1, '\'');

    if (end == NULL || end + 1 != strchr(quote, ']'))
        return false;
    *quote = '.';
    *end = '\0';
    *at = end + 2;
    return parse(column, quote);
}

static bool parse(struct column *column, char *at)
{
    char next = *at;

    while (next != '\0') {
        struct step *step = &column->steps[column->n_steps];

        at++;
        if (next == '[' && *at == '\'') {
            if (!parse_quoted(column, &at))
                return false;
            next = *at;
            continue;
        }
        if (column->n_steps == MAX_STEPS)
            return false;
        column->n_steps++;
        if (next == '[') {
            if (!take_subscript(&at, step))
                return false;
            next = *at;
        } else if (next == '.') {
            *step = (struct step){ .type = STEP_KEY };
            next = take_key(&at, &step->key);
            if (*step->key == '\0')
                return false;
            if (strcmp(step->key, "*") == 0)
                step->type = STEP_EACH;
        } else {
            return false;
        }
    }
    return true;
}

/* --- reading --- */

/* "" if it is not there; NULL: out of memory. */
static char *dup_field(struct kinf__json_value from, const char *name)
{
    struct kinf__json_value value;
    char *text;

    if (!kinf__field(from, name, &value) || value.type != KINF__JSON_STRING)
        return strdup("");
    text = malloc(value.raw.len + 1);
    if (text != NULL)
        text[kinf__json_unescape(value.raw, text, value.raw.len)] = '\0';
    return text;
}

/* What the definition says of the column, or where its cells come from. */
static char *dup_description(struct kinf__json_value from, const char *path)
{
    static const char otherwise[] = "Custom resource definition column (in JSONPath format): ";
    size_t size = sizeof otherwise + strlen(path);
    char *text;

    if (kinf__field_has_text(from, "description"))
        return dup_field(from, "description");
    text = malloc(size);
    if (text != NULL)
        snprintf(text, size, "%s%s", otherwise, path);
    return text;
}

static int read_column(struct kinf__json_value from, struct column *column)
{
    column->name = dup_field(from, "name");
    column->type = dup_field(from, "type");
    column->format = dup_field(from, "format");
    column->path = dup_field(from, "jsonPath");
    column->priority = kinf__field_int(from, "priority", 0);
    if (column->name == NULL || column->type == NULL || column->format == NULL ||
        column->path == NULL)
        return KINF_ERR_NO_MEMORY;
    column->description = dup_description(from, column->path);
    if (column->description == NULL)
        return KINF_ERR_NO_MEMORY;
    column->is_understood = parse(column, column->path);
    return 0;
}

int kinf__custom_columns_read(struct kinf_str definition, const char *version,
                              struct kinf__custom_columns **ret_columns)
{
    struct kinf__custom_columns *columns;
    struct kinf__json_value from;
    struct kinf__items item;
    size_t n, len;

    if (kinf__json_scan_all(definition, KINF__JSON_MAX_DEPTH, &len) < 0)
        return KINF_ERR_PARSE;
    if (!kinf__field_find(kinf__json_value_of(definition), "spec.versions", "name", version, &from))
        return KINF_ERR_NOT_FOUND;
    n = kinf__field_count(from, "additionalPrinterColumns");
    if (n == 0 || n > MAX_COLUMNS)
        return KINF_ERR_NOT_FOUND;
    columns = calloc(1, sizeof *columns + n * sizeof columns->items[0]);
    if (columns == NULL)
        return KINF_ERR_NO_MEMORY;
    item = kinf__field_items(from, "additionalPrinterColumns");
    while (columns->n_items < n && kinf__items_next(&item)) {
        if (read_column(item.value, &columns->items[columns->n_items++]) < 0) {
            kinf__custom_columns_free(columns);
            return KINF_ERR_NO_MEMORY;
        }
    }
    *ret_columns = columns;
    return 0;
}

void kinf__custom_columns_free(struct kinf__custom_columns *columns)
{
    for (size_t i = 0; columns != NULL && i < columns->n_items; i++) {
        free(columns->items[i].name);
        free(columns->items[i].type);
        free(columns->items[i].format);
        free(columns->items[i].description);
        free(columns->items[i].path);
    }
    free(columns);
}

/* --- writing --- */

static int write_text(struct kinf__buffer *out, const char *before, const char *text)
{
    return kinf__buffer_append_str(out, kinf_str_from(before)) < 0
               ? KINF_ERR_NO_MEMORY
               : kinf__quote(out, kinf_str_from(text));
}

int kinf__custom_columns_write(const struct kinf__custom_columns *columns, struct kinf__buffer *out)
{
    for (size_t i = 0; i < columns->n_items; i++) {
        const struct column *column = &columns->items[i];

        if (write_text(out, ",{\"name\":", column->name) < 0 ||
            write_text(out, ",\"type\":", column->type) < 0 ||
            write_text(out, ",\"format\":", column->format) < 0 ||
            write_text(out, ",\"description\":", column->description) < 0 ||
            kinf__buffer_printf(out, ",\"priority\":%lld}", (long long)column->priority) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

static bool find(struct kinf__json_value from, const struct step *step, const struct step *end,
                 struct kinf__json_value *ret);

static bool is_chosen(const struct step *step, struct kinf__json_value item)
{
    struct kinf__json_value value;

    if (step->type == STEP_EACH)
        return true;
    return kinf__field(item, step->key, &value) && value.type == KINF__JSON_STRING &&
           kinf__json_string_equals(value.raw, kinf_str_from(step->value)) != step->is_unequal;
}

/* The first element that is chosen and has what follows. */
static bool find_among(struct kinf__json_value from, const struct step *step,
                       const struct step *end, struct kinf__json_value *ret)
{
    struct kinf__json_iter iter;
    struct kinf__json_value item;
    struct kinf_str key;

    if (!kinf__json_iter_init(&iter, from))
        return false;
    while (kinf__json_iter_next(&iter, &key, &item)) {
        if (is_chosen(step, item) && find(item, step + 1, end, ret))
            return true;
    }
    return false;
}

static long count_elements(struct kinf__json_value array)
{
    struct kinf__json_iter iter;
    struct kinf__json_value item;
    struct kinf_str key;
    long n = 0;

    if (kinf__json_iter_init(&iter, array)) {
        while (kinf__json_iter_next(&iter, &key, &item))
            n++;
    }
    return n;
}

/* The first element of the slice that has what follows. A slice that is not within the array has
 * none. */
static bool find_in_slice(struct kinf__json_value from, const struct step *step,
                          const struct step *end, struct kinf__json_value *ret)
{
    struct kinf__json_iter iter;
    struct kinf__json_value item;
    struct kinf_str key;
    long n, first, behind;

    if (from.type != KINF__JSON_ARRAY || !kinf__json_iter_init(&iter, from))
        return false;
    n = count_elements(from);
    first = step->begin < 0 ? step->begin + n : step->begin;
    behind = step->end == TO_THE_END ? n : step->end < 0 ? step->end + n : step->end;
    if (first < 0 || behind > n)
        return false;
    for (long i = 0; i < behind && kinf__json_iter_next(&iter, &key, &item); i++) {
        if (i >= first && (i - first) % step->stride == 0 && find(item, step + 1, end, ret))
            return true;
    }
    return false;
}

static bool find(struct kinf__json_value from, const struct step *step, const struct step *end,
                 struct kinf__json_value *ret)
{
    if (step == end) {
        *ret = from;
        return from.type != KINF__JSON_NULL;
    }
    switch (step->type) {
    case STEP_KEY:
        return from.type == KINF__JSON_OBJECT &&
               kinf__json_member(from, kinf_str_from(step->key), &from) &&
               find(from, step + 1, end, ret);
    case STEP_SLICE:
        return find_in_slice(from, step, end, ret);
    case STEP_EACH:
    case STEP_FILTER:
        return find_among(from, step, end, ret);
    }
    return false;
}

/* As Go reads JSON: exactly if it is written as an integer and fits, or else by a double. One that
 * does not fit is what amd64 makes of it. */
static int64_t integer_of(struct kinf_str number)
{
    char *end;
    long long integer;
    double real;

    errno = 0;
    integer = strtoll(number.bytes, &end, 10);
    if (errno == 0 && end == number.bytes + number.len)
        return integer;
    real = strtod(number.bytes, NULL);
    return real >= -0x1p63 && real < 0x1p63 ? (int64_t)real : INT64_MIN;
}

static void write_date(struct kinf__row *row, struct kinf__json_value value)
{
    int64_t time_s = kinf__value_time(value);

    if (time_s == ZERO_TIME_S || kinf__json_string_equals(value.raw, KINF_STR("")) ||
        kinf__json_string_equals(value.raw, KINF_STR("null")))
        kinf__cell_ago(row, INT64_MIN, "<unknown>");
    else
        kinf__cell_ago(row, time_s, "<invalid>");
}

/* As the API server: a text is made of anything, a number or truth of nothing else. */
static void write_cell(const struct column *column, struct kinf__json_value value,
                       struct kinf__row *row)
{
    bool is_number = value.type == KINF__JSON_NUMBER;

    if (strcmp(column->type, "string") == 0) {
        kinf__row_append(row, value);
        kinf__cell_text(row, "");
    } else if (strcmp(column->type, "date") == 0 && value.type == KINF__JSON_STRING) {
        write_date(row, value);
    } else if (strcmp(column->type, "integer") == 0 && is_number) {
        kinf__cell_int(row, integer_of(value.raw));
    } else if ((strcmp(column->type, "number") == 0 && is_number) ||
               (strcmp(column->type, "boolean") == 0 && value.type == KINF__JSON_BOOL)) {
        kinf__cell_json(row, value.raw);
    } else {
        kinf__cell_json(row, KINF_STR("null"));
    }
}

void kinf__custom_columns_cells(const struct kinf__custom_columns *columns, struct kinf__row *row)
{
    for (size_t i = 0; i < columns->n_items; i++) {
        const struct column *column = &columns->items[i];
        struct kinf__json_value value;

        if (column->is_understood &&
            find(row->object, column->steps, column->steps + column->n_steps, &value))
            write_cell(column, value, row);
        else
            kinf__cell_json(row, KINF_STR("null"));
    }
}
