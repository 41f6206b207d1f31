/*
 * Prune plans: building them, and pruning compared with a twin that tries every rule on every
 * value.
 */
#include "json/plan.h"
#include "json/plan_priv.h"

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "unit/json_corpus.h"
#include "unit/test.h"

#define MAX_RULES      12
#define MAX_TWIN_DEPTH 1024

enum rule_type { RULE_DROP, RULE_KEEP, RULE_PROTECT, RULE_CAPTURE };

struct rule {
    enum rule_type type;
    struct kinf_path *path;
};

/* A plan and the rules that it was made of; rule i of type RULE_CAPTURE has slot i. */
struct rules {
    size_t n_rules;
    struct rule rules[MAX_RULES];
    struct kinf__json_plan *plan;
};

static struct kinf__json_capture captures[KINF__JSON_MAX_CAPTURES];

static struct kinf_path *parse_path(const char *text)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf_path *path = NULL;

    if (kinf_path_parse(text, &path, &err) < 0)
        fail_msg("%s", err.message);
    return path;
}

static void rules_init(struct rules *rules)
{
    rules->n_rules = 0;
    assert_int_equal(kinf__json_plan_new(&rules->plan, NULL), 0);
}

static void rules_release(struct rules *rules)
{
    for (size_t i = 0; i < rules->n_rules; i++)
        kinf_path_free(rules->rules[i].path);
    kinf__json_plan_free(rules->plan);
}

static void rules_add(struct rules *rules, enum rule_type type, const char *text)
{
    struct rule *rule = &rules->rules[rules->n_rules];
    struct kinf_error err = KINF_ERROR_INIT;
    int status;

    assert_true(rules->n_rules < MAX_RULES);
    *rule = (struct rule){ type, parse_path(text) };
    if (type == RULE_DROP)
        status = kinf__json_plan_drop(rules->plan, rule->path, &err);
    else if (type == RULE_KEEP)
        status = kinf__json_plan_keep(rules->plan, rule->path, &err);
    else if (type == RULE_PROTECT)
        status = kinf__json_plan_protect(rules->plan, rule->path, &err);
    else
        status = kinf__json_plan_capture(rules->plan, rule->path, (unsigned)rules->n_rules, &err);
    if (status < 0)
        fail_msg("%s", err.message);
    rules->n_rules++;
    assert_true(kinf__json_plan_check(rules->plan));
}

/* "-path" drops, "+path" keeps, "!path" protects, "@path" captures; several with spaces between. */
static void rules_parse(struct rules *rules, const char *text)
{
    static const char marks[] = "-+!@";
    char copy[256], *rest = copy, *word;

    rules_init(rules);
    snprintf(copy, sizeof copy, "%s", text);
    while ((word = strsep(&rest, " ")) != NULL) {
        if (*word != '\0')
            rules_add(rules, (enum rule_type)(strchr(marks, *word) - marks), word + 1);
    }
}

/* Of a text that was scanned before the same comes out, without scanning it again. */
static void assert_as_pruned_scanned(const struct rules *rules, struct kinf_str text,
                                     struct kinf_str expected,
                                     const struct kinf__json_capture *expected_captures)
{
    struct kinf__json_capture again[KINF__JSON_MAX_CAPTURES];
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;

    assert_int_equal(kinf__json_prune_scanned(rules->plan, text, NULL, 0, &out, again), 0);
    assert_true(kinf_str_equal(kinf__buffer_str(&out), expected));
    for (size_t i = 0; i < KINF__JSON_MAX_CAPTURES; i++) {
        assert_int_equal(again[i].n_found, expected_captures[i].n_found);
        assert_int_equal(again[i].is_dropped, expected_captures[i].is_dropped);
        assert_int_equal(again[i].type, expected_captures[i].type);
        assert_int_equal(again[i].offset, expected_captures[i].offset);
        assert_int_equal(again[i].len, expected_captures[i].len);
    }
}

static int prune(const struct rules *rules, struct kinf_str text, struct kinf__buffer *out)
{
    size_t len, before = out->len;
    int status = kinf__json_prune(rules->plan, text, true, out, captures, &len);

    if (status == 0) {
        assert_int_equal(len, text.len);
        assert_as_pruned_scanned(
            rules, text, (struct kinf_str){ out->bytes + before, out->len - before }, captures);
    }
    return status;
}

static void assert_pruned(const char *rule_text, const char *input, const char *expected)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct rules rules;

    rules_parse(&rules, rule_text);
    assert_int_equal(prune(&rules, kinf_str_from(input), &out), 0);
    if (!kinf_str_equal(kinf__buffer_str(&out), kinf_str_from(expected)))
        fail_msg("%s on %s gives %.*s, not %s", rule_text, input, (int)out.len, out.bytes,
                 expected);
    rules_release(&rules);
}

static void commas_are_right_wherever_a_member_goes(void **state)
{
    (void)state;
    assert_pruned("-a", "{\"a\":1,\"b\":2,\"c\":3}", "{\"b\":2,\"c\":3}");
    assert_pruned("-b", "{\"a\":1,\"b\":2,\"c\":3}", "{\"a\":1,\"c\":3}");
    assert_pruned("-c", "{\"a\":1,\"b\":2,\"c\":3}", "{\"a\":1,\"b\":2}");
    assert_pruned("-a -b", "{\"a\":1,\"b\":2,\"c\":3}", "{\"c\":3}");
    assert_pruned("-a -c", "{\"a\":1,\"b\":2,\"c\":3}", "{\"b\":2}");
    assert_pruned("-b -c", "{\"a\":1,\"b\":2,\"c\":3}", "{\"a\":1}");
    assert_pruned("-a -b -c", "{\"a\":1,\"b\":2,\"c\":3}", "{}");
    assert_pruned("-a", "{\"a\":{\"a\":[1,{}]}}", "{}");
    assert_pruned("-a -c", "{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"a\":5}", "{\"b\":2,\"d\":4}");
}

static void expect_keepable(const char *rule_text, const char *path_text, bool expected)
{
    struct kinf_path *path = parse_path(path_text);
    struct rules rules;

    rules_parse(&rules, rule_text);
    if (kinf__json_plan_can_keep(rules.plan, path) != expected)
        fail_msg("%s: %s", rule_text, path_text);
    kinf_path_free(path);
    rules_release(&rules);
}

static void what_may_stay_somewhere_is_known_beforehand(void **state)
{
    (void)state;
    expect_keepable("-a", "a", false);
    expect_keepable("-a", "a.b", false);
    expect_keepable("-a.b", "a", true);
    expect_keepable("-a.b", "a[*]", true);
    expect_keepable("-a[*]", "a.b", false);
    expect_keepable("-a[*]", "a[*]", false);
    expect_keepable("+a", "b", false);
    expect_keepable("+a", "a.b[*].c", true);
    expect_keepable("+a.b", "a[*]", true);
    expect_keepable("+a.b", "a.c", false);
    expect_keepable("+a[*].b", "a[*].b", true);
    expect_keepable("+a[*].b", "a[*].c", false);
    expect_keepable("+a !b", "b.c", true);
    expect_keepable("+a -a.b", "a.b", false);
}

static void expect_met(const char *rule_text, const char *input, const char *path_text,
                       bool expected)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct kinf_path *path = parse_path(path_text);
    struct rules rules;

    rules_parse(&rules, rule_text);
    assert_int_equal(prune(&rules, kinf_str_from(input), &out), 0);
    if (kinf__json_plan_has_met(rules.plan, path, true) != expected)
        fail_msg("%s on %s: %s", rule_text, input, path_text);
    kinf_path_free(path);
    rules_release(&rules);
}

/* Also where a key has rules of its own, beside those of every key. */
static void what_was_met_somewhere_is_known_afterwards(void **state)
{
    (void)state;
    expect_met("-a.b", "{\"a\":{\"b\":1}}", "a.b", true);
    expect_met("-a.b", "{\"a\":{\"c\":1}}", "a.b", false);
    expect_met("-a[*].b", "{\"a\":[{\"b\":1}]}", "a[*].b", true);
    expect_met("-a[*].b -a.x.c", "{\"a\":{\"x\":{\"b\":1}}}", "a[*].b", true);
    expect_met("-a[*].b -a.x.c", "{\"a\":{\"x\":{\"c\":1}}}", "a[*].b", false);
    expect_met("-a[*].b -a.x.c", "{\"a\":{\"y\":{\"b\":1}}}", "a[*].b", true);
}

static void white_space_goes_with_what_is_dropped(void **state)
{
    (void)state;
    assert_pruned("-b", " { \"a\" : 1 ,\n \"b\" : 2 }", "{ \"a\" : 1  }");
    assert_pruned("-a", "{\n \"a\": 1,\n \"b\": 2\n}", "{\n \"b\": 2\n}");
    assert_pruned("-b", "{\n \"a\": 1,\n \"b\": 2\n}", "{\n \"a\": 1\n}");
    assert_pruned("-a -b", "{\n \"a\": 1,\n \"b\": 2\n}", "{}");
    assert_pruned("-a[*]", "{\"a\":[ 1 , 2 ]}", "{\"a\":[]}");
}

static void only_what_is_named_goes(void **state)
{
    (void)state;
    assert_pruned("-a.b", "{\"a\":{\"b\":1,\"c\":2},\"b\":3}", "{\"a\":{\"c\":2},\"b\":3}");
    assert_pruned("-a.b", "{\"a\":{\"b\":1},\"b\":3}", "{\"a\":{},\"b\":3}");
    assert_pruned("-a.b", "{\"a\":[{\"b\":1}]}", "{\"a\":[{\"b\":1}]}");
    assert_pruned("-a.b", "{\"a\":\"b\"}", "{\"a\":\"b\"}");
    assert_pruned("-a", "[{\"a\":1}]", "[{\"a\":1}]");
    assert_pruned("-a", "\"a\"", "\"a\"");
    assert_pruned("-A -aa", "{\"a\":1}", "{\"a\":1}");
    assert_pruned("", "{\"a\":1}", "{\"a\":1}");
}

static void stars_name_every_element_and_value(void **state)
{
    (void)state;
    assert_pruned("-a[*]", "{\"a\":[1,[2],{}],\"b\":[]}", "{\"a\":[],\"b\":[]}");
    assert_pruned("-a[*]", "{\"a\":{\"x\":1,\"y\":2}}", "{\"a\":{}}");
    assert_pruned("-a[*].b", "{\"a\":[{\"b\":1},{\"c\":2,\"b\":3},4]}", "{\"a\":[{},{\"c\":2},4]}");
    assert_pruned("-a[*].b -a.x.c",
                  "{\"a\":{\"x\":{\"b\":1,\"c\":2,\"d\":3},\"y\":{\"b\":1,\"c\":2}}}",
                  "{\"a\":{\"x\":{\"d\":3},\"y\":{\"c\":2}}}");
    assert_pruned("-a.x.c -a[*].b",
                  "{\"a\":{\"x\":{\"b\":1,\"c\":2,\"d\":3},\"y\":{\"b\":1,\"c\":2}}}",
                  "{\"a\":{\"x\":{\"d\":3},\"y\":{\"c\":2}}}");
}

static void with_a_keep_the_rest_goes(void **state)
{
    (void)state;
    assert_pruned("+a", "{\"a\":{\"b\":1},\"c\":2}", "{\"a\":{\"b\":1}}");
    assert_pruned("+a.b", "{\"a\":{\"b\":1,\"c\":2},\"c\":3}", "{\"a\":{\"b\":1}}");
    assert_pruned("+a.b", "{\"a\":{\"c\":2},\"c\":3}", "{\"a\":{}}");
    assert_pruned("+a.b", "{\"a\":[{\"b\":2}],\"c\":3}", "{}");
    assert_pruned("+a.b", "{\"a\":\"b\"}", "{}");
    assert_pruned("+a[*].b", "{\"a\":[{\"b\":1,\"c\":2},3,{\"c\":4}]}", "{\"a\":[{\"b\":1},{}]}");
    assert_pruned("+a", "{\"c\":2}", "{}");
    assert_pruned("+a", "[1,2]", "[]");
    assert_pruned("+a", "17", "17");
}

static void drops_win_over_keeps_and_protection_over_both(void **state)
{
    (void)state;
    assert_pruned("+a -a.b", "{\"a\":{\"b\":1,\"c\":2},\"d\":3}", "{\"a\":{\"c\":2}}");
    assert_pruned("+a.b -a", "{\"a\":{\"b\":1,\"c\":2},\"d\":3}", "{}");
    assert_pruned("-a !a.b", "{\"a\":{\"b\":1,\"c\":2},\"d\":3}", "{\"a\":{\"b\":1},\"d\":3}");
    assert_pruned("-a !a.b", "{\"a\":1,\"d\":3}", "{\"d\":3}");
    assert_pruned("-a.b !a", "{\"a\":{\"b\":1},\"d\":3}", "{\"a\":{\"b\":1},\"d\":3}");
    assert_pruned("-a !a", "{\"a\":{\"b\":1},\"d\":3}", "{\"a\":{\"b\":1},\"d\":3}");
    assert_pruned("+d !a.b", "{\"a\":{\"b\":1,\"c\":2},\"d\":3,\"e\":4}",
                  "{\"a\":{\"b\":1},\"d\":3}");
    assert_pruned("-a[*] !a.b", "{\"a\":{\"b\":1,\"c\":2}}", "{\"a\":{\"b\":1}}");
}

static void keys_match_whatever_way_they_are_written(void **state)
{
    (void)state;
    assert_pruned("-metadata.x", "{\"meta\\u0064ata\":{\"\\u0078\":1,\"y\":2}}",
                  "{\"meta\\u0064ata\":{\"y\":2}}");
    assert_pruned("-x[\"a\\\\u0062\"]", "{\"x\":{\"a\\u0062\":1}}", "{\"x\":{\"a\\u0062\":1}}");
    assert_pruned("-a[\"b.c/d\"]", "{\"a\":{\"b.c\\/d\":1,\"b.c/d\":2,\"b\":3}}",
                  "{\"a\":{\"b\":3}}");
}

static void assert_capture(unsigned slot, unsigned n_found, bool is_dropped, struct kinf_str text,
                           const char *raw)
{
    const struct kinf__json_capture *capture = &captures[slot];

    assert_int_equal(capture->n_found, n_found);
    if (n_found == 0)
        return;
    assert_int_equal(capture->is_dropped, is_dropped);
    assert_int_equal(capture->len, strlen(raw));
    assert_true(capture->offset + capture->len <= text.len);
    assert_memory_equal(text.bytes + capture->offset, raw, capture->len);
    assert_int_equal(capture->type, kinf__json_value_of(kinf_str_from(raw)).type);
}

static void captures_know_where_a_value_went(void **state)
{
    struct kinf_str input = KINF_STR(
        " {\"x\":0,\"a\":{\"x\":1,\"b\":\"two\",\"c\":[3]},\"d\":{\"e\":null},\"f\":4.5} ");
    struct kinf_str start = KINF_STR("start");
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct rules rules;
    struct kinf_str output;
    size_t len;

    (void)state;
    rules_parse(&rules, "@a.b @a @d.e @f @g @a.b.c @d -x -a.x -d !f");
    assert_int_equal(kinf__buffer_append_str(&out, start), 0);
    assert_int_equal(kinf__json_prune(rules.plan, input, false, &out, captures, &len), 0);
    assert_int_equal(len, input.len - 1);
    output = (struct kinf_str){ out.bytes + start.len, out.len - start.len };
    assert_true(kinf_str_equal(output, KINF_STR("{\"a\":{\"b\":\"two\",\"c\":[3]},\"f\":4.5}")));
    assert_capture(0, 1, false, output, "\"two\"");
    assert_capture(1, 1, false, output, "{\"b\":\"two\",\"c\":[3]}");
    assert_capture(2, 1, true, input, "null");
    assert_capture(3, 1, false, output, "4.5");
    assert_capture(4, 0, false, output, "");
    assert_capture(5, 0, false, output, "");
    assert_capture(6, 1, true, input, "{\"e\":null}");
    rules_release(&rules);
}

static void doubled_keys_are_counted_and_the_last_is_noted(void **state)
{
    struct kinf_str input = KINF_STR("{\"a\":{\"b\":1},\"a\":{\"b\":2,\"\\u0062\":true},\"a\":{}}");
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct rules rules;

    (void)state;
    rules_parse(&rules, "@a.b @a");
    assert_int_equal(prune(&rules, input, &out), 0);
    assert_capture(0, 3, false, kinf__buffer_str(&out), "true");
    assert_capture(1, 3, false, kinf__buffer_str(&out), "{}");
    rules_release(&rules);
}

static void a_failure_leaves_the_output_as_it_was(void **state)
{
    struct kinf_str input = KINF_STR("{\"a\":1,\"b\":[1,2,{\"a\":3}],\"c\":x}");
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct rules rules;
    size_t len;

    (void)state;
    rules_parse(&rules, "-a -b[*]");
    assert_int_equal(kinf__buffer_append(&out, "old", 3), 0);
    assert_int_equal(kinf__json_prune(rules.plan, input, true, &out, captures, &len),
                     KINF_ERR_PARSE);
    assert_int_equal(len, input.len - 2);
    assert_int_equal(out.len, 3);
    assert_int_equal(kinf__json_prune(rules.plan, (struct kinf_str){ input.bytes, 20 }, true, &out,
                                      captures, &len),
                     KINF_ERR_TRUNCATED);
    assert_int_equal(out.len, 3);
    assert_memory_equal(out.bytes, "old", 3);
    rules_release(&rules);
}

/* Nobody will see it; where it ends is all that matters. */
static void what_goes_is_not_looked_into(void **state)
{
    static const char *const gone[] = {
        "{}",
        "[]",
        "{\"x\":tru,\"y\":[1,,2],\"s\":\"\x01\xff\"}",
        "[\"]\",\"\\\"]\",\"\\\\\",{\"}\":[[]]}]",
        "[0123456789,\"0123456789012345678901234567890123456789\\\"0123456789012345678901234]\"]",
    };
    struct rules rules;

    (void)state;
    rules_parse(&rules, "-a -c[*].d");
    for (size_t i = 0; i < KINF__ARRAY_LEN(gone); i++) {
        KINF__AUTO_BUFFER text = KINF__BUFFER_INIT, out = KINF__BUFFER_INIT;
        size_t len;

        assert_int_equal(kinf__buffer_printf(
                             &text, "{\"a\":%s,\"b\":\"x\",\"c\":[{\"d\":%s},{\"e\":1,\"d\":%s}]}",
                             gone[i], gone[i], gone[i]),
                         0);
        assert_int_equal(prune(&rules, kinf__buffer_str(&text), &out), 0);
        assert_string_equal(kinf__buffer_cstr(&out), "{\"b\":\"x\",\"c\":[{},{\"e\":1}]}");
        for (size_t n = 1; n < text.len; n++)
            assert_int_equal(kinf__json_prune(rules.plan, (struct kinf_str){ text.bytes, n }, false,
                                              &out, captures, &len),
                             KINF_ERR_TRUNCATED);
    }
    rules_release(&rules);
}

static void what_goes_is_captured_without_being_looked_into(void **state)
{
    const struct kinf_str input = KINF_STR("{\"a\":[1,,2],\"b\":0}");
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct rules rules;

    (void)state;
    rules_parse(&rules, "-a @a");
    assert_int_equal(prune(&rules, input, &out), 0);
    assert_string_equal(kinf__buffer_cstr(&out), "{\"b\":0}");
    assert_capture(1, 1, true, input, "[1,,2]");
    rules_release(&rules);
}

/* What is between is not looked at. */
static void what_is_known_to_end_is_stepped_over(void **state)
{
    const struct kinf_str input = KINF_STR("{\"a\":{\"[[[},\"b\":{\"c\":1,\"d\":[\"}]]]},\"e\":2}");
    static const struct kinf__json_stretch known[] = { { 0, 0 }, { 5, 6 }, { 27, 6 } };
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct rules rules;

    (void)state;
    rules_parse(&rules, "+b.c +e");
    assert_int_equal(
        kinf__json_prune_scanned(rules.plan, input, known, KINF__ARRAY_LEN(known), &out, captures),
        0);
    assert_string_equal(kinf__buffer_cstr(&out), "{\"b\":{\"c\":1},\"e\":2}");
    rules_release(&rules);
}

static void depth_is_counted_from_the_outermost_value(void **state)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT, out = KINF__BUFFER_INIT;
    struct rules rules;
    size_t len;

    (void)state;
    rules_parse(&rules, "-a.a.a.b");
    for (size_t i = 0; i < KINF__JSON_MAX_DEPTH; i++)
        assert_int_equal(kinf__buffer_append(&text, "{\"a\":", 5), 0);
    assert_int_equal(kinf__buffer_append(&text, "0", 1), 0);
    for (size_t i = 0; i < KINF__JSON_MAX_DEPTH; i++)
        assert_int_equal(kinf__buffer_append(&text, "}", 1), 0);
    assert_int_equal(prune(&rules, kinf__buffer_str(&text), &out), 0);
    assert_int_equal(out.len, text.len);
    text.bytes[KINF__JSON_MAX_DEPTH * 5] = '[';
    assert_int_equal(
        kinf__json_prune(rules.plan, kinf__buffer_str(&text), true, &out, captures, &len),
        KINF_ERR_LIMIT);
    assert_int_equal(len, KINF__JSON_MAX_DEPTH * 5);
    rules_release(&rules);
}

static void a_plan_refuses_what_it_cannot_mean(void **state)
{
    struct kinf_path *number = parse_path("a[0]"), *each = parse_path("a[*].b"),
                     *key = parse_path("a.b");
    struct kinf_error err = KINF_ERROR_INIT;
    struct rules rules;

    (void)state;
    rules_init(&rules);
    assert_int_equal(kinf__json_plan_drop(rules.plan, number, &err), KINF_ERR_INVALID);
    assert_non_null(strstr(err.message, "a[0]"));
    assert_int_equal(kinf__json_plan_keep(rules.plan, number, &err), KINF_ERR_INVALID);
    assert_int_equal(kinf__json_plan_protect(rules.plan, number, NULL), KINF_ERR_INVALID);
    assert_int_equal(kinf__json_plan_capture(rules.plan, number, 0, &err), KINF_ERR_INVALID);
    assert_int_equal(kinf__json_plan_capture(rules.plan, each, 0, &err), KINF_ERR_INVALID);
    assert_int_equal(kinf__json_plan_capture(rules.plan, key, KINF__JSON_MAX_CAPTURES, &err),
                     KINF_ERR_INVALID);
    assert_int_equal(kinf__json_plan_capture(rules.plan, key, 0, &err), 0);
    assert_int_equal(kinf__json_plan_capture(rules.plan, key, 0, &err), KINF_ERR_INVALID);
    assert_true(kinf__json_plan_check(rules.plan));
    rules_release(&rules);
    kinf_path_free(number);
    kinf_path_free(each);
    kinf_path_free(key);
}

static void repeated_stars_are_limited_not_exponential(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct rules rules;
    int status = 0;
    char text[3 * KINF_PATH_MAX_STEPS + 8];

    (void)state;
    rules_init(&rules);
    for (unsigned i = 0; status == 0 && i < 64; i++) {
        struct kinf_path *path;

        strcpy(text, "a");
        for (unsigned step = 0; step < 20; step++)
            strcat(text, step == i % 20 ? (i < 20 ? ".k" : ".l") : "[*]");
        path = parse_path(text);
        status = kinf__json_plan_drop(rules.plan, path, &err);
        kinf_path_free(path);
    }
    assert_int_equal(status, KINF_ERR_LIMIT);
    assert_true(kinf__json_plan_check(rules.plan));
    rules_release(&rules);
}

static void the_check_finds_a_broken_trie(void **state)
{
    struct kinf__plan_node *swap, **nodes;
    struct rules rules;

    (void)state;
    rules_parse(&rules, "-a -b.c +d[*].e +d.f @g");
    nodes = rules.plan->root.nodes;
    swap = nodes[0];
    nodes[0] = nodes[1];
    nodes[1] = swap;
    assert_false(kinf__json_plan_check(rules.plan));
    nodes[1] = nodes[0];
    nodes[0] = swap;
    assert_true(kinf__json_plan_check(rules.plan));
    nodes[1]->marks_below = 0;
    assert_false(kinf__json_plan_check(rules.plan));
    nodes[1]->marks_below = KINF__PLAN_DROP;
    assert_true(kinf__json_plan_check(rules.plan));
    nodes[2]->nodes[0]->nodes[0]->marks = 0;
    assert_false(kinf__json_plan_check(rules.plan));
    nodes[2]->nodes[0]->nodes[0]->marks = KINF__PLAN_KEEP;
    rules.plan->n_nodes++;
    assert_false(kinf__json_plan_check(rules.plan));
    rules.plan->n_nodes--;
    nodes[3]->captures = 0;
    assert_false(kinf__json_plan_check(rules.plan));
    rules_release(&rules);
}

/* --- the twin --- */

/* Where the twin is; a key is NULL for an element. */
struct place {
    size_t depth;
    const char *keys[MAX_TWIN_DEPTH];
};

struct twin_capture {
    unsigned n_found;
    bool is_dropped;
    char *text;
};

struct twin {
    const struct rules *rules;
    struct place place;
    struct twin_capture captures[KINF__JSON_MAX_CAPTURES];
};

static bool step_matches(const struct kinf__path_step *step, const char *key)
{
    return step->type == KINF__PATH_EACH ||
           (key != NULL && kinf_str_equal(step->key, kinf_str_from(key)));
}

/* How many steps of the path match the place, if all of the shorter one do; else 0. */
static size_t common_steps(const struct kinf_path *path, const struct place *place)
{
    size_t n_steps = path->n_steps < place->depth ? path->n_steps : place->depth;

    for (size_t i = 0; i < n_steps; i++) {
        if (!step_matches(&path->steps[i], place->keys[i]))
            return 0;
    }
    return n_steps;
}

/* Whether a rule of this type names the place or something around it. */
static bool is_named(const struct twin *twin, enum rule_type type)
{
    for (size_t i = 0; i < twin->rules->n_rules; i++) {
        const struct rule *rule = &twin->rules->rules[i];

        if (rule->type == type && common_steps(rule->path, &twin->place) == rule->path->n_steps)
            return true;
    }
    return false;
}

static bool has_rule(const struct rules *rules, enum rule_type type)
{
    for (size_t i = 0; i < rules->n_rules; i++) {
        if (rules->rules[i].type == type)
            return true;
    }
    return false;
}

/* Whether a rule of this type may name something inside the value at the place. */
static bool is_inside(const struct twin *twin, enum rule_type type, const cJSON *value)
{
    size_t depth = twin->place.depth;

    for (size_t i = 0; i < twin->rules->n_rules; i++) {
        const struct rule *rule = &twin->rules->rules[i];

        if (rule->type == type && rule->path->n_steps > depth &&
            common_steps(rule->path, &twin->place) == depth &&
            (cJSON_IsObject(value) ||
             (cJSON_IsArray(value) && rule->path->steps[depth].type == KINF__PATH_EACH)))
            return true;
    }
    return false;
}

static bool twin_stays(const struct twin *twin, const cJSON *value)
{
    bool is_dropped = is_named(twin, RULE_DROP);

    if (is_named(twin, RULE_PROTECT) || is_inside(twin, RULE_PROTECT, value))
        return true;
    if (is_dropped)
        return false;
    return !has_rule(twin->rules, RULE_KEEP) || is_named(twin, RULE_KEEP) ||
           is_inside(twin, RULE_KEEP, value);
}

static void twin_capture(struct twin *twin, const cJSON *value, bool is_gone)
{
    for (size_t i = 0; i < twin->rules->n_rules; i++) {
        const struct rule *rule = &twin->rules->rules[i];

        if (rule->type != RULE_CAPTURE || rule->path->n_steps != twin->place.depth ||
            common_steps(rule->path, &twin->place) != rule->path->n_steps)
            continue;
        free(twin->captures[i].text);
        twin->captures[i].n_found++;
        twin->captures[i].is_dropped = is_gone;
        twin->captures[i].text = cJSON_PrintUnformatted(value);
    }
}

static void twin_prune(struct twin *twin, cJSON *container, bool is_gone)
{
    cJSON *next;

    assert_true(twin->place.depth < MAX_TWIN_DEPTH);
    twin->place.depth++;
    for (cJSON *value = container->child; value != NULL; value = next) {
        bool goes;

        next = value->next;
        twin->place.keys[twin->place.depth - 1] = cJSON_IsObject(container) ? value->string : NULL;
        goes = is_gone || !twin_stays(twin, value);
        twin_prune(twin, value, goes);
        twin_capture(twin, value, goes);
        if (goes && !is_gone)
            cJSON_Delete(cJSON_DetachItemViaPointer(container, value));
    }
    twin->place.depth--;
}

static cJSON *parse_tree(struct kinf_str text)
{
    return cJSON_ParseWithLength(text.bytes, text.len);
}

static void assert_same_text(struct kinf_str ours, const char *expected, const char *what,
                             struct kinf_str input)
{
    cJSON *tree = parse_tree(ours);
    char *text = tree != NULL ? cJSON_PrintUnformatted(tree) : NULL;

    if (text == NULL || strcmp(text, expected) != 0)
        fail_msg("%s of %.*s: %.*s, not %s", what, (int)input.len, input.bytes, (int)ours.len,
                 ours.bytes, expected);
    free(text);
    cJSON_Delete(tree);
}

static void assert_same_captures(const struct twin *twin, struct kinf_str input,
                                 struct kinf_str output)
{
    for (size_t i = 0; i < KINF__JSON_MAX_CAPTURES; i++) {
        const struct twin_capture *expected = &twin->captures[i];
        struct kinf_str from = captures[i].is_dropped ? input : output;

        assert_int_equal(captures[i].n_found, expected->n_found);
        if (expected->n_found == 0)
            continue;
        assert_int_equal(captures[i].is_dropped, expected->is_dropped);
        assert_true(captures[i].offset <= from.len &&
                    captures[i].len <= from.len - captures[i].offset);
        from = (struct kinf_str){ from.bytes + captures[i].offset, captures[i].len };
        assert_int_equal(captures[i].type, kinf__json_value_of(from).type);
        assert_same_text(from, expected->text, "capture", input);
    }
}

/* Prunes both ways and compares. Text that cJSON does not take is left out. */
static void assert_as_twin(const struct rules *rules, struct kinf_str input)
{
    struct twin twin = { .rules = rules };
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    cJSON *tree = parse_tree(input);
    char *expected;
    size_t len;

    if (tree == NULL)
        return;
    twin_prune(&twin, tree, false);
    expected = cJSON_PrintUnformatted(tree);
    assert_int_equal(prune(rules, input, &out), 0);
    assert_int_equal(kinf__json_scan_all(kinf__buffer_str(&out), KINF__JSON_MAX_DEPTH, &len), 0);
    assert_same_text(kinf__buffer_str(&out), expected, "output", input);
    assert_same_captures(&twin, input, kinf__buffer_str(&out));
    for (size_t i = 0; i < KINF__JSON_MAX_CAPTURES; i++)
        free(twin.captures[i].text);
    free(expected);
    cJSON_Delete(tree);
}

/* --- random rules and documents --- */

static void put(struct kinf__buffer *text, const char *piece)
{
    assert_int_equal(kinf__buffer_append_str(text, kinf_str_from(piece)), 0);
}

static void put_white(struct test_random *random, struct kinf__buffer *text)
{
    static const char *const whites[] = { " ", "\n\t", "\r\n  " };

    if (test_random_below(random, 8) == 0)
        put(text, whites[test_random_below(random, KINF__ARRAY_LEN(whites))]);
}

static void put_value(struct test_random *random, struct kinf__buffer *text, unsigned depth)
{
    static const char *const keys[] = { "\"a\"",       "\"b\"",       "\"c\"", "\"long.key/x\"",
                                        "\"\\u0061\"", "\"\\u0062\"", "\"\"",  "\"d\\n\"" };
    static const char *const scalars[] = {
        "0",  "-1.5e3", "true", "null", "\"\"", "\"a,]}\\\"\"", "\"0123456789abcdef\xc3\xa9\"",
        "{}", "[]",     "[ ]"
    };
    size_t type = test_random_below(random, depth == 0 ? 2 : depth < 6 ? 4 : 8), n_members;

    if (type > 1) {
        put(text, scalars[test_random_below(random, KINF__ARRAY_LEN(scalars))]);
        return;
    }
    put(text, type == 0 ? "{" : "[");
    n_members = test_random_below(random, 5);
    for (size_t i = 0; i < n_members; i++) {
        put_white(random, text);
        if (type == 0) {
            put(text, keys[test_random_below(random, KINF__ARRAY_LEN(keys))]);
            put_white(random, text);
            put(text, ":");
            put_white(random, text);
        }
        put_value(random, text, depth + 1);
        put_white(random, text);
        put(text, i + 1 < n_members ? "," : "");
    }
    put(text, type == 0 ? "}" : "]");
}

static void random_rules(struct test_random *random, struct rules *rules)
{
    static const char *const keys[] = {
        ".a", ".b", ".c", "[\"long.key/x\"]", "[\"\"]", "[\"d\\n\"]"
    };
    size_t n_rules = test_random_below(random, MAX_RULES);

    rules_init(rules);
    for (size_t i = 0; i < n_rules; i++) {
        enum rule_type type = (enum rule_type)test_random_below(random, 4);
        size_t n_more = test_random_below(random, 4);
        char text[128];

        snprintf(text, sizeof text, "%s", test_random_below(random, 2) == 0 ? "a" : "b");
        for (size_t step = 0; step < n_more; step++) {
            if (type != RULE_CAPTURE && test_random_below(random, 3) == 0)
                strcat(text, "[*]");
            else
                strcat(text, keys[test_random_below(random, KINF__ARRAY_LEN(keys))]);
        }
        rules_add(rules, type, text);
    }
}

static void pruning_equals_trying_every_rule_on_every_value(void **state)
{
    struct test_random random = test_random_init("pruning_equals_trying_every_rule_on_every_value");
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)state;
    for (size_t round = 0; round < test_rounds(20000); round++) {
        struct rules rules;

        random_rules(&random, &rules);
        for (int i = 0; i < 4; i++) {
            text.len = 0;
            put_value(&random, &text, 0);
            assert_as_twin(&rules, kinf__buffer_str(&text));
        }
        rules_release(&rules);
    }
}

static const char *const corpus_rules[] = {
    "-metadata.managedFields -object.metadata.managedFields -items[*].metadata.managedFields "
    "@metadata.name @object.metadata.resourceVersion",
    "+metadata.labels +object.spec +items[*].status !metadata.name !object.metadata.name "
    "@object.metadata.uid @object.kind @type @kind @items",
    "-metadata -object.metadata -items[*].metadata !metadata.uid !object.metadata.uid "
    "!items[*].metadata.name @metadata @object.metadata.name",
    "-a[*] -data[*] -object[*][*]",
    "@metadata @object.metadata.name @kind",
};

static void open_corpus(struct json_corpus *corpus)
{
    char dir[1024];

    snprintf(dir, sizeof dir, "%s/transcripts", test_data_dir());
    json_corpus_init(corpus, dir);
}

static void recorded_answers_are_pruned_as_the_twin_does(void **state)
{
    struct json_corpus corpus;
    struct rules rules;

    (void)state;
    open_corpus(&corpus);
    for (size_t i = 0; i < KINF__ARRAY_LEN(corpus_rules); i++) {
        rules_parse(&rules, corpus_rules[i]);
        for (size_t j = 0; j < corpus.n_texts; j++)
            assert_as_twin(&rules, corpus.texts[j]);
        rules_release(&rules);
    }
    json_corpus_release(&corpus);
}

static bool has_drops(const struct rules *rules)
{
    for (size_t i = 0; i < rules->n_rules; i++) {
        if (rules->rules[i].type == RULE_DROP || rules->rules[i].type == RULE_KEEP)
            return true;
    }
    return false;
}

/* Both must agree on every text, right or cut, and on the place where it ends; where it is spoiled, too, if nothing goes,
 * else what goes may be what is spoiled. What stays is right in any case. The copy ends where its allocation does, so that
 * the sanitizer sees a read behind it. */
static void assert_as_scanned(const struct rules *rules, struct kinf_str text, bool is_final)
{
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    char *copy = malloc(text.len != 0 ? text.len : 1);
    size_t len, scanned_len;
    int status, scanned;

    assert_non_null(copy);
    memcpy(copy, text.bytes, text.len);
    text.bytes = copy;
    scanned = kinf__json_scan(text, is_final, &scanned_len);
    status = kinf__json_prune(rules->plan, text, is_final, &out, captures, &len);
    if (scanned == 0 || scanned == KINF_ERR_TRUNCATED || !has_drops(rules)) {
        assert_int_equal(status, scanned);
        assert_int_equal(len, scanned_len);
    }
    if (status < 0)
        assert_int_equal(out.len, 0);
    else
        assert_int_equal(kinf__json_scan_all(kinf__buffer_str(&out), KINF__JSON_MAX_DEPTH, &len),
                         0);
    if (scanned == 0)
        assert_as_pruned_scanned(rules, (struct kinf_str){ copy, scanned_len },
                                 kinf__buffer_str(&out), captures);
    free(copy);
}

static void what_stays_is_what_scanning_accepts(void **state)
{
    struct test_random random = test_random_init("what_stays_is_what_scanning_accepts");
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct json_corpus corpus;
    struct rules rules[KINF__ARRAY_LEN(corpus_rules)];

    (void)state;
    open_corpus(&corpus);
    for (size_t i = 0; i < KINF__ARRAY_LEN(rules); i++)
        rules_parse(&rules[i], corpus_rules[i]);
    for (size_t i = 0; i < test_rounds(100000); i++) {
        json_corpus_mutate(&corpus, &random, 4096, &text);
        assert_as_scanned(&rules[i % KINF__ARRAY_LEN(rules)], kinf__buffer_str(&text), i % 8 != 0);
    }
    for (size_t i = 0; i < KINF__ARRAY_LEN(rules); i++)
        rules_release(&rules[i]);
    json_corpus_release(&corpus);
}

static void every_prefix_is_truncated(void **state)
{
    struct test_random random = test_random_init("every_prefix_is_truncated");
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)state;
    for (size_t round = 0; round < test_rounds(1000); round++) {
        struct rules rules;

        random_rules(&random, &rules);
        text.len = 0;
        put_value(&random, &text, 0);
        for (size_t cut = 0; cut <= text.len; cut++)
            assert_as_scanned(&rules, (struct kinf_str){ text.bytes, cut }, cut % 2 == 0);
        rules_release(&rules);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_are_right_wherever_a_member_goes),
        cmocka_unit_test(what_may_stay_somewhere_is_known_beforehand),
        cmocka_unit_test(what_was_met_somewhere_is_known_afterwards),
        cmocka_unit_test(white_space_goes_with_what_is_dropped),
        cmocka_unit_test(only_what_is_named_goes),
        cmocka_unit_test(stars_name_every_element_and_value),
        cmocka_unit_test(with_a_keep_the_rest_goes),
        cmocka_unit_test(drops_win_over_keeps_and_protection_over_both),
        cmocka_unit_test(keys_match_whatever_way_they_are_written),
        cmocka_unit_test(captures_know_where_a_value_went),
        cmocka_unit_test(doubled_keys_are_counted_and_the_last_is_noted),
        cmocka_unit_test(a_failure_leaves_the_output_as_it_was),
        cmocka_unit_test(what_goes_is_not_looked_into),
        cmocka_unit_test(what_goes_is_captured_without_being_looked_into),
        cmocka_unit_test(what_is_known_to_end_is_stepped_over),
        cmocka_unit_test(depth_is_counted_from_the_outermost_value),
        cmocka_unit_test(a_plan_refuses_what_it_cannot_mean),
        cmocka_unit_test(repeated_stars_are_limited_not_exponential),
        cmocka_unit_test(the_check_finds_a_broken_trie),
        cmocka_unit_test(pruning_equals_trying_every_rule_on_every_value),
        cmocka_unit_test(recorded_answers_are_pruned_as_the_twin_does),
        cmocka_unit_test(what_stays_is_what_scanning_accepts),
        cmocka_unit_test(every_prefix_is_truncated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
