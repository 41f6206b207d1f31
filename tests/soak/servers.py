"""The server of a soak: kinformer-sim with its faults, or etcd and kube-apiserver with theirs."""

import atexit
import collections
import http.client
import json
import os
import signal
import socket
import time

import schedule
from harness import Cluster, wait_until
from sim import Sim

HERE = os.path.dirname(os.path.abspath(__file__))
WIDGETS = os.path.join(HERE, "widgets.yaml")

# A fault that never comes: how many requests it would have been for is counted.
COUNT = "list,watch,watchlist * 500 user-agent=kinformer skip=1000000000"
# Longer than anybody waits between two requests.
OUTAGE_SECONDS = 2
OUTAGE = f"list,watch,watchlist * 503 user-agent=kinformer for={OUTAGE_SECONDS}s"


def key_to_version(text):
    return {item["metadata"]["namespace"] + "/" + item["metadata"]["name"]: item["metadata"]["resourceVersion"]
            for item in json.loads(text)["items"]}


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class SimServer:
    """kinformer-sim; the oracle's writers reach it by a unix socket, where no fault is for them."""

    HALTED = ("server",)

    def __init__(self, folder, mode, seed):
        self.socket = os.path.join(folder, "server")
        self.sim = Sim("--tls", "--listen", "unix:" + self.socket, "--no-workloads", "--fault-listen", "127.0.0.1:0",
                       "--load", WIDGETS, "--seed", str(seed), "--log-level", "warn", mode=mode)
        self.kubeconfig = self.sim.kubeconfig
        self.oracle_arguments = ["--server", "http://localhost", "--unix", self.socket, "--token", "soak"]
        self.tally = collections.Counter()
        self.n_reads = 0  # lists and watches that were asked for
        wait_until(lambda: self.sim.fault_address, "the address for faults")
        self.add_fault(COUNT)

    def signal(self, _, number):
        self.sim.process.send_signal(number)

    def act(self, name):
        self.sim.act(name)
        self.tally[name] += 1

    def back_up(self):
        self.sim.act("backup")

    def restore(self):
        """With the outage that it is for everybody: without one nobody can notice it (docs/limits.md)."""
        self.add_fault(OUTAGE)
        self.sim.act("restore")
        self.act("drop")

    def add_fault(self, line):
        status, answer = self.sim.control("POST", "/faults", line)
        if status not in (200, 201):
            raise AssertionError(f"{line}: {status} {answer}")

    def end_faults(self, names):
        """`names`: line -> kind of fault. Counts what they hit."""
        for fault in self.sim.control("GET", "/faults")[1]["faults"]:
            if fault["spec"] == COUNT:
                self.n_reads += fault["requests"]
            elif fault["spec"] in names:
                self.tally[names[fault["spec"]]] += fault["hits"]
        self.sim.control("DELETE", "/faults")
        self.add_fault(COUNT)

    def pods(self):
        """Key -> version."""
        connection = UnixConnection(self.socket)
        connection.request("GET", "/api/v1/pods")
        text = connection.getresponse().read()
        connection.close()
        return key_to_version(text)

    def kill(self):
        self.sim.kill()


class ClusterServer:
    """etcd and kube-apiserver. Followers are a user whose rights can be withdrawn, and whose certificate changes; the
    oracle is the admin."""

    HALTED = ("server", "etcd")
    BINDING = json.dumps({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "soak"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "user"}]})
    # Versions of widgets that are served, and the one that is stored: those that come in turn, the first ones last.
    VERSIONS = ((("v1", "v1beta1"), "v1beta1"), (("v1", "v1beta1"), "v1"), (("v1",), "v1"))
    WITHDRAWN_SECONDS = 3
    SCHEMA = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}

    def __init__(self, *_):
        self.cluster = Cluster()
        self.tally = collections.Counter()
        self.n_reads = 0
        self.kubeconfig = self.cluster.kubeconfig("user-files")
        self.n_versions = -1  # changes of VERSIONS, less one
        self.cluster.kubectl("create", "-f", WIDGETS)
        self.cluster.kubectl("wait", "--for=condition=Established", "crd/widgets.soak.kinformer.dev")
        self.is_granted = False
        self.grant()
        pki = os.path.join(self.cluster.folder, "pki", "")
        with open(os.path.join(self.cluster.folder, "tokens", "admin"), encoding="utf-8") as file:
            token = file.read().strip()
        self.oracle_arguments = ["--server", self.cluster.env["KINF_SERVER"], "--authority", pki + "ca.crt",
                                 "--certificate", pki + "admin.crt", "--key", pki + "admin.key", "--token", token]

    def pid(self, name):
        path = os.path.join(self.cluster.folder, ("etcd" if name == "etcd" else "kube-apiserver") + ".pid")
        with open(path, encoding="utf-8") as file:
            return int(file.read())

    def signal(self, name, number):
        os.kill(self.pid(name), number)

    def act(self, name):
        getattr(self, name)()
        self.tally[schedule.CLUSTER_ACTS[name]] += 1

    def crash(self):
        self.cluster.run_script("kill-apiserver")
        self.cluster.run_script("start-apiserver")

    def crash_etcd(self):
        self.cluster.run_script("kill-etcd")
        self.cluster.run_script("start-etcd")

    def restart(self):
        self.cluster.run_script("restart-apiserver")

    def rotate(self):
        self.cluster.run_script("rotate")

    def rotate_authority(self):
        self.cluster.run_script("rotate-authority")

    def serve_versions(self, served, stored):
        versions = [{"name": name, "served": name in served, "storage": name == stored, "schema": self.SCHEMA}
                    for name in ("v1", "v1beta1")]
        self.cluster.kubectl("patch", "crd", "widgets.soak.kinformer.dev", "--type", "merge", "-p",
                             json.dumps({"spec": {"versions": versions}}))

    def change_versions(self):
        """Beside v1 there is v1beta1, which is stored, or served alone, or withdrawn. Each change ends all watches."""
        self.n_versions += 1
        self.serve_versions(*self.VERSIONS[self.n_versions % len(self.VERSIONS)])

    def withdraw_versions(self):
        """All of them, and back: to who follows v1 what there is was deleted, and is added again."""
        _, stored = versions = self.VERSIONS[self.n_versions % len(self.VERSIONS)]
        self.serve_versions((), stored)
        wait_until(lambda: not self.are_widgets_served(), "no widgets")
        time.sleep(self.WITHDRAWN_SECONDS)
        self.serve_versions(*versions)
        wait_until(self.are_widgets_served, "widgets")

    def are_widgets_served(self):
        return self.cluster.try_kubectl("get", "--raw", "/apis/soak.kinformer.dev/v1/widgets?limit=1")

    def compact(self):
        self.cluster.loader("compact")

    def withdraw(self):
        """The followers' rights, until the next quiet."""
        if self.is_granted:
            self.cluster.kubectl("delete", "clusterrolebinding", "soak")
        self.is_granted = False

    def grant(self):
        """Waits until it counts, since who is refused asks more and more rarely."""
        if not self.is_granted:
            self.cluster.kubectl("create", "-f", "-", stdin=self.BINDING)
        self.is_granted = True
        wait_until(lambda: self.cluster.try_kubectl("auth", "can-i", "list", "pods", "-A", "--as", "user"), "rights")

    def back_up(self):
        self.cluster.run_script("checkpoint")

    def break_off(self):
        """An outage for everybody, which ends with restore()."""
        self.cluster.run_script("kill-apiserver")
        time.sleep(OUTAGE_SECONDS)

    def restore(self):
        self.cluster.run_script("rollback")
        self.is_granted = True  # as at the backup

    def version(self):
        return int(json.loads(self.cluster.kubectl("get", "--raw", "/api/v1/pods?limit=1"))["metadata"]["resourceVersion"])

    def end_faults(self, _):
        self.grant()

    def pods(self):
        return key_to_version(self.cluster.kubectl("get", "--raw", "/api/v1/pods"))

    def kill(self):
        for name in self.HALTED:
            self.signal(name, signal.SIGCONT)
        atexit.unregister(self.cluster.close)
        self.cluster.close()
