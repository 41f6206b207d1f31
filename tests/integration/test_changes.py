"""Notifications: each change on the server arrives once, in order, as what it is."""

import fcntl
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import termios
import unittest

from harness import PATIENCE, Daemon, cluster, config_map, daemon_path, wait_until

NAMESPACE = "changes"


def unread(pipe):
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


class Changes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cluster().make_namespace(NAMESPACE)

    def watch(self, *args, **more):
        return Daemon("--namespace", NAMESPACE, *args, resource=("configmaps",), **more)

    def put(self, name, data="x", **labels):
        cluster().kubectl("apply", "-f", "-", stdin=config_map(name, NAMESPACE, data, labels))

    def delete(self, name):
        cluster().kubectl("delete", "configmap", name, "-n", NAMESPACE)

    def test_create_update_delete(self):
        with self.watch() as daemon:
            daemon.wait_synced()
            self.put("one")
            self.put("one", data="y")
            self.delete("one")
            daemon.wait_types(NAMESPACE + "/one", "ADDED", "MODIFIED", "DELETED")
            added, modified, deleted = daemon.events_of(NAMESPACE + "/one")
            self.assertFalse(added["initial"])
            self.assertLess(int(added["resourceVersion"]), int(modified["resourceVersion"]))
            self.assertLess(int(modified["resourceVersion"]), int(deleted["resourceVersion"]))
            self.assertFalse(deleted["finalStateUnknown"])
            daemon.stop()

    def test_what_exists_is_initial_and_comes_before_synced(self):
        self.put("before")
        with self.watch() as daemon:
            daemon.wait_synced()
            [event] = daemon.events_of(NAMESPACE + "/before")
            self.assertTrue(event["initial"])
            self.assertLess(daemon.history.index(event),
                            [event["type"] for event in daemon.history].index("SYNCED"))
            daemon.stop()
        self.delete("before")

    def test_a_label_change_moves_an_object_in_and_out_of_a_selector(self):
        self.put("moving", app="other")
        with self.watch("--selector", "app=wanted") as daemon:
            daemon.wait_synced()
            self.put("moving", app="wanted")
            daemon.wait_types(NAMESPACE + "/moving", "ADDED")
            self.put("moving", data="y", app="wanted")
            daemon.wait_types(NAMESPACE + "/moving", "ADDED", "MODIFIED")
            self.put("moving", app="other")
            daemon.wait_types(NAMESPACE + "/moving", "ADDED", "MODIFIED", "DELETED")
            daemon.stop()
        self.delete("moving")

    def test_a_recreated_name_is_delete_then_add(self):
        with self.watch() as daemon:
            daemon.wait_synced()
            self.put("again")
            daemon.wait_types(NAMESPACE + "/again", "ADDED")
            self.delete("again")
            self.put("again")
            daemon.wait_types(NAMESPACE + "/again", "ADDED", "DELETED", "ADDED")
            daemon.stop()
        self.delete("again")

    def test_emptying_a_namespace_deletes_all_its_objects(self):
        cluster().make_namespace("emptied")
        for i in range(5):
            cluster().kubectl("create", "-f", "-", stdin=config_map(f"item-{i}", "emptied"))
        with Daemon(resource=("configmaps",)) as daemon:
            daemon.wait_synced()
            self.assertEqual(sum(key.startswith("emptied/") for key in daemon.versions("configmaps")), 5)
            # No controller manager empties a deleted namespace here, so its objects go by hand.
            cluster().kubectl("delete", "configmaps", "--all", "-n", "emptied")
            cluster().kubectl("delete", "namespace", "emptied", "--wait=false")
            daemon.wait_equal(lambda: cluster().versions("/api/v1/configmaps"), "configmaps")
            self.assertFalse(any(key.startswith("emptied/") for key in daemon.versions("configmaps")))
            daemon.stop()

    def test_whole_objects_are_printed_on_request(self):
        with self.watch("--events-objects", "--drop", "metadata.managedFields") as daemon:
            daemon.wait_synced()
            self.put("whole", data="first")
            self.put("whole", data="line\none")
            daemon.wait_types(NAMESPACE + "/whole", "ADDED", "MODIFIED")
            added, modified = daemon.events_of(NAMESPACE + "/whole")
            self.assertEqual(added["object"]["kind"], "ConfigMap")
            self.assertEqual(added["object"]["apiVersion"], "v1")
            self.assertNotIn("managedFields", added["object"]["metadata"])
            self.assertEqual(modified["oldObject"]["data"]["value"], "first")
            self.assertEqual(modified["object"]["data"]["value"], "line\none")
            daemon.stop()
        self.delete("whole")

    def test_a_name_cannot_forge_lines_of_text(self):
        name = "forged\nDELETED  nodes node-1 rv=1\x1b[2J"
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}}
        cluster().kubectl("create", "--validate=false", "-f", "-", stdin=json.dumps(role))
        command = [daemon_path("asan"), "--kubeconfig", cluster().kubeconfig(), "--resource", "clusterroles",
                   "--events", "text"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            lines = list(itertools.takewhile(lambda line: not line.startswith("SYNCED"), process.stdout))
            process.send_signal(signal.SIGTERM)
        self.assertEqual([line for line in lines if not line.startswith("ADDED ")], [])
        self.assertEqual(sum("forged?DELETED  nodes node-1 rv=1?[2J rv=" in line for line in lines), 1)
        cluster().kubectl("delete", "clusterrole", name)

    def test_a_reader_that_is_stuck_holds_up_neither_a_reload_nor_the_end(self):
        self.put("large", data="x" * 100000)
        with tempfile.TemporaryDirectory() as folder:
            config, log = os.path.join(folder, "config.yaml"), os.path.join(folder, "log")

            def configure(*resources):
                with open(config, "w", encoding="utf-8") as file:
                    file.write("events: json\neventsObjects: true\nresources:\n" +
                               "".join(f"- {{resource: {name}}}\n" for name in resources))

            def logged(text):
                with open(log, encoding="utf-8") as file:
                    return text in file.read()

            configure("configmaps", "namespaces")
            command = [daemon_path("asan"), "--kubeconfig", cluster().kubeconfig(), "--config", config]
            with open(log, "w", encoding="utf-8") as file, \
                    subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file) as process:
                try:
                    wait_until(lambda: unread(process.stdout) > 60000, "a full pipe")
                    configure("namespaces")
                    process.send_signal(signal.SIGHUP)
                    wait_until(lambda: logged("configuration read again"), "the reload")
                    process.send_signal(signal.SIGTERM)
                    self.assertEqual(process.wait(PATIENCE), 0)
                finally:
                    process.kill()
        self.delete("large")

    def test_churn_under_the_thread_sanitizer(self):
        with Daemon(mode="tsan") as daemon:
            daemon.wait_synced()
            cluster().loader("churn", "-pods", "200", "-prefix", "churn", "-rate", "300", "-duration", "10s")
            daemon.wait_equal(cluster().versions)
            daemon.stop()


if __name__ == "__main__":
    unittest.main()
