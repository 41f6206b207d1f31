"""The parts that integration tests are made of: a cluster, kinformerd, and a proxy that fails on demand.

The cluster is started once in each process (run.py has some) and ends with it. It is etcd and kube-apiserver, or with
KINF_TEST_SERVER=sim kinformer-sim, where what `needs_cluster` is skipped. Daemons run the ASan build unless a test asks
for another one, so a leak or a wild access in any test is a failed exit.
"""

import atexit
import functools
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = os.path.join(ROOT, "build", "cluster", "bin")

# Nothing here takes nearly as long; it only keeps a broken test from hanging.
PATIENCE = 120.0

IS_SIMULATED = os.environ.get("KINF_TEST_SERVER") == "sim"


# Each test runs on both servers, unless it says why not. What it says begins so.
WRONG_SERVER = "needs the real server: " if IS_SIMULATED else "needs kinformer-sim: "


def needs_cluster(why):
    """Marks a test, or all of a class, that only the real server can show."""
    return unittest.skipIf(IS_SIMULATED, WRONG_SERVER + why)


def needs_sim(why):
    """Marks those that the real server cannot show, or that start what they need themselves: once is enough of them."""
    return unittest.skipUnless(IS_SIMULATED, WRONG_SERVER + why)


def need_cluster(why):
    """The same, of a whole module: the first thing in its setUpModule()."""
    if IS_SIMULATED:
        raise unittest.SkipTest(WRONG_SERVER + why)


def lack(tool):
    """Skips a test, or in its setUpModule() a module, for lack of a tool; with CI=true it fails."""
    raise (AssertionError if os.environ.get("CI") == "true" else unittest.SkipTest)("there is no " + tool)


def program_path(name, mode):
    """Of this build, or of the one of KINF_TEST_BUILD: what a coverage build does is counted."""
    return os.path.join(ROOT, "build", os.environ.get("KINF_TEST_BUILD", mode), "bin", name)


def daemon_path(mode):
    return program_path("kinformerd", mode)


def wait_until(condition, what, patience=PATIENCE):
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        result = condition()
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError(f"not within {patience} s: {what}")


def read_notes(path, kind):
    """The words of each whole line that begins with this one; programs write them, a line at once."""
    try:
        with open(path, encoding="utf-8") as file:
            return [line.split()[1:] for line in file if line.startswith(kind + " ") and line.endswith("\n")]
    except FileNotFoundError:
        return []


def fnv1a64(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


class Server:
    """What tests ask of either server."""

    def try_kubectl(self, *args, stdin=None):
        try:
            return self.kubectl(*args, stdin=stdin) or True
        except AssertionError:
            return False

    def kubeconfig(self, name="admin"):
        return os.path.join(self.folder, name + ".kubeconfig")

    def make_namespace(self, name):
        self.kubectl("create", "namespace", name)

    def versions(self, target="/api/v1/pods", keep=lambda item: True):
        """Key -> resourceVersion of what kubectl lists."""
        items = json.loads(self.kubectl("get", "--raw", target))["items"]
        return {item["metadata"].get("namespace", "") + "/" + item["metadata"]["name"]:
                item["metadata"]["resourceVersion"] for item in items if keep(item)}

    def checksum(self, target="/api/v1/pods", keep=lambda item: True):
        lines = sorted(f"{key}@{version}\n".encode() for key, version in self.versions(target, keep).items())
        return fnv1a64(b"".join(lines))


class Cluster(Server):
    """etcd and kube-apiserver in a folder of their own."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="kinformer-cluster-")
        self.run_script("start", KINF_OWNER_PID=str(os.getpid()))
        atexit.register(self.close)
        self.env = {}
        with open(os.path.join(self.folder, "cluster.env"), encoding="utf-8") as file:
            for line in file:
                name, _, value = line.strip().partition("=")
                self.env[name] = value
        manifests = os.path.join(ROOT, "tests", "cluster", "manifests")
        self.kubectl("apply", "-f", os.path.join(manifests, "reader.yaml"))

    def close(self):
        self.run_script("stop")
        subprocess.run(["rm", "-rf", self.folder], check=False)

    def run_script(self, command, **env):
        script = os.path.join(ROOT, "tests", "cluster", "cluster.sh")
        done = subprocess.run([script, command, self.folder], env={**os.environ, **env}, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            raise AssertionError(f"cluster.sh {command}: {done.stdout}")

    def kubectl(self, *args, stdin=None):
        done = subprocess.run([self.env["KINF_KUBECTL"], "--kubeconfig", self.kubeconfig(), *args], input=stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(args)}: {done.stderr}")
        return done.stdout

    @functools.cached_property
    def context(self):
        pki = os.path.join(self.folder, "pki", "")
        context = ssl.create_default_context(cafile=pki + "ca.crt")
        context.load_cert_chain(pki + "admin.crt", pki + "admin.key")
        return context

    def connect(self):
        """A connection for requests of the admin."""
        return http.client.HTTPSConnection(self.env["KINF_SERVER"].removeprefix("https://"), context=self.context,
                                           timeout=PATIENCE)

    def loader(self, verb, *args):
        where = ["-etcd", self.env["KINF_ETCD"]] if verb == "compact" else ["-kubeconfig", self.kubeconfig()]
        done = subprocess.run([os.path.join(TOOLS, "loader"), verb, *where, *args],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"loader {verb} {' '.join(args)}: {done.stderr}")
        return done.stdout

    def forget(self):
        """Breaks all connections; what happened before is not told any more: watches from then are expired."""
        self.run_script("kill-apiserver")
        self.run_script("start-apiserver")

    def signal_apiserver(self, number):
        with open(os.path.join(self.folder, "kube-apiserver.pid"), encoding="utf-8") as file:
            os.kill(int(file.read()), number)


_cluster = None


def cluster():
    global _cluster
    if _cluster is None:
        if IS_SIMULATED:
            from sim_cluster import SimCluster  # which is made of parts of this module
            _cluster = SimCluster()
        else:
            _cluster = Cluster()
    return _cluster


# There is no etcd to write them to in a moment.
N_MANY_PODS = 1000 if IS_SIMULATED else 10000
N_MANY_NAMESPACES = 10
_has_many_pods = False


def many_pods():
    """10,000 pods, simulated 1,000, in the namespaces many-0 to many-9, made once and never changed in number.
    Returns how many pods there are in all, now: other tests leave some."""
    global _has_many_pods
    if not _has_many_pods:
        cluster().loader("load", "-pods", str(N_MANY_PODS), "-namespaces", str(N_MANY_NAMESPACES), "-prefix", "many",
                         *([] if IS_SIMULATED else ["-etcd", cluster().env["KINF_ETCD"]]))
        _has_many_pods = True
    page = json.loads(cluster().kubectl("get", "--raw", "/api/v1/pods?limit=1"))  # not 160 MB to be counted
    return 1 + page["metadata"]["remainingItemCount"]


def keep_file(text):
    """A file with this text, which the caller removes."""
    with tempfile.NamedTemporaryFile("w", prefix="kinformer-test-", delete=False, encoding="utf-8") as file:
        file.write(text)
    return file.name


def write_config(folder, *resources, name="config.yaml", **keys):
    """A configuration with these keys for each of the resources; returns its path."""
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("events: json\nresources:\n")
        for resource in resources:
            file.write(f"- resource: {resource}\n")
            file.writelines(f"  {key}: {json.dumps(value)}\n" for key, value in keys.items())
    return path


def make_key_pair(path, name="localhost"):
    """A certificate for this machine that signs itself, as path.crt, and its key, as path.key."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc",
                    "-days", "2", "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
                    "-keyout", path + ".key", "-out", path + ".crt"], check=True, stderr=subprocess.DEVNULL)


def run_daemon(*args, mode="asan", env=None, timeout=2 * PATIENCE):
    """Runs kinformerd to its end: (exit code, stdout, stderr)."""
    done = subprocess.run([daemon_path(mode), *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=timeout, check=False,
                          env={**os.environ, **(env or {})})
    return done.returncode, done.stdout, done.stderr


def build_probe(folder, source, compiler, *flags):
    """Builds a program of this folder against the static library of the ASan build; returns its path."""
    libraries = subprocess.run(["pkg-config", "--libs", "libcurl", "libcjson", "yaml-0.1", "openssl", "zlib",
                                "libzstd"],
                               check=True, text=True, stdout=subprocess.PIPE).stdout.split()
    program = os.path.join(folder, source + ".program")
    subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", *flags, "-g", "-fsanitize=address,undefined",
                    "-fno-sanitize-recover=all", "-I" + os.path.join(ROOT, "src", "include"),
                    os.path.join(ROOT, "tests", "integration", source),
                    os.path.join(ROOT, "build", "asan", "lib", "libkinformer.a"),
                    *libraries, "-pthread", "-o", program], check=True)
    return program


def measure(*args, mode="release", kubeconfig=None, timeout="120s"):
    """kinformerd --measure, as a list of dictionaries, one for each resource."""
    code, out, err = run_daemon("--kubeconfig", kubeconfig or cluster().kubeconfig(), *args, "--measure", "--timeout",
                                timeout, mode=mode)
    if code != 0:
        raise AssertionError(f"--measure ended with {code}: {err}")
    return [dict(pair.split("=", 1) for pair in line.split()) for line in out.splitlines()]


class Illegal(AssertionError):
    pass


class Slow(AssertionError):
    pass


def again_if_slow(test):
    """For a test that measures: a wait of the daemon's own shows each time, one of a busy machine does not."""
    @functools.wraps(test)
    def run(self):
        for _ in range(4):
            try:
                return test(self)
            except Slow as problem:
                print(f"  once more: {problem}")
        return test(self)
    return run


class Daemon:
    """A running kinformerd whose JSON events are replayed into `state`; an illegal history fails the test."""

    def __init__(self, *args, mode="asan", kubeconfig=None, resource=("pods",), events=True, config=None, env=None,
                 max_files=None):
        command = ["prlimit", f"--nofile={max_files}:{max_files}"] if max_files else []
        command += [daemon_path(mode), "--kubeconfig", kubeconfig or cluster().kubeconfig(), "--log-level", "debug"]
        if config is not None:
            command += ["--config", config]
        else:
            if events:
                command += ["--events", "json"]
            for name in resource:
                command += ["--resource", name]
        self.log = tempfile.NamedTemporaryFile(prefix="kinformerd-", suffix=".log", mode="w+", encoding="utf-8")
        self.lock = threading.Lock()
        self.state = {}  # (resource, key) -> resourceVersion
        self.history = []  # every event, as printed
        self.synced = []
        self.problem = None
        self.process = subprocess.Popen([*command, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True, env={**os.environ, **(env or {})})
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        if kind is not None:
            print(f"--- the end of kinformerd's log\n{self.log_text()[-4000:]}")
        self.log.close()

    def _read(self):
        for line in self.process.stdout:
            try:
                event = json.loads(line)
                with self.lock:
                    self.history.append(event)
                    self._apply(event)
            except (ValueError, KeyError, Illegal) as problem:
                self.problem = self.problem or f"{problem!r} at {line!r}"

    def _apply(self, event):
        kind = event["type"]
        if kind == "SYNCED":
            if event["resource"] in self.synced:
                raise Illegal("synced twice")
            self.synced.append(event["resource"])
            return
        place = (event["resource"], event["key"])
        if kind == "ADDED":
            if place in self.state:
                raise Illegal("added, and already there")
            if event["initial"] and event["resource"] in self.synced:
                raise Illegal("initial after SYNCED")
            self.state[place] = event["resourceVersion"]
        elif kind == "MODIFIED":
            if place not in self.state:
                raise Illegal("modified, and not there")
            if event["initial"]:
                raise Illegal("a modification is never initial")
            self.state[place] = event["resourceVersion"]
        elif kind == "DELETED":
            if self.state.pop(place, None) is None:
                raise Illegal("deleted, and not there")
        else:
            raise Illegal("unknown type")

    def log_text(self):
        self.log.flush()
        with open(self.log.name, encoding="utf-8", errors="replace") as file:
            return file.read()

    def count_log(self, text):
        """How many lines of the log contain it."""
        return sum(text in line for line in self.log_text().splitlines())

    def count_loud(self, text=""):
        """The same of the lines that a reader sees who has not asked for details."""
        return sum(text in line and " debug " not in line for line in self.log_text().splitlines())

    def wait_logged(self, text, times=1):
        wait_until(lambda: self.check() or self.count_log(text) >= times, f"{times} times in the log: {text}")

    def check(self):
        if self.problem is not None:
            raise AssertionError(self.problem)
        if self.process.poll() is not None:
            raise AssertionError(f"kinformerd ended with {self.process.returncode}: {self.log_text()[-2000:]}")

    def wait_synced(self, n_resources=1):
        wait_until(lambda: self.check() or len(self.synced) >= n_resources, "SYNCED")

    def versions(self, resource="pods"):
        with self.lock:
            return {key if "/" in key else "/" + key: version for (of, key), version in self.state.items()
                    if of == resource}

    def wait_equal(self, expected, resource="pods", patience=PATIENCE):
        """Until the replayed state is what `expected()` lists."""
        wanted = expected()

        def equal():
            nonlocal wanted
            self.check()
            if self.versions(resource) == wanted:
                wanted = expected()
                return self.versions(resource) == wanted
            return False
        wait_until(equal, f"the daemon has {len(self.versions(resource))} {resource}, the server {len(wanted)}",
                   patience)

    def events_of(self, key):
        with self.lock:
            return [event for event in self.history if event.get("key") == key]

    def wait_types(self, key, *types, patience=PATIENCE):
        wait_until(lambda: self.check() or [event["type"] for event in self.events_of(key)] == list(types),
                   f"{key}: {types}", patience)

    def stop(self, within=None):
        """SIGTERM; returns the seconds until the end, and fails unless it was clean."""
        self.check()
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE)
        seconds = time.monotonic() - began
        self.reader.join()
        if code != 0:
            raise AssertionError(f"stopped with {code}: {self.log_text()[-4000:]}")
        if self.problem is not None:
            raise AssertionError(self.problem)
        if within is not None and seconds > within:
            raise Slow(f"stop took {seconds:.3f} s")
        return seconds


class Proxy:
    """A TCP proxy in front of the API server. `stall` holds back what the server sends, `hold` what it is
    sent, on connections present and future; lose_server() ends the present ones on the server's side alone; refuse() closes the
    listener and every connection. `listener`, if given, is closed with the proxy."""

    def __init__(self, target=None, listener=None):
        host, _, port = (target or cluster().env["KINF_SERVER"]).removeprefix("https://").rpartition(":")
        self.target = (host, int(port))
        self.listener = listener or socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self.listener.getsockname()
        self.stall = threading.Event()
        self.hold = threading.Event()
        self.closed = False
        self.sockets = []
        self.servers = []
        self.silent = set()  # of `servers`, what they send is held back
        self.lost = set()  # connections to the server that the client shall not miss
        self.n_connections = 0
        self.n_sent = 0  # bytes to the server
        self.sent_at = {}  # connection to the server -> when it was sent something last
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.closed:
            self.refuse()

    def kubeconfig(self, folder, name="proxy", user="admin"):
        with open(cluster().kubeconfig(user), encoding="utf-8") as file:
            text = file.read().replace(cluster().env["KINF_SERVER"],
                                       f"https://{self.host}:{self.port}\n    tls-server-name: localhost")
        path = os.path.join(folder, name + ".kubeconfig")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def drop(self):
        """Ends the present connections with all that is held back on them; new ones are as good as ever."""
        for connection in list(self.sockets):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.stall.clear()

    def lose_server(self):
        for server in list(self.servers):
            self.lost.add(server)
            try:
                server.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def refuse(self):
        self.closed = True
        self.stall.clear()
        # Closing alone would leave the port open for as long as the thread sits in accept().
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.sockets:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            connection.close()

    def _accept(self):
        while not self.closed:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.target)
            except OSError:  # a server that is away, and may come back
                client.close()
                continue
            self.n_connections += 1
            self.sockets += [client, server]
            self.servers.append(server)
            threading.Thread(target=self._pump, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, True), daemon=True).start()

    def _pump(self, source, sink, from_server):
        try:
            while piece := source.recv(65536):
                while (self.stall if from_server else self.hold).is_set() or source in self.silent:
                    time.sleep(0.01)
                sink.sendall(piece)
                if not from_server:
                    self.n_sent += len(piece)
                    self.sent_at[sink] = time.monotonic()
            if source not in self.lost:
                sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Example:
    """A running program of examples/, and its log."""

    def __init__(self, name, *args, kubeconfig=None, stdin=subprocess.DEVNULL, stdout=None, env=None):
        self.log = tempfile.NamedTemporaryFile(mode="w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [os.path.join(ROOT, "build", "asan", "examples", name), *args], stdin=stdin, stdout=stdout or self.log,
            stderr=self.log, env={**os.environ, "KUBECONFIG": kubeconfig or cluster().kubeconfig(), **(env or {})})

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.kill()
        if kind is not None:
            print(f"--- the end of the log\n{self.log_text()[-4000:]}")
        self.log.close()

    def log_text(self):
        with open(self.log.name, encoding="utf-8") as file:
            return file.read()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE)
        if code != 0:
            raise AssertionError(f"exit {code}: {self.log_text()}")


def make_gadgets():
    """A custom resource: gadgets.test.kinformer.dev."""
    cluster().kubectl("apply", "-f", os.path.join(ROOT, "tests", "integration", "gadgets.yaml"))
    cluster().kubectl("wait", "--for=condition=Established", "crd/gadgets.test.kinformer.dev")


def config_map(name, namespace, data="x", labels=None):
    """A small object, as kubectl takes it on its standard input."""
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap",
                       "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
                       "data": {"value": data}})
