#!/usr/bin/env python3
"""Records src/document/schema.txt and the table of src/apiserver/types.c from a kube-apiserver.

    tests/cluster/cluster.sh start DIR
    scripts/record-schema.py DIR/admin.kubeconfig
    tests/cluster/cluster.sh stop DIR

Types and their fields come from /openapi/v3, resources from discovery. What neither says is asked of
the server: Go's names of types, which are part of its messages, by sending each field a value of a
wrong type (dry runs, all refused). What numbers fields have in protobuf is asked of Go's types, by
tests/cluster/cmd/protofields. What the server fills in by itself stands in DEFAULTS below;
tests/unit/test_defaults.c has what came of some objects.
"""

import base64
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import yaml

GROUPS = [
    "", "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io",
    "authorization.k8s.io", "autoscaling", "batch", "networking.k8s.io", "policy",
    "rbac.authorization.k8s.io", "storage.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io",
    "coordination.k8s.io", "discovery.k8s.io",
]
# Of another shape than the version that is preferred, and the simulated server converts nothing.
SKIPPED = [("autoscaling", "v1")]
ALL_VERBS = "create,delete,deletecollection,get,list,patch,update,watch"
# Bodies of requests that are no kinds of resources.
OTHER_ROOTS = [("", "v1", "DeleteOptions"), ("", "v1", "Status")]
PREFIX = "io.k8s."
META = "io.k8s.apimachinery.pkg.apis.meta.v1."

SCALARS = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    META + "Time": "time",
    META + "MicroTime": "microtime",
    META + "FieldsV1": "any",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "any",
}

# OpenAPI says 0, the server leaves them out.
NO_DEFAULTS = {"autoscaling.v1.ScaleSpec.replicas", "core.v1.ReplicationControllerSpec.minReadySeconds"}

# What the server fills in without looking at other fields; src/document/defaults.c has the rest.
DEFAULTS = {
    "core.v1.PodSpec": {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
                        "terminationGracePeriodSeconds": 30},
    "core.v1.Container": {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"},
    "core.v1.EphemeralContainer": {"terminationMessagePath": "/dev/termination-log",
                                   "terminationMessagePolicy": "File"},
    "core.v1.Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    "core.v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "core.v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "core.v1.SecretVolumeSource": {"defaultMode": 420},
    "core.v1.ConfigMapVolumeSource": {"defaultMode": 420},
    "core.v1.DownwardAPIVolumeSource": {"defaultMode": 420},
    "core.v1.ProjectedVolumeSource": {"defaultMode": 420},
    "core.v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "core.v1.HostPathVolumeSource": {"type": ""},
    "core.v1.Secret": {"type": "Opaque"},
    "core.v1.PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    "core.v1.PersistentVolumeStatus": {"phase": "Pending"},
    "core.v1.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "core.v1.PersistentVolumeClaimStatus": {"phase": "Pending"},
    "core.v1.EndpointPort": {"protocol": "TCP"},
    "core.v1.NamespaceStatus": {"phase": "Active"},
    "core.v1.ServiceSpec": {"type": "ClusterIP", "sessionAffinity": "None"},
    "apps.v1.DeploymentSpec": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
    "apps.v1.DeploymentStrategy": {"type": "RollingUpdate"},
    "apps.v1.RollingUpdateDeployment": {"maxUnavailable": "25%", "maxSurge": "25%"},
    "apps.v1.DaemonSetSpec": {"revisionHistoryLimit": 10},
    "apps.v1.DaemonSetUpdateStrategy": {"type": "RollingUpdate"},
    "apps.v1.RollingUpdateDaemonSet": {"maxUnavailable": 1, "maxSurge": 0},
    "apps.v1.StatefulSetSpec": {"replicas": 1, "revisionHistoryLimit": 10, "podManagementPolicy": "OrderedReady"},
    "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    "apps.v1.StatefulSetUpdateStrategy": {"type": "RollingUpdate"},
    "apps.v1.RollingUpdateStatefulSetStrategy": {"partition": 0, "maxUnavailable": 1},
    "apps.v1.ReplicaSetSpec": {"replicas": 1},
    "batch.v1.CronJobSpec": {"concurrencyPolicy": "Allow", "suspend": False, "successfulJobsHistoryLimit": 3,
                             "failedJobsHistoryLimit": 1},
    "batch.v1.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "autoscaling.v1.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "autoscaling.v2.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "networking.v1.NetworkPolicyPort": {"protocol": "TCP"},
    "networking.v1.IngressClassParametersReference": {"scope": "Cluster"},
    "rbac.v1.RoleRef": {"apiGroup": "rbac.authorization.k8s.io"},
    "discovery.v1.EndpointPort": {"name": "", "protocol": "TCP"},
    "storage.v1.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "storage.v1.CSIDriverSpec": {"attachRequired": True, "podInfoOnMount": False, "storageCapacity": False,
                                 "fsGroupPolicy": "ReadWriteOnceWithFSType", "requiresRepublish": False,
                                 "seLinuxMount": False, "preventPodSchedulingIfMissing": False,
                                 "volumeLifecycleModes": ["Persistent"]},
    "scheduling.v1.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "apiextensions.v1.CustomResourceDefinitionSpec": {"conversion": {"strategy": "None"}},
    "apiextensions.v1.CustomResourceDefinitionNames": {"plural": "", "kind": ""},
    "apiextensions.v1.ServiceReference": {"port": 443},
    "apiregistration.v1.ServiceReference": {"port": 443},
}


class Server:
    def __init__(self, kubeconfig):
        with open(kubeconfig) as file:
            config = yaml.safe_load(file)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url = cluster["server"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.tls = ssl.create_default_context(cadata=authority)
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name in ("client-certificate-data", "client-key-data"):
                paths.append(os.path.join(folder, name))
                with open(paths[-1], "wb") as file:
                    file.write(base64.b64decode(user[name]))
            self.tls.load_cert_chain(*paths)

    def ask(self, path, body=None, accept="application/json"):
        request = urllib.request.Request(self.url + path, method="POST" if body else "GET",
                                         data=json.dumps(body).encode() if body else None,
                                         headers={"Content-Type": "application/json", "Accept": accept})
        try:
            with urllib.request.urlopen(request, context=self.tls) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)


# --- resources ---


class Resource:
    def __init__(self, group, version, entry):
        self.group, self.version, self.entry = group, version, entry
        self.subresources = []

    def path(self):
        base = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        return base + ("/namespaces/default" if self.entry["namespaced"] else "") + "/" + self.entry["name"]

    def row(self):
        entry = self.entry
        verbs = ",".join(entry["verbs"])
        texts = [self.group, self.version, entry["name"], entry["singularName"], entry["kind"],
                 ",".join(entry.get("shortNames", [])), ",".join(entry.get("categories", [])),
                 "" if verbs == ALL_VERBS else verbs, ",".join(self.subresources)]
        return "    { " + ", ".join(json.dumps(text) for text in texts) + \
            f", {'true' if entry['namespaced'] else 'false'} }},\n"


def read_resources(server):
    """The resources in the server's order, and the kinds that subresources take."""
    resources, kinds = [], []
    versions = {"": ["v1"]}
    for group in server.ask("/apis")["groups"]:
        versions[group["name"]] = [v["version"] for v in group["versions"] if re.fullmatch(r"v\d+", v["version"])]
    for group in [""] + [g for g in versions if g in GROUPS and g]:
        for version in versions[group]:
            names = {}
            for entry in server.ask(f"/apis/{group}/{version}" if group else f"/api/{version}")["resources"]:
                name, _, subresource = entry["name"].partition("/")
                if (group, version) in SKIPPED:
                    continue
                kinds.append((entry.get("group", group), entry.get("version", version), entry["kind"]))
                if subresource:
                    names[name].subresources.append(subresource)
                else:
                    names[name] = Resource(group, version, entry)
                    resources.append(names[name])
    return resources, kinds


def write_table(resources, path):
    with open(path) as file:
        text = file.read()
    begin, end = text.index("kinf__builtins[] = {\n") + len("kinf__builtins[] = {\n"), text.index("};\n")
    with open(path, "w") as file:
        file.write(text[:begin] + "".join(r.row() for r in resources) + text[end:])


# --- types ---


def reference(schema):
    """The type that a schema refers to, by itself or as the only one of allOf."""
    if "allOf" in schema:
        assert len(schema["allOf"]) == 1
        schema = schema["allOf"][0]
    return schema["$ref"].rpartition("/")[2] if "$ref" in schema else None


def expression(schema, types):
    name = reference(schema)
    if name in SCALARS:
        return SCALARS[name]
    if name:
        # A type without a type is anything: JSON.
        if types[name].get("type") != "object":
            assert "properties" not in types[name], name
            return "any"
        return name[len(PREFIX):]
    kind = schema.get("type")
    if kind == "array":
        return "[]" + expression(schema["items"], types)
    if kind == "object":
        return "{}" + expression(schema["additionalProperties"], types) if "additionalProperties" in schema else "any"
    if kind == "integer":
        return schema.get("format", "int64")
    if kind == "string":
        return "bytes" if schema.get("format") == "byte" else "string"
    return {"boolean": "boolean", "number": "number"}[kind]


def go_type(expr):
    """Go's name of a type, as far as it follows from ours. The parser in schema.c does the same."""
    if expr.startswith("[]"):
        return "[]" + go_type(expr[2:])
    if expr.startswith("{}"):
        return "map[string]" + go_type(expr[2:])
    fixed = {"boolean": "bool", "number": "float64", "bytes": "[]uint8", "int-or-string": "int32", "time": "v1.Time",
             "microtime": "v1.MicroTime", "quantity": "resource.Quantity", "any": "runtime.RawExtension"}
    return fixed.get(expr) or ".".join(expr.split(".")[-2:])


class Prober:
    """Asks for Go's types of all fields that can be reached from a resource, each once."""

    def __init__(self, server, types):
        self.server, self.types, self.done = server, types, set()
        self.found = {}  # (type, field): (Go's type, the embedded struct or "")

    def probe(self, resource, root):
        queue = [(root, [], "")]
        while queue:
            name, hops, go_path = queue.pop(0)
            if name in self.done:
                continue
            self.done.add(name)
            for field, schema in sorted(self.types[name].get("properties", {}).items()):
                expr = expression(schema, self.types)
                inlined = self.ask(resource, name, hops, go_path, field, expr)
                bare = expr.replace("[]", "").replace("{}", "")
                if PREFIX + bare in self.types:
                    nesting = re.findall(r"\[\]|\{\}", expr)
                    queue.append((PREFIX + bare, hops + [(field, nesting)],
                                  go_path + "." * bool(go_path) + inlined + field))

    def ask(self, resource, name, hops, go_path, field, expr):
        if expr in ("any", "quantity") or (not hops and field in ("apiVersion", "kind")):
            return ""
        value = 5 if expr in ("string", "bytes", "time", "microtime") else True if expr == "int-or-string" else "x"
        body = {field: value}
        for hop, nesting in reversed(hops):
            for nest in reversed(nesting):
                body = [body] if nest == "[]" else {"x": body}
            body = {hop: body}
        body.update(apiVersion=f"{resource.group}/{resource.version}".lstrip("/"), kind=resource.entry["kind"])
        message = self.server.ask(resource.path() + "?dryRun=All", body).get("message", "")
        match = re.search(r"Go struct field (\w+)\.(\S+) of type (.+)$", message)
        if not match or match.group(1) != name.rpartition(".")[2]:
            print(f"{name}.{field}: {message}", file=sys.stderr)
            return ""
        inlined = match.group(2)[len(go_path) + bool(go_path):-len(field)]
        self.found[name, field] = (match.group(3), inlined.rstrip("."))
        return inlined


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def read_numbers(root):
    """{(type, field): "2.19*"}, of fields in protobuf."""
    listing = subprocess.run(["go", "run", "./cmd/protofields"], cwd=os.path.join(root, "tests", "cluster"),
                             check=True, capture_output=True, text=True).stdout
    return {tuple(line.split()[:2]): line.split()[2] for line in listing.splitlines()}


def field_line(name, field, schema, types, required, found, number):
    expr = expression(schema, types)
    short = ".".join(name.split(".")[-3:])
    words = [field, expr]
    if number:
        words.append("#" + number)
    go, inlined = found.get((name, field), (None, ""))
    derived = "string" if expr in ("time", "microtime") else go_type(expr)
    strategy = schema.get("x-kubernetes-patch-strategy", "")
    if schema.get("x-kubernetes-list-type") == "set":
        words.append("set")
    if schema.get("x-kubernetes-list-type") == "map":
        words.append("map=" + ",".join(schema["x-kubernetes-list-map-keys"]))
    if schema.get("x-kubernetes-map-type") == "atomic":
        words.append("atomic")
    if "merge" in strategy:
        words.append("merge=" + schema.get("x-kubernetes-patch-merge-key", ""))
    if "retainKeys" in strategy:
        words.append("retain")
    if strategy == "replace":
        words.append("replace")
    if required:
        words.append("required")
    if go and go != derived:
        words.append("go=" + go)
    if inlined:
        words.append("in=" + inlined)
    default = schema.get("default", "")
    default = "" if f"{short}.{field}" in NO_DEFAULTS else default
    fixed = DEFAULTS.get(short, {})
    if field in fixed or default != "":
        words.append("default=" + compact(fixed.get(field, default)))
    return " ".join(words) + "\n"


def reachable(roots, types):
    names, queue = set(), list(roots)
    while queue:
        name = queue.pop()
        if name in names:
            continue
        names.add(name)
        for schema in types[name].get("properties", {}).values():
            bare = PREFIX + expression(schema, types).replace("[]", "").replace("{}", "")
            if bare in types:
                queue.append(bare)
    return sorted(names)


def read_types(server):
    types = {}
    for path, entry in server.ask("/openapi/v3")["paths"].items():
        match = re.fullmatch(r"apis?(?:/([^/]+))?/v\d+", path)
        if match and (match.group(1) or "") in GROUPS:
            for name, schema in server.ask(entry["serverRelativeURL"])["components"]["schemas"].items():
                old = types.setdefault(name, schema)
                # DeleteOptions has a version for each group.
                old.setdefault("x-kubernetes-group-version-kind", []).extend(
                    schema.get("x-kubernetes-group-version-kind", []))
    return types


def write_schema(server, resources, kinds, numbers, path):
    types, roots = read_types(server), {}
    wanted = kinds + OTHER_ROOTS
    for name, schema in types.items():
        for kind in schema["x-kubernetes-group-version-kind"]:
            key = (kind["group"], kind["version"], kind["kind"])
            if key in wanted and key not in roots.get(name, []):
                roots.setdefault(name, []).append(key)
    prober = Prober(server, types)
    for resource in resources:
        kind = (resource.group, resource.version, resource.entry["kind"])
        if "create" in resource.entry["verbs"]:
            prober.probe(resource, next(name for name in roots if kind in roots[name]))
    version = server.ask("/version")["gitVersion"]
    with open(path, "w") as file:
        file.write(f"# Recorded from kube-apiserver {version} by scripts/record-schema.py, which says how; "
                   "src/document/schema.c reads it.\n")
        for name in reachable(roots, types):
            schema = types[name]
            words = ["=" + name] + ["/".join(kind) for kind in sorted(roots.get(name, []))]
            if schema.get("x-kubernetes-map-type") == "atomic":
                words.append("atomic")
            file.write(" ".join(words) + "\n")
            for field in sorted(schema.get("properties", {})):
                file.write(field_line(name, field, schema["properties"][field], types,
                                      field in schema.get("required", []), prober.found,
                                      numbers.get((name, field))))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    folder = os.path.join(root, "src", "sim")
    server = Server(sys.argv[1])
    resources, kinds = read_resources(server)
    write_table(resources, os.path.join(folder, "types.c"))
    write_schema(server, resources, kinds, read_numbers(root), os.path.join(folder, "schema.txt"))


if __name__ == "__main__":
    main()
