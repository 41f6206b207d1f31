"""Calls to the system that fail (bad_calls.c): on sockets now and then, and each start of a thread once.

kinformerd follows kinformer-sim and is read, watched and written through meanwhile. An answer is whole and right, or it is
an error, or cut; once the calls are good again all is as it was.
"""

import concurrent.futures
import contextlib
import http.client
import json
import mmap
import os
import signal
import struct
import subprocess
import tempfile
import threading
import time
import unittest

from harness import ROOT, Daemon, cluster, needs_sim, wait_until, write_config
from test_serve import Direct, Served, ask
from test_serve_hostile import connect, n_files, watchers
from test_serve_pass import send

SECONDS = 8
STOP_S = 3
MAX_THREADS = 40
NAMESPACE = "bad-calls"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
CONSTANT = "constant " * 4000


def put(where, name, value):
    """Creates or replaces a ConfigMap; an answer may be lost."""
    body = json.dumps({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"value": value}})
    if send(where, "PUT", f"{CONFIG_MAPS}/{name}", body)[0] == 404:
        send(where, "POST", CONFIG_MAPS, body)


class BadCalls:
    """The state that bad_calls.c shares."""

    FIELDS = ("is_on", "seed", "thread", "n_threads", "good", "short", "interrupted", "reset", "no_descriptor")

    def __init__(self, folder, name="calls"):
        self.library = os.path.join(folder, "bad_calls.so")
        if not os.path.exists(self.library):
            subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
                            os.path.join(ROOT, "tests", "integration", "bad_calls.c"), "-o", self.library], check=True)
        self.path = os.path.join(folder, name)
        with open(self.path, "w+b") as file:
            file.write(bytes(4 * len(self.FIELDS)))
            file.flush()
            self.map = mmap.mmap(file.fileno(), 0)
        self.env = {"LD_PRELOAD": self.library, "BAD_CALLS_FILE": self.path,
                    "ASAN_OPTIONS": "verify_asan_link_order=0"}

    def __getitem__(self, field):
        return struct.unpack_from("=I", self.map, 4 * self.FIELDS.index(field))[0]

    def __setitem__(self, field, value):
        struct.pack_into("=I", self.map, 4 * self.FIELDS.index(field), value)


class Clients:
    """Threads that ask until they are stopped; the first problem ends them."""

    def __init__(self):
        self.is_over = threading.Event()
        self.pool = concurrent.futures.ThreadPoolExecutor()
        self.running = []
        self.n_done = {}

    def start(self, act, *args):
        self.n_done[act.__name__] = 0
        self.running.append(self.pool.submit(self.repeat, act, *args))

    def repeat(self, act, *args):
        while not self.is_over.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                act(*args)
                self.n_done[act.__name__] += 1

    def stop(self):
        self.is_over.set()
        self.pool.shutdown()
        for one in self.running:
            one.result()


@needs_sim("the calls are the daemon's, whatever it follows")
class Sockets(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.calls = BadCalls(self.folder)
        cluster().try_kubectl("create", "namespace", NAMESPACE)
        self.server = Direct()
        self.number = 0

    def change(self):
        self.number += 1
        put(self.server, f"c{self.number % 20}", str(self.number))
        if self.number % 7 == 0:
            send(self.server, "DELETE", f"{CONFIG_MAPS}/c{self.number // 2 % 20}")
        time.sleep(0.005)

    def write_through(self, served):
        put(served, "through", str(time.monotonic()))

    def check(self, status, body):
        self.assertTrue(status in (200, 429) or status >= 500, (status, body))
        return json.loads(body) if status == 200 else None

    def read(self, served):
        listed = self.check(*ask(served, CONFIG_MAPS)[::2])
        if listed is not None:
            values = {item["metadata"]["name"]: item["data"]["value"] for item in listed["items"]}
            self.assertEqual(values["constant"], CONSTANT)
        passed_on = self.check(*send(served, "GET", f"/api/v1/namespaces/{NAMESPACE}/secrets")[::2])
        if passed_on is not None:
            self.assertEqual(passed_on["kind"], "SecretList")

    def watch(self, served):
        """For a while: no line is broken, but the last of a connection that is."""
        connection = served.open()
        try:
            connection.request("GET", CONFIG_MAPS + "?watch=1&timeoutSeconds=2")
            answer = connection.getresponse()
            if answer.status != 200:
                self.check(answer.status, answer.read())
                return
            for line in answer:
                if line.endswith(b"\n"):
                    json.loads(line)
        finally:
            connection.close()

    def versions(self, where):
        status, _, body = send(where, "GET", CONFIG_MAPS)
        self.assertEqual(status, 200)
        return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in json.loads(body)["items"]}

    def test_what_is_followed_and_served_is_right_again(self):
        put(self.server, "constant", CONSTANT)
        with Served("--pass-through", resource=("configmaps",), env=self.calls.env) as served:
            n_before, clients = n_files(served), Clients()
            self.calls["seed"] = int(os.environ.get("KINF_TEST_SEED", time.time()))
            self.calls["is_on"] = 1
            print(f"KINF_TEST_SEED={self.calls['seed']}")
            for act, *args in ((self.change,), (self.write_through, served), (self.read, served), (self.read, served),
                               (self.watch, served), (self.watch, served)):
                clients.start(act, *args)
            time.sleep(SECONDS)
            self.calls["is_on"] = 0
            clients.stop()
            for kind in BadCalls.FIELDS[5:]:
                self.assertGreater(self.calls[kind], 5, kind)
            for act, n in clients.n_done.items():
                self.assertGreater(n, 3, act)
            wait_until(lambda: self.versions(served) == self.versions(self.server), "the cache is as the server")
            # What is kept: a connection to the server for each client that was passed on, and one of the daemon's own.
            wait_until(lambda: n_files(served) <= n_before + 4, f"{n_files(served)} descriptors, {n_before} before")
            self.assertLess(served.daemon.stop(), STOP_S)

    def test_who_came_when_there_was_no_descriptor_is_let_in_when_there_is(self):
        """Though no connection ends: those that are there are watches."""
        with Served(resource=("configmaps",), env=self.calls.env) as served:
            watch = served.open()
            watch.request("GET", CONFIG_MAPS + "?watch=1")
            wait_until(lambda: watchers(served, "configmaps") == 1, "it watches")
            self.calls["is_on"] = 1
            late = []
            while self.calls["no_descriptor"] == 0:
                late.append(connect(served))
                time.sleep(0.05)
            self.calls["is_on"] = 0
            with late[-1] as raw:
                raw.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
                self.assertIn(b" 200 ", raw.recv(1 << 16))
            for raw in late:
                raw.close()
            watch.close()


@needs_sim("the calls are the daemon's, whatever it follows")
class Threads(unittest.TestCase):
    """Whichever thread cannot be started: the daemon says so and ends, or does its work, and stops; by a reload it does not end."""

    def test_each_start_that_fails_is_said_or_made_up_for(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        config = write_config(folder, "configmaps", "secrets")
        with open(config, "a", encoding="utf-8") as file:
            file.write(f"listen: [\"127.0.0.1:0\"]\npassThrough: true\nstateDir: {folder}/state\n"
                       f"accessLog: {folder}/access\nhandlers:\n- exec: [cat]\n")
        n_ended = n_ran = 0
        for number in range(1, MAX_THREADS):
            calls = BadCalls(folder, f"calls-{number}")
            calls["thread"] = number
            with Daemon(config=config, env=calls.env) as daemon:
                wait_until(lambda: daemon.process.poll() is not None or len(daemon.synced) == 2, number)
                if daemon.process.poll() is None:
                    daemon.stop(within=STOP_S)
                    n_ran += 1
                else:
                    self.assertEqual(daemon.process.returncode, 1, daemon.log_text())
                    self.assertRegex(daemon.log_text().splitlines()[-1], "thread|Resource temporarily unavailable")
                    n_ended += 1
            if calls["n_threads"] < number:
                break
        self.assertLess(number, MAX_THREADS - 1)
        self.assertGreater(n_ended, 5)
        self.assertGreater(n_ran, 0)

    def test_a_reload_for_which_none_starts_changes_nothing(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        calls, path = BadCalls(folder), os.path.join(folder, "config.yaml")
        cluster().try_kubectl("create", "namespace", NAMESPACE)

        def write(*resources):
            with open(path, "w", encoding="utf-8") as file:
                file.write("resources:\n" + "".join(f"- {{resource: {resource}}}\n" for resource in resources))

        write("configmaps", "namespaces")
        with Served("--config", path, resource=(), env=calls.env) as served:
            watch = served.open()
            watch.request("GET", "/api/v1/configmaps?watch=1")
            stream = watch.getresponse()
            write("configmaps, maxHistoryAge: 1m", "namespaces", "serviceaccounts")
            for number in range(1, MAX_THREADS):
                calls["thread"] = calls["n_threads"] + number
                served.daemon.process.send_signal(signal.SIGHUP)
                wait_until(lambda number=number: served.daemon.check() or served.daemon.count_log("configuration not taken over") +
                           served.daemon.count_log("configuration read again") == number, number)
                if served.daemon.count_log("configuration read again") != 0:
                    break
                self.assertEqual(ask(served, "/api/v1/serviceaccounts")[0], 403)
                self.assertEqual(ask(served, "/readyz/configmaps")[0], 200)
                put(Direct(), f"reload-{number}", "x")
                line = " "
                while f"reload-{number}" not in line:
                    line = stream.readline().decode()
                    self.assertNotEqual(line, "", "the end of the watch")
            self.assertEqual(served.daemon.count_log("nothing changed error=\"cannot start thread"), number - 1)
            self.assertGreater(number, 5)
            wait_until(lambda: ask(served, "/api/v1/serviceaccounts")[0] == 200, "the new configuration")
            watch.close()
            served.daemon.stop()
