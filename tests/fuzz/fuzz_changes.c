/*
 * What answers to writes say was changed: any bytes are refused or read, in each form, and whatever is
 * called back for is a text that ends. Of JSON that was read, a prefix is refused. What is made of YAML
 * is JSON.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "json/scan.h"
#include "serve/changes.h"

static void check(const struct kinf__change *change, void *ctx)
{
    size_t *n_changes = ctx;

    FUZZ_REQUIRE(strlen(change->name) < sizeof change->name);
    FUZZ_REQUIRE(strlen(change->name_space) < sizeof change->name_space);
    FUZZ_REQUIRE(strlen(change->uid) < sizeof change->uid);
    ++*n_changes;
}

static void check_yaml(struct kinf_str text, size_t *n_changes)
{
    KINF__AUTO_BUFFER json = KINF__BUFFER_INIT;
    size_t len;

    if (kinf__changes_yaml_to_json(text, &json) < 0) {
        FUZZ_REQUIRE(kinf__changes_read(KINF__CHANGES_YAML, text, check, n_changes) < 0);
        return;
    }
    FUZZ_REQUIRE(kinf__json_scan_all(kinf__buffer_str(&json), KINF__JSON_MAX_DEPTH, &len) == 0);
    (void)!kinf__changes_read(KINF__CHANGES_YAML, text, check, n_changes);
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
    check_yaml(text, &n_changes);
    kinf__changes_are_dry(text);
    while (is_json && text.len != 0 && text.bytes[text.len - 1] != '}')
        text.len--;
    text.len -= is_json ? 1 : 0;
    FUZZ_REQUIRE(!is_json || kinf__changes_read(KINF__CHANGES_JSON, text, check, &n_changes) < 0);
    free(copy);
    return 0;
}
