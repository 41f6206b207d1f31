"""The Helm chart: what it renders is what config/ has, the API server takes it, and wrong values are refused."""

import json
import os
import re
import subprocess
import tempfile
import unittest

from harness import ROOT, TOOLS, cluster, lack, need_cluster
from test_manifests import configuration_of, container_of, objects_of, path_of, pod_of, run_check_config

CHART = os.path.join(ROOT, "charts", "kinformerd")
HELM = os.path.join(TOOLS, "helm")
# By the names of config/: the release, which names all.
RELEASES = {"deployment": "kinformerd", "daemonset": "kinformerd-node", "sharded": "kinformerd-sharded",
            "sidecar": "kinformerd-sidecar"}
NAME_SPACE = "charts"


def setUpModule():
    need_cluster("helm is built with it")
    if not os.path.exists(HELM):
        lack("helm (tests/cluster/build.sh)")
    cluster().kubectl("apply", "-f", os.path.join(ROOT, "tests", "integration", "servicemonitors.yaml"))
    cluster().kubectl("wait", "--for=condition=Established", "crd/servicemonitors.monitoring.coreos.com")
    # Other tests ask for all types that there are.
    unittest.addModuleCleanup(cluster().kubectl, "delete", "crd", "servicemonitors.monitoring.coreos.com")
    cluster().make_namespace(NAME_SPACE)


def helm(*args):
    """(exit code, stdout, stderr)."""
    done = subprocess.run([HELM, "--kubeconfig", cluster().kubeconfig(), *args], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout, done.stderr


def must_helm(*args):
    code, out, problem = helm(*args)
    if code != 0:
        raise AssertionError(f"helm {' '.join(args)}: {out}{problem}")
    return out


def example(name):
    return ["--values", os.path.join(CHART, "examples", name + ".yaml")]


def values(**keys):
    return [word for key, value in keys.items() for word in ("--set-json", f"{key}={json.dumps(value)}")]


def rendered(release, *args, name_space="default"):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write(must_helm("template", release, CHART, "--namespace", name_space, *args))
        file.flush()
        return objects_of(file.name, "--namespace", name_space)


def parsed(texts):
    """YAML -> Python, by kubectl: what one kind of object carries without looking at it."""
    carriers = ["apiVersion: apps/v1\nkind: ControllerRevision\nmetadata: {name: carrier}\nrevision: 1\ndata:\n" +
                "".join(f"  {line}\n" for line in text.splitlines()) for text in texts]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write("---\n".join(carriers))
        file.flush()
        return [item["data"] for item in objects_of(file.name)]


def plain(item):
    """Without what the server or helm adds to each."""
    item = json.loads(json.dumps(item))
    item["metadata"] = {"name": item["metadata"]["name"]}
    item.pop("status", None)
    if item["kind"] == "ConfigMap":
        del item["data"]["kinformerd.yaml"]
    if item["kind"] == "Service" and item["spec"]["clusterIP"] != "None":
        del item["spec"]["clusterIP"], item["spec"]["clusterIPs"]
    template = item["spec"].get("template") if "spec" in item else None
    if template:
        template["metadata"] = {"labels": template["metadata"]["labels"]}
    return item


def by_name(objects):
    return {f"{item['kind']} {item['metadata']['name']}": plain(item) for item in objects}


def rights_of(objects):
    return {(group, resource, verb) for item in objects for rule in item.get("rules", [])
            for group in rule.get("apiGroups", []) for resource in rule["resources"] for verb in rule["verbs"]}


class ChartTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.objects = {name: rendered(release, *example(name), *values(**{"serviceAccount.name": "kinformerd"}))
                       for name, release in RELEASES.items()}

    def test_helm_finds_nothing_to_complain_of(self):
        for args in [[], *map(example, RELEASES)]:
            with self.subTest(args):
                self.assertIn("0 chart(s) failed", must_helm("lint", "--strict", CHART, *args))

    def test_it_renders_what_config_has(self):
        for name, objects in self.objects.items():
            with self.subTest(name):
                wanted = objects_of(path_of(name))
                mine = by_name(item for item in objects if not item["apiVersion"].startswith("rbac.") and
                               item["kind"] != "ServiceAccount")
                self.assertEqual(mine, by_name(wanted))
                ours, theirs = parsed([configuration_of(objects), configuration_of(wanted)])
                self.assertEqual(ours, theirs)

    def test_rights_are_those_of_config_that_it_needs(self):
        allowed = rights_of(objects_of(path_of("rbac")))
        for name, objects in self.objects.items():
            with self.subTest(name):
                granted = rights_of(objects)
                self.assertLessEqual(granted, allowed)
                for resource in re.findall(r"resource: (\S+)", configuration_of(objects)):
                    resource, _, group = resource.partition(".")
                    self.assertLessEqual({(group, resource, verb) for verb in ("list", "watch")}, granted)
                bound = [item["roleRef"]["name"] for item in objects if "roleRef" in item]
                self.assertEqual("system:auth-delegator" in bound, name in ("deployment", "daemonset"))

    def test_kinformerd_takes_the_configuration_of_each(self):
        for name, objects in self.objects.items():
            with self.subTest(name):
                code, _, problem = run_check_config(configuration_of(objects), NODE_NAME="n", SHARDS="3", POD_INDEX="2")
                self.assertEqual(code, 0, problem)

    def test_each_mode_is_one_that_kinformerd_takes(self):
        app = [{"name": "app", "image": "example.org/app:1.0"}]
        for mode in ("deployment", "daemonset", "statefulset", "sidecar"):
            for listen, handlers in ((True, []), (False, [{"exec": ["cat"]}])):
                with self.subTest(mode, listen=listen):
                    objects = rendered("mine", *values(mode=mode, listen=listen, extraContainers=app,
                                                       **{"config.handlers": handlers} if handlers else {}))
                    code, _, problem = run_check_config(configuration_of(objects), SHARDS="2", POD_INDEX="0")
                    self.assertEqual(code, 0, problem)
                    self.assertEqual("lease: mine-kinformerd" in configuration_of(objects),
                                     mode == "statefulset" and bool(handlers))

    def test_a_new_configuration_is_a_new_pod(self):
        rendering = [self.objects["deployment"], rendered("kinformerd"), rendered("kinformerd", *values(listen=False))]
        sums = {item["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
                for objects in rendering for item in objects if item["kind"] == "Deployment"}
        self.assertEqual(len(sums), 3)

    def test_pods_are_as_a_restricted_namespace_wants_them(self):
        """But that of a node, which is on the host's network."""
        cluster().kubectl("label", "namespace", NAME_SPACE, "pod-security.kubernetes.io/warn=restricted")
        for name, release in RELEASES.items():
            with self.subTest(name), tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
                file.write(must_helm("template", release, CHART, "--namespace", NAME_SPACE, *example(name)))
                file.flush()
                done = subprocess.run([cluster().env["KINF_KUBECTL"], "--kubeconfig", cluster().kubeconfig(), "apply",
                                       "--dry-run=server", "-n", NAME_SPACE, "-f", file.name], text=True, check=True,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                wanted = r"(?s)Warning: would violate.*hostNetwork" if name == "daemonset" else r"^$"
                self.assertRegex(done.stderr, wanted)

    def test_prometheus_finds_it(self):
        reader = {"kind": "ServiceAccount", "name": "prometheus-k8s", "namespace": "monitoring"}
        objects = rendered("kinformerd", *values(**{"serviceMonitor.enabled": True, "rbac.stateReaders": [reader]}))
        (monitor, _) = wanted = objects_of(path_of("monitoring"))
        mine = by_name(objects)
        self.assertEqual(mine["ServiceMonitor kinformerd"], plain(monitor))
        (bound,) = [item for item in objects if item.get("roleRef", {}).get("name") == "default:kinformerd:state-reader"]
        self.assertEqual(bound["subjects"], wanted[1]["subjects"])
        self.assertIn("ClusterRole default:kinformerd:state-reader", mine)
        # It selects the Service, whose port has that name.
        service = next(item for item in objects if item["kind"] == "Service")
        self.assertLessEqual(monitor["spec"]["selector"]["matchLabels"].items(), service["metadata"]["labels"].items())
        self.assertEqual([port["name"] for port in service["spec"]["ports"]], [monitor["spec"]["endpoints"][0]["port"]])
        for name in ("sharded", "sidecar"):
            code, _, problem = helm("template", "x", CHART, *example(name), *values(**{"serviceMonitor.enabled": True}))
            self.assertEqual((code, "there are no metrics where nothing listens" in problem), (1, True), problem)

    def test_wrong_values_are_refused(self):
        for wrong, place in (
                ({"mode": "job"}, "/mode"), ({"replicas": 0}, "/replicas"), ({"replicas": "2"}, "/replicas"),
                ({"tsl": {}}, "tsl"), ({"image.tg": "1"}, "/image"), ({"image.digest": "sha256:1"}, "/image/digest"),
                ({"config.resources": None}, "/config"), ({"config.listen": ["0.0.0.0:1"]}, "/config/listen"),
                ({"config.auth": "none"}, "/config/auth"), ({"config.resources": [{}]}, "/config/resources/0"),
                ({"config.resorces": []}, "at '/config': additional properties 'resorces'"),
                ({"config.resources": [{"resource": "pods", "namespace": "a"}]}, "/config/resources/0': additional properties"),
                ({"config.resources": [{"resource": "Pods"}]}, "/config/resources/0/resource"),
                ({"config.resources": [{"resource": "pods", "indices": [{"name": "a"}]}]}, "/indices/0': missing property 'path'"),
                ({"config.onDemand": {"idel": "30m"}}, "at '/config/onDemand': additional properties 'idel'"),
                ({"config.onDemand": True}, "/config/onDemand"),
                ({"config.tls": {"clientCaFile": "/ca.crt"}}, "at '/config/tls': additional properties 'clientCaFile'"),
                ({"config.handlers": {"exec": ["cat"]}}, "/config/handlers"), ({"config.handlers": [{}]}, "/config/handlers/0"),
                ({"config.handlers": [{"exec": ["cat"], "plugin": "/a.so"}]}, "at '/config/handlers/0': 'oneOf' failed"),
                ({"config.handlers": [{"exec": ["cat"], "resuorces": []}]}, "/config/handlers/0': additional properties"),
                ({"config.handlers": [{"plugin": "/a.so", "acknowledge": True}]}, "properties 'exec' required"),
                ({"config.handlers": [{"exec": ["cat"], "config": {}}]}, "properties 'plugin' required"),
                ({"config.handlers": [{"webhook": {}}]}, "/config/handlers/0/webhook': missing property 'url'"),
                ({"config.handlers": [{"webhook": {"url": "https://example.com", "cafile": "/ca.crt"}}]},
                 "/config/handlers/0/webhook': additional properties"),
                ({"mode": "sidecar"}, "/extraContainers"), ({"service.type": "ExternalName"}, "/service/type"),
                ({"podDisruptionBudget.maxUnavailable": 0}, "/podDisruptionBudget/maxUnavailable"),
                ({"serviceMonitor.interval": "often"}, "/serviceMonitor/interval"),
                ({"rbac.stateReaders": [{"name": "x"}]}, "/rbac/stateReaders/0")):
            with self.subTest(wrong):
                code, _, problem = helm("template", "x", CHART, *values(**wrong))
                self.assertEqual((code, "meet the specifications of the schema" in problem), (1, True), problem)
                self.assertIn(place, problem)

    def test_values_arrive(self):
        objects = rendered("mine", *values(**{
            "image": {"repository": "example.org/k", "digest": "sha256:" + "a" * 64}, "replicas": 5, "listen": False,
            "config.resources": [{"resource": "pods", "maxHistoryBytes": 67108864}],
            "config.handlers": [{"plugin": "/nats.so", "config": {"servers": ["nats://nats-0:4222"]}}],
            "extraArgs": ["--log-level", "debug"],
            "podLabels": {"team": "a"}, "nodeSelector": {"disk": "fast"}, "imagePullSecrets": [{"name": "pull"}],
            "networkPolicy.apiServer": [{"ipBlock": {"cidr": "192.0.2.1/32"}}], "podDisruptionBudget.maxUnavailable": "40%",
            "serviceAccount.annotations": {"a": "b"}, "fullnameOverride": "other", "priorityClassName": "high"}))
        of = {item["kind"]: item for item in objects}
        pod = pod_of(objects)
        container = container_of(pod)
        self.assertEqual(container["image"], "example.org/k@sha256:" + "a" * 64)
        self.assertEqual(container["args"][-2:], ["--log-level", "debug"])
        self.assertEqual(container["readinessProbe"]["httpGet"]["scheme"], "HTTP")
        self.assertEqual((pod["nodeSelector"], pod["imagePullSecrets"], pod["priorityClassName"]),
                         ({"disk": "fast"}, [{"name": "pull"}], "high"))
        self.assertEqual(of["Deployment"]["spec"]["replicas"], 5)
        self.assertEqual(of["Deployment"]["spec"]["template"]["metadata"]["labels"]["team"], "a")
        self.assertIn("maxHistoryBytes: 67108864\n", configuration_of(objects))
        self.assertIn("nats://nats-0:4222", configuration_of(objects))
        self.assertEqual(of["NetworkPolicy"]["spec"]["egress"][0]["to"], [{"ipBlock": {"cidr": "192.0.2.1/32"}}])
        self.assertEqual(of["PodDisruptionBudget"]["spec"]["maxUnavailable"], "40%")
        self.assertEqual(of["ServiceAccount"]["metadata"]["annotations"]["a"], "b")
        self.assertNotIn("Service", of)
        self.assertEqual({item["metadata"]["name"] for item in objects if not item["kind"].startswith("ClusterRole")},
                         {"other"})

    def test_what_is_not_configured_needs_no_rights(self):
        resources = [{"resource": "widgets.example.com", "namespaces": ["default"]}]
        objects = rendered("mine", *values(mode="daemonset", listen=False, **{"config.resources": resources}))
        self.assertEqual(rights_of(objects), {("example.com", "widgets", verb) for verb in ("list", "watch")})

    def test_names_of_resources_become_rights(self):
        self.addCleanup(cluster().kubectl, "delete", "clusterrole,clusterrolebinding", "-l",
                        "app.kubernetes.io/instance=rights")
        resources = [{"resource": "ingresses.networking.k8s.io"}, {"resource": "cronjobs.v1.batch"},
                     {"resource": "configmaps", "namespaces": [NAME_SPACE]}, {"resource": "widgets.v1.example.com"},
                     {"resource": "volumesnapshots.snapshot.storage.k8s.io", "namespaces": [NAME_SPACE]},
                     {"resource": "gears.example.com", "serve": False}]
        must_helm("install", "rights", CHART, "--namespace", NAME_SPACE, *values(
            mode="statefulset", **{"config.resources": resources, "config.lease": "default/mine",
                                   "config.stateDir": "/state/kinformer",
                                   "config.handlers": [{"webhook": {"url": "http://127.0.0.1:8080/"}}]}))

        def can(verb, resource, name_space):
            return cluster().try_kubectl("auth", "can-i", verb, resource, "-n", name_space, "--as",
                                         f"system:serviceaccount:{NAME_SPACE}:rights-kinformerd")
        for resource, everywhere in (("ingresses.networking.k8s.io", True), ("cronjobs.batch", True),
                                     ("configmaps", False)):
            for verb in ("list", "watch"):
                with self.subTest(resource, verb=verb):
                    self.assertTrue(can(verb, resource, NAME_SPACE))
                    self.assertEqual(bool(can(verb, resource, "default")), everywhere)
        definitions = "customresourcedefinitions.apiextensions.k8s.io"
        for name in ("widgets.example.com", "volumesnapshots.snapshot.storage.k8s.io"):
            self.assertTrue(can("get", f"{definitions}/{name}", NAME_SPACE), name)
        for name in ("gears.example.com", "ingresses.networking.k8s.io"):
            self.assertFalse(can("get", f"{definitions}/{name}", NAME_SPACE), name)
        self.assertFalse(can("list", definitions, NAME_SPACE))
        self.assertTrue(can("get", "namespaces/kube-system", "kube-system"))
        self.assertFalse(can("get", f"namespaces/{NAME_SPACE}", NAME_SPACE))
        self.assertFalse(can("list", "secrets", NAME_SPACE))
        self.assertFalse(can("delete", "configmaps", NAME_SPACE))
        self.assertTrue(can("update", "leases.coordination.k8s.io", "default"))
        self.assertFalse(can("update", "leases.coordination.k8s.io", NAME_SPACE))
        self.assertTrue(can("create", "tokenreviews.authentication.k8s.io", "default"))
        self.check_life()

    def check_life(self):
        """Of the same release: an upgrade changes what runs, an uninstall leaves nothing."""
        told = must_helm("upgrade", "rights", CHART, "--namespace", NAME_SPACE, "--reuse-values", *values(replicas=4))
        self.assertIn(f"https://rights-kinformerd.{NAME_SPACE}.svc", told)
        of = {item["kind"]: item for item in json.loads(cluster().kubectl(
            "-n", NAME_SPACE, "get", "statefulset,pdb,networkpolicy,configmap,role", "-l",
            "app.kubernetes.io/instance=rights", "-o", "json"))["items"]}
        self.assertEqual(of["StatefulSet"]["spec"]["replicas"], 4)
        self.assertEqual({item["name"]: item.get("value") for item in container_of(
            of["StatefulSet"]["spec"]["template"]["spec"])["env"]}["SHARDS"], "4")
        self.assertLess({"PodDisruptionBudget", "NetworkPolicy", "ConfigMap", "Role"}, set(of))
        must_helm("uninstall", "rights", "--namespace", NAME_SPACE)
        left = cluster().kubectl("get", "statefulset,pdb,networkpolicy,configmap,role,clusterrole,clusterrolebinding", "-A",
                                 "-l", "app.kubernetes.io/instance=rights", "-o", "name")
        self.assertEqual(left, "")


if __name__ == "__main__":
    unittest.main()
