/*
 * Strategic merge patches: the rows are what kube-apiserver 1.37.1 made of (the parts that matter of)
 * a Deployment's pod template, its metadata and strategy, and of a Service.
 */
#include <stdio.h>
#include <string.h>

#include "unit/patch_fixture.h"
#include "unit/test.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

/* --- a small schema --- */

#define FIELDS(array) .fields = (array), .n_fields = N(array)
#define LIST_OF(type, key_name)                                                                    \
    .kind = KINF__SCHEMA_LIST, .element = &(type), .merge_key = (key_name)

static const struct kinf__schema_node text = { .kind = KINF__SCHEMA_STRING, .name = "" };
static const struct kinf__schema_node integer = { .kind = KINF__SCHEMA_INTEGER, .name = "" };
static const struct kinf__schema_node texts = { .kind = KINF__SCHEMA_MAP,
                                                .name = "",
                                                .element = &text };
static const struct kinf__schema_node words = { .name = "", LIST_OF(text, NULL) };
static const struct kinf__schema_node word_set = { .name = "", LIST_OF(text, "") };
static const struct kinf__schema_node anything = { .kind = KINF__SCHEMA_ANY, .name = "" };

static const struct kinf__schema_field env_fields[] = { { .name = "name", .node = &text },
                                                        { .name = "value", .node = &text } };
static const struct kinf__schema_node env = { .name = "io.k8s.api.core.v1.EnvVar",
                                              FIELDS(env_fields) };
static const struct kinf__schema_node envs = { .name = "", LIST_OF(env, "name") };

static const struct kinf__schema_field port_fields[] = {
    { .name = "containerPort", .node = &integer },
    { .name = "name", .node = &text },
    { .name = "protocol", .node = &text },
};
static const struct kinf__schema_node port = { .name = "io.k8s.api.core.v1.ContainerPort",
                                               FIELDS(port_fields) };
static const struct kinf__schema_node ports = { .name = "", LIST_OF(port, "containerPort") };

static const struct kinf__schema_field container_fields[] = {
    { .name = "args", .node = &words }, { .name = "env", .node = &envs },
    { .name = "image", .node = &text }, { .name = "limits", .node = &texts },
    { .name = "name", .node = &text },  { .name = "ports", .node = &ports },
};
static const struct kinf__schema_node container = { .name = "io.k8s.api.core.v1.Container",
                                                    FIELDS(container_fields) };
static const struct kinf__schema_node containers = { .name = "", LIST_OF(container, "name") };

static const struct kinf__schema_field volume_fields[] = { { .name = "configMap", .node = &texts },
                                                           { .name = "emptyDir", .node = &texts },
                                                           { .name = "name", .node = &text } };
static const struct kinf__schema_node volume = { .name = "io.k8s.api.core.v1.Volume",
                                                 FIELDS(volume_fields) };
static const struct kinf__schema_node volumes = { .name = "",
                                                  .retains_keys = true,
                                                  LIST_OF(volume, "name") };

static const struct kinf__schema_node toleration = { .name = "io.k8s.api.core.v1.Toleration",
                                                     FIELDS(env_fields) };
static const struct kinf__schema_node tolerations = { .name = "", LIST_OF(toleration, NULL) };

static const struct kinf__schema_node selector = {
    .kind = KINF__SCHEMA_MAP, .name = "", .element = &text, .is_replaced = true
};

static const struct kinf__schema_field pod_fields[] = {
    { .name = "containers", .node = &containers },     { .name = "data", .node = &anything },
    { .name = "initContainers", .node = &containers }, { .name = "nodeSelector", .node = &texts },
    { .name = "replicas", .node = &integer },          { .name = "selector", .node = &selector },
    { .name = "tolerations", .node = &tolerations },   { .name = "volumes", .node = &volumes },
};
static const struct kinf__schema_node pod_spec = { .name = "io.k8s.api.core.v1.PodSpec",
                                                   FIELDS(pod_fields) };

static const struct kinf__schema_field owner_fields[] = { { .name = "name", .node = &text },
                                                          { .name = "uid", .node = &text } };
static const struct kinf__schema_node owner = { .name = "OwnerReference", FIELDS(owner_fields) };
static const struct kinf__schema_node owners = { .name = "", LIST_OF(owner, "uid") };
static const struct kinf__schema_field meta_fields[] = {
    { .name = "finalizers", .node = &word_set },
    { .name = "labels", .node = &texts },
    { .name = "ownerReferences", .node = &owners },
};
static const struct kinf__schema_node meta = { .name = "ObjectMeta", FIELDS(meta_fields) };

static int patch_pod(struct cJSON **tree, const struct cJSON *patch, struct kinf__refusal *refusal)
{
    return kinf__patch_strategic(tree, patch, &pod_spec, refusal);
}

static int patch_meta(struct cJSON **tree, const struct cJSON *patch, struct kinf__refusal *refusal)
{
    return kinf__patch_strategic(tree, patch, &meta, refusal);
}

static int patch_unknown(struct cJSON **tree, const struct cJSON *patch,
                         struct kinf__refusal *refusal)
{
    return kinf__patch_strategic(tree, patch, NULL, refusal);
}

/* --- maps --- */

#define LABELS "{'labels':{'l':'1','m':'2'}}"

static const struct test_patch_row map_rows[] = {
    { LABELS, "null", LABELS, 0, NULL },
    { LABELS, "{}", LABELS, 0, NULL },
    { LABELS, "{'labels':{}}", LABELS, 0, NULL },
    { LABELS, "{'labels':{'l':null,'n':'3'}}", "{'labels':{'m':'2','n':'3'}}", 0, NULL },
    { LABELS, "{'labels':null}", "{}", 0, NULL },
    { LABELS, "{'labels':{'a':{'$patch':'delete'}}}", LABELS, 0, NULL },
    { LABELS, "{'labels':{'l':{'$patch':'delete'}}}", "{'labels':{'m':'2'}}", 0, NULL },
    { LABELS, "{'labels':{'x':{'$patch':'delete'},'y':'1'}}",
      "{'labels':{'l':'1','m':'2','y':'1'}}", 0, NULL },
    { "{}", "{'labels':{'l':null,'n':'3'}}", "{'labels':{'n':'3'}}", 0, NULL },
    { "{}", "{'labels':{'$patch':'delete'}}", "{}", 0, NULL },
    { "{'labels':null}", "{'labels':{'n':'3'}}", "{'labels':{'n':'3'}}", 0, NULL },
    { LABELS, "{'labels':{'$patch':'replace','n':'3'}}", "{'labels':{'n':'3'}}", 0, NULL },
    { LABELS, "{'labels':{'$patch':'replace','n':'3','y':null}}", "{'labels':{'n':'3','y':null}}",
      0, NULL },
    { LABELS, "{'labels':{'$patch':'delete','n':'3'}}", "{'labels':{}}", 0, NULL },
    { LABELS, "{'$patch':'delete'}", "{}", 0, NULL },
    { LABELS, "{'$patch':'replace','labels':{'a':'b'}}", "{'labels':{'a':'b'}}", 0, NULL },
    { LABELS, "{'labels':{'n':'3'},'labels':{'o':'3'}}", "{'labels':{'l':'1','m':'2','o':'3'}}", 0,
      NULL },
    { LABELS, "{'labels':{'$patch':'merge','n':'3'}}", NULL, 500,
      "unknown patch type: merge in map: map[$patch:merge n:3]" },
    { LABELS, "{'labels':{'$patch':'frob','n':'3'}}", NULL, 500,
      "unknown patch type: frob in map: map[$patch:frob n:3]" },
    { LABELS, "{'labels':{'$patch':null}}", NULL, 500,
      "unknown patch type: %!s(<nil>) in map: map[$patch:<nil>]" },
    { LABELS, "{'labels':{'$patch':1}}", NULL, 500,
      "unknown patch type: %!s(int64=1) in map: map[$patch:1]" },
    { LABELS, "{'labels':{'$patch':{'a':[1,'b',null,true,1.5,1e+21]}}}", NULL, 500,
      "unknown patch type: map[a:[%!s(int64=1) b <nil> %!s(bool=true) %!s(float64=1.5) "
      "%!s(float64=1e+21)]] in map: map[$patch:map[a:[1 b <nil> true 1.5 1e+21]]]" },
    { LABELS, "{'labels':{'$retainKeys':['l']}}", "{'labels':{'l':'1'}}", 0, NULL },
    { LABELS, "{'labels':{'$retainKeys':['l','n'],'n':'3'}}", "{'labels':{'l':'1','n':'3'}}", 0,
      NULL },
    { LABELS, "{'labels':{'$retainKeys':['l'],'m':null}}", "{'labels':{'l':'1'}}", 0, NULL },
    { LABELS, "{'labels':{'$retainKeys':['l'],'n':'3'}}", NULL, 400,
      "invalid patch format of retainKeys" },
    { LABELS, "{'labels':{'$retainKeys':'l'}}", NULL, 400, "invalid patch format of retainKeys" },
    { LABELS, "{'labels':{'$retainKeys':null}}", NULL, 400, "invalid patch format of retainKeys" },
    { LABELS, "[]", NULL, 400,
      "json: cannot unmarshal array into Go value of type map[string]interface {}" },
    { LABELS, "1", NULL, 400,
      "json: cannot unmarshal number into Go value of type map[string]interface {}" },
    { LABELS, "'x'", NULL, 400,
      "json: cannot unmarshal string into Go value of type map[string]interface {}" },
};

static void maps_are_merged(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(map_rows); i++)
        test_patch_row(&map_rows[i], patch_meta);
}

/* --- lists of objects --- */

#define ABC                                                                                        \
    "{'containers':[{'name':'a','image':'1'},{'name':'b','image':'2'},{'name':'c','image':'3'}]}"
#define ENV                                                                                        \
    "{'containers':[{'name':'a','env':[{'name':'A','value':'1'},{'name':'B','value':'2'},{'name':" \
    "'C','value':'3'}]}]}"
#define PORTS                                                                                      \
    "{'containers':[{'name':'a','ports':[{'containerPort':80,'name':'http'},{'containerPort':81,'" \
    "name':'udp'}]}]}"
#define VOLUMES "{'volumes':[{'name':'v1','emptyDir':{}},{'name':'v2','configMap':{'name':'c'}}]}"

static const struct test_patch_row list_rows[] = {
    { ABC, "{'containers':[{'name':'a','image':'z'}]}",
      "{'containers':[{'name':'a','image':'z'},{'name':'b','image':'2'},{'name':'c','image':'3'}]}",
      0, NULL },
    /* what is new comes first, as near to its neighbours of the patch as the old order lets it */
    { ABC, "{'containers':[{'name':'x','image':'z'}]}",
      "{'containers':[{'name':'x','image':'z'},{'name':'a','image':'1'},{'name':'b','image':'2'},{'"
      "name':'c','image':'3'}]}",
      0, NULL },
    { ABC, "{'containers':[{'name':'c','image':'z'},{'name':'a','image':'q'}]}",
      "{'containers':[{'name':'b','image':'2'},{'name':'c','image':'z'},{'name':'a','image':'q'}]}",
      0, NULL },
    { ABC, "{'containers':[{'name':'x'},{'name':'c'},{'name':'y'},{'name':'a'}]}",
      "{'containers':[{'name':'x'},{'name':'b','image':'2'},{'name':'c','image':'3'},{'name':'y'},{"
      "'"
      "name':'a','image':'1'}]}",
      0, NULL },
    { ABC, "{'containers':[]}", ABC, 0, NULL },
    { ABC, "{'containers':null}", "{}", 0, NULL },
    { ABC, "{'containers':{'name':'a'}}", "{'containers':{'name':'a'}}", 0, NULL },
    { ABC, "{'containers':[{'name':'b','$patch':'delete'}]}",
      "{'containers':[{'name':'a','image':'1'},{'name':'c','image':'3'}]}", 0, NULL },
    { ABC, "{'containers':[{'name':'zz','$patch':'delete'}]}", ABC, 0, NULL },
    { ABC, "{'containers':[{'name':'a','$patch':'delete'},{'name':'a','image':'new'}]}",
      "{'containers':[{'name':'a','image':'new'},{'name':'b','image':'2'},{'name':'c','image':'3'}]"
      "}",
      0, NULL },
    { ABC, "{'containers':[{'$patch':'replace'},{'name':'x'}]}", "{'containers':[{'name':'x'}]}", 0,
      NULL },
    { ABC, "{'containers':[{'name':'x'},{'$patch':'replace'}]}", "{'containers':[{'name':'x'}]}", 0,
      NULL },
    { ABC, "{'containers':[{'name':'b','$patch':'replace','image':'z'}]}", "{'containers':[]}", 0,
      NULL },
    { ABC, "{'containers':[{'name':'a','image':'1'},{'name':'a','image':'2'}]}",
      "{'containers':[{'name':'a','image':'2'},{'name':'b','image':'2'},{'name':'c','image':'3'}]}",
      0, NULL },
    { ABC, "{'containers':[{'name':'x','image':'1'},{'name':'x','image':'2'}]}",
      "{'containers':[{'name':'x','image':'2'},{'name':'a','image':'1'},{'name':'b','image':'2'},{'"
      "name':'c','image':'3'}]}",
      0, NULL },
    { ABC, "{'containers':[{'name':'b','$patch':'merge'}]}", NULL, 500,
      "merging lists cannot yet be specified in the patch" },
    { ABC, "{'containers':[{'name':'b','$patch':'frob','image':'z'}]}", NULL, 500,
      "unknown patch type: frob in map: map[$patch:frob image:z name:b]" },
    { ABC, "{'containers':[{'$patch':'delete'}]}", NULL, 500,
      "map: map[$patch:delete] does not contain declared merge key: name" },
    { ABC, "{'containers':[{'image':'z','env':[{'x':1}]}]}", NULL, 500,
      "map: map[env:[map[x:1]] image:z] does not contain declared merge key: name" },
    { "{'containers':[{'image':'z'}]}", "{'containers':[{'name':'a'}]}", NULL, 500,
      "map: map[image:z] does not contain declared merge key: name" },
    { ABC, "{'containers':['a']}", NULL, 500,
      "list element types are not identical: [[map[image:1 name:a] map[image:2 name:b] map[image:3 "
      "name:c]] [a]]" },
    { ABC, "{'containers':[{'name':'a'},null]}", NULL, 500,
      "list element types are not identical: [[map[image:1 name:a] map[image:2 name:b] map[image:3 "
      "name:c]] [map[name:a] <nil>]]" },
    { "{'containers':[]}", "{'containers':[['a']]}", NULL, 422,
      "the server rejected our request due to an error in our request" },
    /* lists in elements */
    { ENV, "{'containers':[{'name':'a','env':[{'name':'B','value':null}]}]}",
      "{'containers':[{'name':'a','env':[{'name':'A','value':'1'},{'name':'B'},{'name':'C','value':"
      "'"
      "3'}]}]}",
      0, NULL },
    { ENV,
      "{'containers':[{'name':'a','env':[{'name':'D','value':'4'},{'name':'A','$patch':'delete'}]}]"
      "}",
      "{'containers':[{'name':'a','env':[{'name':'D','value':'4'},{'name':'B','value':'2'},{'name':"
      "'"
      "C','value':'3'}]}]}",
      0, NULL },
    { ENV, "{'containers':[{'name':'a','env':null}]}", "{'containers':[{'name':'a'}]}", 0, NULL },
    { ENV, "{'containers':[{'name':'a','$setElementOrder/env':[{'name':'C'},{'name':'A'}]}]}",
      "{'containers':[{'name':'a','env':[{'name':'B','value':'2'},{'name':'C','value':'3'},{'name':"
      "'"
      "A','value':'1'}]}]}",
      0, NULL },
    /* numbers are keys, too; 80, 80.0 and "80" are not the same */
    { PORTS, "{'containers':[{'name':'a','ports':[{'containerPort':80,'name':'web'}]}]}",
      "{'containers':[{'name':'a','ports':[{'containerPort':80,'name':'web'},{'containerPort':81,'"
      "name':'udp'}]}]}",
      0, NULL },
    { PORTS, "{'containers':[{'name':'a','ports':[{'containerPort':80.0,'name':'x'}]}]}",
      "{'containers':[{'name':'a','ports':[{'containerPort':80.0,'name':'x'},{'containerPort':80,'"
      "name':'http'},{'containerPort':81,'name':'udp'}]}]}",
      0, NULL },
    { PORTS, "{'containers':[{'name':'a','ports':[{'containerPort':81,'$patch':'delete'}]}]}",
      "{'containers':[{'name':'a','ports':[{'containerPort':80,'name':'http'}]}]}", 0, NULL },
    { PORTS, "{'containers':[{'name':'a','ports':[{'name':'x'}]}]}", NULL, 500,
      "map: map[name:x] does not contain declared merge key: containerPort" },
    /* of two with the same key the first is merged, and both are deleted */
    { "{'containers':[{'name':'a','ports':[{'containerPort':5},{'containerPort':5,'protocol':'UDP'}"
      "]}]"
      "}",
      "{'containers':[{'name':'a','ports':[{'containerPort':5,'name':'n'}]}]}",
      "{'containers':[{'name':'a','ports':[{'containerPort':5,'name':'n'},{'containerPort':5,'"
      "protocol':'UDP'}]}]}",
      0, NULL },
    { "{'containers':[{'name':'a','ports':[{'containerPort':5},{'containerPort':5,'protocol':'UDP'}"
      "]}]"
      "}",
      "{'containers':[{'name':'a','ports':[{'containerPort':5,'$patch':'delete'}]}]}",
      "{'containers':[{'name':'a','ports':[]}]}", 0, NULL },
    /* $retainKeys in elements */
    { VOLUMES,
      "{'volumes':[{'name':'v1','$retainKeys':['name','configMap'],'configMap':{'name':'c'}}]}",
      "{'volumes':[{'name':'v1','configMap':{'name':'c'}},{'name':'v2','configMap':{'name':'c'}}]}",
      0, NULL },
    { VOLUMES, "{'volumes':[{'name':'v1','configMap':{'name':'c'}}]}",
      "{'volumes':[{'name':'v1','emptyDir':{},'configMap':{'name':'c'}},{'name':'v2','configMap':{'"
      "name':'c'}}]}",
      0, NULL },
    /* a new element is taken as it is */
    { VOLUMES, "{'volumes':[{'name':'v9','$retainKeys':['name'],'emptyDir':null}]}",
      "{'volumes':[{'name':'v9','$retainKeys':['name'],'emptyDir':null},{'name':'v1','emptyDir':{}}"
      ","
      "{'name':'v2','configMap':{'name':'c'}}]}",
      0, NULL },
    /* a new list without its directives */
    { "{}",
      "{'initContainers':[{'name':'i','env':[{'name':'A','$patch':'delete'},{'name':'B','value':'1'"
      "}]"
      "},{'$patch':'replace'},{'name':'j','$patch':'delete'},{'image':null}]}",
      "{'initContainers':[{'name':'i','env':[{'name':'B','value':'1'}]},{}]}", 0, NULL },
    /* lists that are not merged */
    { "{'tolerations':[{'key':'k1'},{'key':'k2'}]}", "{'tolerations':[{'key':'k1','value':'v'}]}",
      "{'tolerations':[{'key':'k1','value':'v'}]}", 0, NULL },
    { "{'tolerations':[{'key':'k1'}]}", "{'tolerations':[{'$patch':'replace'},{'key':'k9'}]}",
      "{'tolerations':[{'$patch':'replace'},{'key':'k9'}]}", 0, NULL },
    { "{'containers':[{'name':'a','args':['1','2']}]}",
      "{'containers':[{'name':'a','args':['3',null]}]}",
      "{'containers':[{'name':'a','args':['3',null]}]}", 0, NULL },
    { "{'containers':[{'name':'a','args':['1','2']}]}",
      "{'containers':[{'name':'a','$deleteFromPrimitiveList/args':['1']}]}",
      "{'containers':[{'name':'a','args':['2']}]}", 0, NULL },
    { "{'containers':[{'name':'a','args':['1','2']}]}",
      "{'containers':[{'name':'a','$setElementOrder/args':['2','1','3'],'args':['3']}]}",
      "{'containers':[{'name':'a','args':['3']}]}", 0, NULL },
    { "{'containers':[{'name':'a','args':['1','2']}]}",
      "{'containers':[{'name':'a','$setElementOrder/args':['2','1']}]}",
      "{'containers':[{'name':'a','args':['2','1']}]}", 0, NULL },
    { "{'nodeSelector':{'a':'1','b':'2'}}", "{'nodeSelector':['b']}", "{'nodeSelector':['b']}", 0,
      NULL },
    { "{'selector':{'a':'1'}}", "{'selector':{'b':'2'}}", "{'selector':{'b':'2'}}", 0, NULL },
    { "{'replicas':1}", "{'replicas':{'$patch':'delete'}}", "{}", 0, NULL },
    { "{'data':{'a':{'b':1},'l':[1]}}", "{'data':{'a':{'c':2},'l':[2]}}",
      "{'data':{'a':{'b':1,'c':2},'l':[2]}}", 0, NULL },
};

static void lists_are_merged_by_their_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(list_rows); i++)
        test_patch_row(&list_rows[i], patch_pod);
}

/* --- $setElementOrder --- */

#define A_B_C            "{'containers':[{'name':'a'},{'name':'b'},{'name':'c'}]}"
#define ORDERED(x, y, z) "{'containers':[{'name':'" x "'},{'name':'" y "'},{'name':'" z "'}]}"

static const struct test_patch_row order_rows[] = {
    { A_B_C, "{'$setElementOrder/containers':[{'name':'c'},{'name':'a'},{'name':'b'}]}",
      ORDERED("c", "a", "b"), 0, NULL },
    { A_B_C, "{'$setElementOrder/containers':[{'name':'c'},{'name':'a'}]}", ORDERED("b", "c", "a"),
      0, NULL },
    { A_B_C, "{'$setElementOrder/containers':[{'name':'c'},{'name':'b'}]}", ORDERED("a", "c", "b"),
      0, NULL },
    { A_B_C, "{'$setElementOrder/containers':[{'name':'b'},{'name':'a'}]}", ORDERED("b", "a", "c"),
      0, NULL },
    { A_B_C, "{'$setElementOrder/containers':[]}", A_B_C, 0, NULL },
    { A_B_C,
      "{'$setElementOrder/"
      "containers':[{'name':'c'},{'name':'x'},{'name':'a'}],'containers':[{'name':"
      "'x'}]}",
      "{'containers':[{'name':'b'},{'name':'c'},{'name':'x'},{'name':'a'}]}", 0, NULL },
    { A_B_C,
      "{'$setElementOrder/"
      "containers':[{'name':'x'},{'name':'c'},{'name':'a'}],'containers':[{'name':"
      "'x'},{'name':'b','$patch':'delete'}]}",
      ORDERED("x", "c", "a"), 0, NULL },
    { A_B_C,
      "{'$setElementOrder/"
      "containers':[{'name':'a'},{'name':'zz'},{'name':'c'}],'containers':[{'name'"
      ":'c','image':'q'}]}",
      "{'containers':[{'name':'a'},{'name':'b'},{'name':'c','image':'q'}]}", 0, NULL },
    { A_B_C, "{'$setElementOrder/containers':[{'name':'c'},{'name':'a'}],'containers':[]}",
      ORDERED("b", "c", "a"), 0, NULL },
    { A_B_C,
      "{'containers':[{'$patch':'replace'},{'name':'b','image':'x'}],'$setElementOrder/"
      "containers':[{"
      "'name':'b'},{'name':'a'}]}",
      "{'containers':[{'name':'b','image':'x'}]}", 0, NULL },
    /* a list that is new */
    { "{}",
      "{'$setElementOrder/"
      "initContainers':[{'name':'j'},{'name':'i'}],'initContainers':[{'name':'j'},"
      "{'name':'i'}]}",
      "{'initContainers':[{'name':'j'},{'name':'i'}]}", 0, NULL },
    { "{}",
      "{'$setElementOrder/"
      "initContainers':[{'name':'j'},{'name':'i'}],'initContainers':[{'name':'k','"
      "$patch':'delete'},{'name':'i'}]}",
      "{'initContainers':[{'name':'i'}]}", 0, NULL },
    { "{}", "{'$setElementOrder/initContainers':[],'initContainers':[{'name':'i'}]}",
      "{'initContainers':[{'name':'i'}]}", 0, NULL },
    { "{}", "{'$setElementOrder/initContainers':[{'name':'q'}]}", "{}", 0, NULL },
    { "{'initContainers':[]}", "{'$setElementOrder/initContainers':[{'name':'q'}]}",
      "{'initContainers':[]}", 0, NULL },
    { "{}", "{'$setElementOrder/initContainers':[],'initContainers':[]}", NULL, 500,
      "no elements in any of the given slices" },
    /* an order that is none */
    { A_B_C,
      "{'$setElementOrder/containers':[{'name':'c'},{'name':'a'}],'containers':[{'name':'x'}]}",
      NULL, 500,
      "The order in patch list:\n[map[name:x]]\n doesn't match $setElementOrder "
      "list:\n[map[name:c] "
      "map[name:a]]\n" },
    { A_B_C,
      "{'$setElementOrder/"
      "containers':[{'name':'c'},{'name':'a'}],'containers':[{'name':'a','image':'"
      "z'},{'name':'c','image':'z'}]}",
      NULL, 500,
      "The order in patch list:\n[map[image:z name:a] map[image:z name:c]]\n doesn't match "
      "$setElementOrder list:\n[map[name:c] map[name:a]]\n" },
    { A_B_C, "{'$setElementOrder/containers':null}", NULL, 500,
      "expected a []interface {}, but received a %!s(<nil>)" },
    { A_B_C, "{'$setElementOrder/containers':'x'}", NULL, 500,
      "expected a []interface {}, but received a string" },
    { A_B_C, "{'$setElementOrder/containers':['a']}", NULL, 500, "value for key 0 is not a map" },
    { A_B_C, "{'$setElementOrder/containers':[{'x':'a'}]}", NULL, 500,
      "map: map[x:a] does not contain declared merge key: name" },
    { A_B_C, "{'$setElementOrder/containers':[{'name':'a'},{'x':1}],'containers':[{'name':'a'}]}",
      NULL, 500, "map: map[x:1] does not contain declared merge key: name" },
    { A_B_C, "{'$setElementOrder/containers':[{'name':'c'},{'name':'a'}],'containers':null}", NULL,
      500, "expected a []interface {}, but received a %!s(<nil>)" },
    { A_B_C, "{'$setElementOrder':[{'name':'a'}]}", NULL, 400,
      "invalid patch format of setElementOrder list" },
    { A_B_C, "{'$setElementOrder/zzz':[{'name':'a'}]}", NULL, 500,
      "unable to find api field in struct PodSpec for the json field \"zzz\"" },
    { A_B_C, "{'$setElementOrder/':[{'name':'a'}]}", NULL, 500,
      "unable to find api field in struct PodSpec for the json field \"\"" },
    { "{'nodeSelector':{'a':'1'}}", "{'$setElementOrder/nodeSelector':[{'name':'a'}]}", NULL, 500,
      "expected a []interface {}, but received a map[string]interface {}" },
};

static void lists_are_put_in_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(order_rows); i++)
        test_patch_row(&order_rows[i], patch_pod);
}

/* --- sets, owners --- */

#define C_D   "{'finalizers':['c','d']}"
#define U1_U2 "{'ownerReferences':[{'uid':'u1','name':'c'},{'uid':'u2','name':'c2'}]}"

static const struct test_patch_row set_rows[] = {
    { "{'finalizers':['c']}", "{'finalizers':['e']}", "{'finalizers':['e','c']}", 0, NULL },
    { "{'finalizers':['c']}", "{'finalizers':['e','c']}", "{'finalizers':['e','c']}", 0, NULL },
    { "{'finalizers':['c']}", "{'finalizers':['c','e']}", "{'finalizers':['c','e']}", 0, NULL },
    { "{'finalizers':['c']}", "{'finalizers':['e','f','e']}", "{'finalizers':['e','f','c']}", 0,
      NULL },
    { "{'finalizers':['c','d','c']}", "{'finalizers':['e']}", "{'finalizers':['e','c','d']}", 0,
      NULL },
    { C_D, "{'finalizers':[]}", C_D, 0, NULL },
    { C_D, "{'finalizers':null}", "{}", 0, NULL },
    { "{}", "{'finalizers':['e']}", "{'finalizers':['e']}", 0, NULL },
    { C_D, "{'finalizers':[null]}", NULL, 500,
      "list element types are not identical: [[c d] [<nil>]]" },
    { C_D, "{'finalizers':[1]}", NULL, 500, "list element types are not identical: [[c d] [1]]" },
    { C_D, "{'finalizers':[['x']]}", NULL, 500,
      "list element types are not identical: [[c d] [[x]]]" },
    { C_D, "{'finalizers':[{'$patch':'replace'},'e']}", NULL, 500,
      "list element types are not identical: [[c d] [map[$patch:replace] e]]" },
    { C_D, "{'$deleteFromPrimitiveList/finalizers':['c']}", "{'finalizers':['d']}", 0, NULL },
    { C_D, "{'$deleteFromPrimitiveList/finalizers':['c','d']}", "{'finalizers':[]}", 0, NULL },
    { "{'finalizers':['c']}",
      "{'$deleteFromPrimitiveList/finalizers':['c','x'],'finalizers':['f']}",
      "{'finalizers':['f']}", 0, NULL },
    { "{'finalizers':['c']}",
      "{'$deleteFromPrimitiveList/finalizers':['c'],'$setElementOrder/finalizers':['f','d'],'"
      "finalizers':['f']}",
      "{'finalizers':['f']}", 0, NULL },
    { C_D, "{'$deleteFromPrimitiveList/finalizers':'c'}", C_D, 0, NULL },
    { C_D, "{'$deleteFromPrimitiveList/finalizers':null}", "{}", 0, NULL },
    { C_D, "{'$deleteFromPrimitiveList/':['c']}", C_D, 0, NULL },
    { C_D, "{'$deleteFromPrimitiveList/zzz':['c']}", C_D, 0, NULL },
    { LABELS, "{'$deleteFromPrimitiveList/labels':['l']}", LABELS, 0, NULL },
    { C_D, "{'$deleteFromPrimitiveList/finalizers':[1]}", NULL, 500,
      "list element types are not identical: [[c d] [1]]" },
    { C_D, "{'$deleteFromPrimitiveList':['c']}", NULL, 400,
      "invalid patch format of primitive list" },
    { C_D, "{'$deleteFromPrimitiveListx/finalizers':['c']}", NULL, 400,
      "invalid patch format of primitive list" },
    { C_D, "{'$setElementOrder/finalizers':['d','c']}", "{'finalizers':['d','c']}", 0, NULL },
    { C_D, "{'$setElementOrder/finalizers':['d']}", C_D, 0, NULL },
    { "{'finalizers':['c']}", "{'$setElementOrder/finalizers':['z','c'],'finalizers':['z']}",
      "{'finalizers':['z','c']}", 0, NULL },
    { "{'finalizers':['c']}", "{'$setElementOrder/finalizers':['c','z'],'finalizers':['z']}",
      "{'finalizers':['c','z']}", 0, NULL },
    { "{'finalizers':['c']}", "{'$setElementOrder/finalizers':[],'finalizers':['z','w']}",
      "{'finalizers':['c','w','z']}", 0, NULL },
    { C_D, "{'$setElementOrder/finalizers':['d'],'finalizers':['z']}", NULL, 500,
      "The order in patch list:\n[z]\n doesn't match $setElementOrder list:\n[d]\n" },
    { C_D, "{'$setElementOrder/finalizers':[{'a':1}],'finalizers':['z']}", NULL, 500,
      "The order in patch list:\n[z]\n doesn't match $setElementOrder list:\n[map[a:1]]\n" },
    { U1_U2, "{'ownerReferences':[{'uid':'u1','$patch':'delete'}]}",
      "{'ownerReferences':[{'uid':'u2','name':'c2'}]}", 0, NULL },
    { U1_U2, "{'ownerReferences':[{'uid':'u2','controller':true},{'uid':'u3','name':'c3'}]}",
      "{'ownerReferences':[{'uid':'u1','name':'c'},{'uid':'u2','name':'c2','controller':true},{'"
      "uid':"
      "'u3','name':'c3'}]}",
      0, NULL },
    { U1_U2, "{'$setElementOrder/ownerReferences':[{'uid':'u2'},{'uid':'u1'}]}",
      "{'ownerReferences':[{'uid':'u2','name':'c2'},{'uid':'u1','name':'c'}]}", 0, NULL },
    { U1_U2, "{'ownerReferences':[{'name':'c','apiVersion':'v1'}]}", NULL, 500,
      "map: map[apiVersion:v1 name:c] does not contain declared merge key: uid" },
};

static void scalars_are_sets(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(set_rows); i++)
        test_patch_row(&set_rows[i], patch_meta);
}

static const struct test_patch_row unknown_rows[] = {
    { "{'a':{'b':1,'l':[1]}}", "{'a':{'c':2,'l':[2]}}", "{'a':{'b':1,'c':2,'l':[2]}}", 0, NULL },
    { "{'l':[1,2,3]}", "{'$setElementOrder/l':[3,1,2]}", "{'l':[3,1,2]}", 0, NULL },
    { "{'l':[1,2,3]}", "{'$deleteFromPrimitiveList/l':[2]}", "{'l':[1,3]}", 0, NULL },
    { "{'l':[{'a':1}]}", "{'$deleteFromPrimitiveList/l':[{'a':1}]}", NULL, 500,
      "cannot merge lists without merge key for struct" },
};

static void without_a_schema_lists_are_replaced(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(unknown_rows); i++)
        test_patch_row(&unknown_rows[i], patch_unknown);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(map_rows); i++)
        test_patch_row_without_memory(&map_rows[i], patch_meta);
    for (size_t i = 0; i < N(list_rows); i++)
        test_patch_row_without_memory(&list_rows[i], patch_pod);
    for (size_t i = 0; i < N(order_rows); i++)
        test_patch_row_without_memory(&order_rows[i], patch_pod);
    for (size_t i = 0; i < N(set_rows); i++)
        test_patch_row_without_memory(&set_rows[i], patch_meta);
}

static void append_elements(struct kinf__buffer *out, int first, int n)
{
    for (int i = first; i < first + n; i++)
        assert_int_equal(kinf__buffer_printf(out, "%s{'name':'k%d','value':'%d'}",
                                             i != first ? "," : "", i, first),
                         0);
}

/* Some megabytes, which a walk for each element would make minutes of. */
static void large_lists_are_merged_at_once(void **state)
{
    KINF__AUTO_BUFFER before = KINF__BUFFER_INIT;
    KINF__AUTO_BUFFER patch_text = KINF__BUFFER_INIT;
    KINF__AUTO_DOC *tree = NULL;
    KINF__AUTO_DOC *patch = NULL;
    struct kinf__refusal refusal;

    (void)state;
    assert_int_equal(kinf__buffer_printf(&before, "{'containers':["), 0);
    append_elements(&before, 0, 60000);
    assert_int_equal(kinf__buffer_printf(&before, "]}"), 0);
    assert_int_equal(kinf__buffer_printf(&patch_text, "{'containers':["), 0);
    append_elements(&patch_text, 30000, 60000);
    assert_int_equal(kinf__buffer_printf(&patch_text, "],'$setElementOrder/containers':["), 0);
    append_elements(&patch_text, 30000, 60000);
    assert_int_equal(kinf__buffer_printf(&patch_text, "]}"), 0);
    tree = test_json(kinf__buffer_cstr(&before));
    patch = test_json(kinf__buffer_cstr(&patch_text));
    assert_int_equal(patch_pod(&tree, patch, &refusal), 0);
    assert_int_equal(cJSON_GetArraySize(kinf__doc_get(tree, "containers")), 90000);
    assert_string_equal(
        kinf__doc_text(cJSON_GetArrayItem(kinf__doc_get(tree, "containers"), 0), "value", NULL),
        "0");
    assert_string_equal(
        kinf__doc_text(cJSON_GetArrayItem(kinf__doc_get(tree, "containers"), 89999), "name", NULL),
        "k89999");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_are_merged),
        cmocka_unit_test(lists_are_merged_by_their_keys),
        cmocka_unit_test(lists_are_put_in_order),
        cmocka_unit_test(scalars_are_sets),
        cmocka_unit_test(without_a_schema_lists_are_replaced),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(large_lists_are_merged_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
