"""Some 900 requests to the API server and to the daemon, malformed in every way, and heads that can be read in more than
one: the same answers, or a reason."""

import contextlib
import http.client
import json
import os
import re
import socket
import unittest
from concurrent.futures import ThreadPoolExecutor

from harness import PATIENCE, cluster, needs_cluster
from serve_rows import NOTHING, OLD_VERSION, OTHER_CODES, OTHER_HEADS, OTHER_WORDS, heads, rows
from test_serve import Direct, Served, ask
from test_serve_auth import Guarded
from test_serve_pass import Sidecar

HERE = os.path.dirname(__file__)


def answer_of(where, *row):
    """The answer to a row. Not to have got there in the time that a row gives says nothing about the row: then it is
    asked again, and a server that never gets there differs. One that has begun to answer when its time is over can say
    so only by closing the connection."""
    for _ in range(20):
        try:
            answer = ask_once(where, *row)
        except http.client.RemoteDisconnected as problem:
            answer = (None, None, str(problem))
        if answer[0] is not None and (answer[0] != 504 or "did not complete within" not in str(answer[2])):
            break
    return answer


def ask_once(where, method, target, accept):
    """What a refusal says; of an answer only that it is one."""
    # Lists may be long, and end with the server's patience.
    status, headers, body = ask(where, target, method, {} if accept is None else {"Accept": accept},
                                lambda status: status >= 300)
    kind = headers.get("content-type")
    if status < 300:
        return status, kind, None
    # The cluster goes on between the one answer and the other.
    body = re.sub(rb"(Too large resource version: \d+, current: )\d+", rb"\1N", body)
    try:
        return status, kind, json.loads(body)
    except ValueError:
        return status, kind, body.strip()


def without_words(answer):
    status, kind, body = answer
    return status, kind, body.get("reason") if isinstance(body, dict) else body


@needs_cluster("words of its own: kinformer-sim is served by the daemon's code")
class RowsTest(unittest.TestCase):
    def test_malformed_requests_are_answered_alike_or_for_a_reason(self):
        cluster().kubectl("apply", "-f", os.path.join(HERE, "gadgets.yaml"))
        cluster().kubectl("wait", "--for=condition=Established", "crd/gadgets.test.kinformer.dev")
        used = set()

        def differ(row, real, ours):
            name = f"{row[0]} {row[1]} Accept: {row[2] or ''}"
            if real == ours:
                return None
            for pattern, _ in OTHER_WORDS:
                if re.search(pattern, name) and without_words(real) == without_words(ours):
                    used.add(pattern)
                    return None
            for pattern, code, _ in OTHER_CODES:
                if re.search(pattern, name) and ours[0] == code:
                    used.add(pattern)
                    return None
            return f"{name}\n  real {real}\n  ours {ours}"

        direct = Direct()
        table = rows()
        self.assertGreater(len(table), 800)
        with Served() as served, ThreadPoolExecutor(16) as pool:
            answers = pool.map(lambda row: (row, answer_of(direct, *row), answer_of(served, *row)), table)
            differences = [text for text in (differ(*answer) for answer in answers) if text is not None]
            self.assertEqual(differences, [], "\n".join(differences))
            served.daemon.stop()
        patterns = {entry[0] for entry in OTHER_WORDS + OTHER_CODES}
        self.assertEqual(patterns - used - {OLD_VERSION}, set(), "differences that are none any more")


@needs_cluster("types of its own")
class NothingTest(unittest.TestCase):
    def test_what_nobody_can_have_takes_no_token_where_requests_are_passed_on(self):
        cluster().try_kubectl("apply", "-f", os.path.join(HERE, "gadgets.yaml"))
        cluster().kubectl("wait", "--for=condition=Established", "crd/gadgets.test.kinformer.dev")
        direct = Direct()
        with Sidecar({"resource": "configmaps"}) as sidecar:
            for row in NOTHING:
                with self.subTest(row):
                    self.assertEqual(answer_of(sidecar, *row), answer_of(direct, *row))
            for method, target in (("POST", "/api/v1/namespaces/default/pods"), ("GET", "/api/v1/secrets"), ("GET", "/x"),
                                   ("DELETE", "/api/v1/namespaces/default/pods"), ("PUT", "/api/v1/nodes/x"),
                                   ("POST", "/api/v1/namespaces/default/pods/x/eviction")):
                self.assertEqual(ask(sidecar, target, method)[0], 401, target)
            sidecar.daemon.stop()


def codes_of(connect, sent):
    """The codes of all answers to these bytes and a good request behind them, up to the end of the connection."""
    got = b""
    with connect() as raw, contextlib.suppress(ConnectionError):
        raw.sendall(sent + b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        while piece := raw.recv(1 << 16):
            got += piece
    return [int(code) for code in re.findall(rb"HTTP/1\.[01] (\d+) ", got)]


def unix_socket(path):
    raw = socket.socket(socket.AF_UNIX)
    raw.settimeout(PATIENCE)
    raw.connect(path)
    return raw


def raw_of(where):
    """The socket of a connection that http.client would use."""
    connection = where.open()
    connection.connect()
    return connection.sock


@needs_cluster("its strictness: kinformer-sim is served by the daemon's code")
class HeadsTest(unittest.TestCase):
    def test_heads_that_can_be_read_in_two_ways_are_refused_and_nothing_behind_them_is_read(self):
        table, used = heads(), set()
        self.assertEqual(len({name for name, _ in table}), len(table))
        with Served(resource=("configmaps",)) as served, Guarded() as guarded:
            ways = [lambda: raw_of(served), lambda: unix_socket(served.socket), lambda: raw_of(guarded)]
            for name, sent in table:
                real = codes_of(lambda: raw_of(Direct()), sent)
                ours = [codes_of(connect, sent) for connect in ways]
                other = next((entry for entry in OTHER_HEADS if re.search(entry[0], name)), None)
                if other is not None and real != ours[0]:
                    used.add(other[0])
                    real = other[1]
                with self.subTest(name):
                    self.assertEqual(ours, [real] * len(ways))
            guarded.daemon.stop()
            served.daemon.stop()
        self.assertEqual({entry[0] for entry in OTHER_HEADS} - used, set(), "differences that are none any more")

    def test_a_bad_head_behind_good_ones_and_in_single_bytes_is_refused(self):
        bad = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n"
        good = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 5000 + b"\r\n\r\n"
        with Served(resource=("configmaps",)) as served:
            self.assertEqual(codes_of(lambda: raw_of(served), good * 5 + bad + good), [200] * 5 + [400])
            with raw_of(served) as raw:
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for i in range(len(bad)):
                    raw.sendall(bad[i:i + 1])
                self.assertIn(b" 400 ", raw.recv(1 << 16))
                self.assertEqual(raw.recv(1), b"")
            served.daemon.stop()


if __name__ == "__main__":
    unittest.main()
