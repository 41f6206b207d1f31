"""Clients that mean harm, or are broken: memory stays bounded, what is wrong is refused, everyone else is served.

The daemon that they meet is the release build, whose memory means something; the pieces that are taken apart by
hand are also sent to the ASan build, which ends with an error if a byte of it goes wrong.
"""

import contextlib
import http.client
import json
import os
import re
import resource
import select
import signal
import socket
import struct
import tempfile
import threading
import time
import unittest

from harness import PATIENCE, cluster, config_map, needs_sim, wait_until, write_config
from test_serve import Served, Watch, ask, body_of

MIB = 1 << 20


# Few objects, whatever other tests left elsewhere: what a watcher that does not read is sent fits into its socket.
SMALL = b"/api/v1/namespaces/kube-system/configmaps"


def rss(served):
    with open(f"/proc/{served.daemon.process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) * 1024


def cpu_seconds(served):
    with open(f"/proc/{served.daemon.process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def n_files(served):
    return len(os.listdir(f"/proc/{served.daemon.process.pid}/fd"))


def connect(served, source=None, at=None):
    """Without a source the kernel takes 127.0.0.1, and may use a port for several destinations."""
    host, _, port = (at or served.address).rpartition(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE, source_address=source and (source, 0))


def is_open(raw):
    """Whether the other side has not closed it; nothing was sent there."""
    poller = select.poll()
    poller.register(raw, select.POLLIN)
    return not poller.poll(0)


def health_times(served, seconds):
    """How long each GET of /healthz took that was asked one after another, each over a new connection."""
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        with connect(served, "127.0.0.2") as raw:
            raw.sendall(b"GET /healthz HTTP/1.1\r\n" + HEAD)
            if not raw.recv(1 << 16).startswith(b"HTTP/1.1 200"):
                raise AssertionError("not healthy")
        times.append(time.monotonic() - began)
        # Each port is taken for a minute.
        time.sleep(0.005)
    return times


def reset(raw):
    """Closes with RST: the peer learns of it without a FIN."""
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.close()


def is_healthy(served):
    return ask(served, "/readyz")[0] == 200 and body_of(served, "/api/v1/namespaces?limit=1")["items"]


def list_watchers(served, name):
    state = body_of(served, "/debug/state")
    return next(informer["watchers"] for informer in state["informers"] if informer["name"] == name)


def watchers(served, name):
    return len(list_watchers(served, name))


def is_told(served, raw):
    """Whether the watch of this socket has begun an event of configmaps."""
    client = "{}:{}".format(*raw.getsockname())
    return any(watcher["client"] == client and watcher["sentEvents"]
               for watcher in list_watchers(served, "configmaps"))


def open_stalled(served, target):
    """The socket of a client that asks and takes nothing."""
    host, _, port = served.address.rpartition(":")
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.settimeout(PATIENCE)
    raw.connect((host, int(port)))
    raw.sendall(f"GET {target} HTTP/1.1\r\n".encode() + HEAD)
    return raw


def lines_of(raw):
    """What an answer has up to its end, which has to be a proper one; a watch has a line for each event."""
    with http.client.HTTPResponse(raw) as answer:
        answer.begin()
        return [json.loads(line) for line in answer]


def answer_of(served, sent, patience=PATIENCE):
    """The beginning of what comes for these bytes; b"": the connection is closed, or nothing comes in time."""
    with connect(served) as raw, contextlib.suppress(ConnectionError):
        with contextlib.suppress(ConnectionError):
            raw.sendall(sent)
        if select.select([raw], [], [], patience)[0]:
            return raw.recv(1 << 16)
    return b""


HEAD = b"Host: localhost\r\n\r\n"

# Bytes that are no request, or one with a trick: (what is sent, what the answer begins with; b"": nothing is said).
RAW = [
    (b"GET /livez HTTP/1.0\r\n\r\n", b"HTTP/1.0 200|HTTP/1.1 200"),
    (b"GET /livez HTTP/1.1\r\n" + HEAD, b"HTTP/1.1 200"),
    (b"GET /livez HTTP/1.1\r\n\r\n", b"HTTP/1.1 400"),
    (b"HEAD /livez HTTP/1.1\r\n" + HEAD, b"HTTP/1.1 405"),
    (b"OPTIONS * HTTP/1.1\r\n" + HEAD, b"HTTP/1.1 400"),
    (b"GET http://localhost/livez HTTP/1.1\r\n" + HEAD, b"HTTP/1.1 400"),
    (b"GET /api/v1/../../livez HTTP/1.1\r\n" + HEAD, b"HTTP/1.1 400"),
    (b"GET /api/v1/%2e%2e/livez HTTP/1.1\r\n" + HEAD, b"HTTP/1.1 400"),
    (b"GET /api/v1/namespaces%2fdefault HTTP/1.1\r\n" + HEAD, b"HTTP/1.1 400"),
    (b"GET /livez%00x HTTP/1.1\r\n" + HEAD, b"HTTP/1.1 400"),
    (b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", b"HTTP/1.1 200"),
    (b"GET /livez HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
     b"HTTP/1.1 200|HTTP/1.1 400|"),
    (b"POST /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n{}\r\n", b"HTTP/1.1 405"),
    (b"POST /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n{}",
     b"HTTP/1.1 405|HTTP/1.1 413|"),
    (b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\n" + HEAD, b"HTTP/1.1 414|HTTP/1.1 431|"),
    (b"GET /livez HTTP/1.1\r\nX: " + b"y" * 100000 + b"\r\n" + HEAD, b"HTTP/1.1 431|HTTP/1.1 413|"),
    (b"GET /livez HTTP/1.1\r\n" + b"X: y\r\n" * 50000 + HEAD, b"HTTP/1.1 431|HTTP/1.1 413|"),
    (b"GET /api/v1/pods?labelSelector=a+in+(" + b"x," * 50000 + b"x) HTTP/1.1\r\n" + HEAD,
     b"HTTP/1.1 414|HTTP/1.1 431|"),
    (b"GET /api/v1/pods?fieldSelector=" + b"metadata.name%3Dx," * 6000 + b" HTTP/1.1\r\n" + HEAD,
     b"HTTP/1.1 414|HTTP/1.1 431|"),
    (b"GET /livez HTTP/1.1\r\n" * 3 + HEAD, b"HTTP/1.1 200|HTTP/1.1 400|"),
    (b"GET /livez\x00/x HTTP/1.1\r\n" + HEAD, b"HTTP/1.1 400"),
    (b"\x00" * 1000, b"HTTP/1.1 400|HTTP/1.0 400|"),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)), b"HTTP/1.1 400|HTTP/1.0 400|"),
    (b"\r\n\r\n\r\n", b""),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"HTTP/1.1 400|HTTP/1.1 505|HTTP/1.0 400|"),
]


@needs_sim("it is the daemon that they attack")
class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster()
        cls.cluster.make_namespace("hostile")
        cls.served = Served(mode="release", resource=("namespaces", "configmaps"))
        cls.served.__enter__()

    @classmethod
    def tearDownClass(cls):
        try:
            cls.served.daemon.stop()
        finally:
            cls.served.__exit__(None, None, None)

    def setUp(self):
        self.rss_before = rss(self.served)
        self.files_before = n_files(self.served)

    def assert_unharmed(self, grown=64 * MIB):
        wait_until(lambda: self.served.daemon.check() or n_files(self.served) <= self.files_before + 16,
                   "the descriptors of those who left are closed")
        self.assertTrue(is_healthy(self.served))
        self.assertLess(rss(self.served) - self.rss_before, grown)

    # --- bytes ---

    def test_bytes_that_are_no_request_are_refused_and_the_next_request_is_served(self):
        with Served(resource=("namespaces",)) as checked:
            for served in (checked, self.served):
                for sent, expected in RAW:
                    with self.subTest(sent=sent[:80], mode=served is checked):
                        begins = expected.split(b"|")
                        answer = answer_of(served, sent, 1.0 if b"" in begins else PATIENCE)
                        self.assertTrue(any(answer.startswith(begin) for begin in begins), answer[:200])
                        self.assertEqual(ask(served, "/livez")[2], b"ok")
            checked.daemon.stop()
        self.assert_unharmed()

    def test_pipelined_requests_are_answered_in_their_order(self):
        paths = ("livez", "nope", "api/v1/namespaces/hostile")
        last = b"GET /livez HTTP/1.1\r\nConnection: close\r\n" + HEAD
        with connect(self.served) as raw:
            raw.sendall(b"".join(f"GET /{path} HTTP/1.1\r\n".encode() + HEAD for path in paths) + last)
            answer = b"".join(iter(lambda: raw.recv(1 << 16), b""))
        self.assertEqual(re.findall(rb"HTTP/1\.1 (\d+) ", answer), [b"200", b"404", b"200", b"200"])
        self.assertIn(b'"name":"hostile"', answer)

    def test_a_connection_serves_one_request_after_another(self):
        connection, sockets = self.served.open(), []
        try:
            for target in ("/livez", "/api/v1/namespaces", "/nope", "/api/v1/configmaps?limit=1", "/livez"):
                connection.request("GET", target)
                connection.getresponse().read()
                sockets.append(connection.sock)
            self.assertIsNotNone(sockets[0])
            self.assertEqual(len(set(map(id, sockets))), 1)
        finally:
            connection.close()

    def test_a_request_in_single_bytes_is_answered(self):
        with connect(self.served) as raw:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in b"GET /livez HTTP/1.1\r\n" + HEAD:
                raw.sendall(bytes([byte]))
            self.assertIn(b" 200 ", raw.recv(1 << 16))

    def test_a_continue_token_that_was_changed_is_refused(self):
        target = "/api/v1/namespaces?limit=1"
        token = body_of(self.served, target)["metadata"]["continue"]
        self.assertEqual(len(body_of(self.served, f"{target}&continue={token}")["items"]), 1)
        for at, byte in enumerate(token):
            changed = token[:at] + ("A" if byte != "A" else "B") + token[at + 1:]
            status, _, body = ask(self.served, f"{target}&continue={changed}")
            self.assertIn((status, json.loads(body)["reason"]), ((400, "BadRequest"), (410, "Expired")), changed)
        for changed in (token[:-1], token + "A", token.upper(), token * 30, "." * 100, "%00", "%ff" * 100):
            self.assertIn(ask(self.served, f"{target}&continue={changed}")[0], (400, 410), changed)

    # --- connections ---

    def test_heads_and_bodies_that_never_end_are_cut_off(self):
        """500 clients that send a byte now and then, from which silence alone would never end."""
        slow = [connect(self.served) for _ in range(500)]
        try:
            for i, raw in enumerate(slow):
                raw.sendall(b"GET /livez HTTP/1.1\r\nX: " if i % 10 else
                            b"POST /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
            open_ones = list(slow)
            deadline = time.monotonic() + PATIENCE
            while open_ones and time.monotonic() < deadline:
                readable = select.select(open_ones, [], [], 1.0)[0]
                open_ones = [raw for raw in open_ones if raw not in readable]
                for raw in open_ones:
                    with contextlib.suppress(OSError):
                        raw.sendall(b"y")
                self.assertTrue(is_healthy(self.served))
            self.assertEqual(len(open_ones), 0)
        finally:
            for raw in slow:
                raw.close()
        self.assert_unharmed()

    def test_ten_thousand_silent_connections_are_borne_and_leave_health_quick(self):
        """Or as many as the machine lets one process have."""
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        n_silent = min(10000, int((most - 300) * 0.6))
        before = max(health_times(self.served, 1))
        with contextlib.ExitStack() as crowd:
            began = time.monotonic()
            filling = threading.Thread(target=lambda: [crowd.enter_context(connect(self.served))
                                                       for _ in range(n_silent)])
            filling.start()
            times = []
            while filling.is_alive():
                times += health_times(self.served, 0.1)
            n_open, grown = n_files(self.served) - self.files_before, rss(self.served) - self.rss_before
            times += health_times(self.served, 15 - (time.monotonic() - began))
            times.sort()
            print(f"  {n_open} of {n_silent} silent connections (limit {most}) cost {grown >> 20} MiB; /healthz median "
                  f"{times[len(times) // 2] * 1000:.1f} ms, slowest {times[-1] * 1000:.1f} ms of {len(times)}; "
                  f"without them slowest {before * 1000:.1f} ms")
            self.assertGreater(n_open, n_silent * 0.9)
            self.assertLess(grown, 400 * MIB)
            # A machine under load may hold up some in a thousand for its own reasons.
            self.assertLess(times[len(times) * 99 // 100], 0.05)
            self.assertLess(times[-1], 1)
            wait_until(lambda: n_files(self.served) <= self.files_before + 16, "those who ask for nothing are cut off")
        self.assert_unharmed(400 * MIB)

    def test_watchers_that_vanish_are_forgotten(self):
        before = watchers(self.served, "configmaps")
        crowd = []
        for _ in range(1000):
            raw = connect(self.served)
            raw.sendall(b"GET " + SMALL + b"?watch=1 HTTP/1.1\r\n" + HEAD)
            crowd.append(raw)
        wait_until(lambda: watchers(self.served, "configmaps") == before + 1000, "1,000 watchers")
        self.assertLess((rss(self.served) - self.rss_before) / 1000, 128 * 1024)
        self.assertTrue(is_healthy(self.served))
        for raw in crowd:
            reset(raw)
        wait_until(lambda: watchers(self.served, "configmaps") == before, "nobody is left")
        self.assert_unharmed(192 * MIB)

    def test_a_storm_of_watches_leaves_nothing_behind(self):
        before = watchers(self.served, "configmaps")

        def storm():
            for i in range(500):
                raw = connect(self.served)
                raw.sendall(b"GET /api/v1/configmaps?watch=1&allowWatchBookmarks=1 HTTP/1.1\r\n" + HEAD)
                if i % 3 == 0:
                    raw.recv(100)
                if i % 2 == 0:
                    reset(raw)
                else:
                    raw.close()

        threads = [threading.Thread(target=storm) for _ in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            self.assertTrue(is_healthy(self.served))
        for thread in threads:
            thread.join()
        wait_until(lambda: watchers(self.served, "configmaps") == before, "nobody is left")
        self.assert_unharmed(192 * MIB)


@needs_sim("it is the daemon that they attack")
class Limits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster()
        with contextlib.suppress(AssertionError):
            cls.cluster.make_namespace("hostile")

    def serve(self, folder, mode="release", **keys):
        config = write_config(folder, "configmaps", "namespaces", **keys)
        return Served("--config", config, resource=(), mode=mode)

    def apply(self, *objects):
        self.cluster.kubectl("apply", "-f", "-", "--server-side", stdin=json.dumps(
            {"kind": "List", "apiVersion": "v1", "items": [json.loads(text) for text in objects]}))

    def test_sixteen_addresses_share_descriptors_and_leave_the_caches_theirs(self):
        with Served(*15 * ("--listen", "127.0.0.1:0"), mode="release", resource=("configmaps", "namespaces"), max_files=1000) as served, \
                contextlib.ExitStack() as crowd:
            addresses = re.findall(r"serving url=http://(\S+)", served.daemon.log_text())
            self.assertEqual(len(addresses), 16)

            def fill(source, n):
                """How many of the connections, over all addresses in turn, are left open."""
                opened = [crowd.enter_context(connect(served, source, addresses[i % 16])) for i in range(n)]
                time.sleep(0.5)
                return sum(map(is_open, opened))

            # Without 256, and 8 for each cache, there are 728.
            counts = {source: fill(source, n) for source, n in
                      ((None, 1000), ("127.0.0.2", 300), ("127.0.0.3", 100), ("127.0.0.4", 100))}
            print(f"  of 1,000 descriptors, addresses in turn have {list(counts.values())}, in all {n_files(served)}")
            self.assertLessEqual(abs(counts[None] - 485), 8)
            self.assertGreater(min(counts.values()), 10)
            self.assertLessEqual(sum(counts.values()), 728)
            self.assertLess(n_files(served), 900)
            self.apply(config_map("crowded", "hostile", str(time.time())))
            raw = crowd.enter_context(connect(served, "127.0.0.5"))

            def is_there():
                raw.sendall(b"GET /api/v1/namespaces/hostile/configmaps/crowded HTTP/1.1\r\n" + HEAD)
                return raw.recv(1 << 16).startswith(b"HTTP/1.1 200")

            wait_until(is_there, "what was written is cached and served")
            served.daemon.stop()

    def test_without_descriptors_the_daemon_waits_and_serves_again(self):
        with tempfile.TemporaryDirectory() as folder, self.serve(folder) as served:
            resource.prlimit(served.daemon.process.pid, resource.RLIMIT_NOFILE, (n_files(served) + 20,) * 2)
            crowd = [connect(served) for _ in range(200)]
            try:
                began = cpu_seconds(served), time.monotonic()
                time.sleep(3)
                used, passed = cpu_seconds(served) - began[0], time.monotonic() - began[1]
                self.assertLess(used / passed, 0.5, "a busy loop")
            finally:
                for raw in crowd:
                    raw.close()
            wait_until(lambda: is_healthy(served), "served again")
            served.daemon.stop()

    def test_a_stalled_watcher_is_told_410_or_cut_off_and_memory_is_what_the_configuration_says(self):
        with tempfile.TemporaryDirectory() as folder, self.serve(folder, maxHistoryBytes=MIB) as served:
            version = body_of(served, "/api/v1/configmaps")["metadata"]["resourceVersion"]
            with connect(served) as stalled, \
                    Watch(served, f"/api/v1/namespaces/hostile/configmaps?watch=1&resourceVersion={version}") as other:
                stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                stalled.sendall(f"GET /api/v1/configmaps?watch=1&resourceVersion={version} HTTP/1.1\r\n".encode() + HEAD)
                wait_until(lambda: watchers(served, "configmaps") == 2, "two watchers")

                def state():
                    return next(informer for informer in body_of(served, "/debug/state")["informers"]
                                if informer["name"] == "configmaps")

                n_seen, i = 0, 0
                while not any(watcher["expired"] for watcher in state()["watchers"]):
                    self.assertLess(i, 200, "the stalled watcher never falls out of 1 MiB of history")
                    self.apply(config_map("stall", "hostile", f"{i:07}" * 30000))
                    i += 1
                    while n_seen < i:
                        self.assertEqual(other.next()["object"]["metadata"]["name"], "stall")
                        n_seen += 1
                    self.assertLess(state()["historyBytes"], 2 * MIB)
                told = b""
                with contextlib.suppress(ConnectionError, socket.timeout):
                    while b'"code":410' not in told:
                        piece = stalled.recv(1 << 16)
                        if not piece:
                            break
                        told = told[-1000:] + piece
                self.assertIn(b'"code":410', told)
                self.assertEqual(len(state()["watchers"]), 1)
            served.daemon.stop()

    def put_large(self, name, i):
        """An object of 900 kB that says which one it is; returns its version."""
        text = config_map(name, "hostile", f"{i:09}" * 100000, {"size": "large"})
        return json.loads(self.cluster.kubectl("apply", "-f", "-", "--server-side", "-o", "json",
                                               stdin=text))["metadata"]["resourceVersion"]

    def version_of(self, served, version):
        """What it knows from: not before this version, and later if somebody wrote before it listed."""
        served.wait_for("/api/v1/configmaps", version)
        return body_of(served, "/api/v1/configmaps")["metadata"]["resourceVersion"]

    def test_clients_that_take_nothing_of_a_large_object_hold_no_copies_of_it(self):
        target = "/api/v1/namespaces/hostile/configmaps?watch=1&labelSelector=size%3Dlarge&resourceVersion="
        version = self.put_large("pieces", 0)
        with tempfile.TemporaryDirectory() as folder, self.serve(folder, maxHistoryBytes=4 * MIB) as served:
            target += self.version_of(served, version)
            with contextlib.ExitStack() as crowd, Watch(served, target) as other:
                stalled = [crowd.enter_context(open_stalled(served, target)) for _ in range(200)]
                wait_until(lambda: watchers(served, "configmaps") == 201, "201 watchers")
                before = rss(served)
                for i in range(1, 13):
                    self.put_large("pieces", i)
                    self.assertEqual(other.next()["object"]["data"]["value"][:9], f"{i:09}")
                    self.assertTrue(is_healthy(served))
                _, headers, body = ask(served, "/api/v1/namespaces/hostile/configmaps/pieces")
                self.assertEqual(json.loads(body)["data"]["value"], f"{12:09}" * 100000)
                self.assertEqual(headers["content-length"], str(len(body)))
                watched = rss(served) - before
                paths = ("configmaps/pieces", "configmaps?labelSelector=size%3Dlarge")
                asked = [crowd.enter_context(open_stalled(served, "/api/v1/namespaces/hostile/" + path))
                         for path in paths for _ in range(100)]
                for raw in asked:
                    self.assertTrue(select.select([raw], [], [], PATIENCE)[0])
                grown = rss(served) - before
                print(f"  200 stalled watches of an object of 900 kB cost {watched >> 20} MiB, with 100 reads and 100 "
                      f"lists {grown >> 20} MiB")
                self.assertLess(grown, 48 * MIB)
                self.assertEqual(lines_of(asked[0])[0]["data"]["value"], f"{12:09}" * 100000)
                self.assertEqual(lines_of(asked[-1])[0]["items"][0]["data"]["value"], f"{12:09}" * 100000)
                for raw in stalled[::20]:
                    events = lines_of(raw)
                    self.assertEqual(events[-1]["object"]["code"], 410)
                    for i, event in enumerate(events[:-1], start=1):
                        self.assertEqual(event["object"]["data"]["value"], f"{i:09}" * 100000)
                    self.assertGreater(len(events), 1)
            served.daemon.stop()
        self.cluster.kubectl("delete", "cm", "-n", "hostile", "pieces")

    def test_stalled_watches_are_cut_off_when_they_hold_too_much(self):
        target = "/api/v1/namespaces/hostile/configmaps?watch=1&labelSelector=size%3Dlarge&resourceVersion="
        version = self.put_large("held", 0)
        with tempfile.TemporaryDirectory() as folder, \
                self.serve(folder, "asan", maxHistoryBytes=MIB, maxHeldBytes=3 * MIB) as served:
            version = self.version_of(served, version)
            with contextlib.ExitStack() as crowd, Watch(served, target + version) as other:
                stalled = []
                for i in range(1, 9):
                    raw = crowd.enter_context(open_stalled(served, target + version))
                    version = self.put_large("held", i)
                    self.assertEqual(other.next()["object"]["data"]["value"][:9], f"{i:09}")
                    wait_until(lambda at=raw: is_told(served, at), "it has begun its event")
                    stalled.append(raw)
                # The store and the history have the objects of the last two, and three are within 3 MiB.
                wait_until(lambda: watchers(served, "configmaps") == 6, "three are cut off")
                self.assertRegex(ask(served, "/metrics")[2].decode(),
                                 r"\nkinformer_watchers_cut_off_total\{[^}]*configmaps[^}]*\} 3\n")
                with self.assertRaises((http.client.IncompleteRead, json.JSONDecodeError, ConnectionError)):
                    lines_of(stalled[0])
                events = lines_of(stalled[-3])
                self.assertEqual(events[0]["object"]["data"]["value"], f"{6:09}" * 100000)
                self.assertEqual(events[-1]["object"]["code"], 410)
            served.daemon.stop()
        self.cluster.kubectl("delete", "cm", "-n", "hostile", "held")

    def test_what_is_left_out_is_said_and_no_name_of_it_is_404(self):
        self.apply(config_map("small", "hostile"), config_map("large", "hostile", "x" * 50000))
        with tempfile.TemporaryDirectory() as folder, self.serve(folder, "asan", maxObjectBytes=20000) as served:
            target = "/api/v1/namespaces/hostile/configmaps"
            wait_until(lambda: b"left out" in ask(served, "/readyz")[2], "the object is known to be left out")
            status, headers, body = ask(served, target)
            names = [item["metadata"]["name"] for item in json.loads(body)["items"]]
            self.assertEqual(status, 200)
            self.assertIn("small", names)
            self.assertNotIn("large", names)
            self.assertRegex(headers["warning"], r'^299 - "kinformer: \d+ configmaps that could not be read')
            with Watch(served, target + "?watch=1") as watch:
                self.assertIn("could not be read", watch.answer.getheader("Warning"))
            status, _, body = ask(served, target + "/large")
            self.assertEqual((status, json.loads(body)["reason"]), (503, "ServiceUnavailable"))
            self.assertEqual(ask(served, target + "/small")[0], 200)
            self.assertNotIn("warning", ask(served, "/api/v1/namespaces")[1])
            self.assertRegex(ask(served, "/readyz")[2].decode(), r"\[\+\]configmaps ok, \d+ objects left out")
            served.daemon.stop()
        self.cluster.kubectl("delete", "cm", "-n", "hostile", "large", "small")

    def test_a_shard_is_not_taken_for_the_whole(self):
        self.apply(*(config_map(f"shard-{i}", "hostile") for i in range(8)))
        shard = "shardRange(object.metadata.uid,'0x0000000000000000','0x8000000000000000')"
        target = "/api/v1/namespaces/hostile/configmaps"
        with tempfile.TemporaryDirectory() as folder:
            with self.serve(folder, "asan", shardSelector=shard) as served:
                for wide in (target, target + "?watch=1", "/api/v1/configmaps?limit=1", "/api/v1/namespaces"):
                    status, _, body = ask(served, wide)
                    self.assertEqual((status, json.loads(body)["reason"]), (403, "Forbidden"), wide)
                self.assertIn("shardRange", json.loads(ask(served, target)[2])["message"])
                same = body_of(served, f"{target}?shardSelector={shard}")["items"]
                self.assertLess(len(same), 8)
                codes = {ask(served, f"{target}/shard-{i}")[0] for i in range(8)}
                self.assertLessEqual(codes, {200, 403})
                served.daemon.stop()
            with self.serve(folder, "asan", shardSelector=shard, assumeScope=True) as served:
                status, headers, _ = ask(served, target)
                self.assertEqual(status, 200)
                self.assertIn("shardRange", headers["warning"])
                served.daemon.stop()

    def test_a_selector_by_a_dropped_field_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            config = write_config(folder, "pods", drop=["spec"])
            with Served("--config", config, resource=(), mode="asan") as served:
                status, headers, body = ask(served, "/api/v1/pods?fieldSelector=spec.nodeName%3Da")
                self.assertEqual((status, json.loads(body)["reason"]), (403, "Forbidden"))
                self.assertNotIn("warning", headers)
                self.assertEqual(ask(served, "/api/v1/pods?fieldSelector=status.phase%3DRunning")[0], 200)
                served.daemon.stop()

    def test_only_answers_warn_of_what_they_leave_out(self):
        self.apply(config_map("warned", "hostile"))
        with tempfile.TemporaryDirectory() as folder, self.serve(folder, "asan", drop=["data"]) as served:
            for target, code in (("configmaps", 200), ("configmaps?watch=1&timeoutSeconds=1", 200),
                                 ("configmaps/warned", 200), ("configmaps/nothing", 404), ("configmaps?limit=a", 400),
                                 ("configmaps?continue=a", 400), ("configmaps?resourceVersion=1&limit=1", 410),
                                 ("configmaps?fieldSelector=data.x%3Dy", 400)):
                with self.subTest(target):
                    status, headers, _ = ask(served, "/api/v1/namespaces/hostile/" + target)
                    self.assertEqual((status, "warning" in headers), (code, code == 200))
            served.daemon.stop()
        self.cluster.kubectl("delete", "cm", "-n", "hostile", "warned")

    # --- signals ---

    def test_reloads_while_watches_run_drop_none_of_what_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "config.yaml")

            def write(*resources, end=""):
                with open(path + ".new", "w", encoding="utf-8") as file:
                    file.write("listen: [\"127.0.0.1:0\"]\nresources:\n" +
                               "".join(f"  - resource: {name}\n" for name in resources) + end)
                os.rename(path + ".new", path)

            write("configmaps", "namespaces")
            with Served("--config", path, resource=(), mode="asan") as served, \
                    Watch(served, "/api/v1/namespaces/hostile/configmaps?watch=1") as stays:
                before = n_files(served)
                # The second one fails when the watch of pods is made already.
                broken = ("  - nonsense: [\n", "  - resource: nothing.at.all\n")
                for i in range(25):
                    has_services = i % 2 == 0
                    write("configmaps", "services" if has_services else "namespaces")
                    served.daemon.process.send_signal(signal.SIGHUP)
                    wait_until(lambda w=has_services: (ask(served, "/api/v1/services")[0] == 200) == w, f"reload {i}")
                    write("configmaps", "pods", end=broken[i // 2 % 2])
                    served.daemon.process.send_signal(signal.SIGHUP)
                    served.daemon.wait_logged("configuration not taken over", i + 1)
                    self.assertEqual(ask(served, "/api/v1/services")[0] == 200, has_services)
                    self.assertEqual(ask(served, "/api/v1/pods")[0], 403)
                wait_until(lambda: n_files(served) <= before + 8, "no descriptor is left over")
                self.apply(config_map("reloaded", "hostile", str(time.time())))
                stays.until(lambda event: event["object"]["metadata"]["name"] == "reloaded")
                served.daemon.stop()
                stays.until(lambda event: False)

    def test_a_stop_with_a_thousand_watches_is_clean_and_quick(self):
        with Served(mode="release", resource=("configmaps",)) as served:
            crowd = []
            for _ in range(1000):
                raw = connect(served)
                raw.sendall(b"GET " + SMALL + b"?watch=1 HTTP/1.1\r\n" + HEAD)
                crowd.append(raw)
            wait_until(lambda: watchers(served, "configmaps") == 1000, "1,000 watchers")
            seconds = served.daemon.stop()
            ends = 0
            for raw in crowd:
                tail = b""
                while True:
                    piece = raw.recv(1 << 16)
                    if not piece:
                        break
                    tail = (tail + piece)[-5:]
                ends += tail == b"0\r\n\r\n"
                raw.close()
            self.assertEqual(ends, 1000)
            print(f"  1,000 watches ended in {seconds:.2f} s")
            # Its own bound is 2 s; a machine under load may add to that.
            self.assertLess(seconds, 10)


if __name__ == "__main__":
    unittest.main()
