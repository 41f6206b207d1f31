"""kinformer-sim in the place of a cluster: what harness.Cluster offers, as far as tests can do without a real server.

Rights are those of a policy file, users are tokens, and nothing that a test could restart, kill or freeze is behind it.
"""

import atexit
import base64
import copy
import http.client
import itertools
import json
import os
import random
import re
import ssl
import sys
import time

import harness
from harness import PATIENCE, ROOT, Server
from sim import Sim
from small_kubectl import SmallKubectl

# Users as tests/cluster/credentials.sh makes them, with the rights of tests/cluster/manifests.
POLICY = """
users:
- {name: token-admin, token: token-admin-of-the-simulation, groups: ["system:masters"]}
- {name: reader, token: reader-of-the-simulation, groups: [readers]}
- {name: nobody, token: nobody-of-the-simulation}
- {name: user, token: user-of-the-simulation, groups: [developers]}
rules:
- users: [reader]
  apiGroups: [""]
  resources: [pods, configmaps, namespaces]
  verbs: [get, list, watch]
"""
TOKENS = {"admin": "token-admin", "reader": "reader", "nobody": "nobody", "user": "user"}
APPS = ("accounts", "basket", "billing", "catalog", "checkout", "coupons", "currency", "delivery", "emails", "fraud",
        "inventory", "invoices", "orders", "payments", "prices", "ratings", "returns", "search", "sessions", "stock")


class Connection(http.client.HTTPSConnection):
    """Its requests say who asks, unless they do so themselves."""

    def __init__(self, *args, token, **kwargs):
        super().__init__(*args, **kwargs)
        self.token = token
        self.is_named = False

    def putrequest(self, *args, **kwargs):
        self.is_named = False
        super().putrequest(*args, **kwargs)

    def putheader(self, header, *values):
        self.is_named = self.is_named or header.lower() == "authorization"
        super().putheader(header, *values)

    def endheaders(self, *args, **kwargs):
        if not self.is_named:
            self.putheader("Authorization", "Bearer " + self.token)
        super().endheaders(*args, **kwargs)


class SimCluster(Server):
    """One simulated cluster for the whole process."""

    def __init__(self):
        self.policy = harness.keep_file(POLICY)
        self.sim = Sim("--tls", "--policy", self.policy, "--no-workloads", "--fault-listen", "127.0.0.1:0",
                       "--log-level", "warn")
        self.folder = self.sim.folder.name
        atexit.register(self.close)
        self.env = {"KINF_SERVER": "https://" + self.sim.address}
        with open(self.sim.kubeconfig, encoding="utf-8") as file:
            self.authority = re.search(r"certificate-authority-data: (\S+)", file.read()).group(1)
        self.write_credentials()
        self.context = ssl.create_default_context(cafile=os.path.join(self.folder, "pki", "ca.crt"))
        self.small_kubectl = SmallKubectl(self.connect)
        self.model = None

    def close(self):
        """A simulation that leaks, or ended before, fails the run, also if no test has seen it."""
        try:
            self.sim.stop()
        except AssertionError as problem:
            print(problem, file=sys.stderr, flush=True)
            os._exit(1)
        finally:
            self.sim.kill()
            os.unlink(self.policy)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def write_credentials(self):
        self.make_serving_pair()
        authority = self.write("pki/ca.crt", base64.b64decode(self.authority).decode())
        inline, files = "certificate-authority-data: " + self.authority, "certificate-authority: " + authority
        tokens = {user: f"token: {name}-of-the-simulation" for user, name in TOKENS.items()}
        token_files = {user: "tokenFile: " + self.write("tokens/" + user, f"{name}-of-the-simulation\n")
                       for user, name in TOKENS.items()}
        for name, trust, user in (("admin", inline, tokens["admin"]), ("admin-token", inline, tokens["admin"]),
                                  ("admin-files", files, token_files["admin"]), ("token", inline, tokens["reader"]),
                                  ("token-file", files, token_files["reader"]), ("nobody", inline, tokens["nobody"]),
                                  ("user", inline, tokens["user"]), ("bad-token", inline, "token: no-such-token")):
            self.write(name + ".kubeconfig",
                       f"apiVersion: v1\nkind: Config\nclusters:\n- name: sim\n  cluster:\n    {trust}\n"
                       f"    server: {self.env['KINF_SERVER']}\nusers:\n- name: sim\n  user:\n    {user}\n"
                       "contexts:\n- name: sim\n  context: {cluster: sim, user: sim}\ncurrent-context: sim\n")

    def make_serving_pair(self):
        """For servers of the tests' own."""
        os.mkdir(os.path.join(self.folder, "pki"))
        harness.make_key_pair(os.path.join(self.folder, "pki", "serving"))

    def connect(self):
        return Connection(self.sim.address, context=self.context, timeout=PATIENCE,
                          token="token-admin-of-the-simulation")

    def kubectl(self, *args, stdin=None):
        return self.small_kubectl.run(*args, stdin=stdin)

    def act(self, name):
        """Of its actions on a whole server (src/sim/main.c)."""
        self.sim.act(name)

    def signal_apiserver(self, number):
        self.sim.process.send_signal(number)

    def forget(self):
        self.act("drop")
        self.act("expire")

    def run_script(self, command, **_):
        self.act({"checkpoint": "backup", "rollback": "restore"}[command])

    # --- pods, as tests/cluster/cmd/loader makes them ---

    def loader(self, verb, *args):
        given = dict(zip(args[::2], args[1::2]))
        if verb == "compact":
            return self.act("expire")
        if verb == "delete":
            return self.send("DELETE", f"/api/v1/namespaces/{given['-namespace']}/pods", {"gracePeriodSeconds": 0})
        fleet = Fleet(self, given.get("-prefix", "load"), int(given["-pods"]), int(given.get("-namespaces", 1)),
                      int(given.get("-nodes", 50)))
        if verb == "load":
            return fleet.load()
        return fleet.churn(float(given["-rate"]), float(given["-duration"].rstrip("s")))

    def send(self, method, target, body=None, kind="application/json", connection=None):
        """The answer; the connection, if one is given, stays open."""
        used = connection or self.connect()
        used.request(method, target, body=(body if isinstance(body, str) else json.dumps(body)).encode(),
                     headers={"Content-Type": kind})
        answer = used.getresponse()
        text = answer.read()
        if connection is None:
            used.close()
        if answer.status >= 300:
            raise AssertionError(f"{method} {target}: {answer.status} {text[:1000]}")
        return json.loads(text)

    def pod_model(self):
        """tests/data/pod.yaml as the server understands it, which Python alone does not."""
        if self.model is None:
            with open(os.path.join(ROOT, "tests", "data", "pod.yaml"), encoding="utf-8") as file:
                text = re.sub(r"(?m)^  namespace: .*$", "  namespace: default", file.read())
            # Nobody is its owner here, and it would be collected.
            text = re.sub(r"(?m)^  ownerReferences:\n(?:  [- ].*\n)*", "", text)
            pods = "/api/v1/namespaces/default/pods"
            name = self.send("POST", pods, text, "application/yaml")["metadata"]["name"]
            self.model = self.send("PUT", f"{pods}/{name}/status", text, "application/yaml")
            self.send("DELETE", f"{pods}/{name}", {"gracePeriodSeconds": 0})
            metadata = self.model["metadata"]
            self.model["metadata"] = {key: metadata[key] for key in ("labels", "annotations")}
        return self.model


class Fleet:
    """Pods whose names and contents follow from their numbers."""

    def __init__(self, cluster, prefix, n_pods, n_namespaces, n_nodes):
        self.cluster = cluster
        self.prefix, self.n_pods, self.n_namespaces, self.n_nodes = prefix, n_pods, n_namespaces, n_nodes
        self.connection = cluster.connect()

    def send(self, method, target, body=None, kind="application/json"):
        return self.cluster.send(method, target, body, kind, self.connection)

    def pods(self, i):
        return f"/api/v1/namespaces/{self.prefix}-{i // len(APPS) % self.n_namespaces}/pods"

    def name(self, i):
        return f"{self.prefix}-{APPS[i % len(APPS)]}-{i:05}"

    def pod(self, i):
        pod = copy.deepcopy(self.cluster.pod_model())
        chance = random.Random(f"{self.prefix}{i}")
        pod["metadata"]["name"] = self.name(i)
        pod["metadata"]["labels"]["app"] = APPS[i % len(APPS)]
        node = chance.randrange(self.n_nodes)
        pod["spec"]["nodeName"] = f"node-{node:03}"
        address = f"10.128.{i >> 8}.{i & 255}"
        pod["status"] |= {"podIP": address, "podIPs": [{"ip": address}]}
        for status in pod["status"]["containerStatuses"]:
            status["containerID"] = f"containerd://{chance.getrandbits(256):064x}"
        return pod

    def make(self, i):
        pod = self.pod(i)
        self.send("POST", self.pods(i) + "?fieldManager=kube-controller-manager", pod)
        del pod["spec"]
        self.send("PATCH", f"{self.pods(i)}/{self.name(i)}/status?fieldManager=kubelet", {"status": pod["status"]},
                  "application/merge-patch+json")

    def make_namespaces(self):
        for i in range(self.n_namespaces):
            if not self.cluster.try_kubectl("get", "namespace", f"{self.prefix}-{i}"):
                self.cluster.make_namespace(f"{self.prefix}-{i}")

    def load(self):
        self.make_namespaces()
        for i in range(self.n_pods):
            self.make(i)
        self.connection.close()

    def churn(self, rate, seconds):
        """Makes, changes and deletes pods; the first of them is that of before, if it is there."""
        self.make_namespaces()
        chance = random.Random(1)
        present = set()
        began = time.monotonic()
        for step in itertools.count():
            time.sleep(max(0, began + step / rate - time.monotonic()))
            if time.monotonic() - began > seconds:
                break
            self.step(chance, present, step)
        self.connection.close()

    def step(self, chance, present, step):
        i = chance.randrange(self.n_pods)
        target = f"{self.pods(i)}/{self.name(i)}"
        if i not in present:
            present.add(i)
            self.send("POST", self.pods(i), self.pod(i))
        elif chance.random() < 0.2:
            present.discard(i)
            self.send("DELETE", target, {"gracePeriodSeconds": 0})
        else:
            key = chance.choice(("labels", "annotations"))
            self.send("PATCH", target, {"metadata": {key: {"step": str(step)}}}, "application/merge-patch+json")
