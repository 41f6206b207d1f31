/*
 * Server-side apply: recorded lives of objects, conflicts, and kubectl that applied by itself before.
 */
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "document/managed.h"
#include "unit/allocation.h"
#include "unit/managed_fixture.h"
#include "unit/test.h"

/* clang-format off */
static const struct test_step applied[] = {
    { APPLY, "a", "",
      "{'data':{'x':'1','y':'2'},'metadata':{'labels':{'app':'q'}}}",
      "a Apply v1 @0: data{x y} metadata{labels{app}}\n",
      "{'metadata':{'labels':{'app':'q'}},'data':{'x':'1','y':'2'}}" },
    { APPLY, "a", "",
      "{'data':{'x':'1','y':'2'},'metadata':{'labels':{'app':'q'}}}",
      "a Apply v1 @0: data{x y} metadata{labels{app}}\n",
      "{'metadata':{'labels':{'app':'q'}},'data':{'x':'1','y':'2'}}" },
    { APPLY, "a", "",
      "{'data':{'x':'1'}}",
      "a Apply v1 @2: data{x}\n",
      "{'data':{'x':'1'}}" },
    { APPLY, "a", "",
      "{}",
      "",
      "{}" },
};

static const struct test_step shared[] = {
    { APPLY, "a", "",
      "{'data':{'x':'1'}}",
      "a Apply v1 @0: data{x}\n",
      "{'data':{'x':'1'}}" },
    { APPLY, "b", "",
      "{'data':{'x':'1','y':'2'}}",
      "a Apply v1 @0: data{x}\n"
      "b Apply v1 @1: data{x y}\n",
      "{'data':{'x':'1','y':'2'}}" },
    { APPLY, "a", "",
      "{'data':{}}",
      "a Apply v1 @0: data\n"
      "b Apply v1 @1: data{x y}\n",
      "{'data':{'x':'1','y':'2'}}" },
    { APPLY, "b", "",
      "{'data':{'y':'2'}}",
      "a Apply v1 @0: data\n"
      "b Apply v1 @3: data{y}\n",
      "{'data':{'y':'2'}}" },
};

static const struct test_step contested[] = {
    { APPLY, "a", "",
      "{'data':{'x':'1','z':'1'}}",
      "a Apply v1 @0: data{x z}\n",
      "{'data':{'x':'1','z':'1'}}" },
    { APPLY, "b", "",
      "{'data':{'x':'2'}}",
      "409 Apply failed with 1 conflict: conflict with 'a': .data.x",
      NULL },
    { APPLY, "b", "",
      "{'data':{'x':'2','z':'2'}}",
      "409 Apply failed with 2 conflicts: conflicts with 'a':\n"
      "- .data.x\n"
      "- .data.z",
      NULL },
    { FORCE, "b", "",
      "{'data':{'x':'2'}}",
      "a Apply v1 @0: data{z}\n"
      "b Apply v1 @3: data{x}\n",
      "{'data':{'x':'2','z':'1'}}" },
    { APPLY, "a", "",
      "{'data':{'x':'1','z':'1'}}",
      "409 Apply failed with 1 conflict: conflict with 'b': .data.x",
      NULL },
    { APPLY, "b", "",
      "{'data':{'x':'3'}}",
      "a Apply v1 @0: data{z}\n"
      "b Apply v1 @5: data{x}\n",
      "{'data':{'x':'3','z':'1'}}" },
};

static const struct test_step updated[] = {
    { APPLY, "a", "",
      "{'data':{'x':'1','y':'1'}}",
      "a Apply v1 @0: data{x y}\n",
      "{'data':{'x':'1','y':'1'}}" },
    { PUT, "u", "",
      "{'data':{'x':'2','y':'1','n':'1'}}",
      "a Apply v1 @0: data{y}\n"
      "u Update v1 @1: data{n x}\n",
      "{'data':{'n':'1','x':'2','y':'1'}}" },
    { MERGE, "u", "",
      "{'data':{'x':'3'}}",
      "a Apply v1 @0: data{y}\n"
      "u Update v1 @2: data{n x}\n",
      "{'data':{'n':'1','x':'3','y':'1'}}" },
    { MERGE, "u", "",
      "{'data':{'x':'3'}}",
      "a Apply v1 @0: data{y}\n"
      "u Update v1 @2: data{n x}\n",
      "{'data':{'n':'1','x':'3','y':'1'}}" },
    { APPLY, "a", "",
      "{'data':{'x':'1','y':'1'}}",
      "409 Apply failed with 1 conflict: conflict with 'u' using v1: .data.x",
      NULL },
    { MERGE, "u", "",
      "{'data':{'n':null}}",
      "a Apply v1 @0: data{y}\n"
      "u Update v1 @2: data{x}\n",
      "{'data':{'x':'3','y':'1'}}" },
    { MERGE, "a", "",
      "{'data':{'x':'5'}}",
      "a Apply v1 @0: data{y}\n"
      "a Update v1 @6: data{x}\n",
      "{'data':{'x':'5','y':'1'}}" },
};

static const struct test_step same_name[] = {
    { CREATE, "a", "",
      "{'data':{'x':'1'}}",
      "a Update v1 @0: data{. x}\n",
      "{'data':{'x':'1'}}" },
    { APPLY, "a", "",
      "{'data':{'x':'1','y':'1'}}",
      "a Apply v1 @1: data{x y}\n"
      "a Update v1 @0: data{. x}\n",
      "{'data':{'x':'1','y':'1'}}" },
    { APPLY, "a", "",
      "{'data':{'x':'2','y':'1'}}",
      "409 Apply failed with 1 conflict: conflict with 'a' using v1: .data.x",
      NULL },
    { MERGE, "a", "",
      "{'data':{'y':'3'}}",
      "a Apply v1 @1: data{x}\n"
      "a Update v1 @3: data{. x y}\n",
      "{'data':{'x':'1','y':'3'}}" },
    { FORCE, "a", "",
      "{'data':{'y':'2'}}",
      "a Apply v1 @4: data{y}\n"
      "a Update v1 @3: data{. x}\n",
      "{'data':{'x':'1','y':'2'}}" },
};

static const struct test_step several[] = {
    { APPLY, "a", "",
      "{'data':{'x':'1','y':'1'}}",
      "a Apply v1 @0: data{x y}\n",
      "{'data':{'x':'1','y':'1'}}" },
    { MERGE, "z", "",
      "{'data':{'z':'1','w':'1'}}",
      "a Apply v1 @0: data{x y}\n"
      "z Update v1 @1: data{w z}\n",
      "{'data':{'w':'1','x':'1','y':'1','z':'1'}}" },
    { APPLY, "b", "",
      "{'data':{'y':'1'}}",
      "b Apply v1 @-: data{y}\n"
      "a Apply v1 @0: data{x y}\n"
      "z Update v1 @1: data{w z}\n",
      "{'data':{'w':'1','x':'1','y':'1','z':'1'}}" },
    { APPLY, "c", "",
      "{'data':{'x':'3','y':'3','z':'3','w':'3'}}",
      "409 Apply failed with 5 conflicts: conflicts with 'a':\n"
      "- .data.x\n"
      "- .data.y\n"
      "conflicts with 'b':\n"
      "- .data.y\n"
      "conflicts with 'z' using v1:\n"
      "- .data.w\n"
      "- .data.z",
      NULL },
    { APPLY, "c", "",
      "{'data':{'y':'3'}}",
      "409 Apply failed with 2 conflicts: conflicts with 'a':\n"
      "- .data.y\n"
      "conflicts with 'b':\n"
      "- .data.y",
      NULL },
};

static const struct test_step finalizers[] = {
    { APPLY, "a", "",
      "{'metadata':{'finalizers':['example.org/a']}}",
      "a Apply v1 @0: metadata{finalizers{[=example.org/a]}}\n",
      "{'metadata':{'finalizers':['example.org/a']}}" },
    { APPLY, "b", "",
      "{'metadata':{'finalizers':['example.org/b']}}",
      "a Apply v1 @0: metadata{finalizers{[=example.org/a]}}\n"
      "b Apply v1 @1: metadata{finalizers{[=example.org/b]}}\n",
      "{'metadata':{'finalizers':['example.org/a','example.org/b']}}" },
    { APPLY, "a", "",
      "{'metadata':{}}",
      "b Apply v1 @1: metadata{finalizers{[=example.org/b]}}\n",
      "{'metadata':{'finalizers':['example.org/b']}}" },
    { MERGE, "u", "",
      "{'metadata':{'finalizers':null}}",
      "",
      "{}" },
};

static const struct test_step untracked[] = {
    { CREATE, "u", "",
      "{'metadata':{'labels':{'l':'m'}},'data':{'x':'1','y':'2'}}",
      "u Update v1 @0: data{. x y} metadata{labels{. l}}\n",
      "{'metadata':{'labels':{'l':'m'}},'data':{'x':'1','y':'2'}}" },
    { MERGE, "u", "",
      "{'metadata':{'managedFields':[]}}",
      "",
      "{'metadata':{'labels':{'l':'m'}},'data':{'x':'1','y':'2'}}" },
    { APPLY, "a", "",
      "{'data':{'x':'1','z':'1'}}",
      "a Apply v1 @2: data{x z}\n"
      "before-first-apply Update v1 @2: data{. x y} metadata{labels{. l}}\n",
      "{'metadata':{'labels':{'l':'m'}},'data':{'x':'1','y':'2','z':'1'}}" },
    { APPLY, "b", "",
      "{'data':{'y':'3'}}",
      "409 Apply failed with 1 conflict: conflict with 'before-first-apply' using v1: .data.y",
      NULL },
    { MERGE, "u", "",
      "{'metadata':{'managedFields':[]}}",
      "",
      "{'metadata':{'labels':{'l':'m'}},'data':{'x':'1','y':'2','z':'1'}}" },
    { APPLY, "a", "",
      "{'data':{'x':'1'}}",
      "a Apply v1 @-: data{x}\n"
      "before-first-apply Update v1 @5: data{. x y z} metadata{labels{. l}}\n",
      "{'metadata':{'labels':{'l':'m'}},'data':{'x':'1','y':'2','z':'1'}}" },
};

static const struct test_step untracked_widget[] = {
    { APPLY, "a", "",
      "{}",
      "",
      "{}" },
    { MERGE, "u", "",
      "{'spec':{'template':{'size':1},'containers':[{'name':'c'}]}}",
      "",
      "{'spec':{'containers':[{'name':'c'}],'template':{'size':1}}}" },
    { APPLY, "a", "",
      "{'spec':{'replicas':1}}",
      "a Apply example.org/v1 @2: spec{replicas}\n"
      "before-first-apply Update example.org/v1 @2: spec{. containers{. [name=c]{. name}} "
      "template{. size}}\n",
      "{'spec':{'containers':[{'name':'c'}],'replicas':1,'template':{'size':1}}}" },
};

static const struct test_step nothing_applied[] = {
    { APPLY, "a", "",
      "{}",
      "",
      "{}" },
    { APPLY, "a", "",
      "{}",
      "",
      "{}" },
    { APPLY, "a", "",
      "{'data':{'x':'1'}}",
      "a Apply v1 @2: data{x}\n",
      "{'data':{'x':'1'}}" },
};

static const struct test_step applied_widget[] = {
    { APPLY, "a", "",
      "{'spec':{'replicas':1,'selector':{'a':'b'},'labels':{'x':'y'},'order':['1'],'tags':['p',"
      "'q'],'numbers':[3,20],'free':{'m':{'n':[1,{'z':1}],'e':{}}},'template':{},"
      "'containers':[{'name':'c','image':'i','args':['x'],'env':[{'name':'E','value':'1'}],"
      "'ports':[{'port':80},{'port':443,'protocol':'UDP'}]}]}}",
      "a Apply example.org/v1 @0: spec{containers{[name=c]{. args env{[name=E]{. name value}} "
      "image name ports{[port=443,protocol=UDP]{. port protocol} [port=80,protocol=TCP]{. "
      "port}}}} free{m{. e n}} labels{x} numbers{[=20] [=3]} order replicas selector tags{[=p] "
      "[=q]} template}\n",
      NULL },
};

static const struct test_step elements[] = {
    { APPLY, "a", "",
      "{'spec':{'containers':[{'name':'c1','image':'i'},{'name':'c2','image':'i'}]}}",
      "a Apply example.org/v1 @0: spec{containers{[name=c1]{. image name} [name=c2]{. image "
      "name}}}\n",
      "{'spec':{'containers':[{'image':'i','name':'c1'},{'image':'i','name':'c2'}]}}" },
    { APPLY, "b", "",
      "{'spec':{'containers':[{'name':'s','image':'side'}]}}",
      "a Apply example.org/v1 @0: spec{containers{[name=c1]{. image name} [name=c2]{. image "
      "name}}}\n"
      "b Apply example.org/v1 @1: spec{containers{[name=s]{. image name}}}\n",
      "{'spec':{'containers':[{'image':'i','name':'c1'},{'image':'i','name':'c2'},"
      "{'image':'side','name':'s'}]}}" },
    { APPLY, "a", "",
      "{'spec':{'containers':[{'name':'c2','image':'i'},{'name':'c3','image':'j'}]}}",
      "b Apply example.org/v1 @1: spec{containers{[name=s]{. image name}}}\n"
      "a Apply example.org/v1 @2: spec{containers{[name=c2]{. image name} [name=c3]{. image "
      "name}}}\n",
      "{'spec':{'containers':[{'image':'i','name':'c2'},{'image':'side','name':'s'},{'image':'j',"
      "'name':'c3'}]}}" },
    { APPLY, "b", "",
      "{'spec':{'containers':[{'name':'c2','args':['x']},{'name':'s','image':'side'}]}}",
      "a Apply example.org/v1 @2: spec{containers{[name=c2]{. image name} [name=c3]{. image "
      "name}}}\n"
      "b Apply example.org/v1 @3: spec{containers{[name=c2]{. args name} [name=s]{. image "
      "name}}}\n",
      "{'spec':{'containers':[{'args':['x'],'image':'i','name':'c2'},{'image':'side','name':'s'},"
      "{'image':'j','name':'c3'}]}}" },
    { APPLY, "a", "",
      "{'spec':{'containers':[]}}",
      "b Apply example.org/v1 @3: spec{containers{[name=c2]{. args name} [name=s]{. image "
      "name}}}\n",
      "{'spec':{'containers':[{'args':['x'],'name':'c2'},{'image':'side','name':'s'}]}}" },
};

static const struct test_step order[] = {
    { APPLY, "a", "",
      "{'spec':{'tags':['a','x','b']}}",
      "a Apply example.org/v1 @0: spec{tags{[=a] [=b] [=x]}}\n",
      "{'spec':{'tags':['a','x','b']}}" },
    { APPLY, "b", "",
      "{'spec':{'tags':['b','a']}}",
      "a Apply example.org/v1 @0: spec{tags{[=a] [=b] [=x]}}\n"
      "b Apply example.org/v1 @1: spec{tags{[=a] [=b]}}\n",
      "{'spec':{'tags':['x','b','a']}}" },
    { APPLY, "c", "",
      "{'spec':{'tags':['n1','x','n2','b','n3']}}",
      "a Apply example.org/v1 @0: spec{tags{[=a] [=b] [=x]}}\n"
      "b Apply example.org/v1 @1: spec{tags{[=a] [=b]}}\n"
      "c Apply example.org/v1 @2: spec{tags{[=b] [=n1] [=n2] [=n3] [=x]}}\n",
      "{'spec':{'tags':['n1','x','n2','b','a','n3']}}" },
    { APPLY, "d", "",
      "{'spec':{'tags':['z','n3','n1']}}",
      "a Apply example.org/v1 @0: spec{tags{[=a] [=b] [=x]}}\n"
      "b Apply example.org/v1 @1: spec{tags{[=a] [=b]}}\n"
      "c Apply example.org/v1 @2: spec{tags{[=b] [=n1] [=n2] [=n3] [=x]}}\n"
      "d Apply example.org/v1 @3: spec{tags{[=n1] [=n3] [=z]}}\n",
      "{'spec':{'tags':['x','n2','b','a','z','n3','n1']}}" },
    { APPLY, "c", "",
      "{'spec':{'tags':['n2','x']}}",
      "a Apply example.org/v1 @0: spec{tags{[=a] [=b] [=x]}}\n"
      "b Apply example.org/v1 @1: spec{tags{[=a] [=b]}}\n"
      "d Apply example.org/v1 @3: spec{tags{[=n1] [=n3] [=z]}}\n"
      "c Apply example.org/v1 @4: spec{tags{[=n2] [=x]}}\n",
      "{'spec':{'tags':['n2','b','a','z','n3','n1','x']}}" },
};

static const struct test_step elements_updated[] = {
    { APPLY, "a", "",
      "{'spec':{'containers':[{'name':'c','image':'i'}]}}",
      "a Apply example.org/v1 @0: spec{containers{[name=c]{. image name}}}\n",
      "{'spec':{'containers':[{'image':'i','name':'c'}]}}" },
    { MERGE, "u", "",
      "{'spec':{'containers':[{'name':'c','image':'j'}]}}",
      "a Apply example.org/v1 @0: spec{containers{[name=c]{. name}}}\n"
      "u Update example.org/v1 @1: spec{containers{[name=c]{image}}}\n",
      "{'spec':{'containers':[{'image':'j','name':'c'}]}}" },
    { APPLY, "a", "",
      "{'spec':{'containers':[{'name':'d'}]}}",
      "a Apply example.org/v1 @2: spec{containers{[name=d]{. name}}}\n",
      "{'spec':{'containers':[{'name':'d'}]}}" },
};

static const struct test_step elements_shared[] = {
    { APPLY, "a", "",
      "{'spec':{'containers':[{'name':'c','image':'i'}]}}",
      "a Apply example.org/v1 @0: spec{containers{[name=c]{. image name}}}\n",
      "{'spec':{'containers':[{'image':'i','name':'c'}]}}" },
    { APPLY, "b", "",
      "{'spec':{'containers':[{'name':'c','args':['x']}]}}",
      "a Apply example.org/v1 @0: spec{containers{[name=c]{. image name}}}\n"
      "b Apply example.org/v1 @1: spec{containers{[name=c]{. args name}}}\n",
      "{'spec':{'containers':[{'args':['x'],'image':'i','name':'c'}]}}" },
    { APPLY, "a", "",
      "{'spec':{'replicas':1}}",
      "b Apply example.org/v1 @1: spec{containers{[name=c]{. args name}}}\n"
      "a Apply example.org/v1 @2: spec{replicas}\n",
      "{'spec':{'containers':[{'args':['x'],'name':'c'}],'replicas':1}}" },
    { APPLY, "b", "",
      "{'spec':{'replicas':1}}",
      "a Apply example.org/v1 @2: spec{replicas}\n"
      "b Apply example.org/v1 @3: spec{replicas}\n",
      "{'spec':{'replicas':1}}" },
};

static const struct test_step atomics[] = {
    { APPLY, "a", "",
      "{'spec':{'selector':{'x':'1'},'order':['1','2']}}",
      "a Apply example.org/v1 @0: spec{order selector}\n",
      "{'spec':{'order':['1','2'],'selector':{'x':'1'}}}" },
    { APPLY, "b", "",
      "{'spec':{'selector':{'y':'1'}}}",
      "409 Apply failed with 1 conflict: conflict with 'a': .spec.selector",
      NULL },
    { APPLY, "b", "",
      "{'spec':{'selector':{'x':'1'}}}",
      "b Apply example.org/v1 @-: spec{selector}\n"
      "a Apply example.org/v1 @0: spec{order selector}\n",
      "{'spec':{'order':['1','2'],'selector':{'x':'1'}}}" },
    { APPLY, "a", "",
      "{'spec':{'order':['2']}}",
      "b Apply example.org/v1 @-: spec{selector}\n"
      "a Apply example.org/v1 @3: spec{order}\n",
      "{'spec':{'order':['2'],'selector':{'x':'1'}}}" },
    { MERGE, "u", "",
      "{'spec':{'selector':{'q':'1'}}}",
      "a Apply example.org/v1 @3: spec{order}\n"
      "u Update example.org/v1 @4: spec{selector}\n",
      "{'spec':{'order':['2'],'selector':{'q':'1','x':'1'}}}" },
    { APPLY, "b", "",
      "{'spec':{'selector':{'x':'1'}}}",
      "409 Apply failed with 1 conflict: conflict with 'u' using example.org/v1: .spec.selector",
      NULL },
};

static const struct test_step statuses[] = {
    { APPLY, "a", "",
      "{'spec':{'replicas':1}}",
      "a Apply example.org/v1 @0: spec{replicas}\n",
      "{'spec':{'replicas':1}}" },
    { MERGE, "ctl", "status",
      "{'status':{'phase':'x','conditions':[{'type':'R','status':'1'}]}}",
      "a Apply example.org/v1 @0: spec{replicas}\n"
      "ctl Update/status example.org/v1 @1: status{. conditions{. [type=R]{. status type}} "
      "phase}\n",
      "{'spec':{'replicas':1},'status':{'conditions':[{'status':'1','type':'R'}],'phase':'x'}}" },
    { APPLY, "st", "status",
      "{'status':{'phase':'x'}}",
      "st Apply/status example.org/v1 @-: status{phase}\n"
      "a Apply example.org/v1 @0: spec{replicas}\n"
      "ctl Update/status example.org/v1 @1: status{. conditions{. [type=R]{. status type}} "
      "phase}\n",
      "{'spec':{'replicas':1},'status':{'conditions':[{'status':'1','type':'R'}],'phase':'x'}}" },
    { APPLY, "st", "status",
      "{'status':{'phase':'y'}}",
      "409 Apply failed with 1 conflict: conflict with 'ctl' with subresource 'status' using "
      "example.org/v1: .status.phase",
      NULL },
    { MERGE, "ctl", "status",
      "{'status':{'phase':'z'}}",
      "a Apply example.org/v1 @0: spec{replicas}\n"
      "ctl Update/status example.org/v1 @4: status{. conditions{. [type=R]{. status type}} "
      "phase}\n",
      "{'spec':{'replicas':1},'status':{'conditions':[{'status':'1','type':'R'}],'phase':'z'}}" },
    { APPLY, "a", "",
      "{'spec':{'replicas':2},'status':{'phase':'q'}}",
      "a Apply example.org/v1 @5: spec{replicas}\n"
      "ctl Update/status example.org/v1 @4: status{. conditions{. [type=R]{. status type}} "
      "phase}\n",
      "{'spec':{'replicas':2},'status':{'conditions':[{'status':'1','type':'R'}],'phase':'z'}}" },
    { FORCE, "st", "status",
      "{'status':{'phase':'q'}}",
      "a Apply example.org/v1 @5: spec{replicas}\n"
      "st Apply/status example.org/v1 @6: status{phase}\n"
      "ctl Update/status example.org/v1 @4: status{. conditions{. [type=R]{. status type}}}\n",
      "{'spec':{'replicas':2},'status':{'conditions':[{'status':'1','type':'R'}],'phase':'q'}}" },
    { MERGE, "ctl", "",
      "{'spec':{'replicas':3}}",
      "st Apply/status example.org/v1 @6: status{phase}\n"
      "ctl Update/status example.org/v1 @4: status{. conditions{. [type=R]{. status type}}}\n"
      "ctl Update example.org/v1 @7: spec{replicas}\n",
      "{'spec':{'replicas':3},'status':{'conditions':[{'status':'1','type':'R'}],'phase':'q'}}" },
    { APPLY, "a", "",
      "{'spec':{'replicas':2}}",
      "409 Apply failed with 1 conflict: conflict with 'ctl' using example.org/v1: .spec.replicas",
      NULL },
};

static const struct test_step parents[] = {
    { CREATE, "u", "",
      "{'spec':{'template':{'size':1}}}",
      "u Update example.org/v1 @0: spec{. template{. size}}\n",
      "{'spec':{'template':{'size':1}}}" },
    { APPLY, "a", "",
      "{'spec':{'template':{'color':'c'}}}",
      "a Apply example.org/v1 @1: spec{template{color}}\n"
      "u Update example.org/v1 @0: spec{. template{. size}}\n",
      "{'spec':{'template':{'color':'c','size':1}}}" },
    { APPLY, "a", "",
      "{'spec':{}}",
      "a Apply example.org/v1 @2: spec\n"
      "u Update example.org/v1 @0: spec{. template{. size}}\n",
      "{'spec':{'template':{'size':1}}}" },
    { APPLY, "a", "",
      "{}",
      "u Update example.org/v1 @0: spec{. template{. size}}\n",
      "{'spec':{'template':{'size':1}}}" },
};

static const struct test_step parents_updated[] = {
    { APPLY, "a", "",
      "{'spec':{'template':{'color':'c'},'replicas':1}}",
      "a Apply example.org/v1 @0: spec{replicas template{color}}\n",
      "{'spec':{'replicas':1,'template':{'color':'c'}}}" },
    { MERGE, "u", "",
      "{'spec':{'template':{'size':1}}}",
      "a Apply example.org/v1 @0: spec{replicas template{color}}\n"
      "u Update example.org/v1 @1: spec{template{size}}\n",
      "{'spec':{'replicas':1,'template':{'color':'c','size':1}}}" },
    { APPLY, "a", "",
      "{'spec':{'replicas':1}}",
      "a Apply example.org/v1 @2: spec{replicas}\n"
      "u Update example.org/v1 @1: spec{template{size}}\n",
      "{'spec':{'replicas':1,'template':{'size':1}}}" },
    { MERGE, "u", "",
      "{'spec':{'template':null}}",
      "a Apply example.org/v1 @2: spec{replicas}\n",
      "{'spec':{'replicas':1}}" },
};

static const struct test_step nulls[] = {
    { CREATE, "a", "",
      "{'spec':{'replicas':1}}",
      "a Update example.org/v1 @0: spec{. replicas}\n",
      "{'spec':{'replicas':1}}" },
    { APPLY, "b", "",
      "{'spec':{'nothing':'x'}}",
      "b Apply example.org/v1 @1: spec{nothing}\n"
      "a Update example.org/v1 @0: spec{. replicas}\n",
      "{'spec':{'nothing':'x','replicas':1}}" },
    { APPLY, "b", "",
      "{'spec':{'nothing':null}}",
      "b Apply example.org/v1 @2: spec{nothing}\n"
      "a Update example.org/v1 @0: spec{. replicas}\n",
      "{'spec':{'nothing':null,'replicas':1}}" },
    { APPLY, "c", "",
      "{'spec':{'nothing':'y'}}",
      "409 Apply failed with 1 conflict: conflict with 'b': .spec.nothing",
      NULL },
};

static const struct test_step unknowns[] = {
    { APPLY, "a", "",
      "{'spec':{'free':{'m':{'x':1,'l':[1]}}}}",
      "a Apply example.org/v1 @0: spec{free{m{. l x}}}\n",
      "{'spec':{'free':{'m':{'l':[1],'x':1}}}}" },
    { APPLY, "b", "",
      "{'spec':{'free':{'m':{'y':1}}}}",
      "a Apply example.org/v1 @0: spec{free{m{. l x}}}\n"
      "b Apply example.org/v1 @1: spec{free{m{. y}}}\n",
      "{'spec':{'free':{'m':{'l':[1],'x':1,'y':1}}}}" },
    { APPLY, "a", "",
      "{'spec':{'free':{'m':{'x':1}}}}",
      "b Apply example.org/v1 @1: spec{free{m{. y}}}\n"
      "a Apply example.org/v1 @2: spec{free{m{. x}}}\n",
      "{'spec':{'free':{'m':{'x':1,'y':1}}}}" },
    { APPLY, "a", "",
      "{'spec':{'free':{'m':{'y':1}}}}",
      "b Apply example.org/v1 @1: spec{free{m{. y}}}\n"
      "a Apply example.org/v1 @3: spec{free{m{. y}}}\n",
      "{'spec':{'free':{'m':{'y':1}}}}" },
    { APPLY, "a", "",
      "{'spec':{'free':{'m':3}}}",
      "409 Apply failed with 1 conflict: conflict with 'b': .spec.free.m",
      NULL },
    { FORCE, "a", "",
      "{'spec':{'free':{'m':3}}}",
      "a Apply example.org/v1 @5: spec{free{m}}\n",
      "{'spec':{'free':{'m':3}}}" },
    { MERGE, "u", "",
      "{'spec':{'free':{'m':{'k':1}}}}",
      "u Update example.org/v1 @6: spec{free{m{. k}}}\n",
      "{'spec':{'free':{'m':{'k':1}}}}" },
};

static const struct test_step empties[] = {
    { APPLY, "a", "",
      "{'spec':{'labels':{},'tags':[],'template':{}}}",
      "a Apply example.org/v1 @0: spec{labels template}\n",
      "{'spec':{'labels':{},'tags':[],'template':{}}}" },
    { APPLY, "b", "",
      "{'spec':{'labels':{'a':'b'},'tags':['x'],'template':{'size':1}}}",
      "a Apply example.org/v1 @0: spec{labels template}\n"
      "b Apply example.org/v1 @1: spec{labels{a} tags{[=x]} template{size}}\n",
      "{'spec':{'labels':{'a':'b'},'tags':['x'],'template':{'size':1}}}" },
    { APPLY, "a", "",
      "{'spec':{'replicas':1}}",
      "b Apply example.org/v1 @1: spec{labels{a} tags{[=x]} template{size}}\n"
      "a Apply example.org/v1 @2: spec{replicas}\n",
      "{'spec':{'labels':{'a':'b'},'replicas':1,'tags':['x'],'template':{'size':1}}}" },
    { APPLY, "b", "",
      "{'spec':{'replicas':1}}",
      "a Apply example.org/v1 @2: spec{replicas}\n"
      "b Apply example.org/v1 @3: spec{replicas}\n",
      "{'spec':{'replicas':1}}" },
};

static const struct test_step mistakes[] = {
    { APPLY, "a", "",
      "{'spec':{'containers':[{'name':'c'},{'name':'c'}]}}",
      "500 failed to create typed patch object (/errors; example.org/v1, Kind=Widget): "
      ".spec.containers: duplicate entries for key [name='c']",
      NULL },
    { APPLY, "a", "",
      "{'spec':{'containers':[{'image':'c'}]}}",
      "500 failed to create typed patch object (/errors; example.org/v1, Kind=Widget): "
      ".spec.containers: element 0: associative list with keys has an element that omits all key "
      "fields ['name'] (and doesn't have default values for any key fields)",
      NULL },
    { APPLY, "a", "",
      "{'spec':{'bogus':1}}",
      "500 failed to create typed patch object (/errors; example.org/v1, Kind=Widget): "
      ".spec.bogus: field not declared in schema",
      NULL },
    { APPLY, "a", "",
      "{'spec':{'tags':['a','a']}}",
      "500 failed to create typed patch object (/errors; example.org/v1, Kind=Widget): "
      ".spec.tags: duplicate entries for key [='a']",
      NULL },
    { APPLY, "a", "",
      "{'spec':{'tags':'a'}}",
      "500 failed to create typed patch object (/errors; example.org/v1, Kind=Widget): "
      ".spec.tags: expected list, got &{a}",
      NULL },
    { APPLY, "a", "",
      "{'spec':{'tags':[{'a':1}]}}",
      "500 failed to create typed patch object (/errors; example.org/v1, Kind=Widget): "
      ".spec.tags: element 0: associative list without keys has an element that's a map type",
      NULL },
    { APPLY, "a", "",
      "{'spec':{'template':[]}}",
      "500 failed to create typed patch object (/errors; example.org/v1, Kind=Widget): "
      ".spec.template: expected map, got &{[]}",
      NULL },
    { APPLY, "a", "",
      "{'metadata':{'managedFields':[]}}",
      "400 metadata.managedFields must be nil",
      NULL },
    { APPLY, "a", "",
      "{'metadata':{'managedFields':[{}]}}",
      "400 metadata.managedFields must be nil",
      NULL },
    { APPLY, "a", "",
      "{'spec':{'containers':[3]}}",
      "500 failed to create typed patch object (/errors; example.org/v1, Kind=Widget): "
      ".spec.containers: element 0: associative list with keys may not have non-map elements",
      NULL },
    { APPLY, "a", "",
      "{'spec':{'replicas':'x'}}",
      "500 failed to create typed patch object (/errors; example.org/v1, Kind=Widget): "
      ".spec.replicas: expected numeric (int or float), got string",
      NULL },
};

static const struct test_step ports[] = {
    { APPLY, "a", "",
      "{'spec':{'selector':{'a':'b'},'ports':[{'port':80,'name':'x'},{'port':443,'name':'y'},"
      "{'port':8080,'name':'z','protocol':'UDP'}]}}",
      "a Apply v1 @0: spec{ports{[port=443,protocol=TCP]{. name port} [port=80,protocol=TCP]{. "
      "name port} [port=8080,protocol=UDP]{. name port protocol}} selector}\n",
      NULL },
    { APPLY, "b", "",
      "{'spec':{'ports':[{'port':80,'protocol':'TCP','name':'x'},{'port':90,'name':'w'}]}}",
      "a Apply v1 @0: spec{ports{[port=443,protocol=TCP]{. name port} [port=80,protocol=TCP]{. "
      "name port} [port=8080,protocol=UDP]{. name port protocol}} selector}\n"
      "b Apply v1 @1: spec{ports{[port=80,protocol=TCP]{. name port protocol} [port=90,"
      "protocol=TCP]{. name port}}}\n",
      NULL },
    { APPLY, "a", "",
      "{'spec':{'selector':{'a':'b'},'ports':[{'port':443,'name':'y'}]}}",
      "b Apply v1 @1: spec{ports{[port=80,protocol=TCP]{. name port protocol} [port=90,"
      "protocol=TCP]{. name port}}}\n"
      "a Apply v1 @2: spec{ports{[port=443,protocol=TCP]{. name port}} selector}\n",
      NULL },
    { MERGE, "u", "",
      "{'spec':{'ports':[{'port':443,'name':'yy'}]}}",
      "a Apply v1 @2: spec{ports{[port=443,protocol=TCP]{. port}} selector}\n"
      "u Update v1 @3: spec{ports{[port=443,protocol=TCP]{name}}}\n",
      NULL },
};

static const struct test_step port_conflict[] = {
    { CREATE, "u", "",
      "{'spec':{'ports':[{'name':'x','protocol':'TCP','port':80,'targetPort':80},{'name':'y',"
      "'protocol':'TCP','port':443,'targetPort':443}],'selector':{'a':'b'},'type':'ClusterIP',"
      "'sessionAffinity':'None','internalTrafficPolicy':'Cluster'}}",
      "u Update v1 @0: spec{internalTrafficPolicy ports{. [port=443,protocol=TCP]{. name port "
      "protocol targetPort} [port=80,protocol=TCP]{. name port protocol targetPort}} selector "
      "sessionAffinity type}\n",
      NULL },
    { APPLY, "a", "",
      "{'spec':{'ports':[{'port':80,'name':'x','targetPort':8080}]}}",
      "409 Apply failed with 1 conflict: conflict with 'u' using v1: .spec.ports[port=80,"
      "protocol='TCP'].targetPort",
      NULL },
};

static const struct test_step applied_deployment[] = {
    { APPLY, "a", "",
      "{'spec':{'replicas':1,'selector':{'matchLabels':{'app':'q'}},"
      "'template':{'metadata':{'labels':{'app':'q'}},'spec':{'containers':[{'name':'c',"
      "'image':'i','ports':[{'containerPort':80}],'env':[{'name':'A','value':'1'}],"
      "'resources':{'limits':{'cpu':'1'}}}]}}}}",
      "a Apply apps/v1 @0: spec{replicas selector template{metadata{labels{app}} "
      "spec{containers{[name=c]{. env{[name=A]{. name value}} image name ports{[containerPort=80,"
      "protocol=TCP]{. containerPort}} resources{limits{cpu}}}}}}}\n",
      NULL },
    { APPLY, "b", "",
      "{'spec':{'replicas':2}}",
      "409 Apply failed with 1 conflict: conflict with 'a': .spec.replicas",
      NULL },
    { FORCE, "b", "",
      "{'spec':{'replicas':2}}",
      "a Apply apps/v1 @0: spec{selector template{metadata{labels{app}} "
      "spec{containers{[name=c]{. env{[name=A]{. name value}} image name ports{[containerPort=80,"
      "protocol=TCP]{. containerPort}} resources{limits{cpu}}}}}}}\n"
      "b Apply apps/v1 @2: spec{replicas}\n",
      NULL },
    { APPLY, "b", "",
      "{'metadata':{'labels':{'x':'y'}}}",
      "a Apply apps/v1 @0: spec{selector template{metadata{labels{app}} "
      "spec{containers{[name=c]{. env{[name=A]{. name value}} image name ports{[containerPort=80,"
      "protocol=TCP]{. containerPort}} resources{limits{cpu}}}}}}}\n"
      "b Apply apps/v1 @3: metadata{labels{x}}\n",
      NULL },
};

static const struct test_step doubled[] = {
    { CREATE, "u", "",
      "{'spec':{'replicas':1,'selector':{'matchLabels':{'app':'q'}},"
      "'template':{'metadata':{'labels':{'app':'q'}},'spec':{'containers':[{'name':'c',"
      "'image':'i','env':[{'name':'A','value':'1'},{'name':'A','value':'2'}],'resources':{},"
      "'terminationMessagePath':'/dev/termination-log','terminationMessagePolicy':'File',"
      "'imagePullPolicy':'Always'}],'restartPolicy':'Always','terminationGracePeriodSeconds':30,"
      "'dnsPolicy':'ClusterFirst','securityContext':{},'schedulerName':'default-scheduler'}},"
      "'strategy':{'type':'RollingUpdate','rollingUpdate':{'maxUnavailable':'25%',"
      "'maxSurge':'25%'}},'revisionHistoryLimit':10,'progressDeadlineSeconds':600}}",
      "u Update apps/v1 @0: spec{progressDeadlineSeconds replicas revisionHistoryLimit selector "
      "strategy{rollingUpdate{. maxSurge maxUnavailable} type} template{metadata{labels{. app}} "
      "spec{containers{[name=c]{. env{. [name=A]} image imagePullPolicy name resources "
      "terminationMessagePath terminationMessagePolicy}} dnsPolicy restartPolicy schedulerName "
      "securityContext terminationGracePeriodSeconds}}}\n",
      NULL },
    { MERGE, "v", "",
      "{'spec':{'replicas':3}}",
      "u Update apps/v1 @0: spec{progressDeadlineSeconds revisionHistoryLimit selector "
      "strategy{rollingUpdate{. maxSurge maxUnavailable} type} template{metadata{labels{. app}} "
      "spec{containers{[name=c]{. env{. [name=A]} image imagePullPolicy name resources "
      "terminationMessagePath terminationMessagePolicy}} dnsPolicy restartPolicy schedulerName "
      "securityContext terminationGracePeriodSeconds}}}\n"
      "v Update apps/v1 @1: spec{replicas}\n",
      NULL },
    { FORCE, "a", "",
      "{'spec':{'template':{'spec':{'containers':[{'name':'c','env':[{'name':'A',"
      "'value':'2'}]}]}}}}",
      "a Apply apps/v1 @2: spec{template{spec{containers{[name=c]{. env{[name=A]{. name value}} "
      "name}}}}}\n"
      "u Update apps/v1 @0: spec{progressDeadlineSeconds revisionHistoryLimit selector "
      "strategy{rollingUpdate{. maxSurge maxUnavailable} type} template{metadata{labels{. app}} "
      "spec{containers{[name=c]{. env image imagePullPolicy name resources "
      "terminationMessagePath terminationMessagePolicy}} dnsPolicy restartPolicy schedulerName "
      "securityContext terminationGracePeriodSeconds}}}\n"
      "v Update apps/v1 @1: spec{replicas}\n",
      NULL },
    { APPLY, "a", "",
      "{'spec':{'template':{'spec':{'containers':[{'name':'c','image':'i'}]}}}}",
      "a Apply apps/v1 @3: spec{template{spec{containers{[name=c]{. image name}}}}}\n"
      "u Update apps/v1 @0: spec{progressDeadlineSeconds revisionHistoryLimit selector "
      "strategy{rollingUpdate{. maxSurge maxUnavailable} type} template{metadata{labels{. app}} "
      "spec{containers{[name=c]{. env image imagePullPolicy name resources "
      "terminationMessagePath terminationMessagePolicy}} dnsPolicy restartPolicy schedulerName "
      "securityContext terminationGracePeriodSeconds}}}\n"
      "v Update apps/v1 @1: spec{replicas}\n",
      NULL },
};
/* clang-format on */

static void what_is_not_applied_any_more_goes(void **state)
{
    (void)state;
    TEST_STEPS(TEST_CONFIG_MAP, "apply-create", applied);
}

static void equal_values_are_shared(void **state)
{
    (void)state;
    TEST_STEPS(TEST_CONFIG_MAP, "apply-share", shared);
}

static void other_values_conflict_unless_forced(void **state)
{
    (void)state;
    TEST_STEPS(TEST_CONFIG_MAP, "apply-conflict", contested);
}

static void updates_take_what_they_change_from_appliers(void **state)
{
    (void)state;
    TEST_STEPS(TEST_CONFIG_MAP, "update-after-apply", updated);
}

static void an_updater_is_not_the_applier_of_its_name(void **state)
{
    (void)state;
    TEST_STEPS(TEST_CONFIG_MAP, "same-name", same_name);
}

static void a_conflict_names_everybody(void **state)
{
    (void)state;
    TEST_STEPS(TEST_CONFIG_MAP, "multi", several);
}

static void elements_of_a_set_have_owners_of_their_own(void **state)
{
    (void)state;
    TEST_STEPS(TEST_CONFIG_MAP, "finalizers", finalizers);
}

static void what_nobody_set_was_before_the_first_apply(void **state)
{
    (void)state;
    TEST_STEPS(TEST_CONFIG_MAP, "bfa", untracked);
}

static void updates_of_an_untracked_object_are_not_tracked(void **state)
{
    (void)state;
    TEST_STEPS(TEST_WIDGET, "bfa2", untracked_widget);
}

static void who_applies_nothing_has_no_entry(void **state)
{
    (void)state;
    TEST_STEPS(TEST_CONFIG_MAP, "bfa3", nothing_applied);
}

static void an_applier_owns_leaves_and_elements(void **state)
{
    (void)state;
    TEST_STEPS(TEST_WIDGET, "widget-apply", applied_widget);
}

static void elements_are_merged_by_their_keys(void **state)
{
    (void)state;
    TEST_STEPS(TEST_WIDGET, "list-items", elements);
}

static void applied_elements_have_the_applied_order(void **state)
{
    (void)state;
    TEST_STEPS(TEST_WIDGET, "list-order", order);
}

static void an_element_goes_with_what_an_updater_set_in_it(void **state)
{
    (void)state;
    TEST_STEPS(TEST_WIDGET, "child-owned", elements_updated);
}

static void an_element_stays_for_another_applier(void **state)
{
    (void)state;
    TEST_STEPS(TEST_WIDGET, "child-owned2", elements_shared);
}

static void what_is_atomic_has_one_value(void **state)
{
    (void)state;
    TEST_STEPS(TEST_WIDGET, "atomic", atomics);
}

static void a_subresource_has_entries_of_its_own(void **state)
{
    (void)state;
    TEST_STEPS(TEST_WIDGET, "status", statuses);
}

static void a_parent_stays_for_its_owner(void **state)
{
    (void)state;
    TEST_STEPS(TEST_WIDGET, "gone-parent", parents);
}

static void a_parent_stays_for_what_is_in_it(void **state)
{
    (void)state;
    TEST_STEPS(TEST_WIDGET, "gone-parent2", parents_updated);
}

static void null_is_a_value(void **state)
{
    (void)state;
    TEST_STEPS(TEST_WIDGET, "nulls", nulls);
}

static void unknown_fields_are_maps_and_atomic_lists(void **state)
{
    (void)state;
    TEST_STEPS(TEST_WIDGET, "free", unknowns);
}

static void an_empty_map_is_applied_and_an_empty_list_is_not(void **state)
{
    (void)state;
    TEST_STEPS(TEST_WIDGET, "apply-empty", empties);
}

static void a_config_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    TEST_STEPS(TEST_WIDGET, "errors", mistakes);
}

static void ports_have_the_default_protocol_in_their_keys(void **state)
{
    (void)state;
    TEST_STEPS(TEST_SERVICE, "svc", ports);
}

static void a_conflict_in_an_element_names_its_keys(void **state)
{
    (void)state;
    TEST_STEPS(TEST_SERVICE, "svc-post", port_conflict);
}

static void a_deployment_is_applied_by_two(void **state)
{
    (void)state;
    TEST_STEPS(TEST_DEPLOYMENT, "dep-apply", applied_deployment);
}

static void doubled_elements_are_one_field(void **state)
{
    (void)state;
    TEST_STEPS(TEST_DEPLOYMENT, "dup-live", doubled);
}

static const struct kinf__manager kubectl = { "kubectl", "v1", "", "2026-01-01T00:00:01Z" };
static const struct kinf__manager other = { "other", "v1", "", "2026-01-01T00:00:02Z" };

static void a_conflict_has_its_causes(void **state)
{
    const struct kinf__schema_node *node = test_kind_schema(TEST_CONFIG_MAP);
    KINF__AUTO_DOC *config = test_tree("{'data':{'x':'1','y':'1'}}");
    KINF__AUTO_DOC *different = test_tree("{'data':{'x':'2','y':'2'}}");
    KINF__AUTO_DOC *live = NULL;
    struct cJSON *none = NULL;
    struct kinf__refusal refusal;

    (void)state;
    assert_int_equal(kinf__managed_apply(node, NULL, config, &kubectl, false, &live, &refusal), 0);
    assert_int_equal(kinf__managed_apply(node, live, different, &other, false, &none, &refusal),
                     KINF_ERR_INVALID);
    assert_null(none);
    assert_int_equal(refusal.code, 409);
    assert_string_equal(refusal.reason, "Conflict");
    assert_int_equal(refusal.details, KINF__DETAILS_CAUSES);
    assert_int_equal(refusal.n_causes, 2);
    assert_string_equal(refusal.causes[1].reason, "FieldManagerConflict");
    assert_string_equal(refusal.causes[1].field, ".data.y");
    assert_string_equal(refusal.causes[1].message, "conflict with \"kubectl\"");
}

/* What kubectl has made with its own apply, and what the server says of it. */
static struct cJSON *applied_by_client(void)
{
    return test_tree(
        "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','annotations':{"
        "'kubectl.kubernetes.io/last-applied-configuration':'{\\\"data\\\":{\\\"x\\\":\\\"5\\\"},"
        "\\\"metadata\\\":{\\\"labels\\\":{\\\"l\\\":\\\"m\\\"}}}'},'labels':{'l':'m'},"
        "'managedFields':[{'manager':'kubectl-client-side-apply','operation':'Update',"
        "'apiVersion':'v1','time':'2026-01-01T00:00:00Z','fieldsType':'FieldsV1','fieldsV1':{"
        "'f:data':{'.':{},'f:x':{}},'f:metadata':{'f:annotations':{'.':{},"
        "'f:kubectl.kubernetes.io/last-applied-configuration':{}},'f:labels':{'.':{},'f:l':{}}}}}]"
        "},'data':{'x':'5'}}");
}

static void kubectl_goes_on_from_its_own_apply(void **state)
{
    const struct kinf__schema_node *node = test_kind_schema(TEST_CONFIG_MAP);
    KINF__AUTO_DOC *live = applied_by_client();
    KINF__AUTO_DOC *config = test_tree("{'metadata':{'labels':{'l':'m'}},'data':{'x':'7'}}");
    KINF__AUTO_DOC *object = NULL;
    KINF__AUTO_FREE char *managed = NULL;
    struct kinf__refusal refusal;

    (void)state;
    assert_int_equal(kinf__managed_apply(node, live, config, &other, false, &object, &refusal),
                     KINF_ERR_INVALID);
    assert_string_equal(refusal.message, "Apply failed with 1 conflict: conflict with "
                                         "\"kubectl-client-side-apply\" using v1: .data.x");
    assert_int_equal(kinf__managed_apply(node, live, config, &kubectl, false, &object, &refusal),
                     0);
    managed = test_print_managed(object);
    assert_string_equal(managed,
                        "kubectl Apply v1 @1: data{x} metadata{labels{l}}\n"
                        "kubectl-client-side-apply Update v1 @0: data metadata{annotations{. "
                        "kubectl.kubernetes.io/last-applied-configuration} labels{. l}}\n");
    assert_string_equal(kinf__doc_text(object, "metadata", "annotations",
                                       "kubectl.kubernetes.io/last-applied-configuration", NULL),
                        "{\"metadata\":{\"labels\":{\"l\":\"m\"}},\"data\":{\"x\":\"7\"}}\n");
}

/* kubectl writes the list itself when it goes over to the server's apply. */
static void kubectl_may_make_itself_the_applier(void **state)
{
    const struct kinf__schema_node *node = test_kind_schema(TEST_CONFIG_MAP);
    KINF__AUTO_DOC *live = applied_by_client();
    KINF__AUTO_DOC *patched = applied_by_client();
    KINF__AUTO_DOC *config = test_tree("{'data':{'z':'7'}}");
    KINF__AUTO_DOC *object = NULL;
    KINF__AUTO_FREE char *managed = NULL;
    struct cJSON *entry = kinf__doc_find(patched, "metadata", "managedFields", NULL)->child;
    struct kinf__refusal refusal;

    (void)state;
    assert_int_equal(kinf__doc_set_text(entry, "manager", "kubectl"), 0);
    assert_int_equal(kinf__doc_set_text(entry, "operation", "Apply"), 0);
    assert_int_equal(kinf__managed_update(node, live, patched, &kubectl, false), 0);
    assert_int_equal(kinf__managed_apply(node, patched, config, &kubectl, false, &object, &refusal),
                     0);
    managed = test_print_managed(object);
    assert_string_equal(managed, "kubectl Apply v1 @1: data{z}\n");
    assert_null(kinf__doc_find(object, "metadata", "labels", NULL));
    assert_null(kinf__doc_find(object, "data", "x", NULL));
}

/* Each with the same values, so that nobody is in the way of anybody. */
static struct cJSON *random_config(struct test_random *random)
{
    struct cJSON *config = test_tree("{'spec':{'labels':{},'tags':[],'containers':[]}}");
    struct cJSON *spec = kinf__doc_get(config, "spec"), *element;
    char text[8];

    for (int i = 0; i < 6; i++) {
        snprintf(text, sizeof text, "n%d", i);
        if (test_random_below(random, 2) != 0)
            assert_int_equal(kinf__doc_set_text(kinf__doc_get(spec, "labels"), text, "x"), 0);
        if (test_random_below(random, 2) != 0)
            assert_int_equal(
                kinf__doc_append(kinf__doc_get(spec, "tags"), cJSON_CreateString(text)), 0);
        if (test_random_below(random, 2) == 0)
            continue;
        element = cJSON_CreateObject();
        assert_int_equal(kinf__doc_append(kinf__doc_get(spec, "containers"), element), 0);
        assert_int_equal(kinf__doc_set_text(element, "name", text), 0);
        if (test_random_below(random, 2) != 0)
            assert_int_equal(kinf__doc_set_text(element, "image", text), 0);
    }
    /* Who applies an empty one owns it as a whole, and is in the way of others. */
    for (struct cJSON *member = spec->child, *next; member != NULL; member = next) {
        next = member->next;
        if (member->child == NULL)
            cJSON_Delete(cJSON_DetachItemViaPointer(spec, member));
    }
    return config;
}

#define N_MANAGERS 3

static bool has_string(const struct cJSON *array, const char *text)
{
    const struct cJSON *item;

    cJSON_ArrayForEach(item, array)
    {
        if (cJSON_IsString(item) ? strcmp(item->valuestring, text) == 0
                                 : strcmp(kinf__doc_text(item, "name", NULL), text) == 0)
            return true;
    }
    return false;
}

/* A field is there as long as one of those who apply says it. */
static void expect_union(const struct cJSON *object, struct cJSON *const configs[N_MANAGERS])
{
    char text[8];

    for (int i = 0; i < 6; i++) {
        bool is_label = false, is_tag = false, is_container = false;

        snprintf(text, sizeof text, "n%d", i);
        for (int m = 0; m < N_MANAGERS; m++) {
            const struct cJSON *spec = kinf__doc_get(configs[m], "spec");

            is_label |= kinf__doc_find(spec, "labels", text, NULL) != NULL;
            is_tag |= has_string(kinf__doc_get(spec, "tags"), text);
            is_container |= has_string(kinf__doc_get(spec, "containers"), text);
        }
        assert_int_equal(kinf__doc_find(object, "spec", "labels", text, NULL) != NULL, is_label);
        assert_int_equal(has_string(kinf__doc_find(object, "spec", "tags", NULL), text), is_tag);
        assert_int_equal(has_string(kinf__doc_find(object, "spec", "containers", NULL), text),
                         is_container);
    }
}

static void an_object_is_the_union_of_what_is_applied(void **state)
{
    static const struct kinf__manager managers[N_MANAGERS] = { { "a", "v1", "", "1" },
                                                               { "b", "v1", "", "2" },
                                                               { "c", "v1", "", "3" } };
    struct test_random random = test_random_init("apply");
    size_t n_rounds = test_rounds(2000);
    struct cJSON *configs[N_MANAGERS] = { NULL, NULL, NULL };
    struct cJSON *live = NULL, *object;
    struct kinf__refusal refusal;

    (void)state;
    for (size_t i = 0; i < n_rounds; i++) {
        size_t m = test_random_below(&random, N_MANAGERS);

        cJSON_Delete(configs[m]);
        configs[m] = random_config(&random);
        assert_int_equal(kinf__managed_apply(test_kind_schema(TEST_WIDGET), live, configs[m],
                                             &managers[m], false, &object, &refusal),
                         0);
        cJSON_Delete(live);
        live = object;
        expect_union(live, configs);
    }
    cJSON_Delete(live);
    for (int m = 0; m < N_MANAGERS; m++)
        cJSON_Delete(configs[m]);
}

/* 40,000 members: what looks for each of them among all would take minutes. */
static void a_large_object_is_no_trap(void **state)
{
    KINF__AUTO_DOC *config = test_tree("{'data':{},'other':{'list':[]}}");
    KINF__AUTO_DOC *live = NULL;
    KINF__AUTO_DOC *object = NULL;
    struct cJSON *members = kinf__doc_get(config, "data");
    struct kinf__refusal refusal;
    char name[16];

    (void)state;
    for (int i = 40000; i > 0; i--) {
        snprintf(name, sizeof name, "k%d", i);
        assert_true(cJSON_AddItemToObject(members, name, cJSON_CreateString("some text")));
    }
    assert_int_equal(kinf__managed_apply(NULL, NULL, config, &other, false, &live, &refusal), 0);
    cJSON_Delete(cJSON_DetachItemViaPointer(members, members->child));
    assert_int_equal(kinf__managed_apply(NULL, live, config, &other, false, &object, &refusal), 0);
    assert_int_equal(cJSON_GetArraySize(kinf__doc_get(object, "data")), 39999);
    assert_int_equal(kinf__managed_update(NULL, live, object, &kubectl, false), 0);
}

static void apply_survives_any_failed_allocation(void **state)
{
    const struct kinf__schema_node *node = test_kind_schema(TEST_WIDGET);
    KINF__AUTO_DOC *first =
        test_tree("{'spec':{'replicas':1,'tags':['a','b'],'labels':{'x':'y','z':'z'},"
                  "'containers':[{'name':'c','image':'i'},{'name':'d'}]}}");
    KINF__AUTO_DOC *second =
        test_tree("{'spec':{'replicas':2,'tags':['c','b'],'labels':{'x':'y','v':'w'},"
                  "'containers':[{'name':'e'},{'name':'c','ports':[{'port':1}]}]}}");
    KINF__AUTO_DOC *live = NULL;
    struct kinf__refusal refusal;
    size_t n = 1;
    int failed;

    (void)state;
    assert_int_equal(kinf__managed_apply(node, NULL, first, &kubectl, false, &live, &refusal), 0);
    for (int i = 0; i < 3; i++) {
        n = 1;
        test_fail_trees(true);
        for (bool has_failed = true; has_failed; n++) {
            KINF__AUTO_DOC *object = NULL;

            test_fail_allocation(n);
            failed = kinf__managed_apply(node, live, second, i == 0 ? &kubectl : &other, i == 1,
                                         &object, &refusal);
            has_failed = test_allocation_failed();
            /* A comparison goes on without an index. */
            if (has_failed && failed == KINF_ERR_NO_MEMORY)
                assert_int_equal(refusal.code, 500);
            else
                assert_int_equal(failed, i == 2 ? KINF_ERR_INVALID : 0);
        }
        test_fail_trees(false);
        assert_true(n > 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_applied_any_more_goes),
        cmocka_unit_test(equal_values_are_shared),
        cmocka_unit_test(other_values_conflict_unless_forced),
        cmocka_unit_test(updates_take_what_they_change_from_appliers),
        cmocka_unit_test(an_updater_is_not_the_applier_of_its_name),
        cmocka_unit_test(a_conflict_names_everybody),
        cmocka_unit_test(elements_of_a_set_have_owners_of_their_own),
        cmocka_unit_test(what_nobody_set_was_before_the_first_apply),
        cmocka_unit_test(updates_of_an_untracked_object_are_not_tracked),
        cmocka_unit_test(who_applies_nothing_has_no_entry),
        cmocka_unit_test(an_applier_owns_leaves_and_elements),
        cmocka_unit_test(elements_are_merged_by_their_keys),
        cmocka_unit_test(applied_elements_have_the_applied_order),
        cmocka_unit_test(an_element_goes_with_what_an_updater_set_in_it),
        cmocka_unit_test(an_element_stays_for_another_applier),
        cmocka_unit_test(what_is_atomic_has_one_value),
        cmocka_unit_test(a_subresource_has_entries_of_its_own),
        cmocka_unit_test(a_parent_stays_for_its_owner),
        cmocka_unit_test(a_parent_stays_for_what_is_in_it),
        cmocka_unit_test(null_is_a_value),
        cmocka_unit_test(unknown_fields_are_maps_and_atomic_lists),
        cmocka_unit_test(an_empty_map_is_applied_and_an_empty_list_is_not),
        cmocka_unit_test(a_config_that_does_not_fit_is_refused),
        cmocka_unit_test(ports_have_the_default_protocol_in_their_keys),
        cmocka_unit_test(a_conflict_in_an_element_names_its_keys),
        cmocka_unit_test(a_deployment_is_applied_by_two),
        cmocka_unit_test(doubled_elements_are_one_field),
        cmocka_unit_test(a_conflict_has_its_causes),
        cmocka_unit_test(kubectl_goes_on_from_its_own_apply),
        cmocka_unit_test(kubectl_may_make_itself_the_applier),
        cmocka_unit_test(an_object_is_the_union_of_what_is_applied),
        cmocka_unit_test(a_large_object_is_no_trap),
        cmocka_unit_test(apply_survives_any_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
