"""What names of resources mean, by aggregated and by legacy discovery, and by kubectl."""

import os
import subprocess
import tempfile
import unittest

import relay
from harness import PATIENCE, ROOT, build_probe, cluster, needs_cluster, wait_until

FOLDER = None
PROGRAM = None


def setUpModule():
    global FOLDER, PROGRAM
    FOLDER = tempfile.TemporaryDirectory(prefix="kinformer-discovery-")
    PROGRAM = build_probe(FOLDER.name, "find_probe.c", ["cc", "-std=c11", "-D_GNU_SOURCE"])


def tearDownModule():
    FOLDER.cleanup()


class Probe:
    def __init__(self, kubeconfig=None):
        self.process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "KUBECONFIG": kubeconfig or cluster().kubeconfig()})

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.stdin.close()
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        if kind is None and code != 0:
            raise AssertionError(f"find-probe ended with {code}")

    def find(self, name):
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


class Relay(relay.Handler):
    """An API server that has never heard of aggregated discovery."""

    targets = []

    def do_GET(self):
        Relay.targets.append(self.path)
        self.answer(200, cluster().kubectl("get", "--raw", self.path).encode())


def names():
    """Those that kubectl prints, each also by its other spellings."""
    lines = cluster().kubectl("api-resources", "--verbs=list,watch", "--no-headers").splitlines()
    spellings = set()
    for line in lines:
        fields = line.split()
        plural, (api, _, kind) = fields[0], fields[-3:]
        version, _, group = reversed(api.rpartition("/")) if "/" in api else (api, "", "")
        spellings |= {f"{plural}.{version}.{group}", kind} | ({f"{plural}.{group}"} if group else {plural})
        if len(fields) == 5:
            spellings |= set(fields[1].split(","))
    return sorted(spellings)


class Names(unittest.TestCase):
    def test_aggregated_and_legacy_discovery_mean_the_same(self):
        path = relay.kubeconfig_of(self.enterContext(relay.listening(Relay)), FOLDER.name)
        wanted = names()
        self.assertGreater(len(wanted), 100)
        with Probe() as new, Probe(path) as old:
            for name in wanted:
                found = new.find(name)
                self.assertNotIn("error", found, name)
                self.assertEqual(old.find(name), found, name)
        self.assertEqual(len(Relay.targets), len(set(Relay.targets)))

    @needs_cluster("kubectl explain")
    def test_kubectl_means_the_same(self):
        with Probe() as probe:
            for name in ("po", "Pod", "deploy", "ing", "hpa", "cj", "crd", "node", "sc", "events"):
                lines = [line.split() for line in cluster().kubectl("explain", name).splitlines()]
                wanted = {line[0]: line[1] for line in lines if len(line) == 2 and line[0] in ("GROUP:", "KIND:")}
                api, kind = probe.find(name).split()[:2]
                self.assertEqual((api.split("/")[0], kind), (wanted.get("GROUP:", ""), wanted["KIND:"]), name)

    def test_a_definition_that_comes_later_is_found_by_the_same_client(self):
        with open(os.path.join(ROOT, "tests", "integration", "gadgets.yaml"), encoding="utf-8") as file:
            definition = (file.read().replace("gadget", "sprocket").replace("Gadget", "Sprocket")
                          .replace("test.kinformer.dev", "later.kinformer.dev"))
        with Probe() as probe:
            self.assertEqual(probe.find("sprockets"), "error NOT_FOUND")
            cluster().kubectl("apply", "-f", "-", stdin=definition)
            self.addCleanup(cluster().kubectl, "delete", "-f", "-", stdin=definition)
            wait_until(lambda: probe.find("sprockets") != "error NOT_FOUND", "the new name")
            self.assertIn("later.kinformer.dev/v1 Sprocket sprockets", probe.find("sprocket"))


if __name__ == "__main__":
    unittest.main()
