"""What it costs to read one's own writes: pairs of a PATCH and a GET by client-go on a real kube-apiserver, directly and
through kinformerd with consistency cache (which may read the past), session and latest. Fails if another one than cache
does."""

import os
import re

from cluster import BIN, Cluster
from lab import RELEASE, Failure, Process, Rows, make, run, wait_for

DAEMON = os.path.join(RELEASE, "bin", "kinformerd")
N_PAIRS = 2000


def start_daemon(folder, name, kubeconfig, config):
    """One that is ready, and where."""
    path, clients = os.path.join(folder, name + ".yaml"), os.path.join(folder, "clients-" + name)
    with open(path, "w", encoding="utf-8") as file:
        file.write('listen: ["127.0.0.1:0"]\nevents: none\n' + config)
    daemon = Process(folder, name, [DAEMON, "--kubeconfig", kubeconfig, "--config", path, "--write-kubeconfig", clients, "--log-level", "warn"])
    wait_for(lambda: os.path.exists(clients))
    with open(clients, encoding="utf-8") as file:
        url = next(line.split("server: ")[1].strip() for line in file if "server: " in line)
    wait_for(lambda: run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", url + "/readyz", check=False) == "200")
    return daemon, url


def figures_of(line):
    """Of "write p50=0.5 p99=1.2 ms  read ...  stale 0 of 2000"."""
    found = {f"{what}, {quantile}, ms": float(ms) for what, text in re.findall(r"(write|read|pair) (.*?)  ", line)
             for quantile, ms in re.findall(r"(p\d+)=([\d.]+)", text)}
    return found | {"stale reads": int(re.search(r"stale (\d+)", line)[1])}


def pairs(rows, name, url, cluster):
    for n_clients in (1, 32):
        line = run(os.path.join(BIN, "sessions"), "-measure", "-server", url, "-token", cluster.token(), "-namespace", "default",
                   "-workers", str(n_clients), "-pairs", str(N_PAIRS))
        if name != "cache" and "stale 0 of " not in line:
            raise Failure(f"{name}: {line}")
        rows.add(f"{name}, {n_clients} clients", figures_of(line))


def session(lab):
    make(DAEMON)
    rows = Rows()
    with Cluster() as cluster:
        for _ in range(lab.runs):
            pairs(rows, "direct", cluster.url, cluster)
            for consistency in ("cache", "session", "latest"):
                daemon, url = start_daemon(cluster.base, consistency, cluster.kubeconfig,
                                           f"passThrough: true\nresources:\n- resource: configmaps\n  consistency: {consistency}\n")
                with daemon:
                    pairs(rows, consistency, url, cluster)
        return {"runs": lab.runs, "rows": rows.list(), "versions": cluster.versions()}
