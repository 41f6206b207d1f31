"""Clients with the kubeconfig that kinformerd writes, and nothing else: kubectl, client-go, kr8s, lightkube,
@kubernetes/client-node and the Python client list, get, watch and write through the daemon. Run by `make test-clients`."""

import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLIENTS = os.path.join(ROOT, "tests", "clients")
BUILT = os.path.join(ROOT, "build", "clients")
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

# The path has to be known first.
from harness import PATIENCE, TOOLS, Daemon, cluster, config_map, make_key_pair  # pylint: disable=wrong-import-position

NAMESPACE = "kubeconfig"
PYTHON = (os.path.join(BUILT, "python", "bin", "python"), "-B", os.path.join(CLIENTS, "python", "verbs.py"))
PROGRAMS = {
    "kubectl": (os.path.join(CLIENTS, "kubectl.sh"),),
    "client-go": (os.path.join(TOOLS, "verbs"),),
    "kr8s": (*PYTHON, "kr8s"),
    "lightkube": (*PYTHON, "lightkube"),
    "client-node": ("node", os.path.join(CLIENTS, "node", "verbs.js")),
    "python": (*PYTHON, "python"),
}
# They send tokens over TLS alone.
CAUTIOUS = ("kubectl", "client-go")


class Run:
    """One client's program; its lines as they come."""

    def __init__(self, test, client, kubeconfig, verb, name):
        # Nothing of the one who runs the test: no other kubeconfig, no proxy.
        env = {"PATH": os.environ["PATH"], "HOME": os.path.dirname(kubeconfig), "KINF_KUBECTL": cluster().env["KINF_KUBECTL"],
               "CLIENT_NODE": os.path.join(BUILT, "node")}
        self.errors = tempfile.TemporaryFile("w+", encoding="utf-8")
        self.process = subprocess.Popen([*PROGRAMS[client], kubeconfig, NAMESPACE, verb, name], env=env, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors)
        for end in (self.errors.close, self.process.stdout.close, self.process.wait, self.process.kill):
            test.addCleanup(end)

    def line(self):
        text = self.process.stdout.readline().strip()
        if text == "":
            self.process.wait(PATIENCE)
            self.errors.seek(0)
            raise AssertionError(self.errors.read()[-2000:])
        return text


class Kubeconfig(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cluster().make_namespace(NAMESPACE)
        cluster().kubectl("create", "-f", "-", stdin=config_map("one", NAMESPACE, "first"))

    def serve(self, *lines, token="admin"):
        """A daemon with these lines in its configuration; returns its clients' kubeconfig."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        config, kubeconfig = os.path.join(folder, "config.yaml"), os.path.join(folder, "kubeconfig")
        make_key_pair(folder + "/tls")
        with open(config, "w", encoding="utf-8") as file:
            file.writelines(line.replace("FOLDER", folder) + "\n" for line in
                            ('listen: ["127.0.0.1:0"]', *lines, "resources: [{resource: configmaps}]"))
        args = ["--write-kubeconfig", kubeconfig]
        if token is not None:
            args += ["--client-token", os.path.join(cluster().folder, "tokens", token)]
        daemon = self.enterContext(Daemon(*args, config=config, events=False))
        self.addCleanup(daemon.stop)
        daemon.wait_logged("all synced")
        return kubeconfig

    def read(self, client, kubeconfig, name):
        run = Run(self, client, kubeconfig, "read", name)
        self.assertIn("one", run.line().split())
        self.assertEqual([run.line(), run.line()], ["first", "watching"])
        cluster().kubectl("create", "-f", "-", stdin=config_map(name, NAMESPACE))
        self.assertEqual(run.line(), f"ADDED {name}")
        self.assertEqual(run.process.wait(PATIENCE), 0)

    def written(self, client, kubeconfig, name):
        return Run(self, client, kubeconfig, "write", name).line()

    def is_there(self, name):
        return cluster().try_kubectl("get", "configmap", name, "-n", NAMESPACE)

    def test_they_read_at_an_open_address(self):
        kubeconfig = self.serve(token=None)
        for client in PROGRAMS:
            with self.subTest(client=client):
                self.read(client, kubeconfig, f"open-{client}")

    def test_they_read_at_an_open_address_with_tls(self):
        kubeconfig = self.serve("tls: {certFile: FOLDER/tls.crt, keyFile: FOLDER/tls.key}", token=None)
        for client in PROGRAMS:
            with self.subTest(client=client):
                self.read(client, kubeconfig, f"open-tls-{client}")

    def test_they_read_over_plain_http_and_those_that_send_tokens_write(self):
        kubeconfig = self.serve("passThrough: true")
        for client in PROGRAMS:
            with self.subTest(client=client):
                self.read(client, kubeconfig, f"plain-{client}")
                name = f"plain-{client}-written"
                self.assertEqual(self.written(client, kubeconfig, name), "401" if client in CAUTIOUS else name)
                self.assertEqual(bool(self.is_there(name)), client not in CAUTIOUS)

    def test_they_read_and_write_over_tls(self):
        kubeconfig = self.serve("passThrough: true", "auth: delegated",
                                "tls: {certFile: FOLDER/tls.crt, keyFile: FOLDER/tls.key}")
        for client in PROGRAMS:
            with self.subTest(client=client):
                self.read(client, kubeconfig, f"tls-{client}")
                name = f"tls-{client}-written"
                self.assertEqual(self.written(client, kubeconfig, name), name)
                self.assertTrue(self.is_there(name))


if __name__ == "__main__":
    for folder in ("python", "node"):
        subprocess.run([os.path.join(CLIENTS, folder, "install.sh")], check=True)
    unittest.main()
