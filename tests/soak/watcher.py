#!/usr/bin/env python3
"""A client of the sidecar without a library: watch lists, and watches from where the last one ended.

    watcher.py NAME SOCKET ADDRESS

Each event goes to the oracle as it came, byte by byte (stream.h: a watch). What is read here is the version to go on
from, and what ends a stream.
"""

import http.client
import json
import socket
import sys
import threading
import time

TYPES = {"pods": "/api/v1/pods", "deployments.apps": "/apis/apps/v1/deployments",
         "widgets.soak.kinformer.dev": "/apis/soak.kinformer.dev/v1/widgets",
         "leases.coordination.k8s.io": "/apis/coordination.k8s.io/v1/leases"}
SILENCE = 30.0


class Oracle:
    def __init__(self, path, name):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.lock = threading.Lock()
        self.say(b"hello %s watch\n" % name.encode())

    def say(self, line):
        with self.lock:
            self.socket.sendall(line)


class Watcher:
    """Of one type, on a thread."""

    def __init__(self, oracle, address, resource):
        self.oracle, self.address, self.resource = oracle, address, resource.encode()
        self.target = TYPES[resource]
        self.version = None  # to go on from; None: all has to be told anew

    def run(self):
        while True:
            try:
                self.watch()
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.05)

    def watch(self):
        how = f"resourceVersion={self.version}" if self.version else \
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        connection = http.client.HTTPConnection(self.address, timeout=SILENCE)
        try:
            connection.request("GET", f"{self.target}?watch=1&allowWatchBookmarks=true&timeoutSeconds=20&{how}")
            answer = connection.getresponse()
            if answer.status == 410:
                self.version = None
            if answer.status == 200:
                self.read(answer)
        finally:
            connection.close()

    def read(self, answer):
        is_new = self.version is None
        version = None if is_new else self.version
        if is_new:
            self.oracle.say(b"B %s\n" % self.resource)
        while line := answer.readline():
            if not line.endswith(b"\n"):
                return
            if line.startswith((b'{"type":"ERROR"', b'{"type":"BOOKMARK"')):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    self.version = None
                    return
                version = event["object"]["metadata"]["resourceVersion"]
                if is_new and "k8s.io/initial-events-end" in event["object"]["metadata"].get("annotations", {}):
                    self.oracle.say(b"E %s\n" % self.resource)
                    is_new = False
            else:
                self.oracle.say(b"W %s %s" % (self.resource, line))
                version = version_of(line)
            if not is_new:
                self.version = version


def version_of(line):
    """Behind the annotations, in which there may be anything: the last one of metadata."""
    return json.loads(line)["object"]["metadata"]["resourceVersion"]


def main(name, path, address):
    oracle = Oracle(path, name)
    for resource in TYPES:
        threading.Thread(target=Watcher(oracle, address, resource).run, daemon=True).start()
    oracle.socket.recv(1)  # until it has gone


if __name__ == "__main__":
    main(*sys.argv[1:])
