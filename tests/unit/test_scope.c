/*
 * Scope decisions: whatever a source covers it answers as the whole store would, for any scope and
 * any request; the rest it refuses.
 */
#include "serve/scope.h"

#include <stdio.h>
#include <string.h>

#include "object/shard.h"
#include "unit/allocation.h"
#include "unit/test.h"

#define N_OBJECTS 48

static const struct kinf_type pods = { "", "v1", "Pod", "pods", true };
static const char low_half[] =
    "shardRange(object.metadata.uid,'0x0000000000000000','0x8000000000000000')";
static const char high_half[] =
    "shardRange(object.metadata.uid,'0x8000000000000000','0x10000000000000000')";

static const char *const namespaces[] = { "", "", "a", "b" };
static const char *const label_selectors[] = {
    "", "", "app=web", "app", "app=web,tier=x", "tier=x", "app in (web,db)", "app!=web", "ap"
};
static const char *const field_selectors[] = {
    "",
    "",
    "spec.nodeName=n1",
    "status.phase!=Failed",
    "spec.nodeName=n1,status.phase!=Failed",
    "metadata.name=pod-3",
    "status.phase=Running",
    "metadata.namespace=a",
    "spec.hostNetwork=false",
};
static const char *const shard_selectors[] = { "", "", low_half, high_half };
static const char *const drops[] = {
    NULL, NULL, "spec", "spec.nodeName", "status", "metadata.annotations", "status.conditions"
};
static const char *const keeps[] = { NULL, NULL, NULL, "spec", "status.phase", "spec.nodeName" };

#define CHOOSE(random, texts) ((texts)[test_random_below(random, KINF__ARRAY_LEN(texts))])

/* --- objects --- */

struct store {
    const struct kinf_object *objects[N_OBJECTS];
    bool is_in[N_OBJECTS];
};

static void decode_store(const struct kinf__prune_plan *plan, struct store *ret_store)
{
    struct kinf__object_decoder decoder;
    char text[512];
    size_t len;

    kinf__object_decoder_init(&decoder, &pods, plan);
    for (size_t i = 0; i < N_OBJECTS; i++) {
        snprintf(text, sizeof text,
                 "{\"metadata\":{\"name\":\"pod-%zu\",\"namespace\":\"%s\",\"uid\":\"uid-%zu\","
                 "\"resourceVersion\":\"%zu\",\"labels\":{%s%s}},\"spec\":{%s},\"status\":{"
                 "\"phase\":\"%s\"}}",
                 i / 2, i % 2 == 0 ? "a" : "b", i * 7919, i + 1,
                 i % 3 == 0 ? "\"app\":\"web\"," : (i % 3 == 1 ? "\"app\":\"db\"," : ""),
                 i % 5 < 2 ? "\"tier\":\"x\"" : "\"tier\":\"y\"",
                 i % 4 == 0 ? "\"nodeName\":\"n1\"" : (i % 4 == 1 ? "\"nodeName\":\"n2\"" : ""),
                 i % 7 < 3 ? "Running" : "Failed");
        assert_int_equal(kinf__object_decode(&decoder, kinf_str_from(text), true,
                                             &ret_store->objects[i], &len, NULL),
                         0);
        ret_store->is_in[i] = true;
    }
    kinf__object_decoder_release(&decoder);
}

static void release_store(struct store *store)
{
    for (size_t i = 0; i < N_OBJECTS; i++)
        kinf_object_unref(store->objects[i]);
}

/* --- selecting --- */

struct wish {
    const char *name_space, *labels, *fields, *shard;
};

static struct kinf__fields *bound_fields(const char *text)
{
    struct kinf__refusal refusal;
    struct kinf__fields *fields = NULL;

    assert_int_equal(kinf__fields_parse(text, &fields, &refusal), 0);
    assert_int_equal(kinf__fields_bind(fields, &pods, NULL, 0, &refusal), 0);
    return fields;
}

static bool is_in_namespace(const struct kinf_object *object, const char *name_space)
{
    return *name_space == '\0' ||
           kinf_str_equal(kinf_object_namespace(object), kinf_str_from(name_space));
}

/* What the API server would select. */
static void select_from(struct store *store, const struct wish *wish)
{
    struct kinf_label_selector *labels = NULL;
    struct kinf__shard_selector *shard = NULL;
    struct kinf__fields *fields = bound_fields(wish->fields);

    assert_int_equal(kinf_label_selector_parse(wish->labels, &labels, NULL), 0);
    if (*wish->shard != '\0')
        assert_int_equal(kinf__shard_selector_parse(wish->shard, &shard, NULL), 0);
    for (size_t i = 0; i < N_OBJECTS; i++) {
        const struct kinf_object *object = store->objects[i];

        store->is_in[i] = is_in_namespace(object, wish->name_space) &&
                          kinf_label_selector_matches(labels, object) &&
                          kinf__fields_match(fields, object) &&
                          (shard == NULL || kinf__shard_selector_matches(shard, object));
    }
    kinf__shard_selector_free(shard);
    kinf_label_selector_free(labels);
    kinf__fields_free(fields);
}

static struct wish random_wish(struct test_random *random)
{
    return (struct wish){ CHOOSE(random, namespaces), CHOOSE(random, label_selectors),
                          CHOOSE(random, field_selectors), CHOOSE(random, shard_selectors) };
}

/* Joins the scope's selector in front of the request's own now and then, so that it is covered. */
static const char *join(struct test_random *random, const char *a, const char *b, char *buf,
                        size_t size)
{
    if (test_random_below(random, 2) == 0)
        return b;
    snprintf(buf, size, "%s%s%s", a, *a != '\0' && *b != '\0' ? "," : "", b);
    return buf;
}

static struct kinf__prune_plan *random_plan(struct test_random *random)
{
    const char *drop, *keep;
    struct kinf__prune_plan *plan;
    int failed;

    do {
        drop = CHOOSE(random, drops);
        keep = CHOOSE(random, keeps);
        failed = kinf__prune_plan_new(&drop, drop != NULL, &keep, keep != NULL, &plan, NULL);
    } while (failed == KINF_ERR_INVALID); /* what is kept is dropped */
    assert_int_equal(failed, 0);
    return plan;
}

/* Returns whether it is covered; then `kept`, the source's pruned objects, must give the same. */
static bool try_request(const struct kinf__scope *scope, const struct wish *limits,
                        const struct wish *wish, struct store *whole, const struct store *kept)
{
    struct kinf__list_options options = { .label_selector = wish->labels,
                                          .field_selector = wish->fields,
                                          .shard_selector = wish->shard,
                                          .fields = bound_fields(wish->fields) };
    struct kinf_label_selector *labels = NULL;
    struct wish expected = *wish;
    bool is_covered = kinf__scope_covers_namespace(scope, wish->name_space) &&
                      kinf__scope_covers_selection(scope, &options) &&
                      kinf__scope_apply(scope, options.fields) == NULL;

    /* A cache that is no shard's answers with all, as a server does that knows none. */
    if (*limits->shard == '\0')
        expected.shard = "";
    select_from(whole, &expected);
    assert_int_equal(kinf_label_selector_parse(wish->labels, &labels, NULL), 0);
    for (size_t i = 0; is_covered && i < N_OBJECTS; i++) {
        const struct kinf_object *object = kept->objects[i];

        assert_int_equal(kept->is_in[i] && is_in_namespace(object, wish->name_space) &&
                             kinf_label_selector_matches(labels, object) &&
                             kinf__fields_match(options.fields, object),
                         whole->is_in[i]);
    }
    kinf_label_selector_free(labels);
    kinf__fields_free(options.fields);
    return is_covered;
}

static void an_answer_is_complete_or_there_is_none(void **state)
{
    struct test_random random = test_random_init(__func__);
    size_t n_covered = 0, n_refused = 0;
    struct store whole, kept;
    struct kinf__prune_plan *all;

    (void)state;
    assert_int_equal(kinf__prune_plan_new(NULL, 0, NULL, 0, &all, NULL), 0);
    decode_store(all, &whole);
    for (size_t round = 0; round < test_rounds(400); round++) {
        struct kinf__prune_plan *plan = random_plan(&random);
        struct wish limits = random_wish(&random);
        struct kinf__scope scope;

        assert_int_equal(kinf__scope_init(&scope, limits.name_space, limits.labels, limits.fields,
                                          limits.shard, plan),
                         0);
        decode_store(plan, &kept);
        select_from(&whole, &limits);
        memcpy(kept.is_in, whole.is_in, sizeof kept.is_in);
        for (size_t i = 0; i < 40; i++) {
            char labels[256], fields[256];
            struct wish wish = random_wish(&random);

            wish.labels = join(&random, limits.labels, wish.labels, labels, sizeof labels);
            wish.fields = join(&random, limits.fields, wish.fields, fields, sizeof fields);
            if (test_random_below(&random, 2) == 0)
                wish.shard = limits.shard;
            if (try_request(&scope, &limits, &wish, &whole, &kept))
                n_covered++;
            else
                n_refused++;
        }
        release_store(&kept);
        kinf__scope_release(&scope);
        kinf__prune_plan_free(plan);
    }
    assert_true(n_covered > 100 && n_refused > 100);
    release_store(&whole);
    kinf__prune_plan_free(all);
}

/* --- single decisions --- */

static void a_shard_is_less_than_the_whole(void **state)
{
    struct kinf__list_options all = { .label_selector = "",
                                      .field_selector = "",
                                      .shard_selector = "" };
    struct kinf__list_options same = all, other = all;
    struct kinf__scope scope;
    char words[256];

    (void)state;
    same.shard_selector = low_half;
    other.shard_selector = high_half;
    assert_int_equal(kinf__scope_init(&scope, NULL, NULL, NULL, low_half, NULL), 0);
    assert_true(kinf__scope_is_selective(&scope));
    assert_false(kinf__scope_covers_selection(&scope, &all));
    assert_false(kinf__scope_covers_selection(&scope, &other));
    assert_true(kinf__scope_covers_selection(&scope, &same));
    kinf__scope_words(&scope, words, sizeof words);
    assert_non_null(strstr(words, low_half));
    kinf__scope_release(&scope);
}

static void a_dropped_field_is_compared_only_if_all_have_the_value(void **state)
{
    static const char *const drop[] = { "spec" };
    struct kinf__fields *given = bound_fields("spec.nodeName=n1"),
                        *other = bound_fields("spec.nodeName=n1,spec.schedulerName=x");
    struct kinf__prune_plan *plan;
    struct kinf__scope scope;

    (void)state;
    assert_int_equal(kinf__prune_plan_new(drop, 1, NULL, 0, &plan, NULL), 0);
    assert_int_equal(kinf__scope_init(&scope, NULL, NULL, "spec.nodeName=n1", NULL, plan), 0);
    assert_null(kinf__scope_apply(&scope, given));
    /* An index of values that nobody has would find nothing. */
    assert_null(kinf__fields_required(given, "spec.nodeName"));
    assert_string_equal(kinf__scope_apply(&scope, other), "spec.schedulerName");
    kinf__scope_release(&scope);
    kinf__prune_plan_free(plan);
    kinf__fields_free(given);
    kinf__fields_free(other);
}

static void the_words_name_every_limit_and_fit_any_room(void **state)
{
    static const struct {
        const char *name_space, *labels, *fields, *expected;
    } cases[] = {
        { "", "", "", " of all namespaces" },
        { "a", "", "", " in the namespace a" },
        { "", "x=1", "", " with x=1" },
        { "a", "x=1", "y=2", " in the namespace a with x=1 and y=2" },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(cases); i++) {
        struct kinf__scope scope;
        char words[64];

        assert_int_equal(kinf__scope_init(&scope, cases[i].name_space, cases[i].labels,
                                          cases[i].fields, "", NULL),
                         0);
        kinf__scope_words(&scope, words, sizeof words);
        assert_string_equal(words, cases[i].expected);
        for (size_t size = 1; size < sizeof words; size++) {
            kinf__scope_words(&scope, words, size);
            assert_memory_equal(words, cases[i].expected, strlen(words));
        }
        kinf__scope_release(&scope);
    }
}

static void without_memory_there_is_no_scope(void **state)
{
    bool did_fail = true;

    (void)state;
    for (size_t n = 1; did_fail; n++) {
        struct kinf__scope scope;
        int failed;

        test_fail_allocation(n);
        failed = kinf__scope_init(&scope, "a", "b=c", "d=e", low_half, NULL);
        did_fail = test_allocation_failed();
        assert_int_equal(failed, did_fail ? KINF_ERR_NO_MEMORY : 0);
        if (failed == 0)
            kinf__scope_release(&scope);
    }
}

/* Otherwise what is covered would be refused, or go to the API server, whenever memory is short. */
static void what_is_covered_is_known_without_memory(void **state)
{
    struct kinf__list_options options = { .label_selector = "",
                                          .shard_selector = "",
                                          .fields = bound_fields("metadata.name=a") };
    struct kinf__scope scope;

    (void)state;
    assert_int_equal(kinf__scope_init(&scope, NULL, NULL, "metadata.name=a", NULL, NULL), 0);
    test_fail_allocation(1);
    assert_true(kinf__scope_covers_selection(&scope, &options));
    assert_false(test_allocation_failed());
    kinf__scope_release(&scope);
    kinf__fields_free(options.fields);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_complete_or_there_is_none),
        cmocka_unit_test(a_shard_is_less_than_the_whole),
        cmocka_unit_test(a_dropped_field_is_compared_only_if_all_have_the_value),
        cmocka_unit_test(the_words_name_every_limit_and_fit_any_room),
        cmocka_unit_test(without_memory_there_is_no_scope),
        cmocka_unit_test(what_is_covered_is_known_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
