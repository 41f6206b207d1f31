"""Reads that see the writes before them (consistency: session), with clients that write and read in turn."""

import http.client
import itertools
import json
import os
import re
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

import relay
from harness import (PATIENCE, ROOT, TOOLS, Daemon, Proxy, cluster, config_map, needs_cluster, needs_sim, run_daemon,
                     wait_until, write_config)
from sim import Sim
from test_serve import KUBECTL, Served, Watch, ask
from test_serve_auth import make_pair
from test_serve_pass import bearer, send, token_of

NAMESPACE = "session"
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
MERGE = {"Content-Type": "application/merge-patch+json"}
PYTHON = os.path.join(ROOT, "tests", "clients", "python")


def setUpModule():
    cluster().make_namespace(NAMESPACE)


class Sidecar(Served):
    """A daemon in front of all clients, with TLS, so that kubectl sends its token, too."""

    def __init__(self, *resources, consistency="session", kubeconfig=None, mode="asan", tls=True):
        self.folder = tempfile.TemporaryDirectory()
        self.kubeconfig = os.path.join(self.folder.name, "kubeconfig")
        self.socket = os.path.join(self.folder.name, "socket")
        self.is_tls = tls
        path = os.path.join(self.folder.name, "config.yaml")
        config = {"listen": ["127.0.0.1:0", "unix:" + self.socket], "events": "none", "passThrough": True, "resources":
                  [{"resource": name, "consistency": consistency} for name in resources or ("configmaps", "pods")]}
        if tls:
            make_pair(self.folder.name)
            config["tls"] = {"certFile": self.folder.name + "/tls.crt", "keyFile": self.folder.name + "/tls.key"}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        self.daemon = Daemon("--write-kubeconfig", self.kubeconfig, config=path, kubeconfig=kubeconfig, mode=mode)

    def connect(self):
        wait_until(lambda: self.daemon.check() or os.path.exists(self.kubeconfig), "the kubeconfig")
        with open(self.kubeconfig, encoding="utf-8") as file:
            scheme, self.address = re.search(r"server: (https?)://(\S+)", file.read()).groups()
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.url = f"{scheme}://{self.address}"
        self.open = lambda: http.client.HTTPSConnection(self.address, context=context, timeout=PATIENCE) \
            if scheme == "https" else http.client.HTTPConnection(self.address, timeout=PATIENCE)

    def counts(self, resource="configmaps"):
        """Reads that waited, and those that the cache did not answer."""
        text = ask(self, "/metrics", headers=bearer())[2].decode()
        return tuple(int(re.search(rf'^kinformer_session_{what}_total{{name="{resource}"}} (\d+)$', text, re.M).group(1))
                     for what in ("waits", "misses"))

    def state(self, resource="configmaps"):
        informers = json.loads(ask(self, "/debug/state", headers=bearer())[2])["informers"]
        return next(item for item in informers if item["name"] == resource)


class Pairs:
    """What the clients found, as many as there are."""

    def __init__(self):
        self.lock = threading.Lock()
        self.n, self.n_stale, self.first, self.problem = 0, 0, "", None
        self.connections = []

    def add(self, is_seen, what):
        with self.lock:
            self.n += 1
            if not is_seen:
                self.n_stale += 1
                self.first = self.first or what

    def add_result(self, text):
        result = json.loads(text)
        with self.lock:
            self.n += result["pairs"]
            self.n_stale += result["stale"]
            self.first = self.first or result["first"]


class RawClient:
    """One connection; round() writes and reads nine times, in all the ways that there are."""

    def __init__(self, where, name, pairs):
        self.where, self.name, self.pairs = where, name, pairs
        self.connection = where.open()
        pairs.connections.append(self.connection)
        self.token = bearer()
        self.selected = f"labelSelector=worker%3D{name}"

    def send(self, method, target, body=None, **headers):
        self.connection.request(method, target, body=body and json.dumps(body),
                                headers={**self.token, "Content-Type": "application/json", **headers})
        answer = self.connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text)

    def write(self, method, target, body=None, **headers):
        status, answer = self.send(method, target, body, **headers)
        if status not in (200, 201):
            raise AssertionError(f"{method} {target}: {status} {answer}")
        return answer

    def object(self, name, value, finalizers=()):
        return {"metadata": {"name": name, "labels": {"worker": self.name}, "finalizers": list(finalizers)},
                "data": {"value": value}}

    def listed(self, query=None):
        return {item["metadata"]["name"]: item["data"]["value"]
                for item in self.send("GET", f"{MAPS}?{query or self.selected}")[1]["items"]}

    def watched(self):
        """The first event of a watch that starts now."""
        connection = self.where.open()
        connection.request("GET", f"{MAPS}?watch=1&{self.selected}", headers=self.token)
        answer = connection.getresponse()
        event = json.loads(answer.readline())
        answer.close()
        connection.close()
        return event["type"], event["object"].get("data", {}).get("value")

    def round(self, i):
        name = f"{self.name}-{i}"
        target = f"{MAPS}/{name}"
        made = self.write("POST", MAPS, self.object(name, "one"))
        status, found = self.send("GET", target)
        self.pairs.add((status, found["metadata"].get("resourceVersion")) ==
                       (200, made["metadata"]["resourceVersion"]), f"{name} created: {status}")
        self.write("PATCH", target, {"data": {"value": "two"}}, **MERGE)
        self.pairs.add(self.listed() == {name: "two"}, f"{name} patched")
        self.write("PUT", target, self.object(name, "three", ["test.kinformer.dev/hold"]))
        self.pairs.add(self.watched() == ("ADDED", "three"), f"{name} replaced")
        self.write("DELETE", target)
        status, found = self.send("GET", target)
        self.pairs.add(status == 200 and "deletionTimestamp" in found["metadata"], f"{name} held: {status}")
        self.write("PATCH", target, {"metadata": {"finalizers": None}}, **MERGE)
        self.pairs.add(self.send("GET", target)[0] == 404, f"{name} let go")
        for k in range(3):
            self.write("POST", MAPS, self.object(f"{name}-{k}", "many"))
        self.pairs.add(len(self.listed()) == 3, f"{name} three")
        self.write("DELETE", f"{MAPS}?{self.selected}")
        self.pairs.add(self.listed() == {}, f"{name} deleted as a collection")
        self.write("POST", MAPS, self.object(name, "again"))
        self.pairs.add(self.listed(f"fieldSelector=metadata.name%3D{name}") == {name: "again"}, f"{name} again")
        self.write("DELETE", target)
        self.pairs.add(self.send("GET", target)[0] == 404, f"{name} deleted")


def run_all(jobs, pairs):
    """Runs them at once; the first problem is that of all."""
    def run(job):
        try:
            job()
        except Exception as problem:  # a thread's own end is nobody's failure
            pairs.problem = pairs.problem or problem
    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for connection in pairs.connections:
        connection.close()
    if pairs.problem is not None:
        raise pairs.problem


def raw_jobs(sidecar, pairs, n_clients, n_rounds):
    def job(client):
        for i in range(n_rounds):
            client.round(i)
    return [lambda client=RawClient(sidecar, f"raw{i}", pairs): job(client) for i in range(n_clients)]


def curl_job(sidecar, pairs, name, n_rounds):
    def curl(method, target, body=None, kind="application/json"):
        return subprocess.run(["curl", "-sk", "-X", method, "-H", "Authorization: " + bearer()["Authorization"],
                               "-H", "Content-Type: " + kind, *(["-d", json.dumps(body)] if body else []),
                               sidecar.url + target], check=True, stdout=subprocess.PIPE, text=True).stdout

    def job():
        for i in range(n_rounds):
            target = f"{MAPS}/{name}-{i}"
            curl("POST", MAPS, {"metadata": {"name": f"{name}-{i}"}, "data": {"value": "one"}})
            pairs.add('"one"' in curl("GET", target), f"curl created {target}")
            curl("PATCH", target, {"data": {"value": "two"}}, MERGE["Content-Type"])
            pairs.add('"two"' in curl("GET", target), f"curl patched {target}")
            curl("DELETE", target)
            pairs.add('"NotFound"' in curl("GET", target), f"curl deleted {target}")
    return job


def kubectl_job(sidecar, pairs, name, n_rounds):
    config = os.path.join(sidecar.folder.name, name + ".kubeconfig")
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"clusters": [{"name": "c", "cluster": {"server": sidecar.url, "insecure-skip-tls-verify": True}}],
                   "users": [{"name": "u", "user": {"token": token_of("admin-token")}}], "current-context": "x",
                   "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}, file)

    def kubectl(*args, stdin=None, check=True):
        done = subprocess.run([KUBECTL, "--kubeconfig", config, "--cache-dir", config + ".cache", "-n", NAMESPACE, *args],
                              input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {args}: {done.stdout}")
        return done.stdout

    def value(of):
        return kubectl("get", "configmap", of, "-o", "jsonpath={.data.value}")

    def job():
        for i in range(n_rounds):
            thing = f"{name}-{i}"
            kubectl("apply", "-f", "-", stdin=config_map(thing, NAMESPACE, "one"))
            pairs.add(value(thing) == "one", f"kubectl created {thing}")
            kubectl("apply", "-f", "-", stdin=config_map(thing, NAMESPACE, "two"))
            pairs.add(value(thing) == "two", f"kubectl applied {thing}")
            kubectl("label", "configmap", thing, f"is={thing}")
            pairs.add(thing in kubectl("get", "configmaps", "-l", f"is={thing}"), f"kubectl labelled {thing}")
            kubectl("delete", "configmap", thing, "--wait=false")
            pairs.add("NotFound" in kubectl("get", "configmap", thing, check=False), f"kubectl deleted {thing}")
    return job


def program_job(pairs, *command):
    def job():
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{command[0]}: {done.stderr[-2000:]}")
        pairs.add_result(done.stdout)
    return job


class SessionTest(unittest.TestCase):
    def check_pairs(self, sidecar, pairs, n_least):
        self.assertGreaterEqual(pairs.n, n_least)
        n_waits, n_misses = sidecar.counts()
        print(f"  {pairs.n} pairs, {pairs.n_stale} stale, {n_waits} reads waited, {n_misses} went to the API server")
        self.assertEqual(pairs.n_stale, 0, pairs.first)
        # Else it would be the API server that was right, and not the cache.
        self.assertLess(n_misses, pairs.n / 100)

    @needs_cluster("kubectl and client-go")
    def test_no_client_of_thirty_two_reads_the_past(self):
        subprocess.run([os.path.join(PYTHON, "install.sh")], check=True, timeout=5 * PATIENCE)
        pairs, token = Pairs(), token_of("admin-token")
        with Sidecar() as sidecar:
            run_all([*raw_jobs(sidecar, pairs, 12, 30),
                     *(curl_job(sidecar, pairs, f"curl{i}", 25) for i in range(2)),
                     *(kubectl_job(sidecar, pairs, f"kubectl{i}", 6) for i in range(2)),
                     program_job(pairs, os.path.join(ROOT, "build", "clients", "python", "bin", "python"), "-B",
                                 os.path.join(PYTHON, "session.py"), sidecar.url, token, NAMESPACE, "600"),
                     program_job(pairs, os.path.join(TOOLS, "sessions"), "-server", sidecar.url, "-token", token,
                                 "-namespace", NAMESPACE, "-workers", "15", "-pairs", "6000")], pairs)
            self.check_pairs(sidecar, pairs, 10000)

    def test_no_raw_client_reads_the_past(self):
        pairs = Pairs()
        with Sidecar(tls=False) as sidecar:
            run_all([*raw_jobs(sidecar, pairs, 8, 10), curl_job(sidecar, pairs, "curl", 5)], pairs)
            self.check_pairs(sidecar, pairs, 730)

    def test_a_cache_alone_shows_the_past(self):
        """Else the tests above would prove nothing."""
        pairs = Pairs()
        with Sidecar(consistency="cache", tls=False) as sidecar:
            run_all([lambda: self.read_until_stale(sidecar, pairs)], pairs)
            self.assertEqual(sidecar.counts(), (0, 0))

    def test_what_it_can_be_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            code, _, errors = run_daemon("--config", write_config(folder, "pods", consistency="eventual"), "--check-config")
        self.assertEqual(code, 2)
        self.assertIn("consistency is one of session, cache, latest, not 'eventual'", errors)

    def read_until_stale(self, sidecar, pairs):
        client = RawClient(sidecar, "stale", pairs)
        deadline = time.monotonic() + PATIENCE
        for i in itertools.count():
            name = f"stale-{i}"
            client.write("POST", MAPS, client.object(name, "one"))
            if client.send("GET", f"{MAPS}/{name}")[0] == 404:
                return
            self.assertLess(time.monotonic(), deadline, "no read was stale")


class Subresources(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sidecar = cls.enterClassContext(Sidecar("pods", "deployments.apps", "namespaces", tls=False))

    def read(self, target):
        """What the cache says, in a state that follows the write."""
        status, headers, body = send(self.sidecar, "GET", target)
        self.assertNotIn("kinformer-source", headers)
        return status, json.loads(body)

    def write(self, method, target, body=None, **headers):
        status, _, answer = send(self.sidecar, method, target, body and json.dumps(body), **headers)
        self.assertIn(status, (200, 201, 202), answer)

    def make_pod(self, name, **metadata):
        self.write("POST", PODS, {"metadata": {"name": name, **metadata},
                                  "spec": {"containers": [{"name": "c", "image": "i"}]}})

    def test_a_pod_is_bound_and_evicted(self):
        for i in range(20):
            target = f"{PODS}/bound-{i}"
            self.make_pod(f"bound-{i}")
            self.write("POST", target + "/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {
                "name": f"bound-{i}"}, "target": {"apiVersion": "v1", "kind": "Node", "name": "n"}})
            self.assertEqual(self.read(target)[1]["spec"]["nodeName"], "n")
            self.write("PATCH", target + "/status", {"status": {"phase": "Running"}}, **MERGE)
            self.assertEqual(self.read(target)[1]["status"]["phase"], "Running")
            self.write("POST", target + "/eviction", {"apiVersion": "policy/v1", "kind": "Eviction",
                                                      "metadata": {"name": f"bound-{i}"}})
            status, pod = self.read(target)
            self.assertTrue(status == 404 or "deletionTimestamp" in pod["metadata"], pod)
            self.write("DELETE", target + "?gracePeriodSeconds=0")
            self.assertEqual(self.read(target)[0], 404)

    def test_pods_go_with_their_grace_and_as_a_collection(self):
        for i in range(20):
            for k in range(3):
                self.make_pod(f"many-{i}-{k}", labels={"many": str(i)}, finalizers=["test.kinformer.dev/hold"][:k % 2])
            selected = f"{PODS}?labelSelector=many%3D{i}"
            self.assertEqual(len(self.read(selected)[1]["items"]), 3)
            self.write("DELETE", selected)
            left = self.read(selected)[1]["items"]
            self.assertEqual([pod["metadata"]["name"] for pod in left], [f"many-{i}-1"])
            self.assertIn("deletionTimestamp", left[0]["metadata"])
            self.write("PATCH", f"{PODS}/many-{i}-1", {"metadata": {"finalizers": None}}, **MERGE)
            self.assertEqual(self.read(selected)[1]["items"], [])

    @needs_cluster("that nothing else ends a namespace")
    def test_a_namespace_is_held_by_its_spec(self):
        for i in range(10):
            target = f"/api/v1/namespaces/held-{i}"
            self.write("POST", "/api/v1/namespaces", {"metadata": {"name": f"held-{i}"}})
            self.write("DELETE", target)
            self.assertEqual(self.read(target)[1]["status"]["phase"], "Terminating")
            self.write("PATCH", target, {"metadata": {"labels": {"a": "b"}}}, **MERGE)
            space = self.read(target)[1]
            self.assertEqual(space["metadata"]["labels"]["a"], "b")
            self.write("PUT", target + "/finalize", {**space, "spec": {"finalizers": []}})
            self.assertEqual(self.read(target)[0], 404)

    def test_a_deployment_is_scaled(self):
        maps = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
        self.write("POST", maps, {"metadata": {"name": "d"}, "spec": {
            "replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": {
                "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
        for replicas in range(1, 20):
            self.write("PATCH", maps + "/d/scale", {"spec": {"replicas": replicas}}, **MERGE)
            self.assertEqual(self.read(maps + "/d")[1]["spec"]["replicas"], replicas)


class Held(unittest.TestCase):
    """What the caches are told is held up, and what is passed on is not."""

    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.proxy = self.enterContext(Proxy())
        self.sidecar = self.enterContext(Sidecar(tls=False, kubeconfig=self.proxy.kubeconfig(folder)))
        self.name = self.id().rpartition(".")[2].replace("_", "-")
        # A watch that begins later would have a connection that is not held up.
        for resource in ("configmaps", "pods"):
            wait_until(lambda name=resource: self.sidecar.state(name)["state"] == "live", f"a watch of {resource}")
        self.proxy.silent = set(self.proxy.servers)

    def write(self, method, target, body=None, **headers):
        status, _, answer = send(self.sidecar, method, target, body, **headers)
        self.assertIn(status, (200, 201), answer)

    def create(self):
        self.write("POST", MAPS, config_map(self.name, NAMESPACE, "one"))

    def read(self, query="", user="admin-token", name=None):
        """(status, whether the cache answered, seconds)"""
        began = time.monotonic()
        status, headers, _ = send(self.sidecar, "GET", f"{MAPS}/{name or self.name}{query}", user=user)
        return status, "kinformer-source" not in headers, time.monotonic() - began

    def wait_for_cache(self):
        self.proxy.silent = set()
        wait_until(lambda: self.read("", None)[0] == 200, "the cache has it")
        self.assertFalse(self.sidecar.state()["late"])

    def test_a_read_waits_three_seconds_and_goes_on(self):
        self.create()
        status, is_cached, seconds = self.read()
        self.assertEqual((status, is_cached), (200, False))
        self.assertGreater(seconds, 2.5)
        # Nobody waits again for what did not come.
        self.assertTrue(self.sidecar.state()["late"])
        status, is_cached, seconds = self.read()
        self.assertEqual((status, is_cached), (200, False))
        self.assertLess(seconds, 2.5)
        self.assertEqual(self.sidecar.counts(), (1, 2))
        self.wait_for_cache()
        self.assertEqual(self.read()[:2], (200, True))

    def test_a_watch_that_went_on_comes_back_when_the_cache_has_caught_up(self):
        self.create()
        self.assertEqual(self.read()[:2], (200, False))
        target = f"{MAPS}?watch=1&timeoutSeconds=600&fieldSelector=metadata.name={self.name}"
        with Watch(self.sidecar, target, bearer()) as watch:
            event = watch.next()
            self.assertEqual(event["type"], "ADDED")
            self.assertEqual(self.sidecar.state()["watchers"], [])
            self.wait_for_cache()
            self.assertEqual(watch.until(lambda event: False), [])  # its end
        version = event["object"]["metadata"]["resourceVersion"]
        with Watch(self.sidecar, f"{target}&resourceVersion={version}", bearer()) as watch:
            wait_until(lambda: len(self.sidecar.state()["watchers"]) == 1, "the cache serves the watch")
            self.write("PATCH", f"{MAPS}/{self.name}", '{"data": {"value": "two"}}', **MERGE)
            self.assertEqual(watch.next()["type"], "MODIFIED")

    def test_without_a_token_it_is_a_timeout(self):
        self.create()
        status, _, seconds = self.read(user=None)
        self.assertEqual(status, 504)
        self.assertGreater(seconds, 2.5)
        self.wait_for_cache()

    def test_a_wait_ends_when_the_write_arrives(self):
        self.create()
        threading.Timer(0.5, self.proxy.silent.clear).start()
        status, is_cached, seconds = self.read(user=None)
        self.assertEqual((status, is_cached), (200, True))
        self.assertLess(seconds, 2.5)

    def test_who_names_a_version_and_who_reads_what_nobody_wrote_waits_for_nothing(self):
        self.create()
        status, is_cached, seconds = self.read("?resourceVersion=0")
        self.assertEqual((status, is_cached), (404, True))
        self.assertLess(seconds, 2.5)
        began = time.monotonic()
        self.assertEqual(send(self.sidecar, "GET", PODS, user=None)[0], 200)
        self.assertLess(time.monotonic() - began, 2.5)
        self.assertEqual(self.sidecar.counts(), (0, 0))
        self.assertEqual(self.sidecar.counts("pods"), (0, 0))

    def test_what_changes_nothing_is_not_waited_for(self):
        send(self.sidecar, "POST", MAPS + "?dryRun=All", config_map(self.name, NAMESPACE))
        self.assertEqual(send(self.sidecar, "PUT", f"{MAPS}/{self.name}", config_map(self.name, NAMESPACE))[0], 404)
        self.assertEqual(send(self.sidecar, "DELETE", f"{MAPS}/kube-root-ca.crt", json.dumps(
            {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}))[0] // 100 in (2, 4), True)
        self.assertEqual(self.read()[:2], (404, True))
        self.assertEqual(self.sidecar.counts(), (0, 0))

    @needs_cluster("answers in YAML")
    def test_answers_in_yaml_are_read_too(self):
        self.write("POST", MAPS, config_map(self.name, NAMESPACE), Accept="application/yaml")
        self.assertFalse(self.sidecar.state()["unknownWrite"])
        self.wait_for_cache()
        self.assertEqual(self.read()[:2], (200, True))
        self.write("DELETE", f"{MAPS}/{self.name}", None, Accept="application/yaml")
        self.assertFalse(self.sidecar.state()["unknownWrite"])
        self.assertEqual(self.read()[:2], (404, True))


@needs_sim("a watch that says one thing a second")
class SlowWatch(unittest.TestCase):
    """A daemon hears of what came one event after another, seconds between them."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.sim = self.enterContext(Sim("--tls", "--fault-listen", "127.0.0.1:0"))
        self.path = os.path.join(self.folder, "config.yaml")
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump({"listen": ["unix:" + self.folder + "/socket"], "events": "none", "passThrough": True,
                       "stateDir": self.folder + "/state", "resources": [{"resource": "configmaps"}]}, file)

    def start(self):
        return Daemon(config=self.path, kubeconfig=self.sim.kubeconfig)

    def send(self, method, target):
        """(status, whether the cache answered)"""
        return self.send_body(method, target, None)[:2]

    def send_body(self, method, target, body):
        """The same, and the body."""
        done = subprocess.run(["curl", "-s", "-X", method, "--unix-socket", self.folder + "/socket", "-H",
                               "Authorization: Bearer any", "-H",
                               "Content-Type: " + {"PATCH": MERGE["Content-Type"]}.get(method, "application/json"),
                               *(["-d", body] if body else []), "-w",
                               "\n%{http_code} %header{kinformer-source}", "http://x" + target],
                              check=False, stdout=subprocess.PIPE, text=True).stdout
        text, _, told = done.rpartition("\n")
        return int(told.split()[0]), len(told.split()) == 1, text

    def test_what_is_deleted_before_the_cache_has_it_stays_deleted(self):
        self.sim.kubectl("create", "namespace", NAMESPACE)
        with self.start() as daemon:
            daemon.wait_logged("all synced")
            daemon.stop()
        self.sim.kubectl("create", "-f", "-", stdin=config_map("late", NAMESPACE, "x" * 10000))
        self.sim.control("POST", "/faults", "watch configmaps drip=1000/100ms\n")
        with self.start() as daemon:
            daemon.wait_logged("loaded resource=configmaps")
            wait_until(lambda: self.send("DELETE", f"{MAPS}/late")[0] == 200, "it is deleted")
            self.assertIn(self.send("GET", f"{MAPS}/late"), ((429, True), (404, False)))  # or the test is too late
            wait_until(lambda: self.send("GET", f"{MAPS}/late")[0] != 429, "the server has confirmed what is there")
            for _ in range(20):
                self.assertEqual(self.send("GET", f"{MAPS}/late")[0], 404)
                time.sleep(0.1)
            self.assertEqual(self.send("GET", f"{MAPS}/late"), (404, True))
            daemon.stop()

    def test_who_has_read_at_the_server_does_not_go_back(self):
        """Not to what was before a write without an answer, either, which nobody waits for."""
        self.sim.kubectl("create", "namespace", NAMESPACE)
        self.sim.control("POST", "/faults", "watch configmaps drip=250/100ms\npatch configmaps reset after=0\n")
        with self.start() as daemon:
            daemon.wait_logged("all synced")
            for name, target in (("got", f"{MAPS}/got"), ("listed", MAPS)):
                self.assertEqual(self.send_body("POST", MAPS, config_map(name, NAMESPACE, "x" * 10000))[0], 201)
                self.assertEqual(self.send("GET", target), (200, False))  # after three seconds
                patch = {"metadata": {"labels": {"patched": name}}}
                self.assertEqual(self.send_body("PATCH", f"{MAPS}/{name}", json.dumps(patch))[0], 504)
                is_cached = False
                while not is_cached:
                    status, is_cached, text = self.send_body("GET", target, None)
                    self.assertEqual((status, f'"patched":"{name}"' in text), (200, True), is_cached)
                    time.sleep(0.1)
            daemon.stop()


class Dawdling(relay.Handler):
    """In front of the API server: watches say nothing, and answers to writes have no end before they may."""

    may_end = threading.Event()
    breaks = False

    def do_GET(self):
        if "watch=" in self.path:
            self.begin(200)
            self.may_end.wait(PATIENCE)
            return
        connection = cluster().connect()
        connection.request("GET", self.path, headers={"Accept": self.headers.get("Accept", "application/json")})
        answer = connection.getresponse()
        self.answer(answer.status, answer.read(), answer.getheader("Content-Type", ""))
        connection.close()

    def begin(self, status):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"]))
        self.begin(201)
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
        self.wfile.flush()
        self.may_end.wait(PATIENCE)
        if self.breaks:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")


class EndOfAnswers(unittest.TestCase):
    TEXT = json.dumps({"metadata": {"name": "a", "namespace": NAMESPACE, "resourceVersion": str(1 << 60)}})

    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        make_pair(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder + "/tls.crt", folder + "/tls.key")
        Dawdling.may_end, Dawdling.breaks = threading.Event(), False
        server = self.enterContext(relay.listening(Dawdling, context=context))
        path = os.path.join(folder, "kubeconfig")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{server.server_port}",
                                                              "insecure-skip-tls-verify": True}}],
                       "contexts": [{"name": "x", "context": {"cluster": "c"}}], "current-context": "x"}, file)
        self.sidecar = self.enterContext(Sidecar("configmaps", tls=False, kubeconfig=path))
        self.addCleanup(Dawdling.may_end.set)
        self.connection = self.enterContext(socket.socket(socket.AF_UNIX))
        self.connection.connect(self.sidecar.socket)
        self.connection.sendall(f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n"
                                f"Content-Length: {len(self.TEXT)}\r\n\r\n{self.TEXT}".encode())

    def read(self, seconds):
        """What comes until nothing comes for so long."""
        self.connection.settimeout(seconds)
        got = b""
        try:
            while piece := self.connection.recv(65536):
                got += piece
        except TimeoutError:
            pass
        return got.decode()

    def test_the_last_byte_comes_when_the_write_is_noted(self):
        got = self.read(2)
        self.assertIn(" 201 ", got)
        self.assertIn(self.TEXT[:-1], got)
        self.assertNotIn(self.TEXT, got)
        self.assertFalse(self.sidecar.state()["awaitedResourceVersion"])
        Dawdling.may_end.set()
        self.assertIn("}", self.read(1))
        self.assertEqual(self.sidecar.state()["awaitedResourceVersion"], str(1 << 60))

    def test_an_answer_that_breaks_off_is_unknown(self):
        self.assertIn(" 201 ", self.read(1))
        Dawdling.breaks = True
        Dawdling.may_end.set()
        self.assertNotIn("}", self.read(PATIENCE))
        self.assertTrue(self.sidecar.state()["unknownWrite"])

    def test_a_client_that_leaves_early_leaves_an_unknown_write(self):
        self.assertIn(" 201 ", self.read(1))
        self.connection.close()
        wait_until(lambda: self.sidecar.state()["unknownWrite"], "the write is noted")


if __name__ == "__main__":
    unittest.main()
