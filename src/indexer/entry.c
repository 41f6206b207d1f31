/*
 * The life of entries. Neighbours: values.c computes what they hold, node.c counts them.
 */
#include "indexer/entry.h"

#include <stdlib.h>

struct kinf__entry *kinf__entry_new(const struct kinf_object *object, const char *values,
                                    const uint32_t *starts, uint32_t n_indices)
{
    size_t starts_size = n_indices != 0 ? (n_indices + 1) * sizeof starts[0] : 0;
    size_t values_len = n_indices != 0 ? starts[n_indices] : 0;
    struct kinf__entry *entry = malloc(sizeof *entry + starts_size + values_len);

    if (entry == NULL)
        return NULL;
    atomic_init(&entry->refs, 1);
    entry->n_indices = n_indices;
    entry->object = kinf_object_ref(object);
    for (uint32_t i = 0; i <= n_indices && n_indices != 0; i++)
        entry->starts[i] = (uint32_t)(sizeof *entry + starts_size) + starts[i];
    if (values_len != 0)
        memcpy((char *)entry + sizeof *entry + starts_size, values, values_len);
    return entry;
}

void kinf__entry_unref(struct kinf__entry *entry)
{
    if (atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel) != 1)
        return;
    kinf_object_unref(entry->object);
    free(entry);
}
