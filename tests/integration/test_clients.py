"""client-go on the cache: its informers end with the store that they have on the API server itself."""

import os
import subprocess
import tempfile
import threading
import unittest

from harness import TOOLS, Daemon, cluster, config_map, wait_until

# The last ones ask for protobuf first, and take JSON as well.
CLIENTS = [(client, watch_list, "") for client in ("typed", "dynamic", "metadata") for watch_list in ("true", "false")]
CLIENTS += [("typed", watch_list, "application/vnd.kubernetes.protobuf,application/json")
            for watch_list in ("true", "false")]


class Informer:
    """One informer of client-go; `line` is what it printed last."""

    def __init__(self, kubeconfig, client, watch_list, accept):
        self.name = f"{client}, watch-list {watch_list} {accept}"
        self.line = ""
        program = os.path.join(TOOLS, "informers")
        self.process = subprocess.Popen([program, "-kubeconfig", kubeconfig, "-client", client, "-resource", "configmaps",
                                         f"-watchlist={watch_list}", "-accept", accept], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.line = line.strip()

    def wait_for(self, wanted):
        wait_until(lambda: self.line.endswith(wanted()), f"client-go ({self.name}) has {self.line}")

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def wanted():
    """The last thing a client prints when it has what the server has."""
    return "checksum=" + cluster().checksum("/api/v1/configmaps")


class Serving(Daemon):
    """A daemon that serves configmaps; its clients' kubeconfig is the same after a restart."""

    def __init__(self, folder, address="127.0.0.1:0"):
        self.for_clients = os.path.join(folder, "clients.kubeconfig")
        super().__init__("--listen", address, "--write-kubeconfig", self.for_clients, resource=("configmaps",))
        self.wait_synced()
        wait_until(lambda: os.path.exists(self.for_clients), "the clients' kubeconfig")
        with open(self.for_clients, encoding="utf-8") as file:
            self.address = file.read().split("http://")[1].split()[0]


class ClientGo(unittest.TestCase):
    def test_its_informers_follow_the_cache_through_restarts(self):
        name = "client-go"
        cluster().make_namespace(name)

        def change(round_no):
            for i in range(8):
                cluster().kubectl("apply", "-f", "-", stdin=config_map(f"c{i % 6}", name, f"{round_no}-{i}"))
            cluster().kubectl("delete", "configmap", "-n", name, f"c{round_no}")

        change(0)
        with tempfile.TemporaryDirectory() as folder:
            with Serving(folder) as daemon:
                address = daemon.address
                informers = [Informer(daemon.for_clients, *how) for how in CLIENTS]
                self.addCleanup(lambda: [informer.stop() for informer in informers])
                change(1)
                for informer in informers:
                    informer.wait_for(wanted)
                cluster().run_script("restart-apiserver")
                change(2)
                for informer in informers:
                    informer.wait_for(wanted)
                daemon.stop()
            change(3)
            with Serving(folder, address) as daemon:
                change(4)
                for informer in informers:
                    informer.wait_for(wanted)
                daemon.stop()


if __name__ == "__main__":
    unittest.main()
