"""exec, attach, port-forward and websockets through kinformerd: kubectl is whole, and nothing is left behind."""

import base64
import contextlib
import hashlib
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

from harness import PATIENCE, TOOLS, Daemon, Proxy, cluster, make_key_pair, need_cluster, wait_until
from test_serve import KUBECTL, Served, ask
from test_serve_pass import token_of

NAMESPACE = "tunnel"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
MUCH = 50 << 20
SPDY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}
WEBSOCKETS = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "true", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "true"}
PROTOCOLS = (WEBSOCKETS, SPDY)
_kubelet = None


class Kubelet:
    """What the API server asks for sessions: commands run on this machine."""

    def __init__(self):
        self.process = subprocess.Popen([os.path.join(TOOLS, "kubelet")], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().removeprefix("port="))
        self.lines = []
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stdout), daemon=True)
        self.reader.start()

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()

    def make_node(self):
        cluster().kubectl("create", "-f", "-", stdin=json.dumps(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "here"}}))
        cluster().kubectl("patch", "node", "here", "--subresource=status", "--type=merge", "-p", json.dumps(
            {"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                        "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}}}}))

    def make_pod(self, name):
        cluster().kubectl("create", "-f", "-", stdin=json.dumps(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE},
             "spec": {"nodeName": "here", "containers": [{"name": "c", "image": "i", "stdin": True}]}}))
        cluster().kubectl("patch", "pod", name, "-n", NAMESPACE, "--subresource=status", "--type=merge", "-p",
                          json.dumps({"status": {"phase": "Running", "containerStatuses": [
                              {"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0,
                               "state": {"running": {}}}]}}))


def setUpModule():
    global _kubelet
    need_cluster("there is nothing to exec into")
    _kubelet = Kubelet()
    unittest.addModuleCleanup(_kubelet.stop)
    cluster().make_namespace(NAMESPACE)
    _kubelet.make_node()
    _kubelet.make_pod("one")


def tearDownModule():
    cluster().kubectl("delete", "node", "here")
    cluster().kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def write_kubeconfig(path, server, token, authority=None):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c",
                   "clusters": [{"name": "c", "cluster": {
                       "server": server, **({"certificate-authority": authority} if authority else {})}}],
                   "users": [{"name": "c", "user": {"token": token}}],
                   "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c", "namespace": NAMESPACE}}]}, file)


class Injector:
    """In front of an address without TLS, where kubectl sends no token: it is put into each first head."""

    def __init__(self, address, token):
        host, _, port = address.rpartition(":")
        self.target = (host, int(port))
        self.line = f"Authorization: Bearer {token}\r\n".encode()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client):
        with contextlib.suppress(OSError), client, socket.create_connection(self.target) as server:
            head = b""
            while b"\r\n" not in head:
                piece = client.recv(65536)
                if not piece:
                    return
                head += piece
            first, _, rest = head.partition(b"\r\n")
            server.sendall(first + b"\r\n" + self.line + rest)
            back = threading.Thread(target=self.pump, args=(server, client), daemon=True)
            back.start()
            self.pump(client, server)
            back.join()

    @staticmethod
    def pump(source, sink):
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                sink.sendall(piece)
        with contextlib.suppress(OSError):
            source.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)


class Carrier(Served):
    """A daemon that passes on, over TLS or not, with kubeconfigs of its users."""

    def __init__(self, is_tls, mode="asan", kubeconfig=None, **keys):
        self.is_tls = is_tls
        self.folder = tempfile.TemporaryDirectory()
        self.kubeconfig = os.path.join(self.folder.name, "kubeconfig")
        self.access_log = os.path.join(self.folder.name, "access.log")
        make_key_pair(self.folder.name + "/tls")
        path = os.path.join(self.folder.name, "config.yaml")
        tls = {"tls": {"certFile": self.folder.name + "/tls.crt", "keyFile": self.folder.name + "/tls.key"},
               "auth": "delegated"} if is_tls else {}
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"listen": ["127.0.0.1:0"], "events": "none", "passThrough": True, "accessLog": self.access_log,
                       "resources": [{"resource": "pods"}], **tls, **keys}, file)
        self.daemon = Daemon("--write-kubeconfig", self.kubeconfig, config=path, mode=mode, kubeconfig=kubeconfig)

    def __enter__(self):
        wait_until(lambda: self.daemon.check() or os.path.exists(self.kubeconfig), "the kubeconfig")
        with open(self.kubeconfig, encoding="utf-8") as file:
            self.address = re.search(r"server: https?://(\S+)", file.read()).group(1)
        if self.is_tls:
            context = ssl.create_default_context(cafile=self.folder.name + "/tls.crt")
            self.open = lambda: http.client.HTTPSConnection(self.address, context=context, timeout=PATIENCE)
        else:
            self.open = lambda: http.client.HTTPConnection(self.address, timeout=PATIENCE)
        wait_until(lambda: self.daemon.check() or ask(self, "/readyz")[0] == 200, "ready")
        return self

    def config_of(self, user="admin-token"):
        path = os.path.join(self.folder.name, user)
        if self.is_tls:
            write_kubeconfig(path, "https://" + self.address.replace("127.0.0.1", "localhost"), token_of(user),
                             self.folder.name + "/tls.crt")
        else:
            write_kubeconfig(path, "http://" + Injector(self.address, token_of(user)).address, token_of(user))
        return path

    def command(self, *args, user="admin-token"):
        return [KUBECTL, "--kubeconfig", self.config_of(user), "--cache-dir", self.folder.name + "/cache", *args]

    def start(self, *args, env=None, user="admin-token", **more):
        return subprocess.Popen(self.command(*args, user=user), env={**os.environ, **(env or {})}, **{
            "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more})

    def run(self, *args, env=None, stdin=b"", user="admin-token"):
        return subprocess.run(self.command(*args, user=user), env={**os.environ, **(env or {})}, input=stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)

    @contextlib.contextmanager
    def echo(self, env):
        """kubectl, with a session that has answered once."""
        process = self.start("exec", "-i", "one", "--", "cat", env=env)
        try:
            process.stdin.write(b"word\n")
            process.stdin.flush()
            if process.stdout.readline() != b"word\n":
                raise AssertionError(process.communicate())
            self.wait_passed(1)
            yield process
        finally:
            process.kill()
            process.communicate()

    def n_passed(self):
        headers = {"Authorization": "Bearer " + token_of("admin-token")}
        text = ask(self, "/metrics", headers=headers)[2].decode()
        return int(re.search(r"^kinformer_upstream_requests_in_flight (\d+)$", text, re.M).group(1))

    def wait_passed(self, n):
        wait_until(lambda: self.daemon.check() or self.n_passed() == n, f"{n} tunnels, not {self.n_passed()}")


def head_of(target, method="GET", user="admin-token", **headers):
    lines = {"Host": "localhost", "Connection": "Upgrade", "Authorization": "Bearer " + token_of(user), **headers}
    return (f"{method} {target} HTTP/1.1\r\n" + "".join(f"{name.replace('_', '-')}: {value}\r\n"
                                                        for name, value in lines.items()) + "\r\n").encode()


def websocket_head(target, protocol="v5.channel.k8s.io", **headers):
    return head_of(target, Upgrade="websocket", Origin="https://localhost", Sec_WebSocket_Version="13",
                   Sec_WebSocket_Key=base64.b64encode(os.urandom(16)).decode(), **headers,
                   **({"Sec_WebSocket_Protocol": protocol} if protocol else {}))


class Websocket:
    """A client's side of one, as it is on the wire."""

    def __init__(self, carrier, target, **headers):
        self.connection = carrier.open()
        self.connection.connect()
        self.socket = self.connection.sock
        self.socket.sendall(websocket_head(target, **headers))
        self.bytes = b""
        while b"\r\n\r\n" not in self.bytes and (piece := self.socket.recv(4096)):
            self.bytes += piece
        self.head, _, self.bytes = self.bytes.partition(b"\r\n\r\n")
        self.code = int(self.head.split()[1])

    def send(self, payload, opcode=2):
        mask = os.urandom(4)
        size = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + len(payload).to_bytes(2, "big")
        self.socket.sendall(bytes([0x80 | opcode]) + size + mask + bytes(byte ^ mask[i % 4]
                                                                        for i, byte in enumerate(payload)))

    def need(self, n):
        while len(self.bytes) < n:
            piece = self.socket.recv(65536)
            if not piece:
                raise EOFError
            self.bytes += piece
        taken, self.bytes = self.bytes[:n], self.bytes[n:]
        return taken

    def receive(self):
        """(opcode, payload)"""
        first, size = self.need(2)
        if size == 126:
            size = int.from_bytes(self.need(2), "big")
        elif size == 127:
            size = int.from_bytes(self.need(8), "big")
        return first & 15, self.need(size)

    def close(self):
        self.connection.close()


class Ways:
    """Each test over an address with TLS, and over one without."""

    is_tls = False

    @classmethod
    def setUpClass(cls):
        cls.carrier = cls.enterClassContext(Carrier(cls.is_tls))

    @classmethod
    def tearDownClass(cls):
        cls.carrier.wait_passed(0)
        cls.carrier.daemon.stop()

    def exec(self, *command, env=None, stdin=b""):
        return self.carrier.run("exec", "-i", "one", "--", *command, env=env, stdin=stdin)

    def test_exec_has_its_streams_and_its_exit_code(self):
        for env in PROTOCOLS:
            done = self.exec("sh", "-c", "cat; echo oops >&2; exit 7", env=env, stdin=b"hello\n")
            self.assertEqual(done.stdout, b"hello\n", done.stderr)
            self.assertIn(b"oops\n", done.stderr)
            self.assertEqual(done.returncode, 7)

    def test_much_comes_out_whole(self):
        script = f"head -c {MUCH} /dev/urandom | tee /dev/fd/3 | sha256sum >&2"
        for env in PROTOCOLS:
            done = self.exec("sh", "-c", f"exec 3>&1; {script}", env=env)
            self.assertEqual(len(done.stdout), MUCH, done.stderr)
            self.assertIn(hashlib.sha256(done.stdout).hexdigest().encode(), done.stderr)

    def test_much_goes_in_whole(self):
        much = os.urandom(MUCH // 5)
        for env in PROTOCOLS:
            done = self.exec("sha256sum", env=env, stdin=much)
            self.assertIn(hashlib.sha256(much).hexdigest().encode(), done.stdout, done.stderr)

    def test_a_slow_reader_is_waited_for(self):
        n = 20 << 20
        for env in PROTOCOLS:
            with self.carrier.start("exec", "one", "--", "sh", "-c", f"yes | head -c {n}", env=env) as process:
                time.sleep(1)
                got, piece = 0, b"-"
                while piece:
                    piece = process.stdout.read(1 << 20)
                    got += len(piece)
                    time.sleep(0.02)
            self.assertEqual(got, n)
            self.assertEqual(process.returncode, 0)

    def test_attach_goes_both_ways(self):
        for env in PROTOCOLS:
            done = self.carrier.run("attach", "-i", "one", env=env, stdin=b"word\n")
            self.assertIn(b"attached\nword\n", done.stdout, done.stderr)
            self.assertEqual(done.returncode, 0)

    def test_files_are_copied(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/from", "wb") as file:
                file.write(os.urandom(3 << 20))
            for env in PROTOCOLS:
                for source, target in (("from", "one:" + folder + "/there"), ("one:" + folder + "/there", "to")):
                    here = [name if ":" in name else folder + "/" + name for name in (source, target)]
                    done = self.carrier.run("cp", *here, env=env)
                    self.assertEqual(done.returncode, 0, done.stderr)
                with open(folder + "/from", "rb") as first, open(folder + "/to", "rb") as second:
                    self.assertEqual(first.read(), second.read())
                os.remove(folder + "/there")
                os.remove(folder + "/to")

    @contextlib.contextmanager
    def forwarded(self, port, env):
        process = self.carrier.start("port-forward", "pod/one", f":{port}", env=env)
        try:
            line = process.stdout.readline().decode()
            yield int(re.search(r"127\.0\.0\.1:(\d+)", line).group(1))
        finally:
            process.terminate()
            process.communicate()

    def test_ports_are_forwarded_both_ways(self):
        with echo_server() as port:
            for env in PROTOCOLS:
                with self.forwarded(port, env) as local:
                    said = os.urandom(200000)
                    results = {}

                    def talk(i, local=local, said=said, results=results):
                        with socket.create_connection(("127.0.0.1", local), timeout=PATIENCE) as one:
                            threading.Thread(target=one.sendall, args=(said,), daemon=True).start()
                            results[i] = b""
                            while len(results[i]) < len(said):
                                piece = one.recv(65536)
                                if not piece:
                                    return
                                results[i] += piece
                    threads = [threading.Thread(target=talk, args=(i,)) for i in range(20)]
                    for thread in threads:
                        thread.start()
                    for thread in threads:
                        thread.join()
                    self.assertEqual([results[i] == said for i in range(20)], [True] * 20)

    def test_refusals_are_the_servers(self):
        for env in PROTOCOLS:
            done = self.carrier.run("exec", "one", "--", "true", env=env, user="token")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(b"forbidden", done.stderr.lower())
        for target, code, user in ((PODS + "/none/exec?command=true&stdout=1", 404, "admin-token"),
                                   (PODS + "/one/exec?command=true&stdout=1", 403, "token"),
                                   (PODS + "/one/exec?command=true", 400, "admin-token")):
            for method, protocol in (("POST", "SPDY/3.1"), ("GET", "websocket")):
                ours = answer_of(self.carrier, head_of(target, method, user, Upgrade=protocol))
                theirs = answer_of(cluster_address(), head_of(target, method, user, Upgrade=protocol))
                self.assertEqual(ours[0], code, ours)
                self.assertEqual(ours[:2], theirs[:2])
                self.assertEqual(ours[2].get("kinformer-source"), "upstream")

    def test_without_a_token_nothing_is_upgraded(self):
        head = websocket_head(PODS + "/one/exec?command=true&stdout=1").decode()
        code, _, _ = answer_of(self.carrier, re.sub("Authorization.*\r\n", "", head).encode())
        self.assertEqual(code, 401)

    def test_a_browsers_token_counts_alone(self):
        token = base64.urlsafe_b64encode(token_of("admin-token").encode()).rstrip(b"=").decode()
        protocol = f"base64url.bearer.authorization.k8s.io.{token}, v4.channel.k8s.io"
        target = PODS + "/one/exec?command=echo&command=hi&stdout=1"
        head = websocket_head(target, protocol=protocol)
        code, _, _ = answer_of(self.carrier, head)
        self.assertEqual(code, 400)
        code, _, headers = answer_of(self.carrier, re.sub(rb"Authorization.*\r\n", b"", head), reads=False)
        self.assertEqual((code, headers["sec-websocket-protocol"]), (101, "v4.channel.k8s.io"))

    def test_a_watch_comes_by_websocket(self):
        watch = Websocket(self.carrier, PODS + "?watch=1&resourceVersion=0", protocol=None)
        self.assertEqual(watch.code, 101, watch.head)
        opcode, payload = watch.receive()
        self.assertEqual((opcode, json.loads(payload)["type"]), (1, "ADDED"))
        watch.close()

    def used_seconds(self):
        with open(f"/proc/{self.carrier.daemon.process.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def test_silence_is_no_end_and_costs_nothing(self):
        session = Websocket(self.carrier, PODS + "/one/exec?command=cat&stdin=1&stdout=1")
        self.assertEqual(session.code, 101, session.head)
        used = self.used_seconds()
        time.sleep(3)
        self.assertLess(self.used_seconds() - used, 0.5)
        session.send(b"\0late")
        self.assertIn(b"late", self.read_channel(session, 1))
        session.close()

    def read_channel(self, session, channel):
        while True:
            opcode, payload = session.receive()
            if opcode == 2 and len(payload) > 1 and payload[0] == channel:
                return payload[1:]

    def test_a_client_that_dies_leaves_nothing(self):
        for env in PROTOCOLS:
            with self.carrier.echo(env) as process:
                process.kill()
            self.carrier.wait_passed(0)

    def test_a_client_that_dies_unread_leaves_nothing(self):
        self.carrier.wait_passed(0)
        session = Websocket(self.carrier, PODS + "/one/exec?command=sleep&command=1000&stdin=1&stdout=1")
        session.socket.settimeout(1)
        with contextlib.suppress(OSError):
            while True:
                session.send(b"\0" + bytes(60000))
        self.assertEqual(self.carrier.n_passed(), 1)
        session.close()
        self.carrier.wait_passed(0)

    def test_a_session_is_logged_when_it_is_over(self):
        def read_told():
            with open(self.carrier.access_log, encoding="utf-8") as file:
                lines = [json.loads(line) for line in file]
            return [line for line in lines if line["verb"] == "connect" and "/exec?" in line["target"]]
        self.exec("sleep", "0.5")
        wait_until(lambda: any(line["ms"] >= 500 for line in read_told()), "it is logged")
        told = read_told()
        self.assertEqual({(line["code"], line["source"]) for line in told}, {(101, "upstream")})
        self.assertNotIn("command", " ".join(line["target"] for line in told))


class Plain(Ways, unittest.TestCase):
    is_tls = False


class Secure(Ways, unittest.TestCase):
    is_tls = True


class UnixSocket:
    """The other address of a daemon."""

    def __init__(self, path):
        self.path = path

    def open(self):
        connection = http.client.HTTPConnection("localhost", timeout=PATIENCE)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self.path)
        connection.connect = lambda: None
        return connection


class Ends(unittest.TestCase):
    def test_a_unix_socket_will_do(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/socket"
            with Carrier(False, listen=["127.0.0.1:0", "unix:" + path]) as carrier:
                session = Websocket(UnixSocket(path), PODS + "/one/exec?command=cat&stdin=1&stdout=1")
                self.assertEqual(session.code, 101, session.head)
                session.send(b"\0word")
                while (message := session.receive())[1] != b"\1word":
                    self.assertEqual(message[0], 2)
                session.close()
                carrier.wait_passed(0)
                carrier.daemon.stop()

    def test_a_server_that_is_away_is_said_to_be(self):
        with Proxy() as proxy, tempfile.TemporaryDirectory() as folder:
            with Carrier(False, kubeconfig=proxy.kubeconfig(folder)) as carrier:
                proxy.refuse()
                code, body, _ = answer_of(carrier, websocket_head(PODS + "/one/exec?command=cat&stdout=1"))
                self.assertEqual(code, 503, body)
                carrier.daemon.stop()

    def test_a_server_that_goes_ends_the_session(self):
        with Proxy() as proxy, tempfile.TemporaryDirectory() as folder:
            with Carrier(False, kubeconfig=proxy.kubeconfig(folder)) as carrier:
                for env in (WEBSOCKETS, SPDY):
                    with carrier.echo(env) as process:
                        proxy.drop()
                        code = process.wait(PATIENCE)
                    # Of SPDY kubectl takes any end for a good one.
                    self.assertTrue(code != 0 or env is SPDY)
                    carrier.wait_passed(0)
                carrier.daemon.stop()

    def test_a_caller_has_a_share(self):
        target = PODS + "/one/exec?command=cat&stdin=1&stdout=1"
        with Carrier(False) as carrier:
            sessions = [Websocket(carrier, target) for _ in range(64)]
            self.assertEqual({session.code for session in sessions}, {101})
            crowded = Websocket(carrier, target)
            self.assertEqual(crowded.code, 429)
            sessions.append(crowded)
            for session in sessions:
                session.close()
            carrier.wait_passed(0)
            carrier.daemon.stop()

    def stop_with(self, is_tls):
        target = PODS + "/one/exec?command=cat&stdin=1&stdout=1"
        with Carrier(is_tls, mode="release") as carrier:
            sessions = [Websocket(carrier, target) for _ in range(50)]
            self.assertEqual({session.code for session in sessions}, {101})
            carrier.wait_passed(50)
            carrier.daemon.stop(within=0.2)
            for session in sessions:
                with self.assertRaises((EOFError, OSError)):
                    while True:
                        session.receive()
                session.close()

    def test_a_stop_is_quick(self):
        self.stop_with(False)

    def test_a_stop_is_quick_over_tls(self):
        self.stop_with(True)


def answer_of(where, head, reads=True):
    """(code, body, headers)"""
    connection = where.open()
    connection.connect()
    connection.sock.sendall(head)
    answer = http.client.HTTPResponse(connection.sock, method="GET")
    answer.begin()
    result = (answer.status, answer.read() if reads and answer.status != 101 else b"",
              {name.lower(): value for name, value in answer.getheaders()})
    answer.close()
    connection.close()
    return result


def cluster_address():
    class Address:
        @staticmethod
        def open():
            context = ssl.create_default_context(cafile=os.path.join(cluster().folder, "pki", "ca.crt"))
            return http.client.HTTPSConnection(cluster().env["KINF_SERVER"].removeprefix("https://"), context=context,
                                               timeout=PATIENCE)
    return Address


@contextlib.contextmanager
def echo_server():
    listener = socket.create_server(("127.0.0.1", 0))

    def talk(client):
        with client, contextlib.suppress(OSError):
            while piece := client.recv(65536):
                client.sendall(piece)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


if __name__ == "__main__":
    unittest.main()
