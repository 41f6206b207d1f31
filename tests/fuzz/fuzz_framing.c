/*
 * Answers on connections that may change their protocol: whole and byte by byte they are the same, and
 * no more is body than came.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "rest/framing.h"

struct outcome {
    int code, failed;
    bool is_complete, may_end;
    struct kinf__buffer body;
};

static void read_answer(const char *text, size_t size, size_t step, struct outcome *outcome)
{
    struct kinf__framing framing = { .left = 0 };
    struct kinf__head head = { .code = 0 };

    *outcome = (struct outcome){ .failed = 0 };
    for (size_t at = 0; at < size && outcome->failed == 0; at += step) {
        struct kinf_str piece = { text + at, size - at < step ? size - at : step };

        while (piece.len != 0 && outcome->failed == 0) {
            size_t before = piece.len;
            struct kinf_str body;

            outcome->failed = kinf__framing_take(&framing, &head, &piece, &body, NULL);
            FUZZ_REQUIRE(outcome->failed <= 0);
            FUZZ_REQUIRE(outcome->failed < 0 || piece.len < before);
            FUZZ_REQUIRE(body.len == 0 || head.is_complete);
            if (outcome->failed == 0)
                FUZZ_REQUIRE(kinf__buffer_append(&outcome->body, body.bytes, body.len) == 0);
        }
    }
    outcome->code = head.code;
    outcome->is_complete = head.is_complete;
    outcome->may_end = kinf__framing_may_end(&framing);
    kinf__framing_release(&framing);
    kinf__head_release(&head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct outcome whole, bytes;

    read_answer(text, size, size + 1, &whole);
    read_answer(text, size, 1, &bytes);
    FUZZ_REQUIRE(whole.failed == bytes.failed);
    FUZZ_REQUIRE(whole.code == bytes.code);
    FUZZ_REQUIRE(whole.is_complete == bytes.is_complete);
    FUZZ_REQUIRE(whole.may_end == bytes.may_end);
    FUZZ_REQUIRE(whole.body.len == bytes.body.len && whole.body.len <= size);
    if (whole.body.len != 0)
        FUZZ_REQUIRE(memcmp(whole.body.bytes, bytes.body.bytes, whole.body.len) == 0);
    kinf__buffer_release(&whole.body);
    kinf__buffer_release(&bytes.body);
    free(text);
    return 0;
}
