/*
 * Lists of the served API: bodies of every size and form, pages, and the objects that are selected.
 */
#include "serve/list.h"

#include <stdio.h>
#include <string.h>

#include "json/scan.h"
#include "rest/inflate.h"
#include "serve/token.h"
#include "unit/allocation.h"
#include "unit/test.h"

static const struct kinf_type pods = { "", "v1", "Pod", "pods", true };
static const struct kinf_type gadgets = { "example.org", "v1", "Gadget", "gadgets", true };
static const struct kinf__selection everything = { .name_space = "", .name = "" };

/* Pods web-0 ... in the namespaces a and b by turns; the first half on node n1, written "n\u0031". */
static struct kinf_indexer *make_store(const struct kinf_type *type, size_t n, size_t padding)
{
    const struct kinf_index index = { "node", "spec.nodeName", NULL, NULL };
    struct kinf_indexer *indexer;
    char *text = malloc(padding + 512);

    assert_non_null(text);
    assert_int_equal(kinf_indexer_new(&index, 1, &indexer, NULL), 0);
    for (size_t i = 0; i < n; i++) {
        const struct kinf_object *object;
        int len = snprintf(text, padding + 512,
                           "{\"metadata\":{\"name\":\"web-%zu\",\"namespace\":\"%c\",\"labels\":{"
                           "\"i\":\"%zu\"},\"resourceVersion\":\"%zu\"},\"spec\":{\"nodeName\":"
                           "\"n\\u003%d\",\"padding\":\"%0*d\"}}",
                           i, "ab"[i % 2], i % 3, i + 1, i < n / 2 ? 1 : 2, (int)padding + 1, 0);

        assert_int_equal(kinf_object_new_from_json(type, text, (size_t)len, &object, NULL), 0);
        assert_int_equal(kinf_indexer_add(indexer, object, NULL, NULL), 0);
        kinf_object_unref(object);
    }
    free(text);
    return indexer;
}

/* Steps until the answer is known to begin; returns 0 or an error, with which nothing is left. */
static int open_list(const struct kinf__list_params *params, struct kinf__list_result *ret_result)
{
    struct kinf__listing *listing;
    int more = kinf__listing_new(params, &listing);

    if (more < 0)
        return more;
    while ((more = kinf__listing_step(listing, ret_result)) == 1)
        continue;
    if (more < 0 || ret_result->stream == NULL)
        kinf__listing_free(listing);
    return more;
}

/* Of a stream that does not wait for others. */
static ssize_t read_some(struct kinf__stream *stream, char *piece, size_t size)
{
    ssize_t n;

    while ((n = stream->read(stream, piece, size)) == KINF__STREAM_LATER)
        continue;
    return n;
}

/* Reads a list to its end in pieces of `step` bytes. */
static void read_all(struct kinf__list_result *result, size_t step, struct kinf__buffer *out)
{
    char piece[4096];
    ssize_t n;

    if (result->stream == NULL) {
        *out = result->body;
        return;
    }
    while ((n = read_some(result->stream, piece, step)) > 0)
        assert_int_equal(kinf__buffer_append(out, piece, (size_t)n), 0);
    assert_int_equal(n, KINF__STREAM_END);
    result->stream->free(result->stream);
}

static const struct kinf__token start = { .version.number = 7 };

static struct kinf__list_params params_of(struct kinf_indexer *indexer,
                                          const struct kinf__selection *selection,
                                          const struct kinf__encoder *encoder)
{
    return (struct kinf__list_params){ .selection = selection,
                                       .snapshot = kinf_indexer_snapshot(indexer),
                                       .issuer = kinf__token_issuer("https://127.0.0.1"),
                                       .encoder = encoder,
                                       .from = &start };
}

static void list_with(const struct kinf__list_params *params, size_t step, struct kinf__buffer *out)
{
    struct kinf__list_result result;

    assert_int_equal(open_list(params, &result), 0);
    read_all(&result, step, out);
}

static void a_short_list_is_written_as_the_server_does(void **state)
{
    static const char metadata[] =
        "\"metadata\":{\"name\":\"web-0\",\"namespace\":\"a\",\"labels\":"
        "{\"i\":\"0\"},\"resourceVersion\":\"1\"}";
    static const char spec[] = "\"spec\":{\"nodeName\":\"n\\u0032\",\"padding\":\"0\"}";
    static const struct {
        const struct kinf_type *type;
        enum kinf__form form;
        const char *begin, *middle, *end;
    } cases[] = {
        { &pods, KINF__FORM_OBJECT,
          "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"7\"},"
          "\"items\":[{",
          ",", "}]}\n" },
        { &gadgets, KINF__FORM_OBJECT,
          "{\"apiVersion\":\"example.org/v1\",\"items\":[{\"kind\":\"Gadget\",\"apiVersion\":"
          "\"example.org/v1\",",
          ",",
          "}],\"kind\":\"GadgetList\",\"metadata\":{\"continue\":\"\",\"resourceVersion\":\"7\"}}"
          "\n" },
        { &gadgets, KINF__FORM_METADATA_LIST,
          "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{"
          "\"resourceVersion\":\"7\"},\"items\":[{\"kind\":\"PartialObjectMetadata\","
          "\"apiVersion\":\"meta.k8s.io/v1\",",
          NULL, "}]}\n" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(cases); i++) {
        struct kinf_indexer *indexer = make_store(cases[i].type, 1, 0);
        struct kinf__encoder encoder = { .type = cases[i].type,
                                         .form = cases[i].form,
                                         .table = kinf__table_for(cases[i].type) };
        struct kinf__list_params params = params_of(indexer, &everything, &encoder);
        KINF__AUTO_BUFFER expected = KINF__BUFFER_INIT;
        KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;

        list_with(&params, 1, &out);
        assert_int_equal(kinf__buffer_printf(&expected, "%s%s%s%s%s", cases[i].begin, metadata,
                                             cases[i].middle != NULL ? cases[i].middle : "",
                                             cases[i].middle != NULL ? spec : "", cases[i].end),
                         0);
        assert_string_equal(kinf__buffer_cstr(&out), kinf__buffer_cstr(&expected));
        kinf_indexer_free(indexer);
    }
}

static void an_empty_list_has_items(void **state)
{
    struct kinf_indexer *indexer = make_store(&pods, 0, 0);
    struct kinf__encoder encoder = { .type = &pods };
    struct kinf__list_params params = params_of(indexer, &everything, &encoder);
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;

    (void)state;
    list_with(&params, 1, &out);
    assert_string_equal(kinf__buffer_cstr(&out),
                        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{"
                        "\"resourceVersion\":\"7\"},\"items\":[]}\n");
    kinf_indexer_free(indexer);
}

static void a_large_list_is_the_same_in_pieces_of_any_size(void **state)
{
    static const size_t steps[] = { 1, 7, 4095, 4096 };
    struct kinf_indexer *indexer = make_store(&pods, 100, 4000);
    struct kinf__encoder encoder = { .type = &pods };
    KINF__AUTO_BUFFER first = KINF__BUFFER_INIT;
    size_t len;

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(steps); i++) {
        struct kinf__list_params params = params_of(indexer, &everything, &encoder);
        KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;

        list_with(&params, steps[i], i == 0 ? &first : &out);
        if (i != 0)
            assert_true(kinf_str_equal(kinf__buffer_str(&first), kinf__buffer_str(&out)));
    }
    assert_true(first.len > 100u * 4000);
    assert_int_equal(kinf__json_scan_all(kinf__buffer_str(&first), KINF__JSON_MAX_DEPTH, &len), 0);
    kinf_indexer_free(indexer);
}

static int collect(const char *bytes, size_t len, void *ctx, struct kinf_error *err)
{
    (void)err;
    return kinf__buffer_append(ctx, bytes, len);
}

/* Replaces what was compressed. */
static void undo_gzip(struct kinf__buffer *text)
{
    struct kinf__buffer plain = KINF__BUFFER_INIT;
    struct kinf__inflate *inflate;

    assert_int_equal(kinf__inflate_new(&inflate, NULL), 0);
    assert_int_equal(kinf__inflate_feed(inflate, text->bytes, text->len, collect, &plain, NULL), 0);
    assert_true(kinf__inflate_is_complete(inflate));
    kinf__inflate_free(inflate);
    kinf__buffer_release(text);
    *text = plain;
}

/* What a list of all pods is, object by object. */
static void write_expected(struct kinf_indexer *indexer, struct kinf__buffer *out)
{
    struct kinf_snapshot *snapshot = kinf_indexer_snapshot(indexer);
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    const struct kinf_object *object;
    struct kinf_cursor cursor;
    const char *comma = "";
    struct kinf_str text;

    assert_int_equal(kinf__buffer_printf(out, "{\"kind\":\"PodList\",\"apiVersion\":\"v1\","
                                              "\"metadata\":{\"resourceVersion\":\"7\"},"
                                              "\"items\":["),
                     0);
    kinf_cursor_all(&cursor, snapshot);
    while ((object = kinf_cursor_next(&cursor)) != NULL) {
        assert_int_equal(kinf_object_json(object, &scratch, &text, NULL), 0);
        assert_int_equal(kinf__buffer_printf(out, "%s%.*s", comma, (int)text.len, text.bytes), 0);
        comma = ",";
    }
    assert_int_equal(kinf__buffer_printf(out, "]}\n"), 0);
    kinf_snapshot_unref(snapshot);
}

/* Around the sizes from which objects are not copied. */
static void objects_of_any_size_are_whole(void **state)
{
    static const size_t paddings[] = { 10, 60000, 66000, 130000, 140000, 300000 };

    (void)state;
    for (size_t i = 0; i < 4 * KINF__ARRAY_LEN(paddings); i++) {
        struct kinf_indexer *indexer = make_store(&pods, 5, paddings[i / 4]);
        struct kinf__encoder encoder = { .type = &pods };
        struct kinf__list_params params = params_of(indexer, &everything, &encoder);
        KINF__AUTO_BUFFER expected = KINF__BUFFER_INIT;
        KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
        struct kinf__list_result result;

        write_expected(indexer, &expected);
        params.may_gzip = i % 2 == 0;
        assert_int_equal(open_list(&params, &result), 0);
        assert_int_equal(result.is_gzip, params.may_gzip && result.stream != NULL);
        read_all(&result, i % 4 < 2 ? 1000 : 4096, &out);
        if (result.is_gzip)
            undo_gzip(&out);
        assert_string_equal(kinf__buffer_cstr(&out), kinf__buffer_cstr(&expected));
        kinf_indexer_free(indexer);
    }
}

/* A list that ends early looks whole to its reader, who takes the rest for deleted. */
static void a_large_list_needs_nothing_of_its_opener(void **state)
{
    struct kinf_indexer *indexer = make_store(&pods, 100, 10000);
    struct kinf__encoder encoder = { .type = &pods };
    struct kinf__list_params params = params_of(indexer, &everything, &encoder);
    struct kinf__list_result result;
    KINF__AUTO_BUFFER whole = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct kinf__token from = start;

    (void)state;
    list_with(&params, 4096, &whole);
    params = params_of(indexer, &everything, &encoder);
    params.from = &from;
    assert_int_equal(open_list(&params, &result), 0);
    assert_non_null(result.stream);
    from.after[0] = 'z';
    read_all(&result, 4096, &out);
    assert_string_equal(kinf__buffer_cstr(&out), kinf__buffer_cstr(&whole));
    kinf_indexer_free(indexer);
}

static void only_what_is_large_is_compressed(void **state)
{
    struct kinf__encoder encoder = { .type = &pods };

    (void)state;
    for (size_t n = 1; n <= 100; n += 99) {
        struct kinf_indexer *indexer = make_store(&pods, n, 4000);
        struct kinf__list_params params = params_of(indexer, &everything, &encoder);
        KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
        struct kinf__list_result result;

        params.may_gzip = true;
        assert_int_equal(open_list(&params, &result), 0);
        assert_int_equal(result.is_gzip, n == 100);
        read_all(&result, 100, &out);
        assert_int_equal(memcmp(out.bytes, "\x1f\x8b", 2) == 0, n == 100);
        kinf_indexer_free(indexer);
    }
}

static size_t count_items(struct kinf_str text)
{
    struct kinf__json_value items;
    struct kinf__json_iter iter;
    struct kinf_str key;
    size_t n = 0;

    assert_true(kinf__json_member(kinf__json_value_of(text), KINF_STR("items"), &items));
    assert_true(kinf__json_iter_init(&iter, items));
    for (struct kinf__json_value item; kinf__json_iter_next(&iter, &key, &item);)
        n++;
    return n;
}

/* Walks all pages of a selection; returns how many objects they have. */
static size_t count_in_pages(struct kinf_indexer *indexer, const struct kinf__selection *selection,
                             int64_t limit)
{
    struct kinf__encoder encoder = { .type = &pods };
    struct kinf__token token = start;
    size_t n = 0;

    for (bool has_more = true; has_more;) {
        struct kinf__list_params params = params_of(indexer, selection, &encoder);
        KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
        struct kinf__list_result result;
        struct kinf__refusal refusal;
        char text[512], *mark;

        params.from = &token;
        params.limit = limit;
        assert_int_equal(open_list(&params, &result), 0);
        has_more = result.snapshot != NULL;
        read_all(&result, 1000, &out);
        assert_non_null(kinf__buffer_cstr(&out));
        n += count_items(kinf__buffer_str(&out));
        mark = strstr(out.bytes, "\"continue\":\"");
        assert_int_equal(mark != NULL, has_more);
        if (has_more) {
            assert_int_equal(sscanf(mark, "\"continue\":\"%511[^\"]", text), 1);
            assert_int_equal(kinf__token_read(params.issuer, text, &token, &refusal), 0);
            assert_int_equal(token.version.number, 7);
        }
    }
    return n;
}

static void pages_have_every_object_once(void **state)
{
    struct kinf_indexer *indexer = make_store(&pods, 60, 10);
    struct kinf__selection selection = { .name_space = "b", .name = "" };
    struct kinf_label_selector *labels;

    (void)state;
    assert_int_equal(kinf_label_selector_parse("i=1", &labels, NULL), 0);
    for (int64_t limit = 1; limit < 70; limit += 6) {
        assert_int_equal(count_in_pages(indexer, &everything, limit), 60);
        selection.labels = NULL;
        assert_int_equal(count_in_pages(indexer, &selection, limit), 30);
        selection.labels = labels;
        assert_int_equal(count_in_pages(indexer, &selection, limit), 10);
    }
    kinf_label_selector_free(labels);
    kinf_indexer_free(indexer);
}

static void an_index_selects_what_the_fields_do(void **state)
{
    struct kinf_indexer *indexer = make_store(&pods, 60, 10);
    struct kinf__selection selection = { .name_space = "a", .name = "" };
    struct kinf__refusal refusal;
    struct kinf__fields *fields;

    (void)state;
    assert_int_equal(kinf__fields_parse("spec.nodeName=n1", &fields, &refusal), 0);
    assert_int_equal(kinf__fields_bind(fields, &pods, NULL, 0, &refusal), 0);
    selection.fields = fields;
    for (int64_t limit = 0; limit < 20; limit += 4) {
        selection.index = NULL;
        assert_int_equal(count_in_pages(indexer, &selection, limit), 15);
        selection.index = "node";
        selection.index_value = "n1";
        assert_int_equal(count_in_pages(indexer, &selection, limit), 15);
    }
    kinf__fields_free(fields);
    kinf_indexer_free(indexer);
}

/* Behind what make_store() has: without labels, in a namespace of their own. */
static void add_plain(struct kinf_indexer *indexer, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct kinf_object *object;
        char text[128];
        int len = snprintf(text, sizeof text,
                           "{\"metadata\":{\"name\":\"plain-%zu\",\"namespace\":\"c\","
                           "\"resourceVersion\":\"%zu\"}}",
                           i, i + 1000);

        assert_int_equal(kinf_object_new_from_json(&pods, text, (size_t)len, &object, NULL), 0);
        assert_int_equal(kinf_indexer_add(indexer, object, NULL, NULL), 0);
        kinf_object_unref(object);
    }
}

static void a_list_that_finds_nothing_gives_way_to_others(void **state)
{
    struct kinf_indexer *indexer = make_store(&pods, 40, 4000);
    struct kinf__selection selection = { .name_space = "", .name = "" };
    struct kinf__encoder encoder = { .type = &pods };
    struct kinf_label_selector *labels;

    (void)state;
    add_plain(indexer, (size_t)5 * KINF__WALK_PATIENCE);
    assert_int_equal(kinf_label_selector_parse("i", &labels, NULL), 0);
    selection.labels = labels;
    for (int may_gzip = 0; may_gzip < 2; may_gzip++) {
        struct kinf__list_params params = params_of(indexer, &selection, &encoder);
        KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
        struct kinf__list_result result;
        char piece[4096];
        size_t n_later = 0;
        ssize_t n;

        params.may_gzip = may_gzip;
        assert_int_equal(open_list(&params, &result), 0);
        assert_int_equal(result.is_gzip, may_gzip);
        while ((n = result.stream->read(result.stream, piece, sizeof piece)) != KINF__STREAM_END) {
            assert_true(n > 0 || n == KINF__STREAM_LATER);
            n_later += n < 0;
            if (n > 0)
                assert_int_equal(kinf__buffer_append(&out, piece, (size_t)n), 0);
        }
        result.stream->free(result.stream);
        assert_true(n_later >= 4);
        if (may_gzip)
            undo_gzip(&out);
        assert_non_null(kinf__buffer_cstr(&out));
        assert_int_equal(count_items(kinf__buffer_str(&out)), 40);
    }
    kinf_label_selector_free(labels);
    kinf_indexer_free(indexer);
}

static void the_rest_is_counted_only_without_selectors(void **state)
{
    struct kinf_indexer *indexer = make_store(&pods, 10, 10);
    struct kinf__selection selection = { .name_space = "a", .name = "" };
    struct kinf__encoder encoder = { .type = &pods };
    struct kinf_label_selector *labels;

    (void)state;
    assert_int_equal(kinf_label_selector_parse("i", &labels, NULL), 0);
    for (int has_selector = 0; has_selector < 2; has_selector++) {
        struct kinf__list_params params = params_of(indexer, &selection, &encoder);
        KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;

        params.limit = 2;
        list_with(&params, 1000, &out);
        assert_int_equal(strstr(kinf__buffer_cstr(&out), "\"remainingItemCount\":3") != NULL,
                         !has_selector);
        selection.labels = labels;
    }
    kinf_label_selector_free(labels);
    kinf_indexer_free(indexer);
}

/* Who only asks how much there is need not wait until others have had their turns. */
static void the_rest_of_everything_is_known_at_once(void **state)
{
    struct kinf_indexer *indexer = make_store(&pods, 3 * KINF__WALK_PATIENCE, 10);
    struct kinf__encoder encoder = { .type = &pods };
    struct kinf__list_params params = params_of(indexer, &everything, &encoder);
    KINF__AUTO_BUFFER out = KINF__BUFFER_INIT;
    struct kinf__list_result result;
    struct kinf__listing *listing;
    char wanted[64];

    (void)state;
    params.limit = 1;
    assert_int_equal(kinf__listing_new(&params, &listing), 0);
    assert_int_equal(kinf__listing_step(listing, &result), 0);
    assert_null(result.stream);
    read_all(&result, 1000, &out);
    snprintf(wanted, sizeof wanted, "\"remainingItemCount\":%d}", 3 * KINF__WALK_PATIENCE - 1);
    assert_non_null(strstr(kinf__buffer_cstr(&out), wanted));
    kinf__listing_free(listing);
    kinf_indexer_free(indexer);
}

static void out_of_memory_leaks_nothing(void **state)
{
    struct kinf_indexer *indexer = make_store(&pods, 120, 4000);
    struct kinf__selection selection = { .name_space = "", .name = "" };
    struct kinf__encoder encoder = { .type = &pods };
    struct kinf__refusal refusal;
    struct kinf__fields *fields;
    bool did_fail = true;

    (void)state;
    assert_int_equal(kinf__fields_parse("spec.nodeName=n1", &fields, &refusal), 0);
    assert_int_equal(kinf__fields_bind(fields, &pods, NULL, 0, &refusal), 0);
    selection.fields = fields;
    for (size_t n = 1; did_fail; n++) {
        struct kinf__list_params params = params_of(indexer, &selection, &encoder);
        struct kinf__list_result result;
        char piece[4096];
        ssize_t got = 0;
        int failed;

        params.limit = 50;
        params.may_gzip = true;
        test_fail_allocation(n);
        failed = open_list(&params, &result);
        if (failed == 0) {
            assert_non_null(result.stream);
            while ((got = read_some(result.stream, piece, sizeof piece)) > 0)
                continue;
        }
        did_fail = test_allocation_failed();
        if (failed == 0)
            result.stream->free(result.stream);
        assert_int_equal(failed < 0 || got == KINF__STREAM_BROKEN, did_fail);
    }
    kinf__fields_free(fields);
    kinf_indexer_free(indexer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_list_is_written_as_the_server_does),
        cmocka_unit_test(an_empty_list_has_items),
        cmocka_unit_test(a_large_list_is_the_same_in_pieces_of_any_size),
        cmocka_unit_test(objects_of_any_size_are_whole),
        cmocka_unit_test(a_large_list_needs_nothing_of_its_opener),
        cmocka_unit_test(only_what_is_large_is_compressed),
        cmocka_unit_test(pages_have_every_object_once),
        cmocka_unit_test(an_index_selects_what_the_fields_do),
        cmocka_unit_test(a_list_that_finds_nothing_gives_way_to_others),
        cmocka_unit_test(the_rest_is_counted_only_without_selectors),
        cmocka_unit_test(the_rest_of_everything_is_known_at_once),
        cmocka_unit_test(out_of_memory_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
