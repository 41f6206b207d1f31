#!/usr/bin/env python3
"""examples/configmap-sync beside the same controller with controller-runtime and kube-rs, on a real kube-apiserver.

One after another, on the same cluster: N_SOURCES labelled ConfigMaps (20) are made and copied into N_SPACES namespaces
(10); at rest for REST seconds (10) requests and CPU are counted; then N_CHANGES (300) changes of one source each, RATE a
second (3), each followed by the time until the server tells a watch that a copy has it. ROUNDS (3) of all; printed are
medians. The driver takes what the server does for it off the count of requests. Fails if a copy is wrong in the end.

PEERS=kinformer,controller-runtime,kube-rs: which; those whose compiler is not there are left out.
"""

import http.client
import json
import os
import random
import re
import shutil
import signal
import ssl
import statistics
import subprocess
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEERS = os.path.join(ROOT, "bench", "peers")
BUILD = os.path.join(ROOT, "build", "peers")


def number(name, default):
    return int(os.environ.get(name, default))


N_SOURCES, N_SPACES = number("N_SOURCES", 20), number("N_SPACES", 10)
N_CHANGES, RATE = number("N_CHANGES", 300), number("RATE", 3)
REST, ROUNDS = number("REST", 10), number("ROUNDS", 3)


def run(*command, **options):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


def build():
    """Name -> (program, its sources)."""
    os.makedirs(BUILD, exist_ok=True)
    wanted = os.environ.get("PEERS", "kinformer,controller-runtime,kube-rs").split(",")
    programs = {}
    if "kinformer" in wanted:
        run("make", "-s", "--no-print-directory", "-C", ROOT, "MODE=release", "all")
        programs["kinformer"] = (os.path.join(ROOT, "build/release/examples/configmap-sync"),
                                 os.path.join(ROOT, "examples/configmap-sync/main.c"))
    if "controller-runtime" in wanted and shutil.which("go"):
        program = os.path.join(BUILD, "controller-runtime")
        run("go", "build", "-ldflags=-s -w", "-o", program, ".", cwd=os.path.join(PEERS, "controller-runtime"))
        programs["controller-runtime"] = (program, os.path.join(PEERS, "controller-runtime/main.go"))
    if "kube-rs" in wanted and shutil.which("cargo"):
        run("cargo", "build", "--quiet", "--release", "--locked", cwd=os.path.join(PEERS, "kube-rs"),
            env={**os.environ, "CARGO_TARGET_DIR": os.path.join(BUILD, "kube-rs")})
        programs["kube-rs"] = (os.path.join(BUILD, "kube-rs/release/configmap-sync"),
                               os.path.join(PEERS, "kube-rs/src/main.rs"))
    return programs


class Cluster:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="kinformer-bench-")
        self.script("start")
        with open(os.path.join(self.folder, "cluster.env"), encoding="utf-8") as file:
            env = dict(line.strip().split("=", 1) for line in file)
        self.address = env["KINF_SERVER"].removeprefix("https://")
        self.kubeconfig = os.path.join(self.folder, "admin.kubeconfig")
        pki = os.path.join(self.folder, "pki", "")
        self.context = ssl.create_default_context(cafile=pki + "ca.crt")
        self.context.load_cert_chain(pki + "admin.crt", pki + "admin.key")
        self.connection = self.connect()
        self.n_own = 0

    def script(self, command):
        run(os.path.join(ROOT, "tests/cluster/cluster.sh"), command, self.folder,
            env={**os.environ, "KINF_OWNER_PID": str(os.getpid())})

    def close(self):
        self.script("stop")
        subprocess.run(["rm", "-rf", self.folder], check=False)

    def connect(self):
        return http.client.HTTPSConnection(self.address, context=self.context, timeout=60)

    def ask(self, method, path, body=None, content_type="application/json"):
        self.n_own += path != "/metrics"
        self.connection.request(method, path, json.dumps(body) if body is not None else None,
                                {"Content-Type": content_type})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300 and not (method == "DELETE" and answer.status == 404):
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:200]}")
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


def wait_until(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


class Program:
    def __init__(self, path, kubeconfig):
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen([path], env={**os.environ, "KUBECONFIG": kubeconfig}, stdout=self.log,
                                        stderr=subprocess.STDOUT)

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return int(re.search(r"VmHWM:\s+(\d+)", file.read())[1]) / 1024

    def stop(self):
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
    program = Program(path, cluster.kubeconfig)
    figures = {}
    try:
        wait_until(lambda: all(copies.count(name, "0") == n_spaces for name in names), "all is copied", 120)
        figures["first copies s"] = time.monotonic() - began
        time.sleep(2)
        figures["requests to start"] = cluster.n_requests() - before
        before, cpu = cluster.n_requests(), program.cpu_seconds()
        time.sleep(REST)
        figures["requests a minute at rest"] = (cluster.n_requests() - before) * 60 / REST
        figures["CPU at rest ms/s"] = (program.cpu_seconds() - cpu) * 1000 / REST
        before, cpu = cluster.n_requests(), program.cpu_seconds()
        sent, value, due = {}, dict.fromkeys(names, 0), time.monotonic()
        for _ in range(N_CHANGES):
            name = random.choice(names)
            value[name] += 1
            time.sleep(max(0.0, due - time.monotonic()))
            sent[(name, str(value[name]))] = time.monotonic()
            cluster.ask("PATCH", path_of(name), {"data": {"value": str(value[name])}}, "application/merge-patch+json")
            due += 1 / RATE
        wait_until(lambda: all(copies.count(name, str(value[name])) == n_spaces for name in names), "all is right")
        times = sorted((at - when) * 1000 for key, when in sent.items() for at in copies.first.get(key, []))
        figures["change to copy p50 ms"] = times[len(times) // 2]
        figures["change to copy p99 ms"] = times[len(times) * 99 // 100]
        figures["CPU a change ms"] = (program.cpu_seconds() - cpu) * 1000 / N_CHANGES
        figures["requests a change"] = (cluster.n_requests() - before) / N_CHANGES
        figures["peak memory MB"] = program.peak_mb()
    except RuntimeError:
        program.log.seek(0)
        print(program.log.read()[-4000:])
        raise
    finally:
        figures["stop s"] = program.stop()
        copies.close()
        clear(cluster)
    return figures


def count_lines(source):
    """What is neither blank nor a comment alone."""
    with open(source, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("//"))


def main():
    programs = build()
    cluster = Cluster()
    results = {name: [] for name in programs}
    try:
        for i in range(N_SPACES):
            cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": f"space-{i}"}})
        wait_until(lambda: b"kube-public" in cluster.ask("GET", "/api/v1/namespaces"), "the server's namespaces")
        time.sleep(2)
        n_spaces = len(json.loads(cluster.ask("GET", "/api/v1/namespaces"))["items"]) - 1
        before = cluster.n_requests()
        time.sleep(REST)
        alone = (cluster.n_requests() - before) * 60 / REST
        for _ in range(ROUNDS):
            for name, (path, _) in programs.items():
                results[name].append(measure(cluster, path, n_spaces))
    finally:
        cluster.close()
    print(f"{N_SOURCES} sources, {n_spaces} copies of each, {N_CHANGES} changes at {RATE}/s, medians of {ROUNDS}; "
          f"the server alone makes {alone:.0f} requests a minute")
    print(f"{'':28}" + "".join(f"{name:>20}" for name in programs))
    print(f"{'lines of code':28}" + "".join(f"{count_lines(source):>20}" for _, source in programs.values()))
    print(f"{'binary MB':28}" + "".join(f"{os.path.getsize(path) / 1e6:>20.1f}" for path, _ in programs.values()))
    for figure in next(iter(results.values()))[0]:
        print(f"{figure:28}" + "".join(f"{statistics.median(f[figure] for f in runs):>20.2f}" for runs in results.values()))


if __name__ == "__main__":
    main()
