"""A server that refuses, hurries or tires its clients: no relist, no storm of requests or lines, nothing lost."""

import json
import os
import socket
import ssl
import tempfile
import time
import unittest

from harness import Daemon, cluster, config_map, need_cluster, wait_until, write_config

NAMESPACE = "availability"
LARGE_NAMESPACE = "availability-large"
# Together more than what a connection holds.
N_LARGE = 20
LARGE_SIZE = 900000
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"

# Priority and fairness of its own for the user reader: no queue, and one request at a time. A small
# --max-requests-inflight ends in the same answer, but hits whoever happens to come.
ONE_SEAT = [
    {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
     "metadata": {"name": "one-seat"},
     "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 0, "lendablePercent": 0,
                                             "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"}}}},
    {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": "one-seat"},
     "spec": {"matchingPrecedence": 2, "priorityLevelConfiguration": {"name": "one-seat"},
              "distinguisherMethod": {"type": "ByUser"},
              "rules": [{"subjects": [{"kind": "User", "user": {"name": "reader"}}],
                         "resourceRules": [{"verbs": ["*"], "apiGroups": [""], "resources": ["configmaps"],
                                            "namespaces": ["*"], "clusterScope": True}]}]}},
]


def setUpModule():
    need_cluster("priority and fairness, restarts with other flags")
    cluster().make_namespace(NAMESPACE)
    cluster().make_namespace(LARGE_NAMESPACE)
    cluster().kubectl("create", "-f", "-", stdin="\n---\n".join(
        config_map(f"large-{i}", LARGE_NAMESPACE, "x" * LARGE_SIZE) for i in range(N_LARGE)))


def tearDownModule():
    for namespace in (NAMESPACE, LARGE_NAMESPACE):
        cluster().kubectl("delete", "configmaps", "--all", "-n", namespace)


def put(name):
    cluster().kubectl("create", "-f", "-", stdin=config_map(name, NAMESPACE))


class Request:
    """A request of the user reader, whose answer is read no further than its head."""

    def __init__(self, target):
        host, _, port = cluster().env["KINF_SERVER"].removeprefix("https://").rpartition(":")
        with open(os.path.join(cluster().folder, "tokens", "reader"), encoding="utf-8") as file:
            token = file.read().strip()
        context = ssl.create_default_context(cafile=os.path.join(cluster().folder, "pki", "ca.crt"))
        plain = socket.socket()
        # The server shall not get rid of its answer: what nobody reads must not fit on the way.
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        plain.settimeout(60)
        plain.connect((host, int(port)))
        self.connection = context.wrap_socket(plain, server_hostname=host)
        self.connection.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n"
                                f"Authorization: Bearer {token}\r\n\r\n".encode())
        self.head = b""
        while b"\r\n\r\n" not in self.head:
            piece = self.connection.recv(1024)
            if not piece:
                raise AssertionError(f"no answer to {target}: {self.head}")
            self.head += piece

    def status(self):
        return int(self.head.split()[1])

    def close(self):
        self.connection.close()


def take_the_seat():
    """A request that holds the reader's only seat until it is closed, and what another one is answered."""
    hog = Request(f"/api/v1/namespaces/{LARGE_NAMESPACE}/configmaps")
    other = Request(CONFIG_MAPS + "?limit=1")
    other.close()
    if other.status() == 429:
        return hog, other.head.decode()
    # Not in force yet.
    hog.close()
    return None


def refuse_reader(test):
    """The user reader is refused until the first of what is returned is closed; the second is how."""
    test.addCleanup(cluster().kubectl, "delete", "flowschema,prioritylevelconfiguration", "one-seat",
                    "--ignore-not-found")
    for item in ONE_SEAT:
        cluster().kubectl("apply", "-f", "-", stdin=json.dumps(item))
    hog, head = wait_until(take_the_seat, "the reader is refused")
    test.addCleanup(hog.close)
    return hog, head


class Availability(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def config(self, **more):
        return write_config(self.folder, "configmaps", namespaces=[NAMESPACE], **more)

    def test_429_from_priority_and_fairness_delays_a_watch(self):
        with Daemon(kubeconfig=cluster().kubeconfig("token"), config=self.config(watchTimeout="2s")) as daemon:
            daemon.wait_synced()
            hog, head = refuse_reader(self)
            self.assertIn("Content-Type: text/plain", head)
            self.assertIn("Retry-After: ", head)
            self.assertIn("X-Kubernetes-Pf-Flowschema-Uid", head)
            daemon.wait_logged("answered 429", 2)
            put("meanwhile")
            hog.close()
            daemon.wait_types(NAMESPACE + "/meanwhile", "ADDED")
            self.assertEqual(daemon.count_log("listed resource"), 1)
            daemon.stop()

    def test_429_from_priority_and_fairness_delays_the_first_list(self):
        put("there")
        hog, _ = refuse_reader(self)
        began = time.monotonic()
        with Daemon(kubeconfig=cluster().kubeconfig("token"), config=self.config()) as daemon:
            daemon.wait_logged("answered 429", 3)
            self.assertEqual(daemon.synced, [])
            self.assertLessEqual(daemon.count_log("GET " + CONFIG_MAPS), 8 * (1 + (time.monotonic() - began) / 60))
            hog.close()
            daemon.wait_equal(lambda: cluster().versions(CONFIG_MAPS), "configmaps")
            daemon.stop()

    def test_watches_that_the_server_ends_cost_nothing(self):
        flags = "--goaway-chance=0.02"
        cluster().run_script("restart-apiserver", KINF_APISERVER_FLAGS=flags)
        self.addCleanup(cluster().run_script, "restart-apiserver", KINF_APISERVER_FLAGS="")
        with Daemon(config=self.config(watchTimeout="2s")) as daemon:
            daemon.wait_synced()
            daemon.wait_logged("all synced")
            loud = daemon.count_loud()
            for i in range(5):
                n_watches = daemon.count_log("watch=1")
                put(f"during-{i}")
                daemon.wait_logged("watch=1", n_watches + 1)
            daemon.wait_equal(lambda: cluster().versions(CONFIG_MAPS), "configmaps")
            self.assertEqual(daemon.count_log("listed resource"), 1)
            self.assertEqual(daemon.count_loud(), loud)
            daemon.stop()


if __name__ == "__main__":
    unittest.main()
