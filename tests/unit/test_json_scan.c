/*
 * The byte scanner, and values in text that was scanned.
 */
#include "json/scan.h"
#include "json/block.h"
#include "json/scan_priv.h"

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/buffer.h"
#include "unit/json_corpus.h"
#include "unit/test.h"

#define MAX_MUTATED_LEN 4096

static struct json_corpus corpus;

static int open_corpus(void **state)
{
    char dir[1024];

    (void)state;
    snprintf(dir, sizeof dir, "%s/transcripts", test_data_dir());
    json_corpus_init(&corpus, dir);
    return 0;
}

static int close_corpus(void **state)
{
    (void)state;
    json_corpus_release(&corpus);
    return 0;
}

static int scan(const char *text, bool is_final, size_t *ret_len)
{
    return kinf__json_scan(kinf_str_from(text), is_final, ret_len);
}

/* Scans a copy that ends where its allocation ends, so that the sanitizer sees a read behind it. */
static int scan_exact(struct kinf_str text, bool is_final, size_t *ret_len)
{
    char *copy = malloc(text.len != 0 ? text.len : 1);
    int status;

    assert_non_null(copy);
    memcpy(copy, text.bytes, text.len);
    status = kinf__json_scan((struct kinf_str){ copy, text.len }, is_final, ret_len);
    free(copy);
    return status;
}

static void what_the_standard_allows_is_accepted(void **state)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "10",
        "-1.5",
        "1e1",
        "1E+1",
        "1.0e-10",
        "true",
        "false",
        "null",
        "\"\"",
        "[]",
        "{}",
        "[ ]",
        "{ }",
        "[1]",
        "[1,2]",
        "[[],[[]],{}]",
        "{\"a\":1}",
        "{\"a\":{},\"a\":[]}",
        "{ \"a\" : 1 , \"b\" : [ ] }",
        "\"\\u0000\\uD800\\udc00\\uDFFF\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "\"\x7f\"",
        "\"\xc2\x80\xdf\xbf\"",
        "\"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\"",
        "\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"",
        "\"0123456789abcde\"",
        "\"0123456789abcdef\"",
        "\"0123456789abcdef0\"",
        "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
    };
    size_t len;

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(texts); i++) {
        assert_int_equal(scan(texts[i], true, &len), 0);
        assert_int_equal(len, strlen(texts[i]));
        assert_int_equal(kinf__json_scan_all(kinf_str_from(texts[i]), KINF__JSON_MAX_DEPTH, &len),
                         0);
    }
}

static const struct {
    const char *text;
    size_t offset;
} wrong_texts[] = {
    { "}", 0 },
    { "]", 0 },
    { ",", 0 },
    { "+1", 0 },
    { ".5", 0 },
    { "-a", 1 },
    { "1.a", 2 },
    { "1ea", 2 },
    { "1e+a", 3 },
    { "[01]", 2 },
    { "[-01]", 3 },
    { "[1.]", 3 },
    { "[1 2]", 3 },
    { "[1,]", 3 },
    { "[,1]", 1 },
    { "[1}", 2 },
    { "{]", 1 },
    { "{1:2}", 1 },
    { "{\"a\"}", 4 },
    { "{\"a\" 1}", 5 },
    { "{\"a\":}", 5 },
    { "{\"a\":1,}", 7 },
    { "{\"a\":1]", 6 },
    { "{,}", 1 },
    { "nulx", 3 },
    { "True", 0 },
    { "tRue", 1 },
    { "NaN", 0 },
    { "nan", 1 },
    { "'a'", 0 },
    { "/**/1", 0 },
    { "\"\n\"", 1 },
    { "\"a\x1f\"", 2 },
    { "\"0123456789abcdef\t\"", 17 },
    { "\"\\x\"", 2 },
    { "\"\\u12g4\"", 5 },
    { "\"\\u:\"", 3 },
    { "\"\\\n\"", 2 },
    { "\"\x80\"", 1 },
    { "\"\xc0\x80\"", 1 },
    { "\"\xc1\xbf\"", 1 },
    { "\"\xc2\"", 2 },
    { "\"\xe0\x9f\x80\"", 2 },
    { "\"\xed\xa0\x80\"", 2 },
    { "\"\xe2\x82\"", 3 },
    { "\"\xf0\x8f\x80\x80\"", 2 },
    { "\"\xf4\x90\x80\x80\"", 2 },
    { "\"\xf5\x80\x80\x80\"", 1 },
    { "\"\xff\"", 1 },
    { "\xef\xbb\xbf{}", 0 },
    { "\xc2\xa0{}", 0 },
    { "\v1", 0 },
    { "\f1", 0 },
    { "[\"a\",\xff]", 5 },
    { "{\"\xff\":1}", 2 },
};

static void what_the_standard_forbids_is_refused_where_it_is_wrong(void **state)
{
    size_t len;

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(wrong_texts); i++) {
        assert_int_equal(scan(wrong_texts[i].text, true, &len), KINF_ERR_PARSE);
        assert_int_equal(len, wrong_texts[i].offset);
        assert_int_equal(scan(wrong_texts[i].text, false, &len), KINF_ERR_PARSE);
        assert_int_equal(len, wrong_texts[i].offset);
    }
    assert_int_equal(scan("", true, &len), KINF_ERR_TRUNCATED);
    assert_int_equal(scan(" \n", true, &len), KINF_ERR_TRUNCATED);
    assert_int_equal(len, 2);
    assert_int_equal(kinf__json_scan((struct kinf_str){ NULL, 0 }, true, &len), KINF_ERR_TRUNCATED);
    assert_int_equal(kinf__json_scan((struct kinf_str){ "\"\0\"", 3 }, true, &len), KINF_ERR_PARSE);
}

static void a_scan_ends_behind_the_value(void **state)
{
    size_t len;

    (void)state;
    assert_int_equal(scan(" {\"a\":[]} {", true, &len), 0);
    assert_int_equal(len, 9);
    assert_int_equal(scan("\"a\"\"b\"", false, &len), 0);
    assert_int_equal(len, 3);
    assert_int_equal(scan("12 ", false, &len), 0);
    assert_int_equal(len, 2);
    assert_int_equal(scan("01", false, &len), 0);
    assert_int_equal(len, 1);
}

static void a_number_at_the_end_is_complete_only_if_the_text_is(void **state)
{
    static const char *const numbers[] = { "0", "-1", "12", "1.5", "1e5" };
    static const char *const cut[] = { "-", "1.",  "1e",   "1e-",     "-0.",       "tru",
                                       "n", "\"a", "\"\\", "\"\\u12", "\"\xe2\x82" };
    size_t len;

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(numbers); i++) {
        assert_int_equal(scan(numbers[i], true, &len), 0);
        assert_int_equal(scan(numbers[i], false, &len), KINF_ERR_TRUNCATED);
    }
    for (size_t i = 0; i < KINF__ARRAY_LEN(cut); i++) {
        assert_int_equal(scan(cut[i], true, &len), KINF_ERR_TRUNCATED);
        assert_int_equal(len, strlen(cut[i]));
    }
}

static void a_whole_text_has_nothing_behind_its_value(void **state)
{
    size_t len;

    (void)state;
    assert_int_equal(kinf__json_scan_all(KINF_STR(" [1] \r\n\t"), KINF__JSON_MAX_DEPTH, &len), 0);
    assert_int_equal(len, 8);
    assert_int_equal(kinf__json_scan_all(KINF_STR("[1] ]"), KINF__JSON_MAX_DEPTH, &len),
                     KINF_ERR_PARSE);
    assert_int_equal(len, 4);
    assert_int_equal(kinf__json_scan_all(KINF_STR("[[1]]"), 2, &len), 0);
    assert_int_equal(kinf__json_scan_all(KINF_STR("[[[]]]"), 2, &len), KINF_ERR_LIMIT);
    assert_int_equal(len, 2);
}

static void nesting_is_limited_and_needs_no_stack(void **state)
{
    const size_t limit = KINF__JSON_MAX_DEPTH;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    size_t len;

    (void)state;
    for (size_t i = 0; i < limit; i++)
        assert_int_equal(
            kinf__buffer_append(&text, i % 3 == 0 ? "{\"\":" : "[0,", i % 3 == 0 ? 4 : 3), 0);
    assert_int_equal(kinf__json_scan(kinf__buffer_str(&text), true, &len), KINF_ERR_TRUNCATED);
    assert_int_equal(kinf__buffer_append(&text, "{}", 2), 0);
    assert_int_equal(kinf__json_scan(kinf__buffer_str(&text), true, &len), KINF_ERR_LIMIT);
    assert_int_equal(len, text.len - 2);
    text.len -= 2;
    assert_int_equal(kinf__buffer_append(&text, "1", 1), 0);
    for (size_t i = limit; i-- > 0;)
        assert_int_equal(kinf__buffer_append(&text, i % 3 == 0 ? "}" : "]", 1), 0);
    assert_int_equal(kinf__json_scan(kinf__buffer_str(&text), true, &len), 0);
    assert_int_equal(len, text.len);
    text.bytes[text.len - 7] ^= '}' ^ ']';
    assert_int_equal(kinf__json_scan(kinf__buffer_str(&text), true, &len), KINF_ERR_PARSE);
    assert_int_equal(len, text.len - 7);
}

/* Every byte of the transcripts' values, up to a length that keeps the square of it bearable. */
static void every_prefix_of_a_value_is_truncated(void **state)
{
    const size_t max_len = test_rounds(4000);
    size_t n_tried = 0, len;

    (void)state;
    for (size_t i = 0; i < corpus.n_texts && n_tried < 400; i++) {
        struct kinf_str text = corpus.texts[i];

        if (text.len > max_len)
            continue;
        n_tried++;
        for (size_t cut = 0; cut < text.len; cut++) {
            assert_int_equal(scan_exact((struct kinf_str){ text.bytes, cut }, false, &len),
                             KINF_ERR_TRUNCATED);
            assert_int_equal(len, cut);
        }
        assert_int_equal(scan_exact(text, true, &len), 0);
        assert_int_equal(len, text.len);
    }
    assert_true(n_tried > 50);
}

/* cJSON is more lenient, so this is one way; where it is stricter, it is for reasons of its own. */
static bool cjson_takes(struct kinf_str text)
{
    char *copy = malloc(text.len + 1);
    cJSON *tree;
    bool is_taken;

    assert_non_null(copy);
    memcpy(copy, text.bytes, text.len);
    copy[text.len] = '\0';
    tree = cJSON_ParseWithOpts(copy, NULL, 1);
    is_taken = tree != NULL;
    cJSON_Delete(tree);
    free(copy);
    return is_taken;
}

/* A surrogate escape, or a number above 63 bytes, which cJSON refuses though it is JSON. */
static bool cjson_may_refuse(struct kinf_str text)
{
    size_t n_digits = 0;

    for (size_t i = 0; i < text.len; i++) {
        n_digits = strchr("0123456789.eE+-", text.bytes[i]) != NULL ? n_digits + 1 : 0;
        if (n_digits > 63)
            return true;
        if (i + 3 < text.len && text.bytes[i] == '\\' && text.bytes[i + 1] == 'u' &&
            (text.bytes[i + 2] | 0x20) == 'd')
            return true;
    }
    return false;
}

static void what_spoiled_text_is_accepted_cjson_accepts_too(void **state)
{
    struct test_random random = test_random_init("what_spoiled_text_is_accepted_cjson_accepts_too");
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    size_t n_rounds = test_rounds(100000), n_accepted = 0, len, value_len;
    int status, value_status;

    (void)state;
    for (size_t i = 0; i < n_rounds; i++) {
        json_corpus_mutate(&corpus, &random, MAX_MUTATED_LEN, &text);
        status = kinf__json_scan_all(kinf__buffer_str(&text), KINF__JSON_MAX_DEPTH, &len);
        value_status = scan_exact(kinf__buffer_str(&text), true, &value_len);
        assert_true(value_status == 0 ? value_len <= len
                                      : value_len == len && value_status == status);
        if (status != 0)
            continue;
        n_accepted++;
        if (!cjson_takes(kinf__buffer_str(&text)) && !cjson_may_refuse(kinf__buffer_str(&text)))
            fail_msg("cJSON refuses %.*s", (int)text.len, text.bytes);
    }
    assert_in_range(n_accepted, n_rounds / 50, n_rounds / 2);
}

static bool has_blocks(void)
{
#if defined(KINF__JSON_AVX2)
    return kinf__json_has_avx2();
#else
    return false;
#endif
}

/* White space in front keeps a text from being scanned by blocks. */
static void assert_blocks_and_tokens_agree(struct kinf_str text)
{
    KINF__AUTO_BUFFER spaced = KINF__BUFFER_INIT;
    size_t len, spaced_len;
    int status;

    assert_int_equal(kinf__buffer_printf(&spaced, " "), 0);
    assert_int_equal(kinf__buffer_append_str(&spaced, text), 0);
    for (int is_final = 0; is_final < 2; is_final++) {
        status = scan_exact(text, is_final, &len);
        assert_int_equal(scan_exact(kinf__buffer_str(&spaced), is_final, &spaced_len), status);
        assert_int_equal(spaced_len, len + 1);
    }
}

/* Moves over the borders of blocks what may stand beside what. */
static void compact_text_is_understood_wherever_it_lies(void **state)
{
    static const char *const parts[] = {
        "{}",
        "[[],{},[{}],{\"\":[]}]",
        "{\"a\":{\"b\":[1,-0.5e1,true],\"c\":null},\"d\":[{},{}]}",
        "[\"\",\"\\\\\",\"\\\"\",\"\\u00e9\",\"\xc3\xa9\xf0\x9f\x98\x80\",{\"\\n\":\"\"},0]",
    };
    static const char bytes[] = "{}[]:,\"\\ 01-.te\x01\xc3\xa9";
    char text[256], byte;
    struct kinf__json_scanner scanner;
    const int n_fronts = 2 * KINF__JSON_BLOCK, step = n_fronts / (int)test_rounds(n_fronts);
    const uint8_t *behind;
    size_t len;

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(parts); i++) {
        for (int n_front = 0; n_front < n_fronts; n_front += step) {
            len = (size_t)snprintf(text, sizeof text, "{\"%0*d\":%s,\"z\":1}]", n_front + 1, 0,
                                   parts[i]);
            kinf__json_scanner_init(&scanner, (struct kinf_str){ text, len }, true);
            assert_true(kinf__json_scan_compact(&scanner, scanner.start, 0, &behind) ==
                        has_blocks());
            for (size_t at = 0; at < len; at++) {
                assert_blocks_and_tokens_agree((struct kinf_str){ text, at });
                byte = text[at];
                for (size_t j = 0; j < sizeof bytes - 1; j++) {
                    text[at] = bytes[j];
                    assert_blocks_and_tokens_agree((struct kinf_str){ text, len });
                }
                text[at] = byte;
            }
        }
    }
}

/* In texts of more than a block, which scan.c is not asked about at first. */
static void a_limit_of_nesting_holds_for_blocks_too(void **state)
{
    static const char *const values[] = { "[]", "[[]]", "[[[]]]", "{\"a\":{\"b\":{}}}",
                                          "[{\"a\":[1]},[[2]],3]" };
    char text[256];

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(values); i++) {
        for (unsigned max_depth = 1; max_depth < 6; max_depth++) {
            size_t by_blocks, by_tokens;
            int status;

            snprintf(text, sizeof text, " {\"%070d\":%s,\"%070d\":%s}", 0, values[i], 0, values[i]);
            status = kinf__json_scan_all(kinf_str_from(text), max_depth, &by_tokens);
            assert_int_equal(status, max_depth > 3 || (max_depth == 3 && i < 2) ||
                                             (max_depth == 2 && i == 0)
                                         ? 0
                                         : KINF_ERR_LIMIT);
            assert_int_equal(kinf__json_scan_all(kinf_str_from(text + 1), max_depth, &by_blocks),
                             status);
            assert_int_equal(by_blocks + 1, by_tokens);
        }
    }
}

/* Of a value inside others there are fewer to go. */
static void blocks_know_how_deep_they_begin(void **state)
{
    static const char text[] =
        "{\"a\":[[1]],\"b\":\"................................................................\"}";
    struct kinf__json_scanner scanner;
    const uint8_t *behind;

    (void)state;
    for (unsigned depth = 0; depth < 3; depth++) {
        kinf__json_scanner_init(&scanner, kinf_str_from(text), true);
        scanner.max_depth = 4;
        behind = kinf__json_scan_value(&scanner, scanner.start, depth);
        assert_ptr_equal(behind, depth < 2 ? scanner.end : NULL);
        assert_int_equal(scanner.code, depth < 2 ? 0 : KINF_ERR_LIMIT);
        kinf__json_scanner_init(&scanner, kinf_str_from(text), true);
        scanner.max_depth = 4;
        assert_true(kinf__json_scan_compact(&scanner, scanner.start, depth, &behind) ==
                    (has_blocks() && depth < 2));
    }
}

/* Runs that scan.c checks in one piece, of a block and more, with an end that is right or not. */
static void what_is_not_ascii_may_fill_blocks(void **state)
{
    static const char *const ends[] = { "\"}", "\\n\":0}", "\xc3\":0}", "\x01\"}", "", "\"" };
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(ends); i++) {
        for (int n_front = 0; n_front < KINF__JSON_BLOCK; n_front += 7) {
            for (size_t n = 0; n < 2 * KINF__JSON_BLOCK; n++) {
                text.len = 0;
                assert_int_equal(kinf__buffer_printf(&text, "{\"%0*d\":\"", n_front + 1, 0), 0);
                for (size_t j = 0; j < n; j++)
                    assert_int_equal(kinf__buffer_append_str(&text, KINF_STR("\xc3\xa9")), 0);
                assert_int_equal(kinf__buffer_append_str(&text, kinf_str_from(ends[i])), 0);
                assert_blocks_and_tokens_agree(kinf__buffer_str(&text));
            }
        }
    }
}

static void what_ends_in_front_of_brackets_ends_there(void **state)
{
    static const char behind[] = "]}],{\"a\":[}],[]true},{,}{}{}[][]:::,,,\"\"}}}}}]]]]]]";
    static const char *const values[] = { "{}", "[]", "[{}]", "{\"a\":1}" };
    char text[256];
    size_t len;

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(values); i++) {
        for (size_t j = 0; j < sizeof behind; j++) {
            snprintf(text, sizeof text, "%s%s%s", values[i], behind + j, behind);
            assert_int_equal(scan(text, false, &len), 0);
            assert_int_equal(len, strlen(values[i]));
        }
    }
}

static void spoiled_text_is_scanned_alike_by_blocks_and_by_tokens(void **state)
{
    struct test_random random =
        test_random_init("spoiled_text_is_scanned_alike_by_blocks_and_by_tokens");
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)state;
    for (size_t i = 0; i < test_rounds(50000); i++) {
        json_corpus_mutate(&corpus, &random, MAX_MUTATED_LEN, &text);
        assert_blocks_and_tokens_agree(kinf__buffer_str(&text));
    }
}

/* A failure that is not TRUNCATED must stay one however the text goes on, and the prefix in front
 * of the place of the error must be one that can go on. */
static void an_error_is_found_at_its_first_byte(void **state)
{
    struct test_random random = test_random_init("an_error_is_found_at_its_first_byte");
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    size_t offset, len;

    (void)state;
    for (size_t i = 0; i < test_rounds(20000); i++) {
        json_corpus_mutate(&corpus, &random, MAX_MUTATED_LEN, &text);
        if (kinf__json_scan(kinf__buffer_str(&text), true, &offset) != KINF_ERR_PARSE)
            continue;
        assert_true(offset < text.len);
        assert_int_equal(scan_exact((struct kinf_str){ text.bytes, offset + 1 }, false, &len),
                         KINF_ERR_PARSE);
        assert_int_equal(len, offset);
        assert_int_equal(scan_exact((struct kinf_str){ text.bytes, offset }, false, &len),
                         KINF_ERR_TRUNCATED);
    }
}

static bool is_special(uint8_t byte)
{
    return byte < 0x20 || byte >= 0x80 || byte == '"' || byte == '\\';
}

static void assert_specials(const uint8_t block[KINF__JSON_BLOCK])
{
    uint64_t expected = 0;

    for (unsigned i = 0; i < KINF__JSON_BLOCK; i++)
        expected |= (uint64_t)is_special(block[i]) << i;
    assert_true(kinf__json_specials(block) == expected);
    assert_true(kinf__json_specials_plain_c(block) == expected);
}

static uint64_t find_bytes_naively(const uint8_t block[KINF__JSON_BLOCK], uint8_t with,
                                   uint8_t wanted)
{
    uint64_t found = 0;

    for (unsigned i = 0; i < KINF__JSON_BLOCK; i++)
        found |= (uint64_t)((block[i] | with) == wanted) << i;
    return found;
}

static void assert_marks(const uint8_t block[KINF__JSON_BLOCK], struct kinf__json_marks marks)
{
    assert_true(marks.quotes == find_bytes_naively(block, 0, '"'));
    assert_true(marks.backslashes == find_bytes_naively(block, 0, '\\'));
    assert_true(marks.opens ==
                (find_bytes_naively(block, 0, '{') | find_bytes_naively(block, 0, '[')));
    assert_true(marks.closes ==
                (find_bytes_naively(block, 0, '}') | find_bytes_naively(block, 0, ']')));
}

static void assert_block(const uint8_t block[KINF__JSON_BLOCK])
{
    static const struct {
        uint8_t with, wanted;
    } rows[] = { { 0, '"' }, { 0, '\\' }, { 0x20, '{' }, { 0x20, '}' } };

    assert_specials(block);
    assert_marks(block, kinf__json_mark(block));
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++)
        assert_true(kinf__json_find_bytes_plain_c(block, rows[i].with, rows[i].wanted) ==
                    find_bytes_naively(block, rows[i].with, rows[i].wanted));
#if defined(KINF__JSON_AVX2)
    if (kinf__json_has_avx2())
        assert_marks(block, kinf__json_mark_avx2(block));
#endif
}

static void all_ways_to_look_at_a_block_agree(void **state)
{
    struct test_random random = test_random_init("all_ways_to_look_at_a_block_agree");
    uint8_t block[KINF__JSON_BLOCK];

    (void)state;
    for (unsigned value = 0; value < 256; value++) {
        for (unsigned around = 0; around < 256; around += 0x1f) {
            for (unsigned place = 0; place < KINF__JSON_BLOCK; place++) {
                memset(block, (int)around, sizeof block);
                block[place] = (uint8_t)value;
                assert_block(block);
            }
        }
    }
    for (size_t i = 0; i < test_rounds(100000); i++) {
        for (size_t place = 0; place < sizeof block; place++)
            block[place] = (uint8_t)test_random_next(&random);
        assert_block(block);
    }
}

static void all_ways_to_fill_and_to_count_bits_agree(void **state)
{
    struct test_random random = test_random_init("all_ways_to_fill_and_to_count_bits_agree");

    (void)state;
    for (size_t i = 0; i < test_rounds(100000); i++) {
        uint64_t bits = test_random_next(&random), filled = 0;
        unsigned n_ones = 0;

        for (size_t n_fewer = test_random_below(&random, 4); n_fewer > 0; n_fewer--)
            bits &= test_random_next(&random);
        for (unsigned place = 0; place < 64; place++) {
            n_ones += bits >> place & 1;
            filled |= (uint64_t)(n_ones % 2) << place;
        }
        assert_true(kinf__json_fill(bits) == filled);
        assert_int_equal(kinf__json_count(bits), n_ones);
#if defined(KINF__JSON_AVX2)
        if (kinf__json_has_avx2()) {
            assert_true(kinf__json_fill_avx2(bits) == filled);
            assert_int_equal(kinf__json_count_avx2(bits), n_ones);
        }
#endif
    }
}

/* A block may start, and end, anywhere in a string. */
static void strings_of_any_length_end_where_they_end(void **state)
{
    char text[3 * KINF__JSON_BLOCK + 8];
    size_t len, total;

    (void)state;
    for (size_t n_spaces = 0; n_spaces <= KINF__JSON_BLOCK; n_spaces++) {
        for (size_t n_bytes = 0; n_bytes <= 2 * KINF__JSON_BLOCK; n_bytes++) {
            total = n_spaces + n_bytes + 2;
            memset(text, ' ', n_spaces);
            memset(text + n_spaces, 'x', n_bytes + 2);
            text[n_spaces] = text[total - 1] = '"';
            assert_int_equal(scan_exact((struct kinf_str){ text, total }, false, &len), 0);
            assert_int_equal(len, total);
            assert_int_equal(scan_exact((struct kinf_str){ text, total - 1 }, false, &len),
                             KINF_ERR_TRUNCATED);
            text[total] = '"';
            assert_int_equal(scan_exact((struct kinf_str){ text, total + 1 }, false, &len), 0);
            assert_int_equal(len, total);
            text[total - 1] = '\\';
            assert_int_equal(scan_exact((struct kinf_str){ text, total + 1 }, false, &len),
                             KINF_ERR_TRUNCATED);
        }
    }
}

static void an_error_says_where_and_shows_what_is_there(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_str text = KINF_STR("{\"aaaaaaaaaaaaaaaaaaaaaaaaa\":\x01}");

    (void)state;
    assert_int_equal(kinf__json_error(&err, KINF_ERR_PARSE, text, 29), KINF_ERR_PARSE);
    assert_string_equal(err.message, "not JSON at offset 29: aaaaaaaaaaaaaaaaaa\":.}");
    assert_int_equal(kinf__json_error(&err, KINF_ERR_TRUNCATED, text, 1000), KINF_ERR_TRUNCATED);
    assert_non_null(strstr(err.message, "after 31 bytes"));
    assert_int_equal(kinf__json_error(&err, KINF_ERR_LIMIT, text, 0), KINF_ERR_LIMIT);
    assert_int_equal(err.code, KINF_ERR_LIMIT);
    assert_int_equal(kinf__json_error(&err, KINF_ERR_NO_MEMORY, text, 0), KINF_ERR_NO_MEMORY);
    assert_int_equal(kinf__json_error(NULL, KINF_ERR_PARSE, (struct kinf_str){ NULL, 0 }, 0),
                     KINF_ERR_PARSE);
}

static void assert_value(struct kinf__json_value value, enum kinf__json_type type, const char *raw)
{
    assert_int_equal(value.type, type);
    assert_int_equal(value.raw.len, strlen(raw));
    assert_memory_equal(value.raw.bytes, raw, value.raw.len);
}

static void a_walk_gives_every_member_in_order(void **state)
{
    struct kinf__json_value object =
        kinf__json_value_of(KINF_STR(" { \"a\" : 1 ,\"b\":[2, {}],\"c\":\"}\" } "));
    struct kinf__json_value value;
    struct kinf__json_iter iter;
    struct kinf_str key;

    (void)state;
    assert_true(kinf__json_iter_init(&iter, object));
    assert_true(kinf__json_iter_next(&iter, &key, &value));
    assert_true(kinf_str_equal(key, KINF_STR("\"a\"")));
    assert_value(value, KINF__JSON_NUMBER, "1");
    assert_true(kinf__json_iter_next(&iter, &key, &value));
    assert_value(value, KINF__JSON_ARRAY, "[2, {}]");
    assert_true(kinf__json_iter_next(&iter, &key, &value));
    assert_value(value, KINF__JSON_STRING, "\"}\"");
    assert_false(kinf__json_iter_next(&iter, &key, &value));
    assert_false(kinf__json_iter_next(&iter, &key, &value));
}

static void a_walk_gives_every_element_without_a_key(void **state)
{
    static const char *const raws[] = { "true", "null", "-1.5", "\"\"", "{}" };
    struct kinf__json_value value;
    struct kinf__json_iter iter;
    struct kinf_str key = KINF_STR("x");

    (void)state;
    assert_true(
        kinf__json_iter_init(&iter, kinf__json_value_of(KINF_STR("[true, null ,-1.5,\"\",{}]"))));
    for (size_t i = 0; i < KINF__ARRAY_LEN(raws); i++) {
        assert_true(kinf__json_iter_next(&iter, &key, &value));
        assert_int_equal(key.len, 0);
        assert_value(value, kinf__json_value_of(kinf_str_from(raws[i])).type, raws[i]);
    }
    assert_false(kinf__json_iter_next(&iter, &key, &value));
    assert_true(kinf__json_iter_init(&iter, kinf__json_value_of(KINF_STR("[ ]"))));
    assert_false(kinf__json_iter_next(&iter, &key, &value));
    assert_false(kinf__json_iter_init(&iter, kinf__json_value_of(KINF_STR("\"[]\""))));
}

static void the_type_of_a_value_is_seen_at_its_first_byte(void **state)
{
    (void)state;
    assert_value(kinf__json_value_of(KINF_STR("null")), KINF__JSON_NULL, "null");
    assert_value(kinf__json_value_of(KINF_STR("\ttrue")), KINF__JSON_BOOL, "true");
    assert_value(kinf__json_value_of(KINF_STR("false\n")), KINF__JSON_BOOL, "false");
    assert_value(kinf__json_value_of(KINF_STR("-1")), KINF__JSON_NUMBER, "-1");
    assert_value(kinf__json_value_of(KINF_STR("{}")), KINF__JSON_OBJECT, "{}");
    assert_value(kinf__json_value_of(KINF_STR(" ")), KINF__JSON_NULL, "");
}

static void of_a_doubled_key_the_first_counts(void **state)
{
    struct kinf__json_value object =
                                kinf__json_value_of(KINF_STR("{\"a\":1,\"b\":2,\"\\u0061\":3}")),
                            value;

    (void)state;
    assert_true(kinf__json_member(object, KINF_STR("a"), &value));
    assert_value(value, KINF__JSON_NUMBER, "1");
    assert_true(kinf__json_member(object, KINF_STR("b"), &value));
    assert_value(value, KINF__JSON_NUMBER, "2");
    assert_false(kinf__json_member(object, KINF_STR("A"), &value));
    object = kinf__json_value_of(KINF_STR("{\"\\u0061\":4,\"a\":5}"));
    assert_true(kinf__json_member(object, KINF_STR("a"), &value));
    assert_value(value, KINF__JSON_NUMBER, "4");
    assert_false(kinf__json_member(value, KINF_STR("a"), &value));
}

static void strings_are_decoded_as_go_does(void **state)
{
    static const struct {
        struct kinf_str raw, text;
    } rows[] = {
        { KINF_STR("\"\""), KINF_STR("") },
        { KINF_STR("\"plain \xc3\xa9\""), KINF_STR("plain \xc3\xa9") },
        { KINF_STR("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), KINF_STR("\"\\/\b\f\n\r\t") },
        { KINF_STR("\"a\\u0000b\""), KINF_STR("a\0b") },
        { KINF_STR("\"\\u007f\\u0080\\u07FF\\u0800\\uffff\""),
          KINF_STR("\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf") },
        { KINF_STR("\"\\ud800\\udc00\\uDBFF\\uDFFF\""),
          KINF_STR("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf") },
        { KINF_STR("\"\\ud800\""), KINF_STR("\xef\xbf\xbd") },
        { KINF_STR("\"\\udc00x\""), KINF_STR("\xef\xbf\xbdx") },
        { KINF_STR("\"\\ud800\\n\""), KINF_STR("\xef\xbf\xbd\n") },
        { KINF_STR("\"\\ud800\\u0041\""), KINF_STR("\xef\xbf\xbd"
                                                   "A") },
        { KINF_STR("\"\\ud800\\ud800\\udc00\""), KINF_STR("\xef\xbf\xbd\xf0\x90\x80\x80") },
        { KINF_STR("\"cut\\\""), KINF_STR("cut") }, /* no JSON, and nothing behind it is read */
    };
    char out[32];

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        assert_int_equal(kinf__json_unescape(rows[i].raw, out, sizeof out), rows[i].text.len);
        assert_memory_equal(out, rows[i].text.bytes, rows[i].text.len);
        assert_true(kinf__json_string_equals(rows[i].raw, rows[i].text));
        assert_true(rows[i].text.len <= rows[i].raw.len);
        for (size_t j = 0; j < KINF__ARRAY_LEN(rows); j++)
            assert_int_equal(kinf__json_string_equals(rows[i].raw, rows[j].text),
                             kinf_str_equal(rows[i].text, rows[j].text));
    }
}

static void decoding_writes_no_more_than_fits(void **state)
{
    char out[8];

    (void)state;
    memset(out, '#', sizeof out);
    assert_int_equal(kinf__json_unescape(KINF_STR("\"ab\\ncdef\""), out, 4), 7);
    assert_memory_equal(out + 4, "####", 4);
    assert_int_equal(kinf__json_unescape(KINF_STR("\"ab\\ncdef\""), NULL, 0), 7);
    assert_int_equal(kinf__json_unescape(KINF_STR("\"ab\\ncdef\""), out, 7), 7);
    assert_memory_equal(out, "ab\ncdef#", 8);
}

static void strings_are_equal_only_as_a_whole(void **state)
{
    (void)state;
    assert_true(kinf__json_string_equals(KINF_STR("\"\\u006dame\""), KINF_STR("mame")));
    assert_false(kinf__json_string_equals(KINF_STR("\"ab\""), KINF_STR("abc")));
    assert_false(kinf__json_string_equals(KINF_STR("\"abc\""), KINF_STR("ab")));
    assert_false(kinf__json_string_equals(KINF_STR("\"a\\u0062\""), KINF_STR("a\\u0062")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_standard_allows_is_accepted),
        cmocka_unit_test(what_the_standard_forbids_is_refused_where_it_is_wrong),
        cmocka_unit_test(a_scan_ends_behind_the_value),
        cmocka_unit_test(a_number_at_the_end_is_complete_only_if_the_text_is),
        cmocka_unit_test(a_whole_text_has_nothing_behind_its_value),
        cmocka_unit_test(nesting_is_limited_and_needs_no_stack),
        cmocka_unit_test(every_prefix_of_a_value_is_truncated),
        cmocka_unit_test(what_spoiled_text_is_accepted_cjson_accepts_too),
        cmocka_unit_test(compact_text_is_understood_wherever_it_lies),
        cmocka_unit_test(a_limit_of_nesting_holds_for_blocks_too),
        cmocka_unit_test(blocks_know_how_deep_they_begin),
        cmocka_unit_test(what_is_not_ascii_may_fill_blocks),
        cmocka_unit_test(what_ends_in_front_of_brackets_ends_there),
        cmocka_unit_test(spoiled_text_is_scanned_alike_by_blocks_and_by_tokens),
        cmocka_unit_test(an_error_is_found_at_its_first_byte),
        cmocka_unit_test(all_ways_to_look_at_a_block_agree),
        cmocka_unit_test(all_ways_to_fill_and_to_count_bits_agree),
        cmocka_unit_test(strings_of_any_length_end_where_they_end),
        cmocka_unit_test(an_error_says_where_and_shows_what_is_there),
        cmocka_unit_test(a_walk_gives_every_member_in_order),
        cmocka_unit_test(a_walk_gives_every_element_without_a_key),
        cmocka_unit_test(the_type_of_a_value_is_seen_at_its_first_byte),
        cmocka_unit_test(of_a_doubled_key_the_first_counts),
        cmocka_unit_test(strings_are_decoded_as_go_does),
        cmocka_unit_test(decoding_writes_no_more_than_fits),
        cmocka_unit_test(strings_are_equal_only_as_a_whole),
    };

    return cmocka_run_group_tests(tests, open_corpus, close_corpus);
}
