/*
 * What an informer refuses of its options before it watches, and what it warns of afterwards.
 */
#include <kinformer/testing.h>

#include <stdio.h>
#include <string.h>

#include <kinformer/kinformer.h>

#include "base/compiler.h"
#include "unit/test.h"

static char warnings[2048];

static void keep_warnings(enum kinf_log_level level, const char *module, const char *line,
                          void *ctx)
{
    size_t len = strlen(warnings);

    (void)module;
    (void)ctx;
    if (level == KINF_LOG_WARN)
        snprintf(warnings + len, sizeof warnings - len, "%s\n", line);
}

static int begin(void **state)
{
    struct kinf_fake *fake;

    assert_int_equal(kinf_fake_new(NULL, &fake, NULL), 0);
    *state = fake;
    return 0;
}

static int end(void **state)
{
    kinf_fake_free(*state);
    return 0;
}

static int try(struct kinf_fake *fake, const struct kinf_informer_options *options,
               struct kinf_error *err)
{
    struct kinf_informer_options own = *options;
    struct kinf_informer *informer = NULL;
    int rc;

    own.size = sizeof own;
    own.resource = "pods";
    rc = kinf_informer_new(kinf_fake_client(fake), &own, &informer, err);
    kinf_informer_free(informer);
    return rc;
}

static int keep_object(const struct kinf_object *object, const struct kinf_object **ret_object,
                       void *ctx)
{
    (void)ctx;
    *ret_object = kinf_object_ref(object);
    return 0;
}

static void a_path_that_can_never_match_is_refused(void **state)
{
    static const char *const jsonpath[] = { "$.spec" }, *const braces[] = { "{.spec}" };
    static const char *const name[] = { "metadata.name" }, *const spec[] = { "spec" };
    static const char *const node[] = { "spec.nodeName" };
    static const struct kinf_index by_node = KINF_INDEX_BY_NODE_NAME;
    static const struct {
        struct kinf_informer_options options;
        int rc;
        const char *path;
    } rows[] = {
        { { .drops = jsonpath, .n_drops = 1 }, KINF_ERR_PARSE, "$.spec" },
        { { .keeps = braces, .n_keeps = 1 }, KINF_ERR_PARSE, "{.spec}" },
        { { .drops = name, .n_drops = 1 }, KINF_ERR_INVALID, "metadata.name" },
        { { .drops = spec, .n_drops = 1, .keeps = node, .n_keeps = 1 },
          KINF_ERR_INVALID,
          "spec.nodeName" },
        { { .drops = spec, .n_drops = 1, .indices = &by_node, .n_indices = 1 },
          KINF_ERR_INVALID,
          "spec.nodeName" },
        { { .keeps = name, .n_keeps = 1, .indices = &by_node, .n_indices = 1 },
          KINF_ERR_INVALID,
          "spec.nodeName" },
        { { .metadata_only = true, .indices = &by_node, .n_indices = 1 },
          KINF_ERR_INVALID,
          "spec.nodeName" },
        { { .metadata_only = true, .drops = spec, .n_drops = 1 }, KINF_ERR_INVALID, "spec" },
        { { .keeps = node, .n_keeps = 1, .indices = &by_node, .n_indices = 1 }, 0, NULL },
        { { .drops = spec,
            .n_drops = 1,
            .indices = &by_node,
            .n_indices = 1,
            .transform = keep_object },
          0,
          NULL },
    };

    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct kinf_error err = KINF_ERROR_INIT;
        int rc = try(*state, &rows[i].options, &err);

        if (rc != rows[i].rc || (rc < 0 && strstr(err.message, rows[i].path) == NULL))
            fail_msg("row %zu: %d, %s", i, rc, err.message);
    }
}

static void a_shared_informer_refuses_an_index_on_what_it_does_not_keep(void **state)
{
    static const char *const keeps[] = { "status" };
    static const struct kinf_index by_node = KINF_INDEX_BY_NODE_NAME;
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    kinf_auto_factory struct kinf_factory *factory = NULL;
    struct kinf_informer *informer;

    assert_int_equal(kinf_factory_new(kinf_fake_client(*state), &factory, NULL), 0);
    options.resource = "pods";
    options.keeps = keeps;
    options.n_keeps = 1;
    assert_int_equal(kinf_factory_informer(factory, &options, &informer, NULL), 0);
    options.indices = &by_node;
    options.n_indices = 1;
    assert_int_equal(kinf_factory_informer(factory, &options, &informer, NULL), KINF_ERR_INVALID);
}

static void a_namespace_that_cannot_be_is_refused(void **state)
{
    static const char *const names[] = { "no/such", "a?b", "A",       "-a", "a-", "a.b",
                                         "a b",     "..",  "kube%20", "\n", "*" };
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_client *client = kinf_fake_client(*state);
    struct kinf_request request = KINF_REQUEST_INIT;
    struct kinf_namespaces *namespaces;
    const struct kinf_type *pods;
    char long_name[65];

    memset(long_name, 'a', 64);
    long_name[64] = '\0';
    options.name_space = long_name;
    assert_int_equal(try(*state, &options, NULL), KINF_ERR_INVALID);
    long_name[63] = '\0';
    assert_int_equal(try(*state, &options, NULL), 0);
    assert_int_equal(kinf_client_find_type(client, "pods", &pods, NULL), 0);
    for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++) {
        struct kinf_error err = KINF_ERROR_INIT;
        const struct kinf_informer_options none = { .size = sizeof none, .resource = "pods" };

        options.name_space = names[i];
        assert_int_equal(try(*state, &options, &err), KINF_ERR_INVALID);
        assert_non_null(strstr(err.message, "is no name of a namespace"));
        assert_int_equal(kinf_namespaces_new(client, &none, &names[i], 1, &namespaces, NULL),
                         KINF_ERR_INVALID);
        request = (struct kinf_request){
            .size = sizeof(struct kinf_request), .type = pods, .name_space = names[i], .name = "x"
        };
        assert_int_equal(kinf_client_request(client, &request, NULL, NULL), KINF_ERR_INVALID);
    }
}

static void a_path_that_named_nothing_is_one_warning(void **state)
{
    static const char *const drops[] = { "spec.containers[*].image", "spec.conatiners[*].env" };
    static const char *const keeps[] = { "spec.containers", "spec.noodName", "status.phase" };
    static const struct kinf_index indices[] = {
        { "byName", "spec.containers[*].name", NULL, NULL },
        { "byNothing", "status.phase.typo", NULL, NULL },
    };
    struct kinf_informer_options options = KINF_INFORMER_OPTIONS_INIT;
    struct kinf_informer *informer;

    assert_int_equal(
        kinf_fake_put(*state,
                      "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: default}\n"
                      "spec: {containers: [{name: c, image: example.org/c:1}]}\n"
                      "status: {phase: Running}\n",
                      NULL),
        0);
    options.resource = "pods";
    options.drops = drops;
    options.n_drops = 2;
    options.keeps = keeps;
    options.n_keeps = 3;
    options.indices = indices;
    options.n_indices = 2;
    warnings[0] = '\0';
    kinf_log_set_callback(keep_warnings, NULL);
    assert_int_equal(kinf_informer_new(kinf_fake_client(*state), &options, &informer, NULL), 0);
    assert_int_equal(kinf_informer_start(informer, NULL), 0);
    assert_int_equal(kinf_informer_wait_synced(informer, KINF_FOREVER, NULL), 0);
    kinf_informer_free(informer);
    kinf_log_set_callback(NULL, NULL);
#define LINE(role, path)                                                                           \
    "a path names nothing in the whole first list resource=pods option=" role " path=\"" path "\"" \
    "\n"
    assert_string_equal(warnings,
                        LINE("drops", "spec.conatiners[*].env") LINE("keeps", "spec.noodName")
                            LINE("indices", "status.phase.typo"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_path_that_can_never_match_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_shared_informer_refuses_an_index_on_what_it_does_not_keep,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_namespace_that_cannot_be_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_path_that_named_nothing_is_one_warning, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
