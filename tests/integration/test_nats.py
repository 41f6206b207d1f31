"""The plugin for NATS: whoever ends under changes, the bucket equals the cluster, and the stream tells each change once."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from harness import PATIENCE, ROOT, TOOLS, Daemon, Proxy, cluster, config_map, make_key_pair, wait_until

SPACE = "nats"
PLUGIN = os.path.join(ROOT, "build", "asan", "plugins", "kinformer-nats.so")
SERVER = os.path.join(TOOLS, "nats-server")
DUMP = os.path.join(TOOLS, "natsdump")


def setUpModule():
    if not (os.path.exists(PLUGIN) and os.path.exists(SERVER)) and os.environ.get("CI") != "true":
        raise unittest.SkipTest("no libnats to build the plugin with, or no nats-server (tests/cluster/build.sh)")
    cluster().make_namespace(SPACE)


def encode(resource, key):
    """As plugins/nats/key.h has it."""
    namespace, _, name = key.rpartition("/")

    def part(text):
        return "".join("_" if c == "." else c if re.match("[-0-9a-zA-Z]", c) else "".join(f"={b:02X}" for b in c.encode())
                       for c in text)
    return ".".join([part(resource), part(namespace) or "-", part(name)])


class NatsServer:
    """nats-server with JetStream on loopback; what it has outlives it."""

    def __init__(self, folder, config=""):
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
        self.url = f"nats://127.0.0.1:{self.port}"
        self.dump_args = ["-server", self.url]
        with open(os.path.join(folder, "nats.conf"), "w", encoding="utf-8") as file:
            file.write("jetstream: enabled\n" + config)
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            [SERVER, "-c", os.path.join(self.folder, "nats.conf"), "-sd", os.path.join(self.folder, "store"),
             "-a", "127.0.0.1", "-p", str(self.port), "-l", os.path.join(self.folder, "nats.log")], stdin=subprocess.DEVNULL)
        wait_until(self.listens, "nats-server listens")

    def listens(self):
        if self.process.poll() is not None:
            with open(os.path.join(self.folder, "nats.log"), encoding="utf-8") as file:
                raise AssertionError("nats-server ended: " + file.read()[-2000:])
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                return b"INFO" in connection.recv(4096)
        except OSError:
            return False

    def kill(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
            self.process = None

    def publish(self, message_id):
        """A message that is nobody's, as a writer's claim; returns its sequence."""
        headers = f"NATS/1.0\r\nKV-Operation: DEL\r\nNats-Msg-Id: {message_id}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall(b'CONNECT {"headers":true,"verbose":false}\r\nSUB acks 1\r\n' +
                               f"HPUB kinformer._writer acks {len(headers)} {len(headers)}\r\n{headers}\r\n".encode())
            answer = connection.makefile()
            return next(json.loads(line)["seq"] for line in answer if line.startswith('{"stream"'))

    def ask(self, *args):
        done = subprocess.run([DUMP, *self.dump_args, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
        if done.returncode != 0:
            raise AssertionError("natsdump: " + done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]


class Gap(Proxy):
    """In front of a NatsServer: what a client sends with this word in it is lost, with `is_silent` all behind it, too;
    `is_slow`: the server's answers to it trickle instead."""

    def __init__(self, server, word, is_silent=False, is_slow=False):
        self.word, self.is_silent, self.is_slow = word, is_silent, is_slow
        self.n_met = 0
        super().__init__(f"127.0.0.1:{server.port}")
        self.url = f"nats://127.0.0.1:{self.port}"

    def _pump(self, source, sink, from_server):
        is_met = False
        try:
            while piece := source.recv(65536):
                meets = not from_server and self.word in piece
                is_met = is_met or meets
                self.n_met += meets
                if self.is_slow and from_server and self.n_met:
                    for at in range(0, len(piece), 200):
                        sink.sendall(piece[at:at + 200])
                        time.sleep(0.02)
                elif self.is_slow or not (meets or (self.is_silent and is_met)):
                    sink.sendall(piece)
        except OSError:
            pass


class Told:
    """What is in stream and bucket, of which the first must be a legal history."""

    def __init__(self, lines):
        self.bucket = {line["key"]: line["payload"] for line in lines if line["from"] == "bucket"}
        self.events = [line for line in lines if line["from"] == "stream"]
        self.state = {}
        ids = set()
        for event in self.events:
            if event["id"] in ids:
                raise AssertionError("twice: " + event["id"])
            ids.add(event["id"])
            self.apply(event)

    def apply(self, event):
        line, (uid, version) = event["payload"], event["version"].split("/")
        key = encode(line["resource"], line["key"])
        if (event["key"], line["resourceVersion"]) != ("kinformer." + key, version) or not event["id"].startswith(event["version"]):
            raise AssertionError(f"does not fit: {event}")
        if line["type"] == "ADDED":
            legal = key not in self.state
        else:
            was = self.state.pop(key, (None, 0))
            legal = was[0] == uid and int(version) >= was[1] + (line["type"] == "MODIFIED")
        if not legal or line.get("object", {}).get("metadata", {"uid": uid})["uid"] != uid:
            raise AssertionError(f"no legal history of {key}: {[e['payload'] for e in self.events if e['key'] == event['key']]}")
        if line["type"] != "DELETED":
            self.state[key] = (uid, int(version))

    def types(self, key):
        return [event["payload"]["type"] for event in self.events if event["key"] == "kinformer." + key]


class NatsTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.server = None
        self.dice = None

    def start_server(self, config=""):
        self.server = NatsServer(self.folder, config)
        self.addCleanup(self.server.kill)
        self.server.start()

    def config(self, resources=("configmaps",), name="config.yaml", daemon=(), drop="[]", **keys):
        path = os.path.join(self.folder, name)
        handler = {"plugin": PLUGIN, "config": {"servers": [self.server.url], **keys}}
        lines = ["events: json", *daemon, "resources:"]
        lines += [f"- {{resource: {resource}, drop: {drop}{f', namespaces: [{SPACE}]' if resource == 'configmaps' else ''}}}"
                  for resource in resources]
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join([*lines, "handlers: " + json.dumps([handler]), ""]))
        return path

    def daemon(self, **more):
        return self.enterContext(Daemon(config=self.config(**more)))

    def put(self, name, value):
        cluster().kubectl("apply", "-f", "-", stdin=config_map(name, SPACE, value))

    def delete(self, *names):
        cluster().kubectl("delete", "configmap", *names, "-n", SPACE)

    def objects(self, target=f"/api/v1/namespaces/{SPACE}/configmaps", resource="configmaps"):
        """What the bucket is to have."""
        items = json.loads(cluster().kubectl("get", "--raw", target))["items"]
        return {encode(resource, f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}".lstrip("/")): item
                for item in items}

    def wait_equal(self, daemon, objects=None):
        """Until bucket and stream are what the cluster has; what was told then."""
        def equal():
            daemon.check()
            wanted = (objects or self.objects)()
            told = Told(self.server.ask())
            versions = {key: (item["metadata"]["uid"], int(item["metadata"]["resourceVersion"]))
                        for key, item in wanted.items()}
            if not told.events or told.state != versions or told.bucket.keys() != wanted.keys():
                return None
            for key, item in wanted.items():
                has = told.bucket[key].get("metadata")
                if has is None or (has["uid"], int(has["resourceVersion"])) != versions[key]:
                    return None
                self.assertEqual(told.bucket[key].get("data"), item.get("data"))
            return told
        return wait_until(equal, "bucket and stream equal the cluster")

    def clear(self):
        cluster().kubectl("delete", "configmaps", "--all", "-n", SPACE)

    def test_bucket_and_stream_have_all_and_what_changes(self):
        self.start_server()
        self.clear()
        self.put("before", "1")
        daemon = self.daemon(servers=["nats://127.0.0.1:1", self.server.url])  # the first is dead
        self.wait_equal(daemon)
        for value in ("2", "3"):
            self.put("later", value)
            self.wait_equal(daemon)
        self.delete("later")
        told = self.wait_equal(daemon)
        self.assertEqual(told.types(f"configmaps.{SPACE}.later"), ["ADDED", "MODIFIED", "DELETED"])
        self.assertEqual(told.types(f"configmaps.{SPACE}.before"), ["ADDED"])
        last = [event["payload"] for event in told.events][-1]
        self.assertEqual((last["key"], last["object"]["data"]), (SPACE + "/later", {"value": "3"}))
        daemon.stop(within=10)

    def test_names_of_any_kind_are_keys(self):
        self.start_server()
        for name in ("kinformer:nats:a.b", "kinformer:nats_a"):
            cluster().kubectl("create", "-f", "-", stdin=json.dumps(
                {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": []}))
            self.addCleanup(cluster().kubectl, "delete", "clusterrole", name)
        resource = "clusterroles.rbac.authorization.k8s.io"
        daemon = self.daemon(resources=(resource,))
        told = self.wait_equal(daemon, lambda: self.objects("/apis/rbac.authorization.k8s.io/v1/clusterroles", resource))
        self.assertIn("clusterroles_rbac_authorization_k8s_io.-.kinformer=3Anats=3Aa_b", told.bucket)
        daemon.stop()

    def seed(self):
        seed = time.time_ns()
        print(f"  seed {seed}")
        self.dice = random.Random(seed)

    def requests(self, requests):
        """Makes (verb, name, value) as fast as one connection can, of config maps."""
        path = f"/api/v1/namespaces/{SPACE}/configmaps"
        connection = cluster().connect()
        for verb, name, value in requests:
            body = None if verb == "DELETE" else config_map(name, SPACE, value)
            connection.request(verb, path if verb == "POST" else f"{path}/{name}", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            self.assertLess(answer.status, 300, text)
        connection.close()

    def change_while(self, n_steps, n_times=0, interfere=None):
        """Changes at random, and so many times something else. A daemon waits twice as long after each failure."""
        self.seed()
        self.clear()

        def steps():
            there, times = set(), self.dice.sample(range(n_steps), n_times)
            for step in range(n_steps):
                name = f"item-{self.dice.randrange(20)}"
                if name in there and self.dice.random() < 0.3:
                    there.remove(name)
                    yield "DELETE", name, None
                else:
                    yield "PUT" if name in there else "POST", name, str(step)
                    there.add(name)
                if step in times:
                    interfere()
        self.requests(steps())

    def restart_server(self):
        self.server.kill()
        self.server.start()

    def test_the_server_killed_under_changes(self):
        self.start_server()
        daemon = self.daemon()
        self.change_while(600, 3, self.restart_server)
        self.restart_server()
        self.put("last", "1")
        self.wait_equal(daemon)
        daemon.stop()

    def test_the_daemon_killed_under_changes(self):
        self.start_server()
        daemons = [self.daemon()]

        def restart():
            daemons[-1].process.kill()
            daemons[-1].process.wait()
            daemons.append(self.daemon())
        self.change_while(600, 5, restart)
        restart()
        self.wait_equal(daemons[-1])
        daemons[-1].stop()

    def test_the_daemon_killed_while_it_tells_the_first_state(self):
        self.start_server()
        self.seed()
        self.clear()
        self.requests(("POST", f"item-{i}", "") for i in range(60))
        for value in range(6):
            daemon = self.daemon()
            daemon.wait_synced()
            time.sleep(self.dice.random() / 10)
            daemon.process.kill()
            daemon.process.wait()
            self.requests(("PUT", f"item-{i}", str(value)) for i in range(60) if self.dice.random() < 0.5)
        daemon = self.daemon()
        self.wait_equal(daemon)
        daemon.stop()
        self.clear()

    def test_both_killed_under_changes(self):
        self.start_server()
        daemons = [self.daemon()]

        def restart():
            if self.dice.random() < 0.5:
                self.restart_server()
            else:
                daemons[-1].process.kill()
                daemons[-1].process.wait()
                daemons.append(self.daemon())
        self.change_while(600, 5, restart)
        self.put("last", "2")
        self.wait_equal(daemons[-1])
        daemons[-1].stop()

    def test_what_went_unseen_is_told_once_by_the_next_daemon(self):
        self.start_server()
        self.clear()
        for name in ("kept", "changed", "gone", "other"):
            self.put(name, "1")
        daemon = self.daemon()
        self.wait_equal(daemon)
        daemon.stop()
        self.put("changed", "2")
        self.delete("gone", "other")
        self.put("other", "2")
        self.put("new", "2")
        daemon = self.daemon()
        told = self.wait_equal(daemon)
        key = f"configmaps.{SPACE}."
        self.assertEqual({name: told.types(key + name) for name in ("kept", "changed", "gone", "other", "new")},
                         {"kept": ["ADDED"], "changed": ["ADDED", "MODIFIED"], "gone": ["ADDED", "DELETED"],
                          "other": ["ADDED", "DELETED", "ADDED"], "new": ["ADDED"]})
        gone = [event["payload"] for event in told.events if event["key"] == f"kinformer.{key}gone"][-1]
        self.assertEqual((gone["finalStateUnknown"], gone["object"]["data"]), (True, {"value": "1"}))
        daemon.stop()

    def test_a_daemon_that_begins_with_an_older_state_tells_none_of_it(self):
        self.start_server()
        self.clear()
        for name in ("changed", "changed-again", "gone", "other", "other-gone"):
            self.put(name, "1")
        proxy = self.enterContext(Proxy())
        kubeconfig = proxy.kubeconfig(self.folder)
        config = self.config(daemon=(f"stateDir: {self.folder}/state", "stateInterval: 1h", "serveStale: true"))
        with Daemon(kubeconfig=kubeconfig, config=config) as daemon:
            self.wait_equal(daemon)
            daemon.stop()  # which writes the state
        with Daemon(kubeconfig=kubeconfig, config=config) as daemon:
            self.wait_equal(daemon)
            for name in ("changed", "changed-again", "other", "other-gone"):
                self.put(name, "2")
            self.wait_equal(daemon)
            self.delete("gone", "other", "other-gone")
            for name in ("other", "other-gone", "new"):
                self.put(name, "3")
            told = self.wait_equal(daemon)
            daemon.process.kill()
            daemon.process.wait()
        before = len(told.events)
        proxy.stall.set()
        daemon = self.enterContext(Daemon(kubeconfig=kubeconfig, config=config))
        wait_until(lambda: daemon.check() or len(daemon.versions("configmaps")) >= 5, "the daemon has its old state")
        time.sleep(2)  # the plugin has it, too
        self.assertEqual(len(Told(self.server.ask()).events), before)
        self.put("changed-again", "3")
        self.delete("other-gone")
        proxy.stall.clear()
        told = self.wait_equal(daemon)
        types = {"changed": ["MODIFIED"], "changed-again": ["MODIFIED", "MODIFIED"], "gone": ["DELETED"],
                 "other": ["MODIFIED", "DELETED", "ADDED"], "other-gone": ["MODIFIED", "DELETED", "ADDED", "DELETED"], "new": []}
        self.assertEqual({name: told.types(f"configmaps.{SPACE}.{name}")[1:] for name in types}, types)
        self.assertEqual(daemon.count_log("handler failed"), 0)
        daemon.stop()

    def test_a_bucket_or_stream_that_was_deleted_is_made_anew(self):
        self.start_server()
        self.put("first", "1")
        daemon = self.daemon()
        self.wait_equal(daemon)
        self.server.ask("-delete-bucket")
        self.put("second", str(time.time_ns()))
        told = self.wait_equal(daemon)
        self.assertEqual(told.types(f"configmaps.{SPACE}.first"), ["ADDED"])
        self.server.ask("-delete-stream")
        self.put("second", str(time.time_ns()))
        daemon.wait_logged("the stream or the bucket is gone", times=2)
        # What the bucket has is known to have been told; the stream goes on from there.
        wait_until(lambda: daemon.check() or [line["payload"]["type"] for line in self.server.ask() if line["from"] == "stream"]
                   == ["MODIFIED"], "the change is in the new stream")
        daemon.stop()

    def test_what_is_not_kept_any_more_leaves_the_bucket(self):
        """Of objects that do not change; and comes back. Neither is a change in the cluster."""
        self.start_server()
        self.clear()
        self.put("plain", "secret")
        key = f"configmaps.{SPACE}.plain"
        daemon = self.daemon()
        self.wait_equal(daemon)
        daemon.stop()

        def wait_data(daemon, data):
            def has_data():
                daemon.check()
                told = Told(self.server.ask())
                return told if told.bucket[key].get("data") == data else None
            return wait_until(has_data, f"the bucket has {data}")
        for drop, data in (("[data]", None), ("[]", {"value": "secret"})):
            daemon = self.daemon(drop=drop)
            told = wait_data(daemon, data)
            self.assertEqual(told.types(key), ["ADDED"])
            daemon.stop()

    def test_what_another_writes_into_the_bucket_is_mended(self):
        self.start_server()
        self.put("edited", "1")
        daemon = self.daemon()
        self.wait_equal(daemon)
        self.server.ask("-put", f"configmaps.{SPACE}.edited")
        self.server.ask("-put", f"configmaps.{SPACE}.never")
        self.put("another", str(time.time_ns()))
        self.wait_equal(daemon)
        daemon.wait_logged("wrong last msg ID")
        daemon.stop()

    def test_of_two_daemons_only_one_writes_at_a_time(self):
        self.start_server()
        self.put("heard", "1")
        daemons = [self.daemon()]
        self.wait_equal(daemons[0])
        daemons.append(self.daemon())
        self.wait_equal(daemons[1])
        self.change_while(50)

        def is_lost():
            self.put("heard", str(time.time_ns()))  # the second may begin only now
            return any(daemon.check() or daemon.count_log("wrong last msg ID") for daemon in daemons)
        wait_until(is_lost, "one has lost the stream to the other")
        daemons[0].process.kill()
        daemons[0].process.wait()
        self.put("last", str(time.time_ns()))
        self.wait_equal(daemons[1])
        daemons[1].stop()

    def test_a_message_is_not_taken_for_another_of_its_id(self):
        """Neither for one of the same version, nor for one that somebody has forged."""
        self.start_server()
        self.clear()
        self.put("first", "1")
        daemon = self.daemon()
        self.wait_equal(daemon)
        daemon.stop()
        self.put("second", "1")
        metadata = self.objects()[f"configmaps.{SPACE}.second"]["metadata"]
        version = f"{metadata['uid']}/{metadata['resourceVersion']}"
        claim = self.server.publish(version) + 2
        self.assertEqual(self.server.publish(f"{version}/{claim}.2"), claim - 1)
        daemon = self.daemon()
        told = self.wait_equal(daemon)
        self.assertEqual(told.types(f"configmaps.{SPACE}.second"), ["ADDED"])
        self.assertEqual(daemon.count_log("a message was refused: it was taken for another of its id"), 1)
        daemon.stop()

    def test_a_reload_takes_the_stream_over(self):
        self.start_server()
        self.put("heard", "1")
        daemon = self.daemon()
        self.wait_equal(daemon)
        for hours in (11, 12, 13):
            self.config(maxAge=f"{hours}h")
            self.put("reloaded", str(time.time_ns()))
            daemon.process.send_signal(signal.SIGHUP)
            self.put("reloaded", str(time.time_ns()))
            daemon.wait_logged("loaded anew", times=hours - 10)
            self.put("reloaded", str(time.time_ns()))
            self.wait_equal(daemon)
        self.assertEqual(daemon.count_log("wrong last msg ID"), 0)
        daemon.stop()

    def test_a_daemon_that_slept_writes_nothing_old(self):
        self.start_server()
        sleeper = self.daemon()
        self.put("old", "1")
        self.wait_equal(sleeper)
        sleeper.process.send_signal(signal.SIGSTOP)
        self.put("old", "2")
        successor = self.daemon()
        self.wait_equal(successor)
        sleeper.process.send_signal(signal.SIGCONT)
        sleeper.wait_logged("wrong last msg ID")
        self.put("old", "3")
        self.wait_equal(successor)
        sleeper.stop()
        successor.stop()

    def test_it_waits_for_a_server_that_comes_later(self):
        self.server = NatsServer(self.folder)
        self.addCleanup(self.server.kill)
        self.put("early", "1")
        daemon = self.daemon()
        daemon.wait_synced()
        daemon.wait_logged("connecting: No server available for connection")
        self.server.start()
        self.wait_equal(daemon)
        daemon.stop()

    def test_a_server_that_hangs_is_left_and_found_again(self):
        self.start_server()
        self.put("heard", "1")
        daemon = self.daemon()
        self.wait_equal(daemon)
        self.server.process.send_signal(signal.SIGSTOP)
        self.put("unheard", str(time.time_ns()))
        daemon.wait_logged("the NATS server is silent")
        self.server.process.send_signal(signal.SIGCONT)
        self.put("unheard", str(time.time_ns()))
        self.wait_equal(daemon)
        daemon.stop()

    def test_a_server_that_hangs_holds_up_no_end(self):
        self.start_server()
        self.put("heard", "1")
        daemon = self.daemon()
        self.wait_equal(daemon)
        self.server.process.send_signal(signal.SIGSTOP)
        self.put("unheard", str(time.time_ns()))
        time.sleep(1)  # it waits for the server then
        daemon.stop(within=10)

    def gap(self, *args, **more):
        return self.enterContext(Gap(self.server, *args, **more))

    def test_it_ends_within_its_time_wherever_the_server_falls_silent(self):
        self.start_server()
        self.clear()
        self.seed()
        names = [f"item-{i}" for i in range(200)]

        def ends(word, **how):
            gap = self.gap(word, **how)
            daemon = self.daemon(servers=[gap.url])
            wait_until(lambda: daemon.check() or gap.n_met, word)
            time.sleep(self.dice.random())
            daemon.stop()  # whose status says whether a handler did not end
        ends(b"STREAM.INFO", is_silent=True)
        ends(b"STREAM.CREATE", is_silent=True)
        ends(b"_writer", is_silent=True)
        self.requests(("POST", name, "1") for name in names)
        ends(b"kinformer.configmaps", is_silent=True)
        daemon = self.daemon()
        self.wait_equal(daemon)
        daemon.stop()
        ends(b"CONSUMER.CREATE", is_silent=True)
        ends(b"CONSUMER.CREATE", is_slow=True)
        self.requests(("DELETE", name, None) for name in names)
        ends(b"STREAM.MSG.GET")

    def test_the_object_of_a_deletion_is_read_or_all_is_begun_anew(self):
        self.start_server()
        self.clear()
        self.put("gone", "1")
        daemon = self.daemon()
        self.wait_equal(daemon)
        daemon.stop()
        self.delete("gone")
        gap = self.gap(b"STREAM.MSG.GET")
        daemon = self.daemon(servers=[gap.url])
        wait_until(lambda: daemon.check() or gap.n_met, "its request for the object is lost")
        gap.word = b"nothing of the kind"
        told = self.wait_equal(daemon)
        self.assertEqual(told.events[-1]["payload"]["object"]["data"], {"value": "1"})
        daemon.stop()

    def test_a_server_that_cannot_be_read_is_left_for_the_next(self):
        self.start_server()
        self.put("heard", "1")
        daemon = self.daemon(servers=[self.gap(b"CONSUMER.CREATE").url, self.server.url])
        self.wait_equal(daemon)
        daemon.stop()

    def test_what_is_too_large_for_a_message_is_said_and_left_out(self):
        self.start_server("max_payload: 32768\n")
        self.clear()
        self.put("large", "x" * 40000)
        self.put("small", "1")
        daemon = self.daemon()
        daemon.wait_logged(f"too large for a message of the server: configmaps {SPACE}/large")
        key = f"configmaps.{SPACE}."
        wait_until(lambda: daemon.check() or {line["key"]: line["payload"].get("tooLarge") for line in self.server.ask()
                                              if line["from"] == "bucket"} == {key + "large": True, key + "small": None},
                   "both are in the bucket")
        self.put("large", "2")
        self.wait_equal(daemon)
        daemon.stop()

    def test_over_tls_with_a_password(self):
        make_key_pair(os.path.join(self.folder, "pair"))
        pair = os.path.join(self.folder, "pair")
        self.start_server(f'tls {{ cert_file: "{pair}.crt", key_file: "{pair}.key" }}\n'
                          'authorization { user: kinformer, password: "sesame" }\n')
        self.server.url = f"tls://kinformer:sesame@localhost:{self.server.port}"
        self.server.dump_args = ["-server", self.server.url, "-ca", pair + ".crt"]
        self.put("secured", "1")
        daemon = self.daemon(tls={"caFile": pair + ".crt"})
        self.wait_equal(daemon)
        daemon.stop()
        self.assertEqual(daemon.count_log("sesame"), 0)
        make_key_pair(os.path.join(self.folder, "other"))
        daemon = self.daemon(tls={"caFile": os.path.join(self.folder, "other.crt")})
        daemon.wait_logged("SSL")
        self.assertEqual(daemon.count_log("sesame"), 0)
        daemon.stop()

    def test_a_server_without_tls_is_told_nothing_if_the_url_says_tls(self):
        self.start_server()
        self.put("secret", "1")
        with self.gap(b"sesame") as gap:
            daemon = self.daemon(servers=[f"tls://kinformer:sesame@127.0.0.1:{gap.port}"])
            daemon.wait_synced()
            daemon.wait_logged("Secure Connection not available")
            self.assertEqual(gap.n_met, 0)
            daemon.stop()

    def test_what_is_wrong_in_its_configuration_is_said(self):
        self.server = NatsServer(self.folder)
        for keys, words in (({"srevers": []}, "srevers is not known"), ({"bucket": "a.b"}, "bucket has letters"),
                            ({"servers": []}, "servers is a list of URLs")):
            daemon = self.daemon(**keys)
            daemon.wait_logged(words)
            daemon.stop()
        self.start_server()
        daemon = self.daemon(credentials=self.folder + "/nothing.creds")
        daemon.wait_logged("nothing.creds")
        daemon.stop()
