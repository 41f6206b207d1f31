#!/usr/bin/env python3
"""How soon a kinformerd that starts again answers: warm_restart.py [PODS...], with the release build.

A kinformer-sim of so many generated pods over plain HTTP on loopback; a first start without a file, one with it, and
one with serveStale while the server is gone. Of each: when the first GET of one pod is answered with 200, counted from
the process's start, how often the server was asked until then, and the peak of the memory. Results: bench/RESULTS.md.
"""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.path.join(ROOT, "build", "release", "bin")


def wait_for(what, patience=600):
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        found = what()
        if found:
            return found
        time.sleep(0.002)
    raise SystemExit("it takes too long")


def ask(address, target):
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request("GET", target)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except OSError:
        return 0, b""
    finally:
        connection.close()


def peak_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1)) // 1024


class Daemon:
    def __init__(self, folder, kubeconfig, **keys):
        config = os.path.join(folder, "config.json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"listen": ["127.0.0.1:18231"], "stateDir": os.path.join(folder, "state"), "stateInterval": "0s",
                       "resources": [{"resource": "pods"}], **keys}, file)
        self.log = os.path.join(folder, "log")
        self.began = time.monotonic()
        self.process = subprocess.Popen([os.path.join(BIN, "kinformerd"), "--config", config, "--kubeconfig",
                                         kubeconfig, "--log-level", "debug"], stderr=open(self.log, "w", encoding="utf-8"))

    def first_answer(self, target):
        wait_for(lambda: ask("127.0.0.1:18231", target)[0] == 200)
        return time.monotonic() - self.began

    def text(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def n_requests(self):
        return len(re.findall(r" GET \S+ host=", self.text()))

    def stop(self):
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        return time.monotonic() - began


def measure(n_pods, folder):
    kubeconfig = os.path.join(folder, "kubeconfig")
    sim = subprocess.Popen([os.path.join(BIN, "kinformer-sim"), "--listen", "127.0.0.1:18230", "--write-kubeconfig",
                            kubeconfig, "--no-workloads", "--generate", f"pods={n_pods},nodes=100"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: ask("127.0.0.1:18230", "/readyz")[0] == 200)
        pods = json.loads(ask("127.0.0.1:18230", "/api/v1/pods?limit=1")[1])["items"][0]["metadata"]
        target = f"/api/v1/namespaces/{pods['namespace']}/pods/{pods['name']}"
        for name, keys, is_gone in (("no file", {}, False), ("a file", {}, False), ("a file", {}, False),
                                    ("a file, serveStale", {"serveStale": True}, False),
                                    ("a file, serveStale, no server", {"serveStale": True}, True)):
            if is_gone:
                sim.kill()
                sim.wait()
            daemon = Daemon(folder, kubeconfig, **keys)
            seconds = daemon.first_answer(target)
            n_requests, peak = daemon.n_requests(), peak_mib(daemon.process.pid)
            loaded = re.search(r"loaded resource=\S+ .* ms=(\d+)", daemon.text())
            time.sleep(3 if not is_gone else 0)
            stop = daemon.stop()
            written = re.search(r"state written .* bytes=(\d+) ms=(\d+)", daemon.text())
            print(f"{n_pods} pods, {name}: first answer {seconds:.2f} s"
                  f" (loading {int(loaded.group(1)) / 1000 if loaded else 0:.2f} s),"
                  f" {n_requests} requests, peak {peak} MiB, stop {stop:.2f} s"
                  + (f", file {int(written.group(1)) / 1e6:.1f} MB in {int(written.group(2)) / 1000:.2f} s"
                     if written else ""), flush=True)
    finally:
        sim.kill()
        sim.wait()


def main():
    for n_pods in [int(n) for n in sys.argv[1:]] or [10000]:
        with tempfile.TemporaryDirectory() as folder:
            measure(n_pods, folder)


if __name__ == "__main__":
    main()
