/*
 * Bodies in protobuf, as clients of the simulated server send them. A first byte that is odd: the
 * rest is the message of a pod, without its envelope.
 */
#include "fuzz/fuzz.h"
#include "document/protobuf.h"

static const char pod[] = "k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12";

static int put_envelope(struct kinf__buffer *body, size_t len)
{
    char digits[10];
    size_t n = 0;

    for (; len >= 0x80; len >>= 7)
        digits[n++] = (char)(len | 0x80);
    digits[n++] = (char)len;
    if (kinf__buffer_append(body, pod, sizeof pod - 1) < 0)
        return KINF_ERR_NO_MEMORY;
    return kinf__buffer_append(body, digits, n);
}

/* What comes out can be written and read again. */
static void check_tree(const struct cJSON *tree)
{
    KINF__AUTO_BUFFER text_before = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER text_after = KINF__BUFFER_INIT;
    KINF__AUTO_DOC *again = NULL;

    FUZZ_REQUIRE(kinf__doc_print(tree, &text_before) == 0);
    FUZZ_REQUIRE(kinf__doc_parse(kinf__buffer_str(&text_before), &again, NULL) == 0);
    FUZZ_REQUIRE(kinf__doc_print(again, &text_after) == 0);
    FUZZ_REQUIRE(kinf_str_equal(kinf__buffer_str(&text_before), kinf__buffer_str(&text_after)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct kinf__schema *schema;
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;
    struct kinf_error err = KINF_ERROR_INIT;
    KINF__AUTO_DOC *tree = NULL;
    unsigned how = fuzz_take_byte(&data, &size);

    if (schema == NULL)
        FUZZ_REQUIRE(kinf__schema_new(&schema) == 0);
    if ((how & 1) != 0)
        FUZZ_REQUIRE(put_envelope(&body, size) == 0);
    FUZZ_REQUIRE(kinf__buffer_append(&body, data, size) == 0);
    if (kinf__protobuf_decode(schema, kinf__buffer_str(&body), &tree, &err) < 0)
        FUZZ_REQUIRE(tree == NULL && err.message[0] != '\0');
    else
        check_tree(tree);
    return 0;
}
