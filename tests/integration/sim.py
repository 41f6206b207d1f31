"""kinformer-sim, as tests start it."""

import http.client
import json
import os
import signal
import subprocess
import tempfile
import threading
import time

from harness import PATIENCE, TOOLS, Slow, program_path, wait_until

KUBECTL = os.path.join(TOOLS, "kubectl")


def sim_path(mode="asan"):
    return program_path("kinformer-sim", mode)


class Sim:
    """A running kinformer-sim that listens on loopback; its address and kubeconfig are there when __init__ returns."""

    def __init__(self, *args, mode="asan", env=None):
        self.folder = tempfile.TemporaryDirectory(prefix="kinformer-sim-")
        self.kubeconfig = os.path.join(self.folder.name, "kubeconfig")
        self.addresses = []  # "127.0.0.1:1234"
        self.fault_address = None  # with --fault-listen
        self.log = open(os.path.join(self.folder.name, "log"), "w+", encoding="utf-8", errors="replace")
        self.process = subprocess.Popen(
            [sim_path(mode), "--listen", "127.0.0.1:0", "--write-kubeconfig", self.kubeconfig, *args],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True,
            env={**os.environ, **(env or {})})
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        try:
            wait_until(lambda: self.check() or self.addresses, "kinformer-sim listens")
        except AssertionError:
            self.kill()
            raise
        self.address = self.addresses[0]

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        try:
            if kind is None and self.process.poll() is None:
                self.stop()
        finally:
            if kind is not None:
                print(f"--- the end of kinformer-sim's log\n{self.log_text()[-4000:]}")
            self.kill()

    def _read(self):
        for line in self.process.stdout:
            what, _, url = line.rstrip("/\n").partition(" ")
            if what == "serving":
                self.addresses.append(url.partition("://")[2])
            elif what == "faults":
                self.fault_address = url.partition("://")[2]

    def open(self):
        """A connection; the caller closes it."""
        return http.client.HTTPConnection(self.address, timeout=PATIENCE)

    def control(self, method, target, body=None):
        """(status, answer) of the address for faults."""
        wait_until(lambda: self.check() or self.fault_address, "the address for faults")
        connection = http.client.HTTPConnection(self.fault_address, timeout=PATIENCE)
        try:
            connection.request(method, target, body=body)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        finally:
            connection.close()

    def act(self, name):
        """Of its actions on the whole server."""
        status, answer = self.control("POST", "/actions/" + name)
        if status != 200:
            raise AssertionError(f"{name}: {status} {answer}")

    def kubectl(self, *args, stdin=None, check=True):
        done = subprocess.run([KUBECTL, "--kubeconfig", self.kubeconfig, "--cache-dir", self.folder.name + "/cache",
                               *args], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=PATIENCE, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(args)}: {done.stderr}")
        return done.stdout if check else done.stdout + done.stderr

    def log_text(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as file:
            return file.read()

    def check(self):
        if self.process.poll() is not None:
            raise AssertionError(f"kinformer-sim ended with {self.process.returncode}: {self.log_text()[-4000:]}")

    def stop(self, within=None):
        """SIGTERM; returns the seconds until the end, and fails unless it was clean."""
        self.check()
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE)
        seconds = time.monotonic() - began
        if code != 0:
            raise AssertionError(f"stopped with {code}: {self.log_text()[-4000:]}")
        if within is not None and seconds > within:
            raise Slow(f"stop took {seconds:.3f} s")
        return seconds

    def kill(self):
        """However it ends; also after stop(), to be rid of what it leaves."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        self.log.close()
        self.folder.cleanup()
