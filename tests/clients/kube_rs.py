"""kube-rs's watcher on the cache, listing and streaming: it ends with what it holds on the API server itself, also
after that and the daemon have restarted. Run by `make test-clients`."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

# The path has to be known first.
from harness import cluster, config_map, wait_until  # pylint: disable=wrong-import-position
from test_clients import Serving, wanted  # pylint: disable=wrong-import-position

PACKAGE = os.path.join(ROOT, "tests", "clients", "kube-rs")
TARGET = os.path.join(ROOT, "build", "clients", "kube-rs")
NAME = "kube-rs"


def build():
    """Two minutes at first, nothing afterwards."""
    if shutil.which("cargo") is None:
        sys.exit("make test-clients needs cargo and rustc, 1.89 or newer, for kube-rs; those of Debian 12 are too old "
                 "(1.63), rustup has newer ones")
    subprocess.run(["cargo", "build", "--quiet", "--release", "--locked"], cwd=PACKAGE, check=True,
                   env={**os.environ, "CARGO_TARGET_DIR": TARGET})


class Watcher:
    def __init__(self, name, kubeconfig, mode):
        self.name = f"{name}, {mode}"
        self.line = ""
        self.process = subprocess.Popen([os.path.join(TARGET, "release", "watcher"), kubeconfig, mode],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.line = line.strip()

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


class KubeRs(unittest.TestCase):
    def test_its_watchers_follow_the_cache_through_restarts(self):
        cluster().make_namespace(NAME)

        def change(round_no):
            for i in range(8):
                cluster().kubectl("apply", "-f", "-", stdin=config_map(f"c{i % 6}", NAME, f"{round_no}-{i}"))
            cluster().kubectl("delete", "configmap", "-n", NAME, f"c{round_no}")

        def wait_for_all(watchers):
            for watcher in watchers:
                wait_until(lambda of=watcher: of.line.endswith(wanted()), f"{watcher.name} has the server's state")

        change(0)
        with tempfile.TemporaryDirectory() as folder:
            with Serving(folder) as daemon:
                address = daemon.address
                watchers = [Watcher(name, kubeconfig, mode) for mode in ("list", "stream")
                            for name, kubeconfig in (("direct", cluster().kubeconfig()), ("cache", daemon.for_clients))]
                self.addCleanup(lambda: [watcher.stop() for watcher in watchers])
                change(1)
                wait_for_all(watchers)
                cluster().run_script("restart-apiserver")
                change(2)
                wait_for_all(watchers)
                daemon.stop()
            change(3)
            with Serving(folder, address) as daemon:
                change(4)
                wait_for_all(watchers)
                daemon.stop()


if __name__ == "__main__":
    build()
    unittest.main()
