"""Handlers of the daemon, programs and URLs: they end with the state of the server, whatever happens to them."""

import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from harness import ROOT, Daemon, cluster, config_map, daemon_path, lack, make_key_pair, run_daemon, wait_until
from sim import Sim

SPACE = "handlers"
EXAMPLE = os.path.join(ROOT, "examples", "exec-handler", "handler.py")

# Writes its state into FOLDER/state after each line, the uids of all that it was told and of all deletions into
# FOLDER/told and FOLDER/deleted, its number into FOLDER/pid.
TAKE = """
import json, os, sys
folder = os.environ["FOLDER"]
with open(folder + "/pid", "w") as file:
    file.write(f"{os.getpid()}\\n")
state = {}
synced = []
def note(name, event):
    with open(folder + "/" + name, "a") as file:
        file.write(event["object"]["metadata"]["uid"] + "\\n")
def write(name, text):
    with open(folder + "/new", "w") as file:
        file.write(text)
    os.replace(folder + "/new", folder + "/" + name)
def take(line):
    event = json.loads(line)
    if event["type"] == "RESET":
        state.clear()
        synced.clear()
    elif event["type"] == "SYNCED":
        synced.append(event["resource"])
    elif event["type"] == "DELETED":
        state.pop(event["key"], None)
        note("deleted", event)
    else:
        assert (event["type"] == "ADDED") == (event["key"] not in state), line
        state[event["key"]] = event["resourceVersion"]
        note("told", event)
        assert event["object"]["metadata"]["resourceVersion"] == event["resourceVersion"]
    if synced:
        write("state", json.dumps({"state": state, "synced": synced}))
    return event
"""

HANDLER = TAKE + """
for line in sys.stdin:
    event = take(line)
    if "seq" in event:
        print(json.dumps({"ack": event["seq"]}), flush=True)
"""

# Takes batches at the port that is its argument, as webhook_handler.h says: repeats are passed over, and who does not know
# where it is asks for everything anew. What is against the contract it writes into FOLDER/wrong.
RECEIVER = TAKE + """
import http.server, ssl, threading
lock = threading.Lock()
known = {"run": None, "last": 0, "term": -1}
def take_batch(headers, body):
    first, last = map(int, headers["Kinformer-Sequence"].split("-"))
    lines = body.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(first, last + 1)), body
    assert headers["Content-Type"] == "application/x-ndjson" and headers["Authorization"] == "Bearer word", headers
    term = int(headers.get("Kinformer-Term", -1))
    assert (term >= 0) == (headers.get("Kinformer-Lease") == "webhook-0"), headers
    assert term >= known["term"], headers
    known["term"] = term
    write("term", str(term))
    is_known = headers["Kinformer-Run"] == known["run"]
    if is_known and last <= known["last"]:
        return 200
    if json.loads(lines[0])["type"] != "RESET" and (not is_known or first != known["last"] + 1):
        return 409
    for line in lines:
        take(line)
    known.update(run=headers["Kinformer-Run"], last=last)
    return 200
class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    log_message = lambda *args: None
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            with lock:
                code = take_batch(self.headers, body)
        except Exception as error:
            write("wrong", repr(error))
            code = 400
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(folder + "/tls.crt", folder + "/tls.key")
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
"""


class HandlersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cluster().make_namespace(SPACE)

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.program = self.write("handler.py", HANDLER)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def config(self, handlers, resources=("configmaps",)):
        lines = ["events: json", "resources:"]
        lines += [f"- {{resource: {name}, namespaces: [{SPACE}]}}" for name in resources]
        return self.write("config.yaml", "\n".join([*lines, "handlers: " + json.dumps(handlers), ""]))

    def daemon(self, *args, **more):
        return self.enterContext(Daemon(*args, env={"FOLDER": self.folder}, **more))

    def read(self, name):
        try:
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def state(self):
        text = self.read("state")
        return json.loads(text)["state"] if text else None

    def versions(self):
        return cluster().versions(f"/api/v1/namespaces/{SPACE}/configmaps")

    def put(self, name, value):
        cluster().kubectl("apply", "-f", "-", stdin=config_map(name, SPACE, value))

    def delete(self, name):
        """The uid of what was deleted."""
        found = json.loads(cluster().kubectl("get", "--raw", f"/api/v1/namespaces/{SPACE}/configmaps/{name}"))
        cluster().kubectl("delete", "configmap", name, "-n", SPACE)
        return found["metadata"]["uid"]

    def wait_equal(self, daemon):
        wait_until(lambda: daemon.check() or self.state() == self.versions(), "the handler has what the server has")

    def kill_handler(self):
        text = self.read("pid")
        if text.endswith("\n"):
            try:
                os.kill(int(text), signal.SIGKILL)
            except ProcessLookupError:
                pass  # it was killed before, and the next one does not run yet

    def change(self, seed, n_steps, kills):
        """Changes at random, with the handler killed now and then; the uids of all that was deleted."""
        dice = random.Random(seed)
        print(f"  seed {seed}")
        deleted = []
        for step in range(n_steps):
            name = f"item-{dice.randrange(8)}"
            if SPACE + "/" + name in self.versions() and dice.random() < 0.4:
                deleted.append(self.delete(name))
            else:
                self.put(name, str(step))
            if kills and dice.random() < 0.1:
                self.kill_handler()
        return deleted

    def test_it_is_told_all_and_what_changes(self):
        self.put("before", "x")
        daemon = self.daemon("--namespace", SPACE, "--exec", f"{sys.executable} {self.program}", resource=("configmaps",))
        self.wait_equal(daemon)
        self.put("later", "y")
        self.wait_equal(daemon)
        self.delete("before")
        self.wait_equal(daemon)
        self.assertEqual(json.loads(self.read("state"))["synced"], ["configmaps"])
        daemon.stop(within=10)
        self.delete("later")

    def test_killed_under_changes_it_ends_with_the_state_of_the_server(self):
        daemon = self.daemon(config=self.config([{"exec": [sys.executable, self.program]}]))
        self.change(time.time_ns(), 40, kills=True)
        self.kill_handler()
        self.wait_equal(daemon)
        daemon.stop()

    def test_with_acknowledgement_no_deletion_is_lost(self):
        daemon = self.daemon(config=self.config([{"exec": [sys.executable, self.program], "acknowledge": True}]))
        self.wait_equal(daemon)
        deleted = self.change(time.time_ns(), 40, kills=True)
        self.wait_equal(daemon)
        told = set(self.read("told").split())
        self.assertGreater(len(told), 0)
        wait_until(lambda: daemon.check() or told & set(deleted) <= set(self.read("deleted").split()), "every deletion")
        self.assertEqual(daemon.count_log("no acknowledgement"), 0)
        daemon.stop()

    def test_how_it_ended_is_told_also_if_who_started_the_daemon_waits_for_no_child(self):
        command = [daemon_path("asan"), "--kubeconfig", cluster().kubeconfig(), "--resource", "namespaces", "--exec", "exit 7"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True,
                              preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)) as process:
            told = next(line for line in process.stderr if "handler failed" in line)
            process.terminate()
        self.assertIn("exit_code=7", told)

    def test_a_reload_takes_a_resource_away_from_it(self):
        self.put("kept", "x")
        config = self.config([{"exec": [sys.executable, self.program]}], ("configmaps", "serviceaccounts"))
        cluster().kubectl("create", "serviceaccount", "gone", "-n", SPACE)
        daemon = self.daemon(config=config)
        wait_until(lambda: daemon.check() or SPACE + "/gone" in (self.state() or {}), "both")
        self.config([{"exec": [sys.executable, self.program]}])
        daemon.process.send_signal(signal.SIGHUP)
        self.wait_equal(daemon)
        self.config([])
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_logged("handlers change only by a restart")
        daemon.stop()
        cluster().kubectl("delete", "serviceaccount", "gone", "-n", SPACE)

    def test_a_reload_that_fails_half_way_tells_nothing(self):
        library = os.path.join(self.folder, "few_threads.so")
        subprocess.run(["cc", "-shared", "-fPIC", os.path.join(ROOT, "tests", "integration", "few_threads.c"), "-D_GNU_SOURCE",
                        "-o", library], check=True)
        cluster().kubectl("create", "serviceaccount", "half-way", "-n", SPACE)
        self.addCleanup(cluster().kubectl, "delete", "serviceaccount", "half-way", "-n", SPACE)
        limit = os.path.join(self.folder, "limit")

        def configure(*names):
            resources = "".join(f"- {{resource: {name}, namespaces: [{SPACE}]}}\n" for name in names)
            return self.write("config.yaml", f"resources:\n{resources}"
                              f"handlers: [{{exec: [/bin/sh, -c, 'exec cat >>{self.folder}/lines']}}]\n")

        daemon = self.enterContext(Daemon(config=configure("configmaps"), env={
            "LD_PRELOAD": library, "THREADS_FILE": limit, "ASAN_OPTIONS": "verify_asan_link_order=0"}))
        wait_until(lambda: daemon.check() or "SYNCED" in self.read("lines"), "it is told")
        configure("configmaps", "serviceaccounts", "secrets")
        n_threads = 0
        while daemon.count_log("configuration read again") == 0:
            n_threads += 1
            self.assertLess(n_threads, 30)
            self.write("limit.new", str(n_threads))
            os.replace(limit + ".new", limit)
            daemon.process.send_signal(signal.SIGHUP)
            refused = "configuration not taken over, nothing changed"
            wait_until(lambda: daemon.check() or daemon.count_log("configuration read again") +
                       daemon.count_log(refused) == n_threads, "it is read")
        self.assertGreater(n_threads, 3)
        wait_until(lambda: daemon.check() or '"SYNCED","resource":"secrets"' in self.read("lines"), "the new ones")
        self.assertEqual(self.read("lines").count('"RESET"'), 1)
        daemon.stop()

    def test_only_what_it_wants_is_told(self):
        self.put("unwanted", "x")
        config = self.config([{"exec": [sys.executable, self.program], "resources": ["serviceaccounts"]}],
                             ("configmaps", "serviceaccounts"))
        daemon = self.daemon(config=config)
        daemon.wait_synced(2)
        wait_until(lambda: daemon.check() or self.state() is not None, "its state")
        self.assertNotIn(SPACE + "/unwanted", self.state())
        self.assertEqual(json.loads(self.read("state"))["synced"], ["serviceaccounts"])
        daemon.stop()

    def test_of_two_entries_a_resource_is_synced_once_and_told_again_by_their_period(self):
        self.put("again", "x")
        uid = json.loads(cluster().kubectl("get", "configmap", "again", "-n", SPACE, "-o", "json"))["metadata"]["uid"]
        daemon = self.daemon(config=self.write("config.yaml", f"""
resources:
- {{resource: configmaps, namespaces: [{SPACE}], resyncPeriod: 500ms}}
- {{resource: configmaps, namespaces: [default]}}
handlers: [{{exec: [{sys.executable}, {self.program}]}}]
"""))
        wait_until(lambda: daemon.check() or self.read("told").split().count(uid) >= 3, "the period")
        self.assertEqual(json.loads(self.read("state"))["synced"], ["configmaps"])
        daemon.stop()
        self.delete("again")

    def test_what_two_entries_select_is_told_once_and_stays_while_one_has_it(self):
        daemon = self.daemon(config=self.write("config.yaml", f"""
resources:
- {{resource: configmaps, namespaces: [{SPACE}]}}
- {{resource: configmaps, labelSelector: narrow=yes}}
handlers: [{{exec: [{sys.executable}, {self.program}]}}]
"""))
        self.put("both", "x")
        self.wait_equal(daemon)
        for label in ("narrow=yes", "narrow=no", "narrow=yes"):
            cluster().kubectl("label", "configmap", "both", "-n", SPACE, "--overwrite", label)
            self.wait_equal(daemon)
        uid = self.delete("both")
        self.wait_equal(daemon)
        self.put("last", "x")
        self.wait_equal(daemon)
        self.assertEqual(self.read("told").split().count(uid), 4)
        self.assertEqual(self.read("deleted").split().count(uid), 1)
        self.assertEqual(daemon.count_log("handler failed"), 0)
        daemon.stop()
        self.delete("last")

    def test_an_entry_that_is_refused_keeps_no_resource_from_being_synced(self):
        def write(*more):
            entries = "".join(f"- {{resource: configmaps, namespaces: {namespaces}}}\n" for namespaces in ("[a]", *more))
            return self.write("config.yaml", f"resources:\n{entries}handlers: [{{exec: [{sys.executable}, {self.program}]}}]\n")

        def synced():
            text = self.read("state")
            return json.loads(text)["synced"] if text else []

        with Sim("--fault-listen", "127.0.0.1:0") as sim, \
                Daemon(config=write(), kubeconfig=sim.kubeconfig, env={"FOLDER": self.folder}) as daemon:
            wait_until(lambda: daemon.check() or synced() == ["configmaps"], "the one that is allowed")
            sim.control("POST", "/faults", "list configmaps 403\n")
            write("[b, c]")
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_logged("configuration read again")
            os.remove(self.folder + "/state")
            self.kill_handler()
            wait_until(lambda: daemon.check() or synced() == ["configmaps"], "it is synced without the other")
            sim.control("DELETE", "/faults")
            wait_until(lambda: daemon.check() or synced() == ["configmaps"] * 2, "and with the other")
            daemon.stop()

    def check_example(self, program):
        cluster().loader("load", "-pods", "3", "-namespaces", "1", "-prefix", "handler-example")
        daemon = self.daemon("--exec", program)
        daemon.wait_logged('handlers: said handler="/bin/sh -c ' + program)
        daemon.stop()
        daemon = self.daemon(config=self.write("acknowledging.yaml", "resources: [{resource: pods}]\nhandlers:\n"
                                               f"- {{exec: [{program}], acknowledge: true}}\n"))
        daemon.wait_logged("handlers: said handler=" + json.dumps(program))
        self.assertEqual(daemon.count_log("no acknowledgement"), 0)
        daemon.stop()
        cluster().loader("delete", "-namespace", "handler-example-0")

    def test_the_example_counts_pods(self):
        self.check_example(EXAMPLE)

    def test_the_example_in_go_counts_pods(self):
        if shutil.which("go") is None:
            lack("go")
        program = os.path.join(self.folder, "count-pods")
        subprocess.run(["go", "build", "-o", program, EXAMPLE.replace(".py", ".go")], check=True)
        self.check_example(program)

    def receiver(self):
        """Starts it, in place of the one before."""
        path = self.write("receiver.py", RECEIVER)
        process = subprocess.Popen([sys.executable, path, str(self.port)], env={**os.environ, "FOLDER": self.folder})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def webhook(self, **more):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        make_key_pair(self.folder + "/tls")
        token = self.write("word", "word\n")
        return {"url": f"https://localhost:{self.port}/changes", "caFile": self.folder + "/tls.crt", "tokenFile": token, **more}

    def test_a_receiver_that_is_killed_under_changes_ends_with_the_state_of_the_server(self):
        self.put("before", "x")
        daemon = self.daemon(config=self.config([{"webhook": self.webhook(maxBatchBytes=4000)}]))
        running = [self.receiver()]
        self.wait_equal(daemon)

        def kill():
            running[0].kill()
            running[0].wait()
            running[0] = self.receiver()
        self.kill_handler = kill
        deleted = self.change(time.time_ns(), 40, kills=True)
        kill()
        deleted.append(self.delete("before"))
        self.wait_equal(daemon)
        told = set(self.read("told").split())
        self.assertGreater(len(told), 0)
        wait_until(lambda: daemon.check() or told & set(deleted) <= set(self.read("deleted").split()), "every deletion")
        self.assertEqual(self.read("wrong"), "")
        self.assertGreater(daemon.count_log("handler failed"), 0)
        self.assertNotIn("word", daemon.log_text().replace("tokenFile", "").replace(self.folder + "/word", ""))
        daemon.stop(within=10)

    def test_a_receiver_knows_the_later_leader(self):
        self.put("led", "x")
        config = self.config([{"webhook": self.webhook()}])
        with open(config, "a", encoding="utf-8") as file:
            file.write(f"lease: {SPACE}/webhook\n")
        self.receiver()
        for term in (0, 1):
            daemon = self.daemon(config=config)
            wait_until(lambda daemon=daemon, term=term: daemon.check() or self.read("term") == str(term), "the term")
            self.wait_equal(daemon)
            daemon.stop()
        self.assertEqual(self.read("wrong"), "")

    def test_the_state_tells_of_each(self):
        listen = f"unix:{self.folder}/listen.sock"
        hook = self.webhook()
        config = self.config([{"exec": ["sh", "-c", "exit 7"]}, {"webhook": hook}])
        daemon = self.daemon("--listen", listen, config=config)

        def told():
            text = subprocess.run(["curl", "-s", "--unix-socket", self.folder + "/listen.sock", "http://daemon/debug/state"],
                                  check=False, text=True, stdout=subprocess.PIPE).stdout
            return json.loads(text)["handlers"] if text else None
        bad, away = wait_until(lambda: daemon.check() or (told() or [{}])[-1].get("errors") and told()[0]["errors"] and told(),
                               "both have failed")
        self.assertEqual(set(bad), {"name", "kind", "running", "starts", "errors", "sent", "backlog", "unacknowledged",
                                    "lastError", "lastErrorTime"})
        self.assertEqual((bad["kind"], bad["name"]), ("exec", "sh -c exit 7"))
        self.assertIn("exit_code=7", bad["lastError"])
        self.assertEqual((away["kind"], away["name"], away["running"]), ("webhook", hook["url"], False))
        self.assertIn("cannot connect to the server localhost:", away["lastError"])
        self.assertRegex(away["lastErrorTime"], r"^\d{4}-.*Z$")
        self.receiver()
        self.wait_equal(daemon)
        here = wait_until(lambda: told()[1]["running"] and told()[1], "the webhook")
        wait_until(lambda: told()[1]["unacknowledged"] == 0 == told()[1]["backlog"], "all is taken")
        self.assertGreaterEqual(here["sent"], 2)
        self.config([{"exec": ["sh", "-c", "exit 7"]}, {"webhook": {**hook, "timeout": "7s"}}])
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_logged("handlers change only by a restart")
        daemon.stop()

    def test_metrics_tell_of_each(self):
        listen = f"unix:{self.folder}/listen.sock"
        daemon = self.daemon("--exec", "cat > /dev/null", "--exec", "exit 7", "--listen", listen, "--namespace", SPACE,
                             resource=("configmaps",))
        daemon.wait_logged("exit_code=7")
        daemon.wait_synced()

        def sample(name, handler):
            text = subprocess.run(["curl", "-s", "--unix-socket", self.folder + "/listen.sock", "http://daemon/metrics"],
                                  check=True, text=True, stdout=subprocess.PIPE).stdout
            return int(re.search(rf'^kinformer_handler_{name}{{handler="{handler}",name="[^"]*"}} (\d+)$', text,
                                 re.M).group(1))
        wait_until(lambda: daemon.check() or (sample("running", 0), sample("backlog", 0)) == (1, 0), "the good one")
        self.assertGreaterEqual(sample("sent_total", 0), 2)
        wait_until(lambda: daemon.check() or sample("starts_total", 1) >= 2, "the bad one, again")
        daemon.stop()

    def test_bad_ones_hold_up_neither_the_daemon_nor_its_end(self):
        bad = ["sleep 1000", "exec 0<&-; sleep 1000", "exit 1", "yes", "yes >&2", "sleep 1000 & exit 0",
               "trap '' TERM; while :; do sleep 1; done", "./nothing-of-this-name", "kill -STOP $$"]
        args = [arg for command in bad for arg in ("--exec", command)]
        daemon = self.daemon("--namespace", SPACE, *args, resource=("configmaps",))
        daemon.wait_synced()
        self.put("under-bad", "x")
        daemon.wait_types(SPACE + "/under-bad", "ADDED")
        self.delete("under-bad")
        daemon.wait_types(SPACE + "/under-bad", "ADDED", "DELETED")
        daemon.stop(within=10)  # three graces of a second, in parallel, on a machine that may be busy

    def test_its_limit_of_descriptors_is_the_one_that_the_daemon_was_started_with(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (300, hard))
        program = self.write("limit.sh", 'until [ "$(ulimit -Sn)" = 300 ]; do :; done; ulimit -Hn >"$FOLDER/hard"; cat >/dev/null')
        daemon = self.daemon(config=self.config([{"exec": ["sh", program]}]))
        wait_until(lambda: daemon.check() or self.read("hard").endswith("\n"), "its limits")
        self.assertIn(self.read("hard"), (f"{hard}\n", "unlimited\n"))
        self.assertEqual(resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE), (hard, hard))
        daemon.stop()

    def test_check_config_says_what_is_wrong(self):
        rows = [("[{exec: [no-such-program]}]", "exec: there is no program 'no-such-program'"),
                ("[{exec: [./nothing]}]", "exec: there is no program './nothing'"),
                ("[{exec: [/]}]", "exec: there is no program '/'"),
                ("[{exec: ['']}]", "exec: there is no program ''"),
                ("[{exec: []}]", "exec is a program and its arguments"), ("[{}]", "a handler has one of exec, plugin and webhook"),
                ("[{exec: [cat], webhook: {url: 'https://a/'}}]", "a handler has one of exec, plugin and webhook"),
                ("[{webhook: {}}]", "webhook: it has no url"), ("[{webhook: 'https://a/'}]", "webhook"),
                ("[{webhook: {url: 'gopher://a/'}}]", "is no https:// or http:// URL"),
                ("[{webhook: {url: 'http://example.com/'}}]", "http:// shows all objects to the network"),
                ("[{webhook: {url: 'https://a/', caFile: /nothing}}]", "cannot read /nothing"),
                ("[{webhook: {url: 'https://a/', tokenFile: /nothing}}]", "cannot read /nothing"),
                ("[{webhook: {url: 'https://a/', certFile: /nothing}}]", "certFile and keyFile go together"),
                ("[{webhook: {url: 'https://a/', timeout: 7}}]", "timeout"),
                ("[{webhook: {url: 'https://a/', maxBatchBytes: -1}}]", "maxBatchBytes"),
                ("[{webhook: {url: 'https://a/', retries: 7}}]", "retries"),
                ("[{webhook: {url: 'https://a/'}, acknowledge: true}]", "acknowledge goes with exec, not with webhook"),
                ("[{exec: cat}]", "exec"), ("[cat]", "a handler is a mapping"), ("cat", "handlers"),
                ("[{exec: [cat], resources: [podz]}]", "the handler's podz is none of this file's resources"),
                ("[{exec: [cat], acknowledge: 7}]", "acknowledge"), ("[{exec: [cat], restart: no}]", "restart")]
        for handlers, words in rows:
            path = self.write("config.yaml", f"resources: [{{resource: pods}}]\nhandlers: {handlers}\n")
            code, _, err = run_daemon("--check-config", "--config", path)
            self.assertEqual((code, err.count("\n")), (2, 1), (handlers, err))
            self.assertIn("config.yaml:", err)
            self.assertIn(words, err)
        path = self.write("config.yaml", "resources: [{resource: pods}]\nhandlers: [{exec: [cat], resources: [pods]}]\n")
        self.assertEqual(run_daemon("--check-config", "--config", path)[0], 0)
        path = self.write("config.yaml", "resources: [{resource: pods}]\nhandlers: " + json.dumps([
            {"webhook": self.webhook(timeout="5s"), "resources": ["pods"]},
            {"webhook": {"url": "http://127.0.0.1:1/", "maxBatchBytes": 1}},
            {"webhook": {"url": "http://example.com/", "insecure": True}}]) + "\n")
        self.assertEqual(run_daemon("--check-config", "--config", path)[0], 0)
        self.assertEqual(run_daemon("--check-config", "--resource", "pods", "--exec", "cat")[0], 0)
        code, _, err = run_daemon("--check-config", "--resource", "pods", "--exec", "")
        self.assertEqual((code, err), (2, "kinformerd: --exec is a command, not ''\n"))
