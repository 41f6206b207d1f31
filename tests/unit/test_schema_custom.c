/*
 * Schemas of definitions: what is pruned, filled in, and said of values. What is expected is what
 * kube-apiserver 1.37.1 did with the same definition; where it takes members in random order, the
 * document's.
 */
#include "document/schema.h"

#include <stdio.h>
#include <string.h>

#include "document/schema_priv.h"
#include "unit/allocation.h"
#include "unit/test.h"

#define N(table)  (sizeof(table) / sizeof((table)[0]))
#define N_FAULTS  8
#define STRING    "{'type':'string'}"
#define DEFAULTED "'def':'dd','nuldef':'x','obj':{'inner':5}"

/* With ' for ", as all texts here. */
static const char limits[] =
    "{'properties':{'f':{'type':'number','maximum':1000000},"
    "'g':{'type':'number','minimum':12345678.5},'m':{'type':'number','multipleOf':0.1},"
    "'one':{'type':'integer','oneOf':[{'minimum':1},{'minimum':5}]},"
    "'all':{'type':'integer','allOf':[{'minimum':5},{'maximum':10}]},"
    "'mx':{'type':'array','maxItems':1},'num':{'type':'number','enum':[1,2.5]},"
    "'d':{'type':'string','format':'date'},'u':{'type':'string','format':'uuid'}}}";

static const char definition[] =
    "{'type':'object','properties':{'spec':{'type':'object','required':['need'],'properties':{"
    "'need':{'type':'string'},"
    "'str':{'type':'string','minLength':2,'maxLength':4,'pattern':'^[a-z]+$'},"
    "'en':{'type':'string','enum':['a','b','c']},"
    "'int':{'type':'integer','minimum':1,'maximum':10,'multipleOf':2},"
    "'exi':{'type':'integer','minimum':1,'exclusiveMinimum':true,'maximum':5,"
    "'exclusiveMaximum':true},"
    "'i32':{'type':'integer','format':'int32'},"
    "'num':{'type':'number','minimum':0.5},"
    "'b':{'type':'boolean'},"
    "'arr':{'type':'array','minItems':1,'maxItems':2,'items':{'type':'string','maxLength':3}},"
    "'set':{'type':'array','x-kubernetes-list-type':'set','items':{'type':'string'}},"
    "'lm':{'type':'array','x-kubernetes-list-type':'map','x-kubernetes-list-map-keys':['k'],"
    "'items':{'type':'object','required':['k'],'properties':{'k':{'type':'string'},"
    "'v':{'type':'integer','default':7}}}},"
    "'mp':{'type':'object','maxProperties':2,'minProperties':1,"
    "'additionalProperties':{'type':'string','minLength':1}},"
    "'io':{'x-kubernetes-int-or-string':true},"
    "'nul':{'type':'string','nullable':true},"
    "'nuldef':{'type':'string','nullable':true,'default':'x'},"
    "'def':{'type':'string','default':'dd'},"
    "'obj':{'type':'object','default':{},'properties':{'inner':{'type':'integer','default':5}}},"
    "'obj2':{'type':'object','properties':{'inner':{'type':'integer','default':5}}},"
    "'any':{'type':'object','x-kubernetes-preserve-unknown-fields':true,'properties':{"
    "'k':{'type':'object','properties':{'z':{'type':'string'}}}}},"
    "'emb':{'type':'object','x-kubernetes-embedded-resource':true,"
    "'x-kubernetes-preserve-unknown-fields':true},"
    "'uni':{'type':'array','items':{'type':'integer'}},"
    "'dt':{'type':'string','format':'date-time'},"
    "'byte':{'type':'string','format':'byte'},"
    "'anyo':{'type':'string','anyOf':[{'minLength':3},{'pattern':'^x'}]},"
    "'not':{'type':'string','not':{'pattern':'^x'}},"
    "'deep':{'type':'object','required':['p','q'],'properties':{'p':{'type':'string'},"
    "'q':{'type':'string'}}}}},"
    "'status':{'type':'object','properties':{'x':{'type':'integer'}}}}}";

static struct kinf__schema *builtin, *custom;

static struct cJSON *parse_quoted(const char *text)
{
    char json[8192];
    struct cJSON *tree;

    snprintf(json, sizeof json, "%s", text);
    for (char *c = json; *c != '\0'; c++)
        *c = (char)(*c == '\'' ? '"' : *c);
    assert_int_equal(kinf__doc_parse(kinf_str_from(json), &tree, NULL), 0);
    return tree;
}

static int make(const char *text, struct kinf__schema **ret_schema)
{
    KINF__AUTO_DOC *tree = text != NULL ? parse_quoted(text) : NULL;
    struct kinf_error err = KINF_ERROR_INIT;
    int failed = kinf__schema_of_definition(builtin, tree, ret_schema, &err);

    if (failed < 0)
        assert_true(err.message[0] != '\0');
    return failed;
}

static const struct kinf__schema_node *root(void)
{
    return kinf__schema_find(custom, "ex.org", "v1", "Foo");
}

static void print_quoted(const struct cJSON *tree, struct kinf__buffer *out)
{
    assert_int_equal(kinf__doc_print(tree, out), 0);
    assert_non_null(kinf__buffer_cstr(out));
    for (size_t i = 0; i < out->len; i++)
        out->bytes[i] = (char)(out->bytes[i] == '"' ? '\'' : out->bytes[i]);
}

static int note(const char *problem, void *ctx)
{
    return kinf__buffer_printf(ctx, "%s; ", problem);
}

/* --- nodes --- */

static void definitions_become_nodes(void **state)
{
    const struct kinf__schema_node *spec = kinf__schema_member(root(), "spec"), *node;

    (void)state;
    assert_string_equal(kinf__schema_member(root(), "metadata")->name,
                        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    assert_int_equal(kinf__schema_member(root(), "kind")->kind, KINF__SCHEMA_STRING);
    assert_int_equal(kinf__schema_member(spec, "int")->kind, KINF__SCHEMA_INTEGER);
    assert_int_equal(kinf__schema_member(spec, "num")->kind, KINF__SCHEMA_NUMBER);
    assert_int_equal(kinf__schema_member(spec, "b")->kind, KINF__SCHEMA_BOOLEAN);
    assert_int_equal(kinf__schema_member(spec, "io")->kind, KINF__SCHEMA_INT_OR_STRING);
    assert_int_equal(kinf__schema_member(spec, "set")->list, KINF__LIST_SET);
    node = kinf__schema_member(spec, "lm");
    assert_int_equal(node->list, KINF__LIST_MAP);
    assert_string_equal(node->keys[0], "k");
    assert_null(node->keys[1]);
    node = kinf__schema_member(spec, "mp");
    assert_int_equal(node->kind, KINF__SCHEMA_MAP);
    assert_int_equal(kinf__schema_member(node, "whatever")->kind, KINF__SCHEMA_STRING);
    assert_true(kinf__schema_member(spec, "nul")->is_nullable);
    node = kinf__schema_member(spec, "emb");
    assert_true(node->is_embedded && node->preserves_unknown);
    assert_non_null(kinf__schema_member(node, "metadata"));
    assert_true(kinf__schema_field_of(spec, "need")->is_required);
    assert_false(kinf__schema_field_of(spec, "str")->is_required);
}

static void without_a_definition_anything_goes(void **state)
{
    struct kinf__schema *schema = NULL;
    KINF__AUTO_DOC *tree =
        parse_quoted("{'metadata':{'x':1,'name':'a'},'spec':{'a':[{'b':null}]}}");
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT, problems = KINF__BUFFER_INIT;
    const struct kinf__schema_node *node;

    (void)state;
    assert_int_equal(make(NULL, &schema), 0);
    node = kinf__schema_find(schema, "", "", "");
    assert_int_equal(kinf__schema_prune(node, tree, note, &problems), 0);
    assert_int_equal(kinf__schema_default(node, tree), 0);
    assert_int_equal(kinf__schema_validate(node, tree, NULL, 0), 0);
    print_quoted(tree, &text);
    assert_string_equal(text.bytes, "{'metadata':{'name':'a'},'spec':{'a':[{'b':null}]}}");
    assert_string_equal(kinf__buffer_cstr(&problems), "unknown field \"metadata.x\"; ");
    kinf__schema_free(schema);
}

static void what_is_no_schema_is_refused(void **state)
{
    static const char *const texts[] = {
        "5",
        "[]",
        "{'properties':5}",
        "{'properties':{'a':5}}",
        "{'properties':{'a':{'type':'array','items':5}}}",
        "{'properties':{'a':{'type':'object','additionalProperties':5}}}",
        "{'properties':{'a':{'type':'array','x-kubernetes-list-type':'map',"
        "'x-kubernetes-list-map-keys':[5]}}}",
    };
    struct kinf__schema *schema;

    (void)state;
    for (size_t i = 0; i < N(texts); i++)
        assert_int_equal(make(texts[i], &schema), KINF_ERR_PARSE);
}

/* --- pruning and defaults --- */

static const struct {
    const char *sent, *problems, *stored; /* of spec */
} stored[] = {
    { "{'need':'x'}", "", "{'need':'x'," DEFAULTED "}" },
    { "{'need':null,'nul':null,'nuldef':null,'def':null,'obj':null,'obj2':null}", "",
      "{'nul':null,'nuldef':null,'def':'dd','obj':{'inner':5}}" },
    { "{'mp':{'a':null,'b':'1'}}", "", "{'mp':{'b':'1'}," DEFAULTED "}" },
    { "{'obj2':{}}", "", "{'obj2':{'inner':5}," DEFAULTED "}" },
    { "{'any':{'a':1,'k':{'z':'1','u':1}}}", "unknown field \"spec.any.k.u\"; ",
      "{'any':{'a':1,'k':{'z':'1'}}," DEFAULTED "}" },
    { "{'emb':{'apiVersion':'v1','kind':'X','metadata':{'name':'a','foo':1},'u':1}}",
      "unknown field \"spec.emb.metadata.foo\"; ",
      "{'emb':{'apiVersion':'v1','kind':'X','metadata':{'name':'a'},'u':1}," DEFAULTED "}" },
    { "{'z':1,'a':{'b':1},'lm':[{'k':'a','u':1}]}",
      "unknown field \"spec.a\"; unknown field \"spec.lm[0].u\"; unknown field \"spec.z\"; ",
      "{'lm':[{'k':'a','v':7}]," DEFAULTED "}" },
    { "{'need':'a','need':'b','need':'c','zz':{'x':1,'x':1},'any':{'x':1,'x':2}}",
      "duplicate field \"spec.need\"; duplicate field \"spec.zz.x\"; "
      "duplicate field \"spec.any.x\"; unknown field \"spec.zz\"; ",
      "{'need':'c','any':{'x':2}," DEFAULTED "}" },
    { "{'io':1,'mp':{'x.y/z':'1'},'uni':[1,null]}", "",
      "{'io':1,'mp':{'x.y/z':'1'},'uni':[1,null]," DEFAULTED "}" },
    { "'x'", "", "'x'" },
};

static void objects_are_pruned_and_filled_in(void **state)
{
    char json[1024];

    (void)state;
    for (size_t i = 0; i < N(stored); i++) {
        KINF__AUTO_BUFFER problems = KINF__BUFFER_INIT;
        KINF__AUTO_DOC *tree = NULL, *expected = parse_quoted(stored[i].stored);

        snprintf(json, sizeof json, "{'spec':%s}", stored[i].sent);
        tree = parse_quoted(json);
        assert_int_equal(kinf__schema_prune(root(), tree, note, &problems), 0);
        assert_int_equal(kinf__schema_default(root(), tree), 0);
        assert_string_equal(kinf__buffer_cstr(&problems), stored[i].problems);
        if (!kinf__doc_equal(kinf__doc_get(tree, "spec"), expected)) {
            KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

            print_quoted(tree, &text);
            fail_msg("%s became %s", stored[i].sent, text.bytes);
        }
    }
}

static void unknown_metadata_is_told_first(void **state)
{
    KINF__AUTO_DOC *tree =
        parse_quoted("{'foo':1,'metadata':{'name':'a','zork':1},'spec':{'z':1}}");
    KINF__AUTO_BUFFER problems = KINF__BUFFER_INIT;

    (void)state;
    assert_int_equal(kinf__schema_prune(root(), tree, note, &problems), 0);
    assert_string_equal(kinf__buffer_cstr(&problems),
                        "unknown field \"metadata.zork\"; unknown field \"foo\"; "
                        "unknown field \"spec.z\"; ");
}

/* --- validation --- */

#define IN_BODY(field, value) "Invalid value: " value ": spec." field " in body "
#define TYPED(field, type, found)                                                                  \
    "spec." field " FieldValueTypeInvalid " IN_BODY(field, "'" found "'") "must be of type " type  \
                                                                          ": '" found "'"
#define INVALID(field, value) "spec." field " FieldValueInvalid " IN_BODY(field, value)
#define NONE                  "<nil> FieldValueInvalid Invalid value: '': "

static const struct {
    const char *spec, *faults; /* "field reason message", with "; " between them */
} validations[] = {
    { "{'need':'x'}", "" },
    { "'x'", "spec FieldValueTypeInvalid Invalid value: 'string': spec in body must be of type "
             "object: 'string'" },
    { "{}", "spec.need FieldValueRequired Required value" },
    { "{'need':'x','deep':{}}", "spec.deep.p FieldValueRequired Required value; "
                                "spec.deep.q FieldValueRequired Required value" },
    { "{'need':5}", TYPED("need", "string", "integer") },
    { "{'need':{}}", TYPED("need", "string", "object") },
    { "{'need':[]}", TYPED("need", "string", "array") },
    { "{'need':'x','str':'a'}", INVALID("str", "'a'") "should be at least 2 chars long" },
    { "{'need':'x','str':'abcde'}",
      "spec.str FieldValueTooLong Too long: may not be more than 4 bytes" },
    { "{'need':'x','str':'AB'}", INVALID("str", "'AB'") "should match '^[a-z]+$'" },
    { "{'need':'x','str':'\xc3\xa9'}",
      INVALID("str", "'\xc3\xa9'") "should be at least 2 chars long" },
    { "{'need':'x','en':'x'}",
      "spec.en FieldValueNotSupported Unsupported value: 'x': supported values: 'a', 'b', 'c'" },
    { "{'need':'x','en':5}",
      TYPED("en", "string", "integer") "; spec.en FieldValueNotSupported "
                                       "Unsupported value: 5: supported values: 'a', 'b', 'c'" },
    { "{'need':'x','int':0}", INVALID("int", "0") "should be greater than or equal to 1" },
    { "{'need':'x','int':11}", INVALID("int", "11") "should be a multiple of 2; " INVALID(
                                   "int", "11") "should be less than or equal to 10" },
    { "{'need':'x','int':1.5}",
      TYPED(
          "int", "integer",
          "number") "; " NONE
                    "Checked value must be of type integer (default format) in spec.int; " INVALID(
                        "int", "1.5") "should be a multiple of 2" },
    { "{'need':'x','int':2.0}", "" },
    { "{'need':'x','int':'x'}", TYPED("int", "integer", "string") },
    { "{'need':'x','exi':1}", INVALID("exi", "1") "should be greater than 1" },
    { "{'need':'x','exi':5}", INVALID("exi", "5") "should be less than 5" },
    { "{'need':'x','i32':3000000000}",
      NONE "Checked value must be of type integer with format int32 in spec.i32" },
    { "{'need':'x','num':0.1}", INVALID("num", "0.1") "should be greater than or equal to 0.5" },
    { "{'need':'x','num':5}", "" },
    { "{'need':'x','num':'x'}", TYPED("num", "number", "string") },
    { "{'need':'x','b':'true'}", TYPED("b", "boolean", "string") },
    { "{'need':'x','arr':[]}", INVALID("arr", "0") "should have at least 1 items" },
    { "{'need':'x','arr':['a','b','c']}",
      "spec.arr FieldValueTooMany Too many: 3: must have at most 2 items" },
    { "{'need':'x','arr':['abcd']}",
      "spec.arr[0] FieldValueTooLong Too long: may not be more than 3 bytes" },
    { "{'need':'x','arr':[5]}", TYPED("arr[0]", "string", "integer") },
    { "{'need':'x','set':['b','a','b','a','b']}",
      "spec.set[2] FieldValueDuplicate Duplicate value: 'b'; "
      "spec.set[3] FieldValueDuplicate Duplicate value: 'a'; "
      "spec.set[4] FieldValueDuplicate Duplicate value: 'b'" },
    { "{'need':'x','lm':[{'k':'a'},{'k':'a','v':1}]}",
      "spec.lm[1] FieldValueDuplicate Duplicate value: {'k':'a'}" },
    { "{'need':'x','lm':[{}]}", "spec.lm[0].k FieldValueRequired Required value" },
    { "{'need':'x','mp':{}}", INVALID("mp", "0") "should have at least 1 properties" },
    { "{'need':'x','mp':{'a':'a','b':'b','c':'c'}}",
      "spec.mp FieldValueTooMany Too many: 3: must have at most 2 items" },
    { "{'need':'x','mp':{'a':''}}", INVALID("mp.a", "''") "should be at least 1 chars long" },
    { "{'need':'x','mp':{'x.y/z':5}}", TYPED("mp.x.y/z", "string", "integer") },
    { "{'need':'x','io':5}", "" },
    { "{'need':'x','io':'5'}", "" },
    { "{'need':'x','io':true}", TYPED("io", "integer,string", "boolean") },
    { "{'need':'x','io':1.5}", TYPED("io", "integer,string", "number") },
    { "{'need':'x','nul':null}", "" },
    { "{'need':'x','emb':{'a':1}}", "spec.emb.apiVersion FieldValueRequired Required value; "
                                    "spec.emb.kind FieldValueRequired Required value" },
    { "{'need':'x','uni':[1,'a',null]}",
      TYPED("uni[1]", "integer", "string") "; " TYPED("uni[2]", "integer", "null") },
    { "{'need':'x','dt':'x'}",
      "spec.dt FieldValueTypeInvalid " IN_BODY("dt", "'x'") "must be of type date-time: 'x'" },
    { "{'need':'x','dt':'2026-11-22T10:00:00Z'}", "" },
    { "{'need':'x','byte':'!!'}",
      "spec.byte FieldValueTypeInvalid " IN_BODY("byte", "'!!'") "must be of type byte: '!!'" },
    { "{'need':'x','anyo':'a'}",
      NONE "'spec.anyo' must validate at least one schema (anyOf); " INVALID(
          "anyo", "'a'") "should be at least 3 chars long" },
    { "{'need':'x','anyo':'xa'}", "" },
    { "{'need':'x','not':'xa'}", NONE "'spec.not' must not validate the schema (not)" },
    { "{'str':'A','en':'x','int':0}",
      INVALID("str", "'A'") "should be at least 2 chars long; "
                            "spec.en FieldValueNotSupported Unsupported value: 'x': supported "
                            "values: 'a', 'b', "
                            "'c'; " INVALID("int",
                                            "0") "should be greater than or equal to 1; "
                                                 "spec.need FieldValueRequired Required value" },
};

static void write_faults(const struct kinf__schema_fault *faults, int n, char *text, size_t size)
{
    size_t len = 0;

    text[0] = '\0';
    for (int i = 0; i < n && i < N_FAULTS; i++)
        len += (size_t)snprintf(text + len, size - len, "%s%s %s %s", i != 0 ? "; " : "",
                                faults[i].field, faults[i].reason, faults[i].message);
    for (char *c = text; *c != '\0'; c++)
        *c = (char)(*c == '"' ? '\'' : *c);
}

static const struct {
    const char *object, *fault; /* the first one's message; NULL: none */
} limit_rows[] = {
    { "{'f':2000000.5}",
      "Invalid value: 2.0000005e+06: f in body should be less than or equal to 1e+06" },
    { "{'f':2000000}",
      "Invalid value: 2000000: f in body should be less than or equal to 1000000" },
    { "{'f':1e300}", "Invalid value: 1e+300: f in body should be less than or equal to 1e+06" },
    { "{'f':12345678901234567890}",
      "Invalid value: 1.2345678901234567e+19: f in body should be less than or equal to 1e+06" },
    { "{'g':1.5}",
      "Invalid value: 1.5: g in body should be greater than or equal to 1.23456785e+07" },
    { "{'g':1}", "Invalid value: 1: g in body should be greater than or equal to 12345678" },
    { "{'m':0.3}", NULL },
    { "{'m':0.15}", "Invalid value: 0.15: m in body should be a multiple of 0.1" },
    { "{'one':6}",
      "Invalid value: '': 'one' must validate one and only one schema (oneOf). Found 2 "
      "valid alternatives" },
    { "{'one':0}",
      "Invalid value: '': 'one' must validate one and only one schema (oneOf). Found none valid" },
    { "{'one':2}", NULL },
    { "{'all':3}", "Invalid value: 3: all in body should be greater than or equal to 5" },
    { "{'mx':[1,2]}", "Too many: 2: must have at most 1 item" },
    { "{'num':3}", "Unsupported value: 3: supported values: '1', '2.5'" },
    { "{'d':'2020-13-01'}",
      "Invalid value: '2020-13-01': d in body must be of type date: '2020-13-01'" },
    { "{'d':'2020-12-01'}", NULL },
    { "{'u':'x'}", "Invalid value: 'x': u in body must be of type uuid: 'x'" },
    { "{'u':'d734d80a-034a-47d1-918f-8b679edf2868'}", NULL },
};

static void limits_are_printed_as_go_does(void **state)
{
    struct kinf__schema *schema = NULL;
    struct kinf__schema_fault fault;
    const struct kinf__schema_node *node;

    (void)state;
    assert_int_equal(make(limits, &schema), 0);
    node = kinf__schema_find(schema, "", "", "");
    for (size_t i = 0; i < N(limit_rows); i++) {
        KINF__AUTO_DOC *tree = parse_quoted(limit_rows[i].object);
        int n = kinf__schema_validate(node, tree, &fault, 1);

        assert_int_equal(n != 0, limit_rows[i].fault != NULL);
        for (char *c = fault.message; n != 0 && *c != '\0'; c++)
            *c = (char)(*c == '"' ? '\'' : *c);
        if (n != 0)
            assert_string_equal(fault.message, limit_rows[i].fault);
    }
    kinf__schema_free(schema);
}

static void values_are_faulted_in_the_servers_words(void **state)
{
    struct kinf__schema_fault faults[N_FAULTS];
    char json[512], text[4096];

    (void)state;
    for (size_t i = 0; i < N(validations); i++) {
        KINF__AUTO_DOC *tree = NULL;
        int n;

        snprintf(json, sizeof json, "{'spec':%s}", validations[i].spec);
        tree = parse_quoted(json);
        n = kinf__schema_validate(root(), tree, faults, N_FAULTS);
        write_faults(faults, n, text, sizeof text);
        if (strcmp(text, validations[i].faults) != 0)
            fail_msg("%s\ngot  %s\nwant %s", validations[i].spec, text, validations[i].faults);
    }
}

static void faults_beyond_the_room_are_counted(void **state)
{
    KINF__AUTO_DOC *tree = parse_quoted("{'spec':{'str':'A','en':'x','int':0}}");
    struct kinf__schema_fault fault;

    (void)state;
    assert_int_equal(kinf__schema_validate(root(), tree, &fault, 1), 4);
    assert_string_equal(fault.field, "spec.str");
    assert_int_equal(kinf__schema_validate(root(), tree, NULL, 0), 4);
    assert_int_equal(kinf__schema_validate(NULL, tree, NULL, 0), 0);
}

/* Each level would double the work. */
static void nested_alternatives_take_no_exponential_time(void **state)
{
    static char text[8192];
    struct kinf__schema *schema = NULL;
    KINF__AUTO_DOC *tree = parse_quoted("{'a':5}");
    struct kinf__schema_fault faults[N_FAULTS];
    size_t len = 0;

    (void)state;
    len += (size_t)snprintf(text, sizeof text, "{'properties':{'a':");
    for (int i = 0; i < 200; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "{'anyOf':[");
    len += (size_t)snprintf(text + len, sizeof text - len, "{'type':'string'}");
    for (int i = 0; i < 200; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "]}");
    snprintf(text + len, sizeof text - len, "}}");
    assert_int_equal(make(text, &schema), 0);
    assert_int_equal(
        kinf__schema_validate(kinf__schema_find(schema, "", "", ""), tree, faults, N_FAULTS), 201);
    kinf__schema_free(schema);
}

static void metadata_is_checked_by_itself(void **state)
{
    static const struct {
        const char *json, *message;
    } rows[] = {
        { "{'metadata':{'labels':{'a':5}},'spec':5}",
          "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string" },
        { "{'metadata':'x'}", "json: cannot unmarshal string into Go value of type v1.ObjectMeta" },
        { "{'metadata':{'generation':'x'}}", "json: cannot unmarshal string into Go struct field "
                                             "ObjectMeta.generation of type int64" },
    };
    struct kinf__refusal refusal;
    char expected[256];

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        KINF__AUTO_DOC *tree = parse_quoted(rows[i].json);

        assert_int_equal(kinf__schema_check_types(root(), tree, "Foo", "v1", &refusal),
                         KINF_ERR_INVALID);
        snprintf(expected, sizeof expected, "Foo in version \"v1\" cannot be handled as a Foo: %s",
                 rows[i].message);
        assert_string_equal(refusal.message, expected);
    }
}

/* --- patterns --- */

static const struct {
    const char *pattern, *text;
    bool is_match;
} matches[] = {
    { "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", true },
    { "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-", false },
    { "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$", "a.b-c",
      true },
    { "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$", "a..b",
      false },
    { "^\\d+(ms|s|m)$", "15s", true },
    { "^\\d+(ms|s|m)$", "s", false },
    { "^\\w+\\s\\S$", "ab_1 x", true },
    { "^\\D\\W$", "1-", false },
    { "^[\\w.-]+$", "a.b-c_d", true },
    { "^[\\w.-]+$", "a/b", false },
    { "^[\\]\\-\\[^]+$", "]-[^", true },
    { "^[\\]\\-\\[^]+$", "a", false },
    { "^[^\\s\\]]+$", "a b", false },
    { "^[^\\s\\]]+$", "ab", true },
    { "^[\\^]$", "^", true },
    { "^[\\^\\-]$", "-", true },
    { "^[\\^\\-]$", "a", false },
    { "^[+-]?[0-9]$", "-1", true },
    { "^(?:a|b)+?$", "ab", true },
    { "^(?P<x>a)$", "a", true },
    { "^a{2,3}$", "aaaa", false },
    { "^a{,3}$", "a{,3}", true },
    { "a{b", "xa{bx", true },
    { "^https?:\\/\\/.+$", "http://x", true },
    { "^.$", "\n", false },
    { "\\Aa\\z", "a", true },
    { "^[[:alpha:]]+$", "ab", true },
    { "", "anything", true },
};

static void common_patterns_mean_what_they_mean_in_go(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(matches); i++) {
        struct kinf__pattern *pattern;

        assert_int_equal(kinf__pattern_new(matches[i].pattern, &pattern), 0);
        if (pattern == NULL)
            fail_msg("no pattern: %s", matches[i].pattern);
        if (kinf__pattern_matches(pattern, matches[i].text) != matches[i].is_match)
            fail_msg("%s on %s", matches[i].pattern, matches[i].text);
        kinf__pattern_free(pattern);
    }
}

static void costly_and_foreign_patterns_are_not_tried(void **state)
{
    static const char *const texts[] = {
        "(a)\\1",
        "(?i)a",
        "(?=a)b",
        "[a",
        "(",
        ")",
        "a)",
        "((((a{99}){99}){99}){99})",
        "a{1,30000}",
        "\\p{L}",
        "[\\x00-\\x7f]",
        "\\",
        "[\\",
        "(a{500}){3}",
        "(((((((((((a+)+)+)+)+)+)+)+)+)+)+)+",
        "a{9}{9}{9}{9}",
        "*a",
    };

    (void)state;
    for (size_t i = 0; i < N(texts); i++) {
        struct kinf__pattern *pattern = NULL;

        assert_int_equal(kinf__pattern_new(texts[i], &pattern), 0);
        if (i < N(texts) - 1)
            assert_null(pattern);
        kinf__pattern_free(pattern);
    }
}

/* --- memory --- */

static void a_lack_of_memory_while_making_is_told(void **state)
{
    KINF__AUTO_DOC *tree = parse_quoted(definition);
    bool has_failed = true;

    (void)state;
    for (size_t n = 1; has_failed; n++) {
        struct kinf__schema *schema = NULL;
        int failed;

        test_fail_allocation(n);
        failed = kinf__schema_of_definition(builtin, tree, &schema, NULL);
        has_failed = test_allocation_failed();
        assert_int_equal(failed, has_failed ? KINF_ERR_NO_MEMORY : 0);
        kinf__schema_free(schema);
    }
}

static void a_lack_of_memory_while_validating_is_told(void **state)
{
    KINF__AUTO_DOC *tree = parse_quoted(
        "{'spec':{'str':'AB','en':'x','int':0,'lm':[{'k':'a'},{'k':'a'}],'anyo':'a','dt':'x',"
        "'mp':{'a':5},'num':0.1,'arr':[5,6,7]}}");
    struct kinf__schema_fault faults[N_FAULTS];
    bool has_failed = true;
    int n_faults = kinf__schema_validate(root(), tree, faults, N_FAULTS);

    (void)state;
    assert_true(n_faults > N_FAULTS);
    for (size_t n = 1; has_failed; n++) {
        int failed;

        test_fail_allocation(n);
        failed = kinf__schema_validate(root(), tree, faults, N_FAULTS);
        has_failed = test_allocation_failed();
        assert_int_equal(failed, has_failed ? KINF_ERR_NO_MEMORY : n_faults);
    }
}

static void a_lack_of_memory_while_pruning_is_told(void **state)
{
    bool has_failed = true;

    (void)state;
    for (size_t n = 1; has_failed; n++) {
        KINF__AUTO_BUFFER problems = KINF__BUFFER_INIT;
        KINF__AUTO_DOC *tree = parse_quoted("{'z':1,'spec':{'a':1,'a':2,'lm':[{'u':1,'k':'x'}]}}");
        int failed;

        test_fail_allocation(n);
        failed = kinf__schema_prune(root(), tree, note, &problems);
        if (failed == 0)
            failed = kinf__schema_default(root(), tree);
        has_failed = test_allocation_failed();
        assert_int_equal(failed, has_failed ? KINF_ERR_NO_MEMORY : 0);
    }
}

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(kinf__schema_new(&builtin), 0);
    return make(definition, &custom);
}

static int tear_down(void **state)
{
    (void)state;
    kinf__schema_free(custom);
    kinf__schema_free(builtin);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(definitions_become_nodes),
        cmocka_unit_test(without_a_definition_anything_goes),
        cmocka_unit_test(what_is_no_schema_is_refused),
        cmocka_unit_test(objects_are_pruned_and_filled_in),
        cmocka_unit_test(unknown_metadata_is_told_first),
        cmocka_unit_test(values_are_faulted_in_the_servers_words),
        cmocka_unit_test(limits_are_printed_as_go_does),
        cmocka_unit_test(faults_beyond_the_room_are_counted),
        cmocka_unit_test(nested_alternatives_take_no_exponential_time),
        cmocka_unit_test(metadata_is_checked_by_itself),
        cmocka_unit_test(common_patterns_mean_what_they_mean_in_go),
        cmocka_unit_test(costly_and_foreign_patterns_are_not_tried),
        cmocka_unit_test(a_lack_of_memory_while_making_is_told),
        cmocka_unit_test(a_lack_of_memory_while_validating_is_told),
        cmocka_unit_test(a_lack_of_memory_while_pruning_is_told),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
