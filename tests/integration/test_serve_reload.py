"""Reloads, as clients and probes of kinformerd see them."""

import contextlib
import json
import os
import signal
import socket
import tempfile
import time
import unittest

from harness import Proxy, cluster, config_map, wait_until
from test_serve import Served, ask


class ServeReloadTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.path = os.path.join(self.folder, "config.yaml")

    def write(self, *resources, more=""):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(more + "listen: [\"127.0.0.1:0\"]\nresources:\n" + "".join(f"- {{{item}}}\n" for item in resources))

    def reload(self, served):
        served.daemon.process.send_signal(signal.SIGHUP)
        served.daemon.wait_logged("configuration read again")

    def test_what_a_reload_still_prepares_is_not_waited_for(self):
        log = os.path.join(self.folder, "access")
        self.write("resource: configmaps", more=f"accessLog: {log}\n")
        with Proxy() as proxy:
            with Served("--config", self.path, resource=(), kubeconfig=proxy.kubeconfig(self.folder)) as served:
                self.write("resource: configmaps", "resource: nodes", more=f"accessLog: {log}\n")
                proxy.drop()
                proxy.stall.set()
                n_connections = proxy.n_connections
                served.daemon.process.send_signal(signal.SIGHUP)
                # The informer's, and the one that asks what the server has, when all sources are made.
                wait_until(lambda: proxy.n_connections >= n_connections + 2, "the reload asks the server")
                status, _, body = ask(served, "/readyz?verbose")
                self.assertEqual((status, b"nodes" in body), (200, False), body)
                self.assertEqual(ask(served, "/api/v1/nodes")[0], 403)
                self.assertEqual(ask(served, "/api/v1/configmaps")[0], 200)
                os.rename(log, log + ".1")
                served.daemon.process.send_signal(signal.SIGHUP)
                wait_until(lambda: os.path.exists(log), "the access log is opened again")
                proxy.stall.clear()
                served.daemon.wait_logged("configuration read again")
                wait_until(lambda: ask(served, "/readyz/nodes")[0] == 200, "nodes are served")
                served.daemon.stop()

    def test_metrics_have_each_sample_once_while_a_reload_prepares_its_own(self):
        state = f"stateDir: {self.folder}/state\n"
        self.write("resource: configmaps", more=state)
        with Proxy() as proxy:
            with Served("--config", self.path, resource=(), kubeconfig=proxy.kubeconfig(self.folder)) as served:
                self.write("resource: configmaps, maxHistoryAge: 1m", more=state)
                proxy.drop()
                proxy.stall.set()
                n_connections = proxy.n_connections
                served.daemon.process.send_signal(signal.SIGHUP)
                # As above.
                wait_until(lambda: proxy.n_connections >= n_connections + 2, "the reload asks the server")
                lines = ask(served, "/metrics")[2].decode().splitlines()
                samples = [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]
                self.assertEqual(sorted(set(samples)), sorted(samples))
                proxy.stall.clear()
                served.daemon.wait_logged("configuration read again")
                served.daemon.stop()

    def test_other_users_of_a_socket_need_a_restart_and_are_told_of(self):
        self.write("resource: configmaps", more=f"unixUsers: [{os.getuid()}]\n")
        with Served("--config", self.path, resource=()) as served:
            self.reload(served)
            self.assertEqual(served.daemon.count_log("change only by a restart"), 0)
            self.write("resource: configmaps", more=f"unixUsers: [{os.getuid() + 1}]\n")
            served.daemon.process.send_signal(signal.SIGHUP)
            told = "unix..., tls, auth, maxStaleness and passThrough change only by a restart"
            served.daemon.wait_logged(told)
            # As long as that is so; what it was started with is as it is.
            served.daemon.process.send_signal(signal.SIGHUP)
            wait_until(lambda: served.daemon.count_log(told) == 2, "it is told again")
            wait_until(lambda: served.daemon.count_log("configuration read again") == 3, "read a third time")
            self.write("resource: configmaps", more=f"unixUsers: [{os.getuid()}]\n")
            served.daemon.process.send_signal(signal.SIGHUP)
            wait_until(lambda: served.daemon.count_log("configuration read again") == 4, "read a fourth time")
            self.assertEqual(served.daemon.count_log(told), 2)
            served.daemon.stop()

    def test_readers_of_many_types_that_take_nothing_are_waited_for_together(self):
        namespaces = [f"stalled-{i}" for i in range(4)]
        for namespace in namespaces:
            cluster().make_namespace(namespace)
            items = [json.loads(config_map(f"big-{i}", namespace, data="x" * 400000)) for i in range(24)]
            cluster().kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        resources = [f"resource: configmaps, namespaces: [{namespace}]" for namespace in namespaces]
        self.write(*resources)
        with Served("--config", self.path, resource=()) as served, contextlib.ExitStack() as stack:
            host, _, port = served.address.rpartition(":")
            for namespace in namespaces:
                reader = stack.enter_context(socket.socket())
                reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                reader.connect((host, int(port)))
                reader.sendall(f"GET /api/v1/namespaces/{namespace}/configmaps HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                self.assertIn(b" 200 ", reader.recv(64))
            self.write(*(item + ", maxHistoryAge: 1m" for item in resources))
            begun = time.monotonic()
            self.reload(served)
            took = time.monotonic() - begun
            self.assertGreaterEqual(took, 2)
            self.assertLess(took, 6)  # 8, one after the other
            served.daemon.stop()

    def test_what_takes_anothers_place_takes_its_name(self):
        self.write("resource: configmaps", "resource: namespaces")
        with Served("--config", self.path, resource=()) as served:
            self.write("resource: configmaps, maxHistoryAge: 1m", "resource: namespaces")
            self.reload(served)
            wait_until(lambda: ask(served, "/readyz")[0] == 200, "ready again")
            self.assertEqual(ask(served, "/readyz/configmaps")[0], 200)
            self.assertIn(b'name="configmaps"', ask(served, "/metrics")[2])
            served.daemon.stop()


def setUpModule():
    cluster()


if __name__ == "__main__":
    unittest.main()
