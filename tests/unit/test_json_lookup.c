/*
 * Looking up paths in text: by examples, and beside a twin that looks them up in a cJSON tree,
 * which of a doubled key finds the first one, too.
 */
#include "json/path.h"

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/buffer.h"
#include "json/block.h"
#include "json/cursor.h"
#include "unit/json_corpus.h"
#include "unit/test.h"

#define MAX_MUTATED_LEN 4096
#define MAX_DEPTH       6
#define N_FOUND_MAX     4096

static const char pod[] =
    "{\"metadata\":{\"name\":\"p\",\"labels\":{\"app\":\"web\",\"a.b/c\":\"\\u0064\"}},"
    "\"spec\":{\"containers\":[{\"name\":\"one\",\"ports\":[{\"n\":1},{\"n\":2}]},{\"name\":"
    "\"two\"},"
    "{\"image\":\"i\",\"ports\":[{\"n\":3}]}],\"nodeName\":\"n1\",\"nodeName\":\"n2\"}}";

static int collect(struct kinf__json_value value, void *ctx)
{
    struct kinf__buffer *found = ctx;

    assert_int_equal(kinf__buffer_append_str(found, value.raw), 0);
    assert_int_equal(kinf__buffer_append(found, " ", 1), 0);
    return 0;
}

static int stop_at_second(struct kinf__json_value value, void *ctx)
{
    (void)value;
    return ++*(int *)ctx == 2 ? 17 : 0;
}

static struct kinf_path *parse(const char *text)
{
    struct kinf_path *path = NULL;

    assert_int_equal(kinf_path_parse(text, &path, NULL), 0);
    return path;
}

static void assert_found(const char *text, const char *path_text, const char *expected)
{
    KINF__AUTO_BUFFER found = KINF__BUFFER_INIT;
    struct kinf_path *path = parse(path_text);

    assert_int_equal(kinf__json_lookup(kinf_str_from(text), path, 0, collect, &found), 0);
    assert_string_equal(kinf__buffer_cstr(&found), expected);
    kinf_path_free(path);
}

static void keys_lead_to_members(void **state)
{
    (void)state;
    assert_found(pod, "metadata.name", "\"p\" ");
    assert_found(pod, "metadata.labels[\"a.b/c\"]", "\"\\u0064\" ");
    assert_found(pod, "metadata.labels", "{\"app\":\"web\",\"a.b/c\":\"\\u0064\"} ");
    assert_found(" {\"a\" : { \"\\u0062\" : [ 1 ] } } ", "a.b", "[ 1 ] ");
}

static void what_is_not_there_is_not_found(void **state)
{
    (void)state;
    assert_found(pod, "metadata.nam", "");
    assert_found(pod, "metadata.name.x", "");
    assert_found(pod, "metadata[0]", "");
    assert_found(pod, "spec.containers.name", "");
    assert_found(pod, "spec.containers[3]", "");
    assert_found(pod, "metadata.name[*]", "");
    assert_found("[]", "a", "");
    assert_found("", "a", "");
}

static void nothing_is_taken_behind_the_end(void **state)
{
    struct kinf__json_cursor cursor;
    struct kinf__json_value value;

    (void)state;
    kinf__json_cursor_init(&cursor, KINF_STR(" 1"));
    value = kinf__json_cursor_take(&cursor);
    assert_true(kinf_str_equal(value.raw, KINF_STR("1")));
    value = kinf__json_cursor_take(&cursor);
    assert_int_equal(value.type, KINF__JSON_NULL);
    assert_int_equal(value.raw.len, 0);
}

static void a_number_leads_to_one_element(void **state)
{
    (void)state;
    assert_found(pod, "spec.containers[0].name", "\"one\" ");
    assert_found(pod, "spec.containers[2].ports[0].n", "3 ");
}

static void a_star_leads_to_all_in_the_order_of_the_text(void **state)
{
    (void)state;
    assert_found(pod, "spec.containers[*].name", "\"one\" \"two\" ");
    assert_found(pod, "spec.containers[*].ports[*].n", "1 2 3 ");
    assert_found(pod, "metadata.labels[*]", "\"web\" \"\\u0064\" ");
    assert_found("{\"a\":[[1],2,[3,[4]]]}", "a[*][*]", "1 3 [4] ");
}

static void of_a_doubled_key_the_first_is_found(void **state)
{
    (void)state;
    assert_found(pod, "spec.nodeName", "\"n1\" ");
    assert_found("{\"a\":{\"x\":1},\"a\":{\"y\":2}}", "a.y", "");
}

static void a_callback_ends_the_walk(void **state)
{
    struct kinf_path *path = parse("spec.containers[*].ports[*].n");
    int n_calls = 0;

    (void)state;
    assert_int_equal(kinf__json_lookup(kinf_str_from(pod), path, 0, stop_at_second, &n_calls), 17);
    assert_int_equal(n_calls, 2);
    kinf_path_free(path);
}

static void the_first_value_is_had_without_a_callback(void **state)
{
    struct kinf_path *path = parse("spec.containers[*].ports[*].n"), *missing = parse("spec.x");
    struct kinf__json_value value;

    (void)state;
    assert_true(kinf__json_lookup_first(kinf_str_from(pod), path, 0, &value));
    assert_int_equal(value.type, KINF__JSON_NUMBER);
    assert_true(kinf_str_equal(value.raw, KINF_STR("1")));
    assert_false(kinf__json_lookup_first(kinf_str_from(pod), missing, 0, &value));
    assert_true(kinf_str_equal(value.raw, KINF_STR("1")));
    kinf_path_free(path);
    kinf_path_free(missing);
}

/* What the twin finds, in order. */
struct twin {
    const cJSON *found[N_FOUND_MAX];
    size_t n_found;
    size_t n_seen; /* by the lookup */
};

static void twin_walk(struct twin *twin, const struct kinf_path *path, size_t at, const cJSON *node)
{
    const struct kinf__path_step *step = &path->steps[at];
    const cJSON *child;

    if (node == NULL)
        return;
    if (at == path->n_steps) {
        assert_true(twin->n_found < N_FOUND_MAX);
        twin->found[twin->n_found++] = node;
    } else if (step->type == KINF__PATH_EACH) {
        cJSON_ArrayForEach(child, node) twin_walk(twin, path, at + 1, child);
    } else if (step->type == KINF__PATH_KEY && cJSON_IsObject(node)) {
        twin_walk(twin, path, at + 1, cJSON_GetObjectItemCaseSensitive(node, step->key.bytes));
    } else if (step->type == KINF__PATH_INDEX && cJSON_IsArray(node)) {
        twin_walk(twin, path, at + 1, cJSON_GetArrayItem(node, (int)step->index));
    }
}

static void assert_same_tree(const cJSON *a, const cJSON *b)
{
    const cJSON *child = b->child;

    assert_int_equal(a->type, b->type);
    if (cJSON_IsString(a))
        assert_string_equal(a->valuestring, b->valuestring);
    if (cJSON_IsNumber(a))
        assert_memory_equal(&a->valuedouble, &b->valuedouble, sizeof a->valuedouble);
    for (a = a->child; a != NULL && child != NULL; a = a->next, child = child->next) {
        if (a->string != NULL)
            assert_string_equal(a->string, child->string);
        assert_same_tree(a, child);
    }
    assert_ptr_equal(a, child);
}

/* Whether a value's bytes are one value, nothing else, and the twin's. */
static void assert_same(struct kinf__json_value value, const cJSON *node)
{
    cJSON *tree = cJSON_ParseWithLength(value.raw.bytes, value.raw.len);
    size_t len;

    assert_int_equal(kinf__json_scan(value.raw, true, &len), 0);
    assert_int_equal(len, value.raw.len);
    assert_null(strchr(" \r\n\t", value.raw.bytes[0]));
    assert_int_equal(value.type, kinf__json_value_of(value.raw).type);
    assert_non_null(tree);
    assert_same_tree(tree, node);
    cJSON_Delete(tree);
}

static int compare_with_twin(struct kinf__json_value value, void *ctx)
{
    struct twin *twin = ctx;

    assert_true(twin->n_seen < twin->n_found);
    assert_same(value, twin->found[twin->n_seen++]);
    return 0;
}

/* Picks a path to somewhere in the tree; one in eight leads nowhere, mostly. Keys are the tree's.
 */
static void choose_path(struct test_random *random, const cJSON *node, struct kinf_path *path)
{
    struct kinf__path_step *step = path->steps;
    size_t index;

    path->n_steps = 0;
    do {
        index = test_random_below(random, (size_t)cJSON_GetArraySize(node) + 1);
        *step = (struct kinf__path_step){ .type = KINF__PATH_INDEX, .index = index };
        node = cJSON_GetArrayItem(node, (int)index);
        if (node != NULL && node->string != NULL) {
            step->type = KINF__PATH_KEY;
            step->key = kinf_str_from(node->string);
        }
        if (test_random_below(random, 6) == 0)
            step->type = KINF__PATH_EACH;
        else if (node == NULL || test_random_below(random, 32) == 0)
            *step = (struct kinf__path_step){ KINF__PATH_KEY, KINF_STR("nobody"), 0 };
        step++;
        path->n_steps++;
    } while (node != NULL && node->child != NULL && path->n_steps < KINF_PATH_MAX_STEPS &&
             test_random_below(random, 8) != 0);
}

static size_t assert_lookups_as_twin(struct test_random *random, struct kinf_str text,
                                     const cJSON *tree, size_t n_paths)
{
    struct twin twin;
    struct kinf_path path;
    size_t n_found = 0;

    for (; n_paths > 0; n_paths--) {
        choose_path(random, tree, &path);
        twin.n_found = twin.n_seen = 0;
        twin_walk(&twin, &path, 0, tree);
        assert_int_equal(kinf__json_lookup(text, &path, 0, compare_with_twin, &twin), 0);
        assert_int_equal(twin.n_seen, twin.n_found);
        n_found += twin.n_found;
    }
    return n_found;
}

/* Each member of each container, in the order of the text. */
static void assert_walk_as_twin(struct kinf__json_value value, const cJSON *node)
{
    const cJSON *child = node->child;
    struct kinf__json_value member;
    struct kinf__json_iter iter;
    struct kinf_str key;

    if (!kinf__json_iter_init(&iter, value)) {
        assert_same(value, node);
        return;
    }
    for (; kinf__json_iter_next(&iter, &key, &member); child = child->next) {
        assert_non_null(child);
        if (child->string != NULL)
            assert_true(kinf__json_string_equals(key, kinf_str_from(child->string)));
        assert_walk_as_twin(member, child);
    }
    assert_null(child);
}

static void every_lookup_in_recorded_bodies_finds_what_a_tree_has(void **state)
{
    struct test_random random = test_random_init("recorded_bodies");
    size_t n_found = 0, n_texts = 0;
    struct json_corpus corpus;
    char dir[1024];

    (void)state;
    snprintf(dir, sizeof dir, "%s/transcripts", test_data_dir());
    json_corpus_init(&corpus, dir);
    for (size_t i = 0; i < corpus.n_texts; i++) {
        struct kinf_str text = corpus.texts[i];
        cJSON *tree = cJSON_ParseWithLength(text.bytes, text.len);

        /* In a tree strings end at a NUL, and some have no place there at all. */
        if (tree != NULL && memmem(text.bytes, text.len, "\\u0000", 6) == NULL) {
            assert_walk_as_twin(kinf__json_value_of(text), tree);
            n_found += assert_lookups_as_twin(&random, text, tree, test_rounds(16));
            n_texts++;
        }
        cJSON_Delete(tree);
    }
    assert_true(n_texts > corpus.n_texts / 2 && n_found > n_texts);
    json_corpus_release(&corpus);
}

static void put(struct kinf__buffer *text, const char *piece)
{
    assert_int_equal(kinf__buffer_append(text, piece, strlen(piece)), 0);
}

static const char *one_of(struct test_random *random, const char *const *pieces, size_t n_pieces)
{
    return pieces[test_random_below(random, n_pieces)];
}

static void put_white(struct test_random *random, struct kinf__buffer *text)
{
    static const char *const whites[] = { "", "", "", "", "", " ", "\n\t\r", "        " };

    put(text, one_of(random, whites, KINF__ARRAY_LEN(whites)));
}

/* What could be taken for structure, and what could hide it. */
static void put_string(struct test_random *random, struct kinf__buffer *text)
{
    static const char *const pieces[] = { "a",
                                          "bc",
                                          "\\\\",
                                          "\\\"",
                                          "{",
                                          "}",
                                          "[",
                                          "]",
                                          ",",
                                          ":",
                                          "\\n",
                                          "\\u005c",
                                          "\\u0022",
                                          " ",
                                          "\xc3\xa9",
                                          "\\\\\\\"",
                                          "0123456789012345678901234567890123456789" };
    size_t n_pieces = test_random_below(random, test_random_below(random, 8) == 0 ? 64 : 6);

    put(text, "\"");
    for (; n_pieces > 0; n_pieces--)
        put(text, one_of(random, pieces, KINF__ARRAY_LEN(pieces)));
    put(text, "\"");
}

static void put_key(struct test_random *random, struct kinf__buffer *text)
{
    static const char *const keys[] = { "\"a\"",     "\"b\"",     "\"\\u0061\"", "\"\"",
                                        "\"a.b/c\"", "\"{\\\"\"", "\"\\\\\"",    "\"nobody\"" };

    if (test_random_below(random, 4) == 0)
        put_string(random, text);
    else
        put(text, one_of(random, keys, KINF__ARRAY_LEN(keys)));
}

static void put_value(struct test_random *random, struct kinf__buffer *text, unsigned depth);

static void put_container(struct test_random *random, struct kinf__buffer *text, unsigned depth)
{
    bool is_object = test_random_below(random, 2) == 0;
    size_t n_members = test_random_below(random, 7);

    put(text, is_object ? "{" : "[");
    put_white(random, text);
    for (size_t i = 0; i < n_members; i++) {
        if (is_object) {
            put_key(random, text);
            put_white(random, text);
            put(text, ":");
            put_white(random, text);
        }
        put_value(random, text, depth + 1);
        put_white(random, text);
        if (i + 1 < n_members) {
            put(text, ",");
            put_white(random, text);
        }
    }
    put(text, is_object ? "}" : "]");
}

static void put_value(struct test_random *random, struct kinf__buffer *text, unsigned depth)
{
    static const char *const plain[] = { "0", "-1.5e3", "12345", "true", "false", "null" };

    if (depth == 0 || (depth < MAX_DEPTH && test_random_below(random, 2) == 0))
        put_container(random, text, depth);
    else if (test_random_below(random, 2) == 0)
        put_string(random, text);
    else
        put(text, one_of(random, plain, KINF__ARRAY_LEN(plain)));
}

/* A copy that ends where its allocation ends, so that the sanitizer sees a read behind it. */
static char *copy_exactly(const struct kinf__buffer *text)
{
    char *copy = malloc(text->len != 0 ? text->len : 1);

    assert_non_null(copy);
    memcpy(copy, text->bytes, text->len);
    return copy;
}

static void every_lookup_in_random_text_finds_what_a_tree_has(void **state)
{
    struct test_random random = test_random_init("random_text");
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    size_t n_found = 0;

    (void)state;
    for (size_t i = 0; i < test_rounds(3000); i++) {
        char *copy;
        cJSON *tree;

        text.len = 0;
        put_white(&random, &text);
        put_value(&random, &text, 0);
        put_white(&random, &text);
        copy = copy_exactly(&text);
        tree = cJSON_ParseWithLength(copy, text.len);
        assert_non_null(tree);
        assert_walk_as_twin(kinf__json_value_of((struct kinf_str){ copy, text.len }), tree);
        n_found += assert_lookups_as_twin(&random, (struct kinf_str){ copy, text.len }, tree, 16);
        cJSON_Delete(tree);
        free(copy);
    }
    assert_true(n_found > 0);
}

struct bounds {
    const char *start;
    const char *end;
};

static int stay_inside(struct kinf__json_value value, void *ctx)
{
    const struct bounds *bounds = ctx;

    assert_true(value.raw.bytes >= bounds->start && value.raw.len > 0 &&
                value.raw.len <= (size_t)(bounds->end - value.raw.bytes));
    return 0;
}

/* Nobody looks into text that was not scanned, but if somebody did, it would do no harm. */
static void a_lookup_in_spoiled_text_stays_inside(void **state)
{
    struct test_random random = test_random_init("a_lookup_in_spoiled_text_stays_inside");
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct json_corpus corpus;
    struct kinf_path path;
    char dir[1024];

    (void)state;
    snprintf(dir, sizeof dir, "%s/transcripts", test_data_dir());
    json_corpus_init(&corpus, dir);
    for (size_t i = 0; i < test_rounds(4000); i++) {
        struct bounds bounds;
        char *copy;

        json_corpus_mutate(&corpus, &random, MAX_MUTATED_LEN, &text);
        copy = copy_exactly(&text);
        bounds = (struct bounds){ copy, copy + text.len };
        for (path.n_steps = 1; path.n_steps <= MAX_DEPTH; path.n_steps++) {
            for (size_t j = 0; j < path.n_steps; j++)
                path.steps[j] = (struct kinf__path_step){ KINF__PATH_EACH, KINF_STR("spec"), j };
            path.steps[test_random_below(&random, path.n_steps)].type =
                (enum kinf__path_step_type)test_random_below(&random, 3);
            assert_int_equal(kinf__json_lookup((struct kinf_str){ copy, text.len }, &path, 0,
                                               stay_inside, &bounds),
                             0);
        }
        free(copy);
    }
    json_corpus_release(&corpus);
}

/* A block may start, and end, anywhere in a value. */
static void values_of_any_length_end_where_they_end(void **state)
{
    static const char *const fills[] = { "x", "[", "]", "\\\\", "\\\"", "" };
    struct kinf__json_cursor cursor;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct kinf__json_value value;
    char *copy;

    (void)state;
    for (size_t n = 0; n < 3 * (size_t)KINF__JSON_BLOCK; n++) {
        for (size_t i = 0; i < KINF__ARRAY_LEN(fills); i++) {
            for (size_t n_spaces = 0; n_spaces < 3; n_spaces++) {
                bool is_nested = *fills[i] == '\0';
                size_t len;

                text.len = 0;
                for (size_t j = 0; j < n_spaces; j++)
                    put(&text, " ");
                put(&text, is_nested ? "" : "[\"");
                for (size_t j = 0; j < n; j++)
                    put(&text, is_nested ? "[" : fills[i]);
                put(&text, is_nested ? "[{}" : "\"");
                for (size_t j = 0; is_nested && j < n; j++)
                    put(&text, "]");
                put(&text, "]");
                len = text.len;
                put(&text, ",\"]\"");
                copy = copy_exactly(&text);
                kinf__json_cursor_init(&cursor, (struct kinf_str){ copy, text.len });
                value = kinf__json_cursor_take(&cursor);
                assert_ptr_equal(value.raw.bytes, copy + n_spaces);
                assert_int_equal(value.raw.len, len - n_spaces);
                assert_int_equal(cursor.at, len);
                kinf__json_cursor_init(&cursor, (struct kinf_str){ copy, len - 1 });
                assert_int_equal(kinf__json_cursor_take(&cursor).raw.len, len - 1 - n_spaces);
                free(copy);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_lead_to_members),
        cmocka_unit_test(what_is_not_there_is_not_found),
        cmocka_unit_test(nothing_is_taken_behind_the_end),
        cmocka_unit_test(a_number_leads_to_one_element),
        cmocka_unit_test(a_star_leads_to_all_in_the_order_of_the_text),
        cmocka_unit_test(of_a_doubled_key_the_first_is_found),
        cmocka_unit_test(a_callback_ends_the_walk),
        cmocka_unit_test(the_first_value_is_had_without_a_callback),
        cmocka_unit_test(every_lookup_in_recorded_bodies_finds_what_a_tree_has),
        cmocka_unit_test(every_lookup_in_random_text_finds_what_a_tree_has),
        cmocka_unit_test(a_lookup_in_spoiled_text_stays_inside),
        cmocka_unit_test(values_of_any_length_end_where_they_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
