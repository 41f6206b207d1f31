"""What kinformerd counts, and the log of requests: names that Prometheus likes, what rules and dashboard ask for, no secrets."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from harness import ROOT, Daemon, cluster, config_map, lack, needs_cluster, run_daemon, wait_until
from test_serve import Served, Watch, ask
from test_serve_auth import Guarded, make_pair, write_tls_config
from test_serve_pass import Sidecar, send

SPACE = "metrics"
MAPS = f"/api/v1/namespaces/{SPACE}/configmaps"
ALERTS = os.path.join(ROOT, "config", "alerts.yaml")
DASHBOARD = os.path.join(ROOT, "config", "dashboard.json")
# What of a query is a metric's name: no function, label, or what is given behind by (...).
NAME = re.compile(r"\b(?:kinformer|informer|process)_[a-z_]+\b")


def setUpModule():
    cluster().make_namespace(SPACE)
    cluster().kubectl("create", "-f", "-", stdin=config_map("one", SPACE))


def tearDownModule():
    cluster().kubectl("delete", "namespace", SPACE, "--wait=false")


def promtool(*args, stdin=None):
    path = shutil.which("promtool") or os.path.join(ROOT, "build", "tools", "promtool")
    if not os.path.exists(path):
        lack("promtool")
    done = subprocess.run([path, *args], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout.decode()


def metrics_of(where, **headers):
    return ask(where, "/metrics", headers=headers)[2].decode()


def samples(text, name):
    """Labels -> value of each sample of a name."""
    found = re.findall(rf"^{name}(?:{{(.*)}})? (\S+)$", text, re.M)
    return {frozenset(re.findall(r'(\w+)="([^"]*)"', labels)): float(value) for labels, value in found}


def sample(text, family, **labels):
    return samples(text, family).get(frozenset(labels.items()), 0.0)


def n_requests(text, verb, resource, code, source="cache"):
    return sample(text, "kinformer_requests_total", verb=verb, resource=resource, code=code, source=source)


def expressions():
    """What alerts.yaml and dashboard.json ask Prometheus for."""
    with open(ALERTS, encoding="utf-8") as file:
        rules = file.read()
    with open(DASHBOARD, encoding="utf-8") as file:
        board = json.load(file)
    asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    asked += [variable["query"] for variable in board["templating"]["list"] if variable["type"] == "query"]
    return asked + ["".join(both) for both in re.findall(r"expr: (?:\|\n((?: {10,}.*\n)+)|(.*)\n)", rules)]


class Counted(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        path = os.path.join(folder, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"stateDir": os.path.join(folder, "state"), "lease": f"{SPACE}/counted", "handlers": [{"exec": ["sh", "-c", "cat > /dev/null"]}],
                       "resources": [{"resource": "configmaps", "namespaces": [SPACE]}]}, file)
        cls.served = cls.enterClassContext(Served("--config", path, resource=()))

    def test_promtool_finds_nothing_to_say_of_a_real_answer(self):
        ask(self.served, MAPS)
        self.assertEqual(promtool("check", "metrics", stdin=metrics_of(self.served).encode()), (0, ""))

    def test_promtool_takes_the_rules(self):
        code, said = promtool("check", "rules", ALERTS)
        self.assertEqual(code, 0, said)

    def test_alerts_fire_for_what_they_are_for_and_for_nothing_else(self):
        """Series that go on for an hour, by the minute, and which alerts they lead to."""
        at = 'instance="a",job="k"'
        info = (f"kinformer_build_info{{{at}}}", "1x60")
        requests = f'kinformer_requests_total{{{at},verb="get",resource="pods",source="cache",code="%s"}}'
        handler = f'kinformer_handler_%s{{{at},handler="0",name="cat"}}'
        evictions = f'kinformer_on_demand_evictions_total{{{at},reason="%s"}}'
        standby = (f'kinformer_lease_leads{{{at},lease="counted-0"}}', "0x60")
        errors = f'kinformer_errors_total{{{at},name="pods"}}'
        cases = (
            ([(f'kinformer_last_contact_age_seconds{{{at},name="pods"}}', "70+0x60")], []),
            ([(f'kinformer_last_contact_age_seconds{{{at},name="pods"}}', "0+60x60")], ["KinformerStale"]),
            ([(f'kinformer_synced{{{at},name="pods"}}', "0x60")], ["KinformerNotSynced"]),
            ([(requests % "200", "0+600x60"), (requests % "503", "0+6x60"), (requests % "404", "0+600x60")], []),
            ([(requests % "200", "0+600x60"), (requests % "503", "0+60x60")], ["KinformerRequestsFail"]),
            ([(f'kinformer_access_decisions_total{{{at},review="made",verdict="failed"}}', "0+1x60")],
             ["KinformerReviewsFail"]),
            ([(f'kinformer_watcher_max_lag_seconds{{{at},name="pods"}}', "40x60")], ["KinformerWatchersLag"]),
            ([(f"process_open_fds{{{at}}}", "900x60"), (f"process_max_fds{{{at}}}", "1000x60")], []),
            ([info, (f"process_open_fds{{{at}}}", "900x60"), (f"process_max_fds{{{at}}}", "1000x60")],
             ["KinformerFewDescriptors"]),
            ([info, (f"process_start_time_seconds{{{at}}}", "0+300x60")], ["KinformerRestarts"]),
            ([(f'kinformer_session_misses_total{{{at},name="pods"}}', "0+1x60")], []),
            ([(f'kinformer_session_misses_total{{{at},name="pods"}}', "0+60x60")], ["KinformerSessionMisses"]),
            ([(evictions % "idle", "0+1x60"), (evictions % "stale", "0x60"), (evictions % "maxTypes", "0x30 1x30")], []),
            ([(evictions % "stale", "0x30 1x30")], ["KinformerOnDemandStale"]),
            ([(evictions % "maxTypes", "0+1x60")], ["KinformerOnDemandFlaps"]),
            ([(f"kinformer_on_demand_waiting_types{{{at}}}", "0x60"), (f"kinformer_on_demand_away_types{{{at}}}", "0x9 1 0x60")],
             []),
            ([(f"kinformer_on_demand_waiting_types{{{at}}}", "0x60"), (f"kinformer_on_demand_away_types{{{at}}}", "1x60")],
             ["KinformerOnDemandPassedOn"]),
            ([(handler % "running", "1x60"), (handler % "backlog", "900x60"), (handler % "errors_total", "0 1 2x60")], []),
            ([(handler % "running", "0x60")], ["KinformerHandlerDown"]),
            ([(handler % "running", "0x60"), (handler % "backlog", "0+100x60"), standby], []),
            ([(f"up{{{at}}}", "1x10 0x50")], []),
            ([(f"up{{{at}}}", "1x10 0x50"), (info[0], "1x10")], ["KinformerDown"]),
            ([(errors, "0+1x60")], ["KinformerWatchErrors"]),
            ([(errors, "0 5x60")], []),
            ([(f'kinformer_state{{{at},name="pods",state="stale"}}', "1x60"),
              (f'kinformer_state{{{at},name="pods",state="live"}}', "0x60")], ["KinformerNotLive"]),
            ([(handler % "running", "1x60"), (handler % "errors_total", "0+2x60")], ["KinformerHandlerFails"]),
            ([(handler % "backlog", "0+100x60")], ["KinformerHandlerBehind"]),
            ([(f'kinformer_state_failures_total{{{at},file="pods"}}', "3x60")], []),
            ([(f'kinformer_state_failures_total{{{at},file="pods"}}', "0x30 1x30")], ["KinformerStateNotWritten"]),
        )
        with open(ALERTS, encoding="utf-8") as file:
            names = re.findall(r"alert: (\S+)", file.read())
        for series, fired in cases:
            test = {"interval": "1m", "input_series": [{"series": name, "values": values} for name, values in series],
                    "promql_expr_test": [{"expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}})',
                                          "eval_time": "50m",
                                          "exp_samples": [{"labels": "{}", "value": 1}] if name in fired else []}
                                         for name in names]}
            with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
                json.dump({"rule_files": [ALERTS], "evaluation_interval": "1m", "tests": [test]}, file)
                file.flush()
                code, said = promtool("test", "rules", file.name)
            self.assertEqual(code, 0, (series, said))

    def test_promtool_takes_what_the_dashboard_asks(self):
        with open(DASHBOARD, encoding="utf-8") as file:
            board = json.load(file)
        asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
        self.assertGreater(len(asked), 20)
        rules = [{"record": f"a:{i}", "expr": expr.replace("$__rate_interval", "5m").replace("$instance", "a")}
                 for i, expr in enumerate(asked)]
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            json.dump({"groups": [{"name": "a", "rules": rules}]}, file)
            file.flush()
            code, said = promtool("check", "rules", file.name)
        self.assertEqual(code, 0, said)

    def test_what_rules_and_dashboard_name_is_there(self):
        types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", metrics_of(self.served), re.M))
        there = set(types)
        for name, kind in types.items():
            if kind == "histogram":
                there |= {name + "_bucket", name + "_sum", name + "_count"}
        asked = expressions()
        self.assertGreater(len(asked), 35)
        named = {name for expr in asked for name in NAME.findall(re.sub(r'"[^"]*"', '""', expr))}
        self.assertGreater(len(named), 25)
        self.assertEqual(named - there, set())
        shown = {name for name in there if re.match("kinformer_(session|on_demand)_|"
                                                    "kinformer_handler_(running|starts|sent|backlog|unacknowledged|errors)", name)}
        self.assertGreater(len(shown), 13)
        self.assertEqual(shown - named, set())  # nothing is counted of these that nobody looks at

    def test_a_process_tells_what_clients_of_prometheus_tell(self):
        text = metrics_of(self.served)
        with open(f"/proc/{self.served.daemon.process.pid}/limits", encoding="utf-8") as file:
            limit = float(re.search(r"Max open files +(\d+)", file.read()).group(1))
        self.assertEqual(sample(text, "process_max_fds"), limit)
        n_open = len(os.listdir(f"/proc/{self.served.daemon.process.pid}/fd"))
        self.assertAlmostEqual(sample(text, "process_open_fds"), n_open, delta=6)
        started = os.stat(f"/proc/{self.served.daemon.process.pid}").st_ctime
        self.assertAlmostEqual(sample(text, "process_start_time_seconds"), started, delta=10)
        for name in ("process_cpu_seconds_total", "process_virtual_memory_bytes", "process_resident_memory_bytes"):
            self.assertGreater(sample(text, name), 0, name)
        self.assertEqual(list(samples(text, "kinformer_build_info").values()), [1.0])

    def test_requests_are_counted_by_verb_resource_code_and_source(self):
        rows = [("GET", MAPS, ("list", "configmaps", "200", "cache")),
                ("GET", MAPS + "?limit=x", ("list", "configmaps", "400", "cache")),
                ("GET", MAPS + "/one", ("get", "configmaps", "200", "cache")),
                ("GET", MAPS + "/two", ("get", "configmaps", "404", "cache")),
                ("GET", "/apis/apps/v1/deployments", ("list", "deployments.apps", "403", "cache")),
                ("POST", MAPS, ("create", "configmaps", "405", "cache")),
                ("PUT", MAPS + "/one", ("update", "configmaps", "405", "cache")),
                ("PATCH", MAPS + "/one", ("patch", "configmaps", "405", "cache")),
                ("DELETE", MAPS + "/one", ("delete", "configmaps", "405", "cache")),
                ("DELETE", MAPS, ("deletecollection", "configmaps", "405", "cache")),
                ("TRACE", MAPS, ("other", "configmaps", "405", "cache")),
                ("GET", "/version", ("get", "", "200", "self")),
                ("GET", "/readyz/nothing", ("get", "", "404", "self"))]
        for method, target, row in rows:
            before = metrics_of(self.served)
            status, _, _ = ask(self.served, target, method)
            after = metrics_of(self.served)
            self.assertEqual(str(status), row[2], (method, target))
            own = row[1:] == ("", "200", "self")  # of the answer before
            self.assertEqual(n_requests(after, *row) - n_requests(before, *row), 1 + own, (method, target))
            verb, resource, _, source = row
            durations = [sample(text, "kinformer_request_duration_seconds_count", verb=verb, resource=resource,
                                source=source) for text in (before, after)]
            self.assertEqual(durations[1] - durations[0], 1 + (source == "self"), (method, target))

    def test_a_watch_is_counted_when_it_begins_and_its_life_is_no_latency(self):
        def seconds(text):
            return sample(text, "kinformer_request_duration_seconds_sum", verb="watch", resource="configmaps",
                          source="cache")

        before = metrics_of(self.served)
        with Watch(self.served, MAPS + "?watch=1") as watch:
            self.assertEqual(watch.next()["type"], "ADDED")
            after = metrics_of(self.served)
            row = ("watch", "configmaps", "200")
            self.assertEqual(n_requests(after, *row) - n_requests(before, *row), 1)
            self.assertGreaterEqual(sample(after, "kinformer_requests_in_flight"), 2)
            cluster().kubectl("annotate", "configmap", "one", "-n", SPACE, "x=y", "--overwrite")
            self.assertEqual(watch.next()["type"], "MODIFIED")
        wait_until(lambda: sample(metrics_of(self.served), "kinformer_requests_in_flight") == 1, "its end")
        self.assertLess(seconds(metrics_of(self.served)) - seconds(before), 0.1)
        self.assertEqual(n_requests(metrics_of(self.served), *row), n_requests(after, *row))

    def test_made_up_resources_make_no_series(self):
        for i in range(40):
            ask(self.served, f"/api/v1/things{i}")
            ask(self.served, f"/apis/made.up{i}/v1/configmaps")
        text = metrics_of(self.served)
        self.assertNotIn("things", text)
        self.assertNotIn("made.up", text)
        self.assertGreaterEqual(n_requests(text, "list", "other", "404"), 80)

    def test_a_watch_that_is_not_read_shows_its_lag(self):
        def lag():
            return sample(metrics_of(self.served), "kinformer_watcher_max_lag_seconds", name=f"configmaps:{SPACE}")

        items = [json.loads(config_map(f"big-{i}", SPACE, data="x" * 200000)) for i in range(20)]
        version = json.loads(ask(self.served, MAPS)[2])["metadata"]["resourceVersion"]
        self.assertEqual(lag(), 0)
        host, _, port = self.served.address.rpartition(":")
        with socket.socket() as stalled:
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stalled.connect((host, int(port)))
            stalled.sendall(f"GET {MAPS}?watch=1&resourceVersion={version} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            wait_until(lambda: sample(metrics_of(self.served), "kinformer_watchers", name=f"configmaps:{SPACE}") >= 1,
                       "the watch")
            cluster().kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
            first = wait_until(lag, "a lag")
            wait_until(lambda: lag() > first, "more of it")
        wait_until(lambda: lag() == 0, "no lag")


class PassedOn(unittest.TestCase):
    def test_what_is_passed_on_is_the_upstreams(self):
        with Sidecar({"resource": "namespaces"}) as sidecar:
            before = ask(sidecar, "/metrics")[2].decode()
            self.assertEqual(send(sidecar, "GET", "/api/v1/services")[0], 200)
            self.assertEqual(send(sidecar, "GET", "/openapi/v3")[0], 200)

            def is_idle():
                text = ask(sidecar, "/metrics")[2].decode()
                return sample(text, "kinformer_upstream_requests_in_flight") == 0 and text
            # A request is over when its answer has been sent, and a moment after that here.
            after = wait_until(is_idle, "nothing under way upstream")
        for row in (("list", "services", "200", "upstream"), ("get", "", "200", "upstream")):
            self.assertEqual(n_requests(after, *row) - n_requests(before, *row), 1, row)
        self.assertEqual(sample(after, "kinformer_upstream_response_seconds_count")
                         - sample(before, "kinformer_upstream_response_seconds_count"), 2)
        self.assertGreater(sample(after, "kinformer_upstream_connections_total"), 0)


class AccessLog(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.path = os.path.join(self.folder, "access.log")
        self.config = os.path.join(self.folder, "config.yaml")

    def write(self, path):
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f"accessLog: \"{path}\"\nlisten: [\"127.0.0.1:0\"]\nresources:\n- resource: configmaps\n")

    def lines(self, path=None):
        with open(path or self.path, encoding="utf-8") as file:
            return [json.loads(line) for line in file.read().splitlines()]

    def line_of(self, target):
        return wait_until(lambda: next((line for line in self.lines() if line["target"] == target), None), target)

    def serve(self):
        return Served("--config", self.config, resource=())

    def test_a_line_says_who_what_code_source_and_how_long(self):
        self.write(self.path)
        with self.serve() as served:
            ask(served, MAPS + "?labelSelector=a%3Db&limit=5")
            line = self.line_of(MAPS + "?labelSelector=a%3Db&limit=5")
            self.assertEqual(list(line), ["time", "client", "verb", "target", "code", "source", "ms"])
            self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
            self.assertRegex(line["client"], r"^127\.0\.0\.1:\d+$")
            self.assertEqual((line["verb"], line["code"], line["source"]), ("list", 200, "cache"))
            self.assertGreater(line["ms"], 0)
            with Watch(served, MAPS + "?watch=true"):
                self.assertEqual(self.line_of(MAPS + "?watch=true")["verb"], "watch")
            served.daemon.stop()

    def test_nothing_that_may_be_a_secret_is_in_it(self):
        self.write(self.path)
        with self.serve() as served:
            for target in (MAPS + "?continue=hush1&limit=1", MAPS + "?token=hush2", MAPS + "?hush3", MAPS + "?%63ontinue=hush4",
                           MAPS + "?watch=1&access_token=hush5&timeoutSeconds=1",
                           "/api/v1/namespaces/a/services/b/proxy/hush6/x", "/?x=hush8",
                           "/%zz?continue=hush9"):
                ask(served, target, headers={"Authorization": "Bearer hush-bearer", "Cookie": "hush-cookie"})
            host, _, port = served.address.rpartition(":")
            with socket.create_connection((host, int(port))) as raw:
                raw.sendall(b"GET http://user:hush-password@x/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                raw.recv(1000)
            ask(served, "/version")
            self.line_of("/version")
            served.daemon.stop()
        with open(self.path, encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(re.findall(r"hush\S*", text), [])
        self.assertEqual([line["target"] for line in self.lines() if "continue" in line["target"]],
                         [MAPS + "?continue=...&limit=1", MAPS + "?continue=..."])

    def test_hostile_targets_do_not_break_a_line(self):
        self.write(self.path)
        with self.serve() as served:
            host, _, port = served.address.rpartition(":")
            for target in (b"/api/v1/configmaps?labelSelector=\"\\\xff\xc3", b"/a\"b\\\x7f", b"/" + b"a" * 20000):
                with socket.create_connection((host, int(port))) as raw:
                    raw.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    while raw.recv(10000):
                        pass
            ask(served, "/version")
            self.line_of("/version")
            self.assertLess(max(len(line["target"]) for line in self.lines()), 1100)
            served.daemon.stop()

    def test_a_renamed_file_is_left_on_sighup_and_nothing_is_lost(self):
        self.write(self.path)
        with self.serve() as served:
            ask(served, "/version?watch=before")
            self.line_of("/version?watch=before")
            os.rename(self.path, self.path + ".1")
            served.daemon.process.send_signal(signal.SIGHUP)
            wait_until(lambda: os.path.exists(self.path), "a new file")
            ask(served, "/version?watch=after")
            self.line_of("/version?watch=after")
            self.assertEqual([line["target"] for line in self.lines(self.path + ".1") if "watch" in line["target"]],
                             ["/version?watch=before"])
            served.daemon.stop()

    def test_standard_error_takes_it_too(self):
        self.write("-")
        with self.serve() as served:
            ask(served, MAPS + "/one")
            served.daemon.wait_logged(f'"target":"{MAPS}/one","code":200,"source":"cache"')
            served.daemon.stop()

    def test_a_reader_that_is_stuck_stops_nobody_and_what_is_dropped_is_counted(self):
        os.mkfifo(self.path)
        self.write(self.path)
        reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            with self.serve() as served:
                connection = served.open()

                def dropped():
                    for _ in range(200):
                        connection.request("GET", "/api/v1/" + "a" * 1000)
                        connection.getresponse().read()
                    return sample(metrics_of(served), "kinformer_access_log_dropped_total")

                wait_until(dropped, "lines that are dropped")
                connection.close()
                served.daemon.stop()
        finally:
            os.close(reader)

    def test_a_file_that_cannot_be_written_stops_the_start(self):
        self.write(self.folder + "/nowhere/access.log")
        code, _, said = run_daemon("--kubeconfig", cluster().kubeconfig(), "--config", self.config)
        self.assertEqual(code, 1)
        self.assertIn(f"cannot open the access log {self.folder}/nowhere/access.log: No such file", said)


def make_reader():
    """An account that may read config maps in SPACE, and /metrics; its token."""
    rbac, name = "rbac.authorization.k8s.io", {"name": "metrics-reader"}
    subjects = [{"kind": "ServiceAccount", "name": "reader", "namespace": SPACE}]
    there = {**name, "namespace": SPACE}
    maps = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    for kind, metadata, body in (
            ("Role", there, {"rules": [maps]}),
            ("RoleBinding", there, {"roleRef": {"apiGroup": rbac, "kind": "Role", **name}, "subjects": subjects}),
            ("ClusterRole", name, {"rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]}),
            ("ClusterRoleBinding", name, {"roleRef": {"apiGroup": rbac, "kind": "ClusterRole", **name}, "subjects": subjects})):
        item = {"apiVersion": rbac + "/v1", "kind": kind, "metadata": metadata, **body}
        cluster().kubectl("create", "-f", "-", stdin=json.dumps(item))
    cluster().kubectl("create", "serviceaccount", "reader", "-n", SPACE)
    return cluster().kubectl("create", "token", "reader", "-n", SPACE).strip()


@needs_cluster("rights")
class Delegated(unittest.TestCase):
    def tearDown(self):
        cluster().kubectl("delete", "clusterrole,clusterrolebinding", "metrics-reader")

    def test_the_user_is_named_and_reviews_that_are_kept_are_counted(self):
        with GuardedLog() as served:
            token = make_reader()
            bearer = {"Authorization": "Bearer " + token}
            wait_until(lambda: ask(served, MAPS, headers=bearer)[0] == 200, "rights")
            for _ in range(3):
                self.assertEqual(ask(served, MAPS + "?limit=7", headers=bearer)[0], 200)
            self.assertEqual(ask(served, MAPS + "?limit=8", headers={"Authorization": "Bearer made.up"})[0], 401)
            self.assertEqual(ask(served, "/api/v1/namespaces/default/configmaps", headers=bearer)[0], 403)
            path = served.log
            lines = wait_until(lambda: (found := read_lines(path)) and found[-1]["code"] == 403 and found, "the lines")
            user = f"system:serviceaccount:{SPACE}:reader"
            self.assertEqual([line.get("user") for line in lines if "limit=7" in line["target"]], [user] * 3)
            self.assertEqual([line.get("user") for line in lines if "limit=8" in line["target"]], [None])
            self.assertEqual(lines[-1]["user"], user)
            text = wait_until(lambda: (answer := ask(served, "/metrics", headers=bearer))[0] == 200
                              and answer[2].decode(), "metrics")

        def decisions(review, verdict):
            return sample(text, "kinformer_access_decisions_total", review=review, verdict=verdict)

        self.assertGreaterEqual(decisions("made", "allowed"), 1)
        self.assertGreaterEqual(decisions("kept", "allowed"), 1)
        self.assertEqual(decisions("made", "unauthenticated"), 1)
        self.assertGreaterEqual(decisions("made", "denied"), 1)
        self.assertEqual(decisions("kept", "failed"), 0)


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file.read().splitlines()]


class GuardedLog(Guarded):
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.kubeconfig = os.path.join(self.folder.name, "kubeconfig")
        self.log = os.path.join(self.folder.name, "access.log")
        make_pair(self.folder.name)
        config = write_tls_config(self.folder.name, "auth: delegated", 'listen: ["127.0.0.1:0"]',
                                  f"accessLog: {self.log}")
        self.daemon = Daemon("--write-kubeconfig", self.kubeconfig, config=config, events=False)


if __name__ == "__main__":
    unittest.main()
