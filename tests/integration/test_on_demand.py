"""A cache that fills itself: what it takes up when it is asked for, what it gives up again, and what it says of both."""

import http.client
import http.server
import json
import os
import re
import signal
import ssl
import tempfile
import threading
import unittest

from harness import Daemon, cluster, config_map, make_gadgets, make_key_pair, needs_cluster, needs_sim, run_daemon, wait_until
from sim import Sim
from test_serve import Direct, Served, Watch, ask
from test_serve_pass import bearer, send

SPACE = "demand"
MAPS = f"/api/v1/namespaces/{SPACE}/configmaps"
LARGE = "demand-large"


def setUpModule():
    for name in (SPACE, LARGE):
        cluster().make_namespace(name)
    cluster().kubectl("create", "-f", "-", stdin=config_map("one", SPACE))


class OnDemand(Served):
    """A daemon with a configuration that names types only if it is told to."""

    def __init__(self, *resources, kubeconfig=None, **section):
        self.folder = tempfile.TemporaryDirectory()
        self.kubeconfig = os.path.join(self.folder.name, "kubeconfig")
        self.path = os.path.join(self.folder.name, "config.yaml")
        self.write(*resources, **section)
        self.daemon = Daemon("--write-kubeconfig", self.kubeconfig, config=self.path, kubeconfig=kubeconfig)

    def write(self, *resources, **section):
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump({"listen": ["127.0.0.1:0"], "events": "none", "passThrough": True, "onDemand": section,
                       "resources": list(resources)}, file)

    def reload(self):
        self.daemon.process.send_signal(signal.SIGHUP)
        self.daemon.wait_logged("configuration read again")

    def state(self):
        return json.loads(ask(self, "/debug/state")[2])

    def type(self, resource, group=""):
        """What is said of a type; {} if nobody asked for it."""
        return next((entry for entry in self.state()["onDemand"]["types"]
                     if (entry["resource"], entry["group"]) == (resource, group)), {})

    def is_cached(self, resource, group=""):
        return self.type(resource, group).get("state") == "cached"

    def wait_cached(self, resource, group=""):
        wait_until(lambda: self.daemon.check() or self.is_cached(resource, group), f"{resource} in the cache")

    def wait_gone(self, resource, group=""):
        wait_until(lambda: self.type(resource, group).get("state") == "passed on", f"{resource} is given up")
        return self.type(resource, group)["reason"]

    def source(self, target, status=200):
        """Who answers: "upstream" or "cache"."""
        got, headers, body = send(self, "GET", target)
        if got != status:
            raise AssertionError(f"{target}: {got} {body[:500]}")
        return headers.get("kinformer-source", "cache")

    def fill(self, target, resource, group=""):
        self.source(target)
        self.wait_cached(resource, group)

    def number(self, name):
        text = ask(self, "/metrics")[2].decode()
        return next(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(name + " "))


class OnDemandTest(unittest.TestCase):
    def test_the_first_list_starts_a_type_that_answers_once_it_is_there(self):
        with OnDemand() as served:
            self.assertEqual(served.state()["informers"], [])
            self.assertEqual(served.source(MAPS), "upstream")
            served.wait_cached("configmaps")
            self.assertEqual(served.source(MAPS), "cache")
            self.assertEqual(served.source(MAPS + "/one"), "cache")
            self.assertEqual(served.source("/api/v1/configmaps"), "cache")
            self.assertEqual(ask(served, MAPS)[0], 200)  # as of a type that is named, without a token
            self.assertEqual([(one["resource"], one["onDemand"]) for one in served.state()["informers"]],
                             [("configmaps", True)])
            self.assertEqual(ask(served, "/readyz/configmaps")[0], 200)
            self.assertEqual(served.number("kinformer_on_demand_types"), 1)
            self.assertEqual(served.number("kinformer_on_demand_starts_total"), 1)
            self.assertGreater(served.number("kinformer_on_demand_bytes"), 0)
            theirs = send(Direct(), "GET", MAPS, user=None)
            self.assertEqual([item["metadata"]["name"] for item in json.loads(ask(served, MAPS)[2])["items"]],
                             [item["metadata"]["name"] for item in json.loads(theirs[2])["items"]])

    def test_the_first_watch_does_so_too(self):
        with OnDemand() as served:
            with Watch(served, MAPS + "?watch=1&timeoutSeconds=600", bearer()) as watch:
                served.wait_cached("configmaps")
                # It holds a connection to the server that is of no use any more: the client comes back to the cache.
                self.assertEqual({event["type"] for event in watch.until(lambda event: False)}, {"ADDED"})
            with Watch(served, MAPS + "?watch=1&timeoutSeconds=60") as watch:
                self.assertEqual(watch.next()["type"], "ADDED")
                wait_until(lambda: served.type("configmaps")["watchers"] == 1, "the watch is counted")

    def test_the_third_get_does_so_too(self):
        with OnDemand() as served:
            for _ in range(2):
                self.assertEqual(served.source(MAPS + "/one"), "upstream")
            self.assertEqual(served.type("configmaps")["state"], "passed on")
            self.assertIn("single objects", served.type("configmaps")["reason"])
            self.assertEqual(served.source(MAPS + "/one"), "upstream")
            served.wait_cached("configmaps")
            self.assertEqual(served.source(MAPS + "/one"), "cache")

    def test_types_that_nobody_uses_go_but_not_those_that_are_watched(self):
        with OnDemand(idle="2s") as served:
            served.fill(MAPS, "configmaps")
            served.fill("/api/v1/namespaces", "namespaces")
            with Watch(served, "/api/v1/namespaces?watch=1&timeoutSeconds=60") as watch:
                watch.next()
                self.assertIn("onDemand.idle", served.wait_gone("configmaps"))
                self.assertEqual([one["resource"] for one in served.state()["informers"]], ["namespaces"])
                self.assertEqual(served.source(MAPS), "upstream")
                served.wait_cached("configmaps")
            self.assertIn(b'kinformer_on_demand_evictions_total{reason="idle"} 1', ask(served, "/metrics")[2])

    def test_a_newcomer_takes_the_place_of_what_nobody_uses(self):
        with OnDemand(idle="30s", maxTypes=2) as served:
            served.fill("/api/v1/namespaces", "namespaces")
            with Watch(served, "/api/v1/namespaces?watch=1&timeoutSeconds=60") as watch:
                watch.next()
                served.fill(MAPS, "configmaps")
                served.source("/api/v1/pods")
                served.wait_cached("pods")
                self.assertIn("onDemand.maxTypes is 2", served.type("configmaps")["reason"])
                self.assertTrue(served.is_cached("namespaces"))
                self.assertEqual(served.source(MAPS), "upstream")  # and for a minute it stays so
                self.assertEqual(served.type("configmaps")["state"], "passed on")
                self.assertIsNotNone(served.type("configmaps")["notBefore"])

    def test_a_list_that_is_too_large_is_dropped_and_said(self):
        for i in range(30):
            cluster().kubectl("create", "-f", "-", stdin=config_map(f"large-{i}", LARGE, "x" * 100000))
        with OnDemand(maxBytes=2 << 20) as served:
            served.fill("/api/v1/namespaces", "namespaces")
            self.assertEqual(served.source(MAPS), "upstream")
            reason = served.wait_gone("configmaps")
            self.assertIn("onDemand.maxBytes is 2 MiB", reason)
            self.assertEqual(served.source(MAPS), "upstream")
            self.assertTrue(served.is_cached("namespaces"))
            self.assertEqual(served.number("kinformer_on_demand_starts_total"), 2)

    @needs_sim("on a shared cluster others' objects may be above the limit already")
    def test_what_grows_above_the_limit_is_given_up_too(self):
        name = "demand-grows"
        cluster().make_namespace(name)
        with OnDemand(maxBytes=6 << 20) as served:
            served.fill("/api/v1/configmaps", "configmaps")
            for i in range(40):
                cluster().kubectl("create", "-f", "-", stdin=config_map(f"grows-{i}", name, "x" * 200000))
            self.assertIn("onDemand.maxBytes is 6 MiB", served.wait_gone("configmaps"))
            self.assertEqual(served.source("/api/v1/configmaps?limit=1"), "upstream")
        cluster().kubectl("delete", "namespace", name, "--wait=false")

    def test_secrets_and_what_is_excluded_are_passed_on_with_the_reason(self):
        with OnDemand(exclude=["services", "*.apps"]) as served:
            for target, resource, group, why in (
                    ("/api/v1/secrets", "secrets", "", "onDemand.include or resources"),
                    ("/api/v1/services", "services", "", "onDemand.exclude"),
                    ("/apis/apps/v1/deployments", "deployments", "apps", "onDemand.exclude")):
                for _ in range(4):
                    self.assertEqual(served.source(target), "upstream")
                self.assertEqual(served.type(resource, group)["state"], "passed on")
                self.assertIn(why, served.type(resource, group)["reason"])
            self.assertEqual(served.state()["informers"], [])

    @needs_cluster("a resource without watches")
    def test_what_cannot_be_watched_is_passed_on_with_the_reason(self):
        with OnDemand() as served:
            self.assertEqual(served.source("/api/v1/componentstatuses"), "upstream")
            self.assertEqual(served.type("componentstatuses")["reason"], "the API server offers no watch of it")

    def test_secrets_that_are_included_are_cached(self):
        with OnDemand(include=["secrets"]) as served:
            served.fill("/api/v1/secrets", "secrets")
            self.assertEqual(served.source("/api/v1/secrets"), "cache")

    def test_what_the_daemon_may_not_read_stays_passed_on(self):
        with OnDemand(kubeconfig=cluster().kubeconfig("token")) as served:
            self.assertEqual(served.source("/api/v1/services"), "upstream")
            self.assertIn("kinformerd itself may not list and watch it", served.wait_gone("services"))
            for _ in range(4):
                self.assertEqual(served.source("/api/v1/services"), "upstream")
            self.assertEqual(served.number("kinformer_on_demand_starts_total"), 1)
            served.fill(MAPS, "configmaps")
            self.assertEqual(served.source(MAPS), "cache")

    def test_what_resources_names_is_left_as_it_is(self):
        with OnDemand({"resource": "configmaps", "namespaces": ["default"]}) as served:
            for _ in range(4):
                self.assertEqual(served.source(MAPS), "upstream")
            self.assertEqual(served.type("configmaps"), {})
            self.assertEqual(len(served.state()["informers"]), 1)

    def test_fields_that_are_dropped_are_as_of_a_type_that_is_named(self):
        with OnDemand(drop=["data"]) as served:
            served.fill(MAPS, "configmaps")
            status, headers, body = send(served, "GET", MAPS + "/one")
            self.assertEqual((status, "data" in json.loads(body)), (200, False))
            self.assertIn("leaves out", headers["warning"])
            self.assertEqual(send(served, "PUT", MAPS + "/one", config_map("one", SPACE))[0], 405)

    def test_a_reload_changes_the_rules(self):
        with OnDemand() as served:
            served.fill(MAPS, "configmaps")
            served.fill("/api/v1/namespaces", "namespaces")
            served.write({"resource": "namespaces"}, exclude=["configmaps"])
            served.reload()
            self.assertIn("onDemand.exclude", served.wait_gone("configmaps"))
            self.assertIn("resources names it", served.wait_gone("namespaces"))
            wait_until(lambda: ask(served, "/readyz")[0] == 200, "ready again")
            self.assertEqual([(one["name"], one["onDemand"]) for one in served.state()["informers"]],
                             [("namespaces", False)])
            self.assertEqual(served.source("/api/v1/namespaces"), "cache")

    def test_pages_go_on_where_they_began(self):
        for i in range(4):
            cluster().kubectl("create", "-f", "-", stdin=config_map(f"page-{i}", SPACE))
        with OnDemand(idle="3s") as served:
            def page(token=""):
                status, headers, body = send(served, "GET", MAPS + "?limit=2" + (token and "&continue=" + token))
                return status, headers.get("kinformer-source", "cache"), json.loads(body)
            status, source, body = page()
            self.assertEqual((status, source), (200, "upstream"))
            served.wait_cached("configmaps")
            status, source, body = page(body["metadata"]["continue"])
            self.assertEqual((status, source), (200, "upstream"))
            status, source, body = page()
            self.assertEqual((status, source), (200, "cache"))
            served.wait_gone("configmaps")
            status, source, body = page(body["metadata"]["continue"])
            self.assertEqual((status, body["reason"]), (410, "Expired"))

    def test_a_resource_that_came_later_is_found(self):
        with OnDemand() as served:
            make_gadgets()
            gadgets = "/apis/test.kinformer.dev/v1/gadgets"
            # At first the server still makes room for them: 429.
            wait_until(lambda: send(served, "GET", gadgets) and served.is_cached("gadgets", "test.kinformer.dev"),
                       "gadgets in the cache")
            self.assertEqual(served.source(gadgets), "cache")

    def test_who_writes_reads_it_also_while_the_type_comes_and_goes(self):
        cluster().kubectl("create", "-f", "-", stdin=config_map("mine", SPACE))
        sources = set()

        def write_and_read(value):
            patch = json.dumps({"data": {"value": value}})
            status, _, body = send(served, "PATCH", MAPS + "/mine", patch,
                                   **{"Content-Type": "application/merge-patch+json"})
            self.assertEqual(status, 200, body)
            for target in (MAPS + "/mine", MAPS):
                status, headers, body = send(served, "GET", target)
                self.assertEqual(status, 200, body)
                found = json.loads(body)
                [found] = [item for item in found.get("items", [found]) if item["metadata"]["name"] == "mine"]
                self.assertEqual(found["data"]["value"], value, (target, headers))
                sources.add(headers.get("kinformer-source", "cache"))

        with OnDemand() as served:
            for round_number in range(3):
                for i in range(60):
                    write_and_read(f"{round_number}-{i}")
                served.wait_cached("configmaps")
                write_and_read(f"{round_number}-cached")
                served.write(exclude=["configmaps"])
                served.reload()
                write_and_read(f"{round_number}-leaving")
                served.wait_gone("configmaps")
                served.write()
                served.daemon.process.send_signal(signal.SIGHUP)
        self.assertEqual(sources, {"upstream", "cache"})

    def test_other_fields_are_left_out_after_a_reload(self):
        def fields():
            self.assertEqual(served.source(MAPS + "/one"), "cache")
            return sorted(json.loads(ask(served, MAPS + "/one")[2]))

        with OnDemand(drop=["data"]) as served:
            served.source(MAPS)
            served.wait_cached("configmaps")
            self.assertEqual(fields(), ["apiVersion", "kind", "metadata"])
            served.write()
            served.reload()
            self.assertEqual(served.wait_gone("configmaps"), "onDemand.drop is another one by now")
            served.source(MAPS)
            served.wait_cached("configmaps")
            self.assertEqual(fields(), ["apiVersion", "data", "kind", "metadata"])
            served.reload()
            self.assertTrue(served.is_cached("configmaps"))
            served.daemon.stop()

    def test_no_request_fails_while_types_come_and_go(self):
        problems = []
        targets = (MAPS, MAPS + "/one", "/api/v1/namespaces", MAPS + "?watch=1&timeoutSeconds=1",
                   "/api/v1/namespaces/default", "/api/v1/configmaps?resourceVersion=0", "/api/v1/configmaps?limit=500")
        is_over = threading.Event()

        def ask_often(target):
            while not is_over.is_set() and not problems:
                try:
                    status, _, body = send(served, "GET", target)
                    if status != 200 or b'"ERROR"' in body:
                        problems.append((target, status, body[:300]))
                except OSError as problem:
                    problems.append((target, repr(problem)))

        with OnDemand() as served:
            threads = [threading.Thread(target=ask_often, args=(target,)) for target in targets]
            for thread in threads:
                thread.start()
            for _ in range(5):
                served.wait_cached("configmaps")
                served.write(exclude=["configmaps", "namespaces"])
                served.daemon.process.send_signal(signal.SIGHUP)
                served.wait_gone("configmaps")
                served.write()
                served.daemon.process.send_signal(signal.SIGHUP)
            is_over.set()
            for thread in threads:
                thread.join()
            self.assertEqual(problems, [])
            self.assertGreaterEqual(served.number("kinformer_on_demand_starts_total"), 5)


class Letters(http.server.BaseHTTPRequestHandler):
    """The API server, whose versions begin with a letter here: GETs, for anybody."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        connection = cluster().connect()
        target = re.sub(r"resourceVersion=([a-j])", lambda found: f"resourceVersion={ord(found[1]) - ord('a')}", self.path)
        connection.request("GET", target, headers={"Accept": self.headers["Accept"] or "application/json"})
        answer = connection.getresponse()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers["Content-Type"])
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            self.send_lettered(answer)
        except (OSError, http.client.HTTPException):
            self.close_connection = True  # one of both has gone
        connection.close()

    def send_lettered(self, answer):
        piece = None
        while piece != b"":
            piece = re.sub(rb'"resourceVersion":"(\d)', lambda found: b'"resourceVersion":"' + bytes([found[1][0] - 48 + ord("a")]),
                           answer.read1(1 << 20))
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))

    def log_message(self, *_):
        pass


class LettersTest(unittest.TestCase):
    def test_a_type_whose_versions_are_no_numbers_stays_with_the_server(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        make_key_pair(folder + "/tls")
        server = self.enterContext(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Letters))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder + "/tls.crt", folder + "/tls.key")
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        path = folder + "/letters.kubeconfig"
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"clusters": [{"name": "a", "cluster": {"server": f"https://localhost:{server.server_port}",
                                                              "certificate-authority": folder + "/tls.crt"}}],
                       "users": [{"name": "a", "user": {"token": "any"}}],
                       "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}], "current-context": "a"}, file)
        with OnDemand(kubeconfig=path) as served:
            self.assertEqual(served.source(MAPS), "upstream")
            wait_until(lambda: served.daemon.check() or "no numbers" in served.type("configmaps").get("reason", ""), "it is given up")
            self.assertEqual(served.source(MAPS), "upstream")
            self.assertEqual(ask(served, "/readyz")[0], 200)


@needs_sim("servers of its own")
class FreshnessTest(unittest.TestCase):
    def test_one_api_that_fails_is_given_up_alone_and_of_a_server_that_is_away_nothing(self):
        """In one cluster configmaps fail for longer than 90 s; the other one is away meanwhile."""
        with Sim("--tls", "--fault-listen", "127.0.0.1:0") as sim, Sim("--tls") as gone, \
                OnDemand(kubeconfig=sim.kubeconfig) as served, OnDemand(kubeconfig=gone.kubeconfig) as alone:
            for where in (served, alone):
                where.fill(MAPS, "configmaps")
                where.fill("/api/v1/namespaces", "namespaces")
            gone.process.kill()
            sim.control("POST", "/faults", "list,watch configmaps 503\n")
            sim.act("drop")
            with Watch(served, MAPS + "?watch=1&timeoutSeconds=600") as watch:
                wait_until(lambda: "list or watch fails" in served.type("configmaps")["reason"], "its trouble is told")
                self.assertEqual(served.source(MAPS), "cache")  # it may get better
                self.assertIn("could not be kept fresh, its list or watch fails", served.wait_gone("configmaps"))
                self.assertEqual(watch.until(lambda event: False), [])
            self.assertIsNotNone(served.type("configmaps")["notBefore"])
            self.assertEqual(ask(served, "/readyz")[0], 200)
            self.assertEqual(served.source(MAPS, status=503), "upstream")
            self.assertEqual(served.source("/api/v1/namespaces"), "cache")
            self.assertEqual(served.daemon.count_loud("given up resource=configmaps "), 1)
            self.assertIn(b'kinformer_on_demand_evictions_total{reason="stale"} 1', ask(served, "/metrics")[2])
            for resource in ("configmaps", "namespaces"):
                self.assertIn("list or watch fails", alone.type(resource)["reason"])
                self.assertTrue(alone.is_cached(resource))

    def test_a_refusal_that_passes_takes_nothing_along(self):
        """A server that starts refuses rights that it does not know yet, and a proxy before it may know no path."""
        with Sim("--tls", "--fault-listen", "127.0.0.1:0") as sim, OnDemand(kubeconfig=sim.kubeconfig) as served:
            self.assertEqual(send(served, "POST", "/api/v1/namespaces/default/configmaps", config_map("one", "default"))[0], 201)
            served.fill(MAPS, "configmaps")
            sim.control("POST", "/faults", "list,watch configmaps 403 times=1\nlist,watch configmaps 404\n")
            sim.act("drop")
            wait_until(lambda: "answered 404" in served.type("configmaps")["reason"], "the second one is told")
            sim.control("DELETE", "/faults")
            wait_until(lambda: served.type("configmaps")["reason"] == "", "all is well again")
            self.assertTrue(served.is_cached("configmaps"))
            self.assertEqual(served.number("kinformer_on_demand_starts_total"), 1)


class ConfigurationTest(unittest.TestCase):
    def check(self, text, *args):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "config.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return run_daemon("--config", path, "--check-config", *args)

    def test_what_is_good(self):
        head = "listen: ['127.0.0.1:0']\npassThrough: true\n"
        for section in ("{}", "{idle: 1h, maxTypes: 10, maxBytes: 1000000}",
                        "{exclude: [events, leases.coordination.k8s.io, '*.example.com'], include: [secrets]}",
                        "{drop: [metadata.managedFields]}"):
            code, out, err = self.check(f"{head}onDemand: {section}\n")
            self.assertEqual((code, out), (0, "configuration is good: 0 resources, others on demand\n"), err)
        code, out, _ = run_daemon("--on-demand", "--pass-through", "--listen", "127.0.0.1:0", "--resource", "pods",
                                  "--check-config")
        self.assertEqual((code, out), (0, "configuration is good: 1 resource, others on demand\n"))

    def test_what_is_refused(self):
        head = "listen: ['127.0.0.1:0']\npassThrough: true\n"
        for text, why in (
                ("listen: ['127.0.0.1:0']\nonDemand: {}\n", "--on-demand (onDemand) needs --pass-through"),
                (head, "names no resource"),
                (head + "onDemand: true\n", ":3:11: onDemand is a mapping"),
                (head + "onDemand: {colour: red}\n", "colour"),
                (head + "onDemand: {idle: soon}\n", ":3:18"),
                (head + "onDemand: {maxTypes: -1}\n", ":3:22"),
                (head + "onDemand: {exclude: ['Pods!']}\n", "onDemand.exclude: 'Pods!'"),
                (head + "onDemand: {include: [pods]}\n", "onDemand.include: only secrets"),
                (head + "onDemand: {drop: [a..b]}\n", "onDemand.drop")):
            code, _, err = self.check(text)
            self.assertEqual(code, 2, text)
            self.assertIn(why, err)
        for args, why in ((("--on-demand",), "--pass-through"),
                          (("--on-demand", "--pass-through", "--namespace", "a", "--listen", "127.0.0.1:0"),
                           "go with --resource")):
            code, _, err = run_daemon(*args, "--check-config")
            self.assertEqual(code, 2)
            self.assertIn(why, err)


if __name__ == "__main__":
    unittest.main()
