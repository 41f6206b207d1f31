"""Wrong input: one clear line on stderr that names what is wrong and what to do, and the right exit code."""

import http.server
import os
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest
import urllib.request

from harness import (PATIENCE, ROOT, TOOLS, Daemon, Proxy, cluster, daemon_path, make_key_pair, needs_cluster, run_daemon,
                     wait_until)

FAILED, USAGE = 1, 2


class AtStart(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def complains(self, code, *args, names, env=None):
        """The daemon ends with this code and one line that contains every one of `names`."""
        status, out, err = run_daemon(*args, env=env)
        # Log lines start with a date; the complaint is the one line for a person.
        lines = [line for line in err.splitlines() if not line[:4].isdigit()]
        self.assertEqual(status, code, err)
        self.assertEqual(out, "")
        self.assertEqual(len(lines), 1, err)
        self.assertTrue(lines[0].startswith("kinformerd: "), err)
        for name in names:
            self.assertIn(name, lines[0])
        return lines[0]

    def pods(self, kubeconfig):
        return ("--kubeconfig", kubeconfig, "--resource", "pods")

    def test_command_line(self):
        for args, names in (
            ((), ["--resource"]),
            (("--colour",), ["--colour", "--help"]),
            (("-x",), ["-x", "--help"]),
            (("--event", "json"), ["--event", "--help"]),
            (("--resource",), ["--resource", "value"]),
            (("--measure=yes",), ["--measure=yes", "no value"]),
            (("pods",), ["pods", "--resource pods"]),
            (("--resource", "pods", "--events", "loud"), ["--events", "loud"]),
            (("--resource", "pods", "--timeout", "soon"), ["--timeout", "soon"]),
            (("--resource", "pods", "--events-objects"), ["--events json"]),
            (("--resource", "pods", "--selector", "a in (b"), ["selector"]),
            (("--resource", "pods", "--drop", "a..b"), ["a..b"]),
            (("--resource", "pods", "--log-level", "noisy"), ["noisy"]),
            (("--resource", "pods", "--pass-through"), ["--pass-through", "needs --listen"]),
            (("--resource", "pods", "--write-kubeconfig", "/tmp/x"), ["--write-kubeconfig", "needs --listen"]),
            (("--resource", "pods", "--write-kubeconfig", "/tmp/x", "--listen", "unix:/tmp/y"),
             ["--write-kubeconfig", "needs --listen HOST:PORT"]),
            (("--resource", "pods", "--client-token", "/tmp/x", "--listen", "127.0.0.1:0"),
             ["--client-token goes with --write-kubeconfig"]),
            (("--resource", "pods", "--listen", "0.0.0.0:0"), ["cannot listen at 0.0.0.0:0", "auth: delegated"]),
            (("--resource", "pods", "--health-listen", "8081"), ["kinformerd: cannot listen at 8081", ":PORT"]),
            (("--resource", "pods", "--config", "x"), ["--config"]),
            (("--resource", "pods", "--resource", "pods"), ["twice"]),
            (("--resource", "pods", "--namespace", "a", "--namespace", "a"), ["namespace a", "twice"]),
            (("--resource", "pods", "--namespace", "a/../b"), ["'a/../b'"]),
            (("--resource", "pods", "--namespace", "A"), ["'A'"]),
            (("--resource", "pods", "--namespace", ""), ["empty namespace"]),
        ):
            with self.subTest(args=args):
                self.complains(USAGE, *args, names=names)

    def test_configuration_file(self):
        for text, names in (
            ("resources:\n- resource: pods\n  colour: blue\n", [":3:3", "colour"]),
            ("resources:\n- resource: [pods]\n", [":2:13"]),
            ("resources:\n- resource: pods\n  gzip: maybe\n", [":3:9", "maybe"]),
            ("resources:\n- resource: pods\n  silentAfter: 5\n", [":3:16"]),
            ("resources:\n- resource: pods\n  silentAfter: 0s\n", [":3:16", "silentAfter has to be above 0"]),
            ("resources:\n- resource: pods\n  maxHistoryBytes: 0\n", [":3:20", "maxHistoryBytes has to be above 0"]),
            ("listen: [unix:x]\npassThrough: true\nonDemand: {maxTypes: 0}\n", [":3:22", "maxTypes has to be above 0"]),
            ("maxStaleness: 0\nresources: [{resource: pods}]\n", [":1:15", "maxStaleness is 3m at least"]),
            ("resources: [{resource: pods}]\nhandlers: [{webhook: {url: 'https://a/', timeout: 0}}]\n",
             [":2:51", "timeout has to be above 0"]),
            ("resources: [{resource: pods}]\nhandlers: [{webhook: {url: 'https://a/', maxBatchBytes: 0}}]\n",
             [":2:57", "maxBatchBytes has to be above 0"]),
            ("resources:\n- resource: pods\n  shardSelector: all\n", ["pods", "shard selector column 1"]),
            ("resources: pods\n", [":1:12"]),
            ("resources:\n- namespaces: [a]\n", [":2:3", "resource"]),
            ("resources:\n- resource: pods\n resource: nodes\n", [":3:"]),
            ("resources: []\n", ["no resource"]),
            ("events: shouting\nresources:\n- resource: pods\n", [":1:9", "shouting"]),
        ):
            with self.subTest(text=text):
                path = self.write("config.yaml", text)
                self.complains(USAGE, "--config", path, names=[path, *names])
        path = self.write("config.yaml", "resources:\n- {resource: pods, consistency: latest}\n")
        self.complains(USAGE, "--config", path, names=["resource pods: consistency: latest needs --pass-through"])
        code, _, err = run_daemon("--check-config", "--config", path, "--listen", "127.0.0.1:0", "--pass-through")
        self.assertEqual((code, err), (0, ""))
        for text, names in (
            ("passThrough: true\n", ["passThrough", "needs --listen"]),
            ("listen: ['0.0.0.0:0']\n", ["config.yaml: cannot listen at 0.0.0.0:0", "auth: delegated"]),
            ("healthListen: here\n", ["config.yaml: cannot listen at here", ":PORT"]),
            ("tls: {certFile: /not/here.crt, keyFile: /not/here.key}\n", ["/not/here.crt", "No such file"]),
            ("tls: {certFile: /, keyFile: /not/here.key}\n", ["cannot read /", "Is a directory"]),
        ):
            with self.subTest(text=text):
                path = self.write("config.yaml", text + "resources:\n- resource: pods\n")
                self.complains(USAGE, "--config", path, names=names)
        self.complains(USAGE, "--config", "/does/not/exist.yaml", names=["/does/not/exist.yaml", "No such file"])

    def test_kubeconfig(self):
        self.complains(USAGE, *self.pods("/does/not/exist"), names=["/does/not/exist", "No such file"])
        path = self.write("broken", "clusters: [\n")
        self.complains(USAGE, *self.pods(path), names=[path])
        path = self.write("empty", "")
        self.complains(USAGE, *self.pods(path), names=[path])
        good = cluster().kubeconfig()
        self.complains(USAGE, *self.pods(good), "--context", "nowhere", names=[good, "nowhere"])
        with open(good, encoding="utf-8") as file:
            text = file.read()
        path = self.write("bad-ca", text.replace("certificate-authority-data: ", "certificate-authority-data: A*"))
        self.complains(USAGE, *self.pods(path), names=[path, "certificate-authority-data"])

    def test_unknown_resource(self):
        server = cluster().env["KINF_SERVER"].removeprefix("https://")
        for name in ("unicorns", "unicorns.apps", "pods.nogroup.example.org", "pods.v9"):
            with self.subTest(resource=name):
                self.complains(FAILED, "--kubeconfig", cluster().kubeconfig(), "--resource", name,
                               names=[name, server])
        self.complains(USAGE, "--kubeconfig", cluster().kubeconfig(), "--resource", "tokenreviews.authentication.k8s.io",
                       names=["tokenreviews"])
        self.complains(USAGE, "--kubeconfig", cluster().kubeconfig(), "--resource", "namespaces", "--namespace", "a",
                       names=["namespaces"])

    def test_a_field_that_the_server_cannot_select_by(self):
        self.complains(FAILED, *self.pods(cluster().kubeconfig()), "--field-selector", "spec.colour=blue",
                       names=["400", "spec.colour"])

    def test_a_closed_standard_output_is_not_taken_for_a_socket(self):
        command = [daemon_path("asan"), *self.pods(cluster().kubeconfig()), "--measure"]
        done = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', *command], stdin=subprocess.DEVNULL, text=True,
                              stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, FAILED, done.stderr)
        self.assertIn("cannot write to standard output: Bad file descriptor", done.stderr)

    def test_paths_that_do_not_go_together(self):
        for fields, words in (("drop: [metadata.name]", ["'metadata.name'", "cannot be dropped"]),
                              ("drop: [spec.nodeName], keep: [spec.nodeName]", ["'spec.nodeName'", "kept and dropped"]),
                              ("keep: [status.phase], indices: [{name: a, path: spec.nodeName}]", ["cannot be indexed"]),
                              ("indices: [{name: a, path: spec.a}, {name: a, path: spec.b}]", ["index a is there twice"])):
            with self.subTest(fields):
                path = self.write("config.yaml", "resources: [{resource: pods, " + fields + "}]\n")
                self.complains(USAGE, "--check-config", "--config", path, names=[path, "resource pods", *words])

    def test_keys_that_have_no_effect_are_told_of(self):
        make_key_pair(self.folder + "/tls")
        keys = (f"accessLog: {self.folder}/access\ntls: {{certFile: {self.folder}/tls.crt, keyFile: {self.folder}/tls.key}}\n"
                f"unixMode: \"0660\"\nunixUsers: [{os.getuid()}]\n")
        every = {"accessLog": "an address in listen", "tls": "HOST:PORT in listen", "unixMode": "unix:PATH in listen",
                 "unixUsers": "unix:PATH in listen"}
        resources = "resources: [{resource: configmaps}]\n"

        def told(text):
            return dict(re.findall(r'a key has no effect key=(\S+) needs="(.*)"', text))

        for args, idle in (((), every), (("--listen", "127.0.0.1:0"), {key: every[key] for key in ("unixMode", "unixUsers")}),
                           (("--listen", f"unix:{self.folder}/socket"), {"tls": every["tls"]})):
            with self.subTest(args):
                code, _, err = run_daemon("--check-config", "--config", self.write("config.yaml", keys + resources), *args)
                self.assertEqual((code, told(err)), (0, idle))
        path = self.write("config.yaml", resources)
        with Daemon(config=path, events=False) as daemon:
            daemon.wait_logged("all synced")
            self.assertEqual(told(daemon.log_text()), {})
            self.write("config.yaml", keys + resources)
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_logged("configuration read again")
            self.assertEqual(told(daemon.log_text()), every)
            daemon.stop()

    def test_entries_of_which_handlers_see_either_are_told_of(self):
        def told(*entries, handlers="[{exec: [cat]}]"):
            lines = "".join(f"- {{{entry}}}\n" for entry in entries)
            path = self.write("config.yaml", f"resources:\n{lines}handlers: {handlers}\n")
            code, _, err = run_daemon("--check-config", "--config", path)
            self.assertEqual(code, 0, err)
            return re.findall(r"which of two entries a handler sees is chance: (?:.*) resource=(\S+) entries=(\S+)", err)

        pods, dropping = "resource: pods", "resource: pods, drop: [spec, status]"
        for entries, wanted in (
            ((pods, dropping), [("pods", "1,2")]),
            ((dropping, "resource: nodes", "resource: pods, namespaces: [a], keep: [spec]"), [("pods", "1,3")]),
            ((dropping + ", labelSelector: a=b", pods + ", fieldSelector: spec.nodeName=c"), [("pods", "1,2")]),
            (("resource: pods, namespaces: [a, b]", "resource: pods, namespaces: [b, c], drop: [spec]"), [("pods", "1,2")]),
            # These store the same, have no object in common, or that is not known.
            ((dropping, "resource: pods, drop: [status, spec], namespaces: [a]"), []),
            (("resource: pods, namespaces: [a]", "resource: pods, namespaces: [b], drop: [spec]"), []),
            ((pods + ", labelSelector: a=b", dropping + ", labelSelector: a=c"), []),
            ((pods, "resource: nodes, drop: [spec]"), []),
        ):
            with self.subTest(entries):
                self.assertEqual(told(*entries), wanted)
        self.assertEqual(told(pods, dropping, handlers="[]"), [])
        self.assertEqual(told(pods, dropping, "resource: nodes", handlers="[{exec: [cat], resources: [nodes]}]"), [])

    def test_a_full_disk_is_named(self):
        for args in (["--check-config", "--resource", "pods"], ["--version"], ["--help"],
                     [*self.pods(cluster().kubeconfig()), "--measure"]):
            with self.subTest(args), open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([daemon_path("asan"), *args], stdin=subprocess.DEVNULL, stdout=full, text=True,
                                      stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
                self.assertEqual(done.returncode, FAILED, done.stderr)
                self.assertIn("cannot write to standard output: No space left on device", done.stderr)

    def kubeconfig_of(self, url):
        with open(cluster().kubeconfig(), encoding="utf-8") as file:
            return self.write("elsewhere", file.read().replace(cluster().env["KINF_SERVER"],
                                                               f"{url}\n    tls-server-name: localhost"))

    def complains_and_waits(self, kubeconfig, names):
        """Whoever measures is told at once; a daemon says so and waits, until it is stopped."""
        self.complains(FAILED, *self.pods(kubeconfig), "--measure", names=names)
        with Daemon(kubeconfig=kubeconfig) as daemon:
            daemon.wait_logged('waiting for the server error="')
            for name in names:
                self.assertIn(name, daemon.log_text())
            daemon.stop()

    def test_refused_connection(self):
        # Bound, so nobody else listens there, and not listening itself.
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            port = bound.getsockname()[1]
            self.complains_and_waits(self.kubeconfig_of(f"https://127.0.0.1:{port}"), [f"127.0.0.1:{port}", "refused"])

    def test_unresolvable_host(self):
        self.complains_and_waits(self.kubeconfig_of("https://no-such-host.invalid:6443"), ["no-such-host.invalid"])

    def test_a_server_that_is_another_is_not_waited_for(self):
        class Elsewhere(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(302)
                self.send_header("Location", "http://elsewhere.invalid/login")
                self.end_headers()

            def log_message(self, *args):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.complains(FAILED, *self.pods(self.kubeconfig_of(f"http://127.0.0.1:{server.server_port}")), names=["302"])
            server.shutdown()

    def test_a_server_that_comes_later_is_waited_for(self):
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            kubeconfig = self.kubeconfig_of(f"https://127.0.0.1:{bound.getsockname()[1]}")
            with Daemon("--listen", "127.0.0.1:0", kubeconfig=kubeconfig, resource=("pods", "nodes")) as daemon:
                daemon.wait_logged("waiting for the server")
                bound.listen()
                with Proxy(listener=bound):
                    daemon.wait_synced(2)
                    self.assertEqual(daemon.count_loud("waiting for the server"), 1)
                    daemon.stop()

    def test_the_timeout_counts_from_the_start(self):
        """Nothing takes as long as asking what pods are, and running the plugin before that."""
        plugin = self.write("plugin", "#!/bin/sh\nexec sleep 600\n")
        os.chmod(plugin, 0o700)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            for user in ("{token: x}", "{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, "
                                       f"command: {plugin}}}}}"):
                path = self.write("silent", "current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
                                  f"clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{silent.getsockname()[1]}',"
                                  f" insecure-skip-tls-verify: true}}}}]\nusers: [{{name: u, user: {user}}}]\n")
                with self.subTest(user):
                    self.complains(FAILED, *self.pods(path), "--measure", "--timeout", "1s",
                                   names=["pods did not sync within 1000 ms", "looked up"])

    @needs_cluster("client certificates")
    def test_certificates(self):
        self.complains(FAILED, *self.pods(cluster().kubeconfig("wrong-ca")), names=["127.0.0.1", "certificate"])
        self.complains(FAILED, *self.pods(cluster().kubeconfig("wrong-name")), names=["another.example.com"])
        self.complains(FAILED, *self.pods(cluster().kubeconfig("expired-cert")), names=["expired"])

    @needs_cluster("a certificate of its authority, a server in Go")
    def test_expired_serving_certificate(self):
        pki = os.path.join(cluster().folder, "pki")
        with subprocess.Popen([os.path.join(TOOLS, "tlsserver"), "-cert", f"{pki}/expired-serving.crt", "-key",
                               f"{pki}/expired-serving.key", "-status", "401", "-for", "60s"], stdout=subprocess.PIPE,
                              text=True) as server:
            url = server.stdout.readline().strip().removeprefix("url=")
            with open(cluster().kubeconfig(), encoding="utf-8") as file:
                text = file.read().replace(cluster().env["KINF_SERVER"], url)
            self.complains(FAILED, *self.pods(self.write("expired", text)),
                           names=[url.removeprefix("https://"), "expired"])
            server.send_signal(signal.SIGTERM)

    def test_unauthorized_and_forbidden(self):
        line = self.complains(FAILED, *self.pods(cluster().kubeconfig("bad-token")), names=["401"])
        self.assertNotIn("no-such-token", line)
        self.complains(FAILED, *self.pods(cluster().kubeconfig("nobody")), names=["pods", "nobody"])

    def test_no_secret_is_ever_printed(self):
        with open(os.path.join(cluster().folder, "tokens", "reader"), encoding="utf-8") as file:
            token = file.read().strip()
        for args in (("--resource", "namespaces", "--measure"), ("--resource", "secrets")):
            _, out, err = run_daemon("--kubeconfig", cluster().kubeconfig("token"), *args, "--log-level", "debug")
            self.assertNotIn(token, out + err)


class LargeObjects(unittest.TestCase):
    """What the server just takes comes through, listed and watched."""

    NAMESPACE = "large-objects"
    STORED_BYTES = 1000000

    @classmethod
    def setUpClass(cls):
        cluster().make_namespace(cls.NAMESPACE)
        manifest = os.path.join(ROOT, "tests", "integration", "gadgets.yaml")
        cluster().kubectl("apply", "-f", manifest)
        cluster().kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/gadgets.test.kinformer.dev")

    def post(self, target, body):
        """As YAML, which has a short form of NUL: the server takes no request above 3 MiB."""
        with open(os.path.join(cluster().folder, "tokens", "admin"), encoding="utf-8") as file:
            headers = {"Authorization": "Bearer " + file.read().strip(), "Content-Type": "application/yaml"}
        context = ssl.create_default_context(cafile=os.path.join(cluster().folder, "pki", "ca.crt"))
        request = urllib.request.Request(cluster().env["KINF_SERVER"] + target, body.encode(), headers)
        with urllib.request.urlopen(request, context=context, timeout=60):
            pass

    def check(self, resource, target, body, *args):
        """`body` is text with %s for the name."""
        with Daemon("--namespace", self.NAMESPACE, *args, resource=(resource,)) as before:
            before.wait_synced()
            self.post(target, body % "watched")
            self.post(target, body % "both")
            with Daemon("--namespace", self.NAMESPACE, *args, resource=(resource,)) as after:
                for daemon in (before, after):
                    daemon.wait_equal(lambda: cluster().versions(target), before.synced[0])
                    self.assertNotIn("left out", daemon.log_text())
                    yield daemon.events_of(self.NAMESPACE + "/both")[0]
                    daemon.stop()
        cluster().kubectl("delete", resource, "watched", "both", "-n", self.NAMESPACE)

    @needs_cluster("texts with a NUL in them")
    def test_a_config_map_of_a_megabyte_that_is_six_as_json(self):
        body = ('{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {value: "' + "\\0" * self.STORED_BYTES +
                '"}}')
        target = f"/api/v1/namespaces/{self.NAMESPACE}/configmaps"
        for event in self.check("configmaps", target, body, "--events-objects"):
            self.assertEqual(event["object"]["data"]["value"], "\0" * self.STORED_BYTES)

    def test_a_custom_resource_with_large_values(self):
        body = ("{apiVersion: test.kinformer.dev/v1, kind: Gadget, metadata: {name: %s, annotations: {large: " +
                "a" * 200000 + "}}, spec: {value: " + "b" * 900000 + "}}")
        target = f"/apis/test.kinformer.dev/v1/namespaces/{self.NAMESPACE}/gadgets"
        # The server answers 404 or 429 until it has made the storage of the type.
        wait_until(lambda: self.is_served(target), "the type is served")
        for event in self.check("gadgets.test.kinformer.dev", target, body, "--events-objects"):
            self.assertEqual(event["object"]["spec"]["value"], "b" * 900000)
            self.assertEqual(event["object"]["metadata"]["annotations"]["large"], "a" * 200000)

    def is_served(self, target):
        try:
            return cluster().versions(target) == {}
        except AssertionError:
            return False


class Reload(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "config.yaml")

    def write(self, *resources, more="", root=""):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(root + "events: json\nresources:\n")
            for resource in resources:
                file.write(f"- resource: {resource}\n{more}")

    def test_sighup_adds_and_removes_resources(self):
        self.write("namespaces")
        with Daemon("--config", self.path, resource=(), events=False) as daemon:
            daemon.wait_synced()
            self.write("namespaces", "configmaps")
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_synced(2)
            self.assertEqual(daemon.synced, ["namespaces", "configmaps"])
            self.write("configmaps")
            daemon.process.send_signal(signal.SIGHUP)
            wait_until(lambda: daemon.log_text().count("configuration read again") == 2, "the second reload")
            cluster().make_namespace("nobody-looks")
            cluster().kubectl("create", "configmap", "looked-at", "-n", "nobody-looks")
            daemon.wait_types("nobody-looks/looked-at", "ADDED")
            self.assertEqual(daemon.events_of("nobody-looks"), [])
            self.assertEqual(daemon.synced, ["namespaces", "configmaps"], "what stays is not begun again")
            daemon.stop()

    def test_flags_win_over_the_file_that_is_read_again(self):
        self.write("namespaces")
        with Daemon("--config", self.path, "--events-objects", resource=(), events=False) as daemon:
            daemon.wait_synced()
            for resources in (("namespaces",), ("namespaces", "serviceaccounts")):
                self.write(*resources)
                before = daemon.log_text().count("configuration read again")
                daemon.process.send_signal(signal.SIGHUP)
                wait_until(lambda: daemon.log_text().count("configuration read again") > before, "a reload")
            self.assertNotIn("change only by a restart", daemon.log_text())
            daemon.wait_synced(2)
            cluster().make_namespace("read-again")
            cluster().kubectl("create", "serviceaccount", "read-again", "-n", "read-again")
            daemon.wait_types("read-again/read-again", "ADDED")
            self.assertIn("object", daemon.events_of("read-again/read-again")[0])
            daemon.stop()

    def test_a_sighup_while_the_file_is_read_at_the_start_waits(self):
        os.mkfifo(self.path)
        with Daemon("--config", self.path, resource=(), events=False) as daemon:
            with open(self.path, "w", encoding="utf-8") as file:
                daemon.process.send_signal(signal.SIGHUP)
                file.write('{"events": "json", "resources": [{"resource": "namespaces"}]}')
                os.remove(self.path)
                self.write("namespaces", "configmaps")
            daemon.wait_synced(2)
            daemon.stop()

    def reload_log_levels(self, levels, env):
        """A daemon that begins with `log: debug` and reads `levels`; what it says after that."""
        log = self.path + ".log"
        self.write("namespaces", root="log: debug\n")
        with open(log, "w", encoding="utf-8") as file:
            process = subprocess.Popen(
                [daemon_path("asan"), "--kubeconfig", cluster().kubeconfig(), "--config", self.path], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=file, text=True, env={**os.environ, **env})
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for line in process.stdout:
            if '"SYNCED"' in line:
                break
        self.write("namespaces", "configmaps", root=levels)
        process.send_signal(signal.SIGHUP)
        for line in process.stdout:
            if '"SYNCED"' in line:
                break
        process.terminate()
        self.assertEqual(process.wait(timeout=30), 0)
        with open(log, encoding="utf-8") as file:
            return file.read()

    def test_the_environments_log_level_wins_over_the_file_that_is_read_again(self):
        self.assertEqual(self.reload_log_levels("log: debug\n", {"KINF_LOG": "error"}), "")

    def test_a_log_level_that_is_taken_out_of_the_file_is_not_kept(self):
        for levels in ("", "log: serve=debug\n"):
            begin, end = self.reload_log_levels(levels, {"KINF_LOG": ""}).split("configuration read again")
            self.assertIn(" debug reflector:", begin)
            self.assertNotIn(" debug reflector:", end)

    def test_a_bad_file_changes_nothing(self):
        self.write("namespaces")
        with Daemon("--config", self.path, resource=(), events=False) as daemon:
            daemon.wait_synced()
            for resources, more in ((("configmaps",), "  colour: blue\n"), (("unicorns",), "")):
                self.write(*resources, more=more)
                before = daemon.log_text().count("nothing changed")
                daemon.process.send_signal(signal.SIGHUP)
                wait_until(lambda: daemon.log_text().count("nothing changed") > before, "a complaint")
            cluster().make_namespace("after-a-bad-file")
            daemon.wait_types("after-a-bad-file", "ADDED")
            daemon.stop()


if __name__ == "__main__":
    unittest.main()
