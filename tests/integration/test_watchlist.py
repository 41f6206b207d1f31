"""Watch lists of a real server: the same store as by a list, and what happens where there are none."""

import os
import signal
import tempfile
import unittest

from harness import Daemon, cluster, config_map, needs_cluster, run_daemon


class Configured(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def config(self, initial, resource="pods", more=""):
        path = os.path.join(self.folder.name, initial + ".yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"resources:\n- resource: {resource}\n  initial: {initial}\n{more}")
        return path


class WatchList(Configured):
    def versions(self):
        return cluster().versions("/api/v1/namespaces/default/configmaps")

    def watch(self, initial="watchlist"):
        return Daemon("--config", self.config(initial, "configmaps", "  namespaces: [default]\n"), resource=())

    def make(self, name, data="x"):
        cluster().kubectl("apply", "-f", "-", stdin=config_map(name, "default", data))

    def tearDown(self):
        cluster().kubectl("delete", "configmap", "-n", "default", "--ignore-not-found", "wl-a", "wl-b", "wl-c")

    def test_the_stream_goes_on_as_the_watch(self):
        self.make("wl-a")
        with self.watch() as daemon:
            daemon.wait_synced()
            self.make("wl-b")
            self.make("wl-a", "changed")
            cluster().kubectl("delete", "configmap", "-n", "default", "wl-b")
            daemon.wait_types("default/wl-b", "ADDED", "DELETED")
            daemon.wait_types("default/wl-a", "ADDED", "MODIFIED")
            self.assertTrue(daemon.events_of("default/wl-a")[0]["initial"])
            self.assertEqual(daemon.log_text().count("sendInitialEvents=true"), 1)
            self.assertNotIn("GET /api/v1/namespaces/default/configmaps ", daemon.log_text())
            daemon.stop()

    def test_what_was_missed_is_told_after_another_round(self):
        self.make("wl-a")
        self.make("wl-b")
        with self.watch() as daemon:
            daemon.wait_synced()
            daemon.process.send_signal(signal.SIGSTOP)
            cluster().forget()
            cluster().kubectl("delete", "configmap", "-n", "default", "wl-a")
            self.make("wl-b", "changed")
            self.make("wl-c")
            cluster().forget()
            daemon.process.send_signal(signal.SIGCONT)
            daemon.wait_equal(self.versions, "configmaps")
            daemon.wait_types("default/wl-a", "ADDED", "DELETED")
            daemon.wait_types("default/wl-b", "ADDED", "MODIFIED")
            daemon.wait_types("default/wl-c", "ADDED")
            self.assertTrue(daemon.events_of("default/wl-a")[-1]["finalStateUnknown"])
            self.assertGreaterEqual(daemon.log_text().count("sendInitialEvents=true"), 2)
            daemon.stop()

    @needs_cluster("other flags")
    def test_a_server_without_watch_lists_is_listed(self):
        self.make("wl-a")
        cluster().run_script("restart-apiserver", KINF_APISERVER_FLAGS="--feature-gates=WatchList=false")
        try:
            with self.watch() as daemon:
                daemon.wait_equal(self.versions, "configmaps")
                self.make("wl-b")
                daemon.wait_equal(self.versions, "configmaps")
                self.assertIn("no watch list from this server now", daemon.log_text())
                self.assertEqual(daemon.log_text().count("sendInitialEvents=true"), 1)
                daemon.stop()
        finally:
            cluster().run_script("restart-apiserver", KINF_APISERVER_FLAGS="")

    def test_a_wrong_word_is_told_with_its_place(self):
        path = self.config("sometimes")
        code, _, err = run_daemon("--config", path, "--check-config")
        self.assertEqual(code, 2)
        self.assertIn("sometimes.yaml:3:12", err)
        self.assertIn("auto, watchlist, list", err)


if __name__ == "__main__":
    unittest.main()
