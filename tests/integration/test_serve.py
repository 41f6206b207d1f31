"""kinformerd as a server: the same requests to the API server and to the daemon, and their answers compared."""

import gzip
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest
import urllib.parse

import relay
from harness import (PATIENCE, ROOT, TOOLS, Daemon, cluster, config_map, make_gadgets, many_pods, needs_cluster, run_daemon,
                     wait_until, write_config)

KUBECTL = os.path.join(TOOLS, "kubectl")
RESOURCES = ("pods", "configmaps", "deployments.apps", "namespaces", "jobs.batch", "gadgets.test.kinformer.dev")


class Direct:
    """Raw requests to the API server, as its admin."""

    def __init__(self):
        self.open = cluster().connect


class Served:
    """A daemon that listens, and raw requests to it."""

    def __init__(self, *args, resource=RESOURCES, mode="asan", kubeconfig=None, max_files=None,
                 env=None):
        self.folder = tempfile.TemporaryDirectory()
        self.kubeconfig = os.path.join(self.folder.name, "kubeconfig")
        self.socket = os.path.join(self.folder.name, "socket")
        self.daemon = Daemon("--listen", "127.0.0.1:0", "--listen", "unix:" + self.socket, "--write-kubeconfig",
                             self.kubeconfig, *args, resource=resource, mode=mode, events=False, kubeconfig=kubeconfig,
                             max_files=max_files, env=env)

    def connect(self):
        wait_until(lambda: self.daemon.check() or os.path.exists(self.kubeconfig), "the kubeconfig")
        with open(self.kubeconfig, encoding="utf-8") as file:
            self.address = re.search(r"server: http://(\S+)", file.read()).group(1)
        self.open = lambda: http.client.HTTPConnection(self.address, timeout=PATIENCE)

    def __enter__(self):
        self.connect()
        wait_until(lambda: self.daemon.check() or ask(self, "/readyz")[0] == 200, "ready")
        return self

    def __exit__(self, kind, value, trace):
        try:
            if kind is None and self.daemon.process.poll() is None:
                self.daemon.stop()
        finally:
            self.daemon.__exit__(kind, value, trace)
            self.folder.cleanup()

    def kubectl(self, *args, check=True):
        done = subprocess.run([KUBECTL, "--kubeconfig", self.kubeconfig, "--cache-dir", self.folder.name + "/cache",
                               *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE,
                              check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(args)}: {done.stderr}")
        return done.stdout if check else done.stdout + done.stderr

    def wait_for(self, target, version):
        """Until the daemon has what the API server answered with `version`."""
        wait_until(lambda: int(body_of(self, target)["metadata"]["resourceVersion"]) >= int(version),
                   f"{target} at {version}")


def ask(where, target, method="GET", headers=None, reads=lambda status: True):
    """(status, headers, body); the body is left unread, and b"", unless `reads` the status."""
    connection = where.open()
    try:
        connection.putrequest(method, target, skip_accept_encoding=True)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read() if reads(answer.status) else b""
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body
    finally:
        connection.close()


def body_of(where, target, **headers):
    status, _, body = ask(where, target, headers=headers)
    if status != 200:
        raise AssertionError(f"{target}: {status} {body[:500]}")
    return json.loads(body)


class Watch:
    """An open watch; events are read as they come."""

    def __init__(self, where, target, headers=None):
        self.connection = where.open()
        self.connection.request("GET", target, headers=headers or {})
        self.answer = self.connection.getresponse()
        self.status = self.answer.status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.answer.close()  # which holds the socket, too
        self.connection.close()

    def next(self):
        line = self.answer.readline()
        return json.loads(line) if line else None

    def until(self, done):
        events = []
        while True:
            event = self.next()
            if event is None:
                return events
            events.append(event)
            if done(event):
                return events


def name_of(event):
    return event["object"]["metadata"]["name"]


# Requests that are refused by both in the same words: (method, target, headers).
REFUSED = [("GET", target, {}) for target in (
    "/api/v1/pods?limit=abc", "/api/v1/pods?limit=99999999999999999999", "/api/v1/pods?limit=",
    "/api/v1/pods?limit=+5", "/api/v1/pods?timeoutSeconds=x", "/api/v1/pods?timeout=x", "/api/v1/pods?timeout=1",
    "/api/v1/pods?timeout=1y", "/api/v1/pods?resourceVersion=abc", "/api/v1/pods?resourceVersion=-1",
    "/api/v1/pods?resourceVersion=99999999999999999999", "/api/v1/pods?resourceVersion=abc&watch=1",
    "/api/v1/namespaces/default/pods/x?resourceVersion=abc", "/api/v1/pods?resourceVersionMatch=Foo",
    "/api/v1/pods?resourceVersionMatch=Exact", "/api/v1/pods?resourceVersion=0&resourceVersionMatch=Exact",
    "/api/v1/pods?resourceVersion=5&resourceVersionMatch=exact", "/api/v1/pods?sendInitialEvents=true",
    "/api/v1/pods?sendInitialEvents=true&resourceVersionMatch=Foo", "/api/v1/pods?watch=1&sendInitialEvents=true",
    "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=Exact",
    "/api/v1/pods?watch=1&resourceVersionMatch=NotOlderThan", "/api/v1/pods?watch=1&resourceVersionMatch=Foo",
    "/api/v1/pods?watch=1&continue=abc", "/api/v1/pods?continue=abc&resourceVersion=5&resourceVersionMatch=Exact",
    "/api/v1/pods?labelSelector=k+in+(", "/api/v1/pods?labelSelector=a==b==c", "/api/v1/pods?labelSelector=a%3Ea",
    "/api/v1/pods?labelSelector=a,", "/api/v1/pods?labelSelector=,", "/api/v1/pods?labelSelector=a+in+b",
    "/api/v1/pods?labelSelector=a=b!", "/api/v1/pods?labelSelector=!", "/api/v1/pods?labelSelector=a+b",
    "/api/v1/pods?labelSelector=%3Da", "/api/v1/pods?watch=1&labelSelector=a+in+(b,c",
    "/api/v1/pods?fieldSelector=status.phase", "/api/v1/pods?fieldSelector=status.phase=a=b",
    "/api/v1/pods?fieldSelector=status.phase=a%5C", "/api/v1/pods?fieldSelector=status.phase=a%5Cb",
    "/api/v1/pods?fieldSelector=spec.x=1", "/api/v1/configmaps?fieldSelector=spec.x=1",
    "/apis/batch/v1/jobs?fieldSelector=spec.x=1", "/api/v1/namespaces?fieldSelector=metadata.namespace=1",
    "/apis/test.kinformer.dev/v1/gadgets?fieldSelector=spec.x=1",
    "/nope", "/api/v2", "/api/v2/pods", "/api/v1/foos", "/api/v1/namespaces/x/foos", "/api/v1/namespaces/x/nodes",
    "/api/v1/pods/zzz", "/apis/nope", "/apis/nope/v1", "/apis/nope/v1/pods", "/apis/apps/v9",
    "/apis/apps/v9/deployments", "/apis/apps/v1/foos", "/apis/apps/v1/namespaces/default/deployments/zzz",
    "/apis/test.kinformer.dev/v1/foos", "/apis/test.kinformer.dev/v1/namespaces/default/gadgets/zzz",
    "/api/v1/namespaces/default/pods/zzz", "/api/v1/namespaces/default/pods/zzz/foo",
    "/api/v1/namespaces/default/pods/zzz/foo/bar", "/api/v1/namespaces/default/pods/a?x=%zz&limit=abc",
    "//api/v1", "/api//v1/pods", "/healthz/", "/healthz/nope", "/livez/nope",
)] + [(method, target, {}) for method, target in (
    ("PUT", "/api/v1/pods"), ("HEAD", "/api/v1/pods"), ("OPTIONS", "/api/v1/pods"), ("TRACE", "/api/v1/pods"),
    ("FOO", "/api/v1/pods"), ("POST", "/version"), ("POST", "/api"), ("POST", "/nope"),
    ("POST", "/api/v1/namespaces/default/pods/x"),
)] + [("GET", target, {"Accept": "application/json;as=" + form + ";v=v1;g=meta.k8s.io"}) for target, form in (
    ("/api/v1/pods", "PartialObjectMetadata"), ("/api/v1/namespaces/default", "PartialObjectMetadataList"),
    ("/apis/apps/v1/deployments", "PartialObjectMetadata"),
)]

# The same code and reason, in other words, since only JSON is served, and tokens are the daemon's own.
REFUSED_IN_OTHER_WORDS = [
    ("/api/v1/pods?continue=abc", {}),
    ("/api/v1/pods?labelSelector=-a", {}), ("/api/v1/pods?labelSelector=a/b/c", {}),
    ("/api/v1/pods", {"Accept": "text/plain"}), ("/api/v1/pods", {"Accept": "application/*"}),
    ("/api/v1/pods", {"Accept": "application/json;as=Foo;v=v1;g=meta.k8s.io"}),
    ("/api/v1", {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}),
    ("/api", {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"}),
]


class ServeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster()
        make_gadgets()
        cls.cluster.make_namespace("serve")
        for i in range(5):
            cls.cluster.kubectl("apply", "-f", "-", stdin=config_map(f"c{i}", "serve", labels={"i": str(i % 2)}))
        cls.direct = Direct()
        cls.served = cls.enterClassContext(Served())

    def touch(self, name, data, labels=None):
        """Changes a config map and returns its version."""
        self.cluster.kubectl("apply", "-f", "-", stdin=config_map(name, "serve", data, labels))
        return json.loads(self.cluster.kubectl("get", "cm", name, "-n", "serve", "-o", "json"))[
            "metadata"]["resourceVersion"]

    def caught_up(self, target="/api/v1/namespaces/serve/configmaps"):
        version = max(int(item["metadata"]["resourceVersion"]) for item in body_of(self.direct, target)["items"])
        self.served.wait_for(target, version)

    # --- refusals ---

    def test_malformed_requests_are_refused_as_the_api_server_does(self):
        for method, target, headers in REFUSED:
            with self.subTest(method=method, target=target, headers=headers):
                real = ask(self.direct, target, method, headers)
                ours = ask(self.served, target, method, headers)
                self.assertEqual((ours[0], ours[1].get("content-type")), (real[0], real[1].get("content-type")))
                try:
                    self.assertEqual(json.loads(ours[2]), json.loads(real[2]))
                except ValueError:
                    self.assertEqual(ours[2].strip(), real[2].strip())

    def test_what_cannot_be_said_alike_has_the_same_reason(self):
        for target, headers in REFUSED_IN_OTHER_WORDS:
            with self.subTest(target=target, headers=headers):
                real, ours = ask(self.direct, target, headers=headers), ask(self.served, target, headers=headers)
                self.assertEqual((ours[0], json.loads(ours[2])["reason"]), (real[0], json.loads(real[2])["reason"]))

    def test_tricks_with_paths_and_hosts_are_refused(self):
        for target in ("/api/v1/namespaces/a%2fb/pods", "/api/v1/namespaces/../pods", "/api/v1/%2e%2e/x",
                       "/api/v1/namespaces/a%00b/pods", "/api/v1/pods?labelSelector=a%00b",
                       "/api/v1/namespaces/default/pods/a%zz"):
            self.assertEqual(ask(self.served, target)[0], 400, target)
        for host in ("evil.example:80", "169.254.169.254", "127.0.0.1.evil.example", "localhost:x"):
            with socket.create_connection(self.served.address.split(":")) as raw:
                raw.sendall(f"GET /api/v1/pods HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                self.assertIn(b" 403 ", raw.recv(64), host)
        with socket.create_connection(self.served.address.split(":")) as raw:
            raw.sendall(b"GET http://127.0.0.1/api/v1/pods HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            self.assertIn(b" 400 ", raw.recv(64))
        self.assertEqual(ask(self.served, "/api/v1/pods", headers={"Impersonate-User": "x"})[0], 403)

    def test_a_long_header_is_refused_and_the_next_request_served(self):
        selector = "a in (" + ",".join(["x" * 60] * 2000) + ")"
        status = ask(self.served, "/api/v1/pods?labelSelector=" + urllib.parse.quote(selector))[0]
        self.assertGreaterEqual(status, 400)
        self.assertEqual(ask(self.served, "/livez")[0], 200)

    def test_addresses_that_anybody_can_reach_are_refused_at_start(self):
        code, _, err = run_daemon("--resource", "pods", "--listen", "0.0.0.0:0")
        self.assertEqual(code, 2)
        self.assertIn("TLS", err)

    # --- reading ---

    def test_lists_and_objects_are_those_of_the_api_server(self):
        self.caught_up()
        for target in ("/api/v1/namespaces/serve/configmaps", "/api/v1/namespaces/serve/configmaps?labelSelector=i=1",
                       "/api/v1/namespaces/serve/configmaps?labelSelector=i+notin+(1)",
                       "/api/v1/configmaps?fieldSelector=metadata.name=c1,metadata.namespace%3Dserve",
                       "/api/v1/configmaps?fieldSelector=metadata.name!=c1,metadata.namespace%3Dserve",
                       "/api/v1/namespaces/nowhere/pods", "/apis/test.kinformer.dev/v1/gadgets",
                       "/api/v1/namespaces/serve/configmaps/", "/api/v1/namespaces/serve/configmaps?&limit=0"):
            real, ours = body_of(self.direct, target), body_of(self.served, target)
            real["metadata"].pop("resourceVersion")
            self.assertGreater(int(ours["metadata"].pop("resourceVersion")), 0)
            self.assertEqual(list(ours), list(real), target)
            self.assertEqual(ours, real, target)
        for target in ("/api/v1/namespaces/serve/configmaps/c1", "/api/v1/namespaces/serve",
                       "/api/v1/namespaces/serve/configmaps/c1?watch=1"):
            self.assertEqual(ask(self.served, target)[2], ask(self.direct, target)[2], target)

    def test_metadata_alone_is_served_where_it_is_asked_for(self):
        self.caught_up()
        accept = "application/vnd.kubernetes.protobuf;as={0};g=meta.k8s.io;v=v1,application/json;as={0};g=meta.k8s.io;v=v1"
        for target, form in (("/api/v1/namespaces/serve/configmaps", "PartialObjectMetadataList"),
                             ("/api/v1/namespaces/serve/configmaps/c1", "PartialObjectMetadata")):
            ours = body_of(self.served, target, Accept=accept.format(form))
            real = body_of(self.direct, target, Accept=accept.format(form).split(",")[1])
            for answer in (ours, real):
                answer["metadata"].pop("resourceVersion")
            self.assertEqual(ours, real)

    def test_versions_that_are_not_reached_are_waited_for(self):
        before = int(body_of(self.served, "/api/v1/configmaps")["metadata"]["resourceVersion"])
        answers = []
        reader = threading.Thread(target=lambda: answers.append(
            body_of(self.served, f"/api/v1/configmaps?resourceVersion={before + 1}")))
        reader.start()
        self.touch("c4", str(before))
        reader.join()
        self.assertGreater(int(answers[0]["metadata"]["resourceVersion"]), before)
        target = f"/api/v1/configmaps?resourceVersion={before + 1000000}"
        status, headers, body = ask(self.served, target)
        self.assertEqual((status, headers["retry-after"]), (504, "1"))
        self.assertEqual(json.loads(body)["details"], json.loads(ask(self.direct, target)[2])["details"])

    def test_pages_are_of_one_version_whatever_happens_between_them(self):
        self.caught_up()
        target = "/api/v1/namespaces/serve/configmaps?limit=2"
        whole = body_of(self.served, "/api/v1/namespaces/serve/configmaps")
        first = body_of(self.served, target)
        self.assertEqual(first["metadata"]["remainingItemCount"], len(whole["items"]) - 2)
        self.caught_up()
        self.touch("c3", "between pages of " + first["metadata"]["resourceVersion"])
        self.caught_up()
        token, items = first["metadata"]["continue"], first["items"]
        while token:
            page = body_of(self.served, target + "&continue=" + token)
            self.assertEqual(page["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"])
            items += page["items"]
            token = page["metadata"].get("continue")
        self.assertEqual(items, whole["items"])
        exact = f"/api/v1/namespaces/serve/configmaps?resourceVersionMatch=Exact&resourceVersion=" \
                f"{first['metadata']['resourceVersion']}"
        self.assertEqual(body_of(self.served, exact)["items"], whole["items"])

    def test_a_token_that_was_changed_is_refused(self):
        token = body_of(self.served, "/api/v1/namespaces/serve/configmaps?limit=1")["metadata"]["continue"]
        for i in (3, len(token) // 2, len(token) - 1):
            changed = token[:i] + ("b" if token[i] != "b" else "c") + token[i + 1:]
            status = ask(self.served, "/api/v1/configmaps?continue=" + changed)[0]
            self.assertIn(status, (400, 410), changed)

    def test_an_exact_version_that_is_not_held_has_expired(self):
        for target in ("/api/v1/configmaps?resourceVersionMatch=Exact&resourceVersion=1",
                       "/api/v1/configmaps?resourceVersion=1&limit=1"):
            status, _, body = ask(self.served, target)
            self.assertEqual((status, json.loads(body)["reason"]), (410, "Expired"))

    def test_large_lists_are_compressed_on_request(self):
        n_pods = many_pods()

        def n_cached():
            return next(informer["objects"] for informer in body_of(self.served, "/debug/state")["informers"]
                        if informer["name"] == "pods")

        wait_until(lambda: n_cached() == n_pods, f"{n_pods} pods", 3 * PATIENCE)
        versions = self.cluster.versions()
        self.served.wait_for("/api/v1/pods?limit=1", max(map(int, versions.values())))
        status, headers, body = ask(self.served, "/api/v1/pods", headers={"Accept-Encoding": "gzip"})
        self.assertEqual((status, headers["content-encoding"]), (200, "gzip"))
        plain = ask(self.served, "/api/v1/pods")
        self.assertNotIn("content-encoding", plain[1])
        # The lists' own version may differ: a bookmark came between them.
        listed, listed_plain = (whole.partition(b'"items":') for whole in (gzip.decompress(body), plain[2]))
        self.assertEqual(listed[1:], listed_plain[1:])
        lines = sorted(f"{item['metadata']['namespace']}/{item['metadata']['name']}@"
                       f"{item['metadata']['resourceVersion']}" for item in json.loads(plain[2])["items"])
        self.assertEqual(lines, sorted(f"{key}@{version}" for key, version in versions.items()))

    # --- watching ---

    def test_a_watch_tells_the_state_and_then_what_happens(self):
        self.caught_up()
        target = "/api/v1/namespaces/serve/configmaps?watch=true&allowWatchBookmarks=true&sendInitialEvents=true" \
                 "&resourceVersionMatch=NotOlderThan"
        with Watch(self.served, target) as ours, Watch(self.direct, target) as real:
            def ends(event):
                return event["type"] == "BOOKMARK" and "annotations" in event["object"]["metadata"]

            first = ours.until(ends)
            self.assertEqual(first[:-1], real.until(ends)[:-1])
            self.assertEqual(first[-1]["object"]["kind"], "ConfigMap")
            self.touch("w1", "1")
            self.touch("w1", "2")
            self.cluster.kubectl("delete", "cm", "w1", "-n", "serve")

            def gone(event):
                return event["type"] == "DELETED" and name_of(event) == "w1"

            def of_w1(events):
                return [event for event in events if event["type"] != "BOOKMARK" and name_of(event) == "w1"]

            self.assertEqual(of_w1(ours.until(gone)), of_w1(real.until(gone)))

    def test_a_selector_lets_objects_enter_and_leave(self):
        self.touch("w2", "1", {"in": "no"})
        self.caught_up()
        version = body_of(self.direct, "/api/v1/configmaps")["metadata"]["resourceVersion"]
        self.served.wait_for("/api/v1/configmaps", self.touch("w2", "2", {"in": "no"}))
        target = f"/api/v1/namespaces/serve/configmaps?watch=1&labelSelector=in=yes&resourceVersion={version}"
        with Watch(self.served, target) as ours, Watch(self.direct, target) as real:
            for labels in ({"in": "yes"}, {"in": "yes", "more": "x"}, {"in": "no"}):
                self.touch("w2", "3", labels)

            def left(event):
                return event["type"] == "DELETED"

            events = ours.until(left)
            self.assertEqual([event["type"] for event in events], ["ADDED", "MODIFIED", "DELETED"])
            self.assertEqual(events, real.until(left))

    def test_a_watch_goes_on_where_another_one_ended(self):
        self.caught_up()
        version = body_of(self.served, "/api/v1/configmaps")["metadata"]["resourceVersion"]
        for i in range(5):
            last = self.touch("w3", str(i))
        seen = []
        while not seen or seen[-1] != last:
            with Watch(self.served, "/api/v1/namespaces/serve/configmaps?watch=1&fieldSelector=metadata.name%3Dw3"
                       f"&resourceVersion={version}") as watch:
                version = watch.next()["object"]["metadata"]["resourceVersion"]
                seen.append(version)
        self.assertEqual(len(seen), 5)

    def test_a_version_that_is_too_old_is_told_in_the_stream(self):
        with Watch(self.served, "/api/v1/configmaps?watch=1&resourceVersion=1") as watch:
            self.assertEqual(watch.status, 200)
            event = watch.next()
            self.assertEqual((event["type"], event["object"]["code"], event["object"]["reason"]),
                             ("ERROR", 410, "Expired"))
            self.assertIsNone(watch.next())

    def test_a_watch_ends_cleanly_when_its_time_is_over(self):
        with Watch(self.served, "/api/v1/namespaces?watch=1&timeoutSeconds=1&allowWatchBookmarks=1") as watch:
            events = watch.until(lambda event: False)
        self.assertEqual(events[-1]["type"], "BOOKMARK")
        with Watch(self.served, "/api/v1/namespaces?watch=1&timeoutSeconds=-1&resourceVersion=0") as watch:
            watch.until(lambda event: False)

    def test_a_watch_whose_time_was_over_before_says_nothing(self):
        """The API server answers now so, now that its deadline is exceeded, now some of what there is."""
        for more in ("", "&resourceVersion=0", "&resourceVersion=1", "&resourceVersion=99999999",
                     "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1"):
            for target in ("/api/v1/namespaces", "/apis/test.kinformer.dev/v1/gadgets"):
                target += "?watch=1&timeoutSeconds=-1" + more
                self.assertEqual(ask(self.served, target)[::2], (200, b""), target)
                self.assertEqual(ask(self.direct, target)[0], 200)

    def test_a_watcher_that_vanishes_is_forgotten(self):
        def watchers():
            state = body_of(self.served, "/debug/state")
            return sum(len(informer["watchers"]) for informer in state["informers"] if informer["name"] == "jobs.batch")

        with Watch(self.served, "/apis/batch/v1/jobs?watch=1") as watch:
            self.assertEqual(watch.status, 200)
            wait_until(lambda: watchers() == 1, "one watcher")
        wait_until(lambda: watchers() == 0, "no watcher")

    # --- kubectl ---

    def a_fifth(self, target):
        """Of what is listed there, as kubectl's --chunk-size: other tests leave thousands."""
        return str(max(2, len(body_of(self.direct, target)["items"]) // 5))

    @needs_cluster("kubectl")
    def test_kubectl_prints_the_same_objects(self):
        self.caught_up()
        for args in (("get", "cm", "-n", "serve", "-o", "yaml"), ("get", "cm", "c1", "-n", "serve", "-o", "json"),
                     ("get", "cm", "-A", "-o", "name", "--chunk-size", self.a_fifth("/api/v1/configmaps")),
                     ("get", "ns", "-o", "jsonpath={.items[*].metadata.name}"),
                     ("describe", "cm", "-n", "serve"), ("get", "--raw", "/api/v1/namespaces/serve/configmaps/c2")):
            self.assertEqual(self.served.kubectl(*args).replace("\n  continue: \"\"", ""),
                             self.cluster.kubectl(*args), args)
        self.assertIn('pods "zzz" not found', self.served.kubectl("get", "pod", "zzz", check=False))
        self.assertIn("jsonpath", self.served.kubectl("wait", "cm/c1", "-n", "serve", "--for=jsonpath={.data.none}=x",
                                                      "--timeout=1s", check=False) + "jsonpath")
        self.served.kubectl("wait", "cm/c1", "-n", "serve", "--for=jsonpath={.metadata.name}=c1", "--timeout=30s")
        self.assertIn("+kinformerd", self.served.kubectl("version"))

    @needs_cluster("kubectl")
    def test_kubectl_shows_the_same_tables(self):
        self.cluster.kubectl("apply", "-n", "serve", "-f", "-", stdin=json.dumps(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "shown"},
             "spec": {"containers": [{"name": "c", "image": "i"}]}}))
        self.caught_up()
        self.caught_up("/api/v1/namespaces/serve/pods")

        def without_age(text):
            return re.sub(r"\b\d+(s|m|m\d+s)\b *", "AGE ", text)

        for args in (("get", "pods", "-n", "serve"), ("get", "pods", "-n", "serve", "-o", "wide"),
                     ("get", "pod", "shown", "-n", "serve", "--show-labels"), ("get", "cm,pods", "-n", "serve"),
                     ("get", "ns", "--sort-by=.metadata.name"),
                     ("get", "cm", "-A", "--chunk-size", self.a_fifth("/api/v1/configmaps"))):
            self.assertEqual(without_age(self.served.kubectl(*args)), without_age(self.cluster.kubectl(*args)), args)

    def test_tables_are_those_of_the_api_server(self):
        accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        for include in ("", "?includeObject=Object", "?includeObject=None"):
            real, ours = (body_of(where, "/api/v1/namespaces/serve/configmaps" + include, **accept)
                          for where in (self.direct, self.served))
            for table in (real, ours):
                table["metadata"].pop("resourceVersion")
                for row in table["rows"]:
                    row["cells"].pop()
            self.assertEqual(ours, real)
        with Watch(self.served, "/api/v1/namespaces/serve/configmaps?watch=1", accept) as watch:
            self.assertEqual(watch.next()["object"]["columnDefinitions"][0]["name"], "Name")
            self.assertIsNone(watch.next()["object"]["columnDefinitions"])
        for target in ("/api/v1/pods", "/api/v1/namespaces/default"):
            real, ours = (ask(where, target + "?includeObject=foo", headers=accept)
                          for where in (self.direct, self.served))
            self.assertEqual((ours[0], json.loads(ours[2])), (real[0], json.loads(real[2])))

    @needs_cluster("kubectl")
    def test_kubectl_finds_the_resources_of_the_cache(self):
        lines = self.served.kubectl("api-resources", "--no-headers").splitlines()
        self.assertEqual(sorted(line.split()[0] for line in lines),
                         sorted(name.split(".")[0] for name in RESOURCES))

    def test_discovery_is_that_of_the_api_server_for_what_is_cached(self):
        legacy = {"Accept": "application/json"}
        for target in ("/api/v1", "/apis/apps/v1", "/apis/apps", "/apis/test.kinformer.dev/v1"):
            real, ours = (body_of(where, target, **legacy) for where in (self.direct, self.served))
            self.assertEqual({key: ours.get(key) for key in ("kind", "apiVersion", "groupVersion", "name")},
                             {key: real.get(key) for key in ("kind", "apiVersion", "groupVersion", "name")})
            by_name = {item["name"]: item for item in real.get("resources", [])}
            for item in ours.get("resources", []):
                self.assertEqual({**by_name[item["name"]], "verbs": item["verbs"], "storageVersionHash": None},
                                 {**item, "storageVersionHash": None})

    def test_aggregated_discovery_is_cached_by_its_tag(self):
        accept = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"}
        _, headers, body = ask(self.served, "/apis", headers=accept)
        self.assertEqual(headers["content-type"],
                         "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
        self.assertEqual(json.loads(body)["kind"], "APIGroupDiscoveryList")
        status, _, body = ask(self.served, "/apis", headers={**accept, "If-None-Match": headers["etag"]})
        self.assertEqual((status, body), (304, b""))

    # --- state ---

    def test_health_and_state_can_be_asked_for(self):
        self.assertEqual(ask(self.served, "/healthz")[2], b"ok")
        self.assertIn(b"[+]configmaps ok", ask(self.served, "/readyz?verbose")[2])
        self.assertEqual(ask(self.served, "/readyz/configmaps")[2], b"ok")
        metrics = ask(self.served, "/metrics")[2].decode()
        self.assertIn("kinformer_watchers{name=\"pods\"}", metrics)
        self.assertEqual({informer["name"] for informer in body_of(self.served, "/debug/state")["informers"]},
                         set(RESOURCES))

    def test_a_unix_socket_serves_the_same(self):
        with socket.socket(socket.AF_UNIX) as raw:
            raw.connect(self.served.socket)
            raw.sendall(b"GET /livez HTTP/1.0\r\n\r\n")
            self.assertIn(b"200 OK", raw.recv(4096))
        self.assertEqual(os.stat(self.served.socket).st_mode & 0o777, 0o660)


COLUMNS = """
      additionalPrinterColumns:
        - {name: Size, type: integer, jsonPath: .spec.size}
        - {name: Ratio, type: number, jsonPath: .spec.ratio, priority: 1}
        - {name: Switched, type: boolean, jsonPath: .spec.on}
        - {name: Tags, type: string, jsonPath: .spec.tags}
        - {name: First, type: string, jsonPath: ".spec.tags[0]"}
        - {name: Ready, type: string, jsonPath: '.spec.conditions[?(@.type=="Ready")].status'}
        - {name: Note, type: string, jsonPath: '.metadata.annotations.example\\.org/note'}
        - {name: Nowhere, type: string, jsonPath: .spec.nowhere}
        - {name: Since, type: date, jsonPath: .spec.since}
        - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
"""


@needs_cluster("kubectl")
class CustomColumnsTest(unittest.TestCase):
    """What kubectl shows of custom resources is what their definitions say."""

    def test_columns_of_a_definition_are_those_of_the_api_server(self):
        with open(os.path.join(ROOT, "tests", "integration", "gadgets.yaml"), encoding="utf-8") as file:
            definition = (file.read().replace("gadget", "dial").replace("Gadget", "Dial")
                          .replace("test.kinformer.dev", "columns.kinformer.dev")
                          .replace("      served: true\n", "      served: true" + COLUMNS))
        cluster().kubectl("apply", "-f", "-", stdin=definition)
        self.addCleanup(cluster().kubectl, "delete", "-f", "-", stdin=definition)
        cluster().kubectl("wait", "--for=condition=Established", "crd/dials.columns.kinformer.dev", "--timeout=60s")
        cluster().make_namespace("columns")
        specs = {"full": {"size": 3, "ratio": 0.5, "on": True, "tags": ["a", "b"], "since": "2001-01-01T00:00:00Z",
                          "conditions": [{"type": "Other", "status": "1"}, {"type": "Ready", "status": "True"}]},
                 "empty": {}, "odd": {"size": "x", "ratio": 2, "on": 1, "tags": {"k": [1]}, "since": "yesterday"}}
        for name, spec in specs.items():
            made = json.dumps({"apiVersion": "columns.kinformer.dev/v1", "kind": "Dial", "spec": spec, "metadata": {
                "name": name, "namespace": "columns", "annotations": {"example.org/note": name}}})
            wait_until(lambda text=made: cluster().try_kubectl("apply", "-f", "-", stdin=text), "an object can be made")
        with Served(resource=("dials.columns.kinformer.dev",)) as served:
            for args in (("get", "dials", "-n", "columns"), ("get", "dials", "-A", "-o", "wide")):
                real, ours = (re.sub(r"\b\d+(s|m|m\d+s)\b *", "AGE ", text)
                              for text in (cluster().kubectl(*args), served.kubectl(*args)))
                self.assertEqual(ours, real)
            self.assertIn("NOWHERE", ours)
            cluster().kubectl("apply", "-f", "-", stdin=definition.replace("name: Nowhere", "name: Elsewhere"))
            wait_until(lambda: "ELSEWHERE" in served.kubectl(*args), "the new columns")
            served.daemon.stop()


class Unready(relay.Handler):
    """An API server that lists nothing until it is told to, and whose watches are silent."""

    lists = threading.Event()
    ended = threading.Event()

    def do_GET(self):
        is_objects = self.path.startswith("/api/v1/namespaces")
        if is_objects and "watch=1" in self.path:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.ended.wait(PATIENCE)
            self.close_connection = True
            return
        if is_objects and not self.lists.is_set():
            self.answer(503, b"not yet")
        else:
            self.answer(200, cluster().kubectl("get", "--raw", self.path).encode())


class FreshnessTest(unittest.TestCase):
    def test_what_is_not_synced_is_429_and_named_until_it_is(self):
        upstream = self.enterContext(relay.listening(Unready))
        self.addCleanup(Unready.ended.set)
        with tempfile.TemporaryDirectory() as folder:
            served = Served(resource=("namespaces",), kubeconfig=relay.kubeconfig_of(upstream, folder))
            served.connect()
            try:
                status, headers, body = ask(served, "/api/v1/namespaces")
                self.assertEqual((status, headers["retry-after"], json.loads(body)["reason"]),
                                 (429, "1", "TooManyRequests"))
                # It listens before it knows what the server has.
                wait_until(lambda: b"[-]namespaces failed: not synced" in ask(served, "/readyz")[2], "what is missing")
                self.assertEqual(ask(served, "/readyz")[0], 500)
                self.assertEqual(ask(served, "/livez")[0], 200)
                Unready.lists.set()
                wait_until(lambda: ask(served, "/readyz")[0] == 200, "ready")
                status, headers, _ = ask(served, "/api/v1/namespaces")
                self.assertEqual(status, 200)
                self.assertLess(float(headers["kinformer-staleness-seconds"]), PATIENCE)
                Unready.ended.set()
                served.daemon.stop()
            finally:
                served.__exit__(None, None, None)

    def test_a_staleness_that_proves_nothing_is_refused(self):
        with tempfile.NamedTemporaryFile(mode="w+", suffix=".yaml") as file:
            file.write("maxStaleness: 179s\nresources: [{resource: pods}]\n")
            file.flush()
            code, _, problem = run_daemon("--check-config", "--config", file.name)
            self.assertEqual(code, 2)
            self.assertIn("maxStaleness", problem)


class UnixTest(unittest.TestCase):
    def answer(self, **keys):
        """What a socket with these keys says, and the mode of its file."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "config.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write("".join(f"{key}: {json.dumps(value)}\n" for key, value in keys.items()) +
                           "resources: [{resource: namespaces}]\n")
            with Served("--config", path, resource=()) as served:
                with socket.socket(socket.AF_UNIX) as raw:
                    raw.connect(served.socket)
                    raw.settimeout(PATIENCE)
                    raw.sendall(b"GET /livez HTTP/1.0\r\n\r\n")
                    status = int(raw.recv(4096).split()[1])
                mode = os.stat(served.socket).st_mode & 0o777
                served.daemon.stop()
            return status, mode

    def test_a_socket_is_for_the_users_that_the_configuration_names(self):
        self.assertEqual(self.answer(unixMode="0600", unixUsers=[os.getuid()]), (200, 0o600))
        self.assertEqual(self.answer(unixUsers=[os.getuid() + 1, os.getuid() + 2]), (403, 0o660))

    def test_wrong_values_are_named(self):
        for key, value, words in (("unixMode", "0999", "octal"), ("unixMode", "01777", "octal"),
                                  ("unixUsers", ["root"], "numbers of users")):
            with tempfile.NamedTemporaryFile(mode="w+", suffix=".yaml") as file:
                file.write(f"{key}: {json.dumps(value)}\nresources: [{{resource: pods}}]\n")
                file.flush()
                code, _, problem = run_daemon("--check-config", "--config", file.name)
                self.assertEqual(code, 2)
                self.assertIn(words, problem)


class ScopeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster()
        for name in ("scope-a", "scope-b"):
            cls.cluster.make_namespace(name)
            cls.cluster.kubectl("apply", "-f", "-", stdin=config_map("x", name, labels={"app": "scope-web"}))

    def test_what_is_wider_than_the_cache_is_refused(self):
        with Served("--namespace", "scope-a", resource=("configmaps", "secrets")) as served:
            self.assertIn("x", [item["metadata"]["name"] for item in
                                body_of(served, "/api/v1/namespaces/scope-a/configmaps")["items"]])
            for target in ("/api/v1/configmaps", "/api/v1/namespaces/scope-b/configmaps", "/api/v1/nodes",
                           "/api/v1/namespaces/scope-b/configmaps/x", "/api/v1/namespaces/scope-a/secrets",
                           "/api/v1/configmaps?watch=1"):
                status, _, body = ask(served, target)
                self.assertEqual((status, json.loads(body)["reason"]), (403, "Forbidden"), target)
            self.assertIn("scope-a", ask(served, "/api/v1/configmaps")[2].decode())
            served.daemon.stop()
        with Served("--selector", "app=scope-web", resource=("configmaps",)) as served:
            self.assertEqual(len(body_of(served, "/api/v1/configmaps?labelSelector=app%3Dscope-web")["items"]), 2)
            for target in ("/api/v1/configmaps", "/api/v1/configmaps?labelSelector=app",
                           "/api/v1/namespaces/scope-a/configmaps/none"):
                self.assertEqual(ask(served, target)[0], 403, target)
            served.daemon.stop()

    def test_a_reload_keeps_the_watches_of_what_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "config.yaml")

            def write(*resources):
                with open(path, "w", encoding="utf-8") as file:
                    file.write("listen: [\"127.0.0.1:0\"]\nresources:\n" +
                               "".join(f"  - resource: {name}\n" for name in resources))

            write("configmaps", "namespaces")
            with Served("--config", path, resource=()) as served, \
                    Watch(served, "/api/v1/configmaps?watch=1&allowWatchBookmarks=1") as stays, \
                    Watch(served, "/api/v1/namespaces?watch=1") as goes:
                stays.until(lambda event: event["type"] == "BOOKMARK")
                write("configmaps", "nodes")
                served.daemon.process.send_signal(signal.SIGHUP)
                goes.until(lambda event: False)
                wait_until(lambda: ask(served, "/api/v1/nodes")[0] == 200, "nodes are served")
                self.assertEqual(ask(served, "/api/v1/namespaces")[0], 403)
                self.cluster.kubectl("apply", "-f", "-", stdin=config_map("reloaded", "scope-a"))
                stays.until(lambda event: event["type"] == "ADDED" and name_of(event) == "reloaded")
                served.daemon.stop()
                stays.until(lambda event: False)

    def test_the_history_is_as_small_as_the_configuration_says(self):
        def resumed(limit):
            with tempfile.TemporaryDirectory() as folder:
                path = write_config(folder, "configmaps", namespaces=["scope-b"], **limit)
                with Served("--config", path, resource=()) as served:
                    target = "/api/v1/namespaces/scope-b/configmaps"
                    version = body_of(served, target)["metadata"]["resourceVersion"]
                    for data in ("1", "2", "3"):
                        self.cluster.kubectl("apply", "-f", "-", stdin=config_map("limit", "scope-b", data))
                    wait_until(lambda: any(item["metadata"]["name"] == "limit" and item["data"]["value"] == "3"
                                           for item in body_of(served, target)["items"]), "the last change")
                    with Watch(served, f"{target}?watch=1&resourceVersion={version}") as watch:
                        event = watch.next()
                    served.daemon.stop()
                self.cluster.kubectl("delete", "cm", "-n", "scope-b", "limit")
                return event["type"], event["object"].get("reason")

        self.assertEqual(resumed({}), ("ADDED", None))
        self.assertEqual(resumed({"maxHistoryBytes": 1}), ("ERROR", "Expired"))

    def test_stopping_ends_watches_cleanly(self):
        with Served(resource=("namespaces",)) as served:
            watches = [Watch(served, "/api/v1/namespaces?watch=1") for _ in range(50)]
            self.assertEqual({watch.status for watch in watches}, {200})
            served.daemon.stop()
            for watch in watches:
                with watch:
                    self.assertTrue(all(event["type"] == "ADDED" for event in watch.until(lambda event: False)))
            self.assertFalse(os.path.exists(served.socket))

    def test_the_cache_is_what_the_api_server_has_under_churn(self):
        with Served(resource=("configmaps",)) as served:
            self.cluster.kubectl("apply", "-f", "-", stdin=json.dumps({"kind": "List", "apiVersion": "v1", "items": [
                json.loads(config_map(f"churn-{i}", "scope-b", "0")) for i in range(20)]}))
            for round_no in range(3):
                self.cluster.kubectl("apply", "-f", "-", stdin=json.dumps(
                    {"kind": "List", "apiVersion": "v1", "items": [
                        json.loads(config_map(f"churn-{i}", "scope-b", str(round_no))) for i in range(0, 20, 2)]}))
                self.cluster.kubectl("delete", "cm", "-n", "scope-b", f"churn-{2 * round_no + 1}")
            wait_until(lambda: body_of(served, "/api/v1/configmaps")["items"] ==
                       json.loads(self.cluster.kubectl("get", "--raw", "/api/v1/configmaps"))["items"], "equal lists")
            served.daemon.stop()


if __name__ == "__main__":
    unittest.main()
