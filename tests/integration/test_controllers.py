"""kube-controller-manager and kube-scheduler through a daemon that names no type: deployments roll, and how much less the
API server is asked. Nodes are made up, and a small loop does what kubelets would do."""

import atexit
import collections
import contextlib
import json
import os
import re
import subprocess
import tempfile
import threading
import time
import unittest

from harness import PATIENCE, TOOLS, Cluster, Daemon, make_key_pair, need_cluster, wait_until

SPACE = "rolling"
PROGRAMS = ("kube-controller-manager", "kube-scheduler")
N_NODES = 3
READS = ("get", "list", "watch")


def setUpModule():
    need_cluster("controllers of its own")
    for program in PROGRAMS:
        if not os.access(os.path.join(TOOLS, program), os.X_OK):
            raise unittest.SkipTest(f"there is no {program} in {TOOLS}: tests/cluster/build.sh builds it")


class AuditedCluster(Cluster):
    """One whose API server writes down who asks what."""

    def __init__(self):
        self.notes = tempfile.TemporaryDirectory()
        self.audit = os.path.join(self.notes.name, "audit.log")
        policy = os.path.join(self.notes.name, "policy.yaml")
        with open(policy, "w", encoding="utf-8") as file:
            file.write("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [ResponseStarted, ResponseComplete, Panic]\n"
                       "rules:\n- level: Metadata\n")
        os.environ["KINF_APISERVER_FLAGS"] = f"--audit-log-path={self.audit} --audit-policy-file={policy}"
        try:
            super().__init__()
        finally:
            del os.environ["KINF_APISERVER_FLAGS"]

    def requests(self):
        """(program, verb) -> how many were received so far."""
        counts = collections.Counter()
        with open(self.audit, encoding="utf-8") as file:
            for line in file:
                event = json.loads(line)
                program = event.get("userAgent", "").split("/")[0]
                if program in (*PROGRAMS, "kinformerd"):
                    counts[program, event["verb"]] += 1
        return counts

    def reads(self):
        return sum(n for (_, verb), n in self.requests().items() if verb in READS)


class Kubelets(threading.Thread):
    """Runs what is bound to a node, and ends what is to be deleted."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.connection = cluster.connect()
        self.is_over = threading.Event()

    def send(self, method, target, body=None):
        self.connection.request(method, target, body=json.dumps(body or {}),
                                headers={"Content-Type": "application/merge-patch+json" if method == "PATCH"
                                         else "application/json"})
        answer = self.connection.getresponse()
        return json.loads(answer.read())

    def run(self):
        while not self.is_over.wait(0.2):
            for pod in self.send("GET", f"/api/v1/namespaces/{SPACE}/pods").get("items", ()):
                self.care_for(pod)

    def care_for(self, pod):
        target = f"/api/v1/namespaces/{SPACE}/pods/{pod['metadata']['name']}"
        if "deletionTimestamp" in pod["metadata"]:
            self.send("DELETE", target, {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0})
        elif "nodeName" in pod["spec"] and pod["status"].get("phase") == "Pending":
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            self.send("PATCH", target + "/status", {"status": {
                "phase": "Running", "startTime": now, "podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}],
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now}]}})


class Controllers:
    """The two programs, by one kubeconfig."""

    def __init__(self, folder, kubeconfig, pki):
        args = {"kube-controller-manager": ["--service-account-private-key-file=" + pki + "service-account.key",
                                            "--root-ca-file=" + pki + "ca.crt"], "kube-scheduler": []}
        self.log = open(os.path.join(folder, "controllers.log"), "a", encoding="utf-8")
        self.processes = [subprocess.Popen(
            [os.path.join(TOOLS, program), "--kubeconfig", kubeconfig, "--leader-elect=false", "--secure-port=0",
             *args[program]], stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
            for program in PROGRAMS]

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.log.close()
        if kind is not None:
            with open(self.log.name, encoding="utf-8") as file:
                print(f"--- the end of the controllers' log\n{file.read()[-4000:]}")


class ControllersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = AuditedCluster()
        cls.addClassCleanup(atexit.unregister, cls.cluster.close)
        cls.addClassCleanup(cls.cluster.close)
        cls.pki = os.path.join(cls.cluster.folder, "pki", "")
        for i in range(N_NODES):
            cls.cluster.kubectl("create", "-f", "-", stdin=json.dumps(
                {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{i}"}}))
            cls.cluster.kubectl("patch", "node", f"node-{i}", "--subresource=status", "-p", json.dumps({"status": {
                "capacity": {"cpu": "8", "memory": "16Gi", "pods": "100"},
                "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "100"},
                "conditions": [{"type": "Ready", "status": "True"}]}}))
        cls.kubelets = Kubelets(cls.cluster)
        cls.kubelets.start()
        cls.addClassCleanup(cls.kubelets.is_over.set)

    @contextlib.contextmanager
    def on_demand(self, folder):
        """A daemon with nothing but --on-demand; yields a kubeconfig for clients of it, and who asks it."""
        make_key_pair(folder + "/tls")
        path = os.path.join(folder, "config.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"listen": ["127.0.0.1:0"], "tls": {"certFile": folder + "/tls.crt", "keyFile": folder + "/tls.key"},
                       "auth": "delegated", "passThrough": True, "events": "none"}, file)
        with Daemon("--on-demand", config=path, kubeconfig=self.cluster.kubeconfig()) as daemon:
            daemon.wait_logged("serving url=")
            url = re.search(r"serving url=\"?(https://[^\s\"]+)", daemon.log_text()).group(1)
            yield daemon, self.write_kubeconfig(folder, url)
            daemon.stop()

    def write_kubeconfig(self, folder, url):
        with open(self.cluster.kubeconfig("admin-token"), encoding="utf-8") as file:
            text = file.read().replace(self.cluster.env["KINF_SERVER"], url)
        text = re.sub(r"certificate-authority-data: \S+", f"certificate-authority: {folder}/tls.crt", text)
        path = os.path.join(folder, "kubeconfig")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def kubectl(self, *args):
        return self.cluster.kubectl("-n", SPACE, *args)

    def images(self):
        pods = json.loads(self.kubectl("get", "pods", "-l", "app=web", "-o", "json"))["items"]
        return collections.Counter(pod["spec"]["containers"][0]["image"] for pod in pods)

    def roll(self, image, n_pods):
        """Gives the deployment another image; all its pods come to have it, and no others are left."""
        self.kubectl("set", "image", "deployment/web", "web=" + image)
        self.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
        wait_until(lambda: self.images() == {image: n_pods}, f"{n_pods} pods of {image}")

    def begin(self):
        self.cluster.make_namespace(SPACE)
        self.kubectl("create", "deployment", "web", "--image=one", "--replicas=4")
        self.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
        container = json.loads(self.kubectl("get", "deployment", "web", "-o", "json"))["spec"]["template"]["spec"][
            "containers"][0]["name"]
        if container != "web":
            self.kubectl("patch", "deployment", "web", "--type=json", "-p", json.dumps(
                [{"op": "replace", "path": "/spec/template/spec/containers/0/name", "value": "web"}]))

    def end(self):
        """Also the namespace is the controllers' to empty."""
        self.cluster.kubectl("delete", "namespace", SPACE, f"--timeout={PATIENCE:.0f}s")

    def live(self, folder, kubeconfig, between=lambda: None):
        """A cluster's day. Returns the reads of the API server up to a restart of the controllers, and after it."""
        began = self.cluster.reads()
        with Controllers(folder, kubeconfig, self.pki):
            self.begin()
            self.roll("two", 4)
            self.kubectl("scale", "deployment/web", "--replicas=6")
            self.roll("three", 6)
            between()
        restarted = self.cluster.reads()
        with Controllers(folder, kubeconfig, self.pki):
            self.roll("four", 6)
            self.kubectl("delete", "pod", "-l", "app=web", "--wait=false")
            self.roll("five", 6)
            self.kubectl("delete", "deployment", "web")
            wait_until(lambda: self.images() == {}, "the pods go with their deployment")
            self.end()
        return restarted - began, self.cluster.reads() - restarted

    def test_deployments_roll_and_the_server_is_read_less(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        direct = self.live(folder, self.cluster.kubeconfig("admin-token"))
        with self.on_demand(folder) as (daemon, kubeconfig):
            cached = []

            def settle():
                wait_until(lambda: daemon.check() or daemon.count_log("cached resource=") >= 30, "30 types in the cache")
                cached.append(daemon.count_log("cached resource="))
            served = self.live(folder, kubeconfig, settle)
        print(f"  reads of the API server: before a restart {direct[0]} direct, {served[0]} through the daemon, "
              f"after it {direct[1]} and {served[1]}; {cached[0]} types on demand")
        # What fills the cache is read twice; whatever starts later finds it.
        self.assertLess(served[0], 3 * direct[0])
        self.assertLess(served[1], direct[1] / 2)


if __name__ == "__main__":
    unittest.main()
