"""kubectl on the cache and on the API server itself: the same commands, and their outputs compared, while another
namespace changes all the time."""

import json
import os
import re
import subprocess
import tempfile
import threading
import unittest

from harness import PATIENCE, TOOLS, cluster, config_map, make_gadgets, needs_cluster, wait_until
from test_serve import Served, ask, body_of

KUBECTL = os.path.join(TOOLS, "kubectl")
NAME = "kubectl"
RESOURCES = ("pods", "configmaps", "events", "namespaces", "services", "deployments.apps", "replicasets.apps",
             "gadgets.test.kinformer.dev")


def pod(i):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"p{i}", "namespace": NAME, "labels": {"app": "web", "odd": str(i % 2)}},
            "spec": {"nodeName": f"n{i % 2}", "containers": [{"name": "c", "image": "i:1"}]}}


def event(of):
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": of["metadata"]["name"] + ".1", "namespace": NAME},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": of["metadata"]["name"], "namespace": NAME,
                               "uid": of["metadata"]["uid"]},
            "type": "Warning", "reason": "Tested", "message": "an event of " + of["metadata"]["name"], "count": 3,
            "source": {"component": "test"}, "firstTimestamp": "2026-01-01T00:00:00Z",
            "lastTimestamp": "2026-01-01T00:00:00Z"}


def deployment():
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": NAME},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "d"}}, "template": template}}


def service():
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": NAME},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}


def gadget():
    return {"apiVersion": "test.kinformer.dev/v1", "kind": "Gadget", "metadata": {"name": "g", "namespace": NAME},
            "spec": {"size": 1}}


class Churn:
    """Changes config maps in a namespace of its own until it is left."""

    def __init__(self):
        cluster().make_namespace(NAME + "-churn")
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        i = 0
        while not self.is_over.wait(0.1):
            i += 1
            cluster().kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [
                json.loads(config_map(f"c{j}", NAME + "-churn", str(i))) for j in range(5)]}))

    def stop(self):
        self.is_over.set()
        self.thread.join()


class Running:
    """kubectl beside the test; `lines` is what it printed, without what client-go logs of a watch that kubectl, who
    has seen enough, gives up in the midst of an event."""

    GAVE_UP = re.compile(r"I\d{4} .* reflector\.go.*watch ended with error.*context canceled")

    def __init__(self, kubeconfig, *args):
        self.lines = []
        self.process = subprocess.Popen([KUBECTL, "--kubeconfig", kubeconfig, "-n", NAME, *args],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            if not self.GAVE_UP.match(line):
                self.lines.append(line.rstrip())

    def wait(self):
        """Its exit code, when it ends by itself."""
        code = self.process.wait(PATIENCE)
        self.reader.join()
        self.process.stdout.close()
        return code

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.wait()


def without_ages(text):
    """Ages run on between two commands, and columns are as wide as they are."""
    return re.sub(r" +", " ", re.sub(r"\b\d+(s|m|h|d|m\d+s|h\d+m|d\d+h)\b", "AGE", text))


@needs_cluster("kubectl")
class KubectlTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster()
        make_gadgets()
        cls.cluster.make_namespace(NAME)
        made = [pod(i) for i in range(7)] + [deployment(), service(), gadget()]
        made += [json.loads(config_map(f"c{i}", NAME, labels={"app": "web"})) for i in range(7)]
        cls.apply(made)
        cls.patch_status("p1", {"phase": "Running", "podIP": "10.0.0.1"})
        cls.apply([event(json.loads(cls.cluster.kubectl("get", "pod", f"p{i}", "-n", NAME, "-o", "json")))
                   for i in range(2)])
        cls.churn = Churn()
        cls.addClassCleanup(cls.churn.stop)
        cls.served = cls.enterClassContext(Served(resource=RESOURCES))

    @classmethod
    def apply(cls, objects):
        cls.cluster.kubectl("apply", "-f", "-",
                            stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    @classmethod
    def patch_status(cls, name, status):
        cls.cluster.kubectl("patch", "pod", name, "-n", NAME, "--subresource=status", "--type=merge", "-p",
                            json.dumps({"status": status}))

    def catch_up(self):
        """Until the daemon has what the test wrote."""
        for resource in ("pods", "configmaps", "events"):
            target = f"/api/v1/namespaces/{NAME}/{resource}"
            items = json.loads(self.cluster.kubectl("get", "--raw", target))["items"]
            self.served.wait_for(target, max(int(item["metadata"]["resourceVersion"]) for item in items))

    def assert_same(self, *commands):
        self.catch_up()
        for command in commands:
            with self.subTest(command=command):
                real, ours = self.cluster.kubectl(*command.split()), self.served.kubectl(*command.split())
                self.assertEqual(without_ages(ours), without_ages(real))
                self.assertNotEqual(ours.strip(), "")

    def both(self, *args):
        running = [Running(kubeconfig, *args) for kubeconfig in (self.cluster.kubeconfig(), self.served.kubeconfig)]
        for each in running:
            self.addCleanup(each.stop)
        return running

    def n_watchers(self, name):
        return sum(len(informer["watchers"]) for informer in body_of(self.served, "/debug/state")["informers"]
                   if informer["name"] == name)

    # --- get and describe ---

    def test_get_prints_the_same_tables(self):
        self.assert_same(
            f"get pods -n {NAME}", f"get pods -n {NAME} -o wide", "get pods -A -l app=web", f"get pod p1 p2 -n {NAME}",
            "get pods -A -l app=web --field-selector spec.nodeName=n1", f"get pods -n {NAME} -l odd=1,app!=db -L app",
            f"get pods -A --field-selector status.phase=Running,metadata.namespace={NAME}",
            f"get pods -n {NAME} --chunk-size=3", "get cm -A -l app=web --chunk-size=3 --show-labels",
            f"get pods,cm,svc,deploy -n {NAME}", f"get events -n {NAME} -o wide", f"get gadgets -n {NAME}",
            f"get ns {NAME}", f"get pods -n {NAME} --sort-by=.spec.nodeName", f"events -n {NAME}")

    def test_get_prints_the_same_objects(self):
        self.assert_same(
            f"get pod p1 -n {NAME} -o yaml", f"get pods -n {NAME} -o yaml --chunk-size=3",
            f"get deploy -n {NAME} -o json",
            f"get pods,svc -n {NAME} -o name", f"get gadget g -n {NAME} -o json --show-managed-fields",
            f"get pods -n {NAME} -o jsonpath={{.items[*].metadata.uid}}",
            f"get pods -n {NAME} -o custom-columns=N:.metadata.name,NODE:.spec.nodeName")

    def test_describe_tells_the_same_with_events(self):
        self.assert_same(f"describe pod p1 -n {NAME}", f"describe pods -n {NAME} -l odd=0", f"describe cm c1 -n {NAME}",
                         f"describe deploy d -n {NAME}", f"describe gadget g -n {NAME}")
        self.assertIn("an event of p1", self.served.kubectl("describe", "pod", "p1", "-n", NAME))

    def test_what_is_not_there_is_said_in_the_same_words(self):
        for command in (f"get pod zzz -n {NAME}", f"get gadgets zzz -n {NAME}", "get pod zzz -n nowhere",
                        "get pods -l a=b=c", "get pods --field-selector a=b", f"get nonsense -n {NAME}"):
            with self.subTest(command=command):
                with self.assertRaises(AssertionError) as real:
                    self.cluster.kubectl(*command.split())
                with self.assertRaises(AssertionError) as ours:
                    self.served.kubectl(*command.split())
                self.assertEqual(str(ours.exception), str(real.exception))

    # --- watching ---

    def assert_same_watch(self, *args):
        """Both print the same of the changes to come, in the same order."""
        running = self.both("get", "cm", *args)

        def printed(each, prefix):
            """The words of the lines that tell of objects of that name."""
            return [line.split()[:3] for line in list(each.lines) if re.search(rf"\b{prefix}", line)]

        tries = 0

        def have_begun():
            nonlocal tries
            tries += 1
            self.apply([json.loads(config_map("begin", NAME, str(tries), {"tries": str(tries)}))])
            return all(printed(each, "begin") for each in running)

        wait_until(have_begun, "both watch")
        for value in range(3):
            for i in range(4):
                self.apply([json.loads(config_map(f"w{i}", NAME, str(value)))])
            self.cluster.kubectl("delete", "cm", "-n", NAME, f"w{value}")
        self.cluster.kubectl("delete", "cm", "-n", NAME, "w3")
        self.apply([json.loads(config_map("last", NAME))])
        self.cluster.kubectl("delete", "cm", "-n", NAME, "last", "begin")
        wait_until(lambda: all(len(printed(each, "last")) == 2 for each in running), "both have the last change")
        real, ours = (printed(each, "w[0-9]") for each in running)
        self.assertEqual(ours, real)
        # Two of 4 are made again after their deletion, and one of those once more.
        self.assertEqual(len(real), 12 + 4)
        for each in running:
            self.assertIsNone(each.process.poll(), each.lines)

    def test_a_watch_behind_a_list_prints_the_same_changes(self):
        self.assert_same_watch("-w", "--output-watch-events")

    def test_a_watch_without_a_list_prints_the_same_changes(self):
        self.assert_same_watch("--watch-only", "--output-watch-events", "-o", "name")

    def test_wait_ends_when_it_does_on_the_api_server(self):
        waits = [self.both("wait", "pod/p3", "--for=condition=Ready", "--timeout=110s"),
                 self.both("wait", "cm/c3", "--for=jsonpath={.data.value}=done", "--timeout=110s")]
        # On the API server nothing tells that it has begun to wait, and it refuses to for what is gone.
        for_deletion = Running(self.served.kubeconfig, "wait", "pod/p4", "--for=delete", "--timeout=110s")
        self.addCleanup(for_deletion.stop)
        wait_until(lambda: self.n_watchers("pods") >= 2 and self.n_watchers("configmaps") >= 1,
                   "kubectl waits on the cache")
        self.patch_status("p3", {"conditions": [{"type": "Ready", "status": "True"}]})
        self.apply([json.loads(config_map("c3", NAME, "done", {"app": "web"}))])
        self.cluster.kubectl("delete", "pod", "p4", "-n", NAME, "--force", "--grace-period=0")
        for real, ours in waits:
            self.assertEqual((ours.wait(), real.wait()), (0, 0), (ours.lines, real.lines))
            self.assertEqual(ours.lines, real.lines)
        self.assertEqual(waits[0][1].lines, ["pod/p3 condition met"])
        self.assertEqual((for_deletion.wait(), for_deletion.lines), (0, ["pod/p4 condition met"]))
        missed = self.served.kubectl("wait", "cm/c1", "-n", NAME, "--for=jsonpath={.data.value}=never", "--timeout=1s",
                                     check=False)
        self.assertIn("timed out waiting for the condition", missed)

    # --- discovery ---

    def test_discovery_tells_what_is_cached_as_the_api_server_does(self):
        def rows(text):
            return {line.split()[0] + " " + line.split()[-3]: line.split() for line in text.splitlines()}

        ours = rows(self.served.kubectl("api-resources", "--no-headers"))
        real = rows(self.cluster.kubectl("api-resources", "--no-headers"))
        self.assertEqual(sorted(key.split()[0] for key in ours), sorted(name.split(".")[0] for name in RESOURCES))
        self.assertEqual(ours, {key: real[key] for key in ours})
        self.assertEqual(self.served.kubectl("api-versions").split(), ["apps/v1", "test.kinformer.dev/v1", "v1"])
        self.assertIn("get,list,watch", self.served.kubectl("api-resources", "-o", "wide"))

    def test_a_warm_discovery_cache_asks_for_nothing(self):
        def n_requests():
            metrics = ask(self.served, "/metrics")[2]
            return sum(map(int, re.findall(rb"^kinformer_requests_total{.*} (\d+)$", metrics, re.M)))

        def n_asked_by(*args):
            before = n_requests()
            printed = self.served.kubectl(*args)
            return n_requests() - before - own, printed

        own = -n_requests() + n_requests()
        with tempfile.TemporaryDirectory() as folder:
            get = ("get", "cm", "c1", "-n", NAME, "-o", "name", "--cache-dir", folder)
            self.assertEqual(n_asked_by(*get), (3, "configmap/c1\n"))
            self.assertEqual(n_asked_by(*get), (1, "configmap/c1\n"))

    def test_explain_is_refused_in_plain_words(self):
        self.assertIn("the server could not find the requested resource",
                      self.served.kubectl("explain", "pods", check=False))


if __name__ == "__main__":
    unittest.main()
