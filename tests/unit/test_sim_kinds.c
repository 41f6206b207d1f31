/*
 * Rules of kinds: what kube-apiserver 1.37.1 answered to the same requests.
 */
#include "apiserver/kinds.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/rfc3339.h"
#include "apiserver/kinds_priv.h"
#include "unit/allocation.h"
#include "unit/sim_fixture.h"
#include "unit/test.h"

#define SUBDOMAIN                                                                                  \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "   \
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "  \
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define LABEL                                                                                      \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "   \
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "     \
    "used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
#define LABEL_1035                                                                                 \
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "   \
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "           \
    "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
#define CONFIG_KEY                                                                                 \
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "           \
    "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "                    \
    "'[-._a-zA-Z0-9]+')"

#define C        "'containers':[{'name':'c','image':'x:1'}]"
#define TEMPLATE "'template':{'metadata':{'labels':{'a':'b'}},'spec':{" C "}}"
#define NEVER    "'template':{'spec':{" C ",'restartPolicy':'Never'}}"
#define X        "'metadata':{'name':'x','namespace':'default'}"

static int set_up(void **state)
{
    *state = test_sim_new();
    return 0;
}

static int tear_down(void **state)
{
    test_sim_free(*state);
    return 0;
}

/* --- refusals --- */

static const struct refused {
    const char *resource;
    const char *json;
    const char *message; /* behind "is invalid: " */
} refused[] = {
    { "namespaces", "{'metadata':{'name':'A.b'}}",
      "metadata.name: Invalid value: \"A.b\": " LABEL },
    { "namespaces", "{'metadata':{'name':'n'},'spec':{'finalizers':['foo']}}",
      "spec.finalizers: Invalid value: \"foo\": name is neither a standard finalizer name nor is "
      "it "
      "fully qualified" },
    { "pods", "{'metadata':{'name':'p'}}", "spec.containers: Required value" },
    { "pods", "{'metadata':{},'spec':{" C "}}",
      "metadata.name: Required value: name or generateName is required" },
    { "pods", "{" X ",'spec':{'containers':[{}]}}",
      "[spec.containers[0].name: Required value, spec.containers[0].image: Required value]" },
    { "pods",
      "{" X ",'spec':{'restartPolicy':'Foo','dnsPolicy':'x','containers':[{'name':'c',"
      "'image':'x:1','imagePullPolicy':'Foo'}]}}",
      "[spec.containers[0].imagePullPolicy: Unsupported value: \"Foo\": supported values: "
      "\"Always\", \"IfNotPresent\", \"Never\", spec.restartPolicy: Unsupported value: \"Foo\": "
      "supported values: \"Always\", \"OnFailure\", \"Never\", spec.dnsPolicy: Unsupported value: "
      "\"x\": supported values: \"ClusterFirstWithHostNet\", \"ClusterFirst\", \"Default\", "
      "\"None\"]" },
    { "pods", "{'metadata':{'name':'P_2'},'spec':{" C "}}",
      "metadata.name: Invalid value: \"P_2\": " SUBDOMAIN },
    { "deployments.apps", "{" X "}",
      "[spec.selector: Required value, spec.template.metadata.labels: Invalid value: null: "
      "`selector` does not match template `labels`, spec.template.spec.containers: Required "
      "value]" },
    { "deployments.apps", "{" X ",'spec':{" TEMPLATE "}}",
      "[spec.selector: Required value, spec.template.metadata.labels: Invalid value: "
      "{\"a\":\"b\"}: "
      "`selector` does not match template `labels`]" },
    { "replicasets.apps", "{" X ",'spec':{'selector':{'matchLabels':{'a':'c'}}," TEMPLATE "}}",
      "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match "
      "template `labels`" },
    { "statefulsets.apps",
      "{" X ",'spec':{'replicas':-1,'selector':{'matchLabels':{'a':'b'}},'template':{'metadata':{"
      "'labels':{'a':'b'}},'spec':{" C ",'restartPolicy':'Never'}}}}",
      "[spec.replicas: Invalid value: -1: must be greater than or equal to 0, "
      "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: "
      "\"Always\"]" },
    { "daemonsets.apps", "{" X "}",
      "[spec.template.metadata.labels: Invalid value: null: `selector` does not match template "
      "`labels`, spec.template.spec.containers: Required value]" },
    { "jobs.batch", "{" X ",'spec':{'template':{'spec':{" C "}}}}",
      "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"" },
    { "jobs.batch",
      "{" X ",'spec':{'parallelism':-1,'completions':-2,'backoffLimit':-1," NEVER "}}",
      "[spec.parallelism: Invalid value: -1: must be greater than or equal to 0, spec.completions: "
      "Invalid value: -2: must be greater than or equal to 0, spec.backoffLimit: Invalid value: "
      "-1: must be greater than or equal to 0]" },
    { "cronjobs.batch", "{" X "}",
      "[spec.jobTemplate.spec.template.spec.containers: Required value, "
      "spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: "
      "\"OnFailure\", \"Never\", spec.schedule: Required value]" },
    { "services", "{" X "}", "spec.ports: Required value" },
    { "services", "{" X ",'spec':{'type':'ExternalName'}}", "spec.externalName: Required value" },
    { "services", "{" X ",'spec':{'clusterIP':'10.0.0.1','ports':[{'port':80}]}}",
      "spec.clusterIPs: Invalid value: [\"10.0.0.1\"]: failed to allocate IP 10.0.0.1: provided IP "
      "is already allocated" },
    { "services", "{" X ",'spec':{'clusterIP':'10.9.0.1','ports':[{'port':80}]}}",
      "spec.clusterIPs: Invalid value: [\"10.9.0.1\"]: failed to allocate IP 10.9.0.1: the "
      "provided "
      "network does not match the current range" },
    { "services", "{" X ",'spec':{'clusterIP':'foo','ports':[{'port':80}]}}",
      "spec.clusterIPs[0]: Invalid value: \"foo\": must be a valid IP address, (e.g. 10.9.8.7 or "
      "2001:db8::ffff)" },
    { "services", "{" X ",'spec':{'type':'NodePort','ports':[{'port':80,'nodePort':20}]}}",
      "spec.ports[0].nodePort: Invalid value: 20: provided port is not in the valid range. The "
      "range "
      "of valid ports is 30000-32767" },
    { "services", "{" X ",'spec':{'type':'Foo','ports':[{'port':80}]}}",
      "spec.type: Unsupported value: \"Foo\": supported values: \"ClusterIP\", \"ExternalName\", "
      "\"LoadBalancer\", \"NodePort\"" },
    { "configmaps", "{" X ",'data':{'a b':'b'}}",
      "data[a b]: Invalid value: \"a b\": " CONFIG_KEY },
    { "configmaps", "{" X ",'data':{'..':'b','.':'q','..a':'x'}}",
      "[data[..]: Invalid value: \"..\": must not be '..', data[.]: Invalid value: \".\": must not "
      "be '.', data[..a]: Invalid value: \"..a\": must not start with '..']" },
    { "configmaps", "{" X ",'data':{'a':'b'},'binaryData':{'a':'aGk='}}",
      "data[a]: Invalid value: \"a\": duplicate of key present in binaryData" },
    { "secrets", "{" X ",'type':'kubernetes.io/tls'}",
      "[data[tls.crt]: Required value, data[tls.key]: Required value]" },
    { "secrets", "{" X ",'type':'kubernetes.io/basic-auth'}",
      "[data[username]: Required value, data[password]: Required value]" },
    { "secrets", "{" X ",'type':'kubernetes.io/service-account-token'}",
      "metadata.annotations[kubernetes.io/service-account.name]: Required value" },
    { "persistentvolumeclaims", "{" X "}",
      "[spec.accessModes: Required value: at least 1 access mode is required, "
      "spec.resources[storage]: Required value]" },
    { "ingresses.networking.k8s.io", "{" X "}",
      "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified" },
    { "rolebindings.rbac.authorization.k8s.io", "{" X "}",
      "[roleRef.kind: Unsupported value: \"\": supported values: \"Role\", \"ClusterRole\", "
      "roleRef.name: Required value]" },
    { "clusterroles.rbac.authorization.k8s.io", "{'metadata':{'name':'a/b'}}",
      "metadata.name: Invalid value: \"a/b\": may not contain '/'" },
    { "leases.coordination.k8s.io",
      "{" X ",'spec':{'leaseDurationSeconds':0,'leaseTransitions':-1}}",
      "[spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0, "
      "spec.leaseTransitions: "
      "Invalid value: -1: must be greater than or equal to 0]" },
    { "priorityclasses.scheduling.k8s.io", "{'metadata':{'name':'system-x'},'value':1}",
      "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for "
      "system "
      "use only. error: system-x is not a known system priority class" },
    { "storageclasses.storage.k8s.io", "{'metadata':{'name':'x'}}", "provisioner: Required value" },
    { "services", "{" X ",'spec':{'ports':[{'port':80,'name':'a'},{'port':80,'name':'b'}]}}",
      "spec.ports[1]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":null,"
      "\"Port\":80,\"TargetPort\":0,\"NodePort\":0}" },
    { "statefulsets.apps", "{'metadata':{'name':'a.b'},'spec':{'selector':{}," TEMPLATE "}}",
      "[metadata.name: Invalid value: \"a.b\": must not contain dots, spec.selector: Invalid "
      "value: "
      "{}: empty selector is invalid for statefulset]" },
    { "pods",
      "{" X
      ",'spec':{'volumes':[{'emptyDir':{}},{'name':'b'},{'name':'b'}],'containers':[{'name':'c',"
      "'image':'x','volumeMounts':[{'name':'zz','mountPath':'/x'},{'mountPath':'/"
      "y'},{'name':'b'}]}]}}",
      "[spec.volumes[0].name: Required value, spec.volumes[2].name: Duplicate value: \"b\", "
      "spec.containers[0].volumeMounts[0].name: Not found: \"zz\", "
      "spec.containers[0].volumeMounts[1].name: Required value, "
      "spec.containers[0].volumeMounts[1].name: Not found: \"\", "
      "spec.containers[0].volumeMounts[2].mountPath: Required value]" },
    { "endpointslices.discovery.k8s.io", "{" X "}", "addressType: Required value" },
    { "configmaps", "{'metadata':{'name':'x','finalizers':['x']}}",
      "metadata.finalizers[0]: Invalid value: \"x\": name is neither a standard finalizer name nor "
      "is "
      "it fully qualified" },
    { "configmaps", "{'metadata':{'name':'x','finalizers':['foregroundDeletion','orphan']}}",
      "metadata.finalizers: Invalid value: [\"foregroundDeletion\",\"orphan\"]: finalizer orphan "
      "and "
      "foregroundDeletion cannot be both set" },
    { "configmaps",
      "{'metadata':{'name':'x','ownerReferences':[{'apiVersion':'','kind':'A','name':'','uid':'u'}]"
      "}}",
      "[metadata.ownerReferences[0].apiVersion: Required value: must not be empty, "
      "metadata.ownerReferences[0].name: Required value: must not be empty]" },
    { "configmaps", "{'metadata':{'name':'x','labels':{'a':'c d'}}}",
      "metadata.labels: Invalid value: \"c d\": a valid label must be an empty string or consist "
      "of "
      "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
      "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
      "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')" },
    { "customresourcedefinitions.apiextensions.k8s.io",
      "{'metadata':{'name':'foo.a.example.com'},'spec':{'group':'a.example.com','scope':'"
      "Namespaced',"
      "'names':{'plural':'foos','kind':'Foo'},'versions':[{'name':'v1','served':true,'storage':"
      "true,"
      "'schema':{'openAPIV3Schema':{'type':'object'}}}]}}",
      "metadata.name: Invalid value: \"foo.a.example.com\": must be spec.names.plural+\".\"+"
      "spec.group" },
};

static void faults_of_new_objects_are_told_in_the_servers_words(void **state)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const struct refused *row = &refused[i];
        struct test_outcome outcome = test_create(*state, row->resource, row->json);
        const char *words = strstr(outcome.message, "is invalid: ");

        if (outcome.code != 422 || words == NULL)
            fail_msg("%s: %d %s", row->json, outcome.code, outcome.message);
        assert_string_equal(words + strlen("is invalid: "), row->message);
    }
}

static void a_refusal_names_kind_group_and_causes(void **state)
{
    struct test_outcome outcome =
        test_create(*state, "deployments.apps", "{" X ",'spec':{" TEMPLATE "}}");

    assert_non_null(strstr(outcome.message, "Deployment.apps \"x\" is invalid: [spec.selector"));
    assert_string_equal(outcome.refusal.kind, "Deployment");
    assert_string_equal(outcome.refusal.group, "apps");
    assert_string_equal(outcome.refusal.name, "x");
    assert_int_equal(outcome.refusal.n_causes, 2);
    assert_string_equal(outcome.refusal.causes[0].reason, "FieldValueRequired");
    assert_string_equal(outcome.refusal.causes[0].field, "spec.selector");
    assert_string_equal(outcome.refusal.causes[1].field, "spec.template.metadata.labels");
}

/* --- what new objects get --- */

static void pods_are_admitted(void **state)
{
    test_must_create(*state, "pods", "{" X ",'spec':{" C "},'status':{'phase':'Running'}}");
    test_expect(*state, "pods", "default/x", "status",
                "{'phase':'Pending','qosClass':'BestEffort'}");
    test_expect(*state, "pods", "default/x", "metadata.generation", "1");
    test_expect(*state, "pods", "default/x", "spec.priority", "0");
    test_expect(*state, "pods", "default/x", "spec.preemptionPolicy", "'PreemptLowerPriority'");
    test_expect(*state, "pods", "default/x", "spec.enableServiceLinks", "true");
    test_expect(
        *state, "pods", "default/x", "spec.tolerations",
        "[{'key':'node.kubernetes.io/not-ready','operator':'Exists','effect':'NoExecute',"
        "'tolerationSeconds':300},{'key':'node.kubernetes.io/unreachable','operator':'Exists',"
        "'effect':'NoExecute','tolerationSeconds':300}]");
}

static void pods_have_the_priority_of_their_class(void **state)
{
    struct test_outcome outcome =
        test_create(*state, "pods", "{" X ",'spec':{'priorityClassName':'nope'," C "}}");

    assert_int_equal(outcome.code, 403);
    assert_string_equal(outcome.message,
                        "pods \"x\" is forbidden: no PriorityClass with name nope was found");
    test_must_create(*state, "pods",
                     "{" X ",'spec':{'priorityClassName':'system-node-critical'," C "}}");
    test_expect(*state, "pods", "default/x", "spec.priority", "2000001000");
}

static void quality_of_service_follows_from_resources(void **state)
{
    test_must_create(*state, "pods",
                     "{'metadata':{'name':'g'},'spec':{'containers':[{'name':'c','image':'x',"
                     "'resources':{'limits':{'cpu':'1','memory':'1Gi'}}}]}}");
    test_must_create(*state, "pods",
                     "{'metadata':{'name':'b'},'spec':{'initContainers':[{'name':'i','image':'x'}],"
                     "'containers':[{'name':'c','image':'x','resources':{'limits':{'cpu':'1',"
                     "'memory':'1Gi'}}}]}}");
    test_expect(*state, "pods", "default/g", "status.qosClass", "'Guaranteed'");
    test_expect(*state, "pods", "default/b", "status.qosClass", "'Burstable'");
}

static void new_objects_have_the_status_of_their_kind(void **state)
{
    test_must_create(*state, "replicasets.apps",
                     "{" X ",'spec':{'selector':{'matchLabels':{'a':'b'}}," TEMPLATE
                     "},'status':{'replicas':7}}");
    test_must_create(*state, "daemonsets.apps",
                     "{" X ",'spec':{'selector':{'matchLabels':{'a':'b'}}," TEMPLATE "}}");
    test_must_create(*state, "persistentvolumeclaims",
                     "{" X ",'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{"
                     "'storage':'1Gi'}}}}");
    test_must_create(*state, "namespaces", "{'metadata':{'name':'n'},'status':{'phase':'Gone'}}");
    test_expect(*state, "replicasets.apps", "default/x", "status", "{'replicas':0}");
    test_expect(*state, "daemonsets.apps", "default/x", "status",
                "{'currentNumberScheduled':0,'numberMisscheduled':0,'desiredNumberScheduled':0,"
                "'numberReady':0}");
    test_expect(*state, "daemonsets.apps", "default/x", "metadata.annotations",
                "{'deprecated.daemonset.template.generation':'1'}");
    test_expect(*state, "persistentvolumeclaims", "default/x", "status", "{'phase':'Pending'}");
    test_expect(*state, "persistentvolumeclaims", "default/x", "metadata.finalizers",
                "['kubernetes.io/pvc-protection']");
    test_expect(*state, "namespaces", "n", "status", "{'phase':'Active'}");
    test_expect(*state, "namespaces", "n", "spec", "{'finalizers':['kubernetes']}");
    test_expect(*state, "namespaces", "n", "metadata.labels",
                "{'kubernetes.io/metadata.name':'n'}");
}

static void jobs_find_their_pods_by_uid(void **state)
{
    struct cJSON *job;
    const char *uid;

    test_must_create(*state, "jobs.batch", "{" X ",'spec':{" NEVER "}}");
    job = test_get(*state, "jobs.batch", "default/x");
    uid = kinf__doc_text(job, "metadata", "uid", NULL);
    assert_string_equal(kinf__doc_text(job, "spec", "selector", "matchLabels",
                                       "batch.kubernetes.io/controller-uid", NULL),
                        uid);
    assert_string_equal(kinf__doc_text(job, "spec", "template", "metadata", "labels",
                                       "batch.kubernetes.io/controller-uid", NULL),
                        uid);
    cJSON_Delete(job);
}

static void jobs_without_labels_have_those_of_their_template(void **state)
{
    static const struct {
        const char *labels;
        bool has_them;
    } jobs[] = { { "", true }, { ",'labels':{}", true }, { ",'labels':{'a':'b'}", false } };

    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        char body[512], name[16], key[32];
        struct cJSON *job, *labels;

        snprintf(name, sizeof name, "j%zu", i);
        snprintf(key, sizeof key, "default/%s", name);
        snprintf(body, sizeof body,
                 "{'metadata':{'name':'%s'%s},'spec':{'template':{'metadata':{'labels':{'a':'b'}},"
                 "'spec':{'restartPolicy':'Never','containers':[{'name':'c','image':'i'}]}}}}",
                 name, jobs[i].labels);
        test_must_create(*state, "jobs.batch", body);
        job = test_get(*state, "jobs.batch", key);
        labels = kinf__doc_find(job, "metadata", "labels", NULL);
        assert_string_equal(kinf__doc_text(labels, "a", NULL), "b");
        assert_string_equal(kinf__doc_text(labels, "job-name", NULL), jobs[i].has_them ? name : "");
        cJSON_Delete(job);
    }
}

/* --- services --- */

static void services_get_addresses_and_keep_them(void **state)
{
    struct cJSON *service, *other;

    test_must_create(*state, "services", "{" X ",'spec':{'ports':[{'port':80}]}}");
    test_must_create(*state, "services",
                     "{'metadata':{'name':'y'},'spec':{'ports':[{'port':80}]}}");
    service = test_get(*state, "services", "default/x");
    other = test_get(*state, "services", "default/y");
    assert_int_equal(strncmp(kinf__doc_text(service, "spec", "clusterIP", NULL), "10.0.", 5), 0);
    assert_string_not_equal(kinf__doc_text(service, "spec", "clusterIP", NULL),
                            kinf__doc_text(other, "spec", "clusterIP", NULL));
    assert_string_equal(kinf__doc_find(service, "spec", "clusterIPs", NULL)->child->valuestring,
                        kinf__doc_text(service, "spec", "clusterIP", NULL));
    test_expect(*state, "services", "default/x", "spec.ipFamilies", "['IPv4']");
    test_expect(*state, "services", "default/x", "spec.ports.0.targetPort", "80");
    test_expect(*state, "services", "default/x", "status", "{'loadBalancer':{}}");
    test_must_merge(*state, "services", "default/x", "",
                    "{'spec':{'clusterIP':null,'clusterIPs':null,'sessionAffinity':'ClientIP'}}");
    cJSON_Delete(other);
    other = test_get(*state, "services", "default/x");
    assert_string_equal(kinf__doc_text(service, "spec", "clusterIP", NULL),
                        kinf__doc_text(other, "spec", "clusterIP", NULL));
    cJSON_Delete(service);
    cJSON_Delete(other);
}

static void addresses_do_not_change(void **state)
{
    static const struct {
        const char *key, *patch, *addresses;
    } rows[] = {
        { "default/x", "{'spec':{'clusterIP':'10.0.0.99','clusterIPs':['10.0.0.99']}}",
          "[\"10.0.0.99\"]" },
        { "default/x", "{'spec':{'clusterIP':'10.0.0.99'}}", "[\"10.0.0.99\"]" },
        { "default/x", "{'spec':{'clusterIP':'None'}}", "[\"None\"]" },
        { "default/x", "{'spec':{'clusterIP':'None','clusterIPs':null}}", "[\"None\"]" },
        { "default/headless", "{'spec':{'clusterIP':'10.0.0.99'}}", "[\"10.0.0.99\"]" },
    };
    char message[256];

    test_must_create(*state, "services", "{" X ",'spec':{'ports':[{'port':80}]}}");
    test_must_create(*state, "services",
                     "{'metadata':{'name':'headless','namespace':'default'},'spec':{'clusterIP':"
                     "'None','ports':[{'port':80}]}}");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct test_outcome outcome =
            test_merge(*state, "services", rows[i].key, "", rows[i].patch);

        snprintf(message, sizeof message,
                 "Service \"%s\" is invalid: spec.clusterIPs[0]: Invalid value: %s: may not change "
                 "once set",
                 strchr(rows[i].key, '/') + 1, rows[i].addresses);
        assert_string_equal(outcome.message, message);
    }
    test_must_merge(*state, "services", "default/x", "",
                    "{'spec':{'type':'ExternalName','externalName':'a.b'}}");
    test_must_merge(*state, "services", "default/x", "",
                    "{'spec':{'type':'ClusterIP','clusterIP':'None'}}");
    test_expect(*state, "services", "default/x", "spec.clusterIPs", "['None']");
    test_expect(*state, "services", "default/x", "spec.ipFamilyPolicy", "'RequireDualStack'");
}

static void node_ports_come_and_go_with_the_type(void **state)
{
    struct cJSON *service;
    int64_t port;

    test_must_create(*state, "services", "{" X ",'spec':{'ports':[{'port':80}]}}");
    test_expect(*state, "services", "default/x", "spec.ports.0.nodePort", "null");
    test_must_merge(*state, "services", "default/x", "", "{'spec':{'type':'NodePort'}}");
    service = test_get(*state, "services", "default/x");
    port = kinf__doc_integer(kinf__doc_find(service, "spec", "ports", NULL)->child, "nodePort", 0);
    assert_in_range(port, 30000, 32767);
    cJSON_Delete(service);
    test_must_merge(*state, "services", "default/x", "",
                    "{'spec':{'ports':[{'port':80,'protocol':'TCP'}]}}");
    service = test_get(*state, "services", "default/x");
    assert_int_equal(
        kinf__doc_integer(kinf__doc_find(service, "spec", "ports", NULL)->child, "nodePort", 0),
        port);
    cJSON_Delete(service);
    test_must_merge(*state, "services", "default/x", "", "{'spec':{'type':'ClusterIP'}}");
    test_expect(*state, "services", "default/x", "spec.ports.0.nodePort", "null");
    test_expect(*state, "services", "default/x", "spec.externalTrafficPolicy", "null");
    test_must_merge(*state, "services", "default/x", "",
                    "{'spec':{'type':'ExternalName','externalName':'a.b'}}");
    test_expect(*state, "services", "default/x", "spec.clusterIP", "null");
}

static void every_address_and_port_is_given_once(void **state)
{
    char json[256];
    bool has_port[2768] = { false };

    for (int i = 0; i < 200; i++) {
        struct cJSON *service;
        int64_t port;

        snprintf(json, sizeof json,
                 "{'metadata':{'name':'s%d'},'spec':{'type':'NodePort','ports':[{'port':80}]}}", i);
        test_must_create(*state, "services", json);
        snprintf(json, sizeof json, "default/s%d", i);
        service = test_get(*state, "services", json);
        port = kinf__doc_integer(kinf__doc_find(service, "spec", "ports", NULL)->child, "nodePort",
                                 0) -
               30000;
        assert_in_range(port, 0, 2767);
        assert_false(has_port[port]);
        has_port[port] = true;
        cJSON_Delete(service);
    }
}

/* --- updates --- */

static void status_and_the_rest_are_written_apart(void **state)
{
    test_must_create(*state, "deployments.apps",
                     "{" X ",'spec':{'selector':{'matchLabels':{'a':'b'}}," TEMPLATE "}}");
    test_must_merge(
        *state, "deployments.apps", "default/x", "status",
        "{'metadata':{'labels':{'l':'m'},'annotations':{'a':'b'}},'spec':{'replicas':7},"
        "'status':{'observedGeneration':1}}");
    test_expect(*state, "deployments.apps", "default/x", "spec.replicas", "1");
    test_expect(*state, "deployments.apps", "default/x", "metadata.labels", "null");
    test_expect(*state, "deployments.apps", "default/x", "metadata.annotations", "{'a':'b'}");
    test_expect(*state, "deployments.apps", "default/x", "status", "{'observedGeneration':1}");
    test_expect(*state, "deployments.apps", "default/x", "metadata.generation", "1");
    test_must_merge(*state, "deployments.apps", "default/x", "",
                    "{'spec':{'replicas':3},'status':{'observedGeneration':9}}");
    test_expect(*state, "deployments.apps", "default/x", "status", "{'observedGeneration':1}");
    test_expect(*state, "deployments.apps", "default/x", "metadata.generation", "2");
    test_must_merge(*state, "deployments.apps", "default/x", "",
                    "{'metadata':{'annotations':{'c':'d'}}}");
    test_expect(*state, "deployments.apps", "default/x", "metadata.generation", "3");
}

static void numbers_of_a_status_stay_when_they_are_left_out(void **state)
{
    test_must_create(*state, "replicasets.apps",
                     "{" X ",'spec':{'selector':{'matchLabels':{'a':'b'}}," TEMPLATE "}}");
    test_must_merge(*state, "replicasets.apps", "default/x", "status",
                    "{'metadata':{'labels':{'l':'m'}},'status':{'replicas':null,"
                    "'observedGeneration':1}}");
    test_expect(*state, "replicasets.apps", "default/x", "status",
                "{'replicas':0,'observedGeneration':1}");
    test_expect(*state, "replicasets.apps", "default/x", "metadata.labels", "{'l':'m'}");
}

/* Compared one with each other, these would take minutes. */
#define N_MANY 100000

static int64_t cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec;
}

/* What is at the path "metadata.finalizers" or "spec.ports" of a new object; `n` from `first` on. */
static struct cJSON *object_of_many(const char *member, const char *array, int first,
                                    struct cJSON *(*make)(int i))
{
    struct cJSON *object = cJSON_CreateObject();
    struct cJSON *list = kinf__doc_array(kinf__doc_object(object, member), array);

    for (int i = first; i < first + N_MANY; i++)
        assert_int_equal(kinf__doc_append(list, make(i)), 0);
    return object;
}

static struct cJSON *make_finalizer(int i)
{
    char text[32];

    snprintf(text, sizeof text, "a/%d", i);
    return cJSON_CreateString(text);
}

static void many_finalizers_are_compared_at_once(void **state)
{
    KINF__AUTO_DOC *old = object_of_many("metadata", "finalizers", 0, make_finalizer);
    KINF__AUTO_DOC *object = object_of_many("metadata", "finalizers", 1, make_finalizer);
    const struct kinf__metadata_rules rules = { KINF__NAME_SUBDOMAIN, true };
    struct kinf__refusal refusal;
    struct kinf__invalid invalid;
    int64_t start_s = cpu_s();

    (void)state;
    kinf__invalid_init(&invalid, &refusal);
    assert_int_equal(kinf__doc_set_text(kinf__doc_get(old, "metadata"), "deletionTimestamp", "x"),
                     0);
    assert_int_equal(kinf__doc_set_text(kinf__doc_get(object, "metadata"), "name", "a"), 0);
    kinf__metadata_validate(object, old, rules, &invalid);
    assert_int_equal(invalid.n_faults, 1);
    assert_non_null(strstr(invalid.words, "found new finalizers []string{\"a/100000\"}"));
    assert_true(cpu_s() - start_s < 10);
}

/* A selector that asks for each of many labels of its template. */
static void many_labels_are_compared_at_once(void **state)
{
    struct kinf__resource *sets = kinf__store_find(kinf__sim_store(*state), "apps", "replicasets");
    KINF__AUTO_DOC *object = cJSON_CreateObject();
    struct cJSON *spec = kinf__doc_object(object, "spec"), *labels = cJSON_CreateObject();
    struct cJSON *template = kinf__doc_object(kinf__doc_object(spec, "template"), "metadata");
    struct kinf__refusal refusal;
    int64_t start_s = cpu_s();
    char name[32];

    for (int i = 0; i < N_MANY; i++) {
        snprintf(name, sizeof name, "a%d", i);
        assert_true(cJSON_AddItemToObject(labels, name, cJSON_CreateString("")));
    }
    assert_int_equal(kinf__doc_set(template, "labels", kinf__doc_dup(labels)), 0);
    assert_int_equal(kinf__doc_set(kinf__doc_object(spec, "selector"), "matchLabels", labels), 0);
    assert_int_equal(kinf__kind_validate(sets, object, NULL, &refusal), KINF_ERR_INVALID);
    assert_null(strstr(refusal.message, "does not match"));
    assert_true(cJSON_AddItemToObject(labels, "b", cJSON_CreateString("")));
    assert_int_equal(kinf__kind_validate(sets, object, NULL, &refusal), KINF_ERR_INVALID);
    assert_non_null(strstr(refusal.message, "does not match"));
    assert_true(cpu_s() - start_s < 10);
}

/* Limits become requests, one of which there is, and each is compared with its limit. */
static void many_resources_are_compared_at_once(void **state)
{
    KINF__AUTO_BUFFER json = KINF__BUFFER_INIT;
    int64_t start_s = cpu_s();

    assert_int_equal(kinf__buffer_printf(&json, "{" X ",'spec':{'containers':[{'name':'c',"
                                                "'image':'x:1','resources':{'requests':{"
                                                "'a/0':'2'},'limits':{"),
                     0);
    for (int i = 0; i < N_MANY; i++)
        assert_int_equal(kinf__buffer_printf(&json, "%s'a/%d':'1'", i != 0 ? "," : "", i), 0);
    assert_int_equal(kinf__buffer_printf(&json, "}}}]}}"), 0);
    assert_string_equal(test_create(*state, "pods", kinf__buffer_cstr(&json)).message,
                        "Pod \"x\" is invalid: spec.containers[0].resources.requests: Invalid "
                        "value: \"2\": must be less than or equal to a/0 limit of 1");
    assert_true(cpu_s() - start_s < 20);
}

static struct cJSON *make_port(int i)
{
    struct cJSON *port = cJSON_CreateObject();

    assert_int_equal(kinf__doc_set_integer(port, "port", i), 0);
    assert_int_equal(kinf__doc_set_text(port, "protocol", "TCP"), 0);
    assert_int_equal(kinf__doc_set_integer(port, "nodePort", i), 0);
    return port;
}

/* Of a service that has no use for them those that it had go, and new ones stay to be refused. */
static void many_ports_are_compared_at_once(void **state)
{
    struct kinf__resource *services = kinf__store_find(kinf__sim_store(*state), "", "services");
    KINF__AUTO_DOC *old = object_of_many("spec", "ports", 0, make_port);
    KINF__AUTO_DOC *object = object_of_many("spec", "ports", 1, make_port);
    struct kinf__refusal refusal;
    const struct cJSON *ports = kinf__doc_find(object, "spec", "ports", NULL);
    int64_t start_s = cpu_s();

    assert_int_equal(kinf__doc_set_text(kinf__doc_get(object, "spec"), "clusterIP", "10.0.0.9"), 0);
    kinf__store_lock(kinf__sim_store(*state));
    assert_int_equal(kinf__kind_prepare_update(*state, services, old, object, "", &refusal), 0);
    kinf__store_unlock(kinf__sim_store(*state));
    assert_null(kinf__doc_get(ports->child, "nodePort"));
    assert_int_equal(kinf__doc_integer(ports->child->prev, "nodePort", 0), N_MANY);
    assert_true(cpu_s() - start_s < 10);
}

static void pods_change_in_few_fields(void **state)
{
    struct test_outcome outcome;

    test_must_create(*state, "pods", "{" X ",'spec':{" C "}}");
    test_must_merge(*state, "pods", "default/x", "",
                    "{'spec':{'containers':[{'name':'c','image':'y:2'}]}}");
    test_expect(*state, "pods", "default/x", "spec.containers.0.image", "'y:2'");
    test_expect(*state, "pods", "default/x", "metadata.generation", "2");
    outcome = test_merge(*state, "pods", "default/x", "", "{'spec':{'hostname':'h'}}");
    assert_int_equal(outcome.code, 422);
    assert_non_null(strstr(
        outcome.message, "Pod \"x\" is invalid: spec: Forbidden: pod updates may not change fields "
                         "other than `spec.containers[*].image`,"));
    outcome =
        test_merge(*state, "pods", "default/x", "",
                   "{'spec':{'containers':[{'name':'c','image':'y'},{'name':'d','image':'y'}]}"
                   "}");
    assert_string_equal(
        outcome.message,
        "Pod \"x\" is invalid: spec.containers: Forbidden: pod updates may not add or "
        "remove containers");
    test_must_merge(*state, "pods", "default/x", "status",
                    "{'metadata':{'labels':{'l':'m'},'ownerReferences':[{'apiVersion':'v1',"
                    "'kind':'A','name':'a','uid':'b'}]},'status':{'phase':'Running'}}");
    test_expect(*state, "pods", "default/x", "status.phase", "'Running'");
    test_expect(*state, "pods", "default/x", "metadata.labels", "{'l':'m'}");
    test_expect(*state, "pods", "default/x", "metadata.ownerReferences", "null");
}

#define POD_OF_NODE "'spec':{'nodeName':'n'," C "}"

static int64_t end_of(struct kinf__sim *sim, const char *key)
{
    struct cJSON *pod = test_get(sim, "pods", key);
    int64_t end_s = 0;

    assert_non_null(pod);
    assert_true(kinf__rfc3339_parse(
        kinf_str_from(kinf__doc_text(pod, "metadata", "deletionTimestamp", NULL)), &end_s));
    cJSON_Delete(pod);
    return end_s;
}

static void a_pod_may_have_all_the_time_that_a_date_can_say(void **state)
{
    test_must_create(*state, "pods", "{" X "," POD_OF_NODE "}");
    test_must_delete_within(*state, "pods", "default/x", INT64_MAX);
    test_expect(*state, "pods", "default/x", "metadata.deletionTimestamp",
                "'9999-12-31T23:59:59Z'");
}

static void pods_that_go_can_only_go_sooner(void **state)
{
    static const int64_t pending[] = { -1, 40, 41 };
    int64_t end_s;

    test_must_create(*state, "pods", "{" X "," POD_OF_NODE "}");
    test_must_delete_within(*state, "pods", "default/x", 40);
    end_s = end_of(*state, "default/x");
    for (size_t i = 0; i < sizeof pending / sizeof pending[0]; i++) {
        kinf__clock_advance(2000);
        test_must_delete_within(*state, "pods", "default/x", pending[i]);
        assert_int_equal(end_of(*state, "default/x"), end_s);
        test_expect(*state, "pods", "default/x", "metadata.deletionGracePeriodSeconds", "40");
    }
    test_must_delete_within(*state, "pods", "default/x", 25);
    assert_int_equal(end_of(*state, "default/x"), end_s - 15);
    test_expect(*state, "pods", "default/x", "metadata.deletionGracePeriodSeconds", "25");
    kinf__clock_advance(10000);
    test_must_delete_within(*state, "pods", "default/x", 10);
    assert_in_range(end_of(*state, "default/x"), end_s - 24, kinf__clock_wall_ms() / 1000);
    test_expect(*state, "pods", "default/x", "metadata.deletionGracePeriodSeconds", "1");
    test_must_delete_within(*state, "pods", "default/x", 0);
    assert_false(test_is_there(*state, "pods", "default/x"));
}

static void pods_that_end_while_they_go_keep_their_time(void **state)
{
    test_must_create(*state, "pods", "{" X "," POD_OF_NODE "}");
    test_must_delete_within(*state, "pods", "default/x", -1);
    test_must_merge(*state, "pods", "default/x", "status", "{'status':{'phase':'Succeeded'}}");
    test_must_delete(*state, "pods", "default/x", KINF__PROPAGATION_FOREGROUND);
    test_expect(*state, "pods", "default/x", "metadata.deletionGracePeriodSeconds", "30");
    test_expect(*state, "pods", "default/x", "metadata.finalizers", "null");
    test_must_delete_within(*state, "pods", "default/x", 10);
    test_expect(*state, "pods", "default/x", "metadata.deletionGracePeriodSeconds", "10");
}

static const struct {
    const char *resource;
    const char *json;
    const char *patch;
    const char *message;
} frozen[] = {
    { "configmaps", "{" X ",'data':{'a':'b'},'immutable':true}", "{'data':{'a':'c'}}",
      "data: Forbidden: field is immutable when `immutable` is set" },
    { "configmaps", "{" X ",'data':{'a':'b'},'immutable':true}",
      "{'data':{'a':'c'},'immutable':null}",
      "[immutable: Forbidden: field is immutable when `immutable` is set, data: Forbidden: field "
      "is "
      "immutable when `immutable` is set]" },
    { "secrets", "{" X "}", "{'type':'q'}", "type: Invalid value: \"q\": field is immutable" },
    { "deployments.apps", "{" X ",'spec':{'selector':{'matchLabels':{'a':'b'}}," TEMPLATE "}}",
      "{'spec':{'selector':{'matchLabels':{'q':'r'}},'template':{'metadata':{'labels':{'q':'r'}}}}"
      "}",
      "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\",\"q\":\"r\"}}: field is "
      "immutable" },
    { "statefulsets.apps", "{" X ",'spec':{'selector':{'matchLabels':{'a':'b'}}," TEMPLATE "}}",
      "{'spec':{'podManagementPolicy':'Parallel'}}",
      "spec.podManagementPolicy: Invalid value: \"Parallel\": field is immutable" },
    { "jobs.batch", "{" X ",'spec':{" NEVER "}}", "{'spec':{'completions':4}}",
      "spec.completions: Invalid value: 4: field is immutable" },
    { "rolebindings.rbac.authorization.k8s.io",
      "{" X ",'roleRef':{'apiGroup':'rbac.authorization.k8s.io','kind':'Role','name':'a'}}",
      "{'roleRef':{'name':'z'}}",
      "roleRef: Invalid value: {\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"Role\","
      "\"name\":\"z\"}: field is immutable" },
    { "storageclasses.storage.k8s.io", "{'metadata':{'name':'x'},'provisioner':'p'}",
      "{'provisioner':'q'}", "provisioner: Invalid value: null: field is immutable" },
    { "priorityclasses.scheduling.k8s.io", "{'metadata':{'name':'x'},'value':1}", "{'value':2}",
      "value: Forbidden: may not be changed in an update." },
};

static void some_kinds_are_not_updated_blindly(void **state)
{
    static const char *const blind[] = { "", ",'resourceVersion':'0'" };
    char json[128];

    test_must_create(*state, "leases.coordination.k8s.io", "{" X ",'spec':{'leaseTransitions':1}}");
    for (size_t i = 0; i < sizeof blind / sizeof blind[0]; i++) {
        struct test_outcome outcome;

        snprintf(json, sizeof json,
                 "{'metadata':{'name':'x','namespace':'default'%s},'spec':{'leaseTransitions':2}}",
                 blind[i]);
        outcome = test_update(*state, "leases.coordination.k8s.io", "", json);
        assert_int_equal(outcome.code, 422);
        assert_string_equal(outcome.message,
                            "leases.coordination.k8s.io \"x\" is invalid: "
                            "metadata.resourceVersion: Invalid value: 0: must be specified for an "
                            "update");
    }
    test_must_merge(*state, "leases.coordination.k8s.io", "default/x", "",
                    "{'spec':{'leaseTransitions':2}}");
}

static void what_is_immutable_stays(void **state)
{
    for (size_t i = 0; i < sizeof frozen / sizeof frozen[0]; i++) {
        const char *key = strstr(frozen[i].json, "namespace") != NULL ? "default/x" : "x";
        struct test_outcome outcome;
        const char *words;

        test_must_create(*state, frozen[i].resource, frozen[i].json);
        outcome = test_merge(*state, frozen[i].resource, key, "", frozen[i].patch);
        words = strstr(outcome.message, "is invalid: ");
        if (outcome.code != 422 || words == NULL)
            fail_msg("%s: %d %s", frozen[i].patch, outcome.code, outcome.message);
        assert_string_equal(words + strlen("is invalid: "), frozen[i].message);
        test_must_delete(*state, frozen[i].resource, key, KINF__PROPAGATION_BACKGROUND);
    }
}

static void finalizers_are_not_added_to_what_goes(void **state)
{
    struct test_outcome outcome;

    test_must_create(*state, "configmaps",
                     "{'metadata':{'name':'x','namespace':'default','finalizers':['a.b/c']}}");
    test_must_delete(*state, "configmaps", "default/x", KINF__PROPAGATION_DEFAULT);
    outcome = test_merge(*state, "configmaps", "default/x", "",
                         "{'metadata':{'finalizers':['a.b/c','x.y/z']}}");
    assert_string_equal(outcome.message,
                        "ConfigMap \"x\" is invalid: metadata.finalizers: Forbidden: no new "
                        "finalizers can be added if the object is being deleted, found new "
                        "finalizers []string{\"x.y/z\"}");
    test_must_merge(*state, "configmaps", "default/x", "", "{'metadata':{'finalizers':null}}");
    assert_false(test_is_there(*state, "configmaps", "default/x"));
}

/* --- events --- */

#define EVENTS "events.events.k8s.io"
#define ABOUT  "{'kind':'Pod','name':'p'}"

static const struct {
    const char *core, *events;
    const char *json;
} members[] = {
    { "involvedObject", "regarding", ABOUT },
    { "message", "note", "'m'" },
    { "reportingComponent", "reportingController", "'example.com/c'" },
    { "reportingInstance", "reportingInstance", "'i'" },
    { "source", "deprecatedSource", "{'component':'s'}" },
    { "firstTimestamp", "deprecatedFirstTimestamp", "null" },
    { "lastTimestamp", "deprecatedLastTimestamp", "'2020-01-01T00:00:00Z'" },
    { "count", "deprecatedCount", "2" },
    { "reason", "reason", "'r'" },
    { "type", "type", "'Normal'" },
    { "series", "series", "{'count':2,'lastObservedTime':'2020-01-01T00:00:00.000000Z'}" },
};

static void expect_event(struct kinf__sim *sim, const char *key)
{
    struct cJSON *core = test_get(sim, "events", key), *event = test_get(sim, EVENTS, key);

    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        test_expect(sim, "events", key, members[i].core, members[i].json);
        test_expect(sim, EVENTS, key, members[i].events, members[i].json);
    }
    assert_string_equal(kinf__doc_text(core, "apiVersion", NULL), "v1");
    assert_string_equal(kinf__doc_text(event, "apiVersion", NULL), "events.k8s.io/v1");
    assert_true(kinf__doc_equal(kinf__doc_get(core, "metadata"), kinf__doc_get(event, "metadata")));
    assert_int_equal(cJSON_GetArraySize(core), cJSON_GetArraySize(event));
    cJSON_Delete(core);
    cJSON_Delete(event);
}

/* In the form of either group. */
static void make_event(struct kinf__sim *sim, bool is_core, const char *name)
{
    char json[1024];
    size_t at = (size_t)snprintf(json, sizeof json,
                                 "{'metadata':{'name':'%s','namespace':'default'},'action':'a',"
                                 "'eventTime':'2020-01-01T00:00:00.000000Z'",
                                 name);

    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        at += (size_t)snprintf(json + at, sizeof json - at, ",'%s':%s",
                               is_core ? members[i].core : members[i].events, members[i].json);
    snprintf(json + at, sizeof json - at, "}");
    test_must_create(sim, is_core ? "events" : EVENTS, json);
}

static void events_are_the_same_in_both_groups(void **state)
{
    make_event(*state, true, "a");
    make_event(*state, false, "b");
    expect_event(*state, "default/a");
    expect_event(*state, "default/b");
    test_must_merge(*state, "events", "default/b", "", "{'count':3}");
    test_expect(*state, EVENTS, "default/b", "deprecatedCount", "3");
    test_must_merge(*state, EVENTS, "default/a", "", "{'series':{'count':4}}");
    test_expect(*state, "events", "default/a", "series.count", "4");
    test_must_delete(*state, "events", "default/b", KINF__PROPAGATION_DEFAULT);
    test_must_delete(*state, EVENTS, "default/a", KINF__PROPAGATION_DEFAULT);
    assert_false(test_is_there(*state, EVENTS, "default/b"));
    assert_false(test_is_there(*state, "events", "default/a"));
}

static void what_one_group_leaves_out_is_empty_in_the_other_one(void **state)
{
    struct cJSON *event;

    test_must_create(*state, "events", "{" X ",'involvedObject':{'namespace':'default'}}");
    event = test_get(*state, EVENTS, "default/x");
    assert_null(kinf__doc_get(event, "reportingController"));
    assert_null(kinf__doc_get(event, "reportingInstance"));
    assert_true(cJSON_IsNull(kinf__doc_get(event, "eventTime")));
    assert_true(cJSON_IsNull(kinf__doc_get(event, "deprecatedFirstTimestamp")));
    cJSON_Delete(event);
    /* It would not be let in like this. */
    test_must_merge(*state, EVENTS, "default/x", "", "{'metadata':{'labels':{'a':'b'}}}");
    test_expect(*state, "events", "default/x", "reportingComponent", "''");
    test_expect(*state, "events", "default/x", "metadata.labels", "{'a':'b'}");
    test_must_delete(*state, "events", "default/x", KINF__PROPAGATION_DEFAULT);
}

static void events_come_back_in_both_groups(void **state)
{
    struct kinf__store *store = kinf__sim_store(*state);
    struct kinf__backup *backup;

    make_event(*state, false, "b");
    kinf__store_lock(store);
    assert_int_equal(kinf__store_back_up(store, &backup), 0);
    kinf__store_unlock(store);
    test_must_delete(*state, "events", "default/b", KINF__PROPAGATION_DEFAULT);
    kinf__store_lock(store);
    assert_int_equal(kinf__store_restore(store, backup), 0);
    kinf__store_unlock(store);
    kinf__backup_free(backup);
    expect_event(*state, "default/b");
}

/* --- without memory --- */

static void writes_without_memory_are_refused_or_whole(void **state)
{
    static const struct {
        const char *resource;
        const char *json;
    } rows[] = {
        { "services", "{" X ",'spec':{'type':'NodePort','ports':[{'port':80,'name':'a'}]}}" },
        { "pods", "{" X ",'spec':{'volumes':[{'name':'v'}],'priorityClassName':"
                  "'system-node-critical'," C "}}" },
        { "configmaps", "{" X ",'data':{'a':'b'},'binaryData':{'c':'aGk='}}" },
        { "jobs.batch", "{" X ",'spec':{" NEVER "}}" },
        { "events", "{" X ",'involvedObject':" ABOUT ",'message':'m'}" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool has_failed = true;

        for (size_t n = 1; has_failed; n++) {
            struct test_outcome outcome;

            test_fail_allocation(n);
            outcome = test_create(*state, rows[i].resource, rows[i].json);
            has_failed = test_allocation_failed();
            if (outcome.code != 0) {
                assert_int_equal(outcome.code, 500);
                assert_true(has_failed);
            }
            assert_true(strcmp(rows[i].resource, "events") != 0 ||
                        test_is_there(*state, "events", "default/x") ==
                            test_is_there(*state, EVENTS, "default/x"));
            if (test_is_there(*state, rows[i].resource, "default/x"))
                test_must_delete(*state, rows[i].resource, "default/x",
                                 KINF__PROPAGATION_BACKGROUND);
        }
    }
}

/* --- names --- */

static const struct {
    enum kinf__name_form form;
    const char *name;
    const char *why; /* NULL: it is of this form */
} names[] = {
    { KINF__NAME_SUBDOMAIN, "a", NULL },
    { KINF__NAME_SUBDOMAIN, "a-1.b2.c", NULL },
    { KINF__NAME_SUBDOMAIN, "a..b", SUBDOMAIN },
    { KINF__NAME_SUBDOMAIN, "a.", SUBDOMAIN },
    { KINF__NAME_SUBDOMAIN, ".a", SUBDOMAIN },
    { KINF__NAME_SUBDOMAIN, "a.-b", SUBDOMAIN },
    { KINF__NAME_SUBDOMAIN, "", SUBDOMAIN },
    { KINF__NAME_LABEL, "0-a", NULL },
    { KINF__NAME_LABEL, "a-", LABEL },
    { KINF__NAME_LABEL, "a.b", "must not contain dots" },
    { KINF__NAME_LABEL, "A.b", LABEL },
    { KINF__NAME_LABEL, "", LABEL },
    { KINF__NAME_LABEL_1035, "a0", NULL },
    { KINF__NAME_LABEL_1035, "0a", LABEL_1035 },
    { KINF__NAME_LABEL_1035, "", LABEL_1035 },
    { KINF__NAME_SEGMENT, "system:x", NULL },
    { KINF__NAME_SEGMENT, "..", "may not be '..'" },
    { KINF__NAME_SEGMENT, "a%b", "may not contain '%'" },
    { KINF__NAME_LABEL_VALUE, "", NULL },
    { KINF__NAME_LABEL_VALUE, "A_b.c-D", NULL },
    { KINF__NAME_QUALIFIED, "a", NULL },
    { KINF__NAME_QUALIFIED, "a.b/C_d", NULL },
    { KINF__NAME_QUALIFIED, "/a", "prefix part must be non-empty" },
    { KINF__NAME_QUALIFIED, "a.b/", "name part must be non-empty" },
    { KINF__NAME_QUALIFIED, "A/b", "prefix part " SUBDOMAIN },
    { KINF__NAME_CONFIG_KEY, "..data.x", "must not start with '..'" },
    { KINF__NAME_CONFIG_KEY, "_A.b-c", NULL },
};

static void names_have_forms(void **state)
{
    char why[KINF__NAME_FAULT_SIZE], longest[256];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bool is_of_form = kinf__name_is(names[i].form, names[i].name, why);

        if (is_of_form != (names[i].why == NULL))
            fail_msg("%s", names[i].name);
        if (!is_of_form)
            assert_string_equal(why, names[i].why);
    }
    memset(longest, 'a', sizeof longest);
    longest[254] = '\0';
    assert_false(kinf__name_is(KINF__NAME_LABEL_VALUE, longest, why));
    assert_string_equal(why, "must be no more than 63 bytes");
    assert_false(kinf__name_is(KINF__NAME_SUBDOMAIN, longest, why));
    assert_string_equal(why, "must be no more than 253 characters");
    assert_false(kinf__name_is(KINF__NAME_CONFIG_KEY, longest, why));
    assert_string_equal(why, "must be no more than 253 characters");
    longest[253] = '\0';
    assert_true(kinf__name_is(KINF__NAME_CONFIG_KEY, longest, why));
    assert_true(kinf__name_is(KINF__NAME_SUBDOMAIN, longest, why));
    longest[64] = '\0';
    assert_false(kinf__name_is(KINF__NAME_LABEL, longest, why));
    longest[63] = '\0';
    assert_true(kinf__name_is(KINF__NAME_LABEL, longest, why));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(faults_of_new_objects_are_told_in_the_servers_words),
        T(a_refusal_names_kind_group_and_causes),
        T(pods_are_admitted),
        T(pods_have_the_priority_of_their_class),
        T(quality_of_service_follows_from_resources),
        T(new_objects_have_the_status_of_their_kind),
        T(jobs_find_their_pods_by_uid),
        T(jobs_without_labels_have_those_of_their_template),
        T(services_get_addresses_and_keep_them),
        T(addresses_do_not_change),
        T(node_ports_come_and_go_with_the_type),
        T(every_address_and_port_is_given_once),
        T(status_and_the_rest_are_written_apart),
        T(numbers_of_a_status_stay_when_they_are_left_out),
        T(pods_change_in_few_fields),
        T(a_pod_may_have_all_the_time_that_a_date_can_say),
        T(pods_that_go_can_only_go_sooner),
        T(pods_that_end_while_they_go_keep_their_time),
        T(some_kinds_are_not_updated_blindly),
        T(what_is_immutable_stays),
        T(finalizers_are_not_added_to_what_goes),
        cmocka_unit_test(many_finalizers_are_compared_at_once),
        T(many_labels_are_compared_at_once),
        T(many_resources_are_compared_at_once),
        T(many_ports_are_compared_at_once),
        T(events_are_the_same_in_both_groups),
        T(what_one_group_leaves_out_is_empty_in_the_other_one),
        T(events_come_back_in_both_groups),
        T(writes_without_memory_are_refused_or_whole),
        cmocka_unit_test(names_have_forms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
