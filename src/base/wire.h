/*
 * The wire of protobuf: a message is a run of fields, each a varint (number << 3 | type) and its
 * value, in any order; of a field that is not repeated the last one counts, and messages are merged.
 * https://protobuf.dev/programming-guides/encoding/
 *
 * Threads: any.
 */
#ifndef KINF_BASE_WIRE_H
#define KINF_BASE_WIRE_H

#include <stdint.h>

#include <kinformer/error.h>
#include <kinformer/str.h>

enum kinf__wire_type {
    KINF__WIRE_VARINT = 0,
    KINF__WIRE_FIXED64 = 1,
    KINF__WIRE_BYTES = 2,
    KINF__WIRE_FIXED32 = 5,
};

/* A field of a message: its number and type, and what it holds, of which one counts. */
struct kinf__wire_field {
    uint64_t number;
    enum kinf__wire_type type;
    uint64_t integer;
    struct kinf_str bytes;
};

/* Cuts the next field off a message that is not at its end. Errors: KINF_ERR_PARSE. */
KINF_MUST_CHECK int kinf__wire_read(struct kinf_str *message, struct kinf__wire_field *ret_field,
                                    struct kinf_error *err);
/* The value alone, of the field's type: one of those that are packed. */
KINF_MUST_CHECK int kinf__wire_read_value(struct kinf_str *rest, struct kinf__wire_field *field,
                                          struct kinf_error *err);

#endif
