/*
 * Tables: what `kubectl get` shows of an object, by the rules of kube-apiserver's printers.
 *
 * Built-in types have their own columns, custom resources those of their definitions; every other
 * type has NAME and AGE. Cells are what the real
 * server sends, so that kubectl, which prints them as they come, shows the same.
 *
 * Threads: any thread; a table is constant.
 */
#ifndef KINF_TABLE_TABLE_H
#define KINF_TABLE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <kinformer/object.h>

#include "base/buffer.h"

struct kinf__table;

/* The columns of a type; never NULL. */
const struct kinf__table *kinf__table_for(const struct kinf_type *type);

/* A table of a custom resource by its CustomResourceDefinition: the name, and
 * additionalPrinterColumns. Errors: KINF_ERR_NOT_FOUND (it has none), KINF_ERR_PARSE,
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__table_of_definition(struct kinf_str definition, const char *version,
                                              struct kinf__table **ret_table);
void kinf__table_free(struct kinf__table *table); /* one of these; NULL is allowed */

/* Appends the columnDefinitions, a JSON array. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__table_write_columns(const struct kinf__table *table,
                                              struct kinf__buffer *out);

/* Appends what a row says of an object with this body: `"cells":[...]`, and `"conditions":[...]` if it
 * has any. `now_s`: Unix time. `is_of_list`: a row among others, which may say more. Fields that were
 * not kept are shown as absent. Errors: KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__table_write_row(const struct kinf__table *table, struct kinf_str body,
                                          int64_t now_s, bool is_of_list, struct kinf__buffer *out);

#endif
