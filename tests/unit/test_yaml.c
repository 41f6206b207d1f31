/*
 * YAML trees: places, limits, typed fields.
 */
#include "yaml/yaml.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "unit/allocation.h"
#include "unit/test.h"

static struct kinf__yaml *parse(const char *text)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__yaml *yaml = NULL;

    if (kinf__yaml_parse(kinf_str_from(text), "f", &yaml, &err) < 0)
        fail_msg("%s", err.message);
    return yaml;
}

static void assert_refused(const char *text, int code, const char *place)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__yaml *yaml = NULL;

    assert_int_equal(kinf__yaml_parse(kinf_str_from(text), "f", &yaml, &err), code);
    if (strncmp(err.message, place, strlen(place)) != 0)
        fail_msg("'%s' does not begin with '%s'", err.message, place);
}

static void nodes_know_where_they_stood(void **state)
{
    struct kinf__yaml *yaml = parse("a: 1\nlist:\n  - x\n  - {k: 'v'}\n");
    const struct kinf__yaml_node *root = kinf__yaml_root(yaml),
                                 *list = kinf__yaml_get(root, "list");

    (void)state;
    assert_int_equal(root->n_items, 2);
    assert_int_equal(kinf__yaml_get(root, "a")->line, 1);
    assert_int_equal(kinf__yaml_get(root, "a")->column, 4);
    assert_int_equal(list->n_items, 2);
    assert_int_equal(list->items[0]->line, 3);
    assert_int_equal(list->items[0]->column, 5);
    assert_true(kinf__yaml_get(list->items[1], "k")->is_quoted);
    assert_string_equal(kinf__yaml_get(list->items[1], "k")->text.bytes, "v");
    assert_null(kinf__yaml_get(root, "absent"));
    kinf__yaml_free(yaml);
}

static void json_is_yaml_enough(void **state)
{
    struct kinf__yaml *yaml = parse("{\"a\": [1, {\"b\": \"c\\n\"}], \"d\": null}");

    (void)state;
    assert_string_equal(
        kinf__yaml_get(kinf__yaml_get(kinf__yaml_root(yaml), "a")->items[1], "b")->text.bytes,
        "c\n");
    assert_null(kinf__yaml_get(kinf__yaml_root(yaml), "d"));
    kinf__yaml_free(yaml);
}

static void nothing_is_null(void **state)
{
    static const char *const texts[] = { "", "# only a comment\n", "~", "null", "---\n" };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct kinf__yaml *yaml = parse(texts[i]);

        assert_true(kinf__yaml_is_null(kinf__yaml_root(yaml)));
        kinf__yaml_free(yaml);
    }
}

static void what_is_wrong_has_a_place(void **state)
{
    (void)state;
    assert_refused("a: [1\n", KINF_ERR_PARSE, "f:2:1: ");
    assert_refused("a: 1\na: 2\n", KINF_ERR_PARSE, "f:2:1: this key is there twice");
    assert_refused("a: 1\n---\nb: 2\n", KINF_ERR_PARSE, "f:2:1: a second document");
    assert_refused("? [a]\n: b\n", KINF_ERR_PARSE, "f:1:3: a key that is no plain text");
    assert_refused("a: *none\n", KINF_ERR_PARSE, "f:1:4: ");
    assert_refused("a: &x [*x]\n", KINF_ERR_PARSE, "f:1:8: an alias inside its own anchor");
    assert_refused("a: \"x\\0y\"\n", KINF_ERR_PARSE, "f:1:4: a NUL in a text");
    assert_refused("\tb: 1\n", KINF_ERR_PARSE, "f:1:1: a tab: YAML is indented by blanks");
    assert_refused("a:\n\t- b\n", KINF_ERR_PARSE, "f:2:1: a tab: YAML is indented by blanks");
    assert_refused("a: 1\nb: \xff\n", KINF_ERR_PARSE, "f:2:4: ");
    assert_refused("a: 1\nb: \x01\n", KINF_ERR_PARSE, "f:2:4: ");
    assert_refused("c:\n  <<: 5\n", KINF_ERR_PARSE, "f:2:7: << takes a mapping");
    assert_refused("c:\n  <<:\n", KINF_ERR_PARSE, "f:2:6: << takes a mapping");
    assert_refused("c:\n  <<: [[{a: 1}]]\n", KINF_ERR_PARSE, "f:2:8: << takes a mapping");
    assert_refused("c:\n  <<: {a: 1}\n  b: 1\n  b: 2\n", KINF_ERR_PARSE, "f:4:3: this key is");
}

/* --- streams --- */

struct taking {
    char texts[256]; /* each document's "a", a comma behind it */
    size_t n_taken;
    size_t n_wanted; /* 0: all */
    int failed;      /* what to return instead */
};

static int take(const struct kinf__yaml *yaml, void *ctx)
{
    struct taking *taking = ctx;
    const struct kinf__yaml_node *a = kinf__yaml_get(kinf__yaml_root(yaml), "a");

    assert_string_equal(kinf__yaml_file(yaml), "f");
    snprintf(taking->texts + strlen(taking->texts), sizeof taking->texts - strlen(taking->texts),
             "%s,", a != NULL ? a->text.bytes : "null");
    taking->n_taken++;
    return taking->failed < 0 ? taking->failed : taking->n_taken == taking->n_wanted;
}

static int parse_all(const char *text, struct taking *taking, struct kinf_error *err)
{
    return kinf__yaml_parse_all(kinf_str_from(text), "f", false, take, taking, err);
}

static void documents_come_one_after_the_other(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct taking taking = { .n_taken = 0 };

    (void)state;
    assert_int_equal(
        parse_all("a: 1\n---\n# nothing\n---\na: 2\n...\n---\n{a: 3}\n", &taking, &err), 0);
    assert_string_equal(taking.texts, "1,null,2,3,");
    taking = (struct taking){ .n_taken = 0 };
    assert_int_equal(parse_all("# nothing\n", &taking, &err), 0);
    assert_int_equal(taking.n_taken, 0);
    assert_int_equal(err.code, 0);
}

static void what_is_behind_the_last_one_wanted_is_not_looked_at(void **state)
{
    struct taking taking = { .n_wanted = 1 };

    (void)state;
    assert_int_equal(parse_all("a: 1\n---\n]\n", &taking, NULL), 0);
    assert_string_equal(taking.texts, "1,");
}

static void a_taker_may_fail(void **state)
{
    struct taking taking = { .failed = KINF_ERR_STATE };

    (void)state;
    assert_int_equal(parse_all("a: 1\n---\na: 2\n", &taking, NULL), KINF_ERR_STATE);
    assert_int_equal(taking.n_taken, 1);
}

static void places_count_through_the_stream(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct taking taking = { .n_taken = 0 };

    (void)state;
    assert_int_equal(parse_all("a: 1\n---\na: 2\na: 3\n", &taking, &err), KINF_ERR_PARSE);
    assert_string_equal(err.message, "f:4:1: this key is there twice");
    assert_string_equal(taking.texts, "1,");
    assert_int_equal(kinf__yaml_parse_all(KINF_STR("a: 2\na: 3\n"), "f", true, take, &taking, &err),
                     0);
}

static void anchors_end_with_their_document(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct taking taking = { .n_taken = 0 };

    (void)state;
    assert_int_equal(parse_all("a: &x 1\n---\na: *x\n", &taking, &err), KINF_ERR_PARSE);
    assert_string_equal(err.message, "f:3:4: an alias without an anchor");
}

static void limits_are_of_each_document(void **state)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct taking taking = { .n_taken = 0 };

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(kinf__buffer_printf(&text, "---\nb: &x [1,1,1,1,1,1,1,1]\nc: ["), 0);
        for (size_t k = 0; k < KINF__YAML_MAX_NODES / 20; k++)
            assert_int_equal(kinf__buffer_append(&text, "*x,", 3), 0);
        assert_int_equal(kinf__buffer_printf(&text, "]\n"), 0);
    }
    assert_int_equal(parse_all(kinf__buffer_cstr(&text), &taking, NULL), 0);
    assert_int_equal(taking.n_taken, 3);
}

static void a_tag_says_what_is_text(void **state)
{
    struct kinf__yaml *yaml = parse("[!!str 5, !x 5, !!int '5', !!null '', 5]");
    const struct kinf__yaml_node *root = kinf__yaml_root(yaml);

    (void)state;
    assert_true(root->items[0]->is_quoted);
    assert_true(root->items[1]->is_quoted);
    assert_false(root->items[2]->is_quoted);
    assert_true(kinf__yaml_is_null(root->items[3]));
    assert_false(root->items[4]->is_quoted);
    kinf__yaml_free(yaml);
}

static void a_stream_without_memory_is_an_error(void **state)
{
    bool did_fail = true;

    (void)state;
    for (size_t n = 1; did_fail; n++) {
        struct kinf_error err = KINF_ERROR_INIT;
        struct taking taking = { .n_taken = 0 };
        int failed;

        test_fail_allocation(n);
        failed = parse_all("a: &x 1\n---\n<<: {a: [&x b, *x]}\n", &taking, &err);
        did_fail = test_allocation_failed();
        assert_int_equal(failed, did_fail ? KINF_ERR_NO_MEMORY : 0);
    }
}

static void of_a_kubeconfig_the_first_document_counts(void **state)
{
    static const char *const rows[][2] = { { "a: 1\n---\na: 2\n", "1" },
                                           { "---\na: 1\n---\n]\n", "1" },
                                           { "{a: 1}\n...\nfoo: [}\n", "1" },
                                           { "---\n# nothing\n---\na: 2\n", NULL } };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[] = "/tmp/kinformer-test-XXXXXX";
        KINF__AUTO_CLOSE int fd = mkstemp(path);
        struct kinf__yaml *yaml = NULL;
        const struct kinf__yaml_node *a;

        assert_true(fd >= 0);
        assert_true(dprintf(fd, "%s", rows[i][0]) > 0);
        assert_int_equal(kinf__yaml_read_first(path, &yaml, NULL), 0);
        a = kinf__yaml_get(kinf__yaml_root(yaml), "a");
        if (rows[i][1] != NULL)
            assert_string_equal(a->text.bytes, rows[i][1]);
        else
            assert_null(a);
        kinf__yaml_free(yaml);
        unlink(path);
    }
}

/* --- trees --- */

static void aliases_stand_for_their_anchor(void **state)
{
    struct kinf__yaml *yaml = parse("a: &x {k: v}\nb: *x\nc: &x w\nd: *x\n");
    const struct kinf__yaml_node *root = kinf__yaml_root(yaml);

    (void)state;
    assert_ptr_equal(kinf__yaml_get(root, "a"), kinf__yaml_get(root, "b"));
    assert_string_equal(kinf__yaml_get(root, "d")->text.bytes, "w");
    kinf__yaml_free(yaml);
}

/* "key=value " of a mapping of scalars. */
static void assert_merged(const char *text, const char *expected)
{
    struct kinf__yaml *yaml = parse(text);
    const struct kinf__yaml_node *c = kinf__yaml_get(kinf__yaml_root(yaml), "c");
    KINF__AUTO_BUFFER pairs = KINF__BUFFER_INIT;

    assert_non_null(c);
    for (size_t i = 0; i < c->n_items; i++)
        assert_int_equal(kinf__buffer_printf(&pairs, "%s=%s ", c->items[2 * i]->text.bytes,
                                             c->items[2 * i + 1]->text.bytes),
                         0);
    assert_string_equal(kinf__buffer_cstr(&pairs), expected);
    kinf__yaml_free(yaml);
}

/* Each row as `kubectl config view` shows it. */
static void merge_keys_are_what_they_stand_for(void **state)
{
    (void)state;
    assert_merged("a: &x {k: v, l: w}\nc:\n  <<: *x\n  k: z\n", "l=w k=z ");
    assert_merged("c:\n  a: 2\n  <<: {a: 1}\n", "a=1 ");
    assert_merged("c:\n  <<: [{a: 1, b: 1}, {a: 2, c: 2}]\n  d: 3\n", "c=2 a=1 b=1 d=3 ");
    assert_merged("c:\n  <<: {a: 1}\n  <<: {a: 2}\n", "a=2 ");
    assert_merged("c:\n  <<: {<<: {a: 1}, b: 2}\n", "a=1 b=2 ");
    assert_merged("c:\n  !!merge <<: {a: 1}\n", "a=1 ");
    assert_merged("c:\n  \"<<\": text\n", "<<=text ");
    assert_merged("c: {<<: []}\n", "");
    assert_merged("<<: {c: {a: 1}}\n", "a=1 ");
}

/* Nine lines that stand for a thousand million nodes. */
static void an_alias_bomb_is_refused(void **state)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)state;
    assert_int_equal(kinf__buffer_printf(&text, "l0: &l0 [x,x,x,x,x,x,x,x,x,x]\n"), 0);
    for (int i = 1; i < 9; i++) {
        assert_int_equal(kinf__buffer_printf(&text, "l%d: &l%d [", i, i), 0);
        for (int k = 0; k < 10; k++)
            assert_int_equal(kinf__buffer_printf(&text, "%s*l%d", k != 0 ? "," : "", i - 1), 0);
        assert_int_equal(kinf__buffer_printf(&text, "]\n"), 0);
    }
    assert_refused(kinf__buffer_cstr(&text), KINF_ERR_LIMIT, "f:6:");
}

static void depth_is_limited(void **state)
{
    char text[2 * KINF__YAML_MAX_DEPTH + 3];

    (void)state;
    memset(text, '[', KINF__YAML_MAX_DEPTH);
    memset(text + KINF__YAML_MAX_DEPTH, ']', KINF__YAML_MAX_DEPTH);
    text[2 * KINF__YAML_MAX_DEPTH] = '\0';
    kinf__yaml_free(parse(text));
    memset(text, '[', KINF__YAML_MAX_DEPTH + 1);
    text[KINF__YAML_MAX_DEPTH + 1] = '\0';
    assert_refused(text, KINF_ERR_LIMIT, "f:1:65: nested too deep");
}

static void depth_counts_what_aliases_stand_for(void **state)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)state;
    assert_int_equal(kinf__buffer_printf(&text, "a: &x %.*s%.*s\nb: ", 40,
                                         "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 40,
                                         "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"),
                     0);
    for (int i = 0; i < KINF__YAML_MAX_DEPTH - 40; i++)
        assert_int_equal(kinf__buffer_append(&text, "[", 1), 0);
    assert_int_equal(kinf__buffer_printf(&text, "*x"), 0);
    assert_refused(kinf__buffer_cstr(&text), KINF_ERR_LIMIT, "f:2:28: nested too deep");
}

/* Each would be looked up among all others. */
static void anchors_are_few(void **state)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)state;
    for (int i = 1; i <= 256; i++)
        assert_int_equal(kinf__buffer_printf(&text, "- &a%d x\n", i), 0);
    for (int i = 0; i < 300; i++)
        assert_int_equal(kinf__buffer_printf(&text, "- &a1 x\n- *a1\n"), 0);
    kinf__yaml_free(parse(kinf__buffer_cstr(&text)));
    assert_int_equal(kinf__buffer_printf(&text, "- &b x\n"), 0);
    assert_refused(kinf__buffer_cstr(&text), KINF_ERR_LIMIT, "f:857:3: too many anchors");
}

static void a_doubled_key_is_found_among_many(void **state)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    int n_keys = (int)test_rounds(100000);
    char place[48];

    (void)state;
    for (int i = 0; i < n_keys; i++)
        assert_int_equal(kinf__buffer_printf(&text, "k%d: v\n", n_keys - i), 0);
    kinf__yaml_free(parse(kinf__buffer_cstr(&text)));
    assert_int_equal(kinf__buffer_printf(&text, "k9: v\nk5: v\nk9: v\n"), 0);
    snprintf(place, sizeof place, "f:%d:1: this key is there twice", n_keys + 1);
    assert_refused(kinf__buffer_cstr(&text), KINF_ERR_PARSE, place);
}

static void size_is_limited(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__yaml *yaml = NULL;
    char *text = malloc(KINF__YAML_MAX_BYTES + 1);

    (void)state;
    assert_non_null(text);
    memset(text, '\n', KINF__YAML_MAX_BYTES + 1);
    assert_int_equal(
        kinf__yaml_parse((struct kinf_str){ text, KINF__YAML_MAX_BYTES + 1 }, "f", &yaml, &err),
        KINF_ERR_LIMIT);
    free(text);
}

static void cut_text_is_an_error_or_a_smaller_document(void **state)
{
    static const char text[] =
        "a: &x\n  - 'q'\n  - {k: \"v\\n\", l: [1, 2]}\nb: *x\nc: |\n  block\n";

    (void)state;
    for (size_t len = 0; len < sizeof text; len++) {
        struct kinf__yaml *yaml = NULL;

        if (kinf__yaml_parse((struct kinf_str){ text, len }, "f", &yaml, NULL) == 0)
            kinf__yaml_free(yaml);
    }
}

/* As go-yaml, which kubectl reads with, has them. */
static void booleans_of_others_are_read_where_they_are_asked_for(void **state)
{
    static const struct {
        const char *text;
        int truth; /* negative: it is none */
    } rows[] = {
        { "true", 1 },    { "True", 1 },     { "TRUE", 1 },   { "yes", 1 },   { "Yes", 1 },
        { "YES", 1 },     { "on", 1 },       { "On", 1 },     { "ON", 1 },    { "y", 1 },
        { "Y", 1 },       { "false", 0 },    { "False", 0 },  { "FALSE", 0 }, { "no", 0 },
        { "No", 0 },      { "NO", 0 },       { "off", 0 },    { "Off", 0 },   { "OFF", 0 },
        { "n", 0 },       { "N", 0 },        { "'true'", 1 }, { "'no'", -1 }, { "tRUE", -1 },
        { "'True'", -1 }, { "oN", -1 },      { "yep", -1 },   { "1", -1 },    { "[on]", -1 },
        { "{}", -1 },     { "!!str y", -1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[64];
        struct kinf__yaml *yaml;
        struct kinf_error err = KINF_ERROR_INIT;
        bool truth = rows[i].truth == 0;
        int failed;

        snprintf(text, sizeof text, "k: %s\n", rows[i].text);
        yaml = parse(text);
        failed = kinf__yaml_read_old_bool(yaml, kinf__yaml_root(yaml), "k", &truth, &err);
        assert_int_equal(failed, rows[i].truth < 0 ? KINF_ERR_CONFIG : 0);
        assert_int_equal(truth, rows[i].truth > 0);
        if (failed < 0)
            assert_non_null(strstr(err.message, "k: true or false is expected"));
        assert_int_equal(kinf__yaml_read_old_bool(yaml, NULL, "k", &truth, &err), 0);
        kinf__yaml_free(yaml);
    }
}

static void typed_fields_say_what_they_expect(void **state)
{
    struct kinf__yaml *yaml =
        parse("s: text\nyes: true\nquoted: 'false'\nbad: maybe\nn: 42\nd: 1m30s\nseq: [a]\n"
              "map: {a: b}\nnothing: ~\nneg: -1\nbig: 18446744073709551616\non: On\n");
    const struct kinf__yaml_node *root = kinf__yaml_root(yaml), *node = NULL;
    struct kinf_error err = KINF_ERROR_INIT;
    const char *text = "before";
    bool truth = false;
    uint64_t number = 7;
    int64_t ms = 7;

    (void)state;
    assert_int_equal(kinf__yaml_read_string(yaml, root, "nothing", &text, &err), 0);
    assert_string_equal(text, "before");
    assert_int_equal(kinf__yaml_read_string(yaml, root, "s", &text, &err), 0);
    assert_string_equal(text, "text");
    assert_int_equal(kinf__yaml_read_string(yaml, root, "seq", &text, &err), KINF_ERR_CONFIG);
    assert_string_equal(err.message, "f:7:6: seq: a text is expected, not a list");
    assert_int_equal(kinf__yaml_read_bool(yaml, root, "yes", &truth, &err), 0);
    assert_true(truth);
    assert_int_equal(kinf__yaml_read_bool(yaml, root, "quoted", &truth, &err), 0);
    assert_false(truth);
    assert_int_equal(kinf__yaml_read_bool(yaml, root, "bad", &truth, &err), KINF_ERR_CONFIG);
    assert_string_equal(err.message, "f:4:6: bad: true or false is expected, not 'maybe'");
    assert_int_equal(kinf__yaml_read_bool(yaml, root, "on", &truth, &err), KINF_ERR_CONFIG);
    assert_int_equal(kinf__yaml_read_uint(yaml, root, "n", 42, &number, &err), 0);
    assert_int_equal(number, 42);
    assert_int_equal(kinf__yaml_read_uint(yaml, root, "n", 41, &number, &err), KINF_ERR_CONFIG);
    assert_int_equal(kinf__yaml_read_uint(yaml, root, "n", 5, &number, &err), KINF_ERR_CONFIG);
    assert_int_equal(kinf__yaml_read_uint(yaml, root, "neg", 42, &number, &err), KINF_ERR_CONFIG);
    assert_int_equal(kinf__yaml_read_uint(yaml, root, "big", UINT64_MAX, &number, &err),
                     KINF_ERR_CONFIG);
    assert_int_equal(kinf__yaml_read_duration_ms(yaml, root, "d", &ms, &err), 0);
    assert_int_equal(ms, 90000);
    assert_int_equal(kinf__yaml_read_duration_ms(yaml, root, "n", &ms, &err), KINF_ERR_CONFIG);
    assert_int_equal(kinf__yaml_read_sequence(yaml, root, "seq", &node, &err), 0);
    assert_int_equal(node->n_items, 1);
    assert_int_equal(kinf__yaml_read_mapping(yaml, root, "seq", &node, &err), KINF_ERR_CONFIG);
    assert_int_equal(kinf__yaml_read_mapping(yaml, root, "map", &node, &err), 0);
    assert_string_equal(kinf__yaml_get(node, "a")->text.bytes, "b");
    kinf__yaml_free(yaml);
}

static void an_empty_number_is_none(void **state)
{
    struct kinf__yaml *yaml = parse("n: ''\n");
    struct kinf_error err = KINF_ERROR_INIT;
    uint64_t number = 7;

    (void)state;
    assert_int_equal(kinf__yaml_read_uint(yaml, kinf__yaml_root(yaml), "n", 9, &number, &err),
                     KINF_ERR_CONFIG);
    assert_string_equal(err.message, "f:1:4: n: a number is expected, not ''");
    assert_int_equal(number, 7);
    kinf__yaml_free(yaml);
}

static void messages_have_one_line_and_no_secret(void **state)
{
    static const char *const allowed[] = { "a", NULL };
    struct kinf__yaml *yaml = parse("\"x\\ny\": 1\nuser: s3cret\n");
    const struct kinf__yaml_node *root = kinf__yaml_root(yaml), *node = NULL;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    assert_int_equal(kinf__yaml_check_keys(yaml, root, allowed, &err), KINF_ERR_CONFIG);
    assert_string_equal(err.message, "f:1:1: unknown key 'x y'; known are a");
    assert_int_equal(kinf__yaml_read_mapping(yaml, root, "user", &node, &err), KINF_ERR_CONFIG);
    assert_string_equal(err.message, "f:2:7: user: a mapping is expected, not a text");
    assert_int_equal(kinf__yaml_read_sequence(yaml, root, "user", &node, &err), KINF_ERR_CONFIG);
    assert_string_equal(err.message, "f:2:7: user: a list is expected, not a text");
    assert_null(node);
    kinf__yaml_free(yaml);
}

static void out_of_memory_is_an_ordinary_error(void **state)
{
    static const char text[] = "a: &x\n  - 'q'\n  - {k: \"v\\n\", l: [1, 2]}\nb: *x\n";
    bool did_fail = true;

    (void)state;
    for (size_t n = 1; did_fail; n++) {
        struct kinf_error err = KINF_ERROR_INIT;
        struct kinf__yaml *yaml = NULL;
        int failed;

        test_fail_allocation(n);
        failed = kinf__yaml_parse(kinf_str_from(text), "f", &yaml, &err);
        did_fail = test_allocation_failed();
        assert_int_equal(failed, did_fail ? KINF_ERR_NO_MEMORY : 0);
        assert_int_equal(yaml != NULL, !did_fail);
        kinf__yaml_free(yaml);
    }
}

/* Nodes that a walk meets, which the limits bound. */
static size_t walk(const struct kinf__yaml_node *node, size_t depth)
{
    size_t n_items = node->type == KINF__YAML_MAPPING ? 2 * node->n_items : node->n_items, n = 1;

    assert_true(depth <= KINF__YAML_MAX_DEPTH);
    assert_true(node->line > 0 && node->column > 0);
    assert_int_equal(strlen(node->text.bytes), node->text.len);
    for (size_t i = 0; i < n_items; i++)
        n += walk(node->items[i], depth + 1);
    return n;
}

static void random_text_gives_a_bounded_tree_or_an_error(void **state)
{
    static const char *const pieces[] = { "a",    "b",  ": ",  ":",     "- ", "\n", "\n  ",
                                          "[",    "]",  "{",   "}",     ", ", "'",  "\"",
                                          "|\n",  "#",  "&x ", "*x",    "~",  "? ", "---",
                                          "\xc3", "\t", "\\0", "...\n", "!",  "%" };
    struct test_random random = test_random_init(__func__);
    size_t n_parsed = 0;

    (void)state;
    for (size_t round = 0; round < test_rounds(40000); round++) {
        KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
        struct kinf__yaml *yaml = NULL;
        size_t n = 1 + test_random_below(&random, 12);

        for (size_t i = 0; i < n; i++) {
            const char *piece = pieces[test_random_below(&random, sizeof pieces / sizeof *pieces)];

            assert_int_equal(kinf__buffer_append(&text, piece, strlen(piece)), 0);
        }
        if (kinf__yaml_parse(kinf__buffer_str(&text), "f", &yaml, NULL) == 0) {
            assert_true(walk(kinf__yaml_root(yaml), 0) <= KINF__YAML_MAX_NODES);
            n_parsed++;
        }
        kinf__yaml_free(yaml);
    }
    assert_true(n_parsed > 0);
}

static void unknown_keys_are_named_with_those_that_exist(void **state)
{
    static const char *const allowed[] = { "a", "b", NULL };
    struct kinf__yaml *yaml = parse("a: 1\n  \nc: 2\n");
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    assert_int_equal(kinf__yaml_check_keys(yaml, kinf__yaml_root(yaml), allowed, &err),
                     KINF_ERR_CONFIG);
    assert_string_equal(err.message, "f:3:1: unknown key 'c'; known are a, b");
    kinf__yaml_free(yaml);
}

static void a_missing_file_is_named(void **state)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct kinf__yaml *yaml = NULL;

    (void)state;
    assert_int_equal(kinf__yaml_read("/no/such/file", &yaml, &err), KINF_ERR_CONFIG);
    assert_string_equal(err.message, "cannot read /no/such/file: No such file or directory");
    assert_int_equal(kinf__yaml_read("/", &yaml, &err), KINF_ERR_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_know_where_they_stood),
        cmocka_unit_test(json_is_yaml_enough),
        cmocka_unit_test(nothing_is_null),
        cmocka_unit_test(what_is_wrong_has_a_place),
        cmocka_unit_test(documents_come_one_after_the_other),
        cmocka_unit_test(what_is_behind_the_last_one_wanted_is_not_looked_at),
        cmocka_unit_test(a_taker_may_fail),
        cmocka_unit_test(places_count_through_the_stream),
        cmocka_unit_test(anchors_end_with_their_document),
        cmocka_unit_test(limits_are_of_each_document),
        cmocka_unit_test(a_tag_says_what_is_text),
        cmocka_unit_test(a_stream_without_memory_is_an_error),
        cmocka_unit_test(aliases_stand_for_their_anchor),
        cmocka_unit_test(merge_keys_are_what_they_stand_for),
        cmocka_unit_test(of_a_kubeconfig_the_first_document_counts),
        cmocka_unit_test(an_alias_bomb_is_refused),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(depth_counts_what_aliases_stand_for),
        cmocka_unit_test(anchors_are_few),
        cmocka_unit_test(a_doubled_key_is_found_among_many),
        cmocka_unit_test(size_is_limited),
        cmocka_unit_test(cut_text_is_an_error_or_a_smaller_document),
        cmocka_unit_test(booleans_of_others_are_read_where_they_are_asked_for),
        cmocka_unit_test(typed_fields_say_what_they_expect),
        cmocka_unit_test(an_empty_number_is_none),
        cmocka_unit_test(messages_have_one_line_and_no_secret),
        cmocka_unit_test(out_of_memory_is_an_ordinary_error),
        cmocka_unit_test(random_text_gives_a_bounded_tree_or_an_error),
        cmocka_unit_test(unknown_keys_are_named_with_those_that_exist),
        cmocka_unit_test(a_missing_file_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
