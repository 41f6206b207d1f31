"""curl, and sockets that behave as no client should: unix socket, media types, kept connections, a stalled watcher."""

import json
import os
import re
import socket
import subprocess
import unittest

from harness import PATIENCE, cluster, config_map, make_gadgets, wait_until
from test_serve import Direct, Served, Watch, ask, body_of

NAME = "raw"
MAPS = f"/api/v1/namespaces/{NAME}/configmaps"
GADGETS = f"/apis/test.kinformer.dev/v1/namespaces/{NAME}/gadgets"
PROTOBUF = "application/vnd.kubernetes.protobuf"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
HISTORY_BYTES = 64 << 20  # the default
BIG = 900000  # bytes of an object


class RawClients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        make_gadgets()
        cluster().make_namespace(NAME)
        for i in range(3):
            cluster().kubectl("apply", "-f", "-", stdin=config_map(f"c{i}", NAME, labels={"of": "curl"}))
        cls.direct = Direct()
        cls.served = cls.enterClassContext(Served(resource=("configmaps", "gadgets.test.kinformer.dev")))

    def curl(self, *args):
        return subprocess.run(["curl", "-sS", "--unix-socket", self.served.socket, *args], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=True).stdout

    # --- curl ---

    def test_curl_lists_on_the_unix_socket(self):
        target = MAPS + "?labelSelector=of%3Dcurl"
        ours = json.loads(self.curl("http://localhost" + target))
        self.assertEqual(ours["items"], body_of(self.direct, target)["items"])
        self.assertEqual(len(ours["items"]), 3)

    def test_curl_watches_on_the_unix_socket(self):
        version = body_of(self.served, MAPS)["metadata"]["resourceVersion"]
        curl = subprocess.Popen(["curl", "-sSN", "--unix-socket", self.served.socket,
                                 f"http://localhost{MAPS}?watch=1&resourceVersion={version}"],
                                stdout=subprocess.PIPE, text=True)
        try:
            cluster().kubectl("apply", "-f", "-", stdin=config_map("watched", NAME))
            cluster().kubectl("delete", "cm", "watched", "-n", NAME)
            events = [json.loads(curl.stdout.readline()) for _ in range(2)]
            self.assertEqual([(event["type"], event["object"]["metadata"]["name"]) for event in events],
                             [("ADDED", "watched"), ("DELETED", "watched")])
        finally:
            curl.kill()
            curl.wait()
            curl.stdout.close()

    def test_a_connection_serves_one_request_after_another(self):
        urls = ["http://localhost" + target for target in (MAPS, MAPS + "/c0", MAPS + "/zzz", "/livez", "/api")]
        n_connects = self.curl("-w", "%{num_connects}\n", *(word for url in urls for word in ("-o", os.devnull, url)))
        self.assertEqual(n_connects.split(), ["1", "0", "0", "0", "0"])
        code = self.curl("-o", os.devnull, "-w", "%{http_code}", "-d", "{}", "http://localhost" + MAPS)
        self.assertEqual(code, "405")

    # --- media types ---

    def test_json_is_served_to_whoever_takes_it_behind_protobuf(self):
        for accept in (PROTOBUF + ",application/json", PROTOBUF + ", */*", PROTOBUF + ";q=1,application/json;q=0.1"):
            for target in (MAPS, MAPS + "/c0", GADGETS, MAPS + "?watch=1"):
                with self.subTest(accept=accept, target=target):
                    with Watch(self.served, target, {"Accept": accept}) as answer:
                        self.assertEqual((answer.status, answer.answer.getheader("Content-Type")),
                                         (200, "application/json"))
                        if target != GADGETS:
                            self.assertIn("ConfigMap", json.dumps(answer.next()))

    def test_protobuf_alone_is_refused_as_the_api_server_refuses_it_of_custom_resources(self):
        self.assertEqual(ask(self.direct, GADGETS, headers={"Accept": PROTOBUF})[0], 406)
        for target in (GADGETS, MAPS, MAPS + "/c0", MAPS + "?watch=1"):
            status, _, body = ask(self.served, target, headers={"Accept": PROTOBUF})
            self.assertEqual((status, json.loads(body)["reason"]), (406, "NotAcceptable"))

    def test_curl_gets_a_table_where_it_asks_for_one(self):
        ours = json.loads(self.curl("-H", "Accept: " + TABLE, f"http://localhost{MAPS}?labelSelector=of%3Dcurl"))
        self.assertEqual((ours["kind"], [row["cells"][:2] for row in ours["rows"]]),
                         ("Table", [["c0", 1], ["c1", 1], ["c2", 1]]))
        yaml = ask(self.served, MAPS, headers={"Accept": "application/yaml"})
        self.assertEqual(yaml[0], 406)

    # --- a stalled watcher ---

    def put(self, value):
        """Writes the big config map; returns its version."""
        connection = self.direct.open()
        try:
            connection.request("PUT", MAPS + "/big", config_map("big", NAME, f"{value} " + BIG * "x"),
                               {"Content-Type": "application/json"})
            answer = connection.getresponse()
            body = json.loads(answer.read())
            self.assertEqual(answer.status, 200, body)
            return body["metadata"]["resourceVersion"]
        finally:
            connection.close()

    def metric(self, name):
        text = ask(self.served, "/metrics")[2].decode()
        return float(re.search(rf'^{name}{{name="configmaps".*}} (\S+)$', text, re.M).group(1))

    def test_a_watcher_that_takes_nothing_is_told_so_and_hurts_nobody(self):
        cluster().kubectl("apply", "-f", "-", stdin=config_map("big", NAME))
        version = body_of(self.direct, MAPS)["metadata"]["resourceVersion"]
        self.served.wait_for(MAPS, version)
        target = f"{MAPS}?watch=1&fieldSelector=metadata.name%3Dbig&resourceVersion={version}"
        with socket.socket() as stalled, Watch(self.served, target) as other:
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stalled.settimeout(PATIENCE)
            host, port = self.served.address.split(":")
            stalled.connect((host, int(port)))
            stalled.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            wait_until(lambda: self.metric("kinformer_watchers") == 2, "both watch")
            n_events = HISTORY_BYTES // BIG + 20
            for i in range(n_events):
                version = self.put(i)
                self.assertEqual(other.next()["object"]["metadata"]["resourceVersion"], version)
            # What it has not been given is the history's, which is bounded; one event may be on its way.
            self.assertLess(self.metric("kinformer_history_bytes"), HISTORY_BYTES + 2 * BIG)
            received = b""
            while piece := stalled.recv(1 << 20):
                received += piece
                if b"0\r\n\r\n" in piece[-16:]:
                    break
        # It may have been cut off before it reads again.
        self.assertLess(received.count(b'"type":"MODIFIED"'), n_events)
        if received.endswith(b"0\r\n\r\n"):
            self.assertIn(b'"type":"ERROR"', received)
            self.assertIn(b'"code":410', received)


if __name__ == "__main__":
    unittest.main()
