/*
 * Objects in a state's file, and what those are read by that the store holds compressed (packed.h): the
 * file has them as they are, so nothing is inflated to write it, and nothing compressed to load it.
 *
 * Threads: any thread; of one struct one at a time, but for kinf__state_take_object().
 */
#ifndef KINF_STATE_STATE_OBJECT_H
#define KINF_STATE_STATE_OBJECT_H

#include <stddef.h>
#include <stdint.h>

#include <kinformer/indexer.h>

#include "base/stop.h"
#include "object/packed.h"
#include "state/sealed.h"

/* What packed objects are read by. All zero: there are none. */
struct kinf__state_bases {
    struct kinf__packing *packing; /* with a reference */
    /* By whose texts others are told, in the store or not any more; each with a reference. Those of a
     * snapshot are in the order of their addresses. */
    const struct kinf_object **items;
    size_t n_items;
    size_t size;
};

void kinf__state_bases_release(struct kinf__state_bases *bases);

/* --- writing --- */

/* Those of a snapshot. One store has one packing; what is of another one is written inflated. Errors:
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__state_bases_find(struct kinf__state_bases *bases,
                                           const struct kinf_snapshot *snapshot,
                                           struct kinf_error *err);
/* One after the other, in sections of their own, before the objects. Errors: of the writer. */
KINF_MUST_CHECK int kinf__state_put_base(struct kinf__sealed_writer *writer,
                                         const struct kinf__state_bases *bases, size_t i,
                                         struct kinf_error *err);
KINF_MUST_CHECK int kinf__state_put_object(struct kinf__sealed_writer *writer,
                                           const struct kinf__state_bases *bases,
                                           const struct kinf_object *object,
                                           struct kinf_error *err);
/* A length and as much text; a number of so many bytes. */
KINF_MUST_CHECK int kinf__state_put_text(struct kinf__sealed_writer *writer, struct kinf_str text,
                                         struct kinf_error *err);
KINF_MUST_CHECK int kinf__state_put_number(struct kinf__sealed_writer *writer, uint64_t number,
                                           size_t size, struct kinf_error *err);

/* --- reading --- */

/* Reads the sections of so many; the packing is set. Errors: of the reader, KINF_ERR_PARSE,
 * KINF_ERR_STOPPED. */
KINF_MUST_CHECK int kinf__state_take_bases(struct kinf__sealed_reader *reader,
                                           const struct kinf_type *type, uint64_t n_bases,
                                           struct kinf__state_bases *bases,
                                           const struct kinf__stop *stop, struct kinf_error *err);
/* Take what stands at the front of a section's text, and is that text's. Errors: KINF_ERR_PARSE,
 * KINF_ERR_NO_MEMORY. */
KINF_MUST_CHECK int kinf__state_take_object(struct kinf_str *rest, const struct kinf_type *type,
                                            const struct kinf__state_bases *bases,
                                            const struct kinf_object **ret_object,
                                            struct kinf_error *err);
KINF_MUST_CHECK int kinf__state_take_text(struct kinf_str *rest, uint64_t max_len,
                                          struct kinf_str *ret_text, struct kinf_error *err);
KINF_MUST_CHECK int kinf__state_take_number(struct kinf_str *rest, size_t size,
                                            uint64_t *ret_number, struct kinf_error *err);

/* What is in a section is not what is written there. Returns KINF_ERR_PARSE. */
int kinf__state_malformed(struct kinf_error *err);

#endif
