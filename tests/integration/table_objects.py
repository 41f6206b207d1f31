"""Objects of every built-in type, in the states that the columns of Tables tell apart; those of sim_rows.KINDS are as empty
as is allowed. Times are years ago, so that only ages of objects change while they are looked at."""

import base64
import json
import os
import subprocess
import tempfile

from sim_rows import CLAIM, KINDS, LABELS, RBAC, ROLE_REF, SELECTOR, STORAGE, TEMPLATE
from sim_steps import thing

NAMESPACE = "tables"
LONG_AGO = "2020-01-01T00:00:00Z"
LATER = "2020-01-01T03:04:05Z"
TWO = [{"name": "one", "image": "example.com/one:1"}, {"name": "two", "image": "example.com/two:2"}]
FULL_TEMPLATE = {"metadata": {"labels": {"app": "x", "tier": "y"}}, "spec": {"containers": TWO}}
EXPRESSIONS = {"matchLabels": {"tier": "y", "app": "x"}, "matchExpressions": [
    {"key": "z", "operator": "NotIn", "values": ["c", "a", "b"]}, {"key": "app", "operator": "Exists"},
    {"key": "m", "operator": "DoesNotExist"}, {"key": "tier", "operator": "In", "values": ["y"]}]}
KEPT = {"finalizers": ["example.com/kept"]}  # what is deleted stays


def condition(kind, status="True", **more):
    return {"type": kind, "status": status, **more}


# --- pods ---

def container(name, **more):
    return {"name": name, "image": "i", "imageID": "", "restartCount": 0, "ready": False, **more}


RUNNING = {"running": {"startedAt": LONG_AGO}}


def waiting(reason):
    return {"waiting": {"reason": reason}}


def ended(code, **more):
    return {"terminated": {"exitCode": code, "finishedAt": LONG_AGO, **more}}


RESTARTED = {"restartCount": 3, "lastState": ended(1)}
SIDECAR = {"name": "side", "image": "i", "restartPolicy": "Always"}
INIT = {"name": "init", "image": "i"}


def pods():
    def some(name, *containers, inits=(), conditions=(), phase="Running", spec=None, **more):
        return thing("v1", "Pod", name, metadata={"labels": {"a": "b"}}, spec={
            "containers": TWO, "initContainers": [SIDECAR, INIT], **(spec or {})}, status={
            "phase": phase, "containerStatuses": list(containers), "initContainerStatuses": list(inits),
            "conditions": list(conditions), **more})
    ready = condition("Ready")
    return [
        some("gates", phase="Pending", spec={"readinessGates": [{"conditionType": "g/1"}, {"conditionType": "g/2"}]},
             conditions=[condition("g/2"), condition("g/1", "False")]),
        some("gated", phase="Pending", spec={"schedulingGates": [{"name": "g"}]}),
        some("all", container("one", ready=True, state=RUNNING, **RESTARTED), container("two", ready=True, state=RUNNING),
             inits=[container("side", ready=True, started=True, state=RUNNING), container("init", state=ended(0))],
             podIP="10.1.1.1", podIPs=[{"ip": "10.1.1.1"}, {"ip": "fd00::1"}],
             conditions=[ready], spec={"nodeName": "full"}),
        some("done", container("one", state=ended(0, reason="Completed")), phase="Succeeded"),
        some("failed", container("one", state=ended(0, reason="Completed")),
             container("two", state=ended(7, reason="Error")), phase="Failed"),
        some("one-runs", container("one", state=ended(0, reason="Completed")),
             container("two", ready=True, state=RUNNING)),
        some("one-runs-ready", container("one", state=ended(0, reason="Completed")),
             container("two", ready=True, state=RUNNING), conditions=[ready]),
        some("evicted", phase="Failed", reason="Evicted"),
        some("pulls", container("one", state=waiting("ImagePullBackOff")), container("two", state=waiting("Other")),
             nominatedNodeName="other"),
        some("signal", container("one", state=ended(0, signal=9)), container("two", state=waiting(""))),
        some("code", container("one", state=ended(3))),
        some("init-first", inits=[container("side", state=waiting("PodInitializing"))]),
        some("init-waits", inits=[container("side", state=waiting("CrashLoopBackOff"), **RESTARTED)]),
        some("init-second", inits=[container("side", started=True, state=RUNNING, **RESTARTED), container("init", **RESTARTED)]),
        some("init-code", inits=[container("side", state=ended(4))]),
        some("init-signal", inits=[container("side", state=ended(4, signal=2))]),
        some("init-reason", inits=[container("side", state=ended(4, reason="OOMKilled"))]),
        some("init-again", container("one", ready=True, state=RUNNING, **RESTARTED),
             inits=[container("side", **RESTARTED)], conditions=[condition("Initialized"), ready]),
        *({**one, "metadata": {**one["metadata"], **KEPT}} for one in (
            some("deleted"), some("deleted-done", phase="Succeeded"), some("lost", reason="NodeLost"))),
    ]


# --- the rest ---

def hpa(name, metrics=(), current=(), **spec):
    return thing("autoscaling/v2", "HorizontalPodAutoscaler", name, spec={
        "maxReplicas": 5, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
        "metrics": list(metrics), **spec}, status={"currentReplicas": 2, "desiredReplicas": 2,
                                                   "currentMetrics": list(current), "conditions": []})


def resource(kind, name, target, key="target", **more):
    keys = {"Resource": "resource", "ContainerResource": "containerResource", "Pods": "pods", "Object": "object",
            "External": "external"}
    metric = {"name": name} if "Resource" in kind else {"metric": {"name": name}}
    return {"type": kind, keys[kind]: {**metric, **more, key: target}}


def metrics():
    described = {"describedObject": {"kind": "Service", "name": "s"}}
    inner = {"container": "c"}

    def average(value):
        return {"type": "AverageValue", "averageValue": value}

    def percent(value):
        return {"type": "Utilization", "averageUtilization": value}
    exact = {"type": "Value", "value": "7"}
    return [
        hpa("resources", [resource("Resource", "cpu", percent(50)), resource("ContainerResource", "memory", average("2Gi"), **inner)],
            [resource("Resource", "cpu", {"averageUtilization": 30, "averageValue": "1"}, "current"),
             resource("ContainerResource", "memory", {"averageValue": "1500Mi"}, "current", **inner)]),
        hpa("no-metrics-yet", [resource("Resource", "cpu", average("500m")), resource("Pods", "p", average("4"))]),
        hpa("three", [resource("Pods", "p", average("4")), resource("Object", "o", exact, **described),
                      resource("External", "e", exact)],
            [resource("Pods", "p", {"averageValue": "3"}, "current"),
             resource("Object", "o", {"value": "6"}, "current", **described)]),
        hpa("averages", [resource("Object", "o", average("4"), **described), resource("External", "e", average("5"))],
            [resource("Object", "o", {"averageValue": "3", "value": "0"}, "current", **described),
             resource("External", "e", {"value": "1"}, "current")], minReplicas=1),
        hpa("other-order", [resource("ContainerResource", "cpu", percent(10), **inner), resource("External", "e", exact)],
            [resource("External", "e", {"value": "1"}, "current"),
             resource("ContainerResource", "cpu", {"averageValue": "3"}, "current", **inner)]),
    ]


def workloads():
    def owner(version, kind, name, **more):
        return {"apiVersion": version, "kind": kind, "name": name, "uid": "u", **more}

    def job(name, spec=None, kept=(), **status):
        return thing("batch/v1", "Job", name, metadata={"finalizers": list(kept)}, spec={
            "template": {"spec": {"containers": TWO, "restartPolicy": "Never"}}, **(spec or {})}, status=status)
    finished = {"startTime": LONG_AGO, "completionTime": LATER, "succeeded": 1,
                "conditions": [condition("SuccessCriteriaMet"), condition("Complete")]}
    counts = {"replicas": 4, "readyReplicas": 2, "availableReplicas": 1, "fullyLabeledReplicas": 3}
    spec = {"selector": SELECTOR, "template": FULL_TEMPLATE, "replicas": 4}
    return [
        thing("apps/v1", "Deployment", "full", spec={**spec, "selector": {**SELECTOR, "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["z", "y"]}]}},
            status={"replicas": 4, "readyReplicas": 2, "availableReplicas": 1, "updatedReplicas": 3,
                    "unavailableReplicas": 3}),
        thing("apps/v1", "ReplicaSet", "full", spec=spec, status=counts),
        thing("v1", "ReplicationController", "full", spec={**spec, "selector": LABELS}, status=counts),
        thing("apps/v1", "StatefulSet", "full", spec={**spec, "serviceName": "s"},
              status={"replicas": 4, "readyReplicas": 2}),
        thing("apps/v1", "DaemonSet", "full", spec={"selector": SELECTOR, "template": {
            **FULL_TEMPLATE, "spec": {"containers": TWO, "nodeSelector": {"b": "c", "a": "d"}}}}, status={
            "desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3, "updatedNumberScheduled": 2,
            "numberAvailable": 1, "numberMisscheduled": 0}),
        thing("apps/v1", "ControllerRevision", "owned", metadata={"ownerReferences": [
            owner("v1", "Node", "n"), owner("apps/v1", "DaemonSet", "full", controller=True)]}, revision=7, data={"a": 1}),
        thing("apps/v1", "ControllerRevision", "of-core", metadata={"ownerReferences": [
            owner("v1", "Service", "S", controller=True)]}, revision=1, data={"a": 1}),
        thing("v1", "PodTemplate", "full", template=FULL_TEMPLATE),
        thing("v1", "PodTemplate", "bare", template={"spec": {"containers": TWO}}),
        job("done", **finished), job("many", {"completions": 5, "parallelism": 3}, startTime=LONG_AGO, active=2, succeeded=2),
        job("pool", {"parallelism": 3}, startTime=LONG_AGO),
        job("failed", startTime=LONG_AGO, failed=1, conditions=[condition("FailureTarget"), condition("Failed")]),
        job("fails", startTime=LONG_AGO, conditions=[condition("FailureTarget")]),
        job("succeeds", startTime=LONG_AGO, conditions=[condition("SuccessCriteriaMet")]),
        job("suspended", {"suspend": True}, conditions=[condition("Suspended")]),
        job("deleted", kept=KEPT["finalizers"]),
        thing("batch/v1", "CronJob", "full", spec={
            "schedule": "1 2 * * *", "timeZone": "Etc/UTC", "suspend": True, "jobTemplate": {"spec": {
                "template": {"spec": {"containers": TWO, "restartPolicy": "Never"}}}}}, status={
            "lastScheduleTime": LONG_AGO, "active": [{"kind": "Job", "name": "j"}, {"kind": "Job", "name": "k"}]}),
        thing("policy/v1", "PodDisruptionBudget", "share", spec={"maxUnavailable": "25%", "selector": SELECTOR}, status={
            "disruptionsAllowed": 2, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}),
        *metrics(),
    ]


def network():
    def service(name, kind="ClusterIP", addresses=(), **spec):
        return thing("v1", "Service", name, spec={"type": kind, "ports": [{"port": 80}], **spec},
                     **({"status": {"loadBalancer": {"ingress": list(addresses)}}} if addresses else {}))
    ports = [{"name": "a", "port": 80, "nodePort": 30080}, {"name": "b", "port": 53, "protocol": "UDP"}]
    backend = {"service": {"name": "s", "port": {"number": 80}}}

    def rule(host):
        return {**({"host": host} if host else {}), "http": {"paths": [
            {"path": "/", "pathType": "Prefix", "backend": backend}]}}

    def ingress(name, hosts=(), addresses=(), **spec):
        return thing("networking.k8s.io/v1", "Ingress", name, spec={
            "rules": [rule(host) for host in hosts], "defaultBackend": backend, **spec},
            status={"loadBalancer": {"ingress": list(addresses)}})

    def endpoints(name, *subsets):
        return thing("v1", "Endpoints", name, subsets=[
            {"addresses": [{"ip": ip} for ip in ips], **({"ports": [{"name": f"p{port}", "port": port} for port in ports]}
                                                       if ports else {})} for ips, ports in subsets])

    def slices(name, addresses, ports, kind="IPv4"):
        return thing("discovery.k8s.io/v1", "EndpointSlice", name, addressType=kind, ports=ports,
                     endpoints=[{"addresses": [address]} for address in addresses])
    many = [f"10.2.0.{i}" for i in range(5)]
    return [
        service("ports", "NodePort", ports=ports, selector={"b": "c", "a": "d"}), service("headless", clusterIP="None"),
        service("external", "ExternalName", externalName="example.com", ports=[]),
        service("outside", externalIPs=["192.0.2.1", "192.0.2.2"]), service("pending", "LoadBalancer"),
        service("balanced", "LoadBalancer", [{"ip": "192.0.2.9"}, {"hostname": "b.example.com"}, {"ip": "192.0.2.8"},
                                             {"ip": "192.0.2.9"}], externalIPs=["192.0.2.1"]),
        endpoints("none"), endpoints("headless", (["10.2.0.1", "fd00::1"], [])),
        endpoints("many", (many[:2], [80, 443]), (["fd00::1"], [80])), endpoints("three", (many[:3], [1])),
        slices("none", [], []), slices("many", many, [{"name": f"p{i}", "port": i + 1} for i in range(5)]),
        slices("named", ["10.2.0.1"], [{"name": "only"}, {"name": "p", "port": 1}]), slices("any", ["10.2.0.1"], [{}]),
        ingress("hosts", ["a.example.com", "b.example.com", "", "c.example.com"], [{"ip": "192.0.2.9"}, {"hostname": "h"}],
                ingressClassName="class", tls=[{"hosts": ["a.example.com"]}]),
        ingress("more", [f"{i}.example.com" for i in range(5)]), ingress("more-without", ["a.x", "b.x", "c.x", ""]),
        thing("networking.k8s.io/v1", "IngressClass", "default", metadata={
            "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}, spec={
            "controller": "example.com/c", "parameters": {"apiGroup": "k.example.com", "kind": "Kind", "name": "p"}}),
        thing("networking.k8s.io/v1", "IngressClass", "core", spec={
            "controller": "example.com/c", "parameters": {"kind": "Kind", "name": "p"}}),
        thing("networking.k8s.io/v1", "NetworkPolicy", "full", spec={"podSelector": EXPRESSIONS}),
        thing("networking.k8s.io/v1", "IPAddress", "10.9.9.8", metadata={}, spec={"parentRef": {
            "group": "gateway.example.com", "resource": "gateways", "name": "g"}}),
        thing("networking.k8s.io/v1", "ServiceCIDR", "two", spec={"cidrs": ["10.78.0.0/24", "fd01::/112"]}),
    ]


def storage():
    def claim(name, spec=None, status=None, kept=(), **metadata):
        return thing("v1", "PersistentVolumeClaim", name, metadata={"finalizers": list(kept), **metadata},
                     spec={**CLAIM, **(spec or {})}, **({"status": status} if status else {}))

    def volume(name, kept=(), status=None, annotations=None, **spec):
        return thing("v1", "PersistentVolume", name, metadata={"finalizers": list(kept), "annotations": annotations or {}},
                     spec={"capacity": {"storage": "1.5Gi"}, "accessModes": ["ReadWriteOnce"],
                           "hostPath": {"path": "/tmp/x"}, **spec}, **({"status": status} if status else {}))

    def storage_class(name, annotations=None, **more):
        return thing(STORAGE, "StorageClass", name, metadata={"annotations": annotations or {}},
                     provisioner="example.com/p", **more)
    all_modes = ["ReadWriteMany", "ReadOnlyMany", "ReadWriteOnce"]
    old_class = {"volume.beta.kubernetes.io/storage-class": "old"}
    return [
        claim("bound", {"volumeName": "v", "storageClassName": "fast", "volumeAttributesClassName": "gold"}, {
            "phase": "Bound", "capacity": {"storage": "1.5Gi"}, "accessModes": all_modes}),
        claim("almost", {"volumeName": "v", "volumeMode": "Block", "storageClassName": ""}, {"phase": "Pending"}),
        claim("old", annotations=old_class), claim("deleted", kept=KEPT["finalizers"]),
        volume("bound", status={"phase": "Bound"}, claimRef={"namespace": NAMESPACE, "name": "bound"},
               storageClassName="fast", accessModes=all_modes, volumeMode="Block"),
        volume("bad", status={"phase": "Failed", "reason": "Broken", "message": "m"}, annotations=old_class,
               persistentVolumeReclaimPolicy="Recycle", hostPath={"path": "/tmp/y"}),
        volume("once", accessModes=["ReadWriteOncePod"], csi={"driver": "d", "volumeHandle": "h"}, hostPath=None,
               storageClassName="fast", volumeAttributesClassName="gold"),
        volume("deleted", kept=KEPT["finalizers"]),
        storage_class("default", {"storageclass.kubernetes.io/is-default-class": "true"}, reclaimPolicy="Retain",
                      volumeBindingMode="WaitForFirstConsumer", allowVolumeExpansion=True),
        storage_class("not-default", {"storageclass.kubernetes.io/is-default-class": "false"}),
        thing(STORAGE, "CSIDriver", "full", spec={
            "attachRequired": False, "podInfoOnMount": True, "storageCapacity": True, "requiresRepublish": True,
            "volumeLifecycleModes": ["Persistent", "Ephemeral"], "tokenRequests": [{"audience": "a"}, {"audience": "b"}]}),
        thing(STORAGE, "CSIDriver", "one-token", spec={"tokenRequests": [{"audience": ""}]}),
        thing(STORAGE, "CSINode", "full", spec={"drivers": [{"name": "d", "nodeID": "i", "topologyKeys": []}]}),
        thing(STORAGE, "CSIStorageCapacity", "full", storageClassName="s", capacity="5Gi"),
        thing(STORAGE, "VolumeAttachment", "attached", spec={
            "attacher": "a.example.com", "nodeName": "n", "source": {"persistentVolumeName": "p"}},
            status={"attached": True}),
        *devices(),
    ]


def devices():
    v1 = "resource.k8s.io/v1"
    requests = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    allocation = {"devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "x"}]}}

    def claim(name, status=None, **metadata):
        return thing(v1, "ResourceClaim", name, metadata=metadata, spec=requests, **({"status": status} if status else {}))

    def slice_of(name, **spec):
        return thing(v1, "ResourceSlice", name, spec={
            "driver": "d.example.com", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "x"}], **spec})
    return [
        thing(v1, "DeviceClass", "plain", spec={}),
        thing(v1, "DeviceTaintRule", "full", spec={"deviceSelector": {"driver": "d.example.com"}, "taint": {
            "key": "example.com/k", "value": "v", "effect": "NoSchedule", "timeAdded": LONG_AGO}}),
        thing(v1, "DeviceTaintRule", "no-value", spec={"taint": {"key": "k", "effect": "NoExecute", "timeAdded": LONG_AGO}}),
        claim("pending"), claim("allocated", {"allocation": allocation}),
        claim("reserved", {"allocation": allocation, "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}),
        claim("deleted", **KEPT), claim("deleted-allocated", {"allocation": allocation}, **KEPT),
        thing(v1, "ResourceClaimTemplate", "plain", spec={"spec": requests}),
        slice_of("of-node", nodeName="n"), slice_of("of-all", allNodes=True),
    ]


def rights():
    subjects = [{"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"}, {"kind": "User", "name": "v"},
                {"kind": "ServiceAccount", "name": "a", "namespace": NAMESPACE},
                {"kind": "ServiceAccount", "name": "b", "namespace": "other"}, {"kind": "Group", "name": "h"}]
    return [
        thing(RBAC, "RoleBinding", "full", roleRef={**ROLE_REF, "kind": "Role"}, subjects=subjects),
        thing(RBAC, "ClusterRoleBinding", "full", roleRef=ROLE_REF, subjects=subjects),
        *certificates(),
    ]


def certificates():
    """Signed by themselves, or asked for."""
    v1 = "certificates.k8s.io/v1"
    with tempfile.TemporaryDirectory() as folder:
        def made(*args):
            path = os.path.join(folder, "out")
            subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc",
                            "-keyout", "/dev/null", "-out", path, *args], check=True, stderr=subprocess.DEVNULL)
            with open(path, "rb") as file:
                return file.read()
        request, stub = made("-subj", "/CN=u"), made("-subj", "/", "-outform", "DER")
        certificate = made("-subj", "/CN=u", "-x509", "-addext", "basicConstraints=critical,CA:true")

    def signing(name, seconds=None, issued=None, *conditions):
        return thing(v1, "CertificateSigningRequest", name, spec={
            "request": base64.b64encode(request).decode(), "signerName": "example.com/s", "usages": ["client auth"],
            **({"expirationSeconds": seconds} if seconds else {})},
            approval={"conditions": [condition(kind) for kind in conditions if kind != "Failed"]},
            status={"conditions": [condition(kind) for kind in conditions],
                    **({"certificate": base64.b64encode(certificate).decode()} if issued else {})})

    def of_pod(name, *conditions, **spec):
        return thing(v1, "PodCertificateRequest", name, spec={
            "signerName": "example.com/s", "podName": "p", "podUID": "pu", "serviceAccountName": "a",
            "serviceAccountUID": "au", "nodeName": "n", "nodeUID": "nu", "maxExpirationSeconds": 86400,
            "stubPKCS10Request": base64.b64encode(stub).decode(), **spec},
            **({"status": {"conditions": [condition(kind, reason="R", message="m", lastTransitionTime=LONG_AGO)
                                          for kind in conditions]}} if conditions else {}))
    return [
        signing("pending"), signing("approved", 3600, None, "Approved"), signing("denied", 86400 * 9, None, "Denied"),
        signing("issued", None, True, "Approved"), signing("failed", None, None, "Approved", "Failed"),
        thing(v1, "ClusterTrustBundle", "anybody", spec={"trustBundle": certificate.decode()}),
        thing(v1, "ClusterTrustBundle", "example.com:s:one", spec={
            "signerName": "example.com/s", "trustBundle": certificate.decode()}),
        of_pod("pending", unverifiedUserAnnotations={"example.com/b": "c", "example.com/a": "d"}),
        of_pod("denied", "Denied"), of_pod("failed", "Failed"),
    ]


def nodes():
    info = {name: "" for name in ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "operatingSystem",
                                  "containerRuntimeVersion", "kubeletVersion", "kubeProxyVersion")}
    full = {**info, "kernelVersion": "6.1", "osImage": "An OS", "containerRuntimeVersion": "c://1", "kubeletVersion": "v1.2",
            "architecture": "amd64"}

    def node(name, status, labels=None, **spec):
        return thing("v1", "Node", name, metadata={"labels": labels or {}}, spec=spec, status=status)
    return [
        node("full", {"conditions": [condition("MemoryPressure", "False"), condition("Ready")], "nodeInfo": full,
                      "addresses": [{"type": "Hostname", "address": "full"}, {"type": "InternalIP", "address": "10.0.0.1"},
                                    {"type": "ExternalIP", "address": "192.0.2.1"},
                                    {"type": "InternalIP", "address": "10.0.0.2"}]},
             {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": "",
              "kubernetes.io/role": "worker"}, unschedulable=True),
        node("bad", {"conditions": [condition("Ready", "Unknown")], "nodeInfo": {**info, "architecture": "arm64"}},
             {"kubernetes.io/role": "edge"}),
    ]


def events():
    def old(name, **more):
        return thing("v1", "Event", name, involvedObject={"kind": "Pod", "name": "x", "namespace": NAMESPACE}, **more)

    def new(name, **more):
        return thing("events.k8s.io/v1", "Event", name, eventTime="2020-01-01T00:00:00.000000Z", action="Act", reason="Why",
                     reportingController="example.com/c", reportingInstance="i", type="Normal", **more)
    regarding = {"regarding": {"kind": "Node", "name": "n"}}
    return [
        old("counted", firstTimestamp=LONG_AGO, lastTimestamp=LATER, count=7, type="Warning", reason="Why",
            message=" a <b> & \"c\"\n", source={"component": "kubelet", "host": "n"}),
        old("first", firstTimestamp=LONG_AGO, source={"component": "c"}, reportingComponent="r", reportingInstance="i"),
        old("host-alone", firstTimestamp=LONG_AGO, source={"host": "h"}),
        {**old("field", firstTimestamp=LONG_AGO), "involvedObject": {
            "kind": "Pod", "namespace": NAMESPACE, "name": "x", "fieldPath": "spec.containers{one}"}},
        {**old("nameless", firstTimestamp=LONG_AGO), "involvedObject": {"kind": "Pod", "namespace": NAMESPACE}},
        new("series", series={"count": 9, "lastObservedTime": "2020-01-01T03:00:00.000000Z"}, note=" noted\n", **{
            "regarding": {"kind": "Pod", "name": "x", "namespace": NAMESPACE, "fieldPath": "spec"}}),
        {**new("elsewhere", **regarding), "metadata": {"name": "elsewhere", "namespace": "default"}},
    ]


def control():
    """What rules over other requests: none that any other test makes."""
    policy = "admissionregistration.k8s.io/v1"
    rules = {"resourceRules": [{"apiGroups": ["none.example.com"], "apiVersions": ["*"], "operations": ["CREATE"],
                                "resources": ["nones"]}]}
    kind = {"paramKind": {"apiVersion": "rules.example.com/v1", "kind": "Rule"}}
    mutation = {"reinvocationPolicy": "Never", "mutations": [
        {"patchType": "JSONPatch", "jsonPatch": {
            "expression": "[JSONPatch{op: 'remove', path: '/x'}]"}}]}

    def webhooks(which, *names):
        return thing(policy, which + "WebhookConfiguration", "full", webhooks=[
            {"name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"],
             "clientConfig": {"url": "https://127.0.0.1:1/"}} for name in names])

    def bindings(name, param=None):
        spec = {"policyName": "full", **({"paramRef": {**param, "parameterNotFoundAction": "Allow"}} if param else {})}
        return [thing(policy, "ValidatingAdmissionPolicyBinding", name, spec={**spec, "validationActions": ["Deny"]}),
                thing(policy, "MutatingAdmissionPolicyBinding", name, spec=spec)]

    def schema(name, precedence, **spec):
        return thing("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", name, spec={
            "matchingPrecedence": precedence, "priorityLevelConfiguration": {"name": "not-there"}, **spec})

    def level(name, **spec):
        return thing("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", name, spec={"type": "Limited", **spec})

    def migration(name, group, what, *conditions):
        return thing("storagemigration.k8s.io/v1", "StorageVersionMigration", name, spec={
            "resource": {"group": group, "resource": what}}, status={
            "conditions": [condition(kind, status, reason="R", message="m", lastTransitionTime=LONG_AGO)
                           for kind, status in conditions], "resourceVersion": "1"})
    return [
        webhooks("Mutating", "a.example.com", "b.example.com"), webhooks("Validating", "a.example.com"),
        thing(policy, "ValidatingAdmissionPolicy", "full", spec={
            "matchConstraints": rules, "validations": [{"expression": "true"}, {"expression": "1 == 1"}], **kind}),
        thing(policy, "ValidatingAdmissionPolicy", "plain", spec={
            "matchConstraints": rules, "validations": [{"expression": "true"}]}),
        thing(policy, "MutatingAdmissionPolicy", "full", spec={"matchConstraints": rules, **mutation, **kind}),
        thing(policy, "MutatingAdmissionPolicy", "plain", spec={"matchConstraints": rules, **mutation}),
        *bindings("plain"), *bindings("named", {"name": "p"}), *bindings("placed", {"name": "p", "namespace": "n"}),
        *bindings("selected", {"selector": EXPRESSIONS}), *bindings("all", {"selector": {}}),
        schema("by-user", 700, distinguisherMethod={"type": "ByUser"}), schema("plain", 800),
        level("queued", limited={"nominalConcurrencyShares": 7, "limitResponse": {"type": "Queue", "queuing": {
            "queues": 16, "handSize": 4, "queueLengthLimit": 9}}}),
        level("refused", limited={"nominalConcurrencyShares": 0, "limitResponse": {"type": "Reject"}}),
        migration("runs", "apps", "deployments", ("Running", "True")),
        migration("done", "", "pods", ("Running", "False"), ("Succeeded", "True")),
        migration("new", "", "secrets"),
        thing("apiregistration.k8s.io/v1", "APIService", "v1.none.example.com", spec={
            "group": "none.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
            "service": {"name": "s", "namespace": "n"}, "insecureSkipTLSVerify": True}),
        thing("scheduling.k8s.io/v1", "PriorityClass", "low", value=-5, preemptionPolicy="Never", globalDefault=True),
        thing("node.k8s.io/v1", "RuntimeClass", "plain", handler="runc"),
    ]


COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "How <large>, & why."},
    {"name": "Since", "type": "date", "jsonPath": ".spec.since"}, {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
    {"name": "Share", "type": "number", "format": "double", "priority": 1, "jsonPath": ".spec.share"},
    {"name": "Gone", "type": "boolean", "jsonPath": ".spec.gone"}]


def definitions():
    """Of custom resources, which have to be there before objects of them are."""
    def version(name, stored, **more):
        return {"name": name, "served": True, "storage": stored, **more, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}

    def definition(kind, scope, *versions, **names):
        plural = kind.lower() + "s"
        return {**thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", plural + ".tables.example.com", spec={
            "group": "tables.example.com", "scope": scope, "versions": list(versions),
            "names": {"kind": kind, "plural": plural, **names}})}
    return [
        definition("Shown", "Namespaced", version("v1", True, additionalPrinterColumns=COLUMNS), version("v1beta1", False),
                   shortNames=["sh", "sw"]),
        definition("Plain", "Cluster", version("v1", True)),
    ]


def custom():
    return [
        thing("tables.example.com/v1", "Shown", "full", spec={
            "size": 5, "since": LONG_AGO, "color": "<red>", "share": 0.5, "gone": True}),
        thing("tables.example.com/v1", "Shown", "empty"), thing("tables.example.com/v1", "Plain", "one"),
    ]


def configuration():
    return [
        thing("v1", "ConfigMap", "both", data={"a": "1", "b": "2"}, binaryData={"c": "AAEC"}),
        thing("v1", "Secret", "typed", type="example.com/t", stringData={"a": "1", "b": "2"}),
        thing("v1", "Secret", "empty"),
        thing("v1", "ServiceAccount", "full", secrets=[{"name": "s"}]),
        thing("v1", "ResourceQuota", "full", metadata={"namespace": "default"}, spec={"hard": {"pods": "5"}}, status={
            "hard": {"pods": "500", "limits.memory": "2Gi", "requests.cpu": "1500m", "limits.cpu": "2",
                     "count/x.example.com": "3"}, "used": {"pods": "1", "limits.cpu": "250m"}}),
        thing("v1", "Namespace", "leaving", metadata={}, spec={"finalizers": ["kubernetes"]}),
        thing("coordination.k8s.io/v1", "Lease", "nobodys", spec={}),
    ]


# (kind, name): deleted once they are made.
DELETED = {("Pod", "deleted"), ("Pod", "deleted-done"), ("Pod", "lost"), ("Job", "deleted"), ("PersistentVolumeClaim", "deleted"),
           ("PersistentVolume", "deleted"), ("ResourceClaim", "deleted"), ("ResourceClaim", "deleted-allocated"),
           ("Namespace", "leaving")}


def objects():
    """Each with its namespace, whatever its type; what may not be created with a status says it all the same."""
    minimal = [{**thing(version, kind, "minimal"), **json.loads(json.dumps(rest).replace("NAMESPACE", NAMESPACE))}
               for version, _, kind, _, rest in KINDS if version not in ("autoscaling/v1", "events.k8s.io/v1")]
    made = minimal + custom() + configuration() + nodes() + events() + pods() + workloads() + network() + storage() + rights() + control()
    for one in made:
        one["metadata"].setdefault("namespace", NAMESPACE)
    return made
