"""What kinformerd says of itself: /debug/state, the status page at /, and what neither of them may say."""

import base64
import contextlib
import hashlib
import http.client
import json
import os
import re
import signal
import socket
import tempfile
import unittest

from harness import PATIENCE, Daemon, cluster, config_map, run_daemon, wait_until, write_config
from test_serve import Served, Watch, ask, body_of, name_of

HTML = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}

# The names are an interface: docs/operations.md has them.
PROCESS = {"kinformerVersion", "time", "started", "residentBytes", "requests", "refused", "passed", "crowded", "underWay", "maxStalenessMs",
           "informers", "handlers", "recentEvents"}
SCOPE = {"name", "resource", "group", "version", "namespace", "labelSelector", "fieldSelector", "shardSelector",
         "served", "pruned", "assumeScope", "onDemand"}
INFORMER = SCOPE | {"state", "reason", "synced", "since", "lastContact", "lastList", "stalenessMs", "resourceVersion",
                    "objects", "listSince", "listObjects", "listExpected", "listBytes",
                    "lists", "extraLists", "watches", "events", "bookmarks", "errors", "silentWatches",
                    "quarantined", "lastErrors", "outsideShard", "failedIndexValues", "receivedBytes", "handlers", "queued",
                    "queuedBytes", "maxQueuedBytes"}
CACHE = {"servedResourceVersion", "oldestResourceVersion", "storeBytes", "historyEvents", "historyBytes",
         "maxHistoryBytes", "maxHistoryAgeMs", "historyRestarts", "lastHistoryRestart", "pages", "maxPages",
         "pageBytes", "maxPageBytes", "maxPageAgeMs", "watcherCount", "watchersExpired", "watchers",
         "consistency", "awaitedResourceVersion", "awaitedSigns", "unknownWrite", "late", "sessionWaits", "sessionMisses"}
WATCHER = {"id", "client", "userAgent", "namespace", "objectName", "labelSelector", "fieldSelector", "ageMs",
           "sentEvents", "lagEvents", "lagMs", "expired"}
EVENT = {"time", "informer", "type", "key", "resourceVersion"}
ERROR = {"first", "last", "times", "message"}
HOUR = {"events", "requestsCache", "requestsUpstream", "requestsSelf", "residentBytes", "lagMs", "stalenessMs"}
MOMENT = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"


class At:
    """Where requests go: to the server of a kubeconfig."""

    def __init__(self, kubeconfig):
        with open(kubeconfig, encoding="utf-8") as file:
            address = re.search(r"server: http://(\S+)", file.read()).group(1)
        self.open = lambda: http.client.HTTPConnection(address, timeout=PATIENCE)


class StateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster()
        cls.cluster.make_namespace("state")
        cls.cluster.kubectl("-n", "state", "create", "secret", "generic", "pass", "--from-literal=word=xyzzy-4711")
        cls.served = Served("--namespace", "state", resource=("configmaps", "secrets", "deployments.apps"))
        cls.served.__enter__()

    @classmethod
    def tearDownClass(cls):
        try:
            cls.served.daemon.stop()
        finally:
            cls.served.__exit__(None, None, None)

    def state(self):
        return body_of(self.served, "/debug/state")

    def informer(self, name):
        return next(informer for informer in self.state()["informers"] if informer["name"].startswith(name))

    def watcher(self, user_agent):
        """The watcher that calls itself so, or None."""
        return next((watcher for watcher in self.informer("configmaps")["watchers"]
                     if watcher["userAgent"] == user_agent), None)

    def apply(self, name, **kinds):
        self.cluster.kubectl("apply", "-f", "-", stdin=config_map(name, "state", **kinds))

    def test_every_informer_says_all_that_is_documented(self):
        self.apply("c")
        wait_until(lambda: self.informer("configmaps")["objects"] == 1 + self.n_others("c"), "the config map")
        state = self.state()
        self.assertEqual(set(state), PROCESS)
        self.assertEqual({informer["name"]: set(informer) for informer in state["informers"]},
                         {"configmaps:state": INFORMER | CACHE, "secrets:state": INFORMER,
                          "deployments.apps:state": INFORMER | CACHE})
        for moment in (state["time"], state["started"]):
            self.assertRegex(moment, MOMENT)
        one = self.informer("configmaps")
        self.assertEqual([one[key] for key in ("resource", "group", "version", "namespace", "state", "reason", "served")],
                         ["configmaps", "", "v1", "state", "live", "", True])
        for key in ("since", "lastContact", "lastList"):
            self.assertRegex(one[key], MOMENT)
            self.assertLessEqual(one[key], state["time"])
        self.assertGreater(one["storeBytes"], 0)
        self.assertEqual(one["queuedBytes"], 0)
        self.assertGreaterEqual(one["lists"], 1)
        self.assertEqual(one["maxQueuedBytes"], 64 << 20)
        self.assertGreater(state["residentBytes"], 1 << 20)

    def n_others(self, name):
        """How many config maps other tests have left."""
        return sum(key != "state/" + name for key in self.cluster.versions("/api/v1/namespaces/state/configmaps"))

    def test_secrets_are_told_about_and_never_told(self):
        one = self.informer("secrets")
        self.assertEqual((one["served"], one["state"], one["objects"]), (False, "live", 1))
        self.cluster.kubectl("-n", "state", "annotate", "secret", "pass", "x=y", "--overwrite")
        wait_until(lambda: self.informer("secrets")["events"] >= 1, "the event")
        _, _, text = ask(self.served, "/debug/state")
        for hidden in (b"xyzzy-4711", base64.b64encode(b"xyzzy-4711"), b"state/pass"):
            self.assertNotIn(hidden, text)

    def test_metrics_count_what_the_state_does(self):
        metrics = ask(self.served, "/metrics")[2].decode()
        self.assertRegex(metrics, r'\nkinformer_store_bytes\{name="configmaps:state"\} \d+\n')
        self.assertRegex(metrics, r"\nprocess_resident_memory_bytes [1-9]\d*\n")
        self.assertIn('\nkinformer_synced{name="secrets:state"', metrics)
        self.assertNotIn('kinformer_watchers{name="secrets', metrics)

    def test_the_last_events_are_the_newest_first_by_key_and_version_alone(self):
        self.apply("e", data="first-value")
        self.apply("e", data="second-value")
        version = self.cluster.versions("/api/v1/namespaces/state/configmaps")["state/e"]
        self.cluster.kubectl("-n", "state", "delete", "configmap", "e")

        def events():
            return [event for event in self.state()["recentEvents"] if event["key"] == "state/e"]

        wait_until(lambda: len(events()) >= 3, "three events")
        found = events()
        self.assertEqual([event["type"] for event in found], ["DELETED", "MODIFIED", "ADDED"])
        self.assertEqual(found[1]["resourceVersion"], version)
        for event in found:
            self.assertEqual(set(event), EVENT)
            self.assertRegex(event["time"], MOMENT)
            self.assertEqual(event["informer"], "configmaps:state")
        self.assertNotIn(b"-value", ask(self.served, "/debug/state")[2])

    def test_of_many_events_the_last_64_are_told(self):
        items = [json.loads(config_map(f"many-{i}", "state")) for i in range(80)]
        self.cluster.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        wait_until(lambda: len(self.state()["recentEvents"]) == 64, "64 events")

    def test_a_watcher_that_does_not_read_is_seen_to_lag_and_another_is_not(self):
        big = [json.loads(config_map(f"big-{i}", "state", data="x" * 200000)) for i in range(30)]
        stalled = socket.socket()
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        host, _, port = self.served.address.rpartition(":")
        with stalled, Watch(self.served, "/api/v1/namespaces/state/configmaps?watch=1&resourceVersion="
                            + self.informer("configmaps")["resourceVersion"], {"User-Agent": "reads"}) as reader:
            stalled.connect((host, int(port)))
            stalled.sendall(b"GET /api/v1/namespaces/state/configmaps?watch=1&labelSelector=a%21%3Db HTTP/1.1\r\n"
                            b"Host: localhost\r\nUser-Agent: stalls\r\n\r\n")
            wait_until(lambda: self.watcher("stalls") and self.watcher("reads"), "both watch")
            self.cluster.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": big}))
            names = {name_of(event) for event in reader.until(lambda event: name_of(event) == "big-29")}
            self.assertTrue({f"big-{i}" for i in range(30)} <= names)
            behind = wait_until(lambda: (found := self.watcher("stalls"))["lagMs"] > 0 and found, "a lag")
            self.assertEqual(set(behind), WATCHER)
            self.assertGreater(behind["lagEvents"], 0)
            self.assertEqual((behind["namespace"], behind["labelSelector"]), ("state", "a!=b"))
            self.assertRegex(behind["client"], r"^127\.0\.0\.1:\d+$")
            wait_until(lambda: self.watcher("reads")["lagEvents"] == 0, "no lag")
            self.assertGreaterEqual(self.watcher("reads")["sentEvents"], 30)

    def test_many_watchers_are_told_in_pieces_and_each_once(self):
        host, _, port = self.served.address.rpartition(":")
        with contextlib.ExitStack() as stack:
            for i in range(300):
                raw = stack.enter_context(socket.create_connection((host, int(port))))
                raw.sendall(b"GET /api/v1/namespaces/state/configmaps?watch=1 HTTP/1.1\r\nHost: localhost\r\n"
                            b"User-Agent: one-of-many-%d\r\n\r\n" % i)
            wait_until(lambda: self.informer("configmaps")["watcherCount"] >= 300, "all watch")
            _, headers, text = ask(self.served, "/debug/state")
            few = ask(self.served, "/debug/state?details=")
        self.assertEqual(headers["transfer-encoding"], "chunked")
        agents = [watcher["userAgent"] for informer in json.loads(text)["informers"] for watcher in informer.get("watchers", [])]
        self.assertEqual(sorted(agent for agent in agents if agent.startswith("one-of-many-")),
                         sorted(f"one-of-many-{i}" for i in range(300)))
        self.assertEqual(int(few[1]["content-length"]), len(few[2]))
        self.assertLess(len(few[2]), len(text) / 3)

    def test_a_watcher_at_the_unix_socket_is_its_process(self):
        with socket.socket(socket.AF_UNIX) as raw:
            raw.connect(self.served.socket)
            raw.sendall(b"GET /api/v1/namespaces/state/configmaps?watch=1 HTTP/1.1\r\nHost: x\r\n"
                        b"User-Agent: of-the-socket\r\n\r\n")
            found = wait_until(lambda: self.watcher("of-the-socket"), "the watcher")
        self.assertEqual(found["client"], f"unix uid={os.getuid()} pid={os.getpid()}")

    def test_hostile_texts_do_not_break_the_document(self):
        host, _, port = self.served.address.rpartition(":")
        agent = b"\"\\</script><img src=x onerror=alert(1)>\xff\xc3\xa9{}" + b"A" * 5000
        for n, selector in enumerate((b"metadata.name=%3Cscript%3E%22%5C%5C", b"metadata.name=%01%02%ff")):
            with socket.create_connection((host, int(port))) as raw:
                raw.sendall(b"GET /api/v1/namespaces/state/configmaps?watch=1&fieldSelector=" + selector +
                            b" HTTP/1.1\r\nHost: localhost\r\nUser-Agent: " + str(n).encode() + agent + b"\r\n\r\n")
                wait_until(lambda: [watcher for watcher in self.informer("configmaps")["watchers"]
                                    if watcher["userAgent"].startswith(f"{n}\"\\</script><img")], "the watcher")
                _, _, text = ask(self.served, "/debug/state")
                self.assertNotIn(b"<", text)
                found = next(watcher for informer in json.loads(text)["informers"]
                             for watcher in informer.get("watchers", []) if watcher["userAgent"].startswith(str(n)))
                self.assertLess(len(found["userAgent"]), 200)
                self.assertIn("\u00e9{}", found["userAgent"])

    def test_a_refused_type_says_why(self):
        with tempfile.TemporaryDirectory() as folder:
            kubeconfig = os.path.join(folder, "kubeconfig")
            config = write_config(folder, "configmaps")
            with Daemon("--listen", "127.0.0.1:0", "--write-kubeconfig", kubeconfig, config=config,
                        kubeconfig=self.cluster.kubeconfig("token")) as daemon:
                daemon.wait_synced()
                write_config(folder, "configmaps", "secrets")
                daemon.process.send_signal(signal.SIGHUP)
                daemon.wait_logged("answered 403")
                where = At(kubeconfig)
                one = wait_until(lambda: next((informer for informer in body_of(where, "/debug/state")["informers"]
                                               if informer["state"] == "forbidden"), None), "forbidden")
                daemon.stop()
        self.assertEqual((one["name"], one["synced"], one["stalenessMs"], one["lastContact"], one["lastList"]),
                         ("secrets", False, None, None, None))
        self.assertIn("secrets is forbidden", one["reason"])
        self.assertGreaterEqual(one["errors"], 1)
        self.assertEqual(set(one["lastErrors"][0]), ERROR)
        self.assertIn("secrets is forbidden", one["lastErrors"][0]["message"])
        self.assertRegex(one["lastErrors"][0]["last"], MOMENT)

    def test_of_the_last_hour_there_are_samples_whether_somebody_looked_or_not(self):
        def hour():
            return body_of(self.served, "/debug/state?details=&lastHour")["lastHour"]

        wait_until(lambda: len(hour()["ageMs"]) >= 2, "two samples")
        before, state = hour(), self.state()
        self.assertNotIn("lastHour", state)
        self.assertEqual(set(before), HOUR | {"everyMs", "ageMs"})
        self.assertEqual({len(before[key]) for key in HOUR}, {len(before["ageMs"])})
        self.assertEqual(sorted(before["ageMs"], reverse=True), before["ageMs"])
        self.assertAlmostEqual(before["ageMs"][-2] - before["ageMs"][-1], before["everyMs"], delta=2000)
        self.apply("sampled")
        later = wait_until(lambda: (found := hour())["events"][-1] > before["events"][-1] and found, "the event")
        self.assertGreater(later["requestsSelf"][-1], before["requestsSelf"][-1])
        self.assertGreater(later["residentBytes"][-1], 1 << 20)
        self.assertLess(later["stalenessMs"][-1], 180000)

    def test_watchers_and_errors_are_told_of_the_types_that_are_named(self):
        for query, named in (("", {"configmaps:state", "deployments.apps:state"}), ("?details=", set()),
                             ("?details=configmaps%3Astate", {"configmaps:state"}), ("?details=nothing", set())):
            informers = body_of(self.served, "/debug/state" + query)["informers"]
            self.assertEqual({informer["name"] for informer in informers if "watchers" in informer}, named)
            self.assertEqual(all("watcherCount" in informer for informer in informers if informer["served"]), True)

    # --- the page ---

    def test_a_browser_gets_a_page_that_may_do_nothing_else(self):
        status, headers, body = ask(self.served, "/", headers=HTML)
        self.assertEqual((status, headers["content-type"]), (200, "text/html; charset=utf-8"))
        self.assertEqual((headers["x-content-type-options"], headers["x-frame-options"], headers["vary"]),
                         ("nosniff", "DENY", "Accept"))
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        for name in ("script", "style"):
            texts = re.findall(rf"<{name}>(.*?)</{name}>".encode(), body, re.DOTALL)
            self.assertEqual(len(texts), 1)
            self.assertEqual(policy.pop(name + "-src"),
                             f"'sha256-{base64.b64encode(hashlib.sha256(texts[0]).digest()).decode()}'")
        self.assertEqual(policy, {"default-src": "'none'", "connect-src": "'self'", "img-src": "data:",
                                  "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'"})
        self.assertNotRegex(body, rb"(?:https?:)?//[a-z]|innerHTML|insertAdjacent|document\.write|eval\(| on[a-z]+=")

    def test_others_get_the_list_of_paths(self):
        for accept in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
            status, headers, body = ask(self.served, "/", headers=accept)
            self.assertEqual((status, headers["content-type"]), (200, "application/json"))
            self.assertIn("/debug/state", json.loads(body)["paths"])

    def test_nothing_lies_beside_the_page(self):
        for target in ("/page.html", "/index.html", "/favicon.ico", "/debug", "/debug/", "/debug/state/",
                       "/debug/state/x", "/debug/pprof", "/metrics/x"):
            self.assertEqual(ask(self.served, target, headers=HTML)[0], 404, target)
        for target in ("/", "/debug/state", "/metrics"):
            self.assertEqual(ask(self.served, target, "POST")[0], 405, target)


class VariableTest(unittest.TestCase):
    def test_a_selector_takes_the_name_of_its_node_from_the_environment(self):
        with tempfile.TemporaryDirectory() as folder:
            config = write_config(folder, "pods", fieldSelector="spec.nodeName=$(KINF_TEST_NODE)")
            arguments = ("--config", config, "--check-config")
            self.assertEqual(run_daemon(*arguments, env={"KINF_TEST_NODE": "worker-1"})[0], 0)
            code, _, problem = run_daemon(*arguments, env={"KINF_TEST_NODE": ""})
            self.assertEqual(code, 2)
            self.assertRegex(problem, r"config\.yaml:4:\d+: .*fieldSelector: the environment has no KINF_TEST_NODE")
            kubeconfig = os.path.join(folder, "kubeconfig")
            with Daemon("--listen", "127.0.0.1:0", "--write-kubeconfig", kubeconfig, config=config,
                        env={"KINF_TEST_NODE": "worker-1"}) as daemon:
                daemon.wait_synced()
                self.assertEqual(body_of(At(kubeconfig), "/debug/state")["informers"][0]["fieldSelector"],
                                 "spec.nodeName=worker-1")
                daemon.stop()


if __name__ == "__main__":
    unittest.main()
