/*
 * Discovery: what kubectl's spellings mean, and whether a resource is served, asked of a server that
 * is an array of documents, legacy or aggregated.
 */
#include "rest/discovery.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "unit/allocation.h"
#include "unit/test.h"

#define ASKED_SIZE 512

#define RESOURCE(name, singular, kind, namespaced, verbs, more)                                    \
    "{\"name\":\"" name "\",\"singularName\":\"" singular "\",\"kind\":\"" kind                    \
    "\",\"namespaced\":" namespaced ",\"verbs\":[" verbs "]" more "}"
#define LIST(resources) "{\"kind\":\"APIResourceList\",\"resources\":[" resources "]}"
#define ALL             "\"get\",\"list\",\"watch\""
#define GROUPS(groups)  "{\"kind\":\"APIGroupList\",\"groups\":[" groups "]}"
#define GROUP(name, preferred, versions)                                                           \
    "{\"name\":\"" name "\",\"preferredVersion\":{\"version\":\"" preferred                        \
    "\"},\"versions\":[" versions "]}"
#define VERSION(name) "{\"version\":\"" name "\"}"

#define APPS    GROUP("apps", "v1", VERSION("v1"))
#define METRICS GROUP("metrics.k8s.io", "v1beta1", VERSION("v1beta1") "," VERSION("v1alpha1"))
#define STORAGE GROUP("storage.k8s.io", "v1", VERSION("v1beta1") "," VERSION("v1"))
#define V2RAY   GROUP("v2ray.example.org", "stable", VERSION("stable"))

#define ALL_OF(documents) documents, KINF__ARRAY_LEN(documents)

#define SUBRESOURCE RESOURCE("pods/status", "", "Pod", "true", "\"get\"", "")
#define POD         RESOURCE("pods", "pod", "Pod", "true", ALL, ",\"shortNames\":[\"po\"]")
#define NODE        RESOURCE("nodes", "", "Node", "false", ALL, "")
#define BINDING     RESOURCE("bindings", "binding", "Binding", "true", "\"create\"", "")
#define STATUS      RESOURCE("componentstatuses", "", "ComponentStatus", "false", "\"get\",\"list\"", "")

static const char core[] = LIST(SUBRESOURCE "," POD "," NODE "," BINDING "," STATUS);

struct document {
    const char *target;
    const char *text; /* NULL: 503 */
};

static const struct document legacy[] = {
    { "/api", "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"]}" },
    { "/api/v1", core },
    { "/apis", GROUPS(METRICS "," APPS "," STORAGE "," V2RAY) },
    { "/apis/apps/v1", LIST(RESOURCE("deployments", "deployment", "Deployment", "true", ALL,
                                     ",\"shortNames\":[\"dep\",\"deploy\"]")) },
    { "/apis/metrics.k8s.io/v1beta1", NULL },
    { "/apis/storage.k8s.io/v1", LIST(RESOURCE("storageclasses", "storageclass", "StorageClass",
                                               "false", ALL, ",\"shortNames\":[\"sc\"]")) },
    { "/apis/storage.k8s.io/v1beta1",
      LIST(RESOURCE("volumeattributesclasses", "volumeattributesclass", "VolumeAttributesClass",
                    "false", ALL, "")) },
    { "/apis/v2ray.example.org/stable",
      LIST(RESOURCE("tunnels", "tunnel", "Tunnel", "true", ALL, "")) },
};

/* Says what was asked, and has one failure to give. */
struct server {
    const struct document *documents;
    size_t n_documents;
    const char *refused; /* a target */
    int refusal;
    char asked[ASKED_SIZE];
};

static int ask(void *ctx, const char *target, const char *accept, struct kinf__buffer *answer,
               struct kinf_error *err)
{
    struct server *server = ctx;
    size_t len = strlen(server->asked);

    (void)accept;
    snprintf(server->asked + len, sizeof server->asked - len, "%s ", target);
    if (server->refused != NULL && strcmp(target, server->refused) == 0)
        return kinf__error_set(err, (enum kinf_errc)server->refusal, "refused %s", target);
    for (size_t i = 0; i < server->n_documents; i++) {
        const char *text = server->documents[i].text;

        if (strcmp(target, server->documents[i].target) != 0)
            continue;
        if (text == NULL)
            return kinf__error_set(err, KINF_ERR_SERVER, "service unavailable");
        return kinf__buffer_append(answer, text, strlen(text)) < 0 ? kinf__error_no_memory(err) : 0;
    }
    return kinf__error_set(err, KINF_ERR_NOT_FOUND, "404 page not found");
}

static struct kinf__discovery_source source_of(struct server *server)
{
    return (struct kinf__discovery_source){ ask, server, "h:6443" };
}

/* In a new table. */
static int find(struct server *server, const char *resource, const struct kinf_type **ret_type,
                struct kinf_error *err)
{
    const struct kinf__discovery_source source = source_of(server);
    struct kinf__discovery table = KINF__DISCOVERY_INIT;
    int failed;

    server->asked[0] = '\0';
    failed = kinf__discovery_find(&table, &source, resource, ret_type, err);
    kinf__discovery_release(&table);
    return failed;
}

/* `meant`: "GROUP/VERSION/RESOURCE KIND" */
static void assert_means(const char *resource, const char *meant, bool namespaced)
{
    struct kinf_error err = KINF_ERROR_INIT;
    const struct kinf_type *type = NULL;
    struct server server = { ALL_OF(legacy), NULL, 0, "" };
    char text[256];

    if (find(&server, resource, &type, &err) < 0)
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
    struct server server = { ALL_OF(legacy), NULL, 0, "" };

    assert_int_equal(find(&server, resource, &type, &err), code);
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
    struct server server = { ALL_OF(legacy), NULL, 0, "" };
    const struct kinf_type *type = NULL;

    (void)state;
    assert_int_equal(find(&server, "pods", &type, NULL), 0);
    assert_string_equal(server.asked, "/api /api/v1 ");
    assert_int_equal(find(&server, "deployments.apps", &type, NULL), 0);
    assert_string_equal(server.asked, "/apis /apis/apps/v1 ");
    assert_int_equal(find(&server, "deployments.v1.apps", &type, NULL), 0);
    assert_string_equal(server.asked, "/apis /apis/apps/v1 ");
    assert_int_equal(find(&server, "deploy", &type, NULL), 0);
    assert_string_equal(server.asked,
                        "/api /api/v1 /apis /apis/metrics.k8s.io/v1beta1 /apis/apps/v1 ");
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
    static const char *const targets[] = { "/api", "/api/v1", "/apis", "/apis/apps/v1" };
    static const int codes[] = { KINF_ERR_FORBIDDEN, KINF_ERR_UNAUTHORIZED, KINF_ERR_NETWORK,
                                 KINF_ERR_STOPPED };

    (void)state;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        for (size_t k = 0; k < sizeof codes / sizeof *codes; k++) {
            struct server server = { ALL_OF(legacy), targets[i], codes[k], "" };
            struct kinf_error err = KINF_ERROR_INIT;
            const struct kinf_type *type = NULL;

            assert_int_equal(find(&server, "deployments", &type, &err), codes[k]);
            assert_memory_equal(err.message, "refused /api", 12);
            assert_int_equal(find(&server, "deployments", &type, NULL), codes[k]);
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
        struct server server = { ALL_OF(legacy), NULL, 0, "" };
        const struct kinf_type *type = NULL;

        assert_int_equal(find(&server, names[i], &type, NULL), KINF_ERR_INVALID);
        assert_string_equal(server.asked, "");
        assert_int_equal(find(&server, longest, &type, NULL), KINF_ERR_INVALID);
    }
}

/* A server of the core group alone. */
static int find_in_core(const char *text, const char *name, const struct kinf_type **ret_type,
                        struct kinf_error *err)
{
    const struct document documents[] = { { "/api/v1", text }, { "/apis", GROUPS("") } };
    struct server server = { ALL_OF(documents), NULL, 0, "" };

    return find(&server, name, ret_type, err);
}

static void parts_of_another_shape_are_passed_over(void **state)
{
    static const char *const texts[] = {
        "{\"kind\":\"APIResourceList\",\"resources\":{}}",
        "{\"kind\":\"APIResourceList\"}",
        LIST("7,null,{},{\"name\":3}"),
        LIST("{\"kind\":\"pods\"},{\"singularName\":\"pods\"},{\"shortNames\":[\"pods\"]}"),
        LIST("{\"name\":\"a\",\"kind\":7,\"shortNames\":{},\"verbs\":[7,{}]}"),
    };
    const struct kinf_type *type = NULL;

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(texts); i++)
        assert_int_equal(find_in_core(texts[i], "pods", &type, NULL), KINF_ERR_NOT_FOUND);
    assert_int_equal(find_in_core(texts[4], "a", &type, NULL), KINF_ERR_UNSUPPORTED);
}

static void an_answer_of_another_kind_says_nothing(void **state)
{
    static const char *const texts[] = { "{}", "[]", "null", "{\"title\":\"welcome\"}",
                                         GROUPS("") };
    const struct kinf_type *type = NULL;
    struct kinf_error err = KINF_ERROR_INIT;

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(texts); i++)
        assert_int_equal(find_in_core(texts[i], "pods", &type, NULL), KINF_ERR_PROTOCOL);
    assert_int_equal(find_in_core("{\"kind\":", "pods", &type, NULL), KINF_ERR_TRUNCATED);
    assert_int_equal(find_in_core("<html>", "pods", &type, &err), KINF_ERR_PROTOCOL);
    assert_int_equal(err.code, KINF_ERR_PROTOCOL);
    assert_non_null(strstr(err.message, "discovery /api/v1: "));
}

static void a_group_whose_answer_is_none_hides_nothing_and_is_named(void **state)
{
    static const char *const texts[] = { "<html>", "{\"kind\":", "{}", GROUPS("") };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(texts); i++) {
        const struct document documents[] = {
            { "/api/v1", core },
            { "/apis", GROUPS(METRICS "," APPS) },
            { "/apis/metrics.k8s.io/v1beta1", texts[i] },
            { "/apis/apps/v1",
              LIST(RESOURCE("deployments", "deployment", "Deployment", "true", ALL, "")) },
        };
        struct server server = { ALL_OF(documents), NULL, 0, "" };
        struct kinf_error err = KINF_ERROR_INIT;
        const struct kinf_type *type;

        assert_int_equal(find(&server, "deployments", &type, NULL), 0);
        assert_int_equal(find(&server, "unicorns", &type, &err), KINF_ERR_NOT_FOUND);
        assert_non_null(strstr(err.message, "unless in a group that is away: metrics.k8s.io"));
    }
}

static void a_plural_wins_over_another_types_short_name(void **state)
{
    static const char text[] = LIST(
        RESOURCE("barriers", "barrier", "Barrier", "true", ALL,
                 ",\"shortNames\":[\"bars\"]") "," RESOURCE("bars", "bar", "Bar", "true", ALL, ""));
    const struct kinf_type *type = NULL;

    (void)state;
    assert_int_equal(find_in_core(text, "bars", &type, NULL), 0);
    assert_string_equal(type->kind, "Bar");
}

/* --- both forms --- */

#define AGGREGATED(items)    "{\"kind\":\"APIGroupDiscoveryList\",\"items\":[" items "]}"
#define ITEM(name, versions) "{\"metadata\":{\"name\":\"" name "\"},\"versions\":[" versions "]}"
#define PODS                                                                                       \
    "{\"resource\":\"pods\",\"singularResource\":\"pod\",\"responseKind\":{\"kind\":\"Pod\"},"     \
    "\"scope\":\"Namespaced\",\"verbs\":[\"get\",\"list\",\"watch\"],\"shortNames\":[\"po\"],"     \
    "\"categories\":[\"all\",\"some\"],\"subresources\":[{\"subresource\":\"log\","                \
    "\"responseKind\":{\"kind\":\"Pod\"},\"verbs\":[\"get\"]}]}"
#define THINGS                                                                                     \
    "{\"resource\":\"things\",\"responseKind\":{\"kind\":\"Thing\"},\"scope\":\"Cluster\","        \
    "\"verbs\":[\"list\",\"watch\"]}"

static const struct document aggregated[] = {
    { "/api", AGGREGATED("{\"metadata\":{},\"versions\":[{\"version\":\"v1\",\"freshness\":"
                         "\"Current\",\"resources\":[" PODS "]}]}") },
    { "/apis",
      AGGREGATED(ITEM(
          "two.example",
          "{\"version\":\"v2\",\"freshness\":\"Current\",\"resources\":[" THINGS
          "]},{\"version\":\"v1\",\"resources\":[]}") "," ITEM("away.example",
                                                               "{\"version\":\"v1\",\"freshness\":"
                                                               "\"Stale\","
                                                               "\"resources\":[" THINGS "]}")) },
};

static const struct document the_same[] = {
    { "/api/v1",
      LIST(RESOURCE(
          "pods", "pod", "Pod", "true", ALL,
          ",\"shortNames\":[\"po\"],\"categories\":[\"all\",\"some\"]") "," RESOURCE("pods/log", "",
                                                                                     "Pod", "true",
                                                                                     "\"get\"",
                                                                                     "")) },
    { "/apis", GROUPS(GROUP("two.example", "v2", VERSION("v1") "," VERSION("v2")) "," GROUP(
                   "away.example", "v1", VERSION("v1"))) },
    { "/apis/two.example/v1", LIST("") },
    { "/apis/two.example/v2",
      LIST(RESOURCE("things", "", "Thing", "false", "\"list\",\"watch\"", "")) },
    { "/apis/away.example/v1", NULL },
};

static void write_table(const struct kinf__discovery *table, struct kinf__buffer *out)
{
    out->len = 0;
    for (size_t i = 0; i < table->n_versions; i++) {
        const struct kinf__discovery_version *version = &table->versions[i];

        assert_int_equal(kinf__buffer_printf(out, "%s/%s%s\n", version->group, version->name,
                                             version->state == KINF__DISCOVERY_READ ? "" : " ?"),
                         0);
        for (size_t k = 0; k < version->n_resources; k++) {
            const struct kinf__discovery_resource *at = &version->resources[k];

            assert_int_equal(kinf__buffer_printf(out, "  %s|%s|%s|%s|%s|%s|%s\n", at->name,
                                                 at->singular, at->kind, at->short_names,
                                                 at->categories, at->namespaced ? "n" : "",
                                                 at->verbs),
                             0);
        }
    }
}

static void expect_table(const struct document *documents, size_t n_documents, const char *expected)
{
    struct server server = { documents, n_documents, NULL, 0, "" };
    const struct kinf__discovery_source source = source_of(&server);
    struct kinf__discovery table = KINF__DISCOVERY_INIT;
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    assert_int_equal(kinf__discovery_read_all(&table, &source, NULL), 0);
    write_table(&table, &text);
    assert_string_equal(kinf__buffer_cstr(&text), expected);
    kinf__discovery_release(&table);
}

static void both_forms_give_the_same_table(void **state)
{
    static const char expected[] = "/v1\n"
                                   "  pods|pod|Pod|po|all,some|n|get,list,watch\n"
                                   "  pods/log||Pod|||n|get\n"
                                   "two.example/v2\n"
                                   "  things||Thing||||list,watch\n"
                                   "two.example/v1\n"
                                   "away.example/v1 ?\n";

    (void)state;
    expect_table(ALL_OF(aggregated), expected);
    expect_table(ALL_OF(the_same), expected);
}

static void two_answers_are_all_of_the_aggregated_form(void **state)
{
    struct server server = { ALL_OF(aggregated), NULL, 0, "" };
    const struct kinf__discovery_source source = source_of(&server);
    struct kinf__discovery table = KINF__DISCOVERY_INIT;
    const struct kinf_type *type;

    (void)state;
    assert_int_equal(kinf__discovery_find(&table, &source, "po", &type, NULL), 0);
    assert_string_equal(server.asked, "/api ");
    assert_int_equal(kinf__discovery_find(&table, &source, "things", &type, NULL), 0);
    assert_string_equal(type->version, "v2");
    assert_int_equal(kinf__discovery_find(&table, &source, "things.away.example", &type, NULL),
                     KINF_ERR_SERVER);
    assert_int_equal(kinf__discovery_find(&table, &source, "x.v1.two.example", &type, NULL),
                     KINF_ERR_NOT_FOUND);
    assert_int_equal(kinf__discovery_read_all(&table, &source, NULL), 0);
    assert_string_equal(server.asked, "/api /apis ");
    kinf__discovery_release(&table);
}

/* Also groups, versions and resources that have no name, or one of another kind of group. */
static void odd_parts_of_the_aggregated_form_are_passed_over(void **state)
{
    static const struct document documents[] = {
        { "/api",
          AGGREGATED("{\"metadata\":{\"name\":\"x\"},\"versions\":[{\"version\":\"v1\"}]}") },
        { "/apis",
          AGGREGATED("7,{},{\"metadata\":7,\"versions\":[7,{\"version\":7}]},"
                     "{\"versions\":[{\"version\":\"v1\"}]},"
                     "{\"metadata\":{\"name\":\"x\"},\"preferredVersion\":{\"version\":\"v2\"},"
                     "\"versions\":[7,{},{\"version\":\"v1\","
                     "\"resources\":[{},7,{\"resource\":\"r\",\"verbs\":[7],\"responseKind\":7,"
                     "\"subresources\":[{},7]},{\"subresources\":[{\"subresource\":\"s\"}]}]}]}") },
    };

    (void)state;
    expect_table(ALL_OF(documents), "x/v1\n  r||||||\n");
}

static void every_lack_of_memory_is_an_error(void **state)
{
    const struct document *forms[] = { aggregated, the_same };
    const size_t lengths[] = { KINF__ARRAY_LEN(aggregated), KINF__ARRAY_LEN(the_same) };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct server server = { forms[i], lengths[i], NULL, 0, "" };
        const struct kinf__discovery_source source = source_of(&server);
        bool was_out_of_memory = true;

        for (size_t n = 1; was_out_of_memory; n++) {
            struct kinf__discovery table = KINF__DISCOVERY_INIT;
            int failed;

            test_fail_allocation(n);
            failed = kinf__discovery_read_all(&table, &source, NULL);
            was_out_of_memory = test_allocation_failed();
            assert_int_equal(failed, was_out_of_memory ? KINF_ERR_NO_MEMORY : 0);
            /* The next one completes it. */
            assert_int_equal(kinf__discovery_read_all(&table, &source, NULL), 0);
            assert_int_equal(table.n_versions, 4);
            kinf__discovery_release(&table);
        }
    }
}

/* --- whether it is served --- */

#define SERVED(name, version)                                                                      \
    "{\"name\":\"" name "\",\"versions\":[{\"version\":\"v0\"},{\"version\":\"" version "\"}]}"
#define NAMED(name) "{\"name\":\"" name "\"}"

#define UNKNOWN 2

static void only_a_healthy_discovery_says_that_a_resource_is_gone(void **state)
{
    static const char ours[] = GROUPS(SERVED("apps", "v1") "," SERVED("example.com", "v1"));
    static const struct {
        const char *what;
        const char *group;
        const char *groups;  /* the answer to /apis; NULL: 404 */
        const char *version; /* likewise */
        int is_served;
    } rows[] = {
        { "it is there", "example.com", ours, LIST(NAMED("gizmos") "," NAMED("widgets")), 1 },
        { "its version has others only", "example.com", ours,
          LIST(NAMED("widgets/status") "," NAMED("Widgets") "," NAMED("gizmos")), 0 },
        { "its version is gone", "example.com", GROUPS(SERVED("example.com", "v2")), NULL, 0 },
        { "its group is gone", "example.com", GROUPS(SERVED("apps", "v1")), NULL, 0 },
        { "no groups at all", "example.com", GROUPS(""), NULL, 0 },
        { "a lost proxy says 404 to all", "example.com", NULL, NULL, UNKNOWN },
        { "a web page", "example.com", "{\"title\":\"welcome\"}", NULL, UNKNOWN },
        { "the version is listed, but not there", "example.com", ours, NULL, UNKNOWN },
        { "the version's answer is of another kind", "example.com", ours, GROUPS(""), UNKNOWN },
        { "a core resource", "", NULL, LIST(NAMED("widgets")), 1 },
        { "a core resource that is not there", "", NULL, LIST(NAMED("pods")), 0 },
        { "no core at all", "", NULL, NULL, UNKNOWN },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        bool is_core = rows[i].group[0] == '\0', is_served = rows[i].is_served == 0;
        const struct document documents[] = {
            { rows[i].version == NULL ? ""
              : is_core               ? "/api/v1"
                                      : "/apis/example.com/v1",
              rows[i].version },
            { rows[i].groups == NULL ? "" : "/apis", rows[i].groups },
        };
        struct server server = { ALL_OF(documents), NULL, 0, "" };
        const struct kinf__discovery_source source = source_of(&server);
        const struct kinf_type type = { rows[i].group, "v1", "Widget", "widgets", true };
        struct kinf_error err = KINF_ERROR_INIT;
        int failed = kinf__discovery_is_served(&source, &type, &is_served, &err);

        printf("  %s\n", rows[i].what);
        assert_int_equal(failed < 0, rows[i].is_served == UNKNOWN);
        assert_int_equal(err.code, failed);
        if (failed == 0)
            assert_int_equal(is_served, rows[i].is_served);
        if (is_core)
            assert_string_equal(server.asked, "/api/v1 ");
    }
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
        cmocka_unit_test(parts_of_another_shape_are_passed_over),
        cmocka_unit_test(an_answer_of_another_kind_says_nothing),
        cmocka_unit_test(a_group_whose_answer_is_none_hides_nothing_and_is_named),
        cmocka_unit_test(a_plural_wins_over_another_types_short_name),
        cmocka_unit_test(both_forms_give_the_same_table),
        cmocka_unit_test(two_answers_are_all_of_the_aggregated_form),
        cmocka_unit_test(odd_parts_of_the_aggregated_form_are_passed_over),
        cmocka_unit_test(every_lack_of_memory_is_an_error),
        cmocka_unit_test(only_a_healthy_discovery_says_that_a_resource_is_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
