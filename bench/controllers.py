"""examples/configmap-sync beside the same controller with controller-runtime and kube-rs, on a real kube-apiserver.

One after another, on the same cluster: labelled ConfigMaps are made and copied into all namespaces; at rest requests and
CPU are counted; then they are changed one at a time, at a rate, each change followed by the time until the server tells
a watch that a copy has it. The driver takes what the server does for it off the count of requests. Fails if a copy is
wrong in the end.
"""

import http.client
import json
import os
import random
import re
import signal
import ssl
import subprocess
import threading
import time

from cluster import Cluster
from lab import BENCH, RELEASE, ROOT, Failure, Process, Rows, build_go, build_rust, cpu_seconds, make, status_mib, wait_for

N_SOURCES, N_SPACES, N_CHANGES, CHANGES_A_SECOND, REST_S = 20, 10, 150, 3, 10


def build(peers):
    """Name -> (program, its source)."""
    make("all")
    programs = {"kinformer": (os.path.join(RELEASE, "examples/configmap-sync"), os.path.join(ROOT, "examples/configmap-sync/main.c"))}
    if "client-go" in peers:
        programs["controller-runtime"] = (build_go("controller-runtime"), os.path.join(BENCH, "peers/controller-runtime/main.go"))
    if "kube-rs" in peers:
        programs["kube-rs"] = (build_rust("configmap-sync"), os.path.join(BENCH, "peers/kube-rs/src/main.rs"))
    return {name: program for name, program in programs.items() if program[0]}


class Site(Cluster):
    """Asked by the driver itself."""

    def __init__(self):
        super().__init__()
        self.context = ssl.create_default_context(cafile=self.ca)
        pki = os.path.join(self.folder, "pki", "")
        self.context.load_cert_chain(pki + "admin.crt", pki + "admin.key")
        self.connection = self.connect()
        self.n_own = 0

    def connect(self):
        return http.client.HTTPSConnection(self.url.removeprefix("https://"), context=self.context, timeout=60)

    def ask(self, method, path, body=None, content_type="application/json"):
        self.n_own += path != "/metrics"
        self.connection.request(method, path, json.dumps(body) if body is not None else None,
                                {"Content-Type": content_type})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300 and not (method == "DELETE" and answer.status == 404):
            raise Failure(f"{method} {path}: {answer.status} {text[:200]}")
        return text

    def n_requests(self):
        """That others made, but watches."""
        total = 0.0
        for line in self.ask("GET", "/metrics").decode().splitlines():
            if line.startswith("apiserver_request_total{") and re.search(
                    r'resource="(configmaps|namespaces|leases|events)"', line) and 'verb="WATCH"' not in line:
                total += float(line.rsplit(" ", 1)[1])
        return total - self.n_own

    def maps(self, selector):
        return json.loads(self.ask("GET", "/api/v1/configmaps?labelSelector=" + selector))["items"]


class Copies:
    """Told by a watch: when each copy had each value first."""

    def __init__(self, cluster):
        self.seen = {}  # (namespace, name) -> (value, when)
        self.first = {}  # (name, value) -> [when]
        self.lock = threading.Lock()
        self.connection = cluster.connect()
        self.connection.request("GET", "/api/v1/configmaps?watch=true&labelSelector=sync-copy%3Dtrue")
        self.answer = self.connection.getresponse()
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        try:
            for line in self.answer:
                event, now = json.loads(line), time.monotonic()
                item = event["object"]
                key = (item["metadata"]["namespace"], item["metadata"]["name"])
                with self.lock:
                    if event["type"] == "DELETED":
                        self.seen.pop(key, None)
                        continue
                    value = item.get("data", {}).get("value")
                    if self.seen.get(key) != value:
                        self.first.setdefault((key[1], value), []).append(now)
                    self.seen[key] = value
        except (OSError, ValueError, http.client.HTTPException):
            pass

    def count(self, name, value):
        with self.lock:
            return sum(1 for (_, n), v in self.seen.items() if n == name and v == value)

    def close(self):
        self.connection.sock.shutdown(2)
        self.thread.join()


class Program(Process):
    def __init__(self, path, cluster):
        super().__init__(cluster.base, "program", [path], env={**os.environ, "KUBECONFIG": cluster.kubeconfig})

    def seconds_to_stop(self):
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return time.monotonic() - began


def path_of(name):
    return "/api/v1/namespaces/default/configmaps/" + name


def clear(cluster):
    for item in cluster.maps("sync%3Dtrue") + cluster.maps("sync-copy%3Dtrue"):
        meta = item["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/configmaps/{meta['name']}"
        if meta.get("finalizers"):
            cluster.ask("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
        cluster.ask("DELETE", path)
    cluster.ask("DELETE", "/apis/coordination.k8s.io/v1/namespaces/default/leases/configmap-sync")


def measure(cluster, path, n_spaces):
    """Figure -> value, of one run of a program."""
    copies = Copies(cluster)
    names = [f"source-{i:03}" for i in range(N_SOURCES)]
    for name in names:
        cluster.ask("POST", "/api/v1/namespaces/default/configmaps",
                    {"metadata": {"name": name, "labels": {"sync": "true"}}, "data": {"value": "0"}})
    before = cluster.n_requests()
    began = time.monotonic()
    program = Program(path, cluster)
    figures = {}
    try:
        wait_for(lambda: all(copies.count(name, "0") == n_spaces for name in names))
        figures["first copies s"] = time.monotonic() - began
        time.sleep(2)
        figures["requests to start"] = cluster.n_requests() - before
        before, cpu = cluster.n_requests(), cpu_seconds(program.pid)
        time.sleep(REST_S)
        figures["requests a minute at rest"] = (cluster.n_requests() - before) * 60 / REST_S
        figures["CPU at rest ms/s"] = (cpu_seconds(program.pid) - cpu) * 1000 / REST_S
        before, cpu = cluster.n_requests(), cpu_seconds(program.pid)
        sent, value, due = {}, dict.fromkeys(names, 0), time.monotonic()
        for _ in range(N_CHANGES):
            name = random.choice(names)
            value[name] += 1
            time.sleep(max(0.0, due - time.monotonic()))
            sent[(name, str(value[name]))] = time.monotonic()
            cluster.ask("PATCH", path_of(name), {"data": {"value": str(value[name])}}, "application/merge-patch+json")
            due += 1 / CHANGES_A_SECOND
        wait_for(lambda: all(copies.count(name, str(value[name])) == n_spaces for name in names))
        times = sorted((at - when) * 1000 for key, when in sent.items() for at in copies.first.get(key, []))
        figures["change to copy p50 ms"] = times[len(times) // 2]
        figures["change to copy p99 ms"] = times[len(times) * 99 // 100]
        figures["CPU a change ms"] = (cpu_seconds(program.pid) - cpu) * 1000 / N_CHANGES
        figures["requests a change"] = (cluster.n_requests() - before) / N_CHANGES
        figures["peak memory MB"] = status_mib(program.pid, "VmHWM")
    finally:
        figures["stop s"] = program.seconds_to_stop()
        copies.close()
        clear(cluster)
    return figures


def count_lines(source):
    """What is neither blank nor a comment alone."""
    with open(source, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("//"))


def controllers(lab):
    programs, found = build(lab.peers), Rows()
    with Site() as cluster:
        for i in range(N_SPACES):
            cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": f"space-{i}"}})
        wait_for(lambda: b"kube-public" in cluster.ask("GET", "/api/v1/namespaces"))
        time.sleep(2)
        n_spaces = len(json.loads(cluster.ask("GET", "/api/v1/namespaces"))["items"]) - 1
        for name, (path, source) in programs.items():
            found.add("lines of code", {name: count_lines(source)})
            found.add("binary MB", {name: os.path.getsize(path) / 1e6})
        for _ in range(lab.runs):
            for name, (path, _) in programs.items():
                for figure, value in measure(cluster, path, n_spaces).items():
                    found.add(figure, {name: value})
        return {"runs": lab.runs, "rows": found.list(), "versions": lab.versions | cluster.versions(),
                "note": f"{N_SOURCES} sources, {n_spaces} copies of each, {N_CHANGES} changes at {CHANGES_A_SECOND}/s"}
