"""The Python client on the cache and on the API server itself: lists, pages, watches, the dynamic client."""

import json
import os
import subprocess
import tempfile
import unittest

from harness import PATIENCE, ROOT, cluster, config_map, make_gadgets
from test_serve import Served

FOLDER = os.path.join(ROOT, "tests", "clients", "python")
NAME = "python-client"


def gadget(name):
    return json.dumps({"apiVersion": "test.kinformer.dev/v1", "kind": "Gadget",
                       "metadata": {"name": name, "namespace": NAME}, "spec": {"size": 1}})


class PythonClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run([os.path.join(FOLDER, "install.sh")], check=True, timeout=5 * PATIENCE)
        make_gadgets()
        cluster().make_namespace(NAME)
        for i in range(5):
            cluster().kubectl("apply", "-f", "-", stdin=config_map(f"c{i}", NAME, labels={"i": str(i % 2)}))
        cluster().kubectl("apply", "-f", "-", stdin=gadget("g"))
        cls.served = cls.enterClassContext(Served(resource=("configmaps", "gadgets.test.kinformer.dev")))

    def start(self, verb):
        """The program on the API server and on the daemon."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        programs = []
        for i, kubeconfig in enumerate((cluster().kubeconfig(), self.served.kubeconfig)):
            programs.append(subprocess.Popen(
                [os.path.join(ROOT, "build", "clients", "python", "bin", "python"), "-B",
                 os.path.join(FOLDER, "client.py"), kubeconfig, NAME, verb, os.path.join(folder.name, f"cache{i}")],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True))
            self.addCleanup(programs[-1].stdout.close)
            self.addCleanup(programs[-1].wait)
            self.addCleanup(programs[-1].kill)
        return programs

    def end(self, programs):
        """What they print to their ends, which is the same."""
        real, ours = ([json.loads(line) for line in program.communicate(timeout=PATIENCE)[0].splitlines()]
                      for program in programs)
        self.assertEqual([program.returncode for program in programs], [0, 0])
        self.assertEqual(ours, real)
        return ours

    def test_lists_are_those_of_the_api_server(self):
        for verb, n_lines in (("list", 6), ("pages", 3)):
            with self.subTest(verb=verb):
                self.assertEqual(len(self.end(self.start(verb))), n_lines)

    def test_a_watch_resumes_without_a_loss(self):
        programs = self.start("watch")
        for program in programs:
            self.assertEqual(json.loads(program.stdout.readline()), "listed")
        for i in range(8):
            cluster().kubectl("apply", "-f", "-", stdin=config_map("w", NAME, str(i)))
            if i % 4 == 3:
                cluster().kubectl("delete", "cm", "w", "-n", NAME)
        cluster().kubectl("apply", "-f", "-", stdin=config_map("last", NAME))
        events = self.end(programs)
        self.assertEqual([event[0] for event in events],
                         2 * (["ADDED"] + 3 * ["MODIFIED"] + ["DELETED"]) + ["ADDED"])

    def test_the_dynamic_client_finds_and_watches_custom_resources(self):
        programs = self.start("dynamic")
        for real, ours in zip(*([json.loads(program.stdout.readline()) for _ in range(3)] for program in programs)):
            self.assertEqual(ours, real)
        cluster().kubectl("apply", "-f", "-", stdin=gadget("last"))
        self.assertEqual([event[2] for event in self.end(programs)], ["last"])


if __name__ == "__main__":
    unittest.main()
