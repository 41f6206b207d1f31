/*
 * Sets of indices, and computing index values: what index functions and paths find in an object,
 * sorted, each once, packed into its entry. Neighbours: versions hold the sets, indexer.c has values
 * computed before it locks. Invariant: the bytes of the index at hand begin at the last of `starts`.
 */
#include "indexer/index_set.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/misuse.h"

#define VALUE_LEN_MAX 60000

/* --- sets --- */

static void unref_index(struct kinf__index *index)
{
    if (index == NULL || atomic_fetch_sub_explicit(&index->refs, 1, memory_order_acq_rel) != 1)
        return;
    kinf_path_free(index->path);
    free(index->name);
    free(index);
}

static int new_index(const struct kinf_index *from, struct kinf__index **ret_index,
                     struct kinf_error *err)
{
    struct kinf__index *index;
    int result;

    if (from->name == NULL || (from->path != NULL) == (from->function != NULL))
        return kinf__error_set(err, KINF_ERR_INVALID,
                               "index %s: needs a name, and either a path or a function",
                               from->name != NULL ? from->name : "(none)");
    index = calloc(1, sizeof *index);
    if (index == NULL)
        return kinf__error_no_memory(err);
    atomic_init(&index->refs, 1);
    index->function = from->function;
    index->ctx = from->ctx;
    index->name = strdup(from->name);
    result = index->name != NULL ? 0 : kinf__error_no_memory(err);
    if (result == 0 && from->path != NULL) {
        result = kinf_path_parse(from->path, &index->path, err);
        if (result < 0)
            kinf__error_prefix(err, "index %s", from->name);
    }
    if (result < 0) {
        unref_index(index);
        return result;
    }
    *ret_index = index;
    return 0;
}

static int append_index(struct kinf__index_set *set, const struct kinf_index *from,
                        struct kinf_error *err)
{
    uint32_t number;
    int result = new_index(from, &set->indices[set->n], err);

    if (result < 0)
        return result;
    set->n++;
    if (kinf__index_set_find(set, from->name, &number) && number + 1 != set->n)
        return kinf__error_set(err, KINF_ERR_EXISTS, "index %s exists already", from->name);
    return 0;
}

int kinf__index_set_new(const struct kinf__index_set *base, const struct kinf_index *indices,
                        size_t n_indices, struct kinf__index_set **ret_set, struct kinf_error *err)
{
    uint32_t n_base = base != NULL ? base->n : 0;
    struct kinf__index_set *set =
        calloc(1, sizeof *set + (n_base + n_indices) * sizeof set->indices[0]);

    if (set == NULL)
        return kinf__error_no_memory(err);
    atomic_init(&set->refs, 1);
    for (; set->n < n_base; set->n++) {
        set->indices[set->n] = base->indices[set->n];
        atomic_fetch_add_explicit(&set->indices[set->n]->refs, 1, memory_order_relaxed);
    }
    for (size_t i = 0; i < n_indices; i++) {
        int result = append_index(set, &indices[i], err);

        if (result < 0) {
            kinf__index_set_unref(set);
            return result;
        }
    }
    *ret_set = set;
    return 0;
}

struct kinf__index_set *kinf__index_set_ref(struct kinf__index_set *set)
{
    atomic_fetch_add_explicit(&set->refs, 1, memory_order_relaxed);
    return set;
}

void kinf__index_set_unref(struct kinf__index_set *set)
{
    if (set == NULL || atomic_fetch_sub_explicit(&set->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < set->n; i++)
        unref_index(set->indices[i]);
    free(set);
}

bool kinf__index_set_find(const struct kinf__index_set *set, const char *name, uint32_t *ret_number)
{
    for (uint32_t i = 0; i < set->n; i++) {
        if (strcmp(set->indices[i]->name, name) == 0) {
            *ret_number = i;
            return true;
        }
    }
    return false;
}

/* --- values --- */

int kinf_index_values_add(struct kinf_index_values *values, const char *value, size_t len)
{
    KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, values);
    if (len != 0)
        KINF__REFUSE_NULL(NULL, KINF_ERR_INVALID, value);
    if (len > VALUE_LEN_MAX || values->bytes.len > UINT32_MAX / 2)
        return KINF_ERR_LIMIT;
    if (len != 0 && memchr(value, '\0', len) != NULL)
        return KINF_ERR_INVALID;
    if (kinf__buffer_reserve(&values->bytes, len + 1) < 0 ||
        kinf__buffer_append(&values->bytes, value, len) < 0 ||
        kinf__buffer_append(&values->bytes, "", 1) < 0) {
        values->is_out_of_memory = true;
        return KINF_ERR_NO_MEMORY;
    }
    values->n_values++;
    return 0;
}

void kinf__index_values_release(struct kinf_index_values *values)
{
    kinf__buffer_release(&values->bytes);
    kinf__buffer_release(&values->starts);
}

/* --- paths --- */

static int add_string(struct kinf_index_values *values, struct kinf_str json)
{
    char buf[256];
    KINF__AUTO_FREE char *large = NULL;
    char *text = buf;
    int result;

    if (json.len > sizeof buf) {
        text = large = malloc(json.len);
        if (large == NULL) {
            values->is_out_of_memory = true;
            return KINF_ERR_NO_MEMORY;
        }
    }
    result = kinf_json_string(json, text, json.len > sizeof buf ? json.len : sizeof buf);
    return result < 0 ? result : kinf_index_values_add(values, text, strlen(text));
}

static int add_json_value(struct kinf_str json, void *ctx)
{
    struct kinf_index_values *values = ctx;

    switch (json.len != 0 ? json.bytes[0] : 'n') {
    case '"':
        return add_string(values, json);
    case '{':
    case '[':
    case 'n':
        return 0;
    default:
        return kinf_index_values_add(values, json.bytes, json.len);
    }
}

static int add_path_values(const struct kinf__index *index, const struct kinf_object *object,
                           struct kinf_index_values *values)
{
    int result = kinf_object_each(object, index->path, add_json_value, values);

    if (result == KINF_ERR_NO_MEMORY)
        values->is_out_of_memory = true;
    return result;
}

/* --- one index --- */

static int compare_values(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts the values from `start` on and drops doubled ones. */
static int sort_values(struct kinf_index_values *values, size_t start)
{
    size_t len = values->bytes.len - start, at = 0;
    KINF__AUTO_FREE char *copy = malloc(len);
    KINF__AUTO_FREE const char **sorted = malloc(values->n_values * sizeof sorted[0]);

    if (copy == NULL || sorted == NULL)
        return KINF_ERR_NO_MEMORY;
    memcpy(copy, values->bytes.bytes + start, len);
    for (size_t i = 0; i < values->n_values; i++) {
        sorted[i] = copy + at;
        at += strlen(sorted[i]) + 1;
    }
    qsort(sorted, values->n_values, sizeof sorted[0], compare_values);
    at = start;
    for (size_t i = 0; i < values->n_values; i++) {
        size_t size = strlen(sorted[i]) + 1;

        if (i > 0 && strcmp(sorted[i - 1], sorted[i]) == 0)
            continue;
        memcpy(values->bytes.bytes + at, sorted[i], size);
        at += size;
    }
    values->bytes.len = at;
    return 0;
}

/* The thread is in an index function. */
static _Thread_local bool is_in_function;

bool kinf__index_function_is_running(void)
{
    return is_in_function;
}

static int call_function(const struct kinf__index *index, const struct kinf_object *object,
                         struct kinf_index_values *values)
{
    bool was_in_function = is_in_function;
    int result;

    is_in_function = true;
    result = index->function(object, values, index->ctx);
    is_in_function = was_in_function;
    return result;
}

/* Appends the values of one index. */
static int compute_index(struct kinf_index_values *values, const struct kinf__index *index,
                         const struct kinf_object *object)
{
    size_t start = values->bytes.len;
    int result;

    /* A path is nobody's code: whoever has a lock of his own may write stores that have no other. */
    assert(index->function == NULL || kinf__mutex_none_held());
    values->n_values = 0;
    result = index->function != NULL ? call_function(index, object, values)
                                     : add_path_values(index, object, values);
    if (values->is_out_of_memory)
        return KINF_ERR_NO_MEMORY;
    if (result < 0) {
        values->bytes.len = start;
        return KINF_ERR_INVALID;
    }
    return values->n_values > 1 ? sort_values(values, start) : 0;
}

int kinf__index_values_of(struct kinf_index_values *values, const struct kinf__index *index,
                          const struct kinf_object *object)
{
    values->bytes.len = 0;
    values->is_out_of_memory = false;
    return compute_index(values, index, object);
}

/* --- entries --- */

/* Notes where the values of the next index begin. */
static int append_start(struct kinf_index_values *values)
{
    uint32_t start = (uint32_t)values->bytes.len;

    return kinf__buffer_append(&values->starts, &start, sizeof start);
}

static int append_known(struct kinf_index_values *values, const struct kinf__entry *known)
{
    for (uint32_t i = 0; i < known->n_indices; i++) {
        if (append_start(values) < 0 ||
            kinf__buffer_append(&values->bytes, (const char *)known + known->starts[i],
                                known->starts[i + 1] - known->starts[i]) < 0)
            return KINF_ERR_NO_MEMORY;
    }
    return 0;
}

int kinf__index_values_entry(struct kinf_index_values *values, const struct kinf__index_set *set,
                             const struct kinf_object *object, const struct kinf__entry *known,
                             struct kinf__entry **ret_entry)
{
    struct kinf__entry *entry;

    values->bytes.len = 0;
    values->starts.len = 0;
    values->is_out_of_memory = false;
    if (known != NULL && append_known(values, known) < 0)
        return KINF_ERR_NO_MEMORY;
    for (uint32_t i = known != NULL ? known->n_indices : 0; i < set->n; i++) {
        int result = append_start(values);

        if (result == 0)
            result = compute_index(values, set->indices[i], object);
        if (result == KINF_ERR_NO_MEMORY)
            return result;
        values->n_failed += result < 0;
    }
    if (append_start(values) < 0)
        return KINF_ERR_NO_MEMORY;
    entry = kinf__entry_new(object, values->bytes.bytes,
                            (const uint32_t *)(void *)values->starts.bytes, set->n);
    if (entry == NULL)
        return KINF_ERR_NO_MEMORY;
    *ret_entry = entry;
    return 0;
}
