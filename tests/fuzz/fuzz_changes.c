/*
 * What answers to writes say was changed: any bytes are refused or read, in each form, and whatever is
 * called back for is a text that ends. Of JSON that was read, a prefix is refused.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "serve/changes.h"

static void check(const struct kinf__change *change, void *ctx)
{
    size_t *n_changes = ctx;

    FUZZ_REQUIRE(strlen(change->name) < sizeof change->name);
    FUZZ_REQUIRE(strlen(change->name_space) < sizeof change->name_space);
    FUZZ_REQUIRE(strlen(change->uid) < sizeof change->uid);
    ++*n_changes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = fuzz_text(data, size);
    struct kinf_str text = { copy, size };
    size_t n_changes = 0;
    bool is_json;

    is_json = kinf__changes_read(KINF__CHANGES_JSON, text, check, &n_changes) == 0;
    if (kinf__changes_read(KINF__CHANGES_PROTOBUF, text, check, &n_changes) == 0)
        FUZZ_REQUIRE(!is_json);
    kinf__changes_are_dry(text);
    while (is_json && text.len != 0 && text.bytes[text.len - 1] != '}')
        text.len--;
    text.len -= is_json ? 1 : 0;
    FUZZ_REQUIRE(!is_json || kinf__changes_read(KINF__CHANGES_JSON, text, check, &n_changes) < 0);
    free(copy);
    return 0;
}
