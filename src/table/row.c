/*
 * Rows. Neighbours: table.c has the columns, pod.c and its siblings the rules of each type.
 * Maps come sorted from the API server (Go writes them so), sets of selectors do not.
 */
#include "table/row.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rfc3339.h"
#include "json/quote.h"

#define MINUTE_S 60
#define HOUR_S   3600
#define DAY_S    86400
#define YEAR_S   (365 * (int64_t)DAY_S)

/* --- fields --- */

bool kinf__field(struct kinf__json_value from, const char *path, struct kinf__json_value *ret)
{
    for (;;) {
        size_t len = strcspn(path, ".");

        if (from.type != KINF__JSON_OBJECT ||
            !kinf__json_member(from, (struct kinf_str){ path, len }, &from))
            return false;
        if (path[len] == '\0')
            break;
        path += len + 1;
    }
    *ret = from;
    return from.type != KINF__JSON_NULL;
}

int64_t kinf__field_int(struct kinf__json_value from, const char *path, int64_t otherwise)
{
    struct kinf__json_value value;
    char text[32];

    if (!kinf__field(from, path, &value) || value.type != KINF__JSON_NUMBER ||
        value.raw.len >= sizeof text)
        return otherwise;
    memcpy(text, value.raw.bytes, value.raw.len);
    text[value.raw.len] = '\0';
    return strtoll(text, NULL, 10);
}

bool kinf__field_is(struct kinf__json_value from, const char *path, const char *text)
{
    struct kinf__json_value value;

    return kinf__field(from, path, &value) && value.type == KINF__JSON_STRING &&
           kinf__json_string_equals(value.raw, kinf_str_from(text));
}

bool kinf__field_has_text(struct kinf__json_value from, const char *path)
{
    struct kinf__json_value value;

    return kinf__field(from, path, &value) && value.type == KINF__JSON_STRING && value.raw.len > 2;
}

bool kinf__field_is_true(struct kinf__json_value from, const char *path)
{
    struct kinf__json_value value;

    return kinf__field(from, path, &value) && value.type == KINF__JSON_BOOL &&
           value.raw.bytes[0] == 't';
}

struct kinf__items kinf__field_items(struct kinf__json_value from, const char *path)
{
    struct kinf__items items = { .iter = { 0 } };
    struct kinf__json_value value;

    if (!kinf__field(from, path, &value) || !kinf__json_iter_init(&items.iter, value))
        items.iter.at = NULL;
    return items;
}

bool kinf__items_next(struct kinf__items *items)
{
    return items->iter.at != NULL && kinf__json_iter_next(&items->iter, &items->key, &items->value);
}

size_t kinf__field_count(struct kinf__json_value from, const char *path)
{
    size_t n = 0;

    for (struct kinf__items value = kinf__field_items(from, path); kinf__items_next(&value);)
        n++;
    return n;
}

bool kinf__field_find(struct kinf__json_value from, const char *path, const char *key,
                      const char *text, struct kinf__json_value *ret)
{
    for (struct kinf__items item = kinf__field_items(from, path); kinf__items_next(&item);) {
        *ret = item.value;
        if (kinf__field_is(*ret, key, text))
            return true;
    }
    return false;
}

bool kinf__field_find_same(struct kinf__json_value from, const char *path, const char *key,
                           struct kinf__json_value wanted, struct kinf__json_value *ret)
{
    struct kinf__json_value value;

    for (struct kinf__items item = kinf__field_items(from, path); kinf__items_next(&item);) {
        *ret = item.value;
        if (kinf__field(*ret, key, &value) && kinf_str_equal(value.raw, wanted.raw))
            return true;
    }
    return false;
}

bool kinf__field_condition(struct kinf__json_value object, const char *type,
                           struct kinf__json_value *ret)
{
    return kinf__field_find(object, "status.conditions", "type", type, ret);
}

bool kinf__field_condition_is_true(struct kinf__json_value object, const char *type)
{
    struct kinf__json_value condition;

    return kinf__field_condition(object, type, &condition) &&
           kinf__field_is(condition, "status", "True");
}

int64_t kinf__value_time(struct kinf__json_value value)
{
    struct kinf_str text = value.raw;
    int64_t time_s;

    if (value.type != KINF__JSON_STRING)
        return INT64_MIN;
    text.bytes++; /* the quotes */
    text.len -= 2;
    return kinf__rfc3339_parse(text, &time_s) ? time_s : INT64_MIN;
}

int64_t kinf__field_time(struct kinf__json_value from, const char *path)
{
    struct kinf__json_value value;

    return kinf__field(from, path, &value) ? kinf__value_time(value) : INT64_MIN;
}

/* --- composing --- */

void kinf__row_printf(struct kinf__row *row, const char *fmt, ...)
{
    char text[256];
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (len > 0 &&
        kinf__buffer_append(&row->text, text,
                            (size_t)len < sizeof text ? (size_t)len : sizeof text - 1) < 0)
        row->is_out_of_memory = true;
}

void kinf__row_append(struct kinf__row *row, struct kinf__json_value value)
{
    struct kinf__buffer *text = &row->text;

    if (kinf__buffer_reserve(text, value.raw.len) < 0) {
        row->is_out_of_memory = true;
    } else if (value.type == KINF__JSON_STRING) {
        text->len += kinf__json_unescape(value.raw, text->bytes + text->len, value.raw.len);
    } else {
        memcpy(text->bytes + text->len, value.raw.bytes, value.raw.len);
        text->len += value.raw.len;
    }
}

void kinf__row_append_field(struct kinf__row *row, struct kinf__json_value from, const char *path)
{
    struct kinf__json_value value;

    if (kinf__field(from, path, &value))
        kinf__row_append(row, value);
}

void kinf__row_comma(struct kinf__row *row)
{
    if (row->text.len != 0)
        kinf__row_printf(row, ",");
}

void kinf__row_append_each(struct kinf__row *row, struct kinf__json_value from, const char *path,
                           const char *field)
{
    for (struct kinf__items item = kinf__field_items(from, path); kinf__items_next(&item);) {
        kinf__row_comma(row);
        if (field != NULL)
            kinf__row_append_field(row, item.value, field);
        else
            kinf__row_append(row, item.value);
    }
}

static int compare_raw(const void *a, const void *b)
{
    return kinf_str_compare(*(const struct kinf_str *)a, *(const struct kinf_str *)b);
}

void kinf__row_append_set(struct kinf__row *row, struct kinf_str *texts, size_t n)
{
    if (n != 0)
        qsort(texts, n, sizeof *texts, compare_raw);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !kinf_str_equal(texts[i], texts[i - 1])) {
            kinf__row_comma(row);
            kinf__row_printf(row, "%.*s", (int)texts[i].len, texts[i].bytes);
        }
    }
}

void kinf__row_lower(struct kinf__row *row)
{
    for (size_t i = 0; i < row->text.len; i++)
        row->text.bytes[i] = (char)tolower((unsigned char)row->text.bytes[i]);
}

/* "3h1m"; the second part only if it is there. */
static void append_parts(struct kinf__row *row, int64_t seconds, int64_t large_s, char large,
                         int64_t small_s, char small)
{
    int64_t rest = seconds % large_s / small_s;

    kinf__row_printf(row, "%" PRId64 "%c", seconds / large_s, large);
    if (rest != 0)
        kinf__row_printf(row, "%" PRId64 "%c", rest, small);
}

void kinf__row_append_duration(struct kinf__row *row, int64_t seconds)
{
    if (seconds < -1)
        kinf__row_printf(row, "<invalid>");
    else if (seconds < 0)
        kinf__row_printf(row, "0s");
    else if (seconds < 2 * MINUTE_S)
        kinf__row_printf(row, "%" PRId64 "s", seconds);
    else if (seconds < 10 * MINUTE_S)
        append_parts(row, seconds, MINUTE_S, 'm', 1, 's');
    else if (seconds < 3 * HOUR_S)
        kinf__row_printf(row, "%" PRId64 "m", seconds / MINUTE_S);
    else if (seconds < 8 * HOUR_S)
        append_parts(row, seconds, HOUR_S, 'h', MINUTE_S, 'm');
    else if (seconds < 2 * DAY_S)
        kinf__row_printf(row, "%" PRId64 "h", seconds / HOUR_S);
    else if (seconds < 8 * DAY_S)
        append_parts(row, seconds, DAY_S, 'd', HOUR_S, 'h');
    else if (seconds < 2 * YEAR_S)
        kinf__row_printf(row, "%" PRId64 "d", seconds / DAY_S);
    else if (seconds < 8 * YEAR_S)
        append_parts(row, seconds, YEAR_S, 'y', DAY_S, 'd');
    else
        kinf__row_printf(row, "%" PRId64 "y", seconds / YEAR_S);
}

static struct kinf__json_value string_value(struct kinf_str raw)
{
    return (struct kinf__json_value){ KINF__JSON_STRING, raw };
}

void kinf__row_append_labels(struct kinf__row *row, struct kinf__json_value from, const char *path)
{
    for (struct kinf__items value = kinf__field_items(from, path); kinf__items_next(&value);) {
        kinf__row_comma(row);
        kinf__row_append(row, string_value(value.key));
        kinf__row_printf(row, "=");
        kinf__row_append(row, value.value);
    }
}

/* One of a selector's: a label, or an expression. */
struct requirement {
    struct kinf_str key;           /* raw */
    struct kinf__json_value value; /* of a label */
    struct kinf__json_value expression;
    bool is_label;
};

static int compare_requirements(const void *a, const void *b)
{
    const struct requirement *left = a, *right = b;

    return kinf_str_compare(left->key, right->key);
}

/* "(x,y)", sorted. */
static void append_values(struct kinf__row *row, struct kinf__json_value expression)
{
    size_t n = 0, size = kinf__field_count(expression, "values");
    KINF__AUTO_FREE struct kinf_str *values = calloc(size + 1, sizeof *values);

    if (values == NULL) {
        row->is_out_of_memory = true;
        return;
    }
    for (struct kinf__items value = kinf__field_items(expression, "values");
         n < size && kinf__items_next(&value);)
        values[n++] = value.value.raw;
    qsort(values, n, sizeof *values, compare_raw);
    kinf__row_printf(row, "(");
    for (size_t i = 0; i < n; i++) {
        kinf__row_printf(row, "%s", i != 0 ? "," : "");
        kinf__row_append(row, string_value(values[i]));
    }
    kinf__row_printf(row, ")");
}

static void append_requirement(struct kinf__row *row, const struct requirement *requirement)
{
    struct kinf__json_value expression = requirement->expression;

    kinf__row_comma(row);
    if (!requirement->is_label && kinf__field_is(expression, "operator", "DoesNotExist"))
        kinf__row_printf(row, "!");
    kinf__row_append(row, string_value(requirement->key));
    if (requirement->is_label) {
        kinf__row_printf(row, "=");
        kinf__row_append(row, requirement->value);
    } else if (kinf__field_is(expression, "operator", "In") ||
               kinf__field_is(expression, "operator", "NotIn")) {
        kinf__row_printf(row, "%s",
                         kinf__field_is(expression, "operator", "In") ? " in " : " notin ");
        append_values(row, expression);
    }
}

static size_t collect(struct kinf__json_value selector, struct requirement *requirements,
                      size_t size)
{
    struct kinf__items label = kinf__field_items(selector, "matchLabels"),
                       expression = kinf__field_items(selector, "matchExpressions");
    struct kinf__json_value name;
    size_t n = 0;

    while (n < size && kinf__items_next(&label))
        requirements[n++] = (struct requirement){ label.key, label.value, { 0 }, true };
    while (n < size && kinf__items_next(&expression)) {
        if (kinf__field(expression.value, "key", &name) && name.type == KINF__JSON_STRING)
            requirements[n++] = (struct requirement){ name.raw, { 0 }, expression.value, false };
    }
    return n;
}

void kinf__row_append_selector(struct kinf__row *row, struct kinf__json_value from,
                               const char *path)
{
    struct kinf__json_value selector;
    struct requirement *requirements;
    size_t size, n;

    if (!kinf__field(from, path, &selector))
        return;
    size = kinf__field_count(selector, "matchLabels") +
           kinf__field_count(selector, "matchExpressions");
    requirements = calloc(size + 1, sizeof *requirements);
    if (requirements == NULL) {
        row->is_out_of_memory = true;
        return;
    }
    n = collect(selector, requirements, size);
    qsort(requirements, n, sizeof *requirements, compare_requirements);
    for (size_t i = 0; i < n; i++)
        append_requirement(row, &requirements[i]);
    free(requirements);
}

/* --- cells --- */

static void begin(struct kinf__row *row)
{
    if (row->n_cells++ != 0 && kinf__buffer_printf(row->out, ",") < 0)
        row->is_out_of_memory = true;
}

void kinf__cell_text(struct kinf__row *row, const char *otherwise)
{
    struct kinf_str text =
        row->text.len != 0 ? kinf__buffer_str(&row->text) : kinf_str_from(otherwise);

    begin(row);
    if (kinf__quote(row->out, text) < 0)
        row->is_out_of_memory = true;
    row->text.len = 0;
}

void kinf__cell_int(struct kinf__row *row, int64_t number)
{
    begin(row);
    if (kinf__buffer_printf(row->out, "%" PRId64, number) < 0)
        row->is_out_of_memory = true;
}

void kinf__cell_bool(struct kinf__row *row, bool truth)
{
    begin(row);
    if (kinf__buffer_printf(row->out, "%s", truth ? "true" : "false") < 0)
        row->is_out_of_memory = true;
}

void kinf__cell_json(struct kinf__row *row, struct kinf_str json)
{
    begin(row);
    if (kinf__buffer_append_str(row->out, json) < 0)
        row->is_out_of_memory = true;
}

void kinf__cell_ago(struct kinf__row *row, int64_t time_s, const char *otherwise)
{
    if (time_s != INT64_MIN)
        kinf__row_append_duration(row, row->now_s - time_s);
    kinf__cell_text(row, otherwise);
}

void kinf__cell_string(struct kinf__row *row, const char *path, const char *otherwise)
{
    kinf__row_append_field(row, row->object, path);
    kinf__cell_text(row, otherwise);
}

void kinf__cell_optional(struct kinf__row *row, const char *path, const char *otherwise)
{
    struct kinf__json_value value;

    kinf__cell_string(row, path, kinf__field(row->object, path, &value) ? "" : otherwise);
}

void kinf__cell_number(struct kinf__row *row, const char *path, const char *otherwise)
{
    struct kinf__json_value value;

    if (otherwise != NULL && !kinf__field(row->object, path, &value))
        kinf__cell_text(row, otherwise);
    else
        kinf__cell_int(row, kinf__field_int(row->object, path, 0));
}

void kinf__cell_flag(struct kinf__row *row, const char *path, const char *otherwise)
{
    struct kinf__json_value value;

    kinf__cell_bool(row, kinf__field(row->object, path, &value)
                             ? kinf__field_is_true(row->object, path)
                             : *otherwise == 't');
}

void kinf__cell_value(struct kinf__row *row, const char *path, const char *otherwise)
{
    struct kinf__json_value value;

    (void)otherwise;
    kinf__cell_json(row, kinf__field(row->object, path, &value) ? value.raw : KINF_STR("null"));
}

void kinf__cell_count(struct kinf__row *row, const char *path, const char *otherwise)
{
    (void)otherwise;
    kinf__cell_int(row, (int64_t)kinf__field_count(row->object, path));
}

void kinf__cell_since(struct kinf__row *row, const char *path, const char *otherwise)
{
    kinf__cell_ago(row, kinf__field_time(row->object, path), otherwise);
}

void kinf__cell_joined(struct kinf__row *row, const char *path, const char *otherwise)
{
    kinf__row_append_each(row, row->object, path, NULL);
    kinf__cell_text(row, otherwise);
}

void kinf__cell_pair(struct kinf__row *row, const char *path, const char *otherwise)
{
    size_t len = strcspn(path, "/");
    struct kinf__json_value value;
    char first[64];

    snprintf(first, sizeof first, "%.*s", (int)len, path);
    if (kinf__field(row->object, first, &value)) {
        kinf__row_append(row, value);
        kinf__row_printf(row, "/");
        kinf__row_append_field(row, row->object, path + len + 1);
    }
    kinf__cell_text(row, otherwise);
}

void kinf__cell_labels(struct kinf__row *row, const char *path, const char *otherwise)
{
    kinf__row_append_labels(row, row->object, path);
    kinf__cell_text(row, otherwise);
}

void kinf__cell_selector(struct kinf__row *row, const char *path, const char *otherwise)
{
    kinf__row_append_selector(row, row->object, path);
    kinf__cell_text(row, otherwise);
}

void kinf__cell_containers(struct kinf__row *row, const char *path, const char *otherwise)
{
    kinf__row_append_each(row, row->object, path, "name");
    kinf__cell_text(row, otherwise);
    kinf__row_append_each(row, row->object, path, "image");
    kinf__cell_text(row, otherwise);
}
