/*
 * Sets of indices. Neighbours: values.c computes with them, versions hold them.
 */
#include "indexer/index_set.h"

#include <stdlib.h>

#include "base/error.h"

static void unref_index(struct kinf__index *index)
{
    if (index == NULL || atomic_fetch_sub_explicit(&index->refs, 1, memory_order_acq_rel) != 1)
        return;
    kinf_path_free(index->path);
    free(index->name);
    free(index);
}

static char *copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);

    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
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
    index->name = copy_text(from->name);
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
