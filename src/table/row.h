/*
 * Writing one row of a table: reading fields of the object, composing cells. A row that ran out of
 * memory goes on without effect and says so at the end.
 *
 * Threads: one thread per row.
 */
#ifndef KINF_TABLE_ROW_H
#define KINF_TABLE_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/compiler.h"
#include "json/scan.h"

struct kinf__row {
    struct kinf__json_value object;
    int64_t now_s;
    bool is_of_list;        /* not of a single object, or of an event */
    const char *conditions; /* of the row, JSON; NULL: none */
    struct kinf__buffer *out;
    struct kinf__buffer text; /* of the cell at hand */
    size_t n_cells;
    bool is_out_of_memory;
};

/* --- fields; a path is keys with dots, and no key has one --- */

/* Returns false if it is not there, or null. */
bool kinf__field(struct kinf__json_value from, const char *path, struct kinf__json_value *ret);
int64_t kinf__field_int(struct kinf__json_value from, const char *path, int64_t otherwise);
bool kinf__field_is(struct kinf__json_value from, const char *path, const char *text);
/* Whether there is a string that is not empty. */
bool kinf__field_has_text(struct kinf__json_value from, const char *path);
bool kinf__field_is_true(struct kinf__json_value from, const char *path);
/* Elements or members; 0 if it is not there. */
size_t kinf__field_count(struct kinf__json_value from, const char *path);
/* Seconds since 1970 of an RFC 3339 time; INT64_MIN if there is none. */
int64_t kinf__field_time(struct kinf__json_value from, const char *path);

int64_t kinf__value_time(struct kinf__json_value value);

/* A walk over the elements or members at `path`, over nothing if there is none. */
struct kinf__items {
    struct kinf__json_iter iter;
    /* where it is */
    struct kinf_str key; /* of a member, raw */
    struct kinf__json_value value;
};

struct kinf__items kinf__field_items(struct kinf__json_value from, const char *path);
bool kinf__items_next(struct kinf__items *items);

/* The element at `path` of which that `key` says `text`. */
bool kinf__field_find(struct kinf__json_value from, const char *path, const char *key,
                      const char *text, struct kinf__json_value *ret);
/* The same, of which it says what `wanted` does. */
bool kinf__field_find_same(struct kinf__json_value from, const char *path, const char *key,
                           struct kinf__json_value wanted, struct kinf__json_value *ret);
/* The element of status.conditions with this type. */
bool kinf__field_condition(struct kinf__json_value object, const char *type,
                           struct kinf__json_value *ret);
/* Whether there is one, and its status is True. */
bool kinf__field_condition_is_true(struct kinf__json_value object, const char *type);

/* --- composing the text of a cell --- */

void kinf__row_printf(struct kinf__row *row, const char *fmt, ...) KINF_PRINTF(2, 3);
/* Appends a string, decoded, or any other value as it is written. */
void kinf__row_append(struct kinf__row *row, struct kinf__json_value value);
/* Appends the field, if it is there. */
void kinf__row_append_field(struct kinf__row *row, struct kinf__json_value from, const char *path);
/* Appends ",", unless the cell is empty. */
void kinf__row_comma(struct kinf__row *row);
/* Appends `field` of each element at `path`, with commas between; of NULL the element itself. */
void kinf__row_append_each(struct kinf__row *row, struct kinf__json_value from, const char *path,
                           const char *field);
/* Appends texts as they stand in JSON, sorted, each once, with commas between. */
void kinf__row_append_set(struct kinf__row *row, struct kinf_str *texts, size_t n);
/* Makes what was composed lower case. */
void kinf__row_lower(struct kinf__row *row);
/* "5m", "3h1m": how long `seconds` are, as kubectl says it. */
void kinf__row_append_duration(struct kinf__row *row, int64_t seconds);
/* "a=2,z=1" of an object of strings. */
void kinf__row_append_labels(struct kinf__row *row, struct kinf__json_value from, const char *path);
/* "a in (x,y),z=1" of a LabelSelector. */
void kinf__row_append_selector(struct kinf__row *row, struct kinf__json_value from,
                               const char *path);

/* --- writing cells, also from composed text --- */

/* What was composed; `otherwise` if that is nothing. */
void kinf__cell_text(struct kinf__row *row, const char *otherwise);
void kinf__cell_int(struct kinf__row *row, int64_t number);
void kinf__cell_bool(struct kinf__row *row, bool truth);
void kinf__cell_json(struct kinf__row *row, struct kinf_str json);
/* How long ago; `otherwise` without a time. */
void kinf__cell_ago(struct kinf__row *row, int64_t time_s, const char *otherwise);

/* --- cells of a table --- */

/* Writes one cell, or several. */
typedef void kinf__cell_fn(struct kinf__row *row, const char *path, const char *otherwise);
typedef void kinf__own_cell_fn(struct kinf__row *row); /* of one type alone */

struct kinf__cell {
    kinf__own_cell_fn *own; /* or else: */
    kinf__cell_fn *write;
    const char *path;
    const char *otherwise; /* shown if nothing is there */
};

kinf__cell_fn kinf__cell_string;   /* the field, unless it is empty */
kinf__cell_fn kinf__cell_optional; /* the field, empty or not */
kinf__cell_fn kinf__cell_number;   /* an integer; 0 if `otherwise` is NULL */
kinf__cell_fn kinf__cell_flag;     /* a boolean; `otherwise` is "true" or "false" */
kinf__cell_fn kinf__cell_value;    /* as it is written; null if it is not there */
kinf__cell_fn kinf__cell_count;    /* of elements or members */
kinf__cell_fn kinf__cell_since;    /* how long ago a time is */
kinf__cell_fn kinf__cell_joined;   /* the strings of a list, by commas */
kinf__cell_fn kinf__cell_pair;     /* "A/B" of the path "path.of.a/path.of.b" */
kinf__cell_fn kinf__cell_labels;
kinf__cell_fn kinf__cell_selector;
kinf__cell_fn kinf__cell_containers; /* two cells: names, and images */

#endif
