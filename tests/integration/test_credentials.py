"""Every kind of credential against a real server, each changing while a watch is open; and no secret anywhere."""

import base64
import contextlib
import glob
import json
import os
import re
import signal
import socket
import socketserver
import ssl
import subprocess
import tempfile
import textwrap
import threading
import unittest

from harness import (TOOLS, Daemon, Proxy, cluster, config_map, make_key_pair, needs_cluster, run_daemon,
                     wait_until)

NAMESPACE = "credentials"
TARGET = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
FLAGS = ("--resource", "configmaps", "--namespace", NAMESPACE)
PASSWORD = "pass-w0rd-of-nobody"
PROXY_PASSWORD = "pr0xy-pass"

# All that any daemon of this file printed, for the last test.
printed = []
# What may not be in it.
secrets = {PASSWORD, PROXY_PASSWORD}


def setUpModule():
    cluster().make_namespace(NAMESPACE)
    for i in range(3):
        cluster().kubectl("create", "-f", "-", stdin=config_map(f"old-{i}", NAMESPACE))
    for path in glob.glob(os.path.join(cluster().folder, "tokens", "*")):
        secrets.add(read(path).strip())
    for path in glob.glob(os.path.join(cluster().folder, "pki", "*.key")):
        add_key(read(path))


def tearDownModule():
    cluster().kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text, mode=0o600):
    """As a kubelet does it: the old content, or the new one."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        os.chmod(path + ".new", mode)
        file.write(text)
    os.replace(path + ".new", path)


def add_key(pem):
    """The lines of a private key, and what they look like in a kubeconfig."""
    secrets.update(line for line in pem.splitlines() if len(line) > 20 and "-----" not in line)
    secrets.add(base64.b64encode(pem.encode()).decode())


def pki(name):
    return read(os.path.join(cluster().folder, "pki", name))


def token(name):
    return read(os.path.join(cluster().folder, "tokens", name)).strip()


def versions():
    return cluster().versions(TARGET)


def sum_of(*args, env=None):
    """The checksum that --measure prints; fails unless it ends well."""
    code, out, err = run_daemon(*args, *FLAGS, "--measure", "--timeout", "60s", "--log-level", "debug", env=env)
    printed.append(out + err)
    if code != 0:
        raise AssertionError(err)
    return dict(pair.split("=", 1) for pair in out.split())["checksum"]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.n_made = 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def kubeconfig(self, user, server=None, cluster_fields=None, name="config"):
        """user and cluster_fields as JSON objects, which are YAML."""
        fields = {"server": server or cluster().env["KINF_SERVER"],
                  "certificate-authority": os.path.join(cluster().folder, "pki", "ca.crt"), **(cluster_fields or {})}
        write(self.path(name), json.dumps({
            "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": fields}], "users": [{"name": "u", "user": user}]}))
        return self.path(name)

    def plugin(self, body, **fields):
        """A user with an exec plugin of this shell script."""
        write(self.path("plugin"), "#!/bin/sh\n" + textwrap.dedent(body), 0o700)
        return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
                         "command": "./plugin", **fields}}

    def answer(self, expires=None, version="v1", **status):
        if expires:
            status["expirationTimestamp"] = expires
        return json.dumps({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/" + version,
                           "status": status})

    def watching(self, path=None, args=(), env=None):
        return Watching(path, args, env)

    def change(self, daemon):
        """A new object comes through the watch."""
        self.n_made += 1
        name = f"{self.id().rpartition('.')[2].replace('_', '-')}-{self.n_made}"
        cluster().kubectl("create", "-f", "-", stdin=config_map(name, NAMESPACE))
        daemon.wait_equal(versions, "configmaps")


class Watching(Daemon):
    """A synced daemon; what it prints is kept for the last test."""

    def __init__(self, path, args, env):
        super().__init__(*args, "--namespace", NAMESPACE, kubeconfig=path, resource=("configmaps",), env=env)

    def __enter__(self):
        super().__enter__()
        self.wait_synced()
        self.n_lists = self.count_lists()
        return self

    def __exit__(self, kind, value, trace):
        printed.append(self.log_text() + json.dumps(self.history))
        super().__exit__(kind, value, trace)

    def targets(self):
        return re.findall(rf"GET ({re.escape(TARGET)}\S*)", self.log_text())

    def count_lists(self):
        """But not what checks after an outage that the server is what it was: that asks for one object at a time."""
        return sum(not re.search(r"watch=|limit=1(&|$)", target) for target in self.targets())

    def count_watches(self):
        return sum("watch=" in target for target in self.targets())

    def end(self):
        """Nothing that happened cost another list."""
        if self.count_lists() != self.n_lists:
            raise AssertionError(f"{self.count_lists()} lists instead of {self.n_lists}")
        self.stop()


class TlsProxy:
    """tests/cluster/cmd/tlsproxy in front of the cluster: see there."""

    def __init__(self, folder, listen="127.0.0.1:0"):
        self.identity = os.path.join(folder, "identity")
        self.revoked = os.path.join(folder, "revoked")
        write(self.revoked, "")
        self.use(pki("serving.crt") + pki("serving.key"))
        self.output = open(os.path.join(folder, "proxy.log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [os.path.join(TOOLS, "tlsproxy"), "-listen", listen, "-identity", self.identity, "-revoked", self.revoked,
             "-backend", cluster().env["KINF_SERVER"], "-backend-ca", os.path.join(cluster().folder, "pki", "ca.crt")],
            stdin=subprocess.PIPE, stdout=self.output)
        self.url = wait_until(lambda: re.match(r"url=(\S+)\n", self.text()), "the proxy's address").group(1)

    def text(self):
        return read(self.output.name)

    def use(self, pem):
        write(self.identity, pem)

    def revoke(self, value):
        write(self.revoked, f"Bearer {value}\n")

    def break_connections(self):
        self.process.send_signal(signal.SIGHUP)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.output.close()


class HttpsProxy:
    """What HTTPS_PROXY=https://... leads to: TLS with this identity, CONNECT, and then bytes both ways."""

    def __init__(self, identity):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(identity)

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                with contextlib.suppress(OSError), context.wrap_socket(self.request, server_side=True) as client:
                    host, port = client.recv(65536).split()[1].decode().rsplit(":", 1)
                    with socket.create_connection((host, int(port))) as server:
                        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                        threading.Thread(target=self.pump, args=(server, client), daemon=True).start()
                        self.pump(client, server)

            @staticmethod
            def pump(source, sink):
                with contextlib.suppress(OSError):
                    while data := source.recv(65536):
                        sink.sendall(data)
                    sink.shutdown(socket.SHUT_WR)

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"https://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Kinds(Case):
    def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(self):
        env = {name: "http://127.0.0.1:1" for name in ("HTTPS_PROXY", "https_proxy", "http_proxy", "all_proxy")}
        code, _, err = run_daemon("--kubeconfig", cluster().kubeconfig(), "--resource", "namespaces", "--measure", env=env)
        self.assertEqual(code, 0, err)

    def test_a_proxy_of_the_environment_that_is_not_there_is_named(self):
        path = self.kubeconfig({}, "https://192.0.2.1:6443")
        code, _, err = run_daemon("--kubeconfig", path, "--resource", "namespaces", "--measure",
                                  env={"HTTPS_PROXY": "http://127.0.0.1:1"})
        self.assertEqual(code, 1, err)
        self.assertIn("127.0.0.1 port 1", err)

    def test_each_kubeconfig_gives_the_servers_checksum(self):
        for name in ("admin", "admin-files", "admin-token", "token", "token-file"):
            with self.subTest(name):
                self.assertEqual(sum_of("--kubeconfig", cluster().kubeconfig(name)), cluster().checksum(TARGET))

    @needs_cluster("client certificates")
    def test_a_plugin_gives_a_token_or_a_certificate(self):
        for version in ("v1", "v1beta1"):
            for status in ({"token": token("admin")},
                           {"clientCertificateData": pki("admin.crt"), "clientKeyData": pki("admin.key")}):
                write(self.path("answer"), self.answer(version=version, **status))
                # It asks back for what it is told, and talks, and is found beside the kubeconfig.
                user = self.plugin("""\
                    echo "$KUBERNETES_EXEC_INFO" >"$1/info"
                    echo "hello from the plugin" >&2
                    cat "$1/answer"
                    """, apiVersion="client.authentication.k8s.io/" + version, args=[self.folder],
                                   provideClusterInfo=True)
                with self.subTest(version=version, status=list(status)):
                    self.assertEqual(sum_of("--kubeconfig", self.kubeconfig(user)), cluster().checksum(TARGET))
                    info = json.loads(read(self.path("info")))
                    self.assertEqual(info["apiVersion"], "client.authentication.k8s.io/" + version)
                    self.assertFalse(info["spec"]["interactive"])
                    self.assertEqual(info["spec"]["cluster"]["server"], cluster().env["KINF_SERVER"])
                    self.assertEqual(base64.b64decode(info["spec"]["cluster"]["certificate-authority-data"]).decode(),
                                     pki("ca.crt"))
                    self.assertIn("hello from the plugin", printed[-1])

    @needs_cluster("impersonation")
    def test_impersonation_has_the_rights_of_the_other(self):
        user = {"token": token("admin"), "as": "somebody", "as-groups": ["system:masters"]}
        self.assertEqual(sum_of("--kubeconfig", self.kubeconfig(user)), cluster().checksum(TARGET))
        user = {"token": token("admin"), "as": "some body", "as-user-extra": {"a/b": ["c"]}}
        with self.assertRaisesRegex(AssertionError, 'User "some body" cannot list'):
            sum_of("--kubeconfig", self.kubeconfig(user))

    def test_a_list_of_kubeconfigs_is_merged(self):
        user = self.path("user")
        write(user, json.dumps({"users": [{"name": "u", "user": {"tokenFile": "tok"}}]}))
        write(self.path("tok"), token("reader"))
        rest = self.kubeconfig({"token": "not-this"})
        env = {"KUBECONFIG": f"{self.path('missing')}:{user}:{rest}:{user}"}
        self.assertEqual(sum_of(env=env), cluster().checksum(TARGET))

    def make_service_account(self, server):
        host, _, port = server.removeprefix("https://").rpartition(":")
        write(self.path("token"), token("reader") + "\n")
        write(self.path("ca.crt"), pki("ca.crt"))
        write(self.path("namespace"), NAMESPACE)
        return {"KUBERNETES_SERVICE_HOST": host.strip("[]"), "KUBERNETES_SERVICE_PORT": port,
                "KINF_SERVICE_ACCOUNT_DIR": self.folder, "KUBECONFIG": "", "HOME": self.folder}

    def test_in_a_pod(self):
        env = self.make_service_account(cluster().env["KINF_SERVER"])
        self.assertEqual(sum_of(env=env), cluster().checksum(TARGET))

    @needs_cluster("a proxy in Go")
    def test_in_a_pod_with_ipv6(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            self.skipTest("no IPv6 here")
        with TlsProxy(self.folder, "[::1]:0") as proxy:
            env = self.make_service_account(proxy.url)
            self.assertEqual(env["KUBERNETES_SERVICE_HOST"], "::1")
            self.assertEqual(sum_of(env=env), cluster().checksum(TARGET))


@needs_cluster("client certificates, a proxy in Go")
class Rotation(Case):
    def test_a_revoked_token_is_replaced_by_that_of_the_file(self):
        write(self.path("token"), token("reader"))
        with TlsProxy(self.folder) as proxy:
            path = self.kubeconfig({"tokenFile": "token"}, proxy.url)
            with self.watching(path) as daemon:
                write(self.path("token"), token("admin"))
                proxy.revoke(token("reader"))
                proxy.break_connections()
                self.change(daemon)
                self.assertIn(f'authorization="Bearer {token("admin")}"', proxy.text())
                daemon.end()

    def test_a_plugin_is_asked_again_after_expiry_and_after_401(self):
        # Its first token is over at once, its second is unknown to the server, its third is good.
        bad = "not-a-token-of-this-server"
        secrets.add(bad)
        for i, (text, expires) in enumerate([(token("reader"), "2001-01-01T00:00:00Z"), (bad, None),
                                             (token("admin"), None)]):
            write(self.path(f"answer-{i + 1}"), self.answer(expires, token=text))
        write(self.path("may-go-on"), "")
        user = self.plugin("""\
            cd "$1"
            n=1
            if [ -e go-on ]; then echo >>late; n=$(($(wc -l <late) + 1)); fi
            cat answer-$n
            """, args=[self.folder])
        with TlsProxy(self.folder) as proxy:
            with self.watching(self.kubeconfig(user, proxy.url)) as daemon:
                self.change(daemon)
                os.rename(self.path("may-go-on"), self.path("go-on"))
                proxy.break_connections()
                self.change(daemon)
                self.assertIn(f'authorization="Bearer {bad}"', proxy.text())
                self.assertIn(f'authorization="Bearer {token("admin")}"', proxy.text())
                self.assertEqual(read(self.path("late")), "\n\n")
                self.assertIn("answered 401", daemon.log_text())
                daemon.end()

    def test_a_new_client_certificate_is_used_on_a_new_connection(self):
        def use(name):
            write(self.path("crt"), pki(name + ".crt"))
            write(self.path("key"), pki(name + ".key"))
        use("admin")
        with Proxy() as proxy:
            path = self.kubeconfig({"client-certificate": "crt", "client-key": "key"},
                                   f"https://127.0.0.1:{proxy.port}")
            with self.watching(path) as daemon:
                n_watches, n_connections = daemon.count_watches(), proxy.n_connections
                # A certificate without its key is nothing to be used.
                write(self.path("key"), "")
                wait_until(lambda: "the last ones stay" in daemon.log_text(), "a complaint about the key")
                self.change(daemon)
                self.assertEqual((daemon.count_watches(), proxy.n_connections), (n_watches, n_connections))
                # This one has no rights, and the server says whose it is.
                use("user")
                wait_until(lambda: r'User \"user\" cannot' in daemon.log_text(), "a refusal of the other user")
                self.assertGreater(proxy.n_connections, n_connections)
                self.assertEqual(daemon.log_text().count("the last ones stay"), 1)
                daemon.stop()

    def test_a_new_authority_is_trusted_and_the_watch_goes_on(self):
        pair = self.path("other")
        make_key_pair(pair)
        add_key(read(pair + ".key"))
        write(self.path("ca"), pki("ca.crt"))
        with TlsProxy(self.folder) as proxy:
            path = self.kubeconfig({"token": token("reader")}, proxy.url, {"certificate-authority": "ca"})
            with self.watching(path) as daemon:
                # First the file: the open watch is left for a connection that trusts the new one.
                proxy.use(read(pair + ".crt") + read(pair + ".key"))
                n_watches = daemon.count_watches()
                write(self.path("ca"), read(pair + ".crt"))
                wait_until(lambda: daemon.count_watches() > n_watches, "another watch")
                self.change(daemon)
                # Then the server: a handshake has to fail before anybody looks at the file.
                proxy.use(pki("serving.crt") + pki("serving.key"))
                proxy.break_connections()
                wait_until(lambda: "not signed by the given" in daemon.log_text(), "a failed handshake")
                write(self.path("ca"), pki("ca.crt"))
                self.change(daemon)
                daemon.end()


@needs_cluster("certificates of all kinds")
class Secrecy(Case):
    """The last of this file, by its name: unittest sorts classes."""

    def refused(self, path, *words, args=()):
        code, out, err = run_daemon("--kubeconfig", path, *FLAGS, *args, "--log-level", "debug", "--timeout", "20s",
                                    "--measure")
        printed.append(out + err)
        self.assertNotEqual(code, 0)
        for word in words:
            self.assertIn(word, err)

    def test_a_proxy_of_https_is_verified_as_kubectl_does_it_and_the_right_certificate_blamed(self):
        write(self.path("good"), pki("serving.crt") + pki("serving.key"))
        write(self.path("bad"), pki("wrong-ca.crt") + pki("wrong-ca.key"))
        for name, fields, word in (("good", {}, None), ("bad", {}, "of the proxy of the server"),
                                   ("good", {"tls-server-name": "nobody.invalid"}, "of the server")):
            with self.subTest(name, **fields), HttpsProxy(self.path(name)) as proxy:
                path = self.kubeconfig({"token": token("admin")}, cluster_fields={"proxy-url": proxy.url, **fields})
                result = subprocess.run([os.path.join(TOOLS, "kubectl"), "--kubeconfig", path, "get", "--raw", TARGET],
                                        capture_output=True, check=False)
                self.assertEqual(result.returncode == 0, word is None, result.stderr)
                if word is None:
                    self.assertEqual(sum_of("--kubeconfig", path), cluster().checksum(TARGET))
                else:
                    self.refused(path, "the certificate " + word)

    def test_failures_are_told_and_no_output_has_a_secret(self):
        for name, word in (("bad-token", "401"), ("expired-cert", "expired"), ("wrong-ca", "not signed by"),
                           ("wrong-name", "another name"), ("nobody", "403")):
            self.refused(cluster().kubeconfig(name), word)
        secrets.add("no-such-token")
        self.refused(self.kubeconfig({"username": "me", "password": PASSWORD}), "system:anonymous")
        self.refused(self.kubeconfig({"token": token("admin"), "username": "me", "password": PASSWORD}), "exclude")
        self.refused(self.kubeconfig({"token": token("admin") + "\nX: y"}), "token: it has a blank")
        self.refused(self.kubeconfig({"token": token("admin")},
                                     cluster_fields={"proxy-url": f"http://me:{PROXY_PASSWORD}@127.0.0.1:1"}),
                     "cannot connect")
        self.refused(self.kubeconfig({"token": token("admin")},
                                     cluster_fields={"proxy-url": f"http://me:{PROXY_PASSWORD}/@127.0.0.1:1"}),
                     "proxy-url: it is no URL")
        self.refused(self.kubeconfig({"client-certificate-data": base64.b64encode(pki("admin.crt").encode()).decode(),
                                      "client-key-data": base64.b64encode(pki("user.key").encode()).decode()}),
                     "does not belong")
        answer = self.answer(token=token("admin"))
        write(self.path("answer"), answer)
        secrets.add(answer)
        for body, word in (("cat $1/answer; exit 3", "exit code 3"), ("cat $1/answer; echo", "apiVersion is not"),
                           ("cat $1/answer $1/answer", "no JSON"), ("exit 0", "no JSON")):
            self.refused(self.kubeconfig(self.plugin(body, args=[self.folder], apiVersion=(
                "client.authentication.k8s.io/v1" + ("beta1" if "apiVersion" in word else "")))), word, "./plugin")
        self.refused(self.kubeconfig({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./none",
                                               "interactiveMode": "Never", "installHint": "look for it there"}}),
                     "No such file", "look for it there")
        self.refused(self.kubeconfig(self.plugin("", interactiveMode="Always")), "wants a terminal")

        text = "\n".join(printed)
        self.assertIn("GET " + TARGET, text, "the highest log level")
        self.assertGreater(len(secrets), 20)
        for secret in secrets:
            self.assertGreater(len(secret), 8)
            self.assertNotIn(secret, text)


if __name__ == "__main__":
    unittest.main()
