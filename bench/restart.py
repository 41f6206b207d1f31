"""How soon a kinformerd that starts again answers, and what it asks the server for until then.

A kinformer-sim of generated pods over plain HTTP on loopback; a first start without a file, one with it, and one with
serveStale while the server is gone; and with objects that are held compressed, which have a file of their own.
"""

import http.client
import json
import os
import re
import tempfile
import time

from lab import RELEASE, Process, Rows, make, status_mib, wait_for

DAEMON, SIM = (os.path.join(RELEASE, "bin", name) for name in ("kinformerd", "kinformer-sim"))
DAEMON_ADDRESS, SIM_ADDRESS = "127.0.0.1:18231", "127.0.0.1:18230"
# Name, how objects are held, keys of the configuration, whether the server is gone.
STARTS = (("no file", "plain", {}, False), ("a file", "plain", {}, False),
          ("no file, compressed", "compressed", {}, False), ("a file, compressed", "compressed", {}, False),
          ("a file, serveStale", "plain", {"serveStale": True}, False),
          ("a file, serveStale, no server", "plain", {"serveStale": True}, True))


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


def start_daemon(folder, kubeconfig, store, keys):
    config = os.path.join(folder, "config.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"listen": [DAEMON_ADDRESS], "stateDir": os.path.join(folder, store), "stateInterval": "0s",
                   "resources": [{"resource": "pods", "store": store}], **keys}, file)
    return Process(folder, "daemon", [DAEMON, "--config", config, "--kubeconfig", kubeconfig, "--log-level", "debug"])


def start_once(folder, kubeconfig, store, keys, target, rest_s):
    with start_daemon(folder, kubeconfig, store, keys) as daemon:
        wait_for(lambda: ask(DAEMON_ADDRESS, target)[0] == 200)
        figures = {"first answer, s": (time.monotonic_ns() - daemon.began_ns) / 1e9}
        with open(daemon.log, encoding="utf-8") as file:
            log = file.read()
        loaded = re.search(r"loaded resource=\S+ .* ms=(\d+)", log)
        figures |= {"loading, s": int(loaded[1]) / 1000 if loaded else 0, "requests": len(re.findall(r" GET \S+ host=", log)),
                    "peak, MiB": status_mib(daemon.pid, "VmHWM")}
        time.sleep(rest_s)
        began = time.monotonic()
        daemon.stop()
        figures["stop, s"] = time.monotonic() - began
        with open(daemon.log, encoding="utf-8") as file:
            written = re.search(r"state written .* bytes=(\d+) ms=(\d+)", file.read())
        return figures | ({"file, MB": int(written[1]) / 1e6, "writing it, s": int(written[2]) / 1000} if written else {})


def starts_of(rows, n_pods, folder):
    kubeconfig = os.path.join(folder, "kubeconfig")
    with Process(folder, "sim", [SIM, "--listen", SIM_ADDRESS, "--write-kubeconfig", kubeconfig, "--no-workloads", "--generate",
                                 f"pods={n_pods},nodes=100"]) as sim:
        wait_for(lambda: ask(SIM_ADDRESS, "/readyz")[0] == 200)
        pod = json.loads(ask(SIM_ADDRESS, "/api/v1/pods?limit=1")[1])["items"][0]["metadata"]
        for name, store, keys, is_gone in STARTS:
            if is_gone:
                sim.stop()
            rows.add(f"{n_pods:,} pods, {name}", start_once(
                folder, kubeconfig, store, keys, f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}", 0 if is_gone else 3))


def restart(lab):
    make(DAEMON, SIM)
    rows = Rows()
    for _ in range(lab.runs):
        for n_pods in (lab.size, 15 * lab.size):
            with tempfile.TemporaryDirectory() as folder:
                starts_of(rows, n_pods, folder)
    return {"runs": lab.runs, "rows": rows.list()}
