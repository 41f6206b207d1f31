"""client-go on the cache: its informers end with the store that they have on the API server itself."""

import os
import subprocess
import tempfile
import threading
import unittest

from harness import TOOLS, Daemon, cluster, config_map, needs_cluster, wait_until

# The last ones ask for protobuf first, and take JSON as well.
CLIENTS = [(client, watch_list, "") for client in ("typed", "dynamic", "metadata") for watch_list in ("true", "false")]
CLIENTS += [("typed", watch_list, "application/vnd.kubernetes.protobuf,application/json")
            for watch_list in ("true", "false")]


class Follower:
    """A program that holds all config maps and prints their checksum when it changes; `line` is its last."""

    def __init__(self, *command):
        self.name = " ".join(command[1:])
        self.line = ""
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.line = line.strip()

    def wait_equal(self):
        """Until it has what the server has."""
        wait_until(lambda: self.line.endswith("checksum=" + cluster().checksum("/api/v1/configmaps")),
                   f"{self.name} has the server's state")

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


class Serving(Daemon):
    """A daemon that serves configmaps; its clients' kubeconfig is the same after a restart."""

    def __init__(self, folder, address="127.0.0.1:0"):
        self.for_clients = os.path.join(folder, "clients.kubeconfig")
        super().__init__("--listen", address, "--write-kubeconfig", self.for_clients, resource=("configmaps",))
        self.wait_synced()
        wait_until(lambda: os.path.exists(self.for_clients), "the clients' kubeconfig")
        with open(self.for_clients, encoding="utf-8") as file:
            self.address = file.read().split("http://")[1].split()[0]


def follow_through_restarts(test, namespace, commands):
    """Followers of a daemon, `commands(kubeconfig)`, while the API server and the daemon restart."""
    cluster().make_namespace(namespace)

    def change(round_no):
        for i in range(8):
            cluster().kubectl("apply", "-f", "-", stdin=config_map(f"c{i % 6}", namespace, f"{round_no}-{i}"))
        cluster().kubectl("delete", "configmap", "-n", namespace, f"c{round_no}")

    change(0)
    with tempfile.TemporaryDirectory() as folder:
        with Serving(folder) as daemon:
            address = daemon.address
            followers = [Follower(*command) for command in commands(daemon.for_clients)]
            test.addCleanup(lambda: [follower.stop() for follower in followers])
            change(1)
            for follower in followers:
                follower.wait_equal()
            cluster().run_script("restart-apiserver")
            change(2)
            for follower in followers:
                follower.wait_equal()
            daemon.stop()
        change(3)
        with Serving(folder, address) as daemon:
            change(4)
            for follower in followers:
                follower.wait_equal()
            daemon.stop()


@needs_cluster("a client in Go, restarts")
class ClientGo(unittest.TestCase):
    def test_its_informers_follow_the_cache_through_restarts(self):
        follow_through_restarts(self, "client-go", lambda kubeconfig: [
            (os.path.join(TOOLS, "informers"), "-kubeconfig", kubeconfig, "-client", client, "-resource", "configmaps",
             f"-watchlist={watch_list}", "-accept", accept) for client, watch_list, accept in CLIENTS])


if __name__ == "__main__":
    unittest.main()
