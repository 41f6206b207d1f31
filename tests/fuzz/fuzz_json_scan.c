/*
 * The byte scanner: what it accepts whole it also accepts, as far as it goes, in any prefix; a
 * prune plan that drops nothing copies it; walking over it stays inside.
 */
#include "base/compiler.h"
#include "fuzz/fuzz.h"
#include "json/plan.h"
#include "json/scan.h"

/* Visits all values, as deep as the stack allows. */
static void walk(struct kinf__json_value value, unsigned depth)
{
    struct kinf__json_iter iter;
    struct kinf__json_value member;
    struct kinf_str key;

    FUZZ_REQUIRE(value.raw.len != 0);
    if (value.type == KINF__JSON_STRING) {
        char *text = malloc(value.raw.len);

        FUZZ_REQUIRE(kinf__json_unescape(value.raw, text, value.raw.len) <= value.raw.len);
        free(text);
    }
    if (depth == 0 || !kinf__json_iter_init(&iter, value))
        return;
    while (kinf__json_iter_next(&iter, &key, &member)) {
        FUZZ_REQUIRE(member.raw.bytes >= value.raw.bytes);
        FUZZ_REQUIRE(member.raw.bytes + member.raw.len < value.raw.bytes + value.raw.len);
        walk(member, depth - 1);
    }
}

/* No prefix of what is accepted is refused. */
static void scan_prefixes(struct kinf_str text, size_t whole_len)
{
    size_t len, stride = whole_len > 512 ? whole_len / 512 : 1;

    for (size_t cut = 0; cut < whole_len; cut += stride) {
        char *prefix = fuzz_text((const uint8_t *)text.bytes, cut);
        int r = kinf__json_scan((struct kinf_str){ prefix, cut }, false, &len);

        /* A scalar may have been followed by what does not belong to it, such as the 'x' of 1x. */
        FUZZ_REQUIRE(r == 0 || r == KINF_ERR_TRUNCATED);
        FUZZ_REQUIRE(len <= cut);
        free(prefix);
    }
}

static void prune_nothing(struct kinf_str text, int expected, size_t expected_len)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct kinf__json_plan *plan = NULL;
    struct kinf__json_capture captures[KINF__JSON_MAX_CAPTURES];
    size_t len = 0, again;
    int r;

    FUZZ_REQUIRE(kinf__json_plan_new(&plan, NULL) == 0);
    r = kinf__json_prune(plan, text, true, &out, captures, &len);
    FUZZ_REQUIRE(r == expected);
    FUZZ_REQUIRE(len == expected_len);
    if (r == 0) {
        FUZZ_REQUIRE(out.len <= len);
        FUZZ_REQUIRE(kinf__json_scan_all(kinf__buffer_str(&out), KINF__JSON_MAX_DEPTH, &again) ==
                     0);
    }
    kinf__json_plan_free(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = fuzz_text(data, size);
    struct kinf_str text = { copy, size };
    size_t len;
    int r = kinf__json_scan(text, true, &len);

    FUZZ_REQUIRE(len <= size);
    prune_nothing(text, r, len);
    if (r == 0) {
        scan_prefixes(text, len);
        walk(kinf__json_value_of((struct kinf_str){ text.bytes, len }), 64);
    }
    free(copy);
    return 0;
}
