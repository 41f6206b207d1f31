"""Clients of the sidecar that others wrote: kubectl, client-go, the Python client.

Each is compared with the server when all is quiet: what it has by then, keys and versions; oracle.c judges those that tell
each event. Pods are what they follow.
"""

import os
import threading
import time

from harness import ROOT, TOOLS, fnv1a64

PYTHON = os.path.join(ROOT, "build", "clients", "python", "bin", "python")
EVENTS = "{.type} {.object.metadata.namespace}/{.object.metadata.name} {.object.metadata.resourceVersion}{'\\n'}"


def command(name, kubeconfig, folder):
    """None: it is not here."""
    here = os.path.dirname(os.path.abspath(__file__))
    known = {
        # In pages, as by default, it makes an object of each page before it watches.
        "kubectl": [os.path.join(TOOLS, "kubectl"), "--kubeconfig", kubeconfig, "--cache-dir", folder + "/cache", "get",
                    "pods", "-A", "--chunk-size=0", "--watch", "--output-watch-events", "-o", "jsonpath=" + EVENTS],
        "client-go": [os.path.join(TOOLS, "informers"), "-kubeconfig", kubeconfig, "-resource", "pods"],
        "client-go-list": [os.path.join(TOOLS, "informers"), "-kubeconfig", kubeconfig, "-resource", "pods", "-client",
                           "dynamic", "-watchlist=false"],
        "python": [PYTHON, "-B", os.path.join(here, "python_client.py"), kubeconfig],
    }[name]
    return known if os.path.exists(known[0]) else None


NAMES = ("kubectl", "client-go", "client-go-list", "python")


class State:
    """What a client has, from its lines: `RESET`, `ADDED KEY VERSION`... or `objects=N checksum=SUM`."""

    def __init__(self, stream):
        self.stream = stream
        self.pods, self.checksum, self.problem = {}, None, None
        self.n_events = 0
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.stream:
            try:
                self.take(line.split())
            except (ValueError, KeyError, IndexError) as problem:
                self.problem = f"{problem!r} at {line!r}"
        self.stream.close()

    def take(self, words):
        self.n_events += 1
        if words[0].startswith("objects="):
            self.checksum = words[1].removeprefix("checksum=")
            return
        if words[0] == "ERROR":  # it ends, and is started again
            return
        if words[0] == "RESET":
            self.pods = {}
            return
        kind, key, version = words
        if kind == "DELETED":
            del self.pods[key]
        elif kind in ("ADDED", "MODIFIED"):
            if int(self.pods.get(key, 0)) > int(version) and kind == "MODIFIED":
                raise ValueError("the version goes back")
            self.pods[key] = version
        else:
            raise ValueError("what is that")

    def is_equal(self, pods):
        if self.checksum is None:
            return self.pods == pods
        return self.checksum == fnv1a64(b"".join(sorted(f"{key}@{version}\n".encode() for key, version in pods.items())))


    def difference(self, pods):
        if self.checksum is not None or not self.pods:
            return f"it has {self.checksum or 'nothing'}"
        wrong = sorted(key for key in {*pods, *self.pods} if pods.get(key) != self.pods.get(key))
        return f"{len(wrong)} of {len(pods)} pods, say {wrong[0]}: {self.pods.get(wrong[0])} and not {pods.get(wrong[0])}"


def wait_equal(parts, pods, patience):
    """Names those that do not come to what the server has, and how; `pods`: key -> version."""
    deadline = time.monotonic() + patience
    wrong = parts
    while wrong and time.monotonic() < deadline:
        for part in wrong:
            part.check()
        wrong = [part for part in wrong if not part.state.is_equal(pods)]
        if wrong:
            time.sleep(0.05)
    return [f"{part.name} has not the server's pods: {part.state.difference(pods)}" for part in wrong] + \
        [f"{part.name}: {part.state.problem}" for part in parts if part.state.problem]
