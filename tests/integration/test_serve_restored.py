"""A cluster that is restored from a backup: kinformerd notices it, and to its clients no version is of two states."""

import os
import re
import socket
import tempfile
import unittest

from harness import Daemon, Proxy, cluster, config_map, needs_cluster, needs_sim, wait_until
from sim import Sim
from test_serve import Direct, Served, Watch, ask, body_of

NAMESPACE = "restored"
TARGET = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


def put(name, data):
    cluster().kubectl("apply", "-f", "-", stdin=config_map(name, NAMESPACE, data))


def setUpModule():
    cluster().make_namespace(NAMESPACE)


class ServeRestoredTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for name in ("changed", "deleted", "stays"):
            put(name, "0")

    def assert_expired(self, watch):
        with watch:
            last = watch.until(lambda event: event["type"] == "ERROR")[-1]
        self.assertEqual((last["type"], last["object"]["reason"]), ("ERROR", "Expired"))

    def test_nobody_goes_on_from_a_version_that_was_undone(self):
        cluster().run_script("checkpoint")
        with Served(resource=("configmaps",)) as served:
            for i in range(8):
                put("changed", str(i))
            cluster().kubectl("delete", "cm", "-n", NAMESPACE, "deleted")
            put("created", "1")
            version = int(body_of(Direct(), TARGET)["metadata"]["resourceVersion"])
            served.wait_for(TARGET, version)
            state = body_of(served, TARGET)
            page = body_of(served, TARGET + "?limit=1")["metadata"]["continue"]
            open_watch = Watch(served, f"{TARGET}?watch=1&resourceVersion={version}")
            cluster().run_script("rollback")
            put("stays", "again")
            wait_until(lambda: body_of(served, TARGET)["items"] == body_of(Direct(), TARGET)["items"],
                       "the restored state")
            self.assertNotEqual(body_of(served, TARGET)["items"], state["items"])
            self.assertLess(int(body_of(served, TARGET)["metadata"]["resourceVersion"]), version)
            self.assert_expired(open_watch)
            self.assert_expired(Watch(served, f"{TARGET}?watch=1&resourceVersion={version}"))
            self.assertEqual(ask(served, f"{TARGET}?limit=1&continue={page}")[0], 410)
            self.assertEqual(ask(served, f"{TARGET}?resourceVersion={version}")[0], 504)
            served.daemon.stop()


def state_of(where):
    return {item["metadata"]["name"]: item for item in body_of(where, TARGET)["items"]}


def versions_of(where, target):
    return {item["metadata"]["namespace"] + "/" + item["metadata"]["name"]: item["metadata"]["resourceVersion"]
            for item in body_of(where, target)["items"]}


def version_of(where):
    return int(body_of(where, TARGET)["metadata"]["resourceVersion"])


def create(names):
    cluster().kubectl("create", "-f", "-", stdin="\n---\n".join(config_map(name, NAMESPACE) for name in names))


class OutageTest(unittest.TestCase):
    """The daemon is cut off, by a proxy, while something happens to the server, and comes back when that is over."""

    # Its longest wait by then, and a list.
    SECONDS = 15

    def setUp(self):
        cluster().kubectl("delete", "configmaps", "--all", "-n", NAMESPACE)
        create(f"old-{i}" for i in range(5))
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def change(self):
        """42 changes: 20 objects are made and changed again, and two older ones deleted."""
        names = [f"new-{i}" for i in range(20)]
        create(names)
        cluster().kubectl("apply", "-f", "-", stdin="\n---\n".join(config_map(name, NAMESPACE, "2") for name in names))
        cluster().kubectl("delete", "configmaps", "-n", NAMESPACE, "old-0", "old-1")

    def n_lists(self, served):
        metrics = ask(served, "/metrics")[2].decode()
        return sum(int(count) for count in re.findall(r"^kinformer_lists_total\{[^}]*} (\d+)$", metrics, re.M))

    def cut_off(self, before, meanwhile):
        """(lists before, lists after, the server's version when it was cut off, and when it came back)"""
        with Proxy() as proxy:
            with Served(resource=("configmaps",), kubeconfig=proxy.kubeconfig(self.folder)) as served:
                before()
                wait_until(lambda: state_of(served) == state_of(Direct()), "what is there before")
                version, n_lists = version_of(Direct()), self.n_lists(served)
                served.wait_for(TARGET, max(int(item["metadata"]["resourceVersion"])
                                            for item in state_of(Direct()).values()))
                proxy.refuse()
                meanwhile()
                later = version_of(Direct())
                with Proxy(listener=socket.create_server((proxy.host, proxy.port))):
                    wait_until(lambda: state_of(served) == state_of(Direct()), "what is there now", self.SECONDS)
                    cluster().kubectl("create", "-f", "-", stdin=config_map("last", NAMESPACE))
                    wait_until(lambda: "last" in state_of(served), "what the watch brings")
                    n_lists_after = self.n_lists(served)
                    self.assertEqual(served.daemon.count_loud("restored from a backup"), n_lists_after - n_lists)
                    served.daemon.stop()
        return n_lists, n_lists_after, version, later

    def test_a_restored_server_is_noticed(self):
        cluster().run_script("checkpoint")
        before, after, version, later = self.cut_off(self.change, lambda: cluster().run_script("rollback"))
        self.assertLess(later, version)
        self.assertEqual(after, before + 1)

    def test_a_restored_server_that_was_overtaken_by_new_writes_is_noticed(self):
        def restore():
            cluster().run_script("rollback")
            create(f"other-{i}" for i in range(120))

        cluster().run_script("checkpoint")
        before, after, version, later = self.cut_off(self.change, restore)
        self.assertGreater(later, version)
        self.assertEqual(after, before + 1)

    @needs_cluster("states of the past")
    def test_what_was_missed_of_a_resource_that_lost_nothing_is_noticed(self):
        accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
        cluster().run_script("checkpoint")
        create(f"lost-{i}" for i in range(200))
        with Proxy() as proxy, \
             Served(resource=("serviceaccounts",), kubeconfig=proxy.kubeconfig(self.folder)) as served:
            version = int(body_of(served, accounts)["metadata"]["resourceVersion"])
            proxy.refuse()
            cluster().run_script("rollback")
            for name in ("missed-0", "missed-1"):
                cluster().kubectl("create", "serviceaccount", "-n", NAMESPACE, name)
            self.assertLess(version_of(Direct()), version, "they are made before what is known")
            create(f"other-{i}" for i in range(250))
            self.assertGreater(version_of(Direct()), version)
            with Proxy(listener=socket.create_server((proxy.host, proxy.port))):
                wait_until(lambda: cluster().versions(accounts) == versions_of(served, accounts), "the accounts",
                           self.SECONDS)
                self.assertEqual(self.n_lists(served), 2)
                served.daemon.stop()

    def check_without_list(self, meanwhile):
        before, after, version, later = self.cut_off(self.change, meanwhile)
        self.assertGreater(later, version)
        self.assertEqual(after, before)

    def test_an_outage_alone_costs_no_list(self):
        def go_on():
            cluster().kubectl("apply", "-f", "-", stdin=config_map("new-18", NAMESPACE, "3"))
            cluster().kubectl("delete", "configmaps", "-n", NAMESPACE, "old-2", "new-3")
            create(["old-1"])

        self.check_without_list(go_on)

    @needs_cluster("states of the past")
    def test_the_newest_may_be_gone(self):
        self.check_without_list(lambda: cluster().kubectl("delete", "configmaps", "-n", NAMESPACE, "new-18", "new-19"))

    @needs_sim("faults of its own")
    def test_a_restore_is_noticed_while_every_watch_is_refused_by_its_own_word(self):
        """401 is no outage, and the watch before it has ended as it was to."""
        path = os.path.join(self.folder, "kinformerd.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("resources: [{resource: configmaps, watchTimeout: 2s}]\n")
        with Sim("--tls", "--fault-listen", "127.0.0.1:0") as sim, \
             Daemon("--config", path, resource=(), kubeconfig=sim.kubeconfig) as daemon:
            def n_refused():
                return sum(fault["hits"] for fault in sim.control("GET", "/faults")[1]["faults"])

            daemon.wait_synced()
            sim.act("backup")
            sim.kubectl("create", "-f", "-", stdin=config_map("undone", "default"))
            wait_until(lambda: daemon.check() or daemon.events_of("default/undone"), "it is told")
            sim.control("POST", "/faults", "watch configmaps 401\n")
            wait_until(lambda: n_refused() >= 3, "watches are refused")  # for two seconds and more
            sim.act("restore")
            sim.control("DELETE", "/faults")
            wait_until(lambda: daemon.check() or len(daemon.events_of("default/undone")) == 2, "it is undone")
            self.assertEqual(daemon.count_loud("restored from a backup"), 1)
            daemon.stop()


if __name__ == "__main__":
    unittest.main()
