/*
 * Bodies in protobuf. tests/data/protobuf has in kubectl/ what kubectl 1.37.1 sent, and in go/ what
 * tests/cluster/cmd/protocases made: objects as Go encodes them, and the same in Go's JSON.
 */
#include "document/protobuf.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "unit/allocation.h"
#include "unit/patch_fixture.h"
#include "unit/test.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

static struct kinf__schema *schema;

/* --- what is sent --- */

static const struct {
    const char *file;
    const char *json;
} sent[] = {
    { "namespace", "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'ns1'}}" },
    { "configmap", "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'c1'},"
                   "'data':{'a':'b','c':''}}" },
    { "secret", "{'apiVersion':'v1','kind':'Secret','metadata':{'name':'s1'},"
                "'data':{'p':'cQ=='}}" },
    { "deployment",
      "{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'d1','labels':{'app':'d1'}},"
      "'spec':{'replicas':0,'selector':{'matchLabels':{'app':'d1'}},'template':{'metadata':"
      "{'labels':{'app':'d1'}},'spec':{'containers':[{'name':'nginx','image':'nginx',"
      "'ports':[{'containerPort':80}]}]}}}}" },
    { "service",
      "{'apiVersion':'v1','kind':'Service','metadata':{'name':'sv2','labels':{'app':'sv2'}},"
      "'spec':{'ports':[{'name':'80-http','protocol':'TCP','port':80,'targetPort':'http'}],"
      "'selector':{'app':'sv2'},'type':'NodePort'}}" },
    { "job", "{'apiVersion':'batch/v1','kind':'Job','metadata':{'name':'j1'},'spec':{'template':"
             "{'spec':{'containers':[{'name':'j1','image':'busybox','command':['echo','hi']}],"
             "'restartPolicy':'Never'}}}}" },
    { "role", "{'apiVersion':'rbac.authorization.k8s.io/v1','kind':'Role','metadata':"
              "{'name':'r1'},'rules':[{'verbs':['get'],'apiGroups':[''],'resources':['pods']}]}" },
    { "pdb", "{'apiVersion':'policy/v1','kind':'PodDisruptionBudget','metadata':{'name':'p1'},"
             "'spec':{'minAvailable':1,'selector':{'matchLabels':{'app':'x'}}},'status':"
             "{'disruptionsAllowed':0,'currentHealthy':0,'desiredHealthy':0,'expectedPods':0}}" },
    { "quota", "{'apiVersion':'v1','kind':'ResourceQuota','metadata':{'name':'q1'},'spec':"
               "{'hard':{'cpu':'1','memory':'1G','pods':'2'}}}" },
    { "token", "{'apiVersion':'authentication.k8s.io/v1','kind':'TokenRequest','spec':"
               "{'expirationSeconds':3600},'status':{'token':''}}" },
    { "hpa", "{'apiVersion':'autoscaling/v2','kind':'HorizontalPodAutoscaler','metadata':{'name':"
             "'d1'},'spec':{'scaleTargetRef':{'kind':'Deployment','name':'d1','apiVersion':"
             "'apps/v1'},'maxReplicas':3,'metrics':[{'type':'Resource','resource':{'name':'cpu',"
             "'target':{'type':'Utilization','averageUtilization':50}}}]},"
             "'status':{'desiredReplicas':0}}" },
    { "ingress", "{'apiVersion':'networking.k8s.io/v1','kind':'Ingress','metadata':{'name':'i1'},"
                 "'spec':{'rules':[{'host':'foo.com','http':{'paths':[{'path':'/bar','backend':"
                 "{'service':{'name':'sv1','port':{'number':80}}},'pathType':'Exact'}]}}]}}" },
};

static struct cJSON *decode(const char *what, struct kinf_str body)
{
    struct kinf_error err = KINF_ERROR_INIT;
    struct cJSON *tree = NULL;

    if (kinf__protobuf_decode(schema, body, &tree, &err) < 0)
        fail_msg("%s: %s", what, err.message);
    return tree;
}

static void expect_tree(const char *what, const struct cJSON *tree, const struct cJSON *expected)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    assert_int_equal(kinf__doc_print(tree, &text), 0);
    if (!kinf__doc_equal(tree, expected))
        fail_msg("%s is %s", what, kinf__buffer_cstr(&text));
}

static struct kinf_str read_body(const char *folder, const char *file, char **ret_bytes)
{
    char name[512];
    size_t len;

    snprintf(name, sizeof name, "protobuf/%s/%s.pb", folder, file);
    *ret_bytes = test_read_data(name, &len);
    return (struct kinf_str){ *ret_bytes, len };
}

static void bodies_of_kubectl_are_decoded(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(sent); i++) {
        KINF__AUTO_FREE char *bytes = NULL;
        KINF__AUTO_DOC *tree = decode(sent[i].file, read_body("kubectl", sent[i].file, &bytes));
        KINF__AUTO_DOC *expected = test_json(sent[i].json);

        expect_tree(sent[i].file, tree, expected);
    }
}

/* Go's JSON has null for what is not there, and {} for structs that cannot be missing. */
static void drop_empty(struct cJSON *tree)
{
    struct cJSON *next;

    for (struct cJSON *child = tree->child; child != NULL; child = next) {
        next = child->next;
        drop_empty(child);
        if (cJSON_IsObject(tree) &&
            (cJSON_IsNull(child) || (cJSON_IsObject(child) && child->child == NULL)))
            cJSON_Delete(cJSON_DetachItemViaPointer(tree, child));
    }
}

static void expect_as_go(const char *kind)
{
    KINF__AUTO_FREE char *bytes = NULL;
    KINF__AUTO_FREE char *json = NULL;
    KINF__AUTO_DOC *tree = decode(kind, read_body("go", kind, &bytes));
    KINF__AUTO_DOC *expected = NULL;
    char name[512];
    size_t len;

    snprintf(name, sizeof name, "protobuf/go/%s.json", kind);
    json = test_read_data(name, &len);
    assert_int_equal(kinf__doc_parse((struct kinf_str){ json, len }, &expected, NULL), 0);
    drop_empty(tree);
    drop_empty(expected);
    expect_tree(kind, tree, expected);
}

/* The names of files in go/ that end in ".pb", without that. */
static size_t for_each_kind(void (*visit)(const char *kind))
{
    char path[1024];
    size_t n = 0;
    DIR *folder;

    snprintf(path, sizeof path, "%s/protobuf/go", test_data_dir());
    folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char *end = strrchr(entry->d_name, '.');

        if (end == NULL || strcmp(end, ".pb") != 0)
            continue;
        *end = '\0';
        visit(entry->d_name);
        n++;
    }
    closedir(folder);
    return n;
}

static void every_kind_decodes_to_what_go_prints(void **state)
{
    (void)state;
    assert_true(for_each_kind(expect_as_go) >= 33);
}

/* --- bodies by hand --- */

static void put_varint(struct kinf__buffer *out, uint64_t value)
{
    do {
        char byte = (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));

        assert_int_equal(kinf__buffer_append(out, &byte, 1), 0);
        value >>= 7;
    } while (value != 0);
}

static void put_integer(struct kinf__buffer *out, unsigned number, uint64_t value)
{
    put_varint(out, number << 3);
    put_varint(out, value);
}

static void put_bytes(struct kinf__buffer *out, unsigned number, struct kinf_str bytes)
{
    put_varint(out, number << 3 | 2);
    put_varint(out, bytes.len);
    assert_int_equal(kinf__buffer_append_str(out, bytes), 0);
}

static void put_text(struct kinf__buffer *out, unsigned number, const char *text)
{
    put_bytes(out, number, kinf_str_from(text));
}

/* Puts what was written since `begin` into field `number`. */
static void wrap(struct kinf__buffer *out, size_t begin, unsigned number)
{
    KINF__AUTO_BUFFER inner = KINF__BUFFER_INIT;

    assert_int_equal(kinf__buffer_append(&inner, out->bytes + begin, out->len - begin), 0);
    out->len = begin;
    put_bytes(out, number, kinf__buffer_str(&inner));
}

static void put_envelope(struct kinf__buffer *out, const char *api_version, const char *kind,
                         const struct kinf__buffer *message)
{
    assert_int_equal(kinf__buffer_append(out, "k8s\0", 4), 0);
    put_text(out, 1, api_version);
    put_text(out, 2, kind);
    wrap(out, 4, 1);
    put_bytes(out, 2, kinf__buffer_str(message));
    put_text(out, 3, "");
    put_text(out, 4, "");
}

static int try_decode(const char *api_version, const char *kind, const struct kinf__buffer *message,
                      struct cJSON **ret_tree, struct kinf_error *err)
{
    KINF__AUTO_BUFFER body = KINF__BUFFER_INIT;

    put_envelope(&body, api_version, kind, message);
    return kinf__protobuf_decode(schema, kinf__buffer_str(&body), ret_tree, err);
}

/* `json`: the object without apiVersion and kind. */
static void expect_message(const char *api_version, const char *kind,
                           const struct kinf__buffer *message, const char *json)
{
    KINF__AUTO_DOC *expected = test_json(json);
    struct kinf_error err = KINF_ERROR_INIT;
    KINF__AUTO_DOC *tree = NULL;

    if (try_decode(api_version, kind, message, &tree, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(kinf__doc_text(tree, "apiVersion", NULL), api_version);
    assert_string_equal(kinf__doc_text(tree, "kind", NULL), kind);
    kinf__doc_remove(tree, "apiVersion");
    kinf__doc_remove(tree, "kind");
    expect_tree(kind, tree, expected);
}

static void refuse_message(const char *api_version, const char *kind,
                           const struct kinf__buffer *message, int code, const char *text)
{
    struct kinf_error err = KINF_ERROR_INIT;
    KINF__AUTO_DOC *tree = NULL;

    assert_int_equal(try_decode(api_version, kind, message, &tree, &err), code);
    assert_null(tree);
    if (strncmp(err.message, text, strlen(text)) != 0)
        fail_msg("'%s' is not '%s'", err.message, text);
}

static void zeros_stay_where_json_has_them(void **state)
{
    KINF__AUTO_BUFFER pod = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER claim = KINF__BUFFER_INIT;

    (void)state;
    put_text(&pod, 1, "");
    wrap(&pod, 0, 1);         /* volumes: one, of which the name is required */
    put_text(&pod, 3, "");    /* restartPolicy */
    put_integer(&pod, 4, 0);  /* terminationGracePeriodSeconds, a pointer */
    put_integer(&pod, 11, 0); /* hostNetwork */
    put_integer(&pod, 21, 0); /* automountServiceAccountToken, a pointer */
    put_text(&pod, 14, "");   /* securityContext, a pointer */
    wrap(&pod, 0, 2);
    put_text(&pod, 1, ""); /* metadata */
    put_text(&pod, 3, ""); /* status */
    expect_message("v1", "Pod", &pod,
                   "{'spec':{'volumes':[{'name':''}],'terminationGracePeriodSeconds':0,"
                   "'automountServiceAccountToken':false,'securityContext':{}}}");
    put_text(&claim, 5, ""); /* storageClassName, a pointer */
    wrap(&claim, 0, 2);
    expect_message("v1", "PersistentVolumeClaim", &claim, "{'spec':{'storageClassName':''}}");
}

static void a_zero_takes_back_what_was_said_before(void **state)
{
    KINF__AUTO_BUFFER pod = KINF__BUFFER_INIT;

    (void)state;
    put_text(&pod, 3, "Never");
    put_text(&pod, 3, "");
    put_text(&pod, 6, "First");
    put_text(&pod, 6, "Default");
    wrap(&pod, 0, 2);
    expect_message("v1", "Pod", &pod, "{'spec':{'dnsPolicy':'Default'}}");
}

static void messages_in_pieces_are_merged(void **state)
{
    KINF__AUTO_BUFFER object = KINF__BUFFER_INIT;
    size_t begin;

    (void)state;
    put_text(&object, 1, "a");
    wrap(&object, 0, 1);
    begin = object.len;
    put_text(&object, 3, "b");
    wrap(&object, begin, 1);
    expect_message("v1", "ConfigMap", &object, "{'metadata':{'name':'a','namespace':'b'}}");
}

static void unknown_fields_are_passed_over(void **state)
{
    KINF__AUTO_BUFFER object = KINF__BUFFER_INIT;

    (void)state;
    put_integer(&object, 77, 1);
    put_text(&object, 300, "x");
    put_integer(&object, 256 + 1, 1);
    put_varint(&object, 78 << 3 | 1);
    assert_int_equal(kinf__buffer_append(&object, "12345678", 8), 0);
    put_varint(&object, 79 << 3 | 5);
    assert_int_equal(kinf__buffer_append(&object, "1234", 4), 0);
    put_integer(&object, 4, 1); /* immutable */
    expect_message("v1", "ConfigMap", &object, "{'immutable':true}");
}

static void numbers_may_be_packed(void **state)
{
    KINF__AUTO_BUFFER pod = KINF__BUFFER_INIT;

    (void)state;
    put_varint(&pod, 0);
    put_varint(&pod, (uint64_t)-5);
    put_varint(&pod, (uint64_t)1 << 62);
    wrap(&pod, 0, 4); /* supplementalGroups */
    put_integer(&pod, 4, 7);
    wrap(&pod, 0, 14);
    wrap(&pod, 0, 2);
    expect_message("v1", "Pod", &pod,
                   "{'spec':{'securityContext':{'supplementalGroups':"
                   "[0,-5,4611686018427387904,7]}}}");
}

/* Many, so that a search among those before would be felt. */
static void of_doubled_keys_the_last_one_stays(void **state)
{
    KINF__AUTO_BUFFER object = KINF__BUFFER_INIT;
    size_t begin;

    (void)state;
    for (unsigned i = 0; i < 200000; i++) {
        begin = object.len;
        put_text(&object, 1, i % 2 == 0 ? "a" : "b");
        put_bytes(&object, 2, (struct kinf_str){ &"0123456789"[i % 10], 1 });
        wrap(&object, begin, 2);
    }
    expect_message("v1", "ConfigMap", &object, "{'data':{'a':'8','b':'9'}}");
}

/* `seconds` as a creationTimestamp. */
static void put_created(struct kinf__buffer *object, int64_t seconds)
{
    object->len = 0;
    put_integer(object, 1, (uint64_t)seconds);
    put_integer(object, 2, 999);
    wrap(object, 0, 8);
    wrap(object, 0, 1);
}

static void times_are_of_rfc_3339(void **state)
{
    KINF__AUTO_BUFFER object = KINF__BUFFER_INIT;
    static const struct {
        int64_t seconds;
        const char *json;
    } rows[] = {
        { 0, "{'metadata':{'creationTimestamp':'1970-01-01T00:00:00Z'}}" },
        { -1, "{'metadata':{'creationTimestamp':'1969-12-31T23:59:59Z'}}" },
        { 253402300799, "{'metadata':{'creationTimestamp':'9999-12-31T23:59:59Z'}}" },
        { -62135596800, "{}" },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        put_created(&object, rows[i].seconds);
        expect_message("v1", "ConfigMap", &object, rows[i].json);
    }
    put_created(&object, 253402300800);
    refuse_message("v1", "ConfigMap", &object, KINF_ERR_PARSE,
                   "metadata: creationTimestamp: a time outside of years 0 to 9999");
}

static void texts_that_are_no_utf_8_are_mended(void **state)
{
    KINF__AUTO_BUFFER object = KINF__BUFFER_INIT;

    (void)state;
    put_text(&object, 1, "a\xff<");
    wrap(&object, 0, 1);
    expect_message("v1", "ConfigMap", &object, "{'metadata':{'name':'a\\ufffd<'}}");
}

/* --- what is refused --- */

static void wrong_messages_are_refused(void **state)
{
    KINF__AUTO_BUFFER message = KINF__BUFFER_INIT;

    (void)state;
    put_integer(&message, 1, 1);
    refuse_message("v1", "ConfigMap", &message, KINF_ERR_PARSE,
                   "metadata: proto: wrong wireType = 0");
    message.len = 0;
    put_text(&message, 4, "x");
    refuse_message("v1", "ConfigMap", &message, KINF_ERR_PARSE,
                   "immutable: proto: wrong wireType = 2");
    message.len = 0;
    put_varint(&message, 2);
    refuse_message("v1", "ConfigMap", &message, KINF_ERR_PARSE, "proto: illegal tag 0");
    message.len = 0;
    put_varint(&message, 1 << 3 | 3);
    refuse_message("v1", "ConfigMap", &message, KINF_ERR_PARSE, "proto: illegal wireType 3");
    message.len = 0;
    put_varint(&message, 1 << 3 | 2);
    put_varint(&message, UINT64_MAX);
    refuse_message("v1", "ConfigMap", &message, KINF_ERR_PARSE, "proto: unexpected EOF");
    message.len = 0;
    assert_int_equal(
        kinf__buffer_append(&message, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11), 0);
    refuse_message("v1", "ConfigMap", &message, KINF_ERR_PARSE, "proto: integer overflow");
    message.len = 0;
    put_bytes(&message, 1, KINF_STR("a\0b"));
    wrap(&message, 0, 1);
    refuse_message("v1", "ConfigMap", &message, KINF_ERR_LIMIT, "metadata: name: ");
}

static void json_inside_is_held_to_be_json(void **state)
{
    KINF__AUTO_BUFFER message = KINF__BUFFER_INIT;
    char deep[2001];

    (void)state;
    put_text(&message, 1, " {\"a\": [1.5, 12345678901234567890]} ");
    wrap(&message, 0, 2);
    expect_message("apps/v1", "ControllerRevision", &message,
                   "{'data':{'a':[1.5,12345678901234567890]}}");
    message.len = 0;
    put_text(&message, 1, "{\"a\":");
    wrap(&message, 0, 2);
    refuse_message("apps/v1", "ControllerRevision", &message, KINF_ERR_TRUNCATED, "data: ");
    message.len = 0;
    memset(deep, '[', 1000);
    memset(deep + 1000, ']', 1000);
    deep[2000] = '\0';
    put_text(&message, 1, deep);
    wrap(&message, 0, 2);
    refuse_message("apps/v1", "ControllerRevision", &message, KINF_ERR_LIMIT, "data: ");
}

static void kinds_that_cannot_be_decoded_are_named(void **state)
{
    KINF__AUTO_BUFFER message = KINF__BUFFER_INIT;

    (void)state;
    refuse_message("v1", "Nothing", &message, KINF_ERR_NOT_FOUND,
                   "no kind \"Nothing\" is registered for version \"v1\"");
    refuse_message("apps/v1", "Pod", &message, KINF_ERR_NOT_FOUND,
                   "no kind \"Pod\" is registered for version \"apps/v1\"");
    refuse_message("apiextensions.k8s.io/v1", "CustomResourceDefinition", &message,
                   KINF_ERR_UNSUPPORTED,
                   "kinformer-sim takes kind \"CustomResourceDefinition\" only as JSON");
}

static void other_bytes_are_no_envelope(void **state)
{
    static const struct kinf_str bodies[] = { { "", 0 }, { "k8s", 3 }, { "{}", 2 } };

    (void)state;
    for (size_t i = 0; i < N(bodies); i++) {
        struct kinf_error err = KINF_ERROR_INIT;
        struct cJSON *tree = NULL;

        assert_int_equal(kinf__protobuf_decode(schema, bodies[i], &tree, &err), KINF_ERR_PARSE);
        assert_string_equal(err.message, "provided data does not appear to be a protobuf message, "
                                         "expected prefix [107 56 115 0]");
    }
}

static void an_empty_envelope_has_no_kind(void **state)
{
    static const struct kinf_str body = { "k8s", 4 };
    struct kinf_error err = KINF_ERROR_INIT;
    struct cJSON *tree = NULL;

    (void)state;
    assert_int_equal(kinf__protobuf_decode(schema, body, &tree, &err), KINF_ERR_NOT_FOUND);
    assert_string_equal(err.message, "no kind \"\" is registered for version \"\"");
}

/* Cut anywhere, nothing behind the end is read: the copy is as long as what is left. */
static void expect_cut(const char *kind)
{
    KINF__AUTO_FREE char *bytes = NULL;
    struct kinf_str body = read_body("go", kind, &bytes);
    size_t step = body.len / test_rounds(200) + 1;

    for (size_t len = 0; len < body.len; len += step) {
        KINF__AUTO_FREE char *copy = malloc(len + 1);
        KINF__AUTO_DOC *tree = NULL;
        struct kinf_error err = KINF_ERROR_INIT;
        struct kinf_str cut = { copy + 1, len };

        assert_non_null(copy);
        memcpy(copy + 1, body.bytes, len);
        if (kinf__protobuf_decode(schema, cut, &tree, &err) < 0)
            assert_int_not_equal(err.message[0], '\0');
    }
}

static void cut_bodies_are_survived(void **state)
{
    (void)state;
    (void)for_each_kind(expect_cut);
}

/* As the C library's own, which the parser asks why it got nothing. */
static void *counted_malloc(size_t size)
{
    void *bytes = malloc(size);

    if (bytes == NULL)
        errno = ENOMEM;
    return bytes;
}

static void a_lack_of_memory_is_told(void **state)
{
    static const char *const kinds[] = { "Lease.coordination.k8s.io", "Secret", "Binding",
                                         "TokenReview.authentication.k8s.io",
                                         "ControllerRevision.apps" };
    struct cJSON_Hooks hooks = { counted_malloc, free };
    bool has_failed;

    (void)state;
    cJSON_InitHooks(&hooks);
    for (size_t i = 0; i < N(kinds); i++) {
        KINF__AUTO_FREE char *bytes = NULL;
        struct kinf_str body = read_body("go", kinds[i], &bytes);

        has_failed = true;
        for (size_t n = 1; has_failed; n++) {
            KINF__AUTO_DOC *tree = NULL;
            int failed;

            test_fail_allocation(n);
            failed = kinf__protobuf_decode(schema, body, &tree, NULL);
            has_failed = test_allocation_failed();
            assert_int_equal(failed, has_failed ? KINF_ERR_NO_MEMORY : 0);
        }
    }
    cJSON_InitHooks(NULL);
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
        cmocka_unit_test(bodies_of_kubectl_are_decoded),
        cmocka_unit_test(every_kind_decodes_to_what_go_prints),
        cmocka_unit_test(zeros_stay_where_json_has_them),
        cmocka_unit_test(a_zero_takes_back_what_was_said_before),
        cmocka_unit_test(messages_in_pieces_are_merged),
        cmocka_unit_test(unknown_fields_are_passed_over),
        cmocka_unit_test(numbers_may_be_packed),
        cmocka_unit_test(of_doubled_keys_the_last_one_stays),
        cmocka_unit_test(times_are_of_rfc_3339),
        cmocka_unit_test(texts_that_are_no_utf_8_are_mended),
        cmocka_unit_test(wrong_messages_are_refused),
        cmocka_unit_test(json_inside_is_held_to_be_json),
        cmocka_unit_test(kinds_that_cannot_be_decoded_are_named),
        cmocka_unit_test(other_bytes_are_no_envelope),
        cmocka_unit_test(an_empty_envelope_has_no_kind),
        cmocka_unit_test(cut_bodies_are_survived),
        cmocka_unit_test(a_lack_of_memory_is_told),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
