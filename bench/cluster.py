"""A real etcd and kube-apiserver (tests/cluster), and clients on it: first sync of pods that it serves."""

import json
import os
import shutil
import socket
import tempfile
import threading
import time
import urllib.parse

from lab import CURL, ROOT, Client, Rows, curl_once, run, status_mib, why_void

BIN = os.path.join(ROOT, "build", "cluster", "bin")
KUBECTL = os.path.join(BIN, "kubectl")
SETTLE_S = 0.5


class Cluster:
    def __init__(self):
        run(os.path.join(ROOT, "tests/cluster/build.sh"))
        self.base = tempfile.mkdtemp(prefix="kinformer-bench-")
        self.folder = os.path.join(self.base, "cluster")
        self.kubeconfig = os.path.join(self.folder, "admin.kubeconfig")
        self.ca = os.path.join(self.folder, "pki", "ca.crt")
        self.script("start")
        with open(os.path.join(self.folder, "cluster.env"), encoding="utf-8") as file:
            env = dict(line.strip().split("=", 1) for line in file)
        self.url, self.etcd = env["KINF_SERVER"], env["KINF_ETCD"]

    def script(self, command):
        run(os.path.join(ROOT, "tests/cluster/cluster.sh"), command, self.folder,
            env={**os.environ, "KINF_OWNER_PID": str(os.getpid())})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.script("stop")
        shutil.rmtree(self.base)

    def pid(self):
        with open(os.path.join(self.folder, "kube-apiserver.pid"), encoding="ascii") as file:
            return int(file.read())

    def token(self, user="admin"):
        with open(os.path.join(self.folder, "tokens", user), encoding="ascii") as file:
            return file.read().strip()

    def apply(self, *manifests):
        run(KUBECTL, "--kubeconfig", self.kubeconfig, "apply",
            *(word for name in manifests for word in ("-f", os.path.join(ROOT, "tests/cluster/manifests", name))))

    def loader(self, verb, *flags):
        where = ["-kubeconfig", self.kubeconfig] if verb == "load" else []
        run(os.path.join(BIN, "loader"), verb, *where, "-etcd", self.etcd, *map(str, flags))

    def curl(self, target, out="/dev/null"):
        """Not with curl's own User-Agent: the server would indent its answer."""
        return ["curl", "-sS", "-o", out, "-w", "%{size_download}", "-A", "bench", "--http1.1", "--cacert", self.ca, "-H",
                "Authorization: Bearer " + self.token(), self.url + target]

    def versions(self):
        said = json.loads(run(KUBECTL, "--kubeconfig", self.kubeconfig, "get", "--raw", "/version"))
        etcd = run(os.path.join(BIN, "etcd"), "--version").split("\n")[0].split()[-1]
        return {"kube-apiserver": said["gitVersion"].removeprefix("v"), "etcd": etcd}


# --- first sync ---

CLIENTS = ["kinformer", "kinformer, gzip", "kinformer, agent fields", "kinformer, watch list", "kinformer, metadata",
           "client-go, protobuf", "client-go, JSON", "client-go, dynamic", "client-go, metadata", "kube-rs", "kube-rs, watch list", CURL]


def sum_of(items, has_phase):
    """What a client that was told of these pods prints."""
    total = 0
    for item in items:
        meta, value = item["metadata"], 0xcbf29ce484222325
        phase = item.get("status", {}).get("phase", "") if has_phase else ""
        for byte in f"{meta['name']}\n{meta['uid']}\n{meta['resourceVersion']}\n{phase}\n".encode():
            value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
        total += value
    return f"{total & 0xffffffffffffffff:016x}"


def sums_of(cluster):
    """How many pods there are, and their sums with and without phase, by curl alone."""
    path = os.path.join(cluster.base, "list.json")
    size = curl_once(cluster.curl("/api/v1/pods", path))[2]
    with open(path, encoding="utf-8") as file:
        items = json.load(file)["items"]
    os.unlink(path)
    return len(items), {has_phase: sum_of(items, has_phase) for has_phase in (True, False)}, size


def sync_once(name, cluster, n_pods, sums):
    if name == CURL:
        wall_s, cpu_s, _ = curl_once(cluster.curl("/api/v1/pods"))
        return {"wall_s": wall_s, "cpu_s": cpu_s}, None
    with tempfile.TemporaryDirectory() as folder, Client(name, folder, cluster.kubeconfig) as client:
        said = client.said("synced")
        time.sleep(SETTLE_S)
        figures = {"wall_s": (said["at_ns"] - client.began_ns) / 1e9, "cpu_s": said["cpu_us"] / 1e6,
                   "peak_mib": status_mib(client.pid, "VmHWM"), "settled_mib": status_mib(client.pid, "VmRSS")}
        return figures, why_void(said, sums[client.sees_phase()], n_pods)


# --- bytes on the wire ---


class Relay:
    """Passes connections on to a server, and counts the bytes that come back."""

    def __init__(self, server):
        self.server = urllib.parse.urlsplit(server)
        self.n_bytes = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection((self.server.hostname, self.server.port))
                threading.Thread(target=self.pass_on, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self.pass_on, args=(server, client, True), daemon=True).start()
        except OSError:
            pass  # the listener was closed

    def pass_on(self, source, target, is_counted):
        """Until one of both ends it, whereupon the other's thread ends as well."""
        try:
            while data := source.recv(1 << 16):
                self.n_bytes += len(data) if is_counted else 0
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def wire_mib(name, cluster):
    """What a first sync takes of the network, TLS included: a run of its own, since the relay takes time."""
    with Relay(cluster.url) as relay, tempfile.TemporaryDirectory() as folder:
        if name == CURL:
            curl_once([word.replace(cluster.url, relay.url) for word in cluster.curl("/api/v1/pods")])
        else:
            kubeconfig = os.path.join(folder, "kubeconfig")
            with open(cluster.kubeconfig, encoding="utf-8") as source, open(kubeconfig, "w", encoding="utf-8") as target:
                target.write(source.read().replace(cluster.url, relay.url))
            with Client(name, folder, kubeconfig) as client:
                client.said("synced")
        return relay.n_bytes / 2**20


def real(lab):
    rows = Rows()
    with Cluster() as cluster:
        cluster.loader("load", "-pods", lab.size, "-namespaces", 10)
        n_pods, sums, size = sums_of(cluster)
        for _ in range(lab.runs):
            for name in lab.only(CLIENTS):
                rows.add(name, *sync_once(name, cluster, n_pods, sums))
        for name in lab.only(CLIENTS):
            rows.add(name, {"wire_mib": wire_mib(name, cluster)})
        return {"objects": n_pods, "runs": lab.runs, "rows": rows.list(), "note": f"{size / n_pods:,.0f} bytes each as JSON",
                "versions": lab.versions | cluster.versions()}
