/*
 * Fields of protobuf. The errors are what kube-apiserver says of them.
 */
#include "base/wire.h"

#include "base/error.h"

static int refuse_end(struct kinf_error *err)
{
    return kinf__error_set(err, KINF_ERR_PARSE, "proto: unexpected EOF");
}

static int read_varint(struct kinf_str *rest, uint64_t *ret_value, struct kinf_error *err)
{
    uint64_t value = 0;
    unsigned char byte;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (rest->len == 0)
            return refuse_end(err);
        byte = (unsigned char)*rest->bytes++;
        rest->len--;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret_value = value;
            return 0;
        }
    }
    return kinf__error_set(err, KINF_ERR_PARSE, "proto: integer overflow");
}

static int read_bytes(struct kinf_str *rest, uint64_t len, struct kinf_str *ret_bytes,
                      struct kinf_error *err)
{
    if (len > rest->len)
        return refuse_end(err);
    *ret_bytes = (struct kinf_str){ rest->bytes, (size_t)len };
    rest->bytes += len;
    rest->len -= (size_t)len;
    return 0;
}

int kinf__wire_read_value(struct kinf_str *rest, struct kinf__wire_field *field,
                          struct kinf_error *err)
{
    int failed;

    switch (field->type) {
    case KINF__WIRE_VARINT:
        return read_varint(rest, &field->integer, err);
    case KINF__WIRE_FIXED64:
        return read_bytes(rest, 8, &field->bytes, err);
    case KINF__WIRE_FIXED32:
        return read_bytes(rest, 4, &field->bytes, err);
    case KINF__WIRE_BYTES:
        failed = read_varint(rest, &field->integer, err);
        return failed < 0 ? failed : read_bytes(rest, field->integer, &field->bytes, err);
    }
    return kinf__error_set(err, KINF_ERR_PARSE, "proto: illegal wireType %d", (int)field->type);
}

int kinf__wire_read(struct kinf_str *message, struct kinf__wire_field *ret_field,
                    struct kinf_error *err)
{
    uint64_t tag = 0;
    int failed = read_varint(message, &tag, err);

    if (failed < 0)
        return failed;
    *ret_field =
        (struct kinf__wire_field){ .number = tag >> 3, .type = (enum kinf__wire_type)(tag & 7) };
    if (ret_field->number == 0)
        return kinf__error_set(err, KINF_ERR_PARSE, "proto: illegal tag 0");
    return kinf__wire_read_value(message, ret_field, err);
}
