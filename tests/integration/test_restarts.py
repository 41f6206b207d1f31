"""The API server goes and comes back: whatever it forgot meanwhile, the store ends up equal to it."""

import os
import signal
import subprocess
import tempfile
import unittest

from harness import TOOLS, Daemon, cluster, config_map, fnv1a64, need_cluster, wait_until, write_config

NAMESPACE = "restarts"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
PODS = "/api/v1/namespaces/killed-0/pods"
N_KILLS = 20


def setUpModule():
    need_cluster("crashes, restarts with other flags")
    cluster().make_namespace(NAMESPACE)


def tearDownModule():
    cluster().kubectl("delete", "configmaps", "--all", "-n", NAMESPACE)


def put(name, data="x"):
    cluster().kubectl("apply", "-f", "-", stdin=config_map(name, NAMESPACE, data))


class Restarts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def config(self, resource, namespace, **more):
        return write_config(self.folder, resource, namespaces=[namespace], backoffBase="100ms", backoffMax="500ms",
                            **more)

    def churn(self):
        return subprocess.Popen([os.path.join(TOOLS, "loader"), "churn", "-kubeconfig", cluster().kubeconfig(),
                                 "-pods", "100", "-prefix", "killed", "-rate", "100", "-duration", "2s", "-keep-going"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def test_killed_under_writes_twenty_times(self):
        self.addCleanup(cluster().loader, "delete", "-namespace", "killed-0")
        cluster().loader("load", "-pods", "100", "-prefix", "killed")
        with Daemon(config=self.config("pods", "killed-0")) as daemon:
            daemon.wait_synced()
            n_events = len(daemon.history)
            for _ in range(N_KILLS):
                with self.churn():
                    # It is killed in mid-write: what it wrote last the daemon may have heard of or not.
                    wait_until(lambda: len(daemon.history) > n_events, "writes under way")
                    cluster().run_script("kill-apiserver")
                    cluster().run_script("start-apiserver")
                daemon.wait_equal(lambda: cluster().versions(PODS))
                self.assertEqual(self.checksum(daemon), cluster().checksum(PODS))
                n_events = len(daemon.history)
            daemon.stop()

    def checksum(self, daemon):
        lines = sorted(f"{key}@{version}\n".encode() for key, version in daemon.versions().items())
        return fnv1a64(b"".join(lines))

    def test_a_server_that_leaves_politely(self):
        flags = "--shutdown-delay-duration=2s --shutdown-send-retry-after"
        cluster().run_script("restart-apiserver", KINF_APISERVER_FLAGS=flags)
        self.addCleanup(cluster().run_script, "restart-apiserver", KINF_APISERVER_FLAGS="")
        put("stays")
        with Daemon(config=write_config(self.folder, "configmaps", namespaces=[NAMESPACE])) as daemon:
            daemon.wait_synced()
            put("before-the-end")
            daemon.wait_types(NAMESPACE + "/before-the-end", "ADDED")
            daemon.wait_logged("all synced")
            loud = daemon.count_loud()
            cluster().signal_apiserver(signal.SIGTERM)
            # It serves for two more seconds, and only then takes no more connections: the watch goes on.
            put("during-the-end")
            daemon.wait_types(NAMESPACE + "/during-the-end", "ADDED")
            self.assertEqual(daemon.count_loud(), loud)
            cluster().run_script("restart-apiserver")
            put("after-the-end")
            daemon.wait_types(NAMESPACE + "/after-the-end", "ADDED")
            daemon.wait_equal(lambda: cluster().versions(CONFIG_MAPS), "configmaps")
            # A new server has no history, so one list may follow; what did not change is not told.
            self.assertLessEqual(daemon.count_log("listed resource"), 2)
            self.assertEqual([event["type"] for event in daemon.events_of(NAMESPACE + "/stays")], ["ADDED"])
            # The watch that broke, a few refusals with growing waits, the recovery, the list.
            self.assertLessEqual(daemon.count_loud() - loud, 12)
            daemon.stop()


if __name__ == "__main__":
    unittest.main()
