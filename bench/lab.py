"""What every measurement needs: the programs, a canned server, a client that runs, what the kernel says of it.

A client is a program that keeps pods in an informer and prints lines; README.md has their common rules. Rows of a
measurement are {"of": name, "figures": {name: [a value a run]}, "void": why, if it is}.
"""

import os
import re
import shutil
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BENCH = os.path.join(ROOT, "bench")
PEERS = os.path.join(ROOT, "build", "peers")
RELEASE = os.path.join(ROOT, "build", os.environ.get("MODE", "release"))
PATIENCE_S = 600

# Name -> program, flavour, initial.
CLIENTS = {
    "kinformer": ("bench_pods", "whole", "default"),
    "kinformer, agent fields": ("bench_pods", "agent", "default"),
    "kinformer, compressed": ("bench_pods", "compressed", "default"),
    "kinformer, metadata": ("bench_pods", "metadata", "default"),
    "kinformer, gzip": ("bench_pods", "whole", "gzip"),
    "kinformer, watch list": ("bench_pods", "whole", "watchlist"),
    "client-go, JSON": ("client-go", "json", "default"),
    "client-go, protobuf": ("client-go", "protobuf", "default"),
    "client-go, dynamic": ("client-go", "dynamic", "default"),
    "client-go, metadata": ("client-go", "metadata", "default"),
    "kube-rs": ("kube-rs", "typed", "default"),
    "kube-rs, dynamic": ("kube-rs", "dynamic", "default"),
    "kube-rs, watch list": ("kube-rs", "typed", "watchlist"),
}
PROGRAMS = {
    "bench_pods": os.path.join(RELEASE, "bench", "bench_pods"),
    "client-go": os.path.join(PEERS, "client-go"),
    "kube-rs": os.path.join(PEERS, "kube-rs", "release", "pods"),
}
CURL = "curl"


class Failure(Exception):
    pass


# --- programs ---


def run(*command, **options):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, **{"check": True, **options}).stdout


def make(*targets):
    run("make", "-s", "--no-print-directory", "-C", ROOT, "MODE=" + os.path.basename(RELEASE),
        *(os.path.relpath(target, ROOT) for target in targets))


def build_go(name):
    """The program of a module in peers/, or None without a compiler."""
    if not shutil.which("go"):
        return None
    program = os.path.join(PEERS, name)
    run("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, ".", cwd=os.path.join(BENCH, "peers", name),
        env={**os.environ, "CGO_ENABLED": "0"})
    return program


def build_rust(name):
    """The program of that name in peers/kube-rs, or None without a compiler."""
    if not shutil.which("cargo"):
        return None
    folder = os.path.join(PEERS, "kube-rs")
    run("cargo", "build", "--quiet", "--release", "--locked", "--bin", name, cwd=os.path.join(BENCH, "peers", "kube-rs"),
        env={**os.environ, "CARGO_TARGET_DIR": folder})
    return os.path.join(folder, "release", name)


def build(peers):
    """Builds kinformer's programs and those of these peers; returns the clients that there are then."""
    make(PROGRAMS["bench_pods"], os.path.join(RELEASE, "replay", "kinf-replay"))
    os.makedirs(PEERS, exist_ok=True)
    built = {"bench_pods"}
    if "client-go" in peers and build_go("client-go"):
        built.add("client-go")
    if "kube-rs" in peers and build_rust("pods"):
        built.add("kube-rs")
    return [name for name, (program, _, _) in CLIENTS.items() if program in built]


def version_of(pattern, *command):
    try:
        return re.search(pattern, run(*command, stderr=subprocess.DEVNULL))[1]
    except (OSError, TypeError, subprocess.CalledProcessError):
        return "unknown"


def required(path, pattern):
    with open(os.path.join(BENCH, "peers", path), encoding="utf-8") as file:
        return re.search(pattern, file.read())[1]


def versions(clients):
    """Of what was built, and with what."""
    found = {"curl": version_of(r"curl (\S+)", "curl", "--version"), "cc": version_of(r"(\d+\.\d+\.\d+)", "cc", "--version")}
    if "client-go, JSON" in clients:
        found |= {"client-go": required("client-go/go.mod", r"k8s.io/client-go v(\S+)"), "Go": version_of(r"go(\d\S*)", "go", "version")}
    if "kube-rs" in clients:
        found |= {"kube-rs": required("kube-rs/Cargo.lock", r'name = "kube"\nversion = "([^"]+)"'),
                  "rustc": version_of(r"rustc (\S+)", "rustc", "--version")}
    return found


# --- what the kernel says of a process ---


def available_mib():
    with open("/proc/meminfo", encoding="ascii") as file:
        return int(re.search(r"^MemAvailable:\s+(\d+)", file.read(), re.M)[1]) / 1024


def status_mib(pid, field):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(rf"^{field}:\s+(\d+)", file.read(), re.M)[1]) / 1024


def cpu_seconds(pid):
    """Of all its threads, also of those that have ended, in ticks."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_seconds_of_one_thread(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e9


def wait_quiet(pid, read_cpu=cpu_seconds, quiet_s=0.3):
    """Until it has used no more for so long; returns when it stopped, and what it had used."""
    last, since = read_cpu(pid), time.monotonic()
    deadline = since + PATIENCE_S
    while time.monotonic() - since < quiet_s:
        time.sleep(0.01)
        now = read_cpu(pid)
        if now != last:
            last, since = now, time.monotonic()
        if time.monotonic() > deadline:
            raise Failure("a client does not come to rest")
    return since, last


def wait_for(what, patience_s=PATIENCE_S):
    deadline = time.monotonic() + patience_s
    while True:
        found = what()
        if found:
            return found
        if time.monotonic() > deadline:
            raise Failure("it takes too long")
        time.sleep(0.002)


def fields_of(line):
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


class Process:
    """One whose output is a file, so that it never waits for its reader."""

    def __init__(self, folder, name, command, **options):
        self.out = os.path.join(folder, name + ".out")
        self.log = os.path.join(folder, name + ".log")
        with open(self.out, "w", encoding="utf-8") as out, open(self.log, "w", encoding="utf-8") as log:
            self.began_ns = time.monotonic_ns()
            self.process = subprocess.Popen(command, stdout=out, stderr=log, **options)
        self.pid = self.process.pid

    def text(self):
        with open(self.out, encoding="utf-8") as file:
            return file.read()

    def wait_line(self, pattern, since=0):
        """The first one behind so many characters."""
        def look():
            found = re.search(pattern, self.text()[since:], re.M)
            if not found and self.process.poll() is not None:
                with open(self.log, encoding="utf-8") as file:
                    raise Failure(f"{self.process.args[0]} ended: {file.read()[-2000:]}")
            return found
        return wait_for(look)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


# --- the canned server ---


class Server(Process):
    """kinf-replay over TLS, with pods that are all made of one."""

    def __init__(self, folder, n_pods, *options, pod="pod.json"):
        self.folder = folder
        self.kubeconfig, self.ca = os.path.join(folder, "kubeconfig"), os.path.join(folder, "ca")
        super().__init__(folder, "server", [os.path.join(RELEASE, "replay", "kinf-replay"), "--generate-pods", str(n_pods),
                                            "--pod", os.path.join(BENCH, pod), "--write-kubeconfig", self.kubeconfig,
                                            "--write-ca", self.ca, *options])
        self.n_pods = n_pods
        said = fields_of(self.wait_line(r"^server=.*$")[0])
        self.url, self.sums = said["server"], {True: said["sum"], False: said["sum_metadata"]}

    def watches(self):
        """(when, resourceVersion) of each watch that went on from one."""
        found = re.findall(r"^request at_ms=(\d+) GET \S+?[?&]resourceVersion=(\d+)\S*", "\n".join(
            line for line in self.text().splitlines() if "watch=" in line and "sendInitial" not in line), re.M)
        return [(int(at_ms) / 1e3, int(rv)) for at_ms, rv in found]

    def wait_watches(self, n):
        return wait_for(lambda: self.watches()[n - 1:])[0]

    def curl(self, target):
        return ["curl", "-sS", "-o", "/dev/null", "-w", "%{size_download}", "-A", "bench", "--http1.1", "--cacert", self.ca,
                "-H", "Authorization: Bearer replay", self.url + target]


# --- a client ---


class Client(Process):
    def __init__(self, name, folder, kubeconfig, n_events=0):
        program, self.flavour, initial = CLIENTS[name]
        self.times = os.path.join(folder, "times")
        super().__init__(folder, "client", [PROGRAMS[program], self.flavour, initial, kubeconfig, str(n_events), self.times],
                         stdin=subprocess.PIPE)

    def said(self, name, since=0):
        return {key: value if key == "sum" else int(value)
                for key, value in fields_of(self.wait_line(rf"^{name} .*$", since)[0]).items()}

    def ask(self, line):
        """The figures of its answer (store_work.h)."""
        since = len(self.text())
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        return self.said(line.split(" ")[0] or "mark", since)

    def mark(self):
        """What it has used by now."""
        return self.ask("")

    def sees_phase(self):
        return self.flavour != "metadata"

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()


def curl_once(command):
    """Seconds, seconds of CPU and bytes of one download."""
    with tempfile.TemporaryFile("w+") as out:
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise Failure(f"curl: exit code {process.returncode}")
        out.seek(0)
        return seconds, usage.ru_utime + usage.ru_stime, int(out.read())


# --- rows ---


class Rows:
    """What was measured, by name, in the order of the first run."""

    def __init__(self):
        self.rows = {}

    def add(self, name, figures, void=None):
        row = self.rows.setdefault(name, {"of": name, "figures": {}})
        for figure, value in figures.items():
            row["figures"].setdefault(figure, []).append(round(value, 6))
        if void:
            row["void"] = void

    def list(self):
        return list(self.rows.values())


def why_void(said, expected_sum, n_told):
    if said["told"] != n_told:
        return f"told {said['told']} of {n_told}"
    return None if said["sum"] == expected_sum else "another checksum"
