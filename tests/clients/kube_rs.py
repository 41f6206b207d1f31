"""kube-rs's watcher on the cache and on kinformer-sim, listing and streaming: it ends with what it holds on the API
server itself, also after that and the daemon have restarted. Run by `make test-clients`."""

import os
import shutil
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

# The path has to be known first.
from harness import cluster, wait_until  # pylint: disable=wrong-import-position
from sim import Sim  # pylint: disable=wrong-import-position
from test_clients import Follower, follow_through_restarts  # pylint: disable=wrong-import-position

PACKAGE = os.path.join(ROOT, "tests", "clients", "kube-rs")
TARGET = os.path.join(ROOT, "build", "clients", "kube-rs")


def build():
    """Two minutes at first, nothing afterwards."""
    if shutil.which("cargo") is None:
        sys.exit("make test-clients needs cargo and rustc, 1.89 or newer, for kube-rs; those of Debian 12 are too old "
                 "(1.63), rustup has newer ones")
    subprocess.run(["cargo", "build", "--quiet", "--release", "--locked"], cwd=PACKAGE, check=True,
                   env={**os.environ, "CARGO_TARGET_DIR": TARGET})


class KubeRs(unittest.TestCase):
    def test_its_watchers_follow_the_cache_through_restarts(self):
        follow_through_restarts(self, "kube-rs", lambda for_clients: [
            (os.path.join(TARGET, "release", "watcher"), kubeconfig, mode)
            for mode in ("list", "stream") for kubeconfig in (for_clients, cluster().kubeconfig())])

    def test_its_watchers_follow_kinformer_sim(self):
        with Sim("--generate", "configmaps=20", "--history", "64MiB,5m") as sim:
            followers = [Follower(os.path.join(TARGET, "release", "watcher"), sim.kubeconfig, mode)
                         for mode in ("list", "stream")]
            for follower in followers:
                self.addCleanup(follower.stop)
            for i in range(10):
                sim.kubectl("create", "configmap", f"c{i % 8}-{i}", f"--from-literal=i={i}")
                sim.kubectl("delete", "configmap", f"c{i % 8}-{i}", *(["--dry-run=server"] if i % 2 else []))
            wanted = f"objects={len(sim.kubectl('get', 'configmaps', '-A', '--no-headers').splitlines())} "
            for follower in followers:
                wait_until(lambda follower=follower: follower.line.startswith(wanted) and
                           follower.line == followers[0].line, f"{follower.name} holds what the server has: {wanted}")


if __name__ == "__main__":
    build()
    unittest.main()
