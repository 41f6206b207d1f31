/*
 * Whether a server still has a resource: what each answer of its discovery says.
 */
#include "rest/served.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "json/tree.h"
#include "unit/test.h"

#define GROUPS(groups) "{\"kind\":\"APIGroupList\",\"groups\":[" groups "]}"
#define GROUP(name, version)                                                                       \
    "{\"name\":\"" name "\",\"versions\":[{\"version\":\"v0\"},{\"version\":\"" version "\"}]}"
#define RESOURCES(resources) "{\"kind\":\"APIResourceList\",\"resources\":[" resources "]}"
#define NAMED(name)          "{\"name\":\"" name "\"}"

#define UNKNOWN 2

/* NULL: 404. */
struct row {
    const char *what;
    const char *group;
    const char *groups; /* the answer to /apis */
    const char *version;
    int is_served;
};

static int ask(void *ctx, const char *target, struct cJSON **ret_tree, struct kinf_error *err)
{
    const struct row *row = ctx;
    const char *text = NULL;

    if (strcmp(target, "/apis") == 0)
        text = row->groups;
    else if (strcmp(target, row->group[0] != '\0' ? "/apis/example.com/v1" : "/api/v1") == 0)
        text = row->version;
    else
        fail_msg("asks for %s", target);
    if (text == NULL)
        return kinf__error_set(err, KINF_ERR_NOT_FOUND, "404 page not found");
    return kinf__json_tree_parse(kinf_str_from(text), ret_tree, err);
}

static void only_a_healthy_discovery_says_that_a_resource_is_gone(void **state)
{
    static const char ours[] = GROUPS(GROUP("apps", "v1") "," GROUP("example.com", "v1"));
    static const struct row rows[] = {
        { "it is there", "example.com", ours, RESOURCES(NAMED("gizmos") "," NAMED("widgets")), 1 },
        { "its version has others only", "example.com", ours,
          RESOURCES(NAMED("widgets/status") "," NAMED("gizmos")), 0 },
        { "its version is gone", "example.com", GROUPS(GROUP("example.com", "v2")), NULL, 0 },
        { "its group is gone", "example.com", GROUPS(GROUP("apps", "v1")), NULL, 0 },
        { "no groups at all", "example.com", GROUPS(""), NULL, 0 },
        { "a lost proxy says 404 to all", "example.com", NULL, NULL, UNKNOWN },
        { "a web page", "example.com", "{\"title\":\"welcome\"}", NULL, UNKNOWN },
        { "the version is listed, but not there", "example.com", ours, NULL, UNKNOWN },
        { "the version's answer is of another kind", "example.com", ours, GROUPS(""), UNKNOWN },
        { "a core resource", "", NULL, RESOURCES(NAMED("widgets")), 1 },
        { "a core resource that is not there", "", NULL, RESOURCES(NAMED("pods")), 0 },
        { "no core at all", "", NULL, NULL, UNKNOWN },
    };

    (void)state;
    for (size_t i = 0; i < KINF__ARRAY_LEN(rows); i++) {
        struct row row = rows[i];
        const struct kinf__discovery_source source = { ask, &row, "h:6443" };
        const struct kinf_type type = { row.group, "v1", "Widget", "widgets", true };
        struct kinf_error err = KINF_ERROR_INIT;
        bool is_served = row.is_served == 0;
        int rc = kinf__served_ask(&source, &type, &is_served, &err);

        printf("  %s\n", row.what);
        if (row.is_served == UNKNOWN) {
            assert_true(rc < 0);
            assert_int_equal(err.code, rc);
        } else {
            assert_int_equal(rc, 0);
            assert_int_equal(is_served, row.is_served);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_healthy_discovery_says_that_a_resource_is_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
