"""Requests that kinformer-sim and the API server are both asked, in the order in which they are asked.

A scenario is a generator that gets the name of a namespace of its own, yields requests, and is sent their answers:
so a request can say what an earlier answer said. It must yield the same requests whatever the answers are. A row is
a request with a name; one without is only made.
"""

import base64
import json
from urllib.parse import quote

from sim_steps import (JSON, PARTIAL, PARTIAL_LIST, TABLE, YAML, Scenario, Step, apply, changed, delete, encoded, get,
                       json_patch, merge, op, patch, post, put, strategic, thing, watch, where)

SCENARIOS = []


def scenario(run):
    SCENARIOS.append(Scenario(run.__name__.replace("_", "-"), run))
    return run


# --- objects ---

def config_map(name, data=None, **metadata):
    return thing("v1", "ConfigMap", name, metadata=metadata, **({} if data is None else {"data": data}))


def containers(**more):
    return [{"name": "main", "image": "example.com/main:1", **more}]


LABELS = {"app": "x"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": containers()}}
SELECTOR = {"matchLabels": LABELS}


def pod(name="x", **spec):
    return thing("v1", "Pod", name, spec={"containers": containers(), **spec})


def deployment(name="x", **spec):
    return thing("apps/v1", "Deployment", name, spec={"selector": SELECTOR, "template": TEMPLATE, **spec})


# --- every kind: created with as little as is allowed, shown, labelled, deleted ---

RBAC = "rbac.authorization.k8s.io/v1"
STORAGE = "storage.k8s.io/v1"
ROLE_REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
# "NAMESPACE" stands for the namespace of the scenario.
INVOLVED = {"kind": "Pod", "name": "x", "apiVersion": "v1", "namespace": "NAMESPACE"}

# (apiVersion, resource, kind, namespaced, the rest of the object)
KINDS = [
    ("v1", "pods", "Pod", True, {"spec": {"containers": containers()}}),
    ("v1", "configmaps", "ConfigMap", True, {}),
    ("v1", "secrets", "Secret", True, {"stringData": {"a": "b"}}),
    ("v1", "serviceaccounts", "ServiceAccount", True, {}),
    ("v1", "services", "Service", True, {"spec": {"ports": [{"port": 80}]}}),
    ("v1", "endpoints", "Endpoints", True, {"subsets": [{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 80}]}]}),
    ("v1", "limitranges", "LimitRange", True, {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}}),
    ("v1", "resourcequotas", "ResourceQuota", True, {"spec": {"hard": {"count/foos.example.com": "1"}}}),
    ("v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, {"spec": CLAIM}),
    ("v1", "podtemplates", "PodTemplate", True, {"template": TEMPLATE}),
    ("v1", "replicationcontrollers", "ReplicationController", True, {"spec": {"selector": LABELS,
                                                                              "template": TEMPLATE}}),
    ("v1", "nodes", "Node", False, {}),
    ("v1", "persistentvolumes", "PersistentVolume", False, {"spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp/x"}}}),
    ("v1", "events", "Event", True, {"involvedObject": INVOLVED, "reason": "Why", "message": "what", "type": "Normal"}),
    ("events.k8s.io/v1", "events", "Event", True, {
        "eventTime": "2020-01-01T00:00:00.000000Z", "reportingController": "example.com/c", "reportingInstance": "i",
        "action": "Act", "reason": "Why", "type": "Normal", "regarding": INVOLVED}),
    ("apps/v1", "deployments", "Deployment", True, {"spec": {"selector": SELECTOR, "template": TEMPLATE}}),
    ("apps/v1", "replicasets", "ReplicaSet", True, {"spec": {"selector": SELECTOR, "template": TEMPLATE}}),
    ("apps/v1", "statefulsets", "StatefulSet", True, {"spec": {"selector": SELECTOR, "template": TEMPLATE,
                                                               "serviceName": "s"}}),
    ("apps/v1", "daemonsets", "DaemonSet", True, {"spec": {"selector": SELECTOR, "template": TEMPLATE}}),
    ("apps/v1", "controllerrevisions", "ControllerRevision", True, {"revision": 1, "data": {"a": 1}}),
    ("batch/v1", "jobs", "Job", True, {"spec": {"template": {"spec": {"containers": containers(),
                                                                     "restartPolicy": "Never"}}}}),
    ("batch/v1", "cronjobs", "CronJob", True, {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {
        "spec": {"containers": containers(), "restartPolicy": "OnFailure"}}}}}}),
    ("autoscaling/v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler", True, {"spec": {
        "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}}),
    ("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", True, {"spec": {
        "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}}),
    ("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", True, {"spec": {"minAvailable": 1,
                                                                                 "selector": SELECTOR}}),
    ("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", True, {"spec": {"podSelector": {}, "ingress": [{}]}}),
    ("networking.k8s.io/v1", "ingresses", "Ingress", True, {"spec": {"defaultBackend": {"service": {
        "name": "s", "port": {"number": 80}}}}}),
    ("networking.k8s.io/v1", "ingressclasses", "IngressClass", False, {"spec": {"controller": "example.com/c"}}),
    ("networking.k8s.io/v1", "ipaddresses", "IPAddress", False, {"metadata": {"name": "10.9.9.9"}, "spec": {
        "parentRef": {"resource": "services", "name": "x", "namespace": "default"}}}),
    ("networking.k8s.io/v1", "servicecidrs", "ServiceCIDR", False, {"spec": {"cidrs": ["10.77.0.0/24"]}}),
    ("discovery.k8s.io/v1", "endpointslices", "EndpointSlice", True, {"addressType": "IPv4",
                                                                      "endpoints": [{"addresses": ["10.1.1.1"]}]}),
    ("coordination.k8s.io/v1", "leases", "Lease", True, {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15,
                                                                  "renewTime": "2020-01-01T00:00:00.000000Z"}}),
    (RBAC, "roles", "Role", True, {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    (RBAC, "rolebindings", "RoleBinding", True, {"roleRef": ROLE_REF, "subjects": [{"kind": "User", "name": "u"}]}),
    (RBAC, "clusterroles", "ClusterRole", False, {"rules": []}),
    (RBAC, "clusterrolebindings", "ClusterRoleBinding", False, {"roleRef": ROLE_REF}),
    (STORAGE, "storageclasses", "StorageClass", False, {"provisioner": "example.com/p"}),
    (STORAGE, "csidrivers", "CSIDriver", False, {"spec": {}}),
    (STORAGE, "csinodes", "CSINode", False, {"spec": {"drivers": []}}),
    (STORAGE, "csistoragecapacities", "CSIStorageCapacity", True, {"storageClassName": "s"}),
    (STORAGE, "volumeattachments", "VolumeAttachment", False, {"spec": {
        "attacher": "a.example.com", "nodeName": "n", "source": {"persistentVolumeName": "p"}}}),
    (STORAGE, "volumeattributesclasses", "VolumeAttributesClass", False, {"driverName": "example.com/d",
                                                                         "parameters": {"a": "b"}}),
    ("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", False, {"value": 5}),
]


def kind_scenario(version, resource, kind, namespaced, rest):
    """One of KINDS; its name says the group where that is needed to tell it from others."""
    twins = [entry for entry in KINDS if entry[1] == resource]
    row = resource if len(twins) == 1 else f"{resource}-{version.replace('/', '-').replace('.k8s.io', '')}"

    name = rest.get("metadata", {}).get("name", "minimal")

    def run(namespace):
        body = json.loads(json.dumps({**thing(version, kind, name), **rest}).replace("NAMESPACE", namespace))
        space = namespace if namespaced else ""
        lists, item = where(version, resource, space), where(version, resource, space, name)
        yield post("create", lists, body)
        yield get("get-table", item, TABLE)
        yield merge("label", item, {"metadata": {"labels": {"a": "b"}}})
        labelled = yield get(None, item)
        yield put("update-same", item, labelled.changed())
        yield put("update-blind", item, labelled.changed(("metadata.resourceVersion", None)))
        yield post("create-empty", lists, {"apiVersion": version, "kind": kind, "metadata": {"name": "empty"}})
        yield delete("delete", item)
    SCENARIOS.append(Scenario(row, run))


for one_kind in KINDS:
    kind_scenario(*one_kind)


def names_of(body):
    """Of a list."""
    return [item["metadata"]["name"] for item in body.get("items", ())]


# --- creating ---

@scenario
def create_names(ns):
    t = where("v1", "configmaps", ns)
    yield post("plain", t, config_map("a"))
    yield post("exists", t, config_map("a", {"b": "c"}))
    yield get("exists-get", t + "/a")
    made_up = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "gen-"}}
    generated = yield post("generated", t, made_up, generates="gen-")
    yield get("generated-get", t + "/" + str(generated.at("metadata", "name")))
    yield post("generated-and-named", t, changed(made_up, ("metadata.name", "both")))
    long = "l" * 63 + "-"
    yield post("generated-long", t, changed(made_up, ("metadata.generateName", long)), generates=long[:58])
    yield post("generated-bad", t, changed(made_up, ("metadata.generateName", "A_")), generates="A_")
    yield post("none", t, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}})
    yield post("no-metadata", t, {"apiVersion": "v1", "kind": "ConfigMap"})
    yield post("empty", t, config_map(""))
    for name, value in (("upper", "Upper"), ("underscore", "a_b"), ("slash", "a/b"), ("dot", "."), ("dots", ".."),
                        ("dotted", "a.b"), ("percent", "a%b"), ("dash", "-a"), ("long", "x" * 254), ("space", "a b")):
        yield post(name, t, config_map(value))
    yield post("service-name-of-digits", where("v1", "services", ns),
               thing("v1", "Service", "1a", spec={"ports": [{"port": 80}]}))
    yield post("role-name-with-colon", where(RBAC, "roles", ns), thing(RBAC, "Role", "system:x", rules=[]))
    yield post("pod-name-long", where("v1", "pods", ns), pod("p" * 254))
    yield post("namespace-name-dotted", "/api/v1/namespaces", thing("v1", "Namespace", "a.b"))


@scenario
def create_places(ns):
    t = where("v1", "configmaps", ns)
    yield post("same-namespace", t, config_map("a", namespace=ns))
    yield post("other-namespace", t, config_map("b", namespace="elsewhere"))
    yield post("no-such-namespace", where("v1", "configmaps", "nowhere"), config_map("a"))
    yield post("no-namespace", "/api/v1/configmaps", config_map("a"))
    yield post("no-namespace-but-in-body", "/api/v1/configmaps", config_map("a", namespace=ns))
    yield post("to-its-name", t + "/c", config_map("c"))
    yield post("namespace-for-a-node", "/api/v1/nodes", thing("v1", "Node", "placed", metadata={"namespace": ns}))
    yield post("node-in-namespace", where("v1", "nodes", ns), thing("v1", "Node", "placed-2"))
    yield put("to-list", t, config_map("a"))
    yield patch("patch-list", t, {}, "application/merge-patch+json")
    yield post("no-such-resource", where("v1", "foos", ns), config_map("a"))
    yield post("no-such-group", where("example.org/v1", "foos", ns), config_map("a"))
    yield post("no-such-version", where("apps/v9", "deployments", ns), deployment())
    yield post("no-such-subresource", t + "/a/foo", config_map("a"))
    yield put("status-of-what-has-none", t + "/a/status", config_map("a"))


@scenario
def create_kinds(ns):
    t = where("v1", "configmaps", ns)
    yield post("wrong-kind", t, {**config_map("a"), "kind": "Secret"})
    yield post("unknown-kind", t, {**config_map("a"), "kind": "Foo"})
    yield post("wrong-version", t, {**config_map("a"), "apiVersion": "apps/v1"})
    yield post("unknown-version", t, {**config_map("a"), "apiVersion": "v9"})
    yield post("unknown-group", t, {**config_map("a"), "apiVersion": "example.org/v1"})
    yield post("bad-version", t, {**config_map("a"), "apiVersion": "a/b/c"})
    yield post("no-kind", t, {"apiVersion": "v1", "metadata": {"name": "no-kind"}})
    yield post("no-version", t, {"kind": "ConfigMap", "metadata": {"name": "no-version"}})
    yield post("neither", t, {"metadata": {"name": "neither"}})
    yield post("kind-no-text", t, {**config_map("a"), "kind": 5})
    yield post("list-kind", t, {"apiVersion": "v1", "kind": "ConfigMapList", "items": []})
    hpa = {"maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"}}
    yield post("other-version-of-group", where("autoscaling/v2", "horizontalpodautoscalers", ns),
               thing("autoscaling/v1", "HorizontalPodAutoscaler", "a", spec=hpa))


@scenario
def create_fields(ns):
    t = where("v1", "configmaps", ns)
    d = where("apps/v1", "deployments", ns)
    for validation in ("Ignore", "Warn", "Strict"):
        low = validation.lower()
        asked = "?fieldValidation=" + validation
        yield post(f"unknown-{low}", t + asked, {**config_map(f"u-{low}"), "foo": 1, "bar": {"baz": 2}})
        yield post(f"doubled-{low}", t + asked, '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d-%s"},'
                   '"data":{"a":"1","a":"2"},"data":{"a":"3","b":"1"}}' % low)
        deep = deployment(f"deep-{low}", foo=1, template=changed(TEMPLATE, ("spec.containers.0.baz", 1),
                                                                 ("metadata.nope", 1)))
        yield post(f"deep-{low}", d + asked, deep)
        yield post(f"case-{low}", t + asked, {**config_map(f"case-{low}"), "Data": {"a": "b"}})
    yield post("default", t, {**config_map("default"), "foo": 1})
    yield post("no-such-validation", t + "?fieldValidation=Maybe", config_map("maybe"))
    yield post("empty-validation", t + "?fieldValidation=", {**config_map("empty"), "foo": 1})
    yield post("yaml-unknown-strict", t + "?fieldValidation=Strict",
               "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ya}\nfoo: 1\n", YAML)
    yield post("yaml-doubled-strict", t + "?fieldValidation=Strict",
               "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yb}\ndata:\n  a: one\n  a: two\n", YAML)
    yield post("yaml-doubled-warn", t,
               "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yb}\ndata:\n  a: one\n  a: two\n", YAML)
    yield post("many-unknown", t, {**config_map("many"), **{f"field{i}": i for i in range(12)}})


@scenario
def create_types(ns):
    t = where("v1", "configmaps", ns)
    d = where("apps/v1", "deployments", ns)
    p = where("v1", "pods", ns)
    yield post("map-is-list", t, {**config_map("a"), "data": []})
    yield post("map-is-text", t, {**config_map("a"), "data": "x"})
    yield post("text-is-number", t, config_map("a", {"b": 1}))
    yield post("text-is-true", t, config_map("a", {"b": True}))
    yield post("text-is-null", t, config_map("null-value", {"b": None}))
    yield post("map-is-null", t, {**config_map("null-map"), "data": None})
    yield post("truth-is-text", t, {**config_map("a"), "immutable": "true"})
    yield post("number-is-text", d, deployment(replicas="2"))
    yield post("number-is-fraction", d, deployment(replicas=1.5))
    yield post("number-is-whole-fraction", d, '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"f"},'
               '"spec":{"replicas":2.0,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":'
               '{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}')
    yield post("number-too-large", d, deployment(replicas=99999999999))
    yield post("object-is-list", d, {**deployment(), "spec": []})
    yield post("list-is-object", p, pod(containers={}))
    yield post("list-of-texts", p, pod(containers=["a"]))
    yield post("metadata-is-text", t, {**config_map("a"), "metadata": "x"})
    yield post("name-is-number", t, config_map(5))
    yield post("label-is-number", t, config_map("a", labels={"a": 1}))
    yield post("time-is-bad", t, config_map("a", creationTimestamp="yesterday"))
    yield post("quantity-is-bad", p, pod(containers=containers(resources={"limits": {"cpu": "x"}})))
    yield post("quantity-is-number", p, pod("quantity", containers=containers(
        resources={"limits": {"cpu": 1, "memory": "1024Mi"}})))
    yield post("quantity-forms", p, pod("forms", containers=containers(
        resources={"limits": {"cpu": "0.5", "memory": "1e3", "ephemeral-storage": "1500m"}})))
    yield post("port-or-name-is-truth", where("v1", "services", ns),
               thing("v1", "Service", "a", spec={"ports": [{"port": 80, "targetPort": True}]}))
    yield post("bytes-are-bad", where("v1", "secrets", ns), thing("v1", "Secret", "a", data={"a": "?"}))
    yield post("micro-time-is-bad", where("coordination.k8s.io/v1", "leases", ns),
               thing("coordination.k8s.io/v1", "Lease", "a", spec={"renewTime": "now"}))
    yield post("micro-time-is-coarse", where("coordination.k8s.io/v1", "leases", ns),
               thing("coordination.k8s.io/v1", "Lease", "coarse", spec={"renewTime": "2020-01-01T00:00:00Z"}))


@scenario
def create_bodies(ns):
    t = where("v1", "configmaps", ns)
    yield post("malformed", t, '{"apiVersion": "v1", ')
    yield post("not-closed", t, '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}')
    yield post("trailing", t, '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}} x')
    yield post("no-json", t, "hello")
    yield post("empty", t, b"")
    yield post("blank", t, b"  \n")
    yield post("array", t, "[]")
    yield post("text", t, '"x"')
    yield post("null", t, "null")
    yield post("number", t, "5")
    yield post("empty-object", t, "{}")
    yield post("no-utf8", t, b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"u"},"data":{"a":"\xff"}}')
    yield post("escapes", t, '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"esc"},'
               '"data":{"a":"\\u00e9\\ud83d\\ude00\\n\\"<>&"}}')
    yield post("yaml", t, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yaml\ndata:\n  a: 'b'\n  c: |\n    d\n",
               YAML)
    yield post("yaml-as-json", t, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yaml2\n")
    yield post("json-as-yaml", t, config_map("json-as-yaml"), YAML)
    yield post("yaml-malformed", t, "a: [", YAML)
    yield post("yaml-tabs", t, "a:\n\tb: c\n", YAML)
    yield post("yaml-number", t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: number}\ndata: {a: 5}\n", YAML)
    yield post("yaml-old-truth", t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: truth}\ndata: {a: yes}\n", YAML)
    yield post("yaml-two-documents", t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y1}\n---\n"
               "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y2}\n", YAML)
    for name, kind in (("text", "text/plain"), ("cbor", "application/cbor"), ("xml", "application/xml"),
                       ("merge-patch", "application/merge-patch+json"), ("nonsense", "nonsense"),
                       ("form", "application/x-www-form-urlencoded"), ("star", "*/*")):
        yield post("media-" + name, t, config_map("media"), kind)
    yield post("media-charset", t, config_map("charset"), "application/json; charset=utf-8")
    yield post("media-upper", t, config_map("upper"), "Application/JSON")
    yield post("media-empty", t, config_map("empty"), "")
    yield Step("media-none", "POST", t, encoded(config_map("none")))
    yield post("too-large", t, config_map("large", {"a": "x" * (3 * 1024 * 1024 + 1)}))
    yield post("too-large-for-a-config-map", t, config_map("large", {"a": "x" * (1024 * 1024 + 1)}))
    yield post("annotations-too-large", t, config_map("large", annotations={"a": "x" * (256 * 1024)}))
    yield post("deeply-nested", t, '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"deep"},"foo":'
               + "[" * 500 + "]" * 500 + "}", look=lambda body: None)
    for name, accept in (("text", "text/html"), ("none", ""), ("star", "*/*"),
                         ("json-or-star", "application/json, */*"),
                         ("v2-table", "application/json;as=Table;v=v2;g=meta.k8s.io")):
        yield post("accept-" + name, t, config_map("accept-" + name), accept=accept)
    yield post("accept-table", t, config_map("table", {"a": "b"}), accept=TABLE)
    yield post("accept-partial", t, config_map("partial", {"a": "b"}), accept=PARTIAL)
    yield post("accept-yaml", t, config_map("as-yaml"), accept=YAML, look=lambda body: None)


@scenario
def create_metadata(ns):
    t = where("v1", "configmaps", ns)
    yield post("version", t, config_map("a", resourceVersion="5"))
    yield post("version-zero", t, config_map("v0", resourceVersion="0"))
    yield post("version-empty", t, config_map("ve", resourceVersion=""))
    yield post("uid", t, config_map("uid", uid="00000000-1111-2222-3333-444444444444"))
    yield post("times", t, config_map("times", creationTimestamp="2001-01-01T00:00:00Z",
                                      deletionTimestamp="2001-01-01T00:00:00Z", deletionGracePeriodSeconds=5))
    yield post("generation", t, config_map("generation", generation=7, selfLink="/x"))
    yield post("generation-of-deployment", where("apps/v1", "deployments", ns),
               changed(deployment(), ("metadata.generation", 7)))
    yield post("finalizers", t, config_map("finalizers", finalizers=["example.com/a", "example.com/b"]))
    yield post("finalizer-plain", t, config_map("finalizer-plain", finalizers=["plain"]))
    yield post("finalizer-bad", t, config_map("a", finalizers=["a b"]))
    yield post("finalizer-known", t, config_map("known", finalizers=["foregroundDeletion"]))
    yield post("label-bad-key", t, config_map("a", labels={"a b": "c"}))
    yield post("label-bad-value", t, config_map("a", labels={"a": "c d"}))
    yield post("label-long-value", t, config_map("a", labels={"a": "x" * 64}))
    yield post("label-long-key", t, config_map("a", labels={"x" * 64: "c"}))
    yield post("annotation-bad-key", t, config_map("a", annotations={"a b": "c"}))
    yield post("annotation-upper-key", t, config_map("annotated", annotations={"A.example.com/B": "c d"}))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "00000000-1111-2222-3333-444444444444"}
    yield post("owner-empty", t, config_map("a", ownerReferences=[{}]))
    yield post("owner-event", t, config_map("a", ownerReferences=[{**owner, "kind": "Event"}]))
    yield post("owners-control-twice", t, config_map("a", ownerReferences=[
        {**owner, "controller": True}, {**owner, "name": "p", "controller": True,
                                        "uid": "00000000-1111-2222-3333-444444444445"}]))
    yield post("managed", t, config_map("managed", {"a": "b"}, managedFields=[
        {"manager": "m", "operation": "Update", "apiVersion": "v1", "time": "2001-01-01T00:00:00Z",
         "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}]))
    yield post("managed-bad", t, config_map("managed-bad", managedFields=[{"manager": "m", "operation": "Foo"}]))
    yield post("several-faults", t, {**config_map("A_", labels={"a b": "c"}), "data": {"x y": "z"}})


@scenario
def create_options(ns):
    t = where("v1", "configmaps", ns)
    yield post("dry-run", t + "?dryRun=All", config_map("dry", {"a": "b"}))
    yield get("dry-run-get", t + "/dry")
    yield post("dry-run-bad", t + "?dryRun=Some", config_map("dry"))
    yield post("dry-run-empty", t + "?dryRun=", config_map("dry-empty"))
    yield post("dry-run-twice", t + "?dryRun=All&dryRun=All", config_map("dry"))
    yield post("dry-run-lower", t + "?dryRun=all", config_map("dry"))
    yield post("dry-run-generated", t + "?dryRun=All",
               {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "dry-"}}, generates="dry-")
    yield post("dry-run-invalid", t + "?dryRun=All", config_map("a_b"))
    yield post("manager", t + "?fieldManager=me", config_map("manager", {"a": "b"}))
    yield post("manager-long", t + "?fieldManager=" + "m" * 129, config_map("m"))
    yield post("manager-128", t + "?fieldManager=" + "m" * 128, config_map("m128", {"a": "b"}))
    yield post("manager-unprintable", t + "?fieldManager=a%07b", config_map("m"))
    agent = Step("manager-of-agent", "POST", t, encoded(config_map("agent", {"a": "b"})),
                 {"Content-Type": JSON, "User-Agent": "kubectl/v1.0 (linux/amd64) x/y"})
    yield agent
    yield Step("manager-of-long-agent", "POST", t, encoded(config_map("agent2", {"a": "b"})),
               {"Content-Type": JSON, "User-Agent": "u" * 200})
    yield post("pretty", t + "?pretty=true", config_map("pretty"))
    yield post("timeout-bad", t + "?timeout=x", config_map("timeout"))
    yield post("unknown-option", t + "?foo=bar", config_map("foo"))


@scenario
def create_invalid(ns):
    t = where("v1", "configmaps", ns)
    d = where("apps/v1", "deployments", ns)
    p = where("v1", "pods", ns)
    s = where("v1", "services", ns)
    yield post("config-map-key", t, config_map("a", {"a b": "c"}))
    yield post("config-map-both", t, {**config_map("a", {"b": "c"}), "binaryData": {"b": "Yw=="}})
    yield post("deployment-selector", d, deployment(selector={"matchLabels": {"app": "other"}}))
    yield post("deployment-no-selector", d, changed(deployment(), ("spec.selector", None)))
    yield post("deployment-replicas", d, deployment(replicas=-1))
    yield post("deployment-strategy", d, deployment(strategy={"type": "Recreate", "rollingUpdate": {}}))
    yield post("deployment-restart-policy", d,
               deployment(template=changed(TEMPLATE, ("spec.restartPolicy", "Never"))))
    yield post("pod-no-containers", p, pod(containers=[]))
    yield post("pod-no-image", p, pod(containers=[{"name": "a"}]))
    yield post("pod-same-names", p, pod(containers=containers() + containers()))
    yield post("pod-restart-policy", p, pod(restartPolicy="Sometimes"))
    yield post("pod-port", p, pod(containers=containers(ports=[{"containerPort": 70000}])))
    yield post("pod-env", p, pod(containers=containers(env=[{"name": "", "value": "x"}])))
    yield post("pod-volume", p, pod(containers=containers(volumeMounts=[{"name": "v", "mountPath": "/x"}])))
    yield post("pod-requests-over-limits", p, pod(containers=containers(
        resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})))
    yield post("pod-priority-class", p, pod(priorityClassName="nope"))
    yield post("service-no-ports", s, thing("v1", "Service", "a", spec={}))
    yield post("service-type", s, thing("v1", "Service", "a", spec={"type": "Foo", "ports": [{"port": 80}]}))
    yield post("service-port", s, thing("v1", "Service", "a", spec={"ports": [{"port": 0}]}))
    yield post("secret-type", where("v1", "secrets", ns),
               thing("v1", "Secret", "a", type="kubernetes.io/dockerconfigjson"))
    yield post("job-selector", where("batch/v1", "jobs", ns), thing("batch/v1", "Job", "a", spec={
        "selector": SELECTOR, "template": TEMPLATE}))
    yield post("job-restart-policy", where("batch/v1", "jobs", ns), thing("batch/v1", "Job", "a", spec={
        "template": TEMPLATE}))
    yield post("cron-job-schedule", where("batch/v1", "cronjobs", ns), thing("batch/v1", "CronJob", "a", spec={
        "schedule": "x", "jobTemplate": {"spec": {"template": {"spec": {"containers": containers(),
                                                                       "restartPolicy": "Never"}}}}}))
    yield post("role-binding-no-role", where(RBAC, "rolebindings", ns), thing(RBAC, "RoleBinding", "a", roleRef={}))
    yield post("ingress-empty", where("networking.k8s.io/v1", "ingresses", ns),
               thing("networking.k8s.io/v1", "Ingress", "a", spec={}))
    yield post("lease-duration", where("coordination.k8s.io/v1", "leases", ns),
               thing("coordination.k8s.io/v1", "Lease", "a", spec={"leaseDurationSeconds": 0}))
    yield post("hpa-replicas", where("autoscaling/v2", "horizontalpodautoscalers", ns),
               thing("autoscaling/v2", "HorizontalPodAutoscaler", "a", spec={
                   "minReplicas": 5, "maxReplicas": 3,
                   "scaleTargetRef": {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"}}))
    yield post("quota-quantity", where("v1", "resourcequotas", ns),
               thing("v1", "ResourceQuota", "a", spec={"hard": {"pods": "-1"}}))


@scenario
def service_types(ns):
    t = where("v1", "services", ns)

    def service(name, **spec):
        return thing("v1", "Service", name, spec={"ports": [{"port": 80}], "selector": LABELS, **spec})
    created = yield post("cluster-ip", t, service("a"))
    yield post("headless", t, service("headless", clusterIP="None"))
    yield post("node-port", t, service("node-port", type="NodePort"))
    yield post("load-balancer", t, service("load-balancer", type="LoadBalancer"))
    yield post("external", t, thing("v1", "Service", "external", spec={"type": "ExternalName", "externalName": "a.b"}))
    yield post("ports", t, service("ports", ports=[{"name": "a", "port": 1, "targetPort": "web"},
                                                   {"name": "b", "port": 2, "protocol": "UDP", "targetPort": 5}]))
    yield merge("make-headless", t + "/a", {"spec": {"clusterIP": "None"}})
    yield put("put-headless", t + "/a", service("a", clusterIP="None"))
    yield merge("change-one-ip", t + "/a", {"spec": {"clusterIP": "10.0.0.250"}})
    yield merge("give-headless-ip", t + "/headless", {"spec": {"clusterIP": "10.0.0.250"}})
    yield merge("make-external-headless", t + "/external", {"spec": {
        "type": "ClusterIP", "externalName": None, "clusterIP": "None", "selector": LABELS}})
    yield merge("change-type", t + "/a", {"spec": {"type": "NodePort"}})
    yield merge("change-ip", t + "/a", {"spec": {"clusterIP": "10.0.0.250", "clusterIPs": ["10.0.0.250"]}})
    yield put("update-without-ip", t + "/a", {**service("a", sessionAffinity="ClientIP"),
                                              "metadata": {"name": "a", "resourceVersion": created.version}})
    yield put("create-by-update", t + "/by-update", service("by-update"))
    yield put("status", t + "/a/status", {**service("a"), "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}})
    yield delete("delete", t + "/a")
    yield get("gone", t + "/a")


# --- reading what was written ---

@scenario
def reads(ns):
    t = where("v1", "configmaps", ns)
    for i, color in enumerate(("red", "green", "red", "blue", "red")):
        yield post(None, t, config_map(f"c{i}", {"i": str(i)}, labels={"color": color}))
    yield get("list", t)
    yield get("list-empty", where("v1", "secrets", ns))
    yield get("list-labels", t + "?labelSelector=color%3Dred")
    yield get("list-not-in", t + "?labelSelector=color+notin+(red)")
    yield get("list-field", t + "?fieldSelector=metadata.name%3Dc1")
    yield get("list-not-field", t + "?fieldSelector=metadata.name!%3Dc1&limit=2")
    yield get("table", t, TABLE)
    yield get("table-with-objects", t + "?includeObject=Object", TABLE)
    yield get("table-with-nothing", t + "?includeObject=None", TABLE)
    yield get("table-of-one", t + "/c1", TABLE)
    yield get("partial", t, PARTIAL_LIST)
    yield get("partial-of-one", t + "/c1", PARTIAL)
    first = yield get("page-1", t + "?limit=2")
    token = quote(str(first.at("metadata", "continue")))
    second = yield get("page-2", f"{t}?limit=2&continue={token}")
    token = quote(str(second.at("metadata", "continue")))
    yield post(None, t, config_map("c9"))
    yield get("page-3", f"{t}?limit=2&continue={token}")
    yield get("page-with-version", f"{t}?limit=2&continue={token}&resourceVersion={first.version}")
    yield get("page-of-table", t + "?limit=2", TABLE)
    yield get("exact", f"{t}?resourceVersion={first.version}&resourceVersionMatch=Exact",
              look=names_of)
    yield get("any-version", t + "?resourceVersion=0&limit=3",
              look=lambda body: len(body.get("items", ())))
    yield get("too-new", t + "?resourceVersion=99999999999")
    yield get("too-new-of-one", t + "/c1?resourceVersion=99999999999")
    yield get("one", t + "/c1")
    yield get("none", t + "/nope")
    yield get("bad-name", t + "/A_B")
    yield Step("head", "HEAD", t + "/c1")
    yield Step("head-list", "HEAD", t)
    yield Step("options", "OPTIONS", t)
    yield Step("trace", "TRACE", t + "/c1")
    yield Step("foo", "FOO", t + "/c1")
    yield put("put-on-list", t, config_map("c1"))
    yield post("post-on-item", t + "/c1", config_map("c1"))
    yield delete("delete-all-namespaces", "/api/v1/configmaps")
    yield get("one-of-no-namespace", "/api/v1/namespaces//configmaps/x")
    yield put("put-on-list-of-no-namespace", "/api/v1/namespaces//configmaps", config_map("c1"))
    yield delete("delete-what-has-no-namespace-in-none", "/api/v1/namespaces//nodes")
    yield Step("connect", "POST", "/version")


@scenario
def watches(ns):
    t = where("v1", "configmaps", ns)
    before = yield get(None, t)
    yield post("create", t, config_map("a", {"x": "1"}, labels={"l": "1"}))
    yield put("update", t + "/a", config_map("a", {"x": "2"}, labels={"l": "1"}))
    yield put("update-nothing", t + "/a", config_map("a", {"x": "2"}, labels={"l": "1"}))
    yield merge("relabel", t + "/a", {"metadata": {"labels": {"l": "2"}}})
    yield post("create-other", t, config_map("b", labels={"l": "1"}, finalizers=["example.com/f"]))
    yield delete("delete", t + "/a")
    yield delete("delete-held", t + "/b")
    yield merge("release", t + "/b", {"metadata": {"finalizers": None}})
    yield post("create-last", t, config_map("z"))
    since = f"?watch=1&resourceVersion={before.version}"
    yield watch("all", t + since, 8)
    yield watch("all-in-cluster", where("v1", "configmaps") + since + "&fieldSelector=metadata.namespace%3D" + ns, 8)
    yield watch("selected", t + since + "&labelSelector=l%3D1", 4)
    yield watch("named", t + since + "&fieldSelector=metadata.name%3Db", 3)
    yield watch("path-of-one", where("v1", "watch/namespaces/" + ns + "/configmaps/b") + "?resourceVersion="
                + str(before.version), 3)
    yield watch("table", t + since, 3, TABLE)
    yield watch("partial", t + since, 3, PARTIAL)
    yield watch("initial", t + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
                "&allowWatchBookmarks=true", 2)
    yield watch("initial-without-bookmarks", t + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", 1)
    yield watch("from-zero", t + "?watch=1&resourceVersion=0", 1)
    yield watch("from-nothing", t + "?watch=1", 1)
    yield watch("too-new", t + "?watch=1&resourceVersion=99999999999", 1, seconds=1)
    yield watch("initial-without-match", t + "?watch=1&sendInitialEvents=true", 1)
    yield get("too-new-list", t + "?resourceVersion=99999999999&resourceVersionMatch=NotOlderThan")


# --- updating ---

@scenario
def update(ns):
    t = where("v1", "configmaps", ns)
    created = yield post("create", t, config_map("x", {"a": "1"}))
    same = created.changed()
    yield put("same", t + "/x", same)
    yield put("same-without-version", t + "/x", config_map("x", {"a": "1"}))
    first = yield put("change", t + "/x", created.changed(("data.a", "2")))
    yield put("stale", t + "/x", created.changed(("data.a", "3")))
    yield get("stale-get", t + "/x")
    yield put("stale-and-same", t + "/x", first.changed(("metadata.resourceVersion", created.version)))
    yield put("without-version", t + "/x", config_map("x", {"a": "4"}))
    yield put("version-zero", t + "/x", config_map("x", {"a": "0"}, resourceVersion="0"))
    yield put("version-of-the-future", t + "/x", config_map("x", {"a": "4"}, resourceVersion="99999999"))
    yield put("version-bad", t + "/x", config_map("x", {"a": "4"}, resourceVersion="abc"))
    yield put("right-uid", t + "/x", config_map("x", {"a": "5"}, uid=created.uid))
    yield put("wrong-uid", t + "/x", config_map("x", {"a": "6"}, uid="00000000-1111-2222-3333-444444444444"))
    yield put("other-name", t + "/x", config_map("y", {"a": "7"}))
    yield put("no-name", t + "/x", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"a": "8"}})
    yield put("other-namespace", t + "/x", config_map("x", {"a": "9"}, namespace="elsewhere"))
    yield put("wrong-kind", t + "/x", {**config_map("x"), "kind": "Secret"})
    yield put("no-kind", t + "/x", {"metadata": {"name": "x"}, "data": {"a": "no-kind"}})
    yield put("not-there", t + "/nope", config_map("nope"))
    yield put("not-there-with-version", t + "/nope", config_map("nope", resourceVersion="5"))
    yield put("not-there-with-uid", t + "/nope", config_map("nope", uid=created.uid))
    yield put("dry-run", t + "/x?dryRun=All", config_map("x", {"a": "dry"}))
    yield get("dry-run-get", t + "/x")
    yield put("manager", t + "/x?fieldManager=other", config_map("x", {"a": "5", "b": "1"}))
    yield put("unknown-field", t + "/x", {**config_map("x", {"a": "10"}), "foo": 1})
    yield put("unknown-strict", t + "/x?fieldValidation=Strict", {**config_map("x", {"a": "11"}), "foo": 1})
    yield put("invalid", t + "/x", config_map("x", {"a b": "1"}))
    yield put("invalid-label", t + "/x", config_map("x", labels={"a": "b c"}))
    yield put("empty-body", t + "/x", b"")
    yield put("malformed", t + "/x", "{")
    yield put("yaml", t + "/x", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: yaml}\n", YAML)
    yield put("media-text", t + "/x", config_map("x"), "text/plain")
    yield put("times", t + "/x", config_map("x", {"a": "12"}, creationTimestamp="2001-01-01T00:00:00Z",
                                            deletionTimestamp="2001-01-01T00:00:00Z", generation=5))
    yield put("creation-time", t + "/x", config_map("x", {"a": "12"}, creationTimestamp="2001-01-01T00:00:00Z",
                                                    generation=5, selfLink="/x"))
    yield put("managed-reset", t + "/x", config_map("x", {"a": "13"}, managedFields=[{}]))
    yield put("managed-empty", t + "/x", config_map("x", {"a": "14"}, managedFields=[]))
    yield put("metadata", t + "/x", config_map("x", {"a": "15"}, labels={"a": "b"}, annotations={"c": "d"},
                                               finalizers=["example.com/f"]))
    yield put("metadata-away", t + "/x", config_map("x"))
    yield put("immutable", t + "/x", {**config_map("x", {"a": "16"}), "immutable": True})
    yield put("immutable-change", t + "/x", {**config_map("x", {"a": "17"}), "immutable": True})
    yield put("immutable-away", t + "/x", {**config_map("x", {"a": "16"})})
    yield put("immutable-label", t + "/x", {**config_map("x", {"a": "16"}, labels={"a": "b"}), "immutable": True})
    t = where("policy/v1", "poddisruptionbudgets", ns)
    budget = thing("policy/v1", "PodDisruptionBudget", "x", spec={"minAvailable": 1, "selector": SELECTOR})
    created = yield post(None, t, budget)
    yield put("budget-without-version", t + "/x", budget)
    yield put("budget-status-without-version", t + "/x/status", budget)
    yield put("budget", t + "/x", created.changed(("spec.minAvailable", 2)))


@scenario
def update_creates(ns):
    """Some kinds may be created by an update."""
    def try_kind(version, resource, kind, space, **more):
        yield put(resource, where(version, resource, space, "by-update"), thing(version, kind, "by-update", **more))
    yield from try_kind("coordination.k8s.io/v1", "leases", "Lease", ns, spec={"holderIdentity": "me"})
    yield from try_kind("v1", "endpoints", "Endpoints", ns)
    yield from try_kind("v1", "limitranges", "LimitRange", ns, spec={"limits": []})
    yield from try_kind("v1", "podtemplates", "PodTemplate", ns, template=TEMPLATE)
    yield from try_kind("v1", "events", "Event", ns, involvedObject={**INVOLVED, "namespace": ns})
    yield from try_kind("v1", "secrets", "Secret", ns)
    yield from try_kind("v1", "nodes", "Node", "")
    yield from try_kind("v1", "pods", "Pod", ns, spec={"containers": containers()})
    yield from try_kind("apps/v1", "deployments", "Deployment", ns, spec=deployment()["spec"])
    yield from try_kind("discovery.k8s.io/v1", "endpointslices", "EndpointSlice", ns, addressType="IPv4", endpoints=[])
    yield from try_kind(RBAC, "roles", "Role", ns, rules=[])
    yield from try_kind("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", "", value=1)
    yield put("lease-with-uid", where("coordination.k8s.io/v1", "leases", ns, "with-uid"),
              thing("coordination.k8s.io/v1", "Lease", "with-uid",
                    metadata={"uid": "00000000-1111-2222-3333-444444444444"}))
    yield put("lease-with-version", where("coordination.k8s.io/v1", "leases", ns, "with-version"),
              thing("coordination.k8s.io/v1", "Lease", "with-version", metadata={"resourceVersion": "5"}))
    yield put("lease-dry-run", where("coordination.k8s.io/v1", "leases", ns, "dry", dryRun="All"),
              thing("coordination.k8s.io/v1", "Lease", "dry"))
    yield strategic("lease-patch", where("coordination.k8s.io/v1", "leases", ns, "patched"), {"spec": {}})


@scenario
def update_immutable(ns):
    """What may not change once it is there."""
    d = where("apps/v1", "deployments", ns)
    yield post(None, d, deployment())
    yield merge("deployment-selector", d + "/x", {"spec": {"selector": {"matchLabels": {"b": "c"}}}})
    yield post(None, where("apps/v1", "statefulsets", ns),
               thing("apps/v1", "StatefulSet", "x", spec={"selector": SELECTOR, "template": TEMPLATE,
                                                          "serviceName": "s"}))
    yield merge("stateful-set-service", where("apps/v1", "statefulsets", ns, "x"), {"spec": {"serviceName": "t"}})
    yield post(None, where("v1", "pods", ns), pod())
    yield merge("pod-node", where("v1", "pods", ns, "x"), {"spec": {"nodeName": "n"}})
    yield strategic("pod-image", where("v1", "pods", ns, "x"),
                    {"spec": {"containers": [{"name": "main", "image": "other"}]}})
    yield strategic("pod-env", where("v1", "pods", ns, "x"),
                    {"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "b"}]}]}})
    yield post(None, where("v1", "secrets", ns), thing("v1", "Secret", "x", type="example.com/a"))
    yield merge("secret-type", where("v1", "secrets", ns, "x"), {"type": "example.com/b"})
    yield post(None, where(RBAC, "rolebindings", ns), thing(RBAC, "RoleBinding", "x", roleRef=ROLE_REF))
    yield merge("role-ref", where(RBAC, "rolebindings", ns, "x"), {"roleRef": {"name": "other"}})
    yield post(None, where("batch/v1", "jobs", ns), thing("batch/v1", "Job", "x", spec={
        "template": {"spec": {"containers": containers(), "restartPolicy": "Never"}}}))
    yield merge("job-template", where("batch/v1", "jobs", ns, "x"),
                {"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}})
    yield merge("job-suspend", where("batch/v1", "jobs", ns, "x"), {"spec": {"suspend": True}})
    yield post(None, where("v1", "persistentvolumeclaims", ns), thing("v1", "PersistentVolumeClaim", "x", spec=CLAIM))
    yield merge("claim-modes", where("v1", "persistentvolumeclaims", ns, "x"),
                {"spec": {"accessModes": ["ReadOnlyMany"]}})
    yield post(None, where("v1", "events", ns), thing("v1", "Event", "x", involvedObject={**INVOLVED, "namespace": ns}))
    yield merge("event-about", where("events.k8s.io/v1", "events", ns, "x"), {
        "regarding": {"uid": "u"}, "related": {"name": "y"}, "deprecatedSource": {"host": "h"}})


@scenario
def claims(ns):
    """What of a claim may change, before it is bound and afterwards."""
    c = where("v1", "persistentvolumeclaims", ns)

    def claim(name="x", **spec):
        return thing("v1", "PersistentVolumeClaim", name, spec={**CLAIM, **spec})

    def size(storage):
        return {"spec": {"resources": {"requests": {"storage": storage}}}}
    for name, more in (("fixed-" + ns, {}), ("grows-" + ns, {"allowVolumeExpansion": True})):
        yield post(None, where(STORAGE, "storageclasses"), thing(STORAGE, "StorageClass", name,
                                                                 provisioner="example.com/p", **more))
    yield post(None, c, claim(storageClassName="grows-" + ns))
    yield merge("kept-grow-pending", c + "/x", size("2Gi"))
    yield merge("kept-shrink-pending", c + "/x", size("500Mi"))
    yield merge("kept-modes", c + "/x", {"spec": {"accessModes": ["ReadWriteMany"]}})
    yield merge("kept-selector", c + "/x", {"spec": {"selector": SELECTOR}})
    yield merge("kept-mode", c + "/x", {"spec": {"volumeMode": "Block"}})
    yield merge("kept-class", c + "/x", {"spec": {"storageClassName": "fixed-" + ns}})
    yield merge("kept-no-class", c + "/x", {"spec": {"storageClassName": None}})
    yield merge("kept-limits", c + "/x", {"spec": {"resources": {"limits": {"storage": "3Gi"}}}})
    yield merge("label", c + "/x", {"metadata": {"labels": {"a": "b"}}})
    yield merge("volume", c + "/x", {"spec": {"volumeName": "v"}})
    yield merge("kept-other-volume", c + "/x", {"spec": {"volumeName": "w"}})
    yield merge("kept-attributes", c + "/x", {"spec": {"volumeAttributesClassName": "gold"}})
    yield merge("kept-other-attributes", c + "/x", {"spec": {"volumeAttributesClassName": "silver"}})
    yield merge("no-attributes", c + "/x", {"spec": {"volumeAttributesClassName": None}})
    yield merge("bind", c + "/x/status", {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"},
                                                     "accessModes": ["ReadWriteOnce"]}})
    yield merge("grow", c + "/x", size("2Gi"))
    yield merge("shrink-to-capacity", c + "/x", size("1Gi"))
    yield merge("shrink-above-capacity", c + "/x", size("1500Mi"))
    yield merge("kept-bound-mode", c + "/x", {"spec": {"volumeMode": "Block"}})
    yield merge("status-negative", c + "/x/status", {"status": {"capacity": {"storage": "-1Gi"}}})
    for name, more in (("fixed", {"storageClassName": "fixed-" + ns}), ("classless", {}),
                       ("lost", {"storageClassName": "nowhere"})):
        yield post(None, c, claim(name, **more))
        yield merge(None, f"{c}/{name}/status", {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}})
        yield merge("grow-" + name, f"{c}/{name}", size("2Gi"))
        yield merge("kept-class-of-" + name, f"{c}/{name}", {"spec": {"storageClassName": "grows-" + ns}})
    yield merge("kept-late-class", c + "/classless", {"spec": {"storageClassName": "late"}})
    yield delete("delete", c + "/x")
    yield get("deleted", c + "/x")
    yield merge("let-go", c + "/x", {"metadata": {"finalizers": None}})
    yield get("gone", c + "/x")


@scenario
def volumes(ns):
    """What of a volume may change."""
    v, name = where("v1", "persistentvolumes"), "v-" + ns
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp/x"}}
    yield post("create", v, thing("v1", "PersistentVolume", name, spec=spec))
    v = f"{v}/{name}"
    yield merge("kept-path", v, {"spec": {"hostPath": {"path": "/tmp/y"}}})
    yield merge("kept-other-source", v, {"spec": {"hostPath": None, "nfs": {"server": "s", "path": "/p"}}})
    yield merge("kept-second-source", v, {"spec": {"nfs": {"server": "s", "path": "/p"}}})
    yield merge("kept-no-source", v, {"spec": {"hostPath": None}})
    yield merge("mode", v, {"spec": {"volumeMode": "Block"}})
    yield merge("capacity", v, {"spec": {"capacity": {"storage": "2Gi"}}})
    yield merge("modes", v, {"spec": {"accessModes": ["ReadWriteMany"]}})
    yield merge("policy", v, {"spec": {"persistentVolumeReclaimPolicy": "Delete"}})
    yield merge("class", v, {"spec": {"storageClassName": "c"}})
    terms = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{
        "key": "kubernetes.io/hostname", "operator": "In", "values": ["n"]}]}]}}
    yield merge("affinity", v, {"spec": {"nodeAffinity": terms}})
    yield json_patch("kept-other-affinity", v, op(
        "replace", "/spec/nodeAffinity/required/nodeSelectorTerms/0/matchExpressions/0/values/0", "m"))
    yield merge("claim", v, {"spec": {"claimRef": {"namespace": ns, "name": "x"}}})
    yield merge("phase", v + "/status", {"status": {"phase": "Bound"}})
    yield delete("delete", v)
    yield get("deleted", v, look=lambda body: [body["metadata"].get("finalizers"), body.get("status", {}).get("phase")])
    yield merge("let-go", v, {"metadata": {"finalizers": None}})


# --- subresources ---

@scenario
def status_of_job(ns):
    """What a Job's status may say, beside and after what it said."""
    j = where("batch/v1", "jobs", ns)
    start, end = "2020-01-01T00:00:00Z", "2020-01-01T00:01:00Z"

    def job(name, **spec):
        return thing("batch/v1", "Job", name, spec={"template": {"spec": {
            "containers": containers(), "restartPolicy": "Never"}}, **spec})

    def condition(kind, value="True"):
        return {"type": kind, "status": value, "lastProbeTime": start, "lastTransitionTime": start, "reason": "R"}

    def conditions(*kinds, **more):
        return {"status": {"conditions": list(map(condition, kinds)), **more}}
    yield post(None, j, job("x", suspend=True))
    s = j + "/x/status"
    for name in ("active", "succeeded", "failed", "ready", "terminating"):
        yield merge("negative-" + name, s, {"status": {name: -1}})
    yield merge("suspended", s, conditions("Suspended"))
    yield merge("many-ready", s, {"status": {"active": 1, "ready": 2}})
    yield merge("complete-too-early", s, conditions("Complete"))
    yield merge("complete-without-criteria", s, conditions("Complete", completionTime=end, startTime=start))
    yield merge("complete-and-failed", s, conditions("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget",
                                                     completionTime=end, startTime=start))
    yield merge("end-without-complete", s, {"status": {"conditions": [], "startTime": start, "completionTime": end}})
    yield merge("unsuspend", j + "/x", {"spec": {"suspend": False}})
    yield merge("started", s, {"status": {"conditions": [], "startTime": start, "active": 1, "ready": 1}})
    yield merge("start-again", s, {"status": {"startTime": end}})
    yield merge("start-removed", s, {"status": {"startTime": None}})
    yield merge("indexes", s, {"status": {"completedIndexes": "0"}})
    yield merge("failed-indexes", s, {"status": {"failedIndexes": "0"}})
    yield merge("counted-twice", s, {"status": {"uncountedTerminatedPods": {"succeeded": ["u"], "failed": ["u"]}}})
    yield merge("counted", s, {"status": {"uncountedTerminatedPods": {"succeeded": ["u"]}}})
    yield merge("criteria", s, conditions("SuccessCriteriaMet", active=1, ready=1))
    yield merge("complete-without-end", s, conditions("SuccessCriteriaMet", "Complete", active=0, ready=0))
    yield merge("complete-with-active", s, conditions("SuccessCriteriaMet", "Complete", completionTime=end))
    yield merge("end-before-start", s, conditions("SuccessCriteriaMet", "Complete", active=0, ready=0, terminating=0,
                                                  completionTime="2019-01-01T00:00:00Z", uncountedTerminatedPods=None))
    yield merge("complete-with-uncounted", s, conditions("SuccessCriteriaMet", "Complete", active=0, ready=0,
                                                         completionTime=end))
    yield merge("complete", s, conditions("SuccessCriteriaMet", "Complete", active=None, ready=0, completionTime=end,
                                          uncountedTerminatedPods=None, succeeded=1))
    yield merge("taken-back", s, {"status": {"conditions": []}})
    yield merge("taken-back-false", s, {"status": {"conditions": [
        condition("SuccessCriteriaMet"), condition("Complete", "False")]}})
    yield merge("failed-after-all", s, conditions("SuccessCriteriaMet", "Complete", "Failed", "FailureTarget"))
    yield merge("end-moved", s, {"status": {"completionTime": "2020-01-01T00:02:00Z"}})
    yield merge("fewer-succeeded", s, {"status": {"succeeded": 0}})
    yield post(None, j, job("f"))
    s = j + "/f/status"
    yield merge("failed-too-early", s, conditions("Failed"))
    yield merge("failed-without-target", s, conditions("Failed", startTime=start))
    yield merge("target", s, conditions("FailureTarget", startTime=start))
    yield merge("target-taken-back", s, conditions())
    yield merge("failed-with-end", s, conditions("FailureTarget", "Failed", completionTime=end))
    yield merge("failed", s, conditions("FailureTarget", "Failed", failed=1))
    yield merge("failed-taken-back", s, conditions("FailureTarget"))
    yield merge("failed-fewer", s, {"status": {"failed": 0}})
    yield post(None, j, job("i", completionMode="Indexed", completions=3, parallelism=2))
    s = j + "/i/status"
    for name, indexes in (("good", "0,2"), ("range", "0-2"), ("beyond", "3"), ("unordered", "2,0"), ("text", "a")):
        yield merge("indexes-" + name, s, {"status": {"completedIndexes": indexes}})
    yield merge("indexed-succeeded", s, {"status": {"completedIndexes": "0-1", "succeeded": 2}})
    yield merge("indexed-succeeded-more", s, {"status": {"completedIndexes": "0-1", "succeeded": 4}})


@scenario
def job_labels(ns):
    t = where("batch/v1", "jobs", ns)

    def job(name, **metadata):
        return thing("batch/v1", "Job", name, metadata=metadata, spec={"template": {
            "metadata": {"labels": LABELS}, "spec": {"containers": containers(), "restartPolicy": "Never"}}})
    yield post("none", t, job("none"))
    yield post("empty", t, job("empty", labels={}))
    yield post("same", t, job("same", labels=LABELS))
    yield post("dry-run", t + "?dryRun=All", job("dry"))
    yield apply("apply", t + "/applied", job("applied"))
    yield apply("apply-again", t + "/applied", job("applied", annotations={"a": "b"}))


@scenario
def job_immutable(ns):
    """What of a Job does not change, and what does while it is suspended."""
    j = where("batch/v1", "jobs", ns)
    template = {"spec": {"containers": containers(), "restartPolicy": "Never"}}
    yield post(None, j, thing("batch/v1", "Job", "x", spec={"template": template, "suspend": True, "completions": 3}))
    x = j + "/x"
    yield merge("kept-selector", x, {"spec": {"selector": {"matchLabels": {"a": "b"}}}})
    yield merge("mode", x, {"spec": {"completionMode": "Indexed"}})
    yield merge("completions", x, {"spec": {"completions": 4}})
    yield merge("parallelism", x, {"spec": {"parallelism": 2}})
    yield merge("kept-image", x, {"spec": {"template": {"spec": {"containers": containers(image="other")}}}})
    yield merge("manual", x, {"spec": {"manualSelector": True}})
    for name, part in (("node-selector", {"spec": {"nodeSelector": {"a": "b"}}}),
                       ("tolerations", {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}),
                       ("template-labels", {"metadata": {"labels": {"a": "b"}}}),
                       ("template-annotations", {"metadata": {"annotations": {"a": "b"}}}),
                       ("gates", {"spec": {"schedulingGates": [{"name": "example.com/g"}]}}),
                       ("affinity", {"spec": {"affinity": {"nodeAffinity": {
                           "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                               {"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}}}}),
                       ("resources", {"spec": {"containers": containers(resources={"requests": {"cpu": "1"}})}})):
        yield merge("suspended-" + name, x, {"spec": {"template": part}})
    yield merge("resume", x, {"spec": {"suspend": False}})
    yield merge("kept-node-selector", x, {"spec": {"template": {"spec": {"nodeSelector": {"a": "c"}}}}})
    yield merge("kept-policy", x, {"spec": {"podReplacementPolicy": "Failed", "podFailurePolicy": {"rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}}})
    yield merge("backoff", x, {"spec": {"backoffLimit": 1, "activeDeadlineSeconds": 9, "ttlSecondsAfterFinished": 9}})
    yield merge("replacement", x, {"spec": {"podReplacementPolicy": "Failed"}})
    yield merge("managed-by", x, {"spec": {"managedBy": "example.com/m"}})
    yield post(None, j, thing("batch/v1", "Job", "i", spec={"template": template, "completionMode": "Indexed",
                                                           "completions": 3, "parallelism": 3}))
    yield merge("indexed-completions", j + "/i", {"spec": {"completions": 2}})
    yield merge("indexed-both", j + "/i", {"spec": {"completions": 2, "parallelism": 2}})


@scenario
def status(ns):
    d = where("apps/v1", "deployments", ns)
    created = yield post("create-with-status", d, {**deployment(), "status": {"replicas": 9}})
    yield put("put-spec-and-status", d + "/x/status",
              created.changed(("spec.replicas", 7), ("status.replicas", 3), ("status.observedGeneration", 1),
                              ("metadata.labels", {"new": "label"}), ("metadata.annotations", {"new": "one"})))
    yield put("put-main-with-status", d + "/x", {**deployment(replicas=2), "status": {"replicas": 5}})
    yield merge("merge-status", d + "/x/status", {"spec": {"replicas": 8}, "status": {"readyReplicas": 1}})
    yield merge("merge-main", d + "/x", {"status": {"readyReplicas": 2}})
    condition = {"type": "Available", "status": "True", "reason": "R", "message": "m",
                 "lastUpdateTime": "2020-01-01T00:00:00Z", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    yield strategic("strategic-condition", d + "/x/status", {"status": {"conditions": [condition]}})
    yield strategic("strategic-other-condition", d + "/x/status",
                    {"status": {"conditions": [{**condition, "type": "Progressing"}]}})
    yield json_patch("json-status", d + "/x/status", op("replace", "/status/readyReplicas", 0),
                     op("add", "/status/updatedReplicas", 1))
    yield get("get-status", d + "/x/status")
    yield get("get-status-table", d + "/x/status", TABLE)
    yield put("put-stale", d + "/x/status", created.changed(("status.replicas", 4)))
    yield put("put-not-there", d + "/nope/status", deployment("nope"))
    yield put("put-invalid", d + "/x/status", {**deployment(), "status": {"replicas": -1}})
    yield merge("merge-metadata", d + "/x/status", {"metadata": {"labels": {"via": "status"},
                                                                 "finalizers": ["example.com/f"]}})
    yield apply("apply-status", d + "/x/status", {"apiVersion": "apps/v1", "kind": "Deployment",
                                                  "metadata": {"name": "x"}, "status": {"collisionCount": 1}}, "s")
    yield post("post-status", d + "/x/status", deployment())
    yield delete("delete-status", d + "/x/status")
    yield merge("same", d + "/x/status", {"status": {"readyReplicas": 0}})


@scenario
def status_of_pod(ns):
    p = where("v1", "pods", ns)
    yield post("create", p, {**pod(), "status": {"phase": "Running", "podIP": "1.2.3.4"}})
    yield strategic("phase", p + "/x/status", {"status": {"phase": "Running", "podIP": "1.2.3.4",
                                                          "podIPs": [{"ip": "1.2.3.4"}]}})
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    yield strategic("ready", p + "/x/status", {"status": {"conditions": [ready]}})
    yield strategic("ready-again", p + "/x/status", {"status": {"conditions": [{**ready, "reason": "R"}]}})
    yield strategic("container", p + "/x/status", {"status": {"containerStatuses": [
        {"name": "main", "ready": True, "restartCount": 2, "image": "i", "imageID": "",
         "state": {"running": {"startedAt": "2020-01-01T00:00:00Z"}}}]}})
    yield get("table", p + "/x", TABLE)
    yield strategic("drop-condition", p + "/x/status",
                    {"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}})
    yield get("by-phase", p + "?fieldSelector=status.phase%3DRunning")
    yield get("by-other-phase", p + "?fieldSelector=status.phase%3DPending")


@scenario
def scale(ns):
    for version, resource, make in (
            ("apps/v1", "deployments", deployment()),
            ("apps/v1", "statefulsets", thing("apps/v1", "StatefulSet", "x", spec={
                "selector": SELECTOR, "template": TEMPLATE, "serviceName": "s"})),
            ("apps/v1", "replicasets", thing("apps/v1", "ReplicaSet", "x", spec={
                "selector": {"matchLabels": LABELS, "matchExpressions": [
                    {"key": "app", "operator": "In", "values": ["x", "y"]}]}, "template": TEMPLATE})),
            ("v1", "replicationcontrollers", thing("v1", "ReplicationController", "x", spec={
                "selector": LABELS, "template": TEMPLATE}))):
        t = where(version, resource, ns, "x", "scale")
        yield post(None, where(version, resource, ns), make)
        got = yield get(f"{resource}-get", t)
        yield put(f"{resource}-put", t, got.changed(("spec.replicas", 3)))
        yield merge(f"{resource}-merge", t, {"spec": {"replicas": 4}})
        yield get(f"{resource}-after", where(version, resource, ns, "x"))
    t = where("apps/v1", "deployments", ns, "x", "scale")
    got = yield get("get", t)
    yield put("same", t, got.changed())
    yield put("stale", t, got.changed(("spec.replicas", 9), ("metadata.resourceVersion", "1")))
    yield put("without-version", t, {"apiVersion": "autoscaling/v1", "kind": "Scale",
                                     "metadata": {"name": "x", "namespace": ns}, "spec": {"replicas": 5}})
    yield put("negative", t, got.changed(("spec.replicas", -1), ("metadata.resourceVersion", None)))
    for name, replicas in (("text", "5"), ("fraction", 1.5), ("large", 2 ** 31)):
        yield put(f"put-{name}", t, got.changed(("spec.replicas", replicas), ("metadata.resourceVersion", None)))
        yield merge(f"merge-{name}", t, {"spec": {"replicas": replicas}})
        yield json_patch(f"json-{name}", t, op("replace", "/spec/replicas", replicas))
    yield put("wrong-kind", t, deployment())
    yield put("other-name", t, got.changed(("metadata.name", "y"), ("metadata.resourceVersion", None)))
    yield put("dry-run", t + "?dryRun=All", got.changed(("spec.replicas", 6), ("metadata.resourceVersion", None)))
    yield json_patch("json", t, op("replace", "/spec/replicas", 0))
    yield strategic("strategic", t, {"spec": {"replicas": 1}})
    yield apply("apply", t, {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "x"},
                             "spec": {"replicas": 2}}, "s", "&force=true")
    yield get("not-there", where("apps/v1", "deployments", ns, "nope", "scale"))
    yield put("put-not-there", where("apps/v1", "deployments", ns, "nope", "scale"), got.changed(
        ("metadata.name", "nope"), ("metadata.resourceVersion", None)))
    yield get("of-daemon-set", where("apps/v1", "daemonsets", ns, "x", "scale"))
    yield get("table", t, TABLE)


@scenario
def binding(ns):
    p = where("v1", "pods", ns)

    def bind(name, node="n", **more):
        return thing("v1", "Binding", name, target={"apiVersion": "v1", "kind": "Node", "name": node, **more})
    yield post(None, p, pod("x"))
    yield post("bind", p + "/x/binding", bind("x"))
    yield get("bound", p + "/x")
    yield post("again", p + "/x/binding", bind("x", "m"))
    yield post("not-there", p + "/nope/binding", bind("nope"))
    yield post(None, p, pod("y"))
    yield post("other-name", p + "/y/binding", bind("z"))
    yield post("no-node", p + "/y/binding", bind("y", ""))
    yield post("wrong-kind", p + "/y/binding", bind("y", kind="Pod"))
    yield post("other-uid", p + "/y/binding", changed(
        bind("y"), ("metadata.uid", "00000000-1111-2222-3333-444444444444")))
    yield post("other-version", p + "/y/binding", changed(bind("y"), ("metadata.resourceVersion", "1")))
    created = yield post(None, p, pod("z"))
    yield post("right-one", p + "/z/binding", changed(
        bind("z", "m"), ("metadata.uid", created.uid), ("metadata.resourceVersion", created.version)))
    yield get("right-one-bound", p + "/z")
    yield post(None, p, changed(pod("going"), ("metadata.finalizers", ["example.com/f"])))
    yield delete(None, p + "/going")
    yield post("going", p + "/going/binding", bind("going"))
    yield post(None, p, pod("gated", schedulingGates=[{"name": "example.com/g"}]))
    yield post("gated", p + "/gated/binding", bind("gated"))
    yield merge(None, p + "/gated", {"spec": {"schedulingGates": []}})
    yield post("gated-no-more", p + "/gated/binding", bind("gated", "m"))
    yield post(None, p, changed(pod("told"), ("metadata.labels", {"a": "pod"}), ("metadata.annotations", {"a": "pod"})))
    yield post("with-metadata", p + "/told/binding", changed(
        bind("told"), ("metadata.annotations", {"a": "binding", "b": "binding"}),
        ("metadata.labels", {"a": "binding", "b": "binding"})))
    yield get("with-metadata-bound", p + "/told")
    zone = {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r", "other": "o"}
    yield post(None, "/api/v1/nodes", thing("v1", "Node", "placed-" + ns, metadata={"labels": zone}))
    yield post(None, p, pod("placed"))
    yield post("in-a-zone", p + "/placed/binding", bind("placed", "placed-" + ns))
    yield get("in-a-zone-bound", p + "/placed")
    yield merge("in-another-zone", p + "/placed", {"metadata": {"labels": {
        "topology.kubernetes.io/zone": "another", "topology.kubernetes.io/region": None}}})
    yield post("in-a-zone-at-once", p, pod("at-once", nodeName="placed-" + ns))
    yield post("no-such-dry-run", p + "/y/binding?dryRun=All", bind("y"))
    yield get("not-bound-dry", p + "/y")
    yield post("by-bindings", where("v1", "bindings", ns), bind("y"))
    yield post("by-bindings-again", where("v1", "bindings", ns), bind("y"))
    yield post("by-bindings-not-there", where("v1", "bindings", ns), bind("nope"))
    yield get("by-bindings-bound", p + "/y")
    yield get("of-node", p + "?fieldSelector=spec.nodeName%3Dn", look=names_of)
    yield get("get", p + "/x/binding")


@scenario
def eviction(ns):
    p = where("v1", "pods", ns)

    def evict(name, **more):
        return thing("policy/v1", "Eviction", name, **more)
    for name in ("a", "b", "c", "d", "e"):
        yield post(None, p, changed(pod(name), ("metadata.labels", {"p": "guarded" if name == "e" else "free"})))
    yield post("evict", p + "/a/eviction", evict("a"))
    yield get("evicted", p + "/a")
    yield post("not-there", p + "/nope/eviction", evict("nope"))
    yield post("dry-run", p + "/b/eviction", evict("b", deleteOptions={"dryRun": ["All"]}))
    yield post("dry-run-query", p + "/b/eviction?dryRun=All", evict("b"))
    yield get("not-evicted", p + "/b")
    yield post("other-name", p + "/b/eviction", evict("c"))
    yield post("no-name", p + "/c/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {}})
    yield post("wrong-kind", p + "/d/eviction", pod("d"))
    yield post("empty", p + "/d/eviction", b"")
    yield post("old-version", p + "/d/eviction", {**evict("d"), "apiVersion": "policy/v1beta1"})
    before = yield post(None, p, pod("bound", nodeName="n"))
    yield post("stale", p + "/bound/eviction", evict("bound", deleteOptions={"preconditions": {"resourceVersion": "1"}}))
    yield post("bound", p + "/bound/eviction", evict("bound", deleteOptions={
        "preconditions": {"resourceVersion": before.version}, "gracePeriodSeconds": 5}))
    yield post("bound-again", p + "/bound/eviction", evict("bound"))
    yield get("bound-get", p + "/bound")
    yield post("bound-at-once", p + "/bound/eviction", evict("bound", deleteOptions={"gracePeriodSeconds": 0}))
    yield watch("told", f"{p}?watch=1&resourceVersion={before.version}&fieldSelector=metadata.name%3Dbound", 4)
    yield post(None, where("policy/v1", "poddisruptionbudgets", ns),
               thing("policy/v1", "PodDisruptionBudget", "x", spec={
                   "minAvailable": 1, "selector": {"matchLabels": {"p": "guarded"}}}))
    yield strategic(None, p + "/e/status", {"status": {"phase": "Running", "conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}})
    yield post("guarded", p + "/e/eviction", evict("e"))


@scenario
def pod_more(ns):
    p = where("v1", "pods", ns)
    yield post("full", p, pod(
        "full", initContainers=[{"name": "init", "image": "i"}], volumes=[
            {"name": "a", "emptyDir": {}}, {"name": "b", "configMap": {"name": "c"}},
            {"name": "s", "secret": {"secretName": "s"}}, {"name": "h", "hostPath": {"path": "/x"}},
            {"name": "d", "downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}}],
        containers=containers(
            env=[{"name": "A", "value": "b"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
            ports=[{"containerPort": 80, "name": "web"}], volumeMounts=[{"name": "a", "mountPath": "/a"}],
            resources={"limits": {"cpu": "1", "memory": "1Gi"}},
            livenessProbe={"httpGet": {"port": "web"}}, readinessProbe={"tcpSocket": {"port": 80}},
            lifecycle={"preStop": {"exec": {"command": ["a"]}}})))
    yield post("guaranteed", p, pod("guaranteed", containers=containers(
        resources={"limits": {"cpu": "1", "memory": "1Gi"}})))
    yield post("latest", p, pod("latest", containers=[{"name": "c", "image": "x:latest"}]))
    yield post("host-network", p, pod("host", hostNetwork=True, containers=containers(ports=[{"containerPort": 80}])))
    yield post("tolerations", p, pod("tolerant", tolerations=[{"operator": "Exists"}]))
    yield post("gated", p, pod("gated", schedulingGates=[{"name": "example.com/g"}]))
    yield merge("ephemeral", p + "/full/ephemeralcontainers",
                {"spec": {"ephemeralContainers": [{"name": "debug", "image": "d"}]}})
    yield merge("resize", p + "/guaranteed/resize", {"spec": {"containers": [
        {"name": "main", "image": "example.com/main:1", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}]}})
    yield get("log", p + "/full/log")
    yield get("of-nobody", p + "?fieldSelector=spec.nodeName%3D", look=lambda body: len(body.get("items", ())))
    yield merge("deadline", p + "/full", {"spec": {"activeDeadlineSeconds": 5}})
    yield merge("tolerate", p + "/tolerant", {"spec": {"tolerations": [{"operator": "Exists"},
                                                                       {"key": "a", "operator": "Exists"}]}})


@scenario
def pod_resize(ns):
    """Only resources change by resize, whatever else is said."""
    p = where("v1", "pods", ns)

    def sized(name="x", cpu="1"):
        size = {"cpu": cpu, "memory": "1Gi"}
        return pod(name, containers=containers(resources={"requests": size, "limits": size}))
    created = yield post(None, p, sized())
    yield get("get", p + "/x/resize")
    yield put("put", p + "/x/resize", created.changed(
        ("spec.containers.0.resources", sized(cpu="2")["spec"]["containers"][0]["resources"]),
        ("spec.containers.0.image", "other"), ("spec.nodeName", "n"), ("spec.activeDeadlineSeconds", 5),
        ("metadata.labels", {"via": "resize"}), ("metadata.annotations", {"via": "resize"}),
        ("status.phase", "Running")))
    yield get("after", p + "/x")
    yield strategic("image", p + "/x/resize", {"spec": {"containers": [{"name": "main", "image": "other"}]}})
    yield strategic("policy", p + "/x/resize", {"spec": {"containers": [{"name": "main", "resizePolicy": [
        {"resourceName": "cpu", "restartPolicy": "RestartContainer"},
        {"resourceName": "memory", "restartPolicy": "NotRequired"}]}]}})
    yield strategic("one-more", p + "/x/resize", {"spec": {"containers": [{"name": "more", "image": "m"}]}})
    yield put("one-less", p + "/x/resize", created.changed(
        ("metadata.resourceVersion", None), ("spec.containers", [])))
    yield strategic("quality", p + "/x/resize", {"spec": {"containers": [{"name": "main", "resources": {
        "requests": {"cpu": "1"}}}]}})
    yield strategic("other-resource", p + "/x/resize", {"spec": {"containers": [{"name": "main", "resources": {
        "requests": {"ephemeral-storage": "1Gi"}, "limits": {"ephemeral-storage": "1Gi"}}}]}})
    yield strategic("above-limit", p + "/x/resize", {"spec": {"containers": [{"name": "main", "resources": {
        "requests": {"cpu": "9"}}}]}})
    yield json_patch("no-resources", p + "/x/resize", op("remove", "/spec/containers/0/resources"))
    yield strategic("kept-main", p + "/x", {"spec": {"containers": [{"name": "main", "resources": {
        "requests": {"cpu": "1"}, "limits": {"cpu": "1"}}}]}})
    yield strategic("same", p + "/x/resize", {"spec": {"activeDeadlineSeconds": 7}})
    yield put("not-there", p + "/nope/resize", sized("nope"))
    yield post(None, p, pod("burst", containers=containers(resources={"requests": {"cpu": "1"},
                                                                     "limits": {"cpu": "2"}})))
    yield strategic("less", p + "/burst/resize", {"spec": {"containers": [{"name": "main", "resources": {
        "requests": {"cpu": "500m"}}}]}})
    yield json_patch("no-limits", p + "/burst/resize", op("remove", "/spec/containers/0/resources/limits"))
    yield post(None, p, pod("plain"))
    yield strategic("of-best-effort", p + "/plain/resize", {"spec": {"containers": [{"name": "main", "resources": {
        "requests": {"cpu": "500m"}}}]}})


@scenario
def pod_ephemeral(ns):
    """Ephemeral containers are only added, and nothing else changes with them."""
    p = where("v1", "pods", ns)
    debug = {"name": "debug", "image": "d"}
    created = yield post(None, p, pod())
    yield post("at-creation", p, pod("y", ephemeralContainers=[debug]))
    yield put("put", p + "/x/ephemeralcontainers", created.changed(
        ("spec.ephemeralContainers", [debug]), ("spec.containers.0.image", "other"), ("spec.nodeName", "n"),
        ("metadata.labels", {"via": "ephemeral"}), ("metadata.annotations", {"via": "ephemeral"}),
        ("status.phase", "Running")))
    yield get("after", p + "/x")
    e = p + "/x/ephemeralcontainers"
    yield strategic("add", e, {"spec": {"ephemeralContainers": [{"name": "more", "image": "m"}]}})
    yield strategic("kept-container", e, {"spec": {"ephemeralContainers": [{"name": "debug", "image": "other"}]}})
    yield json_patch("remove", e, op("remove", "/spec/ephemeralContainers/0"))
    yield json_patch("remove-all", e, op("remove", "/spec/ephemeralContainers"))
    yield strategic("no-image", e, {"spec": {"ephemeralContainers": [{"name": "bare"}]}})
    yield strategic("name-of-another", e, {"spec": {"ephemeralContainers": [{"name": "main", "image": "m"}]}})
    yield strategic("ports", e, {"spec": {"ephemeralContainers": [{
        "name": "ports", "image": "m", "ports": [{"containerPort": 80}]}]}})
    yield strategic("target", e, {"spec": {"ephemeralContainers": [{
        "name": "target", "image": "m", "targetContainerName": "main"}]}})
    yield strategic("no-target", e, {"spec": {"ephemeralContainers": [{
        "name": "lost", "image": "m", "targetContainerName": "nobody"}]}})
    yield strategic("kept-main", p + "/x", {"spec": {"ephemeralContainers": [{"name": "by-main", "image": "m"}]}})
    yield get("get", e)


@scenario
def service_account(ns):
    t = where("v1", "serviceaccounts", ns)
    yield post("create", t, thing("v1", "ServiceAccount", "x", automountServiceAccountToken=False))
    yield post("token", t + "/x/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                                         "spec": {"expirationSeconds": 3600}},
               look=lambda body: {**body, "status": None})
    for row, seconds in (("token-short", 599), ("token-long", 2 ** 32 + 1), ("token-none", 0)):
        yield post(row, t + "/x/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                                         "spec": {"expirationSeconds": seconds}})
    yield post("token-not-there", t + "/nope/token", {"apiVersion": "authentication.k8s.io/v1",
                                                      "kind": "TokenRequest", "spec": {}})


# --- patches ---

@scenario
def patch_json(ns):
    t = where("v1", "configmaps", ns)
    x = t + "/x"
    yield post(None, t, config_map("x", {"a": "1", "b": "2"}, annotations={"example.com/slash": "3"}))
    yield json_patch("add", x, op("add", "/data/c", "5"))
    yield json_patch("add-existing", x, op("add", "/data/a", "6"))
    yield json_patch("replace", x, op("replace", "/data/b", "7"))
    yield json_patch("remove", x, op("remove", "/data/c"))
    yield json_patch("move", x, {"op": "move", "from": "/data/b", "path": "/data/moved"})
    yield json_patch("copy", x, {"op": "copy", "from": "/data/a", "path": "/data/copied"})
    yield json_patch("escapes", x, op("replace", "/metadata/annotations/example.com~1slash", "8"))
    yield json_patch("escaped-tilde", x, op("remove", "/data/with~0tilde"))
    yield json_patch("test", x, op("test", "/data/a", "6"), op("replace", "/data/a", "9"))
    yield json_patch("test-fails", x, op("test", "/data/a", "nope"), op("replace", "/data/a", "10"))
    yield json_patch("test-missing", x, op("test", "/data/nope", "x"))
    yield json_patch("remove-missing", x, op("remove", "/data/nope"))
    yield json_patch("replace-missing", x, op("replace", "/data/nope", "x"))
    yield json_patch("add-deep", x, op("add", "/metadata/labels/a", "b"))
    yield json_patch("add-labels", x, op("add", "/metadata/labels", {"a": "b"}))
    yield json_patch("move-missing", x, {"op": "move", "from": "/data/nope", "path": "/data/x"})
    yield json_patch("copy-missing", x, {"op": "copy", "from": "/data/nope", "path": "/data/x"})
    yield json_patch("unknown-op", x, op("foo", "/data/a", "b"))
    yield json_patch("no-op", x, {"path": "/data/a", "value": "b"})
    yield json_patch("no-path", x, {"op": "add", "value": "b"})
    yield json_patch("no-value", x, {"op": "add", "path": "/data/novalue"})
    yield json_patch("relative-path", x, op("add", "data/a", "b"))
    yield json_patch("whole", x, op("replace", "", config_map("x", {"whole": "1"})))
    yield json_patch("empty", x)
    yield json_patch("same", x, op("replace", "/data/whole", "1"))
    yield json_patch("list-add", x, op("add", "/metadata/finalizers", ["example.com/a"]),
                     op("add", "/metadata/finalizers/-", "example.com/c"),
                     op("add", "/metadata/finalizers/1", "example.com/b"))
    yield json_patch("list-out-of-range", x, op("add", "/metadata/finalizers/9", "example.com/z"))
    yield json_patch("list-remove", x, op("remove", "/metadata/finalizers/0"))
    yield json_patch("list-negative", x, op("remove", "/metadata/finalizers/-1"))
    yield json_patch("list-word", x, op("remove", "/metadata/finalizers/x"))
    yield json_patch("list-away", x, op("remove", "/metadata/finalizers"))
    yield patch("no-list", x, {"op": "add"}, "application/json-patch+json")
    yield patch("malformed", x, "[{", "application/json-patch+json")
    yield patch("empty-body", x, b"", "application/json-patch+json")
    yield json_patch("wrong-type", x, op("add", "/data", ["x"]))
    yield json_patch("invalid", x, op("add", "/data/a b", "x"))
    yield json_patch("unknown-field", x, op("add", "/foo", "x"))
    yield patch("unknown-field-strict", x + "?fieldValidation=Strict", [op("add", "/foo", "x")],
                "application/json-patch+json")
    yield json_patch("name", x, op("replace", "/metadata/name", "y"))
    yield json_patch("kind", x, op("replace", "/kind", "Secret"))
    yield json_patch("version-test", x, op("test", "/metadata/resourceVersion", "1"))
    yield json_patch("version-stale", x, op("replace", "/metadata/resourceVersion", "1"))
    yield json_patch("not-there", t + "/nope", op("add", "/data/a", "b"))


@scenario
def patch_merge(ns):
    t = where("v1", "configmaps", ns)
    x = t + "/x"
    created = yield post(None, t, config_map("x", {"a": "1", "b": "2"}))
    yield merge("add", x, {"data": {"c": "3"}})
    yield merge("remove", x, {"data": {"a": None}})
    yield merge("remove-missing", x, {"data": {"nope": None}})
    yield merge("remove-all", x, {"data": None})
    yield merge("remove-metadata", x, {"metadata": None})
    yield merge("remove-name", x, {"metadata": {"name": None}})
    yield merge("restore", x, {"data": {"a": "1"}, "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}})
    yield merge("empty", x, {})
    yield merge("same", x, {"data": {"a": "1"}})
    yield merge("array", x, [])
    yield merge("text", x, '"x"')
    yield merge("null", x, "null")
    yield merge("malformed", x, "{")
    yield merge("empty-body", x, b"")
    yield merge("wrong-type", x, {"data": {"a": 5}})
    yield merge("wrong-type-of-map", x, {"data": "x"})
    yield merge("unknown", x, {"foo": {"bar": 1}})
    yield merge("unknown-strict", x + "?fieldValidation=Strict", {"foo": 1})
    yield merge("unknown-ignore", x + "?fieldValidation=Ignore", {"foo": 1})
    yield merge("doubled", x, '{"data":{"d":"1","d":"2"}}')
    yield merge("version-right", x, {"metadata": {"resourceVersion": created.version}, "data": {"a": "stale"}})
    now = yield get(None, x)
    yield merge("version-now", x, {"metadata": {"resourceVersion": now.version}, "data": {"a": "now"}})
    yield merge("uid-wrong", x, {"metadata": {"uid": "00000000-1111-2222-3333-444444444444"}})
    yield merge("uid-right", x, {"metadata": {"uid": created.uid}, "data": {"a": "uid"}})
    yield merge("name", x, {"metadata": {"name": "y"}})
    yield merge("namespace", x, {"metadata": {"namespace": "elsewhere"}})
    yield merge("kind", x, {"kind": "Secret"})
    yield merge("version", x, {"apiVersion": "v9"})
    yield merge("labels", x, {"metadata": {"labels": {"new": "one", "a": None}}})
    yield merge("labels-bad", x, {"metadata": {"labels": {"a b": "c"}}})
    yield merge("labels-away", x, {"metadata": {"labels": None, "annotations": None}})
    yield merge("finalizers", x, {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}})
    yield merge("finalizers-replaced", x, {"metadata": {"finalizers": ["example.com/c"]}})
    yield merge("finalizers-away", x, {"metadata": {"finalizers": []}})
    yield merge("time", x, {"metadata": {"creationTimestamp": None}})
    yield merge("deletion", x, {"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}})
    yield merge("managed", x, {"metadata": {"managedFields": None}})
    yield merge("managed-reset", x, {"metadata": {"managedFields": [{}]}})
    yield merge("dry-run", x + "?dryRun=All", {"data": {"dry": "run"}})
    yield merge("manager", x + "?fieldManager=patcher", {"data": {"by": "patcher"}})
    yield merge("force", x + "?force=true", {"data": {"by": "force"}})
    yield merge("not-there", t + "/nope", {"data": {}})
    yield merge("table", x, {"data": {"t": "1"}}, accept=TABLE)
    yield merge("partial", x, {"data": {"t": "2"}}, accept=PARTIAL)
    for name, kind in (("json", JSON), ("yaml", YAML), ("text", "text/plain"), ("none", ""),
                       ("apply-json", "application/apply-patch+json"), ("cbor", "application/apply-patch+cbor"),
                       ("charset", "application/merge-patch+json; charset=utf-8")):
        yield patch("media-" + name, x, {"data": {"m": name}}, kind)
    d = where("apps/v1", "deployments", ns)
    yield post(None, d, deployment(template=changed(TEMPLATE, ("spec.containers", containers() + [
        {"name": "side", "image": "s"}]))))
    yield merge("list-replaced", d + "/x", {"spec": {"template": {"spec": {"containers": [
        {"name": "only", "image": "o"}]}}}})
    yield merge("defaults-again", d + "/x", {"spec": {"replicas": None, "strategy": None}})
    yield merge("generation", d + "/x", {"spec": {"paused": True}})
    yield merge("no-generation", d + "/x", {"metadata": {"annotations": {"a": "b"}}})


@scenario
def patch_strategic(ns):
    d = where("apps/v1", "deployments", ns)
    x = d + "/x"

    def spec(**more):
        return {"spec": {"template": {"spec": more}}}

    def main(**more):
        return spec(containers=[{"name": "main", **more}])
    yield post(None, d, deployment(template=changed(
        TEMPLATE, ("spec.containers", containers(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                                                 ports=[{"containerPort": 80}], args=["x", "y"],
                                                 volumeMounts=[{"name": "v", "mountPath": "/v"}])),
        ("spec.volumes", [{"name": "v", "emptyDir": {}}]))))
    yield strategic("env-change", x, main(env=[{"name": "A", "value": "one"}]))
    yield strategic("env-add", x, main(env=[{"name": "C", "value": "3"}]))
    yield strategic("env-delete", x, main(env=[{"name": "B", "$patch": "delete"}]))
    yield strategic("env-order", x, main(**{"$setElementOrder/env": [{"name": "C"}, {"name": "A"}],
                                            "env": [{"name": "A", "value": "uno"}]}))
    yield strategic("env-order-and-add", x, main(**{
        "$setElementOrder/env": [{"name": "D"}, {"name": "C"}, {"name": "A"}], "env": [{"name": "D", "value": "4"}]}))
    yield strategic("env-replace", x, main(env=[{"name": "Z", "value": "26"}, {"$patch": "replace"}]))
    yield strategic("env-value-from", x, main(env=[{"name": "Z", "value": None, "valueFrom": {
        "configMapKeyRef": {"name": "c", "key": "k"}}}]))
    yield strategic("env-no-name", x, main(env=[{"value": "1"}]))
    yield strategic("args", x, main(args=["z"]))
    yield strategic("ports-add", x, main(ports=[{"containerPort": 81, "name": "two"}]))
    yield strategic("ports-change", x, main(ports=[{"containerPort": 80, "name": "one"}]))
    yield strategic("ports-delete", x, main(ports=[{"containerPort": 81, "$patch": "delete"}]))
    added = yield strategic("volumes-add", x, spec(volumes=[{"name": "w", "configMap": {"name": "c"}}]))
    # A patch that the server first applies to an older state, of its watch cache, leaves that one's warnings behind.
    yield get(None, f"{x}?resourceVersion={added.version}")
    yield strategic("volumes-retain", x, spec(volumes=[{"name": "w", "$retainKeys": ["name", "secret"],
                                                        "secret": {"secretName": "s"}}]))
    yield strategic("volumes-two-kinds", x, spec(volumes=[{"name": "w", "hostPath": {"path": "/x"}}]))
    yield strategic("volumes-delete", x, spec(volumes=[{"name": "w", "$patch": "delete"}]))
    yield strategic("mounts", x, main(volumeMounts=[{"mountPath": "/v", "readOnly": True}]))
    yield strategic("container-add", x, spec(containers=[{"name": "side", "image": "s"}]))
    yield strategic("container-order", x, spec(**{"$setElementOrder/containers": [{"name": "side"}, {"name": "main"}]}))
    yield strategic("container-delete", x, spec(containers=[{"name": "side", "$patch": "delete"}]))
    yield strategic("container-delete-missing", x, spec(containers=[{"name": "nope", "$patch": "delete"}]))
    yield strategic("node-selector", x, spec(nodeSelector={"a": "b"}))
    yield strategic("node-selector-replace", x, spec(nodeSelector={"$patch": "replace", "c": "d"}))
    yield strategic("node-selector-delete", x, spec(nodeSelector={"$patch": "delete"}))
    yield strategic("strategy-retain", x, {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}})
    yield strategic("null", x, {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": None}}}})
    yield strategic("tolerations", x, spec(tolerations=[{"key": "a", "operator": "Exists"}]))
    yield strategic("tolerations-again", x, spec(tolerations=[{"key": "b", "operator": "Exists"}]))
    yield strategic("pull-secrets", x, spec(imagePullSecrets=[{"name": "a"}]))
    yield strategic("pull-secrets-again", x, spec(imagePullSecrets=[{"name": "b"}]))
    yield strategic("host-aliases", x, spec(hostAliases=[{"ip": "1.2.3.4", "hostnames": ["h"]}]))
    yield strategic("finalizers", x, {"metadata": {"finalizers": ["example.com/a"]}})
    yield strategic("finalizers-merge", x, {"metadata": {"finalizers": ["example.com/b"]}})
    yield strategic("finalizers-order", x, {"metadata": {
        "$setElementOrder/finalizers": ["example.com/b", "example.com/a"]}})
    yield strategic("finalizers-delete", x, {"metadata": {
        "$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/b"]}})
    yield strategic("labels", x, {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}})
    yield strategic("labels-away", x, {"metadata": {"labels": None}})
    yield strategic("same", x, main(image="example.com/main:1"))
    yield strategic("empty", x, {})
    yield strategic("bad-directive", x, main(env=[{"name": "Z", "$patch": "foo"}]))
    yield strategic("bad-order", x, main(**{"$setElementOrder/env": "x"}))
    yield strategic("order-lacks-one", x, main(**{"$setElementOrder/env": [], "env": [{"name": "Q", "value": "1"}]}))
    yield strategic("wrong-type", x, {"spec": {"replicas": "two"}})
    yield strategic("list-for-map", x, {"spec": {"template": []}})
    yield strategic("map-for-list", x, spec(containers={"name": "main"}))
    yield strategic("text-for-list", x, spec(containers="x"))
    yield strategic("array", x, [])
    yield strategic("malformed", x, "{")
    yield strategic("unknown", x, {"spec": {"foo": 1}})
    yield strategic("unknown-strict", x + "?fieldValidation=Strict", {"spec": {"foo": 1}})
    yield strategic("invalid", x, {"spec": {"replicas": -5}})
    yield strategic("stale", x, {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 2}})
    yield strategic("not-there", d + "/nope", {})
    s = where("v1", "services", ns)
    yield post(None, s, thing("v1", "Service", "x", spec={"ports": [{"name": "a", "port": 80}], "selector": LABELS}))
    yield strategic("service-ports", s + "/x", {"spec": {"ports": [{"port": 81, "name": "b"}]}})
    yield strategic("service-ports-change", s + "/x", {"spec": {"ports": [{"port": 80, "targetPort": 8080}]}})
    yield strategic("secret", where("v1", "secrets", ns, "nope"), {"stringData": {"a": "b"}})
    a = where("v1", "serviceaccounts", ns)
    yield post(None, a, thing("v1", "ServiceAccount", "x", secrets=[{"name": "a"}]))
    yield strategic("account-secrets", a + "/x", {"secrets": [{"name": "b"}]})
    yield strategic("owner-references", a + "/x", {"metadata": {"ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "00000000-1111-2222-3333-444444444444"}]}})


@scenario
def patch_apply(ns):
    t = where("v1", "configmaps", ns)
    x = t + "/x"

    def config(data=None, **metadata):
        return config_map("x", data, **metadata)
    yield apply("create", x, config({"a": "1", "b": "2"}))
    yield apply("same", x, config({"a": "1", "b": "2"}))
    yield apply("change", x, config({"a": "2", "b": "2"}))
    yield apply("remove-field", x, config({"a": "2"}))
    yield apply("other-field", x, config({"c": "3"}), "two")
    yield apply("conflict", x, config({"a": "9"}), "two")
    yield apply("conflict-many", x, config({"a": "9"}, labels={"l": "1"}), "three")
    yield apply("shared", x, config({"a": "2", "c": "3"}), "two")
    yield apply("shared-release", x, config({}), "one")
    yield apply("force", x, config({"a": "forced"}), "one", "&force=true")
    yield get("after-force", x)
    yield merge("by-update", x + "?fieldManager=updater", {"data": {"u": "1"}})
    yield apply("conflict-with-update", x, config({"a": "forced", "u": "2"}), "one")
    yield apply("take-over", x, config({"a": "forced", "u": "1"}), "one")
    yield apply("labels", x, config({"a": "forced"}, labels={"a": "b"}, annotations={"c": "d"}), "one")
    yield apply("finalizers", x, config({"a": "forced"}, finalizers=["example.com/f"]), "one")
    yield apply("nothing", x, config(), "one")
    yield apply("yaml", x, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  y: aml\n", "yaml")
    yield apply("no-manager", x, config({"a": "1"}), "")
    yield patch("manager-missing", x, config({"a": "1"}), "application/apply-patch+yaml")
    yield apply("dry-run", x, config({"dry": "1"}), "dry", "&dryRun=All")
    yield apply("force-false", x, config({"y": "conflict"}), "four", "&force=false")
    yield apply("force-bad", x, config({"y": "conflict"}), "four", "&force=maybe")
    yield apply("managed-fields", x, config({"a": "1"}, managedFields=[{}]), "four")
    yield apply("version-stale", x, config({"q": "1"}, resourceVersion="1"), "four")
    yield apply("uid-wrong", x, config({"q": "1"}, uid="00000000-1111-2222-3333-444444444444"), "four")
    yield apply("no-name", x, {"apiVersion": "v1", "kind": "ConfigMap", "data": {"n": "1"}}, "four")
    yield apply("no-name-new", t + "/new", {"apiVersion": "v1", "kind": "ConfigMap"}, "four")
    yield apply("other-name", x, config_map("y"), "four")
    yield apply("no-kind", x, {"metadata": {"name": "x"}}, "four")
    yield apply("wrong-kind", x, {**config(), "kind": "Secret"}, "four")
    yield apply("wrong-version", x, {**config(), "apiVersion": "apps/v1"}, "four")
    yield apply("unknown", x, {**config(), "foo": 1}, "four")
    yield apply("unknown-strict", x, {**config(), "foo": 1}, "four", "&fieldValidation=Strict")
    yield apply("wrong-type", x, {**config(), "data": []}, "four")
    yield apply("wrong-type-deep", x, config({"a": 5}), "four")
    yield apply("null", x, {**config(), "data": None}, "four")
    yield apply("null-value", x, config({"a": None}), "four")
    yield apply("array", x, [], "four")
    yield apply("empty", x, b"", "four")
    yield apply("malformed", x, "{", "four")
    yield apply("invalid", x, config({"a b": "c"}), "four")
    yield apply("namespace", x, config({"ns": "1"}, namespace="elsewhere"), "four")
    yield apply("create-dry-run", t + "/dry", config_map("dry"), "four", "&dryRun=All")
    yield apply("create-with-version", t + "/ver", config_map("ver", resourceVersion="5"), "four")
    yield apply("create-with-uid", t + "/uid", config_map("uid", uid="00000000-1111-2222-3333-444444444444"), "four")
    yield apply("create-bad-name", t + "/A_B", config_map("A_B"), "four")
    yield put("update-resets", x, config_map("x", {"a": "put"}))


@scenario
def patch_apply_lists(ns):
    d = where("apps/v1", "deployments", ns)
    x = d + "/x"

    def config(**main):
        return thing("apps/v1", "Deployment", "x", spec={"selector": SELECTOR, "template": {
            "metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": "i", **main}]}}})

    def only(more, **spec):
        return thing("apps/v1", "Deployment", "x", spec={"template": {"spec": {"containers": more}}, **spec})
    yield apply("create", x, config(env=[{"name": "A", "value": "1"}], ports=[{"containerPort": 80}]))
    yield apply("env-of-another", x, only([{"name": "main", "env": [{"name": "B", "value": "2"}]}]), "two")
    yield apply("env-changed", x, config(env=[{"name": "A", "value": "3"}], ports=[{"containerPort": 80}]))
    yield apply("env-removed", x, config(ports=[{"containerPort": 80}]))
    yield apply("port-same", x, only([{"name": "main", "ports": [{"containerPort": 80, "protocol": "TCP"}]}]), "two")
    yield apply("image-conflict", x, only([{"name": "main", "image": "other"}]), "two")
    yield apply("image-forced", x, only([{"name": "main", "image": "other"}]), "two", "&force=true")
    yield apply("side", x, only([{"name": "side", "image": "s"}]), "three")
    yield apply("replicas", x, only([{"name": "side", "image": "s"}], replicas=3), "three")
    yield merge("scaled", x + "/scale", {"spec": {"replicas": 5}})
    yield apply("replicas-conflict", x, only([{"name": "side", "image": "s"}], replicas=3), "three")
    yield apply("side-gone", x, thing("apps/v1", "Deployment", "x"), "three")
    yield apply("twice-in-list", x, only([{"name": "a", "image": "i"}, {"name": "a", "image": "j"}]), "four")
    yield apply("no-key", x, only([{"image": "i"}]), "four")
    yield apply("atomic", x, only([{"name": "main", "args": ["a", "b"]}]), "four")
    yield apply("atomic-conflict", x, only([{"name": "main", "args": ["a"]}]), "five")
    yield apply("status-of-main", x, {**thing("apps/v1", "Deployment", "x"), "status": {"replicas": 5}}, "six")
    s = where("v1", "services", ns)
    service = thing("v1", "Service", "x", spec={"selector": LABELS, "ports": [{"port": 80, "name": "a"}]})
    yield apply("service", s + "/x", service)
    yield apply("service-ports", s + "/x", changed(service, ("spec.ports", [{"port": 80, "name": "a"},
                                                                            {"port": 81, "name": "b"}])))
    yield apply("service-selector", s + "/x", thing("v1", "Service", "x", spec={"selector": {"other": "y"}}), "two")
    yield apply("owner", s + "/x", changed(service, ("metadata.ownerReferences", [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "00000000-1111-2222-3333-444444444444"}])))
    yield apply("secret", where("v1", "secrets", ns, "x"), thing("v1", "Secret", "x", stringData={"a": "b"}))
    yield apply("role", where(RBAC, "roles", ns, "x"), thing(RBAC, "Role", "x", rules=[
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]))


# --- deleting ---

@scenario
def delete_plain(ns):
    t = where("v1", "configmaps", ns)
    zero = "00000000-1111-2222-3333-444444444444"

    def options(**more):
        return {"apiVersion": "v1", "kind": "DeleteOptions", **more}
    for name in "abcdefghijklmnopqr":
        yield post(None, t, config_map(name, {"x": "y"}))
    yield delete("plain", t + "/a")
    yield delete("again", t + "/a")
    yield get("gone", t + "/a")
    yield delete("not-there", t + "/nope")
    yield delete("dry-run", t + "/b?dryRun=All")
    yield get("dry-run-get", t + "/b")
    yield delete("dry-run-in-body", t + "/b", options(dryRun=["All"]))
    yield delete("dry-run-bad", t + "/b", options(dryRun=["Some"]))
    yield delete("options", t + "/b", options())
    yield delete("options-without-kind", t + "/c", {"gracePeriodSeconds": 0})
    yield delete("options-empty-object", t + "/d", {})
    yield delete("options-of-meta", t + "/e", {"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions"})
    yield delete("options-of-wrong-kind", t + "/f", {"apiVersion": "v1", "kind": "Pod"})
    yield delete("options-of-wrong-version", t + "/f", {"apiVersion": "v9", "kind": "DeleteOptions"})
    yield delete("options-malformed", t + "/f", "{")
    yield delete("options-text", t + "/f", "hello")
    yield delete("options-wrong-type", t + "/f", options(gracePeriodSeconds="x"))
    yield delete("options-unknown-field", t + "/f", options(foo=1))
    yield delete("options-yaml", t + "/g", "apiVersion: v1\nkind: DeleteOptions\ngracePeriodSeconds: 0\n", YAML)
    yield delete("options-media", t + "/h", options(), "text/plain")
    wrong = options(preconditions={"uid": zero})
    yield delete("wrong-uid", t + "/i", wrong)
    yield delete("wrong-version", t + "/i", options(preconditions={"resourceVersion": "1"}))
    got = yield get(None, t + "/i")
    yield delete("right-uid-and-version", t + "/i", options(preconditions={"uid": got.uid,
                                                                           "resourceVersion": got.version}))
    yield delete("precondition-not-there", t + "/nope", wrong)
    for name, policy in (("j", "Background"), ("k", "Foreground"), ("l", "Orphan"), ("m", "Foo")):
        yield delete("policy-" + policy.lower(), t + "/" + name, options(propagationPolicy=policy))
    yield delete("policy-query", t + "/n?propagationPolicy=Background")
    yield delete("policy-and-orphan", t + "/o", options(propagationPolicy="Background", orphanDependents=True))
    yield delete("orphan-dependents", t + "/o", options(orphanDependents=False))
    yield delete("grace-of-what-has-none", t + "/p?gracePeriodSeconds=30")
    yield delete("grace-negative", t + "/q?gracePeriodSeconds=-1")
    yield delete("grace-bad", t + "/r?gracePeriodSeconds=x")
    yield delete("query-and-body", t + "/r?dryRun=All", options(gracePeriodSeconds=0))
    yield get("query-and-body-get", t + "/r")
    # Controllers end what was deleted in the foreground, or orphaning.
    yield get("left", t, look=lambda body: [name for name in names_of(body) if name not in "kl"])


@scenario
def delete_finalized(ns):
    t = where("v1", "configmaps", ns)
    x = t + "/x"
    created = yield post("create", t, config_map("x", {"a": "1"}, finalizers=["example.com/a", "example.com/b"]))
    yield delete("delete", x)
    yield get("get", x)
    yield delete("delete-again", x)
    yield delete("delete-at-once", x + "?gracePeriodSeconds=0")
    yield post("create-again", t, config_map("x"))
    yield merge("change", x, {"data": {"a": "2"}})
    yield merge("finalizer-add", x, {"metadata": {"finalizers": ["example.com/a", "example.com/b", "example.com/c"]}})
    yield merge("finalizer-remove", x, {"metadata": {"finalizers": ["example.com/b"]}})
    yield put("update-undelete", x, created.changed(("metadata.resourceVersion", None), ("metadata.finalizers",
                                                                                         ["example.com/b"])))
    yield merge("undelete", x, {"metadata": {"deletionTimestamp": None}})
    yield merge("finalizer-dry-run", x + "?dryRun=All", {"metadata": {"finalizers": None}})
    yield merge("finalizer-last", x, {"metadata": {"finalizers": None}})
    yield get("gone", x)
    yield post("create-anew", t, config_map("x", finalizers=["example.com/a"]))
    yield delete("delete-anew", x)
    yield put("last-by-update", x, config_map("x"))
    yield get("gone-anew", x)
    yield post(None, t, config_map("y", finalizers=["example.com/a"]))
    yield delete(None, t + "/y")
    yield json_patch("last-by-json", t + "/y", op("remove", "/metadata/finalizers"))
    yield get("gone-by-json", t + "/y")
    yield post(None, t, config_map("z", finalizers=["example.com/a"]))
    yield delete("dry-run", t + "/z?dryRun=All")
    yield get("dry-run-get", t + "/z")
    d = where("apps/v1", "deployments", ns)
    yield post(None, d, changed(deployment("f"), ("metadata.finalizers", ["example.com/a"])))
    yield delete("deployment", d + "/f")
    yield get("deployment-get", d + "/f")


@scenario
def delete_policies(ns):
    """What the policies write into the object itself, which another finalizer keeps."""
    for version, resource, body in (("v1", "configmaps", config_map("x")), ("apps/v1", "deployments", deployment()),
                                    ("v1", "replicationcontrollers", thing("v1", "ReplicationController", "x", spec={
                                        "selector": LABELS, "template": TEMPLATE}))):
        t = where(version, resource, ns)
        for policy in ("Background", "Foreground", "Orphan"):
            name = policy.lower()
            yield post(None, t, changed(body, ("metadata.name", name), ("metadata.finalizers", ["example.com/keep"])))
            yield delete(f"{resource}-{name}", f"{t}/{name}", {"propagationPolicy": policy})
        yield post(None, t, changed(body, ("metadata.name", "default"), ("metadata.finalizers", ["example.com/keep"])))
        yield delete(f"{resource}-default", t + "/default")
        yield post(None, t, changed(body, ("metadata.name", "asked"), ("metadata.finalizers", ["example.com/keep",
                                                                                               "orphan"])))
        yield delete(f"{resource}-asked-by-finalizer", t + "/asked")
        yield post(None, t, changed(body, ("metadata.name", "both"), ("metadata.finalizers", ["example.com/keep",
                                                                                              "orphan"])))
        yield delete(f"{resource}-asked-and-told", t + "/both", {"propagationPolicy": "Background"})


@scenario
def delete_pods(ns):
    p = where("v1", "pods", ns)

    def bound(name, **spec):
        return pod(name, nodeName="n", **spec)
    before = yield post(None, p, pod("loose"))
    yield delete("unbound", p + "/loose")
    yield get("unbound-gone", p + "/loose")
    yield post("bound", p, bound("x"))
    deleted = yield delete("graceful", p + "/x")
    yield get("graceful-get", p + "/x")
    yield get("graceful-table", p + "/x", TABLE)
    yield delete("graceful-again", p + "/x")
    yield delete("shorter", p + "/x?gracePeriodSeconds=10")
    yield delete("longer", p + "/x?gracePeriodSeconds=60")
    yield merge("change", p + "/x", {"metadata": {"labels": {"a": "b"}}})
    yield delete("stale", p + "/x", {"preconditions": {"resourceVersion": deleted.version}, "gracePeriodSeconds": 0})
    yield delete("at-once", p + "/x", {"gracePeriodSeconds": 0})
    yield get("at-once-gone", p + "/x")
    yield watch("told", f"{p}?watch=1&resourceVersion={before.version}", 8)
    yield post(None, p, bound("long"))
    yield delete("long", p + "/long?gracePeriodSeconds=600")
    yield delete("long-again", p + "/long")
    yield delete("long-same", p + "/long?gracePeriodSeconds=600")
    yield delete("long-foreground", p + "/long?propagationPolicy=Foreground")
    yield delete("long-dry-run", p + "/long?dryRun=All&gracePeriodSeconds=60")
    yield get("long-get", p + "/long")
    yield delete("long-shorter", p + "/long?gracePeriodSeconds=60")
    yield post(None, p, bound("ends"))
    yield delete(None, p + "/ends")
    yield strategic("ends", p + "/ends/status", {"status": {"phase": "Succeeded"}})
    yield delete("ended-again", p + "/ends")
    yield delete("ended-shorter", p + "/ends?gracePeriodSeconds=10")
    yield delete("ended-at-once", p + "/ends?gracePeriodSeconds=0")
    yield get("ended-gone", p + "/ends")
    yield post(None, p, bound("zero"))
    yield delete("zero", p + "/zero?gracePeriodSeconds=0")
    yield get("zero-gone", p + "/zero")
    yield post(None, p, bound("thirty"))
    yield delete("thirty", p + "/thirty", {"gracePeriodSeconds": 30})
    yield post(None, p, bound("one", terminationGracePeriodSeconds=100))
    yield delete("own-grace", p + "/one")
    yield post(None, p, bound("none", terminationGracePeriodSeconds=0))
    yield delete("no-grace", p + "/none")
    yield post(None, p, bound("held", terminationGracePeriodSeconds=5))
    yield merge(None, p + "/held", {"metadata": {"finalizers": ["example.com/f"]}})
    yield delete("held", p + "/held")
    yield delete("held-foreground", p + "/held?propagationPolicy=Foreground")
    yield delete("held-at-once", p + "/held?gracePeriodSeconds=0")
    yield delete("held-again", p + "/held")
    yield merge("held-released", p + "/held", {"metadata": {"finalizers": None}})
    yield get("held-gone", p + "/held")
    yield post(None, p, bound("done"))
    yield strategic(None, p + "/done/status", {"status": {"phase": "Succeeded"}})
    yield delete("finished", p + "/done")
    yield post(None, p, bound("negative"))
    yield delete("negative", p + "/negative?gracePeriodSeconds=-5")
    yield post(None, p, bound("dry"))
    yield delete("dry-run", p + "/dry?dryRun=All")
    yield get("dry-run-get", p + "/dry")


@scenario
def delete_collection(ns):
    t = where("v1", "configmaps", ns)
    for name in "abcdefgh":
        yield post(None, t, config_map(name, labels={"parity": "even" if name in "bdfh" else "odd", "l": name}))
    yield delete("label", t + "?labelSelector=l%3Da")
    yield delete("field", t + "?fieldSelector=metadata.name%3Dc")
    yield delete("nothing-matches", t + "?labelSelector=nope")
    yield delete("bad-selector", t + "?labelSelector=a+in+(")
    yield delete("bad-field", t + "?fieldSelector=spec.x%3D1")
    yield delete("dry-run", t + "?labelSelector=l%3Db&dryRun=All")
    yield get("left", t, look=names_of)
    yield merge(None, t + "/d", {"metadata": {"finalizers": ["example.com/f"]}})
    yield delete("one-held", t + "?labelSelector=parity%3Deven")
    yield get("one-held-get", t + "/d")
    yield delete("limit", t + "?limit=1")
    yield delete("options", t, {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"})
    yield get("left-at-last", t, look=names_of)
    yield delete("namespaces", "/api/v1/namespaces?labelSelector=nope")
    yield delete("empty", where("v1", "secrets", ns))
    p = where("v1", "pods", ns)
    yield post(None, p, pod("a", nodeName="n"))
    yield delete("pods", p)
    yield get("pods-left", p)


# --- namespaces ---

@scenario
def namespaces(ns):
    t = "/api/v1/namespaces"
    x, y, z = ns + "-x", ns + "-y", ns + "-z"

    def phase(body):
        return body.get("status", {}).get("phase") if isinstance(body.get("status"), dict) else body
    created = yield post("create", t, thing("v1", "Namespace", x))
    yield get("get", t + "/" + x)
    yield post("exists", t, thing("v1", "Namespace", x))
    yield post("bad-name", t, thing("v1", "Namespace", "A_B"))
    yield post("generated", t, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "some-"}},
               generates="some-")
    yield merge("label", t + "/" + x, {"metadata": {"labels": {"a": "b"}}})
    yield merge("unlabel-name", t + "/" + x, {"metadata": {"labels": None}})
    yield put("update", t + "/" + x, created.changed(("metadata.resourceVersion", None), ("metadata.annotations",
                                                                                          {"a": "b"})))
    yield put("finalizers-by-update", t + "/" + x, thing("v1", "Namespace", x, spec={"finalizers": []}))
    yield merge("status", t + "/" + x + "/status", {"status": {"phase": "Terminating"}})
    # Both a finalizer and an object inside hold it, whatever a controller does.
    yield post("create-held", t, thing("v1", "Namespace", y, metadata={"finalizers": ["example.com/hold"]}))
    c = where("v1", "configmaps", y)
    yield post(None, c, config_map("inside", finalizers=["example.com/hold"]))
    yield delete("delete", t + "/" + y)
    yield get("terminating", t + "/" + y, look=phase)
    yield post("create-in-terminating", c, config_map("new"))
    yield post("pod-in-terminating", where("v1", "pods", y), pod())
    yield merge("change-in-terminating", c + "/inside", {"data": {"a": "b"}})
    yield apply("apply-in-terminating", c + "/applied", config_map("applied"))
    yield delete("delete-again", t + "/" + y, look=phase)
    yield post("create-terminating", t, thing("v1", "Namespace", y))
    yield get("deleted-in-list", f"{t}?fieldSelector=status.phase%3DTerminating,metadata.name%3D{y}",
              look=names_of)
    yield delete("delete-default", t + "/default")
    yield delete("delete-kube-system", t + "/kube-system")
    yield delete("delete-not-there", t + "/nope")
    made_z = yield post(None, t, thing("v1", "Namespace", z))
    yield put("finalize", f"{t}/{z}/finalize", made_z.changed(("spec.finalizers", ["kubernetes", "example.com/f"])))
    yield put("finalize-bad", f"{t}/{z}/finalize", made_z.changed(("spec.finalizers", ["a b"]),
                                                                  ("metadata.resourceVersion", None)))
    yield put("finalize-stale", f"{t}/{z}/finalize", made_z.changed())
    yield put("finalize-away", f"{t}/{z}/finalize", made_z.changed(("spec.finalizers", []),
                                                                   ("metadata.resourceVersion", None)))
    yield delete("delete-finalized", t + "/" + z, look=phase)
    yield get("of-cluster", t + "?fieldSelector=metadata.name%3Dkube-system",
              look=names_of)
    yield get("table", f"{t}?fieldSelector=metadata.name%3D{x}", TABLE)


# --- custom resources ---

WIDGET_SPEC = {
    "type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 10},
        "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5, "minLength": 2},
        "replicas": {"type": "integer", "format": "int32", "default": 1},
        "ratio": {"type": "number", "exclusiveMinimum": True, "minimum": 0},
        "on": {"type": "boolean"},
        "port": {"x-kubernetes-int-or-string": True},
        "tags": {"type": "array", "maxItems": 3, "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
            "type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "weight": {"type": "integer", "default": 7}}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "map": {"type": "object", "maxProperties": 2, "additionalProperties": {"type": "integer"}},
        "maybe": {"type": "string", "nullable": True},
        "deep": {"type": "object", "default": {}, "properties": {"a": {"type": "string", "default": "x"}}},
        "when": {"type": "string", "format": "date-time"},
        "host": {"type": "string", "format": "hostname"},
        "multiple": {"type": "integer", "multipleOf": 5},
    }}
WIDGET_SCHEMA = {"openAPIV3Schema": {"type": "object", "properties": {
    "spec": WIDGET_SPEC,
    "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"},
                                                "phase": {"type": "string"}}}}}}


def definition(group, plural="widgets", kind="Widget", scope="Namespaced", **version):
    names = {"plural": plural, "singular": plural[:-1], "kind": kind, "listKind": kind + "List",
             "shortNames": [plural[0] + "x"]}
    return thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.{group}", spec={
        "group": group, "scope": scope, "names": names, "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": WIDGET_SCHEMA, **version}]})


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def is_established(answer):
    conditions = answer.at("status", "conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def define(body, *lists):
    """Creates the definition, and waits until it is served."""
    yield post(None, CRDS, body)
    yield get(None, f"{CRDS}/{body['metadata']['name']}", until=is_established)
    for target in lists:
        yield get(None, target, until=lambda answer: answer.status == 200)


@scenario
def definitions(ns):
    del ns
    group = "defs.example.com"
    good = definition(group)
    yield post("create", CRDS, good)
    yield get("established", CRDS + "/widgets." + group, until=is_established)
    yield get("table", CRDS + "/widgets." + group, TABLE)
    yield post("exists", CRDS, good)
    yield post("wrong-name", CRDS, changed(good, ("metadata.name", "foos." + group)))
    yield post("bad-group", CRDS, changed(good, ("spec.group", "A_B"), ("metadata.name", "widgets.A_B")))
    yield post("no-group", CRDS, changed(good, ("spec.group", "")))
    yield post("no-versions", CRDS, changed(definition("v0.example.com"), ("spec.versions", [])))
    yield post("no-storage", CRDS, changed(definition("v1.example.com"), ("spec.versions.0.storage", False)))
    yield post("no-schema", CRDS, changed(definition("v2.example.com"), ("spec.versions.0.schema", None)))
    yield post("no-type", CRDS, changed(definition("v3.example.com"),
                                        ("spec.versions.0.schema", {"openAPIV3Schema": {"properties": {"spec": {}}}})))
    yield post("bad-scope", CRDS, changed(definition("v4.example.com"), ("spec.scope", "Everywhere")))
    yield post("bad-plural", CRDS, changed(definition("v5.example.com"), ("spec.names.plural", "Widgets"),
                                           ("metadata.name", "Widgets.v5.example.com")))
    yield post("bad-version-name", CRDS, changed(definition("v6.example.com"), ("spec.versions.0.name", "V_1")))
    yield post("two-storage", CRDS, changed(definition("v7.example.com"), ("spec.versions", [
        {**good["spec"]["versions"][0], "name": name} for name in ("v1", "v2")])))
    yield post("same-versions", CRDS, changed(definition("v8.example.com"), ("spec.versions", [
        good["spec"]["versions"][0]] * 2)))
    yield post("protected-group", CRDS, definition("x.k8s.io"))
    yield post("few-names", CRDS, changed(definition("few.example.com"), ("spec.names", {"plural": "widgets",
                                                                                        "kind": "Widget"})))
    yield get("few-names-filled", CRDS + "/widgets.few.example.com", until=is_established)
    yield post("empty", CRDS, thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", "x"))
    yield merge("label", CRDS + "/widgets." + group, {"metadata": {"labels": {"a": "b"}}})
    yield merge("change-scope", CRDS + "/widgets." + group, {"spec": {"scope": "Cluster"}})
    yield merge("change-group", CRDS + "/widgets." + group, {"spec": {"group": "other.example.com"}})
    yield merge("change-short-names", CRDS + "/widgets." + group, {"spec": {"names": {"shortNames": ["wx", "wy"]}}})
    yield get("accepted-short-names", CRDS + "/widgets." + group, until=lambda answer: len(
        answer.at("status", "acceptedNames", "shortNames") or ()) == 2)
    yield delete("delete", CRDS + "/widgets." + group)
    yield get("gone", CRDS + "/widgets." + group, until=lambda answer: answer.status == 404)
    yield get("list-gone", f"/apis/{group}/v1/widgets", until=lambda answer: answer.status == 404)


def widget(name, version="custom.example.com/v1", /, **spec):
    return thing(version, "Widget", name, spec={"size": 5, **spec})


@scenario
def custom(ns):
    group = "custom.example.com"
    v1 = group + "/v1"
    t = where(v1, "widgets", ns)
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
               {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1, "description": "of it"},
               {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
               {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]
    subresources = {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                                            "statusReplicasPath": ".status.replicas",
                                            "labelSelectorPath": ".status.selector"}}
    yield from define(definition(group, subresources=subresources, additionalPrinterColumns=columns), t)
    yield get("discovery", "/apis/" + v1)
    yield get("discovery-group", "/apis/" + group)
    yield get("list-empty", t)
    created = yield post("create", t, widget("x"))
    yield get("get", t + "/x")
    yield get("list", t)
    yield get("table", t, TABLE)
    yield get("partial", t + "/x", PARTIAL)
    yield post("exists", t, widget("x"))
    yield post("generated", t, changed(widget("x"), ("metadata", {"generateName": "wid-"})), generates="wid-")
    yield post("bad-name", t, widget("A_B"))
    yield post("wrong-kind", t, {**widget("w"), "kind": "Gadget"})
    yield post("wrong-version", t, {**widget("w"), "apiVersion": group + "/v2"})
    yield post("no-kind", t, {"metadata": {"name": "w"}, "spec": {"size": 1}})
    yield post("no-spec", t, thing(v1, "Widget", "no-spec"))
    yield post("spec-null", t, {**thing(v1, "Widget", "spec-null"), "spec": None})
    for name, spec in (
            ("minimum", {"size": 0}), ("maximum", {"size": 11}), ("enum", {"color": "blue"}),
            ("pattern", {"name": "A1"}), ("max-length", {"name": "abcdef"}), ("min-length", {"name": "a"}),
            ("integer-is-text", {"size": "5"}), ("integer-is-fraction", {"size": 1.5}), ("text-is-number", {"name": 5}),
            ("truth-is-text", {"on": "yes"}), ("ratio", {"ratio": 0}), ("max-items", {"tags": ["a", "b", "c", "d"]}),
            ("set-twice", {"tags": ["a", "a"]}), ("map-twice", {"parts": [{"name": "a"}, {"name": "a"}]}),
            ("map-no-key", {"parts": [{"weight": 1}]}), ("map-values", {"map": {"a": "b"}}),
            ("max-properties", {"map": {"a": 1, "b": 2, "c": 3}}), ("port-is-truth", {"port": True}),
            ("list-is-object", {"tags": {}}), ("object-is-list", {"free": []}), ("null", {"color": None}),
            ("null-required", {"size": None}), ("format", {"when": "yesterday"}), ("multiple", {"multiple": 7}),
            ("int32", {"replicas": 99999999999})):
        yield post("invalid-" + name, t, widget("invalid-" + name, **spec))
    yield post("format-unchecked", t + "?dryRun=All", widget("format-unchecked", host="a_b"))
    yield post("invalid-several", t, widget("several", size=0, color="blue", name="A"), look=lambda body: sorted(
        cause["message"] for cause in body.get("details", {}).get("causes", ())))
    yield post("no-size", t, thing(v1, "Widget", "no-size", spec={}))
    for name, spec in (("full", {"name": "abc", "ratio": 0.5, "on": True, "port": "http", "tags": ["a", "b"],
                                 "parts": [{"name": "a"}, {"name": "b", "weight": 1}],
                                 "free": {"a": {"b": [1, None, "c"]}}, "map": {"a": 1}, "maybe": None,
                                 "deep": {"a": "y"}, "when": "2020-01-01T00:00:00Z", "multiple": 10}),
                       ("unknown", {"foo": 1, "parts": [{"name": "a", "bar": 2}]}),
                       ("whole-fraction", {"size": 5.0, "ratio": 1.5, "free": {"a": [2.0]}}),
                       ("null-in-map", {"map": {"a": None, "b": 1}})):
        yield post("create-" + name, t, widget(name, **spec))
    yield post("unknown-strict", t + "?fieldValidation=Strict", {**widget("strict", foo=1), "top": 1})
    yield post("unknown-ignore", t + "?fieldValidation=Ignore", widget("ignore", foo=1))
    yield post("unknown-metadata", t, changed(widget("meta"), ("metadata.foo", "bar")))
    yield post("metadata-bad-type", t, changed(widget("meta2"), ("metadata.labels", {"a": 5})))
    yield post("doubled", t, '{"apiVersion":"%s","kind":"Widget","metadata":{"name":"dup"},"spec":{"size":1,"size":2}}'
               % v1)
    yield post("yaml", t, f"apiVersion: {v1}\nkind: Widget\nmetadata: {{name: yaml}}\nspec: {{size: 3}}\n", YAML)
    yield post("dry-run", t + "?dryRun=All", widget("dry"))
    yield post("status-dropped", t, {**widget("status"), "status": {"phase": "Ready"}})
    yield put("same", t + "/x", created.changed())
    changed_x = yield put("update", t + "/x", created.changed(("spec.size", 6)))
    yield put("stale", t + "/x", created.changed(("spec.size", 7)))
    yield put("without-version", t + "/x", widget("x", size=8))
    yield put("invalid", t + "/x", changed_x.changed(("spec.size", 99)))
    yield put("not-there", t + "/nope", widget("nope"))
    yield merge("merge", t + "/x", {"spec": {"name": "ab", "color": None}})
    yield merge("merge-invalid", t + "/x", {"spec": {"size": 0}})
    yield merge("merge-unknown", t + "/x", {"spec": {"foo": 1}})
    yield merge("merge-label", t + "/x", {"metadata": {"labels": {"a": "b"}}})
    yield json_patch("json", t + "/x", op("add", "/spec/tags", ["a"]), op("add", "/spec/tags/-", "b"))
    yield json_patch("json-remove-metadata", t + "/x", op("remove", "/metadata"))
    yield strategic("strategic", t + "/x", {"spec": {"size": 2}})
    yield put("status-without-version", t + "/x/status", {**widget("x"), "status": {"phase": "Ready"}})
    now = yield get(None, t + "/x")
    yield put("status-put", t + "/x/status", now.changed(("spec.size", 1), ("status", {
        "phase": "Ready", "replicas": 2, "selector": "a=b", "foo": 1})))
    yield merge("status-merge", t + "/x/status", {"status": {"phase": "Done"}, "spec": {"size": 1},
                                                  "metadata": {"labels": {"via": "status"}}})
    yield merge("status-wrong-type", t + "/x/status", {"status": {"phase": 5}})
    yield get("status-get", t + "/x/status")
    yield merge("status-through-main", t + "/x", {"status": {"phase": "No"}})
    got = yield get("scale-get", t + "/x/scale")
    yield put("scale-put", t + "/x/scale", got.changed(("spec.replicas", 4)))
    yield merge("scale-merge", t + "/x/scale", {"spec": {"replicas": 5}})
    yield put("scale-negative", t + "/x/scale", got.changed(("spec.replicas", -4), ("metadata.resourceVersion", None)))
    yield put("scale-text", t + "/x/scale", got.changed(("spec.replicas", "4"), ("metadata.resourceVersion", None)))
    yield get("scaled", t + "/x")
    yield apply("apply-create", t + "/a", widget("a", tags=["x"], parts=[{"name": "p", "weight": 1}]))
    yield apply("apply-other", t + "/a",
                thing(v1, "Widget", "a", spec={"tags": ["y"], "parts": [{"name": "q"}]}), "two")
    yield apply("apply-conflict", t + "/a", widget("a", size=9), "two")
    yield apply("apply-force", t + "/a", widget("a", size=9), "two", "&force=true")
    yield apply("apply-remove", t + "/a", widget("a", tags=["x"]), "one", "&force=true")
    yield apply("apply-invalid", t + "/a", widget("a", size=50), "one", "&force=true")
    yield apply("apply-unknown", t + "/a", widget("a", foo=1), "one", "&force=true")
    yield apply("apply-status", t + "/a/status",
                thing(v1, "Widget", "a", status={"phase": "Ready", "replicas": 1}), "one")
    described = changed(thing(v1, "Widget", "a", status={"phase": "Ready", "replicas": 1}), ("metadata.labels", {"a": "b"}),
                        ("metadata.annotations", {"a": "b"}), ("metadata.finalizers", ["example.com/f"]))
    yield apply("apply-status-metadata", t + "/a/status", described, "one")
    yield apply("apply-status-remove", t + "/a/status", thing(v1, "Widget", "a", status={"phase": "Ready"}), "one")
    yield get("by-label", t + "?labelSelector=a%3Db", TABLE)
    yield get("by-field", t + "?fieldSelector=spec.size%3D5")
    yield get("not-there-get", t + "/nope")
    yield get("no-such-subresource", t + "/x/foo")
    yield delete("delete", t + "/x")
    yield delete("delete-again", t + "/x")
    yield delete("delete-collection", t + "?labelSelector=nope")


@scenario
def custom_versions(ns):
    group = "versions.example.com"
    two = changed(definition(group), ("spec.versions", [
        {"name": "v1", "served": True, "storage": True, "schema": WIDGET_SCHEMA,
         "selectableFields": [{"jsonPath": ".spec.color"}]},
        {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": True}},
         "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]},
        {"name": "v1beta1", "served": False, "storage": False, "deprecated": True, "schema": WIDGET_SCHEMA},
        {"name": "v1alpha1", "served": True, "storage": False, "deprecated": True, "schema": WIDGET_SCHEMA}]))
    t1, t2, a1 = (where(f"{group}/{version}", "widgets", ns) for version in ("v1", "v2", "v1alpha1"))
    yield from define(two, t1, t2)
    yield get("discovery", "/apis/" + group)
    yield get("discovery-v2", f"/apis/{group}/v2")
    yield get("not-served", where(group + "/v1beta1", "widgets", ns))
    yield post("create-v1", t1, widget("one", group + "/v1"))
    yield get("get-v2", t2 + "/one")
    yield post("create-v2", t2, widget("two", group + "/v2", foo="bar"))
    yield get("get-v1", t1 + "/two")
    yield merge("patch-v2", t2 + "/one", {"spec": {"color": "green"}})
    yield get("list-v1", t1)
    yield get("table-v1", t1, TABLE)
    yield get("table-v2", t2, TABLE)
    yield get("selected", t1 + "?fieldSelector=spec.color%3Dgreen", look=names_of)
    yield get("deprecated", a1 + "/one")
    yield post("deprecated-create", a1, widget("three", group + "/v1alpha1"))
    yield apply("apply-v1", t1 + "/four", widget("four", group + "/v1"))
    yield apply("apply-v2", t2 + "/four", widget("four", group + "/v2", size=6))
    yield merge("stop-serving", f"{CRDS}/widgets.{group}", {"spec": {"versions": [
        {**version, "served": version["name"] == "v1"} for version in two["spec"]["versions"]]}})
    yield get("stopped", t2 + "/one", until=lambda answer: answer.status == 404)
    yield get("still-v1", t1 + "/one")


def is_on_discovery(name, value):
    """Whether the first resource that a version lists says so."""
    return lambda answer: answer.at("resources", 0, name) == value


def is_serving(*versions):
    """Whether these are what a group has."""
    return lambda answer: {version["version"] for version in answer.at("versions") or ()} == set(versions)


def is_judged(status, reason):
    def judged(answer):
        conditions = {one["type"]: one for one in answer.at("status", "conditions") or ()}
        accepted = conditions.get("NamesAccepted", {})
        return (accepted.get("status"), accepted.get("reason")) == (status, reason)
    return judged


def names_and_conditions(body):
    status = body.get("status", {})
    return {"names": status.get("acceptedNames"), "versions": status.get("storedVersions"), "conditions": sorted(
        [one["type"], one["status"], one.get("reason")] for one in status.get("conditions") or ())}


def served_of(group):
    """Of aggregated discovery: what the versions of a group have, in short."""
    def served(body):
        return [{version["version"]: [[one["resource"], one.get("shortNames"), one.get("categories"), sorted(
            sub["subresource"] for sub in one.get("subresources", ()))] for one in version["resources"]]
            for version in item["versions"]} for item in body.get("items", ()) if item["metadata"].get("name") == group]
    return served


@scenario
def custom_changes(ns):
    """A definition that is served changes: so does what is served."""
    group = "changes.example.com"
    v1 = {"name": "v1", "served": True, "storage": True, "schema": WIDGET_SCHEMA}
    v2 = {**v1, "name": "v2", "storage": False, "subresources": {"status": {}}}
    scaled = {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}}
    crd, t1, t2 = f"{CRDS}/widgets.{group}", where(group + "/v1", "widgets", ns), where(group + "/v2", "widgets", ns)
    yield from define(definition(group), t1)
    yield post(None, t1, widget("x", group + "/v1"))
    yield merge(None, crd, {"spec": {"versions": [v1, v2]}})
    yield get("discovery-new-version", "/apis/" + group, until=is_serving("v1", "v2"))
    yield get("discovery-v2", f"/apis/{group}/v2", until=lambda answer: answer.status == 200)
    yield get("get-v2", t2 + "/x", until=lambda answer: answer.status == 200)
    yield merge("status-v2", t2 + "/x/status", {"status": {"phase": "there"}})
    yield get("no-status-v1", t1 + "/x/status")
    yield merge(None, crd, {"spec": {"versions": [{**v1, "subresources": scaled}, v2]}})
    yield get("discovery-subresources", f"/apis/{group}/v1",
              until=lambda answer: len(answer.at("resources") or ()) == 3)
    yield get("status-v1", t1 + "/x/status", until=lambda answer: answer.status == 200)
    yield merge("scale-v1", t1 + "/x/scale", {"spec": {"replicas": 7}})
    yield merge(None, crd, {"spec": {"names": {"shortNames": ["wy", "wz"], "categories": ["all", "shop"],
                                               "singular": "awidget"}}})
    yield get("discovery-names", f"/apis/{group}/v1", until=is_on_discovery("shortNames", ["wy", "wz"]))
    yield get("accepted-names", crd, look=names_and_conditions, until=lambda answer: answer.at(
        "status", "acceptedNames", "singular") == "awidget")
    yield get("discovery-aggregated", "/apis", AGGREGATED, look=served_of(group), until=lambda answer: "wz" in str(
        served_of(group)(answer.body)))
    yield from define(definition(group, "gadgets", "Gadget"), where(group + "/v1", "gadgets", ns))
    yield merge(None, crd, {"spec": {"names": {"shortNames": ["gx"], "categories": ["all"]}}})
    yield get("names-of-others", crd, look=names_and_conditions, until=is_judged("False", "ShortNamesConflict"))
    yield get("discovery-names-of-others", f"/apis/{group}/v1", look=lambda body: sorted(
        [one["name"], one.get("shortNames"), one.get("categories")] for one in body["resources"]),
        until=lambda answer: "shop" not in str(answer.body))
    yield merge(None, crd, {"spec": {"names": {"shortNames": ["wx"]}}})
    yield get("own-names-again", crd, look=names_and_conditions, until=is_judged("True", "NoConflicts"))
    yield merge(None, crd, {"spec": {"versions": [{**v1, "subresources": scaled}, {**v2, "served": False}]}})
    yield get("discovery-without-v2", "/apis/" + group, until=is_serving("v1"))
    yield get("discovery-no-v2", f"/apis/{group}/v2", until=lambda answer: answer.status == 404)
    yield get("no-v2", t2 + "/x", until=lambda answer: answer.status == 404)
    yield merge(None, crd, {"spec": {"versions": [{**v1, "subresources": scaled}, v2]}})
    yield get("discovery-v2-again", "/apis/" + group, until=is_serving("v1", "v2"))
    yield get("get-v2-again", t2 + "/x", until=lambda answer: answer.status == 200)


@scenario
def custom_cluster(ns):
    """Objects of the cluster, without subresources, and rules in the expression language."""
    del ns
    group = "cluster.example.com"
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
        "type": "object", "properties": {"low": {"type": "integer"}, "high": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.low <= self.high", "message": "low is above high"}]},
        "status": {"type": "object", "properties": {"a": {"type": "string"}}}}}}
    t = where(group + "/v1", "widgets")
    yield from define(definition(group, scope="Cluster", schema=schema), t)
    made_one = thing(group + "/v1", "Widget", "x", spec={"low": 1, "high": 2}, status={"a": "b"})
    yield post("create", t, made_one)
    yield post("rule", t, changed(made_one, ("metadata.name", "y"), ("spec.low", 3)))
    yield get("table", t, TABLE)
    yield merge("status-in-main", t + "/x", {"status": {"a": "c"}})
    yield get("status", t + "/x/status")
    yield get("scale", t + "/x/scale")
    yield post("with-namespace", t, changed(made_one, ("metadata.name", "n"), ("metadata.namespace", "default")))
    yield post("in-namespace", where(group + "/v1", "widgets", "default"), made_one)
    yield merge("generation", t + "/x", {"spec": {"high": 9}})
    yield merge("no-generation", t + "/x", {"metadata": {"annotations": {"a": "b"}}})
    yield merge("finalizer", t + "/x", {"metadata": {"finalizers": ["example.com/f"]}})
    yield delete("delete", t + "/x")
    yield merge("release", t + "/x", {"metadata": {"finalizers": []}})
    yield get("gone", t + "/x")


# --- kinds with ways of their own ---

@scenario
def lease_fields(ns):
    version = "coordination.k8s.io/v1"
    t = where(version, "leases", ns)
    lease = thing(version, "Lease", "x", spec={
        "holderIdentity": "me", "leaseDurationSeconds": 15, "acquireTime": "2020-01-01T00:00:00.000001Z",
        "renewTime": "2020-01-01T00:00:00.123456Z", "leaseTransitions": 0})
    created = yield post("create", t, lease)
    renewed = yield put("renew", t + "/x", created.changed(("spec.renewTime", "2020-01-01T00:00:10.000000Z")))
    yield put("renew-stale", t + "/x", created.changed(("spec.holderIdentity", "you")))
    yield put("renew-nothing", t + "/x", renewed.changed())
    yield put("take-over", t + "/x", renewed.changed(("spec.holderIdentity", "you"), ("spec.leaseTransitions", 1)))
    yield put("without-version", t + "/x", lease)
    yield put("version-zero", t + "/x", changed(lease, ("metadata.resourceVersion", "0")))
    yield merge("version-away", t + "/x", {"metadata": {"resourceVersion": None}, "spec": {"leaseTransitions": 5}})
    yield apply("apply", t + "/x", thing(version, "Lease", "x", spec={"leaseDurationSeconds": 30}), more="&force=true")
    yield put("nanoseconds", t + "/x", changed(lease, ("spec.renewTime", "2020-01-01T00:00:00.123456789Z")))
    yield put("zone", t + "/x", changed(lease, ("spec.renewTime", "2020-01-01T02:00:00.5+02:00")))
    now = yield get(None, t + "/x")
    yield put("negative", t + "/x", now.changed(("spec.leaseTransitions", -1)))
    yield strategic("strategic", t + "/x", {"spec": {"holderIdentity": "she"}})
    yield get("table", t, TABLE)
    yield delete("delete", t + "/x")


@scenario
def event_kinds(ns):
    old, new = where("v1", "events", ns), where("events.k8s.io/v1", "events", ns)
    involved = {**INVOLVED, "namespace": ns}
    created = yield post("core", old, thing(
        "v1", "Event", "a", involvedObject=involved, reason="Why", message="what", type="Normal", count=1,
        source={"component": "c"}, firstTimestamp="2020-01-01T00:00:00Z", lastTimestamp="2020-01-01T00:00:00Z"))
    yield get("core-as-new", new + "/a")
    yield put("core-update", old + "/a", created.changed(("count", 2)))
    yield merge("core-patch", old + "/a", {"count": 3, "lastTimestamp": "2020-01-01T00:00:01Z"})
    yield post("core-other-namespace", old, thing("v1", "Event", "b", involvedObject={
        **INVOLVED, "namespace": "elsewhere"}))
    yield post("core-empty", old, thing("v1", "Event", "c"))
    event = thing("events.k8s.io/v1", "Event", "n", eventTime="2020-01-01T00:00:00.000001Z", reason="Why",
                  type="Normal", reportingController="example.com/c", reportingInstance="i", action="Act",
                  regarding=involved, note="what")
    yield post("new", new, event)
    yield get("new-as-core", old + "/n")
    yield merge("new-series", new + "/n", {"series": {"count": 2, "lastObservedTime": "2020-01-01T00:00:05.000000Z"}})
    yield merge("new-note", new + "/n", {"note": "another"})
    yield merge("new-immutable", new + "/n", {
        "reason": "Other", "type": "Warning", "action": "Other", "eventTime": "2020-01-01T00:00:00.000002Z",
        "deprecatedCount": 3, "note": "another"})
    yield merge("new-immutable-reporter", new + "/n", {
        "reportingController": "example.com/d", "reportingInstance": "j",
        "deprecatedLastTimestamp": "2020-01-01T00:00:00Z"})
    yield post("new-no-time", new, changed(event, ("metadata.name", "t"), ("eventTime", None)))
    yield post("new-type", new, changed(event, ("metadata.name", "t"), ("type", "Odd")))
    yield get("table", old, TABLE)
    yield get("by-object", old + "?fieldSelector=involvedObject.name%3Dx,type%3DNormal", look=names_of)
    yield delete("delete", new + "/n")


@scenario
def event_groups(ns):
    """One object, written by way of either group and read by way of the other one."""
    old, new = where("v1", "events", ns), where("events.k8s.io/v1", "events", ns)
    involved = {**INVOLVED, "namespace": ns}
    source = {"component": "c", "host": "h"}
    created = yield post("core", old, thing(
        "v1", "Event", "a", involvedObject=involved, reason="Why", message="what", type="Normal", count=1,
        source=source, firstTimestamp="2020-01-01T00:00:00Z", lastTimestamp="2020-01-01T00:00:01Z",
        reportingComponent="r", reportingInstance="i", related=involved, action="Act",
        series={"count": 2, "lastObservedTime": "2020-01-01T00:00:05.000000Z"}))
    since = "?watch=1&resourceVersion=" + str(created.version)
    yield get("core-as-new", new + "/a")
    event = thing("events.k8s.io/v1", "Event", "n", eventTime="2020-01-01T00:00:00.000001Z", reason="Why",
                  type="Normal", reportingController="example.com/c", reportingInstance="i", action="Act",
                  regarding=involved, note="what")
    yield post("core-exists", new, changed(event, ("metadata.name", "a")))
    yield merge("core-by-new", new + "/a", {"metadata": {"labels": {"l": "1"}}})
    created = yield post("new", new, event)
    yield get("new-as-core", old + "/n")
    yield put("same", new + "/n", created.changed())
    read = yield get("same-as-core", old + "/n")
    yield put("same-by-core", old + "/n", read.changed())
    read = yield merge("new-by-core", old + "/n", {"count": 5, "source": source, "message": "other"})
    yield get("new-by-core-as-new", new + "/n")
    yield put("new-by-core-again", old + "/n", read.changed(("count", 6), ("lastTimestamp", "2020-01-01T00:00:00Z")))
    yield json_patch("json", old + "/n", op("replace", "/count", 7), op("test", "/involvedObject/name", "x"))
    yield strategic("strategic", old + "/n", {"involvedObject": {"uid": "u"}})
    yield merge("labels", new + "/n", {"metadata": {"labels": {"l": "1"}}})
    yield get("labels-as-core", old + "/n")
    yield put("put-creates", new + "/p", changed(event, ("metadata.name", "p")))
    yield put("put-old-version", new + "/n", created.changed(("action", "Else")))
    yield get("list", old)
    yield get("list-new", new)
    yield get("table", old, TABLE)
    yield get("table-new", new, TABLE)
    yield get("by-source", old + "?fieldSelector=source%3Dexample.com/c", look=names_of)
    yield get("by-component", old + "?fieldSelector=reportingComponent%3Dexample.com/c", look=names_of)
    yield get("by-controller", new + "?fieldSelector=reportingController%3Dr", look=names_of)
    yield get("by-regarding", new + "?fieldSelector=regarding.name%3Dx,regarding.uid!%3Du", look=names_of)
    yield get("by-involved", old + "?fieldSelector=involvedObject.name%3Dx,involvedObject.uid%3Du", look=names_of)
    yield delete("delete-new", old + "/n")
    yield get("deleted", new + "/n")
    yield delete("delete-orphan", new + "/p?propagationPolicy=Orphan")
    yield get("deleted-orphan", old + "/p")
    yield watch("watch", old + since, 10)
    yield watch("watch-new", new + since, 10)
    yield delete("delete-collection", new + "?fieldSelector=regarding.name%3Dx")
    yield get("none", old)


@scenario
def event_apply(ns):
    old, new = where("v1", "events", ns), where("events.k8s.io/v1", "events", ns)
    involved = {**INVOLVED, "namespace": ns}
    about = thing("events.k8s.io/v1", "Event", "a", regarding=involved)
    event = {**about, "eventTime": "2020-01-01T00:00:00.000001Z", "reason": "Why", "type": "Normal", "note": "what",
             "reportingController": "example.com/c", "reportingInstance": "i", "action": "Act"}
    core = thing("v1", "Event", "a", involvedObject=involved)
    yield apply("new", new + "/a", event)
    yield apply("core-other-field", old + "/a", {**core, "count": 1}, "two")
    yield apply("core-conflict", old + "/a", {**core, "message": "else"}, "two")
    yield apply("core-shared", old + "/a", {**core, "message": "what", "count": 2}, "two")
    yield apply("core-forced", old + "/a", {**core, "message": "else"}, "two", "&force=true")
    yield get("core-forced-as-new", new + "/a")
    yield apply("same-manager", old + "/a", {**core, "reason": "Why"})
    yield merge("update", old + "/a", {"metadata": {"labels": {"l": "1"}}})
    yield apply("new-against-update", new + "/a", changed(about, ("metadata.labels", {"l": "2"})), "three")
    yield apply("core-against-new", old + "/a", changed(core, ("metadata.labels", {"l": "3"})), "three")
    yield apply("core-creates", old + "/b", changed({**core, "message": "m", "type": "Normal"}, ("metadata.name", "b")))
    yield get("core-creates-as-new", new + "/b")


@scenario
def secret_data(ns):
    t = where("v1", "secrets", ns)
    yield post("string-data", t, thing("v1", "Secret", "a", data={"x": "eQ=="}, stringData={"x": "z", "y": "w"}))
    yield merge("string-data-patch", t + "/a", {"stringData": {"n": "1"}})
    yield merge("data-patch", t + "/a", {"data": {"x": base64.b64encode(b"new").decode()}})
    yield post("bad-base64", t, thing("v1", "Secret", "b", data={"x": "not base64!"}))
    yield post("typed", t, thing("v1", "Secret", "tls", type="kubernetes.io/tls"))
    yield post("account-token", t, thing("v1", "Secret", "token", type="kubernetes.io/service-account-token"))
    yield get("by-type", t + "?fieldSelector=type%3DOpaque", look=names_of)
    yield get("table", t, TABLE)


@scenario
def other_kinds(ns):
    yield post("api-service", "/apis/apiregistration.k8s.io/v1/apiservices",
               thing("apiregistration.k8s.io/v1", "APIService", "v1.remote.example.com", spec={
                   "group": "remote.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
                   "service": {"name": "s", "namespace": ns}}))
    yield post("api-service-bad-name", "/apis/apiregistration.k8s.io/v1/apiservices",
               thing("apiregistration.k8s.io/v1", "APIService", "x", spec={
                   "group": "remote.example.com", "version": "v1", "groupPriorityMinimum": 100,
                   "versionPriority": 10}))
    yield delete("api-service-delete", "/apis/apiregistration.k8s.io/v1/apiservices/v1.remote.example.com")
    yield post("cron-job-zone", where("batch/v1", "cronjobs", ns), thing("batch/v1", "CronJob", "z", spec={
        "schedule": "0 0 * * *", "timeZone": "Etc/UTC", "jobTemplate": {"spec": {"template": {"spec": {
            "containers": containers(), "restartPolicy": "Never"}}}}}))
    yield post("ingress-rules", where("networking.k8s.io/v1", "ingresses", ns),
               thing("networking.k8s.io/v1", "Ingress", "r", spec={"rules": [{"host": "a.example.com", "http": {
                   "paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {
                       "name": "s", "port": {"name": "web"}}}}]}}], "tls": [{"hosts": ["a.example.com"]}]}))
    yield get("ingress-table", where("networking.k8s.io/v1", "ingresses", ns), TABLE)
    yield post("stateful-set-claims", where("apps/v1", "statefulsets", ns),
               thing("apps/v1", "StatefulSet", "c", spec={
                   "selector": SELECTOR, "template": TEMPLATE, "serviceName": "s", "volumeClaimTemplates": [
                       {"metadata": {"name": "d"}, "spec": CLAIM}]}))
    yield post("daemon-set-strategy", where("apps/v1", "daemonsets", ns),
               thing("apps/v1", "DaemonSet", "s", spec={"selector": SELECTOR, "template": TEMPLATE,
                                                        "updateStrategy": {"type": "OnDelete"}}))
    yield post("cluster-role-aggregated", where(RBAC, "clusterroles"), thing(
        RBAC, "ClusterRole", "aggregated", aggregationRule={"clusterRoleSelectors": [SELECTOR]}, rules=None))
    yield post("priority-class-default", where("scheduling.k8s.io/v1", "priorityclasses"),
               thing("scheduling.k8s.io/v1", "PriorityClass", "high", value=1000, preemptionPolicy="Never",
                     description="d"))
    yield post("pod-of-class", where("v1", "pods", ns), pod("high", priorityClassName="high"))
    yield get("hpa-v1", where("autoscaling/v1", "horizontalpodautoscalers", ns))
    hpa = {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50,
           "scaleTargetRef": {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"}}
    yield post("hpa-v1-create", where("autoscaling/v1", "horizontalpodautoscalers", ns),
               thing("autoscaling/v1", "HorizontalPodAutoscaler", "h", spec=hpa))
    yield get("hpa-as-v2", where("autoscaling/v2", "horizontalpodautoscalers", ns, "h"))
    yield post("node-full", "/api/v1/nodes", thing("v1", "Node", "full", spec={"podCIDR": "10.2.0.0/24", "taints": [
        {"key": "a", "effect": "NoSchedule"}]}, status={"capacity": {"cpu": "4", "memory": "8Gi"}}))
    yield strategic("node-cordon", "/api/v1/nodes/full", {"spec": {"unschedulable": True}})
    yield strategic("node-taint", "/api/v1/nodes/full", {"spec": {"taints": [{"key": "b", "effect": "NoExecute"}]}})
    yield strategic("node-condition", "/api/v1/nodes/full/status", {"status": {"conditions": [
        {"type": "Ready", "status": "True", "reason": "R", "message": "m", "lastHeartbeatTime": "2020-01-01T00:00:00Z",
         "lastTransitionTime": "2020-01-01T00:00:00Z"}]}})
    yield get("node-table", "/api/v1/nodes/full", TABLE)
    yield post("quota", where("v1", "resourcequotas", ns), thing("v1", "ResourceQuota", "q", spec={
        "hard": {"requests.cpu": "1000m", "pods": "10"}}))


# --- reviews ---

@scenario
def reviews(ns):
    authn, authz = "authentication.k8s.io/v1", "authorization.k8s.io/v1"

    def review(version, kind, **spec):
        return {"apiVersion": version, "kind": kind, "spec": spec}
    tokens = where(authn, "tokenreviews")
    yield post("token-empty", tokens, review(authn, "TokenReview"))
    yield post("token-unknown", tokens, review(authn, "TokenReview", token="nope"))
    yield post("self", where(authn, "selfsubjectreviews"), review(authn, "SelfSubjectReview"))
    masters = {"user": "someone", "groups": ["system:masters"]}
    access = where(authz, "subjectaccessreviews")
    attributes = {"namespace": ns, "verb": "get", "resource": "pods"}
    yield post("access", access, review(authz, "SubjectAccessReview", resourceAttributes=attributes, **masters))
    yield post("access-path", access, review(authz, "SubjectAccessReview", nonResourceAttributes={
        "path": "/x", "verb": "get"}, **masters))
    yield post("access-both", access, review(authz, "SubjectAccessReview", resourceAttributes=attributes,
                                             nonResourceAttributes={"path": "/x", "verb": "get"}, **masters))
    yield post("access-neither", access, review(authz, "SubjectAccessReview", **masters))
    yield post("access-nobody", access, review(authz, "SubjectAccessReview", resourceAttributes=attributes))
    yield post("access-denied", access, review(authz, "SubjectAccessReview", resourceAttributes=attributes, user="u"))
    yield post("access-named", access, changed(review(authz, "SubjectAccessReview", resourceAttributes=attributes,
                                                      **masters), ("metadata.name", "x")))
    yield post("self-access", where(authz, "selfsubjectaccessreviews"),
               review(authz, "SelfSubjectAccessReview", resourceAttributes=attributes))
    yield post("self-access-neither", where(authz, "selfsubjectaccessreviews"),
               review(authz, "SelfSubjectAccessReview"))
    yield post("local-access", where(authz, "localsubjectaccessreviews", ns),
               review(authz, "LocalSubjectAccessReview", resourceAttributes=attributes, **masters))
    yield post("local-access-elsewhere", where(authz, "localsubjectaccessreviews", ns), review(
        authz, "LocalSubjectAccessReview", resourceAttributes={**attributes, "namespace": "elsewhere"}, **masters))
    yield post("rules", where(authz, "selfsubjectrulesreviews"),
               review(authz, "SelfSubjectRulesReview", namespace=ns), look=lambda body: body.get("kind"))
    yield get("get", access)
    yield get("get-one", access + "/x")
    yield delete("delete", access)


# --- discovery ---

# Of what the API server has, that which kinformer-sim has, too.
GROUPS = {"apps", "batch", "autoscaling", "policy", "networking.k8s.io", "discovery.k8s.io", "coordination.k8s.io",
          "events.k8s.io", "rbac.authorization.k8s.io", "storage.k8s.io", "apiextensions.k8s.io",
          "apiregistration.k8s.io", "scheduling.k8s.io", "authentication.k8s.io", "authorization.k8s.io"}


def only_groups(body):
    """Other scenarios define types; their groups are not compared here."""
    groups = [group for group in body.get("groups", ()) if group.get("name") in GROUPS]
    return {**body, "groups": sorted(groups, key=lambda group: group["name"])}


def only_items(body):
    """Of aggregated discovery; what belongs to a group in the order of names."""
    items = [item for item in body.get("items", ()) if item["metadata"].get("name", "") in {"", *GROUPS}]
    return {**body, "items": sorted(items, key=lambda item: item["metadata"].get("name", ""))}


def only_names(body):
    return sorted(group["name"] for group in body.get("groups", ()) if group["name"] in GROUPS)


def only_paths(body):
    """Of the root of OpenAPI: paths of groups that both have."""
    return {"paths": {path: value for path, value in body.get("paths", {}).items()
                      if path in ("api", "api/v1", "apis", "version") or path.split("/")[1:2] and
                      path.split("/")[1] in GROUPS}}


def kinds_of(value):
    """What a document consists of, without what it says."""
    return {name: type(member).__name__ for name, member in value.items()}


@scenario
def discovery(ns):
    del ns
    yield get("api", "/api", look=lambda body: {**body, "serverAddressByClientCIDRs": None})
    yield get("apis", "/apis", look=only_groups)
    yield get("apis-names", "/apis", look=only_names)
    yield get("core", "/api/v1")
    for group in sorted(GROUPS):
        yield get("group-" + group, "/apis/" + group)
        yield get("resources-" + group, f"/apis/{group}/v1")
    yield get("resources-autoscaling-v2", "/apis/autoscaling/v2")
    yield get("aggregated-api", "/api", AGGREGATED, look=only_items)
    yield get("aggregated-apis", "/apis", AGGREGATED, look=only_items)
    yield get("version", "/version", look=kinds_of)
    yield get("openapi", "/openapi/v3", look=only_paths)
    yield get("no-group", "/apis/nope.example.com")
    yield get("no-version", "/apis/apps/v9")
    yield get("no-path", "/nope")
    yield get("root", "/", look=lambda body: type(body).__name__)
    for path in ("healthz", "livez", "readyz"):
        yield get(path, "/" + path)
    yield post("post-version", "/version", {})
    yield post("post-apis", "/apis", {})
    yield delete("delete-api", "/api/v1")
