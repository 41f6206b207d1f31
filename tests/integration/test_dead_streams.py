"""Streams that died without a word: found, replaced by another watch, and nothing lost or listed again."""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from harness import Daemon, Proxy, cluster, config_map, wait_until, write_config

NAMESPACE = "dead-streams"
# In the event that the reflector tells its policy; what a reader is told is count_loud()'s.
SILENT = 'event="silent" error='
CLONE_NEWNET = 0x40000000


def setUpModule():
    cluster().make_namespace(NAMESPACE)


def put(name):
    cluster().kubectl("create", "-f", "-", stdin=config_map(name, NAMESPACE))


def tearDownModule():
    cluster().kubectl("delete", "configmaps", "--all", "-n", NAMESPACE)


class Host:
    """Another host, which is a network namespace, at the end of a cable of our own."""

    def __init__(self):
        number = int.from_bytes(os.urandom(2), "big")
        base, last = f"198.{18 + (number >> 14 & 1)}.{number >> 6 & 255}", (number & 63) << 2
        self.name = f"kinf-{number}"
        self.near = f"{base}.{last + 1}"
        self.address = f"{base}.{last + 2}"
        self.ip("netns", "add", self.name)
        try:
            self.connect(f"kinf-{number}")
        except OSError:
            self.close()
            raise

    def connect(self, device):
        self.ip("link", "add", device, "type", "veth", "peer", "name", "far", "netns", self.name)
        self.ip("address", "add", f"{self.near}/30", "dev", device)
        self.ip("link", "set", device, "up")
        self.ip("-n", self.name, "address", "add", f"{self.address}/30", "dev", "far")
        self.ip("-n", self.name, "link", "set", "far", "up")

    @staticmethod
    def ip(*args):
        done = subprocess.run(["ip", *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise OSError(f"ip {' '.join(args)}: {done.stdout.strip()}")

    def close(self):
        # The cable goes with one of its ends.
        self.ip("netns", "delete", self.name)

    def listen(self):
        listeners = []

        def enter():
            with open(f"/run/netns/{self.name}", encoding="utf-8") as file:
                if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) == 0:
                    listeners.append(socket.create_server((self.address, 0)))
        # A socket stays where it was made; only this thread goes there.
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        if not listeners:
            raise OSError(f"cannot enter the network namespace {self.name}")
        return listeners[0]

    def vanish(self):
        self.ip("-n", self.name, "route", "add", "blackhole", f"{self.near}/32")

    def come_back(self):
        self.ip("-n", self.name, "route", "delete", "blackhole", f"{self.near}/32")


class Vanished:
    """A daemon whose server vanished, at the times that users get. What comes of it takes most of a minute, so it
    is watched by a thread while other tests run."""

    def __init__(self, stack):
        host = Host()
        stack.callback(host.close)
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        proxy = stack.enter_context(Proxy(listener=host.listen()))
        self.daemon = stack.enter_context(Daemon("--namespace", NAMESPACE, kubeconfig=proxy.kubeconfig(folder),
                                                 resource=("configmaps",)))
        self.seconds = None
        self.n_lines = self.n_silences = None
        self.daemon.wait_synced()
        put("before-the-void")
        self.daemon.wait_types(NAMESPACE + "/before-the-void", "ADDED")
        self.thread = threading.Thread(target=self.watch, args=(host,))
        stack.callback(self.thread.join)
        self.thread.start()

    def watch(self, host):
        host.vanish()
        began = time.monotonic()
        wait_until(lambda: self.daemon.count_loud("timed out"), "the failed watch")
        self.seconds = time.monotonic() - began
        self.n_lines = self.daemon.count_loud("timed out")
        self.n_silences = self.daemon.count_log(SILENT)
        host.come_back()


class DeadStreams(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        cls.vanished = cls.problem = None
        try:
            cls.vanished = Vanished(stack)
        except OSError as problem:
            cls.problem = problem

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def scaled(self):
        return write_config(self.folder, "configmaps", namespaces=[NAMESPACE], silentAfter="4s", backoffBase="100ms",
                            backoffMax="500ms")

    def check_no_relist(self, daemon, name):
        """What happens now arrives, by a watch from where the dead one stopped."""
        put(name)
        daemon.wait_types(f"{NAMESPACE}/{name}", "ADDED")
        daemon.wait_equal(lambda: cluster().versions(f"/api/v1/namespaces/{NAMESPACE}/configmaps"), "configmaps")
        self.assertEqual(daemon.count_log("listed resource"), 1)
        daemon.stop()

    def test_a_server_that_hangs_while_its_kernel_answers(self):
        with Daemon(config=self.scaled()) as daemon:
            daemon.wait_synced()
            put("before-the-hang")
            daemon.wait_types(NAMESPACE + "/before-the-hang", "ADDED")
            before = daemon.count_log(SILENT)
            try:
                cluster().signal_apiserver(signal.SIGSTOP)
                daemon.wait_logged(SILENT, before + 1)
                daemon.wait_logged("no answer within")
                # A stream that was cut right before the stop may have been the first.
                self.assertLessEqual(daemon.count_log(SILENT), before + 2)
                self.assertEqual(daemon.count_loud("the stream is silent"), 1)
            finally:
                cluster().signal_apiserver(signal.SIGCONT)
            self.check_no_relist(daemon, "after-the-hang")

    def test_a_proxy_that_keeps_our_leg_when_the_other_is_gone(self):
        with Proxy() as proxy, Daemon(kubeconfig=proxy.kubeconfig(self.folder), config=self.scaled()) as daemon:
            daemon.wait_synced()
            put("before-the-loss")
            daemon.wait_types(NAMESPACE + "/before-the-loss", "ADDED")
            n_connections = proxy.n_connections
            before = daemon.count_log(SILENT)
            proxy.lose_server()
            put("during-the-loss")
            daemon.wait_logged(SILENT, before + 1)
            daemon.wait_types(NAMESPACE + "/during-the-loss", "ADDED")
            self.assertGreater(proxy.n_connections, n_connections)
            self.assertEqual(daemon.count_loud("the stream is silent"), 1)
            self.check_no_relist(daemon, "after-the-loss")

    def test_the_peer_that_vanished_was_found_within_a_minute(self):
        if self.vanished is None:
            # That takes rights which not every machine gives; the tool for it has to be there.
            self.assertIsNotNone(shutil.which("ip"))
            self.skipTest(f"no network namespace can be made here: {self.problem}")
        self.vanished.thread.join()
        self.assertLess(self.vanished.seconds, 60)
        print(f"  found after {self.vanished.seconds:.1f} s")
        self.assertEqual((self.vanished.n_lines, self.vanished.n_silences), (1, 0))
        self.check_no_relist(self.vanished.daemon, "after-the-void")


if __name__ == "__main__":
    unittest.main()
