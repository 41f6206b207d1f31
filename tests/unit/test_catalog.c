/*
 * The catalog: what it takes of the upstream's discovery and of entries, and what is left when memory
 * is out. Of what is written of it the groups; the rest is tested where it is served.
 */
#include "serve/catalog.h"

#include <stdio.h>
#include <string.h>

#include <kinformer/log.h>

#include "serve/definitions.h"
#include "serve/server_priv.h"
#include "unit/allocation.h"
#include "unit/scripted_server.h"
#include "unit/test.h"

#define DEFINITIONS "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"

static const struct test_reply replies[] = {
    { .path = "/api/v1",
      .body = "{\"kind\":\"APIResourceList\",\"resources\":[{\"name\":\"pods\",\"singularName\":"
              "\"pod\",\"kind\":\"Pod\",\"namespaced\":true,\"shortNames\":[\"po\"],\"categories\":"
              "[\"all\",\"some\"],\"verbs\":[\"get\"]},{\"name\":\"nodes\",\"kind\":\"Node\","
              "\"namespaced\":false},{\"name\":\"nameless\"}]}" },
    { .path = "/apis",
      .body = "{\"kind\":\"APIGroupList\",\"groups\":[{\"name\":\"away.example\",\"versions\":[{"
              "\"version\":\"v1\"}]}]}" },
    { .path = "/apis/away.example/v1", .status = "503 Service Unavailable", .body = "no" },
    { .path = "/version", .body = "{\"gitVersion\":\"v1.37.1\"}" },
};

static void what_the_upstream_has_is_an_entry_each(void **state)
{
    struct replay *server = test_server_start(replies, KINF__ARRAY_LEN(replies));
    struct kinf_client *client = test_client_of(replay_port(server), NULL);
    const struct kinf__catalog_entry *entry;
    struct kinf__catalog *catalog;

    (void)state;
    assert_int_equal(kinf__catalog_fetch(client, &catalog, NULL), 0);
    entry = kinf__catalog_find(catalog, "", "v1", "pods");
    assert_non_null(entry);
    assert_string_equal(entry->resource.singular, "pod");
    assert_string_equal(entry->resource.kind, "Pod");
    assert_string_equal(entry->resource.short_names, "po");
    assert_string_equal(entry->resource.categories, "all,some");
    assert_true(entry->resource.namespaced);
    assert_true(entry->is_upstream);
    assert_string_equal(entry->resource.verbs, "get");
    entry = kinf__catalog_find(catalog, "", "v1", "nodes");
    assert_non_null(entry);
    assert_string_equal(entry->resource.short_names, "");
    assert_false(entry->resource.namespaced);
    assert_null(kinf__catalog_find(catalog, "", "v1", "nameless"));
    assert_false(kinf__catalog_has_group(catalog, "away.example"));
    assert_string_equal(kinf__catalog_version(catalog), "{\"gitVersion\":\"v1.37.1+kinformerd\"}");
    kinf__catalog_free(catalog);
    kinf_client_free(client);
    replay_stop(server);
}

/* What a server refuses it has none of; what did not get through is asked for again by who wants the
 * catalog. */
static void a_version_that_is_not_answered_is_no_catalog(void **state)
{
    static const struct {
        struct test_reply version;
        int code;
    } rows[] = {
        { { .path = "/version", .status = "403 Forbidden", .body = "{}" }, 0 },
        { { .path = "/version", .body = "{}" }, 0 },
        { { .path = "/version", .body = "{\"git", .end = TEST_END_CUT }, KINF_ERR_NETWORK },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        const struct test_reply all[] = { replies[0], replies[1], rows[i].version };
        struct replay *server = test_server_start(all, KINF__ARRAY_LEN(all));
        struct kinf_client *client = test_client_of(replay_port(server), NULL);
        struct kinf__catalog *catalog = NULL;
        struct kinf_error err = KINF_ERROR_INIT;

        assert_int_equal(kinf__catalog_fetch(client, &catalog, &err), rows[i].code);
        assert_int_equal(err.code, rows[i].code);
        if (catalog != NULL)
            assert_string_equal(kinf__catalog_version(catalog), "");
        kinf__catalog_free(catalog);
        kinf_client_free(client);
        replay_stop(server);
    }
}

/* A server that is busy when it is asked again still has one. */
static void a_version_that_was_told_once_stays(void **state)
{
    const struct kinf__server_options options = { .name = NULL };
    struct kinf__catalog *told, *silent;
    struct kinf__server *server;

    (void)state;
    assert_int_equal(kinf__server_new(&options, &server, NULL), 0);
    assert_int_equal(kinf__catalog_new(&told), 0);
    assert_int_equal(kinf__catalog_new(&silent), 0);
    assert_int_equal(kinf__catalog_set_version(told, "{\"major\":\"1\"}"), 0);
    kinf__server_set_catalog(server, told);
    kinf__server_set_catalog(server, silent);
    assert_string_equal(kinf__catalog_version(server->catalog), "{\"major\":\"1\"}");
    kinf__server_free(server);
}

/* What is served of the types of a group whose server is away is served on: it is not gone. What is
 * gone is. */
static void a_version_that_does_not_answer_stays_as_it_was(void **state)
{
    static const struct test_reply before[] = {
        { .path = "/apis",
          .body =
              "{\"kind\":\"APIGroupList\",\"groups\":[{\"name\":\"away.example\",\"versions\":[{"
              "\"version\":\"v1\"}]},{\"name\":\"gone.example\",\"versions\":[{\"version\":\"v1\"}]"
              "}"
              "]}" },
        { .path = "/apis/away.example/v1",
          .body = "{\"kind\":\"APIResourceList\",\"resources\":[{\"name\":\"xs\",\"kind\":\"X\","
                  "\"namespaced\":true,\"verbs\":[\"list\",\"watch\"]}]}" },
        { .path = "/apis/gone.example/v1",
          .body =
              "{\"kind\":\"APIResourceList\",\"resources\":[{\"name\":\"ys\",\"kind\":\"Y\"}]}" },
        { .path = "/api/v1", .body = "{\"kind\":\"APIResourceList\",\"resources\":[]}" },
    };
    const struct kinf__server_options options = { .name = NULL };
    const struct kinf__catalog_entry *entry;
    struct kinf__server *server;

    (void)state;
    assert_int_equal(kinf__server_new(&options, &server, NULL), 0);
    for (int i = 0; i < 3; i++) {
        struct replay *upstream = i == 0 ? test_server_start(before, KINF__ARRAY_LEN(before))
                                         : test_server_start(replies, KINF__ARRAY_LEN(replies));
        struct kinf_client *client = test_client_of(replay_port(upstream), NULL);
        struct kinf__catalog *catalog;

        assert_int_equal(kinf__catalog_fetch(client, &catalog, NULL), 0);
        kinf__server_set_catalog(server, catalog);
        entry = kinf__catalog_find(server->catalog, "away.example", "v1", "xs");
        assert_non_null(entry);
        assert_string_equal(entry->resource.verbs, "list,watch");
        assert_int_equal(kinf__catalog_find(server->catalog, "gone.example", "v1", "ys") != NULL,
                         i == 0);
        assert_int_equal(kinf__catalog_find(server->catalog, "", "v1", "pods") != NULL, i != 0);
        kinf_client_free(client);
        replay_stop(upstream);
    }
    kinf__server_free(server);
}

#define GROUP(name, resource, kind)                                                                \
    "{\"metadata\":{\"name\":\"" name "\"},\"versions\":[{\"version\":\"v1\",\"resources\":[{"     \
    "\"resource\":\"" resource "\",\"responseKind\":{\"kind\":\"" kind                             \
    "\"},\"scope\":\"Namespaced\",\"verbs\":[\"list\",\"watch\"]}]}]}"
#define AGGREGATED(groups) "{\"kind\":\"APIGroupDiscoveryList\",\"items\":[" groups "]}"

/* As a daemon does at its start, however many resources it has. */
static void two_answers_are_enough_for_all_names_and_the_catalog(void **state)
{
    static const struct test_reply all[] = {
        { .path = "/apis",
          .body = AGGREGATED(
              GROUP("apps", "deployments", "Deployment") "," GROUP("x.example", "xs", "X")) },
        { .path = "/api", .body = AGGREGATED(GROUP("", "pods", "Pod")) },
        { .path = "/version", .body = "{}" },
    };
    static const char *const names[] = { "xs", "deployments.apps", "pods", "deployments.v1.apps" };
    struct replay *server = test_server_start(all, KINF__ARRAY_LEN(all));
    struct kinf_client *client = test_client_of(replay_port(server), NULL);
    KINF__AUTO_FREE char *targets = NULL;
    struct kinf__catalog *catalog;
    const struct kinf_type *type;

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(names); i++)
        assert_int_equal(kinf_client_find_type(client, names[i], &type, NULL), 0);
    assert_int_equal(kinf__catalog_fetch(client, &catalog, NULL), 0);
    assert_non_null(kinf__catalog_find(catalog, "x.example", "v1", "xs"));
    targets = test_server_targets(server);
    assert_string_equal(targets, "/api\n/apis\n/version\n");
    kinf__catalog_free(catalog);
    kinf_client_free(client);
    replay_stop(server);
}

static char logged[512];

static void keep_line(enum kinf_log_level level, const char *module, const char *line, void *ctx)
{
    (void)level;
    (void)module;
    (void)ctx;
    snprintf(logged, sizeof logged, "%s", line);
}

/* Neither what has no definition nor what cannot have one is asked for. One that is not there is
 * nothing to tell of, one that may not be read is. */
static void definitions_are_asked_for_where_there_may_be_one(void **state)
{
    static const char *const groups[] = { "apps", "storage.k8s.io", "rbac.authorization.k8s.io",
                                          "snapshot.storage.k8s.io", "x.example" };
    static const struct test_reply forbidden[] = {
        { .path = DEFINITIONS "xs.x.example", .status = "403 Forbidden", .body = "not for you" },
    };
    struct kinf__source *sources[KINF__ARRAY_LEN(groups)];
    struct replay *upstream = test_server_start(forbidden, KINF__ARRAY_LEN(forbidden));
    struct kinf_client *client = test_client_of(replay_port(upstream), NULL);
    const struct kinf__server_options options = { .name = NULL };
    struct kinf__source_options source = { .name_space = NULL };
    KINF__AUTO_FREE char *targets = NULL;
    struct kinf__server *server;

    (void)state;
    assert_int_equal(kinf__server_new(&options, &server, NULL), 0);
    assert_int_equal(kinf_indexer_new(NULL, 0, &source.store.indexer, NULL), 0);
    for (size_t i = 0; i < KINF__ARRAY_LEN(groups); i++) {
        assert_int_equal(
            kinf_type_intern(groups[i], "v1", "X", "xs", true, &source.store.type, NULL), 0);
        assert_int_equal(kinf__server_add_source(server, &source, &sources[i], NULL), 0);
    }
    kinf_log_set_callback(keep_line, NULL);
    kinf__definitions_fetch(server, client);
    kinf_log_set_callback(NULL, NULL);
    assert_non_null(strstr(logged, "columns stay as they are, the definition cannot be read "
                                   "resource=xs error="));
    assert_non_null(strstr(logged, "not for you"));
    targets = test_server_targets(upstream);
    assert_string_equal(targets,
                        DEFINITIONS "xs.snapshot.storage.k8s.io\n" DEFINITIONS "xs.x.example\n");
    for (size_t i = 0; i < KINF__ARRAY_LEN(groups); i++) {
        kinf__server_retire_source(server, sources[i]);
        kinf__source_free(sources[i]);
    }
    kinf_indexer_free(source.store.indexer);
    kinf__server_free(server);
    kinf_client_free(client);
    replay_stop(upstream);
}

/* A type on demand comes back again and again. */
static void a_type_that_comes_back_has_its_columns_again(void **state)
{
    static const char text[] =
        "{\"spec\":{\"versions\":[{\"name\":\"v1\",\"additionalPrinterColumns\":[{\"name\":\"C\","
        "\"type\":\"string\",\"jsonPath\":\".spec.c\"}]}]}}";
    const struct kinf__server_options options = { .name = NULL };
    struct kinf__source_options source = { .name_space = NULL };
    struct kinf__server *server;

    (void)state;
    assert_int_equal(kinf__server_new(&options, &server, NULL), 0);
    assert_int_equal(kinf_indexer_new(NULL, 0, &source.store.indexer, NULL), 0);
    assert_int_equal(kinf_type_intern("x.example", "v1", "X", "xs", true, &source.store.type, NULL),
                     0);
    for (int i = 0; i < 5; i++) {
        struct kinf__source *made;

        assert_int_equal(kinf__server_add_source(server, &source, &made, NULL), 0);
        assert_int_equal(kinf__definitions_take(server, source.store.type, kinf_str_from(text)), 0);
        assert_int_equal(server->n_tables, 1);
        assert_ptr_equal(atomic_load(&made->table), server->tables[0].table);
        kinf__server_retire_source(server, made);
        kinf__source_free(made);
    }
    kinf_indexer_free(source.store.indexer);
    kinf__server_free(server);
}

static void add(struct kinf__catalog *catalog, char *group, char *version, char *name)
{
    const struct kinf__catalog_entry entry = {
        .group = group,
        .version = version,
        .resource = { .name = name,
                      .singular = (char[]){ "" },
                      .kind = (char[]){ "X" },
                      .short_names = (char[]){ "" },
                      .categories = (char[]){ "" },
                      .verbs = (char[]){ "get" } },
        .answer_group = (char[]){ "" },
        .answer_version = (char[]){ "" },
    };

    assert_int_equal(kinf__catalog_add(catalog, &entry), 0);
}

#define OF_GROUP(name, version)                                                                    \
    "{\"groupVersion\":\"" name "/" version "\",\"version\":\"" version "\"}"
#define XS                                                                                         \
    "\"name\":\"x.example\",\"versions\":[" OF_GROUP("x.example", "v2") "," OF_GROUP(              \
        "x.example", "v1") "],\"preferredVersion\":" OF_GROUP("x.example", "v2") "}"

/* Each group and version once, in the catalog's order; the core group is none of them. */
static void groups_are_listed_with_their_versions(void **state)
{
    const struct kinf__server_options options = { .name = NULL };
    KINF__AUTO_BUFFER groups = KINF__BUFFER_INIT, group = KINF__BUFFER_INIT;
    struct kinf__catalog *catalog;
    struct kinf__server *server;

    (void)state;
    assert_int_equal(kinf__server_new(&options, &server, NULL), 0);
    assert_int_equal(kinf__catalog_new(&catalog), 0);
    add(catalog, (char[]){ "" }, (char[]){ "v1" }, (char[]){ "pods" });
    add(catalog, (char[]){ "apps" }, (char[]){ "v1" }, (char[]){ "deployments" });
    add(catalog, (char[]){ "x.example" }, (char[]){ "v2" }, (char[]){ "xs" });
    add(catalog, (char[]){ "x.example" }, (char[]){ "v1" }, (char[]){ "xs" });
    kinf__server_set_catalog(server, catalog);
    assert_int_equal(kinf__catalog_write_groups(server, &groups), 0);
    assert_string_equal(kinf__buffer_cstr(&groups),
                        "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":["
                        "{\"name\":\"apps\",\"versions\":[" OF_GROUP(
                            "apps", "v1") "],"
                                          "\"preferredVersion\":" OF_GROUP("apps", "v1") "},{" XS
                                                                                         "]}\n");
    assert_int_equal(kinf__catalog_write_group(server, "x.example", &group), 0);
    assert_string_equal(kinf__buffer_cstr(&group),
                        "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\"," XS "\n");
    kinf__server_free(server);
}

static void an_entry_that_cannot_be_copied_is_not_there(void **state)
{
    const struct kinf__catalog_entry entry = {
        .group = (char[]){ "apps" },
        .version = (char[]){ "v1" },
        .resource.name = (char[]){ "deployments/scale" },
        .resource.singular = (char[]){ "deployment" },
        .resource.kind = (char[]){ "Scale" },
        .resource.short_names = (char[]){ "deploy" },
        .resource.categories = (char[]){ "all" },
        .resource.verbs = (char[]){ "get" },
        .answer_group = (char[]){ "autoscaling" },
        .answer_version = (char[]){ "v1" },
    };
    struct kinf__catalog *catalog;
    bool was_out_of_memory = true;

    (void)state;
    assert_int_equal(kinf__catalog_new(&catalog), 0);
    for (size_t n = 1; was_out_of_memory; n++) {
        int failed;

        test_fail_allocation(n);
        failed = kinf__catalog_add(catalog, &entry);
        was_out_of_memory = test_allocation_failed();
        assert_int_equal(failed, was_out_of_memory ? KINF_ERR_NO_MEMORY : 0);
        assert_int_equal(kinf__catalog_find(catalog, "apps", "v1", entry.resource.name) != NULL,
                         !was_out_of_memory);
    }
    assert_string_equal(
        kinf__catalog_find(catalog, "apps", "v1", entry.resource.name)->answer_group,
        "autoscaling");
    kinf__catalog_free(catalog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_upstream_has_is_an_entry_each),
        cmocka_unit_test(a_version_that_is_not_answered_is_no_catalog),
        cmocka_unit_test(a_version_that_was_told_once_stays),
        cmocka_unit_test(a_version_that_does_not_answer_stays_as_it_was),
        cmocka_unit_test(two_answers_are_enough_for_all_names_and_the_catalog),
        cmocka_unit_test(definitions_are_asked_for_where_there_may_be_one),
        cmocka_unit_test(a_type_that_comes_back_has_its_columns_again),
        cmocka_unit_test(groups_are_listed_with_their_versions),
        cmocka_unit_test(an_entry_that_cannot_be_copied_is_not_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
