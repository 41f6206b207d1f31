"""A daemon that starts again: with stateDir it goes on where it was, with serveStale also without a server."""

import base64
import json
import os
import re
import signal
import socket
import stat
import subprocess
import tempfile
import unittest

from harness import PATIENCE, ROOT, Daemon, Proxy, cluster, config_map, run_daemon, wait_until
from sim import Sim
from test_serve import Served, Watch, ask, body_of, name_of

NAMESPACE = "warm"
TARGET = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
FILE = f"configmaps@{NAMESPACE}"


def setUpModule():
    cluster().make_namespace(NAMESPACE)


def put(name, data="x"):
    cluster().kubectl("apply", "-f", "-", stdin=config_map(name, NAMESPACE, data))


def delete(name):
    cluster().kubectl("delete", "configmap", "-n", NAMESPACE, name)


class Warm(Served):
    """A daemon with a configuration, which need not get ready."""

    def __init__(self, config, kubeconfig=None, mode="asan"):
        self.folder = tempfile.TemporaryDirectory()
        self.kubeconfig = os.path.join(self.folder.name, "kubeconfig")
        self.daemon = Daemon("--write-kubeconfig", self.kubeconfig, config=config, kubeconfig=kubeconfig, mode=mode)

    def __enter__(self):
        self.connect()
        return self

    def requests(self):
        """What the API server was asked for."""
        return re.findall(r" GET (\S+) host=", self.daemon.log_text())

    def lists(self):
        """Whole lists of the resources."""
        return [target for target in self.requests() if re.search(r"/(configmaps|pods|secrets)(\?|$)", target)
                and "watch=1" not in target and "limit=1&" not in target + "&"]

    def readyz(self):
        status, _, body = ask(self, "/readyz?verbose")
        return status, body.decode()

    def metric(self, name):
        body = ask(self, "/metrics")[2].decode()
        return float(re.search(rf"^{name}{{[^}}]*}} (\S+)$", body, re.M).group(1))


class WarmTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.state = os.path.join(self.folder, "state")
        cluster().kubectl("delete", "configmaps", "--all", "-n", NAMESPACE)
        for i in range(5):
            put(f"old-{i}")

    def config(self, name="config.yaml", resources=None, **keys):
        path = os.path.join(self.folder, name)
        values = {"events": "json", "listen": ["127.0.0.1:0"], "stateDir": self.state,
                  "resources": resources or [{"resource": "configmaps", "namespaces": [NAMESPACE],
                                              "backoffBase": "100ms", "backoffMax": "500ms"}], **keys}
        with open(path, "w", encoding="utf-8") as file:
            json.dump({key: value for key, value in values.items() if value is not None}, file)
        return path

    def start(self, kubeconfig=None, mode="asan", **keys):
        return Warm(self.config(**keys), kubeconfig, mode)

    def run_once(self, kubeconfig=None, **keys):
        """A first life: the state is written. Returns what was served."""
        with self.start(kubeconfig, **keys) as warm:
            warm.daemon.wait_synced()
            warm.daemon.wait_equal(self.expected, "configmaps")
            wait_until(lambda: warm.readyz()[0] == 200, "ready")
            body = body_of(warm, TARGET)
            warm.daemon.stop()
            return body

    def expected(self):
        return cluster().versions(TARGET)

    def file(self, name=FILE):
        return os.path.join(self.state, name)

    def types(self, warm, name):
        return [event["type"] for event in warm.daemon.events_of(f"{NAMESPACE}/{name}")]

    def assert_went_on(self, warm):
        """By a watch at the version of before, and a few requests about single objects."""
        self.assertEqual(warm.lists(), [])
        self.assertLess(len(warm.requests()), 15, warm.requests())

    def test_a_resource_that_is_there_twice_has_two_files(self):
        resource = {"resource": "configmaps", "namespaces": [NAMESPACE]}
        resources = [resource, {**resource, "keep": ["data"], "serve": False}]
        for lists in (2, 0):
            with self.start(resources=resources, events="none") as warm:
                wait_until(lambda: warm.readyz()[0] == 200, "ready")
                wait_until(lambda: "all synced" in warm.daemon.log_text(), "both")
                self.assertEqual(len(warm.lists()), lists)
                warm.daemon.stop()
            self.assertEqual(sorted(os.listdir(self.state)), [FILE, FILE + "_2"])

    def test_what_a_reload_moves_up_takes_the_file_of_its_place(self):
        entries = [{"resource": "configmaps", "namespaces": [NAMESPACE], "drop": [path]}
                   for path in ("data", "binaryData", "immutable")]
        with self.start(resources=entries[:2], events="none") as warm:
            wait_until(lambda: warm.readyz()[0] == 200, "ready")
            self.config(resources=entries[1:], events="none")
            warm.daemon.process.send_signal(signal.SIGHUP)
            warm.daemon.wait_logged("configuration read again")
            wait_until(lambda: warm.readyz()[0] == 200, "ready again")
            files = re.findall(r'^kinformer_state_writes_total{file="(.*)"}', ask(warm, "/metrics")[2].decode(), re.M)
            self.assertEqual(sorted(files), [FILE, FILE + "_2"])
            warm.daemon.stop()
        with self.start(resources=entries[1:], events="none") as warm:
            wait_until(lambda: warm.readyz()[0] == 200, "ready")
            self.assertEqual((warm.lists(), warm.daemon.count_log("state not used")), ([], 0))
            warm.daemon.stop()

    def test_each_entry_has_a_file_for_each_namespace(self):
        resources = [{"resource": "configmaps", "namespaces": names, "keep": [keep], "serve": False}
                     for names, keep in (([NAMESPACE], "data"), (["default"], "data"), ([NAMESPACE, "default"], "binaryData"),
                                         ([NAMESPACE], "immutable"))]
        with self.start(resources=resources, events="none") as warm:
            wait_until(lambda: "all synced" in warm.daemon.log_text(), "all")
            warm.daemon.stop()
        self.assertEqual(sorted(os.listdir(self.state)), ["configmaps@default", "configmaps@default_2"] +
                         [FILE, FILE + "_2", FILE + "_3"])

    def test_no_namespace_has_the_file_of_another_ones_second_entry(self):
        resources = [{"resource": "configmaps", "namespaces": [NAMESPACE, NAMESPACE + "-2"], "keep": [keep], "serve": False}
                     for keep in ("data", "binaryData")]
        for lists in (4, 0):
            with self.start(resources=resources, events="none") as warm:
                wait_until(lambda: "all synced" in warm.daemon.log_text(), "all")
                self.assertEqual((len(warm.lists()), warm.daemon.count_log("state not used, listing file=configmaps@")),
                                 (lists, lists))
                warm.daemon.stop()

    def test_goes_on_at_the_version_where_it_was(self):
        served = self.run_once()
        info = os.stat(self.file())
        self.assertEqual(stat.S_IMODE(info.st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(self.state).st_mode), 0o700)
        self.assertEqual(os.listdir(self.state), [FILE])
        put("old-1", "changed")
        delete("old-2")
        put("new")
        with self.start() as warm:
            warm.daemon.wait_synced()
            warm.daemon.wait_equal(self.expected, "configmaps")
            self.assert_went_on(warm)
            self.assertEqual(self.types(warm, "old-0"), ["ADDED"])
            self.assertEqual(self.types(warm, "old-1"), ["ADDED", "MODIFIED"])
            self.assertEqual(self.types(warm, "old-2"), ["ADDED", "DELETED"])
            self.assertFalse(warm.daemon.events_of(f"{NAMESPACE}/old-2")[-1]["finalStateUnknown"])
            self.assertEqual(self.types(warm, "new"), ["ADDED"])
            self.assertFalse(warm.daemon.events_of(f"{NAMESPACE}/new")[0]["initial"])
            # To the byte, in the order of the fields.
            before = {name_of({"object": item}): json.dumps(item) for item in served["items"]}
            now = {name_of({"object": item}): json.dumps(item) for item in body_of(warm, TARGET)["items"]}
            self.assertEqual([now[f"old-{i}"] for i in (0, 3, 4)], [before[f"old-{i}"] for i in (0, 3, 4)])
            self.assertNotIn("warning", ask(warm, TARGET)[1])
            self.assertEqual(warm.metric("kinformer_state_loaded_objects"), len(served["items"]))
            self.assertGreater(warm.metric("kinformer_state_age_seconds"), 0)
            warm.daemon.stop()
            self.assertEqual(warm.daemon.count_log("state written"), 1)

    def test_an_expired_version_is_listed(self):
        self.run_once()
        delete("old-2")
        put("old-1", "changed")
        cluster().forget()
        with self.start() as warm:
            warm.daemon.wait_synced()
            warm.daemon.wait_equal(self.expected, "configmaps")
            self.assertTrue(warm.daemon.events_of(f"{NAMESPACE}/old-2")[-1]["finalStateUnknown"])
            self.assertEqual(self.types(warm, "old-0"), ["ADDED"], "an unchanged object is not told again")
            self.assertEqual(self.types(warm, "old-1"), ["ADDED", "MODIFIED"])
            self.assertEqual(len(warm.lists()), 1, warm.requests())
            warm.daemon.stop()

    def test_a_restored_server_is_noticed(self):
        cluster().run_script("checkpoint")
        for i in range(8):
            put("undone", str(i))
        self.run_once()
        cluster().run_script("rollback")
        put("old-0", "again")
        with self.start() as warm:
            warm.daemon.wait_synced()
            warm.daemon.wait_equal(self.expected, "configmaps")
            self.assertEqual(self.types(warm, "undone"), ["ADDED", "DELETED"])
            self.assertTrue(warm.daemon.count_log("the server is not what it was"))
            warm.daemon.stop()

    def test_killed_while_it_writes_the_file_of_before_stays(self):
        self.run_once()
        with open(self.file(), "rb") as file:
            before = file.read()
        with self.start(stateInterval="20ms") as warm:
            warm.daemon.wait_synced()
            for i in range(5):
                put("busy", str(i))
            warm.daemon.wait_logged("state written")
            warm.daemon.process.send_signal(signal.SIGKILL)
            warm.daemon.process.wait(PATIENCE)
        with open(self.file(), "rb") as file:
            self.assertNotEqual(file.read(), before)
        # As if it had been killed in the midst of the next one.
        with open(self.file() + ".new", "wb") as file:
            file.write(before[:20])
        with self.start() as warm:
            warm.daemon.wait_synced()
            warm.daemon.wait_equal(self.expected, "configmaps")
            self.assert_went_on(warm)
            put("busy", "last")
            warm.daemon.wait_equal(self.expected, "configmaps")
            warm.daemon.stop()
        self.assertEqual(os.listdir(self.state), [FILE])

    def test_what_is_not_ours_is_told_and_ignored(self):
        self.run_once()
        with open(self.file(), "rb") as file:
            good = file.read()

        def check(why, content=None, **keys):
            with open(self.file(), "wb") as file:
                file.write(good if content is None else content)
            with self.start(**keys) as warm:
                warm.daemon.wait_synced()
                warm.daemon.wait_logged("state not used, listing")
                self.assertTrue(warm.daemon.count_loud(why), warm.daemon.log_text()[-1000:])
                self.assertEqual(len(warm.lists()), 1)
                warm.daemon.stop()
        check("damaged: it ends too soon", good[:-9])
        middle = len(good) // 2
        check("damaged: ", good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1:])
        check("damaged: it is too short", b"")
        check(f"it is of format 9, this is for {good[8]}", good[:8] + b"\x09" + good[9:])
        check("the configuration was another one",
              resources=[{"resource": "configmaps", "namespaces": [NAMESPACE], "drop": ["data"]}])
        # It writes its own in place of what it could not use.
        with self.start(resources=[{"resource": "configmaps", "namespaces": [NAMESPACE], "drop": ["data"]}]) as warm:
            warm.daemon.wait_synced()
            self.assert_went_on(warm)
            warm.daemon.stop()

    def test_a_state_of_another_cluster_is_told_and_ignored(self):
        resources = [{"resource": "namespaces"}]
        for n_earlier in (0, 1):
            with (Sim("--no-workloads", "--seed", str(7 + n_earlier)) as sim,
                  self.start(sim.kubeconfig, resources=resources) as warm):
                warm.daemon.wait_synced()
                self.assertEqual(warm.daemon.count_loud("state not used, listing file=namespaces error=\"it is of "
                                                        "another cluster: uid "), n_earlier)
                self.assertEqual(set(warm.daemon.versions("namespaces")),
                                 {"/default", "/kube-system", "/kube-public", "/kube-node-lease"})
                warm.daemon.stop()

    def test_secrets_are_kept_only_if_that_is_said(self):
        cluster().kubectl("apply", "-f", "-", stdin=config_map("s", NAMESPACE, "eA==").replace("ConfigMap", "Secret"))
        self.addCleanup(cluster().kubectl, "delete", "secret", "s", "-n", NAMESPACE)
        for more, files in (({}, []), ({"state": True}, ["secrets@" + NAMESPACE])):
            with self.start(resources=[{"resource": "secrets", "namespaces": [NAMESPACE], **more}]) as warm:
                warm.daemon.wait_synced()
                warm.daemon.stop()
            self.assertEqual(os.listdir(self.state), files)
        with self.start(resources=[{"resource": "configmaps", "namespaces": [NAMESPACE], "state": False}]) as warm:
            warm.daemon.wait_synced()
            warm.daemon.stop()
        self.assertEqual(os.listdir(self.state), ["secrets@" + NAMESPACE])

    def test_selections_of_one_resource_have_a_file_each(self):
        resources = [{"resource": "configmaps", "namespaces": [NAMESPACE], "fieldSelector": "metadata.name=" + name}
                     for name in ("old-1", "old-2")]
        for _ in range(2):
            with self.start(resources=resources, events="none") as warm:
                wait_until(lambda: warm.readyz()[0] == 200, "ready")
                n_lists = len(warm.lists())
                warm.daemon.stop()
        self.assertEqual(n_lists, 0)
        self.assertEqual(len(os.listdir(self.state)), 2)

    def away_and_back(self, serve_stale):
        """A proxy of before, which is gone, and how it comes back."""
        proxy = Proxy()
        kubeconfig = proxy.kubeconfig(self.folder)
        self.run_once(kubeconfig=kubeconfig, serveStale=serve_stale)
        proxy.refuse()
        return kubeconfig, lambda: Proxy(listener=socket.create_server(("127.0.0.1", proxy.port)))

    def test_a_server_that_is_away_at_the_start(self):
        kubeconfig, come_back = self.away_and_back(True)
        with self.start(kubeconfig=kubeconfig, serveStale=True) as warm:
            wait_until(lambda: warm.readyz()[0] == 200, "ready")
            self.assertRegex(warm.readyz()[1], r"\[\+\]configmaps\S* ok, stale, of 20\d\d-\S+Z, and not confirmed")
            for target in (TARGET, TARGET + "/old-0"):
                status, headers, body = ask(warm, target)
                self.assertEqual(status, 200)
                self.assertRegex(headers["warning"], r'^299 - "kinformer: this is what was known at 20\d\d-')
            self.assertEqual(len(body_of(warm, TARGET)["items"]), len(self.expected()))
            self.assertEqual(ask(warm, TARGET + "/not-there")[0], 404)
            self.assertIn("configmaps", [entry["name"] for entry in body_of(warm, "/api/v1")["resources"]])
            (informer,) = body_of(warm, "/debug/state")["informers"]
            self.assertEqual(informer["state"], "stale")
            self.assertIn("loaded from a file of 20", informer["reason"])
            version = body_of(warm, TARGET)["metadata"]["resourceVersion"]
            with Watch(warm, f"{TARGET}?watch=1&resourceVersion={version}") as watch:
                self.assertIn("has not confirmed it yet", watch.answer.getheader("Warning"))
                put("old-1", "changed")
                delete("old-2")
                put("new")
                with come_back():
                    events = watch.until(lambda event: name_of(event) == "new")
                    self.assertEqual([(event["type"], name_of(event)) for event in events],
                                     [("MODIFIED", "old-1"), ("DELETED", "old-2"), ("ADDED", "new")])
                    warm.daemon.wait_synced()
                    warm.daemon.wait_equal(self.expected, "configmaps")
                    self.assertEqual(warm.lists(), [])
                    wait_until(lambda: "not confirmed" not in warm.readyz()[1], "confirmed")
                    self.assertNotIn("warning", ask(warm, TARGET)[1])
                    wait_until(lambda: "shortNames" in json.dumps(body_of(warm, "/api/v1")), "the server's discovery")
                    warm.daemon.stop()

    def test_nothing_is_served_of_an_absent_server_unless_that_is_said(self):
        kubeconfig, come_back = self.away_and_back(False)
        with self.start(kubeconfig=kubeconfig) as warm:
            warm.daemon.wait_logged("waiting for the server")
            self.assertEqual(ask(warm, TARGET)[0], 429)
            self.assertEqual(warm.readyz()[0], 500)
            with come_back():
                warm.daemon.wait_synced()
                self.assert_went_on(warm)
                self.assertEqual(ask(warm, TARGET)[0], 200)
                warm.daemon.stop()

    def test_a_reload_goes_on_with_what_is_kept(self):
        with self.start(events="none", stateInterval="50ms") as warm:
            wait_until(lambda: warm.readyz()[0] == 200, "ready")
            warm.daemon.wait_logged("state written")
            n_lists = len(warm.lists())
            self.config(events="none", stateInterval="50ms",
                        resources=[{"resource": "configmaps", "namespaces": [NAMESPACE], "backoffMax": "20s"}])
            warm.daemon.process.send_signal(signal.SIGHUP)
            warm.daemon.wait_logged("configuration read again")
            wait_until(lambda: warm.readyz()[0] == 200, "ready again")
            warm.daemon.wait_logged(" loaded resource=configmaps")
            put("old-1", "changed")
            wait_until(lambda: body_of(warm, TARGET + "/old-1")["data"] != body_of(warm, TARGET + "/old-0")["data"],
                       "the change")
            self.assertEqual(len(warm.lists()), n_lists)
            self.config(stateDir=self.state + "-other")
            warm.daemon.process.send_signal(signal.SIGHUP)
            warm.daemon.wait_logged("stateDir, stateInterval and serveStale change only by a restart")
            warm.daemon.stop()

    def reload(self, warm, *resources, **keys):
        n = warm.daemon.count_log("configuration read again")
        self.config(resources=[{"resource": "configmaps", "namespaces": [NAMESPACE], **item} for item in resources], **keys)
        warm.daemon.process.send_signal(signal.SIGHUP)
        warm.daemon.wait_logged("configuration read again", n + 1)

    def test_no_reload_serves_what_was_before_what_was_served(self):
        keys = {"events": "none", "serveStale": True}
        self.run_once(serveStale=True)
        with self.start(**keys) as warm:
            wait_until(lambda: "not confirmed" not in warm.readyz()[1], "confirmed")

            def expect(name, how, *resources):
                """What is cached by then has all that was served."""
                put(name)
                wait_until(lambda: ask(warm, f"{TARGET}/{name}")[0] == 200, "it is served")
                version = int(body_of(warm, TARGET)["metadata"]["resourceVersion"])
                n_before = warm.daemon.count_log(how)
                for resource in resources:
                    self.reload(warm, *resource, **keys)
                warm.daemon.wait_logged(how, n_before + 1)
                rv = re.findall(how + r".* rv=(\d+)", warm.daemon.log_text())[-1]
                self.assertGreaterEqual(int(rv), version)
                wait_until(lambda: ask(warm, f"{TARGET}/{name}")[0] == 200, "it is served again")
            expect("first", "loaded resource=configmaps", [{"backoffMax": "20s"}])
            # What is taken away, and comes back.
            expect("second", "loaded resource=configmaps", [{"fieldSelector": "metadata.name=none"}], [{"backoffMax": "21s"}])
            # What could not be written is not to be had.
            os.mkdir(self.file() + ".new")
            expect("third", "listed resource=configmaps", [{"backoffMax": "22s"}])
            os.rmdir(self.file() + ".new")
            warm.daemon.stop()

    def test_what_a_reload_takes_away_while_it_is_written_is_no_failure(self):
        library = os.path.join(self.folder, "slow_disk.so")
        subprocess.run(["cc", "-shared", "-fPIC", os.path.join(ROOT, "tests", "integration", "slow_disk.c"), "-D_GNU_SOURCE",
                        "-o", library], check=True)
        items = [json.loads(config_map(f"large-{i}", NAMESPACE, base64.b64encode(os.urandom(600000)).decode())) for i in range(20)]
        cluster().kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        env = {"LD_PRELOAD": library, "ASAN_OPTIONS": "verify_asan_link_order=0"}
        with Daemon(config=self.config(stateInterval="100ms"), env=env) as daemon:
            daemon.wait_synced()
            wait_until(lambda: daemon.check() or os.path.exists(self.file() + ".new"), "it is being written")
            self.config(resources=[{"resource": "namespaces", "state": False}], stateInterval="100ms")
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_logged("configuration read again")
            self.assertEqual(daemon.count_log("state given up with its resource"), 1)
            self.assertEqual(daemon.count_log("state not written"), 0)
            self.assertEqual(os.listdir(self.state), [])
            daemon.stop()

    def test_a_reload_that_takes_another_namespace_away_changes_no_file(self):
        others, ours = ({"resource": "configmaps", "namespaces": [name]} for name in ("default", NAMESPACE))
        with self.start(events="none", resources=[others, ours]) as warm:
            wait_until(lambda: warm.readyz()[0] == 200, "ready")
            self.config(events="none", resources=[ours])
            warm.daemon.process.send_signal(signal.SIGHUP)
            warm.daemon.wait_logged("configuration read again")
            warm.daemon.stop()
        with self.start(events="none", resources=[ours]) as warm:
            wait_until(lambda: warm.readyz()[0] == 200, "ready")
            self.assert_went_on(warm)
            warm.daemon.stop()

    def test_options_that_make_no_sense_are_refused(self):
        for keys, words in (({"stateDir": None, "serveStale": True}, "serveStale needs a stateDir"),
                            ({"stateInterval": "soon"}, "stateInterval"), ({"serveStale": "later"}, "serveStale"),
                            ({"resources": [{"resource": "pods", "state": "yes please"}]}, "state")):
            code, _, log = run_daemon("--kubeconfig", cluster().kubeconfig(), "--config", self.config(**keys))
            self.assertEqual(code, 2, log)
            self.assertIn(words, log)

    def test_a_folder_that_others_can_write_in_is_refused(self):
        os.mkdir(self.state)
        os.chmod(self.state, 0o777)
        code, _, log = run_daemon("--kubeconfig", cluster().kubeconfig(), "--config", self.config())
        self.assertNotEqual(code, 0)
        self.assertIn("others may write in the folder", log)


if __name__ == "__main__":
    unittest.main()
