/*
 * Managed fields of writes that are not applied: recorded lives of objects, and what clients may do
 * to the list.
 */
#include "document/managed.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "unit/allocation.h"
#include "unit/managed_fixture.h"
#include "unit/test.h"

/* clang-format off */
static const struct test_step owners[] = {
    { CREATE, "u", "",
      "{'metadata':{'labels':{'app':'q'},'annotations':{'k/l':'v'},"
      "'finalizers':['example.org/f']},'data':{'x':'1'}}",
      "u Update v1 @0: data{. x} metadata{annotations{. k/l} finalizers{. [=example.org/f]} "
      "labels{. app}}\n",
      "{'metadata':{'labels':{'app':'q'},'annotations':{'k/l':'v'},"
      "'finalizers':['example.org/f']},'data':{'x':'1'}}" },
    { MERGE, "v", "",
      "{'data':{'x':'2'}}",
      "u Update v1 @0: data metadata{annotations{. k/l} finalizers{. [=example.org/f]} labels{. "
      "app}}\n"
      "v Update v1 @1: data{x}\n",
      "{'metadata':{'labels':{'app':'q'},'annotations':{'k/l':'v'},"
      "'finalizers':['example.org/f']},'data':{'x':'2'}}" },
    { MERGE, "v", "",
      "{'data':null}",
      "u Update v1 @0: metadata{annotations{. k/l} finalizers{. [=example.org/f]} labels{. "
      "app}}\n",
      "{'metadata':{'labels':{'app':'q'},'annotations':{'k/l':'v'},"
      "'finalizers':['example.org/f']}}" },
    { MERGE, "w", "",
      "{'metadata':{'finalizers':['example.org/f','example.org/g']}}",
      "u Update v1 @0: metadata{annotations{. k/l} finalizers{. [=example.org/f]} labels{. "
      "app}}\n"
      "w Update v1 @3: metadata{finalizers{[=example.org/g]}}\n",
      "{'metadata':{'labels':{'app':'q'},'annotations':{'k/l':'v'},'finalizers':['example.org/f',"
      "'example.org/g']}}" },
    { MERGE, "w", "",
      "{'metadata':{'finalizers':null}}",
      "u Update v1 @0: metadata{annotations{. k/l} labels{. app}}\n",
      "{'metadata':{'labels':{'app':'q'},'annotations':{'k/l':'v'}}}" },
};

static const struct test_step created[] = {
    { CREATE, "u", "",
      "{'spec':{'containers':[{'args':['x'],'env':[{'name':'E','value':'1'}],'image':'i',"
      "'name':'c','ports':[{'port':80,'protocol':'TCP'},{'port':443,'protocol':'UDP'}]}],"
      "'free':{'m':{'e':{},'n':[1,{'z':1}]}},'labels':{'x':'y'},'numbers':[3,20],'order':['1'],"
      "'replicas':1,'selector':{'a':'b'},'tags':['p','q'],'template':{}}}",
      "u Update example.org/v1 @0: spec{. containers{. [name=c]{. args env{. [name=E]{. name "
      "value}} image name ports{. [port=443,protocol=UDP]{. port protocol} [port=80,"
      "protocol=TCP]{. port protocol}}}} free{. m{. e n}} labels{. x} numbers{. [=20] [=3]} "
      "order replicas selector tags{. [=p] [=q]} template}\n",
      "{'spec':{'containers':[{'args':['x'],'env':[{'name':'E','value':'1'}],'image':'i',"
      "'name':'c','ports':[{'port':80,'protocol':'TCP'},{'port':443,'protocol':'UDP'}]}],"
      "'free':{'m':{'e':{},'n':[1,{'z':1}]}},'labels':{'x':'y'},'numbers':[3,20],'order':['1'],"
      "'replicas':1,'selector':{'a':'b'},'tags':['p','q'],'template':{}}}" },
};

static const struct test_step emptied[] = {
    { CREATE, "u", "",
      "{'spec':{'labels':{},'tags':[],'template':{}}}",
      "u Update example.org/v1 @0: spec{. labels tags template}\n",
      "{'spec':{'labels':{},'tags':[],'template':{}}}" },
    { MERGE, "v", "",
      "{'spec':{'labels':{'a':'b'},'tags':['x'],'template':{'size':1}}}",
      "u Update example.org/v1 @0: spec{. labels tags template}\n"
      "v Update example.org/v1 @1: spec{labels{a} tags{[=x]} template{size}}\n",
      "{'spec':{'labels':{'a':'b'},'tags':['x'],'template':{'size':1}}}" },
    { MERGE, "w", "",
      "{'spec':{'labels':{'a':null},'tags':[],'template':{'size':null}}}",
      "u Update example.org/v1 @0: spec{. labels tags template}\n",
      "{'spec':{'labels':{},'tags':[],'template':{}}}" },
    { MERGE, "z", "",
      "{'spec':{'labels':null,'tags':null,'template':null}}",
      "u Update example.org/v1 @0: spec\n",
      "{'spec':{}}" },
};

static const struct test_step changed_lists[] = {
    { APPLY, "a", "",
      "{'data':{'x':'1'}}",
      "a Apply v1 @0: data{x}\n",
      "{'data':{'x':'1'}}" },
    { MERGE, "u", "",
      "{'metadata':{'managedFields':[]}}",
      "",
      "{'data':{'x':'1'}}" },
    { MERGE, "u", "",
      "{'metadata':{'managedFields':[{}]}}",
      "",
      "{'data':{'x':'1'}}" },
    { MERGE, "u", "",
      "{'data':{'y':'1'}}",
      "",
      "{'data':{'x':'1','y':'1'}}" },
    { MERGE, "u", "",
      "{'metadata':{'managedFields':[{}]},'data':{'z':'1'}}",
      "",
      "{'data':{'x':'1','y':'1','z':'1'}}" },
    { MERGE, "u", "",
      "{'metadata':{'managedFields':[{'manager':'m','operation':'Apply','apiVersion':'v1',"
      "'time':'2020-01-01T00:00:00Z','fieldsType':'FieldsV1','fieldsV1':{'f:data':{'f:x':{},"
      "'.':{}}}}]}}",
      "m Apply v1 @2020-01-01T00:00:00Z: data{. x}\n",
      "{'data':{'x':'1','y':'1','z':'1'}}" },
    { MERGE, "u", "",
      "{'metadata':{'managedFields':[{'manager':'n','operation':'Bogus','apiVersion':'v1',"
      "'fieldsType':'FieldsV1','fieldsV1':{}}]}}",
      "m Apply v1 @2020-01-01T00:00:00Z: data{. x}\n",
      "{'data':{'x':'1','y':'1','z':'1'}}" },
    { MERGE, "u", "",
      "{'metadata':{'managedFields':[{'manager':'n','operation':'Update','apiVersion':'v1',"
      "'fieldsType':'FieldsV1','fieldsV1':{'x:data':{}}}]},'data':{'w':'1'}}",
      "u Update v1 @7: data{w}\n",
      "{'data':{'w':'1','x':'1','y':'1','z':'1'}}" },
    { APPLY, "m", "",
      "{'data':{}}",
      "m Apply v1 @-: data\n"
      "u Update v1 @7: data{w}\n",
      "{'data':{'w':'1','x':'1','y':'1','z':'1'}}" },
};

/* As the other group's of events are. */
static const struct test_step foreign[] = {
    { CREATE, "u", "",
      "{'data':{'x':'1'}}",
      "u Update v1 @0: data{. x}\n",
      "{'data':{'x':'1'}}" },
    { MERGE, "u", "",
      "{'metadata':{'managedFields':[{'manager':'m','operation':'Update','apiVersion':'example.org/v1',"
      "'fieldsType':'FieldsV1','fieldsV1':{'f:data':{'f:x':{}}}},{'manager':'k','operation':'Update',"
      "'apiVersion':'v1','time':'2020-01-01T00:00:00Z','fieldsType':'FieldsV1','fieldsV1':{'f:data':{"
      "'f:x':{}}}},{'manager':'a','operation':'Apply','apiVersion':'example.org/v1','fieldsType':"
      "'FieldsV1','fieldsV1':{'f:data':{'f:x':{}}}}]}}",
      "k Update v1 @2020-01-01T00:00:00Z: data{x}\n",
      "{'data':{'x':'1'}}" },
    { MERGE, "v", "",
      "{'data':{'y':'1'}}",
      "k Update v1 @2020-01-01T00:00:00Z: data{x}\n"
      "v Update v1 @2: data{y}\n",
      "{'data':{'x':'1','y':'1'}}" },
    { MERGE, "u", "",
      "{'metadata':{'managedFields':[{'manager':'a','operation':'Apply','apiVersion':'example.org/v1',"
      "'fieldsType':'FieldsV1','fieldsV1':{'f:data':{'f:x':{}}}}]}}",
      "",
      "{'data':{'x':'1','y':'1'}}" },
    { APPLY, "a", "",
      "{'data':{'z':'1'}}",
      "a Apply v1 @4: data{z}\n"
      "before-first-apply Update v1 @4: data{. x y}\n",
      "{'data':{'x':'1','y':'1','z':'1'}}" },
};

static const struct test_step many[] = {
    { CREATE, "m0", "",
      "{'data':{'k0':'1'}}",
      "m0 Update v1 @0: data{. k0}\n",
      "{'data':{'k0':'1'}}" },
    { MERGE, "m1", "",
      "{'data':{'k1':'1'}}",
      "m0 Update v1 @0: data{. k0}\n"
      "m1 Update v1 @1: data{k1}\n",
      "{'data':{'k0':'1','k1':'1'}}" },
    { MERGE, "m2", "",
      "{'data':{'k2':'1'}}",
      "m0 Update v1 @0: data{. k0}\n"
      "m1 Update v1 @1: data{k1}\n"
      "m2 Update v1 @2: data{k2}\n",
      "{'data':{'k0':'1','k1':'1','k2':'1'}}" },
    { MERGE, "m3", "",
      "{'data':{'k3':'1'}}",
      "m0 Update v1 @0: data{. k0}\n"
      "m1 Update v1 @1: data{k1}\n"
      "m2 Update v1 @2: data{k2}\n"
      "m3 Update v1 @3: data{k3}\n",
      "{'data':{'k0':'1','k1':'1','k2':'1','k3':'1'}}" },
    { MERGE, "m4", "",
      "{'data':{'k4':'1'}}",
      "m0 Update v1 @0: data{. k0}\n"
      "m1 Update v1 @1: data{k1}\n"
      "m2 Update v1 @2: data{k2}\n"
      "m3 Update v1 @3: data{k3}\n"
      "m4 Update v1 @4: data{k4}\n",
      "{'data':{'k0':'1','k1':'1','k2':'1','k3':'1','k4':'1'}}" },
    { MERGE, "m5", "",
      "{'data':{'k5':'1'}}",
      "m0 Update v1 @0: data{. k0}\n"
      "m1 Update v1 @1: data{k1}\n"
      "m2 Update v1 @2: data{k2}\n"
      "m3 Update v1 @3: data{k3}\n"
      "m4 Update v1 @4: data{k4}\n"
      "m5 Update v1 @5: data{k5}\n",
      "{'data':{'k0':'1','k1':'1','k2':'1','k3':'1','k4':'1','k5':'1'}}" },
    { MERGE, "m6", "",
      "{'data':{'k6':'1'}}",
      "m0 Update v1 @0: data{. k0}\n"
      "m1 Update v1 @1: data{k1}\n"
      "m2 Update v1 @2: data{k2}\n"
      "m3 Update v1 @3: data{k3}\n"
      "m4 Update v1 @4: data{k4}\n"
      "m5 Update v1 @5: data{k5}\n"
      "m6 Update v1 @6: data{k6}\n",
      "{'data':{'k0':'1','k1':'1','k2':'1','k3':'1','k4':'1','k5':'1','k6':'1'}}" },
    { MERGE, "m7", "",
      "{'data':{'k7':'1'}}",
      "m0 Update v1 @0: data{. k0}\n"
      "m1 Update v1 @1: data{k1}\n"
      "m2 Update v1 @2: data{k2}\n"
      "m3 Update v1 @3: data{k3}\n"
      "m4 Update v1 @4: data{k4}\n"
      "m5 Update v1 @5: data{k5}\n"
      "m6 Update v1 @6: data{k6}\n"
      "m7 Update v1 @7: data{k7}\n",
      "{'data':{'k0':'1','k1':'1','k2':'1','k3':'1','k4':'1','k5':'1','k6':'1','k7':'1'}}" },
    { MERGE, "m8", "",
      "{'data':{'k8':'1'}}",
      "m0 Update v1 @0: data{. k0}\n"
      "m1 Update v1 @1: data{k1}\n"
      "m2 Update v1 @2: data{k2}\n"
      "m3 Update v1 @3: data{k3}\n"
      "m4 Update v1 @4: data{k4}\n"
      "m5 Update v1 @5: data{k5}\n"
      "m6 Update v1 @6: data{k6}\n"
      "m7 Update v1 @7: data{k7}\n"
      "m8 Update v1 @8: data{k8}\n",
      "{'data':{'k0':'1','k1':'1','k2':'1','k3':'1','k4':'1','k5':'1','k6':'1','k7':'1',"
      "'k8':'1'}}" },
    { MERGE, "m9", "",
      "{'data':{'k9':'1'}}",
      "m0 Update v1 @0: data{. k0}\n"
      "m1 Update v1 @1: data{k1}\n"
      "m2 Update v1 @2: data{k2}\n"
      "m3 Update v1 @3: data{k3}\n"
      "m4 Update v1 @4: data{k4}\n"
      "m5 Update v1 @5: data{k5}\n"
      "m6 Update v1 @6: data{k6}\n"
      "m7 Update v1 @7: data{k7}\n"
      "m8 Update v1 @8: data{k8}\n"
      "m9 Update v1 @9: data{k9}\n",
      "{'data':{'k0':'1','k1':'1','k2':'1','k3':'1','k4':'1','k5':'1','k6':'1','k7':'1','k8':'1',"
      "'k9':'1'}}" },
    { MERGE, "m10", "",
      "{'data':{'k10':'1'}}",
      "ancient-changes Update v1 @1: data{. k0 k1}\n"
      "m2 Update v1 @2: data{k2}\n"
      "m3 Update v1 @3: data{k3}\n"
      "m4 Update v1 @4: data{k4}\n"
      "m5 Update v1 @5: data{k5}\n"
      "m6 Update v1 @6: data{k6}\n"
      "m7 Update v1 @7: data{k7}\n"
      "m8 Update v1 @8: data{k8}\n"
      "m9 Update v1 @9: data{k9}\n"
      "m10 Update v1 @10: data{k10}\n",
      "{'data':{'k0':'1','k1':'1','k10':'1','k2':'1','k3':'1','k4':'1','k5':'1','k6':'1',"
      "'k7':'1','k8':'1','k9':'1'}}" },
    { MERGE, "m11", "",
      "{'data':{'k11':'1'}}",
      "ancient-changes Update v1 @2: data{. k0 k1 k2}\n"
      "m3 Update v1 @3: data{k3}\n"
      "m4 Update v1 @4: data{k4}\n"
      "m5 Update v1 @5: data{k5}\n"
      "m6 Update v1 @6: data{k6}\n"
      "m7 Update v1 @7: data{k7}\n"
      "m8 Update v1 @8: data{k8}\n"
      "m9 Update v1 @9: data{k9}\n"
      "m10 Update v1 @10: data{k10}\n"
      "m11 Update v1 @11: data{k11}\n",
      "{'data':{'k0':'1','k1':'1','k10':'1','k11':'1','k2':'1','k3':'1','k4':'1','k5':'1',"
      "'k6':'1','k7':'1','k8':'1','k9':'1'}}" },
};

static const struct test_step by_status[] = {
    { APPLY, "a", "",
      "{'spec':{'replicas':1}}",
      "a Apply example.org/v1 @0: spec{replicas}\n",
      "{'spec':{'replicas':1}}" },
    { MERGE, "u", "status",
      "{'metadata':{'managedFields':[]},'status':{'phase':'x'}}",
      "a Apply example.org/v1 @0: spec{replicas}\n"
      "u Update/status example.org/v1 @1: status{. phase}\n",
      "{'spec':{'replicas':1},'status':{'phase':'x'}}" },
};

static const struct test_step posted[] = {
    { CREATE, "u", "",
      "{'metadata':{'managedFields':[{'manager':'m','operation':'Apply','apiVersion':'v1',"
      "'time':'2020-01-01T00:00:00Z','fieldsType':'FieldsV1','fieldsV1':{'f:data':{'f:x':{},"
      "'.':{}}}}]},'data':{'x':'1','y':'1'}}",
      "u Update v1 @0: data{. x y}\n",
      "{'data':{'x':'1','y':'1'}}" },
};

static const struct test_step deployment[] = {
    { CREATE, "u", "",
      "{'spec':{'replicas':1,'selector':{'matchLabels':{'app':'q'}},"
      "'template':{'metadata':{'labels':{'app':'q'}},'spec':{'containers':[{'name':'c',"
      "'image':'i','ports':[{'containerPort':80,'protocol':'TCP'}],'env':[{'name':'A',"
      "'value':'1'}],'resources':{'limits':{'cpu':'1'}},"
      "'terminationMessagePath':'/dev/termination-log','terminationMessagePolicy':'File',"
      "'imagePullPolicy':'Always'}],'restartPolicy':'Always','terminationGracePeriodSeconds':30,"
      "'dnsPolicy':'ClusterFirst','securityContext':{},'schedulerName':'default-scheduler'}},"
      "'strategy':{'type':'RollingUpdate','rollingUpdate':{'maxUnavailable':'25%',"
      "'maxSurge':'25%'}},'revisionHistoryLimit':10,'progressDeadlineSeconds':600}}",
      "u Update apps/v1 @0: spec{progressDeadlineSeconds replicas revisionHistoryLimit selector "
      "strategy{rollingUpdate{. maxSurge maxUnavailable} type} template{metadata{labels{. app}} "
      "spec{containers{[name=c]{. env{. [name=A]{. name value}} image imagePullPolicy name "
      "ports{. [containerPort=80,protocol=TCP]{. containerPort protocol}} resources{. limits{. "
      "cpu}} terminationMessagePath terminationMessagePolicy}} dnsPolicy restartPolicy "
      "schedulerName securityContext terminationGracePeriodSeconds}}}\n",
      NULL },
    { MERGE, "v", "",
      "{'spec':{'replicas':2,'template':{'spec':{'securityContext':{'runAsUser':1}}}}}",
      "u Update apps/v1 @0: spec{progressDeadlineSeconds revisionHistoryLimit selector "
      "strategy{rollingUpdate{. maxSurge maxUnavailable} type} template{metadata{labels{. app}} "
      "spec{containers{[name=c]{. env{. [name=A]{. name value}} image imagePullPolicy name "
      "ports{. [containerPort=80,protocol=TCP]{. containerPort protocol}} resources{. limits{. "
      "cpu}} terminationMessagePath terminationMessagePolicy}} dnsPolicy restartPolicy "
      "schedulerName securityContext terminationGracePeriodSeconds}}}\n"
      "v Update apps/v1 @1: spec{replicas template{spec{securityContext{runAsUser}}}}\n",
      NULL },
    { MERGE, "ctl", "status",
      "{'status':{'replicas':1,'observedGeneration':1}}",
      "u Update apps/v1 @0: spec{progressDeadlineSeconds revisionHistoryLimit selector "
      "strategy{rollingUpdate{. maxSurge maxUnavailable} type} template{metadata{labels{. app}} "
      "spec{containers{[name=c]{. env{. [name=A]{. name value}} image imagePullPolicy name "
      "ports{. [containerPort=80,protocol=TCP]{. containerPort protocol}} resources{. limits{. "
      "cpu}} terminationMessagePath terminationMessagePolicy}} dnsPolicy restartPolicy "
      "schedulerName securityContext terminationGracePeriodSeconds}}}\n"
      "v Update apps/v1 @1: spec{replicas template{spec{securityContext{runAsUser}}}}\n"
      "ctl Update/status apps/v1 @2: status{observedGeneration replicas}\n",
      NULL },
    { APPLY, "a", "",
      "{'spec':{'replicas':3}}",
      "409 Apply failed with 1 conflict: conflict with 'v' using apps/v1: .spec.replicas",
      NULL },
    { FORCE, "a", "",
      "{'spec':{'template':{'spec':{'containers':[{'name':'c','image':'j'},{'name':'d',"
      "'image':'k'}]}}}}",
      "a Apply apps/v1 @4: spec{template{spec{containers{[name=c]{. image name} [name=d]{. image "
      "name}}}}}\n"
      "u Update apps/v1 @0: spec{progressDeadlineSeconds revisionHistoryLimit selector "
      "strategy{rollingUpdate{. maxSurge maxUnavailable} type} template{metadata{labels{. app}} "
      "spec{containers{[name=c]{. env{. [name=A]{. name value}} imagePullPolicy name ports{. "
      "[containerPort=80,protocol=TCP]{. containerPort protocol}} resources{. limits{. cpu}} "
      "terminationMessagePath terminationMessagePolicy}} dnsPolicy restartPolicy schedulerName "
      "securityContext terminationGracePeriodSeconds}}}\n"
      "v Update apps/v1 @1: spec{replicas template{spec{securityContext{runAsUser}}}}\n"
      "ctl Update/status apps/v1 @2: status{observedGeneration replicas}\n",
      NULL },
};
/* clang-format on */

static void who_changes_a_field_owns_it(void **state)
{
    (void)state;
    TEST_STEPS(TEST_CONFIG_MAP, "create-post", owners);
}

static void a_creator_owns_all_down_to_what_is_atomic(void **state)
{
    (void)state;
    TEST_STEPS(TEST_WIDGET, "widget-post", created);
}

static void an_empty_container_is_a_field_and_stays_its_owners(void **state)
{
    (void)state;
    TEST_STEPS(TEST_WIDGET, "empty-to", emptied);
}

static void clients_may_clear_and_replace_the_list(void **state)
{
    (void)state;
    TEST_STEPS(TEST_CONFIG_MAP, "reset", changed_lists);
}

static void entries_of_another_group_are_forgotten(void **state)
{
    (void)state;
    TEST_STEPS(TEST_CONFIG_MAP, "foreign", foreign);
}

static void updaters_beyond_ten_become_ancient_changes(void **state)
{
    (void)state;
    TEST_STEPS(TEST_CONFIG_MAP, "cap", many);
}

static void a_subresource_leaves_the_list_alone(void **state)
{
    (void)state;
    TEST_STEPS(TEST_WIDGET, "sub-mf", by_status);
}

static void a_list_that_is_created_with_counts_for_nothing(void **state)
{
    (void)state;
    TEST_STEPS(TEST_CONFIG_MAP, "create-mf", posted);
}

static void structs_that_go_always_has_are_nobodys(void **state)
{
    (void)state;
    TEST_STEPS(TEST_DEPLOYMENT, "dep-post", deployment);
}

static const struct kinf__manager me = { "me", "v1", "", "2026-01-01T00:00:01Z" };

static void fields_are_written_as_the_server_writes_them(void **state)
{
    const struct kinf__manager manager = { "u", "example.org/v1", "status", "" };
    KINF__AUTO_DOC *object =
        test_tree("{'metadata':{'name':'a','uid':'u','labels':{'x':'y'}},'spec':{'tags':['p'],"
                  "'containers':[{'name':'c','ports':[{'port':80,'protocol':'TCP'}]}]}}");
    KINF__AUTO_BUFFER text = KINF__BUFFER_INIT;

    (void)state;
    assert_int_equal(
        kinf__managed_update(test_kind_schema(TEST_WIDGET), NULL, object, &manager, false), 0);
    assert_int_equal(
        kinf__doc_print(kinf__doc_find(object, "metadata", "managedFields", NULL), &text), 0);
    assert_string_equal(
        kinf__buffer_cstr(&text),
        "[{\"manager\":\"u\",\"operation\":\"Update\",\"apiVersion\":\"example.org/v1\","
        "\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":{\"f:labels\":{\".\":{},"
        "\"f:x\":{}}},\"f:spec\":{\".\":{},\"f:containers\":{\".\":{},\"k:{\\\"name\\\":\\\"c\\\"}"
        "\":"
        "{\".\":{},\"f:name\":{},\"f:ports\":{\".\":{},"
        "\"k:{\\\"port\\\":80,\\\"protocol\\\":\\\"TCP\\\"}\":{\".\":{},\"f:port\":{},"
        "\"f:protocol\":{}}}}},\"f:tags\":{\".\":{},\"v:\\\"p\\\"\":{}}}},"
        "\"subresource\":\"status\"}]");
}

static void a_reset_clears_what_others_own(void **state)
{
    KINF__AUTO_DOC *old = test_tree(
        "{'metadata':{'managedFields':[{'manager':'m','operation':'Apply','apiVersion':'v1',"
        "'fieldsType':'FieldsV1','fieldsV1':{'f:data':{'f:x':{}}}}]},'data':{'x':'1'}}");
    KINF__AUTO_DOC *object = kinf__doc_dup(old);

    (void)state;
    assert_int_equal(
        kinf__managed_update(test_kind_schema(TEST_CONFIG_MAP), old, object, &me, true), 0);
    assert_null(kinf__doc_find(object, "metadata", "managedFields", NULL));
}

static void a_list_of_anything_does_no_harm(void **state)
{
    static const char *const lists[] = {
        "7",
        "'x'",
        "{}",
        "[7]",
        "[[]]",
        "[{'operation':'Apply'}]",
        "[{'operation':'Apply','apiVersion':'v1','fieldsType':'FieldsV2','fieldsV1':{}}]",
        "[{'operation':'Apply','apiVersion':'v1','fieldsType':'FieldsV1','fieldsV1':[1]}]",
        "[{'operation':'Apply','apiVersion':'v1','fieldsType':'FieldsV1','fieldsV1':"
        "{'':{},'f':{},'k:':{},'k:{':{'f:x':7},'v:':[],'.':{},'f:':{'f:':{'.':1}}}}]",
    };

    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        KINF__AUTO_DOC *old = test_tree("{'data':{'x':'1'}}");
        KINF__AUTO_DOC *object = test_tree("{'metadata':{},'data':{'x':'2'}}");
        KINF__AUTO_DOC *applied = NULL;
        struct kinf__refusal refusal;

        assert_int_equal(
            kinf__doc_set(kinf__doc_get(object, "metadata"), "managedFields", test_tree(lists[i])),
            0);
        assert_int_equal(kinf__managed_apply(NULL, object, old, &me, true, &applied, &refusal), 0);
        assert_int_equal(kinf__managed_update(NULL, old, object, &me, false), 0);
    }
}

static void an_update_survives_any_failed_allocation(void **state)
{
    const struct kinf__schema_node *node = test_kind_schema(TEST_WIDGET);
    KINF__AUTO_DOC *old = test_tree(
        "{'metadata':{'managedFields':[{'manager':'m','operation':'Apply','apiVersion':'v1',"
        "'fieldsType':'FieldsV1','fieldsV1':{'f:spec':{'f:tags':{'v:\\'a\\'':{}},'f:replicas':{}}}}"
        "]},'spec':{'replicas':1,'tags':['a','b']}}");
    KINF__AUTO_DOC *base = test_tree("{'spec':{'replicas':2,'tags':['b','c'],'labels':{'x':'y'},"
                                     "'containers':[{'name':'c','ports':[{'port':1}]}]}}");
    size_t n = 1;
    int failed;

    (void)state;
    test_fail_trees(true);
    for (bool has_failed = true; has_failed; n++) {
        KINF__AUTO_DOC *object = kinf__doc_dup(base);

        test_fail_allocation(n);
        failed = kinf__managed_update(node, old, object, &me, false);
        has_failed = test_allocation_failed();
        assert_true(failed == 0 || (has_failed && failed == KINF_ERR_NO_MEMORY));
    }
    test_fail_trees(false);
    assert_true(n > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_changes_a_field_owns_it),
        cmocka_unit_test(a_creator_owns_all_down_to_what_is_atomic),
        cmocka_unit_test(an_empty_container_is_a_field_and_stays_its_owners),
        cmocka_unit_test(clients_may_clear_and_replace_the_list),
        cmocka_unit_test(entries_of_another_group_are_forgotten),
        cmocka_unit_test(updaters_beyond_ten_become_ancient_changes),
        cmocka_unit_test(a_subresource_leaves_the_list_alone),
        cmocka_unit_test(a_list_that_is_created_with_counts_for_nothing),
        cmocka_unit_test(structs_that_go_always_has_are_nobodys),
        cmocka_unit_test(fields_are_written_as_the_server_writes_them),
        cmocka_unit_test(a_reset_clears_what_others_own),
        cmocka_unit_test(a_list_of_anything_does_no_harm),
        cmocka_unit_test(an_update_survives_any_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
