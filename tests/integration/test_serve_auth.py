"""Who may read over TLS: tokens and rights as the API server judges them, certificates that change, refused starts."""

import base64
import collections
import contextlib
import http.client
import json
import os
import re
import secrets
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

import relay
from harness import (PATIENCE, Daemon, Proxy, cluster, config_map, make_key_pair, needs_cluster, run_daemon,
                     wait_until)
from test_serve import Direct, Served, Watch, ask
from test_serve_hostile import connect, cpu_seconds

SPACE = "auth-one"
OTHER = "auth-two"
LIST = f"/api/v1/namespaces/{SPACE}/configmaps"


def make_pair(folder, name="localhost"):
    """A certificate of its own and its key, put in place of what is there."""
    make_key_pair(folder + "/new", name)
    os.replace(folder + "/new.key", folder + "/tls.key")
    os.replace(folder + "/new.crt", folder + "/tls.crt")


def write_tls_config(folder, *lines):
    path = os.path.join(folder, "config.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"tls:\n  certFile: {folder}/tls.crt\n  keyFile: {folder}/tls.key\n")
        file.writelines(line + "\n" for line in lines)
        file.write("resources:\n- resource: configmaps\n- resource: secrets\n")
    return path


class Guarded(Served):
    """A daemon that takes tokens over TLS."""

    def __init__(self, kubeconfig=None, mode="asan", stale="0s", keep="1s"):
        self.folder = tempfile.TemporaryDirectory()
        self.kubeconfig = os.path.join(self.folder.name, "kubeconfig")
        make_pair(self.folder.name)
        config = write_tls_config(self.folder.name, "auth: delegated", f"authAllowFor: {keep}", f"authDenyFor: {keep}",
                                  f"authStaleFor: {stale}", 'listen: ["127.0.0.1:0"]')
        self.daemon = Daemon("--write-kubeconfig", self.kubeconfig, config=config, kubeconfig=kubeconfig, events=False,
                             mode=mode)

    def __enter__(self):
        wait_until(lambda: self.daemon.check() or os.path.exists(self.kubeconfig), "the kubeconfig")
        with open(self.kubeconfig, encoding="utf-8") as file:
            self.address = re.search(r"server: https://(\S+)", file.read()).group(1)
        self.open = lambda: http.client.HTTPSConnection(self.address, context=self.trust(), timeout=PATIENCE)
        wait_until(lambda: self.daemon.check() or ask(self, "/readyz")[0] == 200, "ready")
        return self

    def trust(self):
        return ssl.create_default_context(cafile=self.folder.name + "/tls.crt")


def make_account(name, *rules):
    """A ServiceAccount with a role in SPACE; returns its token."""
    cluster().kubectl("create", "serviceaccount", name, "-n", SPACE)
    if rules:
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
                "metadata": {"name": name, "namespace": SPACE}, "rules": list(rules)}
        cluster().kubectl("create", "-f", "-", stdin=json.dumps(role))
        cluster().kubectl("create", "rolebinding", name, "-n", SPACE, "--role", name, "--serviceaccount",
                          f"{SPACE}:{name}")
    return cluster().kubectl("create", "token", name, "-n", SPACE).strip()


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed_again(token, seconds, not_before=-7200):
    """The same token, as the API server would have signed it with an end so many seconds from now, and a beginning."""
    head, claims, _ = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(claims + "=="))
    now = int(time.time())
    claims.update(exp=now + seconds, iat=now - 7200, nbf=now + not_before)
    text = head + "." + encode(json.dumps(claims).encode())
    key = os.path.join(cluster().folder, "pki", "service-account.key")
    done = subprocess.run(["openssl", "dgst", "-sha256", "-sign", key], input=text.encode(), stdout=subprocess.PIPE,
                          check=True)
    # SEQUENCE of two INTEGERs, of which tokens have the 32 bytes alone.
    first = done.stdout[4:4 + done.stdout[3]]
    second = done.stdout[6 + done.stdout[3]:]
    return text + "." + encode(b"".join(number.lstrip(b"\0").rjust(32, b"\0") for number in (first, second)))


def rule(*verbs, resource="configmaps", **more):
    return {"apiGroups": [""], "resources": [resource], "verbs": list(verbs), **more}


def setUpModule():
    for name in (SPACE, OTHER):
        cluster().make_namespace(name)
        cluster().kubectl("create", "-f", "-", stdin=config_map("one", name))


def tearDownModule():
    cluster().kubectl("delete", "namespace", SPACE, OTHER, "--wait=false")


@needs_cluster("roles, tokens of accounts")
class Access(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.reader = make_account("reader", rule("get", "list", "watch"))
        cls.nobody = make_account("nobody")
        cls.guarded = cls.enterClassContext(Guarded())

    def code(self, target, token=None, **headers):
        if token is not None:
            headers["Authorization"] = "Bearer " + token
        return ask(self.guarded, target, headers=headers)[0]

    def wait_for_code(self, code, target, token):
        wait_until(lambda: self.code(target, token) == code, f"{code} for {target}")

    def test_nobody_without_a_token_reads(self):
        for target in (LIST, "/api", "/apis", "/version", "/metrics", "/debug/state", "/", "/readyz/configmaps"):
            self.assertEqual(self.code(target), 401, target)
        self.assertEqual(self.code("/readyz"), 200)

    def test_what_is_no_token_is_nobody(self):
        self.assertEqual(self.code(LIST, "garbage"), 401)
        self.assertEqual(self.code(LIST, self.reader[:-8] + "AAAAAAAA"), 401)
        self.assertEqual(self.code(LIST, Authorization="Basic dTpw"), 401)
        self.assertEqual(self.code(LIST, Authorization="Bearer "), 401)
        self.assertEqual(self.code(LIST, Authorization="Bearer  " + self.reader), 401)

    def test_a_token_that_ended_is_nobodys(self):
        self.wait_for_code(200, LIST, signed_again(self.reader, 3600))
        self.assertEqual(self.code(LIST, signed_again(self.reader, -3600)), 401)

    def test_a_watch_ends_with_its_token(self):
        # Long enough to be reviewed; the API server is lenient for another minute.
        token = signed_again(self.reader, 10)
        self.wait_for_code(200, LIST, token)
        with Watch(self.guarded, LIST + "?watch=1&allowWatchBookmarks=1&timeoutSeconds=3600",
                   {"Authorization": "Bearer " + token}) as watch:
            self.assertEqual(watch.status, 200)
            self.assertEqual({event["type"] for event in watch.until(lambda event: False)}, {"ADDED", "BOOKMARK"})

    def test_rights_are_those_of_the_api_server(self):
        self.wait_for_code(200, LIST, self.reader)
        self.assertEqual(self.code(LIST, self.nobody), 403)
        self.assertEqual(self.code("/api/v1/configmaps", self.reader), 403)
        self.assertEqual(self.code(f"/api/v1/namespaces/{OTHER}/configmaps", self.reader), 403)
        self.assertEqual(self.code(LIST + "/one", self.reader), 200)
        self.assertEqual(self.code("/metrics", self.reader), 403)
        self.assertEqual(self.code("/debug/state", self.reader), 403)
        self.assertEqual(self.code("/api", self.reader), 200)

    def test_answers_that_are_kept_for_no_time_are_asked_for_each_request(self):
        with Guarded(keep="0") as guarded:
            for n in (1, 2, 3):
                self.assertEqual(ask(guarded, LIST, headers={"Authorization": "Bearer " + self.nobody})[0], 403)
                self.assertEqual(guarded.daemon.log_text().count("POST /apis/authorization.k8s.io/v1/subjectaccessreviews "), n)

    def test_a_right_to_one_name_is_enough_for_its_field_selector(self):
        token = make_account("one-name", rule("list", resourceNames=["one"]))
        self.wait_for_code(200, LIST + "?fieldSelector=metadata.name%3Done", token)
        self.assertEqual(self.code(LIST, token), 403)
        self.assertEqual(self.code(LIST + "?fieldSelector=metadata.name%3Dtwo", token), 403)
        self.assertEqual(self.code(LIST + "?fieldSelector=metadata.name%21%3Done", token), 403)

    def test_watching_is_another_right_than_listing(self):
        token = make_account("watcher", rule("watch"))
        self.wait_for_code(200, LIST + "?watch=1&timeoutSeconds=1", token)
        self.assertEqual(self.code(LIST, token), 403)

    def test_paths_of_watches_are_reviewed_and_answered_as_by_the_api_server(self):
        authority = ssl.create_default_context(cafile=os.path.join(cluster().folder, "pki", "ca.crt"))
        server = cluster().env["KINF_SERVER"].removeprefix("https://")

        class Real:
            @staticmethod
            def open():
                return http.client.HTTPSConnection(server, context=authority, timeout=PATIENCE)
        tokens = {"lists": make_account("lists", rule("get", "list")), "watches": make_account("watches", rule("watch")),
                  "watches-one": make_account("watches-one", rule("watch", resourceNames=["one"]))}
        path, one = f"/api/v1/watch/namespaces/{SPACE}/configmaps", "/one?timeoutSeconds=1"
        self.wait_for_code(200, LIST, tokens["lists"])
        self.wait_for_code(200, path + "?timeoutSeconds=1", tokens["watches"])
        self.wait_for_code(200, path + one, tokens["watches-one"])
        targets = [path + "?timeoutSeconds=1", path + one, path + "/two?timeoutSeconds=1", path + "?timeoutSeconds=1&watch=0",
                   path + "?timeoutSeconds=1&fieldSelector=metadata.name%3Done", path + one + "&fieldSelector=metadata.name%3Dtwo",
                   path + one + "&labelSelector=a%3Db", "/api/v1/watch/configmaps?timeoutSeconds=1",
                   f"/api/v1/watch/namespaces/{OTHER}/configmaps/one?timeoutSeconds=1", "/api/v1/watch/nothings",
                   "/api/v1/watch/namespaces", f"/api/v1/watch/namespaces/{SPACE}"]

        def told(where, target, token):
            status, _, body = ask(where, target, headers={"Authorization": "Bearer " + token})
            return status, [json.loads(line) for line in body.splitlines()]
        seen = set()
        for who, token in tokens.items():
            for target in targets:
                real, ours = (told(where, target, token) for where in (Real, self.guarded))
                self.assertEqual(ours, real, (who, target))
                seen.add((who, real[0]))
        self.assertEqual(seen, {("lists", 403), ("watches", 200), ("watches", 400), ("watches", 403), ("watches-one", 200),
                                ("watches-one", 400), ("watches-one", 403)})

    def test_nobody_is_somebody_else(self):
        self.assertEqual(self.code(LIST, self.reader, **{"Impersonate-User": "admin"}), 403)
        self.assertEqual(self.code(LIST, **{"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}), 401)
        self.assertEqual(self.code(LIST, self.nobody, **{"X-Remote-User": "admin",
                                                         "X-Remote-Group": "system:masters"}), 403)

    def test_a_right_taken_away_ends(self):
        token = make_account("short", rule("list"))
        self.wait_for_code(200, LIST, token)
        cluster().kubectl("delete", "rolebinding", "short", "-n", SPACE)
        self.wait_for_code(403, LIST, token)

    def test_a_secret_that_is_not_named_is_not_served(self):
        token = make_account("secrets", rule("list", resource="secrets"))
        self.wait_for_code(200, "/api", token)
        target = f"/api/v1/namespaces/{SPACE}/secrets"
        wait_until(lambda: self.code(target, token) not in (429, 503), "an answer")
        status, _, body = ask(self.guarded, target, headers={"Authorization": "Bearer " + token})
        self.assertIn(status, (403, 404), body)
        self.assertEqual(json.loads(body)["kind"], "Status")

    def test_kubectl_with_a_token_reads(self):
        self.wait_for_code(200, LIST, self.reader)
        out = self.guarded.kubectl("--token", self.reader, "get", "configmaps", "-n", SPACE, "-o", "name")
        self.assertIn("configmap/one", out)

    def test_two_authorizations_are_none(self):
        connection = self.guarded.open()
        try:
            connection.putrequest("GET", LIST)
            connection.putheader("Authorization", "Bearer " + self.nobody)
            connection.putheader("Authorization", "Bearer " + self.reader)
            connection.endheaders()
            self.assertEqual(connection.getresponse().status, 401)
        finally:
            connection.close()


class Flood:
    """Four connections from 127.0.0.1, each with one made-up token after another."""

    def __init__(self, guarded):
        self.guarded, self.is_over, self.codes = guarded, threading.Event(), collections.Counter()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(4)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        wait_until(lambda: self.codes.total() > 200, "the flood")
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join()

    def run(self):
        connection = self.guarded.open()
        while not self.is_over.is_set():
            connection.request("GET", LIST, headers={"Authorization": "Bearer " + secrets.token_urlsafe(60)})
            answer = connection.getresponse()
            answer.read()
            self.codes[answer.status] += 1
        connection.close()


@needs_cluster("roles, tokens of accounts")
class MadeUpTokens(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.token = make_account("flooded", rule("get", "list", "watch"))
        cls.guarded = cls.enterClassContext(Guarded(mode="release"))

    def ask_from(self, address, token):
        """The code, and how long that took."""
        host, port = self.guarded.address.rsplit(":", 1)
        connection = http.client.HTTPSConnection(host, int(port), context=self.guarded.trust(), timeout=PATIENCE,
                                                 source_address=(address, 0))
        began = time.monotonic()
        try:
            connection.request("GET", LIST, headers={"Authorization": "Bearer " + token})
            return connection.getresponse().status, time.monotonic() - began
        finally:
            connection.close()

    def test_a_flood_of_made_up_tokens_refuses_no_valid_one(self):
        wait_until(lambda: self.ask_from("127.0.0.1", self.token)[0] == 200, "the right")
        fresh = [signed_again(self.token, 3600 + i) for i in range(60)]
        for address, slowest in (("127.0.0.3", 1), ("127.0.0.2", 1), ("127.0.0.1", 10)):
            with Flood(self.guarded) if address != "127.0.0.3" else contextlib.nullcontext():
                answers = [self.ask_from(address, fresh.pop()) for _ in range(20)]
            codes, took = zip(*answers)
            print(f"  20 fresh tokens from {address}: {collections.Counter(codes)}, median "
                  f"{sorted(took)[10] * 1000:.0f} ms, slowest {max(took) * 1000:.0f} ms")
            self.assertEqual(set(codes), {200})
            self.assertLess(max(took), slowest)

    def test_callers_that_left_keep_nobody_waiting(self):
        wait_until(lambda: self.ask_from("127.0.0.1", self.token)[0] == 200, "the right")
        fresh = signed_again(self.token, 5000)
        began = time.monotonic()
        for _ in range(500):
            connection = self.guarded.open()
            connection.request("GET", LIST, headers={"Authorization": "Bearer " + secrets.token_urlsafe(60)})
            connection.close()
        leaving = time.monotonic() - began
        code, took = self.ask_from("127.0.0.1", fresh)
        print(f"  500 callers left within {leaving:.1f} s; a fresh token behind them waits {took * 1000:.0f} ms")
        self.assertEqual(code, 200)
        # 50 a second would take what is left of ten seconds.
        self.assertLess(took, 2)

    def n_token_reviews(self):
        text = ask(Direct(), "/metrics")[2].decode()
        return sum(int(n) for n in re.findall(r'\napiserver_request_total\{[^}]*resource="tokenreviews"[^}]*\} (\d+)', text))

    def test_a_token_of_another_time_costs_no_review(self):
        wait_until(lambda: self.ask_from("127.0.0.1", self.token)[0] == 200, "the right")
        before = self.n_token_reviews()
        self.assertGreater(before, 0)
        # The first the API server would still take.
        for moved in ({"seconds": -5}, {"seconds": -3600}, {"seconds": 7200, "not_before": 3600}):
            self.assertEqual(self.ask_from("127.0.0.1", signed_again(self.token, **moved))[0], 401, moved)
        self.assertEqual(self.n_token_reviews(), before)


class Hanging(relay.Handler):
    """In front of the API server: reviews of one token get no answer until they may."""

    token = None
    may_go = threading.Event()
    n_hanging = 0

    def do_GET(self):
        self.hand_on(None)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.token is not None and self.token.encode() in body:
            Hanging.n_hanging += 1
            self.may_go.wait(PATIENCE)
        self.hand_on(body)

    def hand_on(self, body):
        headers = {name: self.headers[name] for name in ("Accept", "Content-Type") if name in self.headers}
        connection = Direct().open()
        try:
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.getheader("Content-Type", ""))
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while piece := answer.read1(65536):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
        except (OSError, http.client.HTTPException):
            self.close_connection = True
        finally:
            connection.close()


@needs_cluster("roles, tokens of accounts")
class SlowReviews(unittest.TestCase):
    def setUp(self):
        server = self.enterContext(relay.listening(Hanging))
        self.addCleanup(Hanging.may_go.set)
        Hanging.token, Hanging.n_hanging = None, 0
        Hanging.may_go.clear()
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.guarded = self.enterContext(Guarded(relay.kubeconfig_of(server, folder)))

    def ask(self, target, token):
        return ask(self.guarded, target, headers={"Authorization": "Bearer " + token})[0]

    def begin(self, target, token):
        """A request whose answer nobody reads yet."""
        connection = self.guarded.open()
        connection.request("GET", target, headers={"Authorization": "Bearer " + token})
        return connection

    def hang(self, token):
        Hanging.token = token
        connection = self.begin(LIST, token)
        wait_until(lambda: Hanging.n_hanging == 1, "a review that hangs")
        return connection

    def test_a_token_whose_reviews_hang_holds_up_nobody_else(self):
        for name in ("slow", "quick"):
            token = make_account(name, rule("get", "list"))
            wait_until(lambda: self.ask(LIST, token) == 200, "the right")
        # Nothing is known of these.
        slow, quick = (cluster().kubectl("create", "token", name, "-n", SPACE).strip() for name in ("slow", "quick"))
        answered = threading.Event()
        waits = self.hang(slow)
        threading.Thread(target=lambda: waits.getresponse() and answered.set(), daemon=True).start()
        leaves = [self.begin(f"{LIST}/{name}", slow) for name in ("one", "two", "three", "four", "five")]
        self.assertEqual(self.ask(LIST, quick), 200)
        self.assertFalse(answered.is_set(), "the slow review was over first")
        self.assertEqual(Hanging.n_hanging, 1)
        for connection in leaves:
            connection.close()
        Hanging.may_go.set()
        self.assertTrue(answered.wait(PATIENCE))
        waits.close()
        wait_until(lambda: self.ask(LIST, slow) == 200, "the slow token")

    def test_stop_waits_for_no_review(self):
        token = make_account("hangs")
        connection = self.hang(token)
        self.guarded.daemon.stop(within=5)
        connection.close()


@needs_cluster("roles, tokens of accounts")
class Outage(unittest.TestCase):
    def test_who_was_let_in_stays_in_for_as_long_as_is_said(self):
        token, stranger = make_account("outage", rule("list")), make_account("stranger", rule("list"))
        with tempfile.TemporaryDirectory() as folder, Proxy() as proxy, \
                Guarded(proxy.kubeconfig(folder), stale="7s") as guarded:
            def code(whose):
                return ask(guarded, LIST, headers={"Authorization": "Bearer " + whose})[0]

            def readyz():
                status, _, text = ask(guarded, "/readyz?verbose")
                return status, text.decode()
            wait_until(lambda: code(token) == 200, "the right")
            self.assertIn("[+]authorization ok\n", readyz()[1])
            proxy.refuse()
            time.sleep(1.5)
            self.assertEqual((code(token), code(stranger)), (200, 503))
            status, text = readyz()
            self.assertEqual(status, 200)
            self.assertRegex(text, r"\[\+\]authorization ok, by answers of before: nobody reviews for \d s\n")
            self.assertIn("who was let in of late still is", guarded.daemon.log_text())
            wait_until(lambda: code(token) == 503, "the end of it")
            wait_until(lambda: readyz()[0] == 500, "readyz that fails")
            self.assertIn("[-]authorization failed: the API server does not say who may read\n", readyz()[1])
            with Proxy(listener=socket.create_server((proxy.host, proxy.port))):
                # Nobody comes to who is not ready.
                wait_until(lambda: readyz()[0] == 200, "ready")
                wait_until(lambda: code(token) == 200, "the API server's word")
                self.assertEqual(code(stranger), 200)


class HesitantClient:
    """Keeps the last byte of what it says in a handshake until it is told to go on."""

    def __init__(self, guarded, stack):
        self.received, self.out, self.rest = ssl.MemoryBIO(), ssl.MemoryBIO(), b""
        self.tls = guarded.trust().wrap_bio(self.received, self.out, server_hostname="127.0.0.1")
        self.raw = stack.enter_context(connect(guarded))

    def receive(self):
        self.received.write(self.raw.recv(1 << 16))

    def shake(self):
        """Until it has something to say."""
        while True:
            with contextlib.suppress(ssl.SSLWantReadError):
                self.tls.do_handshake()
            said = self.out.read()
            if said:
                self.raw.sendall(said[:-1])
                self.rest = said[-1:]
                return
            self.receive()

    def go_on(self):
        self.raw.sendall(self.rest)

    def ask(self, target):
        self.tls.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        self.raw.sendall(self.out.read())
        while True:
            self.receive()
            with contextlib.suppress(ssl.SSLWantReadError):
                return self.tls.read(1 << 16)


class Tls(unittest.TestCase):
    def test_old_protocols_and_plain_http_are_refused(self):
        with Guarded() as guarded:
            host, port = guarded.address.rsplit(":", 1)
            context = guarded.trust()
            context.minimum_version = ssl.TLSVersion.TLSv1_1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
            context.set_ciphers("ALL:@SECLEVEL=0")
            with socket.create_connection((host, int(port)), timeout=PATIENCE) as plain:
                self.assertRaises((ssl.SSLError, OSError), context.wrap_socket, plain, server_hostname="127.0.0.1")
            with socket.create_connection((host, int(port)), timeout=PATIENCE) as plain:
                plain.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                try:
                    self.assertNotIn(b"200", plain.recv(100))
                except ConnectionResetError:
                    pass
            self.assertEqual(ask(guarded, "/readyz")[0], 200)

    def test_a_handshake_that_stops_half_way_costs_nothing(self):
        with Guarded(mode="release") as guarded, contextlib.ExitStack() as stack:
            at_hello, at_end = (HesitantClient(guarded, stack) for _ in range(2))
            at_hello.shake()
            at_end.shake()
            at_end.go_on()
            at_end.shake()
            before = cpu_seconds(guarded)
            time.sleep(2)
            self.assertLess(cpu_seconds(guarded) - before, 0.5)
            self.assertEqual(ask(guarded, "/readyz")[0], 200)
            at_hello.go_on()
            at_hello.shake()
            for client in (at_hello, at_end):
                client.go_on()
                self.assertTrue(client.ask("/readyz").startswith(b"HTTP/1.1 200"))

    def test_a_new_certificate_is_shown_and_a_bad_one_is_not(self):
        with Guarded() as guarded:
            with open(guarded.folder.name + "/tls.key", "w", encoding="utf-8") as file:
                file.write("no key")
            before = guarded.trust()

            def is_told():
                ask(guarded, "/readyz")
                return "the certificate stays as it was" in guarded.daemon.log_text()

            wait_until(is_told, "the complaint")
            make_pair(guarded.folder.name, "second")

            def is_new():
                try:
                    return ask(guarded, "/readyz")[0] == 200
                except ssl.SSLError:
                    return False

            wait_until(is_new, "the new certificate")
            guarded.trust = lambda: before
            self.assertRaises(ssl.SSLError, ask, guarded, "/readyz")


class Starts(unittest.TestCase):
    def refusal(self, *lines, address="0.0.0.0:0", args=()):
        with tempfile.TemporaryDirectory() as folder:
            make_pair(folder)
            config = write_tls_config(folder, f'listen: ["{address}"]', *lines)
            code, _, err = run_daemon("--config", config, "--check-config", *args)
            return code, err

    def test_an_open_address_needs_tls_and_tokens(self):
        self.assertEqual(self.refusal()[0], 2)
        self.assertEqual(self.refusal("auth: delegated")[0], 0)
        self.assertEqual(self.refusal("auth: none")[0], 2)
        code, _, err = run_daemon("--resource", "pods", "--listen", "0.0.0.0:0", "--check-config")
        self.assertEqual(code, 2)
        self.assertIn("auth: delegated", err)

    def test_a_key_of_another_certificate_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            make_pair(folder)
            os.rename(folder + "/tls.key", folder + "/first.key")
            make_pair(folder)
            os.replace(folder + "/first.key", folder + "/tls.key")
            code, _, err = run_daemon("--config", write_tls_config(folder), "--check-config")
            self.assertEqual(code, 2)
            self.assertIn("is not the key of the certificate", err)


if __name__ == "__main__":
    unittest.main()
