"""examples/configmap-sync as it is run: two replicas and a Lease, the one that leads killed while what they copy changes."""

import json
import random
import time
import unittest

from harness import Example, cluster, config_map, wait_until

SPACES = [f"sync-{i}" for i in range(4)]


class Replica(Example):
    """One process."""

    def __init__(self):
        super().__init__("configmap-sync")

    def leads(self):
        """As its log says."""
        return "leads lease=" in self.log_text()


def list_config_maps():
    items = json.loads(cluster().kubectl("get", "--raw", "/api/v1/configmaps"))["items"]
    return {(item["metadata"]["namespace"], item["metadata"]["name"]): item for item in items}


def read_all():
    """Of our namespaces: (namespace, name) -> object."""
    return {(space, name): item for (space, name), item in list_config_maps().items()
            if space in SPACES and name != "kube-root-ca.crt"}


def read_holder():
    lease = json.loads(cluster().kubectl("get", "--raw",
                                         "/apis/coordination.k8s.io/v1/namespaces/default/leases/configmap-sync"))
    return lease["spec"].get("holderIdentity", "")


class ConfigMapSync(unittest.TestCase):
    def setUp(self):
        self.replicas = []
        self.sources = {}  # (namespace, name) -> value
        self.foreign = {}
        for name in SPACES:
            cluster().try_kubectl("create", "namespace", name)  # nobody ends them here

    def tearDown(self):
        for replica in self.replicas:
            if replica.process.poll() is None:
                replica.kill()
        for (space, name), item in list_config_maps().items():
            if (space, name) not in read_all() and "sync-copy" not in item["metadata"].get("labels", {}):
                continue
            cluster().try_kubectl("patch", "configmap", name, "-n", space, "--type=merge",
                                  "--patch", '{"metadata":{"finalizers":null}}')
            cluster().try_kubectl("delete", "configmap", name, "-n", space)
        cluster().try_kubectl("delete", "lease", "configmap-sync", "-n", "default")

    def start(self):
        self.replicas.append(Replica())
        return self.replicas[-1]

    def put(self, space, name, value):
        if (space, name) in self.sources:
            cluster().kubectl("patch", "configmap", name, "-n", space, "--type=merge",
                              "--patch", json.dumps({"data": {"value": value}}))
        else:
            cluster().kubectl("create", "-f", "-", stdin=config_map(name, space, value, {"sync": "true"}))
        self.sources[space, name] = value

    def delete(self, space, name):
        cluster().kubectl("delete", "configmap", name, "-n", space, "--wait=false")
        self.sources.pop((space, name))

    def expected(self):
        wanted = dict(self.foreign)
        for (home, name), value in self.sources.items():
            for space in SPACES:
                wanted.setdefault((space, name), value)
        return wanted

    def is_right(self):
        return {key: item.get("data", {}).get("value") for key, item in read_all().items()} == self.expected()

    def wait_right(self):
        try:
            wait_until(self.is_right, "copies of what there is")
        except AssertionError:
            found = {key: item.get("data", {}).get("value") for key, item in read_all().items()}
            logs = "\n".join(replica.log_text()[-3000:] for replica in self.replicas)
            self.fail(f"found {found}, wanted {self.expected()}, logs: {logs}")

    def test_one_copies_and_gives_its_lease_up(self):
        cluster().kubectl("create", "-f", "-", stdin=config_map("a", SPACES[2], "foreign"))
        self.foreign[SPACES[2], "a"] = "foreign"
        self.put(SPACES[0], "a", "1")
        replica = self.start()
        self.put(SPACES[1], "b", "1")
        self.wait_right()
        self.put(SPACES[0], "a", "2")
        cluster().kubectl("delete", "configmap", "b", "-n", SPACES[3])
        self.wait_right()
        self.delete(SPACES[0], "a")
        self.wait_right()
        cluster().kubectl("label", "configmap", "b", "-n", SPACES[1], "sync-")
        self.foreign[SPACES[1], "b"] = self.sources.pop((SPACES[1], "b"))
        self.wait_right()
        self.assertNotIn("finalizers", read_all()[SPACES[1], "b"]["metadata"])
        began = time.monotonic()
        replica.stop()
        self.assertLess(time.monotonic() - began, 5)
        self.assertEqual(read_holder(), "")
        self.assertNotIn("WARN", replica.log_text())

    def test_the_leader_is_killed_while_sources_change(self):
        chance = random.Random(7)
        leader = self.start()
        wait_until(leader.leads, "the first leads")
        other = self.start()
        for _ in range(2):
            deleted = set()  # what its finalizer may still hold
            for i in range(14):
                number = chance.randrange(6)
                key = SPACES[number % len(SPACES)], f"c{number}"
                if key in self.sources and chance.random() < 0.3:
                    self.delete(*key)
                    deleted.add(key)
                elif key not in deleted:
                    self.put(*key, str(chance.randrange(1000)))
                if i == 6:
                    leader.kill()
            wait_until(other.leads, "the other takes over")
            self.wait_right()
            leader, other = other, self.start()
        leader.stop()
        other.kill()  # it may have no handlers of signals yet


if __name__ == "__main__":
    unittest.main()
