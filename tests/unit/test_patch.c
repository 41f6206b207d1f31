/*
 * JSON Patch and merge patch: the rows are what kube-apiserver 1.37.1 made of an object of a custom
 * resource, whose spec was SPEC.
 */
#include <stdio.h>
#include <string.h>

#include "unit/patch_fixture.h"
#include "unit/test.h"

#define SPEC                                                                                       \
    "{'a':1,'s':'x','n':null,'f':1.5,'arr':[1,2,3],'o':{'x':{'y':1}},'sl/ash':1,'til~de':2,"       \
    "'':'empty','-':'dash'}"
#define REJECTED 422, "the server rejected our request due to an error in our request"

#define N(table) (sizeof(table) / sizeof((table)[0]))

static const struct test_patch_row json_rows[] = {
    { SPEC, "[]", SPEC, 0, NULL },
    { SPEC, "null", SPEC, 0, NULL },
    /* test */
    { SPEC, "[{'op':'test','path':'/a','value':1}]", SPEC, 0, NULL },
    { SPEC, "[{'op':'test','path':'/a','value':2}]", NULL, REJECTED },
    { SPEC, "[{'op':'test','path':'/a'}]", NULL, REJECTED },
    { SPEC, "[{'op':'test','path':'/zz','value':1}]", NULL, REJECTED },
    { SPEC, "[{'op':'test','path':'/zz','value':null}]", SPEC, 0, NULL },
    { SPEC, "[{'op':'test','path':'/zz'}]", SPEC, 0, NULL },
    { SPEC, "[{'op':'test','path':'/n','value':null}]", SPEC, 0, NULL },
    { SPEC, "[{'op':'test','path':'/n','value':1}]", NULL, REJECTED },
    { SPEC, "[{'op':'test','path':'/zz/y','value':1}]", NULL, REJECTED },
    { SPEC, "[{'op':'test','path':'/arr','value':[1,2,3]}]", SPEC, 0, NULL },
    { SPEC, "[{'op':'test','path':'/arr','value':[1,3,2]}]", NULL, REJECTED },
    { SPEC, "[{'op':'test','path':'/arr/5','value':3}]", NULL, REJECTED },
    { SPEC, "[{'op':'test','path':'/arr/-','value':3}]", NULL, REJECTED },
    { SPEC, "[{'op':'test','path':'/o','value':{'x':{'y':1}}}]", SPEC, 0, NULL },
    { SPEC, "[{'op':'test','path':'','value':{}}]", NULL, REJECTED },
    { "{'a':1}", "[{'op':'test','path':'','value':{'a':1}}]", "{'a':1}", 0, NULL },
    /* remove */
    { SPEC, "[{'op':'remove','path':'/zz'}]", NULL, REJECTED },
    { "{'a':1,'n':null}", "[{'op':'remove','path':'/n'}]", "{'a':1}", 0, NULL },
    { "{'arr':[1,2,3]}", "[{'op':'remove','path':'/arr/1'}]", "{'arr':[1,3]}", 0, NULL },
    { "{'arr':[1,2,3]}", "[{'op':'remove','path':'/arr/-1'}]", "{'arr':[1,2]}", 0, NULL },
    { "{'arr':[1,2,3]}", "[{'op':'remove','path':'/arr/01'}]", "{'arr':[1,3]}", 0, NULL },
    { "{'arr':[1,2,3]}", "[{'op':'remove','path':'/arr/+1'}]", "{'arr':[1,3]}", 0, NULL },
    { SPEC, "[{'op':'remove','path':'/arr/3'}]", NULL, REJECTED },
    { SPEC, "[{'op':'remove','path':'/arr/-'}]", NULL, REJECTED },
    { SPEC, "[{'op':'remove','path':'/arr/-4'}]", NULL, REJECTED },
    { SPEC, "[{'op':'remove','path':'/arr/x'}]", NULL, REJECTED },
    { SPEC, "[{'op':'remove','path':'/a/b'}]", NULL, REJECTED },
    { SPEC, "[{'op':'remove','path':'/n/b'}]", NULL, REJECTED },
    { SPEC, "[{'op':'remove','path':''}]", NULL, REJECTED },
    { SPEC, "[{'op':'remove','path':'a'}]", NULL, REJECTED },
    { "{'a':1,'b':2}", "[{'op':'remove','path':'x/a'}]", "{'b':2}", 0, NULL },
    /* replace */
    { "{'a':1}", "[{'op':'replace','path':'/a','value':7}]", "{'a':7}", 0, NULL },
    { "{'a':1}", "[{'op':'replace','path':'/zz','value':7}]", "{'a':1,'zz':7}", 0, NULL },
    { "{'a':1}", "[{'op':'replace','path':'/a'}]", "{'a':null}", 0, NULL },
    { "{'arr':[1,2]}", "[{'op':'replace','path':'/arr/0','value':7}]", "{'arr':[7,2]}", 0, NULL },
    { "{'arr':[1,2]}", "[{'op':'replace','path':'/arr/-1','value':7}]", "{'arr':[1,7]}", 0, NULL },
    { "{'arr':[1,2]}", "[{'op':'replace','path':'/arr/00','value':7}]", "{'arr':[7,2]}", 0, NULL },
    { SPEC, "[{'op':'replace','path':'/arr/3','value':7}]", NULL, REJECTED },
    { SPEC, "[{'op':'replace','path':'','value':{'b':1}}]", "{'b':1}", 0, NULL },
    { SPEC, "[{'op':'replace','path':'','value':[1]},{'op':'add','path':'/0','value':2}]", "[2,1]",
      0, NULL },
    { SPEC, "[{'op':'replace','path':'','value':1}]", NULL, REJECTED },
    { SPEC, "[{'op':'replace','path':'','value':null}]", NULL, REJECTED },
    /* The server drops the connection here. */
    { SPEC, "[{'op':'replace','path':''}]", NULL, REJECTED },
    /* add */
    { "{'a':1}", "[{'op':'add','path':'/a','value':7}]", "{'a':7}", 0, NULL },
    { "{'a':1}", "[{'op':'add','path':'/b','value':null}]", "{'a':1,'b':null}", 0, NULL },
    { "{'a':1}", "[{'op':'add','path':'/b'}]", "{'a':1,'b':null}", 0, NULL },
    { "{'arr':[1,2]}", "[{'op':'add','path':'/arr/-','value':7}]", "{'arr':[1,2,7]}", 0, NULL },
    { "{'arr':[1,2]}", "[{'op':'add','path':'/arr/0','value':7}]", "{'arr':[7,1,2]}", 0, NULL },
    { "{'arr':[1,2]}", "[{'op':'add','path':'/arr/2','value':7}]", "{'arr':[1,2,7]}", 0, NULL },
    { "{'arr':[1,2]}", "[{'op':'add','path':'/arr/-1','value':7}]", "{'arr':[1,2,7]}", 0, NULL },
    { "{'arr':[1,2]}", "[{'op':'add','path':'/arr/-3','value':7}]", "{'arr':[7,1,2]}", 0, NULL },
    { "{'arr':[1,2]}", "[{'op':'add','path':'/arr/01','value':7}]", "{'arr':[1,7,2]}", 0, NULL },
    { "{'arr':[]}", "[{'op':'add','path':'/arr/0','value':7}]", "{'arr':[7]}", 0, NULL },
    { SPEC, "[{'op':'add','path':'/arr/4','value':7}]", NULL, REJECTED },
    { SPEC, "[{'op':'add','path':'/arr/-5','value':7}]", NULL, REJECTED },
    { SPEC, "[{'op':'add','path':'/arr/a','value':7}]", NULL, REJECTED },
    { SPEC, "[{'op':'add','path':'/arr/','value':7}]", NULL, REJECTED },
    { SPEC, "[{'op':'add','path':'/arr/99999999999999999999','value':7}]", NULL, REJECTED },
    { SPEC, "[{'op':'add','path':'/arr/-99999999999999999999','value':7}]", NULL, REJECTED },
    { SPEC, "[{'op':'add','path':'/zz/b','value':7}]", NULL, REJECTED },
    { SPEC, "[{'op':'add','path':'/a/b','value':7}]", NULL, REJECTED },
    { SPEC, "[{'op':'add','path':'/n/b','value':7}]", NULL, REJECTED },
    { SPEC, "[{'op':'add','path':'','value':{}}]", NULL, REJECTED },
    { "{'sl/ash':1}", "[{'op':'add','path':'/sl~1ash','value':5}]", "{'sl/ash':5}", 0, NULL },
    { "{'til~de':1}", "[{'op':'add','path':'/til~0de','value':5}]", "{'til~de':5}", 0, NULL },
    { "{}", "[{'op':'add','path':'/x~2y','value':5}]", "{'x~2y':5}", 0, NULL },
    { "{}", "[{'op':'add','path':'/x~','value':5}]", "{'x~':5}", 0, NULL },
    { "{}", "[{'op':'add','path':'/~01','value':5}]", "{'~1':5}", 0, NULL },
    { "{'':1}", "[{'op':'add','path':'/','value':5}]", "{'':5}", 0, NULL },
    { "{'-':1}", "[{'op':'add','path':'/-','value':5}]", "{'-':5}", 0, NULL },
    /* move */
    { "{'a':1}", "[{'op':'move','from':'/a','path':'/b'}]", "{'b':1}", 0, NULL },
    { "{'a':1}", "[{'op':'move','from':'/a','path':'/a'}]", "{'a':1}", 0, NULL },
    { "{'o':{'x':{'y':1}}}", "[{'op':'move','from':'/o/x','path':'/o'}]", "{'o':{'y':1}}", 0,
      NULL },
    { "{'arr':[1,2,3]}", "[{'op':'move','from':'/arr/0','path':'/arr/-'}]", "{'arr':[2,3,1]}", 0,
      NULL },
    { "{'arr':[1,2,3]}", "[{'op':'move','from':'/arr/0','path':'/arr/2'}]", "{'arr':[2,3,1]}", 0,
      NULL },
    { "{'arr':[1],'a':2}", "[{'op':'move','from':'/arr/0','path':'/b'}]", "{'arr':[],'a':2,'b':1}",
      0, NULL },
    { "{'a':{'b':1},'o':{}}", "[{'op':'move','from':'/a','path':'/o/a'}]", "{'o':{'a':{'b':1}}}", 0,
      NULL },
    { SPEC, "[{'op':'move','from':'/zz','path':'/b'}]", NULL, REJECTED },
    { SPEC, "[{'op':'move','from':'/o','path':'/o/x'}]", NULL, REJECTED },
    { SPEC, "[{'op':'move','from':'/arr/9','path':'/arr/2'}]", NULL, REJECTED },
    { SPEC, "[{'op':'move','path':'/b'}]", NULL, REJECTED },
    { SPEC, "[{'op':'move','from':'/a'}]", NULL, REJECTED },
    { SPEC, "[{'op':'move','from':'','path':'/a'}]", NULL, REJECTED },
    /* copy */
    { "{'o':{'x':{'y':1}}}", "[{'op':'copy','from':'/o','path':'/o/x/z'}]",
      "{'o':{'x':{'y':1,'z':{'x':{'y':1}}}}}", 0, NULL },
    { "{'arr':[1,2,3]}", "[{'op':'copy','from':'/arr/-1','path':'/arr/0'}]", "{'arr':[3,1,2,3]}", 0,
      NULL },
    { "{'a':1}", "[{'op':'copy','from':'/zz','path':'/b'}]", "{'a':1,'b':null}", 0, NULL },
    { SPEC, "[{'op':'copy','from':'/a','path':'/q/b'}]", NULL, REJECTED },
    { SPEC, "[{'op':'copy','from':'','path':'/q'}]", NULL, REJECTED },
    { SPEC, "[{'op':'copy','from':'/arr/7','path':'/q'}]", NULL, REJECTED },
    /* one after the other */
    { "{'a':1}",
      "[{'op':'add','path':'/l','value':[]},{'op':'add','path':'/l/-','value':{'k':'v'}},"
      "{'op':'test','path':'/l/0/k','value':'v'},{'op':'remove','path':'/a'}]",
      "{'l':[{'k':'v'}]}", 0, NULL },
    /* operations that are none */
    { SPEC, "[{'op':'frob','path':'/a'}]", NULL, REJECTED },
    { SPEC, "[{'op':'ADD','path':'/a','value':1}]", NULL, REJECTED },
    { SPEC, "[{'Op':'add','Path':'/a','value':1}]", NULL, REJECTED },
    { SPEC, "[{'path':'/a'}]", NULL, REJECTED },
    { SPEC, "[{'op':'add','value':1}]", NULL, REJECTED },
    { SPEC, "[{'op':'add','path':null,'value':1}]", NULL, REJECTED },
    { SPEC, "[{'op':null,'path':'/a'}]", NULL, REJECTED },
    { SPEC, "[null]", NULL, REJECTED },
    { SPEC, "[{}]", NULL, REJECTED },
    { "{'a':0}", "[{'op':'add','path':'/a','value':1,'extra':2}]", "{'a':1}", 0, NULL },
    { "{'a':0}", "[{'op':'add','path':'/a','value':1,'value':2}]", "{'a':2}", 0, NULL },
    { SPEC, "[{'op':1,'path':'/a'}]", NULL, 400,
      "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of "
      "type string" },
    { SPEC, "[{'op':'add','path':1,'value':1}]", NULL, 400,
      "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.path "
      "of "
      "type string" },
    { SPEC, "[{'op':'copy','from':3,'path':'/a'}]", NULL, 400,
      "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.from "
      "of "
      "type string" },
    { SPEC, "{'op':'add'}", NULL, 400,
      "error decoding patch: json: cannot unmarshal object into Go value of type "
      "[]handlers.jsonPatchOp" },
    { SPEC, "'x'", NULL, 400,
      "error decoding patch: json: cannot unmarshal string into Go value of type "
      "[]handlers.jsonPatchOp" },
    { SPEC, "true", NULL, 400,
      "error decoding patch: json: cannot unmarshal bool into Go value of type "
      "[]handlers.jsonPatchOp" },
    { SPEC, "[1]", NULL, 400,
      "error decoding patch: json: cannot unmarshal number into Go value of type "
      "handlers.jsonPatchOp" },
    { SPEC, "[[]]", NULL, 400,
      "error decoding patch: json: cannot unmarshal array into Go value of type "
      "handlers.jsonPatchOp" },
};

static void operations_do_what_the_server_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(json_rows); i++)
        test_patch_row(&json_rows[i], kinf__patch_json);
}

static const struct test_patch_row merge_rows[] = {
    { SPEC, "{}", SPEC, 0, NULL },
    { "{'a':1,'b':1}", "{'a':2}", "{'a':2,'b':1}", 0, NULL },
    { "{'a':1,'b':1}", "{'a':null}", "{'b':1}", 0, NULL },
    { "{'a':1}", "{'zz':null}", "{'a':1}", 0, NULL },
    { "{'o':{'x':{'y':1}}}", "{'o':{'x':null}}", "{'o':{}}", 0, NULL },
    { "{'o':{'x':{'y':1}}}", "{'o':{'x':{'z':{'q':null,'r':1}}}}",
      "{'o':{'x':{'y':1,'z':{'r':1}}}}", 0, NULL },
    /* a list that replaces an object keeps its nulls, another does not */
    { "{'o':{'x':{'y':1}}}", "{'o':[{'x':null,'y':1},null,[{'z':null}]]}",
      "{'o':[{'x':null,'y':1},null,[{'z':null}]]}", 0, NULL },
    { "{}", "{'new':[{'x':null,'y':1},null,[{'z':null}]]}", "{'new':[{'y':1},null,[{}]]}", 0,
      NULL },
    { "{'arr':[1,2,3]}", "{'arr':[{'x':null,'y':1},null]}", "{'arr':[{'y':1},null]}", 0, NULL },
    { "{'n':null}", "{'n':[{'x':null}]}", "{'n':[{}]}", 0, NULL },
    { "{'a':1}", "{'a':{'x':null,'y':{'z':null}}}", "{'a':{'y':{}}}", 0, NULL },
    { "{'n':null}", "{'n':{'x':null,'y':{'z':null}}}", "{'n':{'y':{}}}", 0, NULL },
    { "{'arr':[1,2,3]}", "{'arr':[]}", "{'arr':[]}", 0, NULL },
    { "{'arr':[1,2,3]}", "{'arr':{'0':1}}", "{'arr':{'0':1}}", 0, NULL },
    { "{'o':{'x':1}}", "{'o':1}", "{'o':1}", 0, NULL },
    { "{'o':{'x':1}}", "{'o':{}}", "{'o':{'x':1}}", 0, NULL },
    { "{'o':{'x':1}}", "{'o':{'p':1},'o':{'q':1}}", "{'o':{'x':1,'q':1}}", 0, NULL },
    { "{}", "{'o':{'p':1},'o':{'q':1}}", "{'o':{'q':1}}", 0, NULL },
    { "{}", "{'k':9007199254740993,'j':1.50,'l':1000000000000000}",
      "{'k':9007199254740993,'j':1.5,'l':1000000000000000}", 0, NULL },
    { SPEC, "null", NULL, 400, "Invalid JSON Patch" },
    { SPEC, "[]", NULL, 400,
      "error decoding patch: json: cannot unmarshal array into Go value of type "
      "map[string]interface "
      "{}" },
    { SPEC, "1", NULL, 400,
      "error decoding patch: json: cannot unmarshal number into Go value of type "
      "map[string]interface {}" },
    { SPEC, "'x'", NULL, 400,
      "error decoding patch: json: cannot unmarshal string into Go value of type "
      "map[string]interface {}" },
    { SPEC, "true", NULL, 400,
      "error decoding patch: json: cannot unmarshal bool into Go value of type "
      "map[string]interface "
      "{}" },
    /* more members than are worth a walk each */
    { "{'a':1,'b':2,'c':3,'d':4,'e':5,'f':6,'g':7,'h':8,'i':9,'j':10}",
      "{'a':null,'b':0,'c':{'x':1},'d':null,'e':0,'f':null,'g':0,'h':0,'i':0,'k':11,'k':12}",
      "{'b':0,'c':{'x':1},'e':0,'g':0,'h':0,'i':0,'j':10,'k':12}", 0, NULL },
};

static void merges_do_what_the_server_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(merge_rows); i++)
        test_patch_row(&merge_rows[i], kinf__patch_merge);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(json_rows); i++)
        test_patch_row_without_memory(&json_rows[i], kinf__patch_json);
    for (size_t i = 0; i < N(merge_rows); i++)
        test_patch_row_without_memory(&merge_rows[i], kinf__patch_merge);
}

/* A patch that repeats an operation, behind a first one; " where JSON has it. */
static struct cJSON *repeated(const char *first, const char *operation, size_t n)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    assert_int_equal(kinf__buffer_printf(&text, "[%s", first), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(
            kinf__buffer_printf(&text, "%s%s", i != 0 || *first != '\0' ? "," : "", operation), 0);
    assert_int_equal(kinf__buffer_printf(&text, "]"), 0);
    return test_json(kinf__buffer_cstr(&text));
}

static int apply_to(const char *before, struct cJSON *take_patch, struct kinf__refusal *refusal)
{
    KINF__AUTO_DOC *tree = test_json(before);
    KINF__AUTO_DOC *patch = take_patch;

    return kinf__patch_json(&tree, patch, refusal);
}

static void more_than_10000_operations_are_too_many(void **state)
{
    static const char operation[] = "{'op':'test','path':'/a','value':1}";
    struct kinf__refusal refusal;

    (void)state;
    assert_int_equal(apply_to("{'a':1}", repeated("", operation, 10000), &refusal), 0);
    assert_int_equal(apply_to("{'a':1}", repeated("", operation, 10001), &refusal),
                     KINF_ERR_INVALID);
    assert_int_equal(refusal.code, 413);
    assert_string_equal(refusal.reason, "RequestEntityTooLarge");
    assert_string_equal(refusal.message,
                        "Request entity too large: The allowed maximum operations in a JSON patch "
                        "is 10000, got 10001");
}

/* Each copy doubles what there is. */
static void copies_have_a_limit(void **state)
{
    static const char copy[] = "{'op':'copy','from':'/q','path':'/q/-'}";
    struct kinf__refusal refusal;

    (void)state;
    assert_int_equal(apply_to("{'q':['0123456789']}", repeated("", copy, 15), &refusal), 0);
    assert_int_equal(apply_to("{'q':['0123456789']}", repeated("", copy, 30), &refusal),
                     KINF_ERR_INVALID);
    assert_int_equal(refusal.code, 422);
}

/* Operations cannot make what cJSON would not read. */
static void depth_has_a_limit(void **state)
{
    struct kinf__refusal refusal;

    (void)state;
    assert_int_equal(apply_to("{'q':{}}",
                              repeated("", "{'op':'copy','from':'/q','path':'/q/q'}", 300),
                              &refusal),
                     0);
    assert_int_equal(apply_to("{'q':{}}",
                              repeated("",
                                       "{'op':'add','path':'/p','value':{}},"
                                       "{'op':'move','from':'/q','path':'/p/q'},"
                                       "{'op':'move','from':'/p','path':'/q'}",
                                       999),
                              &refusal),
                     KINF_ERR_INVALID);
    assert_int_equal(refusal.code, 422);
}

/* A hundred thousand elements, ten thousand walks. */
static void walks_have_a_limit(void **state)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    struct kinf__refusal refusal;

    (void)state;
    assert_int_equal(kinf__buffer_printf(&text, "{'op':'add','path':'/q','value':[0"), 0);
    for (int i = 0; i < 100000; i++)
        assert_int_equal(kinf__buffer_printf(&text, ",0"), 0);
    assert_int_equal(kinf__buffer_printf(&text, "]}"), 0);
    assert_int_equal(apply_to("{}",
                              repeated(kinf__buffer_cstr(&text),
                                       "{'op':'test','path':'/q/99999','value':0}", 9999),
                              &refusal),
                     KINF_ERR_INVALID);
    assert_int_equal(refusal.code, 413);
}

static void large_objects_are_merged_at_once(void **state)
{
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER patch_text = KINF__BUFFER_INIT;
    KINF__AUTO_DOC *tree = NULL;
    KINF__AUTO_DOC *patch = NULL;
    struct kinf__refusal refusal;

    (void)state;
    for (int i = 0; i < 100000; i++) {
        assert_int_equal(kinf__buffer_printf(&text, "%s'k%d':1", i != 0 ? "," : "{", i), 0);
        assert_int_equal(
            kinf__buffer_printf(&patch_text, "%s'k%d':2", i != 0 ? "," : "{", i + 50000), 0);
    }
    assert_int_equal(kinf__buffer_append(&text, "}", 1), 0);
    assert_int_equal(kinf__buffer_append(&patch_text, "}", 1), 0);
    tree = test_json(kinf__buffer_cstr(&text));
    patch = test_json(kinf__buffer_cstr(&patch_text));
    assert_int_equal(kinf__patch_merge(&tree, patch, &refusal), 0);
    assert_int_equal(cJSON_GetArraySize(tree), 150000);
    assert_int_equal(kinf__doc_integer(tree, "k49999", 0), 1);
    assert_int_equal(kinf__doc_integer(tree, "k50000", 0), 2);
    assert_int_equal(kinf__doc_integer(tree, "k149999", 0), 2);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_do_what_the_server_does),
        cmocka_unit_test(merges_do_what_the_server_does),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(more_than_10000_operations_are_too_many),
        cmocka_unit_test(copies_have_a_limit),
        cmocka_unit_test(depth_has_a_limit),
        cmocka_unit_test(walks_have_a_limit),
        cmocka_unit_test(large_objects_are_merged_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
