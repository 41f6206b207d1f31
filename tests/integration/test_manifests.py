"""config/: what a cluster, kinformerd and systemd say to it."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import PATIENCE, ROOT, cluster, daemon_path, lack, needs_cluster, run_daemon, wait_until
from test_serve import ask
from test_state import At

CONFIG = os.path.join(ROOT, "config")
WORKLOADS = ("sidecar", "daemonset", "deployment", "sharded")
ACCOUNT = "system:serviceaccount:default:kinformerd"


def path_of(name):
    return os.path.join(CONFIG, name, name + ".yaml")


def objects_of(path, *args):
    """The objects of a manifest, as the API server would store them."""
    decoder, objects = json.JSONDecoder(), []
    text = cluster().kubectl("apply", "--dry-run=server", "-o", "json", "-f", path, *args)
    while text.strip():
        item, end = decoder.raw_decode(text.lstrip())
        text = text.lstrip()[end:]
        objects += item["items"] if item["kind"] == "List" else [item]
    return objects


def pod_of(objects):
    for item in objects:
        if item["kind"] in ("DaemonSet", "Deployment", "StatefulSet"):
            return item["spec"]["template"]["spec"]
    raise AssertionError("no pod")


def container_of(pod):
    return next(container for container in pod.get("initContainers", []) + pod["containers"]
                if container["name"] == "kinformerd")


def configuration_of(objects):
    return next(item["data"]["kinformerd.yaml"] for item in objects if item["kind"] == "ConfigMap")


def run_check_config(text, **env):
    """What kinformerd says to a configuration: (exit code, stdout, stderr)."""
    pki = os.path.join(cluster().folder, "pki")
    for path, file in (("tls.crt", "serving.crt"), ("tls.key", "serving.key")):
        text = text.replace("/etc/kinformer-tls/" + path, os.path.join(pki, file))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kinformerd.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return run_daemon("--check-config", "--config", path, env=env)


class ManifestsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # For good: the others' accounts have to be there, and it is asked what they may.
        for name in ("rbac", "delegated"):
            cluster().kubectl("apply", "-f", path_of(name))
        cls.objects = {name: objects_of(path_of(name)) for name in WORKLOADS}

    def test_kinformerd_takes_the_configuration_of_each(self):
        for name, objects in self.objects.items():
            with self.subTest(name):
                text = configuration_of(objects)
                code, _, problem = run_check_config(text, NODE_NAME="worker-1", SHARDS="3", POD_INDEX="2")
                self.assertEqual(code, 0, problem)

    def test_a_pod_that_waits_for_the_server_is_not_restarted(self):
        for name, objects in self.objects.items():
            with self.subTest(name):
                probe = container_of(pod_of(objects)).get("startupProbe", {"periodSeconds": 1, "failureThreshold": 86400})
                self.assertGreaterEqual(probe["periodSeconds"] * probe["failureThreshold"], 86400)

    def test_a_folder_of_state_on_a_volume_stays_the_users_own(self):
        """The kubelet makes all of it writable for the group at each start, otherwise, and kinformerd refuses it."""
        for name, objects in self.objects.items():
            with self.subTest(name):
                context = pod_of(objects)["securityContext"]
                if "fsGroup" in context:
                    self.assertEqual(context["fsGroupChangePolicy"], "OnRootMismatch")

    def test_a_node_cache_has_its_node(self):
        environment = {item["name"]: item["valueFrom"]["fieldRef"]["fieldPath"]
                       for item in container_of(pod_of(self.objects["daemonset"]))["env"]}
        self.assertEqual(environment, {"NODE_NAME": "spec.nodeName"})
        text = configuration_of(self.objects["daemonset"])
        self.assertEqual(re.findall(r"fieldSelector: (.*)", text),
                         ["spec.nodeName=$(NODE_NAME)", "metadata.name=$(NODE_NAME)"])

    def test_a_shard_has_its_number(self):
        stateful_set = next(item["spec"] for item in self.objects["sharded"] if item["kind"] == "StatefulSet")
        environment = {item["name"]: item for item in container_of(pod_of(self.objects["sharded"]))["env"]}
        self.assertEqual(set(environment), {"SHARDS", "POD_INDEX"})
        self.assertEqual(environment["SHARDS"]["value"], str(stateful_set["replicas"]))
        self.assertEqual(environment["POD_INDEX"]["valueFrom"]["fieldRef"]["fieldPath"],
                         "metadata.labels['apps.kubernetes.io/pod-index']")
        text = configuration_of(self.objects["sharded"])
        self.assertEqual(re.findall(r"^(shards?|lease): (.*)$", text, re.M),
                         [("shards", "$(SHARDS)"), ("shard", "$(POD_INDEX)"), ("lease", "kinformerd")])
        code, _, problem = run_check_config(text, SHARDS="3", POD_INDEX="3")
        self.assertEqual((code, "there is no shard 3" in problem), (2, True), problem)

    @needs_cluster("roles")
    def test_the_account_may_hold_a_lease(self):
        for verb in ("get", "create", "update", "list"):
            with self.subTest(verb):
                self.assertEqual(self.can(verb, "leases.coordination.k8s.io", "default"), "yes")
                self.assertEqual(self.can(verb, "leases.coordination.k8s.io", "kube-system"), "no")

    @needs_cluster("roles")
    def test_the_account_may_read_what_each_configuration_names(self):
        for name, objects in self.objects.items():
            self.assertEqual(pod_of(objects)["serviceAccountName"], "kinformerd")
            for resource in re.findall(r"resource: (\S+)", configuration_of(objects)):
                for verb in ("list", "watch"):
                    with self.subTest(name, verb=verb, resource=resource):
                        self.assertEqual(self.can(verb, resource), "yes")
        self.assertEqual(self.can("create", "tokenreviews.authentication.k8s.io"), "yes")
        self.assertEqual(self.can("create", "subjectaccessreviews.authorization.k8s.io"), "yes")
        self.assertEqual(self.can("list", "secrets"), "no")
        self.assertEqual(self.can("get", "namespaces/kube-system", "kube-system"), "yes")
        self.assertEqual(self.can("get", "namespaces/default", "default"), "no")

    def can(self, verb, resource, name_space=None):
        where = ["--all-namespaces"] if name_space is None else ["-n", name_space]
        done = subprocess.run([cluster().env["KINF_KUBECTL"], "--kubeconfig", cluster().kubeconfig(), "auth", "can-i",
                               verb, resource, "--as", ACCOUNT, *where], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        return done.stdout.strip()

    def test_every_container_is_locked_down(self):
        for name, objects in self.objects.items():
            pod = pod_of(objects)
            self.assertTrue(pod["securityContext"]["runAsNonRoot"], name)
            for container in pod.get("initContainers", []) + pod["containers"]:
                with self.subTest(name, container=container["name"]):
                    context = container["securityContext"]
                    self.assertFalse(context["allowPrivilegeEscalation"])
                    self.assertTrue(context["readOnlyRootFilesystem"])
                    self.assertEqual(context["capabilities"], {"drop": ["ALL"]})
                    self.assertIn("memory", container["resources"]["limits"])
            probed = container_of(pod)
            self.assertIn("/readyz", json.dumps(probed["readinessProbe"]))
            self.assertIn("/livez", json.dumps(probed["livenessProbe"]))

    def test_a_drain_takes_one_after_another(self):
        for name, kind in (("deployment", "Deployment"), ("sharded", "StatefulSet")):
            of = {item["kind"]: item for item in self.objects[name]}
            workload, budget = of[kind]["spec"], of["PodDisruptionBudget"]["spec"]
            self.assertEqual(budget["selector"], workload["selector"])
            self.assertLess(budget["maxUnavailable"], workload["replicas"])
            self.assertEqual(budget["unhealthyPodEvictionPolicy"], "AlwaysAllow")

    def test_the_network_lets_in_what_is_served_and_out_what_is_asked(self):
        for name, kind in (("deployment", "Deployment"), ("sharded", "StatefulSet")):
            of = {item["kind"]: item for item in self.objects[name]}
            policy = of["NetworkPolicy"]["spec"]
            self.assertEqual(policy["podSelector"], of[kind]["spec"]["selector"])
            self.assertEqual(policy["policyTypes"], ["Ingress", "Egress"])
            ports = [port["port"] for rule in policy["ingress"] for port in rule["ports"]]
            self.assertEqual(ports, [port["name"] for port in of["Service"]["spec"]["ports"]])
            self.assertEqual(ports, [port["name"] for port in container_of(pod_of(self.objects[name]))["ports"]])
            self.assertEqual({(port["port"], port["protocol"]) for rule in policy["egress"] for port in rule["ports"]},
                             {(443, "TCP"), (6443, "TCP"), (53, "UDP"), (53, "TCP")})

    def test_paths_of_the_configuration_are_mounted(self):
        for name, objects in self.objects.items():
            container = container_of(pod_of(objects))
            mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
            paths = re.findall(r"(?:File: |unix:)(/[^\s\"]+)", configuration_of(objects))
            paths += [argument for argument in container["args"] if argument.startswith("/")]
            for path in paths:
                with self.subTest(name, path=path):
                    self.assertTrue(any(path.startswith(mount + "/") for mount in mounts))


@needs_cluster("kubectl is built with it")
class KustomizeTest(unittest.TestCase):
    """Each folder is a base: kubectl apply -k."""

    def kinds_of(self, folder):
        return [line.split()[0] for line in cluster().kubectl("apply", "--dry-run=server", "-k", folder).splitlines()]

    def test_the_server_takes_each_with_its_rights(self):
        rights = {"serviceaccount/kinformerd", "role.rbac.authorization.k8s.io/kinformerd-lease",
                  "clusterrole.rbac.authorization.k8s.io/kinformerd"}
        for name in WORKLOADS:
            with self.subTest(name):
                taken = set(self.kinds_of(os.path.join(CONFIG, name)))
                self.assertLess(rights, taken)
                is_delegated = name in ("deployment", "daemonset")
                self.assertEqual("clusterrolebinding.rbac.authorization.k8s.io/kinformerd-auth-delegator" in taken,
                                 is_delegated)
                self.assertLessEqual({f"{item['kind'].lower()}/{item['metadata']['name']}" for item in objects_of(path_of(name))},
                                     {re.sub(r"\..*/", "/", line) for line in taken})

    def test_an_overlay_moves_all_to_its_namespace_and_image(self):
        for name in WORKLOADS:
            with self.subTest(name), tempfile.TemporaryDirectory(dir=os.path.join(ROOT, "build")) as folder:
                with open(os.path.join(folder, "kustomization.yaml"), "w", encoding="utf-8") as file:
                    json.dump({"namespace": "caches", "resources": [os.path.relpath(os.path.join(CONFIG, name), folder)],
                               "images": [{"name": "kinformerd", "newName": "example.org/mine", "newTag": "7"}]}, file)
                built = cluster().kubectl("kustomize", folder)
                self.assertEqual(set(re.findall(r"^ +namespace: (\S+)$", built, re.M)), {"caches"})
                self.assertEqual(re.findall(r"image: (?!example.org/(?:app|handler))(\S+)", built), ["example.org/mine:7"])


class UnitTest(unittest.TestCase):
    def setUp(self):
        if shutil.which("systemd-analyze") is None:
            lack("systemd-analyze (scripts/install-deps.sh test)")
        with open(os.path.join(CONFIG, "kinformerd.service"), encoding="utf-8") as file:
            self.text = file.read()
        self.path = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "kinformerd.service")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(self.text.replace("/usr/local/bin/kinformerd", daemon_path("release")))

    def analyze(self, *args):
        done = subprocess.run(["systemd-analyze", *args, self.path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, env={**os.environ, "SYSTEMD_COLORS": "0"})
        return done.returncode, done.stdout

    def test_systemd_takes_it(self):
        self.assertEqual(self.analyze("verify", "--man=no"), (0, ""))
        self.assertIn("Type=notify\n", self.text)
        self.assertIn("WatchdogSec=", self.text)

    def test_it_exposes_little(self):
        code, told = self.analyze("security", "--offline=true", "--no-pager", "--threshold=30")
        self.assertEqual(code, 0, told)
        self.assertLess(float(re.search(r"exposure level for \S+: ([\d.]+)", told).group(1)), 3)

    def test_it_may_make_every_system_call_that_it_makes(self):
        """Of a daemon that serves, reads a file, writes one and listens at a socket."""
        if shutil.which("strace") is None:
            lack("strace (scripts/install-deps.sh test)")
        if subprocess.run(["strace", "-o", "/dev/null", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("this machine does not let processes be traced")
        filters = re.findall(r"^SystemCallFilter=(.*)", self.text, re.MULTILINE)
        self.assertEqual(filters, ["@system-service", "~@privileged @resources"])
        made = self.system_calls()
        self.assertLessEqual({"openat", "socket", "execve"}, made)
        allowed = self.calls_of("@system-service") - self.calls_of("@privileged") - self.calls_of("@resources")
        # Raises the soft limit, which LimitNOFILE has raised already; refused it goes on.
        self.assertEqual(made - allowed - {"prlimit64"}, set())

    def calls_of(self, group):
        done = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", group], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=True, env={**os.environ, "SYSTEMD_COLORS": "0"})
        calls = [line.strip() for line in done.stdout.splitlines()[1:] if line.strip() and "#" not in line]
        return {call for name in calls for call in (self.calls_of(name) if name.startswith("@") else {name})}

    def system_calls(self):
        folder = os.path.dirname(self.path)
        trace, kubeconfig = os.path.join(folder, "trace"), os.path.join(folder, "kubeconfig")
        # The tracer is a grandchild: the process is the daemon.
        daemon = subprocess.Popen(["strace", "-D", "-f", "-q", "-o", trace, daemon_path("release"), "--kubeconfig",
                                   cluster().kubeconfig(), "--resource", "configmaps", "--listen", "127.0.0.1:0",
                                   "--listen", f"unix:{folder}/socket", "--write-kubeconfig", kubeconfig],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(daemon.kill)
        wait_until(lambda: os.path.exists(kubeconfig), "the kubeconfig")
        served = At(kubeconfig)
        wait_until(lambda: ask(served, "/readyz")[0] == 200, "ready")
        self.assertEqual(ask(served, "/api/v1/configmaps?watch=1&timeoutSeconds=1")[0], 200)
        daemon.terminate()
        self.assertEqual(daemon.wait(PATIENCE), 0)

        def lines():
            with open(trace, encoding="utf-8") as file:
                return file.read()
        wait_until(lambda: f"{daemon.pid} +++ exited" in re.sub(" +", " ", lines()), "the end of the trace")
        return set(re.findall(r"^\d+ +(\w+)\(", lines(), re.MULTILINE))


if __name__ == "__main__":
    unittest.main()
