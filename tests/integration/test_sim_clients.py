"""kubectl, client-go, controller-runtime and the Python client on kinformer-sim: they find a cluster that does what
they ask for. What each verb says, and what the server has afterwards."""

import json
import os
import re
import stat
import subprocess
import tempfile
import threading
import time
import unittest

from harness import PATIENCE, ROOT, TOOLS, need_cluster, wait_until
from sim import KUBECTL, Sim

POLICY = """
users:
- {name: ada, token: ada-secret, groups: [admins]}
- {name: bob, token: bob-secret}
rules:
- {groups: [admins], apiGroups: ["*"], resources: ["*"], verbs: ["*"]}
- {users: [bob], apiGroups: [""], resources: [pods, configmaps], verbs: [get, list, watch]}
"""

WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.test.kinformer.dev"},
    "spec": {"group": "test.kinformer.dev", "scope": "Namespaced",
             "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wi"]},
             "versions": [{"name": "v1", "served": True, "storage": True,
                           "subresources": {"status": {}},
                           "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                           "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                               "spec": {"type": "object", "required": ["size"], "description": "What it shall be.",
                                        "properties": {"size": {"type": "integer", "minimum": 1}}},
                               "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}}]}}


def widget(name, size):
    return {"apiVersion": "test.kinformer.dev/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size}}


def config_map(name, labels=None, **data):
    metadata = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def deployment(name, replicas=2, image="example/web:1"):
    labels = {"app": name}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels},
                                  "spec": {"containers": [{"name": "web", "image": image}]}}}}


def setUpModule():
    need_cluster("kubectl, client-go")


class Watching:
    """A `kubectl get -w` beside the test; `lines` is what it printed."""

    def __init__(self, kubeconfig, *args):
        self.lines = []
        self.process = subprocess.Popen([KUBECTL, "--kubeconfig", kubeconfig, *args], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def wait_for(self, *lines):
        """Until it has printed lines that begin so, in this order, whatever else."""
        def is_there():
            rest = iter(list(self.lines))
            return all(any(re.match(wanted, line) for line in rest) for wanted in lines)
        wait_until(is_there, f"{lines} among what was watched")

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


class OnSim(unittest.TestCase):
    """Each test has a namespace of its own on one server."""

    ARGUMENTS = ()

    @classmethod
    def setUpClass(cls):
        cls.sim = cls.enterClassContext(Sim(*cls.ARGUMENTS))

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.name_space = re.sub("[^a-z]+", "-", self._testMethodName.removeprefix("test_"))[:50].strip("-")
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name_space}})

    def tearDown(self):
        self.sim.check()

    def kubectl(self, *args, **options):
        return self.sim.kubectl("-n", self.name_space, *args, **options)

    def says(self, wanted, *args, **options):
        """The command succeeds, and prints the text."""
        said = self.kubectl(*args, **options)
        self.assertIn(wanted, said)
        return said

    def refuses(self, wanted, *args, **options):
        """The command fails, and says why."""
        with self.assertRaises(AssertionError) as caught:
            self.kubectl(*args, **options)
        self.assertIn(wanted, str(caught.exception))

    def write(self, *objects):
        path = os.path.join(self.folder, "manifest.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"apiVersion": "v1", "kind": "List", "items": objects} if len(objects) != 1 else objects[0], file)
        return path

    def apply(self, *objects):
        self.kubectl("apply", "-f", self.write(*objects))

    def get(self, *args):
        return json.loads(self.kubectl("get", "-o", "json", *args))

    def names(self, resource, *args):
        return {item["metadata"]["name"] for item in self.get(resource, *args)["items"]}

    def data(self, name):
        return self.get("configmap", name)["data"]

    def watch(self, *args):
        watching = Watching(self.sim.kubeconfig, "-n", self.name_space, "get", "-w", *args)
        self.addCleanup(watching.stop)
        return watching

    def roll_out(self, name):
        self.says("successfully rolled out", "rollout", "status", f"deployment/{name}", f"--timeout={PATIENCE}s")


class Objects(OnSim):
    """Verbs that write and read objects of any kind."""

    def test_create_from_a_file(self):
        path = self.write(config_map("a", x="1"))
        self.says("configmap/a created", "create", "-f", path)
        self.assertEqual(self.data("a"), {"x": "1"})
        self.refuses('Error from server (AlreadyExists): error when creating', "create", "-f", path)
        self.refuses('configmaps "a" already exists', "create", "-f", path)
        self.refuses('Invalid value: "A_B"', "create", "-f", self.write(config_map("A_B")))
        self.refuses('unknown field "dada"', "create", "-f", self.write({**config_map("b"), "dada": {}}))
        self.assertNotIn("b", self.names("configmaps"))

    def test_create_from_arguments(self):
        self.says("configmap/a created", "create", "configmap", "a", "--from-literal=x=1")
        self.assertEqual(self.data("a"), {"x": "1"})
        self.says("secret/s created", "create", "secret", "generic", "s", "--from-literal=p=1")
        self.assertEqual(self.get("secret", "s")["data"], {"p": "MQ=="})
        self.says("deployment.apps/d created", "create", "deployment", "d", "--image=example/d:1", "--replicas=0")
        self.assertEqual(self.get("deployment", "d")["spec"]["template"]["spec"]["containers"][0]["image"],
                         "example/d:1")
        self.says("service/c created", "create", "service", "clusterip", "c", "--tcp=80:8080")
        self.assertEqual(self.get("service", "c")["spec"]["ports"][0]["targetPort"], 8080)
        self.says("serviceaccount/sa created", "create", "serviceaccount", "sa")
        self.says("role.rbac.authorization.k8s.io/r created", "create", "role", "r", "--verb=get", "--resource=pods")
        self.assertEqual(self.get("role", "r")["rules"],
                         [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])
        self.says("job.batch/j created", "create", "job", "j", "--image=example/j:1")
        self.says("namespace/from-arguments created", "create", "namespace", "from-arguments")

    def test_apply_on_the_clients_side(self):
        self.says("configmap/a created", "apply", "-f", self.write(config_map("a", x="1", y="2")))
        self.says("configmap/a unchanged", "apply", "-f", self.write(config_map("a", x="1", y="2")))
        self.kubectl("patch", "configmap", "a", "--type=merge", "-p", '{"data":{"other":"kept"}}')
        self.says("configmap/a configured", "apply", "-f", self.write(config_map("a", x="3")))
        self.assertEqual(self.data("a"), {"x": "3", "other": "kept"})

    def test_apply_merges_lists_by_their_keys(self):
        self.apply(deployment("d", replicas=0))
        self.kubectl("patch", "deployment", "d", "-p", json.dumps({"spec": {"template": {"spec": {
            "containers": [{"name": "side", "image": "example/side:1"}]}}}}))
        self.says("deployment.apps/d configured", "apply", "-f", self.write(deployment("d", 0, "example/web:2")))
        containers = self.get("deployment", "d")["spec"]["template"]["spec"]["containers"]
        self.assertEqual({each["name"]: each["image"] for each in containers},
                         {"web": "example/web:2", "side": "example/side:1"})

    def test_apply_on_the_servers_side(self):
        server_side = ("apply", "--server-side", "-f")
        self.says("configmap/a serverside-applied", *server_side, self.write(config_map("a", x="1", y="1")))
        self.says("configmap/a serverside-applied", *server_side, self.write(config_map("a", x="2")))
        self.assertEqual(self.data("a"), {"x": "2"})
        self.refuses('Apply failed with 1 conflict: conflict with "kubectl": .data.x', *server_side,
                     self.write(config_map("a", x="3", z="3")), "--field-manager=other")
        self.assertEqual(self.data("a"), {"x": "2"})
        self.says("configmap/a serverside-applied", *server_side, self.write(config_map("a", x="3", z="3")),
                  "--field-manager=other", "--force-conflicts")
        self.assertEqual(self.data("a"), {"x": "3", "z": "3"})
        managed = json.loads(self.kubectl("get", "configmap", "a", "-o", "json", "--show-managed-fields"))
        self.assertEqual({(each["manager"], each["operation"]) for each in managed["metadata"]["managedFields"]},
                         {("other", "Apply")})

    def test_replace(self):
        self.apply(config_map("a", x="1", y="1"))
        uid = self.get("configmap", "a")["metadata"]["uid"]
        self.says("configmap/a replaced", "replace", "-f", self.write(config_map("a", x="2")))
        self.assertEqual(self.data("a"), {"x": "2"})
        stale = config_map("a", x="3")
        stale["metadata"]["resourceVersion"] = "1"
        self.refuses("the object has been modified; please apply your changes to the latest version and try again",
                     "replace", "-f", self.write(stale))
        self.refuses('configmaps "b" not found', "replace", "-f", self.write(config_map("b")))
        self.says("configmap/a replaced", "replace", "--force", "-f", self.write(config_map("a", x="4")))
        self.assertEqual(self.data("a"), {"x": "4"})
        self.assertNotEqual(self.get("configmap", "a")["metadata"]["uid"], uid)

    def test_edit(self):
        self.apply(config_map("a", x="before"))
        editor = os.path.join(self.folder, "editor")
        with open(editor, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nsed -i s/before/after/ "$1"\n')
        os.chmod(editor, stat.S_IRWXU)
        done = subprocess.run([KUBECTL, "--kubeconfig", self.sim.kubeconfig, "-n", self.name_space, "edit", "cm", "a"],
                              env={**os.environ, "EDITOR": editor}, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=PATIENCE, check=False)
        self.assertEqual((done.stdout, done.returncode), ("configmap/a edited\n", 0), done.stderr)
        self.assertEqual(self.data("a"), {"x": "after"})

    def test_get(self):
        self.apply(config_map("a", {"app": "x"}, x="1"), config_map("b", {"app": "y"}, x="2"))
        self.assertRegex(self.kubectl("get", "configmaps"), r"(?m)^NAME +DATA +AGE\na +1 +\S+\nb +1 +\S+\n$")
        self.says('  x: "1"', "get", "configmap", "a", "-o", "yaml")
        self.assertEqual(self.kubectl("get", "cm", "-o", "jsonpath={.items[*].data.x}"), "1 2")
        self.assertEqual(self.kubectl("get", "cm", "-l", "app=y", "-o", "name"), "configmap/b\n")
        self.assertEqual(self.names("cm", "--field-selector", "metadata.name=a"), {"a"})
        self.assertEqual(self.names("cm", "--chunk-size=1"), {"a", "b"})
        self.assertRegex(self.kubectl("get", "cm", "--show-labels"), r"a +1 +\S+ +app=x")
        self.assertEqual(self.kubectl("get", "cm", "--sort-by=.metadata.name", "-o",
                                      "custom-columns=N:.metadata.name", "--no-headers"), "a\nb\n")
        self.assertRegex(self.kubectl("get", "cm", "-A"), rf"(?m)^{self.name_space} +a +1 ")
        self.refuses('Error from server (NotFound): configmaps "c" not found', "get", "cm", "c")
        self.assertIn("No resources found", self.kubectl("get", "secrets", check=False))

    def test_get_watches(self):
        self.apply(config_map("a", x="1"))
        rows = self.watch("configmaps", "--no-headers")
        events = self.watch("configmaps", "--output-watch-events")
        names = self.watch("configmap", "a", "-o", "jsonpath={.data.x}{'\\n'}")
        rows.wait_for("a +1")
        events.wait_for("ADDED +a")
        names.wait_for("1")
        self.apply(config_map("a", x="2"))
        self.apply(config_map("b", x="1", y="1"))
        self.kubectl("delete", "configmap", "b")
        self.kubectl("delete", "configmap", "a")
        rows.wait_for("a +1", "a +1", "b +2", "b +2", "a +1")
        events.wait_for("ADDED +a", "MODIFIED +a", "ADDED +b", "DELETED +b", "DELETED +a")
        names.wait_for("1", "2", "2")

    def test_patch(self):
        self.apply(config_map("a", x="1"))
        said = self.kubectl("patch", "cm", "a", "--type=merge", "-p", '{"data":{"x":null,"y":"2"}}')
        self.assertEqual((said, self.data("a")), ("configmap/a patched\n", {"y": "2"}))
        said = self.kubectl("patch", "cm", "a", "--type=merge", "-p", '{"data":{"y":"2"}}')
        self.assertEqual(said, "configmap/a patched (no change)\n")
        self.kubectl("patch", "cm", "a", "--type=json", "-p",
                     '[{"op":"test","path":"/data/y","value":"2"},{"op":"move","from":"/data/y","path":"/data/z"}]')
        self.assertEqual(self.data("a"), {"z": "2"})
        self.refuses("the server rejected our request due to an error in our request", "patch", "cm", "a",
                     "--type=json", "-p", '[{"op":"remove","path":"/data/nothing"}]')
        self.apply(deployment("d", replicas=0))
        self.kubectl("patch", "deployment", "d", "-p",
                     '{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"A","value":"1"}]}]}}}}')
        container, = self.get("deployment", "d")["spec"]["template"]["spec"]["containers"]
        self.assertEqual((container["image"], container["env"]), ("example/web:1", [{"name": "A", "value": "1"}]))
        self.kubectl("patch", "deployment", "d", "--subresource=scale", "--type=merge", "-p", '{"spec":{"replicas":1}}')
        self.assertEqual(self.get("deployment", "d")["spec"]["replicas"], 1)

    def test_label_and_annotate(self):
        self.apply(config_map("a"), config_map("b"))
        self.says("configmap/a labeled", "label", "configmap", "a", "app=x")
        self.refuses("already has a value (x), and --overwrite is false", "label", "configmap", "a", "app=y")
        self.says("configmap/b labeled", "label", "configmaps", "--all", "--overwrite", "app=y")
        self.assertEqual(self.names("configmaps", "-l", "app=y") >= {"a", "b"}, True)
        self.says("configmap/a unlabeled", "label", "configmap", "a", "app-")
        self.says("configmap/a annotated", "annotate", "configmap", "a", "why=so")
        metadata = self.get("configmap", "a")["metadata"]
        self.assertEqual((metadata.get("labels"), metadata["annotations"]["why"]), (None, "so"))

    def test_delete(self):
        self.apply(config_map("a", {"x": "y"}), config_map("b", {"x": "y"}), config_map("c"))
        self.says('configmap "c" deleted', "delete", "configmap", "c")
        self.refuses('configmaps "c" not found', "delete", "configmap", "c")
        self.kubectl("delete", "configmap", "c", "--ignore-not-found")
        self.kubectl("delete", "configmap", "-l", "x=y")
        self.assertEqual(self.names("configmaps") & {"a", "b", "c"}, set())
        path = self.write(config_map("a"), config_map("b"))
        self.kubectl("create", "-f", path)
        self.says('configmap "b" deleted', "delete", "-f", path)
        held = config_map("held")
        held["metadata"]["finalizers"] = ["test.kinformer.dev/held"]
        self.apply(held)
        self.kubectl("delete", "configmap", "held", "--wait=false")
        self.assertIn("deletionTimestamp", self.get("configmap", "held")["metadata"])
        self.kubectl("patch", "configmap", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        self.kubectl("wait", "--for=delete", "configmap/held", f"--timeout={PATIENCE}s")
        self.assertNotIn("held", self.names("configmaps"))

    def test_a_namespace_takes_all_along(self):
        self.apply(config_map("a"), deployment("d"))
        self.roll_out("d")
        self.says(f'namespace "{self.name_space}" deleted', "delete", "namespace", self.name_space,
                  f"--timeout={PATIENCE}s")
        for resource in ("configmaps", "deployments", "replicasets", "pods"):
            self.assertEqual(self.names(resource), set())
        self.refuses("not found", "get", "namespace", self.name_space)

    def test_diff(self):
        self.apply(config_map("a", x="1"))
        path = self.write(config_map("a", x="2"))
        said = self.kubectl("diff", "-f", path, check=False)
        self.assertIn('-  x: "1"\n+  x: "2"\n', said)
        self.assertEqual(self.data("a"), {"x": "1"})
        self.apply(config_map("a", x="2"))
        self.assertEqual(self.kubectl("diff", "-f", path), "")
        self.says("configmap/new created (server dry run)", "apply", "--dry-run=server", "-f",
                  self.write(config_map("new")))
        self.assertNotIn("new", self.names("configmaps"))

    def test_definitions_and_their_objects(self):
        self.says("created", "apply", "-f", self.write(WIDGETS))
        self.says("condition met", "wait", "--for=condition=Established", "crd/widgets.test.kinformer.dev")
        self.says("widget.test.kinformer.dev/w created", "apply", "-f", self.write(widget("w", 3)))
        rows = self.watch("widgets", "--no-headers")
        rows.wait_for("w +3")
        self.says("widget.test.kinformer.dev/w configured", "apply", "-f", self.write(widget("w", 4)))
        rows.wait_for("w +3", "w +4")
        self.assertRegex(self.kubectl("get", "wi"), r"NAME +SIZE\nw +4\n")
        self.refuses("spec.size: Invalid value: 0", "apply", "-f", self.write(widget("v", 0)))
        self.refuses("spec.size: Required value", "apply", "-f",
                     self.write({**widget("v", 1), "spec": {}}), "--validate=false")
        self.kubectl("patch", "widget", "w", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Big"}}')
        self.says("condition met", "wait", "--for=jsonpath={.status.phase}=Big", "widget/w")
        self.assertRegex(self.kubectl("explain", "widget.spec"), "(?s)KIND: +Widget.*What it shall be.*size.*integer")
        self.says('widget.test.kinformer.dev "w" deleted', "delete", "-f", self.write(widget("w", 4)))
        self.kubectl("delete", "crd", "widgets.test.kinformer.dev")
        self.assertNotIn("widgets", self.kubectl("api-resources", "--api-group=test.kinformer.dev", check=False))


class Workloads(OnSim):
    """Verbs about what runs."""

    ARGUMENTS = ("--seed", "3")

    def pods(self):
        return {item["metadata"]["name"]: item for item in self.get("pods")["items"]}

    def test_rollouts(self):
        self.apply(deployment("web"))
        self.roll_out("web")
        self.assertEqual([pod["status"]["phase"] for pod in self.pods().values()], ["Running"] * 2)
        self.says("deployment.apps/web image updated", "set", "image", "deployment/web", "web=example/web:2")
        self.roll_out("web")
        self.assertEqual(re.findall(r"(?m)^(\d+) ", self.kubectl("rollout", "history", "deployment/web")), ["1", "2"])
        self.says("example/web:1", "rollout", "history", "deployment/web", "--revision=1")
        self.says("deployment.apps/web rolled back", "rollout", "undo", "deployment/web")
        self.roll_out("web")
        self.assertEqual(re.findall(r"(?m)^(\d+) ", self.kubectl("rollout", "history", "deployment/web")), ["2", "3"])
        wait_until(lambda: {pod["spec"]["containers"][0]["image"] for pod in self.pods().values()} ==
                   {"example/web:1"}, "pods of the first revision alone")
        before = set(self.pods())
        self.says("deployment.apps/web restarted", "rollout", "restart", "deployment/web")
        self.roll_out("web")
        wait_until(lambda: len(self.pods()) == 2 and not before & set(self.pods()), "all pods anew")
        self.says("deployment.apps/web paused", "rollout", "pause", "deployment/web")
        self.says("deployment.apps/web resumed", "rollout", "resume", "deployment/web")

    def test_scale(self):
        self.apply(deployment("web", 1))
        self.roll_out("web")
        self.says("deployment.apps/web scaled", "scale", "deployment", "web", "--replicas=3")
        self.says("condition met", "wait", "--for=jsonpath={.status.availableReplicas}=3", "deployment/web",
                  f"--timeout={PATIENCE}s")
        self.refuses("Expected replicas to be 7, was 3", "scale", "deployment", "web", "--current-replicas=7",
                     "--replicas=2")
        self.kubectl("scale", "deployment", "web", "--replicas=0")
        wait_until(lambda: not self.pods(), "no pods")

    def test_wait(self):
        self.apply(deployment("web"))
        self.says("deployment.apps/web condition met", "wait", "--for=condition=Available", "deployment/web",
                  f"--timeout={PATIENCE}s")
        self.says("condition met", "wait", "--for=condition=Ready", "pod", "-l", "app=web", f"--timeout={PATIENCE}s")
        self.refuses("timed out waiting for the condition", "wait", "--for=condition=Never", "deployment/web",
                     "--timeout=1s")

    def test_cascades(self):
        for policy, remains in (("background", False), ("foreground", False), ("orphan", True)):
            with self.subTest(policy=policy):
                self.apply(deployment("web"))
                self.roll_out("web")
                self.kubectl("delete", "deployment", "web", f"--cascade={policy}")
                if policy != "orphan":
                    wait_until(lambda: not self.names("replicasets") and not self.pods(), "all of it is gone")
                    continue
                time.sleep(1)  # that nothing happens takes time
                self.assertEqual((len(self.names("replicasets")), len(self.pods())), (1, 2))
                replicaset, = self.get("replicasets")["items"]
                self.assertNotIn("ownerReferences", replicaset["metadata"])
                self.assertEqual(remains, True)

    def test_run_expose_logs_and_events(self):
        self.says("pod/one created", "run", "one", "--image=example/one:1", "--labels=app=one")
        self.says("condition met", "wait", "--for=condition=Ready", "pod/one", f"--timeout={PATIENCE}s")
        self.assertNotEqual(self.kubectl("logs", "one"), "")
        self.refuses("not for kinformer-sim, where no container runs", "exec", "one", "--", "ls")
        self.says("service/one exposed", "expose", "pod", "one", "--port=80")
        self.assertEqual(self.get("service", "one")["spec"]["selector"], {"app": "one"})
        events = self.kubectl("events", "--for", "pod/one")
        for reason in ("Scheduled", "Pulled", "Started"):
            self.assertIn(reason, events)
        self.assertRegex(self.kubectl("get", "events"), "Normal +Scheduled +pod/one ")
        self.kubectl("delete", "pod", "one")
        self.assertEqual(self.pods(), {})

    def test_events_of_either_group_are_shown(self):
        self.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "foo"}})
        about = {"apiVersion": "v1", "kind": "ConfigMap", "name": "foo", "namespace": self.name_space,
                 "uid": self.get("configmap", "foo")["metadata"]["uid"]}
        self.kubectl("create", "-f", self.write({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "foo.1"}, "regarding": about,
            "eventTime": "2020-01-01T00:00:00.000000Z", "reason": "Reconciled", "type": "Normal", "action": "Reconcile",
            "note": "all is well", "reportingController": "example.com/c", "reportingInstance": "c-1"}))
        for command in (("events", "--for", "configmap/foo"), ("get", "events"), ("describe", "configmap", "foo")):
            self.assertRegex(self.kubectl(*command), "Reconciled .*all is well")

    def test_describe(self):
        self.apply(deployment("web"))
        self.roll_out("web")
        said = self.kubectl("describe", "deployment", "web")
        self.assertRegex(said, r"Replicas: +2 desired \| 2 updated \| 2 total \| 2 available \| 0 unavailable")
        self.assertRegex(said, r"NewReplicaSet: +web-\S+ \(2/2 replicas created\)")
        self.assertIn("ScalingReplicaSet", said)
        pod = sorted(self.pods())[0]
        said = self.kubectl("describe", "pod", pod)
        for wanted in ("Status: +Running", "Image: +example/web:1", "Ready +True", "Node: +node-", "Scheduled",
                       "Controlled By: +ReplicaSet/web-"):
            self.assertRegex(said, wanted)
        node = self.get("pod", pod)["spec"]["nodeName"]
        said = self.kubectl("describe", "node", node)
        for wanted in ("Ready +True", "InternalIP: +172", "Kubelet Version: +v1", pod):
            self.assertRegex(said, wanted)

    def test_exec_and_the_like_say_that_nothing_runs(self):
        self.apply(deployment("web", 1))
        self.roll_out("web")
        for command in (("exec", "deploy/web", "--", "true"), ("attach", "deploy/web"),
                        ("port-forward", "deploy/web", ":80")):
            with self.subTest(command=command):
                self.refuses("", *command)
                self.sim.check()


class Nodes(OnSim):
    """They come up by themselves, and are drained."""

    def ready(self):
        return {node["metadata"]["name"]: next((each["status"] for each in node["status"].get("conditions", ())
                                                if each["type"] == "Ready"), None) for node in self.get("nodes")["items"]}

    def test_a_first_node_is_there_for_the_first_pod(self):
        with Sim() as sim:
            self.assertEqual(sim.kubectl("get", "nodes", "-o", "name"), "")
            sim.kubectl("apply", "-f", self.write(deployment("web", 3)))
            self.assertIn("successfully rolled out", sim.kubectl("rollout", "status", "deployment/web"))
            self.assertEqual(sim.kubectl("get", "nodes", "-o", "name"), "node/node-1\n")

    def test_drain(self):
        self.apply(*({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in ("n1", "n2")))
        wait_until(lambda: self.ready() == {"n1": "True", "n2": "True"}, "both are ready")
        self.assertRegex(self.kubectl("get", "nodes"), r"n1 +Ready +<none> +\S+ +v1\.")
        self.assertEqual(self.get("node", "n1")["spec"], {})
        self.apply(deployment("web", 4))
        self.roll_out("web")
        self.says("node/n1 cordoned", "cordon", "n1")
        self.says("n1     Ready,SchedulingDisabled", "get", "node", "n1")
        said = self.kubectl("drain", "n1", f"--timeout={PATIENCE}s")
        self.assertRegex(said, rf"(?s)evicting pod {self.name_space}/web-.*node/n1 drained")
        self.roll_out("web")
        wait_until(lambda: [pod["spec"].get("nodeName") for pod in self.get("pods")["items"]] == ["n2"] * 4,
                   "all pods are on the other node")
        self.says("node/n1 uncordoned", "uncordon", "n1")
        self.kubectl("taint", "nodes", "n1", "k=v:NoSchedule")
        self.assertEqual(self.get("node", "n1")["spec"]["taints"], [{"effect": "NoSchedule", "key": "k", "value": "v"}])
        self.kubectl("delete", "node", "n1")
        self.assertEqual(self.ready(), {"n2": "True"})


class Discovery(OnSim):
    """Verbs that ask what there is."""

    def test_api_resources_and_versions(self):
        said = self.kubectl("api-resources")
        for wanted in (r"configmaps +cm +v1 +true +ConfigMap", r"deployments +deploy +apps/v1 +true +Deployment",
                       r"nodes +no +v1 +false +Node", r"leases +coordination.k8s.io/v1 +true +Lease"):
            self.assertRegex(said, wanted)
        self.assertLess({"v1", "apps/v1", "batch/v1", "coordination.k8s.io/v1"},
                        set(self.kubectl("api-versions").split()))
        self.assertIn("configmaps", self.kubectl("api-resources", "--verbs=watch,patch", "-o", "name").split())
        self.assertRegex(self.kubectl("version"), r"Server Version: v1\.")

    def test_explain(self):
        self.assertRegex(self.kubectl("explain", "deployment.spec.replicas"), "FIELD: replicas <integer>")
        self.assertRegex(self.kubectl("explain", "pod.spec.containers"), r"(?s)<\[\]Container>.*imagePullPolicy")
        self.refuses('field "nothing" does not exist', "explain", "pod.spec.nothing")

    def test_auth(self):
        self.assertEqual(self.kubectl("auth", "can-i", "delete", "nodes"), "yes\n")
        self.says("Username", "auth", "whoami")
        self.says("*.*", "auth", "can-i", "--list")


class Users(unittest.TestCase):
    """Two of them, over TLS: one may do everything, one reads."""

    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        policy = os.path.join(cls.folder, "policy.yaml")
        with open(policy, "w", encoding="utf-8") as file:
            file.write(POLICY)
        cls.sim = cls.enterClassContext(Sim("--tls", "--policy", policy))

    def kubectl(self, user, *args, **options):
        return self.sim.kubectl("--user", "", "--token", f"{user}-secret", *args, **options)

    def test_each_may_what_the_policy_says(self):
        manifest = json.dumps(config_map("a", x="1"))
        self.assertEqual(self.kubectl("ada", "apply", "-f", "-", stdin=manifest), "configmap/a created\n")
        self.assertEqual(self.kubectl("bob", "get", "configmap", "a", "-o", "jsonpath={.data.x}"), "1")
        for args, who in ((("delete", "configmap", "a"), "delete resource \"configmaps\""),
                          (("get", "secrets"), 'list resource "secrets"')):
            said = self.kubectl("bob", *args, check=False)
            self.assertIn("Error from server (Forbidden): ", said)
            self.assertIn(f'User "bob" cannot {who} in API group "" in the namespace "default"', said)
        self.assertEqual(self.kubectl("ada", "get", "configmap", "a", "-o", "name"), "configmap/a\n")

    def test_can_i(self):
        self.assertEqual(self.kubectl("ada", "auth", "can-i", "create", "deployments"), "yes\n")
        self.assertEqual(self.kubectl("bob", "auth", "can-i", "list", "pods"), "yes\n")
        self.assertEqual(self.kubectl("bob", "auth", "can-i", "create", "pods", check=False), "no\n")
        self.assertRegex(self.kubectl("bob", "auth", "can-i", "--list"), r"pods +\[\] +\[\] +\[get list watch\]")

    def test_who_am_i(self):
        self.assertRegex(self.kubectl("ada", "auth", "whoami"), r"(?s)Username +ada\n.*admins")
        self.assertIn("Unauthorized", self.kubectl("nobody", "get", "pods", check=False))


class ClientGo(unittest.TestCase):
    """client-go's informers and leader election, and a manager of controller-runtime: tests/cluster/cmd/simclient."""

    def run_checks(self, *args):
        with Sim() as sim:
            done = subprocess.run([os.path.join(TOOLS, "simclient"), "-kubeconfig", sim.kubeconfig, *args],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=3 * PATIENCE, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout.splitlines()

    def test_informers_end_with_what_the_server_has(self):
        self.assertEqual(len(self.run_checks("informers")), 15)

    def test_leaders_take_turns(self):
        self.assertEqual(len(self.run_checks("election")), 1)

    def test_a_manager_reconciles(self):
        self.assertEqual(len(self.run_checks("manager")), 6)


class PythonClient(OnSim):
    """The program of test_python_client.py, which compares what it reads with a real API server, and writes here."""

    FOLDER = os.path.join(ROOT, "tests", "clients", "python")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run([os.path.join(cls.FOLDER, "install.sh")], check=True, timeout=5 * PATIENCE)
        cls.sim.kubectl("apply", "-f", os.path.join(ROOT, "tests", "integration", "gadgets.yaml"))

    def start(self, verb):
        program = subprocess.Popen(
            [os.path.join(ROOT, "build", "clients", "python", "bin", "python"), "-B",
             os.path.join(self.FOLDER, "client.py"), self.sim.kubeconfig, self.name_space, verb,
             os.path.join(self.folder, "cache")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        for end in (program.stdout.close, program.wait, program.kill):
            self.addCleanup(end)
        return program

    def end(self, program):
        lines = [json.loads(line) for line in program.communicate(timeout=PATIENCE)[0].splitlines()]
        self.assertEqual(program.returncode, 0)
        return lines

    def test_it_reads(self):
        self.apply(*(config_map(f"c{i}", {"i": str(i % 2)}) for i in range(5)))
        whole, odd, one, read, refusal, _ = self.end(self.start("list"))
        names = [[item["metadata"]["name"] for item in items] for items in (whole, odd, one, read)]
        self.assertEqual(names, [["c0", "c1", "c2", "c3", "c4"], ["c1", "c3"], ["c1"], ["c1"]])
        self.assertEqual((refusal[0], refusal[1]["reason"]), (404, "NotFound"))
        self.assertEqual([len(page) for page in self.end(self.start("pages"))], [2, 2, 1])

    def test_it_watches(self):
        program = self.start("watch")
        self.assertEqual(json.loads(program.stdout.readline()), "listed")
        for i in range(3):
            self.apply(config_map("w", i=str(i)))
        self.kubectl("delete", "configmap", "w")
        self.apply(config_map("last"))
        self.assertEqual([event[0] for event in self.end(program)],
                         ["ADDED", "MODIFIED", "MODIFIED", "DELETED", "ADDED"])

    def test_it_writes(self):
        self.assertEqual(self.end(self.start("write")), [[409, "AlreadyExists"], {"x": "2"}, {"y": "3"}, "Success",
                                                         {"size": 2}, "available"])
        self.assertEqual((self.names("configmaps"), self.names("gadgets")), (set(), {"applied"}))


if __name__ == "__main__":
    unittest.main()
