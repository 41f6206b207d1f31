"""examples/sample-controller, configmap-reloader and node-agent as they are run: what they do, and that they ask for nothing
when there is nothing to do."""

import json
import os
import re
import subprocess
import tempfile
import time
import unittest

from harness import (IS_SIMULATED, PATIENCE, ROOT, Example, Proxy, cluster, fnv1a64, needs_sim,
                     wait_until)
from sim import Sim

SPACE = "examples"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{SPACE}/deployments"
CONFIG_MAPS = f"/api/v1/namespaces/{SPACE}/configmaps"
FOOS = f"/apis/sample.kinformer.dev/v1/namespaces/{SPACE}/foos"
PODS = f"/api/v1/namespaces/{SPACE}/pods"
FOLDER = tempfile.TemporaryDirectory(prefix="kinformer-examples-")
SAMPLE = os.path.join(ROOT, "examples", "sample-controller")
REST_S = 1.5


def setUpModule():
    cluster().make_namespace(SPACE)
    cluster().kubectl("apply", "-f", os.path.join(SAMPLE, "crd.yaml"))
    cluster().kubectl("wait", "--for=condition=Established", "crd/foos.sample.kinformer.dev")
    wait_until(are_foos_served, "their storage")


def tearDownModule():
    FOLDER.cleanup()


# --- requests ---

def send(method, target, body=None, kind="application/merge-patch+json", connect=None):
    """The answer, None for 404."""
    connection = (connect or cluster().connect)()
    try:
        connection.request(method, target, body=None if body is None else json.dumps(body),
                           headers={"Content-Type": kind if method == "PATCH" else "application/json"})
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    if answer.status == 404:
        return None
    if answer.status >= 300:
        raise AssertionError(f"{method} {target}: {answer.status} {text[:1000]}")
    return json.loads(text)


def get(collection, name):
    return send("GET", f"{collection}/{name}")


def put(collection, name, **rest):
    metadata = {"name": name, "namespace": SPACE, **rest.pop("metadata", {})}
    return send("POST", collection, {"metadata": metadata, **rest})


def patch(collection, name, **body):
    return send("PATCH", f"{collection}/{name}", body)


def delete(collection, name):
    return send("DELETE", f"{collection}/{name}", {"propagationPolicy": "Background", "gracePeriodSeconds": 0})


def delete_all(*collections):
    for collection in collections:
        for item in send("GET", collection)["items"]:
            if item["metadata"]["name"] != "kube-root-ca.crt":
                delete(collection, item["metadata"]["name"])
        wait_until(lambda c=collection: all(item["metadata"]["name"] == "kube-root-ca.crt"
                                            for item in send("GET", c)["items"]), "all are gone")


def n_writes(resource, verbs=("create", "post", "update", "put", "patch", "apply", "delete")):
    """How many requests to change such objects either server has answered, refused ones included."""
    n = 0
    for line in cluster().kubectl("get", "--raw", "/metrics").splitlines():
        found = re.match(r"(?:kinformer_requests|apiserver_request)_total\{(.*)\} (\S+)$", line)
        labels = dict(re.findall(r'(\w+)="([^"]*)"', found.group(1))) if found else {}
        if labels.get("resource", "").split(".")[0] == resource and labels["verb"].lower() in verbs:
            n += int(float(found.group(2)))
    return n


class Asked:
    """A proxy that knows whether somebody behind it has asked for something."""

    def __init__(self, name):
        self.proxy = Proxy()
        self.kubeconfig = self.proxy.kubeconfig(FOLDER.name, name)

    def wait_at_rest(self):
        """Until no byte is sent for a while."""
        def is_at_rest():
            before = self.proxy.n_sent
            time.sleep(REST_S)
            return self.proxy.n_sent == before
        wait_until(is_at_rest, "no more requests", 30)


class ExampleCase(unittest.TestCase):
    program = None
    collections = ()

    def setUp(self):
        self.asked = Asked(self.program)
        self.addCleanup(self.asked.proxy.refuse)
        self.addCleanup(delete_all, *self.collections)

    def start(self, *args, **kwargs):
        example = Example(self.program, *args, kubeconfig=self.asked.kubeconfig, **kwargs)
        self.addCleanup(example.__exit__, None)
        return example


# --- sample-controller ---

def are_foos_served():
    """A moment after they are established; 429 until then."""
    try:
        return send("GET", FOOS) is not None
    except AssertionError:
        return False


def put_foo(name, **spec):
    return put(FOOS, name, apiVersion="sample.kinformer.dev/v1", kind="Foo", spec=spec)


def pod_with(**container):
    return {"containers": [{"name": "main", "image": "image", **container}]}


def put_deployment(name, pod=None, **metadata):
    return put(DEPLOYMENTS, name, metadata=metadata, spec={
        "replicas": 1, "selector": {"matchLabels": {"is": name}},
        "template": {"metadata": {"labels": {"is": name}},
                     "spec": pod or pod_with()}})


def replicas(name):
    """None: there is no such deployment."""
    deployment = get(DEPLOYMENTS, name)
    return deployment and deployment["spec"]["replicas"]


def events(reason, name):
    items = send("GET", f"/apis/events.k8s.io/v1/namespaces/{SPACE}/events")["items"]
    return [event for event in items if event["reason"] == reason and event["regarding"]["name"] == name]


class SampleController(ExampleCase):
    program = "sample-controller"
    collections = (FOOS, DEPLOYMENTS)

    def wait_replicas(self, name, n):
        wait_until(lambda: replicas(name) == n, f"{n} replicas of {name}")

    def test_the_manifest_beside_it_works(self):
        cluster().kubectl("apply", "-f", os.path.join(SAMPLE, "foo.yaml"))
        deployments, foos = (target.replace(SPACE, "default") for target in (DEPLOYMENTS, FOOS))
        self.addCleanup(delete, deployments, "example")
        self.addCleanup(delete, foos, "example")
        sample = self.start()
        deployment = wait_until(lambda: get(deployments, "example"), "a deployment")
        self.assertEqual(deployment["spec"]["replicas"], 2)
        sample.stop()

    def test_a_deployment_follows_its_foo_and_the_status_follows_it(self):
        sample = self.start()
        foo = put_foo("a", deploymentName="web", replicas=2)
        self.wait_replicas("web", 2)
        self.assertEqual(get(DEPLOYMENTS, "web")["metadata"]["ownerReferences"], [{
            "apiVersion": "sample.kinformer.dev/v1", "kind": "Foo", "name": "a", "uid": foo["metadata"]["uid"],
            "controller": True, "blockOwnerDeletion": True}])
        patch(DEPLOYMENTS, "web/status", status={"replicas": 2, "readyReplicas": 1, "availableReplicas": 1})
        wait_until(lambda: get(FOOS, "a").get("status") == {"availableReplicas": 1}, "the status")
        patch(FOOS, "a", spec={"replicas": 4})
        self.wait_replicas("web", 4)
        patch(DEPLOYMENTS, "web", spec={"replicas": 7})
        self.wait_replicas("web", 4)
        patch(FOOS, "a", spec={"deploymentName": "other", "replicas": None})
        self.wait_replicas("other", 1)
        patch(DEPLOYMENTS, "other", spec={"replicas": 7})
        self.asked.wait_at_rest()
        self.assertEqual((replicas("web"), replicas("other")), (4, 7))
        uid = get(DEPLOYMENTS, "other")["metadata"]["uid"]
        delete(DEPLOYMENTS, "other")
        self.wait_replicas("other", 1)
        self.assertNotEqual(get(DEPLOYMENTS, "other")["metadata"]["uid"], uid)
        wait_until(lambda: get(FOOS, "a").get("status") == {"availableReplicas": 0}, "the status of the new one")
        wait_until(lambda: events("Created", "a"), "an event")
        self.asked.wait_at_rest()
        sample.stop()
        # Other tests may have left Deployments that have no status.
        self.assertEqual([line for line in sample.log_text().splitlines()
                          if " warn " in line and "a path names nothing" not in line], [])

    def test_anothers_deployment_is_left_alone_and_an_event_says_so(self):
        foreign = put_deployment("taken")
        put_foo("first", deploymentName="shared")
        sample = self.start()
        self.wait_replicas("shared", 1)
        self.asked.wait_at_rest()
        n = n_writes("deployments")
        put_foo("late", deploymentName="taken", replicas=3)
        put_foo("second", deploymentName="shared", replicas=3)
        for name in ("late", "second"):
            [event] = wait_until(lambda n=name: events("NotOurs", n), "an event")
            self.assertEqual((event["type"], event["related"]["kind"]), ("Warning", "Deployment"))
            self.assertNotIn("status", get(FOOS, name))
        self.assertEqual((replicas("taken"), replicas("shared")), (1, 1))
        self.assertEqual(get(DEPLOYMENTS, "taken")["metadata"]["resourceVersion"],
                         foreign["metadata"]["resourceVersion"])
        self.assertEqual(n_writes("deployments"), n)
        owner = {"apiVersion": "sample.kinformer.dev/v1", "kind": "Foo", "name": "helper",
                 "uid": put_foo("helper")["metadata"]["uid"]}  # one of its owners, but not the one that controls it
        put_deployment("helped", ownerReferences=[owner])
        patch(FOOS, "helper", spec={"deploymentName": "helped", "replicas": 3})
        wait_until(lambda: events("NotOurs", "helper"), "an event")
        self.assertEqual(replicas("helped"), 1)
        delete(DEPLOYMENTS, "taken")
        self.wait_replicas("taken", 3)
        sample.stop()

    @needs_sim("a server of its own")
    def test_what_is_made_before_the_cache_knows_is_not_taken_over(self):
        foreign = {"metadata": {"name": "unseen"}, "spec": {
            "replicas": 1, "selector": {"matchLabels": {"is": "x"}},
            "template": {"metadata": {"labels": {"is": "x"}}, "spec": pod_with()}}}
        deployments, foos = (target.replace(SPACE, "default") for target in (DEPLOYMENTS, FOOS))
        with Sim("--load", os.path.join(SAMPLE, "crd.yaml"), "--fault", "watch deployments.apps hang",
                 "--fault-listen", "127.0.0.1:0", "--no-workloads") as sim, \
                Example(self.program, kubeconfig=sim.kubeconfig) as sample:
            wait_until(lambda: sample.log_text().count("listed") == 2, "the lists")
            send("POST", deployments, foreign, connect=sim.open)
            send("POST", foos, {"metadata": {"name": "a"}, "spec": {"deploymentName": "unseen", "replicas": 5}},
                 connect=sim.open)
            wait_until(lambda: sum(request["verb"] == "create" and request["target"].startswith(deployments)
                                   for request in sim.control("GET", "/requests")[1]["requests"]) > 1, "its try")
            sim.control("DELETE", "/faults")
            sim.act("drop")
            [event] = wait_until(lambda: send("GET", "/apis/events.k8s.io/v1/events", connect=sim.open)["items"], "an event")
            self.assertEqual((event["reason"], event["regarding"]["name"]), ("NotOurs", "a"))
            self.assertEqual(send("GET", deployments + "/unseen", connect=sim.open)["spec"]["replicas"], 1)
            sample.stop()

    def test_bad_foos_are_not_tried_again_and_stop_nobody(self):
        sample = self.start()
        put(FOOS, "empty", apiVersion="sample.kinformer.dev/v1", kind="Foo")
        put_foo("nameless", replicas=1)
        put_foo("blank", deploymentName="")
        put_foo("odd", deploymentName="Not a name/../x")
        put_foo("long", deploymentName="x" * 1000)
        put_foo("good", deploymentName="good")
        self.wait_replicas("good", 1)
        self.asked.wait_at_rest()
        self.assertEqual([item["metadata"]["name"] for item in send("GET", DEPLOYMENTS)["items"]], ["good"])
        self.assertIn("spec.deploymentName is no name", sample.log_text())
        patch(FOOS, "nameless", spec={"deploymentName": "named"})
        self.wait_replicas("named", 1)
        sample.stop()

    def test_a_deleted_foo_leaves_its_deployment_to_the_garbage_collector(self):
        sample = self.start()
        put_foo("a", deploymentName="orphan")
        self.wait_replicas("orphan", 1)
        self.asked.wait_at_rest()
        n = n_writes("deployments", ("delete",))
        delete(FOOS, "a")
        if IS_SIMULATED:  # which collects
            self.wait_replicas("orphan", None)
        self.asked.wait_at_rest()
        self.assertEqual(n_writes("deployments", ("delete",)), n)
        sample.stop()

    def test_killed_in_the_midst_it_goes_on(self):
        for i in range(3):
            sample = self.start()
            for j in range(5):
                put_foo(f"foo-{i}-{j}", deploymentName=f"web-{i}-{j}", replicas=1)
                if j == 2:
                    sample.kill()
            for j in range(5 * i):
                patch(FOOS, f"foo-{j // 5}-{j % 5}", spec={"replicas": i + 1})
        before = {item["metadata"]["name"]: item["metadata"]["uid"] for item in send("GET", DEPLOYMENTS)["items"]}
        sample = self.start()
        for i in range(3):
            for j in range(5):
                self.wait_replicas(f"web-{i}-{j}", 3 if i < 2 else 1)
                wait_until(lambda i=i, j=j: "status" in get(FOOS, f"foo-{i}-{j}"), "a status")
        after = {item["metadata"]["name"]: item["metadata"]["uid"] for item in send("GET", DEPLOYMENTS)["items"]}
        self.assertEqual(len(after), 15)
        self.assertEqual(before, {name: after[name] for name in before})
        sample.stop()
        n = n_writes("deployments")
        sample = self.start()
        wait_until(lambda: sample.log_text().count("listed") == 2, "the lists")
        self.asked.wait_at_rest()
        self.assertEqual(n_writes("deployments"), n)
        sample.stop()

    def test_each_of_three_shards_has_its_foos(self):
        shards = [self.start("--shards", "3", "--shard", str(i)) for i in range(3)]
        for shard in shards:
            wait_until(lambda s=shard: "leads lease=" in s.log_text(), "each leads")
        for i in range(12):
            put_foo(f"foo-{i}", deploymentName=f"web-{i}", replicas=1)
        for i in range(12):
            self.wait_replicas(f"web-{i}", 1)
        # What one has left nobody does, until its part has another one.
        hashes = [int(fnv1a64(get(FOOS, f"foo-{i}")["metadata"]["uid"].encode()), 16) for i in range(12)]
        left = {f"web-{i}" for i, value in enumerate(hashes) if 3 * value >> 64 == 1}
        shards[1].stop()
        for i in range(12):
            patch(FOOS, f"foo-{i}", spec={"replicas": 2})
        for name in {f"web-{i}" for i in range(12)} - left:
            self.wait_replicas(name, 2)
        time.sleep(REST_S)
        self.assertEqual({name for name in (f"web-{i}" for i in range(12)) if replicas(name) == 1}, left)
        again = self.start("--shards", "3", "--shard", "1")
        for name in left:
            self.wait_replicas(name, 2)
        for shard in (shards[0], shards[2], again):
            shard.stop()

    def test_a_command_line_that_is_none_starts_nothing(self):
        """What is misspelt may be the wish that one alone acts; an empty POD_INDEX is no shard 0."""
        for args in (("--leader-elct",), ("--help",), ("--shards", "3"), ("--shards", "3", "--shard", ""),
                     ("--shards", "3x", "--shard", "0"), ("--leader-elect", "--shards", "3", "--shard", "0")):
            with self.subTest(args), self.start(*args) as sample:
                self.assertEqual(sample.process.wait(PATIENCE), 2)
                self.assertIn("usage: sample-controller [--leader-elect", sample.log_text())

    def test_one_of_two_acts_and_hands_over(self):
        first = self.start("--leader-elect")
        wait_until(lambda: "leads lease=" in first.log_text(), "the first leads")
        second = self.start("--leader-elect")
        put_foo("a", deploymentName="one")
        self.wait_replicas("one", 1)
        self.assertNotIn("leads lease=", second.log_text())
        first.stop()
        put_foo("b", deploymentName="two")
        self.wait_replicas("two", 1)
        second.stop()


# --- configmap-reloader ---

HASH = "kinformer.dev/config-hash"
SECRETS = f"/api/v1/namespaces/{SPACE}/secrets"
RELOAD = {"annotations": {"kinformer.dev/reload": "true"}}


ENV_FROM = {"envFrom": [{"configMapRef": {"name": "settings"}}]}
# All ways to use one.
MANY = {
    "volumes": [{"name": "a", "configMap": {"name": "m1"}}, {"name": "b", "secret": {"secretName": "s1"}},
                {"name": "c", "projected": {"sources": [{"configMap": {"name": "m2"}}, {"secret": {"name": "s2"}}]}}],
    "containers": [{"name": "main", "image": "image",
                    "envFrom": [{"configMapRef": {"name": "m3"}}, {"secretRef": {"name": "s3"}}],
                    "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m4", "key": "value"}}},
                            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s4", "key": "value"}}}]}],
    "initContainers": [{"name": "init", "image": "image",
                        "envFrom": [{"configMapRef": {"name": "m5"}}, {"secretRef": {"name": "s5"}}],
                        "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m6", "key": "value"}}},
                                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s6", "key": "value"}}}]}],
}


def template_hash(name, collection=DEPLOYMENTS):
    return get(collection, name)["spec"]["template"]["metadata"].get("annotations", {}).get(HASH)


class ConfigMapReloader(ExampleCase):
    program = "configmap-reloader"
    collections = (DEPLOYMENTS, CONFIG_MAPS, SECRETS)

    def expect_patches(self, *names, n=1, change):
        """`change` leads to so many patches of each of these, and to no other."""
        before = {name: (get(DEPLOYMENTS, name)["metadata"]["generation"], template_hash(name)) for name in names}
        n_before = n_writes("deployments")
        change()
        for name, (_, old) in before.items():
            wait_until(lambda name=name, old=old: n == 0 or template_hash(name) != old, f"a patch of {name}")
        self.asked.wait_at_rest()
        for name, (generation, _) in before.items():
            self.assertEqual(get(DEPLOYMENTS, name)["metadata"]["generation"], generation + n, name)
        self.assertEqual(n_writes("deployments"), n_before + n * len(names))

    def test_a_change_leads_to_exactly_one_patch(self):
        put(CONFIG_MAPS, "settings", data={"value": "1"})
        put(CONFIG_MAPS, "unused", data={"value": "1"})
        put_deployment("a", pod_with(**ENV_FROM), **RELOAD)
        put_deployment("b", pod_with(**ENV_FROM), **RELOAD)
        put_deployment("c", pod_with(**ENV_FROM), annotations={"kinformer.dev/reload": "yes, please"})
        put_deployment("d", pod_with(**ENV_FROM))
        put_deployment("e", **RELOAD)
        reloader = self.start()
        wait_until(lambda: template_hash("a") and template_hash("b"), "the first hash")
        self.asked.wait_at_rest()
        first = template_hash("a")
        self.expect_patches("a", "b", change=lambda: patch(CONFIG_MAPS, "settings", data={"value": "2"}))
        self.expect_patches("a", "b", change=lambda: patch(CONFIG_MAPS, "settings", binaryData={"more": "AAAA"}))
        self.expect_patches("a", n=0, change=lambda: patch(CONFIG_MAPS, "unused", data={"value": "2"}))
        self.expect_patches("a", n=0, change=lambda: patch(CONFIG_MAPS, "settings", metadata={"labels": {"x": "y"}}))
        patch(CONFIG_MAPS, "settings", binaryData=None, data={"value": "1"})
        wait_until(lambda: template_hash("a") == template_hash("b") == first, "the hash of the same data")
        for name in ("c", "d", "e"):
            self.assertIsNone(template_hash(name))
        patch(DEPLOYMENTS, "d", metadata=RELOAD)
        wait_until(lambda: template_hash("d") == first, "who wants it later gets it")
        reloader.stop()
        self.assertNotIn("warn", reloader.log_text())

    def test_every_way_to_use_one_counts(self):
        names = [f"m{i}" for i in range(1, 7)] + [f"s{i}" for i in range(1, 7)]
        for name in names:
            put(CONFIG_MAPS if name[0] == "m" else SECRETS, name, data={"value": "MQ=="})
        put_deployment("many", MANY, **RELOAD)
        reloader = self.start()
        wait_until(lambda: template_hash("many"), "the first hash")
        for name in names:
            old = template_hash("many")
            patch(CONFIG_MAPS if name[0] == "m" else SECRETS, name, data={"value": "Mg=="})
            wait_until(lambda old=old: template_hash("many") != old, f"{name} counts")
        reloader.stop()

    def test_what_changed_while_it_was_away_counts_once(self):
        put(CONFIG_MAPS, "settings", data={"value": "1"})
        put_deployment("a", pod_with(**ENV_FROM), **RELOAD)
        reloader = self.start()
        wait_until(lambda: template_hash("a"), "the first hash")
        for value in ("2", "3"):
            patch(CONFIG_MAPS, "settings", data={"value": value})
            reloader.kill()
        reloader = None

        def start():
            nonlocal reloader
            reloader = self.start()
            wait_until(lambda: reloader.log_text().count("listed") == 3, "the lists")
        patch(CONFIG_MAPS, "settings", data={"value": "4"})
        self.expect_patches("a", change=start)
        reloader.stop()
        self.expect_patches("a", n=0, change=start)
        reloader.stop()

    def test_nothing_restarts_while_something_is_missing(self):
        reloader = self.start()
        put_deployment("a", pod_with(**ENV_FROM), **RELOAD)
        self.asked.wait_at_rest()
        self.assertIsNone(template_hash("a"))
        self.expect_patches("a", change=lambda: put(CONFIG_MAPS, "settings", data={"value": "1"}))
        self.expect_patches("a", n=0, change=lambda: delete(CONFIG_MAPS, "settings"))
        self.expect_patches("a", n=0, change=lambda: put(CONFIG_MAPS, "settings", data={"value": "1"}))
        delete(CONFIG_MAPS, "settings")
        self.expect_patches("a", change=lambda: put(CONFIG_MAPS, "settings", data={"value": "2"}))
        delete(DEPLOYMENTS, "a")
        self.asked.wait_at_rest()
        reloader.stop()

    def test_stateful_sets_and_names_that_are_none(self):
        sets = DEPLOYMENTS.replace("deployments", "statefulsets")
        self.addCleanup(delete_all, sets)
        put(CONFIG_MAPS, "settings", data={"value": "1"})
        put(sets, "db", metadata=RELOAD, spec={
            "serviceName": "db", "selector": {"matchLabels": {"is": "db"}},
            "template": {"metadata": {"labels": {"is": "db"}}, "spec": pod_with(**ENV_FROM)}})
        reloader = self.start("statefulsets.apps")
        wait_until(lambda: template_hash("db", sets), "the first hash")
        reloader.stop()
        reloader = self.start("unicorns")
        self.assertEqual(reloader.process.wait(PATIENCE), 1)
        self.assertIn("unicorns", reloader.log_text())


# --- node-agent ---

IDS = [f"{i:x}" * 64 for i in range(16)]


def put_pod(name, status=None, node="node-here", labels=None, **spec):
    put(PODS, name, metadata={"labels": labels or {}},
        spec={"nodeName": node, "containers": [{"name": "main", "image": "image"}], **spec})
    if status:
        patch(PODS, name + "/status", status=status)


def running(*ips, phase="Running", **containers):
    """A status; `containers` are container=, init= and their ids."""
    status = {"phase": phase}
    if ips:
        status |= {"podIP": ips[0], "podIPs": [{"ip": ip} for ip in ips]}
    for member, key in (("containerStatuses", "container"), ("initContainerStatuses", "init")):
        if key in containers:
            status[member] = [{"name": "main", "ready": True, "restartCount": 0, "image": "image", "imageID": "image",
                               "containerID": "containerd://" + containers[key]}]
    return status


class NodeAgent(ExampleCase):
    program = "node-agent"
    collections = (PODS,)

    def start(self, *args, **kwargs):
        return super().start(*args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"NODE_NAME": "node-here"},
                             **kwargs)

    def ask(self, agent, line):
        """What it makes of a line."""
        agent.process.stdin.write(line.encode() + b"\n")
        agent.process.stdin.flush()
        answer = json.loads(agent.process.stdout.readline())
        self.assertEqual(answer.pop("line"), line)
        return answer

    def end(self, agent):
        agent.process.stdin.close()
        self.assertEqual(agent.process.stdout.read(), b"")
        self.assertEqual(agent.process.wait(PATIENCE), 0)
        agent.process.stdout.close()
        self.assertNotIn("warn", agent.log_text())

    def pod(self, name, **labels):
        return {"namespace": SPACE, "pod": name, "labels": labels}

    def test_ids_and_addresses_are_found_in_any_line(self):
        labels = {"app": "web", "app.kubernetes.io/name": "we.b", "example.org/a.b_c-d": ""}
        put_pod("web", running("10.9.0.1", "fd00::5", container=IDS[1], init=IDS[2]), labels=labels)
        put_pod("bare", running("10.9.0.2", container=IDS[3]))
        put_pod("elsewhere", running("10.9.0.3", container=IDS[4]), node="node-there")
        agent = self.start()
        web = {"namespace": SPACE, "pod": "web", "labels": labels}
        for line in (IDS[1], IDS[2], f"containerd://{IDS[1]}", f"id={IDS[1]},", f'{{"id":"{IDS[2]}"}}', f"id:{IDS[1]}",
                     "10.9.0.1", "to 10.9.0.1:8080 failed", "10.9.0.1: no route", "It was 10.9.0.1.", "http://10.9.0.1/x",
                     "[fd00::5]:80", "addr fd00::5, 7", "peer=10.9.0.1\tx", f"10.9.0.99 {IDS[9]} then 10.9.0.1"):
            self.assertEqual(self.ask(agent, line), web, line)
        for line in ("", " ", "nothing", "10.9.0.3", IDS[4], "10.9.0.11", "110.9.0.1", IDS[1][:-1], "0" + IDS[1], "::", "...",
                     "10.9.0", ":", "fd00::", "\x7f"):
            self.assertEqual(self.ask(agent, line), {}, line)
        self.assertEqual(self.ask(agent, IDS[3]), {"namespace": SPACE, "pod": "bare", "labels": {}})
        self.end(agent)

    def test_pods_without_an_address_of_their_own(self):
        put_pod("pending")
        put_pod("started", running(container=IDS[5]))
        put_pod("done", running("10.9.1.1", phase="Succeeded", container=IDS[6]))
        put_pod("heir", running("10.9.1.1", container=IDS[7]))
        put_pod("host", running("10.9.1.9", container=IDS[8]), hostNetwork=True)
        agent = self.start()
        for line, name in ((IDS[5], "started"), (IDS[6], "done"), (IDS[7], "heir"), (IDS[8], "host"),
                           ("10.9.1.1", "heir")):
            self.assertEqual(self.ask(agent, line).get("pod"), name)
        self.assertEqual(self.ask(agent, "10.9.1.9"), {})
        self.end(agent)

    def test_pods_come_change_and_go_and_lines_cost_no_request(self):
        put_pod("old", running("10.9.2.1", container=IDS[1]))
        agent = self.start()
        self.assertEqual(self.ask(agent, "10.9.2.1")["pod"], "old")
        put_pod("new", running("10.9.2.2", container=IDS[2]), labels={"a": "b"})
        wait_until(lambda: self.ask(agent, "10.9.2.2").get("labels") == {"a": "b"}, "a new pod")
        patch(PODS, "new", metadata={"labels": {"a": "c", "d/e": "f"}})
        wait_until(lambda: self.ask(agent, IDS[2])["labels"] == {"a": "c", "d/e": "f"}, "new labels")
        delete(PODS, "old")
        wait_until(lambda: self.ask(agent, "10.9.2.1") == {}, "it is gone")
        self.asked.wait_at_rest()
        n_sent = self.asked.proxy.n_sent
        for i in range(500):
            self.assertEqual(self.ask(agent, f"{i} 10.9.2.2")["pod"], "new")
        self.assertEqual(self.asked.proxy.n_sent, n_sent)
        self.end(agent)

    def test_garbage_is_text_in_json(self):
        put_pod("web", running("10.9.3.1", container=IDS[1]))
        agent = self.start()
        garbage = [b"\x00\xff\xfe 10.9.3.1", b'"}]\\', b"\x1b[31m\x01", bytes(range(1, 10)) + bytes(range(11, 256)),
                   b"\xc3", "ä€😀".encode(), b"\r", b"{", b"%s%n", b"x" * 16384, b"y" * 40000, b":" * 20000, b"end"]
        out, _ = agent.process.communicate(b"\n".join(garbage), timeout=PATIENCE)
        answers = [json.loads(line) for line in out.splitlines()]
        wanted = []
        for line in garbage:
            wanted += [line[i:i + 16384].decode(errors="replace") for i in range(0, len(line), 16384)]
        self.assertEqual([len(answer["line"]) for answer in answers], [len(line) for line in wanted])
        self.assertEqual([answer["line"] for answer in answers], wanted)
        self.assertEqual([answer.get("pod") for answer in answers], ["web"] + [None] * (len(wanted) - 1))
        self.assertEqual(agent.process.returncode, 0)

    def test_a_node_has_to_be_named(self):
        for program in ("node-agent", "node-index"):
            for name in ("", "n" * 300):
                with self.subTest(program=program, name=name), Example(program, env={"NODE_NAME": name}) as agent:
                    self.assertEqual(agent.process.wait(PATIENCE), 2)
                    self.assertIn("NODE_NAME", agent.log_text())


if __name__ == "__main__":
    unittest.main()
