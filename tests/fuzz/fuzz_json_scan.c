/*
 * The byte scanner: by blocks it finds what it finds by tokens; what it accepts whole it also
 * accepts, as far as it goes, in any prefix; a prune plan that drops nothing copies it, and one that
 * drops much leaves what it accepts; walking over it stays inside, and finds what cJSON finds.
 */
#include <ctype.h>
#include <string.h>

#include <cjson/cJSON.h>

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

/* White space in front keeps a text from being scanned by blocks. */
static void scan_by_tokens(struct kinf_str text, int expected, size_t expected_len)
{
    char *spaced = malloc(text.len + 1);
    size_t len;

    spaced[0] = ' ';
    memcpy(spaced + 1, text.bytes, text.len);
    FUZZ_REQUIRE(kinf__json_scan((struct kinf_str){ spaced, text.len + 1 }, true, &len) ==
                 expected);
    FUZZ_REQUIRE(len == expected_len + 1);
    free(spaced);
}

static void prune_nothing(struct kinf_str text, int expected, size_t expected_len)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT, stepped = KINF__BUFFER_INIT;
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
        FUZZ_REQUIRE(kinf__json_prune_scanned(plan, (struct kinf_str){ text.bytes, len }, NULL, 0,
                                              &stepped, captures) == 0);
        FUZZ_REQUIRE(kinf_str_equal(kinf__buffer_str(&stepped), kinf__buffer_str(&out)));
    }
    kinf__json_plan_free(plan);
}

/* What goes need not be right, what stays is. */
static void prune_much(struct kinf_str text, int expected, size_t expected_len)
{
    static const char *const kept[] = { "a", "b[*].a" };
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct kinf__json_plan *plan = NULL;
    struct kinf__json_capture captures[KINF__JSON_MAX_CAPTURES];
    size_t len = 0, again;
    int r;

    FUZZ_REQUIRE(kinf__json_plan_new(&plan, NULL) == 0);
    for (size_t i = 0; i < KINF__ARRAY_LEN(kept); i++) {
        struct kinf_path *path;

        FUZZ_REQUIRE(kinf_path_parse(kept[i], &path, NULL) == 0);
        FUZZ_REQUIRE(kinf__json_plan_keep(plan, path, NULL) == 0);
        kinf_path_free(path);
    }
    r = kinf__json_prune(plan, text, true, &out, captures, &len);
    FUZZ_REQUIRE(expected < 0 || (r == 0 && len == expected_len));
    if (r == 0)
        FUZZ_REQUIRE(kinf__json_scan_all(kinf__buffer_str(&out), KINF__JSON_MAX_DEPTH, &again) ==
                     0);
    kinf__json_plan_free(plan);
}

/* --- beside cJSON --- */

/* Halves of surrogate pairs, numbers of more than 63 digits, and depth: there cJSON is stricter. */
static bool is_beyond_cjson(struct kinf_str text)
{
    size_t n_number = 0, n_open = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.bytes[i];

        n_number = isdigit((unsigned char)c) || strchr("+-.eE", c) != NULL ? n_number + 1 : 0;
        n_open += c == '[' || c == '{';
        if (n_number > 60 || n_open > 900 ||
            (c == '\\' && i + 2 < text.len && text.bytes[i + 1] == 'u' &&
             (text.bytes[i + 2] == 'd' || text.bytes[i + 2] == 'D')))
            return true;
    }
    return false;
}

/* cJSON's ends at the first NUL. */
static void compare_text(struct kinf_str raw, const char *expected)
{
    char *text = malloc(raw.len + 1);

    text[kinf__json_unescape(raw, text, raw.len)] = '\0';
    FUZZ_REQUIRE(strcmp(text, expected) == 0);
    free(text);
}

static void compare(struct kinf__json_value value, const cJSON *expected)
{
    const cJSON *child = expected->child;
    struct kinf__json_iter iter;
    struct kinf__json_value member;
    struct kinf_str key;
    char number[64];

    FUZZ_REQUIRE((value.type == KINF__JSON_STRING) == cJSON_IsString(expected));
    FUZZ_REQUIRE((value.type == KINF__JSON_NUMBER) == cJSON_IsNumber(expected));
    FUZZ_REQUIRE((value.type == KINF__JSON_OBJECT) == cJSON_IsObject(expected));
    FUZZ_REQUIRE((value.type == KINF__JSON_ARRAY) == cJSON_IsArray(expected));
    FUZZ_REQUIRE((value.type == KINF__JSON_NULL) == cJSON_IsNull(expected));
    if (value.type == KINF__JSON_STRING)
        compare_text(value.raw, expected->valuestring);
    if (value.type == KINF__JSON_NUMBER) {
        snprintf(number, sizeof number, "%.*s", (int)value.raw.len, value.raw.bytes);
        FUZZ_REQUIRE(strtod(number, NULL) == expected->valuedouble);
    }
    if (!kinf__json_iter_init(&iter, value))
        return;
    for (; kinf__json_iter_next(&iter, &key, &member); child = child->next) {
        FUZZ_REQUIRE(child != NULL);
        if (value.type == KINF__JSON_OBJECT)
            compare_text(key, child->string);
        compare(member, child);
    }
    FUZZ_REQUIRE(child == NULL);
}

static void compare_with_cjson(struct kinf_str text)
{
    cJSON *expected;

    if (is_beyond_cjson(text))
        return;
    expected = cJSON_ParseWithLength(text.bytes, text.len);
    FUZZ_REQUIRE(expected != NULL);
    compare(kinf__json_value_of(text), expected);
    cJSON_Delete(expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = fuzz_text(data, size);
    struct kinf_str text = { copy, size };
    size_t len;
    int r = kinf__json_scan(text, true, &len);

    FUZZ_REQUIRE(len <= size);
    scan_by_tokens(text, r, len);
    prune_nothing(text, r, len);
    prune_much(text, r, len);
    if (r == 0) {
        scan_prefixes(text, len);
        text.len = len;
        walk(kinf__json_value_of(text), 64);
        compare_with_cjson(text);
    }
    free(copy);
    return 0;
}
