"""Shard selectors on a server that knows them and on one that does not."""

import atexit
import json
import os
import tempfile
import unittest

from harness import ROOT, Cluster, Daemon, cluster, config_map, fnv1a64, needs_cluster, wait_until

GATE = "--feature-gates=ShardedListAndWatch=true"
MIDDLE = 1 << 63
LOW = "shardRange(object.metadata.uid,'0x0000000000000000','0x8000000000000000')"
HIGH = "shardRange(object.metadata.uid,'0x8000000000000000','0x10000000000000000')"
IGNORED = "ignores the shard selector"
KINDS = {"configmaps": "/api/v1/namespaces/sharded/configmaps",
         "gadgets.test.kinformer.dev": "/apis/test.kinformer.dev/v1/namespaces/sharded/gadgets"}


def gadget(name):
    return json.dumps({"apiVersion": "test.kinformer.dev/v1", "kind": "Gadget",
                       "metadata": {"name": name, "namespace": "sharded"}, "spec": {"n": 1}})


def as_list(objects):
    items = ",".join(objects)
    return f'{{"apiVersion":"v1","kind":"List","items":[{items}]}}'


def fill(where, prefix, n):
    objects = [config_map(f"{prefix}-{i}", "sharded") for i in range(n)] + [gadget(f"{prefix}-{i}") for i in range(n)]
    where.kubectl("create", "-f", "-", stdin=as_list(objects))


def prepare(where):
    where.make_namespace("sharded")
    where.kubectl("apply", "-f", os.path.join(ROOT, "tests", "integration", "gadgets.yaml"))
    where.kubectl("wait", "--for=condition=Established", "crd/gadgets.test.kinformer.dev", "--timeout=60s")
    fill(where, "first", 40)


def is_low(item):
    return int(fnv1a64(item["metadata"]["uid"].encode()), 16) < MIDDLE


class Sharded(unittest.TestCase):
    def config(self, name, selector, initial):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, name + ".yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("resources:\n")
            for resource in KINDS:
                file.write(f"- resource: {resource}\n  namespaces: [sharded]\n  initial: {initial}\n"
                           f"  shardSelector: \"{selector}\"\n")
        return path

    def daemon(self, where, selector, initial):
        return Daemon("--config", self.config("shard", selector, initial), resource=(),
                      kubeconfig=where.kubeconfig())

    def wait_parts(self, where, low, high):
        """Until each daemon has its half of what the server has."""
        for resource, target in KINDS.items():
            low.wait_equal(lambda target=target: where.versions(target, is_low), resource)
            high.wait_equal(lambda target=target: where.versions(target, lambda item: not is_low(item)),
                            resource)


@needs_cluster("a feature gate")
class Obeyed(Sharded):
    @classmethod
    def setUpClass(cls):
        os.environ["KINF_APISERVER_FLAGS"] = GATE
        try:
            cls.cluster = Cluster()
        finally:
            del os.environ["KINF_APISERVER_FLAGS"]
        atexit.unregister(cls.cluster.close)
        cls.addClassCleanup(cls.cluster.close)
        prepare(cls.cluster)

    def test_two_shards_are_disjoint_and_complete(self):
        for initial in ("list", "watchlist"):
            with self.subTest(initial), self.daemon(self.cluster, LOW, initial) as low, \
                 self.daemon(self.cluster, HIGH, initial) as high:
                low.wait_synced(len(KINDS))
                high.wait_synced(len(KINDS))
                self.wait_parts(self.cluster, low, high)
                self.assertTrue(low.versions("configmaps"))
                self.assertTrue(high.versions("configmaps"))
                fill(self.cluster, "later-" + initial, 20)
                self.cluster.kubectl("delete", "-n", "sharded", "configmaps",
                                     *(f"later-{initial}-{i}" for i in range(10)))
                self.wait_parts(self.cluster, low, high)
                for daemon in (low, high):
                    self.assertNotIn(IGNORED, daemon.log_text())
                    daemon.stop()


class Ignored(Sharded):
    """The feature is off by default."""

    @classmethod
    def setUpClass(cls):
        prepare(cluster())
        for resource in KINDS:
            cls.addClassCleanup(cluster().kubectl, "delete", "-n", "sharded", resource, "--all")

    def test_a_server_that_ignores_it_is_reported_once_and_not_believed(self):
        for initial in ("list", "watchlist"):
            with self.subTest(initial), self.daemon(cluster(), LOW, initial) as low, \
                 self.daemon(cluster(), HIGH, initial) as high:
                low.wait_synced(len(KINDS))
                high.wait_synced(len(KINDS))
                fill(cluster(), "later-" + initial, 20)
                self.wait_parts(cluster(), low, high)
                for daemon in (low, high):
                    for resource in KINDS:
                        name = resource.split(".", 1)[0]
                        wait_until(lambda daemon=daemon, name=name:
                                   f"{IGNORED}, leaving out what is outside resource={name} " in daemon.log_text(),
                                   "the report")
                    self.assertEqual(daemon.log_text().count(IGNORED), len(KINDS))
                    daemon.stop()


if __name__ == "__main__":
    unittest.main()
