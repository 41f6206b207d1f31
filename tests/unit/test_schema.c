/*
 * The schema of built-in types: what the recorded text says, what is pruned, and which values are
 * refused. Messages are kube-apiserver 1.37.1's.
 */
#include "document/schema.h"

#include <stdio.h>
#include <string.h>

#include "apiserver/types.h"
#include "unit/allocation.h"
#include "unit/test.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

static struct kinf__schema *schema;

static struct cJSON *parse(const char *json)
{
    struct cJSON *tree;

    assert_int_equal(kinf__doc_parse(kinf_str_from(json), &tree, NULL), 0);
    return tree;
}

static const struct kinf__schema_node *find(const char *group, const char *version,
                                            const char *kind)
{
    const struct kinf__schema_node *node = kinf__schema_find(schema, group, version, kind);

    assert_non_null(node);
    return node;
}

/* By names, "" for an element of a list or a map. */
static const struct kinf__schema_node *walk(const char *const *names)
{
    const struct kinf__schema_node *node = find("", "v1", "Pod");

    for (; *names != NULL; names++) {
        node = **names == '\0' ? node->element : kinf__schema_member(node, *names);
        assert_non_null(node);
    }
    return node;
}
#define WALK(...) walk((const char *const[]){ __VA_ARGS__, NULL })

static void every_built_in_kind_has_a_schema(void **state)
{
    (void)state;
    assert_true(kinf__n_builtins > 50);
    for (size_t i = 0; i < kinf__n_builtins; i++) {
        const struct kinf__builtin *type = &kinf__builtins[i];
        const struct kinf__schema_node *node = find(type->group, type->version, type->kind);

        assert_int_equal(node->kind, KINF__SCHEMA_OBJECT);
        assert_non_null(kinf__schema_member(node, "kind"));
        assert_non_null(kinf__schema_member(node, "apiVersion"));
        assert_non_null(kinf__schema_member(node, "metadata"));
    }
    find("", "v1", "DeleteOptions");
    find("policy", "v1", "Eviction");
    find("autoscaling", "v1", "Scale");
    find("authentication.k8s.io", "v1", "TokenRequest");
    assert_null(kinf__schema_find(schema, "apps", "v1", "Pod"));
    assert_null(kinf__schema_find(schema, "", "v2", "Pod"));
}

/* Fields are sorted, and every node that can be reached is whole; types refer to themselves. */
static size_t check_node(const struct kinf__schema_node *node, unsigned depth)
{
    size_t n = 1;

    assert_non_null(node);
    assert_non_null(node->name);
    assert_null(node->rules);
    if (node->kind == KINF__SCHEMA_LIST || node->kind == KINF__SCHEMA_MAP)
        return n + check_node(node->element, depth);
    assert_non_null(node->go);
    for (size_t i = 0; depth < 6 && i < node->n_fields; i++) {
        if (i != 0)
            assert_true(strcmp(node->fields[i - 1].name, node->fields[i].name) < 0);
        n += check_node(node->fields[i].node, depth + 1);
    }
    return n;
}

static void the_recorded_text_is_whole(void **state)
{
    size_t n = 0;

    (void)state;
    for (size_t i = 0; i < kinf__n_builtins; i++) {
        const struct kinf__builtin *type = &kinf__builtins[i];

        n += check_node(find(type->group, type->version, type->kind), 0);
    }
    assert_true(n > 10000);
}

static void words_are_found_in_lists(void **state)
{
    (void)state;
    assert_true(kinf__has_word("a,bc,d", "a"));
    assert_true(kinf__has_word("a,bc,d", "bc"));
    assert_true(kinf__has_word("a,bc,d", "d"));
    assert_false(kinf__has_word("a,bc,d", "b"));
    assert_false(kinf__has_word("a,bc,d", "c"));
    assert_false(kinf__has_word("a,bc,d", ""));
    assert_false(kinf__has_word("", "a"));
    assert_false(kinf__has_word("ab", "a"));
}

static void values_have_their_kinds(void **state)
{
    static const char *const container[] = { "spec", "containers", "", NULL };

    (void)state;
    assert_string_equal(walk(container)->name, "io.k8s.api.core.v1.Container");
    assert_string_equal(walk(container)->go, "v1.Container");
    assert_int_equal(WALK("metadata", "creationTimestamp")->kind, KINF__SCHEMA_TIME);
    assert_int_equal(WALK("metadata", "labels")->kind, KINF__SCHEMA_MAP);
    assert_int_equal(WALK("metadata", "managedFields", "", "fieldsV1")->kind, KINF__SCHEMA_ANY);
    assert_int_equal(WALK("spec", "terminationGracePeriodSeconds")->kind, KINF__SCHEMA_INTEGER);
    assert_string_equal(WALK("spec", "terminationGracePeriodSeconds")->name, "int64");
    assert_int_equal(WALK("spec", "hostNetwork")->kind, KINF__SCHEMA_BOOLEAN);
    assert_int_equal(WALK("spec", "containers", "", "resources", "limits", "cpu")->kind,
                     KINF__SCHEMA_QUANTITY);
    assert_int_equal(WALK("spec", "containers", "", "livenessProbe", "httpGet", "port")->kind,
                     KINF__SCHEMA_INT_OR_STRING);
    assert_int_equal(kinf__schema_member(find("", "v1", "Secret"), "data")->element->kind,
                     KINF__SCHEMA_BYTES);
    assert_int_equal(kinf__schema_member(find("apps", "v1", "ControllerRevision"), "data")->kind,
                     KINF__SCHEMA_ANY);
    assert_null(kinf__schema_member(walk(container), "nothing"));
    assert_null(kinf__schema_member(NULL, "spec"));
}

/* Server-side apply has other keys than strategic merge. */
static void lists_have_their_keys(void **state)
{
    const struct kinf__schema_node *ports = WALK("spec", "containers", "", "ports");
    const struct kinf__schema_node *deployment, *strategy, *type;

    (void)state;
    assert_int_equal(ports->list, KINF__LIST_MAP);
    assert_string_equal(ports->keys[0], "containerPort");
    assert_string_equal(ports->keys[1], "protocol");
    assert_null(ports->keys[2]);
    assert_string_equal(ports->merge_key, "containerPort");
    assert_int_equal(WALK("spec", "containers", "", "args")->list, KINF__LIST_ATOMIC);
    assert_null(WALK("spec", "containers", "", "args")->merge_key);
    assert_int_equal(WALK("metadata", "finalizers")->list, KINF__LIST_SET);
    assert_string_equal(WALK("metadata", "finalizers")->merge_key, "");
    assert_string_equal(WALK("spec", "volumes")->merge_key, "name");
    assert_true(WALK("spec", "volumes")->retains_keys);
    assert_true(WALK("spec", "nodeSelector")->is_atomic);
    assert_false(WALK("metadata", "labels")->is_atomic);
    assert_true(
        WALK("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
            ->is_atomic);
    /* The mark is the field's, not the type's. */
    deployment = kinf__schema_member(find("apps", "v1", "Deployment"), "spec");
    strategy = kinf__schema_member(deployment, "strategy");
    type = kinf__schema_type(schema, "io.k8s.api.apps.v1.DeploymentStrategy");
    assert_true(strategy->retains_keys);
    assert_non_null(kinf__schema_member(strategy, "rollingUpdate"));
    assert_false(type->retains_keys);
    assert_true(
        kinf__schema_member(
            kinf__schema_member(find("policy", "v1", "PodDisruptionBudget"), "spec"), "selector")
            ->is_replaced);
}

/* --- pruning --- */

static int note(const char *problem, void *ctx)
{
    struct kinf__buffer *text = ctx;

    return kinf__buffer_printf(text, "%s%s", text->len != 0 ? "; " : "", problem);
}

static void expect_pruned(const struct kinf__schema_node *node, const char *json,
                          const char *problems, const char *rest)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT, printed = KINF__BUFFER_INIT;
    KINF__AUTO_DOC *tree = parse(json);

    assert_int_equal(kinf__schema_prune(node, tree, note, &text), 0);
    assert_non_null(kinf__buffer_cstr(&text));
    assert_string_equal(text.bytes, problems);
    assert_int_equal(kinf__doc_print(tree, &printed), 0);
    assert_non_null(kinf__buffer_cstr(&printed));
    assert_string_equal(printed.bytes, rest);
}

static void unknown_and_doubled_members_go_in_their_order(void **state)
{
    static const struct {
        const char *json, *problems, *rest;
    } rows[] = {
        { "{\"spec\":{\"hostNetwork\":true}}", "", "{\"spec\":{\"hostNetwork\":true}}" },
        { "{\"spec\":{\"x\":1,\"containers\":[{\"name\":\"a\"},{\"y\":{\"z\":1}}]},\"foo\":[]}",
          "unknown field \"spec.x\"; unknown field \"spec.containers[1].y\"; unknown field \"foo\"",
          "{\"spec\":{\"containers\":[{\"name\":\"a\"},{}]}}" },
        { "{\"metadata\":{\"name\":\"a\",\"labels\":{\"a\":\"1\",\"a\":\"2\",\"a\":\"3\"},\"name\":"
          "\"b\"}}",
          "duplicate field \"metadata.labels.a\"; duplicate field \"metadata.name\"",
          "{\"metadata\":{\"labels\":{\"a\":\"3\"},\"name\":\"b\"}}" },
        { "{\"spec\":{\"zork\":{\"a\":1,\"a\":1},\"zork\":1,\"Containers\":[]}}",
          "unknown field \"spec.zork\"; unknown field \"spec.Containers\"", "{\"spec\":{}}" },
        /* What is within raw values is nobody's business, but stands there once. */
        { "{\"metadata\":{\"managedFields\":[{\"fieldsV1\":{\"f:x\":{\"a\":1,\"a\":2}}}]}}", "",
          "{\"metadata\":{\"managedFields\":[{\"fieldsV1\":{\"f:x\":{\"a\":2}}}]}}" },
        { "{\"spec\":{\"nodeName\":null,\"containers\":null},\"status\":null}", "",
          "{\"spec\":{}}" },
        { "{\"spec\":[{\"x\":1}],\"metadata\":\"x\"}", "",
          "{\"spec\":[{\"x\":1}],\"metadata\":\"x\"}" },
        { "{\"metadata\":{\"labels\":{\"a\":\"1\",\"b\":\"1\",\"c\":\"1\",\"d\":\"1\",\"e\":\"1\","
          "\"f\":\"1\",\"g\":\"1\",\"h\":\"1\",\"i\":\"1\",\"d\":\"2\"}}}",
          "duplicate field \"metadata.labels.d\"",
          "{\"metadata\":{\"labels\":{\"a\":\"1\",\"b\":\"1\",\"c\":\"1\",\"e\":\"1\",\"f\":\"1\","
          "\"g\":\"1\",\"h\":\"1\",\"i\":\"1\",\"d\":\"2\"}}}" },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++)
        expect_pruned(find("", "v1", "Pod"), rows[i].json, rows[i].problems, rows[i].rest);
    expect_pruned(NULL, "{\"a\":{\"b\":1,\"b\":2},\"c\":null}", "", "{\"a\":{\"b\":2},\"c\":null}");
}

static int refuse(const char *problem, void *ctx)
{
    (void)problem;
    (*(int *)ctx)++;
    return KINF_ERR_LIMIT;
}

static void who_is_told_can_end_it(void **state)
{
    KINF__AUTO_DOC *tree = parse("{\"x\":1,\"y\":1}");
    int n = 0;

    (void)state;
    assert_int_equal(kinf__schema_prune(find("", "v1", "Pod"), tree, refuse, &n), KINF_ERR_LIMIT);
    assert_int_equal(n, 1);
}

/* --- types of values --- */

static const struct {
    const char *group, *kind, *json;
    const char *message; /* behind "cannot be handled as a KIND: "; NULL: it is taken */
} checks[] = {
#define UNMARSHAL(what) "json: cannot unmarshal " what
#define REGEX                                                                                      \
    "quantities must match the regular expression "                                                \
    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    { "apps", "Deployment", "{\"spec\":{\"replicas\":3}}", NULL },
    { "apps", "Deployment", "{\"spec\":{\"replicas\":null}}", NULL },
    { "apps", "Deployment", "{\"foo\":[],\"spec\":{\"foo\":1}}", NULL },
    { "apps", "Deployment", "{\"spec\":{\"replicas\":\"3\",\"paused\":5}}",
      UNMARSHAL("string into Go struct field DeploymentSpec.spec.replicas of type int32") },
    { "apps", "Deployment", "{\"spec\":{\"paused\":5,\"replicas\":\"3\"}}",
      UNMARSHAL("number into Go struct field DeploymentSpec.spec.paused of type bool") },
    { "apps", "Deployment", "{\"spec\":{\"replicas\":3.5}}",
      UNMARSHAL("number 3.5 into Go struct field DeploymentSpec.spec.replicas of type int32") },
    { "apps", "Deployment", "{\"spec\":{\"replicas\":3000000000}}",
      UNMARSHAL(
          "number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32") },
    { "apps", "Deployment", "{\"spec\":{\"replicas\":1e1}}",
      UNMARSHAL("number 1e1 into Go struct field DeploymentSpec.spec.replicas of type int32") },
    { "apps", "Deployment", "{\"spec\":{\"replicas\":true}}",
      UNMARSHAL("bool into Go struct field DeploymentSpec.spec.replicas of type int32") },
    { "apps", "Deployment", "{\"spec\":\"x\"}",
      UNMARSHAL("string into Go struct field Deployment.spec of type v1.DeploymentSpec") },
    { "apps", "Deployment", "{\"spec\":[]}",
      UNMARSHAL("array into Go struct field Deployment.spec of type v1.DeploymentSpec") },
    { "apps", "Deployment", "{\"metadata\":{\"labels\":{\"a.b/c\":5}}}",
      UNMARSHAL("number into Go struct field ObjectMeta.metadata.labels of type string") },
    { "apps", "Deployment", "{\"metadata\":{\"labels\":\"x\"}}",
      UNMARSHAL(
          "string into Go struct field ObjectMeta.metadata.labels of type map[string]string") },
    { "apps", "Deployment", "{\"metadata\":{\"ownerReferences\":[{\"controller\":\"x\"}]}}",
      UNMARSHAL("string into Go struct field OwnerReference.metadata.ownerReferences.controller "
                "of type bool") },
    { "apps", "Deployment", "{\"metadata\":{\"creationTimestamp\":4}}",
      UNMARSHAL("number into Go struct field ObjectMeta.metadata.creationTimestamp of type "
                "string") },
    { "apps", "Deployment", "{\"spec\":{\"template\":{\"spec\":{\"containers\":\"x\"}}}}",
      UNMARSHAL("string into Go struct field PodSpec.spec.template.spec.containers of type "
                "[]v1.Container") },
    { "apps", "Deployment", "{\"spec\":{\"template\":{\"spec\":{\"containers\":[null,\"x\"]}}}}",
      UNMARSHAL("string into Go struct field PodSpec.spec.template.spec.containers of type "
                "v1.Container") },
    { "", "Pod", "{\"spec\":{\"containers\":[{\"args\":[5]}]}}",
      UNMARSHAL("number into Go struct field Container.spec.containers.args of type string") },
    { "", "Pod", "{\"spec\":{\"containers\":[{\"args\":\"x\"}]}}",
      UNMARSHAL("string into Go struct field Container.spec.containers.args of type []string") },
    { "", "Pod", "{\"spec\":{\"containers\":[{\"imagePullPolicy\":5}]}}",
      UNMARSHAL("number into Go struct field Container.spec.containers.imagePullPolicy of type "
                "v1.PullPolicy") },
    { "", "Pod", "{\"spec\":{\"containers\":[{\"env\":[{\"value\":true}]}]}}",
      UNMARSHAL("bool into Go struct field EnvVar.spec.containers.env.value of type string") },
    { "", "Pod", "{\"spec\":{\"containers\":[{\"livenessProbe\":{\"httpGet\":{\"port\":{}}}}]}}",
      UNMARSHAL("object into Go struct field HTTPGetAction.spec.containers.livenessProbe."
                "ProbeHandler.httpGet.port of type int32") },
    { "", "Pod", "{\"spec\":{\"containers\":[{\"livenessProbe\":{\"httpGet\":{\"port\":1.5}}}]}}",
      UNMARSHAL("number 1.5 into Go struct field HTTPGetAction.spec.containers.livenessProbe."
                "ProbeHandler.httpGet.port of type int32") },
    { "", "Pod", "{\"spec\":{\"containers\":[{\"livenessProbe\":{\"httpGet\":5}}]}}",
      UNMARSHAL("number into Go struct field Probe.spec.containers.livenessProbe.ProbeHandler."
                "httpGet of type v1.HTTPGetAction") },
    { "", "Pod", "{\"spec\":{\"containers\":[{\"resources\":{\"limits\":[]}}]}}",
      UNMARSHAL("array into Go struct field ResourceRequirements.spec.containers.resources.limits "
                "of type v1.ResourceList") },
    { "", "Pod", "{\"spec\":{\"terminationGracePeriodSeconds\":9223372036854775808}}",
      UNMARSHAL("number 9223372036854775808 into Go struct field "
                "PodSpec.spec.terminationGracePeriodSeconds of type int64") },
    { "", "Pod", "{\"spec\":{\"terminationGracePeriodSeconds\":9223372036854775807}}", NULL },
    { "", "Service", "{\"spec\":{\"ports\":[{\"targetPort\":99999999999}]}}",
      UNMARSHAL("number 99999999999 into Go struct field ServicePort.spec.ports.targetPort of type "
                "int32") },
    { "", "Service", "{\"spec\":{\"ports\":[{\"targetPort\":\"x\"},{\"targetPort\":8}]}}", NULL },
    { "", "Secret", "{\"data\":\"x\"}",
      UNMARSHAL("string into Go struct field Secret.data of type map[string][]uint8") },
    { "", "Secret", "{\"data\":{\"x\":5}}",
      UNMARSHAL("number into Go struct field Secret.data of type []uint8") },
    { "", "Secret", "5", UNMARSHAL("number into Go value of type v1.Secret") },
    { "apps", "ControllerRevision", "{\"data\":\"x\"}", NULL },
    { "apps", "ControllerRevision", "{\"data\":{\"x\":[5]}}", NULL },
#define CPU(value) "{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"cpu\":" value "}}}]}}"
#define SUFFIX     "unable to parse quantity's suffix"
    { "", "Pod", CPU("\"1\""), NULL },
    { "", "Pod", CPU("\"1.5\""), NULL },
    { "", "Pod", CPU("\".5\""), NULL },
    { "", "Pod", CPU("\"5.\""), NULL },
    { "", "Pod", CPU("\"1e3\""), NULL },
    { "", "Pod", CPU("\"1E-3\""), NULL },
    { "", "Pod", CPU("\"1Ki\""), NULL },
    { "", "Pod", CPU("\"-1m\""), NULL },
    { "", "Pod", CPU("\"1E\""), NULL },
    { "", "Pod", CPU("1.5"), NULL },
    { "", "Pod", CPU("\"1K\""), SUFFIX },
    { "", "Pod", CPU("\"1e\""), SUFFIX },
    { "", "Pod", CPU("\"1Ee\""), SUFFIX },
    { "", "Pod", CPU("\"1Mi5\""), SUFFIX },
    { "", "Pod", CPU("\"abc\""), REGEX },
    { "", "Pod", CPU("\"\""), REGEX },
    { "", "Pod", CPU("\"1 Gi\""), REGEX },
    { "", "Pod", CPU("\"0x1\""), REGEX },
    { "", "Pod", CPU("true"), REGEX },
    { "", "Pod", CPU("{}"), REGEX },
#define BASE64(text) "{\"data\":{\"x\":\"" text "\"}}"
#define ILLEGAL      "illegal base64 data at input byte "
    { "", "Secret", BASE64("YQ=="), NULL },
    { "", "Secret", BASE64("YQ==\\n"), NULL },
    { "", "Secret", BASE64(""), NULL },
    { "", "Secret", BASE64("x"), ILLEGAL "0" },
    { "", "Secret", BASE64("YQ"), ILLEGAL "0" },
    { "", "Secret", BASE64("="), ILLEGAL "0" },
    { "", "Secret", BASE64("Y Q=="), ILLEGAL "1" },
    { "", "Secret", BASE64("YQ="), ILLEGAL "3" },
    { "", "Secret", BASE64("YQ=a"), ILLEGAL "2" },
    { "", "Secret", BASE64("YWJj!"), ILLEGAL "4" },
    { "", "Secret", BASE64("YWJjZ==="), ILLEGAL "5" },
#define CREATED(text) "{\"metadata\":{\"creationTimestamp\":\"" text "\"}}"
#define PARSING(text) "parsing time \"" text "\""
#define AS            " as \"2006-01-02T15:04:05Z07:00\": cannot parse "
    { "", "Secret", CREATED("2020-01-01T00:00:00Z"), NULL },
    { "", "Secret", CREATED("2020-02-29T23:59:59.123+02:00"), NULL },
    { "", "Secret", CREATED("x"), PARSING("x") AS "\"x\" as \"2006\"" },
    { "", "Secret", CREATED(""), PARSING("") AS "\"\" as \"2006\"" },
    { "", "Secret", CREATED("2020-01-01"), PARSING("2020-01-01") AS "\"\" as \"T\"" },
    { "", "Secret", CREATED("2020-1-01T00:00:00Z"),
      PARSING("2020-1-01T00:00:00Z") AS "\"1-01T00:00:00Z\" as \"01\"" },
    { "", "Secret", CREATED("2020-01-01T00:00:00"),
      PARSING("2020-01-01T00:00:00") AS "\"\" as \"Z07:00\"" },
    { "", "Secret", CREATED("2020-13-01T00:00:00Z"),
      PARSING("2020-13-01T00:00:00Z") ": month out of range" },
    { "", "Secret", CREATED("2020-02-30T00:00:00Z"),
      PARSING("2020-02-30T00:00:00Z") ": day out of range" },
    { "", "Secret", CREATED("2020-01-01T25:00:00Z"),
      PARSING("2020-01-01T25:00:00Z") ": hour out of range" },
    { "", "Secret", CREATED("2020-01-01T00:00:00Zx"),
      PARSING("2020-01-01T00:00:00Zx") ": extra text: \"x\"" },
    { "coordination.k8s.io", "Lease", "{\"spec\":{\"renewTime\":\"2020-01-01T00:00:00.000000Z\"}}",
      NULL },
    { "coordination.k8s.io", "Lease", "{\"spec\":{\"renewTime\":\"x\"}}",
      PARSING("x") " as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"x\" as \"2006\"" },
    { "coordination.k8s.io", "Lease", "{\"spec\":{\"renewTime\":4}}",
      UNMARSHAL("number into Go struct field LeaseSpec.spec.renewTime of type string") },
};

static void the_first_wrong_value_is_refused_as_go_says_it(void **state)
{
    struct kinf__refusal refusal;
    char expected[512];

    (void)state;
    for (size_t i = 0; i < N(checks); i++) {
        KINF__AUTO_DOC *tree = parse(checks[i].json);
        const char *kind = checks[i].kind;
        int failed =
            kinf__schema_check_types(find(checks[i].group, "v1", kind), tree, kind, "v1", &refusal);

        if (checks[i].message == NULL) {
            if (failed < 0)
                fail_msg("%s: %s", checks[i].json, refusal.message);
            continue;
        }
        assert_int_equal(failed, KINF_ERR_INVALID);
        snprintf(expected, sizeof expected, "%s in version \"v1\" cannot be handled as a %s: %s",
                 kind, kind, checks[i].message);
        assert_string_equal(refusal.message, expected);
        assert_int_equal(refusal.code, 400);
        assert_string_equal(refusal.reason, "BadRequest");
    }
}

/* --- memory --- */

static void a_lack_of_memory_while_reading_is_told(void **state)
{
    bool has_failed = true;

    (void)state;
    /* Every allocation of the first ones, then some: there are two thousand alike. */
    for (size_t n = 1; has_failed; n += n < 50 ? 1 : 41) {
        struct kinf__schema *made = NULL;
        int failed;

        test_fail_allocation(n);
        failed = kinf__schema_new(&made);
        has_failed = test_allocation_failed();
        assert_int_equal(failed, has_failed ? KINF_ERR_NO_MEMORY : 0);
        kinf__schema_free(made);
    }
}

static void a_lack_of_memory_while_pruning_is_told(void **state)
{
    bool has_failed = true;

    (void)state;
    for (size_t n = 1; has_failed; n++) {
        KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
        KINF__AUTO_DOC *tree =
            parse("{\"x\":1,\"spec\":{\"a\":1,\"containers\":[{\"name\":\"a\",\"name\":\"b\"}]},"
                  "\"metadata\":{\"labels\":{\"a\":\"\",\"b\":\"\",\"c\":\"\",\"d\":\"\",\"e\":"
                  "\"\",\"f\":\"\",\"g\":\"\",\"h\":\"\",\"i\":\"\",\"i\":\"\"}}}");
        int failed;

        test_fail_allocation(n);
        failed = kinf__schema_prune(find("", "v1", "Pod"), tree, note, &text);
        has_failed = test_allocation_failed();
        assert_int_equal(failed, has_failed ? KINF_ERR_NO_MEMORY : 0);
    }
}

static void a_lack_of_memory_while_checking_is_told(void **state)
{
    bool has_failed = true;

    (void)state;
    for (size_t n = 1; has_failed; n++) {
        KINF__AUTO_DOC *tree = parse("{\"spec\":{\"containers\":[{\"args\":[5]}]}}");
        struct kinf__refusal refusal;
        int failed;

        test_fail_allocation(n);
        failed = kinf__schema_check_types(find("", "v1", "Pod"), tree, "Pod", "v1", &refusal);
        has_failed = test_allocation_failed();
        assert_int_equal(failed, has_failed ? KINF_ERR_NO_MEMORY : KINF_ERR_INVALID);
    }
}

static int set_up(void **state)
{
    (void)state;
    return kinf__schema_new(&schema);
}

static int tear_down(void **state)
{
    (void)state;
    kinf__schema_free(schema);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_built_in_kind_has_a_schema),
        cmocka_unit_test(the_recorded_text_is_whole),
        cmocka_unit_test(words_are_found_in_lists),
        cmocka_unit_test(values_have_their_kinds),
        cmocka_unit_test(lists_have_their_keys),
        cmocka_unit_test(unknown_and_doubled_members_go_in_their_order),
        cmocka_unit_test(who_is_told_can_end_it),
        cmocka_unit_test(the_first_wrong_value_is_refused_as_go_says_it),
        cmocka_unit_test(a_lack_of_memory_while_reading_is_told),
        cmocka_unit_test(a_lack_of_memory_while_pruning_is_told),
        cmocka_unit_test(a_lack_of_memory_while_checking_is_told),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
