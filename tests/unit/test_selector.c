/*
 * Selectors: what parses, what it matches, where a mistake stands. The tables follow the documented
 * behaviour of labels.Parse and fields.ParseSelector.
 */
#include <kinformer/selector.h>

#include <stdio.h>
#include <string.h>

#include "object/object.h"
#include "unit/allocation.h"
#include "unit/test.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

static const struct kinf_type *widgets(void)
{
    const struct kinf_type *type;

    assert_int_equal(kinf_type_intern("example.org", "v1", "Widget", "widgets", true, &type, NULL),
                     0);
    return type;
}

/* An object of the text as the decoder makes it. */
static const struct kinf_object *decoded(const char *text)
{
    const struct kinf_object *object;

    assert_int_equal(kinf_object_new_from_json(widgets(), text, strlen(text), &object, NULL), 0);
    return object;
}

/* The same from parts, whose maker did not say where the labels are. */
static const struct kinf_object *from_parts(const char *text)
{
    struct kinf__object_parts parts = {
        .type = widgets(),
        .name_space = KINF_STR("ns"),
        .name = KINF_STR("a"),
        .body = kinf_str_from(text),
    };
    const struct kinf_object *object;

    assert_int_equal(kinf__object_new(&parts, &object, NULL), 0);
    return object;
}

static void expect_labels(const char *selector_text, const char *labels, bool expected)
{
    struct kinf_label_selector *selector;
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf_object *objects[2];
    char text[2048];

    snprintf(text, sizeof text, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\"%s%s}}",
             labels != NULL ? ",\"labels\":" : "", labels != NULL ? labels : "");
    if (kinf_label_selector_parse(selector_text, &selector, &err) < 0)
        fail_msg("%s: %s", selector_text, err.message);
    objects[0] = decoded(text);
    objects[1] = from_parts(text);
    for (int i = 0; i < 2; i++) {
        if (kinf_label_selector_matches(selector, objects[i]) != expected)
            fail_msg("'%s' on %s (%d): expected %d", selector_text, text, i, expected);
        kinf_object_unref(objects[i]);
    }
    kinf_label_selector_free(selector);
}

static void label_selectors_match_as_upstream(void **state)
{
    static const struct {
        const char *selector;
        const char *labels; /* NULL: no labels at all */
        bool expected;
    } table[] = {
        /* everything */
        { "", NULL, true },
        { "", "{\"x\":\"y\"}", true },
        { " \t\r\n", "{\"x\":\"y\"}", true },
        /* equality */
        { "x=y", "{\"x\":\"y\"}", true },
        { "x==y", "{\"x\":\"y\"}", true },
        { "x=y", "{\"x\":\"z\"}", false },
        { "x=y", "{\"X\":\"y\"}", false },
        { "x=y", NULL, false },
        { "x=y", "{}", false },
        { "x=y", "null", false },
        { " x = y ", "{\"x\":\"y\"}", true },
        { "\tx\n==\ry", "{\"x\":\"y\"}", true },
        { "x=y,z=w", "{\"x\":\"y\",\"z\":\"w\"}", true },
        { "x=y,z=w", "{\"z\":\"w\",\"x\":\"y\"}", true },
        { "x=y,z=w", "{\"x\":\"y\",\"z\":\"v\"}", false },
        { "x=y,x=z", "{\"x\":\"y\"}", false },
        { "x=y,x=y", "{\"x\":\"y\"}", true },
        { "x=", "{\"x\":\"\"}", true },
        { "x=", "{\"x\":\"y\"}", false },
        { "x=", NULL, false },
        { "x= ,y", "{\"x\":\"\",\"y\":\"1\"}", true },
        { "x==", "{\"x\":\"\"}", true },
        { "foo=bar,foobar=bar,baz=blah", "{\"foo\":\"bar\",\"foobar\":\"bar\",\"baz\":\"blah\"}",
          true },
        { "foobar=bar", "{\"foo\":\"bar\",\"baz\":\"blah\"}", false },
        /* what is not there is not equal */
        { "x!=y", "{\"x\":\"z\"}", true },
        { "x!=y", "{\"x\":\"y\"}", false },
        { "x!=y", "{\"z\":\"y\"}", true },
        { "x!=y", NULL, true },
        { "x!=", "{\"x\":\"\"}", false },
        { "x!=", "{\"x\":\"y\"}", true },
        { "x!=", NULL, true },
        { "x=y,x!=z", "{\"x\":\"y\"}", true },
        { "x!=a,x!=b", "{\"x\":\"b\"}", false },
        /* existence */
        { "x", "{\"x\":\"\"}", true },
        { "x", "{\"y\":\"x\"}", false },
        { "x", NULL, false },
        { "!x", "{\"x\":\"z\"}", false },
        { "!x", "{\"y\":\"z\"}", true },
        { "!x", NULL, true },
        { "! x", NULL, true },
        { "!x,y", "{\"y\":\"z\"}", true },
        { "x,!x", "{\"x\":\"z\"}", false },
        /* sets */
        { "x in (y,z)", "{\"x\":\"z\"}", true },
        { "x in (y,z)", "{\"x\":\"w\"}", false },
        { "x in (y,z)", NULL, false },
        { "x in(y)", "{\"x\":\"y\"}", true },
        { "x  in  ( y , z ) ", "{\"x\":\"y\"}", true },
        { "x in (y,y)", "{\"x\":\"y\"}", true },
        { "x notin (y,z)", "{\"x\":\"z\"}", false },
        { "x notin (y,z)", "{\"x\":\"w\"}", true },
        { "x notin (y,z)", "{\"w\":\"z\"}", true },
        { "x notin (y,z)", NULL, true },
        { "x in ()", "{\"x\":\"\"}", true },
        { "x in ()", "{\"x\":\"y\"}", false },
        { "x in ( )", "{\"x\":\"\"}", true },
        { "x notin ()", "{\"x\":\"\"}", false },
        { "x notin ()", "{\"x\":\"y\"}", true },
        { "x in (y,)", "{\"x\":\"\"}", true },
        { "x in (y,)", "{\"x\":\"y\"}", true },
        { "x in (,y)", "{\"x\":\"\"}", true },
        { "x in (,y)", "{\"x\":\"y\"}", true },
        { "x in (a,,b)", "{\"x\":\"\"}", true },
        { "x in (a,b)", "{\"x\":\"\"}", false },
        { "x in (,)", "{\"x\":\"\"}", true },
        { "x in (,)", "{\"x\":\",\"}", false },
        { "x in (a),y,z notin (b),!w", "{\"x\":\"a\",\"y\":\"b\",\"z\":\"c\"}", true },
        { "x in (a),y,z notin (b),!w", "{\"x\":\"a\",\"y\":\"b\",\"z\":\"b\"}", false },
        /* in and notin are words like others where no operator can stand */
        { "in", "{\"in\":\"a\"}", true },
        { "!notin", "{\"in\":\"a\"}", true },
        { "in in (in)", "{\"in\":\"in\"}", true },
        { "notin notin (notin,in)", "{\"notin\":\"in\"}", false },
        { "in=notin", "{\"in\":\"notin\"}", true },
        { "a in (x,y,notin, z,in)", "{\"a\":\"notin\"}", true },
        /* integers */
        { "x>1", "{\"x\":\"2\"}", true },
        { "x>1", "{\"x\":\"1\"}", false },
        { "x > 1", "{\"x\":\"10\"}", true },
        { "x>1", "{\"x\":\"a\"}", false },
        { "x>1", "{\"x\":\"\"}", false },
        { "x>1", NULL, false },
        { "x<7", "{\"x\":\"6\"}", true },
        { "x<7", "{\"x\":\"7\"}", false },
        { "x<7", "{\"x\":\"10\"}", false },
        { "x<7", "{\"x\":\"-1\"}", true },
        { "x<7", "{\"x\":\"+6\"}", true },
        { "x<7", "{\"x\":\" 6\"}", false },
        { "x<7", "{\"x\":\"6 \"}", false },
        { "x<7", "{\"x\":\"0x6\"}", false },
        { "x<9223372036854775807", "{\"x\":\"9223372036854775806\"}", true },
        { "x>9223372036854775806", "{\"x\":\"9223372036854775807\"}", true },
        { "x>1", "{\"x\":\"9223372036854775808\"}", false },
        { "x>1,x<7", "{\"x\":\"5\"}", true },
        /* keys with a prefix, escaped text */
        { "app.kubernetes.io/name=web", "{\"app.kubernetes.io/name\":\"web\"}", true },
        { "0.1.2.domain/99 notin (10.10.100.1, tick.tack.clock)",
          "{\"0.1.2.domain/99\":\"10.10.100.1\"}", false },
        { "a.b/c=d", "{\"a.b\\/c\":\"\\u0064\"}", true },
        { "a=bcd", "{\"a\":\"b\\u0063d\"}", true },
        { "a=bcd", "{\"a\":\"bc\",\"bcd\":\"\"}", false },
        { "a=bcd,e", "{\"a\":\"bcd\"}", false },
        { "a=b", "{\"\\u0061\":\"c\"}", false },
        { "a=b", "{\"a\":\"b\\u0000\"}", false },
        /* what the API server would not have stored */
        { "x", "{\"x\":7}", true },
        { "x=7", "{\"x\":7}", false },
        { "x=", "{\"x\":null}", true },
        { "x", "[\"x\"]", false },
        { "x,y", "{\"x\":\"1\",\"x\":\"2\"}", false },
        { "x=1", "{\"x\":\"1\",\"x\":\"2\"}", true },
        /* many requirements on one key are one */
        { "x in (a,b,c),x in (c,b,d),x", "{\"x\":\"b\"}", true },
        { "x in (a,b,c),x in (c,b,d),x", "{\"x\":\"a\"}", false },
        { "x in (a,b),x in (c)", "{\"x\":\"c\"}", false },
        { "x in (a,b),x!=b,x notin (c,b)", "{\"x\":\"a\"}", true },
        { "x in (a,b),x!=b,x notin (c,b)", "{\"x\":\"b\"}", false },
        { "x!=a,y,x!=b,y!=c", "{\"y\":\"a\"}", true },
        { "x>1,x>3,x<9,x<7", "{\"x\":\"5\"}", true },
        { "x>1,x>3,x<9,x<7", "{\"x\":\"2\"}", false },
        { "x>1,x>3,x<9,x<7", "{\"x\":\"8\"}", false },
        { "!x,!x", "{\"x\":\"a\"}", false },
        { "!x,!x", "{\"y\":\"a\"}", true },
    };

    (void)state;
    for (size_t i = 0; i < N(table); i++)
        expect_labels(table[i].selector, table[i].labels, table[i].expected);
}

#define L63         "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg"
#define LONG_PREFIX L63 "." L63 "." L63 "." L63

static void labels_are_limited_as_upstream(void **state)
{
    static const char *const good[] = {
        L63, L63 "=" L63, "a-b_c.d=A-b_C.9", "A=B", "0=0", L63 ".b/" L63, "a-b.c-d.0/x",
    };
    struct kinf_label_selector *selector;
    char text[600];

    (void)state;
    for (size_t i = 0; i < N(good); i++) {
        assert_int_equal(kinf_label_selector_parse(good[i], &selector, NULL), 0);
        kinf_label_selector_free(selector);
    }
    snprintf(text, sizeof text, "%.253s/x", LONG_PREFIX);
    assert_int_equal(kinf_label_selector_parse(text, &selector, NULL), 0);
    kinf_label_selector_free(selector);
    snprintf(text, sizeof text, "%.254s/x", LONG_PREFIX);
    assert_int_equal(kinf_label_selector_parse(text, &selector, NULL), KINF_ERR_PARSE);
}

static void a_wrong_label_selector_names_the_column(void **state)
{
    static const struct {
        const char *selector;
        size_t column;
    } table[] = {
        { "x,,y", 3 },
        { ",x,y", 1 },
        { ",", 1 },
        { "x,", 3 },
        { "x in (a),", 10 },
        { "x=a,", 5 },
        { "x=a||y=b", 3 },
        { "x nott in (y)", 3 },
        { "a in (xyz)b notin ()", 11 },
        { "a in (xyz abc)", 11 },
        { "a notin(", 9 },
        { "a (", 3 },
        { "(", 1 },
        { "a in", 5 },
        { "a in x", 6 },
        { "a in (x", 8 },
        { "k in (", 7 },
        { "a in (x(", 8 },
        { "a in (x=y)", 8 },
        { "a b", 3 },
        { "x y=z", 3 },
        { "a==b==c", 5 },
        { "a=b=c", 4 },
        { "a=!b", 3 },
        { "a=(b)", 3 },
        { "a=)", 3 },
        { "a=b c", 5 },
        { "!", 2 },
        { "!!x", 2 },
        { "!x=y", 3 },
        { "!x in (y)", 4 },
        { "!,x", 2 },
        { "=x", 1 },
        { "==", 1 },
        { ">1", 1 },
        { "x>a", 3 },
        { "x>", 3 },
        { "x<,y", 3 },
        { "x>1.5", 3 },
        { "x>-1", 3 },
        { "x>9223372036854775808", 3 },
        { "-x=y", 1 },
        { "x-=y", 1 },
        { "x=-y", 3 },
        { "x=y.", 3 },
        { "x=y/z", 3 },
        { "x in (a,b_)", 9 },
        { "/x=y", 1 },
        { "a/=y", 1 },
        { "a/b/c=y", 1 },
        { "A.b/c", 1 },
        { "a..b/c", 1 },
        { ".a/c", 1 },
        { "a./c", 1 },
        { "-a/c", 1 },
        { "a-/c", 1 },
        { "a-.b/c", 1 },
        { "a.-b/c", 1 },
        { "a_b/c", 1 },
        { "x\xc3\xa4=y", 1 },
        { "x=\xc3\xa4", 3 },
        { "x=a\vb", 3 },
        { L63 "a=y", 1 },
        { "x=" L63 "a", 3 },
        { "  x  =  y  z", 12 },
    };

    (void)state;
    for (size_t i = 0; i < N(table); i++) {
        struct kinf_label_selector *selector = NULL;
        struct kinf_error err = KINF_ERROR_INIT;
        char expected[64];

        if (kinf_label_selector_parse(table[i].selector, &selector, &err) != KINF_ERR_PARSE)
            fail_msg("'%s' was not refused", table[i].selector);
        assert_null(selector);
        assert_int_equal(err.code, KINF_ERR_PARSE);
        snprintf(expected, sizeof expected, "label selector column %zu: ", table[i].column);
        if (strncmp(err.message, expected, strlen(expected)) != 0)
            fail_msg("'%s': %s", table[i].selector, err.message);
    }
}

static void a_selector_without_terms_matches_unseen(void **state)
{
    struct kinf_label_selector *labels;
    struct kinf_field_selector *fields;

    (void)state;
    assert_true(kinf_label_selector_is_empty(NULL));
    assert_true(kinf_label_selector_matches(NULL, NULL));
    assert_true(kinf_field_selector_matches(NULL, NULL));
    assert_int_equal(kinf_label_selector_parse("  ", &labels, NULL), 0);
    assert_true(kinf_label_selector_is_empty(labels));
    assert_true(kinf_label_selector_matches(labels, NULL));
    kinf_label_selector_free(labels);
    assert_int_equal(kinf_label_selector_parse("a", &labels, NULL), 0);
    assert_false(kinf_label_selector_is_empty(labels));
    kinf_label_selector_free(labels);
    assert_int_equal(kinf_field_selector_parse(",,", &fields, NULL), 0);
    assert_true(kinf_field_selector_matches(fields, NULL));
    kinf_field_selector_free(fields);
    kinf_label_selector_free(NULL);
    kinf_field_selector_free(NULL);
}

static const char pod_text[] =
    "{\"metadata\":{\"name\":\"web-1\",\"namespace\":\"shop\",\"uid\":\"u1\",\"annotations\":"
    "{\"a.b/c\":\"x\",\"d,e=f\":\"y\"}},"
    "\"spec\":{\"nodeName\":\"n1\",\"hostNetwork\":true,\"priority\":9007199254740993,\"weight\":1."
    "50,"
    "\"comma\":\"a,b=c\\\\d\",\"blank\":\" a \",\"escaped\":\"\\u003ca\\u003e\",\"nothing\":null,"
    "\"empty\":\"\",\"containers\":[{\"name\":\"one\"},{\"name\":\"two\"}]},"
    "\"status\":{\"phase\":\"Running\"}}";

static void field_selectors_match_as_upstream(void **state)
{
    static const struct {
        const char *selector;
        bool expected;
    } table[] = {
        { "", true },
        { ",", true },
        { "status.phase=Running", true },
        { "status.phase==Running", true },
        { "status.phase!=Running", false },
        { "status.phase=Pending", false },
        { "status.phase!=Succeeded,status.phase!=Failed", true },
        { "status.phase=Running,", true },
        { ",,status.phase=Running", true },
        { "metadata.name=web-1", true },
        { "metadata.name=web-1,metadata.name=web-1", true },
        { "metadata.name=web-1,metadata.name=web-2", false },
        { "metadata.name!=web-1", false },
        { ".metadata.name=web-1", true },
        { "metadata.namespace=shop", true },
        { "metadata.namespace!=shop", false },
        { "metadata.namespace=", false },
        { "metadata.uid=u1", true },
        { "spec.nodeName=n1,status.phase!=Succeeded", true },
        /* nothing is the empty value */
        { "spec.schedulerName=", true },
        { "spec.schedulerName!=", false },
        { "spec.schedulerName!=x", true },
        { "spec.nothing=", true },
        { "spec.empty=", true },
        { "spec.nodeName=", false },
        { "spec.nodeName!=", true },
        { "nowhere.at.all=", true },
        /* numbers and booleans as their text */
        { "spec.hostNetwork=true", true },
        { "spec.hostNetwork!=false", true },
        { "spec.priority=9007199254740993", true },
        { "spec.priority=9007199254740992", false },
        { "spec.weight=1.50", true },
        { "spec.weight=1.5", false },
        /* escapes, and blanks that count */
        { "spec.comma=a\\,b\\=c\\\\d", true },
        { "spec.comma=a\\,b\\=c\\\\d,status.phase=Running", true },
        { "spec.blank= a ", true },
        { "spec.blank=a", false },
        { "status.phase= Running", false },
        { "spec.escaped=<a>", true },
        /* what our paths add */
        { "spec.containers[*].name=one", true },
        { "spec.containers[*].name=two", false },
        { "spec.containers[1].name=two", true },
        { "metadata.annotations[\"a.b/c\"]=x", true },
        { "metadata.annotations[\"d,e=f\"]=y,status.phase=Running", true },
        { "spec.containers=", false },
        { "spec.containers!=", true },
        { "spec!=x", true },
    };
    const struct kinf_object *object = decoded(pod_text);

    (void)state;
    for (size_t i = 0; i < N(table); i++) {
        struct kinf_field_selector *selector;
        struct kinf_error err = KINF_ERROR_INIT;

        if (kinf_field_selector_parse(table[i].selector, &selector, &err) < 0)
            fail_msg("%s: %s", table[i].selector, err.message);
        if (kinf_field_selector_matches(selector, object) != table[i].expected)
            fail_msg("'%s': expected %d", table[i].selector, table[i].expected);
        kinf_field_selector_free(selector);
    }
    kinf_object_unref(object);
}

static void a_cluster_scoped_object_has_the_empty_namespace(void **state)
{
    const struct kinf_object *object = decoded("{\"metadata\":{\"name\":\"n1\"}}");
    struct kinf_field_selector *selector;

    (void)state;
    assert_int_equal(
        kinf_field_selector_parse("metadata.namespace=,metadata.name=n1", &selector, NULL), 0);
    assert_true(kinf_field_selector_matches(selector, object));
    kinf_field_selector_free(selector);
    kinf_object_unref(object);
}

static void a_wrong_field_selector_names_the_column(void **state)
{
    static const struct {
        const char *selector;
        size_t column;
    } table[] = {
        { "status.phase", 13 }, { "a,b=c", 2 },   { "a=b,c", 6 },
        { "a=b=c", 4 },         { "a==b==c", 5 }, { "a!b", 4 },
        { "a=b\\c", 4 },        { "a=\\", 3 },    { "a=b,c=d\\,e\\", 11 },
        { "a===b", 4 },         { "a=!=b", 4 },   { "a[\"=b", 6 },
        { "a>b", 4 },
    };

    (void)state;
    for (size_t i = 0; i < N(table); i++) {
        struct kinf_field_selector *selector = NULL;
        struct kinf_error err = KINF_ERROR_INIT;
        char expected[64];

        if (kinf_field_selector_parse(table[i].selector, &selector, &err) != KINF_ERR_PARSE)
            fail_msg("'%s' was not refused", table[i].selector);
        assert_null(selector);
        snprintf(expected, sizeof expected, "field selector column %zu: ", table[i].column);
        if (strncmp(err.message, expected, strlen(expected)) != 0)
            fail_msg("'%s': %s", table[i].selector, err.message);
    }
}

static void a_wrong_path_names_its_column_too(void **state)
{
    static const char *const table[] = { "a=b,=c", "a=b,c d=e", "a=b,c..d=e", "a=b,c =d",
                                         "a=b,c[=d" };

    (void)state;
    for (size_t i = 0; i < N(table); i++) {
        struct kinf_field_selector *selector = NULL;
        struct kinf_error err = KINF_ERROR_INIT;

        assert_int_equal(kinf_field_selector_parse(table[i], &selector, &err), KINF_ERR_PARSE);
        assert_null(selector);
        assert_non_null(strstr(err.message, "field selector, path at column 5: "));
    }
}

/* Whatever the bytes: an answer, and with a selector one that can be used. */
static void random_text_neither_breaks_the_parsers_nor_leaks(void **state)
{
    static const char *const pieces[] = { "a", "in", "notin", "x.y/z", "=", "==", "!=",  "!",
                                          ">", "<",  "(",     ")",     ",", " ",  "\\",  "\"",
                                          "[", "]",  ".",     "*",     "1", "\t", "\xff" };
    struct test_random random = test_random_init(__func__);
    const struct kinf_object *object = decoded(pod_text);

    (void)state;
    for (size_t round = test_rounds(50000); round > 0; round--) {
        struct kinf_label_selector *labels;
        struct kinf_field_selector *fields;
        char text[200] = "";

        for (size_t n = test_random_below(&random, 14); n > 0; n--)
            strcat(text, pieces[test_random_below(&random, N(pieces))]);
        if (kinf_label_selector_parse(text, &labels, NULL) == 0) {
            (void)kinf_label_selector_matches(labels, object);
            kinf_label_selector_free(labels);
        }
        if (kinf_field_selector_parse(text, &fields, NULL) == 0) {
            (void)kinf_field_selector_matches(fields, object);
            kinf_field_selector_free(fields);
        }
    }
    kinf_object_unref(object);
}

static int parse_both(struct kinf_error *err)
{
    struct kinf_label_selector *labels = NULL;
    struct kinf_field_selector *fields = NULL;
    int r = kinf_label_selector_parse("a in (b,c),!d", &labels, err);

    if (r == 0)
        r = kinf_field_selector_parse("a.b=c,metadata.name!=d", &fields, err);
    kinf_field_selector_free(fields);
    kinf_label_selector_free(labels);
    return r;
}

static void no_allocation_that_fails_breaks_a_parser(void **state)
{
    bool failed = true;

    (void)state;
    for (size_t n = 1; failed; n++) {
        struct kinf_error err = KINF_ERROR_INIT;
        int r;

        test_fail_allocation(n);
        r = parse_both(&err);
        failed = test_allocation_failed();
        assert_int_equal(r, failed ? KINF_ERR_NO_MEMORY : 0);
        assert_int_equal(err.code, r);
        assert_true(failed || n > 6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(label_selectors_match_as_upstream),
        cmocka_unit_test(labels_are_limited_as_upstream),
        cmocka_unit_test(a_wrong_label_selector_names_the_column),
        cmocka_unit_test(a_selector_without_terms_matches_unseen),
        cmocka_unit_test(field_selectors_match_as_upstream),
        cmocka_unit_test(a_cluster_scoped_object_has_the_empty_namespace),
        cmocka_unit_test(a_wrong_field_selector_names_the_column),
        cmocka_unit_test(a_wrong_path_names_its_column_too),
        cmocka_unit_test(random_text_neither_breaks_the_parsers_nor_leaks),
        cmocka_unit_test(no_allocation_that_fails_breaks_a_parser),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
