/*
 * Quantities ("500m", "1Gi") as the server writes them: one value has one text.
 *
 * Mirrors: resource.Quantity's canonical form. Threads: any thread.
 */
#ifndef KINF_DOCUMENT_QUANTITY_H
#define KINF_DOCUMENT_QUANTITY_H

#include <stdbool.h>

#define KINF__QUANTITY_SIZE 64

/* What the server finds wrong with the text; NULL: nothing. */
const char *kinf__quantity_fault(const char *text);

/* Writes the canonical text: "0.5" is "500m", "1024Mi" is "1Gi", "1e3" stays. False: it is no
 * quantity, or one of more digits than are counted here; nothing is written. */
bool kinf__quantity_write(const char *text, char canonical[KINF__QUANTITY_SIZE]);

/* Whether `a` is more than `b`; false if one of them is none. */
bool kinf__quantity_exceeds(const char *a, const char *b);

#endif
