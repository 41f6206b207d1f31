"""kinformerd beside the kube-apiserver that it caches, and kubectl proxy, for the same client (bench_serve, HTTP/1.1).

Pods are small ones on a thousand nodes. Events are written to etcd, so that nobody works for the writes. A measurement
fails if an event is lost, repeated or out of order.
"""

import os
import random
import re
import resource
import threading
import time

from cluster import KUBECTL, Cluster
from lab import BENCH, RELEASE, Failure, Process, Rows, cpu_seconds, fields_of, make, run, wait_for

PROGRAM = os.path.join(RELEASE, "bench", "bench_serve")
DAEMON = os.path.join(RELEASE, "bin", "kinformerd")
N_PODS, N_OUTAGE = 10000, 1000
API, PROXY, TLS, PLAIN = "API server", "kubectl proxy", "daemon, TLS", "daemon, sidecar"
SERVERS = (API, PROXY, TLS, PLAIN)
# Of bench_serve watch: what is shown of its figures.
WATCHING = {"watches": "watches", "delivered/s": "delivered_per_s", "lost, repeated, out of order": "wrong", "connections cut": "cut",
            "write to event, p50, ms": "p50_ms", "write to event, p99, ms": "p99_ms", "cores": "cores",
            "cores of the API server": "api_cores", "kB a watch": "kb_per_watch", "kB a watch, after the events": "kb_per_watch_then",
            "s to open all": "open_s"}
RESTARTING = {"watches": "watches", "delivered": "delivered", "lost, repeated, out of order": "wrong", "connections cut": "cut",
              "sent the state": "restated", "refused once back": "refused", "the last one with": "refusal",
              "s away": "away_s", "s until all caught up": "caught_up_s"}


def most_descriptors():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


class Site:
    """The cluster with its pods, and one server at a time beside it that caches them, or passes on."""

    def __init__(self, n_nodes):
        make(PROGRAM, DAEMON)
        self.cluster = Cluster()
        self.server, self.url, self.pid, self.next_event = None, None, None, 0
        self.port = random.randrange(10240, 30240)  # where no client's own port is, so that it is free after a restart
        self.fleet = ["-pods", N_PODS, "-namespaces", 10, "-nodes", n_nodes, "-pod", os.path.join(BENCH, "small-pod.json")]
        self.n_nodes = n_nodes
        try:
            self.cluster.apply("reader.yaml", "kinformer.yaml")
            self.cluster.loader("load", *self.fleet)
            self.begin(API)
            self.pod = "/api/v1/namespaces/load-0/pods/" + re.search(
                r'"name":"(load-[^"]*)"', self.ask("/api/v1/namespaces/load-0/pods?limit=1"))[1]
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop_server()
        self.cluster.__exit__()

    def ask(self, target):
        return run("curl", "-sk", "-A", "bench", "-H", "Authorization: Bearer " + self.cluster.token(), self.url + target)

    def is_ready(self):
        return self.server.process.poll() is not None or self.status("/readyz") == "200"

    def status(self, target):
        return run("curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", self.url + target, check=False)

    def stop_server(self):
        if self.server:
            self.server.process.kill()
            self.server.process.wait()
        self.server = None

    def start_daemon(self, name):
        config = os.path.join(self.cluster.base, "config.yaml")
        pki = os.path.join(self.cluster.folder, "pki", "serving.")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'listen: ["127.0.0.1:{self.port}"]\nevents: none\nresources:\n- resource: pods\n'
                       "  indices:\n  - name: node\n    path: spec.nodeName\n")
            if name == TLS:
                file.write(f"auth: delegated\ntls:\n  certFile: {pki}crt\n  keyFile: {pki}key\n")
        self.server = Process(self.cluster.base, "daemon", [DAEMON, "--kubeconfig", self.cluster.kubeconfig, "--config", config,
                                                            "--log-level", "error"])
        self.url = f"{'https' if name == TLS else 'http'}://127.0.0.1:{self.port}"

    def start_proxy(self):
        self.server = Process(self.cluster.base, "proxy", [KUBECTL, "proxy", "--port", str(self.port), "--kubeconfig",
                                                           self.cluster.kubeconfig])
        self.url = f"http://127.0.0.1:{self.port}"

    def restart_api_server(self):
        self.cluster.script("kill-apiserver")
        self.cluster.script("start-apiserver")

    def begin(self, name):
        """That server, freshly started, is the one that is asked."""
        self.stop_server()
        if name == API:
            self.restart_api_server()
            self.url, self.pid = self.cluster.url, self.cluster.pid()
        else:
            self.start_proxy() if name == PROXY else self.start_daemon(name)
            wait_for(self.is_ready)
            self.pid = self.server.pid
        self.version = re.search(r'"resourceVersion":"(\d+)"', self.ask("/api/v1/pods?limit=1"))[1]

    def client(self, *arguments, user="admin"):
        """Figures of bench_serve."""
        said = run(PROGRAM, arguments[0], self.url, *map(str, arguments[1:]), env={**os.environ, "TOKEN": self.cluster.token(user)})
        return {key: float(value) for key, value in fields_of(said).items()}

    def events(self, n, rate):
        self.cluster.loader("events", *self.fleet, "-first", self.next_event, "-n", n, "-rate", rate)
        self.next_event += n

    def watching(self, n_watches, n_nodes, n_events, pid, act):
        """Figures of so many watches while `act` runs."""
        command = [PROGRAM, "watch", self.url, *map(str, (pid, n_watches, n_nodes, self.version, self.next_event, n_events))]
        with Process(self.cluster.base, "watches", command, env={**os.environ, "TOKEN": self.cluster.token()}) as client:
            client.wait_line("^ready$")
            also = act() or {}
            client.process.wait()
            said = {key: float(value) for key, value in fields_of(client.text()).items()} | also
        if client.process.returncode != 0:
            raise Failure(f"{n_watches} watches: {client.text()}")
        return said | {"wrong": said["lost"] + said["repeated"] + said["reordered"]}

    def load(self, n, rate):
        """Events, and what the API server worked meanwhile, whoever it serves."""
        began, cpu = time.monotonic(), cpu_seconds(self.cluster.pid())
        self.events(n, rate)
        return {"api_cores": (cpu_seconds(self.cluster.pid()) - cpu) / (time.monotonic() - began)}


class Sheet(Rows):
    """Rows of figures, columns of servers."""

    def put(self, row, server, said, shown):
        for label, key in shown.items():
            if key in said:
                self.add(f"{row}, {label}", {server: said[key]})


def about(site, sheet, runs=1):
    return {"runs": runs, "rows": sheet.list(), "objects": N_PODS, "note": f"on {site.n_nodes} nodes", "versions": site.cluster.versions()}


def gets(site, sheet, server, n_asked):
    for row, target, n in (("GET of a pod", site.pod, n_asked), ("GET, resourceVersion=0", site.pod + "?resourceVersion=0", n_asked),
                           (f"LIST of {N_PODS:,} pods", "/api/v1/pods", 5)):
        sheet.put(row, server, site.client("get", target, 1, n, 0), {"p50, ms": "p50_ms", "p99, ms": "p99_ms"})


def watch_row(site, sheet, row, server, n_watches, n_nodes, rate, seconds):
    n_events = rate * seconds
    said = site.watching(n_watches, n_nodes, n_events, site.pid, lambda: site.load(n_events, rate))
    sheet.put(row, server, said, WATCHING)


def sidecar(lab):
    """GET, LIST, and watches of a node each."""
    sheet, n_watches = Sheet(), min(3000, most_descriptors() * 3 // 10)
    with Site(min(1000, n_watches)) as site:
        for _ in range(lab.runs):
            for server in SERVERS:
                site.begin(server)
                watch_row(site, sheet, f"{n_watches:,} watches of a node, 100/s", server, n_watches, site.n_nodes, 100, 5)
                site.client("get", site.pod, 1, 200, 0)
                gets(site, sheet, server, 1000)
        return about(site, sheet, lab.runs)


def watches(lab):
    """Ten thousand, or what descriptors allow, of a node each, and five hundred of all."""
    # Of one address the daemon takes two thirds of its descriptors, less some of its own.
    sheet, n_watches = Sheet(), min(10000, most_descriptors() * 6 // 10)
    with Site(min(1000, n_watches)) as site:
        for n, n_nodes, rate in ((n_watches, site.n_nodes, 50), (n_watches, site.n_nodes, 1000), (500, 0, 50)):
            for server in (API, TLS, PLAIN):
                site.begin(server)
                watch_row(site, sheet, f"{'of a node' if n_nodes else 'of all'}, {rate}/s", server, n, n_nodes, rate, 8)
        return about(site, sheet)


def outage(site, server, whose):
    """Events before it and while it lasts."""
    site.events(N_OUTAGE, 0)
    time.sleep(1)
    site.cluster.script("kill-apiserver") if whose == API else site.stop_server()
    site.events(N_OUTAGE, 0)
    site.cluster.script("start-apiserver") if whose == API else site.start_daemon(server)


def storm(lab):
    """Of a thousand: ten thousand that come back at once keep an API server on two cores from getting ready."""
    sheet = Sheet()
    most_descriptors()
    with Site(1000) as site:
        for row, is_of_api in (("restart", False), ("restart of the API server", True)):
            for server in (API, TLS, PLAIN):
                site.begin(server)
                whose = API if is_of_api or server == API else server
                said = site.watching(1000, site.n_nodes, 2 * N_OUTAGE, 0, lambda: outage(site, server, whose))
                sheet.put(row, server, said, RESTARTING)
        return about(site, sheet)


def hostile(lab):
    """Twenty connections with selectors of thousands of terms, fifty lists that are not read, a thousand silent ones."""
    sheet = Sheet()
    most_descriptors()
    with Site(1000) as site:
        for server in (API, TLS, PLAIN):
            site.begin(server)
            asked = ("get", site.pod, 100, 20, 500)
            shown = {"p50, ms": "p50_ms", "p99, ms": "p99_ms", "failed": "failed"}
            sheet.put("alone", server, site.client(*asked, user="reader"), shown)
            attack = []
            attacker = threading.Thread(target=lambda: attack.append(site.client("attack", 13, user="kinformer")))
            attacker.start()
            time.sleep(2)
            sheet.put("attacked", server, site.client(*asked, user="reader"), shown)
            attacker.join()
            sheet.put("attacked", server, attack[0], {"attacker's answers": "selectors"})
        return about(site, sheet)
