"""Upstream's largest cluster: 150,000 pods and 5,000 events a second from the canned server, and a kinformerd on it that a thousand
watches of a node each ask. It fails if one of these loses an event, or has it twice or out of order."""

import tempfile
import time

from lab import Failure, Process, Rows, Server, cpu_seconds, fields_of, make, status_mib
from session import start_daemon
from sidecar import DAEMON, PROGRAM, WATCHING, most_descriptors

N_PODS, PODS_PER_NODE = 150000, 30  # the latter of tests/replay
RATE, N_WATCHES = 5000, 1000
WARM_S, COUNTED_S = 15, 10  # the first is for all watches to open
FIRST_RV = 1000000000


def watch_all(folder, server, daemon, url):
    """Of bench_serve, whose events are those behind WARM_S."""
    began_ns = time.time_ns() - time.monotonic_ns() + round(server.wait_watches(1)[0] * 1e9)
    command = ["watch", url, daemon.pid, N_WATCHES, server.n_pods // PODS_PER_NODE, FIRST_RV + server.n_pods, WARM_S * RATE,
               COUNTED_S * RATE, RATE, began_ns]
    with Process(folder, "watches", [PROGRAM, *map(str, command)]) as client:
        client.process.wait()
        said = {key: float(value) for key, value in fields_of(client.text()).items()}
    if client.process.returncode != 0:
        with open(client.log, encoding="utf-8") as log:
            raise Failure(f"{N_WATCHES} watches: {client.text()}{log.read()}")
    return said | {"wrong": said["lost"] + said["repeated"] + said["reordered"]}


def crowd_once(n_pods):
    with tempfile.TemporaryDirectory() as folder, Server(folder, n_pods, "--events", str(RATE), "--n-events",
                                                         str(RATE * (WARM_S + COUNTED_S))) as server:
        daemon, url = start_daemon(folder, "daemon", server.kubeconfig,
                                   "resources:\n- resource: pods\n  indices:\n  - name: node\n    path: spec.nodeName\n")
        with daemon:
            figures = {"ready, s": (time.monotonic_ns() - daemon.began_ns) / 1e9}
            said = watch_all(folder, server, daemon, url)
            figures |= {label: said[key] for label, key in WATCHING.items() if key in said}
            figures |= {"CPU in all, s": cpu_seconds(daemon.pid), "peak, MiB": status_mib(daemon.pid, "VmHWM")}
            began = time.monotonic()
            daemon.stop()
            return figures | {"end of the process, ms": (time.monotonic() - began) * 1e3}


def crowd(lab):
    make(PROGRAM, DAEMON)
    most_descriptors()
    rows = Rows()
    for n_pods in lab.sizes_or((N_PODS,)):
        for label, value in crowd_once(n_pods).items():
            rows.add(label, {f"{n_pods:,} pods": value})
    return {"note": f"{RATE:,} events a second, of which a fifth are on nodes that are watched", "rows": rows.list()}
