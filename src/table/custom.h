/*
 * The columns of a custom resource: additionalPrinterColumns of its definition.
 *
 * Threads: any thread; constant once made.
 */
#ifndef KINF_TABLE_CUSTOM_H
#define KINF_TABLE_CUSTOM_H

#include <kinformer/str.h>

#include "table/row.h"

struct kinf__custom_columns;

/* Reads the columns of one version out of a CustomResourceDefinition. Errors: KINF_ERR_NOT_FOUND (it
 * has none), KINF_ERR_PARSE (no JSON), KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__custom_columns_read(struct kinf_str definition, const char *version,
                                              struct kinf__custom_columns **ret_columns);
void kinf__custom_columns_free(struct kinf__custom_columns *columns); /* NULL is allowed */

/* Appends the definitions behind that of the name, each with a comma in front. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__custom_columns_write(const struct kinf__custom_columns *columns,
                                               struct kinf__buffer *out);

/* Writes the cells behind the name. */
void kinf__custom_columns_cells(const struct kinf__custom_columns *columns, struct kinf__row *row);

#endif
