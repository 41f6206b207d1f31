/*
 * What happens to an object here happens as the server's handlers do it: a patch is made into a
 * whole object, status is taken out of what is applied to everything else, and the other way round.
 */
#include "unit/managed_fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "document/field_set.h"
#include "unit/test.h"

/* --- types --- */

/* clang-format off */
#define N(table) (sizeof(table) / sizeof((table)[0]))
#define NODE static const struct kinf__schema_node
#define FIELDS static const struct kinf__schema_field
#define OBJECT(node_name, ...) \
    FIELDS node_name##_fields[] = { __VA_ARGS__ }; \
    NODE node_name = { .kind = KINF__SCHEMA_OBJECT, .fields = node_name##_fields, \
                       .n_fields = N(node_name##_fields) }
#define F(field_name, of) { .name = field_name, .node = &(of) }
#define DEFAULT(field_name, of, value) { .name = field_name, .node = &(of), .fallback = &(value) }
#define STRUCT(field_name, of) DEFAULT(field_name, of, empty)
#define REQUIRED(field_name, of) { .name = field_name, .node = &(of), .is_required = true }
/* Of a definition. */
#define CUSTOM(node_name, ...) \
    FIELDS node_name##_fields[] = { __VA_ARGS__ }; \
    NODE node_name = { .kind = KINF__SCHEMA_OBJECT, .fields = node_name##_fields, \
                       .n_fields = N(node_name##_fields), .rules = &rules }
#define LIST_MAP(node_name, of, ...) \
    static const char *const node_name##_keys[] = { __VA_ARGS__, NULL }; \
    NODE node_name = { .kind = KINF__SCHEMA_LIST, .element = &(of), .list = KINF__LIST_MAP, \
                       .keys = node_name##_keys }

static const struct cJSON rules = { .type = cJSON_Object };
static const struct cJSON empty = { .type = cJSON_Object };
static char tcp_text[] = "TCP", no_text[] = "";
static const struct cJSON tcp = { .type = cJSON_String, .valuestring = tcp_text };
static const struct cJSON no_name = { .type = cJSON_String, .valuestring = no_text };

NODE string = { .kind = KINF__SCHEMA_STRING };
NODE integer = { .kind = KINF__SCHEMA_INTEGER };
NODE boolean = { .kind = KINF__SCHEMA_BOOLEAN };
NODE port_or_name = { .kind = KINF__SCHEMA_INT_OR_STRING };
NODE time_node = { .kind = KINF__SCHEMA_TIME };
NODE any = { .kind = KINF__SCHEMA_ANY };
NODE strings = { .kind = KINF__SCHEMA_LIST, .element = &string };
NODE string_set = { .kind = KINF__SCHEMA_LIST, .element = &string, .list = KINF__LIST_SET };
NODE integer_set = { .kind = KINF__SCHEMA_LIST, .element = &integer, .list = KINF__LIST_SET };
NODE string_map = { .kind = KINF__SCHEMA_MAP, .element = &string };
NODE atomic_map = { .kind = KINF__SCHEMA_MAP, .element = &string, .is_atomic = true };
NODE anys = { .kind = KINF__SCHEMA_LIST, .element = &any };

OBJECT(metadata,
    F("annotations", string_map), F("creationTimestamp", time_node),
    F("finalizers", string_set), F("generation", integer), F("labels", string_map),
    F("managedFields", anys), F("name", string), F("namespace", string),
    F("resourceVersion", string), F("uid", string));

OBJECT(config_map,
    F("apiVersion", string), F("data", string_map), F("kind", string),
    STRUCT("metadata", metadata));

OBJECT(service_port,
    F("name", string), REQUIRED("port", integer), DEFAULT("protocol", string, tcp),
    F("targetPort", port_or_name));
LIST_MAP(service_ports, service_port, "port", "protocol");
OBJECT(service_spec,
    F("clusterIP", string), F("internalTrafficPolicy", string), F("ports", service_ports),
    F("selector", atomic_map), F("sessionAffinity", string), F("type", string));
OBJECT(service,
    F("apiVersion", string), F("kind", string), STRUCT("metadata", metadata),
    STRUCT("spec", service_spec));

OBJECT(env_var, REQUIRED("name", string), F("value", string));
LIST_MAP(env_vars, env_var, "name");
OBJECT(container_port,
    REQUIRED("containerPort", integer), F("name", string), DEFAULT("protocol", string, tcp));
LIST_MAP(container_ports, container_port, "containerPort", "protocol");
OBJECT(resources, F("limits", string_map), F("requests", string_map));
OBJECT(container,
    F("env", env_vars), F("image", string), F("imagePullPolicy", string),
    DEFAULT("name", string, no_name), F("ports", container_ports),
    STRUCT("resources", resources), F("terminationMessagePath", string),
    F("terminationMessagePolicy", string));
LIST_MAP(containers, container, "name");
OBJECT(security_context, F("runAsUser", integer));
OBJECT(pod_spec,
    REQUIRED("containers", containers), F("dnsPolicy", string),
    F("restartPolicy", string), F("schedulerName", string),
    STRUCT("securityContext", security_context), F("terminationGracePeriodSeconds", integer));
OBJECT(pod_template, STRUCT("metadata", metadata), STRUCT("spec", pod_spec));
OBJECT(rolling_update, F("maxSurge", port_or_name), F("maxUnavailable", port_or_name));
OBJECT(strategy, F("rollingUpdate", rolling_update), F("type", string));
NODE label_selector = { .kind = KINF__SCHEMA_OBJECT, .is_atomic = true };
OBJECT(deployment_spec,
    F("progressDeadlineSeconds", integer), F("replicas", integer),
    F("revisionHistoryLimit", integer), REQUIRED("selector", label_selector),
    STRUCT("strategy", strategy), STRUCT("template", pod_template));
OBJECT(deployment_status, F("observedGeneration", integer), F("replicas", integer));
OBJECT(deployment,
    F("apiVersion", string), F("kind", string), STRUCT("metadata", metadata),
    STRUCT("spec", deployment_spec), STRUCT("status", deployment_status));

CUSTOM(widget_env_var, REQUIRED("name", string), F("value", string));
LIST_MAP(widget_env, widget_env_var, "name");
CUSTOM(widget_port,
    F("name", string), REQUIRED("port", integer), DEFAULT("protocol", string, tcp));
LIST_MAP(widget_ports, widget_port, "protocol", "port");
CUSTOM(widget_container,
    F("args", strings), F("env", widget_env), F("image", string),
    REQUIRED("name", string), F("ports", widget_ports));
LIST_MAP(widget_containers, widget_container, "name");
CUSTOM(widget_template, F("color", string), F("size", integer));
NODE widget_free = { .kind = KINF__SCHEMA_OBJECT, .preserves_unknown = true, .rules = &rules };
CUSTOM(widget_spec,
    F("containers", widget_containers), F("free", widget_free), F("labels", string_map),
    F("nothing", string), F("numbers", integer_set), F("order", strings),
    F("paused", boolean), F("replicas", integer), F("selector", atomic_map),
    F("tags", string_set), F("template", widget_template));
CUSTOM(widget_condition, F("status", string), REQUIRED("type", string));
LIST_MAP(widget_conditions, widget_condition, "type");
CUSTOM(widget_status, F("conditions", widget_conditions), F("phase", string));
CUSTOM(widget,
    F("apiVersion", string), F("kind", string), STRUCT("metadata", metadata),
    F("spec", widget_spec), F("status", widget_status));

static const struct {
    const char *api_version;
    const char *kind;
    const struct kinf__schema_node *node;
} kinds[] = {
    [TEST_CONFIG_MAP] = { "v1", "ConfigMap", &config_map },
    [TEST_SERVICE] = { "v1", "Service", &service },
    [TEST_DEPLOYMENT] = { "apps/v1", "Deployment", &deployment },
    [TEST_WIDGET] = { "example.org/v1", "Widget", &widget },
};
/* clang-format on */

const struct kinf__schema_node *test_kind_schema(enum test_kind kind)
{
    return kinds[kind].node;
}

/* --- texts --- */

struct cJSON *test_tree(const char *text)
{
    KINF__AUTO_FREE char *json = strdup(text);
    struct cJSON *tree;

    assert_non_null(json);
    for (char *c = json; *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
    if (kinf__doc_parse(kinf_str_from(json), &tree, NULL) < 0)
        fail_msg("no JSON: %s", json);
    return tree;
}

static void *allocate(size_t size)
{
    return malloc(size);
}

void test_fail_trees(bool fails)
{
    struct cJSON_Hooks hooks = { allocate, free };

    cJSON_InitHooks(fails ? &hooks : NULL);
}

static void append(struct kinf__buffer *out, const char *text)
{
    assert_int_equal(kinf__buffer_append_str(out, kinf_str_from(text)), 0);
}

/* [name=c] of k:{"name":"c"}, [=x] of v:"x". */
static void print_step(struct kinf__buffer *out, const char *step)
{
    char text[256];
    size_t len = 0;

    if (strcmp(step, ".") == 0 || step[0] == 'f') {
        append(out, step[0] == 'f' ? step + 2 : step);
        return;
    }
    for (const char *c = step + 2; *c != '\0' && len < sizeof text - 1; c++) {
        if (strchr("\"{}", *c) == NULL)
            text[len++] = (char)(*c == ':' ? '=' : *c);
    }
    text[len] = '\0';
    append(out, step[0] == 'v' ? "[=" : "[");
    append(out, text);
    append(out, "]");
}

static void print_fields(struct kinf__buffer *out, const struct cJSON *fields)
{
    const struct cJSON *field;

    cJSON_ArrayForEach(field, fields)
    {
        if (field != fields->child)
            append(out, " ");
        print_step(out, field->string);
        if (field->child != NULL) {
            append(out, "{");
            print_fields(out, field);
            append(out, "}");
        }
    }
}

static const char *short_time(const char *time)
{
    static char text[16];

    if (strncmp(time, "2026-01-01T00:00:", 17) != 0)
        return *time != '\0' ? time : "-";
    snprintf(text, sizeof text, "%d", atoi(time + 17));
    return text;
}

static void print_entry(struct kinf__buffer *out, const struct cJSON *entry)
{
    const char *subresource = kinf__doc_text(entry, "subresource", NULL);

    assert_int_equal(kinf__buffer_printf(
                         out, "%s %s%s%s %s @%s: ", kinf__doc_text(entry, "manager", NULL),
                         kinf__doc_text(entry, "operation", NULL), *subresource != '\0' ? "/" : "",
                         subresource, kinf__doc_text(entry, "apiVersion", NULL),
                         short_time(kinf__doc_text(entry, "time", NULL))),
                     0);
    assert_string_equal(kinf__doc_text(entry, "fieldsType", NULL), "FieldsV1");
    print_fields(out, kinf__doc_get(entry, "fieldsV1"));
    append(out, "\n");
}

char *test_print_managed(const struct cJSON *object)
{
    const struct cJSON *list = kinf__doc_find(object, "metadata", "managedFields", NULL), *entry;
    struct kinf__buffer out = KINF__BUFFER_INIT;

    append(&out, "");
    cJSON_ArrayForEach(entry, list)
    {
        print_entry(&out, entry);
    }
    assert_non_null(kinf__buffer_cstr(&out));
    return out.bytes;
}

/* --- steps --- */

struct life {
    enum test_kind kind;
    const char *name;
    struct cJSON *object; /* NULL: there is none */
};

static struct cJSON *copy_of(const struct cJSON *tree)
{
    struct cJSON *copy = kinf__doc_dup(tree);

    assert_non_null(copy);
    return copy;
}

static void set(struct cJSON *object, const char *name, struct cJSON *take_value)
{
    assert_int_equal(kinf__doc_set(object, name, take_value), 0);
}

static struct cJSON *whole_body(const struct life *life, const char *text)
{
    struct cJSON *body = test_tree(text), *inner = kinf__doc_object(body, "metadata");

    set(body, "apiVersion", cJSON_CreateString(kinds[life->kind].api_version));
    set(body, "kind", cJSON_CreateString(kinds[life->kind].kind));
    set(inner, "name", cJSON_CreateString(life->name));
    return body;
}

static void merge_patch(struct cJSON *to, const struct cJSON *patch)
{
    const struct cJSON *member;

    cJSON_ArrayForEach(member, patch)
    {
        if (cJSON_IsNull(member))
            kinf__doc_remove(to, member->string);
        else if (cJSON_IsObject(member))
            merge_patch(kinf__doc_object(to, member->string), member);
        else
            set(to, member->string, copy_of(member));
    }
}

/* status is nobody's business but that of its subresource, and the other way round. */
static void keep_to_subresource(struct cJSON *config, const char *subresource)
{
    kinf__doc_remove(config, strcmp(subresource, "status") == 0 ? "spec" : "status");
}

static int apply(struct life *life, const struct test_step *step,
                 const struct kinf__manager *manager, struct kinf__refusal *refusal)
{
    KINF__AUTO_DOC *config = whole_body(life, step->body);
    struct cJSON *object = NULL;
    int failed;

    keep_to_subresource(config, step->subresource);
    failed = kinf__managed_apply(kinds[life->kind].node, life->object, config, manager,
                                 step->op == FORCE, &object, refusal);
    if (failed == 0) {
        cJSON_Delete(life->object);
        life->object = object;
    }
    return failed;
}

static void update(struct life *life, const struct test_step *step,
                   const struct kinf__manager *manager)
{
    struct cJSON *object;

    if (step->op == MERGE) {
        KINF__AUTO_DOC *patch = test_tree(step->body);

        object = copy_of(life->object);
        merge_patch(object, patch);
    } else {
        object = whole_body(life, step->body);
    }
    assert_int_equal(
        kinf__managed_update(kinds[life->kind].node, life->object, object, manager, false), 0);
    cJSON_Delete(life->object);
    life->object = object;
}

static void expect_refusal(const struct test_step *step, const struct kinf__refusal *refusal,
                           size_t at)
{
    char text[KINF__REFUSAL_MESSAGE_SIZE + 16];

    snprintf(text, sizeof text, "%d %s", refusal->code, refusal->message);
    for (char *c = text; *c != '\0'; c++)
        *c = *c == '"' ? '\'' : *c;
    if (strcmp(text, step->expected) != 0)
        fail_msg("step %zu: refused with\n%s\nand not\n%s", at, text, step->expected);
}

static void expect_object(const struct life *life, const char *expected, size_t at)
{
    KINF__AUTO_DOC *object = copy_of(life->object);
    KINF__AUTO_DOC *other = whole_body(life, expected);
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    kinf__doc_remove(kinf__doc_get(object, "metadata"), "managedFields");
    assert_int_equal(kinf__doc_print(object, &text), 0);
    if (!kinf__doc_equal(object, other))
        fail_msg("step %zu: there is %s and not %s", at, kinf__buffer_cstr(&text), expected);
}

static void do_step(struct life *life, const struct test_step *step, size_t at)
{
    char time[32];
    struct kinf__manager manager = { step->manager, kinds[life->kind].api_version,
                                     step->subresource, time };
    struct kinf__refusal refusal = { 0 };
    KINF__AUTO_FREE char *managed = NULL;

    snprintf(time, sizeof time, "2026-01-01T00:00:%02zuZ", at);
    if (step->op != APPLY && step->op != FORCE) {
        update(life, step, &manager);
    } else if (apply(life, step, &manager, &refusal) < 0) {
        expect_refusal(step, &refusal, at);
        return;
    }
    managed = test_print_managed(life->object);
    if (strcmp(managed, step->expected) != 0)
        fail_msg("step %zu: there is\n%sand not\n%s", at, managed, step->expected);
    if (step->object != NULL)
        expect_object(life, step->object, at);
}

void test_steps(enum test_kind kind, const char *name, const struct test_step *steps,
                size_t n_steps)
{
    struct life life = { kind, name, NULL };

    for (size_t i = 0; i < n_steps; i++)
        do_step(&life, &steps[i], i);
    cJSON_Delete(life.object);
}
