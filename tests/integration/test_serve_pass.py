"""What kinformerd passes on to the API server: as the caller, with the caller's rights, and nothing else."""

import gzip
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

import relay
from harness import (PATIENCE, Daemon, Proxy, again_if_slow, cluster, config_map, needs_cluster, needs_sim, run_daemon,
                     wait_until)
from test_serve import KUBECTL, Direct, Served, Watch, ask

NAMESPACE = "pass"
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


def setUpModule():
    # Outside of what is cached.
    cluster().kubectl("create", "configmap", "elsewhere", "-n", "kube-system")


def token_of(user):
    with open(cluster().kubeconfig(user), encoding="utf-8") as file:
        return re.search(r"token: *(\S+)", file.read()).group(1)


def bearer(user="admin-token"):
    return {"Authorization": "Bearer " + token_of(user)}


class Sidecar(Served):
    """A daemon with a configuration, and raw requests to it."""

    def __init__(self, *resources, pass_through=True, kubeconfig=None):
        self.folder = tempfile.TemporaryDirectory()
        self.kubeconfig = os.path.join(self.folder.name, "kubeconfig")
        self.socket = os.path.join(self.folder.name, "socket")
        path = os.path.join(self.folder.name, "config.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"listen": ["127.0.0.1:0", "unix:" + self.socket], "events": "none",
                       "passThrough": pass_through, "resources": list(resources)}, file)
        self.daemon = Daemon("--write-kubeconfig", self.kubeconfig, config=path, kubeconfig=kubeconfig)


def send(where, method, target, body=None, user="admin-token", chunked=False, **headers):
    """(status, headers, body); `user` None: no token."""
    connection = where.open()
    try:
        connection.request(method, target, body=body, encode_chunked=chunked, headers={
            **({} if user is None else bearer(user)), "Content-Type": "application/json",
            **({"Transfer-Encoding": "chunked"} if chunked else {}), **headers})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def big_map(name, size):
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                       "data": {"value": "x" * size}})


class AddToken(relay.Handler):
    """In front of the daemon: what a client that sends tokens would look like, for kubectl, which sends none."""

    target = None

    def do_GET(self):
        connection = http.client.HTTPConnection(self.target, timeout=PATIENCE)
        headers = {name: self.headers[name] for name in ("Accept", "If-None-Match") if name in self.headers}
        connection.request("GET", self.path, headers={**headers, **bearer()})
        answer = connection.getresponse()
        self.answer(answer.status, answer.read(), answer.getheader("Content-Type", ""))
        connection.close()


class PassThroughTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cluster().make_namespace(NAMESPACE)
        cls.direct = Direct()
        cls.sidecar = Sidecar({"resource": "configmaps", "namespaces": [NAMESPACE, "default"]},
                              {"resource": "pods", "drop": ["metadata.managedFields"]}, {"resource": "namespaces"})
        cls.addClassCleanup(cls.sidecar.__exit__, None, None, None)
        cls.sidecar.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.sidecar.daemon.stop()

    def cached(self, name):
        status, headers, body = send(self.sidecar, "GET", f"{MAPS}/{name}", user=None)
        self.assertNotIn("kinformer-source", headers)
        return json.loads(body) if status == 200 else None

    def test_writes_go_on_and_come_back_into_the_cache(self):
        status, headers, body = send(self.sidecar, "POST", MAPS, config_map("w", NAMESPACE, "one"))
        self.assertEqual(status, 201, body)
        self.assertEqual(headers["kinformer-source"], "upstream")
        self.assertNotIn("kinformer-staleness-seconds", headers)
        wait_until(lambda: self.cached("w") is not None, "the created object in the cache")
        patch = json.dumps({"data": {"value": "two"}})
        status, _, body = send(self.sidecar, "PATCH", MAPS + "/w", patch,
                               **{"Content-Type": "application/merge-patch+json"})
        self.assertEqual(status, 200, body)
        wait_until(lambda: self.cached("w")["data"]["value"] == "two", "the patch in the cache")
        status, _, body = send(self.sidecar, "PUT", MAPS + "/w", config_map("w", NAMESPACE, "three"))
        self.assertEqual(status, 200, body)
        wait_until(lambda: self.cached("w")["data"]["value"] == "three", "the replacement in the cache")
        status, _, body = send(self.sidecar, "DELETE", MAPS + "/w", json.dumps(
            {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}))
        self.assertEqual(status, 200, body)
        wait_until(lambda: self.cached("w") is None, "the deletion in the cache")

    def test_a_chunked_body_goes_on(self):
        body = config_map("chunked", NAMESPACE, "x" * 50000).encode()
        pieces = (body[i:i + 1000] for i in range(0, len(body), 1000))
        status, _, answer = send(self.sidecar, "POST", MAPS, pieces, chunked=True)
        self.assertEqual(status, 201, answer)

    def test_the_callers_rights_count_and_the_servers_words(self):
        for method, target, body in (("POST", MAPS, config_map("no", NAMESPACE)), ("DELETE", MAPS + "/no", None),
                                     ("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets", None),
                                     ("GET", "/private", None)):
            ours = send(self.sidecar, method, target, body, user="token")
            theirs = self.direct_as("token", method, target, body)
            self.assertEqual(ours[0], 403, target)
            self.assertEqual((ours[0], ours[2]), (theirs[0], theirs[2]))

    def direct_as(self, user, method, target, body=None, **headers):
        class Plain:
            open = staticmethod(self.direct_without_certificate)
        return send(Plain, method, target, body, user=user, **headers)

    @staticmethod
    def direct_without_certificate():
        server = cluster().env["KINF_SERVER"].removeprefix("https://")
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return http.client.HTTPSConnection(server, context=context, timeout=PATIENCE)

    def test_nothing_goes_on_without_a_token(self):
        for method, target in (("POST", MAPS), ("DELETE", MAPS + "/x"), ("GET", "/api/v1/secrets"),
                               ("GET", "/openapi/v3"), ("GET", "/api/v1/configmaps"),
                               ("GET", f"/api/v1/namespaces/{NAMESPACE}/pods/x/log")):
            status, _, body = send(self.sidecar, method, target, "{}" if method == "POST" else None, user=None)
            self.assertEqual((status, json.loads(body)["reason"]), (401, "Unauthorized"), target)
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self.sidecar.socket)
        with connection:
            connection.sendall(b"GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            self.assertTrue(connection.recv(65536).startswith(b"HTTP/1.1 401 "))
        status, _, body = send(self.sidecar, "GET", "/api/v1/secrets", user=None, Authorization="Bearer nonsense")
        self.assertEqual((status, json.loads(body)["message"]), (401, "Unauthorized"))

    def test_a_token_behind_two_blanks_is_none(self):
        twice = {"Authorization": bearer()["Authorization"].replace(" ", "  ")}
        before = self.passed()
        self.assertEqual(send(self.sidecar, "GET", "/api/v1/secrets", user=None, **twice)[0], 401)
        self.assertEqual(self.passed(), before)
        status, _, body = self.direct_as(None, "GET", "/api/v1/secrets", **twice)
        self.assertEqual(status, 403)
        self.assertIn("system:anonymous", json.loads(body)["message"])

    def test_a_remote_user_is_nobody(self):
        names = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
        review = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
        target = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        status, _, body = send(self.sidecar, "POST", target, review, user="token", **names)
        self.assertEqual(status, 201, body)
        self.assertEqual(json.loads(body)["status"]["userInfo"]["username"], "reader")

    @needs_cluster("impersonation")
    def test_impersonation_is_for_those_who_may(self):
        target = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        review = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
        status, _, body = send(self.sidecar, "POST", target, review, **{"Impersonate-User": "jane"})
        self.assertEqual(json.loads(body)["status"]["userInfo"]["username"], "jane")
        status, _, body = send(self.sidecar, "POST", target, review, user="token", **{"Impersonate-User": "jane"})
        self.assertEqual(status, 403, body)
        status, headers, body = send(self.sidecar, "GET", MAPS, **{"Impersonate-User": "jane"})
        self.assertEqual((status, headers["kinformer-source"]), (403, "upstream"))
        status, headers, body = send(self.sidecar, "GET", MAPS, user=None, **{"Impersonate-User": "jane"})
        self.assertEqual(status, 401, body)

    def test_a_pruned_type_is_patched_and_not_replaced(self):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": NAMESPACE},
               "spec": {"containers": [{"name": "c", "image": "i"}]}}
        pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
        status, _, body = send(self.sidecar, "POST", pods, json.dumps(pod))
        self.assertEqual(status, 201, body)
        status, _, body = send(self.sidecar, "PUT", pods + "/p", body)
        self.assertEqual(status, 405, body)
        self.assertIn("PATCH", json.loads(body)["message"])
        # A subresource has a body of its own: the API server says what it is.
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": NAMESPACE}}
        status, headers, body = send(self.sidecar, "PUT", pods + "/p/eviction", json.dumps(eviction))
        self.assertEqual((status, headers["kinformer-source"]), (405, "upstream"), body)
        status, _, body = send(self.sidecar, "PATCH", pods + "/p", json.dumps({"metadata": {"labels": {"a": "b"}}}),
                               **{"Content-Type": "application/merge-patch+json"})
        self.assertEqual(status, 200, body)
        status, _, body = send(self.sidecar, "DELETE", pods + "/p?gracePeriodSeconds=0")
        self.assertEqual(status, 200, body)

    def test_tricks_with_targets_end_here(self):
        before = self.passed()
        for target in ("/api/v1/namespaces/../secrets", "/api/v1/namespaces/%2e%2e/secrets",
                       "/api/v1/namespaces/a%2fsecrets", "/api/v1/namespaces/a%00/secrets",
                       "http://127.0.0.1/api/v1/secrets", "/api/v1/secrets#x", "/openapi/../api/v1/secrets"):
            for method in ("GET", "POST"):
                status, _, body = send(self.sidecar, method, target)
                self.assertEqual(status, 400, (target, body))
        self.assertEqual(self.passed(), before)

    def test_a_write_of_two_paths_stays_here(self):
        before = self.passed()
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            for target in ("/" + MAPS, f"/api/v1//namespaces/{NAMESPACE}/configmaps/x"):
                status, _, body = send(self.sidecar, method, target, "{}")
                self.assertEqual((status, json.loads(body)["reason"]), (400, "BadRequest"), (method, target))
        status, _, body = send(self.sidecar, "put", f"/api/v1/namespaces/{NAMESPACE}/pods/x", "{}")
        self.assertEqual((status, json.loads(body)["reason"]), (405, "MethodNotAllowed"))
        self.assertEqual(self.passed(), before)

    def raw(self, text):
        """The head and the body of the first answer, whose length is told."""
        host, port = self.sidecar.address.split(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
            connection.sendall(text.encode())
            got = b""
            while b"\r\n\r\n" not in got:
                piece = connection.recv(65536)
                if not piece:
                    return got.decode(), ""
                got += piece
            head, body = got.split(b"\r\n\r\n", 1)
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            while length and len(body) < int(length.group(1)):
                body += connection.recv(65536)
            return head.decode(), body.decode()

    def test_a_body_of_two_lengths_stays_here(self):
        before = self.passed()
        for lengths in ("Transfer-Encoding: chunked\r\nContent-Length: 5", "Content-Length: 5\r\nContent-Length: 6",
                        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"):
            head, _ = self.raw(f"POST {MAPS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: "
                               f"{bearer()['Authorization']}\r\n{lengths}\r\n\r\n0\r\n\r\nDELETE")
            self.assertRegex(head, "^HTTP/1.1 (400|501) ", lengths)
        self.assertEqual(self.passed(), before)

    def test_headers_do_not_smuggle_others(self):
        review = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
        for trick in ("Accept: application/json\r\n X-Remote-User: admin",
                      "Accept: application/json\rX-Remote-User: admin",
                      "Accept: application/json\nX-Remote-User: admin", "Connection: Authorization, X-Remote-User",
                      "Connection: close\r\nX-Remote-User : admin", "TE: trailers\r\nTrailer: X-Remote-User"):
            head, body = self.raw("POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\n"
                                  "Host: localhost\r\n"
                                  f"Authorization: Bearer {token_of('token')}\r\nContent-Type: application/json\r\n"
                                  f"{trick}\r\nX-Remote-Group: system:masters\r\nContent-Length: {len(review)}\r\n"
                                  f"\r\n{review}")
            if " 201 " in head.split("\r\n")[0]:
                self.assertEqual(json.loads(body)["status"]["userInfo"]["username"], "reader", trick)
            else:
                self.assertTrue(head.startswith("HTTP/1.1 400 "), (trick, head))

    @needs_cluster("that nothing is collected")
    def test_an_orphaning_deletion_is_the_servers(self):
        for name, query, options in (("orphan-q", "?propagationPolicy=Orphan", None),
                                     ("orphan-o", "", {"propagationPolicy": "Orphan"})):
            status, _, body = send(self.sidecar, "POST", MAPS, config_map(name, NAMESPACE))
            self.assertEqual(status, 201, body)
            status, _, body = send(self.sidecar, "DELETE", f"{MAPS}/{name}{query}", options and json.dumps(
                {"apiVersion": "v1", "kind": "DeleteOptions", **options}))
            self.assertEqual(status, 200, body)

            # The garbage collector would let go of the dependents, and then of the object.
            def is_terminating():
                metadata = (self.cached(name) or {"metadata": {}})["metadata"]
                return "deletionTimestamp" in metadata and metadata["finalizers"] == ["orphan"]
            wait_until(is_terminating, "an object in the cache that waits for the garbage collector")
            status, _, body = send(self.sidecar, "PATCH", f"{MAPS}/{name}", '{"metadata":{"finalizers":null}}',
                                   **{"Content-Type": "application/merge-patch+json"})
            self.assertEqual(status, 200, body)
            wait_until(lambda: self.cached(name) is None, "the object gone")

    def test_what_a_kubelet_answers_is_the_servers(self):
        pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "kubelet"},
               "spec": {"containers": [{"name": "c", "image": "i"}]}}
        status, _, body = send(self.sidecar, "POST", pods, json.dumps(pod))
        self.assertEqual(status, 201, body)
        for method, rest in (("GET", "log"), ("GET", "log?follow=true&tailLines=1"),
                             ("GET", "exec?command=ls&stdout=1"), ("POST", "exec?command=ls&stdout=1"),
                             ("POST", "attach"), ("POST", "portforward"), ("GET", "proxy/a//b")):
            ours = send(self.sidecar, method, f"{pods}/kubelet/{rest}")
            theirs = send(self.direct, method, f"{pods}/kubelet/{rest}", user=None)
            self.assertEqual((ours[0], ours[2]), (theirs[0], theirs[2]), rest)
            self.assertEqual(ours[1]["kinformer-source"], "upstream")
        for rest in ("exec?command=ls&stdout=1", "attach", "portforward?ports=80"):
            for method, protocol in (("POST", "SPDY/3.1"), ("GET", "websocket")):
                ours = send(self.sidecar, method, f"{pods}/kubelet/{rest}", Connection="Upgrade", Upgrade=protocol)
                theirs = send(self.direct, method, f"{pods}/kubelet/{rest}", user=None, Connection="Upgrade",
                              Upgrade=protocol)
                self.assertEqual((ours[0], ours[2]), (theirs[0], theirs[2]), rest)
                self.assertEqual(ours[1]["kinformer-source"], "upstream")
        status, _, body = send(self.sidecar, "DELETE", f"{pods}/kubelet?gracePeriodSeconds=0")
        self.assertEqual(status, 200, body)

    def test_the_methods_that_are_not_passed_on_are_refused(self):
        for method in ("HEAD", "OPTIONS", "TRACE"):
            for target in (MAPS, "/openapi/v3"):
                status, headers, _ = send(self.sidecar, method, target)
                self.assertIn(status, (404, 405), (method, target))
                self.assertNotIn("kinformer-source", headers)

    def passed(self):
        text = ask(self.sidecar, "/metrics")[2].decode()
        return sum(map(int, re.findall(r'^kinformer_requests_total{.*source="upstream".*} (\d+)$', text, re.M)))

    def test_upgrades_that_are_not_passed_on_are_refused_in_words(self):
        for method, target, body in (("GET", "/metrics", None), ("POST", MAPS, "{}"), ("DELETE", MAPS + "/x", None)):
            status, _, body = send(self.sidecar, method, target, body, Connection="Upgrade", Upgrade="websocket")
            self.assertEqual(status, 403, body)
            self.assertIn("upgraded connections", json.loads(body)["message"])
        status, headers, _ = send(self.sidecar, "GET", MAPS, Connection="Upgrade, HTTP2-Settings", Upgrade="h2c")
        self.assertEqual(status, 200)
        self.assertNotIn("kinformer-source", headers)

    def test_what_is_wider_than_the_cache_goes_on(self):
        status, headers, body = send(self.sidecar, "GET", "/api/v1/configmaps")
        self.assertEqual((status, headers["kinformer-source"]), (200, "upstream"))
        self.assertIn("kube-system", {item["metadata"]["namespace"] for item in json.loads(body)["items"]})
        status, headers, _ = send(self.sidecar, "GET", MAPS)
        self.assertEqual(status, 200)
        self.assertNotIn("kinformer-source", headers)
        for target in ("/api/v1/nodez", "/api/v1/services", "/apis/apps/v1/deployments", "/nope",
                       f"/api/v1/namespaces/{NAMESPACE}/configmaps/x/status"):
            ours, theirs = send(self.sidecar, "GET", target), send(self.direct, "GET", target, user=None)
            self.assertEqual(ours[0], theirs[0], target)
            if ours[0] != 200:
                self.assertEqual(ours[2], theirs[2])

    @needs_cluster("OpenAPI, compressed")
    def test_openapi_is_fetched_through(self):
        for target in ("/openapi/v3", "/openapi/v2"):
            wait_until(lambda: self.is_same(target), f"{target}, which changes while the server starts")
        status, headers, body = send(self.sidecar, "GET", "/openapi/v2", **{"Accept-Encoding": "gzip"})
        self.assertEqual((status, headers["content-encoding"]), (200, "gzip"))
        self.assertEqual(json.loads(gzip.decompress(body))["swagger"], "2.0")

        def is_unchanged():
            etag = send(self.sidecar, "GET", "/openapi/v2")[1]["etag"]
            status, _, body = send(self.sidecar, "GET", "/openapi/v2", **{"If-None-Match": etag})
            return (status, body) == (304, b"")
        wait_until(is_unchanged, "304")

    def is_same(self, target):
        ours, theirs = send(self.sidecar, "GET", target), send(self.direct, "GET", target, user=None)
        self.assertEqual(ours[0], 200)
        self.assertEqual(ours[1].get("content-type"), theirs[1].get("content-type"))
        return ours[2] == theirs[2]

    @needs_cluster("kubectl")
    def test_discovery_is_complete_for_those_with_a_token(self):
        AddToken.target = self.sidecar.address
        server = self.enterContext(relay.listening(AddToken))
        args = ["api-resources", "-o", "wide", "--sort-by=name"]

        def is_same():
            with tempfile.TemporaryDirectory() as cache:
                ours, theirs = (subprocess.run(
                    [KUBECTL, "--cache-dir", os.path.join(cache, str(i)), *where, *args], check=True,
                    stdout=subprocess.PIPE, text=True, timeout=PATIENCE).stdout for i, where in enumerate((
                        ("--kubeconfig", "/dev/null", "--server", f"http://127.0.0.1:{server.server_port}"),
                        ("--kubeconfig", cluster().kubeconfig()))))
            return ours == theirs
        wait_until(is_same, "what kubectl lists through the daemon, and from the server")

    def test_long_bodies_have_a_limit(self):
        status, _, body = send(self.sidecar, "POST", MAPS, big_map("big", 900 << 10))
        self.assertEqual(status, 201, body[:500])
        wait_until(lambda: self.cached("big") is not None, "the big object in the cache")
        status, headers, body = send(self.sidecar, "POST", MAPS, big_map("bigger", 2 << 20))
        self.assertEqual((status, headers["kinformer-source"]), (422, "upstream"), body[:500])
        for chunked in (False, True):
            body = big_map("biggest", 4 << 20)
            status, _, answer = send(self.sidecar, "POST", MAPS, [body.encode()] if chunked else body,
                                     chunked=chunked)
            self.assertEqual((status, json.loads(answer)["reason"]), (413, "RequestEntityTooLarge"))
        self.assertIsNone(self.cached("biggest"))

    def test_a_slow_upload_arrives(self):
        connection = self.sidecar.open()
        body = config_map("slow", NAMESPACE, "y" * 3000).encode()
        connection.putrequest("POST", MAPS)
        for name, value in {**bearer(), "Content-Type": "application/json", "Content-Length": str(len(body))}.items():
            connection.putheader(name, value)
        connection.endheaders()
        for i in range(0, len(body), 500):
            connection.send(body[i:i + 500])
            time.sleep(0.05)
        self.assertEqual(connection.getresponse().status, 201)
        connection.close()

    @needs_sim("it is a proxy that holds up, for half a minute")
    def test_an_upload_that_the_server_holds_up_arrives(self):
        # What does not fit into the sockets on the way waits in the daemon.
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with tempfile.TemporaryDirectory() as folder, Proxy(listener=listener) as proxy, \
                Sidecar({"resource": "namespaces"}, kubeconfig=proxy.kubeconfig(folder)) as sidecar:
            for size in range(2_000_000, 2_000_005):
                self.assertEqual(send(sidecar, "POST", MAPS, big_map("held", size))[0], 422)
            # Of a piece that is taken in part the library gives the rest with the next one, which may never come.
            self.assertNotIn("incomplete upload", sidecar.daemon.log_text())

            body = big_map("held", 2_900_000).encode()
            n_sent = proxy.n_sent
            connection = sidecar.open()
            connection.putrequest("POST", MAPS)
            for name, value in {**bearer(), "Content-Type": "application/json", "Content-Length": str(len(body))}.items():
                connection.putheader(name, value)
            connection.endheaders()
            connection.send(body[:100_000])
            wait_until(lambda: proxy.n_sent - n_sent > 50_000, "the upload is under way")
            proxy.hold.set()
            thread = threading.Thread(target=connection.send, args=(body[100_000:],))
            thread.start()
            # Longer than a client may take for its body: it is not the client's fault.
            time.sleep(32)
            proxy.hold.clear()
            # 504: the API server has not been patient enough.
            self.assertIn(connection.getresponse().status, (422, 504))
            thread.join(PATIENCE)
            connection.close()
            sidecar.daemon.stop()

    def test_a_slow_reader_gets_everything(self):
        def read_slowly():
            connection = self.sidecar.open()
            connection.connect()
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            connection.request("GET", "/openapi/v2", headers=bearer())
            answer = connection.getresponse()
            got = b""
            for _ in range(20):
                got += answer.read(4096)
                time.sleep(0.02)
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            got += answer.read()
            connection.close()
            return got
        wait_until(lambda: read_slowly() == send(self.direct, "GET", "/openapi/v2", user=None)[2], "the same bytes")

    def test_watches_go_on(self):
        version = json.loads(send(self.sidecar, "GET", "/api/v1/services")[2])["metadata"]["resourceVersion"]
        watched = f"/api/v1/configmaps?watch=1&resourceVersion={version}"
        with Watch(self.sidecar, watched, bearer()) as watch:
            self.assertEqual(watch.answer.getheader("kinformer-source"), "upstream")
            send(self.sidecar, "POST", MAPS, config_map("seen", NAMESPACE))
            events = watch.until(lambda event: event["object"]["metadata"]["name"] == "seen")
            self.assertEqual(events[-1]["type"], "ADDED")

    def test_a_client_that_leaves_leaves_nothing_behind(self):
        def under_way():
            return json.loads(ask(self.sidecar, "/debug/state")[2])["underWay"]
        before = under_way()
        watches = [Watch(self.sidecar, "/api/v1/services?watch=1", bearer()) for _ in range(5)]
        self.assertGreaterEqual(under_way(), before + 5)
        for watch in watches:
            watch.__exit__()
        wait_until(lambda: under_way() <= before, "the watches gone")


# Whatever other tests left elsewhere: what is under way at a stop fits into the sockets' buffers.
SMALL = "/api/v1/namespaces/kube-system/configmaps"


class LifeTest(unittest.TestCase):
    @again_if_slow
    def test_a_stop_ends_fifty_forwarded_watches_between_lines(self):
        with Sidecar({"resource": "namespaces"}) as sidecar:
            watches = [Watch(sidecar, SMALL + "?watch=1", bearer()) for _ in range(50)]
            for watch in watches:
                self.assertEqual(watch.status, 200)
                self.assertEqual(watch.next()["type"], "ADDED")
            ends = []

            def drain(watch):
                ends.append(watch.until(lambda _: False))
            threads = [threading.Thread(target=drain, args=(watch,)) for watch in watches]
            for thread in threads:
                thread.start()
            seconds = sidecar.daemon.stop(within=2.0)
            for thread in threads:
                thread.join(PATIENCE)
            self.assertEqual(len(ends), 50)
            print(f"  stopped with 50 forwarded watches in {seconds:.2f} s")
            for watch in watches:
                watch.__exit__()

    def test_a_caller_has_a_quarter_of_the_room_and_others_have_the_rest(self):
        with Sidecar({"resource": "namespaces"}) as sidecar:
            watches = [Watch(sidecar, "/api/v1/services?watch=1", bearer()) for _ in range(64)]
            self.assertEqual({watch.status for watch in watches}, {200})
            for authorization in (bearer()["Authorization"], bearer()["Authorization"] + " more",
                                  bearer()["Authorization"].replace("Bearer", "bEARER")):
                status, headers, body = send(sidecar, "GET", "/api/v1/services", user=None,
                                             Authorization=authorization)
                self.assertEqual((status, headers["retry-after"]), (429, "1"), body)
                self.assertEqual(json.loads(body)["reason"], "TooManyRequests")
            self.assertEqual(self.crowded(sidecar), 3)
            status, headers, _ = send(sidecar, "GET", "/api/v1/services", user="token")
            self.assertEqual((status, headers["kinformer-source"]), (403, "upstream"))
            watches[0].__exit__()
            wait_until(lambda: send(sidecar, "GET", "/api/v1/services")[0] == 200, "room again")
            for watch in watches[1:]:
                watch.__exit__()

    @staticmethod
    def crowded(sidecar):
        text = ask(sidecar, "/metrics")[2].decode()
        return int(re.search(r"^kinformer_requests_crowded_total (\d+)", text, re.M).group(1))

    def test_made_up_tokens_do_not_take_the_room_of_others(self):
        with Sidecar({"resource": "namespaces"}) as sidecar:
            self.assertEqual(send(sidecar, "GET", "/api/v1/services")[0], 200)
            held = []

            def is_crowded():
                held.append(sidecar.open())
                held[-1].putrequest("POST", "/api/v1/namespaces/default/services")
                held[-1].putheader("Authorization", f"Bearer made-up-{len(held)}")
                held[-1].putheader("Content-Length", "1000")
                held[-1].endheaders(b"{")
                return self.crowded(sidecar) > 0
            while not is_crowded():
                self.assertLess(len(held), 256)
            self.assertGreaterEqual(len(held), 128)
            self.assertEqual(send(sidecar, "GET", "/api/v1/services")[0], 200)
            for connection in held:
                connection.close()

    def test_a_server_that_is_down_is_said_to_be(self):
        with tempfile.TemporaryDirectory() as folder, Proxy() as proxy:
            with Sidecar({"resource": "namespaces"}, kubeconfig=proxy.kubeconfig(folder)) as sidecar:
                self.assertEqual(send(sidecar, "GET", "/api/v1/configmaps")[0], 200)
                proxy.refuse()
                # What was written on the connection that breaks may have arrived: that is 504.
                wait_until(lambda: send(sidecar, "GET", "/api/v1/configmaps")[0] == 503, "no connection is left")
                for method in ("GET", "POST"):
                    status, _, body = send(sidecar, method, "/api/v1/configmaps", "{}" if method == "POST" else None)
                    self.assertEqual((status, json.loads(body)["reason"]), (503, "ServiceUnavailable"), body)
                self.assertEqual(send(sidecar, "GET", "/api/v1/namespaces", user=None)[0], 200)

    def test_a_write_that_is_under_way_at_a_stop_may_be_done(self):
        """503 would say that it went nowhere."""
        def exists():
            return cluster().try_kubectl("get", "configmap", "under-way", "-n", "default")
        path = "/api/v1/namespaces/default/configmaps"
        for method, target, body, is_done in (("POST", path, config_map("under-way", "default"), exists),
                                              ("DELETE", path + "/under-way", None, lambda: not exists())):
            with tempfile.TemporaryDirectory() as folder, Proxy() as proxy, \
                 Sidecar({"resource": "namespaces"}, kubeconfig=proxy.kubeconfig(folder)) as sidecar:
                self.assertEqual(send(sidecar, "GET", path)[0], 200)  # on a connection that the write has, too
                proxy.stall.set()
                codes = []
                writer = threading.Thread(target=lambda: codes.append(send(sidecar, method, target, body)[0]))
                writer.start()
                wait_until(is_done, "the server has carried it out")
                sidecar.daemon.stop()
                writer.join()
                self.assertEqual(codes, [504])

    def test_latest_reads_see_a_write_at_once(self):
        with Sidecar({"resource": "configmaps", "consistency": "latest"}) as sidecar:
            for i in range(20):
                name = f"latest-{i}"
                status, _, body = send(sidecar, "POST", "/api/v1/namespaces/default/configmaps",
                                       config_map(name, "default"))
                self.assertEqual(status, 201, body)
                status, headers, _ = send(sidecar, "GET", "/api/v1/namespaces/default/configmaps/" + name)
                self.assertEqual((status, headers["kinformer-source"]), (200, "upstream"))
            first = json.loads(send(sidecar, "GET", "/api/v1/configmaps?limit=2")[2])
            second = json.loads(send(sidecar, "GET",
                                     "/api/v1/configmaps?limit=2&continue=" + first["metadata"]["continue"])[2])
            self.assertEqual(len(second["items"]), 2)
            status, headers, _ = send(sidecar, "GET", "/api/v1/configmaps?resourceVersion=0")
            self.assertEqual(status, 200)
            self.assertNotIn("kinformer-source", headers)
            self.assertEqual(send(sidecar, "GET", "/api/v1/configmaps", user=None)[0], 401)

    def test_nothing_is_passed_on_unless_asked_for(self):
        with Sidecar({"resource": "configmaps", "namespaces": ["default"]}, pass_through=False) as sidecar:
            for method, target, code in (("POST", "/api/v1/namespaces/default/configmaps", 405),
                                         ("DELETE", "/api/v1/namespaces/default/configmaps/x", 405),
                                         ("PATCH", "/api/v1/namespaces/default/configmaps/x", 405),
                                         ("GET", "/api/v1/configmaps", 403), ("GET", "/openapi/v3", 404),
                                         ("GET", "/api/v1/secrets", 403)):
                body = "{}" if method in ("POST", "PATCH") else None
                self.assertEqual(send(sidecar, method, target, body)[0], code, (method, target))

    def test_latest_needs_the_way_to_the_server(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "c.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write("resources:\n- resource: pods\n  consistency: latest\n")
            code, _, err = run_daemon("--config", path, "--check-config")
            self.assertEqual(code, 2)
            self.assertIn("passThrough", err)


if __name__ == "__main__":
    unittest.main()
