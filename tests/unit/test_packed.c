/*
 * Objects that are held compressed: whoever reads them cannot tell, but for the memory and for what is
 * read without inflating.
 */
#include "object/packed.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

#include <kinformer/selector.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/thread.h"
#include "serve/encode.h"
#include "unit/allocation.h"
#include "unit/test.h"

#define N_OBJECTS 120 /* of about 3 kB: more than half of them come behind the dictionary */

static _Atomic(size_t) n_inflated;

/* In place of libzstd's, which it calls. */
size_t ZSTD_decompress_usingDict(ZSTD_DCtx *zstd, void *to, size_t to_size, const void *from,
                                 size_t from_len, const void *dictionary, size_t dictionary_len)
{
    size_t (*own)(ZSTD_DCtx *, void *, size_t, const void *, size_t, const void *, size_t);

    *(void **)&own = dlsym(RTLD_NEXT, "ZSTD_decompress_usingDict");
    atomic_fetch_add(&n_inflated, 1);
    return own(zstd, to, to_size, from, from_len, dictionary, dictionary_len);
}

struct fixture {
    const struct kinf_type *type;
    struct kinf__prune_plan *plan;
    struct kinf__packer *packer;
    struct test_random random;
    size_t n_objects_before;
};

static int set_up(void **state)
{
    static struct fixture f;

    f = (struct fixture){ .n_objects_before = kinf__object_count() };
    f.random = test_random_init("packed");
    *state = &f;
    return kinf_type_intern("", "v1", "Pod", "pods", true, &f.type, NULL) < 0 ||
                   kinf__prune_plan_new(NULL, 0, NULL, 0, &f.plan, NULL) < 0 ||
                   kinf__packer_new(&f.packer, NULL) < 0 ||
                   kinf__packer_keep(f.packer, "spec.nodeName", NULL) < 0 ||
                   kinf__packer_keep(f.packer, "status.podIPs[0].ip", NULL) < 0 ||
                   kinf__packer_keep(f.packer, "spec.mixed[*].name", NULL) < 0
               ? -1
               : 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    kinf__packer_free(f->packer);
    kinf__prune_plan_free(f->plan);
    assert_int_equal(kinf__object_count(), f->n_objects_before);
    return 0;
}

/* Pods that say much the same, with something of their own; the fifth has no labels, the seventh two,
 * and the fourth no owner. */
static void append_pod(struct fixture *f, size_t number, struct kinf__buffer *text)
{
    static const char *const words[] = { "region", "checkout", "metrics", "gateway", "\\u00e4\\n" };
    int r =
        kinf__buffer_printf(text,
                            "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                            "\"web-%zu\",\"namespace\":\"shop\",\"uid\":\"u-%llx\","
                            "\"resourceVersion\":\"%zu\"",
                            number, (unsigned long long)test_random_next(&f->random), number + 100);

    if (r == 0 && number % 5 != 0)
        r = kinf__buffer_printf(text, ",\"labels\":{\"app\":\"web\",\"n\":\"%zu\"}", number % 3);
    if (r == 0 && number % 7 == 0)
        r = kinf__buffer_printf(text, ",\"labels\":{\"app\":\"doubled\"}");
    if (r == 0 && number % 4 != 0)
        r = kinf__buffer_printf(text, ",\"ownerReferences\":[{\"uid\":\"r-%zu\"}]", number % 3);
    if (r == 0)
        r = kinf__buffer_printf(text, "},\"spec\":{\"nodeName\":\"node-%zu\",\"env\":[",
                                number % 4);
    for (size_t i = 0; r == 0 && i < 60; i++)
        r = kinf__buffer_printf(text, "%s{\"name\":\"%s_%zu\",\"value\":\"%s-%zu\"}",
                                i != 0 ? "," : "", words[i % KINF__ARRAY_LEN(words)], i,
                                words[test_random_below(&f->random, KINF__ARRAY_LEN(words))],
                                test_random_below(&f->random, 1000));
    if (r == 0)
        r = kinf__buffer_printf(text,
                                "]},\"status\":{\"phase\":\"Running\",\"podIPs\":[{\"ip\":"
                                "\"10.0.0.%zu\"}]}}",
                                number);
    assert_int_equal(r, 0);
}

#define MIN_OWNED_TEXT 1500

/* A pod of an owner, whose text is that of others of this content, but for its name and some numbers. */
static void append_owned_pod(size_t owner, size_t content, size_t number, struct kinf__buffer *text)
{
    struct test_random random = { .state = content + 1 };
    int r = kinf__buffer_printf(text,
                                "{\"metadata\":{\"name\":\"owned-%zu-%zu\",\"namespace\":\"shop\","
                                "\"uid\":\"u-%zu\",\"resourceVersion\":\"%zu\",\"ownerReferences\":"
                                "[{\"uid\":\"owner-%zu\"}]},\"spec\":{\"env\":[\"\"",
                                owner, number, number * 7919, number + 1000, owner);

    for (size_t i = 0; r == 0 && i < 100; i++)
        r = kinf__buffer_printf(text, ",\"%llx\"", (unsigned long long)test_random_next(&random));
    if (r == 0)
        r = kinf__buffer_printf(text, "]},\"status\":{\"podIP\":\"10.0.1.%zu\"}}", number);
    assert_int_equal(r, 0);
    assert_true(text->len > MIN_OWNED_TEXT);
}

static const struct kinf_object *decode(struct fixture *f, struct kinf__packer *packer,
                                        struct kinf_str text)
{
    struct kinf__object_decoder decoder;
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf_object *object = NULL;
    size_t len;

    kinf__object_decoder_init(&decoder, f->type, f->plan);
    decoder.packer = packer;
    if (kinf__object_decode(&decoder, text, true, &object, &len, &err) < 0)
        fail_msg("%s", err.message);
    kinf__object_decoder_release(&decoder);
    assert_true(kinf__object_check(object));
    return object;
}

/* A pod as it is, and as the packer holds it. */
struct pair {
    const struct kinf_object *plain, *packed;
};

static struct pair pair_of(struct fixture *f, const struct kinf__buffer *text)
{
    const struct kinf_object *plain = decode(f, NULL, kinf__buffer_str(text));

    return (struct pair){ plain, decode(f, f->packer, kinf__buffer_str(text)) };
}

static struct pair make_pair(struct fixture *f, size_t number)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    append_pod(f, number, &text);
    return pair_of(f, &text);
}

static void release(struct pair *pair)
{
    kinf_object_unref(pair->plain);
    kinf_object_unref(pair->packed);
}

/* The first one behind the dictionary whose number has this rest by 35: there are labels or not. */
static struct pair make_packed_pair(struct fixture *f, size_t rest)
{
    for (size_t number = rest;; number += 35) {
        struct pair pair = make_pair(f, number);

        if (pair.packed->is_packed)
            return pair;
        release(&pair);
    }
}

static struct pair make_owned_pair(struct fixture *f, size_t owner, size_t number)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    append_owned_pod(owner, owner, number, &text);
    return pair_of(f, &text);
}

/* There is a dictionary then. */
static void fill_dictionary(struct fixture *f)
{
    struct pair pair = make_packed_pair(f, 4);

    release(&pair);
}

static const struct kinf_object *like_of(const struct kinf_object *object)
{
    assert_true(object->is_packed);
    return kinf__object_packed(object).like;
}

typedef int get_json(const struct kinf_object *object, struct kinf_scratch *scratch,
                     struct kinf_str *ret_text, struct kinf_error *err);

static void expect_same_text(const struct pair *pair, get_json *get)
{
    kinf_auto_scratch struct kinf_scratch a = KINF_SCRATCH_INIT, b = KINF_SCRATCH_INIT;
    struct kinf_str plain, packed;

    assert_int_equal(get(pair->plain, &a, &plain, NULL), 0);
    assert_int_equal(get(pair->packed, &b, &packed, NULL), 0);
    assert_true(kinf_str_equal(plain, packed));
}

/* Both have what is there when the text is walked from its start. */
static void expect_as_walked(const struct pair *pair, const char *path_text)
{
    kinf_auto_scratch struct kinf_scratch a = KINF_SCRATCH_INIT, b = KINF_SCRATCH_INIT;
    struct kinf__json_value walked, plain, packed;
    struct kinf_path *path;
    struct kinf_str body;
    int expected;

    assert_int_equal(kinf_path_parse(path_text, &path, NULL), 0);
    assert_int_equal(kinf__object_body(pair->plain, &a, &body), 0);
    expected = kinf__json_lookup_first(body, path, 0, &walked) ? 0 : KINF_ERR_NOT_FOUND;
    assert_int_equal(kinf__object_lookup_first(pair->plain, path, &a, &plain), expected);
    assert_int_equal(kinf__object_lookup_first(pair->packed, path, &b, &packed), expected);
    if (expected == 0) {
        assert_true(kinf_str_equal(plain.raw, walked.raw));
        assert_true(kinf_str_equal(packed.raw, walked.raw));
    }
    kinf_path_free(path);
}

static void expect_same_values(const struct pair *pair)
{
    static const char *const paths[] = { "metadata.name",          "metadata.labels.app",
                                         "metadata.labels.n",      "spec.nodeName",
                                         "status.phase",           "status.podIPs[0].ip",
                                         "spec.env[59].value",     "spec.nothing",
                                         "metadata.labels.nothing" };

    for (size_t i = 0; i < KINF__ARRAY_LEN(paths); i++) {
        char a[64] = "", b[64] = "";

        assert_int_equal(kinf_object_get_string(pair->plain, paths[i], a, sizeof a),
                         kinf_object_get_string(pair->packed, paths[i], b, sizeof b));
        assert_string_equal(a, b);
        assert_int_equal(kinf_object_has(pair->plain, paths[i]),
                         kinf_object_has(pair->packed, paths[i]));
        expect_as_walked(pair, paths[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        static const char *const keys[] = { "app", "n" };
        char a[64] = "", b[64] = "";

        assert_int_equal(kinf_object_get_label(pair->plain, keys[i], a, sizeof a),
                         kinf_object_get_label(pair->packed, keys[i], b, sizeof b));
        assert_string_equal(a, b);
    }
}

static void expect_same_selection(const struct pair *pair)
{
    static const char *const labels[] = { "app=web", "app=doubled", "n in (0,1)", "!app" };
    static const char *const fields[] = { "spec.nodeName=node-1", "status.phase!=Running",
                                          "metadata.name=web-3,spec.nodeName!=node-2",
                                          "spec.nothing=" };

    for (size_t i = 0; i < KINF__ARRAY_LEN(labels); i++) {
        struct kinf_label_selector *selector;

        assert_int_equal(kinf_label_selector_parse(labels[i], &selector, NULL), 0);
        assert_int_equal(kinf_label_selector_matches(selector, pair->plain),
                         kinf_label_selector_matches(selector, pair->packed));
        kinf_label_selector_free(selector);
    }
    for (size_t i = 0; i < KINF__ARRAY_LEN(fields); i++) {
        struct kinf_field_selector *selector;

        assert_int_equal(kinf_field_selector_parse(fields[i], &selector, NULL), 0);
        assert_int_equal(kinf_field_selector_matches(selector, pair->plain),
                         kinf_field_selector_matches(selector, pair->packed));
        kinf_field_selector_free(selector);
    }
}

static void nobody_can_tell(void **state)
{
    struct fixture *f = *state;
    size_t n_packed = 0;

    for (size_t i = 0; i < N_OBJECTS; i++) {
        struct pair pair = make_pair(f, i);

        assert_string_equal(kinf_object_key(pair.plain), kinf_object_key(pair.packed));
        assert_string_equal(kinf_object_uid(pair.plain), kinf_object_uid(pair.packed));
        assert_string_equal(kinf_object_resource_version(pair.plain),
                            kinf_object_resource_version(pair.packed));
        expect_same_text(&pair, kinf_object_json);
        expect_same_text(&pair, kinf_object_full_json);
        expect_same_values(&pair);
        expect_same_selection(&pair);
        n_packed += pair.packed->is_packed;
        release(&pair);
    }
    assert_in_range(n_packed, N_OBJECTS / 2, N_OBJECTS - 8);
}

/* The dictionary speaks for all of them. */
static void memory_is_what_it_is_for(void **state)
{
    struct fixture *f = *state;
    struct pair pair = make_packed_pair(f, 3);

    assert_true(kinf_object_size(pair.packed) * 3 < kinf_object_size(pair.plain));
    release(&pair);
}

static void what_does_not_become_smaller_stays(void **state)
{
    static const char tiny[] = "{\"metadata\":{\"name\":\"a\",\"labels\":{\"b\":\"c\"}}}";
    struct fixture *f = *state;
    struct pair pair = make_packed_pair(f, 3);
    const struct kinf_object *object = decode(f, f->packer, kinf_str_from(tiny));

    assert_false(object->is_packed);
    kinf_object_unref(object);
    release(&pair);
}

/* What stays readable of an array has other places than in the text. */
static void an_element_is_found_by_its_number(void **state)
{
    struct fixture *f = *state;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct pair pair;

    fill_dictionary(f);
    append_owned_pod(0, 0, 0, &text);
    text.len--; /* the brace */
    assert_int_equal(kinf__buffer_printf(&text, ",\"spec\":{\"mixed\":[null,{\"name\":\"b\"}]}}"),
                     0);
    pair = pair_of(f, &text);
    assert_true(pair.packed->is_packed);
    expect_as_walked(&pair, "spec.mixed[1].name");
    expect_as_walked(&pair, "spec.mixed[0].name");
    release(&pair);
}

/* A relist finds it unchanged, or not: whatever the bytes that it is compressed to. */
static void what_is_decoded_again_is_known(void **state)
{
    struct fixture *f = *state;
    struct pair pair = make_packed_pair(f, 3);
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__object_parts parts = {
        .type = f->type,
        .name_space = kinf_object_namespace(pair.plain),
        .name = kinf_str_from(kinf_object_name(pair.plain)),
        .uid = kinf_str_from(kinf_object_uid(pair.plain)),
        .resource_version = kinf_str_from(kinf_object_resource_version(pair.plain)),
    };

    assert_int_equal(kinf__object_body(pair.packed, &scratch, &parts.body), 0);
    assert_int_equal(kinf__object_equals_parts(pair.packed, &parts), 1);
    ((char *)parts.body.bytes)[parts.body.len - 3] ^= 1;
    assert_int_equal(kinf__object_equals_parts(pair.packed, &parts), 0);
    release(&pair);
}

static const struct kinf_object *look_up(const char *key, void *ctx)
{
    (void)key;
    return kinf_object_ref(ctx);
}

/* What cannot be compared is no other object: after an outage that would be one of another server. */
static void without_memory_nothing_is_decoded_anew_that_is_known(void **state)
{
    struct fixture *f = *state;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct kinf__object_decoder decoder;
    const struct kinf_object *known;
    bool has_failed = true;

    fill_dictionary(f);
    append_pod(f, 3, &text);
    known = decode(f, f->packer, kinf__buffer_str(&text));
    assert_true(known->is_packed);
    for (size_t n = 1; has_failed; n++) {
        const struct kinf_object *object = NULL;
        size_t len;
        int r;

        kinf__object_decoder_init(&decoder, f->type, f->plan);
        decoder.packer = f->packer;
        decoder.lookup = look_up;
        decoder.lookup_ctx = (void *)known;
        test_fail_allocation(n);
        r = kinf__object_decode(&decoder, kinf__buffer_str(&text), true, &object, &len, NULL);
        has_failed = test_allocation_failed();
        assert_int_equal(r, has_failed ? KINF_ERR_NO_MEMORY : 0);
        assert_true(r < 0 || object == known);
        kinf_object_unref(object);
        kinf__object_decoder_release(&decoder);
    }
    kinf_object_unref(known);
}

/* Without memory for the text there are still its labels, and what was to be kept readable. */
static void what_is_kept_readable_is_not_inflated(void **state)
{
    struct fixture *f = *state;
    struct pair pair = make_packed_pair(f, 3);
    struct kinf_path *kept, *other;
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__json_value found;
    char value[32];

    assert_int_equal(kinf_path_parse("spec.nodeName", &kept, NULL), 0);
    assert_int_equal(kinf_path_parse("status.phase", &other, NULL), 0);
    test_fail_allocation(1);
    assert_int_equal(kinf_object_get_label(pair.packed, "app", value, sizeof value), 0);
    assert_string_equal(value, "web");
    assert_int_equal(kinf__object_lookup_first(pair.packed, kept, &scratch, &found), 0);
    assert_int_equal(kinf__object_lookup_first(pair.packed, other, &scratch, &found),
                     KINF_ERR_NO_MEMORY);
    assert_true(test_allocation_failed());
    kinf_path_free(kept);
    kinf_path_free(other);
    release(&pair);
}

static void objects_outlive_their_packer(void **state)
{
    struct fixture *f = *state;
    struct pair pair = make_packed_pair(f, 3);

    kinf__packer_free(KINF__TAKE(f->packer));
    expect_same_text(&pair, kinf_object_json);
    release(&pair);
}

static size_t take_inflated(void)
{
    return atomic_exchange(&n_inflated, 0);
}

static void those_of_one_owner_are_read_by_a_text_that_is_inflated_once(void **state)
{
    struct fixture *f = *state;
    struct pair pairs[8];

    fill_dictionary(f);
    for (size_t i = 0; i < KINF__ARRAY_LEN(pairs); i++)
        pairs[i] = make_owned_pair(f, 1, i);
    for (size_t i = 1; i < KINF__ARRAY_LEN(pairs); i++)
        assert_ptr_equal(like_of(pairs[i].packed), pairs[0].packed);
    take_inflated();
    for (size_t i = 1; i < KINF__ARRAY_LEN(pairs); i++)
        expect_same_text(&pairs[i], kinf_object_json);
    assert_in_range(take_inflated(), 0, 1);
    for (size_t i = 0; i < KINF__ARRAY_LEN(pairs); i++)
        release(&pairs[i]);
}

/* Nobody looks at it: what is checked would be inflated, too. */
static const struct kinf_object *make_unread(struct fixture *f, size_t owner, size_t number)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct kinf__object_decoder decoder;
    const struct kinf_object *object = NULL;
    size_t len;

    append_owned_pod(owner, owner, number, &text);
    kinf__object_decoder_init(&decoder, f->type, f->plan);
    decoder.packer = f->packer;
    assert_int_equal(
        kinf__object_decode(&decoder, kinf__buffer_str(&text), true, &object, &len, NULL), 0);
    kinf__object_decoder_release(&decoder);
    return object;
}

#define N_MANY_OWNERS (2 * KINF__PACKED_TEXTS / MIN_OWNED_TEXT)
#define N_FEW_OWNERS  64

/* A change of one object of each. Returns how many texts that took. */
static size_t change_each(struct fixture *f, size_t n_owners, const struct kinf_object **objects)
{
    for (size_t owner = 0; owner < n_owners; owner++) {
        const struct kinf_object *before = objects[owner];

        objects[owner] = make_unread(f, owner, 1);
        kinf_object_unref(before);
    }
    return take_inflated();
}

/* Those of the owners whose objects change; of too many none is there when its turn comes again. */
static void the_texts_that_others_are_told_by_are_at_hand_until_there_are_many(void **state)
{
    static const struct kinf_object *firsts[N_MANY_OWNERS], *others[N_MANY_OWNERS];
    struct fixture *f = *state;

    fill_dictionary(f);
    for (size_t owner = 0; owner < N_MANY_OWNERS; owner++)
        firsts[owner] = make_unread(f, owner, 0);
    take_inflated();
    assert_int_equal(change_each(f, N_FEW_OWNERS, others), N_FEW_OWNERS);
    assert_int_equal(change_each(f, N_FEW_OWNERS, others), 0);
    assert_int_equal(change_each(f, N_MANY_OWNERS, others), N_MANY_OWNERS - N_FEW_OWNERS);
    assert_int_equal(change_each(f, N_MANY_OWNERS, others), N_MANY_OWNERS);
    for (size_t owner = 0; owner < N_MANY_OWNERS; owner++) {
        kinf_object_unref(firsts[owner]);
        kinf_object_unref(KINF__TAKE(others[owner]));
    }
}

/* Its cells and its metadata are of one text. */
static void a_row_of_a_table_inflates_its_object_once(void **state)
{
    struct fixture *f = *state;
    struct pair pair = make_packed_pair(f, 4);
    struct kinf__encoder encoder = {
        .type = f->type, .form = KINF__FORM_TABLE, .table = kinf__table_for(f->type), .now_s = 1
    };
    struct kinf__pieces row = { .large = SIZE_MAX };

    assert_null(like_of(pair.packed));
    take_inflated();
    assert_int_equal(kinf__encode_item(&encoder, pair.packed, &row), 0);
    assert_int_equal(take_inflated(), 1);
    assert_non_null(memmem(row.bytes.bytes, row.bytes.len, "\"Running\"", 9));
    assert_non_null(memmem(row.bytes.bytes, row.bytes.len, "PartialObjectMetadata", 21));
    kinf__pieces_release(&row);
    kinf__encoder_release(&encoder);
    release(&pair);
}

static void without_memory_nothing_is_left_behind(void **state)
{
    struct fixture *f = *state;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct kinf__object_decoder decoder;
    bool has_failed = true;

    append_pod(f, 3, &text);
    for (size_t n = 1; has_failed; n++) {
        struct kinf__packer *packer = NULL;
        const struct kinf_object *object = NULL;
        size_t len, n_done = 0;
        int r;

        kinf__object_decoder_init(&decoder, f->type, f->plan);
        test_fail_allocation(n);
        r = kinf__packer_new(&packer, NULL);
        decoder.packer = packer;
        for (; r == 0 && n_done < 60; n_done++) {
            r = kinf__object_decode(&decoder, kinf__buffer_str(&text), true, &object, &len, NULL);
            kinf_object_unref(KINF__TAKE(object));
        }
        has_failed = test_allocation_failed();
        assert_int_equal(r, has_failed ? KINF_ERR_NO_MEMORY : 0);
        kinf__object_decoder_release(&decoder);
        kinf__packer_free(packer);
    }
}

static void *read_often(void *ctx)
{
    const struct pair *pair = ctx;

    for (int i = 0; i < 200; i++)
        expect_same_text(pair, kinf_object_json);
    return NULL;
}

/* --- owners --- */

static void those_of_one_owner_are_held_by_the_first_of_them(void **state)
{
    struct fixture *f = *state;
    struct pair pairs[3][4];

    fill_dictionary(f);
    for (size_t i = 0; i < 4; i++) {
        for (size_t owner = 0; owner < 3; owner++)
            pairs[owner][i] = make_owned_pair(f, owner, i);
    }
    for (size_t owner = 0; owner < 3; owner++) {
        assert_null(like_of(pairs[owner][0].packed));
        for (size_t i = 1; i < 4; i++) {
            assert_ptr_equal(like_of(pairs[owner][i].packed), pairs[owner][0].packed);
            assert_true(kinf_object_size(pairs[owner][i].packed) * 4 <
                        kinf_object_size(pairs[owner][0].packed));
        }
    }
    for (size_t i = 0; i < 4; i++) {
        for (size_t owner = 0; owner < 3; owner++)
            expect_same_text(&pairs[owner][i], kinf_object_full_json);
    }
    for (size_t i = 0; i < 4; i++) {
        for (size_t owner = 0; owner < 3; owner++)
            release(&pairs[owner][i]);
    }
}

/* The text that it is read by is there as long as it is. */
static void what_is_held_by_another_outlives_it(void **state)
{
    struct fixture *f = *state;
    struct pair first, second;

    fill_dictionary(f);
    first = make_owned_pair(f, 0, 0);
    second = make_owned_pair(f, 0, 1);
    release(&first);
    kinf__packer_free(KINF__TAKE(f->packer));
    expect_same_text(&second, kinf_object_json);
    assert_true(kinf__object_check(second.packed));
    release(&second);
}

/* An owner whose objects become others: the newest stands for those that come behind it. */
static void who_is_not_alike_is_held_by_the_dictionary(void **state)
{
    struct fixture *f = *state;
    struct pair pairs[3]; /* the first says what owner 0 says, the others what owner 1 would */

    fill_dictionary(f);
    for (size_t i = 0; i < KINF__ARRAY_LEN(pairs); i++) {
        KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

        append_owned_pod(0, i != 0, i, &text);
        pairs[i] = pair_of(f, &text);
    }
    assert_null(like_of(pairs[0].packed));
    assert_null(like_of(pairs[1].packed));
    assert_ptr_equal(like_of(pairs[2].packed), pairs[1].packed);
    for (size_t i = 0; i < KINF__ARRAY_LEN(pairs); i++) {
        expect_same_text(&pairs[i], kinf_object_json);
        release(&pairs[i]);
    }
}

/* The first one behind the dictionary takes next to nothing, and still stands for the others: they need
 * not be compressed. */
static void whom_the_dictionary_knows_is_held_by_the_first_one_too(void **state)
{
    struct fixture *f = *state;
    struct pair pairs[20];
    size_t n_plain = 0;

    kinf__packer_set_dictionary_size(f->packer, 16000);
    for (size_t i = 0; i < KINF__ARRAY_LEN(pairs); i++) {
        pairs[i] = make_owned_pair(f, 0, (i + 1) * 123456789012347);
        n_plain += !pairs[i].packed->is_packed;
    }
    assert_in_range(n_plain, 8, KINF__ARRAY_LEN(pairs) - 2);
    assert_null(like_of(pairs[n_plain].packed));
    assert_in_range(kinf__object_packed(pairs[n_plain].packed).bytes.len, 1, 160);
    for (size_t i = 0; i < KINF__ARRAY_LEN(pairs); i++) {
        if (i > n_plain)
            assert_ptr_equal(like_of(pairs[i].packed), pairs[n_plain].packed);
        expect_same_text(&pairs[i], kinf_object_json);
        release(&pairs[i]);
    }
}

/* Decoded into the packer alone. */
static const struct kinf_object *make_owned(struct fixture *f, size_t owner, size_t number)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    append_owned_pod(owner, owner, number, &text);
    return decode(f, f->packer, kinf__buffer_str(&text));
}

/* However many there are, and whoever's comes next. */
static void owners_are_known_while_they_have_objects(void **state)
{
    struct fixture *f = *state;
    static const struct kinf_object *first[3000];

    fill_dictionary(f);
    for (size_t owner = 0; owner < KINF__ARRAY_LEN(first); owner++)
        first[owner] = make_owned(f, owner, 0);
    for (size_t owner = 0; owner < KINF__ARRAY_LEN(first); owner++) {
        const struct kinf_object *second = make_owned(f, owner, 1);

        assert_ptr_equal(like_of(second), first[owner]);
        kinf_object_unref(second);
    }
    for (size_t owner = 0; owner < KINF__ARRAY_LEN(first); owner++)
        kinf_object_unref(first[owner]);
}

/* Jobs come and go: what is remembered of them does not become more and more. */
static void owners_without_objects_are_forgotten(void **state)
{
    struct fixture *f = *state;
    size_t n_most = 0, n_before = kinf__object_count();

    fill_dictionary(f);
    for (size_t owner = 0; owner < 10000; owner++) {
        kinf_object_unref(make_owned(f, owner, 0));
        if (kinf__object_count() - n_before > n_most)
            n_most = kinf__object_count() - n_before;
    }
    assert_in_range(n_most, 1, 100);
}

/* Nor does what is remembered of many that are gone wait for as many others. */
static void owners_of_a_store_that_has_shrunk_are_forgotten(void **state)
{
    struct fixture *f = *state;
    static const struct kinf_object *first[3000];
    size_t n_before = kinf__object_count();

    fill_dictionary(f);
    for (size_t owner = 0; owner < KINF__ARRAY_LEN(first); owner++)
        first[owner] = make_owned(f, owner, 0);
    for (size_t owner = 0; owner < KINF__ARRAY_LEN(first); owner++)
        kinf_object_unref(first[owner]);
    for (size_t i = 0; i < 5000; i++)
        kinf_object_unref(make_owned(f, 1, i));
    assert_in_range(kinf__object_count() - n_before, 1, 100);
}

/* Of large ones no text is kept at hand, and each is read as it was. */
static void large_objects_are_told_by_the_first_of_them_too(void **state)
{
    enum { SIZE = 1 << 19 };
    struct fixture *f = *state;
    struct pair pairs[3];

    fill_dictionary(f);
    for (size_t i = 0; i < KINF__ARRAY_LEN(pairs); i++) {
        KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

        append_owned_pod(0, 0, i, &text);
        text.len--; /* the brace */
        assert_int_equal(kinf__buffer_printf(&text, ",\"x\":\"%0*d\"}", SIZE, 7), 0);
        pairs[i] = pair_of(f, &text);
    }
    for (size_t i = 0; i < KINF__ARRAY_LEN(pairs); i++) {
        if (i > 0)
            assert_ptr_equal(like_of(pairs[i].packed), pairs[0].packed);
        expect_same_text(&pairs[i], kinf_object_full_json);
        release(&pairs[i]);
    }
}

/* An array with nobody in it is said by some servers. */
static void nobody_is_no_owner(void **state)
{
    static const char *const nobodies[] = { "[]", "null", "[ ]" };
    struct fixture *f = *state;

    fill_dictionary(f);
    for (size_t i = 0; i < 2 * KINF__ARRAY_LEN(nobodies); i++) {
        KINF__AUTO_BUFFER text = KINF__BUFFER_INIT, owned = KINF__BUFFER_INIT;
        const struct kinf_object *object;
        const char *owners;

        append_owned_pod(0, 0, i, &owned);
        owners = strstr(kinf__buffer_cstr(&owned), "[{\"uid\"");
        assert_int_equal(kinf__buffer_printf(&text, "%.*s%s%s", (int)(owners - owned.bytes),
                                             owned.bytes, nobodies[i % KINF__ARRAY_LEN(nobodies)],
                                             strchr(owners, ']') + 1),
                         0);
        object = decode(f, f->packer, kinf__buffer_str(&text));
        assert_null(like_of(object));
        kinf_object_unref(object);
    }
}

/* All are held: an owner whose first object nobody has any more may be forgotten with any that comes. */
static void without_memory_owned_objects_leave_nothing_behind(void **state)
{
    enum { n_objects = 12 };
    struct fixture *f = *state;
    KINF__AUTO_BUFFER first = KINF__BUFFER_INIT, second = KINF__BUFFER_INIT;
    struct kinf__object_decoder decoder;
    bool has_failed = true;

    append_owned_pod(0, 0, 0, &first);
    append_owned_pod(0, 0, 1, &second);
    for (size_t n = 1; has_failed; n++) {
        const struct kinf__buffer *texts[] = { &first, &second };
        struct kinf__packer *packer = NULL;
        const struct kinf_object *objects[n_objects] = { NULL };
        kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
        struct kinf_str text;
        size_t len;
        int r;

        kinf__object_decoder_init(&decoder, f->type, f->plan);
        test_fail_allocation(n);
        r = kinf__packer_new(&packer, NULL);
        if (r == 0)
            kinf__packer_set_dictionary_size(packer, 4000);
        decoder.packer = packer;
        for (size_t i = 0; r == 0 && i < n_objects; i++)
            r = kinf__object_decode(&decoder, kinf__buffer_str(texts[i % 2]), true, &objects[i],
                                    &len, NULL);
        if (r == 0)
            r = kinf__object_body(objects[n_objects - 1], &scratch, &text);
        has_failed = test_allocation_failed();
        assert_int_equal(r, has_failed ? KINF_ERR_NO_MEMORY : 0);
        if (r == 0)
            assert_non_null(like_of(objects[n_objects - 1]));
        for (size_t i = 0; i < n_objects; i++)
            kinf_object_unref(objects[i]);
        kinf__object_decoder_release(&decoder);
        kinf__packer_free(packer);
    }
}

/* More readers than there are contexts. */
static void many_read_at_once(void **state)
{
    struct fixture *f = *state;
    struct pair pairs[4];
    pthread_t threads[8];

    fill_dictionary(f);
    for (size_t i = 0; i < KINF__ARRAY_LEN(pairs); i++)
        pairs[i] = make_owned_pair(f, i % 2, i);
    assert_non_null(like_of(pairs[3].packed));
    for (size_t i = 0; i < KINF__ARRAY_LEN(threads); i++)
        assert_int_equal(kinf__thread_start(&threads[i], "reader", read_often, &pairs[i % 4], NULL),
                         0);
    for (size_t i = 0; i < KINF__ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < KINF__ARRAY_LEN(pairs); i++)
        release(&pairs[i]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(nobody_can_tell),
        TEST(memory_is_what_it_is_for),
        TEST(what_does_not_become_smaller_stays),
        TEST(what_is_decoded_again_is_known),
        TEST(without_memory_nothing_is_decoded_anew_that_is_known),
        TEST(what_is_kept_readable_is_not_inflated),
        TEST(those_of_one_owner_are_read_by_a_text_that_is_inflated_once),
        TEST(the_texts_that_others_are_told_by_are_at_hand_until_there_are_many),
        TEST(a_row_of_a_table_inflates_its_object_once),
        TEST(objects_outlive_their_packer),
        TEST(without_memory_nothing_is_left_behind),
        TEST(those_of_one_owner_are_held_by_the_first_of_them),
        TEST(what_is_held_by_another_outlives_it),
        TEST(who_is_not_alike_is_held_by_the_dictionary),
        TEST(whom_the_dictionary_knows_is_held_by_the_first_one_too),
        TEST(owners_are_known_while_they_have_objects),
        TEST(owners_without_objects_are_forgotten),
        TEST(owners_of_a_store_that_has_shrunk_are_forgotten),
        TEST(nobody_is_no_owner),
        TEST(large_objects_are_told_by_the_first_of_them_too),
        TEST(an_element_is_found_by_its_number),
        TEST(without_memory_owned_objects_leave_nothing_behind),
        TEST(many_read_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
