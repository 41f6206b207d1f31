/*
 * Discovery: what kubectl's spellings mean, asked of a server that is a table.
 */
#include "rest/discovery.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "json/tree.h"
#include "unit/test.h"

#define ASKED_SIZE 512

#define RESOURCE(name, singular, kind, namespaced, verbs, more)                                    \
    "{\"name\":\"" name "\",\"singularName\":\"" singular "\",\"kind\":\"" kind                    \
    "\",\"namespaced\":" namespaced ",\"verbs\":[" verbs "]" more "}"
#define LIST(resources) "{\"kind\":\"APIResourceList\",\"resources\":[" resources "]}"
#define ALL             "\"get\",\"list\",\"watch\""
#define GROUP(name, preferred, versions)                                                           \
    "{\"name\":\"" name "\",\"preferredVersion\":{\"version\":\"" preferred                        \
    "\"},\"versions\":[" versions "]}"
#define VERSION(name) "{\"version\":\"" name "\"}"

#define APPS    GROUP("apps", "v1", VERSION("v1"))
#define METRICS GROUP("metrics.k8s.io", "v1beta1", VERSION("v1beta1"))
#define STORAGE GROUP("storage.k8s.io", "v1", VERSION("v1") "," VERSION("v1beta1"))
#define V2RAY   GROUP("v2ray.example.org", "stable", VERSION("stable"))

static const char core[] =
    LIST(RESOURCE("pods/status", "", "Pod", "true", "\"get\"", "") "," RESOURCE(
        "pods", "pod", "Pod", "true", ALL,
        ",\"shortNames\":[\"po\"]") "," RESOURCE("nodes", "", "Node", "false", ALL,
                                                 "") "," RESOURCE("bindings", "binding", "Binding",
                                                                  "true", "\"create\"",
                                                                  "") "," RESOURCE("componentstatus"
                                                                                   "es",
                                                                                   "",
                                                                                   "ComponentStatu"
                                                                                   "s",
                                                                                   "false",
                                                                                   "\"get\","
                                                                                   "\"list\"",
                                                                                   ""));

static const struct {
    const char *target;
    const char *text; /* NULL: 503 */
} answers[] = {
    { "/api/v1", core },
    { "/apis", "{\"groups\":[" METRICS "," APPS "," STORAGE "," V2RAY "]}" },
    { "/apis/apps", APPS },
    { "/apis/apps/v1", LIST(RESOURCE("deployments", "deployment", "Deployment", "true", ALL,
                                     ",\"shortNames\":[\"deploy\"]")) },
    { "/apis/metrics.k8s.io/v1beta1", NULL },
    { "/apis/storage.k8s.io", STORAGE },
    { "/apis/storage.k8s.io/v1", LIST(RESOURCE("storageclasses", "storageclass", "StorageClass",
                                               "false", ALL, ",\"shortNames\":[\"sc\"]")) },
    { "/apis/storage.k8s.io/v1beta1",
      LIST(RESOURCE("volumeattributesclasses", "volumeattributesclass", "VolumeAttributesClass",
                    "false", ALL, "")) },
    { "/apis/v2ray.example.org", V2RAY },
    { "/apis/v2ray.example.org/stable",
      LIST(RESOURCE("tunnels", "tunnel", "Tunnel", "true", ALL, "")) },
};

/* Says what was asked, and has one failure to give. */
struct table {
    char asked[ASKED_SIZE];
    const char *refused; /* a target */
    int refusal;
};

static int ask(void *ctx, const char *target, struct cJSON **ret_tree, struct kinf_error *err)
{
    struct table *table = ctx;
    size_t len = strlen(table->asked);

    snprintf(table->asked + len, sizeof table->asked - len, "%s ", target);
    if (table->refused != NULL && strcmp(target, table->refused) == 0)
        return kinf__error_set(err, (enum kinf_errc)table->refusal, "refused %s", target);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        if (strcmp(target, answers[i].target) == 0 && answers[i].text != NULL)
            return kinf__json_tree_parse(kinf_str_from(answers[i].text), ret_tree, err);
        if (strcmp(target, answers[i].target) == 0)
            return kinf__error_set(err, KINF_ERR_SERVER, "service unavailable");
    }
    return kinf__error_set(err, KINF_ERR_NOT_FOUND, "404 page not found");
}

static int find(struct table *table, const char *resource, const struct kinf_type **ret_type,
                struct kinf_error *err)
{
    const struct kinf__discovery_source source = { ask, table, "h:6443" };

    table->asked[0] = '\0';
    return kinf__discovery_find_from(&source, resource, ret_type, err);
}

/* `meant`: "GROUP/VERSION/RESOURCE KIND" */
static void assert_means(const char *resource, const char *meant, bool namespaced)
{
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf_type *type = NULL;
    struct table table = { .refused = NULL };
    char text[256];

    if (find(&table, resource, &type, &err) < 0)
        fail_msg("%s: %s", resource, err.message);
    snprintf(text, sizeof text, "%s/%s/%s %s", type->group, type->version, type->resource,
             type->kind);
    assert_string_equal(text, meant);
    assert_int_equal(type->namespaced, namespaced);
    assert_int_equal(err.code, 0);
    assert_string_equal(err.message, "");
}

static void assert_fails(const char *resource, int code, const char *message)
{
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf_type *type = NULL;
    struct table table = { .refused = NULL };

    assert_int_equal(find(&table, resource, &type, &err), code);
    assert_null(type);
    assert_string_equal(err.message, message);
}

static void a_resource_has_the_names_that_kubectl_knows(void **state)
{
    (void)state;
    assert_means("pods", "/v1/pods Pod", true);
    assert_means("pod", "/v1/pods Pod", true);
    assert_means("po", "/v1/pods Pod", true);
    assert_means("PODS", "/v1/pods Pod", true);
    assert_means("nodes", "/v1/nodes Node", false);
    assert_means("deploy", "apps/v1/deployments Deployment", true);
    assert_means("sc", "storage.k8s.io/v1/storageclasses StorageClass", false);
}

/* Servers before 1.27 say no singular of their own types. */
static void a_kind_stands_for_a_singular_that_is_missing(void **state)
{
    (void)state;
    assert_means("node", "/v1/nodes Node", false);
    assert_means("Node", "/v1/nodes Node", false);
}

static void a_group_and_a_version_may_be_said(void **state)
{
    (void)state;
    assert_means("deployments.apps", "apps/v1/deployments Deployment", true);
    assert_means("deploy.apps", "apps/v1/deployments Deployment", true);
    assert_means("deployments.v1.apps", "apps/v1/deployments Deployment", true);
    assert_means("pods.v1", "/v1/pods Pod", true);
    assert_means("pods.", "/v1/pods Pod", true);
    assert_means("pods.v1.", "/v1/pods Pod", true);
    assert_means("storageclasses.storage.k8s.io", "storage.k8s.io/v1/storageclasses StorageClass",
                 false);
}

/* "v2ray" could be a version of example.org, and "stable" a group. */
static void a_group_like_a_version_and_a_version_like_a_group_are_found(void **state)
{
    (void)state;
    assert_means("tunnels.v2ray.example.org", "v2ray.example.org/stable/tunnels Tunnel", true);
    assert_means("tunnels.stable.v2ray.example.org", "v2ray.example.org/stable/tunnels Tunnel",
                 true);
}

static void a_type_may_be_in_another_version_than_the_preferred(void **state)
{
    (void)state;
    assert_means("volumeattributesclasses",
                 "storage.k8s.io/v1beta1/volumeattributesclasses VolumeAttributesClass", false);
    assert_means("volumeattributesclasses.storage.k8s.io",
                 "storage.k8s.io/v1beta1/volumeattributesclasses VolumeAttributesClass", false);
    assert_fails("volumeattributesclasses.v1.storage.k8s.io", KINF_ERR_NOT_FOUND,
                 "the server h:6443 has no resource 'volumeattributesclasses.v1.storage.k8s.io' "
                 "(see: kubectl api-resources)");
}

static void only_what_is_needed_is_asked(void **state)
{
    struct table table = { .refused = NULL };
    const struct kinf_type *type = NULL;

    (void)state;
    assert_int_equal(find(&table, "pods", &type, NULL), 0);
    assert_string_equal(table.asked, "/api/v1 ");
    assert_int_equal(find(&table, "deployments.apps", &type, NULL), 0);
    assert_string_equal(table.asked, "/apis/apps /apis/apps/v1 ");
    assert_int_equal(find(&table, "deployments.v1.apps", &type, NULL), 0);
    assert_string_equal(table.asked, "/apis/apps/v1 ");
    assert_int_equal(find(&table, "deploy", &type, NULL), 0);
    assert_string_equal(table.asked, "/api/v1 /apis /apis/metrics.k8s.io/v1beta1 /apis/apps/v1 ");
}

static void what_cannot_be_watched_is_refused(void **state)
{
    (void)state;
    assert_fails("bindings", KINF_ERR_UNSUPPORTED,
                 "the resource 'bindings' cannot be listed and watched");
    assert_fails("componentstatuses", KINF_ERR_UNSUPPORTED,
                 "the resource 'componentstatuses' cannot be listed and watched");
}

static void what_does_not_exist_is_named_with_the_server(void **state)
{
    (void)state;
    assert_fails("unicorns.apps", KINF_ERR_NOT_FOUND,
                 "the server h:6443 has no resource 'unicorns.apps' (see: kubectl api-resources)");
    assert_fails("pods.nogroup.example.org", KINF_ERR_NOT_FOUND,
                 "the server h:6443 has no resource 'pods.nogroup.example.org' (see: kubectl "
                 "api-resources)");
    assert_fails("pods.v9", KINF_ERR_NOT_FOUND,
                 "the server h:6443 has no resource 'pods.v9' (see: kubectl api-resources)");
}

static void a_group_that_is_away_hides_nothing_and_is_named(void **state)
{
    (void)state;
    assert_means("deployments", "apps/v1/deployments Deployment", true);
    assert_fails("unicorns", KINF_ERR_NOT_FOUND,
                 "the server h:6443 has no resource 'unicorns', unless in a group that is away: "
                 "metrics.k8s.io (see: kubectl api-resources)");
}

static void a_refusal_is_not_taken_for_absence(void **state)
{
    static const char *const targets[] = { "/api/v1", "/apis", "/apis/apps/v1" };
    static const int codes[] = { KINF_ERR_FORBIDDEN, KINF_ERR_UNAUTHORIZED, KINF_ERR_NETWORK,
                                 KINF_ERR_STOPPED };

    (void)state;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        for (size_t k = 0; k < sizeof codes / sizeof *codes; k++) {
            struct table table = { .refused = targets[i], .refusal = codes[k] };
            struct kinf_error err = KINF_ERROR_INIT;
            const struct kinf_type *type = NULL;

            assert_int_equal(find(&table, "deployments", &type, &err), codes[k]);
            assert_memory_equal(err.message, "refused /api", 12);
            assert_int_equal(find(&table, "deployments", &type, NULL), codes[k]);
        }
    }
}

static void names_that_would_mean_another_path_are_refused(void **state)
{
    static const char *const names[] = { "",        ".",        "pods/status",  "pods..v1",
                                         ".pods",   "pods?a=b", "pods.apps/v1", "a b",
                                         "../pods", "pods.%2e", "pods..",       "p\xc3\xb6" };
    char longest[1000];

    (void)state;
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct table table = { .refused = NULL };
        const struct kinf_type *type = NULL;

        assert_int_equal(find(&table, names[i], &type, NULL), KINF_ERR_INVALID);
        assert_string_equal(table.asked, "");
        assert_int_equal(find(&table, longest, &type, NULL), KINF_ERR_INVALID);
    }
}

static void answers_of_another_shape_are_passed_over(void **state)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "null",
        "{\"resources\":{}}",
        "{\"resources\":[7,null,{},{\"name\":3}]}",
        "{\"resources\":[{\"kind\":\"Pod\"},{\"singularName\":\"pods\"}]}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        KINF__CLEANUP(kinf__json_tree_free_ptr) struct cJSON *list = NULL;
        const struct kinf_type *type = NULL;

        assert_int_equal(kinf__json_tree_parse(kinf_str_from(texts[i]), &list, NULL), 0);
        assert_int_equal(kinf__discovery_pick(list, "pods", "", "v1", &type, NULL),
                         KINF_ERR_NOT_FOUND);
        assert_int_equal(kinf__discovery_pick(list, "", "", "v1", &type, NULL), KINF_ERR_NOT_FOUND);
    }
}

static void a_plural_wins_over_another_types_short_name(void **state)
{
    static const char text[] = LIST(
        RESOURCE("barriers", "barrier", "Barrier", "true", ALL,
                 ",\"shortNames\":[\"bars\"]") "," RESOURCE("bars", "bar", "Bar", "true", ALL, ""));
    KINF__CLEANUP(kinf__json_tree_free_ptr) struct cJSON *list = NULL;
    const struct kinf_type *type = NULL;

    (void)state;
    assert_int_equal(kinf__json_tree_parse(kinf_str_from(text), &list, NULL), 0);
    assert_int_equal(kinf__discovery_pick(list, "bars", "example.org", "v1", &type, NULL), 0);
    assert_string_equal(type->kind, "Bar");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resource_has_the_names_that_kubectl_knows),
        cmocka_unit_test(a_kind_stands_for_a_singular_that_is_missing),
        cmocka_unit_test(a_group_and_a_version_may_be_said),
        cmocka_unit_test(a_group_like_a_version_and_a_version_like_a_group_are_found),
        cmocka_unit_test(a_type_may_be_in_another_version_than_the_preferred),
        cmocka_unit_test(only_what_is_needed_is_asked),
        cmocka_unit_test(what_cannot_be_watched_is_refused),
        cmocka_unit_test(what_does_not_exist_is_named_with_the_server),
        cmocka_unit_test(a_group_that_is_away_hides_nothing_and_is_named),
        cmocka_unit_test(a_refusal_is_not_taken_for_absence),
        cmocka_unit_test(names_that_would_mean_another_path_are_refused),
        cmocka_unit_test(answers_of_another_shape_are_passed_over),
        cmocka_unit_test(a_plural_wins_over_another_types_short_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
