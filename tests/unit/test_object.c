/*
 * The object: decoding and pruning, what stays equal, what is refused, reading fields.
 */
#include "object/object.h"

#include <stdio.h>
#include <string.h>

#include <kinformer/tree.h>

#include "base/error.h"
#include "unit/allocation.h"
#include "unit/test.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

/* A pod as the API server orders it, less kind and apiVersion. */
#define POD_REST                                                                                   \
    "\"metadata\":{\"name\":\"web-7d4b9c6f5-x2x9k\",\"generateName\":\"web-7d4b9c6f5-\","          \
    "\"namespace\":\"shop\",\"uid\":\"5f0c3a52-4b0c-4c40-8f7c-52a4ad2d3d9d\","                     \
    "\"resourceVersion\":\"123456\",\"labels\":{\"app\":\"web\",\"tier\":\"front\"},"              \
    "\"annotations\":{\"example.org/owner\":\"team \\u003ca\\u003e\",\"nul\":\"a\\u0000b\"},"      \
    "\"ownerReferences\":[{\"kind\":\"ReplicaSet\",\"name\":\"web-7d4b9c6f5\",\"uid\":\"9d0e\"}]," \
    "\"managedFields\":[{\"manager\":\"kubelet\",\"fieldsV1\":{\"f:status\":{}}}],"                \
    "\"deletionTimestamp\":null},"                                                                 \
    "\"spec\":{\"nodeName\":\"node-3\",\"hostNetwork\":false,\"priority\":-5,"                     \
    "\"big\":9007199254740993,\"huge\":9223372036854775808,\"half\":0.5,"                          \
    "\"containers\":[{\"name\":\"app\",\"image\":\"web:1\"},{\"name\":\"log\",\"image\":\"log:"    \
    "2\"}]},"                                                                                      \
    "\"status\":{\"phase\":\"Running\"}}"

static const char pod_bare[] = "{" POD_REST;
static const char pod_typed[] = "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"," POD_REST;

static const struct kinf_type *type_of(const char *group, const char *version, const char *kind,
                                       const char *resource, bool namespaced)
{
    const struct kinf_type *type;

    assert_int_equal(kinf_type_intern(group, version, kind, resource, namespaced, &type, NULL), 0);
    return type;
}

static const struct kinf_type *pods(void)
{
    return type_of("", "v1", "Pod", "pods", true);
}

static const struct kinf_object *pod_of(const char *text)
{
    const struct kinf_object *object;
    struct kinf_error err = KINF_ERROR_INIT;

    if (kinf_object_new_from_json(pods(), text, strlen(text), &object, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    assert_true(kinf__object_check(object));
    return object;
}

static void expect_same_json(const struct kinf_object *object, struct kinf_str expected)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str text;

    assert_int_equal(kinf_object_json(object, &scratch, &text, NULL), 0);
    if (!kinf_str_equal(text, expected))
        fail_msg("%.*s\nexpected %.*s", (int)text.len, text.bytes, (int)expected.len,
                 expected.bytes);
}

static void expect_json(const struct kinf_object *object, const char *expected)
{
    expect_same_json(object, kinf_str_from(expected));
}

static void expect_full_json(const struct kinf_object *object, const char *expected)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str text;

    assert_int_equal(kinf_object_full_json(object, &scratch, &text, NULL), 0);
    if (!kinf_str_equal(text, kinf_str_from(expected)))
        fail_msg("%.*s\nexpected %s", (int)text.len, text.bytes, expected);
}

/* Every test gives back all objects it made. */
static int count_before(void **state)
{
    *state = (void *)(uintptr_t)kinf__object_count();
    return 0;
}

static int count_after(void **state)
{
    assert_int_equal(kinf__object_count(), (size_t)(uintptr_t)*state);
    return 0;
}

static void an_object_knows_who_it_is(void **state)
{
    const struct kinf_object *object = pod_of(pod_typed);

    (void)state;
    assert_ptr_equal(kinf_object_type(object), pods());
    assert_string_equal(kinf_object_key(object), "shop/web-7d4b9c6f5-x2x9k");
    assert_string_equal(kinf_object_name(object), "web-7d4b9c6f5-x2x9k");
    assert_true(kinf_str_equal(kinf_object_namespace(object), KINF_STR("shop")));
    assert_string_equal(kinf_object_uid(object), "5f0c3a52-4b0c-4c40-8f7c-52a4ad2d3d9d");
    assert_string_equal(kinf_object_resource_version(object), "123456");
    assert_true(kinf_object_size(object) > sizeof pod_bare);
    kinf_object_unref(object);
}

static void what_the_server_did_not_send_is_empty(void **state)
{
    static const char *const texts[] = {
        "{\"metadata\":{\"name\":\"n1\"}}",
        "{\"metadata\":{\"name\":\"n1\",\"namespace\":\"\",\"uid\":\"\",\"resourceVersion\":\"\"}}",
        "{\"metadata\":{\"namespace\":null,\"uid\":null,\"resourceVersion\":null,\"name\":\"n1\"}}",
        "{\"metadata\":{\"name\":\"n1\"},\"kind\":null}",
    };

    (void)state;
    for (size_t i = 0; i < N(texts); i++) {
        const struct kinf_object *object = pod_of(texts[i]);

        assert_string_equal(kinf_object_key(object), "n1");
        assert_string_equal(kinf_object_name(object), "n1");
        assert_int_equal(kinf_object_namespace(object).len, 0);
        assert_string_equal(kinf_object_uid(object), "");
        assert_string_equal(kinf_object_resource_version(object), "");
        kinf_object_unref(object);
    }
}

static void kind_and_api_version_leave_no_trace(void **state)
{
    static const char *const texts[] = {
        "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"kind\":\"x\",\"apiVersion\":\"y\"}}",
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"},"
        "\"spec\":{\"kind\":\"x\",\"apiVersion\":\"y\"}}",
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"},"
        "\"spec\":{\"kind\":\"x\",\"apiVersion\":\"y\"}}",
        "{\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"},\"kind\":\"Pod\","
        "\"spec\":{\"kind\":\"x\",\"apiVersion\":\"y\"}}",
        "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"kind\":\"x\",\"apiVersion\":\"y\"},"
        "\"kind\":\"Pod\",\"apiVersion\":\"v1\"}",
        " {\"\\u006bind\":\"\\u0050od\",\"metadata\":{\"name\":\"a\"},"
        "\"spec\":{\"kind\":\"x\",\"apiVersion\":\"y\"}}\n",
    };

    (void)state;
    for (size_t i = 0; i < N(texts); i++) {
        const struct kinf_object *object = pod_of(texts[i]);

        expect_json(object, texts[0]);
        kinf_object_unref(object);
    }
}

static void a_listed_and_a_watched_pod_have_equal_bytes(void **state)
{
    const struct kinf_object *listed = pod_of(pod_bare), *watched = pod_of(pod_typed);

    (void)state;
    expect_json(listed, pod_bare);
    expect_json(watched, pod_bare);
    expect_full_json(listed, pod_typed);
    kinf_object_unref(listed);
    kinf_object_unref(watched);
}

static void the_full_text_begins_with_kind_and_api_version(void **state)
{
    const struct kinf_type *deployments = type_of("apps", "v1", "Deployment", "deployments", true);
    struct kinf__object_parts parts = { .type = deployments, .name = KINF_STR("a") };
    static const struct {
        struct kinf_str body;
        const char *full;
    } table[] = {
        { { "{}", 2 }, "{\"kind\":\"Deployment\",\"apiVersion\":\"apps/v1\"}" },
        { { "{ \n}", 4 }, "{\"kind\":\"Deployment\",\"apiVersion\":\"apps/v1\"}" },
        { { "{\"a\":1}", 7 }, "{\"kind\":\"Deployment\",\"apiVersion\":\"apps/v1\",\"a\":1}" },
        { { "{ \"a\":1 }", 9 }, "{\"kind\":\"Deployment\",\"apiVersion\":\"apps/v1\",\"a\":1 }" },
    };

    (void)state;
    for (size_t i = 0; i < N(table); i++) {
        const struct kinf_object *object;

        parts.body = table[i].body;
        assert_int_equal(kinf__object_new(&parts, &object, NULL), 0);
        expect_full_json(object, table[i].full);
        kinf_object_unref(object);
    }
}

/* Decodes the object at `at`, which is the n-th widget of the recordings, and returns its end. */
static const char *decode_widget(struct kinf__object_decoder *decoder, const char *at, size_t n)
{
    const struct kinf_object *object;
    struct kinf_error err = KINF_ERROR_INIT;
    char expected[32], name[32];
    size_t len;

    if (kinf__object_decode(decoder, kinf_str_from(at), false, &object, &len, &err) < 0)
        fail_msg("widget %zu: %s", n, err.message);
    snprintf(expected, sizeof expected, "t1/w%zu", n);
    assert_string_equal(kinf_object_key(object), expected);
    assert_int_equal(strlen(kinf_object_uid(object)), 36);
    snprintf(expected, sizeof expected, "widget %zu", n);
    assert_int_equal(kinf_object_get_string(object, "spec.name", name, sizeof name), 0);
    assert_string_equal(name, expected);
    assert_int_equal(kinf_object_get_string(object, "kind", name, sizeof name), KINF_ERR_NOT_FOUND);
    kinf_object_unref(object);
    return at + len;
}

static void recorded_objects_decode_one_behind_the_other(void **state)
{
    struct kinf__object_decoder decoder;
    struct kinf__prune_plan *plan;
    size_t len, n = 0;
    char *list = test_read_data("transcripts/01-list-cr.http", &len);
    char *watch = test_read_data("transcripts/03-watchlist-cr.http", &len);
    const char *at;

    (void)state;
    assert_int_equal(kinf__prune_plan_new(NULL, 0, NULL, 0, &plan, NULL), 0);
    kinf__object_decoder_init(&decoder, type_of("example.com", "v1", "Widget", "widgets", true),
                              plan);
    at = strstr(list, "\"items\":[") + strlen("\"items\":[") - 1;
    while (*at != ']')
        at = decode_widget(&decoder, at + 1, n++);
    assert_int_equal(n, 3);
    n = 0;
    for (at = watch; (at = strstr(at, "\"ADDED\",\"object\":")) != NULL; n++)
        at = decode_widget(&decoder, at + strlen("\"ADDED\",\"object\":"), n);
    assert_int_equal(n, 3);
    kinf__object_decoder_release(&decoder);
    kinf__prune_plan_free(plan);
    free(list);
    free(watch);
}

static void keys_may_come_in_any_order(void **state)
{
    const struct kinf_object *object = pod_of(
        "{\"status\":{\"phase\":\"x\"},\"spec\":{\"name\":\"no\"},\"metadata\":{\"uid\":\"u\","
        "\"resourceVersion\":\"1\",\"labels\":{\"l\":\"v\"},\"namespace\":\"ns\","
        "\"name\":\"a\"},\"kind\":\"Pod\"}");
    char buf[8];

    (void)state;
    assert_string_equal(kinf_object_key(object), "ns/a");
    assert_string_equal(kinf_object_uid(object), "u");
    assert_string_equal(kinf_object_resource_version(object), "1");
    assert_int_equal(kinf_object_get_label(object, "l", buf, sizeof buf), 0);
    assert_string_equal(buf, "v");
    kinf_object_unref(object);
}

static void identity_is_decoded_from_escapes(void **state)
{
    const struct kinf_object *object = pod_of(
        "{\"metadata\":{\"name\":\"a\\u003cb\\u003e\\ud83d\\ude00\",\"namespace\":\"\\u006es\","
        "\"uid\":\"\\\"q\\\"\",\"resourceVersion\":\"\\u0031\"}}");

    (void)state;
    assert_string_equal(kinf_object_key(object), "ns/a<b>\xf0\x9f\x98\x80");
    assert_string_equal(kinf_object_uid(object), "\"q\"");
    assert_string_equal(kinf_object_resource_version(object), "1");
    kinf_object_unref(object);
}

static void what_is_no_object_of_the_type_is_refused(void **state)
{
    static const struct {
        const char *text;
        const char *reason;
    } table[] = {
        { "[]", "no object" },
        { "\"a\"", "no object" },
        { "7 ", "no object" },
        { "{}", "metadata.name" },
        { "{\"metadata\":null}", "metadata.name" },
        { "{\"metadata\":[]}", "metadata is no object" },
        { "{\"metadata\":{}}", "metadata.name" },
        { "{\"metadata\":{\"name\":\"\"}}", "metadata.name" },
        { "{\"metadata\":{\"name\":null}}", "metadata.name" },
        { "{\"metadata\":{\"name\":7}}", "metadata.name is no string" },
        { "{\"metadata\":{\"name\":{}}}", "metadata.name is no string" },
        { "{\"metadata\":{\"name\":\"a\",\"namespace\":[]}}", "metadata.namespace is no string" },
        { "{\"metadata\":{\"name\":\"a\",\"uid\":true}}", "metadata.uid is no string" },
        { "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":12}}",
          "metadata.resourceVersion is no string" },
        { "{\"metadata\":{\"name\":\"a\",\"name\":\"a\"}}", "metadata.name is there 2 times" },
        { "{\"metadata\":{\"name\":\"a\",\"n\\u0061me\":\"b\"}}",
          "metadata.name is there 2 times" },
        { "{\"metadata\":{\"name\":\"a\"},\"metadata\":{}}", "metadata is there 2 times" },
        { "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\",\"resourceVersion\":\"2\"}}",
          "metadata.resourceVersion is there 2 times" },
        { "{\"kind\":\"Pod\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}",
          "kind is there 2 times" },
        { "{\"metadata\":{\"name\":\"a\\u0000b\"}}", "metadata.name holds a NUL" },
        { "{\"metadata\":{\"name\":\"a\",\"uid\":\"\\u0000\"}}", "metadata.uid holds a NUL" },
        { "{\"metadata\":{\"name\":\"a/b\"}}", "metadata.name 'a/b' holds a slash" },
        { "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\\/c\"}}",
          "metadata.namespace 'b/c' holds a slash" },
        { "{\"kind\":\"Service\",\"metadata\":{\"name\":\"a\"}}",
          "kind is \"Service\" where Pod was expected" },
        { "{\"metadata\":{\"name\":\"a\"},\"kind\":\"pod\"}",
          "kind is \"pod\" where Pod was expected" },
        { "{\"kind\":1,\"metadata\":{\"name\":\"a\"}}", "kind is no string" },
        { "{\"kind\":\"Pod\",\"apiVersion\":\"v2\",\"metadata\":{\"name\":\"a\"}}",
          "apiVersion is \"v2\" where v1 was expected" },
        { "{\"metadata\":{\"name\":\"a\"},\"apiVersion\":\"x/v1\"}",
          "apiVersion is \"x/v1\" where v1 was expected" },
        { "{\"apiVersion\":1,\"metadata\":{\"name\":\"a\"}}", "apiVersion is no string" },
    };
    struct kinf__object_decoder decoder;
    struct kinf__prune_plan *plan;

    (void)state;
    assert_int_equal(kinf__prune_plan_new(NULL, 0, NULL, 0, &plan, NULL), 0);
    kinf__object_decoder_init(&decoder, pods(), plan);
    for (size_t i = 0; i < N(table); i++) {
        const struct kinf_object *object = NULL;
        struct kinf_error err = KINF_ERROR_INIT;
        size_t len = 99;

        assert_int_equal(
            kinf__object_decode(&decoder, kinf_str_from(table[i].text), true, &object, &len, &err),
            KINF_ERR_PARSE);
        assert_null(object);
        assert_int_equal(err.code, KINF_ERR_PARSE);
        if (strstr(err.message, table[i].reason) == NULL)
            fail_msg("%s: %s", table[i].text, err.message);
        /* The reader can go on behind it. */
        assert_int_equal(len, strcspn(table[i].text, " "));
        assert_int_equal(
            kinf_object_new_from_json(pods(), table[i].text, strlen(table[i].text), &object, NULL),
            KINF_ERR_PARSE);
    }
    kinf__object_decoder_release(&decoder);
    kinf__prune_plan_free(plan);
}

static void what_is_no_json_has_no_end(void **state)
{
    static const char *const texts[] = { "",
                                         " ",
                                         "x",
                                         "{x",
                                         "{\"metadata\":{\"name\":\"a\"},}",
                                         "\xef\xbb\xbf{}",
                                         "{\"metadata\":{\"name\":\"a\nb\"}}",
                                         "{\"a\":01}" };
    struct kinf__object_decoder decoder;
    struct kinf__prune_plan *plan;

    (void)state;
    assert_int_equal(kinf__prune_plan_new(NULL, 0, NULL, 0, &plan, NULL), 0);
    kinf__object_decoder_init(&decoder, pods(), plan);
    for (size_t i = 0; i < N(texts); i++) {
        const struct kinf_object *object = NULL;
        struct kinf_error err = KINF_ERROR_INIT;
        size_t len = 99;
        int r = kinf__object_decode(&decoder, kinf_str_from(texts[i]), true, &object, &len, &err);

        assert_int_equal(r, i < 2 ? KINF_ERR_TRUNCATED : KINF_ERR_PARSE);
        assert_int_equal(err.code, i < 2 ? 0 : KINF_ERR_PARSE);
        assert_int_equal(len, 0);
        assert_int_equal(
            kinf_object_new_from_json(pods(), texts[i], strlen(texts[i]), &object, &err),
            KINF_ERR_PARSE);
        assert_null(object);
    }
    assert_int_equal(kinf_object_new_from_json(pods(), "{\"metadata\":{\"name\":\"a\"}} {}", 28,
                                               &(const struct kinf_object *){ NULL }, NULL),
                     KINF_ERR_PARSE);
    kinf__object_decoder_release(&decoder);
    kinf__prune_plan_free(plan);
}

static void a_pod_cut_anywhere_asks_for_more(void **state)
{
    static const char *const drops[] = { "metadata.managedFields", "spec.containers[*].image" };
    struct kinf__object_decoder decoder;
    struct kinf__prune_plan *plan;

    (void)state;
    assert_int_equal(kinf__prune_plan_new(drops, N(drops), NULL, 0, &plan, NULL), 0);
    kinf__object_decoder_init(&decoder, pods(), plan);
    for (size_t cut = 0; cut < sizeof pod_typed - 1; cut++) {
        const struct kinf_object *object = NULL;
        struct kinf_error err = KINF_ERROR_INIT;
        size_t len = 99;
        char *text = malloc(cut + 1); /* of the exact size, so that a byte read too far is seen */

        assert_non_null(text);
        memcpy(text, pod_typed, cut);
        for (int is_final = 0; is_final < 2; is_final++) {
            assert_int_equal(kinf__object_decode(&decoder, (struct kinf_str){ text, cut },
                                                 is_final != 0, &object, &len, &err),
                             KINF_ERR_TRUNCATED);
            assert_int_equal(len, 0);
        }
        assert_int_equal(err.code, 0);
        free(text);
    }
    kinf__object_decoder_release(&decoder);
    kinf__prune_plan_free(plan);
}

/* What `text` becomes under a plan. */
static void expect_pruned(const char *const *drops, size_t n_drops, const char *const *keeps,
                          size_t n_keeps, const char *text, const char *expected)
{
    struct kinf__object_decoder decoder;
    const struct kinf_object *object;
    struct kinf__prune_plan *plan;
    struct kinf_error err = KINF_ERROR_INIT;
    size_t len;

    if (kinf__prune_plan_new(drops, n_drops, keeps, n_keeps, &plan, &err) < 0)
        fail_msg("%s", err.message);
    kinf__object_decoder_init(&decoder, pods(), plan);
    assert_int_equal(kinf__object_decode(&decoder, kinf_str_from(text), true, &object, &len, NULL),
                     0);
    assert_int_equal(len, strlen(text));
    expect_json(object, expected);
    kinf_object_unref(object);
    kinf__object_decoder_release(&decoder);
    kinf__prune_plan_free(plan);
}

#define PROTECTED                                                                                  \
    "\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u\",\"resourceVersion\":\"1\",\"labels\":{"     \
    "\"l\":\"1\"},"                                                                                \
    "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",\"ownerReferences\":[{\"uid\":\"o\"}]"

static void what_is_dropped_is_not_stored(void **state)
{
    static const char text[] =
        "{\"kind\":\"Pod\",\"metadata\":{" PROTECTED ",\"managedFields\":[{\"a\":1}]},"
        "\"spec\":{\"a\":1,\"b\":2,\"c\":[{\"d\":1,\"e\":2},{\"d\":3}]},\"status\":{}}";
    static const char *const drops[] = { "metadata.managedFields", "spec.a", "spec.c[*].d",
                                         "status" };
    static const char *const keeps[] = { "spec.b", "spec.c[*].e" };
    static const char *const spec[] = { "spec" };

    (void)state;
    expect_pruned(drops, N(drops), NULL, 0, text,
                  "{\"metadata\":{" PROTECTED "},\"spec\":{\"b\":2,\"c\":[{\"e\":2},{}]}}");
    expect_pruned(NULL, 0, keeps, N(keeps), text,
                  "{\"metadata\":{" PROTECTED "},\"spec\":{\"b\":2,\"c\":[{\"e\":2},{}]}}");
    expect_pruned(drops, N(drops), spec, N(spec), text,
                  "{\"metadata\":{" PROTECTED "},\"spec\":{\"b\":2,\"c\":[{\"e\":2},{}]}}");
}

static void what_the_runtime_needs_cannot_be_dropped(void **state)
{
    static const char text[] =
        "{\"metadata\":{" PROTECTED ",\"annotations\":{\"x\":\"y\"}},\"spec\":{}}";
    static const char *const drops[][1] = { { "metadata" }, { "metadata[*]" } };
    static const char *const each[][1] = {
        { "metadata.name" },
        { "metadata.namespace" },
        { "metadata.uid" },
        { "metadata.labels" },
        { "metadata.deletionTimestamp" },
        { "metadata.resourceVersion" },
        { "metadata.labels.l" },
        { "metadata.ownerReferences[*].uid" },
    };
    static const char *const others[] = { "metadata.annotations", "spec" };
    static const char *const keeps[] = { "status" };
    struct kinf__prune_plan *plan;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    for (size_t i = 0; i < N(drops); i++)
        expect_pruned(drops[i], 1, NULL, 0, text, "{\"metadata\":{" PROTECTED "},\"spec\":{}}");
    for (size_t i = 0; i < N(each); i++) {
        assert_int_equal(kinf__prune_plan_new(each[i], 1, NULL, 0, &plan, &err), KINF_ERR_INVALID);
        assert_non_null(strstr(err.message, each[i][0]));
    }
    expect_pruned(others, N(others), NULL, 0, text, "{\"metadata\":{" PROTECTED "}}");
    expect_pruned(NULL, 0, keeps, N(keeps), text, "{\"metadata\":{" PROTECTED "}}");
}

static void what_is_dropped_cannot_be_kept(void **state)
{
    static const char *const drops[] = { "spec", "status.a[*]" };
    static const char *const rows[][1] = { { "spec" }, { "spec.nodeName" }, { "status.a[*].b" } };
    static const char *const keeps[] = { "status", "status.a", "metadata.labels.x" };
    struct kinf__prune_plan *plan;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        assert_int_equal(kinf__prune_plan_new(drops, N(drops), rows[i], 1, &plan, &err),
                         KINF_ERR_INVALID);
        assert_non_null(strstr(err.message, rows[i][0]));
    }
    assert_int_equal(kinf__prune_plan_new(drops, N(drops), keeps, N(keeps), &plan, &err), 0);
    kinf__prune_plan_free(plan);
}

static void collect_unmet(const char *path, const char *role, void *ctx)
{
    char *text = ctx;

    sprintf(text + strlen(text), "%s:%s ", role, path);
}

static void a_plan_knows_which_paths_met_nothing(void **state)
{
    static const char *const drops[] = { "spec.a", "spec.typo", "status.c[*].d",
                                         "status.c[*].typo" };
    static const char *const keeps[] = { "spec", "spec.b", "status", "metadata.labels.typo",
                                         "typo" };
    static const char text[] =
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\"},\"spec\":{\"a\":1},"
        "\"status\":{\"c\":[{},{\"d\":1}]}}";
    struct kinf__object_decoder decoder;
    const struct kinf_object *object;
    struct kinf__prune_plan *plan;
    char unmet[256] = "";
    size_t len;

    (void)state;
    assert_int_equal(kinf__prune_plan_new(drops, N(drops), keeps, N(keeps), &plan, NULL), 0);
    kinf__object_decoder_init(&decoder, pods(), plan);
    assert_int_equal(kinf__object_decode(&decoder, kinf_str_from(text), true, &object, &len, NULL),
                     0);
    kinf__prune_plan_each_unmet(plan, collect_unmet, unmet);
    /* What lies below something that is kept anyway was not looked for. */
    assert_string_equal(unmet, "drops:spec.typo drops:status.c[*].typo keeps:typo ");
    kinf_object_unref(object);
    kinf__object_decoder_release(&decoder);
    kinf__prune_plan_free(plan);
}

static void a_plan_names_the_path_that_is_wrong(void **state)
{
    static const char *const drops[] = { "spec", "a..b" }, *const keeps[] = { "spec.c[0]" };
    struct kinf__prune_plan *plan = NULL;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    assert_int_equal(kinf__prune_plan_new(drops, N(drops), NULL, 0, &plan, &err), KINF_ERR_PARSE);
    assert_non_null(strstr(err.message, "a..b"));
    assert_int_equal(kinf__prune_plan_new(NULL, 0, keeps, N(keeps), &plan, &err), KINF_ERR_INVALID);
    assert_non_null(strstr(err.message, "spec.c[0]"));
    assert_null(plan);
    kinf__prune_plan_free(NULL);
}

struct store {
    const struct kinf_object *object; /* or NULL */
    size_t n_lookups;
    char key[64];
};

static const struct kinf_object *lookup(const char *key, void *ctx)
{
    struct store *store = ctx;

    store->n_lookups++;
    snprintf(store->key, sizeof store->key, "%s", key);
    return kinf_object_ref(store->object);
}

static void an_unchanged_object_stays_the_stored_one(void **state)
{
    static const char *const changed[] = {
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"resourceVersion\":\"2\"}}",
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"resourceVersion\":\"1\"},\"x\":1}",
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u\"}}",
    };
    static const char text[] =
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"resourceVersion\":\"1\"}}";
    static const char typed[] =
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\","
        "\"namespace\":\"n\",\"resourceVersion\":\"1\"}}";
    struct store store = { .object = pod_of(text) };
    struct kinf__object_decoder decoder;
    const struct kinf_object *object;
    struct kinf__prune_plan *plan;
    size_t n_before = kinf__object_count(), len;

    (void)state;
    assert_int_equal(kinf__prune_plan_new(NULL, 0, NULL, 0, &plan, NULL), 0);
    kinf__object_decoder_init(&decoder, pods(), plan);
    decoder.lookup = lookup;
    decoder.lookup_ctx = &store;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kinf__object_decode(&decoder, kinf_str_from(i == 0 ? text : typed), true,
                                             &object, &len, NULL),
                         0);
        assert_ptr_equal(object, store.object);
        assert_int_equal(kinf__object_count(), n_before);
        assert_string_equal(store.key, "n/a");
        kinf_object_unref(object);
    }
    for (size_t i = 0; i < N(changed); i++) {
        assert_int_equal(
            kinf__object_decode(&decoder, kinf_str_from(changed[i]), true, &object, &len, NULL), 0);
        assert_ptr_not_equal(object, store.object);
        expect_json(object, changed[i]);
        kinf_object_unref(object);
    }
    assert_int_equal(kinf__object_count(), n_before);
    kinf_object_unref(store.object);
    store.object = NULL;
    assert_int_equal(kinf__object_decode(&decoder, kinf_str_from(text), true, &object, &len, NULL),
                     0);
    kinf_object_unref(object);
    assert_int_equal(store.n_lookups, 6);
    kinf__object_decoder_release(&decoder);
    kinf__prune_plan_free(plan);
}

static void objects_are_one_if_their_uid_is(void **state)
{
    const struct kinf_object *a = pod_of("{\"metadata\":{\"name\":\"a\",\"uid\":\"1\"}}");
    const struct kinf_object *later =
        pod_of("{\"metadata\":{\"name\":\"a\",\"uid\":\"1\",\"resourceVersion\":\"2\"}}");
    const struct kinf_object *again = pod_of("{\"metadata\":{\"name\":\"a\",\"uid\":\"2\"}}");

    (void)state;
    assert_true(kinf__object_same_uid(a, a));
    assert_true(kinf__object_same_uid(a, later));
    assert_false(kinf__object_same_uid(a, again));
    kinf_object_unref(a);
    kinf_object_unref(later);
    kinf_object_unref(again);
}

static void the_last_reference_frees(void **state)
{
    size_t n_before = kinf__object_count();
    const struct kinf_object *object = pod_of(pod_bare);

    (void)state;
    {
        kinf_auto_object const struct kinf_object *second = kinf_object_ref(object);

        assert_ptr_equal(second, object);
    }
    assert_int_equal(kinf__object_count(), n_before + 1);
    kinf_object_unref(object);
    assert_int_equal(kinf__object_count(), n_before);
    assert_null(kinf_object_ref(NULL));
    kinf_object_unref(NULL);
}

static void the_check_sees_what_is_broken(void **state)
{
    const struct kinf_object *object = pod_of(pod_bare);
    struct kinf_object *broken = (struct kinf_object *)object;
    struct kinf_object kept = *object;

    (void)state;
#define EXPECT_BROKEN(member, value)                                                               \
    do {                                                                                           \
        broken->member = (value);                                                                  \
        assert_false(kinf__object_check(object));                                                  \
        broken->member = kept.member;                                                              \
        assert_true(kinf__object_check(object));                                                   \
    } while (0)
    EXPECT_BROKEN(type, NULL);
    EXPECT_BROKEN(namespace_len, kept.namespace_len + 1);
    EXPECT_BROKEN(uid_offset, kept.uid_offset + 1);
    EXPECT_BROKEN(rv_offset, kept.uid_offset);
    EXPECT_BROKEN(body_offset, kept.body_offset - 1);
    EXPECT_BROKEN(body_len, kept.body_len - 2);
    EXPECT_BROKEN(labels_offset, kept.body_len);
    EXPECT_BROKEN(labels_len, kept.body_len);
    for (size_t i = 0; i < KINF__N_PLACES; i++) {
        assert_int_not_equal(kept.places[i], KINF__PLACE_UNKNOWN);
        EXPECT_BROKEN(places[i], kept.places[i] + 1);
        EXPECT_BROKEN(places[i], kept.body_len);
    }
#undef EXPECT_BROKEN
    kinf_object_unref(object);
}

/* Whether it is known or not where the walk comes by. */
static void expect_lookups_as_from_the_start(const struct kinf_object *object)
{
    static const char *const paths[] = {
        "spec",        "spec.nodeName", "spec.containers[1].name", "spec[*]",
        "status",      "status.phase",  "metadata.namespace",      "metadata.namespace.a",
        "metadata",    "specs",         "metadata.status",         "other.spec",
        "status[*][*]"
    };
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf_str body;

    assert_int_equal(kinf__object_body(object, &scratch, &body), 0);
    for (size_t i = 0; i < N(paths); i++) {
        struct kinf__json_value walked, found;
        struct kinf_path *path;
        bool is_there;

        assert_int_equal(kinf_path_parse(paths[i], &path, NULL), 0);
        is_there = kinf__json_lookup_first(body, path, 0, &walked);
        assert_int_equal(kinf__object_lookup_first(object, path, &scratch, &found),
                         is_there ? 0 : KINF_ERR_NOT_FOUND);
        if (is_there) {
            assert_int_equal(found.type, walked.type);
            assert_ptr_equal(found.raw.bytes, walked.raw.bytes);
            assert_int_equal(found.raw.len, walked.raw.len);
        }
        kinf_path_free(path);
    }
}

/* By keeps and a drop, so that what is left begins elsewhere. */
static const struct kinf_object *pruned_pod_of(const char *text)
{
    static const char *const keeps[] = { "spec.nodeName", "spec.containers", "status.phase" };
    static const char *const drops[] = { "spec.containers[*].image" };
    const struct kinf_object *object;
    struct kinf__object_decoder decoder;
    struct kinf__prune_plan *plan;
    size_t len;

    assert_int_equal(kinf__prune_plan_new(drops, N(drops), keeps, N(keeps), &plan, NULL), 0);
    kinf__object_decoder_init(&decoder, pods(), plan);
    assert_int_equal(kinf__object_decode(&decoder, kinf_str_from(text), true, &object, &len, NULL),
                     0);
    kinf__object_decoder_release(&decoder);
    kinf__prune_plan_free(plan);
    return object;
}

static void what_is_looked_for_is_found_as_from_the_start(void **state)
{
    static const char *const texts[] = {
        pod_bare,
        "{\"metadata\":{\"name\":\"a\"}}",
        "{\"spec\":1,\"metadata\":{\"name\":\"a\"},\"status\":null}",
        " { \"spec\" : [ { \"name\" : 1 } ] , \"metadata\":{\"name\":\"a\", \"namespace\" :\n "
        "\"b\" } }",
        "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"nodeName\":1},\"spec\":{\"nodeName\":2}}",
        "{\"metadata\":{\"name\":\"a\"},\"\\u0073pec\":{\"nodeName\":1},\"spec\":{\"nodeName\":2}}",
        "{\"metadata\":{\"name\":\"a\",\"status\":{\"phase\":1}},\"status\":{\"phase\":2}}",
    };

    (void)state;
    for (size_t i = 0; i < N(texts); i++) {
        const struct kinf_object *object = pod_of(texts[i]);

        expect_lookups_as_from_the_start(object);
        kinf_object_unref(object);
        object = pruned_pod_of(texts[i]);
        expect_lookups_as_from_the_start(object);
        kinf_object_unref(object);
    }
}

/* The members that it is in front of would be another answer. */
static void a_known_place_is_where_the_walk_begins(void **state)
{
    static const char body[] = "{\"spec\":{\"a\":1},\"b\":{\"a\":2}}";
    struct kinf__object_parts parts = { .type = pods(),
                                        .name = KINF_STR("n"),
                                        .body = { body, sizeof body - 1 } };
    const struct kinf_object *object;
    int64_t number;

    (void)state;
    for (int64_t i = 1; i <= 2; i++) {
        assert_int_equal(kinf__object_new(&parts, &object, NULL), 0);
        assert_int_equal(kinf_object_get_int64(object, "spec.a", &number), 0);
        assert_int_equal(number, i);
        kinf_object_unref(object);
        parts.places[KINF__PLACE_SPEC] = (uint32_t)(strstr(body, "{\"a\":2") - body);
    }
}

/* What decodes at all is sound, and its own text decodes to the same object. */
static void a_damaged_pod_is_refused_or_sound(void **state)
{
    static const char *const drops[] = { "metadata", "spec.containers[*].image" };
    struct test_random random = test_random_init(__func__);
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    struct kinf__object_decoder decoder;
    struct kinf__prune_plan *plan;

    (void)state;
    assert_int_equal(kinf__prune_plan_new(drops, N(drops), NULL, 0, &plan, NULL), 0);
    kinf__object_decoder_init(&decoder, pods(), plan);
    for (size_t n = test_rounds(20000); n > 0; n--) {
        const struct kinf_object *object, *again;
        char damaged[sizeof pod_typed];
        struct kinf_str text = { damaged, sizeof pod_typed - 1 };
        size_t at = test_random_below(&random, text.len), len;

        memcpy(damaged, pod_typed, sizeof damaged);
        damaged[at] = "\"\\{}[],:u0 \n\xe2"[test_random_below(&random, 13)];
        if (kinf__object_decode(&decoder, text, true, &object, &len, NULL) < 0)
            continue;
        assert_true(kinf__object_check(object));
        expect_lookups_as_from_the_start(object);
        assert_int_equal(kinf_object_full_json(object, &scratch, &text, NULL), 0);
        assert_int_equal(kinf_object_new_from_json(pods(), text.bytes, text.len, &again, NULL), 0);
        assert_int_equal(kinf_object_json(object, &scratch, &text, NULL), 0);
        expect_same_json(again, text);
        kinf_object_unref(again);
        kinf_object_unref(object);
    }
    kinf__object_decoder_release(&decoder);
    kinf__prune_plan_free(plan);
}

static void names_beyond_the_limit_are_refused(void **state)
{
    size_t size = 70000, len = 0;
    char *text = malloc(size + 100);
    struct kinf__object_decoder decoder;
    const struct kinf_object *object = NULL;
    struct kinf__prune_plan *plan;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    assert_non_null(text);
    assert_int_equal(kinf__prune_plan_new(NULL, 0, NULL, 0, &plan, NULL), 0);
    kinf__object_decoder_init(&decoder, pods(), plan);
    sprintf(text, "{\"metadata\":{\"name\":\"%0*d\"}}", (int)size, 7);
    assert_int_equal(kinf__object_decode(&decoder, kinf_str_from(text), true, &object, &len, &err),
                     KINF_ERR_LIMIT);
    assert_int_equal(err.code, KINF_ERR_LIMIT);
    assert_int_equal(len, strlen(text));
    assert_null(object);
    kinf__object_decoder_release(&decoder);
    kinf__prune_plan_free(plan);
    free(text);
}

static void strings_are_read_decoded(void **state)
{
    static const struct {
        const char *path;
        int result;
        const char *value;
    } table[] = {
        { "spec.nodeName", 0, "node-3" },
        { ".status.phase", 0, "Running" },
        { "spec.containers[*].name", 0, "app" },
        { "spec.containers[1].image", 0, "log:2" },
        { "metadata.annotations[\"example.org/owner\"]", 0, "team <a>" },
        { "metadata.name", 0, "web-7d4b9c6f5-x2x9k" },
        { "metadata.annotations.nul", KINF_ERR_INVALID, NULL },
        { "spec.priority", KINF_ERR_INVALID, NULL },
        { "spec.containers", KINF_ERR_INVALID, NULL },
        { "spec", KINF_ERR_INVALID, NULL },
        { "spec.nobody", KINF_ERR_NOT_FOUND, NULL },
        { "spec.nodeName.x", KINF_ERR_NOT_FOUND, NULL },
        { "metadata.deletionTimestamp", KINF_ERR_NOT_FOUND, NULL },
        { "kind", KINF_ERR_NOT_FOUND, NULL },
        { "spec..x", KINF_ERR_PARSE, NULL },
        { "", KINF_ERR_PARSE, NULL },
    };
    const struct kinf_object *object = pod_of(pod_typed);
    char buf[KINF_NAME_MAX];

    (void)state;
    for (size_t i = 0; i < N(table); i++) {
        strcpy(buf, "untouched");
        assert_int_equal(kinf_object_get_string(object, table[i].path, buf, sizeof buf),
                         table[i].result);
        assert_string_equal(buf, table[i].value != NULL ? table[i].value : "untouched");
    }
    assert_int_equal(kinf_object_get_string(object, "spec.nodeName", buf, 7), 0);
    strcpy(buf, "untouched");
    assert_int_equal(kinf_object_get_string(object, "spec.nodeName", buf, 6), KINF_ERR_LIMIT);
    assert_int_equal(kinf_object_get_string(object, "spec.nodeName", buf, 0), KINF_ERR_LIMIT);
    assert_string_equal(buf, "untouched");
    kinf_object_unref(object);
}

/* Only what a larger buffer helps against is a limit. */
static void paths_of_too_many_steps_are_malformed(void **state)
{
    const struct kinf_object *object = pod_of(pod_typed);
    char path[2 * (KINF_PATH_MAX_STEPS + 1) + 1] = "a", buf[KINF_NAME_MAX];

    (void)state;
    for (int i = 0; i < KINF_PATH_MAX_STEPS; i++)
        strcat(path, ".b");
    assert_int_equal(kinf_object_get_string(object, path, buf, sizeof buf), KINF_ERR_PARSE);
    assert_false(kinf_object_has(object, path));
    kinf_object_unref(object);
}

static void integers_keep_every_digit(void **state)
{
    static const struct {
        const char *text;
        int result;
        int64_t value;
    } table[] = {
        { "9007199254740993", 0, 9007199254740993 },
        { "9223372036854775807", 0, INT64_MAX },
        { "-9223372036854775808", 0, INT64_MIN },
        { "0", 0, 0 },
        { "-0", 0, 0 },
        { "-5", 0, -5 },
        { "9223372036854775808", KINF_ERR_LIMIT, 99 },
        { "-9223372036854775809", KINF_ERR_LIMIT, 99 },
        { "100000000000000000000000000000000000000", KINF_ERR_LIMIT, 99 },
        { "0.5", KINF_ERR_INVALID, 99 },
        { "1e3", KINF_ERR_INVALID, 99 },
        { "1E3", KINF_ERR_INVALID, 99 },
        { "\"5\"", KINF_ERR_INVALID, 99 },
        { "true", KINF_ERR_INVALID, 99 },
        { "[5]", KINF_ERR_INVALID, 99 },
        { "null", KINF_ERR_NOT_FOUND, 99 },
    };

    (void)state;
    for (size_t i = 0; i < N(table); i++) {
        const struct kinf_object *object;
        int64_t number = 99;
        char text[200], again[400];

        snprintf(text, sizeof text, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"n\":%s}}",
                 table[i].text);
        object = pod_of(text);
        assert_int_equal(kinf_object_get_int64(object, "spec.n", &number), table[i].result);
        assert_true(number == table[i].value);
        snprintf(again, sizeof again, "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",%s", text + 1);
        expect_full_json(object, again);
        kinf_object_unref(object);
    }
}

static void booleans_are_read_as_such(void **state)
{
    const struct kinf_object *object = pod_of("{\"metadata\":{\"name\":\"a\"},\"yes\":true,\"no\":"
                                              "false,\"text\":\"true\",\"one\":1,\"nil\":null}");
    bool truth = false;

    (void)state;
    assert_int_equal(kinf_object_get_bool(object, "yes", &truth), 0);
    assert_true(truth);
    assert_int_equal(kinf_object_get_bool(object, "no", &truth), 0);
    assert_false(truth);
    assert_int_equal(kinf_object_get_bool(object, "text", &truth), KINF_ERR_INVALID);
    assert_int_equal(kinf_object_get_bool(object, "one", &truth), KINF_ERR_INVALID);
    assert_int_equal(kinf_object_get_bool(object, "nil", &truth), KINF_ERR_NOT_FOUND);
    assert_int_equal(kinf_object_get_bool(object, "a b", &truth), KINF_ERR_PARSE);
    assert_false(truth);
    kinf_object_unref(object);
}

static void labels_and_annotations_are_read_by_their_key(void **state)
{
    const struct kinf_object *objects[] = {
        pod_of(pod_typed),
        pod_of("{\"metadata\":{\"name\":\"a\",\"labels\":null}}"),
        pod_of("{\"metadata\":{\"name\":\"a\",\"labels\":{\"app\":null,\"tier\":1},\"annotations\":"
               "{\"x\":2}}}"),
    };
    char buf[64] = "untouched";

    (void)state;
    assert_int_equal(kinf_object_get_label(objects[0], "tier", buf, sizeof buf), 0);
    assert_string_equal(buf, "front");
    assert_int_equal(kinf_object_get_annotation(objects[0], "example.org/owner", buf, sizeof buf),
                     0);
    assert_string_equal(buf, "team <a>");
    assert_int_equal(kinf_object_get_annotation(objects[0], "nul", buf, sizeof buf),
                     KINF_ERR_INVALID);
    assert_int_equal(kinf_object_get_annotation(objects[0], "none", buf, sizeof buf),
                     KINF_ERR_NOT_FOUND);
    assert_int_equal(kinf_object_get_label(objects[0], "ti", buf, sizeof buf), KINF_ERR_NOT_FOUND);
    assert_int_equal(kinf_object_get_label(objects[0], "tier", buf, 5), KINF_ERR_LIMIT);
    assert_int_equal(kinf_object_get_label(objects[1], "app", buf, sizeof buf), KINF_ERR_NOT_FOUND);
    assert_int_equal(kinf_object_get_annotation(objects[1], "app", buf, sizeof buf),
                     KINF_ERR_NOT_FOUND);
    assert_int_equal(kinf_object_get_label(objects[2], "app", buf, sizeof buf), KINF_ERR_NOT_FOUND);
    assert_int_equal(kinf_object_get_label(objects[2], "tier", buf, sizeof buf), KINF_ERR_INVALID);
    assert_int_equal(kinf_object_get_annotation(objects[2], "x", buf, sizeof buf),
                     KINF_ERR_INVALID);
    assert_string_equal(buf, "team <a>");
    for (size_t i = 0; i < N(objects); i++)
        kinf_object_unref(objects[i]);
}

struct seen {
    char text[200];
    size_t n_left; /* the walk ends when it comes to 0 */
};

static int see(struct kinf_str json, void *ctx)
{
    struct seen *seen = ctx;

    strncat(seen->text, json.bytes, json.len);
    strcat(seen->text, " ");
    return --seen->n_left == 0 ? 42 : 0;
}

static void every_value_of_a_path_is_walked(void **state)
{
    static const struct {
        const char *path;
        size_t n_max;
        int result;
        const char *seen;
    } table[] = {
        { "spec.containers[*].name", 9, 0, "\"app\" \"log\" " },
        { "spec.containers[*].name", 1, 42, "\"app\" " },
        { "spec.containers[*].name", 2, 42, "\"app\" \"log\" " },
        { "spec.containers[1]", 9, 0, "{\"name\":\"log\",\"image\":\"log:2\"} " },
        { "metadata.labels[*]", 9, 0, "\"web\" \"front\" " },
        { "metadata.ownerReferences[*].uid", 9, 0, "\"9d0e\" " },
        { "spec.big", 9, 0, "9007199254740993 " },
        { "spec.volumes[*].name", 9, 0, "" },
    };
    const struct kinf_object *object = pod_of(pod_typed);

    (void)state;
    for (size_t i = 0; i < N(table); i++) {
        struct seen seen = { .n_left = table[i].n_max };
        struct kinf_path *path;

        assert_int_equal(kinf_path_parse(table[i].path, &path, NULL), 0);
        assert_int_equal(kinf_object_each(object, path, see, &seen), table[i].result);
        assert_string_equal(seen.text, table[i].seen);
        kinf_path_free(path);
    }
    kinf_object_unref(object);
}

static void raw_strings_are_decoded_into_room_of_any_size(void **state)
{
    static const struct {
        const char *json;
        const char *text; /* NULL: KINF_ERR_INVALID */
    } table[] = {
        { "\"\"", "" },
        { "\"a\"", "a" },
        { "\"\\u00e4\\n\\\\u0000\"", "\xc3\xa4\n\\u0000" },
        { "\"\\\"\"", "\"" },
        { "\"\\ud800\"", "\xef\xbf\xbd" },
        { "\"\\u0000\"", NULL },
        { "\"\\\\\\u0000\"", NULL },
        { "\"", NULL },
        { "", NULL },
        { "5", NULL },
        { "null", NULL },
        { "[\"a\"]", NULL },
    };

    (void)state;
    for (size_t i = 0; i < N(table); i++) {
        struct kinf_str json = kinf_str_from(table[i].json);

        for (size_t size = 0; size < 16; size++) {
            static const char untouched[] = "xxxxxxxxxxxxxxxx";
            char buf[] = "xxxxxxxxxxxxxxxx";
            int expected = table[i].text == NULL           ? KINF_ERR_INVALID
                           : strlen(table[i].text) >= size ? KINF_ERR_LIMIT
                                                           : 0;

            assert_int_equal(kinf_json_string(json, buf, size), expected);
            if (expected == 0)
                assert_string_equal(buf, table[i].text);
            else
                assert_string_equal(buf, untouched);
            assert_string_equal(buf + size, untouched + size);
        }
    }
}

static void a_tree_shows_the_whole_object(void **state)
{
    const struct kinf_object *object = pod_of(pod_bare);
    cJSON *tree;
    const cJSON *kind, *metadata;

    (void)state;
    assert_int_equal(kinf_object_tree(object, &tree, NULL), 0);
    kind = cJSON_GetObjectItemCaseSensitive(tree, "kind");
    metadata = cJSON_GetObjectItemCaseSensitive(tree, "metadata");
    assert_string_equal(cJSON_GetStringValue(kind), "Pod");
    assert_string_equal(
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metadata, "namespace")), "shop");
    cJSON_Delete(tree);
    kinf_object_unref(object);
}

static void a_scratch_serves_many_objects(void **state)
{
    kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
    const struct kinf_object *small = pod_of("{\"metadata\":{\"name\":\"a\"}}"),
                             *large = pod_of(pod_bare);
    struct kinf_str text;

    (void)state;
    assert_int_equal(kinf_object_full_json(large, &scratch, &text, NULL), 0);
    assert_int_equal(kinf_object_full_json(small, &scratch, &text, NULL), 0);
    assert_true(kinf_str_equal(
        text, KINF_STR("{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"}}")));
    assert_int_equal(kinf_object_full_json(large, &scratch, &text, NULL), 0);
    assert_true(kinf_str_equal(text, kinf_str_from(pod_typed)));
    kinf_scratch_release(&scratch);
    kinf_scratch_release(&scratch);
    kinf_object_unref(small);
    kinf_object_unref(large);
}

static void a_bookmark_gives_its_version_and_its_mark(void **state)
{
    static const struct {
        const char *text;
        const char *rv; /* NULL: KINF_ERR_PARSE */
        bool ends;
    } table[] = {
        { "{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"228\"}}", "228", false },
        { "{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"231\",\"annotations\":"
          "{\"k8s.io/initial-events-end\":\"true\"}}}",
          "231", true },
        { "{\"metadata\":{\"annotations\":{\"k8s.io\\/initial-events-end\":\"\\u0074rue\"},"
          "\"resourceVersion\":\"233\",\"creationTimestamp\":null}}\n",
          "233", true },
        { "{\"metadata\":{\"resourceVersion\":\"1\",\"annotations\":{\"k8s.io/"
          "initial-events-end\":\"false\"}}}",
          "1", false },
        { "{\"metadata\":{\"resourceVersion\":\"1\",\"annotations\":{\"k8s.io/"
          "initial-events-end\":true}}}",
          "1", false },
        { "{\"metadata\":{\"resourceVersion\":\"1\",\"annotations\":null}}", "1", false },
        { "{\"metadata\":{\"resourceVersion\":\"\"}}", NULL, false },
        { "{\"metadata\":{\"resourceVersion\":5}}", NULL, false },
        { "{\"metadata\":{\"resourceVersion\":\"\\u0000\"}}", NULL, false },
        { "{\"metadata\":{\"resourceVersion\":\"12345678901234567890123456789012345678901\"}}",
          NULL, false },
        { "{\"metadata\":{}}", NULL, false },
        { "{}", NULL, false },
        { "[]", NULL, false },
        { "", NULL, false },
        { "{\"metadata\":{\"resourceVersion\":\"1\"}", NULL, false },
    };

    (void)state;
    for (size_t i = 0; i < N(table); i++) {
        struct kinf_error err = KINF_ERROR_INIT;
        char rv[41] = "untouched";
        bool ends = !table[i].ends;
        int r =
            kinf__object_decode_bookmark(kinf_str_from(table[i].text), rv, sizeof rv, &ends, &err);

        assert_int_equal(r, table[i].rv != NULL ? 0 : KINF_ERR_PARSE);
        assert_int_equal(err.code, r);
        assert_string_equal(rv, table[i].rv != NULL ? table[i].rv : "untouched");
        assert_int_equal(ends, table[i].rv != NULL ? table[i].ends : !table[i].ends);
    }
}

static void a_key_is_split_into_what_it_was_made_of(void **state)
{
    static const struct {
        const char *name_space, *name, *key;
    } table[] = { { "n", "a", "n/a" },
                  { "", "a", "a" },
                  { "kube-system", "a.b", "kube-system/a.b" } };
    char key[KINF__KEY_SIZE], name_space[KINF_NAME_MAX];

    (void)state;
    for (size_t i = 0; i < N(table); i++) {
        assert_string_equal(kinf__object_key_join(key, table[i].name_space, table[i].name),
                            table[i].key);
        assert_string_equal(kinf__object_key_split(key, name_space), table[i].name);
        assert_string_equal(name_space, table[i].name_space);
        assert_string_equal(kinf__object_key_name(key), table[i].name);
    }
    assert_string_equal(kinf__object_key_join(key, NULL, "a"), "a");
}

static void the_key_of_a_broken_object_is_guessed(void **state)
{
    static const struct {
        const char *text;
        const char *key; /* NULL: none */
    } table[] = {
        { "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"x", "n/a" },
        { "{\"metadata\":{\"namespace\":\"n\",\"labels\":{\"name\":\"no\"},\"name\":\"a\"}}",
          "n/a" },
        { "{\"spec\":{\"name\":\"no\",\"metadata\":{\"name\":\"no\",\"namespace\":\"no\"}},"
          "\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"}}",
          "n/a" },
        { "{ \"metadata\" : { \"name\" : \"a\\u003c\" , \"namespace\" : \"n\" } , \"x\" : 01 }",
          "n/a<" },
        { "{\"a\":nonsense,\"metadata\":{\"x\":[{\"name\":\"no\"}],\"name\":\"a\",\"namespace\":"
          "\"n\"",
          "n/a" },
        { "{\"items\":[{\"metadata\":{\"name\":\"no\",\"namespace\":\"no\"}}]}", NULL },
        { "{\"metadata\":[{\"name\":\"no\",\"namespace\":\"no\"}]}", NULL },
        { "{\"metadata\":{\"name\":\"a\"}}", NULL },
        { "{\"metadata\":{\"name\":7,\"namespace\":\"n\"}}", NULL },
        { "{\"metadata\":{\"name\":{\"x\":\"no\"},\"namespace\":\"n\"}}", NULL },
        { "{\"metadata\":{\"name\":\"a\\u12\",\"namespace\":\"n\"}}", NULL },
        { "{\"metadata\":{\"name\":\"a\\u0000\",\"namespace\":\"n\"}}", NULL },
        { "{\"metadata\":{\"name\":\"\",\"namespace\":\"n\"}}", NULL },
        { "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n", NULL },
        { "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\\", NULL },
        { "]]}}\"", NULL },
        { "", NULL },
    };
    const struct kinf_type *nodes = type_of("", "v1", "Node", "nodes", false);
    char key[64];

    (void)state;
    for (size_t i = 0; i < N(table); i++) {
        assert_int_equal(
            kinf__object_guess_key(pods(), kinf_str_from(table[i].text), key, sizeof key),
            table[i].key != NULL);
        if (table[i].key != NULL)
            assert_string_equal(key, table[i].key);
    }
    assert_true(
        kinf__object_guess_key(nodes, KINF_STR("{\"metadata\":{\"name\":\"a\","), key, sizeof key));
    assert_string_equal(key, "a");
    assert_false(
        kinf__object_guess_key(nodes, KINF_STR("{\"metadata\":{\"name\":\"abcdefgh\","), key, 8));
}

static void the_guess_survives_any_cut_and_any_byte(void **state)
{
    struct test_random random = test_random_init(__func__);
    char key[64];

    (void)state;
    for (size_t cut = 0; cut < sizeof pod_typed - 1; cut++) {
        char *text = malloc(cut + 1);

        assert_non_null(text);
        memcpy(text, pod_typed, cut);
        if (kinf__object_guess_key(pods(), (struct kinf_str){ text, cut }, key, sizeof key))
            assert_string_equal(key, "shop/web-7d4b9c6f5-x2x9k");
        for (size_t n = cut < 300 ? test_rounds(16) : 0; n > 0; n--) {
            text[test_random_below(&random, cut + 1)] =
                "\"\\{}[],:u\0"[test_random_below(&random, 10)];
            (void)kinf__object_guess_key(pods(), (struct kinf_str){ text, cut }, key, sizeof key);
        }
        free(text);
    }
}

static int make_plan_and_decode(struct kinf_error *err)
{
    static const char *const drops[] = { "metadata.managedFields" }, *const keeps[] = { "metadata",
                                                                                        "spec" };
    struct kinf__object_decoder decoder;
    const struct kinf_object *object;
    struct kinf__prune_plan *plan;
    size_t len;
    int r = kinf__prune_plan_new(drops, 1, keeps, 2, &plan, err);

    if (r < 0)
        return r;
    kinf__object_decoder_init(&decoder, pods(), plan);
    r = kinf__object_decode(&decoder, kinf_str_from(pod_typed), true, &object, &len, err);
    if (r == 0)
        kinf_object_unref(object);
    kinf__object_decoder_release(&decoder);
    kinf__prune_plan_free(plan);
    return r;
}

static int make_from_json(struct kinf_error *err)
{
    const struct kinf_object *object;
    int r = kinf_object_new_from_json(pods(), pod_typed, sizeof pod_typed - 1, &object, err);

    if (r == 0)
        kinf_object_unref(object);
    return r;
}

static void no_allocation_that_fails_breaks_decoding(void **state)
{
    static int (*const makers[])(struct kinf_error *) = { make_plan_and_decode, make_from_json };

    (void)state;
    (void)pods(); /* interned, so that the sweep does not meet its allocation */
    for (size_t i = 0; i < N(makers); i++) {
        size_t n = 1;

        for (bool failed = true; failed; n++) {
            struct kinf_error err = KINF_ERROR_INIT;
            int r;

            test_fail_allocation(n);
            r = makers[i](&err);
            failed = test_allocation_failed();
            assert_int_equal(r, failed ? KINF_ERR_NO_MEMORY : 0);
            assert_int_equal(err.code, r);
        }
        assert_true(n > 5);
    }
}

static void no_allocation_that_fails_breaks_reading(void **state)
{
    const struct kinf_object *object = pod_of(pod_typed);
    bool failed = true;

    (void)state;
    for (size_t n = 1; failed; n++) {
        kinf_auto_scratch struct kinf_scratch scratch = KINF_SCRATCH_INIT;
        struct kinf_str text;
        char buf[64];
        int r;

        test_fail_allocation(n);
        r = kinf_object_full_json(object, &scratch, &text, NULL);
        if (r == 0)
            r = kinf_object_get_string(object, "spec.nodeName", buf, sizeof buf);
        failed = test_allocation_failed();
        assert_int_equal(r, failed ? KINF_ERR_NO_MEMORY : 0);
    }
    kinf_object_unref(object);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, count_before, count_after)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_object_knows_who_it_is),
        TEST(what_the_server_did_not_send_is_empty),
        TEST(kind_and_api_version_leave_no_trace),
        TEST(a_listed_and_a_watched_pod_have_equal_bytes),
        TEST(the_full_text_begins_with_kind_and_api_version),
        TEST(recorded_objects_decode_one_behind_the_other),
        TEST(keys_may_come_in_any_order),
        TEST(identity_is_decoded_from_escapes),
        TEST(what_is_no_object_of_the_type_is_refused),
        TEST(what_is_no_json_has_no_end),
        TEST(a_pod_cut_anywhere_asks_for_more),
        TEST(what_is_dropped_is_not_stored),
        TEST(what_the_runtime_needs_cannot_be_dropped),
        TEST(what_is_dropped_cannot_be_kept),
        TEST(a_plan_knows_which_paths_met_nothing),
        TEST(a_plan_names_the_path_that_is_wrong),
        TEST(an_unchanged_object_stays_the_stored_one),
        TEST(objects_are_one_if_their_uid_is),
        TEST(the_last_reference_frees),
        TEST(the_check_sees_what_is_broken),
        TEST(what_is_looked_for_is_found_as_from_the_start),
        TEST(a_known_place_is_where_the_walk_begins),
        TEST(a_damaged_pod_is_refused_or_sound),
        TEST(names_beyond_the_limit_are_refused),
        TEST(strings_are_read_decoded),
        TEST(paths_of_too_many_steps_are_malformed),
        TEST(integers_keep_every_digit),
        TEST(booleans_are_read_as_such),
        TEST(labels_and_annotations_are_read_by_their_key),
        TEST(every_value_of_a_path_is_walked),
        TEST(raw_strings_are_decoded_into_room_of_any_size),
        TEST(a_tree_shows_the_whole_object),
        TEST(a_scratch_serves_many_objects),
        TEST(a_bookmark_gives_its_version_and_its_mark),
        TEST(a_key_is_split_into_what_it_was_made_of),
        TEST(the_key_of_a_broken_object_is_guessed),
        TEST(the_guess_survives_any_cut_and_any_byte),
        TEST(no_allocation_that_fails_breaks_decoding),
        TEST(no_allocation_that_fails_breaks_reading),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
